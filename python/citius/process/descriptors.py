"""The limit of open files: raised as far as possible, and compared with the limit of connections.

The soft limit is a default for programs that use ``select()``, which cannot watch descriptors from 1024 on;
the hard limit is what the operator allows. The server uses epoll and raises the soft limit to the hard limit.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from citius._core import LIMITS
from citius.errors import ConfigError
from citius.observability import logging

if TYPE_CHECKING:
    from citius.settings.config import Config

DESCRIPTORS_MIN = 64
"""With fewer descriptors the server does not start (exit code 3)."""

DESCRIPTORS_BESIDE = 32
"""Descriptors of a worker besides its connections: listeners, pipes, epoll sets, log files."""

DESCRIPTORS_FEW = 4096
"""With fewer descriptors a notice says that even the default of ``connections_max`` cannot be reached."""


def prepare(config: Config) -> None:
    """Raise the limit of open files as far as possible, and compare it with the limit of connections.

    Raises:
        ConfigError: There are fewer than ``DESCRIPTORS_MIN``.
    """
    try:
        import resource
    except ImportError:  # Windows has no such limit
        return
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != hard:
        try:
            resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
            soft = hard
        except (OSError, ValueError):
            pass  # a sandbox forbids it; the soft limit stays
    if soft == resource.RLIM_INFINITY:
        return
    if soft < DESCRIPTORS_MIN:
        raise ConfigError(
            f"the limit of open files is {soft}, and a server needs at least {DESCRIPTORS_MIN}; raise it "
            "with `ulimit -n`, LimitNOFILE= or --ulimit nofile="
        )
    connections = config.limits.get("connections_max", LIMITS["connections_max"])
    needed = connections * config.reactors + DESCRIPTORS_BESIDE
    is_asked_for = "connections_max" in config.limits or soft < DESCRIPTORS_FEW
    if needed > soft and is_asked_for:
        logging.warning(
            f"a worker may have {soft} files open, and --connections-max {connections} needs {needed}: from "
            f"about {max(1, soft - DESCRIPTORS_BESIDE)} connections on idle ones are closed and new ones get "
            "503; raise the limit of open files (ulimit -n, LimitNOFILE=)"
        )
