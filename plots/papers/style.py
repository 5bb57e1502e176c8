"""How all figures look: one column wide, a message as the title, colours that everybody can tell apart, marks, files."""

import io
import re
import textwrap
from statistics import fmean, quantiles

from record_format import write_whole
from records import STAND_IN, code_note, short

# Okabe and Ito's palette, which stays apart for colour-blind readers and in grey.
BLACK, ORANGE, SKY, GREEN = "#000000", "#E69F00", "#56B4E9", "#009E73"
BLUE, VERMILLION, PURPLE, GREY = "#0072B2", "#D55E00", "#CC79A7", "#999999"
CYCLE = [BLUE, ORANGE, GREEN, PURPLE, SKY, VERMILLION, GREY, BLACK]
# One thing has one colour in all figures: what a paper measured, ours, cuSPARSE, and formats.
THEIRS, OURS, CUSPARSE = VERMILLION, BLUE, BLACK
COLOURS = {"COO": SKY, "CSR": ORANGE, "ELL": GREEN, "HYB": PURPLE, "DIA": BLUE}
PRECISE = {"f32": GREY, "f64": BLUE}
BAND = "#f3f3f3"  # of every second row
COMMAND = "make bench SET=full"
NOT_YET = f"is not measured yet: `{COMMAND}`."  # what a dash in a table is
PRECISIONS = {"f32": "single precision", "f64": "double precision"}
WARM = "Warm: inputs in the L2 as far as they fit."
COLUMN = 7  # inches: the width of a printed page's text, at which no text may be below SMALLEST
SMALLEST = 8  # points
MOST_MARKS = 40  # of a panel

LOOK = {
    **dict.fromkeys(("font.size", "axes.labelsize", "legend.fontsize"), SMALLEST),
    **dict.fromkeys(("xtick.labelsize", "ytick.labelsize"), SMALLEST),
    "axes.titlesize": 8.5,
    # Numbers of minor ticks in the line of the others.
    **dict.fromkeys(("xtick.minor.pad", "ytick.minor.pad"), 4.9),
    **dict.fromkeys(("axes.spines.top", "axes.spines.right", "legend.frameon"), False),
    "axes.axisbelow": True,
    "axes.grid": True,
    "grid.color": "#dddddd",
    "grid.linewidth": 0.6,
    "figure.dpi": 100,
    "savefig.dpi": 200,
    "svg.hashsalt": "spmv",  # the same file on every run
    "pdf.fonttype": 42,  # text stays text
}


def new_figure(height, message):
    """A figure of the width of a column. Its title is its message, a sentence."""
    import matplotlib  # not above: tables of the READMEs need no Matplotlib

    matplotlib.use("Agg")
    matplotlib.rcParams.update(LOOK)
    from matplotlib.figure import Figure

    figure = Figure(figsize=(COLUMN, height), layout="constrained")
    look = {"x": 0.01, "ha": "left", "fontsize": 10, "fontweight": "bold", "linespacing": 1.3}
    figure.suptitle(wrapped(message), **look)
    return figure


def wrapped(message, width=84):
    """In lines of nearly one length, so that none has a single word; none begins with a number."""
    even = len(message) // -(-max(len(message), 1) // width) + 9
    message = re.sub(r" (?=\d)", "\xa0", message)
    lines = textwrap.wrap(message, min(even, width), break_on_hyphens=False)
    return "\n".join(lines).replace("\xa0", " ")


class Gaps:
    """What a figure would show and has no record of; ends as a note below it."""

    def __init__(self, data):
        self.data, self.asked, self.remarks, self.found, self.dagger = data, {}, [], {}, ""
        self.without_names = set()  # matrices that are shown without their names

    def find(self, series, matrix, precision, patterns, gpu=True, state="warm"):
        """The fastest record, noted as missing where there is none."""
        record = self.data.fastest(matrix, precision, patterns, gpu, state)
        refused = record is None and self.data.is_refused(matrix, precision, patterns)
        state = "refused" if refused else "missing" if record is None else "there"
        self.asked.setdefault((series, ",".join(patterns)), {})[matrix, precision] = state
        self.shows(series, [record] if record else [])
        return record

    def shows(self, label, records):
        """Notes records that a figure shows under a label."""
        self.found.setdefault(label, []).extend(records)

    def records(self):
        return sum(self.found.values(), [])

    def mark(self, figure):
        """Puts a dagger behind labels of what was measured with other code."""
        from matplotlib.text import Text

        stale = [re.escape(label) for label, of in self.found.items() if code_note(of)]
        label = re.compile(rf"(^|against |/ of |/ )({'|'.join(stale)})(?=$|[\n:;,]| [(/])")
        for text in figure.findobj(Text) if stale else []:
            marked = label.sub(r"\1\2 †", text.get_text())
            if marked != text.get_text():
                text.set_text(marked)
                self.dagger = "† "
        for axes in figure.axes if stale else []:  # labels of rows are of a list
            names = [text.get_text() for text in axes.get_yticklabels()]
            marked = [label.sub(r"\1\2 †", name) for name in names]
            if marked != names:
                axes.set_yticks(axes.get_yticks(), marked)
                self.dagger = "† "

    def share(self):
        """Of all that was asked for, how much was measured or refused; 1 if nothing was asked
        for."""
        states = [state for of in self.asked.values() for state in of.values()]
        return 1 - states.count("missing") / max(len(states), 1)

    def remark(self, text):
        if text not in self.remarks:
            self.remarks.append(text)

    def notes(self):
        lines = [*self.remarks, *(self.dagger + note for note in code_note(self.records()))]
        asked = [(m, state) for of in self.asked.values() for (m, _), state in of.items()]
        everything, shown = {m for m, _ in asked}, {m for m, state in asked if state == "there"}
        drawn = shown | self.without_names
        made = {matrix for matrix in drawn if self.data.source(matrix) == "stand-in"}
        if made & shown:
            lines.append(f"{STAND_IN[:-1]}: {len(made)} of {len(drawn)} matrices.")
        if everything and not shown:
            return [*lines, not_measured(self.data)]
        if everything - shown:
            lines.append(f"Not measured yet: {listed(sorted(everything - shown))}; `{COMMAND}`.")
        for (series, patterns), of in self.asked.items():
            refused = sorted({matrix for (matrix, _), state in of.items() if state == "refused"})
            if refused:
                lines.append(f"Refused by {series}: {listed(refused)}.")
            lacking = [m for (m, _), state in of.items() if state == "missing" and m in shown]
            if missing := listed(list(dict.fromkeys(map(short, lacking)))):
                again = f"`{COMMAND} KERNELS='{patterns}'`"
                lines.append(f"Records of {series} are missing on {missing}; {again}.")
        return lines


def not_measured(data):
    return f"Not measured yet on {data.device}: `{COMMAND}` makes the records."


def one_triangle(gaps, names, sizes):
    """Notes the matrices that have far more nonzeros here than `sizes`, the paper's."""
    here = {name: of["nnz"] for name, of in gaps.data.matrices.items()}
    if larger := [name for name in names if here.get(name, 0) > 1.5 * sizes[name]]:
        gaps.remark(f"Of {listed(larger)} the paper counts one triangle; here both are multiplied.")


def listed(names, most=6):
    names = [short(name) for name in names]
    rest = len(names) - most
    return ", ".join(names[:most]) + (f" and {rest} more" if rest > 0 else "")


# How a mark is filled says what was multiplied.
FILLS = {"file": "full", "generated": "left", "stand-in": "none"}
SOURCES = {"file": "real file", "generated": "generated", "stand-in": "stand-in"}
MARK = {"markersize": 5, "markeredgewidth": 0.9, "markerfacecoloralt": "white", "linestyle": "none"}


def decimal(axis):
    """Of a logarithmic axis: numbers at 1, 2 and 5, at more where it is short, at powers of ten
    alone where it is long."""
    from matplotlib.ticker import FixedLocator, NullLocator

    low, high = axis.get_view_interval()
    if high < 5 * low:  # to a tick at both ends
        ticks = [k * 10**e for e in range(-3, 6) for k in (1, 1.5, 2, 3, 4, 5, 6, 8)]
        ends = max(t for t in ticks if t <= low), min(t for t in ticks if t >= high)
        (axis.axes.set_xlim if axis.axis_name == "x" else axis.axes.set_ylim)(*ends)
        axis.set_major_locator(FixedLocator(ticks))
        axis.set_minor_locator(NullLocator())
    few = high < 40 * low
    axis.set_major_formatter(lambda value, _: f"{value:,g}")
    axis.set_minor_formatter(
        lambda value, _: f"{value:,g}" if few and f"{value:e}"[0] in "25" else ""
    )


def points(axes, found, sources, colour, mark="o", label="_", **look):
    """Marks at {matrix: (x, y)}, filled as {matrix: source} say."""
    for source, fill in FILLS.items():
        at = [found[name] for name in found if (sources[name] or "file") == source]
        look_of = {"color": colour, "fillstyle": fill, "label": "_" + label, **MARK, **look}
        axes.plot([x for x, _ in at], [y for _, y in at], mark, **look_of)


def source_key(sources, colour=BLACK, mark="o"):
    """Entries of a legend: what the fillings mean, of those that are there."""
    fills = {source: fill for source, fill in FILLS.items() if source in sources}
    return [(sample(mark, colour, fillstyle=f), SOURCES[source]) for source, f in fills.items()]


def sample(mark="", colour=BLACK, line="none", **look):
    """What a legend shows of marks or of a line."""
    from matplotlib.lines import Line2D

    return Line2D([], [], marker=mark, color=colour, **{**MARK, "linestyle": line, **look})


def middle_half(values):
    """The quartiles."""
    return quantiles(values, n=4, method="inclusive") if len(values) > 1 else [*values] * 3


def box(axes, y, values, height=0.44, colour=BLACK, fill="white"):
    """A row of a chart: a line from the least to the greatest, a box for the middle half, a stroke
    for the median; a dot where there is one value."""
    if len(values) == 1:
        look = {**MARK, "markerfacecolor": fill, "color": colour}
        return axes.plot(values, [y], "o", label="_median", **look)
    low, centre, high = middle_half(values)
    axes.plot([min(values), max(values)], [y, y], color=GREY, linewidth=0.9, zorder=1)
    look = {"facecolor": fill, "edgecolor": colour, "linewidth": 0.9, "zorder": 2}
    axes.barh(y, high - low, height, low, **look)
    ends = [y - height / 2, y + height / 2]
    axes.plot([centre, centre], ends, color=colour, linewidth=2.2, zorder=3, label="_median")


def hollow(colour=BLACK, fill="white"):
    """What a legend shows of boxes."""
    return sample("s", colour, markerfacecolor=fill, markersize=7)


def files_below(axes, y, of, data):
    """Marks below a box, of those of {matrix: value} that are real files."""
    files = {m: (value, y) for m, value in of.items() if data.source(m) == "file"}
    points(axes, files, dict.fromkeys(files, "file"), BLACK, label="files", markersize=3)


def files_key():
    return sample("o", BLACK, markersize=3), "real files"


def profile(axes, factors, count, limit, **look):
    """A curve: on how many percent of `count` matrices something takes at most so many times as
    long as the fastest, up to `limit` times or all. `factors`: of those that it was measured on."""
    first = sum(factor == 1 for factor in factors)  # on which it is the fastest
    within = sorted(factor for factor in factors if factor <= limit)
    share = [100 * k / count for k in (*range(first, len(within) + 1), len(within))]
    end = limit if len(within) < count else within[-1]
    axes.step([1, *within[first:], end], share, where="post", **look)


BOX = "box: middle half, stroke: median, line: all"


def rows(axes, names):
    """Rows from the top down, with a name each."""
    axes.set_yticks(range(len(names)), names)
    axes.set_ylim(len(names) - 0.45, -0.55)
    axes.grid(False, axis="y")
    axes.tick_params(axis="y", length=0)


def at_edge(axes, y, text, outside=False, **look):
    """A label at the right edge of a row, or right of it."""
    x, side = (1.012, "left") if outside else (0.995, "right")
    edge = axes.get_yaxis_transform()
    axes.text(x, y, text, transform=edge, **{"ha": side, "va": "center", **look})


def bands(axes, count):
    """Every second of so many rows is grey."""
    for y in range(1, count, 2):
        axes.axhspan(y - 0.5, y + 0.5, color=BAND, linewidth=0, zorder=0, label="_row")


def head(axes, text):
    """Above the labels right of the rows."""
    at_edge(axes, -0.5, text, True, va="bottom")


def brief(device):
    """The name of a device without what every title would repeat."""
    return device.removeprefix("NVIDIA ").split(" 80GB")[0]


def legend(figure, entries, columns=None):
    """(handle, label) each, below the title and above the panels, where no mark can be."""
    columns = columns or len(entries)
    lines = -(-len(entries) // columns)
    title = figure._suptitle
    above = title.get_text().count("\n") + 1
    title.set_text(title.get_text() + "\n" * lines)
    by_column = [entry for column in range(columns) for entry in entries[column::columns]]
    corner = 0.01, 1 - (0.07 + 0.182 * above) / figure.get_figheight()
    place = {"loc": "upper left", "bbox_to_anchor": corner, "borderaxespad": 0, "borderpad": 0}
    space = {"labelspacing": 0.25, "columnspacing": 1.3, "handletextpad": 0.4, "handlelength": 2.1}
    figure.legend(*zip(*by_column), ncol=columns, **place, **space)


def against_rivals(data, gaps, names, own, rivals, said, gpu, message):
    """A panel per precision and a row per rival: how many times as fast the kernels of `own`,
    {label: patterns}, are, on each real file, and of all matrices median, middle half and mean.
    `said`: {(rival, precision): (mean, greatest or None) of the paper}, measured on `gpu`."""
    figure, device = new_figure(1.15 + 0.62 * len(rivals), message), brief(data.device)
    for axes, precision in zip(figure.subplots(1, 2, sharex=True, sharey=True), PRECISIONS):
        for label, patterns in {**rivals, **own}.items():
            for name in names:
                gaps.find(label, name, precision, patterns)
        for y, (rival, patterns) in enumerate(rivals.items()):
            mean, greatest = said[rival, precision]
            axes.plot([mean, greatest or mean], [y - 0.27] * 2, color=THEIRS, linewidth=1)
            axes.plot(mean, y - 0.27, "D", color=THEIRS, label="_theirs", **MARK)
            at_edge(axes, y - 0.27, f"mean {mean:.2f}", True, color="#9c4400")
            if ratios := data.speedups(names, precision, *own.values(), patterns):
                box(axes, y + 0.05, list(ratios.values()), 0.26, OURS)
                files_below(axes, y + 0.29, ratios, data)
                mean, middle = fmean(ratios.values()), middle_half(list(ratios.values()))[1]
                axes.plot(mean, y + 0.05, "D", color=OURS, label="_mean", zorder=4, **MARK)
                text = f"mean {mean:.2f}\nmedian {middle:.2f}"
                at_edge(axes, y + 0.16, text, True, color=OURS, fontweight="bold")
        axes.axvline(1, color=BLACK, linewidth=0.8)
        unit = "slower  ←  times as fast as the rival  →  faster"
        axes.set(xscale="log", title=PRECISIONS[precision], xlabel=unit)
        rows(axes, list(rivals))
    to_most = ", line to the greatest" * any(greatest for _, greatest in said.values())
    for axes in figure.axes:
        decimal(axes.xaxis)
    entries = [(sample("D", THEIRS), f"{gpu}: mean{to_most}")]
    entries += [(sample("D", OURS), f"{device}: mean"), (hollow(OURS), BOX), files_key()]
    legend(figure, entries, 2)
    return figure


def marks_in(axes):
    """How many marks a panel has: points of series that have a marker, and bars."""
    lines = [line for line in axes.get_lines() if line.get_marker() not in ("None", "", None)]
    bars = [of for of in axes.containers if hasattr(of, "patches")]
    return sum(len(line.get_xdata()) for line in lines) + sum(map(len, bars))


FORMATS = ("png", "pdf", "svg")


def save(figure, directory, name, form="png"):
    """NAME.FORM, the same bytes on every run; a PNG has 256 colours."""
    drawn = io.BytesIO()
    if form == "png":
        from PIL import Image  # Matplotlib brings it

        figure.savefig(drawn, format="png")
        # Maximum coverage: no colour is lost; k-means: nor shifted.
        image = Image.open(drawn).convert("RGB").quantize(256, method=1, kmeans=1)
        image.save(drawn := io.BytesIO(), format="PNG", optimize=True)
    else:
        date = {"pdf": "CreationDate", "svg": "Date"}[form]
        figure.savefig(drawn, format=form, metadata={date: None})
    write_whole(directory / f"{name}.{form}", drawn.getvalue())
