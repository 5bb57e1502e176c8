#!/usr/bin/env python3
"""One hint, and the next one when called again: hint.py STEP_DIRECTORY [EXERCISE]

EXERCISE is the first that is not written yet unless it is given. How many were shown is kept in build/hints.
"""

import sys
from pathlib import Path

from check import place_of_todo
from exercises import ROOT, ExerciseError, hints_of, read_step


def main():
    if not 2 <= len(sys.argv) <= 3:
        sys.exit(__doc__)
    directory = Path(sys.argv[1])
    try:
        step = read_step(directory)
    except ExerciseError as error:
        sys.exit(f"error: {error}")
    named = sys.argv[2] if len(sys.argv) == 3 else ""
    wanted = [e for e in step.exercises if (e.name == named if named else place_of_todo(directory, e))]
    if not wanted:
        names = ", ".join(e.name for e in step.exercises)
        sys.exit(f"error: no exercise '{named}'; there are {names}" if named else f"error: all are written; make hint ARGS=... of {names}")
    exercise = wanted[0]
    hints = [hint for hole in exercise.hints for hint in hints_of(hole)[1]]
    shown = ROOT / f"build/hints/{step.directory}-{exercise.name}"
    shown.parent.mkdir(parents=True, exist_ok=True)
    number = int(shown.read_text()) if shown.exists() else 0
    print(f"{exercise.name}, hint {number % len(hints) + 1} of {len(hints)}: {hints[number % len(hints)]}")
    shown.write_text(f"{number + 1}")


if __name__ == "__main__":
    main()
