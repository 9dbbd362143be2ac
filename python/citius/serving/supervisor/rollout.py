"""Workers that serve are replaced one after the other: in a restart (HUP), or because they have to go.

A successor is started in the worker's slot; when it is ready, the old worker drains. A successor that fails
ends a restart, and the old workers go on; any other replacement is tried again.
"""

from __future__ import annotations

import time
from collections import deque
from dataclasses import replace
from typing import TYPE_CHECKING

from citius.errors import ConfigError
from citius.observability import logging
from citius.process.logfiles import reopen
from citius.serving.bind import addresses, has_http3
from citius.serving.prepare import check_tls

if TYPE_CHECKING:
    from collections.abc import Callable

    from citius.process.systemd import Notifier
    from citius.serving.listeners import Listeners
    from citius.serving.supervisor.slots import Slot, Slots
    from citius.serving.supervisor.worker import Worker
    from citius.settings.config import Config
    from citius.settings.sources import Sources

RETRY_S = 10.0
"""Pause before another successor is tried for a worker that is to be recycled and still serves."""


class Rollout:
    """The workers that are to be replaced, and how far a restart has come.

    Args:
        sources: What the configuration is read from again; without, a restart keeps it.
        count_restart: Counts a worker that was replaced, with the reason.
    """

    def __init__(
        self,
        slots: Slots,
        notifier: Notifier,
        sources: Sources | None,
        listeners: Listeners,
        count_restart: Callable[[str], None],
    ) -> None:
        self._slots = slots
        self._notifier = notifier
        self._sources = sources
        self._listeners = listeners
        self._count_restart = count_restart
        self._queue: deque[tuple[Slot, Worker]] = deque()
        self.is_restarting = False
        """A restart has begun, and not all slots have had their turn."""
        self._renewed = 0
        self._config_before = slots.config

    def restart(self) -> None:
        """Read configuration and code anew; nothing of it counts before a worker has shown that it works."""
        self._notifier.reloading()
        config = self._slots.config
        try:
            if self._sources is not None:
                config = self._sources.read()
            check_tls(config)
        except (ConfigError, OSError) as error:
            logging.error(f"the configuration is not taken over: {error}")
            self._notifier.ready("a reload failed; the workers from before serve")
            return
        if addresses(config) != addresses(self._slots.config):
            logging.warning("other addresses need a restart of the whole server, or USR2")
        config = self._with_sockets_that_there_are(config)
        self._config_before = self._slots.config
        # A new object: the sign of a new generation.
        config = self._slots.config = replace(config)
        logging.configure(config.log_level, config.use_colors)
        reopen(config)
        for slot in self._slots.all:
            slot.start_at = 0.0
            if slot.successor is not None:
                slot.successor.tell_to_stop()
                slot.leaving.append(slot.successor)
                slot.successor = None
        logging.info("replacing the workers one by one")
        self.is_restarting, self._renewed = True, 0
        self._queue = deque((s, s.worker) for s in self._slots.all if s.worker is not None)

    def _with_sockets_that_there_are(self, config: Config) -> Config:
        """The configuration, with what a restart of workers cannot change of HTTP/3 as it was."""
        datagrams = self._listeners.datagrams
        if has_http3(config) != (datagrams is not None):
            logging.warning("HTTP/3 is begun and ended by a restart of the whole server, or USR2")
        if datagrams is not None and config.reactors != datagrams.reactors:
            logging.warning(
                "another number of reactor threads needs a restart of the whole server: HTTP/3 has a socket "
                "for each"
            )
            return replace(config, reactor_threads=datagrams.reactors)
        return config

    def abandon(self) -> None:
        """The server stops."""
        self.is_restarting = False

    def recycle(self, slot: Slot, worker: Worker) -> None:
        """Let a worker be replaced."""
        self._queue.append((slot, worker))

    def remove_worker(self) -> None:
        """Remove a slot, and its worker from those that are to be replaced."""
        removed = self._slots.remove()
        self._queue = deque(item for item in self._queue if item[0] is not removed)

    def waiting(self) -> set[int]:
        """The process ids of workers that are to be replaced."""
        return {worker.pid for _, worker in self._queue}

    def due_at(self) -> list[float]:
        """When ``proceed`` has something to do; a successor on its way wakes the loop by itself."""
        return [] if self._slots.has_successor else [slot.start_at for slot, _ in self._queue]

    def proceed(self, now: float) -> None:
        """Give the next worker in line a successor, if no other is on its way."""
        while self._queue and not self._slots.has_successor:
            slot, worker = self._queue[0]
            if slot.worker is worker:
                if now < slot.start_at:
                    return
                slot.successor = self._slots.start(slot)
                if slot.successor is None:
                    return
            # Otherwise it has just died; what is started in its place is new already.
            self._queue.popleft()
        is_settled = self._slots.are_ready and not self._slots.has_successor
        if self.is_restarting and not self._queue and is_settled:
            self._end_restart()

    def promote(self, slot: Slot) -> None:
        """The successor is ready: the old worker may go."""
        if slot.worker is not None:
            self._count_restart("asked" if self.is_restarting else "recycled")
            slot.worker.tell_to_stop()
            slot.leaving.append(slot.worker)
        slot.worker, slot.successor = slot.successor, None
        slot.deaths_young = 0
        self._renewed += 1

    def successor_failed(self, slot: Slot, what: str) -> None:
        """A successor has ended before it was ready."""
        if not self.is_restarting:
            slot.start_at = time.monotonic() + RETRY_S
            logging.error(
                f"{what} before it was ready; the old one goes on, another try in {RETRY_S:g} s"
            )
            return
        if not self._renewed:
            self._slots.config = self._config_before
        config = self._slots.config
        left = sum(1 for s in self._slots.all if s.worker and s.worker.config is not config)
        logging.error(
            f"{what} before it was ready: the restart is given up, and "
            + (f"{left} of the old workers go on" if self._renewed else "the old workers go on")
        )
        self.is_restarting = False
        self._queue.clear()
        self._notifier.ready("a restart failed; the workers from before serve")

    def _end_restart(self) -> None:
        self.is_restarting = False
        difference = self._slots.config.workers - self._config_before.workers
        for _ in range(difference):
            self._slots.add()
        for _ in range(-difference):
            self.remove_worker()
        self._config_before = self._slots.config
        logging.info("all workers are new")
        self._notifier.ready(f"serves on {self._listeners.urls}")
