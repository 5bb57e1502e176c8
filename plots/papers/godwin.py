"""Godwin, Holewinski and Sadayappan 2012: the column-diagonal format on structured grids (figures 7
and 8)."""

import re

import style
from published import published
from records import bandwidth, data_sheet, gflops

PAPER = "Godwin, Holewinski and Sadayappan 2012"
# The paper's CSR is PETSc's, whose products on NVIDIA GPUs are cuSPARSE's today.
FORMATS = {
    "CDS": ["cds_texture"],
    "CDS, ours": ["cds", "cds_sliced"],
    "DIA": ["dia"],
    "ELL": ["ell"],
    "CSR": ["cusparse_csr_*", "cusparse_spmvop_*"],
    "cuSPARSE, sliced ELL": ["cusparse_sell_*"],
}
OF_FIGURE_8 = ["CDS", "CDS, ours", "DIA"]  # what it compares
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
    return (
        "The paper's figure is lost, and its text gives no numbers. It says: "
        + "; ".join(row["words"] for row in said)
        + "."
    )


def above_dia(data, of, precision):
    """Where the paper's kernel has the higher bandwidth, of the grids `of` with several degrees of freedom; and of how many."""
    pairs = [
        [data.fastest(m, precision, FORMATS[format], state="cold") for format in ("CDS", "DIA")]
        for dof, m in of.items()
        if dof > 1
    ]
    higher = [bandwidth(cds, "cold") > bandwidth(dia, "cold") for cds, dia in pairs if cds and dia]
    return sum(higher), len(higher)


def curve(axes, records, value, state, l2, **look):
    """A format's rates over degrees of freedom, with their spread; dotted is what fits in an L2 of so many bytes."""
    dofs, there = list(records), list(records.values())
    rates = [value(r, state=state) for r in there]
    # They grow with the degrees of freedom.
    fit = sum(r["compulsory_bytes"] <= (l2 or 0) for r in there)
    colour = look["color"]
    axes.plot(dofs[: fit + 1], rates[: fit + 1], ":", linewidth=1.2, color=colour)
    axes.plot(dofs[fit:], rates[fit:], linewidth=1.2, color=colour)
    below = [rate - value(r, state, "upper") for rate, r in zip(rates, there)]
    above = [value(r, state, "lower") - rate for rate, r in zip(rates, there)]
    axes.errorbar(dofs, rates, markersize=4.5, elinewidth=0.8, yerr=[below, above], **look)


def said_in(number, data, of, precision):
    """What a panel of that figure says of CDS and DIA, or nothing."""
    if number == 8:
        return "CDS above DIA: {} of {}".format(*above_dia(data, of, precision))
    first = of[min(of)]
    ratio = data.speedups([first], precision, FORMATS["CDS"], FORMATS["DIA"])
    return f"CDS / DIA at {min(of)}: {ratio[first]:.2f}" if ratio else ""


def picture(number, title, unit, value, state):
    def draw(data, gaps):
        every = {
            grid: of
            for grid, of in grids(data).items()
            if any(data.fastest(m, p, FORMATS["CDS"]) for m in of.values() for p in ("f32", "f64"))
        }
        gaps.remark(statements(number))
        if not every:
            gaps.remark(
                "No records of CDS on grids with several unknowns a point: "
                f"`{style.COMMAND} KERNELS='cds*,dia*,ell*,cusparse_*'`."
            )
            return None
        most = max(dof for of in every.values() for dof in of)
        if fewer := [f"{grid} above {max(of)}" for grid, of in every.items() if max(of) < most]:
            gaps.remark(
                f"Not measured yet: degrees of freedom of {', '.join(fewer)}; `{style.COMMAND}`."
            )
        figure = style.new_figure(
            max(2.6 * len(every), 9),
            6.8,
            f"{PAPER}, figure {number}: {title}, {data.device}, {state}",
            larger=1,
        )
        copy = max(
            (r["copy_gb_per_s"] for r in data.times.values() if "copy_gb_per_s" in r), default=None
        )
        limits = (
            {"--": ("a copy", copy), ":": ("data sheet", data_sheet(data.device))}
            if number == 8
            else {}
        )
        l2 = (
            data_sheet(data.device, "l2_bytes") if state == "warm" else None
        )  # of what fits in there the lines are dotted
        for line, precision in zip(
            figure.subplots(2, len(every), sharey="row", squeeze=False), ("f32", "f64")
        ):
            for axes, (name, of) in zip(line, every.items()):
                for (label, patterns), colour, marker in zip(
                    FORMATS.items(), COLOURS, style.MARKERS
                ):
                    if number == 8 and label not in OF_FIGURE_8:
                        continue
                    found = {
                        dof: gaps.find(label, m, precision, patterns, state=state)
                        for dof, m in of.items()
                    }
                    records = {dof: r for dof, r in found.items() if r}
                    curve(axes, records, value, state, l2, fmt=marker, label=label, color=colour)
                for dashes, (label, rate) in limits.items():
                    if rate:
                        axes.axhline(
                            rate,
                            color=style.BLACK,
                            linewidth=0.8,
                            linestyle=dashes,
                            label=f"{label}, {rate:.0f} GB/s",
                        )
                if text := said_in(number, data, of, precision):
                    axes.text(0.97, 0.05, text, transform=axes.transAxes, ha="right")
                axes.set_title(f"{name}, {precision}")
                axes.set_xlabel("degrees of freedom")
                axes.set_xticks(list(of))
            line[0].set_ylim(bottom=0)  # of all, once every line is there
            line[0].set_ylabel(unit)
        if l2:
            figure.axes[0].plot(
                [], [], ":", color=style.BLACK, label=f"fits in the L2, {l2 / 1e6:.0f} MB"
            )
        style.legend_below_title(figure, *figure.axes[0].get_legend_handles_labels())
        gaps.remark(
            "Lines up and down: spread. CDS: the paper's, cds_texture; ours: the faster of cds and cds_sliced. DIA"
            + " and ELL" * (number == 7)
            + ": ours, of step 08; "
            "the paper's DIA was Cusp's."
            + " CSR: cuSPARSE's fastest, which PETSc's is today. Sliced ELL: on most of these grids cuSPARSE's fastest format."
            * (number == 7)
            + " The grids are generated, as the paper's; of its sizes the text names 64 x 64 x 64 alone."
            + (
                " Of a format that takes over half of the L2 only a part stays there."
                if state == "warm"
                else " Cold: the L2 is flushed before each product. Each format's own bytes over its time: a higher curve is not a faster format. "
                "CDS above DIA: at how many points with several degrees of freedom."
            )
        )
        return figure

    draw.__doc__ = f"{unit} of CDS, DIA, ELL and CSR as degrees of freedom grow."
    return draw


FIGURES = {
    "godwin_2012_figure7": picture(7, "speed across degrees of freedom", "GFLOP/s", gflops, "warm"),
    "godwin_2012_figure8": picture(
        8, "bandwidth", "GB/s of the format's own bytes", bandwidth, "cold"
    ),
}
TABLES = {}
