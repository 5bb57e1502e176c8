#!/usr/bin/env python3
"""What each kernel asked of each array, from the records of a run on the CPU backend:

    make run MATRIX=stencil2d:3x2 ARGS="--json /dev/stdout" | python3 plots/measure/traffic.py

One line per array: requests of a warp, the lanes that took part in one, the sectors of 32 bytes
that all of them touched, the sectors per request, and the fewest that could hold the bytes it used.
Where there are atomics, also how many there are (one per lane) and the lanes of a request that
share an address: on average, and at most. Lines of the input that are no records are skipped; each
matrix has a table of its own.

--bytes prints one line per kernel instead: the bytes of those sectors, loads and stores together, of
each array and of all, divided by the nonzeros of the matrix. --shared prints the arrays in shared
memory, with the passes in which the 32 banks serve them: without conflicts 1 per request, 2 if its
elements have 8 bytes.

--needed and --moved print one line per matrix and one column per kernel: the bytes that a product must read
and write in the kernel's format, A, x and y once each, and those of the sectors that it asks for,
divided by the nonzeros.
"""

import argparse
import collections
import json
import signal
import sys

from record_format import join


def print_table(columns, rows):
    """`columns`: {head: width}, to the left where the width is negative."""
    form = " ".join(f"{{:{'<' if width < 0 else '>'}{abs(width)}}}" for width in columns.values())
    title = form.format(*columns)
    print(title, "-" * len(title), sep="\n")
    for row in rows:
        print(form.format(*row).rstrip())


def entries(records, space):
    """(kernel, what it asked of an array) in a space of memory."""
    every = [(record["kernel"], t) for record in records for t in record["traffic"]]
    return [(kernel, t) for kernel, t in every if t["space"] == space]


ACCESS = {"array": -15, "access": -6, "requests": 9, "lanes": 6}


def access(t):
    """What stands below the heads of ACCESS."""
    return [t["array"], t["access"], t["requests"], f"{t['lanes'] / t['requests']:.1f}"]


def print_requests(records):
    lines = entries(records, "global")
    has_atomics = any(t["access"] == "atomic" for _, t in lines)
    columns = {"kernel": -max([20] + [len(kernel) for kernel, _ in lines]), **ACCESS}
    columns |= {"all sectors": 12, "per request": 12, "ideal": 6}
    columns |= {"atomics": 9, "together": 8, "most": 5} if has_atomics else {}

    def row(kernel, t):
        n = t["requests"]
        cells = [kernel, *access(t), t["sectors"], f"{t['sectors'] / n:.2f}"]
        cells.append(f"{t['ideal_sectors'] / n:.2f}")
        if t["access"] == "atomic":
            return [*cells, t["lanes"], f"{t['lanes'] / t['addresses']:.1f}", t["max_same_address"]]
        return [*cells, *[""] * (len(columns) - len(cells))]

    print_table(columns, [row(*line) for line in lines])


def print_shared(records):
    rows = []
    for kernel, t in entries(records, "shared"):
        passes = t["bank_passes"]
        t = {**t, "array": t["array"].removeprefix("spmv::")}
        rows.append([kernel, *access(t), passes, f"{passes / t['requests']:.2f}"])
    print_table({"kernel": -20, **ACCESS, "all passes": 11, "per request": 12}, rows)


def sector_bytes(record):
    """{array: bytes of the sectors of global memory that all requests touched}"""
    bytes_of = collections.Counter()
    for _, t in entries([record], "global"):
        bytes_of[t["array"]] += 32 * t["sectors"]
    return bytes_of


def per_nonzero(number, record):
    return f"{number / max(record['nnz'], 1):.1f}"


def print_bytes(records):
    arrays = list(dict.fromkeys(array for record in records for array in sector_bytes(record)))
    arrays.sort(key=lambda array: array == "y")  # what is written, last
    rows = []
    for record in records:
        of = sector_bytes(record)
        cells = [per_nonzero(of[array], record) if array in of else "" for array in arrays]
        rows.append([record["kernel"], *cells, per_nonzero(sum(of.values()), record)])
    print_table({"kernel": -20, **{array: max(len(array), 6) for array in arrays}, "all": 6}, rows)


def print_by_matrix(records, bytes_of):
    kernels = list(dict.fromkeys(record["kernel"] for record in records))
    matrices = list(dict.fromkeys(record["matrix"] for record in records))
    cells = {(r["matrix"], r["kernel"]): per_nonzero(bytes_of(r), r) for r in records}
    head = "bytes per nonzero"
    columns = {head: -max(map(len, [head, *matrices]))}
    columns |= {kernel: max(len(kernel), 6) for kernel in kernels}
    rows = [[m, *(cells.get((m, kernel), "-") for kernel in kernels)] for m in matrices]
    print_table(columns, rows)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    choice = parser.add_mutually_exclusive_group()
    for name, about in (
        ("--bytes", "bytes per nonzero, one line per kernel"),
        ("--shared", "shared memory and its banks"),
        ("--needed", "bytes that a product must move"),
        ("--moved", "bytes that it asks for"),
    ):
        choice.add_argument(name, action="store_true", help=about)
    arguments = parser.parse_args()
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)  # `| head` ends this, too, without a word
    records = list(join(json.loads(line) for line in sys.stdin if line.startswith("{")))
    if arguments.needed:
        return print_by_matrix(records, lambda record: record["compulsory_bytes"])
    records = [record for record in records if record.get("traffic")]
    if arguments.moved:
        return print_by_matrix(records, lambda record: sum(sector_bytes(record).values()))
    show = print_bytes if arguments.bytes else print_shared if arguments.shared else print_requests
    matrices = list(dict.fromkeys(record["matrix"] for record in records))
    for matrix in matrices:
        if len(matrices) > 1:
            print(f"\n{matrix}")
        show([record for record in records if record["matrix"] == matrix])


if __name__ == "__main__":
    main()
