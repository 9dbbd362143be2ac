"""``--reload``: a child process serves, and is replaced when a file changes.

The child is a new interpreter (not a fork), so nothing of the old code survives. The listening socket is
made here and inherited, so clients that come while the child starts wait in its queue. A child that
cannot start, because of a syntax error, say, has said why; the next change starts another.
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
from citius.server import bind, fail

if TYPE_CHECKING:
    from collections.abc import Sequence

    from watchfiles import Change

    from citius.config import Config

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
        path = os.path.join(config.app_dir, target.partition(":")[0])
        own = os.path.dirname(path) if path.endswith(".py") else config.app_dir
        self._directories = list(config.reload_dir or (own or ".",))

    def run(self) -> int:
        """Serve until INT or TERM; returns the exit code."""
        logging.configure(self._config.log_level)
        for directory in self._directories:
            if not os.path.isdir(directory):
                return fail(f"--reload-dir: there is no directory {directory}")
        try:
            listener = bind(self._config)[0]
        except ConfigError as error:
            return fail(str(error))
        listener.listen(self._config.backlog)
        os.set_inheritable(listener.fileno(), True)
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, self._on_signal)
        child = self._start(listener.fileno())
        try:
            logging.info(f"watching {', '.join(map(os.path.abspath, self._directories))}")
            for changes in watch(
                *self._directories,
                watch_filter=self._is_watched,
                stop_event=self._stop,
                raise_interrupt=False,
            ):
                names = sorted(os.path.relpath(path) for _, path in changes)
                logging.info(f"{', '.join(names[:3])} changed; starting anew")
                self._end(child)
                child = self._start(listener.fileno())
        finally:
            self._end(child)
            listener.close()
        return 0

    def _on_signal(self, number: int, frame: object) -> None:
        self._stop.set()

    def _start(self, fd: int) -> subprocess.Popen[bytes]:
        # What comes last on a command line counts.
        command = [sys.executable, "-m", "citius", "serve", *self._arguments]
        environment = {k: v for k, v in os.environ.items() if k != "CITIUS_RELOAD"}
        return subprocess.Popen(
            [*command, "--no-reload", "--fd", str(fd)],
            pass_fds=(fd,),
            env=environment,
            start_new_session=True,  # a terminal's INT is for this process, which hands it on
        )

    def _end(self, child: subprocess.Popen[bytes]) -> None:
        child.terminate()
        try:
            child.wait(self._config.drain_s + 1)
        except subprocess.TimeoutExpired:
            child.kill()
            child.wait()

    def _is_watched(self, change: Change, path: str) -> bool:
        if _IGNORED.intersection(path.split(os.sep)):
            return False
        name = os.path.basename(path)

        def matches(patterns: Sequence[str]) -> bool:
            return any(fnmatch(name, pattern) or fnmatch(path, pattern) for pattern in patterns)

        if matches(self._config.reload_exclude):
            return False
        return matches(("*.py", *self._config.reload_include))
