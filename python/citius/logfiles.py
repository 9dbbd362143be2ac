"""``--log-file`` and ``--access-log-file``: standard error and standard output as files.

The files take the place of descriptors 2 and 1, so that tracebacks, stacks printed by a signal and what
libraries write go there too. Opening again (USR1, after a rotation) puts the new file in the same place.

Whoever starts the server as root and serves as somebody else opens files as root where that somebody may
write, most often his own directory of logs. ``_open_as_root`` believes no link or second name that he could
have put there: otherwise he could have root write to, and give him, any file of the system.
"""

from __future__ import annotations

import errno
import os
import stat
from typing import TYPE_CHECKING

from citius.errors import ConfigError

if TYPE_CHECKING:
    from citius.config import Config


def open_files(config: Config, *, give: bool = True) -> None:
    """Put the configured files, opened now, in the place of the two descriptors.

    Args:
        config: Names the files.
        give: Make them belong to whom the workers run as; those cannot do it themselves.

    Raises:
        ConfigError: A file cannot be opened for writing.
    """
    for option, path, place in (
        ("log_file", config.log_file, 2),
        ("access_log_file", config.access_log_file, 1),
    ):
        if path is None or path == "-":
            continue
        gives = give and (config.user is not None or config.group is not None)
        try:
            fd = (_open_as_root if gives and os.geteuid() == 0 else _open)(path)
        except OSError as error:
            reason = (error.strerror or str(error)).lower()
            if error.errno == errno.ELOOP:
                reason = (
                    f"{error.filename} is a link in a directory that others than root can write to; "
                    "name the file itself"
                )
            raise ConfigError(f"{option}: cannot write to {path}: {reason}") from None
        # A terminal, a pipe or /dev/null is not ours to give away.
        if gives and stat.S_ISREG(os.fstat(fd).st_mode):
            from citius.privileges import Identity

            identity = Identity.of(config)
            os.fchown(fd, identity.uid, identity.gid)
        os.dup2(fd, place)
        os.close(fd)


_FLAGS = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC

# As the kernel has it.
_LINKS_MAX = 40


def _open(path: str, directory: int | None = None, flags: int = 0) -> int:
    return os.open(path, _FLAGS | flags, 0o666, dir_fd=directory)


def _open_as_root(path: str) -> int:
    """Walk to a file, name by name, following links only where nobody but root can have put them."""
    names = path.split("/")[::-1]
    links = 0
    here = os.open("/" if path.startswith("/") else ".", os.O_PATH | os.O_DIRECTORY)
    try:
        while True:
            name = names.pop()
            if name in ("", ".") and names:
                continue
            if _is_link(name, here):
                links += 1
                if links > _LINKS_MAX or not _is_roots(here):
                    raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), name)
                if _is_in_proc(here):
                    return _open("/".join([name, *reversed(names)]), here)
                target = os.readlink(name, dir_fd=here)
                names += target.split("/")[::-1]
                if not target.startswith("/"):
                    continue
                step = "/"
            elif not names:
                fd = _open(name, here, os.O_NOFOLLOW)
                status = os.fstat(fd)
                if stat.S_ISREG(status.st_mode) and status.st_nlink > 1 and not _is_roots(here):
                    os.close(fd)
                    raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), name)
                return fd
            else:
                step = name
            there = os.open(step, os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW, dir_fd=here)
            os.close(here)
            here = there
    finally:
        os.close(here)


def _is_link(name: str, directory: int) -> bool:
    try:
        return stat.S_ISLNK(os.stat(name, dir_fd=directory, follow_symlinks=False).st_mode)
    except FileNotFoundError:
        return False


def _is_roots(directory: int) -> bool:
    """Whether nobody but root can put anything there."""
    status = os.fstat(directory)
    return status.st_uid == 0 and not status.st_mode & (stat.S_IWGRP | stat.S_IWOTH)


def _is_in_proc(directory: int) -> bool:
    """Whether links there lead to what a process has open, by no path at all: /dev/stdout does."""
    try:
        return os.fstat(directory).st_dev == os.stat("/proc").st_dev
    except FileNotFoundError:
        return False


def reopen(config: Config, *, give: bool = True) -> None:
    """Open them anew, or say why that is not possible and go on with the old ones."""
    try:
        open_files(config, give=give)
    except ConfigError as error:
        from citius import logging

        logging.error(str(error))
