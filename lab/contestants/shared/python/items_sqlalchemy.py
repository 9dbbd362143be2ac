"""The table ``items`` as a model of SQLAlchemy, and the page of it that the workload ``orm`` asks for."""

from __future__ import annotations

import os
from typing import Any

from sqlalchemy import make_url, select
from sqlalchemy.dialects.postgresql import JSONB
from sqlalchemy.ext.asyncio import AsyncEngine, AsyncSession, async_sessionmaker, create_async_engine
from sqlalchemy.orm import DeclarativeBase, Mapped, mapped_column


class Base(DeclarativeBase):
    type_annotation_map = {list[str]: JSONB}  # noqa: RUF012 - as SQLAlchemy declares it


class Item(Base):
    __tablename__ = "items"
    id: Mapped[int] = mapped_column(primary_key=True)
    name: Mapped[str]
    category: Mapped[str]
    price: Mapped[int]
    quantity: Mapped[int]
    active: Mapped[bool]
    tags: Mapped[list[str]]
    rating_score: Mapped[int]
    rating_count: Mapped[int]


def engine_of(driver: str) -> AsyncEngine:
    """Return an engine with eight connections."""
    url = make_url(os.environ["DATABASE_URL"]).set(drivername=f"postgresql+{driver}")
    return create_async_engine(url, pool_size=8, max_overflow=0)


def sessions_of(engine: AsyncEngine) -> async_sessionmaker[AsyncSession]:
    """Return what makes a session for each request."""
    return async_sessionmaker(engine, expire_on_commit=False)


async def find(session: AsyncSession, low: int, high: int, limit: int) -> list[Item]:
    """Return items whose price is in a range."""
    asked = select(Item).where(Item.price.between(low, high)).limit(limit)
    return list(await session.scalars(asked))


def as_dict(item: Item) -> dict[str, Any]:
    """Return an item as it is sent."""
    return {
        "id": item.id,
        "name": item.name,
        "category": item.category,
        "price": item.price,
        "quantity": item.quantity,
        "active": item.active,
        "tags": item.tags,
        "rating": {"score": item.rating_score, "count": item.rating_count},
    }
