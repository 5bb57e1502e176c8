"""The ladder at the top of each lesson: where the reader is, what the next step gains, and at its end a table with a row
per step so far. figures.py draws the pictures, plots/figures/ladder/NN.svg; update_readmes.py shows both.
"""

import sys

from ours import by_step
from records import ROOT, code_note, gflops, short

sys.path.append(str(ROOT / "common" / "watch"))
from pictures import Picture  # noqa: E402

FOLDER = "plots/figures/ladder"
PRINTED = 690  # the width of a picture whose smallest text has 8 points in print, 7 inches wide
# What is drawn, and in which words it is told: rows of one length, and a few very long ones.
KINDS = {"mesh": "fem:100000,block=3", "web graph": "cnr-2000"}
SHORT_PATH = (1, 2, 3, 4, 6)
# step: (idea, what its lanes read coalesced, what it balances, what it costs)
STEPS = {
    1: ("one CPU core, row by row", "one core reads all arrays in order", "nothing to balance", "one core's bandwidth"),
    2: ("one thread per row", "row offsets and y", "nothing: a warp waits for its longest row", "sectors of which little is used"),
    3: ("several lanes per row", "the nonzeros of each row", "the lanes of one row, not the rows", "shuffles; idle lanes on short rows"),
    4: ("equal nonzeros per thread, atomics", "the whole matrix", "nonzeros", "a row index per nonzero; atomics; last bits differ between runs"),
    5: ("segmented scan", "the whole matrix", "nonzeros", "a row index per nonzero; the rounds of the scan; a second launch for carries"),
    6: ("one pass: lanes per row, or a scan", "the whole matrix", "rows and nonzeros together", "a search for each tile; the rounds of the scan"),
    7: ("rows from a counter", "the nonzeros of each row", "rows, at run time; not one long row", "an atomic per fetch"),
    8: ("other formats: ELL, HYB, DIA, sliced ELL", "the whole matrix, a lane per row", "padding makes rows equally long", "conversion; padding"),
    9: ("diagonals of blocks", "the whole matrix, without column indices", "rows of a grid are alike", "conversion; grids only"),
    10: ("several GPUs", "as step 06, on each GPU", "nonzeros per GPU", "transfer of ghost entries; waiting"),
}  # fmt: skip


LOOK = """.here { fill: #1c2430 } .on { fill: #ffffff } .peer { fill: none; stroke: #5d6878 } .quiet { fill: #b3bfcc }
@media (prefers-color-scheme: dark) { .here { fill: #e4e9f0 } .on { fill: #151a21 } .peer { stroke: #9aa6b6 } .quiet { fill: #4d5a6d } }"""


def measured(data):
    """{kind: {step: fastest record}}; 0 is cuSPARSE."""
    return {kind: by_step(data, name, "f64") for kind, name in KINDS.items()}


def gain(best, step):
    """What the next step gains, as a sentence; empty where one of the two was not measured."""
    factors = [
        f"{gflops(of[step + 1]) / gflops(of[step]):.2g} times as fast on the {kind}"
        for kind, of in best.items()
        if step in of and step + 1 in of
    ]
    return f"Step {step + 1:02} is {' and '.join(factors)}." if factors else ""


def kernels(best, step):
    """Whose time the bars of `step` are: of several kernels it is the fastest, which differs
    between matrices."""
    names = {kind: of[step]["kernel"] for kind, of in best.items() if step in of}
    if len(set(names.values())) > 1:
        return f"Bars of step {step:02}: {', '.join(f'{name} ({kind})' for kind, name in names.items())}."
    return f"Bars of step {step:02}: {next(iter(names.values()))}." if names else ""


def heading(step):
    """Where the reader is, and what comes next."""
    text = f"You are at step {step:02}: {STEPS[step][0]}."
    return text + (f" Next, {step + 1:02}: {STEPS[step + 1][0]}." if step + 1 in STEPS else "")


def draw(data, step):
    best = measured(data)
    picture = Picture(heading(step))
    picture.width = PRINTED
    top, bottom, slot = 52, 136, 28
    told = []
    for panel, (kind, of) in enumerate(best.items()):
        left = 10 + panel * PRINTED / 2
        highest = max(map(gflops, of.values()))
        head = f"{kind}, {short(KINDS[kind])}: GFLOP/s on an {data.device}"
        picture.text(left, 42, head, "soft small")
        for place, rung in enumerate((*STEPS, 0)):
            x = left + place * slot + 16 * (rung == 0)
            middle = x + slot / 2 - 2
            here = rung == step
            if here:
                picture.rect(x, bottom + 4, slot - 4, 17, "here", rx=4)
            name, look = f"{rung:02}" if rung else "cuSPARSE", "on small" if here else "ink small"
            picture.text(middle, bottom + 17, name, look, "middle")
            if rung in SHORT_PATH:
                at = {"cx": float(middle), "cy": float(bottom + 27)}
                picture.add("circle", **at, r=2.5, class_="here")
            if rung not in of:
                text = {1: "CPU", 10: "GPUs"}.get(rung, "–")
                picture.text(middle, bottom - 4, text, "soft small", "middle")
                continue
            height = (bottom - top - 12) * gflops(of[rung]) / highest
            fill = "here" if here else "peer" if not rung else "quiet"
            picture.rect(x + 2, bottom - height, slot - 8, height, fill, rx=2)
            text, look = f"{gflops(of[rung]):.0f}", "ink small" if here else "soft small"
            picture.text(middle, bottom - height - 4, text, look, "middle")
        names = {s: f"step {s:02}" if s else "cuSPARSE" for s in of}
        named = ", ".join(f"{names[s]} {gflops(r):.0f}" for s, r in of.items())
        told.append(f"{kind} {short(KINDS[kind])}: {named}")
    lines = [f"{kernels(best, step)} {gain(best, step)}".strip()]
    lines += [
        "Each step has its fastest kernel, and so has cuSPARSE; double precision, inputs in the L2 cache as far as they fit."
    ]
    lines += ["A dash: unsuitable. Dots: the short path, 90 minutes."]
    lines += code_note([record for of in best.values() for record in of.values()])
    picture.height += 10  # of the dots
    picture.add("style", LOOK)
    picture.description = f"GFLOP/s of the fastest kernel of each step. {'. '.join(told)}."
    picture.caption(" ".join(filter(None, lines)))
    return picture.svg()


def shown(data, step):
    """The picture, as a page of the root shows it."""
    best = measured(data)
    text = " ".join(f"{heading(step)} {kernels(best, step)} {gain(best, step)}".split())
    return f"![{text}]({FOLDER}/{step:02}.svg)\n"


def table(step):
    """The steps so far."""
    lines = ["## The steps so far", ""]
    lines += ["| step | reads coalesced | balances | costs |", "| :--- | :--- | :--- | :--- |"]
    for number_, (idea, *cells) in STEPS.items():
        if number_ <= step:
            name = f"{number_:02} {idea}"
            lines.append(f"| {f'**{name}**' if number_ == step else name} | {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def save(data, out):
    out.mkdir(parents=True, exist_ok=True)
    for step in STEPS:
        (out / f"{step:02}.svg").write_text(draw(data, step), encoding="utf-8")
