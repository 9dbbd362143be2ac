"""One measurement at a time on a machine: two would take each other's CPU, and neither would know."""

from __future__ import annotations

import contextlib
import fcntl
import os
import stat
from pathlib import Path
from typing import TYPE_CHECKING

from citius_lab.errors import LabError

if TYPE_CHECKING:
    from collections.abc import Generator


@contextlib.contextmanager
def measuring(folder: Path) -> Generator[None]:
    """Hold the machine while a run writes to ``folder``; the kernel lets go when the process ends.

    Raises:
        LabError: Another run measures (the message says which), or the lock is not a file for all users.
    """
    descriptor = _opened(lock_path())
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            held = os.pread(descriptor, 4096, 0).decode(errors="replace").strip()
            raise LabError(
                f"another citius lab measures on this machine ({held or 'just started'}): the figures of "
                "both would be wrong; wait until it has ended"
            ) from None
        os.ftruncate(descriptor, 0)
        os.pwrite(descriptor, f"process {os.getpid()}, into {folder}".encode(), 0)
        yield
    finally:
        os.close(descriptor)


def lock_path() -> Path:
    """Return the file that is locked, one for all users: TMPDIR can be another folder for each of them."""
    return Path(os.environ.get("CITIUS_LAB_LOCK") or "/tmp/citius-lab.lock")


def _opened(path: Path) -> int:
    """Open the lock, which any user may have made: no link leads it to another file."""
    flags = os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK  # a pipe is not waited for
    try:
        descriptor = _opened_or_made(path, flags)
    except OSError as error:
        raise LabError(f"{path} cannot be opened: {error}") from error
    found = os.fstat(descriptor)
    if not stat.S_ISREG(found.st_mode) or found.st_nlink != 1:
        os.close(descriptor)
        raise LabError(
            f"{path} is the lock of measurements: a regular file with one name was expected; remove it"
        )
    return descriptor


def _opened_or_made(path: Path, flags: int) -> int:
    # O_CREAT alone fails for a file of another user in a sticky folder (fs.protected_regular).
    try:
        return os.open(path, flags)
    except FileNotFoundError:
        pass
    try:
        descriptor = os.open(path, flags | os.O_CREAT | os.O_EXCL, SHARED_MODE)
    except FileExistsError:  # another run has made it since
        return os.open(path, flags)
    os.fchmod(descriptor, SHARED_MODE)  # whatever the umask is
    return descriptor


SHARED_MODE = 0o666
