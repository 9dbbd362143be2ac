"""What a server does with its database, which is in the variable DSN."""

# pyright: basic

import asyncio
import os
import sys
import time

from citius import App, Response, pg

pool = pg.Pool(os.environ["DSN"], size=2, wait_s=5, depth=1)
app = App(lifespan=pool.lifespan)


@app.readiness
async def database() -> None:
    async with asyncio.timeout(1):
        await pool.fetch_value("SELECT 1")


@app.get("/one/{id}")
async def one(id: int) -> dict:
    row = await pool.fetch_one("SELECT $1::int AS id, 'n' || $1::int AS name", id, as_=dict)
    assert row is not None
    return row


@app.get("/rows")
async def rows() -> Response:
    body = await pool.fetch_json("SELECT g AS id FROM generate_series(1, 3) g", items="items")
    return Response(body, content_type="application/json")


@app.get("/big")
async def big() -> dict:
    text = "x" * 3_000_000
    return {"same": await pool.fetch_value("SELECT $1::text || 'y'", text) == text + "y"}


@app.get("/several")
async def several() -> list:
    await asyncio.sleep(0.001)
    first = await pg.gather(*(pool.fetch_value("SELECT $1::int", n) for n in range(5)))
    async with pool.transaction() as tx:
        return [*first, await tx.fetch_value("SELECT 5")]


@app.get("/slow")
async def slow() -> str:
    await pool.fetch("SELECT pg_sleep(30)")
    return "slept"


@app.get("/active")
async def active() -> int:
    return await pool.fetch_value(
        "SELECT count(*) FROM pg_stat_activity WHERE state = 'active' AND query LIKE '%pg_sleep(30)'"
    )


@app.get("/carried")
async def carried() -> list:
    return [session._reactor is not None for session in pool._sessions]


@app.get("/reattach")
async def reattach() -> str:
    async def move() -> None:
        session = next(iter(pool._sessions))
        print("in a step", file=sys.stderr, flush=True)
        time.sleep(0.5)  # requests of other connections are ready by then
        reactor = session._reactor
        session._move(None)
        session._move(reactor)

    await asyncio.get_running_loop().create_task(move())
    return "moved"


@app.on_shutdown
async def late() -> None:
    print("at the end:", await pool.fetch_value("SELECT 'alive'"), file=sys.stderr, flush=True)
