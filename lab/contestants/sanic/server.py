"""The contract on Sanic's own server."""

import argparse
import asyncio

import records_msgspec as records
import work
from sanic import Sanic
from sanic.response import raw, text

app = Sanic("contract")
app.config.OAS = False


@app.get("/")
async def hello(request):
    return text("Welcome!\n")


@app.get("/parse-msgpack")
async def parse_msgpack(request):
    return text(records.parse_msgpack(request.args.get("texts") == "varied"))


@app.get("/encode-json")
async def encode_json(request):
    return text(records.encode_json())


@app.get("/transfer-data")
async def transfer_data(request):
    return raw(records.JSON_ARRAY, content_type="application/json")


@app.get("/million-loop")
async def million_loop(request):
    return text(str(work.million_loop(int(request.args.get("seed", 1)))))


@app.get("/async")
async def sleep(request):
    await asyncio.sleep(0.002)
    return text("OK")


@app.get("/fibonacci")
async def fibonacci(request):
    return text(work.fibonacci_answer(request.args.get("first")))


@app.get("/classify/", name="classify_empty")
@app.get("/classify/<rest:path>")
async def classify(request, rest=""):
    return raw(work.classify(request.path.encode()), content_type="text/plain")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--workers", type=int, default=1)
    options = parser.parse_args()
    app.run(
        host="127.0.0.1",
        port=options.port,
        workers=options.workers,
        single_process=options.workers == 1,
        access_log=False,
        motd=False,
        backlog=2048,
    )


if __name__ == "__main__":
    main()
