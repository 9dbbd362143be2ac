"""A small HTTP server for the lab's tests; ``--fault`` makes it misbehave in a named way."""

import argparse
import asyncio
import os
import sys

ANSWERS = {"/": b"Welcome!\n", "/fibonacci": b"OK"}


def response(status, body):
    return (
        b"HTTP/1.1 %d X\r\nContent-Type: text/plain\r\nContent-Length: %d\r\n\r\n%s"
        % (status, len(body), body)
    )


def sums(target):
    """The sum of the sequence that ``/fibonacci?first=N`` asks for."""
    a, b, total = int(target.partition("=")[2]), 1, 0
    while a <= 100000000:
        a, b, total = b, a + b, total + a
    return b"%d" % total


class Service:
    def __init__(self, fault):
        self.fault = fault
        self.n_answered = 0

    async def serve(self, reader, writer):
        try:
            while True:
                head = await reader.readuntil(b"\r\n\r\n")
                _, target, version = head.split()[:3]
                writer.write(self.answer(target.decode()))
                if version == b"HTTP/1.0":
                    break
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()

    def answer(self, target):
        self.n_answered += 1
        if self.fault == "dies" and self.n_answered > 200:
            os._exit(7)
        if self.fault == "wrong" and target == "/fibonacci":
            return response(200, b"?")
        body = sums(target) if "?first=" in target else ANSWERS.get(target)
        return response(404, b"") if body is None else response(200, body)


async def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--fault", default="")
    options = parser.parse_args()
    if options.fault == "never listens":
        sys.exit("no licence found")
    if options.fault == "alone" and options.workers > 1:
        sys.exit("this edition has one worker")
    service = Service(options.fault)
    server = await asyncio.start_server(service.serve, options.host, options.port)
    await server.serve_forever()


asyncio.run(main())
