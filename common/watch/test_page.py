"""The pages of all steps in a headless Chromium. WATCH_SPMV: the program with all steps."""

import itertools
import json
import re
import subprocess
import unittest
from pathlib import Path

import browser
import test_watch
import tours
import watch

ROOT = test_watch.ROOT
TOURS = sorted(ROOT.glob("[0-9][0-9]_*/tour.txt"))
COLUMNS = ("needed kB", "moved kB", "used", "matrix", "x", "stores", "lanes")


class Tours(test_watch.Scratch):
    """What the tours say is there, which is looked up in traces alone."""

    def test_every_step_has_one(self):
        self.assertEqual(
            [path.parent.name[:2] for path in TOURS], [f"{step:02}" for step in range(2, 11)]
        )

    def test_positions_exist_and_show_what_they_say(self):
        for path in TOURS:
            with self.subTest(step=path.parent.name):
                tour = tours.read(path)
                what = test_watch.SPMV, tour.matrix, tour.kernels, "f64", tour.schedule
                found = watch.record(*what, command=tour.command)
                self.assertEqual([trace["kernel"]["name"] for trace in found], tour.kernels)
                stops = tour.resolve(found)
                self.assertGreaterEqual(len(stops), 4)
                self.assertTrue(
                    all(stop.shows for stop in tour.stops), "a stop that claims nothing"
                )

    def test_what_is_wrong_is_named(self):
        file = self.scratch / "tour.txt"
        head = "matrix: stencil2d:4x3\nkernels: csr_scalar\n\n"
        [trace] = watch.record(test_watch.SPMV, "stencil2d:4x3", ["csr_scalar"], "f64", "forward")
        for text, message in (
            ("kernels: csr_scalar\n== T\nat: a b\nText\n", "needs a line 'matrix"),
            ("size: 3\n", "tour.txt:1: 'size: 3' before"),
            (head + "== T\nText\n", "tour.txt:4: 'T' needs a line 'at"),
            (head + "== T\nat: csr_vector load x\nText\n", "names no kernel of csr_scalar"),
            (head + "== T\nat: csr_scalar load z\nText\n", "not in the trace, which has 0"),
            (head + "== T\nat: csr_scalar load x nth=9\nText\n", "which has 5 of them"),
            (head + "== T\nat: csr_scalar load x lane=9\nText\n", "'lane=9' in 'at' is none of"),
            (head + "== T\nat: csr_scalar load x\nshows: lanes=5\nText\n", "lanes is 12, not 5"),
            (
                head + "== T\nat: csr_scalar load x\nshows: passes=5\nText\n",
                "'passes=5' cannot be said",
            ),
            (head + "== T\nat: csr_scalar load x\nshows: line=shfl\nText\n", "without 'shfl'"),
        ):
            file.write_text(text)
            with self.assertRaisesRegex(tours.TourError, message):
                tours.read(file).resolve([trace])


@unittest.skipUnless(browser.find(), "no Chromium here")
class Pages(test_watch.Scratch):
    @classmethod
    def setUpClass(cls):
        cls.browser = browser.Browser().__enter__()

    @classmethod
    def tearDownClass(cls):
        cls.browser.__exit__()

    def page(self, matrix, kernels, tour=None, program=test_watch.SPMV):
        options = {"schedule": tour.schedule, "command": tour.command} if tour else {}
        found = watch.record(program, matrix, kernels, **options)
        file = self.scratch / "page.html"
        file.write_text(watch.page(found, tour.resolve(found) if tour else []), encoding="utf-8")
        self.assertNotRegex(file.read_text(encoding="utf-8"), r'(?:src|href)="(?!data:)')
        return file

    def look(self, expression):
        return self.browser.evaluate(expression)

    def says(self, pattern, pane=0):
        self.assertRegex(self.look(f"panes[{pane}].sentence.textContent"), pattern)

    def shows(self, expected, expression):
        self.assertEqual(self.look(expression), expected)

    def tearDown(self):
        self.assertEqual(self.browser.errors, [])
        self.assertEqual(
            [url for url in self.browser.asked if not url.startswith(("file:", "about:", "blob:"))],
            [],
        )

    def opens(self, *what, hash="", **options):
        self.browser.open(self.page(*what, **options), hash)

    def opens_within(self, limit_ms, file):
        self.browser.open(file)
        self.assertLess(self.browser.page_ms(), limit_ms)

    def check_page(self, tour):
        self.opens_within(1000, self.page(tour.matrix, tour.kernels, tour))
        # To the end, playing, then by single steps back and forth.
        self.look("go(state.axis.length - 3); play(true)")
        self.look(
            "new Promise(done => { const wait = setInterval(() => {"
            "if (!state.playing) { clearInterval(wait); done(); } }, 20); })"
        )
        self.assertEqual(self.look("state.tick"), self.look("state.axis.length - 1"))
        seen = self.look(
            "panes.map(pane => Object.fromEntries([...pane.totals.rows].map(row => [row.dataset.name, row.cells[1].textContent])))"
        )
        for kernel, shown in zip(tour.kernels, seen):
            if tour.command:
                self.check_steps(tour, kernel)
                continue
            wanted = test_watch.columns(
                test_watch.run("-m", tour.matrix, "-k", kernel, "--schedule", tour.schedule).stdout,
                kernel,
            )  # of `make run`
            self.assertEqual(
                {name: shown[name] for name in COLUMNS}, {name: wanted[name] for name in COLUMNS}
            )
        text = (
            "[...document.querySelectorAll('.sentence, .lanes')].map(e => e.textContent).join('|')"
        )
        for at in (0.1, 0.5, 0.9):
            self.look(f"go(Math.floor(state.axis.length * {at}))")
            before, tick = self.look(text), self.look("state.tick")
            self.look("step(1); step(1); step(-1); step(-1); go(%d)" % tick)
            self.assertEqual(self.look(text), before)
        for kind in self.look("[...$('kind').options].map(o => o.value)"):
            self.look(f"$('kind').value = '{kind}'; jump(1); jump(1); jump(-1)")
        # Every sentence is one.
        sentences = self.look(
            "(() => { const all = []; for (let t = 0; t < state.axis.length; t += Math.ceil(state.axis.length / 60)) { go(t); all.push(...panes.map(p => p.sentence.textContent)); } return all; })()"
        )
        for sentence in sentences:
            self.assertRegex(sentence, r"^[A-Z_a-z].*\.$")
            self.assertNotRegex(sentence, "undefined|NaN|\\?")

    def check_steps(self, tour, way):
        """What the command counts of several GPUs, the page does."""
        trace = self.scratch / "steps.jsonl"
        done = test_watch.run(
            *tour.command.split(), "-m", tour.matrix, "--way", way, "--trace", trace
        )
        counted = re.search(r"verified; (\d+) sectors over the link", done.stdout)
        self.shows(
            int(counted[1]),
            f"(run => run.sums.linkSectors[run.count])(runs.find(run => run.name === '{way}'))",
        )

    def test_every_step(self):
        for path in TOURS:
            with self.subTest(step=path.parent.name):
                tour = tours.read(path)
                self.check_page(tour)
                self.look("showStop(0)")
                for number, stop in enumerate(tour.stops):
                    self.shows(stop.title, "$('tour').querySelector('h2').textContent")
                    event = self.look("runs[state.focus].moments[momentOf(state.focus)].event")
                    self.assertEqual(event, self.look(f"data.tour[{number}].event"))
                    self.look("[...$('tour').querySelectorAll('button')][1].click()")

    def test_a_wrong_element_is_named_with_its_lane(self):
        self.opens("stencil2d:4x3", ["last_nonzero_missing"], program=test_watch.BROKEN)
        self.says(
            r"Lane 0 leaves y\[0\] = -?[\d.]+, which should be -?[\d.]+; \d+ more are wrong\."
        )
        self.shows(
            "0", "document.querySelectorAll('.lane.wrong')[0].querySelector('b').textContent"
        )
        self.assertEqual(self.look("$('kind').value"), "wrong")

    def test_sixty_by_sixty_opens_within_three_seconds(self):
        self.opens_within(3000, self.page("stencil2d:60x60", ["csr_scalar", "csr_vector"]))

    def test_keyboard_and_address(self):
        file = self.page("stencil2d:6x5", ["csr_scalar", "csr_vector"])
        self.browser.open(file)
        self.browser.press("End")
        self.assertEqual(self.look("state.tick"), self.look("state.axis.length - 1"))
        self.browser.press("Home")
        self.browser.press("ArrowRight")
        self.assertGreater(self.look("state.tick"), 0)
        self.browser.press("n")
        self.browser.press("ArrowDown")
        self.look("new Promise(done => setTimeout(done, 200))")
        hash, tick = self.look("location.hash"), self.look("state.tick")
        self.assertIn("kernel=", hash)
        self.browser.open(file, hash)
        self.assertEqual(self.look("state.tick"), tick)
        self.browser.press("Space")
        self.assertTrue(self.look("state.playing > 0"))
        self.browser.press("Space")
        self.assertEqual(self.look("state.playing"), 0)

    def test_make_watch_at_the_top(self):
        def make(*words):
            command = ["make", "-s", "-C", ROOT, "BACKEND=cpu", "watch", *words]
            return subprocess.run(command, capture_output=True, text=True)

        done = make("KERNELS=csr_scalar csr_vector", "MATRIX=stencil2d:6x5", "FIND=worst")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.browser.open(Path(done.stdout.removeprefix("Open in a browser: ").strip()))
        self.assertEqual(self.look("runs.map(run => run.name)"), ["csr_scalar", "csr_vector"])
        self.says("lanes 0 to 29 load values")
        for words, message in (
            ((), 'give one or two kernels: KERNELS="csr_scalar'),
            (["KERNELS=nope"], "no kernel has the name 'nope'"),
            (["KERNELS=ell,dia,hyb"], "two kernels fit beside each other"),
        ):
            done = make(*words, "MATRIX=stencil2d:4x3")
            self.assertNotEqual(done.returncode, 0)
            self.assertRegex(done.stderr, f"error: .*{message}")

    def test_what_other_warps_left_is_shown(self):
        self.opens(
            "stencil2d:16x16", ["segscan_shuffle"], hash="#kernel=segscan_shuffle&find=giver"
        )
        self.says(
            r"loads? \w+, .* It finds what other warps have left: \w+\[\d+\].* from .*warp \d+\."
        )
        self.opens("stencil2d:16x16", ["lightspmv_warp"], hash="#kernel=lightspmv_warp&find=giver")
        self.says(r"left: row_counter\[0\] from warp 0\.")

    def test_what_travels_between_gpus_is_shown(self):
        tour = tours.read(ROOT / "10_multigpu" / "tour.txt")
        file = self.page(tour.matrix, tour.kernels, tour)
        self.browser.open(file, "#kernel=packed&find=copy")
        self.says("^A copy of 64 bytes goes from x on GPU 1 to the ghost entries of x on GPU 0")
        self.browser.open(file, "#kernel=packed&find=event")
        self.says(r"^An event is recorded on stream \d of GPU 0")
        self.browser.open(file, "#kernel=minimal&find=link")
        self.says("8 lanes store x on GPU 1, over the link", pane=1)
        shown = "panes[1].arrays.filter(a => !a.box.hidden).map(a => a.array.name + a.array.device)"
        self.assertEqual(set(self.look(shown)) & {"x0", "x1", "packed0"}, {"x0", "x1"})

    def test_what_is_uncoalesced_is_found(self):
        """Why csr_scalar moves four bytes per byte needed on a stencil: the worst request says it."""
        self.opens("stencil2d:16x16", ["csr_scalar"], hash="#kernel=csr_scalar&find=worst")
        self.says(
            r"load values, 8 bytes each\. The request touches 32 sectors in 9 lines and uses 256 of 1,024 bytes \(25%\)\. 8 would hold"
        )
        self.look("go(state.axis.length)")
        self.assertEqual(self.look("panes[0].bars.children.length"), 4)
        self.shows(
            "3.92", "document.querySelector('[data-name=\"moved / needed\"]').cells[2].textContent"
        )

    def test_what_is_wrong_is_where_it_opens(self):
        self.opens("stencil2d:4x3", ["past_the_end"], program=test_watch.BROKEN)
        self.says("^Line 2[89]: .*lane 11")
        self.assertRegex(
            self.look("document.querySelector('.failed').textContent"),
            r"^broken\.cu:29, block \(0,0,0\), thread \(11,0,0\): reads 8 bytes",
        )

    def test_a_tour_of_any_run(self):
        for matrix, kernels in (
            ("powerlaw:60x60,nnz=400", ["csr_scalar"]),
            ("dense:3x70", ["segscan_block", "segscan_shuffle"]),
            ("stencil2d:9x7", ["atomic_coo"]),
        ):
            self.opens(matrix, kernels)
            titles = self.look("data.tour.map(stop => stop.title)")
            self.assertEqual(
                len([title for title in titles if title.endswith("The first request")]),
                len(kernels),
            )
            self.assertGreaterEqual(len(titles), 4 * len(kernels))
            self.look("showStop(0)")
            for stop in range(len(titles)):
                self.shows(
                    self.look(f"data.tour[{stop}].event"),
                    "runs[state.focus].moments[momentOf(state.focus)].event",
                )
                self.assertNotRegex(self.look("$('tour').textContent"), "undefined|NaN")
                self.look("[...$('tour').querySelectorAll('button')][1].click()")

    def test_predictions_are_counted(self):
        self.opens("stencil2d:16x16", ["csr_scalar"])
        self.browser.press("p", "ArrowRight")
        self.says(r"^Line 28: 32 lanes load row_offsets, 4 bytes each\. How many sectors")
        self.assertEqual(self.look("panes[0].arrays.map(a => a.says.textContent).join('')"), "")
        self.look(
            "[...panes[0].sentence.querySelectorAll('button')].find(b => b.textContent === '4').click()"
        )
        self.says("^4 is right. Line 28: all 32 lanes load row_offsets")
        for _ in range(8):  # each time something that has not been asked
            self.browser.press("ArrowRight")
            if not self.look("panes[0].asked"):
                continue
            self.shows(
                4,
                "new Set([...panes[0].sentence.querySelectorAll('button')].map(b => b.textContent)).size",
            )
            self.browser.press("1")
        self.assertRegex(self.look("$('quiz').textContent"), r"^predict: [1-9] of [4-9] right$")
        self.browser.press("p")
        self.assertEqual(self.look("$('quiz').textContent"), "predict")

    def test_steps_to_barriers_and_to_what_is_new(self):
        self.opens("stencil2d:8x8", ["segscan_block"])
        stops = {}
        for grain in ("request", "news", "phase"):
            self.look(f"$('grain').value = '{grain}'; go(0)")
            stops[grain] = self.look(
                "(() => { let n = 0; while (state.tick < state.axis.length - 1) { step(1); ++n; } return n; })()"
            )
        self.assertGreater(stops["request"], 4 * stops["news"])
        self.assertEqual(
            stops["phase"] - 1,
            self.look("runs[0].moments.filter(m => m.kind === 'barrier').length"),
        )

    def at_size(self, width, height):
        size = {**browser.PHONE, "width": width, "height": height}
        self.browser.call("Emulation.setDeviceMetricsOverride", **size)
        self.addCleanup(self.browser.call, "Emulation.clearDeviceMetricsOverride")

    def box(self, element):
        """left, top, right and bottom, in pixels from the window's corner."""
        return self.look(
            f"(({{left, top, right, bottom}}) => [left, top, right, bottom])({element}.getBoundingClientRect())"
        )

    def test_lanes_memory_and_the_bar_are_on_one_screen(self):
        one = self.page("stencil2d:16x16", ["csr_scalar"]).replace(self.scratch / "one.html")
        pages = (one, self.page("stencil2d:16x16", ["csr_scalar", "csr_vector"]))
        for (width, height), file in itertools.product(((1366, 768), (390, 844)), pages):
            self.at_size(width, height)
            self.browser.open(file)
            self.assertEqual(self.look("[state.tick, $('tour').hidden]"), [0, True])
            self.assertRegex(self.look("$('where').textContent"), "^step 1 of ")
            for act in ("step(1)", "$('worst').click()", "go(state.axis.length - 2)"):
                self.look(act)
                shown = (
                    range(self.look("panes.length")) if width > 700 else [self.look("state.focus")]
                )
                bar = self.box("$('bar')")
                for number in shown:
                    lanes = self.box(f"panes[{number}].lanesCard")
                    memory = self.box(f"panes[{number}].memory.parentNode")
                    case = (width, file.name, act, lanes, memory, bar)
                    for left, top, right, bottom in (lanes, memory, bar):
                        self.assertGreater(right - left, 300, case)
                        self.assertGreaterEqual(min(left, top), 0, case)
                        self.assertLessEqual(right, width, case)
                        self.assertLessEqual(bottom, height, case)
                    self.assertGreater(memory[3] - memory[1], 180, case)
                    for part in (lanes, memory):  # nothing lies below the bar
                        self.assertTrue(part[1] >= bar[3] or part[3] <= bar[1], case)
                    touched = f"panes[{number}].arrays.find(a => !a.box.classList.contains('idle'))"
                    if self.look(f"Boolean({touched})"):
                        self.assertGreaterEqual(self.box(f"{touched}.box")[1], memory[1], case)
                        self.assertLess(self.box(f"{touched}.canvas")[1], memory[3], case)
            self.look("$('worst').click()")
            self.says("touches 32 sectors")

    def test_no_width_overflows(self):
        tour = tours.read(ROOT / "10_multigpu" / "tour.txt")
        for matrix, kernels, tour in (
            ("stencil2d:16x16", ["csr_scalar"], None),
            ("stencil2d:16x16", ["csr_scalar", "csr_vector"], None),
            (tour.matrix, tour.kernels, tour),
        ):
            self.opens(matrix, kernels, tour)
            self.look("go(40); $('more').click(); showStop(1)")
            for width in (320, 390, 600, 683, 701, 768, 900, 901, 1000, 1100, 1280, 1400):
                self.at_size(width, 800)
                wide = "new Promise(done => requestAnimationFrame(() => done(document.documentElement.scrollWidth)))"
                self.assertEqual(self.look(wide), width, kernels)

    def test_a_phone_shows_one_panel_of_one_kernel(self):
        file = self.page("stencil2d:16x16", ["csr_scalar", "csr_vector"])
        self.at_size(400, 800)
        self.browser.open(file)
        visible = (
            "[...document.querySelectorAll('.card[data-panel]')].filter(c => c.checkVisibility())"
        )
        for number, name in itertools.product((0, 1), self.look("PANELS")):
            self.look(f"$('kernels').children[{number}].click()")
            self.look(f"[...$('panels').children].find(b => b.textContent === '{name}').click()")
            self.shows([name], f"[...new Set({visible}.map(c => c.dataset.panel))]")
            self.assertTrue(self.look(f"{visible}.every(c => panes[{number}].box.contains(c))"))
            self.assertEqual(self.box("$('bar')")[3], 800)  # stepping stays in reach

    def test_what_the_numbers_mean_is_written_beside_them(self):
        self.opens("stencil2d:6x5", ["csr_scalar"])
        meanings = self.look("[...panes[0].totals.rows].slice(1).map(r => r.cells[3].textContent)")
        self.assertEqual(len(meanings), 9)
        self.assertTrue(all(len(meaning) > 10 for meaning in meanings), meanings)

    def test_a_live_page_keeps_its_choices_in_the_address(self):
        """With a module in the place of live/package.py's, whose run is a recorded one that it renames."""
        found = watch.record(test_watch.SPMV, "stencil2d:6x5", ["csr_vector_8"])
        names = ["csr_scalar", *(f"csr_vector_{lanes}" for lanes in (2, 4, 8, 16, 32))]
        module = {
            "script": f"""const trace = {json.dumps(found[0])};
              onmessage = ({{data: {{number, args}}}}) => {{
                if (!args) return;
                const after = word => args[args.indexOf(word) + 1];
                trace.kernel.name = after("--kernel");
                trace.matrix.name = after("--matrix");
                trace.precision = after("--precision");
                postMessage({{number, out: "", err: "", text: JSON.stringify(trace), milliseconds: 1}});
              }};""",
            "wasm": "",
            "kernels": [{"name": name, "step": 3, "idea": ""} for name in names],
        }
        file = self.scratch / "live.html"
        file.write_text(watch.page(found, [], live="live.js"), encoding="utf-8")
        (self.scratch / "live.js").write_text(
            f"var SPMV_LIVE = {json.dumps(module)}; dispatchEvent(new Event('spmv-live'));"
        )
        self.browser.open(file)
        ran = "new Promise(done => { const wait = setInterval(() => { if ($('live').dataset.ran > %d) { clearInterval(wait); setTimeout(() => done($('about').textContent + ' ' + runs[0].name + ' ' + state.tick), 200); } }, 20); })"
        self.look(
            """(([kernel, , , , matrix, precision]) => {
              kernel.value = "csr_vector"; precision.value = "f32"; precision.onchange();
              matrix.value = "power law"; matrix.onchange();
              const [lanes, , size] = document.querySelectorAll("#live input[type=range]");
              lanes.value = 3; size.value = 100; size.oninput();
            })(document.querySelectorAll("#live select"))"""
        )
        self.look(ran % 0)
        self.look("go(7)")
        before, address = self.look(ran % 0), self.look("location.hash")
        self.assertRegex(before, r"^powerlaw:100x100,nnz=800: .* f32 csr_vector_8 7$")
        self.browser.open(file, address)
        self.assertEqual(self.look(ran % 0), before)
        self.at_size(390, 844)  # where the controls are folded
        self.browser.open(file, address)
        self.look(ran % 0)
        self.assertLess(self.box("panes[0].memory")[3], 844)
        for unfold in ("$('live').open", "$('live').open = true"):
            self.look(unfold)
            self.assertEqual(self.look("document.documentElement.scrollWidth"), 390)
