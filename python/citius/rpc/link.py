"""One connection of the client for threads, and how its callers share it.

There is no thread of its own. A caller that waits for an answer reads the connection, for all others that
wait, until its own answer has come; then the next one goes on. A single caller therefore costs no change
of threads. The same with writing: a caller that finds the socket busy leaves its bytes to the one that
writes. A caller that writes more than the server takes reads meanwhile, so that two sides that fill each
other's buffers go on.

Reading and writing are two ``Role``s. A caller may be interrupted wherever it waits (by
``gevent.Timeout``, by a greenlet's ``kill``, by a signal handler that raises) and between any two steps. So
a role is taken inside of the ``try`` whose ``finally`` gives it back (``Role.share``), and to give back what
one does not have is allowed. Whenever a role is free, the first in its line has been woken. What has been
received and what is half sent is kept here, not in the caller; where an interruption leaves open how much
was received or sent, the connection ends.

``_state`` guards everything but the socket's two directions and is never held while a caller waits.
tests/rpc/test_waiting.py interrupts callers of both clients at every point.
"""

from __future__ import annotations

import select
import socket
from _thread import allocate_lock
from collections import deque
from contextlib import suppress
from time import monotonic
from typing import TYPE_CHECKING, Any, TypeVar

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
from citius.rpc.secured import Secured

if TYPE_CHECKING:
    from collections.abc import Callable

    from citius.rpc.synchronous import Call

_T = TypeVar("_T")

_READ_BYTES = 64 * 1024
_QUEUE_BYTES_MAX = 256 * 1024
"""Bytes that wait for another caller's write; a caller that would add to more waits itself."""


class Waiter:
    """One wait of one caller."""

    __slots__ = ("_lock", "call")

    def __init__(self, call: Call | None = None) -> None:
        self.call = call
        # Held until it is woken; made when it first has to sleep.
        self._lock: Any = None

    def is_done(self) -> bool:
        """Whether the answer has come that it waits for."""
        return self.call is not None and self.call.request.is_done

    def arm(self) -> None:
        """Get ready to sleep: a wake-up from here on is not lost."""
        if self._lock is None:
            lock = allocate_lock()
            lock.acquire()
            self._lock = lock

    def sleep(self, timeout_s: float) -> None:
        """Wait for ``wake``; after ``arm`` only."""
        self._lock.acquire(timeout=timeout_s)

    def wake(self) -> None:
        """Let its caller look again."""
        if self._lock is not None:
            with suppress(RuntimeError):  # it is awake
                self._lock.release()


class Role:
    """A right that one caller has at a time, with a line of those that sleep until it is given back."""

    def __init__(self, state: Any, on_leave: Callable[[], object] | None = None) -> None:
        self._state = state
        self._on_leave = on_leave
        self._holder: Waiter | None = None
        self._line: dict[Waiter, None] = {}

    def is_free(self) -> bool:
        """Whether no caller has it."""
        return self._holder is None

    def share(self, act: Callable[[Waiter], _T], call: Call | None = None) -> _T:
        """Run ``act``, which may ``take`` the role and ``sleep`` for it; at its end it is given back."""
        waiter = Waiter(call)
        try:
            return act(waiter)
        finally:
            try:
                self._leave(waiter)
            except BaseException:  # interrupted: once more, for it may have come to nothing
                self._leave(waiter)
                raise

    def take(self, waiter: Waiter) -> bool:
        """Whether ``waiter`` has it now."""
        with self._state:
            if self._holder is None:
                self._holder = waiter
            return self._holder is waiter

    def sleep(self, waiter: Waiter, deadline: float | None) -> None:
        """Wait until the role is given back, or the answer has come that ``waiter`` waits for."""
        waiter.arm()
        with self._state:
            self._line[waiter] = None
        # From here on it is woken when the role is given back; it may have been before.
        if self._holder is not None and not waiter.is_done():
            waiter.sleep(left(deadline))

    def wake_all(self) -> None:
        """Let all that sleep look again."""
        for waiter in list(self._line):
            waiter.wake()

    def _leave(self, waiter: Waiter) -> None:
        """Give the role back, if ``waiter`` has it, leave the line, and wake the next."""
        following = None
        with self._state:
            self._line.pop(waiter, None)
            if self._holder is waiter:
                self._holder = None
            # Also if it was free before: this waiter may have been woken to take it, and does not. One that
            # has its answer already comes here next.
            if self._holder is None:
                following = next(iter(self._line), None)
        if following is not None:
            following.wake()
        if self._on_leave is not None:
            self._on_leave()


class Link:
    """One connection, from its first byte to its last."""

    def __init__(
        self,
        made: socket.socket | Secured,
        message_bytes_max: int,
        on_notification: Callable[[str, Any], object] | None,
    ) -> None:
        self._socket = made
        self._decoder = RpcMessages(message_bytes_max)
        self._on_notification = on_notification
        self._state = allocate_lock()
        self._reading = Role(self._state, self._close_if_unused)
        self._writing = Role(self._state, self._after_writing)
        self._open: dict[int, Call] = {}
        self._next_msgid = 0
        # Messages that have come and are not handed out.
        self._inbox: deque[tuple[int | None, bytes | None, bytes]] = deque()
        # What is to be written, and the call it is; before it the rest of what is half written.
        self._queue: deque[tuple[bytes, Request | None]] = deque()
        self._queue_bytes = 0
        self._rest = memoryview(b"")
        self.is_over = False
        self.said_goodbye = False
        self.reason = ""

    # --- calls ------------------------------------------------------------------------------

    def is_fresh(self) -> bool:
        """Whether calls may be put here. Where none is open, no caller would have noticed the end."""

        def look(waiter: Waiter) -> None:
            if self._reading.take(waiter):
                self._read_what_is_there()

        if not self.is_over and not self._open:
            self._reading.share(look)
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
            call.link = self
            self._open[msgid] = call
            self._enqueue(encoded, request)
        return True

    def put(self, encoded: bytes) -> None:
        """Queue a message that has no answer."""
        with self._state:
            self._enqueue(encoded, None)

    def _enqueue(self, encoded: bytes, request: Request | None) -> None:
        self._queue.append((encoded, request))
        self._queue_bytes += len(encoded)

    def take_back(self, call: Call) -> bool:
        """Tell the server that no caller waits for a call any more; ``False`` if it is not open."""
        msgid = call.request.msgid
        with self._state:
            if self._open.get(msgid) is not call:
                return False
            del self._open[msgid]
            self._enqueue(cancellation(msgid), None)
        return True

    def wait_for(self, call: Call, deadline: float | None) -> bool:
        """Wait for an answer; ``False`` if the time is over or the connection is."""
        request = call.request

        def wait(waiter: Waiter) -> bool:
            while not request.is_done and not self.is_over:
                # Each time: the caller that was to write it may have been interrupted.
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
        """Write what is queued, one's own and others'.

        If another caller writes, it is left to that one, which looks again before it stops; with
        ``waits``, or where too much is queued already, this waits for it.
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
        """Write until nothing is queued; ``False`` if the time is over."""
        try:
            while self._take_unsent():
                if not self._send_some() and not self._wait_for_room(deadline):
                    return False
        except OSError as error:
            self.end(words(error))
        return True

    def _after_writing(self) -> None:
        """What a caller could not write is for those that sleep: what they wait for may be part of it."""
        if self._has_unsent() and self._writing.is_free():
            self._reading.wake_all()
        self._close_if_unused()

    def _take_unsent(self) -> bool:
        """Move what is queued to what is being written, unless there is some; whether there is any."""
        if not self._rest and self._queue:
            with self._state:
                for _, request in self._queue:
                    if request is not None:
                        request.is_sent = True
                joined = memoryview(b"".join(encoded for encoded, _ in self._queue))
                # At once, for a signal handler that raises may run between two statements.
                self._rest, self._queue, self._queue_bytes = joined, deque(), 0
        return bool(self._rest)

    def _send_some(self) -> bool:
        """Send what the socket takes; ``False`` if that is nothing."""
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
        """Wait until the socket takes more; answers are read meanwhile, unless another caller does."""

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
            # What a caller had no time to write may have to go first.
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
        """Read once, and hand out what has come; ``False`` if there was nothing."""
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
        """Settle the calls whose answers have come; an interrupted caller leaves the rest to the next."""
        inbox = self._inbox
        while inbox:
            msgid, first, second = inbox[0]
            if msgid is None:
                inbox.popleft()  # before it is told, so that it is told once
                self._hear(first or b"", second)
                continue
            call = self._open.get(msgid)
            if call is not None:  # else no caller waits any more
                call.request.settle(first, second)
                for waiter in call.waiters:
                    waiter.wake()
                self._open.pop(
                    msgid, None
                )  # last: one that is interrupted before does it all again
            inbox.popleft()

    def _hear(self, method: bytes, params: bytes) -> None:
        if method == GOODBYE:
            # The last word: what is open will not be answered here.
            self.said_goodbye = True
            self.end("the server closed the connection gracefully")
        elif self._on_notification is not None:
            tell(self._on_notification, method, params)

    # --- the end ----------------------------------------------------------------------------

    def close(self) -> None:
        """End it after what is queued has been sent; the server hears which calls are taken back."""
        try:
            with self._state:
                msgids = list(self._open)
                self._open.clear()  # the server's responses to these are for no caller any more
            for msgid in msgids:
                self.put(cancellation(msgid))
            self.flush(monotonic() + CLOSE_S, waits=True)
        finally:
            self.end("the client was closed")

    def end(self, reason: str) -> None:
        """The connection has gone: each caller that waits looks what becomes of its call."""
        try:
            self._end(reason)
        except BaseException:  # interrupted: once more, for callers may not have been woken
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
        with suppress(OSError):  # it is gone already
            self._socket.shutdown(socket.SHUT_RDWR)  # wakes the caller that polls it
        self._reading.wake_all()
        self._writing.wake_all()
        self._close_if_unused()

    def _close_if_unused(self) -> None:
        """Close the socket once no caller is between two calls of it: its number may be given to another."""
        if self.is_over:
            with self._state:
                if self._reading.is_free() and self._writing.is_free():
                    self._socket.close()

    def _poll(self, events: int, deadline: float | None) -> int:
        """Wait for events of the socket; which have come, 0 if the time is over."""
        poll = select.poll()
        poll.register(self._socket, events)
        left_s = left(deadline)
        return sum(ready for _, ready in poll.poll(None if left_s < 0 else left_s * 1000))


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
