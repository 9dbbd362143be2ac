"""Requests over HTTP/3 that fail while a server gets new code, and while clients change their port.

reload_losses.py [--workers N] [--only NAME]...: the table of docs/comparison.md. Clients of aioquic send one
request after another on connections that they keep; a client whose connection ends begins another and goes
on. What counts as failed is a request without a response. One whose connection has ended in order (by
H3_NO_ERROR) is counted as sent again if the server has not executed it: requests have numbers, and the
application, or the server's access log, has those that it was called for. Otherwise it has failed.

Citius, nginx and peregrine reload by HUP, Caddy by its administration endpoint. Hypercorn has neither with
HTTP/3; it is ended by TERM and started again, as a process manager does it. The other servers are those of
the lab: `scripts/nginx; citius lab build caddy hypercorn peregrine`. One that is not there is left out, with
a line that says so. Why requests have failed is written to standard error.
"""

from __future__ import annotations

import argparse
import asyncio
import collections
import json
import os
import re
import signal
import socket
import ssl
import subprocess
import sys
import tempfile
import time
import urllib.request
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests"))

from h3peer import Broken, H3Client, h3_client  # noqa: E402

BUILT = ROOT / "lab" / ".build"
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

NGINX = """
daemon off;
pid {own}/pid;
error_log stderr error;
worker_processes {workers};
quic_bpf on;
{user}
events {{ worker_connections 1024; }}
http {{
    log_format path '$request_uri';
    access_log {own}/executed path;
    keepalive_requests 1000000;
    client_body_temp_path {own}; proxy_temp_path {own}; fastcgi_temp_path {own};
    uwsgi_temp_path {own}; scgi_temp_path {own};
    server {{
        listen 127.0.0.1:{port} quic reuseport;
        listen 127.0.0.1:{port} ssl;
        http2 on;
        ssl_certificate {cert};
        ssl_certificate_key {key};
        root {own};
        location / {{ try_files /hello =404; }}
    }}
}}
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
    reasons: collections.Counter[str] = field(default_factory=collections.Counter[str])
    """Why requests have failed, as the client says it."""

    def fail(self, reason: str) -> None:
        """Count a request without a response."""
        self.failed += 1
        self.reasons[reason] += 1

    def next_path(self) -> str:
        """A path that no other request has."""
        self.asked += 1
        return f"/{id(self)}-{self.asked}"

    def divide(self, executed: set[str]) -> None:
        """Count what has ended in order: as failed if the application was called for it."""
        for path in self.in_order:
            if path in executed:
                self.fail("closed in order, and executed")
            else:
                self.again += 1


@dataclass
class Contestant:
    """A server in a directory of its own.

    Attributes:
        name: Its name in the table.
        command: What starts it.
        directory: Where it runs.
        port: Of TCP and UDP.
        executed: The file that has the path of each request that it was called for.
        renew_by: How it gets new code: a signal, ``restart``, or the port of Caddy's administration endpoint.
    """

    name: str
    command: list[str]
    directory: Path
    port: int
    executed: str = EXECUTED
    renew_by: signal.Signals | Literal["restart"] | int = signal.SIGHUP

    def start(self) -> None:
        """Start it."""
        with (self.directory / f"{self.name}.log").open("ab") as log:
            self._process = subprocess.Popen(
                self.command, cwd=self.directory, stdout=subprocess.DEVNULL, stderr=log
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
        if isinstance(self.renew_by, signal.Signals):
            self._process.send_signal(self.renew_by)
        elif self.renew_by == "restart":
            self._process.terminate()
            while self._process.poll() is None:
                await asyncio.sleep(0.01)
            self.start()
        else:
            # The same settings are loaded again only if the request says so.
            load = urllib.request.Request(
                f"http://127.0.0.1:{self.renew_by}/load",
                (self.directory / "caddy.json").read_bytes(),
                {"content-type": "application/json", "cache-control": "must-revalidate"},
            )
            await asyncio.to_thread(lambda: urllib.request.urlopen(load, timeout=30).close())

    def executed_paths(self) -> set[str]:
        """The paths of the requests that it was called for."""
        text = (self.directory / self.executed).read_text()
        return set(re.findall(r"/[0-9]+-[0-9]+", text))

    def stop(self) -> None:
        """End it."""
        self._process.terminate()
        try:
            self._process.wait(30)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()


async def ask(server: Contestant, count: Count, ends: asyncio.Event, *, rebinds: bool) -> None:
    """Send requests one after another until the end."""
    while not ends.is_set():
        try:
            async with asyncio.timeout(30), h3_client(server.port) as client:
                await ask_on(client, count, ends, rebinds=rebinds)
        except (TimeoutError, ConnectionError, Broken, OSError) as error:
            count.fail(f"{type(error).__name__} {error}")


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
    count.divide(server.executed_paths())
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


def contestants(directory: Path, workers: str, only: list[str]) -> Iterator[Contestant]:
    """The servers that there are, each in a directory of its own."""

    def place(name: str) -> tuple[Path, str, str, int] | None:
        if only and name not in only:
            return None
        own = directory / name
        own.mkdir()
        (own / "main.py").write_text(APP)
        return own, *certificate(own), free_port()

    def found(name: str, program: Path) -> bool:
        if not program.exists() and not (only and name not in only):
            print(f"without: {name}: {program.relative_to(ROOT)} is not there", file=sys.stderr)
        return program.exists()

    if there := place("citius"):
        own, cert, key, port = there
        command = [sys.executable, "-m", "citius", "serve", "main:app", "--port", str(port),
                   "--http", "1,2,3", "--ssl-certfile", cert, "--ssl-keyfile", key,
                   "--workers", workers, "--no-access-log"]  # fmt: skip
        yield Contestant("Citius", command, own, port)
    nginx = ROOT / ".tools" / "nginx" / "sbin" / "nginx"
    if found("nginx", nginx) and (there := place("nginx")):
        own, cert, key, port = there
        user = "user root;" if os.geteuid() == 0 else ""
        text = NGINX.format(own=own, cert=cert, key=key, port=port, workers=workers, user=user)
        (own / "nginx.conf").write_text(text)
        (own / "hello").write_text("hello")
        command = [str(nginx), "-p", str(own), "-e", "stderr", "-c", str(own / "nginx.conf")]
        yield Contestant("nginx", command, own, port)
    caddy = BUILT / "caddy" / "caddy"
    if found("caddy", caddy) and (there := place("caddy")):
        own, cert, key, port = there
        admin = free_port()
        (own / "caddy.json").write_text(json.dumps(caddy_settings(own, cert, key, port, admin)))
        command = [str(caddy), "run", "--config", str(own / "caddy.json")]
        yield Contestant("Caddy", command, own, port, "Caddy.log", admin)
    peregrine = BUILT / "peregrine" / "venv" / "bin" / "peregrine"
    if found("peregrine", peregrine) and (there := place("peregrine")):
        own, cert, key, port = there
        command = [str(peregrine), "main:app", "--protocol", "asgi", "--host", "127.0.0.1",
                   "--port", str(port), "--workers", workers,
                   "--tls-cert", cert, "--tls-key", key, "--http3"]  # fmt: skip
        yield Contestant("peregrine", command, own, port)
    hypercorn = BUILT / "hypercorn" / "venv" / "bin" / "hypercorn"
    if found("hypercorn", hypercorn) and (there := place("hypercorn")):
        own, cert, key, port = there
        bind = f"localhost:{port}"
        command = [str(hypercorn), "main:app", "--bind", bind, "--quic-bind", bind,
                   "--certfile", cert, "--keyfile", key]  # fmt: skip
        yield Contestant("Hypercorn", command, own, port, renew_by="restart")


def caddy_settings(own: Path, cert: str, key: str, port: int, admin: int) -> dict[str, object]:
    """Caddy's settings: a static response, and an access log on standard error."""
    server: dict[str, object] = {
        "listen": [f"127.0.0.1:{port}"],
        "automatic_https": {"disable": True},
        "protocols": ["h1", "h2", "h3"],
        "tls_connection_policies": [{}],
        "routes": [{"handle": [{"handler": "static_response", "body": "hello"}]}],
        "logs": {},
    }
    certificates = {"load_files": [{"certificate": cert, "key": key}]}
    return {
        "admin": {"listen": f"127.0.0.1:{admin}", "config": {"persist": False}},
        "storage": {"module": "file_system", "root": str(own)},
        "apps": {"http": {"servers": {"main": server}}, "tls": {"certificates": certificates}},
    }


async def main() -> None:
    """Measure, and print rows of the table."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--only", action="append", default=[], metavar="NAME")
    arguments = parser.parse_args()
    assert ssl.HAS_TLSv1_3
    with tempfile.TemporaryDirectory() as name:
        for server in contestants(Path(name), str(arguments.workers), arguments.only):
            server.start()
            try:
                renewed = await measure(server, renews=True, rebinds=False)
                moved = await measure(server, renews=False, rebinds=True)
            finally:
                server.stop()
            total = renewed.served + renewed.failed
            row = f"| {server.name} | {renewed.failed} of {total} | {renewed.again} "
            print(row + f"| {moved.failed} of {moved.served + moved.failed} |", flush=True)
            for what, count in (("reloads", renewed), ("changes of ports", moved)):
                for reason, number in count.reasons.most_common(5):
                    print(f"{server.name}, {what}: {number} of {reason}", file=sys.stderr)


if __name__ == "__main__":
    os.environ.setdefault("PYTHONWARNINGS", "ignore")
    asyncio.run(main())
