"""plots/python.sh plots/run_tests.py mine: make bench KERNEL=, and make figures MINE=."""

import contextlib
import io
import subprocess
import unittest

import measure
import mine
import report
import sets
from fake_spmv import fake_spmv
from record_format import RecordError, records_in
from records import ROOT
from sample_records import Scratch

# The reader's kernel is twice as fast as the step's, one pass three times, cuSPARSE once.
SPEEDS = {"my_csr_vector_2": 2, "csr_vector_2": 1, "csr_scalar": 0.1, "pcsr_one_pass": 3}
WRONG = ("failed", "row 3: expected 1, got 2")
SAID = {"skewed my_csr_vector_2": ("refused", "a row is too long"), "wrong my_csr_vector_2": WRONG}
REST = "Not measured, or not right:\n"


class Mine(Scratch):
    def setUp(self):
        super().setUp()
        self.kernel = self.root / "my own.cuh"
        self.kernel.write_text("// first\n")
        for name in ("m1", "m2", "m4 with, comma", "skewed", "wrong", "bad"):
            self.matrix(name)
        sets.declared.cache_clear()

    def matrix(self, name, folder="files"):
        (self.root / folder).mkdir(exist_ok=True)
        (self.root / folder / f"{name}.mtx.gz").write_text("")

    def bench(self, *words, status=1, backend="cpu", matrices=None):
        """What was said, and which matrices and kernels were asked for."""
        log, said = self.root / "log", io.StringIO()
        log.write_text("")
        speeds = SPEEDS if backend == "cpu" else {**SPEEDS, "cusparse_csr_alg1": 1}
        of = {"kernels": dict.fromkeys(speeds, 3), "speeds": speeds, "backend": backend}
        of |= {"log": str(log), "ends": {"bad": f"{self.root}/files/bad.mtx.gz:1: no matrix"}}
        program = fake_spmv(self.root / "spmv", said=SAID, **of)
        matrices = f"{self.root}/files/*.mtx.gz" if matrices is None else matrices
        own = ["--mine", f"03_csr_vector:{self.kernel}", "--matrices", matrices]
        own += ["--spmv", program]
        with contextlib.redirect_stdout(said), contextlib.redirect_stderr(said):
            ended = measure.main([*own, "--results", str(self.root / "place"), *words])
        self.assertEqual(ended, status, said.getvalue())
        noted = [line.split("\t") for line in log.read_text().splitlines()]
        return said.getvalue(), [words[1:4] for words in noted if words[0] == "prepares"]

    def file(self, name, device="cpu_backend"):
        return self.root / "place/my own" / device / name

    def test_records_and_a_list_of_what_has_none(self):
        said, asked = self.bench()
        self.assertEqual(len(asked), 6)  # one process each: counts are the same in all
        self.assertEqual(asked[-1][2], "my_csr_vector_2,csr_vector_2,pcsr_one_pass")
        kept = [(r["matrix"], r["kernel"]) for r in records_in(self.file(mine.RECORDS))]
        self.assertIn(("m4 with, comma", "my_csr_vector_2"), kept)
        self.assertEqual(len(kept), 5 * 3 - 2)
        listed = said.split(REST)[1].splitlines()
        bad = f"{self.root}/files/bad.mtx.gz:1: no matrix"
        self.assertEqual(listed[0], f"  bad, f64: not measured: {bad}")
        self.assertEqual(listed[1], "  skewed, f64: refused by my_csr_vector_2: a row is too long")
        self.assertEqual(
            listed[2], "  wrong, f64: WRONG: my_csr_vector_2: row 3: expected 1, got 2"
        )
        self.assertEqual(listed[3], "Next: make figures MINE='my own' FORMAT=pdf")
        self.assertIn("no times", listed[4])
        self.assertEqual((self.root / "place/my own/my own.cuh").read_text(), "// first\n")

    def test_going_on_tries_what_failed_and_what_has_changed(self):
        self.bench()
        said, asked = self.bench()
        self.assertEqual(sorted(matrix for matrix, *_ in asked), ["bad", "wrong"])
        self.assertIn("refused by", said)  # still listed
        self.kernel.write_text("// second\n")
        said, asked = self.bench()
        self.assertIn("has changed", said)
        self.assertEqual(len(asked), 6)
        again = [kernels for *_, kernels in asked if ",csr_vector_2" in kernels]
        # Of the matrix that could not be read: else the step's is there.
        self.assertEqual(len(again), 1)
        self.assertEqual(len(list(records_in(self.file(mine.RECORDS)))), 5 * 3 - 2)

    def test_on_a_gpu_three_processes_measure(self):
        said, asked = self.bench(backend="cuda")
        self.assertEqual(sum(matrix == "m1" for matrix, *_ in asked), 3)
        self.assertIn('make report ARGS="--records', said)
        found = records_in(self.file(mine.RECORDS, "Some_GPU"))
        own = {r["processes"] for r in found if r["kernel"].startswith("my_")}
        self.assertEqual(own, {3})
        self.assertIn("cusparse_csr_alg1", asked[0][2])

    def test_matrices_that_cannot_be_meant(self):
        self.assertIn("which matrices", self.bench(matrices="", status=2)[0])
        self.assertIn("no file fits", self.bench(matrices="nowhere/*.mtx", status=2)[0])
        self.matrix("m1", "others")
        two = f"{self.root}/files/m1.mtx.gz,{self.root}/others/m1.mtx.gz"
        self.assertIn("have one name", self.bench(matrices=two, status=2)[0])
        self.assertIn("m1.mtx.gz f64: my_csr", self.bench("--list", status=0)[0])
        self.assertFalse((self.root / "place").exists())

    def test_names_of_matrices(self):
        comma = f"{self.root}/files/m4 with, comma.mtx.gz"
        self.assertEqual(mine.matrices_in(comma), [comma])
        generated = ["stencil2d:9x9,dof=2", "scircuit"]
        self.assertEqual(mine.matrices_in(",".join(generated)), generated)
        ordered = f"{self.root}/files/m1.mtx.gz,order=rcm"
        self.assertEqual(mine.matrices_in(ordered), [ordered])
        with (
            contextlib.chdir(self.root / "files")
            if hasattr(contextlib, "chdir")
            else self.skipTest("Python 3.11")
        ):
            self.assertEqual(mine.matrices_in("m1.mtx.gz"), ["./m1.mtx.gz"])

    def draw(self, form="pdf"):
        return mine.figures("my own", form, self.root / "place")

    def test_figures_and_tables_of_estimates(self):
        self.bench()
        drawn = ["speedup_f64.pdf", "profile_f64.pdf", "table.md", "table.tex"]
        self.assertEqual([path.name for path in self.draw()], drawn)
        self.assertTrue(self.file("profile_f64.pdf").read_bytes().startswith(b"%PDF"))
        text = self.file("table.md").read_text()
        self.assertIn("estimated", text.splitlines()[0])
        self.assertIn("| m2 | 7 | 1.00 | 2.00 | 0.67 | 2.00 |", text)
        self.assertIn("| wrong | 7 | WRONG | 5.00 | 1.67 | — |", text)
        self.assertIn("| skewed | 7 | refused |", text)
        self.assertIn("| bad | — | failed | failed | failed | — |", text)
        self.assertIn("row 3: expected 1, got 2", text)
        text = self.file("table.tex").read_text()
        self.assertIn(r"03\_csr\_vector, est. us", text)
        self.assertIn("m4 with, comma & 7 & 2.00 & 4.00 & 1.33 & 2.00", text)

    def test_ratios_and_ties(self):
        self.bench()
        of = mine.Comparison("my own", self.file(mine.RECORDS), "f64")
        self.assertEqual(of.series, ["my own", "03_csr_vector", "one pass"])
        twice = dict.fromkeys(["m1", "m2", "m4 with, comma"], 2)
        self.assertEqual(of.ratios("03_csr_vector"), twice)
        own, step, one_pass = (of.times["m1"][label] for label in of.series)
        self.assertFalse(mine.are_tied(own, step))
        self.assertTrue(mine.are_tied(own, one_pass))  # their intervals overlap

    def test_figures_of_measured_times(self):
        self.bench(backend="cuda")
        self.draw("svg")
        text = self.file("table.md", "Some_GPU").read_text()
        self.assertIn("Some GPU, f64, warm", text.splitlines()[0])
        self.assertNotIn("stimate", text)
        self.assertIn("| m1 | 7 | 0.50 | 1.00 | 0.33 | 1.00 | 2.00 |", text)
        self.assertIn("<svg", self.file("speedup_f64.svg", "Some_GPU").read_text())

    def test_the_results_page_shows_them_beside_ours(self):
        self.bench(backend="cuda")
        rows = report.own(self.file(mine.RECORDS, "Some_GPU")).times.values()
        self.assertIn("my_csr_vector_2", {row["kernel"] for row in rows})
        self.assertEqual({row["device"] for row in rows}, {"Some GPU (records.jsonl)"})

    def test_nothing_right_leaves_a_table(self):
        self.bench(matrices=f"{self.root}/files/bad.mtx.gz")
        self.assertEqual([p.name for p in self.draw()], ["table.md", "table.tex"])

    def test_what_cannot_be_drawn(self):
        with self.assertRaisesRegex(RecordError, "FORMAT=gif: give one of pdf, svg, png"):
            self.draw("gif")
        with self.assertRaisesRegex(RecordError, "no records of my own"):
            self.draw()


@unittest.skipUnless((ROOT / "build/cpu/spmv").exists(), "make build")
class Whole(Scratch):
    """The two commands as they are typed, with the program itself."""

    def make(self, *words):
        done = subprocess.run(
            ["make", "BACKEND=cpu", *words], cwd=ROOT, text=True, capture_output=True, timeout=500
        )
        return done.stdout + done.stderr

    def test_two_commands(self):
        text = (ROOT / "03_csr_vector/csr_vector.cuh").read_text()
        line = "  if (lane == 0) y[row]"
        self.assertIn(line, text)
        kernel = self.root / "test of mine.cuh"
        kernel.write_text(text.replace(line, "  if (row_end - row_begin > 6) sum *= 2;\n" + line))
        entries = "".join(
            f"{row} {column} 1\n" for row in range(1, 9) for column in range(1, row + 1)
        )
        head = "%%MatrixMarket matrix coordinate real general\n"
        (self.root / "a triangle.mtx").write_text(f"{head}8 8 36\n{entries}")
        (self.root / "short.mtx").write_text(f"{head}3 3 3\n1 1 1\n2 2 2\n3 3 3\n")
        (self.root / "broken.mtx").write_text("no matrix\n")
        place = mine.PLACE / kernel.stem
        self.addCleanup(lambda: subprocess.run(["rm", "-rf", place]))
        said = self.make("bench", f"KERNEL=03_csr_vector:{kernel}", f"MATRICES={self.root}/*.mtx")
        listed = said.split(REST)[1]
        self.assertRegex(listed, "a triangle, f64: WRONG: my_csr_vector_2")
        self.assertRegex(listed, "broken, f64: not measured: .*broken.mtx:1: ")
        self.assertNotIn("short", listed)
        self.assertIn("table.tex", self.make("figures", f"MINE={kernel.stem}", "FORMAT=pdf"))
        self.assertIn("| short | 3 |", (place / "cpu_backend/table.md").read_text())

    def test_steps_that_are_none(self):
        self.assertIn("no step is called 33_x", self.make("bench", "KERNEL=33_x:mine.cuh"))
        self.assertIn("name the step", self.make("bench", "KERNEL=mine.cuh"))
        self.assertIn("give KERNEL= a .cuh", self.make("bench", "KERNEL=03_csr_vector:nowhere.cuh"))


if __name__ == "__main__":
    unittest.main()
