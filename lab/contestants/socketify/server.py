"""The contract on socketify's native API."""

import argparse
import asyncio
import os

import records_msgspec as records
import work
from socketify import App, AppListenOptions

TEXT = "text/plain; charset=utf-8"


def hello(res, req):
    res.write_header("Content-Type", TEXT).end("Welcome!\n")


def parse_msgpack(res, req):
    res.write_header("Content-Type", TEXT).end(records.parse_msgpack(req.get_query("texts") == "varied"))


def encode_json(res, req):
    res.write_header("Content-Type", TEXT).end(records.encode_json())


def transfer_data(res, req):
    res.write_header("Content-Type", "application/json").end(records.JSON_ARRAY)


def million_loop(res, req):
    seed = int(req.get_query("seed") or 1)
    res.write_header("Content-Type", TEXT).end(str(work.million_loop(seed)))


async def sleep(res, req):
    await asyncio.sleep(0.002)
    res.cork(lambda res: res.write_header("Content-Type", TEXT).end("OK"))


def fibonacci(res, req):
    res.write_header("Content-Type", TEXT).end(work.fibonacci_answer(req.get_query("first")))


def classify(res, req):
    res.write_header("Content-Type", TEXT).end(work.classify(req.get_url().encode()))


def no_such_page(res, req):
    res.write_status(404).write_header("Content-Type", TEXT).end("no such page\n")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--workers", type=int, default=1)
    options = parser.parse_args()
    for _ in range(options.workers - 1):
        if os.fork() == 0:
            break
    app = App()
    app.get("/", hello)
    app.get("/parse-msgpack", parse_msgpack)
    app.get("/encode-json", encode_json)
    app.get("/transfer-data", transfer_data)
    app.get("/million-loop", million_loop)
    app.get("/async", sleep)
    app.get("/fibonacci", fibonacci)
    app.get("/classify/*", classify)
    app.any("/*", no_such_page)
    app.listen(AppListenOptions(port=options.port, host="127.0.0.1"), lambda config: None)
    app.run()


if __name__ == "__main__":
    main()
