"""python3 plots/test_bench.py: make bench and measure.sh, with a program that plays spmv."""

import contextlib
import io
import json
import os
import stat
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path
from unittest import mock

import bench
from record_format import records_in

PROGRAM = """#!{python}
import json, sys, time
words = sys.argv[1:]
def option(name):
    return words[words.index(name) + 1]
if "--list" in words:
    print(json.dumps([{{"name": "csr_scalar", "step": 2}}, {{"name": "ell", "step": 8}}, {{"name": "eigen_csr", "step": 0}}]))
    sys.exit()
if "--environment" in words:
    print(json.dumps({{"backend": "{backend}", "device": "Some  GPU"}}, indent=1))
    sys.exit()
if words[0] == "info":
    print(json.dumps({{"matrix": {{"name": words[2], "nnz": 7, "source": "file"}}, "picture": {{}}}}))
    sys.exit()
matrix, status = option("-m"), 0
with open("{log}", "a") as log:
    print(matrix, option("-p"), option("-k"), file=log)
if matrix == "m_3K":
    time.sleep(60)
if matrix == "m_14K":
    sys.exit("error: out of memory")
for kernel in option("-k").split(","):
    if kernel == "ell" and matrix == "m_2.1K":
        print("ell does not suit this matrix: 9 times the nonzeros")
    elif kernel == "ell" and matrix == "m_2.3K":
        print("ell FAILED: row 3 is wrong")
        status = 1
    else:
        sys.path.insert(0, "{plots}")
        from sample_records import lines_of, record
        with open(option("--json"), "a") as out:
            print(*lines_of([record(kernel, matrix, 1, precision=option("-p"), floor=None)]), sep="\\n", file=out)
sys.exit(status)
"""


class WithProgram(unittest.TestCase):
    def setUp(self):
        self.scratch = tempfile.TemporaryDirectory()
        self.addCleanup(self.scratch.cleanup)
        self.root = Path(self.scratch.name)
        self.log = self.root / "log"

    def program(self, backend="cuda"):
        path = self.root / "spmv"
        path.write_text(PROGRAM.format(python=sys.executable, backend=backend, log=self.log,
                                       plots=Path(__file__).parent))
        path.chmod(path.stat().st_mode | stat.S_IXUSR)
        return str(path)


class Bench(WithProgram):
    def run_bench(self, *words, backend="cuda"):
        """Exit status, what was said, and what the program was asked for."""
        self.log.write_text("")
        said = io.StringIO()
        with contextlib.redirect_stdout(said), contextlib.redirect_stderr(said), \
                mock.patch.object(bench, "RESULTS", self.root):
            status = bench.main(["--spmv", self.program(backend), "--results", str(self.root), *words])
        return status, said.getvalue(), self.log.read_text().splitlines()

    def records(self, device="Some__GPU"):
        file = self.root / device / "bench.jsonl"
        return [(r["matrix"], r["precision"], r["kernel"]) for r in records_in(file)]

    def test_records_refusals_and_going_on(self):
        names = ("--matrices", "m_2.1K,stencil2d:9x9,dof=2", "--precisions", "f32")
        status, said, asked = self.run_bench(*names)
        self.assertEqual(status, 0, said)
        self.assertEqual(asked, ["m_2.1K f32 csr_scalar,ell,eigen_csr", "stencil2d:9x9,dof=2 f32 csr_scalar,ell,eigen_csr"])
        self.assertEqual(len(self.records()), 5)
        self.assertIn("1 refused", said)
        self.assertEqual((self.root / "Some__GPU" / "skipped.tsv").read_text(), "m_2.1K\tf32\tell\t9 times the nonzeros\n")
        status, said, asked = self.run_bench(*names)
        self.assertEqual((status, asked), (0, []))
        self.assertIn("all have records", said)
        _, _, asked = self.run_bench(*names, "--fresh", "--kernels", "e*")
        self.assertEqual(asked[0], "m_2.1K f32 ell,eigen_csr")

    def test_a_failure_costs_one_matrix(self):
        status, said, _ = self.run_bench("--matrices", "m_3K,m_14K,m_2.3K,cant", "--precisions", "f64", "--timeout", "3")
        self.assertEqual(status, 1)
        self.assertIn("m_3K f64: FAILED: took longer than", said)
        self.assertIn("m_14K f64: FAILED: out of memory", said)
        self.assertIn("m_2.3K f64: 2 records, 0 refused, 1 FAILED", said)
        self.assertEqual({m for m, *_ in self.records()}, {"m_2.3K", "cant"})
        skipped = (self.root / "Some__GPU" / "skipped.tsv").read_text()
        self.assertIn("m_3K\tf64\t*\ttook longer", skipped)
        self.assertIn("m_2.3K\tf64\tell\tFAILED: row 3 is wrong", skipped)

    def test_the_limit_ends_in_time(self):
        status, said, asked = self.run_bench("--matrices", "cant,rma10,m_2.1K", "--limit", "0.02")
        self.assertEqual((status, len(asked)), (0, 1))
        self.assertIn("5 left when the time was over", said)

    def test_without_a_gpu_counters_of_kernels_that_have_some(self):
        _, _, asked = self.run_bench(backend="cpu")
        self.assertEqual([line.split()[0] for line in asked], list(bench.in_turn([bench.SMALL_KINDS])))
        self.assertEqual(asked[0].split()[1:], ["f64", "csr_scalar,ell"])
        self.assertEqual(len(self.records("cpu_backend")), 8)

    def test_shapes(self):
        status, _, _ = self.run_bench("--set", "shapes", "--matrices", "cant,cont-300")
        self.assertEqual(status, 0)
        lines = (self.root / "matrices.jsonl").read_text().splitlines()
        self.assertEqual(["picture" in line for line in lines], [False, True])
        _, said, _ = self.run_bench("--set", "shapes", "--matrices", "cant,cont-300")
        self.assertIn("0 matrices", said)
        self.run_bench("--set", "shapes", "--matrices", "cant", "--fresh")
        self.assertEqual(len((self.root / "matrices.jsonl").read_text().splitlines()), 2)

    def test_wrong_names(self):
        self.assertEqual(self.run_bench("--kernels", "nothing*")[0], 2)
        self.assertIn("no kernel is called nothing*", self.run_bench("--kernels", "nothing*")[1])


class Measure(WithProgram):
    """measure.sh, which asks the program itself."""

    def measure(self, *words):
        done = subprocess.run(["bash", str(Path(bench.__file__).parent / "measure.sh"), *words], text=True,
                              capture_output=True, env={**os.environ, "SPMV": self.program(), "RECORDS": str(self.root)})
        return done.returncode, done.stderr, self.log.read_text().splitlines() if self.log.exists() else []

    def test_records_of_both_precisions(self):
        status, said, asked = self.measure("chains")
        self.assertEqual(status, 0, said)
        self.assertEqual([line.split()[1] for line in asked], ["f64", "f32"])
        self.assertIn('"verified": true', (self.root / "step_08.jsonl").read_text())

    def test_an_unknown_word(self):
        status, said, asked = self.measure("everything")
        self.assertEqual((status, asked), (2, []))
        self.assertIn("'everything' is none of tests, sanitizers, race,", said)


class Sets(unittest.TestCase):
    def test_quick_has_something_of_every_paper_and_nothing_large(self):
        quick, full = bench.matrices_of("quick", True), bench.matrices_of("full", True)
        self.assertLess(set(quick), set(full))
        self.assertLessEqual(max(quick.values()), bench.QUICK_NONZEROS)
        for names in bench.catalogue().values():
            self.assertTrue(set(names) & set(quick))
            self.assertLessEqual(set(names), set(full))
        self.assertTrue(any(name.startswith("stencil3d:32x32x32,dof=") for name in quick))

    def test_a_run_that_is_cut_short_has_something_of_all(self):
        first = list(bench.matrices_of("full", True))[:12]
        for names in bench.catalogue().values():
            self.assertTrue(set(first) & set(names), first)


if __name__ == "__main__":
    unittest.main()
