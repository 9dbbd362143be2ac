"""Sessions that do not respond any more, without an end (issue 32 C5): they are found and replaced."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import time
from collections.abc import AsyncIterator
from typing import Any

import psycopg
import pytest
from citius import pg
from pg_rig import Server
from sqlalchemy import text
from sqlalchemy.exc import OperationalError
from sqlalchemy.ext.asyncio import create_async_engine

LIMIT_S = 60


@pytest.fixture(autouse=True)
def soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("citius.pg.heartbeat.IDLE_S", 0.2)
    monkeypatch.setattr("citius.pg.heartbeat.DEAD_S", 0.2)
    monkeypatch.setattr("citius.pg.heartbeat._BOTH_S", 0.05)


class Proxy:
    """Takes everything, and passes nothing on from connections that it swallows."""

    def __init__(self, server: Server) -> None:
        self._path = str(server.directory / f".s.PGSQL.{server.port}")
        self._user = server.user
        self._swallowed: set[int] = set()
        self._count = 0
        self.swallows_all = False
        self.deaf_to: set[int] = set()
        """Connections of which nothing comes back."""

    async def __aenter__(self) -> Proxy:
        self._tasks: set[asyncio.Task[None]] = set()
        self._listener = await asyncio.start_server(self._carry, "127.0.0.1", 0)
        self._port = self._listener.sockets[0].getsockname()[1]
        return self

    async def __aexit__(self, *_: object) -> None:
        self._listener.close()
        for task in self._tasks:
            task.cancel()
        if self._tasks:
            await asyncio.wait(self._tasks)

    @property
    def dsn(self) -> str:
        return (
            f"host=127.0.0.1 port={self._port} user={self._user} dbname=postgres sslmode=disable "
            "connect_timeout=1"
        )

    def swallow(self) -> None:
        """Pass nothing on of the connections that are open; the server notices their end."""
        self._swallowed = set(range(self._count + 1))

    async def _carry(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._count += 1
        number = self._count
        up_reader, up_writer = await asyncio.open_unix_connection(self._path)

        async def pipe(source: asyncio.StreamReader, sink: asyncio.StreamWriter) -> None:
            with contextlib.suppress(OSError):
                while data := await source.read(65536):
                    is_deaf = sink is writer and number in self.deaf_to
                    if not (number in self._swallowed or self.swallows_all or is_deaf):
                        sink.write(data)

        tasks = [
            asyncio.ensure_future(pipe(reader, up_writer)),
            asyncio.ensure_future(pipe(up_reader, writer)),
        ]
        self._tasks.update(tasks)
        while not all(task.done() for task in tasks):
            await asyncio.wait(tasks, timeout=0.05, return_when=asyncio.FIRST_COMPLETED)
            if number in self._swallowed:
                up_writer.close()  # the server's side of the connection is gone
            elif any(task.done() for task in tasks):
                break
        for one in (writer, up_writer):
            one.close()


def run(main: Any) -> None:
    asyncio.run(asyncio.wait_for(main, LIMIT_S))


def test_idle_sessions_that_are_dead_are_replaced(server: Server) -> None:
    async def main() -> None:
        async with Proxy(server) as proxy, pg.Pool(proxy.dsn, size=2) as pool:
            while pool.sessions < 2:
                await asyncio.sleep(0.01)
            before = set(pool.open_sessions)
            proxy.swallow()
            while before & set(pool.open_sessions) or pool.sessions < 2:
                await asyncio.sleep(0.01)
            assert await pool.fetch_value("SELECT 1") == 1

    run(main())


def test_a_statement_without_a_deadline_fails_when_its_session_is_gone(server: Server) -> None:
    async def main() -> None:
        async with Proxy(server) as proxy, pg.Pool(proxy.dsn, size=1) as pool:
            waiting = asyncio.ensure_future(pool.fetch("SELECT pg_sleep(100)"))
            await until_active(server)
            proxy.swallow()
            async with pg.Pool(server.dsn, size=1) as admin:
                await admin.fetch(
                    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE query ~ 'sleep.100'"
                    " AND pid <> pg_backend_pid()"
                )
            with pytest.raises(pg.StatementLost, match="the server does not have the session"):
                await waiting
            assert await pool.fetch_value("SELECT 1") == 1

    run(main())


def test_a_result_that_was_swallowed_is_not_waited_for(server: Server) -> None:
    """The server has executed the statement and waits for the next one."""

    async def main() -> None:
        async with Proxy(server) as proxy, pg.Pool(proxy.dsn, size=1) as pool:
            assert await pool.fetch_value("SELECT 1") == 1
            proxy.deaf_to = {1}
            waiting = asyncio.ensure_future(pool.fetch_value("SELECT 1"))
            with pytest.raises(pg.StatementLost, match="has nothing to do for it"):
                await waiting
            assert await pool.fetch_value("SELECT 3") == 3

    run(main())


def test_a_statement_that_takes_long_is_left_alone(server: Server) -> None:
    async def main() -> None:
        async with pg.Pool(server.dsn, size=1) as pool:
            assert await pool.fetch_value("SELECT 'slept' FROM pg_sleep(2)") == "slept"

    run(main())


def test_a_server_without_a_connection_left_responds(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A long statement was cut off where the server refused the connection that asks for it."""
    monkeypatch.setattr("citius.pg.heartbeat.SILENT_MAX_S", 0.5)

    async def main() -> None:
        async with pg.Pool(server.dsn, size=1) as admin:
            await admin.execute("DROP ROLE IF EXISTS alone")
            await admin.execute("CREATE ROLE alone LOGIN CONNECTION LIMIT 1")
        dsn = f"host={server.directory} port={server.port} dbname=postgres user=alone"
        async with pg.Pool(dsn, size=1) as pool:
            assert await pool.fetch_value("SELECT 'slept' FROM pg_sleep(3)") == "slept"

    run(main())


def test_a_server_that_stands_still_keeps_its_sessions(
    own_server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    server = own_server

    async def main() -> None:
        async with Proxy(server) as proxy, pg.Pool(proxy.dsn, size=1, wait_s=5) as pool:
            before = pool.open_sessions
            proxy.swallows_all = True
            await asyncio.sleep(3)  # longer than one probe takes
            assert pool.open_sessions == before
            # Not for ever: what waits on it would wait as long.
            monkeypatch.setattr("citius.pg.heartbeat.SILENT_MAX_S", 1.0)
            with pytest.raises((pg.StatementLost, pg.PoolExhausted)):
                await pool.fetch("SELECT 1")
            proxy.swallows_all = False
            while not pool.sessions:
                await asyncio.sleep(0.01)
            assert await pool.fetch_value("SELECT 1") == 1

    run(main())


def test_a_process_that_takes_no_cancel_request_is_given_up(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One process of the server stands still; the server itself responds."""
    monkeypatch.setattr("citius.pg.cancelling.GIVE_UP_S", 0.5)
    monkeypatch.setattr("citius.pg.heartbeat.IDLE_S", 100.0)

    async def main() -> None:
        async with pg.Pool(server.dsn, size=1) as pool:
            process = await pool.fetch_value("SELECT pg_backend_pid()")
            os.kill(process, signal.SIGSTOP)
            try:
                with pytest.raises(TimeoutError):
                    async with asyncio.timeout(0.05):
                        await pool.fetch_value("SELECT pg_backend_pid()")
                # What was sent behind it is lost with it; what comes later is not.
                found = None
                while found is None:
                    with contextlib.suppress(pg.StatementLost):
                        found = await ask(pool)
                assert found != process
            finally:
                os.kill(process, signal.SIGCONT)

    run(main())


def stop_when(server: Server, event: str) -> int:
    """Stop the process of a COPY that waits for its client; its number."""
    with psycopg.connect(server.dsn, autocommit=True) as admin:

        def waiting() -> int | None:
            found = admin.execute(
                "SELECT pid FROM pg_stat_activity WHERE query LIKE 'COPY%%' AND wait_event = %s",
                [event],
            ).fetchone()
            return None if found is None else found[0]

        while True:
            if (process := waiting()) is not None:
                os.kill(process, signal.SIGSTOP)
                if waiting() == process:
                    return process
                # It did not wait any more when it was stopped: PostgreSQL would report it as active for ever.
                os.kill(process, signal.SIGCONT)


def end(process: int) -> None:
    """Let a stopped process find that its client has gone; the next test would stop it again."""
    os.kill(process, signal.SIGCONT)
    deadline = time.monotonic() + LIMIT_S
    while is_running(process):
        assert time.monotonic() < deadline, "it goes on without a client"
        time.sleep(0.01)  # a look at the process


def is_running(process: int) -> bool:
    """Whether it exists."""
    with contextlib.suppress(ProcessLookupError):
        os.kill(process, 0)
        return True
    return False


@pytest.mark.parametrize("ends", ["while it is sent", "at its end"])
def test_a_copy_that_is_not_read_ends(server: Server, ends: str) -> None:
    """Issue 32 C5: the server says that the session is at work, and waits for what was sent."""
    stopped: list[int] = []

    async def source() -> AsyncIterator[bytes]:
        yield b"1\n" * 100_000
        stopped.append(await asyncio.to_thread(stop_when, server, "ClientRead"))
        while ends == "while it is sent":
            yield b"1\n" * 100_000

    async def main() -> None:
        async with pg.Pool(server.dsn, size=1) as pool:
            await pool.execute("CREATE TABLE IF NOT EXISTS copied (id int)")
            with pytest.raises(pg.StatementLost, match="waits for this side"):
                await pool.copy_in("COPY copied FROM STDIN", source())
            assert await pool.fetch_value("SELECT count(*) FROM copied") == 0

    try:
        run(main())
    finally:
        for process in stopped:
            end(process)


def test_a_copy_that_sends_no_more_ends(server: Server) -> None:
    """Issue 32 C5: the server says that the session is at work, and waits for that this side reads."""
    stopped: list[int] = []

    async def main() -> None:
        async with pg.Pool(server.dsn, size=1) as pool:
            with pytest.raises(pg.StatementLost, match="waits for this side"):
                async with pool.copy_out(
                    "COPY (SELECT repeat('x', 1000) FROM generate_series(1, 100000)) TO STDOUT"
                ) as chunks:
                    stopped.append(await asyncio.to_thread(stop_when, server, "ClientWrite"))
                    async for _ in chunks:
                        pass
            assert await pool.fetch_value("SELECT 1") == 1

    try:
        run(main())
    finally:
        for process in stopped:
            end(process)


def test_a_copy_whose_own_side_is_slow_is_left_alone(server: Server) -> None:
    async def source() -> AsyncIterator[bytes]:
        yield b"1\n"
        await asyncio.sleep(2)  # longer than a session may be silent
        yield b"2\n"

    async def main() -> None:
        async with pg.Pool(server.dsn, size=1) as pool:
            await pool.execute("CREATE TABLE IF NOT EXISTS copied (id int)")
            assert await pool.copy_in("COPY copied FROM STDIN", source()) == 2
            text = "COPY (SELECT repeat('x', 1000) FROM generate_series(1, 20000)) TO STDOUT"
            async with pool.copy_out(text) as chunks:
                await asyncio.sleep(2)  # longer than a session may be silent
                assert sum([len(chunk) async for chunk in chunks]) == 20_000 * 1001

    run(main())


def test_a_ping_of_sqlalchemy_has_a_deadline(server: Server) -> None:
    async def main() -> None:
        async with Proxy(server) as proxy:
            host, port = "127.0.0.1", proxy._port
            engine = create_async_engine(
                f"postgresql+citius://{server.user}@{host}:{port}/postgres?sslmode=disable&connect_timeout=1",
                pool_size=1,
                max_overflow=0,
                pool_pre_ping=True,
            )
            async with engine.connect() as connection:
                await connection.execute(text("SELECT 1"))
            proxy.swallow()
            async with asyncio.timeout(10), engine.connect() as connection:
                assert await connection.scalar(text("SELECT 1")) == 1
            proxy.swallows_all = True
            with pytest.raises(OperationalError):
                async with asyncio.timeout(20), engine.connect() as connection:
                    await connection.scalar(text("SELECT 1"))
            await engine.dispose()

    run(main())


def of_two(proxy: Proxy, server: Server, wanted: str) -> str:
    return (
        f"host=127.0.0.1,{server.directory} port={proxy._port},{server.port} user={server.user} "
        f"dbname=postgres sslmode=disable connect_timeout=1 target_session_attrs={wanted}"
    )


def test_a_silent_server_is_left_when_another_one_has_its_place(server: Server) -> None:
    """A primary that hangs kept its sessions for a minute while its standby had been promoted."""

    async def main() -> None:
        async with (
            Proxy(server) as proxy,
            pg.Pool(of_two(proxy, server, "read-write"), size=2) as pool,
        ):
            assert await pool.fetch_value("SELECT 1") == 1
            proxy.swallows_all = True
            async with asyncio.timeout(30):
                with pytest.raises(pg.StatementLost, match="another server has its place"):
                    await pool.fetch("SELECT 1")
                assert await pool.fetch_value("SELECT 2") == 2

    run(main())


def test_a_silent_server_is_not_left_for_any_other(server: Server) -> None:
    """It may be a standby, which takes no changes."""

    async def main() -> None:
        async with Proxy(server) as proxy, pg.Pool(of_two(proxy, server, "any"), size=1) as pool:
            before = pool.open_sessions
            assert await pool.fetch_value("SELECT 1") == 1
            proxy.swallows_all = True
            await asyncio.sleep(3)  # longer than it takes to find another one
            assert pool.open_sessions == before

    run(main())


@pytest.mark.parametrize("hosts", [1, 2])
def test_a_statement_of_sqlalchemy_fails_when_its_session_is_gone(
    server: Server, hosts: int
) -> None:
    """It waited for ever: nothing looked at sessions of engines."""

    async def main() -> None:
        async with Proxy(server) as proxy:
            host, port = "127.0.0.1", str(proxy._port)
            if hosts == 2:
                host, port = f"{host},{server.directory}", f"{port},{server.port}"
            engine = create_async_engine(
                f"postgresql+citius://{server.user}@/postgres?host={host}&port={port}"
                "&sslmode=disable&connect_timeout=1&target_session_attrs=read-write",
                pool_size=1,
                max_overflow=0,
            )
            async with engine.connect() as connection:
                assert await connection.scalar(text("SELECT 'slept' FROM pg_sleep(2)")) == "slept"
            async with asyncio.timeout(30):
                async with engine.connect() as connection:
                    await connection.scalar(text("SELECT 1"))
                    if hosts == 2:
                        proxy.swallows_all = True
                    else:
                        proxy.deaf_to = {1}
                    with pytest.raises(OperationalError) as caught:
                        await connection.scalar(text("SELECT 1"))
                    assert caught.value.connection_invalidated
                async with engine.connect() as connection:
                    assert await connection.scalar(text("SELECT 2")) == 2
            await engine.dispose()

    run(main())


async def ask(pool: pg.Pool) -> int:
    return await pool.fetch_value("SELECT pg_backend_pid()")


async def until_active(server: Server) -> None:
    async with pg.Pool(server.dsn, size=1) as admin:
        while not await admin.fetch_value(
            "SELECT count(*) FROM pg_stat_activity WHERE state = 'active' AND query ~ 'sleep.100' "
            "AND pid <> pg_backend_pid()"
        ):
            await asyncio.sleep(0.01)
