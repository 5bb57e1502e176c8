#!/usr/bin/env python3
"""Where a kernel goes wrong, or is worst: what `make check` adds when it is not content.

    moments.py PROGRAM STEP WATCH [--own FILE] [--wrong]

Runs the kernels on small matrices, in three orders, and names the moment at which one is wrong;
where all are right, the request that touches most sectors it does not need. With the command
printed the page opens there; WATCH is its beginning: "make watch"; FILE is what was given as
KERNEL=. The kernels are all of the step, or those of FILE if PROGRAM has any.
--wrong: something is known to be wrong, so if not on these matrices, then on larger ones.
"""

import argparse
import re
import shlex
import sys
from pathlib import Path

import traces
import watch

MATRICES = ("stencil2d:4x3", "dense:2x70", "powerlaw:40x40,nnz=120", "stencil2d:16x16")
SCHEDULES = ("forward", "reverse", "random", "lockstep")
WORST_ON = "stencil2d:16x16"


def wrong_moment(trace):
    """The moment of a product that is not right, as a sentence; None if there is nothing to see."""
    failure = next((event[1] for event in trace["events"] if event[0] == "failure"), None)
    if failure:
        return failed_moment(trace, failure)
    if not trace["wrong_rows"] or not any(True for _ in traces.requests(trace)):
        return None
    row, expected, got = (trace["wrong_rows"][0][name] for name in ("row", "expected", "got"))
    last = None
    for of in traces.requests(trace, name="y"):
        for lane, element in zip(of.lanes, of.elements):
            if of.access != "load" and element == row:
                last = f"line {of.line}, lane {lane} of warp {of.warp}, block {of.block}"
    shown = (n for n in range(6, 17) if got is None or f"{got:.{n}g}" != f"{expected:.{n}g}")
    digits = next(shown, 17)
    expected = f"{expected:.{digits}g}"
    if last is None:
        return f"no lane writes y[{row}], which should be {expected}"
    what = f"{last}: the last to write y[{row}], which is"
    if got is not None:
        return f"{what} {got:.{digits}g} and should be {expected}"
    because, first = "", next(of for of in traces.requests(trace, name="y") if row in of.elements)
    if first.access != "store":  # an atomic operation reads, too
        because = (
            f": line {first.line} reads it, and it holds NaN; where beta is 0, y must not be read"
        )
    return f"{what} nan and should be {expected}{because}"


def failed_moment(trace, failure):
    """Where simt stopped a thread, and why."""
    place = re.search(r" at [^ ]*?:(\d+), block \((\d+),\d+,\d+\), thread \((\d+),", failure)
    if not place:
        return re.sub(r"^kernel .*?, (?=block \()", "", failure)
    line, block, thread = map(int, place.groups())
    what = failure[place.end() :].partition(": ")[2]
    return f"line {line}, lane {thread % 32} of warp {thread // 32}, block {block}: {what}"


def worst_moment(trace):
    """(unneeded sectors, sentence) of the request that touches most sectors more than its bytes need."""
    found = None
    for of in traces.requests(trace):
        if of.array["space"] != "global":
            continue
        sectors, ideal = of.counts["sectors"], of.counts["ideal_sectors"]
        if sectors - ideal > (found[0] if found else 0):
            what = f"{len(of.lanes)} lanes {of.access} {of.name}"
            place = f"line {of.line}, warp {of.warp}, block {of.block}"
            text = f"{place}: {what}, {sectors} sectors where {ideal} would do"
            found = sectors - ideal, text
    return found


def beside(kernel):
    """What to show: a kernel, and the one of which it is a version."""
    return f'"{kernel[3:]} {kernel}"' if kernel.startswith("my_") else kernel


def first_wrong(program, kernels, command):
    """What to print of the first kernel that is wrong; None if none is, or if it does nothing
    yet."""
    for matrix in MATRICES:
        for schedule in SCHEDULES:
            try:
                found = watch.record(program, matrix, kernels, "f64", schedule)
            except traces.TraceError:
                continue  # no format suits the matrix
            for trace in found:
                moment = None if trace["verified"] else wrong_moment(trace)
                if moment:
                    name = trace["kernel"]["name"]
                    order = "" if schedule == "forward" else f' ARGS="--schedule {schedule}"'
                    return (
                        f"{name} on {matrix}, {moment}",
                        f"{command} KERNELS={beside(name)} MATRIX={matrix}{order}",
                    )
    return None


def worst(program, kernels, command):
    """What to print of the worst request of the kernels."""
    moments = [
        (moment, trace["kernel"]["name"])
        for trace in watch.record(program, WORST_ON, kernels)
        if (moment := worst_moment(trace))
    ]
    if not moments:
        return None
    (_, sentence), name = max(moments, key=lambda found: found[0][0])
    return (
        f"{name} on {WORST_ON}, the worst request: {sentence}",
        f"{command} KERNELS={beside(name)} MATRIX={WORST_ON} FIND=worst",
    )


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("program", type=Path)
    parser.add_argument("step", type=Path)
    parser.add_argument("command")
    parser.add_argument("--own")
    parser.add_argument("--wrong", action="store_true")
    arguments = parser.parse_args()
    program, command = arguments.program, arguments.command
    if arguments.own:
        command += f" KERNEL={shlex.quote(arguments.own)}"
    try:
        names = watch.names_in(program, arguments.step.resolve().name[:2])
        kernels = [name for name in names if name.startswith("my_")] or names
        lines = first_wrong(program, kernels, command)
        if not lines and not arguments.wrong:
            lines = worst(program, kernels, command)
    except traces.TraceError as error:
        sys.exit(f"error: {error}")
    if lines:
        print(f"Where: {lines[0]}.\n        {lines[1]}")
    elif arguments.wrong:
        print(
            f"Right on {', '.join(MATRICES)}. What is wrong needs another matrix:\n        {command} MATRIX=..."
        )


if __name__ == "__main__":
    main()
