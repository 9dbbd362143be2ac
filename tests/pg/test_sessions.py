"""Sessions behind a pool: late cancel requests, reconnecting, statements that go back to the queue."""

from __future__ import annotations

import asyncio
import contextlib
import struct
import sys
import time

import pytest
from citius import pg
from citius.pg import cancelling
from citius.pg import session as sessions
from pg_rig import Server, pooled


async def until(condition, what: str, wait_s: float = 20.0) -> None:
    end = time.monotonic() + wait_s
    while not condition():
        assert time.monotonic() < end, what
        await asyncio.sleep(0.01)  # a look at a condition


def test_a_late_cancel_request_does_not_hit_the_next_transaction(server, monkeypatch) -> None:
    """The session of an abandoned statement is handed to a transaction when the request has done its work."""
    sent, cancel = [], cancelling.cancel

    async def late(*arguments) -> None:
        await asyncio.sleep(0.5)  # the abandoned statement has ended by then
        await cancel(*arguments)
        sent.append(time.monotonic())

    monkeypatch.setattr(cancelling, "cancel", late)

    @pooled(size=1)
    async def test(pool) -> None:
        slow = asyncio.create_task(pool.fetch("SELECT pg_sleep(0.3)"))
        await asyncio.sleep(0.1)  # the statements are under way by then
        slow.cancel()
        async with pool.transaction() as tx:
            await tx.fetch("SELECT pg_sleep(1)")
        assert pool.sessions == 1
        assert await pool.fetch_value("SELECT 1") == 1

    test(server)
    assert len(sent) <= 1


def test_a_late_cancel_request_does_not_hit_the_next_statement_of_its_transaction(
    server, monkeypatch
) -> None:
    """Statements of the session are held back until the request has done its work."""
    cancel = cancelling.cancel

    async def late(*arguments) -> None:
        await asyncio.sleep(0.5)  # the abandoned statement has ended by then
        await cancel(*arguments)

    monkeypatch.setattr(cancelling, "cancel", late)

    @pooled(size=1)
    async def test(pool) -> None:
        async with pool.transaction() as tx:
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(0.1):
                    await tx.fetch("SELECT pg_sleep(0.3)")
            await tx.fetch("SELECT pg_sleep(1)")
            assert await tx.fetch_value("SELECT 7") == 7

    test(server)


def test_a_cancel_request_that_comes_too_early_is_sent_again(server, monkeypatch) -> None:
    """The server ignores one for a session that does nothing yet."""
    calls, cancel = [], cancelling.cancel

    async def lost(*arguments) -> None:
        calls.append(arguments)
        if len(calls) > 1:
            await cancel(*arguments)

    monkeypatch.setattr(cancelling, "cancel", lost)

    @pooled(size=1)
    async def test(pool) -> None:
        slow = asyncio.create_task(pool.fetch("SELECT pg_sleep(60)"))
        await asyncio.sleep(0.1)  # it is under way by then
        slow.cancel()
        assert await asyncio.wait_for(pool.fetch_value("SELECT 1"), 20) == 1
        assert len(calls) == 2

    test(server)


@pooled(size=1, wait_s=0.3)
async def test_a_transaction_waits_for_a_busy_session_no_longer_than_for_none(pool) -> None:
    slow = asyncio.create_task(pool.fetch("SELECT pg_sleep(2)"))
    await asyncio.sleep(0)
    with pytest.raises(pg.PoolExhausted):
        async with pool.transaction():
            pass
    await slow
    async with pool.transaction() as tx:
        assert await tx.fetch_value("SELECT 1") == 1


@pooled(size=1)
async def test_an_abandoned_statement_behind_a_slow_one_is_cancelled(pool) -> None:
    slow = asyncio.create_task(pool.fetch("SELECT pg_sleep(1)"))
    await asyncio.sleep(0)
    behind = asyncio.create_task(pool.fetch("SELECT pg_sleep(120)"))
    await asyncio.sleep(0.2)  # the statements are under way by then
    behind.cancel()
    await slow
    assert await asyncio.wait_for(pool.fetch_value("SELECT 1"), 25) == 1


@pooled(size=1)
async def test_texts_of_statements_are_not_kept_for_ever(pool) -> None:
    first = "SELECT 'the first of many'"
    refs = sys.getrefcount(first)
    assert await pool.fetch_value(first) == "the first of many"
    assert sys.getrefcount(first) > refs
    for start in range(0, 10_010, 455):
        numbers = range(start, start + 455)
        assert await pg.gather(*(pool.fetch_value(f"SELECT {n}") for n in numbers)) == [*numbers]
    await until(lambda: sys.getrefcount(first) == refs, "the text is still there")
    assert await pool.fetch_value(first) == "the first of many"


def test_a_session_is_connected_again_whatever_has_failed(server, monkeypatch) -> None:
    tries, open_session = [], sessions.Session.open

    async def unlucky(session) -> None:
        tries.append(session)
        if len(tries) in (2, 3):
            raise RuntimeError("something else")
        await open_session(session)

    monkeypatch.setattr(sessions.Session, "open", unlucky)

    @pooled(size=2)
    async def test(pool) -> None:
        await until(lambda: pool.sessions == 2, "two sessions")
        assert len(tries) == 4

    test(server)


def test_a_session_that_cannot_be_carried_is_closed(server, monkeypatch) -> None:
    made, follow = [], sessions.reactors.follow

    def refuse(move) -> None:
        made.append(move.__self__)
        follow(move)
        raise RuntimeError("not today")

    monkeypatch.setattr(sessions.reactors, "follow", refuse)
    with pytest.raises(RuntimeError, match="not today"):
        asyncio.run(pg.Pool(server.dsn, size=1).open())
    assert [session.is_closed for session in made] == [True]


@pooled(size=1)
async def test_what_goes_back_to_the_queue_keeps_its_order(pool) -> None:
    process = await pool.fetch_value("SELECT pg_backend_pid()")
    await pool.execute("CREATE TABLE IF NOT EXISTS orders (id serial, n int)")
    # They wait for their statement to be prepared, which waits for the slow one.
    assert await pool.fetch("SELECT pg_sleep($1)", 0.0)
    slow = asyncio.create_task(pool.fetch("SELECT pg_sleep($1)", 60.0))
    await asyncio.sleep(0)
    inserts = [
        asyncio.create_task(pool.fetch_value("INSERT INTO orders (n) VALUES ($1) RETURNING id", n))
        for n in range(6)
    ]
    async with pg.Pool(str_dsn(pool), size=1) as other:
        await asyncio.sleep(0.1)  # the statements are under way by then
        assert await other.fetch_value("SELECT pg_terminate_backend($1)", process)
    with pytest.raises(pg.StatementLost):
        await slow
    ids = await asyncio.gather(*inserts)
    assert ids == sorted(ids)


def str_dsn(pool) -> str:
    target = pool.targets[0]
    return f"host={target.host} port={target.port} user={target.user} dbname={target.database}"


def message(tag: bytes, body: bytes) -> bytes:
    return tag + struct.pack("!i", len(body) + 4) + body


def test_a_zone_that_no_server_sends(tmp_path) -> None:
    """Its offset is the least number of 32 bits, which has no opposite."""
    ready = message(b"Z", b"I")
    column = b"c\0" + struct.pack("!ihihih", 0, 0, 1266, 12, -1, 1)
    described = message(b"t", struct.pack("!h", 0)) + message(b"T", struct.pack("!h", 1) + column)
    row = struct.pack("!hiqi", 1, 12, 0, -(2**31))
    responses = [
        message(b"R", struct.pack("!i", 0)) + ready,
        message(b"1", b"") + described + ready,
        message(b"2", b"") + message(b"D", row) + message(b"C", b"SELECT 1\0") + ready,
    ]

    async def serve(reader, writer) -> None:
        for response in responses:
            assert await reader.read(4096)
            writer.write(response)
        await reader.read()
        writer.close()
        await writer.wait_closed()
        is_over.set()

    is_over = asyncio.Event()

    async def main() -> None:
        listener = await asyncio.start_unix_server(serve, tmp_path / ".s.PGSQL.5432")
        async with listener, pg.Pool(f"host={tmp_path} user=u", size=1) as pool:
            with pytest.raises((ValueError, OverflowError)):
                await pool.fetch_value("SELECT zone")
        await is_over.wait()

    asyncio.run(main())


def test_close_waits_for_open_transactions(server: Server) -> None:
    """databases M4: a transaction between two statements is under way as well."""

    async def main() -> None:
        pool = pg.Pool(server.dsn, size=1)
        await pool.open()
        await pool.core.script("DROP TABLE IF EXISTS kept; CREATE TABLE kept (n int)", None)
        begun, go_on = asyncio.Event(), asyncio.Event()

        async def work() -> None:
            async with pool.transaction() as tx:
                await tx.execute("INSERT INTO kept VALUES (1)")
                begun.set()
                await go_on.wait()
                await tx.execute("INSERT INTO kept VALUES (2)")

        task = asyncio.ensure_future(work())
        await begun.wait()
        closing = asyncio.ensure_future(pool.close(wait_s=60))
        await asyncio.sleep(0.05)  # `close` has begun
        go_on.set()
        await asyncio.gather(task, closing)
        async with pg.Pool(server.dsn, size=1) as other:
            assert await other.fetch("SELECT n FROM kept ORDER BY n") == [(1,), (2,)]

    asyncio.run(main())


def test_a_statement_of_a_transaction_on_a_terminated_session(server: Server) -> None:
    """databases M2: one that was not sent yet raises SessionLost, with what the server has said."""

    async def main() -> None:
        async with pg.Pool(server.dsn, size=1) as pool, pg.Pool(server.dsn, size=1) as other:
            outcomes: list[BaseException] = []
            with contextlib.suppress(pg.PostgresError):
                async with pool.transaction() as tx:
                    process = await tx.fetch_value("SELECT pg_backend_pid()")
                    await other.fetch_value("SELECT pg_terminate_backend($1)", process)
                    for number in range(3):
                        # A new text is prepared first: the statement itself is not sent.
                        try:
                            await tx.fetch_value(f"SELECT {number} + 1")
                        except pg.PostgresError as error:
                            outcomes.append(error)
            assert outcomes
            assert all(isinstance(error, pg.SessionLost) for error in outcomes), outcomes

    asyncio.run(main())


@pooled(size=4)
async def test_statements_that_were_sent_together_are_all_cancelled(pool) -> None:
    """One cancel request ends one of them, and the next one ran to its end."""
    for number in range(60):
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout((1 + number % 12) / 1000):
                await pool.fetch(f"SELECT pg_sleep(90) /* {number} */")
    running = (
        "SELECT count(*) FROM pg_stat_activity WHERE state = 'active' AND query LIKE '%sleep(90)%'"
    )
    async with asyncio.timeout(30):
        while await pool.fetch_value(f"{running} AND pid <> pg_backend_pid()"):
            await asyncio.sleep(0.05)
