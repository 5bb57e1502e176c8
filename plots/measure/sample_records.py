"""For tests: records made up, how they are written down, and a directory for them."""

import json
import tempfile
import unittest
import unittest.mock
from pathlib import Path

from columns import COLUMNS
from record_format import description_of
from records import stand_ins

RUN = tuple("backend device processor driver cuda cusparse compiler commit command".split())
MATRIX = ("source", "detail", "rows", "cols", "nnz")
KERNEL = ("step", "format", "host")
RUN_ID = "2026-01-01T00:00:00.000Z"


class Scratch(unittest.TestCase):
    """Each test has a directory of its own."""

    def setUp(self):
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.root = Path(scratch.name)

    def patch(self, module, name, value):
        """For the length of the test."""
        patch = unittest.mock.patch.object(module, name, value)
        patch.start()
        self.addCleanup(patch.stop)


def quartiles(median, lower=1.0, upper=1.0):
    return [lower * median, median, upper * median, 25]


def record(kernel, matrix, warm, **changes):
    """A flat record; lines_of() knows what of it belongs to run, matrix, kernel and code.
    `baseline`: that measurement's own fields, or None. `functions`: the machine code, {function:
    hash}; without, none of ours ran."""
    result = {column.name: column.sample for column in COLUMNS if column.sample is not None}
    result |= {"run": RUN_ID, "matrix": matrix, "precision": "f64", "kernel": kernel}
    result |= {"device": "Some GPU", "driver": "1", "cuda": "13.0", "cusparse": "12.6"}
    result |= {"commit": "abc", "command": "spmv", "verified": True, "step": 2, "format": "CSR"}
    result |= {"source": "file", "rows": 1000, "cols": 1000, "nnz": 5000}
    result |= {"warm_ms": quartiles(warm), "cold_ms": quartiles(2 * warm, 0.5, 0.5)}
    baseline = {"warm_ms": quartiles(warm / 2), "cold_ms": quartiles(warm)}
    result |= {"baseline": {**baseline, "copy_gb_per_s": 4000}, **changes}
    if result["source"] == "stand-in":
        result.setdefault("detail", stand_ins().get(matrix))
    return {name: value for name, value in result.items() if value is not None}


def lines_of(records):
    """The lines of a file of records."""
    lines = []

    def add(line):
        if description_of(line) is None or line not in lines:
            lines.append(line)

    for record in records:
        run = record["run"]

        def described(kind, fields, **of):
            add({kind: {**of, **{k: record[k] for k in fields if k in record}}})

        described("run", RUN, id=run)
        described("matrix", MATRIX, run=run, name=record["matrix"])
        described("kernel", KERNEL, run=run, name=record["kernel"])
        if "functions" in record:
            record = {**record, "code": "-".join(record["functions"].values())}
            add({"code": {"name": record["code"], "arch": 90, "functions": record["functions"]}})
        elsewhere = (*RUN, *MATRIX, *KERNEL, "baseline", "functions")
        add({k: v for k, v in record.items() if k not in elsewhere})
        if "baseline" in record:
            thing = {name: record[name] for name in ("run", "matrix", "precision")}
            add({**thing, "kernel": "baseline", "verified": True, **record["baseline"]})
    return [json.dumps(line) for line in lines]


def write(path, records):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(f"{line}\n" for line in lines_of(records)), encoding="utf-8")
