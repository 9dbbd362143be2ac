"""Broadcasts: the same server-sent events for many streams, in all workers of a server.

```text
worker A: send ── encode once ── streams of A
              └── link of rooms ── worker B: streams of B       (serving/rooms.py)
```

What a client sends as ``Last-Event-ID`` has to mean something in every worker, and workers see the events of
different senders in different orders. So an identifier is a version vector: for each worker that has sent
something of the history, the number of its last event that the client has got. A worker that such a client
comes back to sends what of its own history is not in there.

``send`` may be called from any thread, and events of other workers come from the relay's. Under the lock an
event gets its place in the history, its identifier and its place in the inbox of each event loop, so that
every stream gets events in the order of the history; the loop's thread alone hands them to streams.
Tests: ``tests/server/test_events.py``, ``tests/server/test_broadcasts.py``.
"""

from __future__ import annotations

import asyncio
import secrets
import struct
import threading
from collections import Counter, deque
from contextlib import suppress
from typing import TYPE_CHECKING, Final, Literal, NamedTuple

from citius.web.events import QUEUE_BYTES_MAX, Event, EventStream, last_event_id

if TYPE_CHECKING:
    from asyncio import AbstractEventLoop
    from collections.abc import Callable, Iterable

    from citius._core import Request, Response

_LIVE: Final = 0
_OLD: Final = 1
"""An event of the history, for a worker that has begun later."""

_SENDER_CHARS: Final = 8
# Live or old, sender, number, bytes of the identifier that the application has given (-1: none).
_HEAD: Final = struct.Struct(f"!B{_SENDER_CHARS}sQi")


class _Kept(NamedTuple):
    """An event of the history."""

    sender: str
    number: int
    own_id: str | None
    body: bytes
    """All its lines but the identifier."""

    def packed(self, kind: int) -> bytes:
        """The event as it goes to other workers."""
        own = b"" if self.own_id is None else self.own_id.encode("utf-8", "surrogatepass")
        size = -1 if self.own_id is None else len(own)
        return _HEAD.pack(kind, self.sender.encode(), self.number, size) + own + self.body


def _unpacked(payload: bytes) -> tuple[int, _Kept]:
    kind, sender, number, size = _HEAD.unpack_from(payload)
    end = _HEAD.size + max(size, 0)
    own = payload[_HEAD.size : end].decode("utf-8", "surrogatepass") if size >= 0 else None
    return kind, _Kept(sender.decode(), number, own, payload[end:])


class _Followers:
    """The streams of one event loop."""

    __slots__ = ("inbox", "is_scheduled", "loop", "streams", "thread")

    def __init__(self, loop: AbstractEventLoop) -> None:
        self.loop = loop
        self.thread = threading.get_ident()
        self.streams: set[EventStream] = set()
        """Changed by the loop's thread alone."""
        self.inbox: deque[bytes] = deque()
        self.is_scheduled = False


class Broadcast:
    """Events for all clients that follow: each is encoded once.

    ``Broadcast()`` reaches the streams of its process, ``app.broadcast(name)`` those of all workers.

    Args:
        history: Events kept for clients that come back (``Last-Event-ID``); events get identifiers
            then, unless they have one.
        heartbeat_s: As for ``EventStream``.
        queue_bytes_max: As for ``EventStream``.
        slow: As for ``EventStream``.
    """

    def __init__(
        self,
        *,
        history: int = 0,
        heartbeat_s: float | None = 15.0,
        queue_bytes_max: int = QUEUE_BYTES_MAX,
        slow: Literal["close", "drop"] = "close",
    ) -> None:
        self.missed = 0
        """Events lost for another worker that was too slow: one for each of both."""
        self._heartbeat_s = heartbeat_s
        self._queue_bytes_max = queue_bytes_max
        self._slow: Literal["close", "drop"] = slow
        self._followers: dict[AbstractEventLoop, _Followers] = {}
        self._history = _History(history) if history else None
        # Identifiers of an earlier process of the same server mean nothing here.
        self._sender = secrets.token_hex(_SENDER_CHARS // 2)
        self._number = 0
        self._relay: Callable[[bool, bytes], int] | None = None
        self._undelivered = 0
        # The order of events of this process, in the history and on the links alike. It is taken first, then
        # the relay's lock, then the other one, which the relay takes for the history of a new worker. The
        # relay may log, and a handler of logs may send.
        self._order = threading.RLock()
        self._lock = threading.Lock()

    def __len__(self) -> int:
        """Clients that follow in this process."""
        return sum(len(one.streams) for one in list(self._followers.values()))

    def __bool__(self) -> Literal[True]:
        return True

    def response(self, request: Request) -> Response:
        """A response that follows; a client that comes back gets first what it has missed."""
        loop = asyncio.get_running_loop()
        stream = EventStream(
            heartbeat_s=self._heartbeat_s,
            queue_bytes_max=self._queue_bytes_max,
            slow=self._slow,
            on_close=self._leave,
        )
        with self._lock:
            followers = self._followers.get(loop)
            if followers is None:
                followers = self._followers[loop] = _Followers(loop)
            waiting = self._taken(followers)
            missed: Iterable[bytes] = ()
            if self._history is not None:
                missed = self._history.missed_since(last_event_id(request))
        _push(followers, waiting)  # it is part of what is missed
        for data in missed:
            # The history bounds it; by the limit of the queue such a client could never catch up.
            stream._push(data)  # pyright: ignore[reportPrivateUsage]
        followers.streams.add(stream)
        return stream.response()

    def send(self, event: object) -> int:
        """Send an event, or the data of one, to all; returns to how many in this process.

        It does not wait, and may be called from any thread.
        """
        made = event if isinstance(event, Event) else Event(event)
        body = Event(made.data, made.event, None, made.retry_ms).encode()
        with self._order:
            self._number += 1
            kept = _Kept(self._sender, self._number, made.id, body)
            with self._lock:
                own, others = self._queued(kept)
            if self._relay is not None:
                self.missed += self._relay(False, kept.packed(_LIVE))
        return others + (0 if own is None else self._drain(own))

    def close(self) -> None:
        """End all streams of this process, as before a shutdown."""
        for followers in list(self._followers.values()):
            for stream in list(followers.streams):
                stream.close()

    def _queued(self, kept: _Kept) -> tuple[_Followers | None, int]:
        """Keep an event and put it into the inboxes; this thread's one, and how many streams others have."""
        if self._history is None:
            data = kept.body if kept.own_id is None else _with_id(kept.own_id, kept.body)
        else:
            data = self._history.add(kept)
        own, others, this_thread = None, 0, threading.get_ident()
        for followers in self._followers.values():
            followers.inbox.append(data)
            self._undelivered += len(data)
            if followers.thread == this_thread:
                own = followers
                continue
            others += len(followers.streams)
            if not followers.is_scheduled:
                followers.is_scheduled = True
                with suppress(RuntimeError):  # the loop is closed
                    followers.loop.call_soon_threadsafe(self._drain, followers)
        return own, others

    def _taken(self, followers: _Followers) -> list[bytes]:
        """What is in the inbox, under the lock."""
        waiting = list(followers.inbox)
        followers.inbox.clear()
        followers.is_scheduled = False
        self._undelivered -= sum(map(len, waiting))
        return waiting

    def _drain(self, followers: _Followers) -> int:
        """Hand the streams of this thread's loop what there is; returns how many got the last event."""
        with self._lock:
            waiting = self._taken(followers)
        return _push(followers, waiting)

    def _leave(self, stream: EventStream) -> None:
        """Forget a stream, on the thread of its loop."""
        with self._lock:
            followers = self._followers.get(stream._loop)  # pyright: ignore[reportPrivateUsage]
            if followers is None:
                return
            followers.streams.discard(stream)
            if not followers.streams:
                self._taken(followers)
                del self._followers[followers.loop]

    # --- what the relay of rooms calls --------------------------------------------------------------

    def _set_relay(self, relay: Callable[[bool, bytes], int] | None) -> None:
        """Call ``relay(False, payload)``, which returns how many workers do not get the event."""
        self._relay = relay

    def _deliver(self, is_text: bool, payload: bytes) -> None:
        """Send to the streams here what another worker has sent; on the relay's thread."""
        kind, kept = _unpacked(payload)
        with self._lock:
            if kind == _LIVE:
                self._queued(kept)
            elif self._history is not None:
                self._history.add_old(kept)

    def _undelivered_bytes(self) -> int:
        """Bytes of events that the loops here have not taken yet."""
        return self._undelivered

    def _old_events(self, bytes_max: int) -> list[bytes]:
        """The history for a worker that has begun later: the last of it, oldest first."""
        with self._lock:
            return [] if self._history is None else self._history.packed(bytes_max)


def _push(followers: _Followers, waiting: list[bytes]) -> int:
    """Returns how many streams got the last one."""
    sent = 0
    for data in waiting:
        sent = sum([stream._send_here(data) for stream in list(followers.streams)])  # pyright: ignore[reportPrivateUsage]
    return sent


def _with_id(identifier: str, body: bytes) -> bytes:
    return b"id: %b\n%b" % (identifier.encode("utf-8", "replace"), body)


class _History:
    """The last events of all workers, and who has sent them. Guarded by the lock of its broadcast."""

    def __init__(self, events_max: int) -> None:
        self._events_max = events_max
        self._kept: deque[tuple[_Kept, bytes]] = deque()
        self._counts: Counter[str] = Counter()
        self._seen: dict[str, int] = {}
        """The version vector: the last number of each worker that the history has an event of."""

    def add(self, kept: _Kept) -> bytes:
        """Keep an event; returns it as it is sent, with its identifier."""
        # An event that has come with the history of another worker comes by itself too.
        is_new = kept.number > self._seen.get(kept.sender, 0)
        if is_new:
            if len(self._kept) == self._events_max:
                self._forget()
            self._seen[kept.sender] = kept.number
            self._counts[kept.sender] += 1
        data = _with_id(self._identifier() if kept.own_id is None else kept.own_id, kept.body)
        if is_new:
            self._kept.append((kept, data))
        return data

    def add_old(self, kept: _Kept) -> None:
        """Keep an event of another worker's history, while there is room: what was dropped stays so."""
        if len(self._kept) < self._events_max:
            self.add(kept)

    def missed_since(self, known: str | None) -> list[bytes]:
        """What a client has not got that has got ``known`` last; all of it if that means nothing here."""
        if not known:
            return []
        for index in range(len(self._kept) - 1, -1, -1):
            if self._kept[index][0].own_id == known:
                return [data for _, data in list(self._kept)[index + 1 :]]
        seen = _vector(known)
        return [data for kept, data in self._kept if kept.number > seen.get(kept.sender, 0)]

    def packed(self, bytes_max: int) -> list[bytes]:
        """The last events that together have at most so many bytes, for other workers."""
        found: list[bytes] = []
        for kept, _ in reversed(self._kept):
            one = kept.packed(_OLD)
            bytes_max -= len(one)
            if bytes_max < 0:
                break
            found.append(one)
        return found[::-1]

    def _forget(self) -> None:
        (oldest, _) = self._kept.popleft()
        self._counts[oldest.sender] -= 1
        if not self._counts[oldest.sender]:
            # A client that has not got the worker's next event has to say nothing of it to get that.
            del self._counts[oldest.sender], self._seen[oldest.sender]

    def _identifier(self) -> str:
        return ".".join(f"{sender}-{number:x}" for sender, number in self._seen.items())


def _vector(identifier: str) -> dict[str, int]:
    """The version vector that an identifier is; an empty one if it is none."""
    seen: dict[str, int] = {}
    for part in identifier.split("."):
        sender, _, number = part.partition("-")
        if len(sender) != _SENDER_CHARS or not 0 < len(number) <= 16:
            return {}
        try:
            seen[sender] = int(number, 16)
        except ValueError:
            return {}
    return seen
