"""Where the numbers are: the papers' tables in published/, our measurements in results/DEVICE/.

A record is a line of JSON that `spmv --json FILE` wrote, one for each kernel, matrix and precision.
Of several of one thing the latest counts. A published table is a CSV file whose first lines say where
it comes from: "# paper: ...".
"""

import csv
import fnmatch
import json
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
RESULTS = ROOT / "plots" / "results"
PUBLISHED = ROOT / "plots" / "published"
COUNTERS = "cpu_backend"  # the "device" whose records hold counters instead of times
STAND_IN = "* stand-in: generated, of the same kind and size, since the file is not here."


class RecordError(Exception):
    """Records that are not there or not to be trusted; the text says which."""


# --- Measured -------------------------------------------------------------------------------------


def records_in(file):
    """The records of one file, in its order."""
    for number, line in enumerate(Path(file).read_text(encoding="utf-8").splitlines(), 1):
        try:
            record = json.loads(line)
        except ValueError as error:
            raise RecordError(f"{Path(file).name}, line {number}: no JSON: {error}") from None
        if record.get("verified") is not True:
            raise RecordError(f"{Path(file).name}, line {number}: a record that is not verified")
        yield record


def key_of(record):
    return record["matrix"]["name"], record["precision"], record["kernel"]


def read_records(device, results=None, program=""):
    """The newest record of each matrix, precision and kernel in results/DEVICE, y = A x only.

    `program` names a step's own program; "": those of plain spmv.
    """
    directory = Path(results or RESULTS) / device
    files = sorted(directory.glob("*.jsonl"))
    if not files:
        raise RecordError(f"no records in {directory}; `make bench` makes them")
    newest = {}
    for file in files:
        for record in records_in(file):
            if record.get("program", "") != program or "kernel" not in record:
                continue
            if (record.get("alpha", 1), record.get("beta", 0)) != (1, 0):
                continue
            # Programs of several GPUs measure a kernel in several ways.
            key = key_of(record) + tuple(record.get(k) for k in ("gpus", "partition", "exchange", "steps"))
            if key in newest and newest[key].get("time", "") > record.get("time", ""):
                continue
            newest.pop(key, None)  # so that the newest also stands last
            newest[key] = record
    return list(newest.values())


def device_names(results=None):
    """The devices that there are records of times for."""
    directories = sorted(Path(results or RESULTS).glob("*/"))
    return [d.name for d in directories if d.name != COUNTERS and any(d.glob("*.jsonl"))]


def on_gpu(record):
    return "cold_ms" in record


def fits(kernel, patterns):
    return any(fnmatch.fnmatchcase(kernel, pattern) for pattern in patterns)


def milliseconds(record, state="warm"):
    return record[f"{state}_ms"]["median"]


def gflops(record, state="warm", quartile="median"):
    return 2e-6 * record["matrix"]["nnz"] / record[f"{state}_ms"][quartile]


def floor_share(record, state="warm"):
    return record[f"floor_{state}_ms"]["median"] / milliseconds(record, state)


def bandwidth(record, count="compulsory_bytes", state="warm"):
    """GB/s of one of the two counts of bytes."""
    return 1e-6 * record[count] / milliseconds(record, state)


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


# --- Published ------------------------------------------------------------------------------------


class Published(list):
    """The rows of a table as dictionaries, and in `about` what is said of it."""

    def __init__(self, name, directory=None):
        path = Path(directory or PUBLISHED) / f"{name}.csv"
        lines = path.read_text(encoding="utf-8").splitlines()
        heads = [line[1:].split(":", 1) for line in lines if line.startswith("#")]
        self.name = name
        self.about = {head.strip(): text.strip() for head, text in heads}
        super().__init__(csv.DictReader(line for line in lines if not line.startswith("#")))

    def where(self, **wanted):
        return [row for row in self if all(row[k] == v for k, v in wanted.items())]

    def value(self, column="value", **wanted):
        """The one number of `column` in the row that `wanted` describes."""
        rows = self.where(**wanted)
        if len(rows) != 1:
            raise RecordError(f"{self.name}: {len(rows)} rows with {wanted}, not one")
        return float(rows[0][column])


def published(name):
    return Published(name)


# --- All of it, for figures and tables ------------------------------------------------------------


class Data:
    """What there is to draw: times of one device, counters of the CPU backend, looks of matrices."""

    def __init__(self, device, results=None):
        results = Path(results or RESULTS)
        self.directory = device
        self.times = self._read(device, results)
        self.counters = self._read(COUNTERS, results)
        self.multigpu = list(self._read(device, results, "multigpu").values())
        self.shapes = {}
        if (results / "matrices.jsonl").exists():
            lines = (results / "matrices.jsonl").read_text(encoding="utf-8").splitlines()
            self.shapes = {info["matrix"]["name"]: info for info in map(json.loads, lines)}
        self.refused = set()
        if (results / device / "skipped.tsv").exists():
            lines = (results / device / "skipped.tsv").read_text(encoding="utf-8").splitlines()
            self.refused = {tuple(line.split("\t")[:3]) for line in lines}
        self.matrices = {}  # name -> rows, nonzeros, source, as the newest record has them
        self.by_matrix = {}  # (name, precision, on a GPU) -> records
        for (matrix, precision, _), record in self.times.items():
            self.matrices[matrix] = record["matrix"]
            self.by_matrix.setdefault((matrix, precision, on_gpu(record)), []).append(record)

    @staticmethod
    def _read(device, results, program=""):
        try:
            records = read_records(device, results, program)
            return dict(enumerate(records)) if program else {key_of(record): record for record in records}
        except RecordError as error:
            if "no records" not in str(error):
                raise
            return {}

    @property
    def device(self):
        """The device as it calls itself."""
        names = [r["device"] for r in self.times.values() if on_gpu(r)]
        return names[-1] if names else self.directory.replace("_", " ")

    def of(self, matrix, precision, gpu=True):
        """All records of a matrix."""
        return self.by_matrix.get((matrix, precision, gpu), [])

    def fastest(self, matrix, precision, patterns, gpu=True):
        """The record with the least warm time of those whose kernel fits, or None."""
        fit = [r for r in self.of(matrix, precision, gpu) if fits(r["kernel"], patterns)]
        return min(fit, key=milliseconds, default=None)

    def is_refused(self, matrix, precision, patterns):
        return any(m == matrix and p == precision and fits(k, patterns) for m, p, k in self.refused)

    def source(self, matrix):
        if matrix in self.matrices:
            return self.matrices[matrix]["source"]
        return self.shapes.get(matrix, {}).get("matrix", {}).get("source", "")

    def label(self, matrix):
        """Its name for an axis, without its parameters if they make it long and no other has that name;
        with a star if it is a stand-in."""
        alike = [name for name in self.matrices if short(name) == short(matrix)]
        return starred(matrix if len(alike) > 1 or len(matrix) <= 32 else short(matrix), self.source(matrix))

    def counters_label(self, matrix):
        source = next(r["matrix"]["source"] for (m, *_), r in self.counters.items() if m == matrix)
        return starred(short(matrix), source)
