#!/usr/bin/env python3
"""A kernel against the best of cuSPARSE's CSR and COO algorithms, from measured records.

For each precision, warm and cold: the geometric mean over all matrices of (time of cuSPARSE's best on
that matrix) / (time of the kernel), the three worst matrices, and how near the kernel comes to the
floor on matrices of over a million nonzeros. Above 1 the kernel is the faster one.
"""
import argparse
from pathlib import Path
from statistics import geometric_mean

from records import on_gpu, read_records, records_in, short


def read(paths):
    """{(matrix, precision): (nonzeros, {kernel or 'floor': {'warm': ms, 'cold': ms}})}"""
    runs = {}
    found = (read_records(p.name, p.parent) if p.is_dir() else records_in(p) for p in paths)
    for record in (record for records in found for record in records):
        if not on_gpu(record):
            continue
        matrix = record["matrix"]
        _, times = runs.setdefault((matrix["name"], record["precision"]), (matrix["nnz"], {}))
        for name, prefix in ((record["kernel"], ""), ("floor", "floor_")):
            times[name] = {
                state: record[f"{prefix}{state}_ms"]["median"] for state in ("warm", "cold")
            }
    return runs


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("kernel")
    parser.add_argument("paths", nargs="+", type=Path, metavar="records",
                        help="files of records, or a device's directory: its newest")
    arguments = parser.parse_args()

    runs = read(arguments.paths)
    print("precision state  matrices  mean  of the floor  worst")
    for precision in ("f64", "f32"):
        for state in ("warm", "cold"):
            speedups, shares = [], []
            for (matrix, its_precision), (nnz, times) in runs.items():
                rivals = [
                    time[state]
                    for name, time in times.items()
                    if name.startswith(("cusparse_csr", "cusparse_coo"))
                ]
                if its_precision != precision or arguments.kernel not in times or not rivals:
                    continue
                own = times[arguments.kernel][state]
                speedups.append((min(rivals) / own, matrix))
                if nnz > 1e6:
                    shares.append(times["floor"][state] / own)
            if not speedups:
                continue
            worst = ", ".join(f"{s:.2f} {short(m)}" for s, m in sorted(speedups)[:3])
            mean = geometric_mean([s for s, _ in speedups])
            share = f"{geometric_mean(shares):12.0%}" if shares else "           -"
            print(f"{precision:9} {state:6} {len(speedups):8} {mean:5.2f}  {share}  {worst}")


if __name__ == "__main__":
    main()
