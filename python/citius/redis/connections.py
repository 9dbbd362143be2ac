"""The connections of a client: made, made again when they are lost, and more of them for commands that wait.

A client has ``size`` connections to each server, which all commands share, and up to ``blocking_max`` that do
one command at a time. Which servers there are says ``cluster.py`` or ``sentinel.py``, or the URL.
"""

from __future__ import annotations

import random
import time
from contextlib import suppress
from typing import TYPE_CHECKING, Any, TypeVar

from citius.databases import silent
from citius.errors import ConfigError
from citius.observability import logging
from citius.redis.errors import ConnectionLost, ProtocolError, RedisError
from citius.redis.homes import NoResponse, Promise, no_response
from citius.redis.links import Link

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Coroutine

    from citius._core import RedisClient, RedisConnection
    from citius.redis.calls import Call
    from citius.redis.homes import Home
    from citius.redis.links import Kind
    from citius.redis.urls import Address, Target

_T = TypeVar("_T")

_BACKOFF_FIRST_S, _BACKOFF_MAX_S = 0.05, 0.5
# How old a connection is before it is made again because it leads to a replica.
REPLICA_S = 1.0
# How much later than the new connection one that is not dead may be answered.
_BOTH_S = 0.25
# Between two looks at whether commands have ended.
_LOOK_S = 0.01


class _NotMeant(ConnectionLost):
    """A connection was opened, and leads to another server than the one that is meant."""


def _refusal(link: Link, n_targets: int) -> str | None:
    """Of several servers it is the master that is meant."""
    return None if n_targets == 1 or link.server.role == "master" else "it is a replica"


class Connections:
    """All connections of one client. On the thread of its home only."""

    def __init__(
        self,
        home: Home,
        core: RedisClient,
        *,
        size: int,
        blocking_max: int,
        connect_timeout_s: float,
        is_tracking: bool,
    ) -> None:
        self.home, self.core = home, core
        self._size, self._blocking_max = size, blocking_max
        self._connect_timeout_s, self._is_tracking = connect_timeout_s, is_tracking
        self._by_core: dict[int, Link] = {}
        self._lost: dict[Link, Promise[BaseException]] = {}
        self._cancels: dict[object, Callable[[], object]] = {}
        self._kept: set[int] = set()
        self._opening: dict[int, int] = {}
        self._failure: BaseException | None = None
        self._failed_at = 0.0
        self._unreachable: BaseException | None = None
        self.count: Callable[[str], object] = lambda counter: None
        """Counts what happens: ``opened``, ``lost``, ``connect_failed``."""
        self.locate: Callable[[int], Awaitable[list[Target]]]
        """Where a server is."""
        self.attempts_max = 1
        """How often to ask where it is while the connections that are opened lead to other servers."""
        self.refusal: Callable[[Link, int], str | None] = _refusal
        """Why a new connection, to one of so many targets, is not the one that is meant."""
        self.on_failure: Callable[[int], object] = lambda node: None
        self.on_shared: Callable[[], object] = lambda: None
        """A server has a connection that commands share."""
        self.is_ending = False
        self.is_group = False
        """One of several servers is the master, and which one it is may change."""
        self._is_asking_roles = False

    @property
    def links(self) -> list[Link]:
        """Those to servers that are open."""
        return [link for link in self._open() if link.kind != "sentinel"]

    def _open(self) -> list[Link]:
        return [link for link in self._by_core.values() if link.is_open]

    def counts(self) -> tuple[int, int, int]:
        """Connections in use, idle ones, and commands that wait for one."""
        loads = [link.core.load > 0 for link in self.links]
        return sum(loads), len(loads) - sum(loads), self.core.queued

    # --- connections that commands share ---

    def keep(self, node: int, link: Link | None = None) -> None:
        """Have ``size`` connections to a server, always; ``link`` is the first of them."""
        if node not in self._kept:
            self._kept.add(node)
            for number in range(self._size):
                self.spawn((node, number), self._keep(node, link if number == 0 else None))

    def drop(self, node: int) -> None:
        """Need a server no more; its connections are closed."""
        self._kept.discard(node)
        for number in range(self._size):
            if cancel := self._cancels.pop((node, number), None):
                cancel()
        for link in self.links:
            if link.node == node:
                link.close("its server left the cluster")

    async def _keep(self, node: int, link: Link | None) -> None:
        while node in self._kept:
            link = link or await self.try_until_open(
                lambda: node, "shared", is_wanted=lambda: node in self._kept
            )
            if link is None:
                return
            if not link.is_closed:  # it may have ended as soon as it was open
                self.core.share(link.core, False)
                self.on_shared()
            await self.until_lost(link)
            link = None
            # Not all clients of a server that has restarted at once.
            await self.home.sleep(random.random() * _BACKOFF_FIRST_S)

    async def until_lost(self, link: Link) -> None:
        """Wait for the end of a connection."""
        if (lost := self._lost.get(link)) is not None:
            await self.home.result(lost)

    async def try_until_open(
        self,
        server: Callable[[], int],
        kind: Kind,
        is_wanted: Callable[[], bool] = lambda: True,
        **options: Any,
    ) -> Link | None:
        """Connect until it succeeds, after pauses that grow, or until it is not wanted any more.

        The first failure is logged.
        """
        pause_s, is_told = _BACKOFF_FIRST_S, False
        while is_wanted():
            node = server()
            try:
                return await self.open(node, kind, **options)
            except (
                Exception
            ) as error:  # of any kind: without a new attempt there would be none for ever
                if not is_told and not self.is_ending:
                    logging.warning(f"Redis: {error}; trying again")
                    is_told = True
                self.on_failure(node)
            await self.home.sleep(pause_s * (0.5 + random.random() / 2))
            pause_s = min(pause_s * 2, _BACKOFF_MAX_S)
        return None

    async def open(self, node: int, kind: Kind, **options: Any) -> Link:
        """A connection that has logged in.

        Raises:
            RedisError: None of the addresses gives one; the error is that of the last.
            ConfigError: TLS cannot be used as it is configured.
        """
        try:
            link = await self._open_meant(node, kind, **options)
        except (RedisError, ConfigError) as error:
            self.count("connect_failed")
            self.note_failure(error)
            self._unreachable = error
            raise
        self._unreachable = None
        self.count("opened")
        return link

    async def _open_meant(self, node: int, kind: Kind, **options: Any) -> Link:
        for _ in range(self.attempts_max - 1):
            with suppress(_NotMeant):
                return await self._open_once(node, kind, **options)
        return await self._open_once(node, kind, **options)

    async def _open_once(self, node: int, kind: Kind, **options: Any) -> Link:
        failure: RedisError | None = None
        targets = await self.locate(node)
        for target in silent.in_order(targets, lambda target: target.addresses[0]):
            try:
                link = await self.open_at(target, kind, node, **options)
            except RedisError as error:
                failure = error
                continue
            if (why := self.refusal(link, len(targets))) is None:
                return link
            link.close(why)
            failure = _NotMeant(f"{target}: {why}")
        raise failure or ConnectionLost("there is no address of a server")

    def note_failure(self, error: BaseException) -> None:
        """Why commands cannot be done now, for the errors of those that wait for too long."""
        self._failure, self._failed_at = error, time.monotonic()

    def failure_since(self, seconds: float) -> BaseException | None:
        """The last failure of a connection, if it is not older."""
        return self._failure if time.monotonic() - self._failed_at <= seconds else None

    @property
    def unreachable(self) -> BaseException | None:
        """Why the last attempt to connect failed; ``None`` if it has not, or if a connection is left."""
        return None if self.links else self._unreachable

    async def ask(self, link: Link, *words: str, read: Callable[[Any], _T]) -> _T:
        """What a reply says to a command of the client's own, which has the time of a connection.

        Args:
            link: The connection.
            words: The command.
            read: Reads the reply; whatever it raises for one of another form is a fault of the server's.

        Raises:
            RedisError: There is none in time, it is an error, or it cannot be read.
        """
        call: Call[Any] = self.core.execute(*words, as_=str, connection=link.core)
        answered: Promise[_T] = Promise(self.home)

        async def wait() -> None:
            try:
                answered.resolve(read(await self.home.result(call)))
            except RedisError as error:
                answered.resolve(error=error)
            except Exception as error:  # of any kind: what waits for it has no other end
                what = f"{link.address}: the reply to {words[0]} cannot be read: {error}"
                answered.resolve(error=ProtocolError(what))

        late = no_response(link.address, self._connect_timeout_s)
        cancel = self.home.later(self._connect_timeout_s, lambda: answered.resolve(error=late))
        self.spawn(answered, wait())
        try:
            return await self.home.result(answered)
        finally:
            cancel()

    async def retire(self, link: Link, why: str, wait_s: float | None = None) -> None:
        """Close a connection when its commands have ended, or at the latest after ``wait_s``."""
        self.core.unshare(link.core)
        left_s = self._connect_timeout_s if wait_s is None else wait_s
        while link.core.load and left_s > 0:
            await self.home.sleep(_LOOK_S)
            left_s -= _LOOK_S
        link.close(why)

    async def open_at(self, target: Target, kind: Kind, node: int = 0, **options: Any) -> Link:
        """A connection to the first address of a target."""
        address = target.addresses[0]
        try:
            made = await self.home.connect(address, self._connect_timeout_s)
        except NoResponse:
            silent.note(address)
            raise
        try:
            peer = made.getpeername()
            link = Link(
                self.home, self.core, made, target, kind, node=node,
                is_tracking=self._is_tracking and kind == "shared",
                on_closed=self._ended, **options,
            )  # fmt: skip
        except BaseException:
            made.close()
            raise
        self._by_core[id(link.core)] = link
        self._lost[link] = Promise(self.home)
        try:
            await link.open(self._connect_timeout_s)
        except NoResponse:
            # A name has another address, maybe.
            silent.note(peer)
            silent.note(address)
            raise
        silent.forget(peer)
        silent.forget(address)
        return link

    def _ended(self, link: Link, error: BaseException) -> None:
        self._by_core.pop(id(link.core), None)
        if link.is_open and not link.is_closed_here:
            self.count("lost")
            self.note_failure(error)
        if (lost := self._lost.pop(link, None)) is not None:
            lost.resolve(error)

    # --- connections for commands that the server may keep waiting ---

    def want(self, node: int) -> None:
        """Have another one, if commands wait for it and there are not too many."""
        opening = self._opening.get(node, 0)
        n_blocking = sum(link.kind == "blocking" for link in self.links)
        is_wanted = self.core.waiting(node, True) > opening
        if is_wanted and n_blocking + sum(self._opening.values()) < self._blocking_max:
            self._opening[node] = opening + 1
            self.spawn(object(), self._open_blocking(node))

    async def _open_blocking(self, node: int) -> None:
        try:
            link = await self.try_until_open(
                lambda: node, "blocking", is_wanted=lambda: self.core.waiting(node, True) > 0
            )
        finally:
            self._opening[node] -= 1
        if link is not None:
            if not link.is_closed:
                self.core.share(link.core, True)
            self.want(node)

    def give_back(self, connection: RedisConnection) -> None:
        """Let a connection that a caller had for itself take commands again."""
        link = self._by_core.get(id(connection))
        if link is None:
            return
        if link.is_retired:
            link.close("it leads to a replica")
            self.want(link.node)
        else:
            self.core.share(link.core, True)

    def close_one(self, connection: RedisConnection, why: str) -> None:
        """Close a connection; commands that wait may want another one."""
        if (link := self._by_core.get(id(connection))) is not None:
            link.close(why)
            self.want(link.node)

    # --- connections that do not respond, or lead to the wrong server ---

    def leave_replica(self, node: int) -> None:
        """Give up connections to a server that was a master; those that callers have when they end.

        What was published at the new one before this one followed it is missed: subscribers get a gap.
        """
        latest = time.monotonic() - REPLICA_S
        links = [link for link in self.links if link.node == node]
        left: set[Address] = set()
        for link in links:
            if link.kind not in ("shared", "blocking"):
                continue
            if link.core.is_lent:
                link.is_retired = True
            elif link.opened_at < latest:
                left.add(link.address)
                self.spawn(link, self.retire(link, "it leads to a replica"))
        for link in links:
            is_demoted = link.address in left and link.server.role == "master"
            if link.kind == "subscriber" and is_demoted:
                link.close("it leads to a replica")

    def leave_others(self, address: Address) -> None:
        """Give up connections to servers that are not at the master's address.

        They may take commands still, and lose them.
        """
        why = "another server is the master now"
        for link in self.links:
            if link.address == address or link.kind == "probe":
                continue
            if link.kind == "shared":
                # It may be silent, and the next one is made when it has ended.
                self.spawn(link, self.retire(link, why, _BOTH_S))
            else:
                link.close(why)

    def silent(self, connection: RedisConnection) -> None:
        """A command has waited on a connection for too long."""
        link = self._by_core.get(id(connection))
        if link is None:
            return
        if link.kind in ("shared", "subscriber"):
            self.doubt(link)
        else:
            # It has no other command.
            self.close_one(connection, "a command had no reply in time")

    def doubt(self, link: Link) -> None:
        """Close a connection that stays silent while the server responds to another one."""
        if not link.is_doubted and link.is_open:
            link.is_doubted = True
            self.on_failure(link.node)
            self.spawn(object(), self._find_out(link))

    async def _find_out(self, link: Link) -> None:
        since = time.monotonic()
        try:
            probe = await self.open(link.node, "probe")
        except (RedisError, ConfigError):
            # The server is what is silent.
            self.on_failure(link.node)
            if link.is_anywhere and self._have_said(link.node, time.monotonic() - since):
                link.close("its server is silent, and others respond")
            return
        finally:
            link.is_doubted = False
        probe.close()
        # A server that stood still answers both, in any order.
        await self.home.sleep(_BOTH_S)
        if link.is_open and link.core.silent_ms >= (time.monotonic() - since) * 1000:
            link.close("it is silent, and the server responds to others")
            if probe.address != link.address:
                self._leave_address(link)

    def _have_said(self, node: int, seconds: float) -> bool:
        """Whether something has come from another server than this one lately."""
        return any(
            link.kind == "shared" and link.node != node and link.core.silent_ms < seconds * 1000
            for link in self.links
        )

    def _leave_address(self, silent: Link) -> None:
        """Close what waits, maybe for ever, for a server that another one has taken the place of."""
        for link in self.links:
            if link.node == silent.node and link.address == silent.address:
                link.close("its server is silent, and another one is in its place")

    def any_node(self) -> int:
        """A server to which what any of them may do goes: the one that has said something last."""
        shared = [link for link in self.links if link.kind == "shared"]
        latest = min(shared, key=lambda link: link.core.silent_ms, default=None)
        return self.core.any_node() if latest is None else latest.node

    def beat(self, idle_s: float, dead_s: float) -> bool:
        """Ask for a sign of life where nothing has come for ``idle_s``; whether all have given one."""
        are_alive = True
        for link in self._open():
            silent_s = link.core.silent_ms / 1000
            if silent_s < idle_s or link.core.is_lent or link.kind == "probe":
                continue
            if link.core.load == 0:
                self.core.execute("PING", connection=link.core).start()
            elif link.kind == "sentinel" and silent_s >= dead_s:
                link.close("the sentinel is silent")
            elif link.kind in ("shared", "subscriber") and silent_s >= dead_s:
                are_alive = False
                self.doubt(link)
        return are_alive

    def ask_roles(self) -> None:
        """Give up connections to a server that is no master any more: what only reads does not show it."""
        if not self.is_group:
            return
        links = {link.address: link for link in self.links if link.kind == "shared"}
        if links and not self._is_asking_roles:
            self._is_asking_roles = True
            self.spawn(object(), self._ask_roles(list(links.values())))

    async def _ask_roles(self, links: list[Link]) -> None:
        try:
            for link in links:
                # A user that may not ask for it finds out by a command that writes.
                with suppress(RedisError):
                    if await self.ask(link, "ROLE", read=lambda said: said[0] == "slave"):
                        self.leave_replica(link.node)
        finally:
            self._is_asking_roles = False

    # --- all ---

    def spawn(self, name: object, coroutine: Coroutine[Any, Any, None]) -> None:
        """Step a coroutine until it ends, or until all connections are closed."""
        is_begun = False

        async def run() -> None:
            nonlocal is_begun
            is_begun = True
            try:
                await coroutine
            finally:
                self._cancels.pop(name, None)

        def cancel() -> None:
            end()
            if not is_begun:
                coroutine.close()

        if self.is_ending:
            return coroutine.close()
        end = self.home.spawn(run())
        self._cancels[name] = cancel

    def leave(self) -> None:
        """Close all sockets where the loop has ended, which is asked for nothing."""
        self.is_ending = True
        for link in list(self._by_core.values()):
            link.leave()

    def close(self) -> None:
        """Close all, and end all attempts."""
        self.is_ending = True
        self._kept.clear()
        for cancel in list(self._cancels.values()):
            cancel()
        self._cancels.clear()
        for link in list(self._by_core.values()):
            link.close()
