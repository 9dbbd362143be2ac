"""What a client that comes back has missed comes whole and in order, whatever is sent while it joins.

Engines: none, the workers of one machine, a process, and Redis.
"""

from __future__ import annotations

import asyncio
import shutil
import threading
import uuid
from collections.abc import Callable, Iterator

import pytest
from citius import Event
from citius.web.realtime.broadcast import Broadcast
from engines_rig import Redis
from rig import Peer, Server, application
from wspeer import RawSocket

APP = application("resuming_app")
Serve = Callable[..., Server]
HISTORY = 30


@pytest.fixture(scope="module", params=["", "memory://", "workers", "redis"])
def engine(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[str]:
    if request.param != "redis":
        yield request.param
        return
    if shutil.which("redis-server") is None:
        pytest.skip("redis-server is not installed")
    made = Redis(tmp_path_factory.mktemp("redis") / "redis")
    yield made.url
    made.close()


@pytest.fixture(scope="module")
def server(engine: str, serve_module: Serve) -> Server:
    return serve_module(APP, "--write-queue-bytes-max", "65536", env={"ENGINE": engine})


def numbers(messages: list[str]) -> list[int]:
    return [int(message.partition(" ")[0]) for message in messages]


def post(server: Server, path: str) -> bytes:
    with server.connect() as peer:
        reply = peer.request("POST", path)
    assert reply.status in (200, 204), reply
    return reply.body


PORTION = 5
"""Messages sent at once: less than a member may be behind."""


def sent_to(server: Server, follower: RawSocket | Follower, count: int, size: int) -> str:
    """Have so many messages sent that a follower gets; the identifier of one before."""
    mark = uuid.uuid4().hex
    post(server, f"/send?text={mark}")
    # What earlier tests have sent may still be on its way.
    while mark not in follower.next():
        pass
    known = follower.last_id
    for first in range(0, count, PORTION):
        post(server, f"/send?text=x&times={size}&first={first}&count={PORTION}")
        got = [follower.next() for _ in range(PORTION)]
        assert numbers(got) == list(range(first, first + PORTION))
    follower.peer.close()
    return known


class Member(RawSocket):
    """A WebSocket of the room with a history."""

    last_id = ""

    def next(self) -> str:
        self.last_id, _, text = str(self.message()).partition("\n")
        return text


class Follower:
    """A stream of events."""

    def __init__(self, server: Server, known: str = "", path: str = "/news") -> None:
        self.peer: Peer = server.connect()
        said = f"Last-Event-ID: {known}\r\n" if known else ""
        self.peer.send(f"GET {path} HTTP/1.1\r\nHost: a\r\n{said}\r\n".encode())
        self.peer.read_until(b"\r\n\r\n")
        self.last_id = known

    def next(self) -> str:
        while True:
            lines = self.peer.read_until(b"\n\n").decode().split("\n")
            for line in lines:
                if line.startswith("id: "):
                    self.last_id = line.removeprefix("id: ")
            for line in lines:
                if line.startswith("data: "):
                    return line.removeprefix("data: ")


def known_to_a_member(server: Server, count: int, size: int) -> str:
    member = Member(server, "/step?steps=j")
    member.accepted()
    return sent_to(server, member, count, size)


STEPS = ("j", "js", "jr", "jrs", "jsr", "ajs", "sjs", "sjrs", "asjr", "pqsjqsr", "spqjs")


@pytest.mark.parametrize(
    ("path", "steps"), [*(("/step?steps=", steps) for steps in STEPS), ("/thread?x=", "jrs")]
)
def test_what_was_missed_comes_before_what_is_sent_in_the_step_of_the_join(
    server: Server, path: str, steps: str
) -> None:
    """Review of rooms: the acceptance was posted behind what the room had sent, which was lost."""
    known = known_to_a_member(server, HISTORY, 10)
    client = RawSocket(server, f"{path}{steps}&after={known}").accepted()
    got, own, plain, room = [], 0, 0, 0
    order = []
    expected = (
        steps.count("s") + steps.count("q") + (HISTORY if "j" in steps else 0) + steps.count("r")
    )
    for _ in range(expected):
        text = str(client.message())
        if text in ("own", "plain"):
            own, plain = own + (text == "own"), plain + (text == "plain")
            order.append(text[0].replace("o", "s").replace("p", "q"))
            continue
        body = text.partition("\n")[2]
        if body == "room":
            room += 1
            order.append("r")
        else:
            if not got:
                order.append("j")
            got.append(body)
    assert numbers(got) == list(range(HISTORY))
    assert (own, plain, room) == (steps.count("s"), steps.count("q"), steps.count("r"))
    # What goes through the order of an engine may come later, but never before the join.
    steady = [one for one in steps if one in "sj"]
    assert [one for one in order if one in "sj"] == steady
    assert order.index("j") < order.index("r") if "r" in order else True
    client.text("end")
    assert str(client.message()).endswith("\nend")
    client.peer.close()


@pytest.mark.parametrize("slow", [False, True])
def test_a_history_longer_than_the_write_queue_comes_whole(server: Server, slow: bool) -> None:
    """By the limit for slow members such a client could never catch up."""
    count, size = 400, 10_000
    known = known_to_a_member(server, count, size)
    client = RawSocket(server, f"/step?steps=js&after={known}").accepted()
    if slow:
        client.peer.socket.settimeout(20)
        with server.connect() as other:  # a turn of the server in which the client has read nothing
            assert other.request("GET", "/none").status == 404
    got = [str(client.message()).partition("\n")[2] for _ in range(count)]
    assert numbers(got) == list(range(count))
    assert client.message() == "own"
    client.peer.close()


@pytest.mark.parametrize(("count", "size"), [(HISTORY, 10), (400, 10_000)])
def test_events_that_were_missed_come_before_those_sent_at_once(
    server: Server, count: int, size: int
) -> None:
    known = sent_to(server, Follower(server), count, size)
    again = Follower(server, known, "/news?send=5")
    assert numbers([again.next() for _ in range(count)]) == list(range(count))
    assert [again.next() for _ in range(5)] == [f"at once {number}" for number in range(5)]
    again.peer.close()


def test_clients_that_come_and_go_while_a_thread_sends_miss_nothing(server: Server) -> None:
    post(server, "/flood/start")
    try:
        first = RawSocket(server, "/step?steps=j").accepted()
        known, _, text = str(first.message()).partition("\n")
        number = int(text)
        first.peer.close()
        follower = Follower(server)
        at = int(follower.next())
        seen = follower.last_id
        follower.peer.close()
        for turn in range(30):
            steps = ("js", "j", "sjs", "ajsr")[turn % 4]
            client = RawSocket(server, f"/step?steps={steps}&after={known}").accepted()
            for _ in range(50):
                text = str(client.message())
                if text == "own" or text.endswith("\nroom"):
                    continue
                known, _, text = text.partition("\n")
                assert int(text) == number + 1
                number += 1
            client.peer.close()
            follower = Follower(server, seen)
            for _ in range(50):
                assert int(follower.next()) == at + 1
                at += 1
            seen = follower.last_id
            follower.peer.close()
    finally:
        sent = int(post(server, "/flood/stop"))
    assert sent >= number


class Asked:
    """A request, as far as a broadcast looks at it."""

    def header(self, name: str) -> None:
        return None


def test_a_stream_that_begins_as_the_last_other_one_is_closed_gets_what_comes() -> None:
    """The followers of a loop were forgotten with the slow one, and the new one with them."""

    async def main() -> None:
        news = Broadcast(queue_bytes_max=100, heartbeat_s=None)
        news.response(Asked())  # pyright: ignore[reportArgumentType]
        sender = threading.Thread(target=lambda: [news.send(Event("x" * 60)) for _ in range(3)])
        sender.start()
        sender.join()
        # What the thread has sent is handed over now, and is too much for the first one.
        news.response(Asked())  # pyright: ignore[reportArgumentType]
        assert len(news) == 1
        assert news.send(Event("new")) == 1

    asyncio.run(main())
