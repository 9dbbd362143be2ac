"""Tools for assistants over PostgreSQL: a warehouse that a model can search, fill and order from.

    DATABASE=postgresql://app@localhost/warehouse citius serve examples/tools/app.py
    DATABASE=postgresql://app@localhost/warehouse citius mcp examples/tools/app.py

The first serves clients at http://127.0.0.1:8000/mcp, the second one that starts it. The table is made at the
start, by one worker at a time. docs/guides/mcp.md explains the parts.
"""

from __future__ import annotations

import os
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Annotated

import msgspec
from citius import App, FromPool, NotFound, pg
from citius.mcp import Context, ToolError

TABLE = """
CREATE TABLE IF NOT EXISTS item (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    name text NOT NULL UNIQUE,
    quantity integer NOT NULL CHECK (quantity >= 0)
)
"""

pool = pg.Pool(os.environ.get("DATABASE", "postgresql://app@localhost/warehouse"), size=8)


async def create_table() -> None:
    # Of two sessions that execute CREATE TABLE IF NOT EXISTS at once, one may fail: a lock lets one after the
    # other do it. Its number is this application's choice.
    async with pool.transaction() as tx:
        await tx.execute("SELECT pg_advisory_xact_lock(7401)")
        await tx.execute(TABLE)


@asynccontextmanager
async def lifespan(app: App) -> AsyncGenerator[None]:
    async with pool.lifespan(app):
        await create_table()
        yield


app = App(lifespan=lifespan)
mcp = app.mcp(
    "/mcp", name="warehouse", version="1.0.0",
    instructions="Search before you order. Quantities are pieces.",
)  # fmt: skip

Transaction = Annotated[pg.Transaction, FromPool(pool)]
Quantity = Annotated[int, msgspec.Meta(ge=1, le=1000, description="pieces")]


@dataclass
class Item:
    id: int
    name: str
    quantity: int


@dataclass
class Confirmation:
    confirmed: bool


@mcp.tool(read_only=True)
async def search_items(
    text: str, limit: Annotated[int, msgspec.Meta(ge=1, le=50)] = 10
) -> list[Item]:
    """Find items by a part of their names.

    Args:
        text: The part; all items without one.
        limit: How many at most.
    """
    return await pool.fetch(
        "SELECT id, name, quantity FROM item WHERE name ILIKE '%' || $1 || '%' ORDER BY name LIMIT $2",
        text, limit, as_=Item,
    )  # fmt: skip


@mcp.tool
async def add_item(name: Annotated[str, msgspec.Meta(min_length=1)], quantity: Quantity) -> Item:
    """Put pieces of an item into the warehouse; an item that is not there yet is made."""
    found = await pool.fetch_one(
        "INSERT INTO item (name, quantity) VALUES ($1, $2) "
        "ON CONFLICT (name) DO UPDATE SET quantity = item.quantity + $2 RETURNING id, name, quantity",
        name, quantity, as_=Item,
    )  # fmt: skip
    assert found is not None, "an INSERT returns its row"
    return found


@mcp.tool(destructive=True)
async def order_item(context: Context, id: int, quantity: Quantity, tx: Transaction) -> Item:
    """Take pieces of an item out of the warehouse; more than ten have to be confirmed by the user."""
    if quantity > 10:
        answer = await context.elicit(f"Order {quantity} pieces of item {id}?", Confirmation)
        if answer.value is None or not answer.value.confirmed:
            raise ToolError("the user has not confirmed the order")
    item = await tx.fetch_one(
        "SELECT id, name, quantity FROM item WHERE id = $1 FOR UPDATE", id, as_=Item
    )
    if item is None:
        raise ToolError(f"there is no item {id}: search_items finds items")
    if item.quantity < quantity:
        raise ToolError(f"there are only {item.quantity} pieces of {item.name}")
    await tx.execute("UPDATE item SET quantity = quantity - $2 WHERE id = $1", id, quantity)
    tx.on_commit(mcp.resource_updated, f"items://{id}")
    return Item(id, item.name, item.quantity - quantity)


@mcp.resource("items://{id}")
async def item(id: int) -> Item:
    """An item of the warehouse."""
    found = await pool.fetch_one("SELECT id, name, quantity FROM item WHERE id = $1", id, as_=Item)
    if found is None:
        raise NotFound("there is no such item")
    return found


@mcp.prompt
def restock(supplier: str) -> str:
    """Have an order written to a supplier."""
    return f"Search the warehouse for items with fewer than 5 pieces, and write an order to {supplier}."
