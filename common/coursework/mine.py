#!/usr/bin/env python3
"""For `make run KERNEL=mine.cuh`: mine.py STEP_DIRECTORY MINE FROM OUTPUT

Copies what of a step includes the kernel that MINE is a version of to OUTPUT/KEY/STEP, with MINE in its
place and all of it in a namespace of its own, so that both versions fit into one program. KEY is of MINE's name and
text: two versions that are run at the same time do not meet. MINE has the name of one of the step's files, or defines
the same kernels; it is looked for in FROM, too, where make was called. Prints the sources to compile.
"""

import hashlib
import os
import re
import shutil
import sys
import time
from dataclasses import dataclass
from pathlib import Path

from exercises import ExerciseError, included, read_step, source_text

KERNEL = re.compile(r"\b(\w+_kernel)\s*\(")
NAMESPACE = re.compile(r"\bnamespace\s+spmv\s*\{")
KEPT = 4  # directories of older versions
DECLARATION = re.compile(
    r"(?:\btemplate\s*<([^<>;{}]*)>\s*)?[^;{}<>()]*\b__global__\b[^;{}]*?\b(\w+_kernel)\s*\(([^()]*)\)\s*[{;]"
)


@dataclass
class Signature:
    """A kernel as it is declared. A launch of one launches another if `template` (types and values, in order) and `pointers`
    (how often each parameter is one) are the same."""

    line: int
    template: list
    pointers: list
    text: str


def signatures(text):
    """{kernel: Signature} of what a source declares."""
    other = r"(?ms)//[^\n]*|/\*.*?\*/|^[ \t]*#(?:\\\n|[^\n])*|\b__launch_bounds__\s*\([^()]*\)"
    code = re.sub(other, lambda match: re.sub(r"[^\n]", " ", match[0]), text)
    found = {}
    for match in DECLARATION.finditer(code):
        head, name, body = match.groups()
        pieces = [piece.strip() for piece in (head or "").split(",") if piece.strip()]
        kinds = ["type" if re.match(r"typename|class", piece) else "value" for piece in pieces]
        parameters = [" ".join(piece.split()) for piece in body.split(",") if piece.strip()]
        shown = f"template <{', '.join(pieces)}> " if pieces else ""
        shown += f"({', '.join(parameters)})"
        line = code.count("\n", 0, match.start(2)) + 1
        pointers = [parameter.count("*") + parameter.count("[") for parameter in parameters]
        found[name] = Signature(line, kinds, pointers, shown)
    return found


def check_signatures(mine, text, old):
    """Says of a kernel that the step cannot launch what it takes, and what the step passes."""
    own = signatures(text)
    for name, wanted in signatures(old.read_text(encoding="utf-8")).items():
        has = own.get(name, wanted)
        if (has.template, has.pointers) != (wanted.template, wanted.pointers):
            takes = f"{name} is {has.text}, and the step launches {wanted.text}"
            raise ExerciseError(f"{mine}:{has.line}: {takes}")


def replaced_file(directory, mine, text):
    """The file of the step that `mine` is a version of. A file that the step does not use is none."""
    used = set().union(*included_by_sources(directory).values())
    headers = sorted(path for path in directory.rglob("*.cuh") if path.resolve() in used)
    defined = set(KERNEL.findall(text))
    kernels = {path: KERNEL.findall(path.read_text(encoding="utf-8")) for path in headers}
    same = [path for path in headers if defined & set(kernels[path])]
    found = [p for p in headers if p.name == mine.name and (p in same or not kernels[p])] + same
    if not found:
        wanted = ", ".join(f"{names[0]} ({path.name})" for path, names in kernels.items() if names)
        has = f" (it has {', '.join(sorted(defined))})" if defined else ""
        give = f"give it the name and the parameters of one: {wanted}"
        raise ExerciseError(f"{mine} defines no kernel of {directory.name}{has}; {give}")
    if not NAMESPACE.search(text):
        raise ExerciseError(f"{mine} has no 'namespace spmv {{', in which its kernels have to be")
    check_signatures(mine, text, found[0])
    return found[0]


def included_by_sources(directory):
    """{source of the step, but for its tests: all that it includes from the steps}."""
    sources = [p for p in sorted(directory.glob("*.cu")) if not p.name.startswith("test")]
    return {path: included(path, set()) for path in sources}


def write_if_new(path, text):
    path.parent.mkdir(parents=True, exist_ok=True)
    if not path.exists() or path.read_text(encoding="utf-8") != text:
        new = path.with_name(f"{path.name}.{os.getpid()}")
        new.write_text(text, encoding="utf-8")
        new.replace(path)


def remove_old(output):
    """Of the directories beside `output` the youngest stay, and those of the last minutes, which others may be using. What
    was compiled of the others goes, too."""
    others = sorted(output.parent.iterdir(), key=lambda path: path.stat().st_mtime, reverse=True)
    for path in others[KEPT:]:
        if path != output and path.stat().st_mtime < time.time() - 600:
            for place in (path, *path.parents[1].glob(f"*/mine/{path.name}")):
                shutil.rmtree(place, ignore_errors=True)


def write_version(directory, old, text, register, output):
    """Copies to `output` what of a step includes the file `old`, with `text` in its place, all of it in namespace spmv::mine
    and `register` before each source. Prints the sources to compile."""
    every = included_by_sources(directory).items()
    sources = {path: files for path, files in every if old in files}
    # What a host compiler compiles of the step belongs to the copy, too, if it defines what a copied header declares.
    host = directory / "stage.cpp"
    if (included(host, set()) - {host.resolve()}) & set().union(*sources.values()):
        sources[host] = included(host, set())
    for source, files in sources.items():
        for path in files:
            body = text if path == old else path.read_text(encoding="utf-8")
            body = NAMESPACE.sub("namespace spmv::mine {", body)
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
        text = source_text(mine)
        old = replaced_file(directory, mine, text)
        name = str(mine.resolve()).replace("\\", "\\\\").replace('"', '\\"')
        text = f'#line 1 "{name}"\n{text}'  # messages name the file that was given
        register = f'#define MINE_KERNELS "{patterns(directory, str(old.relative_to(directory)))}"\n#include "coursework/mine.hpp"\n'
        output /= hashlib.sha256(f"{directory.name}\0{text}".encode()).hexdigest()[:12]
        output.mkdir(parents=True, exist_ok=True)
        os.utime(output)
        write_version(directory, old, text, register, output)
        remove_old(output)
    except OSError as error:
        sys.exit(f"error: {error.filename}: {error.strerror}; give KERNEL= a .cuh")
    except (ExerciseError, UnicodeError) as error:
        sys.exit(f"error: {error}")


if __name__ == "__main__":
    main()
