"""No connection is kept by what is cancelled at any await (databases D2)."""

# pyright: basic

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import pytest
from cancelling import at_every_await
from citius.sqlite import Pool


async def transaction(pool: Pool) -> None:
    async with pool.transaction() as tx:
        await tx.execute("INSERT INTO t VALUES (1)")
        async with tx.transaction():
            await tx.execute("INSERT INTO t VALUES (2)")


async def cursor(pool: Pool) -> None:
    async with pool.cursor("SELECT a FROM t") as rows:
        async for _ in rows:
            pass


async def script(pool: Pool) -> None:
    await pool.script("BEGIN; INSERT INTO t VALUES (3); COMMIT")


async def fetch(pool: Pool) -> None:
    await pool.fetch("SELECT a FROM t")


@pytest.mark.parametrize("use", [transaction, cursor, script, fetch])
def test_nothing_is_kept(tmp_path: Path, use: Callable[[Pool], Coroutine[Any, Any, None]]) -> None:
    async def steps() -> None:
        async with Pool(tmp_path / "a.db", readers=1, wait_s=10) as pool:
            await pool.execute("CREATE TABLE t (a int)")
            async for _ in at_every_await(lambda: use(pool)):
                await transaction(pool)
                await cursor(pool)
            # Transactions are whole.
            counts = "SELECT sum(a = 1) = sum(a = 2) FROM t"
            assert await pool.fetch_value(counts) == 1

    asyncio.run(steps())


def test_a_pool_that_is_opened(tmp_path: Path) -> None:
    """Neither threads nor files are left."""

    async def use() -> None:
        async with Pool(tmp_path / "b.db", readers=2) as pool:
            await pool.execute("CREATE TABLE IF NOT EXISTS t (a int)")

    def is_open() -> bool:
        files = [os.readlink(f"/proc/self/fd/{fd}") for fd in os.listdir("/proc/self/fd")
                 if os.path.lexists(f"/proc/self/fd/{fd}")]  # fmt: skip
        return any("b.db" in name for name in files)

    async def steps() -> None:
        before = threading.active_count()
        async for where in at_every_await(use):
            async with asyncio.timeout(10):
                while is_open() or threading.active_count() > before:
                    await asyncio.sleep(0.001)  # between two looks
            await use()
            assert not is_open(), where

    asyncio.run(steps())
