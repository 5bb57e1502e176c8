#!/usr/bin/env python3
"""Grades what students hand in.

    grade.py STEP SUBMISSIONS [--output DIR] [--seed N] [--strict] [--trusted]

SUBMISSIONS is a directory with a directory, a tarball or a zip file for each student
(submissions.py). Of each the kernels of the step's exercises are taken, by their names, and nothing
else. They are compiled and looked at (build.py, flags.py) in a sandbox (sandbox.py); the program that
comes out runs in another one, and is asked for products by the judge (judge.cpp), which is not in it.
Written to DIR (build/grades/STEP): grades.csv, and a page for each. Flags cost no points; who has some stands
first, and --strict withholds the points for safety and targets until a person has looked.

Exit status: 0, or 1 if something could not be graded, which is said.
"""

import argparse
import csv
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

import kit
from check import LIMIT_CPU_S, Result, build_command, explain, explain_flags, judge, lay_out
from check import not_run, points_line, read_build
from exercises import ROOT, TODO, ExerciseError, NotJudged, given_files, read_step, readable
from exercises import sources_of, without_marks, write_files
from sandbox import Limits, Sandbox
from submissions import Unreadable, file_name, printable, read_submission, submissions_in

RUN_LIMITS = Limits(seconds=LIMIT_CPU_S)
BUILD_LIMITS = Limits(seconds=20, bytes=2 << 30, output=256 << 20)  # it takes a second or two


@dataclass
class Grade:
    student: str
    remark: str = ""  # why nothing could be run
    graded: bool = True
    results: list = field(default_factory=list)  # one for each exercise, or none
    flags: list = field(default_factory=list)  # texts: what a person should look at
    files: dict = field(default_factory=dict)  # {name: bytes} of what was handed in

    def points(self, exercise):
        """(right, safe, targets) of one exercise."""
        found = next((r for r in self.results if r.exercise.name == exercise.name), None)
        return found.points() if found else (0, 0, 0)

    def total(self):
        return sum(sum(result.points()) for result in self.results)


class Grader:
    def __init__(self, step, kit, copy, sandbox, seed, strict=False):
        """copy: of the kit, that the sandbox's user may read, or None where there is no sandbox."""
        self.step, self.kit, self.copy, self.sandbox = step, kit, copy, sandbox
        self.seed, self.strict = seed, strict
        self.given = given_files(step, ROOT / step.directory)

    # --- Places

    def mounts(self, *more):
        """What a sandbox sees of the repository: the kit, at its own path, and no step."""
        if self.copy is None:
            return []
        own = [(self.copy / name, ROOT / name, False) for name in ("common", "build")]
        return [*own, *((path, path, False) for path in visible()), *more]

    def build(self, files, scratch):
        """Compiles the step as it was handed out, with a student's files in it, in scratch/out: (flags, broken, whether
        there is a runner), or None if that takes too much."""
        course, out = scratch / "course", scratch / "out"
        lay_out(self.step, ROOT / self.step.directory, course, {**self.given, **files})
        out.mkdir()
        scratch.chmod(0o755)
        self.sandbox.own(course)
        self.sandbox.own(out)
        command = [python(), *build_command(self.step, self.kit, course, out)]
        mounts = self.mounts((course, course, False), (out, out, True))
        status, text, errors = self.sandbox.run(command, mounts, BUILD_LIMITS)
        if status is None or status in (-24, -9):
            return None
        if status != 0:
            last = (errors.strip().splitlines() or [""])[-1]
            raise NotJudged(f"the build ended with status {status}: {last}")
        return read_build(text)

    # --- One submission

    def grade(self, student, path):
        """A Grade, whatever happens: a failure is said, and is no grade."""
        files = {}
        try:
            files = read_submission(path, self.step)
            if not files:
                wanted = ", ".join(self.step.files())
                raise Unreadable(f"none of the exercises' files is in it: {wanted}")
            with tempfile.TemporaryDirectory("", "grade-", ignore_cleanup_errors=True) as scratch:
                return self.build_and_run(student, files, Path(scratch))
        except Unreadable as error:
            why = f"it cannot be read: {error}"
        except NotJudged as error:
            why = printable(str(error))
        except Exception as error:  # one submission's trouble is no other's
            why = f"{type(error).__name__}: {printable(str(error))}"
        return Grade(student, f"not graded: {why}", graded=False, files=files)

    def build_and_run(self, student, files, scratch):
        texts, unread = readable(files)
        built = self.build(texts, scratch)
        if built is None:
            return Grade(student, "compiling it took too long, or too much memory", files=files)
        (flags, broken, _), out = built, scratch / "out"
        broken |= unread
        grade = Grade(student, flags=flags, files=files)
        mounts, seconds = self.mounts((out, out, False)), RUN_LIMITS.wall_seconds()
        runner = self.sandbox.command([out / "objects/runner"], mounts, RUN_LIMITS)
        for exercise in self.step.exercises:
            texts = [files.get(name, b"").decode("utf-8", "replace") for name in exercise.files]
            absent = any(f"{TODO} {exercise.name})" in t or not t for t in texts)
            result = not_run(exercise, broken, "not handed in" if absent else "")
            if result is None:
                program = self.kit / "judge"
                try:
                    result = judge(self.step, exercise, program, runner, self.seed, seconds)
                except NotJudged as error:
                    if not flags:
                        raise
                    # What starts without it does not start with what is flagged.
                    result = Result(exercise, missing=f"it cannot be run: {error}")
            result.withheld = self.strict and bool(flags)
            grade.results.append(result)
        return grade


# --- Reports --------------------------------------------------------------------------------------


def page(grade, step):
    """A student's feedback."""
    most = sum(exercise.points() for exercise in step.exercises)
    points = f"{grade.total()} of {most} points." if grade.graded else "Not graded."
    lines = [f"{step.title}: {grade.student}", "", points, ""]
    if grade.flags:
        lines += [explain_flags(grade.flags), ""]
    if grade.flags and grade.results and grade.results[0].withheld:
        lines += ["The points for safety and targets are withheld until then.", ""]
    if grade.remark:
        lines += [grade.remark, ""]
    for result in grade.results:
        lines += [f"{result.exercise.name}: {points_line(result)}", explain(result), ""]
    return "".join(c if c.isprintable() or c == "\n" else "?" for c in "\n".join(lines))


def remark_on(grade):
    """A few words for the table."""
    if grade.remark:
        return grade.remark
    handed_in = [result for result in grade.results if result.missing != "not handed in"]
    words = []
    for result in handed_in or grade.results:
        missed = [m.target.name for m in result.targets if result.counts() and not m.met()]
        name = result.exercise.name
        if result.missing:
            words.append(f"{name}: {result.missing}")
        elif result.unsafe():
            words.append(f"{name}: {short(result.unsafe())}")
        elif not result.all_right():
            wrong = result.tried - result.right
            words.append(f"{name}: wrong on {wrong} of {result.tried} matrices")
        elif missed:
            words.append(f"{name}: missed {', '.join(missed)}")
    if grade.flags:
        words.insert(0, f"look at it: {grade.flags[0]}")
    return printable("; ".join(words), 500)


def short(report):
    """The first line of a report, without block and thread."""
    where = r"^\w+ at (\S+:\d+), block \(.*?\), thread \(.*?\)"
    return re.sub(where, r"\1", report.splitlines()[0])


def cell(text):
    """A text for a CSV that spreadsheets will not take for a formula."""
    return "'" + text if text.startswith(("=", "+", "-", "@", "\t", "\r")) else text


def write_reports(grades, step, output):
    output.mkdir(parents=True, exist_ok=True)
    most = sum(exercise.points() for exercise in step.exercises)
    rows = []
    for grade in grades:
        points, graded = grade.total() if grade.graded else "", "yes" if grade.graded else "no"
        row = {"student": cell(grade.student), "points": points, "of": most, "graded": graded}
        for exercise in step.exercises:
            targets = sum(target.points for target in exercise.targets)
            maxima = exercise.correct, exercise.safe, targets
            for part, got, of in zip(("right", "safe", "targets"), grade.points(exercise), maxima):
                column = f"{exercise.name} {part}"
                row |= {column: got if grade.graded else "", f"{column} of": of}
        rows.append(row | {"remark": cell(remark_on(grade))})
    with open(output / "grades.csv", "w", newline="", encoding="utf-8") as file:
        table = csv.DictWriter(file, rows[0], lineterminator="\n")
        table.writeheader()
        table.writerows(rows)
    taken = set()
    for grade in grades:
        place = output / f"{file_name(grade.student, taken)}.txt"
        place.write_text(page(grade, step), encoding="utf-8")


def print_table(grades, step):
    width = min(max([len(grade.student) for grade in grades] + [7]), 40)
    names = [exercise.name for exercise in step.exercises]
    heading = f"{'student':<{width}}  points  " + "  ".join(names) + "  remark"
    print(heading + "\n" + "-" * len(heading))
    for grade in grades:
        points = [str(sum(grade.points(e))) if grade.graded else "-" for e in step.exercises]
        cells = "  ".join(f"{text:>{len(name)}}" for text, name in zip(points, names))
        total = grade.total() if grade.graded else "-"
        student, remark = printable(grade.student, width), printable(remark_on(grade), 100)
        print(f"{student:<{width}}  {total:>6}  {cells}  {remark}")


SIMILAR = 0.8  # share of a file that stands in another: more is shown
MOST_COMPARED = 1 << 16  # bytes of a file that is compared
SECONDS_COMPARED = 60, 2  # for the report, and for each submission more


def report_similar(grades, grader, output):
    """Writes OUTPUT/similar.html: whose files are alike, or like the step's own, by copydetect. Returns a line to print."""
    step, taken = grader.step, set()
    sources = sources_of(step, ROOT / step.directory)
    files = {"given": grader.given, "reference": {}}
    for name in grader.given:
        files["reference"][name] = without_marks(sources[f"{step.directory}/{name}"])
    large = []
    for grade in grades:
        small = {name: d for name, d in grade.files.items() if len(d) <= MOST_COMPARED}
        large += [grade.student] * (len(small) < len(grade.files))
        texts = {name: data.decode("utf-8", "replace") for name, data in small.items()}
        files[f"submissions/{file_name(grade.student, taken)}"] = texts
    limit = SECONDS_COMPARED[0] + SECONDS_COMPARED[1] * len(grades)
    page = (output / "similar.html").resolve()
    words = "-m copydetect -t submissions -r submissions reference -b given -e cpp -s -a".split()
    command = [ROOT / "common/build/python.sh", ROOT / "common/coursework/requirements.txt", *words]
    command += ["-d", str(SIMILAR), "-O", page]
    environment, why = {**os.environ, "OMP_NUM_THREADS": "1"}, ""
    with tempfile.TemporaryDirectory(prefix="similar-") as scratch:
        for place, texts in files.items():
            texts = {Path(name).with_suffix(".cpp"): text for name, text in texts.items()}
            write_files(f"{scratch}/{place}", texts)
        how = {"cwd": scratch, "capture_output": True, "text": True, "env": environment}
        try:
            done = subprocess.run(command, timeout=limit, **how)
            if done.returncode != 0:
                why = (done.stderr.strip().splitlines() or ["it failed"])[-1]
        except subprocess.TimeoutExpired:
            why = f"copydetect took more than {limit} s"
    if why:
        return f"not looked for: similar submissions ({printable(why)})"
    share = f"files of which more than {SIMILAR:.0%} is in another, or in the step's own"
    left_out = f"; not compared, more than {MOST_COMPARED >> 10} KiB: {printable(', '.join(large))}"
    return f"{output}/similar.html: {share}, by copydetect{left_out * bool(large)}"


# --- The kit --------------------------------------------------------------------------------------


def python():
    """An interpreter that is in the sandbox, too."""
    return "/usr/bin/python3" if os.path.exists("/usr/bin/python3") else sys.executable


def visible():
    """Directories outside of /usr that the compiler, its libraries and Python are in."""
    places = {ROOT / ".deps"}
    if not Path(python()).resolve().is_relative_to("/usr"):
        places.add(Path(sys.base_prefix))
    return [p for p in places if p.exists() and not p.is_relative_to("/usr")]


def copy_kit(kit, to):
    """The parts of the kit, for a user who may not read the repository. Times are kept, since compiled
    headers are valid only for the files that they were made of."""
    private = shutil.ignore_patterns("answers.md", "__pycache__", "test*")
    shutil.copytree(ROOT / "common", to / "common", ignore=private)
    shutil.copytree(kit, to / kit.relative_to(ROOT))
    missing = kit.parent / "missing"  # headers that say what simt does not have
    shutil.copytree(missing, to / missing.relative_to(ROOT), symlinks=True)
    shutil.copy2(ROOT / "build/setup-cpu.mk", to / "build/setup-cpu.mk")
    for path in [to, *to.rglob("*")]:
        if not path.is_symlink():
            path.chmod(path.stat().st_mode | (0o555 if path.is_dir() else 0o444))


def prepare(step, sandbox, copy):
    """Builds and looks at the step as it was handed out: what is wrong with it or with the sandbox shows
    here, and not in a grade. Returns the kit."""
    place = kit.obtain()
    with tempfile.TemporaryDirectory(prefix="grade-") as scratch:
        built = Grader(step, place, None, Sandbox(trusted=True), 0).build({}, Path(scratch))
        if not built or not built[2]:
            raise NotJudged("the step does not compile as it is handed out")
    if not sandbox.trusted:
        copy_kit(place, copy)
    return place


# --- main -----------------------------------------------------------------------------------------


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("step")
    parser.add_argument("submissions", type=Path)
    parser.add_argument("--output", type=Path)
    parser.add_argument("--seed", type=int, default=20120)
    parser.add_argument("--trusted", action="store_true", help="without a sandbox")
    strict = "withhold points that a flag puts in doubt"
    parser.add_argument("--strict", action="store_true", help=strict)
    options = parser.parse_args()
    begin = time.monotonic()
    default = os.path.relpath(ROOT / "build/grades" / options.step.strip("/"))
    output = options.output or Path(default)
    try:
        step = read_step(ROOT / options.step.strip("/"))
        if not options.submissions.is_dir():
            raise ExerciseError(f"{options.submissions} is no directory of submissions")
        found, passed_over = submissions_in(options.submissions, step)
        if not found:
            none = "holds no directory, no tarball and no zip file"
            raise ExerciseError(f"{options.submissions} {none}")
        sandbox = Sandbox(options.trusted)
        with tempfile.TemporaryDirectory(prefix="kit-") as copy:
            place = prepare(step, sandbox, Path(copy))
            copied = None if sandbox.trusted else Path(copy)
            grader = Grader(step, place, copied, sandbox, options.seed, options.strict)
            with ThreadPoolExecutor(os.cpu_count()) as pool:
                grades = list(pool.map(lambda one: grader.grade(*one), found))
        grades.sort(key=lambda grade: not grade.flags)
        write_reports(grades, step, output)
        similar = report_similar(grades, grader, output)
    except (ExerciseError, NotJudged, OSError) as error:
        sys.exit(f"error: {error}")
    print_table(grades, step)
    if passed_over:
        names = printable(", ".join(passed_over), 500)
        print(f"\npassed over, no directory, tarball or zip file: {names}")
    print(f"\n{output}/grades.csv, and a page for each student beside it\n{similar}")
    minutes, seconds = divmod(round(time.monotonic() - begin), 60)
    print(f"{len(grades)} submissions in {minutes} min {seconds} s", file=sys.stderr)
    failed = [grade.student for grade in grades if not grade.graded]
    if failed:
        sys.exit(f"error: not graded: {printable(', '.join(failed), 500)}")


if __name__ == "__main__":
    main()
