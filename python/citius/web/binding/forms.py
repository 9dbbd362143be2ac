"""Forms: ``FormData`` with its texts and its files, and what a form may have.

The extension parses forms (URL-encoded; multipart as RFC 7578 and RFC 2046 §5.1). Routes that declare fields
or files have a multipart body parsed while it comes, its larger files going to temporary files; others have
it parsed when ``request.form()`` is called. Imported when a form is first read. Tests:
``tests/unit/test_forms.py``, ``tests/server/test_uploads.py``.
"""

from __future__ import annotations

import os
import threading
from dataclasses import dataclass
from io import BufferedReader, BytesIO, FileIO, RawIOBase
from typing import TYPE_CHECKING, Any, BinaryIO

from citius import _core
from citius.errors import (
    BadRequest,
    ContentTooLarge,
    HTTPError,
    ServiceUnavailable,
    UnsupportedMediaType,
)
from citius.unknown_options import known_options
from citius.web.binding.headers import Headers, QueryParams

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from citius._core import Request


@known_options
@dataclass(frozen=True, slots=True, kw_only=True)
class FormLimits:
    """What one form may have; ``body_bytes_max=`` of the route limits all of it together.

    Raises:
        ValueError: A limit is negative.
    """

    fields_max: int = 1000
    """Text fields. Origin: Django and Starlette, 1000. Exceeded: 413. Test: tests/unit/test_forms.py."""

    files_max: int = 100
    """Files. Origin: Django, 100. Exceeded: 413. Test: tests/unit/test_forms.py."""

    part_head_bytes_max: int = 8 * 1024
    """Bytes of one part's header section. Origin: a quarter of a request's. Exceeded: 400. Test: the same."""

    name_bytes_max: int = 1024
    """Bytes of the name of a field or of a file. Origin: four times a file name of Linux. Exceeded: 400.
    Test: the same."""

    text_bytes_max: int | None = None
    """Bytes of all texts, which are in memory; ``None``: as many as ``--body-bytes-max`` says. Exceeded: 413.
    Test: the same."""

    file_bytes_max: int | None = None
    """Bytes of one file; ``None``: as many as the body. Exceeded: 413. Test: the same."""

    memory_bytes_max: int = 1024 * 1024
    """Bytes of all files that are in memory; what is more is in temporary files. Origin: Starlette, 1 MiB.
    Exceeded: a temporary file. Test: tests/server/test_uploads.py."""

    def __post_init__(self) -> None:
        for name in self.__slots__:
            value = getattr(self, name)
            if value is not None and value < 0:
                raise ValueError(f"{name} is a number from 0 on, got {value}")


_DEFAULT = FormLimits()


class UploadFile:
    """One file of a multipart form, in memory or in a temporary file.

    A temporary file has no name and goes with the last reference to this object, at the end of the request
    unless the handler keeps it.
    """

    __slots__ = ("content_type", "file", "filename", "headers", "size")

    def __init__(
        self,
        file: BinaryIO,
        *,
        size: int,
        filename: str = "",
        content_type: str = "application/octet-stream",
        headers: Headers | None = None,
    ) -> None:
        self.file = file
        """The content as a file of Python's, whose methods block while the disk works."""
        self.size = size
        """Bytes of the content."""
        self.filename = _base_name(filename)
        """The last part of the name that the client sent, which may be empty or that of another file."""
        self.content_type = content_type
        """The media type that the client sent; it is not verified."""
        self.headers = headers if headers is not None else Headers([])
        """The header section of the part."""

    async def read(self, size: int = -1) -> bytes:
        """The next bytes, at most ``size``; all that are left without one, none at the end."""
        return await self._call(self.file.read, size)

    async def seek(self, offset: int) -> int:
        """Go on reading at this byte."""
        return await self._call(self.file.seek, offset)

    async def close(self) -> None:
        """Let go of the content before the request ends."""
        self.file.close()

    @property
    def data(self) -> bytes:
        """All of the content; blocks while a temporary file is read."""
        if isinstance(self.file, BytesIO):
            return self.file.getvalue()
        position = self.file.tell()
        self.file.seek(0)
        try:
            return self.file.read()
        finally:
            self.file.seek(position)

    async def _call(self, method: Callable[[int], Any], argument: int) -> Any:
        if isinstance(self.file, BytesIO):
            return method(argument)
        import asyncio

        return await asyncio.get_running_loop().run_in_executor(None, method, argument)

    def __repr__(self) -> str:
        return f"<UploadFile {self.filename!r} {self.content_type} {self.size} bytes>"


def _base_name(sent: str) -> str:
    """A name without directories, written with slashes or backslashes, and without control characters."""
    last = sent.replace("\\", "/").rpartition("/")[2]
    if not last.isprintable():
        last = "".join(c for c in last if ord(c) >= 0x20 and not 0x7F <= ord(c) < 0xA0)
    return "" if last in (".", "..") else last


class FormData(QueryParams):
    """The text fields of a form as a multi-mapping; its files are in ``files``."""

    __slots__ = ("_files",)

    def __init__(
        self, items: Iterable[tuple[str, str]], files: Iterable[tuple[str, UploadFile]] = ()
    ) -> None:
        super().__init__(items)
        self._files = list(files)

    @property
    def files(self) -> dict[str, UploadFile]:
        """The files by field name; of several with one name the last."""
        return dict(self._files)

    def files_list(self, name: str) -> list[UploadFile]:
        """All files of that field."""
        return [upload for key, upload in self._files if key == name]


def form_of(request: Request) -> FormData:
    """The form in the body of a request."""
    pairs, files = request._form_parts(_DEFAULT)  # pyright: ignore[reportPrivateUsage]
    return FormData(pairs, map(_upload, files))


def parse_form(content_type: str, body: bytes, limits: FormLimits = _DEFAULT) -> FormData:
    """Read a form that is there as a whole.

    Raises:
        UnsupportedMediaType: The body is not a form.
        BadRequest: It is a broken one.
        ContentTooLarge: It has more than ``limits`` allow.
    """
    pairs, files = _core.parse_form(content_type, body, limits)
    return FormData(pairs, map(_upload, files))


def refused(status: int, text: str) -> HTTPError:
    """The exception for a form that the extension refuses."""
    kinds = (BadRequest, ContentTooLarge, UnsupportedMediaType, ServiceUnavailable)
    kind = next(kind for kind in kinds if kind.status_code == status)
    return kind(text)


class _TemporaryFile(FileIO):
    """A file of the extension's; it may also be closed by letting go of it."""

    def __init__(self, file: _core.TemporaryFile) -> None:
        # On Windows the number is one of its own.
        super().__init__(file.fileno(), "rb", closefd=os.name == "nt")
        self._file = file

    def close(self) -> None:
        """Let go of the content."""
        super().close()
        self._file.close()


class _SharedFile(RawIOBase):
    """A part of a form's temporary file, which it shares with the other files of the form."""

    def __init__(self, file: _core.TemporaryFile, offset: int, size: int) -> None:
        super().__init__()
        self._file, self._offset, self._size = file, offset, size
        self._at = 0

    def readable(self) -> bool:
        """It is."""
        return True

    def seekable(self) -> bool:
        """It is."""
        return True

    def readinto(self, buffer: Any) -> int:
        """Fill the buffer with the next bytes of this file alone."""
        count = max(0, min(len(buffer), self._size - self._at))
        data = _read_at(self._file.fileno(), count, self._offset + self._at) if count else b""
        buffer[: len(data)] = data
        self._at += len(data)
        return len(data)

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        """Go on reading at this byte."""
        start = {os.SEEK_SET: 0, os.SEEK_CUR: self._at, os.SEEK_END: self._size}[whence]
        if start + offset < 0:
            raise ValueError(f"a position from 0 on was expected, got {start + offset}")
        self._at = start + offset
        return self._at

    def close(self) -> None:
        """Let go of the content; the last of the form's files closes the temporary one."""
        super().close()
        self._file.close()


def _read_at(fd: int, count: int, position: int) -> bytes:
    if hasattr(os, "pread"):
        return os.pread(fd, count, position)
    # Windows: the number is one of its own, with a position that its file shares.
    try:
        with _positions:
            os.lseek(fd, position, os.SEEK_SET)
            return os.read(fd, count)
    finally:
        os.close(fd)


_positions = threading.Lock()


def _upload(part: dict[str, Any]) -> tuple[str, UploadFile]:
    """A file as the extension tells of it, with its field's name."""
    temporary = part["temporary"]
    if temporary is None:
        file: BinaryIO = BytesIO(part["data"])
    else:
        offset = part["offset"]
        raw = (
            _TemporaryFile(temporary)
            if offset is None
            else _SharedFile(temporary, offset, part["size"])
        )
        file = BufferedReader(raw, 65536)
        file.seek(0)
    upload = UploadFile(
        file,
        size=part["size"],
        filename=part["filename"],
        content_type=part["content_type"] or "application/octet-stream",
        headers=Headers(part["fields"]),
    )
    return part["name"], upload
