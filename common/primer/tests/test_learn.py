"""Tests of the puzzles and of learn.py: make test-learn (LEARN=full: every mistake of solutions.md, too)."""

import json
import os
import pty
import re
import select
import subprocess
import sys
import tempfile
import time
import unittest
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from unittest import mock

HERE = Path(__file__).resolve().parent
PRIMER = HERE.parent
sys.path[:0] = [str(HERE), str(PRIMER)]

import learn  # noqa: E402
from bodies import bodies, said_as_given, with_body  # noqa: E402
from puzzle import Compiled  # noqa: E402

NAMES = sorted(path.stem for path in (PRIMER / "puzzles").glob("*.cu"))


class Scratch(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.directory = Path(scratch.name)

    def written(self, name, text):
        file = self.directory / name
        file.parent.mkdir(exist_ok=True)
        file.write_text(text, encoding="utf-8")
        return file


class Puzzles(Scratch):
    """Every puzzle as it is given, solved, and with mistakes."""

    def variants(self):
        """(puzzle, its text, the exit status, what is said)."""
        full = os.environ.get("LEARN") == "full"
        for name, blocks in bodies().items():
            given = (PRIMER / f"puzzles/{name}.cu").read_text(encoding="utf-8")
            yield name, given, learn.NOT_SOLVED, said_as_given()[name]
            for said, body in blocks if full else blocks[:1]:
                status = learn.NOT_SOLVED if said else learn.SOLVED
                yield name, with_body(name, body), status, said or "  right"

    def test_each_says_what_is_wrong_and_can_be_solved(self):
        self.assertEqual(list(bodies()), NAMES)

        def judged(number, name, text, status, said):
            file = self.written(f"{number}/{name}.cu", text)
            return Compiled(file, f"{name}-{number}").judge()

        variants = list(self.variants())
        with ThreadPoolExecutor(os.cpu_count()) as pool:
            found = list(pool.map(judged, range(len(variants)), *zip(*variants)))
        for (name, _, status, said), (solved, output) in zip(variants, found):
            with self.subTest(name, said=said):
                self.assertEqual(solved, status == learn.SOLVED, output)
                self.assertIn(said, output)

    def test_a_local_that_was_never_set_is_no_solution(self):
        """On a GPU it may be 0 or anything; here it is an enormous number, and the compiler's warning is shown."""
        for name, old, new in (
            ("01_map", "out[i] = 2 * in[i];", "float twice; twice += 2 * in[i]; out[i] = twice;"),
            ("04_neighbours", "float sum = in[i];", "float sum; sum += in[i];"),
            ("09_prefix_sum", "float sum = in[i];", "float sum; sum += in[i];"),
        ):
            body = bodies()[name][0][1]
            self.assertIn(old, body)
            file = self.written(f"{name}.cu", with_body(name, body.replace(old, new)))
            solved, output = Compiled(file, f"{name}-unset").judge()
            self.assertFalse(solved)
            warning = r"WARNING line \d+: '\w+' (is|may be) used uninitialized(?s:.*)WRONG "
            self.assertRegex(output, warning)

    def test_each_has_three_hints_and_says_what_it_is_for(self):
        puzzles = [exercise for exercise in learn.exercises() if isinstance(exercise, learn.Puzzle)]
        self.assertEqual([puzzle.name for puzzle in puzzles], NAMES)
        every = [exercise.name for exercise in learn.exercises()]
        self.assertEqual(every[: every.index("csr_scalar")], NAMES[:11])
        self.assertLess(every.index("ell"), every.index("12_columns"))
        self.assertLess(every.index("12_columns"), every.index("cds"))
        self.assertEqual(every[-1], "13_all_reduce")
        for puzzle in puzzles:
            self.assertEqual(len(puzzle.hints), 3, puzzle.name)
            self.assertTrue(puzzle.after.endswith("."), puzzle.name)


class Learn(Scratch):
    """learn.py as a program, with handouts of its own in `directory`."""

    def environment(self):
        return {**os.environ, "SPMV_HANDOUTS": str(self.directory)}

    def learn(self, *words, status=learn.SOLVED):
        """What it says. It must end with this status."""
        how = {"capture_output": True, "text": True, "input": "", "env": self.environment()}
        done = subprocess.run([sys.executable, str(PRIMER / "learn.py"), *words], **how)
        output = done.stdout + done.stderr
        self.assertEqual(done.returncode, status, output)
        return output

    def test_the_way_through_a_puzzle(self):
        output = self.learn(status=learn.NOT_SOLVED)  # without a terminal: once
        self.assertIn("Now puzzle 1", output)
        file = self.directory / "puzzles/01_map.cu"
        self.assertIn("TODO", file.read_text())
        for number in (1, 2, 3):
            self.assertIn(f"Hint {number} of 3 for 01_map", self.learn("--hint"))
        self.assertIn("A solution: common/primer/tests/solutions.md", self.learn("--hint"))

        file.write_text(file.read_text().replace("// TODO", "out[i] = 2 * in[i]  //"))
        output = self.learn("--once", status=learn.NOT_SOLVED)
        self.assertIn("It does not compile", output)
        self.assertRegex(output, r"01_map.cu:\d+:\d+: .*error: expected")
        file.write_text(file.read_text().replace("in[i]  //", "in[i];  //"))
        self.assertIn("Solved. You can now write a kernel", self.learn("--once"))
        self.assertRegex(self.learn("--list"), r"(?m)^solved  01_map .*\n {8}02_guard ")

    def test_a_session_in_a_terminal(self):
        own, other = pty.openpty()
        how = {"stdin": other, "stdout": other, "stderr": other, "env": self.environment()}
        session = subprocess.Popen([sys.executable, str(PRIMER / "learn.py")], **how)
        self.addCleanup(session.kill)
        os.close(other)

        def says(pattern):
            output, end = "", time.monotonic() + 300
            while not (found := re.search(pattern, output)):
                self.assertLess(time.monotonic(), end, f"no {pattern} in {output}")
                if select.select([own], [], [], 1)[0]:
                    output += os.read(own, 65536).decode()
            return found

        says(r"Now puzzle 1[\s\S]*The TODO is in line[\s\S]*It runs again when you save")
        os.write(own, b"h\n")
        says(r"Hint 1 of 3[\s\S]*when you save")
        solution = with_body("01_map", bodies()["01_map"][0][1])
        (self.directory / "puzzles/01_map.cu").write_text(solution, encoding="utf-8")
        says(r"You can now write a kernel[\s\S]*1 of \d+ solved\. Now puzzle 2[\s\S]*when you save")
        os.write(own, b"w\n")
        page = Path(says(r"Open in a browser: (.*\.html)[\s\S]*when you save")[1])
        self.assertIn("guard_kernel", page.read_text(encoding="utf-8"))
        os.write(own, b"n\n")
        says(r"1 of \d+ solved\. Now puzzle 3[\s\S]*when you save")
        os.write(own, b"q\n")
        self.assertEqual(session.wait(60), 0)
        os.close(own)

    def test_an_exercise_of_a_step_comes_from_its_handout(self):
        self.assertIn("Hint 1 of 4 for csr_scalar", self.learn("--hint", "csr_sc"))
        exercise = next(e for e in learn.exercises() if e.name == "csr_scalar")
        self.assertIn("map rows to threads", exercise.after)

    def test_an_exercise_names_the_reader_s_file_and_what_takes_time(self):
        exercise = next(e for e in learn.exercises() if e.name == "csr_scalar")
        exercise.directory = self.directory
        exercise.files = [self.directory / "02_csr_scalar/csr_scalar.cuh"]
        said = "  UNSAFE   csr_scalar_kernel at csr_scalar.cuh:24, block (0,0,0): reads 'x'[9]\n"
        with mock.patch.object(learn, "make", return_value=(1, said)):
            status, text = exercise.check()
        self.assertEqual(status, learn.NOT_SOLVED)
        self.assertIn(f" at {self.directory}/02_csr_scalar/csr_scalar.cuh:24, block", text)
        with (
            mock.patch.object(learn, "make", return_value=(1, "error: why")),
            mock.patch.object(learn, "say") as say,
            self.assertRaisesRegex(learn.NotJudged, "error: why"),
        ):
            exercise.watch()
        self.assertIn("takes about two minutes", say.call_args[0][0])

    def test_encodings(self):
        file = self.directory / "01_map.cu"
        text = (PRIMER / "puzzles/01_map.cu").read_text(encoding="utf-8")
        file.write_bytes(text.encode("utf-16"))
        wanted = "01_map.cu:1: the file is UTF-16; save it as UTF-8"
        self.assertEqual(Compiled(file).build(), (False, wanted))
        self.assertIn(wanted, Compiled(file).judge()[1])

    def test_puzzles_by_number_and_what_comes_after_the_last(self):
        every, progress = learn.exercises(), learn.Progress()
        for asked, name in (("9", "09_prefix_sum"), ("11", "11_host"), ("01", "01_map")):
            self.assertEqual(learn.choose(every, progress, asked).name, name)
        self.written("puzzles/11_host.cu", with_body("11_host", bodies()["11_host"][0][1]))
        self.written("progress.json", json.dumps({"solved": NAMES[:-1], "hints": {}}))
        following = "Next: read 01_sequential/README.md now, then make learn"
        self.assertIn(following, self.learn("--once", "11"))

    def test_a_loop_that_never_ends_is_named_by_its_line(self):
        body = "  int i = threadIdx.x;\n  while (i >= 0) {\n    i ^= 1;\n  }\n  out[0] = i;\n"
        file = self.written("puzzles/01_map.cu", with_body("01_map", body))
        line = 1 + file.read_text().splitlines().index("  while (i >= 0) {")
        output = self.learn("--once", "1", status=learn.NOT_SOLVED)
        end = "(does not end in time: a loop|a loop without end)"
        self.assertRegex(output, rf"puzzles/01_map.cu:({line}|{line + 1}), .*{end}")

    def test_refusals(self):
        none = self.learn("--once", "no_such", status=learn.UNKNOWN)
        self.assertIn("no exercise begins with 'no_such'; there are 01_map,", none)
        self.written("progress.json", "[")
        said = self.learn("--once", status=learn.UNKNOWN)
        self.assertIn("progress.json cannot be read; delete it", said)
