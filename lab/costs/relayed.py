"""Memory of streams that `app.forward` passes on: `relayed.py [--streams N]`.

A server of events, a worker of Citius before it, and a client, each a process of its own. Opens streams
through the worker, waits for the first event of each, and prints by how much the proportional set size of the
worker has grown. The worker needs three descriptors per stream.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import multiprocessing
import resource
import socket
import sys
import tempfile
import time
from pathlib import Path

from served import START_S, served

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "lab"))

from citius_lab.processes import launch  # noqa: E402

APPLICATION = """
from citius import App
from citius.http import Client, Limits

many = Limits(connections_max={most}, connections_per_origin_max={most})
app = App()
app.forward("/{{path:path}}", Client("http://127.0.0.1:{port}", limits=many), requests_max={most})
"""
REQUEST = b"GET /events HTTP/1.1\r\nHost: localhost\r\nAccept: text/event-stream\r\n\r\n"
EVENT = b"data: hello\n\n"
RESPONSE = (
    b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
    b"%x\r\n%s\r\n" % (len(EVENT), EVENT)
)
# Of an accept queue: more that come at once would wait for a second try of TCP.
AT_ONCE = 200


async def events(port: int) -> None:
    """Answer each request with a stream that has had one event."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(asyncio.IncompleteReadError):  # of who asks whether it listens
            await reader.readuntil(b"\r\n\r\n")
            writer.write(RESPONSE)
            await reader.read()
        writer.close()

    async with await asyncio.start_server(serve, "127.0.0.1", port, backlog=1024) as server:
        await server.serve_forever()


def serve_events(port: int) -> None:
    """Do that in a process."""
    asyncio.run(events(port))


def opened(port: int, number: int) -> list[socket.socket]:
    """Return so many streams that have had their first event."""
    streams: list[socket.socket] = []
    while len(streams) < number:
        some = [socket.create_connection(("127.0.0.1", port)) for _ in range(AT_ONCE)]
        for one in some:
            one.settimeout(60)
            one.sendall(REQUEST)
        for one in some:
            received = b""
            while EVENT not in received:
                piece = one.recv(4096)
                if not piece:
                    sys.exit(f"relayed: a stream ended after {received!r}")
                received += piece
        streams += some
    return streams


def grown_kib(folder: Path, number: int) -> float:
    """Return by how many KiB a worker has grown with so many streams."""
    behind = launch.free_port()
    origin = multiprocessing.get_context("spawn").Process(target=serve_events, args=(behind,))
    origin.start()
    most = number + 2 * AT_ONCE
    source = APPLICATION.format(port=behind, most=most)
    try:
        if not launch.accepts(behind, START_S):
            sys.exit("relayed: the server of events does not start")
        with served(folder, source, "--connections-max", str(most)) as (port, pid):
            # The first ones fill what all connections share.
            streams = opened(port, AT_ONCE)
            before = launch.pss_kib([pid])
            streams += opened(port, number)
            grown = launch.pss_kib([pid]) - before
            # What is given back after a turn is no part of a stream.
            time.sleep(1)
            grown = min(grown, launch.pss_kib([pid]) - before)
            for one in streams:
                one.close()
            return grown
    finally:
        origin.terminate()
        origin.join()


def main() -> None:
    """Measure, and print a line."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--streams", type=int, default=5000)
    number = parser.parse_args().streams
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    with tempfile.TemporaryDirectory() as name:
        found = grown_kib(Path(name), number)
    print(f"{number} streams passed on: {found / 1024:.1f} MiB, {found / number:.1f} KiB each")


if __name__ == "__main__":
    main()
