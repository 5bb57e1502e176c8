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

From the records of a run with --profile:
--lines prints a line for each line of the source that touches memory. --model prints what the
modelled caches let through: bytes that pass the L1, that are read from DRAM and written to it, in
MB. --pictures DIRECTORY draws, one file per kernel, the lanes of the first warp against the addresses of
their first requests (KERNEL.png; needs Matplotlib, with which `plots/python.sh plots/measure/traffic.py` runs
it).
"""

import argparse
import json
import signal
import sys
from pathlib import Path

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


def print_lines(records):
    form = "{:<26} {:<32} {:<6} {:>9} {:>6} {:>11} {:>6}"
    print_title(form.format("line", "array", "access", "requests", "lanes", "per request", "ideal"))
    for record in records:
        for t in record["lines"]:
            if t["space"] == "none":
                continue
            n = t["requests"]
            shared = t["space"] == "shared"
            asked, ideal = ("bank_passes", "ideal_bank_passes") if shared else ("sectors", "ideal_sectors")
            place = f"{t['file'].rsplit('/', 1)[-1]}:{t['line']}"
            array = ("shared " if shared else "") + t["array"].rsplit(":", 1)[-1]
            print(form.format(place, array, t["access"], n, f"{t['lanes'] / n:.1f}",
                              f"{t[asked] / n:.2f}", f"{t[ideal] / n:.2f}"))


def print_model(records):
    form = "{:<20} {:<16} {:>9} {:>9} {:>9} {:>9}"
    print_title(form.format("kernel", "caches of", "asked", "past L1", "DRAM read", "written"))
    for record in records:
        def megabytes(name):
            return f"{sum(t[name] for t in record['lines']) * 32 / 1e6:.3f}"

        written = sum(k["model_dram_write_sectors"] for k in record["kernels"]) * 32 / 1e6
        print(form.format(record["kernel"], record["model_gpu"], megabytes("sectors"),
                          megabytes("model_l2_sectors"), megabytes("model_dram_sectors"), f"{written:.3f}"))


# --- Pictures -------------------------------------------------------------------------------------


def draw(record, directory):
    """Lanes against addresses, a picture for each array that the kernel loads, stores or adds to."""
    import style

    firsts = [f for f in record["first_requests"] if f["space"] == "global"]
    firsts = firsts or record["first_requests"]
    columns = min(len(firsts), 4)
    rows = -(-len(firsts) // columns)
    title = f"{record['kernel']} on {record['matrix'].split(',')[0]}, {record['precision']}: " \
            "where the lanes of the first warp read and write"
    figure = style.new_figure(3.1 * columns + 0.4, 2.5 * rows + 0.6, title)
    for axes, first in zip(figure.subplots(rows, columns, squeeze=False).flat, firsts):
        size = first["size"]
        there = [offset for offsets in first["offsets"] for offset in offsets if offset >= 0]
        low, high = min(there) // 32 * 32, -(-(max(there) + size) // 32) * 32
        high = max(high, low + 32 * 32)  # as many sectors as a request can take, that pictures compare
        height = max(size, (high - low) / 64)  # enough to be seen
        for number, offsets in enumerate(first["offsets"]):
            lanes = [lane for lane, offset in enumerate(offsets) if offset >= 0]
            shade = 1 - 0.8 * number / max(len(first["offsets"]), 2)
            axes.bar(lanes, [height] * len(lanes), 0.9, bottom=[offsets[lane] for lane in lanes],
                     color=style.CYCLE[number % 8], alpha=shade, linewidth=0)
        axes.set_ylim(low, high)
        axes.set_xlim(-0.8, 31.8)
        if (high - low) // 32 <= 128:  # borders of sectors
            axes.set_yticks(range(low, high + 1, 32), minor=True)
            axes.grid(True, which="minor", axis="y", color="#eeeeee", linewidth=0.4)
        axes.set_xticks([0, 8, 16, 24, 31])
        axes.ticklabel_format(axis="y", style="plain", useOffset=False)
        place = f"{first['file'].rsplit('/', 1)[-1]}:{first['line']}"
        axes.set_title(f"{first['access']} {first['array'].rsplit(':', 1)[-1]}\n{place}", loc="left", fontsize=8)
        axes.set_xlabel("lane")
        axes.set_ylabel("byte of the array")
    for axes in figure.axes[len(firsts):]:
        axes.axis("off")
    style.finish(figure, ["One colour per request, blue first, then orange, green, purple, ...; fine lines: borders of "
                          "sectors of 32 bytes."])
    directory.mkdir(parents=True, exist_ok=True)
    style.save_png(figure, directory, record["kernel"])


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    choice = parser.add_mutually_exclusive_group()
    choice.add_argument("--bytes", action="store_true", help="bytes per nonzero, one line per kernel")
    choice.add_argument("--shared", action="store_true", help="shared memory and its banks")
    choice.add_argument("--needed", action="store_true", help="bytes that a product must move")
    choice.add_argument("--moved", action="store_true", help="bytes that it asks for")
    choice.add_argument("--lines", action="store_true", help="a line a line of the source; needs --profile")
    choice.add_argument("--model", action="store_true", help="past the modelled caches; needs --profile")
    choice.add_argument("--pictures", type=Path, metavar="DIRECTORY", help="lanes against addresses, as PNG")
    arguments = parser.parse_args()
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)  # `| head` ends this, too, without a word
    records = list(join(json.loads(line) for line in sys.stdin if line.startswith("{")))
    if arguments.needed:
        return print_by_matrix(records, lambda record: record["compulsory_bytes"])
    records = [record for record in records if record.get("traffic")]
    if arguments.moved:
        return print_by_matrix(records, sector_bytes)
    if arguments.lines or arguments.model or arguments.pictures:
        records = [record for record in records if record.get("lines")]
        if not records:
            sys.exit("traffic.py: no records of a run with --profile")
    if arguments.pictures:
        for record in records:
            draw(record, arguments.pictures)
        return
    show = (print_bytes if arguments.bytes else print_shared if arguments.shared else
            print_lines if arguments.lines else print_model if arguments.model else print_requests)
    matrices = list(dict.fromkeys(record["matrix"] for record in records))
    for matrix in matrices:
        if len(matrices) > 1:
            print(f"\n{matrix}")
        show([record for record in records if record["matrix"] == matrix])


if __name__ == "__main__":
    main()
