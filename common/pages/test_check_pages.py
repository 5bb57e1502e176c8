"""plots/python.sh plots/run_tests.py test_check_pages"""

import tempfile
import unittest
from pathlib import Path

import check_pages as c


class Pages(unittest.TestCase):
    def faults(self, text, name="01_step/README.md", **others):
        with tempfile.TemporaryDirectory() as directory:
            root = Path(directory)
            for path, content in {name: text, **{k.replace("__", "/"): v for k, v in others.items()}}.items():
                (root / path).parent.mkdir(parents=True, exist_ok=True)
                (root / path).write_text(content)
            return list(c.faults(root / name, root))

    def test_words_and_lines_of_what_is_seen(self):
        text = "# One two\n\n<!-- not this -->\n| three |\n| :--- |\n```text\nfour\n```\n<details>five\nsix</details>\n"
        self.assertEqual(c.counts(text), (4, 9))

    def test_a_page_over_the_limit(self):
        self.assertEqual(self.faults("word " * 1500), [])
        self.assertIn("1501 words of main text, at most 1500", self.faults("word " * 1501)[0])
        self.assertIn("301 lines of main text, at most 300", self.faults("\n" * 301)[0])
        self.assertEqual(self.faults("<details>" + "word\n" * 2000 + "</details>"), [])

    def test_appendices_and_other_pages_have_no_limit(self):
        for name in ("01_step/NOTES.md", "common/README.md", "common/simt/README.md"):
            self.assertEqual(self.faults("word\n" * 3000, name), [])

    def test_the_top_page_has_limits_of_its_own(self):
        self.assertEqual(len(self.faults("word\n" * 1801, "README.md")), 2)

    def test_wide_tables(self):
        self.assertEqual(self.faults("|" + " a |" * 8 + "\n|" + " --- |" * 8 + "\n"), [])
        self.assertIn("a table of 9 columns", self.faults("|" + " a |" * 9 + "\n|" + " --- |" * 9 + "\n")[0])

    def test_links(self):
        self.assertEqual(self.faults("[a](../other.md) ![b](c.svg)", **{"other.md": "", "01_step__c.svg": ""}), [])
        self.assertEqual(self.faults("\n[a](gone.md)"), ["01_step/README.md:2: the link to gone.md leads nowhere"])
        self.assertEqual(self.faults("`[a](gone.md)`\n```text\n[a](gone.md)\n```\n[a](https://example.org/gone)"), [])
        self.assertIn("leads nowhere", self.faults("see [a](gone.md)", "01_step/exercise.ini")[0])

    def test_a_link_over_two_lines(self):
        self.assertIn("leads nowhere", self.faults("[a\nb](gone.md)")[0])

    def test_anchors(self):
        page = "## What, *this*?\n\n[a](#what-this) [b](#that) [c](b.md#x-1)"
        faults = self.faults(page, **{"01_step__b.md": "# X\n# [X](y)\n```\n# in code\n```\n"})
        self.assertEqual(faults, ["01_step/README.md:3: this page has no heading #that"])


if __name__ == "__main__":
    unittest.main()
