#!/usr/bin/env python3
"""What each kernel asked of each array, from the records of a run on the CPU backend:

    make run MATRIX=stencil2d:3x2 ARGS="--json /dev/stdout" | python3 plots/traffic.py

A line an array: requests of a warp, the lanes that took part in one, the sectors of 32 bytes that
all of them touched, the sectors a request, and the fewest that could hold the bytes it used. Lines
of the input that are no records are skipped.
"""

import json
import sys

FORM = "{:<20} {:<15} {:<6} {:>9} {:>6} {:>9} {:>11} {:>6}"


def main():
    printed = FORM.format(
        "kernel", "array", "access", "requests", "lanes", "sectors", "a request", "ideal"
    )
    print(printed, "-" * len(printed), sep="\n")
    for line in sys.stdin:
        record = json.loads(line) if line.startswith("{") else {}
        for t in record.get("traffic", []):
            if t["space"] != "global":
                continue
            n = t["requests"]
            print(
                FORM.format(
                    record["kernel"], t["array"], t["access"], n, f"{t['lanes'] / n:.1f}",
                    t["sectors"], f"{t['sectors'] / n:.2f}", f"{t['ideal_sectors'] / n:.2f}",
                )
            )


if __name__ == "__main__":
    main()
