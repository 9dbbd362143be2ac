"""Rows as JSON, encoded by the client itself: no object of Python is made of them."""

from __future__ import annotations

import os
from typing import Annotated

from citius import App, Query, Response, pg

pool = pg.Pool(os.environ["DATABASE_URL"], size=8)
app = App(lifespan=pool.lifespan)

WORLD = 'SELECT id, randomnumber AS "randomNumber" FROM world WHERE id = $1'
ITEMS = (
    'SELECT id, name, category, price, quantity, active, tags, rating_score AS "rating.score", '
    'rating_count AS "rating.count" FROM items WHERE price BETWEEN $1 AND $2 LIMIT $3'
)


@app.get("/db")
async def db_one(id: int) -> Response:
    return Response(await pool.fetch_json_one(WORLD, id), content_type="application/json")


@app.get("/async-db")
async def db_rows(min: int, max: int, limit: Annotated[int, Query(le=100)]) -> Response:
    body = await pool.fetch_json(ITEMS, min, max, limit, items="items")
    return Response(body, content_type="application/json")
