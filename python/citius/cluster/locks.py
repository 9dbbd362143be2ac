"""Locks by name over all nodes, by the recipe of each engine.

Redis: ``SET NX PX`` with a random token, renewed and released by scripts that compare it (the recipe of
Redis' documentation for one instance). One machine: a lock of the kernel, which ends with its process.
One process: a set of names.

A lock of Redis can be lost: a node that stands still for longer than ``ttl_s``, or a Redis that loses
its memory, lets another node have it. The block of the first is cancelled as soon as that is noticed,
and what it writes elsewhere should carry ``held.fence``, a number that grows with each holder, so that
the other side can refuse what comes from an earlier one. Tests: ``tests/cluster/test_cache.py``.
"""

from __future__ import annotations

import asyncio
import random
import secrets
import time
from contextlib import AbstractContextManager, ExitStack, asynccontextmanager
from typing import TYPE_CHECKING, Final, Protocol

from citius.cluster.engines import check_lasts, encoded
from citius.cluster.outage import Asker, Away, give_back
from citius.cluster.redisclient import Script, checked
from citius.errors import ServiceUnavailable
from citius.unknown_options import check_value

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from citius.cluster.redisclient import Argument, RedisClient
    from citius.process.sharedtable import SharedTable

TTL_S: Final = 30.0
"""How long a lock lasts that is not renewed. It is renewed every third of that."""

_LOOK_S: Final = 0.01
_LOOK_S_MAX: Final = 0.25


class LockTaken(ServiceUnavailable):
    """The lock was not free within ``wait_s``. A handler that does not catch it responds with 503."""


class LockLost(Exception):
    """Another node may have the lock: it was not renewed in time."""


class Held:
    """A lock that is held."""

    def __init__(self, fence: int) -> None:
        self.fence = fence
        """A number that is higher than that of all holders before; also of those before a restart of the
        server, or a loss of Redis' memory, if the clock was not set back."""
        self.is_lost = False
        """Whether another node may have it by now."""


class LockStore(Protocol):
    """Locks by name. ``token`` is the holder's."""

    is_renewed: bool
    """Whether a lock ends that is not renewed."""

    async def take(self, name: str, token: bytes, ttl_s: float) -> int | None:
        """Try to take a lock; its fence."""
        ...

    async def renew(self, name: str, token: bytes, ttl_s: float) -> bool:
        """Whether it is still ours, for so long again."""
        ...

    async def release(self, name: str, token: bytes) -> None:
        """Give it back."""


class Lock:
    """The lock of one name.

    Args:
        store: Where it is.
        name: Its name.
        ttl_s: How long it lasts when its node is gone.
        asker: What asks the store, for all locks of it.
    """

    def __init__(
        self, store: LockStore, name: str, *, ttl_s: float = TTL_S, asker: Asker | None = None
    ) -> None:
        check_lasts("lock", "ttl_s", ttl_s)
        self._store = store
        self._name = name
        self._ttl_s = ttl_s
        self._asker = asker or Asker("locks")

    @asynccontextmanager
    async def hold(self, *, wait_s: float | None = None) -> AsyncGenerator[Held]:
        """Hold the lock for as long as the block lasts.

        Args:
            wait_s: Longest time to wait; ``None``: without a limit. 0: one attempt, which
                takes half a second at most.

        Raises:
            LockTaken: It was not free for so long, or the engine was away.
            LockLost: It was lost; the block has been cancelled.
        """
        check_value("lock.hold", "wait_s", wait_s, "float | None")
        token = secrets.token_bytes(16)
        held: Held | None = None
        renewing = None
        task = asyncio.current_task()
        assert task is not None, "hold is called in a task"
        cancellations = task.cancelling()
        try:
            # From before the first take: one whose reply is dropped by a cancellation goes back too.
            try:
                fence, asked_at = await self._take(token, wait_s)
                held = Held(fence)
                if self._store.is_renewed:
                    renewing = asyncio.ensure_future(self._renew(token, held, task, asked_at))
                yield held
                if held.is_lost:
                    # The block has ended its own cancellation.
                    raise LockLost(self._name)
            finally:
                if renewing is not None:
                    renewing.cancel()
                again_s = self._ttl_s if self._store.is_renewed else 0.0
                release = give_back(lambda: self._store.release(self._name, token), again_s)
                if held is not None:
                    await self._asker.wait_for(release)
        except asyncio.CancelledError:
            if held is None or not held.is_lost or task.uncancel() > cancellations:
                # Others have cancelled it, too.
                raise
            raise LockLost(self._name) from None
        except LockLost:
            if held is not None and held.is_lost and task.cancelling() > cancellations:
                task.uncancel()
            raise

    async def _take(self, token: bytes, wait_s: float | None) -> tuple[int, float]:
        """The fence, and when the question was asked that got the lock."""
        loop = asyncio.get_running_loop()
        until = None if wait_s is None else loop.time() + wait_s
        pause_s = _LOOK_S
        while True:
            asked_at = loop.time()
            try:
                fence = await self._asker.ask(
                    lambda: self._store.take(self._name, token, self._ttl_s)
                )
            except Away:
                fence, reason = None, "the engine is away"
            else:
                reason = "it is held elsewhere"
            if fence is not None:
                return fence, asked_at
            if until is not None and loop.time() + pause_s > until:
                raise LockTaken(f"lock {self._name!r}: {reason}", {"retry-after": "1"})
            await asyncio.sleep(pause_s * random.uniform(0.5, 1.0))
            pause_s = min(2 * pause_s, _LOOK_S_MAX)

    async def _renew(
        self, token: bytes, held: Held, task: asyncio.Task[object], asked_at: float
    ) -> None:
        """Renew until another node may have it; then cancel the block."""
        loop = asyncio.get_running_loop()
        # From before the question, so that ours ends before the engine's, however late its reply was read.
        ends_at = asked_at + self._ttl_s
        while True:
            left_s = ends_at - loop.time()
            await asyncio.sleep(max(0.0, min(self._ttl_s / 3, left_s - self._ttl_s / 10)))
            asked_at = loop.time()
            try:
                async with asyncio.timeout(max(0.0, ends_at - asked_at - self._ttl_s / 20)):
                    is_ours = await self._store.renew(self._name, token, self._ttl_s)
            except Exception:
                # Of any kind: without a reply it is not known whether the lock is still ours.
                if loop.time() < ends_at - self._ttl_s / 10:
                    continue
                is_ours = False
            if not is_ours:
                held.is_lost = True
                task.cancel(f"lock {self._name!r} is lost")
                return
            ends_at = asked_at + self._ttl_s


class MemoryLocks:
    """Locks of one process."""

    is_renewed = False

    def __init__(self) -> None:
        self._holders: dict[str, bytes] = {}
        self._fence = 0

    async def take(self, name: str, token: bytes, ttl_s: float) -> int | None:
        """Try to take a lock."""
        if self._holders.setdefault(name, token) is not token:
            return None
        self._fence = max(self._fence + 1, time.time_ns() // 1000)
        return self._fence

    async def renew(self, name: str, token: bytes, ttl_s: float) -> bool:
        """It stays ours."""
        return self._holders.get(name) == token

    async def release(self, name: str, token: bytes) -> None:
        """Give it back."""
        if self._holders.get(name) == token:
            del self._holders[name]


class SharedLocks:
    """Locks of all workers of one machine."""

    is_renewed = False

    def __init__(self, table: SharedTable, prefix: str) -> None:
        self._table = table
        self._prefix = prefix
        # The kernel's locks are those of processes; this tells the tasks of one apart.
        self._held: dict[str, tuple[bytes, ExitStack]] = {}

    async def take(self, name: str, token: bytes, ttl_s: float) -> int | None:
        """Try to take a lock."""
        if name in self._held:
            return None
        key = encoded(f"{self._prefix}:{name}")
        stack = ExitStack()
        locked: AbstractContextManager[bool] = self._table.locked(key)
        if not stack.enter_context(locked):
            stack.close()
            return None
        self._held[name] = token, stack
        return self._table.next_fence()

    async def renew(self, name: str, token: bytes, ttl_s: float) -> bool:
        """It stays ours."""
        return self._held.get(name, (b"",))[0] == token

    async def release(self, name: str, token: bytes) -> None:
        """Give it back."""
        if await self.renew(name, token, 0.0):
            _, stack = self._held.pop(name)
            stack.close()


_FENCE_S: Final = 7 * 86_400
"""A fence is forgotten when its lock was not taken for so long: the clock is above it by then."""

# No fence is below the clock of Redis in microseconds, and no lock is taken as often as that: a Redis that
# has lost its memory, or that has an older state again (a snapshot, a replica that was behind), goes on above
# the fences that it has given. A holder whose reply was lost asks again, and has it.
_TAKE: Final = """
local before = tonumber(redis.call('GET', KEYS[2]) or '0') or 0
if redis.call('GET', KEYS[1]) == ARGV[1] then redis.call('PEXPIRE', KEYS[1], ARGV[2])
elseif not redis.call('SET', KEYS[1], ARGV[1], 'NX', 'PX', ARGV[2]) then return false end
local time = redis.call('TIME')
local fence = math.max(before + 1, tonumber(time[1]) * 1000000 + tonumber(time[2]))
redis.call('SET', KEYS[2], string.format('%.0f', fence), 'EX', ARGV[3])
return fence
"""
_RENEW: Final = """
if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('PEXPIRE', KEYS[1], ARGV[2]) end
return 0
"""
_RELEASE: Final = """
if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('DEL', KEYS[1]) end
return 0
"""


class RedisLocks:
    """Locks of all machines."""

    is_renewed = True

    def __init__(self, client: RedisClient, prefix: str) -> None:
        self._client = client
        self._prefix = prefix
        self._take, self._renew, self._release = Script(_TAKE), Script(_RENEW), Script(_RELEASE)

    async def take(self, name: str, token: bytes, ttl_s: float) -> int | None:
        """Try to take a lock."""
        keys: list[Argument] = [self._key("lock", name), self._key("fence", name)]
        reply = await self._call(self._take, keys, [token, round(1000 * ttl_s), _FENCE_S])
        return reply if isinstance(reply, int) else None

    async def renew(self, name: str, token: bytes, ttl_s: float) -> bool:
        """Whether it is still ours."""
        arguments: list[Argument] = [token, round(1000 * ttl_s)]
        return await self._call(self._renew, [self._key("lock", name)], arguments) == 1

    async def release(self, name: str, token: bytes) -> None:
        """Give it back."""
        await self._call(self._release, [self._key("lock", name)], [token])

    async def _call(
        self, script: Script, keys: list[Argument], arguments: list[Argument]
    ) -> object:
        (reply,) = checked(await script.replies(self._client, [script.call(keys, arguments)]))
        return reply

    def _key(self, kind: str, name: str) -> bytes:
        # What is in braces says which node of a cluster has both keys; it ends with the first `}`.
        if not name or "}" in name or name.startswith("%"):
            name = "%" + name.encode(errors="surrogatepass").hex()
        return encoded(f"{self._prefix}:{kind}:{{{name}}}")
