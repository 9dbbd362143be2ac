"""``--reload``: a child process serves, and is replaced when a file changes.

The child is a new interpreter (not a fork), so nothing of the old code survives. The listening sockets are
made here and passed to the child (handover.py), so clients that come while the child starts wait in their
queues. Where the files of options name other addresses, those are bound before the next child starts. A
child that cannot import or start the application, because of a syntax error, say, tells every client why
(failed.py), until the next change starts another. One that ends by itself is started anew, later and later if
it keeps ending; in between a child without the application tells clients so. Open requests get one second at
a change: a stream that never ends must not hold up the next try.

The child does not outlive this process: it holds the reading end of a pipe whose hang-up is a TERM.

On Windows a child inherits neither sockets nor pipes by number. There it listens by itself, so clients that
come while it starts are refused, and it waits for the end of its parent.
"""

from __future__ import annotations

import os
import pickle
import signal
import subprocess
import sys
import time
from contextlib import suppress
from fnmatch import fnmatch
from importlib.util import cache_from_source
from threading import Event
from typing import TYPE_CHECKING

from watchfiles import watch

from citius.errors import ConfigError
from citius.observability import logging
from citius.process import descriptors, signals
from citius.process.startup import DEVELOPMENT_ENV, HANDOVER_ENV, enter, started_in
from citius.serving.bind import addresses, bind
from citius.serving.handover import handover
from citius.serving.listeners import Listeners
from citius.serving.prepare import EXIT_HOOK, EXIT_STARTUP, EXIT_USAGE, fail

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from watchfiles import Change

    from citius.settings.config import Config
    from citius.settings.sources import Sources

DRAIN_S = 1.0
"""Time open requests get when a file has changed."""

QUIT_S = 2.0
"""Time the shutdown hooks get after that."""

LOOK_MS = 500
"""How often to look whether the child still runs."""

YOUNG_S = 5.0
"""A child that ends within this time of its start has ended young."""

BACK_OFF_MAX_S = 8.0
"""The longest pause before a child that keeps ending young is started again."""

_IGNORED = {".git", ".venv", "__pycache__", "node_modules", ".mypy_cache", ".pytest_cache"}

_STOPS = signals.known("SIGINT", "SIGTERM", "SIGHUP", "SIGQUIT", "SIGBREAK")
"""HUP comes when the terminal is closed, QUIT from its keyboard, and BREAK from that of Windows."""

_HANDS_OVER = sys.platform != "win32"
"""Whether a child inherits sockets."""


def _forget_bytecode(paths: Iterable[str]) -> None:
    """Remove what was compiled of source files.

    The interpreter takes it for current while size and time of the source are the same, and knows the time in
    seconds: of two changes within one it would see the first alone.
    """
    for path in paths:
        if path.endswith(".py"):
            with suppress(OSError, NotImplementedError):  # there is none
                os.unlink(cache_from_source(path))


def _stamp(file: str) -> tuple[int, int, int] | None:
    """What differs when a file has been written or replaced; ``None`` if it is not there."""
    try:
        found = os.stat(file)
    except OSError:
        return None
    return found.st_mtime_ns, found.st_size, found.st_ino


def _stop(child: subprocess.Popen[bytes]) -> None:
    """Have a child finish open requests."""
    if sys.platform == "win32":
        with suppress(OSError):  # without a console there are no such events
            return child.send_signal(signal.CTRL_BREAK_EVENT)
    child.terminate()


def _cut(child: subprocess.Popen[bytes]) -> None:
    """Have a child leave open requests."""
    if sys.platform == "win32":
        child.kill()
    else:
        child.send_signal(signal.SIGQUIT)


def _how(code: int) -> str:
    """How a child has ended."""
    return f"was ended by {signal.Signals(-code).name}" if code < 0 else f"ended with code {code}"


class Reloader:
    """Watches files and keeps one child with the newest code and options.

    Args:
        target: What to serve; a file is watched with its directory.
        config: Where to listen and what to watch.
        arguments: The command line after ``serve``, which the child gets too.
        sources: Has the environment that the child begins with: it reads environment files by itself.
    """

    def __init__(
        self, target: str, config: Config, arguments: Sequence[str], sources: Sources
    ) -> None:
        self._config = config
        self._sources = sources
        self._arguments = list(arguments)
        self._stop = Event()
        self._times_told = 0
        self._started_in = started_in()
        self._child: subprocess.Popen[bytes] | None = None
        self._is_substitute = False
        """The child only tells why the application does not run."""
        self._started_at = 0.0
        self._ended_young = 0
        self._start_at: float | None = None
        """When a child that has ended is started anew; ``None``: at the next change."""
        self._life_fd, self._its_life_fd = -1, -1
        path = os.path.join(config.app_dir, target.partition(":")[0])
        own = path if os.path.isdir(path) else config.app_dir
        if path.endswith(".py"):
            own = os.path.dirname(path)
        self._directories = list(config.reload_dir or (own or ".",))
        self._files = set(sources.files(config))
        """Files of options and variables, which a child reads when it starts."""
        self._seen: dict[str, tuple[int, int, int] | None] = {}
        """Those of them outside of the watched directories, as they were when they were last looked at."""

    def run(self) -> int:
        """Serve until INT, TERM, HUP or QUIT; returns the exit code."""
        logging.configure(self._config.log_level, self._config.use_colors)
        for directory in self._directories:
            if not os.path.isdir(directory):
                return fail(f"--reload-dir: there is no directory {directory}")
        try:
            if self._config.chdir is not None:
                enter(self._config.chdir)
            # The names stay good when the working directory is gone.
            self._directories = [os.path.abspath(directory) for directory in self._directories]
            self._remember_files(self._files)
            descriptors.prepare(self._config)
            listeners = bind(self._config, 0)
            if _HANDS_OVER:
                listeners.listen(self._config.backlog)
            else:
                # It was a check, and the system's choice of a port for all children.
                if self._config.port == 0 and not self._config.bind:
                    port = listeners.all[0].sockets[0].getsockname()[1]
                    self._arguments += ["--port", str(port)]
                listeners.close()
                listeners = Listeners()
        except FileNotFoundError:
            return fail("the working directory does not exist any more; go to another one")
        except ConfigError as error:
            return fail(str(error))
        for number in _STOPS:
            # nohup ignores HUP, and what is started so is to outlive its terminal.
            if number.name != "SIGHUP" or signal.getsignal(number) != signal.SIG_IGN:
                signal.signal(number, self._on_signal)
        self._its_life_fd, self._life_fd = os.pipe()
        try:
            self._start(listeners)
            return self._watch(listeners)
        finally:
            self._end(self._config.drain_s)
            listeners.close()
            for fd in (self._life_fd, self._its_life_fd):
                os.close(fd)

    def _watch(self, listeners: Listeners) -> int:
        logging.info(f"watching {', '.join(self._directories)}")
        delay_ms = int(self._config.reload_delay_s * 1000)
        for changes in watch(
            *self._directories,
            watch_filter=self._is_watched,
            stop_event=self._stop,
            raise_interrupt=False,
            debounce=max(1, delay_ms),
            step=max(1, min(50, delay_ms)),
            rust_timeout=LOOK_MS,
            yield_on_timeout=True,
        ):
            gone = [name for name in self._directories if not os.path.isdir(name)]
            if gone:
                logging.error(f"{gone[0]}, which is watched, does not exist any more; stopping")
                return EXIT_STARTUP
            changed = {path for _, path in changes} | self._changed_outside()
            if changed:
                names = sorted(self._relative(path) for path in changed)
                logging.info(f"{', '.join(names[:3])} changed; starting anew")
                _forget_bytecode(changed)
                self._end(min(self._config.drain_s, DRAIN_S))
                self._ended_young = 0
                if not self._files.isdisjoint(changed):
                    self._read_anew(listeners)
                self._start(listeners)
            else:
                self._look_after(listeners)
        return 0

    def _remember_files(self, files: Iterable[str]) -> None:
        self._files = {os.path.abspath(file) for file in files}
        outside = (file for file in self._files if self._relative(file) == file)
        self._seen = {file: _stamp(file) for file in outside}

    def _changed_outside(self) -> set[str]:
        """Files of options outside of the watched directories that have changed.

        Watching their directory would watch all that is below it, such as that of ``citius dev src/app.py``.
        """
        found = {file for file, seen in self._seen.items() if _stamp(file) != seen}
        self._seen.update((file, _stamp(file)) for file in found)
        return found

    def _read_anew(self, listeners: Listeners) -> None:
        """Read the options again, and listen at the addresses that they name now."""
        try:
            config = self._sources.read()
        except ConfigError:
            return  # the child reads them too, and its log says why it ends
        self._remember_files(self._sources.files(config))
        before, self._config = self._config, config
        if not _HANDS_OVER or addresses(config) == addresses(before):
            return
        # Before the others are bound, which may be the same port of more interfaces.
        listeners.close()
        try:
            self._listen(listeners, config)
        except ConfigError as error:
            logging.error(f"{error}; still listening at the addresses from before")
            self._config = before
            try:
                self._listen(listeners, before)
            except ConfigError as other:
                logging.error(str(other))
        else:
            logging.info(f"the options name other addresses: listening at {listeners.urls}")

    def _listen(self, listeners: Listeners, config: Config) -> None:
        made = bind(config, 0)
        listeners.all, listeners.datagrams = made.all, made.datagrams
        listeners.listen(config.backlog)

    def _look_after(self, listeners: Listeners) -> None:
        """Take note of a child that has ended by itself, and start another when it is time."""
        code = None if self._child is None else self._child.poll()
        if code is not None:
            self._child = None
            if not self._is_substitute:
                self._start_at = start_at = self._when_to_start(code)
                if start_at is None:
                    self._substitute(listeners, "the application could not be started")
                elif start_at > time.monotonic():
                    self._substitute(listeners, f"the server {_how(code)}; it is started anew soon")
        if self._start_at is not None and time.monotonic() >= self._start_at:
            self._end(0)
            self._start(listeners)

    def _when_to_start(self, code: int) -> float | None:
        if code in (EXIT_USAGE, EXIT_STARTUP, EXIT_HOOK):
            logging.error("the application could not be started; the next change starts it anew")
            return None
        now = time.monotonic()
        is_young = now - self._started_at < YOUNG_S
        self._ended_young = self._ended_young + 1 if is_young else 0
        pause_s = min(BACK_OFF_MAX_S, 0.25 * 2**self._ended_young) if self._ended_young > 1 else 0.0
        when = f" in {pause_s:g} s" if pause_s else ""
        logging.error(f"the server {_how(code)}; starting it anew{when}")
        return now + pause_s

    def _on_signal(self, number: int, frame: object) -> None:
        """Stop; asked again, at once: the child, in its own session, hears nothing of the terminal."""
        self._stop.set()
        self._times_told += 1
        if self._times_told == 2 and self._child is not None:
            _cut(self._child)
        elif self._times_told > 2 and self._child is not None:
            self._child.kill()

    def _start(self, listeners: Listeners) -> None:
        # What comes last on a command line counts.
        command = [sys.executable, "-m", "citius", "serve", *self._arguments, "--no-reload"]
        environment = self._sources.original_environ()
        environment.pop("CITIUS_RELOAD", None)
        self._start_at, self._started_at = None, time.monotonic()
        self._is_substitute = False
        self._child = self._run(command, environment, listeners, None)

    def _substitute(self, listeners: Listeners, reason: str) -> None:
        """Start a child that tells clients why the application does not run."""
        if self._config.rpc:
            return
        command = [sys.executable, "-m", "citius.serving.substitute"]
        self._child = self._run(command, {**os.environ}, listeners, subprocess.PIPE)
        self._is_substitute = True
        if self._child is not None and self._child.stdin is not None:
            with suppress(OSError), self._child.stdin as its:
                its.write(pickle.dumps((self._config, f"{reason}; the log says why")))

    def _run(
        self,
        command: list[str],
        environment: dict[str, str],
        listeners: Listeners,
        stdin: int | None,
    ) -> subprocess.Popen[bytes] | None:
        environment[DEVELOPMENT_ENV] = "1"
        fds: list[int] = []
        if _HANDS_OVER:
            environment[HANDOVER_ENV], fds = handover(listeners, life_fd=self._its_life_fd)
        try:
            return subprocess.Popen(
                command,
                pass_fds=fds,
                env=environment,
                cwd=self._started_in,
                stdin=stdin,
                # A terminal's INT is for this process, which hands it on.
                start_new_session=True,
                creationflags=getattr(subprocess, "CREATE_NEW_PROCESS_GROUP", 0),
            )
        except OSError as error:
            logging.error(f"the server cannot be started: {error}; the next change tries again")
            return None

    def _end(self, patience_s: float) -> None:
        child = self._child
        if child is None:
            return
        _stop(child)
        for end in (_cut, subprocess.Popen[bytes].kill):
            with suppress(subprocess.TimeoutExpired):
                child.wait(patience_s)
                break
            end(child)
            patience_s = QUIT_S
        child.wait()
        self._child = None

    def _relative(self, path: str) -> str:
        """A path below the watched directory that it is in; what is above says nothing about the project."""
        for directory in self._directories:
            if path.startswith(directory.rstrip(os.sep) + os.sep):
                return os.path.relpath(path, directory)
        return path

    def _is_watched(self, change: Change, path: str) -> bool:
        relative = self._relative(os.path.normpath(path))
        parts = set(relative.split(os.sep))
        if _IGNORED & parts:
            return False
        name = os.path.basename(path)

        def matches(patterns: Sequence[str]) -> bool:
            return any(
                fnmatch(name, pattern)
                or fnmatch(path if pattern.startswith(os.sep) else relative, pattern)
                for pattern in patterns
            )

        excluded = self._config.reload_exclude
        if matches(excluded) or {part.rstrip(os.sep) for part in excluded} & parts:
            return False
        return path in self._files or matches(("*.py", *self._config.reload_include))
