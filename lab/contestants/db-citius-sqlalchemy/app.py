"""The workload ``orm`` on SQLAlchemy and the dialect of ``citius.pg``, in the native API of Citius."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Annotated

import msgspec
from citius import App, Depends, Query
from items_sqlalchemy import as_dict, engine_of, find, sessions_of
from sqlalchemy.ext.asyncio import AsyncSession

engine = engine_of("citius")
make_session = sessions_of(engine)


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


@asynccontextmanager
async def lifespan(app: App) -> AsyncIterator[None]:
    yield
    await engine.dispose()


async def session() -> AsyncIterator[AsyncSession]:
    async with make_session() as opened:
        yield opened


app = App(lifespan=lifespan)


@app.get("/orm")
async def orm(
    min: int, max: int, limit: Annotated[int, Query(le=100)], session: Annotated[AsyncSession, Depends(session)]
) -> Page:
    rows = await find(session, min, max, limit)
    items = msgspec.convert([as_dict(row) for row in rows], list[Item])
    return Page(items, len(items))
