"""Requests of the test clients: fields, cookies, redirects and bytes; what both clients have in common.

Nothing here waits: ``client.py`` and ``asyncclient.py`` carry the bytes.
Tests: ``tests/interop/test_client.py``, ``tests/interop/test_async_client.py``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, Literal, TypedDict, TypeVar, overload

from citius.testing.bodies import pairs, urlencode
from citius.testing.cookies import Cookies
from citius.web.binding.headers import Headers

if TYPE_CHECKING:
    from collections.abc import AsyncIterable, Iterable, Mapping

    from citius.testing.bodies import Files, Pairs

_T = TypeVar("_T")

Fields = list[tuple[str, str]]

HOST: Final = "testserver"
"""The host of requests that name none."""

REDIRECTS_MAX: Final = 20
"""Redirects that are followed for one request."""

_REDIRECTS = frozenset({301, 302, 303, 307, 308})


class _Options(TypedDict, total=False):
    headers: Pairs | None
    params: Pairs | None
    json: object
    msgpack: object
    form: Pairs | None
    files: Files | None
    auth: tuple[str, str] | None


class EventOptions(_Options, total=False):
    """The arguments of ``stream`` that ``events`` passes on."""

    content: bytes | str | Iterable[bytes] | None


class RequestOptions(EventOptions, total=False):
    """The arguments of ``Client.request``."""

    follow_redirects: bool | None


class AsyncRequestOptions(_Options, total=False):
    """The arguments of ``AsyncClient.request``."""

    content: bytes | str | Iterable[bytes] | AsyncIterable[bytes] | None
    follow_redirects: bool | None


class TooManyRedirects(Exception):
    """A response redirects again after ``REDIRECTS_MAX`` redirects."""


class TestResponse:
    """The response to a request of the test client."""

    __test__ = False  # for pytest, which takes a class of such a name for tests

    def __init__(self, status_code: int, headers: Headers, content: bytes = b"") -> None:
        self.status_code = status_code
        self.headers = headers
        self.content = content
        self.history: list[TestResponse] = []
        """The redirects that led to it."""

    @property
    def text(self) -> str:
        """The body as UTF-8."""
        return self.content.decode()

    @overload
    def json(self) -> Any: ...
    @overload
    def json(self, type: type[_T]) -> _T: ...
    def json(self, type: Any = None) -> Any:
        """The body as JSON; of that type, if one is given."""
        import msgspec

        return msgspec.json.decode(self.content, type=Any if type is None else type)

    @overload
    def msgpack(self) -> Any: ...
    @overload
    def msgpack(self, type: type[_T]) -> _T: ...
    def msgpack(self, type: Any = None) -> Any:
        """The body as MessagePack; of that type, if one is given."""
        import msgspec

        return msgspec.msgpack.decode(self.content, type=Any if type is None else type)

    def __repr__(self) -> str:
        return f"<TestResponse {self.status_code} {len(self.content)} bytes>"


class RequestMaker:
    """Makes the bytes of requests, and keeps the cookies of responses."""

    def __init__(self, headers: Mapping[str, str] | None, scheme: Literal["http", "https"]) -> None:
        self.cookies = Cookies()
        self.scheme = scheme
        self._headers = [(name.lower(), value) for name, value in (headers or {}).items()]

    def fields(
        self, headers: Pairs | None, content_type: str | None, auth: tuple[str, str] | None
    ) -> Fields:
        """The fields of a request; those of the client that it does not have itself come first."""
        own = [(name.lower(), value) for name, value in pairs(headers)]
        if content_type is not None and all(name != "content-type" for name, _ in own):
            own.append(("content-type", content_type))
        if auth is not None:
            from base64 import b64encode

            own.append(("authorization", f"Basic {b64encode(':'.join(auth).encode()).decode()}"))
        names = {name for name, _ in own}
        return [one for one in self._headers if one[0] not in names] + own

    def head(self, method: str, path: str, fields: Fields, body: object) -> bytes:
        """The head of a request; a body that is not bytes is sent in chunks."""
        names = {name for name, _ in fields}
        fields = list(fields)
        if "host" not in names:
            fields.append(("host", HOST))
        if "cookie" not in names:
            path_only = path.partition("?")[0]
            cookies = self.cookies.header(_host_of(fields), path_only, self.scheme == "https")
            fields += [("cookie", cookies)] if cookies else []
        if isinstance(body, bytes) and "content-length" not in names:
            fields.append(("content-length", str(len(body))))
        elif body is not None and not isinstance(body, bytes) and "transfer-encoding" not in names:
            fields.append(("transfer-encoding", "chunked"))
        lines = [f"{method} {_target(path)} HTTP/1.1", *(f"{k}: {v}" for k, v in fields), "", ""]
        return b"\r\n".join(map(_line, lines))

    def received(self, head: Fields, path: str, fields: Fields) -> Headers:
        """The fields of a response, whose cookies are kept."""
        headers = Headers(head)
        for line in headers.getlist("set-cookie"):
            self.cookies.receive(line, _host_of(fields), path)
        return headers


def _target(path: str) -> str:
    """A target as clients send it: what is not ASCII is percent-encoded UTF-8 (RFC 3987 §3.1)."""
    if path.isascii():
        return path
    return "".join(
        one if one.isascii() else "".join(f"%{byte:02X}" for byte in _utf8(one)) for one in path
    )


def _line(text: str) -> bytes:
    """A line of a head: each character is a byte if all are, else it is UTF-8."""
    try:
        return text.encode("latin-1")
    except UnicodeEncodeError:
        return _utf8(text)


def _utf8(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")


class Redirects:
    """A request that follows redirects: what to send next, until there is a response to return."""

    def __init__(self, method: str, path: str, fields: Fields, body: Any, *, follows: bool) -> None:
        self.method = method
        self.path = path
        self.fields = fields
        self.body = body
        self._follows = follows
        self._history: list[TestResponse] = []

    def is_last(self, response: TestResponse) -> bool:
        """Whether ``response`` is the one to return; if not, the attributes say what to send next.

        Raises:
            TooManyRedirects: It redirects again.
        """
        response.history = self._history
        location = response.headers.get("location")
        if not self._follows or response.status_code not in _REDIRECTS or location is None:
            return True
        if len(self._history) >= REDIRECTS_MAX:
            raise TooManyRedirects(f"{REDIRECTS_MAX} redirects, the last one to {location}")
        self._history = [*self._history, response]
        if _becomes_get(response.status_code, self.method):
            self.method, self.body = "GET", None
            self.fields = [one for one in self.fields if not one[0].startswith("content-")]
        self.path, self.fields = _redirected(self.path, location, self.fields)
        return False


def with_query(path: str, params: Pairs | None) -> str:
    """A target with ``params`` appended to its query."""
    if params is None:
        return path
    return path + ("&" if "?" in path else "?") + urlencode(params)


def with_subprotocols(fields: Fields, subprotocols: Iterable[str]) -> Fields:
    """The fields of a handshake that offers these."""
    offered = ", ".join(subprotocols)
    return [*fields, ("sec-websocket-protocol", offered)] if offered else fields


def _host_of(fields: Fields) -> str:
    """The host that a request is for, without its port."""
    host = next((value for name, value in fields if name == "host"), HOST)
    name, _, port = host.rpartition(":")
    return (name if port.isdecimal() else host).lower()


def _becomes_get(status: int, method: str) -> bool:
    """Whether the request is repeated without its body (RFC 9110 §15.4)."""
    return (status == 303 and method != "HEAD") or (status in (301, 302) and method == "POST")


def _redirected(path: str, location: str, fields: Fields) -> tuple[str, Fields]:
    """Path and fields of the request that a redirect asks for."""
    from urllib.parse import urljoin, urlsplit

    before = _host_of(fields)
    target = urlsplit(urljoin(f"http://{before}{path}", location))
    if target.hostname != before:
        # What is for one host is not told to another.
        fields = [one for one in fields if one[0] not in ("host", "authorization", "cookie")]
        fields.append(("host", target.netloc))
    return (target.path or "/") + (f"?{target.query}" if target.query else ""), fields
