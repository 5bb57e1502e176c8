"""Records of step 10's own program, `spmv multigpu`: one step of a product over several GPUs."""

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
        key = record["matrix"]["name"], way
        if key not in found or record["best_step_ms"] < found[key]["best_step_ms"]:
            found[key] = record
    return found


def labels(data, found):
    """{matrix: its name for an axis} of what efficiencies() found."""
    return {matrix: data.label(matrix, record) for (matrix, _), record in found.items()}


def percent(record):
    """Time on one GPU over GPUs times time, in percent."""
    return 100 * record["efficiency"]
