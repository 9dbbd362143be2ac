"""A database that is killed, restarted, stalls, refuses or is none: clear errors, and a pool that goes on."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import time
from pathlib import Path

import pytest
from citius import pg


def test_killed_and_restarted(own_server) -> None:
    async def main() -> None:
        async with pg.Pool(own_server.dsn, size=3, wait_s=20) as pool:
            await pg.gather(*(pool.fetch_value("SELECT 1") for _ in range(9)))
            while pool.sessions < 3:
                await asyncio.sleep(0.01)  # a look at a condition
            slow = [asyncio.create_task(pool.fetch("SELECT pg_sleep(60)")) for _ in range(3)]
            in_transaction = asyncio.create_task(transact(pool))
            await asyncio.sleep(0.3)  # they are under way by then
            await asyncio.to_thread(own_server.stop, signal.SIGQUIT)
            results = await asyncio.wait_for(
                asyncio.gather(*slow, in_transaction, return_exceptions=True), 10
            )
            assert {type(result) for result in results} == {pg.StatementLost}
            assert "may have been executed" in str(results[0])
            # What is asked for now waits for the server.
            waiting = asyncio.create_task(pool.fetch_value("SELECT 7"))
            await asyncio.to_thread(own_server.start)
            since = time.monotonic()
            assert await asyncio.wait_for(waiting, 10) == 7
            # A session is connected again at most half a second after the server is back.
            assert time.monotonic() - since < 5
            assert await pool.fetch_value("SELECT 8") == 8

    async def transact(pool) -> None:
        async with pool.transaction() as tx:
            await tx.fetch("SELECT pg_sleep(60)")

    asyncio.run(main())


def test_one_session_is_terminated(server) -> None:
    async def main() -> None:
        async with pg.Pool(server.dsn, size=2) as pool:
            while pool.sessions < 2:
                await asyncio.sleep(0.01)  # a look at a condition
            slow = asyncio.create_task(pool.fetch("SELECT pg_sleep(60)"))
            await asyncio.sleep(0.2)  # it is under way by then
            await pool.fetch(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE query LIKE '%pg_sleep(60)%' "
                "AND pid <> pg_backend_pid()"
            )
            with pytest.raises(pg.StatementLost, match="terminating connection"):
                await slow
            until = time.monotonic() + 10
            while pool.sessions < 2:
                assert time.monotonic() < until
                await asyncio.sleep(0.01)  # a look at a condition

    asyncio.run(main())


STALLS = [0.5, pytest.param(30.0, marks=[pytest.mark.slow, pytest.mark.timeout(90)])]


@pytest.mark.parametrize("stall_s", STALLS)
def test_a_stalled_server(own_server, stall_s: float) -> None:
    """It takes statements and does nothing: deadlines hold, and afterwards all is well within a second."""

    async def main() -> None:
        async with pg.Pool(own_server.dsn, size=2, wait_s=60) as pool:
            sql = "SELECT pid FROM pg_stat_activity WHERE backend_type = 'client backend'"
            while len(rows := await pool.fetch(sql)) < 2:
                await asyncio.sleep(0.01)  # a look at a condition
            processes = [own_server.process.pid, *(pid for (pid,) in rows)]
            for process in processes:
                os.kill(process, signal.SIGSTOP)
            try:
                until = time.monotonic() + stall_s
                patient = asyncio.create_task(pool.fetch_value("SELECT 3"))
                while time.monotonic() < until:
                    with pytest.raises(TimeoutError):
                        async with asyncio.timeout(0.2):
                            await pool.fetch_value("SELECT 1")
            finally:
                for process in processes:
                    os.kill(process, signal.SIGCONT)
            since = time.monotonic()
            assert await asyncio.wait_for(pool.fetch_value("SELECT 2"), 10) == 2
            assert await asyncio.wait_for(patient, 10) == 3
            assert time.monotonic() - since < 5

    asyncio.run(main())


@pytest.mark.parametrize("method", ["md5", "scram-sha-256", "password"])
def test_passwords(own_server, method: str) -> None:
    async def main() -> None:
        async with pg.Pool(own_server.dsn, size=1) as pool:
            stored = "md5" if method == "md5" else "scram-sha-256"
            async with pool.transaction() as tx:
                await tx.execute(f"SET password_encryption = '{stored}'")
                await tx.execute("CREATE ROLE guarded LOGIN PASSWORD 'p:\u00e4 ss'")
        own_server.trust(f"local all guarded {method}")
        base = f"{own_server.dsn} user=guarded"
        until = time.monotonic() + 10
        while True:  # until the server has read its file again
            try:
                async with pg.Pool(f"{base} password=wrong", size=1):
                    assert time.monotonic() < until
            except pg.InvalidPassword:
                break
        with pytest.raises(pg.PostgresError, match="asks for a password"):
            await pg.Pool(base, size=1).open()
        async with pg.Pool(f"{base} password='p:\u00e4 ss'", size=1) as pool:
            assert await pool.fetch_value("SELECT current_user::text") == "guarded"

    asyncio.run(main())


def test_no_database_of_that_name_and_no_server() -> None:
    async def main() -> None:
        with pytest.raises(pg.SessionLost, match="No such file"):
            await pg.Pool("host=/nonexistent user=u").open()
        with pytest.raises(ConnectionError, match="Connect call failed|refused"):
            await pg.Pool("host=127.0.0.1 port=1 user=u").open()

    asyncio.run(main())


def test_unknown_database(server) -> None:
    async def main() -> None:
        with pytest.raises(pg.ServerError, match="does not exist") as caught:
            await pg.Pool(f"{server.dsn} dbname=nothing").open()
        assert caught.value.sqlstate == "3D000"

    asyncio.run(main())


GARBAGE = {
    "http": b"HTTP/1.1 400 Bad Request\r\n\r\n",
    "nothing": b"",
    "length 0": b"R\0\0\0\0",
    "length 3": b"R\0\0\0\x03",
    "too long": b"D\xff\xff\xff\xff",
    "rows unasked": b"R\0\0\0\x08\0\0\0\0D\0\0\0\x06\0\0",
    "ready before authentication": b"Z\0\0\0\x05I",
    "kerberos": b"R\0\0\0\x08\0\0\0\x02",
    "sasl unknown": b"R\0\0\0\x11\0\0\0\x0aUNKNOWN\0\0",
    "sasl out of order": b"R\0\0\0\x0c\0\0\0\x0bx=yz",
    "half an error": b"E\0\0\0\x08SERR",
}


@pytest.mark.parametrize("garbage", GARBAGE.values(), ids=GARBAGE.keys())
def test_what_answers_is_no_postgresql(tmp_path: Path, garbage: bytes) -> None:
    async def main() -> None:
        async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await reader.read(4096)
            writer.write(garbage)
            await writer.drain()
            writer.close()

        path = tmp_path / ".s.PGSQL.5432"
        async with await asyncio.start_unix_server(answer, path):
            with pytest.raises((pg.ProtocolError, pg.SessionLost)):
                await asyncio.wait_for(pg.Pool(f"host={tmp_path} user=u password=p").open(), 10)

    asyncio.run(main())


def message(tag: bytes, body: bytes) -> bytes:
    return tag + (len(body) + 4).to_bytes(4, "big") + body


READY = message(b"Z", b"I")
COLUMN = message(
    b"T", b"\0\x01a\0" + b"\0" * 6 + (25).to_bytes(4, "big") + b"\xff\xff" + b"\xff" * 4 + b"\0\0"
)


def test_a_row_of_a_gigabyte(tmp_path: Path) -> None:
    """It is refused by its length, before it comes; the pool connects again."""
    ended: list[asyncio.Task[object] | None] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        ended.append(asyncio.current_task())
        is_first = len(ended) == 1
        huge = b"D" + (2**30).to_bytes(4, "big")
        small = message(b"D", b"\0\x01\0\0\0\x01x") + message(b"C", b"SELECT 1\0") + READY
        described = message(b"1", b"") + message(b"t", b"\0\0") + COLUMN + READY
        opened = message(b"R", b"\0\0\0\0") + message(b"K", b"\0" * 8) + READY
        for reply in (opened, described, message(b"2", b"") + (huge if is_first else small)):
            await reader.read(4096)
            writer.write(reply)
        await reader.read(4096)
        writer.close()
        await writer.wait_closed()

    async def main() -> None:
        async with await asyncio.start_unix_server(serve, tmp_path / ".s.PGSQL.5432"):
            async with pg.Pool(f"host={tmp_path} user=u", size=1) as pool:
                with pytest.raises(pg.StatementLost, match="longer than 256 MiB"):
                    await asyncio.wait_for(pool.fetch("SELECT huge"), 10)
                assert await asyncio.wait_for(pool.fetch_value("SELECT small"), 10) == "x"
            await asyncio.wait([task for task in ended if task is not None], timeout=10)
        assert len(ended) == 2

    asyncio.run(main())


@pytest.mark.slow
def test_a_row_of_half_a_gigabyte_from_a_real_server(own_server) -> None:
    async def main() -> None:
        async with pg.Pool(own_server.dsn, size=1) as pool:
            with pytest.raises(pg.StatementLost, match="longer than 256 MiB"):
                await asyncio.wait_for(pool.fetch("SELECT repeat('x', 500000000)"), 100)
            assert await asyncio.wait_for(pool.fetch_value("SELECT 1"), 10) == 1

    asyncio.run(main())


def test_a_server_that_never_responds(tmp_path: Path) -> None:
    async def main() -> None:
        with socket.socket(socket.AF_UNIX) as listener:
            listener.bind(str(tmp_path / ".s.PGSQL.5432"))
            listener.listen()
            with pytest.raises(pg.SessionLost, match="no response within 0.2 s"):
                await pg.Pool(f"host={tmp_path} user=u connect_timeout=0.2").open()

    asyncio.run(main())


def test_as_many_sessions_as_the_server_has(own_server) -> None:
    """At the server's limit the pool works with what it has, and goes on trying."""

    async def main() -> None:
        async with pg.Pool(own_server.dsn, size=60) as pool:
            results = await pg.gather(*(pool.fetch_value("SELECT $1::int", n) for n in range(200)))
            assert results == [*range(200)]
            assert pool.sessions <= 40

    asyncio.run(main())
