"""A profile from another service by citius.http."""

from __future__ import annotations

import os
from contextlib import AsyncExitStack, asynccontextmanager
from typing import TYPE_CHECKING

import msgspec
from citius import App
from citius.http import Client

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

plain, tls, h2 = (
    Client(os.environ[name]) for name in ("UPSTREAM_URL", "UPSTREAM_TLS_URL", "UPSTREAM_H2_URL")
)


@asynccontextmanager
async def lifespan(app: App) -> AsyncIterator[None]:
    async with AsyncExitStack() as stack:
        for client in (plain, tls, h2):
            await stack.enter_async_context(client)
        yield


app = App(lifespan=lifespan)


class Profile(msgspec.Struct):
    id: int
    name: str
    email: str
    street: str
    city: str
    is_active: bool
    score: float


async def profile(client: Client, id: int) -> Profile:
    return (await client.get(f"/profiles/{id}")).decode(Profile)


@app.get("/call/{id}")
async def call(id: int) -> Profile:
    return await profile(plain, id)


@app.get("/call-tls/{id}")
async def call_tls(id: int) -> Profile:
    return await profile(tls, id)


@app.get("/call-h2/{id}")
async def call_h2(id: int) -> Profile:
    return await profile(h2, id)
