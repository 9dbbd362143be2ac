"""The pool for asyncpg's connections: whose sessions are as new ones, and which loses no connection."""

from __future__ import annotations

import asyncio
import io
import random
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from citius.pg.asyncpg import Pool, create_pool
from pg_rig import Server

asyncpg = pytest.importorskip("asyncpg")


def pooled(server: Server, act: Callable[[Pool], Awaitable[None]], **options: Any) -> None:
    async def main() -> None:
        where = {"host": str(server.directory), "user": "tester", "database": "postgres"}
        async with create_pool(**where, **{"min_size": 1, "max_size": 1, **options}) as pool:
            await asyncio.wait_for(act(pool), 100)

    asyncio.run(main())


CHANGES = {
    "set": ("SET application_name = 'changed'", "SHOW application_name", ""),
    "set local.x": ("SET local.x = 'left'", "SELECT current_setting('local.x', true)", ""),
    "set local.x with a comment": (
        "SET local/**/.x = 'left'", "SELECT current_setting('local.x', true)", ""
    ),
    "set with a comment": ("SET/**/application_name = 'changed'", "SHOW application_name", ""),
    "set quoted": ("SET \"application_name\" = 'changed'", "SHOW application_name", ""),
    "after another": ("SELECT 1; SET application_name = 'changed'", "SHOW application_name", ""),
    "comment": ("-- a comment\n/* and */ set application_name to x", "SHOW application_name", ""),
    "set_config": ("SELECT set_config('application_name', 'x', false)", "SHOW application_name", ""),
    "view": (
        "UPDATE pg_settings SET setting = 'x' WHERE name = 'application_name'",
        "SHOW application_name",
        "",
    ),
    "view in a WITH": (
        'WITH a AS (SELECT 1) UPDATE ONLY pg_catalog."pg_settings" SET setting = \'x\' '
        "WHERE name = 'application_name'",
        "SHOW application_name",
        "",
    ),
    "escaped name": (
        "SELECT U&\"set\\005fconfig\"('application_name', 'x', false)", "SHOW application_name", ""
    ),
    "escaped name of another sign": (
        "SELECT U&\"set!005fconfig\" UESCAPE '!'('application_name', 'x', false)",
        "SHOW application_name",
        "",
    ),
    "executed query": (
        "SELECT * FROM ts_stat('SELECT set' || '_config(''application_name'', ''x'', false)::tsvector')",
        "SHOW application_name",
        "",
    ),
    "executed text": (
        "SELECT query_to_xml('SELECT set' || '_config(''application_name'', ''x'', false)', true, true, '')",
        "SHOW application_name",
        "",
    ),
    "comment that ends with a carriage return": (
        "-- a comment\rSET application_name = 'x'", "SHOW application_name", ""
    ),
    "do": ("DO $$ BEGIN SET application_name = 'x'; END $$", "SHOW application_name", ""),
    "lock": (
        "SELECT pg_advisory_lock(7)",
        "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory'",
        0,
    ),
    "role": ("SET ROLE pg_monitor", "SELECT current_user::text", "tester"),
    "authorization": ("SET SESSION AUTHORIZATION pg_monitor", "SELECT session_user::text", "tester"),
    "temporary table": (
        "CREATE TEMP TABLE scratch AS SELECT 1",
        "SELECT count(*) FROM pg_class WHERE relname = 'scratch'",
        0,
    ),
    "temporary table of a query": (
        "SELECT 1 AS x INTO TEMP scratch",
        "SELECT count(*) FROM pg_class WHERE relname = 'scratch'",
        0,
    ),
    "behind the first": (
        "SELECT 1; /* a */ SELECT 2; SELECT ';'; SET ROLE pg_monitor",
        "SELECT current_user::text",
        "tester",
    ),
    "listen": ("LISTEN channel", "SELECT count(*) FROM pg_listening_channels()", 0),
}  # fmt: skip


@pytest.mark.parametrize("name", CHANGES)
@pytest.mark.parametrize("way", ["execute", "fetch", "prepare"])
def test_what_has_changed_the_session_is_undone(server: Server, name: str, way: str) -> None:
    change, look, expected = CHANGES[name]
    if way != "execute" and ";" in change.partition("$$")[0]:
        pytest.skip("several statements are not prepared")

    async def act(pool: Pool) -> None:
        async with pool.acquire() as connection:
            if way == "prepare":
                await (await connection.prepare(change)).fetch()
            else:
                await getattr(connection, way)(change)
        assert await pool.fetchval(look) == expected

    pooled(server, act)


SETS = "set_config('application_name', 'x', false)"


async def _query(connection: Any) -> None:
    async def write(data: bytes) -> None: ...

    await connection.copy_from_query(f"SELECT {SETS}", output=write)


async def _where(connection: Any) -> None:
    await connection.copy_to_table("copied", source=io.BytesIO(b"1\n"), where=f"{SETS} = 'x'")


async def _where_of_records(connection: Any) -> None:
    await connection.copy_records_to_table("copied", records=[(1,)], where=f"{SETS} = 'x'")


@pytest.mark.parametrize("copy", [_query, _where, _where_of_records])
def test_what_a_copy_has_changed_is_undone(
    server: Server, copy: Callable[[Any], Awaitable[None]]
) -> None:
    """hostile 5c, its kind: the texts of COPY were not looked at."""

    async def act(pool: Pool) -> None:
        await pool.execute("CREATE TABLE IF NOT EXISTS copied (a int)")
        async with pool.acquire() as connection:
            await copy(connection)
            assert await connection.fetchval("SHOW application_name") == "x"
        assert await pool.fetchval("SHOW application_name") == ""

    pooled(server, act)


def test_what_another_user_has_prepared_is_undone(server: Server) -> None:
    """hostile 5c, its kind: asyncpg's reset keeps the statement, and its execution changes the session."""

    async def act(pool: Pool) -> None:
        for text in ("EXECUTE sets", "EXPLAIN ANALYZE EXECUTE sets"):
            async with pool.acquire() as connection:
                await connection.execute(f"PREPARE sets AS SELECT {SETS}")
                await connection.execute(text)
            assert await pool.fetchval("SHOW application_name") == ""
            with pytest.raises(asyncpg.InvalidSQLStatementNameError):
                await pool.execute(text)

    pooled(server, act)


PROCESS = "SELECT pg_backend_pid()"


@pytest.mark.parametrize(
    "text", ["LOAD 'plpgsql'", "SELECT setseed(0.5)", "SELECT 1; SET seed = 0.5"]
)
def test_a_session_that_no_command_resets_is_closed(server: Server, text: str) -> None:
    async def act(pool: Pool) -> None:
        process = await pool.fetchval(PROCESS)
        assert await pool.fetchval(PROCESS) == process
        await pool.execute(text)
        assert await pool.fetchval(PROCESS) != process

    pooled(server, act)


def test_what_the_application_has_set_up_stays(server: Server) -> None:
    """A reset would undo it, a role among it: such a session is closed when it has been changed."""

    async def init(connection: Any) -> None:
        await connection.execute("SET ROLE pg_monitor; SET application_name = 'set up'")

    async def act(pool: Pool) -> None:
        look = "SELECT concat(current_user, current_setting('application_name'), current_setting('work_mem'))"
        expected = "pg_monitorset up4MB"
        process = await pool.fetchval(PROCESS)
        for _ in range(2):
            assert await pool.fetchval(look) == expected
            assert await pool.fetchval(PROCESS) == process, "nothing was changed"
        await pool.execute("SET work_mem = '9MB'")
        assert await pool.fetchval(look) == expected

    pooled(server, act, init=init)


def test_a_type_that_is_looked_up_changes_nothing(server: Server) -> None:
    """asyncpg turns a setting off for that, and on again."""

    async def init(connection: Any) -> None:
        await connection.fetchval("SELECT 'a'::looked_up")

    async def act(pool: Pool) -> None:
        process = await pool.fetchval(PROCESS)
        await pool.execute("SET work_mem = '9MB'")
        assert await pool.fetchval("SHOW work_mem") == "4MB"
        assert await pool.fetchval(PROCESS) == process
        assert await pool.fetchval("SHOW jit") == "on"

    async def make(pool: Pool) -> None:
        await pool.execute("CREATE TYPE looked_up AS ENUM ('a')")

    pooled(server, make)
    pooled(server, act, init=init)


def test_what_has_not_changed_it_costs_no_statement(server: Server) -> None:
    async def act(pool: Pool) -> None:
        async with pool.acquire() as connection:
            await connection.execute("CREATE TABLE IF NOT EXISTS pooled (a int)")
        for statement in (
            "SELECT $1::int",
            "UPDATE pooled SET a = $1",
            "INSERT INTO pooled VALUES ($1) ON CONFLICT DO NOTHING",
        ):
            async with pool.acquire() as connection:
                await connection.fetch(statement, 5)
                before = connection._protocol.queries_count
            async with pool.acquire() as again:
                assert again is connection
                assert again._protocol.queries_count == before
        async with pool.acquire() as connection, connection.transaction():
            await connection.execute("SET LOCAL application_name = 'x'")
            before = connection._protocol.queries_count
        assert await pool.fetchval("SHOW application_name") == ""
        # COMMIT and SHOW.
        assert connection._protocol.queries_count == before + 2

    pooled(server, act)


def test_an_open_transaction_is_rolled_back(
    server: Server, caplog: pytest.LogCaptureFixture
) -> None:
    async def act(pool: Pool) -> None:
        connection = await pool.acquire()
        await connection.execute("BEGIN; CREATE TABLE never (a int)")
        await pool.release(connection)
        assert await pool.fetchval("SELECT to_regclass('never')::text") is None
        assert await pool.fetchval("SELECT pg_current_xact_id_if_assigned()::text") is None
        await pool.release(connection)  # again: nothing
        with pytest.raises(asyncpg.InterfaceError, match="not a member"):
            await pool.release(object())

    pooled(server, act)


def test_prepared_statements_and_listeners_end_with_the_release(server: Server) -> None:
    async def act(pool: Pool) -> None:
        async with pool.acquire() as connection:
            statement = await connection.prepare("SELECT 1")
        with pytest.raises(asyncpg.InterfaceError):
            await statement.fetch()
        async with pool.acquire() as connection:
            await connection.add_listener("channel", lambda *_: None)
            with pytest.warns(asyncpg.InterfaceWarning, match="notification listener"):
                await pool.release(connection)
        assert await pool.fetchval("SELECT count(*) FROM pg_listening_channels()") == 0

    pooled(server, act)


def test_a_block_gives_back_no_connection_that_it_has_given_back(server: Server) -> None:
    """It gave back that of another user, and a third one got it too."""

    async def act(pool: Pool) -> None:
        for text in ("SELECT 1", "SET application_name = 'changed'"):
            async with pool.acquire() as first:
                await first.execute(text)
                await pool.release(first)
                second = await pool.acquire()
                assert second is first
            assert pool.get_idle_size() == 0
            await pool.release(second)
            assert pool.get_idle_size() == 1

    pooled(server, act)


def test_a_full_pool_gives_connections_in_the_order_of_the_calls(server: Server) -> None:
    async def act(pool: Pool) -> None:
        order: list[int] = []

        async def use(number: int) -> None:
            async with pool.acquire():
                order.append(number)
                await asyncio.sleep(0.001)  # others ask meanwhile

        async with asyncio.TaskGroup() as group:
            for number in range(20):
                group.create_task(use(number))
        assert order == [*range(20)]
        async with pool.acquire():
            with pytest.raises(TimeoutError):
                async with pool.acquire(timeout=0.05):
                    raise AssertionError("there is one connection")
            assert (pool.get_size(), pool.get_idle_size()) == (1, 0)
        assert (pool.get_size(), pool.get_idle_size()) == (1, 1)

    pooled(server, act)


def test_cancellation_at_any_moment_loses_no_connection_and_mixes_up_no_rows(
    server: Server,
) -> None:
    async def act(pool: Pool) -> None:
        dice = random.Random(7)
        mixed: list[tuple[int, int]] = []

        async def ask(number: int) -> None:
            async with pool.acquire() as connection:
                if number % 3 == 0:
                    async with connection.transaction():
                        found = await connection.fetchval("SELECT $1::int", number)
                else:
                    found = await connection.fetchval("SELECT $1::int FROM pg_sleep(0.001)", number)
                if found != number:
                    mixed.append((number, found))

        for start in range(0, 400, 40):
            tasks = [asyncio.create_task(ask(start + n)) for n in range(40)]
            await asyncio.sleep(dice.random() * 0.01)  # a moment of chance
            for task in tasks:
                if dice.random() < 0.6:
                    task.cancel()
            results = await asyncio.gather(*tasks, return_exceptions=True)
            assert {type(result) for result in results} <= {type(None), asyncio.CancelledError}
        assert mixed == []
        # All are free again.
        async with asyncio.timeout(10):
            while pool._used:
                await asyncio.sleep(0.01)  # a look at a condition
        assert await asyncio.gather(*(pool.fetchval("SELECT $1::int", n) for n in range(20))) == [
            *range(20)
        ]
        assert pool.get_size() <= 4

    pooled(server, act, max_size=4)


def pid_of(connection: Any) -> int | None:
    return None if connection.is_closed() else connection.get_server_pid()


def test_connections_that_are_killed_are_replaced(server: Server) -> None:
    async def act(pool: Pool) -> None:
        for _ in range(3):
            pids = [
                await connection.fetchval("SELECT pg_backend_pid()")
                for connection in [await pool.acquire() for _ in range(3)]
            ]
            for connection in list(pool._used):
                await pool.release(connection)
            killer = await asyncpg.connect(
                host=str(server.directory), user="tester", database="postgres"
            )
            await killer.fetch("SELECT pg_terminate_backend(pid) FROM unnest($1::int[]) pid", pids)
            await killer.close()
            async with asyncio.timeout(10):
                while any(pid in pids for pid in map(pid_of, pool._all)):
                    await asyncio.sleep(0.01)  # a look at a condition
            assert await asyncio.gather(
                *(pool.fetchval("SELECT $1::int", n) for n in range(9))
            ) == [*range(9)]
        async with asyncio.timeout(10):
            while pool.get_size() < 3:
                await asyncio.sleep(0.01)  # a look at a condition

    pooled(server, act, min_size=3, max_size=3)


def test_a_killed_connection_is_no_place_less(server: Server) -> None:
    async def act(pool: Pool) -> None:
        for _ in range(5):
            with pytest.raises((asyncpg.PostgresError, asyncpg.InterfaceError, ConnectionError)):
                await pool.execute("SELECT pg_terminate_backend(pg_backend_pid())")
        assert await pool.fetchval("SELECT 5") == 5

    pooled(server, act)


def test_idle_connections_are_closed_down_to_the_least(server: Server) -> None:
    async def act(pool: Pool) -> None:
        held = [await pool.acquire() for _ in range(4)]
        for connection in held:
            await pool.release(connection)
        async with asyncio.timeout(10):
            while pool.get_size() > 1:
                await asyncio.sleep(0.01)  # a look at a condition
        assert await pool.fetchval("SELECT 1") == 1

    pooled(server, act, max_size=4, max_inactive_connection_lifetime=0.1)


def test_its_end(server: Server) -> None:
    async def act(pool: Pool) -> None:
        connection = await pool.acquire()
        waiting = asyncio.create_task(pool.fetchval("SELECT 1"))
        await asyncio.sleep(0)
        closing = asyncio.create_task(pool.close())
        with pytest.raises(asyncpg.InterfaceError, match="closing"):
            await waiting
        assert not closing.done()
        assert await connection.fetchval("SELECT 2") == 2
        await pool.release(connection)
        await closing
        assert connection.is_closed()
        with pytest.raises(asyncpg.InterfaceError):
            await pool.fetchval("SELECT 1")

    pooled(server, act)


def test_callbacks_of_asyncpg(server: Server) -> None:
    called: list[str] = []

    async def note(name: str, connection: Any) -> None:
        called.append(name)

    async def act(pool: Pool) -> None:
        for _ in range(2):
            async with pool.acquire() as connection:
                assert isinstance(connection, asyncpg.Connection)
                await connection.fetch("SELECT 1")
        assert called == ["init", "setup", "reset", "setup", "reset"]

    options = {
        name: (lambda connection, name=name: note(name, connection))
        for name in ("init", "setup", "reset")
    }
    pooled(server, act, **options)


def test_a_pool_at_the_top_of_a_module(server: Server) -> None:
    pool = create_pool(host=str(server.directory), user="tester", database="postgres", min_size=1)

    async def main() -> None:
        async with pool.lifespan(None):
            assert await pool.fetchval("SELECT 1") == 1

    asyncio.run(main())
