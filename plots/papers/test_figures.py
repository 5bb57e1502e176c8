"""plots/python.sh plots/run_tests.py test_figures: every figure and table, from two small sets of records and from none."""

import base64
import contextlib
import copy
import gzip
import io
import itertools
import json
import math
import re
import statistics
import tempfile
import unittest
from pathlib import Path
from unittest import mock

import bylina
import claims
import figures
import he_gao
import kinds
import ladder
import lightspmv
import ours
import record_format
import records
import report
import show
import style
from matplotlib.text import Text
from published import published
from records import STAND_IN, Data, gflops, stand_ins
from sample_records import Scratch, quartiles, record, write

GRIDS = ["stencil2d:8x8,dof=1", "stencil2d:8x8,dof=3", "stencil3d:4x4x4", "stencil3d:4x4x4,dof=3"]
# Tables whose matrices are no Markov chains.
GENERAL = "he_gao_2016_table2", "bylina_2011_table2", "lightspmv_poster_matrices"
MATRICES = {
    matrix: nonzeros
    for table in (*GENERAL, "bylina_2011_table3")
    for matrix, nonzeros in published(table).nonzeros().items()
}
KERNELS = {}  # name: (step, format, milliseconds in f64)
for step, form, times in (
    (2, "CSR", {"csr_scalar": 0.08}),
    (3, "CSR", {"csr_vector": 0.04, "csr_vector_shared": 0.05}),
    (4, "COO", {"atomic_coo_warp": 0.045}),
    (5, "COO", {"coo": 0.05}),
    (6, "CSR", {"pcsr_texture": 0.06, "csr_adaptive": 0.03, "pcsr_one_pass": 0.025}),
    (7, "CSR", {"lightspmv_vector": 0.09, "lightspmv_vector_inc": 0.095}),
    (7, "CSR", {"lightspmv_warp": 0.07, "lightspmv_counters": 0.07}),
    (8, "ELL", {"ell": 0.02}),
    (8, "HYB", {"hyb": 0.022}),
    (8, "DIA", {"dia": 0.03}),
    (8, "SELL", {"sell": 0.021}),
    (9, "CDS", {"cds": 0.01, "cds_texture": 0.01}),
    (0, "CSR", {"cusparse_csr_alg1": 0.035, "cusparse_csr_alg1_pre": 0.034}),
    (0, "CSR", {"cusparse_csr_alg2_pre": 0.05}),
    (0, "COO", {"cusparse_coo_alg1": 0.06, "cusparse_coo_alg2": 0.055}),
    (0, "SELL", {"cusparse_sell_32": 0.04}),
):
    KERNELS |= {name: (step, form, ms) for name, ms in times.items()}


def timed(kernel, matrix, precision, nnz, **changes):
    step, form, warm = KERNELS[kernel]
    warm *= (1 if precision == "f64" else 0.7) * nnz / 5000
    times = {"warm_ms": quartiles(warm, 0.98, 1.03), "cold_ms": quartiles(2 * warm, 0.98, 1.03)}
    of = {
        "step": step,
        "format": form,
        "precision": precision,
        "nnz": nnz,
        "source": source(matrix),
    }
    return record(kernel, matrix, warm, **times, **of, **changes)


def source(matrix):
    return "stand-in" if matrix == "cant" else "file"


def on_host(kernel, matrix, precision):
    of = {"step": 1, "precision": precision, "processor": "Some CPU", "source": source(matrix)}
    return record(kernel, matrix, 0.5, host=True, cold_ms=None, baseline=None, **of)


def on_several(matrix, gpus, partition, exchange, milliseconds, kernel="pcsr"):
    """As step 10 writes it."""
    of = {"program": "multigpu", "gpus": gpus, "partition": partition, "exchange": exchange}
    of |= {"step": 10, "steps": 100, "norm": None if exchange == "none" else "first"}
    of |= {"step_ms": {"loop": quartiles(milliseconds, 0.9, 1.2)}, "one_gpu_step_ms": 1.0}
    of["parts"] = [{"busy_ms": busy, "nnz": 2500} for busy in (0.1, 0.12)]
    nothing = dict.fromkeys(("warm_ms", "cold_ms", "baseline"))
    return record(kernel, matrix, 1, source="stand-in", **of, **nothing)


def large_set(directory):
    """All kernels on all matrices, one refusal, counters and looks."""
    kinds = dict.fromkeys(ours.KINDS.values(), 7000)
    everything = {**MATRICES, **dict.fromkeys(GRIDS, 9000), **kinds}
    folder = directory / "GPU"

    def every(make, *lists):
        return [make(*of) for of in itertools.product(*lists)]

    def on_gpu(matrix, precision, kernel):
        return timed(kernel, matrix, precision, everything[matrix])

    records = every(on_gpu, everything, ("f32", "f64"), KERNELS)
    refused = [r for r in records if (r["matrix"], r["kernel"]) == ("rajat24", "hyb")]
    write(folder / "a.jsonl", [r for r in records if r not in refused])
    write(folder / "b.jsonl", every(on_host, ("csr_openmp", "eigen_csr"), MATRICES, ("f32", "f64")))

    def published_way(gpus, partition, exchange):
        ms = (1.1 if partition == "rows" else 1.05) / gpus + 0.05 * (exchange == "parts")
        return on_several("F1", gpus, partition, exchange, ms)

    def our_way(gpus, exchange):
        return on_several("F1", gpus, "nonzeros", exchange, 0.9 / gpus, "pcsr_one_pass")

    several = every(published_way, (2, 4), ("rows", "nonzeros"), ("none", "parts"))
    several += [on_several("F1", 1, "nonzeros", "none", 1.0)]
    write(folder / "d.jsonl", several + every(our_way, (1, 2, 4), ("none", "stores")))
    keys = ("run", "matrix", "precision", "kernel")
    lines = [{**{key: r[key] for key in keys}, "refused": "too wide"} for r in refused]
    record_format.append(folder / "a.jsonl", map(json.dumps, lines))
    alone = [("csr_vector", "G3_circuit"), ("ell", "G3_circuit"), ("csr_adaptive", "G3_circuit")]
    alone = [timed(*of, "f64", 5000, alone=True) for of in [*alone, ("csr_vector", "rajat24")]]
    write(folder / "alone" / "setup.jsonl", alone)
    look = {"min_row": 1, "max_row": 2, "min_col": 1, "max_col": 2}
    look |= {"mean_row": 1.25, "dispersion": 0.1}
    of = {"source": "file", "rows": 4, "cols": 4, "nnz": 5}
    names = ("af_shell9", "cont-300", "cant")
    looks = [json.dumps({"matrix": {"name": name, **of}, **look}) + "\n" for name in names]
    (directory / "matrices.jsonl").write_text("".join(looks))


def small_set(directory):
    """Three kernels on two matrices, as after an interrupted run."""
    kernels = ("csr_scalar", "pcsr_texture", "cusparse_csr_alg1")
    records = [timed(k, m, "f64", 5000) for k in kernels for m in ("G3_circuit", "cant")]
    write(directory / "GPU" / "a.jsonl", records)


def texts_of(found):
    return [text.get_text() for text in found]


class Case(Scratch):
    @classmethod
    def setUpClass(cls):
        cls.sets, fills = {}, {"large": large_set, "small": small_set, "none": lambda _: None}
        for name, fill in fills.items():
            with tempfile.TemporaryDirectory() as directory:
                fill(Path(directory))
                cls.sets[name] = Data("GPU", directory)

    drawn = {}

    def draw(self, name, which="large"):
        if (name, which) not in self.drawn:
            self.drawn[name, which] = figures.draw(name, self.sets[which])
        return self.drawn[name, which]


class Everywhere(Case):
    def test_no_picture_is_empty_and_none_is_missing(self):
        for which in self.sets:
            for name in figures.FIGURES:
                with self.subTest(f"{name}, {which}"):
                    figure, notes = self.draw(name, which)
                    if figure is None:
                        self.assertNotEqual(which, "large")
                        self.assertRegex(" ".join(notes), "`make bench.*`")
                        continue
                    for axes in figure.axes:
                        drawn = [*axes.patches, *axes.lines, *axes.images, *axes.texts]
                        self.assertTrue(drawn or not axes.axison)

    def notes_of(self, name, which):
        gaps = style.Gaps(self.sets[which])
        figures.FIGURES[name](self.sets[which], gaps)
        return gaps.notes()

    def test_what_is_missing_is_named_with_its_command(self):
        notes, none = self.notes_of("he_gao_2016_figure4", "small"), "bylina_2011_figure12"
        again = "`make bench SET=full KERNELS='pcsr_texture'`"
        self.assertIn(f"Records of PCSR are missing on G3_circuit; {again}.", notes)
        self.assertTrue(any(note.startswith("Not measured yet: 2cubes_sphere, ") for note in notes))
        note = "Not measured yet on GPU: `make bench SET=full` makes the records."
        self.assertIn(note, self.notes_of(none, "none"))

    def test_what_is_not_half_measured_is_not_drawn(self):
        for name, share in (("he_gao_2016_figure4", 1), ("lightspmv_levels", 0)):
            note = f"Of what this figure compares {share}% was measured on Some GPU; "
            note += "`make bench SET=full` makes the records."
            self.assertEqual(self.draw(name, "small"), (None, [note]))
        figure, notes = self.draw("ladder", "small")
        self.assertIsNone(figure)
        missing = "03 CSR vector, 04 atomic COO, 05 segmented scan, 07 LightSpMV, 08 ELL, HYB, DIA, SELL, 09 CDS"
        self.assertIn(f"No records of {missing} on Some GPU: `make bench SET=full`.", notes)

    def test_with_all_records_nothing_is_missing(self):
        for name in figures.FIGURES:
            notes = "\n".join(self.draw(name)[1])
            self.assertNotRegex(notes, r"ot measured yet(?! on \d GPUs)| are missing on ", name)

    def test_refusals_and_stand_ins_are_named(self):
        figure, notes = self.draw("bylina_2011_figure10")
        self.assertIn("cant*", texts_of(figure.axes[0].get_yticklabels()))
        self.assertIn(f"{STAND_IN[:-1]}: 1 of 8 matrices.", notes)

    def test_the_star_is_of_the_record_that_is_shown(self):
        # F1 is a file in the other records, and a stand-in on several GPUs.
        figure, notes = self.draw("he_gao_2016_figures_7_to_10")
        hollow = [line for line in figure.axes[2].get_lines() if line.get_fillstyle() == "none"]
        self.assertEqual([len(line.get_xdata()) for line in hollow], [1, 0])
        self.assertIn(f"{STAND_IN[:-1]}: 1 of 15 matrices.", notes)
        table = he_gao.TABLES["he_gao_2016_table5"](self.sets["large"])
        names = [row[0] for row in table.rows if row[0][:2] in ("F1", "ca")]
        self.assertEqual(names, ["F1*", "cage14"])
        self.assertIn(STAND_IN, table.notes)

    def test_the_ladder_of_each_lesson_is_of_todays_records(self):
        data = Data(figures.DEVICE)
        best = ladder.measured(data)["mesh"]
        self.assertGreaterEqual(11 * style.COLUMN * 72 / ladder.PRINTED, style.SMALLEST)
        for step in ladder.STEPS:
            drawn = ladder.draw(data, step)
            file = figures.ROOT / ladder.FOLDER / f"{step:02}.svg"
            self.assertTrue(drawn == file.read_text(encoding="utf-8"), f"{file}: make figures")
            bars = re.findall(r'width="20" height="([\d.]+)" class="here" rx="2"', drawn)
            self.assertEqual(len(bars), sum(step in of for of in ladder.measured(data).values()))
            if step in best:
                self.assertIn(f"step {step:02} {gflops(best[step]):.0f}", drawn)
        factor = gflops(best[3]) / gflops(best[2])
        self.assertIn(f"Step 03 is {factor:.2g} times as fast on the mesh", ladder.shown(data, 2))
        self.assertEqual(ladder.gain(ladder.measured(data), 10), "")
        kinds = {kind: of[8]["kernel"] for kind, of in ladder.measured(data).items()}
        named = ", ".join(f"{kernel} ({kind})" for kind, kernel in kinds.items())
        self.assertIn(f"Bars of step 08: {named}.", ladder.shown(data, 8))
        self.assertIn("Bars of step 06: pcsr_one_pass.", ladder.draw(data, 6))
        self.assertEqual(ladder.kernels(ladder.measured(data), 10), "")
        self.assertEqual(ladder.table(3).count("\n"), 7)
        self.assertIn("| **03 several lanes per row** |", ladder.table(3))

    def test_times_of_other_code_are_named_wherever_they_are_shown(self):
        one, both = "pcsr_one_pass", "csr_vector, pcsr_one_pass"
        other = {kernel: records.OTHER_CODE for kernel in both.split(", ")}
        self.patch(records, "code_state", lambda r: other.get(r["kernel"]))
        for name, kernels in (
            *((name, one) for name in ("profile", "copy_share", "ladder", "speedup")),
            *((name, both) for name in ("he_gao_2016_figure4_rates", "he_gao_2016_figure5")),
            ("he_gao_2016_figures_7_to_10", one),
            ("break_even", "csr_vector"),
        ):
            figure, notes = figures.draw(name, self.sets["large"])
            self.assertRegex(
                " ".join(notes),
                f"† Measured with other machine code than today's build has: .*{kernels}",
            )
            figure.draw_without_rendering()
            labels = {text for text in texts_of(figure.findobj(Text)) if "†" in text}
            self.assertTrue(labels, name)
            if name == "break_even":
                self.assertEqual(len(labels), 1)
                self.assertTrue("against csr_vector †" in labels.pop())
        table = figures.TABLES["speedup"](self.sets["large"])
        self.assertTrue(any(note.startswith("† Measured with other") for note in table.notes))
        self.assertTrue(any(row[3].endswith(" †") for row in table.rows))

    def test_a_file_has_the_same_bytes_on_every_run(self):
        for form, magic in (("png", b"\x89PNG"), ("pdf", b"%PDF"), ("svg", b"<?xml")):
            files = []
            for _ in range(2):
                figure, _ = figures.draw("profile", self.sets["large"])
                style.save(figure, self.root, "profile", form)
                files.append((self.root / f"profile.{form}").read_bytes())
            self.assertTrue(files[0].startswith(magic))
            self.assertTrue(files[0] == files[1], form)
        self.assertIn(b"Type /Font", (self.root / "profile.pdf").read_bytes())  # text stays text


class InPrint(unittest.TestCase):
    """The committed figures, of today's records: as a page of a paper shows them."""

    @classmethod
    def setUpClass(cls):
        cls.data = Data(figures.DEVICE)
        cls.drawn = {name: figures.draw(name, cls.data) for name in figures.FIGURES}

    def test_a_column_wide_and_every_text_of_eight_points(self):
        for name, (figure, _) in self.drawn.items():
            with self.subTest(name):
                self.assertEqual(figure.get_figwidth(), 7)
                texts = [text for text in figure.findobj(Text) if text.get_text().strip()]
                self.assertGreater(len(texts), 5)
                self.assertGreaterEqual(min(text.get_fontsize() for text in texts), 8)

    def test_no_panel_has_more_than_forty_marks(self):
        for name, (figure, _) in self.drawn.items():
            counts = [style.marks_in(axes) for axes in figure.axes]
            self.assertLessEqual(max(counts), style.MOST_MARKS, f"{name}: {counts}")
        axes = style.new_figure(3, "").subplots()
        axes.plot([1, 2, 3], [1, 2, 3], "o")
        axes.plot([1, 2, 3], [1, 2, 3])
        axes.barh([1, 2], [1, 2])
        self.assertEqual(style.marks_in(axes), 5)

    def test_title_and_legend_cover_nothing_and_fit(self):
        from matplotlib.backends.backend_agg import FigureCanvasAgg

        for name, (figure, _) in self.drawn.items():
            with self.subTest(name):
                FigureCanvasAgg(figure).draw()
                edge = figure.bbox.x1
                lowest = figure._suptitle.get_window_extent()
                self.assertLess(lowest.x1, edge)
                parts = [part for axes in figure.axes if axes.axison for part in (axes, axes.title)]
                panels = [part.get_window_extent() for part in parts]
                for legend in figure.legends:
                    box = legend.get_window_extent()
                    self.assertLess(box.x1, edge)
                    for panel in panels:
                        self.assertFalse(box.overlaps(panel), legend.get_texts()[0].get_text())
                self.assertGreater(len(figure._suptitle.get_text().split()), 7)  # a sentence

    def test_the_captions_are_of_todays_records(self):
        captions = {name: figures.caption(name, *of) for name, of in self.drawn.items()}
        folder = figures.ROOT / "plots" / "figures"
        page = (folder / "README.md").read_text("utf-8")
        self.assertEqual(figures.captions_page(captions), page, "make figures")
        self.assertEqual({path.stem for path in folder.glob("*.png")}, set(self.drawn))

    def test_captions_of_figures_that_were_not_drawn_now_stay(self):
        page = figures.captions_page({"ladder": "one\n", "profile": "two\n"})
        again = figures.captions_page({"profile": "three\n"}, page)
        self.assertEqual(again, page.replace("two", "three"))
        self.assertIn("He and Gao 2016, figure 6: where the nonzeros", page)


class Series(Case):
    def marks(self, name, panel):
        """{series: values} of a panel of dots, of all sources; and {"DEVICE: series": values} of
        the paper's."""
        found = {}
        for line in self.draw(name)[0].axes[panel].get_lines():
            if line.get_label().startswith("_") and len(line.get_ydata()):
                found.setdefault(line.get_label()[1:], []).extend(line.get_ydata())
        return {k: of for k, of in found.items() if k and not k.startswith("child")}

    def test_pcsr_figure_4(self):
        found = he_gao.by_algorithm(style.Gaps(self.sets["large"]))
        self.assertEqual(list(found), list(he_gao.ALGORITHMS))
        self.assertEqual(len(found["HYBMV"]), 25)  # it refused rajat24
        [axes] = self.draw("he_gao_2016_figure4_rates")[0].axes
        # Both in % of HYBMV, which takes 0.022 ms per 5000 nonzeros.
        self.assertEqual([round(x) for x in self.at(axes, "_median")[-4:]], [37, 37, 88, 88])
        told = texts_of(axes.texts)
        self.assertTrue(told[3].startswith("25 of 26;") and told[6].startswith("1 of 26;"), told)
        notes = " ".join(self.draw("he_gao_2016_figure4_rates")[1])
        self.assertIn("5.5 to 10.3 GFLOP/s, the median is 7.8", notes)

    def test_figures_of_rivals(self):
        for name, said in (
            ("he_gao_2016_figure4", [4.24, 2.18, 1.62, 1.22, 1.05]),
            ("lightspmv_speedups", [10.76, 1.72, 1.47]),
        ):
            single, double = self.draw(name)[0].axes
            self.assertEqual(single.get_xlim(), double.get_xlim())
            self.assertEqual(self.at(single, "_theirs"), said)
        means = self.at(self.draw("he_gao_2016_figure4")[0].axes[1], "_mean")
        self.assertAlmostEqual(means[0], 0.08 / 0.06)
        self.assertAlmostEqual(means[1], 0.04 / 0.06)
        message = self.draw("he_gao_2016_figure4")[0]._suptitle.get_text()
        self.assertIn("on an Some GPU 4 of them", " ".join(message.split()))

    def test_a_tie_names_no_winner(self):
        def took(ms, spread=0.01):
            ends = {"warm_lower_ms": ms * (1 - spread), "warm_upper_ms": ms * (1 + spread)}
            return {"warm_ms": ms, **ends}

        fast, tie, slow = took(1), took(1.01), took(1.1)
        self.assertEqual(records.fastest_of({2: tie, 3: fast, 0: slow}), [2, 3])
        self.assertEqual(records.fastest_of({2: slow, 3: fast}), [3])
        found = {("f32", f): {"m": r} for f, r in zip(bylina.FORMATS, (slow, tie, fast, slow))}
        self.assertEqual(bylina.fastest(found, "f32"), [["csr", "ell"]])
        said = bylina.said([["csr", "ell"], ["ell"]])
        self.assertEqual(said, "ELL on 2 and CSR on 1 (ties count for both)")
        tied, one = ([["csr", "ell"], ["csr"]], [["ell"], ["hyb"]]), ([["csr", "ell"]], [["ell"]])
        for of, here, there in (
            (tied, "CSR is the fastest format (or ties) on 2 of 2 chains", "it was on 0"),
            (
                one,
                "CSR and ELL are the fastest formats (or tie) on 1 of 1 chains each",
                "they were on 0 and 1",
            ),
        ):
            said = f"{here} on an GPU; on a {bylina.GPU} {there}"
            self.assertEqual(bylina.message(*of, "chains", "GPU"), said)
        data = copy.copy(self.sets["large"])
        times = {"own": fast, "tied": tie, "ahead": took(0.5)}
        data.fastest = lambda matrix, precision, patterns: times[patterns]
        self.assertTrue(data.is_behind(["m"], "f64", "own", "ahead"))
        self.assertFalse(data.is_behind(["m"], "f64", "own", "tied"))
        self.assertFalse(data.is_behind(["m"], "f64", "ahead", "own"))
        data.fastest = lambda matrix, precision, patterns: tie
        self.assertIsNone(he_gao.alone_ahead(data, "m"))
        # 0.022 ms; one pass takes 0.025.
        self.assertEqual(he_gao.alone_ahead(self.sets["large"], "finan512"), "HYBMV")

    def at(self, axes, label):
        """Where the marks of a row chart are."""
        lines = [line for line in axes.get_lines() if line.get_label() == label]
        return [x for line in lines for x in line.get_xdata()]

    def test_a_row_shows_all_values_their_middle_half_and_the_median(self):
        axes = style.new_figure(3, "").subplots()
        style.box(axes, 2, [1, 2, 3, 4, 100], 0.4)
        [box] = axes.patches
        self.assertEqual((box.get_x(), box.get_width(), box.get_y()), (2, 2, 1.8))
        self.assertEqual([list(line.get_xdata()) for line in axes.get_lines()], [[1, 100], [3, 3]])
        style.box(axes, 1, [5])  # one value: a dot
        self.assertEqual((len(axes.patches), axes.get_lines()[-1].get_marker()), (1, "o"))

    def test_bandwidth_by_one_count_of_bytes(self):
        shares = he_gao.published_shares()
        self.assertEqual(len(shares), 15)
        self.assertAlmostEqual(max(shares.values()), 49, delta=0.5)
        figure = self.draw("he_gao_2016_figure5")[0]
        message, [axes] = " ".join(figure._suptitle.get_text().split()), figure.axes
        there = statistics.median(shares.values())
        self.assertAlmostEqual(self.at(axes, "_median")[-1], there)
        for said in texts_of(axes.texts)[5:8]:  # the title's percentages are those beside the rows
            self.assertIn(f"at most {said}", message)

    def test_parallel_efficiency(self):
        for panel, (number, (table, gpus, exchange)) in enumerate(he_gao.PARALLEL.items()):
            found = self.marks("he_gao_2016_figures_7_to_10", panel)
            cost = 0.05 if exchange else 0
            self.assertEqual(len(found["own"]), 1)
            self.assertAlmostEqual(found["own"][0], 100 / (1.05 + gpus * cost))
            theirs = [float(r["efficiency_II"]) for r in published(f"he_gao_2016_table{table}")]
            self.assertEqual(found["theirs"], theirs)
            of = he_gao.published_efficiencies(number)
            self.assertAlmostEqual(he_gao.mean_percent(of), sum(theirs) / 15)
            both = he_gao.efficiencies(self.sets["large"], gpus, exchange)
            self.assertAlmostEqual(both["F1", "I"]["percent"], 100 / (1.1 + gpus * cost))
            [(ms, _)] = he_gao.time_and_efficiency(both, ["F1"]).values()
            self.assertAlmostEqual(ms, 1.0)

    def test_the_paper_s_way_beside_ours(self):
        self.patch(show, "Data", lambda device: self.sets["large"])
        lines = list(show.paper("GPU", 2))
        [cells] = [line.split() for line in lines if line.startswith("F1")]
        self.assertEqual(cells, "F1 1000.0 575.0 50.0 87% 900.0 450.0 0.0 100%".split())
        self.assertEqual(sum(line.endswith("not measured") for line in lines), 14)
        self.assertEqual(lines[-1].split(), ["mean", "of", "1:", "87%", "of", "1:", "100%"])
        four = list(show.paper("GPU", 4))
        self.assertEqual(four[1].split()[:5], ["matrix", "1", "GPU", "4", "GPUs"])
        steps = [line.split() for line in four if line.startswith("F1")][0]
        share = float(steps[1]) / float(steps[2]) / 4
        self.assertAlmostEqual(share, float(steps[4][:-1]) / 100, delta=0.005)

    def test_a_process_per_gpu_beside_one_process(self):
        def one(exchange, milliseconds, **changes):
            of = on_several("F1", 4, "nonzeros", exchange, milliseconds, "pcsr_one_pass")
            return {**of, **changes}

        ranks, gone = {"program": "multigpu_mpi", "ranks": 4}, {"not_there_any_more": "0"}
        write(self.root / "GPU" / "d.jsonl", [one("stores", 0.225)])
        records = [one("mpi", 1.5, **ranks), one("nccl", 0.5, functions=gone, **ranks)]
        write(self.root / "GPU" / "ranks" / "r.jsonl", records)
        self.patch(show, "Data", lambda device: Data(device, self.root))
        _, head, line = show.ranks("GPU")
        self.assertEqual(head.split(), ["matrix", "GPUs", "stores", "nccl", "mpi"])
        self.assertEqual(line.split(), ["F1", "4", "225.0", "—", "1500.0"])

    def test_parallel_efficiency_has_a_device(self):
        figure, notes = self.draw("he_gao_2016_figures_7_to_10")
        message = " ".join(figure._suptitle.get_text().split())
        self.assertRegex(message, r"4 Some GPUs reach 80%.*\(on 1 of 15 matrices\)")
        theirs, both = {"a": (4, 90), "b": (9, 50)}, {"a": (2, 80), "b": (3, 60)}
        said = he_gao.parallel_message(2, theirs, both, {m: (1, 90) for m in both}, "GPU")
        self.assertIn("2 GPUs reach 70% in our version of its way and 90% in our own, with", said)
        wanted = "With communication, 2 Tesla C2050s reached 90% of ideal; 2 GPUs reach 80%, with products"
        wanted += " that take 2 times less time (on 1 of 2 matrices)"
        said = he_gao.parallel_message(2, theirs, {"a": (2, 80)}, {}, "GPU")
        self.assertEqual(said, wanted)
        missing = "2cubes_sphere, scircuit, Ga41As41H72, ASIC_680ks, ecology2, Hamrle3 and 8 more"
        note = (
            f"Not measured yet on 4 GPUs (Some GPU): PCSR on {missing}; `make bench SET=published`."
        )
        self.assertIn(note, notes)

    def test_a_step_that_was_not_measured_does_not_refuse(self):
        data = copy.copy(self.sets["large"])
        key = "G3_circuit", "f64", True
        left = [r for r in data.by_matrix[key] if r["step"] not in (5, 7)]
        data.by_matrix = {**data.by_matrix, key: left}
        data.refused = {*data.refused, ("G3_circuit", "f64", "coo")}
        _, notes = figures.draw("ladder", data)
        missing = "refuses the matrix, or is not measured yet: 07 LightSpMV on G3_circuit."
        self.assertTrue(notes[0].endswith(missing))
        drawn = [figures.draw("profile", each)[0] for each in (self.sets["large"], data)]
        files = [int(figure.axes[0].get_ylabel().split()[3]) for figure in drawn]
        self.assertEqual(files[0] - files[1], 1)

    def test_a_tie_has_not_paid_off(self):
        setup = {"setup_ms": 4.5, "preprocess_ms": 0.5}
        base, faster, tie = (
            {"warm_ms": ms, "warm_lower_ms": 0.9 * ms, "warm_upper_ms": 1.1 * ms, **setup}
            for ms in (2, 1, 1.7)
        )
        for own, other, products in ((faster, base, 5), (tie, base, None), (base, faster, None)):
            self.assertEqual(ours.paid_off(own, other), products)

    def test_what_the_paper_counts_as_one_triangle_is_named(self):
        gaps = style.Gaps(self.sets["large"])
        parts = {"F1": 0.5, "G3_circuit": 1}
        of = {name: part * gaps.data.matrices[name]["nnz"] for name, part in parts.items()}
        style.one_triangle(gaps, list(of), of)
        note = "Of F1 the paper counts one triangle; here both are multiplied."
        self.assertEqual(gaps.remarks, [note])

    def test_one_library_of_the_cpu_stands_for_all_matrices_of_a_table(self):
        data, names = copy.copy(self.sets["large"]), published("bylina_2011_table2").matrices()
        for count, kernel in ((0, "eigen_csr"), (1, "eigen_csr"), (len(names), "mkl_csr")):
            keys = [(m, p, "mkl_csr") for m in names[:count] for p in ("f32", "f64")]
            data.times = {**self.sets["large"].times, **dict.fromkeys(keys, {"warm_ms": 0.25})}
            self.assertEqual((bylina.host(data, 4), bylina.host(data, 6)), (kernel, "eigen_csr"))

    def test_cds_beside_dia(self):
        def message(name):
            return " ".join(self.draw(name)[0]._suptitle.get_text().split())

        said = "3.00 times as fast as DIA at 1, 3.00 times at"
        self.assertIn(said, message("godwin_2012_figure7"))
        texts = texts_of(self.draw("godwin_2012_figure7")[0].axes[0].texts)
        self.assertEqual(texts, ["over DIA", "over ELL", "over CSR"])
        self.assertRegex(message("godwin_2012_figure8"), r"at (\d+) of \1 points")

    def test_levels_beside_each_other(self):
        found = self.draw("lightspmv_levels")[0].axes[1]
        own = self.at(found, "_vector")
        self.assertEqual(len(own), 14)
        for ratio in own:
            self.assertAlmostEqual(ratio, 0.09 / 0.07)
        [band] = found.patches  # of merging prevented: the same on all
        (left, _), _ = found.transData.inverted().transform(band.get_window_extent())
        self.assertAlmostEqual(left, 0.095 / 0.07)
        self.assertEqual(max(self.at(found, "_" + lightspmv.GPU)), 3.71)

    def test_ours(self):
        times = self.sets["large"].times
        of_size = [
            ours.csr_bytes(r) > ours.LARGE
            for key, r in times.items()
            if key[1:] == ("f64", "csr_scalar")
        ]
        records = ours.large_records(self.sets["large"])
        self.assertEqual((len(records["f64", 2]), False in of_size), (sum(of_size), True))
        formats, one_pass = (
            texts_of(self.draw(name)[0].axes[1].texts) for name in ("speedup_formats", "speedup")
        )
        for texts, mean in ((formats, "3.40"), (one_pass, "1.36")):  # cds, alg1_pre
            self.assertRegex(texts[0], rf"^all: mean {mean}, ahead on (\d+) of \1, worst {mean}$")
        self.assertEqual(one_pass[1:], ["not measured yet"] * 2)  # below 20 us
        [axes] = self.draw("speedup")[0].axes[1:]
        self.assertAlmostEqual(self.at(axes, "_median")[0], 0.034 / 0.025)

        figure, _ = self.draw("break_even")
        self.assertEqual(math.ceil(1.5 / (0.02 * 7000 / 5000)), 54)  # ell's: within 100
        names = texts_of(figure.axes[0].get_yticklabels())
        self.assertEqual({*names[:2]}, {"ell", "csr_adaptive"})  # within 100 products
        row = names.index("ell")
        bars = [bar for bar in figure.axes[0].patches if abs(bar.get_y() + 0.35 - row) < 0.01]
        self.assertEqual([bar.get_width() for bar in bars], [0, 1, 0])
        texts = texts_of(figure.axes[0].texts)
        wanted = ["1", "never on 0, 0 ties, 1 not measured"]
        self.assertEqual(texts[2 * row : 2 * row + 2], wanted)
        row = names.index("hyb")
        self.assertTrue(texts[2 * row + 1].endswith(", refuses 1, 1 not measured"))
        both = [times["cage14", "f64", kernel] for kernel in ("csr_scalar", "ell")]
        self.assertIsNone(ours.paid_off(*both))

    def test_tables(self):
        for which in self.sets:
            page = figures.tables_page(self.sets[which])
            for name in figures.TABLES:
                table = figures.TABLES[name](self.sets[which])
                self.assertIn(f"## {table.title}", page)
                self.assertTrue(table.rows)
        columns = ["matrix", "time", "group", "pcsr_one_pass over CSR and COO: f32", "f64"]
        self.assertEqual(figures.TABLES["speedup"](self.sets["small"]).columns, columns)
        means = figures.TABLES["speedup"](self.sets["none"]).rows
        self.assertEqual([row[1] for row in means], ["above 20 us", "5 to 20 us", "below 5 us"])
        self.assertEqual({cell for row in means for cell in row[3:]}, {"not measured yet"})
        table = figures.TABLES["bylina_2011_table5"](self.sets["large"])
        cant = next(row for row in table.rows if row[0] == "cant*")
        warm = self.sets["large"].times["cant", "f32", "ell"]["warm_ms"]
        self.assertEqual(cant[table.columns.index("ELL: C2050") + 1], f"{0.5 / warm:.2f}")
        self.assertTrue(any("Eigen" in note for note in table.notes))


class Report(Case):
    def test_claims(self):
        none = claims.claims_table(self.sets["none"])
        self.assertEqual({row[3] for row in none.rows}, {"not measured yet"})
        rows = claims.claims_table(self.sets["large"]).rows
        ours_of, of_pcsr = {row[1]: row[3] for row in rows}, dict(row[1:4:2] for row in rows[:14])
        scalar = "times as fast as CSR-scalar, f32 and f64"
        cusparse = "times as fast as cuSPARSE's CSR, ALG1 without preprocess"
        means = "1.33–1.33 and 1.33–1.33"
        said = (
            "26 of the 26 matrices; medians 1.33 and 1.33; by our time: above 20 us 1.33 and 1.33"
        )
        self.assertEqual(ours_of[scalar], f"{means} ({said})")
        by_precision = "; ".join(
            f"{p}: 3.00 at 1, 3.00 at 3, ahead on 2 of 2, weaker" for p in ("f64", "f32")
        )
        self.assertEqual(ours_of["times as fast as DIA"], by_precision)
        # The same records: 0.035 ms for ALG1, 0.034 for the fastest, and 0.06 for PCSR.
        fastest = "the same, the fastest of its CSR algorithms per matrix, preprocess not timed"
        for claim, ratio in ((cusparse, 0.035 / 0.06), (fastest, 0.034 / 0.06)):
            self.assertTrue(of_pcsr[claim].startswith(f"{ratio:.2f}–{ratio:.2f} and "), claim)
        best = ours_of["the best of COO, CSR, ELL and HYB"]
        self.assertEqual(best, "up to: ELL on 5; above: ELL on 7 (ties count for both)")
        short = claims.short_table(self.sets["large"])
        self.assertEqual(short.rows[0], ["PCSR", scalar, "4.24 and 3.33", means, "weaker"])
        self.assertTrue(short.notes[0].startswith(f"Of {len(claims.CLAIMS)} claims, holds: "))
        none = claims.short_table(self.sets["none"])
        self.assertEqual(none.rows, [])
        self.assertIn("fell: 0; cannot be judged here: 0; not measured yet: 29.", none.notes[0])

    def test_our_fastest_is_compared_on_the_matrices_that_both_have(self):
        times = {("F1", "pcsr"): 0.5, ("cage14", "pcsr"): 1.0, ("F1", "pcsr_one_pass"): 0.625}
        records = [
            on_several(matrix, gpus, "nonzeros", "none", time, kernel)
            for (matrix, kernel), on_two in times.items()
            for gpus, time in ((1, 1.0), (2, on_two))
        ]
        write(self.root / "GPU" / "multigpu.jsonl", records)
        rows = claims.claims_table(Data("GPU", self.root)).rows
        [text] = [
            row[3] for row in rows if row[1].startswith("mean efficiency of PCSR-II on 2 GPUs")
        ]
        said = (
            "75.0% (2 of 15 matrices, from 50.0% to 100.0%); on the 1 measured with both 100.0%, "
        )
        self.assertEqual(text, f"{said}and our fastest kernel and way 80.0%")

    def test_the_first_device_that_measured_a_claim_counts(self):
        none, large = self.sets["none"], self.sets["large"]
        tables, summaries = [], []
        for every in ([none, large], [large]):
            tables.append([row[-1] for row in claims.short_table(*every).rows])
            summary = report.claims_summary(list(claims.judged(every)), every)
            summaries.append(summary.split("<p ")[0])
        self.assertEqual(*tables)
        self.assertEqual(*summaries)

    def test_a_device_is_found_by_the_beginning_of_its_name(self):
        self.assertEqual(Data("A_GPU", self.root).directory, "A_GPU")  # without records, too
        large_set(self.root)
        (self.root / "GPU").rename(self.root / "A_GPU_80GB")
        self.assertEqual(Data("A_GPU", self.root).directory, "A_GPU_80GB")

    def test_verdicts(self):
        verdicts = [claims.HOLDS, claims.WEAKER, claims.FELL]
        # In the last one matrix makes the mean.
        ratios = ([1.4, 1.6, 1.5], [1.1, 1.2, 1.3], [0.8, 0.9, 9.0])
        self.assertEqual([claims.verdict_of_ratios(of, 1.6) for of in ratios], verdicts)
        # A median near 1 says neither; a claim near 1 does not fall by being met.
        near = ([0.9, 0.98, 9.0], 1.6), ([0.9, 1.04, 1.05], 1.6), ([1.01, 1.03, 1.05], 1.03)
        verdicts = [claims.WEAKER, claims.FELL, claims.HOLDS]
        self.assertEqual([claims.verdict_of_ratios(*of) for of in near], verdicts)
        verdicts = [claims.HOLDS, claims.WEAKER, claims.FELL]
        self.assertEqual([claims.verdict_of_share(of, 80) for of in (72, 50, 39)], verdicts)

    def test_the_verdict_on_a_claim_by_degrees_of_freedom(self):
        def verdict(at_1, *above):
            return claims.verdict_by_dof({1: [at_1], 2: list(above)}, least=2, share=1.0)

        self.assertEqual(verdict(1.04, 1.2, 1.1), claims.HOLDS)
        self.assertEqual(verdict(1.2, 1.2, 1.1), claims.WEAKER)  # not the same at 1
        self.assertEqual(verdict(1, 1.2, 1.1, 0.9), claims.WEAKER)
        self.assertEqual(verdict(1, 1.2, 0.9), claims.FELL)

    def test_the_heavier_half_that_the_paper_s_times_imply(self):
        rows = {row["matrix"]: row for row in published("he_gao_2016_table3")}
        self.assertAlmostEqual(claims.heavier_half(rows["kkt_power"]), 0.616, delta=5e-4)
        # Why SD divides by n - 1: two GPUs together do no less work than one. By n they would, on
        # kkt_power 0.94 of it.
        for name, row in rows.items():
            slower, sd, one = (float(row[key]) for key in ("time_I", "sd_I", "one_gpu"))
            self.assertGreater(2 * slower - math.sqrt(2) * sd, one, name)
        slower, sd, one = (float(rows["kkt_power"][k]) for k in ("time_I", "sd_I", "one_gpu"))
        self.assertAlmostEqual((2 * slower - 2 * sd) / one, 0.942, delta=5e-4)

    def test_stand_ins_that_are_cut_evenly_judge_no_order_of_partitions(self):
        def on_two(matrix, nnz, source):
            parts = [{"nnz": part, "busy_ms": 0.1} for part in nnz]
            few = {"matrix": matrix, "partition": "rows", "gpus": 2, "source": source}
            return {**few, "nnz": sum(nnz), "parts": parts}

        made = [on_two("kkt_power", [514, 486], "stand-in")]
        made += [on_two("thermal2", [50, 50], "stand-in")]  # 50.2% there
        data = mock.Mock(multigpu=[*made, on_two("G3_circuit", [468, 532], "file")])
        self.assertEqual(claims.halves(data)["kkt_power"][1], 0.514)
        self.assertEqual(set(claims.halves(data)), {"kkt_power", "thermal2"})
        found = {
            ("G3_circuit", way): {"percent": percent, "source": "file"}
            for way, percent in (("I", 90), ("II", 80))
        }
        with mock.patch.object(he_gao, "efficiencies", lambda *_: found):
            of = claims.pcsr_balance(8)[1](data)
        self.assertEqual(of.verdict, claims.UNJUDGED)
        there = "62% to 62% of the work by the paper's times, 51% to 51% of the nonzeros in the stand-ins"
        said = (
            "needs the files of kkt_power; real files here: 1 of 15 (G3_circuit, the same order); "
        )
        said += f"the heavier half of those that are needed has {there}"
        self.assertEqual(of.text, said)

    def test_which_15_matrices_the_paper_means(self):
        ratios = dict.fromkeys(he_gao.ROWS, 1.0)
        large = [m for m, rows in he_gao.ROWS.items() if rows > he_gao.MOST]
        self.assertEqual(len(large), 3)
        ratios |= {**dict.fromkeys(large, 100), "af_shell9": 3.0, "cage14": 5.0}
        least, greatest = he_gao.subsets(ratios)
        self.assertEqual(sorted(least), [1.0] * 14 + [3.0])
        self.assertEqual(sorted(greatest), [1.0] * 13 + [3.0, 5.0])
        del ratios["cage14"]
        self.assertEqual(he_gao.subsets(ratios), [list(ratios.values())] * 2)

    def test_a_claim_on_unnamed_matrices_needs_one_verdict_for_all_that_they_may_be(self):
        def verdict(*fast):
            data = mock.Mock(source=lambda _: "stand-in", fastest=lambda *_: {"warm_ms": 0.1})
            ratios = dict.fromkeys(he_gao.ROWS, 0.5) | dict.fromkeys(fast, 9.0)
            data.speedups = lambda *_: ratios
            return claims.pcsr_over("CSR-scalar")[1](data)

        self.assertEqual(verdict().told, "fell, on stand-ins (26 of 26)")
        several = sorted(m for m, rows in he_gao.ROWS.items() if rows < he_gao.MOST)[:11]
        of = verdict(*several)
        self.assertEqual(of.told, claims.UNJUDGED)
        self.assertIn("; needs the names of the paper's 15 matrices (", of.text)

    def test_the_lower_verdict_of_two_precisions_counts(self):
        self.assertEqual(claims.lowest([claims.HOLDS, claims.WEAKER]), claims.WEAKER)
        self.assertEqual(claims.lowest([claims.FELL, claims.HOLDS]), claims.FELL)
        counts = {"f64": (18, 28), "f32": (11, 28)}
        with (
            mock.patch.object(claims.godwin, "grids", lambda _: {"g": {}}),
            mock.patch.object(claims.godwin, "above_dia", lambda data, of, p: counts[p]),
        ):
            of = claims.cds_bandwidth("in most cases")[1](None)
            counts["f64"] = 13, 28
            other = claims.cds_bandwidth("in most cases")[1](None)
        # The paper does not say of which precision it speaks: the verdict must be that of both.
        said = "f64: on 18 of 28; f32: on 11 of 28; needs the precision of figure 8"
        self.assertEqual(of[:2], (said, claims.UNJUDGED))
        self.assertEqual(other[:2], ("f64: on 13 of 28; f32: on 11 of 28", claims.FELL))

    def test_an_exchange_is_judged_where_both_ways_agree(self):
        def said(ours):
            def found(data, gpus, exchange, ours_=ours, **of):
                percent = ours_ if of["ours"] else 30
                return {("F1", "II"): {"percent": percent, "source": "file", "kernel": "pcsr"}}

            with mock.patch.object(he_gao, "efficiencies", found):
                return claims.pcsr_parallel(10)[1](mock.Mock())

        self.assertEqual(said(35).verdict, claims.FELL)
        self.assertEqual(said(60).verdict, claims.UNJUDGED)
        self.assertIn("30.0% in our implementation of it, 60.0% in our fastest way;", said(60).text)
        self.assertEqual(claims.alike([claims.WEAKER] * 2), claims.WEAKER)

    def test_of_the_best_formats_ties_count_for_both(self):
        data = copy.copy(self.sets["large"])

        def fastest(matrix, precision, patterns):
            ms = 1 if patterns in (bylina.FORMATS["csr"], bylina.FORMATS["ell"]) else 2
            return {"warm_ms": ms, "warm_lower_ms": ms * 0.9, "warm_upper_ms": ms * 1.1}

        data.fastest = fastest
        of = claims.markov_best()[1](data)
        self.assertEqual(of.verdict, claims.WEAKER)  # CSR up to 50,000 rows, and not HYB above
        self.assertIn("up to: CSR on 5 and ELL on 5; above", of.text)

    def test_a_speed_up_over_another_library_than_the_paper_s_is_not_judged(self):
        data = self.sets["large"]  # Eigen on all chains, oneMKL on none
        of = claims.markov_speedup()[1](data)
        self.assertEqual(of.verdict, claims.UNJUDGED)
        self.assertIn("as fast as Eigen; needs oneMKL on all chains", of.text)

    def test_what_another_device_says_stands_beside_the_verdict(self):
        first, other = mock.Mock(device="A"), mock.Mock(device="B")
        found = [claims.Ours("1", claims.HOLDS), claims.Ours("2", claims.WEAKER)]
        for of, said in ((found[1], "; B: weaker"), (found[0], ""), (claims.Ours("", ""), "")):
            self.assertEqual(claims.elsewhere([first, other], [found[0], of], first), said)

    def test_what_captions_say_of_the_papers_tables(self):
        faster = ["2cubes_sphere", "scircuit", "Transport", "CurlCurl_4"]
        self.assertEqual(he_gao.faster_with(5), faster)
        self.assertEqual(he_gao.faster_with(6), ["F1 (PCSR-I)"])
        self.assertIn(
            "CPU: Eigen (the paper: MKL) on the host of the GPU, Some CPU; the records do not say with how many threads. "
            "Not in its times: up to 0.50 ms of preprocess per matrix.",
            bylina.remark(self.sets["large"], 4),
        )

        def looks(name, source="stand-in", **of):
            return {name: {"matrix": {"name": name, "source": source}, **of}}

        # The paper prints 0.002666 of cant and 0.023845 of consph; the poster a deviation of 25 and
        # of 3.
        shapes = looks("cant", dispersion=0.032) | looks("consph", dispersion=0.024)
        self.assertIn("say: cant 12.0 times.", bylina.too_scattered(2, mock.Mock(shapes=shapes))[0])
        shapes = looks("cant", "file", dispersion=0.032)
        self.assertEqual(bylina.too_scattered(2, mock.Mock(shapes=shapes)), [])
        shapes = looks("webbase-1M", stddev_row=28.9) | looks("nlpkkt120", stddev_row=3.2)
        missed = list(lightspmv.other_deviations(mock.Mock(shapes=shapes)))
        self.assertEqual(missed, ["webbase-1M (28.9 for 25)"])

    def test_bandwidth_has_one_count_of_bytes(self):
        theirs, ours = claims.pcsr_bandwidth()
        # CurlCurl_4: 12 bytes per nonzero and 20 per row, in 5.16 ms, of 144 GB/s. With 16 more per
        # nonzero it would be 106%.
        self.assertEqual(theirs, "49% and 75%, of table 3's times")
        # With x once per nonzero it is what the text says.
        text = published("he_gao_2016_text")
        [printed] = text.where(what="share_of_peak", precision="f64")
        most = max(he_gao.published_shares(he_gao.x_per_nonzero).values())
        self.assertAlmostEqual(most, float(printed["value"]), delta=0.5)
        large = dict.fromkeys(("rows", "cols"), 2380515) | {"nnz": 26515867, "device": "H200"}
        large |= {"format": "CSR", "precision": "f64"}
        moved = 12 * large["nnz"] + 20 * large["rows"] + 4
        one = {**large, "compulsory_bytes": moved + 16 * large["nnz"], "copy_gb_per_s": 4000}
        times = {("CurlCurl_4", "f64", "pcsr_texture"): {**one, "cold_ms": 1e-6 * moved / 2000}}
        with mock.patch.object(he_gao, "data_sheet", lambda _: None):
            found = ours(mock.Mock(times=times, source=lambda _: "file"))
        self.assertEqual(found.text[:3], "50%")
        self.assertEqual(found.verdict, claims.HOLDS)

    def test_the_order_of_partitions_is_judged_on_real_files_alone(self):
        def said(source):
            found = {
                (row["matrix"], way): {"percent": percent, "source": source}
                for row in published("he_gao_2016_table4")
                for way, percent in (("I", 70), ("II", 80))
            }
            with mock.patch.object(he_gao, "efficiencies", lambda *_: found):
                return claims.pcsr_balance(8)[1](mock.Mock(multigpu=[]))

        self.assertEqual(said("file").verdict, claims.HOLDS)
        self.assertEqual(said("stand-in"), ("real files here: 0 of 15", claims.UNJUDGED, ()))
        with mock.patch.object(he_gao, "efficiencies", lambda *_: {}):
            self.assertIsNone(claims.pcsr_balance(8)[1](None))

    def test_records_of_one_s_own(self):
        file = self.root / "mine.jsonl"
        write(file, [record("csr_scalar", "m", 1)])
        data = report.own(file)
        self.assertEqual([row["device"] for row in data.times.values()], ["Some GPU (mine.jsonl)"])
        columns = report.measurements([self.sets["small"], data])["columns"]
        self.assertIn("Some GPU (mine.jsonl)", columns["device"])
        write(file, [record("csr_scalar", "m", 1, warm_ms=None, cold_ms=None)])
        with self.assertRaisesRegex(record_format.RecordError, "no times of products"):
            report.own(file)

    def test_page(self):
        page = report.page(self.sets["small"])
        names = re.findall(r'\bid="([^"]+)"', page)
        self.assertEqual(len(names), len(set(names)))
        for wanted in re.findall(r'href="#([^"]+)', page):
            self.assertIn(wanted, names)
        self.assertNotRegex(page, r'<[^>]* (src|href)="(?!#|data:)')
        self.assertNotIn("{{", page)
        self.assertIn("<code>make figures ARGS=he_gao_2016_figures_7_to_10</code>", page)
        for text in re.findall(r'<img [^>]*alt="([^"]*)"', page):
            self.assertGreater(len(text), 20)
        packed = re.search(r'id="data">([^<]*)<', page)[1]
        unpacked = json.loads(gzip.decompress(base64.b64decode(packed)))
        wanted = json.dumps(report.measurements([self.sets["small"]]))
        self.assertEqual(unpacked, json.loads(wanted))

    def test_measurements_are_columns(self):
        data = self.sets["large"]
        found = report.measurements([data])
        columns = found["columns"]
        self.assertEqual({len(of) for of in columns.values()}, {len(data.times)})
        self.assertEqual(list(dict.fromkeys(columns["kernel"]))[:2], list(KERNELS)[:2])
        at = columns["kernel"].index("ell")
        warm, nnz = (columns[name][at] for name in ("warm_ms", "nnz"))
        self.assertAlmostEqual(warm, 0.02 * 0.7 * nnz / 5000, delta=5e-5)
        self.assertEqual(found["matrices"]["cant"]["kind"], "mesh")
        # Its looks are those of the file, its times those of a stand-in.
        self.assertNotIn("max_row", found["matrices"]["cant"])

    def test_kinds(self):
        names = [name for table in GENERAL for name in published(table).matrices()]
        details = {name: stand_ins().get(name, "") for name in names}
        of = {m: kinds.kind_of({"matrix": m, "detail": detail}) for m, detail in details.items()}
        others = {name for name, kind in of.items() if kind == "other"}
        self.assertEqual(others, {"bayer01", "dense2", "qcd5_4"})
        self.assertEqual(kinds.kind_of({"matrix": "m_1M", "detail": "wlan:C=4"}), "Markov chain")


class CommandLine(unittest.TestCase):
    def test_a_name_that_is_not_there(self):
        with contextlib.redirect_stderr(io.StringIO()) as said:
            self.assertEqual(figures.main(["no such figure"]), 2)
        there = ", ".join(figures.FIGURES)
        wanted = f"no figure is called no such figure; there are {there}\n"
        self.assertIn(wanted, said.getvalue())

    def test_figures_of_another_device_leave_those_of_the_pages_alone(self):
        def written(device, *options):
            with (
                mock.patch.object(figures, "Data", lambda name: mock.Mock(directory=name)),
                mock.patch.object(figures, "draw", lambda name, data: ("a figure", [])),
                mock.patch.object(figures, "caption", lambda *of: ""),
                mock.patch.object(figures, "write_whole"),
                mock.patch.object(style, "save") as save,
                contextlib.redirect_stdout(io.StringIO()),
            ):
                figures.main(["copy_share", "--device", device, *options])
            return save.call_args.args[1:]

        pages, name = figures.ROOT / "plots" / "figures", "copy_share"
        self.assertEqual(written("NVIDIA_H200"), (pages, name, "png"))
        self.assertEqual(written("MY_GPU"), (pages / "MY_GPU", name, "png"))
        self.assertEqual(written("NVIDIA_H200", "--format", "pdf"), (pages, name, "pdf"))
