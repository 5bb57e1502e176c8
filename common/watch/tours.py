"""Guided tours: text files in the steps, whose positions are looked up in a trace.

    # Two lanes per row                        a comment: what the tour is about
    matrix: stencil2d:16x16
    kernels: csr_vector csr_scalar
    schedule: turns                          if not forward
    command: steps --gpus 2                  a step's own program that runs them (step 10)

    == A title
    at: csr_vector load values warp=0 nth=1
    shows: lanes=32 sectors=17 needed=8
    Text, up to the next title.

`at` names a kernel, a kind of event (load, store, atomic, wait, barrier, copy, launch, failure, or
the name of a warp operation) and, of an access, the array. Of those that match, in the `launch`,
`block` and `warp` given, the `nth` is meant (1 if not given). `shows` states what holds there, and
is checked against the trace, never shown: `line` (text that the source line contains, last),
`lanes`, `sectors`, `needed` (sectors that would do), `lines`, `used` (bytes), `addresses`,
`passes`, `ideal` (passes without conflicts), `first` and `last` (the lowest and highest active
lane), `gpu` (that executes), `memory` (the GPU that owns the array); of a copy `bytes`, `from` and
`to` (a GPU, or `host`).
"""

import re
from dataclasses import dataclass, field

import traces

PLACES = ("launch", "block", "warp", "nth")
COUNTS = {
    "lanes": "lanes",
    "sectors": "sectors",
    "needed": "ideal_sectors",
    "lines": "lines",
    "used": "bytes_used",
    "addresses": "addresses",
    "passes": "bank_passes",
    "ideal": "ideal_bank_passes",
}


class TourError(Exception):
    """A tour that cannot be read or does not fit its traces; the text names file and line."""


@dataclass
class Stop:
    title: str
    line: int  # of the file
    at: str = ""
    shows: str = ""
    text: list = field(default_factory=list)


@dataclass
class Tour:
    path: object
    matrix: str = ""
    kernels: list = field(default_factory=list)
    schedule: str = "forward"
    command: str = ""
    stops: list = field(default_factory=list)

    def resolve(self, found):
        """The stops with the event of each in the trace of its kernel. Raises TourError if one is
        missing or shows something else."""
        by_name = {trace["kernel"]["name"]: trace for trace in found}
        resolved = []
        for stop in self.stops:
            try:
                kernel, event, facts = find(stop.at, by_name)
                check(stop.shows, facts)
            except ValueError as error:
                raise TourError(f"{self.path}:{stop.line}: '{stop.title}': {error}") from error
            resolved.append(
                {"title": stop.title, "text": " ".join(stop.text), "kernel": kernel, "event": event}
            )
        return resolved


def read(path):
    """A tour. Raises TourError."""
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except OSError as error:
        raise TourError(f"{path}: {error.strerror}") from error
    tour = Tour(path)
    for number, line in enumerate(lines, 1):
        name, _, value = (part.strip() for part in line.partition(":"))
        if line.startswith("#") or not line.strip():
            continue
        if line.startswith("== "):
            tour.stops.append(Stop(line[3:].strip(), number))
        elif not tour.stops and name in ("matrix", "kernels", "schedule", "command"):
            setattr(tour, name, value.split() if name == "kernels" else value)
        elif not tour.stops:
            raise TourError(
                f"{path}:{number}: '{line}' before the first title ('== ...') is not matrix:, kernels:, schedule: or command:"
            )
        elif name in ("at", "shows") and not tour.stops[-1].text:
            setattr(tour.stops[-1], name, value)
        else:
            tour.stops[-1].text.append(line.strip())
    for stop in tour.stops:
        if not stop.at or not stop.text:
            raise TourError(f"{path}:{stop.line}: '{stop.title}' needs a line 'at: ...' and a text")
    if not tour.matrix or not tour.kernels or not tour.stops:
        raise TourError(
            f"{path}: needs a line 'matrix: ...', a line 'kernels: ...' and a title ('== ...')"
        )
    return tour


def find(at, by_name):
    """(kernel, event number, what can be said of the event) of the position that `at` describes.
    Raises ValueError."""
    wanted, plain = {}, []
    for word in at.split():
        name, equals, value = word.partition("=")
        if not equals:
            plain.append(word)
        elif name in PLACES and value.isdigit():
            wanted[name] = int(value)
        else:
            raise ValueError(f"'{word}' in 'at' is none of {', '.join(PLACES)}")
    if len(plain) < 2 or plain[0] not in by_name:
        raise ValueError(f"'at: {at}' names no kernel of {', '.join(by_name)} and an event")
    kernel, *names = plain
    trace, nth = by_name[kernel], wanted.pop("nth", 1)
    found = [
        (number, event, place)
        for number, event, place in traces.walk(trace)
        if names_of(trace, event)[: len(names)] == names
        and wanted.items() <= dict(zip(PLACES, place)).items()
    ]
    if len(found) < nth:
        raise ValueError(f"'at: {at}' is not in the trace, which has {len(found)} of them")
    return kernel, found[nth - 1][0], facts_of(trace, *found[nth - 1])


def names_of(trace, event):
    """The kind of an event, and the array of an access."""
    if event[0] == "warp operation":
        return [trace["instructions"][event[1]]["operation"]]
    if event[0] not in traces.ACCESSES:
        return [event[0]]
    return [event[0], trace["arrays"][trace["instructions"][event[1]]["array"]]["name"]]


def facts_of(trace, number, event, place):
    """What `shows` can say of an event."""
    if event[0] == "copy":
        devices = ["host" if a is None else trace["arrays"][a]["device"] for a in event[1:4:2]]
        return {"bytes": event[5], "from": devices[1], "to": devices[0]}
    found = {} if place[0] is None else {"gpu": trace["launches"][place[0]]["device"]}
    if event[0] in traces.ACCESSES:
        of = traces.Request(trace, number, event, place)
        found |= {name: of.counts[count] for name, count in COUNTS.items() if count in of.counts}
        found |= {"addresses": len(set(of.addresses)), "memory": of.array.get("device", "shared")}
    if event[0] in (*traces.ACCESSES, "warp operation", "wait"):
        file, line = trace["places"][trace["instructions"][event[1]]["place"]]
        lanes = traces.lanes_of(event[2])
        found |= {"lanes": len(lanes), "first": lanes[0], "last": lanes[-1]}
        found["line"] = trace["sources"][file]["text"].splitlines()[line - 1].strip()
    return found


def check(shows, facts):
    """Raises ValueError if the facts of an event are not what `shows` says."""
    shows, line, text = re.fullmatch(r"(.*?)(\bline=(.*))?", shows).groups()
    if line and text not in facts.get("line", ""):
        raise ValueError(f"the line there is '{facts.get('line')}', without '{text}'")
    for word in shows.split():
        name, _, value = word.partition("=")
        if name not in facts:
            known = ", ".join(facts) or "none"
            raise ValueError(f"'{word}' cannot be said of it; there are {known}")
        if str(facts[name]) != value:
            raise ValueError(f"{name} is {facts[name]}, not {value}")
