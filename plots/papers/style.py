"""How all figures look: colours that everybody can tell apart, bars, notes, files."""

import io
import textwrap
from statistics import fmean, geometric_mean, median
from typing import NamedTuple

from record_format import write_whole
from records import STAND_IN, code_note, gflops, short, starred

# Okabe and Ito's palette, which stays apart for colour-blind readers and in grey.
BLACK, ORANGE, SKY, GREEN = "#000000", "#E69F00", "#56B4E9", "#009E73"
YELLOW, BLUE, VERMILLION, PURPLE, GREY = "#F0E442", "#0072B2", "#D55E00", "#CC79A7", "#999999"
CYCLE = [BLUE, ORANGE, GREEN, PURPLE, SKY, VERMILLION, YELLOW, GREY, BLACK]
MARKERS = "osD^vP*Xd<>hp8"
COMMAND = "make bench SET=full"
PRECISIONS = {"f32": "single precision", "f64": "double precision"}
SPREAD = "Marks: medians, lines: their spread, where it is longer than the mark."
WARM = "Warm: inputs in the L2 as far as they fit. " + SPREAD

LOOK = {
    "font.size": 8,
    "axes.titlesize": 9,
    "axes.labelsize": 8,
    "legend.fontsize": 7.5,
    "xtick.labelsize": 7.5,
    "ytick.labelsize": 7.5,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.axisbelow": True,
    "axes.grid": True,
    "axes.grid.axis": "y",
    "grid.color": "#dddddd",
    "grid.linewidth": 0.6,
    "legend.frameon": False,
    "figure.dpi": 100,
    "savefig.dpi": 200,
}


def new_figure(width, height, title, larger=0):
    """`larger`: points by which all text but the title and the notes is."""
    import matplotlib  # not above: tables of the READMEs need no Matplotlib

    matplotlib.use("Agg")
    matplotlib.rcParams.update(
        LOOK | {name: LOOK[name] + larger for name in LOOK if name.endswith("size")}
    )
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height), layout="constrained")
    figure.suptitle(title, x=0.01, ha="left", fontsize=11, fontweight="bold")
    return figure


def apart(values, distance, levels):
    """Of each value, which are positive, a level about 0 at which no mark is nearer to it than by that factor, and marks of equal
    values are above each other; of one for which there is no room among so many levels, 0."""
    last, found = {}, {}
    for at in sorted(range(len(values)), key=values.__getitem__):
        order = sorted(range(-(levels // 2), levels // 2 + 1), key=abs)
        found[at] = next(
            (level for level in order if values[at] >= distance * last.get(level, 0)), 0
        )
        last[found[at]] = values[at]
    return [found[at] for at in range(len(values))]


class Gaps:
    """What a figure would show and has no record of; ends as a note below it."""

    def __init__(self, data):
        self.data, self.asked, self.remarks, self.found = data, {}, [], []
        self.without_names = set()  # matrices that are shown without their names

    def find(self, series, matrix, precision, patterns, gpu=True, state="warm"):
        """The fastest record, noted as missing where there is none."""
        record = self.data.fastest(matrix, precision, patterns, gpu, state)
        refused = record is None and self.data.is_refused(matrix, precision, patterns)
        state = "refused" if refused else "missing" if record is None else "there"
        self.asked.setdefault((series, ",".join(patterns)), {})[matrix, precision] = state
        self.found += [record] if record else []
        return record

    def share(self):
        """Of all that was asked for, how much was measured or refused; 1 if nothing was asked for."""
        states = [state for of in self.asked.values() for state in of.values()]
        return 1 - states.count("missing") / max(len(states), 1)

    def remark(self, text):
        if text not in self.remarks:
            self.remarks.append(text)

    def notes(self):
        lines = [*self.remarks, *code_note(self.found)]
        everything = {matrix for of in self.asked.values() for matrix, _ in of}
        shown = {
            matrix
            for of in self.asked.values()
            for (matrix, _), state in of.items()
            if state == "there"
        }
        made = {
            matrix
            for matrix in shown | self.without_names
            if self.data.source(matrix) == "stand-in"
        }
        if made & shown:
            lines.append(
                f"{STAND_IN[:-1]}: {len(made)} of {len(shown | self.without_names)} matrices."
            )
        if everything and not shown:
            return [*lines, not_measured(self.data)]
        if everything - shown:
            lines.append(f"Not measured yet: {listed(sorted(everything - shown))}; `{COMMAND}`.")
        for (series, patterns), of in self.asked.items():
            refused = sorted({matrix for (matrix, _), state in of.items() if state == "refused"})
            if refused:
                lines.append(f"Refused by {series}: {listed(refused)}.")
            if missing := dict.fromkeys(
                short(matrix)
                for (matrix, _), state in of.items()
                if state == "missing" and matrix in shown
            ):
                lines.append(
                    f"Records of {series} are missing on {listed(list(missing))}; `{COMMAND} KERNELS='{patterns}'`."
                )
        return lines


def not_measured(data):
    return f"Not measured yet on {data.device}: `{COMMAND}` makes the records."


def one_triangle(gaps, names, sizes, axes=None):
    """Notes the matrices that have far more nonzeros here than `sizes`, the paper's, and marks them on the axis."""
    if larger := [
        name
        for name in names
        if name in gaps.data.matrices and gaps.data.matrices[name]["nnz"] > 1.5 * sizes[name]
    ]:
        gaps.remark(f"Of {listed(larger)} the paper counts one triangle; here both are multiplied.")
        if axes:
            axes.set_xticks(
                range(len(names)),
                [gaps.data.label(name) + "\nboth triangles" * (name in larger) for name in names],
            )


def listed(names, most=6):
    names = [short(name) for name in names]
    rest = len(names) - most
    return ", ".join(names[:most]) + (f" and {rest} more" if rest > 0 else "")


def finish(figure, notes):
    """Puts the notes below a figure, each on lines that fit."""
    width = int(figure.get_figwidth() * 17)
    lines = [
        line
        for note in notes
        for line in textwrap.wrap(note, width, subsequent_indent="  ", break_on_hyphens=False)
    ]
    if lines:
        figure.supxlabel("\n".join(lines), x=0.01, ha="left", fontsize=7.5, color="#333333")
    return figure


# How a mark is filled says what was multiplied.
FILLS = {"file": "full", "generated": "left", "stand-in": "none"}
SOURCES = {"file": "real files", "generated": "generated", "stand-in": "stand-ins"}
MARK = {"markersize": 5, "markeredgewidth": 0.9, "markerfacecoloralt": "white"}
SHADE = {"color": "#f3f3f3", "linewidth": 0, "zorder": 0}  # every other column


class Series(NamedTuple):
    """Marks of one colour: a value of each group, None where there is none, its spread, and the paper's value."""

    label: str
    values: list
    lower: list = ()
    upper: list = ()
    theirs: list = ()


def series(
    gaps, label, matrices, precision, patterns, value=gflops, state="warm", gpu=True, theirs=()
):
    """A Series of the fastest kernel that fits on each of the matrices; value(record, state, quartile)."""
    records = [gaps.find(label, m, precision, patterns, gpu, state) for m in matrices]
    return Series(
        label,
        *(
            [r and value(r, state, quartile) for r in records]
            for quartile in ("median", "upper", "lower")
        ),
        list(theirs),
    )


def logarithmic(axis):
    """Ticks at 1, 2 and 5."""
    axis.set_major_formatter(lambda value, _: f"{value:g}")
    axis.set_minor_formatter(lambda value, _: f"{value:g}" if f"{value:e}"[0] in "25" else "")


def source_legend(axes, sources):
    """What the fillings mean, unless all are real files."""
    for source in [source for source in FILLS if source in sources and set(sources) != {"file"}]:
        axes.plot([], [], "o", color=BLACK, fillstyle=FILLS[source], label=SOURCES[source], **MARK)


def spread_and_marks(axes, at, one, sources, colour, mark):
    """Of a Series: lines for its spread, and marks filled as `sources` say."""
    there = [i for i, value in enumerate(one.values) if value is not None]
    if one.lower:
        errors = [
            [max(one.values[i] - one.lower[i], 0) for i in there],
            [max(one.upper[i] - one.values[i], 0) for i in there],
        ]
        axes.errorbar(
            [at[i] for i in there],
            [one.values[i] for i in there],
            errors,
            fmt="none",
            elinewidth=0.9,
            ecolor=colour,
            label="_",
        )
    for source, fill in FILLS.items():
        of = [i for i in there if sources[i] == source]
        places, values = [at[i] for i in of], [one.values[i] for i in of]
        if fill == "none":  # (a spread that is shorter than the mark would be a sign within it)
            white = {**MARK, "markeredgewidth": 0}
            axes.plot(places, values, mark, color="white", label="_", **white)
        label = f"_{one.label}"
        axes.plot(places, values, mark, color=colour, fillstyle=fill, label=label, **MARK)
    return bool(there)


def groups_on_axis(axes, groups):
    turned = {"rotation": 35, "ha": "right", "rotation_mode": "anchor"}
    axes.set_xticks(range(len(groups)), groups, **(turned if sum(map(len, groups)) > 80 else {}))
    for group in range(1, len(groups), 2):
        axes.axvspan(group - 0.5, group + 0.5, **SHADE)
    axes.set_xlim(-0.5, max(len(groups), 5) - 0.5)


def dots(axes, groups, series, sources, theirs="", colours=None, log=True):
    """Groups side by side with a mark per series, filled as `sources` of the groups say, and a dash of the same colour for the
    paper's value; `theirs` names its device."""
    width, length = (0.9, 4.5) if len(groups) > 15 else (0.7, 8)
    dash = {"markersize": length, "markeredgewidth": 2.2}
    for s, one in enumerate(series):
        colour, mark = (colours or CYCLE)[s], MARKERS[s % len(MARKERS)]
        at = [i + width * ((s + 0.5) / len(series) - 0.5) for i in range(len(groups))]
        is_there = spread_and_marks(axes, at, one, sources, colour, mark)
        said = [i for i, value in enumerate(one.theirs) if value is not None]
        axes.plot(
            [at[i] for i in said],
            [one.theirs[i] for i in said],
            "_",
            color=colour,
            label=f"_{theirs}: {one.label}",
            **dash,
        )
        if is_there:
            axes.plot([], [], mark, color=colour, label=one.label, **MARK)
        elif said:
            axes.plot([], [], "_", color=colour, label=one.label, **dash)
    if any(one.theirs for one in series):
        axes.plot([], [], "_", color=BLACK, label=theirs, **dash)
    if log:
        axes.set_yscale("log")
        logarithmic(axes.yaxis)
    groups_on_axis(axes, groups)
    source_legend(axes, sources)
    if not axes.lines:
        axes.text(0.5, 0.5, "not measured yet", ha="center", transform=axes.transAxes)
    return axes


def dots_of(axes, gaps, matrices, series, theirs="", colours=None, log=True):
    """dots() whose groups are matrices."""
    sources = [gaps.data.source(name) or "file" for name in matrices]
    if set(sources) == {"generated"}:  # no marks need to be told apart
        gaps.remark("All matrices are generated, as the paper's were.")
        sources = ["file"] * len(sources)
    return dots(
        axes, [gaps.data.label(name) for name in matrices], series, sources, theirs, colours, log
    )


def ratios(axes, gaps, own, gpu, means, greatest=()):
    """How many times as fast on each matrix: `own` is {rival: {matrix: ratio}}, with a mark per matrix, their arithmetic mean and
    their median; beside them the means of the paper, with lines up to its greatest ones. What is four times the median or more, or a
    quarter of it, and so pulls at the mean, is named."""
    gaps.remark(
        "Names stand beside marks that are at least four times the median or at most a quarter of it."
    )
    at, found, data = range(len(own)), list(own.values()), gaps.data
    axes.errorbar(
        [x - 0.37 for x in at],
        means,
        [[0] * len(means), [most - mean for mean, most in zip(means, greatest)]]
        if greatest
        else None,
        fmt="_",
        color=VERMILLION,
        markersize=8,
        markeredgewidth=2.2,
        elinewidth=1,
        label=f"{gpu}: mean" + (", up to the greatest" if greatest else ""),
    )
    for x, of in zip(at, found):
        for matrix, level in zip(of, apart(list(of.values()), 1.18, 9)):
            place, ratio = x + 0.18 + 0.06 * level, of[matrix]
            axes.plot(place, ratio, "o", color="white", label="_", **{**MARK, "markersize": 3.5})
            axes.plot(
                place,
                ratio,
                "o",
                color=BLUE,
                fillstyle=FILLS[data.source(matrix)],
                label="_each",
                **{**MARK, "markersize": 3.5},
            )
        if of:
            axes.plot(
                [x - 0.31, x - 0.21],
                [fmean(of.values())] * 2,
                color=BLACK,
                linewidth=1.8,
                label="_"
                if x
                else f"{data.device}, {max(map(len, found))} matrices: arithmetic mean",
            )
            middle = median(of.values())
            axes.plot(
                [x - 0.19, x - 0.09],
                [middle] * 2,
                color=BLACK,
                linewidth=1.8,
                linestyle=(0, (1, 0.7)),
                label="_" if x else "median",
            )
            for far in (
                {m: r for m, r in of.items() if r >= 4 * middle},
                {m: r for m, r in of.items() if r <= middle / 4},
            ):
                if far:
                    names = [
                        starred(m, data.source(m)) for m in sorted(far, key=far.get, reverse=True)
                    ]
                    axes.text(x + 0.28, geometric_mean(far.values()), "\n".join(names), va="center")
    source_legend(axes, [data.source(matrix) for of in found for matrix in of])
    axes.axhline(1, color=BLACK, linewidth=0.7)
    for x in at[1::2]:
        axes.axvspan(x - 0.5, x + 0.5, **SHADE)
    axes.set_yscale("log")
    logarithmic(axes.yaxis)
    axes.set_xticks(at, own)
    axes.set_xlim(-0.5, len(own) - 0.3)


def panel(axes, title, unit, columns=8):
    """Title, unit, and between title and picture, where no mark can be, a legend of what none before it has explained, line by line."""
    legends = [
        *axes.figure.legends,
        *filter(None, (other.get_legend() for other in axes.figure.axes)),
    ]
    known = {text.get_text() for legend in legends for text in legend.get_texts()}
    entries = [
        (handle, label)
        for handle, label in zip(*axes.get_legend_handles_labels())
        if label not in known
    ]
    axes.set_title(title, pad=4 + 13 * -(-len(entries) // columns))
    axes.set_ylabel(unit)
    if entries:
        by_column = [entry for column in range(columns) for entry in entries[column::columns]]
        legend = axes.legend(
            *zip(*by_column),
            loc="lower left",
            bbox_to_anchor=(0, 1.0),
            ncol=min(columns, len(entries)),
            borderaxespad=0.2,
            columnspacing=1.2,
            handlelength=1.2,
        )
        legend.set_in_layout(False)  # it may reach over the panel beside it


def legend_below_title(figure, handles, labels):
    """A legend of the whole figure on a line of its own."""
    title = figure._suptitle
    title.set_text(title.get_text() + "\n")
    title.set_linespacing(1.7)
    y = 1 - 0.3 / figure.get_figheight()
    figure.legend(
        handles,
        labels,
        loc="upper left",
        bbox_to_anchor=(0.005, y),
        ncol=len(labels),
        borderaxespad=0,
        columnspacing=1.5,
    )


def save_png(figure, directory, name):
    """NAME.png, of 256 colours: the same bytes on every run."""
    image = pixels(figure).quantize(
        256, method=1, kmeans=1
    )  # maximum coverage: no colour is lost; k-means: nor shifted
    packed = io.BytesIO()
    image.save(packed, format="PNG", optimize=True)
    write_whole(directory / f"{name}.png", packed.getvalue())


def pixels(figure, dpi=LOOK["savefig.dpi"]):
    from PIL import Image  # Matplotlib brings it

    drawn = io.BytesIO()
    figure.savefig(drawn, format="png", dpi=dpi)
    return Image.open(drawn).convert("RGB")


def webp(figure):
    """As bytes, for the results page: lossless, half as large as a PNG."""
    small = io.BytesIO()
    pixels(figure, 150).save(small, format="WEBP", lossless=True, quality=60, method=4)
    return small.getvalue()
