"""``--sandbox``: what a worker gives up before it serves.

In: a configuration. After ``enter`` all threads of the process open only the files that its Python, its
libraries and its working directory hold, and write only where ``--sandbox-write`` says; they start no
program, trace no process and make no socket but those that ``--sandbox-connect`` allows. What is open already
stays open: the sockets of the server, and what the application opened at its start; a socket that could reach
any address ends the start. The supervisor is not confined, for it starts new versions. Processes of
``App.executor(processes=…)`` are confined from their beginning (``rules``). crates/citius-sandbox has the
rules of the kernel.

Tests: ``tests/deploy/test_sandbox.py``, ``tests/deploy/test_syscalls.py``.
"""

from __future__ import annotations

import errno
import os
import socket
import stat
import sys
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from citius._core import confine, refuse_rings
from citius.errors import ConfigError
from citius.observability import logging
from citius.process import paths
from citius.process.turns import is_hosted

if TYPE_CHECKING:
    from collections.abc import Callable

    from citius.settings.config import Config

# Libraries, certificates of authorities, time zones, names of hosts and users, and the process itself.
_SYSTEM = (
    "/usr", "/lib", "/lib64", "/bin", "/etc", "/opt", "/run/systemd/resolve", "/proc/self", "/proc/meminfo",
    "/proc/cpuinfo", "/proc/stat", "/dev/null", "/dev/zero", "/dev/random", "/dev/urandom", "/sys/fs/cgroup",
    "/sys/devices/system/cpu",
)  # fmt: skip
# Files that take whatever is written, and keep nothing.
_DEVICES = ("/dev/null", "/dev/zero")


@dataclass(frozen=True)
class Rules:
    """What a process keeps; it can be sent to another one."""

    readable: list[str]
    writable: list[str]
    ports: list[int]
    words: set[str]

    def enter(self) -> list[str]:
        """Give up, for good, what is not named; returns what this kernel cannot restrict.

        A path that a link of a worker's leads to is not opened: the kernel's rule would be about what the
        link leads to.

        Raises:
            OSError: The kernel has no such means, or a thread is not confined.
        """
        if not paths.are_told():  # this is no child of the supervisor
            paths.workers_write(self.writable)
        missing: list[str] = []
        with ExitStack() as stack:

            def opened(names: list[str]) -> list[str]:
                found = {name: _open(name) for name in names}
                missing.extend(
                    f"{name} is not opened: it is reached by a link that a worker may have made"
                    for name, fd in found.items()
                    if fd == _OF_A_WORKER
                )
                fds = [fd for fd in found.values() if fd >= 0]
                for fd in fds:
                    stack.callback(os.close, fd)
                return [f"/proc/self/fd/{fd}" for fd in fds]

            readable, writable = opened(self.readable), opened(self.writable)
            restricted = confine(
                readable=readable, writable=writable, ports=self.ports, words=self.words
            )
        return [*missing, *(f"not restricted by this kernel: {text}" for text in restricted)]


_NOWHERE, _OF_A_WORKER = -1, -2


def _open(path: str) -> int:
    """A descriptor of what a path leads to; one of the numbers above if there is none."""
    try:
        with paths.parent(path, guarded=False, follow=True) as (directory, name):
            is_link = paths.are_told() and not paths.is_in_proc(directory)
            flags = os.O_PATH | os.O_CLOEXEC | (os.O_NOFOLLOW if is_link else 0)
            fd = os.open(name or ".", flags, dir_fd=directory)
    except OSError as error:
        return _OF_A_WORKER if error.errno == errno.ELOOP else _NOWHERE
    if stat.S_ISLNK(os.fstat(fd).st_mode):  # it has been made this moment
        os.close(fd)
        return _OF_A_WORKER
    return fd


# What makes the rules of this worker, if it is to be confined.
_rules: Callable[[], Rules] | None = None
# Processes that confine themselves.
_confined: set[int] = set()


def prepare(config: Config) -> None:
    """Do what comes before the event loop: without rings of ``io_uring`` uvloop uses none.

    Raises:
        ConfigError: The kernel has no such means.
    """
    global _rules
    try:
        refuse_rings()
    except OSError as error:
        raise ConfigError(f"sandbox: {error}") from None
    _rules = lambda: rules_of(config)  # noqa: E731


def rules() -> Rules | None:
    """What a process that this worker starts has to keep to; ``None`` without ``--sandbox``."""
    return None if _rules is None else _rules()


def is_confined_itself(pid: int) -> None:
    """Tell that a process which this worker has started confines itself."""
    _confined.add(pid)


def enter(config: Config) -> None:
    """Give up, for good, what the configuration does not name.

    Raises:
        ConfigError: The kernel has no such means, a thread is not confined, a socket reaches further, or
            workers could write the code of later ones.
    """
    made = rules_of(config)
    _check_code(config)
    _check_sockets(made.words)
    if others := ", ".join(_other_children()):
        logging.warning(
            f"sandbox: processes that the application has started are not confined: {others}; those of "
            "app.executor(processes=…) are"
        )
    try:
        missing = made.enter()
    except OSError as error:
        raise ConfigError(f"sandbox: {error}") from None
    for text in missing:
        logging.warning(f"sandbox: {text}")


def rules_of(config: Config) -> Rules:
    """The rules that a configuration asks for.

    Raises:
        ConfigError: A path does not exist.
    """
    words = {word for word in config.sandbox_connect if word in ("udp", "unix")}
    if config.sandbox_metadata:
        words.add("metadata")
    if is_hosted(config.poller):
        words.add("listen")  # by the event loop, when it begins to accept
    return Rules(
        readable=readable(config),
        writable=writable(config),
        ports=[int(word) for word in config.sandbox_connect if word.isdigit()],
        words=words,
    )


def _check_code(config: Config) -> None:
    """Refuse to have written what later workers run before they are confined: the supervisor starts them.

    A log file opens its directory, which is the application's where only a name is given.
    """
    code = sorted(_code(config))
    for path in config.sandbox_write:
        _refuse_code_in(path, code, "name a directory that has none of it (sandbox_write)")
    for path in _log_directories(config):
        _refuse_code_in(path, code, "give log files a directory of their own")


def _refuse_code_in(path: str, code: list[str], instead: str) -> None:
    if (fd := _open(path)) < 0:
        return
    real = os.readlink(f"/proc/self/fd/{fd}")
    os.close(fd)
    below = real.rstrip(os.sep) + os.sep
    if found := next((file for file in code if file == real or file.startswith(below)), None):
        raise ConfigError(
            f"sandbox: workers may write {path}, and {found} has code or settings that the next ones load "
            f"before they are confined; {instead}"
        )


def _code(config: Config) -> set[str]:
    """Where later workers find what they run: modules, packages, settings."""
    modules = [getattr(module, "__file__", None) for module in list(sys.modules.values())]
    prefixes = (sys.prefix, sys.base_prefix, sys.exec_prefix, sys.pycache_prefix)
    names = [*modules, *prefixes, *config.env_file, *(path or os.getcwd() for path in sys.path)]
    return {os.path.realpath(name) for name in names if isinstance(name, str) and name}


def _check_sockets(words: set[str]) -> None:
    """Refuse sockets that were opened before and send to any address: no filter can see to which."""
    for name in os.listdir("/proc/self/fd"):
        try:
            fd = int(name)
            if not stat.S_ISSOCK(os.fstat(fd).st_mode):
                continue
            with socket.socket(fileno=os.dup(fd)) as copy:
                kind = _reach(copy)
        except OSError:
            continue  # the descriptor of the directory
        if kind is not None and kind not in words:
            word = f"add --sandbox-connect {kind}, or " if kind in ("udp", "unix") else ""
            raise ConfigError(
                f"sandbox: the application has opened a socket (descriptor {fd}, {copy.family.name}, "
                f"{copy.type.name}) which can send to any address; {word}close it in a start-up hook"
            )


def _reach(made: socket.socket) -> str | None:
    """What allows a socket; ``None`` if it reaches one address, or what Landlock restricts."""
    if made.family == socket.AF_UNIX:
        is_bound_to_one = made.type != socket.SOCK_DGRAM and _is_connected_or_listens(made)
        return None if is_bound_to_one else "unix"
    if made.family in (socket.AF_INET, socket.AF_INET6):
        if made.type == socket.SOCK_STREAM and made.proto in (0, socket.IPPROTO_TCP):
            return None
        return "udp" if made.type == socket.SOCK_DGRAM and made.proto == socket.IPPROTO_UDP else "?"
    return "?"


def _is_connected_or_listens(made: socket.socket) -> bool:
    """Whether it can be connected no more."""
    if made.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN):
        return True
    try:
        made.getpeername()
    except OSError:
        return False
    return True


def _other_children() -> list[str]:
    """Processes of the application."""
    found: list[str] = []
    for task in os.listdir("/proc/self/task"):
        with suppress(OSError):  # a thread has ended, or the kernel does not tell
            for pid in Path(f"/proc/self/task/{task}/children").read_text().split():
                if int(pid) not in _confined:
                    found.append(f"{pid} ({Path(f'/proc/{pid}/comm').read_text().strip()})")
    return found


def readable(config: Config) -> list[str]:
    """Return the paths that may be read."""
    home = os.getcwd()
    python = [sys.prefix, sys.base_prefix, sys.exec_prefix, *(path or home for path in sys.path)]
    mounts = [text.partition("=")[2] for text in config.static]
    named = [*config.sandbox_read, *mounts, *config.acme_readable]
    for path in config.sandbox_read:
        if not os.path.exists(path):
            raise ConfigError(f"sandbox_read: there is no {path}")
    return sorted({*_SYSTEM, home, *python, *named})


def writable(config: Config) -> list[str]:
    """Return the paths that may be written too: those that are named, and the directories of log files."""
    for path in config.sandbox_write:
        if not os.path.exists(path):
            raise ConfigError(f"sandbox_write: there is no {path}")
    return sorted({*_DEVICES, *config.sandbox_write, *_log_directories(config)})


def _log_directories(config: Config) -> list[str]:
    """Those of log files: USR1 makes a worker open them again, by name."""
    logs = (config.log_file, config.access_log_file)
    return [str(Path(path).absolute().parent) for path in logs if path not in (None, "-")]
