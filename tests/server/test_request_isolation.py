"""Contexts and tasks of one request never reach the next."""

from __future__ import annotations

import pytest
from rig import PLAIN, Server, application, request, text

LOOPS = ["asyncio", "uvloop"]


CONTEXTS = application("contexts_app")
KINDS = ["def", "async", "suspended", "sleep-zero", "blocking"]


@pytest.mark.parametrize("loop", LOOPS)
def test_no_request_sees_what_another_has_set(serve, loop: str) -> None:
    server: Server = serve(CONTEXTS, "--loop", loop, "--no-access-log", env=PLAIN)
    peers = [server.connect() for _ in range(10)]
    for turn in range(40):
        kinds = [KINDS[(turn + place * (turn // 5 + 1)) % len(KINDS)] for place in range(10)]
        for peer, kind in zip(peers, kinds, strict=True):
            peer.send(request(f"/login/{kind}"))
        for peer, kind in zip(peers, kinds, strict=True):
            assert peer.reply().body == b"nobody", f"{kind} knows another's user"


@pytest.mark.parametrize("kind", ["def", "async"])
def test_a_context_that_differs_only_by_false_and_zero_is_not_reused(serve, kind: str) -> None:
    server: Server = serve(CONTEXTS, env=PLAIN)
    with server.connect() as peer:
        assert text(peer, f"/flag/{kind}") == "0"
        # In one piece, so that nothing but the context itself can have been put right in between.
        peer.send(request(f"/set-flag/{kind}") + request(f"/flag/{kind}"))
        assert peer.reply().status in (200, 204)
        assert peer.reply().body == b"0"


TASKS = application("tasks_app")


@pytest.mark.parametrize("loop", LOOPS)
def test_what_is_done_to_a_task_does_not_reach_the_next_request(serve, loop: str) -> None:
    server: Server = serve(TASKS, "--loop", loop, env=PLAIN)
    with server.connect() as peer:
        for _ in range(3):
            assert text(peer, "/marks") == "none"
            assert text(peer, "/mark") == "marked"
        assert text(peer, "/marks") == "none"
        assert text(peer, "/cancel-and-return") == "returned"
        assert text(peer, "/cancelling") == "0"
        assert text(peer, "/cancel-and-return") == "returned"
        assert text(peer, "/wait") == "waited"
        # Who goes through all tasks finds the one that waits for its request.
        with server.connect() as canceller:
            canceller.send(request("/cancel-all"))
            assert text(peer, "/wait") == "waited"
            assert peer.request("GET", "/open").status in (200, 204)
            assert canceller.reply().body == b"cancelled"
        assert text(peer, "/wait") == "waited"
        assert text(peer, "/cancelling") == "0"


@pytest.mark.parametrize("loop", LOOPS)
def test_a_handler_that_cancels_itself_in_its_first_step_is_answered(serve, loop: str) -> None:
    server: Server = serve(TASKS, "--loop", loop, env=PLAIN)
    with server.connect() as peer:
        assert text(peer, "/cancel/caught") == "caught"
        assert peer.request("GET", "/cancel/sleep-zero").status == 500
        assert peer.request("GET", "/cancel/future").status == 500
        assert text(peer, "/wait") == "waited"
