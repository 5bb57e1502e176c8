"""Tests of make program: the programs of programs/, and the pass that rewrites launches."""

import os
import re
import subprocess
import sys
import tempfile
import unittest
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from unittest import mock

HERE = Path(__file__).resolve().parent
PRIMER, ROOT = HERE.parent, HERE.parents[2]
sys.path[:0] = [str(PRIMER), str(ROOT / "common/coursework")]

import launches  # noqa: E402
import program  # noqa: E402
from mine import write_if_new  # noqa: E402


def run(source, **settings):
    """(exit status, what it prints) of make program, without make."""
    settings = {f"PROGRAM_{name.upper()}": value for name, value in settings.items()}
    settings |= {"PWD": str(ROOT), "PROGRAM_SOURCE": str(source)}
    how = {"env": {**os.environ, **settings}, "capture_output": True, "text": True}
    done = subprocess.run([sys.executable, str(PRIMER / "program.py")], **how)
    return done.returncode, done.stdout + done.stderr


def wrong_programs():
    """The files of wrong_programs.md."""
    text, place = (HERE / "wrong_programs.md").read_text(encoding="utf-8"), ROOT / "build/bodies"
    for name, source in re.findall(r"(?ms)^## (\w+)\n\n```cpp\n(.*?)^```", text):
        write_if_new(place / f"{name}.cu", source)
        yield place / f"{name}.cu"


ECHO = """__global__ void put(int* a) { *a = 5; }
#include "kernels.cuh"
int main(int count, char** words) {
  int *a, host = 0;
  cudaMalloc(&a, sizeof *a);
  go(a);
  cudaMemcpy(&host, a, sizeof host, cudaMemcpyDeviceToHost);
  printf("%d %s|%s\\n", host, count > 1 ? words[1] : "", count > 2 ? words[2] : "");
  return count > 1 ? 0 : 3;
}
"""


WITH_CUDA_STD = """#include <cuda/std/type_traits>
#include <cuda/atomic>
#include <cstdio>
__global__ void put(int* a) {
  int expected = 0;
  cuda::atomic_ref<int> there(*a);
  there.compare_exchange_strong(expected, cuda::std::is_same_v<int, int> ? 7 : 1);
}
int main() {
  int *a, host = 0;
  cudaMalloc(&a, sizeof *a);
  cudaMemset(a, 0, sizeof *a);
  put<<<1, 1>>>(a);
  cudaMemcpy(&host, a, sizeof host, cudaMemcpyDeviceToHost);
  printf("%d\\n", host);
}
"""


class Programs(unittest.TestCase):
    """Each says in its first line with which status it ends, and part of what it prints."""

    @classmethod
    def setUpClass(cls):
        program.make("program-command")  # compiles what all are linked with

    def test_programs_as_courses_hand_them_out(self):
        files = [*sorted((HERE / "programs").glob("*.cu")), *wrong_programs()]
        with ThreadPoolExecutor(os.cpu_count()) as pool:
            results = list(pool.map(run, files))
        for file, (status, output) in zip(files, results, strict=True):
            with self.subTest(file.stem):
                wanted, text = re.match(r"// says (\d): (.*)", file.read_text()).groups()
                self.assertEqual(status, int(wanted), output)
                self.assertIn(text, output)
                if wanted == "0" and not text.startswith("remark"):
                    self.assertNotIn("remark", output)

    def test_a_path_with_blanks_and_quotes_arguments_and_includes(self):
        with tempfile.TemporaryDirectory() as scratch:
            folder = Path(scratch, "a student's files")
            folder.mkdir()
            header, source = folder / "kernels.cuh", folder / "my program.cu"
            header.write_text("#pragma once\ninline void go(int* a) {\n  put<<<1, 1>>>(a);\n}\n")
            source.write_text(ECHO)
            self.assertEqual(run(source, args="'a b' c"), (0, "5 a b|c\n"))
            self.assertEqual(run(source), (3, "5 |\n"))
            command = ["make", "-s", "program", f"SOURCE={source}", "ARGS=$HOME 'x y'"]
            made = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
            self.assertEqual(made.stdout, "5 $HOME|x y\n", made.stderr)
            header.write_text("void go(int* a) {\n\n  put<<<1>>>(a);\n}\n")
            status, output = run(source)
            self.assertEqual(status, 2)
            self.assertIn("a student's files/kernels.cuh:3: a launch is kernel<<<blocks,", output)

    def test_headers_that_are_not_there(self):
        """Each is refused in a line, also where the compiler knows a toolkit's; its cuda/std/ is used."""
        with tempfile.TemporaryDirectory() as scratch:
            Path(scratch, "cuda_fp16.h").write_text("#error a toolkit's\n")
            source = Path(scratch, "half.cu")
            source.write_text("#include <cuda_fp16.h>\nint main() {}\n")
            with mock.patch.dict(os.environ, CPLUS_INCLUDE_PATH=scratch):
                status, output = run(source)
            self.assertEqual(status, 2)
            self.assertIn("no half precision (cuda_fp16.h): compute in float", output)
            self.assertNotIn("a toolkit's", output)
            source.write_text(WITH_CUDA_STD)
            if (ROOT / "build/cpu/missing/cuda/std").is_symlink():
                self.assertEqual(run(source), (0, "7\n"))

    def test_refusals(self):
        status, output = run("no_such.cu")
        self.assertEqual((status, output), (2, "error: SOURCE=no_such.cu: there is no such file\n"))
        self.assertIn("which program?", run("")[1])


class Launches(unittest.TestCase):
    def rewritten(self, text):
        new, wrong, _words = launches.rewrite(text)
        self.assertEqual(wrong, [], text)
        self.assertEqual(new.count("\n"), text.count("\n"), new)
        return new

    def test_what_is_no_launch_stays(self):
        texts = ('"k<<<1, 1>>>(a)"', 'R"x(k<<<1, 1>>>(a)")x"', "// k<<<1, 1>>>(a)\n")
        texts += ("/* k<<<1,\n1>>>(a) */", "'<' << '<' << '\\''", "A<B<C<int>>> a(1 << 2);")
        for text in (*texts, "1'000 << 2 >> 1", "a.operator<<<char>(b)"):
            self.assertEqual(self.rewritten(text), text)

    def test_launches(self):
        one, two = "k<<<n < 9 ? n : 9, b>>>(a)", "k<<<g, n > 1>>>(a)"
        for text, new in (
            ("k<<<1, 2>>>(a)", "k(a), ::simt::launch(1, 2)"),
            ("k<float, 4><<<1,\n2>>>(a)", "k<float, 4>\n(a), ::simt::launch(1, 2)"),
            ("k<A<B<int>>><<<g, b, 0, s>>>()", "k<A<B<int>>>(), ::simt::launch(g, b, 0, s)"),
            ("if (n) (*f)<<<g, b>>>(a)", "if (n) (*f)(a), ::simt::launch(g, b)"),
            ("k<<<f<A<B<int>>>(3), b>>>(a)", "k(a), ::simt::launch(f<A<B<int>>>(3), b)"),
            ("k<<<g, f<A<B<int>>>(3)>>>(a)", "k(a), ::simt::launch(g, f<A<B<int>>>(3))"),
            (
                f"{two}, {one}",
                "k(a), ::simt::launch(g, n > 1), k(a), ::simt::launch(n < 9 ? n : 9, b)",
            ),
            (f"n ? a : {two}", "n ? a : k(a), ::simt::launch_if_called(g, n > 1)"),
            (
                "template <> __global__ void k(int* a) { *a = 1; }",
                "template <> __attribute__((noinline)) void k(int* a) {"
                ' ::simt::kernel([=](::simt::OnDevice) mutable { *a = 1; }); asm volatile(""); }',
            ),
            ("__global__ void k(int* a);", "__attribute__((noinline)) void k(int* a);"),
        ):
            self.assertEqual(self.rewritten(text), new)

    def test_mistakes(self):
        for text, said in (
            ("k<<<1>>>(a);", "a launch is kernel<<<blocks, threads per block"),
            ("k<<<1, 1>>>;", "a launch is kernel<<<blocks, threads per block"),
            ("k<<<1, 1, 0, s, 5>>>(a);", "there are 5 arguments between"),
            ("+<<<1, 1>>>(a);", "there must be a kernel's name"),
            ("\n\ncudaMallocManaged(&a, 4);", "cudaMallocManaged: the CPU backend has no unified"),
        ):
            _, wrong, _ = launches.rewrite(f'# 7 "mine.cu"\n{text}')
            self.assertEqual(wrong[0][:2], ("mine.cu", 7 + text.count("\n")))
            self.assertIn(said, wrong[0][2])


class Differences(unittest.TestCase):
    def test_lines_in_another_order_and_sums_in_another_order_are_alike(self):
        self.assertEqual(program.differing_lines("a\nb 1\n", "b 1\na\n", False), ([], []))
        self.assertEqual(program.differing_lines("s 1.00001", "s 1.00002", False), ([], []))
        self.assertEqual(program.differing_lines("s 1.1", "s 1.2", False), (["s 1.1"], ["s 1.2"]))
        self.assertEqual(program.differing_lines("1.1 ms", "7.2 ms", True), ([], []))
        self.assertEqual(program.differing_lines("PASS", "FAIL", True), (["PASS"], ["FAIL"]))


if __name__ == "__main__":
    unittest.main()
