"""The sets of measurements.toml: their matrices and kernels, and which of them declare a record."""

import fnmatch
import functools
import math
import os
import re
from pathlib import Path

from published import published
from record_format import RecordError

try:
    import tomllib
except ImportError:  # Python 3.10
    import tomli as tomllib

DECLARED = Path(__file__).with_name("measurements.toml")


@functools.lru_cache
def declared():
    return tomllib.loads(DECLARED.read_text(encoding="utf-8"))


def groups_of(name):
    """[(name, keys)] of the sets that a set consists of, itself if of none."""
    sets = declared()["set"]
    if name not in sets:
        raise RecordError(f"no set is called {name}; there are {', '.join(sets)}")
    if "sets" in sets[name]:
        return [group for part in sets[name]["sets"] for group in groups_of(part)]
    shared = {} if "program" in sets[name] else {"options": declared().get("options", [])}
    return [(name, {**shared, **sets[name]})]


@functools.lru_cache
def published_nonzeros():
    found = {}
    for name in sum(declared()["tables"].values(), []):
        found |= published(name).nonzeros()
    return found


@functools.lru_cache
def catalogue():
    """{name: its fields} of common/sparse/catalogue.tsv, the name first."""
    file = Path(__file__).resolve().parents[2] / "common/sparse/catalogue.tsv"
    rows = [line.split("\t") for line in file.read_text(encoding="utf-8").splitlines()]
    return {row[0]: row for row in rows if len(row) == 8}


@functools.lru_cache
def catalogue_nonzeros():
    return {name: int(row[5]) for name, row in catalogue().items()}


def split_order(spec):
    """A matrix, and in which order: ("kronecker_18", "columns") of "kronecker_18,order=columns", as
    records call it."""
    found = re.fullmatch(r"(.*),order=(\w+)", spec)
    return (found[1], found[2]) if found else (spec, None)


def in_order(spec, order):
    return f"{spec},order={order}" if order else spec


def nonzeros_of(spec):
    """Of a matrix, as near as its name or a table says."""
    name, _ = split_order(matrix_name(spec))
    known = {**catalogue_nonzeros(), **declared()["nonzeros"], **published_nonzeros()}
    if name in known:
        return known[name]
    if found := re.search(r",nnz=(\d+)", name):
        return int(found[1])
    if found := re.match(r"(stencil[23]d|dense):([\dx]+)", name):
        size = math.prod(map(int, found[2].split("x")))
        points = re.search(r"points=(\d+)", name)
        per_point = {"stencil2d": 5, "stencil3d": 7, "dense": 1}[found[1]]
        per_point = int(points[1]) if points else per_point
        unknowns = re.search(r"dof=(\d+)", name)
        return size * per_point * (int(unknowns[1]) ** 2 if unknowns else 1)
    if found := re.match(r"random:(\d+)x\d+,nnz_per_row=(\d+)", name):
        return int(found[1]) * int(found[2])
    return 1_000_000


def data_files(pattern):
    """Those in SPMV_DATA, or in data/."""
    data = Path(os.environ.get("SPMV_DATA") or DECLARED.parents[2] / "data")
    pattern, order = split_order(pattern)
    return [in_order(str(file), order) for file in sorted(data.glob(pattern))]


def expanded(text, files=data_files):
    """The names that an entry of `matrices` stands for; `files` finds those of a pattern."""
    if text == "@sets":
        measured = [keys for keys in declared()["set"].values() if "records" in keys]
        names = [name for keys in measured for name in matrices_of(keys, files)]
        return [name for name in names if split_order(name)[1] is None]
    if text.startswith("@"):
        tables = declared()["tables"].get(text[1:])
        if tables is not None:
            return [matrix for name in tables for matrix in published(name).matrices()]
        return [name for entry in declared()["lists"][text[1:]] for name in expanded(entry, files)]
    if text.startswith("files:"):
        return files(text[len("files:") :])
    if found := re.search(r"\{(\d+)\.\.(\d+)\}", text):
        numbers = range(int(found[1]), int(found[2]) + 1)
        return [text[: found.start()] + str(n) + text[found.end() :] for n in numbers]
    return [text]


def matrices_of(group, files=data_files):
    """From the smallest on."""
    names = dict.fromkeys(name for entry in group["matrices"] for name in expanded(entry, files))
    most = group.get("largest", math.inf)
    return sorted((name for name in names if nonzeros_of(name) <= most), key=nonzeros_of)


def kernels_of(group, every):
    """The names of the kernels that a group asks for; `every`: what `spmv --list --json` says."""
    patterns, chosen = [], []
    for pattern in group.get("kernels", ["*"]):
        is_list = pattern.startswith("@")
        patterns += declared()["lists"][pattern[1:]] if is_list else [pattern]
    for kernel in every:
        keep = False
        for pattern in patterns:
            if found := re.fullmatch(r"step:(\d+)-(\d+)", pattern):
                keep |= int(found[1]) <= kernel["step"] <= int(found[2])
            elif pattern.startswith("!"):
                keep &= not fits(kernel["name"], [pattern[1:]])
            else:
                keep |= fits(kernel["name"], [pattern])
        if keep and kernel["host"] == group.get("on_host", False):
            chosen.append(kernel["name"])
    return chosen


def matrix_name(spec):
    """As records call it: of a file its name alone."""
    spec, order = split_order(spec)
    name = re.sub(r"\.(mtx(\.gz)?|npz)$", "", spec.rsplit("/", 1)[-1]) if "/" in spec else spec
    return in_order(name, order)


def fits(name, patterns):
    return any(fnmatch.fnmatchcase(name, pattern) for pattern in patterns)


@functools.lru_cache
def declarations():
    """[(keys, matrices that are no files, patterns of files)] of each set whose records stand in
    the directory of a device itself."""
    found = []
    for keys in declared()["set"].values():
        if "/" not in keys.get("records", "/"):
            patterns = []
            names = frozenset(matrices_of(keys, lambda pattern: patterns.append(pattern) or []))
            found.append((keys, names, patterns))
    return found


@functools.lru_cache
def groups_with(kernel, step, is_of_host):
    """Those of declarations() that measure a kernel."""
    every = [{"name": kernel, "step": step, "host": is_of_host}]
    return [declaration for declaration in declarations() if kernels_of(declaration[0], every)]


def precisions_of(keys):
    return keys.get("precisions") or (["f64"] if "gpus" in keys else ["f64", "f32"])


def is_declared(record):
    """Whether a set measures what a joined record did. Of what `make bench MATRICES=...
    KERNELS=...` measured beside the sets, no figure, table or claim is made."""
    file = f"{record['matrix']}.mtx.gz" if record["source"] == "file" else ""
    for keys, names, patterns in groups_with(record["kernel"], record["step"], record["host"]):
        of_matrix = record["matrix"] in names or file and fits(file, patterns)
        of_precision = record["precision"] in precisions_of(keys)
        if of_matrix and of_precision and keys.get("program", "") == record["program"]:
            return True
    return False
