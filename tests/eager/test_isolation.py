"""A request gets a clean task and a clean context, whatever the previous request did to its own.

A handler that does not suspend leaves its task to the next request (``citius-base/src/task/``): here
handlers, and callbacks of the loop between two requests, do what would show if a changed task were reused.
"""

from __future__ import annotations

import json
import sys

import pytest
from citius._core import FAST_PATHS
from rig import Server, application, wait_for

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
    yield server.wait_ready()
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
