"""Coroutines are stepped on the spot and are still proper tasks, before and after they suspend."""

from __future__ import annotations

import json

import pytest
from citius._core import FAST_PATHS
from rig import Server, application, wait_for

APP = application("coroutines_app")

HOW = ["at-once", "suspends"]


@pytest.fixture(scope="module", params=["asyncio", "uvloop"])
def server(serve_module, request: pytest.FixtureRequest) -> Server:
    return serve_module(APP, "--loop", request.param, "--no-access-log")


def get(server: Server, path: str):
    reply = server.get(path)
    assert reply.status == 200, f"{path}: {reply}\n{server.err}"
    try:
        return json.loads(reply.body)
    except ValueError:
        return reply.body.decode()


def test_the_semantics_of_a_task(server: Server) -> None:
    for how in HOW:
        for seen in get(server, f"/task/{how}"):
            assert seen["in_all"], how
            assert seen["coro"], how
            assert seen["done"] is False, how
            assert seen["cancelling"] == 0, how
            assert seen["name"], how
        assert get(server, f"/timeout/{how}") == "timed out"
        assert get(server, f"/timeout-unused/{how}") == "in time"
        assert get(server, f"/wait-for/{how}") == "timed out"
        assert get(server, f"/group/{how}") == [0, 2, 4]
        assert get(server, f"/group-fails/{how}") == "cancelled and collected"
        assert get(server, f"/anyio/{how}") == {"cancelled": True, "inner": True, "thread": "ran"}
        assert get(server, f"/cancel-oneself/{how}") == "cancelled"
    assert get(server, "/awaited-task") == "unset"


def test_contexts_are_isolated(server: Server) -> None:
    with server.connect() as peer:
        for number in range(20):
            how = HOW[number % 2]
            value = f"value{number}"
            seen = json.loads(peer.request("GET", f"/context/{how}/{value}").body)
            assert seen == ["unset", value, value]
    # In one turn, interleaved: what one request sets, the next must not see.
    with server.connect() as peer:
        paths = [f"/context/{HOW[n % 2]}/v{n}" for n in range(30)]
        peer.send("".join(f"GET {path} HTTP/1.1\r\nHost: a\r\n\r\n" for path in paths).encode())
        for n in range(30):
            assert json.loads(peer.reply().body) == ["unset", f"v{n}", f"v{n}"]


def test_a_kept_task_stays_its_requests(server: Server) -> None:
    for how in HOW:
        assert get(server, f"/keeps-its-task/{how}") == "kept"
        wait_for(
            lambda: get(server, "/the-kept-task") == {"done": True, "mine": False}, "it to be done"
        )


KNOWN = application("known_tasks_app")


@pytest.mark.skipif(not FAST_PATHS, reason="no task waits for the next request")
@pytest.mark.parametrize("plain", ["id", "weakref.ref", "weakref.proxy"])
@pytest.mark.parametrize("loop", ["asyncio", "uvloop"])
def test_who_knows_a_task_weakly_does_not_know_the_next_one(serve, loop: str, plain: str) -> None:
    # Code that watches all tasks may have known a request's before it began.
    server = serve(KNOWN, "--loop", loop, "--no-access-log", env={"PLAIN": plain})
    wait_for(lambda: server.get("/seen").body == b"True", "the watcher to see the spare task")
    for name in "abcde":
        assert server.get(f"/{name}").body.decode() == name
    with server.connect() as peer:
        peer.send(b"".join(b"GET /%d HTTP/1.1\r\nHost: a\r\n\r\n" % n for n in range(9)))
        assert [peer.reply().body for _ in range(9)] == [b"%d" % n for n in range(9)]


def test_done_callbacks_are_called(server: Server) -> None:
    for how in HOW:
        assert get(server, f"/callback/{how}") == "ok"
        wait_for(lambda how=how: get(server, "/called") == how, "the callback")


def test_streams_are_tasks_too(server: Server) -> None:
    for how in HOW:
        first, second = (
            json.loads(line) for line in server.get(f"/generator/{how}").body.splitlines()
        )
        assert first["in_all"]
        assert second["in_all"]
        assert first["id"] == second["id"]


@pytest.mark.parametrize("how", HOW)
def test_a_client_that_goes_away_cancels(server: Server, how: str) -> None:
    with server.connect() as peer:
        peer.send(f"GET /hang/{how} HTTP/1.1\r\nHost: a\r\n\r\n".encode())
        wait_for(lambda: get(server, "/state/hanging") == how, "the handler")
    wait_for(lambda: get(server, "/state/cancelled") == how, "the cancellation")
    assert "Traceback" not in server.err


def test_a_cancellation_that_is_swallowed_harms_nobody(server: Server) -> None:
    with server.connect() as peer:
        peer.send(b"GET /swallows HTTP/1.1\r\nHost: a\r\n\r\n")
        wait_for(lambda: get(server, "/state/hanging") == "swallows", "the handler")
    wait_for(lambda: get(server, "/state/cancelled") == "swallowed", "the cancellation")
    assert get(server, "/awaited-task") == "unset"


def test_concurrent_handlers_have_tasks_of_their_own(server: Server) -> None:
    with server.connect() as peer:
        peer.send(b"GET /task/suspends HTTP/1.1\r\nHost: a\r\n\r\n" * 10)
        ids = [json.loads(peer.reply().body)[0]["id"] for _ in range(10)]
    assert len(set(ids)) == 10
