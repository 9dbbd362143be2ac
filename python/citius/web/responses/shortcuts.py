"""Short ways to common answers; ``Response`` itself comes from the extension."""

from __future__ import annotations

from typing import TYPE_CHECKING

from citius._core import Response
from citius.web.declarations import codecs

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping


def json_response(
    value: object,
    status_code: int = 200,
    headers: Mapping[str, str] | Iterable[tuple[str, str]] | None = None,
) -> Response:
    """``value`` as JSON, whatever the client accepts."""
    encode = codecs.encode_json
    response = Response(encode(value), status_code, headers, "application/json")
    response._encoded = value, encode  # pyright: ignore[reportPrivateUsage]
    return response


def msgpack_response(
    value: object,
    status_code: int = 200,
    headers: Mapping[str, str] | Iterable[tuple[str, str]] | None = None,
) -> Response:
    """``value`` as MessagePack, whatever the client accepts."""
    response = Response(
        codecs.encode_as_msgpack(value), status_code, headers, "application/msgpack"
    )
    response._encoded = value, codecs.encode_as_msgpack  # pyright: ignore[reportPrivateUsage]
    return response


def html_response(
    text: str,
    status_code: int = 200,
    headers: Mapping[str, str] | Iterable[tuple[str, str]] | None = None,
) -> Response:
    """A page."""
    return Response(text, status_code, headers, "text/html; charset=utf-8")


def redirect(location: str, status_code: int = 307) -> Response:
    """Send the client to ``location``: 307 keeps the method, 303 makes it GET, 308 is for good.

    Characters that a URI cannot hold are percent-encoded; ``location`` is taken as a URI already,
    so ``%`` stays what it is.
    """
    if status_code not in (301, 302, 303, 307, 308):
        raise ValueError(f"a redirect has status 301, 302, 303, 307 or 308, got {status_code}")
    safe = "".join(
        c if c in _URI else "".join(f"%{byte:02X}" for byte in c.encode()) for c in location
    )
    return Response(b"", status_code, [("location", safe)])


# RFC 3986: unreserved, reserved and the percent sign.
_URI = frozenset(
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~:/?#[]@!$&'()*+,;=%"
)
