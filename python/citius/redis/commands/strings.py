"""Commands for strings: text, bytes, numbers, bits, and objects as MessagePack or JSON."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar, overload

from citius.redis import codecs
from citius.redis.commands.base import Caller, Data, flags, options, pairs

if TYPE_CHECKING:
    from citius.redis.calls import Call
    from citius.redis.commands.base import Key, Word, Words

_T = TypeVar("_T")


class StringCommands(Caller[Data]):
    """``https://redis.io/docs/latest/commands/?group=string``."""

    @overload
    def get(self, key: Key) -> Call[Data | None]: ...
    @overload
    def get(self, key: Key, as_: type[_T]) -> Call[_T | None]: ...
    def get(self, key: Key, as_: Any = None) -> Call[Any]:
        """The value of a key; ``None`` if there is none.

        ``as_``: ``str``, ``bytes``, ``int`` or ``float``.
        """
        return self._call("GET", key, as_=as_)

    @overload
    def get_msgpack(self, key: Key) -> Call[object]: ...
    @overload
    def get_msgpack(self, key: Key, as_: type[_T]) -> Call[_T | None]: ...
    def get_msgpack(self, key: Key, as_: Any = None) -> Call[Any]:
        """A value that is MessagePack, decoded and validated as ``as_``; ``None`` if there is none.

        Raises:
            msgspec.ValidationError: It is something else.
            msgspec.DecodeError: It is no MessagePack.
        """
        return self._call("GET", key, as_=codecs.msgpack_decoder(as_))

    @overload
    def get_json(self, key: Key) -> Call[object]: ...
    @overload
    def get_json(self, key: Key, as_: type[_T]) -> Call[_T | None]: ...
    def get_json(self, key: Key, as_: Any = None) -> Call[Any]:
        """The value of a key, decoded from JSON."""
        return self._call("GET", key, as_=codecs.json_decoder(as_))

    def set(
        self,
        key: Key,
        value: Word,
        *,
        ex: float | None = None,
        px: int | None = None,
        exat: int | None = None,
        pxat: int | None = None,
        nx: bool = False,
        xx: bool = False,
        keepttl: bool = False,
    ) -> Call[bool]:
        """Store a value; whether it was stored.

        Args:
            key: The key.
            value: The value.
            ex: Seconds after which the key expires.
            px: The same in milliseconds.
            exat: When it expires, in seconds since 1970.
            pxat: The same in milliseconds.
            nx: Only if there is no such key.
            xx: Only if there is one.
            keepttl: It expires when it would have.
        """
        words = _expiry(ex, px, exat, pxat) + flags(("NX", nx), ("XX", xx), ("KEEPTTL", keepttl))
        return self._call("SET", key, value, *words, then=bool)

    def set_msgpack(
        self,
        key: Key,
        value: object,
        *,
        ex: float | None = None,
        px: int | None = None,
        nx: bool = False,
        xx: bool = False,
        keepttl: bool = False,
    ) -> Call[bool]:
        """Store an object as MessagePack: what msgspec encodes, Structs and dataclasses too."""
        encoded = codecs.encode_msgpack(value)
        return self.set(key, encoded, ex=ex, px=px, nx=nx, xx=xx, keepttl=keepttl)

    def set_json(
        self,
        key: Key,
        value: object,
        *,
        ex: float | None = None,
        px: int | None = None,
        nx: bool = False,
        xx: bool = False,
        keepttl: bool = False,
    ) -> Call[bool]:
        """Store an object as JSON."""
        encoded = codecs.encode_json(value)
        return self.set(key, encoded, ex=ex, px=px, nx=nx, xx=xx, keepttl=keepttl)

    def getset(self, key: Key, value: Word, *, ex: float | None = None) -> Call[Data | None]:
        """Store a value; the one before (``SET … GET``)."""
        return self._call("SET", key, value, *_expiry(ex, None, None, None), "GET")

    @overload
    def getdel(self, key: Key) -> Call[Data | None]: ...
    @overload
    def getdel(self, key: Key, as_: type[_T]) -> Call[_T | None]: ...
    def getdel(self, key: Key, as_: Any = None) -> Call[Any]:
        """The value of a key, which is deleted."""
        return self._call("GETDEL", key, as_=as_)

    def getex(
        self, key: Key, *, ex: float | None = None, px: int | None = None, persist: bool = False
    ) -> Call[Data | None]:
        """The value of a key, whose expiry is set."""
        words = _expiry(ex, px, None, None) + flags(("PERSIST", persist))
        return self._call("GETEX", key, *words)

    @overload
    def mget(self, *keys: Key) -> Call[list[Data | None]]: ...
    @overload
    def mget(self, *keys: Key, as_: type[_T]) -> Call[list[_T | None]]: ...
    def mget(self, *keys: Key, as_: Any = None) -> Call[Any]:
        """The values of keys, in their order."""
        return self._call("MGET", *keys, as_=as_)

    def mget_msgpack(self, *keys: Key, as_: type[_T]) -> Call[list[_T | None]]:
        """Values that are MessagePack."""
        return self._call("MGET", *keys, as_=codecs.msgpack_decoder(as_))

    def mget_json(self, *keys: Key, as_: type[_T]) -> Call[list[_T | None]]:
        """Values that are JSON."""
        return self._call("MGET", *keys, as_=codecs.json_decoder(as_))

    def mset(self, mapping: Words) -> Call[bool]:
        """Store values by their keys, all at once."""
        return self._call("MSET", *pairs(mapping), then=bool)

    def msetnx(self, mapping: Words) -> Call[bool]:
        """Store values by their keys if none of the keys exists; whether they were stored."""
        return self._call("MSETNX", *pairs(mapping), then=bool)

    def incr(self, key: Key, amount: int = 1) -> Call[int]:
        """Add to a number; the sum."""
        return self._call("INCRBY", key, amount)

    def decr(self, key: Key, amount: int = 1) -> Call[int]:
        """Subtract from a number; the difference."""
        return self._call("DECRBY", key, amount)

    def incrbyfloat(self, key: Key, amount: float) -> Call[float]:
        """Add to a number that may have a fraction; the sum."""
        return self._call("INCRBYFLOAT", key, amount, as_=float)

    def append(self, key: Key, value: Word) -> Call[int]:
        """Append to a string; its length."""
        return self._call("APPEND", key, value)

    def strlen(self, key: Key) -> Call[int]:
        """The length of a string, in bytes."""
        return self._call("STRLEN", key)

    def getrange(self, key: Key, start: int, end: int) -> Call[Data]:
        """A part of a string, from byte ``start`` to byte ``end``; negative ones are counted from the end."""
        return self._call("GETRANGE", key, start, end)

    def setrange(self, key: Key, offset: int, value: Word) -> Call[int]:
        """Overwrite a part of a string; its length."""
        return self._call("SETRANGE", key, offset, value)

    def setbit(self, key: Key, offset: int, value: bool) -> Call[bool]:
        """Set or clear a bit; what it was."""
        return self._call("SETBIT", key, offset, int(value), then=bool)

    def getbit(self, key: Key, offset: int) -> Call[bool]:
        """A bit."""
        return self._call("GETBIT", key, offset, then=bool)

    def bitcount(self, key: Key, start: int | None = None, end: int | None = None) -> Call[int]:
        """How many bits are set, in all or from byte ``start`` to byte ``end``."""
        return self._call("BITCOUNT", key, *(() if start is None or end is None else (start, end)))

    def bitpos(
        self, key: Key, bit: bool, start: int | None = None, end: int | None = None
    ) -> Call[int]:
        """The position of the first bit that is set, or clear; -1 if there is none."""
        rest = [at for at in (start, end) if at is not None]
        return self._call("BITPOS", key, int(bit), *rest)

    def bitop(self, operation: str, destination: Key, *keys: Key) -> Call[int]:
        """Store ``AND``, ``OR``, ``XOR`` or ``NOT`` of strings; the length of the result."""
        return self._call("BITOP", operation, destination, *keys)

    # --- HyperLogLog ---

    def pfadd(self, key: Key, *elements: Word) -> Call[bool]:
        """Count elements approximately; whether the estimate may have changed."""
        return self._call("PFADD", key, *elements, then=bool)

    def pfcount(self, *keys: Key) -> Call[int]:
        """About how many different elements were counted."""
        return self._call("PFCOUNT", *keys)

    def pfmerge(self, destination: Key, *sources: Key) -> Call[str]:
        """Store the union of counters."""
        return self._call("PFMERGE", destination, *sources)


def _expiry(ex: float | None, px: int | None, exat: int | None, pxat: int | None) -> list[Word]:
    if isinstance(ex, float) and not ex.is_integer():
        # `EX` takes whole seconds.
        ex, px = None, round(ex * 1000)
    whole = None if ex is None else int(ex)
    return options(("EX", whole), ("PX", px), ("EXAT", exat), ("PXAT", pxat))
