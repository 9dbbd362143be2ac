"""What one node knows of one room: what it sends there, and what has come. ``rooms.py`` uses it."""

from __future__ import annotations

import math
from collections import OrderedDict, deque
from typing import TYPE_CHECKING, Any, Final, NamedTuple

if TYPE_CHECKING:
    from citius.cluster.records import Message

# Senders that a channel remembers; a node is one sender. Beyond that the ones that were silent longest go.
_SENDERS_MAX: Final = 4096


class Batch(NamedTuple):
    """Messages of one channel that were given their numbers together."""

    first: int
    last: int
    data: bytes
    size: int
    """What they count in the queue."""
    made_at: float
    after: int
    """The number of the last message before them that is in a batch."""


class Channel:
    """One room of this node."""

    __slots__ = (
        "complete_until", "exclude", "history", "is_begun", "is_followed", "local", "name", "number", "queue",
        "retained", "retry_at", "retry_s", "room", "seen", "sent", "waiting",
    )  # fmt: skip

    def __init__(self, name: bytes, room: Any, history: int) -> None:
        self.name = name
        self.room = room
        self.history = history
        self.sent = 0
        """The number of the last message that was sent from here, or lost here."""
        self.number = 0
        """The number of the last message that is in a batch or before one."""
        self.waiting: list[tuple[int, Message]] = []
        """Messages without a batch yet, and their numbers."""
        self.queue: deque[Batch] = deque()
        """Batches that the engine has not confirmed."""
        self.retained: deque[Batch] = deque()
        """Batches that it has."""
        self.retry_s = self.retry_at = 0.0
        """When the engine is asked again that has refused a batch, and how long that pause is."""
        self.is_followed = False
        """Whether this node is told what is sent from now on."""
        self.complete_until = math.inf
        """When the first members may have missed something, if it is not followed by then."""
        self.is_begun = False
        """Whether the engine knows this sender, as far as we know."""
        self.exclude: dict[int, Any] = {}
        """Sockets that do not get a message of theirs, by its number."""
        self.seen: OrderedDict[bytes, int] = OrderedDict()
        """The number of the last message delivered here, by sender."""
        self.local: deque[tuple[int, Message]] = deque()
        """Messages of this node that have not come back, for ``when_down="local"``."""

    def saw(self, sender: bytes, number: int) -> int | None:
        """Messages of a sender have been delivered up to ``number``; returns up to which they were before.

        ``None``: it was not known.
        """
        before = self.seen.get(sender)
        self.seen[sender] = max(before or 0, number)
        self.seen.move_to_end(sender)
        if len(self.seen) > _SENDERS_MAX:
            self.seen.popitem(last=False)
        return before
