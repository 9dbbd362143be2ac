"""A child that the application forks ends; it neither serves on the worker's sockets nor removes them."""

from __future__ import annotations

from pathlib import Path

import pytest
from rig import Server, application

APP = application("forks_app")
CODES = {"exit": b"7", "raise": b"1", "return": b"1"}
# Warnings are errors in a server under test; from Python 3.12 on, a fork beside threads is one.
PLAIN = {"PYTHONWARNINGS": "ignore"}


def check(server: Server, where: str, how: str, hello: str = "/hello") -> None:
    with server.connect() as peer:
        for _ in range(2):
            reply = peer.request("GET", f"/{where}/{how}")
            assert (reply.status, reply.body) == (200, CODES[how]), server.err
            assert peer.request("GET", hello).body == b"hello"
    if how != "exit":
        server.wait_for_log("a forked child ended")
    assert server.get(hello).body == b"hello"
    server.stop()
    assert ("a forked child ended" in server.err) == (how != "exit")


@pytest.mark.parametrize("how", CODES)
@pytest.mark.parametrize("where", ["def", "async", "late", "blocking"])
def test_a_child_that_a_handler_forks_never_serves(serve, where: str, how: str) -> None:
    check(serve(APP, env=PLAIN), where, how)


@pytest.mark.parametrize("how", CODES)
@pytest.mark.parametrize(
    ("name", "where", "options"),
    [
        ("asgi", "at-once", []),
        ("asgi", "late", []),
        ("wsgi", "inline", ["--threads", "0"]),
        ("wsgi", "thread", ["--threads", "2"]),
    ],
    ids=["asgi", "asgi-late", "wsgi", "wsgi-thread"],
)
def test_a_child_that_an_application_forks_never_serves(
    tmp_path: Path, name: str, where: str, options: list[str], how: str
) -> None:
    server = Server([f"{APP}:{name}", "--port", "0", *options], PLAIN, tmp_path)
    try:
        check(server.wait_ready(), where, how, "/hello/you")
    finally:
        server.kill()


@pytest.mark.parametrize("how", CODES)
@pytest.mark.parametrize("at_start", ["hook", "import"])
def test_a_child_that_is_forked_at_the_start_leaves_the_socket(
    tmp_path: Path, at_start: str, how: str
) -> None:
    path = tmp_path / "socket"
    env = {**PLAIN, "FORK_AT_START": at_start, "HOW": how}
    server = Server([str(APP), "--bind", f"unix:{path}"], env, tmp_path)
    try:
        server.wait_ready()
        assert path.exists()
        assert server.get("/").body == CODES[how], server.err
    finally:
        server.kill()


def test_a_signal_for_a_child_does_not_reach_the_worker(serve) -> None:
    """The loop's descriptor for signals is the child's too; pools end their processes by TERM."""
    server = serve(APP, env=PLAIN)
    for _ in range(3):
        assert server.get("/terminated").body == b"-15"
    assert server.process.poll() is None
    assert server.get("/hello").body == b"hello"
