"""The workloads with a database on FastAPI and asyncpg, as their documentation writes services."""

from __future__ import annotations

import json
import os
from contextlib import asynccontextmanager
from random import random, sample
from typing import TYPE_CHECKING, Annotated, Any

import asyncpg
from fastapi import FastAPI, Query
from fastapi.responses import HTMLResponse
from fortunes import Fortune, render
from pydantic import BaseModel

if TYPE_CHECKING:
    from collections.abc import AsyncIterator


class World(BaseModel):
    id: int
    randomNumber: int


class Rating(BaseModel):
    score: int
    count: int


class Item(BaseModel):
    id: int
    name: str
    category: str
    price: int
    quantity: int
    active: bool
    tags: list[str]
    rating: Rating


class Page(BaseModel):
    items: list[Item]
    count: int


async def prepare(connection: Any) -> None:
    await connection.set_type_codec("jsonb", encoder=json.dumps, decoder=json.loads, schema="pg_catalog")


@asynccontextmanager
async def lifespan(app: FastAPI) -> AsyncIterator[None]:
    global pool
    async with asyncpg.create_pool(os.environ["DATABASE_URL"], min_size=8, max_size=8, init=prepare) as pool:
        yield


pool: Any = None
app = FastAPI(lifespan=lifespan, openapi_url=None)
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
    return World(id=row["id"], randomNumber=row["randomnumber"])


@app.get("/async-db")
async def db_rows(min: int, max: int, limit: Annotated[int, Query(le=100)]) -> Page:
    rows = await pool.fetch(ITEMS, min, max, limit)
    items = [Item(**row, rating=Rating(score=row["rating_score"], count=row["rating_count"])) for row in rows]
    return Page(items=items, count=len(items))


@app.get("/queries")
async def db_queries(n: int) -> list[World]:
    rows = await pool.fetchmany(WORLD, [(int(random() * 10000) + 1,) for _ in range(n)])
    return [World(id=row["id"], randomNumber=row["randomnumber"]) for row in rows]


@app.get("/updates")
async def db_updates(n: int) -> list[World]:
    # In the order of their ids, so that no two requests wait for each other.
    ids = sorted(sample(range(1, 10001), n))
    async with pool.acquire() as connection:
        found = await connection.fetchmany(READ, [(id,) for id in ids])
        rows = [World(id=row["id"], randomNumber=int(random() * 10000) + 1) for row in found]
        await connection.executemany(WRITE, [(row.id, row.randomNumber) for row in rows])
    return rows


@app.get("/fortunes")
async def fortunes() -> HTMLResponse:
    rows = await pool.fetch("SELECT id, message FROM fortune")
    return HTMLResponse(render([Fortune(row["id"], row["message"]) for row in rows]))
