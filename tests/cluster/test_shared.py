"""What all workers of one machine share without an engine: sessions that others cannot displace, locks."""

# pyright: reportPrivateUsage=false

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from citius.cluster import Lock, LockTaken, SharedStore
from citius.cluster.locks import MemoryLocks, SharedLocks
from citius.cluster.outage import Away
from citius.cluster.presence import Presence
from citius.cluster.presencestores import SharedPresence
from citius.process.sharedtable import SharedTable

AGE_S = 3600


def key(number: int) -> str:
    return f"{number:064x}"


@pytest.mark.parametrize("size", [2_000, 60_000])
def test_no_client_displaces_the_sessions_of_others(size: int) -> None:
    """Hostile 10: neither by changing its own nor by taking another identifier, as often as it likes."""
    store = SharedStore(SharedTable.alone(4 << 20))
    others = [key(number) for number in range(1000)]
    for other in others:
        store.save(other, other.encode(), AGE_S)
    store.save(key(2000), b"a", AGE_S)
    for count in range(60_000_000 // size):
        mine, next_one = key(2000 + count), key(2001 + count)
        store.replace(mine, b"%09d" % count * (size // 9), AGE_S)
        # Log out, log in.
        store.delete(mine)
        store.save(next_one, b"a" * (count % size), AGE_S)
    assert [store.load(other) for other in others] == [other.encode() for other in others]


def test_a_session_has_a_limit_of_its_own() -> None:
    """Hostile 10, 15: what is refused raises, and what was there stays."""
    store = SharedStore(SharedTable.alone(1 << 20), session_bytes_max=1000)
    store.save(key(1), b"x" * 1000, AGE_S)
    for change in (store.save, store.replace):
        with pytest.raises(ValueError, match=r"a session has 1001 bytes; 1000 can be kept"):
            change(key(1), b"y" * 1001, AGE_S)
    assert store.load(key(1)) == b"x" * 1000
    store.replace(key(2), b"x", AGE_S)
    assert store.load(key(2)) is None


@pytest.mark.parametrize("kind", ["shared", "memory"])
def test_a_lock_is_released_by_its_holder_alone(kind: str) -> None:
    """Hostile 9: names that are one place to the kernel exclude one another; fences grow over all."""
    table = SharedTable.alone(1 << 20)
    table._hash = lambda _: 7  # type: ignore[method-assign]
    store: Any = SharedLocks(table, "p") if kind == "shared" else MemoryLocks()

    async def steps() -> None:
        fences: list[int] = []
        async with Lock(store, "victim").hold() as held:
            fences.append(held.fence)
            with pytest.raises(LockTaken):
                async with Lock(store, "victim").hold(wait_s=0):
                    pass
            if kind == "shared":
                with pytest.raises(LockTaken):
                    async with Lock(store, "forged").hold(wait_s=0):
                        pass
            await store.release("victim", b"another's token")
            assert await store.take("victim", b"token", 1) is None
        for name in ("victim", "forged", "victim", "other"):
            async with Lock(store, name).hold(wait_s=0) as held:
                fences.append(held.fence)
        assert fences == sorted(set(fences))

    asyncio.run(steps())


def test_a_fence_is_not_displaced() -> None:
    """Hostile 9: by members that come and go in the same table."""
    table = SharedTable.alone(1 << 20)

    async def steps() -> None:
        store = SharedLocks(table, "lock")
        async with Lock(store, "day").hold() as held:
            before = held.fence
        for number in range(2000):
            table.set(b"topic %d" % number, bytes(2000), 60)
        async with Lock(store, "day").hold() as held:
            assert held.fence > before

    asyncio.run(steps())


def test_members_that_have_no_room_are_told_of() -> None:
    """Kind of hostile 15: what is refused is not lost without a word."""
    table = SharedTable.alone(1 << 16)
    store = SharedPresence(table, "p")

    async def steps() -> None:
        members = {f"member {number}": b"x" * 100 for number in range(1000)}
        presence = Presence(store, "topic")
        with pytest.raises(Away):
            await presence._asker.ask(
                lambda: store.write(
                    "topic", "node", entered=members, left=(), everything=members, ttl_s=10
                )
            )

    asyncio.run(steps())
