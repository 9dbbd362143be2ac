"""A service on FastAPI: CORS, compression, sessions, and the time a request took."""

import time

from fastapi import FastAPI, Request
from fastapi.middleware.cors import CORSMiddleware
from fastapi.middleware.gzip import GZipMiddleware
from starlette.middleware.sessions import SessionMiddleware

app = FastAPI()
app.add_middleware(SessionMiddleware, secret_key="-")
app.add_middleware(GZipMiddleware, minimum_size=1000)
app.add_middleware(CORSMiddleware, allow_origins=["https://shop.example"])


@app.middleware("http")
async def timed(request: Request, call_next):
    began_at = time.perf_counter()
    response = await call_next(request)
    response.headers["Server-Timing"] = f"app;dur={(time.perf_counter() - began_at) * 1e3:.2f}"
    return response


@app.get("/greet/{name}")
async def greet(name: str, times: int):
    return {"hello": [name] * times}
