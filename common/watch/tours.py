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
                kernel, event = find(stop.at, by_name)
                check(stop.shows, by_name[kernel], event)
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
    """(kernel, event number) of the position that `at` describes. Raises ValueError."""
    wanted, plain = {"nth": 1}, []
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
    kernel, kind, *array = plain
    trace = by_name[kernel]
    left = wanted["nth"]
    for number, event, at in traces.walk(trace):
        if kind_of(trace, event) != kind or (array and name_of(trace, event) != array[0]):
            continue
        if any(wanted.get(name, place) != place for name, place in zip(PLACES, at)):
            continue
        left -= 1
        if left == 0:
            return kernel, number
    raise ValueError(f"'at: {at}' is not in the trace, which has {wanted['nth'] - left} of them")


def kind_of(trace, event):
    return (
        trace["instructions"][event[1]]["operation"] if event[0] == "warp operation" else event[0]
    )


def name_of(trace, event):
    if event[0] not in traces.ACCESSES:
        return None
    return trace["arrays"][trace["instructions"][event[1]]["array"]]["name"]


def check(shows, trace, number):
    """Raises ValueError if the event is not what `shows` says."""
    event = trace["events"][number]
    if event[0] == "copy":
        to, source = (
            "host" if array is None else trace["arrays"][array]["device"]
            for array in (event[1], event[3])
        )
        found = {"bytes": event[5], "from": source, "to": to}
    else:
        launch = next(at[0] for other, _, at in traces.walk(trace) if other == number)
        found = {} if launch is None else {"gpu": trace["launches"][launch]["device"]}
    if event[0] in traces.ACCESSES:
        instruction = trace["instructions"][event[1]]
        array = trace["arrays"][instruction["array"]]
        counts = trace["counts"][number] | {"addresses": len(set(traces.addresses_of(event[3])))}
        found |= {name: counts[of] for name, of in COUNTS.items() if of in counts} | {
            "memory": array.get("device", "shared")
        }
    if len(event) > 2 and event[0] != "copy":
        lanes = traces.lanes_of(event[2])
        found |= {"lanes": len(lanes), "first": lanes[0], "last": lanes[-1]}
    line = re.search(r"(?:^| )line=(.*)$", shows)
    if line:
        file, number = trace["places"][trace["instructions"][event[1]]["place"]]
        text = trace["sources"][file]["text"].splitlines()[number - 1]
        if line[1] not in text:
            raise ValueError(f"the line there is '{text.strip()}', without '{line[1]}'")
        shows = shows[: line.start()]
    for word in shows.split():
        name, _, value = word.partition("=")
        if name not in found:
            raise ValueError(
                f"'{word}' cannot be said of it; there are {', '.join(found) or 'none'}"
            )
        if str(found[name]) != value:
            raise ValueError(f"{name} is {found[name]}, not {value}")
