#!/usr/bin/env python3
"""Checks that pages stay short and that their links lead somewhere. `make check-format` runs it.

    python3 common/pages/check_pages.py        exit 1, with a line per fault, if a page breaks a rule

Limits hold for the main text of a page: everything a reader sees before opening a collapsed section
(<details>), code, output and tables included. HTML comments, such as the markers of
update_readmes.py, are not seen. A word is what stands between spaces and has a letter or a digit in
it. Appendices (NOTES.md) may be as long as they need to be.

A time, a speed, a share or a ratio is bound by a comment at the end of its paragraph, which says
where it comes from (sentences.py). Free are code, generated blocks, numbers of three digits that
stand in a generated block of the same page, those that the page declares not to be measured,
<!-- fixed: 5 ms (a limit in measure.cu) | ... -->, and a page that says
<!-- numbers: why none of them is bound -->.

Links are checked in every Markdown file and exercise.ini: a relative target must exist, and so must
the heading that an anchor names.
"""

import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]

# (pattern of the page, words, lines), the first that matches.
LIMITS = [
    ("README.md", 1800, 220),
    ("common/primer/*.md", 700, 120),
    ("[0-9][0-9]_*/NOTES.md", None, None),
    ("[0-9][0-9]_*/*/NOTES.md", None, None),
    ("[0-9][0-9]_*/*.md", 2300, 360),
    ("[0-9][0-9]_*/*/*.md", 2300, 360),
]
TABLE_COLUMNS = 8  # in pages with a limit

FENCE = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)
COMMENT = re.compile(r"<!--.*?-->", re.DOTALL)
DETAILS = re.compile(r"<details>.*?</details>", re.DOTALL)
LINK = re.compile(r"!?\[[^\]]*\]\(([^()\s]+)\)")

# A number or several of one unit. "times" and "x" count where they compare, not where they count
# ("32 times").
UNIT = r"(?:µs|μs|us|ms|ns|microseconds?|milliseconds?|nanoseconds?|[TGM]B/s|s|seconds?|[TG]?FLOP/s)\b|\s?%|\s?percent\b"
COMPARES = r"\btimes\s+(?:as\s+(?:fast|slow|long)|(?:the\s+)?(?:speed|time|best)\b|faster|slower|longer)|(?<=\d)x\b"
FIGURE = r"\d[\d.,]*(?<![.,])"
MEASURE = re.compile(
    rf"(?<![\w.^*-])({FIGURE}(?:,?\s+(?:and|or|to)\s+{FIGURE})*)(?:\s*(?:{UNIT})|\s*(?:{COMPARES})|(?<=\.\d)\d*\s+times\b)"
)
BOUND = re.compile(r"(?<!`)<!-- (\d[\d.,]*(?: to [\d.,]+)? = (?:(?!-->).)*?) -->", re.DOTALL)
FIXED = re.compile(r"^<!-- fixed: (.+?) -->$", re.DOTALL | re.MULTILINE)
KINDS = "output|code|table|steps|claims|ladder|reproduce|time_model"
BLOCK = re.compile(rf"(?ms)^<!-- ({KINDS})\b.*?^<!-- end -->$")
LADDER = re.compile(r"^<!-- ladder:.*?^<!-- end -->$", re.DOTALL | re.MULTILINE)
EXEMPT = re.compile(r"^<!-- numbers: .+? -->$", re.DOTALL | re.MULTILINE)
WRITTEN_BY_SCRIPTS = ("plots/figures/TABLES.md", "plots/figures/README.md")


def pages(root):
    """Every Markdown file and exercise.ini, without what was built, downloaded or unpacked."""
    for path in sorted([*root.rglob("*.md"), *root.rglob("exercise.ini")]):
        parts = path.relative_to(root).parts
        is_hidden = any(part.startswith(".") and part != ".github" for part in parts)
        if not is_hidden and parts[0] not in ("build", "handouts", "data"):
            yield path


def blank(match):
    """What is cut out leaves its line breaks, so that line numbers stay right."""
    return "\n" * match[0].count("\n")


def main_text(text):
    """What a reader sees of a page before opening anything, without the ladder, which is the same
    on all."""
    return COMMENT.sub("", DETAILS.sub("", LADDER.sub("", text)))


def counts(text):
    """(words, lines) of the main text."""
    seen = main_text(text)
    words = re.sub(r"(?m)^```.*", "", seen).split()
    return sum(any(map(str.isalnum, word)) for word in words), len(seen.splitlines())


def limits_of(name):
    for pattern, *limits in LIMITS:
        if name.match(pattern) and len(name.parts) == len(Path(pattern).parts):
            return limits
    return None, None


def anchors(path):
    """The anchors of a page's headings, as GitHub makes them."""
    found = {}
    for line in COMMENT.sub("", FENCE.sub("", path.read_text(encoding="utf-8"))).splitlines():
        heading = re.match(r"#+ +(.*?) *$", line)
        if heading:
            text = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading[1]).lower()
            slug = re.sub(r"[^\w\- ]", "", text).replace(" ", "-")
            found[slug] = found.get(slug, -1) + 1
    return {slug if i == 0 else f"{slug}-{i}" for slug, n in found.items() for i in range(n + 1)}


def link_faults(path, text):
    """(line, what is wrong) of each relative link that leads nowhere."""
    seen = re.sub(r"`[^`\n]*`", "", FENCE.sub(blank, COMMENT.sub(blank, text)))
    for link in LINK.finditer(seen):
        target = link[1]
        if re.match(r"[a-z]+:", target):
            continue
        number = seen.count("\n", 0, link.start()) + 1
        file, _, anchor = target.partition("#")
        there = (path.parent / file).resolve() if file else path
        if not there.exists():
            yield number, f"the link to {target} leads nowhere"
        elif anchor and there.suffix == ".md" and anchor not in anchors(there):
            yield number, f"{file or 'this page'} has no heading #{anchor}"


def figures_in(text):
    return {figure.replace(",", "") for figure in re.findall(FIGURE, text)}


def numbers_of(bindings):
    """The numbers that a comment binds, without the queries."""
    return " ".join(binding.partition(" = ")[0] for binding in bindings.split(" | "))


def paragraph_of(text, end):
    """Where the paragraph begins that ends there."""
    return text.rfind("\n\n", 0, end) + 1


def unbound_numbers(text):
    """(line, number with its unit) of each that nothing keeps up to date."""
    if EXEMPT.search(text):
        return
    known = {"0", "100"}
    for block in BLOCK.finditer(text):
        known |= {figure for figure in figures_in(block[0]) if sum(map(str.isdigit, figure)) > 2}
    for listed in FIXED.findall(text):
        known |= figures_in(re.sub(r"\([^()]*\)", "", listed))
    bound = [  # (from where, to where, its numbers)
        (paragraph_of(text, match.start()), match.start(), figures_in(numbers_of(match[1])))
        for match in BOUND.finditer(text)
    ]
    seen = text
    for pattern in (BLOCK, FENCE, COMMENT, r"(?m)^    .*$", r"`[^`\n]*`"):
        seen = re.sub(pattern, blank, seen)
    for match in MEASURE.finditer(seen):
        line, here = seen.count("\n", 0, match.start()), set(known)
        for begin, end, figures in bound:
            if text.count("\n", 0, begin) <= line <= text.count("\n", 0, end):
                here |= figures
        if not figures_in(match[0]) <= here:
            yield line + 1, " ".join(match[0].split())


def faults(path, root):
    """What is wrong with a page, a text per fault."""
    text = path.read_text(encoding="utf-8")
    name = path.relative_to(root)
    if path.suffix == ".md" and str(name) not in WRITTEN_BY_SCRIPTS:
        for number, figure in unbound_numbers(text):
            yield f"{name}:{number}: '{figure}' is bound to nothing that keeps it up to date; common/pages/sentences.py tells how"
    for number, fault in link_faults(path, text):
        yield f"{name}:{number}: {fault}"
    if limits_of(name)[0] is None:
        return
    how = "shorten it, or collapse detail in <details>"
    for number, most, of in zip(counts(text), limits_of(name), ("words", "lines")):
        if number > most:
            yield f"{name}: {number} {of} of main text, at most {most}; {how}"
    for line in FENCE.sub("", main_text(text)).splitlines():
        columns = line.strip().strip("|").count("|") + 1
        if re.fullmatch(r"\|[ :|-]+\|", line) and columns > TABLE_COLUMNS:
            yield f"{name}: a table of {columns} columns, at most {TABLE_COLUMNS}"


def main():
    found = [fault for path in pages(ROOT) for fault in faults(path, ROOT)]
    print(*found, sep="\n", end="\n" * bool(found), file=sys.stderr)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
