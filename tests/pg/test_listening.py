"""LISTEN and NOTIFY: order, bounds, a connection that is lost and made again."""

from __future__ import annotations

import asyncio

import pytest
from citius import pg
from pg_rig import pooled


@pooled(size=1)
async def test_notifications(pool) -> None:
    async with pool.listen("plain", 'Mixed "Case"') as notifications:
        process = await pool.fetch_value("SELECT pg_backend_pid()")
        await pool.execute("NOTIFY plain, 'one'")
        assert await anext(notifications) == pg.Notification("plain", "one", process)
        async with pool.transaction() as tx:
            for number in range(100):
                await tx.execute("SELECT pg_notify($1, $2)", 'Mixed "Case"', str(number))
            await tx.execute("NOTIFY other, 'unheard'")
        heard = [(await anext(notifications)).payload for _ in range(100)]
        assert heard == [str(number) for number in range(100)]
        # It takes none of the pool's sessions.
        assert pool.sessions == 1
    with pytest.raises(pg.PoolClosed):
        await anext(notifications)
    for names in ((), ("",), ("a\0b",)):
        with pytest.raises(ValueError, match="names of channels"):
            pool.listen(*names)


@pooled(size=1)
async def test_a_consumer_that_is_too_slow_loses_the_oldest_and_is_told(pool) -> None:
    gaps = []
    async with pool.listen("fast", queue_max=10, on_gap=lambda: gaps.append(1)) as notifications:
        async with pool.transaction() as tx:
            for number in range(50):
                await tx.execute("SELECT pg_notify('fast', $1)", str(number))
        while notifications.dropped < 40:
            await asyncio.sleep(0.01)  # a look at a condition
        assert [(await anext(notifications)).payload for _ in range(10)] == [
            str(number) for number in range(40, 50)
        ]
        assert len(gaps) == 40


@pooled(size=1)
async def test_a_lost_connection_is_made_again(pool) -> None:
    gaps = asyncio.Queue()
    async with pool.listen("again", on_gap=lambda: gaps.put_nowait(1)) as notifications:
        await pool.execute("NOTIFY again, 'before'")
        assert (await anext(notifications)).payload == "before"
        waiting = asyncio.create_task(anext(notifications))
        assert await pool.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE query LIKE 'LISTEN%again%'"
        )
        await asyncio.wait_for(gaps.get(), 20)
        await pool.execute("NOTIFY again, 'after'")
        assert (await asyncio.wait_for(waiting, 20)).payload == "after"


def test_the_server_is_restarted(own_server) -> None:
    async def main() -> None:
        gaps = asyncio.Queue()
        async with (
            pg.Pool(own_server.dsn, size=1, wait_s=20) as pool,
            pool.listen("again", on_gap=lambda: gaps.put_nowait(1)) as notifications,
        ):
            await asyncio.to_thread(own_server.stop)
            await asyncio.to_thread(own_server.start)
            await asyncio.wait_for(gaps.get(), 20)
            await pool.execute("NOTIFY again, 'after'")
            assert (await asyncio.wait_for(anext(notifications), 20)).payload == "after"

    asyncio.run(main())


def test_a_pool_that_is_closed_ends_its_listeners(server) -> None:
    async def main() -> None:
        async with pg.Pool(server.dsn, size=1) as pool:
            notifications = await pool.listen("open").__aenter__()
            waiting = asyncio.create_task(anext(notifications))
            await asyncio.sleep(0)
        with pytest.raises(pg.PoolClosed):
            await asyncio.wait_for(waiting, 10)

    asyncio.run(main())


@pooled(size=1)
async def test_several_consumers_of_one_listener(pool) -> None:
    """databases M1: each that waits is woken, and one that leaves takes no other with it."""
    async with pool.listen("shared") as notifications:
        waiting = [asyncio.ensure_future(anext(notifications)) for _ in range(3)]
        await asyncio.sleep(0)
        waiting[1].cancel()
        await pool.execute("NOTIFY shared, '1'")
        await pool.execute("NOTIFY shared, '2'")
        heard = await asyncio.gather(waiting[0], waiting[2])
        assert sorted(notification.payload for notification in heard) == ["1", "2"]


def test_a_host_that_is_passed_over_is_no_loss(server, own_server) -> None:
    """The end of its session counted as that of the next host's: one more was connected at each turn."""
    own_server.stop()
    own_server.start(default_transaction_read_only="on")
    hosts = f"host={own_server.directory},{server.directory} target_session_attrs=read-write"

    async def main() -> None:
        gaps = []
        async with (
            pg.Pool(f"{hosts} user={server.user} dbname=postgres", size=1) as pool,
            pool.listen("second", on_gap=lambda: gaps.append(1)) as notifications,
        ):
            for _ in range(5):
                # Each connects to both hosts, as the first one would.
                async with pool.listen("other"):
                    pass
            await pool.execute("NOTIFY second, 'heard'")
            assert (await anext(notifications)).payload == "heard"
            assert gaps == []
            listening = "SELECT count(*) FROM pg_stat_activity WHERE query LIKE 'LISTEN%second%'"
            assert await pool.fetch_value(listening) == 1

    asyncio.run(asyncio.wait_for(main(), 60))
