"""A forked child has none of the threads (issue 32 C7): it is refused, and the file is unharmed."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

import pytest
from citius import sqlite
from rig import in_child

pytestmark = [
    pytest.mark.skipif(not hasattr(os, "fork"), reason="no forks here"),
    pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning"),
]


def test_a_child_is_refused_and_may_open_the_pool_again(path: Path) -> None:
    async def main() -> None:
        async with sqlite.Pool(path) as pool:
            await pool.script("CREATE TABLE t (x)")

            async def act() -> None:
                for use in (
                    lambda: pool.fetch_value("SELECT 1"),
                    lambda: pool.transaction().__aenter__(),
                    lambda: pool.cursor("SELECT 1").__aenter__(),
                    lambda: pool.script("SELECT 1"),
                    lambda: asyncio.to_thread(pool.sync.fetch_value, "SELECT 1"),
                ):
                    with pytest.raises(RuntimeError, match="before a fork"):
                        await use()
                async with pool:
                    assert await pool.execute("INSERT INTO t VALUES ('child')") == 1

            async def closes() -> None:
                await pool.close()

            for number in range(1, 4):
                async with pool.transaction() as tx:
                    await tx.execute("INSERT INTO t VALUES ('parent')")
                    await in_child(closes)
                await in_child(act)
                assert await pool.fetch_value("SELECT count(*) FROM t") == 2 * number

    asyncio.run(main())
