"""``pool.sync`` of ``citius.sqlite``: scripts, threads, handlers of both interfaces."""

from __future__ import annotations

import asyncio
import contextlib
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx
import msgspec
import pytest
from citius import sqlite
from rig import application

TABLE = "CREATE TABLE item (id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE)"


class Item(msgspec.Struct):
    id: int
    name: str


def test_a_script(tmp_path: Path) -> None:
    pool = sqlite.Pool(tmp_path / "shop.db", readers=1)
    db = pool.sync
    with contextlib.closing(db):
        db.script(TABLE)
        assert db.execute("INSERT INTO item (name) VALUES ($1)", "a") == 1
        assert db.execute_many("INSERT INTO item (name) VALUES ($1)", [("b",), ("c",)]) == 2
        assert db.fetch("SELECT id, name FROM item WHERE id < $1", 3) == [(1, "a"), (2, "b")]
        assert db.fetch_one("SELECT id, name FROM item WHERE id = 2", as_=Item) == Item(2, "b")
        assert db.fetch_value("SELECT count(*) FROM item") == 3
        assert db.fetch_json("SELECT id FROM item", items="ids") == (
            b'{"ids":[{"id":1},{"id":2},{"id":3}],"count":3}'
        )
        with pytest.raises(sqlite.UniqueViolation), db.transaction() as tx:
            tx.execute("INSERT INTO item (name) VALUES ('d')")
            tx.execute("INSERT INTO item (name) VALUES ('a')")
        with db.transaction() as tx:
            tx.execute("INSERT INTO item (name) VALUES ('e')")
            with pytest.raises(ZeroDivisionError), tx.transaction() as inner:
                inner.execute("INSERT INTO item (name) VALUES ('f')")
                raise ZeroDivisionError
        with db.cursor("SELECT name FROM item ORDER BY id", rows_max=2) as rows:
            assert [name for (name,) in rows] == ["a", "b", "c", "e"]
        db.backup(tmp_path / "copy.db")
    other = sqlite.Pool(tmp_path / "copy.db").sync
    with contextlib.closing(other):
        assert other.fetch_value("SELECT count(*) FROM item") == 4
    # A pool that was closed is opened again by the next call.
    with contextlib.closing(db):
        assert db.fetch_value("SELECT count(*) FROM item") == 4


def test_threads(tmp_path: Path) -> None:
    db = sqlite.Pool(tmp_path / "shop.db").sync
    with contextlib.closing(db), ThreadPoolExecutor(8) as threads:
        db.script(TABLE)
        names = [f"n{number}" for number in range(100)]
        list(
            threads.map(lambda name: db.execute("INSERT INTO item (name) VALUES ($1)", name), names)
        )
        found = threads.map(
            lambda name: db.fetch_value("SELECT name FROM item WHERE name = $1", name), names
        )
        assert list(found) == names


def test_on_the_loop_of_the_pool_it_is_refused(tmp_path: Path) -> None:
    async def main() -> None:
        async with sqlite.Pool(tmp_path / "shop.db") as pool:
            with pytest.raises(RuntimeError, match=r"use `await pool\."):
                pool.sync.fetch("SELECT 1")
            assert await asyncio.to_thread(pool.sync.fetch_value, "SELECT 5") == 5

    asyncio.run(main())


def test_a_process_ends_with_an_open_pool(tmp_path: Path) -> None:
    script = "from citius import sqlite; print(sqlite.Pool('a.db').sync.fetch_value('SELECT 7'))"
    ended = subprocess.run(
        [sys.executable, "-c", script], cwd=tmp_path, capture_output=True, text=True, timeout=30
    )
    assert (ended.returncode, ended.stdout, ended.stderr) == (0, "7\n", "")


@pytest.mark.parametrize("reactors", ["1", "2"])
def test_handlers(serve, tmp_path: Path, reactors: str) -> None:
    serving = serve(
        application("sqlite_app"), "--workers", "1", "--reactor-threads", reactors,
        env={"DATABASE": str(tmp_path / "shop.db")},
    )  # fmt: skip
    base_url = f"http://127.0.0.1:{serving.port}"
    with httpx.Client(base_url=base_url, timeout=20) as client, ThreadPoolExecutor(8) as threads:
        for path in ("items", "serial"):
            posted = threads.map(lambda n: client.post(f"/{path}/{path}{n}").json(), range(40))
            by_id = {id: f"{path}{n}" for n, id in enumerate(posted)}
            got = threads.map(lambda id: client.get(f"/{path}/{id}").text, by_id)
            assert list(got) == list(by_id.values())
        assert client.get("/count").json() == 80
    assert serving.stop() == 0
