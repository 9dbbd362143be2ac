"""One connection of the client for threads, and how its callers share it.

The connection has no thread of its own. A caller that waits for a response reads for all waiting callers
until its own response has come; then the next one reads. A single caller therefore costs no thread switch.
Writing works alike: a caller that finds another one writing leaves its bytes to it. A caller that writes more
than the server accepts reads meanwhile, so that two sides that fill each other's buffers do not block.

Reading and writing are two roles (roles.py). Received bytes and half-written messages are kept here, not in
the caller, because a caller may be interrupted anywhere; where an interruption leaves open how much was
received or sent, the connection ends.

``_state`` guards everything but the two directions of the socket, and is never held while a caller waits.
tests/rpc/test_waiting.py interrupts callers of both clients at every point.
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
    CLOSE_S,
    GOODBYE,
    Address,
    Request,
    cancellation,
    free_msgid,
    next_msgid,
    not_understood,
    tell,
    words,
)
from citius.rpc.deadlines import is_past, left
from citius.rpc.roles import Role, Waiter
from citius.rpc.secured import Secured

if TYPE_CHECKING:
    from collections.abc import Callable

    from citius.rpc.quic import QuicSocket
    from citius.rpc.synchronous import Call

_READ_BYTES = 64 * 1024
_QUEUE_BYTES_MAX = 256 * 1024
"""Bytes that wait for another caller's write; a caller that would add to more waits itself."""


class Link:
    """One connection, from its first byte to its last."""

    def __init__(
        self,
        made: socket.socket | Secured | QuicSocket,
        message_bytes_max: int,
        on_notification: Callable[[str, Any], object] | None,
    ) -> None:
        self._socket = made
        # QUIC has to be served while a caller waits.
        self._poll_quic: Callable[[int, float | None], int] | None = getattr(made, "poll", None)
        self._decoder = RpcMessages(message_bytes_max)
        self._on_notification = on_notification
        self._state = allocate_lock()
        self._reading = Role(self._state, self._close_if_unused)
        self._writing = Role(self._state, self._after_writing)
        self._open: dict[int, Call] = {}
        self._next_msgid = 0
        # Received messages that are not dispatched yet.
        self._inbox: deque[tuple[int | None, bytes | None, bytes]] = deque()
        # Encoded messages to write, each with its call; `_rest` are the unwritten bytes before them.
        self._queue: deque[tuple[bytes, Request | None]] = deque()
        self._queue_bytes = 0
        self._rest = memoryview(b"")
        self.is_over = False
        self.said_goodbye = False
        self.reason = ""

    # --- calls ------------------------------------------------------------------------------

    def is_fresh(self) -> bool:
        """Whether the connection takes calls; without open calls this reads first, to notice its end."""

        def look(waiter: Waiter) -> None:
            if self._reading.take(waiter):
                self._read_what_is_there()

        if not self.is_over and not self._open:
            self._reading.share(look)
        return not self.is_over

    def put_call(self, call: Call) -> bool:
        """Queue a call; ``False`` if the connection has ended."""
        with self._state:
            if self.is_over:
                return False
            msgid = free_msgid(self._next_msgid, self._open)
            self._next_msgid = next_msgid(msgid)
            request = call.request
            encoded = request.encode(msgid)
            call.link = self
            self._open[msgid] = call
            self._enqueue(encoded, request)
        return True

    def put(self, encoded: bytes) -> None:
        """Queue a message that gets no response."""
        with self._state:
            self._enqueue(encoded, None)

    def _enqueue(self, encoded: bytes, request: Request | None) -> None:
        self._queue.append((encoded, request))
        self._queue_bytes += len(encoded)

    def take_back(self, call: Call) -> bool:
        """Cancel a call: queue a cancellation for the server; ``False`` if the call is not open."""
        msgid = call.request.msgid
        with self._state:
            if self._open.get(msgid) is not call:
                return False
            del self._open[msgid]
            self._enqueue(cancellation(msgid), None)
        return True

    def wait_for(self, call: Call, deadline: float | None) -> bool:
        """Wait for a response; ``False`` after the deadline or the end of the connection."""
        request = call.request

        def wait(waiter: Waiter) -> bool:
            while not request.is_done and not self.is_over:
                # In each round, because the caller that was to write may have been interrupted.
                self.flush(deadline)
                if self._reading.take(waiter):
                    self._read_until(request, deadline)
                else:
                    with self._state:
                        call.waiters = (*call.waiters, waiter)
                    self._reading.sleep(waiter, deadline)
                if is_past(deadline):
                    break
            return request.is_done

        return self._reading.share(wait, call)

    # --- writing ----------------------------------------------------------------------------

    def _has_unsent(self) -> bool:
        return bool(self._queue or self._rest)

    def flush(self, deadline: float | None, *, waits: bool = False) -> None:
        """Write all queued messages, also those of other callers.

        If another caller is writing, that one writes them: it checks the queue again before it stops. With
        ``waits``, or if too much is queued already, this waits for it.
        """

        def write(waiter: Waiter) -> bool:
            if self._writing.take(waiter):
                return self._write(deadline)
            if is_past(deadline) or not (waits or self._queue_bytes >= _QUEUE_BYTES_MAX):
                return False
            self._writing.sleep(waiter, deadline)
            return True

        while self._has_unsent() and not self.is_over:
            if not self._writing.share(write):
                return

    def _write(self, deadline: float | None) -> bool:
        """Write until nothing is queued; ``False`` after the deadline."""
        try:
            while self._take_unsent():
                if not self._send_some() and not self._wait_for_room(deadline):
                    return False
        except OSError as error:
            self.end(words(error))
        return True

    def _after_writing(self) -> None:
        """Wake sleeping callers if messages are left unwritten: their own calls may be among them."""
        if self._has_unsent() and self._writing.is_free():
            self._reading.wake_all()
        self._close_if_unused()

    def _take_unsent(self) -> bool:
        """Fill ``_rest`` from the queue if it is empty; whether it has bytes now."""
        if not self._rest and self._queue:
            with self._state:
                for _, request in self._queue:
                    if request is not None:
                        request.is_sent = True
                joined = memoryview(b"".join(encoded for encoded, _ in self._queue))
                # One statement, because a signal handler that raises may run between two.
                self._rest, self._queue, self._queue_bytes = joined, deque(), 0
        return bool(self._rest)

    def _send_some(self) -> bool:
        """Send once; ``False`` if the socket accepts nothing."""
        try:
            self._rest = self._rest[self._socket.send(self._rest) :]
        except BlockingIOError:
            return False
        except OSError:
            raise
        except BaseException:
            self.end("a caller was interrupted while it sent")
            raise
        return True

    def _wait_for_room(self, deadline: float | None) -> bool:
        """Wait until the socket accepts more; meanwhile read responses, unless another caller does."""

        def wait(waiter: Waiter) -> bool:
            reads = self._reading.take(waiter)
            ready = self._poll(select.POLLOUT | (select.POLLIN if reads else 0), deadline)
            if reads and ready & select.POLLIN:
                self._read_what_is_there()
            return bool(ready)

        return self._reading.share(wait)

    # --- reading ----------------------------------------------------------------------------

    def _read_until(self, request: Request, deadline: float | None) -> None:
        self._hand_out()
        while not request.is_done and not self.is_over:
            if self._read_some():
                continue
            # Messages that a caller left unwritten may have to be sent first.
            writes = select.POLLOUT if self._has_unsent() else 0
            ready = self._poll(select.POLLIN | writes, deadline)
            if not ready:
                return
            if ready & select.POLLOUT:
                self.flush(monotonic())

    def _read_what_is_there(self) -> None:
        self._hand_out()
        while not self.is_over and self._read_some():
            pass

    def _read_some(self) -> bool:
        """Read once and dispatch the messages; ``False`` if nothing was there."""
        try:
            data = self._socket.recv(_READ_BYTES)
            if not data:
                self.end("the server closed the connection")
                return True
            self._decode(data)
        except BlockingIOError:
            return False
        except OSError as error:
            self.end(words(error))
            return True
        except BaseException:
            self.end("a caller was interrupted while it received")
            raise
        self._hand_out()
        return True

    def _decode(self, data: bytes) -> None:
        try:
            self._inbox.extend(self._decoder.feed(data))
        except ValueError as error:
            self.end(not_understood(error, data))

    def _hand_out(self) -> None:
        """Complete the calls whose responses have come; after an interruption the next caller continues."""
        inbox = self._inbox
        while inbox:
            msgid, first, second = inbox[0]
            if msgid is None:
                inbox.popleft()  # first, so that an interruption cannot repeat it
                self._hear(first or b"", second)
                continue
            call = self._open.get(msgid)
            if call is not None:  # otherwise the call was cancelled
                call.request.settle(first, second)
                for waiter in call.waiters:
                    waiter.wake()
                self._open.pop(msgid, None)  # last: after an interruption all of this is repeated
            inbox.popleft()

    def _hear(self, method: bytes, params: bytes) -> None:
        if method == GOODBYE:
            # The server sends nothing after this: open calls get no response here.
            self.said_goodbye = True
            self.end("the server closed the connection gracefully")
        elif self._on_notification is not None:
            tell(self._on_notification, method, params)

    # --- the end ----------------------------------------------------------------------------

    def close(self) -> None:
        """Cancel the open calls, write all queued messages, and end the connection."""
        try:
            with self._state:
                msgids = list(self._open)
                self._open.clear()  # later responses to these are dropped
            for msgid in msgids:
                self.put(cancellation(msgid))
            self.flush(monotonic() + CLOSE_S, waits=True)
        finally:
            self.end("the client was closed")

    def end(self, reason: str) -> None:
        """End the connection and wake all waiting callers."""
        try:
            self._end(reason)
        except BaseException:  # interrupted: again, because some callers may not have been woken
            self._end(reason)
            raise

    def _end(self, reason: str) -> None:
        with self._state:
            if not self.is_over:
                self.is_over, self.reason = True, reason
            for _, request in self._queue:
                if request is not None:
                    request.is_sent = False
            self._open.clear()
            self._queue.clear()
            self._rest = memoryview(b"")
        with suppress(OSError):  # it is closed already
            self._socket.shutdown(socket.SHUT_RDWR)  # wakes the caller that polls it
        self._reading.wake_all()
        self._writing.wake_all()
        self._close_if_unused()

    def _close_if_unused(self) -> None:
        """Close the socket once no caller uses it: the kernel may reuse the number of the descriptor."""
        if self.is_over:
            with self._state:
                if self._reading.is_free() and self._writing.is_free():
                    self._socket.close()

    def _poll(self, events: int, deadline: float | None) -> int:
        """Wait for events of the socket; returns them, 0 after the deadline."""
        if self._poll_quic is not None:
            return self._poll_quic(events, deadline)
        poll = select.poll()
        poll.register(self._socket, events)
        left_s = left(deadline)
        return sum(ready for _, ready in poll.poll(None if left_s < 0 else left_s * 1000))


def connect(
    address: Address, message_bytes_max: int, deadline: float | None
) -> socket.socket | Secured | QuicSocket:
    """Connect; returns a non-blocking socket."""
    if address.is_quic:
        from citius.rpc.quic import QuicSocket

        return QuicSocket(address, message_bytes_max, deadline)
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
