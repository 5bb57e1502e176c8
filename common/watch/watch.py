#!/usr/bin/env python3
"""Writes the page on which one watches kernels run: make watch

    watch.py PROGRAM OUTPUT.html [--tour STEP/tour.txt] [--matrix M] [--kernels "csr_scalar csr_vector"]
             [--mine] [--find worst] [--precision f64] [--schedule forward] [--command "steps --gpus 2"]
             [--trace FILE]

PROGRAM is run with --trace, unless FILE holds the traces. One or two kernels are shown. Matrix and kernels are
those of the tour if they are not given; with --mine, a kernel of KERNEL=mine.cuh and the one that
it is a version of. The page opens at the first event of the kind --find (model.js, KINDS), else
where a product is wrong, else at the tour's first stop.
"""

import argparse
import json
import re
import subprocess
import sys
import tempfile
from html import escape
from pathlib import Path

import tours
import traces

HERE = Path(__file__).resolve().parent
DEFAULT_MATRIX = "stencil2d:16x16"


def record(program, matrix, kernels, precision="f64", schedule="forward", *more, command=""):
    """The traces of kernels on a matrix, in the order of `kernels`; a product that is wrong has
    one, too. `command`: a step's own program, with options, that runs what `kernels` names
    (10_multigpu/steps.cu)."""
    with tempfile.TemporaryDirectory() as scratch:
        file = Path(scratch) / "trace.jsonl"
        which = "--way" if command else "--kernel"
        words = ["--matrix", matrix, which, ",".join(kernels), "--verify-only", "--trace", file]
        words += ["--precision", precision, "--schedule", schedule, *more]
        done = subprocess.run([program, *command.split(), *words], capture_output=True, text=True)
        if done.returncode not in (0, 1) or not file.exists():
            sys.exit(done.stderr.strip() or f"error: {program} ended with status {done.returncode}")
        sys.stderr.write(done.stderr)
        if not file.stat().st_size:
            why = [line for line in done.stdout.splitlines() if line.startswith(tuple(kernels))]
            why = [line for line in why if ": " in line]
            raise traces.TraceError(
                why[0] if why else f"no kernel of {', '.join(kernels)} runs on {matrix}"
            )
        found = traces.read(file)
    position = {name: number for number, name in enumerate(kernels)}
    return sorted(found, key=lambda trace: position.get(trace["kernel"]["name"], len(position)))


def names_in(program, step=r"\d\d"):
    """The kernels of a program, or those of one step, given as two digits."""
    text = subprocess.run([program, "--list"], capture_output=True, text=True).stdout
    return re.findall(rf"^{step}  (\S+)", text, re.MULTILINE)


def choose(names, wanted, tour, mine):
    """The kernels to show, of those that the program has; `names` is empty where a command of its
    own checks them. Raises TraceError."""
    for name in wanted:
        if names and name not in names:
            raise traces.TraceError(
                f"KERNELS: no kernel has the name '{name}'; there are {' '.join(names)}"
            )
    if wanted:
        return wanted
    if mine:
        my = [name for name in names if name.startswith("my_")]
        first = next((name for name in my if tour and name[3:] in tour.kernels), my[0])
        return [first[3:], first]
    found = [name for name in tour.kernels if name in names or not names] if tour else []
    if not found:
        raise traces.TraceError('give one or two kernels: KERNELS="csr_scalar csr_vector", say')
    return found


def page(found, stops, find="", live=""):
    """The text of the page. `live`: with the controls of live/controls.js, and the name of the
    module beside the page (live/package.py), as on the site."""
    names = " and ".join(trace["kernel"]["name"] for trace in found)
    text = (HERE / "page.html").read_text(encoding="utf-8")
    embedded = json.dumps(
        {"traces": found, "tour": stops, "find": find}, separators=(",", ":"), ensure_ascii=False
    )
    parts = {
        "TITLE": escape(f"{names} on {found[0]['matrix']['name']}"),
        "STYLE": (HERE / "page.css").read_text(encoding="utf-8"),
        "DATA": embedded.replace("</", "<\\/"),
        "SCRIPT": "".join(
            (HERE / name).read_text(encoding="utf-8")
            for name in ("model.js", "learn.js", "view.js", "live/controls.js")[: 4 if live else 3]
        ),
        "LIVE": f'<script src="{live}" async></script>' if live else "",
    }
    for name, content in parts.items():
        text = text.replace(f"@{name}@", content)
    return text


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("program", type=Path)
    parser.add_argument("output", type=Path)
    parser.add_argument("--mine", action="store_true")
    parser.add_argument("--precision", default="f64")
    for word in ("--matrix", "--kernels", "--find", "--schedule", "--command"):
        parser.add_argument(word, default="")
    for file in ("--tour", "--trace"):
        parser.add_argument(file, type=Path)
    arguments = parser.parse_args()
    try:
        tour = tours.read(arguments.tour) if arguments.tour and arguments.tour.exists() else None
        matrix = arguments.matrix or (tour.matrix if tour else DEFAULT_MATRIX)
        command = arguments.command or (tour.command if tour else "")
        if arguments.trace:
            found = traces.read(arguments.trace)
        else:
            wanted = arguments.kernels.replace(",", " ").split()
            kernels = choose(
                [] if command else names_in(arguments.program), wanted, tour, arguments.mine
            )
            schedule = arguments.schedule or (tour.schedule if tour else "forward")
            found = record(
                arguments.program, matrix, kernels, arguments.precision, schedule, command=command
            )
        shown, stops = [trace["kernel"]["name"] for trace in found], []
        empty = [trace["kernel"]["name"] for trace in found if not trace["events"]]
        if empty:
            raise traces.TraceError(
                f"{empty[0]} on {found[0]['matrix']['name']} launches nothing: there is nothing to watch"
            )
        if len(found) > 2:
            sys.exit(
                f"error: two kernels fit beside each other; these are {', '.join(shown)}: name one or two in KERNELS"
            )
        if tour and (tour.matrix, tour.kernels, tour.command) == (matrix, shown, command):
            try:
                stops = tour.resolve(found)
            except tours.TourError as error:  # of a kernel that somebody has changed
                print(f"no tour: {error}", file=sys.stderr)
    except (traces.TraceError, tours.TourError) as error:
        sys.exit(f"error: {error}")
    arguments.output.parent.mkdir(parents=True, exist_ok=True)
    arguments.output.write_text(page(found, stops, arguments.find), encoding="utf-8")
    print(f"Open in a browser: {arguments.output}")


if __name__ == "__main__":
    main()
