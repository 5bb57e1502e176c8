#!/usr/bin/env python3
"""Writes the site: lessons, results, pages of runs and the one-pass API as static HTML. make site

    build_site.py PROGRAM OUTPUT

PROGRAM is the CPU backend's, which records the runs; build/report.html becomes the results page, and build/slides
the lectures. The Markdown files of the repository are copied to OUTPUT.pages with their links rewritten, and
MkDocs renders them into OUTPUT. Source files that a page links to become pages of their own. Ends with 1
and a line per fault if a link leads nowhere or a page would load something over the network.
"""

import argparse
import configparser
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
sys.path.append(str(HERE.parent / "watch"))
import tours  # noqa: E402
import traces  # noqa: E402
import watch  # noqa: E402

ASSETS = (".png", ".svg", ".jpg", ".gif", ".ipynb")
PAGES = ("README.md", "[0-9][0-9]_*/**/*.md", "common/**/*.md", "plots/*.md", "plots/figures/*.md")
LANGUAGES = {
    ".cu": "cuda",
    ".cuh": "cuda",
    ".hpp": "cpp",
    ".mk": "make",
    "": "text",
}  # of others: the suffix
# The picture of a lesson that shows what a puzzle is about.
PICTURES = {
    "01_map": "primer_launch",
    "02_guard": "primer_launch",
    "03_two_dimensions": "primer_sectors",
    "04_neighbours": "primer_sectors",
    "05_shared_memory": "primer_banks",
    "06_transposition": "06_banks",
    "07_shuffles": "03_shuffle_tree",
    "08_histogram": "04_collisions",
    "09_prefix_sum": "05_scan_rounds",
    "10_row_per_warp": "03_lanes",
    "11_host": "primer_launch",
    "12_columns": "08_ordering",
    "13_all_reduce": "10_steps",
}
LINK = re.compile(r"(\]\()([^)\s]+)(\))|(\b(?:src|href)=\")([^\"]+)(\")")


class SiteError(Exception):
    """What keeps the site from being built; the text names file, line and remedy."""


# --- Markdown -------------------------------------------------------------------------------------


def outside_code(text, change):
    """`text` with change(part, line number) in place of every part that is neither a block nor a span of code."""
    fence = r"^(?P<mark>`{3,}|~{3,}).*?^(?P=mark)[^\S\n]*$"
    span = r"(?P<ticks>`+)(?!`)[^\n]*?(?<!`)(?P=ticks)(?!`)"
    code = re.compile(rf"{fence}|^(?: {{4}}|\t)[^\n]*$|{span}", re.DOTALL | re.MULTILINE)
    done, position = [], 0
    for match in code.finditer(text):
        done += [
            change(text[position : match.start()], text.count("\n", 0, position) + 1),
            match[0],
        ]
        position = match.end()
    return "".join(done) + change(text[position:], text.count("\n", 0, position) + 1)


def rewrite(text, link):
    """GitHub's Markdown as Python-Markdown's. `link(target, line)` gives what a relative link becomes."""

    def change(part, line):
        part = re.sub(r"<!--.*?-->", "", part, flags=re.DOTALL)
        part = re.sub(r"<details(?=[ >])", '<details markdown="1"', part)

        def replace(match):
            before, target, after = match.group(1, 2, 3) if match[1] else match.group(4, 5, 6)
            if re.match(r"[a-z]+:|#", target):
                return match[0]
            return before + link(target, line + part.count("\n", 0, match.start())) + after

        return LINK.sub(replace, part)

    text = outside_code(text, change)
    text = re.sub(r"^```cpp$", "```cuda", text, flags=re.MULTILINE)
    # A list or a table needs an empty line before it.
    text = re.sub(
        r"^((?![-*|#>\s]|\d+\. ).*[^\n])\n(?=- |\* |1\. )", r"\1\n\n", text, flags=re.MULTILINE
    )
    return text


class Pages:
    """The pages of the site, and where what they link to goes."""

    def __init__(self, root, output):
        self.root, self.output = root, output
        self.pages, self.sources = (
            {},
            set(),
        )  # path in the repository -> text; source files shown as pages

    def add(self, *patterns):
        for pattern in patterns:
            for file in sorted(self.root.glob(pattern)):
                if not file.name.startswith("slides_"):  # pandoc's; make slides
                    self.pages[str(file.relative_to(self.root))] = file.read_text(encoding="utf-8")

    def link(self, page):
        def rewritten(target, line):
            target, mark, fragment = target.partition("#")
            path = os.path.normpath(os.path.join(os.path.dirname(page), target))
            rendered = path.removesuffix(".md") + ".html"
            if path.endswith(".md") and (self.output / rendered).is_file():  # slides
                return os.path.relpath(rendered, os.path.dirname(page) or ".")
            if (self.output / path).is_file():  # made for the site
                return target + mark + fragment
            found = self.root / path
            if path.startswith("..") or not found.exists():
                raise SiteError(f"{page}:{line}: the link to {target} leads nowhere")
            if found.is_dir() and f"{path}/README.md" in self.pages:
                path += "/README.md"
            elif path not in self.pages and found.suffix in ASSETS:
                self.write(path, found.read_bytes())
            elif path not in self.pages:
                self.sources.add(path)
                path = source_page(path)
            return os.path.relpath(path, os.path.dirname(page) or ".") + mark + fragment

        return rewritten

    def write(self, path, data):
        """Text or bytes."""
        (self.output / path).parent.mkdir(parents=True, exist_ok=True)
        (self.output / path).write_bytes(data if isinstance(data, bytes) else data.encode("utf-8"))

    def write_all(self):
        for path, text in self.pages.items():
            self.write(path, rewrite(text, self.link(path)))
        for path in self.sources:
            self.write(source_page(path), self.source(path))

    def source(self, path):
        """A page that shows a file, or the names in a directory."""
        file = self.root / path
        head = f"---\nhide: [toc]\nsearch:\n  exclude: true\n---\n# {path}\n\n"
        if file.is_dir():
            return head + "".join(
                f"- {entry.name}\n" for entry in sorted(file.iterdir()) if entry.name[0] != "."
            )
        text = file.read_text(encoding="utf-8").rstrip("\n")
        language = (
            "make" if file.name == "Makefile" else LANGUAGES.get(file.suffix, file.suffix[1:])
        )
        ticks = "`" * max(3, 1 + max((len(run) for run in re.findall("`+", text)), default=0))
        return f'{head}{ticks}{{.{language} linenums="1"}}\n{text}\n{ticks}\n'


def source_page(path):
    """Where the page of a source file is. MkDocs leaves out what begins with a dot."""
    return "source/" + re.sub(r"(^|/)\.", r"\1", path) + ".md"


def title(text):
    return next(line[2:].strip() for line in text.splitlines() if line.startswith("# "))


# What MkDocs does not check.
LOADS = re.compile(
    r"<(?:script|img|iframe|link)\b[^>]*?\b(?:src|href)=\"?((?:https?:)?//[^\s\">]*)[^>]*>"
)
NO_LOAD = re.compile(r"\brel=\"?(?:canonical|prev|next)\b")
RAW = re.compile(r"<p>(?:(?:(?!</p>).)*\n)?(?:- |\| |```|# )[^<\n]*", re.DOTALL)


def faults(site):
    """A line of text per page of `site` that would load something over the network, or holds Markdown as it was."""
    found = []
    for file in sorted(Path(site).rglob("*.html")):
        text, name = file.read_text(encoding="utf-8"), file.relative_to(site)
        loads = {match[1] for match in LOADS.finditer(text) if not NO_LOAD.search(match[0])}
        found += [f"{name}: loads {address} over the network" for address in sorted(loads)]
        if RAW.search(text):
            found.append(
                f"{name}: Markdown that was not rendered: {RAW.search(text)[0].splitlines()[-1]}"
            )
    return found


# --- The site -------------------------------------------------------------------------------------


def lessons(pages):
    """The entries of the navigation for the steps: a page, or several of which README.md is the first."""
    entries = []
    for step in sorted({path.split("/")[0] for path in pages if re.match(r"\d\d_", path)}):
        mine = [path for path in pages if path.startswith(f"{step}/")]
        mine.sort(key=lambda path: (path != f"{step}/README.md", "NOTES" in path, path))
        named = [{title(pages[path]): path} for path in mine]
        entries += named if len(mine) == 1 else [{title(pages[mine[0]]): named}]
    return entries


def puzzle_page(name, section, source):
    """A puzzle: its text, which is the comment that its file begins with, a picture, the command, the file, and hints."""
    comment, code = re.match(r"((?://[^\n]*\n)+)(.*)", source, re.DOTALL).groups()
    lines = [line.removeprefix("//").removeprefix(" ") for line in comment.splitlines()]
    number = int(name[:2])
    hints = re.sub(r"^(\d\.)", r"\n\1", section["hints"].strip(), flags=re.MULTILINE)
    return (
        f"# Puzzle {number}: {section['title']}\n\n" + "\n".join(lines[1:]).strip() + "\n\n"
        f"After it you can {section['after']}\n\n"
        f"    make learn EXERCISE={number:02}\n\n"
        "copies the file to `handouts/puzzles/`, runs it each time you save it, and says what is wrong.\n\n"
        f"![](../../../plots/figures/lessons/{PICTURES[name]}.svg)\n\n"
        f"```cpp\n{code.strip()}\n```\n\n"
        f"<details><summary>Three hints</summary>\n{hints}\n</details>\n"
    )


def write_puzzles(pages):
    """A page for each puzzle. Returns their entries of the navigation."""
    texts = configparser.ConfigParser(interpolation=None)
    texts.read(ROOT / "common/primer/puzzles.ini", encoding="utf-8")
    entries = []
    for file in sorted((ROOT / "common/primer/puzzles").glob("*.cu")):
        path = f"common/primer/puzzles/{file.stem}.md"
        pages.pages[path] = puzzle_page(
            file.stem, texts[file.stem], file.read_text(encoding="utf-8")
        )
        entries.append({title(pages.pages[path]): path})
    return entries


def repository(site):
    """The address of the repository whose GitHub Pages are at `site`; that of the checkout's origin, if it is not such a site."""
    found = re.fullmatch(r"https://([\w-]+)\.github\.io/([\w.-]+)/?", site)
    if found:
        return "https://github.com/{}/{}".format(*found.groups())
    origin = subprocess.run(
        ["git", "-C", ROOT, "remote", "get-url", "origin"], capture_output=True, text=True
    ).stdout.strip()
    origin = re.sub(r"^git@([^:]+):", r"https://\1/", origin).removesuffix(".git")
    return origin if origin.startswith("https://") else ""


def with_address(notebook, address):
    """The notebook's text, with a badge that opens it in Colab and the address that it clones."""
    if not address.startswith("https://github.com/"):
        return notebook
    badge = "https://colab.research.google.com/github/"
    path = address.removeprefix("https://github.com/") + "/blob/main/common/notebook/spmv.ipynb"
    clone = '\\"SPMV_REPOSITORY\\", \\"'
    return notebook.replace(f"{badge})", f"{badge}{path})").replace(clone, f"{clone}{address}.git")


def with_run(text, step):
    """A lesson with its run: below the paragraph that names `make watch`, opened by a click; at the end if none does."""
    run = (
        f"\n\n<details><summary>Step through a run of this step, request by request</summary>\n"
        f'<iframe class="run" title="a run of {step}" loading="lazy" src="../watch/{step}.html"></iframe>\n</details>\n\n'
        f"[The same on a page of its own](../watch/{step}.html)\n"
    )
    at = text.find("\n\n", text.find(f"`make -C {step} watch`"))
    return (
        text[:at] + run + text[at:] if f"`make -C {step} watch`" in text and at >= 0 else text + run
    )


def write_runs(program, pages):
    """The pages of make watch, one for each step that has a tour. Returns the page that lists them."""
    lines, module = [], ROOT / "build" / "wasm" / "live.js"  # by `make browser`
    live = module.name if module.exists() else ""
    for file in sorted(ROOT.glob("[0-9][0-9]_*/tour.txt")):
        step = file.parent.name
        try:
            tour = tours.read(file)
            what = program, tour.matrix, tour.kernels, "f64", tour.schedule
            found = watch.record(*what, command=tour.command)
            pages.write(f"watch/{step}.html", watch.page(found, tour.resolve(found), live=live))
        except (tours.TourError, traces.TraceError) as error:
            raise SiteError(str(error)) from error
        idea = file.read_text(encoding="utf-8").splitlines()[0].lstrip("# ")
        kernels = f"{' and '.join(tour.kernels)} on {tour.matrix}"
        lines.append(f"- [{kernels}]({step}.html): {idea}\n")
        readme = f"{step}/README.md"
        pages.pages[readme] = with_run(pages.pages[readme], step)
    if live:
        pages.write(f"watch/{live}", module.read_bytes())
    pages.write(
        "watch/index.md",
        "# Runs, step by step\n\nEach page steps through a run on the CPU backend, "
        "request by request: lanes, addresses, sectors and values.\n\n" + "".join(lines),
    )


def build(program, output):
    source, site = output.with_name(output.name + ".pages"), os.environ.get("SITE_URL", "")
    shutil.rmtree(source, ignore_errors=True)
    pages = Pages(ROOT, source)
    pages.add(*PAGES)
    hidden = [
        "common/coursework/answers.md",
        "common/primer/tests/solutions.md",
    ]  # for who looks for them, not for the search
    for path in hidden:
        pages.pages[path] = "---\nsearch:\n  exclude: true\n---\n" + pages.pages[path]
    lectures = []
    for slides in sorted((ROOT / "build/slides").glob("*.html")):  # make slides
        path = f"common/coursework/{slides.name}"
        pages.write(path, slides.read_bytes())
        if not slides.stem.endswith("_notes"):
            name = re.search(r"<title>(.*?)</title>", slides.read_text(encoding="utf-8"))[1]
            lectures.append({name.split(" – ")[-1]: path})
    if not lectures:
        raise SiteError("build/slides has no slides: make slides")
    puzzles = write_puzzles(pages)
    write_runs(program, pages)
    pages.write("results/index.md", results(pages))
    api = pages.link("README.md")(
        "06_pcsr/one_pass/spmv/one_pass.cuh", 1
    )  # what it declares, with the comments that tell of it
    pages.write_all()
    for notebook in source.rglob("*.ipynb"):
        text = notebook.read_text(encoding="utf-8")
        notebook.write_text(with_address(text, repository(site)), encoding="utf-8")
    pages.write("site.css", (HERE / "site.css").read_bytes())
    others = [
        path for path in pages.pages if re.match(r"(common|plots)/", path) and path not in hidden
    ]
    primer = [path for path in others if re.match(r"common/primer/[^/]*$", path)]
    primer.sort(key=lambda path: not path.endswith("README.md"))
    navigation = [
        {"Overview": "README.md"},
        {"The primer": [*primer, {"Puzzles": puzzles}]},
        {"The ten steps": lessons(pages.pages)},
        {"Runs, step by step": "watch/index.md"},
        {"Results": ["results/index.md", *(path for path in others if path.startswith("plots/"))]},
        {"Lectures": ["common/coursework/course.md", *lectures]},
        {"API": [api]},
        {
            "Behind the steps": [
                path for path in others if re.match("common/(?!primer/|coursework/course)", path)
            ]
        },
    ]
    # JSON is YAML, too.
    settings = {
        "INHERIT": str(HERE / "mkdocs.yml"),
        "docs_dir": str(source),
        "site_dir": str(output),
        "nav": navigation,
        "site_url": site,
        "theme": {"custom_dir": str(HERE / "theme")},
        "repo_url": repository(site),
    }
    configuration = output.with_name(output.name + ".yml")
    configuration.write_text(json.dumps(settings, indent=1), encoding="utf-8")
    done = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "-f", configuration],
        env=dict(os.environ, NO_MKDOCS_2_WARNING="1"),
    )
    if done.returncode:
        raise SiteError("MkDocs did not render the pages above")
    return faults(output)


def results(pages):
    """The page that leads to the report, which is a page of its own."""
    report = ROOT / "build" / "report.html"
    if not report.exists():
        raise SiteError("build/report.html is not there: make report")
    pages.write("results/report.html", report.read_bytes())
    return (
        "# Results\n\n[All figures and tables on one page](report.html): every "
        "measurement, and the papers' charts beside ours.\n\nHow they were measured, and whether the papers' "
        "claims hold: [plots/README.md](../plots/README.md). The papers' tables beside ours: "
        "[TABLES.md](../plots/figures/TABLES.md).\n"
    )


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("program", type=Path)
    parser.add_argument("output", type=Path)
    arguments = parser.parse_args()
    try:
        found = build(arguments.program.resolve(), arguments.output.resolve())
    except SiteError as error:
        sys.exit(f"error: {error}")
    for fault in found:
        print(f"error: {fault}", file=sys.stderr)
    if not found:
        print(
            f"{arguments.output}: python3 -m http.server -d {arguments.output} shows it; its search needs a server"
        )
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
