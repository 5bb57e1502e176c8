"""Godwin, Holewinski and Sadayappan 2012: the column-diagonal format on structured grids (figures 7
and 8)."""

import re

import style
from published import published
from records import bandwidth, gflops

PAPER = "Godwin, Holewinski and Sadayappan 2012"
# The paper's CSR is PETSc's, whose products on NVIDIA GPUs are cuSPARSE's today.
FORMATS = {"CDS": ["cds_texture"], "CDS, ours": ["cds", "cds_sliced"], "DIA": ["dia"], "ELL": ["ell"],
           "CSR": ["cusparse_csr_*", "cusparse_spmvop_*"], "best cuSPARSE": ["cusparse_*"]}
COLOURS = [style.VERMILLION, style.ORANGE, style.BLUE, style.GREEN, style.GREY, style.BLACK]


def grids(data):
    """{grid: {degrees of freedom: matrix}} of grids that were measured with more than one."""
    found = {}
    for name in data.matrices:
        if name.startswith("stencil"):
            dof = re.search(r",dof=(\d+)", name)
            found.setdefault(re.sub(r",dof=\d+", "", name), {})[int(dof[1]) if dof else 1] = name
    return {grid: dict(sorted(of.items())) for grid, of in sorted(found.items()) if len(of) > 1}


def statements(figure):
    said = published("godwin_2012_text").where(figure=str(figure))
    return "The paper's figure is lost, and its text gives no numbers. It says: " + "; ".join(row["words"] for row in said) + "."


def above_dia(data, every):
    """In how many points of figure 8 the paper's kernel has the higher bandwidth."""
    pairs = [[data.fastest(m, p, FORMATS[format], state="cold") for format in ("CDS", "DIA")]
             for p in ("f32", "f64") for of in every.values() for dof, m in of.items() if dof > 1]
    pairs = [pair for pair in pairs if all(pair)]
    higher = sum(bandwidth(cds, "cold") > bandwidth(dia, "cold") for cds, dia in pairs)
    return f"Here CDS has a higher one than DIA in {higher} of {len(pairs)} points with several degrees of freedom."


def picture(number, title, unit, value, state):
    def draw(data, gaps):
        every = {grid: of for grid, of in grids(data).items()
                 if any(data.fastest(m, p, FORMATS["CDS"]) for m in of.values() for p in ("f32", "f64"))}
        gaps.remark(statements(number))
        if not every:
            gaps.remark("No records of CDS on grids with several unknowns a point: "
                        f"`{style.COMMAND} KERNELS='cds*,dia*,ell*,cusparse_*'`.")
            return None
        most = max(dof for of in every.values() for dof in of)
        if fewer := [f"{grid} above {max(of)}" for grid, of in every.items() if max(of) < most]:
            gaps.remark(f"Not measured yet: degrees of freedom of {', '.join(fewer)}; `{style.COMMAND}`.")
        figure = style.new_figure(max(3.1 * len(every), 9), 7, f"{PAPER}, figure {number}: {title}, {data.device}, {state}")
        copy = max((r["copy_gb_per_s"] for r in data.times.values() if "copy_gb_per_s" in r), default=None)
        for line, precision in zip(figure.subplots(2, len(every), sharey="row", squeeze=False), ("f32", "f64")):
            for axes, (name, of) in zip(line, every.items()):
                for (label, patterns), colour, marker in zip(FORMATS.items(), COLOURS, style.MARKERS):
                    records = {dof: gaps.find(label, m, precision, patterns, state=state) for dof, m in of.items()}
                    there = {dof: r for dof, r in records.items() if r}
                    rates = [value(r, state=state) for r in there.values()]
                    axes.plot(list(there), rates, marker=marker, markersize=4.5, linewidth=1.2, color=colour, fillstyle=style.FILLS["generated"],
                              markerfacecoloralt="white", label=label)
                    axes.errorbar(list(there), rates, fmt="none", ecolor=colour, elinewidth=0.8, yerr=[
                        [rate - value(r, state, "upper") for rate, r in zip(rates, there.values())],
                        [value(r, state, "lower") - rate for rate, r in zip(rates, there.values())]])
                if number == 8 and copy:
                    axes.axhline(copy, color=style.BLACK, linewidth=0.8, linestyle="--", label=f"a copy: {copy:.0f} GB/s")
                axes.set_title(f"{name}, {precision}")
                axes.set_xlabel("degrees of freedom")
                axes.set_xticks(list(of))
            line[0].set_ylim(bottom=0)  # of all, once every line is there
            line[0].set_ylabel(unit)
        style.legend_below_title(figure, *figure.axes[0].get_legend_handles_labels())
        gaps.remark("Lines up and down: spread. CDS: the paper's, cds_texture; ours: the faster of cds and "
                    "cds_sliced. CSR: cuSPARSE's fastest, which PETSc's is today. Half marks: generated, as the paper's; of its sizes the text names 64 x 64 x 64 alone."
                    + (" What fits in the L2 is read from there." if state == "warm" else " Cold: the L2 is flushed before each product. Each format's own bytes "
                       "over its time: a higher curve is not a faster format. " + above_dia(data, every) + " Best "
                       "cuSPARSE: of its fastest kernel, whose format may have fewer bytes, as block CSR."))
        return figure

    draw.__doc__ = f"{unit} of CDS, DIA, ELL and CSR as degrees of freedom grow."
    return draw


FIGURES = {
    "godwin_2012_figure7": picture(7, "speed across degrees of freedom", "GFLOP/s", gflops, "warm"),
    "godwin_2012_figure8": picture(8, "bandwidth", "GB/s of the format's own bytes", bandwidth, "cold"),
}
TABLES = {}
