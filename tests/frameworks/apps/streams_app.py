"""Streams that wait for an upstream which never answers, made by Starlette, FastAPI and sse-starlette.

Each says one line and then waits; `/ended` counts those whose generator was cancelled or closed.
"""

import asyncio
from collections import Counter

from fastapi import FastAPI
from fastapi.responses import StreamingResponse
from sse_starlette import EventSourceResponse
from starlette.applications import Starlette
from starlette.middleware.base import BaseHTTPMiddleware
from starlette.responses import StreamingResponse as StarletteStreamingResponse
from starlette.routing import Mount, Route

ended: Counter[str] = Counter()


async def wait_for_upstream(name):
    try:
        yield "first\n"
        await asyncio.Event().wait()
    finally:
        ended[name] += 1


async def starlette_stream(request):
    return StarletteStreamingResponse(wait_for_upstream("starlette"), media_type="text/plain")


async def pass_on(request, call_next):
    return await call_next(request)


app = FastAPI()


@app.get("/ended")
async def show_ended():
    return ended


@app.get("/fastapi")
async def fastapi_stream():
    return StreamingResponse(wait_for_upstream("fastapi"), media_type="text/plain")


@app.post("/fastapi")
async def fastapi_stream_after_body(question: dict[str, str]):
    return StreamingResponse(wait_for_upstream("fastapi"), media_type="text/plain")


@app.get("/sse")
async def sse_stream():
    return EventSourceResponse(wait_for_upstream("sse"))


plain = Starlette(routes=[Route("/stream", starlette_stream)])
wrapped = Starlette(routes=[Route("/stream", starlette_stream)])
wrapped.add_middleware(BaseHTTPMiddleware, dispatch=pass_on)
app.router.routes += [Mount("/starlette", plain), Mount("/middleware", wrapped)]
