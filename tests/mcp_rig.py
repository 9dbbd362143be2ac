"""A client of MCP for tests, with nothing of ours in it but the transport: what it sends is written here.

``Session`` calls an application in memory, or a server, in any version of the protocol.
"""

from __future__ import annotations

import itertools
import json
import subprocess
import sys
from typing import Any, Protocol

import httpx

STATELESS = "2026-07-28"
SESSIONS = ("2025-03-26", "2025-06-18", "2025-11-25")
VERSIONS = (*SESSIONS, STATELESS)

META = "io.modelcontextprotocol/"

ALL: dict[str, Any] = {
    "sampling": {}, "roots": {}, "elicitation": {"form": {}, "url": {}},
}  # fmt: skip
"""Capabilities of a client that can be asked for everything."""


class Reply(Protocol):
    status_code: int
    content: bytes
    headers: Any


class Posts(Protocol):
    def post(self, path: str, /, *, content: bytes, headers: dict[str, str]) -> Any: ...


class Session:
    """What a client of one version sends.

    Args:
        client: What requests are made with: ``citius.testing.Client`` or ``httpx.Client``.
        version: The version of the protocol.
        capabilities: What it declares.
        path: Where the server is.
    """

    def __init__(
        self,
        client: Posts,
        version: str = STATELESS,
        capabilities: dict[str, Any] | None = None,
        path: str = "/mcp",
        headers: dict[str, str] | None = None,
    ) -> None:
        self.client = client
        self.version = version
        self.capabilities = capabilities or {}
        self.path = path
        self.fields = dict(headers or {})
        self.numbers = itertools.count(1)
        self.session: str | None = None
        self.server: dict[str, Any] = {}
        if version != STATELESS:
            self._initialize()

    def _initialize(self) -> None:
        info = {"name": "tests", "version": "1"}
        params = {
            "protocolVersion": self.version,
            "capabilities": self.capabilities,
            "clientInfo": info,
        }
        reply = self.post({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params})
        assert reply.status_code == 200, reply.content
        self.session = reply.headers["mcp-session-id"]
        self.server = json.loads(reply.content)["result"]
        assert self.server["protocolVersion"] == self.version
        done = self.post({"jsonrpc": "2.0", "method": "notifications/initialized"})
        assert (done.status_code, done.content) == (202, b"")

    def message(self, method: str, params: dict[str, Any], meta: dict[str, Any]) -> dict[str, Any]:
        """A request."""
        made: dict[str, Any] = {
            "jsonrpc": "2.0",
            "id": next(self.numbers),
            "method": method,
            "params": dict(params),
        }
        if self.version == STATELESS:
            own = {
                META + "protocolVersion": STATELESS,
                META + "clientInfo": {"name": "tests", "version": "1"},
                META + "clientCapabilities": self.capabilities,
            }
            meta = own | meta
        if meta:
            made["params"]["_meta"] = meta
        return made

    def headers(self, message: dict[str, Any]) -> dict[str, str]:
        """The fields of a request."""
        found = {
            "content-type": "application/json",
            "accept": "application/json, text/event-stream",
            **self.fields,
        }
        if self.session is not None:
            found |= {"mcp-session-id": self.session, "mcp-protocol-version": self.version}
        if self.version == STATELESS:
            found["mcp-protocol-version"] = STATELESS
            found["mcp-method"] = message.get("method", "")
            params = message.get("params", {})
            name = params.get("name", params.get("uri"))
            if name is not None and message["method"] in (
                "tools/call",
                "prompts/get",
                "resources/read",
            ):
                found["mcp-name"] = name
        return found

    def post(self, message: dict[str, Any], **fields: str) -> Any:
        """Send a message."""
        headers = self.headers(message) | {name.replace("_", "-"): v for name, v in fields.items()}
        return self.client.post(self.path, content=json.dumps(message).encode(), headers=headers)

    def send(self, method: str, params: dict[str, Any] | None = None, **meta: Any) -> Any:
        """The reply to a request."""
        return self.post(self.message(method, params or {}, meta))

    def ask(self, method: str, params: dict[str, Any] | None = None, **meta: Any) -> dict[str, Any]:
        """The response to a request, of JSON or the last of a stream."""
        return messages_of(self.send(method, params, **meta))[-1]

    def result(
        self, method: str, params: dict[str, Any] | None = None, **meta: Any
    ) -> dict[str, Any]:
        """Its result."""
        response = self.ask(method, params, **meta)
        assert "result" in response, response
        return response["result"]

    def error(
        self, method: str, params: dict[str, Any] | None = None, **meta: Any
    ) -> dict[str, Any]:
        """Its error."""
        response = self.ask(method, params, **meta)
        assert "error" in response, response
        return response["error"]

    def call(self, name: str, /, **arguments: Any) -> dict[str, Any]:
        """The result of a tool."""
        return self.result("tools/call", {"name": name, "arguments": arguments})

    def text(self, name: str, /, **arguments: Any) -> str:
        """The text of a tool's result."""
        return self.call(name, **arguments)["content"][0]["text"]


def messages_of(reply: Any) -> list[dict[str, Any]]:
    """The messages of a response."""
    if not str(reply.headers["content-type"]).startswith("text/event-stream"):
        return [json.loads(reply.content)]
    return events_of(reply.content)


def events_of(data: bytes) -> list[dict[str, Any]]:
    """The messages of a stream."""
    found: list[dict[str, Any]] = []
    for block in data.decode().split("\n\n"):
        lines = [line[6:] for line in block.splitlines() if line.startswith("data: ")]
        if any(lines):  # an event without data has an identifier to come back with
            found.append(json.loads("\n".join(lines)))
    return found


def accepted(**content: object) -> dict[str, Any]:
    """What a client sends whose user has filled in a form."""
    return {"action": "accept", "content": content}


class Stream:
    """A call whose stream is read message by message."""

    def __init__(self, session: Session, message: dict[str, Any], port: int) -> None:
        self.session = session
        self.http = httpx.Client(base_url=f"http://127.0.0.1:{port}", timeout=30)
        request = self.http.build_request(
            "POST", "/mcp", content=json.dumps(message).encode(), headers=session.headers(message)
        )
        self.response = self.http.send(request, stream=True)
        self.pieces = self.response.iter_raw()
        self.received = b""
        self.last_id: str | None = None

    def next(self) -> dict[str, Any]:
        """The next message."""
        while True:
            while b"\n\n" not in self.received:
                self.received += next(self.pieces)
            block, _, self.received = self.received.partition(b"\n\n")
            if found := self._events_of(block):
                return found[0]

    def rest(self) -> list[dict[str, Any]]:
        """Those that follow."""
        return self._events_of(self.received + b"".join(self.pieces))

    def _events_of(self, data: bytes) -> list[dict[str, Any]]:
        for line in data.decode().splitlines():
            if line.startswith("id: "):
                self.last_id = line[4:]
        return events_of(data + b"\n\n")

    def close(self) -> None:
        self.response.close()
        self.http.close()


class Listening(Stream):
    """The stream of a session, or the rest of a call's."""

    def __init__(self, session: Session, port: int, last_id: str | None = None) -> None:
        self.http = httpx.Client(base_url=f"http://127.0.0.1:{port}", timeout=30)
        assert session.session is not None
        headers = {"mcp-session-id": session.session, "accept": "text/event-stream"}
        if last_id is not None:
            headers["last-event-id"] = last_id
        request = self.http.build_request("GET", "/mcp", headers=headers)
        self.response = self.http.send(request, stream=True)
        assert self.response.status_code == 200, self.response.read()
        self.pieces = self.response.iter_raw()
        self.received = b""
        self.last_id = last_id


class Process:
    """The command, as a client starts it."""

    def __init__(self, *arguments: str) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-m", "citius", "mcp", *arguments],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        )  # fmt: skip

    def send(self, *messages: dict[str, Any] | bytes) -> None:
        assert self.process.stdin is not None
        for one in messages:
            data = one if isinstance(one, bytes) else json.dumps(one).encode()
            self.process.stdin.write(data + b"\n")
        self.process.stdin.flush()

    def next(self) -> dict[str, Any]:
        assert self.process.stdout is not None
        return json.loads(self.process.stdout.readline())

    def end(self) -> tuple[list[dict[str, Any]], str]:
        """What is left of standard output, and standard error."""
        output, errors = self.process.communicate(timeout=30)
        assert self.process.returncode == 0, errors
        return [json.loads(line) for line in output.splitlines()], errors.decode()

    def initialize(self, version: str = "2025-11-25", **capabilities: Any) -> dict[str, Any]:
        self.send(
            request(
                "initialize", 0, protocolVersion=version, capabilities=capabilities,
                clientInfo={"name": "tests", "version": "1"},
            )
        )  # fmt: skip
        said = self.next()
        self.send({"jsonrpc": "2.0", "method": "notifications/initialized"})
        return said["result"]


def request(method: str, identifier: int | str, /, **params: Any) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": identifier, "method": method, "params": params}
