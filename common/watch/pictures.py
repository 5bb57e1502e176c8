#!/usr/bin/env python3
"""Draws the pictures of the lessons from traces: make pictures. (plots/papers/ladder.py draws with Picture, too.)

    pictures.py PROGRAM DIRECTORY

PROGRAM is the CPU backend with all steps. Each picture is an SVG that follows the reader's light or
dark setting. Drawn again, it is the same file. Pictures in DIRECTORY that are not of PICTURES are
changed as SVG; test_pictures.py compares the numbers in them.
"""

import argparse
import functools
import itertools
import sys
import textwrap
from collections import defaultdict
from html import escape
from pathlib import Path
from types import SimpleNamespace

import traces
import watch

RAMP = [(58, 76, 192), (38, 150, 200), (52, 172, 110), (226, 174, 30), (216, 62, 52)]
WIDTH = 900
LEFT, ROOM = 96, WIDTH - 110  # of lanes and arrays; their names stand to the left

STYLE = """
.p { fill: #ffffff } .ink { fill: #1c2430 } .soft { fill: #5d6878 } .edge { stroke: #b9c2ce; fill: none }
.box { stroke: #b9c2ce; fill: #ffffff } .drag { fill: url(#hatch); stroke: none } .frame { stroke: #1c2430; fill: none }
.padding { stroke: #e9a9a4 } .nonzero { stroke: #4f83cc } .unread { stroke: #dfe5ec } .bad { fill: #c22f2f } .rule { stroke: #8a95a5; fill: none } .hatch { stroke: #8a95a5 }
.soft-line { stroke: #b9c2ce; fill: none } .quiet { fill: #dfe5ec } .on { fill: #000000 }
text { font: 12px system-ui, "Segoe UI", "DejaVu Sans", sans-serif } .small { font-size: 11px } .title { font-weight: 600; font-size: 13px }
.mono { font-family: ui-monospace, "DejaVu Sans Mono", monospace }
@media (prefers-color-scheme: dark) {
.p { fill: #151a21 } .ink { fill: #e4e9f0 } .soft { fill: #9aa6b6 } .edge { stroke: #465163 }
.box { stroke: #465163; fill: #1a2028 } .frame { stroke: #e4e9f0 } .padding { stroke: #83423f } .unread { stroke: #2a333f } .bad { fill: #ff7d73 } .rule { stroke: #6d7990 }
.hatch { stroke: #7b879b } .soft-line { stroke: #465163 } .quiet { fill: #2a333f } }
"""


def colour(lane):
    at = lane / 31 * (len(RAMP) - 1)
    i = min(len(RAMP) - 2, int(at))
    mixed = (round(a + (at - i) * (b - a)) for a, b in zip(RAMP[i], RAMP[i + 1]))
    return "#" + "".join(f"{part:02x}" for part in mixed)


def paint(look, how="fill"):
    """A look is a class of STYLE, or a colour to fill or to stroke with."""
    return {how if look.startswith("#") else "class_": look} if look else {}


def number(value):
    return f"{value:.1f}".removesuffix(".0")


def along(low, high, begin, room):
    """A scale: where a value from `low` to `high` is drawn."""
    return lambda value: begin + (value - low) / (high - low) * room


class Picture:
    def __init__(self, title):
        self.title, self.description, self.parts, self.height = title, "", [], 0
        self.width = WIDTH
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

    def key(self, x, y, look, text, words="soft small"):
        """What a colour means."""
        self.rect(x, y - 9, 10, 10, look)
        self.text(x + 15, y, text, words)

    def bars(self, y, name, bars, most, tall=16):
        """Bars (begin, end, look, text or nothing) on a line, on a scale from 0 to `most`."""
        x = along(0, most, LEFT, ROOM)
        self.text(10, y + tall / 2 + 4, name)
        if bars:
            self.line(LEFT, y + tall / 2, LEFT + ROOM, y + tall / 2, "soft-line")
        for begin, end, look, *text in bars:
            width = max(1.5, x(end) - x(begin) - 1)
            self.rect(x(begin), y, width, tall, look, rx=1)
            if text and width > 8 + 7 * len(str(*text)):
                is_light = sum(bytes.fromhex(look[1:])) > 330
                self.text(
                    x(begin) + 4, y + tall / 2 + 4, *text, "on small" if is_light else "p small"
                )

    def rect(self, x, y, width, height, look=None, **more):
        self.add("rect", x=x, y=y, width=width, height=height, **paint(look), **more)

    def row(self, y, tall, looks, texts=(), pitch=ROOM / 32, gap=2, **more):
        """Boxes, and the texts in them. Returns where they are; x(k) is the middle of the k-th."""
        x = along(0, 1, LEFT + pitch / 2 - 1, pitch)
        for k, (look, text) in enumerate(itertools.zip_longest(looks, texts)):
            self.rect(LEFT + k * pitch, y, pitch - gap, tall, look, **more)
            if text is not None:
                self.middle(x(k), y + tall / 2 + 4, text)
        return SimpleNamespace(x=x, top=y, bottom=y + tall)

    def lanes(self, y, active):
        looks = [colour(lane) if lane in active else "quiet" for lane in range(32)]
        return self.row(y, 12, looks, rx=2)

    def line(self, x1, y1, x2, y2, look, width=None, **more):
        look = paint(look, "stroke")
        self.add("line", x1=x1, y1=y1, x2=x2, y2=y2, **look, stroke_width=width, **more)
        self.height = max(self.height, y1, y2)

    def squares(self, places, side, look, **more):
        """Squares of one look, as one element; (x, y) is the middle of the left edge."""
        strokes = "".join(f"M{number(x)} {number(y)}h{number(side)}" for x, y in places)
        self.add("path", d=strokes, stroke_width=f"{side:.2f}", **paint(look, "stroke"), **more)
        self.height = max([self.height, *(y + side / 2 for _, y in places)])

    def caption(self, text):
        """What the picture shows, below it."""
        text, y = " ".join(text.split()), self.height + 16
        for i, line in enumerate(textwrap.wrap(text, self.width * 145 // WIDTH)):
            self.small(10, y + 15 * i, line)
        self.description = f"{text} {self.description}".strip()

    def svg(self):
        height, text = round(self.height + 10), "\n".join(self.parts)
        return (
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {self.width} {height}" '
            f'width="{self.width}" height="{height}" role="img" aria-labelledby="t d">'
            f'<title id="t">{escape(self.title)}</title><desc id="d">{escape(self.description)}'
            f'</desc><style>{STYLE.strip()}</style><defs><pattern id="hatch" width="4" height="4" '
            'patternUnits="userSpaceOnUse" patternTransform="rotate(45)"><line x1="0" y1="0" '
            'x2="0" y2="4" class="hatch" stroke-width="1.2"/></pattern></defs>'
            f'<rect class="p" width="{self.width}" height="{height}"/>\n{text}\n</svg>\n'
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


def picture(name, *runs, title=None, **options):
    """The function below draws this picture of traces of `runs`, and returns its caption."""

    def keep(how):
        PICTURES[name] = title or how.__doc__, functools.partial(how, **options), runs
        return how

    return keep


# --- From traces ----------------------------------------------------------------------------------


def accesses(trace, name, access="load", launch=0, block=0, warp=0):
    """A warp's requests to an array."""
    wanted = {"name": name, "access": access, "launch": launch, "block": block, "warp": warp}
    return list(traces.requests(trace, **wanted))


def plural(count, word):
    return f"{count} {word}" + ("" if count == 1 else "es" if word.endswith("s") else "s")


def lines_of(*requests):
    """The first byte, and the last plus one, of the lines of 128 bytes that requests touch."""
    first = min(min(request.addresses) for request in requests)
    last = max(max(request.addresses) + request.size for request in requests)
    return first // 128 * 128, -(-last // 128) * 128


def over_sectors(draw, found, drawn=None):
    """The lanes of requests {text: request} above the sectors that they touch, on one scale. `drawn`:
    the first byte and the last plus one that are drawn of each, if not the request's own lines."""
    spans = [drawn or lines_of(request) for request in found.values()]
    scale = ROOM / max(last - first for first, last in spans)
    for y, (first, last), (text, of) in zip(range(34, 999, 112), spans, found.items()):
        lanes, addresses, size = of.lanes, of.addresses, of.size
        x, row = along(0, 1, LEFT - first * scale, scale), draw.lanes(y + 18, lanes)
        draw.text(LEFT, y + 10, text)
        touched, y = traces.sectors_of(addresses, size), y + 64
        for sector in sorted(touched):
            draw.rect(x(32 * sector), y, 32 * scale, 16, "drag")
        for lane, address in zip(lanes, addresses):
            end = x(address + size / 2)
            draw.line(row.x(lane), row.bottom, end, y, colour(lane), 1, opacity=".8")
            draw.rect(x(address), y, size * scale, 16, colour(lane))
        for sector in range(first // 32, last // 32):
            look, width = ("frame", 1) if sector in touched else ("edge", 0.6)
            draw.rect(x(32 * sector), y, 32 * scale, 16, look, stroke_width=width)
        for line in range(first, last + 1, 128):
            draw.line(x(line), y - 4, x(line), y + 20, "frame", 2)
        sectors, used = of.counts["sectors"], of.counts["bytes_used"]
        wanted = f"{of.counts['ideal_sectors']} would do · {100 * used / sectors / 32:.0f}%"
        text = f"{plural(len(lanes), 'lane')} · {plural(sectors, 'sector')} touched, {wanted}"
        draw.text(LEFT, y + 31, f"{text} of the bytes used", "soft")
    return """A frame is a sector of 32 bytes, the longer strokes bound a line of 128. Coloured:
        bytes used, by the lane of that colour; hatched: fetched, not used by this request."""


@picture("02_lanes", SCALAR, title="csr_scalar: one row per lane")
@picture("03_lanes", VECTOR, title="csr_vector_4: four neighbouring lanes share a row", turns=2)
@picture("08_lanes", (STENCIL, "ell"), title="ell: neighbouring rows, neighbouring elements")
def iterations(draw, trace, turns=3):
    """Requests for `values`, iteration after iteration."""
    found = accesses(trace, "values")[:turns]
    texts = {f"values, iteration {i}": request for i, request in enumerate(found, 1)}
    return over_sectors(draw, texts, lines_of(*found))


@picture("primer_sectors", SCALAR)
def three_requests(draw, trace):
    """Three requests of a warp, and the sectors that they touch"""
    same = "neighbouring lanes, neighbouring elements of 4 bytes"
    own = "one row per lane; neighbouring lanes are 3 to 5 elements of 8 bytes apart"
    texts = {
        f"row_offsets[row], a load: {same}": accesses(trace, "row_offsets")[0],
        "y[row], a store: the same with elements of 8 bytes": accesses(trace, "y", "store")[0],
        f"values[k], a load: {own}": accesses(trace, "values")[0],
    }
    return over_sectors(draw, texts)


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
        row = draw.row(y + 100, 20, boxes, names, pitch, gap=6, rx=3)
        for lane, element in zip(request.lanes, elements):
            end = row.x(distinct.index(element))
            draw.line(lanes.x(lane), lanes.bottom, end, row.top, colour(lane), 1.5)
        for k, count in enumerate(map(elements.count, distinct)):
            said = (f"{count} in turn", "bad small") if count > 1 else ("1", "soft small")
            draw.middle(row.x(k), y + 134, *said)
    return f"""The first request of an atomic in the first warp, on {trace["matrix"]["name"]}."""


@picture("06_tiles", (ONE_LONG_ROW, "pcsr_one_pass"))
def tiles(draw, trace):
    """pcsr_one_pass: the tiles of the warps on the path through rows and nonzeros"""
    # A path through nonzeros (to the right) and rows (down), cut where tiles of warps begin.
    found = defaultdict(list)  # by block: the first row and the first nonzero of its tile
    for load in traces.requests(trace, access="load"):
        if len(found[load.block]) < 2:  # read before anything else
            first = load.values[0]
            found[load.block].append(int(first, 16) if isinstance(first, str) else first)
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


@picture("07_timeline", ("powerlaw:640x640,nnz=6400", "lightspmv_warp", "turns"))
def timeline(draw, trace):
    """lightspmv_warp: rows go to the warps that are free"""
    # Which warp has which rows, in the order in which the counter gave them out.
    fetched = defaultdict(list)  # by warp: [begin, end, first row]
    for step, of in enumerate(traces.requests(trace), 1):
        if of.access == "atomic":
            fetched[of.warp].append([step, step, of.values[0]])
        if fetched[of.warp]:
            fetched[of.warp][-1][1] = step
    rows, warps = trace["matrix"]["rows"], trace["launches"][0]["block"][0] // 32
    shown = {warp: [of for of in fetched[warp] if of[2] < rows] for warp in sorted(fetched)[:16]}
    most = max(end for of in shown.values() for _, end, _ in of)
    for y, (warp, of) in zip(range(36, 700, 20), shown.items()):
        bars = [(begin, end, colour(row * 32 // rows), row) for begin, end, row in of]
        draw.bars(y, f"warp {warp}", bars, most)
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
        loads = traces.requests(trace, name=name, access="load")
        held = dict(pair for of in loads for pair in zip(of.elements, of.values))
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


@picture("06_adaptive", (LONG_ROWS, "csr_adaptive"))
def adaptive_blocks(draw, trace):
    """csr_adaptive: the nonzeros of each block, and how it adds them up"""
    # Which nonzeros each block reads, and whether their products go through shared memory.
    kinds = {
        "stream": (3, "the short rows of a block: products in shared memory, a few lanes per row"),
        "vector": (22, "a row of more than 1,024 nonzeros: all threads of its block"),
        "shared": (31, "a row of more than 8,192: several blocks"),
    }  # fmt: skip
    nonzeros, spans, top = trace["matrix"]["nonzeros"], defaultdict(list), 48
    parts = {of.block for of in traces.requests(trace, launch=0, name="partial_sums")}
    for of in traces.requests(trace, launch=0, name="values"):
        text = trace["sources"][of.file]["text"].splitlines()[of.line - 1]
        kind = "shared" if of.block in parts else "vector"
        spans[of.block, "stream" if "products[" in text else kind] += of.elements
    x = along(0, nonzeros, LEFT, ROOM)
    for begin in trace["matrix"]["row_offsets"]:
        draw.line(x(begin), top - 12, x(begin), top - 4, "rule", 0.6)
    draw.text(10, top - 4, "rows")
    for block in range(trace["launches"][0]["grid"][0]):
        y = top + 12 * block
        found = [(kind, spans[block, kind]) for kind in kinds if (block, kind) in spans]
        bars = [(min(read), max(read) + 1, colour(kinds[kind][0])) for kind, read in found]
        draw.bars(y, f"block {block}", bars, nonzeros, tall=9)
        if not found:
            draw.small(LEFT, y + 9, "no rows: within the long row of the block above")
    for y, (kind, (hue, text)) in zip(range(top + 310, 999, 18), kinds.items()):
        times = plural(sum(of == kind for _, of in spans), "time")
        draw.key(LEFT, y, colour(hue), f"{kind}, {times}: {text}", "ink small")
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
    csr = 12 * len(places) + 4 * (rows + 1) + 16 * rows
    draw.text(430, 66, f"{matrix['name']}: {rows} states, {len(places)} nonzeros")
    whole = f"{len(dense)} nonzeros on {plural(len(kept), 'diagonal')} stored whole: 8 bytes each"
    stored = f"{plural(len(zeros), 'zero')} stored with them"
    others = f"{len(rest)} nonzeros as CSR: 8 bytes, and 2 for the diagonal's distance"
    looks = colour(3), "#e9a9a4", colour(25)
    texts = zip(looks, (dense, zeros, rest), (whole, stored, others))
    for line, (look, of, text) in zip((100, 124, 148), texts):
        draw.squares([(x(c), y(r)) for r, c in sorted(of)], cell, look)
        draw.key(430, line, look, text, "ink")
    needed = f"A product needs {trace['compulsory_bytes']:.0f} bytes, in CSR {csr}."
    draw.text(430, 186, needed)
    return """Row r, column c: from state c the chain moves to state r. Most moves are the same
        few steps in the numbering of the states."""


@picture(
    "08_ordering",
    (GRAPH, "csr_vector_32"),
    (GRAPH, "csr_vector_32", "forward", "--order", "columns"),
)
def sectors_of_x(draw, *found, most=6):
    """csr_vector_32 on a graph of 1024 vertices: the sectors of x that a warp asks for"""
    # The first requests of warps, of rows of at least 32 nonzeros, in two orders of columns.
    names = "columns as they are numbered", "columns that are used most first"
    for y, name, trace in zip((34, 162), names, found):
        draw.text(10, y + 10, name)
        [size] = {array["bytes"] for array in trace["arrays"] if array["name"] == "x"}
        first = {}
        for of in traces.requests(trace, name="x"):
            if len(of.lanes) == 32:
                first.setdefault((of.launch, of.block, of.warp), of.addresses)
        for y, addresses in zip(range(y + 18, y + 18 + 17 * most, 17), first.values()):
            lanes = {address // traces.SECTOR: lane for lane, address in enumerate(addresses)}
            bars = [(sector, sector + 1, colour(lane)) for sector, lane in lanes.items()]
            draw.bars(y, plural(len(lanes), "sector"), bars, size // traces.SECTOR, tall=12)
    return """A line: x in double precision, and in it the sectors of one request, of 32 lanes
        in a row of the graph; colours: the last lane that needs the sector."""


# --- All of them ----------------------------------------------------------------------------------


def draw(program):
    """{name: SVG}."""

    @functools.cache
    def recorded(matrix, kernel, schedule="forward", *options):
        options = "--padding-limit", "20", *options
        return watch.record(program, matrix, [kernel], "f64", schedule, *options)[0]

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
