#!/usr/bin/env python3
"""For `make run KERNEL=mine.cuh`: mine.py STEP_DIRECTORY MINE FROM OUTPUT

Copies what of a step includes the kernel that MINE is a version of to OUTPUT/STEP, with MINE in its
place and all of it in a namespace of its own, so that both versions fit into one program. MINE has
the name of one of the step's files, or defines the same kernels; it is looked for in FROM, too, where
make was called. Prints the sources to compile.
"""

import re
import sys
from pathlib import Path

from exercises import ExerciseError, included, read_step

KERNEL = re.compile(r"\b(\w+_kernel)\s*\(")
NAMESPACE = re.compile(r"\bnamespace\s+spmv\s*\{")


def replaced_file(directory, mine, text):
    """The file of the step that `mine` is a version of. A file that the step does not use is none."""
    used = set().union(*included_by_sources(directory).values())
    headers = sorted(path for path in directory.rglob("*.cuh") if path.resolve() in used)
    defined = set(KERNEL.findall(text))
    for path in headers:
        if path.name == mine.name:
            return path
    for path in headers:
        if defined & set(KERNEL.findall(path.read_text(encoding="utf-8"))):
            return path
    names = {path.name: KERNEL.findall(path.read_text(encoding="utf-8")) for path in headers}
    wanted = ", ".join(f"{kernels[0]} ({name})" for name, kernels in names.items() if kernels)
    raise ExerciseError(
        f"{mine} defines no kernel of {directory.name}; give it the name and the parameters of one: {wanted}"
    )


def included_by_sources(directory):
    """{source of the step, but for its tests: all that it includes from the steps}."""
    return {
        path: included(path, set())
        for path in sorted(directory.glob("*.cu"))
        if not path.name.startswith("test")
    }


def write_if_new(path, text):
    path.parent.mkdir(parents=True, exist_ok=True)
    if not path.exists() or path.read_text(encoding="utf-8") != text:
        path.write_text(text, encoding="utf-8")


def write_version(directory, old, text, namespace, register, output):
    """Copies to `output` what of a step includes the file `old`, with `text` in its place, all of it in a namespace of its own and
    `register` before each source. Prints the sources to compile."""
    for source, files in included_by_sources(directory).items():
        if old not in files:
            continue
        for path in files:
            body = NAMESPACE.sub(
                f"namespace spmv::{namespace} {{",
                text if path == old else path.read_text(encoding="utf-8"),
            )
            if path == source.resolve():
                body = f'{register}#line 1 "{source.name}"\n{body}'
            write_if_new(output / path.relative_to(directory.parent), body)
        print(output / directory.name / source.name)


def patterns(directory, name):
    """The kernels that a file is for, or all of the step's."""
    try:
        for exercise in read_step(directory).exercises:
            if name in exercise.files:
                return ",".join(exercise.kernels)
    except ExerciseError:
        pass
    return "*"


def main():
    if len(sys.argv) != 5:
        sys.exit(__doc__)
    directory, mine, output = Path(sys.argv[1]).resolve(), Path(sys.argv[2]), Path(sys.argv[4])
    if not mine.exists() and (Path(sys.argv[3]) / mine).exists():
        mine = Path(sys.argv[3]) / mine
    try:
        text = mine.read_text(encoding="utf-8")
        if not NAMESPACE.search(text):
            raise ExerciseError(
                f"{mine} has no 'namespace spmv {{', in which its kernels have to be"
            )
        old = replaced_file(directory, mine, text)
        text = f'#line 1 "{mine.resolve()}"\n{text}'  # messages name the file that was given
        register = f'#define MINE_KERNELS "{patterns(directory, str(old.relative_to(directory)))}"\n#include "coursework/mine.hpp"\n'
        write_version(directory, old, text, "mine", register, output)
    except OSError as error:
        sys.exit(f"error: {error.filename}: {error.strerror}; give KERNEL= a .cuh")
    except (ExerciseError, UnicodeError) as error:
        sys.exit(f"error: {error}")


if __name__ == "__main__":
    main()
