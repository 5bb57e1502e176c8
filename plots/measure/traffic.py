#!/usr/bin/env python3
"""What each kernel asked of each array, from the records of a run on the CPU backend:

    make run MATRIX=stencil2d:3x2 ARGS="--json /dev/stdout" | python3 plots/measure/traffic.py

One line per array: requests of a warp, the lanes that took part in one, the sectors of 32 bytes that
all of them touched, the sectors per request, and the fewest that could hold the bytes it used. Where
there are atomics, also how many there are (one per lane) and the lanes of a request that share an
address: on average, and at most. Lines of the input that are no records are skipped; each matrix has
a table of its own.

--bytes prints one line per kernel instead: the bytes of those sectors, loads and stores together, of
each array and of all, divided by the nonzeros of the matrix. --shared prints the arrays in shared
memory, with the passes in which the 32 banks serve them: without conflicts 1 per request, 2 if its
elements have 8 bytes.

--needed and --moved print one line per matrix and one column per kernel: the bytes that a product must read
and write in the kernel's format, A, x and y once each, and those of the sectors that it asks for,
divided by the nonzeros.
"""

import argparse
import json
import signal
import sys

from record_format import join

FORM = "{:<{width}} {:<15} {:<6} {:>9} {:>6} {:>12} {:>12} {:>6}"
ATOMICS = " {:>9} {:>8} {:>5}"


def print_title(text):
    print(text, "-" * len(text), sep="\n")


def print_requests(records):
    lines = [
        (r["kernel"], t) for r in records for t in r["traffic"] if t["space"] == "global"
    ]
    width = max([20] + [len(kernel) for kernel, _ in lines])
    header = FORM.format(
        "kernel", "array", "access", "requests", "lanes", "all sectors", "per request", "ideal", width=width
    )
    if any(t["access"] == "atomic" for _, t in lines):
        header += ATOMICS.format("atomics", "together", "most")
    print_title(header)
    for kernel, t in lines:
        n = t["requests"]
        line = FORM.format(
            kernel, t["array"], t["access"], n, f"{t['lanes'] / n:.1f}", t["sectors"],
            f"{t['sectors'] / n:.2f}", f"{t['ideal_sectors'] / n:.2f}", width=width,
        )
        if t["access"] == "atomic":
            together = f"{t['lanes'] / t['addresses']:.1f}"
            line += ATOMICS.format(t["lanes"], together, t["max_same_address"])
        print(line)


def print_shared(records):
    form = "{:<20} {:<15} {:<6} {:>9} {:>6} {:>11} {:>12}"
    print_title(form.format("kernel", "array", "access", "requests", "lanes", "all passes", "per request"))
    for record in records:
        for t in record["traffic"]:
            if t["space"] == "shared":
                n = t["requests"]
                print(form.format(
                    record["kernel"], t["array"].removeprefix("spmv::"), t["access"], n,
                    f"{t['lanes'] / n:.1f}", t["bank_passes"], f"{t['bank_passes'] / n:.2f}",
                ))


def print_bytes(records):
    def moved(record):
        bytes_of = {}
        for t in record["traffic"]:
            if t["space"] == "global":
                share = 32 * t["sectors"] / max(record["nnz"], 1)
                bytes_of[t["array"]] = bytes_of.get(t["array"], 0) + share
        return bytes_of

    arrays = list(dict.fromkeys(array for record in records for array in moved(record)))
    arrays.sort(key=lambda array: array == "y")  # what is written, last
    form = "{:<20}" + "".join(f" {{:>{max(len(array), 6)}}}" for array in arrays) + " {:>6}"
    print_title(form.format("kernel", *arrays, "all"))
    for record in records:
        bytes_of = moved(record)
        cells = [f"{bytes_of[array]:.1f}" if array in bytes_of else "" for array in arrays]
        print(form.format(record["kernel"], *cells, f"{sum(bytes_of.values()):.1f}"))


def print_by_matrix(records, bytes_of):
    kernels = list(dict.fromkeys(record["kernel"] for record in records))
    matrices = list(dict.fromkeys(record["matrix"] for record in records))
    cells = {
        (r["matrix"], r["kernel"]): f"{bytes_of(r) / max(r['nnz'], 1):.1f}"
        for r in records
    }
    width = max(len(matrix) for matrix in ["bytes per nonzero", *matrices])
    form = f"{{:<{width}}}" + "".join(f" {{:>{max(len(kernel), 6)}}}" for kernel in kernels)
    print_title(form.format("bytes per nonzero", *kernels))
    for matrix in matrices:
        print(form.format(matrix, *(cells.get((matrix, kernel), "-") for kernel in kernels)))


def sector_bytes(record):
    return sum(32 * t["sectors"] for t in record["traffic"] if t["space"] == "global")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    choice = parser.add_mutually_exclusive_group()
    choice.add_argument("--bytes", action="store_true", help="bytes per nonzero, one line per kernel")
    choice.add_argument("--shared", action="store_true", help="shared memory and its banks")
    choice.add_argument("--needed", action="store_true", help="bytes that a product must move")
    choice.add_argument("--moved", action="store_true", help="bytes that it asks for")
    arguments = parser.parse_args()
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)  # `| head` ends this, too, without a word
    records = list(join(json.loads(line) for line in sys.stdin if line.startswith("{")))
    if arguments.needed:
        return print_by_matrix(records, lambda record: record["compulsory_bytes"])
    records = [record for record in records if record.get("traffic")]
    if arguments.moved:
        return print_by_matrix(records, sector_bytes)
    show = print_bytes if arguments.bytes else print_shared if arguments.shared else print_requests
    matrices = list(dict.fromkeys(record["matrix"] for record in records))
    for matrix in matrices:
        if len(matrices) > 1:
            print(f"\n{matrix}")
        show([record for record in records if record["matrix"] == matrix])


if __name__ == "__main__":
    main()
