"""Workers end with their supervisor, stuck processes when they are told, and children keep no port."""

from __future__ import annotations

import os
import signal
import socket
import time
from contextlib import closing, suppress
from importlib.util import find_spec
from pathlib import Path

import pytest
from rig import PLAIN, Server, application, children, is_alive, wait_for

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


@pytest.mark.parametrize(
    "path", ["/sleep", "/loop", "/deaf/sleep", "/deaf/loop", "/deaf/interpreter"]
)
@pytest.mark.parametrize("loop", ["auto", "asyncio"])
def test_a_stuck_worker_ends_with_its_supervisor(serve, path: str, loop: str) -> None:
    """Also one that ignores all signals, and one whose code in C keeps the interpreter for itself."""
    server: Server = serve(
        APP, "--supervisor", "--drain-s", "0.2", "--worker-timeout-s", "600", "--loop", loop
    )
    (worker,) = children(server)
    with server.connect() as peer:
        peer.send(f"GET {path} HTTP/1.1\r\nHost: a\r\n\r\n".encode())
        wait_for_handler(server, sleeps=path == "/sleep")
        server.process.kill()
        wait_for(lambda: not is_alive(worker), "the worker's end")


@pytest.mark.parametrize("options", [["--threads", "2"], ["--threads", "0"]], ids=str)
def test_a_stuck_worker_of_wsgi_ends_with_its_supervisor(serve, options: list[str]) -> None:
    check_deaf(serve(Path(f"{APP}:wsgi"), "--supervisor", "--drain-s", "0.2", *options))


@pytest.mark.skipif(find_spec("gevent") is None, reason="gevent is not installed")
def test_a_stuck_worker_with_gevent_ends_with_its_supervisor(serve) -> None:
    options = ["--supervisor", "--drain-s", "0.2", "--loop", "gevent"]
    check_deaf(serve(Path(f"{APP}:wsgi"), *options, env=PLAIN))


def check_deaf(server: Server) -> None:
    (worker,) = children(server)
    with server.connect() as peer:
        peer.send(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n")
        wait_for(lambda: "stuck" in server.out, "the application")
        server.process.kill()
        wait_for(lambda: not is_alive(worker), "the worker's end")


@pytest.mark.parametrize("path", ["/deaf/sleep", "/deaf/loop"])
def test_a_stuck_server_ends_with_the_process_that_reloads_it(serve, path: str) -> None:
    server: Server = serve(APP, "--reload", "--drain-s", "0.2", env=PLAIN)
    family = _descendants(server.process.pid)
    with server.connect() as peer:
        peer.send(f"GET {path} HTTP/1.1\r\nHost: a\r\n\r\n".encode())
        wait_for_handler(server, sleeps=path == "/sleep")
        server.process.kill()
        wait_for(lambda: not any(map(is_alive, family)), "the server's end")


@pytest.mark.parametrize("mode", ["loop", "python"])
@pytest.mark.parametrize("loop", ["auto", "asyncio"])
def test_the_server_and_the_application_hear_a_signal(serve, mode: str, loop: str) -> None:
    """Servers B8."""
    server: Server = serve(APP, "--loop", loop, env={"MODE": mode})
    server.signal(signal.SIGTERM)
    assert server.wait() == 0
    assert "told" in server.out


@pytest.mark.parametrize("options", [[], ["--workers", "2"], ["--loop", "asyncio"]], ids=str)
@pytest.mark.parametrize("mode", ["SystemExit", "KeyboardInterrupt", "ValueError"])
def test_a_signal_handler_that_raises_cuts_no_request_off(
    serve, options: list[str], mode: str
) -> None:
    """Ray's handler of TERM is `sys.exit(15)`: the drain goes on, and the exit code is the server's."""
    server: Server = serve(APP, *options, env={"MODE": mode})
    with server.connect() as peer:
        peer.send(b"GET /until-told HTTP/1.1\r\nHost: a\r\n\r\n")
        wait_for(lambda: "begun" in server.out, "the handler")
        server.signal(signal.SIGTERM)
        assert peer.reply().body == b"complete"
    assert server.wait() == 0
    assert ("ValueError: told" in server.err) is (mode == "ValueError")


@pytest.mark.parametrize("mode", ["ignore", "block"])
@pytest.mark.parametrize("options", [[], ["--workers", "2"]], ids=["alone", "workers"])
def test_a_signal_that_the_application_keeps_away(serve, mode: str, options: list[str]) -> None:
    """Issue 32, F5: the server drains, and does not wait to be killed."""
    server: Server = serve(APP, "--drain-s", "600", *options, env={"MODE": mode})
    server.signal(signal.SIGTERM)
    assert server.wait() == 0


def wait_for_handler(server: Server, *, sleeps: bool) -> None:
    """Wait until the handler is stuck.

    A signal that comes between CPython's last look for one and the call that sleeps is heard after it.
    """
    wait_for(lambda: "stuck" in server.out, "the handler")
    if sleeps:
        state = Path(f"/proc/{server.process.pid}/stat")
        wait_for(lambda: state.read_text().rpartition(")")[2].split()[0] == "S", "its sleep")


def is_pending(server: Server, name: str) -> bool:
    status = Path(f"/proc/{server.process.pid}/status").read_text()
    pending = int(status.partition("ShdPnd:")[2].split()[0], 16)
    return bool(pending >> (signal.Signals[f"SIG{name}"] - 1) & 1)


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
        wait_for_handler(server, sleeps=path == "/sleep")
        for index, name in enumerate(signals):
            if name in signals[:index]:
                wait_for(lambda: not is_pending(server, name), "the signal before")
                time.sleep(0.2)  # and for Python to hear it; two that have not been heard are one
            server.signal(signal.Signals[f"SIG{name}"])
        assert server.wait(20) == 1
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
        wait_for_handler(server, sleeps=True)
        server.signal(signal.SIGINT)
        server.signal(signal.SIGQUIT)
        assert server.wait(20) == 1


@pytest.mark.parametrize("workers", ["1", "2"])
@pytest.mark.parametrize("how", ["import", "/fork", "/fork/c", "/fork/double", "/fork/thread"])
def test_a_process_that_the_application_forks_keeps_no_port(serve, workers: str, how: str) -> None:
    """Servers B9: forked at import, or by a handler; the server ends by itself, or is killed.

    Code in C forks without Python's hooks.
    """
    mode = "fork" if how == "import" else ""
    server: Server = serve(
        APP, "--workers", workers, "--management", "127.0.0.1:0", env={"MODE": mode, **PLAIN}
    )
    ports = [server.port, server.management()]
    forked = [child for worker in (children(server) or []) for child in _children_of(worker)]
    if not mode:
        forked = [int(pid) for pid in server.get(how).body.split()]
    else:
        forked = forked or [pid for pid in children(server) if workers == "1"]
    assert forked
    try:
        for pid in [*children(server), server.process.pid]:
            if pid not in forked:
                os.kill(pid, signal.SIGKILL)
        server.process.wait()
        wait_for(lambda: all(map(_is_free, ports)), "the ports")
        assert all(map(is_alive, forked)), "it is the ports that they leave"
    finally:
        for pid in forked:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)


def test_a_program_that_the_application_starts_keeps_no_port(serve) -> None:
    """`posix_spawn` and `vfork` have no hooks at all; what they run closes the sockets."""
    server: Server = serve(APP, env=PLAIN)
    (pid,) = [int(text) for text in server.get("/fork/spawn").body.split()]
    try:
        server.process.kill()
        server.process.wait()
        wait_for(lambda: _is_free(server.port), "the port")
        assert is_alive(pid)
    finally:
        os.kill(pid, signal.SIGKILL)


def test_a_worker_serves_on_after_code_in_c_has_forked(serve) -> None:
    """The child comes back from its handler and must not serve; the sockets of its parent are not closed."""
    server: Server = serve(APP, env=PLAIN)
    for _ in range(3):
        assert server.get("/fork/back").body == b"1"
    server.wait_for_log("a forked child ended")
    server.stop()


def _descendants(pid: int) -> list[int]:
    found = _children_of(pid)
    return found + [one for child in found for one in _descendants(child)]


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
