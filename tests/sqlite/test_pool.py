"""The pool of ``citius.sqlite``: its threads, limits, cancellation and end."""

from __future__ import annotations

import asyncio
import sqlite3
import threading
from collections.abc import Callable
from pathlib import Path

import pytest
from citius import ConfigError, sqlite
from rig import wait_for

ENDLESS = "WITH RECURSIVE c (x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c) SELECT count(*) FROM c"


async def until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(30):
        while not condition():
            await asyncio.sleep(0.001)


def running_in(pool: sqlite.Pool) -> bool:
    """Whether a connection does something."""
    return pool.queued == 0 and pool.engine.is_busy


def threads() -> int:
    return sum(thread.name == "citius.sqlite" for thread in threading.enumerate())


def test_the_end_leaves_nothing(path: Path) -> None:
    async def main() -> None:
        pool = sqlite.Pool(path, readers=3)
        with pytest.raises(sqlite.PoolClosed, match="App\\(lifespan=pool.lifespan\\)"):
            pool.fetch("SELECT 1")
        async with pool:
            await pool.script("CREATE TABLE t (x)")
            await pool.fetch("SELECT x FROM t")
            assert threads() == 4
            with pytest.raises(RuntimeError, match="open already"):
                await pool.open()
        assert threads() == 0
        with pytest.raises(sqlite.PoolClosed):
            pool.fetch("SELECT 1")
        # Once more.
        async with pool:
            assert await pool.fetch("SELECT x FROM t") == []

    asyncio.run(main())
    assert [file.name for file in path.parent.iterdir()] == ["test.db"]


def test_memory() -> None:
    async def main() -> None:
        async with sqlite.Pool(":memory:") as pool:
            await pool.script("CREATE TABLE t (x); INSERT INTO t VALUES (1)")
            assert await pool.fetch_value("SELECT x FROM t") == 1
            async with pool.transaction() as tx:
                await tx.execute("INSERT INTO t VALUES (2)")
            async with pool.cursor("SELECT x FROM t") as rows:
                assert [x async for (x,) in rows] == [1, 2]
            assert threads() == 1

    asyncio.run(main())


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"readers": -1}, "readers must be at least 0, got -1"),
        ({"queue_max": 0}, "queue_max must be at least 1, got 0"),
        ({"synchronous": "often"}, "synchronous is one of off, normal, full, extra; got 'often'"),
    ],
)
def test_wrong_options(options: dict[str, object], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        sqlite.Pool("x.db", **options)  # type: ignore[arg-type]


def test_what_cannot_be_opened(tmp_path: Path) -> None:
    (tmp_path / "text").write_text("no database, but a text of more than a hundred bytes" * 20)

    async def main() -> None:
        for path in (tmp_path / "missing/x.db", tmp_path, tmp_path / "text"):
            with pytest.raises(sqlite.SqliteError, match="cannot open"):
                await sqlite.Pool(path).open()
        assert threads() == 0

    asyncio.run(main())


def test_statements_that_write_are_found(path: Path) -> None:
    """A statement whose first word reads goes to a connection that only reads, which refuses it."""

    async def main() -> None:
        async with sqlite.Pool(path, readers=2) as pool:
            await pool.script("CREATE TABLE t (x UNIQUE)")
            insert = "WITH v (x) AS (SELECT $1) INSERT INTO t SELECT x FROM v RETURNING x"
            assert await asyncio.gather(*(pool.fetch_value(insert, i) for i in range(20))) == list(
                range(20)
            )
            with pytest.raises(sqlite.UniqueViolation):
                await pool.fetch_value(insert, 3)
            async with pool.transaction(readonly=True) as tx:
                with pytest.raises(sqlite.SyntaxOrAccessError, match="readonly"):
                    await tx.fetch_value(insert, 30)

    asyncio.run(main())


def test_a_caller_that_leaves_interrupts_its_statement(path: Path) -> None:
    async def main() -> None:
        async with sqlite.Pool(path, readers=1) as pool:
            running = asyncio.create_task(pool.fetch(ENDLESS))
            waiting = asyncio.create_task(pool.fetch(ENDLESS))
            behind = asyncio.create_task(pool.fetch_value("SELECT 7"))
            await until(lambda: pool.queued == 2)
            waiting.cancel()
            running.cancel()
            for task in (waiting, running):
                with pytest.raises(asyncio.CancelledError):
                    await task
            assert await behind == 7
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(0.05):
                    await pool.fetch(ENDLESS)
            call = pool.fetch(ENDLESS)
            call.start()
            call.close()
            assert await pool.fetch_value("SELECT 8") == 8
            assert pool.queued == 0

    asyncio.run(main())


def test_a_statement_is_awaited_once(path: Path) -> None:
    async def main() -> None:
        async with sqlite.Pool(path) as pool:
            call = pool.fetch_value("SELECT 1")
            assert await call == 1
            with pytest.raises(RuntimeError, match="awaited already"):
                await call
            started = pool.fetch("SELECT nothing")
            started.start()
            with pytest.raises(sqlite.SyntaxOrAccessError):
                await started

    asyncio.run(main())


def test_limits_of_the_queue(path: Path) -> None:
    async def main() -> None:
        async with sqlite.Pool(path, readers=1, queue_max=2, wait_s=0.2) as pool:
            running = asyncio.create_task(pool.fetch(ENDLESS))
            await until(lambda: running_in(pool))
            waiting = [asyncio.create_task(pool.fetch_value("SELECT 1")) for _ in range(2)]
            await asyncio.sleep(0)
            with pytest.raises(
                sqlite.PoolExhausted, match="2 statements wait for the database already"
            ) as caught:
                await pool.fetch_value("SELECT 1")
            assert caught.value.status_code == 503
            for task in waiting:
                with pytest.raises(
                    sqlite.PoolExhausted, match=r"waited 0\.2 s for the database in vain$"
                ):
                    await task
            running.cancel()
            assert await pool.fetch_value("SELECT 1") == 1
            async with pool.transaction() as tx:
                with pytest.raises(sqlite.PoolExhausted, match="use the transaction's methods"):
                    await pool.execute("CREATE TABLE t (x)")
                await tx.execute("CREATE TABLE t (x)")

    asyncio.run(main())


def test_another_process_that_writes_is_waited_for(path: Path) -> None:
    async def main() -> None:
        async with sqlite.Pool(path, busy_s=0.2) as pool:
            await pool.script("CREATE TABLE t (x)")
            other = sqlite3.connect(path, isolation_level=None)
            other.execute("BEGIN IMMEDIATE")
            with pytest.raises(sqlite.DatabaseBusy, match="locked") as caught:
                await pool.execute("INSERT INTO t VALUES (1)")
            assert caught.value.status_code == 503
            assert await pool.fetch("SELECT x FROM t") == []
            insert = asyncio.create_task(pool.execute("INSERT INTO t VALUES (1)"))
            await until(lambda: running_in(pool))
            other.execute("COMMIT")
            other.close()
            assert await insert == 1

    asyncio.run(main())


def test_the_end_waits_for_what_is_done_and_interrupts_what_goes_on(path: Path) -> None:
    async def main() -> None:
        pool = sqlite.Pool(path, readers=1)
        await pool.open()
        await pool.script("CREATE TABLE t (x)")
        transaction = pool.transaction()
        tx = await transaction.__aenter__()
        closing = asyncio.create_task(pool.close())
        await asyncio.sleep(0)
        await tx.execute("INSERT INTO t VALUES (1)")
        await transaction.__aexit__(None, None, None)
        await closing

        await pool.open()
        assert await pool.fetch_value("SELECT x FROM t") == 1
        running = asyncio.create_task(pool.fetch(ENDLESS))
        waiting = asyncio.create_task(pool.fetch("SELECT 1"))
        transaction = pool.transaction()
        tx = await transaction.__aenter__()
        await tx.execute("INSERT INTO t VALUES (2)")
        await pool.close(wait_s=0.05)
        with pytest.raises(sqlite.StatementInterrupted):
            await running
        with pytest.raises(sqlite.PoolClosed):
            await waiting
        with pytest.raises(sqlite.PoolClosed):
            await tx.execute("INSERT INTO t VALUES (3)")
        with pytest.raises(sqlite.PoolClosed):
            await transaction.__aexit__(None, None, None)
        async with pool:
            assert await pool.fetch("SELECT x FROM t") == [(1,)]

    asyncio.run(main())


def test_backup(path: Path, tmp_path: Path) -> None:
    async def main() -> None:
        async with sqlite.Pool(path) as pool:
            await pool.script("CREATE TABLE t (x); INSERT INTO t VALUES (1)")
            await pool.backup(tmp_path / "copy.db")
        async with sqlite.Pool(tmp_path / "copy.db") as pool:
            assert await pool.fetch("SELECT x FROM t") == [(1,)]

    asyncio.run(main())


def test_a_pool_whose_loop_has_ended_without_closing_it_is_opened_anew(path: Path) -> None:
    """The transaction that was open there is rolled back: others can write."""
    pool = sqlite.Pool(path, readers=1, busy_s=20)

    async def leave() -> None:
        await pool.open()
        tx = await pool.transaction().__aenter__()
        await tx.execute("CREATE TABLE left_behind (a)")

    async def use() -> object:
        async with pool:
            await pool.execute("CREATE TABLE IF NOT EXISTS item (a)")
            return await pool.fetch_value("SELECT count(*) FROM sqlite_master")

    before = threading.active_count()
    asyncio.run(leave())
    assert asyncio.run(use()) == asyncio.run(use()) == 1
    asyncio.run(leave())
    assert pool.sync.fetch_value("SELECT count(*) FROM item") == 0
    pool.sync.close()
    asyncio.run(leave())
    asyncio.run(pool.close())
    wait_for(lambda: threading.active_count() <= before + 1, "its threads have ended")
