"""The contract on Tornado."""

import argparse
import asyncio

import records_msgspec as records
import work
from tornado.httpserver import HTTPServer
from tornado.netutil import bind_sockets
from tornado.process import fork_processes
from tornado.web import Application, RequestHandler


class Text(RequestHandler):
    def set_default_headers(self):
        self.set_header("Content-Type", "text/plain; charset=utf-8")


class Hello(Text):
    def get(self):
        self.write("Welcome!\n")


class ParseMsgpack(Text):
    def get(self):
        self.write(records.parse_msgpack(self.get_argument("texts", "") == "varied"))


class EncodeJson(Text):
    def get(self):
        self.write(records.encode_json())


class TransferData(RequestHandler):
    def get(self):
        self.set_header("Content-Type", "application/json")
        self.write(records.JSON_ARRAY)


class MillionLoop(Text):
    def get(self):
        self.write(str(work.million_loop(int(self.get_argument("seed", "1")))))


class Sleep(Text):
    async def get(self):
        await asyncio.sleep(0.002)
        self.write("OK")


class Fibonacci(Text):
    def get(self):
        self.write(work.fibonacci_answer(self.get_argument("first", None)))


class Classify(Text):
    def get(self):
        self.write(work.classify(self.request.path.encode()))


ROUTES = [
    (r"/", Hello),
    (r"/parse-msgpack", ParseMsgpack),
    (r"/encode-json", EncodeJson),
    (r"/transfer-data", TransferData),
    (r"/million-loop", MillionLoop),
    (r"/async", Sleep),
    (r"/fibonacci", Fibonacci),
    (r"/classify/.*", Classify),
]


async def serve(sockets):
    # Etags of every body would be work that no other contestant does.
    Application.log_request = lambda self, handler: None
    RequestHandler.compute_etag = lambda self: None
    server = HTTPServer(Application(ROUTES))
    server.add_sockets(sockets)
    await asyncio.Event().wait()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--workers", type=int, default=1)
    options = parser.parse_args()
    sockets = bind_sockets(options.port, "127.0.0.1", backlog=2048)
    if options.workers > 1:
        fork_processes(options.workers)
    asyncio.run(serve(sockets))


if __name__ == "__main__":
    main()
