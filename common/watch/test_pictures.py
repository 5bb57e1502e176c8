"""The pictures of the lessons: drawn again they are the same files. WATCH_SPMV: the program with all steps."""

import re
import unittest
import xml.etree.ElementTree as ElementTree

import pictures
import test_watch

ROOT = test_watch.ROOT
LESSONS = ROOT / "plots" / "figures" / "lessons"
PLACES = "README.md", "[0-9][0-9]_*/**/*.md", "common/primer/*.md"
SVG = "{http://www.w3.org/2000/svg}"


class Pictures(unittest.TestCase):
    def test_drawn_again_they_are_the_same(self):
        drawn = pictures.draw(test_watch.SPMV)
        here = {path.stem for path in LESSONS.glob("*.svg")}
        self.assertEqual(here, {*drawn, *pictures.EDITED})
        for name, text in drawn.items():
            self.assertTrue(
                text == (LESSONS / f"{name}.svg").read_text(encoding="utf-8"),
                f"{name}: make pictures",
            )

    def test_they_can_be_read(self):
        for path in sorted(LESSONS.glob("*.svg")):
            with self.subTest(picture=path.name):
                self.assertLess(path.stat().st_size, 300_000)
                root = ElementTree.parse(path).getroot()
                self.assertGreater(len(root.find(f"{SVG}desc").text), 60)
                text = path.read_text(encoding="utf-8")
                self.assertNotRegex(text, "nan|None|undefined")
                width = float(root.get("width"))
                for mark in root.iter(f"{SVG}rect"):
                    self.assertLessEqual(
                        float(mark.get("x", 0)) + float(mark.get("width")), width + 1
                    )

    def test_each_block_of_csr_adaptive_has_one_line_and_each_nonzero_one_strip(self):
        root = ElementTree.parse(LESSONS / "06_adaptive.svg").getroot()
        texts = [mark.text for mark in root.iter(f"{SVG}text")]
        named = [text for text in texts if re.fullmatch(r"block \d+", text)]
        self.assertEqual(named, [f"block {block}" for block in range(24)])
        self.assertEqual(sum(text.startswith("no rows: ") for text in texts), 2)
        strips = [m for m in root.iter(f"{SVG}rect") if m.get("height") == "9"]
        ends = [pictures.LEFT, *(float(m.get("x")) + float(m.get("width")) for m in strips)]
        for strip, end in zip(strips, ends):
            self.assertAlmostEqual(float(strip.get("x")), end, delta=1.15)
        self.assertAlmostEqual(ends[-1], pictures.LEFT + pictures.ROOM, delta=1.15)

    def test_the_readme_shows_the_matrices_of_its_table(self):
        readme = (ROOT / "README.md").read_text(encoding="utf-8")
        told = ElementTree.parse(LESSONS / "sparsity.svg").getroot().find(f"{SVG}desc").text
        table = re.findall(r"^\| (\S+) \| ([\d.]+) \| .*pcsr_one_pass", readme, re.MULTILINE)
        self.assertTrue(table)
        self.assertLess((LESSONS / "sparsity.svg").stat().st_size, 20_000)
        for name, per_row in table:
            counts = rf"{re.escape(name)}: (\d+) rows, \d+ columns, (\d+) nonzeros"
            rows, nonzeros = map(int, re.search(counts, told).groups())
            self.assertEqual(f"{nonzeros / rows:.1f}", per_row, name)

    def test_lessons_show_them_with_alternative_texts(self):
        shown = set()
        for readme in [p for place in PLACES for p in ROOT.glob(place)]:
            for text, name in re.findall(
                r"!\[(.*?)\]\((?:\.\./)*plots/figures/lessons/(\w+)\.svg\)",
                readme.read_text(encoding="utf-8"),
            ):
                self.assertGreater(len(text), 20)
                shown.add(name)
        self.assertEqual(shown, {*pictures.PICTURES, *pictures.EDITED})
