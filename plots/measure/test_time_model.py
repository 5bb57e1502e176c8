"""plots/run_tests.py test_time_model: the fit of the time model, and what was committed of it."""

import unittest
from unittest import mock

import numpy as np

import time_model
from records import identity, read_records
from time_model import CSR_COO, KERNELS, NAMES, WITH_TIMES, PAGE, Products, agreement
from time_model import agreement_row, committed, errors_of, fit, judged, read_counts, rows_with
from time_model import without_those_aside

PARAMETERS_THERE, INTERVALS, REFUSALS = committed()


class Figure(unittest.TestCase):
    def test_a_row_per_step_in_print(self):
        from matplotlib.text import Text

        steps = {r["kernel"]: r["step"] for r in read_records("NVIDIA_H200")}
        rows = [(f"m{k}", "f64", kernel, None, 10.0) for kernel in KERNELS for k in range(3)]
        errors = np.log(np.tile([0.5, 1.0, 1.25], len(KERNELS)))
        with mock.patch.object(time_model.style, "save") as save:
            time_model.draw(rows, errors, steps)
        figure = save.call_args.args[0]
        [axes] = figure.axes
        names = [text.get_text() for text in axes.get_yticklabels()]
        self.assertEqual(names[:2], ["all", "02 CSR scalar"])
        self.assertEqual(names[6:8], ["07 LightSpMV", "07 LightSpMV, never fitted"])
        self.assertEqual(names[-1], "09 CDS, never fitted")
        texts = [text.get_text() for text in axes.texts[:3]]
        self.assertEqual(texts, [f"25% ({3 * len(KERNELS)})", "25% (3)", "25% (18)"])
        self.assertEqual(len(axes.patches), 2 + len(names))  # two bands behind the boxes
        self.assertIn("within 25% of the", figure._suptitle.get_text().replace("\n", " "))
        sizes = [t.get_fontsize() for t in figure.findobj(Text) if t.get_text().strip()]
        self.assertEqual((figure.get_figwidth(), min(sizes)), (7, 8))


class TimeModel(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        records = read_records("NVIDIA_H200")
        every = Products(rows_with(records, CSR_COO), "h200")
        cls.products, cls.aside = without_those_aside(every)
        cls.seen = Products(rows_with(records, [k for k in KERNELS if k not in REFUSALS]), "h200")

    def test_the_page_says_how_well_the_committed_parameters_fit(self):
        errors = errors_of(self.aside, PARAMETERS_THERE["h200"])
        what = "kept aside: real files that no form was tried on"
        row = judged(what, self.aside, errors, INTERVALS)
        self.assertIn(f"| {' | '.join(map(str, row))} |", PAGE.read_text(encoding="utf-8"))
        for of in (self.aside, self.products):
            sizes = abs(np.expm1(errors_of(of, PARAMETERS_THERE["h200"])))
            self.assertLess(np.median(sizes), 0.15)

    def test_the_page_says_how_often_limits_agree_with_nsight_compute(self):
        for matrices, pairs in agreement(self.seen).items():
            self.assertGreater(len(pairs), 100)
            row = " | ".join(map(str, agreement_row(matrices, pairs)))
            self.assertIn(f"| {row} |", PAGE.read_text(encoding="utf-8"))

    def test_estimates_are_those_of_the_program(self):
        for gpu in WITH_TIMES:
            counted = [(*identity(c), c["work"], 1) for c in read_counts()]
            some, parameters = Products(counted, gpu), PARAMETERS_THERE[gpu]
            theirs = [of["us"] for of in some.emitted]
            np.testing.assert_allclose(some.estimate(parameters), theirs, rtol=1e-6)

    def test_a_fit_finds_parameters_that_made_the_times(self):
        truth = PARAMETERS_THERE["h200"]
        some = self.products.where(np.arange(len(self.products.rows)) % 4 == 0)
        rows = [(*row[:4], us) for row, us in zip(some.rows, some.estimate(truth))]
        made = Products(rows, "h200")
        errors = np.abs(np.log(made.estimate(fit(made, 4217)) / made.measured))
        self.assertLess(np.median(errors), 0.02)

    def test_loads_in_flight_are_counted_in_the_loop_where_they_are_most(self):
        def sass(*code):  # (instruction, barrier that it sets, barriers that it waits for)
            upper = lambda sets, waits: sets << 46 | sum(1 << 52 + barrier for barrier in waits)  # noqa: E731
            return "".join(
                f"/*{16 * i:04x}*/ {text} ; /* 0x{0:016x} */\n /* 0x{upper(sets, waits):016x} */\n"
                for i, (text, sets, waits) in enumerate(code)
            )

        column, value, x = ("LDG.E R1", 0, ()), ("LDG.E.64 R2", 1, ()), ("LDG.E.64 R4", 2, (0,))
        trip = [column, value, x, ("DFMA R8", 7, (1, 2))]
        self.assertEqual(time_model.loads_in_flight(sass(*trip)), 1.5)
        self.assertEqual(time_model.loads_in_flight(sass(*trip, ("@P0 BRA 0x0", 7, ()))), 1.5)
        back, other = ("@P0 BRA 0x0", 7, ()), ("LDG.E.64 R4", 3, (0,))
        unrolled = [column, value] * 2 + [x, other, ("DFMA R8", 7, (1, 2, 3))]
        unrolled.append(("@P1 BRA 0x50", 7, ()))
        self.assertEqual(time_model.loads_in_flight(sass(*trip, back, *unrolled)), 3)

    def test_gpus_known_by_data_sheets_are_scaled(self):
        t4 = time_model.scaled(PARAMETERS_THERE["h200"], "t4")
        np.testing.assert_allclose(t4, PARAMETERS_THERE["t4"], rtol=2e-3)

    def test_the_page_names_all_parameters_and_limits(self):
        page = PAGE.read_text(encoding="utf-8")
        equations = page[: page.index("## How good is it")]
        for name in NAMES[:-1]:
            self.assertRegex(equations, rf"`{name}`|· {name}\b|{name} \+")
        for limit in self.products.names:
            self.assertIn(f"| {limit} |", equations)
