"""Figures that no paper has: roofline, ladder, speed-up over cuSPARSE."""

import math
from collections import Counter
from statistics import geometric_mean, median

import style
from published import published
from records import TIME_CLASSES, bandwidth, baseline_share, code_note, daggers, fastest_of
from records import format_bytes, gflops, is_tie, milliseconds, number, short, time_class
from sets import expanded
from tables import DASH, Table

STEPS = {
    1: "01 sequential",
    2: "02 CSR scalar",
    3: "03 CSR vector",
    4: "04 atomic COO",
    5: "05 segmented scan",
    6: "06 PCSR",
    7: "07 LightSpMV",
    8: "08 ELL, HYB, DIA, SELL",
    9: "09 CDS",
    0: "cuSPARSE",
}
FIXED = "pcsr_one_pass"


def step_name(step, records):
    """A step, with the way of PCSR that the records are of."""
    return STEPS[step] + ", one pass" * ({r["kernel"] for r in records} == {FIXED})


KINDS = {
    "2-D grid": "stencil2d:2000x2000",
    "3-D grid, 27 points": "stencil3d:100x100x100,points=27",
    "finite elements": "fem:100000,block=3",
    "circuit": "G3_circuit",
    "few long rows": "powerlaw:1000000x1000000,nnz=12000000",
    "web graph": "cnr-2000",
}


def compared(record):
    """The steps' kernels and cuSPARSE's."""
    return record["step"] > 0 or record["kernel"].startswith("cusparse_")


def by_step(data, matrix, precision, state="warm"):
    """{step: fastest record}; 0 is cuSPARSE."""
    best = {}
    for record in sorted(
        filter(compared, data.of(matrix, precision)), key=lambda r: milliseconds(r, state)
    ):
        best.setdefault(record["step"], record)
    return dict(sorted(best.items(), key=lambda item: item[0] or 99))


def too_few(data, gaps, precision):
    """Whether so few steps were measured that nothing can be said of the best of all; notes it."""
    steps = {step for name in data.matrices for step in by_step(data, name, precision)} - {0, 1}
    if missing := [name for step, name in STEPS.items() if step > 1 and step not in steps]:
        gaps.remark(f"No records of {', '.join(missing)} on {data.device}: `{style.COMMAND}`.")
    return len(steps) < 5


LARGE = 50e6  # bytes in CSR: what latency and launches cost counts little there


def csr_bytes(record):
    """Of the matrix in CSR, x and y."""
    return format_bytes({**record, "format": "CSR"})


def large_records(data):
    """{(precision, step): {matrix: the fastest record with a cold L2}} of large matrices, those
    that all steps have which multiply any matrix: medians of different matrices cannot be
    compared."""
    shares = {}
    for precision in style.PRECISE:
        for name in data.matrices:
            for step, record in by_step(data, name, precision, "cold").items():
                if csr_bytes(record) > LARGE:
                    shares.setdefault((precision, step), {})[name] = record
    of_any = [(p, set(of)) for (p, step), of in shares.items() if step not in (8, 9)]
    common = {p: set.intersection(*(of for q, of in of_any if q == p)) for p in dict(of_any)}
    return {(p, step): {m: of[m] for m in of if m in common[p]} for (p, step), of in shares.items()}


def copy_share(data, gaps):
    """The share of a copy's bandwidth that the best kernel of each step reaches on large matrices,
    with a cold L2."""
    copy = data.copy_gb_per_s
    records = large_records(data)
    if not any(records.values()):
        return None
    shares = {
        key: {m: 100 * bandwidth(r, state="cold") / copy for m, r in of.items()}
        for key, of in records.items()
    }
    steps = sorted({step for _, step in shares}, key=lambda step: step or 99)
    names_of = {
        s: step_name(s, [r for p in style.PRECISE for r in records.get((p, s), {}).values()])
        for s in steps
    }
    for (_, step), of in records.items():
        gaps.shows(names_of[step], of.values())
    names = {name for of in shares.values() for name in of}
    gaps.without_names.update(names)
    middle = {key: median(of.values()) for key, of in shares.items() if of}
    anywhere = {s: share for (p, s), share in middle.items() if p == "f64" and s not in (8, 9)}
    best = max(anywhere, key=anywhere.get)
    message = f"Of the steps that take any matrix, {names_of[best]}, comes nearest to a copy: "
    message += f"{anywhere[best]:.0f}% of its bandwidth in double precision"
    message += f"; cuSPARSE reaches {anywhere[0]:.0f}%" * (best != 0 and 0 in anywhere)
    figure = style.new_figure(1.3 + 0.36 * len(steps), message)
    axes, weights = figure.subplots(), {"f32": "normal", "f64": "bold"}
    for y, step in enumerate(steps):
        for precision, up in (("f32", -0.2), ("f64", 0.2)):
            if of := shares.get((precision, step)):
                style.box(axes, y + up, list(of.values()), 0.32, style.PRECISE[precision])
                text = f"{middle[precision, step]:.0f}% ({len(of)})"
                style.at_edge(axes, y + up, text, True, fontweight=weights[precision])
    style.head(axes, "median (matrices)")
    files = sum(data.source(name) == "file" for name in names)
    said = f"{len(names)} matrices, real files among them: {files}"
    unit = f"% of the bandwidth of a copy, {copy:.0f} GB/s; cold L2; {said}"
    axes.set(xlim=(0, 100), xlabel=unit)
    style.rows(axes, [names_of[s] + " (refuses some)" * (s in (8, 9)) for s in steps])
    for step, label in zip(steps, axes.get_yticklabels()):  # bold: what the title compares
        label.set_fontweight("bold" if step in (best, 0) else "normal")
    boxes = [(style.hollow(colour), style.PRECISIONS[p]) for p, colour in style.PRECISE.items()]
    style.legend(figure, [*boxes, (style.sample(), style.BOX)])
    gaps.remark(
        f"{data.device}. Large: over {LARGE / 1e6:.0f} MB in CSR, with x and y; {said}; "
        f"{sum(data.source(name) == 'generated' for name in names)} are generated, the others stand-ins. Bytes: the matrix in the kernel's format and x read once, y written once; what a kernel adds, as PCSR its array "
        "of products, is not counted. The L2 is flushed before each product. Drawn are the matrices that steps 02 to 07 and cuSPARSE all have, and of these what the step takes."
    )
    return figure


def ladder_panel(axes, best, baseline, first, names):
    """A bar per step: percent of the row-free baseline; the steps `first` are filled."""
    shares = {step: 100 * gflops(r) / baseline for step, r in best.items()}
    for y, step in enumerate(LADDER):
        if step not in shares:
            axes.text(2, y, "refused", va="center", color="#555555")
            continue
        low, high = (
            abs(100 * gflops(best[step], "warm", end) / baseline - shares[step])
            for end in ("upper", "lower")
        )
        dark = step in first
        colour = style.BLUE if dark else style.BLACK if step == 0 else "#b8c4cf"
        spread = {"xerr": [[low], [high]], "error_kw": {"elinewidth": 0.7}}
        axes.barh(y, shares[step], 0.72, color=colour, **spread)
        weight = "bold" if dark else "normal"
        white = {"facecolor": "white", "edgecolor": "none", "pad": 0.8}
        look = {"va": "center", "fontweight": weight, "bbox": white, "zorder": 4}
        axes.text(shares[step] + 5, y, f"{shares[step]:.0f}", **look)
    style.rows(axes, names)
    axes.axvline(100, color=style.BLACK, linewidth=0.8, linestyle="--")


LADDER = [step for step in STEPS if step != 1]


def ladder(data, gaps):
    """The best kernel of each step as a share of the row-free baseline, on each kind of matrix."""
    if too_few(data, gaps, "f64"):
        return None
    every = {kind: by_step(data, name, "f64") for kind, name in KINDS.items()}
    every = {kind: {s: r for s, r in best.items() if s != 1} for kind, best in every.items()}
    every = {kind: best for kind, best in every.items() if best}
    if not every:
        return None
    first = {kind: fastest_of(best) for kind, best in every.items()}
    counts = {step: sum(step in of for of in first.values()) for step in LADDER}
    ranked = sorted((step for step in counts if counts[step]), key=counts.get, reverse=True)
    names = ["cuSPARSE" if step == 0 else f"step {step:02}" for step in ranked]
    tied = " or ties" * any(len(of) > 1 for of in first.values())
    message = f"is the fastest{tied} on {counts[ranked[0]]} of {len(first)} kinds of matrix"
    message += "".join(f", {name} on {counts[step]}" for name, step in zip(names[1:], ranked[1:]))
    message += ": no step is the fastest on every kind" * (len(ranked) > 1)
    figure = style.new_figure(5.4, f"{names[0][0].upper()}{names[0][1:]} {message}")
    panels = figure.subplots(2, 3, sharex=True, sharey=True).flat
    shown = {step: [best[step] for best in every.values() if step in best] for step in LADDER}
    names = [step_name(step, of) for step, of in shown.items()]
    for axes, (kind, best) in zip(panels, every.items()):
        baseline = next(
            gflops(r) / baseline_share(r) for r in best.values() if r["format"] == "CSR"
        )
        ladder_panel(axes, best, baseline, first[kind], names)
        of = style.SOURCES.get(data.source(KINDS[kind]), "generated")
        axes.set_title(f"{kind} ({of})\n100% = {baseline:.0f} GFLOP/s")
    axes.set_xlim(0, 1.22 * axes.get_xlim()[1])
    axes.set_xticks(range(0, 151, 50))
    unit = "GFLOP/s in % of the row-free CSR baseline"
    figure.supxlabel(unit, fontsize=style.SMALLEST)
    looks = [style.sample("s", colour, markersize=7) for colour in (style.BLUE, style.BLACK)]
    looks.append(style.sample(line="--"))
    told = ("fastest of all, or a tie", "cuSPARSE", "row-free baseline, not a limit")
    style.legend(figure, list(zip(looks, told)))
    ladder_notes(data, gaps, every)
    for name, of in zip(names, shown.values()):
        gaps.shows(name, of)
    return figure


def ladder_notes(data, gaps, every):
    steps = {record["kernel"]: record["step"] for record in data.times.values()}
    missing, kernels = [], []
    for kind, best in every.items():
        there = {steps.get(k) for m, p, k in data.refused if (m, p) == (KINDS[kind], "f64")} | {
            *best
        }
        missing += [f"{STEPS[s]} on {short(KINDS[kind])}" for s in LADDER if s not in there]
        source = style.SOURCES.get(data.source(KINDS[kind]), "generated")
        names = ", ".join(r["kernel"] for r in best.values())
        kernels.append(f"{kind}: {short(KINDS[kind])} ({source}), {names}")
    gaps.remark(
        f"{data.device}, f64, warm. The best kernel of each step; lines on the bars: spread. The row-free baseline streams values and column "
        "indices and gathers x without row logic; another format may be faster than that. A step without a bar refuses the matrix"
        + f", or is not measured yet: {'; '.join(missing)}" * bool(missing)
        + "."
    )
    gaps.remark(f"Kernels. {'; '.join(kernels)}.")


# --- Beside cuSPARSE ------------------------------------------------------------------------------


PAPERS_OWN = "the papers' grids and chains"
GROUPS = ["large, by definition", "real files", "stand-ins", PAPERS_OWN, "other generated"]


def group_of(data, name):
    """Which of GROUPS a measured matrix belongs to."""
    source = data.source(name)
    if name in expanded("@large"):
        return "large, by definition"
    if source != "generated":
        return "real files" if source == "file" else "stand-ins"
    chains = published("bylina_2011_table2").matrices() + published("bylina_2011_table3").matrices()
    return PAPERS_OWN if name in chains or ",dof=" in name else "other generated"


def over_cusparse(data, precision, fixed):
    """{class of time of our product: {matrix: (ratio, our record, cuSPARSE's)}}: pcsr_one_pass
    against cuSPARSE's kernels for CSR and COO, or our best against the best of all that were
    measured of cuSPARSE."""
    found = {}
    for name in data.matrices:
        best = by_step(data, name, precision)
        rivals = [r for r in data.of(name, precision) if r["kernel"].startswith("cusparse_")]
        # A sweep that measured one kernel of cuSPARSE knows no best of them, and one without
        # formats no choice.
        if len(rivals) < 4 or not (fixed or best.keys() & {8, 9}):
            continue
        if fixed:
            rivals = [r for r in rivals if r["format"] in ("CSR", "COO")]
            own = data.fastest(name, precision, [FIXED])
        else:
            own = min((r for s, r in best.items() if s), key=milliseconds, default=None)
        if own:
            rival = min(rivals, key=milliseconds)
            ratio = milliseconds(rival) / milliseconds(own)
            found.setdefault(time_class(milliseconds(own)), {})[name] = ratio, own, rival
    return {name: found.get(name, {}) for name in TIME_CLASSES} if found else {}


def choices_of(data, gaps):
    """What is compared with cuSPARSE: pcsr_one_pass (True) and, unless too few steps were measured,
    the best of all (False)."""
    return [True] if too_few(data, gaps, "f64") else [True, False]


COMPARED = {True: f"{FIXED}", False: "our fastest kernel"}
RIVAL = {True: "cuSPARSE's best for CSR and COO", False: "the best of all of cuSPARSE's formats"}


def source_of(data, name):
    """Large matrices that are generated into files are generated."""
    of = {"real files": "file", "stand-ins": "stand-in"}
    return of.get(group_of(data, name), "generated")


def counted(count, source):
    """So many matrices of a source."""
    return f"{count} {style.SOURCES[source]}{'s' * (source != 'generated')}"


FILLED = {"file": style.OURS, "generated": "#a9cfe6", "stand-in": "white"}


def speedup_panel(axes, classes, data):
    """A row per class of time and a box per source of the matrix: times as fast as cuSPARSE."""
    for y, of in enumerate(classes.values()):
        for k, (source, fill) in enumerate(FILLED.items()):
            if ratios := [r for name, (r, *_) in of.items() if source_of(data, name) == source]:
                style.box(axes, y + 0.22 * k - 0.12, ratios, 0.17, fill=fill)
        told = "not measured yet"
        if ratios := [r for r, *_ in of.values()]:
            ahead = sum(r > 1 and not is_tie(own, rival) for r, own, rival in of.values())
            told = f"all: mean {geometric_mean(ratios):.2f}, "
            told += f"ahead on {ahead} of {len(of)}, worst {min(ratios):.2f}"
        behind = {"facecolor": style.BAND if y % 2 else "white", "edgecolor": "none", "pad": 1}
        style.at_edge(axes, y - 0.34, told, fontweight="bold", bbox=behind)
    style.bands(axes, len(classes))
    axes.axvline(1, color=style.BLACK, linewidth=0.8)


def speedup(fixed):
    def draw(data, gaps):
        if fixed not in choices_of(data, gaps):
            return None
        every = {p: over_cusparse(data, p, fixed) for p in style.PRECISIONS}
        if not any(every.values()):
            return None
        groups = [of for classes in every.values() for of in classes.values()]
        gaps.without_names.update(name for of in groups for name in of)
        device = style.brief(data.device)
        longest = next(iter(TIME_CLASSES))
        long = [r for r, *_ in every["f64"].get(longest, {}).values()]
        message = f"On an {device} {COMPARED[fixed]} is"
        if long:
            message += f" in the mean {geometric_mean(long):.2f} times as fast as {RIVAL[fixed]} on products {longest.replace(' us', ' µs')}, in double precision"
        figure = style.new_figure(4.2, message)
        panels = figure.subplots(1, 2, sharex=True, sharey=True)
        for axes, (precision, words) in zip(panels, style.PRECISIONS.items()):
            classes = {time: every[precision].get(time, {}) for time in TIME_CLASSES}
            speedup_panel(axes, classes, data)
            unit = f"time of cuSPARSE / {COMPARED[fixed]}\n(right of 1: ours is faster)"
            axes.set(title=words, xscale="log", xlabel=unit)
            style.rows(axes, [f"products\n{time}".replace(" us", " µs") for time in TIME_CLASSES])
        for axes in panels:
            style.decimal(axes.xaxis)
        names = gaps.without_names
        counts = Counter(source_of(data, name) for name in names)
        keys = [(style.hollow(fill=fill), counted(counts[k], k)) for k, fill in FILLED.items()]
        style.legend(figure, [*keys, (style.sample(), style.BOX)])
        speedup_notes(gaps, fixed, groups)
        return figure

    draw.__doc__ = f"Times as fast as cuSPARSE: {COMPARED[fixed]} against {RIVAL[fixed]}, by the time of our product."
    return draw


def speedup_notes(gaps, fixed, groups):
    versions = sorted({rival["cusparse"] for of in groups for *_, rival in of.values()})
    rivals = (
        "The fastest of cuSPARSE's CSR and COO algorithms, with and without preprocess. "
        if fixed
        else "cuSPARSE's: with its sliced ELL and block CSR where those were measured. Matrices: on which other formats of ours were. "
    )
    gaps.remark(
        "Warm. Times of products alone, without setup and preprocess, by the time of our product. Means: geometric, of all three kinds of matrix. Ahead: the spreads do not overlap. "
        + rivals
        + f"Its versions: {' and '.join(versions)}. Every matrix: table of TABLES.md."
    )
    gaps.shows(COMPARED[fixed], [own for of in groups for _, own, _ in of.values()])


def speedup_table(data):
    every = [
        over_cusparse(data, precision, fixed)
        for fixed in choices_of(data, style.Gaps(data))
        for precision in ("f32", "f64")
    ]
    rows, order = [], {group: k for k, group in enumerate(GROUPS)}
    for time in TIME_CLASSES:
        found = [of.get(time, {}) for of in every]
        names = sorted(
            {name for of in found for name in of}, key=lambda m: (order[group_of(data, m)], m)
        )
        for name in names:
            cells = [speedup_cell(of.get(name), k > 1) for k, of in enumerate(found)]
            rows.append([data.label(name), time, group_of(data, name), *cells])
        means = [[ratio for ratio, *_ in of.values()] for of in found]
        means = [number(geometric_mean(of)) if of else "not measured yet" for of in means]
        rows.append(["geometric mean", time, "all", *means])
    columns = [f"{FIXED} over CSR and COO: f32", "f64", "our best over its best: f32", "f64"]
    columns = ["matrix", "time", "group", *columns[: len(every)]]
    shown = [
        r for of in every for group in of.values() for _, *both in group.values() for r in both
    ]
    note = "Warm. Time: of our product; a matrix may be in one class in f32, and in another in f64."
    return Table("Times as fast as cuSPARSE", columns, rows, [note, *daggers(shown)], words=3)


def speedup_cell(of, with_name):
    if not of:
        return DASH
    name = f" ({of[1]['kernel']})" * with_name
    return f"{number(of[0])}{name}{' †' * bool(code_note(of[1:]))}"


# --- All matrices at once --------------------------------------------------------------------------

# Kernels, with colour, dashes and width of a curve.
PROFILED = {
    "pcsr_one_pass": (["pcsr_one_pass"], style.BLUE, "-", 2.6),
    "cuSPARSE's best CSR": (["cusparse_csr_*", "cusparse_spmvop_*"], style.BLACK, "-", 1.8),
    "csr_adaptive": (["csr_adaptive"], style.PURPLE, "--", 1.5),
    "csr_vector": (["csr_vector"], style.ORANGE, "-", 1.5),
    "sell": (["sell"], style.GREEN, (0, (9, 2)), 1.5),
    "PCSR as published": (["pcsr_texture"], style.SKY, ":", 2),
    "LightSpMV": (["lightspmv_warp"], style.GREY, (0, (6, 1, 1, 1)), 1.8),
}
LIMIT = 10


def factors(data, gaps):
    """{source: {matrix: {kernel: times as long as the fastest}}} of the matrices that each kernel
    was measured on or refuses."""
    every = {source: {} for source in style.FILLS}
    for name in data.matrices:
        found = {k: data.fastest(name, "f64", patterns) for k, (patterns, *_) in PROFILED.items()}
        if all(found[k] or data.is_refused(name, "f64", PROFILED[k][0]) for k in found):
            times = {k: milliseconds(r) for k, r in found.items() if r}
            for label in times:
                gaps.shows(label, [found[label]])
            least = min(times.values())
            every[data.source(name)][name] = {k: ms / least for k, ms in times.items()}
    return {source: of for source, of in every.items() if of}


def profile(data, gaps):
    """The share of matrices on which a kernel takes at most so many times as long as the fastest
    kernel there."""
    every = factors(data, gaps)
    gaps.without_names.update(name for of in every.values() for name in of)
    if not every:
        return None
    worst = {
        source: {k: max(each.get(k, math.inf) for each in of.values()) for k in PROFILED}
        for source, of in every.items()
    }
    first, of = next(iter(every.items()))
    said = {k: counted(len(of), k) for k, of in every.items()}
    safe = min(worst[first], key=worst[first].get)
    message = f"{safe} is the safe choice: on {said[first]} it takes at most "
    message += f"{worst[first][safe]:.2f} times as long as the fastest of {len(PROFILED)} choices"
    figure = style.new_figure(3.8, message)
    axes = figure.subplots()
    for label, (_, colour, dashes, width) in PROFILED.items():
        look = {"color": colour, "linestyle": dashes, "linewidth": width}
        style.profile(axes, [f[label] for f in of.values() if label in f], len(of), LIMIT, **look)
    unit = "time / time of the fastest (the further left and up a curve, the better)"
    axes.set(xscale="log", xlim=(0.99, LIMIT), ylim=(0, 101), xlabel=unit)
    axes.set_ylabel(f"% of the {said[first]} within that factor")
    axes.set_xticks([], minor=True)
    axes.set_xticks(ticks := [1, 1.2, 1.5, 2, 3, 5, LIMIT], map(str, ticks))
    looks = [
        (style.sample("", colour, dashes, linewidth=width), label)
        for label, (_, colour, dashes, width) in PROFILED.items()
    ]
    style.legend(figure, looks, 4)
    others = [f"{worst[source][safe]:.2f} times on {said[source]}" for source in list(every)[1:]]
    gaps.remark(
        f"{data.device}, f64, warm. Where a curve starts, at the left: how often a kernel is the fastest; where it ends below 100%, it takes longer or refuses the matrix. "
        f"Not drawn: {safe} takes at most {' and '.join(others)}. "
        "cuSPARSE's best CSR is chosen on each matrix. Matrices that each of these was measured on or refuses."
    )
    return figure


PREPARED = """csr_adaptive pcsr_one_pass cusparse_csr_alg1_pre cusparse_csr_alg2_pre
    hyb ell sell sell_sorted dia cds""".split()
BASE = "csr_vector"


# Products within which a setup is repaid, and how dark that is drawn.
WITHIN = {10: style.BLUE, 100: "#7fb2d6", math.inf: "#d5e5f1"}


def break_even(data, gaps):
    """On how many real files setup and preprocess of a format are repaid against csr_vector, and
    after how many products."""
    alone = {key: r for key, r in data.times.items() if r.get("alone") and r["source"] == "file"}
    for (_, _, k), r in alone.items():
        if k in (*PREPARED, BASE):
            gaps.shows(k, [r])
    matrices = [m for m, _, k in alone if k == BASE]
    if not matrices:
        gaps.remark(
            f"Setup was not measured alone on {data.directory} yet: `make bench SET=setup` makes the records."
        )
        return None
    pairs = {
        k: [(alone[m, "f64", k], alone[m, "f64", BASE]) for m in matrices if (m, "f64", k) in alone]
        for k in PREPARED
    }
    counts = {k: [n for pair in of if (n := paid_off(*pair))] for k, of in pairs.items()}
    soon = {k: sum(n <= 100 for n in of) for k, of in counts.items()}
    best = max(soon, key=soon.get)
    message = f"{best} repays its setup against {BASE} within 100 products on {soon[best]} of "
    message += f"{len(matrices)} real files, the next best on {sorted(soon.values())[-2]}"
    figure = style.new_figure(4, message)
    axes = figure.subplots()
    ranked = sorted(counts, key=soon.get, reverse=True)
    for y, kernel in enumerate(ranked):
        of, before = counts[kernel], 0
        for limit, colour in WITHIN.items():
            until = sum(n <= limit for n in of)
            axes.barh(y, until - before, 0.7, before, color=colour, edgecolor="white")
            before = until
        axes.text(soon[kernel] + 0.3, y, soon[kernel], va="center")
        ties = sum(is_tie(*pair) for pair in pairs[kernel])
        text = f"never on {len(pairs[kernel]) - len(of) - ties}, {ties} tie{'s' * (ties != 1)}"
        left = [m for m in matrices if (m, "f64", kernel) not in alone]
        refused = sum((m, "f64", kernel) in data.refused for m in left)
        text += f", refuses {refused}" * bool(refused)
        text += f", {len(left) - refused} not measured" * (len(left) > refused)
        style.at_edge(axes, y, text, True)
    style.head(axes, "other real files")
    files = f"real files (of {len(matrices)}) on which setup is repaid against {BASE}"
    files += "; number: within 100 products"
    axes.set(xlim=(0, len(matrices)), xlabel=files)
    style.rows(axes, ranked)
    axes.get_yticklabels()[ranked.index(FIXED)].set_fontweight("bold")
    said = ("within 10 products", "11 to 100", "after more")
    looks = [style.sample("s", colour, markersize=8) for colour in WITHIN.values()]
    style.legend(figure, list(zip(looks, said)))
    # Of those that never pay off, too.
    middle = {
        k: median([*of, *[math.inf] * (len(pairs[k]) - len(of))]) for k, of in counts.items() if of
    }
    half = {k: products for k, products in middle.items() if products < math.inf}
    if half:
        told = ", ".join(f"{k} {products:,.0f}" for k, products in half.items())
        gaps.remark(
            f"Products after which half of the files that a format takes are repaid: {told}."
        )
    gaps.remark(
        f"{data.device}, f64, warm. A tie: the spreads of the two times overlap. Grids, for which dia and cds are made, are no files. Near a tie the count is uncertain. Setup and "
        "preprocess measured with nothing beside them; csr_vector has none. Left out: cuSPARSE's sliced ELL and block CSR and the COO of steps "
        "04 and 05, which the host converts to."
    )
    return figure


def paid_off(own, base):
    """Products after which `own`, with its setup, took less time than `base` without; None: never,
    or one cannot say, since they are a tie."""
    gain = milliseconds(base) - milliseconds(own)
    if gain <= 0 or is_tie(own, base):
        return None
    return max(math.ceil((own["setup_ms"] + own["preprocess_ms"]) / gain), 1)


FIGURES = {
    "ladder": ladder,
    "speedup": speedup(True),
    "speedup_formats": speedup(False),
    "profile": profile,
    "break_even": break_even,
    "copy_share": copy_share,
}
TABLES = {"speedup": speedup_table}
