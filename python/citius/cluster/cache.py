"""Cached values: made once at a time, for a time, and until one of their tags is invalidated.

An entry keeps the versions that its tags and its key had before the value was made; an invalidation gives a
tag another version, ``set`` and ``delete`` the key. So a value that was made of what has changed meanwhile is
not used, however long its making took, and also if the store has lost the change: a tag or a key without a
version gets one that it never had before anything is made.

One caller makes a value, and the others wait for it: within a process by a future, between processes and
machines by a claim in the store, which lasts ``flight_s``. A caller that joins what was begun before it came
reads the versions itself, and takes the value only if it was made of these. A maker that fails after its
caller has left, or whose node is killed, is followed by another. Stores: ``cachestores.py``. Tests:
``tests/cluster/test_cache.py``, ``tests/cluster/test_flights.py``.
"""

from __future__ import annotations

import asyncio
import random
import secrets
from contextlib import suppress
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, Final, Generic, Literal, Protocol, TypeVar, cast

import msgspec

from citius.cluster.byloop import ByLoop
from citius.cluster.cachestores import new_version
from citius.cluster.engines import check_lasts
from citius.cluster.outage import RETRY_S, TIMEOUT_S, Asker, Away, give_back
from citius.cluster.stats import Stats
from citius.coroutines import contained
from citius.unknown_options import check_value

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence

    from citius.cluster.outage import Health

T = TypeVar("T")

FLIGHT_S: Final = 10.0
"""How long a value may take to be made before another node makes it too."""

_MAGIC: Final = b"CTC\x01"
# How often a value is looked for that another node makes; the pause doubles.
_LOOK_S: Final = 0.005
_LOOK_S_MAX: Final = 0.1


class CacheStore(Protocol):
    """Bytes by keys, versions of tags, and claims. Keys and tags are of one cache."""

    async def read(self, key: str, tags: Sequence[str]) -> tuple[bytes | None, dict[str, bytes]]:
        """An entry, and the versions of tags and, by the empty name, of the key.

        A tag without a version gets one; that of a key is empty then.
        """
        ...

    async def version(self, key: str) -> bytes:
        """The version of a key; one that has none gets one, unless the store can lose nothing."""
        ...

    async def write(self, key: str, data: bytes, ttl_s: float, version: bytes = b"") -> None:
        """Keep an entry; with ``version``, which its key has from then on."""

    async def delete(self, key: str) -> None:
        """Forget an entry, and give its key another version."""

    async def invalidate(self, tags: Sequence[str]) -> None:
        """Give tags other versions."""

    async def claim(self, key: str, token: bytes, ttl_s: float) -> bool:
        """Try to be the one that makes an entry."""
        ...

    async def release(self, key: str, token: bytes) -> None:
        """End one's own claim."""


class Cache(Generic[T]):
    """Values of one kind by their keys.

    Args:
        store: Where they are.
        type: What values are, which msgspec checks; anything that it can encode without it.
        ttl_s: How long a value is used.
        when_down: What is done while the store is away: values are made, at most one for each key and
            process at a time (``"make"``), or requests get 503 (``"refuse"``).
        flight_s: How long other nodes wait for one that makes a value.
    """

    def __init__(
        self,
        store: CacheStore,
        *,
        type: type[T] | None = None,
        ttl_s: float = 60.0,
        when_down: Literal["make", "refuse"] = "make",
        flight_s: float = FLIGHT_S,
        timeout_s: float = TIMEOUT_S,
        retry_s: float = RETRY_S,
        stats: Stats | None = None,
        health: Health | None = None,
    ) -> None:
        check_lasts("cache", "ttl_s", ttl_s)
        if flight_s:
            check_lasts("cache", "flight_s", flight_s)
        self._store = store
        self._stats = stats or Stats()
        self._asker = Asker("cached values", timeout_s, retry_s, stats=self._stats, health=health)
        self._ttl_s = ttl_s
        self._when_down = when_down
        self._flight_s = flight_s
        self._encoder = msgspec.msgpack.Encoder()
        self._decoder: msgspec.msgpack.Decoder[Any] = msgspec.msgpack.Decoder(
            tuple[dict[str, bytes], Any if type is None else type]
        )
        self._by_loop: ByLoop[_Flights[T]] = ByLoop(_Flights)

    async def get(self, key: str) -> T | None:
        """The value, ``None`` if there is none."""
        try:
            found, _ = await self._read(key, (), makes=False)
        except Away:
            if self._when_down == "refuse":
                raise self._asker.refusal() from None
            return None
        return None if found is None else found[0]

    async def set(
        self, key: str, value: T, *, tags: Iterable[str] = (), ttl_s: float | None = None
    ) -> None:
        """Keep a value, in place of one that is being made, too."""
        names = _checked(tags, ttl_s)

        async def write() -> None:
            _, versions = await self._store.read(key, names)
            version = new_version()
            await self._write(key, value, {**versions, "": version}, names, ttl_s, version)

        try:
            await self._change(write)
        finally:
            self._by_loop.here().by_key.pop(key, None)

    async def delete(self, key: str) -> None:
        """Forget a value, also one that is being made: what ``invalidate`` promises of tags, of one key.

        Raises:
            ServiceUnavailable: The store is away: the value may still be used.
        """
        try:
            await self._change(lambda: self._store.delete(key))
        finally:
            self._by_loop.here().by_key.pop(key, None)

    async def invalidate(self, *tags: str) -> None:
        """Forget all values that have one of these tags.

        When it has returned, no request that comes then gets one of them, on any node.

        Raises:
            ServiceUnavailable: The store is away: values that should be forgotten may still be used.
        """
        try:
            await self._change(lambda: self._store.invalidate(tags))
        finally:
            # What they make may be of the old state: those that come from here on do not join them.
            for flight in [*self._by_loop.here().by_key.values()]:
                if not set(tags).isdisjoint(flight.tags):
                    flight.leave()

    async def get_or_make(
        self,
        key: str,
        make: Callable[[], Awaitable[T]],
        *,
        tags: Iterable[str] = (),
        ttl_s: float | None = None,
    ) -> T:
        """The value; if there is none, what ``make`` returns.

        An exception of ``make`` is raised to all that wait for it in this process, and nothing is kept; once
        the caller whose ``make`` it is has left, another one's is called instead.

        Args:
            key: Its key.
            make: Makes it. It is called once for all that ask for it meanwhile, and is cancelled when
                the last of them has left.
            tags: What it depends on: ``invalidate`` of one of them makes it anew.
            ttl_s: How long it is used; the cache's without it.
        """
        names = _checked(tags, ttl_s)
        flights = self._by_loop.here()
        came_at = flights.begun
        while (flight := flights.by_key.get(key)) is not None:
            flight.refuse_circle(key)
            self._stats.single_flight_waits += 1
            versions = None
            # What was begun after this request came is of no older state than it may get.
            if flight.number <= came_at:
                try:
                    found, versions = await self._read_with_others(flight, key, names)
                except Away:
                    # It may have been invalidated elsewhere, and cannot be compared.
                    found, versions = None, {}
                if found is not None:
                    return found[0]
            try:
                value = await flight.join()
            except asyncio.CancelledError:
                task = asyncio.current_task()
                if not flight.task.cancelled() or (task is not None and task.cancelling()):
                    raise
            except Exception:
                if not flight.is_left and flight.is_of(names, versions):
                    raise
            else:
                if flight.is_of(names, versions):
                    return value
            flights.leave(key, flight)
        flight = self._begin(flights, key, make, names, ttl_s)
        try:
            return await flight.join()
        except asyncio.CancelledError:
            flight.is_left = True
            raise

    def _begin(
        self,
        flights: _Flights[T],
        key: str,
        make: Callable[[], Awaitable[T]],
        tags: tuple[str, ...],
        ttl_s: float | None,
    ) -> _Flight[T]:
        flights.begun += 1
        flight: _Flight[T] = _Flight(tags, flights.begun)
        flight.leave = lambda: flights.leave(key, flight)
        flight.task = asyncio.ensure_future(
            contained(self._found_or_made, flight, key, make, tags, ttl_s)
        )
        flight.task.add_done_callback(lambda _: flights.leave(key, flight))
        flights.by_key[key] = flight
        return flight

    async def _read_with_others(
        self, flight: _Flight[T], key: str, tags: tuple[str, ...]
    ) -> tuple[tuple[T] | None, dict[str, bytes]]:
        """Read an entry and the versions of now, once for all that join in a turn of the loop."""
        reading = flight.readings.get(tags)
        if reading is None:

            async def read() -> tuple[tuple[T] | None, dict[str, bytes]]:
                await asyncio.sleep(0)
                del flight.readings[tags]  # those that come from here on come after it
                return await self._read(key, tags)

            reading = flight.readings[tags] = asyncio.ensure_future(read())
            reading.add_done_callback(_seen)
        return await asyncio.shield(reading)

    async def _found_or_made(
        self,
        flight: _Flight[T],
        key: str,
        make: Callable[[], Awaitable[T]],
        tags: tuple[str, ...],
        ttl_s: float | None,
    ) -> T:
        _maker.set(flight)
        try:
            found, flight.versions = await self._read(key, tags)
            if found is not None:
                return found[0]
            return await self._made(flight, key, make, tags, ttl_s)
        except Away:
            if self._when_down == "refuse":
                raise self._asker.refusal() from None
        flight.versions = None
        return await make()

    async def _made(
        self,
        flight: _Flight[T],
        key: str,
        make: Callable[[], Awaitable[T]],
        tags: tuple[str, ...],
        ttl_s: float | None,
    ) -> T:
        """Make a value as the only one, or get it from the one that does."""
        token = secrets.token_bytes(8)
        loop = asyncio.get_running_loop()
        until, pause_s = loop.time() + self._flight_s, _LOOK_S
        is_done = False
        # From before the first claim: one whose reply is dropped by a cancellation goes back too.
        try:
            while not await self._asker.ask(lambda: self._store.claim(key, token, self._flight_s)):
                if loop.time() >= until:
                    break
                self._stats.single_flight_waits += 1
                await asyncio.sleep(pause_s * random.uniform(0.5, 1.0))
                pause_s = min(2 * pause_s, _LOOK_S_MAX)
                found, flight.versions = await self._read(key, tags)
                if found is not None:
                    return found[0]
            # The versions first: what is invalidated from here on makes the value that is made here old.
            data, versions = await self._looked(key, tags)
            flight.versions = versions
            made = _valid(self._decoded(data), versions)
            if made is not None:
                return made[0]
            value = await make()
            with suppress(Away):  # it is served all the same
                await self._asker.ask(lambda: self._write(key, value, versions, tags, ttl_s))
            is_done = True
            return value
        finally:
            release = give_back(lambda: self._store.release(key, token), self._flight_s)
            if is_done:
                await self._asker.wait_for(release)

    async def _looked(
        self, key: str, tags: tuple[str, ...], *, makes: bool = True
    ) -> tuple[bytes | None, dict[str, bytes]]:
        """What the store has; a key whose value is to be made gets a version."""
        data, versions = await self._asker.ask(lambda: self._store.read(key, tags))
        if makes and not versions[""]:
            versions[""] = await self._asker.ask(lambda: self._store.version(key))
        return data, versions

    async def _read(
        self, key: str, tags: tuple[str, ...], *, makes: bool = True
    ) -> tuple[tuple[T] | None, dict[str, bytes]]:
        data, versions = await self._looked(key, tags, makes=makes)
        entry = self._decoded(data)
        if entry is not None and not entry[0].keys() <= versions.keys():
            # It has tags that the caller has not named.
            known = tuple({*tags, *entry[0]} - {""})
            data, versions = await self._looked(key, known, makes=makes)
            entry = self._decoded(data)
        found = _valid(entry, versions)
        if found is None:
            self._stats.cache_misses += 1
        else:
            self._stats.cache_hits += 1
        return found, versions

    def _decoded(self, data: bytes | None) -> tuple[dict[str, bytes], T] | None:
        if data is None:
            return None
        if data[: len(_MAGIC)] == _MAGIC:
            try:
                return cast("tuple[dict[str, bytes], T]", self._decoder.decode(data[len(_MAGIC) :]))
            except msgspec.MsgspecError:
                pass  # of another version of the application
        counts = self._stats.foreign
        counts["cache entry"] = counts.get("cache entry", 0) + 1
        return None

    async def _write(
        self,
        key: str,
        value: T,
        versions: Mapping[str, bytes],
        tags: tuple[str, ...],
        ttl_s: float | None,
        version: bytes = b"",
    ) -> None:
        entry = ({tag: versions[tag] for tag in ("", *tags)}, value)
        data = _MAGIC + self._encoder.encode(entry)
        await self._store.write(key, data, self._ttl_s if ttl_s is None else ttl_s, version)

    async def _change(self, command: Callable[[], Awaitable[None]]) -> None:
        try:
            await self._asker.ask(command)
        except Away:
            raise self._asker.refusal() from None


def _valid(
    entry: tuple[dict[str, bytes], T] | None, versions: Mapping[str, bytes]
) -> tuple[T] | None:
    """The value of an entry whose tags have these versions still."""
    if entry is None or any(versions.get(tag) != version for tag, version in entry[0].items()):
        return None
    return (entry[1],)


class _Flight(Generic[T]):
    """The making of one value, and how many wait for it."""

    task: asyncio.Future[T]
    leave: Callable[[], None]
    """Keeps further requests from joining it."""

    def __init__(self, tags: tuple[str, ...], number: int) -> None:
        self.tags = tags
        self.number = number
        self.versions: dict[str, bytes] | None = None
        """Those of its key and its tags before the value was made; none if the store was away."""
        self.is_left = False
        """Whether the caller whose ``make`` is called has left."""
        self.readings: dict[
            tuple[str, ...], asyncio.Future[tuple[tuple[T] | None, dict[str, bytes]]]
        ] = {}
        """Of those that have joined in this turn of the loop, by their tags."""
        self._waiting = 0
        self._awaited: list[_Flight[Any]] = []
        """What its ``make`` waits for."""

    def refuse_circle(self, key: str) -> None:
        """Refuse to wait for a making that waits for the one that asks.

        Raises:
            RuntimeError: It does.
        """
        if (maker := _making()) is not None and self._is_waiting_for(maker):
            raise RuntimeError(f"the making of {key!r} waits for itself, by what `make` asks for")

    def _is_waiting_for(self, other: _Flight[Any]) -> bool:
        """Whether it ends behind the other one only."""
        seen: set[_Flight[Any]] = set()
        left: list[_Flight[Any]] = [self]
        while left:
            if (one := left.pop()) is other:
                return True
            if one not in seen:
                seen.add(one)
                left += one._awaited
        return False

    def is_of(self, tags: tuple[str, ...], versions: Mapping[str, bytes] | None) -> bool:
        """Whether its value is of no older state than these versions; without any, it is begun since."""
        if versions is None:
            return True
        own = self.versions
        return own is not None and all(
            name in versions and own.get(name) == versions[name] for name in ("", *tags)
        )

    async def join(self) -> T:
        self._waiting += 1
        if (maker := _making()) is not None:
            maker._awaited.append(self)
        try:
            return await asyncio.shield(self.task)
        finally:
            if maker is not None:
                maker._awaited.remove(self)
            self._waiting -= 1
            if not self._waiting and not self.task.done():
                self.leave()
                self.task.cancel()


class _Flights(Generic[T]):
    """What is being made on one event loop. To the others it is as on another node."""

    def __init__(self) -> None:
        self.by_key: dict[str, _Flight[T]] = {}
        self.begun = 0
        """Flights begun so far, which numbers them."""

    def leave(self, key: str, flight: _Flight[T]) -> None:
        """No request joins this flight from here on."""
        if self.by_key.get(key) is flight:
            del self.by_key[key]


_maker: ContextVar[_Flight[Any] | None] = ContextVar("citius_cache_maker", default=None)
"""The flight whose ``make`` is being called."""


def _making() -> _Flight[Any] | None:
    """The flight that this task is; what its ``make`` has started need not be waited for."""
    maker = _maker.get()
    return maker if maker is not None and maker.task is asyncio.current_task() else None


def _seen(reading: asyncio.Future[Any]) -> None:
    """Those that wait for it have its exception; if they have left, nothing has to be said of it."""
    if not reading.cancelled():
        reading.exception()


def _checked(tags: Iterable[str], ttl_s: float | None) -> tuple[str, ...]:
    """The tags of a value; a text would be one tag per letter, and invalidating it would do nothing."""
    if isinstance(tags, (str, bytes)):
        check_value("a cached value", "tags", tags, "Iterable[str]")
    if ttl_s is not None:
        check_value("a cached value", "ttl_s", ttl_s, "float")
        check_lasts("a cached value", "ttl_s", ttl_s)
    return tuple(tags)
