"""``--pidfile``: a file with the id of the process that takes signals.

Written under another name and renamed, so that a reader never sees a partial file; neither step follows a
link that another user has put into the directory or on the way to it (paths.py). A file that names no process
that could have written it is stale and replaced. A file that holds anything but a number is never replaced.
"""

from __future__ import annotations

import errno
import os
import stat

from citius.errors import ConfigError
from citius.observability import logging
from citius.process import paths

# The file's time has the resolution of a clock tick, and the start of a process is rounded down.
_SLACK_S = 1.0


def write(path: str, *, guarded: bool = False) -> None:
    """Write the id of this process.

    Args:
        path: The file.
        guarded: This process is root, and the workers' user may write to the directories on the way.

    Raises:
        ConfigError: It cannot be written, belongs to a running server, or holds something else.
    """
    try:
        with paths.parent(path, guarded=guarded) as (directory, name):
            found = _read(path, directory, name)
            if found is not None:
                _check(path, *found)
            _replace(directory, name)
    except OSError as error:
        raise ConfigError(f"pidfile: cannot write {path}: {paths.reason(error)}") from None


def _check(path: str, other: int, written_at: float) -> None:
    """Refuse to replace the file of a running server."""
    began_at = None if other in (os.getpid(), os.getppid()) else _began_at(other)
    if began_at is not None and began_at <= written_at + _SLACK_S:
        raise ConfigError(
            f"pidfile: {path} names process {other}, which runs; stop it, or remove the file"
        )
    if began_at is not None:
        logging.warning(
            f"pidfile: {path} is stale and replaced: process {other}, which it names, has begun later"
        )


def _replace(directory: int, name: str) -> None:
    aside = f"{name}.{os.urandom(4).hex()}"
    # O_EXCL refuses existing files and links.
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
    fd = os.open(aside, flags, 0o644, dir_fd=directory)
    try:
        os.write(fd, f"{os.getpid()}\n".encode())
        os.replace(aside, name, src_dir_fd=directory, dst_dir_fd=directory)
    except OSError:
        os.unlink(aside, dir_fd=directory)
        raise
    finally:
        os.close(fd)


def remove(path: str, *, guarded: bool = False) -> None:
    """Remove the file if it names this process; after USR2 it names the new server."""
    try:
        with paths.parent(path, guarded=guarded) as (directory, name):
            found = _read(path, directory, name)
            if found is not None and found[0] == os.getpid():
                os.unlink(name, dir_fd=directory)
    except (ConfigError, OSError):
        return


def _read(path: str, directory: int, name: str) -> tuple[int, float] | None:
    """The number in the file and when it was put there; `None` without a file, or in an empty one."""
    try:
        # Opening a FIFO would wait for a writer.
        flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
        fd = os.open(name, flags, dir_fd=directory)
    except FileNotFoundError:
        return None
    except OSError as error:
        is_link = error.errno == errno.ELOOP
        reason = "it is a symbolic link" if is_link else (error.strerror or str(error)).lower()
        raise ConfigError(f"pidfile: cannot use {path}: {reason}; name a file of its own") from None
    try:
        status = os.fstat(fd)
        if not stat.S_ISREG(status.st_mode):
            raise ConfigError(f"pidfile: {path} is no regular file; name a file of its own")
        text = os.read(fd, 64).strip()
    finally:
        os.close(fd)
    if not text:
        return None
    if not text.isdigit():
        raise ConfigError(
            f"pidfile: {path} does not hold the number of a process; name a file of its own, or remove it"
        )
    return int(text), status.st_mtime


def _began_at(pid: int) -> float | None:
    """When a process has begun, in seconds since 1970; `None` if there is none, or it has ended."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            state, *fields = file.read().rpartition(b")")[2].split()
        # One that has ended is there until its parent asks for it, which some parents never do.
        if state in (b"Z", b"X"):
            return None
        ticks = int(fields[18])
        with open("/proc/stat", "rb") as file:
            booted_at = next(int(line.split()[1]) for line in file if line.startswith(b"btime"))
    except (OSError, OverflowError, StopIteration):
        return None
    return booted_at + ticks / os.sysconf("SC_CLK_TCK")
