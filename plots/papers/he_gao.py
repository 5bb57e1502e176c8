"""He and Gao 2016: PCSR on one GPU (figures 4 and 5, table 2) and on several (tables 3 to 6,
figures 7 to 10)."""

import functools
import math
from statistics import fmean

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
COLOURS = [
    style.GREY,
    style.SKY,
    style.GREEN,
    style.PURPLE,
    style.ORANGE,
    style.BLUE,
    style.VERMILLION,
]
NONZEROS = published("he_gao_2016_table2").nonzeros()  # of each matrix
LARGE = 200e6  # bytes: over three times the L2 of an H200
ORDER = "real files, then stand-ins; each from the fewest nonzeros to the most"
REBUILT = "cont-300 counts as a file, but its structure is rebuilt from the constraints of its quadratic program, in an assumed order of rows."
REMARK = (
    "CSRMV: the fastest of cuSPARSE's CSR kernels; HYBMV: kernel hyb of step 08, since cuSPARSE"
    " has no HYB any more; PCSR: kernel pcsr_texture, as published. " + REBUILT
)


def figure4(data, gaps):
    """How many times as fast PCSR is as five algorithms, in both precisions."""
    said, names = published("he_gao_2016_speedups"), data.in_order(NONZEROS)
    figure = style.new_figure(11, 5.2, f"{PAPER}, figure 4: PCSR against the others", larger=1)
    for axes, precision in zip(figure.subplots(1, 2, sharey=True), style.PRECISIONS):
        for label, patterns in {**RIVALS, **PCSR}.items():
            for name in names:
                gaps.find(label, name, precision, patterns)
        style.ratios(
            axes,
            gaps,
            {
                rival: data.speedups(names, precision, PCSR["PCSR"], patterns)
                for rival, patterns in RIVALS.items()
            },
            f"{GPU}, 15 matrices",
            [said.value("speedup", rival=rival, precision=precision) for rival in RIVALS],
        )
        axes.set(
            title=f"{style.PRECISIONS[precision]}, warm", ylabel="time of the other / time of PCSR"
        )
    style.legend_below_title(figure, *axes.get_legend_handles_labels())
    gaps.remark(
        f"Figure 4 itself is lost; the text has the mean speed-ups of the {GPU} on 15 matrices, without their names. Ours: ratios of median warm times. {REMARK}"
    )
    style.one_triangle(gaps, names, NONZEROS)
    return figure


def figure4_rates(data, gaps):
    """GFLOP/s of seven algorithms in both precisions."""
    # GFLOP/s of PCSR in double precision: the one column of figure 4 that a table gives.
    theirs = {
        row["matrix"]: 2e-6 * int(row["nonzeros"]) / float(row["one_gpu"])
        for row in published("he_gao_2016_table3")
    }
    names = data.in_order(NONZEROS)
    figure = style.new_figure(
        12.5, 8.4, f"{PAPER}, figure 4: performance of all algorithms", larger=1
    )
    for axes, precision in zip(figure.subplots(2, 1), style.PRECISIONS):
        series = [
            style.series(
                gaps,
                label,
                names,
                precision,
                patterns,
                theirs=[theirs.get(m) for m in names]
                if (label, precision) == ("PCSR", "f64")
                else [],
            )
            for label, patterns in ALGORITHMS.items()
        ]
        style.dots_of(axes, gaps, names, series, f"{GPU}: PCSR (table 3)", COLOURS)
        for row in published("he_gao_2016_text").where(
            what="gflops_in_most_cases", precision=precision
        ):
            axes.axhline(
                float(row["value"]),
                color=style.BLUE,
                linewidth=1.2,
                linestyle="--",
                label=f"{GPU}: PCSR {row['words']} {row['value']} in most cases (text)",
            )
        style.panel(axes, f"{data.device}, {style.PRECISIONS[precision]}, warm", "GFLOP/s", 6)
    axes.set_xlabel(ORDER)
    gaps.remark(
        f"Figure 4 itself is lost; of the {GPU} a table has PCSR's times in double precision. {REMARK} {style.WARM}"
    )
    style.one_triangle(gaps, names, NONZEROS)
    return figure


def share_of_peak(record, state, quartile):
    """Percent of the data sheet's bandwidth as in the paper, of a copy's where the sheet is not known."""
    return (
        100
        * bandwidth(record, state, quartile)
        / (data_sheet(record["device"]) or record["copy_gb_per_s"])
    )


def figure5(data, gaps):
    """Bandwidth of six algorithms as a share of the device's, and what share the paper reached."""
    said = published("he_gao_2016_text")
    names = data.in_order(NONZEROS)
    sheet, copy = (
        data_sheet(data.device),
        max(
            (r["copy_gb_per_s"] for r in data.times.values() if "copy_gb_per_s" in r), default=None
        ),
    )
    figure = style.new_figure(
        12.5, 8.4, f"{PAPER}, figure 5: effective bandwidth of each algorithm's kernel", larger=1
    )
    for axes, precision in zip(figure.subplots(2, 1), ("f32", "f64")):
        series = [
            style.series(gaps, label, names, precision, patterns, share_of_peak, "cold")
            for label, patterns in ALGORITHMS.items()
        ]
        style.dots_of(axes, gaps, names, series, colours=COLOURS, log=False)
        axes.set_ylim(-3, 112)  # marks at 0 are whole
        share = said.value(what="share_of_peak", precision=precision)
        lines = [
            (
                share,
                f"{GPU}: greatest of PCSR, {share:.0f}% of 144 GB/s, by the paper's own count of bytes",
                style.BLUE,
                "--",
            )
        ]
        lines += (
            [
                (
                    100 * copy / (sheet or copy),
                    f"{data.device}: a copy, {copy:.0f} GB/s",
                    style.BLACK,
                    "-",
                )
            ]
            if copy
            else []
        )
        for (height, text, colour, dashes), place in zip(sorted(lines), ("top", "bottom")):
            axes.axhline(height, color=colour, linewidth=1, linestyle=dashes)
            axes.annotate(
                text,
                (2.6, height),
                (0, {"top": -2, "bottom": 2}[place]),
                textcoords="offset points",
                color=colour,
                va=place,
            )
        large = [
            i
            for i, name in enumerate(names)
            if data.times.get((name, precision, "pcsr_texture"), {}).get("compulsory_bytes", 0)
            > LARGE
        ]
        axes.hlines(
            [107] * len(large),
            [i - 0.5 for i in large],
            [i + 0.5 for i in large],
            style.BLACK,
            linewidth=3,
            label="PCSR moves over 200 MB",
        )
        style.panel(
            axes,
            f"{data.device}, {style.PRECISIONS[precision]}, cold L2",
            f"% of the data sheet's {sheet} GB/s" if sheet else "% of a copy",
            6,
        )
    gaps.remark(
        "Cold: the L2 is flushed before each product, since of what fits in there nothing is read from memory. Bytes: "
        "the matrix in CSR and x read once, y written once, for all alike; what a kernel moves beside, as PCSR its array of "
        "products, and repeated reads of x are not counted. "
        + style.SPREAD
        + " "
        + REMARK
        + f" Figure 5 itself is lost: the bytes by which the text's rates of the {GPU} are counted the paper does not "
        "give, and they are not ours (step 06)."
    )
    axes.set_xlabel(ORDER)
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
    records = [
        r
        for r in data.multigpu
        if "best_step_ms" in r and r["precision"] == "f64" and (r["kernel"] != "pcsr") == ours
    ]
    found, one_gpu = {}, on_one_gpu(records)
    for r in records:
        way = (
            r["exchange"] == "none"
            if not exchange
            else r.get("norm") == "first" and (ours or r["exchange"] == "parts")
        )
        key = r["matrix"], next(way for way, name in PARTITIONS.items() if name == r["partition"])
        one = one_gpu.get((r["matrix"], r["kernel"]))
        if (
            r["gpus"] == gpus
            and way
            and one
            and r["best_step_ms"] < found.get(key, {}).get("best_step_ms", math.inf)
        ):
            found[key] = {
                **r,
                **{
                    name: 100
                    * milliseconds(one, "best_step", base)
                    / (gpus * milliseconds(r, "best_step", several))
                    for name, base, several in zip(
                        PERCENT, ("median", "lower", "upper"), ("median", "upper", "lower")
                    )
                },
            }
    return found


def with_mean(values):
    """The values and their mean, if all are there."""
    return [*values, None if None in values else fmean(values)]


def parallel_panel(axes, number, own, best, names, sources):
    """One of figures 7 to 10: the paper's values beside the marks of `own` and `best`, as efficiencies() has them."""
    table, gpus, exchange = PARALLEL[number]
    theirs = {row["matrix"]: row for row in published(f"he_gao_2016_table{table}")}
    series = []
    for of, label, way in (
        (own, "PCSR-{}", "I"),
        (own, "PCSR-{}", "II"),
        *[(best, "our fastest, cut as PCSR-{}", "II")] * exchange,
    ):
        if of is own:  # beside the mark, which a dash across it would make another sign
            series.append(
                style.Series(
                    label.format(way) + f", {GPU}s",
                    [None] * (len(names) + 1),
                    theirs=with_mean([float(theirs[m][f"efficiency_{way}"]) for m in names]),
                )
            )
        series.append(
            style.Series(
                label.format(way),
                *(
                    with_mean([of[m, way][name] if (m, way) in of else None for m in names])
                    for name in PERCENT
                ),
            )
        )
    groups = [*names, "mean"]
    style.dots(
        axes,
        [starred(m, sources.get(m)) for m in groups],
        series,
        [sources.get(m, "file") for m in groups],
        "",
        [style.SKY, style.SKY, style.BLUE, style.BLUE, style.VERMILLION],
        log=False,
    )
    axes.axvline(len(names) - 0.5, color=style.BLACK, linewidth=0.7)
    axes.set_title(
        f"figure {number}: {gpus} GPUs, {'with' if exchange else 'without'} communication, warm"
    )
    axes.axhline(100, color=style.BLACK, linewidth=0.7)


def parallel_notes(data, gaps, found, names, sources):
    gaps.remark(
        "PCSR-I: equal rows per GPU. PCSR-II: equal nonzeros per GPU. Matrices in the paper's order."
    )
    if sources:
        ways = {
            f"{r['kernel']}, {r['exchange']} ({' or '.join(r['step_ms'])})"
            for number, (_, best) in found.items()
            for (m, _), r in best.items()
            if m in names and PARALLEL[number][2]
        }
        gaps.remark(
            f"PCSR: kernel pcsr (pcsr_texture with plain loads), with communication exchange parts, as a CUDA graph. Our fastest kernel, exchange and launch: {'; '.join(sorted(ways))}. "
            "Each kernel is compared with itself on one GPU, in the faster of the ways measured there, with or without exchange; so a higher mark is no shorter time. "
            "Ours is not drawn without communication: only graphs were measured so, and on one GPU a persistent kernel may be faster. Above 100%: each GPU has an L2 of its own for its part of the matrix."
        )
        gaps.remark(f"Warm: one step follows the other. {style.SPREAD}")
    if made := sum(sources.get(m) == "stand-in" for m in names):
        gaps.remark(f"{STAND_IN[:-1]}: {made} of {len(names)} matrices.")
    for gpus in (2, 4):
        for which, (label, records) in enumerate(
            {"PCSR": "published", "our fastest": "parallel"}.items()
        ):
            of = [
                found[number][which] for number, (_, count, _) in PARALLEL.items() if count == gpus
            ]
            if missing := [m for m in names if not all((m, "II") in each for each in of)]:
                gaps.remark(
                    f"Not measured yet on {gpus} GPUs ({data.device}): {label}{' on ' * any(of)}{style.listed(missing) * any(of)}; `make bench SET={records}`."
                )


def parallel_figure(data, gaps):
    """Parallel efficiency of PCSR-I and PCSR-II on 2 and 4 GPUs, without and with the exchange of x."""
    names = published("he_gao_2016_table3").matrices()
    found = {
        number: [efficiencies(data, gpus, exchange, ours=ours) for ours in (False, True)]
        for number, (_, gpus, exchange) in PARALLEL.items()
    }
    # All panels have one axis, and what one of them shows of a stand-in has its star on all.
    sources = {
        matrix: record["source"]
        for own, best in found.values()
        for (matrix, _), record in {**best, **own}.items()
    }
    sources = {m: sources.get(m) or data.source(m) or "file" for m in names if sources}
    gaps.found += [
        r for both in found.values() for of in both for r in of.values() if r["matrix"] in names
    ]
    if "stand-in" in sources.values():
        sources["mean"] = "stand-in"
    # As many GPUs as were measured; before any were, the paper's alone.
    measured = {PARALLEL[number][1] for number, of in found.items() if any(of)}
    shown = [number for number in PARALLEL if PARALLEL[number][1] in measured] or list(PARALLEL)
    columns = len({PARALLEL[number][1] for number in shown})
    figure = style.new_figure(
        12.5,
        7.6,
        f"{PAPER}, figures {'7 to 10' if len(shown) > 2 else ' and '.join(map(str, shown))}: parallel efficiency in double precision"
        + f", {data.device}" * bool(sources),
        larger=1,
    )
    panels = figure.subplots(
        len(shown) // columns, columns, sharex=True, sharey=True, squeeze=False
    )
    for axes, number in zip(panels.flat, shown):
        parallel_panel(axes, number, *found[number], names, sources)
    panels[0, 0].set_ylim(bottom=-4)  # of all, once every mark is there
    for axes in panels[:, 0]:
        axes.set_ylabel("time on one / (GPUs x time), %")
    style.legend_below_title(figure, *panels[-1, 0].get_legend_handles_labels())
    parallel_notes(data, gaps, found, names, sources)
    return figure


def faster_with(number):
    """The matrices that the paper's tables have in less time with communication than without, in both partitions or one."""
    without = {row["matrix"]: row for row in published(f"he_gao_2016_table{number - 2}")}
    found = []
    for row in published(f"he_gao_2016_table{number}"):
        times = [
            [float(of[f"time_{way}"]) for way in PARTITIONS] for of in (row, without[row["matrix"]])
        ]
        ways = [way for way, one, other in zip(PARTITIONS, *times) if one < other]
        if ways:
            found.append(row["matrix"] + f" (PCSR-{ways[0]})" * (len(ways) == 1))
    return found


def parallel_table(number, data):
    gpus, exchange = next((g, e) for t, g, e in PARALLEL.values() if t == number)
    own = efficiencies(data, gpus, exchange)

    def ours(matrix, way):
        r = own.get((matrix, way))
        return (
            [f"{r['best_step_ms']:.4f}", f"{r['busy_deviation_ms']:.4f}", f"{r['percent']:.2f}"]
            if r
            else [DASH] * 3
        )

    heads = ["ms", "sd", "efficiency, %"]
    columns = ["matrix", "C2050: one GPU, ms"] + [
        f"{where}, PCSR-{way}: {head}" if head == "ms" else head
        for way in ("I", "II")
        for where in ("C2050", data.device)
        for head in heads
    ]
    rows, sources = [], {matrix: record["source"] for (matrix, _), record in own.items()}
    for row in published(f"he_gao_2016_table{number}"):
        rows.append(
            [starred(row["matrix"], sources.get(row["matrix"])), row["one_gpu"]]
            + [
                text
                for way in ("I", "II")
                for text in (
                    row[f"time_{way}"],
                    row[f"sd_{way}"],
                    row[f"efficiency_{way}"],
                    *ours(row["matrix"], way),
                )
            ]
        )
    words = f"{'with' if exchange else 'without'} communication on {gpus} GPUs"
    notes = [
        "Double precision. Ours: our implementation of the published kernel"
        + (" and exchange." if exchange else ".")
    ]
    if exchange and (faster := faster_with(number)):
        notes.append(
            f"There, faster with communication than without (table {number - 2}): {style.listed(faster)}."
        )
    return Table(
        f"{PAPER}, table {number}: PCSR-I and PCSR-II {words}",
        columns,
        rows,
        notes,
        dash=f"is not measured yet on {gpus} {data.device}: step 10's README names the command.",
    )


def table2(data):
    return looks_table(
        f"{PAPER}, table 2: the matrices, and what stands for them here",
        data,
        published("he_gao_2016_table2"),
        ["rows", "nonzeros", "per row", "description"],
        lambda row: [row["rows"], row["nonzeros"], row["nonzeros_a_row"], row["description"]],
        {
            "nonzeros": lambda info: str(info["matrix"]["nnz"]),
            "per row": lambda info: f"{info['mean_row']:.2f}",
            "longest row": lambda info: str(info["max_row"]),
        },
        notes=[REBUILT],
    )


FIGURES = {
    "he_gao_2016_figure4": figure4,
    "he_gao_2016_figure4_rates": figure4_rates,
    "he_gao_2016_figure5": figure5,
    "he_gao_2016_figures_7_to_10": parallel_figure,
}
TABLES = {
    "he_gao_2016_table2": table2,
    **{f"he_gao_2016_table{n}": functools.partial(parallel_table, n) for n in (3, 4, 5, 6)},
}
