#!/usr/bin/env python3
"""Runs the commands of the pages: make test-commands

Each is run on the CPU backend; a line per command, exit 1 if one fails.
A command is a line of indented code, or a span of code that begins with make or python3, of a
Markdown page. Those that stand in an <!-- output --> block are left to `make readmes ARGS=--check`,
those of ELSEWHERE to what it names. In all others, names of files that the reader is to have
(PLACEHOLDERS) are replaced, and a target that the top Makefile lacks is one of a step's. The recipe
for an added step is run as it stands, with the kernel shown above it.
"""

import gzip
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from check_pages import COMMENT, FENCE, ROOT, blank, pages

OUTPUT = re.compile(
    r"^<!-- output[^:\n]*: *(.*?) *-->\n.*?^<!-- end -->$", re.MULTILINE | re.DOTALL
)
CODE = re.compile(r"(?:^    (?! ).*\n(?:     +\S.*\n)*)", re.MULTILINE)
COMMAND = re.compile(r"(make|python3|plots/\S+\.sh|spmv|mkdir|sed) ")
STEP = "03_csr_vector"  # whose targets are meant where a page names none
RECIPE = re.compile(r"^(?=    mkdir 11_two_sums)(?:    .*\n)+", re.MULTILINE)

# Commands that are not run here: a pattern of the whole command, and what runs them or stands for
# them.
ELSEWHERE = {
    r".*(\.\.\.|[A-Z]=directory|\bFILE\b|\bPAGE\.md\b|-C STEP\b).*": "names no file: a form, not a command",
    r"make (handout|program)": "the name of a target, which needs STEP= or SOURCE=",
    r"make( -C \S+)? test( SANITIZE=1)?|make test-\S+|make report|make check-format.*": "CI",
    r"make try|make format( .*)?|make check ARGS=--write-times": "runs all of this again, or changes the sources",
    r"make run|make readmes.*": "make readmes ARGS=--check",
    r"make .*BACKEND=cuda.*": "needs a GPU",
    r"make bench.*|make counting-cost": "needs a GPU or hours; plots/measure/test_measure.py tests the driver",
    r".*stationary MATRIX=m_3.7M.*": "minutes; a smaller chain is run here",
    r".*time_model\.py .*": "needs records or a CUDA build; plots/measure/test_time_model.py",
    r"make figures.*|make pictures": "CI draws them in its tests of plots/ and of watch/",
    r"make site|make notebook": "the workflows in .github/",
    r"make mkl|make cusparse": "downloads 250 MB",
    r"make data.*": "needs a network; common/tests/data_test.sh runs it with a server of its own",
    r"make (learn|hint)\b.*": "CI: common/primer/tests",
    r"make (questions|slides)\b.*": "CI",
    r"make watch( TRACE=.*)?|make check|make -C handouts/\S+ check": "CI: common/watch and common/coursework, every step",
    r"make COUNT=0|make info|python3 plots/measure/traffic.py --bytes": "a part of a command",
    r"python3 -m http.server .*": "runs until it is stopped",
    r"python3 06_pcsr/one_pass/amalgamate.py .*|python3 plots/page/check_report.py .*": "CI, with files of its own",
    r"python3 common/coursework/mistakes.py.*|make grade.*": "CI: common/coursework",
}
if not shutil.which("em++"):
    ELSEWHERE["make browser"] = ".github/workflows/site.yml: no emscripten is here"


def commands_of(text):
    """The commands of a page, in order, each once, without comments."""
    text = OUTPUT.sub("", text)
    text = RECIPE.sub("", text)
    found = []
    for block in CODE.findall(FENCE.sub(blank, text)):
        for line in re.sub(r"\\\n *", "", block).splitlines():
            if COMMAND.match(line.strip()):
                found.append(re.split(r" {3,}| +# ", line.strip())[0])
    for span in re.findall(
        r"(?<!`)`((?:make|python3) [^`]+)`(?!`)", FENCE.sub(blank, COMMENT.sub("", text))
    ):
        found.append(" ".join(span.split()))
    return list(dict.fromkeys(re.sub(r"  +", " ", command) for command in found))


def elsewhere(command, shown):
    """What runs the command, if not this script."""
    if command in shown:
        return "make readmes ARGS=--check"
    return next((why for pattern, why in ELSEWHERE.items() if re.fullmatch(pattern, command)), None)


def placeholders(scratch):
    """Files that a reader has: their names in the pages, and what stands for them."""
    matrix, kernel = scratch / "matrix.mtx.gz", scratch / "csr_vector.cuh"
    # Symmetric and positive definite, for conjugate gradients.
    header, entries = b"%%MatrixMarket matrix coordinate real symmetric\n", b"1 1 4\n2 1 1\n2 2 3\n"
    matrix.write_bytes(gzip.compress(header + b"2 2 3\n" + entries))
    shutil.copyfile(ROOT / STEP / "csr_vector.cuh", kernel)
    names = {
        r"path/to/matrix\.mtx\.gz|file\.mtx\.gz": matrix,
        r"(path/to/)?(mine|csr_vector)\.cuh": kernel,
        r"\bmine\.cu\b": ROOT / "10_multigpu/minimal.cu",
    }
    lines = ("records", "run", "trace")
    return names | {rf"\b{name}\.jsonl": scratch / f"{name}.jsonl" for name in lines}


def prepared(command, names, targets):
    for name, file in names.items():
        command = re.sub(name, str(file), command)
    goal = re.match(r"make ([a-z][a-z0-9_-]*)", command)
    if goal and goal[1] not in targets:
        command = command.replace("make", f"make -C {STEP}", 1)
    return re.sub(r"^spmv ", f"{ROOT}/build/cpu/spmv ", command)


def run_bash(command):
    """Runs a command in the root of the repository, on the CPU backend."""
    # Threads that wait for each other without spinning: times stand even if the machine is busy.
    environment = dict(os.environ, BACKEND="cpu", LC_ALL="C.UTF-8", OMP_WAIT_POLICY="passive")
    # This script may be run by make, with ARGS of its own.
    for name in ("MAKEFLAGS", "MAKELEVEL", "MFLAGS", "ARGS"):
        environment.pop(name, None)
    bash = ["bash", "-o", "pipefail", "-c", command]
    pipes = {"stdin": subprocess.DEVNULL, "capture_output": True, "text": True}
    return subprocess.run(bash, cwd=ROOT, env=environment, **pipes)


def run(command):
    """What went wrong with a command, or nothing."""
    done = run_bash(command)
    text = f"exit status {done.returncode}\n{done.stdout[-500:]}{done.stderr[-1000:]}"
    return text if done.returncode else ""


def run_recipe():
    """Adds the step of common/build/README.md as the page says, and removes it again. Returns what
    went wrong, or nothing."""
    page = (ROOT / "common/build/README.md").read_text(encoding="utf-8")
    recipe = RECIPE.search(page)
    kernel = re.findall(r"^```cpp\n(.*?)^```", page[: recipe.start()], re.MULTILINE | re.DOTALL)[-1]
    step = ROOT / "11_two_sums"
    if step.exists():
        return f"{step} is there already"
    # Formatting changes the sources, and needs a formatter.
    whole = recipe[0].replace(" && make format\n", "\n")
    before, mark, after = whole.partition("    # write 11_two_sums/two_sums.cuh, then\n")
    try:
        wrong = run(f"set -e\n{before}")
        (step / "two_sums.cuh").write_text(kernel, encoding="utf-8")
        wrong = wrong or ("" if mark else "the line '# write ...' is missing") or run(after)
        of_02 = r"csr_scalar|CsrScalar|\b02\b|\bstep = 2\b|Bell and Garland"
        for file in step.glob("*.cu"):
            left = re.findall(of_02, file.read_text(encoding="utf-8"))
            wrong = wrong or (f"{file.name} still holds {', '.join(left)}" if left else "")
        return wrong
    finally:
        shutil.rmtree(step, ignore_errors=True)
        shutil.rmtree(ROOT / "build/cpu/11_two_sums", ignore_errors=True)


def main():
    texts = {page: page.read_text(encoding="utf-8") for page in pages(ROOT) if page.suffix == ".md"}
    outputs = sum(map(OUTPUT.findall, texts.values()), [])
    shown = {" ".join(command.split()) for command in outputs}
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    targets = set(re.findall(r"(?m)^([a-z_-]+[a-z0-9]*):.*##", makefile))
    done, failed = {}, 0
    with tempfile.TemporaryDirectory() as scratch:
        names = placeholders(Path(scratch))
        for page, text in texts.items():
            for command in commands_of(text):
                if command in done:
                    continue
                start, why = time.monotonic(), elsewhere(command, shown)
                done[command] = why
                if why:
                    continue
                wrong = run(prepared(command, names, targets))
                failed += bool(wrong)
                took = f"{time.monotonic() - start:5.0f} s"
                print(f"{'FAILED' if wrong else 'ok':6} {took}  {command}", flush=True)
                if wrong:
                    print(f"{page.relative_to(ROOT)}: {wrong}", file=sys.stderr)
    wrong = run_recipe()
    failed += bool(wrong)
    print(f"{'FAILED' if wrong else 'ok':6} the recipe for an added step\n{wrong}")
    others = sum(map(bool, done.values()))
    ours = len(done) - others + 1  # the recipe, too
    print(f"{ours - failed} passed, {failed} failed; {others} elsewhere")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
