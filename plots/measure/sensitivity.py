#!/usr/bin/env python3
"""How much times depend on the protocol, from records of `make bench SET=sensitivity`: a table.

    plots/python.sh plots/measure/sensitivity.py [DEVICE]

Each line changes one thing of the protocol (10 launches before the timed ones, the median of three
processes' medians, inputs in the L2 as far as they fit) and says by how much the times of all
kernels on all matrices change, and on how many matrices another kernel becomes the fastest.
"""

import sys
from statistics import median

from record_format import RecordError
from records import directory_of, milliseconds, read
from tables import Table


def times_of(records, *state, **quartile):
    return {(r["matrix"], r["kernel"]): milliseconds(r, *state, **quartile) for r in records}


def fastest(times):
    """{matrix: the kernel with the least time}"""
    found = {}
    for matrix, kernel in sorted(times, key=times.get):
        found.setdefault(matrix, kernel)
    return found


def line(label, before, after):
    """What becomes of the times `before` where the protocol gives `after`."""
    changes = sorted(abs(after[thing] / ms - 1) for thing, ms in before.items() if thing in after)
    was = fastest(before)
    is_now = fastest({thing: ms for thing, ms in after.items() if thing in before})
    sizes = median(changes), changes[int(0.95 * len(changes))], changes[-1]
    others = sum(is_now[matrix] != was[matrix] for matrix in is_now)
    sizes = [f"{100 * change:.1f}%" for change in sizes]
    return [label, str(len(changes)), *sizes, f"{others} of {len(is_now)}"]


def table(directory):
    usual, longer = (
        read([directory / "sensitivity" / f"warm_up_{count}.jsonl"]) for count in (10, 100)
    )
    times = times_of(usual)
    after = {
        "100 launches before the timed ones": times_of(longer),
        "one process: the fastest of three": times_of(usual, quartile="lower"),
        "one process: the slowest of three": times_of(usual, quartile="upper"),
        "the L2 flushed before each product": times_of(usual, "cold"),
    }
    columns = ["what changes", "times", "median change", "95% below", "most"]
    rows = [line(label, times, of) for label, of in after.items()]
    return Table("", [*columns, "another kernel is the fastest on"], rows)


def main(argv):
    try:
        print(table(directory_of(argv[0] if argv else "NVIDIA_H200")).markdown(), end="")
    except (RecordError, FileNotFoundError) as error:
        sys.exit(f"error: {error}; `make bench SET=sensitivity` measures it")


if __name__ == "__main__":
    main(sys.argv[1:])
