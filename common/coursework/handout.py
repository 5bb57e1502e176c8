#!/usr/bin/env python3
"""Writes what students get of a step: handout.py STEP [OUTPUT]

OUTPUT/STEP, which must not be there yet, and OUTPUT/STEP.tar.gz hold the step with its kernels'
bodies taken out, all that is needed to build, test and check it, and a README.md that is the
assignment. OUTPUT is handouts/ unless it is given.
"""

import argparse
import re
import shutil
import subprocess
import sys
from pathlib import Path

from exercises import GIVEN, ROOT, ExerciseError, given_files, read_step
from exercises import sources_of, split, taken_out

# Of common/, what a step needs. Tests of the repository itself are not among it.
COMMON = """
    build/build.mk build/stage.mk build/setup.sh build/once.py build/precompiled.hpp
    sparse/* device/* harness/* simt/*.?pp simt/missing.sh simt/include/* simt/README.md
    tests/main.cpp tests/catch.hpp tests/precompiled_tests.hpp tests/schedules.hpp
    tests/kernel_* coursework/*.?pp coursework/*.mk coursework/Makefile
    coursework/build.py coursework/check.py coursework/exercises.py coursework/times.json
    coursework/kit.py coursework/mine.py coursework/flags.py watch/watch.py
    watch/traces.py watch/tours.py watch/moments.py watch/page.* watch/*.js
    watch/README.md primer/learn.py primer/run.hpp""".split()
BESIDES = ["LICENSE", "plots/measure/record_format.py", "plots/measure/traffic.py"]

MAKEFILE = """\
# {title}. README.md is the assignment.
#
#   make check   is it right, is it safe, does it ask little of memory?
#   make test    the step's tests
#   make run     the kernels on three matrices, or on MATRIX=...
#   make watch   a page on which one watches them run, step by step, on a small matrix
#   make learn   runs make check at every save, exercise by exercise; it gives hints, too
#   make hint    the next hint for the first exercise that is not written yet, or for ARGS=exercise
.PHONY: check test run watch hint help clean learn
.DEFAULT_GOAL := check
learn:
\t@python3 common/primer/learn.py $(if $(filter 1,$(ONCE)),--once) $(ARGS)
check test run watch hint help clean:
\t@$(MAKE) --no-print-directory -C {step} $@
"""

# Behind the step's own.
STEP_MAKEFILE = """\
# A kernel that is still to be written uses nothing.
WARNINGS += -Wno-unused
"""

TEST = """\
#include "tests/catch.hpp"
#include "tests/kernel_suite.hpp"

TEST_CASE("every kernel is right on every matrix", "[{number:02}]") {{
  spmv::test::check_kernels_of_step({number}, 10);
}}
"""

# Lines that say nothing of a solution, wherever they stand. A step may have more (`given`).
IDIOMS = [
    "const int row = blockIdx.x * blockDim.x + threadIdx.x;",
    "for (int distance = 16; distance > 0; distance /= 2) {",
    "sum += __shfl_down_sync(0xffffffffu, sum, distance);",
]


PICTURE = re.compile(r"!\[([^]]*)\]\(([^)]*)\)")


# --- What goes in ---------------------------------------------------------------------------------


def files_of(step):
    """{path in the handout: text or None for a copy of the repository's file}."""
    files = {path: None for path in BESIDES}
    for pattern in COMMON:
        found = [p for p in (ROOT / "common").glob(pattern) if p.is_file()]
        if not found:
            raise ExerciseError(f"common/{pattern}: no such file")
        files.update((str(p.relative_to(ROOT)), None) for p in found)

    directory = ROOT / step.directory
    given = given_files(step, directory)
    sources = sources_of(step, directory)
    for name, text in sources.items():
        own = name.removeprefix(f"{step.directory}/")
        if own in given:
            text = given[own]
            files[f"{GIVEN.relative_to(ROOT)}/{own}"] = text
        elif taken_out(text, name):
            raise ExerciseError(f"{name} has marks, but is in no exercise")
        files[name] = text
    makefile = (directory / "Makefile").read_text(encoding="utf-8")
    files[f"{step.directory}/Makefile"] = makefile + STEP_MAKEFILE
    files[f"{step.directory}/test.cu"] = TEST.format(number=int(step.directory[:2]))
    for name in ("exercise.ini", "tour.txt"):
        files[f"{step.directory}/{name}"] = (directory / name).read_text(encoding="utf-8")
    files["README.md"] = assignment(step)
    files["Makefile"] = MAKEFILE.format(title=step.title, step=step.directory)
    files.update((picture, None) for _, picture in PICTURE.findall(files["README.md"]))
    return files


def section(step, page, heading):
    """What is under "## HEADING" of a page of the step (of "Write it": before the kernel), without the code that students write, the
    advice to write it first, links to files, and what update_readmes.py reads. Pictures are named by their place in the
    repository, and in the handout. Nothing where there is no such heading."""
    text = (ROOT / step.directory / page).read_text(encoding="utf-8")
    found = re.search(rf"(?ms)^## {heading}\n+(.*?)(?=^## |\Z)", text)
    text = found[1] if found else ""
    if heading == "Write it":  # with the head of the kernel
        text = re.split(r"(?m)^<details>|^\*\*Predict", text, maxsplit=1)[0]
    else:
        given = given_files(step, ROOT / step.directory).values()
        code = r"(?ms)^<!-- code: [^\n]*\n```cpp\n(.*?)```\n<!-- end -->\n"
        text = re.sub(code, lambda m: m[0] if any(m[1] in of for of in given) else "", text)
    text = re.sub(r"(?m)^<details><summary>.*</summary>\s*</details>\n\n?", "", text)
    text = re.sub(r"(?ms)^Write it before you read on.*?\n\n", "", text)
    text = re.sub(r"(?ms)^<!--((?!-->).)*-->\n|<!--.*?-->", "", text)
    here = (ROOT / step.directory / page).parent
    text = PICTURE.sub(lambda m: f"![{m[1]}]({(here / m[2]).resolve().relative_to(ROOT)})", text)
    return re.sub(r"(?<!!)\[([^]]+)\]\((?!http)[^)]+\)", r"\1", text).strip()


RIGHT = "right: all if it is on every matrix, else that share of half of them"
SAFE = "safe: no error of memory, no data race, right in every order, no deadlock"


def assignment(step):
    """assignment.txt, filled: what the step says, what it asks for, and the lesson's parts that give nothing away."""
    exercises, points, lesson, questions = [], [], [], []
    for number, exercise in enumerate(step.exercises, 1):
        names = ", ".join(f"`{step.directory}/{name}`" for name in exercise.files)
        hint = f"`make hint ARGS={exercise.name}` gives one hint at a time."
        exercises += [f"### Exercise {number}, {exercise.level}: {exercise.name}\n", exercise.task]
        exercises += [f"\nIn {names}, where it says `TODO`. {hint}\n"]
        points += [f"| {exercise.name} | points |", "| :--- | ---: |"]
        parts = [(RIGHT, exercise.correct), (SAFE, exercise.safe)]
        parts += [(describe(target), target.points) for target in exercise.targets]
        points += [*(f"| {part} | {of} |" for part, of in parts), ""]
    for page in step.pages:
        title = "" if page == "README.md" else f" ({Path(page).stem})"
        for heading in ("The idea", "A drawing", "Write it"):
            if text := section(step, page, heading):
                lesson += [f"## {heading}{title}", "", text, ""]
        questions += [section(step, page, "Questions"), ""]
    words = section(step, "../common/words.md", "Words")
    parts = {"exercises": exercises, "points": points, "lesson": lesson, "questions": questions}
    text = Path(__file__).with_name("assignment.txt").read_text(encoding="utf-8")
    lines = {name: "\n".join(part) for name, part in parts.items()}
    return text.format(step=step, words=words, **lines).rstrip() + "\n"


def describe(target):
    return f"{target.counter}, {target.what()}: {target.limit()} (`{target.kernel}` on `{target.matrix}`)"


# --- What must not go in --------------------------------------------------------------------------


def squeezed(line):
    """A line without comment and blanks, so that formatting hides nothing."""
    return re.sub(r"\s+", "", line.split("//")[0])


def solution_lines(step):
    """Each line that is taken out and says something -> where it stands."""
    lines = {}
    idioms = {squeezed(line) for line in [*IDIOMS, *step.given]}
    for exercise in step.exercises:
        for name in exercise.files:
            path = ROOT / step.directory / name
            parts = split(path.read_text(encoding="utf-8"), name)
            kept = {squeezed(line) for part in parts[::2] for line in part}
            for line in (line for part in parts[1::2] for line in part):
                short = squeezed(line)
                if len(short) >= 24 and short not in idioms and short not in kept:
                    lines[short] = f"{step.directory}/{name}: {line.strip()}"
    return lines


def leaks(directory, step):
    """The lines of the solution that are in a handout: (where there, where from)."""
    lines, found = solution_lines(step), []
    if not lines:
        raise ExerciseError(f"{step.directory}: nothing is taken out")
    for path in sorted(path for path in directory.rglob("*") if path.is_file()):
        text = path.read_text(encoding="utf-8", errors="replace")
        for number, line in enumerate(text.splitlines(), 1):
            place = f"{path.relative_to(directory)}:{number}"
            short = re.sub(r"\s+", "", line)  # also what is commented out
            found += [(place, lines[s]) for s in lines if s in short]
    return found


# --- Writing --------------------------------------------------------------------------------------


# The same tarball from anyone, at any time.
TAR = "tar --sort=name --mtime=@0 --owner=0 --group=0 --numeric-owner --mode=u=rwX,go=rX".split()


def write_handout(step, output):
    """Writes directory and tarball; returns the tarball's path."""
    directory = Path(output) / step.directory
    tarball = directory.with_name(step.directory + ".tar.gz")
    files = files_of(step)
    if directory.exists():  # someone may have worked there
        what = "is there, with what was written in it (make learn works there, too)"
        another = "give another place, OUTPUT=directory, or remove it"
        raise ExerciseError(f"{directory} {what}: {another}")
    for name, text in files.items():
        path = directory / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if text is None:
            shutil.copy(ROOT / name, path)
        else:
            path.write_text(text, encoding="utf-8")
    found = leaks(directory, step)
    if found:
        shutil.rmtree(directory)
        lines = (f"\n  {place} has {line}" for place, line in found)
        raise ExerciseError("the handout would give the solution away:" + "".join(lines))
    words = ["-C", directory.parent, "-I", "gzip -n", "-cf", tarball.resolve(), directory.name]
    subprocess.run([*TAR, *words], check=True)
    return tarball


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("step")
    parser.add_argument("output", nargs="?", type=Path, default=ROOT / "handouts")
    options = parser.parse_args()
    try:
        step = read_step(ROOT / options.step.strip("/"))
        tarball = write_handout(step, options.output)
    except (ExerciseError, OSError, subprocess.CalledProcessError) as error:
        sys.exit(f"error: {error}")
    size = tarball.stat().st_size / 1e3
    print(f"{tarball.parent / step.directory}/ and {tarball} ({size:.0f} kB)")
    for exercise in step.exercises:
        print(f"  {exercise.level:8} {exercise.name}: {', '.join(exercise.files)}")


if __name__ == "__main__":
    main()
