"""Citius and a reference server with the same application, and what is compared of them.

A server says on which port it listens; both are asked the same by `Pair.same`, which compares what was seen.
"""

from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from rig import Peer, free_port, wait_for

HERE = Path(__file__).parent
APPS = HERE / "apps"
READY = re.compile(
    r"serves on https?://\S+:(\d+)|(?i:running on) http://\S+:(\d+)|Listening at: http://\S+:(\d+)"
)
Seen = TypeVar("Seen")


class Running:
    """A server process, ready to be asked."""

    def __init__(self, command: list[str], folder: Path, env: dict[str, str]) -> None:
        self.name, self.target = command[2], command[4] if command[2] == "citius" else command[3]
        self.is_inline = not {"--threads", "--loop"} & set(command)
        self.log = ""
        self.process = subprocess.Popen(
            command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
            start_new_session=True,
            env={**os.environ, "PYTHONPATH": str(APPS), "COURSE_DIR": str(folder),
                 # Frameworks that keep methods in sets tell them in one order.
                 "PYTHONHASHSEED": "0", **env},
        )  # fmt: skip
        self._thread = threading.Thread(target=self._collect, daemon=True)
        self._thread.start()
        try:
            wait_for(
                lambda: READY.search(self.log) or self.process.poll() is not None,
                f"{self.name} to listen",
                30,
            )
            found = READY.search(self.log)
            assert found, f"{self.name} ended:\n{self.log}"
        except BaseException:
            self.kill()
            raise
        self.port = int(next(filter(None, found.groups())))
        scheme = "https" if "--ssl-dev" in command else "http"
        self.url = f"{scheme}://127.0.0.1:{self.port}"

    def _collect(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self.log += line
        self.process.stdout.close()

    def wait_for_log(self, words: str) -> None:
        """Wait until it has said something."""
        wait_for(lambda: words in self.log, f"{words!r} in\n{self.log}")

    def stop(self) -> int:
        """TERM, and the exit code."""
        self.process.terminate()
        try:
            return self.process.wait(10)
        finally:
            self.kill()

    def kill(self) -> None:
        """End it and the processes that it has started, however they are."""
        if self.process.returncode is None:  # else the group's number is free for others
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()
        self._thread.join(10)


def citius(target: str, folder: Path, *options: str, **env: str) -> Running:
    """`citius serve`, as it comes."""
    command = [sys.executable, "-m", "citius", "serve", target, "--port", "0", "--no-access-log"]
    return Running([*command, *options], folder, env)


def uvicorn(target: str, folder: Path, **env: str) -> Running:
    """The reference for ASGI."""
    command = [sys.executable, "-m", "uvicorn", target, "--port", "0", "--no-access-log"]
    return Running(command, folder, env)


def hypercorn(target: str, folder: Path, **env: str) -> Running:
    """Another server for ASGI."""
    command = [sys.executable, "-m", "hypercorn", target, "--bind", "127.0.0.1:0"]
    return Running(command, folder, env)


def granian(target: str, folder: Path, **env: str) -> Running:
    """A server for ASGI in Rust; it does not choose a port."""
    command = [sys.executable, "-m", "granian", target, "--interface", "asgi", "--port"]
    server = Running([*command, str(free_port())], folder, env)
    try:
        # Its supervisor says that it listens before a worker does.
        wait_for(lambda: is_listening(server.port), "granian's worker to listen", 30)
    except BaseException:
        server.kill()
        raise
    return server


def is_listening(port: int) -> bool:
    """Whether a connection is accepted."""
    with socket.socket() as peer:
        return peer.connect_ex(("127.0.0.1", port)) == 0


def gunicorn(target: str, folder: Path, **env: str) -> Running:
    """The reference for WSGI, with threads, for its workers without them know no keep-alive."""
    command = [sys.executable, "-m", "gunicorn", target, "--bind", "127.0.0.1:0", "-k", "gthread"]
    return Running(
        [*command, "--threads", "4", "--keep-alive", "30", "--no-control-socket"], folder, env
    )


def connect(server: Running, receive_buffer_bytes: int | None = None) -> Peer:
    """A connection to a server, for who decides about every byte."""
    made = socket.socket()
    if receive_buffer_bytes is not None:
        made.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer_bytes)
    made.settimeout(20)
    made.connect(("127.0.0.1", server.port))
    return Peer(made)


class Pair:
    """Citius and the reference, one application each."""

    def __init__(self, ours: Running, theirs: Running) -> None:
        self.ours = ours
        self.theirs = theirs

    def same(self, do: Callable[[Running], Seen]) -> Seen:
        """Do it with both; what it returns must be equal."""
        theirs = do(self.theirs)
        ours = do(self.ours)
        assert ours == theirs, f"{self.theirs.name}: {theirs!r}\nCitius: {ours!r}"
        return ours
