"""The entry for the-benchmarker/web-frameworks: its command as it is written, and what the board asks."""

from __future__ import annotations

import http.client
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from rig import free_port, wait_for

ENTRY = Path(__file__).parents[2] / "lab/web-frameworks/citius"


@pytest.fixture
def port() -> Iterator[int]:
    """The port at which the command of config.yaml serves."""
    (command,) = re.findall(r"^ +command: (.+)$", (ENTRY / "config.yaml").read_text(), re.MULTILINE)
    assert "--host 0.0.0.0 --port 3000" in command
    port = free_port()
    command = command.replace("0.0.0.0 --port 3000", f"127.0.0.1 --port {port}")
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    process = subprocess.Popen(
        ["/bin/sh", "-c", f"exec {command}"],
        cwd=ENTRY,
        env=os.environ | {"PATH": path},
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        wait_for(lambda: answers(port) or process.poll() is not None, "the server")
        yield port
    finally:
        process.send_signal(signal.SIGTERM)
        assert process.communicate(timeout=30)[1] == ""
    assert process.returncode == 0


def answers(port: int) -> bool:
    try:
        return ask(port, "GET", "/") == (200, b"")
    except ConnectionRefusedError:
        return False


def ask(port: int, method: str, path: str, **headers: str) -> tuple[int, bytes]:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=20)
    connection.request(method, path, headers=headers)
    response = connection.getresponse()
    found = response.status, response.read()
    connection.close()
    return found


def test_routes(port: int) -> None:
    assert ask(port, "GET", "/") == (200, b"")
    assert ask(port, "GET", "/user/0") == (200, b"0")
    assert ask(port, "POST", "/user", **{"Content-Type": "text/plain"}) == (200, b"")
