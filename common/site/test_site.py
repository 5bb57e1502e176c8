"""Tests of the site's links. (Rendering is for make site, which needs MkDocs.)"""

import json
import tempfile
import unittest
from pathlib import Path

from build_site import (
    PAGES,
    PICTURES,
    ROOT,
    Pages,
    SiteError,
    faults,
    lessons,
    puzzle_page,
    repository,
    rewrite,
    with_address,
    with_run,
    write_puzzles,
)


class Markdown(unittest.TestCase):
    def rewritten(self, text):
        return rewrite(text, lambda target, line: f"<{target} of line {line}>")

    def test_links_are_rewritten(self):
        self.assertEqual(
            self.rewritten("a\n[b](c.cuh) and\n![d](e.png)"),
            "a\n[b](<c.cuh of line 2>) and\n![d](<e.png of line 3>)",
        )
        self.assertEqual(self.rewritten('<img src="a.svg">'), '<img src="<a.svg of line 1>">')

    def test_links_after_code(self):
        text = "`a[0](b)` and [`c`](d.cu)\n\n```cpp\ne[0](f);\n```\n\n    g[0](h)\n\n[i](j)"
        self.assertEqual(
            self.rewritten(text),
            text.replace("cpp", "cuda")
            .replace("(d.cu)", "(<d.cu of line 1>)")
            .replace("(j)", "(<j of line 9>)"),
        )

    def test_other_addresses_stay(self):
        for text in ("[a](https://example.org/b)", "[a](#b)", "[a](mailto:b@example.org)"):
            self.assertEqual(self.rewritten(text), text)

    def test_collapsed_sections_lists_and_comments(self):
        self.assertEqual(
            self.rewritten("<details><summary>a</summary>"),
            '<details markdown="1"><summary>a</summary>',
        )
        self.assertEqual(self.rewritten("text:\n- one\n- two"), "text:\n\n- one\n- two")
        self.assertEqual(self.rewritten("<!-- output: make [a](b) -->\ntext"), "\ntext")


class Runs(unittest.TestCase):
    def test_a_run_stands_where_the_lesson_names_it(self):
        text = with_run("# A\n\n`make -C 03_a watch` shows it.\n\nB\n", "03_a")
        self.assertLess(text.index("watch`"), text.index('src="../watch/03_a.html"'))
        self.assertLess(text.index("<iframe"), text.index("\n\nB\n"))
        self.assertTrue(with_run("# A\n", "03_a").startswith("# A\n\n\n<details>"))


class Puzzles(unittest.TestCase):
    def test_a_page_has_text_command_picture_code_and_hints(self):
        source = "// Puzzle 1: map.\n//\n// What it\n// asks.\n#include <a>\n\nint a;\n"
        section = {"title": "Map", "after": "map.", "hints": "1. One.\n2. Two."}
        self.assertEqual(
            puzzle_page("01_map", section, source),
            "# Puzzle 1: Map\n\nWhat it\nasks.\n\nAfter it you can map.\n\n"
            "    make learn EXERCISE=01\n\ncopies the file to `handouts/puzzles/`, runs it each time you "
            "save it, and says what is wrong.\n\n![](../../../plots/figures/lessons/primer_launch.svg)\n\n"
            "```cpp\n#include <a>\n\nint a;\n```\n\n<details><summary>Three hints</summary>\n"
            "\n1. One.\n\n2. Two.\n</details>\n",
        )

    def test_where_the_repository_is(self):
        self.assertEqual(repository("https://me.github.io/spmv/"), "https://github.com/me/spmv")
        self.assertRegex(repository(""), "^(https://|$)")


class Notebook(unittest.TestCase):
    def test_the_badge_and_the_address_are_filled_in(self):
        text = (ROOT / "common/notebook/spmv.ipynb").read_text(encoding="utf-8")
        found = with_address(text, "https://github.com/me/spmv")
        cells = json.loads(found)["cells"]
        said = ["".join(cell["source"]) for cell in cells]
        self.assertIn("/github/me/spmv/blob/main/common/notebook/spmv.ipynb)", said[0])
        self.assertIn('("SPMV_REPOSITORY", "https://github.com/me/spmv.git")', said[2])
        self.assertEqual(with_address(text, ""), text)


class Links(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.root = Path(scratch.name) / "root"
        for path in (
            "README.md",
            "01_a/README.md",
            "01_a/more.md",
            "01_a/a.cuh",
            "01_a/a.png",
            "01_a/folder/b.cpp",
        ):
            (self.root / path).parent.mkdir(parents=True, exist_ok=True)
            (self.root / path).write_text(f"# {path}\n", encoding="utf-8")
        self.pages = Pages(self.root, Path(scratch.name) / "pages")
        self.pages.add("README.md", "01_a/*.md")

    def test_where_they_lead(self):
        link = self.pages.link("01_a/README.md")
        self.assertEqual(link("../README.md#top", 1), "../README.md#top")
        self.assertEqual(link("a.cuh", 1), "../source/01_a/a.cuh.md")
        self.assertEqual(link("folder/", 1), "../source/01_a/folder.md")
        self.assertEqual(link("a.png", 1), "a.png")
        self.assertEqual(self.pages.link("README.md")("01_a", 1), "01_a/README.md")
        self.pages.write_all()
        self.assertTrue((self.pages.output / "01_a/a.png").is_file())
        self.assertIn(
            "# 01_a/a.cuh", (self.pages.output / "source/01_a/a.cuh.md").read_text(encoding="utf-8")
        )
        self.assertIn(
            "- b.cpp", (self.pages.output / "source/01_a/folder.md").read_text(encoding="utf-8")
        )

    def test_a_link_that_leads_nowhere(self):
        for target in ("b.cuh", "../../outside"):
            with self.assertRaisesRegex(
                SiteError, "01_a/README.md:7: the link to .* leads nowhere"
            ):
                self.pages.link("01_a/README.md")(target, 7)

    def test_a_step_of_several_pages(self):
        self.assertEqual(
            lessons(self.pages.pages),
            [
                {
                    "01_a/README.md": [
                        {"01_a/README.md": "01_a/README.md"},
                        {"01_a/more.md": "01_a/more.md"},
                    ]
                }
            ],
        )

    def test_every_link_of_the_repository(self):
        pages = Pages(ROOT, self.pages.output)
        pages.add(*PAGES)
        self.assertEqual(len(write_puzzles(pages)), len(PICTURES))
        self.assertGreater(len(pages.pages), 15)
        pages.write_all()


class Site(unittest.TestCase):
    def test_faults(self):
        with tempfile.TemporaryDirectory() as scratch:
            site = Path(scratch)
            (site / "good.html").write_text(
                '<p>x</p><img src="data:,"><a href="https://example.org">z</a>'
            )
            self.assertEqual(faults(site), [])
            (site / "bad.html").write_text(
                '<iframe src="good.html"></iframe><p>text <code>a</code>\n- c</p>'
                '<script src="https://example.org/d.js"></script>'
            )
            found = "\n".join(faults(site))
            for wanted in ("not rendered: - c", "loads https://example.org/d.js over the network"):
                self.assertIn(wanted, found)
