"""What a statement or a block does to a session is not seen by the next user of it.

The defects of the trials that these tests hold: databases D4, D9, D17; hostile 5c, 5d, 8, 15.
"""

from __future__ import annotations

import asyncio
import random
from typing import TYPE_CHECKING, Any

import pytest
from citius import ConfigError, pg
from citius.pg import Pool
from pg_rig import Server, pooled

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

REFUSED = [
    "BEGIN", "/* a */ begin", "START TRANSACTION", "COMMIT", "END", "ROLLBACK", "ABORT", "SAVEPOINT a",
    "RELEASE a", "ROLLBACK TO a", "PREPARE TRANSACTION 'a'", "SET search_path = a", "SET ROLE postgres",
    "SET SESSION AUTHORIZATION DEFAULT", "RESET ALL", "LISTEN a", "UNLISTEN *", "PREPARE a AS SELECT 1",
    "DEALLOCATE a", "DEALLOCATE ALL", "DISCARD ALL", "DISCARD TEMP", "CREATE TEMP TABLE a (x int)",
    "SELECT 1 AS a INTO TEMP b", "SELECT pg_advisory_lock(1)", "SELECT pg_try_advisory_lock(1)",
    "SELECT set_config('app.tenant', 'a', false)", 'SELECT "pg_advisory_lock" (1)',
    "SELECT E'\\'' , pg_advisory_lock(1), ''", "SELECT $a$it's$a$, pg_advisory_lock(1)",
    "UPDATE pg_settings SET setting = 'a' WHERE name = 'application_name'", "SET SCHEMA 'a'",
    "EXPLAIN ANALYZE CREATE TEMP TABLE a AS SELECT 1", "CREATE TABLE pg_temp.a (x int)",
    "SELECT 1 AS a INTO LOCAL TEMP b", "SELECT lastval()", "SELECT setseed(0.5)",
    "SELECT U&\"set\\005fconfig\"('app.tenant', 'a', false)",
    "SELECT set_config(is_local => false, setting_name => 'app.tenant', new_value => 'true')",
    "CREATE TABLE pg_temp_3.a (x int)", "LOAD 'auto_explain'", "SELECT set_limit(0.9)",
    "SELECT dblink_connect('a', 'dbname=a')", "SELECT lastval(), nextval('a')",
    "SELECT pg_create_physical_replication_slot('a', true, true)",
    "SELECT pg_replication_origin_session_setup('a')",
    "UPDATE postgres.pg_catalog.pg_settings SET setting = 'a' WHERE name = 'application_name'",
    "SELECT 1 AS insert INTO TEMP b", "WITH a AS (SELECT 1) SELECT (1) merge INTO TEMP b",
    "SET LOCAL seed = 0.5", "SELECT set_config('seed', '0.5', true)", "SELECT isn_weak(true)",
    "DO $$BEGIN PERFORM setseed(0.5); END$$", "DO $$BEGIN LOAD 'auto_explain'; END$$",
    "SELECT setseed(0.5), query_to_xml('SELECT 1', true, true, '')", "EXECUTE a",
]  # fmt: skip


@pooled(size=1)
async def test_the_pool_refuses_what_changes_a_session(pool: Pool) -> None:
    """databases D9, hostile 5c."""
    for text in REFUSED:
        for name in (
            "execute",
            "fetch",
            "fetch_one",
            "fetch_value",
            "fetch_json",
            "fetch_json_one",
        ):
            with pytest.raises(pg.StatementRefused):
                await getattr(pool, name)(text)
        with pytest.raises(pg.StatementRefused):
            await pool.fetch_many(text, [()])
    assert await pool.fetch_value("SELECT set_config('app.tenant', 'a', true)") == "a"
    await pool.execute("SELECT pg_advisory_xact_lock(1)")
    await pool.execute("CREATE TABLE IF NOT EXISTS untouched (x int)")
    assert await pool.execute("INSERT INTO untouched VALUES (1)") == 1


@pooled(size=1)
async def test_a_block_ends_its_transaction_itself(pool: Pool) -> None:
    await pool.execute("CREATE TABLE IF NOT EXISTS owned (x int)")
    await pool.execute("TRUNCATE owned")
    for text in ("COMMIT", "ROLLBACK", "BEGIN", "DEALLOCATE ALL"):
        async with pool.transaction() as tx:
            await tx.execute("INSERT INTO owned VALUES (1)")
            with pytest.raises(pg.StatementRefused):
                await tx.execute(text)
            with pytest.raises(pg.StatementRefused):
                await tx.execute_many(text, [()])
            await tx.execute("SAVEPOINT own")
            await tx.execute("INSERT INTO owned VALUES (2)")
            await tx.execute("ROLLBACK TO own")
    assert await pool.fetch("SELECT x FROM owned") == [(1,)] * 4


# What a block does, what is looked at behind it, and what is there; None for what was there before.
CHANGES: list[tuple[str, str, object]] = [
    (
        "SELECT set_config('app.tenant', 'ACME', false)",
        "SELECT coalesce(current_setting('app.tenant', true), '')",
        "",
    ),
    ("SET search_path = pg_catalog", "SHOW search_path", None),
    ("SET ROLE someone", "SELECT current_user::text", None),
    ("SET SESSION AUTHORIZATION someone", "SELECT session_user::text", None),
    (
        "CREATE TEMP TABLE leftover AS SELECT 1 AS x",
        "SELECT count(*) FROM pg_class WHERE relname = 'leftover'",
        0,
    ),
    ("SELECT pg_advisory_lock(42)", "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory'", 0),
    ("LISTEN leftover", "SELECT count(*) FROM pg_listening_channels()", 0),
    (
        "UPDATE pg_settings SET setting = 'ACME' WHERE name = 'application_name'",
        "SHOW application_name",
        None,
    ),
    (
        "PREPARE leftover AS SELECT 'secret'",
        "SELECT count(*) FROM pg_prepared_statements WHERE from_sql",
        0,
    ),
    (
        "UPDATE postgres.pg_catalog.pg_settings SET setting = 'a' WHERE name = 'application_name'",
        "SHOW application_name",
        None,
    ),
    (
        "SELECT 1 AS insert INTO TEMP leftover",
        "SELECT count(*) FROM pg_class WHERE relname = 'leftover'",
        0,
    ),
    ("CALL changes_all()", "SELECT coalesce(current_setting('app.tenant', true), '')", ""),
    ("CALL changes_all()", "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory'", 0),
    ("DO $$BEGIN SET search_path = pg_catalog; END$$", "SHOW search_path", None),
    (
        "DECLARE leftover CURSOR WITH HOLD FOR SELECT 1",
        "SELECT count(*) FROM pg_cursors WHERE name = 'leftover'",
        0,
    ),
]


CHANGES_ALL = """
    CREATE OR REPLACE PROCEDURE changes_all() LANGUAGE plpgsql AS $$BEGIN
        PERFORM set_config('app.tenant', 'ACME', false), pg_advisory_lock(42);
        CREATE TEMP TABLE leftover AS SELECT 'secret' AS x;
    END$$
"""


@pooled(size=1)
async def test_what_code_has_changed_is_undone_behind_it(pool: Pool) -> None:
    """hostile 5c, its kind: DO and CALL may be the pool's, and others find nothing of theirs."""
    await pool.execute(CHANGES_ALL)
    process = await pool.fetch_value("SELECT pg_backend_pid()")
    commits = """
        CREATE OR REPLACE PROCEDURE commits() LANGUAGE plpgsql AS $$BEGIN
            PERFORM set_config('app.tenant', 'ACME', false); COMMIT;
            PERFORM pg_advisory_lock(43); RAISE EXCEPTION 'late';
        END$$
    """
    await pool.execute(commits)
    look = """
        SELECT coalesce(current_setting('app.tenant', true), ''),
            (SELECT count(*) FROM pg_locks WHERE locktype = 'advisory'),
            (SELECT count(*) FROM pg_class WHERE relname = 'leftover'), current_setting('search_path')
    """
    clean = await pool.fetch_one(look)
    for text in (
        "CALL changes_all()",
        "call/**/changes_all()",
        "DO $$BEGIN CALL changes_all(); SET search_path = pg_catalog; END$$",
        "DO 'BEGIN SET search_path = pg_catalog; PERFORM pg_advisory_lock(44); END'",
        # These execute a text, or have a name that is not read here.
        "SELECT ts_rewrite('a', 'SELECT set_config(''app.tenant'', ''b'', false)::tsquery, ''b''::tsquery')",
        "SELECT * FROM ts_stat('SELECT set_config(''app.tenant'', ''b'', false)::tsvector')",
        "SELECT U&\"set!005fconfig\" UESCAPE '!'('app.tenant', 'a', false)",
        'CREATE TABLE U&"pg\\005ftemp".leftover (x int)',
    ):
        # What is sent with it is behind it.
        _, found = await pg.gather(pool.execute(text), pool.fetch_one(look))
        assert found == clean == await pool.fetch_one(look), text
    with pytest.raises(pg.ServerError, match="late"):
        await pool.execute("CALL commits()")
    assert await pool.fetch_one(look) == clean
    assert await pool.fetch_value("SELECT pg_backend_pid()") == process


@pooled(size=2)
async def test_code_that_is_cancelled_harms_no_other_statement(pool: Pool) -> None:
    """A cancel request that is sent again may hit the reset behind the code."""
    await pool.execute(
        "CREATE OR REPLACE PROCEDURE sleeps() LANGUAGE plpgsql AS $$BEGIN "
        "PERFORM set_config('app.tenant', 'ACME', false), pg_advisory_lock(7), pg_sleep(0.05); END$$"
    )
    look = (
        "SELECT coalesce(current_setting('app.tenant', true), ''), "
        "(SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND pid = pg_backend_pid())"
    )
    rng = random.Random(3)
    processes = {session.core.process for session in pool.open_sessions}
    for _ in range(30):
        calls = [asyncio.ensure_future(pool.execute("CALL sleeps()")) for _ in range(3)]
        looks = [asyncio.ensure_future(pool.fetch_one(look)) for _ in range(6)]
        await asyncio.sleep(rng.random() * 0.08)  # the callers leave at any moment
        for call in calls:
            call.cancel()
        assert await asyncio.gather(*looks) == [("", 0)] * 6
        await asyncio.gather(*calls, return_exceptions=True)
    assert processes <= {session.core.process for session in pool.open_sessions}


@pooled(size=1)
async def test_a_block_may_have_its_session_reset(pool: Pool) -> None:
    """What a function does is not seen in the text of the statement that calls it."""
    await pool.execute(
        "CREATE OR REPLACE FUNCTION sets() RETURNS text LANGUAGE sql AS "
        "$$SELECT set_config('app.tenant', 'ACME', false)$$"
    )
    look = "SELECT coalesce(current_setting('app.tenant', true), '')"
    for is_rolled_back in (False, True):
        with pytest.raises(LookupError):
            async with pool.transaction(reset=True) as tx:
                await tx.fetch("SELECT sets()")
                assert await tx.fetch_value(look) == "ACME"
                if is_rolled_back:
                    raise LookupError
            assert await pool.fetch_value(look) == ""
            raise LookupError
        assert await pool.fetch_value(look) == ""

    def in_thread() -> None:
        with pool.sync.transaction(reset=True) as tx:
            tx.fetch("SELECT sets()")

    await asyncio.to_thread(in_thread)
    assert await pool.fetch_value(look) == ""


@pooled(size=1, reset=True)
async def test_a_pool_may_have_its_sessions_reset(pool: Pool) -> None:
    """Functions, views and triggers hide what they do: nothing of it is seen by the next one."""
    for text in (
        "CREATE OR REPLACE FUNCTION hides() RETURNS text LANGUAGE sql AS "
        "$$SELECT set_config('app.tenant', 'ACME', false)$$",
        "CREATE OR REPLACE VIEW hiding AS SELECT hides() AS x",
        "CREATE TABLE IF NOT EXISTS triggering (x int)",
        "CREATE OR REPLACE FUNCTION fires() RETURNS trigger LANGUAGE plpgsql AS "
        "$$BEGIN PERFORM hides(), pg_advisory_lock(42); RETURN NEW; END$$",
        "CREATE OR REPLACE TRIGGER fired BEFORE INSERT ON triggering FOR EACH ROW EXECUTE FUNCTION fires()",
    ):
        await pool.execute(text)
    process = await pool.fetch_value("SELECT pg_backend_pid()")
    look = (
        "SELECT coalesce(current_setting('app.tenant', true), ''), "
        "(SELECT count(*) FROM pg_locks WHERE locktype = 'advisory')"
    )

    async def block() -> None:
        async with pool.transaction() as tx:
            await tx.execute("INSERT INTO triggering VALUES (1)")

    async def copied() -> None:
        async with pool.copy_out("COPY (SELECT hides()) TO STDOUT") as chunks:
            assert b"".join([chunk async for chunk in chunks]) == b"ACME\n"

    async def rows() -> None:
        async with pool.cursor("SELECT x FROM hiding") as found:
            assert [row async for row in found] == [("ACME",)]

    for act in (
        lambda: pool.fetch("SELECT hides()"),
        lambda: pool.fetch_one("SELECT x FROM hiding"),
        lambda: pool.execute("INSERT INTO triggering VALUES (1)"),
        lambda: pool.fetch_many("INSERT INTO triggering VALUES ($1)", [(1,), (2,)]),
        lambda: pool.copy_in("COPY triggering FROM STDIN", [(1,)]),
        block,
        copied,
        rows,
    ):
        await act()
        assert await pool.fetch_one(look) == ("", 0)
    for _ in range(3):
        results = await pg.gather(pool.fetch_value("SELECT hides()"), pool.fetch_one(look))
        assert results == ["ACME", ("", 0)]
    assert await pool.fetch_value("SELECT pg_backend_pid()") == process


@pooled(size=1)
async def test_what_a_name_stands_for_is_undone(pool: Pool) -> None:
    """hostile 5c, its kind: a cursor and a prepared statement execute later what their texts have said."""
    look = (
        "SELECT coalesce(current_setting('app.tenant', true), ''), current_setting('search_path'), "
        "(SELECT count(*) FROM pg_locks WHERE locktype = 'advisory')"
    )
    clean = await pool.fetch_one(look)
    for query in (
        "SELECT set_config('app.tenant', 'ACME', false)",
        "SELECT set_config('search_path', 'pg_catalog', false)",
        "SELECT pg_advisory_lock(42)",
    ):
        for texts in (
            (f"DECLARE a CURSOR FOR {query}", "FETCH a"),
            (f"DECLARE a CURSOR FOR {query}", "SELECT cursor_to_xml('a', 1, true, true, '')"),
            (f"PREPARE a AS {query}", "EXECUTE a"),
        ):
            for is_rolled_back in (False, True):
                try:
                    async with pool.transaction() as tx:
                        for text in texts:
                            await tx.execute(text)
                        assert await tx.fetch_one(look) != clean, texts
                        if is_rolled_back:
                            raise LookupError
                except LookupError:
                    pass
                assert await pool.fetch_one(look) == clean, texts


@pooled(size=1)
async def test_a_session_is_closed_if_nothing_undoes_what_a_block_has_left(pool: Pool) -> None:
    """hostile 5c, its kind: connections of dblink, a loaded library, a temporary replication slot."""
    await pool.execute("CREATE EXTENSION IF NOT EXISTS dblink")
    look = "SELECT pg_backend_pid(), coalesce(array_length(dblink_get_connections(), 1), 0)"
    for text, is_rolled_back in (
        ("SELECT dblink_connect('left', 'dbname=' || current_database() || ' user=' || current_user "
         "|| ' host=' || split_part(current_setting('unix_socket_directories'), ',', 1))", False),
        ("LOAD 'auto_explain'", True),
        ("SELECT setseed(0.5)", False),
        ("SET LOCAL seed = 0.5", False),
        ("DO $$BEGIN LOAD 'auto_explain'; END$$", False),
        ("PREPARE a AS SELECT setseed(0.5)", False),
        ("DO $$BEGIN PERFORM dblink_connect('left', 'dbname=' || current_database() || ' user=' "
         "|| current_user || ' host=' || split_part(current_setting('unix_socket_directories'), ',', 1)); "
         "END$$", True),
    ):  # fmt: skip
        before, _ = await pool.fetch_one(look)
        try:
            async with pool.transaction() as tx:
                await tx.execute(text)
                # What comes behind it does not change that.
                await tx.execute("SET application_name = 'a'")
                if is_rolled_back:
                    raise LookupError
        except LookupError:
            pass
        after, connections = await pool.fetch_one(look)
        assert after != before, text
        assert connections == 0


@pooled(size=1)
async def test_names_are_looked_up_as_the_role_of_a_block_does(pool: Pool) -> None:
    """databases 24, its kind: `"$user"` is in the path, and a statement stands for another table."""
    for name in ("tenant_a", "tenant_b"):
        for text in (
            f"DO $$BEGIN CREATE ROLE {name}; EXCEPTION WHEN duplicate_object THEN NULL; END$$",
            f"CREATE SCHEMA {name} AUTHORIZATION {name}",
            f"CREATE TYPE {name}.mood AS ENUM ('{name}')",
            f"CREATE TABLE {name}.own (m {name}.mood)",
            f"ALTER TABLE {name}.own OWNER TO {name}",
        ):
            await pool.execute(text)
    for _ in range(2):
        for name in ("tenant_a", "tenant_b"):
            for text, arguments in (
                (f"SET LOCAL ROLE {name}", ()),
                (f"SET ROLE {name}", ()),
                ("SELECT set_config('role', $1, true)", (name,)),
            ):
                async with pool.transaction() as tx:
                    await tx.execute(text, *arguments)
                    assert await tx.execute("INSERT INTO own VALUES ($1)", name) == 1
                    assert await tx.fetch_value("SELECT min(m) FROM own") == name


def test_texts_that_are_read_otherwise_than_here_are_refused(own_server: Server) -> None:
    """A backslash hid the end of a text, and what stands behind it."""
    hidden = r"SELECT '\'' , set_config('app.tenant', 'ACME', false) --'"

    async def main() -> None:
        async with Pool(own_server.dsn, size=1) as pool:
            await pool.execute("ALTER ROLE CURRENT_USER SET standard_conforming_strings = off")
        with pytest.raises(ConfigError, match="standard_conforming_strings = on"):
            await Pool(own_server.dsn, size=1).open()
        dsn = f"{own_server.dsn} options='-c standard_conforming_strings=on'"
        async with Pool(dsn, size=1) as pool:
            with pytest.raises(pg.ServerError):
                await pool.fetch(hidden)

    asyncio.run(main())


@pooled(size=1)
async def test_a_session_ends_whose_texts_are_read_otherwise(pool: Pool) -> None:
    """hostile 5c, its kind: a block made a text hide what it does, and its plan did so for others."""
    hidden = r"SELECT '\'' , set_config('app.tenant', 'ACME', false) --'"
    look = "SELECT coalesce(current_setting('app.tenant', true), '')"
    for text in (
        "SET LOCAL standard_conforming_strings = off",
        "SELECT set_config('standard_conforming_strings', 'off', true)",
        "DO $$BEGIN SET LOCAL standard_conforming_strings = off; END$$",
    ):
        process = await pool.fetch_value("SELECT pg_backend_pid()")
        with pytest.raises(pg.SessionLost, match="standard_conforming_strings was set to off"):
            async with pool.transaction() as tx:
                await tx.execute(text)
                await tx.fetch(hidden)
        assert await pool.fetch_one(look) == ("",)
        assert await pool.fetch_value("SELECT pg_backend_pid()") != process
        with pytest.raises(pg.ServerError):
            await pool.fetch(hidden)
        assert await pool.fetch_one(look) == ("",)


@pooled(size=1)
async def test_a_copy_that_calls_what_changes_the_session(pool: Pool) -> None:
    async with pool.copy_out(
        "COPY (SELECT set_config('app.tenant', 'ACME', false)) TO STDOUT"
    ) as chunks:
        assert b"".join([chunk async for chunk in chunks]) == b"ACME\n"
    assert await pool.fetch_value("SELECT coalesce(current_setting('app.tenant', true), '')") == ""


@pooled(size=1)
async def test_a_copy_is_one_statement(pool: Pool) -> None:
    """hostile 5c, its kind: the simple protocol would execute what stands behind it."""
    for text in (
        "COPY (SELECT 1) TO STDOUT; SET search_path = pg_catalog",
        "BEGIN; COPY (SELECT 1) TO STDOUT",
        "SELECT 1",
    ):
        with pytest.raises(ValueError, match="expected one COPY statement"):
            async with pool.copy_out(text) as chunks:
                assert [chunk async for chunk in chunks]
        with pytest.raises(ValueError, match="expected one COPY statement"):
            await pool.copy_in(text, [b"1"])
    async with pool.copy_out(" /* ; */ COPY (SELECT ';') TO STDOUT ;") as chunks:
        assert b"".join([chunk async for chunk in chunks]) == b";\n"


@pooled(size=1)
async def test_a_session_is_reset_behind_a_block_that_has_changed_it(pool: Pool) -> None:
    """hostile 5c: the next request saw another tenant's rows."""
    await pool.execute(
        "DO $$BEGIN CREATE ROLE someone; EXCEPTION WHEN duplicate_object THEN NULL; END$$"
    )

    async def block(change: str, is_rolled_back: bool) -> None:
        async with pool.transaction() as tx:
            await tx.execute(change)
            if is_rolled_back:
                raise LookupError

    await pool.execute(CHANGES_ALL)
    process = await pool.fetch_value("SELECT pg_backend_pid()")
    for change, look, wanted in CHANGES:
        before = await pool.fetch_value(look) if wanted is None else wanted
        await block(change, is_rolled_back=False)
        assert await pool.fetch_value(look) == before, change
        with pytest.raises(LookupError):
            await block(change, is_rolled_back=True)
        assert await pool.fetch_value(look) == before, change
    assert await pool.fetch_value("SELECT pg_backend_pid()") == process


@pooled(size=1)
async def test_rows_and_data_belong_to_the_block_that_asked_for_them(pool: Pool) -> None:
    """hostile 5d, its kind: kept ones went on in the transaction of another request."""
    await pool.execute("CREATE TABLE IF NOT EXISTS kept (x int)")
    await pool.execute("TRUNCATE kept")
    async with pool.transaction() as tx:
        cursor = tx.cursor("SELECT generate_series(1, 1000)", rows_max=10)
        unopened = tx.cursor("SELECT 1")
        rows = await cursor.__aenter__()
        assert await anext(rows) == (1,)
        async with tx.transaction() as inner:
            of_inner = await inner.cursor("SELECT generate_series(1, 1000)").__aenter__()
            await of_inner.fetch()
        with pytest.raises(pg.TransactionOver):
            await of_inner.fetch()
        data = tx.copy_out("COPY kept TO STDOUT")
    async with pool.transaction() as other:
        await other.execute("INSERT INTO kept VALUES (100)")
        with pytest.raises(pg.TransactionOver):
            async for _ in rows:
                pass
        for block in (data, unopened):
            with pytest.raises(pg.TransactionOver):
                async with block:
                    pass
        assert await other.fetch("SELECT x FROM kept") == [(100,)]
    assert await pool.fetch("SELECT x FROM kept") == [(100,)]


@pooled(size=1)
async def test_a_statement_belongs_to_its_block(pool: Pool) -> None:
    """hostile 5d: awaited later, it was executed in the transaction of another request."""
    await pool.execute("CREATE TABLE IF NOT EXISTS late (x text)")
    await pool.execute("TRUNCATE late")
    async with pool.transaction() as tx:
        kept = [tx.execute("INSERT INTO late VALUES ('late')"), tx.fetch("SELECT x FROM late")]
        async with tx.transaction() as inner:
            of_inner = inner.execute("INSERT INTO late VALUES ('inner')")
        with pytest.raises(pg.TransactionOver):
            await of_inner
    with pytest.raises(pg.TransactionOver, match="the block that made this statement has ended"):
        await kept[0]
    async with pool.transaction() as other:
        await other.execute("INSERT INTO late VALUES ('own')")
        with pytest.raises(pg.TransactionOver):
            await kept[1]
    assert await pool.fetch("SELECT x FROM late") == [("own",)]


@pooled(size=1)
async def test_a_savepoint_ends_with_the_block_around_it(pool: Pool) -> None:
    """Left open by a task, it read and wrote in the transaction of the next request."""
    await pool.execute("CREATE TABLE IF NOT EXISTS left_open (x int)")
    await pool.execute("TRUNCATE left_open")
    async with pool.transaction() as tx:
        inner = await tx.transaction().__aenter__()
        innermost = await inner.transaction().__aenter__()
        kept = innermost.execute("INSERT INTO left_open VALUES (1)")
    async with pool.transaction() as other:
        await other.execute("INSERT INTO left_open VALUES (100)")
        for block in (inner, innermost):
            with pytest.raises(RuntimeError):
                await block.execute("INSERT INTO left_open VALUES (2)")
            with pytest.raises(RuntimeError):
                await block.copy_in("COPY left_open FROM STDIN", b"3\n")
            with pytest.raises(RuntimeError):
                await block.transaction().__aenter__()
            with pytest.raises(pg.TransactionOver):
                await block.__aexit__(None, None, None)
            # What leaves its block is its own error, and the savepoint is not looked for in the other's.
            assert await block.__aexit__(KeyError, KeyError(), None) is None
        with pytest.raises(pg.TransactionOver):
            await kept
    assert await pool.fetch("SELECT x FROM left_open") == [(100,)]


@pytest.mark.parametrize("is_inner", [False, True])
def test_no_statement_comes_behind_the_commit(server: Server, is_inner: bool) -> None:
    """While COMMIT was waited for, those of another task were transactions of their own."""

    async def main() -> None:
        async with pg.Pool(server.dsn, size=1) as pool:
            await pool.execute("DROP TABLE IF EXISTS behind, twice")
            await pool.execute("CREATE TABLE behind (x int)")
            await pool.execute("CREATE TABLE twice (x int UNIQUE DEFERRABLE INITIALLY DEFERRED)")
            has_begun = asyncio.Event()

            async def write(block: pg.Transaction) -> None:
                while True:
                    await block.execute("INSERT INTO behind VALUES (1)")
                    has_begun.set()

            with pytest.raises(pg.UniqueViolation):
                async with pool.transaction() as tx:
                    await tx.execute("INSERT INTO twice VALUES (1), (1)")
                    block = await tx.transaction().__aenter__() if is_inner else tx
                    writing = asyncio.create_task(write(block))
                    await has_begun.wait()
            with pytest.raises(RuntimeError):
                await writing
            assert await pool.fetch("SELECT x FROM behind") == []

    asyncio.run(asyncio.wait_for(main(), 60))


@pooled(size=1)
async def test_savepoints_side_by_side_are_refused(pool: Pool) -> None:
    """databases D17: the one that failed undid what the other had done."""
    await pool.execute("CREATE TABLE IF NOT EXISTS beside (x int)")
    await pool.execute("TRUNCATE beside")
    async with pool.transaction() as tx:
        begun, done = asyncio.Event(), asyncio.Event()

        async def first() -> None:
            async with tx.transaction() as inner:
                begun.set()
                await done.wait()
                await inner.execute("INSERT INTO beside VALUES (1)")

        async def second() -> None:
            await begun.wait()
            try:
                async with tx.transaction() as inner:
                    await inner.execute("INSERT INTO beside VALUES (2)")
            finally:
                done.set()

        results = await asyncio.gather(first(), second(), return_exceptions=True)
        assert results[0] is None
        assert isinstance(results[1], RuntimeError)
        async with tx.transaction() as inner:
            await inner.execute("INSERT INTO beside VALUES (3)")
    assert await pool.fetch("SELECT x FROM beside ORDER BY x") == [(1,), (3,)]


async def replace_enum(pool: Pool) -> None:
    for text in (
        "ALTER TYPE mood RENAME TO mood_old",
        "CREATE TYPE mood AS ENUM ('good', 'bad', 'new')",
        "ALTER TABLE moods ALTER m TYPE mood USING m::text::mood",
        "DROP TYPE mood_old",
    ):
        await pool.execute(text)


async def replace_by_domain(pool: Pool) -> None:
    for text in (
        "ALTER TABLE moods ALTER m TYPE text USING m::text",
        "DROP TYPE mood",
        "CREATE DOMAIN mood AS text",
        "ALTER TABLE moods ALTER m TYPE mood",
    ):
        await pool.execute(text)


@pytest.mark.parametrize("replace", [replace_enum, replace_by_domain])
@pytest.mark.parametrize("named", [True, False])
def test_a_type_is_replaced_under_the_pool(
    server: Any, replace: Callable[[Pool], Awaitable[None]], named: bool
) -> None:
    """databases D4: each statement that names the type failed until a restart."""

    async def main() -> None:
        async with Pool(server.dsn, size=3, named_statements=named) as pool:
            await pool.execute("DROP TABLE IF EXISTS moods")
            await pool.execute("DROP DOMAIN IF EXISTS mood")
            await pool.execute("DROP TYPE IF EXISTS mood")
            await pool.execute("CREATE TYPE mood AS ENUM ('good', 'bad')")
            await pool.execute("CREATE TABLE moods (m mood)")
            insert, select = "INSERT INTO moods VALUES ($1)", "SELECT m FROM moods WHERE m = $1"
            for _ in range(2):
                await asyncio.gather(*(pool.execute(insert, "good") for _ in range(30)))
                await asyncio.gather(*(pool.fetch(select, "good") for _ in range(30)))
            await replace(pool)
            assert (
                await asyncio.gather(*(pool.execute(insert, "bad") for _ in range(30))) == [1] * 30
            )
            found = await asyncio.gather(*(pool.fetch(select, "bad") for _ in range(30)))
            assert found == [[("bad",)] * 30] * 30
            await pool.execute("DROP TABLE moods")
            await pool.execute(
                "DROP DOMAIN mood" if replace is replace_by_domain else "DROP TYPE mood"
            )

    asyncio.run(asyncio.wait_for(main(), 60))


@pooled(size=1)
async def test_a_parameter_of_another_type_is_looked_at_again(pool: Pool) -> None:
    """databases D4: int became text, and the pool went on to refuse texts."""
    await pool.execute("DROP TABLE IF EXISTS retyped")
    await pool.execute("CREATE TABLE retyped (a int)")
    sql = "INSERT INTO retyped VALUES ($1)"
    assert await pool.execute(sql, 1) == 1
    with pytest.raises(TypeError, match="expected int, got str"):
        await pool.execute(sql, "x")
    await pool.execute("ALTER TABLE retyped ALTER a TYPE text")
    assert await pool.execute(sql, "x") == 1
    with pytest.raises(TypeError, match="expected str, got int"):
        await pool.execute(sql, 1)


@pooled(size=1)
async def test_texts_of_requests_do_not_fill_the_server(pool: Pool) -> None:
    """hostile 8: 11 MiB of requests took 2.7 GiB of the server's memory."""
    prepared = "SELECT count(*), coalesce(sum(length(statement)), 0) FROM pg_prepared_statements"
    for count in range(1, 1500, 50):
        marks = ", ".join(f"(${n + 1}::int)" for n in range(count))
        text = f"SELECT count(*) FROM (VALUES {marks}) AS v"
        for _ in range(2):
            assert await pool.fetch_value(text, *range(count)) == count
    _, size = (await pool.fetch(prepared))[0]
    assert size <= 256 * 1024
    for number in range(1500):
        await pool.fetch_value(f"SELECT {number}, '{'x' * 500}'")
    _, size = (await pool.fetch(prepared))[0]
    assert size <= 256 * 1024
    # Their plans too: what the session takes of the server's memory is bounded, whatever has been asked.
    memory = "SELECT sum(total_bytes)::bigint FROM pg_backend_memory_contexts"
    for count in range(1, 600, 2):
        marks = ", ".join(f"${n + 1}::int" for n in range(count))
        for _ in range(2):
            assert await pool.fetch_value(f"SELECT 1 WHERE 0 IN ({marks})", *range(count)) == 1
    taken = await pool.fetch_value(memory)
    for count in range(2, 600, 2):
        marks = ", ".join(f"${n + 1}::int" for n in range(count))
        for _ in range(2):
            assert await pool.fetch_value(f"SELECT 1 WHERE 0 IN ({marks})", *range(count)) == 1
    assert max(taken, await pool.fetch_value(memory)) < 48 * 1024 * 1024
    # What is used again and again keeps its name.
    for number in range(600):
        await pool.fetch_value("SELECT 'kept'")
        await pool.fetch_value(f"SELECT -{number}, '{'y' * 700}'")
    kept = "SELECT count(*) FROM pg_prepared_statements WHERE statement = $1"
    assert await pool.fetch_value(kept, "SELECT 'kept'") == 1


def test_a_pool_is_used_on_its_own_loop(server: Any) -> None:
    async def main() -> None:
        async with Pool(server.dsn, size=1) as pool:

            async def ask() -> None:
                await pool.fetch("SELECT 1")

            with pytest.raises(RuntimeError, match="event loop of another thread"):
                await asyncio.to_thread(asyncio.run, ask())
            assert await pool.fetch_value("SELECT 1") == 1

    asyncio.run(asyncio.wait_for(main(), 30))


TEMPORARY_PATHS: list[tuple[str, tuple[object, ...]]] = [
    ("SET LOCAL search_path = pg_temp", ()),
    ('SET LOCAL search_path TO "pg_temp", public', ()),
    ("SET LOCAL SCHEMA 'pg_temp'", ()),
    ("SET LOCAL search_path TO PG_TEMP", ()),
    ("SET LOCAL search_path = E'pg\\x5ftemp'", ()),
    ("SELECT set_config('search_path', $1, true)", ("pg_temp, public",)),
    ("SELECT set_config($1, $2, true)", ("search_path", "PG_TEMP")),
    ("SELECT set_config('search_path', 'pg_' || $1, true)", ("temp",)),
    ("SELECT set_config('search_path', a, true) FROM (VALUES ('pg_temp')) AS a (a)", ()),
]


@pytest.mark.parametrize(("text", "parameters"), TEMPORARY_PATHS)
@pytest.mark.parametrize("make", ["CREATE TABLE shadow (x int)", "SELECT 1 AS x INTO shadow"])
def test_what_is_made_on_the_path_of_temporary_tables_is_not_there_for_others(
    server: Server, text: str, parameters: tuple[object, ...], make: str
) -> None:
    """databases D9: a temporary table by another way shadowed one of the same name for later requests."""

    async def main() -> None:
        async with Pool(server.dsn, size=1) as pool:
            await pool.execute("DROP TABLE IF EXISTS shadow")
            for _ in range(2):
                async with pool.transaction() as tx:
                    await tx.fetch(text, *parameters)
                    await tx.execute(make)
                    assert await tx.fetch_value("SELECT to_regclass('pg_temp.shadow') IS NOT NULL")
                assert await pool.fetch_value("SELECT to_regclass('shadow') IS NULL")

    asyncio.run(main())


@pooled(size=1)
async def test_a_path_of_tenants_costs_no_reset(pool: Pool) -> None:
    async with pool.transaction() as tx:
        process = await tx.fetch_value("SELECT pg_backend_pid()")
        await tx.execute("SET application_name = 'stays until a reset'")
    async with pool.transaction() as tx:
        assert await tx.fetch_value("SHOW application_name") != "stays until a reset"
        for text, parameters in (
            ("SET LOCAL search_path = public", ()),
            ("SELECT set_config('search_path', $1, true)", ("public",)),
            ("SELECT set_config('search_path', 'public', true)", ()),
        ):
            await tx.execute(text, *parameters)
        assert await tx.fetch_value("SELECT pg_backend_pid()") == process


def test_a_reset_that_fails_costs_no_other_statement(server: Server) -> None:
    """databases D9: behind code that makes its own reset fail the next statements go to another session."""

    async def main() -> None:
        async with Pool(server.dsn, size=1) as pool:
            for _ in range(5):
                code = (
                    "DO $$BEGIN FOR i IN 1..3000 LOOP EXECUTE 'PREPARE p' || i || ' AS SELECT 1'; END LOOP;"
                    " SET statement_timeout = 1; END$$"
                )
                results = await asyncio.gather(
                    pool.execute(code),
                    *(pool.fetch_value("SELECT $1::int", number) for number in range(5)),
                    return_exceptions=True,
                )
                assert results[1:] == list(range(5))
                assert await pool.fetch_value("SHOW statement_timeout") == "0"

    asyncio.run(asyncio.wait_for(main(), 60))
