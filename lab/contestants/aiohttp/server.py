"""The contract on aiohttp's own server."""

import argparse
import asyncio
import os
import socket

import records_msgspec as records
import uvloop
import work
from aiohttp import web

routes = web.RouteTableDef()


@routes.get("/")
async def hello(request):
    return web.Response(text="Welcome!\n")


@routes.get("/parse-msgpack")
async def parse_msgpack(request):
    return web.Response(text=records.parse_msgpack(request.query.get("texts") == "varied"))


@routes.get("/encode-json")
async def encode_json(request):
    return web.Response(text=records.encode_json())


@routes.get("/transfer-data")
async def transfer_data(request):
    return web.Response(body=records.JSON_ARRAY, content_type="application/json")


@routes.get("/million-loop")
async def million_loop(request):
    return web.Response(text=str(work.million_loop(int(request.query.get("seed", 1)))))


@routes.get("/async")
async def sleep(request):
    await asyncio.sleep(0.002)
    return web.Response(text="OK")


@routes.get("/fibonacci")
async def fibonacci(request):
    return web.Response(text=work.fibonacci_answer(request.query.get("first")))


@routes.get("/classify/{rest:.*}")
async def classify(request):
    return web.Response(body=work.classify(request.path.encode()), content_type="text/plain")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--workers", type=int, default=1)
    options = parser.parse_args()
    for _ in range(options.workers - 1):
        if os.fork() == 0:
            break
    listener = socket.socket()
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
    listener.bind(("127.0.0.1", options.port))
    app = web.Application()
    app.add_routes(routes)
    web.run_app(
        app, sock=listener, backlog=2048, access_log=None, print=None, loop=uvloop.new_event_loop()
    )


if __name__ == "__main__":
    main()
