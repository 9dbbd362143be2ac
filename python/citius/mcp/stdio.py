"""``citius mcp``: an application's MCP server on standard input and output, for clients that start it.

```text
line of input ── POST in memory ── the application, as over HTTP ── JSON or events ── lines of output
```

So dependencies, middleware, limits and errors are those of ``citius serve``. Fields of HTTP that a client
would send are made of its messages; credentials are given with ``--header``. Standard input and output have
messages alone: what the application and its processes print, also while it is imported, goes to standard
error, and they read nothing. Tests: ``tests/mcp/test_stdio.py``, ``tests/mcp/test_stdio_ends.py``.
"""

from __future__ import annotations

import asyncio
import base64
import os
import signal
import sys
from collections import deque
from contextlib import suppress
from time import monotonic
from typing import TYPE_CHECKING, Any, Final, NamedTuple, cast

from citius.errors import ConfigError
from citius.mcp.faults import INTERNAL_ERROR, PARSE_ERROR, Fault
from citius.mcp.protocol import PROTOCOL_VERSION, STATELESS, encode, parsed
from citius.process import leaving
from citius.threads import Thread
from citius.web.interop.asgi import ASGIAdapter

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from citius.mcp.server import MCPServer
    from citius.settings.config import Config
    from citius.web.application.app import App

RUNNING_MAX: Final = 100
"""Requests that are served at once. Exceeded: further ones wait."""

WAITING_MAX: Final = 900
"""Requests that wait, while answers and cancellations are read. Exceeded: standard input is not read."""

DRAIN_S: Final = 5.0
"""How long requests may take when standard input has ended. Exceeded: they are cancelled."""

END_S: Final = 5.0
"""How long the application may take to end then. Exceeded: what has not ended is left behind."""

_READ_BYTES: Final = 64 * 1024
_CANCEL_S: Final = 1.0

_NAMED: Final = {"tools/call": "name", "prompts/get": "name", "resources/read": "uri"}


def server_of(app: App, path: str | None) -> MCPServer:
    """The server of an application, or the one at a path.

    Raises:
        ConfigError: There is none, or it has to be said which.
    """
    servers = {
        one.prefix + server.path: server for one in app.walk() for server in one.app.mcp_servers
    }
    for full, server in servers.items():
        server.full_path = full
    if path is not None and path in servers:
        return servers[path]
    known = ", ".join(servers) or "none"
    if path is not None:
        raise ConfigError(f"there is no MCP server at {path}; there are: {known}")
    if len(servers) != 1:
        raise ConfigError(
            f"the application has these MCP servers: {known}; expected one, or --path"
            if servers
            else "the application has no MCP server: write mcp = app.mcp('/mcp')"
        )
    return next(iter(servers.values()))


class Pipes(NamedTuple):
    """Standard input and output, which the application has not got."""

    source: int
    output: int


def take_pipes() -> Pipes:
    """Take standard input and output, before the application is imported."""
    pipes = Pipes(os.dup(0), os.dup(1))
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)  # a process that it starts would read messages of the client
    os.close(nothing)
    os.dup2(2, 1)  # what it prints, also by way of the descriptor
    sys.stdin, sys.stdout = open(0, closefd=False), sys.stderr  # noqa: SIM115
    return pipes


def serve(
    app: App,
    config: Config,
    pipes: Pipes,
    *,
    path: str | None,
    headers: Sequence[tuple[str, str]],
) -> None:
    """Serve until standard input ends.

    Raises:
        ConfigError: There is no such server, or the application cannot be served.
    """
    asyncio.run(_Bridge(app, config, server_of(app, path), headers, pipes).run())


class _Bridge:
    """One client at standard input and output."""

    def __init__(
        self,
        app: App,
        config: Config,
        server: MCPServer,
        headers: Sequence[tuple[str, str]],
        pipes: Pipes,
    ) -> None:
        self._adapter = ASGIAdapter(app, config)
        self._bytes_max: int = config.limits_in_force.get("body_bytes_max", 16 * 1024 * 1024)
        self._server = server
        server.resume_s = 0  # a pipe that breaks does not come back
        self._headers = [(name.lower().encode(), value.encode()) for name, value in headers]
        self._pipes = pipes
        self._session: str | None = None
        self._version: str | None = None
        self._writing = asyncio.Lock()
        self._room = asyncio.Semaphore(RUNNING_MAX + WAITING_MAX)
        self._requests: dict[Any, _Exchange] = {}
        self._running = 0
        self._waiting: deque[_Exchange] = deque()
        """Requests that are not begun yet."""
        self._tasks: set[asyncio.Task[None]] = set()
        self._stream: asyncio.Task[None] | None = None

    async def run(self) -> None:
        """Serve until standard input ends."""
        loop = asyncio.get_running_loop()
        lines: asyncio.Queue[bytes | None] = asyncio.Queue()
        begun, ended = asyncio.Event(), asyncio.Event()
        failure: list[str] = []

        async def receive() -> dict[str, Any]:
            if begun.is_set():
                await ended.wait()
                return {"type": "lifespan.shutdown"}
            return {"type": "lifespan.startup"}

        async def send(message: dict[str, Any]) -> None:
            if message["type"] == "lifespan.startup.failed":
                failure.append(message.get("message", ""))
            begun.set()

        life = loop.create_task(self._adapter({"type": "lifespan"}, receive, cast("Any", send)))
        await begun.wait()
        if failure:
            await life
            raise ConfigError(f"the application could not start: {failure[0]}")
        for number in (signal.SIGTERM, signal.SIGINT):
            with suppress(NotImplementedError):  # not on Windows
                loop.add_signal_handler(number, lines.put_nowait, None)
        Thread(target=self._read, args=(loop, lines), daemon=True).start()
        try:
            while (line := await lines.get()) is not None:
                await self._take(line)
            leaving.end_by(monotonic() + DRAIN_S + END_S, 0)
            await self._drain()
        finally:
            ended.set()
            await life

    def _read(self, loop: asyncio.AbstractEventLoop, lines: asyncio.Queue[bytes | None]) -> None:
        """Read lines, in a thread: standard input may be a file, a pipe or a terminal."""
        with suppress(RuntimeError):  # the loop is closed
            for line in _lines(self._pipes.source, self._bytes_max):
                asyncio.run_coroutine_threadsafe(self._offer(lines, line), loop).result()
            loop.call_soon_threadsafe(lines.put_nowait, None)

    async def _offer(self, lines: asyncio.Queue[bytes | None], line: bytes) -> None:
        await self._room.acquire()
        lines.put_nowait(line)

    async def _drain(self) -> None:
        if self._stream is not None:
            self._stream.cancel()
        for one in list(self._requests.values()):
            if one.is_endless:
                one.leave()
        until = monotonic() + DRAIN_S
        while self._tasks and monotonic() < until:
            # What waits is begun by what ends.
            await asyncio.wait(
                self._tasks, timeout=until - monotonic(), return_when=asyncio.FIRST_COMPLETED
            )
        self._waiting.clear()
        late = list(self._tasks)
        for task in late:
            task.cancel()
        if late:
            await asyncio.wait(late, timeout=_CANCEL_S)

    async def _take(self, line: bytes) -> None:
        """One line: a message."""
        message: Any = None
        try:
            if len(line) > self._bytes_max:
                raise Fault(PARSE_ERROR, f"a message has more than {self._bytes_max} bytes")
            if not line.strip():
                self._room.release()
                return
            message = parsed(line)
        except Fault as fault:
            self._room.release()
            await self._write(encode({"jsonrpc": "2.0", "id": None, "error": fault.error()}))
            return
        given = cast("dict[str, Any]", message) if isinstance(message, dict) else {}
        method = given.get("method")
        if method == "notifications/cancelled" and self._cancel(given):
            self._room.release()
            return
        exchange = _Exchange(self, given, line)
        if exchange.identifier is not None:
            self._requests[exchange.identifier] = exchange
            if self._running >= RUNNING_MAX and method != "initialize":
                self._waiting.append(exchange)
                return
        task = self._begin(exchange)
        # What follows belongs to the session that this begins, or comes after it in its order.
        if method == "initialize" or given.get("id") is None:
            await asyncio.wait((task,))

    def _cancel(self, notification: dict[str, Any]) -> bool:
        """Cancel a request that waits or is without a session; ``False`` if the server does that."""
        params = notification.get("params")
        named = cast("dict[str, Any]", params) if isinstance(params, dict) else {}
        wanted = named.get("requestId")
        exchange = self._requests.get(wanted) if isinstance(wanted, (int, str)) else None
        if exchange is not None and exchange in self._waiting:
            self._waiting.remove(exchange)
            del self._requests[wanted]
            self._room.release()
            return True
        if self._session is None and exchange is not None:
            exchange.leave()
        return self._session is None

    def _begin(self, exchange: _Exchange) -> asyncio.Task[None]:
        if exchange.identifier is not None:
            self._running += 1
        task = asyncio.get_running_loop().create_task(self._serve(exchange))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    async def _serve(self, exchange: _Exchange) -> None:
        identifier = exchange.identifier
        try:
            await exchange.run()
        finally:
            self._room.release()
            if identifier is not None:
                if self._requests.get(identifier) is exchange:
                    del self._requests[identifier]
                self._running -= 1
                if self._waiting and self._running < RUNNING_MAX:
                    self._begin(self._waiting.popleft())

    # --- what an exchange needs -----------------------------------------------------------------------------

    async def call(self, scope: dict[str, Any], receive: Any, send: Any) -> None:
        """Have the application serve a request."""
        scope = {
            "type": "http", "asgi": {"version": "3.0"}, "http_version": "1.1", "scheme": "http",
            "path": self._server.full_path, "raw_path": self._server.full_path.encode(),
            "query_string": b"", "root_path": "", "client": None, "server": None, **scope,
        }  # fmt: skip
        await self._adapter(scope, receive, send)

    def fields(self, message: dict[str, Any]) -> list[tuple[bytes, bytes]]:
        """The header section of a message, which an HTTP client would have sent."""
        found = [
            (b"host", b"localhost"), (b"content-type", b"application/json"),
            (b"accept", b"application/json, text/event-stream"), *self._headers,
        ]  # fmt: skip
        params = message.get("params")
        given = cast("dict[str, Any]", params) if isinstance(params, dict) else {}
        meta = given.get("_meta")
        said = cast("dict[str, Any]", meta) if isinstance(meta, dict) else {}
        version = said.get(PROTOCOL_VERSION)
        if isinstance(version, str):
            method = str(message.get("method", ""))
            found += [(b"mcp-protocol-version", _field(version)), (b"mcp-method", _field(method))]
            name = given.get(_NAMED.get(method, ""))
            if isinstance(name, str):
                found.append((b"mcp-name", _field(name)))
                if method == "tools/call":
                    found += self._mirrored(name, given.get("arguments"))
        elif self._session is not None:
            found.append((b"mcp-session-id", self._session.encode()))
            if self._version is not None and message.get("method") != "initialize":
                found.append((b"mcp-protocol-version", self._version.encode()))
        return found

    def _mirrored(self, name: str, arguments: object) -> list[tuple[bytes, bytes]]:
        from citius.mcp.fields import mirrored

        tool = self._server.tools.get(name)
        if tool is None or not isinstance(arguments, dict):
            return []
        given = cast("dict[str, Any]", arguments)
        texts = [(field, given.get(argument)) for argument, field in tool.mirrored]
        return [
            (field.encode(), _field(text))
            for field, value in texts
            if value is not None and (text := mirrored(value)) is not None
        ]

    def begun(self, fields: dict[bytes, bytes], response: bytes) -> None:
        """A session has begun."""
        session = fields.get(b"mcp-session-id")
        if session is None:
            return
        self._session = session.decode()
        self._version = parsed(response)["result"]["protocolVersion"]
        if self._stream is None:
            self._stream = asyncio.get_running_loop().create_task(self._listen())

    async def _listen(self) -> None:
        """Pass on what belongs to no request."""
        await _Exchange(self, {}, b"", method="GET").run()

    async def write(self, message: bytes) -> None:
        """Write a message."""
        await self._write(message)

    async def _write(self, message: bytes) -> None:
        async with self._writing:
            await asyncio.to_thread(_write_all, self._pipes.output, message + b"\n")


def _write_all(output: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(output, view) :]


def _lines(source: int, bytes_max: int) -> Iterator[bytes]:
    """The lines of a descriptor; of one that is too long the first ``bytes_max + 1`` bytes.

    Without a buffer of Python's, whose lock a thread that waits for input would hold at the exit.
    """
    begun, is_cut = bytearray(), False
    while data := os.read(source, _READ_BYTES):
        *ends, rest = data.split(b"\n")
        for end in ends:
            if not is_cut:
                begun += end
                yield bytes(begun[: bytes_max + 1])
            begun.clear()
            is_cut = False
        if is_cut:
            continue
        begun += rest
        if len(begun) > bytes_max:
            yield bytes(begun[: bytes_max + 1])
            begun.clear()
            is_cut = True
    if begun:
        yield bytes(begun)


class _Exchange:
    """One request of HTTP, in memory."""

    def __init__(
        self, bridge: _Bridge, message: dict[str, Any], line: bytes, *, method: str = "POST"
    ) -> None:
        self._bridge = bridge
        self._message = message
        identifier = message.get("id")
        is_request = message.get("method") is not None and type(identifier) in (int, str)
        self.identifier: int | str | None = identifier if is_request else None
        self._line = line.strip()
        self._method = method
        self._left = asyncio.Event()
        self._is_sent = False
        self._status = 0
        self._fields: dict[bytes, bytes] = {}
        self._body = b""

    @property
    def is_endless(self) -> bool:
        """Whether it ends only when the client wants it to."""
        return self._message.get("method") == "subscriptions/listen"

    def leave(self) -> None:
        """Cancel it, as a client of HTTP does that closes its connection."""
        self._left.set()

    async def run(self) -> None:
        """Serve it."""
        headers = self._bridge.fields(self._message)
        if self._method == "POST":
            headers.append((b"content-length", str(len(self._line)).encode()))
        scope = {"method": self._method, "headers": headers}
        await self._bridge.call(scope, self._receive, self._send)

    async def _receive(self) -> dict[str, Any]:
        if not self._is_sent:
            self._is_sent = True
            return {"type": "http.request", "body": self._line, "more_body": False}
        await self._left.wait()
        return {"type": "http.disconnect"}

    async def _send(self, message: dict[str, Any]) -> None:
        if message["type"] == "http.response.start":
            self._status = message["status"]
            self._fields = dict(message["headers"])
            return
        self._body += message.get("body", b"")
        if self._media_type == b"text/event-stream":
            while b"\n\n" in self._body:
                block, _, self._body = self._body.partition(b"\n\n")
                for line in block.split(b"\n"):
                    if line.startswith(b"data: "):
                        await self._bridge.write(line[6:])
        elif not message.get("more_body", False):
            await self._finish()

    @property
    def _media_type(self) -> bytes:
        return self._fields.get(b"content-type", b"").partition(b";")[0]

    async def _finish(self) -> None:
        if self._message.get("method") == "initialize" and self._status == 200:
            self._bridge.begun(self._fields, self._body)
        if self._media_type == b"application/json":
            await self._bridge.write(self._body)
        elif self._status >= 400 and "id" in self._message and self._method == "POST":
            # A refusal of HTTP's, of a dependency for instance.
            detail = self._body.decode("utf-8", "replace")
            if self._media_type == b"application/problem+json":
                problem = parsed(self._body)
                detail = problem.get("detail") or problem.get("title", "")
            fault = Fault(INTERNAL_ERROR, detail, {"status": self._status})
            made = {"jsonrpc": "2.0", "id": self._message["id"], "error": fault.error()}
            await self._bridge.write(encode(made))


def _field(text: str) -> bytes:
    """A text as a field's value."""
    if text.isascii() and text.isprintable() and text == text.strip() and not text.startswith("=?"):
        return text.encode()
    return b"=?base64?%b?=" % base64.b64encode(text.encode("utf-8", "surrogatepass"))


__all__ = ["STATELESS", "serve", "server_of"]
