"""Who is too slow for a room or a broadcast: not a client that reads, whatever is sent at once.

The client of a burst reads when all of it has been sent, as one does that got no processor time meanwhile.
"""

from __future__ import annotations

import json

import pytest
from h2peer import H2Peer, connect
from rig import Peer, Server, application, text, wait_for
from wspeer import RawSocket, upgrade

BURSTS = application("bursts_app")
# So much in one turn that neither the write queue nor the buffers of the sockets take it.
COUNT, SIZE = 3001, 1300
BUFFER_BYTES = 4096


def joined(server: Server, path: str) -> RawSocket:
    """A member whose socket takes little that it does not read."""
    made = RawSocket.__new__(RawSocket)
    made.peer = server.connect(receive_buffer_bytes=BUFFER_BYTES)
    made.reply, made.key = upgrade(made.peer, path)
    return made.accepted()


def members(server: Server, which: str) -> tuple[int, int]:
    """How many there are here, and how many messages were missed."""
    body = json.loads(server.get(f"/members/{which}").body)
    return body["members"], body["missed"]


def send(
    server: Server, which: str, count: int = COUNT, size: int = SIZE, kind: str = "burst"
) -> None:
    with server.connect() as peer:
        text(peer, f"/{kind}/{which}/{count}/{size}", "POST")


@pytest.mark.parametrize("kind", ["burst", "bursts"])
@pytest.mark.parametrize("which", ["plain", "dropping", "history"])
def test_a_burst_reaches_a_member_of_a_room_that_reads(serve, which: str, kind: str) -> None:
    server = serve(BURSTS)
    member = joined(server, f"/join/{which}")
    assert member.message() == "joined"
    send(server, which, kind=kind)
    found = [str(message).rpartition("\n")[2] for message in member.messages(COUNT)]
    assert [int(message[:6]) for message in found] == list(range(COUNT))
    assert members(server, which) == (1, 0)


@pytest.mark.parametrize("kind", ["burst", "bursts"])
@pytest.mark.parametrize("which", ["news", "dropping-news"])
def test_a_burst_reaches_a_stream_that_reads(serve, which: str, kind: str) -> None:
    server = serve(BURSTS)
    with server.connect(receive_buffer_bytes=BUFFER_BYTES) as peer:
        follow(server, peer, which)
        send(server, which, kind=kind)
        events = Events(peer)
        found = [events.next() for _ in range(COUNT)]
        assert [int(data[:6]) for data in found] == list(range(COUNT))
    assert members(server, which)[1] == 0


def follow(server: Server, peer: Peer, which: str) -> None:
    peer.send(f"GET /events/{which} HTTP/1.1\r\nHost: a\r\n\r\n".encode())
    wait_for(lambda: members(server, which)[0] == 1, "the stream follows")


class Events:
    """What comes of a stream of events: the data of each, or its type where it has one."""

    def __init__(self, peer: Peer) -> None:
        self.peer, self.body = peer, b""
        head = b""
        while not head.endswith(b"\r\n\r\n"):
            head += peer.read(1)

    def next(self) -> str:
        while b"\n\n" not in self.body:
            size = b""
            while not size.endswith(b"\r\n"):
                size += self.peer.read(1)
            self.body += self.peer.read(int(size, 16))
            assert self.peer.read(2) == b"\r\n"
        event, _, self.body = self.body.partition(b"\n\n")
        fields = dict(line.split(b": ", 1) for line in event.split(b"\n"))
        return (fields.get(b"event") or fields[b"data"]).decode()


def test_what_a_member_that_comes_back_gets_does_not_make_it_slow(serve) -> None:
    """All of the history is sent, and what follows it, to a client that reads when all of it waits."""
    server = serve(
        BURSTS, "--room-member-bytes-max", "200000", "--room-member-behind-ms", "3600000"
    )
    send(server, "history")
    member = joined(server, "/join/history?after=aaaaaaaa-1")
    for number in range(100):
        send(server, "history", 1, 600)
        assert members(server, "history")[0] == 1, number
    expected = list(range(COUNT)) + [0] * 100
    assert str(member.message()) == 'gap\n{"missed":null}'
    found: list[str] = []
    while len(found) < len(expected):
        message = str(member.message())
        if message != "joined":
            found.append(message.rpartition("\n")[2])
    assert [int(message[:6]) for message in found] == expected


@pytest.mark.parametrize("options", [("bytes", "300000"), ("ms", "100")])
@pytest.mark.parametrize("which", ["plain", "dropping", "history"])
def test_a_member_that_does_not_read_is_too_slow(
    serve, which: str, options: tuple[str, str]
) -> None:
    """By the bytes that wait, whenever that is, or by the time for which more waits than the queue holds."""
    kind, most = options
    given = {"bytes": ("4000000000", "3600000"), "ms": ("4000000000", "3600000")}
    bytes_max, behind_ms = (most, given[kind][1]) if kind == "bytes" else (given[kind][0], most)
    server = serve(
        BURSTS,
        "--room-member-bytes-max", bytes_max, "--room-member-behind-ms", behind_ms, "--write-stall-ms", "0",
    )  # fmt: skip
    member = joined(server, f"/join/{which}")
    reader = joined(server, f"/join/{which}")
    assert member.message() == reader.message() == "joined"
    sent = 0

    def is_too_slow() -> bool:
        nonlocal sent
        send(server, which, 100, 10_000)
        sent += 100
        for number, message in enumerate(reader.messages(100)):
            assert int(str(message).rpartition("\n")[2][:6]) == number
        return members(server, which)[1] > 0

    wait_for(is_too_slow, "the member is too slow")
    left, missed = members(server, which)
    if which == "dropping":
        # What it has not missed it gets.
        assert left == 2
        for _ in member.messages(sent - missed):
            pass
        assert reader.peer.socket.fileno() >= 0
    else:
        assert (left, missed) == (1, 1)


def test_a_member_over_http2_that_opens_no_window_is_too_slow(serve) -> None:
    """What waited for the window of a stream counted for nothing, and grew without a bound."""
    server = serve(BURSTS, "--room-member-bytes-max", "300000", "--write-stall-ms", "0")
    with connect(server, opens_windows=False) as peer:
        open_member(peer, "/join/plain")
        wait_for(lambda: members(server, "plain")[0] == 1, "it has joined")
        for _ in range(3):
            send(server, "plain", 300, 1000)
        wait_for(lambda: members(server, "plain") == (0, 1), "it is too slow")


def test_a_burst_reaches_a_member_over_http2_that_opens_its_windows_later(serve) -> None:
    server = serve(BURSTS)
    with connect(server, opens_windows=False) as peer:
        open_member(peer, "/join/plain")
        wait_for(lambda: members(server, "plain")[0] == 1, "it has joined")
        send(server, "plain", 1000, 1000)
        peer.opens_windows = True
        peer.open_window(0, 1 << 20)
        peer.open_window(1, 1 << 20)
        answer = peer.answers[1]
        while len(answer.body) < 1000 * 1010:
            peer.step()
        body = bytes(answer.body)[2 + len("joined") :]
        heads = [body[at + 4 : at + 10] for at in range(0, len(body) - 9, 1010)]
        assert [int(head) for head in heads] == list(range(1000))


def open_member(peer: H2Peer, path: str) -> None:
    asked = [(":protocol", "websocket"), ("sec-websocket-version", "13")]
    peer.send(peer.head(1, "CONNECT", path, asked, end=False))
    while not (1 in peer.answers and peer.answers[1].status):
        peer.step()
