"""The contract as a raw ASGI application: a dict of paths, no framework."""

import asyncio

import records_msgspec as records
import work

TEXT = b"text/plain; charset=utf-8"
JSON = b"application/json"


async def hello(scope):
    """Answer the greeting."""
    return b"Welcome!\n", TEXT


async def parse_msgpack(scope):
    """Answer the number of records decoded."""
    is_varied = work.is_varied(scope["query_string"].decode())
    return records.parse_msgpack(is_varied).encode(), TEXT


async def encode_json(scope):
    """Answer the length of the array encoded."""
    return records.encode_json().encode(), TEXT


async def transfer_data(scope):
    """Answer the array in memory."""
    return records.JSON_ARRAY, JSON


async def upload(receive):
    """Answer the number of bytes that came."""
    n_bytes, more = 0, True
    while more:
        message = await receive()
        if message["type"] == "http.disconnect":
            break
        n_bytes += len(message.get("body", b""))
        more = message.get("more_body", False)
    return str(n_bytes).encode(), TEXT


async def million_loop(scope):
    """Answer the total of the loop."""
    seed = work.seed_of(scope["query_string"].decode())
    return str(work.million_loop(seed)).encode(), TEXT


async def sleep(scope):
    """Answer after 2 ms."""
    await asyncio.sleep(0.002)
    return b"OK", TEXT


async def fibonacci(scope):
    """Answer OK after building the sequence."""
    return work.fibonacci_answer(work.first_of(scope["query_string"].decode())).encode(), TEXT


async def greet(scope):
    """Answer a small object in JSON."""
    query = scope["query_string"].decode()
    return records.json_of(work.greeting(scope["path"], query)), JSON


async def wait(scope):
    """Answer after as many ms as asked for."""
    if ms := work.number_of(scope["query_string"].decode(), "ms", 0):
        await asyncio.sleep(ms / 1000)
    return b"OK", TEXT


async def classify(scope):
    """Answer the five counts for the request path."""
    return work.classify(scope["path"].encode()), TEXT


ROUTES = {
    "/": hello,
    "/parse-msgpack": parse_msgpack,
    "/encode-json": encode_json,
    "/transfer-data": transfer_data,
    "/million-loop": million_loop,
    "/async": sleep,
    "/fibonacci": fibonacci,
    "/wait": wait,
}


async def app(scope, receive, send):
    """Route one request."""
    path = scope["path"]
    handler = ROUTES.get(path)
    status = 200
    if handler is not None:
        body, content_type = await handler(scope)
    elif path == "/upload" and scope["method"] == "POST":
        body, content_type = await upload(receive)
    elif path.startswith("/classify/"):
        body, content_type = await classify(scope)
    elif path.startswith("/greet/"):
        body, content_type = await greet(scope)
    else:
        status, body, content_type = 404, b"no such page\n", TEXT
    await send(
        {
            "type": "http.response.start",
            "status": status,
            "headers": [
                (b"content-type", content_type),
                (b"content-length", str(len(body)).encode()),
            ],
        }
    )
    await send({"type": "http.response.body", "body": body})
