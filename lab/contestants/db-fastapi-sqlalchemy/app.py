"""The workload ``orm`` on FastAPI and SQLAlchemy, as their documentation writes services."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Annotated

from fastapi import Depends, FastAPI, Query
from items_sqlalchemy import as_dict, engine_of, find, sessions_of
from pydantic import BaseModel
from sqlalchemy.ext.asyncio import AsyncSession

engine = engine_of("asyncpg")
make_session = sessions_of(engine)


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


@asynccontextmanager
async def lifespan(app: FastAPI) -> AsyncIterator[None]:
    yield
    await engine.dispose()


async def session() -> AsyncIterator[AsyncSession]:
    async with make_session() as opened:
        yield opened


app = FastAPI(lifespan=lifespan, openapi_url=None)


@app.get("/orm")
async def orm(
    min: int, max: int, limit: Annotated[int, Query(le=100)], session: Annotated[AsyncSession, Depends(session)]
) -> Page:
    rows = await find(session, min, max, limit)
    return Page(items=[Item(**as_dict(row)) for row in rows], count=len(rows))
