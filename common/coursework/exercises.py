"""Exercises: what is taken out of a step's kernels, and what is asked of those who put it back.

A kernel's source has marks, on lines of their own:

    // exercise: begin
    ...what is taken out...
    // exercise: end

and the step has an exercise.ini. Its section [step] tells of the step; every other section is an
exercise, or, named [EXERCISE: NAME], a target of one: a counter of the CPU backend with a limit.
"""

import configparser
import re
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
GIVEN = ROOT / "common/coursework/given"  # in a handout: the exercises' files as handed out
BEGIN = re.compile(r"\s*// exercise: begin\s*")
END = re.compile(r"\s*// exercise: end\s*")
TODO = "TODO (exercise"


class ExerciseError(Exception):
    """An exercise.ini or a mark that makes no sense; the text says where and why."""


class NotJudged(Exception):
    """What cannot be run or judged, which is no fault of its own; the text says why and what to do."""


@dataclass
class Target:
    """`counter` of `kernel` on `matrix`, over loads (or `access`) of `array`, is within its limit. (`busiest_warp` in the
    file: what one thread alone would meet is met by a kernel of which no warp makes more requests than that.)"""

    name: str
    kernel: str
    matrix: str
    counter: str
    array: str
    access: str
    at_most: float | None
    at_least: float | None
    points: int
    reason: str
    # Most requests of the busiest warp: an upper bound that one thread alone would meet.
    steps: int | None = None

    def met(self, value, steps=0):
        if value is None or self.steps is not None and steps > self.steps:
            return False
        return value <= self.at_most if self.at_most is not None else value >= self.at_least

    def what(self):
        verbs = {"load": "loads of", "store": "stores to", "atomic": "atomics on"}
        return f"{verbs[self.access]} {self.array}"

    def limit(self):
        if self.at_most is not None:
            return f"at most {self.at_most:g}"
        return f"at least {self.at_least:g}"


@dataclass
class Exercise:
    name: str
    files: list
    kernels: list  # names or patterns, as --kernel takes them
    also: list  # other instances of the same source, that are tried on few matrices
    finite_x: bool  # the format stores zeros of its own, whose products with infinity are NaN
    level: str
    task: str
    hints: list  # one text for each hole
    correct: int  # points
    safe: int
    targets: list = field(default_factory=list)

    def points(self):
        return self.correct + self.safe + sum(target.points for target in self.targets)


@dataclass
class Step:
    directory: str
    title: str
    goal: str
    matrices: list  # that its kernels are tried on, besides those of every step
    pages: list  # of the lesson: ideas, drawings and questions of each go into the handout
    left_out: list  # files that a handout does without
    given: list  # lines that are taken out and stand elsewhere too, since they give nothing away
    exercises: list

    def files(self):
        """Those of all exercises, by their names in the directory."""
        return [name for exercise in self.exercises for name in exercise.files]


def paragraphs(text):
    """The text of an option, without the indentation of its lines; a blank line is a single '|'."""
    lines = [line.strip() for line in text.strip().splitlines()]
    return "\n".join("" if line == "|" else line for line in lines)


def words(text):
    return text.replace(",", " ").split()


def read_target(section, kernel="", matrix=""):
    at_most, at_least = section.getfloat("at_most"), section.getfloat("at_least")
    if (at_most is None) == (at_least is None):
        raise ExerciseError(f"[{section.name}]: give at_most or at_least")
    if section["counter"] not in COUNTERS:
        raise ExerciseError(f"[{section.name}]: counter is one of {', '.join(COUNTERS)}")
    what = section["counter"], section.get("array", ""), section.get("access", "load")
    on = kernel or section["kernel"], section.get("matrix", matrix)
    reason = paragraphs(section["reason"]).replace("\n", " ")
    points, steps = section.getint("points", 0), section.getint("busiest_warp")
    name = section.name.split(": ")[1]
    return Target(name, *on, *what, at_most, at_least, points, reason, steps)


POINTS = 100  # of an exercise


def check_points(exercise, path):
    parts = [exercise.correct, exercise.safe, *(target.points for target in exercise.targets)]
    if any(part is None or part < 0 for part in parts) or sum(parts) != POINTS:
        shown = f"its points are {' + '.join(map(str, parts))}: give {POINTS} in all, none negative"
        raise ExerciseError(f"{path}: [{exercise.name}]: {shown}")


def read_step(directory):
    """The Step of a directory with an exercise.ini."""
    directory = Path(directory)
    path = directory / "exercise.ini"
    parser = configparser.ConfigParser(interpolation=None, default_section="")
    try:
        if not parser.read(path, encoding="utf-8"):
            steps = ", ".join(sorted(p.parent.name for p in ROOT.glob("*/exercise.ini")))
            some = f"steps with exercises are {steps}"
            raise ExerciseError(f"{directory.name} has no exercise.ini; {some}")
        exercises, targets = {}, []
        for name in parser.sections():
            section = parser[name]
            if name == "step":
                continue
            if ": " in name:
                targets.append((name.split(": ")[0], read_target(section)))
                continue
            hints = [paragraphs(section[key]) for key in section if key.startswith("hints")]
            lists = [words(section[key]) for key in ("files", "kernels")]
            lists.append(words(section.get("also", "")))
            about = section["level"], paragraphs(section["task"]), hints
            finite_x = section.getboolean("finite_x", False)
            points = section.getint("correct"), section.getint("safe")
            exercises[name] = Exercise(name, *lists, finite_x, *about, *points)
        for exercise, target in targets:
            exercises[exercise].targets.append(target)
        for exercise in exercises.values():
            check_points(exercise, path)
        step = parser["step"]
        matrices, given = step.get("matrices", "").split(), paragraphs(step.get("given", ""))
        lists = words(step.get("pages", "README.md")), words(step.get("left_out", ""))
        about = step["title"], paragraphs(step["goal"]), matrices, *lists, given.splitlines()
        return Step(directory.name, *about, list(exercises.values()))
    except (configparser.Error, KeyError, ValueError, TypeError) as error:
        raise ExerciseError(f"{path}: {error}") from None


# --- Holes ----------------------------------------------------------------------------------------


def split(text, name="the text"):
    """[kept, taken out, kept, taken out, ..., kept] as lists of lines, the marks in none of them."""
    parts, inside = [[]], False
    for number, line in enumerate(text.splitlines(), 1):
        if BEGIN.fullmatch(line) or END.fullmatch(line):
            if bool(BEGIN.fullmatch(line)) == inside:
                raise ExerciseError(f"{name}:{number}: a mark that begins or ends nothing")
            inside = not inside
            parts.append([])
        else:
            parts[-1].append(line)
    if inside:
        raise ExerciseError(f"{name}: '// exercise: begin' without its end")
    return parts


def without_marks(text):
    return "".join(line + "\n" for part in split(text) for line in part)


def taken_out(text, name="the text"):
    """The lines that are taken out."""
    return [line for part in split(text, name)[1::2] for line in part]


def hints_of(text):
    """(what is said at a hole, [its hints]): a hint begins with its number."""
    what, *hints = re.split(r"^\d+\. ", text, flags=re.MULTILINE)
    return what.strip(), [" ".join(hint.split()) for hint in hints]


def with_holes(text, exercise, hints, name="the text"):
    """The text with a TODO in place of what is taken out. `hints`: an iterator over the holes' hints."""
    parts = split(text, name)
    lines = list(parts[0])
    for hole, kept in zip(parts[1::2], parts[2::2]):
        code = [line for line in hole if line.strip() and not line.startswith("#")]
        indent = min(len(line) - len(line.lstrip()) for line in code)
        hint = next(hints, None)
        if hint is None:
            raise ExerciseError(f"{name}: more holes than hints in [{exercise}]")
        what, _ = hints_of(hint)
        comment = [f"{TODO} {exercise}): write this. (make hint)", *what.splitlines()]
        lines += [f"{'':{indent}}// {line}".rstrip() for line in comment]
        lines += kept
    return "".join(line + "\n" for line in lines)


# --- Files ----------------------------------------------------------------------------------------


def write_files(place, files):
    """Writes {path in `place`: text or bytes}."""
    for name, text in files.items():
        path = Path(place) / name
        path.parent.mkdir(parents=True, exist_ok=True)
        data = text if isinstance(text, bytes) else text.encode("utf-8", "surrogateescape")
        path.write_bytes(data)


def holes_of(step):
    """{file: (exercise, an iterator over its hints)}, the same iterator for all files of an exercise."""
    holes = {}
    for exercise in step.exercises:
        hints = iter(exercise.hints)
        for name in exercise.files:
            holes[name] = (exercise.name, hints)
    return holes


def source_text(path, data=None):
    """The text of a source that somebody wrote, who may have another editor: a mark in front goes, as do line ends with \\r,
    and what is not UTF-8 is taken for Windows-1252. `data`: what the file holds, if it is not there. Raises ExerciseError."""
    data = Path(path).read_bytes() if data is None else data
    if b"\0" in data:
        line = data.count(b"\n", 0, data.index(b"\0")) + 1
        what = "is UTF-16" if data[:2] in (b"\xff\xfe", b"\xfe\xff") else "has a zero byte here"
        raise ExerciseError(f"{path}:{line}: the file {what}; save it as UTF-8")
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError:
        text = data.decode("cp1252", "replace")
    return text.replace("\r\n", "\n")


def readable(files):
    """({name: text}, {name: why not}) of {name: bytes}."""
    texts, unread = {}, {}
    for name, data in files.items():
        try:
            texts[name] = source_text(name, data)
        except ExerciseError as error:
            unread[name] = str(error)
    return texts, unread


def included(path, found):
    """Adds to the set `found` the path and all that it includes of the steps, and returns it."""
    path = path.resolve()
    if path not in found and path.is_file():
        found.add(path)
        for name in re.findall(r'^#include "([^"]+)"', source_text(path), re.MULTILINE):
            included(path.parent / name, found)
    return found


def sources_of(step, directory):
    """{STEP/name: text} of what is compiled for a step, with what it includes of its folders and other steps."""
    directory, found = Path(directory).resolve(), set()
    for path in directory.iterdir():
        is_source = path.suffix in (".cuh", ".cu", ".cpp", ".hpp")
        if is_source and path.name not in step.left_out and not path.name.startswith("test"):
            included(path, found)
    files = {}
    for path in sorted(found):
        text = source_text(path)
        text = text if directory in path.parents else without_marks(text)
        files[str(path.relative_to(directory.parent))] = text
    return files


def given_files(step, directory):
    """{name: text} of the exercises' files as they are handed out."""
    if GIVEN.exists():
        return {name: (GIVEN / name).read_text(encoding="utf-8") for name in holes_of(step)}
    sources, holes = sources_of(step, directory), holes_of(step).items()
    own = f"{step.directory}/"
    return {name: with_holes(sources[own + name], *hole, name=name) for name, hole in holes}


def drawn(matrix, seed):
    """A matrix of a target for a seed: larger by up to an eighth, so that its size is not known before; with seed 1,
    that of `make check`, as it is named."""
    if seed == 1:
        return matrix
    factor = 1 + seed * 617 % 1009 / 8072  # (small seeds, too, make another size)
    larger = re.sub(r"\d{2,}", lambda match: str(round(int(match[0]) * factor)), matrix)
    return f"{larger},seed={seed % 1000 + 1}"


# --- Counters -------------------------------------------------------------------------------------


# What a target may ask of the rows of a record's "lines" that are about its array: the sum of one field, and what it is divided
# by: another, the number of nonzeros, or nothing.
COUNTERS = {
    "requests": ("requests", None),
    "sectors per request": ("sectors", "requests"),
    "lanes per request": ("lanes", "requests"),
    "lanes on one address": ("lanes", "addresses"),
    "bank passes per request": ("bank_passes", "requests"),
    "bytes per nonzero": ("sectors", "nnz"),
    "lanes per nonzero": ("lanes", "nnz"),
}
SECTOR_BYTES = 32


def counter(target, record):
    """The target's value in a record, or None where the kernel did nothing of the kind."""
    above, below = COUNTERS[target.counter]
    space = "shared" if above == "bank_passes" else "global"
    rows = [row for row in rows_of(target, record) if row["space"] == space]
    divisor = sum(row[below] for row in rows) if below and below != "nnz" else record.get(below, 1)
    if not rows or not divisor:
        return None
    scale = SECTOR_BYTES if target.counter.startswith("bytes") else 1
    return sum(row[above] for row in rows) / divisor * scale


def rows_of(target, record):
    """The lines of a record that do what the target is about. (An atomic reads what it updates.)"""
    accesses = ("load", "atomic") if target.access == "load" else (target.access,)
    rows = (row for row in record["lines"] if row["access"] in accesses)
    return [row for row in rows if target.array in ("", row["array"])]


def worst_line(target, record):
    """'file:line' of what asks for most that it need not have."""
    rows = rows_of(target, record)
    if not rows:
        return None
    row = max(rows, key=lambda row: row["sectors"] - row["ideal_sectors"])
    return f"{Path(row['file']).name}:{row['line']}"
