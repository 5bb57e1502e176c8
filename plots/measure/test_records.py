"""plots/run_tests.py test_records: the format of records, and what is read from them."""

import json
import subprocess
import sys
import unittest
import unittest.mock

import compare
import record_format
import show
from record_format import RecordError, description_of, join, lines_in, parsed, records_in
from records import RESULTS, ROOT, current_looks, current_outcomes, device_names, files_in
from records import is_current_matrix, read, rows_of, stand_ins, time_class
import sample_records
from sample_records import RUN_ID, lines_of, quartiles, record, write

REFUSED = {"run": RUN_ID, "matrix": "n", "precision": "f64", "kernel": "ell", "refused": "wide"}


class Scratch(sample_records.Scratch):
    def setUp(self):
        super().setUp()
        self.file = self.root / "a.jsonl"

    def refuse(self, text, why):
        self.file.write_text(text)
        with self.assertRaisesRegex(RecordError, f"a.jsonl.*{why}"):
            list(records_in(self.file))


class Joining(Scratch):
    def test_a_measurement_gets_what_belongs_to_it(self):
        on_host = {"host": True, "processor": "A CPU", "cold_ms": None, "baseline": None}
        k = record("k", "m", 0.5, choice="4 lanes", processor="A CPU")
        write(self.file, [k, record("host", "m", 3, **on_host)])
        k, host = records_in(self.file)
        wanted = {"device": "Some GPU", "commit": "abc", "rows": 1000, "step": 2}
        wanted["choice"] = "4 lanes"
        wanted |= {"warm_ms": 0.5, "cold_lower_ms": 0.5, "baseline_warm_ms": 0.25}
        wanted |= {"copy_gb_per_s": 4000, "time": "2026-01-01T00:00:00Z", "program": ""}
        self.assertEqual({name: k[name] for name in wanted}, wanted)
        self.assertEqual((host["device"], host["choice"]), ("A CPU", ""))
        self.assertFalse({"cuda", "cold_ms"} & set(host))

    def test_step_10(self):
        of = {"program": "multigpu", "gpus": 2, "one_gpu_step_ms": 3.0, "baseline": None}
        of["step_ms"] = {"loop": quartiles(4), "graph": quartiles(2)}
        write(self.file, [record("k", "m", 1, parts=[{"busy_ms": 1}, {"busy_ms": 3}], **of)])
        (row,) = records_in(self.file)
        self.assertEqual((row["best_step_ms"], row["busy_deviation_ms"]), (2, 1))

    def test_several_processes(self):
        def process(ms, setup, **more):
            line = record("k", "m", ms, setup_ms=setup, **more)
            other = record("l", "m", 1, baseline=None, step_ms={"loop": quartiles(2 * ms)})
            return list(parsed("\n".join(lines_of([line, other])), "a"))

        lines = record_format.combined([process(3, 0.5), process(2, 9.5), process(7, 0.75)])
        self.file.write_text("\n".join(map(json.dumps, lines)))
        k, other = records_in(self.file)
        times = [k[f"warm_{what}"] for what in ("lower_ms", "ms", "upper_ms", "samples")]
        self.assertEqual(times, [2, 3, 7, 75])
        self.assertEqual((k["setup_ms"], k["processes"], k["baseline_warm_ms"]), (0.75, 3, 1.5))
        self.assertEqual(other["step_ms"], {"loop": [4, 6, 14, 75]})
        self.assertEqual(sum(description_of(line) is not None for line in lines), 4)  # each once
        failed = {"run": RUN_ID, "matrix": "m", "precision": "f64", "kernel": "k"}
        failed["failed"] = "wrong"
        lines = record_format.combined([process(3, 1), [failed]])
        of_k = [line.get("failed") for line in lines if line.get("kernel") == "k"]
        self.assertEqual(of_k, ["wrong"])

    def test_refusals(self):
        lines = lines_of([record("k", "m", 1)])
        text = "\n".join(lines)
        for wrong, why in (
            ("{", "line 1: no JSON"),
            (text.replace('"verified": true', '"verified": 1', 1), "line 4: .*not verified"),
            ("\n".join(lines[1:]), "no description of 2026"),
            (text + "\n" + lines[1].replace("5000", "5001"), "m.* is described in two ways"),
            ('{"kernel":"k","matrix":{"name":"m"},"verified":true}', "line 1: .*of no run"),
        ):
            self.refuse(wrong, why)

    def test_other_lines_are_skipped(self):
        self.assertEqual(list(join([{"kernel": "k", "wrong": "row 3"}])), [])


class Committed(unittest.TestCase):
    def test_all_files_of_records_can_be_read(self):
        for file in (ROOT / "plots/results").glob("*/**/*.jsonl"):
            with self.subTest(file.name):
                self.assertTrue(list(records_in(file)))

    def test_the_solvers_are_side_by_side(self):
        for file in (ROOT / "plots/results").glob("*/solver/*.jsonl"):
            found, kernels = read([file]), ("persistent", "host")
            of = [{(r["matrix"], r["gpus"]) for r in found if r["kernel"] == k} for k in kernels]
            self.assertEqual(*of)
            for one in found:
                self.assertEqual(one["device"].replace(" ", "_"), file.parent.parent.name)
                self.assertGreater(one["us_per_iteration"]["median"], 0)

    def test_the_page_names_every_version_that_measured(self):
        page = (ROOT / "plots" / "README.md").read_text(encoding="utf-8")
        files = [file for device in device_names() for file in files_in(RESULTS / device)]
        lines = [line for file in files for line in lines_in(file)]
        runs = [line["run"] for line in lines if description_of(line) == "run"]
        self.assertTrue(runs)
        for run in (run for run in runs if run["backend"] == "cuda"):
            names = ("device", "driver", "cuda", "cusparse")
            self.assertIn(",".join(f"{name}:{run[name]}" for name in names), page)


class Frames(Scratch):
    def test_the_newest_run_counts_wherever_it_stands(self):
        write(self.root / "a.jsonl", [record("k", "m", 1, run="2026-03"), record("l", "m", 9)])
        write(self.root / "b.jsonl", [record("k", "m", 2, run="2026-02")])
        found = [(row["kernel"], row["warm_ms"]) for row in rows_of(files_in(self.root))]
        self.assertEqual(found, [("k", 1), ("l", 9)])

    def test_only_one_program_and_y_as_a_x(self):
        changes = ({}, {"program": "stationary", "steps": 7}, {"beta": 1.5})
        write(self.file, [record("k", "m", 1 + at, **of) for at, of in enumerate(changes)])
        self.assertEqual([row["warm_ms"] for row in rows_of([self.file])], [1])
        self.assertEqual([row["steps"] for row in rows_of([self.file], "stationary")], [7])

    def test_appending_repeats_no_description(self):
        lines = lines_of([record("k", "m", 1)])
        record_format.append(self.file, lines)
        record_format.append(self.file, lines)
        # Measurement and baseline.
        self.assertEqual(len(self.file.read_text().splitlines()), len(lines) + 2)


class Comparison(Scratch):
    def compared(self, **of_device):
        """What compare.py prints of `ours`, by lines; of each device (kernel, matrix):
        milliseconds."""
        for device, times in of_device.items():
            records = [record(*of, ms, device=device) for of, ms in times.items()]
            write(self.root / device / "a.jsonl", records)
        with unittest.mock.patch("builtins.print") as printed:
            compare.main(["ours", *(str(self.root / device) for device in of_device)])
        return printed.call_args[0][0].splitlines()

    def test_devices_are_side_by_side_over_what_all_have(self):
        rival = "cusparse_csr_alg1"
        times = {("ours", "m"): 2, ("ours", "n"): 2, (rival, "m"): 4, (rival, "n"): 4}
        lines = self.compared(A=times, B={("ours", "m"): 1, (rival, "m"): 4})
        self.assertEqual(lines[0].split(), ["A", "B"])
        heads = "precision state product of matrices mean worst mean worst"
        self.assertEqual(lines[1].split(), heads.split())
        self.assertEqual(lines[2].split(), "f64 warm above 20 us 1 2.00 2.00 4.00 4.00".split())

    def test_ratios_are_given_by_class_of_time(self):
        times = {"large": (0.02, 0.03), "larger": (0.4, 0.2)}
        times |= {"small": (0.0199, 0.0398), "tiny": (0.004, 0.016)}
        both = ("ours", "cusparse_csr_alg1")
        of = {(kernel, m): ms for m, pair in times.items() for kernel, ms in zip(both, pair)}
        warm = [line.split() for line in self.compared(A=of) if " warm " in line]
        found = [(" ".join(line[2:5]), *line[5:7], line[-1]) for line in warm[:2]]
        self.assertEqual(found[0], ("above 20 us", "2", "0.87", "large"))
        self.assertEqual(found[1], ("5 to 20", "us", "1", "small"))
        self.assertEqual(warm[2][:7], "f64 warm below 5 us 1 4.00".split())

    def test_a_class_without_records_says_so(self):
        lines = self.compared(A={(kernel, "m"): 1 for kernel in ("ours", "cusparse_csr_alg1")})
        missing = sum("not measured yet" in line for line in lines)
        self.assertEqual(missing, 2 * sum("above 20" in line for line in lines))


class TimeClasses(unittest.TestCase):
    def test_limits_belong_to_the_longer_class(self):
        found = [time_class(ms) for ms in (0, 0.00499, 0.005, 0.0199, 0.02, 5)]
        classes = ("below 5 us", "5 to 20 us", "above 20 us")
        self.assertEqual(found, [name for name in classes for _ in range(2)])


class StandIns(Scratch):
    """What was measured on a stand-in that is made in another way now does not count."""

    NOW = stand_ins()["cant"]
    BEFORE = NOW.replace("nnz=", "nnz=1")

    def test_records(self):
        for detail, there in ((self.NOW, True), (self.BEFORE, False)):
            write(self.file, [record("k", "cant", 1, source="stand-in", detail=detail)])
            record_format.append(self.file, [json.dumps({**REFUSED, "matrix": "cant"})])
            self.assertEqual([r["kernel"] for r in rows_of([self.file])], ["k"] * there)
            refused = [line["kernel"] for line in current_outcomes(self.file)]
            self.assertEqual(refused, ["ell"] * there)

    def test_tidying(self):
        before = record("k", "cant", 1, source="stand-in", detail=self.BEFORE)
        write(self.file, [before, record("k", "m", 2)])
        record_format.tidy(self.file, is_current_matrix)
        self.assertEqual([r["matrix"] for r in records_in(self.file)], ["m"])
        self.assertNotIn("cant", self.file.read_text())

    def test_looks(self):
        looks = [
            {"matrix": {"name": name, "source": source, "detail": detail}}
            for name, source, detail in (
                ("cant", "stand-in", self.BEFORE),
                ("file", "file", "there.mtx"),
                ("F1", "stand-in", stand_ins()["F1"]),
            )
        ]
        self.file.write_text("".join(json.dumps(look) + "\n" for look in looks))
        self.assertEqual(list(current_looks(self.file)), ["file", "F1"])
        self.assertEqual(current_looks(self.root / "none.jsonl"), {})

    def test_sensitivity_to_the_protocol(self):
        for count, slower in ((10, 1), (100, 1.5)):
            times = {"a": [0.9, 1.0, 1.3, 75], "b": [1.1, 1.2 * slower, 1.2 * slower, 75]}
            records = [record(kernel, "m", 1, warm_ms=of) for kernel, of in times.items()]
            write(self.root / "Some_GPU" / "sensitivity" / f"warm_up_{count}.jsonl", records)
        rows = show.sensitivity("Some_GPU", self.root).rows
        changes = ["2", "25.0%", "50.0%", "50.0%", "0 of 1"]
        self.assertEqual(rows[0], ["100 launches before the timed ones", *changes])
        # b is ahead of the slowest process of a.
        self.assertEqual(rows[2][2:], ["15.0%", "30.0%", "30.0%", "1 of 1"])

    def test_what_recipes_reached(self):
        sectors = {"csr_vector": 4.0, "pcsr_one_pass": 4.0}
        counts = [
            {"file": "coupled", "real": sectors, "made": {**sectors, "csr_vector": 3.0}}
            for _ in range(2)
        ]
        self.assertEqual(show.reached(counts)["circuit"], (1, [-25, 0, -25, 0]))
        of_fitted = [{**each, "file": "memplus"} for each in counts]
        self.assertEqual(show.reached(of_fitted)["circuit"], (0, []))


class Tidying(Scratch):
    def test_a_newer_measurement_takes_the_place_of_the_older_one(self):
        older, newer = RUN_ID, "2026-02-01T00:00:00.000Z"
        things = (("k", "m", 1), ("l", "m", 2), ("k", "n", 3))
        write(self.file, [record(*of, run=older) for of in things])
        record_format.append(self.file, [json.dumps(REFUSED)])
        before = rows_of([self.file])
        record_format.tidy(self.file)
        self.assertEqual(rows_of([self.file]), before)
        text = self.file.read_text()
        again = lines_of([record("k", "m", 9, run=newer), record("ell", "n", 4, run=newer)])
        record_format.append(self.file, again)
        record_format.tidy(self.file)
        rows = rows_of([self.file])
        found = [(r["kernel"], r["matrix"], r["warm_ms"]) for r in rows]
        self.assertEqual(found, [("k", "m", 9), ("l", "m", 2), ("k", "n", 3), ("ell", "n", 4)])
        # Both runs still have measurements of m, and so both baselines.
        self.assertEqual([r["baseline_warm_ms"] for r in rows], [4.5, 1, 1.5, 2])
        self.assertEqual(current_outcomes(self.file), [])  # no longer refused
        refusal = {**REFUSED, "run": newer, "kernel": "dia"}  # before the first measurement of n
        tidied = record_format.tidied([refusal, *map(json.loads, again)])
        kernels = [line["kernel"] for line in tidied if "warm_ms" in line]
        self.assertEqual(kernels, ["k", "baseline", "ell", "baseline"])
        # With all of it measured again, nothing of the older run is left.
        record_format.append(self.file, lines_of([record(*of, run=newer) for of in things[1:]]))
        record_format.tidy(self.file)
        self.assertNotIn(older, self.file.read_text())
        self.assertIn(older, text)


class Written(Scratch):
    """On a full disk, or where one may not write: a message, status 1, and what was there
    before."""

    FULL = (
        "import resource, signal, sys; sys.path.insert(0, {!r}); import record_format; signal.signal(signal.SIGXFSZ, signal.SIG_IGN); "
        "resource.setrlimit(resource.RLIMIT_FSIZE, (50000, 50000)); record_format.append(sys.argv[1], ['{{\"kernel\": \"' + 'k' * 60000 + '\"}}'])"
    )

    def test_nothing_is_half_written(self):
        for before in (None, '{"kernel": "first"}\n'):
            if before:
                self.file.write_text(before)
            code = self.FULL.format(str(ROOT / "plots" / "measure"))
            command = [sys.executable, "-c", code, str(self.file)]
            done = subprocess.run(command, capture_output=True, text=True)
            said = f"error: {self.file}: File too large\n"
            self.assertEqual((done.returncode, done.stderr), (1, said))
            there = [(f.name, f.read_text()) for f in self.root.iterdir()]
            self.assertEqual(there, [(self.file.name, before)] * bool(before))

    def test_a_directory_in_the_way(self):
        self.file.mkdir()
        with self.assertRaisesRegex(SystemExit, "error: .*a.jsonl: Is a directory"):
            record_format.write_whole(self.file, "text")
