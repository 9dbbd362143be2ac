"""A stored response, and what RFC 9111 says of it: its lifetime, its age, for which requests it is.

Tests: ``tests/http/gateway/test_caching.py``.
"""

from __future__ import annotations

import time
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING, Final, NamedTuple

import msgspec

from citius._core import Response
from citius.web.middleware.etags import is_since, matches, unchanged

if TYPE_CHECKING:
    from citius._core import Request

Lines = list[tuple[bytes, bytes]]
Directives = dict[str, "str | None"]
Varies = tuple[tuple[str, bytes | None], ...]
"""Names of fields, and their values in the request."""

SECONDS_MAX: Final = 1 << 31
OVERHEAD_BYTES: Final = 1024
"""What an entry takes beside its fields and content."""
FIELD_BYTES: Final = 168
"""What a field takes beside its name and value."""


_encode: Final = msgspec.msgpack.Encoder().encode
_decode: Final = msgspec.msgpack.Decoder(
    tuple[int, list[tuple[str, str]], Varies, float, float, bytes]
).decode


class Key(NamedTuple):
    """What a response is for. A server may write links by the scheme, the host and the prefix it is told."""

    to: str
    scheme: str
    host: str
    target: str
    prefix: str = ""

    @property
    def bytes(self) -> int:
        """What it takes in memory: a client chooses how much."""
        return sum(map(len, self))

    @property
    def spellings(self) -> list[Key]:
        """The keys of its URL, with and without the port that is its scheme's (RFC 9110 §4.2.3).

        Responses are apart by what the server behind was told; a change of the URL is one of all of them.
        """
        port = ":443" if self.scheme == "https" else ":80"
        bare = self.host.removesuffix(port)
        return [self._replace(host=bare), self._replace(host=bare + port)]


class Entry:
    """A stored response."""

    def __init__(
        self, status: int, fields: list[tuple[str, str]], body: bytes, varies: Varies, begun: float
    ) -> None:
        self.status, self.varies = status, varies
        self.fields = [pair for pair in fields if pair[0] != "age"]
        self.directives = directives(all_of(fields, "cache-control"))
        self.lifetime_s = lifetime_s(self.directives, fields)
        self.begun = begun
        self._age_s, self._since = age_s(fields, begun), time.monotonic()
        self.set_body(body)

    def packed(self) -> bytes:
        """The entry for another process; its age is told by the time of day."""
        since = time.time() - self.age_s
        return _encode((self.status, self.fields, self.varies, self.lifetime_s, since, self.body))

    @classmethod
    def unpacked(cls, data: bytes) -> Entry:
        """What ``packed`` has made.

        Raises:
            msgspec.MsgspecError: It has made something else.
        """
        status, fields, varies, lifetime, since, body = _decode(data)
        now = time.monotonic()
        made = cls(status, fields, body, varies, now)
        made.lifetime_s, made._age_s, made._since = lifetime, max(0.0, time.time() - since), now
        return made

    def set_body(self, body: bytes) -> None:
        """The content has come."""
        self.body = body
        self.bytes = len(body) + OVERHEAD_BYTES
        self.bytes += sum(len(name) + len(value) + FIELD_BYTES for name, value in self.fields)
        self.bytes += sum(
            len(name) + len(value or b"") + FIELD_BYTES for name, value in self.varies
        )

    @property
    def age_s(self) -> float:
        """Its age now (RFC 9111 §4.2.3)."""
        return self._age_s + time.monotonic() - self._since

    @property
    def etag(self) -> str | None:
        """Its entity tag."""
        return first_of(self.fields, "etag")

    @property
    def modified(self) -> str | None:
        """When it was modified last."""
        return first_of(self.fields, "last-modified")

    @property
    def may_be_stale(self) -> bool:
        """Whether it may be sent when it is stale, if something allows that (RFC 9111 §4.2.4)."""
        strict = ("no-cache", "must-revalidate", "proxy-revalidate", "s-maxage")
        return not any(name in self.directives for name in strict)

    @property
    def stale_s(self) -> float:
        """How long it may be sent stale, if requests do not ask for that."""
        if not self.may_be_stale:
            return 0
        allowed = ("stale-while-revalidate", "stale-if-error")
        return max(seconds(self.directives, name) or 0 for name in allowed)

    def is_for(self, fields: Lines) -> bool:
        """Whether the request with these fields gets it (RFC 9111 §4.1)."""
        return all(value_sent(fields, name) == value for name, value in self.varies)

    def is_of(self, fields: list[tuple[str, str]]) -> bool:
        """Whether a 304 with these fields is about this response, and no other one (RFC 9111 §4.3.4)."""
        told = first_of(fields, "etag")
        return told is None or told.removeprefix("W/") == (self.etag or "").removeprefix("W/")

    def is_usable(self, asked: Directives) -> bool:
        """Whether it is sent without asking the other server (RFC 9111 §4, §5.2.1)."""
        if "no-cache" in self.directives or "no-cache" in asked:
            return False
        age_s = self.age_s
        limit = seconds(asked, "max-age")
        if limit is not None and age_s > limit:
            return False
        left_s = self.lifetime_s - age_s
        if left_s > 0:
            return left_s >= (seconds(asked, "min-fresh") or 0)
        if "max-stale" not in asked or not self.may_be_stale:
            return False
        allowed = SECONDS_MAX if asked["max-stale"] is None else seconds(asked, "max-stale") or 0
        return -left_s <= allowed

    def is_within(self, directive: str, asked: Directives) -> bool:
        """Whether it may be sent stale by ``stale-while-revalidate`` or ``stale-if-error`` (RFC 5861)."""
        limit = seconds(self.directives, directive)
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


def seconds(said: Directives, name: str) -> int | None:
    """A number of seconds; one that is none is 0."""
    if name not in said:
        return None
    return number(said[name] or "")


def number(text: str) -> int:
    """A number; what is none is 0, and a large one, of any length, is the largest."""
    if not (text.isascii() and text.isdigit()):
        return 0
    return min(int(text), SECONDS_MAX) if len(text) < 20 else SECONDS_MAX


def lifetime_s(said: Directives, fields: list[tuple[str, str]]) -> float:
    """How long a response is fresh (RFC 9111 §4.2.1); 0 where it does not say so."""
    for name in ("s-maxage", "max-age"):
        if (found := seconds(said, name)) is not None:
            return found
    expires = all_of(fields, "expires")
    if len(expires) != 1:
        return 0.0
    end, start = _time(expires[0]), _time(first_of(fields, "date"))
    if end is None:
        return 0.0
    return max(0.0, end - (time.time() if start is None else start))


def age_s(fields: list[tuple[str, str]], begun: float) -> float:
    """How old a response is that has just come (RFC 9111 §4.2.3)."""
    said = (first_of(fields, "age") or "0").split(",")[0].strip()
    told = number(said)
    date = _time(first_of(fields, "date"))
    apparent = 0.0 if date is None else max(0.0, int(time.time()) - date)
    return max(apparent, told + time.monotonic() - begun)


def _time(text: str | None) -> float | None:
    try:
        return None if text is None else parsedate_to_datetime(text).timestamp()
    except (ValueError, OverflowError):
        return None


def all_of(fields: list[tuple[str, str]], name: str) -> list[str]:
    """The values of a field."""
    return [value for known, value in fields if known == name]


def first_of(fields: list[tuple[str, str]], name: str) -> str | None:
    """The first value of a field."""
    return next((value for known, value in fields if known == name), None)


def value_sent(fields: Lines, name: str) -> bytes | None:
    """The value of a field of a request, in one line."""
    asked = name.encode("latin-1")
    values = [b" ".join(value.split()) for known, value in fields if known.lower() == asked]
    return b", ".join(values) if values else None
