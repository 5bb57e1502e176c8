"""Liu, Gonzalez-Dominguez and Schmidt, poster P5267: LightSpMV's table and its speed-up chart."""

from statistics import mean

import style
from records import gflops, published
from tables import Table, cell

PAPER = "LightSpMV, poster P5267"
GPU = "Tesla K40c"
LEVELS = {"warp": ["lightspmv_warp"], "vector": ["lightspmv_vector"]}
RIVALS = {"CSR-Scalar": ["csr_scalar"], "CSR-Vector": ["csr_vector"], "cuSPARSE": ["cusparse_csr_*", "cusparse_spmvop_*"]}
OURS = ["lightspmv_*"]


def matrices():
    return [row["matrix"] for row in published("lightspmv_poster_matrices")]


def speedups(data, precision, rival, names=None, own=tuple(LEVELS["warp"])):
    """{matrix: LightSpMV's warp level over a rival}."""
    pairs = {m: (data.fastest(m, precision, own), data.fastest(m, precision, RIVALS[rival]))
             for m in names or matrices()}
    return {m: gflops(a) / gflops(b) for m, (a, b) in pairs.items() if a and b}


def chart(data, gaps):
    """GFLOP/s of the warp and the vector level, and the speed-up of one over the other."""
    rows = published("lightspmv_poster_table")
    names = matrices()
    measured = [m for m in names if data.fastest(m, "f32", LEVELS["warp"])
                or data.fastest(m, "f64", LEVELS["warp"])]
    figure = style.new_figure(11.5, 8.6 if measured else 3.6, f"{PAPER}: warp level and vector level")
    axes = figure.subplots(3 if measured else 1, 1, squeeze=False)[:, 0]
    colours = [style.BLUE, style.SKY, style.VERMILLION, style.ORANGE]
    style.bars(axes[0], names, [(f"{level}, {p}", [float(row[f"{level}_{p}"]) for row in rows])
                                for p in ("f32", "f64") for level in LEVELS], colours)
    axes[0].set_title(GPU)
    for row, precision in enumerate(("f32", "f64"), 1):
        series = []
        for label, patterns in {**LEVELS, "our best of step 07": OURS}.items():
            records = [gaps.find(label, m, precision, patterns) for m in names]
            records = [r for m, r in zip(names, records) if m in measured]
            series.append((label, *([r and gflops(r, "warm", q) for r in records]
                                    for q in ("median", "upper", "lower")),
                           [r and gflops(r, "cold") for r in records]))
        if measured:
            style.bars(axes[row], [data.label(m) for m in measured], series,
                       [style.BLUE, style.SKY, style.GREEN])
            axes[row].set_title(f"{data.device}, {'single' if precision == 'f32' else 'double'} precision")
    for each in axes:
        each.set_ylabel("GFLOP/s")
        each.set_title(each.get_title(), pad=16)
        style.legend_above(each)
    if measured:
        gaps.remark("Warm: inputs in the L2 as far as they fit. Bars: medians, lines: quartiles, diamonds: cold.")
    return figure


def speedup_chart(data, gaps):
    """Speed-ups of the warp level over CUSP's two CSR kernels and over cuSPARSE: mean and maximum."""
    said = published("lightspmv_poster_text")
    for precision in ("f32", "f64"):
        for rival, patterns in {**RIVALS, "warp": LEVELS["warp"]}.items():
            for m in matrices():
                gaps.find(rival, m, precision, patterns)
    own = {(p, r): list(speedups(data, p, r).values()) for p in ("f32", "f64") for r in RIVALS}
    figure = style.new_figure(11, 3.9, f"{PAPER}: speed-ups of the warp level")
    for axes, what, of in zip(figure.subplots(1, 2), ("mean", "max"), (mean, max)):
        series = []
        for precision in ("f32", "f64"):
            theirs = [said.value(rival=r, what=what, precision=precision) for r in RIVALS]
            series.append((f"{GPU}, {precision}", theirs))
            series.append((f"{data.device}, {precision}",
                           [of(own[precision, r]) if own[precision, r] else None for r in RIVALS]))
        style.bars(axes, list(RIVALS), series, [style.SKY, style.ORANGE, style.BLUE, style.VERMILLION], least=3)
        axes.axhline(1, color=style.BLACK, linewidth=0.7)
        axes.set_title({"mean": "On average", "max": "At most"}[what], pad=28)
        axes.set_ylabel("times as fast")
        style.legend_above(axes, 2)
    count = max(map(len, own.values()))
    gaps.remark(f"The poster: 14 matrices, from its text; its charts are lost. Ours: {count} of them, warm. "
                "CSR-Scalar: csr_scalar, CSR-Vector: csr_vector, cuSPARSE: its fastest CSR kernel.")
    return figure


def table(data):
    rows = []
    for row in published("lightspmv_poster_table"):
        cells = [data.label(row["matrix"])]
        for precision in ("f32", "f64"):
            rates = {level: data.fastest(row["matrix"], precision, patterns) for level, patterns in LEVELS.items()}
            rates = {level: record and gflops(record) for level, record in rates.items()}
            both = rates["warp"] and rates["vector"] and rates["warp"] / rates["vector"]
            cells += [row[f"warp_{precision}"], row[f"vector_{precision}"], row[f"speedup_{precision}"],
                      cell(rates["warp"]), cell(rates["vector"]), cell(both or None)]
        rows.append(cells)
    columns = ["matrix"] + [f"{p}: {text}" if not k else text for p in ("f32", "f64")
                            for k, text in enumerate(("K40c, warp", "vector", "speed-up",
                                                      f"{data.device}, warp", "vector", "speed-up"))]
    return Table(f"{PAPER}: GFLOP/s of the two levels", columns, rows,
                 [f"Warm. A dash is not measured yet: `{style.COMMAND}`."])


def matrices_table(data):
    rows = []
    for row in published("lightspmv_poster_matrices"):
        info = data.shapes.get(row["matrix"])
        rows.append([row["matrix"], row["rows"], row["nonzeros"], row["mean"], row["sd"],
                     *([str(info["matrix"]["nnz"]), f"{info['mean_row']:.2f}", f"{info['stddev_row']:.2f}",
                        info["matrix"]["source"]] if info else ["—"] * 4)])
    return Table(f"{PAPER}: the matrices, and what stands for them here",
                 ["matrix", "rows", "nonzeros", "mean", "sd", "ours: nonzeros", "mean", "sd", "source"], rows,
                 ["Mean and standard deviation (sd) of the row length; the poster prints whole numbers. A stand-in is made from the "
                  "poster's sd, so that only a file can disagree with it: `make data ARGS=\"in-2004 webbase-1M\"`.",
                  "A dash: `make bench SET=shapes` looks at those that it can load."])


FIGURES = {"lightspmv_levels": chart, "lightspmv_speedups": speedup_chart}
TABLES = {"lightspmv_matrices": matrices_table, "lightspmv_table": table}
