"""A request gets a clean task and a clean context, whatever the previous request did to its own.

A handler leaves its task to a later request (``citius-base/src/task/``): here handlers, and callbacks of the
loop between two requests, do what would show if a changed task were reused.
"""

from __future__ import annotations

import json
import sys

import pytest
from citius._core import FAST_PATHS
from rig import Peer, Server, application, wait_for

APP = application("task_isolation_app")

TOUCHES = [
    "cancel", "cancel-and-uncancel", "message", "name", "attribute", "class", "callback", "keep",
    "keep-weakly", "coroutine", "coroutine-weakly", "coroutine-sent", "wake-up", "context", "context-weakly",
    "variable",
]  # fmt: skip
needs_reuse = pytest.mark.skipif(not FAST_PATHS, reason="no task waits for the next request")
CLEAN = ["citius-request", False, 0, True, "start", False]


@pytest.fixture(scope="module", params=["asyncio", "uvloop"])
def server(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory):
    directory = tmp_path_factory.mktemp("isolation")
    server = Server(
        [str(APP), "--port", "0", "--loop", request.param, "--no-access-log"], {}, directory
    )
    server.wait_ready()
    assert server.get(f"/connect/{server.port}").body == b"ready"
    yield server
    server.kill()


@pytest.mark.parametrize("how", TOUCHES)
def test_what_a_handler_does_to_its_task_no_other_request_sees(server: Server, how: str) -> None:
    with server.connect() as peer:
        for _ in range(2):
            assert peer.request("GET", f"/touch/{how}").body == b"touched"
            assert json.loads(peer.request("GET", "/look").body) == CLEAN, server.err
        paths = [f"/touch/{how}", "/look"] * 5
        peer.send("".join(f"GET {path} HTTP/1.1\r\nHost: a\r\n\r\n" for path in paths).encode())
        bodies = [peer.reply().body for _ in paths]
    # What does not suspend is answered first; an answer waits for those before it.
    assert [json.loads(body) for body in bodies[1::2]] == [CLEAN] * 5


@pytest.mark.parametrize("by", ["loop", "turn"])
@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize("how", TOUCHES)
def test_what_a_handler_that_suspends_does_to_its_task_no_other_request_sees(
    server: Server, how: str, when: str, by: str
) -> None:
    paths = [f"/touch/{how}/{when}/{by}", f"/suspends/{by}", "/look"] * 5
    with server.connect() as peer:
        for path in paths:
            assert (body := peer.request("GET", path).body), path
            if path == "/look":
                assert json.loads(body) == CLEAN, server.err
        if (how, when) == ("coroutine", "before"):
            return  # at once, /look would close it before its response
        peer.send("".join(f"GET {path} HTTP/1.1\r\nHost: a\r\n\r\n" for path in paths).encode())
        bodies = [peer.reply().body for _ in paths]
    assert bodies[0::3] == [b"touched"] * 5, server.err
    assert bodies[1::3] == [by.encode()] * 5
    assert [json.loads(body) for body in bodies[2::3]] == [CLEAN] * 5


@needs_reuse
@pytest.mark.parametrize("how", TOUCHES)
def test_what_is_done_to_a_task_between_requests_no_request_sees(server: Server, how: str) -> None:
    with server.connect() as peer:
        assert peer.request("GET", "/at-once").body == b"at once"
        assert peer.request("GET", f"/arrange/{how}").body == b"soon"
        wait_for(lambda: peer.request("GET", "/is-done").body == b"yes", f"{how}\n{server.err}")
        assert json.loads(peer.request("GET", "/look").body) == CLEAN, server.err


@needs_reuse
def test_a_task_to_which_nothing_is_done_is_reused(server: Server) -> None:
    with server.connect() as peer:
        peer.request("GET", "/at-once")
        made = peer.request("GET", "/made").body
        for _ in range(5):
            assert peer.request("GET", "/at-once").body == b"at once"
            peer.send(b"GET /at-once HTTP/1.1\r\nHost: a\r\n\r\n" * 5)
            assert [peer.reply().body for _ in range(5)] == [b"at once"] * 5
            peer.request("GET", "/arrange/nothing")
            wait_for(lambda: peer.request("GET", "/is-done").body == b"yes", "the callback")
        assert peer.request("GET", "/made").body == made


@needs_reuse
@pytest.mark.parametrize("by", ["loop", "turn"])
def test_tasks_of_handlers_that_suspend_are_reused(server: Server, by: str) -> None:
    def ask(peer: Peer) -> None:
        peer.send(f"GET /suspends/{by} HTTP/1.1\r\nHost: a\r\n\r\n".encode() * 8)
        assert [peer.reply().body for _ in range(8)] == [by.encode()] * 8

    with server.connect() as peer:
        ask(peer)
        made = int(peer.request("GET", "/made").body)
        for _ in range(10):
            ask(peer)
        # Eight at once have eight tasks, whichever of them the first round has made.
        assert int(peer.request("GET", "/made").body) - made <= 8


@needs_reuse
def test_no_more_tasks_are_kept_than_is_said(server: Server) -> None:
    with server.connect() as peer:
        for _ in range(3):
            peer.send(b"GET /suspends/loop HTTP/1.1\r\nHost: a\r\n\r\n" * 100)
            assert [peer.reply().body for _ in range(100)] == [b"loop"] * 100
        assert int(peer.request("GET", "/spares").body) <= 65


@needs_reuse
def test_a_task_that_is_cancelled_between_requests_ends(server: Server) -> None:
    with server.connect() as peer:
        assert peer.request("GET", "/at-once").body == b"at once"
        assert peer.request("GET", "/cancel-and-wait").body == b"soon"
        ended = lambda: peer.request("GET", "/is-done").body == b"cancelled"  # noqa: E731
        wait_for(ended, "the task to end without another request")
        assert json.loads(peer.request("GET", "/look").body) == CLEAN


def test_a_token_of_an_earlier_request_resets_nothing(server: Server) -> None:
    with server.connect() as peer:
        for _ in range(3):
            assert peer.request("GET", "/token").body == b"set"
            assert peer.request("GET", "/reset").body == b"another context's"


@pytest.mark.skipif(sys.version_info < (3, 12), reason="tasks tell their context from 3.12 on")
def test_a_context_is_handed_out_by_its_task(serve) -> None:
    server = serve(application("task_contexts_app"))
    with server.connect() as peer:
        for number in range(3):
            assert json.loads(peer.request("GET", "/").body) == [False] * number
