"""The supervisor's loop: what is due, what signals ask for, which workers have ended.

``run`` goes round in four steps, and only ``_wait`` waits: start, promote and kill what is due (``_tend``),
wait, do what signals ask for, take note of workers that have ended (``_reap``). Stopping is decided here;
slots.py has the workers' places, rollout.py replaces workers that serve, upgrade.py starts a new server, and
health.py judges which worker has to go.
"""

from __future__ import annotations

import math
import os
import select
import signal
import time
from typing import TYPE_CHECKING

from citius._core import __version__
from citius.observability import logging
from citius.process import systemd
from citius.process.logfiles import reopen
from citius.process.sharedmemory import displaced
from citius.serving.prepare import EXIT_HOOK, EXIT_STARTUP, took_over
from citius.serving.supervisor import links
from citius.serving.supervisor.alarms import Alarms
from citius.serving.supervisor.health import Health
from citius.serving.supervisor.memory import OutOfMemory
from citius.serving.supervisor.orphans import Orphans
from citius.serving.supervisor.rollout import Rollout
from citius.serving.supervisor.slots import Slots
from citius.serving.supervisor.upgrade import Upgrades
from citius.serving.supervisor.worker import KILL_GRACE_S, STACKS_SIGNAL

if TYPE_CHECKING:
    from collections.abc import Callable

    from citius.observability.metrics import MetricsRegistry
    from citius.serving.listeners import Listeners
    from citius.serving.management import Management
    from citius.serving.supervisor.certificates import Certificates
    from citius.serving.supervisor.slots import Slot
    from citius.serving.supervisor.worker import Worker
    from citius.settings.config import Config
    from citius.settings.sources import Sources
    from citius.web.application.app import App

YOUNG_S = 5.0
"""A worker that dies within this time of its start died young."""

BACK_OFF_MAX_S = 8.0
"""The longest pause before a worker that keeps dying young is started again."""

SPARE_SLOTS = 64
"""Workers beyond two for each slot whose counters find room: those that drain, and those of TTIN."""

STACKS_S = 1.0
"""Time a hung worker gets to print its stacks."""

FOREVER = float("inf")


_PAUSE_MAX_S = 24 * 3600.0
"""The longest sleep of the supervisor, which then looks again what is due. Origin: poll takes 2**31 ms."""


class Supervisor:
    """Keeps ``config.workers`` workers alive until it is told to stop."""

    def __init__(
        self,
        target: App | str,
        config: Config,
        listeners: Listeners,
        sources: Sources | None = None,
    ) -> None:
        self._listeners = listeners
        self._stopping = False
        self._drain_at = FOREVER
        self._exit_code = 0
        self._announced = False
        self._alarms = Alarms()
        self._health = Health()
        self._check_at = 0.0
        self._notifier = systemd.Notifier()
        self._alive_at = 0.0 if self._notifier.watchdog_s else FOREVER
        self._out_of_memory = OutOfMemory()
        self._metrics: MetricsRegistry | None = None
        self._management: Management | None = None
        if config.management is not None:
            from citius.observability.metrics import MetricsRegistry
            from citius.serving.management import Management

            self._metrics = MetricsRegistry(2 * config.workers + SPARE_SLOTS, config.reactors)
            self._metrics.displaced = displaced
            self._management = Management(
                self._metrics, config, self._expected, takes_over=listeners.ready_fd >= 0
            )
        self._slots = Slots(target, config, listeners, self._metrics, self._close_inherited_fds)
        self._rollout = Rollout(
            self._slots, self._notifier, sources, listeners, self._count_restart
        )
        self._upgrades = Upgrades(listeners, sources)
        self._orphans = Orphans()
        self._certificates: Certificates | None = None
        """Of ``--acme``; made when a configuration first has it."""
        self._handlers: dict[int, Callable[[], None]] = {
            signal.SIGTERM: self._terminate,
            signal.SIGINT: self._interrupt,
            signal.SIGQUIT: self._stop_now,
            signal.SIGHUP: self._unless_stopping(self._rollout.restart),
            signal.SIGTTIN: self._unless_stopping(self._slots.add),
            signal.SIGTTOU: self._unless_stopping(self._rollout.remove_worker),
            signal.SIGUSR1: self._reopen_logs,
            signal.SIGUSR2: self._unless_stopping(
                lambda: self._upgrades.begin(self._slots.config, self._slots.handings())
            ),
        }

    def run(self) -> int:
        """Supervise; returns the exit code."""
        with self._alarms:
            try:
                self._listeners.listen(self._slots.config.backlog)
                while self._tend():
                    for number in self._wait():
                        if number in self._handlers:
                            self._handlers[number]()
                    self._reap()
            finally:
                self._slots.close_sockets()
                self._stop_certificates()
                if self._management is not None:
                    self._management.close()
        return self._exit_code

    # --- one round ------------------------------------------------------------------------------

    def _tend(self) -> bool:
        """Start, promote and kill what is due; whether there is anything left to supervise."""
        now = time.monotonic()
        if now >= self._drain_at:
            self._drain()
        if self._slots.config.sandbox:
            self._orphans.adopt()
        if not self._stopping:
            for slot in self._slots.all:
                if slot.worker is None and now >= slot.start_at:
                    slot.worker = self._slots.start(slot)
                if slot.successor is not None and slot.successor.is_ready:
                    self._rollout.promote(slot)
            if now >= self._check_at:
                self._check(now)
            self._rollout.proceed(now)
            self._announce()
            self._tend_certificates(now)
        for _, worker in self._slots.workers():
            if now >= worker.kill_at:
                if not worker.is_doomed:
                    logging.warning(f"worker {worker.pid} did not stop in time and is killed")
                worker.kill(signal.SIGKILL)
                worker.kill_at = FOREVER
        if now >= self._alive_at:
            self._notifier.alive()
            self._alive_at = now + self._notifier.watchdog_s
        return not self._stopping or bool(self._slots.workers()) or self._orphans.are_left

    def _wait(self) -> bytes:
        """Sleep until a signal comes, a worker is ready or something is due; returns signal numbers."""
        workers = [worker for _, worker in self._slots.workers()]
        waiting = {w.ready_fd: w for w in workers if w.ready_fd >= 0}
        poll = select.poll()  # select() itself has no place for descriptors from 1024 on
        for fd in (self._alarms.fd, *waiting):
            poll.register(fd, select.POLLIN)
        if self._upgrades.ready_fd >= 0:
            poll.register(self._upgrades.ready_fd, select.POLLIN)
        if self._management is not None:
            poll.register(self._management.fileno(), select.POLLIN)
        agent_fd = -1 if self._certificates is None else self._certificates.fd
        if agent_fd >= 0:
            poll.register(agent_fd, select.POLLIN)
        speaking = links.register(poll, workers)
        pause = self._due_at() - time.monotonic()
        # Rounded up: to wake a moment too early would be to come again at once.
        pause_ms = (
            None if pause == FOREVER else math.ceil(min(max(0.0, pause), _PAUSE_MAX_S) * 1000)
        )
        readable = {fd for fd, _ in poll.poll(pause_ms)}
        for fd in readable:
            if fd in waiting:
                worker = waiting[fd]
                worker.is_ready = os.read(fd, 1) != b""
                os.close(fd)
                worker.ready_fd = -1
            elif fd in speaking:
                links.take(speaking[fd], speaking.values())
        if self._management is not None and self._management.fileno() in readable:
            self._management.turn()
        if self._certificates is not None and agent_fd in readable:
            self._certificates.hear()
        if self._upgrades.ready_fd in readable:
            self._take_over()
        return self._alarms.take() if self._alarms.fd in readable else b""

    def _due_at(self) -> float:
        """When the next round has something to do, unless something comes before."""
        due = [worker.kill_at for _, worker in self._slots.workers()]
        due += [self._drain_at, self._alive_at]
        if not self._stopping:
            due.append(self._check_at)
            if self._certificates is not None:
                due.append(self._certificates.due_at)
            due += [slot.start_at for slot in self._slots.all if slot.worker is None]
            due += self._rollout.due_at()
        return min(due)

    def _check(self, now: float) -> None:
        """Look for workers that have to go."""
        self._check_at = now + self._health.period_s(self._slots.config)
        self._slots.advance_tickets()
        watched = [w for slot in self._slots.all for w in (slot.worker, slot.successor) if w]
        for worker, why in self._health.hung(watched):
            logging.error(f"worker {worker.pid} {why}; these are its stacks, then it is killed")
            worker.kill(STACKS_SIGNAL)
            worker.is_doomed = True
            worker.kill_at = now + STACKS_S
        waiting = self._rollout.waiting()
        for slot in self._slots.all:
            worker = slot.worker
            if worker is None or slot.successor is not None or now < slot.start_at:
                continue
            if not worker.is_ready or worker.is_doomed or worker.pid in waiting:
                continue
            if why := self._health.recycle_reason(worker):
                logging.info(f"worker {worker.pid} {why}; replacing it")
                self._rollout.recycle(slot, worker)

    def _announce(self) -> None:
        """Say once that all workers are ready; in a stop the sockets are closed already."""
        if self._announced or not self._slots.are_ready:
            return
        self._announced = True
        count = len(self._slots.all)
        urls = self._listeners.urls
        logging.info(
            f"Citius {__version__} serves on {urls} with "
            f"{count} worker{'s' if count > 1 else ''} (CTRL+C stops it)"
        )
        self._notifier.ready(f"serves on {urls}")
        took_over(self._slots.config, self._listeners)

    def _tend_certificates(self, now: float) -> None:
        """Have certificates fetched and renewed that are due, once workers serve."""
        config = self._slots.config
        if config.acme and self._certificates is None:
            from citius.serving.supervisor.certificates import Certificates

            self._certificates = Certificates()
        if self._certificates is None:
            return
        if self._announced and not self._rollout.is_restarting:
            self._certificates.follow(config)
        self._certificates.tend(now)

    def _stop_certificates(self) -> None:
        if self._certificates is not None:
            self._certificates.stop()

    # --- workers that have ended ----------------------------------------------------------------

    def _reap(self) -> None:
        """Take note of workers that have ended; by their ids, so foreign children stay untouched."""
        has_worker_ended = False
        for slot, worker in self._slots.workers():
            pid, status, usage = os.wait4(worker.pid, os.WNOHANG)
            if pid:
                has_worker_ended = True
                worker.close()
                self._health.forget(worker)
                self._slots.leave(slot, worker)
                if self._metrics is not None:
                    self._metrics.retire(worker.metrics_slot, usage.ru_utime + usage.ru_stime)
                self._on_worker_exit(slot, worker, os.waitstatus_to_exitcode(status))
        if self._certificates is not None:
            self._certificates.reap()
        known = {worker.pid for _, worker in self._slots.workers()} | self._upgrades.pids
        if self._certificates is not None and self._certificates.pid is not None:
            known.add(self._certificates.pid)
        self._orphans.end(known, has_worker_ended=has_worker_ended)

    def _on_worker_exit(self, slot: Slot, worker: Worker, code: int) -> None:
        how = (
            f"was ended by {signal.Signals(-code).name}" if code < 0 else f"ended with code {code}"
        )
        if code == -signal.SIGKILL and self._out_of_memory.has_struck():
            how = "was killed by the kernel, because the memory of the cgroup was used up"
        if worker in slot.leaving:
            slot.leaving.remove(worker)
        elif worker is slot.successor:
            slot.successor = None
            if not worker.is_told_to_stop and not self._stopping:
                self._rollout.successor_failed(slot, f"worker {worker.pid} {how}")
        else:
            slot.worker = None
            if not self._stopping and slot in self._slots.all:
                self._worker_died(slot, worker, code, how)
        self._slots.drop_if_left(slot)

    def _count_restart(self, reason: str) -> None:
        if self._metrics is not None:
            self._metrics.restarts[reason] += 1

    def _expected(self) -> int:
        """How many workers should be ready; none once we are about to stop."""
        is_leaving = self._stopping or self._drain_at != FOREVER
        return 0 if is_leaving else len(self._slots.all)

    def _worker_died(self, slot: Slot, worker: Worker, code: int, how: str) -> None:
        self._count_restart("hung" if worker.is_doomed else "died")
        if slot.successor is not None:
            logging.error(f"worker {worker.pid} {how}; its successor is on the way")
            slot.worker, slot.successor = slot.successor, None
            return
        if code in (EXIT_STARTUP, EXIT_HOOK) and not self._announced:
            logging.error(f"worker {worker.pid} could not start; stopping")
            self._exit_code = code
            self._drain()
            return
        now = time.monotonic()
        young = now - worker.started_at < YOUNG_S and not worker.is_doomed
        slot.deaths_young = slot.deaths_young + 1 if young else 0
        # The first death is an accident, repeated ones are a loop.
        pause_s = min(BACK_OFF_MAX_S, 0.25 * 2**slot.deaths_young) if slot.deaths_young > 1 else 0.0
        slot.start_at = now + pause_s
        if pause_s:
            self._slots.close_own_sockets(slot)
        after = ""
        if pause_s:
            after = f" in {pause_s:g} s, as it is the {_ordinal(slot.deaths_young)} in a row to die young"
        logging.error(f"worker {worker.pid} {how}; replacing it{after}")

    # --- what signals ask for -------------------------------------------------------------------

    def _unless_stopping(self, act: Callable[[], None]) -> Callable[[], None]:
        def handler() -> None:
            if not self._stopping:
                act()

        return handler

    def _terminate(self) -> None:
        delay_s = self._slots.config.drain_delay_s
        if not self._stopping and self._drain_at == FOREVER and delay_s:
            logging.info(f"going to stop; serving for another {delay_s:g} s first")
            self._notifier.stopping()
            self._drain_at = time.monotonic() + delay_s
            # Load balancers that ask for readiness notice.
            for _, worker in self._slots.workers():
                worker.tell_that_leaving()
        else:
            self._drain()

    def _drain(self) -> None:
        self._drain_at = FOREVER
        if self._stopping:
            return
        self._stopping = True
        self._stop_certificates()
        self._rollout.abandon()
        self._upgrades.cancel()
        self._notifier.stopping()
        # New clients are refused when the sockets are closed; connected ones are served.
        self._listeners.stop_accepting()
        self._slots.close_sockets()
        self._listeners.close()
        for _, worker in self._slots.workers():
            worker.tell_to_stop()

    def _interrupt(self) -> None:
        if self._stopping:
            self._stop_now()
        else:
            self._drain()

    def _stop_now(self) -> None:
        self._drain()
        for _, worker in self._slots.workers():
            worker.kill(signal.SIGQUIT)
            # A repeated signal must not prolong the wait.
            worker.kill_at = min(worker.kill_at, time.monotonic() + KILL_GRACE_S)

    def _reopen_logs(self) -> None:
        reopen(self._slots.config)
        for _, worker in self._slots.workers():
            worker.kill(signal.SIGUSR1)

    def _take_over(self) -> None:
        """The new server has said whether it serves; if it does, this one drains."""
        pid = self._upgrades.take()
        if pid is not None:
            self._notifier.main_pid(pid)
            self._notifier.address = ""  # what we say no longer concerns the service
            self._listeners.disown()
            self._drain()

    def _close_inherited_fds(self, slot: Slot) -> None:
        """Close the supervisor's descriptors in a worker: a copy keeps a listener or a pipe open."""
        systemd.forget()
        if self._management is not None:
            self._management.leave()
            self._management = None
        if self._certificates is not None:
            self._certificates.leave()
            self._certificates = None
        self._alarms.close()
        for _, worker in self._slots.workers():
            worker.close()
        for fd in (self._listeners.ready_fd, self._upgrades.ready_fd):
            if fd >= 0:
                os.close(fd)
        self._slots.close_sockets_of_others(slot)


def _ordinal(number: int) -> str:
    endings = {1: "st", 2: "nd", 3: "rd"}
    return f"{number}{'th' if 10 <= number % 100 <= 20 else endings.get(number % 10, 'th')}"
