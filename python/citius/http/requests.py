"""An adapter for requests: ``session.mount("https://", Adapter())``.

Sessions call by the client's connections then, in threads and serial handlers. What requests does above its
adapter stays what it is. Options that a session gives with a request (``verify``, ``cert``, ``proxies``) have
connections of their own. Tests: ``tests/http/test_requests.py``.
"""

from __future__ import annotations

import io
from typing import TYPE_CHECKING, Any, Final, TypeAlias, cast

import requests
from requests.adapters import BaseAdapter
from requests.structures import CaseInsensitiveDict
from requests.utils import get_encoding_from_headers, select_proxy
from urllib3 import HTTPHeaderDict, HTTPResponse, Timeout
from urllib3.exceptions import ReadTimeoutError
from urllib3.util import SKIP_HEADER

from citius.http import errors
from citius.http.base import waited
from citius.http.client import Client
from citius.http.sync import refuse_loop
from citius.http.urls import parse
from citius.serial import is_serial, park

if TYPE_CHECKING:
    from collections.abc import Mapping

    from citius.http.base import RawFields, Reply, Upload

    Cert: TypeAlias = str | tuple[str, str] | None

_FRAMING: Final = frozenset({"content-length", "transfer-encoding", "connection"})
_ERRORS: Final[tuple[tuple[type[Exception], type[Exception]], ...]] = (
    (errors.ConnectTimeout, requests.ConnectTimeout),
    (errors.PoolTimeout, requests.ConnectTimeout),
    (errors.TimedOut, requests.ReadTimeout),
    (errors.TlsError, requests.exceptions.SSLError),
    (errors.ProxyError, requests.exceptions.ProxyError),
    (errors.InvalidURL, requests.exceptions.InvalidURL),
    (errors.LocalProtocolError, requests.exceptions.InvalidHeader),
    (errors.RequestError, requests.ConnectionError),
)


def _raised(error: Exception, request: requests.PreparedRequest) -> Exception:
    kind = next(kind for own, kind in _ERRORS if isinstance(error, own))
    return kind(str(error), request=request)


class Adapter(BaseAdapter):
    """Sends the requests of a session.

    Args:
        options: Options of ``Client`` about connections, for all requests: ``limits``, ``http2``, ``allow``.
    """

    def __init__(self, **options: Any) -> None:
        super().__init__()
        self._options = options
        self._clients: dict[Any, Client] = {}

    def _client(self, verify: bool | str, cert: Cert, proxy: str | None) -> Client:
        key = verify, cert, proxy
        if (client := self._clients.get(key)) is None:
            pair = (cert, cert) if isinstance(cert, str) else cert
            given: dict[str, Any] = {
                "verify": verify,
                "cert": pair,
                "proxy": proxy,
                "trust_env": False,
            }
            client = self._clients[key] = Client(**{**given, **self._options})
        return client

    def send(
        self,
        request: requests.PreparedRequest,
        stream: bool = False,
        timeout: float | tuple[float | None, float | None] | None = None,
        verify: bool | str = True,
        cert: Any = None,
        proxies: Mapping[str, str] | None = None,
    ) -> requests.Response:
        """Send a request."""
        if not is_serial():
            refuse_loop()
        try:
            url = parse(request.url or "")
        except errors.RequestError as error:
            raise _raised(error, request) from error
        proxy: str | None = select_proxy(request.url or "", proxies)  # pyright: ignore[reportArgumentType]
        if cert is not None and not isinstance(cert, str):
            cert = (cert[0], cert[1])  # a list, as requests takes one
        client = self._client(verify, cert, proxy)
        connect_s, read_s = _seconds(timeout)
        opened = client.open_here()
        handle = client.engine.origin(opened, url).handle
        fields: Any = _fields(request, proxy)
        body: Any = request.body
        if isinstance(body, str):
            body = body.encode()
        is_whole = body is None or isinstance(body, bytes)
        upload = None if is_whole else opened.transport.upload(_length(request))
        try:
            call: Any = opened.send(
                handle, request.method or "GET", url.target, fields, body if is_whole else upload, True,
                (connect_s, read_s, read_s, connect_s, None),
            )  # fmt: skip
            if upload is not None:
                start = getattr(call, "start", None)
                if start is not None:
                    start()
                _feed(upload, body)
            reply = waited(call)
            made = _response(request, reply, self)
            if not stream:
                made.content  # noqa: B018 - reads it, as other adapters do
            return made
        except errors.RequestError as error:
            raise _raised(error, request) from error

    def close(self) -> None:
        """Close all connections."""
        while self._clients:
            _, client = self._clients.popitem()
            if is_serial():
                park(client.close())
            else:
                client.close_here()


def _seconds(given: Any) -> tuple[float | None, float | None]:
    """For connecting and for reading: of a number, a pair, or a ``Timeout`` of urllib3."""
    if isinstance(given, Timeout):
        made = given.clone()
        made.start_connect()
        return _number(made.connect_timeout), _number(made.read_timeout)
    connect_s, read_s = cast(
        "tuple[Any, Any]", given if isinstance(given, tuple) else (given, given)
    )
    return connect_s, read_s


def _number(given: Any) -> float | None:
    return given if isinstance(given, int | float) else None


def _fields(request: requests.PreparedRequest, proxy: str | None) -> list[tuple[str, str]]:
    """The fields of a request, but its framing; values that urllib3 has for "not this one" are left out."""
    # After a redirect a session sets what the client says to the proxy itself.
    left_out = _FRAMING if proxy is None else _FRAMING | {"proxy-authorization"}
    headers: Any = request.headers
    fields = [
        (name, value)
        for name, value in headers.items()
        if name.lower() not in left_out and value != SKIP_HEADER
    ]
    if "accept-encoding" not in headers:
        # As http.client says it: a server may choose any without it (RFC 9110 §12.5.3).
        fields.append(("Accept-Encoding", "identity"))
    return fields


def _length(request: requests.PreparedRequest) -> int | None:
    length = str(request.headers.get("content-length", ""))
    return int(length) if length.isdecimal() else None


def _feed(upload: Upload, body: Any) -> None:
    pieces = iter(lambda: body.read(65536), b"") if hasattr(body, "read") else body
    try:
        for piece in pieces:
            if piece:
                waited(upload.send(piece if isinstance(piece, bytes) else str(piece).encode()))
        waited(upload.end())
    except errors.RequestError:
        upload.abort()  # the reply says more
    except BaseException:
        upload.abort()
        raise


class _Content(io.RawIOBase):
    """The content of a reply as a file, which urllib3 reads and decompresses."""

    def __init__(self, reply: Reply, request: requests.PreparedRequest) -> None:
        super().__init__()
        self._reply, self._request, self._rest = reply, request, b""

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        if not self._rest:
            try:
                self._rest = waited(self._reply.read())
            except errors.TimedOut as error:
                # What requests makes a ConnectionError of.
                where: Any = self._request.url
                raise ReadTimeoutError(where, None, str(error)) from error
            except errors.RequestError as error:
                raise _raised(error, self._request) from error
        count = min(len(buffer), len(self._rest))
        buffer[:count], self._rest = self._rest[:count], self._rest[count:]
        return count

    def close(self) -> None:
        if not self.closed:
            self._reply.close()
        super().close()


class _Original:
    """What requests reads cookies from."""

    def __init__(self, fields: RawFields) -> None:
        self.msg = self
        self._fields = fields

    def get_all(self, name: str, default: Any = None) -> Any:
        found = [
            value.decode("latin-1")
            for key, value in self._fields
            if key.decode("latin-1").lower() == name.lower()
        ]
        return found or default

    def isclosed(self) -> bool:
        return True

    def close(self) -> None:
        """Do nothing."""


def _response(
    request: requests.PreparedRequest, reply: Reply, adapter: Adapter
) -> requests.Response:
    fields = reply.fields
    headers = HTTPHeaderDict()
    for name, value in fields:
        headers.add(name.decode("latin-1"), value.decode("latin-1"))
    original: Any = _Original(fields)
    version = {"HTTP/1.0": 10, "HTTP/1.1": 11}.get(reply.http_version, 20)
    raw = HTTPResponse(
        io.BufferedReader(_Content(reply, request)), headers, reply.status, version,
        preload_content=False, decode_content=False, original_response=original,
        request_method=request.method,
    )  # fmt: skip
    made = requests.Response()
    made.status_code = reply.status
    made.headers = CaseInsensitiveDict(headers)  # pyright: ignore[reportArgumentType]
    made.encoding = get_encoding_from_headers(made.headers)
    made.raw = raw
    made.reason = getattr(reply, "reason", b"").decode("latin-1")
    made.url = request.url or ""
    made.request = request
    requests.cookies.extract_cookies_to_jar(made.cookies, request, raw)  # pyright: ignore
    made.connection = adapter  # pyright: ignore[reportAttributeAccessIssue]
    return made
