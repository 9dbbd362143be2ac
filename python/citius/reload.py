"""``--reload``: a child process serves, and is replaced when a file changes.

The child is a new interpreter (not a fork), so nothing of the old code survives. The listening sockets are
made here and handed over (listeners.py), so clients that come while the child starts wait in their queues.
A child that cannot start, because of a syntax error, say, has said why; the next change starts another.
Open requests get one second at a change: a stream that never ends must not hold up the next try.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from fnmatch import fnmatch
from threading import Event
from typing import TYPE_CHECKING

from watchfiles import watch

from citius import logging
from citius.errors import ConfigError
from citius.listeners import HANDOVER_ENV, bind, handover
from citius.server import enter, fail, started_in

if TYPE_CHECKING:
    from collections.abc import Sequence

    from watchfiles import Change

    from citius.config import Config
    from citius.listeners import Listeners

DRAIN_S = 1.0
"""Time open requests get when a file has changed."""

QUIT_S = 2.0
"""Time the shutdown hooks get after that."""

_IGNORED = {".git", ".venv", "__pycache__", "node_modules", ".mypy_cache", ".pytest_cache"}


class Reloader:
    """Watches files and keeps one child with the newest code.

    Args:
        target: What to serve; a file is watched with its directory.
        config: Where to listen and what to watch.
        arguments: The command line after ``serve``, which the child gets too.
    """

    def __init__(self, target: str, config: Config, arguments: Sequence[str]) -> None:
        self._config = config
        self._arguments = list(arguments)
        self._stop = Event()
        self._started_in = started_in()
        path = os.path.join(config.app_dir, target.partition(":")[0])
        own = path if os.path.isdir(path) else config.app_dir
        if path.endswith(".py"):
            own = os.path.dirname(path)
        self._directories = list(config.reload_dir or (own or ".",))

    def run(self) -> int:
        """Serve until INT or TERM; returns the exit code."""
        logging.configure(self._config.log_level, self._config.use_colors)
        for directory in self._directories:
            if not os.path.isdir(directory):
                return fail(f"--reload-dir: there is no directory {directory}")
        try:
            if self._config.chdir is not None:
                enter(self._config.chdir)
            listeners = bind(self._config, 0)
            listeners.listen(self._config.backlog)
        except ConfigError as error:
            return fail(str(error))
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, self._on_signal)
        child = self._start(listeners)
        try:
            logging.info(f"watching {', '.join(map(os.path.abspath, self._directories))}")
            for changes in watch(
                *self._directories,
                watch_filter=self._is_watched,
                stop_event=self._stop,
                raise_interrupt=False,
                debounce=max(1, int(self._config.reload_delay_s * 1000)),
                step=max(1, min(50, int(self._config.reload_delay_s * 1000))),
            ):
                names = sorted(os.path.relpath(path) for _, path in changes)
                logging.info(f"{', '.join(names[:3])} changed; starting anew")
                self._end(child, min(self._config.drain_s, DRAIN_S))
                child = self._start(listeners)
        finally:
            self._end(child, self._config.drain_s)
            listeners.close()
        return 0

    def _on_signal(self, number: int, frame: object) -> None:
        self._stop.set()

    def _start(self, listeners: Listeners) -> subprocess.Popen[bytes]:
        # What comes last on a command line counts.
        command = [sys.executable, "-m", "citius", "serve", *self._arguments, "--no-reload"]
        value, fds = handover(listeners)
        environment = {k: v for k, v in os.environ.items() if k != "CITIUS_RELOAD"}
        environment[HANDOVER_ENV] = value
        return subprocess.Popen(
            command,
            pass_fds=fds,
            env=environment,
            cwd=self._started_in,
            start_new_session=True,  # a terminal's INT is for this process, which hands it on
        )

    def _end(self, child: subprocess.Popen[bytes], patience_s: float) -> None:
        child.terminate()
        for number in (signal.SIGQUIT, signal.SIGKILL):
            try:
                child.wait(patience_s)
            except subprocess.TimeoutExpired:
                child.send_signal(number)
                patience_s = QUIT_S
            else:
                return
        child.wait()

    def _is_watched(self, change: Change, path: str) -> bool:
        if _IGNORED.intersection(path.split(os.sep)):
            return False
        name = os.path.basename(path)

        def matches(patterns: Sequence[str]) -> bool:
            return any(fnmatch(name, pattern) or fnmatch(path, pattern) for pattern in patterns)

        excluded = self._config.reload_exclude
        if matches(excluded) or {part.rstrip(os.sep) for part in excluded} & set(
            path.split(os.sep)
        ):
            return False
        return matches(("*.py", *self._config.reload_include))
