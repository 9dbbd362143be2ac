"""Where members are noted: in this process, in memory of all workers of a machine, in Redis."""

from __future__ import annotations

import secrets
import time
from typing import TYPE_CHECKING, Any, Final

import msgspec

from citius.cluster.engines import EngineRefused, encoded
from citius.cluster.redisclient import Script, checked

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from citius.cluster.redisclient import Argument, RedisClient
    from citius.process.sharedtable import SharedTable

_NODES_S: Final = 24 * 3600
# Nodes whose members are read; a topic has a node for each worker.
_NODES_MAX: Final = 10_000
_NUMBER_BYTES: Final = 8


class MemoryPresence:
    """Members of one process."""

    def __init__(self) -> None:
        self._topics: dict[str, dict[str, Mapping[str, bytes]]] = {}

    async def write(
        self,
        topic: str,
        node: str,
        *,
        entered: Mapping[str, bytes],
        left: Sequence[str],
        everything: Mapping[str, bytes],
        ttl_s: float,
    ) -> None:
        """Note a node's members."""
        self._topics.setdefault(topic, {})[node] = dict(everything)

    async def read(self, topic: str) -> list[Mapping[bytes, bytes]]:
        """The members of each node."""
        nodes = self._topics.get(topic, {}).values()
        return [{encoded(name): said for name, said in members.items()} for members in nodes]


class SharedPresence:
    """Members of all workers of one machine."""

    def __init__(
        self, table: SharedTable, prefix: str, *, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._table = table
        self._prefix = prefix
        self._clock = clock
        self._decoder = msgspec.msgpack.Decoder(dict[str, tuple[float, dict[bytes, bytes]]])

    async def write(
        self,
        topic: str,
        node: str,
        *,
        entered: Mapping[str, bytes],
        left: Sequence[str],
        everything: Mapping[str, bytes],
        ttl_s: float,
    ) -> None:
        """Note a node's members."""
        members = {encoded(name): said for name, said in everything.items()}

        def change(old: bytes | None) -> bytes:
            nodes = self._nodes(old)
            nodes[node] = self._clock() + ttl_s, members
            if not members:
                del nodes[node]
            return msgspec.msgpack.encode(nodes)

        try:
            self._table.update(self._key(topic), change, _NODES_S)
        except ValueError as error:
            raise EngineRefused(f"members of {topic!r}: {error}") from None

    async def read(self, topic: str) -> list[Mapping[bytes, bytes]]:
        """The members of each node that is there."""
        return [members for _, members in self._nodes(self._table.get(self._key(topic))).values()]

    def _nodes(self, value: bytes | None) -> dict[str, tuple[float, dict[bytes, bytes]]]:
        nodes = {} if value is None else self._decoder.decode(value)
        now = self._clock()
        return {node: said for node, said in nodes.items() if said[0] > now}

    def _key(self, topic: str) -> bytes:
        return encoded(f"{self._prefix}:{topic}")


# The field of a hash that says which write was its last; no UTF-8, so no member has its name.
_WRITE: Final = b"\xff"
# All members of a node in place of those that are noted.
_REPLACE: Final = """
redis.call('DEL', KEYS[1])
for at = 2, #ARGV, 2 do redis.call('HSET', KEYS[1], ARGV[at], ARGV[at + 1]) end
return redis.call('PEXPIRE', KEYS[1], ARGV[1])
"""


class RedisPresence:
    """Members of all machines: a hash for each node, which Redis forgets with its node.

    Each write has a number, and finds that of the last one. If it is another (Redis was emptied, has an older
    state again, or has carried out a write late whose reply was given up), it replaces the whole hash.
    """

    def __init__(self, client: RedisClient, prefix: str) -> None:
        self._client = client
        self._prefix = prefix
        self._replace = Script(_REPLACE)
        self._written: dict[tuple[str, str], bytes] = {}
        """The number of the last write of a topic and node that Redis has confirmed."""

    async def write(
        self,
        topic: str,
        node: str,
        *,
        entered: Mapping[str, bytes],
        left: Sequence[str],
        everything: Mapping[str, bytes],
        ttl_s: float,
    ) -> None:
        """Note changes; all members, if Redis does not have those of the last write."""
        key, nodes, ttl_ms = self._node(topic, node), self._nodes(topic), round(1000 * ttl_s)
        before, number = self._written.pop((topic, node), None), secrets.token_bytes(_NUMBER_BYTES)
        calls: list[Sequence[Argument]] = [["HGET", key, _WRITE]]
        calls.append(["HSET", key, _WRITE, number, *_fields(entered)])
        if left:
            calls.append(["HDEL", key, *map(encoded, left)])
        calls += [["PEXPIRE", key, ttl_ms], ["SADD", nodes, node], ["EXPIRE", nodes, _NODES_S]]
        found = (await self._ask(calls))[0]
        if found != before or (found is None and len(everything) > len(entered)):
            pairs = [_WRITE, number, *_fields(everything)]
            call = self._replace.call([key], [ttl_ms, *pairs])
            checked(await self._replace.replies(self._client, [call]))
        self._written[topic, node] = number

    async def read(self, topic: str) -> list[Mapping[bytes, bytes]]:
        """The members of each node that is there."""
        nodes: list[bytes] = (await self._ask([["SMEMBERS", self._nodes(topic)]]))[0]
        names = [name.decode() for name in nodes][:_NODES_MAX]
        if not names:
            return []
        found = await self._ask([["HGETALL", self._node(topic, name)] for name in names])
        hashes = [_pairs(reply) for reply in found]
        for members in hashes:
            members.pop(_WRITE, None)
        gone = [name for name, members in zip(names, hashes, strict=True) if not members]
        if gone:
            # A node that comes back at this moment is noted again with its next renewal.
            await self._ask([["SREM", self._nodes(topic), *gone]])
        return [members for members in hashes if members]

    async def _ask(self, calls: Sequence[Sequence[Argument]]) -> list[Any]:
        return checked(await self._client.pipeline(calls))

    def _nodes(self, topic: str) -> bytes:
        return encoded(f"{self._prefix}:{topic}:nodes")

    def _node(self, topic: str, node: str) -> bytes:
        return encoded(f"{self._prefix}:{topic}:node:{node}")


def _fields(members: Mapping[str, bytes]) -> list[bytes]:
    """Names and values of a hash, one after the other."""
    return [part for name, said in members.items() for part in (encoded(name), said)]


def _pairs(reply: object) -> dict[bytes, bytes]:
    if isinstance(reply, dict):
        return reply  # pyright: ignore[reportUnknownVariableType]
    if isinstance(reply, list):
        return dict(zip(reply[::2], reply[1::2], strict=True))  # pyright: ignore[reportUnknownArgumentType, reportUnknownVariableType]
    return {}
