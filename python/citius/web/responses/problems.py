"""Responses to errors: an ``HTTPError`` in, problem details (RFC 9457), HTML or text out.

The extension writes the responses to paths and methods without a route in the same shapes
(citius-py/src/negotiate.rs). Tests: ``tests/gateway/test_problems.py``.
"""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any, Final, Literal

from citius._core import Response
from citius.errors import phrase

if TYPE_CHECKING:
    from collections.abc import Callable

    from citius._core import Request
    from citius.errors import HTTPError


def problem(request: Request, error: HTTPError) -> Response:
    """The response to an ``HTTPError`` without a handler."""
    status, title = error.status_code, phrase(error.status_code)
    accept = request.header("accept") or ""
    wanted = _known_format_of(accept) if len(accept) <= _KNOWN_CHARS_MAX else _format_of(accept)
    body: str | bytes
    if wanted == "problem":
        details: dict[str, object] = {"title": title, "status": status}
        if error.detail:
            details["detail"] = error.detail
        if error.errors:
            details["errors"] = list(error.errors)
        try:
            body = _encoded(details)
        except (OSError, MemoryError):  # nothing is left to import the encoder with
            body = f'{{"title":"{title}","status":{status}}}'
        media_type = "application/problem+json"
    elif wanted == "html":
        body, media_type = _page(error, title), "text/html; charset=utf-8"
    else:
        body = "\n".join([detail_of(error), *map(_line, error.errors)])
        media_type = "text/plain; charset=utf-8"
    if error.headers is None:
        return Response(body, status, _VARY, media_type)
    response = Response(body, status, error.headers, media_type)
    if "vary" not in response.headers:
        response.headers["vary"] = "accept"
    return response


@functools.cache
def _encoder() -> Callable[[object], bytes]:
    """What encodes problem details; imported when the first error is sent."""
    from citius.web.declarations.codecs import encode_json

    return encode_json


def _encoded(details: object) -> bytes:
    """Problem details as JSON, whatever their values are: an error must not fail on its way to the client."""
    try:
        return _encoder()(details)
    except (TypeError, ValueError, OverflowError):
        import json

        text = json.dumps(details, ensure_ascii=False, default=str, skipkeys=True)
        return text.encode("utf-8", "replace")  # lone surrogates are in no UTF-8


def detail_of(error: HTTPError) -> str:
    """What a caller reads of an error, where a text is needed; the phrase of its status without a detail."""
    return _text(error.detail) or phrase(error.status_code)


def _text(value: object) -> str:
    """A detail as a text that can be sent; one that is none, as elsewhere, is shown as JSON."""
    text = value if isinstance(value, str) else _encoded(value).decode()
    return text if text.isascii() else text.encode("utf-8", "replace").decode()


def _format_of(accept: str) -> Literal["problem", "html", "text"]:
    """The first format that ``accept`` names; problem details if it names none of the three."""
    for media_range in accept.split(","):
        media_type = media_range.partition(";")[0].strip().lower()
        if media_type == "text/html":
            return "html"
        if media_type == "text/plain":
            return "text"
        if media_type.endswith("json"):
            return "problem"
    return "problem"


_VARY: Final = {"vary": "accept"}
_KNOWN_CHARS_MAX: Final = 256
_known_format_of = functools.lru_cache(maxsize=64)(_format_of)


def _page(error: HTTPError, title: str) -> str:
    from html import escape

    heading = f"{error.status_code} {escape(title)}"
    parts = [f"<!doctype html><title>{heading}</title><h1>{heading}</h1>"]
    parts += [f"<p>{escape(_text(error.detail))}</p>"] if error.detail else []
    if error.errors:
        items = "".join(f"<li>{escape(_line(one))}</li>" for one in error.errors)
        parts.append(f"<ul>{items}</ul>")
    return "".join(parts) + "\n"


def _line(mistake: Any) -> str:
    """A mistake in a line of text."""
    place = " ".join(_text(mistake[key]) for key in ("in", "pointer") if key in mistake)
    detail = _text(mistake.get("detail", ""))
    return f"{place}: {detail}" if place else detail
