"""A client of Redis: opened in the lifespan of an application, used by all its requests."""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import os
import threading
from threading import get_ident
from typing import TYPE_CHECKING, Any, ClassVar, Generic, Literal, Self, TypeVar, overload

from citius._core import RedisClient
from citius.databases.forks import is_lost
from citius.errors import ChannelMisuse, ConfigError
from citius.observability.clients import measured
from citius.process import reactors
from citius.redis import homes, urls
from citius.redis.caching import CacheStatistics
from citius.redis.cluster import Cluster
from citius.redis.commands import Commands
from citius.redis.connections import Connections
from citius.redis.deadlines import Deadlines
from citius.redis.errors import ClientClosed, TimedOut
from citius.redis.heartbeat import Heartbeat
from citius.redis.homes import Promise
from citius.redis.sentinel import Sentinels
from citius.redis.serial import has_loop, refuse_loop
from citius.redis.sessions import Acquiring
from citius.redis.subscriptions import Subscriber, Subscription
from citius.redis.transactions import Transaction
from citius.serial import is_serial
from citius.unknown_options import check_value, known_options

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable

    from citius.redis.caching import ClientCache
    from citius.redis.calls import Call
    from citius.redis.commands.base import Key
    from citius.redis.commands.scripting import Script
    from citius.redis.links import Server
    from citius.redis.subscriptions import Manner
    from citius.redis.sync import SyncRedis

_Data = TypeVar("_Data", bytes, str)
_OPENED_BEFORE = "the client was opened before a fork: open it in the process that uses it"
_NATIVE = ("execute", "get", "get_msgpack", "get_json")


@known_options
class Redis(Commands[_Data], Generic[_Data]):
    """Connections to one Redis, or to all nodes of a cluster.

    A client that the application's start opens is there on the loop of each reactor (``--reactor-threads``),
    with connections of its own on each, as it would be in as many workers.

    Args:
        url: ``redis://user:password@host:port/database``, ``rediss://`` with TLS, ``unix:///path``,
            ``redis+sentinel://host:port,host:port/master``; several hosts are separated by commas.
        decode_responses: Strings of replies are ``str``, not ``bytes``.
        size: Connections to each server that commands share. One is enough unless replies are large, which
            delay those behind them.
        blocking_max: Further connections for commands that the server may keep waiting, and for ``watch``.
        queue_max: Commands that may wait for a connection, and for replies on one; more fail at once.
        timeout_s: How long a command may take in all; then it fails. Both raise ``Overloaded``, in a response
            503. ``None``: as long as it takes.
        connect_timeout_s: How long connecting and the login may take.
        name: What the client is called in metrics; ``host:port/database`` without it.
        client_name: What ``CLIENT LIST`` calls the connections.
        cache: Keep replies in this process.
        reply_bytes_max: Bytes that one reply may take; a larger one ends its connection.
        cluster: Whether the server is a node of a cluster; ``None``: it says so itself.
    """

    shared_as: ClassVar = "redis"  # how compiled code uses it

    @overload
    def __init__(
        self: Redis[bytes], url: str = ..., *, decode_responses: Literal[False] = ..., size: int = ...,
        blocking_max: int = ..., queue_max: int = ..., timeout_s: float | None = ...,
        connect_timeout_s: float = ..., name: str | None = ..., client_name: str = ...,
        cache: ClientCache | None = ..., reply_bytes_max: int = ..., cluster: bool | None = ...,
    ) -> None: ...  # fmt: skip
    @overload
    def __init__(
        self: Redis[str], url: str = ..., *, decode_responses: Literal[True], size: int = ...,
        blocking_max: int = ..., queue_max: int = ..., timeout_s: float | None = ...,
        connect_timeout_s: float = ..., name: str | None = ..., client_name: str = ...,
        cache: ClientCache | None = ..., reply_bytes_max: int = ..., cluster: bool | None = ...,
    ) -> None: ...  # fmt: skip
    def __init__(
        self,
        url: str = "redis://localhost:6379",
        *,
        decode_responses: bool = False,
        size: int = 1,
        blocking_max: int = 32,
        queue_max: int = 10_000,
        timeout_s: float | None = 5.0,
        connect_timeout_s: float = 5.0,
        name: str | None = None,
        client_name: str = "",
        cache: ClientCache | None = None,
        reply_bytes_max: int = 256 * 1024 * 1024,
        cluster: bool | None = None,
    ) -> None:
        for option, value in (
            ("size", size), ("blocking_max", blocking_max), ("queue_max", queue_max),
            ("reply_bytes_max", reply_bytes_max),
        ):  # fmt: skip
            if value < 1:
                raise ConfigError(f"{option} must be at least 1, got {value}")
        for option, seconds in (("timeout_s", timeout_s), ("connect_timeout_s", connect_timeout_s)):
            if seconds is not None and not seconds > 0:
                raise ConfigError(f"{option} must be more than 0, got {seconds}")
        if cache is not None and size != 1:
            raise ConfigError(
                f"a ClientCache needs size=1, so that changes are told in order; got {size}"
            )
        # A function, so that `vars` does not show the password of the URL.
        self._twin: Callable[[], Redis[Any]] = lambda: Redis(
            url, decode_responses=decode_responses, size=size, blocking_max=blocking_max,
            queue_max=queue_max, timeout_s=timeout_s, connect_timeout_s=connect_timeout_s, name=name,
            client_name=client_name, cache=cache, reply_bytes_max=reply_bytes_max, cluster=cluster,
        )  # pyright: ignore[reportCallIssue, reportArgumentType]  # fmt: skip
        self._twins: dict[int, Redis[Any]] = {}
        """Those on the loops of other reactors, by their threads."""
        target = urls.parse(url)
        self.target = dataclasses.replace(target, client_name=client_name or target.client_name)
        self._is_text, self._size, self._blocking_max = decode_responses, size, blocking_max
        self._queue_max, self._timeout_s = queue_max, timeout_s
        self._connect_timeout_s, self._cache = connect_timeout_s, cache
        self._reply_bytes_max, self._is_cluster, self._name = reply_bytes_max, cluster, name
        self._core: RedisClient | None = None
        self._home: homes.Home | None = None
        self._connections: Connections | None = None
        self._cluster: Cluster | None = None
        self._subscriber: Subscriber | None = None
        self._process = 0
        self._opening = threading.RLock()
        self._is_parked = False
        self._deadlines: Deadlines | None = None
        self._heartbeat: Heartbeat | None = None
        self.server: Server | None = None
        """What the server says of itself; ``None`` before the client is open."""

    def __repr__(self) -> str:
        state = "closed" if self._core is None else "open"
        return f"<Redis {self.target}, database {self.target.database}, {state}>"

    # --- opening and closing ---

    @contextlib.asynccontextmanager
    async def lifespan(self, app: object) -> AsyncGenerator[None]:
        """For ``App(lifespan=redis.lifespan)``: open while the application serves."""
        async with self:
            yield

    async def __aenter__(self) -> Self:
        await self.open()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def open(self) -> None:
        """Connect.

        Raises:
            RedisError: The first connection could not be made.
            ConfigError: TLS cannot be used as it is configured.
        """
        await self.open_alone()
        if has_loop():
            reactors.share(self)

    async def open_alone(self) -> None:
        """As ``open``, for the running loop and no other reactor's."""
        opened = self._begin()
        try:
            # Without a loop, as under `--loop gevent`, this is a greenlet or a thread, which may wait.
            await opened if has_loop() else opened.wait()
        except BaseException:
            await self.close(wait_s=0.0)
            raise

    async def open_on_loop(self) -> None:
        """Open the same for the running loop, whose thread uses it from then on."""
        twin = self._twin()
        await twin.open_alone()
        self._twins[get_ident()] = twin
        for name in (*_NATIVE, "_call"):
            setattr(self, name, self._by_thread(name))

    async def close_on_loop(self) -> None:
        """Undo ``open_on_loop``."""
        if (twin := self._twins.pop(get_ident(), None)) is not None:
            await twin.close()

    def _by_thread(self, name: str) -> Callable[..., Any]:
        own, twins = getattr(self._core, "execute" if name == "_call" else name), self._twins

        def call(*words: Any, **options: Any) -> Any:
            twin = twins.get(get_ident())
            return (own if twin is None else getattr(twin, name))(*words, **options)

        return call

    def _here(self) -> Redis[Any]:
        """The client of this thread."""
        return self._twins.get(get_ident(), self)

    async def close(self, *, wait_s: float = 5.0) -> None:
        """Let commands that are under way end, for ``wait_s`` at most, and close all connections."""
        self._leave_what_is_lost()
        if not has_loop():
            self.close_here(wait_s)
        elif (home := self._home) is not None:
            here = home.is_here()
            await (self._end(wait_s) if here else asyncio.to_thread(self.close_here, wait_s))

    def _is_lost(self) -> bool:
        return self._home is not None and is_lost(self._process, self._home.loop)

    def _leave_what_is_lost(self) -> None:
        """Be closed in a child that was forked since it was opened, and where its loop has ended."""
        if not self._is_lost():
            return
        if self._connections is not None:
            self._connections.leave()
        reactors.unshare(self)
        for name in (*_NATIVE, "_call"):
            self.__dict__.pop(name, None)
        self._core = self._home = self._connections = self._cluster = self._subscriber = None
        self._twins, self._heartbeat, self._opening = {}, None, threading.RLock()
        self._is_parked = False

    def _begin(self) -> Promise[None]:
        """Make the home and the extension's part; the first connection is on its way."""
        self._leave_what_is_lost()
        if self._home is not None:
            raise RuntimeError(
                "the client is open already; that of a Cluster is opened and closed by it, without a lifespan"
            )
        self._home, self._process = homes.find(), os.getpid()
        home = self._home
        opened: Promise[None] = Promise(home)
        if home.is_here():
            self._prepare(opened)
        else:
            home.run(lambda: self._prepare(opened))
        return opened

    def _prepare(self, opened: Promise[None]) -> None:
        home = self._home
        assert home is not None
        cache, metrics = self._cache, measured(self.target.client(self._name), self._counts)
        self._core = core = RedisClient(
            self._listen,
            event_loop=home.loop,
            is_text=self._is_text,
            queue_max=self._queue_max,
            timeout_ms=None if self._timeout_s is None else max(1, round(self._timeout_s * 1000)),
            reply_bytes_max=self._reply_bytes_max,
            cache=None
            if cache is None
            else (
                cache.entries_max,
                cache.bytes_max,
                round(cache.age_max_s * 1000),
                [prefix.encode() for prefix in cache.prefixes],
                cache.field_ttls,
            ),
            metrics=metrics,
        )
        self._deadlines = Deadlines(home, core, self._timed_out)
        self._connections = connections = Connections(
            home,
            core,
            size=self._size,
            blocking_max=self._blocking_max,
            connect_timeout_s=self._connect_timeout_s,
            is_tracking=cache is not None,
        )
        if metrics is not None:
            connections.count = metrics.count
        if self.target.service is not None:
            Sentinels(connections, self.target)
        else:
            connections.locate = self._locate
        self._subscriber = Subscriber(
            home, connections, is_text=self._is_text, timeout_s=self._timeout_s
        )
        # Methods of the extension: there is nothing in between.
        for name in _NATIVE:
            setattr(self, name, getattr(core, name))
        self._call = core.execute
        connections.spawn("open", self._connect(opened))
        self._heartbeat = Heartbeat(home, core, connections, has_cache=cache is not None)

    async def _locate(self, _node: int) -> list[urls.Target]:
        return [self.target.at(address) for address in self.target.addresses]

    async def _connect(self, opened: Promise[None]) -> None:
        """Make the first connection, and learn from it whether there is a cluster."""
        connections = self._connections
        assert connections is not None
        try:
            link = await connections.open(0, "shared")
            self.server = link.server
            is_cluster = self._is_cluster
            if is_cluster is None:
                is_cluster = link.server.mode == "cluster"
            if is_cluster:
                self._cluster = cluster = Cluster(connections, self.target)
                await cluster.read(link)
                if self._subscriber is not None:
                    self._subscriber.on_moved = cluster.look
                link.close("the slots are known")
        except Exception as error:  # whatever it is, the code that opens the client gets it
            return opened.resolve(error=error)
        if not is_cluster:
            connections.is_group = len(self.target.addresses) > 1
            connections.keep(0, link)
        opened.resolve()

    async def _end(self, wait_s: float) -> None:
        """Close, on the home's thread."""
        check_value("redis.close", "wait_s", wait_s, "float")
        core, home, connections = self._core, self._home, self._connections
        if core is None or home is None or connections is None:
            return
        self._core = None
        reactors.unshare(self)
        core.stop()
        for name in (*_NATIVE, "_call"):
            self.__dict__.pop(name, None)
        if self._heartbeat is not None:
            self._heartbeat.end()
        if self._deadlines is not None:
            self._deadlines.is_over = True
        left_s = wait_s
        try:
            while left_s > 0 and any(
                link.core.load for link in connections.links if link.kind != "blocking"
            ):
                await home.sleep(0.01)
                left_s -= 0.01
        finally:
            # Also if the code that closes it is cancelled.
            if self._subscriber is not None:
                self._subscriber.close()
            connections.close()
            core.expire(lambda: ClientClosed("the client is closed"), all=True)
            self._home = self._connections = self._cluster = self._subscriber = None
            home.close()

    def open_here(self) -> None:
        """Open it in a thread or a greenlet, unless it is open."""
        if self._core is not None and not self._is_lost():
            return
        refuse_loop("redis.sync", "await redis.…")
        if is_serial():
            raise ChannelMisuse(
                "redis.sync would connect here, which stops the event loop of this thread: open the client "
                "before, with App(lifespan=redis.lifespan)"
            )
        with self._opening:
            if self._core is not None and self._process != os.getpid():
                raise RuntimeError(_OPENED_BEFORE)
            if self._core is not None and not self._is_lost():
                return
            try:
                self._begin().wait()
            except BaseException:
                self.close_here(0.0)
                raise

    def close_here(self, wait_s: float = 5.0) -> None:
        """Close it in a thread or a greenlet."""
        self._leave_what_is_lost()
        home = self._home
        if home is None:
            return
        ended: Promise[None] = Promise(home)

        async def end() -> None:
            try:
                await self._end(wait_s)
            finally:
                ended.resolve()

        home.run(lambda: home.spawn(end()))
        ended.wait()

    # --- what commands are sent by ---

    def not_open(self) -> BaseException:
        """What a method raises before the client is opened and after it is closed."""
        return ClientClosed(
            "the client is not open: use `async with redis`, or `App(lifespan=redis.lifespan)`"
        )

    @property
    def core(self) -> RedisClient:
        """The extension's part of an open client."""
        core = self._here()._core
        if core is None:
            raise self.not_open()
        return core

    def _nodes(self) -> list[int | None]:
        return [*self.core.masters()] or [None]

    def call_script(
        self, script: Script[_Data], arguments: tuple[Any, ...], is_read_only: bool, as_: Any
    ) -> Call[Any]:
        """Execute a script; what ``Script`` calls."""
        return self.core.script(
            script.source, script.sha, arguments, is_read_only=is_read_only, as_=as_
        )

    @property
    def sync(self) -> SyncRedis[_Data]:
        """This client for code without ``await``: threads, greenlets, goroutines, WSGI, scripts."""
        from citius.redis.sync import SyncRedis

        return SyncRedis(self)

    def transaction(self) -> Transaction[_Data]:
        """Commands that are done at once: ``async with redis.transaction() as tx: total = tx.incr("n")``."""
        return Transaction(self.core)

    def watch(self, *keys: Key) -> Acquiring[_Data]:
        """A connection of its own whose transaction is not done if one of the keys changes meanwhile.

        ``async with redis.watch("stock") as watched``, then read, then ``async with watched.transaction() as
        tx``.
        """
        if not keys:
            raise TypeError("expected the keys to watch")
        return Acquiring(self.core, keys, is_kept=True)

    def connection(self, key: Key | None = None) -> Acquiring[_Data]:
        """A connection of its own, for commands that change its state; it is closed at the end of the block.

        In a cluster it leads to the node that has ``key``.
        """
        return Acquiring(self.core, () if key is None else (key,), is_kept=False)

    # --- messages ---

    def subscribe(
        self,
        *channels: str,
        queue_max: int = 1000,
        on_gap: Callable[[], object] | None = None,
    ) -> Subscription[_Data]:
        """Messages of channels: ``async with redis.subscribe("news") as messages``.

        Args:
            channels: Their names.
            queue_max: Messages that wait for the consumer; with more the oldest is dropped.
            on_gap: Called when messages may have been missed: one was dropped, or the connection was lost and
                the channel is subscribed to again. Where the server refuses that, the iteration raises.
        """
        return self._subscription("channel", channels, queue_max, on_gap)

    def psubscribe(
        self,
        *patterns: str,
        queue_max: int = 1000,
        on_gap: Callable[[], object] | None = None,
    ) -> Subscription[_Data]:
        """Messages of all channels whose names match patterns."""
        return self._subscription("pattern", patterns, queue_max, on_gap)

    def ssubscribe(
        self,
        *channels: str,
        queue_max: int = 1000,
        on_gap: Callable[[], object] | None = None,
    ) -> Subscription[_Data]:
        """Messages of sharded channels, which a cluster spreads over its nodes (``spublish``)."""
        return self._subscription("shard", channels, queue_max, on_gap)

    def _subscription(
        self,
        manner: Manner,
        channels: tuple[str, ...],
        queue_max: int,
        on_gap: Callable[[], object] | None,
    ) -> Subscription[_Data]:
        subscriber = self._here()._subscriber
        if subscriber is None:
            raise self.not_open()
        if self._process != os.getpid():
            raise RuntimeError(_OPENED_BEFORE)
        return Subscription(subscriber, manner, channels, queue_max, on_gap)

    # --- health ---

    @property
    def decode_responses(self) -> bool:
        """Whether strings of replies are ``str``."""
        return self._is_text

    @property
    def is_open(self) -> bool:
        """Whether it has been opened on this loop, and not been closed."""
        return self._here()._core is not None

    @property
    def connections(self) -> int:
        """Connections that are open."""
        own = 0 if self._connections is None else len(self._connections.links)
        return own + sum(twin.connections for twin in list(self._twins.values()))

    @property
    def unreachable(self) -> BaseException | None:
        """Why the last attempt to connect failed; ``None`` if it has not, or if a connection is left."""
        connections = self._here()._connections
        return None if connections is None else connections.unreachable

    def _counts(self) -> tuple[int, int, int]:
        return (0, 0, 0) if self._connections is None else self._connections.counts()

    @property
    def queued(self) -> int:
        """Commands that wait for a connection."""
        own = 0 if self._core is None else self._core.queued
        return own + sum(twin.queued for twin in list(self._twins.values()))

    @property
    def cache_statistics(self) -> CacheStatistics:
        """What the cache has done."""
        kept = [one._core.kept() for one in (self, *self._twins.values()) if one._core is not None]
        return CacheStatistics(*map(sum, zip((0, 0, 0, 0), *kept, strict=True)))

    # --- what the extension tells, on any thread ---

    def _listen(self, kind: str, value: Any) -> None:
        home = self._home
        if home is None:
            return
        if home.is_here():
            self._hear(kind, value)
        else:
            home.run(lambda: self._hear(kind, value))

    def _hear(self, kind: str, value: Any) -> None:
        connections, cluster = self._connections, self._cluster
        if connections is None:
            return
        of_connections: dict[str, Callable[[Any], object]] = {
            "given_back": connections.give_back,
            "silent": connections.silent,
            "abandoned": lambda one: connections.close_one(one, "its command was cancelled"),
            "left": lambda one: connections.close_one(one, "it was one caller's"),
        }
        if kind == "timed":
            if self._deadlines is not None:
                self._deadlines.look()
        elif kind == "wanted":
            if value[1]:  # a connection of its own
                connections.want(value[0])
        elif kind in of_connections:
            of_connections[kind](value)
        elif kind == "parked":
            error, pause_ms = value
            connections.note_failure(error)
            self._park(pause_ms / 1000)
        elif kind == "read_only" and cluster is None:
            # Its name, or what sentinels say, may lead to the new master.
            connections.leave_replica(value)
        elif cluster is not None and kind == "node":
            cluster.keep(value)
        elif cluster is not None and kind == "moved":
            cluster.look()

    def _timed_out(self) -> TimedOut:
        connections, timeout_s = self._connections, self._timeout_s or 0.0
        why = f"no reply from Redis at {self.target} within {timeout_s:g} s"
        if connections is not None and (failure := connections.failure_since(timeout_s)):
            why += f"; {failure}"
        return TimedOut(why)

    def _park(self, pause_s: float) -> None:
        """Send commands again in a moment that a node of a cluster could not serve."""
        if not self._is_parked and self._home is not None:
            self._is_parked = True
            self._home.later(pause_s, self._send_parked)
        if self._cluster is not None:
            self._cluster.look()

    def _send_parked(self) -> None:
        self._is_parked = False
        if self._core is not None:
            self._core.send_parked()
