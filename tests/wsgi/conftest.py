"""A WSGI application of one's own, called in each of the three ways."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path

import pytest
from rig import Server, application, serving

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
    """``rig.serving`` of ``application``."""
    with serving(directory, HEADER, ":application") as serve:

        def start(source: str | Path, *arguments: str) -> Server:
            # gevent patches what it finds; what its own import does is not ours to judge.
            env = {"PYTHONWARNINGS": "default"} if "gevent" in arguments else {}
            return serve(source, *arguments, env=env)

        yield start


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
