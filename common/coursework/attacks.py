"""What is handed in that is none: for step 03, a directory, an archive or something that is neither.

None may harm another submission, or end the grading. (Kernels that cheat: mistakes.py.)
"""

import gzip
import io
import os
import tarfile
import zipfile
from pathlib import Path

from exercises import ROOT, write_files
from submissions import TOO_MUCH

GRADED, KERNEL = "03_csr_vector", "csr_vector.cuh"
UNREADABLE = "cannot be read|none of"


def directory(place, name):
    path = Path(place) / name
    path.mkdir()
    return path


def with_right_kernel(place, name):
    file = ROOT / GRADED / "csr_vector_shared.cuh"
    write_files(place, {os.path.join(os.fsdecode(name), file.name): file.read_bytes()})


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
    info = tarfile.TarInfo("zeros")
    info.size = 1 << 30
    with gzip.open(Path(place) / "gzip_bomb.tar.gz", "wb") as file:
        file.write(info.tobuf())
        for _ in range(1 << 10):
            file.write(bytes(1 << 20))


def long_path(place):
    """A path of 200 MB in a pax header."""
    how = {"format": tarfile.PAX_FORMAT, "compresslevel": 1}
    with tarfile.open(Path(place) / "long_path.tar.gz", "w:gz", **how) as tar:
        tar.addfile(tarfile.TarInfo("a" * (200 << 20)))


def zip_bomb(place):
    with zipfile.ZipFile(Path(place) / "zip_bomb.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(KERNEL, bytes(64 << 20))


def plain(name, data):
    return lambda place: (Path(place) / name).write_bytes(data)


KINDS = {"": tarfile.CHRTYPE, "a/": tarfile.FIFOTYPE, "b/": tarfile.SYMTYPE, "c/": tarfile.LNKTYPE}
DEVICES = [(f"{place}{KERNEL}", kind, b"") for place, kind in KINDS.items()]
# name of the submission as the table has it: (what writes it, what the remark says)
OTHERS = {
    "fifo": (fifo, UNREADABLE),
    "link_to_zero": (link_to("/dev/zero", "link_to_zero"), UNREADABLE),
    "link_to_solution": (link_to(str(ROOT / GRADED / KERNEL), "link_to_solution"), UNREADABLE),
    "no_files": (lambda place: directory(place, "no_files"), UNREADABLE),
    "damaged": (plain("damaged.zip", b"PK\3\4 nothing of the kind"), UNREADABLE),
    "devices_in_tar": (tarball("devices_in_tar.tgz", *DEVICES), UNREADABLE),
    "gzip_bomb": (gzip_bomb, UNREADABLE),
    "zip_bomb": (zip_bomb, UNREADABLE),
    "long_path": (long_path, TOO_MUCH),
}

# Right kernels under names that are none: what they get is full marks.
NAMES = {b"=cmd() \xff\xfe two\nlines": "=cmd() ?? two?lines", b"n" * 255: "n" * 197 + "..."}
