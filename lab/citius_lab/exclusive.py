"""One measurement at a time on a machine: two would take each other's CPU, and neither would know."""

from __future__ import annotations

import contextlib
import fcntl
import os
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from citius_lab.errors import LabError

if TYPE_CHECKING:
    from collections.abc import Generator


@contextlib.contextmanager
def measuring(folder: Path) -> Generator[None]:
    """Hold the machine while a run writes to ``folder``; the kernel lets go when the process ends.

    Raises:
        LabError: Another run measures; the message says which.
    """
    try:
        descriptor = os.open(lock_path(), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
    except OSError as error:
        raise LabError(f"{lock_path()} cannot be opened: {error}") from error
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
    """Return the file that is locked, one for each person."""
    named = os.environ.get("CITIUS_LAB_LOCK")
    return Path(named) if named else Path(tempfile.gettempdir(), f"citius-lab-{os.getuid()}.lock")
