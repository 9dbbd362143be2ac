"""``def`` dependencies of ``blocking=True`` handlers beside an ``async def`` one: each is called in a thread.

Without an ``async def`` dependency all of them run in the handler's own thread. Context variables that one
sets are seen by those after it and by the handler; the rest of a generator runs in the context of its
beginning. Tests: ``tests/gateway/test_thread_dependencies.py``.
"""

from __future__ import annotations

import asyncio
import threading
from contextlib import contextmanager
from contextvars import copy_context
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Generator
    from contextlib import AbstractContextManager
    from contextvars import Context
    from types import TracebackType

    from citius.web.execution.thread_pool import BlockingPool


def called_in_thread(
    pool: BlockingPool, call: Callable[..., Any]
) -> Callable[..., Coroutine[Any, Any, Any]]:
    """A dependency that returns its value."""

    async def in_thread(*args: Any, **named: Any) -> Any:
        context = copy_context()
        value = await pool.run(lambda: context.run(call, *args, **named))
        _take_over(context)
        return value

    return in_thread


def entered_in_thread(
    pool: BlockingPool, call: Callable[..., Generator[Any]]
) -> Callable[..., _Entered]:
    """A dependency that is a generator, as a function that makes an asynchronous context manager."""
    make = contextmanager(call)
    return lambda *args, **named: _Entered(pool, make(*args, **named))


class _Entered:
    """A context manager that is entered and left in threads."""

    def __init__(self, pool: BlockingPool, manager: AbstractContextManager[Any]) -> None:
        self._pool = pool
        self._manager = manager
        self._context = copy_context()
        self._lock = threading.Lock()
        self._has_entered = self._is_given_up = False

    async def __aenter__(self) -> Any:
        try:
            value = await self._pool.run(self._enter)
        except asyncio.CancelledError:
            with self._lock:
                self._is_given_up, has_entered = True, self._has_entered
            if has_entered:
                await self.__aexit__(None, None, None)
            raise
        _take_over(self._context)
        return value

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> bool | None:
        return await self._pool.run_needed(lambda: self._leave(kind, error, trace))

    def _enter(self) -> Any:
        value = self._context.run(self._manager.__enter__)
        with self._lock:
            self._has_entered, is_given_up = True, self._is_given_up
        if is_given_up:
            self._leave(None, None, None)
        return value

    def _leave(self, *of_error: Any) -> bool | None:
        return self._context.run(self._manager.__exit__, *of_error)


def _take_over(context: Context) -> None:
    """Set in the current context what was set in another one."""
    for variable, value in context.items():
        if variable.get(_UNSET) is not value:
            variable.set(value)


_UNSET = object()
