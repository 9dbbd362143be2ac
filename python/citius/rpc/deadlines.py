"""Deadlines of callers: a time of the monotonic clock, or ``None`` for no deadline."""

from __future__ import annotations

from time import monotonic


def left(deadline: float | None) -> float:
    """Seconds until the deadline; -1 without one, as ``Lock.acquire`` expects."""
    return -1 if deadline is None else max(0.0, deadline - monotonic())


def is_past(deadline: float | None) -> bool:
    """Whether the deadline has passed."""
    return deadline is not None and monotonic() >= deadline
