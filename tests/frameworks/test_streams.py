"""A stream that waits for its upstream is cancelled when its client disconnects, over every protocol."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
import servers
from rig import wait_for
from servers import Running

TARGET = "streams_app:app"
CURL = shutil.which("curl")
pytestmark = pytest.mark.skipif(CURL is None, reason="needs curl")

STREAMS = [
    ("starlette", "/starlette/stream", ()),
    ("starlette", "/middleware/stream", ()),
    ("fastapi", "/fastapi", ()),
    ("fastapi", "/fastapi", ("--json", '{"question": "why"}')),
    ("sse", "/sse", ()),
]


@pytest.fixture(scope="module")
def plain(folder: Path) -> Iterator[Running]:
    server = servers.citius(TARGET, folder)
    yield server
    server.kill()


@pytest.fixture(scope="module")
def secure(folder: Path) -> Iterator[Running]:
    server = servers.citius(TARGET, folder, "--ssl-dev")
    yield server
    server.kill()


def curl(server: Running, path: str, *options: str) -> list[str]:
    assert CURL is not None
    return [CURL, "--silent", "--no-buffer", "--insecure", *options, server.url + path]


def ended(server: Running, name: str) -> int:
    shown = subprocess.run(curl(server, "/ended"), stdout=subprocess.PIPE, check=True, timeout=20)
    return json.loads(shown.stdout).get(name, 0)


def ended_when_the_client_left(
    server: Running, name: str, path: str, options: tuple[str, ...]
) -> int:
    before = ended(server, name)
    command = curl(server, path, *options)
    with subprocess.Popen(command, stdout=subprocess.PIPE) as client:
        assert client.stdout is not None
        assert b"first" in client.stdout.readline()
        client.kill()
    wait_for(lambda: ended(server, name) > before, f"the stream {path} to end")
    return ended(server, name) - before


@pytest.mark.parametrize(("name", "path", "options"), STREAMS)
@pytest.mark.parametrize("protocol", ["--http1.1", "--http2-prior-knowledge"])
def test_a_waiting_stream_ends_when_its_client_leaves(
    plain: Running, protocol: str, name: str, path: str, options: tuple[str, ...]
) -> None:
    assert ended_when_the_client_left(plain, name, path, (protocol, *options)) == 1
    assert "Traceback" not in plain.log


@pytest.mark.parametrize(("name", "path", "options"), STREAMS)
@pytest.mark.parametrize("protocol", ["--http1.1", "--http2"])
def test_a_waiting_stream_ends_when_its_client_leaves_over_tls(
    secure: Running, protocol: str, name: str, path: str, options: tuple[str, ...]
) -> None:
    assert ended_when_the_client_left(secure, name, path, (protocol, *options)) == 1
    assert "Traceback" not in secure.log
