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
        against KERNEL's. slide=yes leaves out what kernels have chosen, and the link to versions.

    <!-- steps: device=NVIDIA_H200 precision=f64 matrices=grid:stencil2d:1000x1000,graph:cnr-2000 -->
        A row per step, then cuSPARSE; a column per matrix, as HEAD:NAME.

    <!-- claims: device=NVIDIA_H200 -->
        The papers' headline claims, their numbers and those of plots/results/DEVICE (claims.py). With short=yes
        verdicts instead of medians and reasons, and one column: of the first device that has a number.

    <!-- ladder: step=4 -->
        The picture of a step's place among the others; `step=4 table` is a table with a row per step so far (ladder.py).

    <!-- reproduce: figures -->
        What measures each figure, for plots/REPRODUCE.md; or `tried`: the last make try of each device (reproduce.py).

Numbers within sentences are bound by a comment at the end of their paragraph: sentences.py.

Times differ from run to run and from machine to machine, and so does the processor's name. What is
written is what was printed, but two outputs that differ only in such things count as the same (see
masked()), and the block keeps its text.
"""

import argparse
import os
import re
import sys
from pathlib import Path

import claims
import ladder
import reproduce
from check_pages import pages
from page_tables import VERSIONS, BlockError, RecordTable, steps_page
from record_format import write_whole
from figures import DEVICE
from records import ROOT, Data, RecordError
from run_commands import run_bash
from sentences import fill_numbers

BEGIN = r"^<!-- (output|code|table|steps|claims|ladder|reproduce)\b"
BLOCK = re.compile(rf"(?ms){BEGIN}([^:]*): *(.*?) *-->\n(.*?)^<!-- end -->$")
END = "<!-- end -->"


# --- Output of a command --------------------------------------------------------------------------


def run_command(command, expected_status=0, cut=None):
    """A fenced block of the command and of what it prints on stdout, without the lines `cut`."""
    done = run_bash(command)
    if done.returncode != expected_status:
        status = f"exit status {done.returncode}, not {expected_status}"
        raise BlockError(f"{status}: {done.stderr.strip()[-500:]}")
    # Which backend and why is for the reader's machine to say, not for the one that wrote this.
    text = re.sub(r"^(backend: cpu) \([^)]*\)", r"\1", done.stdout, flags=re.MULTILINE)
    # Nor is it of interest where the repository lies on it.
    text = re.sub(r"^make(\[\d+\])?: (Entering|Leaving) .*\n", "", text, flags=re.MULTILINE)
    # oneMKL is only where somebody asked for it.
    text = re.sub(r"^--  +mkl_csr .*\n", "", text, flags=re.MULTILINE)
    if cut:
        first, last = (re.escape(part) for part in cut)
        text, cuts = re.subn(rf"(?ms)^{first}.*?(?=^{last})", "[...]\n\n", text, count=1)
        if not cuts:
            raise BlockError(f"nothing to cut from '{cut[0]}' to '{cut[1]}'")
    language = "diff" if command.startswith("diff") else "text"
    prompt = "" if language == "diff" else f"$ {command}\n"
    return f"```{language}\n{prompt}{text.strip(chr(10))}\n```\n"


def masked(text):
    """`text` without what may differ between two right runs of one command.

    That is: the line that names the processor, the numbers of a GFLOP/s column or before the word
    GFLOP/s, how many tests and assertions there are (not how many failed), how many results were
    verified (not how many were wrong), the milliseconds of anything, and, since a number of another
    length moves what follows it, how many spaces and dashes stand in a row.
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


def make_claims(arguments):
    match = re.fullmatch(r"device=(\S+)( short=yes)?", arguments)
    if not match:
        raise BlockError("claims need device=DEVICE[,DEVICE], short=yes if you like, no more")
    devices = [Data(device) for device in match[1].split(",")]
    return (claims.short_table if match[2] else claims.claims_table)(*devices).markdown()


def make_ladder(argument):
    match = re.fullmatch(r"step=(\d+)( table)?", argument)
    if not match or int(match[1]) not in ladder.STEPS:
        raise BlockError("a ladder needs step=N, of those in ladder.py, and table if you like")
    step = int(match[1])
    return ladder.table(step) if match[2] else ladder.shown(Data(DEVICE), step)


# --- READMEs --------------------------------------------------------------------------------------


def fill(kind, options, argument):
    """What belongs between the markers."""
    argument = " ".join(argument.split()) if kind in ("table", "steps") else argument
    if kind == "output":
        known = re.fullmatch(r"(?: exit=(\d+))?(?: cut=(\S+)\.\.(\S+))?", options)
        if not known:
            raise BlockError(f"what is '{options.strip()}'?")
        return run_command(argument, int(known[1] or 0), known[2] and known.group(2, 3))
    if options:
        raise BlockError(f"what is '{options.strip()}'?")
    if kind == "code":
        return quote_code(argument)
    page = {"ladder": make_ladder, "claims": make_claims, "steps": steps_page}
    page |= {"reproduce": reproduce.page, "table": lambda of: RecordTable(of).page()}
    return f"\n{page[kind](argument)}\n"


def update(text, with_commands=True, to_root=""):
    """`text` with its blocks filled, the markers of those that changed, and what went wrong.
    Without commands what they print stays as it is. `to_root`: what stands before a path of the
    repository in a link of this page."""
    changed, failed = [], []

    def replace(match):
        kind, options, argument, old = match.groups()
        marker = match[0][: match.start(4) - match.start()]
        if re.search(BEGIN, old, re.MULTILINE):
            failed.append((marker.strip(), f"no {END} before the next block"))
            return match[0]
        try:
            new = fill(kind, options, argument) if with_commands or kind != "output" else None
        except (BlockError, RecordError) as error:
            failed.append((marker.strip(), str(error)))
            return match[0]
        if kind in ("table", "steps"):
            new = new.replace(f"({VERSIONS})", f"({to_root}{VERSIONS[1:]})")
        if kind == "ladder":
            new = new.replace(f"({ladder.FOLDER}", f"({to_root}{ladder.FOLDER}")
        if new is None or (masked(new) == masked(old) if kind == "output" else new == old):
            return match[0]
        changed.append(marker.strip())
        return marker + new + END

    text = BLOCK.sub(replace, text)
    return fill_numbers(text, changed, failed), changed, failed


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--check", action="store_true", help="write nothing; exit 1 if out of date")
    parser.add_argument("--no-commands", action="store_true", help="run no command")
    parser.add_argument("files", nargs="*", type=Path, help="default: every page of the tree")
    arguments = parser.parse_args()
    files = arguments.files or [page for page in pages(ROOT) if page.suffix == ".md"]
    status = 0
    for file in files:
        name = os.path.relpath(file, ROOT)
        to_root = "../" * (len(Path(name).parts) - 1)
        text, changed, failed = update(file.read_text(), not arguments.no_commands, to_root)
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
