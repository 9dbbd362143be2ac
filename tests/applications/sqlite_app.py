"""Handlers on an SQLite file, in coroutines and in threads; its path is in DATABASE."""

# pyright: basic

import asyncio
import os

from citius import App, sqlite

pool = sqlite.Pool(os.environ["DATABASE"], readers=2, name="shop")
app = App(lifespan=pool.lifespan)
ADD = "INSERT INTO item (name) VALUES ($1) RETURNING id"


@app.on_startup
async def create() -> None:
    await pool.script("CREATE TABLE item (id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE)")


@app.post("/items/{name}")
async def add(name: str) -> int:
    async with pool.transaction() as tx:
        return await tx.fetch_value(ADD, name)


@app.get("/items/{id}")
async def item(id: int) -> str:
    return await pool.fetch_value("SELECT name FROM item WHERE id = $1", id)


@app.get("/count")
async def count() -> int:
    async with pool.cursor("SELECT id FROM item", rows_max=10) as rows:
        return len([row async for row in rows])


@app.post("/serial/{name}", blocking=True)
def add_serially(name: str) -> int:
    with pool.sync.transaction() as tx:
        return tx.fetch_value(ADD, name)


@app.get("/serial/{id}", blocking=True)
def item_serially(id: int) -> str:
    return pool.sync.fetch_value("SELECT name FROM item WHERE id = $1", id)


@app.get("/wrong")
async def wrong() -> str:
    try:
        await pool.execute("INSERT INTO item (id, name) VALUES ($1, 'again')", 1)
    except sqlite.UniqueViolation as error:
        return error.name
    return ""


@app.get("/left")
async def left() -> str:
    numbers = (
        "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT count(*) FROM n"
    )
    try:
        await asyncio.wait_for(pool.fetch_value(numbers), 0.05)
    except TimeoutError:
        return "left"
    return ""
