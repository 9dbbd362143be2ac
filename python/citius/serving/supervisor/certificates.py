"""Certificates of ``--acme`` while the server runs: when its agent is started, and what it says.

The agent is a process (``serving/acme/agent.py``): the package of the protocol stays out of the supervisor,
which forks. It ends after each round and says when the next one is due. The first begins when workers serve,
because they answer what the authority asks.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from contextlib import suppress
from typing import IO, TYPE_CHECKING, Any

from citius.errors import ConfigError
from citius.observability import logging
from citius.serving.acme.lines import read
from citius.serving.acme.store import Store, binding_of

if TYPE_CHECKING:
    from citius.settings.config import Config

FOREVER = float("inf")

FAILED_S = 300.0
"""The pause after a round that has not come to its end."""

ROUND_S = 1800.0
"""A round that takes longer is ended: an authority that keeps it waiting must not keep all others out."""


class Certificates:
    """The agent of a supervisor, if the configuration has ``--acme``."""

    def __init__(self) -> None:
        self.due_at = FOREVER
        """When ``tend`` has something to do."""
        self._config: Config | None = None
        self._is_urgent = False
        self._agent: subprocess.Popen[bytes] | None = None
        self._unread = b""
        self._pause_s: float | None = None

    @property
    def fd(self) -> int:
        """Where the agent says something, while there is one; -1: there is none."""
        return -1 if self._agent is None else _pipe(self._agent.stdout).fileno()

    @property
    def pid(self) -> int | None:
        """The process of the agent, while there is one."""
        return None if self._agent is None else self._agent.pid

    def follow(self, config: Config) -> None:
        """Let a round begin if this is another configuration, and end one under way.

        After a restart that was asked for, names that have failed are tried at once.
        """
        if config is self._config:
            return
        self.stop()
        self._config, self._is_urgent = config, self._config is not None
        self.due_at = time.monotonic() if config.acme else FOREVER

    def tend(self, now: float) -> None:
        """Start what is due, and end what takes too long."""
        if now < self.due_at or self._config is None:
            return
        if self._agent is not None:
            logging.error("acme: a round takes too long and is ended")
            self._end(self._agent)
            self._agent, self.due_at = None, now + FAILED_S
            return
        try:
            self._agent = _start(self._config, is_urgent=self._is_urgent)
            self._unread, self._pause_s = b"", None
            self.due_at = now + ROUND_S
        except (OSError, ConfigError) as error:
            logging.error(f"acme: {error}; another try in {FAILED_S:g} s")
            self.due_at = now + FAILED_S
        self._is_urgent = False

    def hear(self) -> None:
        """Log what the agent says."""
        if self._agent is None:
            return
        with suppress(BlockingIOError):
            while piece := os.read(self.fd, 65536):
                self._unread += piece
        *lines, self._unread = self._unread.split(b"\n")
        for said in map(read, lines):
            if "message" in said:
                show = logging.error if said.get("level") == "error" else logging.info
                show(str(said["message"]))
            elif "next_s" in said:
                self._pause_s = float(said["next_s"])

    def reap(self) -> None:
        """Take note of an agent that has ended."""
        if self._agent is None or self._agent.poll() is None:
            return
        self.hear()
        if self._pause_s is None:
            code = self._agent.returncode
            logging.error(f"acme: the agent ended with code {code}; another try in {FAILED_S:g} s")
        self._end(self._agent)
        self.due_at = time.monotonic() + (FAILED_S if self._pause_s is None else self._pause_s)
        self._agent = None

    def stop(self) -> None:
        """Let no round begin, and end the one under way."""
        self.due_at = FOREVER
        if self._agent is not None:
            self._end(self._agent)
            self._agent = None

    def leave(self) -> None:
        """Close, in a worker, what belongs to the supervisor: it would keep the agent alive."""
        if self._agent is not None:
            for pipe in (self._agent.stdin, self._agent.stdout):
                with suppress(OSError):
                    _pipe(pipe).close()
            self._agent.returncode = 0  # not this process has to wait for it
            self._agent = None

    @staticmethod
    def _end(agent: subprocess.Popen[bytes]) -> None:
        agent.kill()
        for pipe in (agent.stdin, agent.stdout):
            with suppress(OSError):
                _pipe(pipe).close()
        agent.wait()


def _pipe(pipe: IO[bytes] | None) -> IO[bytes]:
    assert pipe is not None, "both are pipes"
    return pipe


def _start(config: Config, *, is_urgent: bool) -> subprocess.Popen[bytes]:
    store = Store.of(config)
    task: dict[str, Any] = {
        "names": list(config.acme), "directory": config.acme_url, "root": store.root, "uid": store.uid,
        "gid": store.gid, "challenges": list(config.acme_challenges),
        "email": config.acme_email, "ca_certs": config.acme_ca_certs, "is_urgent": is_urgent,
        "binding": binding_of(config),
    }  # fmt: skip
    # -P: the working directory is the application's, and may be writable for its user.
    command = [sys.executable, "-P", "-m", "citius.serving.acme.agent"]
    agent = subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, start_new_session=True
    )
    os.set_blocking(_pipe(agent.stdout).fileno(), False)
    pipe = _pipe(agent.stdin)
    with suppress(BrokenPipeError):
        pipe.write(json.dumps(task).encode() + b"\n")
        pipe.flush()
    return agent
