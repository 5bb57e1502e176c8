"""Tables of records for pages: <!-- table: ... -->; update_readmes.py says how one is asked for."""

import functools
import math
import operator
import re
import statistics

import columns
from ladder import STEPS
from ours import by_step
from published import published
from records import OTHER_CODE, ROOT, TIME_CLASSES, Data, bandwidth, daggers, code_state, data_sheet
from records import format_bytes, gflops, is_tie, milliseconds, number, on_gpu, read_records, short
from records import time_class
from sets import fits
from tables import Table

VERSIONS = "/plots/README.md#devices-and-versions"


class BlockError(Exception):
    """A block that cannot be filled; the text says why."""


def setup_of(record):
    return record["setup_ms"] + record["preprocess_ms"]


def share_of_copy(record):
    return 100 * bandwidth(record) / record["copy_gb_per_s"]


# name -> (what it is, value of a record, whether more is better). The row-free baseline is a
# record, too, named baseline.
COLUMNS = {
    "gflops": ("GFLOP/s, warm", gflops, True),
    "warm_us": ("microseconds, warm", lambda r: 1e3 * milliseconds(r), False),
    "gb_per_s": ("GB/s of what the format must move, warm", bandwidth, True),
    "of_copy": ("% of the bytes per second of a copy, warm", share_of_copy, True),
    "setup_ms": ("milliseconds of setup and preprocess", setup_of, False),
}
for column in filter(operator.attrgetter("in_tables"), columns.COLUMNS):
    COLUMNS[column.name] = column.in_tables, operator.itemgetter(column.name), False
FOLLOW_TIME = {"gflops", "warm_us"}  # of all formats alike, so that spreads of times tell ties


def break_even(record, rival):
    """Products after which a kernel is ahead of a rival, both with their setup; None if never."""
    if not rival or milliseconds(rival) <= milliseconds(record):
        return None
    gain = milliseconds(rival) - milliseconds(record)
    return max(math.ceil((setup_of(record) - setup_of(rival)) / gain), 1)


def find_matrix(records, name):
    """The full name of the one matrix that is called `name`, or `name` up to its first comma."""
    names = {r["matrix"] for r in records}
    found = {name} & names or {full for full in names if short(full) == name}
    if len(found) != 1:
        raise BlockError(f"{len(found)} matrices called {name} in the records, not one")
    return found.pop()


def best_of(kernel):
    """The patterns of best:PATTERN|... or best(HEAD):PATTERN|..., else None."""
    best = re.fullmatch(r"best(?:\(.*?\))?:(.*)", kernel)
    return best and best[1].split("|")


def matches(name, kernel):
    return fits(name, best_of(kernel) or [kernel])


def head_of(kernel):
    """What stands above a kernel's column: of cuSPARSE's best its format, if the pattern has
    one."""
    named = re.match(r"best\((.*?)\):", kernel)
    if named:
        return named[1].replace("_", " ")
    best = re.fullmatch(r"best:cusparse(?:_(csr|coo|sell|bsr))?.*", kernel)
    if best:
        return "best cuSPARSE" + (f" {best[1].upper()}" if best[1] else "")
    return "row-free baseline" if kernel == "baseline" else kernel.replace("best:", "best of ")


records_of = functools.lru_cache(read_records)  # a README has many tables of one device


OPTIONAL = {"speedup_of", "published", "program", "folder", "pays_off_against", "slide"}


class RecordTable:
    """What a block asks for, and the records that it shows."""

    def __init__(self, arguments, results=None):
        wanted = dict(word.split("=", 1) for word in arguments.split())
        unknown = set(wanted) - {"device", "kernels", "matrices", "precision", "column"} - OPTIONAL
        if unknown:
            raise BlockError(f"unknown: {', '.join(sorted(unknown))}")
        try:
            self.kernels, matrices = wanted["kernels"].split(","), wanted["matrices"].split(",")
            # A comma within a name is written as a semicolon.
            self.matrices = [name.replace(";", ",") for name in matrices]
            self.precision, self.column = wanted["precision"], wanted["column"]
            everything = records_of(
                wanted["device"], results, wanted.get("program", ""), wanted.get("folder", "")
            )
        except KeyError as missing:
            raise BlockError(f"a table needs {missing.args[0]}=") from None
        if self.column not in COLUMNS:
            raise BlockError(f"no column {self.column}; there are {', '.join(COLUMNS)}")
        self.title, self.value, self.more_is_better = COLUMNS[self.column]
        self.fast = wanted.get("speedup_of")
        self.rival = wanted.get("pays_off_against")
        self.published = wanted.get("published")
        self.is_slide = "slide" in wanted
        if self.rival:
            self.title = f"Products after which setup pays off against {self.rival}"
            self.more_is_better = False
        self.records = [r for r in everything if r["precision"] == self.precision]
        self.displayed, self.ties = [], False
        # By how long a product of `fast` takes, and by kernel.
        self.ratios = {name: {kernel: [] for kernel in self.kernels} for name in TIME_CLASSES}

    def best(self, of, **by):
        return (max if self.more_is_better else min)(of, **by)

    def cell(self, matrix, kernel):
        """The value and a note on it, of the record that the column `kernel` shows, which is added
        to `displayed`."""
        mine = [r for r in self.records if r["matrix"] == matrix]
        if kernel == "baseline":
            beside = [r for r in mine if "baseline_warm_ms" in r and r["format"] == "CSR"]
            if not beside:
                return None, ""
            return self.value(dict(beside[-1], warm_ms=beside[-1]["baseline_warm_ms"])), ""
        fit = [r for r in mine if matches(r["kernel"], kernel)]
        if not fit:
            return None, ""
        best = self.best(fit, key=self.value)
        self.displayed.append(best)
        if self.rival:
            other = next((r for r in mine if r["kernel"] == self.rival), None)
            self.displayed.extend([other] if other else [])
            return break_even(best, other), ""
        note = best["kernel"].removeprefix("cusparse_")
        if not best_of(kernel):
            note = re.sub(" (a|per) row$", "", best["choice"])
        return self.value(best), (note + " †" * (code_state(best) == OTHER_CODE)).strip()

    def as_speedups(self, matrix, cells):
        """How many times as fast as each of `cells` the kernel `fast` is."""
        own = self.cell(matrix, self.fast)[0]
        for k, (figure, _) in enumerate(cells):
            ratio = own and figure and (own / figure if self.more_is_better else figure / own)
            cells[k] = ratio, ""
        if own:
            of_class = self.ratios[time_class(milliseconds(self.displayed[-1]))]
            for kernel, (ratio, _) in zip(self.kernels, cells):
                of_class[kernel] += [ratio] if ratio else []
        return cells

    def bold(self, matrix, cells):
        """The best of the kernels named one by one, and those that tie with it."""
        named = {k: c[0] for c, k in zip(cells, self.kernels) if ":" not in k and k != "baseline"}
        ours = {k: figure for k, figure in named.items() if figure is not None}
        if len(ours) < 2 or self.fast or self.rival:
            return []
        best = self.best(ours.values())
        bold = [k for k, figure in ours.items() if figure == best]
        timed = {r["kernel"]: r for r in self.records if r["matrix"] == matrix and on_gpu(r)}
        if self.column not in FOLLOW_TIME or bold[0] not in timed:
            return bold
        others = [k for k in ours if k not in bold and k in timed]
        tied = [k for k in others if is_tie(timed[bold[0]], timed[k])]
        self.ties = self.ties or bool(tied)
        return bold + tied

    def text(self, figure, note, is_bold):
        text = "—" if figure is None else str(figure) if self.rival else number(figure)
        if is_bold:
            text = f"**{text}**"
        return f"{text} ({note})" if note and not self.is_slide else text

    def row(self, name):
        full = find_matrix(self.records, name)
        matrix = next(r for r in self.records if r["matrix"] == full)
        cells = [self.cell(full, kernel) for kernel in self.kernels]
        if self.fast:
            cells = self.as_speedups(full, cells)
        bold = self.bold(full, cells)
        texts = [self.text(*cell, kernel in bold) for cell, kernel in zip(cells, self.kernels)]
        label = (name if self.is_slide else full) + " (stand-in)" * (matrix["source"] == "stand-in")
        return [label, f"{matrix['nnz'] / max(matrix['rows'], 1):.1f}", *texts]

    def caption(self):
        full_names = {find_matrix(self.records, name) for name in self.matrices}
        asked = self.kernels + ([self.fast] if self.fast else [])
        shown = [r for r in self.records if r["matrix"] in full_names]
        shown = [r for r in shown if any(matches(r["kernel"], k) for k in asked)]
        devices = ", ".join(sorted({r["device"] for r in shown if "device" in r}))
        # Drivers and versions are below the fold; update() makes the link relative to the page.
        caption = f"{self.title}; {self.precision}; {devices if self.is_slide else f'[{devices}]({VERSIONS})'}."
        if self.column == "gb_per_s":
            caption += f" A copy runs at {number(max(r['copy_gb_per_s'] for r in shown))} GB/s."
        named = any(not best_of(k) and k != "baseline" for k in self.kernels)
        if named and len(self.kernels) > 1 and not self.fast and not self.rival:
            others = any(best_of(k) or k == "baseline" for k in self.kernels)
            of = ", not counting cuSPARSE and the baseline" if others else " of the kernels here"
            caption += f" Bold: the best{of}"
            caption += ", and what ties with it: their spreads overlap." if self.ties else "."
        return caption

    def page(self):
        """A Markdown table and the line that says what it shows."""
        rows = [self.row(name) for name in self.matrices]
        # Setup takes longer while other processes prepare matrices.
        is_of_setup = self.rival or self.column == "setup_ms"
        beside = is_of_setup and [r for r in self.displayed if not r.get("alone")]
        if self.rival and beside:
            why = "since setup was measured while other processes prepared matrices"
            return f"{self.title}: withdrawn, {why}; `make bench SET=setup` measures it alone.\n"
        if self.fast:
            self.title = f"How many times as fast as the others {self.fast} is: {self.title}"
            for name, of_kernel in self.ratios.items():
                mean = statistics.geometric_mean
                means = [number(mean(r)) if r else "—" for r in of_kernel.values()]
                if any(of_kernel.values()):
                    rows.append([f"geometric mean, {name}", "", *means])
        if self.published:
            theirs = published(self.published).where(precision=self.precision)
            given = {row["kernel"]: row["speedup"] for row in theirs}
            rows.append(["the paper", "", *(given.get(kernel, "") for kernel in self.kernels)])
        notes = daggers(self.displayed)
        if beside:
            notes.append("Measured while other processes prepared matrices, which can lengthen it.")
        heads = ["matrix", "nonzeros per row", *(head_of(kernel) for kernel in self.kernels)]
        table = Table(self.title, heads, rows, notes).markdown()
        return f"{self.caption()}\n\n{table}".replace("|  |", "| |")


# --- All steps ------------------------------------------------------------------------------------

CSR_OR_COO = ["cusparse_csr*", "cusparse_spmvop*", "cusparse_coo*"]
CUSPARSE = {  # rows below the steps
    "cuSPARSE, CSR, ALG1": ["cusparse_csr_alg1"],
    "cuSPARSE, fastest for CSR or COO": CSR_OR_COO,
    "cuSPARSE, fastest of all formats": ["cusparse_*"],
}


def steps_page(arguments, results=None):
    """A row per step with its fastest kernel on each matrix, then cuSPARSE's: GFLOP/s, share of
    cuSPARSE and of a copy."""
    wanted = dict(word.split("=", 1) for word in arguments.split())
    if set(wanted) != {"device", "precision", "matrices"}:
        raise BlockError("steps needs device=, precision= and matrices=HEAD:NAME,..., no more")
    data, precision = Data(wanted["device"], results), wanted["precision"]
    matrices = {}
    for pair in wanted["matrices"].split(","):
        head, _, name = pair.replace(";", ",").partition(":")
        matrices[find_matrix(data.times.values(), name)] = head.replace("_", " ")
    shown = []

    def cell(matrix, record):
        if not record:
            return "—"
        shown.append(record)
        rival = data.fastest(matrix, precision, CSR_OR_COO)
        shares = [gflops(record) / gflops(rival)] if rival else []
        if on_gpu(record):
            shares.append(bandwidth(record) / record["copy_gb_per_s"])
        shares = ", ".join(f"{100 * of:.{0 if of >= 0.01 else 1}f}%" for of in shares)
        mark = " †" if code_state(record) == OTHER_CODE else ""
        return number(gflops(record)) + f" ({shares})" * bool(shares) + mark

    best = {matrix: by_step(data, matrix, precision) for matrix in matrices}
    rows = []
    for step, (idea, *_) in STEPS.items():
        if step == 10:  # has no product on one GPU
            continue
        (room,) = (path.name for path in ROOT.glob(f"{step:02}_*"))
        of = {m: best[m].get(step) for m in matrices}
        if step == 1:
            of = {m: data.fastest(m, precision, ["csr_sequential"], gpu=False) for m in matrices}
        cells = [cell(*each) for each in of.items()]
        rows.append([f"[{step:02}]({room}/README.md) {idea}", *cells])
    for head, patterns in CUSPARSE.items():
        rows.append([head, *(cell(m, data.fastest(m, precision, patterns)) for m in matrices)])
    names = "; ".join(f"{head}: {m} ({data.source(m)})" for m, head in matrices.items())
    l2 = data_sheet(data.device, "l2_bytes") or 0
    small = {
        m for m in best for r in best[m].values() if r["format"] == "CSR" and format_bytes(r) <= l2
    }
    fits_in = " and ".join(head for m, head in matrices.items() if m in small)
    caption = (
        f"GFLOP/s of each step's fastest kernel, warm, {precision}, [{data.device}]({VERSIONS}). "
    )
    caption += (
        "In brackets: share of the speed of cuSPARSE's fastest for CSR or COO, and share of a "
    )
    caption += "copy's bytes per second, counted in the kernel's own format"
    caption += f" ({fits_in} fit in the L2)" * bool(fits_in)
    caption += ". A dash: the kernel refuses the matrix. [Step 10](10_multigpu/README.md) needs several GPUs and has no row."
    table = Table("", ["step", *matrices.values()], rows, [names + ".", *daggers(shown)])
    return f"{caption}\n\n{table.markdown()}"
