#!/usr/bin/env python3
"""once.py COMPILER ARGUMENT...: compiles, and prints each warning once.

A warning in a template comes with every instantiation, each with the places from which it is reached. Here the first
one is printed, with its line of source; errors stay as they are.
"""

import re
import subprocess
import sys

DIAGNOSTIC = re.compile(r"^(\S.*?:\d+:(?:\d+:)?) (fatal error|error|warning|note): (.*)$")
# What comes before a diagnostic: where it is included or instantiated, and in which function it is.
CONTEXT = re.compile(
    r"^(In file included from| +from |\S.*: In |\S.*:\d+:\d+: +required |\S.*:\d+:\d+: +recursively |\S.*: At )"
)


def once(text):
    """The messages of g++ without repeated warnings."""
    kept, context, seen, shows = [], [], set(), True
    for line in text.splitlines():
        found = DIAGNOSTIC.match(line)
        if CONTEXT.match(line):
            context.append(line)
            continue
        if found:
            place, kind, what = found.groups()
            if kind == "warning":
                # By place and flag: the types that an instantiation puts in make no other warning.
                key = (place, what[what.rfind("[-W") :] if "[-W" in what else what)
                shows = key not in seen
                seen.add(key)
            elif kind != "note":
                shows = True
                kept += context
            context = []
        if shows:
            kept += context + [line]
        context = []
    return kept + (context if shows else [])


def main():
    done = subprocess.run(sys.argv[1:], stderr=subprocess.PIPE)
    text = done.stderr.decode("utf-8", "replace")
    if "Assembler messages" in text:
        text += "error: inline PTX (asm) runs on a GPU alone: BACKEND=cuda\n"
    sys.stderr.write("".join(f"{line}\n" for line in once(text)))
    sys.exit(done.returncode if done.returncode >= 0 else 1)


if __name__ == "__main__":
    main()
