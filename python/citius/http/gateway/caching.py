"""Responses of other servers that are kept and sent again: a shared cache by RFC 9111.

In: a request whose head has been made, and what passes it on. Out: a stored response, or the other server's,
which is stored while it passes. ``docs/guides/gateway.md`` says what is kept. Tests:
``tests/http/gateway/test_caching.py``.
"""

from __future__ import annotations

import asyncio
import time
from collections import OrderedDict
from contextlib import suppress
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from citius._core import Response
from citius.errors import ConfigError, HTTPError
from citius.http.errors import RequestError
from citius.unknown_options import known_options
from citius.web.middleware.etags import is_since, matches, unchanged

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Awaitable, Callable

    from citius._core import Request

    Lines = list[tuple[bytes, bytes]]
    PassOn = Callable[[Request, str, Lines], Awaitable[Response]]

_STORABLE: Final = frozenset({200, 203, 204, 300, 301, 308, 404, 405, 410, 414, 501})
"""Statuses that a cache understands and that are complete."""
_SAFE: Final = ("GET", "HEAD", "OPTIONS", "TRACE")
_BYPASSED: Final = ("range", "if-range", "if-match", "if-unmodified-since", "upgrade", "expect")
_CONDITIONS: Final = (b"if-none-match", b"if-modified-since")
_SECONDS_MAX: Final = 1 << 31
_OVERHEAD_BYTES: Final = 512
"""What an entry takes beside its fields and content."""
_VARIANTS_MAX: Final = 16
"""Responses for one URL that differ by ``Vary``."""
_CHANGED_MAX: Final = 1000
"""URLs of which it is known when they were invalidated."""
_COLLAPSED_S: Final = 10.0
"""How long a request waits for the same one before it."""

Directives = dict[str, "str | None"]


@known_options
class HTTPCache:
    """Responses that are kept in the memory of a worker (RFC 9111); a cache that all clients share.

    Args:
        bytes_max: Bytes of all responses; the one used longest ago is dropped first.
        entry_bytes_max: Bytes of a response that is kept.
        name: What ``Cache-Status`` calls it.

    Raises:
        ConfigError: An option cannot work.
    """

    def __init__(
        self, *, bytes_max: int = 64 << 20, entry_bytes_max: int = 1 << 20, name: str = "citius"
    ) -> None:
        if entry_bytes_max < 1 or bytes_max < entry_bytes_max + _OVERHEAD_BYTES:
            raise ConfigError(
                f"HTTPCache: bytes_max= ({bytes_max}) must exceed entry_bytes_max= ({entry_bytes_max}) by "
                f"{_OVERHEAD_BYTES} at least, and that 0"
            )
        if not name or not name.replace("-", "").replace("_", "").isalnum() or not name.isascii():
            raise ConfigError(f"HTTPCache(name=…) is letters, digits, - and _, got {name!r}")
        self.bytes_max, self.entry_bytes_max, self.name = bytes_max, entry_bytes_max, name
        self._entries: OrderedDict[Key, list[Entry]] = OrderedDict()
        self._changed: OrderedDict[Key, float] = OrderedDict()
        """When URLs were invalidated: a response to a request before is out of date when it comes."""
        self._bytes = 0

    def stats(self) -> dict[str, int]:
        """Responses that are kept, and their bytes."""
        return {
            "entries": sum(len(each) for each in self._entries.values()),
            "bytes": self._bytes,
        }

    def clear(self) -> None:
        """Drop all responses."""
        self._entries.clear()
        self._bytes = 0

    def find(self, key: Key, fields: Lines) -> Entry | None:
        """The latest response whose ``Vary`` this request meets."""
        variants = self._entries.get(key)
        if variants is None:
            return None
        self._entries.move_to_end(key)
        return next((one for one in reversed(variants) if one.is_for(fields)), None)

    def store(self, key: Key, entry: Entry) -> None:
        """Keep a response in place of others for the same requests."""
        if self._changed.get(key, entry.begun - 1) >= entry.begun:
            return
        variants = self._entries.setdefault(key, [])
        for one in [one for one in variants if one.varies == entry.varies]:
            self._drop(variants, one)
        variants.append(entry)
        self._bytes += entry.bytes
        self._entries.move_to_end(key)
        if len(variants) > _VARIANTS_MAX:
            self._drop(variants, variants[0])
        while self._bytes > self.bytes_max:
            oldest = next(iter(self._entries.values()))
            self._drop(oldest, oldest[0])
            if not oldest:
                self._entries.popitem(last=False)

    def invalidate(self, key: Key) -> None:
        """Drop the responses for a URL."""
        for one in self._entries.pop(key, []):
            self._bytes -= one.bytes
        self._changed[key] = time.monotonic()
        self._changed.move_to_end(key)
        if len(self._changed) > _CHANGED_MAX:
            self._changed.popitem(last=False)

    def _drop(self, variants: list[Entry], one: Entry) -> None:
        variants.remove(one)
        self._bytes -= one.bytes


class Key(NamedTuple):
    """What a response is the response for. A server may write links by the scheme and host it is told."""

    to: str
    scheme: str
    host: str
    target: str


class Entry:
    """A stored response."""

    def __init__(
        self, status: int, fields: list[tuple[str, str]], body: bytes, varies: Varies, begun: float
    ) -> None:
        self.status, self.varies = status, varies
        self.fields = [pair for pair in fields if pair[0] != "age"]
        self.refreshing: asyncio.Task[None] | None = None
        self.directives = directives(_all(fields, "cache-control"))
        self.lifetime_s = lifetime_s(self.directives, fields)
        self.begun = begun
        self._age_s, self._since = age_s(fields, begun), time.monotonic()
        self.set_body(body)

    def set_body(self, body: bytes) -> None:
        """The content has come."""
        self.body = body
        self.bytes = len(body) + _OVERHEAD_BYTES
        self.bytes += sum(len(name) + len(value) for name, value in self.fields)

    @property
    def age_s(self) -> float:
        """Its age now (RFC 9111 §4.2.3)."""
        return self._age_s + time.monotonic() - self._since

    @property
    def etag(self) -> str | None:
        """Its entity tag."""
        return _first(self.fields, "etag")

    @property
    def modified(self) -> str | None:
        """When it was modified last."""
        return _first(self.fields, "last-modified")

    @property
    def may_be_stale(self) -> bool:
        """Whether it may be sent when it is stale, if something allows that (RFC 9111 §4.2.4)."""
        strict = ("no-cache", "must-revalidate", "proxy-revalidate", "s-maxage")
        return not any(name in self.directives for name in strict)

    def is_for(self, fields: Lines) -> bool:
        """Whether the request with these fields gets it (RFC 9111 §4.1)."""
        return all(_sent(fields, name) == value for name, value in self.varies)

    def is_usable(self, asked: Directives) -> bool:
        """Whether it is sent without asking the other server (RFC 9111 §4, §5.2.1)."""
        if "no-cache" in self.directives or "no-cache" in asked:
            return False
        age_s = self.age_s
        limit = _seconds(asked, "max-age")
        if limit is not None and age_s > limit:
            return False
        left_s = self.lifetime_s - age_s
        if left_s > 0:
            return left_s >= (_seconds(asked, "min-fresh") or 0)
        if "max-stale" not in asked or not self.may_be_stale:
            return False
        allowed = _SECONDS_MAX if asked["max-stale"] is None else _seconds(asked, "max-stale") or 0
        return -left_s <= allowed

    def is_within(self, directive: str, asked: Directives) -> bool:
        """Whether it may be sent stale by ``stale-while-revalidate`` or ``stale-if-error`` (RFC 5861)."""
        limit = _seconds(self.directives, directive)
        if limit is None or not self.may_be_stale or "no-cache" in asked or "max-age" in asked:
            return False
        return self.age_s - self.lifetime_s <= limit

    def response(self, request: Request, status: str) -> Response:
        """What the client gets: this, or 304 if it has the same."""
        fields = [*self.fields, ("age", str(int(self.age_s))), ("cache-status", status)]
        response = Response(self.body, self.status, fields)
        etag, modified = self.etag, self.modified
        if request.header("if-none-match") is not None:
            has_it = etag is not None and matches(request, etag)
        else:
            has_it = modified is not None and is_since(request, modified)
        return unchanged(response) if has_it and self.status == 200 else response


class Caching:
    """The cache of one declaration.

    Args:
        cache: Where responses are kept.
        to: What the servers are called.
        own: Names of the fields that the declaration sets.
    """

    def __init__(self, cache: HTTPCache, to: str, own: set[bytes]) -> None:
        self._cache, self._to = cache, to
        self._has_own_authorization = b"authorization" in own
        self._underway: dict[Key, asyncio.Event] = {}

    async def respond(
        self, request: Request, target: str, fields: Lines, pass_on: PassOn
    ) -> Response:
        """The response for a request, whose head for the other server is there."""
        method = request.method
        key = self._key(request, target)
        if method not in ("GET", "HEAD") or _is_bypassed(request):
            response = await pass_on(request, target, fields)
            if method not in _SAFE and method != "CONNECT" and 200 <= response.status_code < 400:
                self._invalidate(key, response)
            return response
        asked = _asked(request)
        entry = self._cache.find(key, fields)
        if entry is not None:
            found = await self._stored(request, key, fields, entry, asked, pass_on)
            if found is not None:
                return found
        if "only-if-cached" in asked:
            raise HTTPError(504, "the cache has no response for it, and none other was asked for")
        if method == "HEAD" or "no-store" in asked:
            return await pass_on(request, target, fields)
        return await self._fetched(request, key, fields, asked, entry, pass_on)

    def _key(self, request: Request, target: str) -> Key:
        return Key(self._to, request.scheme, request.host.lower(), target)

    def _status(self, what: str) -> str:
        return f"{self._cache.name}; {what}"

    async def _stored(
        self, request: Request, key: Key, fields: Lines, entry: Entry, asked: Directives, pass_on: PassOn
    ) -> Response | None:  # fmt: skip
        """A stored response, if it is to be sent without waiting for the other server."""
        if entry.is_usable(asked):
            left_s = int(entry.lifetime_s - entry.age_s)
            return entry.response(request, self._status(f"hit; ttl={left_s}"))
        is_in_background = "only-if-cached" not in asked and request.method == "GET"
        if is_in_background and entry.is_within("stale-while-revalidate", asked):
            if entry.refreshing is None or entry.refreshing.done():
                entry.refreshing = asyncio.ensure_future(
                    self._refresh(request, key, fields, entry, pass_on)
                )
            return entry.response(request, self._status("hit; fwd=stale; detail=revalidating"))
        return None

    async def _refresh(
        self, request: Request, key: Key, fields: Lines, entry: Entry, pass_on: PassOn
    ) -> None:
        """Has the other server say whether a stored response is still right, after it was sent."""
        with suppress(HTTPError, RequestError):
            response = await self._exchanged(request, key, fields, {}, entry, pass_on)
            if isinstance(response.body, _Content):
                await response.body.fill()
            else:
                _close(response)

    async def _fetched(
        self, request: Request, key: Key, fields: Lines, asked: Directives, entry: Entry | None,
        pass_on: PassOn,
    ) -> Response:  # fmt: skip
        """Has the other server answer; the same request that is under way already is waited for."""
        if (before := self._underway.get(key)) is not None:
            with suppress(TimeoutError):
                await asyncio.wait_for(before.wait(), _COLLAPSED_S)
            entry = self._cache.find(key, fields)
            if entry is not None and entry.is_usable(asked):
                return entry.response(request, self._status("hit; collapsed"))
            return await self._exchanged(request, key, fields, asked, entry, pass_on)
        event = self._underway[key] = asyncio.Event()

        def over() -> None:
            if self._underway.get(key) is event:
                del self._underway[key]
            event.set()

        try:
            response = await self._exchanged(request, key, fields, asked, entry, pass_on, over)
        except BaseException:
            over()
            raise
        if not isinstance(response.body, _Content):
            over()
        return response

    async def _exchanged(
        self, request: Request, key: Key, fields: Lines, asked: Directives, entry: Entry | None,
        pass_on: PassOn, over: Callable[[], None] = lambda: None,
    ) -> Response:  # fmt: skip
        """The other server's response, or the stored one that it says is right still."""
        begun = time.monotonic()
        sent, validates = fields, False
        if entry is not None and (entry.etag or entry.modified):
            validates = True
            sent = [pair for pair in fields if pair[0].lower() not in _CONDITIONS]
            if entry.etag:
                sent.append((b"if-none-match", entry.etag.encode("latin-1")))
            if entry.modified:
                sent.append((b"if-modified-since", entry.modified.encode("latin-1")))
        try:
            response = await pass_on(request, key.target, sent)
        except HTTPError as error:
            if entry is not None and entry.is_within("stale-if-error", asked):
                return entry.response(
                    request, self._status(f"hit; fwd=stale; fwd-status={error.status_code}")
                )
            raise
        status, got = response.status_code, list(response.headers.multi_items())
        if entry is not None and validates and status == 304:
            await _drain(response)
            updated = self._updated(key, entry, got, begun)
            return updated.response(request, self._status("hit; fwd=stale; fwd-status=304"))
        if entry is not None and status >= 500 and entry.is_within("stale-if-error", asked):
            _close(response)
            return entry.response(request, self._status(f"hit; fwd=stale; fwd-status={status}"))
        why = "stale" if entry is not None else "uri-miss"
        varies = self._storable(request, status, got, fields)
        if varies is None:
            over()
            response.headers["cache-status"] = self._status(f"fwd={why}")
            return response
        kept = [pair for pair in got if pair[0] not in ("content-length", "cache-status")]
        content = _Content(
            self._cache, key, Entry(status, kept, b"", varies, begun), response.body, over
        )
        told = [pair for pair in got if pair[0] != "cache-status"]
        told.append(("cache-status", self._status(f"fwd={why}; stored")))
        return Response(content, status, told)

    def _updated(self, key: Key, entry: Entry, got: list[tuple[str, str]], begun: float) -> Entry:
        """The fields of a 304 replace those that are stored (RFC 9111 §3.2)."""
        left_out = (
            "content-length", "content-encoding", "content-range", "content-type", "cache-status",
        )  # fmt: skip
        new = [pair for pair in got if pair[0] not in left_out]
        names = {name for name, _ in new}
        fields = [pair for pair in entry.fields if pair[0] not in names] + new
        made = Entry(entry.status, fields, entry.body, entry.varies, begun)
        self._cache.store(key, made)
        return made

    def _storable(
        self, request: Request, status: int, got: list[tuple[str, str]], fields: Lines
    ) -> Varies | None:
        """Whether a response may be kept (RFC 9111 §3), and by which fields of requests it differs."""
        said = directives(_all(got, "cache-control"))
        if (
            request.method != "GET"
            or status not in _STORABLE
            or "no-store" in said
            or "private" in said
        ):
            return None
        if _first(got, "set-cookie") is not None or _first(got, "trailer") is not None:
            return None
        is_for_one = self._has_own_authorization or _sent(fields, "authorization") is not None
        if is_for_one and not any(
            name in said for name in ("public", "must-revalidate", "s-maxage")
        ):
            return None
        length = _first(got, "content-length")
        if length is not None and not (
            length.isdigit() and int(length) <= self._cache.entry_bytes_max
        ):
            return None
        can_be_validated = _first(got, "etag") or _first(got, "last-modified")
        if lifetime_s(said, got) <= 0 and not can_be_validated:
            return None
        names = {name.strip().lower() for value in _all(got, "vary") for name in value.split(",")}
        if "*" in names:
            return None
        return tuple((name, _sent(fields, name)) for name in sorted(names) if name)

    def _invalidate(self, key: Key, response: Response) -> None:
        """A change of a resource makes what is known of it wrong (RFC 9111 §4.4)."""
        self._cache.invalidate(key)
        for name in ("location", "content-location"):
            place = response.headers.get(name, "")
            base = f"{key.scheme}://{key.host}"
            if place.lower().startswith(f"{base}/"):
                place = place[len(base) :]
            if place.startswith("/") and not place.startswith("//"):
                self._cache.invalidate(key._replace(target=place.partition("#")[0]))


class _Content:
    """Content that is stored while it passes, once it is complete.

    ``over`` is called when it has been stored, or will not be: also if it is never asked for.
    """

    def __init__(
        self, cache: HTTPCache, key: Key, entry: Entry, body: Any, over: Callable[[], None]
    ) -> None:
        self._cache, self._key, self._entry, self._body = cache, key, entry, body
        self._over, self._is_too_large = over, False

    async def __aiter__(self) -> AsyncGenerator[bytes]:
        parts: list[bytes] = []
        size = 0
        try:
            async for part in self._body:
                size += len(part)
                if size <= self._cache.entry_bytes_max:
                    parts.append(part)
                elif not self._is_too_large:
                    self._is_too_large, parts = True, []
                    self._over()
                yield part
            if not self._is_too_large:
                self._entry.set_body(b"".join(parts))
                self._cache.store(self._key, self._entry)
        finally:
            self._over()
            _close_body(self._body)

    async def fill(self) -> None:
        """Have it stored without sending it."""
        pieces = self.__aiter__()
        async for _ in pieces:
            if self._is_too_large:
                break
        await pieces.aclose()

    def __del__(self) -> None:
        self._over()


Varies = tuple[tuple[str, "bytes | None"], ...]
"""Names of fields, and their values in the request."""


def _is_bypassed(request: Request) -> bool:
    return any(request.header(name) is not None for name in _BYPASSED) or (
        request.header("content-length", "0") != "0"
        or request.header("transfer-encoding") is not None
    )


def _asked(request: Request) -> Directives:
    if request.header("cache-control") is not None:
        return directives(request.headers.getlist("cache-control"))
    return {"no-cache": None} if "no-cache" in request.header("pragma", "").lower() else {}


def directives(values: list[str]) -> Directives:
    """The directives of ``Cache-Control``; one that is there twice with two values has none that counts."""
    found: Directives = {}
    for name, value in _elements(",".join(values)):
        found[name] = value if found.get(name, value) == value else "invalid"
    return found


def _elements(text: str) -> list[tuple[str, str | None]]:
    """Elements of a list whose values may be quoted."""
    found: list[tuple[str, str | None]] = []
    part, is_quoted, is_escaped = "", False, False
    for char in f"{text},":
        if char == "," and not is_quoted:
            name, equals, value = part.partition("=")
            if name := name.strip().lower():
                found.append((name, value.strip() if equals else None))
            part = ""
        elif is_escaped:
            part, is_escaped = part + char, False
        elif char == "\\" and is_quoted:
            is_escaped = True
        elif char == '"':
            is_quoted = not is_quoted
        else:
            part += char
    # A quotation without an end: what is in it may restrict, so that nothing of it is kept.
    return [*found, ("no-store", None)] if is_quoted else found


def _seconds(said: Directives, name: str) -> int | None:
    """A number of seconds; one that is none is 0."""
    if name not in said:
        return None
    value = said[name] or ""
    return min(int(value), _SECONDS_MAX) if value.isascii() and value.isdigit() else 0


def lifetime_s(said: Directives, fields: list[tuple[str, str]]) -> float:
    """How long a response is fresh (RFC 9111 §4.2.1); 0 where it does not say so."""
    for name in ("s-maxage", "max-age"):
        if (found := _seconds(said, name)) is not None:
            return found
    expires = _all(fields, "expires")
    if len(expires) != 1:
        return 0.0
    end, start = _time(expires[0]), _time(_first(fields, "date"))
    if end is None:
        return 0.0
    return max(0.0, end - (time.time() if start is None else start))


def age_s(fields: list[tuple[str, str]], begun: float) -> float:
    """How old a response is that has just come (RFC 9111 §4.2.3)."""
    said = (_first(fields, "age") or "0").split(",")[0].strip()
    told = min(int(said), _SECONDS_MAX) if said.isascii() and said.isdigit() else 0
    date = _time(_first(fields, "date"))
    apparent = 0.0 if date is None else max(0.0, int(time.time()) - date)
    return max(apparent, told + time.monotonic() - begun)


def _time(text: str | None) -> float | None:
    try:
        return None if text is None else parsedate_to_datetime(text).timestamp()
    except (ValueError, OverflowError):
        return None


def _all(fields: list[tuple[str, str]], name: str) -> list[str]:
    return [value for known, value in fields if known == name]


def _first(fields: list[tuple[str, str]], name: str) -> str | None:
    return next((value for known, value in fields if known == name), None)


def _sent(fields: Lines, name: str) -> bytes | None:
    """The value of a field of a request, in one line."""
    asked = name.encode("latin-1")
    values = [b" ".join(value.split()) for known, value in fields if known.lower() == asked]
    return b", ".join(values) if values else None


def _close_body(body: Any) -> None:
    if (close := getattr(body, "close", None)) is not None:
        close()


def _close(response: Response) -> None:
    _close_body(response.body)


async def _drain(response: Response) -> None:
    """Reads a response to its end, so that its connection can be used again."""
    body: Any = response.body
    if isinstance(body, bytes):
        return
    async for _ in body:
        pass
