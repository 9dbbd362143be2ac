"""A profile from another service by pyreqwest, in the native API of Citius."""

from __future__ import annotations

import os
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
from citius import App
from pyreqwest.client import ClientBuilder

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from pyreqwest.client import Client


@asynccontextmanager
async def lifespan(app: App) -> AsyncIterator[None]:
    certificate = Path(os.environ["SSL_CERT_FILE"]).read_bytes()
    async with AsyncExitStack() as stack:
        for name in ("UPSTREAM_URL", "UPSTREAM_TLS_URL", "UPSTREAM_H2_URL"):
            builder = ClientBuilder().base_url(os.environ[name] + "/")
            builder = builder.add_root_certificate_pem(certificate)
            clients[name] = await stack.enter_async_context(builder.build())
        yield


clients: dict[str, Client] = {}
app = App(lifespan=lifespan)


class Profile(msgspec.Struct):
    id: int
    name: str
    email: str
    street: str
    city: str
    is_active: bool
    score: float


decode = msgspec.json.Decoder(Profile).decode


async def profile(client: Client, id: int) -> Profile:
    response = await client.get(f"profiles/{id}").build().send()
    return decode(await response.bytes())


@app.get("/call/{id}")
async def call(id: int) -> Profile:
    return await profile(clients["UPSTREAM_URL"], id)


@app.get("/call-tls/{id}")
async def call_tls(id: int) -> Profile:
    return await profile(clients["UPSTREAM_TLS_URL"], id)


@app.get("/call-h2/{id}")
async def call_h2(id: int) -> Profile:
    return await profile(clients["UPSTREAM_H2_URL"], id)
