"""Nodes of a cluster in one process, with rooms that note what was delivered."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, Self

from citius.cluster.outage import all_given_back
from citius.cluster.ownredis import OwnRedis, RedisByLoop
from citius.cluster.records import key_of
from citius.cluster.rooms import ClusterRooms
from citius.cluster.stats import Stats
from citius.redis import Redis

PATIENT_S = 20.0
"""The time-out of what is asked of an engine in tests where it is there."""

KEY = key_of(None, "test")


class FakeRoom:
    """What the cluster sees of a room, with what was delivered."""

    def __init__(self, history: int = 0) -> None:
        self.got: list[str] = []
        self.old: list[str] = []
        self.excluded: list[object] = []
        self.relay: Any = None
        self._history_max = history

    def _set_relay(self, relay: Any, is_ordered: bool = False) -> None:
        self.relay = relay

    def _deliver(self, is_text: bool, payload: bytes, exclude: object = None) -> None:
        self.got.append(payload.decode())
        self.excluded.append(exclude)

    def _deliver_old(self, is_text: bool, payload: bytes) -> None:
        self.old.append(payload.decode())

    def send(self, text: str, exclude: object = None) -> int:
        return self.relay(True, text.encode(), exclude)


class Node:
    """One node: rooms by their names, over a message log."""

    def __init__(
        self, log: Any, names: list[str], history: int = 0, key: bytes = KEY, **options: Any
    ) -> None:
        self.stats = Stats()
        self.cluster = ClusterRooms(log, key, self.stats, **options)
        self.rooms = {name: FakeRoom(history) for name in names}
        for name, room in self.rooms.items():
            self.cluster.share(name, room)

    async def __aenter__(self) -> Self:
        await self.cluster.start(5)
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.cluster.stop()


async def until(condition: Callable[[], Any], what: str = "") -> None:
    async with asyncio.timeout(20):
        while not condition():
            await asyncio.sleep(0.002)


_clients: list[RedisByLoop | OwnRedis] = []


def client(url: str, timeout_s: float = 1.0, *, is_own: bool = False) -> RedisByLoop | OwnRedis:
    """A client that `run` closes: of a URL, or one of the application."""
    made: RedisByLoop | OwnRedis
    if is_own:
        own = Redis(url, timeout_s=timeout_s, connect_timeout_s=timeout_s)
        made = OwnRedis(own, is_opened_here=True, timeout_s=timeout_s)
    else:
        made = RedisByLoop(url, timeout_s=timeout_s)
    _clients.append(made)
    return made


def run(steps: Callable[[], Awaitable[None]]) -> None:
    """Run steps on a loop of their own, and close what they have opened."""

    async def go() -> None:
        try:
            await steps()
        finally:
            await all_given_back()
            for one in _clients:
                await one.close()
            _clients.clear()

    asyncio.run(go())
