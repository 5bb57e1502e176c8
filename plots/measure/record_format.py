"""The format of records: lines of JSON that `spmv --json FILE` appends, and what they say together.

    {"run": {"id": R, "device": ..., "commit": ..., "command": ...}}     once per run
    {"matrix": {"run": R, "name": M, "source": ..., "rows": ..., ...}}   once per run and matrix
    {"kernel": {"run": R, "name": K, "step": ..., "format": ...}}        once per run and kernel
    {"code": {"name": C, "arch": ..., "functions": {name: hash}}}        once per machine code: what was launched
    {"run": R, "matrix": M, "precision": P, "kernel": K, "verified": true, "code": C, ...}   a measurement
    {"run": R, "matrix": M, "precision": P, "kernel": K, "refused": WHY}          none, or "failed": WHY

A measurement holds nothing that follows from other lines: join() puts together what belongs to it.
Standard library only, since `make check` reads records too.
"""

import contextlib
import json
import statistics
from pathlib import Path

import columns
from columns import IDENTITY


class RecordError(Exception):
    """Records that are not there or not to be trusted; the text says which."""


STATES = ("warm", "cold", "overlapped")
OUTCOMES = ("refused", "failed")
DESCRIPTIONS = ("run", "matrix", "kernel", "code")
LIBRARY = "library"  # the code of a kernel that launches nothing of its own


def column(state, quartile="median"):
    """The field of a joined record that holds a time: "warm_ms", "cold_lower_ms"."""
    return f"{state}_ms" if quartile == "median" else f"{state}_{quartile}_ms"


def parsed(text, name):
    """The objects of a file's lines, each checked to be a description or a verified measurement."""
    for number, line in enumerate(text.splitlines(), 1):
        try:
            found = json.loads(line)
        except ValueError as error:
            raise RecordError(f"{name}, line {number}: no JSON: {error}") from None
        of_a_run = found.get("verified") is True and "run" in found
        if description_of(found) is None and outcome_of(found) is None and not of_a_run:
            raise RecordError(f"{name}, line {number}: a record that is not verified, or of no run")
        yield found


def description_of(line):
    """Which of DESCRIPTIONS a line is, or None."""
    kind = next(iter(line)) if len(line) == 1 else None
    return kind if kind in DESCRIPTIONS and isinstance(line[kind], dict) else None


def outcome_of(line):
    """Why there is no measurement: "refused", "failed", or None where there is one."""
    return next((outcome for outcome in OUTCOMES if outcome in line and "run" in line), None)


def thing_of(line):
    """What a measurement, or a joined record, measures: of two with the same thing the newer run's
    counts."""
    return tuple(line.get(name) or None for name in IDENTITY)


def key_of(kind, description):
    if kind in ("matrix", "kernel"):
        return description["run"], description["name"]
    return description["id" if kind == "run" else "name"]


def join(lines):
    """One flat dictionary per measurement, in their order, from parsed lines: its own fields, those
    of its run, matrix and kernel, and what follows from them. The baseline becomes fields of the
    others.

    Lines of other kinds are skipped. Raises RecordError where a description is missing or
    contradicted.
    """
    described = {kind: {} for kind in DESCRIPTIONS}
    measurements, baselines = [], {}
    for line in lines:
        if kind := description_of(line):
            description = line[kind]
            known = described[kind].setdefault(key_of(kind, description), description)
            if known != description:
                raise RecordError(f"{kind} {key_of(kind, description)} is described in two ways")
        elif line.get("kernel") == "baseline":
            baselines[line["run"], line["matrix"], line["precision"]] = line
        elif "run" in line and "verified" in line:
            measurements.append(line)
    for line in measurements:
        try:
            run = described["run"][line["run"]]
            matrix = described["matrix"][line["run"], line["matrix"]]
            kernel = described["kernel"][line["run"], line["kernel"]]
            code = line.get("code")
            if code not in (None, LIBRARY):
                line = {**line, "code": described["code"][code]}
        except KeyError as missing:
            raise RecordError(f"no description of {missing.args[0]}") from None
        beside = baselines.get((line["run"], line["matrix"], line["precision"]))
        yield joined(line, run, matrix, kernel, beside)


def joined(line, run, matrix, kernel, baseline):
    on_host = kernel.get("host", False)
    of_run = {k: v for k, v in run.items() if k != "id"}
    record = {"program": "", **of_run, "time": run["id"][:19] + "Z", "choice": ""}
    if on_host:
        record["device"] = run.get("processor", run["device"])
        for library in ("driver", "cuda", "cusparse"):
            record.pop(library, None)
    else:
        record.pop("threads", None)
    record.update({k: v for k, v in matrix.items() if k not in ("run", "name")})
    record.update(
        {k: v for k, v in kernel.items() if k not in ("run", "name", "host")}, host=on_host
    )
    record.update(line)
    add_times(record, "", line)
    if baseline:
        add_times(record, "baseline_", baseline)
        record["copy_gb_per_s"] = baseline["copy_gb_per_s"]
    if record["program"] in ("multigpu", "multigpu_mpi"):
        add_multigpu(record)
    return record


def add_times(record, prefix, line):
    """[lower, median, upper, samples] in a line, as fields of their own: quartiles or, of several
    processes, the least and the greatest of their medians."""
    for state in STATES:
        if f"{state}_ms" in line:
            lower, median, upper, samples = line[f"{state}_ms"]
            name = prefix + state
            ends = {column(name, "lower"): lower, column(name): median}
            ends |= {column(name, "upper"): upper, f"{name}_samples": samples}
            record.update(ends)


def add_multigpu(record):
    """Of step 10: the fastest drive, and the spread of the GPUs' busy times."""
    if "step_ms" not in record:
        return
    fastest = min(record["step_ms"].values(), key=lambda spread: spread[1])
    for quartile, time in zip(("lower", "median", "upper"), fastest):
        record[column("best_step", quartile)] = time
    busy = [part["busy_ms"] for part in record["parts"] if "busy_ms" in part]
    if busy:
        record["busy_deviation_ms"] = statistics.pstdev(busy)


def combined(processes):
    """The lines of several processes that measured the same things, as one: of each time [least,
    median, greatest] of the processes' medians with the number of all samples, and `processes`, how
    many there were; of what is one number, the median. What one of them refused or found wrong has
    no measurement."""
    described, found = {}, {}
    for line in (line for lines in processes for line in lines):
        if kind := description_of(line):
            described.setdefault((kind, key_of(kind, line[kind])), line)
        else:
            found.setdefault(thing_of(line), []).append(line)
    return [*described.values(), *(combined_line(lines) for lines in found.values())]


def combined_line(lines):
    if outcome := next((line for line in lines if outcome_of(line)), None):
        return outcome
    line = dict(lines[0], processes=len(lines))
    for name in line.keys() & set(columns.names(processes=columns.SPREAD)):
        line[name] = spread([each[name] for each in lines])
    if "step_ms" in line:
        every = [each["step_ms"] for each in lines]
        line["step_ms"] = {drive: spread([of[drive] for of in every]) for drive in every[0]}
    for name in line.keys() & set(columns.names(processes=columns.MEDIAN)):
        line[name] = statistics.median(each[name] for each in lines)
    return line


def spread(times):
    medians = [median for _, median, *_ in times]
    samples = sum(samples for *_, samples in times)
    return [min(medians), statistics.median(medians), max(medians), samples]


def lines_in(file):
    """The parsed lines of a file."""
    return parsed(file.read_text(encoding="utf-8"), file.name)


def records_in(file):
    """The joined measurements of one file, in its order."""
    file = Path(file)
    try:
        yield from join(lines_in(file))
    except RecordError as error:
        text = str(error).removeprefix(f"{file.name}: ")
        raise RecordError(f"{file.name}: {text}") from None


def jsonl(lines):
    """Dictionaries as lines of JSON without blanks."""
    texts = (json.dumps(line, separators=(",", ":"), ensure_ascii=False) for line in lines)
    return "".join(f"{text}\n" for text in texts)


def append(file, lines):
    """Appends lines to a file of records; a description that it holds already is not repeated."""
    file = Path(file)
    text = file.read_text(encoding="utf-8") if file.exists() else ""
    known = set(text.splitlines())
    is_new = lambda line: line not in known or description_of(json.loads(line)) is None  # noqa: E731
    write_whole(file, text + "".join(f"{line}\n" for line in filter(is_new, lines)))


def write_whole(file, data):
    """Writes text or bytes to a file, all of it: where that fails the program ends with the reason,
    and what the file held before is still there."""
    file = Path(file)
    part = file.with_name(file.name + ".part")
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        part.write_bytes(data if isinstance(data, bytes) else data.encode("utf-8"))
        part.replace(file)
    except OSError as error:
        with contextlib.suppress(OSError):
            part.unlink()
        raise SystemExit(f"error: {file}: {error.strerror}") from None


def tidied(lines, is_current=lambda matrix: True):
    """Parsed lines without what newer runs superseded, what nothing refers to, and what was
    measured on a matrix whose description is not current: descriptions first, then measurements, a
    newer one in the place of the older one, so that a diff shows what was measured again."""
    newest, baselines, described = {}, {}, {kind: {} for kind in DESCRIPTIONS}
    lines = list(lines)
    stale = {
        key_of("matrix", line["matrix"])
        for line in lines
        if description_of(line) == "matrix" and not is_current(line["matrix"])
    }
    for line in lines:
        if not description_of(line) and (line["run"], line["matrix"]) in stale:
            continue
        if kind := description_of(line):
            described[kind].setdefault(key_of(kind, line[kind]), line)
        elif line["kernel"] == "baseline":
            baselines[line["run"], line["matrix"], line["precision"]] = line
        else:
            key = thing_of(line), "verified" in line
            if newest.get(key, line)["run"] <= line["run"]:
                newest[key] = line  # a dictionary keeps the place of the first
    kept, measured = [], set()
    for (thing, is_measured), line in newest.items():
        if not is_measured and newest.get((thing, True), {"run": ""})["run"] >= line["run"]:
            continue  # it was refused once
        kept.append(line)
        key = line["run"], line["matrix"], line["precision"]
        if "verified" in line and key not in measured:
            kept += [baselines[key]] if key in baselines else []
            measured.add(key)
    used = {
        "run": {line["run"] for line in kept},
        "matrix": {(line["run"], line["matrix"]) for line in kept},
        "kernel": {(line["run"], line["kernel"]) for line in kept},
        "code": {line.get("code") for line in kept},
    }
    ordered = [(kind, *of) for kind in DESCRIPTIONS for of in sorted(described[kind].items())]
    return [line for kind, key, line in ordered if key in used[kind]] + kept


def tidy(file, is_current=lambda matrix: True):
    """Tidies a file of records in place."""
    file = Path(file)
    write_whole(file, jsonl(tidied(lines_in(file), is_current)))
