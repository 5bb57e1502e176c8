"""The one-pass product from Python: y = alpha A x + beta y for CSR matrices of PyTorch or CuPy, without a build step.

    import spmv_one_pass
    product = spmv_one_pass.OnePass(matrix)     # torch.sparse_csr_tensor or cupyx.scipy.sparse.csr_matrix, on a GPU
    y = product(x)                              # or product(x, alpha, beta, y), which is written and returned
    y = product.transposed(x)                   # of the transpose, by atomics
    product = spmv_one_pass.OnePass(matrix, most_vectors=8)
    Y = product(X)                              # X: as many rows as the matrix has columns, and 2, 4 or 8 columns

NVRTC compiles one_pass.cuh, which has to be beside this file: the one of the repository, or the single one that
amalgamate.py writes. Needs NumPy, cuda-bindings (pip install cuda-bindings[all]) and PyTorch or CuPy; values of
float32 or float64. The plan does in Python what OnePassPlan does in C++.

    python3 spmv_one_pass.py                    checks products of random matrices, and times them
"""

import ctypes
import functools
import sys
from pathlib import Path

import numpy
from cuda.bindings import driver, nvrtc

HEADERS = Path(__file__).resolve().parent

# What a plan asks of the header: sizes, and which path suits the rows.
PLANNING = r"""
#include "one_pass.cuh"
using namespace spmv;
template <typename T>
__global__ void describe_kernel(int* out) {
  using Policy = OnePassPolicy<T>;
  const int values[] = {int(sizeof(Tile)), int(sizeof(PartialSum<T>)), int(sizeof(BlockTileShared<T>)),
                        int(sizeof(BlockTileShared<double>)), int(sizeof(OnePassArguments<T>)),
                        int(sizeof(PlainVectors<T>)), int(sizeof(RowsStatistics)), Policy::kThreads, Policy::kBlocks, kPrepareThreads,
                        kStatisticsBlocks, int(sizeof(SeveralVectors<T, 8>)), SeveralPolicy<T, 8>::kThreads, kTransposedThreads,
                        int(sizeof(SeveralShared<T, 2>)), int(sizeof(SeveralShared<T, 4>)), int(sizeof(SeveralShared<T, 8>)),
                        kSeveralRowsThreads, SeveralPolicy<T, 2>::kLanes, SeveralPolicy<T, 4>::kLanes, SeveralPolicy<T, 8>::kLanes};
  for (int value : values) *out++ = value;
}
template <typename T>
__global__ void plan_kernel(int rows, int cols, int nnz, int resident_blocks, long long l2_bytes, int* out) {
  const OnePassShape shape = one_pass_shape<T>(rows, cols, nnz, resident_blocks, l2_bytes);
  const long long bytes = 4LL * rows + nnz * (4LL + sizeof(T));
  const bool fits = fits_cache(bytes, l2_bytes);
  const bool all_fits = fits_cache(bytes + (1LL * rows + cols) * sizeof(T), l2_bytes);
  const int values[] = {int(shape.tile_items), shape.tile_count, shape.warps_per_block, shape.blocks, fits, !all_fits,
                        rows <= nnz && (fits || rows_may_suit_memory(rows, nnz))};
  for (int value : values) *out++ = value;
}
__global__ void choose_kernel(int count, const RowsStatistics* statistics, int rows, int nnz, bool fits_l2, unsigned tile_items,
                              int warps, int* out) {
  RowsStatistics all = {};
  for (int i = 0; i < count; ++i) all.add(statistics[i]);
  out[0] = rows_width(rows, nnz, all, fits_l2);
  out[1] = out[0] < 0 ? 0 : rows_threads(1 << out[0]);
  out[2] = out[0] < 0 && block_tiles_suit({tile_items, 0, warps, 0}, all.longest);
  out[3] = several_width(out[0], all.longest);
}
"""


def check(returned):
    """What a call of the driver or of NVRTC returned behind its status, which must be success."""
    status, *rest = returned
    if int(status):
        raise RuntimeError(f"CUDA: {status.name}")
    return rest[0] if len(rest) == 1 else rest


@functools.cache
def kernel(architecture, name, device):
    """A kernel of the header or of PLANNING, compiled once; `device` since a module belongs to a context."""
    program = check(nvrtc.nvrtcCreateProgram(PLANNING.encode(), b"one_pass.cu", 0, [], []))
    check(nvrtc.nvrtcAddNameExpression(program, name.encode()))
    # -default-device: lambdas in kernels need no __device__.
    options = [
        b"-std=c++17",
        b"-default-device",
        f"-arch=sm_{architecture}".encode(),
        f"-I{HEADERS}".encode(),
    ]
    if int(nvrtc.nvrtcCompileProgram(program, len(options), options)[0]):
        log = b" " * check(nvrtc.nvrtcGetProgramLogSize(program))
        check(nvrtc.nvrtcGetProgramLog(program, log))
        raise RuntimeError(f"NVRTC cannot compile {name}:\n{log.decode().rstrip(chr(0))}")
    code = b" " * check(nvrtc.nvrtcGetCUBINSize(program))
    check(nvrtc.nvrtcGetCUBIN(program, code))
    lowered = check(nvrtc.nvrtcGetLoweredName(program, name.encode()))
    if device is None:  # compiled only
        return code
    return check(driver.cuModuleGetFunction(check(driver.cuModuleLoadData(code)), lowered))


def launch(function, blocks, threads, stream, *arguments, shared_bytes=0):
    """Arguments are ctypes or NumPy scalars, as the kernel's parameters are; arrays are addresses."""
    held = [ctypes.c_void_p(a) if isinstance(a, int) else a for a in arguments]
    addresses = [
        a.ctypes.data if isinstance(a, numpy.ndarray) else ctypes.addressof(a) for a in held
    ]
    pointers = (ctypes.c_void_p * len(held))(*addresses)
    check(
        driver.cuLaunchKernel(
            function,
            blocks,
            1,
            1,
            threads,
            1,
            1,
            shared_bytes,
            stream,
            ctypes.addressof(pointers),
            0,
        )
    )


class Torch:
    """The few things that differ between PyTorch and CuPy."""

    def __init__(self, matrix):
        import torch

        self.torch, self.device = torch, matrix.device
        if not matrix.is_cuda or matrix.layout != torch.sparse_csr or matrix.dim() != 2:
            raise ValueError("the tensor must be a matrix of layout torch.sparse_csr on a GPU")
        indices = (matrix.crow_indices(), matrix.col_indices())
        self.arrays = [a.to(torch.int32).contiguous() for a in indices] + [
            matrix.values().contiguous()
        ]

    def empty(self, count, dtype):
        return self.torch.empty(count, dtype=getattr(self.torch, dtype), device=self.device)

    def current(self):
        return self.device.index, self.torch.cuda.current_stream(self.device).cuda_stream

    def at(self, array):
        return array.data_ptr()

    def numbers(self, array):
        return array.cpu().numpy()


class Cupy:
    """See Torch."""

    def __init__(self, matrix):
        import cupy

        self.cupy, self.device = cupy, matrix.data.device
        indices = (matrix.indptr, matrix.indices)
        self.arrays = [cupy.ascontiguousarray(a, dtype=cupy.int32) for a in indices] + [matrix.data]

    def empty(self, count, dtype):
        with self.device:
            return self.cupy.empty(count, dtype)

    def current(self):
        return self.device.id, self.cupy.cuda.get_current_stream().ptr

    def at(self, array):
        return array.data.ptr

    def numbers(self, array):
        return array.get()


class OnePass:
    """A plan for one CSR matrix on the GPU that is current. One product at a time; the matrix's values may change in
    place (self.values), its pattern may not. most_vectors: the most that a product will get, 1, 2, 4 or 8.
    Raises ValueError for what does not fit, RuntimeError for CUDA's errors."""

    def __init__(self, matrix, most_vectors=1):
        if most_vectors not in (1, 2, 4, 8):
            raise ValueError(f"{most_vectors} vectors: 1, 2, 4 and 8 are supported")
        self.most_vectors = most_vectors
        self.library = (Torch if type(matrix).__module__.split(".")[0] == "torch" else Cupy)(matrix)
        self.shape = tuple(matrix.shape)
        self.row_offsets, self.column_indices, self.values = self.library.arrays
        self.dtype = str(self.values.dtype).removeprefix("torch.")
        if self.dtype not in ("float32", "float64"):
            raise ValueError(f"values of {self.dtype}: float32 and float64 are supported")
        self.type = "float" if self.dtype == "float32" else "double"
        rows, cols = map(ctypes.c_int, self.shape)
        nnz = ctypes.c_int(len(self.values))
        if (
            max(*self.shape, len(self.values)) >= 2**31
            or self.shape[0] + len(self.values) >= 2**32 - 2**16
        ):
            raise ValueError("more than 2^31 rows, columns or nonzeros")
        device, stream = self.library.current()

        def attribute(name):
            return check(
                driver.cuDeviceGetAttribute(getattr(driver.CUdevice_attribute, name), device)
            )

        major, minor = (
            attribute(f"CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_{part}")
            for part in ("MAJOR", "MINOR")
        )
        self.get = lambda name: kernel(f"{major}{minor}", name, device)
        at, empty, numbers = self.library.at, self.library.empty, self.library.numbers
        self.out = out = empty(32, "int32")
        launch(self.get(f"describe_kernel<{self.type}>"), 1, 1, stream, at(out))
        described = numbers(out)[:21].tolist()
        (
            tile,
            partial_sum,
            shared,
            largest,
            of_arguments,
            vectors,
            statistics,
            threads,
            most_blocks,
            prepare,
            most,
        ) = described[:11]
        of_several, several_threads, self.transposed_threads, *several_shared = described[11:17]
        several_rows_threads, *several_lanes = described[17:]

        product = self.get(f"spmv::pcsr_one_pass_kernel<{self.type}>")
        block_bytes = threads // 32 * largest
        resident = check(
            driver.cuOccupancyMaxActiveBlocksPerMultiprocessor(product, threads, block_bytes)
        )
        resident = max(min(resident, most_blocks), 1)
        wanted = most_blocks * (
            block_bytes + attribute("CU_DEVICE_ATTRIBUTE_RESERVED_SHARED_MEMORY_PER_BLOCK")
        )
        percent = -(
            -100 * wanted // attribute("CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR")
        )
        carveout = driver.CUfunction_attribute.CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT
        check(driver.cuFuncSetAttribute(product, carveout, min(percent, 100)))
        resident *= attribute("CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT")
        l2_bytes = ctypes.c_longlong(attribute("CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE"))
        launch(
            self.get(f"plan_kernel<{self.type}>"),
            1,
            1,
            stream,
            rows,
            cols,
            nnz,
            ctypes.c_int(resident),
            l2_bytes,
            at(out),
        )
        tile_items, self.tiles, warps, blocks, fits, read_once, rows_may_suit = numbers(out)[
            :7
        ].tolist()
        self.lanes_per_row = 0
        if not self.tiles:
            return
        fields = numpy.dtype(
            [
                ("tile_count", "i4"),
                ("tile_items", "u4"),
                *(
                    (name, "u8")
                    for name in (
                        "tiles",
                        "row_offsets",
                        "column_indices",
                        "values",
                        "partial_sums",
                        "unstarted",
                    )
                ),
            ],
            align=True,
        )
        of_vectors = numpy.dtype(
            [("x", "u8"), ("y", "u8"), ("z", "u8"), ("alpha", self.dtype), ("beta", self.dtype)],
            align=True,
        )
        several = numpy.dtype(
            [("x", "u8"), ("y", "u8"), ("alpha", self.dtype), ("beta", self.dtype)], align=True
        )
        if (fields.itemsize, of_vectors.itemsize, several.itemsize) != (
            of_arguments,
            vectors,
            of_several,
        ):
            raise RuntimeError(
                "OnePassArguments, PlainVectors or SeveralVectors has other members than spmv_one_pass.py knows"
            )

        def scaled(alpha, x, beta, y):
            return numpy.array([(x, y if beta else 0, y, alpha, beta)], of_vectors)

        # The first blocks find tiles, the others look at rows.
        self.tile_borders, self.partial_sums, self.unstarted = (
            empty(count, "uint8")
            for count in (
                (self.tiles + 1) * tile,
                2 * self.tiles * partial_sum * most_vectors,
                4 * self.tiles,
            )
        )
        check(
            driver.cuMemsetD8Async(
                at(self.partial_sums), 0, 2 * self.tiles * partial_sum * most_vectors, stream
            )
        )
        looking = min((rows.value - 1) // prepare + 1, most) if rows_may_suit else 0
        found = empty(max(looking, 1) * statistics, "uint8")
        finding = self.tiles // (prepare // 32) + 1
        launch(
            self.get(f"spmv::prepare_one_pass_kernel<{self.type}>"),
            finding + looking,
            prepare,
            stream,
            ctypes.c_int(finding),
            ctypes.c_int(self.tiles),
            ctypes.c_uint(tile_items),
            rows,
            nnz,
            at(self.row_offsets),
            at(self.tile_borders),
            at(self.partial_sums),
            at(self.unstarted),
            at(found),
        )

        def arguments():
            return numpy.array(
                [
                    (
                        self.tiles,
                        tile_items,
                        at(self.tile_borders),
                        at(self.row_offsets),
                        at(self.column_indices),
                        at(self.values),
                        at(self.partial_sums),
                        at(self.unstarted),
                    )
                ],
                fields,
            )

        width, self.block_tiles, several_width = -1, False, -1
        if looking:
            launch(
                self.get("choose_kernel"),
                1,
                1,
                stream,
                ctypes.c_int(looking),
                at(found),
                rows,
                nnz,
                ctypes.c_bool(fits),
                ctypes.c_uint(tile_items),
                ctypes.c_int(warps),
                at(out),
            )
            width, per_block, self.block_tiles, several_width = numbers(out)[:4].tolist()
        if width >= 0:
            self.lanes_per_row = 1 << width
            rows_kernel = self.get(f"spmv::pcsr_rows_kernel<{self.lanes_per_row}, {self.type}>")
            blocks = ((rows.value << width) - 1) // per_block + 1

            def multiply(alpha, x, beta, y, stream):
                launch(
                    rows_kernel,
                    blocks,
                    per_block,
                    stream,
                    rows,
                    ctypes.c_bool(read_once),
                    at(self.row_offsets),
                    at(self.column_indices),
                    at(self.values),
                    scaled(alpha, x, beta, y),
                )
        else:
            shared_bytes = warps * shared if warps < 8 else block_bytes
            of_product = arguments()
            if self.block_tiles:
                product = self.get(f"spmv::pcsr_block_tiles_kernel<{self.type}>")
                check(driver.cuFuncSetAttribute(product, carveout, min(percent, 100)))
                self.parts = empty((blocks * warps + 1) * tile, "uint8")
                of_product["tiles"] = at(self.parts)
                launch(
                    self.get(f"spmv::find_parts_kernel<{self.type}>"),
                    blocks * warps // 4 + 1,
                    128,
                    stream,
                    ctypes.c_int(blocks),
                    ctypes.c_int(warps),
                    ctypes.c_uint(tile_items * warps),
                    rows,
                    at(self.row_offsets),
                    at(self.parts),
                )

            def multiply(alpha, x, beta, y, stream):
                launch(
                    product,
                    blocks,
                    32 * warps,
                    stream,
                    of_product,
                    scaled(alpha, x, beta, y),
                    shared_bytes=shared_bytes,
                )

        def multiply_several(count, alpha, x, beta, y, stream):
            vectors, which = numpy.array([(x, y, alpha, beta)], several), (2, 4, 8).index(count)
            if several_width >= 0:
                groups = min(1 << several_width, 32 // several_lanes[which])
                rows_per_block = several_rows_threads // several_lanes[which] // groups
                launch(
                    self.get(f"spmv::pcsr_several_rows_kernel<{groups}, {self.type}, {count}>"),
                    (rows.value - 1) // rows_per_block + 1,
                    several_rows_threads,
                    stream,
                    rows,
                    ctypes.c_bool(read_once),
                    at(self.row_offsets),
                    at(self.column_indices),
                    at(self.values),
                    vectors,
                )
            else:
                most_warps = min(warps, several_threads // 32)
                launch(
                    self.get(f"spmv::pcsr_several_kernel<{self.type}, {count}>"),
                    (self.tiles - 1) // most_warps + 1,
                    32 * most_warps,
                    stream,
                    arguments(),
                    vectors,
                    shared_bytes=most_warps * several_shared[which],
                )

        self.arguments, self.multiply, self.multiply_several = arguments, multiply, multiply_several

    def vectors(self, x, beta, y, x_shape, y_shape):
        """(beta, y) with y made, and beta 0, if it is None; ValueError unless both fit."""
        if y is None:
            y, beta = self.library.empty(y_shape, self.dtype), 0.0
        for name, vector, shape in (("x", x, x_shape), ("y", y, y_shape)):
            contiguous = (
                vector.is_contiguous()
                if hasattr(vector, "is_contiguous")
                else vector.flags.c_contiguous
            )
            if tuple(vector.shape) != shape or vector.dtype != self.values.dtype or not contiguous:
                raise ValueError(
                    f"{name} must have {' x '.join(map(str, shape))} contiguous elements of {self.dtype}"
                )
            if vector.device != self.values.device:
                raise ValueError(f"{name} is not on the matrix's GPU")
        return beta, y

    def __call__(self, x, alpha=1.0, beta=0.0, y=None):
        """y = alpha A x + beta y on the current stream. x and y: vectors of the matrix's library, type and GPU, or 2, 4 or
        8 of them as the columns of row-major arrays (aligned to 16 bytes); y is not read if beta is 0, and made if it is
        None. Returns y."""
        rows, cols = self.shape
        several = tuple(x.shape[1:])
        if several and (
            len(several) > 1 or several[0] not in (2, 4, 8) or several[0] > self.most_vectors
        ):
            raise ValueError(
                f"x has the shape {tuple(x.shape)}: expected {cols}, or {cols} x 2, 4 or 8, at most most_vectors"
            )
        beta, y = self.vectors(x, beta, y, (cols, *several), (rows, *several))
        at, (_, stream) = self.library.at, self.library.current()
        if several and (at(x) % 16 or at(y) % 16):
            raise ValueError("x and y must be aligned to 16 bytes")
        if self.tiles and several:
            self.multiply_several(several[0], alpha, at(x), beta, at(y), stream)
        elif self.tiles:
            self.multiply(alpha, at(x), beta, at(y), stream)
        return y

    def transposed(self, x, alpha=1.0, beta=0.0, y=None):
        """y = alpha A^T x + beta y by one atomic per nonzero, so the last bits may differ from run to run; in all else as a
        product. (For many products a plan of the transpose is faster, which the matrix's library makes.)"""
        rows, cols = self.shape
        beta, y = self.vectors(x, beta, y, (rows,), (cols,))
        at, (_, stream), threads = self.library.at, self.library.current(), self.transposed_threads
        scalars = numpy.array([alpha, beta], self.dtype)
        if cols:
            launch(
                self.get(f"spmv::scale_transposed_kernel<{self.type}>"),
                (cols - 1) // threads + 1,
                threads,
                stream,
                ctypes.c_int(cols),
                scalars[1:],
                at(y),
            )
        if self.tiles:
            launch(
                self.get(f"spmv::pcsr_transposed_kernel<{self.type}>"),
                (self.tiles - 1) // (threads // 32) + 1,
                threads,
                stream,
                self.arguments(),
                scalars[:1],
                at(x),
                at(y),
            )
        return y


def matrices():
    """(rows, cols, row lengths) of the check: on either path, with empty and with cut rows."""
    random = numpy.random.default_rng(1)
    yield 1, 1, numpy.array([1])
    yield 50000, 40000, numpy.full(50000, 7)
    yield 1000, 700, random.integers(0, 12, 1000)
    yield 30, 60000, numpy.array([30000, *[0] * 20, *[5] * 9])
    yield 200000, 200000, random.geometric(0.1, 200000)
    yield 40000, 40000, numpy.minimum(random.zipf(1.7, 40000), 3000)
    yield 500, 9, numpy.zeros(500, int)


def with_torch(offsets, columns, values, shape):
    import torch

    matrix = torch.sparse_csr_tensor(
        *map(torch.from_numpy, (offsets, columns, values)), size=shape
    ).cuda()
    return (
        matrix,
        lambda a: torch.from_numpy(a).cuda(),
        lambda a: a.cpu().numpy(),
        torch.cuda.synchronize,
    )


def with_cupy(offsets, columns, values, shape):
    import cupy
    import cupyx.scipy.sparse

    arrays = [cupy.asarray(a) for a in (values, columns.astype("int32"), offsets.astype("int32"))]
    matrix = cupyx.scipy.sparse.csr_matrix(tuple(arrays), shape=shape)
    return matrix, cupy.asarray, cupy.asnumpy, cupy.cuda.runtime.deviceSynchronize


def main():
    from time import perf_counter

    random = numpy.random.default_rng(2)
    checked = 0
    for library in (with_torch, with_cupy):
        for dtype, tolerance in (("float64", 1e-13), ("float32", 1e-5)):
            for rows, cols, lengths in matrices():
                offsets = numpy.concatenate([[0], numpy.cumsum(lengths)])
                columns = random.integers(0, cols, offsets[-1])
                values = random.standard_normal(offsets[-1]).astype(dtype)
                try:
                    matrix, to_gpu, from_gpu, wait = library(offsets, columns, values, (rows, cols))
                except ImportError as error:
                    print(f"skipped: {error}")
                    break
                of = numpy.repeat(numpy.arange(rows), lengths)
                product = OnePass(matrix, most_vectors=8)

                def error_of(multiply, to, x_shape, y_shape, picked):
                    """The largest error of multiply(x, 2, -1, y) over its bound; nan if it is not the same twice."""
                    x, y = (
                        random.standard_normal(shape).astype(dtype) for shape in (x_shape, y_shape)
                    )
                    terms = (values * x[picked].T.astype(float)).T
                    exact, bound = -y.astype(float), numpy.ones(y_shape)
                    numpy.add.at(exact, to, 2 * terms)
                    numpy.add.at(bound, to, 2 * abs(terms))
                    got, again = (from_gpu(multiply(to_gpu(x), 2, -1, to_gpu(y))) for _ in range(2))
                    same = (got == again).all() or multiply == product.transposed
                    return (abs(got - exact) / bound).max() if same else numpy.nan

                errors = [
                    error_of(product, of, cols, rows, columns),
                    error_of(product.transposed, columns, rows, cols, of),
                ]
                errors += [
                    error_of(product, of, (cols, count), (rows, count), columns)
                    for count in (2, 4, 8)
                ]
                on_gpu = to_gpu(random.standard_normal(cols).astype(dtype))
                wait()
                start = perf_counter()
                for _ in range(100):
                    product(on_gpu)
                wait()
                path = (
                    f"{product.lanes_per_row} lanes per row"
                    if product.lanes_per_row
                    else f"{product.tiles} tiles"
                )
                print(
                    f"{library.__name__[5:]}: {rows} x {cols}, {len(values)} nonzeros, {dtype}, {path}: error {max(errors):.1e}, "
                    f"{1e4 * (perf_counter() - start):.1f} us per call from Python"
                )
                if not all(error <= tolerance for error in errors):
                    sys.exit(f"error: a product is wrong: {errors}")
                checked += len(errors)
    print(f"{checked} products are right")


if __name__ == "__main__":
    main()
