"""Bodies of requests: what a caller gives in; bytes or pieces, their length and media type out.

Tests: ``tests/http/test_bodies.py``.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterable, AsyncIterator, Iterable, Iterator, Mapping
from typing import IO, TYPE_CHECKING, Any, Final, TypeAlias, TypedDict, cast

from citius.http.errors import RequestError

if TYPE_CHECKING:
    from collections.abc import Sequence

Value: TypeAlias = str | int | float | bool | None
Pairs: TypeAlias = Mapping[str, "Value | Sequence[Value]"] | Iterable[tuple[str, Value]]
"""Names and values of a query or a form; a value that is a sequence is one pair each."""
Content: TypeAlias = (
    bytes | bytearray | memoryview | str | Iterable[bytes] | AsyncIterable[bytes] | IO[bytes]
)
FileContent: TypeAlias = bytes | str | IO[bytes]
File: TypeAlias = FileContent | tuple[str | None, FileContent] | tuple[str | None, FileContent, str]
"""Content; or a file name and content; or a file name, content and media type."""
Files: TypeAlias = Mapping[str, "File | Sequence[File]"] | Iterable[tuple[str, File]]

PIECE_BYTES: Final = 64 * 1024
"""Bytes that are read from a file at once."""


class BodyOptions(TypedDict, total=False):
    """What a request's body is made of: one of these, or ``data`` with ``files``."""

    content: Content | None
    """Bytes, a text, a file, or an iterable of pieces, which may be asynchronous."""
    json: object
    """Anything that msgspec or pydantic encodes."""
    data: Pairs | None
    """A form."""
    files: Files | None
    """Files of a form (``multipart/form-data``)."""


class BodyConsumed(RequestError, RuntimeError):
    """A body made of an iterator cannot be sent a second time."""


class Body:
    """A body: bytes, or pieces that are sent as they come.

    Attributes:
        data: The bytes, if all are there.
        length: Bytes in all; ``None`` if unknown.
        media_type: That of the content, if it is known.
    """

    __slots__ = ("_files", "_is_consumed", "_pieces", "_start", "data", "length", "media_type")

    def __init__(
        self,
        data: bytes | None = None,
        pieces: Iterable[bytes] | AsyncIterable[bytes] | IO[bytes] | Multipart | None = None,
        length: int | None = None,
        media_type: str | None = None,
    ) -> None:
        self.data, self._pieces, self.media_type = data, pieces, media_type
        self.length = len(data) if data is not None else length
        self._is_consumed = False
        self._start: int | None = None

    @property
    def can_repeat(self) -> bool:
        """Whether it can be sent again."""
        pieces = self._pieces
        if self.data is not None or not self._is_consumed or pieces is None:
            return True
        if isinstance(pieces, Multipart):
            return pieces.can_repeat
        if hasattr(pieces, "seek"):
            return self._start is not None
        return not isinstance(pieces, Iterator | AsyncIterator)

    def pieces(self) -> Iterator[bytes]:
        """The pieces; from the beginning again, if that is possible.

        Raises:
            BodyConsumed: They have been sent, and cannot be made again.
            TypeError: They come asynchronously.
        """
        pieces, is_again = self._pieces, self._begin()
        if isinstance(pieces, AsyncIterable):
            raise TypeError(
                "an asynchronous iterable is sent by `await client.…`, not by client.sync"
            )
        if self.data is not None:
            return iter((self.data,))
        if pieces is None:
            return iter(())
        if isinstance(pieces, Multipart):
            return pieces.pieces()
        if hasattr(pieces, "read"):
            return self._of_file(pieces, is_again)  # pyright: ignore[reportArgumentType]
        return (piece for piece in pieces if piece)

    async def iterate(self) -> AsyncIterator[bytes]:
        """The same on a loop: files are read in another thread."""
        pieces = self._pieces
        if isinstance(pieces, AsyncIterable):
            self._begin()
            async for piece in pieces:
                if piece:
                    yield piece
        elif isinstance(pieces, Multipart) or hasattr(pieces, "read"):
            found = self.pieces()
            while piece := await asyncio.to_thread(next, found, b""):
                yield piece
        else:
            for piece in self.pieces():
                yield piece

    def check(self) -> None:
        """Check that it can be sent, again if it was before.

        Raises:
            BodyConsumed: It cannot.
        """
        if not self.can_repeat:
            raise BodyConsumed(
                "the request is to be sent again, and its content was an iterator or a file without seek: "
                "give bytes, a file, or an object whose __iter__ begins anew"
            )

    def _begin(self) -> bool:
        """Whether they have been sent before."""
        self.check()
        is_again, self._is_consumed = self._is_consumed, True
        return is_again

    def _of_file(self, file: IO[bytes], is_again: bool) -> Iterator[bytes]:
        if is_again and self._start is not None:
            file.seek(self._start)
        elif not is_again:
            self._start = _position(file)
        return _read(file)


def _read(file: IO[bytes]) -> Iterator[bytes]:
    while piece := file.read(PIECE_BYTES):
        yield piece


def _position(file: IO[bytes]) -> int | None:
    try:
        return file.tell() if file.seekable() else None
    except (OSError, AttributeError):
        return None


def _left(file: IO[bytes]) -> int | None:
    """Bytes from the position of a file to its end."""
    try:
        position = file.tell()
        if not file.seekable():
            return None
        end = file.seek(0, os.SEEK_END)
        file.seek(position)
    except (OSError, AttributeError):
        return None
    return end - position


EMPTY: Final = Body()


def encode_json(value: object) -> bytes:
    """A value as JSON, models of pydantic too."""
    from citius.web.declarations import codecs

    return codecs.encode_json(value)


def encode(
    content: Content | None = None,
    json: object = None,
    data: Pairs | None = None,
    files: Files | None = None,
) -> Body:
    """The body of a request.

    Raises:
        TypeError: There are several, or it is nothing that can be sent.
    """
    if sum(one is not None for one in (content, json, data if files is None else files)) > 1:
        raise TypeError("a request has one body: give one of content, json, data (with files)")
    if json is not None:
        return Body(encode_json(json), media_type="application/json")
    if files is not None:
        parts = Multipart(data or (), files)
        return Body(
            pieces=parts, length=parts.length,
            media_type=f"multipart/form-data; boundary={parts.boundary}",
        )  # fmt: skip
    if data is not None:
        return Body(urlencode(data).encode(), media_type="application/x-www-form-urlencoded")
    return _of_content(content)


def _of_content(content: Content | None) -> Body:
    if content is None:
        return EMPTY
    if isinstance(content, str):
        return Body(content.encode(), media_type="text/plain; charset=utf-8")
    if isinstance(content, bytes | bytearray | memoryview):
        return Body(bytes(content))
    if hasattr(content, "read"):
        return Body(pieces=content, length=_left(content))  # pyright: ignore[reportArgumentType]
    if isinstance(content, Mapping) or not (
        hasattr(content, "__iter__") or hasattr(content, "__aiter__")
    ):
        given = type(cast("object", content)).__name__
        raise TypeError(
            f"content= is bytes, a text, a file or an iterable of bytes, got {given}; "
            "a form is data=, a value is json="
        )
    return Body(pieces=content)


def pairs(given: Pairs) -> list[tuple[str, str]]:
    """Names and values as texts; ``None`` is an empty value, ``True`` is ``true``."""
    found: list[tuple[str, str]] = []
    for name, value in items_of(given):
        found += [(name, _text(one)) for one in _several(value)]
    return found


def _several(value: Any, kind: Any = (list, tuple)) -> list[Any]:
    return list(value) if isinstance(value, kind) else [value]


def items_of(given: Any) -> Iterable[tuple[str, Any]]:
    """The pairs of a mapping, or pairs themselves."""
    return cast("Iterable[tuple[str, Any]]", given.items() if hasattr(given, "items") else given)


def _text(value: object) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value)


def urlencode(given: Pairs) -> str:
    """Pairs as a query or a form has them."""
    from urllib.parse import urlencode as encode_pairs

    return encode_pairs(pairs(given))


class Multipart:
    """A form with files (RFC 7578), made piece by piece."""

    def __init__(self, data: Pairs, files: Files) -> None:
        import secrets

        self.boundary = secrets.token_hex(16)
        self._parts: list[tuple[bytes, FileContent]] = [
            (_part_head(name, None, None), value) for name, value in pairs(data)
        ]
        for name, given in items_of(files):
            for one in _several(given, list):
                self._parts.append(_part(name, one))
        self._starts = [_position(one) if _is_file(one) else None for _, one in self._parts]  # pyright: ignore[reportArgumentType]
        self.length = self._length()
        self.can_repeat = all(
            start is not None or not _is_file(one)
            for start, (_, one) in zip(self._starts, self._parts, strict=True)
        )
        self._is_sent = False

    def _length(self) -> int | None:
        # "--", the boundary and CRLF before each part, CRLF behind it; "--" boundary "--" CRLF at the end.
        total = len(self.boundary) + 6
        for head, content in self._parts:
            size = _size(content)
            if size is None:
                return None
            total += len(self.boundary) + 4 + len(head) + size + 2
        return total

    def pieces(self) -> Iterator[bytes]:
        """The parts."""
        mark = b"--" + self.boundary.encode()
        is_again, self._is_sent = self._is_sent, True
        for (head, content), start in zip(self._parts, self._starts, strict=True):
            if isinstance(content, bytes | str):
                data = content if isinstance(content, bytes) else content.encode()
                yield b"%b\r\n%b%b\r\n" % (mark, head, data)
                continue
            if is_again and start is not None:
                content.seek(start)
            yield b"%b\r\n%b" % (mark, head)
            yield from _read(content)
            yield b"\r\n"
        yield mark + b"--\r\n"


def _is_file(content: FileContent) -> bool:
    return not isinstance(content, bytes | str)


def _size(content: FileContent) -> int | None:
    if isinstance(content, bytes):
        return len(content)
    if isinstance(content, str):
        return len(content.encode())
    return _left(content)


def _part(name: str, given: File) -> tuple[bytes, FileContent]:
    media_type: str | None = None
    filename: str | None
    if isinstance(given, tuple):
        if len(given) not in (2, 3):
            raise TypeError(
                f"a file of the part {name!r} is (name, content) or (name, content, media type), got "
                f"{len(cast('tuple[object, ...]', given))} values"
            )
        filename, content, *more = given
        media_type = more[0] if more else None
    else:
        content = given
        path = getattr(content, "name", None)
        filename = os.path.basename(path) if isinstance(path, str) and path else "upload"
    if media_type is None and filename is not None:
        import mimetypes

        media_type = mimetypes.guess_type(filename)[0] or "application/octet-stream"
    return _part_head(name, filename, media_type), content


def _part_head(name: str, filename: str | None, media_type: str | None) -> bytes:
    line = f'content-disposition: form-data; name="{_escaped(name)}"'
    if filename is not None:
        line += f'; filename="{_escaped(filename)}"'
    if media_type is not None:
        if any(character < " " or character == "\x7f" for character in media_type):
            raise ValueError(f"the media type of the part {name!r} has a control character")
        line += f"\r\ncontent-type: {media_type}"
    return f"{line}\r\n\r\n".encode()


def _escaped(text: str) -> str:
    """A name as browsers write it (HTML standard, multipart form data): nothing ends the field early."""
    return text.replace("\r", "%0D").replace("\n", "%0A").replace('"', "%22").replace("\0", "%00")
