"""How many processors this process can use: its affinity, the CPU quota of its control groups, and the GIL.

Imports nothing of the package: config.py uses it. Tests are in tests/unit/test_processors.py.
"""

from __future__ import annotations

import math
import os
import sys


def processors(root: str = "") -> int:
    """Processors that this process may use, at least one.

    Args:
        root: Where ``/proc`` and ``/sys`` are, for tests.
    """
    quotas = [quota for directory in _cgroups(root) if (quota := _quota(directory)) is not None]
    return max(1, min([_affine(), *map(math.ceil, quotas)]))


def _affine() -> int:
    """Processors that the scheduler may give this process."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def has_gil() -> bool:
    """Whether this interpreter has a GIL. A free-threaded one may get it when it imports an extension."""
    is_enabled = getattr(sys, "_is_gil_enabled", None)
    return is_enabled is None or bool(is_enabled())


def _cgroups(root: str) -> list[str]:
    """The directories of the control groups of this process, and of their parents."""
    found: list[str] = []
    for line in _read(f"{root}/proc/self/cgroup").splitlines():
        _, controllers, path = [*line.split(":", 2), "", ""][:3]
        if controllers and "cpu" not in controllers.split(","):
            continue
        base = f"{root}/sys/fs/cgroup" + ("/cpu" if controllers else "")
        # In a container the path may be that of the host, while its directory is mounted as the base.
        while path.strip("/"):
            found.append(base + path)
            path = path.rpartition("/")[0]
        found.append(base)
    return found


def _quota(directory: str) -> float | None:
    """The CPU quota of a control group in processors; ``None`` without a limit."""
    quota, _, period = _read(f"{directory}/cpu.max").strip().partition(" ")  # version 2
    if not quota:
        quota = _read(f"{directory}/cpu.cfs_quota_us").strip()
        period = _read(f"{directory}/cpu.cfs_period_us").strip()
    if not quota.isdecimal() or not period.isdecimal() or int(period) == 0:
        return None
    return int(quota) / int(period)


def _read(path: str) -> str:
    try:
        with open(path, encoding="ascii", errors="replace") as file:
            return file.read()
    except OSError:
        return ""
