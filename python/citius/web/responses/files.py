"""Files as responses of handlers: ``file_response`` and the field that names a download (RFC 6266, RFC 8187).

What of the file is sent is decided when the response is sent, after all middleware, by the code that serves
static mounts: entity tag and modification time, conditions, ranges; the kernel sends the bytes. Tests:
tests/server/test_file_responses.py.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from citius._core import FileBody, Response
from citius.errors import NotFound

if TYPE_CHECKING:
    import os
    from collections.abc import Iterable, Mapping


def file_response(
    path: str | os.PathLike[str],
    *,
    root: str | os.PathLike[str] | None = None,
    filename: str | None = None,
    inline: bool = False,
    content_type: str | None = None,
    status_code: int = 200,
    headers: Mapping[str, str] | Iterable[tuple[str, str]] | None = None,
) -> Response:
    """The file at ``path``, or the part of it that the client asks for.

    Args:
        path: Where it is. One that a client has made needs ``root``.
        root: A directory that ``path`` is relative to and cannot leave: no ``..``, no symbolic link, no name
            that begins with a dot.
        filename: What a browser calls it when it saves it.
        inline: Have a browser show it, under that name, instead of saving it.
        content_type: Its media type, if not what the suffix of its name suggests.
        status_code: Conditions and ranges are evaluated for 200 only.
        headers: Further fields.

    Raises:
        NotFound: Nothing below ``root`` has this path.
        OSError: It cannot be opened.
    """
    try:
        body = FileBody(path, root)
    except (FileNotFoundError, ValueError):
        if root is None:
            raise
        raise NotFound from None
    response = Response(body, status_code, headers, content_type)
    if filename is not None:
        response.headers["content-disposition"] = content_disposition(filename, inline=inline)
    return response


def content_disposition(filename: str, *, inline: bool = False) -> str:
    """The value of ``Content-Disposition`` for a file of this name.

    Separators of directories and control characters become ``_``; what is not ASCII is sent as RFC 8187 has
    it, with a plain name for old programs.
    """
    name = "".join("_" if c in '/\\"' or not c.isprintable() else c for c in filename) or "_"
    kind = "inline" if inline else "attachment"
    plain = "".join(c if c.isascii() else "_" for c in name)
    value = f'{kind}; filename="{plain}"'
    if name.isascii():
        return value
    encoded = "".join(
        chr(byte) if chr(byte) in _ATTR_CHARS else f"%{byte:02X}"
        for byte in name.encode("utf-8", "replace")
    )
    return f"{value}; filename*=UTF-8''{encoded}"


# RFC 8187 §3.2.1.
_ATTR_CHARS = frozenset(
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789!#$&+-.^_`|~"
)
