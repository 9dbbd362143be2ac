"""Behind pgbouncer. In transaction mode each transaction may come to another server process."""

from __future__ import annotations

import asyncio
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from citius import ConfigError, pg
from pg_rig import WAIT_S, Server, pooled, unprivileged
from rig import free_port
from sqlalchemy import URL
from sqlalchemy import text as sql
from sqlalchemy.exc import DBAPIError
from sqlalchemy.ext.asyncio import create_async_engine


@pytest.fixture(scope="module")
def bouncer(server: Server) -> Iterator[str]:
    """A DSN of a pgbouncer in transaction mode with three connections to the server."""
    yield from started(server, "transaction", 3)


@pytest.fixture(scope="module")
def faithful(server: Server) -> Iterator[str]:
    """A DSN of one in session mode: each of its clients keeps its server process."""
    yield from started(server, "session", 20)


def started(server: Server, mode: str, size: int) -> Iterator[str]:
    program = shutil.which("pgbouncer") or shutil.which("pgbouncer", path="/usr/sbin")
    if program is None:
        pytest.skip("pgbouncer is not installed (Debian: apt-get install pgbouncer)")
    directory = server.directory / mode
    directory.mkdir()
    port = free_port()
    (directory / "users").write_text('"tester" ""\n')
    (directory / "ini").write_text(
        f"[databases]\npostgres = host={server.directory} port={server.port}\n"
        f"[pgbouncer]\nlisten_addr = 127.0.0.1\nlisten_port = {port}\nunix_socket_dir =\n"
        f"auth_type = trust\nauth_file = {directory}/users\npool_mode = {mode}\n"
        f"default_pool_size = {size}\nserver_round_robin = 1\n"
    )
    user = unprivileged()
    if user:
        for path in (directory, *directory.iterdir()):
            shutil.chown(path, user["user"], user["group"])
    with (directory / "log").open("wb") as log:
        process = subprocess.Popen(
            [program, str(directory / "ini")], stdout=log, stderr=log, **user
        )
    try:
        wait_for_port(port, process, directory / "log")
        yield f"host=127.0.0.1 port={port} user=tester dbname=postgres sslmode=disable"
    finally:
        process.send_signal(signal.SIGINT)
        process.wait(WAIT_S)


def wait_for_port(port: int, process: subprocess.Popen[bytes], log: Path) -> None:
    until = time.monotonic() + WAIT_S
    while True:
        try:
            return socket.create_connection(("127.0.0.1", port)).close()
        except OSError:
            assert process.poll() is None, log.read_text()
            assert time.monotonic() < until, "pgbouncer does not start"
            time.sleep(0.05)  # nothing tells when it listens


@pytest.mark.parametrize("is_told", [True, False], ids=["told", "found out"])
def test_statements_survive(bouncer: str, is_told: bool) -> None:
    async def main() -> None:
        pools = [pg.Pool(bouncer, size=4, named_statements=not is_told) for _ in range(2)]
        async with pools[0] as one, pools[1] as two:
            # Two pools: what one has prepared must not be taken for a statement of the other.
            # Now more calls, now fewer: so that no session comes to the same server process each time.
            for step in range(3000):
                if step >= 30 and not one.has_names:
                    break
                calls = [
                    (which, kind)
                    for which in range(2)
                    for kind in range(1 + (step * (3 + which)) % 8)
                ]
                results = await asyncio.gather(
                    *(
                        (one, two)[which].fetch_value(
                            f"SELECT $1::int + {kind + 100 * which}", step
                        )
                        for which, kind in calls
                    )
                )
                assert results == [step + kind + 100 * which for which, kind in calls]
            # One that finds out within a transaction fails that.
            assert not one.has_names

            async def transact(number: int) -> int:
                async with one.transaction() as tx:
                    await tx.execute("SELECT set_config('app.number', $1, true)", str(number))
                    await asyncio.sleep(0)
                    return int(await tx.fetch_value("SELECT current_setting('app.number')"))

            numbers = [*range(40)]
            assert await asyncio.gather(*map(transact, numbers)) == numbers
            async with one.cursor(
                "SELECT g FROM generate_series(1, $1::int) g", 1000, rows_max=300
            ) as rows:
                assert len([row async for row in rows]) == 1000
            assert await one.fetch_json("SELECT $1::int AS a", 5) == b'[{"a":5}]'

    asyncio.run(asyncio.wait_for(main(), 60))


CHANGES = [
    "SET app.owner = 'left'", "SET ROLE pg_monitor", "SELECT set_config('app.owner', 'left', false)",
    "CREATE TEMPORARY TABLE scratch (x int)", "SELECT pg_advisory_lock_shared(7)", "PREPARE own AS SELECT 1",
    "SET search_path = pg_catalog", "LISTEN news", "LOAD 'plpgsql'",
]  # fmt: skip
LEFT = (
    "SELECT current_setting('app.owner', true), current_user, to_regclass('scratch'),"
    " (SELECT count(*) FROM pg_locks WHERE locktype = 'advisory'), current_setting('search_path')"
)


@pytest.mark.parametrize("is_told", [True, False], ids=["told", "found out"])
def test_what_changes_a_session_of_the_pooler_is_refused(bouncer: str, is_told: bool) -> None:
    """issue 32 C1: its reset would come to another server process; a role stayed for others.

    Poolers that keep prepared statements for their clients lose no name, so that no name tells of them.
    """

    async def main() -> None:
        async with pg.Pool(bouncer, size=3, named_statements=not is_told) as pool:
            before = await pool.fetch_one(LEFT)
            for text in CHANGES:
                with pytest.raises(pg.StatementRefused, match="that of a pooler"):
                    async with pool.transaction() as tx:
                        await tx.execute(text)
            async with pool.transaction() as tx:
                for text in ("SET LOCAL app.owner = 'own'", "SELECT pg_advisory_xact_lock(8)"):
                    await tx.execute(text)
                assert await tx.fetch_value("SELECT current_setting('app.owner')") == "own"
            for _ in range(9):  # each of the server processes
                assert [*await pool.fetch_one(LEFT)][1:] == [*before][1:]
            with pytest.raises(pg.StatementRefused):
                pool.transaction(reset=True)
            with pytest.raises(pg.StatementRefused, match="no notification comes"):
                async with pool.listen("news"):
                    pass
        with pytest.raises(ConfigError, match="in transaction mode"):
            async with pg.Pool(bouncer, size=1, reset=True):
                pass

    asyncio.run(asyncio.wait_for(main(), 60))


def test_the_engine_of_sqlalchemy_finds_the_pooler_out(bouncer: str) -> None:
    async def main() -> None:
        url = URL.create("postgresql+citius", query=dict(conninfo(bouncer)))
        engine = create_async_engine(url, pool_size=3)
        for text in CHANGES:
            async with engine.connect() as connection:
                with pytest.raises(DBAPIError, match="that of a pooler"):
                    await connection.execute(sql(text))
        async with engine.begin() as connection:
            await connection.execute(sql("SET LOCAL app.owner = 'own'"))
            assert await connection.scalar(sql("SELECT current_setting('app.owner')")) == "own"
        await engine.dispose()
        # As with other dialects.
        engine = create_async_engine(url.update_query_dict({"keep_changes": "true"}))
        async with engine.connect() as connection:
            await connection.execute(sql("SET app.kept = 'x'"))
        await engine.dispose()

    asyncio.run(asyncio.wait_for(main(), 60))


def conninfo(dsn: str) -> Iterator[tuple[str, str]]:
    for pair in dsn.split(" "):
        name, _, value = pair.partition("=")
        yield name, value


def test_a_pooler_whose_sessions_stay_is_as_the_server(faithful: str) -> None:
    async def main() -> None:
        async with pg.Pool(faithful, size=3) as pool:
            before = await pool.fetch_one(LEFT)
            for text in CHANGES:
                async with pool.transaction() as tx:
                    await tx.execute(text)
            async with pool.transaction(reset=True) as tx:
                await tx.fetch_value("SELECT set_config('app.owner', 'left', false)")
            for _ in range(9):
                assert [*await pool.fetch_one(LEFT)][1:] == [*before][1:]
            async with pool.listen("news") as notifications:
                await pool.execute("NOTIFY news, 'here'")
                assert (await anext(aiter(notifications))).payload == "here"
        async with pg.Pool(faithful, size=1, reset=True) as pool:
            assert await pool.fetch_value("SELECT 1") == 1

    asyncio.run(asyncio.wait_for(main(), 60))


def test_a_pooler_and_resets_exclude_each_other() -> None:
    with pytest.raises(ConfigError, match="another server process"):
        pg.Pool("dbname=postgres", reset=True, named_statements=False)


@pooled(size=1, named_statements=False)
async def test_statements_without_names(pool) -> None:
    await pool.execute("DROP TABLE IF EXISTS nameless")
    await pool.execute("CREATE TABLE nameless AS SELECT 1 AS a")
    for _ in range(3):
        assert await pool.fetch("SELECT * FROM nameless WHERE a = $1", 1) == [(1,)]
    assert await pool.fetch_value("SELECT count(*) FROM pg_prepared_statements") == 0
    # As many columns, of another type, which is read as that; and more columns.
    await pool.execute("ALTER TABLE nameless ALTER a TYPE bigint")
    assert await pool.fetch("SELECT * FROM nameless WHERE a = $1", 1) == [(1,)]
    await pool.execute("ALTER TABLE nameless ADD b text")
    with pytest.raises(pg.ProtocolError, match="have changed"):
        await pool.fetch("SELECT * FROM nameless WHERE a = $1", 1)
    assert await pool.fetch("SELECT * FROM nameless WHERE a = $1", 1)
    # More than there are formats for: the server says so, and the statement is sent anew.
    await pool.execute("ALTER TABLE nameless ADD c text")
    assert await pool.fetch("SELECT * FROM nameless WHERE a = $1", 1)
    assert await pool.fetch("SELECT * FROM nameless WHERE a = $1", 1) == [(1, None, None)]
    with pytest.raises(pg.ServerError, match="division"):
        await pool.fetch("SELECT 1 / $1::int", 0)
    assert await pool.execute("INSERT INTO nameless VALUES ($1, $2)", 2, "x") == 1


@pooled(size=1)
async def test_statements_that_are_forgotten_behind_the_pools_back(pool) -> None:
    assert await pool.fetch_value("SELECT $1::int", 1) == 1
    # A name that is the application's own says nothing about ours.
    with pytest.raises(pg.ServerError, match="nothing"):
        async with pool.transaction() as tx:
            await tx.execute("EXECUTE nothing")
    assert await pool.fetch_value("SELECT count(*) FROM pg_prepared_statements") > 0
    with pytest.raises(pg.StatementRefused):
        await pool.execute("DEALLOCATE ALL")
    (session,) = pool._sessions
    await pool.core.script("DEALLOCATE ALL", session.core)
    assert await pool.fetch_value("SELECT $1::int", 2) == 2
