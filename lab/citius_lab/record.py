"""Results on disk: a folder with ``run.json`` and ``records.jsonl``, and nothing derived.

The format is described in ``lab/RECORDS.md``. One line per event, written and synced when it
happens, so that neither Ctrl-C nor a crash nor a full disk loses what was measured before.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import json
import os
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeGuard

from citius_lab.errors import LabError, RecordError

if TYPE_CHECKING:
    from pathlib import Path


class Recorder:
    """Appends to a result folder; a context manager.

    Args:
        resume: Whether to go on after the records the folder holds.

    Raises:
        LabError: The folder holds the records of another run, or another process writes them.
        RecordError: It cannot be written to.
    """

    def __init__(self, folder: Path, *, resume: bool = False) -> None:
        self.folder = folder
        if (folder / RECORDS).exists() and not resume:
            raise LabError(f"{folder} holds the records of another run; name another with --out")
        try:
            (folder / "logs").mkdir(parents=True, exist_ok=True)
            flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC
            self._descriptor = os.open(folder / RECORDS, flags, 0o644)
            self._lock()
            if resume:
                _cut_half_line(folder / RECORDS)
        except OSError as error:
            raise _unwritable(folder, error) from error

    def __enter__(self) -> Recorder:
        return self

    def __exit__(self, *_: object) -> None:
        os.close(self._descriptor)

    def _lock(self) -> None:
        """Keep other processes from writing here, until this one closes the file or ends."""
        try:
            fcntl.flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(self._descriptor)
            raise LabError(
                f"another citius lab writes to {self.folder}; wait until it has ended"
            ) from None

    def head(self, run: dict[str, Any]) -> None:
        """Write what the whole run has in common."""
        text = json.dumps({"schema": SCHEMA, **run}, indent=1) + "\n"
        fresh = self.folder / (RUN + ".new")
        try:
            with fresh.open("w") as file:
                file.write(text)
                file.flush()
                os.fsync(file.fileno())
            fresh.replace(self.folder / RUN)
        except OSError as error:
            with contextlib.suppress(OSError):
                fresh.unlink()
            raise _unwritable(self.folder, error) from error

    def write(self, kind: str, **fields: Any) -> dict[str, Any]:
        """Append one record, synced, and return it.

        Raises:
            RecordError: It could not be written; what was written before stands.
        """
        record = {"kind": kind, "at": time.time(), **fields}
        rest = (line_of(record) + "\n").encode()
        length = os.fstat(self._descriptor).st_size
        try:
            while rest:
                rest = rest[os.write(self._descriptor, rest) :]
            os.fsync(self._descriptor)
        except OSError as error:
            with contextlib.suppress(OSError):
                os.ftruncate(self._descriptor, length)
            raise _unwritable(self.folder, error) from error
        return record

    def log_path(self, contestant: str, round_number: int) -> Path:
        """Return where the output of one start goes."""
        return self.folder / "logs" / f"{contestant}-{round_number}.log"


def _unwritable(folder: Path, error: OSError) -> RecordError:
    what = (
        "is full" if error.errno in (errno.ENOSPC, errno.EDQUOT) else f"cannot be written: {error}"
    )
    return RecordError(
        f"the disk of {folder} {what}; what was recorded before is kept "
        f"(make room, then: citius lab resume {folder})"
    )


def _cut_half_line(path: Path) -> None:
    """Cut off a last line that a crash left unfinished."""
    if path.exists():
        data = path.read_bytes()
        os.truncate(path, data.rfind(b"\n") + 1)


@dataclass(slots=True)
class Results:
    """What a result folder says; all that ``analyse`` and ``report`` may know."""

    run: dict[str, Any]
    records: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])
    counts: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])
    """Instructions per request, of which there may be none: `citius lab count` adds them later."""

    def of_kind(self, kind: str) -> list[dict[str, Any]]:
        """Return the records of one kind, in the order they were written."""
        return [record for record in self.records if record["kind"] == kind]


def count_key(entry: dict[str, Any]) -> CountKey:
    """Return the figure that a count of instructions is of: experiment, series, case, contestant."""
    return entry["experiment"], entry["series"], entry["case"], entry["contestant"]


def line_of(entry: dict[str, Any]) -> str:
    """Return a record as its line of the file."""
    return json.dumps(entry, separators=(",", ":"))


def expect_whole(folder: Path, results: Results) -> None:
    """Check that a run came to its end, and that what it recorded is all there.

    Raises:
        LabError: It was interrupted, or lines of its records are missing.
    """
    ended = results.of_kind("end")
    if not ended:
        raise LabError(
            f"{folder / RECORDS} has no end: it was cut off, or the run still goes on; "
            f"citius lab resume {folder} completes it"
        )
    if ended[-1]["interrupted"]:
        raise LabError(f"the run in {folder} was interrupted; citius lab resume {folder} goes on")
    kept = results.run.get("kept_records")
    if kept is not None and kept != len(results.records):
        raise LabError(
            f"{folder / RECORDS} has {len(results.records)} records, {folder / RUN} says {kept}"
        )


def _is_object(value: object) -> TypeGuard[dict[str, Any]]:
    return isinstance(value, dict)


def load(folder: Path) -> Results:
    """Read a result folder; a last line that was cut off is ignored.

    Raises:
        LabError: It is not a result folder, or one of another schema.
    """
    try:
        run = json.loads((folder / RUN).read_text())
        lines = (folder / RECORDS).read_text().splitlines()
        counted = (folder / COUNTS).read_text().splitlines() if (folder / COUNTS).exists() else []
    except (OSError, ValueError) as error:
        raise LabError(f"{folder} is not a result folder of the lab: {error}") from error
    if not _is_object(run):
        raise LabError(f"{folder / RUN}: expected an object, got {type(run).__name__}")
    if run.get("schema") != SCHEMA:
        raise LabError(f"{folder} has schema {run.get('schema')}, this lab reads {SCHEMA}")
    return Results(run, _entries(folder / RECORDS, lines), _entries(folder / COUNTS, counted))


def _entries(path: Path, lines: list[str]) -> list[dict[str, Any]]:
    """Return the objects of a file with one a line; a last line that was cut off is ignored.

    Raises:
        LabError: A line is none.
    """
    found: list[dict[str, Any]] = []
    for number, line in enumerate(lines, 1):
        try:
            entry = json.loads(line)
        except ValueError as error:
            if number < len(lines):
                raise LabError(f"{path}, line {number}: {error}") from error
            continue
        if not _is_object(entry) or "kind" not in entry:
            raise LabError(
                f'{path}, line {number}: expected an object with a "kind", got {line[:60]}'
            )
        found.append(entry)
    return found


CountKey = tuple[str, str, str, str]
SCHEMA = 2
RUN = "run.json"
RECORDS = "records.jsonl"
COUNTS = "instructions.jsonl"
