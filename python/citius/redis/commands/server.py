"""Commands for the server, and messages to subscribers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

from citius.redis.commands.base import Caller, Data, pairs

if TYPE_CHECKING:
    from collections.abc import Mapping

    from citius.redis.calls import Call
    from citius.redis.commands.base import Key, Word


class ServerCommands(Caller[Data]):
    """``https://redis.io/docs/latest/commands/?group=server``, ``…=pubsub``, ``…=connection``."""

    def ping(self) -> Call[bool]:
        """Whether the server responds."""
        return self._call("PING", then=bool)

    def echo(self, text: Word) -> Call[Data]:
        """Have the server send ``text`` back."""
        return self._call("ECHO", text)

    def time(self) -> Call[tuple[int, int]]:
        """The server's time: seconds since 1970, and microseconds."""
        return self._call("TIME", as_=int, then=tuple)

    def dbsize(self) -> Call[int]:
        """The number of keys in the database; of a cluster, of all its masters."""
        return self._call("DBSIZE")

    def flushdb(self) -> Call[str]:
        """Delete all keys of the database, at all masters of a cluster."""
        return self._call("FLUSHDB")

    def flushall(self) -> Call[str]:
        """Delete all keys of all databases, at all masters of a cluster."""
        return self._call("FLUSHALL")

    def info(self, *sections: str) -> Call[dict[str, str]]:
        """What the server says of itself, by name; of a cluster, one of the nodes."""
        return self._call("INFO", *sections, then=_facts)

    def config_get(self, *patterns: str) -> Call[dict[str, str]]:
        """Settings of the server whose names match; of a cluster, of one of the nodes."""
        return self._call("CONFIG", "GET", *patterns, as_=str)

    def config_set(self, mapping: Mapping[str, Word]) -> Call[str]:
        """Change settings of the server, at all masters of a cluster."""
        return self._call("CONFIG", "SET", *pairs(mapping))

    def client_list(self) -> Call[list[dict[str, str]]]:
        """The connections of the server; of a cluster, of one of the nodes."""
        return self._call("CLIENT", "LIST", then=_clients)

    def client_id(self) -> Call[int]:
        """The number of this connection."""
        return self._call("CLIENT", "ID")

    def publish(self, channel: Key, message: Word) -> Call[int]:
        """Send a message to the subscribers of a channel; how many got it."""
        return self._call("PUBLISH", channel, message)

    def spublish(self, channel: Key, message: Word) -> Call[int]:
        """Send a message to the subscribers of a sharded channel; how many got it."""
        return self._call("SPUBLISH", channel, message)

    def pubsub_channels(self, pattern: str = "*") -> Call[list[Data]]:
        """Channels that have subscribers."""
        return self._call("PUBSUB", "CHANNELS", pattern)

    def pubsub_numsub(self, *channels: Key) -> Call[dict[Data, int]]:
        """How many subscribers channels have."""
        return self._call("PUBSUB", "NUMSUB", *channels, then=_numbers)


def _lines(text: str | bytes) -> list[str]:
    return (text.decode(errors="replace") if isinstance(text, bytes) else text).splitlines()


def _facts(text: str | bytes) -> dict[str, str]:
    named = (line.partition(":") for line in _lines(text) if not line.startswith("#"))
    return {name: value for name, separator, value in named if separator}


def _clients(text: str | bytes) -> list[dict[str, str]]:
    return [
        {name: value for name, _, value in (fact.partition("=") for fact in line.split(" "))}
        for line in _lines(text)
    ]


def _numbers(found: Any) -> dict[Any, int]:
    if isinstance(found, dict):
        return cast("dict[Any, int]", found)
    return dict(zip(found[::2], found[1::2], strict=True))
