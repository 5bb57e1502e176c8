#!/usr/bin/env python3
"""What each kernel asked of each array, from the records of a run on the CPU backend:

    make run MATRIX=stencil2d:3x2 ARGS="--json /dev/stdout" | python3 plots/traffic.py

A line an array: requests of a warp, the lanes that took part in one, the sectors of 32 bytes that
all of them touched, the sectors a request, and the fewest that could hold the bytes it used. Where
there are atomics, also how many there are (one a lane) and the lanes of a request that share an
address: on average, and at most. Lines of the input that are no records are skipped.
"""

import json
import sys

FORM = "{:<{width}} {:<15} {:<6} {:>9} {:>6} {:>9} {:>11} {:>6}"
ATOMICS = " {:>9} {:>8} {:>5}"


def main():
    records = [json.loads(line) for line in sys.stdin if line.startswith("{")]
    lines = [
        (r["kernel"], t) for r in records for t in r.get("traffic", []) if t["space"] == "global"
    ]
    width = max([20] + [len(kernel) for kernel, _ in lines])
    header = FORM.format(
        "kernel", "array", "access", "requests", "lanes", "sectors", "a request", "ideal", width=width
    )
    if any(t["access"] == "atomic" for _, t in lines):
        header += ATOMICS.format("atomics", "together", "most")
    print(header, "-" * len(header), sep="\n")
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


if __name__ == "__main__":
    main()
