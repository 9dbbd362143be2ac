"""The supervisor's loop: what is due, what signals ask for, who has ended.

``run`` goes round in four steps, and only ``_wait`` waits: start, promote and kill what is due (``_tend``),
wait, do what signals ask for, take note of who has ended (``_reap``). Who has to go is judged in health.py;
USR2 is upgrade.py. Long because it is one thing: whatever comes meets the same slots and the same stop.
"""

from __future__ import annotations

import math
import os
import select
import signal
import time
from collections import deque
from typing import TYPE_CHECKING

from citius._core import __version__
from citius.errors import ConfigError
from citius.observability import logging
from citius.process import systemd
from citius.process.logfiles import reopen
from citius.process.privileges import Identity, are_split
from citius.process.startup import started_in
from citius.serving.bind import addresses
from citius.serving.prepare import EXIT_STARTUP, check_tls, took_over
from citius.serving.sockets import stop_accepting
from citius.serving.supervisor import links
from citius.serving.supervisor.health import Health
from citius.serving.supervisor.memory import oom_kills
from citius.serving.supervisor.upgrade import Upgrade, programs_changeable
from citius.serving.supervisor.worker import (
    KILL_GRACE_S,
    SIGNALS,
    STACKS_SIGNAL,
    Slot,
    Worker,
    start,
)

if TYPE_CHECKING:
    import socket
    from collections.abc import Callable

    from citius._core import TlsTickets
    from citius.observability.metrics import MetricsRegistry
    from citius.serving.listeners import Listeners
    from citius.serving.management import Management
    from citius.settings.config import Config
    from citius.settings.sources import Sources
    from citius.web.app import App

YOUNG_S = 5.0
"""A worker that dies within this time of its start died young."""

BACK_OFF_MAX_S = 8.0
"""The longest pause before a worker that keeps dying young is started again."""

SPARE_SLOTS = 64
"""Workers beyond two for each slot whose counters find room: those that drain, and those of TTIN."""

STARVED_S = 1.0
"""Pause before a worker is tried again that the system had no process, memory or descriptors for."""

RETRY_S = 10.0
"""Pause before another successor is tried for a worker that is to be recycled and still serves."""

STACKS_S = 1.0
"""Time a hung worker gets to print its stacks."""

FOREVER = float("inf")


class Supervisor:
    """Keeps ``config.workers`` workers alive until it is told to stop."""

    def __init__(
        self,
        target: App | str,
        config: Config,
        listeners: Listeners,
        sources: Sources | None = None,
    ) -> None:
        self._target = target
        self._config = config
        self._config_before = config
        self._sources = sources
        self._listeners = listeners
        count = config.workers
        self._slots = [Slot(index, listeners.of_slot(index, count)) for index in range(count)]
        self._leaving: list[Slot] = []
        """Slots that TTOU took away and whose workers still drain."""
        self._replacements: deque[tuple[Slot, Worker]] = deque()
        """Workers that are to be replaced, one after the other."""
        self._is_restarting = False
        """HUP has come, and not all slots have had their turn."""
        self._renewed = 0
        self._stopping = False
        self._drain_at = FOREVER
        self._exit_code = 0
        self._announced = False
        self._alarms: tuple[int, int] = (-1, -1)
        self._health = Health()
        self._check_at = 0.0
        self._notifier = systemd.Notifier()
        self._alive_at = 0.0 if self._notifier.watchdog_s else FOREVER
        self._directory = started_in()
        self._oom_kills = oom_kills()
        self._metrics: MetricsRegistry | None = None
        self._management: Management | None = None
        if config.management is not None:
            from citius.observability.metrics import MetricsRegistry
            from citius.serving.management import Management

            self._metrics = MetricsRegistry(2 * config.workers + SPARE_SLOTS)
            self._management = Management(
                self._metrics, config, self._expected, takes_over=listeners.ready_fd >= 0
            )
        self._tickets: TlsTickets | None = None
        """What sessions of TLS go on with from one worker to another."""
        self._upgrade: Upgrade | None = None
        self._handlers: dict[int, Callable[[], None]] = {
            signal.SIGTERM: self._terminate,
            signal.SIGINT: self._interrupt,
            signal.SIGQUIT: self._stop_now,
            signal.SIGHUP: self._restart,
            signal.SIGTTIN: self._add_worker,
            signal.SIGTTOU: self._remove_worker,
            signal.SIGUSR1: self._reopen_logs,
            signal.SIGUSR2: self._hand_over,
        }

    def run(self) -> int:
        """Supervise; returns the exit code."""
        self._alarms = os.pipe()
        for fd in self._alarms:
            os.set_blocking(fd, False)
        before = {number: signal.signal(number, _ignore) for number in SIGNALS}
        before_fd = signal.set_wakeup_fd(self._alarms[1], warn_on_full_buffer=False)
        try:
            self._listeners.listen(self._config.backlog)
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
            for slot in self._slots:
                for listener in slot.listeners:
                    listener.close()
            if self._management is not None:
                self._management.close()
        return self._exit_code

    # --- one round ------------------------------------------------------------------------------

    def _tend(self) -> bool:
        """Start, promote and kill what is due; whether there is anything left to supervise."""
        now = time.monotonic()
        if now >= self._drain_at:
            self._drain()
        if not self._stopping:
            for slot in self._slots:
                if slot.worker is None and now >= slot.start_at:
                    slot.worker = self._start(slot)
                if slot.successor is not None and slot.successor.is_ready:
                    self._promote(slot)
            if now >= self._check_at:
                self._check(now)
            self._replace_next(now)
            self._announce()
        for _, worker in self._workers():
            if now >= worker.kill_at:
                if not worker.is_doomed:
                    logging.warning(f"worker {worker.pid} did not stop in time and is killed")
                worker.kill(signal.SIGKILL)
                worker.kill_at = FOREVER
        if now >= self._alive_at:
            self._notifier.alive()
            self._alive_at = now + self._notifier.watchdog_s
        return not self._stopping or bool(self._workers())

    def _wait(self) -> bytes:
        """Sleep until a signal comes, a worker is ready or something is due; returns signal numbers."""
        due = [worker.kill_at for _, worker in self._workers()]
        due += [self._drain_at, self._alive_at]
        if not self._stopping:
            due.append(self._check_at)
            due += [slot.start_at for slot in self._slots if slot.worker is None]
            due += [slot.start_at for slot, _ in self._replacements]
        pause = min(due) - time.monotonic()
        waiting = {w.ready_fd: w for _, w in self._workers() if w.ready_fd >= 0}
        poll = select.poll()  # select() itself has no place for descriptors from 1024 on
        for fd in (self._alarms[0], *waiting):
            poll.register(fd, select.POLLIN)
        if self._upgrade is not None and self._upgrade.ready_fd >= 0:
            poll.register(self._upgrade.ready_fd, select.POLLIN)
        if self._management is not None:
            poll.register(self._management.fileno(), select.POLLIN)
        speaking = links.register(poll, (worker for _, worker in self._workers()))
        # Rounded up: to wake a moment too early would be to come again at once.
        pause_ms = None if pause == FOREVER else math.ceil(max(0.0, pause) * 1000)
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
        if self._upgrade is not None and self._upgrade.ready_fd in readable:
            self._upgrade_spoke()
        return os.read(self._alarms[0], 4096) if self._alarms[0] in readable else b""

    def _check(self, now: float) -> None:
        """Look for workers that have to go."""
        self._check_at = now + self._health.period_s(self._config)
        if self._tickets is not None:
            self._tickets.advance()
        watched = [w for slot in self._slots for w in (slot.worker, slot.successor) if w]
        for worker, why in self._health.hung(watched):
            logging.error(f"worker {worker.pid} {why}; these are its stacks, then it is killed")
            worker.kill(STACKS_SIGNAL)
            worker.is_doomed = True
            worker.kill_at = now + STACKS_S
        waiting = {worker.pid for _, worker in self._replacements}
        for slot in self._slots:
            worker = slot.worker
            if worker is None or slot.successor is not None or now < slot.start_at:
                continue
            if not worker.is_ready or worker.is_doomed or worker.pid in waiting:
                continue
            if why := self._health.recycle_reason(worker):
                logging.info(f"worker {worker.pid} {why}; replacing it")
                self._replacements.append((slot, worker))

    def _replace_next(self, now: float) -> None:
        """Give the next worker in line a successor, if no other is on its way."""
        while self._replacements and not any(slot.successor for slot in self._slots):
            slot, worker = self._replacements[0]
            if slot.worker is worker:
                if now < slot.start_at:
                    return
                slot.successor = self._start(slot)
                if slot.successor is None:
                    return
            # Otherwise it has just died; what is started in its place is new already.
            self._replacements.popleft()
        is_settled = all(
            s.successor is None and s.worker and s.worker.is_ready for s in self._slots
        )
        if self._is_restarting and not self._replacements and is_settled:
            self._restart_ends()

    def _promote(self, slot: Slot) -> None:
        """The successor is ready: the old worker may go."""
        if slot.worker is not None:
            self._count_restart("asked" if self._is_restarting else "recycled")
            slot.worker.tell_to_stop()
            slot.leaving.append(slot.worker)
        slot.worker, slot.successor = slot.successor, None
        slot.deaths_young = 0
        self._renewed += 1

    def _announce(self) -> None:
        """Say once that all workers are ready; in a stop the sockets are closed already."""
        if self._announced or not all(s.worker and s.worker.is_ready for s in self._slots):
            return
        self._announced = True
        count = len(self._slots)
        urls = self._listeners.urls
        logging.info(
            f"Citius {__version__} serves on {urls} with "
            f"{count} worker{'s' if count > 1 else ''} (CTRL+C stops it)"
        )
        self._notifier.ready(f"serves on {urls}")
        took_over(self._config, self._listeners)

    # --- those that have ended ------------------------------------------------------------------

    def _reap(self) -> None:
        """Take note of workers that have ended; by their ids, so foreign children stay untouched."""
        for slot, worker in self._workers():
            pid, status, usage = os.wait4(worker.pid, os.WNOHANG)
            if pid:
                worker.close()
                self._health.forget(worker)
                if self._metrics is not None:
                    self._metrics.retire(worker.metrics_slot, usage.ru_utime + usage.ru_stime)
                self._on_worker_exit(slot, worker, os.waitstatus_to_exitcode(status))
        if os.getpid() == 1:
            self._reap_orphans()

    def _reap_orphans(self) -> None:
        """PID 1 inherits processes whose parents have ended, and only it can reap them."""
        ours = {worker.pid for _, worker in self._workers()}
        while True:
            try:
                found = os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
            except ChildProcessError:
                return
            if found is None or found.si_pid in ours:
                return  # one of ours has its turn in the next round, and the rest after it
            os.waitpid(found.si_pid, 0)

    def _on_worker_exit(self, slot: Slot, worker: Worker, code: int) -> None:
        how = (
            f"was ended by {signal.Signals(-code).name}" if code < 0 else f"ended with code {code}"
        )
        if code == -signal.SIGKILL and self._was_out_of_memory():
            how = "was killed by the kernel, because the memory of the cgroup was used up,"
        if worker in slot.leaving:
            slot.leaving.remove(worker)
        elif worker is slot.successor:
            slot.successor = None
            if not worker.is_told_to_stop and not self._stopping:
                self._successor_failed(slot, f"worker {worker.pid} {how}")
        else:
            slot.worker = None
            if not self._stopping and slot in self._slots:
                self._worker_died(slot, worker, code, how)
        if slot in self._leaving and not slot.workers:
            self._leaving.remove(slot)

    def _was_out_of_memory(self) -> bool:
        """Whether the kernel has killed a process for want of memory since this was asked last."""
        before, self._oom_kills = self._oom_kills, oom_kills()
        return before is not None and self._oom_kills is not None and self._oom_kills > before

    def _count_restart(self, reason: str) -> None:
        if self._metrics is not None:
            self._metrics.restarts[reason] += 1

    def _expected(self) -> int:
        """How many workers should be ready; none once we are about to stop."""
        is_leaving = self._stopping or self._drain_at != FOREVER
        return 0 if is_leaving else len(self._slots)

    def _worker_died(self, slot: Slot, worker: Worker, code: int, how: str) -> None:
        self._count_restart("hung" if worker.is_doomed else "died")
        if slot.successor is not None:
            logging.error(f"worker {worker.pid} {how}; its successor is on the way")
            slot.worker, slot.successor = slot.successor, None
            return
        if code == EXIT_STARTUP and not self._announced:
            logging.error(f"worker {worker.pid} could not start; stopping")
            self._exit_code = EXIT_STARTUP
            self._drain()
            return
        now = time.monotonic()
        young = now - worker.started_at < YOUNG_S and not worker.is_doomed
        slot.deaths_young = slot.deaths_young + 1 if young else 0
        # The first death is an accident, repeated ones are a loop.
        pause_s = min(BACK_OFF_MAX_S, 0.25 * 2**slot.deaths_young) if slot.deaths_young > 1 else 0.0
        slot.start_at = now + pause_s
        if pause_s:
            self._close_own_sockets(slot)
        after = ""
        if pause_s:
            after = f" in {pause_s:g} s, as it is the {_ordinal(slot.deaths_young)} in a row to die young"
        logging.error(f"worker {worker.pid} {how}; replacing it{after}")

    def _successor_failed(self, slot: Slot, what: str) -> None:
        if not self._is_restarting:
            slot.start_at = time.monotonic() + RETRY_S
            logging.error(
                f"{what} before it was ready; the old one goes on, another try in {RETRY_S:g} s"
            )
            return
        if not self._renewed:
            self._config = self._config_before
        left = sum(1 for s in self._slots if s.worker and s.worker.config is not self._config)
        logging.error(
            f"{what} before it was ready: the restart is given up, and "
            + (f"{left} of the old workers go on" if self._renewed else "the old workers go on")
        )
        self._is_restarting = False
        self._replacements.clear()
        self._notifier.ready("a restart failed; the workers from before serve")

    def _close_own_sockets(self, slot: Slot) -> None:
        """Until its next worker the kernel would queue connections here that others could take."""
        if not any(other.worker for other in self._slots if other is not slot):
            return
        for listener in self._listeners.all:
            if not listener.is_by_port or not listener.is_ours:
                continue
            for made in [made for made in slot.listeners if made in listener.sockets]:
                if len(listener.sockets) > 1:
                    stop_accepting(made)
                    listener.sockets.remove(made)
                    slot.listeners.remove(made)
                    made.close()

    def _renew_sockets(self, slot: Slot) -> None:
        for listener in self._listeners.all:
            if listener.is_by_port and not any(made in listener.sockets for made in slot.listeners):
                made = listener.one_more()
                made.listen(self._config.backlog)
                slot.listeners.append(made)

    # --- what signals ask for -------------------------------------------------------------------

    def _terminate(self) -> None:
        delay_s = self._config.drain_delay_s
        if not self._stopping and self._drain_at == FOREVER and delay_s:
            logging.info(f"going to stop; serving for another {delay_s:g} s first")
            self._notifier.stopping()
            self._drain_at = time.monotonic() + delay_s
        else:
            self._drain()

    def _drain(self) -> None:
        self._drain_at = FOREVER
        if self._stopping:
            return
        self._stopping = True
        self._is_restarting = False
        if self._upgrade is not None and self._upgrade.ready_fd >= 0:
            self._upgrade.process.terminate()
        self._notifier.stopping()
        # New clients are refused when the sockets are closed; connected ones are served.
        self._listeners.stop_accepting()
        for slot in self._slots:
            for listener in slot.listeners:
                listener.close()
        self._listeners.close()
        for _, worker in self._workers():
            worker.tell_to_stop()

    def _interrupt(self) -> None:
        if self._stopping:
            self._stop_now()
        else:
            self._drain()

    def _stop_now(self) -> None:
        self._drain()
        for _, worker in self._workers():
            worker.kill(signal.SIGQUIT)
            # A repeated signal must not prolong the wait.
            worker.kill_at = min(worker.kill_at, time.monotonic() + KILL_GRACE_S)

    def _restart(self) -> None:
        """Read configuration and code anew; nothing of it counts before a worker has shown that it works."""
        if self._stopping:
            return
        self._notifier.reloading()
        config = self._config
        try:
            if self._sources is not None:
                config = self._sources.read()
            check_tls(config)
        except (ConfigError, OSError) as error:
            logging.error(f"the configuration is not taken over: {error}")
            self._notifier.ready("a reload failed; the workers from before serve")
            return
        if addresses(config) != addresses(self._config):
            logging.warning("other addresses need a restart of the whole server, or USR2")
        self._config_before = self._config
        from dataclasses import replace

        self._config = replace(config)  # a new object: the sign of a new generation
        logging.configure(config.log_level, config.use_colors)
        reopen(self._config)
        for slot in self._slots:
            slot.start_at = 0.0
            if slot.successor is not None:
                slot.successor.tell_to_stop()
                slot.leaving.append(slot.successor)
                slot.successor = None
        logging.info("replacing the workers one by one")
        self._is_restarting, self._renewed = True, 0
        self._replacements = deque((s, s.worker) for s in self._slots if s.worker is not None)

    def _restart_ends(self) -> None:
        self._is_restarting = False
        difference = self._config.workers - self._config_before.workers
        for _ in range(difference):
            self._add_worker()
        for _ in range(-difference):
            self._remove_worker()
        self._config_before = self._config
        logging.info("all workers are new")
        self._notifier.ready(f"serves on {self._listeners.urls}")

    def _add_worker(self) -> None:
        if self._stopping:
            return
        made: list[socket.socket] = []
        try:
            for listener in self._listeners.all:
                made.append(listener.one_more())
                made[-1].listen(self._config.backlog)
        except OSError as error:
            logging.error(f"there cannot be another worker: {error}")
            for one in made:
                for listener in self._listeners.all:
                    if one in listener.sockets:
                        listener.sockets.remove(one)
                one.close()
            return
        self._slots.append(Slot(self._slots[-1].index + 1, made))
        logging.info(f"one worker more: {len(self._slots)}")

    def _remove_worker(self) -> None:
        if self._stopping or len(self._slots) == 1:
            return
        slot = self._slots.pop()
        self._replacements = deque(item for item in self._replacements if item[0] is not slot)
        logging.info(f"one worker less: {len(self._slots)}")
        # The worker takes what waits in its queue and closes the other descriptor; whoever comes in
        # between tries again, at another worker's.
        for made in slot.listeners:
            for listener in self._listeners.all:
                if made in listener.sockets and listener.is_by_port:
                    stop_accepting(made)
                    listener.sockets.remove(made)
            made.close()
        for worker in slot.workers:
            worker.tell_to_stop()
        self._leaving.append(slot)

    def _reopen_logs(self) -> None:
        reopen(self._config)
        for _, worker in self._workers():
            worker.kill(signal.SIGUSR1)

    def _hand_over(self) -> None:
        if self._stopping:
            return
        if os.getpid() == 1:
            logging.error("USR2: PID 1 cannot be replaced; replace the container")
            return
        if found := self._changeable():
            logging.error(
                f"USR2: root does not start {found[0]}: the user whom the workers run as can change "
                f"{found[1]}; make it root's, or restart the server"
            )
            return
        if self._upgrade is not None:
            logging.warning(f"the new server {self._upgrade.pid} was not ready; another is started")
            self._upgrade.process.kill()
            self._upgrade.give_up()
        try:
            self._upgrade = Upgrade(self._listeners, self._directory)
        except OSError as error:
            self._upgrade = None
            logging.error(f"a new server cannot be started: {error}")
            return
        logging.info(f"a new server starts as process {self._upgrade.pid}")

    def _changeable(self) -> tuple[str, str] | None:
        """What a new server would run or read as root though the workers' user can change it."""
        if not are_split(self._config):
            return None
        if self._sources is not None and (found := self._sources.changeable(self._config)):
            return "a server that reads " + found[0], found[1]
        return programs_changeable(Identity.of(self._config))

    def _upgrade_spoke(self) -> None:
        upgrade = self._upgrade
        assert upgrade is not None, "its descriptor was waited for"
        if not upgrade.has_said():
            code = upgrade.process.wait()
            self._upgrade = None
            logging.error(f"the new server {upgrade.pid} ended with code {code}; this one goes on")
            return
        logging.info(f"process {upgrade.pid} serves from now on; this one drains")
        self._notifier.main_pid(upgrade.pid)
        self._notifier.address = ""  # what we say no longer concerns the service
        self._listeners.disown()
        self._drain()

    # --- processes ------------------------------------------------------------------------------

    def _workers(self) -> list[tuple[Slot, Worker]]:
        return [
            (slot, worker) for slot in (*self._slots, *self._leaving) for worker in slot.workers
        ]

    def _start(self, slot: Slot) -> Worker | None:
        """A new worker; ``None`` if the system is short of something, and then it is tried again."""
        try:
            self._renew_sockets(slot)
            if self._config.is_tls and self._tickets is None:
                from citius._core import TlsTickets

                self._tickets = TlsTickets()
            return start(
                self._target,
                self._config,
                slot,
                lambda: self._close_inherited_fds(slot),
                self._metrics,
                self._tickets,
                workers=len(self._slots),
            )
        except OSError as error:
            slot.start_at = time.monotonic() + STARVED_S
            logging.error(f"a worker cannot be started: {error}; another try in {STARVED_S:g} s")
            return None

    def _close_inherited_fds(self, slot: Slot) -> None:
        """Close the supervisor's descriptors in a worker: a copy keeps a listener or a pipe open."""
        systemd.forget()
        if self._management is not None:
            self._management.leave()
            self._management = None
        for fd in self._alarms:
            os.close(fd)
        for _, worker in self._workers():
            worker.close()
        if self._listeners.ready_fd >= 0:
            os.close(self._listeners.ready_fd)
        if self._upgrade is not None and self._upgrade.ready_fd >= 0:
            os.close(self._upgrade.ready_fd)
        for other in self._slots:
            if other is not slot:
                for made in other.listeners:
                    made.close()
        for listener in self._listeners.all:
            for made in listener.sockets:
                if made not in slot.listeners:
                    made.close()


def _ordinal(number: int) -> str:
    endings = {1: "st", 2: "nd", 3: "rd"}
    return f"{number}{'th' if 10 <= number % 100 <= 20 else endings.get(number % 10, 'th')}"


def _ignore(number: int, frame: object) -> None:
    """Signals are read from the wake-up descriptor; a handler only makes them arrive there."""
