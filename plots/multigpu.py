"""Records of step 10's own program, `spmv multigpu`: one step of a product over several GPUs."""

from records import short, starred

PARTITIONS = {"I": "rows", "II": "nonzeros"}


def efficiencies(data, gpus, exchange, precision="f64"):
    """{(matrix, "I" or "II"): record} of the fastest way: without exchange of x, or of all with one."""
    found = {}
    for record in data.multigpu:
        if (record["gpus"], record["precision"]) != (gpus, precision) or "efficiency" not in record:
            continue
        if (record["exchange"] != "none") != exchange:
            continue
        way = next(way for way, name in PARTITIONS.items() if name == record["partition"])
        key = record["matrix"], way
        if key not in found or record["best_step_ms"] < found[key]["best_step_ms"]:
            found[key] = record
    return found


def labels(found, order):
    """{matrix: its name for an axis} of what efficiencies() found, those named in `order` first. The star
    is of these records: where others have the file, several GPUs may have multiplied a stand-in."""
    names = {matrix: starred(short(matrix), record["source"]) for (matrix, _), record in found.items()}
    first = [matrix for matrix in order if matrix in names]
    return {matrix: names[matrix] for matrix in dict.fromkeys([*first, *names])}


def percent(record):
    """Time on one GPU over GPUs times time, in percent."""
    return 100 * record["efficiency"]
