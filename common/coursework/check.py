#!/usr/bin/env python3
"""What `make check` says of the exercises of a step: check.py PROGRAM STEP_DIRECTORY [EXERCISE...]

PROGRAM is the common main with the step's kernels and `check` (check.cpp). Exit status: 0 if every
exercise (of those named) is right, safe and within its targets, 1 if not.
"""

import json
import re
import resource
import signal
import subprocess
import sys
import tempfile
from dataclasses import dataclass, field
from pathlib import Path

from exercises import ROOT, TODO, ExerciseError, counter, read_step, worst_line

sys.path.insert(0, str(ROOT / "plots"))
from record_format import join  # noqa: E402

LIMIT_S = 120  # of a run
LIMIT_CPU_S = 10  # of the processors' time; a right kernel takes a few seconds


# --- What a program says --------------------------------------------------------------------------


@dataclass
class Ending:
    """How a run ended, and the lines of JSON that it left."""

    status: int | None  # as in subprocess; None: it did not end within the limit
    lines: list
    errors: str  # the end of stderr


def run_here(program):
    """A function that runs the program with arguments and gives an Ending."""

    def limit():
        resource.setrlimit(resource.RLIMIT_CPU, (LIMIT_CPU_S, LIMIT_CPU_S + 5))

    def run(arguments, limit_s):
        with tempfile.NamedTemporaryFile("r", suffix=".jsonl") as file:
            command = [program, *arguments, "--json", file.name]
            try:
                done = subprocess.run(
                    command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
                    errors="replace", timeout=limit_s, preexec_fn=limit,
                )  # fmt: skip
                status, errors = done.returncode, done.stderr
            except subprocess.TimeoutExpired:
                status, errors = None, ""
            return Ending(status, read_lines(file.read()), errors[-2000:])

    return run


def read_lines(text):
    """The lines of JSON; a last one that was cut off is none."""
    lines = []
    for line in text.splitlines():
        try:
            lines.append(json.loads(line))
        except ValueError:
            break
    return lines


def abilities(program):
    """Whether a program counts, which it does without a GPU, and how to have it count by lines."""
    text = subprocess.run([program, "--help"], capture_output=True, text=True).stdout
    return "--workers" in text, ["--profile"] if "--profile" in text else []


# --- What a kernel may call -----------------------------------------------------------------------

# A kernel cannot call functions of the host: nvcc refuses to compile that. g++ does not know of the
# difference, so the names that the kernels' object file calls are looked at. What a GPU has: warp
# operations and atomics (simt), mathematics, printf and assert.
DEVICE = re.compile(
    r"simt::(?!settings|start_profile|stop_profile|take_report|set_quiet|name_allocation|run_grid)"
    r"|__tsan_|__sanitizer_cov_trace_pc$|__assert_fail$|(printf|puts|putchar|__printf_chk)$"
    r"|(sqrt|cbrt|fabs|fma|fmin|fmax|fmod|floor|ceil|trunc|(ll?)?rint|(ll?)?round|exp|exp2|log|log2|pow|hypot|sin|cos|ldexp)f?$"
)
# What the code around the kernels calls of C.
AROUND = {"memcmp", "memcpy", "memmove", "memset", "strlen", "threadIdx", "blockIdx", "blockDim", "gridDim"}


def symbols(object_file):
    """(called, defined for others) names of an object file."""
    done = subprocess.run(["nm", "-C", str(object_file)], capture_output=True, text=True, check=True)
    called, defined = set(), set()
    for line in done.stdout.splitlines():
        kind, name = re.match(r"[0-9a-f ]{16} (\S) (.*)", line).groups()
        if kind in "Uw":
            called.add(name)
        elif kind.isupper() or kind in "uvw":
            defined.add(name)
    return called, defined


def host_functions(program):
    """Functions of C that kernels call and no GPU has. The steps' own call none."""
    called = set()
    for path in Path(program).parent.glob("stage*.o"):
        called |= symbols(path)[0]
    return sorted(n for n in called - AROUND if re.fullmatch(r"[a-z]\w*|_[Ee]xit", n) and not DEVICE.match(n))


# --- What it means --------------------------------------------------------------------------------


@dataclass
class Result:
    """What came out for one exercise."""

    exercise: object
    tried: int = 0  # matrices, over all kernels; without those that a format refuses
    right: int = 0
    wrong: list = field(default_factory=list)  # lines of check.cpp
    ended: str = ""  # why the program did not come to its end
    targets: list = field(default_factory=list)  # (Target, value or None, "file:line" or None)
    counted: bool = True  # not on a GPU

    def all_right(self):
        return self.tried > 0 and self.right == self.tried

    def unsafe(self):
        """The first report of what is not only a wrong number."""
        if self.ended:
            return self.ended
        for wrong in self.wrong:
            if wrong["kind"] == "error":
                return tidy(wrong["what"])
            if wrong["kind"] == "order":
                return f"{wrong['kernel']} is wrong in one order of blocks, warps and lanes, right in another"
        return ""

    def counts(self):
        """Right enough for safety and counters to mean something."""
        return self.tried > 0 and 2 * self.right >= self.tried

    def good(self):
        return self.all_right() and not self.unsafe() and all(t.met(v) for t, v, _ in self.targets)


def tidy(report):
    """A report of the CPU backend without the launch that heard of it and the kernel's arguments."""
    return re.sub(r"^.*?\): kernel (?:void )?(?:\w+::)*(\w+)(<.*?>)?\(.*?\) at ", r"\1 at ", report, count=1)


def how_it_ended(ending, trying):
    on = f" on '{trying}'" if trying else ""
    if ending.status is None or ending.status == -signal.SIGXCPU:
        return f"it did not end in time{on}: a loop that no thread leaves, or far too much work"
    if ending.status == -signal.SIGXFSZ:
        return f"it printed or wrote more than it may{on}"
    if ending.status < 0:
        return f"it ended with signal {-ending.status}{on}" + (
            ": memory that is not there, or more than 128 KiB of stack in a thread"
            if ending.status == -signal.SIGSEGV
            else ""
        )
    return f"the program ended before the tests were over{on}, with status {ending.status}: {ending.errors.strip()[-300:]}"


def judge(step, exercise, run, seed=1, random=40, every=False, limit_s=LIMIT_S, profile=(), counted=True):
    """Runs an exercise's kernels. `every`: go on after the first wrong result; `counted`: this is the
    CPU backend, which counts."""
    result = Result(exercise, counted=counted)
    arguments = ["check", "--kernel", ",".join(exercise.kernels), "--seed", str(seed)]
    arguments += ["--random", str(random)] + (["--all"] if every else [])
    arguments += ["--workers", "2"] if counted else []
    for matrix in step.matrices:
        arguments += ["--matrix", matrix]
    ending = run(arguments, limit_s)
    kernel, trying, done, announced = "", "", 0, 0
    for line in ending.lines:
        if "kernel" in line:
            kernel, announced = line["kernel"], line["matrices"]
            result.tried += announced
        elif "trying" in line:
            trying = line["trying"]
        elif "right" in line:
            result.right += 1
        elif "refused" in line:
            result.tried -= 1
        elif "wrong" in line:
            result.wrong.append({**line, "kernel": kernel})
        elif "done" in line:
            done, trying = done + 1, ""
    patterns = sum(1 for _ in exercise.kernels)
    if ending.status not in (0, 1) or done < patterns:
        result.ended = how_it_ended(ending, trying)
        # What did not run is not right.
        result.tried += announced * max(patterns - done - (1 if trying else 0), 0)
    if not counted:
        return result
    if result.counts() and not result.ended:
        count(exercise, result, run, limit_s, profile)
    else:
        result.targets = [(target, None, None) for target in exercise.targets]
    return result


NOT_COUNTED = float("nan")  # a kernel that is wrong on a matrix gets no record


def count(exercise, result, run, limit_s, profile):
    """Fills result.targets from records of the kernels on the targets' matrices."""
    arguments = ["--precision", "f64", "--workers", "1", *profile]
    arguments += ["--kernel", ",".join(dict.fromkeys(t.kernel for t in exercise.targets))]
    for matrix in dict.fromkeys(t.matrix for t in exercise.targets):
        arguments += ["--matrix", matrix]
    records = list(join(run(arguments, limit_s).lines))
    for target in exercise.targets:
        wanted = target.matrix.split(",")[0]
        record = next(
            (r for r in records
             if r["kernel"] == target.kernel and r["matrix"].split(",")[0] == wanted), None)  # fmt: skip
        value = counter(target, record) if record and record.get("traffic") else NOT_COUNTED
        line = worst_line(target, record) if record else None
        result.targets.append((target, value, line))


# --- What a student reads -------------------------------------------------------------------------


def verdict_on_target(target, value, line):
    """A sentence, as 'your loads of values move 31.9 bytes a nonzero; the target is at most 11'."""
    verb, array = {"load": "loads of", "store": "stores to", "atomic": "atomics on"}[target.access], target.array
    if value is NOT_COUNTED:
        return f"your {verb} {array} were not counted: the kernel is wrong on {target.matrix}"
    if value is None:
        return f"your kernel makes no {verb} {array}; the target is {target.counter} of {target.limit()}"
    text = f"your {verb} {array}: {value:.3g} {target.counter}; the target is {target.limit()}"
    if target.met(value):
        return text
    reason = target.reason[0].upper() + target.reason[1:]
    return f"{text}.\n" + (f"Look at {line}. " if line else "") + reason + ("" if reason.endswith(".") else ".")


def indented(text, width=4):
    return "\n".join(" " * width + line for line in text.rstrip().splitlines())


def explain(result):
    """What to print of an exercise, or put on a student's page."""
    lines = []
    if result.all_right():
        lines.append(f"  right    on all {result.tried} matrices")
    elif result.wrong:
        wrong = result.wrong[0]
        lines += [f"  WRONG    {wrong['kernel']} on '{wrong['wrong']}' ({wrong['case']})"]
        lines += [indented(wrong["what"])] if wrong["kind"] != "error" else []
        if wrong["kind"] == "order":
            lines += ["    It is right when blocks, warps and lanes run forward: some thread reads what",
                      "    another has not written yet, or overwrites what another has still to read."]  # fmt: skip
        if wrong.get("drawing"):
            lines += ["    The smallest matrix found on which it is wrong:", indented(wrong["drawing"], 6)]
    else:
        lines.append(f"  WRONG    {result.right or 'none'} of {result.tried} matrices were finished")
    if result.unsafe():
        lines += ["  UNSAFE   " + "\n           ".join(result.unsafe().splitlines())]
    elif result.counts() and result.counted:
        lines.append("  safe     no error of memory, no race seen, nobody waits in vain")
    if not result.counts() or result.ended:
        return "\n".join(lines)
    if not result.counted:
        lines.append("  -        memory, races and targets are looked at without a GPU: make check BACKEND=cpu")
    for target, value, line in result.targets:
        word = "target  " if target.met(value) else "MISSED  "
        lines.append(f"  {word} " + verdict_on_target(target, value, line).replace("\n", "\n           "))
    return "\n".join(lines)


def place_of_todo(directory, exercise):
    """'file:line' of the first TODO that is left, or None."""
    for name in exercise.files:
        for number, line in enumerate((directory / name).read_text(encoding="utf-8").splitlines(), 1):
            if f"{TODO} {exercise.name})" in line:
                return f"{directory.name}/{name}:{number}"
    return None


def main():
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    program, directory, names = sys.argv[1], Path(sys.argv[2]), sys.argv[3:]
    try:
        step = read_step(directory)
    except ExerciseError as error:
        sys.exit(f"error: {error}")
    known = [exercise.name for exercise in step.exercises]
    for name in names:
        if name not in known:
            sys.exit(f"error: no exercise '{name}' in {directory.name}; there are {', '.join(known)}")
    counted, profile = abilities(program)
    good, following = True, None
    calls = ", ".join(host_functions(program)) if counted else ""
    if calls:
        print(f"REFUSED  a kernel calls {calls}: a function of the host, which nvcc would not compile.")
        sys.exit(f"Next: do without {calls}; then make check again.")
    for number, exercise in enumerate(step.exercises, 1):
        if names and exercise.name not in names:
            continue
        print(f"Exercise {number}, {exercise.level}: {exercise.name}", flush=True)
        todo = place_of_todo(directory, exercise)
        if todo:
            good = False
            following = following or f"write {exercise.name}: {todo}, where the hints are"
            print(f"  TODO     not written yet: {todo}")
            continue
        result = judge(step, exercise, run_here(program), profile=profile, counted=counted)
        print(explain(result), flush=True)
        if not result.good():
            good = False
            following = following or (
                f"make {exercise.name} right" if not result.all_right() or result.unsafe()
                else f"bring {exercise.name} within its targets")  # fmt: skip
    if good and not counted:
        print("All is right on this GPU. Next: make check BACKEND=cpu.")
    elif good:
        print("All is right, safe and within its targets. The questions are in the README.")
    else:
        print(f"Next: {following}; then make check again.")
    sys.exit(0 if good else 1)


if __name__ == "__main__":
    main()
