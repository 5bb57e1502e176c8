"""Bylina, Bylina and Karwacki 2011: storage formats on Markov chains (tables 2 to 7, figures 10 to 12)."""

import functools

import style
from published import published
from records import milliseconds
from tables import Table, cell, looks_table

PAPER = "Bylina, Bylina and Karwacki 2011"
GPU = "Tesla C2050"
# The paper's formats, as CUSP's kernels multiply them, and the kernel that stands for each here.
FORMATS = {"coo": ["coo"], "csr": ["csr_vector_shared"], "ell": ["ell"],
           "hyb": ["hyb"]}
KERNELS = {"cpu": ["mkl_csr", "csr_openmp", "eigen_csr"], **FORMATS}
COLOURS = [style.GREY, style.ORANGE, style.SKY, style.GREEN, style.BLUE]
SMALL = 200_000  # nonzeros of a chain in figure 11
PRODUCTS = 1000  # how many the times of tables 4 and 6 must be of
REMARK = ("COO, ELL, HYB: kernels coo, ell and hyb of step 08; CSR: csr_vector_shared, a warp per row as in the paper's figure 9; "
          "CPU: the fastest of csr_openmp, Eigen and, where it was measured, oneMKL on the host of the GPU; the paper's is MKL.")


def on(kernel):
    return "CPU, CSR" if kernel == "cpu" else kernel.upper()


def picture(number, table, keep, title):
    """GFLOP/s of the formats: ours in both precisions, and beside them those of the paper's times."""

    def draw(data, gaps):
        sizes = published(f"bylina_2011_table{2 if table == 4 else 3}").nonzeros()
        rows = [row for row in published(f"bylina_2011_table{table}") if keep(sizes[row["matrix"]])]
        names, theirs = data.in_order(row["matrix"] for row in rows), {row["matrix"]: row for row in rows}
        figure = style.new_figure(11.5, 7.6, f"{PAPER}, figure {number}: speed of storage formats, {title}")
        for axes, precision in zip(figure.subplots(2, 1), ("f32", "f64")):
            series = [style.series(gaps, on(kernel), names, precision, patterns, gpu=kernel != "cpu", theirs=[
                2e-9 * PRODUCTS * sizes[m] / float(theirs[m][kernel]) for m in names] if precision == "f32" else [])
                for kernel, patterns in KERNELS.items()]
            style.dots_of(axes, gaps, names, series, f"{GPU} and its host (table {table})", COLOURS)
            if precision == "f64":
                said, = published("bylina_2011_text").where(figure=str(number), what="max_gflops", precision="f64")
                axes.axhline(float(said["value"]), color=style.BLACK, linewidth=1.2, linestyle="--",
                             label=f"{GPU}: the greatest, {said['words'].split(',')[0]} {said['value']} GFLOP/s (text)")
            style.panel(axes, f"{data.device}, {style.PRECISIONS[precision]}", "GFLOP/s", 10)
        style.one_triangle(gaps, names, sizes)
        gaps.remark(f"The paper does not say of how many products its times are; {PRODUCTS} fit its text. Matrices in the order of their nonzeros."
                     + f" Which chains are small the text does not say: here those of up to {SMALL:,} nonzeros." * (table == 6) + f" {REMARK} {style.WARM}")
        return figure

    draw.__doc__ = f"GFLOP/s of COO, CSR, ELL and HYB on {title}."
    return draw


def sizes_table(number, data):
    return looks_table(f"{PAPER}, table {number}: the matrices, and what stands for them here", data,
                       published(f"bylina_2011_table{number}"), ["rows", "nonzeros", "in a column", "density", "dispersion"],
                       lambda row: [row["rows"], row["nonzeros"], f"{row['min']} to {row['max']}", row["density"], row["dispersion"]],
                       {"nonzeros": lambda info: str(info["matrix"]["nnz"]),
                        "in a column": lambda info: f"{info['min_col']} to {info['max_col']}",
                        "density": lambda info: f"{info['mean_row']:.2f}", "dispersion": lambda info: f"{info['dispersion']:.6f}"})


def times_table(number, data):
    rows = []
    for row in published(f"bylina_2011_table{number}"):
        cells = [data.label(row["matrix"])]
        for kernel in KERNELS:
            record = data.fastest(row["matrix"], "f32", KERNELS[kernel], kernel != "cpu")
            cells += [cell(1e6 * float(row[kernel]) / PRODUCTS), cell(record and 1e3 * milliseconds(record))]
        rows.append(cells)
    columns = ["matrix"] + [text for k in KERNELS
                            for text in (f"{on(k)}: {'i7 950' if k == 'cpu' else 'C2050'}",
                                         "here" if k == "cpu" else data.device)]
    return Table(f"{PAPER}, table {number}: microseconds per product, single precision", columns, rows,
                 [f"The paper's seconds are taken to be those of {PRODUCTS} products. Ours: warm.", REMARK],
                 dash=f"is not measured yet: `{style.COMMAND}`.")


def speedup(data, matrix, kernel):
    """Times as fast as the CPU beside the GPU, or None."""
    cpu = data.fastest(matrix, "f32", KERNELS["cpu"], gpu=False)
    gpu = data.fastest(matrix, "f32", FORMATS[kernel])
    return milliseconds(cpu) / milliseconds(gpu) if cpu and gpu else None


def speedups_table(number, data):
    rows = [[data.label(row["matrix"])] + [text for k in FORMATS for text in (row[k], cell(speedup(data, row["matrix"], k)))]
            for row in published(f"bylina_2011_table{number}")]
    columns = ["matrix"] + [text for k in FORMATS for text in (f"{on(k)}: C2050", data.device)]
    return Table(f"{PAPER}, table {number}: times as fast as the CPU, single precision", columns, rows,
                 [REMARK], dash=f"is not measured yet: `{style.COMMAND}`.")


FIGURES = {
    "bylina_2011_figure10": picture(10, 4, lambda nnz: True, "the first set of matrices"),
    "bylina_2011_figure11": picture(11, 6, lambda nnz: nnz <= SMALL, "small Markov matrices"),
    "bylina_2011_figure12": picture(12, 6, lambda nnz: nnz > SMALL, "bigger Markov matrices"),
}
TABLES = {**{f"bylina_2011_table{n}": functools.partial(sizes_table, n) for n in (2, 3)},
          **{f"bylina_2011_table{n}": functools.partial(times_table, n) for n in (4, 6)},
          **{f"bylina_2011_table{n}": functools.partial(speedups_table, n) for n in (5, 7)}}
