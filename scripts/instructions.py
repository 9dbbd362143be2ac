"""Instructions per request of the server, by callgrind.

`instructions.py [--tree DIR] [--check | --keep] [NAME...]`

Each workload is served under valgrind by the package in `DIR/python` (default: this checkout) with the
release extension that was built there. Some requests warm up, then two batches of different lengths
follow; the figure is the difference of their counts divided by the difference of their lengths, so that
start-up and the ends of a batch are not in it. The client waits until the server sleeps before it sends
again: each request, or each 24 of a pipelined workload, is a turn of the event loop of its own, on a busy
machine too. `--tree` twice prints the ratio of both.

`--check` compares with `instructions.json` beside this file and fails beyond 2 %, of all instructions beyond
3 %; `--keep` writes it.
Compared are the instructions within the extension, which are the same with every build of one version of
CPython, and of single requests all of them, where the interpreter is the very one that was kept. Counted
is the release profile, which the other checks have built already: with the quick one, without inlining
across crates, a change of a hot path shows otherwise than for users. A kind beyond the margin is counted
up to three times more, and has to be beyond it each time: with several requests a turn, a count has two
values, some 70 instructions apart, one for the life of a connection. All kinds together take 48 s of CPU
time.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import re
import socket
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

ROOT = Path(__file__).parents[1]
KEPT = Path(__file__).with_suffix(".json")
# What is no change: the address of a table, or the order of two branches, moves a count by less.
MARGIN = 0.02
# All instructions of a request have two values, some 85 apart, one for the life of a server.
TOTAL_MARGIN = 0.03
RETRIES = 3
# A function of the C library that nothing else calls: callgrind writes a dump when it is entered.
MARK = "getsid"
LAST_CHUNK = b"\r\n0\r\n\r\n"
WARM_UP, SHORT, LONG = 600, 600, 1800
TOGETHER = 24

NATIVE_SOURCE = """
import os
import msgspec
from citius import App

app = App()

class Item(msgspec.Struct):
    name: str
    price: float
    tags: list[str] = []

@app.get("/")
def hello():
    return "Welcome!\\n"

@app.get("/async")
async def coroutine():
    return "Welcome!\\n"

@app.post("/items")
def item(body: Item) -> Item:
    return body

@app.get("/mark")
def mark():
    return str(os.getsid(0))
"""
ASGI_SOURCE = """
import os

async def app(scope, receive, send):
    if scope["type"] != "http":
        raise RuntimeError
    body = b"Welcome!\\n"
    if scope["path"] == "/mark":
        os.getsid(0)
    elif scope["path"] == "/echo":
        body = (await receive())["body"]
    headers = [(b"content-type", b"text/plain"), (b"content-length", b"%d" % len(body))]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    await send({"type": "http.response.body", "body": body})
"""
WSGI_SOURCE = """
import os

def application(environ, start_response):
    body = b"Welcome!\\n"
    if environ["PATH_INFO"] == "/mark":
        os.getsid(0)
    start_response("200 OK", [("Content-Type", "text/plain"), ("Content-Length", str(len(body)))])
    return [body]
"""
# The first handler does not wait; the second starts a goroutine and waits for it.
COMPILED_SOURCE = """
import os
from pathlib import Path
from citius import App, load_handlers

app = App()
handlers = load_handlers(Path(__file__).with_name("handlers.so"))
app.get("/hello/{name}", compiled=handlers["hello"])
app.get("/square", compiled=handlers["square"], serial=True)

@app.get("/mark")
def mark():
    return str(os.getsid(0))
"""
HANDLERS = """
#include <citius.h>

CITIUS_LIBRARY

int hello(const citius_request *request, citius_response *response) {
    citius_text name;
    int code = citius_param(request, 0, &name);
    if (code != CITIUS_OK) {
        return code;
    }
    citius_content_type(response, "text/plain");
    citius_print(response, "Welcome, ");
    return citius_write(response, name.data, name.size);
}

static void work(void *argument) {
    int64_t value = 7 * 7;
    citius_chan_send(argument, &value, sizeof value);
    citius_chan_release(argument);
}

int square(const citius_request *request, citius_response *response) {
    citius_chan *results = citius_chan_make(sizeof(int64_t), 0);
    int64_t value = 0;
    int code;
    (void)request;
    citius_go(work, citius_chan_retain(results));
    code = citius_chan_receive(results, &value, sizeof value);
    citius_chan_release(results);
    return code != CITIUS_OK ? code : citius_print_integer(response, value);
}
"""
ITEM = b'{"name":"a keyboard","price":49.5,"tags":["input","usb"]}'


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


NATIVE, ASGI = App(NATIVE_SOURCE), App(ASGI_SOURCE)
WSGI = App(WSGI_SOURCE, ("--interface", "wsgi", "--threads", "0"))
COMPILED = App(COMPILED_SOURCE, handlers=HANDLERS)
WORKLOADS = {
    "native": Workload(NATIVE),
    "native-pipelined": Workload(NATIVE, together=TOGETHER),
    "native-async": Workload(NATIVE, "/async"),
    "typed-json": Workload(NATIVE, "/items", ITEM),
    "asgi": Workload(ASGI),
    "asgi-receive": Workload(ASGI, "/echo", b"Welcome!\n"),
    "wsgi": Workload(WSGI),
    "h2": Workload(NATIVE, together=TOGETHER, http2=True),
}
# Counted if they are named, to compare trees: a C compiler has a part in them.
FURTHER = {
    "compiled": Workload(COMPILED, "/hello/world"),
    "compiled-pipelined": Workload(COMPILED, "/hello/world", together=TOGETHER),
    "goroutine": Workload(COMPILED, "/square"),
}
ALL = WORKLOADS | FURTHER


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
            sys.exit("instructions: the server closed the connection")
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
            sys.exit(f"instructions: {head!r}")
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
            sys.exit(f"instructions: frame of type {kind}")
        if kind == 4 and not flags:
            self._socket.sendall(self._frame(4, 1))
        return kind in {0, 1} and bool(flags & 1)


def serve(tree: Path, app: App, directory: Path) -> tuple[subprocess.Popen[str], tuple[str, int]]:
    """Start the server under callgrind."""
    (directory / "main.py").write_text(app.source)
    if app.handlers:
        build_handlers(tree, app, directory)
    command = [
        "valgrind", "--tool=callgrind", f"--dump-before={MARK}", "--callgrind-out-file=counts",
        sys.executable, "-m", "citius", "serve", "main.py", "--port", "0", "--no-access-log",
        *app.options,
    ]  # fmt: skip
    environ = os.environ | {"PYTHONPATH": str(tree / "python"), "PYTHONHASHSEED": "0"}
    server = subprocess.Popen(
        command, cwd=directory, env=environ, stderr=subprocess.PIPE, text=True
    )
    assert server.stderr is not None, "it is a pipe"
    said = ""
    for line in server.stderr:
        said += line
        if found := re.search(r"http://([\d.]+):(\d+)", line):
            return server, (found[1], int(found[2]))
    sys.exit(f"instructions: the server did not start\n{said}")


def build_handlers(tree: Path, app: App, directory: Path) -> None:
    """Compile the handlers of an application with the header of a tree."""
    source = directory / "handlers.c"
    source.write_text(app.handlers)
    (header,) = (tree / "python/citius").rglob("citius.h")
    command = ["cc", "-O2", "-shared", "-fPIC", f"-I{header.parent}", str(source), "-o"]
    subprocess.run([*command, str(source.with_suffix(".so"))], check=True)


def counts(
    tree: Path, app: App, names: list[str], workloads: Mapping[str, Workload] | None = None
) -> dict[str, float]:
    """Return the instructions of one request of each workload of an application."""
    found = costs(tree, app, names, WORKLOADS if workloads is None else workloads)
    return {name: cost.total for name, cost in found.items()}


def costs(
    tree: Path, app: App, names: list[str], workloads: Mapping[str, Workload]
) -> dict[str, Cost]:
    """Return the same with those within the extension."""
    with tempfile.TemporaryDirectory() as name:
        directory = Path(name)
        server, address = serve(tree, app, directory)
        try:
            return {name: count(directory, address, server.pid, workloads[name]) for name in names}
        finally:
            server.terminate()
            server.communicate()


def count(directory: Path, address: tuple[str, int], pid: int, workload: Workload) -> Cost:
    """Return the instructions of one request."""
    connection = Http2(address, pid) if workload.http2 else Http1(address, pid)
    marks = Http1(address, pid)

    def mark() -> Cost:
        """Have what was counted since the last mark written."""
        number = len(list(directory.glob("counts.*"))) + 1
        marks.ask(Workload(workload.app, "/mark"), 1)
        deadline = time.monotonic() + 60
        while not (directory / f"counts.{number}").exists():
            if time.monotonic() > deadline:
                sys.exit(f"instructions: no dump at {MARK}")
            time.sleep(0.01)
        return total(directory / f"counts.{number}")

    connection.ask(workload, WARM_UP)
    mark()
    connection.ask(workload, SHORT)
    short = mark()
    connection.ask(workload, LONG)
    return short.between(mark(), LONG - SHORT)


def total(dump: Path) -> Cost:
    """Return what a dump counts."""
    text = dump.read_text(errors="replace")
    found = re.search(r"^(?:totals|summary): (\d+)", text, re.MULTILINE)
    if found is None:
        sys.exit("instructions: a dump without a total")
    return Cost(int(found[1]), within_extension(text.splitlines()))


def within_extension(lines: Iterable[str]) -> int:
    """Return what a dump counts within the extension: lines of cost, but for those of calls.

    `ob=(2) /path` names the object of the functions that follow, later `ob=(2)` alone.
    """
    names: dict[str, str] = {}
    is_own = is_call = False
    found = 0
    for line in lines:
        if line.startswith("ob="):
            number, _, name = line.removeprefix("ob=").partition(" ")
            names.setdefault(number, name)
            is_own = "/_core." in names[number]
        elif line.startswith("cob="):
            number, _, name = line.removeprefix("cob=").partition(" ")
            names.setdefault(number, name)
        elif line.startswith("calls="):
            is_call = True
        elif is_call:
            is_call = False
        elif is_own and line[:1] in COST_BEGINS:
            found += int(line.split()[1])
    return found


# Positions are absolute, relative to the line before, or the same.
COST_BEGINS = frozenset("0123456789+-*")


def interpreter() -> str:
    """Return which build of Python this is."""
    return f"{platform.python_version()} {' '.join(platform.python_build())} {platform.python_compiler()}"


def keep(found: Mapping[str, Cost]) -> None:
    """Write what was counted, with the interpreter."""
    kinds = {
        name: {"total": round(cost.total), "extension": round(cost.extension)}
        for name, cost in found.items()
    }
    KEPT.write_text(json.dumps({"python": interpreter(), "kinds": kinds}, indent=1) + "\n")


def differences(found: Mapping[str, Cost], kept: Mapping[str, Any], python: str) -> list[str]:
    """Return a sentence for each count that is not the kept one.

    All instructions are compared with the same interpreter alone, and only of single requests: those of
    several in a turn vary by more than the margin. Of another version of Python nothing can be compared.
    """
    if kept["python"].split(".")[:2] != python.split(".")[:2]:
        return [
            f"kept is Python {kept['python'].split()[0]}, this is {python.split()[0]}: run --keep"
        ]
    said: list[str] = []
    for name, cost in found.items():
        with_total = kept["python"] == python and ALL[name].together == 1
        for one in ("total", "extension") if with_total else ("extension",):
            own, known = getattr(cost, one), kept["kinds"].get(name, {}).get(one)
            if known is None:
                said.append(f"{name}: nothing is kept of it; run --keep")
            elif abs(own / known - 1) > (TOTAL_MARGIN if one == "total" else MARGIN):
                said.append(f"{name}, {one}: {own:,.0f}, kept {known:,} ({own / known - 1:+.1%})")
    return said


def main() -> None:
    """Count, and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--tree", type=Path, action="append", help="checkout with a release extension"
    )
    either = parser.add_mutually_exclusive_group()
    either.add_argument(
        "--check", action="store_true", help="fail where a count is not the kept one"
    )
    either.add_argument("--keep", action="store_true", help="keep what is counted")
    parser.add_argument(
        "names",
        nargs="*",
        metavar="NAME",
        help=f"of {', '.join(WORKLOADS)} (all); {', '.join(FURTHER)}",
    )
    given = parser.parse_args()
    trees = [tree.resolve() for tree in given.tree or [ROOT]]
    found = count_all(trees, given.names or list(WORKLOADS))
    if given.keep:
        keep(found)
    if given.check and (said := check(trees, found)):
        sys.exit(
            "\n".join(
                [*said, "if that is meant: instructions.py --keep, and say why in the commit"]
            )
        )


def count_all(trees: list[Path], names: list[str]) -> dict[str, Cost]:
    """Count and print; return the counts of the last tree."""
    found: dict[str, Cost] = {}
    for app in (NATIVE, ASGI, WSGI, COMPILED):
        own = [name for name in names if ALL[name].app is app]
        counted = [costs(tree, app, own, ALL) for tree in trees if own]
        for name in own:
            found[name] = counted[-1][name]
            show(name, [one[name] for one in counted])
    return found


def check(trees: list[Path], found: Mapping[str, Cost]) -> list[str]:
    """Return what is not as it was kept, in none of the counts."""
    kept = json.loads(KEPT.read_text())
    said = differences(found, kept, interpreter())
    for _ in range(RETRIES):
        again = [name for name in found if any(one.startswith(f"{name},") for one in said)]
        if not again:
            break
        print("again:", flush=True)
        said = differences(count_all(trees, again), kept, interpreter())
    return said


def show(name: str, of_trees: list[Cost]) -> None:
    """Print a line: all instructions of each tree, and their ratio; of one tree also the extension's."""
    cells = "".join(f"{one.total:>10,.0f}" for one in of_trees)
    ratio = f" {of_trees[-1].total / of_trees[0].total:>7.3f}" if len(of_trees) > 1 else ""
    own = f" {of_trees[0].extension:>10,.0f} in the extension" if len(of_trees) == 1 else ""
    print(f"{name:20}{cells}{ratio}{own}", flush=True)


if __name__ == "__main__":
    main()
