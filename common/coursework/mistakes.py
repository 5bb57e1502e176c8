#!/usr/bin/env python3
"""What students get wrong, and what cheats try: mistakes.py DIRECTORY [STEP...]   writes a submission for each mistake
                           mistakes.py --table [STEP...]      grades them, and writes the table of mistakes.md

All of them stand in cases.diff, each an edit of the right kernel of an exercise. A mistake costs more than half of the
points for what it violates ("right", "safe", or a target by its name), and the message names it. Cheats, and right
submissions in many styles, stand in the same list, and in neither of the two outputs above.
"""

import csv
import re
import subprocess
import sys
import tempfile
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path

from exercises import ROOT, read_step, without_marks, write_files

OUTSIDE = r"(reads|writes|updates) ('\w+'\[|\d+ bytes)"
FLAGGED, ALL, BROKEN = "a flag", "all", "linking"  # what a student would not write by mistake
TOGETHER, ALONE = "honest", "honest alone"
# Where what stands behind "@ place" comes.
PLACES = {
    "@ head": r"\A",
    "@ top": r"(?<=namespace spmv {\n)",
    "@ begin": r"(?=  const int row_begin = )",
    "@ sum": r"(?=  if \(lane == 0\) y\[row\])",
}


@dataclass(frozen=True)
class Case:
    name: str
    file: str
    violates: str
    says: str  # an expression that matches what the check says
    edits: tuple  # (old, or a place; new)

    def apply(self, text):
        return edited(text, self.file, self.edits)


def edited(text, file, edits):
    inserted = defaultdict(str)
    for old, new in edits:
        if old == "@ body":
            before, _, after = re.split(r" *// exercise: (?:begin|end)\n", text)
            text = before + new + "\n" + after
        elif old in PLACES:
            inserted[old] += new + "\n"
        elif old in text:
            text = text.replace(old, new, 1)
        else:
            raise AssertionError(f"{file} has no '{old}' any more: mend cases.diff")
    for place, code in inserted.items():
        text, count = re.subn(PLACES[place], lambda _: code, text, count=1)
        assert count, f"{file} has no place '{place}'"
    return text


def read_cases():
    """{step: [Case]} of cases.diff."""
    text = Path(__file__).with_name("cases.diff").read_text(encoding="utf-8")
    found = defaultdict(list)
    for section in re.split(r"^--- ", text, flags=re.MULTILINE)[1:]:
        place, *cases = section.strip().split("\n\n")
        step, _, file = place.partition("/")
        for case in cases:
            heading, says, body = re.match(r"(.*)\n(?:says: (.*)\n)?((?s:.*))", case).groups("")
            groups = re.findall(r"((?:^-.*\n)+|^@ \w+\n)((?:^\+.*\n)+)", f"{body}\n", re.MULTILINE)
            parts = (re.sub(r"(?m)^[-+]", "", part[:-1]) for group in groups for part in group)
            long = (part.replace("LONG_NAME", "b" * 30000) for part in parts)
            edits = tuple(zip(long, long))
            kind, name = heading.split(": ", 1)
            found[step].append(Case(name, file, kind, says.replace("OUTSIDE", OUTSIDE), edits))
    return dict(found)


CASES = read_cases()
FILES = CASES.pop("flags")  # of their own: what flags.py says of them
MISTAKES = {
    step: [c for c in cases if c.violates not in (TOGETHER, ALONE)] for step, cases in CASES.items()
}


def is_mistake(case):
    """Whether a student would write it without wanting to."""
    return case.violates not in (FLAGGED, ALL, BROKEN)


def slug(case):
    return re.sub(r"\W+", "_", f"{Path(case.file).stem} {case.name}").strip("_")


def right(step, file):
    return without_marks((ROOT / step / file).read_text(encoding="utf-8"))


def write_mistake(mistake, step, directory):
    """A submission with the exercise's files, one of them with the mistake."""
    exercise = next(e for e in step.exercises if mistake.file in e.files)
    texts = {name: right(step.directory, name) for name in exercise.files}
    texts[mistake.file] = mistake.apply(texts[mistake.file])
    files = {Path(name).name: text for name, text in texts.items()}
    write_files(Path(directory) / slug(mistake), files)
    return exercise


def honest(step):
    """{name: {file: text}}: right submissions to a step, one with all that can stand together."""
    found, together = {}, {}
    for case in CASES[step]:
        if case.violates == ALONE:
            raw = (ROOT / step / case.file).read_text(encoding="utf-8")
            found[slug(case)] = {case.file: without_marks(case.apply(raw))}
        elif case.violates == TOGETHER:
            together.setdefault(case.file, []).extend(case.edits)
    for file, edits in together.items():
        found.setdefault("honest", {})[file] = edited(right(step, file), file, edits)
    return found


def read_grades(directory):
    """{student: row of grades.csv}."""
    with open(directory / "grades.csv", newline="", encoding="utf-8") as file:
        return {row["student"]: row for row in csv.DictReader(file)}


def judged(exercises, grades):
    """{mistake: (points for what it violates, of how many, the student's page)}, by a directory of grades. exercises: {mistake:
    its exercise}."""
    rows, found = read_grades(grades), {}
    for mistake, exercise in exercises.items():
        row, column = rows[slug(mistake)], f"{exercise.name} {mistake.violates}"
        if column in row:
            points, of_points = int(row[column]), int(row[f"{column} of"])
        else:
            target = next(t for t in exercise.targets if t.name == mistake.violates)
            missed = re.search(rf"missed [\w, ]*\b{target.name}\b", row["remark"])
            counted = int(row[f"{exercise.name} targets"]) > 0
            points, of_points = target.points if counted and not missed else 0, target.points
        page = (grades / f"{slug(mistake)[:80]}.txt").read_text(encoding="utf-8")
        found[mistake] = points, of_points, page
    return found


def grade_step(name, directory, *arguments, cheats=False):
    """The same of all mistakes of a step (or nothing of what cheats try), graded in `directory`."""
    step = read_step(ROOT / name)
    submissions, grades = f"{directory}/submissions", f"{directory}/grades"
    chosen = [mistake for mistake in MISTAKES[name] if is_mistake(mistake) != cheats]
    exercises = {mistake: write_mistake(mistake, step, submissions) for mistake in chosen}
    grade = [sys.executable, ROOT / "common/coursework/grade.py", name, submissions]
    command = [*grade, "--output", grades, *arguments]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    return {} if cheats else judged(exercises, Path(grades))


def message(mistake, page):
    """The line of a page that names the mistake."""

    def in_one_line(sentences):
        return re.sub(r"\.\n +(\w)", lambda first: "; " + first[1].lower(), sentences[0])

    page = re.sub(r"UNSAFE .*(?:\n {11}\S.*)*", in_one_line, page)
    naming = re.compile(r"\s+(WRONG|UNSAFE|MISSED)|    \S.*<-- wrong|\s+Look at")
    lines = [line.strip() for line in page.splitlines() if naming.match(line)]
    order = {"safe": "UNSAFE", "right": "WRONG"}.get(mistake.violates, "MISSED")
    chosen = next((line for line in lines if line.startswith(order)), lines[0] if lines else "")
    if order == "WRONG":
        looks, again = r"It looks like this: (.*)", r"(The first product is right, .*)"
        for expression in (looks, again, r"UNSAFE +(.*)", r"(row \d+ \(.*)"):
            if found := re.search(expression, page):
                return found[1]
    return re.sub(r"^\w+ +", "", chosen)


# A report of a race that lost an update: only what the table shows of it stays.
LOST = r"^\w+ at (\S+), block.*?thread \(.*?\): (race: \w+ \S+), which .*?; with the lanes of the warp in lockstep, "


def table(names, arguments):
    lines = ["| step | mistake | points for | what the check says |", "| :--- " * 4 + "|"]
    for name in names:
        with tempfile.TemporaryDirectory() as scratch:
            for mistake, (points, of_points, page) in grade_step(name, scratch, *arguments).items():
                got = f"{mistake.violates}: {points} of {of_points}"
                if 2 * points >= of_points or not re.search(mistake.says, page):
                    print(f"{name}: {slug(mistake)}: {got}\n{page}", file=sys.stderr)
                text = re.sub(LOST, r"\1: \2; in lockstep, ", message(mistake, page))
                text = text.replace("|", "\\|")[: 220 if "; in lockstep, " in text else 150]
                lines.append(f"| {name[:2]} {mistake.file} | {mistake.name} | {got} | `{text}` |")
    return "\n".join(lines)


def main():
    arguments = sys.argv[1:]
    if not arguments:
        sys.exit(__doc__)
    asked = arguments[1:]
    names = [n for n in MISTAKES if not asked or n[:2] in asked or n in asked]
    if arguments[0] == "--table":
        page = ROOT / "common/coursework/mistakes.md"
        between = re.compile(r"(?<=<!-- mistakes -->\n).*?(?=<!-- end -->)", re.DOTALL)
        text = page.read_text(encoding="utf-8")
        rows, done = table(names, ["--seed", "7"]).split("\n"), {name[:2] for name in names}
        others = between.search(text)[0].splitlines()[2:]
        others = [row for row in others if row[2:4] not in done]
        rows[2:] = sorted(rows[2:] + others, key=lambda row: row[2:4])
        page.write_text(between.sub(lambda _: "\n".join(rows) + "\n", text), encoding="utf-8")
        return
    count = 0
    for name in names:
        for mistake in filter(is_mistake, MISTAKES[name]):
            write_mistake(mistake, read_step(ROOT / name), Path(arguments[0]) / name)
            count += 1
    print(f"{count} submissions in {arguments[0]}")


if __name__ == "__main__":
    main()
