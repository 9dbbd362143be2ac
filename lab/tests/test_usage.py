"""What a window cost is told apart: the server, the lab with all it started, and everybody else."""

from __future__ import annotations

import os
import signal
import sys
import time
from typing import TYPE_CHECKING

import pytest

from citius_lab.processes import launch, usage
from citius_lab.processes.environment import CpuTimes

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

# A process that is no longer below the one that started it.
LEAVES = """
import os, signal
if os.fork() == 0:
    if os.fork() == 0:
        signal.pause()
    os._exit(0)
os.wait()
signal.pause()
"""
# Its work is done by a process that ends.
FORKS = """
import os, signal, sys, time
def work(*_):
    if os.fork() == 0:
        while time.process_time() < 0.2:
            pass
        os._exit(0)
    os.wait()
    open(sys.argv[1] + ".done", "w").close()
signal.signal(signal.SIGUSR1, work)
open(sys.argv[1], "w").close()
while True:
    signal.pause()
"""


def wait_for(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 20
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def snapshot(at: float, server_s: float, generator_s: float, relay_s: float) -> usage.Snapshot:
    """A machine of two CPUs; strangers use a tenth of one."""
    busy_s = server_s + generator_s + relay_s + 0.1 * at
    machine = CpuTimes(at, {0: busy_s, 1: 0.0}, {0: 0.0}, {0: 0.0, 1: 0.0}, {0: 0.0})
    return usage.Snapshot(at, {7: server_s}, 0.0, {}, {8: generator_s, 9: relay_s}, machine, 0.0)


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
        found = usage.Snapshot.take(server)
    finally:
        server.stop()
        relay.stop()
    assert server.pid in found.server
    assert {os.getpid(), relay.pid} <= found.lab.keys()
    assert not found.server.keys() & found.lab.keys()


def test_what_a_server_starts_and_leaves_is_still_the_servers() -> None:
    server = launch.Guarded([sys.executable, "-S", "-c", LEAVES])
    try:
        wait_for(lambda: launch.tree(server.pid) == [server.pid] and len(server.pids()) == 2)
        found = usage.Snapshot.take(server)
        assert sorted(found.server) == sorted(server.pids())
        assert not found.server.keys() & found.lab.keys()
    finally:
        server.stop()


def test_what_ended_while_it_was_measured_is_the_servers(tmp_path: Path) -> None:
    mark = tmp_path / "mark"
    server = launch.Guarded([sys.executable, "-S", "-c", FORKS, str(mark)])
    try:
        wait_for(mark.exists)
        begin = usage.Snapshot.take(server)
        os.kill(server.pid, signal.SIGUSR1)
        wait_for((tmp_path / "mark.done").exists)
        end = usage.Snapshot.take(server)
    finally:
        server.stop()
    cost = usage.between(begin, end, {"cpu_s": {"user": 0.0, "system": 0.0}}, [0])
    assert cost["server_cpu_s"] == pytest.approx(0.2, abs=0.1)


def test_what_a_process_had_used_before_is_not_counted_when_it_ends() -> None:
    machine = CpuTimes(0.0, {0: 0.0}, {0: 0.0}, {0: 0.0}, {0: 0.0})
    begin = usage.Snapshot(0.0, {7: 1.0, 8: 5.0}, 1.0, {}, {}, machine, 0.0)
    end = usage.Snapshot(1.0, {7: 1.2}, 6.3, {}, {}, machine, 0.0)
    cost = usage.between(begin, end, {"cpu_s": {"user": 0.0, "system": 0.0}}, [0])
    assert cost["server_cpu_s"] == pytest.approx(0.2 + 0.3)
