"""plots/python.sh plots/run_tests.py test_published: the papers' tables."""

import csv
import unittest

from published import PUBLISHED, Published

TABLES = sorted(p.stem for p in PUBLISHED.glob("*.csv") if p.stem != "disagreements")


class Tables(unittest.TestCase):
    def test_each_says_where_it_comes_from(self):
        self.assertGreaterEqual(len(TABLES), 19)
        for name in TABLES:
            with self.subTest(name):
                self.assertLessEqual({"paper", "table", "device", "unit"}, set(Published(name).about))

    def test_rows_are_whole_and_named_once(self):
        for name in TABLES:
            with self.subTest(name):
                rows = Published(name)
                self.assertTrue(rows)
                for row in rows:
                    self.assertNotIn(None, row)  # more fields than columns
                    self.assertNotIn(None, row.values())  # fewer
                if "matrix" in rows[0]:
                    self.assertEqual(len({row["matrix"] for row in rows}), len(rows))

    def test_sizes(self):
        rows = {name: len(Published(name)) for name in TABLES}
        wanted = {"he_gao_2016_table2": 26, "bylina_2011_table2": 8, "bylina_2011_table3": 12,
                  "lightspmv_poster_matrices": 14, "lightspmv_poster_table": 14, "godwin_2012_table1": 4}
        wanted |= {f"he_gao_2016_table{n}": 15 for n in (3, 4, 5, 6)}
        wanted |= {f"bylina_2011_table{n}": 8 for n in (4, 5)}
        wanted |= {f"bylina_2011_table{n}": 12 for n in (6, 7)}
        self.assertEqual(rows, rows | wanted)

    def test_tables_of_one_paper_name_the_same_matrices(self):
        def names(table):
            return [row["matrix"] for row in Published(table)]

        for n in (4, 5, 6):
            self.assertEqual(names("he_gao_2016_table3"), names(f"he_gao_2016_table{n}"))
        self.assertLess(set(names("he_gao_2016_table3")), set(names("he_gao_2016_table2")))
        for sizes, times, speedups in ((2, 4, 5), (3, 6, 7)):
            self.assertEqual(names(f"bylina_2011_table{sizes}"), names(f"bylina_2011_table{times}"))
            self.assertEqual(names(f"bylina_2011_table{sizes}"), names(f"bylina_2011_table{speedups}"))


class Disagreements(unittest.TestCase):
    def test_they_name_what_is_there(self):
        with open(PUBLISHED / "disagreements.csv", encoding="utf-8") as lines:
            for row in csv.DictReader(line for line in lines if not line.startswith("#")):
                self.assertIn(row["table"], TABLES)
                self.assertNotEqual(row["printed"], row["computed"])


if __name__ == "__main__":
    unittest.main()
