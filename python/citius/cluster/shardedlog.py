"""Several message logs as one: each channel is in one of them, by its name (rendezvous hashing).

So a log more or less moves only the channels that it gets or had. All nodes have to name the same logs.
"""

from __future__ import annotations

import asyncio
from hashlib import blake2b
from typing import TYPE_CHECKING

from citius.cluster.engines import EngineAway, Outcome

if TYPE_CHECKING:
    from collections.abc import Sequence

    from citius.cluster.engines import Entry, MessageLog, Sink


class _Part:
    """One log's sink: connected is connected when all are."""

    def __init__(self, sink: Sink, parts: list[_Part]) -> None:
        self._parts = parts
        self.is_connected = False
        self.record, self.told = sink.record, sink.told
        self.restarted, self.gap = sink.restarted, sink.gap
        self._sink = sink

    def connected(self) -> None:
        self.is_connected = True
        if all(part.is_connected for part in self._parts):
            self._sink.connected()

    def disconnected(self, error: Exception) -> None:
        self.is_connected = False
        self._sink.disconnected(error)


class ShardedLog:
    """One node's access to several logs.

    Args:
        logs: What they are.
        names: What they are called, which decides what is in each.
    """

    def __init__(self, logs: Sequence[MessageLog], names: Sequence[str]) -> None:
        self._logs = list(logs)
        # Without credentials, which nodes may have different ones of.
        self._names = [blake2b(name.rpartition("@")[2].encode()).digest() for name in names]

    def log_of(self, channel: bytes) -> int:
        """Which log a channel is in."""
        scores = [blake2b(channel, key=name, digest_size=8).digest() for name in self._names]
        return scores.index(max(scores))

    def follow(self, channel: bytes, history: int) -> None:
        """Tell the records of a channel."""
        self._logs[self.log_of(channel)].follow(channel, history)

    async def run(self, sink: Sink) -> None:
        """Follow all of them."""
        parts: list[_Part] = []
        parts += [_Part(sink, parts) for _ in self._logs]
        async with asyncio.TaskGroup() as group:
            for log, part in zip(self._logs, parts, strict=True):
                group.create_task(log.run(part))

    async def append(self, entries: Sequence[Entry]) -> list[Outcome]:
        """Append records, to all logs at once; those of a log that is away have failed."""
        places: dict[int, list[int]] = {}
        for at, entry in enumerate(entries):
            places.setdefault(self.log_of(entry.channel), []).append(at)
        outcomes = [Outcome.FAILED] * len(entries)

        async def append(log: MessageLog, its: list[int]) -> bool:
            try:
                made = await log.append([entries[at] for at in its])
            except EngineAway:
                return False
            for at, outcome in zip(its, made, strict=True):
                outcomes[at] = outcome
            return True

        done = await asyncio.gather(
            *(append(self._logs[number], its) for number, its in places.items())
        )
        if not any(done):
            raise EngineAway("none of the engines responds")
        return outcomes

    async def close(self) -> None:
        """Let go of connections."""
        await asyncio.gather(*(log.close() for log in self._logs))
