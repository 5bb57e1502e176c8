#!/usr/bin/env python3
"""check_rooms.py: each room of common/ has a README.md that says "Uses: ...", and uses no other.

A room is a folder. It uses another if a source includes a header of it, or a script imports a module of it. What a room's
own tests use (test_*, *_test.*, tests/) counts only where its README says "Its tests use: ...".
"""

import re
import sys
from pathlib import Path

COMMON = Path(__file__).resolve().parents[1]
SOURCES = {".hpp", ".cpp", ".cu", ".cuh", ".h"}
INCLUDE = re.compile(r'^\s*#\s*include\s*["<]([\w./]+)[">]', re.MULTILINE)
IMPORT = re.compile(r"^\s*(?:import|from)\s+(\w+)", re.MULTILINE)
IS_TEST = re.compile(r"(^|/)(tests/|test_[^/]*$|[^/]*_test\.\w+$)")


def named(readme, words):
    """The rooms that a line of a README names; None without that line."""
    line = re.search(rf"^{words}: (.+)$", readme, re.MULTILINE)
    return line and set(re.findall(r"`(\w+)`", line[1]))


def used(file, room, rooms, modules):
    """The other rooms that a file uses."""
    text = file.read_text(encoding="utf-8", errors="replace")
    if file.suffix == ".py":
        found = {modules[name] for name in IMPORT.findall(text) if name in modules}
    else:
        heads = [name.split("/")[0] for name in INCLUDE.findall(text) if "/" in name]
        found = {head for head in heads if head in rooms}
        found |= {"a step" for name in INCLUDE.findall(text) if re.search(r"(^|/)\d\d_", name)}
    return found - {room}


def faults(common):
    rooms = {path.name for path in common.iterdir() if path.is_dir()} - {"__pycache__"}
    modules = {}
    for path in sorted(common.glob("*/*.py")):
        modules.setdefault(path.stem, path.parent.name)
    found = []
    for room in sorted(rooms):
        page = common / room / "README.md"
        readme = page.read_text(encoding="utf-8") if page.exists() else ""
        allowed = named(readme, "Uses")
        if allowed is None:
            found.append(f"common/{room}/README.md: has no line 'Uses: ...', which names rooms")
            continue
        for_tests = allowed | (named(readme, "Its tests use") or set())
        has_own = named(readme, "Its tests use") is not None
        for file in sorted((common / room).rglob("*")):
            if file.suffix not in SOURCES | {".py"} or "live" in file.parts:
                continue
            own = {path.stem for path in file.parent.glob("*.py")}
            others = used(file, room, rooms, {k: v for k, v in modules.items() if k not in own})
            is_test = IS_TEST.search(str(file.relative_to(common / room)))
            if is_test and not has_own and room != "tests":
                continue
            for other in sorted(others - (for_tests if is_test else allowed)):
                name = file.relative_to(common.parent)
                found.append(f"{name}: uses {other}, which common/{room}/README.md does not allow")
    return found


if __name__ == "__main__":
    found = faults(COMMON)
    print("".join(f"error: {fault}\n" for fault in found), end="", file=sys.stderr)
    sys.exit(1 if found else 0)
