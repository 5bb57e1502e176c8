#!/usr/bin/env python3
"""A kernel against the best of cuSPARSE's CSR and COO algorithms (SpMVOp among them), from measured records.

    plots/python.sh plots/measure/compare.py pcsr_one_pass plots/results/NVIDIA_H200
    plots/python.sh plots/measure/compare.py pcsr_one_pass plots/results/*/steps_06_race.jsonl

For each precision and state (warm: products back to back, inputs in the L2 as far as they fit; cold: L2
flushed; overlapped: as warm, but each product of the kernel starts while the one before it ends, and
cuSPARSE's are those of warm): the geometric mean over all matrices of (time of cuSPARSE's
best on that matrix) / (time of the kernel), the three worst matrices, and the kernel's share of the speed of the row-free
baseline (device/baseline.cuh) on matrices of over a million nonzeros. Above 1 the kernel is the faster one. Of records of several
devices: mean and worst on each, side by side, over the matrices that all of them have.
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
    return own[["nnz", "speedup", "share"]].dropna(subset=["speedup"])


def lines(times, kernel):
    yield "precision state      matrices  mean  of baseline  worst"
    for precision in ("f64", "f32"):
        for state in STATES:
            if column(state) not in times:
                continue
            found = speedups(times[times.precision == precision], kernel, state)
            if found.empty:
                continue
            worst = ", ".join(f"{row.speedup:.2f} {name}" for name, row in
                              found.sort_values("speedup", kind="stable").head(3).iterrows())
            shares = found.share[found.nnz > 1e6]
            share = f"{geometric_mean(shares):12.0%}" if len(shares) else "           -"
            mean = geometric_mean(found.speedup)
            yield f"{precision:9} {state:10} {len(found):8} {mean:5.2f}  {share}  {worst}"


def side_by_side(times, kernel):
    """lines(), shorter, with two columns per device."""
    devices = times.device.unique()
    shared = times[times.kernel == kernel].groupby("matrix").device.nunique()
    times = times[times.matrix.isin(shared[shared == len(devices)].index)]
    yield "                              " + "".join(f"  {device:>22}" for device in devices)
    yield "precision state      matrices " + "           mean   worst" * len(devices)
    for precision in ("f64", "f32"):
        for state in [state for state in STATES if column(state) in times]:
            found = [speedups(times[(times.precision == precision) & (times.device == device)], kernel, state).speedup for device in devices]
            if all(map(len, found)):
                yield f"{precision:9} {state:10} {len(found[0]):8} " + "".join(f"{geometric_mean(of):15.2f} {of.min():7.2f} " for of in found).rstrip()


def main(argv=None):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("kernel")
    parser.add_argument("paths", nargs="+", type=Path, metavar="records", help="files of records, or directories of them")
    arguments = parser.parse_args(argv)
    try:
        of_device = {}  # a measurement supersedes an older one of its device only
        for path in arguments.paths:
            of_device.setdefault(path if path.is_dir() else path.parent, []).extend(files_in(path) if path.is_dir() else [path])
        times = pandas.DataFrame([row for files in of_device.values() for row in rows_of(files)])
    except (RecordError, OSError) as error:
        sys.exit(f"error: {error}")
    if times.empty or "cold_ms" not in times:
        sys.exit("error: no times of a GPU in these records")
    times = times[times.cold_ms.notna()]
    if not (times.kernel == arguments.kernel).any():
        sys.exit(f"error: no records of {arguments.kernel}; there are {', '.join(sorted(set(times.kernel)))}")
    print("\n".join((lines if times.device.nunique() == 1 else side_by_side)(times, arguments.kernel)))


if __name__ == "__main__":
    main()
