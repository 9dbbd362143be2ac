"""The contract on granian's RSGI: a dict of paths, no framework."""

import asyncio

import records_msgspec as records
import work

TEXT = [("content-type", "text/plain; charset=utf-8")]
JSON = [("content-type", "application/json")]


async def hello(scope, protocol):
    protocol.response_str(200, TEXT, "Welcome!\n")


async def parse_msgpack(scope, protocol):
    protocol.response_str(200, TEXT, records.parse_msgpack(work.is_varied(scope.query_string)))


async def encode_json(scope, protocol):
    protocol.response_str(200, TEXT, records.encode_json())


async def transfer_data(scope, protocol):
    protocol.response_bytes(200, JSON, records.JSON_ARRAY)


async def million_loop(scope, protocol):
    seed = work.seed_of(scope.query_string)
    protocol.response_str(200, TEXT, str(work.million_loop(seed)))


async def sleep(scope, protocol):
    await asyncio.sleep(0.002)
    protocol.response_str(200, TEXT, "OK")


async def fibonacci(scope, protocol):
    protocol.response_str(200, TEXT, work.fibonacci_answer(work.first_of(scope.query_string)))


async def classify(scope, protocol):
    protocol.response_bytes(200, TEXT, work.classify(scope.path.encode()))


ROUTES = {
    "/": hello,
    "/parse-msgpack": parse_msgpack,
    "/encode-json": encode_json,
    "/transfer-data": transfer_data,
    "/million-loop": million_loop,
    "/async": sleep,
    "/fibonacci": fibonacci,
}


async def app(scope, protocol):
    path = scope.path
    handler = ROUTES.get(path)
    if handler is not None:
        await handler(scope, protocol)
    elif path.startswith("/classify/"):
        await classify(scope, protocol)
    else:
        protocol.response_str(404, TEXT, "no such page\n")
