"""Reads traces (README.md in this directory), and counts what they hold."""

import itertools
import json
from collections import Counter, defaultdict

VERSION = 4
SECTOR, LANES = 32, 32
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
        trace["counts"] = counts_of(trace)
        traces.append(trace)
    if not traces:
        raise TraceError(f"{path}: holds no trace: no kernel that runs on the device was recorded")
    return traces


def lanes_of(mask):
    return [lane for lane in range(LANES) if mask >> lane & 1]


def addresses_of(deltas):
    """Byte offsets into the array, one per active lane, from the differences that an event has."""
    return list(itertools.accumulate(deltas))


# --- What simt counted ----------------------------------------------------------------------------


def counts_of(trace):
    """{event number: counts, named as in a record's `traffic`} of every request to memory."""
    found, rows = {}, iter(trace["requests"])
    for number, event in enumerate(trace["events"]):
        if event[0] not in ACCESSES:
            continue
        used, sectors, lines, passes, ideal_passes, *_ = next(rows)
        counts = {"requests": 1, "lanes": event[2].bit_count(), "bytes_used": used}
        array = trace["arrays"][trace["instructions"][event[1]]["array"]]
        if array["space"] == "shared":
            counts |= {"bank_passes": passes, "ideal_bank_passes": ideal_passes}
        else:
            counts |= {"sectors": sectors, "ideal_sectors": -(-used // SECTOR), "lines": lines}
        found[number] = counts
    return found


def sectors_of(addresses, size):
    """The numbers of the sectors that accesses of `size` bytes touch."""
    return {
        sector
        for address in addresses
        for sector in range(address // SECTOR, (address + size - 1) // SECTOR + 1)
    }


def walk(trace):
    """(event number, event, (launch, block, warp) that began last) of every event."""
    at = dict.fromkeys(("launch", "block", "warp"))
    for number, event in enumerate(trace["events"]):
        if event[0] in at:
            at[event[0]] = event[1]
        yield number, event, tuple(at.values())


class Request:
    """Of a warp, to memory. `values`: what is loaded or stored, or what an atomic finds; a list for
    two words."""

    def __init__(self, trace, number, event, at):
        self.access, instruction, mask, deltas, words, *_ = event
        instruction, known = trace["instructions"][instruction], trace["values"]
        self.event, (self.launch, self.block, self.warp) = number, at
        self.array, self.size = trace["arrays"][instruction["array"]], instruction["size"]
        self.name, self.counts = self.array["name"], trace["counts"][number]
        self.file, self.line = trace["places"][instruction["place"]]
        self.lanes, self.addresses = lanes_of(mask), addresses_of(deltas)
        self.elements = [address // self.size for address in self.addresses]
        self.values = [[known[i] for i in v] if isinstance(v, list) else known[v] for v in words]


def requests(trace, **wanted):
    """Those requests of which `wanted` holds, as in requests(trace, name="x", access="load")."""
    for number, event, at in walk(trace):
        if event[0] in ACCESSES:
            request = Request(trace, number, event, at)
            if wanted.items() <= vars(request).items():
                yield request


def traffic(trace):
    """Counts summed by (array, space, access), as in a record's `traffic`."""
    sums = defaultdict(Counter)
    for of in requests(trace):
        sums[of.name, of.array["space"], of.access].update(of.counts)
    return sums
