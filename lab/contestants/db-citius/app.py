"""The workloads with a database on Citius's own client."""

from __future__ import annotations

import os
from operator import attrgetter
from pathlib import Path
from random import random, sample
from typing import Annotated

import msgspec
from citius import App, Query, Request, Response, Templates, pg
from fortunes import Fortune

templates = Templates(Path(__file__).with_name("templates"))
pool = pg.Pool(os.environ["DATABASE_URL"], size=8)
app = App(lifespan=pool.lifespan)


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


WORLD = 'SELECT id, randomnumber AS "randomNumber" FROM world WHERE id = $1'
READ = 'SELECT id, randomnumber AS "randomNumber" FROM changing WHERE id = $1'
WRITE = "UPDATE changing SET randomnumber = $2 WHERE id = $1"
ITEMS = (
    "SELECT id, name, category, price, quantity, active, tags, rating_score, rating_count "
    "FROM items WHERE price BETWEEN $1 AND $2 LIMIT $3"
)


@app.get("/db")
async def db_one(id: int) -> World | None:
    return await pool.fetch_one(WORLD, id, as_=World)


@app.get("/async-db")
async def db_rows(min: int, max: int, limit: Annotated[int, Query(le=100)]) -> Page:
    rows = await pool.fetch(ITEMS, min, max, limit)
    return Page([Item(*row[:7], Rating(row[7], row[8])) for row in rows], len(rows))


@app.get("/queries")
async def db_queries(n: int) -> list[World]:
    return await pool.fetch_many(WORLD, [(int(random() * 10000) + 1,) for _ in range(n)], as_=World)


@app.get("/updates")
async def db_updates(n: int) -> list[World]:
    # In the order of their ids, so that no two requests wait for each other.
    ids = sorted(sample(range(1, 10001), n))
    rows = await pool.fetch_many(READ, [(id,) for id in ids], as_=World)
    for row in rows:
        row.randomNumber = int(random() * 10000) + 1
    await pool.fetch_many(WRITE, [(row.id, row.randomNumber) for row in rows])
    return rows


@app.get("/fortunes")
async def fortunes(request: Request) -> Response:
    rows = await pool.fetch("SELECT id, message FROM fortune", as_=Fortune)
    rows.append(Fortune(0, "Additional fortune added at request time."))
    rows.sort(key=attrgetter("message"))
    return templates("fortunes.html", request, {"fortunes": rows})
