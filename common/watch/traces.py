"""Reads traces (README.md in this directory), and counts what they hold."""

import itertools
import json
from collections import Counter, defaultdict

VERSION = 3
SECTOR, LINE, BANK, LANES = 32, 128, 4, 32
ACCESSES = ("load", "store", "atomic")


class TraceError(Exception):
    """A file that is no trace, or not one of this version; the text says where and why."""


def read(path):
    """The traces in a file, one per kernel and matrix. Raises TraceError."""
    try:
        with open(path, encoding="utf-8") as file:
            lines = [line for line in file if line.strip()]
    except OSError as error:
        raise TraceError(f"{path}: {error.strerror}; spmv --trace FILE writes one") from error
    traces = []
    for number, line in enumerate(lines, 1):
        try:
            trace = json.loads(line)
        except ValueError as error:
            raise TraceError(f"{path}:{number}: not JSON: {error}; record it again") from error
        version = trace.get("trace") if isinstance(trace, dict) else None
        if version != VERSION:
            raise TraceError(
                f"{path}:{number}: version {version} of a trace, not {VERSION}; record it again"
            )
        traces.append(trace)
    if not traces:
        raise TraceError(f"{path}: holds no trace: no kernel that runs on the device was recorded")
    return traces


def lanes_of(mask):
    return [lane for lane in range(LANES) if mask >> lane & 1]


def addresses_of(deltas):
    """Byte offsets into the array, one per active lane, from the differences that an event has."""
    return list(itertools.accumulate(deltas))


# --- Counting -------------------------------------------------------------------------------------


def union(addresses, size):
    """The disjoint ranges of bytes that accesses of `size` bytes cover, in order."""
    ranges = []
    for begin in sorted(set(addresses)):
        if ranges and begin <= ranges[-1][1]:
            ranges[-1][1] = begin + size
        else:
            ranges.append([begin, begin + size])
    return ranges


def units(ranges, unit):
    """The units of `unit` bytes (sectors, lines) that hold them, in order."""
    return list(
        dict.fromkeys(
            number
            for begin, end in ranges
            for number in range(begin // unit, (end - 1) // unit + 1)
        )
    )


def bank_passes(lanes, addresses, size, offset):
    """Rounds in which the banks serve a request to shared memory, and without conflicts."""
    words = max(1, size // BANK)
    group = LANES // words
    passes = ideal = 0
    for first in range(0, LANES, group):
        load = defaultdict(set)
        for lane, address in zip(lanes, addresses):
            if first <= lane < first + group:
                for word in range((offset + address) // BANK, (offset + address) // BANK + words):
                    load[word % LANES].add(word)
        passes += max(map(len, load.values()), default=0)
        ideal += bool(load)
    return passes, ideal


def walk(trace):
    """(event number, event, (launch, block, warp) that began last) of every event."""
    at = dict.fromkeys(("launch", "block", "warp"))
    for number, event in enumerate(trace["events"]):
        if event[0] in at:
            at[event[0]] = event[1]
        yield number, event, tuple(at.values())


def requests(trace):
    """(event number, (launch, block, warp), instruction, array, lanes, byte offsets) of every request."""
    for number, event, at in walk(trace):
        if event[0] in ACCESSES:
            instruction = trace["instructions"][event[1]]
            yield (
                number,
                at,
                instruction,
                trace["arrays"][instruction["array"]],
                lanes_of(event[2]),
                addresses_of(event[3]),
            )


def measure(instruction, array, lanes, addresses):
    """The counts of one request, named as in a record's `traffic`."""
    size = instruction["size"]
    ranges = union(addresses, size)
    used = sum(end - begin for begin, end in ranges)
    counts = {
        "requests": 1,
        "lanes": len(lanes),
        "bytes_used": used,
        "addresses": len(set(addresses)),
    }
    if array["space"] == "shared":
        passes, ideal = bank_passes(lanes, addresses, size, array["offset"])
        counts |= {"bank_passes": passes, "ideal_bank_passes": ideal}
    else:
        counts |= {
            "sectors": len(units(ranges, SECTOR)),
            "ideal_sectors": -(-used // SECTOR),
            "lines": len(units(ranges, LINE)),
            "ideal_lines": -(-used // LINE),
        }
    return counts


def traffic(trace):
    """Counts summed by (array, space, access), as in a record's `traffic`."""
    sums = defaultdict(Counter)
    for _, _, instruction, array, lanes, addresses in requests(trace):
        sums[array["name"], array["space"], instruction["access"]].update(
            measure(instruction, array, lanes, addresses)
        )
    return sums
