"""What a contestant on Citius does the same whether it compiles its other handlers or not."""

import asyncio

import records_msgspec as records
import work
from citius import Response


def add(app, decode=records.parse_msgpack, sleeps=True):
    """Give ``app`` the routes whose work is not worth compiling; two of them are procedures, too.

    ``decode`` decodes the packed records and returns how many there were, as text. Without ``sleeps`` there is no ``/async``.
    """

    @app.rpc
    @app.get("/")
    def hello():
        return "Welcome!\n"

    @app.rpc("parse-msgpack")
    @app.get("/parse-msgpack")
    def parse_msgpack(texts: str = ""):
        return decode(texts == "varied")

    @app.get("/encode-json")
    def encode_json():
        return records.encode_json()

    @app.get("/transfer-data")
    def transfer_data():
        return Response(records.JSON_ARRAY, content_type="application/json")

    @app.post("/upload")
    def upload(request):
        return str(len(request.body()))

    if sleeps:

        @app.get("/async")
        async def sleep():
            await asyncio.sleep(0.002)
            return "OK"

    @app.get("/fibonacci")
    def fibonacci(first: int | None = None):
        return work.fibonacci_answer(first)

    @app.get("/greet/{name}")
    def greet(name: str, times: int):
        return {"hello": [name] * times}

    @app.get("/wait")
    async def wait(ms: int):
        if ms:
            await asyncio.sleep(ms / 1000)
        return "OK"
