"""Cancelled at every await of every function that takes a session: the pool has all of them, clean.

databases D2, its kind. A caller is cancelled when it stands at its nth wait: before what it waits for is
there, in the turn in which it comes, and one later.
"""

from __future__ import annotations

import asyncio
import itertools
import time
import types
from collections.abc import Awaitable, Callable, Coroutine, Generator
from pathlib import Path
from typing import Any

import pytest
from citius import pg, sqlite
from citius.databases import sync
from citius.pg import asyncpg
from pg_rig import Server
from sqlalchemy import URL, text
from sqlalchemy.ext.asyncio import create_async_engine

SIZE = 2
WAITS_MAX = 60
Use = Callable[[pg.Pool], Coroutine[Any, Any, object]]


async def statement(pool: pg.Pool) -> None:
    assert await pool.fetch_value("SELECT 'own'") == "own"


async def transaction(pool: pg.Pool) -> None:
    async with pool.transaction() as tx:
        await tx.execute("INSERT INTO cancelled VALUES (1)")
        async with tx.transaction() as inner:
            await inner.execute("INSERT INTO cancelled VALUES (2)")
        raise KeyError("rolled back")


async def changes(pool: pg.Pool) -> None:
    async with pool.transaction() as tx:
        await tx.execute("SET app.owner = 'left'")
        await tx.execute("CREATE TEMP TABLE own (x int)")
        await tx.execute("PREPARE own AS SELECT 'left'")
        await tx.execute("SELECT pg_advisory_lock(5)")


async def cursor(pool: pg.Pool) -> None:
    async with pool.cursor("SELECT generate_series(1, 9)", rows_max=2) as rows:
        assert [row async for row in rows][-1] == (9,)


async def cursor_within(pool: pg.Pool) -> None:
    async with (
        pool.transaction() as tx,
        tx.cursor("SELECT generate_series(1, 5)", rows_max=2) as rows,
    ):
        async for _ in rows:
            pass


async def copy_out(pool: pg.Pool) -> None:
    async with pool.copy_out("COPY (SELECT generate_series(1, 9)) TO STDOUT") as chunks:
        async for _ in chunks:
            pass


async def copy_in(pool: pg.Pool) -> None:
    async def source() -> Any:
        for number in range(4):
            await asyncio.sleep(0)
            yield (number,)

    async with pool.transaction() as tx:
        assert await tx.copy_in("COPY cancelled FROM STDIN", source()) == 4
        raise KeyError("rolled back")


async def copy_in_alone(pool: pg.Pool) -> None:
    await pool.copy_in("COPY nothing FROM STDIN", [])


async def pipeline(pool: pg.Pool) -> None:
    async with pool.transaction() as tx:
        calls = (tx.fetch_value("SELECT $1::int", number) for number in range(5))
        assert await pg.gather(*calls) == list(range(5))


async def many(pool: pg.Pool) -> None:
    await pool.execute_many(
        "DELETE FROM cancelled WHERE x = $1", [(number,) for number in range(3)]
    )


async def listen(pool: pg.Pool) -> None:
    async with pool.listen("own") as notifications:
        await pool.execute("SELECT pg_notify('own', 'a')")
        assert (await anext(aiter(notifications))).payload == "a"


async def waits_for_a_session(pool: pg.Pool) -> None:
    """One more than there are: it gets that of another."""
    held = asyncio.Event()

    async def hold() -> None:
        async with pool.transaction():
            held.set()
            await asyncio.sleep(0)

    others = [asyncio.ensure_future(hold()) for _ in range(SIZE)]
    try:
        await held.wait()
        async with pool.transaction() as tx:
            assert await tx.fetch_value("SELECT 'own'") == "own"
    finally:
        for other in others:
            other.cancel()


async def serially(pool: pg.Pool) -> None:
    def in_thread() -> None:
        with pool.sync.transaction() as tx:
            assert tx.fetch_value("SELECT 'own'") == "own"

    await asyncio.to_thread(in_thread)


async def from_another_loop(pool: pg.Pool) -> None:
    """What a thread or a greenlet of ``pool.sync`` does when it is told to end."""

    async def block() -> None:
        async with pool.transaction() as tx:
            await tx.fetch_value("SELECT 1")

    loop = asyncio.get_running_loop()
    # The coroutine is made there: a thread that is given up before it begins leaves none behind.
    future = await asyncio.to_thread(lambda: asyncio.run_coroutine_threadsafe(block(), loop))
    try:
        await asyncio.wrap_future(future)
    finally:
        future.cancel()


USES: list[Use] = [
    statement, transaction, changes, cursor, cursor_within, copy_out, copy_in, copy_in_alone, pipeline,
    many, listen, waits_for_a_session, serially, from_another_loop,
]  # fmt: skip


@pytest.mark.parametrize("use", USES, ids=lambda use: use.__name__)
def test_the_pool_has_all_sessions_clean(server: Server, use: Use) -> None:
    async def main() -> None:
        async with (
            pg.Pool(server.dsn, size=1) as admin,
            pg.Pool(f"{server.dsn} application_name=cancelled", size=SIZE, wait_s=10) as pool,
        ):
            await admin.execute("CREATE TABLE IF NOT EXISTS cancelled (x int)")
            await admin.execute("CREATE TABLE IF NOT EXISTS nothing (x int)")

            async def check() -> None:
                await check_clean(pool, admin)

            await cancel_everywhere(lambda: use(pool), check)
            assert await admin.fetch("SELECT * FROM cancelled") == []

    asyncio.run(main())


def test_opening_and_closing_leave_no_session(server: Server) -> None:
    async def main() -> None:
        async with pg.Pool(server.dsn, size=1) as admin:

            async def use() -> None:
                async with pg.Pool(f"{server.dsn} application_name=opened", size=SIZE) as pool:
                    await pool.fetch_value("SELECT 1")

            async def check() -> None:
                await until_none(admin, "opened")

            await cancel_everywhere(use, check)

    asyncio.run(main())


def test_connections_of_asyncpg_pools(server: Server) -> None:
    async def main() -> None:
        async with pg.Pool(server.dsn, size=1) as admin:
            dsn = f"{server.url}&application_name=asyncpg"
            async with asyncpg.create_pool(dsn, min_size=SIZE, max_size=SIZE) as pool:

                async def use() -> None:
                    async with pool.acquire() as connection, connection.transaction():
                        assert await connection.fetchval("SELECT 'own'") == "own"

                async def check() -> None:
                    async with asyncio.timeout(30):
                        await asyncio.gather(*(use() for _ in range(SIZE)))
                    await until_idle(admin, "asyncpg")

                await cancel_everywhere(use, check)

    asyncio.run(main())


@pytest.mark.parametrize("changes_session", [False, True])
def test_connections_of_sqlalchemy(server: Server, changes_session: bool) -> None:
    query = {"host": str(server.directory), "port": str(server.port), "application_name": "alchemy"}
    url = URL.create("postgresql+citius", username=server.user, database="postgres", query=query)

    async def main() -> None:
        engine = create_async_engine(url, pool_size=SIZE, max_overflow=0, pool_timeout=5)
        owner = text("SELECT current_setting('app.owner', true)")

        async def use() -> None:
            async with engine.begin() as connection:
                assert not await connection.scalar(owner)
                if changes_session:
                    for sql in ("SET app.owner = 'left'", "SELECT pg_advisory_lock_shared(5)"):
                        await connection.exec_driver_sql(sql)
                async with connection.begin_nested():
                    assert await connection.scalar(text("SELECT 'own'")) == "own"

        async with pg.Pool(server.dsn, size=1) as admin:

            async def check() -> None:
                async with asyncio.timeout(30):
                    await asyncio.gather(*(use() for _ in range(SIZE)))
                await until_idle(admin, "alchemy")
                locks = "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory'"
                assert await admin.fetch_value(locks) == 0

            await cancel_everywhere(use, check)
        await engine.dispose()

    asyncio.run(main())


@pytest.mark.parametrize("engine", ["pg", "sqlite"])
@pytest.mark.parametrize("kind", ["transaction", "savepoint", "cursor"])
def test_a_thread_or_greenlet_is_told_to_end_as_its_block_comes(
    server: Server, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, engine: str, kind: str
) -> None:
    """gevent's ``kill``, an interrupt: a session that arrives in the same moment goes back to the pool."""
    result = sync._result

    def interrupted(loop: asyncio.AbstractEventLoop, coroutine: Any) -> Any:
        found = result(loop, coroutine)
        if is_told[0]:
            raise KeyboardInterrupt
        return found

    is_told = [False]
    monkeypatch.setattr(sync, "_result", interrupted)
    pool: Any = (
        pg.Pool(server.dsn, size=1, wait_s=5)
        if engine == "pg"
        else sqlite.Pool(tmp_path / "a.db", readers=1, wait_s=5)
    )

    def enter(block: Any) -> None:
        is_told[0] = True
        try:
            with pytest.raises(KeyboardInterrupt), block:
                raise AssertionError("it was told to end before")
        finally:
            is_told[0] = False

    with pool.sync:
        for _ in range(3):
            if kind == "transaction":
                enter(pool.sync.transaction())
            elif kind == "cursor":
                enter(pool.sync.cursor("SELECT 1"))
            else:
                with pool.sync.transaction() as tx:
                    enter(tx.transaction())
                    with tx.transaction() as inner:
                        assert inner.fetch_value("SELECT 5") == 5
            with pool.sync.transaction() as tx:
                assert tx.fetch_value("SELECT 6") == 6


# --- how ---


async def cancel_everywhere(
    use: Callable[[], Coroutine[Any, Any, object]], check: Callable[[], Awaitable[None]]
) -> None:
    """Cancel ``use`` at each of its waits, and check each time."""
    for late in range(4):
        for number in range(1, WAITS_MAX):
            reached = asyncio.Event()
            task = asyncio.ensure_future(stopping(use(), number, reached))
            arrival = asyncio.ensure_future(reached.wait())
            await asyncio.wait([task, arrival], return_when=asyncio.FIRST_COMPLETED)
            arrival.cancel()
            if late > 1:
                time.sleep(0.002)  # what it waits for has come, and waits to be read
            for _ in range(late):
                await asyncio.sleep(0)
            task.cancel()
            await asyncio.wait([task])
            if not task.cancelled():
                assert isinstance(task.exception(), KeyError | pg.PostgresError | None), (
                    task.exception()
                )
            await check()
            if not reached.is_set():
                break
        else:
            raise AssertionError(f"more than {WAITS_MAX} waits")


@types.coroutine
def stopping(
    coroutine: Coroutine[Any, Any, object], number: int, reached: asyncio.Event
) -> Generator[Any, Any, object]:
    """The same, and an event for its nth wait."""
    step: Callable[[], Any] = lambda: coroutine.send(None)  # noqa: E731 - it is replaced below
    for waits in itertools.count(1):
        try:
            waited = step()
        except StopIteration as ended:
            return ended.value
        if waits == number:
            reached.set()
        try:
            yield waited
        except BaseException as error:
            step = lambda error=error: coroutine.throw(error)  # noqa: E731
        else:
            step = lambda: coroutine.send(None)  # noqa: E731
    return None


async def check_clean(pool: pg.Pool, admin: pg.Pool) -> None:
    async with asyncio.timeout(30):
        all_there = asyncio.Barrier(SIZE)

        async def look(number: int) -> None:
            async with pool.transaction() as tx:
                await all_there.wait()
                assert await tx.fetch_value("SELECT $1::int", number) == number
                left = await tx.fetch(
                    "SELECT nullif(current_setting('app.owner', true), '') UNION ALL "
                    "SELECT name FROM pg_prepared_statements WHERE from_sql UNION ALL "
                    "SELECT relname FROM pg_class WHERE relpersistence = 't' AND relname = 'own' "
                    "AND pg_table_is_visible(oid)"
                )
                assert left == [(None,)]

        await asyncio.gather(*map(look, range(SIZE)))
        assert pool.queued == 0
        assert await pool.fetch_value("SELECT 'next'") == "next"
        while await admin.fetch_value("SELECT count(*) FROM pg_locks WHERE locktype = 'advisory'"):
            await asyncio.sleep(0.005)
        await until_idle(admin, "cancelled")


async def until_idle(admin: pg.Pool, application: str) -> None:
    """No session of ``application`` is at work, and there are no more than its pool has."""
    await until_none(admin, application, "state <> 'idle'")
    asked = "SELECT count(*) FROM pg_stat_activity WHERE application_name = $1"
    async with asyncio.timeout(30):
        while await admin.fetch_value(asked, application) > SIZE:
            await asyncio.sleep(0.005)


async def until_none(admin: pg.Pool, application: str, state: str = "true") -> None:
    asked = f"SELECT count(*) FROM pg_stat_activity WHERE application_name = $1 AND {state}"
    async with asyncio.timeout(30):
        while await admin.fetch_value(asked, application):
            await asyncio.sleep(0.005)
