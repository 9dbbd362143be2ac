"""The contract on BlackSheep."""

import asyncio

import records_msgspec as records
import work
from blacksheep import Application, Content, Request, Response, get, text

app = Application()


@get("/")
async def hello():
    return text("Welcome!\n")


@get("/parse-msgpack")
async def parse_msgpack(texts: str = ""):
    return text(records.parse_msgpack(texts == "varied"))


@get("/encode-json")
async def encode_json():
    return text(records.encode_json())


@get("/transfer-data")
async def transfer_data():
    return Response(200, content=Content(b"application/json", records.JSON_ARRAY))


@get("/million-loop")
async def million_loop(seed: int = 1):
    return text(str(work.million_loop(seed)))


@get("/async")
async def sleep():
    await asyncio.sleep(0.002)
    return text("OK")


@get("/fibonacci")
async def fibonacci(first: int | None = None):
    return text(work.fibonacci_answer(first))


@get("/classify/*")
async def classify(request: Request):
    return text(work.classify(request.url.path).decode())
