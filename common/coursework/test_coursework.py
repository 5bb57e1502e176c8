"""Tests of handouts, of checking and of grading.

make test-coursework COURSEWORK=quick     what CI runs
make test-coursework                      every step as handed out and solved, every mistake
"""

import contextlib
import gzip
import io
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import time
import unittest
import zipfile
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from unittest import mock

sys.path.insert(0, str(Path(__file__).resolve().parent))

import build
import check
import exercises
import flags
import grade
import handout
import kit
import mistakes
import submissions
from exercises import ROOT, TODO, Exercise, ExerciseError, NotJudged, Target, read_step
from sandbox import Limits, Sandbox
from submissions import Unreadable, read_submission, submissions_in

STEPS = sorted(path.parent for path in ROOT.glob("[0-9][0-9]_*/exercise.ini"))
FULL = os.environ.get("COURSEWORK") == "full"
os.environ.pop("MAKEFLAGS", None)  # of `make test-coursework`, whose job server is not passed on

HERE = ROOT / "common/coursework"
GRADED, KERNEL = "03_csr_vector", "csr_vector.cuh"
RIGHT = mistakes.right(GRADED, KERNEL)
KIT = kit.obtain()
os.environ["SPMV_DEPS"] = "none"  # tests install nothing
PYTHON_OF_GRADE = [ROOT / "common/build/python.sh", HERE / "requirements.txt"]
HAS_COPYDETECT = subprocess.run(PYTHON_OF_GRADE, capture_output=True).returncode == 0

try:
    SANDBOX = Sandbox()
except NotJudged as error:
    print(f"grading is tested without a sandbox: {error}", file=sys.stderr)
    SANDBOX = None


def scratch_of(test):
    """A directory that goes after a test, or after all of a class."""
    scratch = tempfile.TemporaryDirectory()
    (test.addClassCleanup if isinstance(test, type) else test.addCleanup)(scratch.cleanup)
    Path(scratch.name).chmod(0o755)  # for the sandbox's user
    return Path(scratch.name)


class Scratch(unittest.TestCase):
    def setUp(self):
        self.directory = scratch_of(self)


def ran(*words, **options):
    return subprocess.run(words, capture_output=True, text=True, **options)


def script(name, *words, **options):
    """Runs a program of this directory."""
    return ran(sys.executable, HERE / name, *words, **options)


def make(place, *words, status=0):
    done = ran("make", "-C", place, "BACKEND=cpu", *words)
    assert done.returncode == status, done.stdout + done.stderr
    return done


@contextlib.contextmanager
def runner_with(step, files):
    """The runner of a step with files {name: text} in the place of its own, and what build.py says."""
    with tempfile.TemporaryDirectory() as scratch:
        course, out = Path(scratch) / "course", Path(scratch) / "out"
        check.lay_out(step, ROOT / step.directory, course, files)
        out.mkdir()
        request = {"course": course, "step": step.directory, "out": out, "kit": KIT}
        yield out / "objects/runner", build.Build({**request, "files": step.files()}).run()


def judged(step, exercise, runner, **how):
    return check.judge(step, exercise, KIT / "judge", [runner], **how)


# --- What is handed in that is no submission ------------------------------------------------------


def with_right_kernel(place, name):
    file = ROOT / GRADED / "csr_vector_shared.cuh"
    exercises.write_files(place, {os.path.join(os.fsdecode(name), file.name): file.read_bytes()})


def inside(make):
    """A directory with what make() makes in the place of the kernel."""
    return lambda path: (path.mkdir(), make(path / KERNEL))


def tarball(path, *members):
    with tarfile.open(path, "w:gz") as tar:
        for name, kind, content in members:
            info = tarfile.TarInfo(name)
            info.type, info.linkname = kind, "/dev/zero"
            info.size = len(content)
            tar.addfile(info, io.BytesIO(content))


def gzip_bomb(path):
    """A tarball of a gigabyte of zeros, and then of what looks like a kernel."""
    info = tarfile.TarInfo("zeros")
    info.size = 1 << 30
    with gzip.open(path, "wb") as file:
        file.write(info.tobuf())
        for _ in range(1 << 10):
            file.write(bytes(1 << 20))


def long_path(path):
    """A path of 200 MB in a pax header."""
    with tarfile.open(path, "w:gz", format=tarfile.PAX_FORMAT, compresslevel=1) as tar:
        tar.addfile(tarfile.TarInfo("a" * (200 << 20)))


def zip_bomb(path):
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(KERNEL, bytes(64 << 20))


KINDS = {"": tarfile.CHRTYPE, "a/": tarfile.FIFOTYPE, "b/": tarfile.SYMTYPE, "c/": tarfile.LNKTYPE}
DEVICES = [(f"{place}{KERNEL}", kind, b"") for place, kind in KINDS.items()]
OTHERS = {
    "fifo": inside(os.mkfifo),
    "link_to_zero": inside(lambda path: path.symlink_to("/dev/zero")),
    "link_to_solution": inside(lambda path: path.symlink_to(ROOT / GRADED / KERNEL)),
    "no_files": Path.mkdir,
    "damaged.zip": lambda path: path.write_bytes(b"PK\3\4 nothing of the kind"),
    "devices_in_tar.tgz": lambda path: tarball(path, *DEVICES),
    "gzip_bomb.tar.gz": gzip_bomb,
    "zip_bomb.zip": zip_bomb,
    "long_path.tar.gz": long_path,
}
# Right kernels under names that are none: what they get is full marks.
NAMES = {b"=cmd() \xff\xfe two\nlines": "=cmd() ?? two?lines", b"n" * 255: "n" * 197 + "..."}


# --- Exercises and handouts -----------------------------------------------------------------------


class Exercises(unittest.TestCase):
    def test_every_step_from_02_to_09_has_some(self):
        self.assertEqual([d.name[:2] for d in STEPS], [f"{n:02}" for n in range(2, 10)])

    def test_marks_hints_and_kernels_fit(self):
        for directory in STEPS:
            step = read_step(directory)
            headers = {str(p.relative_to(directory)): p for p in directory.rglob("*.cuh")}
            marked = {n for n, p in headers.items() if exercises.taken_out(p.read_text())}
            self.assertEqual(marked, set(step.files()))
            for exercise in step.exercises:
                with self.subTest(step=step.directory, exercise=exercise.name):
                    self.assertEqual(exercise.points(), 100)
                    self.assertTrue(exercise.targets)
                    hints = iter(exercise.hints)
                    for name in exercise.files:
                        text = headers[name].read_text()
                        text = exercises.with_holes(text, exercise.name, hints)
                        self.assertIn(f"{TODO} {exercise.name})", text)
                    self.assertIsNone(next(hints, None), "a hint without a hole")
                    for target in exercise.targets:
                        self.assertIn(target.kernel, exercise.kernels)
                        self.assertTrue(target.reason)
            self.assertIn("add_kernel", (directory / "stage.cu").read_text())

    def test_marks(self):
        text = "a\n  // exercise: begin\n  b\n  // exercise: end\nc\n"
        self.assertEqual(exercises.without_marks(text), "a\n  b\nc\n")
        self.assertEqual(exercises.taken_out(text), ["  b"])
        hint = "what\n1. hint\n2. another\n   line"
        self.assertEqual(
            exercises.with_holes(text, "e", iter([hint])),
            "a\n  // TODO (exercise e): write this. (make hint)\n  // what\nc\n",
        )
        self.assertEqual(exercises.hints_of(hint), ("what", ["hint", "another line"]))
        for bad in ("// exercise: begin\n", "// exercise: end\n", "// exercise: begin\n" * 2):
            with self.assertRaises(ExerciseError):
                exercises.split(bad)
        with self.assertRaises(ExerciseError):
            exercises.with_holes(text, "e", iter([]))

    def test_bad_ini_is_refused(self):
        path = scratch_of(self) / "exercise.ini"
        with self.assertRaisesRegex(ExerciseError, "has no exercise.ini"):
            read_step(path.parent)
        exercise = "[step]\ntitle = t\ngoal = g\n[e]\nfiles = a\nkernels = k\nlevel = l\ntask = t\n"
        for text in (
            "no section",
            exercise,
            f"{exercise}correct = 120\nsafe = -20\n",
            "[step]\ntitle = t\n[e: t]\nkernel = k\nmatrix = m\ncounter = no such\nat_most = 1\n",
        ):
            path.write_text(text)
            with self.assertRaisesRegex(ExerciseError, "exercise.ini|e: t"):
                read_step(path.parent)

    def test_counters(self):
        fields = "line space requests lanes sectors ideal_sectors addresses bank_passes".split()
        where = {"file": "a/k.cuh", "array": "values", "access": "load"}
        rows = (
            (7, "global", 2, 32, 9, 8, 16, 0),
            (8, "global", 2, 32, 11, 2, 16, 0),
            (9, "shared", 2, 64, 0, 0, 64, 6),
        )
        record = {"nnz": 128, "lines": [{**where, **dict(zip(fields, row))} for row in rows]}

        def target(name, array="values"):
            return Target("t", "k", "m", name, array, "load", 1.0, None, 5, "because")

        for name, value in (
            ("sectors per request", 5),
            ("lanes per request", 16),
            ("lanes on one address", 2),
            ("bytes per nonzero", 5),
            ("lanes per nonzero", 0.5),
            ("bank passes per request", 3),
        ):
            self.assertEqual(exercises.counter(target(name), record), value)
        self.assertIsNone(exercises.counter(target("sectors per request", "y"), record))
        found = target("sectors per request")
        self.assertEqual(exercises.worst_line(found, record), "k.cuh:8")
        none, not_counted = "makes no loads of values", "wrong on m"
        for value, said in ((5, "k.cuh:8"), (None, none), (check.NOT_COUNTED, not_counted)):
            self.assertFalse(found.met(value))
            self.assertIn(said, check.verdict_on_target(check.Measured(found, value, "k.cuh:8")))

    def test_matrices_of_targets_are_drawn_from_the_seed(self):
        drawn = exercises.drawn
        self.assertEqual(drawn("fem:1000,block=3", 1), "fem:1000,block=3")
        self.assertRegex(drawn("fem:1000,block=3", 7), r"^fem:1(?!000)\d\d\d,block=3")
        self.assertNotEqual(drawn("stencil2d:60x60", 500), drawn("stencil2d:60x60", 900))


class OwnKernel(Scratch):
    """KERNEL=mine.cuh: mine.py."""

    step = ROOT / GRADED

    def mine(self, file, step=step, place=None):
        return script("mine.py", step, file, place or self.directory, self.directory / "out")

    def version(self, text):
        file = self.directory / "mine.cuh"
        file.write_bytes(text if isinstance(text, bytes) else text.encode())
        return self.mine(file)

    def checked(self):
        return script("check.py", self.step, "--kernel", self.directory / "mine.cuh").stderr

    def test_it_takes_the_place_of_the_step_s_file(self):
        self.assertRegex(self.checked(), "^error: .*No such file")
        done = self.version("namespace spmv { __global__ void csr_scalar_kernel() {} }")
        for said in (done.stderr, self.checked()):
            self.assertRegex(
                said,
                r"^error: \S+/mine\.cuh defines no kernel of 03_csr_vector .*; .*csr_vector_kernel \(csr_vector\.cuh\)",
            )
        done = self.version(RIGHT)
        copy = Path(done.stdout.strip())
        self.assertEqual((done.returncode, done.stderr, copy.name), (0, "", "stage.cu"))
        text = (copy.parent / KERNEL).read_text(encoding="utf-8")
        mine = (self.directory / "mine.cuh").resolve()
        self.assertTrue(text.startswith(f'#line 1 "{mine}"\n'))  # by which messages name it

    def test_what_the_host_compiler_defines_is_copied_too(self):
        step = ROOT / "08_formats_ell_hyb_dia"
        copies = [Path(line) for line in self.mine(step / "ell.cuh", step, step).stdout.split()]
        self.assertEqual([copy.name for copy in copies], ["stage.cu", "stage.cpp"])
        for copy in copies:
            self.assertIn("namespace spmv::mine {", copy.read_text(encoding="utf-8"))

    def test_two_versions_do_not_meet(self):
        places = set()
        for name, text in (("a", ""), ("b", ""), ("a", "// changed\n")):
            file = self.directory / f"{name}.cuh"
            file.write_text(text + RIGHT, encoding="utf-8")
            places.add(Path(self.mine(file).stdout.strip()).parents[1])
        self.assertEqual(len(places), 3)
        self.assertEqual({path.parent for path in places}, {self.directory / "out"})

    def test_a_kernel_that_the_step_cannot_launch(self):
        right = RIGHT
        head = r"^error: \S+/mine\.cuh:\d+: csr_vector_kernel is (.*), and the step launches template <int lanes_per_row, typename T> \(int rows, "
        both, one = "template <int lanes_per_row, typename T>", "template <typename T>"
        for old, new, shown in (
            ("T alpha, const T* x, T beta, T* y", "const T* x, T* y", "const T* x, T* y)"),
            (
                "int rows, const int* row_offsets",
                "const int* row_offsets, int rows",
                "template <int",
            ),
            (both, one, one),
        ):
            spaced = r"\s+".join(map(re.escape, old.split()))
            done = self.version(re.sub(spaced, new, right, count=1))
            self.assertRegex(done.stderr, head)
            self.assertIn(shown, done.stderr)
            self.assertEqual(done.stderr.count("\n"), 1)
        for old, new in (
            ("const int* row_offsets", "const int* __restrict__ offsets /* , */"),
            ("typename T", "class Real = double"),
            ("int rows", "const Index rows"),
        ):
            text = right.replace(old, new, 1)
            text = re.sub(r"\bT\b", "Real", text) if "Real" in new else text
            self.assertEqual(self.version(text).stderr, "")
        said = self.version(right.replace("spmv", "mine")).stderr
        self.assertRegex(said, "^error: .* has no 'namespace spmv {'")

    def test_encodings(self):
        """One answer of all commands: what a compiler reads is read, and UTF-16 is refused with file and line."""
        right, dos = RIGHT, RIGHT.replace("\n", "\r\n").encode()
        windows = "// größer, \u2013\n".encode("cp1252") + right.encode()
        for data in (b"\xef\xbb\xbf" + right.encode(), dos, windows):
            done = self.version(data)
            self.assertEqual((done.returncode, done.stderr), (0, ""))
        for encoding in "utf-16", "utf-16-le", "utf-16-be":
            done = self.version(right.encode(encoding))
            for said in (done.stderr, self.checked()):
                self.assertRegex(said, r"^error: \S+/mine\.cuh:1: the file .*; save it as UTF-8$")
            both = {"a.cuh": right.encode(encoding), "b.cuh": windows}
            texts, unread = exercises.readable(both)
            self.assertEqual(list(texts), ["b.cuh"])
            self.assertEqual(texts["b.cuh"].splitlines()[0], "// größer, \u2013")
            self.assertRegex(unread["a.cuh"], "^a.cuh:1: the file .*; save it as UTF-8$")

    def test_paths_with_blanks_quotes_and_dollars(self):
        """What each command hands to the shell is one word, as it was typed."""
        place = self.directory / "it's a $HOME"
        place.mkdir()
        paths = {"MATRIX": place / "my matrix.mtx", "KERNEL": place / "my kernel.cuh"}
        matrix = "%%MatrixMarket matrix coordinate real general\n1 1 1\n1 1 1\n"
        paths["MATRIX"].write_text(matrix)
        paths["KERNEL"].write_text(RIGHT)
        own = f"-C {GRADED}"
        commands = ["run", "info", "watch", f"{own} run", f"{own} watch"]
        commands = [(words, "MATRIX") for words in commands]
        for words, name in [*commands, (f"{own} run", "KERNEL"), (f"{own} check", "KERNEL")]:
            with self.subTest(words, name=name):
                done = ran(
                    *f"make -n BACKEND=cpu {words}".split(), f"{name}={paths[name]}", cwd=ROOT
                )
                quoted = str(paths[name]).replace("'", r"'\''")
                self.assertTrue(f"'{quoted}'" in done.stdout, done.stderr[-500:])
                self.assertEqual(done.stdout.count(place.name), 0)  # not as it is

    def test_a_file_that_the_step_does_not_use(self):
        step = shutil.copytree(self.step, self.directory / GRADED)
        (step / "mine.cuh").write_text("namespace spmv { __global__ void mine_kernel() {} }")
        self.assertRegex(
            self.mine("mine.cuh", step, step).stderr,
            r"^error: \S+/mine\.cuh defines no kernel of 03_csr_vector \(it has mine_kernel\); ",
        )


class Checks(Scratch):
    def test_reports_name_elements(self):
        launch = " (launch.hpp:9: launching a kernel: an illegal memory access was encountered (cudaErrorIllegalAddress))"
        where = "k.cuh:36, block (0, 0, 0), thread (1, 0, 0): "
        same = "reads 4 bytes, 6 bytes into 'x', that was"
        far = "reads 8 bytes at an address that is 1074528 bytes into 'values', which has 1074528"
        race = "race: writes 8 bytes, 16 bytes into shared 'sums', which thread"
        for bytes_, elements in (
            (far, "reads 'values'[134316] of 134316"),
            (race, "race: writes shared 'sums'[2], which thread"),
            (same, same),
        ):
            said = check.tidy(f"kernel k<2, double> at {where}{bytes_}{launch}")
            self.assertEqual(said, f"k at {where}{elements}")
        stuck = ", block (0,0,0): deadlock: thread (1,0,0) waits at __syncthreads at k.cuh:3"
        self.assertEqual(check.tidy(f"kernel k<A<2> >{stuck}{launch}"), f"k{stuck}")

    def test_a_race_is_told_in_sentences(self):
        self.assertEqual(check.sentences("k: deadlock; a"), "k: deadlock; a")
        said = check.sentences("k: race: a, b; both c: d; use e")
        self.assertEqual(said, "k: race: a, b.\nBoth c: d.\nUse e")

    def test_what_a_process_said_before_it_aborted(self):
        oops = "terminate called after throwing 'Oops'"
        smashed = "it wrote past the objects of a function's stack frame"
        for said, told in (
            (f'>&2 echo "{oops}"', f"it says: {oops}"),
            (">&2 echo '*** stack smashing detected ***: terminated'", smashed),
            (":", "it called abort()"),
        ):
            words = ["bash", "-c", f"{said}; kill -ABRT $$"]
            with tempfile.TemporaryFile() as errors:
                end = check.how_it_ended(subprocess.Popen(words, stderr=errors), errors)
            self.assertEqual(end, (f"it ended with signal 6: {told}", False))

    def test_what_was_found_stands_when_the_time_is_up(self):
        """The page of a kernel with a race that exceeds its time limit names both."""
        what = "kernel k at k.cuh:3, block (0, 0, 0), thread (1, 0, 0): race: reads 'y'"
        race, late = {"kind": "error", "right": True, "what": what}, "it did not end in time"
        exercise = read_step(ROOT / GRADED).exercises[0]
        result = check.Result(exercise, tried=4, right=3, found=[race], ended=late)
        both = rf"UNSAFE +k at k.cuh:3.*race: reads 'y'\n +{late}"
        self.assertRegex(check.explain(result), both)
        result.found = []
        self.assertRegex(check.explain(result), rf"UNSAFE +{late}")

    def test_a_second_check_waits_for_the_first(self):
        lock = ROOT / "build/some_check.lock"
        with kit.alone("some_check"):
            self.assertEqual(ran("flock", "-n", lock, "true").returncode, 1)
        self.assertEqual(ran("flock", "-n", lock, "true").returncode, 0)
        lock.unlink()

    def test_only_answers_of_the_build_are_taken(self):
        good = '{"flags": [], "broken": {}, "built": true}'
        self.assertEqual(check.read_build(good), ([], {}, True))
        for bad in ("", "no JSON", "[]", "{}", good.replace("[]", "1"), '{"failure": "why"}'):
            with self.assertRaises(NotJudged):
                check.read_build(bad)


class Flags(Scratch):
    def compiled(self, number, text):
        """The object of a file as a step's kernels are compiled."""
        source, out = self.directory / f"{number}/stage", self.directory / f"{number}/out"
        exercises.write_files(source, {"stage.cu": '#include "a.cuh"\nint last;\n', "a.cuh": text})
        out.mkdir()
        build.compile_sources(KIT, source, out, f"{out}/stage.cu.o")
        return [out / "stage.cu.o"]

    def test_what_is_flagged(self):
        def found(number, text):
            objects, files = self.compiled(number, text), {"/stage/a.cuh": "a.cuh"}
            return flags.flags_of(objects, KIT / "runner.a", files, lambda: [])

        cases = [case for case in mistakes.FILES if case.violates != mistakes.BROKEN]
        with ThreadPoolExecutor() as pool:
            every = list(pool.map(found, range(len(cases)), [case.edits[0][1] for case in cases]))
        for case, got in zip(cases, every):
            with self.subTest(case.name):
                said = "\n".join(flag.describe() for flag in got)
                self.assertEqual(bool(got), case.violates == mistakes.FLAGGED, said)
                self.assertRegex(said, f"(?m)^{case.says}")

    def test_what_is_not_linked(self):
        cases = [case for case in mistakes.FILES if case.violates == mistakes.BROKEN]
        self.assertEqual(len(cases), 3)
        for number, case in enumerate(cases):
            with self.subTest(case.name):
                said = flags.refused(self.compiled(number, case.edits[0][1]))
                self.assertIn(case.says, said)

    def test_assembly_is_found_and_nothing_silences_the_compiler(self):
        text = '# 1 "x/stage/a.cuh"\n// asm\nint basm(1);\nasm volatile("");\n# 1 "x/simt/b.hpp"\nasm("");\n'
        found = flags.assembly_in(text, {"/stage/a.cuh": "a.cuh"})
        self.assertEqual([(flag.line, flag.construct) for flag in found], [(3, "'asm'")])
        for line in (
            "#pragma GCC diagnostic ignored",
            " # pragma  clang diagnostic push",
            "%:pragma GCC optimize(0)",
            "#\\\npragma GCC system_header",
            '#line 7 "b.hpp"',
            '# 1 "b.hpp" 3',
        ):
            lines = "\n" * line.count("\n")
            self.assertEqual(flags.unsilenced(f"a;\n{line}\nb;"), f"a;\n{lines}\nb;")
        for line in ("#pragma unroll", "#pragma GCC unroll 4", "#pragma once", "#define line 3"):
            self.assertEqual(flags.unsilenced(line), line)

    def test_functions_that_take_objects_by_value(self):
        for name, takes in (
            ("double spmv::f<double>(spmv::One<double>, int)", True),
            ("spmv::Own spmv::f<int>(int)", True),
            ("spmv::f(double const*, unsigned long)", False),
            ("spmv::g(std::pair<int, int>&)", False),
            ("int spmv::apply<int (*)(int)>(int (*)(int), int)", False),
            ("simt::f(simt::Lane)", False),
        ):
            self.assertEqual(flags.takes_objects(name), takes, name)


class Handouts(Scratch):
    def handed_out(self, step):
        return handout.write_handout(step, self.directory), self.directory / step.directory

    def test_every_step_is_handed_out_compiles_and_gives_nothing_away(self):
        """Without a warning: with the kit's headers, which are compiled, and one step with the handout's own common/."""
        private = r"answers|sandbox|grade|handout\.py|mistakes|attacks|submissions|cases"
        for directory in STEPS:
            with self.subTest(step=directory.name):
                step = read_step(directory)
                tarball, place = self.handed_out(step)
                self.assertEqual(handout.leaks(place, step), [])
                self.assertGreater(len(handout.solution_lines(step)), 2)
                with tarfile.open(tarball) as tar:
                    names = {member.name for member in tar if member.isfile()}
                files = (path for path in place.rglob("*") if path.is_file())
                self.assertEqual(names, {str(p.relative_to(self.directory)) for p in files})
                self.assertFalse([name for name in names if re.search(private, name)])
                for exercise in step.exercises:
                    for name in exercise.files:
                        text = (place / step.directory / name).read_text()
                        self.assertIn(f"{TODO} {exercise.name})", text)
                        self.assertNotIn("exercise: begin", text)
                text = (place / "README.md").read_text()
                for heading in ("What to write", "How to test", "How it is graded", "Questions"):
                    self.assertIn(f"## {heading}\n", text)
                out = self.directory / "objects" / step.directory
                words = [f"SOURCES={place / step.directory}", f"TO={out}", out / "stage.cu.o"]
                make(HERE, *words, "CXXFLAGS=-O2 -g1 -fsyntax-only -Werror -Wno-unused")
        with_setup(place)
        compiled = place / f"build/cpu/{step.directory}/stage.cu.o"
        make(place / step.directory, "CXXFLAGS=-O0 -Werror", compiled)

    def test_the_same_tarball_every_time(self):
        places = (self.directory / str(i) for i in (1, 2))
        step = read_step(STEPS[0])
        self.assertEqual(*[handout.write_handout(step, place).read_bytes() for place in places])

    def test_a_leak_is_found(self):
        step = read_step(ROOT / GRADED)
        place = self.handed_out(step)[1]
        line = "//sum+=__shfl_down_sync( 0xffffffffu, sum,distance, lanes_per_row);\n"
        exercises.write_files(place, {"x/notes.txt": line})
        self.assertEqual([where for where, _ in handout.leaks(place, step)], ["x/notes.txt:1"])

    def test_a_moved_handout_compiles_what_is_in_it(self):
        """As handed out, it says where to begin; solved, it is right; moved, copied over by an older file and broken, it is not."""
        place = self.handed_out(read_step(ROOT / GRADED))[1]
        kernel = place / GRADED / KERNEL
        begin = rf"MISSING  not written yet(?s:.*)Next: write csr_vector: {GRADED}/{KERNEL}:\d+"
        self.assertRegex(self.check(place).stdout, begin)
        kernel.write_text(RIGHT)
        done = self.check(place)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertIn("right    on all", done.stdout)
        times = r"time     (csr_vector_32 on \S+): (.*)\n +the step's own kernel: (.*)\n"
        self.assertRegex(done.stdout, times)
        moved = place.rename(self.directory / "moved")
        kernel = moved / GRADED / KERNEL
        unset = "a variable that is set on some paths"
        unset = next(case for case in mistakes.MISTAKES[GRADED] if case.name == unset)
        kernel.write_text(unset.apply(RIGHT).replace("k < row_end", "k < row_end - 1"))
        os.utime(kernel, (0, 0))
        done = self.check(moved)
        self.assertEqual(done.returncode, 1)
        wrong = r"WRONG    csr_vector\w* on (?s:.*)Next: make csr_vector right"
        self.assertRegex(done.stdout, wrong)
        self.assertRegex(done.stdout, rf"FLAG +{KERNEL}:\d+: {unset.says}")  # as make grade says it

    def check(self, place):
        """`make check` of a handout, with the repository's kit, which has the same sources."""
        code = f"import check, kit; kit.obtain = lambda: check.Path('{KIT}'); check.main()"
        words = [sys.executable, "-c", code, place / GRADED, "csr_vector"]
        return ran(*words, cwd=with_setup(place) / "common/coursework")

    def test_nothing_is_overwritten(self):
        step = read_step(STEPS[0])
        place = self.directory / step.directory
        place.mkdir()
        (place / "mine").write_text("work")
        with self.assertRaisesRegex(ExerciseError, "make learn works there.*or remove it"):
            self.handed_out(step)
        self.assertEqual([p.name for p in place.iterdir()], ["mine"])


def with_setup(place):
    """A handout that looks for no libraries."""
    (place / "build").mkdir(exist_ok=True)
    shutil.copyfile(ROOT / "build/setup-cpu.mk", place / "build/setup-cpu.mk")
    return place


# --- The sandbox ----------------------------------------------------------------------------------


@unittest.skipUnless(SANDBOX, "no bubblewrap here")
class InTheSandbox(unittest.TestCase):
    def setUp(self):
        directory = scratch_of(self)
        self.course, self.out = directory / "course", directory / "out"
        for place in (self.course, self.out):
            place.mkdir()
            SANDBOX.own(place)

    def run_it(self, script, **limits):
        mounts = [(self.course, "/course", False), (self.out, "/out", True)]
        status, text, errors = SANDBOX.run(["bash", "-c", script], mounts, Limits(**limits))
        return status, text + errors

    def test_what_it_may_and_what_is_not_there(self):
        self.assertEqual(self.run_it("echo here > /out/a && echo said; exit 3"), (3, "said\n"))
        self.assertEqual((self.out / "a").read_text(), "here\n")
        for script in (
            f"cat {ROOT}/{GRADED}/csr_vector.cuh",
            "cat /etc/passwd",
            "echo x > /course/a",
            "test -w /proc/sys/kernel/core_pattern",
            "echo x > /usr/a",
            "echo x > /a",
            "exec 3<>/dev/tcp/127.0.0.1/22",
            f"kill -0 {os.getpid()}",
            "env | grep -q USER",
            "tail -n +3 /proc/net/dev | grep -qv 'lo:'",
        ):
            self.assertNotEqual(self.run_it(script)[0], 0, script)
        self.run_it("setsid sleep 4242 & disown; exit 0")
        self.assertNotIn("sleep 4242", ran("ps", "-eo", "args").stdout)

    def test_limits(self):
        self.assertIn(self.run_it("while :; do :; done", seconds=1)[0], (-24, -9))
        self.assertNotEqual(self.run_it("head -c 1M /dev/zero > /out/a", output=1 << 16)[0], 0)
        self.assertLessEqual((self.out / "a").stat().st_size, 1 << 16)
        large = "/usr/bin/python3 -c 'x = bytearray(1 << 30)'"
        self.assertNotEqual(self.run_it(large, bytes=200 << 20)[0], 0)


# --- Submissions ----------------------------------------------------------------------------------


class Submissions(Scratch):
    step = read_step(ROOT / GRADED)

    def zipped(self, path, **members):
        path.parent.mkdir(parents=True, exist_ok=True)
        with zipfile.ZipFile(path, "w") as archive:
            for name, text in members.items():
                archive.writestr(name, text)

    def test_only_the_kernels_are_taken_wherever_they_are(self):
        shared, large = "csr_vector_shared.cuh", "x" * (submissions.LARGEST_FILE + 1)
        members = {
            "../../csr_vector.cuh": "outside",
            "x/03_csr_vector/csr_vector.cuh": "right place",
            "x/03_csr_vector/test.cu": "its own test",
            "x/common/build/stage.mk": "its own harness",
            f"../{shared}": large,
        }
        self.zipped(self.directory / "one.zip", **members)
        texts = [(name, tarfile.REGTYPE, text.encode()) for name, text in members.items()]
        tarball(self.directory / "one.tar.gz", *texts, (shared, tarfile.SYMTYPE, b""))
        place = self.directory / "one"
        (place / "deep").mkdir(parents=True)
        (place / "deep" / KERNEL).write_text("right place")
        (place / shared).symlink_to("/etc/passwd")
        for name in ("one.tar.gz", "one.zip", "one"):
            found = read_submission([self.directory / name], self.step)
            self.assertEqual(found, {KERNEL: b"right place"})
        self.assertEqual(len(list(self.directory.iterdir())), 3)
        (place / "deep" / KERNEL).write_text(large)
        with self.assertRaisesRegex(Unreadable, "larger than 1 MiB"):
            read_submission([place], self.step)

    def test_what_is_one(self):
        for name in ("ann", ".git", "__MACOSX"):
            (self.directory / name).mkdir()
        for name in ("bob.tar.gz", "bob.zip", "cy.tgz", "notes.txt"):
            (self.directory / name).write_text("")
        os.mkfifo(self.directory / "fifo.zip")
        found, passed_over = submissions_in(self.directory, self.step)
        self.assertEqual([name for name, _ in found], ["ann", "bob.tar.gz", "bob.zip", "cy"])
        self.assertEqual(passed_over, ["fifo.zip", "notes.txt"])

    def test_downloads_as_they_come_and_names_as_people_leave_them(self):
        """Moodle's directory with an archive in it, Canvas's names, Gradescope's and GitHub's directories; Windows' paths,
        .txt, copies, directories with a dot, and loose files of one upload."""
        for path in (
            "Ann Lee_4711_assignsubmission_file_/kernels.zip",
            "leebob_123_456_kernels.zip",
            "leecy_LATE_124_457_kernels.zip",
        ):
            self.zipped(self.directory / path, **{"work/csr_vector-1.cuh": RIGHT})
        for path in (
            "submission_99/csr_vector.cuh",
            "spmv-03-dan/csr_vector (1).cuh",
            ".hidden/csr_vector.cuh",
            "eve_77_assignsubmission_file_/eve_1_2_csr_vector-3.cuh",
            "leedan_1_2_csr_vector.cuh",
            "csr_vector.cuh",
            "leedan_1_3_csr_vector_shared.cuh",
        ):
            exercises.write_files(self.directory, {path: RIGHT})
        names = (
            "work\\03_csr_vector\\csr_vector.cuh",  # as Windows writes it
            "csr_vector.cuh.txt",
            "csr_vector 2.cuh",
            "csr_vector copy.cuh",
            "Copy of csr_vector.cuh",
            "csr_vector copy 3.cuh",
            "csr_vector(1).cuh.txt",
        )
        for number, name in enumerate(names):
            info = zipfile.ZipInfo("x")
            info.filename = name
            with zipfile.ZipFile(self.directory / f"{number}.zip", "w") as archive:
                archive.writestr(info, RIGHT)
        found, passed_over = submissions_in(self.directory, self.step)
        self.assertEqual(passed_over, [])
        systems = "Ann Lee 4711,leebob 123,leecy 124,submission_99,spmv-03-dan,eve 77,.hidden"
        students = {*map(str, range(7)), *systems.split(","), "leedan 1", self.directory.name}
        self.assertEqual({name for name, _ in found}, students)
        for student, paths in found:
            self.assertEqual(read_submission(paths, self.step)[KERNEL], RIGHT.encode(), student)

    def test_a_file_of_another_name_is_known_by_its_kernels(self):
        right, place = RIGHT, self.directory / "one"
        wanted = {KERNEL: right.encode()}
        members = {
            "a/csr_vector_final.cu": right,
            "a/csr_vector.cuh": exercises.given_files(self.step, ROOT / GRADED)[KERNEL],
            "a/stage.cu": "csr_vector_kernel<2>(1);",
        }
        self.zipped(self.directory / "one.zip", **members)
        self.assertEqual(read_submission([self.directory / "one.zip"], self.step), wanted)
        place.mkdir()
        (place / "solution v2.cuh").write_text(right)
        self.assertEqual(read_submission([place], self.step), wanted)
        (place / "old.cuh").write_text(right.replace("sum", "total"))
        several = "no file is named csr_vector.cuh, and several define its kernels: old.cuh, solution v2.cuh"
        with self.assertRaisesRegex(Unreadable, several):
            read_submission([place], self.step)
        (place / KERNEL).write_text(right)
        self.assertEqual(read_submission([place], self.step), wanted)

    def test_names_of_pages_and_cells_that_are_no_formulas(self):
        taken = set()
        asked = ("a/b", "A?b", "a_b", "..", "x" * 300, "\u202ex")
        names = [submissions.file_name(name, taken) for name in asked]
        self.assertEqual(len({name.lower() for name in names}), len(names))
        for name in names:
            self.assertRegex(name, r"^[\w ,@+-][\w .,@+-]{0,90}$")
        for text in ("=cmd()", "+1", "-1", "@a", "\ta"):
            self.assertEqual(grade.cell(text), f"'{text}")
        self.assertEqual(grade.cell("Ann"), "Ann")

    @unittest.skipUnless(HAS_COPYDETECT, "no copydetect here")
    def test_similar_submissions_are_reported(self):
        """A copy with other names is, and the repository's own kernel; what was handed out is not."""
        place = self.directory / "submissions"
        another = (ROOT / "06_pcsr/csr_adaptive.cuh").read_text()
        for student, text in (
            ("ann", RIGHT.replace("row_begin", "first")),
            ("bob", another),
            ("dan", another.replace("sum", "total")),
            ("cy", exercises.given_files(self.step, ROOT / GRADED)[KERNEL]),
        ):
            exercises.write_files(place, {f"{student}/{KERNEL}": text})
        grader = grade.Grader(self.step, KIT, None, Sandbox(trusted=True), 7)
        grades = [
            grade.Grade(student, files=read_submission(paths, self.step))
            for student, paths in submissions_in(place, self.step)[0]
        ]
        grade.report_similar(grades, grader, self.directory)
        pair = r"(?s)Test file: <i>(.*?)/csr_vector.cpp.*?Reference file: <i>(.*?)/csr_vector.cpp"
        found = re.findall(pair, (self.directory / "similar.html").read_text())
        alike = {("reference", "submissions/ann"), ("submissions/bob", "submissions/dan")}
        self.assertEqual({tuple(sorted(pair)) for pair in found}, alike)

    def test_points(self):
        a = Target("a", "k", "m", "lanes per request", "x", "load", None, 8.0, 20, "")
        both = [a, replace(a, name="b", at_least=16.0, points=10)]
        exercise = Exercise("e", [], ["k"], [], False, "", "", [], 50, 20, both)

        def points(right, wrong=(), ended="", value=10.0, of=10, **more):
            more["targets"] = [check.Measured(t, value) for t in exercise.targets]
            found = list(wrong), ended
            return check.Result(exercise, of, right, of, right, *found, **more).points()

        self.assertEqual(points(10), (50, 20, 20))
        self.assertEqual(points(8), (20, 20, 20))
        self.assertEqual(points(5), (12, 10, 10))
        self.assertEqual(points(4), (10, 6, 6))
        self.assertEqual(points(2), (5, 0, 0))
        for right in range(122):  # no step that one matrix more makes
            more = sum(points(right + 1, of=123)) - sum(points(right, of=123))
            self.assertLessEqual(more, 3)
        race = {"kind": "order", "kernel": "k", "matrix": "m", "right": True, "what": ""}
        self.assertEqual(points(9, [race]), (22, 0, 20))
        self.assertEqual(points(10, ended="signal"), (50, 0, 20))
        self.assertEqual(points(10, value=None), (50, 20, 0))
        self.assertEqual(check.Result(exercise).points(), (0, 0, 0))
        self.assertEqual(check.Result(exercise, missing="x").points(), (0, 0, 0))
        self.assertEqual(points(10, withheld=True), (50, 0, 0))
        self.assertEqual(points(10, forged=True), (0, 0, 0))

    def test_few_warps(self):
        """A target with a limit for its busiest warp is missed where few warps do the work on the largest matrix."""
        target = Target("t", "k", "m", "requests", "x", "load", 9.0, None, 5, "because", 30)
        self.assertTrue(check.Measured(target, 5, "k.cuh:3", 20).met())
        self.assertTrue(check.Measured(target, 5, "k.cuh:3", 30).met())
        few = check.Measured(target, 5, "k.cuh:3", 31)
        self.assertFalse(few.met())
        self.assertIn("Few threads", check.verdict_on_target(few))
        self.assertEqual(check.unevenness({"steps": 25, "mean_steps": 9}), "")
        uneven = check.unevenness({"steps": 36, "mean_steps": 9})
        missed = check.Measured(target, 5, "k.cuh:3", 20, uneven)
        self.assertFalse(missed.met())
        self.assertIn("makes 36 requests, a warp on average 9", check.verdict_on_target(missed))

    def test_an_atomic_on_an_input_is_a_load(self):
        row = {"file": "k", "line": 1, "array": "x", "space": "global", "requests": 3, "lanes": 3}
        rows = [{**row, "access": access} for access in ("load", "atomic", "store")]
        target = Target("t", "k", "m", "requests", "x", "load", 9.0, None, 5, "because")
        self.assertEqual(exercises.counter(target, {"nnz": 1, "lines": rows}), 6)


# --- Failures of what grades ------------------------------------------------------------------------


class NotGraded(unittest.TestCase):
    """A failure of sandbox or judge is said; it is never a grade."""

    step = read_step(ROOT / GRADED)

    def judge(self, runner, program=KIT / "judge", **how):
        check.judge(self.step, self.step.exercises[0], program, runner, **how)

    def test_a_judge_that_ends_gives_no_points(self):
        for program in ("false", "true"):  # without a word, either
            with self.assertRaises(NotJudged):
                self.judge(["true"], shutil.which(program))
        with self.assertRaisesRegex(NotJudged, "did not start"):
            self.judge(["false"])

    def test_a_runner_has_five_times_its_time(self):
        """A machine that is busy gives no other verdict."""
        for runner in (["sleep", "99"], ["sh", "-c", "while :; do :; done"]):
            begin = time.monotonic()
            with self.assertRaisesRegex(NotJudged, "did not start"):
                self.judge(runner, limit_s=1)
            self.assertGreaterEqual(time.monotonic() - begin, 5)

    def test_a_failure_ends_the_run_with_an_error(self):
        scratch = scratch_of(self)
        for student in ("ann", "bob"):
            with_right_kernel(scratch, student)
        output = scratch / "grades"
        words = f"grade.py {GRADED} {scratch} --output {output} --trusted".split()
        bwrap = "bwrap: Creating new namespace failed: Resource temporarily unavailable"
        broken = '{"flags": [], "broken": {"csr_vector_shared.cuh": "no"}, "built": false}'
        with (
            mock.patch.object(sys, "argv", words),
            mock.patch.object(grade, "prepare", return_value=KIT),
            mock.patch.object(grade.os, "cpu_count", return_value=1),
            mock.patch.object(Sandbox, "run", side_effect=[(1, "", bwrap), (0, broken, "")]),
            contextlib.redirect_stderr(io.StringIO()) as took,
            contextlib.redirect_stdout(io.StringIO()) as said,
            self.assertRaises(SystemExit) as ended,
        ):
            grade.main()
        self.assertEqual(ended.exception.code, "error: not graded: ann")
        self.assertRegex(took.getvalue(), r"2 submissions in \d+ min \d+ s")
        why = r"ann +- .*not graded: the build ended with status 1: bwrap"
        self.assertRegex(said.getvalue(), why)
        rows = mistakes.read_grades(output)
        self.assertEqual((rows["ann"]["graded"], rows["ann"]["points"]), ("no", ""))
        self.assertEqual((rows["bob"]["graded"], rows["bob"]["points"]), ("yes", "0"))
        self.assertIn("Not graded.", (output / "ann.txt").read_text())


class SamePoints(unittest.TestCase):
    """In every run, one alone and one beside another; in COURSEWORK=full 10, at most 4 at once."""

    step = read_step(ROOT / "04_atomic_coo")
    exercise = next(e for e in step.exercises if e.name == "atomic_coo")
    file = exercise.files[0]
    text = (ROOT / step.directory / file).read_text()

    def results(self, edit):
        """Of atomic_coo with its atomic addition edited: a Result for each run."""
        text, changes = re.subn(r"atomicAdd\(&y\[(.*)\], (.*)\);", edit, self.text)
        self.assertGreater(changes, 0)
        with runner_with(self.step, {self.file: text}) as (runner, answer):
            self.assertTrue(answer["built"], answer)
            results = []
            for at_once in [1, 2, 3, 4] if FULL else [2]:
                with ThreadPoolExecutor(at_once) as pool:
                    run = lambda _: judged(self.step, self.exercise, runner, seed=7)  # noqa: E731
                    results += pool.map(run, range(at_once))
        for result in results:
            self.assertEqual(result.points(), results[0].points())
            self.assertEqual(check.explain(result), check.explain(results[0]))
        return results[0]

    def test_of_a_race(self):
        """Lanes in lockstep show the value that is lost, and the row that is wrong."""
        result = self.results(r"y[\1] += \2;")
        lost = r"race: reads 'y'.* overwrites at atomic_coo.cuh:\d+ the value .* it is lost"
        self.assertRegex(result.unsafe(), lost)
        row = r"the lanes of a warp in lockstep: row \d+ .*expected"
        self.assertRegex(check.explain(result), row)
        self.assertLess(2 * result.points()[0], result.exercise.correct)

    def test_of_an_exchange_that_is_not_repeated(self):
        result = self.results(
            r"using Bits = std::conditional_t<sizeof(T) == 8, unsigned long long, unsigned>; "
            r"T* const there = &y[\1]; const T old = *there; atomicCAS((Bits*)there, "
            r"__builtin_bit_cast(Bits, old), __builtin_bit_cast(Bits, T(old + \2)));"
        )
        self.assertLess(2 * result.points()[0], result.exercise.correct)
        where = (
            r"Look at atomic_coo_kernel at atomic_coo.cuh:\d+: an atomicCAS .* did not repeat it\."
        )
        self.assertRegex(check.explain(result), where)

    def test_a_remark_costs_nothing(self):
        """Active lanes share one addition, which is right for any set of them."""
        mark = "  // exercise: begin"
        text = self.text.replace(mark, f"  if (__activemask() == 0) return;\n{mark}", 1)
        with runner_with(self.step, {self.file: text}) as (runner, _):
            result = judged(self.step, self.exercise, runner)
        self.assertEqual(sum(result.points()), 100, check.explain(result))
        self.assertEqual(len(result.remarks), 1)
        self.assertIn("  remark   atomic_coo_kernel at atomic_coo.cuh:", check.explain(result))

    def test_of_a_product_that_depends_on_an_address(self):
        """It has the same address in every run."""
        near = r"T near = \2; T* volatile there = &near; "
        result = self.results(near + r"atomicAdd(&y[\1], near + ((long)there >> 12));")
        self.assertEqual(result.wrong()["kind"], "result")


# --- Mistakes, graded -----------------------------------------------------------------------------

# What is graded for every change, one of each kind; COURSEWORK=full grades all.
IN_CI = """one nonzero too many (<=)
__syncwarp() is missing in the loop
one lane adds up the row
one lane copies the row with memcpy
no case for 16 lanes
work by atomics, loads for show
threads that spin
it reads its own memory as a file
a function that is not observed
pasted assembly
a pragma silences the compiler
through a result
a stack that jumps
another return address
a constructor with a priority
always 42
y is tested for NaN
a mask that is asked for, in a loop that lanes leave""".split("\n")


class Grading(unittest.TestCase):
    """Mistakes and attacks as a directory of submissions, graded as `make grade` does."""

    @classmethod
    def setUpClass(cls):
        cls.scratch = scratch_of(cls)
        cls.step = read_step(ROOT / GRADED)
        submissions = cls.scratch / "submissions"
        chosen = [m for m in mistakes.MISTAKES[GRADED] if FULL or m.name in IN_CI]
        cls.exercises = {m: mistakes.write_mistake(m, cls.step, submissions) for m in chosen}
        for name, files in mistakes.honest(GRADED).items():
            exercises.write_files(submissions / name, files)
        for name, write in OTHERS.items():
            write(submissions / name)
        for name in NAMES:
            with_right_kernel(submissions, name)
        words = f"--output {cls.scratch}/grades --seed 7".split()
        words += [] if SANDBOX else ["--trusted"]
        environment = {**os.environ, "TMPDIR": str(cls.scratch)}
        cls.done = script("grade.py", GRADED, submissions, *words, env=environment)
        if (cls.scratch / "grades/grades.csv").exists():
            cls.rows = mistakes.read_grades(cls.scratch / "grades")

    def test_each_mistake_costs_more_than_half_of_what_it_violates(self):
        self.assertGreaterEqual(sum(map(len, mistakes.MISTAKES.values())), 100)
        own = {m: e for m, e in self.exercises.items() if mistakes.is_mistake(m)}
        found = mistakes.judged(own, self.scratch / "grades")
        for step in set(mistakes.MISTAKES) - {GRADED} if FULL else ():
            found |= mistakes.grade_step(step, self.scratch / step, "--seed", "7")
        for mistake, (points, of, page) in found.items():
            with self.subTest(mistake.name, file=mistake.file):
                self.assertLess(2 * points, of, page)
                self.assertRegex(page, mistake.says)

    def test_honest_work_gets_all_points_and_no_flag(self):
        styles = [case for cases in mistakes.CASES.values() for case in cases]
        self.assertGreaterEqual(sum("honest" in case.violates for case in styles), 90)
        for name in mistakes.honest(GRADED):  # all that can stand together is in two exercises
            points, remark = self.rows[name]["points"], self.rows[name]["remark"]
            self.assertEqual((points, remark), ("200" if name == "honest" else "100", ""), name)

    def test_right_kernels_get_all_points_and_no_flag(self):
        """The steps' own; COURSEWORK=full judges those of all steps, and other bodies of honest work."""
        for step in map(read_step, STEPS if FULL else STEPS[:1]):
            own = {name: mistakes.right(step.directory, name) for name in step.files()}
            others = mistakes.honest(step.directory) if FULL else {}
            for name, files in {"own": own, **others}.items():
                with self.subTest(name), runner_with(step, files) as (runner, answer):
                    self.assertEqual((answer["flags"], answer["broken"]), ([], {}))
                    for exercise in (e for e in step.exercises if set(files) & set(e.files)):
                        result = judged(step, exercise, runner, seed=5)
                        self.assertEqual(sum(result.points()), 100, check.explain(result))

    def test_no_cheat_gets_points_without_a_flag(self):
        own = [m for m in self.exercises if not mistakes.is_mistake(m)]
        cheats = [(m, self.scratch / "grades") for m in own]
        for step in set(mistakes.MISTAKES) - {GRADED} if FULL else ():
            place = self.scratch / f"cheats_{step}"
            others = [m for m in mistakes.MISTAKES[step] if not mistakes.is_mistake(m)]
            if others:
                mistakes.grade_step(step, place, "--seed", "7", cheats=True)
            cheats += [(m, place / "grades") for m in others]
        for cheat, grades in cheats:
            with self.subTest(cheat.name):
                row = mistakes.read_grades(grades)[mistakes.slug(cheat)]
                self.assertEqual(row["graded"], "yes", row["remark"])
                page = (grades / f"{mistakes.slug(cheat)[:80]}.txt").read_text()
                self.assertRegex(row["remark"] + page, cheat.says)
                if cheat.violates == mistakes.FLAGGED:
                    self.assertIn("look at it", row["remark"])
                else:
                    # What is wrong only where y is scaled by 0 is right where there is little to do.
                    self.assertLess(int(row["points"]), 10, row["remark"])

    def test_what_cannot_be_read_is_named_and_not_graded(self):
        self.assertEqual(self.done.returncode, 1, self.done.stderr)
        for name in (name.partition(".")[0] for name in OTHERS):
            with self.subTest(name):
                row, unreadable = self.rows[name], "cannot be read|none of"
                self.assertEqual((row["graded"], row["points"]), ("no", ""))
                wanted = submissions.TOO_MUCH if name == "long_path" else unreadable
                self.assertRegex(row["remark"], wanted)
                self.assertIn(name, self.done.stderr)

    def test_who_is_flagged_stands_first(self):
        flagged = ["look at it" in row["remark"] for row in self.rows.values()]
        self.assertEqual(flagged, sorted(flagged, reverse=True))

    def test_strange_names_get_full_marks(self):
        for name in NAMES.values():
            self.assertEqual(self.rows[grade.cell(name)]["points"], "100", name)

    def test_nothing_is_left(self):
        self.assertNotIn(str(self.scratch), ran("ps", "-eo", "args").stdout)
        self.assertFalse(Path("/tmp/canary").exists())

    def test_a_wrong_result_is_drawn(self):
        page = (self.scratch / "grades/csr_vector_always_42.txt").read_text()
        self.assertRegex(page, r"The smallest matrix found(?s:.*)<-- wrong")
        self.assertIn(f"{self.rows['csr_vector_always_42']['points']} of 200 points", page)

    def test_refuses_what_it_cannot_grade(self):
        for step, place, message in (
            (GRADED, self.scratch / "submissions", "bubblewrap is not installed"),
            (GRADED, "/no/such", "no directory of submissions"),
            ("01_sequential", self.scratch, "has no exercise.ini"),
        ):
            done = script("grade.py", step, place, env={**os.environ, "PATH": "/nonexistent"})
            self.assertNotEqual(done.returncode, 0)
            self.assertEqual(done.stderr.count("\n"), 1, done.stderr)
            self.assertIn(message, done.stderr)


# --- Every step --------------------------------------------------------------------------------------


class Compiles(Scratch):
    def test_the_sources_of_a_kit_in_one(self):
        """Without a warning: names of one file clash with those of no other."""
        words = ["-j2", f"KIT={self.directory}", "KIT_CXXFLAGS=-O0 -fsyntax-only -Werror"]
        make(HERE, *words, *(f"{self.directory}/all_of_{part}.o" for part in ("judge", "runner")))


@unittest.skipUnless(FULL, "COURSEWORK=full checks the handout of every step")
class EveryStep(Scratch):
    def test_make_check_as_handed_out_and_solved(self):
        for directory in STEPS:
            with self.subTest(directory.name):
                step = read_step(directory)
                handout.write_handout(step, self.directory)
                place = self.directory / step.directory
                kernels, first = place / step.directory, step.exercises[0]
                begin = f"Next: write {first.name}: {step.directory}/{first.files[0]}:"
                self.assertIn(begin, make(place, "check", status=2).stdout)
                for name in first.files:  # says that it is written, and does nothing
                    text = (kernels / name).read_text().replace(TODO, "DONE (exercise")
                    (kernels / name).write_text(text)
                said = make(kernels, "check", f"ARGS={first.name}", status=1).stdout
                wrong = f"(?s)(WRONG .*expected.*got|UNSAFE).*Next: make {first.name} "
                self.assertRegex(said, wrong)
                for name in step.files():
                    shutil.copyfile(directory / name, kernels / name)
                done = make(place, "check")
                self.assertIn("All is right, safe and within its targets", done.stdout)
                self.assertNotIn("warning", done.stdout + done.stderr)
        make(place, "watch")  # in the last one: it compiles the whole program
        self.assertTrue((place / f"build/watch/{directory.name}.html").exists())


if __name__ == "__main__":
    unittest.main()
