"""`def` handlers under ``--loop gevent`` that wait (channels, sleeps, sockets, a driver) while others run."""

from __future__ import annotations

import shutil
import socket
import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from pathlib import Path

import pytest
from rig import Server, application, wait_for

pytest.importorskip("gevent")

APP = application("gevent_waits_app")
GET = "GET {} HTTP/1.1\r\nHost: a\r\n\r\n"


@pytest.fixture
def server(serve) -> Server:
    # What gevent's own import warns of is not ours to judge.
    return serve(APP, "--loop", "gevent", env={"PYTHONWARNINGS": "default"})


def ask_at_once(server: Server, *paths: str, meanwhile: str = "/alive") -> list[bytes]:
    """Ask for all of them before any answer is read; another request is answered while they wait."""
    with ExitStack() as stack:
        peers = [stack.enter_context(server.connect()) for _ in paths]
        for peer, path in zip(peers, paths, strict=True):
            peer.send(GET.format(path).encode())
        assert server.get(meanwhile).status < 300
        replies = [peer.reply() for peer in peers]
        assert {reply.status for reply in replies} == {200}, replies
        return [reply.body for reply in replies]


def test_channels_between_requests(server: Server) -> None:
    """The first waiter is served first, and each value is received once."""
    with server.connect() as first, server.connect() as second:
        for peer in (first, second):
            peer.send(GET.format("/receive").encode())
            assert server.get("/alive").body == b"yes"
        for value in ("a", "b"):
            assert server.get(f"/send/{value}").status == 204
        assert [first.reply().body, second.reply().body] == [b"a True", b"b True"]


def test_a_receiver_that_leaves_takes_nothing_along(server: Server) -> None:
    with server.connect() as gone:
        gone.send(GET.format("/receive").encode())
        assert server.get("/alive").body == b"yes"
    with server.connect() as stays:
        stays.send(GET.format("/receive").encode())
        assert server.get("/send/kept").status == 204
        assert stays.reply().body == b"kept True"


def test_selects_and_their_clocks(server: Server) -> None:
    assert ask_at_once(server, "/select/50", "/select/20") == [b"late"] * 2
    assert ask_at_once(server, "/select/20000", meanwhile="/send/x") == [b"value x"]
    assert ask_at_once(server, *["/select/20000"] * 5, meanwhile="/shut") == [b"shut"] * 5


def test_goroutines_of_a_handler_and_values_from_real_threads(server: Server) -> None:
    assert ask_at_once(server, *["/fan/20"] * 5) == [b"2470"] * 5
    assert ask_at_once(server, "/thread", "/thread") == [b"True"] * 2


def test_sleeps_are_side_by_side(server: Server) -> None:
    begun = time.monotonic()
    assert ask_at_once(server, *["/sleep/400"] * 20) == [b"slept"] * 20
    assert time.monotonic() - begun < 7.9  # one after the other: eight seconds


def test_sockets_are_side_by_side(server: Server) -> None:
    """All of them have asked before the first is answered."""
    with socket.create_server(("127.0.0.1", 0)) as slow:
        came: list[socket.socket] = []

        def answer() -> None:
            slow.settimeout(20)
            with suppress(TimeoutError):
                while len(came) < 8:
                    came.append(slow.accept()[0])
            for n, peer in enumerate(came):
                with peer:
                    peer.sendall(f"{n}\n".encode())

        thread = threading.Thread(target=answer)
        thread.start()
        answers = ask_at_once(server, *[f"/ask/{slow.getsockname()[1]}"] * 8)
        thread.join(20)
    assert sorted(answers) == [f"{n}\n".encode() for n in range(8)]


# --- a driver that knows nothing of greenlets -----------------------------------------------------

WITH_REDIS = application("redis_app")


@pytest.fixture
def redis_path(tmp_path: Path) -> Iterator[str]:
    pytest.importorskip("redis", reason="the driver is not installed")
    command = shutil.which("redis-server")
    if command is None:
        pytest.skip("redis-server is not installed")
    path = tmp_path / "redis.sock"
    options = ["--port", "0", "--unixsocket", str(path), "--save", "", "--dir", str(tmp_path)]
    process = subprocess.Popen([command, *options], stdout=subprocess.DEVNULL)
    try:
        wait_for(path.exists, "the store")
        yield str(path)
    finally:
        process.terminate()
        process.wait(10)


def test_a_driver_blocks_one_greenlet_only(serve, redis_path: str) -> None:
    """Eight wait in the store for what another eight requests bring."""
    env = {"PYTHONWARNINGS": "default", "REDIS": redis_path}
    server = serve(WITH_REDIS, "--loop", "gevent", env=env)
    with ExitStack() as stack:
        waiting = [stack.enter_context(server.connect()) for _ in range(8)]
        for n, peer in enumerate(waiting):
            peer.send(GET.format(f"/pop/key{n}").encode())
        assert server.get("/alive").body == b"1"
        for n in range(8):
            assert server.get(f"/push/key{n}/value{n}").status == 200
        assert [peer.reply().body for peer in waiting] == [
            b"key%d value%d" % (n, n) for n in range(8)
        ]
