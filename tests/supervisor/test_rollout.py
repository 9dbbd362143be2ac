"""When the replacement of workers has something to do."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from citius.serving.supervisor.rollout import Rollout


def test_nothing_is_due_while_a_successor_is_on_its_way() -> None:
    """Else the supervisor's loop would not wait until the successor is ready."""
    slots: Any = SimpleNamespace(config=None, has_successor=False)
    nothing: Any = None
    rollout = Rollout(slots, nothing, nothing, nothing, nothing)
    slot: Any = SimpleNamespace(start_at=3.0)
    rollout.recycle(slot, nothing)
    assert rollout.due_at() == [3.0]
    slots.has_successor = True
    assert rollout.due_at() == []
