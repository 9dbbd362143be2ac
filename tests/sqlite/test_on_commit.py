"""``tx.on_commit``: newcomer A3, there was no on-commit hook. PostgreSQL: ``tests/pg/test_on_commit.py``."""

from __future__ import annotations

import asyncio
import functools
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from citius import App, FromPool, sqlite
from citius.databases import commits
from citius.errors import Conflict
from citius.testing import Client

SCHEMA = (
    "create table parent (n int primary key); create table items (n int references parent (n) "
    "deferrable initially deferred)"
)


def runs(test: Callable[..., Awaitable[None]]) -> Callable[..., None]:
    """A test that is a coroutine function."""

    @functools.wraps(test)
    def run(*args: Any, **named: Any) -> None:
        async def main() -> None:
            await test(*args, **named)

        asyncio.run(main())

    return run


def logged_by(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What is logged of functions that fail."""
    logged: list[str] = []
    monkeypatch.setattr(
        commits, "log_exception", lambda message, error: logged.append(f"{message}: {error}")
    )
    return logged


@pytest.fixture
def pool(tmp_path: Path) -> sqlite.Pool:
    return sqlite.Pool(tmp_path / "on_commit.db", pragmas={"foreign_keys": "on"})


@runs
async def test_order_savepoints_and_failures(
    pool: sqlite.Pool, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[object] = []
    logged = logged_by(monkeypatch)

    async def later(what: object) -> None:
        await asyncio.sleep(0)
        seen.append((what, await pool.fetch_value("select count(*) from parent")))

    def fails() -> None:
        raise ValueError("on purpose")

    async with pool:
        await pool.script(SCHEMA)
        async with pool.transaction() as tx:
            await tx.execute("insert into parent values (1)")
            tx.on_commit(seen.append, "first")

            @tx.on_commit
            def decorated() -> None:
                seen.append("decorated")

            tx.on_commit(fails)
            async with tx.transaction() as inner:
                inner.on_commit(later, what="inner")
            with pytest.raises(KeyError):
                async with tx.transaction() as inner:
                    inner.on_commit(seen.append, "dropped")
                    raise KeyError
            assert seen == []
        # The pool is free again, and sees the row.
        assert seen == ["first", "decorated", ("inner", 1)]
        assert len(logged) == 1
        assert "fails failed; the transaction is committed" in logged[0]
        with pytest.raises(RuntimeError):
            tx.on_commit(fails)


@runs
async def test_nothing_is_called_after_a_rollback_or_a_failed_commit(pool: sqlite.Pool) -> None:
    seen: list[object] = []
    async with pool:
        await pool.script(SCHEMA)
        with pytest.raises(KeyError):
            async with pool.transaction() as tx:
                tx.on_commit(seen.append, "raised")
                raise KeyError
        with pytest.raises(sqlite.SqliteError):
            async with pool.transaction() as tx:
                await tx.execute("insert into items values (7)")
                tx.on_commit(seen.append, "refused")
    assert seen == []


@runs
async def test_a_cancelled_caller_loses_no_function(pool: sqlite.Pool) -> None:
    begun, go_on, done = asyncio.Event(), asyncio.Event(), asyncio.Event()

    async def slow() -> None:
        begun.set()
        await go_on.wait()

    async def work() -> None:
        async with pool.transaction() as tx:
            tx.on_commit(slow)
            tx.on_commit(done.set)

    async with pool:
        task = asyncio.create_task(work())
        await begun.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        go_on.set()
        await asyncio.wait_for(done.wait(), 30)


@runs
async def test_a_caller_that_leaves_during_the_commit_loses_no_function(pool: sqlite.Pool) -> None:
    """The transaction was committed, and its functions were not called."""
    done = asyncio.Event()
    async with pool:
        await pool.execute("create table kept (n int)")
        tx = pool.transaction()
        await tx.__aenter__()
        await tx.execute("insert into kept values (8)")
        tx.on_commit(done.set)
        end = asyncio.ensure_future(tx.__aexit__(None, None, None))
        await asyncio.sleep(0)
        end.cancel()
        with pytest.raises(asyncio.CancelledError):
            await end
        await asyncio.wait_for(done.wait(), 30)
        assert await pool.fetch("select n from kept") == [(8,)]


def test_serial_code(pool: sqlite.Pool, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[object] = []
    logged = logged_by(monkeypatch)

    async def awaited() -> None: ...

    with pool.sync as sync:
        with sync.transaction() as tx:
            tx.on_commit(seen.append, "outer")
            tx.on_commit(awaited)
            with tx.transaction() as inner:
                inner.on_commit(seen.append, "inner")
            assert seen == []
        assert seen == ["outer", "inner"]
        assert len(logged) == 1
        assert "takes a `def`" in logged[0]
        with pytest.raises(KeyError), sync.transaction() as tx:
            tx.on_commit(seen.append, "raised")
            raise KeyError
        assert seen == ["outer", "inner"]


def test_in_a_request(pool: sqlite.Pool) -> None:
    app, seen = App(lifespan=pool.lifespan), list[int]()

    @app.post("/{n:int}")
    async def add(n: int, tx: Any = FromPool(pool)) -> int:  # noqa: B008
        tx.on_commit(seen.append, n)
        if n > 1:
            raise Conflict
        return n

    with Client(app) as client:
        assert client.post("/1").status_code == 200
        assert client.post("/2").status_code == 409
    assert seen == [1]
