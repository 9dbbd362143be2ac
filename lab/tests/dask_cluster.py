"""A Dask scheduler and workers as programs, for tests of the lab on many machines."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path


class DaskCluster:
    """A scheduler on ``host`` (127.0.0.1) and workers, each started with words before its command."""

    def __init__(self, folder: Path, host: str = "127.0.0.1", prefix: Sequence[str] = ()) -> None:
        self._folder = folder
        self.processes: list[subprocess.Popen[bytes]] = []
        self._scheduler = [*prefix, sys.executable, "-m", "distributed.cli.dask_scheduler"]
        self._scheduler += ["--host", host, "--no-dashboard", "--port"]
        log = self._start([*self._scheduler, "0"])
        line = wait_for_line(log, "Scheduler at:")
        self.address = line.rpartition(" ")[2]

    def restart(self) -> None:
        """Start a scheduler at the address of the one that is gone; it knows no workers."""
        self.close()
        wait_for_line(
            self._start([*self._scheduler, self.address.rpartition(":")[2]]), "Scheduler at:"
        )

    def worker(
        self, host: str = "127.0.0.1", prefix: Sequence[str] = (), **env: str
    ) -> subprocess.Popen[bytes]:
        """Start a worker and wait until the scheduler has it."""
        command = [
            sys.executable, "-m", "distributed.cli.dask_worker", self.address, "--host", host, "--nthreads",
            "1", "--no-dashboard", "--no-nanny", "--local-directory", str(self._folder),
        ]  # fmt: skip
        log = self._start([*prefix, *command], **env)
        wait_for_line(log, "Registered to")
        return self.processes[-1]

    def close(self) -> None:
        """Kill all of it."""
        for process in self.processes:
            process.send_signal(signal.SIGCONT)
            process.kill()
            process.wait(20)

    def _start(self, command: list[str], **env: str) -> Path:
        log = self._folder / f"dask-{len(self.processes)}.log"
        with log.open("wb") as file:
            self.processes.append(
                subprocess.Popen(command, stdout=file, stderr=file, env={**os.environ, **env})
            )
        return log


def wait_for_line(log: Path, text: str) -> str:
    """Wait until a log has a line with ``text``; return it."""
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        for line in log.read_text(errors="replace").splitlines():
            if text in line:
                return line.rstrip()
        time.sleep(0.05)
    raise AssertionError(f"no {text!r} in:\n{log.read_text(errors='replace')}")
