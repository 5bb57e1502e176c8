#!/usr/bin/env python3
"""Conjugate gradients on several GPUs: plots/results/DEVICE/solver, which 10_multigpu/solvers_compared.cu writes.

    plots/python.sh plots/measure/solver.py DEVICE

Per matrix and number of GPUs: microseconds per iteration of one persistent kernel per GPU, of the same solver driven by the host,
and of the product and the vector update alone, by kernels of their own without anything between them.
"""

import json
import sys
from pathlib import Path

RESULTS = Path(__file__).resolve().parent.parent / "results"


def rows(device):
    """One line per matrix and number of GPUs, the last record of each."""
    found = {}
    for file in sorted((RESULTS / device / "solver").glob("*.jsonl")):
        for line in file.read_text(encoding="utf-8").splitlines():
            record = json.loads(line)
            if record["verified"]:
                found.setdefault((record["matrix"], record["gpus"]), {})[record["solver"]] = record
    of_one = {matrix: of["persistent"] for (matrix, gpus), of in found.items() if gpus == 1}
    for (matrix, gpus), of in sorted(
        found.items(), key=lambda item: (item[1]["host"]["nnz"], item[0])
    ):
        ours, host = (of[name]["us_per_iteration"]["median"] for name in ("persistent", "host"))
        kernels = of["persistent"]["us_products_and_vectors"]
        bytes_per_us = of["persistent"]["bytes_per_iteration"] / gpus / ours
        one = of_one.get(matrix)
        efficiency = one and f"{one['us_per_iteration']['median'] / gpus / ours:.0%}"
        yield (
            f"{matrix:32}{gpus:5}{of['persistent']['iterations']:11}{ours:9.1f}{kernels:9.1f}{host:9.1f}"
            f"{1e6 * bytes_per_us / of['persistent']['copy_bytes_per_s']:9.0%}{efficiency or '-':>11}"
        )


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    print(f"{'':32}{'':16}{'us per iteration':^27}{'of a':>9}")
    print(
        f"{'matrix':32}{'GPUs':>5}{'iterations':>11}{'ours':>9}{'kernels':>9}{'by host':>9}{'copy':>9}{'efficiency':>11}"
    )
    print("\n".join(rows(sys.argv[1])))


if __name__ == "__main__":
    main()
