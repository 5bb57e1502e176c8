#!/usr/bin/env python3
"""Draws every figure and writes every table from published and measured records. No GPU.

make figures                          all, into plots/figures/*.png, their captions into README.md, and TABLES.md
make figures FORMAT=pdf               or svg, for print, beside them
plots/python.sh plots/papers/figures.py ladder       those whose names contain a word
make figures ARGS="--device NVIDIA_H100"      from another device's records, into a directory of plots/figures with its name
"""

import argparse
import re
import sys

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
FOLDER = ROOT / "plots" / "figures"
MODULES = {"Ours": ours, **{module.PAPER: module for module in (he_gao, bylina, lightspmv, godwin)}}
FIGURES = {name: draw for module in MODULES.values() for name, draw in module.FIGURES.items()}
TABLES = {name: make for module in MODULES.values() for name, make in module.TABLES.items()}


def draw(name, data):
    """The figure, or None where less than half of what it compares was measured, and the notes on
    it."""
    gaps = style.Gaps(data)
    figure = FIGURES[name](data, gaps)
    if figure and gaps.share() < 0.5:
        return None, [
            f"Of what this figure compares {gaps.share():.0%} was measured on {data.device}; `{style.COMMAND}` makes the records."
        ]
    if figure:
        gaps.mark(figure)
    notes = gaps.notes() if figure or gaps.asked or gaps.remarks else [style.not_measured(data)]
    return figure, notes


def about(name):
    """What a figure shows, whether it is drawn or not."""
    return " ".join((FIGURES[name].__doc__ or name).split())


def caption(name, figure, notes):
    """A figure and what belongs below it, as Markdown."""
    paper = next(title for title, module in MODULES.items() if name in module.FIGURES)
    lead = about(name) if paper == "Ours" else f"{paper}. {about(name)}"
    if figure is None:
        return f"## {name}: not drawn\n\n{lead} {' '.join(notes)}\n"
    message = " ".join(figure._suptitle.get_text().split())
    parts = [f"## {message}", f"![{about(name)}]({name}.png)", lead, *notes]
    return "\n\n".join([*parts, f"`make figures ARGS={name}`"]) + "\n"


HEAD = """<!-- written by plots/papers/figures.py -->
# The figures and their captions

A title says what a figure shows, computed from the records. A full mark is a real file, a half one a generated matrix, a hollow one a
[stand-in](../README.md#how-near-do-stand-ins-come). `make figures FORMAT=pdf` (or `svg`) draws all for print, one column wide (7 inches).

"""


def captions_in(page):
    """{figure: its caption} of a page that captions_page() made."""
    return dict(
        re.findall(r"<!-- figure: (\w+) -->\n(.*?)(?=<!-- figure: |<!-- end -->)", page, re.S)
    )


def captions_page(captions, before=""):
    """Captions of figures, with those of the page before that were not drawn now, in the order of
    FIGURES."""
    of = {**captions_in(before), **{name: text + "\n" for name, text in captions.items()}}
    missing = [
        f"- {title}, {figure}: {why}"
        for title, module in MODULES.items()
        for figure, why in getattr(module, "NOT_DRAWN", {}).items()
    ]
    return (
        HEAD
        + "".join(f"<!-- figure: {name} -->\n{of[name]}" for name in FIGURES if name in of)
        + "<!-- end -->\n## Figures of the papers that cannot be drawn here\n\n"
        + "\n".join(missing)
        + "\n"
    )


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
    parser.add_argument("--format", default="png", choices=style.FORMATS)
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
    own = data.directory if data.directory != DEVICE else ""
    out = FOLDER / own
    captions = {}
    for name in names:
        figure, notes = draw(name, data)
        captions[name] = caption(name, figure, notes)
        if figure is None:
            print(f"{name}: not drawn. {' '.join(notes)}")
            continue
        style.save(figure, out, name, arguments.format)
        missing = [note for note in notes if "`make" in note or "ot measured yet" in note]
        print(f"{name}.{arguments.format}" + "".join(f"\n    {note}" for note in missing))
    if arguments.format != "png":
        return 0
    page = out / "README.md"
    write_whole(page, captions_page(captions, page.read_text("utf-8") if page.exists() else ""))
    if "ladder" in names and data.directory == DEVICE:  # what the lessons show
        ladder.save(data, out / "ladder")
        print("ladder/*.svg")
    if not arguments.names:
        write_whole(out / "TABLES.md", tables_page(data))
        print("TABLES.md")
    return 0


if __name__ == "__main__":
    sys.exit(main())
