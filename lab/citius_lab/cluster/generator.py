"""Runs the load generator on a worker of a Dask cluster; the other side of ``cluster``.

Each run holds a line (a TCP connection) to the coordinator. Over it the coordinator reads this
machine's clocks, says when to begin, and ends the run by closing it: Dask itself does not end what
runs on a worker. A worker that is killed takes its generator with it (``launch.Guarded``).
"""

from __future__ import annotations

import contextlib
import json
import os
import platform
import selectors
import socket
import subprocess
import tempfile
import time
from pathlib import Path
from typing import Any

from citius_lab.cluster import network
from citius_lab.errors import LabError
from citius_lab.measure import drive
from citius_lab.processes import environment, launch


def survey() -> dict[str, Any]:
    """Return what this worker is, and which generator it has (``fault``: why it has none)."""
    found: dict[str, Any] = {
        "host": network.host_name(),
        "machine": platform.machine(),
        "cpus": len(os.sched_getaffinity(0)),
        "load_schema": drive.LOAD_SCHEMA,
        "fault": None,
    }
    try:
        command = drive.load_command()
        words = [*command, "--version"]
        done = subprocess.run(words, capture_output=True, text=True, timeout=10, check=True)
        found["version"] = done.stdout.strip()
        found["sha256"] = environment.sha256(command[0])
    except (LabError, OSError, subprocess.SubprocessError) as error:
        found["fault"] = str(error)
    return found


def generate(job: dict[str, Any]) -> dict[str, Any]:
    """Run the generator once.

    Args:
        job: ``coordinator`` (host and port of the line), ``token``, ``worker``, ``words``
            (the generator's options; ``{folder}`` stands for that of the files), ``files`` (names and
            contents), ``target``, ``longest_s``.

    Returns:
        ``load`` (the generator's record), ``network``, ``cpu_idle_share``, ``steal_share``; or
        ``fault`` alone.
    """
    try:
        with contextlib.closing(Line(job)) as line:
            start_ns = line.wait_for_start()
            return _run(job, line, start_ns)
    except (LabError, OSError) as error:
        return {"fault": str(error) or type(error).__name__}


class Line:
    """The connection to the coordinator."""

    def __init__(self, job: dict[str, Any]) -> None:
        host, port = job["coordinator"]
        self.socket = socket.create_connection((host, port), timeout=LINE_S)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.socket.sendall(f"{job['token']} {job['worker']}\n".encode())
        self._read = self.socket.makefile("rb")

    def wait_for_start(self) -> int:
        """Answer with this machine's clocks until an instant comes; return it, by this machine's clock.

        Raises:
            LabError: The coordinator gave the run up.
        """
        while True:
            word, _, number = self._read.readline().decode().partition(" ")
            if word == "clock\n":
                self.socket.sendall(f"{time.monotonic_ns()} {time.time_ns()}\n".encode())
            elif word == "start":
                return int(number)
            else:
                raise LabError("the coordinator gave the run up before it began")

    def close(self) -> None:
        """Close it."""
        self._read.close()
        self.socket.close()


def _run(job: dict[str, Any], line: Line, start_ns: int) -> dict[str, Any]:
    with tempfile.TemporaryDirectory(prefix="citius-lab-") as folder:
        for name, content in job["files"].items():
            Path(folder, name).write_bytes(content)
        words = [word.replace("{folder}", folder) for word in job["words"]]
        output = Path(folder, "load.json")
        command = [*drive.load_command(), *words, "--start-at", str(start_ns)]
        command += ["--json", str(output), "--events", job["target"]]
        process = launch.Guarded(command, stderr=subprocess.PIPE)
        try:
            readings, said = _watch(process, line, job["longest_s"])
            code = process.wait(drive.TIMEOUT_S)
        finally:
            process.stop()
        if "end" not in readings or code is None:
            last = " / ".join(said[-3:]) or "nothing"
            raise LabError(f"the load generator did not finish its window; it said: {last}")
        load = drive.read_record(output, code)
    (net, cpu), (net_end, cpu_end) = readings["begin"], readings["end"]
    cpus = sorted(os.sched_getaffinity(0))
    return {
        "fault": None,
        "load": load,
        "network": network.between(net, net_end),
        "cpu_idle_share": cpu_end.idle_share(cpu, cpus),
        "steal_share": cpu_end.since(cpu)["steal_s"] / max(cpu_end.at - cpu.at, 1e-9),
    }


def _watch(
    process: launch.Guarded, line: Line, longest_s: float
) -> tuple[dict[str, Any], list[str]]:
    """Read this machine's counters at the generator's events; return them, and what else it said.

    Raises:
        LabError: The coordinator closed the line.
    """
    readings: dict[str, Any] = {}
    said: list[str] = []
    deadline = time.monotonic() + longest_s
    unread = b""
    with selectors.DefaultSelector() as selector:
        selector.register(process.stderr, selectors.EVENT_READ)
        selector.register(line.socket, selectors.EVENT_READ)
        while (left_s := deadline - time.monotonic()) > 0:
            for key, _ in selector.select(left_s):
                if key.fileobj is line.socket:
                    raise LabError("the coordinator gave the run up")
                piece = os.read(process.stderr.fileno(), 65536)
                if not piece:
                    return readings, said
                *lines, unread = (unread + piece).split(b"\n")
                for one in lines:
                    _note(one.decode(errors="replace"), readings, said)
    return readings, said


def _note(line: str, readings: dict[str, Any], said: list[str]) -> None:
    with contextlib.suppress(ValueError, AttributeError):
        event = json.loads(line).get("event")
        if event in ("begin", "end"):
            readings[event] = network.read(), environment.CpuTimes.read()
        return
    said.append(line.strip())


# A coordinator that does not answer for so long is gone.
LINE_S = 30.0
