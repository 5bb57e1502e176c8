#!/usr/bin/env python3
"""What `make check` says of the exercises of a step: check.py STEP_DIRECTORY [--kernel FILE | --write-times] [EXERCISE...]

FILE takes the place of the step's file of which it is a version (mine.py); its exercises are judged then. --write-times
keeps the times that the kernels would take on a GPU as those of the step's own, in times.json.

Exit status: 0 if every exercise (of those named) is right, safe and within its targets, 1 if not, 2
if it could not be told.
"""

import argparse
import contextlib
import json
import os
import re
import shlex
import signal
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path

import kit
from exercises import ROOT, TODO, ExerciseError, NotJudged, counter, drawn, given_files, read_step
from exercises import source_text, sources_of, worst_line, write_files
from mine import replaced_file

LIMIT_S = 120  # of a run
LIMIT_CPU_S = 60  # of the processors' time; a right kernel takes a few seconds
TIMES = Path(__file__).with_name("times.json")  # of the step's own kernels, for --write-times


# --- What it means --------------------------------------------------------------------------------


@dataclass
class Measured:
    """What a target is about, as it was counted."""

    target: object
    value: float | None
    line: str | None = None  # "file:line" of what asks for most
    steps: int = 0  # requests of the busiest warp
    uneven: str = ""  # that few warps do the work of all on the largest matrix

    def met(self):
        uneven = self.uneven and self.target.steps is not None
        return not uneven and self.target.met(self.value, self.steps)


@dataclass
class Result:
    """What came out for one exercise."""

    exercise: object
    tried: int = 0  # matrices, over all kernels; without those that a format refuses
    right: int = 0
    tried_fixed: int = 0  # of these, those whose row lengths no seed changes
    right_fixed: int = 0
    found: list = field(default_factory=list)  # the judge's lines on what was found
    ended: str = ""  # why the kernels did not come to their end
    looks: str = ""  # what wrong products have in common
    remarks: list = field(default_factory=list)  # on what CUDA does not promise; cost nothing
    # They wrote to the runner's pipe, or made a system call that no kernel makes.
    forged: bool = False
    missing: str = ""  # why they were not run at all
    details: list = field(default_factory=list)  # of that
    targets: list = field(default_factory=list)  # Measured
    # {"kernel on matrix": the time that it would take on a GPU}
    times: dict = field(default_factory=dict)
    withheld: bool = False  # points for what a flag puts in doubt (flags.py), with --strict

    def all_right(self):
        return self.tried > 0 and self.right == self.tried

    def wrong(self):
        """The first result that is not right, or None."""
        return next((line for line in self.found if not line["right"]), None)

    def unsafe(self):
        """The first error (of memory, a race, a deadlock, the order), and why the kernels did not come to their end; "" if neither."""
        errors = [tidy(line["what"]) for line in self.found if line["kind"] == "error"]
        if errors or self.ended:
            return "\n".join(errors[:1] + [self.ended] * bool(self.ended))
        for line in self.found:
            if line["kind"] == "order":
                return f"{line['kernel']} is wrong in one order of blocks, warps and lanes, right in another"
        return ""

    def share(self):
        """Of the matrices that `make check` and `make grade` have in common, those on which it is right."""
        return self.right_fixed / self.tried_fixed if self.tried_fixed else 0

    def weight(self):
        """How much safety and counters mean: all from three quarters of the matrices on, nothing up to one."""
        return min(max(2 * self.share() - 0.5, 0), 1)

    def counts(self):
        return self.weight() > 0

    def good(self):
        targets = all(measured.met() for measured in self.targets)
        return self.all_right() and not self.unsafe() and targets

    def points(self):
        """(right, safe, targets): what the rubric gives."""
        exercise = self.exercise
        if self.forged:
            return 0, 0, 0
        # What is wrong on a single matrix is wrong: at most half, in proportion.
        right = exercise.correct if self.all_right() else exercise.correct * self.share() / 2
        weight = 0 if self.withheld else self.weight()
        safe = 0 if self.unsafe() else exercise.safe
        targets = sum(measured.target.points for measured in self.targets if measured.met())
        return int(right), int(safe * weight), int(targets * weight)


ACCESS = re.compile(
    r"(reads|writes|updates) (\d+) bytes(, | at an address that is )(\d+) bytes into (shared )?'(\w+)'"
    r"(?:, which has (\d+)|,)"
)


def tidy(report):
    """A report of the CPU backend without the call that heard of it and the kernel's template arguments,
    and with elements instead of bytes."""
    report = re.sub(r" \(\w+\.\w+:\d+: [^()]*\(cudaError\w+\)\)$", "", report)
    report = re.sub(r"^kernel (\w+)(<.*?>)?(?= at |, block |:)", r"\1", report)

    def element(match):
        verb, size, between, offset, shared, array, of = match.groups()
        size, offset = int(size), int(offset)
        if offset % size or of and int(of) % size:
            return match[0]
        text = f"{verb} {shared or ''}'{array}'[{offset // size}]"
        comma = "," if between == ", " and not of else ""
        return text + (f" of {int(of) // size}" if of else "") + comma

    return ACCESS.sub(element, report)


def sentences(report):
    """What happened, what to do and what it leads to, each in a line of its own."""
    if "race: " not in report:
        return report
    return re.sub(r"; (\w)", lambda match: f".\n{match[1].upper()}", report)


# --- Asking the judge -----------------------------------------------------------------------------


ENDS = {
    signal.SIGXCPU: "it did not end in time: a loop that no thread leaves, or far too much work",
    signal.SIGSEGV: "it ended with signal 11: memory that is not there, or more than 128 KiB of stack in a thread",
    signal.SIGSYS: "it made a system call that no kernel makes, as an attack would",
}


def why_aborted(errors):
    """By the end of what a process wrote to the file `errors`."""
    errors.seek(max(errors.seek(0, os.SEEK_END) - 4096, 0))
    lines = [line.strip() for line in errors.read().decode(errors="replace").splitlines()]
    lines = [line for line in lines if line]
    if any("stack smashing detected" in line for line in lines):
        return "it wrote past the objects of a function's stack frame"
    if lines and lines[-1].startswith("it wrote past"):
        return lines[-1]
    return "it says: " + "; ".join(lines[-2:])[:300] if lines else "it called abort()"


def how_it_ended(process, errors):
    """(what is said of the runner, which has stopped or soon does; whether it attacked something)."""
    try:
        status = process.wait(10)
    except subprocess.TimeoutExpired:
        return "it stopped answering", False
    # Shells and bubblewrap exit with 128 + N where signal N ended the command.
    number = -status if status < 0 else status - 128
    if number == signal.SIGKILL:
        raise NotJudged("it was killed from outside")
    if number <= 0:
        return f"the program ended before the tests were over, with status {status}", False
    if number == signal.SIGABRT:
        return f"it ended with signal 6: {why_aborted(errors)}", False
    return ENDS.get(number, f"it ended with signal {number}"), number == signal.SIGSYS


@lru_cache
def same_addresses():
    """The words before a command that has the same addresses in every run, where that is allowed."""
    done = subprocess.run(["setarch", "-R", "true"], stderr=subprocess.DEVNULL)
    return [] if done.returncode else ["setarch", "-R"]


def limits(cpu_s, hard_s):
    """The words before a runner: processor time in seconds, and what it may write to a file."""
    return ["prlimit", f"--cpu={cpu_s}:{hard_s}", "--fsize=16777216", "--core=0", "--"]


def ask_judge(program, runner, question, limit_s):
    """The judge's report (judge.cpp) on what `runner`, a command, does; NotJudged if there is none."""
    # (Other threads would spin between loops over small matrices.)
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    pipe, command = subprocess.PIPE, [*same_addresses(), *map(str, runner)]
    errors = tempfile.TemporaryFile()  # as large as prlimit allows
    streams = {"stdin": pipe, "stdout": pipe, "stderr": errors, "env": environment}
    process = subprocess.Popen(command, start_new_session=True, **streams)
    pipes = [process.stdin.fileno(), process.stdout.fileno()]
    try:
        question = json.dumps({**question, "runner": pipes})
        how = {"capture_output": True, "text": True, "pass_fds": pipes, "env": environment}
        how["timeout"] = 6 * limit_s + 120  # the judge ends a runner before that
        done = subprocess.run([str(program)], input=question, **how)
        if done.returncode != 0:
            said = done.stderr.strip()[-300:]
            raise NotJudged(f"the judge ended with status {done.returncode}: {said}")
        report = json.loads(done.stdout)
        if "failure" in report:
            raise NotJudged(report["failure"])
        if report["left"] and not report["why"]:
            process.stdin.close()
            report["why"], report["forged"] = how_it_ended(process, errors)
    except (subprocess.TimeoutExpired, ValueError):
        raise NotJudged("the judge did not come to its end") from None
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)  # with what it started
        process.stdin.close(), process.stdout.close(), process.wait(), errors.close()
    return report


def judge(step, exercise, program, runner, seed=1, limit_s=LIMIT_S):
    """Runs an exercise's kernels. runner: the command."""
    targets = list(dict.fromkeys((t.kernel, drawn(t.matrix, seed)) for t in exercise.targets))
    question = {name: getattr(exercise, name) for name in ("kernels", "also", "finite_x")}
    question |= {"seed": seed, "matrices": step.matrices, "targets": targets, "seconds": limit_s}
    report = ask_judge(program, runner, question, limit_s)
    same = ("tried", "right", "tried_fixed", "right_fixed", "found", "looks", "forged")
    result = Result(exercise, **{name: report[name] for name in same})
    result.remarks = list(dict.fromkeys(map(tidy, report["remarks"])))
    if report["left"]:
        result.ended = report["why"] + (report["on"] and f" on '{report['on']}'")
    records = {(one["kernel"], one["matrix"]): one for one in report["counted"]}
    uneven = unevenness(records.pop((exercise.kernels[0], LARGEST), None))
    result.times = {f"{kernel} on {on}": it["time"] for (kernel, on), it in records.items()}
    for target in exercise.targets:
        record = records.get((target.kernel, drawn(target.matrix, seed)))
        result.targets.append(measured(target, record, uneven))
    return result


def measured(target, record, uneven=""):
    if not record:
        return Measured(target, NOT_COUNTED)
    line = worst_line(target, record)
    return Measured(target, counter(target, record), line, record["steps"], uneven)


LARGEST = "66000 x 66000, two diagonals"  # judge.cpp
# On it all rows are alike: the busiest warp may make so many times the requests of all, per warp that is launched, and some more.
MOST_UNEVEN, MORE = 1.9, 8


def unevenness(record):
    """What to say of a kernel that leaves the work on the largest matrix to few warps, or ""."""
    if not record or record["steps"] <= MOST_UNEVEN * record["mean_steps"] + MORE:
        return ""
    return f"on {LARGEST} the busiest warp makes {record['steps']} requests, a warp on average {record['mean_steps']}"


NOT_COUNTED = float("nan")  # for a kernel that is wrong on the target's matrix


# --- Building -------------------------------------------------------------------------------------


def read_build(text):
    """What build.py says: (flags, {file: what the compiler says}, whether there is a runner); NotJudged if it failed."""
    try:
        answer = json.loads(text.strip().splitlines()[-1])
        if "failure" in answer:
            raise NotJudged(str(answer["failure"])[:500])
        broken = {name: str(text) for name, text in answer["broken"].items()}
        return [str(flag) for flag in answer["flags"]], broken, answer["built"] is True
    except (ValueError, IndexError, KeyError, AttributeError, TypeError, RecursionError):
        raise NotJudged(f"the build said what cannot be read: {text.strip()[-300:]}") from None


def not_run(exercise, broken, todo):
    """A Result for an exercise with a file that is not run, or None."""
    for name in exercise.files:
        if name in broken:
            details = broken[name].splitlines()[:40]
            return Result(exercise, missing=f"{name} does not compile", details=details)
    return Result(exercise, missing=todo) if todo else None


# --- What a student reads -------------------------------------------------------------------------


def verdict_on_target(measured):
    """A sentence, as 'your loads of values move 31.9 bytes per nonzero; the target is at most 11'."""
    target, value = measured.target, measured.value
    if value is NOT_COUNTED:
        return f"your {target.what()} were not counted: the kernel is wrong on {target.matrix}"
    if value is None:
        aim = f"{target.counter} of {target.limit()}"
        return f"your kernel makes no {target.what()}; the target is {aim}"
    shown = f"{value:.3g}" if value < 1000 else f"{value:.0f}"
    aim = f"{target.counter}; the target is {target.limit()}"
    text = f"your {target.what()}: {shown} {aim}"
    if measured.met():
        return text
    if target.met(value):
        few = measured.uneven
        if not target.met(value, measured.steps):
            few = f"the busiest warp makes {measured.steps} requests, and {target.steps} would do"
        few += ".\nFew threads do the work of all; spread it over all warps and lanes."
        return f"{text}, but {few}"
    look = f"Look at {measured.line}. " if measured.line else ""
    return f"{text}.\n{look}{target.reason[0].upper()}{target.reason[1:].removesuffix('.')}."


def indented(text, width=4):
    return "\n".join(" " * width + line for line in text.rstrip().splitlines())


def times_beside(result):
    """Lines: the times that kernels would take on a GPU, and those of the step's own, where they are known."""
    known = json.loads(TIMES.read_text(encoding="utf-8")) if TIMES.exists() else {}
    text = "  time     {}: {}\n           the step's own kernel: {}"
    both = ((name, time, known.get(name)) for name, time in result.times.items())
    return [text.format(*three) for three in both if three[2]]


CHANCE = "Threads use the same element without order, and one of them writes: on a GPU chance decides what it holds."


def explain(result):
    """What to print of an exercise, or put on a student's page."""
    if result.missing:
        details = [indented(line) for line in result.details if line not in result.missing]
        return "\n".join([f"  MISSING  {result.missing}", *details])
    lines = []
    wrong = result.wrong()
    if result.all_right():
        race = ", as it ran here; on a GPU the order may be another (UNSAFE)"
        race *= "race: " in result.unsafe()
        lines.append(f"  right    on all {result.tried} matrices{race}")
    elif wrong:
        lines += [f"  WRONG    {wrong['kernel']} on '{wrong['matrix']}' ({wrong['case']})"]
        lines += [indented(wrong["what"])] if wrong["kind"] != "error" else []
        lines += [f"    It looks like this: {result.looks}."] if result.looks else []
        lines += [indented(wrong["shown"])] if "shown" in wrong else []
        lines += [f"    Look at {tidy(place)}." for place in wrong.get("if_wrong", [])[:3]]
        if wrong["kind"] == "error" and "race: " in wrong["what"]:
            lines.append(f"    {CHANCE}")
        if wrong.get("drawing"):
            lines.append("    The smallest matrix found on which it is wrong:")
            lines.append(indented(wrong["drawing"], 6))
    else:
        finished = f"{result.right or 'none'} of {result.tried} matrices were finished"
        lines.append(f"  WRONG    {finished}")
    if result.unsafe():
        lines += ["  UNSAFE   " + "\n           ".join(sentences(result.unsafe()).splitlines())]
    elif result.counts():
        lines.append("  safe     no error of memory, no race seen, no deadlock")
    lines += [f"  remark   {remark}" for remark in result.remarks]
    if not result.counts() or result.ended:
        return "\n".join(lines)
    for measured in result.targets:
        word = "target  " if measured.met() else "MISSED  "
        lines.append(f"  {word} " + verdict_on_target(measured).replace("\n", "\n           "))
    return "\n".join(lines + times_beside(result))


def points_line(result):
    """The points, part by part, and of how many."""
    exercise = result.exercise
    right, safe, targets = result.points()
    of_targets = sum(target.points for target in exercise.targets)
    share = f" ({result.right} of {result.tried} matrices)" if result.tried else ""
    parts = f"right {right} of {exercise.correct}{share}, safe {safe} of {exercise.safe}"
    total = f"{right + safe + targets} of {exercise.points()} points"
    return f"{parts}, targets {targets} of {of_targets}: {total}"


def place_of_todo(directory, exercise):
    """'file:line' of the first TODO that is left, or None."""
    for name in exercise.files:
        text = (directory / name).read_text(encoding="utf-8", errors="replace")
        for number, line in enumerate(text.splitlines(), 1):
            if f"{TODO} {exercise.name})" in line:
                return f"{directory.name}/{name}:{number}"
    return None


# --- make check -----------------------------------------------------------------------------------


def lay_out(step, directory, course, own):
    """Writes what is compiled to the directory `course`: the step as it is handed out, and in `own` the exercises' files as
    they are in `directory`, or as `own` ({name: text or bytes}) has them."""
    sources, given = sources_of(step, directory), given_files(step, directory)
    write_files(course, sources)
    write_files(course / step.directory, given)
    here = {name: sources[f"{step.directory}/{name}"] for name in given}
    write_files(course / "own", {**here, **own})


def build_command(step, place, course, out):
    """The words, besides Python's, that compile what was laid out in `course`, with the kit `place` (build.py)."""
    request = {"course": str(course), "step": step.directory, "out": str(out)}
    request |= {"kit": str(place), "files": step.files()}
    return [ROOT / "common/coursework/build.py", json.dumps(request)]


def explain_flags(flags):
    """What to print of the flags of all exercises."""
    head = "A person will look at this; it costs nothing by itself:"
    return "\n".join([head, *(f"  FLAG     {flag}" for flag in flags)])


def build(step, directory, place, mine):
    """(flags, broken, the runner) of the kernels in a directory."""
    work = ROOT / "build" / "check" / step.directory
    subprocess.run(["rm", "-rf", str(work)], check=True)
    lay_out(step, directory, work / "course", mine)
    command = [sys.executable, *build_command(step, place, work / "course", work)]
    done = subprocess.run(command, capture_output=True, text=True, errors="replace")
    flags, broken, built = read_build(done.stdout or done.stderr)
    return flags, broken, work / "objects/runner" if built else None


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("step", type=Path)
    parser.add_argument("--kernel", type=Path)
    parser.add_argument("--write-times", action="store_true")
    parser.add_argument("exercises", nargs="*")
    options = parser.parse_intermixed_args()
    directory, names = options.step, options.exercises
    try:
        step, mine = read_step(directory), {}
        if options.kernel:
            text = source_text(options.kernel)
            replaced = str(replaced_file(directory, options.kernel, text).relative_to(directory))
            step.exercises = [exercise for exercise in step.exercises if replaced in exercise.files]
            if not step.exercises:
                verifies = f"make run KERNEL={shlex.quote(str(options.kernel))} verifies it"
                belongs = f"{replaced}, which {options.kernel} replaces, belongs to no exercise"
                raise ExerciseError(f"{belongs}; {verifies}")
            mine[replaced] = text
        known = [exercise.name for exercise in step.exercises]
        for name in set(names) - set(known):
            there = f"there are {', '.join(known)}"
            raise ExerciseError(f"no exercise '{name}' in {directory.name}; {there}")
        place = kit.obtain()
        with kit.alone(f"check_{step.directory}"):
            flags, broken, runner = build(step, directory, place, mine)
            if options.write_times:
                times = json.loads(TIMES.read_text(encoding="utf-8"))
                for exercise in step.exercises:
                    times.update(judge(step, exercise, place / "judge", [runner]).times)
                text = json.dumps(times, indent=1, sort_keys=True)
                TIMES.write_text(text + "\n", encoding="utf-8")
                return
            sys.exit(report(step, directory, place, names, flags, broken, runner, mine))
    except (ExerciseError, NotJudged, OSError) as error:
        print(f"error: {error}", file=sys.stderr)
        sys.exit(2)


def following(exercise, todo, result):
    """What to do next for an exercise that is not done."""
    if result.missing and todo:
        return f"write {exercise.name}: {todo}, where the hints are"
    if result.missing:
        return f"make {exercise.name} compile"
    if not result.all_right() or result.unsafe():
        return f"make {exercise.name} right and safe"
    return f"bring {exercise.name} within its targets"


def report(step, directory, place, names, flags, broken, runner, mine):
    """Prints it; returns the exit status."""
    todos, total, most = [], 0, 0
    limited = [*limits(LIMIT_CPU_S, LIMIT_CPU_S + 5), runner]
    # (In the repository, not in a handout.)
    if not mine and (ROOT / "common/primer/puzzles").exists():
        yours = "Yours: make learn, or make check KERNEL=mine.cuh"
        print(f"This judges the repository's own kernels. {yours}", flush=True)

    def verdict(exercise):
        todo = None if mine else place_of_todo(directory, exercise)
        left_out = not_run(exercise, broken, todo and f"not written yet: {todo}")
        return todo, left_out or judge(step, exercise, place / "judge", limited)

    chosen = [exercise for exercise in step.exercises if not names or exercise.name in names]
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        verdicts = list(pool.map(verdict, chosen))
    for exercise, (todo, result) in zip(chosen, verdicts):
        print(f"Exercise {step.exercises.index(exercise) + 1}, {exercise.level}: {exercise.name}")
        print(explain(result), flush=True)
        print("  points   " + points_line(result), flush=True)
        total, most = total + sum(result.points()), most + exercise.points()
        if not result.good():
            todos.append(following(exercise, todo, result))
    if flags:
        print(explain_flags(flags))
    hidden = "as make grade would give them on these matrices; its own are hidden."
    print(f"{total} of {most} points, {hidden}")
    if todos:
        print(f"Next: {todos[0]}; then make check again.")
        return 1
    print("All is right, safe and within its targets. The questions are in the README.")
    return 0


if __name__ == "__main__":
    main()
