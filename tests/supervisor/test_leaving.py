"""What the interpreter would wait for at its exit, and what a worker leaves, ends within the drain."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest
from rig import PLAIN, Server, application, children, is_alive, wait_for

APP = application("leaving_app")
ALONE: list[str] = []
SUPERVISED = ["--supervisor"]
EXECUTORS = ["default", "to-thread", "threads", "processes"]


@pytest.mark.parametrize(
    ("path", "options"),
    [
        *((path, ALONE) for path in [*EXECUTORS, "thread", "process"]),
        *((path, SUPERVISED) for path in EXECUTORS),
        ("default", ["--loop", "asyncio"]),
    ],
    ids=str,
)
def test_what_does_not_end_is_named_and_left_behind(serve, path: str, options: list[str]) -> None:
    """Issue 32, F: the server lived as long as a function of a stdlib executor."""
    server: Server = serve(APP, "--drain-s", "0.2", *options, env=PLAIN)
    assert server.get(f"/{path}").status == 204
    wait_for(lambda: "stuck" in server.out, "the function")
    started = [
        pid for parent in [server.process.pid, *children(server)] for pid in _children(parent)
    ]
    server.signal(signal.SIGTERM)
    assert server.wait() == 0
    left = server.wait_for_log(
        "the application did not end within the drain time; left behind: (.*)"
    )
    if path.startswith("process"):
        assert "process " in left[1]
        wait_for(lambda: not any(map(is_alive, started)), "the processes")
    else:
        assert "in stuck (" in left[1]
        assert "leaving_app.py:" in left[1]


@pytest.mark.parametrize("options", [ALONE, SUPERVISED], ids=str)
def test_what_ends_within_the_drain_is_waited_for(
    serve, options: list[str], tmp_path: Path
) -> None:
    server: Server = serve(APP, "--drain-s", "30", *options)
    path = tmp_path / "done"
    assert server.get("/idle").body == b"idle"
    assert server.get(f"/short?path={path}").status == 204
    server.signal(signal.SIGTERM)
    assert server.wait() == 0
    assert path.read_text() == "done"
    assert "left behind" not in server.err


def test_a_second_signal_does_not_wait(serve) -> None:
    server: Server = serve(APP, "--drain-s", "600")
    assert server.get("/default").status == 204
    wait_for(lambda: "stuck" in server.out, "the function")
    server.signal(signal.SIGQUIT)
    assert server.wait() in (0, 1)


def test_a_program_that_serves_ends_too(tmp_path: Path) -> None:
    """Its own code behind the server's end runs; what is bounded is the interpreter's exit."""
    server = Server([], PLAIN, tmp_path, launcher=str(APP), command="")
    try:
        server.wait_ready()
        assert server.get("/default").status == 204
        wait_for(lambda: "stuck" in server.out, "the function")
        server.signal(signal.SIGTERM)
        assert server.wait() == 0
        assert "served" in server.out
        assert "in stuck (" in server.err
    finally:
        server.kill()


def _children(pid: int) -> list[int]:
    try:
        text = Path(f"/proc/{pid}/task/{pid}/children").read_text()
    except OSError:
        return []
    return [int(child) for child in text.split() if int(child) != os.getpid()]
