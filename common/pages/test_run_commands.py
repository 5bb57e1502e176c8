"""Tests of what run_commands.py takes for a command, and of what it makes of it."""

import gzip
import re
import shutil
import tempfile
import unittest
import unittest.mock
from pathlib import Path

import run_commands
from check_pages import ROOT

PAGE = """Text with `make list` and `make -C 03_csr_vector
watch`, and `sum += 1`.

    make run  MATRIX=path/to/matrix.mtx.gz     # a comment
    build.mk stage.mk     no command
    plots/python.sh plots/measure/compare.py a \\
      b

<!-- output: make run -->
```text
$ make run
    make nothing
```
<!-- end -->

```cpp
    make(code);
```
"""


class Commands(unittest.TestCase):
    def test_of_a_page(self):
        wanted = ["make run MATRIX=path/to/matrix.mtx.gz"]
        wanted += ["plots/python.sh plots/measure/compare.py a b"]
        wanted += ["make list", "make -C 03_csr_vector watch"]
        self.assertEqual(run_commands.commands_of(PAGE), wanted)

    def test_what_runs_them(self):
        why = run_commands.elsewhere("make list", {"make list"})
        self.assertEqual(why, "make readmes ARGS=--check")
        self.assertIn("GPU", run_commands.elsewhere("make bench SET=full", set()))
        for command, why in (
            ("make format check-format lint", "changes the sources"),
            ("make check ARGS=--write-times", "changes the sources"),
            ("plots/python.sh common/pages/update_readmes.py PAGE.md", "a form"),
            ("make -C STEP check", "a form"),
            ("make handout", "the name of a target"),
            ("make program", "the name of a target"),
        ):
            self.assertIn(why, run_commands.elsewhere(command, set()) or "run here", command)
        for command in (
            "make run MATRIX=cant",
            "make handout STEP=03_csr_vector",
            "make -C 03_csr_vector watch",
        ):
            self.assertIsNone(run_commands.elsewhere(command, set()), command)

    def test_of_what_this_machine_lacks(self):
        browser = run_commands.elsewhere("make browser", set())
        self.assertEqual(bool(browser), shutil.which("em++") is None)

    def test_placeholders_and_targets(self):
        with tempfile.TemporaryDirectory() as scratch:
            names = run_commands.placeholders(Path(scratch))
            ready = run_commands.prepared("make run MATRIX=path/to/matrix.mtx.gz", names, {"run"})
            text = gzip.decompress(Path(ready.split("=")[1]).read_bytes()).decode()
            self.assertRegex(text, "^%%MatrixMarket .* symmetric\n")  # make solve takes no other
            for command, wanted in (
                ("make moment", f"make -C {run_commands.STEP} moment"),
                ("make -C 02_csr_scalar watch", "make -C 02_csr_scalar watch"),
            ):
                self.assertEqual(run_commands.prepared(command, names, {"run"}), wanted)

    def test_what_make_gives_this_script_is_not_the_commands(self):
        with unittest.mock.patch.dict("os.environ", ARGS="--check", MAKEFLAGS="-- ARGS=--check"):
            self.assertEqual(run_commands.run_bash('echo "$ARGS$MAKEFLAGS."').stdout, ".\n")

    def test_what_fails_says_so(self):
        self.assertEqual(run_commands.run("true"), "")
        self.assertIn("exit status 3", run_commands.run("exit 3"))

    def test_exceptions_are_of_use(self):
        pages = [page for page in run_commands.pages(ROOT) if page.suffix == ".md"]
        texts = [page.read_text(encoding="utf-8") for page in pages]
        commands = {command for text in texts for command in run_commands.commands_of(text)}
        self.assertGreater(len(commands), 40)
        for pattern in run_commands.ELSEWHERE:
            fit = any(re.fullmatch(pattern, command) for command in commands)
            self.assertTrue(fit, f"no page has {pattern}")
