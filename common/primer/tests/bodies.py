#!/usr/bin/env python3
"""What the emulator says of a body in solutions.md: bodies.py PUZZLE NUMBER   (0: the solution; 1, 2, ...: mistakes)"""

import re
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))

from puzzle import HERE as PRIMER, Compiled  # noqa: E402
from exercises import NotJudged  # noqa: E402
from mine import write_if_new  # noqa: E402


def bodies():
    """{puzzle: [(what is said of it, or "" of the solution, the body)]}."""
    text = (HERE / "solutions.md").read_text(encoding="utf-8")
    sections = (section.partition("\n") for section in re.split(r"(?m)^## ", text)[1:])
    block = r"(?ms)(?:^Mistake: `([^`\n]*)`\n\n)?^```cpp\n(.*?)^```"
    return {name: re.findall(block, section) for name, _, section in sections}


def said_as_given():
    """{puzzle: what is said of it before anything is written}."""
    text = (HERE / "solutions.md").read_text(encoding="utf-8")
    return dict(re.findall(r"(?m)^## (.*)\n\nAs given: `(.*)`$", text))


def with_body(name, body):
    """The puzzle's text with another body of the function that is to be written."""
    text = (PRIMER / f"puzzles/{name}.cu").read_text(encoding="utf-8")
    todo = text.index("TODO (puzzle")
    begin = text.index(") {\n", max(0, text.rfind("\n}", 0, todo))) + len(") {\n")
    return text[:begin] + body + text[text.index("\n}", todo) + 1 :]


def main():
    name, number = sys.argv[1], int(sys.argv[2])
    file = PRIMER.parents[1] / f"build/bodies/{number}/{name}.cu"
    write_if_new(file, with_body(name, bodies()[name][number][1]))
    try:
        print(Compiled(file, f"{name}-{number}").judge()[1])
    except NotJudged as error:
        sys.exit(f"error: {error}")


if __name__ == "__main__":
    main()
