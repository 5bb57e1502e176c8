"""The GPUs of cache_model.hpp, for the scripts: {short name: Gpu}."""

import re
from pathlib import Path
from typing import NamedTuple


class Gpu(NamedTuple):
    """As struct Gpu of cache_model.hpp, without its first field."""

    full_name: str
    multiprocessors: int
    threads: int
    blocks: int
    l1_bytes: int
    shared_bytes: int
    shared_is_of_l1: bool
    l2_bytes: int
    mhz: float
    dram_gb_per_s: float
    f64_gflops: float
    device: str


def number(text):
    value, _, shift = text.partition("<<")
    return text == "true" if text in ("true", "false") else int(value) << int(shift or 0)


def read():
    text = Path(__file__).with_name("cache_model.hpp").read_text(encoding="utf-8")
    rows = re.findall(r'^    {"(\w+)", "(.+?)", (.+), "(.+)"},$', text, re.MULTILINE)
    return {
        name: Gpu(full_name, *map(number, numbers.split(", ")), device)
        for name, full_name, numbers, device in rows
    }


GPUS = read()


def of_device(device):
    """The GPU that a driver calls so, or None."""
    return next((gpu for gpu in GPUS.values() if gpu.device in device), None)
