#!/usr/bin/env python3
"""The one-pass kernel from Python: CuPy compiles ../one_pass.cuh at run time (NVRTC).

    python3 one_pass_cupy.py            checks products of random matrices against SciPy, and times them

OnePass(matrix) takes a SciPy matrix, multiply(x) a CuPy array: y = alpha A x + beta y. Needs NumPy,
SciPy and CuPy. One object in one stream at a time; the values may change, the pattern may not.
"""

import sys
from pathlib import Path

import cupy
import numpy
import scipy.sparse

HEADERS = Path(__file__).resolve().parent.parent

# OnePassShape is a function of the header; this kernel calls it.
SHAPE = r"""
#include "one_pass.cuh"
template <typename T>
__global__ void shape_kernel(int rows, int cols, int nnz, int resident_blocks, long long l2_bytes,
                             int* shape, int* bytes) {
  const spmv::OnePassShape s = spmv::one_pass_shape<T>(rows, cols, nnz, resident_blocks, l2_bytes);
  shape[0] = s.tile_items, shape[1] = s.tile_count, shape[2] = s.warps_per_block, shape[3] = s.blocks;
  bytes[0] = sizeof(spmv::Tile), bytes[1] = sizeof(spmv::PartialSum<T>);
  bytes[2] = sizeof(spmv::OnePassShared<T>), bytes[3] = sizeof(spmv::OnePassArguments<T>);
  bytes[4] = spmv::OnePassPolicy<T>::kBlocks, bytes[5] = spmv::kOnePassOverhang;
}
"""


class OnePass:
    """y = alpha A x + beta y for one sparse matrix of float32 or float64."""

    def __init__(self, matrix):
        a = scipy.sparse.csr_array(matrix)
        self.shape = a.shape
        self.row_offsets = cupy.asarray(a.indptr, dtype=cupy.int32)
        self.column_indices = cupy.asarray(a.indices, dtype=cupy.int32)
        self.values = cupy.asarray(a.data)
        self.type = {"float32": "float", "float64": "double"}[a.dtype.name]
        names = [f"shape_kernel<{self.type}>", f"spmv::find_tiles_kernel<{self.type}>",
                 f"spmv::pcsr_one_pass_kernel<{self.type}>"]  # fmt: skip
        module = cupy.RawModule(code=SHAPE, options=("-std=c++17", f"-I{HEADERS}"), name_expressions=names)
        get_shape, find_tiles, self.kernel = (module.get_function(name) for name in names)

        device = cupy.cuda.Device().attributes
        shape, size = cupy.empty(4, cupy.int32), cupy.empty(6, cupy.int32)
        blocks = device["MultiProcessorCount"] * 2
        rows, nnz = numpy.int32(self.shape[0]), numpy.int32(self.values.size)
        get_shape((1,), (1,), (rows, numpy.int32(self.shape[1]), nnz, numpy.int32(blocks),
                               numpy.int64(device["L2CacheSize"]), shape, size))  # fmt: skip
        self.tile_items, self.tiles, self.warps, self.blocks = shape.tolist()
        tile, partial_sum, self.shared, arguments, _, overhang = size.tolist()
        self.tile_borders = cupy.empty((self.tiles + 1) * tile, cupy.uint8)
        self.partial_sums = cupy.empty(2 * self.tiles * partial_sum, cupy.uint8)
        self.unstarted = cupy.empty(max(self.tiles, 1), cupy.uint32)
        if self.tiles:
            find_tiles((self.tiles // 4 + 1,), (128,), (
                numpy.int32(self.tiles), numpy.uint32(self.tile_items), numpy.int32(overhang), rows, nnz,
                self.row_offsets, self.tile_borders, self.partial_sums, self.unstarted))  # fmt: skip
        number = self.values.dtype
        self.arguments = numpy.dtype(
            [("tile_count", "i4"), ("tile_items", "u4"), ("tiles", "u8"), ("row_offsets", "u8"),
             ("column_indices", "u8"), ("values", "u8"), ("alpha", number), ("x", "u8"), ("beta", number),
             ("y", "u8"), ("partial_sums", "u8"), ("unstarted", "u8")], align=True)  # fmt: skip
        assert self.arguments.itemsize == arguments, "OnePassArguments has changed"

    def multiply(self, x, alpha=1, beta=0, y=None):
        """A CuPy array of A's rows; `y`, if given, which is then read unless beta is 0."""
        if x.shape != (self.shape[1],) or x.dtype != self.values.dtype or not x.flags.c_contiguous:
            raise ValueError(f"x must have {self.shape[1]} contiguous elements of {self.values.dtype}")
        if y is None:
            y, beta = cupy.empty(self.shape[0], self.values.dtype), 0
        if self.tiles:
            a = numpy.zeros(1, self.arguments)
            a[0] = (self.tiles, self.tile_items, self.tile_borders.data.ptr, self.row_offsets.data.ptr,
                    self.column_indices.data.ptr, self.values.data.ptr, alpha, x.data.ptr, beta, y.data.ptr,
                    self.partial_sums.data.ptr, self.unstarted.data.ptr)  # fmt: skip
            self.kernel((self.blocks,), (32 * self.warps,), (a[0],), shared_mem=self.warps * self.shared)
        return y


def main():
    random = numpy.random.default_rng(1)
    for dtype, tolerance in ((numpy.float64, 1e-12), (numpy.float32, 1e-4)):
        for rows, cols, density in ((1, 1, 1), (1000, 700, 0.01), (50000, 40000, 0.0003), (30, 60000, 0.5), (500, 9, 0)):
            a = scipy.sparse.random_array((rows, cols), density=density, rng=random, dtype=dtype).tocsr()
            x, y = random.standard_normal(cols).astype(dtype), random.standard_normal(rows).astype(dtype)
            product = OnePass(a)
            got = product.multiply(cupy.asarray(x), 2, -1, cupy.asarray(y)).get()
            again = product.multiply(cupy.asarray(x), 2, -1, cupy.asarray(y)).get()
            error = numpy.abs(got - (2 * (a @ x) - y)).max() / (1 + 2 * (abs(a) @ abs(x)).max())
            start, stop = cupy.cuda.Event(), cupy.cuda.Event()
            x_device, y_device = cupy.asarray(x), cupy.asarray(y)
            start.record()
            for _ in range(20):
                product.multiply(x_device, 1, 0, y_device)
            stop.record()
            stop.synchronize()
            print(f"{rows} x {cols}, {a.nnz} nonzeros, {a.dtype}: error {error:.1e}, "
                  f"{50 * cupy.cuda.get_elapsed_time(start, stop):.1f} us per product, launches from Python included")
            if not error <= tolerance or not (got == again).all():
                sys.exit("error: the product is wrong")


if __name__ == "__main__":
    main()
