"""COPY and cursors: data in portions, a server that waits for a slow consumer, and what is left early."""

from __future__ import annotations

import asyncio
import contextlib
import datetime as dt
import threading
import uuid
from collections.abc import AsyncIterator, Awaitable, Callable
from decimal import Decimal

import msgspec
import pytest
import trustme
from citius import pg
from pg_rig import Server, get, pooled
from pki import Pki
from rig import application

KEY = uuid.UUID(int=7)

ENDLESS = "generate_series(1, 10000), generate_series(1, 10000) g"
"""A hundred million rows, which the server does not make before it sends the first."""


def rss_kib() -> int:
    with open("/proc/self/status") as status:
        return next(int(line.split()[1]) for line in status if line.startswith("VmRSS"))


@pooled
async def test_copy_out(pool) -> None:
    sql = "COPY (SELECT g, 'n' || g FROM generate_series(1, 3) g) TO STDOUT"
    async with pool.copy_out(sql) as chunks:
        assert b"".join([chunk async for chunk in chunks]) == b"1\tn1\n2\tn2\n3\tn3\n"
    async with pool.copy_out(f"{sql} (FORMAT csv, HEADER)") as chunks:
        assert b"".join([chunk async for chunk in chunks]).startswith(b"g,?column?\n1,n1\n")
    async with pool.copy_out(f"{sql} (FORMAT binary)") as chunks:
        assert (await anext(chunks)).startswith(b"PGCOPY\n\xff\r\n\0")
    async with pool.copy_out("COPY (SELECT 1 WHERE false) TO STDOUT") as chunks:
        assert [chunk async for chunk in chunks] == []
    assert await pool.fetch_value("SELECT 1") == 1


@pooled
async def test_copy_in_of_bytes(pool) -> None:
    await pool.execute("CREATE TABLE IF NOT EXISTS taken (id int, name text)")
    await pool.execute("TRUNCATE taken")
    sql = "COPY taken FROM STDIN (FORMAT csv)"
    assert await pool.copy_in(sql, b"1,one\n2,two\n") == 2
    assert await pool.copy_in(sql, bytearray(b"3,three\n")) == 1
    assert await pool.copy_in(sql, [b"4,fo", b"ur\n5,five", b"\n"]) == 2
    assert await pool.copy_in(sql, b"") == 0

    async def source():
        for number in range(6, 9):
            await asyncio.sleep(0)
            yield f"{number},x\n".encode()

    assert await pool.copy_in(sql, source()) == 3
    assert await pool.fetch_value("SELECT array_agg(id ORDER BY id) FROM taken") == [*range(1, 9)]
    # Binary data passes as it is.
    async with pool.copy_out("COPY taken TO STDOUT (FORMAT binary)") as chunks:
        data = b"".join([chunk async for chunk in chunks])
    assert await pool.copy_in("COPY taken FROM STDIN (FORMAT binary)", data) == 8


@pooled(size=1)
async def test_copy_in_of_rows(pool) -> None:
    await pool.execute(
        """CREATE TABLE IF NOT EXISTS any_rows (a int, b text, c bool, d bytea, e timestamptz,
           f interval, g uuid, h jsonb, i int[], j text[], k numeric, l date, m bytea[])"""
    )
    now = dt.datetime(2024, 2, 29, 12, tzinfo=dt.UTC)
    row = (
        1, "a\tb\\c\nd\r\\N\u00e9", True, b"\0\\x\t", now, dt.timedelta(-1, 5, 6), KEY, {"a": [1, "\t"]},
        [1, None, 3], ["a,b", '"', "\\", "NULL", "", None], Decimal("1.50"), dt.date(2024, 2, 29), [b"\\\0"],
    )  # fmt: skip
    nulls = (None,) * len(row)
    for style in ("postgres", "sql_standard"):
        async with pool.transaction() as tx:
            await tx.execute(f"SET intervalstyle = '{style}'")
            await tx.execute("TRUNCATE any_rows")
            assert await tx.copy_in("COPY any_rows FROM STDIN", [row, list(nulls)]) == 2
            assert await tx.fetch("SELECT * FROM any_rows ORDER BY a") == [row, nulls]


@pooled
async def test_a_copy_that_fails_leaves_nothing(pool) -> None:
    await pool.execute("CREATE TABLE IF NOT EXISTS failing (id int PRIMARY KEY)")
    await pool.execute("TRUNCATE failing")
    sql = "COPY failing FROM STDIN"

    async def broken():
        yield b"1\n"
        raise LookupError("no more")

    with pytest.raises(LookupError):
        await pool.copy_in(sql, broken())
    with pytest.raises(pg.ServerError, match="invalid input syntax"):
        await pool.copy_in(sql, b"2\nx\n")
    # The server refuses while there is more to send.
    with pytest.raises(pg.UniqueViolation):
        await pool.copy_in(sql, (b"3\n" * 20_000 for _ in range(200)))
    with pytest.raises(pg.SyntaxOrAccessError, match="does not exist"):
        await pool.copy_in("COPY nothing FROM STDIN", b"")
    with pytest.raises(pg.SyntaxOrAccessError, match="does not exist"):
        async with pool.copy_out("COPY nothing TO STDOUT") as chunks:
            await anext(chunks)
    with pytest.raises(TypeError, match="got str"):
        await pool.copy_in(sql, "4\n")
    with pytest.raises(TypeError, match="got int"):
        await pool.copy_in(sql, [4])
    with pytest.raises(TypeError, match="object has no text format"):
        await pool.copy_in(sql, [(object(),)])
    with pytest.raises(ValueError, match="FROM STDIN"):
        await pool.copy_in("SELECT 1", b"5\n")
    with pytest.raises(pg.ServerError, match="copy_out is for"):
        async with pool.copy_out(sql) as chunks:
            await anext(chunks)
    assert await pool.fetch_value("SELECT count(*) FROM failing") == 0


@pooled(size=1)
async def test_copies_in_a_transaction(pool) -> None:
    await pool.execute("CREATE TABLE IF NOT EXISTS within (id int)")
    async with pool.transaction() as tx:
        assert await tx.copy_in("COPY within FROM STDIN", [(n,) for n in range(5)]) == 5
        async with tx.copy_out("COPY within TO STDOUT") as chunks:
            assert b"".join([chunk async for chunk in chunks]) == b"0\n1\n2\n3\n4\n"
        # What others do in the transaction meanwhile waits for the end of the data.
        others = []

        async def source():
            for number in range(5, 8):
                others.append(
                    asyncio.ensure_future(tx.fetch_value(f"SELECT {number} + $1::int", 1))
                )
                await asyncio.sleep(0.01)  # it would be among the data by then
                yield (number,)

        assert await tx.copy_in("COPY within FROM STDIN", source()) == 3
        assert await asyncio.gather(*others) == [6, 7, 8]
    assert await pool.fetch_value("SELECT count(*) FROM within") == 8


@pooled(size=1)
async def test_a_copy_that_is_left_early(pool) -> None:
    process = await pool.fetch_value("SELECT pg_backend_pid()")
    async with pool.copy_out(f"COPY (SELECT repeat('x', 1000) FROM {ENDLESS}) TO STDOUT") as chunks:
        assert len(await anext(chunks)) > 1000
    assert await asyncio.wait_for(pool.fetch_value("SELECT pg_backend_pid()"), 20) == process

    async def endless():
        while True:
            yield b"1\n"
            await asyncio.sleep(0)

    await pool.execute("CREATE TABLE IF NOT EXISTS endless (id int)")
    task = asyncio.create_task(pool.copy_in("COPY endless FROM STDIN", endless()))
    await asyncio.sleep(0.1)  # the statements are under way by then
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert await asyncio.wait_for(pool.fetch_value("SELECT count(*) FROM endless"), 20) == 0
    assert await pool.fetch_value("SELECT pg_backend_pid()") == process


@pooled(size=1)
async def test_the_server_waits_for_a_slow_consumer_of_a_copy(pool) -> None:
    before = rss_kib()
    sql = "COPY (SELECT repeat('x', 1000) FROM generate_series(1, 200000)) TO STDOUT"
    async with pool.copy_out(sql) as chunks:
        total = len(await anext(chunks))
        await asyncio.sleep(0.5)  # a server that did not wait would have sent all by then
        waiting = chunks._waiting_bytes
        async for chunk in chunks:
            total += len(chunk)
    assert total == 200_000 * 1001
    assert waiting < 1024 * 1024
    assert rss_kib() - before < 50 * 1024


@pooled(size=2)
async def test_a_cursor(pool) -> None:
    sql = "SELECT g AS id FROM generate_series(1, $1::int) g"
    for count in (0, 1, 6, 7, 8, 20):
        async with pool.cursor(sql, count, rows_max=7) as rows:
            assert [row async for row in rows] == [(n,) for n in range(1, count + 1)]
    async with pool.cursor(sql, 20, rows_max=8, as_=dict) as rows:
        assert await anext(rows) == {"id": 1}
        assert len(await rows.fetch()) == 7
        assert [len(await rows.fetch()) for _ in range(3)] == [8, 4, 0]
    async with pool.transaction() as tx:
        await tx.execute("CREATE TEMP TABLE half AS SELECT g AS id FROM generate_series(1, 100) g")
        async with (
            tx.cursor("SELECT id FROM half", rows_max=10) as one,
            tx.cursor(sql, 30, rows_max=10) as two,
        ):
            assert [await anext(one), await anext(two)] == [(1,), (1,)]
            assert await tx.fetch_value("SELECT count(*) FROM half") == 100
            assert [row async for row in one][-1] == (100,)
        assert await tx.fetch_value("SELECT 1") == 1
    with pytest.raises(pg.ServerError, match="division"):
        async with pool.cursor(
            "SELECT 1 / (5 - g) FROM generate_series(1, 10) g", rows_max=2
        ) as rows:
            async for _ in rows:
                pass
    with pytest.raises(pg.SyntaxOrAccessError):
        async with pool.cursor("SELEC 1") as rows:
            await anext(rows)
    with pytest.raises(TypeError, match="0 are given"):
        async with pool.cursor(sql) as rows:
            await anext(rows)
    with pytest.raises(ValueError, match="at least 1"):
        pool.cursor(sql, 1, rows_max=0)
    assert await pool.fetch_value("SELECT 1") == 1


@pooled(size=1)
async def test_a_cursor_outlives_the_statements_that_a_session_keeps(pool) -> None:
    sql = "SELECT g FROM generate_series(1, 30) g"
    async with pool.transaction() as tx, tx.cursor(sql, rows_max=10) as rows:
        assert await anext(rows) == (1,)
        for number in range(1010):
            await tx.fetch_value(f"SELECT {number}")
        assert len([row async for row in rows]) == 29


@pooled(size=1)
async def test_a_cursor_that_is_left_early(pool) -> None:
    async with pool.cursor(f"SELECT g FROM {ENDLESS}") as rows:
        assert await anext(rows) == (1,)
    with pytest.raises(LookupError):
        async with pool.cursor(
            "SELECT g, pg_sleep(60 * (g / 501)) FROM generate_series(1, 600) g"
        ) as rows:
            await anext(rows)
            raise LookupError
    assert await asyncio.wait_for(pool.fetch_value("SELECT 1"), 20) == 1


@pooled(size=1)
async def test_a_million_rows_to_a_slow_consumer(pool) -> None:
    before, count, total = rss_kib(), 0, 0
    sql = "SELECT g, repeat('x', 100) FROM generate_series(1, 1000000) g"
    async with pool.cursor(sql, rows_max=5000) as rows:
        while portion := await rows.fetch():
            count += len(portion)
            total += portion[-1][0]
            await asyncio.sleep(0.001)  # slower than the server
    assert count == 1_000_000
    assert total == sum(range(5000, 1_000_001, 5000))
    assert rss_kib() - before < 50 * 1024


APP = application("postgres_streams_app")


def test_streams_under_the_reactor(serve, server) -> None:
    serving = serve(APP, "--workers", "1", env={"DSN": server.dsn})
    expected = b"".join(b"%d\n" % number for number in range(1, 5001))
    assert get(serving, "/rows/5000") == (200, expected)
    results = []
    threads = [
        threading.Thread(target=lambda: results.append(get(serving, "/copies"))) for _ in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    size = sum(len(str(number)) + 1002 for number in range(5000))
    assert results == [(200, str(size).encode())] * 4
    assert get(serving, "/heard") == (200, b"you")
    # The reactor carries the sessions again.
    assert set(msgspec.json.decode(get(serving, "/carried")[1])) == {True}


def test_streams_over_tls(binaries, tmp_path) -> None:
    pki = Pki(trustme.CA(), tmp_path)
    made = Server(binaries)
    try:
        made.secure(*pki.issue("localhost"), pki.bundle)
        made.trust("hostssl all all 127.0.0.1/32 trust")
        made.start()
        dsn = f"host=127.0.0.1 port={made.port} user=tester dbname=postgres sslmode=require"
        asyncio.run(asyncio.wait_for(copy_much(dsn), 60))
    finally:
        made.remove()


async def copy_much(dsn: str) -> None:
    async with pg.Pool(dsn, size=1) as pool:
        await pool.execute("CREATE TABLE much (id int, text text)")
        rows = ((n, "x" * 1000) for n in range(20_000))
        assert await pool.copy_in("COPY much FROM STDIN", rows) == 20_000
        size = 0
        async with pool.copy_out("COPY much TO STDOUT") as chunks:
            async for chunk in chunks:
                size += len(chunk)
        assert size == sum(len(str(n)) + 1002 for n in range(20_000))
        async with pool.cursor("SELECT id FROM much ORDER BY id") as found:
            assert [row async for row in found] == [(n,) for n in range(20_000)]


@pooled(size=1)
async def test_a_copy_whose_source_fails_with_a_text_of_any_kind(pool) -> None:
    """databases D15: the caller has its own exception, and the transaction around a savepoint goes on."""
    await pool.execute("CREATE TABLE IF NOT EXISTS reasons (a text)")
    await pool.execute("TRUNCATE reasons")

    class SilentError(Exception):
        def __str__(self) -> str:
            raise LookupError("no text")

    errors = [ValueError("y" * 200_000), ValueError("\ud800"), ValueError("\0"), SilentError()]
    async with pool.transaction() as tx:
        await tx.execute("INSERT INTO reasons VALUES ('before')")
        for error in errors:

            async def source(error=error):
                yield ("x",)
                raise error

            with pytest.raises(type(error)) as caught:
                async with tx.transaction() as inner:
                    await inner.copy_in("COPY reasons FROM STDIN", source())
            assert caught.value is error
        await tx.execute("INSERT INTO reasons VALUES ('after')")
    assert await pool.fetch("SELECT a FROM reasons") == [("before",), ("after",)]


@pooled(size=1)
async def test_a_copy_does_not_reach_into_the_next_block(pool) -> None:
    """Refused by the server while its source paused, it ended the COPY that another request had begun."""
    await pool.execute("CREATE TABLE IF NOT EXISTS reached (x int)")
    await pool.execute("TRUNCATE reached")
    sent, goes_on, other_sent, other_ends = (asyncio.Event() for _ in range(4))

    async def refused() -> AsyncIterator[bytes]:
        yield b"x\n" * 40_000
        sent.set()
        await goes_on.wait()
        yield b"1\n"

    async def taken() -> AsyncIterator[bytes]:
        yield b"5\n" * 40_000
        other_sent.set()
        await other_ends.wait()
        yield b"6\n"

    with contextlib.suppress(KeyError):
        async with pool.transaction() as tx:
            first = asyncio.create_task(tx.copy_in("COPY reached FROM STDIN", refused()))
            await sent.wait()
            raise KeyError
    second = asyncio.create_task(pool.copy_in("COPY reached FROM STDIN", taken()))
    await other_sent.wait()
    goes_on.set()
    with pytest.raises(pg.ServerError, match="invalid input syntax"):
        await first
    other_ends.set()
    assert await second == 40_001
    assert await pool.fetch_value("SELECT count(*) FROM reached") == 40_001


@pooled(size=1)
async def test_a_copy_that_is_cancelled_ends_no_other_of_its_block(pool) -> None:
    """It told the server that there was no more data, whose COPY ever was under way."""
    await pool.execute("CREATE TABLE IF NOT EXISTS ended (x int)")
    await pool.execute("TRUNCATE ended")
    sent, goes_on = asyncio.Event(), asyncio.Event()

    async def slow() -> AsyncIterator[bytes]:
        yield b"1\n" * 40_000
        sent.set()
        await goes_on.wait()
        yield b"1\n"

    async with pool.transaction() as tx:
        first = asyncio.create_task(tx.copy_in("COPY ended FROM STDIN", slow()))
        await sent.wait()
        second = asyncio.create_task(tx.copy_in("COPY ended FROM STDIN", b"2\n"))
        await asyncio.sleep(0)
        second.cancel()
        await asyncio.wait({second})
        goes_on.set()
        assert await first == 40_001
    assert await pool.fetch("SELECT DISTINCT x FROM ended") == [(1,)]


@pytest.mark.parametrize("is_inner", [False, True])
def test_the_end_of_a_block_cuts_what_it_copies(server, is_inner: bool) -> None:
    """The ROLLBACK was sent behind the COPY: the session stayed in use until its other side had ended."""

    async def fail(pool: pg.Pool, begin: Callable[[pg.Transaction], Awaitable[None]]) -> None:
        async with pool.transaction() as tx:
            if not is_inner:
                await begin(tx)
                raise KeyError
            with contextlib.suppress(KeyError):
                async with tx.transaction() as inner:
                    await begin(inner)
                    raise KeyError
            assert await tx.fetch_value("SELECT 1") == 1

    async def main() -> None:
        goes_on, tasks = asyncio.Event(), list[asyncio.Task[object]]()

        async def read(tx: pg.Transaction) -> None:
            begun = asyncio.Event()

            async def consume() -> None:
                async with tx.copy_out("COPY (SELECT generate_series(1, 1000000)) TO STDOUT") as it:
                    async for _ in it:
                        begun.set()
                        await goes_on.wait()

            tasks.append(asyncio.create_task(consume()))
            await begun.wait()

        async def write(tx: pg.Transaction) -> None:
            begun = asyncio.Event()

            async def source() -> AsyncIterator[bytes]:
                yield b"1\n" * 40_000
                begun.set()
                await goes_on.wait()

            tasks.append(asyncio.create_task(tx.copy_in("COPY cut FROM STDIN", source())))
            await begun.wait()

        async with pg.Pool(server.dsn, size=1) as pool:
            await pool.execute("CREATE TABLE IF NOT EXISTS cut (x int)")
            for begin in (read, write):
                with contextlib.suppress(KeyError):
                    await fail(pool, begin)
                assert await pool.fetch("SELECT x FROM cut") == []
            goes_on.set()
            results = await asyncio.gather(*tasks, return_exceptions=True)
            assert [type(it) for it in results] == [pg.TransactionOver, pg.QueryCanceled]

    asyncio.run(asyncio.wait_for(main(), 60))


@pooled(size=1)
async def test_a_savepoint_that_is_undone_cuts_nothing_that_came_before(pool) -> None:
    async with (
        pool.transaction() as tx,
        tx.copy_out("COPY (SELECT generate_series(1, 3)) TO STDOUT") as chunks,
    ):
        with contextlib.suppress(KeyError):
            async with tx.transaction():
                raise KeyError
        assert b"".join([chunk async for chunk in chunks]) == b"1\n2\n3\n"


@pooled(size=1)
async def test_an_item_of_any_size_is_sent_at_the_pace_of_the_server(pool) -> None:
    """All of it was copied for the session at once, more than once, and the loop stood still meanwhile."""
    await pool.execute("CREATE TABLE IF NOT EXISTS paced (x text)")
    item = (b"z" * 1_048_575 + b"\n") * 128
    before = rss_kib()
    most = 0

    async def look() -> None:
        nonlocal most
        while True:
            most = max(most, rss_kib())
            await asyncio.sleep(0)

    looking = asyncio.create_task(look())
    assert await pool.copy_in("COPY paced FROM STDIN", iter([item])) == 128
    looking.cancel()
    assert most - before < 2 * len(item) / 1024
