"""Godwin, Holewinski and Sadayappan 2012: the column-diagonal format on structured grids (figures 7
and 8)."""

import re
from statistics import fmean

import style
from published import published
from records import bandwidth, gflops

PAPER = "Godwin, Holewinski and Sadayappan 2012"
# The paper's CSR is PETSc's, whose products on NVIDIA GPUs are cuSPARSE's today.
FORMATS = {
    "CDS": ["cds_texture"],
    "DIA": ["dia"],
    "ELL": ["ell"],
    "CSR": ["cusparse_csr_*", "cusparse_spmvop_*"],
}
# The rivals of figure 7: CSR is cuSPARSE's.
LOOKS = {
    "DIA": (style.COLOURS["DIA"], "o"),
    "ELL": (style.COLOURS["ELL"], "^"),
    "CSR": (style.CUSPARSE, "s"),
}
GENERATED = (
    "The grids are generated, as the paper's; of its sizes the text names 64 x 64 x 64 alone."
)


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
    words = "; ".join(row["words"] for row in said)
    return f"The paper's figure is lost, and its text gives no numbers. It says: {words}."


def above_dia(data, of, precision):
    """Where the paper's kernel has the higher bandwidth, of the grids `of` with several degrees of
    freedom; and of how many."""
    pairs = [
        [data.fastest(m, precision, FORMATS[format], state="cold") for format in ("CDS", "DIA")]
        for dof, m in of.items()
        if dof > 1
    ]
    higher = [bandwidth(cds, "cold") > bandwidth(dia, "cold") for cds, dia in pairs if cds and dia]
    return sum(higher), len(higher)


def all_above_dia(data, every, precision):
    """The same of all grids together."""
    counts = [above_dia(data, of, precision) for of in every.values()]
    return tuple(map(sum, zip(*counts))) or (0, 0)


def measured_grids(data, gaps, number):
    """Those of grids() on which CDS was measured, and remarks on the others."""
    gaps.remark(statements(number))
    every = {
        grid: of
        for grid, of in grids(data).items()
        if any(data.fastest(m, p, FORMATS["CDS"]) for m in of.values() for p in style.PRECISIONS)
    }
    if not every:
        again = f"`{style.COMMAND} KERNELS='cds*,dia*,ell*,cusparse_*'`"
        gaps.remark(f"No records of CDS on grids with several unknowns a point: {again}.")
    most = max((dof for of in every.values() for dof in of), default=0)
    if fewer := [f"{grid} above {max(of)}" for grid, of in every.items() if max(of) < most]:
        missing = f"degrees of freedom of {', '.join(fewer)}"
        gaps.remark(f"Not measured yet: {missing}; `{style.COMMAND}`.")
    return every


def over(gaps, every, precision, rival, value, state):
    """{grid: {degrees of freedom: the value of CDS over that of a rival}}."""
    found = {}
    for grid, of in every.items():
        for dof, m in of.items():
            of_both = [(label, m, precision, FORMATS[label]) for label in ("CDS", rival)]
            cds, other = (gaps.find(*asked, state=state) for asked in of_both)
            if cds and other:
                found.setdefault(grid, {})[dof] = value(cds, state) / value(other, state)
    return found


def by_dof(found):
    """{degrees of freedom: ratios of all grids}."""
    ratios = {}
    for of in found.values():
        for dof, ratio in of.items():
            ratios.setdefault(dof, []).append(ratio)
    return dict(sorted(ratios.items()))


def two_panels(message, unit):
    figure = style.new_figure(3.7, message)
    panels = figure.subplots(1, 2, sharey=True)
    for axes, precision in zip(panels, style.PRECISIONS):
        axes.axhline(1, color=style.BLACK, linewidth=0.8)
        axes.set(title=style.PRECISIONS[precision], xlabel="degrees of freedom")
        axes.xaxis.get_major_locator().set_params(integer=True)
    panels[0].set_ylabel(unit)
    return figure, dict(zip(style.PRECISIONS, panels))


def figure7(data, gaps):
    """Figure 7: how many times as fast CDS is as DIA, ELL and CSR as degrees of freedom grow."""
    if not (every := measured_grids(data, gaps, 7)):
        return None
    found = {
        (p, rival): by_dof(over(gaps, every, p, rival, gflops, "warm"))
        for p in style.PRECISIONS
        for rival in LOOKS
    }
    of_dia = {dof: fmean(ratios) for dof, ratios in found["f64", "DIA"].items()}
    first, best, last = min(of_dia), max(of_dia, key=of_dia.get), max(of_dia)
    figure, panels = two_panels(
        f"CDS gains up to {best} degrees of freedom: on an {style.brief(data.device)}, in double precision, it is "
        f"{of_dia[first]:.2f} times as fast as DIA at {first}, {of_dia[best]:.2f} times at {best} and {of_dia[last]:.2f} times at {last}",
        "CDS: times as fast as another format",
    )
    for (precision, rival), of in found.items():
        colour, mark = LOOKS[rival]
        dofs, means = list(of), [fmean(ratios) for ratios in of.values()]
        axes, named = panels[precision], rival == "DIA"  # which the title names
        if named:
            ends = ([end(ratios) for ratios in of.values()] for end in (min, max))
            band = axes.fill_between(dofs, *ends, color=colour, alpha=0.15, linewidth=0)
        look = {"marker": mark, "color": colour, "linewidth": 1 + named, "markersize": 4.5}
        axes.plot(dofs, means, **look)
        place = {"xytext": (7, 0), "textcoords": "offset points", "va": "center"}
        look = {"color": colour, "fontweight": "bold" if named else "normal", **place}
        axes.annotate(f"over {rival}", (dofs[-1], means[-1]), **look)
        axes.set_xlim(0.7, dofs[-1] + 2)
        axes.set_xticks(dofs)
    marks = style.sample("o", line="-"), f"means of {len(every)} grids"
    style.legend(figure, [marks, (band, "over DIA, from the least grid to the greatest")])
    gaps.remark(
        f"{data.device}, warm. Means: arithmetic, of {', '.join(every)}. "
        "CDS: the paper's, cds_texture. DIA and ELL: ours, of step 08; the paper's DIA was Cusp's. CSR: cuSPARSE's fastest, which PETSc's is today. "
        f"{GENERATED} Of a format that takes over half of the L2 only a part stays there, so that CDS gains most where the L2 still holds it and no longer DIA."
    )
    return figure


def figure8(data, gaps):
    """Figure 8: the bandwidth of CDS over that of DIA, each of its own bytes."""
    if not (every := measured_grids(data, gaps, 8)):
        return None
    single, double = ("{} of {}".format(*all_above_dia(data, every, p)) for p in style.PRECISIONS)
    figure, panels = two_panels(
        f"In 2012 CDS used more of the bandwidth than DIA in most cases; on an {style.brief(data.device)} "
        f"it does at {double} points in double precision and at {single} in single precision",
        "bandwidth of CDS / of DIA",
    )
    for (precision, axes), count in zip(panels.items(), (single, double)):
        axes.set_title(f"{style.PRECISIONS[precision]}: above 1.0 at {count} points")
        found = over(gaps, every, precision, "DIA", bandwidth, "cold")
        for grid, of in found.items():
            kind, sizes = grid.split(":")
            colour, mark = {"stencil2d": (style.BLUE, "o"), "stencil3d": (style.GREEN, "s")}[kind]
            smaller = grid == next(other for other in found if other.startswith(kind))
            look = {"marker": mark, "color": colour, "markersize": 4.5}
            label = f"{kind[-2]}-D, {sizes.replace('x', ' × ')}"
            of.pop(1, None)
            axes.plot(of.keys(), of.values(), "--" if smaller else "-", label=label, **look)
    bottom, top = axes.get_ylim()
    for axes in panels.values():
        axes.axhspan(1, top, color=style.GREEN, alpha=0.1, linewidth=0)
        style.at_edge(axes, top, "CDS uses more", va="top")
    axes.set_ylim(bottom, top)
    handles, labels = panels["f64"].get_legend_handles_labels()
    style.legend(figure, list(zip(handles, labels)))
    gaps.remark(
        f"{data.device}. CDS: the paper's, cds_texture. DIA: ours, of step 08; the paper's was Cusp's. Cold: the L2 is flushed before each product. "
        f"Each format's own bytes over its time: a higher bandwidth is not a faster format. At 1 degree of freedom the two are one format, which is not drawn. {GENERATED}"
    )
    return figure


FIGURES = {"godwin_2012_figure7": figure7, "godwin_2012_figure8": figure8}
TABLES = {}
