"""The module that runs kernels in a browser: make test-browser. WATCH_SPMV: the native program; LIVE: the folder of the module."""

import gzip
import http.server
import json
import os
import re
import shutil
import subprocess
import tempfile
import threading
import unittest
from pathlib import Path

import browser
import test_watch
import traces
import watch

HERE = Path(__file__).resolve().parent
LIVE = Path(os.environ.get("LIVE", watch.LIVE.parent))
MATRICES = (("stencil2d:12x11", "f64"), ("powerlaw:150x130,nnz=900", "f32"), ("dense:3x70", "f64"), ("fem:20,block=3", "f64"))
MEGABYTE = 1e6
SLOWER = max(1, os.getloadavg()[0])  # on a machine that others use, too
# Kernels of which g++ and clang++ make other accesses; y is the same:
#   csr_vector_shared           clang++ keeps the partial sum of the loop over a row in a register, g++ in shared memory
#   segscan_shuffle, coo, hyb   g++ loads the row index of one lane of the scan once more
#   sell*                       clang++ stores the sum of rows without nonzeros on a path of its own
#   dia_csr                     lanes with rows of other lengths go through the loop over the rest in another order
OF_ITS_COMPILER = re.compile(r"csr_vector_shared|segscan_shuffle|coo|hyb|sell.*|dia_csr")
CLANG = os.environ.get("WATCH_CLANG")  # the native program by clang++, which makes the same accesses of every kernel


def module(*arguments):
    """The program as WebAssembly, under Node."""
    return subprocess.run(["node", "--no-experimental-fetch", HERE / "live/run.js", LIVE, *map(str, arguments)],
                          capture_output=True, text=True, timeout=300)  # fmt: skip


def kernels():
    listed = json.loads(module("--list", "--json").stdout)
    return [kernel["name"] for kernel in listed if not kernel["host"] and kernel["step"] > 0]


@unittest.skipUnless((LIVE / "spmv.js").exists(), "no module here: make browser")
class Module(test_watch.Scratch):
    def test_size(self):
        wasm = (LIVE / "spmv.wasm").read_bytes()
        self.assertLess(len(wasm), 6 * MEGABYTE)
        self.assertLess(len(gzip.compress(wasm)), 2 * MEGABYTE)

    def both(self, *arguments, files=(), native=test_watch.run):
        """(native, module) of a run: what it ends with, and the contents of the files that it writes."""
        done = []
        for number, program in enumerate((native, module)):
            paths = [self.scratch / f"{number}-{name}.jsonl" for name in files]
            for path in paths:
                path.unlink(missing_ok=True)
            options = [word for name, path in zip(files, paths) for word in (f"--{name}", path)]
            result = program(*arguments, *options)
            done.append((result, [path.read_text().splitlines() if path.exists() else [] for path in paths]))
        return done

    def test_every_kernel_computes_and_counts_as_the_native_program(self):
        names = ",".join(name for name in kernels() if not name.endswith("_mistake"))
        for matrix, precision in MATRICES:
            (native, [records, traced]), (here, [records_here, traced_here]) = self.both(
                "--matrix", matrix, "--kernel", names, "--precision", precision, "--workers", "1", files=("json", "trace"))
            self.assertEqual(here.returncode, native.returncode, here.stderr)
            joined, joined_here = by_kernel(records), by_kernel(records_here)
            self.assertEqual(list(joined_here), list(joined))
            for kernel, record in joined.items():
                with self.subTest(matrix=matrix, precision=precision, kernel=kernel):
                    self.compare(record, joined_here[kernel])
            table, table_here = (self.rows(done.stdout) for done in (native, here))
            for kernel, row in table.items():
                if not OF_ITS_COMPILER.fullmatch(kernel.split(" ")[0]):
                    self.assertEqual(table_here[kernel], row, matrix)
            for one, other in zip(map(json.loads, traced), map(json.loads, traced_here)):
                with self.subTest(matrix=matrix, precision=precision, kernel=one["kernel"]["name"]):
                    self.assertEqual(product(other), product(one))
                    self.assertEqual(files_of(other), files_of(one))

    @unittest.skipUnless(CLANG, "no WATCH_CLANG")
    def test_every_kernel_counts_as_by_the_same_compiler(self):
        names = ",".join(name for name in kernels() if not name.endswith("_mistake"))
        for matrix, precision in MATRICES:
            (_, [records]), (_, [records_here]) = self.both(
                "--matrix", matrix, "--kernel", names, "--precision", precision, "--workers", "1", files=("json",),
                native=lambda *words: subprocess.run([CLANG, *map(str, words)], capture_output=True))  # fmt: skip
            traffic, traffic_here = ({name: sums(record) for name, record in by_kernel(lines).items()} for lines in (records, records_here))
            self.assertEqual(traffic_here, traffic, matrix)

    @staticmethod
    def rows(text):
        """The lines of the table, by kernel, and those below it."""
        found = text[text.index("---\n") + 4 :].splitlines()
        return {line[6:].split("  ")[0].strip(): line.split() for line in found if line.strip()}

    def compare(self, one, other):
        """All of a kernel's record but times."""
        for name in set(one) - {"run", "setup_ms", "preprocess_ms", "code", "traffic", "estimates"}:
            self.assertEqual(other.get(name), one[name], name)
        if OF_ITS_COMPILER.fullmatch(one["kernel"]):
            return
        self.assertEqual(sums(other), sums(one))
        for estimate, estimate_here in zip(one.get("estimates", []), other.get("estimates", [])):
            us, us_here = estimate.get("us", 0), estimate_here.get("us", 0)  # of some there is none
            self.assertAlmostEqual(us_here, us, delta=0.01 * us)

    def test_mistakes_are_found(self):
        for name in kernels():
            if not name.endswith("_mistake"):
                continue
            with self.subTest(kernel=name):
                done = module("--matrix", "stencil2d:40x5", "--kernel", name, "--workers", "1")
                self.assertEqual(done.returncode, 1, done.stdout)
                self.assertRegex(done.stdout + done.stderr, r"\.cuh:\d+")

    def test_bad_input_is_refused(self):
        (native, _), (here, _) = self.both("--matrix", "stencil2d:0x", "--kernel", "csr_scalar")
        self.assertEqual((here.returncode, here.stderr), (native.returncode, native.stderr))


def by_kernel(lines):
    """The records of a file."""
    return {record["kernel"]: record for record in map(json.loads, lines) if "verified" in record}


def sums(record):
    return {(t["array"], t["space"], t["access"]): t for t in record.get("traffic", [])}


def files_of(trace):
    """The files in which accesses stand: by addr2line natively, by clang's own notes in the module."""
    places = [trace["places"][i["place"]] for i in trace["instructions"] if i["access"] in traces.ACCESSES]
    return {trace["sources"][file]["file"] for file, _ in places}


def product(trace):
    """What the last stores and atomics left in y, by their bytes."""
    y = {}
    for event in trace["events"]:
        if event[0] not in ("store", "atomic"):
            continue
        instruction = trace["instructions"][event[1]]
        if trace["arrays"][instruction["array"]]["name"] != "y":
            continue
        for address, value in zip(traces.addresses_of(event[3]), event[-1]):
            words = value if isinstance(value, list) else [value]
            for number, word in enumerate(words):
                y[address + 8 * number] = trace["values"][word]
    return y


SCENARIO = """
const wait = (what, ms = 120000) => new Promise((done, fail) => {
  const end = Date.now() + ms, timer = setInterval(() => {
    if (what()) { clearInterval(timer); done(); } else if (Date.now() > end) { clearInterval(timer); fail(new Error("too late: " + what)); }
  }, 5);
});
async function scenario() {
  await wait(() => window.SPMV_LIVE && !$("live").hidden);
  const found = {ready: +document.body.dataset.ready, times: {}, totals: {}};
  const controls = [...$("live").querySelectorAll("select, input")];
  const [kernel, lanes, beside, mistake, matrix, size] = controls;
  let number = 0;
  const after = async (name, change) => {
    change();
    ++number;
    await wait(() => +$("live").dataset.ran === number);
    const totals = runs[0].totals(runs[0].count - 1);
    found.totals[name] = {kernel: runs[0].name, ...totals, wrong: runs[0].kinds.wrong.length};
    found.times[name] = $("live").querySelector(".says").textContent;
  };
  kernel.value = "csr_vector";
  for (const [at, name] of ["csr_scalar", "csr_vector_2", "csr_vector_4", "csr_vector_8", "csr_vector_16", "csr_vector_32"].entries()) {
    await after(name, () => { lanes.max = 5; lanes.value = at; lanes.oninput(); });
  }
  await after("60x60", () => { lanes.value = 3; size.value = 60; size.oninput(); });
  size.value = 16;
  for (const option of mistake.options) {
    if (option.value) await after(option.value, () => { mistake.value = option.value; mistake.onchange(); });
  }
  return found;
}
"""


@unittest.skipUnless((LIVE / "live.js").exists(), "no module here: make browser")
class LivePage(test_watch.Scratch):
    def page(self, extra=""):
        shutil.copyfile(LIVE / "live.js", self.scratch / "live.js")
        found = watch.record(test_watch.SPMV, "stencil2d:16x16", ["csr_scalar"])
        file = self.scratch / "page.html"
        file.write_text(watch.page(found, [], live="live.js").replace("</body>", f"<script>{extra}</script></body>"), encoding="utf-8")
        return file

    def check(self, found):
        """What the page shows is what the module says under Node; of which Module says what is the native program's."""
        self.assertLess(found["ready"], 1000 * SLOWER)
        self.assertLess(max(int(text.removesuffix(" ms")) for text in found["times"].values()), 1000 * SLOWER)
        for name, totals in found["totals"].items():
            kernel = "csr_vector_8" if name == "60x60" else name
            self.assertEqual(totals["kernel"], kernel)
            if name.endswith("_mistake"):
                continue
            size = "60x60" if name == "60x60" else "16x16"
            done = module("--matrix", f"stencil2d:{size}", "--kernel", kernel)
            table = [re.split(r"  +", line.strip()) for line in done.stdout.splitlines()]
            head = next(line for line in table if "moved kB" in line)
            row = next(line for line in table if len(line) > 3 and line[1].split(" ")[0] == kernel)
            wanted = dict(zip(head[2:], row[2:]))
            for column in ("moved kB", "matrix", "x", "stores", "lanes"):
                # (3.625 is 3.63 here and 3.62 there.)
                self.assertAlmostEqual(float(totals[column]), float(wanted[column]), delta=0.003 * float(wanted[column]), msg=(name, column))
        self.assertTrue(any(totals["wrong"] for totals in found["totals"].values()))

    @unittest.skipUnless(browser.find(), "no Chromium here")
    def test_in_chromium(self):
        with browser.Browser() as chromium:
            chromium.open(self.page(SCENARIO))
            found = chromium.evaluate("scenario()")
            self.assertEqual(chromium.errors, [])
            self.assertEqual([url for url in chromium.asked if not url.startswith(("file:", "about:", "blob:"))], [])
        self.check(found)

    @unittest.skipUnless(browser.find() and shutil.which("em++"), "no Chromium or emscripten here")
    def test_own_kernel_in_chromium(self):
        mine = self.scratch / "mine.cuh"
        text = (watch.HERE.parents[1] / "02_csr_scalar/csr_scalar.cuh").read_text(encoding="utf-8")
        mine.write_text(text.replace("k < row_end", "k <= row_end"), encoding="utf-8")
        done = subprocess.run(["make", "-s", "-C", watch.HERE.parents[1] / "02_csr_scalar", "BACKEND=cpu", "watch", f"KERNEL={mine}",
                               "MATRIX=stencil2d:6x5"], capture_output=True, text=True)  # fmt: skip
        self.assertEqual(done.returncode, 0, done.stderr)
        page = Path(done.stdout.splitlines()[-1].removeprefix("Open in a browser: "))
        with browser.Browser() as chromium:
            chromium.open(page)
            found = chromium.evaluate(f"""(async () => {{ {SCENARIO}
              await wait(() => window.SPMV_LIVE && !$("live").hidden);
              const [size] = [...$("live").querySelectorAll("input")].slice(1);
              size.value = 9;
              size.oninput();
              await wait(() => +$("live").dataset.ran === 1);
              return runs.map(run => [run.name, run.trace.matrix.name, run.kinds.wrong.length > 0, run.trace.sources.some(source => source.text.includes("k <= row_end"))]);
            }})()""")
            self.assertEqual(chromium.errors, [])
        self.assertEqual(found, [["csr_scalar", "stencil2d:9x9", False, False], ["my_csr_scalar", "stencil2d:9x9", True, True]])

    @unittest.skipUnless(shutil.which("firefox-esr") or shutil.which("firefox"), "no Firefox here")
    def test_in_firefox(self):
        told = []

        class Listener(http.server.BaseHTTPRequestHandler):
            def do_POST(self):
                told.append(self.rfile.read(int(self.headers["Content-Length"])).decode())
                self.send_response(204)
                self.end_headers()

            def log_message(self, *_):
                pass

        server = http.server.HTTPServer(("127.0.0.1", 0), Listener)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        extra = SCENARIO + f"""
          const tell = what => fetch("http://127.0.0.1:{server.server_port}/", {{method: "POST", mode: "no-cors", body: JSON.stringify(what)}});
          addEventListener("error", event => tell({{error: event.message}}));
          scenario().then(tell, error => tell({{error: String(error)}}));"""
        page = self.page(extra)
        with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile:
            process = subprocess.Popen([shutil.which("firefox-esr") or shutil.which("firefox"), "--headless", "--no-remote", "--profile", profile, page.resolve().as_uri()],
                                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)  # fmt: skip
            try:
                for _ in range(1500):
                    if told:
                        break
                    threading.Event().wait(0.2)
            finally:
                process.terminate()
                process.wait(timeout=30)
                server.shutdown()
        self.assertEqual(len(told), 1, told)
        found = json.loads(told[0])
        self.assertNotIn("error", found)
        self.check(found)


if __name__ == "__main__":
    unittest.main()
