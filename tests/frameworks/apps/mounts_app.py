"""A native application with those of other frameworks below it, and ASGI middleware around it."""

from __future__ import annotations

import contextlib

import course
import fastapi_app
import flask_app
import starlette_app
from citius import App, Request, json_response
from citius.web.interop import asgi_scope
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.middleware.cors import CORSMiddleware
from starlette.middleware.gzip import GZipMiddleware
from starlette.middleware.sessions import SessionMiddleware
from starlette.responses import PlainTextResponse, StreamingResponse
from starlette.routing import Mount, Route
from werkzeug.middleware.dispatcher import DispatcherMiddleware

mounts = App()
mounts.mount("/fastapi", fastapi_app.app)
mounts.mount("/starlette", starlette_app.app)
mounts.mount_wsgi("/flask", flask_app.app)


@mounts.get("/native")
def native():
    return "native"


wrapped = App()
wrapped.add_middleware(
    CORSMiddleware, allow_origins=["https://shop.example"], allow_credentials=True
)
wrapped.add_middleware(SessionMiddleware, secret_key="not a secret")
wrapped.add_middleware(GZipMiddleware, minimum_size=500)


@wrapped.get("/text")
def text():
    return "x" * 10_000


@wrapped.get("/stream")
async def stream():
    async for piece in course.async_pieces():
        yield piece


@wrapped.get("/count")
def count(request: Request):
    session = asgi_scope(request)["session"]
    session["count"] = session.get("count", 0) + 1
    return json_response(session["count"])


@wrapped.get("/broken")
def broken():
    raise ValueError("a defect")


# The same with what the frameworks have for it.


@contextlib.asynccontextmanager
async def lifespan(app):
    async with starlette_app.lifespan(starlette_app.app) as state:
        yield state


mounts_reference = Starlette(
    routes=[
        Route("/native", lambda request: PlainTextResponse("native")),
        Mount("/fastapi", fastapi_app.app),
        Mount("/starlette", starlette_app.app),
    ],
    lifespan=lifespan,
)
flask_reference = DispatcherMiddleware(
    lambda environ, start_response: [], {"/flask": flask_app.app}
)


async def text_reference(request):
    return PlainTextResponse("x" * 10_000)


async def stream_reference(request):
    return StreamingResponse(course.async_pieces(), media_type="application/octet-stream")


async def broken_reference(request):
    raise ValueError("a defect")


wrapped_reference = Starlette(
    routes=[
        Route("/text", text_reference),
        Route("/stream", stream_reference),
        Route("/count", starlette_app.count),
        Route("/broken", broken_reference),
    ],
    middleware=[
        Middleware(CORSMiddleware, allow_origins=["https://shop.example"], allow_credentials=True),
        Middleware(SessionMiddleware, secret_key="not a secret"),
        Middleware(GZipMiddleware, minimum_size=500),
    ],
)
