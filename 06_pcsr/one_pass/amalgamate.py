#!/usr/bin/env python3
"""Writes one_pass.cuh and the files that it includes as one header, to copy into another program.

python3 06_pcsr/one_pass/amalgamate.py one_pass.cuh
"""

import re
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent / "spmv"
INCLUDE = re.compile(r'^#include "(.*)"\n', re.MULTILINE)


def amalgamated(name, seen):
    """The text of a file with those in the place of its includes that are not in `seen`, which grows."""
    seen.add(name)

    def part(match):
        found = match[1]
        return "" if found in seen else f"// {'-' * 30} {found}\n" + amalgamated(found, seen)

    return INCLUDE.sub(
        part, (HERE / name).read_text(encoding="utf-8").replace("#pragma once\n", "")
    )


def main():
    if len(sys.argv) != 2 or sys.argv[1].startswith("-"):
        sys.exit(__doc__)
    licence = (HERE / "../../../LICENSE").read_text(encoding="utf-8")
    text = "#pragma once\n/*\n" + licence + "*/\n" + amalgamated("one_pass.cuh", set())
    try:
        Path(sys.argv[1]).write_text(text, encoding="utf-8")
    except OSError as error:
        sys.exit(f"error: {sys.argv[1]}: {error.strerror}")


if __name__ == "__main__":
    main()
