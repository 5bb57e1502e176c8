#!/usr/bin/env python3
"""Conjugate gradients on several GPUs: what solvers_compared.cu wrote to plots/results/DEVICE/solver.

    plots/python.sh plots/measure/solver.py DEVICE

Per matrix and number of GPUs: microseconds per iteration of one persistent kernel per GPU, of the
same solver driven by the host, and of the product and the vector update alone, by kernels of their
own without anything between them. A dagger marks records that do not name their machine code.
"""

import sys

from records import UNKNOWN_CODE, code_state, directory_of, files_in, read


def rows(device):
    """One line per matrix and number of GPUs."""
    found = {}
    for r in read(files_in(directory_of(device) / "solver")):
        found.setdefault((r["nnz"], r["matrix"], r["gpus"]), {})[r["kernel"]] = r
    for (nnz, matrix, gpus), of in sorted(found.items()):
        ours, host = (of[name]["us_per_iteration"]["median"] for name in ("persistent", "host"))
        own, one = of["persistent"], found.get((nnz, matrix, 1))
        share = 1e6 * own["bytes_per_iteration"] / gpus / ours / own["copy_bytes_per_s"]
        efficiency = one and one["persistent"]["us_per_iteration"]["median"] / gpus / ours
        mark = " †" if code_state(own) == UNKNOWN_CODE else ""
        yield (
            f"{matrix + mark:32}{gpus:5}{own['iterations']:11}{ours:9.1f}{own['us_products_and_vectors']:9.1f}"
            f"{host:9.1f}{share:9.0%}{f'{efficiency:.0%}' if one else '-':>11}"
        )


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    print(f"{'':48}{'us per iteration':^27}{'of a':>9}")
    heads = ["GPUs", "iterations", "ours", "kernels", "by host", "copy", "efficiency"]
    print(
        f"{'matrix':32}" + "".join(f"{h:>{w}}" for h, w in zip(heads, (5, 11, 9, 9, 9, 9, 11))),
        *rows(sys.argv[1]),
        sep="\n",
    )
