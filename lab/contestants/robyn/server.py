"""The contract on Robyn, which reads `--processes` and `--log-level` off the command line itself."""

import argparse
import asyncio

import records_msgspec as records
import work
from robyn import Request, Response, Robyn

TEXT = {"content-type": "text/plain; charset=utf-8"}
JSON = {"content-type": "application/json"}

app = Robyn(__file__)


def text(body):
    return Response(status_code=200, headers=TEXT, description=body)


@app.get("/")
def hello(request: Request):
    return text("Welcome!\n")


@app.get("/parse-msgpack")
def parse_msgpack(request: Request):
    return text(records.parse_msgpack(request.query_params.get("texts", "") == "varied"))


@app.get("/encode-json")
def encode_json(request: Request):
    return text(records.encode_json())


@app.get("/transfer-data")
def transfer_data(request: Request):
    return Response(status_code=200, headers=JSON, description=records.JSON_ARRAY)


@app.get("/million-loop")
def million_loop(request: Request):
    return text(str(work.million_loop(int(request.query_params.get("seed", "1")))))


@app.get("/async")
async def sleep(request: Request):
    await asyncio.sleep(0.002)
    return text("OK")


@app.get("/fibonacci")
def fibonacci(request: Request):
    return text(work.fibonacci_answer(request.query_params.get("first", None)))


@app.get("/classify/")
def classify_prefix(request: Request):
    # Robyn takes the slash off the end of every path.
    return text(work.classify(request.url.path.encode() + b"/"))


@app.get("/classify/*rest")
def classify(request: Request):
    return text(work.classify(request.url.path.encode()))


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--port", type=int, required=True)
    app.start(host="127.0.0.1", port=parser.parse_known_args()[0].port)
