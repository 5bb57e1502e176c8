"""plots/python.sh plots/run_tests.py reproduce: the page on reproduction. Whether its tables are today's: update_readmes.py --check."""

import claims
import evidence
import figures
import reproduce
from record_format import RecordError
from records import ROOT
from sample_records import Scratch, record, write
from sets import declared, groups_of


class Reproduce(Scratch):
    def test_every_figure_stands_once_and_every_claim_has_one(self):
        names = [name for row in reproduce.figures_of_rows() for name in row]
        self.assertEqual(sorted(names), sorted(figures.FIGURES))
        self.assertLessEqual({claim.figure for claim in claims.CLAIMS}, set(names))

    def test_every_set_that_is_shown_is_in_a_row(self):
        def parts(sets):
            return {name for one in sets for name, _ in groups_of(one)}

        every = parts(name for row in declared()["reproduce"] for name in row["sets"])
        self.assertLessEqual(parts(evidence.SHOWN), every)

    def test_a_row_names_its_command_and_what_it_needs(self):
        rows = {row[0].split("](")[0].strip("["): row for row in reproduce.table().rows}
        parallel = next(row for row in rows.values() if "figures_7_to_10" in row[0])
        self.assertEqual(parallel[1], "`make bench SET=multigpu`")
        self.assertEqual(parallel[5], "4")
        whole = next(row for row in rows.values() if "[ladder]" in row[0])
        self.assertIn("make data ARGS=large", whole[2])
        self.assertGreater(int(whole[4]), int(parallel[4]))
        self.assertEqual(
            sum(int(row[3]) for row in rows.values() if row[3] != "none"), len(claims.CLAIMS)
        )

    def test_the_citation_has_a_version_and_the_day_that_it_is_of(self):
        lines = (ROOT / "CITATION.cff").read_text(encoding="utf-8").splitlines()
        fields = dict(line.split(": ", 1) for line in lines if ": " in line and line[0] not in " -")
        self.assertRegex(fields["date-released"], r'^"\d{4}-\d\d-\d\d"$')
        self.assertEqual(fields["version"], fields["date-released"].replace("-", "."))

    def test_minutes(self):
        self.assertEqual(
            [reproduce.rounded(s) for s in (1, 60, 61, 600, 601, 1260)],
            ["1", "1", "2", "10", "10", "20"],
        )

    def test_what_was_tried(self):
        self.patch(reproduce, "RESULTS", self.root)
        write(self.root / "A_GPU/bench.jsonl", [record("k", "m", 1)])
        write(self.root / "B_GPU/bench.jsonl", [record("k", "m", 1)])
        (self.root / "nothing").mkdir()
        (self.root / "B_GPU/try.txt").write_text(
            "date: 2026-12-01T10:00:00Z\ncommit: abc\ndriver: 1.2\n1 GPU   make run   4 s  passed\n1 passed, 0 failed\n"
        )
        one, other = reproduce.tried().rows
        self.assertEqual(one, ["A_GPU", "—", "—", "—", "not yet run"])
        came = "[1 passed, 0 failed](results/B_GPU/try.txt)"
        self.assertEqual(other, ["B_GPU", "2026-12-01T10:00:00Z", "abc", "1.2", came])
        with self.assertRaises(RecordError):
            reproduce.page("else")
