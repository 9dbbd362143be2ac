"""WSGI applications (PEP 3333) below a prefix of a native one, called in the threads of blocking handlers.

``SCRIPT_NAME`` is the prefix, ``PATH_INFO`` the rest. The body is read while it arrives; what the
application yields is sent at the client's pace. Tests: ``tests/interop/test_wsgi_mounts.py``,
``tests/frameworks/test_mounts.py``.
"""

from __future__ import annotations

import io
import sys
from typing import TYPE_CHECKING, Any, TypeAlias, cast
from urllib.parse import unquote_to_bytes

from citius._core import Request, Response
from citius.web.binding.headers import is_of_connection
from citius.web.interop.mounts import below, named
from citius.web.interop.scopes import server_of
from citius.web.routing.declared_routes import Operation, Route

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from typing_extensions import Buffer

WSGIApplication: TypeAlias = "Callable[..., Iterable[bytes]]"


def wsgi_routes(prefix: str, app: WSGIApplication) -> list[Route]:
    """Routes of all methods for the prefix and what is below it."""

    def mounted(request: Request, _path: str) -> Response:
        return _Call(request, prefix).respond(app)

    def mounted_at(request: Request) -> Response:
        return mounted(request, "")

    operation = Operation(include_in_schema=False)
    return [
        Route("*", pattern, named(handler, app), "blocking", stream=True, operation=operation)
        for pattern, handler in below(prefix, mounted_at, mounted)
    ]


def environ_of(request: Request, prefix: str) -> dict[str, Any]:
    """The environ of a request for an application at ``prefix``."""
    path = unquote_to_bytes(request.raw_path).decode("latin-1")
    script_name = request.root_path.encode().decode("latin-1") + prefix.encode().decode("latin-1")
    server = server_of(request) or ("localhost", 80)
    environ: dict[str, Any] = {
        "REQUEST_METHOD": request.method,
        "SCRIPT_NAME": script_name,
        "PATH_INFO": path[len(prefix.encode()) :],
        "QUERY_STRING": request.raw_query.decode("latin-1"),
        "RAW_URI": request.target.decode("latin-1"),
        "SERVER_NAME": server[0],
        "SERVER_PORT": str(server[1]),
        "SERVER_PROTOCOL": f"HTTP/{request.http_version}",
        "wsgi.version": (1, 0),
        "wsgi.url_scheme": request.scheme,
        "wsgi.input": io.BufferedReader(_Input(request)),
        "wsgi.input_terminated": True,
        "wsgi.errors": sys.stderr,
        "wsgi.multithread": True,
        "wsgi.multiprocess": True,
        "wsgi.run_once": False,
    }
    if request.client is not None:
        environ["REMOTE_ADDR"], environ["REMOTE_PORT"] = request.client[0], str(request.client[1])
    for name, value in request.header_items():
        if "_" in name:
            continue  # it would pass for the field with hyphens
        key = name.upper().replace("-", "_")
        if key not in ("CONTENT_TYPE", "CONTENT_LENGTH"):
            key = f"HTTP_{key}"
        known = environ.get(key)
        separator = "; " if key == "HTTP_COOKIE" else ","
        environ[key] = value if known is None else f"{known}{separator}{value}"
    return environ


class _Input(io.RawIOBase):
    """The body of a request, as it comes."""

    def __init__(self, request: Request) -> None:
        self._pieces: Iterator[bytes] = iter(request.stream())
        self._left = b""

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Buffer, /) -> int:
        view = memoryview(buffer).cast("B")
        while not self._left:
            piece = next(self._pieces, None)
            if piece is None:
                return 0
            self._left = piece
        count = min(len(view), len(self._left))
        view[:count] = self._left[:count]
        self._left = self._left[count:]
        return count


class _Call:
    """One call of an application."""

    def __init__(self, request: Request, prefix: str) -> None:
        self._environ = environ_of(request, prefix)
        self._status = 0
        self._headers: list[tuple[str, str]] = []
        self._content_type: str | None = None
        self._is_sent = False
        self._written: list[bytes] = []
        self._is_head = request.method == "HEAD"

    def respond(self, app: WSGIApplication) -> Response:
        """Call the application up to its first piece; a stream has the rest of it.

        Raises:
            RuntimeError: It has not called ``start_response``.
        """
        result = app(self._environ, self._start_response)
        try:
            pieces = iter(result)
            first = next((piece for piece in pieces if piece), b"")
            if not self._status:
                raise RuntimeError("the WSGI application returned without calling start_response")
            self._is_sent = True
            if self._is_whole(result, first):
                body: Any = b"".join(self._written) + first
            else:
                return self._response(self._stream(first, pieces, result))
        except BaseException:
            _close(result)
            raise
        _close(result)
        return self._response(body)

    def _is_whole(self, result: Any, first: bytes) -> bool:
        """Whether there is no more to come."""
        return not first or (
            isinstance(result, list | tuple) and len(cast("list[bytes]", result)) == 1
        )

    def _response(self, body: Any) -> Response:
        headers = self._headers
        if isinstance(body, bytes) and (body or not self._is_head):
            headers = [(name, value) for name, value in headers if name != "content-length"]
        return Response(body, self._status, headers, self._content_type)

    def _stream(self, first: bytes, pieces: Iterator[bytes], result: Any) -> Iterator[bytes]:
        try:
            yield from self._written
            yield first
            yield from pieces
        finally:
            _close(result)

    def _start_response(
        self, status: str, headers: list[tuple[str, str]], exc_info: Any = None, /
    ) -> Callable[[bytes], object]:
        if exc_info is not None:
            try:
                if self._is_sent:
                    raise exc_info[1].with_traceback(exc_info[2])
            finally:
                exc_info = None
        elif self._status:
            raise RuntimeError("start_response was called twice without exc_info")
        self._status = int(status.split(" ", 1)[0])
        self._headers, self._content_type = [], None
        for name, value in headers:
            name = name.lower()
            if name == "content-type" and self._content_type is None:
                self._content_type = value
            elif name in _HOP_BY_HOP or is_of_connection(name, value):
                raise ValueError(
                    f"start_response: {name}: {value} is between the server and its peer (PEP 3333, "
                    '"Other HTTP Features"); leave it out, the server sends what is needed'
                )
            else:
                self._headers.append((name, value))
        return self._written.append


def _close(result: Any) -> None:
    close = getattr(result, "close", None)
    if close is not None:
        close()


# What PEP 3333 forbids beside what no response has, as start_state.rs refuses it.
_HOP_BY_HOP = frozenset({"proxy-authenticate", "proxy-authorization", "trailer", "trailers"})
