#!/usr/bin/env python3
"""Grades what students hand in.

    grade.py STEP SUBMISSIONS [--output DIR] [--seed N] [--jobs N] [--trusted]

SUBMISSIONS is a directory with a directory, a tarball or a zip file for each student. Of each the
kernels of the step's exercises are taken, by their names, and nothing else: harness, tests and seeds
are those of this repository. Each is compiled and run in a clean copy of the handout, in a sandbox
(sandbox.py), with the points of the step's exercise.ini. Written to DIR (build/grades/STEP):
grades.csv, and a page STUDENT.md for each. `make grade` has built what does not change.
"""

import argparse
import csv
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

from check import DEVICE, Ending, Result, abilities, explain, judge, read_lines, symbols
from exercises import ROOT, TODO, ExerciseError, read_step
from handout import write_handout
from sandbox import Limits, Sandbox, SandboxError

BACKEND = "cpu"  # the one that counts, and that every machine has
LARGEST_FILE = 1 << 20
BUILD_LIMITS = Limits(seconds=120, output=256 << 20)
RUN_LIMITS = Limits(seconds=60)


# --- Submissions ----------------------------------------------------------------------------------


def best(paths, step, name):
    """Of the paths that end in `name` the one to take: in a directory of the step's name, else the
    shortest."""
    found = [path for path in paths if Path(path).name == name]
    inside = [path for path in found if Path(path).parent.name == step.directory]
    return min(inside or found, key=lambda path: (len(Path(path).parts), str(path)), default=None)


def read_submission(path, step):
    """{name: bytes} of the exercises' files that are there. Nothing is unpacked to disk, no link is
    followed."""
    names = [name for exercise in step.exercises for name in exercise.files]
    files = {}
    if path.is_dir():
        paths = [
            Path(top) / name
            for top, _, members in os.walk(path)
            for name in members
            if not (Path(top) / name).is_symlink()
        ]
        for name in names:
            found = best(paths, step, name)
            if found and found.is_file() and found.stat().st_size <= LARGEST_FILE:
                files[name] = found.read_bytes()
        return files
    if path.suffix == ".zip":
        with zipfile.ZipFile(path) as archive:
            members = {member.filename: member for member in archive.infolist() if not member.is_dir()}
            for name in names:
                found = best(members, step, name)
                if found and members[found].file_size <= LARGEST_FILE:
                    files[name] = archive.read(found)
        return files
    with tarfile.open(path) as tar:
        members = {member.name: member for member in tar if member.isfile()}
        for name in names:
            found = best(members, step, name)
            if found and members[found].size <= LARGEST_FILE:
                files[name] = tar.extractfile(members[found]).read()
    return files


ARCHIVE = re.compile(r"\.(tar(\.\w+)?|tgz|zip)$")


def submissions_in(directory):
    """((student, path) of each, sorted; the names of what is passed over, since it is none)."""
    found, passed_over = {}, []
    for path in sorted(p for p in directory.iterdir() if not p.name.startswith(".")):
        if path.is_dir() or ARCHIVE.search(path.name):
            student = path.name if path.is_dir() else ARCHIVE.sub("", path.name)
            found[path.name if student in found else student] = path
        else:
            passed_over.append(path.name)
    return list(found.items()), passed_over


# --- What a kernel may call -----------------------------------------------------------------------

# What the kernels' object file calls is compared with what the right one calls.
# What an object may define for all others: templates and inline functions of these.
DEFINED = re.compile(r"(void |\w+ )*(const )?(spmv::|std::|simt::|cuda|guard variable|typeinfo|vtable|DW\.ref|__gnu_cxx::)")


def forbidden(object_file, reference):
    """Functions that an object calls, or puts in place of the harness's, and that no kernel may."""
    called, defined = symbols(object_file)
    right_called, right_defined = reference
    words = {name for name in called - right_called if not DEVICE.match(name)}
    words |= {name for name in defined - right_defined if not DEFINED.match(name)}
    return sorted(name.split("(")[0] for name in words)


def assembly(files):
    """Where a file has what its object does not show: instructions, or words that hide them."""
    for name, data in files.items():
        found = re.search(r"\b(asm|__asm|__asm__)\b|##|%:%:|\\u", data.decode("utf-8", "replace"))
        if found:
            return f"{name} has '{found[0]}'"
    return None


# --- Grading --------------------------------------------------------------------------------------


@dataclass
class Grade:
    student: str
    remark: str = ""  # why nothing could be run
    log: str = ""  # of the compiler
    results: list = field(default_factory=list)
    points: dict = field(default_factory=dict)  # exercise -> (correct, safe, targets)

    def total(self):
        return sum(sum(points) for points in self.points.values())


def points_of(result):
    """(correct, safe, targets): what the rubric gives for a Result."""
    exercise = result.exercise
    correct = exercise.correct * result.right // result.tried if result.tried else 0
    if not result.counts():
        return correct, 0, 0
    safe = 0 if result.unsafe() else exercise.safe
    return correct, safe, sum(target.points for target, value, _ in result.targets if target.met(value))


class Grader:
    def __init__(self, step, kit, reference, sandbox, seed, profile, visible=()):
        """kit: the handout with all that does not change built. reference: the symbols() of the
        objects of the right kernels."""
        self.step, self.kit, self.reference = step, kit, reference
        self.sandbox, self.seed, self.profile, self.visible = sandbox, seed, profile, visible

    def grade(self, student, path):
        grade = Grade(student)
        for exercise in self.step.exercises:
            grade.points[exercise.name] = (0, 0, 0)
        try:
            files = read_submission(path, self.step)
        except Exception as error:  # archives can be broken in many ways
            grade.remark = f"cannot be read: {str(error).splitlines()[0].rstrip(':')}"
            return grade
        if not files:
            names = ", ".join(name for exercise in self.step.exercises for name in exercise.files)
            grade.remark = f"none of the exercises' files is in it: {names}"
        elif assembly(files):
            grade.remark = f"{assembly(files)}: no assembly, and nothing that hides words"
        else:
            with tempfile.TemporaryDirectory(prefix="grade-") as scratch:
                self.build_and_run(grade, files, Path(scratch))
        return grade

    def build_and_run(self, grade, files, scratch):
        course, out = scratch / "course", scratch / "out"
        shutil.copytree(self.kit, course)
        out.mkdir()
        for name, data in files.items():
            (course / self.step.directory / name).write_bytes(data)
        scratch.chmod(0o755)
        self.sandbox.own(course)
        self.sandbox.own(out)
        status, log = self.sandbox.run(
            ["make", "-C", f"/course/{self.step.directory}", f"BACKEND={BACKEND}", "build-check"],
            course, writable=True, visible=self.visible, limits=BUILD_LIMITS,
        )  # fmt: skip
        log = re.sub(r"^make.*\n|^  (compile|link) .*\n", "", log, flags=re.MULTILINE)
        built = course / "build" / BACKEND / self.step.directory
        if status != 0:
            grade.remark = "it does not compile" if status else "compiling it took too long"
            grade.log = "\n".join(log.splitlines()[:40])
            return
        words = [w for path in sorted(built.glob("*.o")) for w in forbidden(path, self.reference[path.name])]
        if words:
            grade.remark = f"a kernel cannot call functions of the host, as nvcc would say: {', '.join(words[:5])}"
            return

        def run(arguments, limit_s):
            results = out / "results.jsonl"
            results.unlink(missing_ok=True)
            status, text = self.sandbox.run(
                # What a kernel prints counts for nothing, and against no limit, as in `make check`.
                ["sh", "-c", 'exec "$@" >/dev/null', "sh",
                 f"/course/build/{BACKEND}/{self.step.directory}/check", *arguments, "--json", "/out/results.jsonl"],
                course, out=out, visible=self.visible, limits=RUN_LIMITS,
            )  # fmt: skip
            lines = read_lines(results.read_text(errors="replace")) if results.exists() else []
            return Ending(status, lines, text[-2000:])

        for exercise in self.step.exercises:
            texts = [files.get(name, b"").decode("utf-8", "replace") for name in exercise.files]
            if any(f"{TODO} {exercise.name})" in text or not text for text in texts):
                grade.results.append(Result(exercise, ended="not handed in"))
                continue
            result = judge(self.step, exercise, run, self.seed, every=True, profile=self.profile)
            grade.results.append(result)
            grade.points[exercise.name] = points_of(result)


# --- Reports --------------------------------------------------------------------------------------


def page(grade, step):
    """A student's feedback, in Markdown."""
    most = sum(exercise.points() for exercise in step.exercises)
    lines = [f"# {step.title}: {grade.student}", "", f"**{grade.total()} of {most} points.**", ""]
    if grade.remark:
        lines += [f"Nothing was run: {grade.remark}.", ""]
        if grade.log:
            lines += ["```text", grade.log, "```", ""]
    for result in grade.results:
        exercise = result.exercise
        correct, safe, targets = grade.points[exercise.name]
        of_targets = exercise.points() - exercise.correct - exercise.safe
        lines += [
            f"## {exercise.name}", "",
            f"Right: {correct} of {exercise.correct} ({result.right} of {result.tried} matrices). "
            f"Safe: {safe} of {exercise.safe}. Targets: {targets} of {of_targets}.", "",
        ]  # fmt: skip
        text = "  not handed in, or still with its TODO" if result.ended == "not handed in" else explain(result)
        lines += ["```text", text, "```", ""]
    return "\n".join(lines)


def remark_on(grade):
    """A few words for the table."""
    if grade.remark:
        return grade.remark
    handed_in = [result for result in grade.results if result.ended != "not handed in"]
    words = []
    for result in handed_in or grade.results:
        missed = [t.name for t, v, _ in result.targets if result.counts() and not t.met(v)]
        if result.ended == "not handed in":
            words.append(f"{result.exercise.name}: not handed in")
        elif result.unsafe():
            report = result.unsafe().splitlines()[0]
            report = re.sub(r"^\w+ at (\S+:\d+), block \(.*?\), thread \(.*?\)", r"\1", report)
            words.append(f"{result.exercise.name}: {report}")
        elif not result.all_right():
            words.append(f"{result.exercise.name}: wrong on {result.tried - result.right} of {result.tried} matrices")
        elif missed:
            words.append(f"{result.exercise.name}: missed {', '.join(missed)}")
    return "; ".join(words)


def write_reports(grades, step, output):
    output.mkdir(parents=True, exist_ok=True)
    names = [exercise.name for exercise in step.exercises]
    with open(output / "grades.csv", "w", newline="", encoding="utf-8") as file:
        table = csv.writer(file, lineterminator="\n")
        table.writerow(["student", "points", "of", *names, "remark"])
        most = sum(exercise.points() for exercise in step.exercises)
        for grade in grades:
            points = [sum(grade.points[name]) for name in names]
            table.writerow([grade.student, grade.total(), most, *points, remark_on(grade)])
    for grade in grades:
        (output / f"{grade.student}.md").write_text(page(grade, step), encoding="utf-8")


def print_table(grades, step):
    width = max([len(grade.student) for grade in grades] + [7])
    names = [exercise.name for exercise in step.exercises]
    heading = f"{'student':<{width}}  points  " + "  ".join(names) + "  remark"
    print(heading + "\n" + "-" * len(heading))
    for grade in grades:
        cells = "  ".join(f"{sum(grade.points[name]):>{len(name)}}" for name in names)
        remark = remark_on(grade)
        remark = remark if len(remark) <= 100 else remark[:97] + "..."
        print(f"{grade.student:<{width}}  {grade.total():>6}  {cells}  {remark}")


# --- The kit --------------------------------------------------------------------------------------


def make_kit(step, directory):
    """A handout with the repository's objects, which are newer than their sources: make has nothing
    to do but the step. Returns the kit, and the symbols of each object of the right kernels."""
    built = ROOT / "build" / BACKEND
    if not (built / step.directory / "check").exists():
        raise ExerciseError(f"{built / step.directory}/check is not there; make grade builds it")
    write_handout(step, directory)
    kit = directory / step.directory
    for path in (built / "common").rglob("*.o"):
        place = kit / path.relative_to(ROOT)
        place.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(path, place)
    shutil.copyfile(ROOT / f"build/setup-{BACKEND}.mk", kit / f"build/setup-{BACKEND}.mk")
    return kit, {path.name: symbols(path) for path in (built / step.directory).glob("*.o")}


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("step")
    parser.add_argument("submissions", type=Path)
    parser.add_argument("--output", type=Path)
    parser.add_argument("--seed", type=int, default=20120)
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--trusted", action="store_true", help="without a sandbox")
    options = parser.parse_args()
    try:
        step = read_step(ROOT / options.step.strip("/"))
        if not options.submissions.is_dir():
            raise ExerciseError(f"{options.submissions} is no directory of submissions")
        found, passed_over = submissions_in(options.submissions)
        if not found:
            raise ExerciseError(f"{options.submissions} holds no directory, no tarball and no zip file")
        sandbox = Sandbox(options.trusted)
        with tempfile.TemporaryDirectory(prefix="kit-") as directory:
            kit, reference = make_kit(step, Path(directory))
            _, profile = abilities(ROOT / "build" / BACKEND / step.directory / "check")
            grader = Grader(step, kit, reference, sandbox, options.seed, profile, [ROOT / ".deps"])
            with ThreadPoolExecutor(max(options.jobs, 1)) as pool:
                grades = list(pool.map(lambda one: grader.grade(*one), found))
    except (ExerciseError, SandboxError, OSError) as error:
        sys.exit(f"error: {error}")
    output = options.output or ROOT / "build" / "grades" / step.directory
    write_reports(grades, step, output)
    print_table(grades, step)
    if passed_over:
        print(f"\npassed over, no directory, tarball or zip file: {', '.join(passed_over)}")
    print(f"\n{os.path.relpath(output)}/grades.csv, and a page for each student beside it")


if __name__ == "__main__":
    main()
