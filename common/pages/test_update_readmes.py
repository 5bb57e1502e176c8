"""plots/python.sh plots/run_tests.py test_update_readmes"""

import tempfile
import unittest.mock
from pathlib import Path

import records
import sentences
import update_readmes as u
from page_tables import head_of
from records import read_records
from sample_records import Scratch, quartiles, record, write


# Of these records no set has one.
every = unittest.mock.patch.object(records, "is_declared", lambda record: True)


@every
class Tables(unittest.TestCase):
    def table(self, records, arguments):
        with (
            tempfile.TemporaryDirectory() as directory
        ):  # a new one each time: records are read once
            write(Path(directory) / "GPU" / "a.jsonl", records)
            return u.RecordTable("device=GPU precision=f64 " + arguments, Path(directory)).page()

    def test_values_bold_best_and_baseline(self):
        times = {"a": 0.01, "cusparse_x": 0.04, "cusparse_csr_y": 0.005}
        found = [record(kernel, "m", ms) for kernel, ms in times.items()]
        found.insert(1, record("b", "m", 0.02, choice="4 lanes per row"))
        asked = "kernels=a,b,best:cusparse_*,baseline matrices=m column=gflops"
        text = self.table(found, asked)
        for line in (
            "| matrix | nonzeros per row | a | b | best cuSPARSE | row-free baseline |",
            "| m | 5.0 | **1.00** | 0.50 (4 lanes) | 2.00 (csr_y) | 4.00 |",
            "GFLOP/s, warm; f64; [Some GPU](/plots/README.md#devices-and-versions).",
        ):
            self.assertIn(line, text)

    def test_a_row_per_step_and_cusparse_below(self):
        def timed(kernel, ms, step, **more):
            return record(kernel, "g:9,x=1", ms, step=step, **more)

        # 10,000 operations; 5,000 nonzeros in 1,000 rows and columns.
        records = [
            timed("csr_scalar", 0.02, 2),
            timed("csr_vector", 0.01, 3),
            timed("csr_vector_2", 0.04, 3),
            timed("pcsr_one_pass", 0.004, 6, functions={"a_kernel": "other"}),
            timed("cusparse_csr_alg1", 0.02, 0),
            timed("cusparse_coo_alg1", 0.016, 0, format="COO"),
            timed("cusparse_sell_8", 0.008, 0, format="SELL"),
            record("csr_sequential", "g:9,x=1", 1, step=1, host=True, cold_ms=None, baseline=None),
        ]
        with tempfile.TemporaryDirectory() as directory:
            write(Path(directory) / "GPU" / "a.jsonl", records)
            text = u.steps_page("device=GPU precision=f64 matrices=my_grid:g:9", Path(directory))
        # 80,004 bytes in CSR in 0.01 ms are 8 GB/s; a copy runs at 4,000.
        rows = [line for line in text.splitlines() if line.startswith("|")]
        self.assertEqual(rows[0], "| step | my grid |")
        heads = [f"[{step:02}]" for step in range(1, 10)] + ["cuSP"] * 3
        self.assertEqual([row.split("|")[1].strip()[:4] for row in rows[2:]], heads)
        self.assertTrue(rows[2].endswith("| 0.01 (2%) |"), rows[2])  # no share of a GPU's copy
        self.assertIn("several lanes per row | 1.00 (160%, 0.2%) |", rows[4])
        self.assertRegex(rows[7], r"\| 2\.50 \(400%, 0.5%\) † \|$")
        self.assertTrue(rows[9].endswith("| — |"))
        self.assertIn("CSR, ALG1 | 0.50 (80%,", rows[11])
        self.assertIn("CSR or COO | 0.62 (100%,", rows[12])
        self.assertIn("all formats | 1.25 (200%,", rows[13])
        self.assertIn("other machine code than today's build has: pcsr_one_pass", text)
        with self.assertRaises(u.BlockError):
            u.steps_page("device=GPU precision=f64 kernels=a")

    def test_best_of_a_format_is_called_so(self):
        heads = {"cusparse*": "best cuSPARSE", "cusparse_c*": "best cuSPARSE"}
        heads |= {"cusparse_csr_*": "best cuSPARSE CSR", "csr_*": "best of csr_*"}
        for pattern, head in heads.items():
            self.assertEqual(head_of(f"best:{pattern}"), head)

    def test_columns(self):
        times = {"b": 0.02, "a": 0.01}
        records = [record(k, "m", ms, source="stand-in") for k, ms in times.items()]
        for kernels, column, said in (
            ("a,b,c", "warm_us", "| m (stand-in) | 5.0 | **10.0** | 20.0 | — |"),
            ("a,baseline", "gb_per_s", "A copy runs at 4000 GB/s."),
            ("a,baseline", "gb_per_s", "| 8.00 | 16.0 |"),
            ("a,baseline", "of_copy", "| 0.20 | 0.40 |"),  # percent
        ):
            text = self.table(records, f"kernels={kernels} matrices=m column={column}")
            self.assertIn(said, text)

    def test_when_setup_pays_off(self):
        asked = "kernels=fast,cheap,slower matrices=m column=warm_us pays_off_against=slow"
        times = {"slow": (0.02, 0.5), "fast": (0.01, 0.625), "cheap": (0.01, 0)}
        times["slower"] = (0.03, 0)
        records = [
            dict(record(kernel, "m", ms), setup_ms=setup, preprocess_ms=0, alone=True)
            for kernel, (ms, setup) in times.items()
        ]
        text = self.table(records, asked)
        self.assertIn("Products after which setup pays off against slow; f64", text)
        self.assertIn("| m | 5.0 | 13 | 1 | — |", text)
        del records[1]["alone"]
        self.assertIn("withdrawn, since setup was measured while", self.table(records, asked))
        for kernels, beside in (("slow,fast", True), ("slow,cheap", False)):
            text = self.table(records, f"kernels={kernels} matrices=m column=setup_ms")
            self.assertEqual("which can lengthen it" in text, beside)

    def test_speedups_with_their_mean_and_the_paper_s(self):
        times = {"m": (0.01, 0.02), "n": (0.01, 0.08), "long": (0.4, 0.2)}
        both = ("a", "csr_scalar")
        records = [
            record(*of, ms) for m in times for of, ms in zip([(k, m) for k in both], times[m])
        ]
        asked = "kernels=csr_scalar,csr_adaptive matrices=m,n,long column=gflops speedup_of=a"
        text = self.table(records, f"{asked} published=he_gao_2016_speedups")
        for line in (
            "How many times as fast as the others a is: GFLOP/s, warm; f64",
            "| m | 5.0 | 2.00 | — |",
            "| n | 5.0 | 8.00 | — |",
            "| geometric mean, above 20 us | | 0.50 | — |",
            "| geometric mean, 5 to 20 us | | 4.00 | — |",
            "| the paper | | 3.33 | 1.03 |",
        ):
            self.assertIn(line, text)
        self.assertNotIn("below 5 us", text)
        self.assertNotIn("Bold", text)

    def test_names_up_to_the_comma_are_shown_in_full(self):
        records, asked = [record("a", "g:9,x=1", 0.01)], "kernels=a matrices=g:9 column=gflops"
        self.assertIn("| g:9,x=1 |", self.table(records, asked))
        with self.assertRaisesRegex(u.BlockError, "2 matrices called g:9"):
            self.table([*records, record("a", "g:9,x=2", 1)], asked)

    def test_a_difference_within_the_spread_is_a_tie(self):
        times = {"a": [1, 2, 3, 75], "b": [2.5, 2.6, 2.7, 75], "c": [4, 4, 4, 75]}
        found = [record(kernel, "m", 1, warm_ms=ms, processes=3) for kernel, ms in times.items()]
        text = self.table(found, "kernels=a,b,c matrices=m column=warm_us")
        self.assertIn("| **2000** | **2600** | 4000 |", text)
        said = "Bold: the best of the kernels here, and what ties with it: their spreads overlap."
        self.assertIn(said, text)

    def test_one_process_has_the_spread_of_the_several_beside_it(self):
        several = {"warm_lower_ms": 0.8, "warm_ms": 1, "warm_upper_ms": 1.2, "processes": 3}
        one = {"warm_lower_ms": 1.29, "warm_ms": 1.3, "warm_upper_ms": 1.31}
        self.assertTrue(records.is_tie(several, one))
        self.assertFalse(records.is_tie(several, {**one, "processes": 3}))

    def test_what_has_other_machine_code_is_marked_and_what_is_unknown_left_out(self):
        codes = {"same": "1", "changed": "3"}
        shown = [record(name, "m", 1, functions={"f": code}) for name, code in codes.items()]
        shown.append(record("old", "m", 1, code=None))
        with unittest.mock.patch.object(records, "todays_code", lambda: {90: {"f": "1"}}):
            text = self.table(shown, "kernels=same,changed,old matrices=m column=warm_us")
        self.assertIn("| **1000** | **1000** (†) | — |", text)
        self.assertIn("† Measured with other machine code than today's build has: changed;", text)

    def test_refusals(self):
        good = "kernels=a matrices=m column=gflops"
        for bad in ({"verified": False}, {"verified": "true"}):
            with self.assertRaisesRegex(u.RecordError, "line 7: .*not verified"):
                self.table([record("a", "m", 1), record("b", "m", 1, **bad)], good)
        for arguments, why in (
            ("kernels=a matrices=n column=gflops", "0 matrices called n"),
            ("kernels=a matrices=m column=speed", "no column speed"),
            ("matrices=m column=gflops", "needs kernels="),
            (good + " kernal=a", "unknown: kernal"),
        ):
            with self.assertRaisesRegex(u.BlockError, why):
                self.table([record("a", "m", 1)], arguments)


REPORT = """\
backend: cpu | {cpu}

step  kernel    needed MB  lanes  GFLOP/s
-----------------------------------------
01    seq            7.19          {one:>7}
02    csr_scalar     7.19   {lanes}

01    seq         {one} GFLOP/s
Verified against sums in long double: {verified}.
All tests passed ({assertions} assertions in 2 test cases)
"""


class Masks(unittest.TestCase):
    def test_what_may_differ_between_two_runs(self):
        first = dict(cpu="x", one="3.94", lanes="32.0", verified="all 9 results", assertions=10)

        def masked(**changes):
            return u.masked(REPORT.format(**{**first, **changes}))

        other = masked(cpu="y z", one="0.0751", verified="all 10 results", assertions=11)
        self.assertEqual(masked(), other)
        self.assertNotEqual(masked(), masked(lanes="31.9"))
        self.assertNotEqual(masked(), masked(verified="8 of 9 results; WRONG: 1"))
        self.assertNotEqual(u.masked("46 passed, 0 failed"), u.masked("46 passed, 1 failed"))


def step(gpus, exchange, milliseconds, code="library"):
    of = {"program": "multigpu", "gpus": gpus, "exchange": exchange, "code": code, "parts": []}
    return record("a", "m", 1, step_ms={"graph": quartiles(milliseconds)}, baseline=None, **of)


@every
class Sentences(Scratch):
    TIMES = {("a", "m"): 0.01, ("b", "m"): 0.02, ("best_a", "m"): 0.0125}
    TIMES |= {("a", "n,x=1"): 0.01, ("b", "n,x=1"): 0.08}
    RECORDS = [record(*thing, ms) for thing, ms in TIMES.items()]
    RECORDS += [step(1, "none", 0.5), step(2, "none", 0.25), step(2, "parts", 0.375)]
    RECORDS.append(step(4, "none", 0.125, code=None))

    def setUp(self):
        super().setUp()
        write(self.root / "GPU" / "a.jsonl", self.RECORDS)
        records = lambda _, __, program: read_records("GPU", self.root, program)  # noqa: E731
        self.patch(sentences, "records_of", records)

    def test_values_ratios_and_what_is_taken_of_several(self):
        for query, answer in (
            ("m a", "10.0"),
            ("m a gflops digits=1", "1"),
            ("m a/b", "2.00"),
            ("m a/b gflops digits=2", "2.0"),
            ("m,n a/b take=mean", "4.00"),
            ("m,n;x=1 a/b take=range digits=2", "2.0 to 8.0"),
            ("m b|best_a/a as=less", "20"),
            ("m a|b take=most per=4", "5.00"),
            ("step gpus=2 exchange=none matrices=m", "250"),
            ("step gpus=2 exchange=parts/none", "1.50"),
        ):
            self.assertEqual(sentences.answer(query), answer, query)

    def test_matrices_of_the_nearest_table(self):
        table = "device=GPU matrices=m,n kernels=a precision=f64 column=gflops"
        self.assertEqual(sentences.answer("below a/b take=least", [], [table]), "2.00")
        with self.assertRaisesRegex(u.BlockError, "no table above"):
            sentences.answer("above a/b", [], [table])

    def test_published(self):
        query = "published table=he_gao_2016_speedups value=speedup rival=CSR-scalar precision=f32"
        self.assertEqual(sentences.answer(query), "4.24")

    def test_refusals(self):
        for query, why in (
            ("a", "needs MATRICES KERNEL"),
            ("m a colour=red", "no column|unknown: colour"),
            ("m c", "no record of c"),
            ("m,n a take=sum", "take=sum"),
            ("m a/b as=half", "as=half"),
            ("m a gflops m", "no KEY=VALUE: m"),
            ("m a speed", "no column speed"),
            ("m,n a", "2 values; say take="),
            ("step gpus=2", "2 records of NVIDIA_H200 .*, of 1 matrices"),
            ("step gpus=4", "0 records"),
        ):  # records of unknown machine code are not shown
            with self.assertRaisesRegex(u.BlockError, why):
                sentences.answer(query)

    def test_filled_in_place(self):
        before = "It takes 3 times as long,\nor 9 µs. <!-- 3 = m a/b\ndigits=2 | 9 = m a -->\n"
        text, changed, failed = u.update(before)
        after = (
            "It takes 2.0 times as long,\nor 10.0 µs. <!-- 2.0 = m a/b digits=2 | 10.0 = m a -->\n"
        )
        self.assertEqual(text, after)
        self.assertEqual(changed, ["3 becomes 2.0 = m a/b digits=2", "9 becomes 10.0 = m a"])
        self.assertEqual(failed, [])
        self.assertEqual(u.update(text)[1], [])

    def test_a_number_is_looked_for_in_its_own_paragraph_or_item(self):
        for text in (
            "10.0\n\nIt is 10. <!-- 10.0 = m a -->\n",
            "- 10.0\n- It is 110.0. <!-- 10.0 = m a -->\n",
            "10.0. <!-- 10.0 = m a -->\nIt is 3. <!-- 10.0 = m a -->\n",
            "20.0 and 10.0 <!-- 10.0 = m a | 20.0 = m b -->\n",  # the other order
        ):
            same, changed, failed = u.update(text)
            self.assertEqual((same, changed, len(failed)), (text, [], 1), text)
            self.assertIn("does not stand in the paragraph", failed[0][1])
        self.assertEqual(len(u.update("It is 3. <!-- 3 = nothing -->")[2]), 1)

    def test_what_is_no_binding_stays(self):
        code = "<!-- code: a.cuh /T sum = 0/ /^}/ -->"
        for text in ("`<!-- 3 = m a -->`", code, "<!-- a = b -->"):
            self.assertEqual(sentences.fill_numbers(text, [], []), text)


class Blocks(unittest.TestCase):
    TEXT = "a\n<!-- output: echo one -->\nold\n<!-- end -->\nb\n"

    def test_filled_and_then_up_to_date(self):
        text, changed, failed = u.update(self.TEXT)
        marker, block = "<!-- output: echo one -->", "```text\n$ echo one\none\n```"
        self.assertEqual(text, f"a\n{marker}\n{block}\n<!-- end -->\nb\n")
        self.assertEqual((changed, failed), ([marker], []))
        self.assertEqual(u.update(text), (text, [], []))

    def test_exit_status(self):
        _, changed, failed = u.update(self.TEXT.replace("echo one", "false"))
        self.assertEqual(changed, [])
        self.assertRegex(failed[0][1], "exit status 1, not 0")
        text, _, failed = u.update(self.TEXT.replace("output: echo one", "output exit=1: false"))
        self.assertEqual(failed, [])
        self.assertNotIn("old", text)

    def test_cut(self):
        text = self.TEXT.replace("output: echo one", "output cut=2..4: seq 5")
        self.assertIn("seq 5\n1\n[...]\n\n4\n5\n", u.update(text)[0])
        _, _, failed = u.update(text.replace("2..4", "2..9"))
        self.assertRegex(failed[0][1], "nothing to cut")

    def test_a_block_without_end(self):
        text = self.TEXT.replace("<!-- end -->\n", "") + self.TEXT
        _, _, failed = u.update(text)
        self.assertRegex(failed[0][1], "before the next block")

    def test_code(self):
        block = "<!-- code: common/pages/test_update_readmes.py /^class Masks/ /def / -->\n<!-- end -->\n"
        text, _, failed = u.update(block)
        self.assertEqual(failed, [])
        self.assertIn("class Masks(unittest.TestCase):\n    def test_what", text)
        _, _, failed = u.update(block.replace("class Masks", "class No" + "thing"))
        self.assertRegex(failed[0][1], "no line of .* matches")

    def test_ladder(self):
        asked = ("step=3", "step=3 table")
        block = "".join(f"<!-- ladder: {of} -->\n<!-- end -->\n" for of in asked)
        text, _, failed = u.update(block, to_root="../")
        self.assertEqual(failed, [])
        self.assertIn("](../plots/figures/ladder/03.svg)", text)
        self.assertIn("| **03 several lanes per row** |", text)
        self.assertNotIn("| 04 ", text)
        for wrong in ("step=11", "step=3 row"):
            _, _, failed = u.update(block.replace("step=3 table", wrong))
            self.assertRegex(failed[0][1], "a ladder needs step=N")
