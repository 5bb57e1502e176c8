"""Tests of prove_counters.py, on records made up here."""

import contextlib
import io

import prove_counters
from prove_counters import COUNTERS, function_name
from sample_records import Scratch

METRICS = {counter: metrics[0] for counter, metrics in COUNTERS.items()}


def counts(requests, sectors, conflicts=0):
    of = {"launches": 1, "sites": 2, "load requests": requests, "load sectors": sectors}
    of |= {"store requests": 100, "store sectors": 400}
    return {**of, "bank conflicts, loads": conflicts}


class ProveCounters(Scratch):
    def compare(self, counted, measured, loads_in_code=None):
        """What is printed. `measured`: [(kernel name as ncu has it, counts)]"""
        names = [name for name in METRICS if name in next(iter(counted.values()))]
        heads = ["ID", "Kernel Name", *(METRICS[name] for name in names)]
        lines = [heads, [""] * len(heads)]
        for number, (kernel, values) in enumerate(measured):
            lines.append([number, kernel, *(f"{values[name]:,}" for name in names)])
        text = "\n".join(",".join(f'"{cell}"' for cell in line) for line in lines)
        text = f"==PROF== noise\n{text}\n"
        functions = prove_counters.sums_of_ncu(text)
        for function, loads in (loads_in_code or {}).items():
            functions[function]["loads in code"] = loads
        directory = self.root / "GPU" / "counters"
        prove_counters.write(directory / "counted.csv", {("grid", "f64"): counted})
        prove_counters.write(directory / "measured.csv", {("grid", "f64"): functions})
        self.assertEqual(prove_counters.read(directory / "counted.csv"), {("grid", "f64"): counted})
        out = io.StringIO()
        with contextlib.redirect_stdout(out):
            prove_counters.compare(directory)
        return out.getvalue()

    def test_names_are_the_same_however_they_are_written(self):
        for written in (
            "void spmv::csr_vector_kernel<8, double>(int, int const*)",
            "void csr_vector_kernel<(int)8, double>(int, const int *)",
            "csr_vector_kernel<8u, double>",
        ):
            self.assertEqual(function_name(written), "csr_vector_kernel<8,double>")
        for written, name in (
            ("a_kernel<float, true, (Order)2>(int)", "a_kernel<float,1,2>"),
            ("void add_kernel(int)", "add_kernel"),
            ("a_kernel<2, spmv::(anonymous namespace)::Add>(int)", "a_kernel<2,::Add>"),
        ):
            self.assertEqual(function_name(written), name)
        self.assertIsNone(function_name("main"))

    def test_what_agrees_and_what_does_not(self):
        same = ("void spmv::a_kernel<double>(int)", counts(1000, 8000, 500))
        text = self.compare({"a_kernel<double>": counts(1000, 8000, 500)}, [same])
        self.assertIn("1 CUDA functions, 1 runs", text)
        self.assertNotIn("Outside", text)
        self.assertRegex(text, r"load requests +1 +5% +0.00% +100.0% +100.0%")
        self.assertRegex(text, r"all with a limit +5 +0.00% +100.0% +100.0%")
        # Two launches there, two here in one sum.
        stores = {"store requests": 200, "store sectors": 800}
        twice = {**counts(2000, 16000, 1000), "launches": 2, **stores}
        self.assertNotIn("Outside", self.compare({"a_kernel<double>": twice}, [same, same]))

        text = self.compare({"a_kernel<double>": counts(900, 8000, 440)}, [same])
        self.assertRegex(text, r"Outside, 3 values: not explained\n +a_kernel: 3, at most -12.0%")
        counted = {"a_kernel<double>": counts(900, 8000, 500)}
        text = self.compare(counted, [same], {"a_kernel<double>": 8})
        self.assertRegex(text, r"Outside, 2 values: the compiler unrolled")
        noise = {**counts(1000, 8000, 500), "shared loads": 100_000}
        counted = {"a_kernel<double>": {**noise, "bank conflicts, loads": 0}}
        text = self.compare(counted, [("a_kernel<double>(int)", noise)])
        self.assertRegex(text, r"Outside, 1 values: lanes ask for neighbouring words")

    def test_what_is_missing_is_named(self):
        counted = {"a_kernel<double>": counts(1000, 8000), "b_kernel<double>": counts(1000, 8000)}
        text = self.compare(counted, [("a_kernel<double>(int)", counts(1000, 8000))])
        self.assertIn("not measured: b_kernel<double> in grid f64", text)
