"""What a window cost is told apart: the server, the lab with all it started, and everybody else."""

from __future__ import annotations

import os
import sys

import pytest

from citius_lab import launch, usage
from citius_lab.environment import CpuTimes


def snapshot(at: float, server_s: float, generator_s: float, relay_s: float) -> usage.Snapshot:
    """A machine of two CPUs; strangers use a tenth of one."""
    busy_s = server_s + generator_s + relay_s + 0.1 * at
    machine = CpuTimes(at, {0: busy_s, 1: 0.0}, {0: 0.0}, {0: 0.0, 1: 0.0}, {0: 0.0})
    return usage.Snapshot(at, {7: server_s}, {}, {8: generator_s, 9: relay_s}, machine, 0.0)


def test_the_labs_own_processes_are_no_strangers() -> None:
    begin, end = snapshot(0.0, 0.0, 0.0, 0.0), snapshot(2.0, 1.0, 0.6, 0.4)
    load = {"cpu_s": {"user": 0.5, "system": 0.1}}
    cost = usage.between(begin, end, load, [0])
    assert cost["server_share"] == pytest.approx(0.5)
    assert cost["generator_share"] == pytest.approx(0.3)
    assert cost["lab_share"] == pytest.approx(0.2)
    assert cost["foreign_share"] == pytest.approx(0.1)


def test_what_the_lab_started_is_the_labs_and_the_server_is_not() -> None:
    waits = [sys.executable, "-S", "-c", "import signal; signal.pause()"]
    server, relay = launch.Guarded(waits), launch.Guarded(waits)
    try:
        found = usage.Snapshot.take(server.pid)
    finally:
        server.stop()
        relay.stop()
    assert server.pid in found.server
    assert {os.getpid(), relay.pid} <= found.lab.keys()
    assert not found.server.keys() & found.lab.keys()
