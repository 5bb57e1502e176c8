"""What students handed in, as it was downloaded: a directory with something for each of them.

Nothing is unpacked to disk and no link is followed; of each submission the files of the step's
exercises are taken, by their names or by the kernels that they define, and nothing else. Each is read in a process of its own, with limits on
time and memory.
"""

import io
import multiprocessing
import os
import re
import resource
import stat
import tarfile
import unicodedata
import zipfile
from collections import Counter
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from pathlib import Path, PurePosixPath

from exercises import ROOT, TODO, given_files

SECONDS, MEBIBYTES = 5, 300  # of a processor and of memory, to read one
LARGEST_FILE = 1 << 20  # of an exercise
LARGEST_ARCHIVE = 64 << 20
TOO_MUCH = f"reading it takes more than {SECONDS} s or {MEBIBYTES} MiB"
ARCHIVE = re.compile(r"\.(tar|tar\.(gz|bz2|xz)|tgz|tbz2|txz|zip)$", re.IGNORECASE)
SOURCE = re.compile(r"\.(cuh?|h|hh|hpp|cc|cpp|cxx|txt)$", re.IGNORECASE)


class Unreadable(Exception):
    """A submission that cannot be read; the text says why."""


# --- Files of one submission ------------------------------------------------------------------------


def best(paths, step, name):
    """Of the paths to files of this name the one to take: in a directory of the step's name or of its folder's, the
    shortest."""
    place = PurePosixPath(step.directory, name)
    # (Windows may have written them.)
    parts = {path: PurePosixPath(path.replace("\\", "/")).parts for path in paths}
    found = [path for path in paths if parts[path][-1] == place.name]

    def rank(path):
        elsewhere = len(parts[path]) < 2 or parts[path][-2] != place.parent.name
        return elsewhere, len(parts[path]), path

    return min(found, key=rank, default=None)


def chosen(paths, read, step):
    """{name: bytes} of the exercises' files among `paths`. In the place of a file that is not there under its name, or only as
    it was handed out, comes one of another name (csr_vector-1.cuh, csr_vector copy.cuh.txt) that defines the same kernels.
    read: the bytes at a path."""
    files = {name: read(path) for name in step.files() if (path := best(paths, step, name))}
    todo, others = TODO.encode(), None
    for name, given in given_files(step, ROOT / step.directory).items():
        if todo not in files.get(name, todo):
            continue
        others = others or {path: read(path) for path in filter(SOURCE.search, paths)}
        kernels = re.findall(r"__global__[^;{}]*?\b(\w+_kernel)\s*\(", given)
        defined = rf"__global__[^;{{}}]*\b({'|'.join(kernels)})\s*\(".encode()
        versions = {data: path for path, data in others.items() if re.search(defined, data)}
        written = {data: path for data, path in versions.items() if todo not in data}
        if len(written) > 1:
            several = f"several define its kernels: {', '.join(sorted(written.values()))}"
            raise Unreadable(f"no file is named {name}, and {several}")
        files.update({name: data for data in [*versions, *written][-1:]})
    return files


def walk(top):
    """(path relative to `top`, stat) of regular files below it."""
    for place, _, names in os.walk(top):
        for path in (os.path.join(place, name) for name in names):
            info = os.lstat(path)
            if stat.S_ISREG(info.st_mode):
                yield os.path.relpath(path, top), info


def read_regular(path, most=LARGEST_FILE):
    """The bytes of a regular file (not of a link, FIFO or device, whatever it has become by now)."""
    descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    with os.fdopen(descriptor, "rb") as file:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise Unreadable("it is no file")
        data = file.read(most + 1)
    if len(data) > most:
        raise Unreadable(f"a file is larger than {most >> 20} MiB")
    return data


def from_directory(top, step):
    infos = dict(walk(top))
    files = chosen(infos, lambda path: read_regular(os.path.join(top, path)), step)
    if not files:  # a directory around an archive, as Moodle makes it; the last that was uploaded
        archives = filter(ARCHIVE.search, infos)
        oldest_first = sorted(archives, key=lambda path: (infos[path].st_mtime, path))
        for path in oldest_first[::-1][:5]:
            files = files or from_archive(os.path.join(top, path), step)
    return files


def from_tarball(data, is_wanted):
    """{path: bytes} of the members that could be an exercise's file, in one pass over it."""
    with tarfile.open(fileobj=io.BytesIO(data), mode="r|*") as tar:
        members = (m for m in tar if m.isreg() and is_wanted(m.name) and m.size <= LARGEST_FILE)
        return {m.name: tar.extractfile(m).read() for m in members}


def from_zip(data, is_wanted):
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        files = (member for member in archive.infolist() if not member.is_dir())
        files = (m for m in files if stat.S_IFMT(m.external_attr >> 16) in (0, stat.S_IFREG))
        files = (m for m in files if is_wanted(m.filename) and m.file_size <= LARGEST_FILE)
        return {member.filename: archive.read(member) for member in files}


def from_archive(path, step):
    data = read_regular(path, LARGEST_ARCHIVE)
    read = from_zip if data[:2] == b"PK" else from_tarball
    kept = read(data, SOURCE.search)
    return chosen(kept, kept.get, step)


def read_here(paths, step):
    """{name: bytes} of the exercises' files that are there, in this process. Unreadable if they cannot be read."""
    try:
        mode = os.lstat(paths[0]).st_mode
        if len(paths) > 1 or stat.S_ISREG(mode) and not ARCHIVE.search(paths[0]):  # loose files
            return chosen(paths, read_regular, step)
        if stat.S_ISDIR(mode):
            return from_directory(paths[0], step)
        return from_archive(paths[0], step)
    except Unreadable:
        raise
    except OSError as error:
        raise Unreadable(error.strerror or "it is damaged") from None
    except MemoryError:
        raise Unreadable(TOO_MUCH) from None
    except Exception as error:  # zlib, lzma and others have their own
        what = first_line(str(error)) or type(error).__name__
        raise Unreadable(f"it is damaged: {what}") from None


def limit():
    resource.setrlimit(resource.RLIMIT_CPU, (SECONDS, SECONDS))
    resource.setrlimit(resource.RLIMIT_AS, (MEBIBYTES << 20, MEBIBYTES << 20))


def read_submission(paths, step):
    """The same in a process of its own."""
    with ProcessPoolExecutor(1, multiprocessing.get_context("forkserver"), limit) as pool:
        try:
            return pool.submit(read_here, list(map(os.fspath, paths)), step).result()
        except BrokenProcessPool:
            raise Unreadable(TOO_MUCH) from None


# --- Submissions of all -----------------------------------------------------------------------------


def first_line(text):
    return printable(text.splitlines()[0] if text.strip() else "")


def printable(text, most=200):
    """Text in which nothing moves a cursor, ends a line or hides."""
    text = text[: 4 * most].encode("utf-8", "replace").decode("utf-8")
    text = "".join(c if c.isprintable() and unicodedata.category(c) != "Cf" else "?" for c in text)
    return text if len(text) <= most else text[: most - 3] + "..."


def student_of(name):
    """Whose a directory or an archive is, by the names that systems give: Ann Lee_12345_assignsubmission_file_
    (Moodle), leeann_12345_67890_kernels.zip (Canvas), submission_12345 (Gradescope), step-03-annlee
    (GitHub Classroom: all of it, since the assignment's name cannot be told from the student's)."""
    name = ARCHIVE.sub("", name)
    # Moodle, Canvas.
    for system in (r"(.+)_(\d+)_assignsubmission_", r"([a-z]+)_(?:LATE_)?(\d+)_\d+_.+$"):
        if found := re.match(system, name):
            return f"{found[1]} {found[2]}"
    return name


def file_name(student, taken):
    """A name for a student's page: short, and such that every system takes it. `taken`: those that
    are."""
    base = re.sub(r"[^\w .,@+-]", "_", printable(student, 80), flags=re.ASCII).strip(" .")
    name, number = base or "student", 1
    base = name
    while name.lower() in taken:
        number += 1
        name = f"{base} {number}"
    taken.add(name.lower())
    return name


def submissions_in(directory, step):
    """([(student, paths)], sorted; the names of what is passed over, since it is none). Several paths: loose files,
    of the student that a system's prefix names, or of the one whose directory it is."""
    names = step.files()
    found, loose, passed_over = [], {}, []
    with os.scandir(directory) as entries:
        entries = sorted(entries, key=lambda entry: os.fsencode(entry.name))
    for entry in entries:
        if entry.name.startswith("__MACOSX") or entry.name == ".git":
            continue
        is_file = entry.is_file(follow_symlinks=False)
        is_archive = ARCHIVE.search(entry.name) and is_file
        if entry.is_dir(follow_symlinks=False) or is_archive:
            found.append((printable(student_of(entry.name)), [entry.path]))
        elif is_file and any(PurePosixPath(name).stem in entry.name for name in names):
            student = Path(directory).resolve().name
            if re.match(r"[a-z]+_(?:LATE_)?\d+_\d+_", entry.name):
                student = student_of(entry.name)
            loose.setdefault(printable(student), []).append(entry.path)
        elif not entry.name.startswith("."):
            passed_over.append(printable(entry.name))
    found += loose.items()
    counts = Counter(student for student, _ in found)
    names = [s if counts[s] == 1 else printable(os.path.basename(paths[0])) for s, paths in found]
    return list(zip(names, (paths for _, paths in found))), passed_over
