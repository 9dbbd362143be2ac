"""A profile from another service by httpx on FastAPI, as their documentation writes services."""

from __future__ import annotations

import os
from contextlib import AsyncExitStack, asynccontextmanager
from typing import TYPE_CHECKING

import httpx
from fastapi import FastAPI
from pydantic import BaseModel

if TYPE_CHECKING:
    from collections.abc import AsyncIterator


@asynccontextmanager
async def lifespan(app: FastAPI) -> AsyncIterator[None]:
    async with AsyncExitStack() as stack:
        for name in ("UPSTREAM_URL", "UPSTREAM_TLS_URL", "UPSTREAM_H2_URL"):
            client = httpx.AsyncClient(base_url=os.environ[name], http2=name == "UPSTREAM_H2_URL")
            clients[name] = await stack.enter_async_context(client)
        yield


clients: dict[str, httpx.AsyncClient] = {}
app = FastAPI(lifespan=lifespan, openapi_url=None)


class Profile(BaseModel):
    id: int
    name: str
    email: str
    street: str
    city: str
    is_active: bool
    score: float


async def profile(client: httpx.AsyncClient, id: int) -> Profile:
    response = await client.get(f"/profiles/{id}")
    return Profile.model_validate_json(response.content)


@app.get("/call/{id}")
async def call(id: int) -> Profile:
    return await profile(clients["UPSTREAM_URL"], id)


@app.get("/call-tls/{id}")
async def call_tls(id: int) -> Profile:
    return await profile(clients["UPSTREAM_TLS_URL"], id)


@app.get("/call-h2/{id}")
async def call_h2(id: int) -> Profile:
    return await profile(clients["UPSTREAM_H2_URL"], id)
