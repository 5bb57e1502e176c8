"""Do the papers' claims hold? Each headline claim, the paper's number, ours, and why it moved.

The numbers come from plots/published and from records; the sentences on why are written by hand, say
what the kernels do, and are shown beside a number only. Read them again when the numbers change.
"""

import re
from statistics import mean, median
from typing import NamedTuple

import bylina
import godwin
import he_gao
import lightspmv
from published import published
from records import code_note, format_bytes, milliseconds, number
from tables import DASH, Table

NOT_YET = "not measured yet"
PRECISIONS = ("f32", "f64")
HOLDS, WEAKER, FELL = "holds", "weaker", "fell"
UNJUDGED = "cannot be judged"
RULES = (
    "Holds: at least 90% of the paper's number, the same order, or within 5% in the mean where it says *the same*. Fell: a speed-up that at most half of the matrices "
    "show (here the paper's method is no faster on most of them), a mean within 5% of 1, a share or efficiency below "
    "half of the paper's, another order. Weaker: what lies between. Cannot be judged: too few matrices that have what the claim is about."
)


class Ours(NamedTuple):
    """What our records say to a claim, and by RULES what that makes of it."""

    text: str
    verdict: str


def verdict_of_ratios(ratios, theirs):
    """Of a claimed mean speed-up."""
    if median(ratios) <= 1 or mean(ratios) <= 1.05:
        return FELL
    return HOLDS if mean(ratios) >= 0.9 * theirs else WEAKER


def verdict_by_dof(ratios, least, share):
    """Of the claim to be faster on a `share` of the grids of at least `least` degrees of freedom, and as fast below. `ratios`: {dof: ratios}"""
    claimed = [ratio for dof, of in ratios.items() if dof >= least for ratio in of]
    ahead = sum(ratio > 1 for ratio in claimed) / max(len(claimed), 1)
    same = all(abs(mean(of) - 1) <= 0.05 for dof, of in ratios.items() if dof < least)
    return HOLDS if ahead >= share and same else FELL if ahead <= 0.5 else WEAKER


def verdict_of_share(ours, theirs):
    return HOLDS if ours >= 0.9 * theirs else FELL if ours < theirs / 2 else WEAKER


def both(texts, note=""):
    """One text of two precisions, or None if there is neither."""
    if not any(texts):
        return None
    return " and ".join(text or DASH for text in texts) + (f" ({note})" if note else "")


def over(matrices, own, rival, theirs, claimed, said, note):
    """A claim that `own` kernels are `claimed` times as fast as the `rival` in the mean. `said`: the text of one precision's
    speed-ups; `note`: that on both."""

    def ours(data):
        found = [list(data.speedups(matrices, p, own, rival).values()) for p in PRECISIONS]
        text = both([said(f) if f else None for f in found], note(found))
        return text and Ours(text, verdict_of_ratios(sum(found, []), claimed))

    return theirs, ours


# --- PCSR -----------------------------------------------------------------------------------------


def pcsr_over(rival):
    claimed = [
        published("he_gao_2016_speedups").value("speedup", rival=rival, precision=p)
        for p in PRECISIONS
    ]

    def note(found):
        text = (
            f"medians {' and '.join(number(median(f)) for f in found if f)}; "
            f"{max(map(len, found))} of the {len(he_gao.NONZEROS)} matrices"
        )
        if max(map(len, found)) > 4:
            # A mean of ratios may be that of one or two matrices.
            rest = [sorted(f)[:-2] for f in found]
            text += f"; without the two greatest {' and '.join(number(mean(f)) for f in rest if f)}"
        return text

    return over(
        he_gao.NONZEROS,
        he_gao.PCSR["PCSR"],
        he_gao.RIVALS[rival],
        " and ".join(f"{speedup:g}" for speedup in claimed),
        mean(claimed),
        lambda ratios: number(mean(ratios)),
        note,
    )


def pcsr_bandwidth():
    """In one count of bytes there and here, those of y = Ax in CSR: by our count with the middle array the C2050 would have moved
    more than its peak on CurlCurl_4. Only double precision: the paper prints no times in single."""
    said = published("he_gao_2016_text")
    peak = 100 * said.value(what="max_bandwidth", precision="f64")
    peak /= said.value(what="share_of_peak", precision="f64")
    rows = {row["matrix"]: int(row["rows"]) for row in published("he_gao_2016_table2")}
    of_table = {
        row["matrix"]: 1e-4
        * format_bytes(
            {
                "format": "CSR",
                "precision": "f64",
                "nnz": int(row["nonzeros"]),
                "rows": rows[row["matrix"]],
                "cols": rows[row["matrix"]],
            }
        )
        / (float(row["one_gpu"]) * peak)
        for row in published("he_gao_2016_table3")
    }
    claimed = max(of_table.values())

    def ours(data):
        of = {m: data.times.get((m, "f64", "pcsr_texture")) for m in of_table}
        found = {
            m: he_gao.share_of_peak(r, "cold", "median")
            for m, r in of.items()
            if r and r["compulsory_bytes"] > he_gao.LARGE
        }
        if not found:
            return None
        most = max(found.values())
        return Ours(
            f"{most:.0f}% (cold L2; the {len(found)} matrices of which PCSR moves over 200 MB)",
            verdict_of_share(most, claimed),
        )

    return f"{claimed:.0f}%, of table 3's times", ours


def pcsr_parallel(figure):
    table, gpus, exchange = he_gao.PARALLEL[figure]
    matrices = published(f"he_gao_2016_table{table}").matrices()
    claimed = published("he_gao_2016_text").value(what="mean_efficiency_II", figure=str(figure))
    theirs = f"{claimed:.1f}%"

    def ours(data):
        def shares(best):
            return {
                m: r["percent"]
                for (m, way), r in he_gao.efficiencies(data, gpus, exchange, ours=best).items()
                if way == "II" and m in matrices
            }

        found, best = shares(False), shares(True)
        if not found:
            return None
        percent = list(found.values())
        text = f"{mean(percent):.1f}% ({len(found)} of {len(matrices)} matrices, from {min(percent):.1f}% to {max(percent):.1f}%)"
        if alike := found.keys() & best.keys():
            text += (
                f"; on the {len(alike)} measured with both {mean(found[m] for m in alike):.1f}%, and our fastest kernel and way "
                f"{mean(best[m] for m in alike):.1f}%"
            )
        return Ours(text, verdict_of_share(mean(percent), claimed))

    return theirs, ours


FEWEST = 3  # matrices, of which the order of two partitions is judged


def pcsr_balance(figure):
    """PCSR-II (equal nonzeros per GPU) over PCSR-I (equal rows), for which the paper prefers II. On stand-ins there is nothing to
    choose: their recipes spread nonzeros over all rows alike, so that both cut in the same place."""
    table, gpus, exchange = he_gao.PARALLEL[figure]
    rows = published(f"he_gao_2016_table{table}")

    claimed = [(float(row["efficiency_I"]), float(row["efficiency_II"])) for row in rows]

    def ahead_in(pairs):
        return sum(second > first for first, second in pairs)

    def said(pairs):
        """pairs: (efficiency of I, of II) of each matrix, in percent."""
        lead = max((100 * (first / second - 1) for first, second in pairs), default=0)
        text = f"II ahead on {ahead_in(pairs)} of {len(pairs)}; mean {mean(b for _, b in pairs):.1f}% to {mean(a for a, _ in pairs):.1f}%"
        return text + (f"; I ahead by at most {lead:.0f}%" if lead > 0 else "")

    theirs = said(claimed)

    def ours(data):
        own = he_gao.efficiencies(data, gpus, exchange)
        if not own:
            return None
        own = {key: record for key, record in own.items() if record["source"] != "stand-in"}
        pairs = [
            tuple(own[row["matrix"], way]["percent"] for way in ("I", "II"))
            for row in rows
            if {(row["matrix"], "I"), (row["matrix"], "II")} <= set(own)
        ]
        share = ahead_in(pairs) / max(len(pairs), 1)
        if len(pairs) < FEWEST:
            of = sorted({matrix for matrix, _ in own})
            text = f"real files among the {len(rows)} matrices: {len(of)}"
            return Ours(text + f" ({', '.join(of)})" * bool(of), UNJUDGED)
        fell = share <= 0.5
        return Ours(
            said(pairs), FELL if fell else verdict_of_share(share, ahead_in(claimed) / len(claimed))
        )

    return theirs, ours


# --- LightSpMV ------------------------------------------------------------------------------------


def light(rival, theirs, claimed, said):
    """Of the warp level over a rival."""
    return over(
        lightspmv.MATRICES,
        lightspmv.LEVELS["warp"],
        rival,
        " and ".join(theirs),
        mean(claimed),
        said,
        lambda found: f"{max(map(len, found))} of {len(lightspmv.MATRICES)} matrices",
    )


def light_over(rival):
    means, most = (
        [
            published("lightspmv_poster_text").value(rival=rival, what=what, precision=p)
            for p in PRECISIONS
        ]
        for what in ("mean", "max")
    )
    return light(
        lightspmv.RIVALS[rival],
        [f"{middle:g} (at most {greatest:g})" for middle, greatest in zip(means, most)],
        means,
        lambda ratios: f"{number(mean(ratios))} (at most {number(max(ratios))})",
    )


def light_levels(vector):
    """The warp level over a vector level: the poster's central claim."""
    claimed = [
        [float(row[f"speedup_{p}"]) for row in published("lightspmv_poster_table")]
        for p in PRECISIONS
    ]

    def spread(values):
        return f"{number(min(values))} to {number(max(values))}, mean {number(mean(values))}"

    return light([vector], map(spread, claimed), sum(claimed, []), spread)


# --- Markov chains --------------------------------------------------------------------------------


def markov_best():
    limit = published("bylina_2011_text").value(what="csr_best_up_to_rows")
    theirs = f"CSR up to {limit:,.0f} rows, HYB above"

    def ours(data):
        texts, as_said = [], []
        for size, keep, said in (
            ("up to", lambda rows: rows <= limit, "CSR"),
            ("above", lambda rows: rows > limit, "HYB"),
        ):
            wins = {}
            for row in published("bylina_2011_table3"):
                if keep(int(row["rows"])):
                    of = {
                        k: data.fastest(row["matrix"], "f32", p) for k, p in bylina.FORMATS.items()
                    }
                    # Without all four formats there is no best of them.
                    if all(of.values()):
                        best = min(of, key=lambda k: milliseconds(of[k])).upper()
                        wins[best] = wins.get(best, 0) + 1
            if wins:
                order = sorted(wins, key=wins.get, reverse=True)
                texts.append(f"{size}: " + ", ".join(f"{k} on {wins[k]}" for k in order))
                as_said.append(order[0] == said)
        return (
            Ours("; ".join(texts), HOLDS if all(as_said) else WEAKER if any(as_said) else FELL)
            if texts
            else None
        )

    return theirs, ours


def markov_speedup():
    words = published("bylina_2011_text").where(figure="12", what="max_speedup")[0]

    def ours(data):
        chains = published("bylina_2011_table3").matrices()
        cpu = bylina.host(data, 6)
        found = {
            m: max(
                filter(None, (bylina.speedup(data, m, kernel, cpu) for kernel in bylina.FORMATS)),
                default=0,
            )
            for m in chains
        }
        best, measured = max(found, key=found.get), sum(map(bool, found.values()))
        if not measured:
            return None
        text = f"{number(found[best])} times as fast as {cpu} ({measured} of {len(chains)} chains)"
        return Ours(text, verdict_of_share(found[best], float(words["value"])))

    return f"{words['words']} {words['value']} times", ours


# --- CDS ------------------------------------------------------------------------------------------


PAPERS_CDS = ["cds_texture"]  # x through a texture; cds and cds_sliced are ours


def cds_over(rival, theirs, own, least=1, share=1.0):
    """Of `own` kernels: the paper's is cds_texture. The claim: see verdict_by_dof."""

    def ours(data):
        ratios = {}
        for of in godwin.grids(data).values():
            for dof, matrix in of.items():
                for ratio in data.speedups([matrix], "f64", own, godwin.FORMATS[rival]).values():
                    ratios.setdefault(dof, []).append(ratio)
        if not ratios:
            return None
        means = {dof: mean(of) for dof, of in ratios.items()}
        told = sorted({min(means), max(means, key=means.get), max(means)})
        return Ours(
            ", ".join(f"{number(means[dof])} at {dof}" for dof in told) + " degrees of freedom",
            verdict_by_dof(ratios, least, share),
        )

    return theirs, ours


# --- All of them ----------------------------------------------------------------------------------

# (paper, claim, (the paper's number, function of Data to Ours or None), the figure that shows it, why)
CLAIMS = [
    (
        "PCSR",
        "times as fast as CSR-scalar, f32 and f64",
        pcsr_over("CSR-scalar"),
        "he_gao_2016_figure4",
        "a C2050 has little cache for a warp's scattered loads; now the L1 serves a sector that was asked for before, and "
        "PCSR's middle array doubles what must move",
    ),
    (
        "PCSR",
        "times as fast as CSR-vector",
        pcsr_over("CSR-vector"),
        "he_gao_2016_figure4",
        "csr_vector takes 2 to 32 lanes by the mean length of a row, and has no middle array",
    ),
    (
        "PCSR",
        "times as fast as cuSPARSE's CSR",
        pcsr_over("CSRMV"),
        "he_gao_2016_figure4",
        "cuSPARSE has since got balanced algorithms that read CSR once, as the one-pass PCSR of step 06 does",
    ),
    (
        "PCSR",
        "times as fast as cuSPARSE's HYB",
        pcsr_over("HYBMV"),
        "he_gao_2016_figure4",
        "cuSPARSE dropped HYB; step 08's stands for it, and has no middle array to write and to read",
    ),
    (
        "PCSR",
        "times as fast as CSR-Adaptive",
        pcsr_over("CSR-Adaptive"),
        "he_gao_2016_figure4",
        "both stage products in shared memory; CSR-Adaptive needs no middle array, but one more array of block limits",
    ),
    (
        "PCSR",
        "greatest share of the peak bandwidth, bytes of y = Ax in CSR, f64",
        pcsr_bandwidth(),
        "he_gao_2016_figure5",
        "of a data sheet, which a copy does not reach either. The paper's own 90% and 75% count bytes in a way that it does not give, and "
        "the times to count them again it prints for f64 alone",
    ),
    (
        "PCSR",
        "mean efficiency of PCSR-II on 2 GPUs, no communication",
        pcsr_parallel(7),
        "he_gao_2016_figures_7_to_10",
        "large matrices scale as they did; of a small one a product takes tens of microseconds now, and launching on every GPU and waiting "
        "for all is part of it",
    ),
    (
        "PCSR",
        "the same on 4 GPUs",
        pcsr_parallel(8),
        "he_gao_2016_figures_7_to_10",
        "as above, with twice the launches",
    ),
    (
        "PCSR",
        "with communication, 2 GPUs",
        pcsr_parallel(9),
        "he_gao_2016_figures_7_to_10",
        "NVLink for PCI Express, but a step also waits for launches and for the other GPU, and these waits have shrunk less than products",
    ),
    (
        "PCSR",
        "with communication, 4 GPUs",
        pcsr_parallel(10),
        "he_gao_2016_figures_7_to_10",
        "as above, and with `parts` a GPU waits for copies from three others",
    ),
    (
        "PCSR",
        "PCSR-II against PCSR-I on 4 GPUs, no communication",
        pcsr_balance(8),
        "he_gao_2016_figures_7_to_10",
        "a stand-in's recipe spreads nonzeros over all rows alike, so that both partitions cut it in nearly the same place",
    ),
    (
        "PCSR",
        "the same with communication",
        pcsr_balance(10),
        "he_gao_2016_figures_7_to_10",
        "as above; and a step waits for launches and copies far longer than the parts' products differ",
    ),
    (
        "LightSpMV",
        "warp level over vector level, f32 and f64",
        light_levels("lightspmv_vector"),
        "lightspmv_levels",
        "nvcc aggregates the atomics of the vector level within a warp, so that both fetch by one atomic per warp (step 07)",
    ),
    (
        "LightSpMV",
        "the same, with atomics that nvcc does not aggregate",
        light_levels("lightspmv_vector_inc"),
        "lightspmv_levels",
        "as the poster's GPUs executed it: one atomic per vector, all on one address",
    ),
    (
        "LightSpMV",
        "times as fast as CUSP's CSR-Scalar, f32 and f64",
        light_over("CSR-Scalar"),
        "lightspmv_speedups",
        "the caches again; and one counter for all warps is asked by many more of them",
    ),
    (
        "LightSpMV",
        "times as fast as CUSP's CSR-Vector",
        light_over("CSR-Vector"),
        "lightspmv_speedups",
        "fetching rows costs an atomic and a wait that fixed rows do not; step 07 shows what more counters give back",
    ),
    (
        "LightSpMV",
        "times as fast as cuSPARSE's CSR",
        light_over("cuSPARSE"),
        "lightspmv_speedups",
        "cuSPARSE has had balanced algorithms since; LightSpMV leaves a long row to one vector",
    ),
    (
        "Markov chains",
        "the best of COO, CSR, ELL and HYB",
        markov_best(),
        "bylina_2011_figure10",
        "CSR is a warp per row here, as in the paper, and a row of five nonzeros keeps 5 of 32 lanes busy; a thread per row is faster "
        "than all four from 650,000 rows on (step 08). HYB and COO take several launches, which small chains feel",
    ),
    (
        "Markov chains",
        "speed-up over the CPU, f32",
        markov_speedup(),
        "bylina_2011_figure12",
        "both memory systems have grown; the CPU is the host of the GPU, with 12 cores or more, not a desktop; its library is "
        "oneMKL where that was measured on all chains, as the paper's was MKL",
    ),
    (
        "CDS",
        "times as fast as DIA",
        cds_over("DIA", "the same at 1 degree of freedom, better above", PAPERS_CDS, least=2),
        "godwin_2012_figure7",
        "a block of b x b entries lies on 2b - 1 diagonals, and DIA stores them whole; at 1 they are one format, and "
        "products of a few microseconds differ from run to run. The gain is greatest where the L2 may still keep a part of CDS, but hardly any of DIA",
    ),
    (
        "CDS",
        "times as fast as ELLPACK",
        cds_over("ELL", "better in most cases", PAPERS_CDS, share=0.51),
        "godwin_2012_figure7",
        "CDS reads no column indices, which are a third of ELLPACK's bytes in f64 and half in f32",
    ),
    (
        "CDS",
        "times as fast as CSR",
        cds_over("CSR", "better in all cases", PAPERS_CDS),
        "godwin_2012_figure7",
        "no column indices, and coalesced whatever the length of a row; the paper's CSR was PETSc's, which is cuSPARSE's today",
    ),
]


def judged(devices):
    """Of each claim: paper, claim, the paper's number, [ours on each device], figure, and, beside numbers only, why."""
    for paper, claim, (theirs, ours), figure, why in CLAIMS:
        found = [ours(data) or Ours(NOT_YET, "") for data in devices]
        yield paper, claim, theirs, found, figure, why if any(of.verdict for of in found) else ""


def first_measured(devices, found):
    """The device that counts, and what it says to a claim: the first that measured it; without any the first."""
    return next(
        ((data, of) for data, of in zip(devices, found) if of.verdict), (devices[0], found[0])
    )


def short_table(*devices):
    """Of each claim that was measured both numbers, without what stands in brackets behind ours, and the verdict."""
    rows = []
    for paper, claim, theirs, found, *_ in judged(devices):
        data, of = first_measured(devices, found)
        if of.verdict:
            other = f" ({data.device})" if data is not devices[0] else ""
            rows.append(
                [
                    paper,
                    claim,
                    theirs,
                    re.sub(r" \([^()]*\)(;.*)?$", "", of.text) + other,
                    of.verdict,
                ]
            )
    counts = "; ".join(
        f"{verdict}: {sum(row[-1] == verdict for row in rows)}"
        for verdict in (HOLDS, WEAKER, FELL, UNJUDGED)
    )
    return Table(
        "Do the claims hold?",
        ["paper", "claim", "there", f"here: {devices[0].device}", "verdict"],
        rows,
        [
            f"Of {len(CLAIMS)} claims, {counts}; not measured yet: {len(CLAIMS) - len(rows)}. {RULES}"
        ],
        words=5,
    )


def claims_table(*devices):
    """One column per device, and why the numbers moved."""
    rows = [
        [paper, claim, theirs, *(of.text for of in found), why]
        for paper, claim, theirs, found, _, why in judged(devices)
    ]
    return Table(
        "Do the claims hold?",
        ["paper", "claim", "there", *(f"here: {data.device}" for data in devices), "why it moved"],
        rows,
        [
            "Warm times; averages are arithmetic means, as the papers' are. PCSR's speed-ups are of 15 of "
            "the 26 matrices of its table 2 there; the paper does not say which. Where a mean in its text and its table disagree "
            "(70.4%, where the text prints 65.69%), this is the table's. CDS: the paper's kernel, cds_texture.",
            *(note for data in devices for note in code_note(data.times.values())),
        ],
        words=4 + len(devices),
    )
