#!/usr/bin/env python3
"""A kernel of your own on matrices of your own, beside the step's, one pass and cuSPARSE:

    make bench KERNEL=03_csr_vector:mine.cuh MATRICES='dir/*.mtx.gz'    measures, by measure.py
    make figures MINE=mine FORMAT=pdf                                  draws, and writes a table

Everything stands in plots/mine/NAME, where NAME is that of the file without .cuh: a copy of it, and
a directory per device with records.jsonl, the figures, table.md and table.tex. On a GPU times are
medians of three processes; without one they are estimates for an H200, from counters, and marked
so. `mine` in measurements.toml names what is measured beside it.
"""

import argparse
import glob
import math
import re
import shlex
import sys
from pathlib import Path
from statistics import geometric_mean
from typing import NamedTuple

from record_format import RecordError, jsonl, lines_in, outcome_of, records_in, write_whole
from records import GPUS, ROOT, current_outcomes, is_tie, on_gpu
from sets import declared, fits, in_order, matrix_name, split_order
from tables import DASH, Table, number

PLACE = ROOT / "plots" / "mine"
RECORDS = "records.jsonl"
PREFIX = "my_"  # of the names of a reader's kernels: common/coursework/mine.hpp
WORDS = {"refused": "refused", "failed": "WRONG"}
FORMATS = ("pdf", "svg", "png")


# --- What is measured -----------------------------------------------------------------------------


def matrices_in(text):
    """Of MATRICES: files, patterns of files, generators and names of the catalogue, with commas
    between; a comma before "key=" is within a name, and so is one in the name of a file that is
    there."""
    found = []
    for one in [text] if files_of(text) else re.split(r",(?![a-z_]+=)", text):
        if files := files_of(one):
            found += files
        elif re.search(r"[*?]", one):
            raise RecordError(f"no file fits {one}")
        elif one:
            found.append(one)
    named = {}
    for spec in dict.fromkeys(found):
        if (other := named.setdefault(matrix_name(spec), spec)) != spec:
            raise RecordError(f"{other} and {spec} have one name, by which records are told apart")
    return found


def files_of(pattern):
    pattern, order = split_order(pattern)
    there = [pattern] if Path(pattern).is_file() else sorted(glob.glob(pattern))
    return [in_order(file if "/" in file else f"./{file}", order) for file in there if file]


def group(text, machine):
    """The kernel's file, its name, and what measure.py is to do, as keys of a set."""
    step, _, file = text.partition(":")
    own = [kernel["name"] for kernel in machine.kernels if kernel["name"].startswith(PREFIX)]
    if not own:
        raise RecordError(f"{machine.spmv} has no kernel of {text}")
    kernels = [*own, *(name.removeprefix(PREFIX) for name in own)]
    keys = {"kernels": sum(declared()["mine"].values(), kernels), "precisions": ["f64"]}
    keys |= {"options": declared().get("options", []), "records": RECORDS}
    keys["processes"] = 3 if machine.has_gpu else 1  # counts are the same in each
    return Path(file), keys


def begin(file, place, only_listed=False):
    """The directory of a kernel's records, in which nothing is changed if what is to be done is
    `only_listed`. What was wrong or unreadable is tried again; what another version of the file did
    is left out."""
    folder = place / file.stem
    if only_listed:
        return folder
    copy, text = folder / file.name, file.read_bytes()
    is_other = copy.exists() and copy.read_bytes() != text
    if is_other:
        print(f"{file} has changed since it was measured: it is measured again")
    for records in folder.glob(f"*/{RECORDS}"):
        kept = [line for line in lines_in(records) if outcome_of(line) != "failed"]
        if is_other:
            kept = [line for line in kept if not str(line.get("kernel")).startswith(PREFIX)]
        write_whole(records, jsonl(kept))
    write_whole(copy, text)
    return folder


def told(outcomes):
    """A line per matrix, precision and reason, of the lines that say why there is no
    measurement."""
    found = {}
    for line in outcomes:
        what = next(word for word in WORDS if word in line)
        word = "not measured" if line["kernel"] == "*" else WORDS[what]
        key = line["matrix"], line["precision"], word, line[what]
        found.setdefault(key, []).append(line["kernel"])
    lines = []
    for (matrix, precision, word, why), kernels in sorted(found.items()):
        by = " by " if word == "refused" else ": "
        by = "" if kernels == ["*"] else by + ", ".join(kernels)
        lines.append(f"{matrix}, {precision}: {word}{by}: {why}")
    return lines


def end(file, folder):
    """Says what was not measured, and what to do with the records."""
    records = folder / RECORDS
    lines = told(current_outcomes(records)) if records.exists() else []
    if lines:
        print("Not measured, or not right:", *lines, sep="\n  ")
    print(f"Next: make figures MINE={shlex.quote(file.stem)} FORMAT=pdf")
    if records.exists() and any(on_gpu(record) for record in records_in(records)):
        print(f'      make report ARGS="--records {records}"')
    else:
        print("These are estimates from counters, no times; a GPU measures: BACKEND=cuda")


# --- What is drawn --------------------------------------------------------------------------------


class Time(NamedTuple):
    """Microseconds of a product, and their spread or interval."""

    us: float
    low: float
    high: float
    record: dict


def time_of(record):
    """Of a joined record: measured, or estimated; None where there is neither."""
    if on_gpu(record):
        return Time(*(1e3 * record[f"warm{end}_ms"] for end in ("", "_lower", "_upper")), record)
    for estimate in record.get("estimates", []):
        if "us" in estimate:
            return Time(estimate["us"], *estimate.get("interval_us", [estimate["us"]] * 2), record)
    return None


def are_tied(one, other):
    if on_gpu(one.record):
        return is_tie(one.record, other.record)
    return one.low <= other.high and other.low <= one.high


class Comparison:
    """The records of one kernel on one device in one precision: {matrix: {series: Time}}, the
    fastest kernel of each series; what has no time, a word of why."""

    def __init__(self, name, file, precision):
        records = [r for r in records_in(file) if r["precision"] == precision]
        self.name, self.precision = name, precision
        self.outcomes = [line for line in current_outcomes(file) if line["precision"] == precision]
        kernels = dict.fromkeys(thing["kernel"] for thing in [*records, *self.outcomes])
        self.own = [kernel for kernel in kernels if kernel.startswith(PREFIX)]
        steps = {r["step"] for r in records if r["kernel"] in self.own}
        rooms = [room.name for step in steps for room in ROOT.glob(f"{step:02}_*")]
        self.step = rooms[0] if rooms else "the step's"
        devices = [r["device"] for r in records if on_gpu(r)]
        self.is_measured, self.device = bool(devices), [*devices, GPUS["h200"].full_name][0]
        self.matrices, self.times, self.why = {}, {}, {}
        for record in records:
            self.matrices[record["matrix"]] = record
            label, time = self.label(record["kernel"]), time_of(record)
            times = self.times.setdefault(record["matrix"], {})
            if time and (label not in times or time.us < times[label].us):
                times[label] = time
        for line in self.outcomes:
            word = next(WORDS[word] for word in WORDS if word in line)
            self.times.setdefault(line["matrix"], {})
            self.why[line["matrix"], self.label(line["kernel"])] = word
            # Whatever else of it is right.
            if word == "WRONG" and line["kernel"].startswith(PREFIX):
                self.times[line["matrix"]].pop(name, None)
        there = {label for times in self.times.values() for label in times}
        labels = dict.fromkeys([name, self.step, *declared()["mine"], *sorted(there)])
        self.series = [label for label in labels if label in there or label == name]

    def label(self, kernel):
        if kernel.startswith(PREFIX):
            return self.name
        if PREFIX + kernel in self.own:
            return self.step
        fit = (label for label, patterns in declared()["mine"].items() if fits(kernel, patterns))
        return next(fit, kernel)

    def ratios(self, rival):
        """{matrix: how many times as fast as a rival}, from the least."""
        both = {m: of for m, of in self.times.items() if self.name in of and rival in of}
        found = {m: of[rival].us / of[self.name].us for m, of in both.items()}
        return {m: found[m] for m in sorted(found, key=found.get)}

    def what(self):
        return f"{self.device}, {self.precision}, " + ("warm" if self.is_measured else "estimated")

    def caption(self):
        several = sorted({record.get("processes", 1) for record in self.matrices.values()})
        text = f"{self.name}: {', '.join(self.own)}. "
        if self.is_measured:
            text += f"Warm times, of {' or '.join(map(str, several))} processes. "
        else:
            text += "Estimated, not measured: times of a warm product from what the kernels ask of memory "
            text += "(common/harness/TIME_MODEL.md). "
        text += "Where a column has several kernels, the fastest on each matrix."
        for label in self.series:
            names = {of[label].record["kernel"] for of in self.times.values() if label in of}
            if label != self.name and names != {label}:
                text += f" {label}: {', '.join(sorted(names))}."
        return [text]

    def table(self):
        rivals = [label for label in self.series if label != self.name]

        def cell(matrix, label):
            time = self.times[matrix].get(label)
            every = "failed" if (matrix, "*") in self.why else DASH
            return number(time.us) if time else self.why.get((matrix, label), every)

        against, rows = self.ratios(self.step), []
        sizes = {m: self.matrices[m]["nnz"] if m in self.matrices else math.inf for m in self.times}
        for matrix in sorted(sizes, key=sizes.get):
            nnz = f"{sizes[matrix]:,}" if matrix in self.matrices else DASH
            ratio = number(against[matrix]) if matrix in against else DASH
            cells = [cell(matrix, label) for label in self.series]
            rows.append([matrix.replace("|", "/"), nnz, *cells, ratio])
        means = {rival: list(self.ratios(rival).values()) for rival in rivals}
        means = {rival: number(geometric_mean(of)) if of else DASH for rival, of in means.items()}
        of_all = [DASH, *means.values(), means.get(self.step, DASH)]
        rows.append([f"{self.name} times as fast", "mean", *of_all])
        unit, dash = (
            ("us", "was not measured") if self.is_measured else ("est. us", "has no estimate")
        )
        heads = [f"{label}, {unit}" for label in self.series]
        heads = ["matrix", "nonzeros", *heads, f"times as fast as {self.step}"]
        notes = [*self.caption(), "Last row: geometric means.", *told(self.outcomes)]
        return Table(f"{self.name} on {self.what()}", heads, rows, notes, dash=f"is what {dash}.")


def speedup(of):
    """How many times as fast as each rival, against how long a product takes: a dot per matrix."""
    import style

    rivals = [rival for rival in of.series if rival != of.name and of.ratios(rival)]
    if not rivals:
        return None
    means = [f"{geometric_mean(of.ratios(r).values()):.2f} times as fast as {r}" for r in rivals]
    figure = style.new_figure(3.2, f"{of.name} is {', '.join(means)}, in the mean: {of.what()}")
    panels = figure.subplots(1, len(rivals), sharex=True, sharey=True, squeeze=False)[0]
    for axes, rival, colour in zip(panels, rivals, style.CYCLE):
        ratios = of.ratios(rival)
        marks = {m: (of.times[m][of.name].us, ratio) for m, ratio in ratios.items()}
        style.points(axes, marks, {m: of.matrices[m]["source"] for m in marks}, colour)
        for matrix, away in ((next(iter(ratios)), -11), (next(reversed(ratios)), 4)):
            where = {"xytext": (0, away), "textcoords": "offset points", "ha": "center"}
            axes.annotate(matrix, marks[matrix], annotation_clip=False, **where)
        ties = [m for m in ratios if are_tied(of.times[m][of.name], of.times[m][rival])]
        ahead = sum(ratio > 1 and m not in ties for m, ratio in ratios.items())
        axes.axhline(1, color=style.BLACK, linewidth=0.8)
        axes.set(xscale="log", yscale="log", xlabel=f"us per product of {of.name}")
        counts = f"{ahead} of {len(ratios)} ahead, {len(ties)} tied"
        axes.set_title(f"against {rival}\n{counts}", fontsize=8)
        for axis in (axes.xaxis, axes.yaxis):
            style.decimal(axis)
    # Room for names, and a tick or more besides 1.
    every = [*(ratio for rival in rivals for ratio in of.ratios(rival).values()), 0.5, 2]
    times = [of.times[m][of.name].us for rival in rivals for m in of.ratios(rival)]
    axes.set(ylim=(min(every) / 1.2, max(every) * 1.2), xlim=(min(times) / 2, max(times) * 2))
    panels[0].set_ylabel("times as fast")
    return figure


def profile(of, limit=10):
    """The share of matrices on which each takes at most so many times as long as the fastest of
    them; what is refused, wrong or unreadable by all counts as never."""
    import style

    fastest = {m: min(time.us for time in times.values()) for m, times in of.times.items() if times}
    if not fastest:
        return None
    mine = {m: times[of.name].us for m, times in of.times.items() if of.name in times}
    first = sum(us == fastest[m] for m, us in mine.items())
    message = f"{of.name} is the fastest on {first} of {len(fastest)} matrices: {of.what()}"
    figure = style.new_figure(3.2, message)
    axes = figure.subplots()
    for label, colour, dashes in zip(of.series, style.CYCLE, ["-", "--", "-.", ":"] * 3):
        factors = [us[label].us / fastest[m] for m, us in of.times.items() if label in us]
        look = {"color": colour, "linestyle": dashes, "linewidth": 2.4 if label == of.name else 1.4}
        style.profile(axes, factors, len(fastest), limit, label=label, **look)
    axes.set(xscale="log", xlim=(0.97, limit), ylim=(0, 102), ylabel="% of the matrices")
    axes.set_xlabel("times as long as the fastest of these")
    style.decimal(axes.xaxis)
    style.legend(figure, list(zip(*axes.get_legend_handles_labels())))
    return figure


def figures(name, form, place=PLACE):
    """Draws and writes everything of a kernel; the paths."""
    import style  # not above: it needs Matplotlib, and measuring does not

    if form not in FORMATS:
        raise RecordError(f"FORMAT={form}: give one of {', '.join(FORMATS)}")
    files = sorted((place / name).glob(f"*/{RECORDS}"))
    if not files:
        known = ", ".join(sorted(path.name for path in place.glob("*/"))) or "none"
        how = f"make bench KERNEL=STEP:{name}.cuh MATRICES=... makes them"
        raise RecordError(f"no records of {name} (of: {known}); {how}")
    written = []
    for file in files:
        precisions = {line["precision"] for line in lines_in(file) if line.get("precision")}
        found = [Comparison(name, file, precision) for precision in sorted(precisions)]
        for of in found:
            for draw in (speedup, profile):
                if figure := draw(of):
                    path = file.with_name(f"{draw.__name__}_{of.precision}.{form}")
                    style.save(figure, path.parent, path.stem, form)
                    written.append(path)
        tables = [of.table() for of in found]
        markdown = [f"## {table.title}\n\n{table.markdown()}" for table in tables]
        for end, texts in (("md", markdown), ("tex", [table.latex() for table in tables])):
            written.append(file.with_name(f"table.{end}"))
            write_whole(written[-1], "\n".join(texts))
    return written


def main(argv=None):
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("name", help="of the kernel's file, without .cuh")
    parser.add_argument("--format", default="pdf", help=f"of the figures: {', '.join(FORMATS)}")
    arguments = parser.parse_args(argv)
    try:
        for path in figures(arguments.name, arguments.format):
            print(path.relative_to(ROOT) if path.is_relative_to(ROOT) else path)
    except (RecordError, OSError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
