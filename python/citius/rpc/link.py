"""One connection of the client for threads, and how they share it.

No thread of its own: whoever waits for an answer reads the connection, for all others that wait, until his
own answer has come; then the next one that waits goes on. A single caller therefore costs no change of
threads. The same with writing: who finds the socket busy leaves his bytes to whoever writes. Who writes more
than the server takes reads meanwhile, so that two sides that fill each other's buffers go on.

Locks: ``_state`` guards everything but the socket's two directions and is never held while anybody waits;
``_reading`` and ``_writing`` are the right to read and to write.
"""

from __future__ import annotations

import select
import socket
from _thread import allocate_lock
from collections import deque
from contextlib import suppress
from time import monotonic
from typing import TYPE_CHECKING, Any

from citius._core import RpcMessages
from citius.rpc.calls import (
    GOODBYE,
    Address,
    Request,
    free_msgid,
    next_msgid,
    not_understood,
    tell,
    words,
)
from citius.rpc.secured import Secured

if TYPE_CHECKING:
    from collections.abc import Callable

    from citius.rpc.synchronous import Call

_READ_BYTES = 64 * 1024
_QUEUE_BYTES_MAX = 256 * 1024
"""Bytes that wait for somebody else's write; who would add to more waits himself."""


class Link:
    """One connection, from its first byte to its last."""

    def __init__(
        self,
        made: socket.socket | Secured,
        message_bytes_max: int,
        on_notification: Callable[[str, Any], object] | None,
    ) -> None:
        self._socket = made
        self._messages = RpcMessages(message_bytes_max)
        self._on_notification = on_notification
        self._state = allocate_lock()
        self._reading = allocate_lock()
        self._writing = allocate_lock()
        self._open: dict[int, Call] = {}
        # Those whose owners sleep because somebody else reads.
        self._sleepers: dict[Call, None] = {}
        self._next_msgid = 0
        # What is to be written, and the call it is.
        self._queue: deque[tuple[bytes, Request | None]] = deque()
        self._queue_bytes = 0
        self.is_over = False
        self.said_goodbye = False
        self.reason = ""

    def is_fresh(self) -> bool:
        """Whether calls may be put here. Where none is under way, nobody would have noticed the end."""
        if self.is_over:
            return False
        if not self._open and self._reading.acquire(blocking=False):
            try:
                self._read_what_is_there()
            finally:
                self._release(self._reading)
        return not self.is_over

    def put_call(self, call: Call) -> bool:
        """Queue a call; ``False`` if the connection has gone."""
        with self._state:
            if self.is_over:
                return False
            msgid = free_msgid(self._next_msgid, self._open)
            self._next_msgid = next_msgid(msgid)
            request = call.request
            encoded = request.encode(msgid)
            self._open[msgid] = call
            call.link = self
            self._queue.append((encoded, request))
            self._queue_bytes += len(encoded)
        return True

    def put(self, encoded: bytes) -> None:
        """Queue a message that has no answer."""
        with self._state:
            self._queue.append((encoded, None))
            self._queue_bytes += len(encoded)

    def forget(self, call: Call) -> bool:
        """Nobody waits for a call any more; ``False`` if it is not open."""
        with self._state:
            return self._open.pop(call.request.msgid, None) is call

    def flush(self, deadline: float | None) -> None:
        """Write what is queued, one's own and others'; leave it to whoever writes already."""
        while self._queue and not self.is_over:
            if not self._writing.acquire(blocking=False):
                if self._queue_bytes < _QUEUE_BYTES_MAX:
                    return  # whoever writes looks again before he stops
                if not self._writing.acquire(timeout=left(deadline)):
                    return
            try:
                if not self._write(deadline):
                    return
            finally:
                self._release(self._writing)

    def _write(self, deadline: float | None) -> bool:
        """Write until nothing is queued; ``False`` if the time is over."""
        while True:
            with self._state:
                taken = list(self._queue)
                self._queue.clear()
                self._queue_bytes = 0
            if not taken:
                return True
            for _, request in taken:
                if request is not None:
                    request.is_sent = True
            rest = memoryview(b"".join(encoded for encoded, _ in taken))
            try:
                while rest:
                    try:
                        rest = rest[self._socket.send(rest) :]
                    except BlockingIOError:
                        if not self._wait_for_room(deadline):
                            with self._state:
                                # Half a message may be out: the rest goes before anything else.
                                self._queue.appendleft((bytes(rest), None))
                                self._queue_bytes += len(rest)
                            return False
            except OSError as error:
                self.end(words(error))
                return True

    def _wait_for_room(self, deadline: float | None) -> bool:
        """Wait until the socket takes more; answers are read meanwhile, by us if by nobody else."""
        reads = self._reading.acquire(blocking=False)
        try:
            poll = select.poll()
            poll.register(self._socket, select.POLLOUT | (select.POLLIN if reads else 0))
            left_s = left(deadline)
            ready = poll.poll(None if left_s < 0 else left_s * 1000)
            if reads and any(events & select.POLLIN for _, events in ready):
                self._read_what_is_there()
            return bool(ready)
        finally:
            if reads:
                self._release(self._reading)
                self._wake_one()

    def wait_for(self, call: Call, deadline: float | None) -> bool:
        """Wait for an answer; ``False`` if the time is over or the connection is."""
        self.flush(deadline)
        request = call.request
        while not request.is_done:
            if self.is_over:
                return False
            if self._reading.acquire(blocking=False):
                try:
                    self._read_until(request, deadline)
                finally:
                    self._release(self._reading)
                    self._wake_one()
            else:
                self._sleep(call, deadline)
                if (request.is_done or is_past(deadline)) and not self._reading.locked():
                    self._wake_one()  # it may have been us that was to go on reading
            if not request.is_done and is_past(deadline):
                return False
        return True

    def _sleep(self, call: Call, deadline: float | None) -> None:
        """Wait until whoever reads has our answer, or has his own and leaves the reading to us."""
        call.arm()
        with self._state:
            self._sleepers[call] = None
        # From here on he wakes us when he stops; if he has stopped before, there is no need to sleep.
        if not call.request.is_done and not self.is_over and self._reading.locked():
            call.sleep(left(deadline))
        with self._state:
            self._sleepers.pop(call, None)

    def _read_until(self, request: Request, deadline: float | None) -> None:
        while not request.is_done and not self.is_over:
            try:
                data = self._socket.recv(_READ_BYTES)
            except BlockingIOError:
                # What somebody had no time to write may have to go first.
                writes = select.POLLOUT if self._queue else 0
                poll = select.poll()
                poll.register(self._socket, select.POLLIN | writes)
                left_s = left(deadline)
                ready = poll.poll(None if left_s < 0 else left_s * 1000)
                if not ready:
                    return
                if any(events & select.POLLOUT for _, events in ready):
                    self.flush(monotonic())
                continue
            except OSError as error:
                self.end(words(error))
                return
            self._take(data)

    def _read_what_is_there(self) -> None:
        try:
            while not self.is_over:
                self._take(self._socket.recv(_READ_BYTES))
        except BlockingIOError:
            return
        except OSError as error:
            self.end(words(error))

    def _take(self, data: bytes) -> None:
        """Hand out what has come."""
        if not data:
            self.end("the server closed the connection")
            return
        try:
            messages = self._messages.feed(data)
        except ValueError as error:
            self.end(not_understood(error, data))
            return
        for msgid, first, second in messages:
            if msgid is None:
                self._hear(first or b"", second)
                continue
            with self._state:
                call = self._open.pop(msgid, None)
            if call is not None:  # else nobody waits any more
                call.request.settle(first, second)
                call.wake()

    def _hear(self, method: bytes, params: bytes) -> None:
        if method == GOODBYE:
            # The last word: whatever is open will not be answered here.
            self.said_goodbye = True
            self.end("the server took leave")
        elif self._on_notification is not None:
            tell(self._on_notification, method, params)

    def end(self, reason: str) -> None:
        """The connection has gone: whoever waits looks what becomes of his call."""
        with self._state:
            if self.is_over:
                return
            self.is_over, self.reason = True, reason
            waiting = list(self._open.values())
            self._open.clear()
            unsent = [request for _, request in self._queue if request is not None]
            self._queue.clear()
        for request in unsent:
            request.is_sent = False
        with suppress(OSError):  # it is gone already
            self._socket.shutdown(socket.SHUT_RDWR)  # wakes who polls it
        for call in waiting:
            call.wake()
        self._close_if_unused()

    def _wake_one(self) -> None:
        """Nobody reads now: let somebody who waits go on with it."""
        if self._sleepers:
            with self._state:
                # Those that are answered have been woken and only have not run yet.
                waiting = (call for call in self._sleepers if not call.request.is_done)
                call = next(waiting, None)
            if call is not None:
                call.wake()

    def _release(self, lock: Any) -> None:
        lock.release()
        if self.is_over:
            self._close_if_unused()

    def _close_if_unused(self) -> None:
        """Close the socket once nobody is between two calls of it: its number may be given to another."""
        if self._reading.acquire(blocking=False):
            if self._writing.acquire(blocking=False):
                self._socket.close()
                self._writing.release()
            self._reading.release()


def connect(address: Address, deadline: float | None) -> socket.socket | Secured:
    """A connected socket that never blocks."""
    left_s = left(deadline)
    timeout_s = None if left_s < 0 else max(left_s, 0.001)
    if address.path is not None:
        made = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    else:
        made = socket.create_connection((address.host, address.port), timeout_s)
    try:
        if address.path is not None:
            made.settimeout(timeout_s)
            made.connect(address.path)
        else:
            made.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if address.tls is None:
            made.setblocking(False)
            return made
        return Secured(made, address.tls, address.server_name, deadline)
    except BaseException:
        made.close()
        raise


def left(deadline: float | None) -> float:
    """Seconds until then; -1 for ever, as locks have it."""
    return -1 if deadline is None else max(0.0, deadline - monotonic())


def is_past(deadline: float | None) -> bool:
    """Whether the time is over."""
    return deadline is not None and monotonic() >= deadline
