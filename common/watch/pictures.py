#!/usr/bin/env python3
"""Draws the pictures of the lessons from traces: make pictures

    pictures.py PROGRAM DIRECTORY

PROGRAM is the CPU backend with all steps. Each picture is an SVG that follows the reader's light or
dark setting, moves where motion explains, and stands still where the reader asks for that. Drawn
again, it is the same file. Those of EDITED show no data: they are changed as SVG.
"""

import argparse
import contextlib
import functools
import itertools
import json
import math
import re
import sys
import textwrap
from collections import defaultdict
from html import escape
from pathlib import Path
from typing import NamedTuple

import traces
import watch

sys.path.append(str(Path(__file__).resolve().parents[1] / "simt"))
from gpus import GPUS  # noqa: E402

RAMP = [(58, 76, 192), (38, 150, 200), (52, 172, 110), (226, 174, 30), (216, 62, 52)]
WIDTH = 900
LEFT, ROOM = 96, WIDTH - 110  # of lanes and arrays; their names stand to the left
ROOT = Path(__file__).resolve().parents[2]
EDITED = "06_cut_row", "06_in_flight", "08_states"

STYLE = """
.p { fill: #ffffff } .ink { fill: #1c2430 } .soft { fill: #5d6878 } .edge { stroke: #b9c2ce; fill: none }
.box { stroke: #b9c2ce; fill: #ffffff } .drag { fill: url(#hatch); stroke: none } .frame { stroke: #1c2430; fill: none }
.padding { stroke: #e9a9a4 } .nonzero { stroke: #4f83cc } .unread { stroke: #dfe5ec } .bad { fill: #c22f2f } .rule { stroke: #8a95a5; fill: none } .hatch { stroke: #8a95a5 }
.soft-line { stroke: #b9c2ce; fill: none } .quiet { fill: #dfe5ec }
text { font: 12px system-ui, "Segoe UI", "DejaVu Sans", sans-serif } .small { font-size: 10.5px } .title { font-weight: 600; font-size: 13px }
.mono { font-family: ui-monospace, "DejaVu Sans Mono", monospace }
@media (prefers-color-scheme: dark) {
.p { fill: #151a21 } .ink { fill: #e4e9f0 } .soft { fill: #9aa6b6 } .edge { stroke: #465163 }
.box { stroke: #465163; fill: #1a2028 } .frame { stroke: #e4e9f0 } .padding { stroke: #83423f } .unread { stroke: #2a333f } .bad { fill: #ff7d73 } .rule { stroke: #6d7990 }
.hatch { stroke: #7b879b } .soft-line { stroke: #465163 } .quiet { fill: #2a333f } }
"""
SVG = (
    f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {{height}}" width="{WIDTH}" '
    'height="{height}" role="img" aria-labelledby="t d"><title id="t">{title}</title>'
    '<desc id="d">{description}</desc><style>{style}</style><defs><pattern id="hatch" width="4" '
    'height="4" patternUnits="userSpaceOnUse" patternTransform="rotate(45)"><line x1="0" y1="0" '
    'x2="0" y2="4" class="hatch" stroke-width="1.2"/></pattern></defs>'
    f'<rect class="p" width="{WIDTH}" height="{{height}}"/>\n{{parts}}\n</svg>\n'
)


def colour(lane):
    at = lane / 31 * (len(RAMP) - 1)
    i = min(len(RAMP) - 2, int(at))
    mixed = (round(a + (at - i) * (b - a)) for a, b in zip(RAMP[i], RAMP[i + 1]))
    return "#" + "".join(f"{part:02x}" for part in mixed)


def looks_of(active):
    return [colour(lane) if lane in active else "quiet" for lane in range(32)]


def row_colour(row):
    """Neighbouring rows have colours that differ."""
    return colour(row * 9 % 32)


def paint(look, how="fill"):
    """A look is a class of STYLE, or a colour to fill or to stroke with."""
    return {how if look.startswith("#") else "class_": look} if look else {}


def number(value):
    return f"{value:.1f}".removesuffix(".0")


def along(low, high, begin, room):
    """A scale: where a value from `low` to `high` is drawn."""
    return lambda value: begin + (value - low) / (high - low) * room


class Row(NamedTuple):
    """Boxes side by side."""

    left: float
    pitch: float
    top: float
    bottom: float

    def x(self, k):
        """The middle of a box."""
        return self.left + (k + 0.5) * self.pitch - 1


class Picture:
    def __init__(self, title):
        self.title, self.description = title, ""
        self.parts, self.styles, self.groups, self.height = [], [], 0, 0
        self.text(10, 20, title, "ink title")

    def add(self, tag, text=None, **attributes):
        words = "".join(
            f' {name.rstrip("_").replace("_", "-")}="'
            f'{number(v) if isinstance(v, (int, float)) else escape(v)}"'
            for name, v in attributes.items()
            if v is not None
        )
        text = "/>" if text is None else f">{escape(str(text))}</{tag}>"
        self.parts.append(f"<{tag}{words}{text}")
        self.height = max(self.height, attributes.get("y", 0) + attributes.get("height", 6))

    def text(self, x, y, text, look="ink", anchor=None):
        self.add("text", text, x=x, y=y, class_=look, text_anchor=anchor)

    def small(self, x, y, text, anchor=None):
        self.text(x, y, text, "soft small", anchor)

    def middle(self, x, y, text, look="ink small mono"):
        self.text(x, y, text, look, "middle")

    def note(self, y, *lines):
        """Small text at the left."""
        for i, line in enumerate(lines):
            self.small(10, y + 15 * i, line)

    def key(self, x, y, look, text, words="soft small"):
        """What a colour means."""
        self.rect(x, y - 9, 10, 10, look)
        self.text(x + 15, y, text, words)

    def rect(self, x, y, width, height, look=None, **more):
        self.add("rect", x=x, y=y, width=width, height=height, **paint(look), **more)

    def row(self, y, tall, looks, texts=(), words=None, left=LEFT, pitch=ROOM / 32, gap=2, **more):
        """Boxes, and the texts in them. Without a box where the look is None."""
        row = Row(left, pitch, y, y + tall)
        for k, (look, text) in enumerate(itertools.zip_longest(looks, texts)):
            if look:
                self.rect(left + k * pitch, y, pitch - gap, tall, look, **more)
            if text is not None:
                look = words or ("p small" if look[0] == "#" else "ink small")
                self.middle(row.x(k), y + tall / 2 + 4, text, look)
        return row

    def lanes(self, y, active):
        return self.row(y, 12, looks_of(active), rx=2)

    def line(self, x1, y1, x2, y2, look, width=None, **more):
        look = paint(look, "stroke")
        self.add("line", x1=x1, y1=y1, x2=x2, y2=y2, **look, stroke_width=width, **more)
        self.height = max(self.height, y1, y2)

    def link(self, row, k, other, j, look, width=1.5):
        """A line from box k of a row to box j of one below."""
        self.line(row.x(k), row.bottom, other.x(j), other.top, look, width)

    def circle(self, x, y, radius, look):
        self.add("circle", cx=x, cy=y, r=radius, **paint(look))

    def squares(self, places, side, look, **more):
        """Squares of one look, as one element; (x, y) is the middle of the left edge."""
        strokes = "".join(f"M{number(x)} {number(y)}h{number(side)}" for x, y in places)
        self.add("path", d=strokes, stroke_width=f"{side:.2f}", **paint(look, "stroke"), **more)
        self.height = max([self.height, *(y + side / 2 for _, y in places)])

    @contextlib.contextmanager
    def group(self):
        """What is drawn meanwhile is one of the groups of in_turn()."""
        self.groups += 1
        self.parts.append(f'<g class="turn{self.groups}">')
        yield
        self.parts.append("</g>")

    def in_turn(self, seconds):
        """Groups that light up one after the other, again and again, where motion is wanted."""
        share, turn = 100 / self.groups, f"animation: turn {seconds * self.groups}s linear"
        keys = f"0%, {share * 0.98:.2f}% {{ opacity: 1 }} {share:.2f}%, 100% {{ opacity: .16 }}"
        self.styles += ["@media (prefers-reduced-motion: no-preference) {"]
        self.styles += [f"@keyframes turn {{ {keys} }}"]
        for i in range(self.groups):
            self.styles += [f".turn{i + 1} {{ {turn} {i * seconds}s infinite backwards }}"]
        self.styles += ["}"]

    def caption(self, text):
        """What the picture shows, below it: a line holds some 160 characters."""
        text = " ".join(text.split())
        self.note(self.height + 16, *textwrap.wrap(text, 160))
        self.description = f"{text} {self.description}".strip()

    def svg(self):
        return SVG.format(
            title=escape(self.title),
            description=escape(self.description),
            height=round(self.height + 10),
            style="\n".join([STYLE.strip(), *self.styles]),
            parts="\n".join(self.parts),
        )


# {name: (title, how it is drawn, the matrices and kernels that are traced for it)}
PICTURES = {}
STENCIL = "stencil2d:16x16"
SCALAR, VECTOR = (STENCIL, "csr_scalar"), (STENCIL, "csr_vector_4")
UNEVEN = [("fem:64,block=1", kernel) for kernel in ("csr", "ell", "sell", "dia")]
GRAPH = "rmat:scale=10,edge_factor=24,symmetric=1,permute=1"
LONG_ROWS = "powerlaw:200x40000,nnz=24000,max_row=9500"
ONE_LONG_ROW = "powerlaw:600x4000,nnz=5000,max_row=3200,local=1"
BLOCKS = [("stencil2d:16x2,dof=3", kernel) for kernel in ("cds_b1", "cds")]
STEPS = "forward", "steps --gpus 2"


def picture(name, *runs, title=None, **options):
    """The function below draws this picture of traces of `runs`, and returns its caption."""

    def keep(how):
        PICTURES[name] = title or how.__doc__, functools.partial(how, **options), runs
        return how

    return keep


# --- From traces ----------------------------------------------------------------------------------


class Request(NamedTuple):
    lanes: list
    addresses: list
    counts: dict
    values: list
    size: int

    @property
    def elements(self):
        return [address // self.size for address in self.addresses]


def accesses(trace, name, kind="load", launch=0, block=0, warp=0):
    """A warp's requests to an array."""
    return [
        Request(lanes, at, trace["counts"][event], values_of(trace, event), instruction["size"])
        for event, of, instruction, array, lanes, at in traces.requests(trace)
        if of == (launch, block, warp) and (instruction["access"], array["name"]) == (kind, name)
    ]


def values_of(trace, event):
    """What a request loads or stores, or an atomic finds; None for a number of two words."""
    known = trace["events"][event][4]
    return [None if isinstance(v, list) else trace["values"][v] for v in known]


def plural(count, word):
    return f"{count} {word}" + ("" if count == 1 else "es" if word.endswith("s") else "s")


def lines_of(*requests):
    """The first byte, and the last plus one, of the lines of 128 bytes that requests touch."""
    first = min(min(request.addresses) for request in requests)
    last = max(max(request.addresses) + request.size for request in requests)
    return first // 128 * 128, -(-last // 128) * 128


def request_over_sectors(draw, y, request, first, last, room=ROOM):
    """The lanes of a request above bytes `first` to `last` of its array."""
    lanes, addresses, counts, _, size = request
    x, scale, row = along(first, last, LEFT, room), room / (last - first), draw.lanes(y, lanes)
    touched, y = traces.sectors_of(addresses, size), y + 46
    for sector in sorted(touched):
        draw.rect(x(32 * sector), y, 32 * scale, 16, "drag")
    for lane, address in zip(lanes, addresses):
        end = x(address + size / 2)
        draw.line(row.x(lane), row.bottom, end, y, colour(lane), 1, opacity=".8")
        draw.rect(x(address), y, size * scale, 16, colour(lane))
    for sector in range(first // 32, last // 32):
        look, width = ("frame", 1) if sector in touched else ("edge", 0.6)
        draw.rect(x(32 * sector), y, 32 * scale, 16, look, stroke_width=width)
    sectors, used = counts["sectors"], counts["bytes_used"]
    wanted = f"{counts['ideal_sectors']} would do · {100 * used / sectors / 32:.0f}%"
    text = f"{plural(len(lanes), 'lane')} · {plural(sectors, 'sector')} touched, {wanted}"
    draw.text(LEFT, y + 31, f"{text} of the bytes used", "soft")


@picture("02_lanes", SCALAR, title="csr_scalar: one row per lane")
@picture("03_lanes", VECTOR, title="csr_vector_4: four neighbouring lanes share a row", turns=2)
@picture("08_lanes", (STENCIL, "ell"), title="ell: neighbouring rows, neighbouring elements")
def lanes_over_sectors(draw, trace, turns=3):
    """Lanes above the sectors of `values` that their requests touch, iteration after iteration."""
    requests = accesses(trace, "values")[:turns]
    for turn, request in enumerate(requests):
        with draw.group():
            draw.text(10, 44 + 92 * turn, f"iteration {turn + 1}")
            request_over_sectors(draw, 34 + 92 * turn, request, *lines_of(*requests))
    draw.in_turn(3)
    unused = any(r.counts["bytes_used"] < 32 * r.counts["sectors"] for r in requests)
    hatched = "; hatched: fetched, not used by this request" * unused
    return f"""values: a frame is a sector of 32 bytes; coloured: used, by the lane of that
        colour{hatched}"""


@picture("03_shuffle_tree", ("fem:20,block=3", "csr_vector_8"))
def shuffle_tree(draw, trace):
    """csr_vector_8: eight partial sums become one in three rounds"""
    rounds = [
        dict(zip(traces.lanes_of(event[2]), trace["values"][event[4]]))
        for _, event, at in traces.walk(trace)
        if at == (0, 0, 0)
        and event[0] == "warp operation"
        and trace["instructions"][event[1]]["operation"] == "__shfl_down_sync"
    ]
    stores = accesses(trace, "y", "store")[0]
    width = stores.lanes[1] - stores.lanes[0]
    rounds = rounds[: width.bit_length() - 1]
    needed = [set(stores.lanes)]  # before each round, and at the end
    for sources in reversed(rounds):
        needed.insert(0, needed[0] | {sources[lane] for lane in needed[0]})
    rows = [Row(LEFT, ROOM / 32, y, y) for y in range(44, 44 + 58 * len(needed), 58)]
    for i, sources in enumerate(rounds):
        with draw.group():
            distance = max(source - lane for lane, source in sources.items())
            draw.text(10, rows[i].top + 33, f"distance {distance}")
            for lane, source in sources.items():
                counts = lane in needed[i + 1]
                look = (colour(lane // width * width), 2) if counts else ("soft-line", 0.8)
                for begin in (source, lane) if counts else {source} - {lane}:
                    draw.link(rows[i], begin, rows[i + 1], lane, *look)
    for row, counted in zip(rows, needed):
        for lane in range(32):
            look = (5.5, colour(lane // width * width)) if lane in counted else (2.5, "quiet")
            draw.circle(row.x(lane), row.top, *look)
    for lane in range(32):
        draw.middle(row.x(lane), 34, lane, "soft small")
    for lane, element in zip(stores.lanes, stores.elements):
        draw.middle(row.x(lane), row.top + 22, f"y[{element}]")
    draw.text(10, row.top + 22, "written")
    draw.in_turn(2)
    return """Large dots: sums that count in the end. Grey lines: the other lanes shuffle, too;
        their sums are not used."""


@picture("04_collisions", (STENCIL, "atomic_coo"), (STENCIL, "atomic_coo_warp"))
def collisions(draw, *found):
    """Atomics on y: lanes on the same element take turns"""
    # Lanes of an atomic above the elements of y.
    for y, trace in zip((40, 194), found):
        request = accesses(trace, "y", "atomic", launch=1)[0]
        elements, distinct = request.elements, sorted(set(request.elements))
        draw.text(10, y + 10, trace["kernel"]["name"], "ink mono")
        draw.text(10, y + 32, "lanes", "soft")
        lanes, pitch = draw.lanes(y + 22, request.lanes), min(80, ROOM / len(distinct))
        names, boxes = [f"y[{k}]" for k in distinct], ["box"] * len(distinct)
        row = draw.row(y + 100, 20, boxes, names, "ink small mono", pitch=pitch, gap=6, rx=3)
        for lane, element in zip(request.lanes, elements):
            draw.link(lanes, lane, row, distinct.index(element), colour(lane))
        for k, count in enumerate(map(elements.count, distinct)):
            said = (f"{count} in turn", "bad small") if count > 1 else ("1", "soft small")
            draw.middle(row.x(k), y + 134, *said)
    return f"""The first request of an atomic in the first warp, on {trace["matrix"]["name"]}."""


@picture("05_scan_rounds", (STENCIL, "segscan_block"))
def scan_rounds(draw, trace, warp=1):
    """segscan_block: sums of rows in log2 rounds"""
    # Who takes a sum from whom, round after round, from the loads of `sums` in shared memory.
    rounds = [(0, range(32))]  # (distance, lanes)
    for request in accesses(trace, "sums", warp=warp):
        distance = 32 * warp + request.lanes[0] - request.elements[0]
        if distance <= rounds[-1][0]:
            break  # the next turn begins
        rounds.append((distance, request.lanes))
    rows = accesses(trace, "row_indices", warp=warp)[0].values
    ends = accesses(trace, "y", "store", warp=warp)[0].lanes
    hue = {row: row_colour(i) for i, row in enumerate(sorted(set(rows)))}
    for i, (distance, takers) in enumerate(rounds):
        y, above = 39 + i * 62, Row(LEFT, ROOM / 32, 0, i * 62 - 5)
        for lane in range(32):
            pale, look = None if lane in takers else ".45", hue[rows[lane]]
            row = draw.row(y, 18, [look], left=above.x(lane - 0.5) + 1, rx=3, opacity=pale)
        if distance:
            with draw.group():
                draw.text(10, y - 18, f"distance {distance}")
                for lane in takers:
                    begin = max(LEFT - 14, above.x(lane - distance))
                    draw.line(begin, y - 44, above.x(lane), y, hue[rows[lane]], 1.6)
    for lane in range(32):
        if lane == 0 or rows[lane] != rows[lane - 1]:
            draw.small(above.x(lane) - 10, 34, f"row {rows[lane]}")
        if lane in ends:
            draw.middle(above.x(lane), row.bottom + 17, f"y[{rows[lane]}]")
    draw.text(10, row.bottom + 17, "written")
    draw.in_turn(2.5)
    return """Each box is a lane with its sum, in the colour of its row. Pale: nothing was added
        in this round."""


@picture("05_carries", ("stencil2d:24x24", "segscan_shuffle"))
def carries(draw, trace, first=4, shown=9):
    """segscan_shuffle: carries between the warps of a block"""
    # The borders between the last warps of a block: tail, head, and who adds them up.
    tiles = []
    for block, warp in [*((0, warp) for warp in range(first, 8)), (1, 0)]:
        requests = accesses(trace, "row_indices", block=block, warp=warp)
        whole = [r.values for r in requests if len(r.lanes) == len(set(r.addresses)) == 32]
        tiles.append([row for rows in whole for row in rows])
    left, far, end = 66, 436, 436 + 27 * shown
    draw.small(left, 36, f"the first {shown} nonzeros of the tile, with their rows")
    draw.small(far, 36, f"the last {shown}")
    draw.small(end + 12, 36, "the warp itself writes")
    head = 0
    for at, (tile, after) in enumerate(itertools.pairwise(tiles)):
        y, warp, tail = 46 + 66 * at, first + at, tile.count(tile[-1]) * (tile[-1] == after[0])
        draw.text(10, y + 14, f"warp {warp}")
        for k, row in [*enumerate(tile)][:shown] + [*enumerate(tile)][-shown:]:
            x = left + 27 * k if k < shown else end - 27 * (len(tile) - k)
            look = [row_colour(row)], [row], "ink small mono"
            pale = None if k < head or k >= len(tile) - tail else ".35"
            draw.row(y, 20, *look, left=x, pitch=27, rx=2, opacity=pale)
        more = f"... {len(tile) - 2 * shown} more ..."
        draw.middle((left + 27 * shown + far) / 2, y + 14, more, "soft small")
        own = f"y[{tile[head]}] to y[{tile[-tail - 1]}]"
        draw.text(end + 12, y + 14, own, "ink small mono")
        if head:
            draw.text(left, y + 34, f"head: {head} of row {tile[0]}", "ink small")
        if tail:
            draw.text(end - 2, y + 34, f"tail: {tail} of row {tile[-1]}", "ink small", "end")
            last = at + 2 == len(tiles)
            into = "what the next block adds" if last else f"head of warp {warp + 1}"
            total = f"y[{tile[-1]}] = tail of warp {warp} + {into}"
            draw.middle((left + end) / 2, y + 48, total)
        head = after.count(after[0]) if tail else 0
    text = f"""{trace["kernel"]["name"]} on {trace["matrix"]["name"]}, the last warps of the
        first block. After a barrier one thread adds tails and heads."""
    if tail:
        text += " The last row goes on in the next block: its tail becomes the carry of the block."
    return text


@picture("06_banks", ("dense:32x32", "pcsr"), ("dense:32x33", "pcsr"))
def banks(draw, *found):
    """pcsr, second launch, rows of 32 nonzeros: all lanes meet in two banks"""
    # The words that the first request wants of each bank, on rows of different lengths.
    place = {"left": 190, "pitch": (WIDTH - 210) / 32}
    for y, trace in zip((40, 276), found):
        lanes, addresses, counts, _, size = accesses(trace, "pcsr_piece", launch=1)[0]
        offset = next(array["offset"] for array in trace["arrays"] if array["name"] == "pcsr_piece")
        needed, ideal = counts["bank_passes"], counts["ideal_bank_passes"]
        load = [[] for _ in range(32)]
        for lane, address in zip(lanes, addresses):
            for word in range((offset + address) // 4, (offset + address + size) // 4):
                load[word % 32].append(lane)
        most = max(map(len, load))
        level = 6 if most > 8 else 12
        middle = y + max(20, most * level / 2)
        for i in range(most):
            looks = [colour(wanted[i]) if i < len(wanted) else None for wanted in load]
            at = y + (most - 1 - i) * level
            draw.row(at, level - 1, looks, **place)
        y += most * level
        row = draw.row(y + 1, 10, ["quiet"] * 32, **place)
        for bank in range(0, 32, 4):
            draw.middle(row.x(bank), y + 23, bank, "soft small")
        draw.text(10, middle - 14, f"rows of {(addresses[1] - addresses[0]) // size} nonzeros")
        draw.text(10, middle + 3, f"{needed} passes", "bad" if needed > ideal else "ink")
        draw.small(10, middle + 19, f"{ideal} without conflicts")
    return """32 lanes read the first product of their rows. A box is a word, in the colour of
        its lane, above the bank that holds it; a bank serves one word per pass. A double is two
        words, and half a warp is served at a time. With one element more per row, used or
        padding, the lanes begin in different banks."""


@picture("06_tiles", (ONE_LONG_ROW, "pcsr_one_pass"))
def tiles(draw, trace):
    """pcsr_one_pass: the tiles of the warps on the path through rows and nonzeros"""
    # A path through nonzeros (to the right) and rows (down), cut where tiles of warps begin.
    found = defaultdict(list)  # by block: the first row and the first nonzero of its tile
    for event, (_, block, _), instruction, *_ in traces.requests(trace):
        if instruction["access"] == "load" and len(found[block]) < 2:  # read before anything else
            first = values_of(trace, event)[0]
            found[block].append(int(first, 16) if isinstance(first, str) else first)
    offsets, cut_row = trace["matrix"]["row_offsets"], 1 << 31
    rows, nonzeros = len(offsets) - 1, offsets[-1]
    borders = [(r & ~cut_row, k, bool(r & cut_row)) for _, (r, k) in sorted(found.items())]
    borders.append((rows, nonzeros, False))
    length, longest = max((b - a, r) for r, (a, b) in enumerate(itertools.pairwise(offsets)))
    inside = sum(cut and row == longest for row, _, cut in borders)
    left, top, room, tall = 70, 46, WIDTH - 100, 300
    x, y = along(0, nonzeros, left, room), along(0, rows, top, tall)
    draw.small(left, top - 8, f"{nonzeros} nonzeros →")
    draw.small(10, top + 12, f"{rows} rows ↓")
    draw.rect(left, top, room, tall, "edge")
    for i, ((row, k, _), (last_row, last_k, _)) in enumerate(itertools.pairwise(borders)):
        path = f"M{number(x(k))} {number(y(row))}"
        for down in range(row + 1, last_row + 1):
            path += f"H{number(x(offsets[down]))}V{number(y(down))}"
        path += f"H{number(x(last_k))}"
        look = {"fill": "none", "stroke": colour(i * 11 % 32), "stroke_width": 5 if i % 2 else 3}
        draw.add("path", d=path, **look)
    for row, k, cut in borders[1:-1]:
        draw.line(x(k), y(row) - 9, x(k), y(row) + 9, "frame", 1.2 if cut else 0.7)
    text = f"row {longest}: {length} nonzeros, cut into {inside + 1} tiles"
    draw.middle(x(offsets[longest] + length / 2), y(longest) - 14, text, "ink small")
    return f"""{len(borders) - 1} tiles on {trace["matrix"]["name"]}, one per warp, in its
        colour: as many rows and nonzeros together as every other, whatever the lengths of the
        rows. Ticks are borders of tiles. Where one lies inside a row, the warps exchange
        partial sums of that row."""


@picture("06_two_kernels", (STENCIL, "pcsr"))
def two_kernels(draw, trace):
    """pcsr: products first, sums later"""
    # Products of the first launch, in the order of memory, and what the second makes of them.
    loads, stores = accesses(trace, "values")[0], accesses(trace, "middle", "store")[0]
    rows, count = trace["matrix"]["row_offsets"], len(loads.lanes)
    spans = [(r, k, min(rows[r + 1], count)) for r, k in enumerate(rows) if k < count]
    looks = [row_colour(r) for r, begin, end in spans for _ in range(begin, end)]
    place = {"left": 130, "pitch": (WIDTH - 150) / 32}
    for y, name, request in ((44, "values", loads), (106, "products (middle)", stores)):
        draw.text(10, y + 13, name)
        row = draw.row(y, 18, [looks[k] for k in request.elements], **place)
        sectors, ideal = (request.counts[of] for of in ("sectors", "ideal_sectors"))
        draw.small(10, y + 28, plural(sectors, "sector") + ", the fewest" * (sectors == ideal))
    for lane in loads.lanes:
        draw.line(row.x(lane), 64, row.x(lane), 102, "rule")
    lower, middles = Row(row.left, row.pitch, 214, 234), {}
    for r, begin, end in spans:
        wide, middles[r] = (end - begin) * row.pitch - 5, (begin + end - 1) / 2
        draw.rect(row.x(begin - 0.5) + 3, lower.top, wide, 20, row_colour(r), rx=3)
        draw.middle(lower.x(middles[r]), 248, f"y[{r}]")
    for request in accesses(trace, "pcsr_piece", launch=1):
        for r, k in zip(request.lanes, request.elements):
            if k < count:
                draw.link(row._replace(bottom=150), k, lower, middles[r], row_colour(r))
    for y, text in ((94, "launch 1"), (178, "launch 2"), (228, "a thread per row")):
        draw.text(10, y, text, "soft" if y < 200 else "ink")
    return f"""The first {count} nonzeros of {trace["matrix"]["name"]}, in the colours of their
        rows. The first launch reads values in order and writes a product for each. The second
        reads products in order, too, into shared memory, and each thread adds up its row."""


@picture("07_timeline", ("powerlaw:640x640,nnz=6400", "lightspmv_warp", "turns"))
def timeline(draw, trace):
    """lightspmv_warp: rows go to the warps that are free"""
    # Which warp has which rows, in the order in which the counter gave them out.
    bars = defaultdict(list)  # by warp: [begin, end, first row]
    for step, (event, warp, instruction, *_) in enumerate(traces.requests(trace), 1):
        if instruction["access"] == "atomic":
            bars[warp].append([step, step, values_of(trace, event)[0]])
        if bars[warp]:
            bars[warp][-1][1] = step
    rows, warps = trace["matrix"]["rows"], trace["launches"][0]["block"][0] // 32
    shown = [(warp, [bar for bar in bars[warp] if bar[2] < rows]) for warp in sorted(bars)[:16]]
    x = along(0, max(bar[1] for _, of in shown for bar in of), 80, WIDTH - 100)
    for y, (warp, of) in zip(range(36, 700, 20), shown):
        draw.text(10, y + 12, f"warp {warp[2]}")
        draw.line(x(0), y + 8, WIDTH - 20, y + 8, "soft-line")
        for begin, end, row in of:
            width, hue = max(3, x(end) - x(begin) - 1), min(31, row * 32 // rows)
            draw.rect(x(begin), y, width, 16, colour(hue), rx=2)
            if width > 18:
                look = "on" if 8 < hue < 28 else "p"  # green and yellow are light
                draw.text(x(begin) + 3, y + 12, row, f"{look} small")
    draw.styles.append(".on { fill: #000000 }")
    return f"""To the right: requests of all warps, which take turns on the CPU backend (no
        time; a warp with long rows asks less often). {len(shown)} of the {warps} warps of a
        block, on {trace["matrix"]["name"]}. A bar reaches from one fetch of a warp to its next.
        The number is the first row that it got, and so is the colour."""


# Which array of a format shows what it stores, and padding there; of others `values`, by zeros.
PADDED = {"csr": ("column_indices", ()), "ell": ("columns", ("~",)), "sell": ("columns", ("~",))}


@picture("08_formats", *UNEVEN, title="What formats store of the same matrix")
@picture("09_diagonals", *BLOCKS, title="Diagonals store zeros that diagonals of blocks do not")
def storage(draw, *found):
    """What formats store of the first rows, in the order of memory; padding stands out."""
    y, per_row, cell = 40, 96, (WIDTH - 150) / 96
    for trace in found:
        kernel = trace["kernel"]["name"]
        name, empty = PADDED.get(kernel, ("values", (0,)))
        held = {}
        for event, _, instruction, array, _, addresses in traces.requests(trace):
            if instruction["access"] == "load" and array["name"] == name:
                elements = (address // instruction["size"] for address in addresses)
                held.update(zip(elements, values_of(trace, event)))
        total = max(held) + 1
        cells = {"nonzero": [], "padding": [], "unread": []}
        for k in range(total):
            row, column = divmod(k, per_row)
            kind = "unread" if k not in held else "padding" if held[k] in empty else "nonzero"
            cells[kind].append((130 + column * cell, y + (row + 0.5) * (cell + 1)))
        draw.text(10, y + 11, kernel, "ink mono")
        for i, (kind, places) in enumerate(cells.items()):
            draw.squares(places, cell - 0.8, kind)
            if places or kind == "padding":
                said = plural(len(places), kind) if kind == "nonzero" else f"{len(places)} {kind}"
                draw.small(10, y + 26 + 15 * i, said)
        y += max(62, -(-total // per_row) * (cell + 1)) + 14
    return f"""A square per stored entry, in the order of memory, up to the last that is read:
        blue nonzeros, red padding that is read, grey what no lane reads.
        {trace["matrix"]["name"]}.
        {"cds_b1: blocks of one entry, so plain diagonals." * (kernel == "cds")}"""


# --- Single steps ---------------------------------------------------------------------------------


@picture("01_csr", ("stencil2d:3x2", "csr_scalar"))
def csr_arrays(draw, trace, row=1):
    """CSR: three arrays, and what one row of the product reads"""
    # Which elements of x a row gathers is read from the loads of its thread.
    gathered = [r.elements[r.lanes.index(row)] for r in accesses(trace, "x") if row in r.lanes]
    offsets, columns = trace["matrix"]["row_offsets"], trace["matrix"]["column_indices"]
    rows = range(trace["matrix"]["rows"])
    hues = [colour(r * 31 / rows[-1]) for r in rows]
    row_of = [r for r in rows for _ in range(offsets[r], offsets[r + 1])]
    for r in rows:
        draw.small(34, 79 + r * 26, f"row {r}", "end")
        looks, texts = ["quiet"] * len(rows), [None] * len(rows)
        for k in range(offsets[r], offsets[r + 1]):
            looks[columns[k]], texts[columns[k]] = hues[r], k
        square = draw.row(62 + r * 26, 24, looks, texts, left=42, pitch=26)
    for r in rows:
        draw.middle(square.x(r), 56, r, "soft small")
    draw.small(42, square.bottom + 16, "k, the number of a nonzero")
    marked = ["box"] * row + hues[row : row + 2] + ["box"] * (len(rows) - row - 1)
    strips = [
        (58, "row_offsets", offsets, marked),
        (112, "column_indices", columns, [hues[r] for r in row_of]),
        (138, "values", [f"v{k}" for k in range(len(columns))], [hues[r] for r in row_of]),
        (196, "x", [f"x{c}" for c in rows], [hues[row] if c in gathered else "box" for c in rows]),
    ]  # fmt: skip
    drawn = []
    for y, name, texts, looks in strips:
        draw.text(310, y + 15, name, "ink mono", "end")
        drawn.append(draw.row(y, 22, looks, texts, left=320, pitch=27))
    for offset in (row, row + 1):
        draw.link(drawn[0], offset, drawn[1], offsets[offset] - 0.5, "rule")
    for k, element in enumerate(gathered, offsets[row]):
        draw.link(drawn[2], k, drawn[3], element, hues[row])
    return f"""Row {row}: nonzeros {offsets[row]} to {offsets[row + 1] - 1}, which are side by
        side, and x{", x".join(map(str, gathered))}, which are where the matrix says."""


@picture("06_adaptive", (LONG_ROWS, "csr_adaptive"))
def adaptive_blocks(draw, trace):
    """csr_adaptive: the nonzeros of each block, and how it adds them up"""
    # Which nonzeros each block reads, and whether their products go through shared memory.
    nonzeros, spans, parts = trace["matrix"]["nonzeros"], defaultdict(list), set()
    for _, (launch, block, _), instruction, array, _, addresses in traces.requests(trace):
        if launch == 0 and array["name"] == "partial_sums":
            parts.add(block)
        if launch == 0 and array["name"] == "values":
            file, line = trace["places"][instruction["place"]]
            text = trace["sources"][file]["text"].splitlines()[line - 1]
            of = spans[block, "stream" if "products[" in text else "long"]
            of += [address // instruction["size"] for address in addresses]
    kinds = {
        "stream": (3, "the short rows of a block: products in shared memory, a few lanes per row"),
        "vector": (22, "a row of more than 1,024 nonzeros: all threads of its block"),
        "shared": (31, "a row of more than 8,192: several blocks"),
    }  # fmt: skip
    x, counts, top = along(0, nonzeros, 62, WIDTH - 74), dict.fromkeys(kinds, 0), 48
    for begin in trace["matrix"]["row_offsets"]:
        draw.line(x(begin), top - 12, x(begin), top - 4, "rule", 0.6)
    draw.small(54, top - 4, "rows", "end")
    for block in range(trace["launches"][0]["grid"][0]):
        y = top + 12 * block
        draw.small(54, y + 9, f"block {block}", "end")
        for kind in ("stream", "long"):
            if read := spans[block, kind]:
                kind = kind if kind == "stream" else "shared" if block in parts else "vector"
                counts[kind] += 1
                wide = max(1.5, x(max(read) + 1) - x(min(read)))
                draw.rect(x(min(read)), y, wide, 9, colour(kinds[kind][0]))
        if not (spans[block, "stream"] or spans[block, "long"]):
            draw.small(62, y + 9, "no rows: within the long row of the block above")
    for i, (kind, (hue, text)) in enumerate(kinds.items()):
        said = f"{kind}, {plural(counts[kind], 'time')}: {text}"
        draw.key(62, y + 33 + 18 * i, colour(hue), said, "ink small")
    return f"""To the right: the nonzeros, {nonzeros}, with a stroke where a row begins.
        {trace["matrix"]["name"]}."""


@picture("08_chain", ("wlan:C=8,m=1,W=2", "dia_csr"))
def chain(draw, trace):
    """dia_csr: what it stores of a Markov chain"""
    # A Markov chain's matrix: what dia_csr stores as diagonals, and what as CSR.
    matrix = trace["matrix"]
    offsets, columns, rows = matrix["row_offsets"], matrix["column_indices"], matrix["rows"]
    kept = {value for request in accesses(trace, "offsets") for value in request.values}
    places = {(r, columns[k]) for r in range(rows) for k in range(offsets[r], offsets[r + 1])}
    whole = {(r, r + d) for d in kept for r in range(rows) if 0 <= r + d < rows}
    dense, zeros, rest = whole & places, whole - places, places - whole
    left, top, side = 20, 36, 380
    x, y, cell = along(0, rows, left, side), along(-0.5, rows - 0.5, top, side), side / rows
    draw.rect(left, top, side, side, "edge")
    diagonals = plural(len(kept), "diagonal")
    groups = (
        (colour(3), dense, f"{len(dense)} nonzeros on {diagonals} that are stored whole:"),
        ("", (), "8 bytes each, and no column"),
        ("#e9a9a4", zeros, f"{plural(len(zeros), 'zero')} stored with them"),
        (colour(25), rest, f"{len(rest)} nonzeros on other diagonals, stored as CSR:"),
        ("", (), "8 bytes, and 2 for the distance from the main diagonal"),
    )
    for i, (look, of, text) in enumerate(groups):
        if look:
            draw.squares([(x(c), y(r)) for r, c in sorted(of)], cell, look)
            draw.key(430, 108 + i * 24, look, text, "ink")
        else:
            draw.text(445, 108 + i * 24, text, "soft")
    csr = 12 * len(places) + 4 * (rows + 1) + 16 * rows
    needed = f"A product needs {trace['compulsory_bytes']:.0f} bytes, in CSR {csr}."
    draw.text(430, 66, f"{matrix['name']}: {rows} states, {len(places)} nonzeros")
    draw.text(430, 246, needed)
    return """Row r, column c: from state c the chain moves to state r. Most moves are the same
        few steps in the numbering of the states."""


# --- Several GPUs ---------------------------------------------------------------------------------


class Timeline:
    """What streams or GPUs do one thing after the other: bars [begin, end, what, waits before it],
    and waits for others (source, time, who, time). Time is counted in requests of warps (a copy: in
    sectors); what follows a wait begins when that has happened for which it waits."""

    def __init__(self):
        self.clock, self.waited = defaultdict(int), defaultdict(int)
        self.bars, self.waits = defaultdict(list), []

    def spend(self, who, time, what):
        begin, bars = self.clock[who], self.bars[who]
        self.clock[who] += time
        if bars and bars[-1][1:] == [begin, what, self.waited[who]]:
            bars[-1][1] += time
        else:
            bars.append([begin, begin + time, what, self.waited[who]])

    def wait(self, who, source, time):
        self.clock[who] = max(self.clock[who], time)
        self.waited[who] += 1
        if source != who:
            self.waits.append((source, time, who, self.clock[who]))


def by_events(trace):
    """The streams of GPUs that wait for each other's events."""
    line, events = Timeline(), {}
    copying = {event[6] for event in trace["events"] if event[0] == "copy"}
    for kind, *rest in trace["events"]:
        if kind == "launch":
            launch = trace["launches"][rest[0]]
            stream = launch["stream"]
            what = "boundary" if stream in copying else "interior"
            what = "copy" if launch["kernel"].startswith(("pack", "push")) else what
        elif kind in traces.ACCESSES:
            array = trace["arrays"][trace["instructions"][rest[0]]["array"]]
            line.spend(stream, array["space"] == "global", what)
        elif kind == "copy":
            line.spend(rest[5], -(-rest[4] // traces.SECTOR), "copy")
        elif kind == "record":
            events[rest[0]] = rest[1], line.clock[rest[1]]
        elif kind == "stream wait":
            line.wait(rest[0], *events[rest[1]])
    order = sorted(line.bars, key=lambda s: (trace["streams"][s], s in copying))
    kind = {s: "comm" if s in copying else "main" for s in order}
    return line, {s: f"GPU {trace['streams'][s]}, {kind[s]}" for s in order}


def by_flags(trace):
    """GPUs whose kernels wait for flags; a poll that finds the flag unset takes no time."""
    line, flags, phase = Timeline(), {}, defaultdict(lambda: "boundary")
    for event, (launch, *_), _, array, *_ in traces.requests(trace):
        gpu, values = trace["launches"][launch]["device"], values_of(trace, event)
        if array["name"] == "flags" and array["device"] != gpu:
            line.spend(gpu, 1, "flag")
            flags[array["device"], values[0]] = gpu, line.clock[gpu]
            phase[gpu] = "interior"
        elif array["name"] != "flags":
            sent = array["name"] == "x" and array["device"] != gpu
            line.spend(gpu, 1, "copy" if sent else phase[gpu])
        elif (gpu, values[0]) in flags:
            line.wait(gpu, *flags.pop((gpu, values[0])))
            line.spend(gpu, 1, "flag")
            phase[gpu] = "boundary"
    return line, {gpu: f"GPU {gpu}" for gpu in sorted(line.bars)}


@picture("10_steps", ("stencil2d:8x8", "packed", *STEPS), ("stencil2d:8x8", "minimal", *STEPS))
def steps(draw, events, flags):
    """Two steps of an iteration on two GPUs"""
    # The same two steps of an iteration on two GPUs, one above the other.
    looks = {"interior": colour(3), "boundary": colour(25), "copy": colour(16), "flag": "ink"}
    y = 34
    for trace, how in ((events, by_events), (flags, by_flags)):
        line, names = how(trace)
        x = along(0, max(bar[1] for bars in line.bars.values() for bar in bars), 120, WIDTH - 140)
        calls = f"{len(trace['launches'])} launches"
        if how is by_events:
            calls += f" and {sum(event[0] == 'copy' for event in trace['events'])} copies"
        draw.text(10, y + 14, how.__name__.replace("_", " "), "ink title")
        kernel = trace["kernel"]
        draw.small(120, y + 14, f"{kernel['name']}: {kernel['idea']}; {calls}")
        row_of = {who: y + 24 + 34 * i for i, who in enumerate(names)}
        for who, y in row_of.items():
            draw.text(10, y + 13, names[who])
            draw.line(120, y + 9, WIDTH - 20, y + 9, "soft-line")
            for begin, end, kind, _ in line.bars[who]:
                width = max(2.5, x(end) - x(begin) - 1)
                draw.rect(x(begin), y, width, 18, looks[kind], rx=2)
                if width > 54 and kind in ("interior", "boundary"):
                    draw.text(x(begin) + 5, y + 13, kind, "p small")
        for source, time, target, then in line.waits:
            begin, end = (18, 0) if row_of[target] > row_of[source] else (0, 18)
            place = x(then), row_of[target] + end
            draw.line(x(time), row_of[source] + begin, *place, "frame", 0.8)
            draw.circle(*place, 2.2, "ink")
        y += 40
    words = "interior rows", "boundary rows", "entries that travel between the GPUs", "flags"
    for at, look, text in zip((10, 140, 270, 520), looks.values(), words):
        draw.key(at, y + 8, look, text)
    draw.small(600, y + 8, "Lines: waits for an event or a flag.")
    return f"""Two steps on two GPUs, {events["matrix"]["name"]}, from traces. Interior rows are
        multiplied while entries of x travel. To the right: requests of warps (of a copy:
        sectors), not time on a GPU: the two halves end at one place because each fills the
        width. Each event, launch and copy above is a call by the host."""


# --- Matrices -------------------------------------------------------------------------------------


def short(count):
    """1600000: 1.6M."""
    for unit, letter in ((1e6, "M"), (1e3, "k")):
        if count >= 0.9995 * unit:
            return f"{count / unit:.3g}{letter}"
    return f"{count:.3g}"


@picture("sparsity", title="Where the nonzeros of these matrices are")
def sparsity(draw):
    """The matrices of the README's table, side by side: a cell is darker the more nonzeros it has."""
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    names = re.search(r"matrices=(\S+) precision", readme)[1].replace(";", "\0").split(",")
    looked = (ROOT / "plots/results/matrices.jsonl").read_text(encoding="utf-8").splitlines()
    known = {info["matrix"]["name"]: info for info in map(json.loads, looked)}
    side, told = (WIDTH - 20 - 18 * (len(names) - 1)) / len(names), []
    for i, name in enumerate(name.replace("\0", ",") for name in names):
        rows, columns, nonzeros = (
            known[name]["matrix"][count] for count in ("rows", "cols", "nnz")
        )
        cells, left, paths = known[name]["sketch"], 10 + i * (side + 18), defaultdict(str)
        cell = side / max(len(cells), len(cells[0]))
        for line, digits in enumerate(cells):
            shades = [-(-int(digit) // 3) for digit in digits]  # 3: the cells with the most
            for shade, run in itertools.groupby(range(len(shades)), shades.__getitem__):
                first, *more = run
                paths[shade] += f"M{first} {line}h{len(more) + 1}"
        draw.rect(left, 68, len(cells[0]) * cell, len(cells) * cell, "edge")
        place = f"translate({number(left)} {68 + cell / 2:.2f}) scale({cell:.4f})"
        for shade in sorted({*paths} - {0}):
            look = {"class_": "nonzero", "opacity": f"{shade / 3:.2f}", "transform": place}
            draw.add("path", d=paths[shade], **look)
        draw.text(left, 42, name.split(",")[0], "ink small")
        draw.small(left, 58, f"{short(rows)} × {short(columns)}, {short(nonzeros / rows)} each")
        told.append(f"{name}: {rows} rows, {columns} columns, {nonzeros} nonzeros")
    draw.height, draw.description = 68 + side, "; ".join(told)
    return """Rows × columns, and nonzeros per row on average. A cell stands for many rows and
        columns: the darker, the more nonzeros."""


# --- The primer -----------------------------------------------------------------------------------


@picture("primer_launch")
def launch_of_threads(draw):
    """A launch: grid, blocks, warps, lanes"""
    # Blocks, warps and lanes of first.cu's launch; a thread that returns at the guard is grey.
    source = (ROOT / "common/primer/first.cu").read_text(encoding="utf-8")
    n = int(re.search(r"const int n = (\d+);", source)[1])
    blocks, threads = map(int, re.search(r"add_kernel<<<(\d+), (\d+)>>>", source).groups())
    wide = (WIDTH - 74 + 22) / blocks
    for block in range(blocks):
        left, first = 62 + block * wide, block * threads
        for y, begin in zip(range(62, 999, 20), range(first, first + threads, 32)):
            place = {"left": left, "pitch": (wide - 22) / 32, "gap": 1}
            draw.row(y, 14, looks_of(range(n - begin)), **place, rx=1.5)
            if block == 0:
                draw.small(54, y + 11, f"warp {begin // 32}", "end")
        draw.text(left, 44, f"block {block}")
        draw.small(left, 57, "lane 0")
        draw.small(left + wide - 22, 57, "lane 31", "end")
        draw.small(left + 52, 44, f"sum[{first}] to sum[{min(first + threads, n) - 1}]")
    return f"""A square is a thread, a line of 32 squares a warp. add_kernel<<<{blocks},
        {threads}>>> for {n} elements. Grey: the {blocks * threads - n} threads past the last
        element, which return."""


@picture("primer_banks")
def strides_over_banks(draw, shown=6):
    """Shared memory: 32 banks, one word from each per pass"""
    # The first lanes of a request, on the word that each wants: a column is a bank.
    for left, stride in ((14, 1), (314, 32), (614, 33)):
        words = [stride * lane for lane in range(32)]
        passes = max(sum(word % 32 == bank for word in words) for bank in range(32))
        draw.text(left, 44, "lane reads word " + f"{stride} x " * (stride > 1) + "lane")
        draw.small(left, 60, "bank 0")
        draw.small(left + 256, 60, "bank 31", "end")
        for line in range(shown):
            wanted = [32 * line + bank for bank in range(32)]
            looks = [colour(words.index(w)) if w in words else "quiet" for w in wanted]
            row = draw.row(66 + 14 * line, 12, looks, left=left, pitch=8, gap=1)
        draw.text(left, row.bottom + 18, plural(passes, "pass"), "bad" if passes > 1 else "ink")
    return f"""A square is a word of 4 bytes, a column a bank; the first {32 * shown} words of
        shared memory. Coloured: words that lanes read. A bank serves one word per pass."""


@picture("primer_sectors", SCALAR)
def three_requests(draw, trace):
    """Three requests of a warp, and the sectors that they touch"""
    # Requests of one warp to three arrays, on one scale.
    same = "neighbouring lanes, neighbouring elements of 4 bytes"
    own = "one row per lane; neighbouring lanes are 3 to 5 elements of 8 bytes apart"
    found = (
        (f"row_offsets[row], a load: {same}", accesses(trace, "row_offsets")[0]),
        ("y[row], a store: the same with elements of 8 bytes", accesses(trace, "y", "store")[0]),
        (f"values[k], a load: {own}", accesses(trace, "values")[0]),
    )
    spans = [lines_of(request) for _, request in found]
    scale = ROOM / max(last - first for first, last in spans)
    for y, (text, request), (first, last) in zip((34, 146, 258), found, spans):
        draw.text(LEFT, y + 10, text)
        request_over_sectors(draw, y + 18, request, first, last, (last - first) * scale)
        for line in range(0, last - first + 1, 128):
            draw.line(LEFT + line * scale, y + 60, LEFT + line * scale, y + 84, "frame", 2)
    return """A frame is a sector of 32 bytes, the longer strokes bound a line of 128. Coloured:
        bytes used, by the lane of that colour; hatched: fetched, not used."""


@picture("08_ordering", (GRAPH, "csr_vector_32"), (f"{GRAPH},order=columns", "csr_vector_32"))
def sectors_of_x(draw, *found, most=6):
    """csr_vector_32 on a graph of 1024 vertices: the sectors of x that a warp asks for"""
    # The first requests of warps, of rows of at least 32 nonzeros, in two orders of columns.
    names = "columns as they are numbered", "columns that are used most first"
    for y, name, trace in zip((34, 162), names, found):
        draw.text(10, y + 10, name)
        [size] = {array["bytes"] for array in trace["arrays"] if array["name"] == "x"}
        x, requests = along(0, size // traces.SECTOR, 10, ROOM), {}
        for _, at, _, array, lanes, addresses in traces.requests(trace):
            if array["name"] == "x" and len(lanes) == 32:
                requests.setdefault(at, addresses)
        for y, addresses in zip(range(y + 18, y + 18 + 17 * most, 17), requests.values()):
            touched = {}
            for lane, address in enumerate(addresses):
                touched.setdefault(address // traces.SECTOR, lane)
            draw.rect(10, y, ROOM, 12, "quiet")
            for sector, lane in touched.items():
                draw.rect(x(sector), y, x(1) - x(0), 12, colour(lane))
            draw.text(ROOM + 16, y + 10, plural(len(touched), "sector"), "soft")
    return """A line: x in double precision, and in it the sectors of one request, of 32 lanes
        in a row of the graph; colours: the first lane that needs the sector."""


ANSWER = 24  # times as long as it takes to start a request: of this picture, not of a GPU


@picture("primer_latency", SCALAR)
def hidden_latency(draw, trace):
    """While one warp waits, others make their requests"""
    # The first requests of 1, 4 and 8 warps: each waits for the answer, and one starts at a time.
    hues = {"row_offsets": 3, "column_indices": 16, "values": 10, "x": 25}
    x, units, y = along(0, 132, LEFT, ROOM), 132, 36
    names = defaultdict(list)
    for _, at, _, array, *_ in traces.requests(trace):
        names[at].append(array["name"])
    for count in (1, 4, 8):
        ready, busy, started = [0] * count, 0, 0
        todo = [list(names[0, 0, warp]) for warp in range(count)]
        while any(todo):
            warp = min((w for w in range(count) if todo[w]), key=lambda w: (ready[w], w))
            begin = max(busy, ready[warp])
            if begin + ANSWER > units:
                break
            busy, ready[warp], started = begin + 1, begin + ANSWER, started + 1
            top, hue = y + warp * 12, colour(hues[todo[warp].pop(0)])
            draw.rect(x(begin), top, x(ANSWER) - x(0) - 1, 9, "quiet")
            draw.rect(x(begin), top, x(1) - x(0), 9, hue)
        draw.line(x(units), y - 4, x(units), y + count * 12, "frame")
        draw.text(LEFT - 8, y + 9, plural(count, "warp"), anchor="end")
        y += count * 12 + 28
        draw.small(LEFT, y - 16, f"{plural(started, 'request')} answered in this time")
    for i, (name, hue) in enumerate(hues.items()):
        draw.key(LEFT + i * 130, y + 7, colour(hue), name)
    return f"""Requests of {trace["kernel"]["name"]} on {trace["matrix"]["name"]}, in the order
        of its trace. Coloured: a request starts; grey: its warp waits; line: the end. Times are
        a model: an answer takes {ANSWER} times as long as starting a request, and each warp
        waits for it before it goes on. A GPU waits for hundreds of cycles, and holds up to 64
        warps per multiprocessor."""


@picture("primer_roofline", SCALAR, VECTOR)
def roofline(draw, scalar, vector):
    """The roofline: what memory and arithmetic allow"""
    # Where the bytes that a product needs, and those that kernels ask for, put SpMV on an H200.
    left, top, right, bottom = 90, 44, WIDTH - 20, 330
    memory, arithmetic = GPUS["h200"].dram_gb_per_s, GPUS["h200"].f64_gflops
    powers = along(-6, 6, left, right - left), along(3, 17, bottom, top - bottom)
    x, y = ((lambda value, to=to: to(math.log2(value))) for to in powers)
    for power in range(-6, 7):
        at, text = x(2.0**power), f"{2**power}" if power >= 0 else f"1/{2**-power}"
        draw.line(at, top, at, bottom, "soft-line", 0.5)
        draw.middle(at, bottom + 15, text, "soft small")
    for power in range(4, 17, 2):
        draw.line(left, y(2**power), right, y(2**power), "soft-line", 0.5)
        draw.small(left - 6, y(2**power) + 4, f"{2**power:,}", "end")
    draw.line(left, y(memory / 64), x(arithmetic / memory), y(arithmetic), "frame", 2)
    draw.line(x(arithmetic / memory), y(arithmetic), right, y(arithmetic), "frame", 2)
    draw.text(x(1), y(memory) - 12, f"memory: {memory:,} GB/s", "ink small", "end")
    draw.text(right, y(arithmetic) - 8, f"arithmetic: {arithmetic:,} GFLOP/s", "ink small", "end")
    points = [("the bytes that the product needs", scalar["compulsory_bytes"])]
    for trace in (vector, scalar):
        counts = traces.traffic(trace).items()
        sectors = sum(c["sectors"] for (_, space, _), c in counts if space == "global")
        points.append((f"all that {trace['kernel']['name']} asks for", traces.SECTOR * sectors))
    nonzeros = scalar["matrix"]["nonzeros"]
    for i, (hue, (name, moved)) in enumerate(zip(map(colour, (16, 25, 31)), points)):
        intensity = 2 * nonzeros / moved
        at, row, reached = x(intensity), bottom - 74 + 22 * i, intensity * memory
        draw.line(at, y(reached), at, bottom, hue, 2)
        draw.circle(at, y(reached), 5, hue)
        draw.circle(x(0.45), row - 4, 5, hue)
        said = f"{name}: {intensity:.3f} operations per byte, {reached:.0f} GFLOP/s"
        draw.text(x(0.5), row, said, "ink small")
    draw.small(left, bottom + 32, "operations per byte (arithmetic intensity)")
    draw.small(10, top - 8, "GFLOP/s")
    return f"""{scalar["matrix"]["name"]}, double precision: 2 operations for each of {nonzeros}
        nonzeros. Lines: what an H200's memory and arithmetic allow. Points: the most that is
        possible if every byte comes from memory. What warps ask for is from traces, before any
        cache; a cache raises the limit."""


@picture("06_versions")
def versions(draw):
    """Ten versions of one pass beside cuSPARSE, on an H200"""
    # Means of the records; where there are none, those of NOTES.md.
    story, notes = (
        (ROOT / "06_pcsr/one_pass" / name).read_text(encoding="utf-8")
        for name in ("story.md", "NOTES.md")
    )
    means = defaultdict(dict)
    recorded = r"^(\d+) +(f64|f32) +warm +\d+ +([\d.]+)"
    for version, precision, mean in re.findall(recorded, story, re.MULTILINE):
        means[int(version)][precision] = float(mean)
    for version in set(range(1, 11)) - set(means):
        [told] = re.findall(rf"^\| {version}\. .*? \| ([^|]*) \|$", notes, re.MULTILINE)
        f64, f32 = re.search(r"\b(1\.\d\d)\b(?: and (1\.\d\d)\b)?", told).groups()
        means[version] = {"f64": float(f64), "f32": float(f32 or f64)}
    hues = {"f64": colour(4), "f32": colour(22)}
    y = along(1, 1.4, 230, -192)
    for tenth in range(10, 15):
        draw.line(60, y(tenth / 10), WIDTH - 20, y(tenth / 10), "soft-line", 0.6)
        draw.small(54, y(tenth / 10) + 4, f"{tenth / 10:.1f}", "end")
    draw.small(4, 245, "cuSPARSE")
    for version, of in sorted(means.items()):
        x = 74 + (version - 1) * 82
        pale = None if f"\n{version} " in story else ".45"
        for left, (precision, hue) in zip((x, x + 27), hues.items()):
            mean = of[precision]
            draw.rect(left, y(mean), 25, y(1) - y(mean), hue, opacity=pale)
            draw.middle(left + 12.5, y(mean) - 4, f"{mean:.2f}", "ink small")
        draw.middle(x + 26, 245, f"version {version}", "ink small")
    for x, name, hue in zip((74, 214), ("double precision", "single"), hues.values()):
        draw.key(x, 35, hue, name)
    return """How many times as fast as the best of cuSPARSE's CSR and COO algorithms, geometric
        mean. Versions 1 to 4 on 22 matrices, later ones on 24. Bars begin at 1, as fast as
        cuSPARSE. Pale: no records were kept; as the notes report it (of versions 5 and 6 the
        mean over both precisions)."""


# --- All of them ----------------------------------------------------------------------------------


def draw(program):
    """{name: SVG}."""

    @functools.cache
    def recorded(matrix, kernel, schedule="forward", command=""):
        matrix, _, order = matrix.partition(",order=")
        options = ["--padding-limit", "20", *(["--order", order] if order else [])]
        how = "f64", schedule, *options
        return watch.record(program, matrix, [kernel], *how, command=command)[0]

    drawn = {}
    for name, (title, how, runs) in PICTURES.items():
        picture = Picture(title)
        picture.caption(how(picture, *(recorded(*run) for run in runs)))
        drawn[name] = picture.svg()
    return drawn


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("program", type=Path)
    parser.add_argument("directory", type=Path)
    arguments = parser.parse_args()
    arguments.directory.mkdir(parents=True, exist_ok=True)
    try:
        for name, text in draw(arguments.program).items():
            (arguments.directory / f"{name}.svg").write_text(text, encoding="utf-8")
            print(arguments.directory / f"{name}.svg")
    except traces.TraceError as error:
        sys.exit(f"error: {error}")


if __name__ == "__main__":
    main()
