"""Bylina, Bylina and Karwacki 2011: storage formats on Markov chains (tables 2 to 7, figures 10 to 12)."""

import functools

import style
from published import published
from records import milliseconds
from tables import Table, cell, looks_table

PAPER = "Bylina, Bylina and Karwacki 2011"
GPU, CPU = "Tesla C2050", "Core i7 950 with MKL"
# The paper's formats, as CUSP's kernels multiply them, and the kernel that stands for each here.
FORMATS = {"coo": ["coo"], "csr": ["csr_vector_shared"], "ell": ["ell"], "hyb": ["hyb"]}
HOSTS = {
    "mkl_csr": "oneMKL",
    "eigen_csr": "Eigen",
    "csr_openmp": "csr_openmp",
}  # kernels of the CPU; the paper's is MKL
COLOURS = [style.GREY, style.ORANGE, style.SKY, style.GREEN, style.BLUE]
SMALL = 200_000  # nonzeros of a chain in figure 11
PRODUCTS = 1000  # how many the times of tables 4 and 6 must be of
SIGNS = {"over": ">", "in excess of": ">", "about": "≈"}


def matrices_of(table):
    """Those of tables 4 and 5 are in table 2, those of 6 and 7 in table 3."""
    return published(f"bylina_2011_table{table // 2}")


def host(data, table):
    """The first of HOSTS that was measured on all matrices of a table: a change of library must not look like one of matrix."""
    return next(
        (
            kernel
            for kernel in HOSTS
            if all(
                (m, p, kernel) in data.times
                for m in matrices_of(table).matrices()
                for p in style.PRECISIONS
            )
        ),
        "csr_openmp",
    )


def host_note(data, table, cpu):
    """Which library on which processor, with how many threads, and what its times leave out."""
    of = [
        data.times[m, p, cpu]
        for m in matrices_of(table).matrices()
        for p in style.PRECISIONS
        if (m, p, cpu) in data.times
    ]
    if not of:
        return f"CPU: {HOSTS[cpu]} on the host of the GPU (the paper: MKL)."
    before = max(r.get("preprocess_ms", 0) for r in of)
    return (
        f"CPU: {HOSTS[cpu]} (the paper: MKL) on the host of the GPU, {of[0].get('processor', 'a CPU')}; the records do not say with how many threads."
        + f" Not in its times: up to {cell(before)} ms of preprocess per matrix." * (before >= 0.01)
    )


def remark(data, table):
    """What multiplies, and how much faster oneMKL is than a slower library where it was measured, too."""
    cpu = host(data, table)
    faster = {
        m: milliseconds(data.times[m, "f32", cpu]) / milliseconds(data.times[m, "f32", "mkl_csr"])
        for m in matrices_of(table).matrices()
        if cpu != "mkl_csr" and (m, "f32", "mkl_csr") in data.times
    }
    return (
        "COO, ELL, HYB: kernels coo, ell and hyb of step 08; CSR: csr_vector_shared, a warp per row as in the paper's figure 9; "
        + host_note(data, table, cpu)
        + (
            f" oneMKL was measured on {style.listed(faster)} only, and is {cell(min(faster.values()))} to {cell(max(faster.values()))} times "
            "as fast there, in single precision."
            if faster
            else ""
        )
    )


def picture(number, table, keep, title):
    """GFLOP/s of the formats: ours in both precisions, and beside them those of the paper's times."""

    def draw(data, gaps):
        sizes, cpu = matrices_of(table).nonzeros(), host(data, table)
        theirs = {
            row["matrix"]: row
            for row in published(f"bylina_2011_table{table}")
            if keep(sizes[row["matrix"]])
        }
        names = data.in_order(theirs)
        processor = next(
            (r["processor"].replace("(R)", "") for r in data.times.values() if r["kernel"] == cpu),
            "CPU",
        )
        figure = style.new_figure(
            9.4, 7.2, f"{PAPER}, figure {number}: speed of storage formats, {title}", larger=1
        )
        for axes, precision in zip(figure.subplots(2, 1), ("f32", "f64")):
            series = [
                style.series(
                    gaps,
                    f"{processor}: CSR, {HOSTS[cpu]}" if kernel == "cpu" else kernel.upper(),
                    names,
                    precision,
                    patterns,
                    gpu=kernel != "cpu",
                    theirs=[2e-9 * PRODUCTS * sizes[m] / float(theirs[m][kernel]) for m in names]
                    if precision == "f32"
                    else [],
                )
                for kernel, patterns in {"cpu": [cpu], **FORMATS}.items()
            ]
            style.dots_of(axes, gaps, names, series, f"{GPU}; CPU: {CPU} (table {table})", COLOURS)
            style.one_triangle(gaps, names, sizes, axes)
            if precision == "f64":
                (said,) = published("bylina_2011_text").where(
                    figure=str(number), what="max_gflops", precision="f64"
                )
                axes.axhline(float(said["value"]), color=style.BLACK, linewidth=1.2, linestyle="--")
                axes.text(
                    0.99,
                    float(said["value"]),
                    f"greatest of {GPU}: {SIGNS[said['words'].split(',')[0]]} {said['value']} GFLOP/s (text)",
                    transform=axes.get_yaxis_transform(),
                    ha="right",
                    va="center",
                    bbox={"facecolor": "white", "edgecolor": "none", "pad": 1},
                )
            style.panel(
                axes,
                f"{data.device} and its host, {style.PRECISIONS[precision]}, warm",
                "GFLOP/s",
                5,
            )
        gaps.remark(
            f"The paper does not say of how many products its times are; {PRODUCTS} fit its text. Matrices in the order of their nonzeros"
            + (
                f". Which chains are small the text does not say: here those of up to {SMALL:,} nonzeros."
                if table == 6
                else ", stand-ins last."
            )
            + f" {remark(data, table)} {style.WARM}"
            + "".join(f" {note}" for note in too_scattered(table // 2, data))
        )
        if uneven := {
            r["matrix"]: r
            for r in gaps.found
            if milliseconds(r, quartile="upper") > 1.5 * milliseconds(r)
        }:
            gaps.remark(
                f"Of {style.listed(uneven)} the slowest of the processes took up to "
                f"{cell(max(milliseconds(r, quartile='upper') / milliseconds(r) for r in gaps.found))} times as long as the median; the records do not say why."
            )
        return figure

    draw.__doc__ = f"GFLOP/s of COO, CSR, ELL and HYB on {title}."
    return draw


def too_scattered(number, data):
    """A note on the stand-ins whose nonzeros lie more than twice as far from the diagonal as the paper prints, or less than half."""
    ratios = {}
    for row in published(f"bylina_2011_table{number}"):
        info = data.shapes.get(row["matrix"])
        if info and info["matrix"]["source"] == "stand-in":
            ratios[row["matrix"]] = info["dispersion"] / float(row["dispersion"])
    said = [f"{m} {cell(r)} times" for m, r in ratios.items() if not 0.5 <= r <= 2]
    return [
        f"Stand-ins that are scattered otherwise than the paper's dispersions say: {', '.join(said)}."
    ] * bool(said)


def sizes_table(number, data):
    return looks_table(
        f"{PAPER}, table {number}: the matrices, and what stands for them here",
        data,
        published(f"bylina_2011_table{number}"),
        ["rows", "nonzeros", "in a column", "density", "dispersion"],
        lambda row: [
            row["rows"],
            row["nonzeros"],
            f"{row['min']} to {row['max']}",
            row["density"],
            row["dispersion"],
        ],
        {
            "nonzeros": lambda info: str(info["matrix"]["nnz"]),
            "in a column": lambda info: f"{info['min_col']} to {info['max_col']}",
            "density": lambda info: f"{info['mean_row']:.2f}",
            "dispersion": lambda info: f"{info['dispersion']:.6f}",
        },
        notes=too_scattered(number, data),
    )


def times_table(number, data):
    rows = []
    for row in published(f"bylina_2011_table{number}"):
        cells = [data.label(row["matrix"])]
        for kernel, patterns in {"cpu": [host(data, number)], **FORMATS}.items():
            record = data.fastest(row["matrix"], "f32", patterns, kernel != "cpu")
            cells += [
                cell(1e6 * float(row[kernel]) / PRODUCTS),
                cell(record and 1e3 * milliseconds(record)),
            ]
        rows.append(cells)
    columns = ["matrix", f"CPU, CSR: {CPU}", f"here, {HOSTS[host(data, number)]}"] + [
        text for k in FORMATS for text in (f"{k.upper()}: C2050", data.device)
    ]
    return Table(
        f"{PAPER}, table {number}: microseconds per product, single precision",
        columns,
        rows,
        [
            f"The paper's seconds are taken to be those of {PRODUCTS} products. Ours: warm.",
            remark(data, number),
        ],
        dash=f"is not measured yet: `{style.COMMAND}`.",
    )


def speedup(data, matrix, kernel, cpu):
    """Times as fast as a kernel of the CPU beside the GPU, or None."""
    cpu = data.fastest(matrix, "f32", [cpu], gpu=False)
    gpu = data.fastest(matrix, "f32", FORMATS[kernel])
    return milliseconds(cpu) / milliseconds(gpu) if cpu and gpu else None


def speedups_table(number, data):
    rows = [
        [data.label(row["matrix"])]
        + [
            text
            for k in FORMATS
            for text in (row[k], cell(speedup(data, row["matrix"], k, host(data, number))))
        ]
        for row in published(f"bylina_2011_table{number}")
    ]
    columns = ["matrix"] + [text for k in FORMATS for text in (f"{k.upper()}: C2050", data.device)]
    return Table(
        f"{PAPER}, table {number}: times as fast as the CPU, single precision",
        columns,
        rows,
        [remark(data, number)],
        dash=f"is not measured yet: `{style.COMMAND}`.",
    )


FIGURES = {
    "bylina_2011_figure10": picture(10, 4, lambda nnz: True, "the first set of matrices"),
    "bylina_2011_figure11": picture(11, 6, lambda nnz: nnz <= SMALL, "small Markov matrices"),
    "bylina_2011_figure12": picture(12, 6, lambda nnz: nnz > SMALL, "bigger Markov matrices"),
}
TABLES = {
    **{f"bylina_2011_table{n}": functools.partial(sizes_table, n) for n in (2, 3)},
    **{f"bylina_2011_table{n}": functools.partial(times_table, n) for n in (4, 6)},
    **{f"bylina_2011_table{n}": functools.partial(speedups_table, n) for n in (5, 7)},
}
