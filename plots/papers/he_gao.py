"""He and Gao 2016: PCSR on one GPU (figures 4 and 5, table 2) and on several (tables 3 to 6,
figures 7 to 10)."""

import functools
import math

import style
from published import published
from records import STAND_IN, bandwidth, data_sheet, milliseconds, on_one_gpu, starred
from tables import DASH, Table, looks_table

PAPER = "He and Gao 2016"
GPU = "Tesla C2050"
# What the paper compares, and the kernel that stands for it here. cuSPARSE has lost its HYB.
RIVALS = {
    "CSR-scalar": ["csr_scalar"],
    "CSR-vector": ["csr_vector"],
    "CSRMV": ["cusparse_csr_*", "cusparse_spmvop_*"],
    "HYBMV": ["hyb"],
    "CSR-Adaptive": ["csr_adaptive"],
}
PCSR = {"PCSR": ["pcsr_texture"]}
ALGORITHMS = {**RIVALS, **PCSR, "PCSR in one pass (ours)": ["pcsr_one_pass"]}
COLOURS = [style.GREY, style.SKY, style.GREEN, style.PURPLE, style.ORANGE, style.BLUE, style.VERMILLION]
NONZEROS = published("he_gao_2016_table2").nonzeros()  # of each matrix
REMARK = ("CSRMV: the fastest of cuSPARSE's CSR kernels; HYBMV: kernel hyb of step 08, since cuSPARSE"
          " has no HYB any more; PCSR: kernel pcsr_texture, as published.")


def figure4(data, gaps):
    """GFLOP/s of seven algorithms in both precisions, and how many times as fast PCSR is."""
    gaps.remark(REMARK)
    said = published("he_gao_2016_speedups")
    # GFLOP/s of PCSR in double precision: the one column of figure 4 that a table gives.
    theirs = {row["matrix"]: 2e-6 * int(row["nonzeros"]) / float(row["one_gpu"]) for row in published("he_gao_2016_table3")}
    names = data.in_order(NONZEROS)
    figure = style.new_figure(11, 10.5, f"{PAPER}, figure 4: performance of all algorithms")
    grid = figure.add_gridspec(3, 2, height_ratios=(0.8, 1, 1))
    axes = None
    for column, precision in enumerate(style.PRECISIONS):
        axes = figure.add_subplot(grid[0, column], sharey=axes)
        style.ratios(axes, gaps, {rival: data.speedups(names, precision, PCSR["PCSR"], patterns) for rival, patterns in RIVALS.items()}, f"{GPU}, 15 matrices",
                     [said.value("speedup", rival=rival, precision=precision) for rival in RIVALS])
        axes.set(title=f"PCSR against the others, {style.PRECISIONS[precision]}", ylabel="time of the other / time of PCSR")
    style.legend_below_title(figure, *axes.get_legend_handles_labels())
    for row, precision in enumerate(style.PRECISIONS):
        axes = figure.add_subplot(grid[1 + row, :])
        series = [style.series(gaps, label, names, precision, patterns, theirs=[
            theirs.get(m) for m in names] if (label, precision) == ("PCSR", "f64") else []) for label, patterns in ALGORITHMS.items()]
        style.dots_of(axes, gaps, names, series, f"{GPU}: PCSR (table 3)", COLOURS)
        for row in published("he_gao_2016_text").where(what="gflops_in_most_cases", precision=precision):
            axes.axhline(float(row["value"]), color=style.BLUE, linewidth=1.2, linestyle="--", label=f"{GPU}: PCSR {row['words']} {row['value']} in most cases (text)")
        style.panel(axes, f"{data.device}, {style.PRECISIONS[precision]}", "GFLOP/s", 9)
    gaps.remark(f"Figure 4 itself is lost; of the {GPU} a table has PCSR's times in double precision, and the text the mean speed-ups on 15 matrices, without their names. "
                + style.WARM)
    style.one_triangle(gaps, names, NONZEROS)
    return figure


def share_of_peak(record, state, quartile):
    """Percent of the data sheet's bandwidth as in the paper, of a copy's where the sheet is not known."""
    return 100 * bandwidth(record, state, quartile) / (data_sheet(record["device"]) or record["copy_gb_per_s"])


def figure5(data, gaps):
    """Bandwidth of six algorithms as a share of the device's, and what share the paper reached."""
    said = published("he_gao_2016_text")
    names = data.in_order(NONZEROS)
    sheet, copy = data_sheet(data.device), max((r["copy_gb_per_s"] for r in data.times.values() if "copy_gb_per_s" in r), default=None)
    figure = style.new_figure(11, 8.4, f"{PAPER}, figure 5: effective bandwidth of each algorithm's kernel")
    for axes, precision in zip(figure.subplots(2, 1), ("f32", "f64")):
        series = [style.series(gaps, label, names, precision, patterns, share_of_peak, "cold") for label, patterns in ALGORITHMS.items()]
        style.dots_of(axes, gaps, names, series, colours=COLOURS, log=False)
        axes.set_ylim(-3, 112)  # marks at 0 are whole
        share, most = (said.value(what=what, precision=precision) for what in ("share_of_peak", "max_bandwidth"))
        axes.axhline(share, color=style.BLACK, linewidth=0.8, linestyle="--")
        axes.text(2.7, share + 1.8, f"{GPU}: greatest of PCSR, {share:.0f}% of 144 GB/s, more than {most:.0f} GB/s", fontsize=7.5)
        if copy:
            axes.axhline(100 * copy / (sheet or copy), color=style.BLACK, linewidth=0.8, label=f"a copy: {copy:.0f} GB/s")
        style.panel(axes, f"{data.device}, {style.PRECISIONS[precision]}, cold L2", f"% of the data sheet's {sheet} GB/s" if sheet else "% of a copy", 10)
    gaps.remark("Cold: the L2 is flushed before each product, since of what fits in there nothing is read from memory. Bytes: "
                "the matrix in the kernel's format and x read once, y written once, PCSR's middle array written and read; "
                "repeated reads of x are not counted. Where the L2 holds that array, PCSR's share is not of memory alone. " + REMARK
                + f" Figure 5 itself is lost: the bytes by which the text's rates of the {GPU} are counted the paper does not "
                  "give, and they are not ours (step 06).")
    style.one_triangle(gaps, names, NONZEROS)
    return figure


# --- Several GPUs ---------------------------------------------------------------------------------

# figure -> table, GPUs, whether x is exchanged.
PARALLEL = {7: (3, 2, False), 8: (4, 4, False), 9: (5, 2, True), 10: (6, 4, True)}
PARTITIONS = {"I": "rows", "II": "nonzeros"}
PERCENT = ["percent", "percent_lower", "percent_upper"]


def efficiencies(data, gpus, exchange, ours=False):
    """{(matrix, "I" or "II"): record of `spmv multigpu`} of the fastest drive in double precision, with `percent`: the fastest step
    on one GPU over GPUs times time, and between which `percent_lower` and `percent_upper` the spreads of both times put it. Of the
    published kernel, with an exchange of all parts; with `ours`, of the fastest of the other kernels and ways. What an exchange is
    compared by has no norm."""
    records = [r for r in data.multigpu if "best_step_ms" in r and r["precision"] == "f64" and (r["kernel"] != "pcsr") == ours]
    found, one_gpu = {}, on_one_gpu(records)
    for r in records:
        way = r["exchange"] == "none" if not exchange else r.get("norm") == "first" and (ours or r["exchange"] == "parts")
        key = r["matrix"], next(way for way, name in PARTITIONS.items() if name == r["partition"])
        one = one_gpu.get((r["matrix"], r["kernel"]))
        if r["gpus"] == gpus and way and one and r["best_step_ms"] < found.get(key, {}).get("best_step_ms", math.inf):
            found[key] = {**r, **{name: 100 * milliseconds(one, "best_step", base) / (gpus * milliseconds(r, "best_step", several))
                                  for name, base, several in zip(PERCENT, ("median", "lower", "upper"), ("median", "upper", "lower"))}}
    return found


def parallel_figure(data, gaps):
    """Parallel efficiency of PCSR-I and PCSR-II on 2 and 4 GPUs, without and with the exchange of x."""
    names = published("he_gao_2016_table3").matrices()
    found = {number: [efficiencies(data, gpus, exchange, ours=ours) for ours in (False, True)]
             for number, (_, gpus, exchange) in PARALLEL.items()}
    # All panels have one axis, and what one of them shows of a stand-in has its star on all.
    sources = {matrix: record["source"] for own, best in found.values() for (matrix, _), record in {**best, **own}.items()}
    sources = {m: sources.get(m) or data.source(m) or "file" for m in names if sources}
    # As many GPUs as were measured; before any were, the paper's alone.
    shown = {number: of for number, of in PARALLEL.items() if any(any(map(any, found[other])) for other in PARALLEL if PARALLEL[other][1] == of[1])} or PARALLEL
    columns = len({gpus for _, gpus, _ in shown.values()})
    figure = style.new_figure(12.5, 7.2, f"{PAPER}, figures {'7 to 10' if len(shown) > 2 else ' and '.join(map(str, shown))}: parallel efficiency in double precision" + f", {data.device}" * bool(sources))
    panels = figure.subplots(len(shown) // columns, columns, sharex=True, sharey=True, squeeze=False)
    for axes, (number, (table, gpus, exchange)) in zip(panels.flat, shown.items()):
        theirs = {row["matrix"]: row for row in published(f"he_gao_2016_table{table}")}
        own, best = found[number]
        series = [style.Series(label.format(way), *([of[m, way][name] if (m, way) in of else None for m in names] for name in PERCENT),
                               theirs=[float(theirs[m][f"efficiency_{way}"]) for m in names] if of is own else [])
                  for of, label, way in ((own, "PCSR-{}", "I"), (own, "PCSR-{}", "II"), (best, "our fastest, cut as PCSR-{}", "II"))]
        style.dots(axes, [starred(m, sources.get(m)) for m in names], series, [sources.get(m, "file") for m in names], f"{' or '.join(str(n) for n in sorted({of[1] for of in shown.values()}))} Tesla C2050",
                   [style.SKY, style.BLUE, style.VERMILLION], log=False)
        axes.set_title(f"figure {number}: {gpus} GPUs, {'with' if exchange else 'without'} communication")
        axes.axhline(100, color=style.BLACK, linewidth=0.7)
    panels[0, 0].set_ylim(bottom=0)  # of all, once every mark is there
    for axes in panels[:, 0]:
        axes.set_ylabel("time on one / (GPUs x time), %")
    style.legend_below_title(figure, *panels[0, 0].get_legend_handles_labels())
    gaps.remark("PCSR-I: equal rows per GPU. PCSR-II: equal nonzeros per GPU."
                + " Ours: kernel pcsr (pcsr_texture with plain loads), and the fastest other kernel and exchange, launched in the fastest way, on one GPU as on several; lines: "
                "spread, where it is longer than the mark. Each kernel is compared with itself on one GPU, so a higher mark is no shorter time. Above 100%: each GPU has an L2 cache of its own for its part of the matrix, or several are launched in a way that one GPU does not have." * bool(sources))
    if "stand-in" in sources.values():
        gaps.remark(STAND_IN)
    for gpus in (2, 4):
        for which, (label, records) in enumerate({"PCSR": "published", "our fastest": "parallel"}.items()):
            of = [found[number][which] for number, (_, count, _) in PARALLEL.items() if count == gpus]
            if missing := [m for m in names if not all((m, "II") in each for each in of)]:
                gaps.remark(f"Not measured yet on {gpus} GPUs ({data.device}): {label}{' on ' * any(of)}{style.listed(missing) * any(of)}; `make bench SET={records}`.")
    return figure


def parallel_table(number, data):
    gpus, exchange = next((g, e) for t, g, e in PARALLEL.values() if t == number)
    own = efficiencies(data, gpus, exchange)

    def ours(matrix, way):
        r = own.get((matrix, way))
        return [f"{r['best_step_ms']:.4f}", f"{r['busy_deviation_ms']:.4f}", f"{r['percent']:.2f}"] if r else [DASH] * 3

    heads = ["ms", "sd", "efficiency, %"]
    columns = ["matrix", "C2050: one GPU, ms"] + [
        f"{where}, PCSR-{way}: {head}" if head == "ms" else head
        for way in ("I", "II") for where in ("C2050", data.device) for head in heads]
    rows, sources = [], {matrix: record["source"] for (matrix, _), record in own.items()}
    for row in published(f"he_gao_2016_table{number}"):
        rows.append([starred(row["matrix"], sources.get(row["matrix"])), row["one_gpu"]] + [text for way in ("I", "II") for text in (
            row[f"time_{way}"], row[f"sd_{way}"], row[f"efficiency_{way}"], *ours(row["matrix"], way))])
    words = f"{'with' if exchange else 'without'} communication on {gpus} GPUs"
    return Table(f"{PAPER}, table {number}: PCSR-I and PCSR-II {words}", columns, rows,
                 ["Double precision. Ours: the published kernel" + (" and exchange." if exchange else ".")],
                 dash=f"is not measured yet on {gpus} {data.device}: step 10's README names the command.")


def table2(data):
    return looks_table(f"{PAPER}, table 2: the matrices, and what stands for them here", data, published("he_gao_2016_table2"),
                       ["rows", "nonzeros", "per row", "description"],
                       lambda row: [row["rows"], row["nonzeros"], row["nonzeros_a_row"], row["description"]],
                       {"nonzeros": lambda info: str(info["matrix"]["nnz"]), "per row": lambda info: f"{info['mean_row']:.2f}",
                        "longest row": lambda info: str(info["max_row"])})


FIGURES = {"he_gao_2016_figure4": figure4, "he_gao_2016_figure5": figure5, "he_gao_2016_figures_7_to_10": parallel_figure}
TABLES = {"he_gao_2016_table2": table2, **{f"he_gao_2016_table{n}": functools.partial(parallel_table, n) for n in (3, 4, 5, 6)}}
