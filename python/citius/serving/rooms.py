"""Rooms across the workers of one supervisor: what is sent to a room in one reaches its members in all.

Rooms of WebSockets and broadcasts of server-sent events (web/realtime/broadcast.py) are both rooms here.

```text
supervisor ── control socket ── worker     one for each worker, made before its fork
  worker A ── stream ── worker B           one for each two workers that have rooms
```

A worker whose application makes its first room says so on its control socket. The supervisor then makes a
pair of connected stream sockets for it and each other worker with rooms, and passes one end to each
(SCM_RIGHTS; supervisor/links.py); after the last of them it sends :data:`LINKED`, and the worker waits for
that before it is ready. There are no paths, so there is nothing to find, plant or leave behind; a worker
without rooms has an idle descriptor. Links end with the processes that hold them, however those end. A new
server (USR2) has links of its own: its workers and those of the old one are not linked.

Each link has a queue in the sender. A message is written at once if the queue is empty; what the socket does
not take waits for the relay's thread, and beyond ``room_queue_bytes_max`` it is lost for that worker, which
``Room.missed`` counts and which that worker is told, so that its members are (a gap). So a worker that is
stopped costs the others memory up to that limit and no time. Messages of one worker arrive in their order.
The thread reads no more while so many bytes wait for the reactors of its own worker; then the senders' queues
fill.

A message on a link: :data:`_HEAD`, the name of the room, the payload. The first ones are the histories here,
for a worker that has begun later, which accepts connections when it has those of all others.

Everything from other modules is bound at import, which happens in the supervisor: under gevent the thread has
to be one of the system's, for greenlets only run while the hub does.
"""

from __future__ import annotations

import os
import struct
from _thread import allocate_lock, start_new_thread
from collections import deque
from contextlib import suppress
from itertools import islice
from select import EPOLLIN, EPOLLOUT, POLLIN, epoll, poll
from socket import (
    AF_UNIX,
    CMSG_SPACE,
    MSG_CMSG_CLOEXEC,
    MSG_DONTWAIT,
    MSG_NOSIGNAL,
    SHUT_RDWR,
    SOCK_STREAM,
    socket,
)
from time import monotonic, sleep
from typing import TYPE_CHECKING, TypeAlias

from citius._core import Room
from citius.observability import logging

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from citius.web.realtime.broadcast import Broadcast
    from citius.web.realtime.rooms import GapRoom, HistoryRoom

    SharedRoom: TypeAlias = Room | HistoryRoom | Broadcast | GapRoom

JOIN = b"join"
"""What a worker sends on its control socket with its first room."""
LINKED = b"linked"
"""The supervisor's answer, behind the links to all that joined before. A link comes with a process id."""

# The kind, bytes of the name, bytes of the payload.
_HEAD = struct.Struct("!BIQ")
_BINARY, _TEXT = 0, 1
# So many messages of the room were lost, in front of those that follow; the histories have been sent.
_GAP, _TOLD = 2, 3
_LOST = struct.Struct("!Q")
_FD = struct.Struct("i")
# What a waiting message costs besides its bytes, about.
_OVERHEAD_BYTES = 128
# Pieces from which a message is joined to one; longer ones are kept once for all queues.
_JOINED_BYTES_MAX = 64 * 1024
# Pieces given to the kernel at once.
_PIECES_MAX = 64
_READ_BYTES = 256 * 1024
# How long a worker's start waits for a supervisor, and for other workers, that are stopped.
_LINKED_WAIT_S = 5.0
# How soon a thread looks again whether its reactors have caught up.
_PAUSE_S = 0.01


class _Peer:
    """The link to one other worker. All but ``received`` is guarded by the relay's lock."""

    __slots__ = (
        "has_told",
        "is_losing",
        "link",
        "lost",
        "pid",
        "queue",
        "queued_bytes",
        "received",
    )

    def __init__(self, fd: int, pid: int) -> None:
        self.link = socket(AF_UNIX, SOCK_STREAM, 0, fd)
        self.pid = pid
        self.queue: deque[bytes | memoryview] = deque()
        self.queued_bytes = 0
        self.is_losing = False
        self.lost: dict[bytes, int] = {}
        """Messages by rooms that were lost for it, of which it has not been told."""
        self.has_told = False
        """Whether it has sent its histories."""
        self.received = bytearray()

    def add(self, piece: bytes | memoryview) -> None:
        self.queue.append(piece)
        self.queued_bytes += len(piece) + _OVERHEAD_BYTES

    def flush(self) -> bool:
        """Write what waits; whether nothing does any more."""
        while self.queue:
            try:
                sent = _send(self.link, list(islice(self.queue, _PIECES_MAX)))
            except BlockingIOError:
                return False
            except OSError:  # it has ended, which the thread will read
                self.queue.clear()
                self.queued_bytes = 0
                return True
            self._advance(sent)
        self.is_losing = False
        return True

    def tell_losses(self) -> None:
        """Queue what it does not know of; there is room for that."""
        for name, count in self.lost.items():
            self.add(_HEAD.pack(_GAP, len(name), _LOST.size) + name + _LOST.pack(count))
        self.lost.clear()

    def _advance(self, sent: int) -> None:
        while self.queue and sent >= len(self.queue[0]):
            piece = self.queue.popleft()
            sent -= len(piece)
            self.queued_bytes -= len(piece) + _OVERHEAD_BYTES
        if sent:
            self.queue[0] = memoryview(self.queue[0])[sent:]
            self.queued_bytes -= sent

    def messages(self, data: bytes) -> Iterator[tuple[int, bytes, bytes]]:
        """The messages that ``data`` completes: kind, room, payload."""
        received, at = self.received, 0
        received += data
        while len(received) >= at + _HEAD.size:
            kind, name_bytes, payload_bytes = _HEAD.unpack_from(received, at)
            name_at = at + _HEAD.size
            payload_at = name_at + name_bytes
            end = payload_at + payload_bytes
            if len(received) < end:
                break
            yield kind, bytes(received[name_at:payload_at]), bytes(received[payload_at:end])
            at = end
        del received[:at]


class Relay:
    """Hands messages of rooms to the other workers, and theirs to the rooms here."""

    def __init__(self, control: socket, queue_bytes_max: int) -> None:
        self._control = control
        self._queue_bytes_max = queue_bytes_max
        self._rooms: dict[bytes, SharedRoom] = {}
        self._histories: dict[bytes, Callable[[int], list[bytes]]] = {}
        self._undelivered: list[Callable[[], int]] = [
            Room._undelivered_bytes  # pyright: ignore[reportPrivateUsage]
        ]
        self._peers: dict[int, _Peer] = {}
        """By the descriptors of their links. The thread alone removes them."""
        self._lock = allocate_lock()
        self._starting = allocate_lock()
        """Held by the thread that makes the first room."""
        self._epoll: epoll | None = None
        self._notices: list[str] = []
        self._is_linked = False
        self._is_begun = False
        self._is_closed = False
        self._told = allocate_lock()
        """Held until the other workers have sent their histories."""
        self._has_begun = False
        """Whether they have."""

    def share(self, name: str, room: SharedRoom) -> None:
        """Make the rooms of this name one."""
        encoded = name.encode("utf-8", "surrogatepass")
        self._rooms[encoded] = room
        if (history := getattr(room, "_old_events", None)) is not None:
            self._histories[encoded] = history
            self._undelivered.append(room._undelivered_bytes)  # pyright: ignore
        if self._is_begun:
            self._begin()
        room._set_relay(self._sender(encoded))  # pyright: ignore[reportPrivateUsage]

    def begin(self) -> None:
        """Link with the other workers if there are rooms, now that all that are made at the start are known.

        Their histories come first, which would find no room otherwise.
        """
        self._is_begun = True
        if self._rooms:
            self._begin()

    def _begin(self) -> None:
        with self._starting:
            if self._epoll is None and not self._is_closed:
                try:
                    self._start()
                except (OSError, RuntimeError) as error:  # no descriptor or no thread is left
                    self._notices.append(f"rooms do not reach other workers: {error}")
                    self._close_all()
        self._log()

    def close(self) -> None:
        """Send and take no more messages."""
        for room in self._rooms.values():
            room._set_relay(None)  # pyright: ignore[reportPrivateUsage]
        self._is_closed = True
        # Either wakes the thread, which closes all of them.
        with self._lock:
            for one in (self._control, *(peer.link for peer in self._peers.values())):
                with suppress(OSError):  # its other end has gone
                    one.shutdown(SHUT_RDWR)

    def _start(self) -> None:
        self._epoll = epoll()
        self._epoll.register(self._control, EPOLLIN)
        with suppress(OSError):  # the supervisor has ended, and the worker will
            self._control.send(JOIN, MSG_NOSIGNAL)
        until = monotonic() + _LINKED_WAIT_S
        self._await_links(until)
        os.register_at_fork(after_in_child=self._forget)
        self._told.acquire()
        start_new_thread(self._run, ())
        # Clients that come back here may ask for what only the histories have.
        if not self._told.acquire(timeout=max(0.0, until - monotonic())):
            self._notices.append(
                f"rooms: not all workers have sent their histories in {_LINKED_WAIT_S:g} s; clients that "
                "come back may be told of gaps"
            )

    def _await_links(self, until: float) -> None:
        """Wait until the links to the other workers are here, so that a worker that is ready reaches them."""
        waiting = poll()
        waiting.register(self._control, POLLIN)
        while not self._is_linked and (left_s := until - monotonic()) > 0:
            waiting.poll(1000 * left_s)
            self._take_links()

    def _forget(self) -> None:
        """In a process that the application has forked: the links stay the worker's alone."""
        self._lock = allocate_lock()
        for room in self._rooms.values():
            room._set_relay(None)  # pyright: ignore[reportPrivateUsage]
        self._close_all()

    def _close_all(self) -> None:
        self._is_closed = True
        for peer in self._peers.values():
            peer.link.close()
        self._peers.clear()
        self._control.close()
        if self._epoll is not None:
            self._epoll.close()

    # --- sending --------------------------------------------------------------------------------

    def _sender(self, name: bytes) -> Callable[[bool, bytes], int]:
        def send(is_text: bool, payload: bytes) -> int:
            """Returns how many workers do not get it."""
            pieces = _message(_TEXT if is_text else _BINARY, name, payload)
            lost = 0
            with self._lock:
                # Workers that were ready before this call get the message.
                self._take_links()
                for peer in self._peers.values():
                    if not self._offer(peer, pieces):
                        peer.lost[name] = peer.lost.get(name, 0) + 1
                        lost += 1
            self._log()
            return lost

        return send

    def _log(self) -> None:
        """Log what there is to say; without the lock, for a handler of logs may send to a room."""
        while self._notices:
            with suppress(IndexError):  # another thread was faster
                logging.warning(self._notices.pop(0))

    def _offer(self, peer: _Peer, pieces: list[bytes]) -> bool:
        """Write or queue a message; ``False``: it is lost."""
        size = sum(len(piece) + _OVERHEAD_BYTES for piece in pieces)
        if peer.queued_bytes + size > self._queue_bytes_max:
            if not peer.is_losing:
                peer.is_losing = True
                self._notices.append(
                    f"rooms: {peer.queued_bytes} bytes wait for worker {peer.pid}, which does not take "
                    "them; messages beyond that are lost for it, and Room.missed counts them"
                )
            return False
        self._put(peer, pieces)
        return True

    def _put(self, peer: _Peer, pieces: list[bytes]) -> None:
        was_empty = not peer.queue
        if peer.lost:
            peer.tell_losses()
        for piece in pieces:
            peer.add(piece)
        if was_empty and not peer.flush():
            self._watch(peer, EPOLLIN | EPOLLOUT)

    def _watch(self, peer: _Peer, events: int) -> None:
        assert self._epoll is not None, "there are peers"
        self._epoll.modify(peer.link, events)

    # --- the thread -----------------------------------------------------------------------------

    def _run(self) -> None:
        assert self._epoll is not None, "it is there before the thread"
        try:
            self._note_told()
            while not self._is_closed:
                for fd, events in self._epoll.poll():
                    self._ready(fd, events)
                _guarded(self._log)
                self._await_reactors()
        except BaseException as error:
            logging.log_exception("rooms no longer reach other workers", error)
        with self._lock:
            self._close_all()
        self._note_told()

    def _note_told(self) -> None:
        """Let the start go on if the histories of all workers are here."""
        is_waited_for = self._told.locked() and not self._has_begun
        if is_waited_for and all(peer.has_told for peer in list(self._peers.values())):
            self._has_begun = True
            self._told.release()

    def _ready(self, fd: int, events: int) -> None:
        if fd == self._control.fileno():
            with self._lock:
                self._take_links()
            return
        peer = self._peers.get(fd)
        if peer is None:
            return
        if events & EPOLLOUT:
            self._flush(peer)
        if events & ~EPOLLOUT and not self._receive(peer):
            with self._lock:
                del self._peers[fd]
                peer.link.close()
            self._note_told()

    def _flush(self, peer: _Peer) -> None:
        with self._lock:
            is_done = peer.flush()
            if is_done and peer.lost:
                # What was lost last is followed by nothing that tells of it.
                peer.tell_losses()
                is_done = peer.flush()
            if is_done:
                self._watch(peer, EPOLLIN)

    def _receive(self, peer: _Peer) -> bool:
        """Hand on what has come from another worker; ``False``: it has ended."""
        try:
            data = peer.link.recv(_READ_BYTES, MSG_DONTWAIT)
        except BlockingIOError:
            return True
        except OSError:
            return False
        for kind, name, payload in peer.messages(data):
            room = self._rooms.get(name)
            if kind == _TOLD:
                peer.has_told = True
                self._note_told()
            elif kind == _GAP:
                _guarded(self._tell_gap, name, *_LOST.unpack(payload))
            elif room is not None:
                _guarded(room._deliver, kind == _TEXT, payload)  # pyright: ignore[reportPrivateUsage]
        return bool(data)

    def _tell_gap(self, name: bytes, count: int) -> None:
        """Messages of another worker were lost for this one."""
        tell = getattr(self._rooms.get(name), "_gap", None)
        if tell is not None:
            tell(count)

    def _await_reactors(self) -> None:
        """Leave what comes to the senders' queues while the reactors here are behind."""
        while not self._is_closed and self._undelivered_bytes() > self._queue_bytes_max:
            with self._lock:
                peers = list(self._peers.values())
            for peer in peers:
                self._flush(peer)
            sleep(_PAUSE_S)

    def _undelivered_bytes(self) -> int:
        return sum([undelivered() for undelivered in self._undelivered])

    def _take_links(self) -> None:
        """Take what the supervisor has sent."""
        while not self._is_closed:
            try:
                said, fds = _receive_fds(self._control)
            except BlockingIOError:
                return
            except OSError:
                said, fds = b"", []
            if not said:
                self._supervisor_ended()
                return
            if said == LINKED:
                self._is_linked = True
            elif fds:
                self._add(_Peer(fds[0], int(said)))
            else:
                self._notices.append(
                    f"rooms do not reach worker {int(said)}: no descriptor was left for the link to it"
                )

    def _add(self, peer: _Peer) -> None:
        assert self._epoll is not None, "the worker has joined"
        self._peers[peer.link.fileno()] = peer
        self._epoll.register(peer.link, EPOLLIN)
        for name, history in list(self._histories.items()):
            # Half of the queue is left for what follows.
            for payload in history(self._queue_bytes_max // 2 // len(self._histories)):
                self._offer(peer, _message(_BINARY, name, payload))
        self._put(peer, _message(_TOLD, b"", b""))

    def _supervisor_ended(self) -> None:
        """There will be no more links; those there are go on."""
        self._is_linked = True
        if self._epoll is not None:
            with suppress(OSError):  # this has been done
                self._epoll.unregister(self._control)


def _message(kind: int, name: bytes, payload: bytes) -> list[bytes]:
    """A message as pieces to be written."""
    head = _HEAD.pack(kind, len(name), len(payload)) + name
    is_small = len(head) + len(payload) <= _JOINED_BYTES_MAX
    return [head + payload] if is_small else [head, payload]


def _guarded(function: Callable[..., object], *arguments: object) -> None:
    """Call what may call the application (``on_gap``, a handler of logs): it must not end the thread."""
    try:
        function(*arguments)
    except BaseException as error:
        with suppress(BaseException):
            logging.log_exception(
                "a room or a broadcast failed at a message of another worker", error
            )


def _receive_fds(control: socket) -> tuple[bytes, list[int]]:
    # socket.recv_fds() passes no flags on before Python 3.13.
    flags = MSG_DONTWAIT | MSG_CMSG_CLOEXEC
    said, ancillary, _, _ = control.recvmsg(64, CMSG_SPACE(_FD.size), flags)
    return said, [_FD.unpack(data)[0] for _, _, data in ancillary if len(data) == _FD.size]


def _send(link: socket, pieces: list[bytes | memoryview]) -> int:
    return link.sendmsg(pieces, (), MSG_DONTWAIT | MSG_NOSIGNAL)
