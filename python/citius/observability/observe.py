"""The observers of one worker, one for each reactor: sets them up and updates them.

The observer (``_core.Observer``) sees every request by itself. This module adds what only Python knows:
the delay of the event loop, the length of the thread queue, and the results of the readiness checks.
"""

from __future__ import annotations

import os
import signal
import time
from contextlib import contextmanager
from inspect import iscoroutine, iscoroutinefunction
from typing import TYPE_CHECKING, Any

from citius._core import Observer
from citius.coroutines import result_at_once
from citius.errors import ConfigError
from citius.observability import clients, logging
from citius.observability.metrics import DRAINING, READY, STARTING
from citius.threads import Thread

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Sequence

    from citius.observability.metrics import MetricsRegistry
    from citius.settings.config import Config

HEARTBEAT_INTERVAL_S = 1.0
"""Interval between heartbeats of a worker."""

CHECK_EVERY_S = 2.0
"""Interval between calls of the application's readiness checks."""

CHECK_TIMEOUT_S = 5.0
"""A check that takes longer has failed."""

CLOSE_S = 1.0
"""Time to write the last access log lines."""


def is_wanted(config: Config) -> bool:
    """Whether an option needs the observer; without one, requests have no cost for it."""
    return bool(
        config.access_log or config.request_id or config.trace or config.otel
        or config.management or config.health
    )  # fmt: skip


_OF_A_THREAD = ("SIGABRT", "SIGBUS", "SIGFPE", "SIGILL", "SIGSEGV", "SIGSYS", "SIGTRAP")
"""Signals that a thread causes itself."""


@contextmanager
def without_signals() -> Generator[None]:
    """Threads that are started meanwhile leave the signals of the process to the main thread.

    Before CPython 3.13 a signal that another thread takes makes the interpreter forget that the main thread
    has one to handle. Only for threads that start no process: it would inherit what is blocked.
    """
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    others = {
        number
        for number in signal.valid_signals()
        if getattr(number, "name", "") not in _OF_A_THREAD
    }
    before = signal.pthread_sigmask(signal.SIG_BLOCK, others)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


class Watch:
    """The observer of one reactor, and what updates it. That of the first one does what concerns the worker.

    Args:
        config: Says what is observed.
        registry: Where it counts; ``None`` without metrics.
        slot: The worker's slot there.
        reactor: Which reactor of the worker, from 0.
        checks: The readiness checks of the application.
    """

    def __init__(
        self,
        config: Config,
        *,
        registry: MetricsRegistry | None = None,
        slot: int | None = None,
        reactor: int = 0,
        checks: Sequence[Callable[[], Any]] = (),
    ) -> None:
        part = None if registry is None or slot is None else registry.part(slot, reactor)
        try:
            with without_signals():
                self.observer = Observer(
                    metrics=None if registry is None or part is None else registry.shared,
                    slot=part or 0,
                    access_log=config.access_log_format if config.access_log else None,
                    access_log_sample=config.access_log_sample,
                    request_id=config.request_id,
                    trace=config.trace,
                    trace_sample=config.trace_sample,
                    spans=config.otel,
                    path_patterns=config.path_pattern,
                    health=config.health,
                )
        except ValueError as error:
            raise ConfigError(str(error)) from None
        self._registry, self._slot = registry, slot
        self._is_first = reactor == 0
        self.clients: clients.Clients | None = None
        """The clients of databases that are opened on this reactor's loop, if they are measured."""
        if registry is not None or config.otel:
            self.clients = clients.Clients(self.observer, _current_span if config.otel else None)
        self._checks = tuple(checks)
        self._check_at = 0.0
        self._wants_otel = config.otel
        self._exporter: Any = None
        self._is_checking = False
        self._heartbeat_due = 0.0
        self._lines_dropped = 0
        self.observer.set_state(STARTING, os.getpid())
        if self._checks:
            self.observer.set_checks(False, "not checked yet")

    def enter(self) -> None:
        """Measure clients of databases that are opened on this thread, or on one without a reactor.

        The latter count with the first reactor.
        """
        if self.clients is not None:
            clients.enter(self.clients, is_first=self._is_first)

    def ready(self, others: Sequence[Watch] = ()) -> None:
        """Mark the worker as ready: it serves clients. Of the first one, with those of the other reactors."""
        self.observer.set_state(READY, os.getpid())
        if not self._is_first:
            return
        logging.count_exceptions(self.observer.add_exception)
        if self._wants_otel:
            try:
                from citius.observability.otel import Exporter
            except ImportError as error:
                raise ConfigError(
                    f"otel: {error}; `pip install 'citius[otel]'` brings what it needs"
                ) from None
            watches = (self, *others)
            with without_signals():
                self._exporter = Exporter(
                    [
                        (one.observer, one.clients.by_number if one.clients is not None else {})
                        for one in watches
                    ]
                )

    def draining(self) -> None:
        """Mark the worker as draining: it accepts no new clients."""
        self.observer.set_state(DRAINING, os.getpid())

    def heartbeat(
        self,
        loop: Any,
        pool: Any,
        heartbeat_interval_s: float,
        deferred_calls: int = 0,
        cluster: list[int] | None = None,
    ) -> None:
        """Called by the event loop: record its delay, and call the readiness checks when they are due."""
        now = time.monotonic()
        late_s = (
            max(0.0, now - self._heartbeat_due) if self._heartbeat_due and loop is not None else 0.0
        )
        self._heartbeat_due = now + heartbeat_interval_s
        length, age_s = pool.waiting() if pool is not None else (0, 0.0)
        self.observer.heartbeat(
            now_ms=int(now * 1000), lag_us=int(late_s * 1e6), queue_length=length,
            queue_age_us=int(age_s * 1e6), utc_offset_s=time.localtime().tm_gmtoff,
        )  # fmt: skip
        if self._is_first and self._registry is not None and self._slot is not None:
            self._registry.deferred_calls[self._slot] = deferred_calls
            if cluster is not None:
                self._registry.write_cluster(self._slot, cluster)
        if self.clients is not None:
            self.clients.heartbeat()
        self._complain()
        if self._checks and now >= self._check_at and not self._is_checking:
            self._check_at = now + CHECK_EVERY_S
            self._is_checking = True
            if loop is not None:
                self._task = loop.create_task(self._check_on(loop))
            else:
                Thread(target=self._check_in_thread, daemon=True).start()

    def close(self) -> None:
        """Write the remaining lines of the access log."""
        if self.clients is not None:
            clients.enter(None, is_first=self._is_first)
        if self._exporter is not None:
            self._exporter.close()
        self.observer.close(CLOSE_S)
        self._complain()
        if self._is_first:
            logging.count_exceptions(None)

    def _complain(self) -> None:
        """Log how many access log lines were lost, and why."""
        dropped, error = self.observer.log_failure()
        if error is not None:
            logging.warning(error)
        if dropped > self._lines_dropped:
            count = dropped - self._lines_dropped
            logging.warning(f"{count} access log lines were dropped: the log is too slow")
            self._lines_dropped = dropped

    async def _check_on(self, loop: Any) -> None:
        import asyncio

        failures: list[str] = []
        for check in self._checks:
            try:
                async with asyncio.timeout(CHECK_TIMEOUT_S):
                    if iscoroutinefunction(check):
                        found = await check()
                    else:
                        found = await loop.run_in_executor(None, check)
            except Exception as error:
                failures.append(_failure(check, error))
            else:
                if found is False:
                    failures.append(_failure(check, None))
        self._checked(failures)

    def _check_in_thread(self) -> None:
        failures: list[str] = []
        for check in self._checks:
            try:
                found = check()
                if iscoroutine(found):
                    waits = RuntimeError("it waits for an event loop, and there is none")
                    found = result_at_once(found, waits)
                if found is False:
                    failures.append(_failure(check, None))
            except Exception as error:
                failures.append(_failure(check, error))
        self._checked(failures)

    def _checked(self, failures: list[str]) -> None:
        self._is_checking = False
        self.observer.set_checks(not failures, "; ".join(failures) or "all pass")


def _current_span() -> tuple[int, int] | None:
    from citius.observability.otel import current_span

    return current_span()


def _failure(check: Callable[[], Any], error: Exception | None) -> str:
    name = getattr(check, "__name__", repr(check))
    if error is None:
        return f"{name}: returned False"
    if isinstance(error, TimeoutError) and not str(error):
        return f"{name}: took more than {CHECK_TIMEOUT_S:g} s"
    return f"{name}: {type(error).__name__}: {error}"
