"""What statements of SQLAlchemy leave of a session: no other request has it (issue 32 C1, databases D1)."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
import sqlalchemy as sa
from pg_rig import Server
from sqlalchemy import event
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine, create_async_engine

STATE = sa.text(
    "SELECT current_setting('work_mem'), current_user, current_setting('search_path'),"
    " to_regclass('pg_temp.scratch'), (SELECT count(*) FROM pg_locks WHERE locktype = 'advisory'),"
    " (SELECT count(*) FROM pg_listening_channels()), (SELECT count(*) FROM pg_cursors),"
    " current_setting('application_name')"
)
UNDONE = {
    "set": "SET work_mem = '99MB'",
    "role": "SET ROLE pg_monitor",
    "set_config": "SELECT set_config('work_mem', '99MB', false)",
    "path": "SET search_path = pg_catalog",
    "temporary table": "CREATE TEMPORARY TABLE scratch (x int)",
    "lock": "SELECT pg_advisory_lock(1)",
    "listen": "LISTEN news",
    "hold": "DECLARE held CURSOR WITH HOLD FOR SELECT 1",
    "view": "UPDATE postgres.pg_catalog.pg_settings SET setting = '99MB' WHERE name = 'work_mem'",
    "alias": "SELECT 1 AS insert INTO TEMP scratch",
    "code": "DO $$ BEGIN PERFORM set_config('work_mem', '99MB', false); END $$",
}
# No command undoes it: the session is closed.
LASTING = {
    "load": "LOAD 'plpgsql'", "setseed": "SELECT setseed(0.5)", "seed": "SET LOCAL seed = 0.5",
    "code": "DO $$ BEGIN PERFORM setseed(0.5); END $$",
}  # fmt: skip


def engine_of(server: Server, **options: Any) -> AsyncEngine:
    query = {"host": str(server.directory), "port": str(server.port)} | options.pop("query", {})
    url = sa.URL.create("postgresql+citius", username=server.user, database="postgres", query=query)
    return create_async_engine(url, pool_size=1, max_overflow=0, pool_timeout=5, **options)


async def value(connection: AsyncConnection, text: str) -> Any:
    return (await connection.execute(sa.text(text))).scalar()


async def state(engine: AsyncEngine) -> tuple[object, ...]:
    async with engine.connect() as connection:
        return tuple((await connection.execute(STATE)).one())


async def process(engine: AsyncEngine) -> int:
    async with engine.connect() as connection:
        return await value(connection, "SELECT pg_backend_pid()")


@pytest.mark.parametrize("options", [{}, {"isolation_level": "AUTOCOMMIT"}], ids=["", "autocommit"])
@pytest.mark.parametrize("text", UNDONE.values(), ids=list(UNDONE))
def test_what_a_block_has_changed_is_undone(server: Server, text: str, options: Any) -> None:
    async def main() -> None:
        engine = engine_of(server, **options)
        before, pid = await state(engine), await process(engine)
        async with engine.connect() as connection:
            if "HOLD" in text and options:
                await connection.exec_driver_sql("BEGIN")
            await connection.exec_driver_sql(text)
            await connection.commit()
        assert await state(engine) == before
        assert await process(engine) == pid, "it is reset, not connected anew"
        await engine.dispose()

    asyncio.run(main())


@pytest.mark.parametrize("text", LASTING.values(), ids=list(LASTING))
def test_a_session_that_no_command_resets_is_closed(server: Server, text: str) -> None:
    async def main() -> None:
        engine = engine_of(server)
        pid = await process(engine)
        async with engine.begin() as connection:
            await connection.exec_driver_sql(text)
        assert await process(engine) != pid
        await engine.dispose()

    asyncio.run(main())


def test_texts_that_are_read_otherwise_than_here_are_refused(own_server: Server) -> None:
    """A backslash would hide what stands behind it."""
    turned_off = "SET LOCAL standard_conforming_strings = off"

    async def main() -> None:
        engine = engine_of(own_server)
        pid = await process(engine)
        with pytest.raises(sa.exc.DBAPIError):
            async with engine.begin() as connection:
                await connection.exec_driver_sql(turned_off)
                await connection.exec_driver_sql("SELECT 1")
        assert await process(engine) != pid
        async with engine.begin() as connection:
            await connection.exec_driver_sql(
                "ALTER ROLE CURRENT_USER SET standard_conforming_strings = off"
            )
        await engine.dispose()
        with pytest.raises(sa.exc.DBAPIError, match="standard_conforming_strings = on"):
            await process(engine)
        await engine.dispose()
        kept = engine_of(own_server, query={"keep_changes": "true"})
        async with kept.begin() as connection:
            await connection.exec_driver_sql(turned_off)
            assert await value(connection, "SELECT 'it\\'s'") == "it's"
        await kept.dispose()

    asyncio.run(main())


def test_a_copy_whose_data_would_be_waited_for_is_refused(server: Server) -> None:
    """The session was ended for it."""

    async def main() -> None:
        engine = engine_of(server)
        pid = await process(engine)
        async with engine.connect() as connection:
            with pytest.raises(sa.exc.DBAPIError, match="copy_in"):
                await connection.exec_driver_sql("COPY pg_description FROM STDIN")
            assert await value(connection, "SELECT 1") == 1
        assert await process(engine) == pid
        await engine.dispose()

    asyncio.run(main())


def test_what_the_application_has_set_up_stays(server: Server) -> None:
    """A reset would undo it: such a session is closed when a block has changed it."""

    async def main() -> None:
        engine = engine_of(server)

        def set_up(connection: Any, _: object) -> None:
            cursor = connection.cursor()
            cursor.execute("SET application_name = 'set up'")
            connection.commit()
            cursor.close()

        event.listen(engine.sync_engine, "connect", set_up)

        before, pid = await state(engine), await process(engine)
        assert before[-1] == "set up"
        assert await process(engine) == pid, "nothing was changed"
        async with engine.begin() as connection:
            await connection.exec_driver_sql(UNDONE["set"])
            await connection.exec_driver_sql(UNDONE["lock"])
        assert await state(engine) == before
        assert await process(engine) != pid
        await engine.dispose()

    asyncio.run(main())


def test_changes_may_be_kept(server: Server) -> None:
    async def main() -> None:
        engine = engine_of(server, query={"keep_changes": "true"})
        async with engine.begin() as connection:
            await connection.exec_driver_sql(UNDONE["set"])
        assert (await state(engine))[0] == "99MB"
        await engine.dispose()

    asyncio.run(main())


def test_a_pool_that_commits_does_so_before_the_reset(server: Server) -> None:
    async def main() -> None:
        engine = engine_of(server, pool_reset_on_return="commit")
        async with engine.begin() as connection:
            await connection.exec_driver_sql("CREATE TABLE committed (x int)")
        async with engine.connect() as connection:
            await connection.exec_driver_sql("INSERT INTO committed VALUES (1)")
            await connection.exec_driver_sql(UNDONE["set"])
            # Its transaction is left to the pool.
            connection.sync_connection._transaction = None  # pyright: ignore
        async with engine.connect() as connection:
            assert await value(connection, "SELECT count(*) FROM committed") == 1
        assert (await state(engine))[0] != "99MB"
        await engine.dispose()

    asyncio.run(main())


def test_a_transaction_of_the_applications_own_text_is_in_no_other_block(server: Server) -> None:
    async def main() -> None:
        engine = engine_of(server, isolation_level="AUTOCOMMIT")
        async with engine.connect() as connection:
            await connection.exec_driver_sql("CREATE TABLE own (x int)")
            await connection.exec_driver_sql("BEGIN")
            await connection.exec_driver_sql("INSERT INTO own VALUES (1)")
        async with engine.connect() as connection:
            await connection.exec_driver_sql("INSERT INTO own VALUES (2)")
        other = engine_of(server)
        async with other.connect() as connection:
            assert await value(connection, "SELECT array_agg(x) FROM own") == [2]
        await engine.dispose()
        await other.dispose()

    asyncio.run(main())


@pytest.mark.parametrize("text", ["COMMIT", "ROLLBACK"])
def test_behind_a_text_that_ends_the_transaction_another_begins(server: Server, text: str) -> None:
    table = f"behind_{text}"

    async def main() -> None:
        engine = engine_of(server)
        async with engine.begin() as connection:
            await connection.exec_driver_sql(f"CREATE TABLE {table} (x int)")
        async with engine.connect() as connection:
            await connection.exec_driver_sql(f"INSERT INTO {table} VALUES (1)")
            await connection.exec_driver_sql(text)
            await connection.exec_driver_sql(f"INSERT INTO {table} VALUES (2)")
            await connection.rollback()
        async with engine.connect() as connection:
            left = await value(connection, f"SELECT array_agg(x) FROM {table}")
            assert left == ([1] if text == "COMMIT" else None)
        await engine.dispose()

    asyncio.run(main())


def test_a_transaction_in_two_phases(own_server: Server) -> None:
    own_server.settings["max_prepared_transactions"] = "4"
    own_server.stop()
    own_server.start()

    async def main() -> None:
        engine = engine_of(own_server)
        async with engine.begin() as connection:
            await connection.exec_driver_sql("CREATE TABLE two (x int)")

        def phases(connection: sa.Connection) -> None:
            for number, ends in enumerate(("commit", "rollback")):
                transaction = connection.begin_twophase()
                connection.exec_driver_sql(f"INSERT INTO two VALUES ({number})")
                transaction.prepare()
                getattr(transaction, ends)()
            connection.exec_driver_sql("INSERT INTO two VALUES (2)")
            connection.exec_driver_sql("PREPARE TRANSACTION 'recovered'")

        async with engine.connect() as connection:
            await connection.run_sync(phases)
        async with engine.connect() as connection:
            assert await connection.run_sync(lambda it: it.recover_twophase()) == ["recovered"]
            await connection.rollback()
            await connection.run_sync(lambda it: it.commit_prepared("recovered", recover=True))
            await connection.rollback()
            assert await value(connection, "SELECT array_agg(x) FROM two") == [0, 2]
        await engine.dispose()

    asyncio.run(main())


REPLACED = {
    "a field of a new type": [
        "CREATE TYPE mood AS ENUM ('a')",
        "ALTER TYPE pair ADD ATTRIBUTE c mood",
        "UPDATE paired SET it.c = 'a'",
    ],
    "another type": [
        "ALTER TABLE paired DROP it",
        "DROP TYPE pair",
        "CREATE TYPE pair AS (a int, b int, c text)",
        "ALTER TABLE paired ADD it pair",
        "UPDATE paired SET it = ROW(1, 2, 'a')",
    ],
    "a type of the column": [
        "ALTER TABLE paired ALTER n TYPE text",
        "ALTER TYPE pair ADD ATTRIBUTE c text",
        "UPDATE paired SET it.c = 'a'",
    ],
}


@pytest.mark.parametrize("commits", [False, True], ids=["one transaction", "two transactions"])
@pytest.mark.parametrize("named", ["true", "false"], ids=["named", "nameless"])
@pytest.mark.parametrize("change", REPLACED)
def test_a_type_that_a_session_changes_itself(
    server: Server, change: str, named: str, commits: bool
) -> None:
    """The next read failed, and in a transaction all of it."""
    reads = "SELECT it FROM paired", "SELECT ARRAY[it] FROM paired", "SELECT n FROM paired"
    number = "2" if change == "a type of the column" else 2

    async def main() -> None:
        engine = engine_of(server, query={"named_statements": named})
        async with engine.connect() as connection:

            async def have(*texts: str) -> None:
                for text in texts:
                    await connection.execute(sa.text(text))

            await have(
                "DROP TABLE IF EXISTS paired",
                "DROP TYPE IF EXISTS pair, mood",
                "CREATE TYPE pair AS (a int, b int)",
                "CREATE TABLE paired (it pair, n int)",
                "INSERT INTO paired VALUES (ROW(1, 2), 2)",
            )
            await connection.commit()
            assert [await value(connection, read) for read in reads] == [(1, 2), [(1, 2)], 2]
            await have(*REPLACED[change])
            if commits:
                await connection.commit()
            new = (1, 2, "a")
            assert [await value(connection, read) for read in reads] == [new, [new], number]
            await connection.rollback()
            found = (new, [new], number) if commits else ((1, 2), [(1, 2)], 2)
            assert [await value(connection, read) for read in reads] == [*found]
        await engine.dispose()

    asyncio.run(main())
