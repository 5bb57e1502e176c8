"""Do the papers' claims hold? Each headline claim of claims.toml, the paper's number, ours, and why it moved.

The numbers come from plots/published and from records."""

import math
import re
from collections import Counter
from pathlib import Path
from statistics import mean, median
from typing import NamedTuple

import bylina
import godwin
import he_gao
import lightspmv
from published import published
from records import OTHER_CODE, TIME_CLASSES, daggers, code_state, fastest_of, milliseconds, number
from records import time_class
from sets import tomllib
from tables import DASH, Table

NOT_YET = "not measured yet"
ALG1 = ["cusparse_csr_alg1"]
PRECISIONS = ("f32", "f64")
HOLDS, WEAKER, FELL = "holds", "weaker", "fell"
UNJUDGED = "cannot be judged here"
SAID = tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8"))
RULES = SAID["rules"]


class Ours(NamedTuple):
    """What our records say to a claim, and by RULES what that makes of it; `sources`: of the
    matrices that count, file, generated or stand-in."""

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


def alike(verdicts):
    """What all of several readings of a claim come to, or that it cannot be judged."""
    return next(iter(verdicts)) if len(set(verdicts)) == 1 else UNJUDGED


def verdict_of_ratios(ratios, theirs):
    """Of a claimed mean speed-up, which may be within 5% of 1 itself."""
    near = mean(ratios) >= 0.9 * theirs
    if median(ratios) <= 0.95 or (mean(ratios) <= 1.05 and not near):
        return FELL
    return HOLDS if near and median(ratios) > 1 else WEAKER


def verdict_by_dof(ratios, least, share):
    """Of the claim to be faster on a `share` of the grids of at least `least` degrees of freedom,
    and as fast below. `ratios`: {dof: ratios}"""
    claimed = [ratio for dof, of in ratios.items() if dof >= least for ratio in of]
    ahead = sum(ratio > 1 for ratio in claimed) / max(len(claimed), 1)
    same = all(abs(mean(of) - 1) <= 0.05 for dof, of in ratios.items() if dof < least)
    return HOLDS if ahead >= share and same else FELL if ahead <= 0.5 else WEAKER


def verdict_of_share(ours, theirs):
    return HOLDS if ours >= 0.9 * theirs else FELL if ours < theirs / 2 else WEAKER


def by_class(data, pairs, own):
    """The means of both precisions' speed-ups {matrix: ratio} of `own` kernels, by how long these
    take."""
    texts = []
    classes = [
        {m: time_class(milliseconds(data.fastest(m, p, own))) for m in ratios}
        for p, ratios in zip(PRECISIONS, pairs)
    ]
    for name in TIME_CLASSES:
        of = [[r[m] for m in r if at[m] == name] for r, at in zip(pairs, classes)]
        if any(of):
            means = (number(mean(ratios)) if ratios else DASH for ratios in of)
            texts.append(f"{name} {' and '.join(means)}")
    return f"by our time: {', '.join(texts)}"


# --- PCSR -----------------------------------------------------------------------------------------


def pcsr_over(rival, patterns=None):
    table = published("he_gao_2016_speedups")
    claimed = [table.value("speedup", rival=rival, precision=p) for p in PRECISIONS]

    def ours(data):
        matrices, own = he_gao.NONZEROS, he_gao.PCSR["PCSR"]
        of_rival = patterns or he_gao.RIVALS[rival]
        pairs = [data.speedups(matrices, p, own, of_rival) for p in PRECISIONS]
        of = {c: he_gao.subsets(ratios) for c, ratios in zip(claimed, pairs) if ratios}
        if not of:
            return None
        text = " and ".join("–".join(number(mean(each)) for each in r) for r in of.values())
        # The same for whichever 15 matrices, or none.
        verdict = alike([lowest(map(verdict_of_ratios, each, of)) for each in zip(*of.values())])
        medians = " and ".join(number(median(r.values())) for r in pairs if r)
        text += "; needs the names of the paper's 15 matrices" * (verdict == UNJUDGED)
        text += f" ({max(map(len, pairs))} of the {len(matrices)} matrices; medians {medians}; {by_class(data, pairs, own)})"
        return Ours(text, verdict, tuple(data.source(m) for m in {**pairs[0], **pairs[1]}))

    return " and ".join(f"{speedup:g}" for speedup in claimed), ours


def pcsr_bandwidth():
    """In one count of bytes there and here, those of y = Ax in CSR: by our count with the middle
    array the C2050 would have moved more than its peak on CurlCurl_4. Only double precision: the
    paper prints no times in single."""
    of_table, printed = he_gao.published_shares(), he_gao.published_shares(he_gao.x_per_nonzero)
    claimed = max(of_table.values())

    def ours(data):
        of = {m: data.times.get((m, "f64", "pcsr_texture")) for m in of_table}
        of = {m: r for m, r in of.items() if r and r["compulsory_bytes"] > he_gao.LARGE}
        if not of:
            return None
        shares = [(he_gao.share_of_peak(r, "cold"), he_gao.x_per_nonzero(r)) for r in of.values()]
        most, as_printed = max(shares)[0], max(share * more for share, more in shares)
        text = f"{most:.0f}% and {as_printed:.0f}%"
        text += f" (cold L2; the {len(of)} matrices of which PCSR moves over 200 MB)"
        return Ours(text, verdict_of_share(most, claimed), tuple(map(data.source, of)))

    return f"{claimed:.0f}% and {max(printed.values()):.0f}%, of table 3's times", ours


def pcsr_parallel(figure):
    table, gpus, exchange = he_gao.PARALLEL[figure]
    matrices = published(f"he_gao_2016_table{table}").matrices()
    claimed = published("he_gao_2016_text").value(what="mean_efficiency_II", figure=str(figure))
    theirs = f"{claimed:.1f}%"

    def ours(data):
        every = (he_gao.efficiencies(data, gpus, exchange, ours=own) for own in (False, True))
        records, best = (
            {m: r for (m, way), r in of.items() if way == "II" and m in matrices} for of in every
        )
        found = {m: r["percent"] for m, r in records.items()}
        if not found:
            return None
        percent = list(found.values())
        text = f" ({len(found)} of {len(matrices)} matrices, from {min(percent):.1f}% to {max(percent):.1f}%)"
        verdicts = [verdict_of_share(mean(percent), claimed)]
        if both := found.keys() & best.keys():
            own = mean(best[m]["percent"] for m in both)
            text += f"; on the {len(both)} measured with both {mean(found[m] for m in both):.1f}%, and our fastest kernel and way {own:.1f}%"
            text += " †" * any(code_state(best[m]) == OTHER_CODE for m in both)
            # The paper prints no code of its exchange: of ours only what any way shows counts.
            verdicts += [verdict_of_share(own, claimed)] * exchange
        sources = tuple(r["source"] for r in records.values())
        said, verdict = " in our implementation of it" * exchange, alike(verdicts)
        if verdict == UNJUDGED:
            said += f", {own:.1f}% in our fastest way; needs the paper's code"
        return Ours(f"{mean(percent):.1f}%{said}{text}", verdict, sources)

    return theirs, ours


FEWEST = 3  # matrices, of which the order of two partitions is judged
UNEVEN = 0.03  # by which a half must be heavier there than here to be told


def heavier_half(row):
    """The share of the heavier half of the rows in the work that table 3's times imply: the slower
    of two GPUs takes the time ET of PCSR-I, the other ET less sqrt(2) SD. So the deviation divides
    by one less than the number of GPUs: if it divided by the number, both times together would be
    less than that of one GPU, on five matrices."""
    slower, sd = float(row["time_I"]), float(row["sd_I"])
    return slower / (2 * slower - math.sqrt(2) * sd)


def halves(data):
    """{matrix: (share of the heavier half of the rows that the paper's times imply, that of the
    nonzeros here)} of stand-ins."""
    found = {}
    for row in published("he_gao_2016_table3"):
        here = [
            max(part["nnz"] for part in r["parts"]) / r["nnz"]
            for r in data.multigpu
            if (r["matrix"], r["partition"], r["gpus"]) == (row["matrix"], "rows", 2)
            and r["source"] == "stand-in"
        ]
        if here:
            found[row["matrix"]] = heavier_half(row), here[-1]
    return found


def pcsr_balance(figure):
    """PCSR-II (equal nonzeros per GPU) over PCSR-I (equal rows), for which the paper prefers II. On
    stand-ins there is nothing to choose: their recipes spread nonzeros over all rows alike, so that
    both cut in the same place."""
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
        own = {key: r["percent"] for key, r in own.items() if r["source"] != "stand-in"}
        there = {row["matrix"]: pair for row, pair in zip(rows, claimed)}
        both = {m: (own[m, "I"], own[m, "II"]) for m in there if {(m, "I"), (m, "II")} <= set(own)}
        pairs = list(both.values())
        if len(pairs) >= FEWEST:
            share = ahead_in(pairs) / len(pairs)
            fell = share <= 0.5
            share_there = ahead_in(claimed) / len(claimed)
            return Ours(said(pairs), FELL if fell else verdict_of_share(share, share_there))
        as_there = pairs and all(
            (b > a) == (there[m][1] > there[m][0]) for m, (a, b) in both.items()
        )
        uneven = {m: of for m, of in halves(data).items() if of[0] - of[1] > UNEVEN}
        text = f"needs the files of {', '.join(uneven)}; " * bool(uneven)
        of = sorted({matrix for matrix, _ in own})
        text += f"real files here: {len(of)} of {len(rows)}"
        text += f" ({', '.join(of)}{', the same order' * bool(as_there)})" * bool(of)
        if uneven:
            shares = zip(*uneven.values())
            work, here = (f"{100 * min(of):.0f}% to {100 * max(of):.0f}%" for of in shares)
            text += f"; the heavier half of those that are needed has {work} of the work"
            text += f" by the paper's times, {here} of the nonzeros in the stand-ins"
        return Ours(text, UNJUDGED)

    return theirs, ours


# --- LightSpMV ------------------------------------------------------------------------------------


def light(rival, theirs, claimed, said):
    """Of the warp level over the `rival`, in the means `claimed` times. `said`: the text of one
    precision's speed-ups."""
    own, matrices = lightspmv.LEVELS["warp"], lightspmv.MATRICES

    def ours(data):
        pairs = [data.speedups(matrices, p, own, rival) for p in PRECISIONS]
        if not any(pairs):
            return None
        ratios = [list(of.values()) for of in pairs]
        text = " and ".join(said(of) if of else DASH for of in ratios)
        count = f"{max(map(len, pairs))} of {len(matrices)} matrices"
        text += f" ({count}; {by_class(data, pairs, own)})"
        sources = tuple(map(data.source, {**pairs[0], **pairs[1]}))
        verdicts = [verdict_of_ratios(of, mean_) for of, mean_ in zip(ratios, claimed) if of]
        return Ours(text, lowest(verdicts), sources)

    return " and ".join(theirs), ours


def light_over(rival, patterns=None):
    means, most = (
        [text.value(rival=rival, what=what, precision=p) for p in PRECISIONS]
        for text in [published("lightspmv_poster_text")]
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
    table = published("lightspmv_poster_table")
    claimed = [[float(row[f"speedup_{p}"]) for row in table] for p in PRECISIONS]

    def spread(values):
        return f"{number(min(values))} to {number(max(values))}, mean {number(mean(values))}"

    return light([vector], map(spread, claimed), [*map(mean, claimed)], spread)


# --- Markov chains --------------------------------------------------------------------------------


def markov_best():
    limit = published("bylina_2011_text").value(what="csr_best_up_to_rows")
    theirs = f"CSR up to {limit:,.0f} rows, HYB above"

    def ours(data):
        wins = {"up to": [], "above": []}
        for row in published("bylina_2011_table3"):
            of = {k: data.fastest(row["matrix"], "f32", p) for k, p in bylina.FORMATS.items()}
            if all(of.values()):  # without all four formats there is no best of them
                wins["up to" if int(row["rows"]) <= limit else "above"].append(fastest_of(of))
        wins = {size: of for size, of in wins.items() if of}
        if not wins:
            return None
        counts = {size: Counter(sum(of, [])) for size, of in wins.items()}
        said = {"up to": "csr", "above": "hyb"}
        right = [of[said[size]] == max(of.values()) for size, of in counts.items()]
        tied = " (ties count for both)"
        text = "; ".join(f"{s}: {bylina.said(of).removesuffix(tied)}" for s, of in wins.items())
        text += tied
        return Ours(text, HOLDS if all(right) else WEAKER if any(right) else FELL)

    return theirs, ours


def markov_speedup():
    words = published("bylina_2011_text").where(figure="12", what="max_speedup")[0]

    def ours(data):
        chains = published("bylina_2011_table3").matrices()
        cpu = bylina.host(data, 6)
        found = {
            m: max((bylina.speedup(data, m, format, cpu) or 0 for format in bylina.FORMATS))
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


# The paper prints no code: CDS with x through a texture, as its text has it. cds and cds_sliced are
# ours.
PAPERS_CDS = ["cds_texture"]
MOST = 0.51  # of the cases
SAME_THEN_BETTER = "the same at 1 degree of freedom, above in the majority of cases better"


def cds_over(rival, theirs, own, least=1, share=1.0):
    """Of `own` kernels over the patterns `rival`, in both precisions. The claim: see
    verdict_by_dof."""

    def ours(data):
        texts, verdicts = [], []
        for precision in reversed(PRECISIONS):
            found = {}
            for grid, of in godwin.grids(data).items():
                ratios = data.speedups(of.values(), precision, own, rival)
                found[grid] = {dof: ratios[m] for dof, m in of.items() if m in ratios}
            if ratios := godwin.by_dof(found):
                means = {dof: mean(of) for dof, of in ratios.items()}
                told = sorted({min(means), max(means, key=means.get), max(means)})
                told = ", ".join(f"{number(means[dof])} at {dof}" for dof in told)
                verdicts.append(verdict_by_dof(ratios, least, share))
                above = [ratio > 1 for dof, of in ratios.items() if dof >= least for ratio in of]
                told += f", ahead on {sum(above)} of {len(above)}"
                texts.append(f"{precision}: {told}, {verdicts[-1]}")
        return Ours("; ".join(texts), lowest(verdicts)) if texts else None

    return theirs, ours


def cds_bandwidth(theirs):
    """The paper does not say of which precision its figure 8 is."""

    def ours(data):
        counts = {
            p: godwin.all_above_dia(data, godwin.grids(data), p) for p in reversed(PRECISIONS)
        }
        counts = {p: of for p, of in counts.items() if of[1]}
        if not counts:
            return None
        text = "; ".join(f"{p}: on {most} of {of}" for p, (most, of) in counts.items())
        verdict = alike([HOLDS if most > of / 2 else FELL for most, of in counts.values()])
        return Ours(text + "; needs the precision of figure 8" * (verdict == UNJUDGED), verdict)

    return theirs, ours


# --- Atomics and segmented scan -------------------------------------------------------------------


def over_sequential(own):
    """The report has no numbers. On real files and generated matrices, beside the same loop on one
    core of the host."""

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
        if not all(looks.values()):
            return None
        told = [
            f"{m} ({look['matrix']['source']}): {look['min_row']} to {look['max_row']}"
            for m, look in looks.items()
        ]
        return Ours(f"{'; '.join(told)}; needs the file of af_shell9", UNJUDGED)

    return "rows of af_shell9 and cont-300 have very similar numbers of nonzeros", ours


# --- All of them ----------------------------------------------------------------------------------

# Of each claim of claims.toml: (the paper's number, function of Data to Ours or None).
JUDGES = {
    "pcsr.csr_scalar": pcsr_over("CSR-scalar"),
    "pcsr.csr_vector": pcsr_over("CSR-vector"),
    "pcsr.csrmv_alg1": pcsr_over("CSRMV", ALG1),
    "pcsr.csrmv": pcsr_over("CSRMV"),
    "pcsr.hybmv": pcsr_over("HYBMV"),
    "pcsr.csr_adaptive": pcsr_over("CSR-Adaptive"),
    "pcsr.row_lengths": figure_6(),
    "pcsr.bandwidth": pcsr_bandwidth(),
    "pcsr.figure_7": pcsr_parallel(7),
    "pcsr.figure_8": pcsr_parallel(8),
    "pcsr.figure_9": pcsr_parallel(9),
    "pcsr.figure_10": pcsr_parallel(10),
    "pcsr.balance_8": pcsr_balance(8),
    "pcsr.balance_10": pcsr_balance(10),
    "lightspmv.vector": light_levels("lightspmv_vector"),
    "lightspmv.vector_inc": light_levels("lightspmv_vector_inc"),
    "lightspmv.csr_scalar": light_over("CSR-Scalar"),
    "lightspmv.csr_vector": light_over("CSR-Vector"),
    "lightspmv.cusparse_alg1": light_over("cuSPARSE", ALG1),
    "lightspmv.cusparse": light_over("cuSPARSE"),
    "markov.best": markov_best(),
    "markov.cpu": markov_speedup(),
    "cds.dia": cds_over(godwin.FORMATS["DIA"], SAME_THEN_BETTER, PAPERS_CDS, 2, MOST),
    "cds.cds_b1": cds_over(["cds_b1"], SAME_THEN_BETTER, PAPERS_CDS, 2, MOST),
    "cds.ell": cds_over(godwin.FORMATS["ELL"], "better in most cases", PAPERS_CDS, share=MOST),
    "cds.csr": cds_over(godwin.FORMATS["CSR"], "better in all cases", PAPERS_CDS),
    "cds.bandwidth": cds_bandwidth("in most cases"),
    "emmanuel.atomics": over_sequential(["atomic_coo"]),
    "emmanuel.scan": over_sequential(["segscan_block"]),
}


class Claim(NamedTuple):
    paper: str
    claim: str
    figure: str  # that shows it
    why: str  # the numbers moved
    theirs: str
    ours: object  # function of Data


CLAIMS = [
    Claim(**SAID[paper][name], theirs=theirs, ours=ours)
    for key, (theirs, ours) in JUDGES.items()
    for paper, name in [key.split(".")]
]


def judged(devices):
    """Of each claim: paper, claim, the paper's number, [ours on each device], figure, and, beside
    numbers only, why."""
    for paper, claim, figure, why, theirs, ours in CLAIMS:
        found = [ours(data) or Ours(NOT_YET, "") for data in devices]
        yield paper, claim, theirs, found, figure, why if any(of.verdict for of in found) else ""


def first_measured(devices, found):
    """The device that counts, and what it says to a claim: the first that measured it; without any
    the first."""
    return next(
        ((data, of) for data, of in zip(devices, found) if of.verdict), (devices[0], found[0])
    )


def elsewhere(devices, found, first):
    """What other devices make of a claim, where it is not what `first` makes of it."""
    verdict = next(of.verdict for data, of in zip(devices, found) if data is first)
    others = [(d, of.verdict) for d, of in zip(devices, found) if of.verdict not in ("", verdict)]
    return "".join(f"; {data.device}: {told}" for data, told in others)


def short_table(*devices):
    """Of each claim that was measured both numbers, without what stands in brackets behind ours,
    and the verdict."""
    rows = []
    for paper, claim, theirs, found, *_ in judged(devices):
        data, of = first_measured(devices, found)
        if of.verdict:
            text = re.sub(r" \([^()]*\)(;.*)?$", "", of.text)
            text += f" ({data.device})" * (data is not devices[0])
            rows.append([paper, claim, theirs, text, of.told + elsewhere(devices, found, data)])
    told = [
        f"{verdict}: {sum(row[-1].startswith(verdict) for row in rows)}"
        for verdict in (HOLDS, WEAKER, FELL, UNJUDGED)
    ]
    note = (
        f"Of {len(CLAIMS)} claims, {'; '.join(told)}; not measured yet: {len(CLAIMS) - len(rows)}."
    )
    columns = ["paper", "claim", "there", f"here: {devices[0].device}", "verdict"]
    return Table("Do the claims hold?", columns, rows, [f"{note} {RULES}"], words=5)


def claimed(data):
    """The records that claims show: of one pass only those on several GPUs."""
    return [*data.multigpu, *(r for r in data.times.values() if r["kernel"] != "pcsr_one_pass")]


def claims_table(*devices):
    """One column per device, and why the numbers moved."""
    here = [f"here: {data.device}" for data in devices]
    columns = ["paper", "claim", "there", *here, "why it moved"]
    rows = []
    for paper, claim, theirs, found, _, why in judged(devices):
        rows.append([paper, claim, theirs, *(of.text for of in found), why])
    notes = [SAID["note"], *daggers([r for data in devices for r in claimed(data)])]
    return Table("Do the claims hold?", columns, rows, notes, words=4 + len(devices))
