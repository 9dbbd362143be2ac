"""Workers end with their supervisor, stuck processes when they are told, and children keep no port."""

from __future__ import annotations

import os
import signal
import socket
import time
from contextlib import closing, suppress
from pathlib import Path

import pytest
from rig import Server, application, children, is_alive, wait_for

APP = application("stuck_app")


def _is_free(port: int) -> bool:
    with closing(socket.socket()) as made:
        made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            made.bind(("127.0.0.1", port))
        except OSError:
            return False
        return True


@pytest.mark.parametrize("mode", ["", "loop", "python", "ignore", "block"])
@pytest.mark.parametrize("loop", ["auto", "asyncio"])
def test_workers_end_with_their_supervisor(serve, mode: str, loop: str) -> None:
    """Servers D8: whatever the application does with signals."""
    server: Server = serve(
        APP, "--workers", "2", "--loop", loop, "--drain-s", "1", env={"MODE": mode}
    )
    workers = children(server)
    assert len(workers) == 2
    server.process.kill()
    wait_for(lambda: not any(map(is_alive, workers)), "the workers' end")
    assert _is_free(server.port)


def test_a_stuck_worker_ends_with_its_supervisor(serve) -> None:
    server: Server = serve(APP, "--supervisor", "--drain-s", "0.2", "--worker-timeout-s", "600")
    (worker,) = children(server)
    with server.connect() as peer:
        peer.send(b"GET /sleep HTTP/1.1\r\nHost: a\r\n\r\n")
        wait_for(lambda: "stuck" in server.out, "the handler")
        server.process.kill()
        wait_for(lambda: not is_alive(worker), "the worker's end")


@pytest.mark.parametrize("mode", ["loop", "python"])
@pytest.mark.parametrize("loop", ["auto", "asyncio"])
def test_the_server_and_the_application_hear_a_signal(serve, mode: str, loop: str) -> None:
    """Servers B8."""
    server: Server = serve(APP, "--loop", loop, env={"MODE": mode})
    server.signal(signal.SIGTERM)
    assert server.wait() == 0
    assert "told" in server.out


@pytest.mark.parametrize("mode", ["ignore", "block"])
@pytest.mark.parametrize("options", [[], ["--workers", "2"]], ids=["alone", "workers"])
def test_a_signal_that_the_application_keeps_away(serve, mode: str, options: list[str]) -> None:
    """Issue 32, F5: the server drains, and does not wait to be killed."""
    server: Server = serve(APP, "--drain-s", "600", *options, env={"MODE": mode})
    server.signal(signal.SIGTERM)
    assert server.wait() == 0


@pytest.mark.parametrize("path", ["/sleep", "/loop"])
@pytest.mark.parametrize(
    ("options", "signals"),
    [
        (["--loop", "auto"], ["INT", "INT"]), (["--loop", "asyncio"], ["INT", "INT"]),
        (["--loop", "auto"], ["TERM", "INT"]), (["--loop", "auto"], ["QUIT"]),
        (["--loop", "asyncio"], ["INT", "QUIT"]),
        (["--loop", "auto"], ["TERM", "TERM"]), (["--loop", "auto", "--drain-s", "0.2"], ["TERM"]),
    ],
)  # fmt: skip
def test_a_stuck_handler(serve, path: str, options: list[str], signals: list[str]) -> None:
    """Newcomer B2: without a supervisor, too, the process ends; its stacks are in the log."""
    server: Server = serve(APP, *options)
    with server.connect() as peer:
        peer.send(f"GET {path} HTTP/1.1\r\nHost: a\r\n\r\n".encode())
        wait_for(lambda: "stuck" in server.out, "the handler")
        for index, name in enumerate(signals):
            if name in signals[:index]:
                time.sleep(0.2)  # two signals of one number that are not taken yet are one
            server.signal(signal.Signals[f"SIG{name}"])
        assert server.wait(10) == 1
    assert "stuck_app.py" in server.err


@pytest.mark.parametrize("attempt", range(3))
def test_a_stuck_handler_without_an_event_loop(serve, attempt: int) -> None:
    """Both signals are heard at once: the thread of the log takes none of them."""
    server: Server = serve(
        """
        @app.get("/loop")
        def loop(request: Request) -> str:
            print("stuck", flush=True)
            time.sleep(600)
        """,
        "--loop", "none",
    )  # fmt: skip
    with server.connect() as peer:
        peer.send(b"GET /loop HTTP/1.1\r\nHost: a\r\n\r\n")
        wait_for(lambda: "stuck" in server.out, "the handler")
        server.signal(signal.SIGINT)
        server.signal(signal.SIGQUIT)
        assert server.wait(10) == 1


@pytest.mark.parametrize("workers", ["1", "2"])
@pytest.mark.parametrize("mode", ["fork", ""])
def test_a_process_that_the_application_forks_keeps_no_port(serve, workers: str, mode: str) -> None:
    """Servers B9: forked at import, or by a handler; the server ends by itself, or is killed."""
    server: Server = serve(APP, "--workers", workers, env={"MODE": mode})
    forked = [child for worker in (children(server) or []) for child in _children_of(worker)]
    if not mode:
        forked = [int(server.get("/fork").body)]
    try:
        for pid in [*children(server), server.process.pid]:
            if pid not in forked:
                os.kill(pid, signal.SIGKILL)
        server.process.wait()
        wait_for(lambda: _is_free(server.port), "the port")
    finally:
        for pid in forked:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)


def _children_of(pid: int) -> list[int]:
    try:
        with open(f"/proc/{pid}/task/{pid}/children") as file:
            return [int(child) for child in file.read().split()]
    except FileNotFoundError:
        return []


def test_workers_leave_no_directories_of_multiprocessing(serve, tmp_path: Path) -> None:
    """Scale S13: /tmp/pymp-* of workers stayed."""
    server: Server = serve(
        """
        @app.on_startup
        def begin():
            import multiprocessing.util
            multiprocessing.util.get_temp_dir()
        """,
        "--workers", "2", env={"TMPDIR": str(tmp_path)},
    )  # fmt: skip
    assert list(tmp_path.glob("pymp-*"))
    server.signal(signal.SIGTERM)
    assert server.wait() == 0
    assert list(tmp_path.glob("pymp-*")) == []
