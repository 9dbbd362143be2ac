"""What of this process goes on: requests, runs, deferred calls; the modules that are not loaded have none.

Tests: ``tests/server/test_stopping.py``.
"""

from __future__ import annotations

import sys
from typing import Any

_COME_BACK_S = 1.0


def tasks_open() -> int:
    """Requests whose coroutines go on, most often behind their answers."""
    from asyncio import all_tasks

    from citius.serving.tasks import RequestTask

    module = background()
    tasks = (task for task in all_tasks() if isinstance(task, RequestTask))
    return sum(1 for task in tasks if module is None or not module.is_deferred(task))


def cluster_counters() -> list[int] | None:
    """Cluster counters of this process; ``None`` if ``citius.cluster`` is not loaded."""
    cluster = sys.modules.get("citius.cluster.cluster")
    return None if cluster is None else cluster.rows_in_process()


def end_broadcasts() -> None:
    """End broadcast streams, which would outlast the drain; clients reconnect elsewhere."""
    broadcast = sys.modules.get("citius.web.realtime.broadcast")
    if broadcast is not None:
        broadcast.close_all(_COME_BACK_S)


def runs() -> int:
    """How many runs of this process are under way; likewise."""
    tasks = sys.modules.get("citius.web.realtime.runs.run_keeper")
    return 0 if tasks is None else tasks.running_in_process()


def background() -> Any:
    """The module of deferred calls; ``None`` where there were none, so that nothing is imported."""
    return sys.modules.get("citius.web.execution.background")


def deferred_calls() -> int:
    """How many deferred calls of this process are not done."""
    module = background()
    return 0 if module is None else module.pending_in_process()
