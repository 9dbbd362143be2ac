"""Responses that repeat their request's number, by way of a database; children that inherit its pool."""

# pyright: basic

import asyncio
import os
import signal
import traceback

import pytest
from citius import App, pg

DSN = os.environ["DSN"]
pool = pg.Pool(DSN, size=3, wait_s=10)
app = App(lifespan=pool.lifespan)


@app.get("/value/{number}")
async def value(number: int) -> int:
    return await pool.fetch_value("SELECT $1::int", number)


@app.get("/slow/{number}")
async def slow(number: int) -> int:
    return await pool.fetch_value("SELECT $1::int FROM pg_sleep(0.01)", number)


@app.get("/block/{number}")
async def block(number: int) -> int:
    async with pool.transaction() as tx:
        await tx.execute("SELECT set_config('app.number', $1, false)", str(number))
        async with tx.transaction() as inner:
            first = await inner.fetch_value("SELECT $1::int", number)
        found = await tx.fetch_value("SELECT current_setting('app.number')::int")
        assert first == found
        return found


@app.get("/left/{number}")
async def left(number: int) -> int:
    """What blocks have set is in no other request."""
    found = await pool.fetch_value("SELECT nullif(current_setting('app.number', true), '')")
    assert found is None, found
    return number


@app.get("/rows/{number}")
async def rows(number: int) -> int:
    async with pool.cursor(
        "SELECT $1::int FROM generate_series(1, 40)", number, rows_max=7
    ) as found:
        numbers = {one async for (one,) in found}
    assert len(numbers) == 1, numbers
    return numbers.pop()


@app.get("/serial/{number}", blocking=True)
def serial(number: int) -> int:
    with pool.sync.transaction() as tx:
        return tx.fetch_value("SELECT $1::int", number)


@app.get("/fork/{number}")
async def fork(number: int) -> int:
    """A child has the pool and its sockets: it is refused, and opens one of its own."""
    child = os.fork()
    if child == 0:
        signal.alarm(30)
        os._exit(in_child(number))
    for _ in range(3000):
        ended, status = os.waitpid(child, os.WNOHANG)
        if ended:
            assert status == 0, f"the child has ended with {status}"
            return await pool.fetch_value("SELECT $1::int", number)
        await asyncio.sleep(0.01)
    raise AssertionError("the child does not end")


def in_child(number: int) -> int:
    async def use() -> int:
        for use_it in (
            lambda: pool.fetch_value("SELECT 1"),
            lambda: pool.copy_in("COPY nothing FROM STDIN", []),
            lambda: pool.transaction().__aenter__(),
        ):
            with pytest.raises(RuntimeError, match="before a fork"):
                await use_it()
        await pool.close()
        async with pg.Pool(DSN, size=1) as own:
            assert await own.fetch_value("SELECT $1::int", number) == number
        async with pool:
            return 0 if await pool.fetch_value("SELECT $1::int", number) == number else 4

    try:
        return asyncio.run(use())
    except BaseException:
        traceback.print_exc()
        return 5
