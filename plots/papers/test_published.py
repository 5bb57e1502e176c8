"""plots/python.sh plots/run_tests.py test_published: the papers' tables."""

import unittest

from published import PUBLISHED, published, rows_in

TABLES = sorted(p.stem for p in PUBLISHED.glob("*.csv") if p.stem != "disagreements")


class Tables(unittest.TestCase):
    def test_each_says_where_it_comes_from(self):
        self.assertGreaterEqual(len(TABLES), 19)
        for name in TABLES:
            with self.subTest(name):
                text = (PUBLISHED / f"{name}.csv").read_text(encoding="utf-8")
                for head in ("paper", "table", "device", "unit"):
                    self.assertRegex(text, rf"(?m)^# {head}: *\S")

    def test_rows_are_whole_and_named_once(self):
        for name in TABLES:
            with self.subTest(name):
                rows = published(name)
                self.assertTrue(rows)
                for row in rows:
                    self.assertNotIn(None, row)  # more fields than columns
                    self.assertNotIn(None, row.values())  # fewer
                if "matrix" in rows[0]:
                    self.assertEqual(len(set(rows.matrices())), len(rows))


class Disagreements(unittest.TestCase):
    def test_they_name_what_is_there(self):
        for row in rows_in(PUBLISHED / "disagreements.csv"):
            self.assertIn(row["table"], TABLES)
            self.assertNotEqual(row["printed"], row["computed"])
