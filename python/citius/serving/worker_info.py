"""Which worker this process is, for applications that divide pools, shards or jobs among workers.

Set once per process, before the application is imported. Tests are in tests/supervisor/test_watching.py.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class WorkerInfo:
    """One worker among those of its server."""

    index: int
    """From 0; a worker that is replaced hands it on to its successor."""
    count: int
    """Workers when this one was started."""


def worker_info() -> WorkerInfo:
    """The worker that this process is; the only one where there is no supervisor."""
    return _this


def become(info: WorkerInfo) -> None:
    """Make this process that worker."""
    global _this
    _this = info


_this = WorkerInfo(0, 1)
