"""What a server under measurement has cost, for the scripts beside this one."""

from __future__ import annotations

from pathlib import Path


def cpu_s(pid: int) -> float:
    """Seconds of CPU time of a process and its descendants, all threads."""
    total_ns, pids = 0, [pid]
    for one in pids:
        for task in Path(f"/proc/{one}/task").iterdir():
            total_ns += int((task / "schedstat").read_text().split()[0])
            pids += map(int, (task / "children").read_text().split())
    return total_ns / 1e9
