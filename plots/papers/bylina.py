"""Bylina, Bylina and Karwacki 2011: storage formats on Markov chains (tables 2 to 7, figures 10 to 12)."""

import functools
import math
from collections import Counter

import style
from published import published
from records import fastest_of, gflops, milliseconds
from tables import Table, cell, looks_table

PAPER = "Bylina, Bylina and Karwacki 2011"
GPU, CPU = "Tesla C2050", "Core i7 950 with MKL"
# The paper's formats, as CUSP's kernels multiply them, and the kernel that stands for each here.
FORMATS = {"coo": ["coo"], "csr": ["csr_vector_shared"], "ell": ["ell"], "hyb": ["hyb"]}
# Kernels of the CPU; the paper's is MKL.
HOSTS = {"mkl_csr": "oneMKL", "eigen_csr": "Eigen", "csr_openmp": "csr_openmp"}
LOOKS = {  # of a format: colour and mark
    "cpu": (style.GREY, "x"),
    **{f: (style.COLOURS[f.upper()], mark) for f, mark in zip(FORMATS, "vso^")},
}
SMALL = 200_000  # nonzeros of a chain in figure 11
APART = 0.17  # marks of a row, one below the other
PRODUCTS = 1000  # how many the times of tables 4 and 6 must be of


def matrices_of(table):
    """Those of tables 4 and 5 are in table 2, those of 6 and 7 in table 3."""
    return published(f"bylina_2011_table{table // 2}")


def host(data, table):
    """The first of HOSTS that was measured on all matrices of a table: a change of library must not
    look like one of matrix."""
    names, every = matrices_of(table).matrices(), 2 * len(matrices_of(table))
    there = {
        k: sum((m, p, k) in data.times for m in names for p in style.PRECISIONS) for k in HOSTS
    }
    return next((kernel for kernel in HOSTS if there[kernel] == every), "csr_openmp")


def host_note(data, table, cpu):
    """Which library on which processor, with how many threads, and what its times leave out."""
    keys = [(m, p, cpu) for m in matrices_of(table).matrices() for p in style.PRECISIONS]
    of = [data.times[key] for key in keys if key in data.times]
    if not of:
        return f"CPU: {HOSTS[cpu]} on the host of the GPU (the paper: MKL)."
    before = max(r.get("preprocess_ms", 0) for r in of)
    threads = sorted({r["threads"] for r in of if "threads" in r})
    threads = f"{', '.join(map(str, threads))} threads" * bool(threads)
    threads = threads or "the records do not say with how many threads"
    return (
        f"CPU: {HOSTS[cpu]} (the paper: MKL) on the host of the GPU, {of[0].get('processor', 'a CPU')}; {threads}."
        + f" Not in its times: up to {cell(before)} ms of preprocess per matrix." * (before >= 0.01)
    )


def remark(data, table):
    """What multiplies."""
    text = "COO, ELL, HYB: kernels coo, ell and hyb of step 08; CSR: csr_vector_shared, a warp per row as "
    return text + f"in the paper's figure 9; {host_note(data, table, host(data, table))}"


def panel(axes, rates, names, title, first):
    """Marks in a row per matrix, all series beside each other within it; those of `first`, the
    fastest in each row, are large."""
    firsts = dict(zip(names, first))
    for k, (name, (colour, mark)) in enumerate(LOOKS.items()):
        for size, large in ((4, False), (9, True)):
            at = {
                m: (rates[name][m], y + APART * (k - 2))
                for y, m in enumerate(names)
                if m in rates[name] and (name in firsts.get(m, ())) == large
            }
            look = {"markersize": size, "zorder": 3 if large else 2}
            look |= {"markeredgecolor": "white"} if large else {}
            style.points(axes, at, dict.fromkeys(at, "file"), colour, mark, name, **look)
    axes.set(xscale="log", title=title, xlabel="GFLOP/s")
    axes.margins(x=0.1)
    style.decimal(axes.xaxis)


def message(now, then, title, device):
    """On how many matrices the format is the fastest that is so on most, and on how many it was."""
    counts = Counter(f for of in now or then for f in of)
    most = max(counts.values())
    first = sorted(f for f in counts if counts[f] == most)
    several = len(first) > 1
    tied = f" (or tie{'' if several else 's'})" * any(len(of) > 1 for of in now)
    before = " and ".join(str(sum(f in of for of in then)) for f in first)
    return (
        f"{' and '.join(f.upper() for f in first)} {'are' if several else 'is'} the fastest format{'s' * several}{tied} "
        f"on {sum(first[0] in of for of in now)} of {len(now)} {title}{' each' * several} on an {device}; "
        f"on a {GPU} {'they were' if several else 'it was'} on {before}"
    )


def picture(number, table, keep, title):
    """GFLOP/s of the formats in single precision, those of the paper's times beside ours."""

    def draw(data, gaps):
        sizes, cpu = matrices_of(table).nonzeros(), host(data, table)
        times = {row["matrix"]: row for row in published(f"bylina_2011_table{table}")}
        names = data.in_order({m: row for m, row in times.items() if keep(sizes[m])})
        patterns = {"cpu": [cpu], **FORMATS}
        theirs = {
            f: {m: 2e-9 * PRODUCTS * sizes[m] / float(times[m][f]) for m in names} for f in patterns
        }
        found = {
            (p, f): {m: r for m in names for r in [gaps.find(f.upper(), m, p, of, f != "cpu")] if r}
            for p in style.PRECISIONS
            for f, of in patterns.items()
        }
        own = {f: {m: gflops(r) for m, r in found["f32", f].items()} for f in patterns}
        then = [[max(FORMATS, key=lambda f: theirs[f][m])] for m in names]
        now = fastest(found, "f32")
        told = message(now, then, title, style.brief(data.device))
        figure = style.new_figure(1.5 + 0.42 * len(names), told)
        made = [m for m in names if data.source(m) == "generated"]
        if made == names:
            gaps.remark("All matrices are generated, as the paper's were.")
        elif made:
            gaps.remark(f"Generated: {style.listed(made)}.")
        left, right = figure.subplots(1, 2, sharey=True)
        panel(left, theirs, names, f"{GPU}, 2011", then)
        panel(right, own, names, data.device, now)
        for (precision, f), of in found.items():
            if precision == "f32":
                at = [names.index(m) + APART * (list(LOOKS).index(f) - 2) for m in of]
                ends = [[gflops(r, "warm", end) for r in of.values()] for end in ("upper", "lower")]
                right.hlines(at, *ends, color=LOOKS[f][0], linewidth=1)
        for axes in (left, right):
            style.rows(axes, [data.label(name) for name in names])
            style.bands(axes, len(names))
        entries = [
            (style.sample(mark, colour), "CPU" if f == "cpu" else f.upper())
            for f, (colour, mark) in LOOKS.items()
        ]
        large = style.sample("o", markersize=8), "large: fastest format, or a tie"
        style.legend(figure, [*entries, large])
        gaps.remark(
            f"Large: the fastest of the formats in a row, and what ties with it: {said(then)} on a {GPU}; {said(now) or 'not measured'} here. "
            "Marks of formats are full whatever was multiplied. Lines: quartiles."
        )
        best = {
            m: max((own[f][m] for f in FORMATS if m in own[f]), default=math.inf) for m in names
        }
        if led := [m for m in names if own["cpu"].get(m, 0) > best[m]]:
            said_of = f"On {style.listed(led)} the CPU is faster than each format"
            gaps.remark(f"{said_of} on the {data.device}.")
        caption(data, gaps, number, table, found, sizes, names)
        return figure

    what = f"GFLOP/s of COO, CSR, ELL and HYB on {title}, in single precision"
    draw.__doc__ = f"Figure {number}: {what}."
    return draw


def too_scattered(number, data):
    """A note on the stand-ins whose nonzeros lie more than twice as far from the diagonal as the
    paper prints, or less than half."""
    ratios = {}
    for row in published(f"bylina_2011_table{number}"):
        info = data.shapes.get(row["matrix"])
        if info and info["matrix"]["source"] == "stand-in":
            ratios[row["matrix"]] = info["dispersion"] / float(row["dispersion"])
    said = ", ".join(f"{m} {cell(r)} times" for m, r in ratios.items() if not 0.5 <= r <= 2)
    text = f"Stand-ins that are scattered otherwise than the paper's dispersions say: {said}."
    return [text] * bool(said)


def fastest(found, precision):
    """Of each matrix the fastest formats."""
    every = {m: {f: found[precision, f].get(m) for f in FORMATS} for m in found[precision, "csr"]}
    return list(map(fastest_of, every.values()))


def said(first):
    """On how many matrices which format is the fastest."""
    counts = Counter(f for of in first for f in of).most_common()
    texts = [f"{f.upper()} on {n}" for f, n in counts]
    text = " and ".join(filter(None, [", ".join(texts[:-1]), *texts[-1:]]))
    return text + " (ties count for both)" * any(len(of) > 1 for of in first)


def caption(data, gaps, number, table, found, sizes, names):
    style.one_triangle(gaps, names, sizes)
    doubles = fastest(found, "f64")
    of_f64 = {"figure": str(number), "what": "max_gflops", "precision": "f64"}
    [greatest] = published("bylina_2011_text").where(**of_f64)
    most = max((gflops(r) for f in FORMATS for r in found["f64", f].values()), default=math.nan)
    gaps.remark(
        f"CPU: {CPU} in 2011. In double precision the fastest is {said(doubles) or 'not measured'}; "
        f"the greatest speed was {greatest['words'].split(',')[0]} {greatest['value']} GFLOP/s there and is {cell(most)} here."
    )
    order = (
        f". Which chains are small the text does not say: here those of up to {SMALL:,} nonzeros."
    )
    if table != 6:
        order = ", stand-ins last."
    parts = [remark(data, table), style.WARM, *too_scattered(table // 2, data)]
    gaps.remark(
        f"The paper does not say of how many products its times are; {PRODUCTS} fit its text (table {table}). "
        f"Matrices in the order of their nonzeros{order} {' '.join(parts)}"
    )
    over = [
        (milliseconds(r, quartile="upper") / milliseconds(r), r["matrix"]) for r in gaps.records()
    ]
    if uneven := {matrix for ratio, matrix in over if ratio > 1.5}:
        said_of = f"On {style.listed(sorted(uneven))} the slowest of the processes took up to"
        most = f"{cell(max(over)[0])} times as long as the median"
        gaps.remark(f"{said_of} {most}; the records do not say why.")


def sizes_table(number, data):
    return looks_table(
        f"{PAPER}, table {number}: the matrices, and what stands for them here",
        data,
        published(f"bylina_2011_table{number}"),
        ["rows", "nonzeros", "in a column", "density", "dispersion"],
        "{rows}|{nonzeros}|{min} to {max}|{density}|{dispersion}",
        {
            "nonzeros": "{matrix[nnz]}",
            "in a column": "{min_col} to {max_col}",
            "density": "{mean_row:.2f}",
            "dispersion": "{dispersion:.6f}",
        },
        notes=too_scattered(number, data),
    )


def times_table(number, data):
    rows, cpu = [], host(data, number)
    for row in published(f"bylina_2011_table{number}"):
        cells = [data.label(row["matrix"])]
        for kernel, patterns in {"cpu": [cpu], **FORMATS}.items():
            record = data.fastest(row["matrix"], "f32", patterns, kernel != "cpu")
            theirs, own = 1e6 * float(row[kernel]) / PRODUCTS, record and 1e3 * milliseconds(record)
            cells += [cell(theirs), cell(own)]
        rows.append(cells)
    note = f"The paper's seconds are taken to be those of {PRODUCTS} products. Ours: warm."
    return Table(
        f"{PAPER}, table {number}: microseconds per product, single precision",
        ["matrix", f"CPU, CSR: {CPU}", f"here, {HOSTS[cpu]}", *heads(data)],
        rows,
        [note, remark(data, number)],
        dash=style.NOT_YET,
    )


def heads(data):
    return [text for k in FORMATS for text in (f"{k.upper()}: C2050", data.device)]


def speedup(data, matrix, kernel, cpu):
    """Times as fast as a kernel of the CPU beside the GPU, or None."""
    cpu = data.fastest(matrix, "f32", [cpu], gpu=False)
    gpu = data.fastest(matrix, "f32", FORMATS[kernel])
    return milliseconds(cpu) / milliseconds(gpu) if cpu and gpu else None


def speedups_table(number, data):
    rows, cpu = [], host(data, number)
    for row in published(f"bylina_2011_table{number}"):
        pairs = [(row[k], cell(speedup(data, row["matrix"], k, cpu))) for k in FORMATS]
        rows.append([data.label(row["matrix"]), *sum(pairs, ())])
    title = f"{PAPER}, table {number}: times as fast as the CPU, single precision"
    columns, notes = ["matrix", *heads(data)], [remark(data, number)]
    return Table(title, columns, rows, notes, dash=style.NOT_YET)


FIGURES = {
    "bylina_2011_figure10": picture(10, 4, lambda nnz: True, "matrices of the first set"),
    "bylina_2011_figure11": picture(11, 6, lambda nnz: nnz <= SMALL, "small Markov matrices"),
    "bylina_2011_figure12": picture(12, 6, lambda nnz: nnz > SMALL, "bigger Markov matrices"),
}
TABLES = {
    **{f"bylina_2011_table{n}": functools.partial(sizes_table, n) for n in (2, 3)},
    **{f"bylina_2011_table{n}": functools.partial(times_table, n) for n in (4, 6)},
    **{f"bylina_2011_table{n}": functools.partial(speedups_table, n) for n in (5, 7)},
}
