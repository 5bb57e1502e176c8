#!/usr/bin/env python3
"""Runs a puzzle or an experiment of this directory, and says what is wrong: puzzle.py FILE.cu [NUMBER]

It is compiled and linked as kernels of exercises are (common/coursework). NUMBER, from 1 to
1024, is what the puzzle calls primer::argument(). A file with a main() of its own is run with NUMBER.
Exit status: 0 solved, 1 not solved, 2 it could not be told.
"""

import configparser
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
sys.path[:0] = [str(ROOT / "common/coursework")]

import kit  # noqa: E402
from build import compile_sources  # noqa: E402
from check import how_it_ended, indented, limits, measured, same_addresses  # noqa: E402
from check import sentences, tidy, verdict_on_target  # noqa: E402
from exercises import ExerciseError, NotJudged, read_target, source_text  # noqa: E402
from flags import flags_of_compiler  # noqa: E402

BUILT = ROOT / "build/cpu/primer"
SECONDS, CPU_SECONDS = 60, 5  # for all runs of a puzzle, which take less than one
NEVER_ENDS = "it does not end in time: a loop that some thread never leaves, or far too much work"


def is_program(file):
    """Whether it has a main() of its own."""
    text = Path(file).read_text(encoding="utf-8", errors="replace")
    return re.search(r"^int main\(", text, re.MULTILINE) is not None


def declared():
    """What puzzles.ini says."""
    parser = configparser.ConfigParser(interpolation=None)
    parser.read(HERE / "puzzles.ini", encoding="utf-8")
    return parser


def run_program(file, *words, **how):
    """What make program does with it, on as many devices as puzzles.ini says. All that it allocates has to be freed."""
    own = {
        "PROGRAM_SOURCE": str(file),
        "PROGRAM_ARGS": " ".join(words),
        "PROGRAM_DEVICES": declared().get(Path(file).stem, "devices", fallback=""),
        "SIMT_FREED": "1",
    }
    environment = {**os.environ, "PROGRAM_SEED": "", "PROGRAM_NVCC": "", **own}
    return subprocess.run([sys.executable, HERE / "program.py"], env=environment, text=True, **how)


class Compiled:
    """A puzzle's program, compiled from a file of any name and place."""

    def __init__(self, file, name=""):
        self.file, self.name = Path(file), name or Path(file).stem
        self.directory = BUILT / self.name
        self.program = self.directory / "objects/runner"

    def build(self):
        """(whether it compiles, what the compiler said)."""
        self.kit = kit.obtain()
        source = self.directory / "source"
        shutil.rmtree(self.directory, ignore_errors=True)
        source.mkdir(parents=True)
        try:
            text = source_text(self.file.name, self.file.read_bytes())
        except ExerciseError as error:
            return False, str(error)
        (source / self.file.name).write_text(text, encoding="utf-8")
        good, text = compile_sources(self.kit, source, self.directory / "objects")
        return good, text.replace(f"{source.name}/", "")

    def targets(self):
        """Those of puzzles.ini."""
        parser = declared()
        names = [name for name in parser.sections() if name.startswith(f"{self.file.stem}: ")]
        return [read_target(parser[name], "puzzle") for name in names]

    def judge(self, number=0):
        """(whether it is solved, what to print)."""
        if is_program(self.file):
            done = run_program(self.file, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
            return done.returncode == 0, indented(done.stdout, 2)
        good, said = self.build()
        if not good:
            lines = [line for line in said.splitlines() if line.strip()]
            return False, "  It does not compile:\n" + indented("\n".join(lines[:12]))
        unset = flags_of_compiler(said, self.file.name, self.file.name)
        warned = [f"  WARNING line {f.line}: {f.construct}; it holds anything" for f in unset]
        found = self.run(number)
        solved, verdict, *more = self.describe(found)
        remarks = [f"  remark  {remark}" for remark in map(tidy, found.get("remarks", []))]
        text = [*dict.fromkeys(warned), verdict, *dict.fromkeys(remarks), *more]
        return solved and not warned, "\n".join(text)

    def run(self, number):
        """What the runner says of it (runner.cpp), or why it did not come to its end."""
        said = self.directory / "said.json"
        command = [*same_addresses(), *limits(CPU_SECONDS, 2 * CPU_SECONDS)]
        command += [self.program, "--say", said, str(number)]
        how = {"stdin": subprocess.DEVNULL, "stdout": subprocess.DEVNULL}
        how["env"] = {**os.environ, "OMP_NUM_THREADS": "1"}
        with tempfile.TemporaryFile() as errors:
            process = subprocess.Popen(command, stderr=errors, **how)
            try:
                status = process.wait(SECONDS)
            except subprocess.TimeoutExpired:
                process.kill()
                return {"ended": "it did not end in time"}
            if status or not said.exists():
                return {"ended": how_it_ended(process, errors)[0]}
            return json.loads(said.read_text())

    def describe(self, found):
        """(whether it is solved, what to print...)."""
        if "ended" in found:
            late = "end in time" in found["ended"]
            return False, f"  WRONG   {NEVER_ENDS}" if late else f"  UNSAFE  {found['ended']}"
        if found["answer"] == "error":
            word = "WRONG " if "does not end in time: " in found["text"] else "UNSAFE"
            text = sentences(tidy(found["text"])).replace("\n", "\n          ")
            return False, f"  {word}  {text}"
        if found["answer"]:
            other = "right when threads run one after the other, wrong in another order: "
            return False, f"  WRONG   {other * (found['answer'] == 'order')}{found['text']}"
        right = "in four orders of blocks, warps and lanes; no race, no access out of bounds"
        targets = [measured(target, {"nnz": 1, **found}) for target in self.targets()]
        lines = []
        for one in targets:
            word = "target" if one.met() else "MISSED"
            lines.append(f"  {word}  " + verdict_on_target(one).replace("\n", "\n          "))
        return (
            all(one.met() for one in targets),
            f"  right   {right}",
            *lines,
            "",
            *table(found["lines"]),
        )


def table(rows):
    """What was asked of each array, in the order of their names."""
    sums = {}
    for row in rows:
        shared = row["space"] == "shared"
        key = row["array"].split("::")[-1], row["access"], shared
        counts = row["requests"], row["lanes"], row["bank_passes" if shared else "sectors"]
        sums[key] = [a + b for a, b in zip(sums.get(key, (0, 0, 0)), counts)]
    lines = [f"  {'array':<14} {'access':<7} requests  lanes per request  per request"]
    for (array, access, shared), (requests, lanes, touched) in sorted(sums.items()):
        unit = "passes over the banks of shared memory" if shared else "sectors"
        counts = f"{requests:>8}  {lanes / requests:>17.1f}  {touched / requests:.2f} {unit}"
        lines.append(f"  {array:<14} {access:<7} {counts}")
    return lines


def main():
    if len(sys.argv) not in (2, 3):
        sys.exit(__doc__)
    file, number = Path(sys.argv[1]), sys.argv[2] if len(sys.argv) == 3 else "0"
    if not re.fullmatch(r"\d{1,4}", number) or int(number) > 1024:
        sys.exit("error: give a number from 1 to 1024")
    one = Compiled(file)
    try:
        if is_program(file):
            sys.exit(run_program(file.resolve(), number).returncode)
        solved, said = one.judge(int(number))
    except (NotJudged, OSError) as error:
        print(f"error: {error}", file=sys.stderr)
        sys.exit(2)
    print(said)
    sys.exit(0 if solved else 1)


if __name__ == "__main__":
    main()
