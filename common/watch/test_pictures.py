"""The pictures of the lessons: drawn again they are the same files; what those say that are edited as SVG is
true. WATCH_SPMV: the program with all steps."""

import re
import sys
import unittest
import xml.etree.ElementTree as ElementTree
from collections import defaultdict

import pictures
import test_watch
import traces
import watch

ROOT = test_watch.ROOT
sys.path.append(str(ROOT / "common" / "simt"))
from gpus import GPUS  # noqa: E402

LESSONS = ROOT / "plots" / "figures" / "lessons"
PLACES = "README.md", "[0-9][0-9]_*/**/*.md", "common/primer/*.md"
SVG = "{http://www.w3.org/2000/svg}"


def texts_of(name):
    """The texts of a picture, in order."""
    root = ElementTree.parse(LESSONS / f"{name}.svg").getroot()
    return [mark.text for mark in root.iter(f"{SVG}text")]


def rounds_of(name):
    """Of each round of a picture {lane: the lane from which its line comes}; -1: left of the first."""
    found, pitch = defaultdict(dict), pictures.ROOM / 32
    for line in ElementTree.parse(LESSONS / f"{name}.svg").getroot().iter(f"{SVG}line"):
        if line.get("class") != "hatch":
            x1, x2, y = (float(line.get(name)) for name in ("x1", "x2", "y1"))
            source, lane = (round((x + 1 - pictures.LEFT) / pitch - 0.5) for x in (x1, x2))
            found[y][lane] = source
    return [found[y] for y in sorted(found)]


class Pictures(unittest.TestCase):
    def test_drawn_again_they_are_the_same(self):
        drawn = pictures.draw(test_watch.SPMV)
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
        texts = texts_of("06_adaptive")
        named = [text for text in texts if re.fullmatch(r"block \d+", text)]
        self.assertEqual(named, [f"block {block}" for block in range(24)])
        self.assertEqual(sum(text.startswith("no rows: ") for text in texts), 2)
        root = ElementTree.parse(LESSONS / "06_adaptive.svg").getroot()
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
        self.assertEqual(shown, {path.stem for path in LESSONS.glob("*.svg")})


class Edited(unittest.TestCase):
    """Numbers in pictures that are edited as SVG."""

    def test_the_launch_is_that_of_the_page(self):
        source = (ROOT / "common/primer/first.cu").read_text(encoding="utf-8")
        n = int(re.search(r"const int n = (\d+);", source)[1])
        blocks, threads = map(int, re.search(r"add_kernel<<<(\d+), (\d+)>>>", source).groups())
        said = " ".join(texts_of("primer_launch"))
        for text in (
            f"add_kernel<<<{blocks}, {threads}>>> for {n} elements",
            f"the {blocks * threads - n} threads past the last",
            f"block {blocks - 1}",
            f"sum[{(blocks - 1) * threads}] to sum[{n - 1}]",
        ):
            self.assertIn(text, said)

    def test_intensities_of_the_roofline(self):
        gpu, texts = GPUS["h200"], texts_of("primer_roofline")
        self.assertIn(f"memory: {gpu.dram_gb_per_s:,} GB/s", texts)
        self.assertIn(f"arithmetic: {gpu.f64_gflops:,} GFLOP/s", texts)
        found = watch.record(test_watch.SPMV, "stencil2d:16x16", ["csr_scalar", "csr_vector_4"])
        moved = {"the bytes that the product needs": found[0]["compulsory_bytes"]}
        for trace in found:
            sectors = sum(of.counts.get("sectors", 0) for of in traces.requests(trace))
            moved[f"all that {trace['kernel']['name']} asks for"] = traces.SECTOR * sectors
        for name, of in moved.items():
            intensity = 2 * found[0]["matrix"]["nonzeros"] / of
            reached = f"{intensity:.3f} operations per byte, {intensity * gpu.dram_gb_per_s:.0f}"
            self.assertIn(f"{name}: {reached} GFLOP/s", texts)

    def test_versions_are_those_of_the_records(self):
        story = (ROOT / "06_pcsr/one_pass/story.md").read_text(encoding="utf-8")
        texts = texts_of("06_versions")
        recorded = r"^(\d+) +f64 +warm +\d+ +([\d.]+).*\n\d+ +f32 +warm +\d+ +([\d.]+)"
        found = re.findall(recorded, story, re.MULTILINE)
        self.assertEqual(len(found), 7)
        for version, *means in found:
            at = texts.index(f"version {version}")
            self.assertEqual(texts[at + 1 : at + 3], means, version)

    def test_carries_are_those_of_the_kernel(self):
        [trace] = watch.record(test_watch.SPMV, "stencil2d:24x24", ["segscan_shuffle"])
        texts = texts_of("05_carries")
        shown = [int(text) for text in texts if text.isdigit()]
        rows = defaultdict(list)  # by warp, as far as 32 lanes load 32 of them
        for of in traces.requests(trace, name="row_indices", access="load", launch=0, block=0):
            if len(set(of.addresses)) == 32:
                rows[of.warp] += of.values
        for number, warp in enumerate(range(4, 8)):
            tile, first = rows[warp], 18 * number
            self.assertEqual(shown[first : first + 18], tile[:9] + tile[-9:])
            self.assertIn(f"tail: {tile.count(tile[-1])} of row {tile[-1]}", texts)
            head = 0 if number == 0 else tile.count(tile[0])
            self.assertTrue(not head or f"head: {head} of row {tile[0]}" in texts)
            last = tile[-tile.count(tile[-1]) - 1]
            self.assertIn(f"y[{tile[head]}] to y[{last}]", texts)

    def test_rounds_are_those_of_the_kernels(self):
        [trace] = watch.record(test_watch.SPMV, "fem:20,block=3", ["csr_vector_8"])
        shuffles = [
            zip(traces.lanes_of(event[2]), trace["values"][event[4]])
            for _, event, at in traces.walk(trace)
            if at == (0, 0, 0) and event[0] == "warp operation"
        ]
        wanted = [{a: b for a, b in shuffle if a != b} for shuffle in shuffles[:3]]
        self.assertEqual(rounds_of("03_shuffle_tree"), wanted)
        [trace] = watch.record(test_watch.SPMV, "stencil2d:16x16", ["segscan_block"])
        first, second, third, *_ = pictures.accesses(trace, "sums", warp=1)
        wanted = [
            {lane: max(element - 32, -1) for lane, element in zip(of.lanes, of.elements)}
            for of in (first, second)
        ]
        self.assertEqual(rounds_of("05_scan_rounds"), wanted)
        self.assertEqual(32 + third.lanes[0] - third.elements[0], 1)  # the next scan begins
        stored = pictures.accesses(trace, "y", "store", warp=1)[0].elements
        written = [text for text in texts_of("05_scan_rounds") if text.startswith("y[")]
        self.assertEqual(written, [f"y[{element}]" for element in stored])

    def test_words_in_banks_are_those_of_the_kernel(self):
        root, texts = ElementTree.parse(LESSONS / "06_banks.svg").getroot(), texts_of("06_banks")
        boxes = [mark for mark in root.iter(f"{SVG}rect") if mark.get("fill")]
        for of_long_rows, columns in ((True, 32), (False, 33)):
            [trace] = watch.record(test_watch.SPMV, f"dense:32x{columns}", ["pcsr"])
            [of, *_] = pictures.accesses(trace, "pcsr_piece", launch=1)
            words = [
                word % 32
                for address in of.addresses
                for word in range(
                    (of.array["offset"] + address) // 4,
                    (of.array["offset"] + address + of.size) // 4,
                )
            ]
            drawn = [
                round((float(box.get("x")) - 190) * 32 / 690)
                for box in boxes
                if (float(box.get("y")) < 190) == of_long_rows
            ]
            self.assertEqual(sorted(drawn), sorted(words))
            at = texts.index(f"rows of {of.elements[1] - of.elements[0]} nonzeros")
            self.assertEqual(texts[at + 1], pictures.plural(of.counts["bank_passes"], "pass"))
