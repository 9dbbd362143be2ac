r"""``HistoryRoom``: a room whose members can come back and get what they have missed.

Each message is sent with an identifier: text messages as ``IDENTIFIER\nMESSAGE``, binary ones as the
same bytes. A client that comes back says the last one that it has seen, and ``join`` sends what came
after it before what comes next: history.py has the rules. A client that gets a message twice, which
happens when the sender or the engine of a cluster was away in between, knows it by its identifier. Where
messages are missing, members get the text message ``gap\n{"missed": NUMBER}``.

Under the lock a message gets its place in the history and its place in the queue of each member's reactor, so
that a member that joins gets each message once. Tests: ``tests/cluster/test_servers.py``.
"""

from __future__ import annotations

import secrets
import threading
from typing import TYPE_CHECKING, Literal

from citius._core import Room
from citius.web.declarations import codecs
from citius.web.realtime.history import LIVE, SENDER_CHARS, History, Kept, gap_text, unpacked

if TYPE_CHECKING:
    from collections.abc import Callable

    from citius._core import WebSocket
    from citius.web.realtime.websockets import SerialWebSocket

_TEXT, _BINARY = b"t", b"b"


class HistoryRoom:
    """WebSockets that get the same messages, with identifiers, and those that they have missed.

    Args:
        history: Messages kept for members that come back.
        slow: What becomes of a member that does not read: it is closed with 1013, or misses messages.
    """

    def __init__(self, history: int, *, slow: Literal["close", "drop"] = "close") -> None:
        self._room = Room(slow=slow)
        self._history = History(history, _with_id, _gap)
        self._sender = secrets.token_hex(SENDER_CHARS // 2)
        self._number = 0
        self._relay: Callable[..., int] | None = None
        self._is_ordered = False
        self._missed = 0
        # As in broadcast.py: the first is the order of messages here, and is taken before the relay's.
        self._order = threading.RLock()
        self._lock = threading.Lock()

    def join(self, socket: WebSocket | SerialWebSocket, *, after: str | None = None) -> bool:
        r"""Let ``socket`` in, and send it what came after ``after``; ``False`` if it was in already.

        An identifier that means nothing here, because the history has gone on or begun anew, gets a gap,
        ``gap\n{"missed": null}``, and all of the history.

        Raises:
            ConnectionClosed: It is over.
        """
        with self._lock:
            if not self._room.join(socket):
                return False
            for data in self._history.missed_since(after):
                self._room._deliver_to(socket, data[:1] == _TEXT, data[1:])  # pyright: ignore[reportPrivateUsage]
            return True

    def leave(self, socket: WebSocket | SerialWebSocket) -> bool:
        """Let ``socket`` go; ``False`` if it was not in."""
        return self._room.leave(socket)

    def send(self, message: str | bytes) -> int:
        """Send to all members; returns how many there are in this process."""
        body = _TEXT + message.encode() if isinstance(message, str) else _BINARY + bytes(message)
        with self._order:
            self._number += 1
            kept = Kept(self._sender, self._number, None, body)
            if self._relay is not None:
                self._missed += self._relay(False, kept.packed(LIVE))
            if not (self._is_ordered and self._relay is not None):
                self._deliver_kept(kept)
        return len(self._room)

    def send_json(self, value: object) -> int:
        """Send an object as JSON, in a text message."""
        return self.send(codecs.encode_json(value).decode())

    @property
    def missed(self) -> int:
        """Messages lost: one for each member here that was too slow, and each other worker that was."""
        return self._missed + self._room.missed

    def __len__(self) -> int:
        """Members in this process."""
        return len(self._room)

    def __bool__(self) -> Literal[True]:
        return True

    def __contains__(self, socket: WebSocket | SerialWebSocket) -> bool:
        return self._room.__contains__(socket)

    def _deliver_kept(self, kept: Kept) -> None:
        with self._lock:
            data = self._history.add(kept)
            self._room._deliver(data[:1] == _TEXT, data[1:])  # pyright: ignore[reportPrivateUsage]

    # --- what relays call, as of Broadcast ------------------------------------------------------------

    @property
    def _history_max(self) -> int:
        return self._history.messages_max

    def _set_relay(self, relay: Callable[..., int] | None, is_ordered: bool = False) -> None:
        self._relay, self._is_ordered = relay, is_ordered
        if is_ordered:
            self._history.is_ordered = True

    def _deliver(self, is_text: bool, payload: bytes) -> None:
        kind, kept = unpacked(payload)
        if kind == LIVE:
            self._deliver_kept(kept)
        else:
            with self._lock:
                self._history.add_old(kept)

    def _gap(self, count: int) -> None:
        """So many messages are lost for this worker; 0: it is not known how many."""
        with self._lock:
            data = self._history.add_gap(count)
            self._room._deliver(True, data[1:])  # pyright: ignore[reportPrivateUsage]

    def _deliver_old(self, is_text: bool, payload: bytes) -> None:
        with self._lock:
            self._history.add(unpacked(payload)[1])

    def _disorder(self) -> None:
        with self._lock:
            self._history.disorder()

    def _undelivered_bytes(self) -> int:
        return 0  # those of its room count as those of all rooms

    def _old_events(self, bytes_max: int) -> list[bytes]:
        with self._lock:
            return self._history.packed(bytes_max)


def _gap(count: int) -> bytes:
    return b"%bgap\n%b" % (_TEXT, gap_text(count).encode())


def _with_id(identifier: str, body: bytes) -> bytes:
    return b"%b%b\n%b" % (body[:1], identifier.encode(), body[1:])


class GapRoom:
    """A room without a history whose members are told of gaps, as relays see it.

    Args:
        room: The room.
        on_gap: Makes what its members here are told of a number of messages; 0: it is not known how many.
    """

    def __init__(self, room: Room, on_gap: Callable[[int], str | bytes | None]) -> None:
        self._room = room
        self._on_gap = on_gap
        # As they are: a message takes no further call.
        self._deliver = room._deliver  # pyright: ignore[reportPrivateUsage]
        self._set_relay = room._set_relay  # pyright: ignore[reportPrivateUsage]

    def _gap(self, count: int) -> None:
        said = self._on_gap(count)
        if said is not None:
            data = said.encode() if isinstance(said, str) else bytes(said)
            self._deliver(isinstance(said, str), data)
