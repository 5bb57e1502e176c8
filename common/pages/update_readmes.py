#!/usr/bin/env python3
"""Fills the generated blocks of the READMEs, so that no number in them is typed by hand.

    plots/python.sh common/pages/update_readmes.py           rewrite the blocks that are out of date
    plots/python.sh common/pages/update_readmes.py --check   rewrite nothing; exit 1 if a block is out of date
    plots/python.sh common/pages/update_readmes.py --no-commands [--check]   only what comes from records and sources

A block begins with one of these markers on a line of its own and ends with <!-- end -->:

    <!-- output: make run ARGS=--verify-only -->
        What the command prints, run by bash in the root of the repository on the CPU backend.
        `<!-- output exit=1: diff a b -->` expects that exit status instead of 0, and with cut=A..B
        the lines from the first that begins with A to the next that begins with B are left out.

    <!-- code: 02_csr_scalar/csr_scalar.cuh /T sum = 0/ /^  }/ -->
        The lines of a file from the first that matches one pattern to the next that matches the
        other, without the marks of exercises (common/coursework/exercises.py).

    <!-- table: device=NVIDIA_H200 kernels=csr_scalar,best:cusparse_* matrices=G3_circuit
         precision=f64 column=gflops -->
        One line per matrix, one column per kernel, from plots/results/DEVICE/*.jsonl. Markers may take
        several lines. `matrices` are names up to their first comma. A kernel may be
        best:PATTERN, the fastest that matches, or best(HEAD):PATTERN|PATTERN, the same below a
        head of its own (_ for a space), or baseline, the row-free one. `column` is one of those in COLUMNS. With
        speedup_of=KERNEL the cells say how many times as fast as the column's kernel KERNEL is,
        with their geometric mean and, with published=NAME, the paper's own figures from
        plots/published/NAME.csv below. program=NAME shows the records of a step's own program.
        With pays_off_against=KERNEL the cells say after how many products a kernel's setup has paid off
        against KERNEL's.

    <!-- claims: device=NVIDIA_H200 -->
        The papers' headline claims, their numbers and those of plots/results/DEVICE (claims.py).

Times differ from run to run and from machine to machine, and so does the processor's name. What is
written is what was printed, but two outputs that differ only in such things count as the same (see
masked()), and the block keeps its text.
"""

import argparse
import fnmatch
import functools
import math
import os
import re
import statistics
import subprocess
import sys
from pathlib import Path

import claims
from record_format import write_whole
from records import ROOT, Data, RecordError, bandwidth, baseline_share, gflops, milliseconds, number
from records import published, read_records, short
from tables import Table

BLOCK = re.compile(
    r"^<!-- (output|code|table|claims)\b([^:]*): *(.*?) *-->\n(.*?)^<!-- end -->$", re.DOTALL | re.MULTILINE
)
END = "<!-- end -->"
VERSIONS = "/plots/README.md#devices-and-versions"


class BlockError(Exception):
    """A block that cannot be filled; the text says why."""


# --- Output of a command --------------------------------------------------------------------------


def run_command(command, expected_status=0, cut=None):
    """A fenced block of the command and of what it prints on stdout, without the lines `cut`."""
    environment = dict(os.environ, BACKEND="cpu", LC_ALL="C.UTF-8")
    # Threads that wait for each other without spinning: times stand even if the machine is busy.
    environment["OMP_WAIT_POLICY"] = "passive"
    for name in ("MAKEFLAGS", "MAKELEVEL", "MFLAGS"):  # this script may be run by make
        environment.pop(name, None)
    done = subprocess.run(
        ["bash", "-o", "pipefail", "-c", command],
        cwd=ROOT,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    if done.returncode != expected_status:
        raise BlockError(
            f"exit status {done.returncode}, not {expected_status}: {done.stderr.strip()[-500:]}"
        )
    # Which backend and why is for the reader's machine to say, not for the one that wrote this.
    text = re.sub(r"^(backend: cpu) \([^)]*\)", r"\1", done.stdout, flags=re.MULTILINE)
    # Nor is it of interest where the repository lies on it.
    text = re.sub(r"^make(\[\d+\])?: (Entering|Leaving) .*\n", "", text, flags=re.MULTILINE)
    # oneMKL is only where somebody asked for it.
    text = re.sub(r"^--  +mkl_csr .*\n", "", text, flags=re.MULTILINE)
    if cut:
        first, last = (re.escape(part) for part in cut)
        text, cuts = re.subn(rf"^{first}.*?(?=^{last})", "[...]\n\n", text, 1, re.DOTALL | re.MULTILINE)
        if not cuts:
            raise BlockError(f"nothing to cut from '{cut[0]}' to '{cut[1]}'")
    language = "diff" if command.startswith("diff") else "text"
    prompt = "" if language == "diff" else f"$ {command}\n"
    return f"```{language}\n{prompt}{text.strip(chr(10))}\n```\n"


def masked(text):
    """`text` without what may differ between two right runs of one command.

    That is: the line that names the processor, the numbers of a GFLOP/s column or before the word
    GFLOP/s, how many tests and assertions there are (not how many failed), how many results were verified (not how many
    were wrong), the milliseconds of anything, and, since a number of another length moves what follows it, how many spaces and dashes stand in a row.
    """
    lines = []
    column = None  # where the GFLOP/s column of the current table begins
    for line in text.splitlines():
        if line.startswith("backend:"):
            line = "backend:"
        if line.startswith("Filters:"):  # of Catch2: which tests run in this process
            line = "Filters:"
        if not line.strip():
            column = None
        elif re.match(r"step +kernel\b.* GFLOP/s$", line):
            column = len(line) - len("GFLOP/s")
        elif column is not None and len(line) > column:
            line = line[:column] + "#"
        if line.startswith("Verified against"):  # mkl_csr is one more, where there is oneMKL
            line = re.sub(r"(all )?\d+( of \d+)? results", "# results", line)
        line = re.sub(r"[\d.]+ (GFLOP/s|assertions?|test cases?|passed|ms)\b", r"# \1", line)
        lines.append(re.sub(r"-{3,}", "---", re.sub(r" +", " ", line)).rstrip())
    return "\n".join(lines)


# --- Lines of a file ------------------------------------------------------------------------------


def quote_code(arguments):
    """A fenced block of `FILE /START/ /END/`."""
    match = re.fullmatch(r"(\S+) +/(.*)/ +/(.*)/", arguments, re.DOTALL)
    if not match:
        raise BlockError("a code block needs FILE /START/ /END/")
    path, start, end = match.groups()
    lines = (ROOT / path).read_text().splitlines()
    lines = [line for line in lines if not re.fullmatch(r" *// exercise: (begin|end)", line)]
    first = next((i for i, line in enumerate(lines) if re.search(start, line)), None)
    if first is None:
        raise BlockError(f"no line of {path} matches /{start}/")
    last = next((i for i in range(first, len(lines)) if re.search(end, lines[i])), None)
    if last is None:
        raise BlockError(f"no line of {path} from {first + 1} on matches /{end}/")
    indent = min(len(line) - len(line.lstrip()) for line in lines[first : last + 1] if line.strip())
    body = "\n".join(line[indent:] for line in lines[first : last + 1])
    return f"```cpp\n{body}\n```\n"


# --- Tables from records --------------------------------------------------------------------------

# name -> (what it is, value of a record, whether more is better). The row-free baseline is a record, too, named baseline.
COLUMNS = {
    "gflops": ("GFLOP/s, warm", gflops, True),
    "gflops_cold": ("GFLOP/s, cold", lambda r: gflops(r, "cold"), True),
    "warm_us": ("microseconds, warm", lambda r: 1e3 * milliseconds(r), False),
    "cold_us": ("microseconds, cold", lambda r: 1e3 * milliseconds(r, "cold"), False),
    "gb_per_s": ("GB/s of compulsory bytes, warm", bandwidth, True),
    "of_baseline": ("percent of the row-free baseline's speed, warm", lambda r: 100 * baseline_share(r), True),
    "setup_ms": ("milliseconds of setup and preprocess", lambda r: r["setup_ms"] + r["preprocess_ms"], False),
    # Of records of an iteration, with program=.
    "total_ms": ("milliseconds of all steps", lambda r: r["total_ms"], False),
    "step_us": ("microseconds per step", lambda r: 1e3 * r["total_ms"] / r["steps"], False),
}


def break_even(record, rival):
    """Products after which a kernel is ahead of a rival, both with their setup; None if never."""
    if not rival or milliseconds(rival) <= milliseconds(record):
        return None
    setup, rivals = (r["setup_ms"] + r["preprocess_ms"] for r in (record, rival))
    return max(math.ceil((setup - rivals) / (milliseconds(rival) - milliseconds(record))), 1)


def find_matrix(records, name):
    """The full name of the one matrix that is called `name`, or `name` up to its first comma."""
    names = {r["matrix"] for r in records}
    found = {name} & names or {full for full in names if short(full) == name}
    if len(found) != 1:
        raise BlockError(f"{len(found)} matrices called {name} in the records, not one")
    return found.pop()


def published_speedups(name, precision, kernels):
    """A row of plots/published/NAME.csv's speedups, one for each of `kernels` where there is one."""
    rows = published(name).where(precision=precision)
    given = {row["kernel"]: row["speedup"] for row in rows}
    return ["the paper", "", *(given.get(kernel, "") for kernel in kernels)]


def best_of(kernel):
    """The patterns of best:PATTERN|... or best(HEAD):PATTERN|..., else None."""
    best = re.fullmatch(r"best(?:\(.*?\))?:(.*)", kernel)
    return best and best[1].split("|")


def matches(name, kernel):
    return any(fnmatch.fnmatchcase(name, pattern) for pattern in best_of(kernel) or [kernel])


def head_of(kernel):
    """What stands above a kernel's column: of cuSPARSE's best its format, if the pattern has one."""
    named = re.match(r"best\((.*?)\):", kernel)
    if named:
        return named[1].replace("_", " ")
    best = re.fullmatch(r"best:cusparse(?:_(csr|coo|sell|bsr))?.*", kernel)
    if best:
        return "best cuSPARSE" + (f" {best[1].upper()}" if best[1] else "")
    return "row-free baseline" if kernel == "baseline" else kernel.replace("best:", "best of ")


records_of = functools.lru_cache(read_records)  # a README has many tables of one device


def make_table(arguments, results=None):
    """A Markdown table and the line that says what it shows."""
    wanted = dict(word.split("=", 1) for word in arguments.split())
    unknown = set(wanted) - {"device", "kernels", "matrices", "precision", "column"}
    unknown -= {"speedup_of", "published", "program", "pays_off_against"}
    if unknown:
        raise BlockError(f"unknown: {', '.join(sorted(unknown))}")
    try:
        kernels, matrices = wanted["kernels"].split(","), wanted["matrices"].split(",")
        # A comma within a name is written as a semicolon.
        matrices = [name.replace(";", ",") for name in matrices]
        precision, column = wanted["precision"], wanted["column"]
        everything = records_of(wanted["device"], results, wanted.get("program", ""))
    except KeyError as missing:
        raise BlockError(f"a table needs {missing.args[0]}=") from None
    if column not in COLUMNS:
        raise BlockError(f"no column {column}; there are {', '.join(COLUMNS)}")
    title, value, more_is_better = COLUMNS[column]
    fast = wanted.get("speedup_of")
    rival = wanted.get("pays_off_against")
    if rival:
        title, more_is_better = f"Products after which setup pays off against {rival}", False
    records = [r for r in everything if r["precision"] == precision]

    def cell(matrix, kernel):
        """The value and a note on it, of the record that the column `kernel` shows."""
        mine = [r for r in records if r["matrix"] == matrix]
        if kernel == "baseline":
            beside = [r for r in mine if "baseline_warm_ms" in r and r["format"] == "CSR"]
            if not beside:
                return None, ""
            baseline = dict(beside[-1], **{f"{state}_ms": beside[-1][f"baseline_{state}_ms"] for state in ("warm", "cold")})
            return value(baseline), ""
        fit = [r for r in mine if matches(r["kernel"], kernel)]
        if not fit:
            return None, ""
        best = (max if more_is_better else min)(fit, key=value)
        if rival:
            return break_even(best, next((r for r in mine if r["kernel"] == rival), None)), ""
        if best_of(kernel):
            return value(best), best["kernel"].removeprefix("cusparse_")
        return value(best), re.sub(" (a|per) row$", "", best["choice"])

    full_names = {find_matrix(records, name) for name in matrices}
    asked = kernels + ([fast] if fast else [])
    shown = [r for r in records if r["matrix"] in full_names and any(matches(r["kernel"], k) for k in asked)]
    heads = ["matrix", "nonzeros per row", *(head_of(kernel) for kernel in kernels)]
    rows = []
    ratios = {kernel: [] for kernel in kernels}
    for name in matrices:
        full = find_matrix(records, name)
        matrix = next(r for r in records if r["matrix"] == full)
        cells = [cell(full, kernel) for kernel in kernels]
        if fast:
            own = cell(full, fast)[0]
            cells = [(own and figure and (own / figure if more_is_better else figure / own), "")
                     for figure, _ in cells]
            for kernel, (ratio, _) in zip(kernels, cells):
                ratios[kernel] += [ratio] if ratio else []
        # Bold: the best of the kernels named one by one.
        ours = [c[0] for c, k in zip(cells, kernels) if c[0] is not None and ":" not in k and k != "baseline"]
        best = (max if more_is_better else min)(ours) if len(ours) > 1 and not fast and not rival else None
        texts = []
        for (figure, note), kernel in zip(cells, kernels):
            text = "—" if figure is None else str(figure) if rival else number(figure)
            if figure is not None and figure == best and ":" not in kernel and kernel != "baseline":
                text = f"**{text}**"
            texts.append(f"{text} ({note})" if note else text)
        star = "" if matrix["source"] != "stand-in" else " (stand-in)"
        rows.append([name + star, f"{matrix['nnz'] / max(matrix['rows'], 1):.1f}", *texts])

    if fast:
        title = f"How many times as fast as the others {fast} is: {title}"
        means = [number(statistics.geometric_mean(r)) if r else "—" for r in ratios.values()]
        rows.append(["geometric mean", "", *means])
    if "published" in wanted:
        rows.append(published_speedups(wanted["published"], precision, kernels))

    def all_of(field):
        return ", ".join(sorted({r[field] for r in shown if field in r}))

    # Drivers and versions are below the fold; update() makes the link relative to the page.
    caption = f"{title}; {precision}; [{all_of('device')}]({VERSIONS})."
    if column == "gb_per_s":
        caption += f" A copy runs at {number(max(r['copy_gb_per_s'] for r in shown))} GB/s."
    if any(not best_of(k) and k != "baseline" for k in kernels) and len(kernels) > 1 and not fast and not rival:
        caption += " Bold: the best of the kernels here."
    return f"{caption}\n\n{Table(title, heads, rows).markdown()}".replace("|  |", "| |")


def make_claims(arguments, results=None):
    match = re.fullmatch(r"device=(\S+)", arguments)
    if not match:
        raise BlockError("claims need device=DEVICE[,DEVICE] and nothing else")
    return claims.claims_table(*(Data(device, results) for device in match[1].split(","))).markdown()


# --- READMEs --------------------------------------------------------------------------------------


def fill(kind, options, argument):
    """What belongs between the markers."""
    argument = " ".join(argument.split()) if kind == "table" else argument
    if kind == "output":
        known = re.fullmatch(r"(?: exit=(\d+))?(?: cut=(\S+)\.\.(\S+))?", options)
        if not known:
            raise BlockError(f"what is '{options.strip()}'?")
        return run_command(argument, int(known[1] or 0), known[2] and known.group(2, 3))
    if options:
        raise BlockError(f"what is '{options.strip()}'?")
    if kind == "code":
        return quote_code(argument)
    return "\n" + (make_claims(argument) if kind == "claims" else make_table(argument)) + "\n"


def fill_without_commands(kind, options, argument):
    """As fill, but what a command prints stays as it is (None)."""
    return None if kind == "output" else fill(kind, options, argument)


def update(text, fill_block=fill, to_root=""):
    """`text` with its blocks filled, the markers of those that changed, and what went wrong. `to_root`: what
    stands before a path of the repository in a link of this page."""
    changed, failed = [], []

    def replace(match):
        kind, options, argument, old = match.groups()
        marker = match[0][: match.start(4) - match.start()]
        if re.search(r"^<!-- (output|code|table|claims)\b", old, re.MULTILINE):
            failed.append((marker.strip(), f"no {END} before the next block"))
            return match[0]
        try:
            new = fill_block(kind, options, argument)
        except (BlockError, RecordError) as error:
            failed.append((marker.strip(), str(error)))
            return match[0]
        if new is not None and kind == "table":
            new = new.replace(f"({VERSIONS})", f"({to_root}{VERSIONS[1:]})")
        if new is None or (masked(new) == masked(old) if kind == "output" else new == old):
            return match[0]
        changed.append(marker.strip())
        return marker + new + END

    return BLOCK.sub(replace, text), changed, failed


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--check", action="store_true", help="write nothing; exit 1 if out of date")
    parser.add_argument("--no-commands", action="store_true", help="run no command")
    parser.add_argument("files", nargs="*", type=Path, help="default: every page of the tree")
    arguments = parser.parse_args()
    files = arguments.files or sorted(
        page for depth in ("*.md", "*/*.md", "common/*/*.md", "[0-9][0-9]_*/*/*.md")
        for page in ROOT.glob(depth) if page.parts[-2] != "build"
    )
    status = 0
    for file in files:
        name = os.path.relpath(file, ROOT)
        to_root = "../" * (len(Path(name).parts) - 1)
        fill_block = fill_without_commands if arguments.no_commands else fill
        text, changed, failed = update(file.read_text(), fill_block, to_root)
        for marker in changed:
            print(f"{name}: {'out of date' if arguments.check else 'updated'}: {marker}")
        for marker, reason in failed:
            print(f"{name}: cannot fill: {marker}\n  {reason}", file=sys.stderr)
        if failed or (changed and arguments.check):
            status = 1
        if changed and not arguments.check:
            write_whole(file, text)
    return status


if __name__ == "__main__":
    sys.exit(main())
