"""Answers for a client of ``citius.http``, declared or recorded, so that tests call no other service.

    from citius.http import Client
    from citius.testing.http import MockTransport

    mock = MockTransport()
    mock.add("GET", "https://users/users/7", json={"name": "Ada"})
    client = Client("https://users", transport=mock)
    ...
    assert mock.calls[0].url == "https://users/users/7"

``Recorder`` asks the service itself once, and answers from a file afterwards. Tests:
``tests/http/test_mock_transport.py``.
"""

from __future__ import annotations

import asyncio
import json as json_module
from base64 import b64decode, b64encode
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from citius.http.errors import RequestError, WriteError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from citius.http.base import Fields, RawFields, Transport
    from citius.http.options import Deadlines
    from citius.http.urls import URL

__all__ = ["MockCall", "MockReply", "MockRoute", "MockTransport", "NotDeclared", "Recorder"]


class NotDeclared(AssertionError):
    """A request for which the test has declared no answer."""


@dataclass(frozen=True, slots=True)
class MockCall:
    """A request that a mock transport got."""

    method: str
    url: str
    headers: dict[str, str]
    content: bytes
    is_streamed: bool
    """The response was asked for as a stream."""
    deadlines: Deadlines | None
    """Seconds for connecting, reading, writing, waiting for a connection, and in all."""

    def json(self) -> Any:
        """The content, decoded."""
        return json_module.loads(self.content)


class MockReply:
    """A response to give.

    Args:
        status_code: Its status.
        headers: Its fields.
        content: Its content: bytes, a text, or pieces for a stream; an exception among them is raised there.
        json: Its content as a value.
        trailers: Fields behind the content.
        informational: Interim responses before it: statuses and fields.
    """

    http_version = "HTTP/1.1"
    connection_reused = True
    remote = "mock"

    def __init__(
        self,
        status_code: int = 200,
        *,
        headers: Mapping[str, str] | Iterable[tuple[str, str]] = (),
        content: bytes | str | Iterable[bytes | BaseException] = b"",
        json: object = None,
        trailers: Iterable[tuple[str, str]] = (),
        informational: Sequence[tuple[int, Sequence[tuple[str, str]]]] = (),
    ) -> None:
        self.status = status_code
        items = headers.items() if hasattr(headers, "items") else headers  # pyright: ignore[reportAttributeAccessIssue, reportUnknownMemberType, reportUnknownVariableType]
        self.fields = _raw(items)  # pyright: ignore[reportArgumentType]
        if json is not None:
            from citius.web.declarations.codecs import encode_json

            content = encode_json(json)
            if self.field(b"content-type") is None:
                self.fields.append((b"content-type", b"application/json"))
        if isinstance(content, str):
            content = content.encode()
        self._pieces: list[bytes | BaseException] = (
            [content] if isinstance(content, bytes) else list(content)
        )
        self.trailers = _raw(trailers)
        self.informational = [(status, _raw(fields)) for status, fields in informational]
        self.is_closed = False

    def field(self, name: bytes) -> bytes | None:
        """The first value of a name in lower case."""
        return next((value for key, value in self.fields if key.lower() == name), None)

    def copy(self) -> MockReply:
        """The same response for another request."""
        made = MockReply(self.status, content=self._pieces)
        made.fields, made.trailers = list(self.fields), list(self.trailers)
        made.informational = list(self.informational)
        return made

    def for_method(self, method: str) -> MockReply:
        """The response without its content, if a response to ``method`` with this status has none."""
        if method == "HEAD" or self.status in (204, 304):
            self._pieces = []
        return self

    @property
    def body(self) -> bytes:
        """The whole content."""
        found: list[bytes] = []
        for piece in self._pieces:
            if isinstance(piece, BaseException):
                raise piece
            found.append(piece)
        return b"".join(found)

    async def read(self) -> bytes:
        """The next piece."""
        while self._pieces and not self.is_closed:
            piece = self._pieces.pop(0)
            if isinstance(piece, BaseException):
                raise piece
            if piece:
                return piece
        return b""

    def close(self) -> None:
        """Give it up."""
        self.is_closed = True


def _raw(fields: Iterable[tuple[str, str]]) -> RawFields:
    return [(name.encode("latin-1"), value.encode("latin-1")) for name, value in fields]


@dataclass(slots=True)
class MockRoute:
    """An answer that was declared."""

    method: str
    url: str
    replies: list[MockReply | BaseException | Callable[[MockCall], MockReply]]
    calls: list[MockCall] = field(default_factory=list[MockCall])
    """The requests that it has answered."""

    def is_for(self, method: str, url: str) -> bool:
        """Whether it answers this request; without a query it answers all queries."""
        if self.method not in ("*", method):
            return False
        return self.url in ("*", url) or ("?" not in self.url and self.url == url.partition("?")[0])


class MockUpload:
    """A body that is kept."""

    def __init__(self) -> None:
        self.data = bytearray()
        self.is_aborted = False
        self.ended = asyncio.Event()
        self.trailers: list[tuple[bytes | str, bytes | str]] = []

    async def send(self, data: bytes) -> None:
        """Keep a piece."""
        if self.is_aborted:
            raise WriteError("the upload was given up")
        self.data += data

    async def end(self, trailers: Iterable[tuple[bytes | str, bytes | str]] = ()) -> None:
        """Keep the trailers."""
        self.trailers = list(trailers)
        self.ended.set()

    def abort(self) -> None:
        """Note it."""
        self.is_aborted = True
        self.ended.set()


class MockTransport:
    """Answers requests as it was told; ``Client(transport=mock)``.

    Attributes:
        calls: The requests that came.
    """

    def __init__(self) -> None:
        self.calls: list[MockCall] = []
        self.routes: list[MockRoute] = []

    def add(
        self,
        method: str,
        url: str,
        *replies: MockReply | BaseException | Callable[[MockCall], MockReply],
        status_code: int = 200,
        headers: Mapping[str, str] | Iterable[tuple[str, str]] = (),
        content: bytes | str | Iterable[bytes | BaseException] = b"",
        json: object = None,
    ) -> MockRoute:
        """Declare answers for a method and a URL (``"*"``: any); those that were declared last come first.

        Args:
            method: The method.
            url: The URL; without a query it stands for all queries.
            replies: Answers of the requests, one after another; the last one is that of all further ones. An
                exception is raised, a function is called with the ``MockCall``.
            status_code: Status of the answer, without ``replies``.
            headers: Its fields.
            content: Its content.
            json: Its content as a value.
        """
        answers = list(replies) or [
            MockReply(status_code, headers=headers, content=content, json=json)
        ]
        route = MockRoute(method, url, answers)
        self.routes.insert(0, route)
        return route

    def assert_all_called(self) -> None:
        """Check that each answer was asked for.

        Raises:
            AssertionError: One was not.
        """
        if unused := [f"{route.method} {route.url}" for route in self.routes if not route.calls]:
            raise AssertionError(f"these were not requested: {', '.join(reversed(unused))}")

    # --- what the client uses ---

    def origin(self, url: URL, proxy: str | None) -> URL:
        """The URL itself."""
        return url

    def upload(self, length: int | None = None) -> Any:
        """A body that is kept."""
        return MockUpload()

    def send(
        self,
        origin: URL,
        method: str,
        target: str,
        fields: Fields,
        body: bytes | Any | None = None,
        stream: bool = False,
        deadlines: Deadlines | None = None,
    ) -> _Answer:
        """Answer a request."""
        return _Answer(self, origin, method, target, fields, body, stream, deadlines)

    def answer(self, call: MockCall) -> MockReply:
        """The answer to a request.

        Raises:
            NotDeclared: There is none.
        """
        self.calls.append(call)
        for route in self.routes:
            if route.is_for(call.method, call.url):
                route.calls.append(call)
                found = route.replies[min(len(route.calls), len(route.replies)) - 1]
                if isinstance(found, BaseException):
                    raise found
                reply = found.copy() if isinstance(found, MockReply) else found(call)
                return reply.for_method(call.method)
        known = ", ".join(f"{route.method} {route.url}" for route in self.routes) or "nothing"
        raise NotDeclared(f"{call.method} {call.url} was not declared; there is {known}")


class _Answer:
    """An answer, when it is awaited: the body of the request has come by then."""

    def __init__(
        self, mock: MockTransport, origin: URL, method: str, target: str, fields: Fields,
        body: bytes | MockUpload | None, stream: bool, deadlines: Deadlines | None,
    ) -> None:  # fmt: skip
        self._mock, self._origin, self._method, self._target = mock, origin, method, target
        self._fields, self._body, self._stream, self._deadlines = fields, body, stream, deadlines

    def start(self) -> None:
        """Do nothing."""

    def wait(self) -> MockReply:
        """The answer."""
        body = self._body
        headers: dict[str, str] = {}
        for name, value in self._fields:
            key, text = _text(name).lower(), _text(value)
            headers[key] = f"{headers[key]}, {text}" if key in headers else text
        content = bytes(body.data) if isinstance(body, MockUpload) else body or b""
        url = f"{self._origin.origin}{self._target}"
        call = MockCall(self._method, url, headers, content, self._stream, self._deadlines)
        return self._mock.answer(call)

    def __await__(self) -> Any:
        """The answer."""
        if isinstance(self._body, MockUpload) and not self._body.ended.is_set():
            yield from self._body.ended.wait().__await__()
        return self.wait()


def _text(given: bytes | str) -> str:
    return given if isinstance(given, str) else given.decode("latin-1")


class Recorder(MockTransport):
    """Answers from a file what was asked before, and asks the service itself what was not.

    Requests are the same if method, URL and content are. The file has no credentials: fields of requests are
    not kept, and neither is ``Set-Cookie`` of responses.

    Args:
        path: The file, in JSON.
        transport: What asks the service; without it a request that is not in the file is ``NotDeclared``.
        mode: ``"once"``: new requests are added; ``"all"``: everything is asked again; ``"none"``: nothing
            is.
    """

    def __init__(
        self,
        path: str | Path,
        transport: Transport | None = None,
        *,
        mode: Literal["once", "all", "none"] = "once",
    ) -> None:
        super().__init__()
        self._path, self._transport, self._mode = Path(path), transport, mode
        is_read = mode != "all" and self._path.exists()
        self._kept: list[dict[str, Any]] = (
            json_module.loads(self._path.read_text()) if is_read else []
        )

    def send(
        self,
        origin: URL,
        method: str,
        target: str,
        fields: Fields,
        body: bytes | Any | None = None,
        stream: bool = False,
        deadlines: Deadlines | None = None,
    ) -> Any:
        """Answer a request."""
        return self._send(origin, method, target, fields, body, stream, deadlines)

    async def _send(
        self, origin: URL, method: str, target: str, fields: Fields, body: Any, stream: bool,
        deadlines: Deadlines | None,
    ) -> MockReply:  # fmt: skip
        if body is not None and not isinstance(body, bytes):
            raise RequestError("a recorder keeps requests whose content is bytes")
        url, content = f"{origin.origin}{target}", b64encode(body or b"").decode()
        for kept in self._kept:
            if (kept["method"], kept["url"], kept["content"]) == (method, url, content):
                return _of_kept(kept)
        if self._transport is None or self._mode == "none":
            raise NotDeclared(f"{method} {url} is not in {self._path}")
        handle = self._transport.origin(origin, None)
        reply = await self._transport.send(handle, method, target, fields, body, False, deadlines)
        kept = {
            "method": method, "url": url, "content": content, "status_code": reply.status,
            "headers": [
                (name.decode("latin-1"), value.decode("latin-1"))
                for name, value in reply.fields if name.lower() != b"set-cookie"
            ],
            "body": b64encode(reply.body).decode(),
        }  # fmt: skip
        self._kept.append(kept)
        self._path.write_text(json_module.dumps(self._kept, indent=1) + "\n")
        return _of_kept(kept)


def _of_kept(kept: dict[str, Any]) -> MockReply:
    headers = [(str(name), str(value)) for name, value in kept["headers"]]
    return MockReply(kept["status_code"], headers=headers, content=b64decode(kept["body"]))
