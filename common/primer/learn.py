#!/usr/bin/env python3
"""Shows one exercise after the other, and runs it each time its file is saved: make learn

    learn.py [--once] [--list] [--hint] [--step STEP] [EXERCISE]

First come the puzzles of this directory, then the exercises of the steps. The next one that is not solved is
shown, or EXERCISE, by the beginning of its name. What you write is in handouts/, which git ignores, and so is
the progress. A handout has this program, too, and only the exercises of its step. --once runs it once (also without a terminal); its exit status is 0 if it is solved, 1 if not, 2 if
that could not be told. --hint gives one hint, and the next one when called again. --step: only that step's.
"""

import argparse
import functools
import json
import os
import re
import select
import shutil
import subprocess
import sys
import time
import webbrowser
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
sys.path[:0] = [str(ROOT / "common/coursework"), str(ROOT / "common/watch")]

import traces  # noqa: E402
import watch  # noqa: E402
from exercises import NotJudged, hints_of, read_step  # noqa: E402

PUZZLES = HERE / "puzzles"
IN_HANDOUT = not PUZZLES.exists()
if not IN_HANDOUT:
    from puzzle import Compiled, declared, is_program
HANDOUTS = ROOT if IN_HANDOUT else Path(os.environ.get("SPMV_HANDOUTS") or ROOT / "handouts")
POLL_S = 0.3
SOLVED, NOT_SOLVED, UNKNOWN = 0, 1, 2
KEYS = "Enter runs it again; h, w, n or q and Enter: hint, watch, next exercise, quit"


def shown(path):
    """A path as one types it."""
    path = Path(path)
    return str(path.relative_to(ROOT)) if ROOT in path.parents else str(path)


def make(*words, stderr=subprocess.STDOUT):
    """(exit status, output). The CPU backend, whatever the machine has: a GPU counts no sectors."""
    names = [key for key in os.environ if not key.startswith(("MAKE", "MFLAGS", "ARGS"))]
    environment = {key: os.environ[key] for key in names}
    if not IN_HANDOUT:  # what judges an exercise is compiled once, and not for every step
        environment["SPMV_KITS"] = str(ROOT / "build/kits")
    command = ["make", "--no-print-directory", *words, "BACKEND=cpu"]
    how = {"env": environment, "cwd": ROOT, "text": True, "stderr": stderr}
    done = subprocess.run(command, stdout=subprocess.PIPE, **how)
    return done.returncode, done.stdout


# --- Exercises ------------------------------------------------------------------------------------


class Puzzle:
    """A file of puzzles/, of which the reader gets a copy."""

    def __init__(self, name, section):
        self.name, self.after = name, section["after"]
        self.step = section.get("step", "")  # after whose exercises it comes
        self.title = f"puzzle {int(name[:2])}, {section['title']}"
        self.hints = hints_of(section["hints"])[1]
        self.file = HANDOUTS / "puzzles" / f"{name}.cu"
        self.files = [self.file]
        self.solution = f"{shown(HERE / 'tests/solutions.md')}, under {name}"

    def prepare(self):
        if not self.file.exists():
            self.file.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(PUZZLES / self.file.name, self.file)

    def describe(self):
        return f"The task is in {shown(self.file)}. Write the lines that are missing there."

    def check(self):
        """(SOLVED or NOT_SOLVED, what to print)."""
        solved, text = Compiled(self.file).judge()
        text = re.sub(rf"(?<![\w/-]){self.file.name}(?=:\d)", shown(self.file), text)
        lines = self.file.read_text(encoding="utf-8", errors="replace").splitlines()
        for number, line in enumerate([] if solved else lines, 1):
            if "TODO" in line:
                text += f"\n\n  The TODO is in line {number} of {shown(self.file)}."
        return SOLVED if solved else NOT_SOLVED, text

    def watch(self):
        """The path of the page on which one steps through the run."""
        if is_program(self.file):
            raise NotJudged("a whole program cannot be watched; the other puzzles can")
        one = Compiled(self.file)
        if not one.build()[0]:
            raise NotJudged("it does not compile yet")
        trace, page = one.directory / "trace.jsonl", ROOT / f"build/watch/{self.name}.html"
        command = [one.program, "--trace", trace]
        done = subprocess.run(command, capture_output=True, text=True, timeout=20)
        if done.returncode:
            raise NotJudged(done.stderr.strip() or "it could not be recorded")
        page.parent.mkdir(parents=True, exist_ok=True)
        found = traces.read(trace)
        # The page opens there.
        reported = any(event[0] == "failure" for event in found[0]["events"])
        page.write_text(watch.page(found, [], "" if reported else "store"), encoding="utf-8")
        return page


class StepExercise:
    """An exercise of a step, in the step's handout."""

    def __init__(self, step, exercise, after):
        self.name, self.step, self.after = exercise.name, step.directory, after
        of = f"step {step.directory[:2]}, {step.title}"
        self.title = f"{of}: {exercise.name} (level: {exercise.level})"
        self.hints = [hint for hole in exercise.hints for hint in hints_of(hole)[1]]
        self.directory = ROOT if IN_HANDOUT else HANDOUTS / self.step
        self.files = [self.directory / self.step / name for name in exercise.files]
        files = " and ".join(f"{self.step}/{name}" for name in exercise.files)
        self.solution = files + " of the repository" * IN_HANDOUT

    def prepare(self):
        if not self.directory.exists():
            words = "handout", f"STEP={self.step}", f"OUTPUT={HANDOUTS}"
            status, output = make(*words)
            if status:
                raise NotJudged(output.strip())

    def describe(self):
        files = " and ".join(map(shown, self.files))
        task = f"The task is in {shown(self.directory / 'README.md')}. Write it in {files}."
        lesson = f"\nThe lesson, {self.step}/README.md, has the kernel, folded: "
        return task + f"{lesson}read up to there now, the rest afterwards." * (not IN_HANDOUT)

    def check(self):
        words = "-C", str(self.directory / self.step), "check", f"ARGS={self.name}"
        status, output = make(*words, stderr=None)  # which says what is compiled
        others = r"(?m)^(make|Exercise |Next: |All is |\d+ of \d+ points).*\n?"
        text = re.sub(others, "", output).rstrip()
        if not IN_HANDOUT:  # "Where:" names a command, which is typed at the root of the repository
            here = f"make -C {shown(self.directory)}/{self.step} "
            text = text.replace(f"make -C {self.step} ", here)
        for file in self.files:  # a path that opens the reader's file, where one stands
            text = re.sub(rf"(?<![\w/-])(\w+/)?{re.escape(file.name)}(?=:\d)", shown(file), text)
        if status and not re.search(r"^  (MISSING|WRONG|UNSAFE|MISSED) ", output, re.MULTILINE):
            raise NotJudged(text or f"make -C {shown(self.directory)} check has failed")
        return (NOT_SOLVED if status else SOLVED), text

    def watch(self):
        if not (self.directory / "build/cpu" / self.step / "spmv").exists():
            say("The program that records it is compiled first, which takes about two minutes.")
        status, output = make("-C", str(self.directory), "watch")
        page = re.search(r"Open in a browser: (.*)", output)
        if not page:
            raise NotJudged(output.strip()[-500:])
        return Path(page[1])


def exercises():
    """All of them, in order."""
    found, puzzles = [], {} if IN_HANDOUT else declared()
    guide = "" if IN_HANDOUT else (ROOT / "common/coursework/README.md").read_text(encoding="utf-8")
    rows = re.findall(r"(?m)^\| \d\d \| (`.*?) \| (.*?) \|", guide)
    after = {name: text for names, text in rows for name in re.findall(r"`(\w+)`", names)}
    for path in sorted(ROOT.glob("[0-9][0-9]_*/exercise.ini")):
        step = read_step(path.parent)
        found += [StepExercise(step, e, after.get(e.name, "")) for e in step.exercises]
    names = [name for name in puzzles if ": " not in name and name != "DEFAULT"]
    found += [Puzzle(name, puzzles[name]) for name in names]
    return sorted(found, key=lambda exercise: exercise.step)


class Progress:
    """What is solved, and how many hints were shown."""

    def __init__(self):
        self.file = HANDOUTS / "progress.json"
        try:
            kept = json.loads(self.file.read_text(encoding="utf-8"))
            self.solved, self.hints = list(kept["solved"]), dict(kept["hints"])
        except FileNotFoundError:
            self.solved, self.hints = [], {}
        except (ValueError, KeyError, TypeError):
            remedy = "delete it to begin anew: what you wrote stays"
            raise NotJudged(f"{shown(self.file)} cannot be read; {remedy}") from None

    def save(self):
        self.file.parent.mkdir(parents=True, exist_ok=True)
        text = json.dumps({"solved": self.solved, "hints": self.hints}, indent=1)
        self.file.write_text(text + "\n", encoding="utf-8")

    def next_of(self, every, after=None):
        """The first that is not solved, from behind `after` on; or None."""
        names = [exercise.name for exercise in every]
        start = names.index(after.name) + 1 if after else 0
        left = (e for e in every[start:] + every[:start] if e.name not in self.solved)
        return next(left, None)


# --- What is said ---------------------------------------------------------------------------------


say = functools.partial(print, flush=True)


def introduce(exercise, every, progress):
    say(f"\n=== {len(progress.solved)} of {len(every)} solved. Now {exercise.title}")
    exercise.prepare()
    say(exercise.describe())


def run(exercise, progress):
    """Runs it, says what came out, and keeps it. Returns SOLVED or NOT_SOLVED."""
    say()
    status, text = exercise.check()
    say(text)
    if status == SOLVED:
        after = exercise.after and f" You can now {exercise.after.rstrip('.')}."
        say(f"\nSolved.{after}")
        if exercise.name not in progress.solved:
            progress.solved.append(exercise.name)
            progress.save()
    return status


def hint(exercise, progress):
    number, count = progress.hints.get(exercise.name, 0), len(exercise.hints)
    if number < count:
        say(f"Hint {number + 1} of {count} for {exercise.name}: {exercise.hints[number]}")
        progress.hints[exercise.name] = number + 1
        progress.save()
    else:
        all_ = f"These were all {number} hints for {exercise.name}:"
        say("\n".join([all_, *exercise.hints, f"A solution: {exercise.solution}"]))


def open_page(exercise):
    page = exercise.watch()
    say(f"Open in a browser: {page}")
    if os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY"):
        webbrowser.open(page.as_uri())


def times(exercise):
    return [file.stat().st_mtime_ns if file.exists() else 0 for file in exercise.files]


def wait(exercise, before):
    """What to do next: a letter that was typed, or "" to run it, since its file was saved."""
    while times(exercise) == before:
        if select.select([sys.stdin], [], [], POLL_S)[0]:
            line = sys.stdin.readline()
            return line.strip()[:1].lower() if line else "q"
    time.sleep(0.05)  # an editor may still be writing
    return ""


def session(exercise, every, progress):
    """Until all are solved, or the reader has had enough."""
    while exercise:
        introduce(exercise, every, progress)
        before = times(exercise)
        status = run(exercise, progress)
        while status != SOLVED:
            say(f"\n(It runs again when you save the file. {KEYS}.)")
            key = wait(exercise, before)
            if key == "q":
                return
            if key == "n":
                break
            if key == "h":
                hint(exercise, progress)
            elif key == "w":
                try:
                    open_page(exercise)
                except NotJudged as error:
                    say(f"  {error}")
            else:
                before = times(exercise)
                status = run(exercise, progress)
        following = progress.next_of(every, exercise)
        if status == SOLVED and not exercise.step and following and following.step:
            now = "Read 01_sequential/README.md now; then step 02 goes on here."
            say(f"That was the last puzzle. {now}")
        exercise = following
    beyond = " README.md says what there is beyond: your matrices, a GPU, the papers' figures."
    say(f"\nAll {len(every)} are solved." + beyond * (not IN_HANDOUT))


def choose(every, progress, name, hint=False):
    if not name:

        def is_begun(exercise):
            files = [file for file in exercise.files if file.exists()]
            return any("TODO" in file.read_text(errors="replace") for file in files)

        return progress.next_of(hint and list(filter(is_begun, every)) or every)
    begins = f"{int(name):02d}_" if name.isdigit() else name  # a puzzle's number
    names = [exercise.name for exercise in every]
    found = [e for e in every if e.name == name] or [e for e in every if e.name.startswith(begins)]
    if len(found) != 1:
        begin = "several exercises begin" if found else "no exercise begins"
        raise NotJudged(f"{begin} with '{name}'; there are {', '.join(names)}")
    return found[0]


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    for flag in ("--once", "--list", "--hint"):
        parser.add_argument(flag, action="store_true")
    parser.add_argument("--step", default="")
    parser.add_argument("exercise", nargs="?", default="")
    arguments = parser.parse_args()
    try:
        every, progress = [e for e in exercises() if arguments.step in ("", e.step)], Progress()
        if arguments.list:
            for exercise in every:
                solved = "solved" * (exercise.name in progress.solved)
                say(f"{solved:6}  {exercise.name:20} {exercise.title}")
            return SOLVED
        exercise = choose(every, progress, arguments.exercise, arguments.hint)
        if not exercise:
            say(f"All {len(every)} are solved." if every else "There are no exercises here.")
        elif arguments.hint:
            hint(exercise, progress)
        elif arguments.once or not sys.stdin.isatty():
            introduce(exercise, every, progress)
            status = run(exercise, progress)
            following = progress.next_of(every, exercise)
            is_last = not exercise.step and following and following.step
            todo = "read 01_sequential/README.md now, then " * bool(is_last) + "make learn"
            if status != SOLVED:
                todo = "change the file, then make learn again; make hint gives a hint."
            say(f"\nNext: {todo}")
            return status
        else:
            session(exercise, every, progress)
    except NotJudged as error:
        print(f"error: {error}", file=sys.stderr)
        return UNKNOWN
    except KeyboardInterrupt:
        say()
    return SOLVED


if __name__ == "__main__":
    sys.exit(main())
