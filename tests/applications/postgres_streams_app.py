"""Cursors and COPY in handlers; the database is in the variable DSN."""

# pyright: basic

import os

from citius import App, pg

pool = pg.Pool(os.environ["DSN"], size=2)
app = App(lifespan=pool.lifespan)


@app.get("/rows/{count}")
async def rows(count: int):
    async with pool.cursor(
        "SELECT g FROM generate_series(1, $1::int) g", count, rows_max=100
    ) as found:
        async for (number,) in found:
            yield f"{number}\n".encode()


@app.get("/copies")
async def copies() -> str:
    async with pool.transaction() as tx:
        await tx.execute("CREATE TEMP TABLE copies (a int, b text) ON COMMIT DROP")
        text = "x" * 1000
        await tx.copy_in("COPY copies FROM STDIN", ((n, text) for n in range(5000)))
        size = 0
        async with tx.copy_out("COPY copies TO STDOUT") as chunks:
            async for chunk in chunks:
                size += len(chunk)
        assert await tx.fetch_value("SELECT count(*) FROM copies") == 5000
    return str(size)


@app.get("/carried")
async def carried() -> list:
    return [session._reactor is not None for session in pool._sessions]


@app.get("/heard")
async def heard() -> str:
    async with pool.listen("here") as notifications:
        await pool.execute("NOTIFY here, 'you'")
        return (await anext(notifications)).payload
