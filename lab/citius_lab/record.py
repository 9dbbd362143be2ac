"""Results on disk: a folder with ``run.json`` and ``records.jsonl``, and nothing derived.

One line per event, written and flushed when it happens, so that Ctrl-C or a crash loses nothing.
Kinds: ``start`` (a contestant was launched), ``measurement``, ``fault`` (something that keeps a
figure from being believed or made), ``left out`` (a contestant that cannot be built here), and
``end``. Latency histograms stay inside the load generator's record, base64.
"""

from __future__ import annotations

import json
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from citius_lab.errors import LabError

if TYPE_CHECKING:
    from pathlib import Path


class Recorder:
    """Appends to a result folder; a context manager.

    Raises:
        LabError: The folder holds the records of another run.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        if (folder / RECORDS).exists():
            raise LabError(f"{folder} holds the records of another run; name another with --out")
        (folder / "logs").mkdir(parents=True, exist_ok=True)
        self._file = (folder / RECORDS).open("w")

    def __enter__(self) -> Recorder:
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()

    def head(self, run: dict[str, Any]) -> None:
        """Write what the whole run has in common."""
        text = json.dumps({"schema": SCHEMA, **run}, indent=1)
        (self.folder / RUN).write_text(text + "\n")

    def write(self, kind: str, **fields: Any) -> dict[str, Any]:
        """Append one record and return it."""
        record = {"kind": kind, "at": time.time(), **fields}
        self._file.write(json.dumps(record, separators=(",", ":")) + "\n")
        self._file.flush()
        return record

    def log_path(self, contestant: str, round_number: int) -> Path:
        """Return where the output of one start goes."""
        return self.folder / "logs" / f"{contestant}-{round_number}.log"


@dataclass(slots=True)
class Results:
    """What a result folder says; all that ``analyse`` and ``report`` may know."""

    run: dict[str, Any]
    records: list[dict[str, Any]] = field(default_factory=list)

    def of_kind(self, kind: str) -> list[dict[str, Any]]:
        """Return the records of one kind, in the order they were written."""
        return [record for record in self.records if record["kind"] == kind]


def load(folder: Path) -> Results:
    """Read a result folder; a last line that was cut off is ignored.

    Raises:
        LabError: It is not a result folder, or one of another schema.
    """
    try:
        run = json.loads((folder / RUN).read_text())
        lines = (folder / RECORDS).read_text().splitlines()
    except (OSError, ValueError) as error:
        raise LabError(f"{folder} is not a result folder of the lab: {error}") from error
    if run.get("schema") != SCHEMA:
        raise LabError(f"{folder} has schema {run.get('schema')}, this lab reads {SCHEMA}")
    records = []
    for number, line in enumerate(lines, 1):
        try:
            records.append(json.loads(line))
        except ValueError as error:
            if number < len(lines):
                raise LabError(f"{folder / RECORDS}, line {number}: {error}") from error
    return Results(run, records)


SCHEMA = 1
RUN = "run.json"
RECORDS = "records.jsonl"
