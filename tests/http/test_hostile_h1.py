"""Each server of ``hostile_h1``: the class of the error, its rule, and a pool that has lost nothing."""

from __future__ import annotations

import socket
from typing import TYPE_CHECKING, Any

import pytest
from hostile_h1 import CASES
from hostile_servers import check_first, reset
from http_peer import OK, Peer, Talk, get, run

if TYPE_CHECKING:
    from citius.http.transport import Pool
    from hostile_h1 import Case


def acting(case: Case) -> Any:
    """The first request of the first connection gets what the case says, all others a response."""

    def act(talk: Talk) -> None:
        if talk.number == 1:
            talk.request()
            talk.say(case.said)
            if case.resets:
                reset(talk)
                return
            if not case.stays:
                talk.socket.shutdown(socket.SHUT_WR)
        while talk.request() is not None:
            talk.say(OK)

    return act


@pytest.mark.parametrize("is_streamed", [False, True], ids=["whole", "streamed"])
@pytest.mark.parametrize("name", CASES)
def test_a_hostile_server(name: str, is_streamed: bool) -> None:
    case = CASES[name]
    with Peer(acting(case)) as peer:

        async def work(pool: Pool) -> None:
            origin = peer.origin()
            await check_first(pool, origin, case, is_streamed=is_streamed)
            # One connection at a time: a place that was lost would be missed.
            reply = await get(pool, origin, "/after")
            assert reply.body == b"ok"
            assert reply.connection_reused == case.is_kept
            assert pool.stats() == {"open": 1, "idle": 1, "connecting": 0, "waiting": 0}

        run(work, body_bytes_max=50_000, connections_per_origin_max=1)
        assert peer.accepted == (1 if case.is_kept else 2)
    assert not peer.errors
