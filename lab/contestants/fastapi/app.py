"""The contract on FastAPI. Every handler is a coroutine: a `def` would cost a thread's turn."""

import asyncio

import records_msgspec as records
import work
from fastapi import FastAPI, Request, Response
from fastapi.responses import JSONResponse, PlainTextResponse

app = FastAPI(default_response_class=PlainTextResponse)


@app.get("/")
async def hello():
    return PlainTextResponse("Welcome!\n")


@app.get("/parse-msgpack")
async def parse_msgpack(texts: str = ""):
    return PlainTextResponse(records.parse_msgpack(texts == "varied"))


@app.get("/encode-json")
async def encode_json():
    return PlainTextResponse(records.encode_json())


@app.get("/transfer-data")
async def transfer_data():
    return Response(records.JSON_ARRAY, media_type="application/json")


@app.get("/million-loop")
async def million_loop(seed: int = 1):
    return PlainTextResponse(str(work.million_loop(seed)))


@app.get("/async")
async def sleep():
    await asyncio.sleep(0.002)
    return PlainTextResponse("OK")


@app.get("/fibonacci")
async def fibonacci(first: int | None = None):
    return PlainTextResponse(work.fibonacci_answer(first))


@app.get("/greet/{name}", response_class=JSONResponse)
async def greet(name: str, times: int):
    return {"hello": [name] * times}


@app.get("/wait")
async def wait(ms: int):
    if ms:
        await asyncio.sleep(ms / 1000)
    return PlainTextResponse("OK")


@app.get("/classify/{rest:path}")
async def classify(request: Request):
    return PlainTextResponse(work.classify(request.url.path.encode()))
