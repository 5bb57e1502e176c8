#!/usr/bin/env python3
"""Draws every figure and writes every table from published and measured records. No GPU.

make figures                          all, into plots/figures/*.png and TABLES.md
plots/python.sh plots/papers/figures.py ladder       those whose names contain a word
make figures ARGS="--device NVIDIA_H100"      from another device's records, into a directory of plots/figures with its name
"""

import argparse
import sys
from pathlib import Path

import bylina
import godwin
import he_gao
import ladder
import lightspmv
import ours
import style
from record_format import write_whole
from records import ROOT, Data

DEVICE = "NVIDIA_H200"  # whose figures the pages show
MODULES = {"Ours": ours, **{module.PAPER: module for module in (he_gao, bylina, lightspmv, godwin)}}
FIGURES = {name: draw for module in MODULES.values() for name, draw in module.FIGURES.items()}
TABLES = {name: make for module in MODULES.values() for name, make in module.TABLES.items()}


def draw(name, data):
    """The figure, or None where less than half of what it compares was measured, and the notes on it."""
    gaps = style.Gaps(data)
    figure = FIGURES[name](data, gaps)
    if figure and gaps.share() < 0.5:
        return None, [
            f"Of what this figure compares {gaps.share():.0%} was measured on {data.device}; `{style.COMMAND}` makes the records."
        ]
    notes = gaps.notes() if figure or gaps.asked or gaps.remarks else [style.not_measured(data)]
    return (style.finish(figure, notes) if figure else None), notes


def tables_page(data):
    """All tables as Markdown."""
    parts = ["<!-- written by plots/papers/figures.py -->", "# The papers' tables, and ours", ""]
    for make in TABLES.values():
        table = make(data)
        parts += [f"## {table.title}", "", table.markdown()]
    return "\n".join(parts)


def main(argv=None):
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument(
        "names", nargs="*", help="figures whose names contain one of these; default all"
    )
    parser.add_argument(
        "--device", default=DEVICE, help="whose records, a directory of plots/results"
    )
    parser.add_argument(
        "--out",
        type=Path,
        help=f"default: plots/figures, and its directory DEVICE for any but {DEVICE}",
    )
    arguments = parser.parse_args(argv)
    names = [
        n for n in FIGURES if not arguments.names or any(word in n for word in arguments.names)
    ]
    if not names:
        print(
            f"error: no figure is called {' or '.join(arguments.names)}; there are {', '.join(FIGURES)}",
            file=sys.stderr,
        )
        return 2
    data = Data(arguments.device)
    out = arguments.out or ROOT / "plots" / "figures" / (
        data.directory if data.directory != DEVICE else ""
    )
    for name in names:
        figure, notes = draw(name, data)
        if figure is None:
            print(f"{name}: not drawn. {' '.join(notes)}")
            continue
        style.save_png(figure, out, name)
        missing = [note for note in notes if "`make" in note or "ot measured yet" in note]
        print(f"{name}.png" + "".join(f"\n    {note}" for note in missing))
    if "ladder" in names:
        ladder.save(data, out / "ladder")
        print("ladder/*.svg")
    if not arguments.names:
        write_whole(out / "TABLES.md", tables_page(data))
        print("TABLES.md")
    return 0


if __name__ == "__main__":
    sys.exit(main())
