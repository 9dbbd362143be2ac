"""Storms: callers that leave at any moment, sessions that are ended, connections that are cut, forks.

Each result is its caller's own, nothing is lost, and the pool is whole and clean afterwards: the storms of
the trials (databases, rows 1 to 8; hostile, "what held") at a length that `make test-nightly` has time for.
"""

from __future__ import annotations

import asyncio
import contextlib
import random
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from typing import Any

import pytest
import rig
from citius import pg
from pg_rig import Server
from rig import application

ROUNDS, CALLERS, SIZE = 100, 40, 4
APP = application("storm_database_app")
KINDS = 10
CLIENTS, REQUESTS = 16, 500
# Of the fork storm: a child costs some milliseconds of both processors.
FORKS = 60


@rig.storm
@pytest.mark.parametrize("cut", ["nothing", "sessions", "connections"])
def test_callers_that_leave_at_any_moment(server: Server, cut: str) -> None:
    rng = random.Random(11)
    wrong: list[object] = []

    async def ask(pool: pg.Pool, number: int) -> None:
        found = await ACTS[number % KINDS](pool, number)
        if found != number:
            wrong.append((number % KINDS, number, found))

    async def main() -> None:
        async with (
            pg.Pool(server.dsn, size=1) as admin,
            proxy(server) as (dsn, cut_all),
            pg.Pool(f"{dsn} application_name=storm", size=SIZE, wait_s=5) as pool,
        ):
            await admin.execute("DROP TABLE IF EXISTS account, line")
            await admin.execute(
                "CREATE TABLE account AS SELECT g AS id, 0 AS balance FROM generate_series(1, 2) g"
            )
            await admin.execute("CREATE TABLE line (number int)")
            for _ in rig.rounds(ROUNDS):
                tasks = [
                    asyncio.create_task(
                        asyncio.wait_for(ask(pool, rng.randrange(10**6)), rng.random() / 10)
                    )
                    for _ in range(CALLERS)
                ]
                await asyncio.sleep(rng.random() / 100)  # they get on for a while
                for task in rng.sample(tasks, CALLERS // 3):
                    task.cancel()
                if cut == "sessions" and rng.random() < 0.3:
                    await admin.fetch(
                        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
                        "WHERE application_name = 'storm'"
                    )
                if cut == "connections" and rng.random() < 0.3:
                    cut_all()
                results = await asyncio.gather(*tasks, return_exceptions=True)
                allowed = (TimeoutError, asyncio.CancelledError, pg.PostgresError)
                assert all(one is None or isinstance(one, allowed) for one in results), results
                assert await admin.fetch_value("SELECT sum(balance) FROM account") == 0
                await check_clean(pool, admin)
            assert pool.queued == 0
            for number in range(KINDS):
                await ask(pool, number)

    asyncio.run(main())
    assert wrong == []


@rig.storm
@pytest.mark.parametrize("forks", [False, True], ids=["cut", "forks"])
def test_no_response_is_that_of_another_request(serve, server: Server, forks: bool) -> None:
    """Thousands of requests of clients that leave and come again, beside sessions that end and children."""
    environment = {"DSN": f"{server.dsn} application_name=served", "PYTHONWARNINGS": "ignore"}
    serving = serve(APP, env=environment)
    counts = Counts()

    async def main() -> None:
        stop = asyncio.Event()
        async with pg.Pool(server.dsn, size=1) as admin:
            beside = asyncio.create_task(
                fork(serving.port, counts, stop) if forks else end_sessions(admin, stop)
            )
            clients = (client(serving.port, seed, counts) for seed in range(CLIENTS))
            await asyncio.gather(*clients)
            stop.set()
            await beside
            # It serves on, and nothing is left of what was cut off. A session that was told to end may
            # end with the next statement.
            async with asyncio.timeout(rig.TIMEOUT_S):
                while (said := await get(serving.port, "/value/5")) != b"5":
                    assert b'"status":500' in said
                while await admin.fetch_value(
                    "SELECT count(*) FROM pg_stat_activity "
                    "WHERE application_name = 'served' AND state <> 'idle'"
                ):
                    await asyncio.sleep(0.02)

    asyncio.run(main())
    assert counts.wrong == []
    assert counts.right > counts.failed, counts
    assert serving.stop() == 0


# --- what callers do ---


async def value(pool: pg.Pool, number: int) -> Any:
    return await pool.fetch_value("SELECT $1::int", number)


async def transfer(pool: pg.Pool, number: int) -> Any:
    async with pool.transaction() as tx:
        await tx.execute("UPDATE account SET balance = balance - 1 WHERE id = 1")
        with contextlib.suppress(pg.UniqueViolation, ZeroDivisionError):
            async with tx.transaction() as inner:
                await inner.execute("UPDATE account SET balance = balance + 7 WHERE id = 2")
                raise ZeroDivisionError
        await tx.execute("UPDATE account SET balance = balance + 1 WHERE id = 2")
        return await tx.fetch_value("SELECT $1::int", number)


async def rows(pool: pg.Pool, number: int) -> Any:
    async with pool.cursor(
        "SELECT $1::int FROM generate_series(1, 30)", number, rows_max=4
    ) as found:
        numbers = [one async for (one,) in found]
    return numbers[0] if numbers == [number] * 30 else numbers


async def copied_out(pool: pg.Pool, number: int) -> Any:
    async with pool.copy_out(
        f"COPY (SELECT {number} FROM generate_series(1, 50)) TO STDOUT"
    ) as data:
        found = b"".join([chunk async for chunk in data])
    return number if found == b"%d\n" % number * 50 else found


async def copied_in(pool: pg.Pool, number: int) -> Any:
    async with pool.transaction() as tx:
        assert await tx.copy_in("COPY line FROM STDIN", ((number,) for _ in range(20))) == 20
        found = await tx.fetch_value("SELECT max(number) FROM line WHERE number = $1", number)
        await tx.execute("DELETE FROM line WHERE number = $1", number)
        return found


async def gathered(pool: pg.Pool, number: int) -> Any:
    numbers = [number + at for at in range(5)]
    found = await pg.gather(*(pool.fetch_value("SELECT $1::int", one) for one in numbers))
    return number if found == numbers else found


async def changed(pool: pg.Pool, number: int) -> Any:
    async with pool.transaction() as tx:
        await tx.execute("SELECT set_config('app.owner', $1, false)", str(number))
        await tx.execute(f"CREATE TEMP TABLE own AS SELECT {number} AS number")
        await tx.execute("SELECT pg_advisory_lock($1)", number)
        return await tx.fetch_value(
            "SELECT number FROM own WHERE number = current_setting('app.owner')::int"
        )


async def many(pool: pg.Pool, number: int) -> Any:
    found = await pool.fetch_many("SELECT $1::int", [(number,)] * 5)
    return number if found == [(number,)] * 5 else found


async def serial(pool: pg.Pool, number: int) -> Any:
    def in_thread() -> Any:
        with pool.sync.transaction() as tx:
            return tx.fetch_value("SELECT $1::int", number)

    return await asyncio.to_thread(in_thread)


async def code(pool: pg.Pool, number: int) -> Any:
    await pool.execute(f"DO $$BEGIN PERFORM set_config('app.owner', '{number}', false); END$$")
    return number


ACTS = [value, transfer, rows, copied_out, copied_in, gathered, changed, many, serial, code]


async def check_clean(pool: pg.Pool, admin: pg.Pool) -> None:
    """All sessions are there, and as they were when they were connected."""
    async with asyncio.timeout(rig.TIMEOUT_S):
        while pool.sessions < SIZE or pool.queued:
            await asyncio.sleep(0.01)
        all_there = asyncio.Barrier(SIZE)

        async def look() -> None:
            async with pool.transaction() as tx:
                await all_there.wait()
                owner = await tx.fetch_value(
                    "SELECT nullif(current_setting('app.owner', true), '')"
                )
                kept = await tx.fetch_value(
                    "SELECT count(*) FROM pg_class WHERE relpersistence = 't' AND pg_table_is_visible(oid)"
                )
                assert (owner, kept) == (None, 0)

        await asyncio.gather(*(look() for _ in range(SIZE)))
        while await admin.fetch_value("SELECT count(*) FROM pg_locks WHERE locktype = 'advisory'"):
            await asyncio.sleep(0.01)


# --- what is done to connections ---


@contextlib.asynccontextmanager
async def proxy(server: Server) -> AsyncIterator[tuple[str, Any]]:
    """A proxy before the server: its DSN, and a function that resets all connections."""
    writers: set[asyncio.StreamWriter] = set()
    path = server.directory / f".s.PGSQL.{server.port}"

    async def pipe(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError):
            while data := await reader.read(65536):
                writer.write(data)
                await writer.drain()
        writer.close()

    async def carry(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        up_reader, up_writer = await asyncio.open_unix_connection(str(path))
        both = {writer, up_writer}
        writers.update(both)
        await asyncio.gather(pipe(reader, up_writer), pipe(up_reader, writer))
        writers.difference_update(both)

    listener = await asyncio.start_server(carry, "127.0.0.1", 0)
    port = listener.sockets[0].getsockname()[1]

    def cut_all() -> None:
        for writer in list(writers):
            writer.transport.abort()

    async with listener:
        yield (
            f"host=127.0.0.1 port={port} user={server.user} dbname=postgres sslmode=disable",
            cut_all,
        )
        cut_all()


async def end_sessions(admin: pg.Pool, stop: asyncio.Event) -> None:
    while not stop.is_set():
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(stop.wait(), 0.3)
        await admin.fetch(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'served'"
        )


async def fork(port: int, counts: Counts, stop: asyncio.Event) -> None:
    for number in range(1, FORKS + 1):
        if (body := await get(port, f"/fork/{number}")) != b"%d" % number:
            counts.wrong.append(("fork", number, body))
        if stop.is_set() and number > FORKS // 4:
            return


# --- clients ---


@dataclass
class Counts:
    right: int = 0
    failed: int = 0
    wrong: list[object] = field(default_factory=list)


async def client(port: int, seed: int, counts: Counts) -> None:
    """Requests one after the other, some of which it does not wait for."""
    rng = random.Random(seed)
    kinds = ("value", "value", "slow", "block", "left", "rows", "serial")
    sent, connection = 0, None
    for _ in rig.rounds(REQUESTS):
        if connection is None:
            connection = await asyncio.open_connection("127.0.0.1", port)
        reader, writer = connection
        sent += 1
        number, kind = seed * 1_000_000 + sent, rng.choice(kinds)
        writer.write(b"GET /%s/%d HTTP/1.1\r\nhost: x\r\n\r\n" % (kind.encode(), number))
        if rng.random() < 0.15:
            await asyncio.sleep(rng.random() / 100)  # it leaves at any moment
            writer.transport.abort()
            connection = None
            continue
        status, body = await response(reader)
        if status != 200:
            counts.failed += 1
        elif body == b"%d" % number:
            counts.right += 1
        else:
            counts.wrong.append((kind, number, body))
    if connection is not None:
        connection[1].close()


async def get(port: int, path: str) -> bytes:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(b"GET %s HTTP/1.1\r\nhost: x\r\n\r\n" % path.encode())
    _, body = await response(reader)
    writer.close()
    return body


async def response(reader: asyncio.StreamReader) -> tuple[int, bytes]:
    async with asyncio.timeout(60):
        head = await reader.readuntil(b"\r\n\r\n")
        lines = head.decode().lower().split("\r\n")
        length = next(int(line[15:]) for line in lines if line.startswith("content-length:"))
        return int(lines[0].split()[1]), await reader.readexactly(length)
