"""Our measurements, in results/DEVICE/: a dictionary per measurement, whose fields plots/README.md
names; of several of one thing that of the newest run counts. Figures and tables take them from Data.
"""

import functools
import json
import sys
from pathlib import Path

from record_format import LIBRARY, RecordError, column, description_of, outcome_of, lines_in
from record_format import records_in, thing_of
from sets import catalogue, fits, is_declared

ROOT = Path(__file__).resolve().parents[2]
sys.path.append(str(ROOT / "common" / "simt"))
from gpus import GPUS, of_device  # noqa: E402, F401

RESULTS = ROOT / "plots" / "results"
STAND_IN = "* stand-in: generated, of the same kind and size, since the file is not here."


# --- Measured -------------------------------------------------------------------------------------


def files_in(directory):
    return sorted(Path(directory).glob("*.jsonl"))


@functools.lru_cache
def stand_ins():
    """{matrix: specification} of the catalogue's stand-ins as they are made now."""
    return {name: row[7] for name, row in catalogue().items() if row[1] not in ("-", "scipy")}


@functools.lru_cache
def todays_code(file=ROOT / "plots" / "measure" / "machine_code.tsv"):
    """{compute capability: {CUDA function: hash of its instructions}} of today's build; `make
    evidence` writes the file."""
    code = {}
    for line in file.read_text(encoding="utf-8").splitlines() if file.exists() else []:
        if not line.startswith("#"):
            arch, function, hashed = line.split("\t")
            code.setdefault(int(arch), {})[function] = hashed
    return code


OTHER_CODE, UNKNOWN_CODE, NOT_COMPARED = "other", "unknown", "not compared"
STALE = OTHER_CODE, UNKNOWN_CODE


def code_state(record):
    """Whether a joined record was measured with OTHER_CODE than today's build has, or with what is
    UNKNOWN_CODE; NOT_COMPARED: on a GPU of another compute capability than todays_code() has; None:
    with the same, or with none of ours (kernels of the host and of cuSPARSE)."""
    code = record.get("code")
    is_ours = code != LIBRARY and not record["kernel"].startswith("cusparse_")
    if not is_ours or record.get("host") or record.get("backend") == "cpu":
        return None
    if not code:
        return UNKNOWN_CODE
    if code["arch"] not in todays_code():
        return NOT_COMPARED
    return None if code["functions"].items() <= todays_code()[code["arch"]].items() else OTHER_CODE


def code_note(records):
    """A sentence on those of `records` that were measured with other code, or nothing."""
    kernels = ", ".join(sorted({r["kernel"] for r in records if code_state(r) == OTHER_CODE}))
    note = f"Measured with other machine code than today's build has: {kernels};"
    return [f"{note} `make evidence` tells how to measure again."] * bool(kernels)


def daggers(records):
    """The same as the note of a table, which marks them with a dagger."""
    return [f"† {note}" for note in code_note(records)]


def is_current(record):
    """Whether a record is not of a stand-in that was made in another way than now."""
    is_made = record.get("source") == "stand-in"
    return not is_made or stand_ins().get(record["matrix"]) == record.get("detail")


def is_current_matrix(description):
    """The same of the description of a matrix, in records or by `spmv info --json`."""
    return is_current({**description, "matrix": description["name"]})


def current_records(file):
    """The joined measurements of a file but those of stand-ins that are made in another way now."""
    return [record for record in records_in(file) if is_current(record)]


def current_outcomes(file):
    """The same of the lines that say why there is no measurement. Those of a matrix of the
    catalogue without a description, of which it is not known what it was, are left out."""
    details, found = {}, []
    for line in lines_in(Path(file)):
        if description_of(line) == "matrix":
            details[line["matrix"]["run"], line["matrix"]["name"]] = line["matrix"]
        elif outcome_of(line):
            found.append(line)

    def counts(line):
        of = details.get((line["run"], line["matrix"]), {"source": "stand-in"})
        return line["matrix"] not in stand_ins() or is_current({**of, "matrix": line["matrix"]})

    return list(filter(counts, found))


def current_looks(file):
    """{matrix: what `spmv info --json` said of it} of results/matrices.jsonl, but those of
    stand-ins that are made in another way now."""
    lines = Path(file).read_text(encoding="utf-8").splitlines() if Path(file).exists() else []
    infos = [info for info in map(json.loads, lines) if is_current_matrix(info["matrix"])]
    return {info["matrix"]["name"]: info for info in infos}


def read(files):
    """The joined measurements of files, the newest of each, in the order of files and lines."""
    newest = {}
    for file in files:
        for record in current_records(file):
            key = thing_of(record)
            if key not in newest or newest[key]["run"] <= record["run"]:
                newest.pop(key, None)  # so that the newest also stands last
                newest[key] = record
    return list(newest.values())


def is_shown(record):
    """Whether figures, tables, claims and the results page read a record of plots/results: a set
    declares it, and what ran is known."""
    return is_declared(record) and code_state(record) != UNKNOWN_CODE


def rows_of(files, program="", keep=lambda record: True):
    """One program's measurements, "" being plain spmv, of y = A x only; of those to `keep`."""
    rows = [row for row in read(files) if row["program"] == program and keep(row)]
    return [row for row in rows if (row.get("alpha", 1), row.get("beta", 0)) == (1, 0)]


def read_records(device, results=None, program="", folder=""):
    """The rows of results/DEVICE, or of a folder there. Raises RecordError when it has none."""
    directory = directory_of(device, results) / folder
    if not (files := files_in(directory)):
        raise RecordError(f"no records in {directory}; `make bench` makes them")
    if folder:  # who names one asks for all that it holds; is_shown() knows the device's own files
        return rows_of(files, program)
    return with_setup_alone(rows_of(files, program, is_shown), directory)


def with_setup_alone(rows, directory):
    """The rows with setup and preprocess as they were measured with nothing beside them (alone/),
    where they were."""
    found = {
        identity(r): {name: r[name] for name in ("setup_ms", "preprocess_ms", "alone")}
        for r in read(files_in(directory / "alone"))
    }
    return [{**row, **found.get(identity(row), {})} for row in rows]


def device_names(results=None):
    """The devices that there are records of times for."""
    directories = sorted(Path(results or RESULTS).glob("*/"))
    return [d.name for d in directories if any(d.glob("*.jsonl"))]


def directory_of(device, results=None):
    """The directory of a device's records: of that name, else the first whose name begins with
    these words (NVIDIA_H100 finds NVIDIA_H100_80GB_HBM3)."""
    names = device_names(results)
    beginning = [name for name in names if name.startswith(device + "_")]
    return Path(results or RESULTS) / (device if device in names or not beginning else beginning[0])


def on_gpu(record):
    return "cold_ms" in record


def milliseconds(record, state="warm", quartile="median"):
    return record[column(state, quartile)]


# How long a product takes, from the longest. A mean over products of 4 us, which are bound by
# launches, says nothing about one of 400 us, so ratios are given by class.
TIME_CLASSES = {"above 20 us": 20e-3, "5 to 20 us": 5e-3, "below 5 us": 0}


def time_class(ms):
    """The class of a product that takes so many milliseconds."""
    return next(name for name, least in TIME_CLASSES.items() if ms >= least)


def is_tie(one, other):
    """Whether two warm times differ by no more than processes do: their spreads overlap. One
    process repeats itself more closely than several do, so a record of fewer processes has the
    other's spread."""

    def reach(record, beside):
        of = beside if record.get("processes", 1) < beside.get("processes", 1) else record
        return [
            milliseconds(of, "warm", end) * milliseconds(record) / milliseconds(of)
            for end in ("lower", "upper")
        ]

    (least, greatest), (others_least, others_greatest) = reach(one, other), reach(other, one)
    return least <= others_greatest and others_least <= greatest


def fastest_of(found):
    """Of {name: record or None} the names of the fastest, and of what ties with it."""
    there = {name: record for name, record in found.items() if record}
    first = min(there, key=lambda name: milliseconds(there[name]), default=None)
    return [name for name in there if name == first or is_tie(there[name], there[first])]


def on_one_gpu(records):
    """{(matrix, kernel): the record of the fastest step on one GPU}, of records of step 10."""
    found = {}
    for record in sorted((r for r in records if r["gpus"] == 1), key=lambda r: r["best_step_ms"]):
        found.setdefault((record["matrix"], record["kernel"]), record)
    return found


def gflops(record, state="warm", quartile="median"):
    return 2e-6 * record["nnz"] / milliseconds(record, state, quartile)


def baseline_share(record):
    return milliseconds(record, "baseline_warm") / milliseconds(record)


def format_bytes(record):
    """What any y = Ax must move with the matrix in this format: the matrix and x read once, y
    written once. In CSR and COO that is one number for all kernels; what a kernel adds, as PCSR's
    array of products, `compulsory_bytes` has beside it."""
    size, nnz = int(record["precision"][1:]) // 8, record["nnz"]
    indices = {"CSR": 4 * (nnz + record["rows"] + 1), "COO": 8 * nnz}.get(record["format"])
    if indices is None:  # padding depends on the matrix
        return record["compulsory_bytes"]
    return indices + size * (nnz + record["rows"] + record["cols"])


def bandwidth(record, state="warm"):
    """GB/s of what the format must move."""
    return 1e-6 * format_bytes(record) / milliseconds(record, state)


def data_sheet(device, field="dram_gb_per_s"):
    """What the table of GPUs says of a device of that name, or None."""
    gpu = of_device(device)
    return gpu and getattr(gpu, field)


def short(name):
    """A matrix's name up to its first comma."""
    return name.split(",")[0]


def starred(name, source):
    """With a star if what stands for it is a stand-in; see STAND_IN."""
    return name + ("*" if source == "stand-in" else "")


def number(value):
    """Three digits, as the program prints them."""
    if value >= 100:
        return f"{value:.0f}"
    return f"{value:.1f}" if value >= 10 else f"{value:.2f}"


# --- All of it, for figures and tables ------------------------------------------------------------


def identity(record):
    return record["matrix"], record["precision"], record["kernel"]


class Data:
    """What there is to draw: times of one device, looks of matrices."""

    def __init__(self, device, results=None, files=None):
        """`files`: records of the device, in place of those of results/DEVICE."""
        self.results = results = Path(results or RESULTS)
        directory = directory_of(device, results)
        keep = (lambda record: True) if files else is_shown
        files = files or files_in(directory)
        self.directory = directory.name
        rows = with_setup_alone(rows_of(files, keep=keep), directory)
        self.times = {identity(row): row for row in rows}
        self.multigpu = rows_of(files, "multigpu", keep)
        self.shapes = current_looks(results / "matrices.jsonl")
        every = [*files, *files_in(directory / "alone")]
        self.refused = {identity(line) for file in every for line in current_outcomes(file)}
        self.matrices = {}  # name -> rows, nonzeros, source, as the newest record has them
        self.by_matrix = {}  # (name, precision, on a GPU) -> records
        for (matrix, precision, _), record in self.times.items():
            self.matrices[matrix] = record
            self.by_matrix.setdefault((matrix, precision, on_gpu(record)), []).append(record)

    @property
    def device(self):
        """The device as it calls itself."""
        names = [r["device"] for r in self.times.values() if on_gpu(r)]
        return names[-1] if names else self.directory.replace("_", " ")

    @property
    def copy_gb_per_s(self):
        """The bandwidth of a copy, or None."""
        copies = (r["copy_gb_per_s"] for r in self.times.values() if "copy_gb_per_s" in r)
        return max(copies, default=None)

    def of(self, matrix, precision, gpu=True):
        """All records of a matrix."""
        return self.by_matrix.get((matrix, precision, gpu), [])

    def fastest(self, matrix, precision, patterns, gpu=True, state="warm"):
        """The record with the least time of those whose kernel fits, or None."""
        fit = [r for r in self.of(matrix, precision, gpu) if fits(r["kernel"], patterns)]
        return min(fit, key=lambda r: milliseconds(r, state), default=None)

    def speedups(self, matrices, precision, own, rival):
        """{matrix: how many times as fast the fastest of `own` is as the fastest of `rival`} where
        both were measured."""
        pairs = {m: [self.fastest(m, precision, of) for of in (own, rival)] for m in matrices}
        return {m: gflops(a) / gflops(b) for m, (a, b) in pairs.items() if a and b}

    def is_behind(self, matrices, precision, own, rival):
        """Whether the fastest of `rival` is faster than that of `own` on most of the matrices that
        both have; ties do not count."""
        pairs = [[self.fastest(m, precision, of) for of in (own, rival)] for m in matrices]
        pairs = [pair for pair in pairs if all(pair)]
        slower = [a for a, b in pairs if milliseconds(a) > milliseconds(b) and not is_tie(a, b)]
        return 2 * len(slower) > len(pairs)

    def is_refused(self, matrix, precision, patterns):
        return any(m == matrix and p == precision and fits(k, patterns) for m, p, k in self.refused)

    def source(self, matrix):
        if matrix in self.matrices:
            return self.matrices[matrix]["source"]
        return self.shapes.get(matrix, {}).get("matrix", {}).get("source", "")

    def in_order(self, matrices):
        """Real files and what the papers generated first, then stand-ins, each from the smallest,
        then what was not measured."""

        def place(matrix):
            size = self.matrices.get(matrix, {}).get("nnz", 0)
            return matrix not in self.matrices, self.source(matrix) == "stand-in", size

        return sorted(matrices, key=place)

    def label(self, matrix):
        """Its name for an axis, without its parameters if they make it long and no other has that
        name; with a star if it is a stand-in."""
        alike = [name for name in self.matrices if short(name) == short(matrix)]
        return starred(
            matrix if len(alike) > 1 or len(matrix) <= 32 else short(matrix), self.source(matrix)
        )
