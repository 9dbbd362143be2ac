"""One worker's application, gateway and reactors, as a host sees them.

In: an application, a configuration and a ``WorkerContext``. A host (``hosts/``) calls ``start``, ``open``,
``drain``, ``cut`` and ``stop`` in this order and turns the reactor in between. Never here: signals, forks and
event loops, which are the host's and the supervisor's.
"""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass, field
from time import monotonic
from typing import TYPE_CHECKING, Any

from citius._core import LIMITS, Reactor
from citius.errors import ConfigError
from citius.observability import logging, observe
from citius.observability.observe import Watch
from citius.process import reactors
from citius.process.forks import end_child
from citius.process.startup import DEVELOPMENT_ENV
from citius.serving.interfaces.wsgi import WsgiApp
from citius.serving.listeners import speaks_of
from citius.serving.sockets import listen
from citius.web.app import App
from citius.web.static import mounts_of

if TYPE_CHECKING:
    import socket
    from collections.abc import Callable

    from citius._core import Tls, TlsTickets
    from citius.observability.metrics import MetricsRegistry
    from citius.serving.interfaces import Application
    from citius.serving.reactor_threads import ReactorThread
    from citius.settings.config import Config

# Hosts that run no coroutines.
_WITHOUT_COROUTINES = ("none", "gevent")

# How long after the last thread or task has finished the stop may go on; there is nothing to be woken by.
_STOP_POLL_S = 0.01


@dataclass(slots=True)
class WorkerContext:
    """Where a worker stands: its sockets, and whom it tells how it goes."""

    listeners: list[socket.socket]
    ready: Callable[[], object]
    """Called once, when clients are served."""
    stop_accepting: Callable[[], object] | None = None
    """Called before the drain, unless the supervisor keeps new connections away."""
    heartbeat: Callable[[int], object] | None = None
    """Called every ``heartbeat_interval_s`` by a loop that turns, with the requests taken so far."""
    heartbeat_interval_s: float = 1.0
    metrics: MetricsRegistry | None = None
    """The counters of the workers, if metrics are served or exported."""
    metrics_slot: int | None = None
    """Which of its slots is the worker's."""
    tickets: TlsTickets | None = None
    """The secret of TLS session tickets that all workers share."""
    tls: list[Tls] = field(default_factory=list["Tls"])
    """What connections are secured with, for each reactor; loaded while the worker may read keys."""
    control: socket.socket | None = None
    """Over which the supervisor links its rooms with those of other workers, if there can be several."""
    is_first: bool = True
    """It tells the log what is the same for all workers."""


class Service:
    """One worker's application, gateway and reactor, as a host sees them."""

    def __init__(
        self,
        app: Application,
        config: Config,
        context: WorkerContext,
    ) -> None:
        self.config = config
        self.context = context
        self._home = os.getpid()
        self._app = app
        self._pool: Any = None
        if config.rpc and not (isinstance(app, App) and app.procedures):
            raise ConfigError(
                "--rpc serves procedures of a native application, and this one has none; declare them "
                "with @app.rpc"
            )
        if isinstance(app, WsgiApp) and config.reactor_threads > 1:
            raise ConfigError(
                "--reactor-threads gives each thread an event loop, and a WSGI application has none; "
                "use --threads or --workers"
            )
        if isinstance(app, WsgiApp) and context.listeners:
            app.address = context.listeners[0].getsockname()
        if isinstance(app, App):
            self._gateway = app.freeze(
                self._make_pool,
                all_in_pool=config.loop == "gevent",
                compiled_threads=config.compiled_threads,
                compiled_queue_max=config.compiled_queue_max,
                interpret_compiled=config.interpret_compiled,
                development=DEVELOPMENT_ENV in os.environ,
                outermost=_current_span() if config.otel else (),
            )
        else:
            trace: Callable[[], None] | None = getattr(app, "trace", None)
            if config.otel and trace is not None:
                trace()
            self._gateway = app.freeze(self._make_pool)
        self._mounts = mounts_of(config, app)
        self._reactor: Reactor | None = None
        self._loop: Any = None
        self._reactor_threads: list[ReactorThread] = []
        self._watch: Watch | None = None
        self._relay: Any = None
        if observe.is_wanted(config) or context.metrics_slot is not None:
            checks = getattr(app, "readiness_checks", ())
            self._watch = Watch(
                config,
                registry=context.metrics,
                slot=context.metrics_slot,
                checks=checks,
                measures_clients=True,
            )
        # When work that is not done is left behind; `None` before a stop.
        self._left_at: float | None = None
        self.is_ending = False
        """Nothing goes on any more but the application's shutdown hooks."""
        if config.loop in _WITHOUT_COROUTINES and (reason := app.needs_loop):
            raise ConfigError(
                f"--loop {config.loop} has no event loop, and {reason}; use --loop auto"
            )

    @property
    def is_open(self) -> bool:
        """Whether the start is over and clients are served."""
        return self._reactor is not None

    def describe(self) -> str:
        """The application in a few words."""
        return type(self._app).__name__

    async def start(self) -> None:
        """Call the start-up hooks."""
        self._confine(before_hooks=True)
        try:
            await self._app.start()
        except BaseException as error:
            end_child(self._home, error)
            raise
        end_child(self._home)

    def open(self, loop: Any) -> Reactor:
        """Listen; from now on the host has to turn the reactor."""
        self._confine(before_hooks=False)
        for listener in self.context.listeners:
            listen(listener, self.config.backlog, str(listener.getsockname()))
        reactor = self._make_reactor(loop, self._watch)
        if self.config.reactor_threads > 1:
            self._open_reactor_threads()
        self._reactor, self._loop = reactor, loop
        reactors.enter(reactor)
        if self.context.control is not None and isinstance(self._app, App):
            self._share_with_workers(self._app, self.context.control)
        self.heartbeat()
        if self._watch is not None:
            self._watch.ready()
        self.context.ready()
        return reactor

    def _confine(self, *, before_hooks: bool) -> None:
        """Enter the sandbox, if it is on: after the hooks, or, if there are only threads to start, before."""
        if self.config.sandbox and before_hooks == isinstance(self._app, WsgiApp):
            from citius.process import sandbox

            sandbox.enter(self.config)

    def _share_with_workers(self, app: App, control: socket.socket) -> None:
        """Make the rooms and broadcasts of all workers one."""
        from citius.serving.rooms import Relay

        name = "room_queue_bytes_max"
        self._relay = Relay(control, self.config.limits_in_force.get(name, LIMITS[name]))
        app.share_with_workers(self._relay.share)

    def _make_reactor(self, loop: Any, watch: Watch | None) -> Reactor:
        """A reactor for a loop, which listens."""
        config = self.config
        reactor = Reactor(
            self._gateway,
            limits=config.limits_in_force,
            server_header=config.server_name,
            date_header=config.date_header,
            headers=config.default_response_headers,
            loop=loop,
            observer=None if watch is None else watch.observer,
            log=logging.log,
            mounts=self._mounts,
            compress=config.codings,
            compress_types=config.compress_types,
            trusted=config.trusted,
            forwarded=config.trusted_headers,
            http=config.http_versions,
            h2c_upgrade=config.h2c_upgrade,
            tls=self.context.tls.pop() if config.is_tls else None,
        )
        for listener in self.context.listeners:
            speaks = speaks_of(listener)
            reactor.listen(
                listener.fileno(), rpc=speaks.is_rpc, tls=speaks.is_tls, http=speaks.http
            )
        return reactor

    def _open_reactor_threads(self) -> None:
        """The other reactors of this worker."""
        from citius.observability.metrics import READY
        from citius.serving.reactor_threads import ReactorThread, has_gil

        if has_gil():
            logging.warning(
                "--reactor-threads: the threads take turns on this interpreter, which has a GIL; "
                "--workers serve side by side"
            )
        for number in range(1, self.config.reactor_threads):
            watch = None
            if self._watch is not None:
                watch = Watch(self.config)
                watch.observer.set_state(READY, os.getpid())

            def make(loop: Any, watch: Watch | None = watch) -> Reactor:
                return self._make_reactor(loop, watch)

            thread = ReactorThread(number, self.config.loop, make, watch, _tasks_open)
            self._reactor_threads.append(thread)
            thread.start()

    @property
    def heartbeat_interval_s(self) -> float | None:
        """How often a host has to call ``heartbeat``; ``None`` if it is not needed."""
        if self._watch is None:
            return None if self.context.heartbeat is None else self.context.heartbeat_interval_s
        return min(observe.HEARTBEAT_INTERVAL_S, self.context.heartbeat_interval_s)

    def heartbeat(self) -> None:
        """Say that the loop turns."""
        if self._watch is not None:
            interval_s = self.heartbeat_interval_s or observe.HEARTBEAT_INTERVAL_S
            self._watch.heartbeat(self._loop, self._pool, interval_s, _deferred_calls())
        if self.context.heartbeat is not None and self._reactor is not None:
            of_threads = sum(one.requests_total for one in self._reactor_threads)
            self.context.heartbeat(self._reactor.requests_total + of_threads)

    def heartbeat_every(self, loop: Any, interval_s: float) -> None:
        """The same, and again every ``interval_s``."""
        self.heartbeat()
        loop.call_later(interval_s, self.heartbeat_every, loop, interval_s)

    def drain(self, on_drained: Callable[[], object]) -> None:
        """Let open requests end; call ``on_drained`` when the last connection is gone."""
        self._left_at = monotonic() + self.config.drain_s
        if self._watch is not None:
            self._watch.draining()
        if self._reactor is not None:
            if self.context.stop_accepting is not None:
                self.context.stop_accepting()
            left = 1 + len(self._reactor_threads)

            def drained() -> None:
                nonlocal left
                left -= 1
                if left == 0:
                    on_drained()

            # The reactors have closed their own descriptors then; without ours the port is free.
            self._reactor.drain(drained)
            for thread in self._reactor_threads:
                thread.drain(drained)
            for listener in self.context.listeners:
                listener.close()

    def cut(self, then: Callable[[], object]) -> None:
        """Close all connections now, then call ``then``; later steps of the stop do not wait."""
        self._left_at = monotonic()
        if self._reactor is not None:
            of_threads = sum(one.requests_open for one in self._reactor_threads)
            if requests_open := self._reactor.requests_open + of_threads:
                logging.warning(f"{requests_open} open requests were cut off")
            self._reactor.close()
            for thread in self._reactor_threads:
                thread.cut()
        then()

    async def stop(self) -> None:
        """Call the shutdown hooks, after threads and tasks have finished; all within the drain time."""
        reactors.enter(None)
        if self._left_at is None:
            self._left_at = monotonic() + self.config.drain_s
        if self._pool is not None and not await self._close_pool(self._left_at):
            logging.warning("a blocking handler did not end within the drain time; left behind")
        if self._loop is not None and not await self._until(lambda: not _tasks_open()):
            logging.warning(
                f"{_tasks_open()} requests did not end within the drain time; left behind"
            )
        if self._reactor_threads and not await self._end_reactor_threads():
            logging.warning(
                "requests of other threads did not end within the drain time; left behind"
            )
        self.is_ending = True
        if self._relay is not None:
            self._relay.close()
        try:
            await self._app.stop()
        except BaseException as error:
            end_child(self._home, error)
            raise
        finally:
            end_child(self._home)
            if self._watch is not None:
                self._watch.close()

    async def _end_reactor_threads(self) -> bool:
        for thread in self._reactor_threads:
            thread.end()
        try:
            return await self._until(lambda: all(one.has_ended for one in self._reactor_threads))
        finally:
            for thread in self._reactor_threads:
                thread.leave()

    async def _close_pool(self, left_at: float) -> bool:
        if self._loop is None:
            return self._pool.close(max(_STOP_POLL_S, left_at - monotonic()))
        return await self._until(lambda: self._pool.close(0.0))

    async def _until(self, is_done: Callable[[], bool]) -> bool:
        """Wait for something within the drain time; whether it has come."""
        from asyncio import sleep

        # Not in one wait: the loop has to hear the signal that means "now", which changes the time.
        while not is_done():
            is_late = self._left_at is None or monotonic() >= self._left_at
            await sleep(_STOP_POLL_S)
            if is_late:
                # A thread says that it has finished a moment after it has answered.
                return is_done()
        return True

    def _make_pool(self) -> Any:
        config = self.config
        if config.loop == "gevent":
            from citius.serving.greenlets import GreenletPool

            self._pool = GreenletPool()
        else:
            from citius.web.pool import BlockingPool

            threads = config.threads or config.blocking_threads
            self._pool = BlockingPool(threads, config.blocking_queue_max)
        return self._pool


def _tasks_open() -> int:
    """Requests whose coroutines go on, most often behind their answers."""
    from asyncio import all_tasks

    from citius.serving.tasks import RequestTask

    return sum(1 for task in all_tasks() if isinstance(task, RequestTask))


def _current_span() -> tuple[Any, ...]:
    from citius.web.middleware.current_span import CurrentSpan

    return (CurrentSpan(),)


def _deferred_calls() -> int:
    """How many deferred calls of this process are not done; nothing is imported where there were none."""
    background = sys.modules.get("citius.web.background")
    return 0 if background is None else background.pending_in_process()
