"""Which worker has to go, and why: hung, too old, too large, or past its requests.

Looks at numbers only; control.py acts on them. A round that comes late itself (a stopped or starved
supervisor) judges no worker: the workers may have been stopped as well.
"""

from __future__ import annotations

import os
import random
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from citius.serving.supervisor.worker import heartbeat_interval_s

if TYPE_CHECKING:
    from collections.abc import Iterable

    from citius.serving.supervisor.worker import Worker
    from citius.settings.config import Config

TIMEOUT_DEFAULT_S = 30.0
"""What ``worker_timeout_s`` is without a word. gunicorn's."""

LIFETIME_JITTER = 0.1
"""The part of a lifetime by which workers started together end at different times."""

_PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")


@dataclass(slots=True)
class Health:
    """What was seen in the round before."""

    checked_at: float = field(default_factory=time.monotonic)
    _lifetimes: dict[int, float] = field(default_factory=dict[int, float])

    def period_s(self, config: Config) -> float:
        """How often to look; infinite if there is nothing to look for."""
        if config.max_requests:
            return 0.25
        timeout_s = timeout_of(config)
        if timeout_s:
            return min(1.0, max(0.1, timeout_s / 4))
        if config.worker_rss_bytes_max or config.worker_lifetime_s or config.worker_start_s:
            return 1.0
        return float("inf")

    def hung(self, workers: Iterable[Worker]) -> list[tuple[Worker, str]]:
        """Workers that do not turn their loop, or do not get ready, with the reason in words."""
        now = time.monotonic()
        late_s, self.checked_at = now - self.checked_at, now
        found: list[tuple[Worker, str]] = []
        for worker in workers:
            config = worker.config
            if worker.is_told_to_stop or worker.is_doomed or late_s > 5 + self.period_s(config):
                continue
            if not worker.is_ready:
                if config.worker_start_s and now - worker.started_at > config.worker_start_s:
                    found.append((worker, f"is not ready after {config.worker_start_s:g} s"))
                continue
            timeout_s, silent_s = timeout_of(config), now - worker.heartbeat_at
            # A heartbeat may be one period old when all is well; without a loop, two.
            if timeout_s and silent_s > timeout_s + 2 * heartbeat_interval_s(config):
                found.append((worker, f"has not turned its loop for {silent_s:.1f} s"))
        return found

    def recycle_reason(self, worker: Worker) -> str:
        """Why the worker should be replaced in good order; empty if it should not."""
        config = worker.config
        if worker.requests_max and worker.requests_total >= worker.requests_max:
            return f"has taken {worker.requests_total} requests"
        if config.worker_lifetime_s:
            lifetime_s = self._lifetimes.get(worker.pid)
            if lifetime_s is None:
                factor = 1 - LIFETIME_JITTER * random.random()
                lifetime_s = self._lifetimes[worker.pid] = config.worker_lifetime_s * factor
            age_s = time.monotonic() - worker.started_at
            if age_s > lifetime_s:
                return f"is {age_s:.0f} s old"
        if config.worker_rss_bytes_max and (held := rss_bytes(worker.pid)):
            limit = config.worker_rss_bytes_max
            if held > limit:
                return f"holds {held >> 20} MiB, limit {limit >> 20} MiB"
        return ""

    def forget(self, worker: Worker) -> None:
        """The worker has ended."""
        self._lifetimes.pop(worker.pid, None)


def timeout_of(config: Config) -> float:
    """The hang timeout in force; 0: none."""
    return TIMEOUT_DEFAULT_S if config.worker_timeout_s is None else config.worker_timeout_s


def rss_bytes(pid: int) -> int:
    """The resident set of a process; 0 if it is gone."""
    try:
        with open(f"/proc/{pid}/statm") as file:
            return int(file.read().split()[1]) * _PAGE_BYTES
    except (OSError, IndexError):
        return 0
