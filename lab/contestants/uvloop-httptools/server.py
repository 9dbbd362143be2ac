"""The contract as one asyncio protocol class: uvloop moves the bytes, httptools parses them.

No server is involved, as in article 004. Requests of one connection are answered in order: while
a coroutine handler is under way, the parsed requests behind it wait in a queue.
"""

import argparse
import asyncio
import os
import socket
from collections import deque

import httptools
import records_msgspec as records
import uvloop
import work

TEXT = b"text/plain; charset=utf-8"
JSON = b"application/json"
REASONS = {200: b"OK", 400: b"Bad Request", 404: b"Not Found"}
REQUESTS_QUEUED_MAX = 1024


def hello(query):
    return b"Welcome!\n", TEXT


def parse_msgpack(query):
    return records.parse_msgpack(work.is_varied(query.decode())).encode(), TEXT


def encode_json(query):
    return records.encode_json().encode(), TEXT


def transfer_data(query):
    return records.JSON_ARRAY, JSON


def million_loop(query):
    return str(work.million_loop(work.seed_of(query.decode()))).encode(), TEXT


async def sleep():
    await asyncio.sleep(0.002)
    return b"OK", TEXT


def fibonacci(query):
    return work.fibonacci_answer(work.first_of(query.decode())).encode(), TEXT


ROUTES = {
    b"/": hello,
    b"/parse-msgpack": parse_msgpack,
    b"/encode-json": encode_json,
    b"/transfer-data": transfer_data,
    b"/million-loop": million_loop,
    b"/fibonacci": fibonacci,
}


def response(status, body, content_type):
    return b"HTTP/1.1 %d %s\r\nContent-Type: %s\r\nContent-Length: %d\r\n\r\n%s" % (
        status,
        REASONS[status],
        content_type,
        len(body),
        body,
    )


class HttpProtocol(asyncio.Protocol):
    def __init__(self, loop):
        self.loop = loop
        self.transport = None
        self.parser = None
        self.target = b""
        self.waiting = deque()
        self.sleeping = False

    def connection_made(self, transport):
        self.transport = transport
        self.parser = httptools.HttpRequestParser(self)

    def data_received(self, data):
        try:
            self.parser.feed_data(data)
        except httptools.HttpParserError:
            self.transport.write(response(400, b"not a request\n", TEXT))
            self.transport.close()
            return
        if len(self.waiting) > REQUESTS_QUEUED_MAX:
            self.transport.close()

    def on_message_begin(self):
        self.target = b""

    def on_url(self, url):
        self.target += url

    def on_message_complete(self):
        item = (self.target, self.parser.should_keep_alive())
        if self.sleeping:
            self.waiting.append(item)
        else:
            self.answer(*item)

    def answer(self, target, keep_alive):
        url = httptools.parse_url(target)
        path = url.path
        if path == b"/async":
            self.sleeping = True
            task = self.loop.create_task(sleep())
            task.add_done_callback(lambda done: self.awake(done, keep_alive))
            return
        handler = ROUTES.get(path)
        if handler is not None:
            self.finish(200, *handler(url.query or b""), keep_alive)
        elif path.startswith(b"/classify/"):
            self.finish(200, work.classify(path), TEXT, keep_alive)
        else:
            self.finish(404, b"no such page\n", TEXT, keep_alive)

    def finish(self, status, body, content_type, keep_alive):
        self.transport.write(response(status, body, content_type))
        if not keep_alive:
            self.transport.close()

    def awake(self, task, keep_alive):
        self.sleeping = False
        self.finish(200, *task.result(), keep_alive)
        while self.waiting and not self.sleeping and not self.transport.is_closing():
            self.answer(*self.waiting.popleft())


async def serve(port):
    loop = asyncio.get_running_loop()
    listener = socket.socket()
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
    listener.bind(("127.0.0.1", port))
    server = await loop.create_server(lambda: HttpProtocol(loop), sock=listener, backlog=2048)
    await server.serve_forever()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--workers", type=int, default=1)
    options = parser.parse_args()
    for _ in range(options.workers - 1):
        if os.fork() == 0:
            break
    try:
        uvloop.run(serve(options.port))
    except KeyboardInterrupt:
        pass


if __name__ == "__main__":
    main()
