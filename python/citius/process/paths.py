"""Files that root opens where the workers' user may write.

A server started as root with ``--user`` opens, replaces and removes files as root: log files, the pid file,
Unix sockets, certificates. The workers' user often owns their directories, and could put a link or a FIFO
there. With ``guarded`` a path is resolved name by name through directory descriptors; a link is followed only
in a directory that root alone can change. What is then opened or removed is named relative to the last
descriptor, so that exchanging a directory on the way has no effect.

In directories where confined workers (``--sandbox``) may write, a process that is not confined follows no
link, whoever owns the link: a worker could have made it (``workers_write``).

Every open is non-blocking: opening a FIFO without a reader would block the supervisor for good.
"""

from __future__ import annotations

import errno
import os
import stat
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

from citius.records import record

if TYPE_CHECKING:
    from collections.abc import Generator, Iterable

    from citius.process.privileges import Identity

# The limit of the kernel.
_LINKS_MAX = 40

# Directories that confined workers may write to, by device and number.
_of_workers: frozenset[tuple[int, int]] = frozenset()


def workers_write(names: Iterable[str]) -> None:
    """Tell to which directories confined workers may write; to none without a sandbox."""
    global _of_workers
    found: set[tuple[int, int]] = set()
    for name in names:
        with suppress(OSError):
            status = os.stat(name)
            if stat.S_ISDIR(status.st_mode):
                found.add((status.st_dev, status.st_ino))
    _of_workers = frozenset(found)


def are_told() -> bool:
    """Whether it is known to which directories confined workers may write."""
    return bool(_of_workers)


def is_workers(directory: int) -> bool:
    """Whether confined workers may write to a directory, or to one above it."""
    if not _of_workers:
        return False
    here = os.dup(directory)
    try:
        before = None
        while True:
            status = os.fstat(here)
            this = (status.st_dev, status.st_ino)
            if this in _of_workers:
                return True
            if this == before:  # the root is above itself
                return False
            before = this
            above = os.open("..", os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC, dir_fd=here)
            os.close(here)
            here = above
    finally:
        os.close(here)


@contextmanager
def parent(path: str, *, guarded: bool, follow: bool = False) -> Generator[tuple[int, str]]:
    """The directory of ``path`` as a descriptor, and the name in it.

    Args:
        path: Of a file, which need not exist.
        guarded: Follow links only where root alone can have made them.
        follow: Resolve the last name as well if it is such a link.

    Raises:
        OSError: A directory is missing, or (``ELOOP``) a link must not be followed.
    """
    if guarded or _of_workers:
        directory, name = _walk(path, guarded=guarded, follow=follow)
    else:
        head, name = os.path.split(path)
        directory = os.open(head or ".", os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        yield directory, name
    finally:
        os.close(directory)


def _walk(path: str, *, guarded: bool, follow: bool) -> tuple[int, str]:
    names = path.split("/")[::-1]
    links = 0
    here = os.open("/" if path.startswith("/") else ".", os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        while True:
            name = names.pop()
            if name in ("", ".") and names:
                continue
            step = name
            if (names or follow) and _is_link(name, here):
                links += 1
                if links > _LINKS_MAX or (guarded and not is_roots(here)) or is_workers(here):
                    raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), name)
                if is_in_proc(here):
                    return here, "/".join([name, *reversed(names)])
                target = os.readlink(name, dir_fd=here)
                names += target.split("/")[::-1]
                if not target.startswith("/"):
                    continue
                step = "/"
            elif not names:
                return here, name
            there = os.open(
                step, os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=here
            )
            os.close(here)
            here = there
    except BaseException:
        os.close(here)
        raise


def _is_link(name: str, directory: int) -> bool:
    try:
        return stat.S_ISLNK(os.stat(name, dir_fd=directory, follow_symlinks=False).st_mode)
    except FileNotFoundError:
        return False


def is_roots(directory: int) -> bool:
    """Whether only root can create entries in a directory."""
    status = os.fstat(directory)
    return status.st_uid == 0 and not status.st_mode & (stat.S_IWGRP | stat.S_IWOTH)


def is_in_proc(directory: int) -> bool:
    """Whether a directory is in /proc, where links lead to open files without a path, as /dev/stdout does."""
    try:
        return os.fstat(directory).st_dev == os.stat("/proc").st_dev
    except FileNotFoundError:
        return False


def open_to_read(path: str) -> int:
    """A regular file, guarded.

    Raises:
        OSError: It cannot be opened, is no regular file, or (``ELOOP``) is reached by a link that must not
            be followed.
    """
    with parent(path, guarded=True, follow=True) as (directory, name):
        flags = os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
        if not is_in_proc(directory):
            flags |= os.O_NOFOLLOW
        fd = os.open(name, flags, dir_fd=directory)
        try:
            status = os.fstat(fd)
            if not stat.S_ISREG(status.st_mode):
                raise OSError(errno.EINVAL, "it is no regular file", name)
            if status.st_nlink > 1 and not is_roots(directory):
                raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), name)
        except OSError:
            os.close(fd)
            raise
        return fd


def reason(error: OSError) -> str:
    """Why a path could not be used, for the end of a message."""
    if error.errno == errno.ELOOP:
        return (
            f"{error.filename} is a link in a directory that others than root, or confined workers, can "
            "write to; name the file itself"
        )
    if error.errno == errno.ENXIO:
        return "it is a FIFO that no process reads, or a socket"
    return (error.strerror or str(error)).lower()


@record(frozen=True, slots=True)
class SocketPath:
    """The path of a Unix socket that this server made, and which socket it led to."""

    path: str
    guarded: bool
    device: int
    inode: int

    @staticmethod
    def of(path: str, *, guarded: bool) -> SocketPath:
        """The socket that is there now.

        Raises:
            OSError: There is none.
        """
        with parent(path, guarded=guarded) as (directory, name):
            status = os.stat(name, dir_fd=directory, follow_symlinks=False)
        if not stat.S_ISSOCK(status.st_mode):
            raise OSError(errno.ENOTSOCK, os.strerror(errno.ENOTSOCK), path)
        return SocketPath(path, guarded, status.st_dev, status.st_ino)

    def remove(self) -> None:
        """Remove it, unless another file is there now."""
        with suppress(OSError), parent(self.path, guarded=self.guarded) as (directory, name):
            status = os.stat(name, dir_fd=directory, follow_symlinks=False)
            if (status.st_dev, status.st_ino) == (self.device, self.inode):
                os.unlink(name, dir_fd=directory)

    def give(self, uid: int, gid: int) -> None:
        """Change the owner of the socket; a file that replaced it is not touched.

        Raises:
            OSError: It was removed or replaced.
        """
        with parent(self.path, guarded=self.guarded) as (directory, name):
            fd = os.open(name, os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=directory)
            try:
                status = os.fstat(fd)
                if (status.st_dev, status.st_ino) != (self.device, self.inode):
                    raise OSError(errno.EEXIST, "another file was put in the socket's place")
                os.chown(f"/proc/self/fd/{fd}", uid, gid)
            finally:
                os.close(fd)


def changeable(path: str, identity: Identity) -> str | None:
    """The first file or directory on the way to ``path`` that a user can change; ``None`` if none is.

    Both the path as it is written and the path that its links lead to count.
    """
    if identity.uid in (-1, 0):
        return None
    for form in dict.fromkeys((os.path.abspath(path), os.path.realpath(path))):
        names = form.strip("/").split("/")
        prefixes = ["/" + "/".join(names[:count]) for count in range(len(names) + 1)]
        for prefix, entry in zip(prefixes, [*prefixes[1:], ""], strict=True):
            try:
                status = os.lstat(prefix)
            except FileNotFoundError:
                break
            if _can_change(status, identity) and not _protects(status, entry):
                return prefix
    return None


def _can_change(status: os.stat_result, identity: Identity) -> bool:
    if status.st_uid == identity.uid:
        return True
    return not stat.S_ISLNK(status.st_mode) and identity.can_write(status)


def _protects(status: os.stat_result, entry: str) -> bool:
    """Whether only the owner of an entry can replace it: the sticky bit of the directory is set."""
    return bool(entry and status.st_mode & stat.S_ISVTX and os.path.lexists(entry))
