"""``--sandbox``: what a worker gives up before it serves.

In: a configuration. After ``enter`` the process opens only the files that its Python, its libraries and its
working directory hold, and writes only where ``--sandbox-write`` says; it starts no program, traces no
process and makes no socket but those that ``--sandbox-connect`` allows. What is open already stays open: the
sockets of the server, and what the application opened at its start. The supervisor is not confined, for it
starts new versions. crates/citius-sandbox has the rules of the kernel.

Tests: ``tests/deploy/test_sandbox.py``.
"""

from __future__ import annotations

import os
import sys
import threading
from pathlib import Path
from typing import TYPE_CHECKING

from citius._core import confine, refuse_rings
from citius.errors import ConfigError
from citius.observability import logging

if TYPE_CHECKING:
    from citius.settings.config import Config

# Libraries, certificates of authorities, time zones, names of hosts and users, and the process itself.
_SYSTEM = (
    "/usr", "/lib", "/lib64", "/bin", "/etc", "/opt", "/run/systemd/resolve", "/proc/self", "/proc/meminfo",
    "/proc/cpuinfo", "/proc/stat", "/dev/null", "/dev/zero", "/dev/random", "/dev/urandom", "/sys/fs/cgroup",
    "/sys/devices/system/cpu",
)  # fmt: skip
# Files that take whatever is written, and keep nothing.
_DEVICES = ("/dev/null", "/dev/zero")


def prepare() -> None:
    """Do what comes before the event loop: without rings of ``io_uring`` uvloop uses none.

    Raises:
        ConfigError: The kernel has no such means.
    """
    try:
        refuse_rings()
    except OSError as error:
        raise ConfigError(f"sandbox: {error}") from None


def enter(config: Config) -> None:
    """Give up, for good, what the configuration does not name.

    Raises:
        ConfigError: The kernel has no such means.
    """
    ports = [int(word) for word in config.sandbox_connect if word != "unix"]
    try:
        is_whole = confine(
            readable=readable(config),
            writable=writable(config),
            ports=ports,
            unix="unix" in config.sandbox_connect,
        )
    except OSError as error:
        raise ConfigError(f"sandbox: {error}") from None
    if not is_whole:
        logging.warning(
            "sandbox: this kernel restricts files, not everything else that newer ones do"
        )
    # Those that run Python. Ours below it open no files.
    if threads := threading.active_count() - 1:
        logging.warning(
            f"sandbox: {threads} threads that were started before may still open any file; start threads "
            "after the start-up hooks"
        )


def readable(config: Config) -> list[str]:
    """Return the paths that may be read."""
    home = os.getcwd()
    python = [sys.prefix, sys.base_prefix, sys.exec_prefix, *(path or home for path in sys.path)]
    mounts = [text.partition("=")[2] for text in config.static]
    named = [*config.sandbox_read, *mounts]
    for path in config.sandbox_read:
        if not os.path.exists(path):
            raise ConfigError(f"sandbox_read: there is no {path}")
    return sorted({*_SYSTEM, home, *python, *named})


def writable(config: Config) -> list[str]:
    """Return the paths that may be written too: those that are named, and the directories of log files."""
    for path in config.sandbox_write:
        if not os.path.exists(path):
            raise ConfigError(f"sandbox_write: there is no {path}")
    logs = (config.log_file, config.access_log_file)
    # USR1 makes a worker open them again, by name.
    directories = [str(Path(path).absolute().parent) for path in logs if path not in (None, "-")]
    return sorted({*_DEVICES, *config.sandbox_write, *directories})
