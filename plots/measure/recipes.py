#!/usr/bin/env python3
"""How near do stand-ins come to real files? Sectors per request of x, as the CPU backend counts.

    plots/python.sh plots/measure/recipes.py             a table, of the counts that there are
    plots/python.sh plots/measure/recipes.py DIRECTORY   counts again on the files of recipes.csv that are there

Counts: results/recipes.jsonl, a line per file and precision.
"""

import json
import sys
import tempfile
from pathlib import Path
from statistics import median

from measure import output_of
from orders import sectors_per_request
from published import rows_in
from record_format import jsonl, records_in, write_whole
from records import RESULTS, ROOT
from tables import DASH, Table

COUNTS = RESULTS / "recipes.jsonl"
KERNELS = ["csr_vector", "pcsr_one_pass"]
SPMV = ROOT / "build" / "cpu" / "spmv"


def listed():
    return rows_in(Path(__file__).with_name("recipes.csv"))


def counts_in_file():
    return list(map(json.loads, COUNTS.read_text(encoding="utf-8").splitlines()))


def counted(matrix, precision):
    """{kernel: sectors per request of x}."""
    with tempfile.NamedTemporaryFile(suffix=".jsonl") as file:
        options = ["-m", matrix, "--complex", "real", "-p", precision, "-k", ",".join(KERNELS)]
        output_of([str(SPMV), *options, "--json", file.name])
        records = [r for r in records_in(file.name) if r["kernel"] in KERNELS]
        return {r["kernel"]: sectors_per_request(r) for r in records}


def count(directory):
    counts = {(c["file"], c["precision"]): c for c in counts_in_file()}
    for row in listed():
        for file in sorted(directory.glob(f"{row['file']}.mtx*")):
            for precision in ("f64", "f32"):
                count = {"file": row["file"], "precision": precision, "stand_in": row["stand_in"]}
                count["real"] = counted(str(file), precision)
                count["made"] = counted(row["stand_in"], precision)
                counts[row["file"], precision] = count
            print(f"{row['file']}: {row['stand_in']}", flush=True)
    write_whole(COUNTS, jsonl(counts[key] for key in sorted(counts)))


def reached(counts):
    """{recipe: (files, errors in percent)} of the files that it was not fitted to."""
    found = {}
    for row in listed():
        if ":" in row["kind"]:  # a generator for a structure of its own
            continue
        files, errors = found.get(row["kind"], (0, []))
        of = [c for c in counts if c["file"] == row["file"] and row["half"] == "judge"]
        errors = errors + [100 * (c["made"][k] / c["real"][k] - 1) for c in of for k in KERNELS]
        found[row["kind"]] = files + bool(of), errors
    return dict(sorted(found.items()))


def table(counts):
    columns = ["recipe", "files", "off by, median", "least", "greatest"]
    rows = []
    for kind, (files, of) in reached(counts).items():
        cells = [DASH] * 3
        if of:
            cells = [f"{median(map(abs, of)):.0f}%", f"{min(of):+.0f}%", f"{max(of):+.0f}%"]
        rows.append([kind, str(files), *cells])
    return Table("", columns, rows)


def main():
    if sys.argv[1:]:
        directory = Path(sys.argv[1])
        if not directory.is_dir():
            sys.exit(f"error: {directory}: no such directory; of .mtx or .mtx.gz files")
        count(directory)
    print(table(counts_in_file()).markdown(), end="")


if __name__ == "__main__":
    main()
