"""plots/python.sh plots/run_tests.py test_evidence"""

import contextlib
import io
import json

import evidence
import measure
import records
import sets
from record_format import description_of, parsed, records_in, tidied
from records import NOT_COMPARED, OTHER_CODE, UNKNOWN_CODE, code_note, code_state
from sample_records import Scratch, record, write

TODAY = {90: {"f": "1", "g": "2"}}


class Evidence(Scratch):
    def setUp(self):
        super().setUp()
        self.file = self.root / "Some_GPU" / "bench.jsonl"
        for module, name, value in (
            (records, "todays_code", lambda: TODAY),
            (evidence, "RESULTS", self.root),
            (measure, "RESULTS", self.root),
        ):
            self.patch(module, name, value)
        ours = {"same": {"f": "1", "g": "2"}, "changed": {"f": "1", "g": "3"}, "gone": {"h": "1"}}
        made = [record(kernel, "m", 1, functions=of) for kernel, of in ours.items()]
        made.append(record("library", "m", 1, code="library"))
        made += [record(kernel, "m", 1, code=None) for kernel in ("old", "cusparse_x")]
        write(self.file, [*made, record("on_host", "m", 1, host=True)])

    def test_states(self):
        states = {r["kernel"]: code_state(r) for r in records_in(self.file)}
        stale = {"changed": OTHER_CODE, "gone": OTHER_CODE, "old": UNKNOWN_CODE}
        others = dict.fromkeys(("same", "library", "cusparse_x", "on_host"))
        self.assertEqual(states, {**others, **stale})

    def test_a_gpu_that_todays_code_is_not_of_is_not_stale(self):
        other = {"kernel": "same", "code": {"arch": 89, "functions": {"f": "4"}}}
        self.assertEqual(code_state(other), NOT_COMPARED)
        self.assertEqual(code_note([other]), [])
        self.assertIn("1 of a compute capability without", evidence.summary("Theirs", [other]))

    def test_a_device_is_asked_for_what_was_run_on_it(self):
        quick = {"command": "make bench SET=quick LIMIT=600"}
        self.assertEqual(evidence.shown_sets([quick, quick]), ["quick"])
        full = {"command": "make bench SET=full"}
        self.assertEqual(evidence.shown_sets([quick, full]), evidence.SHOWN)
        self.assertEqual(evidence.shown_sets([quick, {"command": "spmv"}]), evidence.SHOWN)

    def test_a_note_names_the_kernels(self):
        found = {r["kernel"]: r for r in records_in(self.file)}
        self.assertIn("today's build has: changed, gone;", code_note(found.values())[0])
        self.assertEqual(code_note([found["same"], found["old"]]), [])

    def test_tidying_keeps_the_descriptions_of_what_it_keeps(self):
        text = self.file.read_text()
        newer = {"functions": {"f": "1", "g": "2"}, "run": "2026-02-01T00:00:00.000Z"}
        write(self.file, [record("changed", "m", 1, **newer)])
        kept = tidied(parsed(text + self.file.read_text(), "a"))
        codes = [line["code"]["name"] for line in kept if description_of(line) == "code"]
        self.assertEqual(sorted(codes), ["1", "1-2"])

    def test_stale_ones_count_as_missing(self):
        done = {"same", "library", "cusparse_x", "on_host"}
        for stale, wanted in ((False, done | {"changed", "gone", "old"}), (True, done)):
            store = measure.Store("Some_GPU", self.root, True, stale=stale)
            self.assertEqual({thing[3] for thing in store.done_in("bench.jsonl")}, wanted)

    def test_what_too_few_processes_measured_is_stale(self):
        write(self.file, [record("same", "m", 1, functions={"f": "1"}, processes=2)])
        for stale, processes, left in ((True, 3, True), (True, 2, False), (False, 3, False)):
            store = measure.Store("Some_GPU", self.root, True, stale=stale)
            keys = {"records": "bench.jsonl", "processes": processes}
            job = measure.Job(keys, "m", "f64", ["same"])
            self.assertEqual(measure.still_to_do(job, store, 1) is not None, left)

    def test_the_commands(self):
        every = {"backend": "cuda", "matrices": ["m"], "precisions": ["f64"]}
        every["records"] = "bench.jsonl"
        on_files = {**every, "matrices": ["files:real.*"], "kernels": ["same"]}
        several = {**every, "kernels": ["same"], "gpus": [1, 2, 4], "exchange": ["none"]}
        named = {"a": every, "b": on_files, "c": {**several, "program": "multigpu"}}
        shown = {name: {"sets": list(named) if name == "full" else []} for name in evidence.SHOWN}
        declared = {"set": {**named, **shown}, "nonzeros": {}, "tables": {}, "lists": {}}
        of = {"step": 1, "format": "CSR"}
        on_host = {"same": False, "changed": True}
        kernels = json.dumps([{"name": name, **of, "host": host} for name, host in on_host.items()])
        more = [record("old", "real", 1, code=None), record("on_host", "m", 1, gpus=2)]
        write(self.file.parent / "more.jsonl", more)
        for cached in (sets.declarations, sets.groups_with):
            cached.cache_clear()
            self.addCleanup(cached.cache_clear)
        for module, name, value in (
            (sets, "declared", declared),
            (measure, "declared", declared),
            (measure, "output_of", kernels),
            (evidence, "directory_of", self.root / "Some_GPU"),
        ):
            self.patch(module, name, lambda *_, value=value: value)
        with contextlib.redirect_stdout(io.StringIO()) as out:
            self.assertEqual(evidence.main(["Some_GPU"]), 0)
            self.assertEqual(evidence.main(["Some_GPU", "--strict"]), 1)
        for line in (
            "Some_GPU: 9 records; 5 of today's machine code or none of ours, 2 of other code, 2 unknown\n",
            "other code: changed, 1",
            "make bench SET=a ARGS=--stale    # about 0 s: 1 matrices and precisions, 1 kernels: changed",
            "  SPMV_DATA=DIRECTORY_OF_THE_FILES make bench SET=b ARGS=--stale    # about",
            "make bench SET=c ARGS=--stale    # needs 2 GPUs; about",
            "in no set, and in no figure or table: 2 records of 2 kernels, most of on_host (1), old (1)",
        ):
            self.assertIn(line, out.getvalue())
