"""Several workers: forked, watched, replaced, stopped in order.

Each slot has one listening socket, made before the first fork and kept for the life of the supervisor.
A worker that dies leaves its queue of connections to the next one in its slot, so none is lost. Rules:

- TERM, INT: workers drain within the deadline; a second INT stops them at once.
- HUP: one slot after the other gets a new worker; the old one drains when the new one is ready.
- TTIN, TTOU: a worker more, a worker less.
- A worker that ends without being told to is replaced, later and later if it keeps dying young.
- A worker that cannot start (exit code 3) before any has been ready stops everything with that code.
- Workers do not outlive the supervisor: they hold the reading end of a pipe whose hang-up is a TERM.

The supervisor serves nothing and imports no application. It waits in one place, ``_wait``.
"""

from __future__ import annotations

import fcntl
import os
import select
import signal
import socket
import sys
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NoReturn

from citius import logging
from citius._core import __version__
from citius.server import EXIT_STARTUP, address_of, work

if TYPE_CHECKING:
    from collections.abc import Callable

    from citius.app import App
    from citius.config import Config

YOUNG_S = 5.0
"""A worker that dies within this time of its start died young."""

BACK_OFF_MAX_S = 8.0
"""The longest pause before a worker that keeps dying young is started again."""

KILL_GRACE_S = 2.0
"""After the drain deadline, and after a second INT, workers get this long before KILL."""

_SIGNALS = (
    signal.SIGTERM, signal.SIGINT, signal.SIGQUIT, signal.SIGHUP,
    signal.SIGTTIN, signal.SIGTTOU, signal.SIGCHLD,
)  # fmt: skip


@dataclass(slots=True)
class _Worker:
    """One process. ``ready_fd`` brings a byte when it listens, and is closed after that."""

    pid: int
    started_at: float
    ready_fd: int
    life_fd: int
    """The writing end of a pipe; that it hangs up is how the worker learns of our end."""
    is_ready: bool = False
    is_told_to_stop: bool = False
    kill_at: float = float("inf")


@dataclass(slots=True)
class _Slot:
    """A place for one worker. During a rolling restart ``old`` drains beside the new ``worker``."""

    index: int
    listener: socket.socket
    worker: _Worker | None = None
    old: list[_Worker] = field(default_factory=list[_Worker])
    deaths_young: int = 0
    start_at: float = 0.0


@dataclass(frozen=True, slots=True)
class _Address:
    """Where all slots listen."""

    family: int
    name: Any
    url: str
    is_shared_by_port: bool
    """Each slot has a socket of its own (SO_REUSEPORT); otherwise they are copies of one."""

    @staticmethod
    def of(listener: socket.socket) -> _Address:
        is_shared = listener.family != socket.AF_UNIX and bool(
            listener.getsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT)
        )
        return _Address(listener.family, listener.getsockname(), address_of(listener), is_shared)


class Supervisor:
    """Keeps ``config.workers`` workers alive until it is told to stop."""

    def __init__(self, target: App | str, config: Config, listeners: list[socket.socket]) -> None:
        self._target = target
        self._config = config
        self._slots = [_Slot(index, listener) for index, listener in enumerate(listeners)]
        self._address = _Address.of(listeners[0])
        self._leaving: list[_Slot] = []
        self._restarts: list[_Slot] = []
        self._stopping = False
        self._exit_code = 0
        self._announced = False
        self._alarms: tuple[int, int] = (-1, -1)
        self._handlers: dict[int, Callable[[], None]] = {
            signal.SIGTERM: self._drain,
            signal.SIGINT: self._interrupt,
            signal.SIGQUIT: self._stop_now,
            signal.SIGHUP: self._restart,
            signal.SIGTTIN: self._more,
            signal.SIGTTOU: self._fewer,
        }

    def run(self) -> int:
        """Supervise; returns the exit code."""
        self._alarms = os.pipe()
        for fd in self._alarms:
            os.set_blocking(fd, False)
        before = {number: signal.signal(number, _ignore) for number in _SIGNALS}
        before_fd = signal.set_wakeup_fd(self._alarms[1], warn_on_full_buffer=False)
        for slot in self._slots:
            slot.listener.listen(self._config.backlog)
        try:
            while self._tend():
                for number in self._wait():
                    if number in self._handlers:
                        self._handlers[number]()
                self._reap()
        finally:
            signal.set_wakeup_fd(before_fd)
            for number, handler in before.items():
                signal.signal(number, handler)
            for fd in self._alarms:
                os.close(fd)
        return self._exit_code

    # --- one round ------------------------------------------------------------------------------

    def _tend(self) -> bool:
        """Start and kill what is due; whether there is anything left to supervise."""
        now = time.monotonic()
        for slot in self._slots:
            if slot.worker is None and not self._stopping and now >= slot.start_at:
                slot.worker = self._start(slot)
        if self._restarts and not self._stopping:
            self._restart_next()
        for _, worker in self._workers():
            if now >= worker.kill_at:
                logging.warning(f"worker {worker.pid} did not stop in time and is killed")
                _kill(worker, signal.SIGKILL)
                worker.kill_at = float("inf")
        if not self._announced and all(s.worker and s.worker.is_ready for s in self._slots):
            self._announced = True
            logging.info(
                f"Citius {__version__} serves on {self._address.url} with "
                f"{len(self._slots)} workers (CTRL+C stops it)"
            )
        return not self._stopping or bool(self._workers())

    def _wait(self) -> bytes:
        """Sleep until a signal comes, a worker is ready or something is due; returns signal numbers."""
        due = [slot.start_at for slot in self._slots if slot.worker is None and not self._stopping]
        due += [worker.kill_at for _, worker in self._workers()]
        pause = min(due, default=float("inf")) - time.monotonic()
        waiting = {w.ready_fd: w for _, w in self._workers() if w.ready_fd >= 0}
        readable, _, _ = select.select(
            [self._alarms[0], *waiting], [], [], None if pause == float("inf") else max(0.0, pause)
        )
        for fd in readable:
            if fd in waiting:
                worker = waiting[fd]
                worker.is_ready = os.read(fd, 1) != b""
                os.close(fd)
                worker.ready_fd = -1
        return os.read(self._alarms[0], 4096) if self._alarms[0] in readable else b""

    def _reap(self) -> None:
        """Take note of workers that have ended; by their ids, so foreign children stay untouched."""
        for slot, worker in self._workers():
            pid, status = os.waitpid(worker.pid, os.WNOHANG)
            if pid:
                if worker.ready_fd >= 0:
                    os.close(worker.ready_fd)
                os.close(worker.life_fd)
                self._bury(slot, worker, status)

    def _bury(self, slot: _Slot, worker: _Worker, status: int) -> None:
        if worker in slot.old:
            slot.old.remove(worker)
            return
        slot.worker = None
        if slot in self._leaving:
            self._leaving.remove(slot)
            return
        if self._stopping:
            return
        code = os.waitstatus_to_exitcode(status)
        how = (
            f"was ended by {signal.Signals(-code).name}" if code < 0 else f"ended with code {code}"
        )
        if code == EXIT_STARTUP and not self._announced:
            logging.error(f"worker {worker.pid} could not start; stopping")
            self._exit_code = EXIT_STARTUP
            self._drain()
            return
        now = time.monotonic()
        young = now - worker.started_at < YOUNG_S
        slot.deaths_young = slot.deaths_young + 1 if young else 0
        # The first death is an accident, repeated ones are a loop.
        pause_s = min(BACK_OFF_MAX_S, 0.25 * 2**slot.deaths_young) if slot.deaths_young > 1 else 0.0
        slot.start_at = now + pause_s
        if pause_s and self._address.is_shared_by_port:
            # Until then the kernel would queue connections here that the other workers could take.
            slot.listener.close()
        after = f" in {pause_s:g} s" if pause_s else ""
        logging.error(f"worker {worker.pid} {how}; replacing it{after}")

    # --- what signals ask for -------------------------------------------------------------------

    def _drain(self) -> None:
        if self._stopping:
            return
        self._stopping = True
        for slot in self._slots:
            # New connections are refused from now on instead of waiting for nobody.
            slot.listener.close()
        for _, worker in self._workers():
            self._tell_to_stop(worker)

    def _interrupt(self) -> None:
        if self._stopping:
            self._stop_now()
        else:
            self._drain()

    def _stop_now(self) -> None:
        self._drain()
        for _, worker in self._workers():
            _kill(worker, signal.SIGQUIT)
            worker.kill_at = time.monotonic() + KILL_GRACE_S

    def _restart(self) -> None:
        if self._stopping or self._restarts:
            return
        logging.info("replacing the workers one by one")
        self._restarts = list(self._slots)
        self._restart_next()

    def _restart_next(self) -> None:
        """Go on with the rolling restart if the newest worker is ready (or was given up)."""
        slot = self._restarts[0]
        worker = slot.worker
        if worker is None:
            return  # it has just died; what is started in its place is new already
        if slot.old:
            if not worker.is_ready:
                return
            for old in slot.old:
                self._tell_to_stop(old)
            self._restarts.pop(0)
            if self._restarts:
                self._restart_next()
            return
        slot.old.append(worker)
        slot.worker = self._start(slot)

    def _more(self) -> None:
        if self._stopping:
            return
        index = self._slots[-1].index + 1
        self._slots.append(_Slot(index, self._new_listener()))
        logging.info(f"one worker more: {len(self._slots)}")

    def _fewer(self) -> None:
        if self._stopping or len(self._slots) == 1:
            return
        slot = self._slots.pop()
        if slot in self._restarts:
            self._restarts.remove(slot)
        logging.info(f"one worker less: {len(self._slots)}")
        # The worker closes the other descriptor when it drains; nobody would take from this one.
        slot.listener.close()
        for worker in (slot.worker, *slot.old):
            if worker is not None:
                self._tell_to_stop(worker)
        self._leaving.append(slot)

    def _tell_to_stop(self, worker: _Worker) -> None:
        if not worker.is_told_to_stop:
            worker.is_told_to_stop = True
            worker.kill_at = time.monotonic() + self._config.drain_s + KILL_GRACE_S
            # Not INT: a terminal sends that to the whole group, and the second one means "now".
            _kill(worker, signal.SIGTERM)

    # --- processes ------------------------------------------------------------------------------

    def _workers(self) -> list[tuple[_Slot, _Worker]]:
        return [
            (slot, worker)
            for slot in (*self._slots, *self._leaving)
            for worker in (slot.worker, *slot.old)
            if worker is not None
        ]

    def _start(self, slot: _Slot) -> _Worker:
        if slot.listener.fileno() < 0:
            slot.listener = self._new_listener()
        # A pipe for each: who is told of its end is a property of the pipe, not of the process.
        worker_life_fd, life_fd = os.pipe()
        ready_fd, worker_ready_fd = os.pipe()
        sys.stdout.flush()
        sys.stderr.flush()
        pid = os.fork()
        if pid == 0:
            for fd in (ready_fd, life_fd):
                os.close(fd)
            self._become_worker(slot, worker_ready_fd, worker_life_fd)
        for fd in (worker_ready_fd, worker_life_fd):
            os.close(fd)
        return _Worker(pid, time.monotonic(), ready_fd, life_fd)

    def _become_worker(self, slot: _Slot, ready_fd: int, life_fd: int) -> NoReturn:
        """The rest of the child's life. Nothing of the supervisor may run in it, so it never returns."""
        code = 1
        try:
            signal.set_wakeup_fd(-1)
            for number in _SIGNALS:
                signal.signal(number, signal.SIG_DFL)
            # These belong to the supervisor; a worker neither scales nor restarts itself.
            for number in (signal.SIGHUP, signal.SIGTTIN, signal.SIGTTOU):
                signal.signal(number, signal.SIG_IGN)
            self._close_what_is_not(slot)
            _end_with(life_fd)

            def ready() -> None:
                os.write(ready_fd, b"r")
                os.close(ready_fd)

            code = work(self._target, self._config, slot.listener, ready)
            sys.stdout.flush()
            sys.stderr.flush()
        except KeyboardInterrupt:
            code = 0
        except BaseException as error:
            logging.log_exception("a worker failed", error)
        finally:
            os._exit(code)

    def _new_listener(self) -> socket.socket:
        """One more listening socket at our address, or the same one where there can be no other."""
        if not self._address.is_shared_by_port:
            return self._slots[0].listener.dup()
        listener = socket.socket(self._address.family, socket.SOCK_STREAM)
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        listener.bind(self._address.name)
        listener.listen(self._config.backlog)
        return listener

    def _close_what_is_not(self, slot: _Slot) -> None:
        """Close the supervisor's descriptors in a worker: a copy keeps a listener or a pipe open."""
        for fd in self._alarms:
            os.close(fd)
        for _, worker in self._workers():
            os.close(worker.life_fd)
            if worker.ready_fd >= 0:
                os.close(worker.ready_fd)
        for other in self._slots:
            if other is not slot:
                other.listener.close()


def _end_with(life_fd: int) -> None:
    """Get TERM when the last writer of the pipe, the supervisor, is gone (fcntl(2), O_ASYNC)."""
    fcntl.fcntl(life_fd, fcntl.F_SETOWN, os.getpid())
    fcntl.fcntl(life_fd, fcntl.F_SETSIG, signal.SIGTERM)
    flags = fcntl.fcntl(life_fd, fcntl.F_GETFL)
    fcntl.fcntl(life_fd, fcntl.F_SETFL, flags | os.O_ASYNC | os.O_NONBLOCK)
    if select.select([life_fd], [], [], 0)[0]:
        os._exit(0)  # it died before the signal was armed


def _kill(worker: _Worker, number: int) -> None:
    try:
        os.kill(worker.pid, number)
    except ProcessLookupError:
        return


def _ignore(number: int, frame: object) -> None:
    """Signals are read from the wake-up descriptor; a handler only makes them arrive there."""
