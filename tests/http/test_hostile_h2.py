"""Each server of ``hostile_h2``: the class of the error, its rule, and a pool that has lost nothing."""

from __future__ import annotations

import socket
from typing import TYPE_CHECKING, Any

import pytest
from hostile_h2 import CASES, REPEATED, SETTINGS, frame
from hostile_servers import check_first, reset
from http_peer import Peer, Talk, get, run

if TYPE_CHECKING:
    from collections.abc import Iterator

    from citius.http.transport import Pool
    from hostile_h2 import Case

PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"


def requests(talk: Talk) -> Iterator[int]:
    """The streams of the requests of a connection, as they come."""
    got = b""
    while len(got) < len(PREFACE):
        got += talk.read()
    assert got.startswith(PREFACE)
    got = got[len(PREFACE) :]
    while True:
        while len(got) < 9 or len(got) < 9 + int.from_bytes(got[:3]):
            if not (more := talk.read()):
                return
            got += more
        kind, stream = got[3], int.from_bytes(got[5:9])
        got = got[9 + int.from_bytes(got[:3]) :]
        if kind == 1:
            yield stream


def acting(case: Case) -> Any:
    """The first request of the first connection gets what the case says, all others a response."""

    def act(talk: Talk) -> None:
        is_first = talk.number == 1
        if not is_first or case.greets:
            talk.say(SETTINGS)
        for stream in requests(talk):
            if not is_first or stream > 1:
                talk.say(frame(1, 4, stream, b"\x88") + frame(0, 1, stream, REPEATED))
                continue
            talk.say(case.said)
            if case.resets:
                reset(talk)
                return
            if case.ends:
                talk.socket.shutdown(socket.SHUT_WR)

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
            assert (await get(pool, origin, "/after")).body == REPEATED
            assert pool.stats() == {"open": 1, "idle": 1, "connecting": 0, "waiting": 0}

        run(work, h2="prior", body_bytes_max=50_000, connections_per_origin_max=1)
        assert peer.accepted == (1 if case.is_kept else 2)
    assert not peer.errors
