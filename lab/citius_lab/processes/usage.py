"""Reads what a window cost: CPU of the server's tree, of the machine, memory, and the kernel's net.

Snapshots are taken at the load generator's ``begin`` and ``end`` events, so that CPU time covers
the counted window and neither warm-up nor checks. Network counters are those of the whole run of
the generator, because connections are opened before the window begins.
"""

from __future__ import annotations

import contextlib
import os
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from citius_lab.processes import launch
from citius_lab.processes.environment import CpuTimes

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from citius_lab.processes.launch import Guarded, Server


@dataclass(frozen=True, slots=True)
class Snapshot:
    """Clocks of the server's processes, of the lab's other ones and of the machine at one moment.

    Attributes:
        reaped_s: Of the server's processes that have ended.
        lab: The lab itself and all it started but the server: generator, relay, guards, databases.
        services: The databases that the server uses.
    """

    at: float
    server: dict[int, float]
    reaped_s: float
    services: dict[int, float]
    lab: dict[int, float]
    machine: CpuTimes
    throttled_s: float

    @classmethod
    def take(cls, process: Server | Guarded, service_pids: Sequence[int] = ()) -> Snapshot:
        """Read all clocks, those of the server, which is ``process``, first."""
        server, reaped_s = launch.cpu_clocks_s(process.pids()), process.reaped_s()
        others = [pid for pid in launch.tree(os.getpid()) if pid not in server]
        lab = launch.cpu_clocks_s(others)
        # The lab has started them, too.
        trees = (launch.tree(pid) for pid in service_pids)
        services = {pid: lab[pid] for tree in trees for pid in tree if pid in lab}
        return cls(
            time.monotonic(), server, reaped_s, services, lab, CpuTimes.read(), throttled_s()
        )


def between(
    begin: Snapshot, end: Snapshot, load: Mapping[str, Any], server_cpus: Sequence[int]
) -> dict[str, float]:
    """Return what the window cost, in seconds and in shares of the CPUs.

    The generator reports its own CPU time, which covers the window to the microsecond. Several
    generator threads share one CPU here, so its share is of one CPU in all. Foreign is what neither
    the server nor the lab used; the lab reads the server's log, and may delay its packets.
    """
    elapsed_s = max(end.at - begin.at, 1e-9)
    server_s = _spent_s(begin.server, end.server) + _ended_s(begin, end)
    generator_s = load["cpu_s"]["user"] + load["cpu_s"]["system"]
    lab_s = max(0.0, _spent_s(begin.lab, end.lab) - generator_s)
    machine = end.machine.since(begin.machine)
    foreign_s = machine["busy_s"] - server_s - generator_s - lab_s
    return {
        "elapsed_s": elapsed_s,
        "server_cpu_s": server_s,
        "generator_cpu_s": generator_s,
        "services_cpu_s": _spent_s(begin.services, end.services),
        "server_share": server_s / elapsed_s / max(len(server_cpus), 1),
        "generator_share": generator_s / elapsed_s,
        "lab_share": lab_s / elapsed_s,
        "server_cpus_idle_share": end.machine.idle_share(begin.machine, list(server_cpus)),
        "interrupt_s": machine["interrupt_s"],
        "foreign_share": max(0.0, foreign_s) / elapsed_s,
        "steal_share": machine["steal_s"] / elapsed_s,
        "throttled_s": end.throttled_s - begin.throttled_s,
    }


def _spent_s(begin: Mapping[int, float], end: Mapping[int, float]) -> float:
    return sum(clock - begin.get(pid, 0.0) for pid, clock in end.items())


def _ended_s(begin: Snapshot, end: Snapshot) -> float:
    """Return what the server's processes used between the two that were no more at the end.

    A server that starts a process for each request has most of its CPU time there.
    """
    before = sum(clock for pid, clock in begin.server.items() if pid not in end.server)
    return max(0.0, end.reaped_s - begin.reaped_s - before)


def memory(pids: Sequence[int]) -> dict[str, int]:
    """Return what the server's processes hold now, and the most they ever held.

    The peak is today's PSS and what every process has given back since its highest moment.
    """
    pss_kib = launch.pss_kib(pids)
    fallen_kib = sum(map(_fallen_kib, pids))
    return {"pss_kib": pss_kib, "pss_peak_kib": pss_kib + fallen_kib, "processes": len(pids)}


def _fallen_kib(pid: int) -> int:
    values = {"VmHWM": 0, "VmRSS": 0}
    with contextlib.suppress(OSError):
        for line in Path(f"/proc/{pid}/status").read_text().splitlines():
            name, _, value = line.partition(":")
            if name in values:
                values[name] = int(value.split()[0])
    return max(0, values["VmHWM"] - values["VmRSS"])


def network() -> dict[str, int]:
    """Return the kernel's counters of what goes wrong on the way to a listener."""
    found: dict[str, int] = {}
    for path in ("/proc/net/netstat", "/proc/net/snmp"):
        with contextlib.suppress(OSError):
            lines = Path(path).read_text().splitlines()
            for names, values in zip(lines[::2], lines[1::2], strict=False):
                counters = dict(zip(names.split()[1:], values.split()[1:], strict=False))
                for name, key in NETWORK.items():
                    if name in counters:
                        found[key] = int(counters[name])
    return found


def network_between(begin: Mapping[str, int], end: Mapping[str, int]) -> dict[str, int]:
    """Return what happened between two readings."""
    return {key: end[key] - begin[key] for key in end if key in begin}


def throttled_s() -> float:
    """Return how long the CPU quota of our cgroup held us back so far; 0 without one."""
    for path in ("/sys/fs/cgroup/cpu.stat", "/sys/fs/cgroup/cpu/cpu.stat"):
        with contextlib.suppress(OSError):
            for line in Path(path).read_text().splitlines():
                name, _, value = line.partition(" ")
                if name == "throttled_usec":
                    return int(value) / 1e6
                if name == "throttled_time":
                    return int(value) / 1e9
    return 0.0


NETWORK = {
    "ListenOverflows": "listen_overflows",
    "ListenDrops": "listen_drops",
    "TCPSynRetrans": "syn_retransmits",
    "RetransSegs": "segments_retransmitted",
}
