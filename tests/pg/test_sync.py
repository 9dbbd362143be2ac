"""``pool.sync``: threads block, greenlets and goroutines wait, and the sessions are those of the pool."""

from __future__ import annotations

import asyncio
import contextlib
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import msgspec
import pytest
from citius import pg, serial
from pg_rig import Server, get
from rig import application

SLOW = "/slow"


@pytest.fixture
def pool(server: Server):
    pool = pg.Pool(server.dsn, size=4)
    yield pool
    pool.sync.close()


def test_a_script(pool: pg.Pool) -> None:
    db = pool.sync
    assert db.fetch("SELECT g FROM generate_series(1, $1::int) g", 3) == [(1,), (2,), (3,)]
    assert db.fetch_one("SELECT 1 AS a", as_=dict) == {"a": 1}
    assert db.fetch_value("SELECT $1::text", "x") == "x"
    assert db.fetch_json("SELECT 1 AS a", items="rows") == b'{"rows":[{"a":1}],"count":1}'
    assert db.fetch_json_one("SELECT 1 AS a") == b'{"a":1}'
    db.execute("DROP TABLE IF EXISTS serial")
    db.execute("CREATE TABLE serial (a int PRIMARY KEY)")
    assert db.execute_many("INSERT INTO serial VALUES ($1)", ((n,) for n in range(3))) == 3
    assert db.fetch_many("SELECT $1::int", [(1,), (2,)]) == [(1,), (2,)]
    assert db.copy_in("COPY serial FROM STDIN", ((n,) for n in range(10, 20))) == 10
    with db.copy_out("COPY (SELECT 7) TO STDOUT") as chunks:
        assert b"".join(chunks) == b"7\n"
    with pytest.raises(pg.UniqueViolation), db.transaction() as tx:
        tx.execute("INSERT INTO serial VALUES (100)")
        tx.execute("INSERT INTO serial VALUES (1)")
    with db.transaction(isolation="serializable") as tx:
        tx.execute("INSERT INTO serial VALUES (101)")
        with pytest.raises(ZeroDivisionError), tx.transaction() as inner:
            inner.execute("INSERT INTO serial VALUES (102)")
            raise ZeroDivisionError
        assert tx.fetch_value("SHOW transaction_isolation") == "serializable"
        with tx.cursor("SELECT a FROM serial ORDER BY a", rows_max=2) as rows:
            assert [a for (a,) in rows] == [0, 1, 2, *range(10, 20), 101]
    with db.cursor("SELECT a FROM serial WHERE a < 3 ORDER BY a") as rows:
        assert rows.fetch() == [(0,), (1,), (2,)]
        assert rows.fetch() == []
    with pytest.raises(pg.ServerError, match="division"):
        db.fetch("SELECT 1 / 0")


def test_threads_wait_side_by_side(server: Server) -> None:
    # Without `depth`, statements of one turn may follow one another on a session.
    pool = pg.Pool(server.dsn, size=4, depth=1)
    with contextlib.closing(pool.sync), ThreadPoolExecutor(8) as threads:
        pool.sync.open()
        deadline = time.monotonic() + 20
        while pool.sessions < 4:
            assert time.monotonic() < deadline
            time.sleep(0.01)  # a look at a condition
        sql = "SELECT clock_timestamp(), pg_sleep(0.5), clock_timestamp()"
        slow = [threads.submit(pool.sync.fetch_one, sql) for _ in range(4)]
        numbers = [threads.submit(pool.sync.fetch_value, "SELECT $1::int", n) for n in range(50)]
        assert [number.result() for number in numbers] == [*range(50)]
        times = [one.result() for one in slow]
    assert max(begun for begun, _, _ in times) < min(ended for _, _, ended in times)


def test_serial_handlers_of_the_loop_of_the_pool(server: Server) -> None:
    pytest.importorskip("greenlet")

    def handler(pool: pg.Pool, number: int) -> list[int]:
        db = pool.sync
        with db.transaction() as tx:
            found = [tx.fetch_value("SELECT $1::int", number)]
            with tx.cursor("SELECT generate_series(1, 3)", rows_max=1) as rows:
                found += [value for (value,) in rows]
        with pytest.raises(pg.ServerError, match="division"):
            db.fetch("SELECT 1 / 0")
        return [*found, db.fetch_value("SELECT $1::int + 1", number)]

    def slow(pool: pg.Pool) -> None:
        pool.sync.fetch("SELECT pg_sleep(60)")

    async def main() -> None:
        async with pg.Pool(server.dsn, size=4) as pool:
            got = await asyncio.gather(*(serial.carried(handler)(pool, n) for n in range(30)))
            assert got == [[n, 1, 2, 3, n + 1] for n in range(30)]
            # What waits 60 s is cancelled, and the session is used again.
            task = asyncio.ensure_future(serial.carried(slow)(pool))
            with pytest.raises(TimeoutError):
                await asyncio.wait_for(task, 0.2)
            assert await pool.fetch_value("SELECT 7") == 7

    asyncio.run(main())


def test_on_the_loop_of_the_pool_it_is_refused(server: Server) -> None:
    async def main() -> None:
        async with pg.Pool(server.dsn, size=1) as pool:
            with pytest.raises(RuntimeError, match=r"use `await pool\."):
                pool.sync.fetch("SELECT 1")
            # In a thread of that loop it is not.
            assert await asyncio.to_thread(pool.sync.fetch_value, "SELECT 5") == 5

    asyncio.run(main())


SCRIPT = """
import sys
from citius import pg

pool = pg.Pool(sys.argv[1], size=2)
print(pool.sync.fetch_value("SELECT 'told'"))
"""


def test_a_script_ends_and_says_goodbye(server: Server) -> None:
    ended = subprocess.run(
        [sys.executable, "-c", SCRIPT, server.dsn],
        capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    assert (ended.stdout, ended.stderr, ended.returncode) == ("told\n", "", 0)
    assert "unexpected EOF" not in (server.directory / "log").read_text()


FORK = """
import os, sys
from citius import pg

pool = pg.Pool(sys.argv[1], size=1)
assert pool.sync.fetch_value("SELECT 1") == 1
child = os.fork()
if child == 0:
    try:
        pool.sync.fetch_value("SELECT 1")
    except RuntimeError as error:
        os._exit(7 if "before a fork" in str(error) else 1)
    os._exit(2)
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""


def test_a_fork(server: Server) -> None:
    ended = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", FORK, server.dsn],
        capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    assert (ended.stdout, ended.stderr) == ("7\n", "")


def ask(serving, *paths: str) -> tuple[list[bytes], float]:
    """Responses to requests side by side, and how long all took."""
    results: dict[int, bytes] = {}

    def one(at: int, path: str) -> None:
        results[at] = get(serving, path)[1]

    begun = time.monotonic()
    threads = [threading.Thread(target=one, args=item) for item in enumerate(paths)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return [results[at] for at in range(len(paths))], time.monotonic() - begun


@pytest.mark.parametrize(
    ("app", "options"),
    [
        ("sync_app", ("--loop", "uvloop")),
        ("sync_app", ("--loop", "asyncio")),
        ("sync_app", ("--loop", "gevent")),
        ("sync_wsgi", ("--threads", "8")),
        ("sync_wsgi", ("--loop", "gevent")),
    ],
)
def test_handlers_wait_side_by_side(
    serve, server: Server, app: str, options: tuple[str, ...]
) -> None:
    if "gevent" in options:
        pytest.importorskip("gevent")
    serving = serve(application(app), "--workers", "1", *options, env={"DSN": server.dsn})
    assert get(serving, "/add/1") == (200, b"2")
    # Sessions come while the first one serves.
    for _ in range(100):
        if get(serving, "/sessions")[1] == b"4":
            break
    responses, took = ask(serving, *[SLOW] * 4, *(f"/add/{n}" for n in range(20)))
    assert responses == [b"slept"] * 4 + [b"%d" % (n + 1) for n in range(20)]
    assert took < 2.5
    assert get(serving, "/transaction") == (200, b"7")
    # Goroutines wait as the handler does.
    assert msgspec.json.decode(get(serving, "/goroutines")[1]) == [*range(10)]
    assert serving.stop() == 0


@pytest.mark.parametrize("loop", ["asyncio", "uvloop"])
def test_on_uvicorn(server: Server, loop: str) -> None:
    """A pool on a loop without a reactor, under another server."""
    pytest.importorskip("uvicorn")
    ended = subprocess.run(
        [sys.executable, str(application("uvicorn_pool")), server.dsn, loop],
        capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    assert ended.returncode == 0, ended.stderr
    assert ended.stdout == "20 [1, 2] 7\n"
