"""The few things that the cluster asks of a Redis client.

``ownredis.py`` does them by ``citius.redis``; another client is used by an object with the methods of
:class:`RedisClient`. Every call is bounded in time, and ends with :class:`EngineAway` if Redis does not
respond; what Redis refuses is a :class:`Refusal` among the replies. Texts of errors never have the
password of the URL.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias, TypeGuard
from urllib.parse import urlsplit

from citius.cluster.engines import EngineRefused

if TYPE_CHECKING:
    from collections.abc import Sequence

    from citius.redis.client import Redis

Argument: TypeAlias = "bytes | str | int | float"


class Refusal(Exception):
    """Redis has responded with an error."""


class NoScript(Refusal):
    """It does not know a script: NOSCRIPT."""


class RedisSubscriber(Protocol):
    """A connection that receives what is published."""

    async def subscribe(self, channels: Sequence[bytes]) -> None:
        """Receive what is published on these channels too."""

    async def ping(self) -> None:
        """Ask for a sign of life, which ``next`` returns as ``(b"", b"")``."""

    async def next(self, wait_s: float) -> tuple[bytes, bytes] | None:
        """The next channel and message; ``None`` if there was none for so long."""

    async def close(self) -> None:
        """Let go of the connection."""


class RedisPipelines(Protocol):
    """Commands to one Redis or Valkey. Replies are bytes, integers, lists, ``None`` and :class:`Refusal`."""

    async def pipeline(self, commands: Sequence[Sequence[Argument]]) -> list[Any]:
        """The replies to several commands, sent at once.

        Raises:
            EngineAway: It is not known which of them have been carried out.
        """
        ...


class RedisClient(RedisPipelines, Protocol):
    """Commands to one Redis or Valkey, and subscriptions to its channels."""

    async def subscriber(self) -> RedisSubscriber:
        """A connection for what is published."""
        ...

    async def close(self) -> None:
        """Let go of all connections."""


def checked(replies: list[Any]) -> list[Any]:
    """Replies, none of which is a refusal.

    Raises:
        EngineRefused: Redis has refused a command.
    """
    for reply in replies:
        if isinstance(reply, Refusal):
            raise EngineRefused(str(reply))
    return replies


async def command(client: RedisPipelines, *arguments: Argument) -> Any:
    """The reply to one command.

    Raises:
        EngineAway: There was none, or an error.
    """
    (reply,) = checked(await client.pipeline([arguments]))
    return reply


class Script:
    """A script that is called by its hash, and loaded where it is not known."""

    def __init__(self, source: str) -> None:
        from hashlib import sha1

        self.source = source
        self._hash = sha1(source.encode(), usedforsecurity=False).hexdigest()

    def call(self, keys: Sequence[Argument], arguments: Sequence[Argument]) -> list[Argument]:
        """The command that calls it."""
        return ["EVALSHA", self._hash, len(keys), *keys, *arguments]

    async def replies(
        self, client: RedisPipelines, calls: Sequence[list[Argument]], *, is_ordered: bool = True
    ) -> list[Any]:
        """The replies to several calls, or to other commands among them.

        Where the script was not known, ``is_ordered`` repeats what came behind the first such call as well,
        which another node may have made known in between: those calls may be carried out twice.

        Raises:
            EngineAway: It is not known which of them have been carried out.
        """
        replies = await client.pipeline(calls)
        unknown = [at for at, one in enumerate(replies) if isinstance(one, NoScript)]
        if unknown:
            if is_ordered:
                # What came after a call that was not carried out has to wait for it.
                unknown = list(range(unknown[0], len(calls)))
            again = await client.pipeline(
                [["SCRIPT", "LOAD", self.source], *(calls[at] for at in unknown)]
            )
            for at, reply in zip(unknown, again[1:], strict=True):
                replies[at] = reply
        return replies


def is_own(client: object) -> TypeGuard[Redis[bytes]]:
    """Whether it is a client of ``citius.redis``."""
    own = sys.modules.get("citius.redis.client")
    return own is not None and isinstance(client, own.Redis)


def is_redis(url: str) -> bool:
    """Whether a URL is one of Redis."""
    return "://" in url and urlsplit(url).scheme in _SCHEMES


_SCHEMES = {"redis", "rediss", "unix", "redis+sentinel", "rediss+sentinel"}
