"""Broadcasts: the same server-sent events for many streams, in all workers of a server.

```text
worker A: send ── encode once ── streams of A
              └── link of rooms ── worker B: streams of B       (serving/rooms.py)
```

With a history events get identifiers, by which a client that comes back gets what it has missed (history.py).
Where events are missing, streams get an event of the type ``gap``.
Over a cluster (``citius.cluster``) events come to all workers in one order, in which they are delivered.

``send`` may be called from any thread, and events of other workers come from the relay's. Under the lock an
event gets its place in the history, its identifier and its place in the inbox of each event loop, so that
every stream gets events in the order of the history; the loop's thread alone hands them to streams.
Tests: ``tests/server/test_events.py``, ``tests/server/test_broadcasts.py``.
"""

from __future__ import annotations

import asyncio
import random
import secrets
import threading
from collections import deque
from contextlib import suppress
from typing import TYPE_CHECKING, Literal, Protocol
from weakref import WeakSet

from citius.unknown_options import known_options
from citius.web.realtime.events import QUEUE_BYTES_MAX, Event, EventStream, last_event_id
from citius.web.realtime.history import (
    LIVE,
    SENDER_CHARS,
    History,
    Kept,
    event_with_id,
    gap_event,
    unpacked,
)

if TYPE_CHECKING:
    from asyncio import AbstractEventLoop
    from collections.abc import Callable, Iterable

    from citius._core import Request, Response


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


@known_options
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
        _open.add(self)
        self.missed = 0
        """Events lost for another worker that was too slow: one for each of both."""
        self._heartbeat_s = heartbeat_s
        self._queue_bytes_max = queue_bytes_max
        self._slow: Literal["close", "drop"] = slow
        self._followers: dict[AbstractEventLoop, _Followers] = {}
        self._history = History(history) if history else None
        # Identifiers of an earlier process of the same server mean nothing here.
        self._sender = secrets.token_hex(SENDER_CHARS // 2)
        self._number = 0
        self._relay: Callable[..., int] | None = None
        self._is_ordered = False
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
        stream = EventStream(
            heartbeat_s=self._heartbeat_s,
            queue_bytes_max=self._queue_bytes_max,
            slow=self._slow,
            on_close=self._leave,
        )
        self._follow(stream, last_event_id(request))
        return stream.response()

    def _follow(self, stream: EventStream, known: str | None) -> None:
        """Have a stream of this thread's loop follow; ``_leave`` is called when it is closed.

        Args:
            stream: Gets events by ``_send_here``, and what it has missed by ``_resume``.
            known: The last event that its client has.
        """
        loop = asyncio.get_running_loop()
        with self._lock:
            followers = self._followers.get(loop)
            if followers is None:
                followers = self._followers[loop] = _Followers(loop)
            waiting = self._taken(followers)
            missed: Iterable[bytes] = ()
            if self._history is not None:
                missed = self._history.missed_since(known)
            others = list(followers.streams)
            # Within the lock: the followers of a loop are forgotten with the last of its streams.
            followers.streams.add(stream)
        for data in waiting:  # the new one has it by what it has missed
            _send(others, data)
        for data in missed:
            # The history bounds it; by the limit of the queue such a client could never catch up.
            stream._resume(data)  # pyright: ignore[reportPrivateUsage]

    def send(self, event: object) -> int:
        """Send an event, or the data of one, to all; returns to how many in this process.

        It does not wait, and may be called from any thread.
        """
        made = event if isinstance(event, Event) else Event(event)
        body = Event(made.data, made.event, None, made.retry_ms).encode()
        with self._order:
            self._number += 1
            kept = Kept(self._sender, self._number, made.id, body)
            if self._is_ordered and self._relay is not None:
                # It comes back in the order that it has for all.
                self.missed += self._relay(False, kept.packed(LIVE))
                return len(self)
            with self._lock:
                own, others = self._queued(kept)
            if self._relay is not None:
                self.missed += self._relay(False, kept.packed(LIVE))
        return others + (0 if own is None else self._drain(own))

    def close(self, spread_s: float = 0.0) -> None:
        """End all streams of this process, as before a shutdown.

        Args:
            spread_s: Clients are told to come back at different instants within that time.
        """
        for followers in list(self._followers.values()):
            for stream in list(followers.streams):
                if spread_s:
                    stream.send_encoded(
                        b"retry: %d\n\n" % random.randint(1, round(1000 * spread_s))
                    )
                stream.close()

    def _queued(self, kept: Kept) -> tuple[_Followers | None, int]:
        """Keep an event and put it into the inboxes; this thread's one, and how many streams others have."""
        if self._history is None:
            data = kept.body if kept.own_id is None else event_with_id(kept.own_id, kept.body)
        else:
            data = self._history.add(kept)
        return self._put(data)

    def _put(self, data: bytes) -> tuple[_Followers | None, int]:
        """Keep and queue an encoded event."""
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

    def _set_relay(self, relay: Callable[..., int] | None, is_ordered: bool = False) -> None:
        """Call ``relay(False, payload)``, which returns how many workers do not get the event.

        One that ``is_ordered`` calls ``_deliver`` for the events of this process too.
        """
        self._relay, self._is_ordered = relay, is_ordered
        if self._history is not None and is_ordered:
            self._history.is_ordered = True

    @property
    def _history_max(self) -> int:
        """How many events the history keeps."""
        return 0 if self._history is None else self._history.messages_max

    def _deliver(self, is_text: bool, payload: bytes) -> None:
        """Send to the streams here what another worker has sent.

        On the relay's thread, or on that of an event loop: a cluster's.
        """
        kind, kept = unpacked(payload)
        with self._lock:
            if kind == LIVE:
                own, _ = self._queued(kept)
                self._drain_soon(own)
            elif self._history is not None:
                self._history.add_old(kept)

    def _drain_soon(self, own: _Followers | None) -> None:
        if own is not None and not own.is_scheduled:
            own.is_scheduled = True
            own.loop.call_soon(self._drain, own)

    def _gap(self, count: int) -> None:
        """So many events are lost for this worker; 0: it is not known how many."""
        with self._lock:
            history = self._history
            own, _ = self._put(gap_event(count) if history is None else history.add_gap(count))
            self._drain_soon(own)

    def _deliver_old(self, is_text: bool, payload: bytes) -> None:
        """Keep what was sent before this process began."""
        if self._history is not None:
            with self._lock:
                self._history.add(unpacked(payload)[1])

    def _disorder(self) -> None:
        """The engine that gives the order has lost its memory."""
        if self._history is not None:
            with self._lock:
                self._history.disorder()

    def _undelivered_bytes(self) -> int:
        """Bytes of events that the loops here have not taken yet."""
        return self._undelivered

    def _old_events(self, bytes_max: int) -> list[bytes]:
        """The history for a worker that has begun later: the last of it, oldest first."""
        with self._lock:
            return [] if self._history is None else self._history.packed(bytes_max)


class Closes(Protocol):
    """What has streams that end before a shutdown."""

    def close(self, spread_s: float = 0.0) -> None:
        """End them; clients are told to come back within that time."""


_open: WeakSet[Closes] = WeakSet()


def closed_with_broadcasts(one: Closes) -> None:
    """Have ``one.close`` called when the streams of broadcasts end."""
    _open.add(one)


def close_all(spread_s: float) -> None:
    """End the streams of all broadcasts here; their clients come back, to another process, and resume."""
    for broadcast in list(_open):
        broadcast.close(spread_s)


def _push(followers: _Followers, waiting: list[bytes]) -> int:
    """Returns how many streams got the last one."""
    sent = 0
    for data in waiting:
        sent = _send(list(followers.streams), data)
    return sent


def _send(streams: list[EventStream], data: bytes) -> int:
    return sum([stream._send_here(data) for stream in streams])  # pyright: ignore[reportPrivateUsage]
