"""USR2: a new server, started by the same command, inherits the listening sockets and takes over.

The new process is a child and gets the descriptors and one end of a pipe through ``HANDOVER_ENV``; it writes
a byte when all of its workers are ready, and owns the sockets from then on. If it ends before that, nothing
has happened. The path of the interpreter and of the program are looked up anew, so
a new installation in the same place is what is started, in the directory that was current at the start.
"""

from __future__ import annotations

import os
import subprocess
import sys
from typing import TYPE_CHECKING

from citius.observability import logging
from citius.process.paths import changeable
from citius.process.privileges import Identity, are_split
from citius.process.startup import HANDOVER_ENV, started_in
from citius.serving.handover import handover

if TYPE_CHECKING:
    from citius.serving.datagrams import Handings
    from citius.serving.listeners import Listeners
    from citius.settings.config import Config
    from citius.settings.sources import Sources


def programs_changeable(identity: Identity) -> tuple[str, str] | None:
    """What the new server would run that a user can change, and the place where it can."""
    for program in (sys.executable, sys.argv[0], os.path.dirname(__file__), *sys.path):
        if os.path.exists(program) and (place := changeable(program, identity)):
            return program, place
    return None


class Upgrades:
    """Starts new servers, of which one at a time is on its way.

    Args:
        sources: What a new server reads its configuration from.
    """

    def __init__(self, listeners: Listeners, sources: Sources | None) -> None:
        self._listeners = listeners
        self._sources = sources
        self._directory = started_in()
        self._upgrade: Upgrade | None = None

    @property
    def ready_fd(self) -> int:
        """What the new server speaks through; -1 if none is on its way."""
        return -1 if self._upgrade is None else self._upgrade.ready_fd

    @property
    def pids(self) -> set[int]:
        """The process of a new server."""
        return set() if self._upgrade is None else {self._upgrade.pid}

    def begin(self, config: Config, slots: dict[int, Handings] | None = None) -> None:
        """Start a new server, unless a user could change what it would run or read as root."""
        if os.getpid() == 1:
            logging.error("USR2: PID 1 cannot be replaced; replace the container")
            return
        if found := self._changeable(config):
            logging.error(
                f"USR2: root does not start {found[0]}: the user whom the workers run as can change "
                f"{found[1]}; make it root's, or restart the server"
            )
            return
        if self._upgrade is not None:
            logging.warning(f"the new server {self._upgrade.pid} was not ready; another is started")
            self._upgrade.process.kill()
            self._upgrade.give_up()
        try:
            environ = (
                dict(os.environ) if self._sources is None else self._sources.original_environ()
            )
            self._upgrade = Upgrade(self._listeners, self._directory, environ, slots)
        except OSError as error:
            self._upgrade = None
            logging.error(f"a new server cannot be started: {error}")
            return
        logging.info(f"a new server starts as process {self._upgrade.pid}")

    def take(self) -> int | None:
        """Read what the new server said; its process id if it serves, ``None`` if it has failed."""
        upgrade = self._upgrade
        assert upgrade is not None, "its descriptor was waited for"
        if upgrade.has_said():
            logging.info(f"process {upgrade.pid} serves from now on; this one drains")
            return upgrade.pid
        code = upgrade.process.wait()
        self._upgrade = None
        logging.error(f"the new server {upgrade.pid} ended with code {code}; this one goes on")
        return None

    def cancel(self) -> None:
        """End a new server that is on its way."""
        if self._upgrade is not None and self._upgrade.ready_fd >= 0:
            self._upgrade.process.terminate()

    def _changeable(self, config: Config) -> tuple[str, str] | None:
        """What a new server would run or read as root though the workers' user can change it."""
        if not are_split(config):
            return None
        if self._sources is not None and (found := self._sources.changeable(config)):
            return "a server that reads " + found[0], found[1]
        return programs_changeable(Identity.of(config))


class Upgrade:
    """A new server on its way.

    Args:
        listeners: The sockets that it inherits.
        directory: Where it is started.
        environ: The environment of this server's own start.
        slots: What the workers of each slot hand on of HTTP/3.
    """

    def __init__(
        self,
        listeners: Listeners,
        directory: str,
        environ: dict[str, str],
        slots: dict[int, Handings] | None = None,
    ) -> None:
        ready_fd, its_ready_fd = os.pipe()
        value, fds = handover(listeners, ready_fd=its_ready_fd, slots=slots)
        environment = {**environ, HANDOVER_ENV: value}
        environment.pop("WATCHDOG_PID", None)  # it names us, and the duty passes on
        try:
            self.process = subprocess.Popen(
                [sys.executable, *sys.orig_argv[1:]],
                env=environment, pass_fds=fds, cwd=directory,
            )  # fmt: skip
        except OSError:
            os.close(ready_fd)
            raise
        finally:
            os.close(its_ready_fd)
        self.pid = self.process.pid
        self.ready_fd = ready_fd

    def has_said(self) -> bool:
        """Read what the descriptor brought: whether the new server is ready; it has failed otherwise."""
        is_ready = os.read(self.ready_fd, 1) != b""
        self.give_up()
        if is_ready:
            self.process.returncode = 0  # it outlives this process, which does not wait for it
        return is_ready

    def give_up(self) -> None:
        """Listen to it no longer."""
        os.close(self.ready_fd)
        self.ready_fd = -1
