"""He and Gao 2016: PCSR on one GPU (figures 4 to 6, table 2) and on several (tables 3 to 6,
figures 7 to 10)."""

from statistics import mean

import style
from multigpu import efficiencies, labels, percent
from records import STAND_IN, bandwidth, gflops, published, starred
from tables import Table, cell, looks_table

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
REMARK = ("CSRMV: the fastest of cuSPARSE's CSR kernels; HYBMV: kernel hyb of step 08, since cuSPARSE"
          " has no HYB any more; PCSR: kernel pcsr_texture, as published.")
WARM = "Warm: inputs in the L2 as far as they fit. Marks: medians, lines: their spread."


def matrices():
    return [row["matrix"] for row in published("he_gao_2016_table2")]


def measured(data, gaps, names):
    """Those of `names` that any algorithm was measured on; the others become a note."""
    found = [m for m in names if any(
        data.fastest(m, p, patterns) for p in ("f32", "f64") for patterns in ALGORITHMS.values())]
    for name in names:
        if name not in found:
            gaps.find("PCSR", name, "f64", PCSR["PCSR"])
    return found


def speedups(data, precision, names, patterns):
    """PCSR over a rival on each matrix that both were measured on."""
    both = [(data.fastest(m, precision, PCSR["PCSR"]), data.fastest(m, precision, patterns))
            for m in names]
    return [gflops(own) / gflops(rival) for own, rival in both if own and rival]


def series_of(data, gaps, names, precision, value, state="warm"):
    """[(label, values, lower, upper)] of all algorithms; value(record, state, quartile)."""
    series = []
    for label, patterns in ALGORITHMS.items():
        records = [gaps.find(label, m, precision, patterns) for m in names]
        series.append((label, *([r and value(r, state, quartile) for r in records] for quartile in ("median", "upper", "lower"))))
    return series


def rates_of_table3():
    """{matrix: GFLOP/s of PCSR in double precision}: the one column of figure 4 that a table gives."""
    return {row["matrix"]: 2e-6 * int(row["nonzeros"]) / float(row["one_gpu"]) for row in published("he_gao_2016_table3")}


def mean_speedups(axes, data, names):
    """The averages that the text gives of figure 4, beside ours."""
    said = published("he_gao_2016_speedups")
    series = []
    for precision in ("f32", "f64"):
        theirs = [said.value("speedup", rival=rival, precision=precision) for rival in RIVALS]
        own = [speedups(data, precision, names, patterns) for patterns in RIVALS.values()]
        series.append((f"{GPU}, {precision}", theirs))
        series.append((f"{data.device}, {precision}", [mean(s) if s else None for s in own]))
    style.bars(axes, list(RIVALS), series, [style.SKY, style.ORANGE, style.BLUE, style.VERMILLION])
    axes.axhline(1, color=style.BLACK, linewidth=0.7)
    axes.set_ylabel("times as fast")
    axes.set_title("Average speed-ups of PCSR", pad=16)
    style.legend_above(axes, 4)


def figure4(data, gaps):
    """GFLOP/s of six algorithms in both precisions, and PCSR's average speed-ups."""
    gaps.remark(REMARK)
    every = measured(data, gaps, matrices())
    names, theirs = data.in_order( every), rates_of_table3()
    names += [m for m in theirs if m not in names]
    figure = style.new_figure(11, 10.5, f"{PAPER}, figure 4: performance of all algorithms")
    grid = figure.add_gridspec(3, 1, height_ratios=(0.7, 1, 1))
    mean_speedups(figure.add_subplot(grid[0]), data, every)
    for row, precision in enumerate(("f32", "f64"), 1):
        axes = figure.add_subplot(grid[row])
        shown = series_of(data, gaps, every and names, precision, gflops) if every else []
        if precision == "f64":
            shown = [*shown, (f"{GPU}: PCSR (table 3)", [theirs.get(m) for m in names])]
        style.dots_of(axes, data, names, shown, COLOURS + [style.BLACK] if every else [style.BLACK])
        axes.set_ylabel("GFLOP/s")
        axes.set_title(f"{data.device}, {'single' if precision == 'f32' else 'double'} precision", pad=16)
        style.legend_above(axes, 9)
    gaps.remark(f"Figure 4 itself is lost; of the {GPU} a table has PCSR's times in double precision. " + WARM
                + f" Averages: of {len(every)} matrices.")
    return figure


def figure4_table(data):
    """What figure 4 has no room for."""
    rows = []
    for name in matrices():
        found = [[data.fastest(name, p, patterns) for patterns in ALGORITHMS.values()] for p in ("f32", "f64")]
        rows += [[data.label(name), p, *(cell(r and gflops(r)) for r in of)] for p, of in zip(("f32", "f64"), found)]
    return Table(f"{PAPER}, figure 4: GFLOP/s of all algorithms, {data.device}", ["matrix", "precision", *ALGORITHMS], rows,
                 [REMARK, f"Warm. A dash: refused or not measured yet: `{style.COMMAND}`."], words=2)


def figure5(data, gaps):
    """Bandwidth of six algorithms as a share of the device's, and what share the paper reached."""
    said = published("he_gao_2016_text")
    names = data.in_order( measured(data, gaps, matrices()))
    figure = style.new_figure(11, 8.4 if names else 4, f"{PAPER}, figure 5: effective bandwidth of each algorithm's kernel")
    for axes, precision in zip(figure.subplots(2, 1), ("f32", "f64")):
        series = series_of(data, gaps, names, precision, lambda record, state, quartile: 100 * bandwidth(
            record, state=state, quartile=quartile) / record["copy_gb_per_s"], "cold")
        if names:
            style.dots_of(axes, data, names, series, COLOURS)
        share, most = (said.value(what=what, precision=precision) for what in ("share_of_peak", "max_bandwidth"))
        axes.axhline(share, color=style.BLACK, linewidth=0.8, linestyle="--",
                     label=f"{GPU}: greatest of PCSR, {share:.0f}% of its 144 GB/s, more than {most:.0f} GB/s")
        axes.set_ylabel("% of the bandwidth of a copy")
        axes.set_title(f"{data.device}, {'single' if precision == 'f32' else 'double'} precision", pad=30)
        style.legend_above(axes, 5)
    if names:
        gaps.remark("Cold: the L2 is flushed before each product, since of what fits in there nothing is read from memory. Bytes: "
                    "the matrix in the kernel's format and x read once, y written once, PCSR's middle array written and read; "
                    "repeated reads of x are not counted. " + REMARK + f" Figure 5 itself is lost: what the text says of the {GPU}.")
    return figure


PICTURED = ("af_shell9", "cont-300")


def figure6(data, gaps):
    """Where the nonzeros of af_shell9 and cont-300 are, of their files: a stand-in's structure is not theirs."""
    names = [m for m in PICTURED if "picture" in data.shapes.get(m, {})
             and data.shapes[m]["matrix"]["source"] == "file"]
    missing = [m for m in PICTURED if m not in names]
    if missing:
        gaps.remark(f"No picture of {' and '.join(missing)}, whose file is not here: `make data ARGS=\"{' '.join(missing)}\"`, "
                    "then `make bench SET=shapes`.")
    if not names:
        return None
    figure = style.new_figure(4.2 * len(names), 4.6, f"{PAPER}, figure 6: two matrices")
    for axes, name in zip(figure.subplots(1, len(names), squeeze=False)[0], names):
        info = data.shapes[name]
        picture = info["picture"]
        dots = [[0.0] * picture["columns"] for _ in range(picture["lines"])]
        most = max(count for *_, count in picture["cells"])
        for line, column, count in picture["cells"]:
            dots[line][column] = 0.35 + 0.65 * count / most
        axes.imshow(dots, cmap="Greys", vmin=0, vmax=1, interpolation="nearest",
                    extent=(0, info["matrix"]["cols"], info["matrix"]["rows"], 0))
        axes.grid(False)
        axes.ticklabel_format(axis="both", style="plain")
        axes.locator_params(nbins=4)
        axes.set_title(f"{starred(name, info['matrix']['source'])}: {info['matrix']['rows']:,} rows, {info['mean_row']:.1f} per row")
        for spine in axes.spines.values():
            spine.set_visible(True)
    gaps.remark("Each dot is a 200th of the rows by a 200th of the columns, the darker the fuller.")
    return figure


# --- Several GPUs ---------------------------------------------------------------------------------

# figure -> table, GPUs, whether x is exchanged.
PARALLEL = {7: (3, 2, False), 8: (4, 4, False), 9: (5, 2, True), 10: (6, 4, True)}


def parallel_figure(number):
    table, gpus, exchange = PARALLEL[number]
    words = f"{'with' if exchange else 'without'} communication on {gpus} GPUs"

    def draw(data, gaps):
        rows = published(f"he_gao_2016_table{table}")
        own, best = (efficiencies(data, gpus, exchange, ours=ours) for ours in (False, True))
        order = [row["matrix"] for row in rows]
        names = labels({**best, **own}, order)
        names.update({matrix: matrix for matrix in order if matrix not in names})
        figure = style.new_figure(11, 4.4, f"{PAPER}, figure {number}: parallel efficiency {words}")
        axes = figure.subplots()
        theirs = {row["matrix"]: row for row in rows}
        series = [(f"{gpus} Tesla C2050, PCSR-{way} (table {table})", [float(theirs[m][f"efficiency_{way}"]) if m in theirs else None for m in names])
                  for way in ("I", "II")]
        series = [(label.replace(f"{gpus} Tesla", "Tesla", 1), values) for label, values in series]
        for found, label in ((own, "PCSR-{}"), (best, "our fastest, as PCSR-{}")):
            series += [(f"{data.device}, {label.format(way)}", [percent(found[m, way]) if (m, way) in found else None for m in names])
                       for way in ("I", "II")]
        style.dots(axes, list(names.values()), series, {i for i, name in enumerate(names.values()) if name.endswith("*")},
                   [style.SKY, style.BLUE, style.ORANGE, style.VERMILLION, style.GREEN, style.PURPLE])
        axes.set_title(f"{gpus} GPUs, double precision", pad=30)
        if any(name.endswith("*") for name in names.values()):
            gaps.remark(STAND_IN)
        if missing := [name for matrix, name in names.items() if matrix in theirs and (matrix, "I") not in own and (matrix, "II") not in own]:
            gaps.remark(f"Of the paper's kernel on {gpus} {data.device} there is nothing yet on {style.listed(missing, 20)}; `make bench SET=published`.")
        if any(percent(record) > 100 for record in [*own.values(), *best.values()]):
            gaps.remark("Above 100%: each GPU brings an L2 cache of its own, and half of the matrix to it.")
        axes.axhline(100, color=style.BLACK, linewidth=0.7)
        axes.set_ylabel("time on one / (GPUs x time), %")
        style.legend_above(axes, 4)
        kernels = sorted({record["kernel"] for record in own.values()})
        gaps.remark("PCSR-I: equal rows per GPU. PCSR-II: equal nonzeros per GPU."
                    + (f" Ours: kernel {' and '.join(kernels)}." if kernels else ""))
        return figure

    draw.__doc__ = f"Parallel efficiency of PCSR-I and PCSR-II {words}."
    return draw


def parallel_table(number):
    gpus, exchange = next((g, e) for t, g, e in PARALLEL.values() if t == number)

    def table(data):
        own = efficiencies(data, gpus, exchange)

        def ours(matrix, way):
            r = own.get((matrix, way))
            return ([f"{r['best_step_ms']:.4f}", f"{r['busy_deviation_ms']:.4f}", f"{percent(r):.2f}"] if r
                    else ["—"] * 3)

        heads = ["ms", "sd", "efficiency, %"]
        columns = ["matrix", "C2050: one GPU, ms"] + [
            f"{where}, PCSR-{way}: {head}" if head == "ms" else head
            for way in ("I", "II") for where in ("C2050", data.device) for head in heads]
        rows, theirs = [], published(f"he_gao_2016_table{number}")
        names = labels(own, [])
        for row in theirs:
            name = names.pop(row["matrix"], row["matrix"])
            rows.append([name, row["one_gpu"]] + [text for way in ("I", "II") for text in (
                row[f"time_{way}"], row[f"sd_{way}"], row[f"efficiency_{way}"], *ours(row["matrix"], way))])
        for matrix, name in names.items():
            rows.append([name, ""] + [text for way in ("I", "II") for text in (
                "", "", "", *ours(matrix, way))])
        words = f"{'with' if exchange else 'without'} communication on {gpus} GPUs"
        notes = ["Double precision. Ours: the fastest way of launching" + (" and of exchanging x." if exchange else "."),
                 f"A dash is not measured yet on {gpus} {data.device}: step 10's README names the command."]
        return Table(f"{PAPER}, table {number}: PCSR-I and PCSR-II {words}", columns, rows, notes)

    return table


def table2(data):
    return looks_table(f"{PAPER}, table 2: the matrices, and what stands for them here", data, published("he_gao_2016_table2"),
                       ["rows", "nonzeros", "per row", "description"],
                       lambda row: [row["rows"], row["nonzeros"], row["nonzeros_a_row"], row["description"]],
                       {"nonzeros": lambda info: str(info["matrix"]["nnz"]), "per row": lambda info: f"{info['mean_row']:.2f}",
                        "longest row": lambda info: str(info["max_row"])})


FIGURES = {"he_gao_2016_figure4": figure4, "he_gao_2016_figure5": figure5, "he_gao_2016_figure6": figure6,
           **{f"he_gao_2016_figure{n}": parallel_figure(n) for n in PARALLEL}}
TABLES = {"he_gao_2016_figure4": figure4_table, "he_gao_2016_table2": table2,
          **{f"he_gao_2016_table{n}": parallel_table(n) for n in (3, 4, 5, 6)}}
