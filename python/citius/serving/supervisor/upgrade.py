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

from citius.process.paths import changeable
from citius.process.startup import HANDOVER_ENV
from citius.serving.handover import handover

if TYPE_CHECKING:
    from citius.process.privileges import Identity
    from citius.serving.listeners import Listeners


def programs_changeable(identity: Identity) -> tuple[str, str] | None:
    """What the new server would run that a user can change, and the place where it can."""
    for program in (sys.executable, sys.argv[0], os.path.dirname(__file__), *sys.path):
        if os.path.exists(program) and (place := changeable(program, identity)):
            return program, place
    return None


class Upgrade:
    """A new server on its way."""

    def __init__(self, listeners: Listeners, directory: str) -> None:
        ready_fd, its_ready_fd = os.pipe()
        value, fds = handover(listeners, ready_fd=its_ready_fd)
        environment = {**os.environ, HANDOVER_ENV: value}
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
