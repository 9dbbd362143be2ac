"""Requests over HTTP/3 that fail while a server gets new code, and while clients change their port.

reload_losses.py [--hypercorn PYTHON] [--workers N]: the table of docs/comparison.md. Clients of aioquic send
one request after another on connections that they keep; a client whose connection ends begins another and
goes on. What counts as failed is a request without a response. One whose connection has ended in order (by
H3_NO_ERROR) is counted as sent again if the application has not been called for it: requests have numbers,
and the application writes them down. Otherwise it has failed. Citius reloads by HUP; Hypercorn, which has
no such signal, is ended by TERM and started again, as a process manager does it.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import signal
import socket
import ssl
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "tests"))

from h3peer import Broken, H3Client, h3_client  # noqa: E402

CLIENTS = 32
IN_ORDER = "0x100 "
"""How what `h3peer` raises begins if the server has closed with H3_NO_ERROR."""
EXECUTED = "executed"
"""The file in which the application writes the path of each request that it is called for."""
APP = """
import os

executed = os.open("executed", os.O_WRONLY | os.O_CREAT | os.O_APPEND)


async def app(scope, receive, send):
    if scope["type"] == "lifespan":
        while True:
            message = await receive()
            await send({"type": message["type"] + ".complete"})
            if message["type"] == "lifespan.shutdown":
                return
    os.write(executed, scope["path"].encode() + b"\\n")
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": b"hello"})
"""


@dataclass
class Count:
    """What has become of requests."""

    served: int = 0
    failed: int = 0
    again: int = 0
    asked: int = 0
    in_order: list[str] = field(default_factory=list[str])
    """Paths of requests whose connections have ended in order."""

    def next_path(self) -> str:
        """A path that no other request has."""
        self.asked += 1
        return f"/{id(self)}-{self.asked}"

    def divide(self, executed: set[str]) -> None:
        """Count what has ended in order: as failed if the application was called for it."""
        for path in self.in_order:
            if path in executed:
                self.failed += 1
            else:
                self.again += 1


class Contestant:
    """A server in a directory of its own."""

    def __init__(self, name: str, command: list[str], directory: Path, port: int) -> None:
        self.name, self._command, self.directory, self.port = name, command, directory, port
        self._process = self._start()

    def _start(self) -> subprocess.Popen[bytes]:
        return subprocess.Popen(
            self._command, cwd=self.directory, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )

    async def until_served(self) -> None:
        """Wait until a request is answered."""
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline:
            try:
                async with asyncio.timeout(1), h3_client(self.port) as client:
                    if (await client.get("/")).status == 200:
                        return
            except (TimeoutError, ConnectionError, Broken):
                await asyncio.sleep(0.1)
        raise SystemExit(f"{self.name} does not serve")

    async def renew(self) -> None:
        """Give it new code, in the way it has."""
        if self.name == "Citius":
            self._process.send_signal(signal.SIGHUP)
            return
        self._process.terminate()
        while self._process.poll() is None:
            await asyncio.sleep(0.01)
        self._process = self._start()

    def stop(self) -> None:
        """End it."""
        self._process.terminate()
        self._process.wait(30)


async def ask(server: Contestant, count: Count, ends: asyncio.Event, *, rebinds: bool) -> None:
    """Send requests one after another until the end."""
    while not ends.is_set():
        try:
            async with asyncio.timeout(30), h3_client(server.port) as client:
                await ask_on(client, count, ends, rebinds=rebinds)
        except (TimeoutError, ConnectionError, Broken, OSError):
            count.failed += 1


async def ask_on(client: H3Client, count: Count, ends: asyncio.Event, *, rebinds: bool) -> None:
    """Do so on one connection."""
    asked = 0
    while not ends.is_set() and client.terminated is None:
        path = count.next_path()
        try:
            async with asyncio.timeout(3):
                await client.get(path)
        except Broken as error:
            if not str(error).startswith(IN_ORDER):
                raise
            count.in_order.append(path)
            return
        count.served += 1
        asked += 1
        if rebinds and asked % 20 == 0:
            await client.rebind()
        await asyncio.sleep(0.02)


async def measure(server: Contestant, *, renews: bool, rebinds: bool) -> Count:
    """Requests of some seconds, in which the server is renewed three times or clients change ports."""
    await server.until_served()
    count, ends = Count(), asyncio.Event()
    tasks = [asyncio.create_task(ask(server, count, ends, rebinds=rebinds)) for _ in range(CLIENTS)]
    for _ in range(3):
        await asyncio.sleep(4)
        if renews:
            await server.renew()
    await asyncio.sleep(4)
    ends.set()
    await asyncio.gather(*tasks)
    count.divide(set((server.directory / EXECUTED).read_text().splitlines()))
    return count


def certificate(directory: Path) -> tuple[str, str]:
    """A certificate for localhost and its key."""
    import trustme

    made = trustme.CA().issue_cert("localhost")
    made.cert_chain_pems[0].write_to_path(str(directory / "cert.pem"))
    made.private_key_pem.write_to_path(str(directory / "key.pem"))
    return str(directory / "cert.pem"), str(directory / "key.pem")


def free_port() -> int:
    """A port for a server."""
    with socket.create_server(("127.0.0.1", 0)) as probe:
        return probe.getsockname()[1]


def contestants(directory: Path, arguments: argparse.Namespace) -> list[Contestant]:
    """The servers that there are."""
    own, key = certificate(directory)
    (directory / "main.py").write_text(APP)
    workers, port = str(arguments.workers), free_port()
    found = [
        Contestant(
            "Citius",
            [sys.executable, "-m", "citius", "serve", "main:app", "--port", str(port), "--http", "1,2,3",
             "--ssl-certfile", own, "--ssl-keyfile", key, "--workers", workers, "--no-access-log"],
            directory, port,
        )
    ]  # fmt: skip
    if arguments.hypercorn:
        port = free_port()
        bind = f"localhost:{port}"
        found.append(
            Contestant(
                "Hypercorn",
                [arguments.hypercorn, "-m", "hypercorn", "main:app", "--bind", bind, "--quic-bind", bind,
                 "--certfile", own, "--keyfile", key],
                directory, port,
            )
        )  # fmt: skip
    return found


async def main() -> None:
    """Measure, and print rows of the table."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--hypercorn", help="a Python that has hypercorn[h3]")
    parser.add_argument("--workers", type=int, default=2)
    arguments = parser.parse_args()
    assert ssl.HAS_TLSv1_3
    with tempfile.TemporaryDirectory() as name:
        for server in contestants(Path(name), arguments):
            try:
                renewed = await measure(server, renews=True, rebinds=False)
                moved = await measure(server, renews=False, rebinds=True)
            finally:
                server.stop()
            total = renewed.served + renewed.failed
            row = f"| {server.name} | {renewed.failed} of {total} | {renewed.again} "
            print(row + f"| {moved.failed} of {moved.served + moved.failed} |", flush=True)


if __name__ == "__main__":
    os.environ.setdefault("PYTHONWARNINGS", "ignore")
    asyncio.run(main())
