"""The contract on Japronto 0.1.2, the server of article 002, on the Python it was built for."""

import argparse
import asyncio

import records_stdlib as records
import work
from japronto import Application


def hello(request):
    return request.Response(text="Welcome!\n")


def parse_msgpack(request):
    return request.Response(text=records.parse_msgpack(request.query.get("texts") == "varied"))


def encode_json(request):
    return request.Response(text=records.encode_json())


def transfer_data(request):
    return request.Response(body=records.JSON_ARRAY, mime_type="application/json")


def million_loop(request):
    return request.Response(text=str(work.million_loop(int(request.query.get("seed", 1)))))


async def sleep(request):
    await asyncio.sleep(0.002)
    return request.Response(text="OK")


def fibonacci(request):
    return request.Response(text=work.fibonacci_answer(request.query.get("first")))


def classify(request):
    return request.Response(body=work.classify(request.path.encode()), mime_type="text/plain")


parser = argparse.ArgumentParser()
parser.add_argument("--port", type=int, required=True)
parser.add_argument("--workers", type=int, default=1)
options = parser.parse_args()

app = Application()
app.router.add_route("/", hello)
app.router.add_route("/parse-msgpack", parse_msgpack)
app.router.add_route("/encode-json", encode_json)
app.router.add_route("/transfer-data", transfer_data)
app.router.add_route("/million-loop", million_loop)
app.router.add_route("/async", sleep)
app.router.add_route("/fibonacci", fibonacci)
app.router.add_route("/classify/", classify)
app.router.add_route("/classify/{rest}", classify)
app.run(host="127.0.0.1", port=options.port, worker_num=options.workers)
