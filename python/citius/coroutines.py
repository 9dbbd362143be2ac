"""Coroutines where no event loop runs them, and in tasks of the server.

Tests: ``tests/observe/test_health.py``, ``tests/hosts/``, ``tests/server/test_base_exceptions.py``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from collections.abc import Awaitable, Coroutine

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


async def contained(work: Awaitable[_T]) -> _T:
    """What ``work`` gives, for a task that calls code of a handler.

    A task out of which ``SystemExit`` or ``KeyboardInterrupt`` comes ends the event loop, and the server
    with it; in the handler itself they are a failed request.

    Raises:
        RuntimeError: One of the two was raised.
    """
    try:
        return await work
    except (SystemExit, KeyboardInterrupt) as error:
        raise RuntimeError(f"a handler raised {error!r}") from error
