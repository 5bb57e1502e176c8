"""Figures that no paper has: roofline, ladder, speed-up over cuSPARSE."""

import math
from statistics import geometric_mean, median

import style
from published import published
from records import (
    TIME_CLASSES,
    bandwidth,
    baseline_share,
    code_note,
    format_bytes,
    gflops,
    is_tie,
    milliseconds,
    number,
    short,
    time_class,
)
from sets import expanded
from tables import DASH, Table

STEPS = {
    1: "01 sequential",
    2: "02 CSR scalar",
    3: "03 CSR vector",
    4: "04 atomic COO",
    5: "05 segmented scan",
    6: "06 PCSR",
    7: "07 LightSpMV",
    8: "08 ELL, HYB, DIA, SELL",
    9: "09 CDS",
    0: "cuSPARSE",
}
COLOURS = {
    2: style.GREY,
    3: style.SKY,
    4: style.YELLOW,
    5: style.PURPLE,
    6: style.BLUE,
    7: style.GREEN,
    8: style.ORANGE,
    9: style.VERMILLION,
    0: style.BLACK,
}
# A kind of matrix, and names to look for; the one with most steps measured is shown.
KINDS = {
    "2-D grid": ["stencil2d:2000x2000", "stencil2d:1000x1000"],
    "3-D grid, 27 points": ["stencil3d:100x100x100,points=27", "stencil3d:128x128x128,points=27"],
    "finite elements": ["fem:100000,block=3"],
    "circuit": ["G3_circuit"],
    "few long rows": ["powerlaw:1000000x1000000,nnz=12000000"],
    "web graph": ["cnr-2000"],
}


def compared(record):
    """The steps' kernels and cuSPARSE's."""
    return record["step"] > 0 or record["kernel"].startswith("cusparse_")


def by_step(data, matrix, precision, state="warm"):
    """{step: fastest record}; 0 is cuSPARSE."""
    best = {}
    for record in sorted(
        filter(compared, data.of(matrix, precision)), key=lambda r: milliseconds(r, state)
    ):
        best.setdefault(record["step"], record)
    return dict(sorted(best.items(), key=lambda item: item[0] or 99))


def too_few(data, gaps, precision):
    """Whether so few steps were measured that nothing can be said of the best of all; notes it."""
    steps = {step for name in data.matrices for step in by_step(data, name, precision)} - {0, 1}
    if missing := [name for step, name in STEPS.items() if step > 1 and step not in steps]:
        gaps.remark(f"No records of {', '.join(missing)} on {data.device}: `{style.COMMAND}`.")
    return len(steps) < 5


LARGE = 50e6  # bytes in CSR: what latency and launches cost counts little there
HUES = {"f32": style.ORANGE, "f64": style.BLUE}


def csr_bytes(record):
    """Of the matrix in CSR, x and y."""
    size = int(record["precision"][1:]) // 8
    return (
        record["nnz"] * (size + 4) + 4 * record["rows"] + size * (record["rows"] + record["cols"])
    )


def large_points(data, copy):
    """With a cold L2: {step: {(precision, source): {matrix: (operations per byte, GFLOP/s)}}}, and {step: {(matrix, precision): part
    of the bandwidth of a copy}}."""
    points, shares = {}, {}
    for precision in HUES:
        for name in data.matrices:
            for step, record in by_step(data, name, precision, "cold").items():
                if csr_bytes(record) > LARGE:
                    at = 2 * record["nnz"] / format_bytes(record), gflops(record, "cold")
                    of = points.setdefault(step, {}).setdefault((precision, record["source"]), {})
                    of[name] = at
                    share = bandwidth(record, state="cold") / copy
                    shares.setdefault(step, {})[name, precision] = share
    return points, shares


def under_the_roof(axes, points, shares, edge, copy):
    """A step's marks, the line of a copy, and a line per precision for the median share of it."""
    for (precision, source), at in points.items():
        axes.plot(
            [x for x, _ in at.values()],
            [y for _, y in at.values()],
            "o",
            color=HUES[precision],
            fillstyle=style.FILLS[source],
            label=f"_{precision}",
            **{**style.MARK, "markeredgewidth": 0.7},
        )
    roof = f"a copy: {copy:.0f} GB/s"
    axes.plot(edge, [copy * x for x in edge], color=style.BLACK, linewidth=1, label=roof)
    said = []
    for precision, colour in HUES.items():
        of = [share for (_, p), share in shares.items() if p == precision]
        axes.plot([], [], "o", color=colour, label=precision)
        if of:
            axes.plot(
                edge,
                [median(of) * copy * x for x in edge],
                color=colour,
                linewidth=1,
                linestyle="--",
                label=f"median, {precision}",
            )
            said.append(f"{precision}: median {100 * median(of):.0f}% of a copy ({len(of)})")
    style.source_legend(axes, [source for _, source in points])
    axes.text(0.03, 0.97, "\n".join(said), transform=axes.transAxes, va="top", fontsize=8)
    axes.set(xscale="log", yscale="log")
    axes.grid(True, which="major", axis="both")
    axes.set_xticks([tick for tick in (0.05, 0.1, 0.2, 0.5, 1) if edge[0] <= tick <= edge[1]])
    axes.set_xticks([], minor=True)
    axes.xaxis.set_major_formatter("{x:g}")
    axes.yaxis.set_major_formatter("{x:g}")


def of_files(data, names):
    """How many of the matrices are real files."""
    files = sum(data.source(name) == "file" for name in names)
    return f"{files} of them {'a real file' if files == 1 else 'real files'}"


def roofline(data, gaps):
    """GFLOP/s of the best kernel of each step over operations per byte, under the bandwidth of a copy, with a cold L2."""
    copy = max((r["copy_gb_per_s"] for r in data.times.values() if "copy_gb_per_s" in r), default=0)
    points, shares = large_points(data, copy)
    if not points:
        return None
    # Medians of different matrices cannot be compared: those that all steps take that multiply any matrix.
    common = set.intersection(*(set(of) for step, of in shares.items() if step not in (8, 9)))
    for of in points.values():
        for (p, source), found in of.items():
            of[p, source] = {name: at for name, at in found.items() if (name, p) in common}
    shares = {
        step: {key: share for key, share in of.items() if key in common}
        for step, of in shares.items()
    }
    names = {name for name, _ in common}
    gaps.without_names.update(names)
    gaps.found += [r for name, p in common for r in by_step(data, name, p, "cold").values()]
    if not names:
        return None
    steps = sorted(points, key=lambda step: step or 99)
    columns = 3
    lines = math.ceil(len(steps) / columns)
    figure = style.new_figure(
        10,
        1.2 + 2.4 * lines,
        f"Roofline: the best kernel of each step on {len(names)} large matrices, {of_files(data, names)}, {data.device}, cold L2",
    )
    every = [x for of in points.values() for found in of.values() for x, _ in found.values()]
    edge = [min(every) * 0.8, max(every) * 1.25]
    panels = list(figure.subplots(lines, columns, sharex=True, sharey=True, squeeze=False).flat)
    for axes, step in zip(panels, steps):
        under_the_roof(axes, points[step], shares[step], edge, copy)
        axes.set_title(STEPS[step])
    for axes in panels[len(steps) :]:
        axes.axis("off")
    for axes in panels[: len(steps) : columns]:
        axes.set_ylabel("GFLOP/s")
    for axes in panels[max(len(steps) - columns, 0) : len(steps)]:
        axes.set_xlabel("FLOP per compulsory byte")
    style.legend_below_title(figure, *panels[0].get_legend_handles_labels())
    gaps.remark(
        f"Large: over {LARGE / 1e6:.0f} MB in CSR, with x and y. Compulsory bytes: the matrix in the kernel's format and x read once, y written once; what a kernel adds, as PCSR its array "
        "of products, is not counted. The L2 is flushed before each product. Drawn are the matrices that steps 02 to 07 and cuSPARSE all have, and of these what the step takes (in brackets: how many)."
    )
    return figure


def ladder(data, gaps):
    """GFLOP/s and share of the row-free baseline, step by step, on each kind of matrix."""
    if too_few(data, gaps, "f64"):
        return None
    found = {
        kind: max(names, key=lambda name: len(by_step(data, name, "f64")))
        for kind, names in KINDS.items()
    }
    if not (found := {kind: name for kind, name in found.items() if by_step(data, name, "f64")}):
        return None
    columns = min(3, len(found))
    lines = math.ceil(len(found) / columns)
    steps = {record["kernel"]: record["step"] for record in data.times.values()}
    missing = []
    figure = style.new_figure(
        4 * columns,
        2.9 * lines + 0.6,
        f"The ladder: the best kernel of each step, {data.device}, f64, warm",
    )
    every = list(figure.subplots(lines, columns, squeeze=False).flat)
    for axes, (kind, name) in zip(every, found.items()):
        best = by_step(data, name, "f64")
        gaps.found += best.values()
        refused = {
            steps.get(kernel)
            for matrix, precision, kernel in data.refused
            if (matrix, precision) == (name, "f64")
        }
        missing += [
            f"{text} on {short(name)}"
            for step, text in STEPS.items()
            if step != 1 and step not in {*best, *refused}
        ]
        baseline = next(
            (gflops(r) / baseline_share(r) for r in best.values() if r["format"] == "CSR"), None
        )
        for x, (step, record) in enumerate(best.items()):
            low, high = gflops(record, "warm", "upper"), gflops(record, "warm", "lower")
            axes.bar(
                x,
                gflops(record),
                0.75,
                color=COLOURS[step],
                yerr=[[max(gflops(record) - low, 0)], [max(high - gflops(record), 0)]],
                error_kw={"elinewidth": 0.7},
            )
            if baseline:
                axes.annotate(
                    f"{100 * gflops(record) / baseline:.0f}%",
                    (x, max(gflops(record), high)),
                    (0, 1.5),
                    textcoords="offset points",
                    ha="center",
                    va="bottom",
                    fontsize=8,
                    zorder=5,
                    bbox={"facecolor": "white", "edgecolor": "none", "pad": 0.2, "alpha": 0.8},
                )
        if baseline:
            axes.axhline(
                baseline,
                color=style.BLACK,
                linewidth=0.8,
                linestyle="--",
                label="row-free baseline",
            )
        axes.set_xticks(
            range(len(best)),
            [
                f"{step:02} {r['kernel']}"
                if step
                else r["kernel"].replace("cusparse_", "cuSPARSE: ")
                for step, r in best.items()
            ],
            rotation=30,
            ha="right",
            rotation_mode="anchor",
            fontsize=7,
        )
        source = {"file": "real file", "generated": "generated"}.get(data.source(name), "stand-in")
        axes.set_title(f"{kind}: {short(name)} ({source})")
        axes.set_ylabel("GFLOP/s")
        axes.margins(y=0.12)
    for axes in every[len(found) :]:
        axes.axis("off")
    style.legend_below_title(figure, *every[0].get_legend_handles_labels())
    gaps.remark(
        "From step 02 on, number and kernel; lines on the bars: spread, between processes or, where one measured, its quartiles. Percent: of the row-free baseline "
        "(the dashed line), which streams values and column indices and gathers x without row logic; another format may be faster than that. Warm: inputs in the L2 as far as they fit. A step without a bar refuses the matrix"
        + f", or is not measured yet: {'; '.join(missing)}" * bool(missing)
        + "."
    )
    return figure


def grid_across(axes):
    axes.grid(True, axis="x")
    axes.grid(False, axis="y")


# --- Beside cuSPARSE ------------------------------------------------------------------------------


FIXED = "pcsr_one_pass"
PAPERS_OWN = "the papers' grids and chains"
# With the colour of a group's marks.
GROUPS = {
    "large, by definition": style.PURPLE,
    "real files": style.BLUE,
    "stand-ins": style.ORANGE,
    PAPERS_OWN: style.GREEN,
    "other generated": style.GREY,
}


def group_of(data, name):
    """Which of GROUPS a measured matrix belongs to."""
    source = data.source(name)
    if name in expanded("@large"):
        return "large, by definition"
    if source != "generated":
        return "real files" if source == "file" else "stand-ins"
    chains = published("bylina_2011_table2").matrices() + published("bylina_2011_table3").matrices()
    return PAPERS_OWN if name in chains or ",dof=" in name else "other generated"


def over_cusparse(data, precision, fixed):
    """{class of time of our product: {matrix: (ratio, our record, cuSPARSE's)}}: pcsr_one_pass against cuSPARSE's kernels for CSR
    and COO, or our best against the best of all that were measured of cuSPARSE."""
    found = {}
    for name in data.matrices:
        best, rivals = (
            by_step(data, name, precision),
            [r for r in data.of(name, precision) if r["kernel"].startswith("cusparse_")],
        )
        # A sweep that measured one kernel of cuSPARSE knows no best of them, and one without formats no choice.
        if len(rivals) < 4 or not (fixed or best.keys() & {8, 9}):
            continue
        rival = min(
            (r for r in rivals if not fixed or r["format"] in ("CSR", "COO")), key=milliseconds
        )
        own = (
            data.fastest(name, precision, [FIXED])
            if fixed
            else min((r for s, r in best.items() if s), key=milliseconds, default=None)
        )
        if own:
            found.setdefault(time_class(milliseconds(own)), {})[name] = (
                milliseconds(rival) / milliseconds(own),
                own,
                rival,
            )
    return {name: found.get(name, {}) for name in TIME_CLASSES} if found else {}


def choices_of(data, gaps):
    """What is compared with cuSPARSE: pcsr_one_pass (True) and, unless too few steps were measured, the best of all (False)."""
    return [True] if too_few(data, gaps, "f64") else [True, False]


def speedup(data, gaps):
    """One kernel, then the best of all, over the best of cuSPARSE: a dot per matrix, by how long our product takes."""
    choices = choices_of(data, gaps)
    every = {(p, fixed): over_cusparse(data, p, fixed) for p in ("f32", "f64") for fixed in choices}
    if not any(every.values()):
        return None
    gaps.without_names.update(
        name for of in every.values() for group in of.values() for name in group
    )
    gaps.found += [
        record
        for of in every.values()
        for group in of.values()
        for _, *both in group.values()
        for record in both
    ]
    versions = sorted(
        {
            best["cusparse"]
            for of in every.values()
            for group in of.values()
            for *_, best in group.values()
        }
    )
    figure = style.new_figure(
        3.2 + 3.9 * len(choices), 5.6, f"Against cuSPARSE on the same matrix, {data.device}, warm"
    )
    panels = figure.subplots(2, len(choices), sharex=True, squeeze=False)
    for line, precision in enumerate(("f32", "f64")):
        for column, fixed in enumerate(choices):
            axes, classes = panels[line][column], every[precision, fixed]
            for y, of in enumerate(classes.values()):
                if not of:
                    axes.text(
                        0.5,
                        y,
                        "not measured yet",
                        transform=axes.get_yaxis_transform(),
                        ha="center",
                    )
                    continue
                ranked = sorted(of, key=lambda name: of[name][0])
                ratios = [of[name][0] for name in ranked]
                levels = style.apart(ratios, 1.035, 7)
                for group, colour in GROUPS.items():
                    here = [k for k, name in enumerate(ranked) if group_of(data, name) == group]
                    kind = {"real files": "file", "stand-ins": "stand-in"}.get(group, "generated")
                    axes.plot(
                        [ratios[k] for k in here],
                        [y + 0.1 * levels[k] for k in here],
                        "o",
                        markersize=4,
                        alpha=0.7,
                        label=group,
                        color=colour,
                        fillstyle=style.FILLS[kind],
                        markerfacecoloralt="white",
                    )
                mean = geometric_mean(ratios)
                axes.plot([mean, mean], [y - 0.4, y + 0.4], color=style.BLACK, linewidth=2)
                axes.text(
                    0.99,
                    y,
                    f"{mean:.2f}",
                    transform=axes.get_yaxis_transform(),
                    ha="right",
                    va="center",
                    fontsize=9,
                    fontweight="bold",
                )
                ties = sum(is_tie(own, best) for _, own, best in of.values())
                ahead = sum(ratio > 1 and not is_tie(own, best) for ratio, own, best in of.values())
                axes.text(
                    0.02,
                    y,
                    f"of {len(of)}: {ahead} ahead,\n{ties} tie{'s' * (ties != 1)}; worst {ratios[0]:.2f}",
                    transform=axes.get_yaxis_transform(),
                    va="center",
                    fontsize=7.5,
                )
            axes.set_yticks(
                range(len(classes)), classes if column == 0 else [""] * len(classes), fontsize=9
            )
            axes.set_ylim(len(classes) - 0.4, -0.6)
            axes.axvline(1, color=style.BLACK, linewidth=0.8)
            axes.set(
                xscale="log",
                xlim=(0.3, 3.3),
                title=f"{precision}: "
                + (
                    f"{FIXED} against cuSPARSE's CSR and COO"
                    if fixed
                    else "our best format against its best"
                ),
            )
            axes.set_xticks([0.5, 1, 2])
            axes.set_xticks([], minor=True)
            axes.xaxis.set_major_formatter("{x:g}")
            grid_across(axes)
            if line == 1:
                axes.set_xlabel("time of cuSPARSE's best / time of ours")
    labelled = {}
    for axes in panels.flat:
        handles, labels = axes.get_legend_handles_labels()
        labelled |= {
            label: handle for handle, label in zip(handles, labels) if len(handle.get_xdata())
        }
    style.legend_below_title(figure, list(labelled.values()), list(labelled))
    gaps.remark(
        "By how long our product takes. A dot per matrix; line and number: their geometric mean; a tie: the spreads overlap. Times of products alone, without setup and preprocess. Left: the "
        "fastest of cuSPARSE's CSR and COO algorithms, with and without preprocess. Right: with its sliced ELL and block CSR where those were "
        "measured, on the matrices on which other formats of ours were. Its versions: "
        + " and ".join(versions)
        + ". Every matrix: table of TABLES.md."
    )
    return figure


def speedup_table(data):
    every = [
        over_cusparse(data, precision, fixed)
        for fixed in choices_of(data, style.Gaps(data))
        for precision in ("f32", "f64")
    ]
    rows, order = [], {group: k for k, group in enumerate(GROUPS)}
    for time in TIME_CLASSES:
        found = [of.get(time, {}) for of in every]
        names = sorted(
            {name for of in found for name in of}, key=lambda m: (order[group_of(data, m)], m)
        )
        for name in names:
            cells = [
                DASH
                if name not in of
                else number(of[name][0])
                + (f" ({of[name][1]['kernel']})" if k > 1 else "")
                + " †" * bool(code_note(of[name][1:]))
                for k, of in enumerate(found)
            ]
            rows.append([data.label(name), time, group_of(data, name), *cells])
        means = [
            number(geometric_mean(ratio for ratio, *_ in of.values())) if of else "not measured yet"
            for of in found
        ]
        rows.append(["geometric mean", time, "all", *means])
    columns = [
        "matrix",
        "time",
        "group",
        f"{FIXED} over CSR and COO: f32",
        "f64",
        "our best over its best: f32",
        "f64",
    ][: 3 + len(every)]
    shown = [
        record
        for of in every
        for group in of.values()
        for _, *both in group.values()
        for record in both
    ]
    notes = [
        "Warm. Time: of our product; a matrix may be in one class in f32, and in another in f64.",
        *(f"† {note}" for note in code_note(shown)),
    ]
    return Table("Times as fast as cuSPARSE", columns, rows, notes, words=3)


# --- All matrices at once --------------------------------------------------------------------------

# Kernels, their step, whose colour they have in the ladder, and dashes and width of a curve.
PROFILED = {
    "csr_scalar": (["csr_scalar"], 2, "-", 1.4),
    "csr_vector": (["csr_vector"], 3, "-", 1.4),
    "PCSR (pcsr_texture)": (["pcsr_texture"], 6, ":", 1.6),
    "csr_adaptive": (["csr_adaptive"], 6, "--", 1.4),
    "pcsr_one_pass": (["pcsr_one_pass"], 6, "-", 2.6),
    "LightSpMV (lightspmv_warp)": (["lightspmv_warp"], 7, "-", 1.4),
    "hyb": (["hyb"], 8, "--", 1.4),
    "sell": (["sell"], 8, "-", 1.4),
    "cuSPARSE's best CSR": (["cusparse_csr_*", "cusparse_spmvop_*"], 0, "-", 2),
}


def profile(data, gaps):
    """The share of matrices on which a kernel takes at most so many times as long as the fastest kernel there."""
    every = {source: {} for source in style.FILLS}
    for name in data.matrices:
        times = {
            label: record and milliseconds(record)
            for label, (patterns, *_) in PROFILED.items()
            for record in [data.fastest(name, "f64", patterns)]
        }
        if all(
            times[label] or data.is_refused(name, "f64", patterns)
            for label, (patterns, *_) in PROFILED.items()
        ):
            every[data.source(name)][name] = times
    every = {source: of for source, of in every.items() if of}
    gaps.without_names.update(name for of in every.values() for name in of)
    gaps.found += [
        record
        for of in every.values()
        for name in of
        for patterns, *_ in PROFILED.values()
        for record in [data.fastest(name, "f64", patterns)]
        if record
    ]
    if not every:
        return None
    figure = style.new_figure(
        11,
        4,
        f"Performance profile: nine kernels on the matrices measured with all of them, {data.device}, f64, warm",
    )
    limit = 10
    for axes, (source, of) in zip(
        figure.subplots(1, len(every), sharey=True, squeeze=False)[0], every.items()
    ):
        for label, (_, step, dashes, width) in PROFILED.items():
            factors = sorted(
                times[label] / min(filter(None, times.values()))
                for times in of.values()
                if times[label]
            )
            fastest, within = factors.count(1), [factor for factor in factors if factor <= limit]
            axes.step(
                [0.9, *within[fastest:], limit],
                [100 * k / len(of) for k in (*range(fastest, len(within) + 1), len(within))],
                where="post",
                color=COLOURS[step],
                linestyle=dashes,
                linewidth=width,
                label=label,
            )
        axes.set(
            xscale="log",
            xlim=(0.9, limit),
            ylim=(0, 101),
            title=f"{style.SOURCES[source]}: {len(of)}",
            xlabel="times as long as the fastest of these",
        )
        style.logarithmic(axes.xaxis)
    figure.axes[0].set_ylabel("% of the matrices")
    style.legend_below_title(figure, *figure.axes[0].get_legend_handles_labels())
    gaps.remark(
        "Where a curve starts, at the left: how often a kernel is the fastest; where it ends below 100%, it takes longer or refuses the matrix. "
        "cuSPARSE's best CSR is chosen on each matrix. Matrices that each of these was measured on or refuses. Colours: steps, as in the ladder."
    )
    return figure


PREPARED = [
    "csr_adaptive",
    "pcsr_one_pass",
    "cusparse_csr_alg1_pre",
    "cusparse_csr_alg2_pre",
    "hyb",
    "ell",
    "sell",
    "sell_sorted",
    "dia",
    "cds",
]
BASE = "csr_vector"


def break_even(data, gaps):
    """After how many products setup and preprocess of a format have paid off against csr_vector, on real files."""
    alone = {key: r for key, r in data.times.items() if r.get("alone") and r["source"] == "file"}
    gaps.found += [r for r in alone.values() if r["kernel"] in (*PREPARED, BASE)]
    matrices = [m for m, _, k in alone if k == BASE]
    if not matrices:
        gaps.remark(
            f"Setup was not measured alone on {data.directory} yet: `make bench SET=setup` makes the records."
        )
        return None
    figure = style.new_figure(
        10,
        5.4,
        f"Break-even against {BASE} on {len(matrices)} real files: products after which a format has paid off, {data.device}, f64, warm",
    )
    axes = figure.subplots()
    for y, kernel in enumerate(PREPARED):
        pairs = [
            (alone[m, "f64", kernel], alone[m, "f64", BASE])
            for m in matrices
            if (m, "f64", kernel) in alone
        ]
        counts, ties = (
            sorted(products for pair in pairs if (products := paid_off(*pair))),
            sum(is_tie(*pair) for pair in pairs),
        )
        axes.plot(
            counts,
            [y + 0.08 * level for level in style.apart(counts, 1.12, 11)],
            "o",
            color=style.BLUE,
            alpha=0.7,
            markersize=4,
            label="_each",
        )
        middle = (
            median([*counts, *[math.inf] * (len(pairs) - len(counts))]) if pairs else math.inf
        )  # of those that never pay off, too
        if middle < math.inf:
            axes.plot([middle] * 2, [y - 0.45, y + 0.45], color=style.BLACK, linewidth=2)
        refused = sum(
            (m, "f64", kernel) in data.refused and (m, "f64", kernel) not in alone for m in matrices
        )
        missing, slower = len(matrices) - len(pairs) - refused, len(pairs) - len(counts) - ties
        axes.text(
            1.01,
            y,
            f"pays off on {len(counts)} of {len(pairs)}"
            + f", slower on {slower}" * bool(slower)
            + f", {ties} tie{'s' * (ties != 1)}" * bool(ties)
            + f", refuses {refused}" * bool(refused)
            + f", {missing} not measured" * bool(missing),
            transform=axes.get_yaxis_transform(),
            va="center",
            fontsize=7.5,
        )
    axes.plot(
        [],
        [],
        color=style.BLACK,
        linewidth=2,
        label="median where it takes the matrix; slower ones and ties count as never",
    )
    style.legend_below_title(figure, *axes.get_legend_handles_labels())
    axes.set(
        xscale="log",
        xlabel="products until setup and preprocess are repaid",
        ylim=(len(PREPARED) - 0.4, -0.6),
    )
    axes.xaxis.set_major_formatter("{x:,.0f}")
    axes.set_yticks(range(len(PREPARED)), PREPARED)
    grid_across(axes)
    gaps.remark(
        "A dot per real file on which it pays off; a tie: the spreads of the two times overlap; no line where it pays off on half or fewer; right: on how many. Grids, for which dia and cds are made, are no files. Near a tie the count is uncertain. Setup and "
        "preprocess measured with nothing beside them; csr_vector has none. Left out: cuSPARSE's sliced ELL and block CSR and the COO of steps "
        "04 and 05, which the host converts to."
    )
    return figure


def paid_off(own, base):
    """Products after which `own`, with its setup, took less time than `base` without; None: never, or one cannot say, since they are a tie."""
    gain = milliseconds(base) - milliseconds(own)
    return (
        max(math.ceil((own["setup_ms"] + own["preprocess_ms"]) / gain), 1)
        if gain > 0 and not is_tie(own, base)
        else None
    )


FIGURES = {
    "profile": profile,
    "break_even": break_even,
    "roofline": roofline,
    "ladder": ladder,
    "speedup": speedup,
}
TABLES = {"speedup": speedup_table}
