"""The workloads with a database on asyncpg, in the native API of Citius."""

from __future__ import annotations

import json
import os
from contextlib import asynccontextmanager
from random import random, sample
from typing import TYPE_CHECKING, Annotated, Any

import asyncpg
import msgspec
from citius import App, Query, Response
from fortunes import Fortune, render

if TYPE_CHECKING:
    from collections.abc import AsyncIterator


class World(msgspec.Struct):
    id: int
    randomNumber: int


class Rating(msgspec.Struct):
    score: int
    count: int


class Item(msgspec.Struct):
    id: int
    name: str
    category: str
    price: int
    quantity: int
    active: bool
    tags: list[str]
    rating: Rating


class Page(msgspec.Struct):
    items: list[Item]
    count: int


async def prepare(connection: Any) -> None:
    await connection.set_type_codec("jsonb", encoder=json.dumps, decoder=msgspec.json.decode, schema="pg_catalog")


@asynccontextmanager
async def lifespan(app: App) -> AsyncIterator[None]:
    global pool
    async with asyncpg.create_pool(os.environ["DATABASE_URL"], min_size=8, max_size=8, init=prepare) as pool:
        yield


pool: Any = None
app = App(lifespan=lifespan)
WORLD = "SELECT id, randomnumber FROM world WHERE id = $1"
READ = "SELECT id, randomnumber FROM changing WHERE id = $1"
WRITE = "UPDATE changing SET randomnumber = $2 WHERE id = $1"
ITEMS = (
    "SELECT id, name, category, price, quantity, active, tags, rating_score, rating_count "
    "FROM items WHERE price BETWEEN $1 AND $2 LIMIT $3"
)


@app.get("/db")
async def db_one(id: int) -> World:
    row = await pool.fetchrow(WORLD, id)
    return World(row["id"], row["randomnumber"])


@app.get("/async-db")
async def db_rows(min: int, max: int, limit: Annotated[int, Query(le=100)]) -> Page:
    rows = await pool.fetch(ITEMS, min, max, limit)
    return Page([Item(*row[:7], Rating(row[7], row[8])) for row in rows], len(rows))


@app.get("/queries")
async def db_queries(n: int) -> list[World]:
    rows = await pool.fetchmany(WORLD, [(int(random() * 10000) + 1,) for _ in range(n)])
    return [World(row["id"], row["randomnumber"]) for row in rows]


@app.get("/updates")
async def db_updates(n: int) -> list[World]:
    # In the order of their ids, so that no two requests wait for each other.
    ids = sorted(sample(range(1, 10001), n))
    async with pool.acquire() as connection:
        found = await connection.fetchmany(READ, [(id,) for id in ids])
        rows = [World(row["id"], int(random() * 10000) + 1) for row in found]
        await connection.executemany(WRITE, [(row.id, row.randomNumber) for row in rows])
    return rows


@app.get("/fortunes")
async def fortunes() -> Response:
    rows = await pool.fetch("SELECT id, message FROM fortune")
    page = render([Fortune(row["id"], row["message"]) for row in rows])
    return Response(page, content_type="text/html; charset=utf-8")
