"""Which nodes a cluster has, and which of them serves which slots.

The slots are read when the client opens, when a node says that a key is elsewhere, and while a node cannot be
connected or is silent: then a replica may take its place.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any, cast

from citius.observability import logging
from citius.redis.errors import ConnectionLost, RedisError
from citius.redis.urls import Address

if TYPE_CHECKING:
    from collections.abc import Iterator

    from citius.redis.connections import Connections
    from citius.redis.links import Link
    from citius.redis.urls import Target

_SLOTS = 16384
# Between two looks at the slots.
_PAUSE_S = 0.2
# How long a node without slots is kept that another one has named: slots are being moved to it.
_NAMED_S = 60.0


def _host(node: list[Any], link: Link) -> str:
    """The host of a node of ``CLUSTER SLOTS``: its name, port, identifier, and what else is known."""
    name: str | None = node[0]
    if name == "?":
        # Nodes are to be called by names, and this one has none.
        known: Any = node[3] if len(node) > 3 else {}
        pairs: dict[str, str] = known or {}
        if isinstance(known, list):
            listed = cast("list[str]", known)
            pairs = dict(zip(listed[::2], listed[1::2], strict=False))
        name = pairs.get("ip")
    # One that does not know its own name is the one that was asked.
    return name or link.address.host


def _ranges(slots: list[Any], link: Link) -> Iterator[tuple[int, int, str, int]]:
    """What ``CLUSTER SLOTS`` says: the first and the last slot, and where their master is.

    Raises:
        ValueError: One is no slot, or no address.
    """
    for first, last, master, *_ in slots:
        if not 0 <= first <= last < _SLOTS:
            raise ValueError(f"{first} to {last} are no slots")
        where = Address.of(_host(master, link), master[1])
        yield first, last, where.host, where.port


class Cluster:
    """The nodes of a cluster. On the thread of the client's home only."""

    def __init__(self, connections: Connections, target: Target) -> None:
        self._connections, self._target = connections, target
        self._core, self._home = connections.core, connections.home
        self._masters: set[int] = set()
        self._named: dict[int, float] = {}
        self._is_looking = self._is_wanted = False
        connections.locate = self.locate
        connections.on_failure = lambda _node: self.look()
        # What any node may do has waited for the first that is connected.
        connections.on_shared = lambda: self._core.route_again(0)

    async def locate(self, node: int) -> list[Target]:
        """Where a node is; number 0 is any of those that the URL names."""
        address = self._core.address(node)
        if not address:
            return [self._target.at(address) for address in self._target.addresses]
        host, _, port = address.rpartition(":")
        try:
            return [self._target.at(Address.of(host, port))]
        except ValueError:
            raise ConnectionLost(
                f"a node of the cluster has named {address!r}, which is no address"
            ) from None

    def keep(self, node: int) -> None:
        """Have connections to a node that another one has named."""
        self._named[node] = time.monotonic() + _NAMED_S
        self._masters.add(node)
        self._connections.keep(node)

    async def read(self, link: Link) -> None:
        """Read the slots from a node.

        Raises:
            RedisError: It does not say them.
        """
        said = await self._connections.ask(
            link, "CLUSTER", "SLOTS", read=lambda slots: [*_ranges(slots, link)]
        )
        if not said:
            raise ConnectionLost(f"{link.address}: no node of the cluster has slots")
        ranges = [
            (first, last, self._core.node(f"{host}:{port}")) for first, last, host, port in said
        ]
        masters = {node for _, _, node in ranges}
        self._core.set_slots(ranges)
        now = time.monotonic()
        self._named = {node: until for node, until in self._named.items() if until > now}
        # What waits for one of those that cannot be connected goes where its key is now.
        unreachable = [node for node in self._named if not self._core.is_connected(node)]
        masters.update(self._named)
        for node in masters:
            self._connections.keep(node)
        gone, self._masters = self._masters - masters, masters
        for node in gone:
            self._connections.drop(node)
        for node in (0, *gone, *unreachable):
            self._core.route_again(node)

    def look(self) -> None:
        """Read the slots anew, not too often."""
        self._is_wanted = True
        if not self._is_looking:
            self._is_looking = True
            self._connections.spawn("slots", self._look())

    async def _look(self) -> None:
        try:
            while self._is_wanted:
                self._is_wanted = False
                await self._look_once()
                await self._home.sleep(_PAUSE_S)
        finally:
            self._is_looking = False

    async def _look_once(self) -> None:
        links = [link for link in self._connections.links if link.kind == "shared"]
        failure: BaseException | None = None
        # Those that have said something lately first: one may be silent.
        for link in sorted(links, key=lambda link: (link.is_doubted, link.core.silent_ms)):
            try:
                return await self.read(link)
            except RedisError as error:
                failure = error
        try:
            # No node is connected: one that the URL names may be there.
            link = await self._connections.open(0, "probe")
            try:
                return await self.read(link)
            finally:
                link.close()
        except RedisError as error:
            failure = error
        logging.warning(f"Redis: the slots of the cluster cannot be read: {failure}")
