"""The columns of the records, each declared once: record_format.py, the results page, tables of
pages and the tests read this. Standard library only, since `make check` reads records too."""

from typing import NamedTuple

SPREAD, MEDIAN, FIRST = "spread", "median", "first"  # how several processes combine
WORD, NUMBER = "word", "number"


class Column(NamedTuple):
    name: str
    meaning: str
    processes: str = FIRST  # of several that measured it; SPREAD: [lower, median, upper, samples]
    identifies: bool = False  # two measurements that differ in it are of two things
    on_page: str = ""  # whether the results page has it, as WORD or NUMBER
    head: str = ""  # of its column in that page's table, where it has one of its own
    in_tables: str = ""  # what a table of a README shows by <!-- table: ... column=NAME -->
    varies: bool = False  # from build to build and from machine to machine
    sample: object = None  # in the records of tests


def several(names, *of, **more):
    return [Column(name, *of, **more) for name in names.split()]


TIMED = {"processes": SPREAD, "varies": True}  # over batches of launches
ONCE = {"processes": MEDIAN, "varies": True}
SETUP = {**ONCE, "on_page": NUMBER}
# Meanings of more than a line.
WARM_MS = """launches back to back: in files [lower, median, upper, samples], read as `warm_lower_ms`,
`warm_ms`, `warm_upper_ms`. Lower and upper are quartiles; where several processes measured, the
smallest and the largest of their medians"""
OVERLAPPED_MS = """likewise, but each launch starts while the one before it ends (programmatic
dependent launch); only kernels that can"""
SETUP_MS = """from CSR on the device to the kernel's format: the median of five repetitions, or of
fewer if five take more than 5 ms. Processes that prepare the next matrices allocate meanwhile,
which can lengthen it"""
COMPULSORY_BYTES = """the matrix in the kernel's format and x read once, y written once, arrays
between kernels written and read"""
US_PER_ITERATION = """of conjugate gradients (`solver/`), median, lowest and highest of its runs;
with it `iterations`, `sequential_iterations` (of one thread), `residual`, `bytes_per_iteration`,
`copy_bytes_per_s`, and `us_products_and_vectors` of kernels that do these alone"""
ORDER_MS = "of a matrix whose name ends in `,order=`: to find and apply that order on the host"
PREPROCESS_MS = "the preprocessing of the matrix's pattern, likewise"
PERMUTE_MS = "likewise: to permute x, and y where rows are renumbered, on the GPU"
BASELINE_MS = "of the row-free baseline on this matrix, in files a kernel called `baseline`"
ALONE = "whether no other process prepared matrices (`make bench SET=setup`)"
CODE = "the CUDA functions that were launched, with hashes of their instructions, or `library`"

COLUMNS = [
    Column("run", "of the run: its id", on_page=WORD, varies=True),
    Column("time", "of the run"),
    Column("device", "of the run; of a kernel on the host, the processor", on_page=WORD),
    Column("threads", "of the run: of OpenMP, which kernels on the host use"),
    *several("driver cuda cusparse compiler commit command", "of the run"),
    Column("program", "a step's own program, else empty", identifies=True),
    Column("matrix", "its name", identifies=True, on_page=WORD, head="matrix"),
    Column("source", "of the matrix: file, generated, or stand-in", on_page=WORD),
    Column("detail", "of the matrix: file name or generator"),
    *several("rows cols nnz", "of the matrix", on_page=NUMBER),
    Column("kernel", "its name", identifies=True, on_page=WORD, head="kernel"),
    *several("step format", "of the kernel"),
    Column("choice", "what setup chose", on_page=WORD),
    Column("precision", "f32 or f64", identifies=True, on_page=WORD, head="prec."),
    Column("alpha", "where it is not 1", identifies=True),
    Column("beta", "where it is not 0", identifies=True),
    Column("warm_ms", WARM_MS, **TIMED),
    Column("cold_ms", "likewise, the L2 flushed before each launch; only GPUs have it", **TIMED),
    Column("overlapped_ms", OVERLAPPED_MS, **TIMED),
    Column("setup_ms", SETUP_MS, **SETUP, sample=1.0),
    Column("preprocess_ms", PREPROCESS_MS, **SETUP, sample=0.5),
    Column("order_ms", ORDER_MS, **ONCE),
    Column("permute_ms", PERMUTE_MS, **ONCE),
    Column("alone", ALONE, on_page=NUMBER),
    Column("processes", "how many measured", on_page=NUMBER),
    Column("compulsory_bytes", COMPULSORY_BYTES, on_page=NUMBER, sample=80000),
    Column("baseline_warm_ms", BASELINE_MS, on_page=NUMBER),
    Column("baseline_cold_ms", "likewise", on_page=NUMBER),
    Column("copy_gb_per_s", "of a copy on this device, with the baseline", MEDIAN, on_page=NUMBER),
    Column("code", CODE, on_page=WORD, varies=True, sample="library"),
    Column("traffic", "counters of each array, from the CPU backend", varies=True),
    Column("estimates", "of the time on a GPU, from the CPU backend", varies=True),
    Column("gpus", "of step 10", identifies=True),
    Column("ranks", "of step 10: processes", identifies=True),
    Column("partition", "of step 10: rows or nonzeros", identifies=True),
    Column("exchange", "of step 10", identifies=True),
    Column("steps", "of an iteration", identifies=True, in_tables="steps"),
    Column("norm", "of step 10: what is divided by in each step", identifies=True),
    Column("total_ms", "of all steps", MEDIAN, in_tables="milliseconds of all steps", varies=True),
    Column("one_gpu_step_ms", "of step 10", MEDIAN, varies=True),
    Column("step_ms", "of step 10: by drive, as `warm_ms`; `best_step_ms` is of the fastest"),
    Column("us_per_iteration", US_PER_ITERATION),
    Column("parts", "of step 10, of each GPU; `busy_deviation_ms` is derived"),
]
IDENTITY = [column.name for column in COLUMNS if column.identifies]


def names(**wanted):
    """Of the columns with these attributes."""
    return [c.name for c in COLUMNS if all(getattr(c, k) == v for k, v in wanted.items())]
