"""Memory of connections that say nothing: `idle.py [--connections N] [--http3 N]`.

Starts one worker with a native hello, in clear text and with TLS 1.3, opens connections that have each had
one response, and prints by how much the proportional set size of the worker has grown. Each side needs a
descriptor per connection. With `--http3` there are connections of HTTP/3 instead, by aioquic.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import resource
import socket
import ssl
import sys
import tempfile
from pathlib import Path

from served import served

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "lab"), str(ROOT / "tests")]

from citius_lab.definitions import certificate  # noqa: E402
from citius_lab.processes import launch  # noqa: E402

APPLICATION = """
from citius import App

app = App()

@app.get("/")
def hello() -> str:
    return "Hello"
"""
REQUEST = b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n"


def connected(port: int, context: ssl.SSLContext | None) -> socket.socket:
    """Return a connection that has had a response."""
    one = socket.create_connection(("127.0.0.1", port))
    if context is not None:
        one = context.wrap_socket(one, server_hostname="localhost")
    one.sendall(REQUEST)
    if not one.recv(4096).startswith(b"HTTP/1.1 200"):
        sys.exit("idle: expected a response with status 200")
    return one


def grown_mb(folder: Path, number: int, *, tls: bool) -> float:
    """Return by how many MB a worker has grown with so many connections."""
    words, context = ["--connections-max", str(number + 100)], None
    if tls:
        certificate.make(folder)
        own, key = certificate.paths(folder)
        words += ["--ssl-certfile", str(own), "--ssl-keyfile", str(key)]
        context = ssl.create_default_context(cafile=str(own))
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    with served(folder, APPLICATION, *words) as (port, pid):
        # The first ones fill what all connections share.
        idle = [connected(port, context) for _ in range(100)]
        before_kib = launch.pss_kib([pid])
        idle += [connected(port, context) for _ in range(number)]
        found = (launch.pss_kib([pid]) - before_kib) * 1024 / 1e6
        for one in idle:
            one.close()
        return found


async def grown_by_quic_kib(port: int, pid: int, number: int) -> int:
    """Return by how many KiB a worker has grown with so many connections of HTTP/3."""
    from h3peer import h3_client  # pytest and aioquic, for those who ask for this alone

    async with contextlib.AsyncExitStack() as stack:
        before_kib = 0
        for count in range(-100, number):
            # The first ones fill what all connections share.
            if count == 0:
                before_kib = launch.pss_kib([pid])
            client = await stack.enter_async_context(h3_client(port))
            if (await client.get("/")).status != 200:
                sys.exit("idle: expected a response with status 200")
        # Until all is acknowledged.
        await asyncio.sleep(1)
        return launch.pss_kib([pid]) - before_kib


def quic_mb(folder: Path, number: int) -> float:
    """Return by how many MB a worker has grown with so many connections of HTTP/3."""
    certificate.make(folder)
    own, key = certificate.paths(folder)
    words = ["--ssl-certfile", str(own), "--ssl-keyfile", str(key), "--http", "1,2,3"]
    words += ["--connections-max", str(number + 200)]
    words += ["--quic-idle-ms", "600000", "--keep-alive-ms", "600000"]
    with served(folder, APPLICATION, *words) as (port, pid):
        return asyncio.run(grown_by_quic_kib(port, pid, number)) * 1024 / 1e6


def main() -> None:
    """Measure, and print a line for each."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--connections", type=int, default=10_000)
    parser.add_argument("--http3", type=int, metavar="N")
    arguments = parser.parse_args()
    number = arguments.connections
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    if arguments.http3 is not None:
        with tempfile.TemporaryDirectory() as name:
            found = quic_mb(Path(name), arguments.http3)
        each_kib = found * 1e6 / 1024 / arguments.http3
        print(
            f"{arguments.http3} idle connections, HTTP/3: {found:.1f} MB, {each_kib:.1f} KiB each"
        )
        return
    for tls in (False, True):
        with tempfile.TemporaryDirectory() as name:
            found = grown_mb(Path(name), number, tls=tls)
        print(f"{number} idle connections, {'TLS' if tls else 'clear text'}: {found:.1f} MB")


if __name__ == "__main__":
    main()
