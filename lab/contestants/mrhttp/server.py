"""The contract on mrhttp, whose C core runs simple handlers without a coroutine."""

import argparse
import asyncio

import mrhttp
import records_msgspec as records
import work

app = mrhttp.Application()


@app.route("/", _type="text")
def hello(r):
    return "Welcome!\n"


@app.route("/parse-msgpack", _type="text")
def parse_msgpack(r):
    return records.parse_msgpack(work.is_varied(r.query_string or ""))


@app.route("/encode-json", _type="text")
def encode_json(r):
    return records.encode_json()


@app.route("/transfer-data", _type="json")
def transfer_data(r):
    return records.JSON_ARRAY.decode()


@app.route("/million-loop", _type="text")
def million_loop(r):
    return str(work.million_loop(work.seed_of(r.query_string or "")))


@app.route("/async", _type="text")
async def sleep(r):
    await asyncio.sleep(0.002)
    return "OK"


@app.route("/fibonacci", _type="text")
def fibonacci(r):
    return work.fibonacci_answer(work.first_of(r.query_string))


@app.route("/classify/", _type="text")
def classify_prefix(r):
    return work.classify(r.path.encode()).decode()


@app.route("/classify/{}", _type="text")
def classify(r, rest):
    return work.classify(r.path.encode()).decode()


parser = argparse.ArgumentParser()
parser.add_argument("--port", type=int, required=True)
parser.add_argument("--workers", type=int, default=1)
options = parser.parse_args()
app.run(host="127.0.0.1", port=options.port, cores=options.workers)
