"""The last messages of a broadcast or of a room, for clients that come back.

What a client says that it has seen has to mean something in every worker. Workers that are linked with
one another see the messages of different senders in different orders. So an identifier is a version
vector: for each worker that has sent something of the history, the number of its last message that the
client has got. A worker that such a client comes back to sends what of its own history is not in there.

Over a cluster (``citius.cluster``) all workers have one order, and an identifier is short: sender and
number of the message itself.

A gap stands in the history where messages are missing, and a client whose last message is no longer there
gets one first: it is told that it may have missed some. Tests: ``tests/server/test_broadcasts.py``,
``tests/server/test_gaps.py``, ``tests/cluster/test_servers.py``.
"""

from __future__ import annotations

import struct
from collections import Counter, deque
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable

LIVE: Final = 0
OLD: Final = 1
"""A message of the history, for a worker that has begun later."""

SENDER_CHARS: Final = 8
_GAP: Final = ""
"""In place of a sender: messages are missing here."""
# Live or old, sender, number, bytes of the identifier that the application has given (-1: none).
_HEAD: Final = struct.Struct(f"!B{SENDER_CHARS}sQi")


class Kept(NamedTuple):
    """A message of the history."""

    sender: str
    number: int
    own_id: str | None
    body: bytes
    """Of an event all lines but the identifier; of a room's message all of it, behind its kind."""

    def packed(self, kind: int) -> bytes:
        """The message as it goes to other workers."""
        own = b"" if self.own_id is None else self.own_id.encode("utf-8", "surrogatepass")
        size = -1 if self.own_id is None else len(own)
        return _HEAD.pack(kind, self.sender.encode(), self.number, size) + own + self.body


def unpacked(payload: bytes) -> tuple[int, Kept]:
    """What ``packed`` has made: whether it is live or old, and the message."""
    kind, sender, number, size = _HEAD.unpack_from(payload)
    end = _HEAD.size + max(size, 0)
    own = payload[_HEAD.size : end].decode("utf-8", "surrogatepass") if size >= 0 else None
    return kind, Kept(sender.decode(), number, own, payload[end:])


def event_with_id(identifier: str, body: bytes) -> bytes:
    """An event with its identifier, as it is sent."""
    return b"id: %b\n%b" % (identifier.encode("utf-8", "replace"), body)


def gap_text(count: int) -> str:
    """What a gap says: how many messages are missing at least, ``null`` if that is not known."""
    return f'{{"missed":{count or "null"}}}'


def gap_event(count: int) -> bytes:
    """A gap as an event."""
    return b"event: gap\ndata: %b\n\n" % gap_text(count).encode()


class History:
    """The last messages of all workers, and who has sent them. Guarded by the lock of its owner.

    Args:
        messages_max: How many are kept.
        join: Makes what is sent of an identifier and a body.
        gap: Makes what is sent of a number of missing messages.
    """

    def __init__(
        self,
        messages_max: int,
        join: Callable[[str, bytes], bytes] = event_with_id,
        gap: Callable[[int], bytes] = gap_event,
    ) -> None:
        self.messages_max = messages_max
        self._join = join
        self._gap = gap
        self._forgotten = ("", 0)
        """Sender and number of the message that was dropped last."""
        self.is_ordered = False
        """Whether all workers add the same messages in the same order."""
        self._disordered = 0
        """How many further messages it takes until none is left whose order may be another elsewhere."""
        self._kept: deque[tuple[Kept, bytes]] = deque()
        self._counts: Counter[str] = Counter()
        self._seen: dict[str, int] = {}
        """The version vector: the last number of each worker that the history has a message of."""

    def add(self, kept: Kept) -> bytes:
        """Keep a message; returns it as it is sent, with its identifier."""
        # A message that has come with the history of another worker comes by itself too.
        is_new = kept.number > self._seen.get(kept.sender, 0)
        if is_new:
            if len(self._kept) == self.messages_max:
                self._forget()
            self._seen[kept.sender] = kept.number
            self._counts[kept.sender] += 1
            self._disordered = max(0, self._disordered - 1)
        identifier = self._identifier(kept) if kept.own_id is None else kept.own_id
        data = self._join(identifier, kept.body)
        if is_new:
            self._kept.append((kept, data))
        return data

    def add_old(self, kept: Kept) -> None:
        """Keep a message of another worker's history; in a full one only what is newer than what is here.

        Histories of several workers come one after the other: the second may have what its worker has sent
        since the first was taken, which does not come again. What was dropped stays so, and so does what may
        have been, of an unknown sender.
        """
        seen = self._seen.get(kept.sender)
        is_newer = seen is not None and kept.number > seen
        if is_newer or len(self._kept) < self.messages_max:
            self.add(kept)

    def add_gap(self, count: int) -> bytes:
        """Messages are missing here; returns what is sent of that."""
        data = self._gap(count)
        if self._kept:
            if len(self._kept) == self.messages_max:
                self._forget()
            self._kept.append((Kept(_GAP, 0, None, b""), data))
        return data

    def missed_since(self, known: str | None) -> list[bytes]:
        """What a client has not got that has got ``known`` last.

        If that is not here any more, it is a gap and all that is here.
        """
        if not known:
            return []
        for index in range(len(self._kept) - 1, -1, -1):
            if self._kept[index][0].own_id == known:
                return [data for _, data in list(self._kept)[index + 1 :]]
        seen = _vector(known)
        return self._after(seen) if self.is_ordered else self._not_seen(seen)

    def _not_seen(self, seen: dict[str, int]) -> list[bytes]:
        """What is not in a version vector, in a history whose order is another elsewhere."""
        kept = list(self._kept)
        oldest: dict[str, int] = {}
        last = -1
        for index, (one, _) in enumerate(kept):
            oldest.setdefault(one.sender, one.number)
            if one.number <= seen.get(one.sender, 0) and one.sender != _GAP:
                last = index
        holes = sum(
            max(0, oldest[sender] - number - 1)
            for sender, number in seen.items()
            if sender in oldest
        )
        is_next = len(seen) == 1 and self._forgotten in seen.items()
        missed = [
            data
            for index, (one, data) in enumerate(kept)
            if (index > last if one.sender == _GAP else one.number > seen.get(one.sender, 0))
        ]
        # What is newer than a message that is here is here, too.
        return missed if not holes and (last >= 0 or is_next) else [self._gap(holes), *missed]

    def disorder(self) -> None:
        """The engine has lost its memory: what was sent again may stand in another order elsewhere."""
        self._disordered = self.messages_max

    def _after(self, seen: dict[str, int]) -> list[bytes]:
        """What comes after the message that ``seen`` names; a gap and all of it if it is not there any more.

        In a disordered history that is what other senders have sent before it, too: a client drops what
        it has got already by the identifiers.
        """
        kept = list(self._kept)
        for index in range(len(kept) - 1, -1, -1):
            known = kept[index][0]
            if seen.get(known.sender) == known.number:
                before = kept[:index] if self._disordered else []
                others = [data for one, data in before if one.sender != known.sender]
                return others + [data for _, data in kept[index + 1 :]]
        everything = [data for _, data in kept]
        is_next = self._forgotten in seen.items()
        is_ahead = any(0 < self._seen.get(one, 0) < number for one, number in seen.items())
        # A message that has not come here yet is no reason for one: what follows it will come.
        return everything if is_next or is_ahead else [self._gap(0), *everything]

    def packed(self, bytes_max: int) -> list[bytes]:
        """The last messages that together have at most so many bytes, for other workers."""
        found: list[bytes] = []
        for kept, _ in reversed(self._kept):
            if kept.sender == _GAP:
                continue
            one = kept.packed(OLD)
            bytes_max -= len(one)
            if bytes_max < 0:
                break
            found.append(one)
        return found[::-1]

    def _forget(self) -> None:
        (oldest, _) = self._kept.popleft()
        if oldest.sender == _GAP:
            return
        self._forgotten = oldest.sender, oldest.number
        self._counts[oldest.sender] -= 1
        if not self._counts[oldest.sender]:
            # A client that has not got the worker's next event has to say nothing of it to get that.
            del self._counts[oldest.sender], self._seen[oldest.sender]

    def _identifier(self, kept: Kept) -> str:
        if self.is_ordered:
            return f"{kept.sender}-{kept.number:x}"
        return ".".join(f"{sender}-{number:x}" for sender, number in self._seen.items())


def _vector(identifier: str) -> dict[str, int]:
    """The version vector that an identifier is; an empty one if it is none."""
    seen: dict[str, int] = {}
    for part in identifier.split("."):
        sender, _, number = part.partition("-")
        if len(sender) != SENDER_CHARS or not 0 < len(number) <= 16:
            return {}
        try:
            seen[sender] = int(number, 16)
        except ValueError:
            return {}
    return seen
