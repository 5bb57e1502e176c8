#!/usr/bin/env python3
"""Checks the sources against CUDA 12, of which no compiler is at hand but NVRTC: make check-cuda12

    check.py PROGRAM COMPILER FLAG...     exit 1, with the compilers' messages, if something does not compile

Kernels: every header with a __global__ function is compiled by CUDA 12's NVRTC to machine code for each of
ARCHITECTURES, with every instantiation that PROGRAM, the CPU backend's, has. Host code: every source file that
calls CUDA, cuSPARSE or NCCL is read by COMPILER -fsyntax-only with CUDA 12's headers in place of simt's.

Not covered: nvcc's splitting of a file into host and device code, linking, whether anything runs, and the
calls of Thrust and CUB in 05_segmented_scan (WITH_TEMPLATES): neither compiler can read those libraries' kernels.
"""

import ctypes
import multiprocessing
import re
import subprocess
import sys
from pathlib import Path

import nvidia.cuda_cccl
import nvidia.cuda_nvcc
import nvidia.cuda_nvrtc
import nvidia.cuda_runtime
import nvidia.cusparse
import nvidia.nccl

ROOT = Path(__file__).resolve().parents[2]
ARCHITECTURES = ("sm_75", "sm_80", "sm_86", "sm_87", "sm_89", "sm_90")
WITH_TEMPLATES = {ROOT / "05_segmented_scan" / name for name in ("thrust.cu", "cub.cu", "segscan_thrust.cuh", "segscan_cub.cuh")}


def folder(package):
    return Path(next(iter(package.__path__)))


INCLUDES = [folder(p) / "include" for p in (nvidia.cuda_runtime, nvidia.cuda_nvcc, nvidia.cuda_cccl)]
HOST_INCLUDES = [*INCLUDES, folder(nvidia.cusparse) / "include", folder(nvidia.nccl) / "include"]
# NVRTC knows no header of the C++ library; these are what kernels include of it.
STANDARD = {
    "climits": "#include <cuda/std/climits>\n",
    "cstddef": "#pragma once\n#include <cuda/std/cstddef>\nnamespace std {\nusing cuda::std::size_t;\n}\n",
}

# --- Kernels --------------------------------------------------------------------------------------


def kernels_by_header():
    """{header: names of its __global__ functions}"""
    found = {}
    for header in sorted([*ROOT.glob("[0-9][0-9]_*/**/*.cuh"), *ROOT.glob("common/device/*.cuh")]):
        text = re.sub(r"//.*", "", header.read_text(encoding="utf-8"))
        names = re.findall(r"__global__[^;{]*?\b(\w+_kernel)\s*\(", text)
        if names and header not in WITH_TEMPLATES:
            found[header] = names
    return found


def instantiation(symbol):
    """`spmv::name_kernel<...>` of a demangled symbol of a kernel, or None."""
    start = re.search(r"\bspmv::(?:\w+::)*\w+_kernel(?=[<(])", symbol)
    if not start:
        return None
    depth = 0
    for position in range(start.end(), len(symbol)):
        if symbol[position] == "(" and depth == 0:
            return symbol[start.start() : position]
        depth += {"<": 1, ">": -1, "(": 1, ")": -1}.get(symbol[position], 0)
    return None


def instantiations(program):
    """{name of a kernel: its instantiations in the program}"""
    symbols = subprocess.run(["nm", "-C", program], capture_output=True, text=True, check=True).stdout
    found = {}
    for line in symbols.splitlines():
        whole = instantiation(line)
        if whole:
            name = re.search(r"(\w+_kernel)(<|$)", whole)[1]
            found.setdefault(name, set()).add(whole)
    return found


class Nvrtc:
    """CUDA 12's run-time compiler."""

    def __init__(self):
        self.library = ctypes.CDLL(str(folder(nvidia.cuda_nvrtc) / "lib" / "libnvrtc.so.12"))

    def version(self):
        major, minor = ctypes.c_int(), ctypes.c_int()
        self.library.nvrtcVersion(ctypes.byref(major), ctypes.byref(minor))
        return f"{major.value}.{minor.value}"

    def compile(self, header, expressions, architecture):
        """Compiles the instantiations of a header's kernels. Returns NVRTC's messages, or nothing if it did."""
        source = f'#include <cstddef>\n#include "{header}"\n'.encode()
        names = (ctypes.c_char_p * len(STANDARD))(*(name.encode() for name in STANDARD))
        texts = (ctypes.c_char_p * len(STANDARD))(*(text.encode() for text in STANDARD.values()))
        program = ctypes.c_void_p()
        self.check(self.library.nvrtcCreateProgram(ctypes.byref(program), source, b"kernels.cu", len(names), texts, names))
        for expression in expressions:
            self.check(self.library.nvrtcAddNameExpression(program, expression.encode()))
        # -default-device: what nvcc's --expt-relaxed-constexpr allows.
        options = ["--std=c++20", f"--gpu-architecture={architecture}", "-default-device", "-w", f"-I{ROOT / 'common'}",
                   *(f"-I{path}" for path in INCLUDES)]  # fmt: skip
        status = self.library.nvrtcCompileProgram(
            program, len(options), (ctypes.c_char_p * len(options))(*(option.encode() for option in options))
        )
        size = ctypes.c_size_t()
        self.check(self.library.nvrtcGetProgramLogSize(program, ctypes.byref(size)))
        log = ctypes.create_string_buffer(size.value)
        self.check(self.library.nvrtcGetProgramLog(program, log))
        self.check(self.library.nvrtcDestroyProgram(ctypes.byref(program)))
        return log.value.decode() if status else ""

    @staticmethod
    def check(status):
        if status:
            sys.exit(f"error: NVRTC failed with status {status}")


def compile_kernels(work):
    header, expressions, architecture = work
    log = Nvrtc().compile(header, expressions, architecture)
    return log and f"{header.relative_to(ROOT)} for {architecture}:\n{log}"


# --- Host code ------------------------------------------------------------------------------------


def host_files():
    """The sources of the CUDA backend's programs that call CUDA or a library of NVIDIA's."""
    files = []
    for pattern in ("[0-9][0-9]_*/**/*.c*", "common/device/*.c*", "common/harness/*.c*", "common/peers/*.c*"):
        for file in sorted(ROOT.glob(pattern)):
            if file.suffix not in (".cu", ".cpp") or file.name.startswith("test") or file in WITH_TEMPLATES:
                continue
            if file.suffix == ".cu" or re.search(r"\b(cuda|cusparse|nccl)[A-Z]\w*\(", file.read_text(encoding="utf-8")):
                files.append(file)
    return files


def read_host_code(work):
    file, compiler, flags = work
    command = [compiler, "-std=c++20", "-x", "c++", "-fsyntax-only", "-w", "-DSPMV_CUDA", "-DHAVE_NCCL",
               f'-DSPMV_SOURCE_DIR="{ROOT}"', f"-I{ROOT / 'common'}", "-include", Path(__file__).parent / "device_names.hpp",
               *(word for path in HOST_INCLUDES for word in ("-isystem", path)), *flags, file]  # fmt: skip
    done = subprocess.run(command, capture_output=True, text=True)
    return f"{file.relative_to(ROOT)}:\n{done.stderr}" if done.returncode else ""


# --- Both -----------------------------------------------------------------------------------------


def main():
    program, compiler, flags = sys.argv[1], sys.argv[2], sys.argv[3:]
    by_header, built = kernels_by_header(), instantiations(program)
    unused = [name for names in by_header.values() for name in names if name not in built]
    expressions = {header: sorted({e for name in names for e in built.get(name, ())}) for header, names in by_header.items()}
    kernels = [(header, expressions[header], architecture) for architecture in ARCHITECTURES for header in by_header]
    hosts = [(file, compiler, flags) for file in host_files()]
    print(f"{len(kernels)} compilations by NVRTC, {len(hosts)} by {compiler}: some minutes", file=sys.stderr)
    with multiprocessing.Pool() as pool:
        kernel_faults = [fault for fault in pool.imap_unordered(compile_kernels, kernels) if fault]
        host_faults = [fault for fault in pool.imap_unordered(read_host_code, hosts) if fault]
    for fault in kernel_faults + host_faults:
        print(f"error: {fault}", file=sys.stderr)
    for name in unused:
        print(f"error: {name}: {program} has no instantiation of it", file=sys.stderr)
    count = sum(len(e) for e in expressions.values())
    print(f"NVRTC {Nvrtc().version()}: {count} kernels of {len(by_header)} headers for {', '.join(ARCHITECTURES)}: "
          f"{len(kernel_faults)} of {len(kernels)} compilations failed")  # fmt: skip
    print(f"{compiler} with CUDA 12's headers: {len(host_faults)} of {len(hosts)} files with host code failed")
    return 1 if kernel_faults or host_faults or unused else 0


if __name__ == "__main__":
    sys.exit(main())
