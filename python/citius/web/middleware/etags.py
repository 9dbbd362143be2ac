"""Conditional requests (RFC 9110 §13): 304 for what the client has, 412 for what has changed meanwhile.

``ETags`` makes entity tags of response bodies; ``matches`` and ``require_match`` are for handlers that know
theirs without making the body. Tests: tests/middleware/test_etags.py.
"""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Any, cast

from citius._core import FileBody, Response, prefers_msgpack
from citius.errors import HTTPError
from citius.web.middleware.base import Middleware
from citius.web.middleware.fields import add_vary

if TYPE_CHECKING:
    from collections.abc import Callable

    from citius._core import Request

_CONTENT_FIELDS = (
    "content-encoding",
    "content-language",
    "content-length",
    "content-range",
    "content-type",
)


class ETags(Middleware):
    """Send 304 in place of a body that the client has: the network is spared, the handler is not.

    A tag is made of the body of each 200 to GET and HEAD, unless the handler has set one, or
    ``Last-Modified``. Streams and files are left alone (files have tags of their own).
    """

    requests_only = True

    def bind(
        self, method: str, pattern: str | None, handler: Callable[..., object] | None
    ) -> Middleware | None:
        """Leave other methods and paths without a route alone."""
        return self if method in ("GET", "HEAD") else None

    def after(self, request: Request, response: Response) -> Response:
        """Tag the response, or send 304."""
        if response.status_code != 200 or not _has_body(request, response):
            return response
        headers = response.headers
        etag = headers.get("etag")
        if etag is None:
            modified = headers.get("last-modified")
            if modified is not None and request.header("if-none-match") is None:
                return unchanged(response) if is_since(request, modified) else response
            body = cast("str | bytes", response.body)
            data = body.encode() if isinstance(body, str) else body
            etag = f'"{hashlib.blake2b(data, digest_size=12).hexdigest()}"'
            headers["etag"] = etag
        return unchanged(response) if matches(request, etag) else response


def matches(request: Request, etag: str) -> bool:
    """Whether the client has the representation with this tag (``If-None-Match``), so that 304 will do.

    Args:
        request: The request.
        etag: With its quotes: ``"v7"`` or ``W/"v7"``.
    """
    if request.header("if-none-match") is None:
        return False
    sent = request.headers.getlist("if-none-match")
    return any(value.strip() == "*" or _lists(value, etag.removeprefix("W/")) for value in sent)


def require_match(request: Request, etag: str | None) -> None:
    """Refuse a change of something that is not as the client has seen it (``If-Match``).

    Args:
        request: The request; one without ``If-Match`` is not conditional, and passes.
        etag: The tag of what is there, with its quotes; ``None`` if nothing is.

    Raises:
        HTTPError: 412.
    """
    sent = request.headers.getlist("if-match")
    if sent and not (
        etag is not None
        and any(value.strip() == "*" or _lists(value, etag, True) for value in sent)
    ):
        raise HTTPError(412, "it has been changed since you read it")


def _has_body(request: Request, response: Response) -> bool:
    """Whether the body is there as a whole; values are encoded, as the client would have them, to be so."""
    body: Any = response.body
    if isinstance(body, str | bytes):
        return True
    cls = cast("type[Any]", type(body))
    if (
        body is None
        or hasattr(cls, "__next__")
        or hasattr(cls, "__aiter__")
        or isinstance(body, FileBody)
    ):
        return False
    if cls in (bytearray, memoryview):
        response.body = bytes(body)
        return True
    from citius.web.declarations import codecs

    if response.content_type is not None:
        response.body = codecs.encode_json(body)
        return True
    as_msgpack = prefers_msgpack(request.header("accept", ""))
    response.body = (codecs.encode_as_msgpack if as_msgpack else codecs.encode_json)(body)
    response.content_type = f"application/{'msgpack' if as_msgpack else 'json'}"
    add_vary(response, "accept")
    return True


def unchanged(response: Response) -> Response:
    """The 304 of a 200 (RFC 9110 §15.4.5)."""
    headers = response.headers
    for name in _CONTENT_FIELDS:
        if name in headers:
            del headers[name]
    response.status_code, response.body, response.content_type = 304, b"", None
    return response


def _lists(value: str, etag: str, only_strong: bool = False) -> bool:
    """Whether a list of entity tags has this one. A tag may hold commas, so the list is not simply split."""
    at = 0
    while True:
        opening = value.find('"', at)
        closing = value.find('"', opening + 1)
        if opening < 0 or closing < 0:
            return False
        is_weak = value[:opening].endswith("W/")
        if value[opening : closing + 1] == etag and not (is_weak and only_strong):
            return True
        at = closing + 1


def is_since(request: Request, modified: str) -> bool:
    """Whether it has not changed since the date of ``If-Modified-Since``: most send back what they got."""
    known = request.header("if-modified-since")
    if known is None or known == modified:
        return known is not None
    from email.utils import parsedate_to_datetime

    try:
        return parsedate_to_datetime(modified) <= parsedate_to_datetime(known)
    except (TypeError, ValueError, ArithmeticError, LookupError):  # what the parser lets through
        return False
