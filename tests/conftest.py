"""Fixtures that several folders share."""

from __future__ import annotations

import gzip
import os
import signal
import threading
from collections.abc import Callable, Generator, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from rig import IS_PORTABLE, USER, Server, serving

# pytest has read it; a suite that a test runs in a project of its own is not asked for the same.
os.environ.pop("PYTEST_ADDOPTS", None)

# In the background or under nohup these are ignored, and a program that is started inherits that, with other
# results. A handler is not inherited; one that does nothing leaves this process as it is.
for _name in ("SIGINT", "SIGHUP", "SIGQUIT"):
    if (_number := getattr(signal, _name, None)) and signal.getsignal(_number) == signal.SIG_IGN:
        signal.signal(_number, lambda number, frame: None)

HEADER = """\
import asyncio, contextvars, json, os, sys, threading, time
from citius import *
app = App()
"""


# Files that take the longest. Begun last, they would leave one processor idle.
LONGEST = (
    "cli/test_new.py", "examples/test_fuzzed.py", "pg/test_streams.py", "cluster/test_servers.py",
    "compiled/test_numba_go.py", "observe/test_metrics.py", "supervisor/test_ends.py",
    "supervisor/test_under_load.py", "server/test_executor_recovery.py", "cluster/test_outages.py",
)  # fmt: skip


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Begin with what takes long, and leave out what the portable poller does not do, if servers have it."""
    items.sort(key=lambda item: not str(item.path).endswith(LONGEST))
    for item in items if IS_PORTABLE else ():
        for mark in item.iter_markers("epoll"):
            item.add_marker(pytest.mark.skip(reason=f"only with epoll: {mark.args[0]}"))


@pytest.hookimpl(wrapper=True)
def pytest_report_to_serializable() -> Generator[None, object, object]:
    """pytest-xdist sends what a test has logged as UTF-8; a surrogate in it would end the process."""
    return _encodable((yield))


def _encodable(value: object) -> object:
    """The same tree of dicts, lists and tuples; what UTF-8 cannot encode is escaped in its strings."""
    if isinstance(value, str):
        return value.encode(errors="backslashreplace").decode()
    if isinstance(value, dict):
        return {key: _encodable(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return type(value)(map(_encodable, value))
    return value


@pytest.fixture
def own(tmp_path: Path) -> Path:
    """A directory of the workers' user, below directories that root alone can change."""
    path = tmp_path / "own"
    path.mkdir()
    os.chown(path, USER, USER)
    return path


@pytest.fixture
def serve(tmp_path: Path) -> Iterator[Callable[..., Server]]:
    """Serve an application: ``serve(application("streams_app"), "--option", …)``, or ``serve(source, …)``.

    A source begins after ``app = App()``. ``ready=False`` does not wait for it to listen.
    """
    with serving(tmp_path, HEADER) as start:
        yield start


@pytest.fixture(scope="module")
def serve_module(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[..., Server]]:
    """The same for servers that all tests of a module use: most of a test is the start of its server."""
    with serving(tmp_path_factory.mktemp("served"), HEADER) as start:
        yield start


@pytest.fixture
def collector() -> Iterator[tuple[str, list[tuple[str, bytes]]]]:
    """A stand-in for a collector of OpenTelemetry: its address, and the paths and bodies that it gets."""
    got: list[tuple[str, bytes]] = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["content-length"]))
            if self.headers.get("content-encoding") == "gzip":
                body = gzip.decompress(body)
            got.append((self.path, body))
            self.send_response(200)
            self.send_header("content-length", "0")
            self.end_headers()

        def log_message(self, *_: object) -> None:
            return

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}", got
    server.shutdown()
    server.server_close()
