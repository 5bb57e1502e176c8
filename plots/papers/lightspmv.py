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
INC = "vector, not aggregated"
MATRICES = published("lightspmv_poster_matrices").matrices()


def chart(data, gaps):
    """How many times as fast the warp level is as the vector level, the poster's and ours."""
    rows = {row["matrix"]: row for row in published("lightspmv_poster_table")}
    names = data.in_order(rows)
    found = {}
    for precision in style.PRECISIONS:
        for label, patterns in {**LEVELS, INC: ["lightspmv_vector_inc"]}.items():
            found[precision, label] = data.speedups(names, precision, LEVELS["warp"], patterns)
            for name in names:
                gaps.find(label, name, precision, patterns)
    theirs = {
        p: {m: (float(rows[m][f"speedup_{p}"]), y - 0.15) for y, m in enumerate(names)}
        for p in style.PRECISIONS
    }
    today = [ratio for p in style.PRECISIONS for ratio in found[p, "vector"].values()]
    most = max(ratio for of in theirs.values() for ratio, _ in of.values())
    message = f"One atomic per warp, not per vector, gained up to {most:.2f} times on a {GPU}"
    if today:
        message += f"; today nvcc merges the atomics, and the gain is gone ({min(today):.2f} to {max(today):.2f} times)"
    figure = style.new_figure(4.2, message)
    sources = {name: data.source(name) for name in names}
    for axes, precision in zip(figure.subplots(1, 2, sharex=True, sharey=True), style.PRECISIONS):
        axes.axvline(1, color=style.BLACK, linewidth=0.8)
        if of := found[precision, INC]:
            low, _, high = style.middle_half(list(of.values()))
            axes.axvspan(low, high, color=style.GREY, alpha=0.25, linewidth=0)
        of = found[precision, "vector"]
        own = {m: (of[m], y + 0.15) for y, m in enumerate(names) if m in of}
        style.points(axes, own, sources, style.OURS, label="vector", markersize=6)
        files = dict.fromkeys(names, "file")
        style.points(axes, theirs[precision], files, style.THEIRS, "D", GPU)
        axes.set(title=style.PRECISIONS[precision], xlabel="times as fast as the vector level")
        axes.set_xlim(left=0.8)
        style.rows(axes, [data.label(name) for name in names])
        axes.grid(True, axis="y")
    from matplotlib.patches import Patch

    device = style.brief(data.device)
    entries = [(style.sample("D", style.THEIRS), f"{GPU}, the poster's table")]
    entries += [(style.sample("o", style.OURS), f"{device}, today's build")]
    entries += [(Patch(color=style.GREY, alpha=0.25), "merging prevented: middle half")]
    style.legend(figure, entries + style.source_key(sources.values(), style.OURS)[-1:])
    gaps.remark(
        f"Warp level: kernel lightspmv_warp; vector level: lightspmv_vector. Merging prevented: lightspmv_vector_inc, one atomic per vector, as the poster's GPUs executed the vector level; today's compiler merges those of a warp. GFLOP/s: TABLES.md. {style.WARM}"
    )
    return figure


def speedup_chart(data, gaps):
    """Speed-ups of the warp level over CUSP's two CSR kernels and over cuSPARSE."""
    text = published("lightspmv_poster_text")
    said = {
        (rival, p): [text.value(rival=rival, what=what, precision=p) for what in ("mean", "max")]
        for rival in RIVALS
        for p in style.PRECISIONS
    }
    own = {"warp": LEVELS["warp"]}
    behind = [
        rival
        for rival, of in RIVALS.items()
        if all(data.is_behind(MATRICES, p, own["warp"], of) for p in style.PRECISIONS)
    ]
    message = f"LightSpMV's warp level beat CUSP and cuSPARSE on a {GPU}; on an {style.brief(data.device)} "
    message += f"it is behind {' and '.join(behind) or 'none of them'} on most matrices"
    figure = style.against_rivals(data, gaps, MATRICES, own, RIVALS, said, GPU, message)
    gaps.remark(
        "Means: arithmetic. The poster: mean on 14 matrices, and a line up to the greatest, from its text; its charts are lost. Ours: warm. "
        "CSR-Scalar and CSR-Vector: CUSP's, for which csr_scalar and csr_vector stand; cuSPARSE: its fastest CSR kernel."
    )
    return figure


def table(data):
    rows = []
    for row in published("lightspmv_poster_table"):
        cells = [data.label(row["matrix"])]
        for precision in ("f32", "f64"):
            records = [data.fastest(row["matrix"], precision, of) for of in LEVELS.values()]
            warp, vector = (record and gflops(record) for record in records)
            cells += [row[f"{what}_{precision}"] for what in ("warp", "vector", "speedup")]
            cells += [cell(warp), cell(vector), cell(warp / vector if warp and vector else None)]
        rows.append(cells)
    columns = ["matrix"]
    for p in ("f32", "f64"):
        columns += [f"{p}: K40c, warp", "vector", "speed-up"]
        columns += [f"{data.device}, warp", "vector", "speed-up"]
    title = f"{PAPER}: GFLOP/s of the two levels"
    return Table(title, columns, rows, ["Warm."], dash=style.NOT_YET)


def other_deviations(data):
    """Stand-ins that miss the poster's deviation by more than a tenth."""
    for row in published("lightspmv_poster_matrices"):
        info = data.shapes.get(row["matrix"])
        if info and info["matrix"]["source"] == "stand-in":
            there, here = float(row["sd"]), info["stddev_row"]
            if abs(here - there) > max(0.1 * there, 0.5):
                yield f"{row['matrix']} ({here:.1f} for {there:g})"


def matrices_table(data):
    missed = ", ".join(other_deviations(data))
    note = "Mean and standard deviation (sd) of the row length; the poster prints whole numbers. A stand-in is made from the "
    note += 'poster\'s sd, so that only a file can disagree with it: `make data ARGS="in-2004 webbase-1M"`.'
    return looks_table(
        f"{PAPER}: the matrices, and what stands for them here",
        data,
        published("lightspmv_poster_matrices"),
        ["rows", "nonzeros", "mean", "sd"],
        "{rows}|{nonzeros}|{mean}|{sd}",
        {"nonzeros": "{matrix[nnz]}", "mean": "{mean_row:.2f}", "sd": "{stddev_row:.2f}"},
        notes=[note + f" Stand-ins that miss it: {missed}." * bool(missed)],
    )


FIGURES = {"lightspmv_levels": chart, "lightspmv_speedups": speedup_chart}
TABLES = {"lightspmv_matrices": matrices_table, "lightspmv_table": table}
