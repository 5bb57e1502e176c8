"""Hostile submissions for step 03.

Each is a directory, an archive or something that is neither, as a student could hand it in. None may get a point
that it does not deserve without a flag, harm another submission, or end the grading.
"""

import io
import os
import tarfile
import zipfile
import zlib
from pathlib import Path

from exercises import ROOT, write_files
from submissions import TOO_MUCH

GRADED, KERNEL = "03_csr_vector", "csr_vector.cuh"
FIRST = "  const int row_begin = "
TOP = "template <int lanes_per_row"
INCLUDE = "#include <cuda_runtime.h>\n"
WRITES_42 = "  if (lane == 0) y[row] = T{42};\n  return;\n"


def right():
    return (ROOT / GRADED / KERNEL).read_text(encoding="utf-8")


def edit(old, new):
    text = right()
    if old not in text:
        raise AssertionError(f"the kernel has no '{old}' any more: mend the test")
    return text.replace(old, new, 1)


def in_kernel(code, top="", include=""):
    """The right kernel with something in it, before all else."""
    text = edit(FIRST, f"  {code}\n{FIRST}").replace(TOP, f"{top}\n{TOP}", 1)
    return text.replace(INCLUDE, INCLUDE + include, 1)


def at_top(code):
    return in_kernel("", top=code)


ONE = """template <typename A> struct One { A v; };
template <typename A> __device__ One<A> one_of(A v, int n) { return n > 0 ? one_of(v, n - 1) : One<A>{v}; }"""


# What meets them: a flag, the compiler, or the result.
FLAGGED, BROKEN, WRONG, UNREADABLE = (
    "look at it: csr_vector.cuh:|does not compile",
    "does not compile",
    "wrong on|did not end|ended",
    "cannot be read|none of",
)
SYSTEM_CALL = "a system call that no kernel makes"
OUTSIDE = "reads outside of the local or shared array"

# The word of the stack that holds the kernel's return address; what is to be done with it follows.
AT_RETURN_ADDRESS = "volatile long near = 0; volatile long* volatile there = &near; volatile long* p = there; for (int i = 0; i < 64; ++i) if (p[i] == (long)__builtin_return_address(0)) { "

# name: (text of csr_vector.cuh, what the remark says)
KERNELS = {
    # System calls.
    "exit": lambda: (in_kernel("exit(0);", include="#include <cstdlib>\n"), FLAGGED),
    "fork": lambda: (
        in_kernel("while (true) fork();", include="#include <unistd.h>\n"),
        SYSTEM_CALL,
    ),
    "socket": lambda: (
        in_kernel("socket(2, 1, 0);", include="#include <sys/socket.h>\n"),
        SYSTEM_CALL,
    ),
    # Calls that no name shows.
    "function_pointer_in_template": lambda: (
        in_kernel(
            "call_at(+[] {}, 0x401000);",
            top="template <typename F> __device__ void call_at(F, long a) { std::bit_cast<F>(a)(); }",
        ),
        FLAGGED,
    ),
    # Stacks that end in another thread's.
    "stack_jumped": lambda: (
        in_kernel(
            "far_away(row);",
            top="""template <typename A> __device__ A many(A a, A b, A c, A d, A e, A f, A g, A h) { return a > 0 ? many(a - 1, b, c, d, e, f, g, h) + h : g; }
template <typename A> __device__ A far_away(A n) { volatile char near[1 << 17]; volatile A got = many(A{1}, n, n, n, n, n, n, n); near[got & 1] = 1; return got; }""",
        ),
        "128 KiB of stack",
    ),
    "stack_overwritten": lambda: (
        in_kernel(
            "long near = 0; long* volatile somewhere = &near; long* p = somewhere; for (int i = 0; i < 24; ++i) p[i] = 0;"
        ),
        "stack frame",
    ),
    "return_address": lambda: (
        in_kernel(AT_RETURN_ADDRESS + "p[i] = p[i] + 5; break; }"),
        "to a return address",
    ),
    # Accesses that are not observed.
    "remembered": lambda: (in_kernel("static T last; last = 1;"), "which would outlive the launch"),
    # An allocation is open to accesses once one was observed; these are not.
    "through_result": lambda: (
        in_kernel("*(One<T>*)(y + row) = one_of(T{1}, 1);", top=ONE),
        "writes 'y'",
    ),  # inlined, and so observed
    "through_array_cast": lambda: (
        in_kernel(
            "T near; y[row] = reinterpret_cast<const T (&)[1l << 40]>(near)[values - &near];"
        ),
        OUTSIDE,
    ),
    "through_union": lambda: (
        in_kernel(
            "union { long number; T* pointer; } both; both.number = 0x500000l + 8 * rows; *both.pointer = 1;"
        ),
        "writes",
    ),
    "divides_by_zero": lambda: (
        in_kernel("y[row] = T(7 / (row - row)); return;"),
        "divides an integer by zero",
    ),
    "through_printf_own": lambda: (
        in_kernel(AT_RETURN_ADDRESS + 'printf("%hhn", (char*)(p + i)); break; }'),
        "to a return address",
    ),
    "by_atomic": lambda: (
        in_kernel(
            "unsigned long long near = 0; unsigned long long* volatile there = &near; for (int i = 0; i < 64; ++i) if (there[i] >> 40 == 0x55) atomicAdd(there + i, 5ull);"
        ),
        "a local variable by an atomic",
    ),
    "another_block": lambda: (
        in_kernel("auto& who = row < 0 ? threadIdx : blockIdx; ((uint3&)who).x = 0;"),
        "threadIdx, blockIdx",
    ),
    "empty": lambda: ("", f"not handed in|{BROKEN}"),
    # What takes the compiler, or the program, for ever.
    "template_bomb": lambda: (
        at_top(
            "template <int n> struct Bomb { static constexpr int value = Bomb<n - 1>::value + Bomb<n - 2>::value; };"
        ).replace(FIRST, f"  constexpr int bomb = Bomb<100000>::value;\n{FIRST}"),
        f"{BROKEN}|{FLAGGED}|took too long",
    ),
    "long_error": lambda: (in_kernel("undeclared_" + "b" * 30000 + " = 1;"), BROKEN),
    "for_ever": lambda: (in_kernel("while (row >= 0) {}"), "did not end|ended"),
    "tests_y": lambda: (
        edit(
            "if (lane == 0) y[row]", "if (lane == 0 && (beta != T{0} || y[row] != y[row])) y[row]"
        ),
        WRONG,
    ),
    "set_on_some_paths": lambda: (
        in_kernel("int last; if (row < rows - 1) last = row; if (last == -2) return;"),
        "look at it: csr_vector.cuh:.*'last' may be used uninitialized",
    ),
    "always_42": lambda: (in_kernel(WRITES_42), WRONG),
}


# --- What is no kernel in a directory ---------------------------------------------------------------


def directory(place, name):
    path = Path(place) / name
    path.mkdir()
    return path


def with_right_kernel(place, name):
    shared = "csr_vector_shared.cuh"
    write_files(
        place, {os.path.join(os.fsdecode(name), shared): (ROOT / GRADED / shared).read_bytes()}
    )


def fifo(place):
    os.mkfifo(directory(place, "fifo") / KERNEL)


def link_to(target, name):
    return lambda place: (directory(place, name) / KERNEL).symlink_to(target)


def tarball(name, *members):
    def write(place):
        with tarfile.open(Path(place) / name, "w:gz") as tar:
            for path, kind, content in members:
                info = tarfile.TarInfo(path)
                info.type, info.linkname = kind, "/dev/zero"
                info.size = len(content)
                tar.addfile(info, io.BytesIO(content))

    return write


def gzip_bomb(place):
    """A tarball of a gigabyte of zeros, and then of what looks like a kernel."""
    packer = zlib.compressobj(9, zlib.DEFLATED, 31)
    info = tarfile.TarInfo("zeros")
    info.size = 1 << 30
    with open(Path(place) / "gzip_bomb.tar.gz", "wb") as file:
        file.write(packer.compress(info.tobuf()))
        for _ in range(1 << 10):
            file.write(packer.compress(bytes(1 << 20)))
        file.write(packer.flush())


def long_path(place):
    """A path of 200 MB in a pax header."""
    with tarfile.open(
        Path(place) / "long_path.tar.gz", "w:gz", format=tarfile.PAX_FORMAT, compresslevel=1
    ) as tar:
        tar.addfile(tarfile.TarInfo("a" * (200 << 20)))


def zip_bomb(place):
    with zipfile.ZipFile(Path(place) / "zip_bomb.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(KERNEL, bytes(64 << 20))


def plain(name, data):
    return lambda place: (Path(place) / name).write_bytes(data)


# name of the submission as the table has it: (what writes it, what the remark says)
OTHERS = {
    "fifo": (fifo, UNREADABLE),
    "link_to_zero": (link_to("/dev/zero", "link_to_zero"), UNREADABLE),
    "link_to_solution": (link_to(str(ROOT / GRADED / KERNEL), "link_to_solution"), UNREADABLE),
    "no_files": (lambda place: directory(place, "no_files"), UNREADABLE),
    "damaged": (plain("damaged.zip", b"PK\3\4 nothing of the kind"), UNREADABLE),
    "devices_in_tar": (
        tarball(
            "devices_in_tar.tgz",
            (KERNEL, tarfile.CHRTYPE, b""),
            (f"a/{KERNEL}", tarfile.FIFOTYPE, b""),
            (f"b/{KERNEL}", tarfile.SYMTYPE, b""),
            (f"c/{KERNEL}", tarfile.LNKTYPE, b""),
        ),
        UNREADABLE,
    ),
    "gzip_bomb": (gzip_bomb, UNREADABLE),
    "zip_bomb": (zip_bomb, UNREADABLE),
    "long_path": (long_path, TOO_MUCH),
}

# Right kernels under names that are none: what they get is full marks.
NAMES = {b"=cmd() \xff\xfe two\nlines": "=cmd() ?? two?lines", b"n" * 255: "n" * 197 + "..."}


def write_attack(name, place, student=None):
    write_files(place, {f"{student or name}/{KERNEL}": KERNELS[name]()[0]})
