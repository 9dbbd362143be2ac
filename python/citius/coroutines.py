"""Coroutines where no event loop runs them, and in tasks of the server.

Tests: ``tests/observe/test_health.py``, ``tests/hosts/``, ``tests/server/test_base_exceptions.py``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Coroutine

    _T = TypeVar("_T")
    _P = ParamSpec("_P")


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


async def contained(work: Callable[_P, Awaitable[_T]], *args: _P.args, **options: _P.kwargs) -> _T:
    """What ``work`` gives, for a task that calls code of a handler.

    A task out of which ``SystemExit`` or ``KeyboardInterrupt`` comes ends the event loop, and the server
    with it; in the handler itself they are a failed request. ``work`` is called when the task begins: one
    that is cancelled before leaves no coroutine behind.

    Raises:
        RuntimeError: One of the two was raised.
    """
    try:
        return await work(*args, **options)
    except (SystemExit, KeyboardInterrupt) as error:
        raise RuntimeError(f"a handler raised {error!r}") from error
