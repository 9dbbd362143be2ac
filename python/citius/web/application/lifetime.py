"""The task of an application's lifespans and dependencies, from their start to their end.

A task group of a lifespan cancels the task that entered it when one of its tasks has failed. In a task of
their own that reaches the lifespans: they are left, the log has what has failed, and the server is told. In
the server's task nothing would notice, and anyio would cancel that task in every round of the loop.

In: two coroutine functions. ``start`` passes on what the first raises, and leaves in the caller's context the
variables that it has set. Without an event loop they are called directly.
Tests: ``tests/server/test_recovery.py``.
"""

from __future__ import annotations

import asyncio
import sys
from contextvars import copy_context
from typing import TYPE_CHECKING, Any

from citius.observability import logging

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from contextvars import Context


class Lifetime:
    """What ``start`` has begun and ``stop`` ends.

    Args:
        start: Enters lifespans.
        stop: Leaves them; it logs what fails.
        on_broken: Called when a task group has ended before ``stop``; whether ``stop`` will be called.
    """

    def __init__(
        self,
        start: Callable[[], Awaitable[None]],
        stop: Callable[[], Awaitable[None]],
        on_broken: Callable[[], object],
    ) -> None:
        self._start, self._stop, self._on_broken = start, stop, on_broken
        self._task: _LifetimeTask | None = None
        self._error: BaseException | None = None

    async def start(self) -> None:
        """Call the first function."""
        loop = _running_loop()
        if loop is None:
            return await self._start()
        self._told = asyncio.Event()
        started: asyncio.Future[None] = loop.create_future()
        context = copy_context()
        self._task = _LifetimeTask(
            self._run(started), loop=loop, name="citius lifespans", context=context
        )
        try:
            await asyncio.shield(started)
        except asyncio.CancelledError:
            if not started.done():  # it is this one that is cancelled
                self._task.cancel()
                await asyncio.wait([self._task])
                if started.done() and not started.cancelled():
                    started.exception()
            raise
        _take_variables(context)

    async def stop(self) -> None:
        """Call the second one, unless it has been; a cancellation is passed on to what it waits for."""
        if self._task is None:
            return await self._stop()
        self._told.set()
        current = asyncio.current_task()
        while not self._task.done():
            try:
                await asyncio.wait([self._task])
            except asyncio.CancelledError:
                self._task.cancel()
                if current is not None:
                    current.uncancel()
        if self._error is not None:
            raise self._error

    async def _run(self, started: asyncio.Future[None]) -> None:
        assert self._task is not None, "this is its coroutine"
        try:
            await self._start()
        except BaseException as error:
            if not started.done():
                started.set_exception(error)
            return
        started.set_result(None)
        is_broken = await self._task.wait(self._told)
        if is_broken:
            logging.error(
                "a task group of the lifespan has ended while the application serves; the application stops"
            )
            while self._on_broken() and await self._task.wait(self._told):
                pass  # open requests may need what the lifespans have made
        try:
            await self._stop()
        except BaseException as error:
            self._error = error  # a task that raises `SystemExit` would end the loop


class _LifetimeTask(asyncio.Task[None]):
    """A task that waits between start and stop, when task groups alone may cancel it.

    An application that cancels all tasks does not mean this one.
    """

    _waits = False
    _broken_by: object = None

    async def wait(self, told: asyncio.Event) -> bool:
        """Wait for ``told``; whether a task group has ended the wait."""
        self._waits = True
        try:
            await told.wait()
        except asyncio.CancelledError:
            return True
        finally:
            self._waits = False
        return False

    def cancel(self, msg: Any = None) -> bool:
        caller = sys._getframe(1)  # pyright: ignore[reportPrivateUsage]
        by = caller.f_locals.get("self")
        if by is not None and by is self._broken_by:
            return False  # a scope of anyio does it again until it is left
        if self._waits:
            if caller.f_globals.get("__name__", "").partition(".")[0] not in _MEANT:
                return False
            self._broken_by = by
        return super().cancel(msg)


_MEANT = ("asyncio", "anyio", "citius")


def _running_loop() -> asyncio.AbstractEventLoop | None:
    try:
        return asyncio.get_running_loop()
    except RuntimeError:
        return None


def _take_variables(context: Context) -> None:
    for variable, value in context.items():
        if variable.get(_take_variables) is not value:
            variable.set(value)
