"""Bodies of the test client's requests: what a test gives in, bytes and a media type out."""

from __future__ import annotations

from collections.abc import AsyncIterable, Iterable, Mapping
from typing import Any, TypeAlias, TypeVar

Pairs: TypeAlias = Mapping[str, str] | Iterable[tuple[str, str]]
File: TypeAlias = bytes | str | tuple[str, bytes | str] | tuple[str, bytes | str, str]
"""Content; or a name and content; or a name, content and media type."""
Files: TypeAlias = Mapping[str, File] | Iterable[tuple[str, File]]

_T = TypeVar("_T")
_Pieces = TypeVar("_Pieces", bound=Iterable[bytes] | AsyncIterable[bytes])
_BOUNDARY = b"citius-test-client-boundary"


def encode_body(
    content: bytes | str | _Pieces | None,
    json: object,
    msgpack: object,
    form: Pairs | None,
    files: Files | None,
) -> tuple[bytes | _Pieces | None, str | None]:
    """The body and its media type.

    Raises:
        TypeError: There are several.
    """
    given = [content, json, msgpack, form if files is None else files]
    if sum(one is not None for one in given) > 1:
        raise TypeError(
            "a request has one body: give one of content, json, msgpack, form (with files)"
        )
    if json is not None:
        from citius.web.declarations.codecs import encode_json

        return encode_json(json), "application/json"
    if msgpack is not None:
        from citius.web.declarations.codecs import encode_msgpack

        return encode_msgpack(msgpack), "application/msgpack"
    if files is not None:
        whole = _multipart(form or (), files)
        return whole, f"multipart/form-data; boundary={_BOUNDARY.decode()}"
    if form is not None:
        return urlencode(form).encode(), "application/x-www-form-urlencoded"
    if isinstance(content, str):
        return content.encode(), "text/plain; charset=utf-8"
    return content, None


def urlencode(given: Pairs) -> str:
    """Pairs as a query has them."""
    from urllib.parse import urlencode as encode

    return encode(pairs(given))


def pairs(fields: Mapping[str, _T] | Iterable[tuple[str, _T]] | None) -> list[tuple[str, _T]]:
    """A mapping or pairs, as pairs."""
    if fields is None:
        return []
    keys = getattr(fields, "keys", None)
    found: Any = fields
    return list(found.items() if keys is not None else found)


def _multipart(form: Pairs, files: Files) -> bytes:
    """``multipart/form-data`` (RFC 7578)."""
    parts: list[bytes] = []
    for name, value in pairs(form):
        head = f'Content-Disposition: form-data; name="{_quoted(name)}"'
        parts.append(head.encode() + b"\r\n\r\n" + value.encode())
    for name, file in pairs(files):
        filename, content, content_type = _file(name, file)
        head = (
            f'Content-Disposition: form-data; name="{_quoted(name)}"; filename="{_quoted(filename)}"\r\n'
            f"Content-Type: {content_type}"
        )
        parts.append(head.encode() + b"\r\n\r\n" + content)
    lines = [b"--" + _BOUNDARY + b"\r\n" + part + b"\r\n" for part in parts]
    return b"".join(lines) + b"--" + _BOUNDARY + b"--\r\n"


def _file(name: str, file: File) -> tuple[str, bytes, str]:
    """Name, content and media type of a file."""
    filename, content, content_type = name, file, None
    if isinstance(file, tuple):
        filename, content, *rest = file
        content_type = rest[0] if rest else None
    if content_type is None:
        from mimetypes import guess_type

        content_type = guess_type(filename)[0] or "application/octet-stream"
    data = content.encode() if isinstance(content, str) else content
    assert isinstance(data, bytes), "the type says so"
    return filename, data, content_type


def _quoted(text: str) -> str:
    """A parameter's value as browsers write it (WHATWG HTML §4.10.21.8)."""
    return text.replace('"', "%22").replace("\r", "%0D").replace("\n", "%0A")
