"""Closed standard streams, and Ctrl-C at any moment of the start: no traceback, nothing in the wrong file."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from rig import Server, skip_unless_portable, wait_for

SOURCE = """
from citius import App
app = App()

@app.get("/")
def hello():
    print("from the handler", flush=True)
    return "Hello"
"""


@pytest.mark.parametrize("closed", ["0<&-", "1>&-", "2>&-", "0<&- 1>&- 2>&-"])
@pytest.mark.parametrize("arguments", ["", "--workers 2", "--loop none", "--reload"])
def test_streams_that_are_closed(tmp_path: Path, closed: str, arguments: str) -> None:
    skip_unless_portable(arguments.split())
    (tmp_path / "main.py").write_text(SOURCE)
    path = tmp_path / "socket"
    command = f"exec {sys.executable} -m citius serve main.py --uds socket {arguments} {closed}"
    with (tmp_path / "out").open("w") as out, (tmp_path / "err").open("w") as err:
        process = subprocess.Popen(
            ["sh", "-c", command], cwd=tmp_path, stdin=subprocess.DEVNULL, stdout=out, stderr=err
        )

    def greets() -> bool:
        done = subprocess.run(
            ["curl", "-s", "--unix-socket", str(path), "http://a/"], capture_output=True
        )
        return done.stdout == b"Hello"

    try:
        wait_for(lambda: greets() or process.poll() is not None, "a server")
        assert process.poll() is None
        for number in range(3):
            # A file, a pipe or /dev/null, and no socket of the server's own.
            assert not os.readlink(f"/proc/{process.pid}/fd/{number}").startswith(
                ("socket", "anon")
            )
        process.send_signal(signal.SIGTERM)
        assert process.wait(30) == 0
    finally:
        process.kill()
        process.wait()
    told = (tmp_path / "err").read_text() + (tmp_path / "out").read_text()
    assert not re.search("Traceback|Assertion|Error", told), told


@pytest.mark.parametrize("where", ["", "@app.on_startup\ndef begin():\n    "])
@pytest.mark.parametrize("workers", ["1", "2"])
def test_streams_that_the_application_closes(
    serve: Callable[..., Server], where: str, workers: str
) -> None:
    source = f"{where}os.close(0) or os.close(1)\n@app.get('/')\ndef pid():\n    return str(os.getpid())\n"
    server = serve(source, "--workers", workers)
    pid = server.get("/").body.decode()
    # libuv ends a process that has one of its own descriptors below 3.
    for number in range(3):
        assert not os.readlink(f"/proc/{pid}/fd/{number}").startswith(("socket", "anon"))
    server.signal(signal.SIGTERM)
    assert server.wait() == 0


@pytest.mark.parametrize("workers", ["1", "2"])
def test_an_application_that_closes_the_listening_socket(
    serve: Callable[..., Server], workers: str
) -> None:
    server = serve("os.closerange(3, 256)\n", "--workers", workers, ready=False)
    assert server.wait() == 3
    said = r"the application has closed descriptor \d+, on which the server listens"
    assert re.search(said, server.err)
    assert "Traceback" not in server.err


BY_CLICK = ("citius.cli", "click")
MODULES = (
    *BY_CLICK,
    "citius.settings.commandline",
    "citius.settings.config",
    "citius.serving.prepare",
    "citius.serving.listeners",
    "main",
)


@pytest.mark.parametrize("arguments", [[], ["--workers", "2"], ["--reload"]])
def test_ctrl_c_at_any_moment_of_the_start(tmp_path: Path, arguments: list[str]) -> None:
    skip_unless_portable(arguments)
    (tmp_path / "main.py").write_text(SOURCE)
    # Python's own start says nothing about itself: the first of our modules is imported then.
    launcher = tmp_path / "launch.py"
    launcher.write_text(LAUNCHER)
    for module in MODULES:
        if module == "main" and arguments:
            continue  # another process imports it
        # A command line that gives an option twice is left to click.
        port = ["--port", "0"] * (2 if module in BY_CLICK else 1)
        done = subprocess.run(
            [sys.executable, "launch.py", module, "serve", "main.py", *port, *arguments],
            cwd=tmp_path, capture_output=True, text=True, timeout=60,
        )  # fmt: skip
        assert "Traceback" not in done.stderr, (module, done.stderr)
        assert done.returncode in (0, 1, 130, -signal.SIGINT), (module, done.stderr)


LAUNCHER = """
# Runs the command, and sends INT to it when a module is imported.
import os, runpy, signal, sys
name = sys.argv.pop(1)

class Finder:
    def find_spec(self, module, path=None, target=None):
        if module == name and os.getpid() == here:
            sys.meta_path.remove(self)
            os.kill(here, signal.SIGINT)

here = os.getpid()
sys.meta_path.insert(0, Finder())
sys.argv[0] = "citius"
runpy.run_module("citius", run_name="__main__")
"""
