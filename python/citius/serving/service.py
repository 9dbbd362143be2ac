"""One worker's application, gateway and reactors, as a host sees them.

In: an application, a configuration and a ``WorkerContext``. A host (``hosts/``) calls ``start``, ``open``,
``drain``, ``cut`` and ``stop`` in this order and turns the reactor in between. Never here: signals, forks and
event loops, which are the host's and the supervisor's.
"""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from dataclasses import field
from time import monotonic
from typing import TYPE_CHECKING, Any

from citius._core import LIMITS, Balancer, Reactor
from citius.errors import ConfigError
from citius.observability import logging, observe
from citius.observability.observe import Watch
from citius.process import early_exits, reactors, standard_streams
from citius.process.forks import end_child
from citius.process.processors import has_gil
from citius.process.startup import DEVELOPMENT_ENV
from citius.process.turns import TurnScheduler, is_hosted
from citius.records import record
from citius.serving import pending
from citius.serving.interfaces.wsgi import WsgiApp
from citius.serving.listeners import Speaks, speaks_of
from citius.serving.offers import check_sessions
from citius.serving.sockets import listen, name_of
from citius.settings.texts import http_versions, over_tcp
from citius.threads import restore_hooks
from citius.web.application.app import App
from citius.web.application.loops import serial_of
from citius.web.routing.static import challenge_mounts, mounts_of

if TYPE_CHECKING:
    import socket
    from collections.abc import Callable

    from citius._core import Tls, TlsTickets
    from citius.observability.metrics import MetricsRegistry
    from citius.serving.datagrams import QuicPlace
    from citius.serving.interfaces import Application, Gateway
    from citius.serving.reactor_threads import ReactorThread
    from citius.serving.transports import SocketHost
    from citius.settings.config import Config

# Hosts that run no coroutines.
_WITHOUT_COROUTINES = ("none", "gevent")

# How long threads are waited for that are given up.
_ABANDON_S = 1.0

# How long a loop may take to end whose tasks are cancelled; a little more than it waits for them.
_LEAVE_S = 3.0

# How late the heartbeat of a thread may be beside two intervals: without a loop it looks once a second.
_LATE_S = 1.0

# How long after the last thread or task has finished the stop may go on; there is nothing to be woken by.
_STOP_POLL_S = 0.01


@record(slots=True)
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
    is_leaving: Callable[[], bool] | None = None
    """Whether the server stops after ``--drain-delay-s``: it serves, and is not ready."""
    metrics: MetricsRegistry | None = None
    """The counters of the workers, if metrics are served or exported."""
    metrics_slot: int | None = None
    """Which of its slots is the worker's."""
    tickets: TlsTickets | None = None
    """The secret of TLS session tickets that all workers share."""
    tls: list[Tls] = field(default_factory=list["Tls"])
    """What connections are secured with, for each reactor; loaded while the worker may read keys."""
    quic: list[QuicPlace] = field(default_factory=list["QuicPlace"])
    """What of HTTP/3 each reactor serves; empty without it."""
    alt_svc: str | None = None
    """The value of `Alt-Svc`, if responses have it."""
    control: socket.socket | None = None
    """Over which the supervisor links its rooms with those of other workers, if there can be several."""
    is_first: bool = True
    """It tells the log what is the same for all workers."""
    tells_failure: Callable[[], bool] = lambda: True
    """Whether it logs why it cannot start; others that are started with it say less."""


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
        self.is_broken = False
        """The application's lifespan has ended by itself."""
        if isinstance(app, App):
            app.on_broken = self._give_up
        self.on_broken: Callable[[], object] = bool
        """Called then; the host sets it."""
        self._pool: Any = None
        if config.rpc and not (isinstance(app, App) and app.procedures):
            raise ConfigError(
                "--rpc serves procedures of a native application, and this one has none; declare them "
                "with @app.rpc"
            )
        if isinstance(app, WsgiApp) and context.listeners:
            app.address = context.listeners[0].getsockname()
        trace: Callable[[], None] | None = getattr(app, "trace", None)
        if config.otel and trace is not None:
            trace()
        self._gateway = self._gateway_of(app)
        self._mounts = [*mounts_of(config, app), *challenge_mounts(config)]
        self._reactor: Reactor | None = None
        self._loop: Any = None
        self.is_hosted = is_hosted(config.poller)
        """The event loop owns the sockets."""
        self._sockets: SocketHost | None = None
        self._reactor_threads: list[ReactorThread] = []
        self._balancer = Balancer() if config.reactors > 1 else None
        self._watch: Watch | None = None
        self._relay: Any = None
        if observe.is_wanted(config) or context.metrics_slot is not None:
            checks = list(getattr(app, "readiness_checks", ()))
            if hasattr(self._pool, "ready"):
                checks.append(self._pool.ready)
            self._watch = Watch(
                config, registry=context.metrics, slot=context.metrics_slot, checks=checks
            )
            self._watch.enter()
        self.left_at: float | None = None
        """When work that is not done is left behind; `None` before a stop."""
        self.is_ending = False
        """Nothing goes on any more but the application's shutdown hooks."""
        if config.loop in _WITHOUT_COROUTINES and (reason := app.needs_loop):
            raise ConfigError(
                f"--loop {config.loop} has no event loop, and {reason}; use --loop auto"
            )
        if config.loop == "none" and isinstance(app, App) and (handler := serial_of(app)):
            raise ConfigError(
                f"--loop none has no event loop, and {handler} has serial=True, which waits on one; use "
                "--loop auto"
            )
        check_sessions(app, config)

    def _gateway_of(self, app: Application) -> Gateway:
        if not isinstance(app, App):
            return app.freeze(self._make_pool)
        return app.freeze(
            self._make_pool,
            all_in_pool=self.config.loop == "gevent",
            compiled_threads=self.config.compiled_threads,
            compiled_queue_max=self.config.compiled_queue_max,
            interpret_compiled=self.config.interpret_compiled,
            development=DEVELOPMENT_ENV in os.environ,
            outermost=_current_span() if self.config.otel else (),
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

    def _give_up(self) -> bool:
        if not self.is_broken:
            self.is_broken = True
            self.on_broken()
        return True

    def open(self, loop: Any, make_loop: Callable[[], object] | None = None) -> Reactor:
        """Listen; from now on the host has to turn the reactor. ``make_loop`` makes one that is asked for."""
        early_exits.leave()
        standard_streams.open_closed()
        restore_hooks()
        for listener in self.context.listeners:
            listen(listener, self.config.backlog, name_of(listener))
        self._confine(before_hooks=False)
        if self.is_hosted:
            from citius.serving.transports import SocketHost

            self._sockets = SocketHost(loop, self.config.limits_in_force)
        reactor = self._make_reactor(self._gateway, loop, self._watch, make_loop)
        if self.context.control is not None and isinstance(self._app, App):
            self._share_with_workers(self._app, self.context.control)
        self._open_reactor_threads(loop)
        self._reactor, self._loop = reactor, loop
        if self._sockets is None:
            # With sockets the event loop itself serves database clients.
            reactors.enter(reactor)
        self.heartbeat()
        if self._watch is not None:
            self._watch.ready([one.watch for one in self._reactor_threads if one.watch is not None])
        self.context.ready()
        return reactor

    def loop_made(self, loop: Any) -> None:
        """Run coroutines on a loop, which will turn the reactor."""
        self._loop = loop
        self.reactor.loop_made(loop)

    @property
    def reactor(self) -> Reactor:
        """What ``open`` has made."""
        assert self._reactor is not None, "it is open"
        return self._reactor

    async def begin_turns(self) -> TurnScheduler:
        """Have the loop turn the reactor."""
        reactor, sockets = self.reactor, self._sockets
        if sockets is None:
            host = TurnScheduler(self._loop, hosted=False)
            host.start(reactor, reactor.turn)
            return host
        sockets.start(reactor, reactor.memory_turn)
        await sockets.accept()
        return sockets

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
        self._relay.begin()

    def _make_reactor(
        self,
        gateway: Gateway,
        loop: Any,
        watch: Watch | None,
        make_loop: Callable[[], object] | None = None,
    ) -> Reactor:
        """A reactor for a loop, which listens."""
        config = self.config
        reactor = reactors.make(
            gateway,
            limits=config.limits_in_force,
            server_header=config.server_name,
            date_header=config.date_header,
            headers=self._default_response_headers(),
            loop=loop,
            make_loop=make_loop,
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
            host=self._sockets,
            on_memory=None if self._sockets is None else self._sockets.hear,
            balancer=self._balancer,
        )
        if self._sockets is not None:
            self._sockets.take(reactor, self.context.listeners, config.backlog)
            return reactor
        for listener in self.context.listeners:
            speaks = speaks_of(listener)
            reactor.listen(
                listener.fileno(),
                rpc=speaks.is_rpc,
                tls=speaks.is_tls,
                http=_tcp_versions(speaks),
                proxied=speaks.is_proxied,
                redirect_port=speaks.redirect_port,
            )
        if self.context.quic:
            self.context.quic.pop(0).serve(reactor, config.quic_qlog_dir)
        return reactor

    def _default_response_headers(self) -> list[tuple[str, str]]:
        headers = self.config.default_response_headers
        if self.context.alt_svc is None or any(name == "alt-svc" for name, _ in headers):
            return headers
        return [*headers, ("alt-svc", self.context.alt_svc)]

    def _open_reactor_threads(self, loop: Any) -> None:
        """The other reactors of this worker."""
        if (count := self.config.reactors) == 1:
            self._explain_gil()
            return
        from citius.serving.interfaces.asgi import AsgiApp
        from citius.serving.reactor_threads import LoopHost, PlainHost, ReactorThread

        if has_gil():
            logging.warning(
                "--reactor-threads: the threads take turns on this interpreter, which has a GIL; "
                "--workers serve side by side"
            )
        context = self.context
        try:
            for number in range(1, count):
                watch = None
                if self._watch is not None:
                    watch = Watch(
                        self.config,
                        registry=context.metrics,
                        slot=context.metrics_slot,
                        reactor=number,
                    )
                app = self._app.of_thread() if isinstance(self._app, AsgiApp) else None
                gateway = self._gateway if app is None else self._gateway_of(app)

                def make(
                    loop: Any, watch: Watch | None = watch, gateway: Gateway = gateway
                ) -> Reactor:
                    return self._make_reactor(gateway, loop, watch)

                host = (
                    PlainHost(make)
                    if loop is None
                    else LoopHost(app, self.config.loop, make, pending.tasks_open)
                )
                thread = ReactorThread(number, host, watch, self.heartbeat_interval_s)
                self._reactor_threads.append(thread)
                thread.start()
        except BaseException:
            for thread in self._reactor_threads:
                thread.end()
                thread.stop()
            for thread in self._reactor_threads:
                thread.join(_ABANDON_S)
            raise

    def _explain_gil(self) -> None:
        """Say why one reactor serves on an interpreter that could do without a GIL."""
        is_default = self.config.reactor_threads is None and self.config.loop != "gevent"
        if (
            is_default
            and "t" in getattr(sys, "abiflags", "")
            and has_gil()
            and self.context.is_first
        ):
            logging.warning(
                "the GIL is on, by PYTHON_GIL or by an extension module that needs it: one thread serves; "
                "--workers serve side by side"
            )

    @property
    def heartbeat_interval_s(self) -> float | None:
        """How often a host has to call ``heartbeat``; ``None`` if it is not needed."""
        if self._watch is None:
            return None if self.context.heartbeat is None else self.context.heartbeat_interval_s
        return min(observe.HEARTBEAT_INTERVAL_S, self.context.heartbeat_interval_s)

    def heartbeat(self) -> None:
        """Say that the loop turns."""
        if self._watch is not None:
            if self.context.is_leaving is not None and self.context.is_leaving():
                self._watch.draining()
            interval_s = self.heartbeat_interval_s or observe.HEARTBEAT_INTERVAL_S
            self._watch.heartbeat(
                self._loop,
                self._pool,
                interval_s,
                pending.deferred_calls(),
                pending.cluster_counters(),
            )
        if self.context.heartbeat is not None and self._reactor is not None and self._all_turn():
            of_threads = sum(one.requests_total for one in self._reactor_threads)
            self.context.heartbeat(self._reactor.requests_total + of_threads)

    def _all_turn(self) -> bool:
        """Whether the reactors of other threads have been turned lately; the worker is as alive as each."""
        if not self._reactor_threads:
            return True
        late_s = 2 * (self.heartbeat_interval_s or 0.0) + _LATE_S
        return not [one for one in self._reactor_threads if one.is_late(late_s)]

    def heartbeat_every(self, loop: Any, interval_s: float) -> None:
        """Send a heartbeat now, and again every ``interval_s``."""
        self.heartbeat()
        loop.call_later(interval_s, self.heartbeat_every, loop, interval_s)

    def drain(self, on_drained: Callable[[], object]) -> None:
        """Let open requests end; call ``on_drained`` when the last connection is gone."""
        self.left_at = monotonic() + self.config.drain_s
        if self._watch is not None:
            self._watch.draining()
        pending.end_broadcasts()
        if self._reactor is not None:
            if self.context.stop_accepting is not None:
                self.context.stop_accepting()
            drained = self._after_all(on_drained) if self._reactor_threads else on_drained
            # The reactors have closed their own descriptors then; without ours the port is free.
            if self._sockets is not None:
                self._sockets.drain(self._reactor, drained)
            else:
                self._reactor.drain(drained)
            for thread in self._reactor_threads:
                thread.drain(drained)
            for listener in self.context.listeners:
                listener.close()

    def _after_all(self, function: Callable[[], object]) -> Callable[[], object]:
        """What each reactor calls in its thread; the last one has ``function`` called where the worker is."""
        from threading import Lock

        left, lock, loop = 1 + len(self._reactor_threads), Lock(), self._loop

        def one_more() -> None:
            nonlocal left
            with lock:
                left -= 1
                is_last = left == 0
            if is_last and loop is None:
                function()
            elif is_last:
                with suppress(RuntimeError):  # the worker's loop is closed: it has not waited
                    loop.call_soon_threadsafe(function)

        return one_more

    def cut(self, then: Callable[[], object]) -> None:
        """Close all connections now, then call ``then``; later steps of the stop do not wait."""
        self.left_at = monotonic()
        if self._reactor is not None:
            of_threads = sum(one.requests_open for one in self._reactor_threads)
            requests_open = self._reactor.requests_open + of_threads
            self._reactor.close()  # its last turn may say what it waits for
            if requests_open:
                were = "was" if requests_open == 1 else "were"
                logging.warning(f"{_counted(requests_open, 'open request')} {were} cut off")
            if self._sockets is not None:
                self._sockets.cut()
            for thread in self._reactor_threads:
                thread.cut()
        then()

    async def stop(self) -> None:
        """Call the shutdown hooks, after threads and tasks have finished; all within the drain time."""
        reactors.enter(None)
        if self.left_at is None:
            self.left_at = monotonic() + self.config.drain_s
        if self._pool is not None and not await self._close_pool(self.left_at):
            logging.warning("a blocking handler did not end within the drain time; left behind")
        if (
            self._loop is not None
            and not await self._until(lambda: not (pending.tasks_open() or pending.runs()))
            and (left := pending.tasks_open())
        ):
            logging.warning(
                f"{_counted(left, 'request')} did not end within the drain time; left behind"
            )
        if self._reactor_threads and not await self._end_requests_of_threads():
            logging.warning(
                "requests of other threads did not end within the drain time; left behind"
            )
        if pending.runs():
            logging.warning(
                f"{_counted(pending.runs(), 'run')} did not end within the drain time; cut off"
            )
            await sys.modules["citius.web.realtime.runs.run_keeper"].cut_off_all()
        self.is_ending = True
        if self._relay is not None:
            self._relay.close()
        try:
            await self._stop_application()
        except BaseException as error:
            end_child(self._home, error)
            raise
        finally:
            end_child(self._home)
            if self._watch is not None:
                self._watch.close()

    async def _end_requests_of_threads(self) -> bool:
        for thread in self._reactor_threads:
            thread.end()
        if self._loop is None:
            assert self.left_at is not None, "this is a stop"
            for thread in self._reactor_threads:
                thread.join(max(_STOP_POLL_S, self.left_at - monotonic()))
            return self._are_idle()
        from asyncio import sleep

        if await self._until(self._are_idle):
            return True
        # Deferred work has a time of its own.
        until = monotonic() + background.DRAIN_S if (background := pending.background()) else 0.0
        while pending.deferred_calls() and monotonic() < until and not self._are_idle():
            await sleep(_STOP_POLL_S)
        return self._are_idle()

    def _are_idle(self) -> bool:
        return all(one.is_idle for one in self._reactor_threads)

    async def _stop_application(self) -> None:
        """Stop it on all loops at once, for as long as that takes."""
        if not self._reactor_threads or self._loop is None:
            return await self._app.stop()
        from asyncio import sleep

        # One with requests left may hang in them; the others end, unless what they stop hangs.
        idle = [thread for thread in self._reactor_threads if thread.is_idle]
        for thread in self._reactor_threads:
            thread.stop()
        try:
            await self._app.stop()
            while not all(thread.has_ended for thread in idle):
                await sleep(_STOP_POLL_S)
            until = monotonic() + _ABANDON_S
            while monotonic() < until and not all(one.has_ended for one in self._reactor_threads):
                await sleep(_STOP_POLL_S)
        finally:
            for thread in self._reactor_threads:
                thread.leave()
            # A thread that collects tasks while the interpreter ends would make it wait for ever (3.14).
            until = monotonic() + _LEAVE_S
            for thread in idle:
                thread.join(max(0.0, until - monotonic()))

    async def _close_pool(self, left_at: float) -> bool:
        if self._loop is None:
            return self._pool.close(max(_STOP_POLL_S, left_at - monotonic()))
        return await self._until(lambda: self._pool.close(0.0))

    async def _until(self, is_done: Callable[[], bool]) -> bool:
        """Wait for something within the drain time; whether it has come."""
        from asyncio import sleep

        # Not in one wait: the loop has to hear the signal that means "now", which changes the time.
        while not is_done():
            is_late = self.left_at is None or monotonic() >= self.left_at
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
            from citius.web.execution.thread_pool import BlockingPool

            threads = config.threads or config.blocking_threads
            self._pool = BlockingPool(threads, config.blocking_queue_max)
        return self._pool


def _tcp_versions(speaks: Speaks) -> str | None:
    return None if speaks.http is None else over_tcp(http_versions(speaks.http))


def _counted(number: int, what: str) -> str:
    return f"{number} {what}" if number == 1 else f"{number} {what}s"


def _current_span() -> tuple[Any, ...]:
    from citius.web.middleware.current_span import CurrentSpan

    return (CurrentSpan(),)
