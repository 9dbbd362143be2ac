"""Coroutines where no event loop runs them. Tests: ``tests/observe/test_health.py``, ``tests/hosts/``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from collections.abc import Coroutine

    _T = TypeVar("_T")


def result_at_once(coroutine: Coroutine[Any, Any, _T], otherwise: Exception) -> _T:
    """What a coroutine returns that never suspends.

    Raises:
        Exception: ``otherwise``, if it suspends; it is closed then.
    """
    try:
        coroutine.send(None)
    except StopIteration as stop:
        return stop.value
    coroutine.close()
    raise otherwise
