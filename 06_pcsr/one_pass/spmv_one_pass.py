"""The one-pass product from Python: y = alpha A x + beta y for CSR matrices on a GPU.

    import spmv_one_pass
    product = spmv_one_pass.OnePass(matrix)     # cupyx.scipy.sparse.csr_matrix or torch.sparse_csr_tensor
    y = product(x)                              # or product(x, alpha, beta, y), which is written and returned
    y = product.transposed(x)                   # of the transpose, by atomics
    product = spmv_one_pass.OnePass(matrix, most_vectors=8)
    Y = product(X)                              # X: as many rows as the matrix has columns, and 2, 4 or 8 columns

Any other arrays that have __cuda_array_interface__ will do: OnePass((row_offsets, column_indices, values), shape=(rows,
cols)), and product(x, alpha, beta, y, stream=...) with a y to write to.

The plan is C++: a shared library with the interface of c_interface.h, which is compiled at the first use with nvcc (for
the GPU that is there) and kept in ~/.cache/spmv_one_pass; or, compiled before, the file that SPMV_ONE_PASS_LIBRARY names.
contract.md says what holds.

    python3 spmv_one_pass.py                    checks products of random matrices with CuPy and SciPy
"""

import ctypes
import functools
import hashlib
import os
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
TYPES = {"<f4": 0, "<f8": 1}  # of values and vectors: is_double


def compiled(cache=None, nvcc="nvcc", architecture="native"):
    """The path of the shared library of these sources, which is compiled if it is not there yet."""
    sources = [HERE / "c_interface.h", HERE / "c_interface.cu", *sorted(HERE.glob("spmv/*.cuh"))]
    text = b"".join(source.read_bytes() for source in sources) + architecture.encode()
    folder = Path(cache or Path.home() / ".cache" / "spmv_one_pass")
    library = folder / f"{hashlib.sha256(text).hexdigest()[:16]}.so"
    if not library.exists():
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=folder) as scratch:
            made = Path(scratch) / "library.so"
            command = [nvcc, "-O3", "-std=c++17", f"-arch={architecture}", "-shared", "-Xcompiler"]
            command += ["-fPIC", "-o", made, HERE / "c_interface.cu"]
            try:
                subprocess.run(command, check=True, capture_output=True, text=True)
            except FileNotFoundError:
                raise RuntimeError(f"no {nvcc}, and SPMV_ONE_PASS_LIBRARY is not set") from None
            except subprocess.CalledProcessError as error:
                raise RuntimeError(f"nvcc cannot compile the plan:\n{error.stderr}") from None
            os.replace(made, library)
    return library


@functools.cache
def library():
    loaded = ctypes.CDLL(os.environ.get("SPMV_ONE_PASS_LIBRARY") or str(compiled()))
    pointer, number, integer = ctypes.c_void_p, ctypes.c_double, ctypes.c_int
    loaded.spmv_create.argtypes = [ctypes.POINTER(pointer)] + [integer] * 4
    loaded.spmv_create.argtypes += [pointer, pointer, integer, integer, pointer]
    arguments = [number, pointer, pointer, number, pointer, pointer]
    loaded.spmv_multiply.argtypes = [pointer, integer, *arguments]
    loaded.spmv_multiply_transposed.argtypes = [pointer, *arguments]
    loaded.spmv_destroy.argtypes = loaded.spmv_lanes_per_row.argtypes = [pointer]
    loaded.spmv_destroy.restype = None
    loaded.spmv_error_string.restype = ctypes.c_char_p
    return loaded


def check(error):
    if error:
        raise RuntimeError(f"CUDA: {library().spmv_error_string(error).decode()}")


def address(name, array, types, shape=None):
    """Where a contiguous array on a GPU is; ValueError if it is not one, or of another type or shape."""
    try:
        described = array.__cuda_array_interface__
    except AttributeError:
        raise ValueError(f"{name} is not on a GPU: it has no __cuda_array_interface__") from None
    if described["typestr"] not in types:
        raise ValueError(f"{name} is of type {described['typestr']}: expected {' or '.join(types)}")
    if shape is not None and tuple(described["shape"]) != tuple(shape):
        expected = " x ".join(map(str, shape))
        raise ValueError(f"{name} has the shape {tuple(described['shape'])}: expected {expected}")
    step = int(described["typestr"][2:])
    steps = []
    for count in reversed(described["shape"]):
        steps.insert(0, step)
        step *= count
    if described.get("strides") not in (None, tuple(steps)):
        raise ValueError(f"{name} is not contiguous")
    return described["data"][0]


def arrays_of(matrix):
    """(row offsets, column indices, values) of a matrix of CuPy or PyTorch, with 32-bit indices."""
    if hasattr(matrix, "crow_indices"):
        indices = matrix.crow_indices(), matrix.col_indices()
        return *(a.int().contiguous() for a in indices), matrix.values().contiguous()
    return matrix.indptr.astype("int32"), matrix.indices.astype("int32"), matrix.data


def current_stream(array):
    kind = type(array).__module__.split(".")[0]
    if kind == "torch":
        return sys.modules["torch"].cuda.current_stream(array.device).cuda_stream
    return sys.modules["cupy"].cuda.get_current_stream().ptr if kind == "cupy" else 0


def empty_like(x, shape):
    if hasattr(x, "new_empty"):  # PyTorch
        return x.new_empty(shape)
    if type(x).__module__.split(".")[0] == "cupy":
        return sys.modules["cupy"].empty(shape, x.dtype)
    raise ValueError("give y: only CuPy's and PyTorch's arrays are made here")


class OnePass:
    """A plan for one CSR matrix on the GPU that is current. One product at a time; the matrix's values may change in
    place (self.values), its pattern may not. most_vectors: the most that a product will get, 1, 2, 4 or 8. Raises
    ValueError for what does not fit, RuntimeError for CUDA's errors."""

    plan = None

    def __init__(self, matrix, shape=None, most_vectors=1, overlap=False, stream=None):
        is_tuple = isinstance(matrix, tuple)
        if is_tuple != (shape is not None):
            raise ValueError("a shape goes with three arrays, and with nothing else")
        if most_vectors not in (1, 2, 4, 8):
            raise ValueError(f"{most_vectors} vectors: 1, 2, 4 and 8 are supported")
        offsets, columns, self.values = matrix if is_tuple else arrays_of(matrix)
        self.pattern = offsets, columns  # which have to live as long as the plan
        self.shape, self.most_vectors = tuple(shape if is_tuple else matrix.shape), most_vectors
        rows, cols = self.shape
        address("values", self.values, TYPES)
        self.type = self.values.__cuda_array_interface__["typestr"]
        (nnz,) = self.values.__cuda_array_interface__["shape"]
        if max(rows, cols, nnz) >= 2**31:
            raise ValueError("more than 2^31 rows, columns or nonzeros")
        where = (
            address("row offsets", offsets, ["<i4"], (rows + 1,)),
            address("column indices", columns, ["<i4"], (nnz,)),
        )
        plan = ctypes.c_void_p()
        stream = current_stream(self.values) if stream is None else stream
        create = library().spmv_create
        sizes = TYPES[self.type], rows, cols, nnz
        check(create(ctypes.byref(plan), *sizes, *where, most_vectors, overlap, stream))
        self.plan = plan

    def __del__(self):
        if self.plan:
            library().spmv_destroy(self.plan)

    @property
    def lanes_per_row(self):
        """0: tiles."""
        return library().spmv_lanes_per_row(self.plan)

    def run(self, multiply, x, alpha, beta, y, x_shape, y_shape, stream):
        from_x = address("x", x, [self.type], x_shape)
        if y is None:
            y, beta = empty_like(x, y_shape), 0.0
        stream = current_stream(x) if stream is None else stream
        values = address("values", self.values, [self.type])
        to_y = address("y", y, [self.type], y_shape)
        check(multiply(alpha, values, from_x, beta, to_y, stream))
        return y

    def __call__(self, x, alpha=1.0, beta=0.0, y=None, stream=None):
        """y = alpha A x + beta y on the current stream. x and y: vectors of the matrix's type and GPU, or 2, 4 or 8 of them
        as the columns of row-major arrays (aligned to 16 bytes); y is not read if beta is 0, and made if it is None.
        Returns y."""
        (rows, cols), several = self.shape, tuple(x.shape[1:])
        if several and (len(several) > 1 or several[0] not in (2, 4, 8)):
            raise ValueError(
                f"x has the shape {tuple(x.shape)}: expected {cols}, or {cols} x 2, 4 or 8"
            )
        if several and several[0] > self.most_vectors:
            raise ValueError(f"{several[0]} vectors: the plan was made for {self.most_vectors}")
        multiply = functools.partial(library().spmv_multiply, self.plan, *several or (1,))
        return self.run(multiply, x, alpha, beta, y, (cols, *several), (rows, *several), stream)

    def transposed(self, x, alpha=1.0, beta=0.0, y=None, stream=None):
        """y = alpha A^T x + beta y by one atomic per nonzero, so the last bits may differ from run to run; in all else as a
        product. (For many products a plan of the transpose is faster, which the matrix's library makes.)"""
        rows, cols = self.shape
        multiply = functools.partial(library().spmv_multiply_transposed, self.plan)
        return self.run(multiply, x, alpha, beta, y, (rows,), (cols,), stream)


def main():
    import cupy
    import cupyx.scipy.sparse
    import numpy
    import scipy.sparse

    random = numpy.random.default_rng(2)
    lengths_of = [  # on either path, with empty and with cut rows
        (1, [1]),
        (40000, numpy.full(50000, 7)),
        (700, random.integers(0, 12, 1000)),
        (60000, [30000, *[0] * 20, *[5] * 9]),
        (200000, random.geometric(0.1, 200000)),
        (40000, numpy.minimum(random.zipf(1.7, 40000), 3000)),
        (9, numpy.zeros(500, int)),
    ]
    for dtype, tolerance in (("float64", 1e-13), ("float32", 1e-5)):
        for cols, lengths in lengths_of:
            offsets = numpy.concatenate([[0], numpy.cumsum(lengths)]).astype("i4")
            columns = random.integers(0, cols, offsets[-1]).astype("i4")
            values = random.standard_normal(offsets[-1]).astype(dtype)
            host = scipy.sparse.csr_matrix((values, columns, offsets), (len(lengths), cols))
            product = OnePass(cupyx.scipy.sparse.csr_matrix(host), most_vectors=8)
            a = host.astype("float64")
            for multiply, a_or_transpose, several in [
                (product, a, ()),
                (product.transposed, a.T, ()),
                *((product, a, (n,)) for n in (2, 4, 8)),
            ]:
                shapes = [(n, *several) for n in a_or_transpose.shape]
                y, x = (random.standard_normal(shape).astype(dtype) for shape in shapes)
                got, again = (
                    multiply(cupy.asarray(x), 2, -1, cupy.asarray(y)).get() for _ in range(2)
                )
                exact = 2 * (a_or_transpose @ x.astype("float64")) - y
                bound = 2 * (abs(a_or_transpose) @ abs(x).astype("float64")) + 1
                same_bits = (got == again).all() or multiply == product.transposed
                if not (same_bits and (abs(got - exact) <= tolerance * bound).all()):
                    sys.exit(f"error: a product is wrong: {host.shape}, {dtype}, {shapes[1]}")
            print(
                f"{host.shape}, {dtype}, {product.lanes_per_row or 'tiles, no'} lanes per row: right"
            )


if __name__ == "__main__":
    main()
