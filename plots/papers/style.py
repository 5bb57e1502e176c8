"""How all figures look: colours that everybody can tell apart, bars, notes, files."""

import io
import re
from html import escape

from record_format import write_whole
from records import STAND_IN, code_note

# Okabe and Ito's palette, which stays apart for colour-blind readers and in grey.
BLACK, ORANGE, SKY, GREEN = "#000000", "#E69F00", "#56B4E9", "#009E73"
YELLOW, BLUE, VERMILLION, PURPLE, GREY = "#F0E442", "#0072B2", "#D55E00", "#CC79A7", "#999999"
CYCLE = [BLUE, ORANGE, GREEN, PURPLE, SKY, VERMILLION, YELLOW, GREY, BLACK]
MARKERS = "osD^vP*Xd<>hp8"
COMMAND = "make bench SET=full"

LOOK = {
    "font.size": 8, "axes.titlesize": 9, "axes.labelsize": 8, "legend.fontsize": 7.5,
    "xtick.labelsize": 7.5, "ytick.labelsize": 7.5, "axes.spines.top": False,
    "axes.spines.right": False, "axes.axisbelow": True, "axes.grid": True, "axes.grid.axis": "y",
    "grid.color": "#dddddd", "grid.linewidth": 0.6, "legend.frameon": False,
    "figure.dpi": 100, "savefig.dpi": 200, "svg.fonttype": "none", "svg.hashsalt": "spmv",
}


def new_figure(width, height, title):
    import matplotlib  # not above: tables of the READMEs need no Matplotlib

    matplotlib.use("Agg")
    matplotlib.rcParams.update(LOOK)
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height), layout="constrained")
    figure.suptitle(title, x=0.01, ha="left", fontsize=11, fontweight="bold")
    return figure


class Gaps:
    """What a figure would show and has no record of; ends as a note below it."""

    def __init__(self, data):
        self.data, self.asked, self.remarks, self.found = data, {}, [], []

    def find(self, series, matrix, precision, patterns, gpu=True):
        """The fastest record, noted as missing where there is none."""
        record = self.data.fastest(matrix, precision, patterns, gpu)
        refused = record is None and self.data.is_refused(matrix, precision, patterns)
        state = "refused" if refused else "missing" if record is None else "there"
        self.asked.setdefault((series, ",".join(patterns)), {})[matrix, precision] = state
        self.found += [record] if record else []
        return record

    def remark(self, text):
        if text not in self.remarks:
            self.remarks.append(text)

    def notes(self):
        lines = [*self.remarks, *code_note(self.found)]
        everything = {matrix for of in self.asked.values() for matrix, _ in of}
        shown = {matrix for of in self.asked.values() for (matrix, _), state in of.items() if state == "there"}
        if any(self.data.source(matrix) == "stand-in" for matrix in shown):
            lines.append(STAND_IN)
        if everything and not shown:
            lines.append(f"Not measured yet on {self.data.device}: `{COMMAND}` makes the records.")
            return lines
        if everything - shown:
            lines.append(f"Not measured yet: {listed(sorted(everything - shown))}; `{COMMAND}`.")
        for (series, patterns), of in self.asked.items():
            refused = sorted({matrix for (matrix, _), state in of.items() if state == "refused"})
            if refused:
                lines.append(f"Refused by {series}: {listed(refused)}.")
            missing = {}  # the precisions -> the matrices that lack them
            for matrix in sorted(shown):
                lacks = [p for p in ("f32", "f64") if of.get((matrix, p)) == "missing"]
                lacks = " " if len(lacks) == len({p for _, p in of}) else "".join(f" {p} " for p in lacks)
                missing.setdefault(lacks, []).append(matrix)
            for lacks, names in missing.items():
                if lacks:
                    lines.append(f"No{lacks}record of {series} on {listed(names)}; `{COMMAND} KERNELS='{patterns}'`.")
        return lines


def short_name(name):
    return name.split(",")[0]


def listed(names, most=6):
    names = [short_name(name) for name in names]
    rest = len(names) - most
    return ", ".join(names[:most]) + (f" and {rest} more" if rest > 0 else "")


def finish(figure, notes):
    """Puts the notes below a figure, each on lines that fit."""
    width = int(figure.get_figwidth() * 17)
    lines = []
    for note in notes:
        line = ""
        for word in note.split(" "):
            if line and len(line) + len(word) > width:
                lines.append(line)
                line = "  "
            line += (" " if line.strip() else "") + word
        lines.append(line)
    if lines:
        figure.supxlabel("\n".join(lines), x=0.01, ha="left", fontsize=7.5, color="#333333")
    return figure


def bars(axes, groups, series, colours=None, width=0.84):
    """Bars in groups. `series`: [(label, values)], where None is a bar that is not there."""
    each = width / len(series)
    for s, (label, values) in enumerate(series):
        there = [i for i, value in enumerate(values) if value is not None]
        if there:  # else a note below the figure says so
            axes.bar([i - width / 2 + (s + 0.5) * each for i in there], [values[i] for i in there], each * 0.92, label=label,
                     color=(colours or CYCLE)[s])
    axes.set_xticks(range(len(groups)), groups)
    if not axes.containers:
        axes.text(0.5, 0.5, "not measured yet", ha="center", transform=axes.transAxes)
    return axes


HOLLOW = "hollow: a stand-in"


def dots(axes, groups, series, hollow=(), colours=None):
    """Groups side by side with a mark per series, on a logarithmic axis: as many as bars have no room for. `series`: [(label,
    values)] or [(label, values, lower, upper)], None where there is none. Marks of the groups `hollow` are hollow, but those
    of a series whose label begins with "Tesla": the papers had the files."""
    for s, (label, values, *more) in enumerate(series):
        there = [i for i, value in enumerate(values) if value is not None]
        if not there:
            continue  # a note below the figure says so
        colour, mark = (colours or CYCLE)[s], MARKERS[s % len(MARKERS)]
        at = [i + 0.62 * ((s + 0.5) / len(series) - 0.5) for i in there]
        if more:
            errors = [[max(values[i] - more[0][i], 0) for i in there], [max(more[1][i] - values[i], 0) for i in there]]
            axes.errorbar(at, [values[i] for i in there], errors, fmt="none", elinewidth=0.7, ecolor=colour, label="_")
        axes.plot(at, [values[i] for i in there], mark, color=colour, markersize=4.5, label=label)
        empty = [k for k, i in enumerate(there) if i in hollow and not label.startswith("Tesla")]
        axes.plot([at[k] for k in empty], [values[there[k]] for k in empty], mark, color="white", markersize=3, markeredgewidth=0)
    if hollow and axes.lines:
        axes.plot([], [], "o", color="white", markeredgecolor=GREY, markersize=4.5, label=HOLLOW)
    axes.set_yscale("log")
    axes.yaxis.set_major_formatter(lambda value, _: f"{value:g}")
    axes.yaxis.set_minor_formatter(lambda value, _: f"{value:g}" if f"{value:e}"[0] in "25" else "")
    axes.set_xticks(range(len(groups)), groups, rotation=35, ha="right", rotation_mode="anchor")
    for border in range(1, len(groups)):
        axes.axvline(border - 0.5, color="#eeeeee", linewidth=0.6)
    axes.set_xlim(-0.5, max(len(groups), 5) - 0.5)
    if not axes.lines:
        axes.text(0.5, 0.5, "not measured yet", ha="center", transform=axes.transAxes)
    return axes


def dots_of(axes, data, matrices, series, colours):
    """dots() whose groups are matrices."""
    hollow = {i for i, name in enumerate(matrices) if data.source(name) == "stand-in"}
    return dots(axes, [data.label(name) for name in matrices], series, hollow, colours)


def legend_above(axes, columns=8):
    """A legend between title and picture, where no bar can be."""
    if not axes.get_legend_handles_labels()[0]:
        return
    axes.legend(loc="lower left", bbox_to_anchor=(0, 1.0), ncol=columns, borderaxespad=0.2,
                columnspacing=1.2, handlelength=1.2)


def legend_below_title(figure, handles, labels):
    """A legend of the whole figure on a line of its own."""
    title = figure._suptitle
    title.set_text(title.get_text() + "\n")
    y = 1 - 0.27 / figure.get_figheight()
    figure.legend(handles, labels, loc="upper left", bbox_to_anchor=(0.005, y), ncol=len(labels),
                  borderaxespad=0, columnspacing=1.5)


def words(axes, text):
    """Axes that hold words where a picture is lost."""
    axes.axis("off")
    axes.text(0, 1, text, va="top", ha="left", fontsize=8, linespacing=1.5, transform=axes.transAxes)


def save(figure, directory, name):
    """NAME.png, of 256 colours, and NAME.svg: the same bytes on every run."""
    save_png(figure, directory, name)
    write_whole(directory / f"{name}.svg", svg(figure))


def save_png(figure, directory, name):
    from PIL import Image  # Matplotlib brings it

    image = Image.open(png(figure)).convert("RGB").quantize(256, method=1)  # maximum coverage: no colour is lost
    packed = io.BytesIO()
    image.save(packed, format="PNG", optimize=True)
    write_whole(directory / f"{name}.png", packed.getvalue())


def png(figure, dpi=LOOK["savefig.dpi"]):
    drawn = io.BytesIO()
    figure.savefig(drawn, format="png", dpi=dpi)
    return drawn


def webp(figure):
    """As bytes, for the results page: lossless, half as large as a PNG."""
    from PIL import Image

    small = io.BytesIO()
    Image.open(png(figure, 150)).convert("RGB").save(small, format="WEBP", lossless=True, quality=60, method=4)
    return small.getvalue()


def svg(figure):
    out = io.StringIO()
    figure.savefig(out, format="svg", metadata={"Date": None, "Creator": None})
    text = out.getvalue()
    text = text[text.index("<svg"):]
    # What a screen reader says.
    title = escape(figure._suptitle.get_text().strip()) if figure._suptitle else ""
    text = re.sub(r"<svg[^>]*>", lambda m: m[0][:-1] + f' role="img" aria-label="{title}">\n <title>{title}</title>', text, count=1)
    # Names made from numbers that differ in their last digits from run to run become counts.
    names = {}
    text = re.sub(r"\b[pmh][0-9a-f]{10}\b", lambda m: names.setdefault(m[0], f"{m[0][0]}{len(names)}"), text)
    return re.sub(r"[ \t]+$", "", re.sub(r"(\d\.\d\d)\d+", r"\1", text), flags=re.MULTILINE)
