"""Liu, Gonzalez-Dominguez and Schmidt, poster P5267: LightSpMV's table and its speed-up chart."""

import style
from published import published
from records import gflops
from tables import Table, cell, looks_table

PAPER = "LightSpMV, poster P5267"
GPU = "Tesla K40c"
LEVELS = {"warp": ["lightspmv_warp"], "vector": ["lightspmv_vector"]}
RIVALS = {
    "CSR-Scalar": ["csr_scalar"],
    "CSR-Vector": ["csr_vector"],
    "cuSPARSE": ["cusparse_csr_*", "cusparse_spmvop_*"],
}
OURS = ["lightspmv_*"]
INC = "vector, not aggregated"
MATRICES = published("lightspmv_poster_matrices").matrices()


def chart(data, gaps):
    """GFLOP/s of the warp and the vector level, the poster's and ours."""
    rows = {row["matrix"]: row for row in published("lightspmv_poster_table")}
    names = data.in_order(MATRICES)
    figure = style.new_figure(11.5, 8, f"{PAPER}: speed of the warp level and the vector level")
    colours = [style.BLUE, style.VERMILLION, style.ORANGE, style.GREEN]
    for axes, precision in zip(figure.subplots(2, 1), ("f32", "f64")):
        posters = {"warp": "warp", INC: "vector"}
        series = [
            style.series(
                gaps,
                label,
                names,
                precision,
                patterns,
                theirs=[
                    float(rows[m][f"{posters[label]}_{precision}"]) if m in rows else None
                    for m in names
                ]
                if label in posters
                else [],
            )
            for label, patterns in {
                "warp": LEVELS["warp"],
                INC: ["lightspmv_vector_inc"],
                "vector": LEVELS["vector"],
                "fastest of step 07": OURS,
            }.items()
        ]
        style.dots_of(axes, gaps, names, series, GPU, colours)
        style.panel(axes, f"{data.device}, {style.PRECISIONS[precision]}, warm", "GFLOP/s")
    gaps.remark(
        f"warp: kernel lightspmv_warp; vector: lightspmv_vector; {INC}: lightspmv_vector_inc, one atomic per vector, as the poster's GPUs executed the vector level, so that its values stand beside it; today's compiler aggregates them; fastest of step 07: of lightspmv_*. "
        + style.WARM
    )
    return figure


def speedup_chart(data, gaps):
    """Speed-ups of the warp level over CUSP's two CSR kernels and over cuSPARSE, on each matrix."""
    said = published("lightspmv_poster_text")
    for precision in ("f32", "f64"):
        for rival, patterns in {**RIVALS, "warp": LEVELS["warp"]}.items():
            for m in MATRICES:
                gaps.find(rival, m, precision, patterns)
    figure = style.new_figure(11, 4.2, f"{PAPER}: speed-ups of the warp level, {data.device}")
    count = 0
    for axes, precision in zip(figure.subplots(1, 2, sharey=True), ("f32", "f64")):
        means, greatest = (
            [said.value(rival=r, what=what, precision=precision) for r in RIVALS]
            for what in ("mean", "max")
        )
        own = {
            rival: data.speedups(MATRICES, precision, LEVELS["warp"], patterns)
            for rival, patterns in RIVALS.items()
        }
        count = max(count, *map(len, own.values()))
        style.ratios(axes, gaps, own, f"{GPU}, 14 matrices", means, greatest)
        axes.set(
            title=f"{style.PRECISIONS[precision]}, warm",
            ylabel="time of the other / time of the warp level",
        )
    style.legend_below_title(figure, *axes.get_legend_handles_labels())
    gaps.remark(
        f"The poster: 14 matrices, from its text; its charts are lost. Ours: {count} of them, warm. "
        "CSR-Scalar and CSR-Vector: CUSP's, for which csr_scalar and csr_vector stand; cuSPARSE: its fastest CSR kernel."
    )
    return figure


def table(data):
    rows = []
    for row in published("lightspmv_poster_table"):
        cells = [data.label(row["matrix"])]
        for precision in ("f32", "f64"):
            rates = {
                level: data.fastest(row["matrix"], precision, patterns)
                for level, patterns in LEVELS.items()
            }
            rates = {level: record and gflops(record) for level, record in rates.items()}
            both = rates["warp"] and rates["vector"] and rates["warp"] / rates["vector"]
            cells += [
                row[f"warp_{precision}"],
                row[f"vector_{precision}"],
                row[f"speedup_{precision}"],
                cell(rates["warp"]),
                cell(rates["vector"]),
                cell(both or None),
            ]
        rows.append(cells)
    columns = ["matrix"] + [
        f"{p}: {text}" if not k else text
        for p in ("f32", "f64")
        for k, text in enumerate(
            ("K40c, warp", "vector", "speed-up", f"{data.device}, warp", "vector", "speed-up")
        )
    ]
    return Table(
        f"{PAPER}: GFLOP/s of the two levels",
        columns,
        rows,
        ["Warm."],
        dash=f"is not measured yet: `{style.COMMAND}`.",
    )


def other_deviations(data):
    """Stand-ins that miss the poster's deviation by more than a tenth."""
    for row in published("lightspmv_poster_matrices"):
        info = data.shapes.get(row["matrix"])
        if info and info["matrix"]["source"] == "stand-in":
            there, here = float(row["sd"]), info["stddev_row"]
            if abs(here - there) > max(0.1 * there, 0.5):
                yield f"{row['matrix']} ({here:.1f} for {there:g})"


def matrices_table(data):
    return looks_table(
        f"{PAPER}: the matrices, and what stands for them here",
        data,
        published("lightspmv_poster_matrices"),
        ["rows", "nonzeros", "mean", "sd"],
        lambda row: [row["rows"], row["nonzeros"], row["mean"], row["sd"]],
        {
            "nonzeros": lambda info: str(info["matrix"]["nnz"]),
            "mean": lambda info: f"{info['mean_row']:.2f}",
            "sd": lambda info: f"{info['stddev_row']:.2f}",
        },
        notes=[
            "Mean and standard deviation (sd) of the row length; the poster prints whole numbers. A stand-in is made from the "
            'poster\'s sd, so that only a file can disagree with it: `make data ARGS="in-2004 webbase-1M"`.'
            + "".join(
                f" Stand-ins that miss it: {', '.join(missed)}."
                for missed in [[*other_deviations(data)]]
                if missed
            )
        ],
    )


FIGURES = {"lightspmv_levels": chart, "lightspmv_speedups": speedup_chart}
TABLES = {"lightspmv_matrices": matrices_table, "lightspmv_table": table}
