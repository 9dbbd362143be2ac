"""What the cluster needs of an engine that carries messages, and what all engines have in common.

A :class:`MessageLog` keeps for each channel a sequence of records. It is told records by ``append``,
and tells its :class:`Sink` those of all nodes, its own too: for each channel in one order, the same for
all nodes, each record once, none left out unless it says so (``gap``). Implementations:
``memorylog.py`` (one process), ``redislog.py``, ``natslog.py``. Workers of one machine without an
engine are linked by ``serving/rooms.py``.

Everything here happens on the thread of one event loop.
"""

from __future__ import annotations

import asyncio
import random
import re
from enum import Enum
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol

from citius.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

BACKOFF_S: Final = 0.05
"""The first pause before an engine is connected to again; each further one is twice as long."""
BACKOFF_S_MAX: Final = 2.0
"""The longest of them. Origin: an engine that is back is used again before its clients' own timeouts."""

# How long a task that was cancelled may go on before it is cancelled again.
_CANCEL_AGAIN_S: Final = 0.1


_LASTS_S_MAX: Final = 366 * 24 * 3600
"""What is kept for longer is not for an engine of a cluster, and its milliseconds may be no number there."""


def check_lasts(what: str, option: str, seconds: float) -> None:
    """Refuse a time that an engine cannot keep something for.

    Raises:
        ConfigError: It is shorter than a millisecond, or longer than a year.
    """
    if not 0.001 <= seconds <= _LASTS_S_MAX:
        raise ConfigError(f"{what}: {option}={seconds}: expected a millisecond, 0.001, to a year")


class EngineAway(Exception):
    """The engine did not respond, or not as it should. Whether it has done what it was told is not known."""


class EngineRefused(EngineAway):
    """The engine has responded that it does not do that."""


def encoded(name: str) -> bytes:
    """A name that an application gives as bytes: any text, also one with half of a surrogate pair.

    JSON has such texts, and a client's text may be part of a name.
    """
    return name.encode("utf-8", "surrogatepass")


class Entry(NamedTuple):
    """A record to be appended to a channel."""

    channel: bytes
    sender: bytes
    first: int
    last: int
    """The numbers of its first and last message, of this sender and channel."""
    is_begin: bool
    """Whether the log need not have the record of this sender and channel that ends before ``first``."""
    data: bytes
    after: int
    """The number of the message before ``first``: ``first - 1`` unless some in between were lost here."""


class Outcome(Enum):
    """What has become of an entry."""

    KEPT = "kept"
    """It is in the log, now or since before."""
    UNKNOWN = "unknown sender"
    """It is not: the log has no record of this sender, though it should. It has lost its memory."""
    MISSING = "missing before"
    """It is not: a record that comes before it is not in the log."""
    FAILED = "failed"
    """It is not: the engine has refused it, because it has no memory for instance."""


class Sink(Protocol):
    """What a log tells."""

    def record(self, channel: bytes, data: bytes, *, is_old: bool) -> bool:
        """A record, ``is_old`` if it was there before; ``False``: it is none of ours."""
        ...

    def told(self, channel: bytes, senders: Mapping[bytes, int]) -> None:
        """The last numbers of the senders of what has been told, or is no longer there to be told.

        It is told before a channel is followed, and each time that records may have been missed, behind those
        that there are: what a sender has sent up to its number, and was not told, is lost for this node.
        """

    def restarted(self, channel: bytes) -> None:
        """The engine has lost records of a channel, or has gone back in time; senders send theirs again."""

    def gap(self, channel: bytes, count: int) -> None:
        """Records of a channel may be lost for this node, so many at least.

        It is for logs that cannot say it by ``told``.
        """

    def connected(self) -> None:
        """The engine is there, all channels are followed, and have been caught up with."""

    def disconnected(self, error: Exception) -> None:
        """The engine is away; the log goes on trying."""


class MessageLog(Protocol):
    """An engine that carries messages."""

    def follow(self, channel: bytes, history: int) -> None:
        """Tell the records of a channel from now on, and up to so many that there are already."""

    async def run(self, sink: Sink) -> None:
        """Connect, catch up, follow, connect again, until it is cancelled."""

    async def append(self, entries: Sequence[Entry]) -> list[Outcome]:
        """Append records, in their order.

        Raises:
            EngineAway: It is not known of any whether it has been appended.
        """
        ...

    async def close(self) -> None:
        """Let go of connections."""


class Backoff:
    """Pauses that grow, with a random part, so that nodes do not come back at once."""

    def __init__(self) -> None:
        self._next_s = BACKOFF_S

    def reset(self) -> None:
        """The engine has responded."""
        self._next_s = BACKOFF_S

    async def wait(self) -> None:
        """Wait before the next try."""
        pause_s = self._next_s * random.uniform(0.5, 1.0)
        self._next_s = min(2 * self._next_s, BACKOFF_S_MAX)
        await asyncio.sleep(pause_s)


async def cancel(tasks: Collection[asyncio.Task[None]]) -> None:
    """End tasks that call an engine.

    A client may raise an error of its own in place of ``CancelledError``, which a task takes for an
    outage, and goes on; redis-py does when it is cancelled as a connection comes back. So they are
    cancelled until they end.
    """
    while left := [task for task in tasks if not task.done()]:
        for task in left:
            task.cancel()
        await asyncio.wait(left, timeout=_CANCEL_AGAIN_S)


def without_credentials(text: object) -> str:
    """A text, such as an error's, without the user names and passwords of URLs in it.

    They are what stands in front of the last ``@`` of a word, also where a password should be quoted and is
    not, or the URL is none, and what a query calls ``password``.
    """
    said = re.sub(r"(?<=://)\S*@|(?<!\S)(?!\S*://)\S*@", "***@", str(text))
    return re.sub(r"(?<=password=)[^&\s]*", "***", said)
