"""A message log in the memory of one process: for tests of several nodes in one, and for one node alone."""

from __future__ import annotations

import asyncio
from collections import deque
from typing import TYPE_CHECKING

from citius.cluster.engines import EngineAway, Outcome

if TYPE_CHECKING:
    from collections.abc import Sequence

    from citius.cluster.engines import Entry, Sink


class Hub:
    """What the logs of several nodes share. It can be taken away, and lose its memory."""

    def __init__(self, records_max: int = 1000) -> None:
        self.records_max = records_max
        self.is_away = False
        self.logs: dict[bytes, deque[bytes]] = {}
        self.counts: dict[bytes, int] = {}
        """Records that a channel has ever had."""
        self.lasts: dict[tuple[bytes, bytes], int] = {}
        self.nodes: list[MemoryLog] = []

    def leave(self) -> None:
        """Be away."""
        self.is_away = True
        for node in self.nodes:
            node.lose()

    def come_back(self, *, is_empty: bool = False) -> None:
        """Be back, with or without memory."""
        if is_empty:
            self.logs.clear()
            self.counts.clear()
            self.lasts.clear()
            for node in self.nodes:
                node.forget_positions()
        self.is_away = False
        for node in self.nodes:
            node.changed.set()


class MemoryLog:
    """One node's access to a hub."""

    def __init__(self, hub: Hub) -> None:
        self._hub = hub
        self._positions: dict[bytes, int] = {}
        self._wanted: dict[bytes, int] = {}
        self._sink: Sink | None = None
        self._is_connected = False
        self.changed = asyncio.Event()
        hub.nodes.append(self)

    def follow(self, channel: bytes, history: int) -> None:
        """Tell the records of a channel."""
        self._wanted[channel] = history
        self.changed.set()

    async def run(self, sink: Sink) -> None:
        """Tell what the hub has."""
        self._sink = sink
        while True:
            self.changed.clear()
            if not self._hub.is_away:
                for channel in self._wanted:
                    self._catch_up(channel, sink)
                if not self._is_connected:
                    self._is_connected = True
                    sink.connected()
            await self.changed.wait()

    def lose(self) -> None:
        """The hub is away."""
        if self._is_connected and self._sink is not None:
            self._is_connected = False
            self._sink.disconnected(EngineAway("the hub is away"))

    def forget_positions(self) -> None:
        """The hub's channels begin anew."""
        for channel in self._positions:
            self._positions[channel] = 0
            if self._sink is not None:
                self._sink.restarted(channel)

    def _catch_up(self, channel: bytes, sink: Sink) -> None:
        count, kept = self._hub.counts.get(channel, 0), self._hub.logs.get(channel, ())
        position = self._positions.get(channel)
        is_old = position is None
        if position is None:
            position = count - min(self._wanted[channel], len(kept))
        position = max(position, count - len(kept))
        self._positions[channel] = count
        for data in list(kept)[position - (count - len(kept)) :]:
            sink.record(channel, data, is_old=is_old)
        lasts = self._hub.lasts.items()
        sink.told(channel, {sender: last for (where, sender), last in lasts if where == channel})

    async def append(self, entries: Sequence[Entry]) -> list[Outcome]:
        """Append records."""
        await asyncio.sleep(0)
        if self._hub.is_away:
            raise EngineAway("the hub is away")
        outcomes = [self._append(entry) for entry in entries]
        for node in self._hub.nodes:
            node.changed.set()
        return outcomes

    def _append(self, entry: Entry) -> Outcome:
        hub, place = self._hub, (entry.channel, entry.sender)
        last = hub.lasts.get(place)
        if last is None and not entry.is_begin:
            return Outcome.UNKNOWN
        if last is not None:
            if last >= entry.last:
                return Outcome.KEPT
            if last != entry.after and not entry.is_begin:
                return Outcome.MISSING
        hub.lasts[place] = entry.last
        hub.logs.setdefault(entry.channel, deque(maxlen=hub.records_max)).append(entry.data)
        hub.counts[entry.channel] = hub.counts.get(entry.channel, 0) + 1
        return Outcome.KEPT

    async def close(self) -> None:
        """Nothing to let go of."""
        if self in self._hub.nodes:
            self._hub.nodes.remove(self)
