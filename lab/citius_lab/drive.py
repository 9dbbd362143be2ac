"""Drives one cell: checks, loads, checks again, and reads what it cost while it counted.

CPU time of the server's process tree is read at the load generator's ``begin`` and ``end`` events,
so it covers the counted window and neither warm-up nor checks. Memory is read right after ``end``,
while buffers are still what the load made them.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import subprocess
import tempfile
import threading
import time
from dataclasses import dataclass
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from citius_lab import launch, verify
from citius_lab.contestants import lab_root
from citius_lab.environment import CpuTimes
from citius_lab.errors import LaunchError, LoadError
from citius_lab.plan import stretched_s
from citius_lab.workloads import WrongAnswer

if TYPE_CHECKING:
    import random
    from collections.abc import Sequence

    from citius_lab.launch import Server
    from citius_lab.plan import Cell


@dataclass(slots=True)
class Snapshot:
    """Clocks of the server's processes and of the machine at one moment."""

    at: float
    server: dict[int, float]
    machine: CpuTimes

    @classmethod
    def take(cls, server_pid: int) -> Snapshot:
        """Read all clocks, the server's first."""
        server = launch.cpu_clocks_s(launch.tree(server_pid))
        return cls(time.monotonic(), server, CpuTimes.read())


class Driver:
    """Measures cells with one load generator.

    Args:
        load: The generator's command.
        load_cpus: CPUs it may use.
        server_cpus: CPUs the servers were started on.
    """

    def __init__(
        self,
        load: list[str],
        *,
        load_cpus: Sequence[int],
        server_cpus: Sequence[int],
        random: random.Random,
    ) -> None:
        self._load = load
        self._load_cpus = list(load_cpus)
        self._server_cpus = list(server_cpus)
        self._random = random

    def measure(self, server: Server, cell: Cell, fair_s: float) -> dict[str, Any]:
        """Measure one cell and return the fields of its record.

        Wrong answers and a generator that fails are part of the record (``fault``); the caller
        decides what becomes of the rest of the block.

        Raises:
            LaunchError: The server died.
        """
        fields: dict[str, Any] = {
            "contestant": cell.contestant,
            "case": cell.case_id,
            "section": cell.section,
            "connections": cell.connections,
            "pipeline": cell.pipeline,
            "fault": None,
        }
        try:
            answer = verify.verify_case(server.port, cell.case, self._random)
            fields["body_bytes"] = len(answer.body)
            window_s = stretched_s(fair_s, answer.elapsed_s)
            fields |= self._drive(server, cell, window_s, answer.body)
            verify.verify_case(server.port, cell.case, self._random)
        except WrongAnswer as error:
            fields["fault"] = f"wrong answer: {error}"
        except LoadError as error:
            fields["fault"] = str(error)
        except OSError as error:
            fields["fault"] = f"the server does not answer: {error}"
        if (how := server.ended()) is not None:
            raise LaunchError(how)
        return fields

    def command(self, port: int, cell: Cell, window_s: float) -> list[str]:
        """Return the generator's words for one cell, without where it writes."""
        cpus = ["--cpus", ",".join(map(str, self._load_cpus))] if self._load_cpus else []
        return [
            *self._load,
            "--connections",
            str(cell.connections),
            "--threads",
            "1",
            "--pipeline",
            str(cell.pipeline),
            "--warmup",
            f"{WARMUP_S}s",
            "--duration",
            f"{window_s:.3f}s",
            "--timeout",
            f"{TIMEOUT_S}s",
            *cpus,
            "--expect-status",
            "200",
            "--check-every",
            str(LONG_BODY_CHECKED_EVERY if cell.case_id == "transfer-data" else 1),
            f"http://127.0.0.1:{port}{cell.case.target}",
        ]

    def _drive(self, server: Server, cell: Cell, window_s: float, body: bytes) -> dict[str, Any]:
        command = self.command(server.port, cell, window_s)
        with tempfile.TemporaryDirectory(prefix="citius-lab-") as folder:
            expected, output = Path(folder, "body"), Path(folder, "load.json")
            expected.write_bytes(body)
            words = ["--expect-body-file", str(expected), "--json", str(output), "--events"]
            process = launch.Guarded(
                [*command[:-1], *words, command[-1]],
                cpus=self._load_cpus,
                stderr=subprocess.PIPE,
            )
            try:
                begin, end, memory = self._watch(process, server, window_s)
                code = process.wait(TIMEOUT_S)
            finally:
                process.stop()
            if code is None:
                raise LoadError(f"{self._load[0]} wrote its end and did not end")
            load = self._read(output, code)
        return {
            "window_s": window_s,
            "warmup_s": WARMUP_S,
            "command": command,
            "load": load,
            "usage": self._usage(begin, end, load),
            "memory": memory,
        }

    def _watch(
        self, process: launch.Guarded, server: Server, window_s: float
    ) -> tuple[Snapshot, Snapshot, dict[str, int]]:
        """Take a snapshot at each of the two events."""
        begin = end = None
        memory: dict[str, int] = {}
        messages = []
        watchdog = threading.Timer(window_s + WARMUP_S + 2 * TIMEOUT_S, process.stop)
        watchdog.start()
        try:
            for line in lines_of(process.stderr):
                event = _event(line)
                if event == "begin":
                    begin = Snapshot.take(server.pid)
                elif event == "end":
                    end = Snapshot.take(server.pid)
                    pids = launch.tree(server.pid)
                    memory = {"pss_kib": launch.pss_kib(pids), "processes": len(pids)}
                elif event is None:
                    messages.append(line.strip())
        finally:
            watchdog.cancel()
        if begin is None or end is None:
            said = " / ".join(messages[-3:]) or "nothing"
            raise LoadError(f"the load generator did not finish its window; it said: {said}")
        return begin, end, memory

    def _usage(self, begin: Snapshot, end: Snapshot, load: dict[str, Any]) -> dict[str, float]:
        """Return what the window cost, in seconds and in shares of the CPUs.

        The generator reports its own CPU time, which covers the window to the microsecond.
        """
        elapsed_s = max(end.at - begin.at, 1e-9)
        server_s = _spent(begin.server, end.server)
        generator_s = load["cpu_s"]["user"] + load["cpu_s"]["system"]
        machine = end.machine.since(begin.machine)
        foreign_s = machine["busy_s"] - server_s - generator_s
        return {
            "elapsed_s": elapsed_s,
            "server_cpu_s": server_s,
            "generator_cpu_s": generator_s,
            "server_share": server_s / elapsed_s / max(len(self._server_cpus), 1),
            "generator_share": generator_s / elapsed_s,
            "server_cpus_idle_share": end.machine.idle_share(begin.machine, self._server_cpus),
            "interrupt_s": machine["interrupt_s"],
            "foreign_share": max(0.0, foreign_s) / elapsed_s,
            "steal_share": machine["steal_s"] / elapsed_s,
        }

    def _read(self, path: Path, code: int) -> dict[str, Any]:
        try:
            load: dict[str, Any] = json.loads(path.read_text())
        except (OSError, ValueError) as error:
            raise LoadError(
                f"the load generator ended with code {code} and left no record: {error}"
            ) from error
        if load.get("schema") != LOAD_SCHEMA:
            raise LoadError(
                f"the load generator writes schema {load.get('schema')}, this lab reads {LOAD_SCHEMA}"
            )
        return load


def load_command() -> list[str]:
    """Return the load generator's command: CITIUS_LOAD, the checkout's, the package's, PATH's.

    Raises:
        LoadError: There is none.
    """
    if named := os.environ.get("CITIUS_LOAD"):
        if shutil.which(named) is None:
            raise LoadError(f"CITIUS_LOAD is {named!r}, which is not a command")
        return [named]
    root = lab_root()
    places = [
        root / "load" / "target" / "release" / "citius-load",
        root.parent / "python" / "citius" / "bin" / "citius-load",
    ]
    for place in places:
        if place.exists():
            return [str(place)]
    if found := shutil.which("citius-load"):
        return [found]
    raise LoadError("no load generator: citius-load is not built; `make build` builds it")


def lines_of(stream: IO[bytes]) -> Any:
    """Yield the lines of a stream until it ends, also when it is closed underneath."""
    with contextlib.suppress(ValueError, OSError):
        for line in stream:
            yield line.decode(errors="replace")


def _event(line: str) -> str | None:
    with contextlib.suppress(ValueError, AttributeError):
        event: str | None = json.loads(line).get("event")
        return event
    return None


def _spent(begin: dict[int, float], end: dict[int, float]) -> float:
    return sum(clock - begin.get(pid, 0.0) for pid, clock in end.items())


LOAD_SCHEMA = 1
WARMUP_S = 0.15
TIMEOUT_S = 10
# Comparing 134 kB costs the generator more than reading it; lengths are compared always.
LONG_BODY_CHECKED_EVERY = 16
