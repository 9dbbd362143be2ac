"""Where the master is that sentinels watch: asked before each connection, because it changes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from citius.redis.errors import ConnectionLost, RedisError
from citius.redis.urls import Address

if TYPE_CHECKING:
    from citius.redis.connections import Connections
    from citius.redis.urls import Target


class Sentinels:
    """The sentinels of one service. On the thread of the client's home only."""

    def __init__(self, connections: Connections, target: Target) -> None:
        self._connections, self._target = connections, target
        connections.locate = self.locate

    async def locate(self, _node: int) -> list[Target]:
        """The master, as the first sentinel says that knows it.

        Raises:
            ConnectionLost: None does.
        """
        failures: list[str] = []
        for address in self._target.addresses:
            try:
                found = await self._ask(address)
            except RedisError as error:
                failures.append(str(error))
            else:
                return [self._target.at(found)]
        raise ConnectionLost(f"{self._target}: {'; '.join(failures)}")

    async def _ask(self, address: Address) -> Address:
        connections = self._connections
        link = await connections.open_at(self._target.at(address), "sentinel")
        try:
            said: Any = await connections.ask(
                link, "SENTINEL", "GET-MASTER-ADDR-BY-NAME", self._target.service or ""
            )
        finally:
            link.close()
        if said is None:
            raise ConnectionLost(f"the sentinel {address} knows no master {self._target.service}")
        return Address(said[0], int(said[1]))
