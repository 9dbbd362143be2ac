"""What disturbs a statement: messages in between, values that cannot be, settings and servers that change."""

from __future__ import annotations

import asyncio
import shutil
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from citius import pg
from pg_rig import Server, pooled


def message(tag: bytes, body: bytes) -> bytes:
    return tag + (len(body) + 4).to_bytes(4, "big") + body


READY = message(b"Z", b"I")
OPENED = message(b"R", b"\0\0\0\0") + message(b"K", b"\0" * 8) + READY
COLUMN = message(
    b"T", b"\0\x01a\0" + b"\0" * 6 + (25).to_bytes(4, "big") + b"\xff\xff" + b"\xff" * 4 + b"\0\0"
)
DESCRIBED = message(b"1", b"") + message(b"t", b"\0\0") + COLUMN + READY
DONE = message(b"C", b"SELECT 1\0") + READY


def row(*values: bytes) -> bytes:
    fields = b"".join(len(value).to_bytes(4, "big") + value for value in values)
    return message(b"D", len(values).to_bytes(2, "big") + fields)


def against(directory: Path, replies: list[bytes], act: Callable[[Any], Any], piece: int = 10**6):
    """Have ``act(pool)`` talk to a server that sends one of these replies, in pieces, to each message."""
    connections: list[asyncio.Task[None]] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        connections.append(task)
        try:
            for reply in (OPENED, *replies):
                if not await reader.read(4096):
                    return
                for at in range(0, len(reply), piece):
                    writer.write(reply[at : at + piece])
                    await writer.drain()
                    await asyncio.sleep(0)
            while await reader.read(4096):
                pass
        except ConnectionError:
            pass
        finally:
            writer.close()

    async def main() -> None:
        async with await asyncio.start_unix_server(serve, directory / ".s.PGSQL.5432"):
            async with pg.Pool(f"host={directory} user=u", size=1) as pool:
                await asyncio.wait_for(act(pool), 20)
            await asyncio.wait(connections, timeout=20)

    asyncio.run(main())


@pytest.mark.parametrize("piece", [1, 7, 10**6])
def test_messages_in_between_belong_to_no_statement(tmp_path: Path, piece: int) -> None:
    between = (
        message(b"S", b"application_name\0other\0")
        + message(b"N", b"SNOTICE\0VNOTICE\0C00000\0Ma remark\0\0")
        + message(b"A", b"\0\0\0\x07channel\0payload\0")
    )
    executed = message(b"2", b"")
    replies = [
        between + DESCRIBED[:5] + between + DESCRIBED[5:] + between,
        between + executed + between + row(b"x") + between + row(b"y") + between + DONE + between,
        executed + row(b"z") + DONE,
    ]

    async def act(pool: pg.Pool) -> None:
        assert await pool.fetch("SELECT a") == [("x",), ("y",)]
        assert await pool.fetch("SELECT a") == [("z",)]

    against(tmp_path, replies, act, piece)


@pytest.mark.parametrize("values", [(), (b"x", b"y")], ids=["fewer", "more"])
def test_a_row_with_other_values_than_columns(tmp_path: Path, values: tuple[bytes, ...]) -> None:
    executed = message(b"2", b"")
    replies = [DESCRIBED, executed + row(*values) + DONE, executed + row(b"z") + DONE]

    async def act(pool: pg.Pool) -> None:
        with pytest.raises(pg.ProtocolError, match="more or fewer values than columns"):
            await pool.fetch("SELECT a")
        assert await pool.fetch("SELECT a") == [("z",)]

    against(tmp_path, replies, act)


def test_a_statement_over_which_sessions_end_is_given_up(tmp_path: Path) -> None:
    """The others are not: each session that ends over it is replaced."""
    malformed = message(b"1", b"") + message(b"t", b"\0\0more") + COLUMN + READY

    async def act(pool: pg.Pool) -> None:
        with pytest.raises(pg.ProtocolError, match="malformed parameters"):
            await pool.fetch("SELECT a")

    against(tmp_path, [malformed], act)


def test_parameters_without_end(tmp_path: Path) -> None:
    """What a server says of itself is kept for as long as its session lives."""

    def named(first: int, last: int) -> bytes:
        said = (message(b"S", f"p{n}\0x\0".encode()) for n in range(first, last))
        return b"".join(said)

    executed = message(b"2", b"")

    async def act(pool: pg.Pool) -> None:
        assert await pool.fetch("SELECT a") == [("z",)]
        with pytest.raises(pg.SessionLost, match="more than 1000 parameters"):
            await pool.fetch("SELECT a")

    # The same ones again are no more than before.
    replies = [named(0, 1000) + named(0, 1000) + DESCRIBED, executed + row(b"z") + DONE]
    against(tmp_path, [*replies, named(1000, 1001)], act)


@pytest.mark.parametrize("version", ["19devel", "18beta1", "other", ""])
def test_types_of_servers_whose_version_is_no_number(tmp_path: Path, version: str) -> None:
    """Statements wait for what types are: for ever, when the version could not be read."""
    unknown = DESCRIBED.replace((25).to_bytes(4, "big"), (70_000).to_bytes(4, "big"))
    said = message(b"S", b"server_version\0" + version.encode() + b"\0")
    no_catalog = message(b"E", b"SERROR\0VERROR\0C42P01\0Mno such table\0\0") + READY

    async def act(pool: pg.Pool) -> None:
        assert await pool.fetch("SELECT a") == [("z",)]

    against(tmp_path, [said + unknown, no_catalog, message(b"2", b"") + row(b"z") + DONE], act)


def test_a_session_that_ends_as_it_opens_is_replaced(tmp_path: Path) -> None:
    """A server that shuts down says so in one piece with the end of the login."""
    fatal = message(b"E", b"SFATAL\0VFATAL\0C57P01\0Mterminating connection\0\0")
    first = [OPENED, DESCRIBED, message(b"2", b"") + row(b"y") + DONE, fatal]
    served: list[asyncio.Task[None]] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        served.append(task)
        for reply in {1: first, 2: [OPENED + fatal]}.get(len(served), first[:3]):
            if not await reader.read(4096):
                break
            writer.write(reply)
            await writer.drain()
        else:
            if len(served) > 2:
                await reader.read(4096)
        writer.close()

    async def main() -> None:
        async with await asyncio.start_unix_server(serve, tmp_path / ".s.PGSQL.5432"):
            async with pg.Pool(f"host={tmp_path} user=u", size=1, wait_s=10) as pool:
                assert await pool.fetch("SELECT a") == [("y",)]
                with pytest.raises(pg.StatementLost):
                    await pool.fetch("SELECT a")
                assert await pool.fetch("SELECT a") == [("y",)]
            assert len(served) == 3
            await asyncio.wait(served, timeout=20)

    asyncio.run(main())


@pooled(size=1)
async def test_notices_among_rows(pool: pg.Pool) -> None:
    await pool.execute(
        "CREATE FUNCTION noisy(n int) RETURNS int LANGUAGE plpgsql AS "
        "$$BEGIN RAISE NOTICE 'row %', n; PERFORM set_config('application_name', 'n' || n, false); "
        "RETURN n; END$$"
    )
    rows = await pool.fetch("SELECT noisy(g) FROM generate_series(1, 2000) g")
    assert rows == [(n,) for n in range(1, 2001)]


@pooled(size=1)
async def test_statements_that_are_sent_while_a_row_is_made_wait_for_their_session(pool) -> None:
    """The session is at work then (review B3): it was an error, and said that the session was closed."""
    sent = []
    async with pool.transaction() as tx:

        class Asking:
            def __init__(self, a: int) -> None:
                self.a = a
                call = tx.fetch_value("SELECT $1::int", a)
                call.start()
                sent.append(call)

        rows = await tx.fetch("SELECT g AS a FROM generate_series(1, 3) g", as_=Asking)
        assert [row.a for row in rows] == [1, 2, 3]
        assert [await call for call in sent] == [1, 2, 3]


class Fussy:
    def __init__(self, a: int) -> None:
        if a == 50:
            raise LookupError(a)
        self.a = a


@pooled(size=1)
async def test_a_row_that_cannot_be_read_is_the_error_of_its_statement_alone(pool) -> None:
    numbers = "SELECT g AS a FROM generate_series(1, 100) g"
    dates = f"SELECT CASE a WHEN 50 THEN date '4714-11-24 BC' ELSE date '2020-01-01' END FROM ({numbers}) n"
    for kind, failing in (
        (LookupError, lambda: pool.fetch(numbers, as_=Fussy)),
        (OverflowError, lambda: pool.fetch(dates)),
        (OverflowError, lambda: pool.fetch_many(f"{dates} WHERE $1", [(True,), (True,)])),
    ):
        calls = pool.fetch_value("SELECT 1"), failing(), pool.fetch_value("SELECT 2")
        before, failed, after = await asyncio.gather(*calls, return_exceptions=True)
        assert (before, type(failed), after) == (1, kind, 2)


# --- parameters and texts -----------------------------------------------------------------------


@pooled(size=1)
async def test_texts_that_cannot_be(pool: pg.Pool) -> None:
    with pytest.raises(pg.ServerError, match="0x00") as caught:
        await pool.fetch_value("SELECT $1::text", "a\0b")
    assert caught.value.sqlstate == "22021"
    with pytest.raises(pg.ServerError, match="0x00"):
        await pool.fetch_value("SELECT $1::text[]", ["a\0b"])
    with pytest.raises(ValueError, match=r"parameter \$1.*surrogates"):
        await pool.fetch_value("SELECT $1::text", "\ud800")
    with pytest.raises(ValueError, match="surrogates"):
        await pool.fetch_value("SELECT '\ud800'")
    assert await pool.fetch_value("SELECT $1::bytea", b"a\0b") == b"a\0b"


@pooled(size=1)
async def test_as_many_parameters_as_there_can_be(pool: pg.Pool) -> None:
    def statement(count: int) -> str:
        return f"SELECT cardinality(ARRAY[{','.join(f'${n}' for n in range(1, count + 1))}]::int[])"

    most = 65_535
    assert await pool.fetch_value(statement(most), *range(most)) == most
    with pytest.raises(TypeError, match="at most 65535 parameters, and 65536 are given"):
        await pool.fetch_value(statement(most + 1), *range(most + 1))
    # PostgreSQL 15 counts them in 16 bits when it describes the statement: its message has more than it says.
    with pytest.raises((TypeError, pg.ProtocolError, pg.ServerError)):
        await pool.fetch_many(statement(most + 1), [tuple(range(most + 1))])
    with pytest.raises(TypeError, match="at most 65535 parameters, and 65536 are given"):
        await pool.fetch_value("SELECT $1::int", *range(most + 1))
    with pytest.raises(TypeError, match="has no parameters, and 1 are given"):
        await pool.fetch_value("SELECT 1", 1)
    assert await pool.fetch_value("SELECT $1::int", 7) == 7


@pooled(size=1)
async def test_a_statement_of_ten_million_characters(pool: pg.Pool) -> None:
    text = "x" * 10_000_000
    assert await pool.fetch_value(f"SELECT length('{text}')") == len(text)
    with pytest.raises(pg.SyntaxOrAccessError):
        await pool.fetch_value(f"SELECT '{text}")


@pooled(size=1, named_statements=False)
async def test_nothing_is_left_of_a_statement_that_cannot_be_sent(pool: pg.Pool) -> None:
    """Its text, which the server would refuse, is not sent together with the next statement."""
    await pool.execute("CREATE TABLE fleeting (a int)")
    sql = "SELECT a FROM fleeting WHERE a = $1"
    assert await pool.fetch_many(sql, [(1,)]) == []
    with pytest.raises(TypeError, match=r"rows\[1\]: parameter \$1: expected int, got str"):
        await pool.fetch_many(sql, [(1,), ("x",)])
    assert await pool.fetch_value("SELECT 1") == 1
    await pool.execute("DROP TABLE fleeting")
    # Rows that do not fit have the statement described anew, as its types may have changed.
    with pytest.raises(pg.SyntaxOrAccessError, match="fleeting"):
        await pool.fetch_many(sql, [(1,), ("x",)])
    assert await pool.fetch_value("SELECT 1") == 1


# --- what a session remembers -------------------------------------------------------------------


@pooled(size=1)
async def test_the_search_path_changes_under_a_prepared_statement(pool: pg.Pool) -> None:
    for schema, kind, value in (("one", "int", "1"), ("two", "int", "2"), ("three", "text", "'3'")):
        await pool.execute(f"CREATE SCHEMA {schema}")
        await pool.execute(f"CREATE TABLE {schema}.t AS SELECT {value}::{kind} AS v")

    async def value_of(schema: str) -> object:
        async with pool.transaction() as tx:
            await tx.execute(f"SET search_path = {schema}")
            return await tx.fetch_value("SELECT v FROM t")

    for schema, expected in (("one", 1), ("two", 2), ("one", 1), ("three", "3"), ("two", 2)):
        assert await value_of(schema) == expected


async def on_the_session(pool: pg.Pool, sql: str) -> None:
    """Execute what the pool refuses, as a function of the application's could."""
    (session,) = pool._sessions
    await pool.core.script(sql, session.core)


@pooled(size=1)
async def test_discard_all(pool: pg.Pool) -> None:
    assert await pool.fetch_value("SELECT $1::int", 1) == 1
    await on_the_session(pool, "DISCARD ALL")
    calls = [pool.fetch_value("SELECT $1::int", n) for n in range(5)]
    assert await asyncio.gather(*calls) == [0, 1, 2, 3, 4]
    async with pool.transaction() as tx:
        assert await tx.fetch_value("SELECT $1::int", 2) == 2


# --- limits of the server -----------------------------------------------------------------------


@pooled(size=1)
async def test_statement_timeout(pool: pg.Pool) -> None:
    process = await pool.fetch_value("SELECT pg_backend_pid()")
    await on_the_session(pool, "SET statement_timeout = '50ms'")
    calls = [
        pool.fetch_value("SELECT 1"),
        pool.fetch("SELECT pg_sleep(60)"),
        pool.fetch_value("SELECT 2"),
    ]
    before, slow, after = await asyncio.gather(*calls, return_exceptions=True)
    assert (before, after) == (1, 2)
    assert isinstance(slow, pg.QueryCanceled)
    assert "statement timeout" in str(slow)
    assert await pool.fetch_value("SELECT pg_backend_pid()") == process


@pooled(size=1)
async def test_a_transaction_that_idles_longer_than_the_server_waits(pool: pg.Pool) -> None:
    with pytest.raises(pg.SessionLost, match="closed: .*idle-in-transaction timeout"):
        async with pool.transaction() as tx:
            await tx.execute("SET idle_in_transaction_session_timeout = '50ms'")
            session = tx._session
            assert session is not None
            await until(lambda: session.is_closed)
            await tx.execute("SELECT 1")
    assert await asyncio.wait_for(pool.fetch_value("SELECT 1"), 10) == 1


@pooled(size=2)
async def test_too_many_connections_of_a_role(pool: pg.Pool) -> None:
    await pool.execute("CREATE ROLE limited LOGIN CONNECTION LIMIT 1")
    target = pool.targets[0]
    dsn = f"host={target.host} port={target.port} dbname=postgres user=limited"
    async with pg.Pool(dsn, size=3) as limited:
        # It works with what it has.
        assert await limited.fetch_value("SELECT 1") == 1
        with pytest.raises(pg.ServerError, match="too many connections") as caught:
            await pg.Pool(dsn, size=1).open()
        assert caught.value.sqlstate == "53300"
        await pool.execute("ALTER ROLE limited CONNECTION LIMIT 5")
        await until(lambda: limited.sessions == 3)


# --- a server that becomes another --------------------------------------------------------------


def test_the_standby_takes_over(own_server: Server) -> None:
    """The pool goes on with the server that accepts writes, seconds after it does."""
    standby = standby_of(own_server)
    try:
        standby.start()
        dsn = (
            f"host={own_server.directory},{standby.directory} port={own_server.port},{standby.port} "
            "user=tester dbname=postgres target_session_attrs=read-write"
        )

        async def main() -> None:
            async with pg.Pool(dsn, size=2, wait_s=30) as pool:
                await pool.execute("CREATE TABLE kept AS SELECT 1 AS a")
                async with pg.Pool(standby.dsn, size=1) as second:
                    await until_value(second, "SELECT to_regclass('kept')::text", "kept")
                    await asyncio.to_thread(own_server.stop)
                    waiting = asyncio.create_task(pool.execute("INSERT INTO kept VALUES (2)"))
                    await second.execute("SELECT pg_promote()")
                    await until_value(second, "SELECT pg_is_in_recovery()", False)
                    since = time.monotonic()
                    assert await asyncio.wait_for(waiting, 20) == 1
                    assert time.monotonic() - since < 5
                assert await pool.fetch_value("SELECT count(*) FROM kept") == 2

        asyncio.run(main())
    finally:
        standby.remove()


def standby_of(primary: Server) -> Server:
    made = Server(primary._binaries)
    shutil.rmtree(made.data)
    made._run(
        "pg_basebackup", "-D", str(made.data), "-R", "-X", "stream", "-c", "fast",
        "-h", str(primary.directory), "-p", str(primary.port), "-U", primary.user,
    )  # fmt: skip
    return made


async def until(condition: Callable[[], object]) -> None:
    async with asyncio.timeout(20):
        while not condition():
            await asyncio.sleep(0.01)  # a look at a condition


async def until_value(pool: pg.Pool, sql: str, value: object) -> None:
    async with asyncio.timeout(20):
        while await pool.fetch_value(sql) != value:
            await asyncio.sleep(0.01)  # a look at a condition
