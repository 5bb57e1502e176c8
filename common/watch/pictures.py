#!/usr/bin/env python3
"""Draws the pictures of the lessons from traces: make pictures

    pictures.py PROGRAM DIRECTORY [--files DIRECTORY]

PROGRAM is the CPU backend with all steps. Each picture is an SVG that follows the reader's light or dark
setting, moves where motion explains, and stands still where the reader asks for that. Drawn again, it is
the same file. Those of EDITED show no data: they are changed as SVG.
"""

import argparse
import contextlib
import functools
import json
import math
import re
import subprocess
import sys
from collections import defaultdict
from html import escape
from pathlib import Path

import traces
import watch

sys.path.append(str(Path(__file__).resolve().parents[1] / "simt"))
from gpus import GPUS  # noqa: E402

RAMP = [(58, 76, 192), (38, 150, 200), (52, 172, 110), (226, 174, 30), (216, 62, 52)]
WIDTH = 900
ROOT = Path(__file__).resolve().parents[2]

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


def colour(lane):
    at = lane / 31 * (len(RAMP) - 1)
    i = min(len(RAMP) - 2, int(at))
    return "#" + "".join(
        f"{round(a + (at - i) * (b - a)):02x}" for a, b in zip(RAMP[i], RAMP[i + 1])
    )


def number(value):
    text = f"{value:.1f}"
    return text[:-2] if text.endswith(".0") else text


class Picture:
    def __init__(self, title):
        self.title, self.description = title, ""
        self.parts, self.styles, self.groups, self.height = [], [], [], 0
        self.text(10, 20, title, "ink title")

    def add(self, tag, text=None, **attributes):
        words = "".join(
            f' {name.rstrip("_").replace("_", "-")}="{number(v) if isinstance(v, float) else escape(str(v))}"'
            for name, v in attributes.items()
            if v is not None
        )
        self.parts.append(
            f"<{tag}{words}/>" if text is None else f"<{tag}{words}>{escape(str(text))}</{tag}>"
        )
        bottom = attributes.get("y", 0)
        if isinstance(bottom, (int, float)):
            self.height = max(self.height, bottom + attributes.get("height", 6))

    def text(self, x, y, text, class_="ink", anchor=None):
        self.add("text", text, x=float(x), y=float(y), class_=class_, text_anchor=anchor)

    def note(self, y, *lines):
        """Small text at the left."""
        for number, line in enumerate(lines):
            self.text(10, y + 15 * number, line, "soft small")

    def rect(self, x, y, width, height, **attributes):
        self.add(
            "rect", x=float(x), y=float(y), width=float(width), height=float(height), **attributes
        )

    def line(self, x1, y1, x2, y2, **attributes):
        self.add("line", x1=float(x1), y1=float(y1), x2=float(x2), y2=float(y2), **attributes)
        self.height = max(self.height, y1, y2)

    @contextlib.contextmanager
    def group(self, class_):
        """What is drawn meanwhile is one of the groups of in_turn()."""
        self.groups.append(class_)
        self.parts.append(f'<g class="{class_}">')
        yield
        self.parts.append("</g>")

    def in_turn(self, seconds):
        """Groups that light up one after the other, again and again, where motion is wanted."""
        total, share = seconds * len(self.groups), 100 / len(self.groups)
        self.styles.append("@media (prefers-reduced-motion: no-preference) {")
        self.styles.append(
            f"@keyframes turn {{ 0%, {share * 0.98:.2f}% {{ opacity: 1 }} {share:.2f}%, 100% {{ opacity: .16 }} }}"
        )
        for i, name in enumerate(self.groups):
            self.styles.append(
                f".{name} {{ animation: turn {total}s linear {i * seconds}s infinite backwards }}"
            )
        self.styles.append("}")

    def svg(self):
        height = round(self.height + 10)
        style = STYLE.strip() + ("\n" + "\n".join(self.styles) if self.styles else "")
        return (
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" width="{WIDTH}" height="{height}" role="img" '
            f'aria-labelledby="t d"><title id="t">{escape(self.title)}</title><desc id="d">{escape(self.description)}</desc>'
            f'<style>{style}</style><defs><pattern id="hatch" width="4" height="4" patternUnits="userSpaceOnUse" '
            'patternTransform="rotate(45)"><line x1="0" y1="0" x2="0" y2="4" class="hatch" stroke-width="1.2"/></pattern></defs>'
            f'<rect class="p" width="{WIDTH}" height="{height}"/>\n'
            + "\n".join(self.parts)
            + "\n</svg>\n"
        )


# --- From traces ----------------------------------------------------------------------------------


def accesses(trace, name, kind="load", launch=0, block=0, warp=0):
    """(lanes, addresses, counts, values, size) of a warp's requests to an array."""
    found = []
    for number, at, instruction, array, lanes, addresses in traces.requests(trace):
        if at == (launch, block, warp) and (instruction["access"], array["name"]) == (kind, name):
            values = [
                trace["values"][v] if not isinstance(v, list) else None
                for v in trace["events"][number][4]
            ]
            counts = trace["counts"][number]
            found.append((lanes, addresses, counts, values, instruction["size"]))
    return found


def plural(count, word):
    return f"{count} {word}" if count == 1 else f"{count} {word}s"


def lanes_row(picture, x, y, pitch, active, gap=2, tall=12, rx=2):
    for lane in range(32):
        look = {"fill": colour(lane)} if lane in active else {"class_": "quiet"}
        picture.rect(x + lane * pitch, y, pitch - gap, tall, rx=rx, **look)


def request_over_sectors(picture, left, y, room, first, last, request):
    """The lanes of a request, as `accesses` gives it, above bytes `first` to `last` of its array."""
    lanes, addresses, counts, _, size = request
    scale, pitch = room / (last - first), (WIDTH - 110) / 32
    lanes_row(picture, left, y, pitch, set(lanes))
    top, bottom = y + 12, y + 46
    touched = traces.sectors_of(addresses, size)
    for sector in range(first // 32, last // 32):
        x = left + (sector * 32 - first) * scale
        if sector in touched:
            picture.rect(x, bottom, 32 * scale, 16, class_="drag")
    for lane, address in zip(lanes, addresses):
        x = left + (address - first) * scale
        picture.line(
            left + lane * pitch + pitch / 2 - 1,
            top,
            x + size * scale / 2,
            bottom,
            stroke=colour(lane),
            stroke_width=1,
            opacity=".8",
        )
        picture.rect(x, bottom, size * scale, 16, fill=colour(lane))
    for sector in range(first // 32, last // 32):
        x = left + (sector * 32 - first) * scale
        picture.rect(
            x,
            bottom,
            32 * scale,
            16,
            class_="frame" if sector in touched else "edge",
            stroke_width="1" if sector in touched else ".6",
        )
    picture.text(
        left,
        bottom + 31,
        f"{plural(len(lanes), 'lane')} · {plural(counts['sectors'], 'sector')} touched, "
        f"{counts['ideal_sectors']} would do · {round(100 * counts['bytes_used'] / counts['sectors'] / 32)}% of the bytes used",
        "soft",
    )


def lanes_over_sectors(picture, trace, turns=3):
    """Lanes above the sectors of `values` that their requests touch, iteration after iteration."""
    requests = accesses(trace, "values")[:turns]
    sums = [
        f"iteration {i}: {len(r[0])} lanes, {r[2]['sectors']} sectors where {r[2]['ideal_sectors']} would do"
        for i, r in enumerate(requests, 1)
    ]
    picture.description = (
        f"Lanes of the first warp of {trace['kernel']['name']} on {trace['matrix']['name']} above the sectors "
        "of values that they load. " + "; ".join(sums) + "."
    )
    first = min(min(r[1]) for r in requests) // 128 * 128
    last = -(-max(max(r[1]) + r[4] for r in requests) // 128) * 128
    left, room = 96, WIDTH - 110
    y = 34
    for turn, request in enumerate(requests, 1):
        with picture.group(f"turn{turn}"):
            picture.text(10, y + 10, f"iteration {turn}", "ink")
            request_over_sectors(picture, left, y, room, first, last, request)
        y += 92
    unused = any(r[2]["bytes_used"] < 32 * r[2]["sectors"] for r in requests)
    picture.note(
        y + 4,
        "values: a frame is a sector of 32 bytes; coloured: used, by the lane of that colour"
        + ("; hatched: fetched, not used by this request" if unused else ""),
    )
    if len(requests) > 1:
        picture.in_turn(3)


def shuffle_tree(picture, trace):
    rounds = [
        (traces.lanes_of(event[2]), trace["values"][event[4]])
        for _, event, at in traces.walk(trace)
        if at == (0, 0, 0)
        and event[0] == "warp operation"
        and trace["instructions"][event[1]]["operation"] == "__shfl_down_sync"
    ]
    stores = accesses(trace, "y", "store")
    writers = stores[0][0]
    width = writers[1] - writers[0] if len(writers) > 1 else 32
    rounds = rounds[: width.bit_length() - 1]
    picture.description = (
        f"{len(rounds)} rounds of __shfl_down_sync in the first warp of {trace['kernel']['name']}: in each, every lane takes "
        "the sum of a lane above it and adds it. "
        + " ".join(
            f"Round {i}: distance {max(source - lane for lane, source in zip(lanes, sources))}."
            for i, (lanes, sources) in enumerate(rounds, 1)
        )
        + f" Lanes {', '.join(map(str, writers))} write the sums."
    )
    left, pitch = 100, (WIDTH - 120) / 32
    x = [left + (lane + 0.5) * pitch for lane in range(32)]
    y, step = 44, 58
    needed = [set(writers)]
    for lanes, sources in reversed(rounds):
        source = dict(zip(lanes, sources))
        needed.insert(0, needed[0] | {source[lane] for lane in needed[0]})
    for i, (lanes, sources) in enumerate(rounds):
        top, bottom = y + i * step, y + (i + 1) * step
        with picture.group(f"round{i}"):
            picture.text(
                10,
                top + step / 2 + 4,
                f"distance {max(source - lane for lane, source in zip(lanes, sources))}",
            )
            for lane, source in zip(lanes, sources):
                counts = lane in needed[i + 1]
                if source != lane:
                    picture.line(
                        x[source],
                        top,
                        x[lane],
                        bottom,
                        **(
                            {"stroke": colour(lane // width * width), "stroke_width": 2}
                            if counts
                            else {"class_": "soft-line", "stroke_width": 0.8}
                        ),
                    )
                if counts:
                    picture.line(
                        x[lane],
                        top,
                        x[lane],
                        bottom,
                        stroke=colour(lane // width * width),
                        stroke_width=2,
                    )
    for i in range(len(rounds) + 1):
        for lane in range(32):
            counts = lane in needed[i]
            picture.add(
                "circle",
                cx=float(x[lane]),
                cy=float(y + i * step),
                r=float(5.5 if counts else 2.5),
                fill=colour(lane // width * width) if counts else None,
                class_=None if counts else "quiet",
            )
    bottom = y + len(rounds) * step
    for lane in range(0, 32, 1 if pitch > 20 else 4):
        picture.text(x[lane], y - 10, lane, "soft small", "middle")
    for lane in writers:
        picture.text(
            x[lane],
            bottom + 22,
            f"y[{stores[0][1][writers.index(lane)] // stores[0][4]}]",
            "ink small mono",
            "middle",
        )
    picture.text(10, bottom + 22, "written")
    picture.note(
        bottom + 44,
        "Large dots: sums that count in the end. Grey lines: the other lanes shuffle, too; their sums are not used.",
    )
    picture.in_turn(2)


def collisions(picture, *found):
    """Lanes of an atomic above the elements of y: those on one element take turns."""
    described = []
    y = 40
    left, pitch = 100, (WIDTH - 120) / 32
    for trace in found:
        lanes, addresses, counts, _, size = next(
            r for r in accesses(trace, "y", "atomic", launch=1)
        )
        elements = [address // size for address in addresses]
        distinct = sorted(set(elements))
        most = max(elements.count(e) for e in distinct)
        described.append(
            f"{trace['kernel']['name']}: {len(lanes)} lanes add to {len(distinct)} elements, up to {most} to the same one."
        )
        picture.text(10, y + 10, trace["kernel"]["name"], "ink mono")
        y += 22
        lanes_row(picture, left, y, pitch, set(lanes))
        picture.text(10, y + 10, "lanes", "soft")
        each = min(80, (WIDTH - 120) / len(distinct))
        bottom = y + 78
        for lane, element in zip(lanes, elements):
            picture.line(
                left + (lane + 0.5) * pitch - 1,
                y + 12,
                left + (distinct.index(element) + 0.5) * each,
                bottom,
                stroke=colour(lane),
                stroke_width=1.4,
            )
        for i, element in enumerate(distinct):
            count = elements.count(element)
            picture.rect(left + i * each + 3, bottom, each - 6, 20, class_="box", rx=3)
            picture.text(
                left + (i + 0.5) * each, bottom + 14, f"y[{element}]", "ink small mono", "middle"
            )
            picture.text(
                left + (i + 0.5) * each,
                bottom + 34,
                f"{count} in turn" if count > 1 else "1",
                "bad small" if count > 1 else "soft small",
                "middle",
            )
        y = bottom + 54
    picture.note(
        y + 2,
        "The first request of an atomic in the first warp, on " + found[0]["matrix"]["name"] + ".",
    )
    picture.description = " ".join(described)


def scan_rounds(picture, trace, warp=1):
    """Who takes a sum from whom, round after round, from the loads of `sums` in shared memory."""
    rounds = []
    for lanes, addresses, _, _, size in accesses(trace, "sums", warp=warp):
        pairs = [(lane, address // size - 32 * warp) for lane, address in zip(lanes, addresses)]
        if rounds and pairs[0][0] - pairs[0][1] <= rounds[-1][0][0] - rounds[-1][0][1]:
            break  # the next turn begins
        rounds.append(pairs)
    rows = accesses(trace, "row_indices", warp=warp)[0][3]
    ends = set(accesses(trace, "y", "store", warp=warp)[0][0])
    picture.description = (
        f"Warp {warp} of {trace['kernel']['name']}: 32 nonzeros of rows {rows[0]} to {rows[-1]}. "
        + " ".join(
            f"Round {i}: {len(pairs)} lanes take the sum {pairs[0][0] - pairs[0][1]} to the left."
            for i, pairs in enumerate(rounds, 1)
        )
        + f" Then {len(ends)} lanes write a row."
    )
    left, pitch = 100, (WIDTH - 120) / 32
    x = lambda lane: left + (lane + 0.5) * pitch  # noqa: E731
    hue = {row: colour((i * 9) % 32) for i, row in enumerate(sorted(set(rows)))}
    y, step = 48, 62
    for i in range(len(rounds) + 1):
        if i:
            distance = rounds[i - 1][0][0] - rounds[i - 1][0][1]
            with picture.group(f"round{i}"):
                picture.text(10, y + (i - 0.5) * step + 4, f"distance {distance}")
                for lane, source in rounds[i - 1]:
                    picture.line(
                        max(x(source), left - 14),
                        y + (i - 1) * step + 9,
                        x(lane),
                        y + i * step - 9,
                        stroke=hue[rows[lane]],
                        stroke_width=1.6,
                    )
        for lane in range(32):
            picture.rect(
                x(lane) - pitch / 2 + 1.5,
                y + i * step - 9,
                pitch - 3,
                18,
                rx=3,
                fill=hue[rows[lane]],
                opacity=None
                if i == 0 or any(lane == taker for taker, _ in rounds[i - 1])
                else ".45",
            )
    bottom = y + len(rounds) * step
    for lane in range(32):
        if lane == 0 or rows[lane] != rows[lane - 1]:
            picture.text(x(lane) - pitch / 2 + 2, y - 14, f"row {rows[lane]}", "soft small")
        if lane in ends:
            picture.text(x(lane), bottom + 26, f"y[{rows[lane]}]", "ink small mono", "middle")
    picture.text(10, bottom + 26, "written")
    picture.note(
        bottom + 46,
        "Each box is a lane with its sum, in the colour of its row. Pale: nothing was added in this round.",
    )
    picture.in_turn(2.5)


def carries(picture, trace, first=4, shown=9):
    """The borders between the last warps of a block: tail, head, and who adds them up."""
    tiles = []
    for block, warp in [*((0, warp) for warp in range(first, 8)), (1, 0)]:
        requests = accesses(trace, "row_indices", block=block, warp=warp)
        tiles.append(
            [v for r in requests if len(r[0]) == 32 and len(set(r[1])) == 32 for v in r[3]]
        )
    *tiles, after = tiles
    cuts = [tile[-1] == following[0] for tile, following in zip(tiles, [*tiles[1:], after])]
    left, box, far = 66, 27, 436
    hue = lambda row: colour((row * 9) % 32)  # noqa: E731
    told, y = [], 46
    picture.text(
        left, y - 10, f"the first {shown} nonzeros of the tile, with their rows", "soft small"
    )
    picture.text(far, y - 10, f"the last {shown}", "soft small")
    picture.text(far + shown * box + 12, y - 10, "the warp itself writes", "soft small")
    for number, tile in enumerate(tiles):
        warp = first + number
        head = tile.count(tile[0]) if number and cuts[number - 1] else 0
        tail = tile.count(tile[-1]) if cuts[number] else 0
        picture.text(10, y + 14, f"warp {warp}", "ink")
        for begin, rows, of_cut in (
            (left, tile[:shown], lambda k: k < head),
            (far, tile[-shown:], lambda k: k >= shown - tail),
        ):
            for k, row in enumerate(rows):
                x = begin + k * box
                picture.rect(
                    x, y, box - 2, 20, rx=2, fill=hue(row), opacity=None if of_cut(k) else ".35"
                )
                picture.text(x + box / 2 - 1, y + 14, row, "ink small mono", "middle")
        picture.text(
            (left + shown * box + far) / 2,
            y + 14,
            f"... {len(tile) - 2 * shown} more ...",
            "soft small",
            "middle",
        )
        whole = [
            row for row in dict.fromkeys(tile) if row not in (head and tile[0], tail and tile[-1])
        ]
        picture.text(
            far + shown * box + 12, y + 14, f"y[{whole[0]}] to y[{whole[-1]}]", "ink small mono"
        )
        if head:
            picture.text(left, y + 34, f"head: {head} of row {tile[0]}", "ink small")
        if tail:
            picture.text(
                far + shown * box - 2, y + 34, f"tail: {tail} of row {tile[-1]}", "ink small", "end"
            )
            into = (
                f"head of warp {warp + 1}"
                if number + 1 < len(tiles)
                else "what the next block adds"
            )
            total = f"y[{tile[-1]}] = tail of warp {warp} + {into}"
            picture.text((left + far + shown * box) / 2, y + 48, total, "ink small mono", "middle")
            told.append(f"warp {warp} has {tail} nonzeros of row {tile[-1]}, its tail; {total}")
        y += 66
    ends = (
        "goes on in the next block: its tail becomes the carry of the block"
        if cuts[-1]
        else "ends with the block: its carry is 0"
    )
    picture.note(
        y + 2,
        f"{trace['kernel']['name']} on {trace['matrix']['name']}, the last warps of the first block. After a barrier one thread adds tails and heads.",
        f"The last row {ends}.",
    )
    picture.description = (
        f"Nonzeros at both ends of the tiles of warps {first} to 7 of a block of {trace['kernel']['name']}, with their rows. "
        + ". ".join(told)
        + f". The last row {ends}."
    )


def banks(picture, *found):
    """The words that the first request wants of each bank, on rows of different lengths."""
    left, pitch, y = 190, (WIDTH - 210) / 32, 40
    told = []
    for trace in found:
        lanes, addresses, counts, _, size = accesses(trace, "pcsr_piece", launch=1)[0]
        offset = next(array["offset"] for array in trace["arrays"] if array["name"] == "pcsr_piece")
        label = f"rows of {(addresses[1] - addresses[0]) // size} nonzeros"
        needed, ideal = counts["bank_passes"], counts["ideal_bank_passes"]
        load = defaultdict(list)
        for lane, address in zip(lanes, addresses):
            for word in range((offset + address) // 4, (offset + address + size) // 4):
                load[word % 32].append(lane)
        level = 6 if max(map(len, load.values())) > 8 else 12
        tall = max(map(len, load.values())) * level
        for bank in range(32):
            for i, lane in enumerate(load[bank]):
                picture.rect(
                    left + bank * pitch,
                    y + tall - (i + 1) * level,
                    pitch - 2,
                    level - 1,
                    fill=colour(lane),
                )
            picture.rect(left + bank * pitch, y + tall + 1, pitch - 2, 10, class_="quiet")
            if bank % 4 == 0:
                picture.text(
                    left + (bank + 0.5) * pitch, y + tall + 23, bank, "soft small", "middle"
                )
        middle = y + max(20, tall / 2)
        picture.text(10, middle - 14, label)
        picture.text(10, middle + 3, f"{needed} passes", "bad" if needed > ideal else "ink")
        picture.note(middle + 19, f"{ideal} without conflicts")
        told.append(f"{label.capitalize()}: {needed} passes, {ideal} without conflicts.")
        y += max(tall, 44) + 44
    picture.note(
        y - 6,
        "32 lanes read the first product of their rows. A box is a word, in the colour of its lane, above the bank that holds it; a bank serves one word per pass.",
        "A double is two words, and half a warp is served at a time. With one element more per row, used or padding, the lanes begin in different banks.",
    )
    picture.description = f"Banks of shared memory in {found[0]['kernel']['name']}. " + " ".join(
        told
    )


def tiles(picture, trace):
    """The path through nonzeros (to the right) and rows (down), cut where the tiles of the warps begin."""
    found = defaultdict(list)
    for event, (_, block, _), instruction, *_ in traces.requests(trace):
        if (
            instruction["access"] == "load" and len(found[block]) < 2
        ):  # a warp reads its tile before anything else
            values = [trace["values"][v] for v in trace["events"][event][4][:2]]
            found[block].append([int(v, 16) if isinstance(v, str) else v for v in values])
    cut_row = 1 << 31
    borders = [
        (row[0] & ~cut_row, nonzero[0], bool(row[0] & cut_row))
        for _, (row, nonzero) in sorted(found.items())
    ]
    offsets = trace["matrix"]["row_offsets"]
    rows, nonzeros = len(offsets) - 1, offsets[-1]
    borders.append((rows, nonzeros, False))
    longest = max(range(rows), key=lambda r: offsets[r + 1] - offsets[r])
    inside = [i for i, (row, _, cut) in enumerate(borders) if cut and row == longest]
    picture.description = (
        f"The {len(borders) - 1} tiles of {trace['kernel']['name']} on {rows} rows with {nonzeros} nonzeros, as stretches of a path that goes "
        f"right at each nonzero and down at the end of each row, on {trace['matrix']['name']}. Row {longest} has {offsets[longest + 1] - offsets[longest]} nonzeros, and "
        f"{len(inside)} tiles begin inside it."
    )
    left, top, room, tall = 70, 46, WIDTH - 100, 300
    x = lambda k: left + k * room / nonzeros  # noqa: E731
    y = lambda row: top + row * tall / rows  # noqa: E731
    picture.text(left, top - 8, f"{nonzeros} nonzeros →", "soft small")
    picture.note(top + 12, f"{rows} rows ↓")
    picture.rect(left, top, room, tall, class_="edge")
    for i, ((row, k, _), (last_row, last_k, _)) in enumerate(zip(borders, borders[1:])):
        path = [f"M{number(x(k))} {number(y(row))}"]
        while (row, k) != (last_row, last_k):
            end = offsets[row + 1] if row < last_row else last_k
            if end > k:
                path.append(f"H{number(x(end))}")
            if row < last_row:
                row += 1
                path.append(f"V{number(y(row))}")
            k = end
        picture.add(
            "path",
            d="".join(path),
            fill="none",
            stroke=colour(i * 11 % 32),
            stroke_width="5" if i % 2 else "3",
        )
    for i, (row, k, cut) in enumerate(borders[1:-1], 1):
        picture.line(
            x(k), y(row) - 9, x(k), y(row) + 9, class_="frame", stroke_width=1.2 if cut else 0.7
        )
    picture.text(
        x((offsets[longest] + offsets[longest + 1]) / 2),
        y(longest) - 14,
        f"row {longest}: {offsets[longest + 1] - offsets[longest]} nonzeros, cut into {len(inside) + 1} tiles",
        "ink small",
        "middle",
    )
    bottom = top + tall
    picture.note(
        bottom + 22,
        "A tile per warp, in its colour: as many rows and nonzeros together as every other, whatever the lengths of the rows.",
        "Ticks are borders of tiles. Where one lies inside a row, the warps exchange partial sums of that row.",
    )


def two_kernels(picture, trace):
    """Products of the first launch, in the order of memory, and what the second makes of them."""
    picture.description = (
        f"{trace['kernel']['name']}: the first launch reads values in order and writes a product for each; a block of the second "
        "brings the products of its rows to shared memory, and each thread adds up its row."
    )
    left, room = 130, WIDTH - 150
    loads = accesses(trace, "values", launch=0)[0]
    stores = accesses(trace, "middle", "store", launch=0)[0]
    count, each = len(loads[0]), room / 32
    rows = trace["matrix"]["row_offsets"]
    hue = lambda k: colour((next(r for r in range(len(rows) - 1) if rows[r + 1] > k) * 9) % 32)  # noqa: E731
    y = 44
    for label, (lanes, addresses, counts, _, size) in (
        ("values", loads),
        ("products (middle)", stores),
    ):
        picture.text(10, y + 13, label)
        for lane, address in zip(lanes, addresses):
            picture.rect(left + lane * each, y, each - 1.5, 18, fill=hue(address // size))
        picture.note(
            y + 28,
            f"{counts['sectors']} sectors, the fewest"
            if counts["sectors"] == counts["ideal_sectors"]
            else plural(counts["sectors"], "sector"),
        )
        if label == "values":
            for lane in lanes:
                picture.line(
                    left + (lane + 0.5) * each,
                    y + 20,
                    left + (lane + 0.5) * each,
                    y + 58,
                    class_="rule",
                )
            picture.text(10, y + 50, "launch 1", "soft")
        y += 62
    requests = accesses(trace, "pcsr_piece", launch=1)
    picture.text(10, y + 10, "launch 2", "soft")
    y += 12
    threads = [lane for lane in range(32) if rows[lane] < count]
    for lanes, addresses, _, _, size in requests:
        for lane, address in zip(lanes, addresses):
            if address // size < count:
                picture.line(
                    left + (address // size + 0.5) * each,
                    y - 30,
                    left + (rows[lane] + min(rows[lane + 1], count)) / 2 * each,
                    y + 34,
                    stroke=hue(rows[lane]),
                    stroke_width=1.6,
                )
    for lane in threads:
        picture.rect(
            left + rows[lane] * each + 2,
            y + 34,
            (min(rows[lane + 1], count) - rows[lane]) * each - 5,
            20,
            rx=3,
            fill=hue(rows[lane]),
        )
        picture.text(
            left + (rows[lane] + min(rows[lane + 1], count)) / 2 * each,
            y + 68,
            f"y[{lane}]",
            "ink small mono",
            "middle",
        )
    picture.text(10, y + 48, "a thread per row")
    picture.note(
        y + 90,
        f"The first {count} nonzeros of {trace['matrix']['name']}, in the colours of their rows. The second launch reads products in order, too, into shared memory.",
    )


def timeline(picture, trace):
    """Which warp has which rows, in the order in which the counter gave them out."""
    bars = []
    for step, (event, warp, instruction, *_) in enumerate(traces.requests(trace), 1):
        if instruction["access"] == "atomic":
            bars.append(
                {
                    "warp": warp,
                    "begin": step,
                    "rows": [trace["values"][v] for v in trace["events"][event][4]],
                }
            )
        for bar in [bar for bar in bars if bar["warp"] == warp][-1:]:
            bar["end"] = step
    last_row, threads = trace["matrix"]["rows"], trace["launches"][0]["block"][0]
    useful = [bar for bar in bars if bar["rows"][0] < last_row]
    warps = sorted({bar["warp"] for bar in useful})[:16]
    useful = [bar for bar in useful if bar["warp"] in warps]
    end = max(bar["end"] for bar in useful)
    picture.description = (
        f"{trace['kernel']['name']} on {trace['matrix']['name']}: {len(warps)} warps take rows from one counter, {len(useful)} times. "
        f"The fewest that a warp takes is {min(sum(b['warp'] == w for b in useful) for w in warps)} times, the most {max(sum(b['warp'] == w for b in useful) for w in warps)}."
    )
    left, room, y = 80, WIDTH - 100, 36
    for w, warp in enumerate(warps):
        picture.text(10, y + 12 + w * 20, f"warp {warp[2]}")
        picture.line(left, y + 8 + w * 20, left + room, y + 8 + w * 20, class_="soft-line")
        for bar in (b for b in useful if b["warp"] == warp):
            x = left + bar["begin"] / end * room
            width = max(3.0, (bar["end"] - bar["begin"]) / end * room - 1)
            hue = min(31, bar["rows"][0] * 32 // last_row)
            picture.rect(x, y + w * 20, width, 16, rx=2, fill=colour(hue))
            if width > 18:
                on = "on" if 8 < hue < 28 else "p"  # green and yellow are light
                picture.text(x + 3, y + 12 + w * 20, bar["rows"][0], f"{on} small")
    picture.styles.append(".on { fill: #000000 }")
    y += len(warps) * 20 + 16
    picture.note(
        y,
        "Requests of all warps, which take turns on the CPU backend →   (no time; a warp with long rows asks less often)",
        f"{len(warps)} of the {threads // 32} warps of a block, on {trace['matrix']['name']}. A bar reaches from one fetch of a warp to its next.",
        "The number is the first row that it got, and so is the colour.",
    )


# Which array of a format shows what it stores, and what padding holds there; of others `values` does, by zeros.
PADDED = {"csr": ("column_indices", ()), "ell": ("columns", ("~",)), "sell": ("columns", ("~",))}


def storage(picture, *found):
    """What formats store of the first rows, in the order of memory; padding stands out."""
    y, told = 40, []
    for trace in found:
        name, empty = PADDED.get(trace["kernel"]["name"], ("values", (0,)))
        held = {}
        for event, _, instruction, array, _, addresses in traces.requests(trace):
            if instruction["access"] == "load" and array["name"] == name:
                for address, value in zip(addresses, trace["events"][event][4]):
                    held[address // instruction["size"]] = trace["values"][value]
        total = max(held) + 1
        padding = [k for k, value in held.items() if value in empty]
        unread, per_row = total - len(held), 96
        cell = (WIDTH - 150) / per_row
        picture.text(10, y + 11, trace["kernel"]["name"], "ink mono")
        counts = f"{len(held) - len(padding)} nonzeros", f"{len(padding)} padding"
        picture.note(y + 26, *counts, *[f"{unread} unread"] * bool(unread))
        cells = defaultdict(list)
        for k in range(total):
            row, column = divmod(k, per_row)
            kind = "unread" if k not in held else "padding" if held[k] in empty else "nonzero"
            cells[kind].append(
                f"M{number(130 + column * cell)} {number(y + (row + 0.5) * (cell + 1))}h{number(cell - 0.8)}"
            )
        for kind, path in sorted(cells.items()):
            picture.add("path", d="".join(path), class_=kind, stroke_width=number(cell - 0.8))
        told.append(
            f"{trace['kernel']['name']} stores {total} entries up to the last one that is read, of which {len(padding)} are padding that is read, and {unread} are not read."
        )
        y += max(62, -(-total // per_row) * (cell + 1)) + 14
    picture.note(
        y + 2,
        f"A square per stored entry, in the order of memory, up to the last that is read: blue nonzeros, red padding that is read, grey what no lane reads. {found[0]['matrix']['name']}.",
        *["cds_b1: blocks of one entry, so plain diagonals."]
        * any(trace["kernel"]["name"] == "cds_b1" for trace in found),
    )
    picture.description = " ".join(told)


# --- Single steps ---------------------------------------------------------------------------------


def csr_arrays(picture, trace, row=1):
    """A small matrix, the arrays of CSR, and which elements of x a row gathers: from the loads of its thread."""
    gathered = [r[1][r[0].index(row)] // r[4] for r in accesses(trace, "x") if row in r[0]]
    offsets, columns = trace["matrix"]["row_offsets"], trace["matrix"]["column_indices"]
    rows, nonzeros = trace["matrix"]["rows"], len(columns)
    hue = lambda r: colour(r * 31 / (rows - 1))  # noqa: E731
    row_of = [r for r in range(rows) for _ in range(offsets[r], offsets[r + 1])]
    picture.description = (
        f"{trace['matrix']['name']}: {rows} rows and {nonzeros} nonzeros. row_offsets {offsets}. column_indices {columns}. "
        f"Row {row} has nonzeros {offsets[row]} to {offsets[row + 1] - 1} and reads elements {gathered} of x."
    )
    side, top, left, cell = 26, 62, 42, 27
    for r in range(rows):
        picture.text(left - 8, top + r * side + 17, f"row {r}", "soft small", "end")
        picture.text(left + r * side + 12, top - 6, r, "soft small", "middle")
        for c in range(trace["matrix"]["columns"]):
            k = next((k for k in range(offsets[r], offsets[r + 1]) if columns[k] == c), None)
            picture.rect(
                left + c * side,
                top + r * side,
                side - 2,
                side - 2,
                **({"class_": "quiet"} if k is None else {"fill": hue(r)}),
            )
            if k is not None:
                picture.text(left + c * side + 12, top + r * side + 16, k, "p small", "middle")
    picture.text(left, top + rows * side + 14, "k, the number of a nonzero", "soft small")
    x0 = 320
    place = lambda k: x0 + k * cell  # noqa: E731

    def strip(y, name, elements, fills):
        picture.text(x0 - 10, y + 15, name, "ink mono", "end")
        for k, (element, fill) in enumerate(zip(elements, fills)):
            picture.rect(
                place(k), y, cell - 2, 22, **({"fill": fill} if fill else {"class_": "box"})
            )
            picture.text(
                place(k) + cell / 2 - 1,
                y + 15,
                element,
                "p small" if fill else "ink small",
                "middle",
            )

    begin, end = offsets[row], offsets[row + 1]
    for offset in (row, row + 1):
        picture.line(
            place(offset) + cell / 2,
            80,
            place(offsets[offset]),
            112,
            class_="rule",
            stroke_width="1.5",
        )
    strip(
        58,
        "row_offsets",
        offsets,
        [hue(r) if r in (row, row + 1) else None for r in range(rows + 1)],
    )
    strip(112, "column_indices", columns, map(hue, row_of))
    strip(138, "values", [f"v{k}" for k in range(nonzeros)], map(hue, row_of))
    for k, element in zip(range(begin, end), gathered):
        picture.line(
            place(k) + cell / 2,
            160,
            place(element) + cell / 2,
            196,
            stroke=hue(row),
            stroke_width="1.5",
        )
    strip(
        196,
        "x",
        [f"x{c}" for c in range(trace["matrix"]["columns"])],
        [hue(row) if c in gathered else None for c in range(trace["matrix"]["columns"])],
    )
    picture.text(
        x0,
        244,
        f"Row {row}: nonzeros {begin} to {end - 1}, which are side by side, and x{', x'.join(map(str, gathered))}, which are where the matrix says.",
        "soft small",
    )


def adaptive_blocks(picture, trace):
    """Which nonzeros each block of csr_adaptive reads, and whether their products go through shared memory."""
    nonzeros, offsets = trace["matrix"]["nonzeros"], trace["matrix"]["row_offsets"]
    spans, parts = {}, set()
    for _, (launch, block, _), instruction, array, _, addresses in traces.requests(trace):
        if launch == 0 and array["name"] == "partial_sums":
            parts.add(block)
        if launch == 0 and array["name"] == "values":
            file, line = trace["places"][instruction["place"]]
            kind = (
                "stream"
                if "products[" in trace["sources"][file]["text"].splitlines()[line - 1]
                else "long"
            )
            found = [address // instruction["size"] for address in addresses]
            low, high = spans.get((block, kind), (nonzeros, 0))
            spans[block, kind] = min(low, *found), max(high, *found)
    hues = {"stream": colour(3), "vector": colour(22), "shared": colour(31)}
    texts = {
        "stream": "the short rows of a block: products in shared memory, then a few lanes per row",
        "vector": "a row of more than 1,024 nonzeros: all threads of its block",
        "shared": "a row of more than 8,192: several blocks",
    }
    left, top = 62, 48
    scale = (WIDTH - left - 12) / nonzeros
    for begin in offsets:
        picture.line(
            left + begin * scale,
            top - 12,
            left + begin * scale,
            top - 4,
            class_="rule",
            stroke_width="0.6",
        )
    picture.text(left - 8, top - 4, "rows", "soft small", "end")
    counts, y = defaultdict(int), top
    for block in range(trace["launches"][0]["grid"][0]):
        picture.text(left - 8, y + 9, f"block {block}", "soft small", "end")
        strips = [
            (kind, spans[block, kind]) for kind in ("stream", "long") if (block, kind) in spans
        ]
        for kind, (low, high) in strips:
            kind = kind if kind == "stream" else "shared" if block in parts else "vector"
            counts[kind] += 1
            width = max(1.5, (high + 1 - low) * scale)
            picture.rect(left + low * scale, y, width, 9, fill=hues[kind])
        if not strips:
            picture.text(
                left, y + 9, "no rows: within the long row of the block above", "soft small"
            )
        y += 12
    for kind, hue in hues.items():
        picture.rect(left, y + 12, 10, 10, fill=hue)
        picture.text(
            left + 16, y + 21, f"{kind}, {plural(counts[kind], 'time')}: {texts[kind]}", "ink small"
        )
        y += 18
    picture.text(
        left,
        y + 24,
        f"To the right: the nonzeros, {nonzeros}, with a stroke where a row begins. {trace['matrix']['name']}.",
        "soft small",
    )
    picture.description = "; ".join(f"{counts[kind]} x {kind}: {texts[kind]}" for kind in hues)


def chain(picture, trace):
    """A Markov chain's matrix: what dia_csr stores as diagonals, and what as CSR."""
    offsets, columns, rows = (
        trace["matrix"]["row_offsets"],
        trace["matrix"]["column_indices"],
        trace["matrix"]["rows"],
    )
    kept = sorted({value for r in accesses(trace, "offsets") for value in r[3]})
    places = [(r, columns[k]) for r in range(rows) for k in range(offsets[r], offsets[r + 1])]
    zeros = [
        (r, r + d)
        for d in kept
        for r in range(rows)
        if 0 <= r + d < rows and (r, r + d) not in set(places)
    ]
    rest = [(r, c) for r, c in places if c - r not in kept]
    dense = len(places) - len(rest)
    left, top, side = 20, 36, 380
    cell = side / rows
    picture.rect(left, top, side, side, class_="edge")
    groups = (
        (colour(3), [p for p in places if p[1] - p[0] in kept]),
        ("#e9a9a4", zeros),
        (colour(25), rest),
    )
    for hue, squares in groups:
        path = "".join(
            f"M{number(left + c * cell)} {number(top + (r + 0.5) * cell)}h{number(cell)}"
            for r, c in squares
        )
        picture.add("path", d=path, stroke=hue, stroke_width=f"{cell:.2f}")
    csr = 12 * len(places) + 4 * (rows + 1) + 16 * rows
    lines = [
        (
            groups[0][0],
            f"{dense} nonzeros on {plural(len(kept), 'diagonal')} that are stored whole:",
        ),
        (None, "8 bytes each, and no column"),
        (groups[1][0], f"{plural(len(zeros), 'zero')} stored with them"),
        (groups[2][0], f"{len(rest)} nonzeros on other diagonals, stored as CSR:"),
        (None, "8 bytes, and 2 for the distance from the main diagonal"),
    ]
    for i, (hue, text) in enumerate(lines):
        if hue:
            picture.rect(left + side + 30, top + 62 + i * 24, 11, 11, fill=hue)
        picture.text(left + side + 50, top + 72 + i * 24, text, "ink" if hue else "soft")
    picture.text(
        left + side + 30,
        top + 30,
        f"{trace['matrix']['name']}: {rows} states, {len(places)} nonzeros",
        "ink",
    )
    picture.text(
        left + side + 30,
        top + 210,
        f"A product needs {trace['compulsory_bytes']:.0f} bytes, in CSR {csr}.",
        "ink",
    )
    picture.text(
        left + side + 30,
        top + 246,
        "Row r, column c: from state c the chain moves to state r.",
        "soft small",
    )
    picture.text(
        left + side + 30,
        top + 262,
        "Most moves are the same few steps in the numbering of the states.",
        "soft small",
    )
    picture.height = top + side
    picture.description = f"{dense} nonzeros on {plural(len(kept), 'diagonal')}, {len(zeros)} zeros with them, {len(rest)} elsewhere."


# --- Several GPUs -----------------------------------------------------------------------------------


def by_events(trace):
    """What each stream does when: {stream: [(begin, end, what, waits before)]}, and the waits for events of other streams, as
    (stream, time, stream, time). Time is counted in requests of warps (a copy: in sectors); a stream does one thing
    after the other, and what follows a wait begins when the event has happened."""
    clock, bars, events, waits = defaultdict(int), defaultdict(list), {}, []
    waited = defaultdict(int)
    for event in trace["events"]:
        kind, *rest = event
        if kind == "launch":
            launch = trace["launches"][rest[0]]
            stream = launch["stream"]
            what = "copy" if launch["kernel"].startswith(("pack", "push")) else "product"
            bars[stream].append([clock[stream], clock[stream], what, waited[stream]])
        elif (
            kind in traces.ACCESSES
            and trace["arrays"][trace["instructions"][rest[0]]["array"]]["space"] == "global"
        ):
            clock[launch["stream"]] += 1
            bars[launch["stream"]][-1][1] += 1
        elif kind == "copy":
            begin = clock[rest[5]]
            clock[rest[5]] += -(-rest[4] // traces.SECTOR)
            bars[rest[5]].append([begin, clock[rest[5]], "copy", waited[rest[5]]])
        elif kind == "record":
            events[rest[0]] = rest[1], clock[rest[1]]
        elif kind == "stream wait":
            source, time = events[rest[1]]
            clock[rest[0]] = max(clock[rest[0]], time)
            waited[rest[0]] += 1
            if source != rest[0]:
                waits.append((source, time, rest[0], clock[rest[0]]))
    return bars, waits


def by_flags(trace):
    """The same of kernels that wait in themselves: {GPU: [(begin, end, what)]}, and (GPU, time, GPU, time) of each
    flag. The requests of a GPU follow each other; a poll that finds the flag unset takes no time."""
    clock, bars, flags, told = defaultdict(int), defaultdict(list), {}, []
    phase = defaultdict(lambda: "boundary")

    def spend(what):
        bars[gpu].append([clock[gpu], clock[gpu] + 1, what, 0])
        clock[gpu] += 1

    for number, (launch, *_), _, array, *_ in traces.requests(trace):
        gpu = trace["launches"][launch]["device"]
        values = [trace["values"][v] for v in trace["events"][number][4] if not isinstance(v, list)]
        if array["name"] == "flags" and array["device"] != gpu:
            spend("flag")
            flags[array["device"], values[0]] = gpu, clock[gpu]
            phase[gpu] = "interior"
        elif array["name"] == "flags":
            if (gpu, values[0]) not in flags:
                continue
            source, time = flags.pop((gpu, values[0]))
            clock[gpu] = max(clock[gpu], time)
            spend("flag")
            told.append((source, time, gpu, clock[gpu]))
            phase[gpu] = "boundary"
        else:
            spend("copy" if array["name"] == "x" and array["device"] != gpu else phase[gpu])
    return bars, told


def steps(picture, events, flags):
    """The same two steps of an iteration on two GPUs, one above the other."""
    hues = {"interior": colour(3), "boundary": colour(25), "copy": colour(16), "flag": None}
    described = []
    y = 34
    for trace, found, what in (
        (events, by_events(events), "events"),
        (flags, by_flags(flags), "flags"),
    ):
        bars, waits = found
        name = trace["kernel"]["name"]
        end = max(bar[1] for of in bars.values() for bar in of)
        left, room = 120, WIDTH - 140
        x = lambda time, end=end, left=left, room=room: left + time * room / end  # noqa: E731
        picture.text(10, y + 14, f"by {what}", "ink title")
        calls = f"{len(trace['launches'])} launches"
        if what == "events":
            calls += f" and {sum(event[0] == 'copy' for event in trace['events'])} copies"
        picture.text(left, y + 14, f"{name}: {trace['kernel']['idea']}; {calls}", "soft small")
        y += 24
        row_of = {}
        if what == "events":
            copying = {event[6] for event in trace["events"] if event[0] == "copy"}
            keys = sorted(bars, key=lambda s: (trace["streams"][s], s in copying))
            labels = [
                f"GPU {trace['streams'][s]}, {'comm' if s in copying else 'main'}" for s in keys
            ]
            for stream, of in bars.items():
                for bar in of:
                    if bar[2] == "product":
                        bar[2] = "boundary" if stream in copying else "interior"
        else:
            keys = sorted(bars)
            labels = [f"GPU {gpu}" for gpu in keys]
        for key, label in zip(keys, labels):
            row_of[key] = y
            picture.text(10, y + 13, label)
            picture.line(left, y + 9, left + room, y + 9, class_="soft-line")
            merged = []
            for bar in bars[key]:
                if merged and merged[-1][2:] == bar[2:] and bar[0] == merged[-1][1]:
                    merged[-1][1] = bar[1]
                else:
                    merged.append(list(bar))
            for begin, stop, kind, _ in merged:
                width = max(2.5, x(stop) - x(begin) - 1)
                picture.rect(
                    x(begin),
                    y,
                    width,
                    18,
                    rx=2,
                    fill=hues[kind],
                    class_="ink" if kind == "flag" else None,
                )
                if width > 54 and kind in ("interior", "boundary"):
                    picture.text(x(begin) + 5, y + 13, kind, "p small")
            y += 34
        for source, time, target, then in waits:
            down = row_of[target] > row_of[source]
            picture.line(
                x(time),
                row_of[source] + (18 if down else 0),
                x(then),
                row_of[target] + (0 if down else 18),
                class_="frame",
                stroke_width=0.8,
            )
            picture.add(
                "circle",
                cx=float(x(then)),
                cy=float(row_of[target] + (0 if down else 18)),
                r=2.2,
                class_="ink",
            )
        described.append(
            f"By {what}, {name}: {len(waits)} waits for {'an event of another stream' if what == 'events' else 'a flag of the neighbour'}, "
            f"{len(trace['launches'])} launches."
        )
        y += 6
    described.append("Interior rows are multiplied while entries of x travel.")
    key = {
        "interior": "interior rows",
        "boundary": "boundary rows",
        "copy": "entries that travel between the GPUs",
        "flag": "flags",
    }
    for (kind, text), at in zip(key.items(), (10, 140, 270, 520)):
        fill = {"fill": hues[kind]} if hues[kind] else {"class_": "ink"}
        picture.rect(at, y - 1, 10, 10, **fill)
        picture.text(at + 15, y + 8, text, "soft small")
    picture.text(600, y + 8, "Lines: waits for an event or a flag.", "soft small")
    picture.note(
        y + 26,
        f"Two steps on two GPUs, {events['matrix']['name']}, from traces. To the right: requests of warps (of a copy: sectors), not time on a GPU:",
        "the two halves end at one place because each fills the width. Each event, launch and copy above is a call by the host.",
    )
    picture.description = " ".join(described)


# --- Matrices -------------------------------------------------------------------------------------


def short(count):
    """1600000: 1.6M."""
    for unit, letter in ((1e6, "M"), (1e3, "k")):
        if count >= 0.9995 * unit:
            return f"{count / unit:.3g}{letter}"
    return f"{count:.3g}"


def find_matrix(program, files, name, per_row):
    """`spmv info` of the matrix with that name and, as the README says, so many nonzeros per row: of a generator, or
    of a file. Raises TraceError."""
    for specification in [*(sorted(files.glob(f"{name}.mtx*")) if files else []), name]:
        done = subprocess.run(
            [program, "info", specification, "--json"], capture_output=True, text=True
        )
        info = json.loads(done.stdout) if done.returncode == 0 else {"matrix": {"source": ""}}
        if (
            info["matrix"]["source"] in ("file", "generated")
            and f"{info['mean_row']:.1f}" == per_row
        ):
            return info
    raise traces.TraceError(f"the file of {name} is not here (FILES=directory)")


def sparsity(program, files):
    """The matrices of the README's table, side by side: a cell is darker the more nonzeros it has. Those that no
    generator makes exactly are read from the directory `files` or from data/. Raises TraceError."""
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    names = [
        name.replace(";", ",")
        for name in re.search(r"matrices=(\S+) precision", readme)[1].split(",")
    ]
    cells, gap = 48, 18
    side = (WIDTH - 20 - gap * (len(names) - 1)) / len(names)
    picture = Picture("Where the nonzeros of these matrices are")
    told = []
    for i, name in enumerate(names):
        info = find_matrix(
            program,
            files,
            name,
            re.search(rf"^\| {re.escape(name)} \| (\S+) \|", readme, re.MULTILINE)[1],
        )
        rows, columns, drawn = info["matrix"]["rows"], info["matrix"]["cols"], info["picture"]
        high, wide = (max(4, round(cells * n / max(rows, columns))) for n in (rows, columns))
        sums = defaultdict(int)
        for line, column, count in drawn["cells"]:
            sums[line * high // drawn["lines"], column * wide // drawn["columns"]] += count
        most = max(sums.values())
        x0, cell = 10 + i * (side + gap), side / cells
        picture.rect(x0, 68, wide * cell, high * cell, class_="edge")
        shade = {place: min(3, int(4 * (count / most) ** 0.4)) for place, count in sums.items()}
        paths = defaultdict(list)
        for line in range(high):
            column = 0
            while column < wide:
                end, of = column + 1, shade.get((line, column))
                while end < wide and shade.get((line, end)) == of:
                    end += 1
                if of is not None:
                    paths[of].append(f"M{column} {line}h{end - column}")
                column = end
        for of, path in sorted(paths.items()):
            picture.add(
                "path",
                d="".join(path),
                class_="nonzero",
                opacity=str((0.3, 0.55, 0.8, 1)[of]),
                transform=f"translate({number(x0)} {68 + cell / 2:.2f}) scale({cell:.4f})",
            )
        picture.text(x0, 42, name.split(",")[0], "ink small")
        picture.text(
            x0,
            58,
            f"{short(rows)} × {short(columns)}, {short(info['matrix']['nnz'] / rows)} each",
            "soft small",
        )
        told.append(f"{name}: {rows} rows, {columns} columns, {info['matrix']['nnz']} nonzeros.")
    picture.height = 68 + side
    picture.note(
        84 + side,
        "Rows × columns, and nonzeros per row on average. A cell stands for many rows and columns: pale is one nonzero or more, dark are those with the most.",
    )
    picture.description = " ".join(told)
    return picture


# --- The primer -----------------------------------------------------------------------------------


def launch_of_threads(picture):
    """Blocks, warps and lanes of first.cu's launch; a thread that returns at the guard is grey."""
    source = (ROOT / "common/primer/first.cu").read_text(encoding="utf-8")
    elements = int(re.search(r"const int n = (\d+);", source)[1])
    blocks, threads = map(int, re.search(r"add_kernel<<<(\d+), (\d+)>>>", source).groups())
    warps, gap, left = threads // 32, 22, 62
    pitch = (WIDTH - left - 12 - gap * (blocks - 1)) / blocks / 32
    told = []
    for block in range(blocks):
        x0, first = left + block * (32 * pitch + gap), block * threads
        for warp in range(warps):
            y = 62 + warp * 20
            if block == 0:
                picture.text(left - 8, y + 11, f"warp {warp}", "soft small", "end")
            active = {lane for lane in range(32) if first + 32 * warp + lane < elements}
            lanes_row(picture, x0, y, pitch, active, gap=1, tall=14, rx=1.5)
        picture.text(x0, 44, f"block {block}", "ink")
        picture.text(x0, 57, "lane 0", "soft small")
        picture.text(x0 + 32 * pitch, 57, "lane 31", "soft small", "end")
        told.append(f"block {block}: sum[{first}] to sum[{min(first + threads, elements) - 1}]")
        picture.text(x0 + 52, 44, told[-1].split(": ")[1], "soft small")
    picture.note(
        62 + warps * 20 + 14,
        f"A square is a thread, a line of 32 squares a warp. add_kernel<<<{blocks}, {threads}>>> for {elements} elements. "
        f"Grey: the {blocks * threads - elements} threads past the last element, which return.",
    )
    picture.description = f"{blocks} blocks of {warps} warps of 32 lanes: {'; '.join(told)}. {blocks * threads - elements} threads have no element."


def strides_over_banks(picture, shown=6):
    """The first lanes of a request to shared memory, on the word that each wants: a column is a bank."""
    told, box = [], 8
    for panel, stride in enumerate((1, 32, 33)):
        left = 14 + panel * 300
        words = [stride * lane for lane in range(32)]
        passes = max(sum(word % 32 == bank for word in words) for bank in range(32))
        picture.text(
            left, 44, f"lane reads word {stride} x lane" if stride > 1 else "lane reads word lane"
        )
        picture.text(left, 60, "bank 0", "soft small")
        picture.text(left + 32 * box, 60, "bank 31", "soft small", "end")
        for line in range(shown):
            for bank in range(32):
                word = 32 * line + bank
                look = {"fill": colour(words.index(word))} if word in words else {"class_": "quiet"}
                picture.rect(left + bank * box, 66 + line * 14, box - 1, 12, **look)
        picture.text(
            left,
            66 + shown * 14 + 16,
            plural(passes, "pass").replace("passs", "passes"),
            "bad" if passes > 1 else "ink",
        )
        told.append(f"Stride {stride}: {32 // passes} banks serve the 32 lanes, in {passes} turns")
    picture.note(
        66 + shown * 14 + 36,
        f"A square is a word of 4 bytes, a column a bank; the first {32 * shown} words of shared memory. Coloured: words that lanes read. "
        "A bank serves one word per pass.",
    )
    picture.description = ". ".join(told) + "."


def three_requests(picture, trace):
    """Requests of one warp to three arrays, on one scale."""
    chosen = [
        (
            accesses(trace, "row_offsets")[0],
            "row_offsets[row], a load: neighbouring lanes, neighbouring elements of 4 bytes",
        ),
        (accesses(trace, "y", "store")[0], "y[row], a store: the same with elements of 8 bytes"),
        (
            accesses(trace, "values")[0],
            "values[k], a load: each lane is in a row of its own, 3 to 5 elements of 8 bytes from its neighbour's",
        ),
    ]
    left, room = 96, WIDTH - 110
    widest = max(-(-(max(r[1]) + r[4] - min(r[1]) // 128 * 128) // 128) * 128 for r, _ in chosen)
    y, told = 34, []
    for request, text in chosen:
        first = min(request[1]) // 128 * 128
        span = -(-(max(request[1]) + request[4] - first) // 128) * 128
        picture.text(left, y + 10, text, "ink")
        request_over_sectors(
            picture, left, y + 18, room * span / widest, first, first + span, request
        )
        for line in range(span // 128 + 1):
            x = left + line * 128 * room / widest
            picture.line(x, y + 60, x, y + 84, class_="frame", stroke_width="2")
        told.append(
            f"{text}: {plural(request[2]['sectors'], 'sector')} touched, {request[2]['ideal_sectors']} would do."
        )
        y += 112
    picture.note(
        y + 2,
        "A frame is a sector of 32 bytes, the longer strokes bound a line of 128. Coloured: bytes used, by the lane of that colour; "
        "hatched: fetched, not used.",
    )
    picture.description = " ".join(told)


def sectors_of_x(picture, before, after, most=6):
    """Which sectors of x the first requests of warps touch, in two orders of the columns: of the first rows of at least 32 nonzeros."""

    def first_requests(trace):
        found = {}
        for _, at, _, array, lanes, addresses in traces.requests(trace):
            if array["name"] == "x" and len(lanes) == 32:
                found.setdefault(at, addresses)
        return list(found.values())[:most]

    left, room, y, told = 10, WIDTH - 110, 34, []
    for name, trace in (
        ("columns as they are numbered", before),
        ("columns that are used most first", after),
    ):
        picture.text(left, y + 10, name, "ink")
        y += 18
        [size] = {array["bytes"] for array in trace["arrays"] if array["name"] == "x"}
        pitch, counted = room / (size // traces.SECTOR), []
        for addresses in first_requests(trace):
            touched = {}
            for lane, address in enumerate(addresses):
                touched.setdefault(address // traces.SECTOR, lane)
            picture.rect(left, y, room, 12, class_="quiet")
            for sector, lane in touched.items():
                picture.rect(left + sector * pitch, y, pitch, 12, fill=colour(lane))
            picture.text(left + room + 6, y + 10, plural(len(touched), "sector"), "soft")
            counted.append(len(touched))
            y += 17
        told.append(f"{name}: {', '.join(map(str, counted))}")
        y += 8
    picture.text(
        left,
        y + 6,
        "A line: x in double precision, and in it the sectors of one request, of 32 lanes in a row of the graph; colours: the first lane that needs the sector.",
        "soft small",
    )
    picture.description = f"Sectors of x per request of a warp. {'. '.join(told)}."


ANSWER = 24  # times as long as it takes to start a request: of this picture, not of a GPU


def hidden_latency(picture, trace):
    """The first requests of 1, 4 and 8 warps, of which each waits for the answer before its next, and one starts at a time."""
    hues = {
        "row_offsets": colour(3),
        "column_indices": colour(16),
        "values": colour(10),
        "x": colour(25),
    }
    left, room, units = 96, WIDTH - 110, 132
    scale = room / units
    y, told = 36, []
    for count in (1, 4, 8):
        ready, busy, started = [0] * count, 0, 0
        todo = [
            [array["name"] for _, at, _, array, *_ in traces.requests(trace) if at == (0, 0, warp)]
            for warp in range(count)
        ]
        while any(todo):
            warp = min((w for w in range(count) if todo[w]), key=lambda w: (ready[w], w))
            begin = max(busy, ready[warp])
            if begin + ANSWER > units:
                break
            busy, ready[warp], started = begin + 1, begin + ANSWER, started + 1
            top = y + warp * 12
            picture.rect(left + begin * scale, top, ANSWER * scale - 1, 9, class_="quiet")
            picture.rect(left + begin * scale, top, scale, 9, fill=hues[todo[warp].pop(0)])
        picture.line(left + room, y - 4, left + room, y + count * 12, class_="frame")
        picture.text(left - 8, y + 9, plural(count, "warp"), "ink", "end")
        told.append(f"{plural(count, 'warp')}: {started} requests answered")
        y += count * 12 + 4
        picture.text(
            left, y + 8, f"{plural(started, 'request')} answered in this time", "soft small"
        )
        y += 24
    for i, (name, hue) in enumerate(hues.items()):
        picture.rect(left + i * 130, y - 2, 10, 10, fill=hue)
        picture.text(left + i * 130 + 15, y + 7, name, "soft small")
    picture.note(
        y + 26,
        f"Requests of {trace['kernel']['name']} on {trace['matrix']['name']}, in the order of its trace. Coloured: a request starts; grey: its warp waits; line: the end.",
        f"Times are a model: an answer takes {ANSWER} times as long as starting a request, and each warp waits for it before it goes on.",
        "A GPU waits for hundreds of cycles, and holds up to 64 warps per multiprocessor.",
    )
    picture.description = f"A timeline: {'; '.join(told)} in the same time."


H200 = GPUS["h200"]
H200_GB_PER_S, H200_GFLOPS = H200.dram_gb_per_s, H200.f64_gflops


def roofline(picture, scalar, vector):
    """Where the bytes that a product needs, and those that kernels ask for, put SpMV under the roofline of an H200."""
    left, top, right, bottom = 90, 44, WIDTH - 20, 330
    low, high, least, most = -6, 6, 3, 17  # powers of two: operations per byte, GFLOP/s
    x = lambda intensity: left + (math.log2(intensity) - low) / (high - low) * (right - left)  # noqa: E731
    y = lambda gflops: bottom - (math.log2(gflops) - least) / (most - least) * (bottom - top)  # noqa: E731
    for power in range(low, high + 1):
        picture.line(
            x(2.0**power), top, x(2.0**power), bottom, class_="soft-line", stroke_width="0.5"
        )
        picture.text(
            x(2.0**power),
            bottom + 15,
            f"{2**power}" if power >= 0 else f"1/{2**-power}",
            "soft small",
            "middle",
        )
    for power in range(4, 17, 2):
        picture.line(
            left, y(2.0**power), right, y(2.0**power), class_="soft-line", stroke_width="0.5"
        )
        picture.text(left - 6, y(2.0**power) + 4, f"{2**power:,}", "soft small", "end")
    ridge = H200_GFLOPS / H200_GB_PER_S
    picture.line(
        x(2.0**low),
        y(H200_GB_PER_S * 2.0**low),
        x(ridge),
        y(H200_GFLOPS),
        class_="frame",
        stroke_width="2",
    )
    picture.line(x(ridge), y(H200_GFLOPS), right, y(H200_GFLOPS), class_="frame", stroke_width="2")
    picture.text(x(1), y(H200_GB_PER_S) - 12, f"memory: {H200_GB_PER_S:,} GB/s", "ink small", "end")
    picture.text(
        right, y(H200_GFLOPS) - 8, f"arithmetic: {H200_GFLOPS:,} GFLOP/s", "ink small", "end"
    )
    nonzeros = scalar["matrix"]["nonzeros"]

    def moved(trace):
        counts = traces.traffic(trace).items()
        return traces.SECTOR * sum(c["sectors"] for (_, space, _), c in counts if space == "global")

    told = []
    for number_, (bytes_, name, hue) in enumerate(
        [
            (scalar["compulsory_bytes"], "the bytes that the product needs", colour(16)),
            (moved(vector), f"all that {vector['kernel']['name']} asks for", colour(25)),
            (moved(scalar), f"all that {scalar['kernel']['name']} asks for", colour(31)),
        ]
    ):
        intensity = 2 * nonzeros / bytes_
        gflops = intensity * H200_GB_PER_S
        picture.line(x(intensity), y(gflops), x(intensity), bottom, stroke=hue, stroke_width="2")
        picture.add("circle", cx=float(x(intensity)), cy=float(y(gflops)), r=5, fill=hue)
        picture.add(
            "circle", cx=float(x(0.45)), cy=float(bottom - 74 + 22 * number_ - 4), r=5, fill=hue
        )
        picture.text(
            x(0.5),
            bottom - 74 + 22 * number_,
            f"{name}: {intensity:.3f} operations per byte, {gflops:.0f} GFLOP/s",
            "ink small",
        )
        told.append(f"{name}: {intensity:.3f} operations per byte")
    picture.text(left, bottom + 32, "operations per byte (arithmetic intensity)", "soft small")
    picture.note(top - 8, "GFLOP/s")
    picture.note(
        bottom + 52,
        f"{scalar['matrix']['name']}, double precision: 2 operations for each of {nonzeros} nonzeros. Lines: what an H200's memory and arithmetic allow.",
        "Points: the most that is possible if every byte comes from memory. What warps ask for is from traces, before any cache; a cache raises the limit.",
    )
    picture.description = f"The roofline of an H200, and products of a sparse matrix far left of its ridge: {'; '.join(told)}."


# --- With no trace: numbers of pages --------------------------------------------------------------


def versions(picture):
    """The versions of one pass beside cuSPARSE: means of the records, and where there are none of NOTES.md."""
    folder = ROOT / "06_pcsr" / "one_pass"
    story, notes = (
        (folder / name).read_text(encoding="utf-8") for name in ("story.md", "NOTES.md")
    )
    means = {}
    for version, precision, mean in re.findall(
        r"^(\d+) +(f64|f32) +warm +\d+ +([\d.]+)", story, re.MULTILINE
    ):
        means.setdefault(int(version), {})[precision] = float(mean)
    for version in set(range(1, 11)) - set(means):
        [told] = re.findall(rf"^\| {version}\. .*? \| ([^|]*) \|$", notes, re.MULTILINE)
        f64, f32 = re.search(r"\b(1\.\d\d)\b(?: and (1\.\d\d)\b)?", told).groups()
        means[version] = {"f64": float(f64), "f32": float(f32 or f64)}
    left, bottom, scale, pitch = 60, 230, 480.0, 82
    for percent in range(0, 41, 10):
        y = bottom - percent / 100 * scale
        picture.line(left, y, WIDTH - 20, y, class_="soft-line", stroke_width="0.6")
        picture.text(left - 6, y + 4, f"{1 + percent / 100:.1f}", "soft small", "end")
    picture.text(4, bottom + 15, "cuSPARSE", "soft small")
    told = []
    for version, of in sorted(means.items()):
        x = left + 14 + (version - 1) * pitch
        kept = f"\n{version} " in story
        for i, (precision, hue) in enumerate((("f64", colour(4)), ("f32", colour(22)))):
            tall = (of[precision] - 1) * scale
            look = {"fill": hue} if kept else {"fill": hue, "opacity": ".45"}
            picture.rect(x + 27 * i, bottom - tall, 25, tall, **look)
            picture.text(
                x + 27 * i + 12.5, bottom - tall - 4, f"{of[precision]:.2f}", "ink small", "middle"
            )
        picture.text(x + 26, bottom + 15, f"version {version}", "ink small", "middle")
        told.append(f"{version}: {of['f64']:.2f} and {of['f32']:.2f}")
    for i, (name, hue) in enumerate((("double precision", colour(4)), ("single", colour(22)))):
        picture.rect(left + 14 + 140 * i, 26, 10, 10, fill=hue)
        picture.text(left + 30 + 140 * i, 35, name, "soft small")
    picture.note(
        bottom + 36,
        "How many times as fast as the best of cuSPARSE's CSR and COO algorithms, geometric mean. Versions 1 to 4 on 22 matrices, later ones on 24.",
        "Bars begin at 1, as fast as cuSPARSE. Pale: no records were kept; as the notes report it (of versions 5 and 6 the mean over both precisions).",
    )
    picture.description = (
        f"Bars of ten versions, in double and single precision: {'; '.join(told)}."
    )


# --- All of them ----------------------------------------------------------------------------------


STENCIL = "stencil2d:16x16"
UNEVEN = "fem:64,block=1"
GRAPH = "rmat:scale=10,edge_factor=24,symmetric=1,permute=1"
STEPS = "steps --gpus 2"
SPARSITY = "sparsity"
EDITED = "06_cut_row", "06_in_flight", "08_states"


# {name: (title, how it is drawn, the matrices and kernels that are traced for it)}
PICTURES = {
    "primer_launch": ("A launch: grid, blocks, warps, lanes", launch_of_threads),
    "primer_banks": ("Shared memory: 32 banks, one word from each per pass", strides_over_banks),
    "primer_sectors": (
        "Three requests of a warp, and the sectors that they touch",
        three_requests,
        (STENCIL, "csr_scalar"),
    ),
    "primer_latency": (
        "While one warp waits, others make their requests",
        hidden_latency,
        (STENCIL, "csr_scalar"),
    ),
    "primer_roofline": (
        "The roofline: what memory and arithmetic allow",
        roofline,
        (STENCIL, "csr_scalar"),
        (STENCIL, "csr_vector_4"),
    ),
    "01_csr": (
        "CSR: three arrays, and what one row of the product reads",
        csr_arrays,
        ("stencil2d:3x2", "csr_scalar"),
    ),
    "02_lanes": (
        "csr_scalar: each lane walks a row of its own",
        lanes_over_sectors,
        (STENCIL, "csr_scalar"),
    ),
    "03_lanes": (
        "csr_vector_4: four neighbouring lanes share a row",
        functools.partial(lanes_over_sectors, turns=2),
        (STENCIL, "csr_vector_4"),
    ),
    "03_shuffle_tree": (
        "csr_vector_8: eight partial sums become one in three rounds",
        shuffle_tree,
        ("fem:20,block=3", "csr_vector_8"),
    ),
    "04_collisions": (
        "Atomics on y: lanes on the same element take turns",
        collisions,
        (STENCIL, "atomic_coo"),
        (STENCIL, "atomic_coo_warp"),
    ),
    "05_scan_rounds": (
        "segscan_block: sums of rows in log2 rounds",
        scan_rounds,
        (STENCIL, "segscan_block"),
    ),
    "05_carries": (
        "segscan_shuffle: carries between the warps of a block",
        carries,
        ("stencil2d:24x24", "segscan_shuffle"),
    ),
    "06_two_kernels": ("pcsr: products first, sums later", two_kernels, (STENCIL, "pcsr")),
    "06_banks": (
        "pcsr, second launch, rows of 32 nonzeros: all lanes meet in two banks",
        banks,
        ("dense:32x32", "pcsr"),
        ("dense:32x33", "pcsr"),
    ),
    "06_adaptive": (
        "csr_adaptive: the nonzeros of each block, and how it adds them up",
        adaptive_blocks,
        ("powerlaw:200x40000,nnz=24000,max_row=9500", "csr_adaptive"),
    ),
    "06_tiles": (
        "pcsr_one_pass: the tiles of the warps on the path through rows and nonzeros",
        tiles,
        ("powerlaw:600x4000,nnz=5000,max_row=3200,local=1", "pcsr_one_pass"),
    ),
    "06_versions": ("Ten versions of one pass beside cuSPARSE, on an H200", versions),
    "07_timeline": (
        "lightspmv_warp: rows go to the warps that are free",
        timeline,
        ("powerlaw:640x640,nnz=6400", "lightspmv_warp", "turns"),
    ),
    "08_lanes": (
        "ell: neighbouring rows, neighbouring elements",
        lanes_over_sectors,
        (STENCIL, "ell"),
    ),
    "08_formats": (
        "What formats store of the same matrix",
        storage,
        (UNEVEN, "csr"),
        (UNEVEN, "ell"),
        (UNEVEN, "sell"),
        (UNEVEN, "dia"),
    ),
    "08_ordering": (
        "csr_vector_32 on a graph of 1024 vertices: the sectors of x that a warp asks for",
        sectors_of_x,
        (GRAPH, "csr_vector_32"),
        (f"{GRAPH},order=columns", "csr_vector_32"),
    ),
    "08_chain": (
        "dia_csr: what it stores of a Markov chain",
        chain,
        ("wlan:C=8,m=1,W=2", "dia_csr"),
    ),
    "09_diagonals": (
        "Diagonals store zeros that diagonals of blocks do not",
        storage,
        ("stencil2d:16x2,dof=3", "cds_b1"),
        ("stencil2d:16x2,dof=3", "cds"),
    ),
    "10_steps": (
        "Two steps of an iteration on two GPUs",
        steps,
        ("stencil2d:8x8", "packed", "forward", STEPS),
        ("stencil2d:8x8", "minimal", "forward", STEPS),
    ),
}


def draw(program):
    """{name: SVG}."""

    @functools.cache
    def recorded(matrix, kernel, schedule="forward", command=""):
        matrix, _, order = matrix.partition(",order=")
        options = ["--padding-limit", "20", *(["--order", order] if order else [])]
        [trace] = watch.record(
            program, matrix, [kernel], "f64", schedule, *options, command=command
        )
        return trace

    drawn = {}
    for name, (title, how, *runs) in PICTURES.items():
        picture = Picture(title)
        how(picture, *(recorded(*run) for run in runs))
        drawn[name] = picture.svg()
    return drawn


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("program", type=Path)
    parser.add_argument("directory", type=Path)
    parser.add_argument("--files", type=Path)
    arguments = parser.parse_args()
    arguments.directory.mkdir(parents=True, exist_ok=True)
    try:
        for name, text in draw(arguments.program).items():
            (arguments.directory / f"{name}.svg").write_text(text, encoding="utf-8")
            print(arguments.directory / f"{name}.svg")
    except traces.TraceError as error:
        sys.exit(f"error: {error}")
    file = arguments.directory / f"{SPARSITY}.svg"
    try:
        file.write_text(sparsity(arguments.program, arguments.files).svg(), encoding="utf-8")
        print(file)
    except traces.TraceError as error:
        print(f"{file} stays as it is: {error}")


if __name__ == "__main__":
    main()
