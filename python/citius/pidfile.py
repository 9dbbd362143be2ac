"""``--pidfile``: the number of the process to send signals to.

Written aside and put in place by a rename, so that it is there whole or not at all; neither step follows a
link that somebody else has put into the directory. A file that names nobody who could have written it is
stale and replaced, one that holds anything but a number is not ours to replace.
"""

from __future__ import annotations

import os
import stat

from citius import logging
from citius.errors import ConfigError

_CLOCK_TICKS_PER_S = os.sysconf("SC_CLK_TCK")

# A file's time is that of the tick it was written in, a process's start is rounded down.
_SLACK_S = 1.0


def write(path: str) -> None:
    """Put our own number there.

    Raises:
        ConfigError: It cannot be written, or belongs to a server that runs, or is something else.
    """
    found = _read(path)
    if found is not None:
        other, written_at = found
        began_at = None if other in (os.getpid(), os.getppid()) else _began_at(other)
        if began_at is not None and began_at <= written_at + _SLACK_S:
            raise ConfigError(
                f"pidfile: {path} names process {other}, which runs; stop it, or remove the file"
            )
        if began_at is not None:
            logging.warning(
                f"pidfile: {path} is stale and replaced: process {other}, which it names, has begun later"
            )
    aside = f"{path}.{os.urandom(4).hex()}"
    try:
        # O_EXCL refuses whatever is there, links too.
        fd = os.open(aside, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o644)
        try:
            os.write(fd, f"{os.getpid()}\n".encode())
            os.replace(aside, path)
        except OSError:
            os.unlink(aside)
            raise
        finally:
            os.close(fd)
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise ConfigError(f"pidfile: cannot write {path}: {reason}") from None


def remove(path: str) -> None:
    """Remove the file if it is still ours: a process we handed over to has put its own number there."""
    try:
        found = _read(path)
        if found is not None and found[0] == os.getpid():
            os.unlink(path)
    except (ConfigError, OSError):
        return


def _read(path: str) -> tuple[int, float] | None:
    """The number in the file and when it was put there; `None` without a file, or in an empty one."""
    try:
        # A FIFO would keep us waiting for whoever writes to it.
        fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except FileNotFoundError:
        return None
    except OSError as error:
        is_link = os.path.islink(path)
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
    """When a process has begun, in seconds since 1970; `None` if there is none."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            ticks = int(file.read().rpartition(b")")[2].split()[19])
        with open("/proc/stat", "rb") as file:
            booted_at = next(int(line.split()[1]) for line in file if line.startswith(b"btime"))
    except (OSError, OverflowError, StopIteration):
        return None
    return booted_at + ticks / _CLOCK_TICKS_PER_S
