"""He and Gao 2016: PCSR on one GPU (figures 4 and 5, table 2) and on several (tables 3 to 6,
figures 7 to 10)."""

import functools
import math
from statistics import fmean, median

import style
from published import published
from records import STAND_IN, bandwidth, data_sheet, fastest_of, format_bytes, gflops, on_one_gpu
from records import starred
from tables import DASH, Table, cell, looks_table

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
ALGORITHMS = {**RIVALS, **PCSR, "PCSR in one pass": ["pcsr_one_pass"]}
NONZEROS = published("he_gao_2016_table2").nonzeros()  # of each matrix
LARGE = 200e6  # bytes: over three times the L2 of an H200
REBUILT = "cont-300 counts as a file, but its structure is rebuilt from the constraints of its quadratic program, in an assumed order of rows."
REMARK = (
    "CSRMV: the fastest of cuSPARSE's CSR kernels; HYBMV: kernel hyb of step 08, since cuSPARSE"
    " has no HYB any more; PCSR: kernel pcsr_texture, as published. " + REBUILT
)

ROWS = {row["matrix"]: int(row["rows"]) for row in published("he_gao_2016_table2")}
# Of figure 4's 15 matrices the text says that they have between so many rows, and which two figure
# 6 shows.
LEAST, MOST, OF_FIGURE_6 = 25_228, 2_063_494, {"af_shell9", "cont-300"}


def subsets(ratios):
    """The least and the greatest of the 15 matrices that the paper may mean, by their speed-ups
    {matrix: ratio}; twice all of them if not all of its table 2 were measured."""
    if len(ratios) < len(ROWS):
        return [list(ratios.values())] * 2
    fixed = {m for m in ratios if m in OF_FIGURE_6 or ROWS[m] in (LEAST, MOST)}
    rest = sorted(ratios[m] for m in ratios if m not in fixed and LEAST < ROWS[m] < MOST)
    free = 15 - len(fixed)
    return [[ratios[m] for m in fixed] + of for of in (rest[:free], rest[-free:])]


def figure4(data, gaps):
    """Figure 4: how many times as fast PCSR is as five algorithms, in both precisions."""
    names, own = data.in_order(NONZEROS), PCSR["PCSR"]
    said = {
        (row["rival"], row["precision"]): (float(row["speedup"]), None)
        for row in published("he_gao_2016_speedups")
    }
    single, double = (
        sum(data.is_behind(names, p, own, of) for of in RIVALS.values()) for p in style.PRECISIONS
    )
    count = f"{single} of them" + f" (in double precision {double})" * (single != double)
    message = f"PCSR beat all {len(RIVALS)} rivals on a {GPU}; on an {style.brief(data.device)} "
    message += f"{count} beat it on most matrices"
    figure = style.against_rivals(data, gaps, names, PCSR, RIVALS, said, GPU, message)
    gaps.remark(
        f"Figure 4 itself is lost; the text has the mean speed-ups of the {GPU} on 15 matrices, without their names. Ours: ratios of median warm times on {len(names)} matrices, with their arithmetic mean, as the paper's. {REMARK}"
    )
    if of := data.speedups(names, "f32", own, RIVALS["CSR-scalar"]):
        least, greatest = (cell(fmean(ratios)) for ratios in subsets(of))
        gaps.remark(
            f"By which 15 of them the paper means, the mean over CSR-scalar in single precision is {least} to {greatest}."
        )
    style.one_triangle(gaps, names, NONZEROS)
    return figure


def by_algorithm(gaps, state="warm"):
    """{algorithm: {matrix: record}} in double precision."""
    names = gaps.data.in_order(NONZEROS)
    style.one_triangle(gaps, names, NONZEROS)
    of = {
        a: {m: gaps.find(a, m, "f64", k, state=state) for m in names} for a, k in ALGORITHMS.items()
    }
    return {a: {m: r for m, r in records.items() if r} for a, records in of.items()}


def by_row(data, message, shares, colours, told, head, unit):
    """A row per algorithm: `shares` of {matrix: percent}, in double precision, and at its right
    what is `told` of it."""
    figure = style.new_figure(1.15 + 0.34 * len(shares), message)
    axes, names = figure.subplots(), {"CSRMV": "CSRMV (cuSPARSE)", "PCSR": "PCSR as published"}
    for y, (label, of) in enumerate(shares.items()):
        if of:
            style.box(axes, y - 0.08, list(of.values()), 0.4, colours.get(label, style.BLACK))
        if label in ALGORITHMS:
            style.files_below(axes, y + 0.27, of, data)
        style.at_edge(axes, y, told[label] if of else "not measured", outside=True)
    style.head(axes, head)
    axes.set(xlim=(0, 101), xlabel=unit)
    style.rows(axes, [names.get(label, label) for label in shares])
    for label in axes.get_yticklabels():
        label.set_fontweight("bold" if "PCSR" in label.get_text() else "normal")
    return figure, [(style.hollow(), style.BOX), style.files_key()]


def alone_ahead(data, matrix):
    """The algorithm that is the fastest on a matrix in double precision, None if another ties with
    it."""
    found = {label: data.fastest(matrix, "f64", of) for label, of in ALGORITHMS.items()}
    names = fastest_of(found)
    return names[0] if len(names) == 1 else None


def figure4_rates(data, gaps):
    """Figure 4: GFLOP/s of seven algorithms in double precision, as a share of those of the fastest
    of them on each matrix."""
    theirs = [
        2e-6 * int(row["nonzeros"]) / float(row["one_gpu"])
        for row in published("he_gao_2016_table3")
    ]
    first, found = [alone_ahead(data, m) for m in NONZEROS], by_algorithm(gaps)
    best = {
        m: max(gflops(of[m]) for of in found.values() if m in of)
        for of in found.values()
        for m in of
    }
    shares = {a: {m: 100 * gflops(r) / best[m] for m, r in of.items()} for a, of in found.items()}
    message = f"PCSR in one pass is the sole fastest on {first.count('PCSR in one pass')} of {len(first)} matrices, "
    message += f"PCSR as published on {first.count('PCSR') or 'none'}"
    told = {
        a: f"{first.count(a)} of {len(first)};  {median(map(gflops, of.values())):.0f}"
        for a, of in found.items()
        if of
    }
    unit = f"GFLOP/s in % of the fastest of the seven on each of {len(best)} matrices, {style.brief(data.device)}"
    colours = dict.fromkeys(("PCSR", "PCSR in one pass"), style.OURS)
    head = "sole fastest;\nmedian GFLOP/s"
    figure, key = by_row(data, message, shares, colours, told, head, unit)
    style.legend(figure, key)
    gaps.remark(
        f"Sole fastest: without ties. Figure 4 itself is lost; of the {GPU} a table has PCSR's times in double precision: {min(theirs):.1f} to {max(theirs):.1f} GFLOP/s, the median is {median(theirs):.1f}; in single precision the text says over 9 GFLOP/s in most cases. {REMARK} {style.WARM}"
    )
    return figure


def share_of_peak(record, state):
    """Percent of the data sheet's bandwidth as in the paper, of a copy's where the sheet is not
    known."""
    peak = data_sheet(record["device"]) or record["copy_gb_per_s"]
    return 100 * bandwidth(record, state) / peak


def x_per_nonzero(of):
    """How many times as many bytes y = Ax in CSR has if x counts once per nonzero. So the paper must
    count: of table 3's times it makes the 108 GB/s, 75%, of its text."""
    return 1 + {"f32": 4, "f64": 8}[of["precision"]] * (of["nnz"] - of["cols"]) / format_bytes(of)


def published_shares(scale=lambda _: 1):
    """{matrix: percent of the data sheet's bandwidth} of the paper's PCSR: table 3's times, and the
    bytes of y = Ax in CSR, or `scale` times as many."""
    said = published("he_gao_2016_text")
    most, share = (
        said.value(what=what, precision="f64") for what in ("max_bandwidth", "share_of_peak")
    )
    rows, found = {r["matrix"]: int(r["rows"]) for r in published("he_gao_2016_table2")}, {}
    for row in published("he_gao_2016_table3"):
        size = {name: rows[row["matrix"]] for name in ("rows", "cols")}
        one = {"format": "CSR", "precision": "f64", "nnz": int(row["nonzeros"]), **size}
        moved = 1e-6 * format_bytes(one) * scale(one)
        found[row["matrix"]] = moved / float(row["one_gpu"]) / (most / share)
    return found


def figure5(data, gaps):
    """Figure 5: bandwidth of seven algorithms as a share of the device's, and what share the
    paper's PCSR reached, by one count of bytes."""
    said = published("he_gao_2016_text")
    sheet, copy = data_sheet(data.device), data.copy_gb_per_s
    on, there = style.brief(data.device), f"PCSR, {GPU}"
    shares = {
        label: {m: share_of_peak(r, "cold") for m, r in of.items()}
        for label, of in by_algorithm(gaps, "cold").items()
    }
    shares[there] = published_shares()
    most = {label: f"{max(of.values(), default=0):.0f}%" for label, of in shares.items()}
    message = f"By our count of bytes, PCSR used at most {most[there]} of the bandwidth of a {GPU}; on an {on} it uses "
    message += f"at most {most['PCSR']}, and in one pass at most {most['PCSR in one pass']}"
    colours = {there: style.THEIRS, "PCSR": style.OURS, "PCSR in one pass": style.OURS}
    unit = "% of the device's data-sheet bandwidth" if sheet else "% of a copy"
    figure, key = by_row(data, message, shares, colours, most, "at most", unit + ", cold L2")
    if copy:
        [axes] = figure.axes
        axes.axvline(100 * copy / (sheet or copy), color=style.BLACK, linewidth=1, linestyle="--")
        line = f"a copy on an {on}, {copy:.0f}{f' of {sheet}' * bool(sheet)} GB/s"
        key.append((style.sample(line="--"), line))
    style.legend(figure, key)
    texts = [f"{said.value(what='share_of_peak', precision=p):.0f}%" for p in ("f32", "f64")]
    gaps.remark(
        "Double precision. "
        "Cold: the L2 is flushed before each product, since of what fits in there nothing is read from memory. Bytes: "
        "the matrix in its format and x read once, y written once; what a kernel moves beside, as PCSR its array of "
        "products, and repeated reads of x are not counted. "
        + REMARK
        + f" Figure 5 itself is lost. The text says {' and '.join(texts)} of the {GPU}'s bandwidth in single and double precision. In double that is what table 3's times give where x "
        "counts once per nonzero; here it counts once."
    )
    return figure


# --- Several GPUs ---------------------------------------------------------------------------------

# figure -> table, GPUs, whether x is exchanged.
PARALLEL = {7: (3, 2, False), 8: (4, 4, False), 9: (5, 2, True), 10: (6, 4, True)}
WAYS = {"rows": "I", "nonzeros": "II"}  # PCSR-I and PCSR-II


def efficiencies(data, gpus, exchange, ours=False):
    """{(matrix, "I" or "II"): record of `spmv multigpu`} of the fastest drive in double precision,
    with `percent`: the fastest step on one GPU over GPUs times time. Of the published kernel, with
    an exchange of all parts; with `ours`, of the fastest of the other kernels and ways. What an
    exchange is compared by has no norm."""
    records = [
        r
        for r in data.multigpu
        if "best_step_ms" in r and r["precision"] == "f64" and (r["kernel"] != "pcsr") == ours
    ]
    found, one_gpu = {}, on_one_gpu(records)
    for r in records:
        way = r.get("norm") == "first" and (ours or r["exchange"] == "parts")
        one, key = one_gpu.get((r["matrix"], r["kernel"])), (r["matrix"], WAYS[r["partition"]])
        if r["gpus"] == gpus and one and (way if exchange else r["exchange"] == "none"):
            if key not in found or r["best_step_ms"] < found[key]["best_step_ms"]:
                percent = 100 * one["best_step_ms"] / (gpus * r["best_step_ms"])
                found[key] = {**r, "percent": percent}
    return found


def time_and_efficiency(found, names):
    """{matrix: (milliseconds of a step on one GPU, percent)} of those of `names` that
    efficiencies() found."""
    return {
        m: (r["percent"] / 100 * r["gpus"] * r["best_step_ms"], r["percent"])
        for (m, of), r in found.items()
        if of == "II" and m in names
    }


def published_efficiencies(number):
    """The same of the paper."""
    return {
        row["matrix"]: (float(row["one_gpu"]), float(row["efficiency_II"]))
        for row in published(f"he_gao_2016_table{PARALLEL[number][0]}")
    }


def mean_percent(found):
    return fmean(percent for _, percent in found.values()) if found else math.nan


def parallel_panel(axes, number, theirs, own, best, sources):
    """One of figures 7 to 10, and the means beside it."""
    _, gpus, exchange = PARALLEL[number]
    style.points(axes, own, sources, style.OURS, label="own")
    style.points(axes, theirs, dict.fromkeys(theirs, "file"), style.THEIRS, "D", "theirs")
    lines = [(theirs, style.THEIRS, "-"), (own, style.OURS, "-")]
    if exchange:
        lines.append((best, style.BLACK, "--"))
    lines = [(mean_percent(found), *look) for found, *look in lines if found]
    for mean, colour, dashes in lines:
        axes.axhline(mean, color=colour, linewidth=1.1, linestyle=dashes)
        side = "bottom" if mean == max(lines)[0] else "top"
        beside = mean + (1 if side == "bottom" else -1.5)
        style.at_edge(axes, beside, f"{mean:.0f}%", color=colour, va=side)
    axes.set(xscale="log", ylim=(-2, 118))
    title = f"figure {number}: {gpus} GPUs, {'with' if exchange else 'without'} communication"
    axes.set_title(title, fontweight="bold" if number == max(PARALLEL) else "normal")


def parallel_notes(data, gaps, found, names, sources):
    gaps.remark(
        "Double precision. PCSR-II: equal nonzeros per GPU. PCSR-I, equal rows, is in the tables: on stand-ins the two cannot be told apart."
    )
    if sources:
        ways = {
            f"{r['kernel']}, {r['exchange']} ({' or '.join(r['step_ms'])})"
            for number, (_, best) in found.items()
            for (m, _), r in best.items()
            if m in names and PARALLEL[number][2]
        }
        gaps.remark(
            f"PCSR: our implementation of it, kernel pcsr (pcsr_texture with plain loads), with communication exchange parts, as a CUDA graph. Our fastest kernel, exchange and launch: {'; '.join(sorted(ways))}. "
            "Each kernel is compared with itself on one GPU, in the faster of the ways measured there, with or without exchange; so a higher efficiency is no shorter time. "
            "Ours is not drawn without communication: only graphs were measured so, and on one GPU a persistent kernel may be faster. Above 100%: each GPU has an L2 of its own for its part of the matrix."
        )
        gaps.remark("Warm: one step follows the other.")
    if made := sum(sources.get(m) == "stand-in" for m in names):
        gaps.remark(f"{STAND_IN[:-1]}: {made} of {len(names)} matrices.")
    for gpus in (2, 4):
        for which, (label, records) in enumerate(
            (("PCSR", "published"), ("our fastest", "parallel"))
        ):
            of = [found[n][which] for n, (_, count, _) in PARALLEL.items() if count == gpus]
            if missing := [m for m in names if not all((m, "II") in each for each in of)]:
                what = f"{label} on {style.listed(missing)}" if any(of) else label
                said = f"Not measured yet on {gpus} GPUs ({data.device}): {what}"
                gaps.remark(f"{said}; `make bench SET={records}`.")


def parallel_message(gpus, theirs, own, best, device):
    """The means are of the matrices that the paper and we have."""
    if not own:
        return f"With communication, {gpus} {GPU}s reached {mean_percent(theirs):.0f}% of ideal"
    there = {m: theirs[m] for m in own}
    text = f"With communication, {gpus} {GPU}s reached {mean_percent(there):.0f}% of ideal; "
    text += f"{gpus} {style.brief(device)}s reach {mean_percent(own):.0f}%"
    if best.keys() == own.keys():
        text += f" in our version of its way and {mean_percent(best):.0f}% in our own"
    shorter = median(there[m][0] / own[m][0] for m in own)
    text += f", with products that take {shorter:.0f} times less time"
    return text + f" (on {len(own)} of {len(theirs)} matrices)" * (len(own) < len(theirs))


def parallel_figure(data, gaps):
    """Figures 7 to 10: parallel efficiency of PCSR-II on 2 and 4 GPUs, without and with the
    exchange of x, over the time on one GPU."""
    names = published("he_gao_2016_table3").matrices()
    found = {
        number: [efficiencies(data, gpus, exchange, ours=ours) for ours in (False, True)]
        for number, (_, gpus, exchange) in PARALLEL.items()
    }
    every = [(key, r) for of in found.values() for each in of for key, r in each.items()]
    sources = {m: r["source"] for (m, _), r in every if m in names}
    theirs = {number: published_efficiencies(number) for number in PARALLEL}
    own, best = (
        {n: time_and_efficiency(found[n][which], names) for n in PARALLEL} for which in (0, 1)
    )
    device, last = style.brief(data.device), max(PARALLEL)
    message = parallel_message(PARALLEL[last][1], theirs[last], own[last], best[last], device)
    figure = style.new_figure(5.6, message)
    panels = figure.subplots(2, 2, sharex=True, sharey=True)
    for axes, number in zip(panels.flat, PARALLEL):
        parallel_panel(axes, number, theirs[number], own[number], best[number], sources)
    axes.set_xlim(right=2.5 * axes.get_xlim()[1])  # room for the means
    style.decimal(axes.xaxis)
    figure.supylabel("parallel efficiency, %", fontsize=style.SMALLEST)
    figure.supxlabel("milliseconds of a product on one GPU", fontsize=style.SMALLEST)
    ours = f"{device}s"
    entries = [(style.sample("D", style.THEIRS, "-"), f"{GPU}s")]
    if sources:
        entries += [(style.sample("o", style.OURS, "-"), ours)]
        entries += [(style.sample(line="--"), "our fastest way")]
        entries += style.source_key(sources.values(), style.OURS)[-1:]
    style.legend(figure, [*entries, (style.sample(), "lines: means")])
    for label, which in ((ours, 0), ("our fastest way", 1)):
        of = [item for n in PARALLEL for item in found[n][which].items()]
        gaps.shows(label, [r for (m, way), r in of if m in names and way == "II"])
    sources = {m: sources.get(m) or data.source(m) for m in names if sources}
    parallel_notes(data, gaps, found, names, sources)
    return figure


def faster_with(number):
    """The matrices that the paper's tables have in less time with communication than without, in
    both partitions or one."""
    without = {row["matrix"]: row for row in published(f"he_gao_2016_table{number - 2}")}
    found = []
    for row in published(f"he_gao_2016_table{number}"):
        pairs = {
            w: [float(of[f"time_{w}"]) for of in (row, without[row["matrix"]])]
            for w in WAYS.values()
        }
        if ways := [way for way, (one, other) in pairs.items() if one < other]:
            found.append(row["matrix"] + f" (PCSR-{ways[0]})" * (len(ways) == 1))
    return found


def parallel_table(number, data):
    gpus, exchange = next((g, e) for t, g, e in PARALLEL.values() if t == number)
    own = efficiencies(data, gpus, exchange)

    def cells(row, way):
        theirs = [row[f"{what}_{way}"] for what in ("time", "sd", "efficiency")]
        if not (r := own.get((row["matrix"], way))):
            return theirs + [DASH] * 3
        times = [f"{r[name]:.4f}" for name in ("best_step_ms", "busy_deviation_ms")]
        return [*theirs, *times, f"{r['percent']:.2f}"]

    columns = ["matrix", "C2050: one GPU, ms"]
    for way in ("I", "II"):
        for where in ("C2050", data.device):
            columns += [f"{where}, PCSR-{way}: ms", "sd", "efficiency, %"]
    sources = {matrix: record["source"] for (matrix, _), record in own.items()}
    rows = [
        [starred(row["matrix"], sources.get(row["matrix"])), row["one_gpu"]]
        + cells(row, "I")
        + cells(row, "II")
        for row in published(f"he_gao_2016_table{number}")
    ]
    words = f"{'with' if exchange else 'without'} communication on {gpus} GPUs"
    notes = ["Double precision. Ours: our implementation of the published kernel"]
    notes[0] += " and exchange." if exchange else "."
    if exchange and (faster := faster_with(number)):
        said = f"There, faster with communication than without (table {number - 2})"
        notes.append(f"{said}: {style.listed(faster)}.")
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
        "{rows}|{nonzeros}|{nonzeros_a_row}|{description}",
        {"nonzeros": "{matrix[nnz]}", "per row": "{mean_row:.2f}", "longest row": "{max_row}"},
        notes=[REBUILT],
    )


NOT_DRAWN = {
    "figure 6": "where the nonzeros of af_shell9 and cont-300 are. Only a stand-in of af_shell9 is here, which knows its sizes but not its "
    "structure, and the order of cont-300's rows is assumed: pictures of them would not be the paper's."
}
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
