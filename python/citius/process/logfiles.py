"""``--log-file`` and ``--access-log-file``: standard error and standard output as files.

The files replace descriptors 2 and 1, so that tracebacks, stacks printed by a signal and the output of
libraries go there too. USR1 opens them again, after a rotation.

Root opens them where the workers' user may write: paths.py says which links it follows. In a directory that
others can change, confined workers (``--sandbox``) included, root takes nothing but a regular file with one
name that belongs to the workers' user, or that it has just made: anything else there could be a file that the
workers may not read, or a FIFO.
"""

from __future__ import annotations

import errno
import os
import stat
import sys
from typing import TYPE_CHECKING

from citius.errors import ConfigError
from citius.process import paths
from citius.process.privileges import Identity, are_split

if TYPE_CHECKING:
    from citius.settings.config import Config


def open_files(config: Config, *, give: bool = True) -> None:
    """Open the configured files and replace descriptors 1 and 2 with them.

    Args:
        config: Names the files.
        give: Change their owner to the user of the workers, who cannot do it themselves.

    Raises:
        ConfigError: A file cannot be opened for writing.
    """
    for option, path, place in (
        ("log_file", config.log_file, 2),
        ("access_log_file", config.access_log_file, 1),
    ):
        if path is None or path == "-":
            continue
        guarded = give and are_split(config)
        identity = Identity.of(config) if guarded else None
        try:
            fd = _open(path, identity)
        except OSError as error:
            why = paths.reason(error)
            raise ConfigError(f"{option}: cannot write to {path}: {why}") from None
        os.dup2(fd, place)
        os.close(fd)


# Without O_NONBLOCK opening a FIFO would block the supervisor until a reader comes.
_FLAGS: int = (
    os.O_WRONLY | os.O_APPEND | sum(getattr(os, name, 0) for name in ("O_NONBLOCK", "O_NOCTTY", "O_CLOEXEC"))
)  # fmt: skip


def _open(path: str, identity: Identity | None) -> int:
    """Open the file, or create it; with ``identity``, guarded and owned by it."""
    if sys.platform != "linux":
        return os.open(path, _FLAGS | os.O_CREAT, 0o666)
    with paths.parent(path, guarded=identity is not None, follow=True) as (directory, name):
        if identity is None and paths.is_workers(directory):
            fd = _open_beside_workers(directory, name)
        elif identity is None:
            fd = os.open(name, _FLAGS | os.O_CREAT, 0o666, dir_fd=directory)
        else:
            fd = _open_guarded(directory, name, identity)
    os.set_blocking(fd, True)
    return fd


def _open_beside_workers(directory: int, name: str) -> int:
    """Open it where confined workers may have put a link to another file, or a FIFO that they read."""
    fd = os.open(name, _FLAGS | os.O_CREAT | os.O_NOFOLLOW, 0o666, dir_fd=directory)
    if not stat.S_ISREG(os.fstat(fd).st_mode):
        os.close(fd)
        raise OSError(errno.EINVAL, "it is no regular file, in a directory that workers can change")
    return fd


def _open_guarded(directory: int, name: str, identity: Identity) -> int:
    if paths.is_in_proc(directory):
        # A terminal, a pipe or another file that root has open already.
        return os.open(name, _FLAGS, dir_fd=directory)
    try:
        fd = os.open(name, _FLAGS | os.O_CREAT | os.O_EXCL, 0o666, dir_fd=directory)
        is_made = True
    except FileExistsError:
        fd = os.open(name, _FLAGS | os.O_NOFOLLOW, dir_fd=directory)
        is_made = False
    try:
        status = os.fstat(fd)
        if not is_made and (not paths.is_roots(directory) or paths.is_workers(directory)):
            _check(status, name, identity)
        # The owner of a terminal, a pipe or /dev/null must not change.
        if stat.S_ISREG(status.st_mode):
            os.fchown(fd, identity.uid, identity.gid)
    except OSError:
        os.close(fd)
        raise
    return fd


def _check(status: os.stat_result, name: str, identity: Identity) -> None:
    """Refuse a file that the workers' user may have put into the directory.

    Raises:
        OSError: It is no regular file, has several names, or belongs to another user.
    """
    if not stat.S_ISREG(status.st_mode):
        raise OSError(errno.EINVAL, "it is no regular file, in a directory that others can change")
    if status.st_nlink > 1:
        raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), name)
    expected = os.geteuid() if identity.uid == -1 else identity.uid
    if status.st_uid != expected:
        raise OSError(
            errno.EPERM,
            f"it belongs to uid {status.st_uid}, in a directory that others can change; "
            f"`chown {expected}` it or remove it",
        )


def reopen(config: Config, *, give: bool = True) -> None:
    """Open the files again; if that fails, log why and keep the old ones."""
    try:
        open_files(config, give=give)
    except ConfigError as error:
        from citius.observability import logging

        logging.error(str(error))
