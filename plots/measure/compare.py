#!/usr/bin/env python3
"""A kernel against the best of cuSPARSE's CSR and COO algorithms (SpMVOp among them), from measured records.

    plots/python.sh plots/measure/compare.py pcsr_one_pass plots/results/NVIDIA_H200
    plots/python.sh plots/measure/compare.py pcsr_one_pass plots/results/NVIDIA_*

For each precision and state (warm: products back to back, inputs in the L2 as far as they fit; cold: L2
flushed; overlapped: as warm, but each product of the kernel starts while the one before it ends, and
cuSPARSE's are those of warm): the geometric mean over all matrices of (time of cuSPARSE's
best on that matrix) / (time of the kernel), the three worst matrices, and the kernel's share of the speed of the row-free
baseline (device/baseline.cuh) on matrices of over a million nonzeros. Above 1 the kernel is the faster one. A star marks a stand-in. Of records of several
devices: mean and worst on each, side by side, over the matrices that all of them have.
"""

import argparse
import collections
import itertools
import math
import sys
from pathlib import Path
from statistics import geometric_mean

from record_format import STATES, RecordError, column
from records import files_in, on_gpu, rows_of

RIVALS = ("cusparse_csr", "cusparse_coo", "cusparse_spmvop")
LINES = list(itertools.product(("f64", "f32"), STATES))  # of a table


def compared(rows, kernel, precision, state):
    """{matrix: (speedup over the best rival, share of the row-free baseline, nonzeros)}, of those on which both were measured."""
    own, theirs, rivals = column(state), "warm" if state == "overlapped" else state, {}
    rows = [row for row in rows if row["precision"] == precision]
    for row in rows:
        if row["kernel"].startswith(RIVALS):
            rivals[row["matrix"]] = min(row[column(theirs)], rivals.get(row["matrix"], math.inf))
    return {
        row["matrix"] + "*" * (row["source"] == "stand-in"): (
            rivals[row["matrix"]] / row[own],
            row[column(f"baseline_{theirs}")] / row[own],
            row["nnz"],
        )
        for row in rows
        if row["kernel"] == kernel and own in row and row["matrix"] in rivals
    }


def lines(rows, kernel):
    yield "precision state      matrices  mean  of baseline  worst"
    for precision, state in LINES:
        if found := compared(rows, kernel, precision, state):
            worst = ", ".join(
                f"{speedup:.2f} {name}"
                for name, (speedup, *_) in sorted(found.items(), key=lambda item: item[1][0])[:3]
            )
            shares = [share for _, share, nnz in found.values() if nnz > 1e6]
            share = f"{geometric_mean(shares):12.0%}" if shares else "           -"
            mean = geometric_mean(speedup for speedup, *_ in found.values())
            yield f"{precision:9} {state:10} {len(found):8} {mean:5.2f}  {share}  {worst}"
    sources = collections.Counter(
        {row["matrix"]: row["source"] for row in rows if row["kernel"] == kernel}.values()
    )
    yield f"matrices: {sources['file']} real files, {sources['generated']} generated, {sources['stand-in']} stand-ins*"


def side_by_side(of_device, kernel):
    """lines(), shorter, with two columns per device."""
    yield "                              " + "".join(f"  {device:>22}" for device in of_device)
    yield "precision state      matrices " + "           mean   worst" * len(of_device)
    for precision, state in LINES:
        every = [compared(rows, kernel, precision, state) for rows in of_device.values()]
        if shared := set.intersection(*map(set, every)):
            speedups = [[found[matrix][0] for matrix in shared] for found in every]
            yield (
                f"{precision:9} {state:10} {len(shared):8} "
                + "".join(f"{geometric_mean(of):15.2f} {min(of):7.2f} " for of in speedups).rstrip()
            )


def main(argv=None):
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("kernel")
    parser.add_argument(
        "paths",
        nargs="+",
        type=Path,
        metavar="records",
        help="files of records, or directories of them",
    )
    arguments = parser.parse_args(argv)
    files, of_device = {}, {}  # a measurement supersedes an older one of its device only
    try:
        for path in arguments.paths:
            files.setdefault(path if path.is_dir() else path.parent, []).extend(
                files_in(path) if path.is_dir() else [path]
            )
        for row in (row for of in files.values() for row in rows_of(of, keep=on_gpu)):
            of_device.setdefault(row["device"], []).append(row)
    except (RecordError, OSError) as error:
        sys.exit(f"error: {error}")
    kernels = {row["kernel"] for rows in of_device.values() for row in rows}
    if not kernels:
        sys.exit("error: no times of a GPU in these records")
    if arguments.kernel not in kernels:
        sys.exit(f"error: no records of {arguments.kernel}; there are {', '.join(sorted(kernels))}")
    print(
        "\n".join(
            side_by_side(of_device, arguments.kernel)
            if len(of_device) > 1
            else lines(*of_device.values(), arguments.kernel)
        )
    )


if __name__ == "__main__":
    main()
