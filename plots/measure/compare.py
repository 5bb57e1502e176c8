#!/usr/bin/env python3
"""A kernel against the best of cuSPARSE's CSR and COO algorithms (SpMVOp too), from records.

    plots/python.sh plots/measure/compare.py pcsr_one_pass plots/results/NVIDIA_H200
    plots/python.sh plots/measure/compare.py pcsr_one_pass plots/results/NVIDIA_*

For each precision and state (warm: products back to back, inputs in the L2 as far as they fit;
cold: L2 flushed; overlapped: as warm, but each product of the kernel starts while the one before it
ends, and cuSPARSE's are those of warm): the geometric mean over all matrices of (time of cuSPARSE's
best on that matrix) / (time of the kernel), the three worst matrices, and the kernel's share of the
speed of the row-free baseline (device/baseline.cuh) on matrices of over a million nonzeros. Above 1
the kernel is the faster one. A star marks a stand-in. Of records of several devices: mean and worst
on each, side by side, over the matrices that all of them have.
"""

import argparse
import itertools
import sys
from pathlib import Path
from statistics import geometric_mean

from record_format import STATES, RecordError, column
from records import TIME_CLASSES, Data, files_in, on_gpu, starred, time_class

RIVALS = ["cusparse_csr*", "cusparse_coo*", "cusparse_spmvop*"]
PRECISIONS = ("f64", "f32")


def compared(data, kernel, precision, state):
    """{matrix: (speedup over the best rival, share of the row-free baseline, nonzeros,
    milliseconds)}, of those on which both were measured."""
    own, theirs, found = column(state), "warm" if state == "overlapped" else state, {}
    for matrix in data.matrices:
        record = data.times.get((matrix, precision, kernel), {})
        rival = data.fastest(matrix, precision, RIVALS, state=theirs)
        if rival and own in record:
            ratios = (
                ms / record[own]
                for ms in (rival[column(theirs)], record[column(f"baseline_{theirs}")])
            )
            found[starred(matrix, record["source"])] = *ratios, record["nnz"], record[own]
    return found


def lines(data, kernel, states=STATES, by_class=True):
    """Of classes of time, or of all times together."""
    head, most = ("product of   ", 2) if by_class else ("", 3)
    yield f"precision state      {head}matrices  mean  of baseline  worst"
    for precision, state in itertools.product(PRECISIONS, states):
        every = compared(data, kernel, precision, state)
        for name in (TIME_CLASSES if by_class else [""]) if every else []:
            found = {m: of for m, of in every.items() if name in ("", time_class(of[-1]))}
            line = f"{precision:9} {state:10} {name:{len(head)}}{len(found):8}"
            if not found:
                yield f"{line}     -             -  not measured yet"
                continue
            worst = sorted(found, key=lambda matrix: found[matrix][0])[:most]
            worst = ", ".join(f"{found[matrix][0]:.2f} {matrix}" for matrix in worst)
            shares = [share for _, share, nnz, _ in found.values() if nnz > 1e6]
            share = f"{geometric_mean(shares):12.0%}" if shares else "           -"
            mean = geometric_mean(speedup for speedup, *_ in found.values())
            yield f"{line} {mean:5.2f}  {share}  {worst}"
    of = {matrix: r["source"] for (matrix, _, name), r in data.times.items() if name == kernel}
    files, made, stand_ins = map(list(of.values()).count, ("file", "generated", "stand-in"))
    yield f"matrices: {files} files, {made} generated, {stand_ins} stand-ins*"


def side_by_side(of_device, kernel, states=STATES):
    """lines(), shorter, with two columns per device."""
    yield " " * 43 + "".join(f"  {device:>22}" for device in of_device)
    yield "precision state      product of   matrices " + "           mean   worst" * len(of_device)
    for precision, state in itertools.product(PRECISIONS, states):
        every = [compared(data, kernel, precision, state) for data in of_device.values()]
        shared = set.intersection(*map(set, every))
        of_class = {name: [] for name in TIME_CLASSES}
        for matrix in sorted(shared):
            of_class[time_class(max(found[matrix][-1] for found in every))].append(matrix)
        for name, matrices in of_class.items() if shared else []:
            line = f"{precision:9} {state:10} {name:12} {len(matrices):8} "
            for found in every:
                of = [found[matrix][0] for matrix in matrices]
                mean, worst = (f"{geometric_mean(of):.2f}", f"{min(of):.2f}") if of else "--"
                line += f"{mean:>15} {worst:>7} "
            yield line.rstrip()


def main(argv=None):
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("kernel")
    about = "files of records, or directories of them"
    parser.add_argument("paths", nargs="+", type=Path, metavar="records", help=about)
    parser.add_argument("--state", choices=STATES, help="only this")
    about = "of one device: all times together, not by class"
    parser.add_argument("--all", action="store_true", help=about)
    arguments = parser.parse_args(argv)
    states = [arguments.state] if arguments.state else STATES
    files = {}  # a measurement supersedes an older one of its device only
    try:
        for path in arguments.paths:
            of, more = (path, files_in(path)) if path.is_dir() else (path.parent, [path])
            files.setdefault(of, []).extend(more)
        every = [Data(of.name, files=named) for of, named in files.items()]
    except (RecordError, OSError) as error:
        sys.exit(f"error: {error}")
    of_device = {data.device: data for data in every}
    kernels = {kernel for data in every for (_, _, kernel), r in data.times.items() if on_gpu(r)}
    if not kernels:
        sys.exit("error: no times of a GPU in these records")
    if arguments.kernel not in kernels:
        sys.exit(f"error: no records of {arguments.kernel}; there are {', '.join(sorted(kernels))}")
    if len(of_device) > 1:
        found = side_by_side(of_device, arguments.kernel, states)
    else:
        found = lines(*of_device.values(), arguments.kernel, states, not arguments.all)
    print("\n".join(found))


if __name__ == "__main__":
    main()
