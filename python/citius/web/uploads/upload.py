"""What the function of ``app.uploads`` gets. Apart: `from citius import *` brings nothing else of uploads.

Tests: ``tests/server/test_memory.py``, and those of ``resumable.py``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, BinaryIO

if TYPE_CHECKING:
    import os
    from pathlib import Path

    from citius._core import Request
    from citius.web.uploads.store import UploadRecord


class Upload:
    """A file that a client has uploaded."""

    def __init__(self, request: Request) -> None:
        self.request = request
        """The request that has brought its last bytes."""
        self._place: Path | None = None
        self.id = ""
        """Its identifier."""
        self.size = 0
        """How many bytes it has."""
        self.filename = ""
        """What the client calls it, without directories; empty if it has not said."""
        self.content_type = ""
        """The media type that the client has said."""
        self.metadata: dict[str, str] = {}
        """What a client of tus has said of it."""

    @property
    def path(self) -> Path:
        """Where it is until the function returns, unless it is moved."""
        if self._place is None:
            raise RuntimeError("the upload is not complete, or has been moved")
        return self._place

    def open(self) -> BinaryIO:
        """The file, for reading."""
        return self.path.open("rb")

    def move(self, place: str | os.PathLike[str]) -> None:
        """Move it to another name, in place of a file that is there; within one file system at once."""
        import shutil

        shutil.move(self.path, place)
        self._place = None

    def fill(self, record: UploadRecord, place: Path, size: int) -> None:
        """Say what it is, when it is complete."""
        self.id, self.size, self._place = record.id, size, place
        self.filename, self.content_type = record.filename, record.content_type
        self.metadata = record.metadata
