#!/usr/bin/env python3
"""Compiles a CUDA program of one file, with a main() and launches <<<...>>>, and runs it: make program SOURCE=mine.cu

On the CPU backend every access is checked, and the program runs twice: with blocks, warps and lanes in order, and
in an order drawn from a seed. What to do comes from the
environment: PROGRAM_SOURCE, PROGRAM_ARGS, PROGRAM_SEED (once, in the order of this seed), PROGRAM_DEVICES,
PROGRAM_NVCC (the compiler and its options, on a GPU).
"""

import hashlib
import os
import re
import shlex
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
sys.path[:0] = [str(HERE), str(ROOT / "common/coursework")]

import launches  # noqa: E402
from check import sentences  # noqa: E402
from check import tidy as tidy_report  # noqa: E402
from exercises import ExerciseError, source_text  # noqa: E402

CLOCKS = {"cudaEventElapsedTime", "clock64", "clock", "chrono", "gettimeofday", "clock_gettime"}
SLOW_S = 20  # a program that takes longer runs once
NUMBER = re.compile(r"[-+]?\d+\.?\d*(?:[eE][-+]?\d+)?")
ALIKE = 1e-4  # relative: sums of floats in another order


class ProgramError(Exception):
    """What keeps it from running; the text says what to do."""


def here():
    return os.environ.get("PWD") or os.getcwd()


def tidy(output):
    """Paths as they are typed where make was called."""
    return output.replace(f"{here()}/", "").replace(" [-fpermissive]", "").rstrip()


def make(*words, quiet=False):
    """What it prints. The CPU backend, whatever the machine has."""
    environment = {k: v for k, v in os.environ.items() if not k.startswith(("MAKE", "MFLAGS"))}
    streams = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE if quiet else None}
    command = ["make", "-s", "-C", str(HERE), *words]
    done = subprocess.run(command, env=environment, text=True, **streams)
    if done.returncode and quiet:
        raise ProgramError("it cannot be linked:\n" + tidy(done.stderr))
    if done.returncode:
        raise ProgramError("make run says what this machine lacks")
    return done.stdout


def compiled(command):
    """Its output. What the compiler says is shown."""
    done = subprocess.run(command, capture_output=True, text=True)
    for line in done.stderr.splitlines()[:40]:
        print(tidy(line), file=sys.stderr)
        place = re.match(r"(.+?):(\d+):(?:\d+:)? (?:fatal )?(?:error|warning): ", line)
        if place and Path(place[1]).is_file():  # (Columns are those of the rewritten text.)
            text = Path(place[1]).read_text(errors="replace").splitlines()
            source = "".join(text[int(place[2]) - 1 : int(place[2])]).strip()
            print(f"    {source}", file=sys.stderr)
    if done.returncode:
        raise ProgramError("it does not compile")
    return done.stdout


def key(source):
    return hashlib.sha256(source.encode()).hexdigest()[:8]


def build(source):
    """(the program, whether it asks for the time)."""
    compile_ = make("program-command").splitlines()
    words = "-E -D__global__=__global__ -DSIMT_PROGRAM -include simt/program.hpp".split()
    text = compiled([*compile_, *words, source])
    simt = str(ROOT / "common/simt/")
    text, wrong, words = launches.rewrite(text, lambda file: file.startswith((simt, "<")))
    if wrong:
        raise ProgramError("\n".join(tidy(f"{file}:{line}: {what}") for file, line, what in wrong))
    name = f"{re.sub(r'[^A-Za-z0-9_]', '_', Path(source).stem)}-{key(source)}"
    directory = ROOT / "build/cpu/program" / name
    directory.mkdir(parents=True, exist_ok=True)
    rewritten, program = directory / "program.ii", directory / "program"
    if not program.exists() or not rewritten.exists() or rewritten.read_text() != text:
        program.unlink(missing_ok=True)
        rewritten.write_text(text)
        object_ = directory / "program.cu.o"
        compiled([*compile_, "-fpreprocessed", "-c", str(rewritten), "-o", str(object_)])
    make("linked-program", f"PROGRAM={program}", quiet=True)
    return program, bool(words & CLOCKS)


# --- Running --------------------------------------------------------------------------------------


def complain(lines):
    """Shows what a program complains of, a sentence of a report per line."""
    for line in lines:
        text = sentences(tidy_report(line.rstrip("\n"))).replace("\n", "\n    ")
        print(text, file=sys.stderr, flush=True)


def run(program, environment, limit=None):
    """(exit status, None: it was stopped after `limit` seconds; what it prints; what it complains of; seconds). Without
    a limit both are shown."""
    begin = time.monotonic()
    command = [str(program), *shlex.split(os.environ.get("PROGRAM_ARGS", ""))]
    how = {"env": {**os.environ, **environment, "SIMT_ROOT": here()}, "errors": "replace"}
    pipe = subprocess.PIPE
    process = subprocess.Popen(command, stdout=pipe, stderr=pipe, text=True, **how)
    output = ""
    if not limit:
        complaints = threading.Thread(target=complain, args=(process.stderr,))
        complaints.start()
        for line in process.stdout:
            print(line, end="", flush=True)
            output += line
        complaints.join()
        return process.wait(), output, "", time.monotonic() - begin
    try:
        output, complaints = process.communicate(timeout=limit)
    except subprocess.TimeoutExpired:
        process.kill()
        output, complaints = process.communicate()
        return None, output, complaints, limit
    return process.returncode, output, complaints, time.monotonic() - begin


def differing_lines(one, other, asks_for_time):
    """The lines of each that the other has not, where they are not in the same place, and not with about the same numbers."""

    def shape(line):
        return NUMBER.sub("#", line)

    def alike(a, b):
        if shape(a) != shape(b):
            return False
        if asks_for_time:
            return True
        numbers = zip(map(float, NUMBER.findall(a)), map(float, NUMBER.findall(b)), strict=True)
        return all(abs(x - y) <= ALIKE * max(abs(x), abs(y)) for x, y in numbers)

    only_one = Counter(one.splitlines()) - Counter(other.splitlines())
    only_other = list((Counter(other.splitlines()) - Counter(one.splitlines())).elements())
    left = []
    for line in only_one.elements():
        same = next((other for other in only_other if alike(line, other)), None)
        if same is None:
            left.append(line)
        else:
            only_other.remove(same)
    return left, only_other


def ended(status):
    """A signal by its name, and make's status."""
    if status >= 0:
        return status
    print(f"error: the program ended by {signal.Signals(-status).name}", file=sys.stderr)
    return 1


ANOTHER = "with blocks, warps and lanes in another order (SEED=1)"


def run_twice(program, asks_for_time):
    status, output, _, seconds = run(program, {})
    if status:
        return ended(status)
    if seconds > SLOW_S:
        print(f"(It took {seconds:.0f} s, so no other order was tried: SEED=1.)")
        return 0
    again, other, complaints, _ = run(program, {"SIMT_SEED": "1"}, 3 * seconds + 10)
    if again != 0:
        how = "does not end" if again is None else "fails"
        said = f"error: right in order; {ANOTHER} it {how}:\n{tidy(complaints)[-2000:]}"
        print(said, file=sys.stderr)
        return 1
    one, two = differing_lines(output, other, asks_for_time)
    if one or two:
        print(f"remark: {ANOTHER} it prints something else:")
        for sign, lines in (("-", one), ("+", two)):
            print("\n".join(f"    {sign} {line}" for line in lines[:3]))
        print("    That is right only if the result may depend on the order.")
    if asks_for_time:
        print("(Times are the emulator's: they say nothing of a GPU's.)")
    return 0


def main():
    source = os.environ.get("PROGRAM_SOURCE", "")
    try:
        if not source:
            raise ProgramError("which program? make program SOURCE=mine.cu, a file with a main()")
        path = Path(here(), source)
        if not path.is_file():
            raise ProgramError(f"SOURCE={source}: there is no such file")
        source = os.path.normpath(path)
        source_text(source)
        devices = os.environ.get("PROGRAM_DEVICES")
        if devices:
            os.environ["SIMT_DEVICES"] = devices
        nvcc = os.environ.get("PROGRAM_NVCC")
        if nvcc:
            program = ROOT / "build/cuda/program" / key(source)
            program.parent.mkdir(parents=True, exist_ok=True)
            compiled([*shlex.split(nvcc), source, "-o", str(program)])
            return ended(run(program, {})[0])
        program, asks_for_time = build(source)
        seed = os.environ.get("PROGRAM_SEED")
        if seed:
            return ended(run(program, {"SIMT_SEED": seed})[0])
        return run_twice(program, asks_for_time)
    except (ProgramError, ExerciseError) as error:
        print("\n".join(f"error: {line}" for line in str(error).splitlines()), file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        return 130


if __name__ == "__main__":
    sys.exit(main())
