"""Who is there: members of a topic on all nodes, which vanish with their node.

Each node says its own members and renews them every third of ``ttl_s``; those of a node that is killed
or cut off are gone after ``ttl_s``. Nothing here makes a handler wait but ``members`` and ``count``.
Stores: ``presencestores.py``. Tests: ``tests/cluster/test_cache.py``.
"""

from __future__ import annotations

import asyncio
import secrets
from contextlib import asynccontextmanager, suppress
from typing import TYPE_CHECKING, Any, Final, Literal, Protocol

import msgspec

from citius.cluster.byloop import ByLoop
from citius.cluster.engines import cancel, check_lasts, encoded
from citius.cluster.outage import RETRY_S, TIMEOUT_S, Asker, Away
from citius.cluster.stats import Stats
from citius.unknown_options import check_value

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Mapping, Sequence

    from citius.cluster.outage import Health

TTL_S: Final = 15.0
"""How long members of a node that is not heard of count. Origin: longer than a restart of the engine."""

# Changes of so long a time are written together.
_GATHER_S: Final = 0.02


class PresenceStore(Protocol):
    """Members by topic and node, each node's for a time."""

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
        """Note changes of a node's members, and renew them all; ``everything`` is what they are then."""

    async def read(self, topic: str) -> list[Mapping[bytes, bytes]]:
        """The members of each node that is there."""
        ...


class _Node:
    """The members of one topic that are on one event loop."""

    def __init__(self, topic: str, ttl_s: float, store: PresenceStore, asker: Asker) -> None:
        self._topic = topic
        self._ttl_s = ttl_s
        self._store = store
        self._asker = asker
        self._name = secrets.token_hex(8)
        self._here: dict[str, tuple[int, bytes]] = {}
        """How often a member is here, and what was said of it last."""
        self._entered: dict[str, bytes] = {}
        self._left: set[str] = set()
        self._is_complete = False
        """Whether the store has all members of this node, as far as we know."""
        self._changed: asyncio.Event | None = None
        self._task: asyncio.Task[None] | None = None

    def enter(self, member: str, said: bytes) -> None:
        """A member is here, once more."""
        count, _ = self._here.get(member, (0, b""))
        self._here[member] = count + 1, said
        self._entered[member] = said
        self._left.discard(member)
        self._note()

    def leave(self, member: str) -> None:
        """Undo one ``enter``."""
        count, said = self._here[member]
        if count > 1:
            self._here[member] = count - 1, said
        else:
            del self._here[member]
            self._entered.pop(member, None)
            self._left.add(member)
            self._note()

    def members(self) -> dict[bytes, bytes]:
        """Those that are here; any thread may ask."""
        return {encoded(member): said for member, (_, said) in self._here.copy().items()}

    async def stop(self) -> None:
        """Note no changes any more; on its loop."""
        task, self._task = self._task, None
        if task is not None:
            await cancel([task])

    async def take_away(self) -> None:
        """Have the store forget all members of this node; those that stay noted vanish by themselves."""
        if self._is_complete:
            names, self._is_complete = [*self._here.copy(), *self._left.copy()], False
            with suppress(Away):  # they vanish by themselves
                await self._asker.ask(lambda: self._write({}, names, {}))

    def _note(self) -> None:
        """Have the changes written soon, and all members renewed from then on."""
        if self._task is None or self._task.done():
            self._changed = asyncio.Event()
            self._task = asyncio.get_running_loop().create_task(self._run(), name="citius-presence")
        if self._changed is not None:
            self._changed.set()

    async def _run(self) -> None:
        assert self._changed is not None, "it is made before the task"
        while self._here or self._left:
            try:
                async with asyncio.timeout(self._ttl_s / 3):
                    await self._changed.wait()
                await asyncio.sleep(_GATHER_S)
            except TimeoutError:
                pass  # nothing has changed: renew
            self._changed.clear()
            entered, self._entered = self._entered, {}
            left, self._left = self._left, set()
            everything = {member: said for member, (_, said) in self._here.items()}
            if not self._is_complete:
                entered = everything
            try:
                await self._asker.ask(
                    lambda e=entered, le=left, all_=everything: self._write(e, [*le], all_)
                )
                self._is_complete = True
            except Away:
                self._is_complete = False
                self._left |= left - self._here.keys()
                await asyncio.sleep(self._ttl_s / 10)
                self._changed.set()

    async def _write(
        self, entered: Mapping[str, bytes], left: Sequence[str], everything: Mapping[str, bytes]
    ) -> None:
        await self._store.write(
            self._topic, self._name, entered=entered, left=left, everything=everything,
            ttl_s=self._ttl_s,
        )  # fmt: skip


class Presence:
    """The members of one topic.

    Args:
        store: Where they are noted.
        topic: Its name.
        ttl_s: How long members of a node that is not heard of count.
        when_down: What ``members`` does while the store is away: it returns what was known last, with those
            of this node (``"last"``), or raises a 503 (``"refuse"``).
        stats: Where members are counted that no node of this cluster has noted.
    """

    def __init__(
        self,
        store: PresenceStore,
        topic: str,
        *,
        ttl_s: float = TTL_S,
        when_down: Literal["last", "refuse"] = "last",
        timeout_s: float = TIMEOUT_S,
        retry_s: float = RETRY_S,
        stats: Stats | None = None,
        health: Health | None = None,
    ) -> None:
        check_lasts("presence", "ttl_s", ttl_s)
        self._store = store
        self._topic = topic
        self._when_down = when_down
        self._stats = stats or Stats()
        self._asker = Asker("members", timeout_s, retry_s, stats=self._stats, health=health)
        self._nodes = ByLoop(lambda: _Node(topic, ttl_s, store, self._asker))
        self._known: dict[str, Any] = {}

    @asynccontextmanager
    async def enter(self, member: str, info: object = None) -> AsyncGenerator[None]:
        """Be a member for as long as the block lasts; several times makes one member.

        Args:
            member: Its name.
            info: What the others see of it: what msgspec can encode.
        """
        check_value("presence.enter", "member", member, "str")
        said = msgspec.msgpack.encode(info)
        node = self._nodes.here()
        node.enter(member, said)
        try:
            yield
        finally:
            node.leave(member)

    async def members(self) -> dict[str, Any]:
        """The members of all nodes, and what was said of each.

        Raises:
            ServiceUnavailable: The store is away, and ``when_down`` is ``refuse``.
        """
        try:
            nodes = await self._asker.ask(lambda: self._store.read(self._topic))
        except Away:
            if self._when_down == "refuse":
                raise self._asker.refusal() from None
            return {**self._known, **self._decoded(self._own())}
        found: dict[str, Any] = {}
        for members in nodes:
            found.update(self._decoded(members))
        self._known = found
        # What was entered a moment ago may not be noted yet.
        return {**found, **self._decoded(self._own())}

    async def count(self) -> int:
        """How many members there are."""
        return len(await self.members())

    async def stop(self) -> None:
        """Take this node's members away; those that stay noted vanish by themselves."""
        own = self._nodes.pop_here()
        if own is not None:
            await own.stop()
        nodes = self._nodes.all() if own is None else [own, *self._nodes.all()]
        await asyncio.gather(*(node.take_away() for node in nodes))

    def _own(self) -> dict[bytes, bytes]:
        return {name: said for node in self._nodes.all() for name, said in node.members().items()}

    def _decoded(self, members: Mapping[bytes, bytes]) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for member, said in members.items():
            try:
                found[member.decode("utf-8", "surrogatepass")] = msgspec.msgpack.decode(said)
            except (ValueError, msgspec.MsgspecError):
                # No node of this cluster has written that.
                counts = self._stats.foreign
                counts["member"] = counts.get("member", 0) + 1
        return found
