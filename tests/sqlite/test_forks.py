"""A forked child has none of the threads (issue 32 C7): it is refused, and the file is unharmed."""

from __future__ import annotations

import asyncio
import os
import traceback
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest
from citius import sqlite

pytestmark = [
    pytest.mark.skipif(not hasattr(os, "fork"), reason="no forks here"),
    pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning"),
]


async def child(act: Callable[[], Awaitable[None]]) -> None:
    process = os.fork()
    if process == 0:
        code = 1
        try:
            asyncio.run(asyncio.wait_for(act(), 20))
            code = 0
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(code)
    for _ in range(3000):
        ended, status = os.waitpid(process, os.WNOHANG)
        if ended:
            assert status == 0
            return
        await asyncio.sleep(0.01)  # until the child ends
    raise AssertionError("the child does not end")


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
                    await child(closes)
                await child(act)
                assert await pool.fetch_value("SELECT count(*) FROM t") == 2 * number

    asyncio.run(main())
