"""More reactors in one worker: threads with a reactor each (``--reactor-threads``).

They share the application and the listening sockets: each reactor polls all of them, an idle one accepts
the next connection, and the one with the fewest has it from then on (``balancer.rs``). Everything else a
reactor has for itself: its event loop, on which its coroutines run, its tables and its counters. Start-up
and shutdown hooks run once, on the worker's own loop; the lifespan of an ASGI application runs on each loop,
as its specification says, with a state for each. Applications that need no loop are served without one: then
a thread waits in its reactor's poll.

On an interpreter with a GIL only one thread runs at a time: correct, and no faster than one reactor.
Tests: ``tests/hosts/test_reactor_threads.py``.
"""

from __future__ import annotations

import asyncio
import sys
import threading
import traceback
from contextlib import suppress
from contextvars import copy_context
from time import monotonic
from typing import TYPE_CHECKING, Protocol

from citius.observability import logging
from citius.process import reactors
from citius.serving.hosts.asyncio import close_loop, new_loop
from citius.serving.tasks import complete, wait_until_set
from citius.threads import Thread

if TYPE_CHECKING:
    from collections.abc import Callable

    from citius._core import Reactor
    from citius.observability.observe import Watch
    from citius.serving.interfaces import Application

_STOP_POLL_S = 0.01
"""Interval at which a loop that is to end checks whether its last task has ended."""


class ReactorThread:
    """One such thread, controlled by the worker's main thread. Its host makes and turns its reactor.

    Args:
        number: Which one, from 1.
        host: Runs in the thread.
        watch: The observer of its requests, if any; closed in the thread.
        heartbeat_interval_s: How often it says that it turns; ``None``: never.
    """

    def __init__(
        self,
        number: int,
        host: ThreadHost,
        watch: Watch | None,
        heartbeat_interval_s: float | None,
    ) -> None:
        self._host = host
        self.watch = watch
        self.heartbeat_interval_s = heartbeat_interval_s
        self.heartbeat_at = monotonic()
        """When it last said so."""
        self._is_late = False
        self._opened = threading.Event()
        self._error: BaseException | None = None
        self.reactor: Reactor | None = None
        # Requests see the context variables of the start-up hooks. A daemon thread: a handler that hangs must
        # not keep the process from ending.
        self._thread = Thread(
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
        return 0 if self.reactor is None else self.reactor.requests_total

    @property
    def requests_open(self) -> int:
        """Requests whose responses are not complete."""
        return 0 if self.reactor is None else self.reactor.requests_open

    @property
    def has_ended(self) -> bool:
        """Whether its thread has ended."""
        return not self._thread.is_alive()

    def is_late(self, late_s: float) -> bool:
        """Whether its reactor has not been turned for ``late_s``; the log says once where it is then."""
        silent_s = monotonic() - self.heartbeat_at
        if silent_s < late_s or self.has_ended:
            self._is_late = False
        elif not self._is_late:
            self._is_late = True
            frames = sys._current_frames()  # pyright: ignore[reportPrivateUsage]
            frame = frames.get(self._thread.ident or 0)
            stack = "".join(traceback.format_stack(frame)) if frame is not None else ""
            logging.warning(
                f"{self._thread.name} has not turned its loop for {silent_s:.1f} s; it is in\n{stack}"
            )
        return self._is_late

    def drain(self, on_drained: Callable[[], object]) -> None:
        """Let open requests end; ``on_drained`` is called in the thread."""
        if self.watch is not None:
            self.watch.draining()
        if self.reactor is not None:
            self.reactor.drain(on_drained)

    def cut(self) -> None:
        """Close all connections."""
        if self.reactor is not None:
            self.reactor.close()

    @property
    def is_idle(self) -> bool:
        """Whether nothing of a request is left; ``end`` comes before."""
        return self._host.is_idle or self.has_ended

    def end(self) -> None:
        """Close, and wait for handlers that still run after their responses."""
        self._host.end()

    def stop(self) -> None:
        """End the thread, after what its loop has started is stopped."""
        self._host.stop()

    def leave(self) -> None:
        """Cancel the remaining tasks."""
        self._host.leave()

    def join(self, timeout_s: float) -> None:
        """Wait for the end of its thread."""
        self._thread.join(timeout_s)

    def serves(self, reactor: Reactor) -> None:
        """For the host: the reactor listens, has been turned once, and is turned from now on.

        With its first turn it belongs to this thread: what others ask of it, it does in a turn.
        """
        self.reactor = reactor
        reactors.enter(reactor)
        if self.watch is not None:
            self.watch.ready()
        self._opened.set()

    def heartbeat(self, loop: asyncio.AbstractEventLoop | None = None) -> None:
        """For the host: the reactor is turned."""
        self.heartbeat_at = monotonic()
        if self.watch is not None and self.heartbeat_interval_s is not None:
            self.watch.heartbeat(loop, None, self.heartbeat_interval_s)

    def _run(self) -> None:
        if self.watch is not None:
            self.watch.enter()
        try:
            self._host.run(self)
        except BaseException as error:
            self._error = error
        finally:
            reactors.enter(None)
            self._opened.set()
            if self.watch is not None:
                self.watch.close()


class ThreadHost(Protocol):
    """What turns the reactor of a thread."""

    def run(self, thread: ReactorThread) -> None:
        """Make the reactor, say that it serves, and turn it until the end."""
        ...

    @property
    def is_idle(self) -> bool:
        """Whether its requests have ended since ``end``."""
        ...

    def end(self) -> None:
        """Close, and wait for what is left of requests; called, like the next two, from another thread."""
        ...

    def stop(self) -> None:
        """End ``run`` then."""
        ...

    def leave(self) -> None:
        """End it at once."""
        ...


class LoopHost:
    """An event loop in a thread.

    Args:
        app: What is started and stopped on this loop; ``None`` if nothing is.
        loop: The kind of loop.
        make: Makes a reactor for a loop, which listens already.
        tasks_open: Returns how many requests still run on the calling loop.
    """

    def __init__(
        self,
        app: Application | None,
        loop: str,
        make: Callable[[asyncio.AbstractEventLoop | None], Reactor],
        tasks_open: Callable[[], int],
    ) -> None:
        self._app = app
        self._loop = new_loop(loop)
        self._make = make
        self._tasks_open = tasks_open
        self._main: asyncio.Task[None] | None = None
        self._ended, self._stopped = asyncio.Event(), asyncio.Event()
        self.is_idle = False
        """Whether its requests have ended since ``end``."""

    def run(self, thread: ReactorThread) -> None:
        """Serve until ``stop``."""
        asyncio.set_event_loop(self._loop)
        try:
            self._main = self._loop.create_task(self._serve(thread), name="citius")
            with suppress(asyncio.CancelledError):
                complete(self._loop, self._main)
        finally:
            close_loop(self._loop)

    def end(self) -> None:
        """Close, and wait for handlers that still run after their responses."""
        self._call(self._ended.set)

    def stop(self) -> None:
        """Stop what this loop has started, and end."""
        self._call(self._stopped.set)

    def leave(self) -> None:
        """Cancel the remaining tasks."""
        self.end()
        self.stop()
        self._call(lambda: None if self._main is None else self._main.cancel())

    def _call(self, function: Callable[[], object]) -> None:
        with suppress(RuntimeError):  # its loop is closed
            self._loop.call_soon_threadsafe(function)

    async def _serve(self, thread: ReactorThread) -> None:
        if self._app is not None:
            await self._app.start()
        clients = reactors.shared()
        for client in clients:
            await client.open_on_loop()
        reactor = self._make(self._loop)
        self._loop.add_reader(reactor.fileno(), reactor.turn)
        # Not from here: a turn may step coroutines, in which no task can be the current one.
        turned = self._loop.create_future()
        self._loop.call_soon(lambda: (reactor.turn(), turned.set_result(None)))
        await turned
        self._heartbeat(thread)
        thread.serves(reactor)
        try:
            await wait_until_set(self._ended)
        finally:
            self._loop.remove_reader(reactor.fileno())
            reactor.close()
            reactors.enter(None)
        while self._tasks_open() and not self._stopped.is_set():
            await asyncio.sleep(_STOP_POLL_S)
        background = sys.modules.get("citius.web.execution.background")
        if background is not None and not self._stopped.is_set():
            await background.drain_loop()
        self.is_idle = True
        await wait_until_set(self._stopped)
        for client in reversed(clients):
            await client.close_on_loop()
        if self._app is not None:
            await self._app.stop()

    def _heartbeat(self, thread: ReactorThread) -> None:
        if thread.heartbeat_interval_s is not None:
            thread.heartbeat(self._loop)
            self._loop.call_later(thread.heartbeat_interval_s, self._heartbeat, thread)


class PlainHost:
    """A thread without an event loop: it waits in its reactor's poll.

    Args:
        make: Makes a reactor, which listens already.
    """

    def __init__(self, make: Callable[[asyncio.AbstractEventLoop | None], Reactor]) -> None:
        self._make = make
        self._reactor: Reactor | None = None
        self.is_idle = False
        """Only its end shows that."""

    def run(self, thread: ReactorThread) -> None:
        """Serve until ``end``."""
        self._reactor = reactor = self._make(None)
        reactor.turn()
        thread.serves(reactor)
        reactor.run(thread.heartbeat if thread.heartbeat_interval_s is not None else None)
        reactor.close()

    def end(self) -> None:
        """Close."""
        if self._reactor is not None:
            self._reactor.stop()

    def stop(self) -> None:
        """Nothing is left to do."""

    def leave(self) -> None:
        """Nothing is left: a call that hangs does so in a daemon thread."""
