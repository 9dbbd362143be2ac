"""More reactors in one worker: threads with an event loop and a reactor each (``--reactor-threads``).

They share the application, its gateway and the listening sockets: each reactor polls all of them, and an
idle one accepts the next connection. A connection stays with the reactor that accepted it, and its coroutines
run on that reactor's loop. Start-up and shutdown hooks run once, on the worker's own loop.

On an interpreter with a GIL only one thread runs at a time: correct, and no faster than one reactor.
"""

from __future__ import annotations

import asyncio
import sys
import threading
from contextlib import suppress
from contextvars import copy_context
from typing import TYPE_CHECKING

from citius.observability import observe
from citius.serving.hosts.asyncio import close_loop, new_loop
from citius.serving.tasks import wait_until_set

if TYPE_CHECKING:
    from collections.abc import Callable

    from citius._core import Reactor
    from citius.observability.observe import Watch

_STOP_POLL_S = 0.01
"""Interval at which a loop that is to end checks whether its last task has ended."""


class ReactorThread:
    """One such thread; created and controlled by the worker's main thread.

    Args:
        number: Which one, from 1.
        loop: The kind of its loop.
        make: Makes its reactor, which listens already, for its loop.
        watch: The observer of its requests, if any.
        tasks_open: Returns how many requests still run on the calling loop.
    """

    def __init__(
        self,
        number: int,
        loop: str,
        make: Callable[[asyncio.AbstractEventLoop], Reactor],
        watch: Watch | None,
        tasks_open: Callable[[], int],
    ) -> None:
        self._loop = new_loop(loop)
        self._make = make
        self._watch = watch
        self._tasks_open = tasks_open
        self._opened = threading.Event()
        self._error: BaseException | None = None
        self._main: asyncio.Task[None] | None = None
        self._ended = asyncio.Event()
        self._reactor: Reactor | None = None
        # Requests see the context variables of the start-up hooks. A daemon thread: a handler that hangs must
        # not keep the process from ending.
        self._thread = threading.Thread(
            target=copy_context().run,
            args=(self._run,),
            name=f"citius-reactor-{number}",
            daemon=True,
        )

    def start(self) -> None:
        """Start the thread; returns when it serves.

        Raises:
            BaseException: The exception that ended its start.
        """
        self._thread.start()
        self._opened.wait()
        if self._error is not None:
            raise self._error

    @property
    def requests_total(self) -> int:
        """Requests taken so far."""
        return 0 if self._reactor is None else self._reactor.requests_total

    @property
    def requests_open(self) -> int:
        """Requests whose responses are not complete."""
        return 0 if self._reactor is None else self._reactor.requests_open

    @property
    def has_ended(self) -> bool:
        """Whether its thread has ended."""
        return not self._thread.is_alive()

    def drain(self, on_drained: Callable[[], object]) -> None:
        """Let open requests end; ``on_drained`` is called on the caller's event loop."""
        home = asyncio.get_running_loop()

        def drained() -> None:
            with suppress(RuntimeError):  # the worker's loop is closed: it has not waited
                home.call_soon_threadsafe(on_drained)

        def drain() -> None:
            if self._watch is not None:
                self._watch.draining()
            if self._reactor is not None:
                self._reactor.drain(drained)

        self._call(drain)

    def cut(self) -> None:
        """Close all connections."""
        self._call(lambda: None if self._reactor is None else self._reactor.close())

    def end(self) -> None:
        """Close, and wait for handlers that still run after their responses."""
        self._call(self._ended.set)

    def leave(self) -> None:
        """Cancel the remaining tasks."""
        self._call(lambda: None if self._main is None else self._main.cancel())

    def _call(self, function: Callable[[], object]) -> None:
        with suppress(RuntimeError):  # its loop is closed
            self._loop.call_soon_threadsafe(function)

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        try:
            self._main = self._loop.create_task(self._serve(), name="citius")
            with suppress(asyncio.CancelledError):
                self._loop.run_until_complete(self._main)
        except BaseException as error:
            self._error = error
        finally:
            self._opened.set()
            if self._watch is not None:
                self._watch.close()
            close_loop(self._loop)

    async def _serve(self) -> None:
        reactor = self._reactor = self._make(self._loop)
        self._loop.add_reader(reactor.fileno(), reactor.turn)
        self._heartbeat()
        self._opened.set()
        try:
            await wait_until_set(self._ended)
        finally:
            self._loop.remove_reader(reactor.fileno())
            reactor.close()
        while self._tasks_open():
            await asyncio.sleep(_STOP_POLL_S)

    def _heartbeat(self) -> None:
        if self._watch is not None:
            self._watch.heartbeat(self._loop, None, observe.HEARTBEAT_INTERVAL_S)
            self._loop.call_later(observe.HEARTBEAT_INTERVAL_S, self._heartbeat)


def has_gil() -> bool:
    """Whether this interpreter has a GIL."""
    is_enabled = getattr(sys, "_is_gil_enabled", None)
    return is_enabled is None or bool(is_enabled())
