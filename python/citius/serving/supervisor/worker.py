"""One worker: a process as the supervisor sees it, and the process's own first steps.

What goes between the two: a pipe that brings one byte when the worker is ready, a pipe whose hang-up tells
the worker that the supervisor is gone, and a page of shared memory into which a worker whose loop turns
writes the time and its requests.
"""

from __future__ import annotations

import mmap
import os
import random
import signal
import struct
import sys
import time
from contextlib import suppress
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Any, NoReturn

from citius.observability import logging
from citius.process.leaving import wait_for_executors
from citius.process.lifeline import end_if_orphaned, end_with
from citius.process.logfiles import reopen
from citius.process.sharedmemory import shared_memory, table_memory
from citius.process.signals import GRACE_S
from citius.serving.aside import put_aside
from citius.serving.service import WorkerContext
from citius.serving.supervisor.links import control_pair
from citius.serving.worker import work
from citius.serving.worker_info import WorkerInfo, become

if TYPE_CHECKING:
    import socket
    from collections.abc import Callable

    from citius._core import TlsTickets
    from citius.observability.metrics import MetricsRegistry
    from citius.serving.datagrams import QuicPlace
    from citius.serving.supervisor.slots import Slot
    from citius.settings.config import Config
    from citius.web.application.app import App

SIGNALS = (
    signal.SIGTERM, signal.SIGINT, signal.SIGQUIT, signal.SIGHUP, signal.SIGTTIN, signal.SIGTTOU,
    signal.SIGUSR1, signal.SIGUSR2, signal.SIGCHLD,
)  # fmt: skip
"""What the supervisor listens to."""

STACKS_SIGNAL = signal.SIGUSR2
"""Makes a worker print its Python stacks, even if it hangs."""

_PULSE = struct.Struct("=dQ")
# Behind it: whether the supervisor is going to stop.
_LEAVING = _PULSE.size


@dataclass(slots=True)
class Worker:
    """One process. ``ready_fd`` brings a byte when it serves, and is closed after that."""

    pid: int
    started_at: float
    config: Config
    """What it was started with."""
    ready_fd: int
    life_fd: int
    """The writing end of a pipe; that it hangs up is how the worker learns of our end."""
    pulse: mmap.mmap
    requests_max: int
    """After so many it is replaced; 0: never."""
    metrics_slot: int | None = None
    """Where it counts."""
    control: socket.socket | None = None
    """Over which its rooms are linked with those of others; `None` once it has closed its end."""
    quic_generation: int = -1
    """How many workers had its slot before, if HTTP/3 is served."""
    has_rooms: bool = False
    is_ready: bool = False
    is_told_to_stop: bool = False
    is_doomed: bool = False
    """It has been found hung, and its end is coming."""
    kill_at: float = float("inf")

    @property
    def heartbeat_at(self) -> float:
        """When its loop has last been seen to turn; 0 before it was ready."""
        return _PULSE.unpack_from(self.pulse)[0]

    @property
    def requests_total(self) -> int:
        """Requests it had taken then."""
        return _PULSE.unpack_from(self.pulse)[1]

    def tell_that_leaving(self) -> None:
        """Let its readiness fail from its next heartbeat on, while it goes on serving."""
        self.pulse[_LEAVING] = 1

    def tell_to_stop(self) -> None:
        """Let it drain; it is killed when it does not end in time."""
        if not self.is_told_to_stop:
            self.is_told_to_stop = True
            self.kill_at = time.monotonic() + self.config.drain_s + KILL_GRACE_S
            # Not INT: a terminal sends that to the whole group, and the second one means "now".
            self.kill(signal.SIGTERM)

    def kill(self, number: int) -> None:
        """Send it a signal; it may be gone."""
        try:
            os.kill(self.pid, number)
        except ProcessLookupError:
            return

    def close(self) -> None:
        """Let go of what connected us."""
        for fd in (self.ready_fd, self.life_fd):
            if fd >= 0:
                os.close(fd)
        self.ready_fd = self.life_fd = -1
        if self.control is not None:
            self.control.close()
        self.pulse.close()


def start(
    target: App | str,
    config: Config,
    slot: Slot,
    close_others: Callable[[], object],
    metrics: MetricsRegistry | None = None,
    tickets: TlsTickets | None = None,
    *,
    tells_failure: Callable[[], bool] = lambda: True,
    workers: int = 1,
    quic: list[QuicPlace] | None = None,
    alt_svc: str | None = None,
) -> Worker:
    """Fork a worker for ``slot``.

    Args:
        target: What it serves.
        config: How.
        slot: Whose sockets it accepts from.
        close_others: Closes, in the worker, what belongs to the supervisor and to other slots.
        metrics: Where it counts; ``None`` without metrics.
        tickets: The secret of TLS session tickets, shared with the others.
        tells_failure: Whether it logs the traceback if it cannot start.
        workers: How many there are.
        quic: What of HTTP/3 each of its reactors serves.
        alt_svc: The value of `Alt-Svc`, if responses have it.
    """
    import_shared(config)
    # A pipe for each: who is told of its end is a property of the pipe, not of the process.
    worker_life_fd, life_fd = os.pipe()
    fds = [worker_life_fd, life_fd]
    try:
        ready_fd, worker_ready_fd = os.pipe()
        fds += [ready_fd, worker_ready_fd]
        control, worker_control = control_pair()
    except OSError:
        for fd in fds:
            os.close(fd)
        raise
    shared_memory()  # made before the first fork, it is that of all workers
    table_memory()  # likewise
    pulse = mmap.mmap(-1, _PULSE.size + 1)
    metrics_slot = None
    if metrics is not None and (metrics_slot := metrics.assign()) is None:
        logging.warning("too many workers at once: one more is not among the metrics")
    sys.stdout.flush()
    sys.stderr.flush()
    # Until the worker has its own handlers a signal meant for it would arrive in the supervisor's
    # wake-up descriptor, which it has a copy of: a TERM for one worker would stop them all.
    before = signal.pthread_sigmask(signal.SIG_BLOCK, SIGNALS)
    try:
        pid = os.fork()
    except OSError:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
        for fd in fds:
            os.close(fd)
        control.close()
        worker_control.close()
        if metrics is not None:
            metrics.retire(metrics_slot)
        raise
    if pid == 0:
        for fd in (ready_fd, life_fd):
            os.close(fd)
        control.close()
        become(WorkerInfo(slot.index, max(workers, slot.index + 1)))
        context = WorkerContext(
            slot.listeners, _nothing, metrics=metrics, metrics_slot=metrics_slot, tickets=tickets,
            control=worker_control, is_first=slot.index == 0, quic=quic or [], alt_svc=alt_svc,
            tells_failure=tells_failure,
        )  # fmt: skip
        _become_worker(
            target, config, context, close_others, worker_ready_fd, worker_life_fd, pulse
        )
    signal.pthread_sigmask(signal.SIG_SETMASK, before)
    for fd in (worker_ready_fd, worker_life_fd):
        os.close(fd)
    worker_control.close()
    requests_max = config.max_requests
    if requests_max:
        requests_max += random.randint(0, config.max_requests_jitter)
    return Worker(
        pid, time.monotonic(), config, ready_fd, life_fd, pulse, requests_max, metrics_slot, control
    )


def import_shared(config: Config) -> None:
    """Import what every worker on an event loop needs: modules from before the fork share their memory.

    From the interpreter's own library alone. What pip has installed may be another version after the next
    HUP, and is imported by each worker.
    """
    if config.loop not in ("none", "gevent") and config.interface != "wsgi":
        # Workers say what keeps them from it, out of descriptors for example.
        with suppress(Exception):
            import_module("asyncio")


def _become_worker(
    target: App | str,
    config: Config,
    context: WorkerContext,
    close_others: Callable[[], object],
    ready_fd: int,
    life_fd: int,
    pulse: mmap.mmap,
) -> NoReturn:
    """The rest of the child's life. Nothing of the supervisor may run in it, so it never returns."""
    code = 1
    try:
        signal.set_wakeup_fd(-1)
        for number in SIGNALS:
            signal.signal(number, signal.SIG_DFL)
        # These belong to the supervisor; a worker neither scales nor restarts itself.
        for number in (signal.SIGHUP, signal.SIGTTIN, signal.SIGTTOU):
            signal.signal(number, signal.SIG_IGN)
        signal.signal(signal.SIGUSR1, lambda number, frame: reopen(config, give=False))
        _print_stacks_on_signal()
        signal.pthread_sigmask(signal.SIG_UNBLOCK, SIGNALS)
        close_others()
        end_with(life_fd, config.drain_s + KILL_GRACE_S)

        def ready() -> None:
            os.write(ready_fd, b"r")
            os.close(ready_fd)

        def heartbeat(requests: int) -> None:
            end_if_orphaned()
            _PULSE.pack_into(pulse, 0, time.monotonic(), requests)

        put_aside("asyncio")
        context.ready, context.heartbeat = ready, heartbeat
        context.is_leaving = lambda: bool(pulse[_LEAVING])
        context.heartbeat_interval_s = heartbeat_interval_s(config)
        code = work(target, config, context)
        wait_for_executors(code)
        _finalize_multiprocessing()
        sys.stdout.flush()
        sys.stderr.flush()
    except KeyboardInterrupt:
        code = 0
    except BaseException as error:
        logging.log_exception("a worker failed", error)
    finally:
        os._exit(code)


def _finalize_multiprocessing() -> None:
    """Have ``multiprocessing`` remove its directory and end its managers, which ``os._exit`` does not."""
    util: Any = sys.modules.get("multiprocessing.util")
    if util is not None:
        util._run_finalizers()


def _nothing() -> None:
    """Until the worker knows better."""


def heartbeat_interval_s(config: Config) -> float:
    """How often a worker shows that it is alive."""
    is_often = config.max_requests or config.drain_delay_s
    return 0.25 if is_often or 0 < (config.worker_timeout_s or 30.0) < 4 else 1.0


def _print_stacks_on_signal() -> None:
    """From the C handler, which needs neither the GIL nor a loop that turns."""
    import faulthandler

    faulthandler.register(STACKS_SIGNAL, file=2, all_threads=True)


KILL_GRACE_S = GRACE_S
"""After the drain deadline, and after a second INT, workers get this long before KILL."""
