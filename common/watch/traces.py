"""Reads traces (README.md in this directory): checks them, and counts what they hold."""

import json
from collections import defaultdict

VERSION = 2
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
            raise TraceError(f"{path}:{number}: version {version} of a trace, not {VERSION}; record it again")
        traces.append(trace)
    if not traces:
        raise TraceError(f"{path}: holds no trace: no kernel that runs on the device was recorded")
    return traces


def lanes_of(mask):
    return [lane for lane in range(LANES) if mask >> lane & 1]


def addresses_of(deltas):
    """Byte offsets into the array, one per active lane, from the differences that an event has."""
    address, addresses = 0, []
    for delta in deltas:
        address += delta
        addresses.append(address)
    return addresses


# --- Is it a trace? -------------------------------------------------------------------------------


MEMBERS = {
    "trace": int, "kernel": dict, "matrix": dict, "precision": str, "alpha": (int, float), "beta": (int, float),
    "seed": int, "schedule": str, "compulsory_bytes": (int, float), "estimates": list, "verified": bool,
    "failure": str, "wrong_rows": list, "truncated": bool, "sources": list, "places": list, "arrays": list, "instructions": list,
    "launches": list, "streams": list, "values": list, "events": list,
}  # fmt: skip
SHAPES = {  # of events: the number of elements after the name
    "launch": {1}, "block": {1}, "warp": {1}, "at": {2}, "load": {4}, "store": {4}, "atomic": {5},
    "warp operation": {2, 4, 5}, "wait": {2}, "barrier": {0}, "copy": {6}, "record": {2}, "stream wait": {2}, "failure": {1},
}  # fmt: skip


def validate(trace):
    """Raises TraceError if `trace` does not follow the schema; the text names member or event."""
    for name, kind in MEMBERS.items():
        if not isinstance(trace.get(name), kind):
            raise TraceError(f"member '{name}': missing or of the wrong type")
    for number, (file, line) in enumerate(trace["places"]):
        source = trace["sources"][file]
        if source["file"] and not 0 < line <= source["text"].count("\n") + 1:
            raise TraceError(f"place {number}: {source['file']} has no line {line}")
    for number, instruction in enumerate(trace["instructions"]):
        if not 0 <= instruction["place"] < len(trace["places"]):
            raise TraceError(f"instruction {number}: no place {instruction['place']}")
        if ("array" in instruction) != (instruction["access"] in ACCESSES):
            raise TraceError(f"instruction {number}: an access has an array, nothing else does")
    for number, part in enumerate(trace.get("parts", [])):
        rows, (first, end), columns = part["rows"], part["boundary"], part["columns"]
        if not (0 <= first <= end <= len(rows) and all(0 <= row < trace["matrix"]["rows"] for row in rows)
                and all(-1 <= column < trace["matrix"]["columns"] for column in columns)):  # fmt: skip
            raise TraceError(f"part {number}: rows or columns that the matrix has not")
    block = warp = None
    blocks = warps = 0
    for number, event in enumerate(trace["events"]):
        try:
            kind, *rest = event
            if len(rest) not in SHAPES[kind]:
                raise ValueError(f"{len(rest)} elements")
            if kind == "launch":
                block = warp = None
                launch = trace["launches"][rest[0]]
                grid, threads = launch["grid"], launch["block"]
                blocks = grid[0] * grid[1] * grid[2]
                warps = -(-threads[0] * threads[1] * threads[2] // LANES)
            elif kind == "block":
                block, warp = rest[0], None
                if not 0 <= block < blocks:
                    raise ValueError(f"the launch has {blocks} blocks")
            elif kind == "warp":
                warp = rest[0]
                if not 0 <= warp < warps:
                    raise ValueError(f"the block has {warps} warps")
            elif kind in ("record", "stream wait"):
                trace["streams"][rest[kind == "record"]]
            elif kind == "copy":
                for array, offset in (rest[:2], rest[2:4]):
                    if array is not None and not 0 <= offset <= trace["arrays"][array]["bytes"] - rest[4]:
                        raise ValueError(f"outside {trace['arrays'][array]['name']}")
            elif kind in ACCESSES + ("at", "wait", "warp operation"):
                if warp is None or block is None:
                    raise ValueError("before any block and warp")
                validate_lanes(trace, kind, rest)
        except (KeyError, IndexError, TypeError, ValueError) as error:
            raise TraceError(f"event {number}, {json.dumps(event)[:100]}: {error}") from error


def validate_lanes(trace, kind, rest):
    number, mask, *lists = rest
    active = len(lanes_of(mask))
    if not 0 < mask < 1 << LANES:
        raise ValueError(f"mask {mask}")
    if kind == "at":
        trace["places"][number]
        return
    instruction = trace["instructions"][number]
    if kind in ACCESSES:
        if instruction["access"] != kind:
            raise ValueError(f"instruction {number} is a {instruction['access']}")
        array = trace["arrays"][instruction["array"]]
        for address in addresses_of(lists[0]):
            if not 0 <= address <= array["bytes"] - instruction["size"]:
                raise ValueError(f"byte {address} of {array['name']}, which has {array['bytes']}")
    for position, entries in enumerate(lists):
        if len(entries) != active:
            raise ValueError(f"{active} lanes, but {len(entries)} entries")
        if kind in ACCESSES and position > 0:
            for entry in entries:
                for value in entry if isinstance(entry, list) else [entry]:
                    trace["values"][value]


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
    found = {}
    for begin, end in ranges:
        found.update(dict.fromkeys(range(begin // unit, (end - 1) // unit + 1)))
    return list(found)


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


def requests(trace):
    """(event number, instruction, array, lanes, byte offsets) of every request."""
    for number, event in enumerate(trace["events"]):
        if event[0] in ACCESSES:
            instruction = trace["instructions"][event[1]]
            yield number, instruction, trace["arrays"][instruction["array"]], lanes_of(event[2]), addresses_of(event[3])


def measure(instruction, array, lanes, addresses):
    """The counts of one request, named as in a record's `traffic`."""
    size = instruction["size"]
    ranges = union(addresses, size)
    used = sum(end - begin for begin, end in ranges)
    counts = {"requests": 1, "lanes": len(lanes), "bytes_used": used, "addresses": len(set(addresses))}
    if array["space"] == "shared":
        passes, ideal = bank_passes(lanes, addresses, size, array["offset"])
        counts |= {"bank_passes": passes, "ideal_bank_passes": ideal}
    else:
        counts |= {"sectors": len(units(ranges, SECTOR)), "ideal_sectors": -(-used // SECTOR),
                   "lines": len(units(ranges, LINE)), "ideal_lines": -(-used // LINE)}  # fmt: skip
    return counts


def traffic(trace):
    """Counts summed by (array, space, access), as in a record's `traffic`."""
    sums = defaultdict(lambda: defaultdict(int))
    for _, instruction, array, lanes, addresses in requests(trace):
        of = sums[array["name"], array["space"], instruction["access"]]
        for name, count in measure(instruction, array, lanes, addresses).items():
            of[name] += count
    return sums
