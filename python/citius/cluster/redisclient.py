"""The few things that the cluster asks of a Redis client, and how redis-py does them.

``RedisPy`` adapts ``redis.asyncio``; another client is used by an object with the methods of
:class:`RedisClient`. Every call is bounded in time, and ends with :class:`EngineAway` if Redis does not
respond; what Redis refuses is a :class:`Refusal` among the replies. Texts of errors never have the
password of the URL.
"""

from __future__ import annotations

import sys
import threading
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final, Protocol, TypeAlias, TypeGuard
from urllib.parse import urlsplit

from citius.cluster.engines import EngineAway, EngineRefused, without_credentials
from citius.cluster.patience import Patience
from citius.errors import ConfigError
from citius.unknown_options import known_options

if TYPE_CHECKING:
    from collections.abc import Sequence

    from citius.redis.client import Redis

TIMEOUT_S: Final = 2.0
"""How long a command may take. Origin: ten times a round trip of 200 ms."""

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


async def command(client: RedisPipelines, *arguments: Argument) -> Any:
    """The reply to one command.

    Raises:
        EngineAway: There was none, or an error.
    """
    (reply,) = await client.pipeline([arguments])
    if isinstance(reply, Refusal):
        raise EngineRefused(str(reply))
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

    async def replies(self, client: RedisPipelines, calls: Sequence[list[Argument]]) -> list[Any]:
        """The replies to several calls, or to other commands among them.

        Raises:
            EngineAway: It is not known which of them have been carried out.
        """
        replies = await client.pipeline(calls)
        first = next((at for at, one in enumerate(replies) if isinstance(one, NoScript)), None)
        if first is not None:
            # In order: what came after a call that was not carried out has to wait for it.
            again = await client.pipeline([["SCRIPT", "LOAD", self.source], *calls[first:]])
            replies = [*replies[:first], *again[1:]]
        return replies


@known_options
class RedisPy:
    """``redis.asyncio`` as a :class:`RedisClient`.

    Args:
        url: ``redis://``, ``rediss://`` (TLS; ``?ssl_ca_certs=FILE&ssl_certfile=FILE&ssl_keyfile=FILE``) or
            ``unix://``, with user and password if there are any.
        timeout_s: How long connecting, and a pipeline, may take.

    Raises:
        ConfigError: redis-py is not installed, or the URL is wrong.
    """

    def __init__(self, url: str, *, timeout_s: float = TIMEOUT_S) -> None:
        self._redis = _redis()
        self._timeout_s = timeout_s
        options: dict[str, Any] = {
            "socket_connect_timeout": timeout_s, "retry": None, "health_check_interval": 0,
        }  # fmt: skip
        if urlsplit(url).scheme != "unix":
            options["socket_keepalive"] = True
        try:
            self.client: Any = self._redis.asyncio.Redis.from_url(url, **options)
        except (ValueError, TypeError) as error:
            # An error of the port quotes it: of a password that has a / in it, its first part.
            why = "its port is no number" if "Port" in str(error) else without_credentials(error)
            raise ConfigError(
                f"{without_credentials(url)} is no URL of a Redis: {why}; expected redis://, rediss:// or "
                "unix://, with a password in which @, : and / are quoted (%40, %3A, %2F)"
            ) from None
        self.name = without_credentials(url)

    @classmethod
    def of(cls, client: object, *, timeout_s: float = TIMEOUT_S) -> RedisPy:
        """Take over a ``redis.asyncio.Redis`` of the application."""
        made = cls.__new__(cls)
        made._redis, made._timeout_s, made.client, made.name = _redis(), timeout_s, client, "redis"
        return made

    async def pipeline(self, commands: Sequence[Sequence[Argument]]) -> list[Any]:
        """The replies to several commands."""
        pipe = self.client.pipeline(transaction=False)
        for one in commands:
            pipe.execute_command(*one)
        try:
            async with Patience(self._timeout_s):
                replies = await pipe.execute(raise_on_error=False)
        except (OSError, TimeoutError, self._redis.exceptions.RedisError) as error:
            raise EngineAway(f"{self.name}: {_said(error)}") from None
        refused = self._redis.exceptions.ResponseError
        made: list[Any] = []
        for reply in replies:
            if isinstance(reply, self._redis.exceptions.ConnectionError):
                raise EngineAway(f"{self.name}: {_said(reply)}")
            if isinstance(reply, self._redis.exceptions.NoScriptError):
                made.append(NoScript(_said(reply, refused)))
            elif isinstance(reply, refused):
                made.append(Refusal(_said(reply, refused)))
            elif isinstance(reply, Exception):
                made.append(Refusal(_said(reply)))
            else:
                made.append(reply)
        return made

    async def subscriber(self) -> RedisSubscriber:
        """A connection for what is published."""
        return _Subscriber(self.client.pubsub(), self._redis, self.name, self._timeout_s)

    async def close(self) -> None:
        """Let go of all connections."""
        await self.client.aclose()


class _Subscriber:
    """``redis.asyncio``'s pubsub."""

    def __init__(self, pubsub: Any, redis: Any, name: str, timeout_s: float) -> None:
        self._pubsub = pubsub
        self._errors = (OSError, TimeoutError, redis.exceptions.RedisError, RuntimeError)
        self._name = name
        self._timeout_s = timeout_s

    async def subscribe(self, channels: Sequence[bytes]) -> None:
        try:
            async with Patience(self._timeout_s):
                await self._pubsub.subscribe(*channels)
        except self._errors as error:
            raise EngineAway(f"{self._name}: {_said(error)}") from None

    async def ping(self) -> None:
        try:
            async with Patience(self._timeout_s):
                await self._pubsub.ping()
        except self._errors as error:
            raise EngineAway(f"{self._name}: {_said(error)}") from None

    async def next(self, wait_s: float) -> tuple[bytes, bytes] | None:
        try:
            said = await self._pubsub.get_message(timeout=wait_s)
        except self._errors as error:
            raise EngineAway(f"{self._name}: {_said(error)}") from None
        if said is None:
            return None
        if said["type"] == "message":
            return said["channel"], said["data"]
        return b"", b""

    async def close(self) -> None:
        try:
            await self._pubsub.aclose()
        except self._errors:
            return


def _redis() -> Any:
    try:
        import_module("redis.asyncio")
        return import_module("redis")
    except ModuleNotFoundError:
        raise ConfigError("redis-py is not installed: pip install citius[redis]") from None


def _said(error: BaseException, plain: type[BaseException] | None = None) -> str:
    text = str(error) if plain is not None else f"{type(error).__name__}: {error}"
    return without_credentials(text)


class _ClientOfThread(threading.local):
    """A client for each thread: one of redis-py belongs to the event loop that it has connected on."""

    def __init__(self, url: str) -> None:
        self._client = _redis().asyncio.Redis.from_url(url)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._client, name)


def redis_py(url: str) -> Any:
    """A ``redis.asyncio.Redis`` for ``url``, one in each thread.

    Raises:
        ConfigError: redis-py is not installed.
    """
    return _ClientOfThread(url)


def is_own(client: object) -> TypeGuard[Redis[bytes]]:
    """Whether it is a client of ``citius.redis``."""
    own = sys.modules.get("citius.redis.client")
    return own is not None and isinstance(client, own.Redis)


def is_redis(url: str) -> bool:
    """Whether a URL is one of Redis."""
    return "://" in url and urlsplit(url).scheme in {"redis", "rediss", "unix"}
