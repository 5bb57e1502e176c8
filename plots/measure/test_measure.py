"""plots/python.sh plots/run_tests.py test_measure: make bench, with a program that plays spmv."""

import contextlib
import io
import json
import os
import signal
import subprocess
import sys
import time
import unittest
from pathlib import Path
from unittest import mock

import measure
import prove_counters
import sets
from fake_spmv import fake_spmv
from record_format import records_in
from records import current_outcomes, identity
from sample_records import Scratch

KERNELS = {"csr_scalar": 2, "ell": 8, "eigen_csr": 0}
ENDS = {"m_3K": None, "m_14K": "out of memory"}
SAID = {
    "m_2.1K ell": ("refused", "9 times the nonzeros"),
    "m_2.3K ell": ("failed", "row 3 is wrong"),
}
STEP_10 = """
[set.{name}]
about = "step 10"
backend = "cuda"
program = "multigpu"
matrices = ["cant"]
kernels = ["{kernel}"]
gpus = [1, 2, 4]
exchange = ["none", "packed"]
records = "multigpu.jsonl"
"""
SETS = f"""
[set.quick]
about = "of a group"
sets = ["times"]
[set.times]
about = "of the device's kernels"
backend = "cuda"
matrices = ["m_2.1K", "stencil2d:9x9,dof={{1..2}}"]
records = "bench.jsonl"
[set.some]
about = "of one of them"
backend = "cuda"
matrices = ["m_2.1K"]
kernels = ["ell"]
records = "bench.jsonl"
[set.host]
about = "of the host's"
backend = "cuda"
on_host = true
matrices = ["m_2.1K"]
records = "bench.jsonl"
{STEP_10.format(name="multigpu", kernel="csr_scalar")}
{STEP_10.format(name="published", kernel="ell")}
[set.counters]
about = "to compare"
tool = "counters"
matrices = ["diagonal:1"]
kernels = ["step:2-9", "!csr*"]
[set.limits]
about = "of each function"
tool = "limits"
matrices = ["diagonal:1"]
precisions = ["f64"]
[set.shapes]
about = "looks"
tool = "info"
matrices = ["cant", "cont-300"]
kernels = ["csr*"]
counted = 10
[tables]
he_gao = ["he_gao_2016_table2"]
[lists]
[nonzeros]
"""


class Bench(Scratch):
    def setUp(self):
        super().setUp()
        self.log = self.root / "log"
        (self.root / "sets.toml").write_text(SETS)
        for cached in (sets.declared, sets.published_nonzeros, sets.declarations, sets.groups_with):
            cached.cache_clear()
            self.addCleanup(cached.cache_clear)

    def executable(self, name, text):
        path = self.root / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
        path.chmod(0o755)
        return str(path)

    def program(self, **of):
        of = {"log": str(self.log), "device": "Some  GPU", "ends": ENDS, "said": SAID, **of}
        return fake_spmv(self.root / "spmv", kernels=KERNELS, **of)

    def bench(self, *words, status=0, **program):
        """What was said, and what the program noted, line by line. It must end with this status."""
        self.log.write_text("")
        said = io.StringIO()
        with (
            contextlib.redirect_stdout(said),
            contextlib.redirect_stderr(said),
            mock.patch.object(measure, "RESULTS", self.root),
            mock.patch.object(sets, "DECLARED", self.root / "sets.toml"),
        ):
            own = ["--spmv", self.program(**program), "--results", str(self.root)]
            ended = measure.main([*own, *words])
        self.assertEqual(ended, status, said.getvalue())
        return said.getvalue(), [line.split("\t") for line in self.log.read_text().splitlines()]

    def asked(self, noted):
        return sorted(tuple(words[1:4]) for words in noted if words[0] == "prepares")

    def records(self, device="Some__GPU", file="bench.jsonl"):
        return [identity(r) for r in records_in(self.root / device / file)]

    def test_records_refusals_and_going_on(self):
        names = ("--matrices", "m_2.1K,stencil2d:9x9,dof=2", "--precisions", "f32")
        said, noted = self.bench(*names)
        matrices, kernels = ("m_2.1K", "stencil2d:9x9,dof=2"), "csr_scalar,ell"
        self.assertEqual(self.asked(noted), [(matrix, "f32", kernels) for matrix in matrices])
        self.assertEqual(len(self.records()), 3)
        self.assertIn("1 refused", said)
        file = self.root / "Some__GPU/bench.jsonl"
        self.assertEqual(file.read_text().count('{"run":{'), 1)
        self.assertIn('"command":"make bench SET=quick MATRICES=', file.read_text())
        (refused,) = current_outcomes(file)
        self.assertEqual((refused["kernel"], refused["refused"]), ("ell", "9 times the nonzeros"))
        (run,) = {r["run"] for r in records_in(file)}
        said, noted = self.bench(*names)
        self.assertEqual(noted, [])
        self.assertIn("all have records", said)
        _, noted = self.bench(*names, "--fresh", "--kernels", "el*")
        self.assertEqual(self.asked(noted)[0], ("m_2.1K", "f32", "ell"))
        self.bench(*names, "--fresh", "--kernels", "csr*")
        self.assertEqual(len(self.records()), 3)
        self.assertNotIn(run, file.read_text())  # superseded, and left out

    def test_an_order_is_an_option_of_the_program_and_part_of_the_name(self):
        names = ("--matrices", "cant,cant,order=rcm", "--precisions", "f64", "--kernels", "ell")
        _, noted = self.bench(*names)
        both = ["cant", "cant,order=rcm"]
        self.assertEqual(self.asked(noted), [(matrix, "f64", "ell") for matrix in both])
        self.assertEqual({m for m, *_ in self.records()}, set(both))
        _, noted = self.bench(*names)
        self.assertEqual(noted, [])
        job = measure.Job({}, "/there/m.mtx.gz,order=columns", "f32")
        wanted = ["-m", "/there/m.mtx.gz", "--order", "columns"]
        self.assertEqual(job.command("spmv", 1)[1:5], wanted)
        self.assertEqual(sets.matrix_name(job.matrix), "m,order=columns")
        self.assertEqual(sets.matrix_name("/there/m.npz"), "m")
        self.assertEqual(sets.nonzeros_of("kronecker_18,order=rcm"), 21006333)

    def test_files_of_a_pattern_in_an_order(self):
        (self.root / "a.mtx.gz").touch()
        with mock.patch.dict(os.environ, SPMV_DATA=str(self.root)):
            names = sets.expanded("files:*.mtx.gz,order=rcm")
        self.assertEqual(names, [f"{self.root}/a.mtx.gz,order=rcm"])

    def test_what_several_sets_ask_for_is_one_job(self):
        _, noted = self.bench("some", "times", "--matrices", "m_2.1K", "--precisions", "f64")
        self.assertEqual(self.asked(noted), [("m_2.1K", "f64", "ell,csr_scalar")])

    def test_a_failure_costs_one_matrix(self):
        names = ("--matrices", "m_3K,m_14K,m_2.3K,cant", "--precisions", "f64")
        said, _ = self.bench(*names, "--timeout", "6", status=1)
        self.assertIn("m_3K f64: FAILED: took longer than", said)
        self.assertIn("m_14K f64: FAILED: out of memory", said)
        self.assertIn("m_2.3K f64: 1 records, 0 refused, 1 FAILED", said)
        self.assertEqual({m for m, *_ in self.records()}, {"m_2.3K", "cant"})
        outcomes = current_outcomes(self.root / "Some__GPU" / "bench.jsonl")
        failed = {(o["matrix"], o["kernel"]): o["failed"] for o in outcomes}
        self.assertEqual(failed["m_14K", "*"], "out of memory")
        self.assertEqual(failed["m_2.3K", "ell"], "row 3 is wrong")
        self.assertRegex(failed["m_3K", "*"], "took longer")
        _, noted = self.bench("--matrices", "m_14K", "--precisions", "f64")
        self.assertEqual(noted, [])

    def test_one_measures_while_others_prepare(self):
        _, noted = self.bench("--matrices", "a,b,c,d", "--precisions", "f64", seconds=0.2)
        events = [words[0] for words in noted]
        measuring = 0
        for event in events:
            measuring += {"prepares": 0, "measures": 1, "ends": -1}[event]
            self.assertIn(measuring, (0, 1))
        # The second was prepared before the first had ended.
        self.assertEqual(events[: events.index("ends")].count("prepares"), 3)

    def test_several_processes_are_one_record(self):
        text = (self.root / "sets.toml").read_text()
        (self.root / "sets.toml").write_text("processes = 3\n" + text)
        said, noted = self.bench("--matrices", "a,m_2.1K", "--precisions", "f64")
        self.assertEqual(len(self.asked(noted)), 6, said)
        found = list(records_in(self.root / "Some__GPU" / "bench.jsonl"))
        wanted = [("a", "csr_scalar", 3), ("a", "ell", 3), ("m_2.1K", "csr_scalar", 3)]
        of = sorted((r["matrix"], r["kernel"], r["processes"]) for r in found)
        self.assertEqual(of, wanted)
        self.assertIn("1 refused", said)
        _, noted = self.bench("--matrices", "m_14K", "--precisions", "f64", status=1)
        self.assertEqual(len(self.asked(noted)), 1, "a process that fails is not repeated")

    def test_each_gpu_has_its_own_queue(self):
        names = ("--matrices", "a,b,c,d,e,f", "--precisions", "f64")
        _, noted = self.bench(*names, devices=2, seconds=0.3)
        self.assertEqual({words[4] for words in noted}, {"0", "1"})
        first = [words for words in noted if words[0] in ("measures", "ends")][:2]
        self.assertEqual([words[0] for words in first], ["measures", "measures"])

    def test_what_runs_alone(self):
        _, noted = self.bench("host", "multigpu", "times", devices=2, seconds=0.05)
        alone = [words for words in noted if words[4] == "all"]
        self.assertEqual([words[0] for words in alone], ["prepares", "measures", "ends"] * 3)
        self.assertEqual(noted[-len(alone) :], alone)
        self.assertEqual({words[5] for words in alone}, {"active"})  # a CPU's baseline may spin
        self.assertIn(("m_2.1K", "f64", "eigen_csr"), self.asked(alone))
        found = records_in(self.root / "Some__GPU" / "multigpu.jsonl")
        ways = [(r["gpus"], r["exchange"]) for r in found]
        self.assertEqual(ways, [(1, "none"), (1, "packed"), (2, "none"), (2, "packed")])
        self.assertEqual(self.bench("multigpu", devices=2)[1], [])
        # On four it has not been measured.
        self.assertEqual(len(self.bench("multigpu", devices=4)[1]), 3)

    def test_programs_of_several_gpus_measure_the_kernels_of_their_set(self):
        self.bench("multigpu", devices=2)
        _, noted = self.bench("published", devices=2)  # the same matrix and ways, another kernel
        self.assertEqual(self.asked(noted), [("cant", "f64", "ell")])
        kernels = [r["kernel"] for r in records_in(self.root / "Some__GPU" / "multigpu.jsonl")]
        self.assertEqual(sorted(kernels), ["csr_scalar"] * 4 + ["ell"] * 4)
        self.assertEqual(self.bench("published", devices=2)[1], [])
        self.assertEqual(measure.Job({"gpus": [2, 4]}, "cant", "f64").gpus(1), 0)
        job = measure.Job({"gpus": [2], "records": "weak.jsonl"}, "cant", "f64")
        store = measure.Store("Some__GPU", self.root, True)
        self.assertIsNone(measure.still_to_do(job, store, devices=1))
        _, noted = self.bench("multigpu", "--kernels", "csr_scalar,ell", "--fresh", devices=2)
        self.assertEqual(self.asked(noted), [("cant", "f64", "csr_scalar,ell")])

    def test_the_limit_ends_in_time(self):
        names = ("--matrices", "a,b,c,d,e", "--precisions", "f64")
        said, noted = self.bench(*names, "--limit", "0.5", seconds=1)
        self.assertEqual(len(self.asked(noted)), 3)
        self.assertIn("2 left when the time was over", said)

    def test_an_interrupt_ends_all_processes(self):
        for more in ([], ["host"]):  # beside others, and alone
            self.log.write_text("")
            with self.subTest(more):
                code = "import sys, pathlib, measure, sets; sets.DECLARED = pathlib.Path(sys.argv.pop(1)); sys.exit(measure.main())"
                words = [sys.executable, "-c", code, self.root / "sets.toml", "--spmv"]
                words += [self.program(), "--results", self.root, "--matrices", "m_3K", *more]
                pipes = {"stderr": subprocess.PIPE, "stdout": subprocess.DEVNULL, "text": True}
                environment = {**os.environ, "PYTHONPATH": str(Path(measure.__file__).parent)}
                done = subprocess.Popen(words, env=environment, **pipes)
                end = time.monotonic() + 120
                while "measures" not in self.log.read_text() and time.monotonic() < end:
                    time.sleep(0.05)
                done.send_signal(signal.SIGINT)
                _, errors = done.communicate(timeout=120)
                self.assertEqual(done.returncode, 130, errors)
                self.assertIn("the same command goes on from here", errors)
                programs = map(contents, Path("/proc").glob("[0-9]*/cmdline"))
                own = os.fsencode(self.root / "spmv")
                self.assertEqual([program for program in programs if own in program], [])

    def test_without_a_gpu(self):
        said = self.bench("times", backend="cpu", status=2)[0]
        self.assertEqual(said, "error: these sets need a GPU: make bench BACKEND=cuda\n")

    def test_counters_to_compare(self):
        self.bench("counters", "--device", "Some__GPU", backend="cpu")
        counted = prove_counters.read(self.root / "Some__GPU" / "counters" / "counted.csv")
        self.assertEqual(set(counted), {("diagonal:1", "f32"), ("diagonal:1", "f64")})
        of = {"launches": 2, "sites": 1, "load requests": 10, "load sectors": 40}
        of["DRAM bytes read"] = 160
        self.assertEqual(counted["diagonal:1", "f64"]["a_kernel<double>"], of)
        said = self.bench("counters", "--device", "Some__GPU", backend="cpu")[0]
        self.assertIn("all have records", said)

    def counted(self, name, file, ncu):
        """Of a function on a GPU, where Nsight Compute is the script `ncu`."""
        self.executable(
            "tools/cuobjdump",
            "#!/bin/sh\necho 'Function : _ZN4spmv8a_kernelIdEEvi'; echo ' LDG.E R1;'; echo ' LDG.E R2;'\n",
        )
        self.executable("tools/ncu", f"#!/bin/sh\n{ncu}\n")
        with mock.patch.dict(os.environ, PATH=f"{self.root}/tools:{os.environ['PATH']}"):
            self.bench(name)
        counters = prove_counters.read(self.root / "Some__GPU" / "counters" / file)
        return counters["diagonal:1", "f64"]["a_kernel<double>"]

    def test_counters_of_a_gpu(self):
        found = self.counted(
            "counters",
            "measured.csv",
            f"""case $* in *query*) exit 1 ;; esac
            echo '==PROF== noise'; echo '"ID","Kernel Name","{prove_counters.COUNTERS["load requests"][0]}"'; echo '"","","request"'
            echo '"0","void spmv::a_kernel<double>(int)","1,200"'; echo '"1","void spmv::a_kernel<double>(int)","34"'""",
        )
        self.assertEqual(found, {"launches": 2, "loads in code": 2, "load requests": 1234})

    def test_times_of_functions_alone(self):
        metrics = [prove_counters.DURATION, prove_counters.OF_PEAK[0], *prove_counters.OF_L1]
        found = self.counted(
            "limits",
            "limits.csv",
            f"""case $* in *query*) exit 1 ;; *"cache-control none"*) ;; *) exit 1 ;; esac
            echo '"ID","Kernel Name","{'","'.join(metrics)}"'; echo '"","","ns","%","%","%"'
            echo '"0","a_kernel<double>(int)","2,000","30","80","50"'; echo '"1","a_kernel<double>(int)","1,000","30","80","20"'""",
        )
        self.assertEqual(found, {"launches": 2, "ns": 3000, "memory ns": 800 + 300})

    def test_shapes(self):
        self.bench("shapes")
        lines = (self.root / "matrices.jsonl").read_text().splitlines()
        self.assertNotIn('"picture"', lines[0])
        self.assertEqual(json.loads(lines[0])["sketch"], ["90", "01"])
        self.assertEqual(json.loads(lines[0])["matrix"]["detail"], "m.mtx")
        self.assertIn("0 matrices", self.bench("shapes")[0])
        self.assertNotIn("moved", lines[0])  # a GPU counts nothing
        self.bench("shapes", "--matrices", "cant", "--fresh", backend="cpu")
        looks = map(json.loads, (self.root / "matrices.jsonl").read_text().splitlines())
        moved = {look["matrix"]["name"]: look.get("moved") for look in looks}
        self.assertEqual(moved, {"cant": {"csr_scalar": 3.2}, "cont-300": None})

    def test_sketch(self):
        picture = {"lines": 200, "columns": 3, "cells": [[0, 0, 1], [3, 0, 8], [199, 2, 81]]}
        lines = measure.sketch(picture)
        self.assertEqual((len(lines), lines[0], lines[-1]), (50, "500", "009"))
        self.assertEqual(measure.sketch({"lines": 0, "columns": 0, "cells": []}), [])
        self.assertEqual(measure.sketch({"lines": 1, "columns": 2, "cells": [[0, 1, 1]]}), ["09"])

    def test_wrong_names(self):
        for words, said in (
            (["--kernels", "nothing*"], "no kernel is called nothing*"),
            (["everything"], "no set is called everything; there are quick, times"),
        ):
            self.assertIn(said, self.bench(*words, status=2)[0])


def contents(path):
    try:
        return path.read_bytes()
    except OSError:
        return b""


class Declared(unittest.TestCase):
    """measurements.toml itself."""

    STEPS = {"csr_scalar": 2, "segscan_cub": 5, "pcsr_one_pass": 6, "ell": 8, "cds": 9}
    STEPS["cusparse_csr_alg1"] = 0
    KERNELS = [{"name": name, "step": step, "host": False} for name, step in STEPS.items()]

    def matrices(self, name):
        return sets.matrices_of(sets.declared()["set"][name])

    def test_every_set_can_be_planned(self):
        known = set(
            "about sets backend matrices largest kernels on_host precisions options".split()
        )
        known |= set("program gpus partition exchange records alone processes tool counted".split())
        for name, keys in sets.declared()["set"].items():
            with self.subTest(name):
                self.assertLessEqual(set(keys), known)
                self.assertTrue(keys["about"])
                self.assertTrue("gpus" not in keys or "kernels" in keys)
                for group, of in sets.groups_of(name):
                    self.assertTrue(sets.matrices_of(of) or "files:*.mtx.gz" in of["matrices"])
                    self.assertTrue("records" in of or of["tool"] in measure.TOOLS)

    def test_quick_has_something_of_every_paper_and_nothing_large(self):
        quick, groups = self.matrices("ideas"), sets.groups_of("full")
        full = {name for _, keys in groups for name in sets.matrices_of(keys)}
        self.assertLess(set(quick), full)
        self.assertLessEqual(sets.nonzeros_of(quick[-1]), 5_000_000)
        for paper in ("he_gao", "bylina", "lightspmv"):
            names = set(sets.expanded(f"@{paper}"))
            self.assertTrue(names & set(quick))
            self.assertLessEqual(names, full)

    def test_kernels(self):
        for name, kernels in (
            ("counters", "csr_scalar pcsr_one_pass ell cds"),
            ("comparison", "pcsr_one_pass cusparse_csr_alg1"),
        ):
            found = sets.kernels_of(sets.declared()["set"][name], self.KERNELS)
            self.assertEqual(found, kernels.split())

    def test_what_sets_declare(self):
        of = {"program": "", "step": 3, "host": False, "source": "file"}
        for matrix, precision, kernel, more, declared in (
            ("stencil2d:2000x2000", "f32", "csr_vector_8", {}, True),
            ("stencil2d:2001x2000", "f32", "csr_vector_8", {}, False),
            ("any", "f64", "csr_vector", {}, True),
            ("any", "f64", "csr_vector", {"source": "generated"}, False),
            ("any", "f64", "csr_vector_8", {}, False),
            ("any", "f64", "csr_vector", {"host": True}, False),
            ("m_14K", "f64", "csr_vector", {"program": "transient"}, True),
            ("F1", "f32", "pcsr", {"program": "multigpu"}, False),
        ):
            record = {**of, "matrix": matrix, "precision": precision, "kernel": kernel, **more}
            self.assertEqual(sets.is_declared(record), declared, record)

    def test_what_is_large_is_measured_by_one_process(self):
        for name, processes in (("m_3K", 3), ("uk-2002", 1)):
            self.assertEqual(measure.Job({}, name, "f64").processes(), processes)

    def test_sizes(self):
        for name, nnz in (
            ("stencil2d:9x9,dof=2", 9 * 9 * 5 * 4),
            ("stencil3d:2x3x4,points=27", 24 * 27),
            ("dense:3x4", 12),
            ("random:5x9,nnz_per_row=2", 10),
            ("powerlaw:9x9,nnz=7", 7),
            ("cant", 2034917),
        ):
            self.assertEqual(sets.nonzeros_of(name), nnz)
