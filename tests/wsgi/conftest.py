"""A WSGI application of one's own, called in each of the three ways."""

from __future__ import annotations

import functools
import textwrap
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path

import pytest
from rig import Server, application

HEADER = (
    "import io, json, os, sys, threading, time\nfrom wsgiref.validate import validator\n"
    + application("wsgi_parts").read_text()
)
WAYS = {"inline": (), "threads": ("--threads", "2"), "gevent": ("--loop", "gevent")}

Serve = Callable[..., Server]


@pytest.fixture(params=WAYS)
def way(request: pytest.FixtureRequest) -> str:
    """How the application is called."""
    if request.param == "gevent" and find_spec("gevent") is None:
        pytest.skip("gevent is not installed")
    return request.param


@contextmanager
def serving_wsgi(directory: Path) -> Iterator[Serve]:
    """What the fixtures below return; ends all servers that it has started."""
    servers: list[Server] = []

    def start(source: str | Path, *arguments: str) -> Server:
        target = str(source)
        if not isinstance(source, Path):
            target = f"main{len(servers) or ''}.py"
            (directory / target).write_text(HEADER + textwrap.dedent(source))
        # gevent patches what it finds; what its own import does is not ours to judge.
        env = {"PYTHONWARNINGS": "default"} if "gevent" in arguments else {}
        server = Server([f"{target}:application", "--port", "0", *arguments], env, directory)
        servers.append(server)
        return server.wait_ready()

    try:
        yield start
    finally:
        for server in servers:
            server.kill()


@pytest.fixture
def serve_wsgi(tmp_path: Path) -> Iterator[Serve]:
    """``serve_wsgi(source, "--option", …)`` serves ``application`` of a module, or of that source."""
    with serving_wsgi(tmp_path) as start:
        yield start


@pytest.fixture(scope="module")
def serve_wsgi_once(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Serve]:
    """The same, with one server for all tests of a module that serve the same."""
    with serving_wsgi(tmp_path_factory.mktemp("served")) as start:
        yield functools.cache(start)


@pytest.fixture
def serve_way(serve_wsgi: Serve, way: str) -> Serve:
    """``serve_wsgi`` in each of the ways."""
    return lambda source, *arguments: serve_wsgi(source, *WAYS[way], *arguments)


@pytest.fixture
def serve_way_once(serve_wsgi_once: Serve, way: str) -> Serve:
    """``serve_wsgi_once`` in each of the ways."""
    return lambda source, *arguments: serve_wsgi_once(source, *WAYS[way], *arguments)
