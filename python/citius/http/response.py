"""Responses: whole ones, and streamed ones for coroutines and for threads.

A whole response holds what the transport has made; texts, fields and values are made when they are asked for.
Tests: ``tests/http/test_responses.py``, ``tests/http/test_streams.py``.
"""

from __future__ import annotations

import codecs
import functools
from typing import TYPE_CHECKING, Any, Final, Literal, TypeVar, overload

from citius.http import decoding
from citius.http.base import waited
from citius.http.errors import DecodingError, StatusError, TooLarge
from citius.http.events import EventReader, LineReader
from citius.http.request import Request
from citius.http.urls import joined

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterator
    from types import ModuleType
    from typing import TypeAlias

    from citius.http.base import RawFields, Reply
    from citius.http.events import ReceivedEvent
    from citius.http.urls import URL

    Reference: TypeAlias = tuple[str, URL | None, str]
    """A method, the base URL of a client, and what was asked for."""
    from citius.web.binding.headers import Headers

_T = TypeVar("_T")
# Codecs of Python that are no charsets, or that take time that grows faster than the text.
_NO_CHARSETS: Final = frozenset(
    {
        "idna",
        "punycode",
        "unicode_escape",
        "raw_unicode_escape",
        "undefined",
        "mbcs",
        "oem",
        "utf_7",
    }
)


class Response:
    """A response.

    Attributes:
        status_code: The status.
        history: The redirects that led here, first ones first.
    """

    __slots__ = ("_content", "_headers", "_limit", "_reply", "_request", "history", "status_code")

    def __init__(
        self,
        reply: Reply,
        request: Request | Reference,
        limit: int,
        history: tuple[Response, ...] = (),
    ) -> None:
        self._reply = reply
        self._request = request
        self._limit = limit
        self._content: bytes | None = None
        self._headers: Headers | None = None
        self.status_code = reply.status
        self.history = history

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.status_code} of {self.method} {self.url}>"

    # --- where it comes from ---

    @property
    def request(self) -> Request:
        """The request that it belongs to; after redirects the last one."""
        if isinstance(self._request, tuple):
            method, base, reference = self._request
            self._request = Request(method, joined(base, reference))
        return self._request

    @property
    def method(self) -> str:
        """The method of that request."""
        one = self._request
        return one[0] if isinstance(one, tuple) else one.method

    @property
    def url(self) -> URL:
        """Where that request went."""
        return self.request.url

    @property
    def http_version(self) -> str:
        """``HTTP/1.1``, ``HTTP/1.0`` or ``HTTP/2``."""
        return self._reply.http_version

    @property
    def is_connection_reused(self) -> bool:
        """Whether the connection had served a request before."""
        return self._reply.connection_reused

    @property
    def remote(self) -> str:
        """Address and port of the peer."""
        return self._reply.remote

    # --- status and fields ---

    @property
    def is_success(self) -> bool:
        """Whether the status is 2xx."""
        return 200 <= self.status_code < 300

    @property
    def is_redirect(self) -> bool:
        """Whether it leads to another URL."""
        return self.status_code in REDIRECTS and self._reply.field(b"location") is not None

    @property
    def is_error(self) -> bool:
        """Whether the status is 4xx or 5xx."""
        return self.status_code >= 400

    @property
    def headers(self) -> Headers:
        """The fields."""
        if self._headers is None:
            self._headers = _headers(self._reply.fields)
        return self._headers

    @property
    def trailers(self) -> Headers:
        """The fields behind the content; of a streamed response when it has been read."""
        return _headers(self._reply.trailers)

    @property
    def informational(self) -> list[tuple[int, Headers]]:
        """Interim responses (1xx) that came before, with their fields."""
        return [(status, _headers(fields)) for status, fields in self._reply.informational]

    def raise_for_status(self: _ResponseT) -> _ResponseT:
        """The response itself, if its status is below 400.

        Raises:
            StatusError: It is not.
        """
        if self.status_code < 400:
            return self
        raise status_error(self)

    # --- content ---

    @property
    def content(self) -> bytes:
        """The content, decompressed.

        Raises:
            DecodingError: It is not in the coding that the response says.
            TooLarge: It has more than ``Limits.body_bytes_max`` bytes.
        """
        if self._content is None:
            coding = _codings(self._reply)
            body = self._body()
            if coding is not None:
                body = decoding.whole(coding, body, self._limit)
            self._content = body
        return self._content

    def _body(self) -> bytes:
        return self._reply.body

    @property
    def charset(self) -> str:
        """The charset that the content type says; UTF-8 without one that Python knows."""
        return charset_of(self._reply.field(b"content-type"))

    @property
    def text(self) -> str:
        """The content as text; what is not in its charset becomes U+FFFD."""
        return self.content.decode(self.charset, "replace")

    def json(self) -> Any:
        """The content as JSON.

        Raises:
            DecodingError: It is none.
        """
        return self.decode(None)

    @overload
    def decode(self, type: type[_T], *, format: Literal["json", "msgpack"] = ...) -> _T: ...
    @overload
    def decode(self, type: object, *, format: Literal["json", "msgpack"] = ...) -> Any: ...
    def decode(self, type: Any, *, format: Literal["json", "msgpack"] = "json") -> Any:
        """The content as a value of a type: a struct of msgspec, a model of pydantic, ``list[Item]``.

        Raises:
            DecodingError: It is no JSON, or of another type; the message says where.
        """
        try:
            return _declared().decoder(format, type)(self.content)
        except DecodingError:
            raise
        except (*_declared().REFUSALS, TypeError, RecursionError) as error:
            name = "JSON" if type is None else getattr(type, "__name__", str(type))
            failed = DecodingError(
                f"the response {self.status_code} of {self.method} {self.url} is no {name}: {error}"
            )
            failed.url, failed.method = str(self.url), self.method
            raise failed from error


_ResponseT = TypeVar("_ResponseT", bound=Response)
REDIRECTS: Final = frozenset({301, 302, 303, 307, 308})


@functools.cache
def _declared() -> ModuleType:
    """The module of decoders, which a client that decodes nothing does not import."""
    from citius.web.declarations import codecs

    return codecs


def _headers(fields: RawFields) -> Headers:
    from citius.web.binding.headers import Headers

    return Headers([(n.decode("latin-1").lower(), v.decode("latin-1")) for n, v in fields])


def _codings(reply: Reply) -> str | None:
    """The content codings, of all lines of their field."""
    if reply.field(b"content-encoding") is None:
        return None
    lines = [value for name, value in reply.fields if name.lower() == b"content-encoding"]
    return b", ".join(lines).decode("latin-1")


def status_error(response: Response) -> StatusError:
    """The exception for a response with a status from 400 on."""
    error = StatusError(
        f"{response.method} {response.url}: the response has the status {response.status_code}",
        response,
    )
    error.method, error.url, error.origin = response.method, str(response.url), response.url.origin
    return error


def charset_of(content_type: bytes | None) -> str:
    """The charset of a content type, as a codec of Python's."""
    if content_type is None:
        return "utf-8"
    for parameter in content_type.decode("latin-1").split(";")[1:]:
        name, _, value = parameter.partition("=")
        if name.strip().lower() == "charset":
            try:
                found = codecs.lookup(value.strip().strip("\"'"))
            except (LookupError, ValueError):
                return "utf-8"
            is_text = getattr(found, "_is_text_encoding", True)
            name = found.name.replace("-", "_")
            return found.name if is_text and name not in _NO_CHARSETS else "utf-8"
    return "utf-8"


class _Streamed(Response):
    """What both kinds of streamed responses have."""

    __slots__ = ("_is_read", "_on_close")

    def __init__(
        self,
        reply: Reply,
        request: Request,
        limit: int,
        history: tuple[Response, ...] = (),
    ) -> None:
        super().__init__(reply, request, limit, history)
        self._is_read = False
        self._on_close: Callable[[], None] | None = None

    def _begin(self) -> decoding.Chain | None:
        if self._is_read:
            raise RuntimeError("the content of a streamed response is read once")
        self._is_read = True
        coding = _codings(self._reply)
        return None if coding is None else decoding.Chain(coding)

    def _body(self) -> bytes:
        raise RuntimeError(
            "the content of a streamed response has not been read: call read() first"
        )

    def _take(self, pieces: list[bytes], piece: bytes, total: int) -> int:
        pieces.append(piece)
        total += len(piece)
        if total > self._limit:
            raise TooLarge(
                f"the content of {self.method} {self.url} has more than {self._limit} bytes "
                "(Limits.body_bytes_max); iter_bytes() has no limit"
            )
        return total

    def _too_long(self, error: OverflowError) -> TooLarge:
        return TooLarge(f"{self.method} {self.url} has sent {error}")

    def _text_decoder(self) -> codecs.IncrementalDecoder:
        return codecs.getincrementaldecoder(self.charset)("replace")

    def _event_reader(self, last_event_id: str | None) -> EventReader:
        content_type = (
            (self._reply.field(b"content-type") or b"").partition(b";")[0].strip().lower()
        )
        if self.status_code != 200 or content_type != b"text/event-stream":
            raise DecodingError(
                f"the response {self.status_code} of {self.method} {self.url} is no stream of events: "
                f"its content type is {content_type.decode('latin-1') or 'not said'}"
            )
        return EventReader(last_event_id)

    def _close(self) -> None:
        self._is_read = True
        on_close, self._on_close = self._on_close, None
        self._reply.close()
        if on_close is not None:
            on_close()

    def on_close(self, callback: Callable[[], None]) -> None:
        """Have ``callback`` called when the response is given up or left."""
        self._on_close = callback


class StreamedResponse(_Streamed):
    """A response whose content is read as it comes, in ``async with client.stream(…) as response``."""

    __slots__ = ()

    async def iter_raw(self) -> AsyncIterator[bytes]:
        """The pieces as they came, not decompressed."""
        self._begin()
        while piece := await self._reply.read():
            yield piece

    async def iter_bytes(self) -> AsyncIterator[bytes]:
        """The pieces of the content, decompressed, in pieces of some 256 KiB at most."""
        chain = self._begin()
        read = self._reply.read
        if not chain:
            while piece := await read():
                yield piece
            return
        while data := await read():
            for piece in chain.decode(data):
                yield piece
        chain.end()

    async def iter_text(self) -> AsyncIterator[str]:
        """The content as text, in pieces."""
        decoder = self._text_decoder()
        async for piece in self.iter_bytes():
            if text := decoder.decode(piece):
                yield text
        if text := decoder.decode(b"", True):
            yield text

    async def iter_lines(self) -> AsyncIterator[str]:
        """The lines of the content, without their ends."""
        lines = LineReader()
        try:
            async for text in self.iter_text():
                for line in lines.receive(text):
                    yield line
        except OverflowError as error:
            raise self._too_long(error) from None
        if rest := lines.rest():
            yield rest

    async def iter_events(self, last_event_id: str | None = None) -> AsyncIterator[ReceivedEvent]:
        """The events of a stream (``text/event-stream``), each as it comes.

        Raises:
            DecodingError: The response is no stream of events.
        """
        reader = self._event_reader(last_event_id)
        try:
            async for piece in self.iter_bytes():
                for event in reader.receive(piece):
                    yield event
        except OverflowError as error:
            raise self._too_long(error) from None

    async def read(self) -> bytes:
        """The whole content, which ``content``, ``text`` and ``json()`` have from then on.

        Raises:
            TooLarge: It has more than ``Limits.body_bytes_max`` bytes.
        """
        if self._content is None:
            pieces: list[bytes] = []
            total = 0
            async for piece in self.iter_bytes():
                total = self._take(pieces, piece, total)
            self._content = b"".join(pieces)
        return self._content

    async def close(self) -> None:
        """Give the rest up; the end of the block does it too."""
        self._close()


class SyncStreamedResponse(_Streamed):
    """A response whose content is read as it comes, in ``with client.sync.stream(…) as response``."""

    __slots__ = ()

    def iter_raw(self) -> Iterator[bytes]:
        """The pieces as they came, not decompressed."""
        self._begin()
        while piece := waited(self._reply.read()):
            yield piece

    def iter_bytes(self) -> Iterator[bytes]:
        """The pieces of the content, decompressed."""
        chain = self._begin()
        while data := waited(self._reply.read()):
            if chain:
                yield from chain.decode(data)
            else:
                yield data
        if chain:
            chain.end()

    def iter_text(self) -> Iterator[str]:
        """The content as text, in pieces."""
        decoder = self._text_decoder()
        for piece in self.iter_bytes():
            if text := decoder.decode(piece):
                yield text
        if text := decoder.decode(b"", True):
            yield text

    def iter_lines(self) -> Iterator[str]:
        """The lines of the content, without their ends."""
        lines = LineReader()
        try:
            for text in self.iter_text():
                yield from lines.receive(text)
        except OverflowError as error:
            raise self._too_long(error) from None
        if rest := lines.rest():
            yield rest

    def iter_events(self, last_event_id: str | None = None) -> Iterator[ReceivedEvent]:
        """The events of a stream (``text/event-stream``), each as it comes."""
        reader = self._event_reader(last_event_id)
        try:
            for piece in self.iter_bytes():
                yield from reader.receive(piece)
        except OverflowError as error:
            raise self._too_long(error) from None

    def read(self) -> bytes:
        """The whole content, which ``content``, ``text`` and ``json()`` have from then on."""
        if self._content is None:
            pieces: list[bytes] = []
            total = 0
            for piece in self.iter_bytes():
                total = self._take(pieces, piece, total)
            self._content = b"".join(pieces)
        return self._content

    def close(self) -> None:
        """Give the rest up; the end of the block does it too."""
        self._close()
