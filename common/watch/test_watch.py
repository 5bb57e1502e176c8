"""Tests of traces and of what is made from them. WATCH_SPMV: the program with all steps;
WATCH_BROKEN: that with kernels which are wrong."""

import json
import os
import re
import subprocess
import sys
import tempfile
import unittest
from collections import defaultdict
from pathlib import Path

import moments
import traces

ROOT = Path(__file__).resolve().parents[2]
sys.path.append(str(ROOT / "plots" / "measure"))
import record_format  # noqa: E402

BROKEN = Path(os.environ.get("WATCH_BROKEN", ROOT / "build/cpu/broken/spmv"))
SPMV = Path(os.environ.get("WATCH_SPMV", ROOT / "build/cpu/spmv"))
FULL = os.environ.get("WATCH") == "full"
SCHEDULES = ("forward", "reverse", "random", "lockstep") if FULL else ("random",)
GPUS = (2, 3, 8) if FULL else (3,)
WAYS = ["minimal", "parts", "packed", "persistent"]
COUNTED = """requests lanes bytes_used sectors ideal_sectors bank_passes lines
    ideal_bank_passes""".split()


def run(*arguments):
    return subprocess.run([SPMV, *map(str, arguments)], capture_output=True, text=True)


def columns(text, kernel):
    """What the table of a run says of a kernel."""
    lines = [re.split(r"  +", line.strip()) for line in text.splitlines()]
    head = next(line for line in lines if any(name.startswith("moved") for name in line))
    row = next(line for line in lines if len(line) > 3 and line[1].split(" ")[0] == kernel)
    return dict(zip(head[2:], row[2:]))


class Scratch(unittest.TestCase):
    def setUp(self):
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        self.scratch = Path(directory.name)

    def record(self, *arguments):
        file = self.scratch / "trace.jsonl"
        done = run(*arguments, "--trace", file)
        self.printed = done.stdout
        self.assertEqual((done.returncode, done.stderr), (0, ""), done.stdout)
        return traces.read(file)


class Traces(Scratch):
    def test_all_kernels(self):
        """Under three schedules with make test-traces, else under one."""
        for schedule in SCHEDULES:
            common = f"""-m stencil2d:9x7 -m powerlaw:60x60,nnz=400 --schedule {schedule}
                --padding-limit 50""".split()
            records = self.scratch / f"{schedule}.jsonl"
            self.assertEqual(run(*common, "--json", records).returncode, 0)
            counted = {}
            for record in record_format.join(record_format.parsed(records.read_text(), records)):
                counted[record["kernel"], record["matrix"]] = record.get("traffic")
            recorded = self.record(*common)
            names = {t["kernel"]["name"] for t in recorded}
            self.assertEqual({n.split("_")[0] for n in names} & {"cusparse"}, set())
            self.assertEqual({t["kernel"]["step"] for t in recorded}, set(range(2, 10)))
            for t in recorded:
                key = t["kernel"]["name"], t["matrix"]["name"]
                with self.subTest(schedule=schedule, kernel=key):
                    self.assertTrue(t["verified"])
                    sums = traces.traffic(t)
                    self.assertEqual(len(sums), len(counted[key]))
                    for row in counted[key]:
                        got = sums[row["array"].split(":")[-1], row["space"], row["access"]]
                        for name in COUNTED:
                            case = row["array"], row["access"], name
                            self.assertEqual(got[name], row[name], case)

    def test_all_ways_of_several_gpus(self):
        for schedule in SCHEDULES:
            for gpus in GPUS:
                with self.subTest(schedule=schedule, gpus=gpus):
                    words = f"steps --gpus {gpus} --way {','.join(WAYS)} --schedule {schedule}"
                    found = self.record(*words.split(), "-m", "powerlaw:90x90,nnz=500")
                    self.assertEqual([t["kernel"]["name"] for t in found], WAYS)
                    for t, line in zip(found, re.findall(".* verified; .*", self.printed)):
                        self.assertEqual(len(t["parts"]), gpus)
                        self.assertEqual(
                            sorted(row for part in t["parts"] for row in part["rows"]),
                            list(range(90)),
                        )
                        self.check_links(t, line)

    def check_links(self, t, line):
        """What goes over the link: as the program counts it, and the value that is stored is that of the owner's entry."""
        counted, stored = 0, defaultdict(set)
        for of in traces.requests(t):
            array, device = of.array, t["launches"][of.launch]["device"]
            if array["space"] == "global" and array["device"] != device:
                counted += of.counts["sectors"]
            columns = t["parts"][array["device"]]["columns"] if of.name == "x" else []
            if of.access == "store" and columns and array["bytes"] == 8 * len(columns):
                for element, value in zip(of.elements, of.values):
                    stored[columns[element]].add(value)
        self.assertEqual(counted, int(line.split()[-5]))
        if t["kernel"]["name"] in ("minimal", "persistent"):
            self.assertTrue(
                all(len(values) <= 3 for values in stored.values())
            )  # of step 0 to 2, whoever stores them

    def test_caches_serve_as_in_the_model_of_a_run(self):
        records = self.scratch / "profile.jsonl"
        words = "-m powerlaw:150x130,nnz=900 --gpu h200 -k"
        kernels = "csr_scalar,atomic_coo,segscan_block,pcsr,lightspmv_warp,hyb"
        recorded = self.record(*words.split(), kernels)
        run(*words.split(), kernels, "--profile", "--json", records)
        profiles = [json.loads(line) for line in records.read_text().splitlines()]
        profiles = [record["lines"] for record in profiles if "lines" in record]
        self.assertEqual((len(recorded), len(profiles)), (6, 6))
        for t, lines in zip(recorded, profiles):
            lines = [line for line in lines if line["space"] == "global"]
            wanted = [sum(line[f"model_{of}_sectors"] for line in lines) for of in ("l2", "dram")]
            served = [sum(request[of] for request in t["requests"]) for of in (5, 6)]
            self.assertEqual(served, wanted, t["kernel"]["name"])

    def test_a_polling_lane_loads_what_it_finds(self):
        [t] = self.steps("minimal")
        loaded = {0: [], 1: []}
        for of in traces.requests(t, access="load", name="flags"):
            loaded[t["launches"][of.launch]["device"]].append(of.values[0])
        for values in loaded.values():
            self.assertEqual((values, values[-1]), (sorted(values), 2))

    def test_streams_wait_for_events_that_were_recorded(self):
        [t] = self.steps("packed")
        recorded, waits, copies = set(), 0, 0
        for event in t["events"]:
            if event[0] == "record":
                recorded.add(event[1])
            if event[0] == "stream wait":
                self.assertIn(event[2], recorded)
                waits += 1
            if event[0] == "copy":
                self.assertEqual(
                    t["streams"][event[6]], t["arrays"][event[1]]["device"]
                )  # its receiver's
                copies += 1
        self.assertEqual(copies, 4)
        self.assertGreater(waits, copies)
        self.assertEqual({launch["stream"] for launch in t["launches"]}, set(range(4)))

    def steps(self, way):
        return self.record("steps", "--way", way, "-m", "stencil2d:8x8")

    def test_what_steps_cannot_record(self):
        for arguments, message in (
            (
                ("--way", "post", "--trace", self.scratch / "t"),
                "--way: post not in {minimal,packed,parts,persistent}",
            ),
            ((), "steps: where to\\? give --trace FILE"),
            (
                ("-m", "powerlaw:5x6", "--trace", self.scratch / "t"),
                "powerlaw:5x6 has 5 rows and 6 columns; only of a square matrix",
            ),
        ):
            done = run("steps", *arguments)
            self.assertEqual(done.returncode, 2)
            self.assertRegex(done.stderr, f"^error: .*{message}")

    def test_a_small_stencil_is_a_small_file(self):
        [t] = self.record("-m", "stencil2d:16x16", "-k", "csr_vector")
        self.assertLess((self.scratch / "trace.jsonl").stat().st_size, 200_000)
        self.assertFalse(t["truncated"])

    def test_values_are_those_of_the_product(self):
        """y is added up again from what lanes loaded, shuffled and stored."""
        [t] = self.record("-m", "stencil2d:5x4", "-k", "csr_vector_4")
        values, loaded, stored = t["values"], defaultdict(dict), defaultdict(dict)
        for of in traces.requests(t):
            known = loaded if of.access == "load" else stored
            known[of.name].update(zip(of.addresses, of.values))
        offsets, columns = t["matrix"]["row_offsets"], t["matrix"]["column_indices"]
        self.assertEqual(list(stored), ["y"])
        self.assertEqual(len(stored["y"]), t["matrix"]["rows"])
        for row, got in ((address // 8, got) for address, got in stored["y"].items()):
            expected = sum(
                loaded["values"][8 * k] * loaded["x"][8 * columns[k]]
                for k in range(offsets[row], offsets[row + 1])
            )
            self.assertAlmostEqual(got, expected, places=12)
        for shuffle, store in zip(t["events"], t["events"][1:]):  # the last sum of two is stored
            if shuffle[0] == "warp operation" and store[0] == "store":
                of = dict(zip(traces.lanes_of(shuffle[2]), zip(shuffle[3], values[shuffle[4]])))
                for lane, stored in zip(traces.lanes_of(store[2]), store[4]):
                    operand, source = of[lane]
                    self.assertEqual(values[stored], values[operand] + values[of[source][0]])

    def test_atomics_tell_before_and_after(self):
        [t] = self.record("-m", "stencil2d:4x3", "-k", "atomic_coo")
        last = {}
        for event in (event for event in t["events"] if event[0] == "atomic"):
            for address, before, after in zip(traces.addresses_of(event[3]), event[4], event[5]):
                self.assertEqual(t["values"][last.get(address, before)], t["values"][before])
                last[address] = after
        self.assertEqual(len(last), t["matrix"]["rows"])

    def test_what_does_not_fit_is_cut_and_said(self):
        file = self.scratch / "trace.jsonl"
        words = "--trace-limit 0.01 -m stencil2d:16x16 -k csr_vector,csr_scalar"
        done = run("--trace", file, *words.split())
        self.assertEqual(done.returncode, 0)
        self.assertEqual(len(done.stderr.splitlines()), 2)
        self.assertRegex(
            done.stderr,
            r"trace of csr_vector on stencil2d:16x16 is cut: .* 0\.01 MB; take a smaller",
        )
        for t in traces.read(file):
            self.assertTrue(t["truncated"])

    def test_what_has_nothing_to_show_says_why(self):
        for matrix, kernel, message in (
            ("stencil2d:0x0", "csr_scalar", "csr_scalar on stencil2d:0x0 launches nothing"),
            ("powerlaw:60x60,nnz=400", "cds", "cds does not suit this matrix: .* values for 400"),
        ):
            done = subprocess.run(
                [sys.executable, ROOT / "common/watch/watch.py", SPMV, self.scratch / "page.html"]
                + ["--matrix", matrix, "--kernels", kernel],
                capture_output=True,
                text=True,
            )
            self.assertEqual(done.returncode, 1)
            self.assertRegex(done.stderr, rf"^error: {message}.*\n$")

    def test_bad_files_are_named(self):
        done = run("--trace", self.scratch / "no/such", "-m", "diagonal:3")
        self.assertEqual(done.returncode, 2)
        self.assertRegex(done.stderr, "^error: .*cannot be written; give another --trace\n$")
        file = self.scratch / "bad"
        for text, message in (
            ("", "holds no trace"),
            ("{", "bad:1: not JSON"),
            ('{"trace": 9}', "version 9"),
            ("[]", "version None"),
        ):
            file.write_text(text)
            with self.assertRaisesRegex(traces.TraceError, message):
                traces.read(file)
        with self.assertRaisesRegex(traces.TraceError, "No such file"):
            traces.read(self.scratch / "none")

    def test_the_moment_at_which_it_goes_wrong_is_named(self):
        for kernel, message in (
            ("last_row_missing", r"on stencil2d:4x3, no lane writes y\[11\], which should be -?\d"),
            (
                "last_nonzero_missing",
                r"on stencil2d:4x3, line \d+, lane 0 of warp 0, block 0: the last to write y\[0\], which is ",
            ),
            (
                "past_the_end",
                r"line \d+, lane 11 of warp 0, block 0: reads 8 bytes .* 368 bytes into 'values'",
            ),
            (
                "never_meets",
                r"on stencil2d:4x3, block \(0,0,0\): deadlock: thread \(0,0,0\) waits at __syncwarp",
            ),
        ):
            sentence, command = moments.first_wrong(BROKEN, [kernel], "make watch")
            self.assertRegex(sentence, message)
            self.assertEqual(command, f"make watch KERNELS={kernel} MATRIX=stencil2d:4x3")
        self.assertIsNone(moments.first_wrong(BROKEN, ["right"], "make watch"))
        sentence, command = moments.worst(BROKEN, ["right"], "make watch")
        self.assertRegex(
            sentence, "worst request: line .*32 lanes load values, 32 sectors where 8 would do"
        )
        self.assertTrue(command.endswith("FIND=worst"))
