"""Black-box tools: a `citius serve` of one's own, and a peer that speaks bytes.

No fixed ports and no sleeps: servers listen on port 0 and say where, peers wait for what they expect
until the socket's timeout.
"""

from __future__ import annotations

import asyncio
import codecs
import http.client
import itertools
import os
import random
import re
import signal
import socket
import subprocess
import sys
import textwrap
import threading
import time
import traceback
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import pytest

TIMEOUT_S = 30.0

USER = 65534
"""The number of the unprivileged user; it need not have a name."""

PLAIN = {"PYTHONDEVMODE": "", "PYTHONWARNINGS": ""}
"""For servers as users run them: development mode gives asyncio checks and memory of its own."""


def application(name: str) -> Path:
    """The module of a test application, which `serve` and `Server` take as their target."""
    return Path(__file__).parent / "applications" / f"{name}.py"


def wait_for(condition: Callable[[], object], what: str, timeout_s: float = TIMEOUT_S) -> None:
    """Poll until ``condition`` is true."""
    deadline = time.monotonic() + timeout_s
    while not condition():
        if time.monotonic() > deadline:
            raise AssertionError(f"waited {timeout_s} s in vain for {what}")
        time.sleep(0.005)


IS_PORTABLE = os.environ.get("CITIUS_POLLER") == "asyncio"
"""Servers of these tests have the portable poller: `make test-portable`."""


_ports = iter(random.SystemRandom().sample(range(20_000, 32_768), 12_768))


def free_port() -> int:
    """A port, free for TCP and UDP, for a server that has to be told one.

    It is below those that the system gives to connections: none takes it before the server does, or
    while the server is away.
    """
    while True:
        port = next(_ports)
        with (
            suppress(OSError),
            socket.socket() as tcp,
            socket.socket(type=socket.SOCK_DGRAM) as udp,
        ):
            tcp.bind(("", port))
            udp.bind(("", port))
            return port


def storm(test: Callable[..., None]) -> Callable[..., None]:
    """A slow test that goes on for ``STORM_S`` seconds; for some minutes at most if that is not set."""
    limit_s = 600 + 2 * float(os.environ.get("STORM_S", "0"))
    return pytest.mark.slow(pytest.mark.timeout(limit_s)(test))


def rounds(count: int) -> Iterator[int]:
    """The rounds of a storm: so many, or those of ``STORM_S`` seconds."""
    seconds = os.environ.get("STORM_S")
    until = None if seconds is None else time.monotonic() + float(seconds)
    for number in itertools.count():
        if number >= count if until is None else number and time.monotonic() > until:
            return
        yield number


def skip_unless_portable(arguments: Sequence[str]) -> None:
    """Skip the test if the servers have the portable poller, and these arguments contradict it."""
    if not IS_PORTABLE or "--poller" in arguments:
        return
    for argument, value in itertools.pairwise(arguments):
        if argument in ("--workers", "-w", "--reactor-threads") and value != "1":
            pytest.skip("the portable poller serves with one worker and one reactor")
        if argument == "--loop" and value in ("gevent", "none"):
            pytest.skip("the portable poller needs an asyncio loop")


PYTHON = os.environ.get("SERVER_PYTHON", sys.executable)
"""The interpreter of servers: scripts/test-wine has another one."""


class Server:
    """One ``citius serve`` process (and its workers)."""

    def __init__(
        self,
        arguments: list[str],
        env: dict[str, str],
        cwd: Path,
        launcher: str = "",
        command: str = "serve",
        under: Sequence[str] = (),
    ) -> None:
        skip_unless_portable(arguments)
        program = [launcher] if launcher else ["-m", "citius"]
        # Most tests count on one event loop, also without a GIL; an empty text means the default.
        reactors = env.get("CITIUS_REACTOR_THREADS", "1")
        environ = {
            **os.environ, "PYTHONDEVMODE": "1", "PYTHONWARNINGS": "error", **env,
            "CITIUS_REACTOR_THREADS": reactors,
        }  # fmt: skip
        if not reactors:
            del environ["CITIUS_REACTOR_THREADS"]
        self.process = subprocess.Popen(
            [*under, PYTHON, *program, command, *arguments],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            cwd=cwd,
            env=environ,
            process_group=0,
        )
        self.out = ""
        self.err = ""
        self.port = 0
        self.uds = ""
        self._peers: list[Peer] = []
        self._threads = [
            threading.Thread(target=self._collect, args=(name,), daemon=True)
            for name in ("stdout", "stderr")
        ]
        for thread in self._threads:
            thread.start()

    def _collect(self, name: str) -> None:
        # By pieces, not by lines: a notice with its traceback, written at once, is there at once.
        stream = getattr(self.process, name)
        decoder = codecs.getincrementaldecoder("utf-8")("replace")
        while piece := stream.read1(65536):
            if name == "stdout":
                self.out += decoder.decode(piece)
            else:
                self.err += decoder.decode(piece)
        stream.close()

    def wait_ready(self, timeout_s: float = TIMEOUT_S) -> Server:
        """Wait until it says where it serves."""
        pattern = re.compile(r"serves on (?:https?://\S+:(\d+)|unix:(\S+))")
        wait_for(
            lambda: pattern.search(self.err) or self.process.poll() is not None,
            "a server",
            timeout_s,
        )
        found = pattern.search(self.err)
        if found is None:
            # It has ended; its last words may not be here yet.
            for thread in self._threads:
                thread.join(TIMEOUT_S)
        assert found, f"the server ended with {self.process.returncode}:\n{self.err}"
        self.port = int(found[1] or 0)
        self.uds = found[2] or ""
        return self

    def connect(self, receive_buffer_bytes: int | None = None) -> Peer:
        """A connection to it."""
        if self.uds:
            made = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
            address: object = self.uds
        else:
            made = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
            address = ("127.0.0.1", self.port)
        if receive_buffer_bytes is not None:
            made.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer_bytes)
        made.settimeout(TIMEOUT_S)
        peer = Peer(made)
        self._peers.append(peer)
        made.connect(address)
        return peer

    def get(self, path: str, **headers: str) -> Reply:
        """One request on a connection of its own."""
        with self.connect() as peer:
            return peer.request("GET", path, **headers)

    def signal(self, number: signal.Signals) -> None:
        """Send a signal to the process that was started."""
        self.process.send_signal(number)

    def wait(self, timeout_s: float = TIMEOUT_S) -> int:
        """The exit code, when it has ended and everything it said is here."""
        code = self.process.wait(timeout_s)
        for thread in self._threads:
            thread.join(timeout_s)
        return code

    def wait_for_log(self, pattern: str, count: int = 1) -> re.Match[str]:
        """Wait until so many notices or more match; the last of them.

        A response may arrive before what the server logs about its request.
        """
        found: list[re.Match[str]] = []

        def has_come() -> bool:
            found[:] = re.finditer(pattern, self.err)
            return len(found) >= count

        try:
            wait_for(has_come, f"{pattern!r}, {count} times")
        except AssertionError as error:
            raise AssertionError(f"{error}, in\n{self.err}") from None
        return found[-1]

    def management(self) -> int:
        """The port of ``--management 127.0.0.1:0``."""
        return int(self.wait_for_log(r"metrics and health are at http://127\.0\.0\.1:(\d+)")[1])

    def stop(self) -> int:
        """Stop it as a service manager does; the exit code, when everything it said is here."""
        self.signal(signal.SIGTERM)
        return self.wait()

    def kill(self) -> None:
        """End it and what it has started, however they are."""
        for peer in self._peers:
            peer.close()
        with suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.wait()


@dataclass(slots=True)
class Reply:
    """One answer as it came over the wire."""

    status: int
    headers: dict[str, str]
    body: bytes
    raw_head: bytes


class Peer:
    """A client that decides about every byte."""

    def __init__(self, connection: socket.socket) -> None:
        self.socket = connection
        self._received = bytearray()

    def __enter__(self) -> Peer:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Hang up."""
        self.socket.close()

    def reset(self) -> None:
        """Hang up with a reset."""
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
        self.socket.close()

    def send(self, data: bytes) -> None:
        """Write all of it."""
        self.socket.sendall(data)

    def request(self, method: str, path: str, body: bytes | None = None, **headers: str) -> Reply:
        """Send a proper request and wait for its answer."""
        fields = {"host": "test", **{k.replace("_", "-"): v for k, v in headers.items()}}
        if body is not None:
            fields["content-length"] = str(len(body))
        head = "".join(f"{k}: {v}\r\n" for k, v in fields.items())
        self.send(f"{method} {path} HTTP/1.1\r\n{head}\r\n".encode() + (body or b""))
        return self.reply(method)

    def read_until(self, mark: bytes) -> bytes:
        """Everything up to and including ``mark``."""
        while mark not in self._received:
            self._more()
        return self._take(self._received.index(mark) + len(mark))

    def read(self, count: int) -> bytes:
        """So many bytes."""
        while len(self._received) < count:
            self._more()
        return self._take(count)

    def read_to_end(self) -> bytes:
        """Everything until the server closes; a reset is an end too."""
        while True:
            try:
                piece = self.socket.recv(65536)
            except ConnectionResetError:
                piece = b""
            if not piece:
                return self._take(len(self._received))
            self._received += piece

    def reply(self, method: str = "GET") -> Reply:
        """The next answer, with its body."""
        head = self.read_until(b"\r\n\r\n")
        start, *lines = head.decode("latin-1").rstrip("\r\n").split("\r\n")
        status = int(start.split(" ")[1])
        pairs = [line.partition(":") for line in lines]
        headers = {name.lower(): value.strip() for name, _, value in pairs}
        if method == "HEAD" or status < 200 or status in (204, 304):
            body = b""
        elif headers.get("transfer-encoding") == "chunked":
            body = b"".join(self.chunks())
        elif "content-length" in headers:
            body = self.read(int(headers["content-length"]))
        else:
            body = self.read_to_end()
        return Reply(status, headers, body, head)

    def chunks(self):
        """The chunks of a body as they come."""
        while True:
            size = int(self.read_until(b"\r\n"), 16)
            data = self.read(size + 2)[:-2]
            if size == 0:
                return
            yield data

    def is_closed(self) -> bool:
        """Whether the server hangs up without another byte."""
        return self.read_to_end() == b""

    def _take(self, count: int) -> bytes:
        taken = bytes(self._received[:count])
        del self._received[:count]
        return taken

    def _more(self) -> None:
        piece = self.socket.recv(65536)
        if not piece:
            raise EOFError(f"the server closed the connection; unread: {bytes(self._received)!r}")
        self._received += piece


@contextmanager
def serving(directory: Path, header: str, suffix: str = "") -> Iterator[Callable[..., Server]]:
    """A function that serves a module, or a source; all its servers end with the context.

    Args:
        directory: Where sources are written, and servers run.
        header: What a source begins with.
        suffix: Names the application in a module.
    """
    servers: list[Server] = []

    def start(
        source: str | Path,
        *arguments: str,
        env: dict[str, str] | None = None,
        ready: bool = True,
    ) -> Server:
        target = str(source)
        if not isinstance(source, Path):
            target = f"main{len(servers) or ''}.py"
            (directory / target).write_text(header + textwrap.dedent(source))
        server = Server([target + suffix, "--port", "0", *arguments], env or {}, directory)
        servers.append(server)
        return server.wait_ready() if ready else server

    try:
        yield start
    finally:
        for server in servers:
            server.kill()


def request(path: str) -> bytes:
    """A GET request as it travels."""
    return f"GET {path} HTTP/1.1\r\nHost: a\r\n\r\n".encode()


def text(peer: Peer, path: str, method: str = "GET") -> str:
    """The body of a 200."""
    reply = peer.request(method, path)
    assert reply.status == 200, f"{path}: {reply}"
    return reply.body.decode()


def processor_share(server: Server) -> float:
    """How busy the process is, of one processor, over a short while."""
    schedstat = Path(f"/proc/{server.process.pid}/schedstat")

    def now() -> tuple[int, float]:
        return int(schedstat.read_text().split()[0]), time.monotonic()

    ran_ns, began_at = now()
    # A span to measure over, not a wait for something to happen.
    time.sleep(0.3)
    ran_later_ns, ended_at = now()
    return (ran_later_ns - ran_ns) / 1e9 / (ended_at - began_at)


def pids(server: Server, count: int = 60) -> set[int]:
    """Workers that answer; the kernel spreads connections by their ports."""
    return {int(server.get("/").body) for _ in range(count)}


def children(server: Server) -> list[int]:
    """The workers there are."""
    pid = server.process.pid
    text = Path(f"/proc/{pid}/task/{pid}/children").read_text()
    return [int(child) for child in text.split()]


def is_alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):  # it may end between opening and reading
        return False


def get(port: int, path: str, method: str = "GET") -> tuple[int, bytes]:
    """Ask a server on this machine once; status and content of its response."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=20)
    try:
        connection.request(method, path)
        response = connection.getresponse()
        return response.status, response.read()
    finally:
        connection.close()


def client_samples(port: int, pool: str) -> dict[str, float]:
    """The samples of a client of other servers by name and labels, read by Prometheus' own parser."""
    from prometheus_client.parser import text_string_to_metric_families

    found: dict[str, float] = {}
    for family in text_string_to_metric_families(get(port, "/metrics")[1].decode()):
        for sample in family.samples:
            labels = {k: v for k, v in sample.labels.items() if k not in ("pool", "worker", "le")}
            if sample.labels.get("pool") == pool and not sample.name.endswith("_bucket"):
                found[" ".join((sample.name, *labels.values()))] = sample.value
    return found


def citius(
    *arguments: str, cwd: Path | None = None, env: dict[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    """Run a command to its end."""
    return subprocess.run(
        [sys.executable, "-m", "citius", *arguments],
        capture_output=True, text=True, timeout=60, cwd=cwd, env=env,
    )  # fmt: skip


async def in_child(act: Callable[[], Awaitable[None]]) -> None:
    """Do something in a forked child on a loop of its own; it has to end well."""
    process = os.fork()
    if process == 0:
        code = 1
        try:
            asyncio.run(asyncio.wait_for(act(), 20))
            code = 0
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(code)
    for _ in range(3000):
        ended, status = os.waitpid(process, os.WNOHANG)
        if ended:
            assert status == 0
            return
        await asyncio.sleep(0.01)  # until the child ends
    raise AssertionError("the child does not end")
