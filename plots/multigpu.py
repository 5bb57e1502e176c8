"""Records of step 10: one product over several GPUs."""


def efficiencies(data, gpus, exchange):
    """{(matrix, "I" or "II"): (percent, milliseconds)} in double precision."""
    return {}
