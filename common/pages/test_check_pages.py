"""plots/python.sh plots/run_tests.py test_check_pages"""

import tempfile
import unittest
from pathlib import Path

import check_pages as c


class Pages(unittest.TestCase):
    def faults(self, text, name="01_step/README.md", **others):
        with tempfile.TemporaryDirectory() as directory:
            root = Path(directory)
            others = {k.replace("__", "/"): v for k, v in others.items()}
            for path, content in {name: text, **others}.items():
                (root / path).parent.mkdir(parents=True, exist_ok=True)
                (root / path).write_text(content)
            return list(c.faults(root / name, root))

    def test_words_and_lines_of_what_is_seen(self):
        text = "# One two\n\n<!-- not this -->\n| three |\n| :--- |\n```text\nfour\n```\n<details>five\nsix</details>\n"
        self.assertEqual(c.counts(text), (4, 9))

    def test_a_page_over_the_limit(self):
        self.assertEqual(self.faults("word " * 2300), [])
        self.assertIn("2301 words of main text, at most 2300", self.faults("word " * 2301)[0])
        self.assertIn("361 lines of main text, at most 360", self.faults("\n" * 361)[0])
        self.assertEqual(self.faults("<details>" + "word\n" * 3000 + "</details>"), [])

    def test_wide_tables(self):
        self.assertEqual(self.faults("|" + " a |" * 8 + "\n|" + " --- |" * 8 + "\n"), [])
        nine = self.faults("|" + " a |" * 9 + "\n|" + " --- |" * 9 + "\n")
        self.assertIn("a table of 9 columns", nine[0])

    def test_links(self):
        there = {"other.md": "", "01_step__c.svg": ""}
        self.assertEqual(self.faults("[a](../other.md) ![b](c.svg)", **there), [])
        fault = "01_step/README.md:2: the link to gone.md leads nowhere"
        self.assertEqual(self.faults("\n[a](gone.md)"), [fault])
        in_code = "`[a](gone.md)`\n```text\n[a](gone.md)\n```\n"
        self.assertEqual(self.faults(f"{in_code}[a](https://example.org/gone)"), [])
        self.assertIn("leads nowhere", self.faults("see [a](gone.md)", "01_step/exercise.ini")[0])

    def test_anchors(self):
        page = "## What, *this*?\n\n[a](#what-this) [b](#that) [c](b.md#x-1)"
        faults = self.faults(page, **{"01_step__b.md": "# X\n# [X](y)\n```\n# in code\n```\n"})
        self.assertEqual(faults, ["01_step/README.md:3: this page has no heading #that"])

    def unbound(self, text):
        return [figure for _, figure in c.unbound_numbers(text)]

    def test_numbers_with_a_unit_are_bound(self):
        for text in (
            *"5 µs|0.5 ms|12 GB/s|3%|1.2 times as fast|1.2 times|twice, 3 times the speed".split(
                "|"
            ),
            *"1.8x|1.0\nto 1.5 us|4,000 GFLOP/s|by up to 15 percent|about 12% more".split("|"),
        ):
            self.assertEqual(len(self.unbound(f"it is {text} here")), 1, text)
        self.assertEqual(self.unbound("a\nfrom 1 to 2 times as long"), ["1 to 2 times as long"])
        fault = self.faults("a\n5 ms\n")[0]
        self.assertIn("01_step/README.md:2: '5 ms' is bound to nothing", fault)

    def test_what_is_no_measured_number(self):
        for text in (
            *"32 times as many|0 times an infinite x|called 22,500 times|a grid of 32x32".split(
                "|"
            ),
            *"100%|f64|`took 5 ms`|    took 5 ms|```text\n5 ms\n```|12 bytes|48 KB|sm_90x".split(
                "|"
            ),
            "144 GB/s\n\n<!-- fixed: 5 µs | 144 GB/s (data sheet) -->\n",
            "1.8 times as fast,\nor 9.1 µs <!-- 1.8 = m a/b | 9.1 = m a -->",
            "<!-- numbers: history -->\n5 ms",
        ):
            self.assertEqual(self.unbound(text), [], text)

    def test_a_number_is_bound_in_its_own_paragraph(self):
        text = "1.8 times as fast\n\nor 1.8 times as slow <!-- 1.8 = m a/b -->\n"
        self.assertEqual(list(c.unbound_numbers(text)), [(1, "1.8 times as fast")])

    def test_numbers_that_an_output_of_the_page_prints(self):
        output = "<!-- output: x -->\n```text\n12.5 ms 7 ms\n```\n<!-- end -->\n"
        self.assertEqual(self.unbound(output + "12.5 ms, 7 ms, 12.6 ms"), ["7 ms", "12.6 ms"])
