"""Uploads in a directory: each a file of what has come, and one of what is known of it.

```text
DIRECTORY/OWNER/ID       the bytes; how many there are is the offset
DIRECTORY/OWNER/ID.json  what the client has said of it
DIRECTORY/OWNER/ID.done  the same, when the application has taken it
DIRECTORY/OWNER/ID.lock  locked by the request that uses it
DIRECTORY/OWNER/ID.stop  asks that request, in any worker, to let go
```

The lock is the kernel's, and ends with its process. It is not that of the bytes, which the application moves
while the request has them. Everything is found again after a restart, and by all workers and machines that
share the directory. Tests: ``tests/uploads/``.
"""

from __future__ import annotations

import asyncio
import fcntl
import hashlib
import json
import os
import secrets
import shutil
import string
import time
from contextlib import asynccontextmanager, contextmanager, suppress
from dataclasses import asdict, dataclass, field, fields
from typing import TYPE_CHECKING, Final

from citius.errors import HTTPError
from citius.observability.logging import log_exception
from citius.threads import Thread

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Generator, Iterator
    from pathlib import Path

BUFFER_BYTES: Final = 256 * 1024
"""Bytes that are written at once. Origin: a thread's switch costs less than a tenth of their write."""

TAKE_S: Final = 5.0
"""How long a request waits for the one before it to let go of an upload. Exceeded: 423."""

SWEEP_S: Final = 60.0
"""How often expired uploads are looked for."""

_ID_CHARS = 24
_OF_IDS = frozenset(string.ascii_letters + string.digits + "-_")
# How often a request that appends looks whether it is asked to let go.
_LOOK_S = 0.1


# What there is of an upload beside its bytes.
_SUFFIXES = (".json", ".done", "", ".stop", ".lock")


class LetGo(Exception):
    """Another request of the same upload has come."""


class Complete(Exception):
    """The application has got the upload meanwhile."""


@dataclass(slots=True)
class UploadRecord:
    """What is known of an upload."""

    id: str
    path: str
    """The path that it was begun at."""
    length: int | None = None
    """How many bytes it has, if the client has said so."""
    content_type: str = "application/octet-stream"
    filename: str = ""
    metadata: dict[str, str] = field(default_factory=dict[str, str])
    raw_metadata: str = ""
    """As a client of tus has sent them."""
    concat: str = ""
    """``Upload-Concat`` of a client of tus: whether it is a part, or has parts (concatenation.py)."""
    begun_at: float = 0.0
    is_complete: bool = False
    """Whether the application has got it."""


class UploadDirectory:
    """The uploads of one declaration.

    Args:
        directory: Where they are; made if it is missing.
        age_s: How long one may take, and is known when it is complete.
        owner_uploads_max: Those of one owner that are not complete.
        free_bytes_min: Bytes that are left free on the disk.
    """

    def __init__(
        self, directory: Path, age_s: float, owner_uploads_max: int, free_bytes_min: int
    ) -> None:
        self._directory = directory
        self._age_s = age_s
        self._owner_uploads_max = owner_uploads_max
        self._free_bytes_min = free_bytes_min
        self._swept_at = 0.0
        self._handed: set[str] = set()

    def open(self) -> None:
        """Make the directory, and forget what has expired.

        Raises:
            OSError: It cannot be made.
        """
        self._directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._swept_at = time.time()
        self.sweep()

    def create(self, owner: str, record: UploadRecord) -> None:
        """Begin an upload.

        Raises:
            HTTPError: The owner has too many, or the disk is full.
        """
        self._sweep_now_and_then()
        home = self._home(owner)
        home.mkdir(mode=0o700, exist_ok=True)
        with _file_locked(home / ".lock"):
            open_ones = sum(1 for one in _records(home, "*.json") if not one.is_complete)
            if open_ones >= self._owner_uploads_max:
                raise HTTPError(
                    429, f"{open_ones} uploads are not complete; finish or cancel one of them",
                    {"retry-after": "60"},
                )  # fmt: skip
            self.check_space(record.length or 0)
            record.id = secrets.token_urlsafe(18)
            record.begun_at = time.time()
            os.close(os.open(home / record.id, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))
            self.save(owner, record)

    def check_space(self, needed: int) -> None:
        """Refuse what the disk has no room for.

        Raises:
            HTTPError: 507.
        """
        if shutil.disk_usage(self._directory).free - needed < self._free_bytes_min:
            raise HTTPError(507, "the disk has no room for it")

    def find(self, owner: str, identifier: str, path: str) -> UploadRecord | None:
        """What is known of an upload of an owner, at a path."""
        if len(identifier) != _ID_CHARS or not _OF_IDS.issuperset(identifier):
            return None
        record = _known(self._home(owner) / identifier)
        if record is None or record.path != path:
            return None
        return None if self.expires_at(record) <= time.time() else record

    def save(self, owner: str, record: UploadRecord) -> None:
        """Keep what is known of an upload."""
        place = self._home(owner) / record.id
        new = place.with_suffix(".new")
        new.write_text(json.dumps(asdict(record)))
        new.replace(place.with_suffix(".done" if record.is_complete else ".json"))
        if record.is_complete:
            # Those that are not are counted, and looked at, whenever one begins.
            place.with_suffix(".json").unlink(missing_ok=True)

    def file(self, owner: str, record: UploadRecord) -> Path:
        """Where its bytes are."""
        return self._home(owner) / record.id

    def offset(self, owner: str, record: UploadRecord) -> int:
        """How many bytes have come."""
        try:
            return self.file(owner, record).stat().st_size
        except FileNotFoundError:  # the application has it
            return record.length or 0

    def remove(self, owner: str, record: UploadRecord) -> None:
        """Forget an upload."""
        _forget(self.file(owner, record))

    def finish(self, owner: str, record: UploadRecord, size: int) -> None:
        """Keep that the application has got an upload."""
        record.is_complete, record.length = True, size
        self.save(owner, record)
        place = self.file(owner, record)
        for suffix in ("", ".stop", ".lock"):
            place.with_suffix(suffix).unlink(missing_ok=True)

    def expires_at(self, record: UploadRecord) -> float:
        """When it is forgotten."""
        return record.begun_at + self._age_s

    def sweep(self) -> None:
        """Forget what has expired, and what a process that was killed has left."""
        now = time.time()
        for home in self._directory.iterdir():
            if not home.is_dir():
                continue
            known = set[str]()
            for record in _records(home, "*.json", "*.done"):
                if self.expires_at(record) <= now:
                    # A request that appends goes on with a file that has no name.
                    _forget(home / record.id)
                else:
                    known.add(record.id)
            for one in home.iterdir():
                # What has begun since is not known, and not old.
                if not one.stem.startswith(".") and one.stem not in known:
                    with suppress(FileNotFoundError):
                        if one.stat().st_mtime + self._age_s <= now:
                            one.unlink()

    def _sweep_now_and_then(self) -> None:
        """Have a thread do so: there may be many."""
        now = time.time()
        if now - self._swept_at < SWEEP_S:
            return
        self._swept_at = now
        Thread(target=self._sweep_aside, name="citius-uploads", daemon=True).start()

    def _sweep_aside(self) -> None:
        try:
            self.sweep()
        except OSError as error:
            log_exception(f"uploads in {self._directory} that have expired are not removed", error)

    @asynccontextmanager
    async def taken(self, owner: str, record: UploadRecord) -> AsyncGenerator[int]:
        """The file of an upload, which no other request uses; the block is cancelled if another one comes.

        The record is what is known of it by then.

        Raises:
            LetGo: Another request has come.
            Complete: The application has got it.
            HTTPError: The one before does not let go, or the upload is gone.
        """
        place = self.file(owner, record)
        async with self._locked(place):
            fd = _open(place, record)
            try:
                with self._asked(place, record):
                    yield fd
            finally:
                os.close(fd)

    @asynccontextmanager
    async def _locked(self, place: Path) -> AsyncGenerator[None]:
        """The lock of an upload."""
        lock, stop = place.with_suffix(".lock"), place.with_suffix(".stop")
        while True:
            fd = os.open(lock, os.O_RDWR | os.O_CLOEXEC | os.O_CREAT, 0o600)
            try:
                await self._wait_for(fd, stop)
                if not _is_at(fd, lock):
                    continue  # the one before has removed it
                stop.unlink(missing_ok=True)
                try:
                    yield
                finally:
                    if _known(place) is None or not place.exists():
                        lock.unlink(missing_ok=True)
                return
            finally:
                os.close(fd)

    @contextmanager
    def _asked(self, place: Path, record: UploadRecord) -> Generator[None]:
        """Cancel the block if another request comes, until the application has the upload.

        Raises:
            LetGo: One has come.
        """
        stop, task = place.with_suffix(".stop"), asyncio.current_task()
        assert task is not None, "awaited by a handler"
        was_asked = False

        async def look() -> None:
            nonlocal was_asked
            while record.id in self._handed or not stop.exists():
                await asyncio.sleep(_LOOK_S)
            was_asked = True
            task.cancel()

        looking = asyncio.ensure_future(look())
        try:
            yield
        except asyncio.CancelledError:
            if not was_asked:
                raise
            task.uncancel()
            raise LetGo from None
        finally:
            looking.cancel()

    @asynccontextmanager
    async def handed(self, record: UploadRecord) -> AsyncGenerator[None]:
        """While the application has an upload no other request ends this one.

        Raises:
            asyncio.CancelledError: One has done so before.
        """
        self._handed.add(record.id)
        try:
            await asyncio.sleep(0)
            yield
        finally:
            self._handed.discard(record.id)

    async def _wait_for(self, fd: int, stop: Path) -> None:
        until = time.monotonic() + TAKE_S
        while True:
            try:
                # Of the open file, not of the process: requests of one worker exclude each other, too.
                fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                if time.monotonic() > until:
                    raise HTTPError(
                        423, "another request has the upload", {"retry-after": "1"}
                    ) from None
                with suppress(OSError):
                    stop.touch(mode=0o600)
                await asyncio.sleep(_LOOK_S / 4)
            else:
                return

    def _home(self, owner: str) -> Path:
        return self._directory / (_digest(owner) if owner else "all")


async def until_done(
    work: asyncio.Future[None], on_cancelled: Callable[[], object] | None = None
) -> None:
    """Wait for a thread that uses a file, however often the caller is cancelled meanwhile.

    The file is closed and unlocked behind it. While a thread writes, the number of a closed one could be
    that of another file: the caller is cancelled by its client, by the next request for the upload, and by
    the end of the server.
    """
    cancelled: asyncio.CancelledError | None = None
    while not work.done():
        try:
            await asyncio.wait([work])
        except asyncio.CancelledError as error:
            cancelled = error
            if on_cancelled is not None:
                on_cancelled()
    if cancelled is not None:
        # Whether it has failed does not matter to who has left.
        work.exception()
        raise cancelled
    work.result()


class Appender:
    """Writes what comes to the file of an upload, many pieces at once, in a thread."""

    def __init__(
        self,
        fd: int,
        algorithm: str | None,
        make_sure_of_space: Callable[[int], object] = lambda needed: None,
    ) -> None:
        self.offset = os.fstat(fd).st_size
        """Bytes that the file has, and those that wait to be written."""
        self._fd = fd
        self._make_sure_of_space = make_sure_of_space
        self._began_at = self.offset
        self._waiting: list[bytes] = []
        self._waiting_bytes = 0
        self._digest = None if algorithm is None else hashlib.new(algorithm, usedforsecurity=False)

    async def add(self, piece: bytes) -> None:
        """Write a piece, with others."""
        self._waiting.append(piece)
        self._waiting_bytes += len(piece)
        self.offset += len(piece)
        if self._digest is not None:
            self._digest.update(piece)
        if self._waiting_bytes < BUFFER_BYTES:
            return
        await until_done(asyncio.get_running_loop().run_in_executor(None, self.flush))

    def flush(self) -> None:
        """Write what waits.

        Raises:
            HTTPError: The disk is full.
        """
        if not self._waiting:
            return
        self._make_sure_of_space(self._waiting_bytes)
        data, self._waiting, self._waiting_bytes = b"".join(self._waiting), [], 0
        view = memoryview(data)
        try:
            while view:
                view = view[os.write(self._fd, view) :]
        except OSError as error:
            raise HTTPError(507, f"it cannot be written: {error.strerror}") from None

    def has_digest(self, digest: bytes) -> bool:
        """Whether what was added has this digest."""
        return self._digest is not None and self._digest.digest() == digest

    def undo(self) -> None:
        """Forget what was added."""
        self._waiting.clear()
        os.ftruncate(self._fd, self._began_at)
        self.offset = self._began_at


@contextmanager
def _file_locked(place: Path) -> Generator[None]:
    """The kernel's lock of a file."""
    fd = os.open(place, os.O_RDWR | os.O_CLOEXEC | os.O_CREAT, 0o600)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX)
        yield
    finally:
        os.close(fd)


def _records(home: Path, *patterns: str) -> Iterator[UploadRecord]:
    for pattern in patterns:
        for one in home.glob(pattern):
            record = _read(one)
            if record is not None:
                yield record


def _known(place: Path) -> UploadRecord | None:
    """What is known of the upload whose bytes are at ``place``."""
    return _read(place.with_suffix(".done")) or _read(place.with_suffix(".json"))


def _open(place: Path, record: UploadRecord) -> int:
    """The file of an upload that is locked, and what is known of it.

    Raises:
        Complete: The application has got it.
        HTTPError: It is gone.
    """
    known = _known(place)
    if known is not None:
        for one in fields(known):
            setattr(record, one.name, getattr(known, one.name))
        if record.is_complete:
            raise Complete
        with suppress(FileNotFoundError):
            return os.open(place, os.O_RDWR | os.O_APPEND | os.O_CLOEXEC)
    raise HTTPError(404, "there is no such upload")


def _is_at(fd: int, place: Path) -> bool:
    """Whether a file has this name still."""
    try:
        return os.path.samestat(os.fstat(fd), place.stat())
    except FileNotFoundError:
        return False


def _forget(place: Path) -> None:
    for suffix in _SUFFIXES:
        place.with_suffix(suffix).unlink(missing_ok=True)


def _read(place: Path) -> UploadRecord | None:
    try:
        return UploadRecord(**json.loads(place.read_bytes()))
    except (FileNotFoundError, ValueError, TypeError):
        return None


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:32]
