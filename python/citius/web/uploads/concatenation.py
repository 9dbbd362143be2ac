"""Uploads that are put together from others: tus' extension concatenation.

A partial upload waits when it is complete, until a final one names it; the application's function is called
with the final one only, whose parts are removed when it has taken that. They are copied in a thread.
"""

from __future__ import annotations

import asyncio
import os
import threading
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Final
from urllib.parse import unquote, urlsplit

from citius.errors import HTTPError
from citius.web.uploads.store import until_done

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Sequence

    from citius.web.uploads.store import UploadDirectory, UploadRecord

PARTIAL: Final = "partial"
FINAL: Final = "final;"
PARTS_MAX: Final = 1000
"""Parts of one upload; more: 400. Origin: ten times what one owner may have open by default."""

_COPY_BYTES: Final = 1 << 20


def parts_of(value: str, path: str, owner: str, store: UploadDirectory) -> list[UploadRecord]:
    """The partial uploads that ``Upload-Concat`` of a final one names.

    Args:
        value: The field.
        path: Where the final upload is begun, and each of its parts was.
        owner: Whose they are.
        store: Where they are.

    Raises:
        HTTPError: They are none, or not complete.
    """
    urls = value.removeprefix(FINAL).split()
    if not urls or len(urls) > PARTS_MAX:
        raise HTTPError(400, f"Upload-Concat: expected one to {PARTS_MAX} partial uploads")
    found: list[UploadRecord] = []
    for url in urls:
        try:
            identifier = unquote(urlsplit(url).path).rpartition("/")[2]
        except ValueError:
            raise HTTPError(400, f"Upload-Concat: {url} is no URL") from None
        part = store.find(owner, identifier, path)
        if part is None or part.concat != PARTIAL:
            raise HTTPError(400, f"Upload-Concat: {url} is no partial upload here")
        if part.length is None or store.offset(owner, part) != part.length:
            raise HTTPError(400, f"Upload-Concat: {url} is not complete")
        found.append(part)
    return found


def size_of(parts: Sequence[UploadRecord]) -> int:
    """Bytes of an upload with these parts."""
    return sum(part.length or 0 for part in parts)


@asynccontextmanager
async def joined(
    store: UploadDirectory, owner: str, record: UploadRecord, parts: Sequence[UploadRecord]
) -> AsyncGenerator[None]:
    """The upload with the bytes of its parts, which no other request uses.

    Raises:
        HTTPError: A part is gone, or the disk is full.
    """
    async with store.taken(owner, record) as fd:
        loop = asyncio.get_running_loop()
        for part in parts:
            async with store.taken(owner, part) as source:
                is_left = threading.Event()
                copying = loop.run_in_executor(None, _copy, source, fd, is_left)
                await until_done(copying, is_left.set)
        if os.fstat(fd).st_size != size_of(parts):
            raise HTTPError(409, "a part has changed")
        yield


def _copy(source: int, fd: int, is_left: threading.Event) -> None:
    """Append a file to another one.

    Raises:
        HTTPError: The disk is full.
    """
    os.lseek(source, 0, os.SEEK_SET)
    try:
        while not is_left.is_set() and (data := os.read(source, _COPY_BYTES)):
            view = memoryview(data)
            while view:
                view = view[os.write(fd, view) :]
    except OSError as error:
        raise HTTPError(507, f"it cannot be written: {error.strerror}") from None
