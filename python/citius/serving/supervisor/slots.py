"""The places of workers: each slot has sockets of its own, which outlive its workers.

A slot's sockets keep the connections that a worker which died had not accepted; its next worker takes them.
Slots are added and removed here, and workers are started in them. When that happens is decided in control.py
and rollout.py.
"""

from __future__ import annotations

import time
from contextlib import suppress
from dataclasses import dataclass, field
from socket import AF_UNIX, MSG_DONTWAIT, SOCK_SEQPACKET, socketpair
from typing import TYPE_CHECKING

from citius.errors import ConfigError
from citius.observability import logging
from citius.serving.sockets import KeptOptions, stop_accepting
from citius.serving.supervisor.worker import start

if TYPE_CHECKING:
    import socket
    from collections.abc import Callable

    from citius._core import TlsTickets
    from citius.observability.metrics import MetricsRegistry
    from citius.serving.datagrams import Handings, QuicPlace
    from citius.serving.listeners import Listeners
    from citius.serving.supervisor.worker import Worker
    from citius.settings.config import Config
    from citius.web.application.app import App

STARVED_S = 1.0
"""Pause before a worker is tried again that the system had no process, memory or descriptors for."""


@dataclass(slots=True)
class Slot:
    """A place for one worker and its successor. Its sockets stay when workers go."""

    index: int
    listeners: list[socket.socket]
    worker: Worker | None = None
    successor: Worker | None = None
    """It takes the worker's place when it is ready."""
    leaving: list[Worker] = field(default_factory=list["Worker"])
    handings: Handings | None = None
    """What of HTTP/3 its workers hand on to each other."""
    deaths_young: int = 0
    start_at: float = 0.0
    """When the next worker may be started, or the next successor."""

    @property
    def workers(self) -> list[Worker]:
        """All of its processes."""
        return [w for w in (self.worker, self.successor, *self.leaving) if w is not None]


class FailureToken:
    """What one of the workers takes that fail to start for the same reason: that one logs the traceback.

    Workers have both ends. A worker that was taken over (``--sandbox``) can fill them and change their flags:
    each call says itself that it does not wait.
    """

    def __init__(self) -> None:
        self._taking, self._giving = socketpair(AF_UNIX, SOCK_SEQPACKET)

    def renew(self) -> None:
        """Have it there, for a worker that is started."""
        self.take()
        with suppress(OSError):
            self._giving.send(b"t", MSG_DONTWAIT)

    def take(self) -> bool:
        """Whether it was there and this process has it now."""
        try:
            return self._taking.recv(1, MSG_DONTWAIT) != b""
        except OSError:
            return False


class Slots:
    """All slots.

    Args:
        close_inherited: What a new worker calls with its slot, to close what it has of the supervisor.
    """

    def __init__(
        self,
        target: App | str,
        config: Config,
        listeners: Listeners,
        metrics: MetricsRegistry | None,
        close_inherited: Callable[[Slot], None],
    ) -> None:
        self.config = config
        """What the next worker is started with."""
        count = config.workers
        self.all = [Slot(index, listeners.of_slot(index, count)) for index in range(count)]
        self._kept: dict[int, Handings] = (
            {} if listeners.datagrams is None else listeners.datagrams.handings
        )
        """Of slots that were removed, and of the previous server's, until a slot has their place again."""
        self.leaving: list[Slot] = []
        """Slots that were removed and whose workers still drain."""
        self._target = target
        self._listeners = listeners
        self._metrics = metrics
        self._close_inherited = close_inherited
        self._failure = FailureToken()
        self._tickets: TlsTickets | None = None
        """By which sessions of TLS are resumed with another worker."""
        self._options = KeptOptions()

    @property
    def are_ready(self) -> bool:
        """Whether a worker serves in each."""
        return all(slot.worker and slot.worker.is_ready for slot in self.all)

    @property
    def has_successor(self) -> bool:
        """Whether a successor is on its way."""
        return any(slot.successor for slot in self.all)

    def workers(self) -> list[tuple[Slot, Worker]]:
        """All processes, with their slots."""
        return [(slot, worker) for slot in (*self.all, *self.leaving) for worker in slot.workers]

    def start(self, slot: Slot) -> Worker | None:
        """A new worker; ``None`` if the system is short of something, and then it is tried again."""
        try:
            self._renew_sockets(slot)
            if self.config.sandbox:
                for made in slot.listeners:
                    self._options.restore(made)
            if self.config.is_tls and self._tickets is None:
                from citius._core import TlsTickets

                self._tickets = TlsTickets()
            self._failure.renew()
            places, owns = self._enter(slot)
            try:
                worker = start(
                    self._target,
                    self.config,
                    slot,
                    lambda: self._close_inherited(slot),
                    self._metrics,
                    self._tickets,
                    tells_failure=self._failure.take,
                    workers=len(self.all),
                    quic=places,
                    alt_svc=self._alt_svc,
                )
            except OSError:
                if slot.handings is not None:
                    slot.handings.leave(slot.handings.generation - 1)
                raise
            finally:
                for made in owns:
                    made.close()
            if slot.handings is not None:
                worker.quic_generation = slot.handings.generation - 1
            return worker
        except OSError as error:
            slot.start_at = time.monotonic() + STARVED_S
            logging.error(f"a worker cannot be started: {error}; another try in {STARVED_S:g} s")
            return None

    @property
    def _alt_svc(self) -> str | None:
        datagrams = self._listeners.datagrams
        return None if datagrams is None else datagrams.alt_svc

    def _enter(self, slot: Slot) -> tuple[list[QuicPlace], list[socket.socket]]:
        """What a new worker serves of HTTP/3, and what of that is not the supervisor's."""
        datagrams = self._listeners.datagrams
        if datagrams is None:
            return [], []
        from citius.serving.datagrams import Handings

        if slot.handings is None:
            # A worker that had this place may still drain, or another server's.
            drains = [one.handings for one in self.leaving if one.index == slot.index]
            kept = self._kept.pop(slot.index, None) or (drains[0] if drains else None)
            slot.handings = kept or Handings(datagrams.reactors)
        places = datagrams.places(slot.index)
        return places, slot.handings.enter(places)

    def handings(self) -> dict[int, Handings]:
        """What the workers of each slot hand on of HTTP/3."""
        own = {slot.index: slot.handings for slot in (*self.leaving, *self.all)}
        return self._kept | {index: one for index, one in own.items() if one is not None}

    def leave(self, slot: Slot, worker: Worker) -> None:
        """Forget what a worker that has ended was connected with."""
        if slot.handings is not None:
            slot.handings.leave(worker.quic_generation)

    def _steer(self) -> None:
        """Have new clients of HTTP/3 spread among the slots that there are."""
        datagrams = self._listeners.datagrams
        if datagrams is not None:
            try:
                datagrams.steer(len(self.all))
            except ConfigError as error:
                logging.error(str(error))

    def advance_tickets(self) -> None:
        """Let the keys of TLS tickets that are due be replaced."""
        if self._tickets is not None:
            self._tickets.advance()

    def add(self) -> None:
        """Add a slot, with sockets of its own."""
        made: list[socket.socket] = []
        try:
            for listener in self._listeners.all:
                made.append(listener.one_more())
                made[-1].listen(self.config.backlog)
        except OSError as error:
            logging.error(f"there cannot be another worker: {error}")
            for one in made:
                for listener in self._listeners.all:
                    if one in listener.sockets:
                        listener.sockets.remove(one)
                one.close()
            return
        self.all.append(Slot(self.all[-1].index + 1, made))
        if self._listeners.datagrams is not None:
            try:
                self._listeners.datagrams.places(self.all[-1].index)
            except OSError as error:
                logging.error(f"the worker serves no HTTP/3 yet: {error}")
        self._steer()
        logging.info(f"one worker more: {len(self.all)}")

    def remove(self) -> Slot | None:
        """Remove the last slot, whose workers drain; ``None`` if it is the only one."""
        if len(self.all) == 1:
            return None
        slot = self.all.pop()
        logging.info(f"one worker less: {len(self.all)}")
        # Its UDP sockets stay in their groups, whose order is what connection ids name.
        self._steer()
        # The worker accepts what waits in its queue and closes the other descriptor; a client that connects
        # in between tries again, and reaches another worker.
        for made in slot.listeners:
            for listener in self._listeners.all:
                if made in listener.sockets and listener.is_by_port:
                    stop_accepting(made)
                    listener.sockets.remove(made)
            made.close()
        for worker in slot.workers:
            worker.tell_to_stop()
        self.leaving.append(slot)
        return slot

    def drop_if_left(self, slot: Slot) -> None:
        """Forget a removed slot whose last worker has ended."""
        if slot in self.leaving and not slot.workers:
            self.leaving.remove(slot)
            is_in_use = any(one.handings is slot.handings for one in (*self.all, *self.leaving))
            if slot.handings is not None and not is_in_use:
                self._kept[slot.index] = slot.handings

    def close_own_sockets(self, slot: Slot) -> None:
        """Until its next worker the kernel would queue connections here that others could take."""
        if not any(other.worker for other in self.all if other is not slot):
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

    def close_sockets(self) -> None:
        """Close the sockets of all."""
        for slot in self.all:
            for made in slot.listeners:
                made.close()
        for handings in self.handings().values():
            handings.close()

    def close_sockets_of_others(self, slot: Slot) -> None:
        """Close in a worker what is not its slot's."""
        for other in (*self.all, *self.leaving):
            if other is not slot:
                for made in other.listeners:
                    made.close()
                if other.handings is not None and other.handings is not slot.handings:
                    other.handings.close()
        if self._listeners.datagrams is not None:
            self._listeners.datagrams.close_all_but(slot.index)
        for listener in self._listeners.all:
            for made in listener.sockets:
                if made not in slot.listeners:
                    made.close()

    def _renew_sockets(self, slot: Slot) -> None:
        for listener in self._listeners.all:
            if listener.is_by_port and not any(made in listener.sockets for made in slot.listeners):
                made = listener.one_more()
                made.listen(self.config.backlog)
                slot.listeners.append(made)
