"""A profile from another service by aiohttp's client on FastAPI."""

from __future__ import annotations

import os
from contextlib import AsyncExitStack, asynccontextmanager
from typing import TYPE_CHECKING

import aiohttp
from fastapi import FastAPI
from pydantic import BaseModel

if TYPE_CHECKING:
    from collections.abc import AsyncIterator


@asynccontextmanager
async def lifespan(app: FastAPI) -> AsyncIterator[None]:
    async with AsyncExitStack() as stack:
        for name in ("UPSTREAM_URL", "UPSTREAM_TLS_URL"):
            session = aiohttp.ClientSession(os.environ[name])
            sessions[name] = await stack.enter_async_context(session)
        yield


sessions: dict[str, aiohttp.ClientSession] = {}
app = FastAPI(lifespan=lifespan, openapi_url=None)


class Profile(BaseModel):
    id: int
    name: str
    email: str
    street: str
    city: str
    is_active: bool
    score: float


async def profile(session: aiohttp.ClientSession, id: int) -> Profile:
    async with session.get(f"/profiles/{id}") as response:
        return Profile.model_validate_json(await response.read())


@app.get("/call/{id}")
async def call(id: int) -> Profile:
    return await profile(sessions["UPSTREAM_URL"], id)


@app.get("/call-tls/{id}")
async def call_tls(id: int) -> Profile:
    return await profile(sessions["UPSTREAM_TLS_URL"], id)
