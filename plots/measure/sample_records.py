"""For tests: records made up, how they are written down, and a directory for them."""

import json
import tempfile
import unittest
import unittest.mock
from pathlib import Path

from columns import COLUMNS
from record_format import description_of
from records import stand_ins

RUN = (
    "backend",
    "device",
    "processor",
    "driver",
    "cuda",
    "cusparse",
    "compiler",
    "commit",
    "command",
)
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
    """A flat record; lines_of() knows what of it belongs to run, matrix, kernel and code. `baseline`: that measurement's
    own fields, or None. `functions`: the machine code, {function: hash}; without, none of ours ran."""
    result = {
        **{column.name: column.sample for column in COLUMNS if column.sample is not None},
        "run": RUN_ID,
        "matrix": matrix,
        "precision": "f64",
        "kernel": kernel,
        "verified": True,
        "device": "Some GPU",
        "driver": "1",
        "cuda": "13.0",
        "cusparse": "12.6",
        "commit": "abc",
        "command": "spmv",
        "source": "file",
        "rows": 1000,
        "cols": 1000,
        "nnz": 5000,
        "step": 2,
        "format": "CSR",
        "warm_ms": quartiles(warm),
        "cold_ms": quartiles(2 * warm, 0.5, 0.5),
        "baseline": {
            "warm_ms": quartiles(warm / 2),
            "cold_ms": quartiles(warm),
            "copy_gb_per_s": 4000,
        },
    }
    result.update(changes)
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
        run, matrix, kernel = (record[name] for name in ("run", "matrix", "kernel"))
        add({"run": {"id": run, **{k: record[k] for k in RUN if k in record}}})
        add(
            {
                "matrix": {
                    "run": run,
                    "name": matrix,
                    **{k: record[k] for k in MATRIX if k in record},
                }
            }
        )
        add(
            {
                "kernel": {
                    "run": run,
                    "name": kernel,
                    **{k: record[k] for k in KERNEL if k in record},
                }
            }
        )
        if "functions" in record:
            record = {**record, "code": "-".join(record["functions"].values())}
            add({"code": {"name": record["code"], "arch": 90, "functions": record["functions"]}})
        add(
            {
                k: v
                for k, v in record.items()
                if k not in (*RUN, *MATRIX, *KERNEL, "baseline", "functions")
            }
        )
        if "baseline" in record:
            add(
                {
                    "run": run,
                    "matrix": matrix,
                    "precision": record["precision"],
                    "kernel": "baseline",
                    "verified": True,
                    **record["baseline"],
                }
            )
    return [json.dumps(line) for line in lines]


def write(path, records):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(f"{line}\n" for line in lines_of(records)), encoding="utf-8")
