#!/usr/bin/env python3
"""A kernel of your own on matrices of your own, beside the step's, one pass and cuSPARSE:

    make bench KERNEL=03_csr_vector:mine.cuh MATRICES='dir/*.mtx.gz'    measures, by measure.py
    make figures MINE=mine FORMAT=pdf                                  draws, and writes a table

Everything stands in plots/mine/NAME, where NAME is that of the file without .cuh: a copy of it, and a directory per device with
records.jsonl, the figures, table.md and table.tex. On a GPU times are medians of three processes; without one they are
estimates for an H200, from counters, and marked so. `mine` in measurements.toml names what is measured beside it.
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

from record_format import RecordError, jsonl, outcome_of, parsed, records_in, thing_of, write_whole
from records import GPUS, ROOT, is_tie, on_gpu
from sets import declared, fits, in_order, matrix_name, split_order
from tables import DASH, Table, number

PLACE = ROOT / "plots" / "mine"
RECORDS = "records.jsonl"
PREFIX = "my_"  # of the names of a reader's kernels: common/coursework/mine.hpp
WORDS = {"refused": "refused", "failed": "WRONG"}
FORMATS = ("pdf", "svg", "png")


# --- What is measured -----------------------------------------------------------------------------


def matrices_in(text):
    """Of MATRICES: files, patterns of files, generators and names of the catalogue, with commas between; a comma before "key=" is
    within a name, and so is one in the name of a file that is there."""
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
    beside = [pattern for patterns in declared()["mine"].values() for pattern in patterns]
    return (
        Path(file),
        {
            "kernels": [*own, *(name.removeprefix(PREFIX) for name in own), *beside],
            "precisions": ["f64"],
            "options": declared().get("options", []),
            "records": RECORDS,
            "processes": 3 if machine.has_gpu else 1,  # counts are the same in each
        },
    )


def begin(file, place, only_listed=False):
    """The directory of a kernel's records, in which nothing is changed if what is to be done is `only_listed`. What was wrong or
    unreadable is tried again; what another version of the file did is left out."""
    folder = place / file.stem
    if only_listed:
        return folder
    copy, text = folder / file.name, file.read_bytes()
    is_other = copy.exists() and copy.read_bytes() != text
    if is_other:
        print(f"{file} has changed since it was measured: it is measured again")
    for records in folder.glob(f"*/{RECORDS}"):
        kept = [
            line
            for line in parsed(records.read_text(encoding="utf-8"), records.name)
            if outcome_of(line) != "failed"
            and not (is_other and str(line.get("kernel")).startswith(PREFIX))
        ]
        write_whole(records, jsonl(kept))
    write_whole(copy, text)
    return folder


def told(outcomes):
    """A line per matrix, precision and reason, of the lines that say why there is no measurement."""
    found = {}
    for line in outcomes:
        what = next(word for word in WORDS if word in line)
        word = "not measured" if line["kernel"] == "*" else WORDS[what]
        key = line["matrix"], line["precision"], word, line[what]
        found.setdefault(key, []).append(line["kernel"])
    return [
        f"{matrix}, {precision}: {word}"
        + (
            ""
            if kernels == ["*"]
            else f" by {', '.join(kernels)}"
            if word == "refused"
            else f": {', '.join(kernels)}"
        )
        + f": {why}"
        for (matrix, precision, word, why), kernels in sorted(found.items())
    ]


def outcomes_in(file):
    """The newest outcome of each thing that was not measured since."""
    newest = {}
    for line in parsed(file.read_text(encoding="utf-8"), file.name):
        if "kernel" in line and "matrix" in line and "run" in line:
            if newest.get(thing_of(line), line)["run"] <= line["run"]:
                newest[thing_of(line)] = line
    return [line for line in newest.values() if outcome_of(line)]


def end(file, folder):
    """Says what was not measured, and what to do with the records."""
    records = folder / RECORDS
    lines = told(outcomes_in(records)) if records.exists() else []
    if lines:
        print("Not measured, or not right:", *(f"  {line}" for line in lines), sep="\n")
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
    """The records of one kernel on one device in one precision: {matrix: {series: Time}}, the fastest kernel of each series; what
    has no time, a word of why."""

    def __init__(self, name, file, precision):
        records = [r for r in records_in(file) if r["precision"] == precision]
        self.name, self.precision = name, precision
        self.outcomes = [line for line in outcomes_in(file) if line["precision"] == precision]
        own = [
            thing["kernel"]
            for thing in [*records, *self.outcomes]
            if thing["kernel"].startswith(PREFIX)
        ]
        self.own = list(dict.fromkeys(own))
        steps = {r["step"] for r in records if r["kernel"] in self.own}
        self.step = next(
            (d.name for step in steps for d in ROOT.glob(f"{step:02}_*")), "the step's"
        )
        self.is_measured = any(on_gpu(r) for r in records)
        self.device = next((r["device"] for r in records if on_gpu(r)), GPUS["h200"].full_name)
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
            if word == "WRONG" and line["kernel"].startswith(
                PREFIX
            ):  # whatever else of it is right
                self.times[line["matrix"]].pop(name, None)
        there = {label for times in self.times.values() for label in times}
        labels = [name, self.step, *declared()["mine"]]
        self.series = [
            label for label in [*labels, *sorted(there)] if label in there or label == name
        ]
        self.series = list(dict.fromkeys(self.series))

    def label(self, kernel):
        if kernel.startswith(PREFIX):
            return self.name
        if PREFIX + kernel in self.own:
            return self.step
        return next(
            (label for label, patterns in declared()["mine"].items() if fits(kernel, patterns)),
            kernel,
        )

    def ratios(self, rival):
        """{matrix: how many times as fast as a rival}, from the least."""
        pairs = {
            m: (of[self.name], of[rival])
            for m, of in self.times.items()
            if self.name in of and rival in of
        }
        found = {m: other.us / own.us for m, (own, other) in pairs.items()}
        return {m: found[m] for m in sorted(found, key=found.get)}

    def what(self):
        return f"{self.device}, {self.precision}, " + ("warm" if self.is_measured else "estimated")

    def caption(self):
        several = {record.get("processes", 1) for record in self.matrices.values()}
        kernels = {
            label: sorted({of[label].record["kernel"] for of in self.times.values() if label in of})
            for label in self.series
        }
        return [
            f"{self.name}: {', '.join(self.own)}. "
            + (
                f"Warm times, of {' or '.join(map(str, sorted(several)))} processes. "
                if self.is_measured
                else "Estimated, not measured: times of a warm product from what the kernels ask of memory (common/harness/TIME_MODEL.md). "
            )
            + "Where a column has several kernels, the fastest on each matrix. "
            + " ".join(
                f"{label}: {', '.join(names)}."
                for label, names in kernels.items()
                if label != self.name and names != [label]
            )
        ]

    def table(self):
        rivals = [label for label in self.series if label != self.name]

        def cell(matrix, label):
            time = self.times[matrix].get(label)
            every = "failed" if (matrix, "*") in self.why else DASH
            return number(time.us) if time else self.why.get((matrix, label), every)

        against = self.ratios(self.step)
        rows = [
            [
                matrix.replace("|", "/"),
                f"{self.matrices[matrix]['nnz']:,}" if matrix in self.matrices else DASH,
                *(cell(matrix, label) for label in self.series),
                number(against[matrix]) if matrix in against else DASH,
            ]
            for matrix in sorted(
                self.times, key=lambda m: self.matrices.get(m, {}).get("nnz", math.inf)
            )
        ]
        means = {rival: list(self.ratios(rival).values()) for rival in rivals}
        means = {rival: number(geometric_mean(of)) if of else DASH for rival, of in means.items()}
        rows.append(
            [
                f"{self.name} times as fast",
                "mean",
                DASH,
                *means.values(),
                means.get(self.step, DASH),
            ]
        )
        unit = "us" if self.is_measured else "est. us"
        heads = [
            "matrix",
            "nonzeros",
            *(f"{label}, {unit}" for label in self.series),
            f"times as fast as {self.step}",
        ]
        notes = [*self.caption(), "Last row: geometric means.", *told(self.outcomes)]
        return Table(
            f"{self.name} on {self.what()}",
            heads,
            rows,
            notes,
            dash="is what was not measured." if self.is_measured else "is what has no estimate.",
        )


def speedup(of):
    """How many times as fast as each rival, against how long a product takes: a dot per matrix."""
    import style

    rivals = [rival for rival in of.series if rival != of.name and of.ratios(rival)]
    if not rivals:
        return None
    means = [
        f"{geometric_mean(of.ratios(rival).values()):.2f} times as fast as {rival}"
        for rival in rivals
    ]
    figure = style.new_figure(3.2, f"{of.name} is {', '.join(means)}, in the mean: {of.what()}")
    panels = figure.subplots(1, len(rivals), sharex=True, sharey=True, squeeze=False)[0]
    for axes, rival, colour in zip(panels, rivals, style.CYCLE):
        ratios = of.ratios(rival)
        for matrix, ratio in ratios.items():
            source = of.matrices[matrix]["source"]
            axes.plot(
                of.times[matrix][of.name].us,
                ratio,
                "o",
                color=colour,
                fillstyle=style.FILLS[source],
                **style.MARK,
            )
        for matrix, away in ((next(iter(ratios)), -11), (next(reversed(ratios)), 4)):
            place = of.times[matrix][of.name].us, ratios[matrix]
            where = {"xytext": (0, away), "textcoords": "offset points", "ha": "center"}
            axes.annotate(matrix, place, annotation_clip=False, **where)
        ties = [m for m in ratios if are_tied(of.times[m][of.name], of.times[m][rival])]
        ahead = sum(ratio > 1 and m not in ties for m, ratio in ratios.items())
        axes.axhline(1, color=style.BLACK, linewidth=0.8)
        axes.set(xscale="log", yscale="log", xlabel=f"us per product of {of.name}")
        axes.set_title(
            f"against {rival}\n{ahead} of {len(ratios)} ahead, {len(ties)} tied", fontsize=8
        )
        for axis in (axes.xaxis, axes.yaxis):
            style.decimal(axis)
    # Room for names, and a tick or more besides 1.
    every = [*(ratio for rival in rivals for ratio in of.ratios(rival).values()), 0.5, 2]
    times = [of.times[m][of.name].us for rival in rivals for m in of.ratios(rival)]
    axes.set(ylim=(min(every) / 1.2, max(every) * 1.2), xlim=(min(times) / 2, max(times) * 2))
    panels[0].set_ylabel("times as fast")
    return figure


def profile(of, limit=10):
    """The share of matrices on which each takes at most so many times as long as the fastest of them; what is refused, wrong or
    unreadable by all counts as never."""
    import style

    fastest = {m: min(time.us for time in times.values()) for m, times in of.times.items() if times}
    if not fastest:
        return None
    mine = {m: times[of.name].us for m, times in of.times.items() if of.name in times}
    first = sum(us == fastest[m] for m, us in mine.items())
    figure = style.new_figure(
        3.2, f"{of.name} is the fastest on {first} of {len(fastest)} matrices: {of.what()}"
    )
    axes = figure.subplots()
    for label, colour, dashes in zip(of.series, style.CYCLE, ["-", "--", "-.", ":"] * 3):
        factors = sorted(
            times[label].us / fastest[m] for m, times in of.times.items() if label in times
        )
        within = [factor for factor in factors if factor <= limit]
        axes.step(
            [1, *within, limit],
            [100 * k / len(fastest) for k in (0, *range(1, len(within) + 1), len(within))],
            where="post",
            color=colour,
            linestyle=dashes,
            linewidth=2.4 if label == of.name else 1.4,
            label=label,
        )
    axes.set(
        xscale="log",
        xlim=(0.97, limit),
        ylim=(0, 102),
        xlabel="times as long as the fastest of these",
        ylabel="% of the matrices",
    )
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
        raise RecordError(
            f"no records of {name} (of: {known}); make bench KERNEL=STEP:{name}.cuh MATRICES=... makes them"
        )
    written = []
    for file in files:
        lines = list(parsed(file.read_text(encoding="utf-8"), file.name))
        found = [
            Comparison(name, file, precision)
            for precision in sorted({line["precision"] for line in lines if line.get("precision")})
        ]
        for of in found:
            for draw in (speedup, profile):
                if figure := draw(of):
                    path = file.with_name(f"{draw.__name__}_{of.precision}.{form}")
                    style.save(figure, path.parent, path.stem, form)
                    written.append(path)
        tables = [of.table() for of in found]
        for path, text in (
            (
                file.with_name("table.md"),
                "\n".join(f"## {table.title}\n\n{table.markdown()}" for table in tables),
            ),
            (file.with_name("table.tex"), "\n".join(table.latex() for table in tables)),
        ):
            write_whole(path, text)
            written.append(path)
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
