"""Steps before the first worker: directory, environment, files, limits, sockets.

In: a configuration. Out: listening sockets, and a process that may fork workers. It runs with the rights of
the user who started the server. Tests: ``tests/cli/``, ``tests/supervisor/``.
"""

from __future__ import annotations

import errno
import os
import sys
from typing import TYPE_CHECKING

from citius.errors import ConfigError
from citius.observability import logging
from citius.observability.tracebacks import trim
from citius.process import descriptors, pidfile, privileges, signals
from citius.process.lifeline import end_with, end_with_parent
from citius.process.logfiles import open_files
from citius.process.startup import DEVELOPMENT_ENV, enter
from citius.serving.bind import bind

if TYPE_CHECKING:
    from citius.serving.listeners import Listeners
    from citius.settings.config import Config

EXIT_USAGE = 2
"""An option is wrong."""

EXIT_STARTUP = 3
"""The application cannot be imported, or an address cannot be had: trying again would not help."""

EXIT_HOOK = 4
"""A start-up hook or the lifespan has failed: a database is not there yet, say. A later start may succeed."""


def import_failed(target: str, error: Exception) -> int:
    """Say that the import of an application has raised; the exit code."""
    trim(error)
    logging.log_exception(f"importing {target} failed", error)
    return EXIT_STARTUP


def prepare(config: Config) -> Listeners:
    """Do everything that needs the rights of the user who started the server; return the sockets."""
    _enter(config)
    privileges.set_umask(config)
    if config.sandbox:
        from citius.process import paths, sandbox

        paths.workers_write(sandbox.writable(config))
    open_files(config)
    descriptors.prepare(config)
    if config.log_config is not None:
        from citius.observability.logconfig import apply

        apply(config.log_config)
    check_tls(config)
    listeners = bind(config, config.workers, by_port=is_supervised(config))
    if listeners.life_fd >= 0:
        end_with(listeners.life_fd, config.drain_s + signals.GRACE_S)
    elif DEVELOPMENT_ENV in os.environ:
        end_with_parent()
    if config.pidfile is not None and listeners.ready_fd < 0:
        pidfile.write(config.pidfile, guarded=privileges.are_split(config))
    return listeners


def _enter(config: Config) -> None:
    """Go to the directory, and set the variables, of the configuration."""
    if config.chdir is not None:
        enter(config.chdir)
    for assignment in config.env:
        name, _, value = assignment.partition("=")
        os.environ[name] = value


def rehearse(config: Config) -> None:
    """Refuse what `prepare` would, and neither open nor make a file or a socket.

    Raises:
        ConfigError: The start would fail.
    """
    _enter(config)
    if config.user is not None or config.group is not None:
        privileges.Identity.of(config)
    for option in ("log_file", "access_log_file", "pidfile"):
        path = getattr(config, option)
        if path is None or path == "-":
            continue
        place = path if os.path.exists(path) else os.path.dirname(os.path.abspath(path))
        if not os.access(place, os.W_OK):
            code = errno.EACCES if os.path.exists(place) else errno.ENOENT
            to = "" if option == "pidfile" else "to "
            raise ConfigError(f"{option}: cannot write {to}{path}: {os.strerror(code).lower()}")
    if config.sandbox:
        from citius.process import sandbox

        sandbox.writable(config)
    if config.log_config is not None:
        from citius.observability.logconfig import apply

        apply(config.log_config)
    check_tls(config)


def check_tls(config: Config) -> None:
    """Load certificates and keys once, to find mistakes.

    Raises:
        ConfigError: They cannot be used.
    """
    if config.is_tls:
        from citius.serving import tls

        if config.acme:
            from citius.serving.acme.store import prepare

            prepare(config)
        tls.check(config)


def is_supervised(config: Config) -> bool:
    """Whether a supervisor process runs the workers."""
    if config.supervisor is not None:
        return config.supervisor
    return (
        config.workers > 1
        or os.getpid() == 1
        or bool(config.max_requests or config.worker_lifetime_s or config.worker_rss_bytes_max)
        or bool(config.worker_timeout_s or config.drain_delay_s or config.sandbox)
        or bool(config.acme)
    )


def took_over(config: Config, listeners: Listeners) -> None:
    """Clients are served: a previous process that waits for that may end."""
    if listeners.ready_fd >= 0:
        listeners.take_over()
        if config.pidfile is not None:
            try:
                pidfile.write(config.pidfile, guarded=privileges.are_split(config))
            except ConfigError as error:
                logging.error(str(error))


def fail(message: str) -> int:
    """Log why the server does not start; returns the exit code."""
    print(f"citius: {message}", file=sys.stderr, flush=True)
    return EXIT_STARTUP
