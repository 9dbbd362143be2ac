"""Where the master is that sentinels watch: asked before each connection, and told when it changes.

One sentinel is listened to, because a master whose place another one has been given on purpose goes on for
seconds as if nothing had happened, and what it has confirmed meanwhile is lost.
"""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, Any

from citius.errors import ConfigError
from citius.redis.errors import ConnectionLost, RedisError, ServerError
from citius.redis.urls import Address

if TYPE_CHECKING:
    from citius.redis.connections import Connections
    from citius.redis.links import Link
    from citius.redis.urls import Target

_SWITCHED = "+switch-master"
_LOCKED = "the sentinel {} asks for a password: sentinel_password=… in the query of the URL"
# Between two attempts to listen to a sentinel, at most.
_PAUSE_S = 1.0


class Sentinels:
    """The sentinels of one service. On the thread of the client's home only."""

    def __init__(self, connections: Connections, target: Target) -> None:
        self._connections, self._target = connections, target
        # The one that is listened to comes first, those that have not responded come last.
        self._order = list(target.addresses)
        self._left: Address | None = None
        """Where the master was before, as the one says that is listened to; others may learn it later."""
        connections.locate = self.locate
        connections.refusal, connections.attempts_max = self._refusal, len(self._order)
        connections.spawn("sentinels", self._listen())

    async def locate(self, _node: int) -> list[Target]:
        """The master, as the first sentinel says that knows it.

        Raises:
            ConnectionLost: None does.
        """
        failures: list[str] = []
        for address in tuple(self._order):
            try:
                link = await self._connections.open_at(self._target.at(address), "sentinel")
                try:
                    found = await self._ask(link)
                finally:
                    link.close()
            except RedisError as error:
                is_locked = isinstance(error, ServerError) and error.code == "NOAUTH"
                failures.append(_LOCKED.format(address) if is_locked else str(error))
                self._ask_last(address)
            else:
                return [self._target.at(found)]
        raise ConnectionLost(f"{self._target}: {'; '.join(failures)}")

    async def _ask(self, link: Link) -> Address:
        def read(said: Any) -> Address:
            if said is None:
                raise ConnectionLost(
                    f"the sentinel {link.address} knows no master {self._target.service}"
                )
            return Address.of(said[0], said[1])

        words = "SENTINEL", "GET-MASTER-ADDR-BY-NAME", self._target.service or ""
        return await self._connections.ask(link, *words, read=read)

    def _ask_first(self, address: Address) -> None:
        self._order.remove(address)
        self._order.insert(0, address)

    def _ask_last(self, address: Address) -> None:
        self._order.remove(address)
        self._order.append(address)

    def _refusal(self, link: Link, _n_targets: int) -> str | None:
        """Why a connection to what a sentinel has named is none to the master."""
        if link.address == self._left:
            return "another server is the master now"
        if link.server.role == "master":
            return None
        # The sentinel does not know it yet; another one may.
        self._ask_last(self._order[0])
        return "it is a replica"

    # --- changes ---

    async def _listen(self) -> None:
        home = self._connections.home
        while True:
            for address in tuple(self._order):
                try:
                    await self._listen_to(address)
                except (RedisError, ConfigError):
                    continue
                else:
                    break
            # Not all clients of a sentinel that has restarted at once.
            await home.sleep(_PAUSE_S * (0.5 + random.random() / 2))

    async def _listen_to(self, address: Address) -> None:
        connections = self._connections
        link = await connections.open_at(self._target.at(address), "sentinel", on_push=self._take)
        try:
            link.core.send("SUBSCRIBE", _SWITCHED)
            master = await self._ask(link)
            self._ask_first(address)
            connections.leave_others(master)
            await connections.until_lost(link)
        finally:
            self._left = None
            link.close()

    def _take(self, push: list[Any]) -> None:
        if push[0] != b"message":
            return
        name, host, port, new_host, new_port = push[2].decode(errors="replace").split(" ")
        if name == self._target.service:
            left, master = Address.of(host, port), Address.of(new_host, new_port)
            self._left = left
            self._connections.leave_others(master)
