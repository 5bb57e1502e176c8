"""Records of step 10's own program, `spmv multigpu`: one step of a product over several GPUs."""

from records import short, starred

PARTITIONS = {"I": "rows", "II": "nonzeros"}


PUBLISHED = "pcsr"  # the paper's kernel


def one_gpu_product(data, matrix, precision="f64", kernel=None):
    """Milliseconds of the fastest product of `kernel`, or of any, on one GPU; None if there is no record."""
    times = [r["best_step_ms"] for r in data.multigpu
             if "best_step_ms" in r and (r["matrix"], r["precision"], r["gpus"], r["exchange"]) == (matrix, precision, 1, "none")
             and kernel in (None, r["kernel"])]
    return min(times, default=None)


def is_the_papers(record):
    """The published kernel: a product, or a product and the exchange of all parts, without a norm."""
    way = record["exchange"] == "none" or (record["exchange"], record.get("norm")) == ("parts", "first")
    return record["kernel"] == PUBLISHED and way


def is_comparable(record):
    """The same quantity by any kernel and way: no norm."""
    return record["exchange"] == "none" or record.get("norm") == "first"


def efficiencies(data, gpus, exchange, precision="f64", ours=False):
    """{(matrix, "I" or "II"): record} of the fastest drive, with `efficiency`: the fastest product on one GPU
    over GPUs times time. Of the paper's kernel and way; with `ours`, of the fastest kernel and way here."""
    found = {}
    for record in data.multigpu:
        if (record["gpus"], record["precision"]) != (gpus, precision) or "best_step_ms" not in record:
            continue
        if (record["exchange"] != "none") != exchange or not (is_comparable if ours else is_the_papers)(record):
            continue
        one = one_gpu_product(data, record["matrix"], precision, None if ours else PUBLISHED)
        if one is None:
            continue
        way = next(way for way, name in PARTITIONS.items() if name == record["partition"])
        key = record["matrix"], way
        if key not in found or record["best_step_ms"] < found[key]["best_step_ms"]:
            found[key] = {**record, "efficiency": one / (gpus * record["best_step_ms"])}
    return found


def labels(found, order):
    """{matrix: its name for an axis} of what efficiencies() found, those named in `order` first. The star
    is of these records: where others have the file, several GPUs may have multiplied a stand-in."""
    names = {matrix: starred(short(matrix), record["source"]) for (matrix, _), record in found.items()}
    first = [matrix for matrix in order if matrix in names]
    return {matrix: names[matrix] for matrix in dict.fromkeys([*first, *names])}


def percent(record):
    """The fastest product on one GPU over GPUs times time, in percent."""
    return 100 * record["efficiency"]
