#!/usr/bin/env python3
"""A kernel against the best of cuSPARSE's CSR and COO algorithms (SpMVOp among them), from measured records.

    plots/python.sh plots/measure/compare.py pcsr_one_pass plots/results/NVIDIA_H200

For each precision and state (warm: products back to back, inputs in the L2 as far as they fit; cold: L2
flushed; overlapped: as warm, but each product of the kernel starts while the one before it ends, and
cuSPARSE's are those of warm): the geometric mean over all matrices of (time of cuSPARSE's
best on that matrix) / (time of the kernel), the three worst matrices, and the kernel's share of the speed of the row-free
baseline (device/baseline.cuh) on matrices of over a million nonzeros. Above 1 the kernel is the faster one. A star marks a stand-in.
"""
import argparse
import sys
from pathlib import Path
from statistics import geometric_mean

import pandas

from record_format import STATES, RecordError, column
from records import files_in, rows_of

RIVALS = ("cusparse_csr", "cusparse_coo", "cusparse_spmvop")


def speedups(times, kernel, state):
    """A DataFrame, a row per matrix on which both were measured: speedup over the best rival, share of the row-free baseline."""
    theirs = "warm" if state == "overlapped" else state
    rivals = times[times.kernel.str.startswith(RIVALS)].groupby("matrix")[column(theirs)].min()
    own = times[times.kernel == kernel].set_index("matrix")
    own = own.assign(speedup=rivals / own[column(state)], share=own[column(f"baseline_{theirs}")] / own[column(state)])
    return own[["nnz", "source", "speedup", "share"]].dropna(subset=["speedup"])


def lines(times, kernel):
    yield "precision state      matrices  mean  of baseline  worst"
    for precision in ("f64", "f32"):
        for state in STATES:
            if column(state) not in times:
                continue
            found = speedups(times[times.precision == precision], kernel, state)
            if found.empty:
                continue
            worst = ", ".join(f"{row.speedup:.2f} {name}{'*' * (row.source == 'stand-in')}" for name, row in
                              found.sort_values("speedup", kind="stable").head(3).iterrows())
            shares = found.share[found.nnz > 1e6]
            share = f"{geometric_mean(shares):12.0%}" if len(shares) else "           -"
            mean = geometric_mean(found.speedup)
            yield f"{precision:9} {state:10} {len(found):8} {mean:5.2f}  {share}  {worst}"


def main(argv=None):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("kernel")
    parser.add_argument("paths", nargs="+", type=Path, metavar="records", help="files of records, or directories of them")
    arguments = parser.parse_args(argv)
    try:
        times = pandas.DataFrame(rows_of([file for path in arguments.paths for file in (files_in(path) if path.is_dir() else [path])]))
    except (RecordError, OSError) as error:
        sys.exit(f"error: {error}")
    if times.empty or "cold_ms" not in times:
        sys.exit("error: no times of a GPU in these records")
    times = times[times.cold_ms.notna()]
    if not (times.kernel == arguments.kernel).any():
        sys.exit(f"error: no records of {arguments.kernel}; there are {', '.join(sorted(set(times.kernel)))}")
    print("\n".join(lines(times, arguments.kernel)))
    of = times[times.kernel == arguments.kernel].drop_duplicates("matrix").source.value_counts()
    print(f"matrices: {of.get('file', 0)} real files, {of.get('generated', 0)} generated, {of.get('stand-in', 0)} stand-ins*")


if __name__ == "__main__":
    main()
