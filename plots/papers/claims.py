"""Do the papers' claims hold? Each headline claim, the paper's number, ours, and why it moved.

The numbers come from plots/published and from records; the sentences on why are written by hand, say
what the kernels do, and are shown beside a number only. Read them again when the numbers change.
"""

import math
import re
from statistics import mean, median
from typing import NamedTuple

import bylina
import godwin
import he_gao
import lightspmv
from published import published
from records import (
    OTHER_CODE,
    TIME_CLASSES,
    code_note,
    code_state,
    milliseconds,
    number,
    time_class,
)
from tables import DASH, Table

NOT_YET = "not measured yet"
ALG1 = ["cusparse_csr_alg1"]
PRECISIONS = ("f32", "f64")
HOLDS, WEAKER, FELL = "holds", "weaker", "fell"
UNJUDGED = "cannot be judged here"
RULES = (
    "Holds: at least 90% of the paper's number, the same order, or within 5% in the mean where it says *the same*. Fell: a speed-up that at most half of the matrices "
    "show (here the paper's method is no faster on most of them), a mean within 5% of 1, a share or efficiency below "
    "half of the paper's, another order. Weaker: what lies between; of two precisions the lower verdict counts. Cannot be judged here: what the claim is about is not "
    "in our matrices, or the paper does not say enough; the text says what is needed. On stand-ins: on how many of the matrices."
)


class Ours(NamedTuple):
    """What our records say to a claim, and by RULES what that makes of it; `sources`: of the matrices that count, file, generated or
    stand-in."""

    text: str
    verdict: str
    sources: tuple = ()

    @property
    def told(self):
        made = sum(source == "stand-in" for source in self.sources)
        if not made or self.verdict == UNJUDGED:
            return self.verdict
        return f"{self.verdict}, on stand-ins ({made} of {len(self.sources)})"


def lowest(verdicts):
    """Of several precisions."""
    return max(verdicts, key=(HOLDS, WEAKER, FELL).index)


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


def by_class(data, pairs, own):
    """The means of both precisions' speed-ups {matrix: ratio} of `own` kernels, by how long these take."""
    texts = []
    for name in TIME_CLASSES:
        of = [
            [
                ratio
                for m, ratio in ratios.items()
                if time_class(milliseconds(data.fastest(m, p, own))) == name
            ]
            for p, ratios in zip(PRECISIONS, pairs)
        ]
        if any(of):
            means = (number(mean(ratios)) if ratios else DASH for ratios in of)
            texts.append(f"{name} {' and '.join(means)}")
    return f"by our time: {', '.join(texts)}"


def over(matrices, own, rival, theirs, claimed, said, note):
    """A claim that `own` kernels are `claimed` times as fast as the `rival` in the mean. `said`: the text of one precision's
    speed-ups; `note`: that on both."""

    def ours(data):
        pairs = [data.speedups(matrices, p, own, rival) for p in PRECISIONS]
        found = [list(of.values()) for of in pairs]
        text = both(
            [said(f) if f else None for f in found], f"{note(found)}; {by_class(data, pairs, own)}"
        )
        sources = tuple(data.source(m) for m in dict(pairs[0], **pairs[1]))
        return text and Ours(text, verdict_of_ratios(sum(found, []), claimed), sources)

    return theirs, ours


# --- PCSR -----------------------------------------------------------------------------------------


def pcsr_over(rival, patterns=None):
    claimed = [
        published("he_gao_2016_speedups").value("speedup", rival=rival, precision=p)
        for p in PRECISIONS
    ]

    def ours(data):
        matrices, own = he_gao.NONZEROS, he_gao.PCSR["PCSR"]
        pairs = [
            data.speedups(matrices, p, own, patterns or he_gao.RIVALS[rival]) for p in PRECISIONS
        ]
        of = [he_gao.subsets(ratios) for ratios in pairs if ratios]
        if not of:
            return None
        text = " and ".join("–".join(number(mean(each)) for each in r) for r in of)
        # The same for whichever 15 matrices, or none.
        verdicts = {verdict_of_ratios(sum(both, []), mean(claimed)) for both in zip(*of)}
        verdict = verdicts.pop() if len(verdicts) == 1 else UNJUDGED
        medians = " and ".join(number(median(r.values())) for r in pairs if r)
        text += "; needs the names of the paper's 15 matrices" * (verdict == UNJUDGED)
        text += f" ({max(map(len, pairs))} of the {len(matrices)} matrices; medians {medians}; {by_class(data, pairs, own)})"
        return Ours(text, verdict, tuple(data.source(m) for m in {**pairs[0], **pairs[1]}))

    return " and ".join(f"{speedup:g}" for speedup in claimed), ours


def pcsr_bandwidth():
    """In one count of bytes there and here, those of y = Ax in CSR: by our count with the middle array the C2050 would have moved
    more than its peak on CurlCurl_4. Only double precision: the paper prints no times in single."""
    of_table = {m: share for m, (_, share) in he_gao.published_shares().items()}
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
            tuple(data.source(m) for m in found),
        )

    return f"{claimed:.0f}%, of table 3's times", ours


def pcsr_parallel(figure):
    table, gpus, exchange = he_gao.PARALLEL[figure]
    matrices = published(f"he_gao_2016_table{table}").matrices()
    claimed = published("he_gao_2016_text").value(what="mean_efficiency_II", figure=str(figure))
    theirs = f"{claimed:.1f}%"

    def ours(data):
        def records_of(best):
            return {
                m: r
                for (m, way), r in he_gao.efficiencies(data, gpus, exchange, ours=best).items()
                if way == "II" and m in matrices
            }

        records, best = records_of(False), records_of(True)
        found = {m: r["percent"] for m, r in records.items()}
        if not found:
            return None
        percent = list(found.values())
        text = f"{mean(percent):.1f}%" + " in our implementation of it" * exchange
        text += f" ({len(found)} of {len(matrices)} matrices, from {min(percent):.1f}% to {max(percent):.1f}%)"
        if alike := found.keys() & best.keys():
            text += (
                f"; on the {len(alike)} measured with both {mean(found[m] for m in alike):.1f}%, and our fastest kernel and way "
                f"{mean(best[m]['percent'] for m in alike):.1f}%"
                + " †"
                * any(code_state(best[m]) == OTHER_CODE for m in alike)
            )
        sources = tuple(r["source"] for r in records.values())
        return Ours(text, verdict_of_share(mean(percent), claimed), sources)

    return theirs, ours


FEWEST = 3  # matrices, of which the order of two partitions is judged
UNEVEN = 0.03  # by which a half must be heavier there than here to be told


def heavier_half(row):
    """The share of the heavier half of the rows in the work that table 3's times imply: the slower of two GPUs takes the time ET of PCSR-I, the
    other ET less sqrt(2) SD. So the deviation divides by one less than the number of GPUs: if it divided by the number, both
    times together would be less than that of one GPU, on five matrices."""
    slower, sd = float(row["time_I"]), float(row["sd_I"])
    return slower / (2 * slower - math.sqrt(2) * sd)


def halves(data):
    """{matrix: (share of the heavier half of the rows that the paper's times imply, that of the nonzeros here)} of stand-ins."""
    found = {}
    for row in published("he_gao_2016_table3"):
        for r in data.multigpu:
            if (r["matrix"], r["partition"], r["gpus"]) == (row["matrix"], "rows", 2):
                if r["source"] == "stand-in":
                    here = max(part["nnz"] for part in r["parts"]) / r["nnz"]
                    found[row["matrix"]] = heavier_half(row), here
    return found


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
        there = {row["matrix"]: pair for row, pair in zip(rows, claimed)}
        as_there = pairs and all(
            (own[m, "II"]["percent"] > own[m, "I"]["percent"]) == (there[m][1] > there[m][0])
            for m in there
            if {(m, "I"), (m, "II")} <= set(own)
        )
        if len(pairs) < FEWEST:
            uneven = {m: of for m, of in halves(data).items() if of[0] - of[1] > UNEVEN}
            text = f"needs the files of {', '.join(uneven)}; " * bool(uneven)
            of = sorted({matrix for matrix, _ in own})
            text += f"real files here: {len(of)} of {len(rows)}"
            text += f" ({', '.join(of)}{', the same order' * bool(as_there)})" * bool(of)
            if uneven:
                there, here = (
                    f"{100 * min(s):.0f}% to {100 * max(s):.0f}%" for s in zip(*uneven.values())
                )
                text += (
                    f"; the heavier half of those that are needed has {there} of the work by the paper's times, {here} of the nonzeros "
                    "in the stand-ins"
                )
            return Ours(text, UNJUDGED)
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


def light_over(rival, patterns=None):
    means, most = (
        [
            published("lightspmv_poster_text").value(rival=rival, what=what, precision=p)
            for p in PRECISIONS
        ]
        for what in ("mean", "max")
    )
    return light(
        patterns or lightspmv.RIVALS[rival],
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
        text = f"{number(found[best])} times as fast as {bylina.HOSTS[cpu]}"
        verdict = verdict_of_share(found[best], float(words["value"]))
        if cpu != "mkl_csr":
            text, verdict = f"{text}; needs oneMKL on all chains: the paper's is MKL", UNJUDGED
        return Ours(f"{text} ({measured} of {len(chains)} chains)", verdict)

    return f"{words['words']} {words['value']} times", ours


# --- CDS ------------------------------------------------------------------------------------------


# The paper prints no code: CDS with x through a texture, as its text has it. cds and cds_sliced are ours.
PAPERS_CDS = ["cds_texture"]
SAME_THEN_BETTER = "the same at 1 degree of freedom, better above"


def cds_over(rival, theirs, own, least=1, share=1.0):
    """Of `own` kernels over the patterns `rival`, in both precisions. The claim: see verdict_by_dof."""

    def ours(data):
        texts, verdicts = [], []
        for precision in reversed(PRECISIONS):
            ratios = {}
            for of in godwin.grids(data).values():
                for dof, matrix in of.items():
                    for ratio in data.speedups([matrix], precision, own, rival).values():
                        ratios.setdefault(dof, []).append(ratio)
            if ratios:
                means = {dof: mean(of) for dof, of in ratios.items()}
                told = sorted({min(means), max(means, key=means.get), max(means)})
                verdicts.append(verdict_by_dof(ratios, least, share))
                texts.append(
                    f"{precision}: {', '.join(f'{number(means[dof])} at {dof}' for dof in told)}, {verdicts[-1]}"
                )
        return Ours("; ".join(texts), lowest(verdicts)) if texts else None

    return theirs, ours


def cds_bandwidth(theirs):
    def ours(data):
        counts = {
            p: [
                sum(of)
                for of in zip(
                    *(godwin.above_dia(data, of, p) for of in godwin.grids(data).values())
                )
            ]
            for p in reversed(PRECISIONS)
        }
        counts = {p: of for p, of in counts.items() if of and of[1]}
        if not counts:
            return None
        text = "; ".join(f"{p}: on {most} of {of}" for p, (most, of) in counts.items())
        verdicts = [HOLDS if most > of / 2 else FELL for most, of in counts.values()]
        return Ours(text, lowest(verdicts))

    return theirs, ours


# --- Atomics and segmented scan -------------------------------------------------------------------


def over_sequential(own):
    """The report has no numbers. On real files and generated matrices, beside the same loop on one core of the host."""

    def ours(data):
        found = {}
        for m in data.matrices:
            cpu = data.fastest(m, "f64", ["coo_sequential"], gpu=False)
            gpu = data.fastest(m, "f64", own)
            if cpu and gpu and data.source(m) != "stand-in":
                found[m] = milliseconds(cpu) / milliseconds(gpu)
        if not found:
            return None
        ratios = sorted(found.values())
        text = f"{number(ratios[0])} to {number(ratios[-1])} times as fast, median {number(median(ratios))}"
        ahead = sum(ratio > 1 for ratio in ratios)
        verdict = HOLDS if ahead == len(ratios) else WEAKER if 2 * ahead > len(ratios) else FELL
        return Ours(f"{text} (f64; {len(ratios)} files and generated matrices)", verdict)

    return "significant improvements (no numbers)", ours


def figure_6():
    """Of a picture that is lost; what the text reads off it."""

    def ours(data):
        looks = {m: data.shapes.get(m) for m in sorted(he_gao.OF_FIGURE_6)}
        told = [
            f"{m} ({look['matrix']['source']}): {look['min_row']} to {look['max_row']}"
            for m, look in looks.items()
            if look
        ]
        if len(told) < len(he_gao.OF_FIGURE_6):
            return None
        return Ours(f"{'; '.join(told)}; needs the file of af_shell9", UNJUDGED)

    return "rows of af_shell9 and cont-300 have very similar numbers of nonzeros", ours


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
        "times as fast as cuSPARSE's CSR, ALG1 without preprocess",
        pcsr_over("CSRMV", ALG1),
        "he_gao_2016_figure4",
        "the algorithm that cuSPARSE takes unless asked; on few long rows it is slow, which makes the mean",
    ),
    (
        "PCSR",
        "the same, the fastest of its CSR algorithms per matrix, preprocess not timed",
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
        "figure 6, which is lost",
        figure_6(),
        "he_gao_2016_figure4",
        "a stand-in's row lengths are its recipe's, and cont-300 is rebuilt",
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
        "times as fast as cuSPARSE's CSR, ALG1 without preprocess",
        light_over("cuSPARSE", ALG1),
        "lightspmv_speedups",
        "as below; LightSpMV's own setup is one counter",
    ),
    (
        "LightSpMV",
        "the same, the fastest of its CSR algorithms per matrix, preprocess not timed",
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
        cds_over(godwin.FORMATS["DIA"], SAME_THEN_BETTER, PAPERS_CDS, least=2),
        "godwin_2012_figure7",
        "a block of b x b entries lies on 2b - 1 diagonals, and DIA stores them whole; at 1 they are one format, and "
        "products of a few microseconds differ from run to run. The gain is greatest where the L2 may still keep a part of CDS, but hardly any of DIA",
    ),
    (
        "CDS",
        "the same, DIA in the code of CDS (cds_b1)",
        cds_over(["cds_b1"], SAME_THEN_BETTER, PAPERS_CDS, least=2),
        "godwin_2012_figure7",
        "our DIA lacks what our CDS has: streaming loads, fixed blocks, eight loads in flight. With them a part of the gain goes",
    ),
    (
        "CDS",
        "times as fast as ELLPACK",
        cds_over(godwin.FORMATS["ELL"], "better in most cases", PAPERS_CDS, share=0.51),
        "godwin_2012_figure7",
        "CDS reads no column indices, which are a third of ELLPACK's bytes in f64 and half in f32",
    ),
    (
        "CDS",
        "times as fast as CSR",
        cds_over(godwin.FORMATS["CSR"], "better in all cases", PAPERS_CDS),
        "godwin_2012_figure7",
        "no column indices, and coalesced whatever the length of a row; the paper's CSR was PETSc's, which is cuSPARSE's today",
    ),
    (
        "CDS",
        "bandwidth higher than DIA's, several degrees of freedom",
        cds_bandwidth("in most cases"),
        "godwin_2012_figure8",
        "each format's own bytes, cold; DIA's many zeros stream well, too",
    ),
    (
        "Emmanuel and Vorobyev",
        "atomics over a sequential loop",
        over_sequential(["atomic_coo"]),
        "ladder",
        "atomics on one address queue up, and still thousands of threads wait at a time",
    ),
    (
        "Emmanuel and Vorobyev",
        "segmented scan over a sequential loop",
        over_sequential(["segscan_block"]),
        "ladder",
        "whatever the rows, every thread has the same number of nonzeros",
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


def elsewhere(devices, found, first):
    """What other devices make of a claim, where it is not what `first` makes of it."""
    verdict = next(of.verdict for data, of in zip(devices, found) if data is first)
    return "".join(
        f"; {data.device}: {of.verdict}"
        for data, of in zip(devices, found)
        if data is not first and of.verdict not in ("", verdict)
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
                    of.told + elsewhere(devices, found, data),
                ]
            )
    counts = "; ".join(
        f"{verdict}: {sum(row[-1].startswith(verdict) for row in rows)}"
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


def claimed(data):
    """The records that claims show: of one pass only those on several GPUs."""
    return [*data.multigpu, *(r for r in data.times.values() if r["kernel"] != "pcsr_one_pass")]


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
            "Warm times; averages are arithmetic means, as the papers' are. PCSR's speed-ups are of 15 of the 26 matrices of its table 2 there, "
            "with 25,228 to 2,063,494 rows; the text names four of them. The first of two numbers is the mean over the 15 with the least speed-ups that "
            "this leaves, the second that with the greatest. Where a mean in its text and its table disagree "
            "(70.4%, where the text prints 65.69%), this is the table's. CDS: cds_texture, with x through a texture as the paper says; it prints no code.",
            *(f"† {note}" for note in code_note([r for data in devices for r in claimed(data)])),
        ],
        words=4 + len(devices),
    )
