"""Instructions per request of Citius: the one counter of all programs in this folder.

The server runs under callgrind (citius_lab/processes/callgrind.py). Some requests warm up, then two batches
of different lengths follow; the figure is the difference of their counts divided by the difference of their
lengths, so that start-up and the ends of a batch are not in it. The client waits until the server sleeps
before it sends again: each request, or each ``together`` of a pipelined workload, is a turn of the event
loop of its own, on a busy machine too.
"""

from __future__ import annotations

import os
import re
import socket
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "lab"))

from citius_lab.processes.callgrind import Callgrind, total_of, within  # noqa: E402

if TYPE_CHECKING:
    from collections.abc import Mapping

LAST_CHUNK = b"\r\n0\r\n\r\n"
WARM_UP, SHORT, LONG = 600, 600, 1800
TOGETHER = 24
EXTENSION = "/_core."
"""What the path of the extension has in it, and that of no other object."""


@dataclass(frozen=True, slots=True)
class Cost:
    """Instructions: all, and those within the extension."""

    total: float
    extension: float

    def between(self, later: Cost, requests: int) -> Cost:
        """Return what one of so many requests took."""
        return Cost(
            (later.total - self.total) / requests, (later.extension - self.extension) / requests
        )


@dataclass(frozen=True, slots=True)
class App:
    """An application, and how it is served.

    Attributes:
        handlers: C of the library `handlers.so` beside it.
    """

    source: str
    options: tuple[str, ...] = ()
    handlers: str = ""


@dataclass(frozen=True, slots=True)
class Workload:
    """What is asked of an application.

    Attributes:
        requests: Requests in full, sent in turn and again from the first; instead of what the others make.
    """

    app: App
    target: str = "/"
    body: bytes = b""
    together: int = 1
    http2: bool = False
    fields: bytes = b""
    status: bytes = b"200"
    requests: tuple[bytes, ...] = ()


class Connection:
    """A connection to the server, whose process is `pid`."""

    def __init__(self, address: tuple[str, int], pid: int) -> None:
        self._socket = socket.create_connection(address)
        self._state = Path(f"/proc/{pid}/stat")
        self._rest = b""

    def ask(self, workload: Workload, requests: int) -> None:
        """Send requests, and read their responses."""
        while requests:
            together = min(requests, workload.together)
            self._ask_together(workload, together)
            requests -= together
            # Two requests that meet in one turn share its cost.
            while self._state.read_text().rpartition(")")[2].split()[0] != "S":
                time.sleep(0)

    def _ask_together(self, workload: Workload, requests: int) -> None:
        raise NotImplementedError

    def _receive(self) -> None:
        piece = self._socket.recv(65536)
        if not piece:
            sys.exit("the server closed the connection")
        self._rest += piece


class Http1(Connection):
    """One HTTP/1.1 connection."""

    def __init__(self, address: tuple[str, int], pid: int) -> None:
        super().__init__(address, pid)
        self._sent = 0

    def _ask_together(self, workload: Workload, requests: int) -> None:
        self._socket.sendall(self._encoded(workload, requests))
        for _ in range(requests):
            self._read_response(workload.status)

    def _encoded(self, workload: Workload, requests: int) -> bytes:
        if kinds := workload.requests:
            first, self._sent = self._sent, self._sent + requests
            return b"".join(kinds[number % len(kinds)] for number in range(first, self._sent))
        line = b"%s %s HTTP/1.1\r\n" % (
            b"POST" if workload.body else b"GET",
            workload.target.encode(),
        )
        head = b"Host: 127.0.0.1\r\nAccept: */*\r\n" + workload.fields
        if workload.body:
            head += b"Content-Type: application/json\r\nContent-Length: %d\r\n" % len(workload.body)
        return (line + head + b"\r\n" + workload.body) * requests

    def _read_response(self, status: bytes) -> None:
        while (end := self._rest.find(b"\r\n\r\n") + 4) < 4:
            self._receive()
        head = self._rest[:end]
        if not head.startswith(b"HTTP/1.1 " + status):
            sys.exit(f"another response was expected: {head!r}")
        if b"\r\ntransfer-encoding: chunked\r\n" in head.lower():
            # The applications send no chunk that holds this.
            while (last := self._rest.find(LAST_CHUNK, end - 2)) < 0:
                self._receive()
            end = last + len(LAST_CHUNK)
        length = re.search(rb"(?i)\r\ncontent-length: (\d+)", head)
        end += int(length[1]) if length else 0
        while len(self._rest) < end:
            self._receive()
        self._rest = self._rest[end:]


class Http2(Connection):
    """One HTTP/2 connection."""

    def __init__(self, address: tuple[str, int], pid: int) -> None:
        super().__init__(address, pid)
        self._stream = -1
        room = (2**31 - 1 - 65535).to_bytes(4, "big")
        preface = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
        self._socket.sendall(preface + self._frame(4) + self._frame(8, payload=room))

    @staticmethod
    def _frame(kind: int, flags: int = 0, stream: int = 0, payload: bytes = b"") -> bytes:
        head = len(payload).to_bytes(3, "big") + bytes([kind, flags]) + stream.to_bytes(4, "big")
        return head + payload

    def _ask_together(self, workload: Workload, requests: int) -> None:
        # :method GET, :scheme http, :path without indexing, :authority likewise (RFC 7541 §6).
        target = workload.target.encode()
        block = b"\x82\x86\x04" + bytes([len(target)]) + target + b"\x01\x09127.0.0.1"
        frames = b""
        for _ in range(requests):
            self._stream += 2
            frames += self._frame(1, 5, self._stream, block)
        self._socket.sendall(frames)
        while requests:
            requests -= self._read_frame()

    def _read_frame(self) -> bool:
        """Whether it ended a response."""
        while len(self._rest) < 9 or len(self._rest) < 9 + int.from_bytes(self._rest[:3], "big"):
            self._receive()
        kind, flags = self._rest[3], self._rest[4]
        self._rest = self._rest[9 + int.from_bytes(self._rest[:3], "big") :]
        if kind in {3, 7}:
            sys.exit(f"a response was expected, got a frame of type {kind}")
        if kind == 4 and not flags:
            self._socket.sendall(self._frame(4, 1))
        return kind in {0, 1} and bool(flags & 1)


def serve(
    tree: Path, app: App, directory: Path, callgrind: Callgrind
) -> tuple[subprocess.Popen[str], tuple[str, int]]:
    """Start the server under callgrind, and return it with its address."""
    (directory / "main.py").write_text(app.source)
    if app.handlers:
        build_handlers(tree, app, directory)
    command = [
        *callgrind.words(), sys.executable, "-m", "citius", "serve", "main.py", "--port", "0",
        "--no-access-log", *app.options,
    ]  # fmt: skip
    environ = os.environ | {"PYTHONPATH": str(tree / "python")}
    server = subprocess.Popen(
        command, cwd=directory, env=environ, stderr=subprocess.PIPE, text=True
    )
    assert server.stderr is not None, "it is a pipe"
    said = ""
    for line in server.stderr:
        said += line
        if found := re.search(r"http://([\d.]+):(\d+)", line):
            return server, (found[1], int(found[2]))
    sys.exit(f"the server did not start\n{said}")


def build_handlers(tree: Path, app: App, directory: Path) -> None:
    """Compile the handlers of an application with the header of a tree."""
    source = directory / "handlers.c"
    source.write_text(app.handlers)
    (header,) = (tree / "python/citius").rglob("citius.h")
    command = ["cc", "-O2", "-shared", "-fPIC", f"-I{header.parent}", str(source), "-o"]
    subprocess.run([*command, str(source.with_suffix(".so"))], check=True)


def counts(
    tree: Path, app: App, names: list[str], workloads: Mapping[str, Workload]
) -> dict[str, float]:
    """Return the instructions of one request of each workload of an application."""
    return {name: cost.total for name, cost in costs(tree, app, names, workloads).items()}


def costs(
    tree: Path, app: App, names: list[str], workloads: Mapping[str, Workload]
) -> dict[str, Cost]:
    """Return the same with those within the extension."""
    if unknown := set(names) - workloads.keys():
        sys.exit(f"unknown: {', '.join(sorted(unknown))}; there are {', '.join(workloads)}")
    with tempfile.TemporaryDirectory() as name:
        directory = Path(name)
        callgrind = Callgrind(directory)
        server, address = serve(tree, app, directory, callgrind)
        try:
            callgrind.begin([server.pid])
            return {name: count(callgrind, address, server.pid, workloads[name]) for name in names}
        finally:
            server.terminate()
            server.communicate()


def count(callgrind: Callgrind, address: tuple[str, int], pid: int, workload: Workload) -> Cost:
    """Return the instructions of one request."""
    connection = Http2(address, pid) if workload.http2 else Http1(address, pid)

    def taken() -> Cost:
        """What was counted since this was last asked."""
        dumps = callgrind.dumps([pid])
        return Cost(sum(map(total_of, dumps)), sum(within(dump, EXTENSION) for dump in dumps))

    connection.ask(workload, WARM_UP)
    taken()
    connection.ask(workload, SHORT)
    short = taken()
    connection.ask(workload, LONG)
    return short.between(taken(), LONG - SHORT)


def show(name: str, of_trees: list[Cost]) -> None:
    """Print a line: all instructions of each tree, and their ratio; of one tree also the extension's."""
    cells = "".join(f"{one.total:>10,.0f}" for one in of_trees)
    ratio = f" {of_trees[-1].total / of_trees[0].total:>7.3f}" if len(of_trees) > 1 else ""
    own = f" {of_trees[0].extension:>10,.0f} in the extension" if len(of_trees) == 1 else ""
    print(f"{name:20}{cells}{ratio}{own}", flush=True)
