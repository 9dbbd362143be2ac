"""The portable poller: the event loop owns the sockets (`--poller asyncio`).

`make test-portable` runs the tests of the whole server with it; here is what is true of it alone.
"""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import pytest
from rig import Server, application, citius, request, wait_for

APP = application("poller_app")


@pytest.fixture(params=["epoll", "asyncio", "asyncio on uvloop"])
def poller(request: pytest.FixtureRequest) -> tuple[str, ...]:
    """Options of a poller; what a client sees is the same with each."""
    name, _, loop = request.param.partition(" on ")
    return ("--poller", name, "--loop", loop or "asyncio", "--no-access-log")


def descriptors(server: Server) -> list[str]:
    directory = f"/proc/{server.process.pid}/fd"
    found: list[str] = []
    for name in os.listdir(directory):
        with suppress(FileNotFoundError):  # a connection that it closes meanwhile
            found.append(os.readlink(f"{directory}/{name}"))
    return found


def test_nothing_polls_but_the_loop(serve) -> None:
    server: Server = serve(APP, "--poller", "asyncio", "--loop", "asyncio")
    assert server.get("/large").status == 200
    kinds = [text for text in descriptors(server) if text.startswith("anon_inode:")]
    assert kinds == ["anon_inode:[eventpoll]"], "asyncio's own, and neither a timer nor an event"


def test_a_slow_reader_gets_everything_and_bounds_what_is_held(
    serve, poller: tuple[str, ...]
) -> None:
    server: Server = serve(APP, *poller)
    with server.connect(receive_buffer_bytes=4096) as peer, server.connect() as other:
        peer.send(request("/large"))
        assert peer.read_until(b"\r\n\r\n")
        assert other.request("GET", "/thread").body.startswith(b"citius-blocking-")
        assert peer.read(8_000_000) == b"x" * 8_000_000
        assert peer.request("GET", "/thread").status == 200


def test_a_stop_waits_for_what_is_not_written(serve, poller: tuple[str, ...]) -> None:
    server: Server = serve(APP, *poller)
    with server.connect(receive_buffer_bytes=4096) as peer:
        peer.send(request("/large"))
        peer.read_until(b"\r\n\r\n")
        server.signal(signal.SIGTERM)
        assert peer.read(8_000_000) == b"x" * 8_000_000
        assert peer.is_closed()
    assert server.wait() == 0


def test_a_client_that_sends_no_more_gets_its_responses(serve, poller: tuple[str, ...]) -> None:
    server: Server = serve(APP, *poller)
    with server.connect() as peer:
        peer.send(request("/plain") * 3)
        peer.socket.shutdown(socket.SHUT_WR)
        assert peer.read_to_end().count(b"200 OK") == 3


@pytest.mark.parametrize("leaves", ["close", "reset"])
def test_a_client_that_leaves_is_noticed(serve, poller: tuple[str, ...], leaves: str) -> None:
    server: Server = serve(APP, *poller)
    peer = server.connect()
    peer.send(request("/slow"))
    wait_for(lambda: "begun" in server.out, "the handler")
    getattr(peer, leaves)()
    wait_for(lambda: "left" in server.out, "the handler's end")


def test_connections_above_the_limit_are_told(serve, poller: tuple[str, ...]) -> None:
    server: Server = serve(APP, *poller, "--connections-max", "1")
    with server.connect() as first, server.connect() as second:
        assert first.request("GET", "/thread").status == 200
        second.send(request("/thread"))
        assert second.reply().status == 503


def test_idle_connections_end_by_themselves(serve, poller: tuple[str, ...]) -> None:
    server: Server = serve(APP, *poller, "--keep-alive-ms", "50")
    with server.connect() as peer:
        assert peer.request("GET", "/thread").status == 200
        assert peer.is_closed()


def test_a_unix_socket(serve, tmp_path: Path, poller: tuple[str, ...]) -> None:
    path = tmp_path / "socket"
    server: Server = serve(APP, *poller, "--uds", str(path))
    assert server.get("/thread").status == 200
    server.stop()
    assert not path.exists()


def test_metrics_in_a_thread(serve, poller: tuple[str, ...]) -> None:
    server: Server = serve(APP, *poller, "--management", "127.0.0.1:0")
    assert server.get("/thread").status == 200
    server.port = server.management()
    assert server.get("/live").status == 200
    assert b"citius_build_info" in server.get("/metrics").body
    assert server.stop() == 0


def test_wsgi_needs_no_other_host(serve, tmp_path: Path, poller: tuple[str, ...]) -> None:
    path = tmp_path / "wsgi.py"
    path.write_text(
        "def app(environ, start_response):\n"
        "    start_response('200 OK', [('content-type', 'text/plain')])\n"
        "    return [environ['PATH_INFO'].encode()]\n"
    )
    server: Server = serve(path, *poller, "--threads", "2")
    assert server.get("/a").body == b"/a"
    assert server.stop() == 0


@pytest.mark.parametrize(
    ("arguments", "word"),
    [
        (("--workers", "2"), "workers"),
        (("--reactor-threads", "2"), "reactor_threads"),
        (("--loop", "none"), "loop"),
        (("--loop", "gevent"), "loop"),
    ],
)
def test_what_it_does_not_do_is_refused(tmp_path: Path, arguments: tuple[str, ...], word: str):
    (tmp_path / "main.py").write_text("from citius import App\napp = App()\n")
    done = citius("serve", "main.py", "--poller", "asyncio", *arguments, cwd=tmp_path)
    assert done.returncode == 2
    assert word in done.stderr
    assert "poller asyncio" in done.stderr


ELSEWHERE = Path(__file__).with_name("elsewhere.py")


def test_serving_where_there_is_only_pythons_library(tmp_path: Path) -> None:
    server = Server(
        [str(APP), "--port", "0", "--ssl-dev"],
        {"XDG_CACHE_HOME": str(tmp_path)}, tmp_path, launcher=str(ELSEWHERE),
    )  # fmt: skip
    try:
        server.wait_ready()
        done = subprocess.run(
            ["curl", "-sk", "--http2", f"https://127.0.0.1:{server.port}/thread"],
            capture_output=True, check=True, text=True, timeout=60,
        )  # fmt: skip
        assert done.stdout.startswith("citius-blocking-")
        assert server.stop() == 0, server.err
    finally:
        server.kill()


@pytest.mark.parametrize(
    "option", ["--sandbox", "--supervisor", "--user=1", "--uds=socket", "--poller=epoll"]
)
def test_what_needs_linux_is_refused_elsewhere(tmp_path: Path, option: str) -> None:
    (tmp_path / "main.py").write_text("from citius import App\napp = App()\n")
    done = subprocess.run(
        [sys.executable, ELSEWHERE, "serve", "main.py", option],
        capture_output=True, text=True, cwd=tmp_path, timeout=60,
    )  # fmt: skip
    assert done.returncode == 2
    assert "Linux" in done.stderr
    assert "this is elsewhere" in done.stderr


def test_the_test_client_needs_no_descriptor(tmp_path: Path) -> None:
    code = (
        "import elsewhere\n"
        "from citius.testing import Client\n"
        "from poller_app import app\n"
        "with Client(app) as client:\n"
        "    print(client.get('/plain').text, client.get('/thread').text)\n"
    )
    path = os.pathsep.join([str(ELSEWHERE.parent), str(APP.parent)])
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, cwd=tmp_path, timeout=60,
        env={**os.environ, "PYTHONPATH": path},
    )  # fmt: skip
    assert done.stdout == "plain citius-blocking-0\n", done.stderr
