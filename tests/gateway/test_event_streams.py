"""Server-sent events that the extension encodes: the same bytes, in order, no more than the client takes."""

from __future__ import annotations

import json
import random
from collections.abc import AsyncIterator, Iterator
from typing import Any

import msgspec
import pytest
from citius import App, Event, Response, event_stream
from citius._core import FAST_PATHS
from citius.testing import Client
from citius.web.realtime.events import encode_event
from rig import Server, application, wait_for

APP = application("event_streams_app")
PIECES = (
    "a", "data: ", "\n", "\r", "\r\n", "\n\n", "\0", "\u2028", "\x85", "\x0b", "é", "名", "🙂", "\ud800",
    "id: 1\n", ":", "",
)  # fmt: skip


class Item(msgspec.Struct):
    name: str


class Text(str):
    __slots__ = ()


def mutated(dice: random.Random) -> object:
    """Data of an event, or an event: texts of all line ends, values, and what has no UTF-8."""
    text = "".join(dice.choices(PIECES, k=dice.randrange(6)))
    whole = text.replace("\ud800", "")
    made: list[object] = [
        text, text, text, Text(text), Event(text), Event(text, "kind", "7", 1000),
        Event({"a": whole}, id="é"), Event(Text(text), Text("kind")), {"a": whole}, [whole], Item(whole),
        7, None, True, b"bytes",
    ]  # fmt: skip
    return dice.choice(made)


def application_of(events: list[object]) -> App:
    app = App()

    async def asynchronous() -> AsyncIterator[object]:
        for event in events:
            yield event

    def synchronous() -> Iterator[object]:
        yield from events

    @app.get("/list")
    def of_list() -> Response:
        return event_stream(events)

    @app.get("/def")
    def of_def() -> Response:
        return event_stream(synchronous())

    @app.get("/blocking", blocking=True)
    def of_thread() -> Response:
        return event_stream(synchronous())

    @app.get("/async")
    async def of_async() -> Response:
        return event_stream(asynchronous())

    return app


@pytest.mark.parametrize("seed", range(20))
def test_the_bytes_are_those_of_the_general_way(seed: int) -> None:
    dice = random.Random(seed)
    events = [mutated(dice) for _ in range(100)]
    expected = b"".join(map(encode_event, events))
    with Client(application_of(events)) as client:
        for path in ("/list", "/def", "/blocking", "/async"):
            assert client.get(path).content == expected, path


@pytest.fixture
def server(serve: Any) -> Server:
    return serve(APP)


def states(server: Server) -> dict[str, int]:
    return json.loads(server.get("/states").body)


def numbers(body: bytes) -> list[int]:
    return [int(line[6:14]) for line in body.split(b"\n\n") if line]


@pytest.mark.parametrize("kind", ["def", "async"])
def test_events_that_are_ready_leave_in_one_piece(server: Server, kind: str) -> None:
    with server.connect() as peer:
        peer.send(f"GET /{kind}/20 HTTP/1.1\r\nHost: a\r\n\r\n".encode())
        head = peer.read_until(b"\r\n\r\n")
        assert b"\r\ncontent-type: text/event-stream\r\n" in head
        chunks = list(peer.chunks())
        assert numbers(b"".join(chunks)) == list(range(20))
        assert len(chunks) == (1 if FAST_PATHS or kind == "def" else 20)
        assert states(server)["closed"] == 1
        assert peer.request("GET", "/states").status == 200, "the connection is in step"


@pytest.mark.parametrize("kind", ["def", "async", "blocking"])
def test_a_client_that_reads_slowly_gets_all_in_order(server: Server, kind: str) -> None:
    number = 8000
    with server.connect(receive_buffer_bytes=4096) as peer:
        peer.send(f"GET /{kind}/{number} HTTP/1.1\r\nHost: a\r\n\r\n".encode())
        peer.read_until(b"\r\n\r\n")
        taken = [-1]

        def stands_still() -> bool:
            taken.append(states(server)["taken"])
            return len(taken) > 10 and 0 < taken[-1] == taken[-10]

        wait_for(stands_still, "the source to stand still")
        assert 0 < taken[-1] < number, "what is not read is not made"
        assert numbers(b"".join(peer.chunks())) == list(range(number))
    wait_for(lambda: states(server)["closed"] == 1, "the end of the source")


@pytest.mark.parametrize("kind", ["def", "async", "blocking"])
def test_the_source_is_closed_when_its_client_leaves(server: Server, kind: str) -> None:
    with server.connect(receive_buffer_bytes=4096) as peer:
        peer.send(f"GET /{kind}/1000000 HTTP/1.1\r\nHost: a\r\n\r\n".encode())
        peer.read_until(b"00000001xxx")
        peer.reset()
    wait_for(lambda: states(server)["closed"] == 1, "the end of the source")
    assert states(server)["taken"] < 1_000_000


def test_events_before_and_after_a_pause_keep_their_order(server: Server) -> None:
    body = server.get("/pauses").body
    assert body == b"".join(b"data: %d\n\n" % number for number in range(50))


@pytest.mark.parametrize("kind", ["def", "cancelled"])
def test_what_came_before_a_failure_is_sent_and_is_not_the_whole(server: Server, kind: str) -> None:
    with server.connect() as peer:
        peer.send(f"GET /broken/{kind} HTTP/1.1\r\nHost: a\r\n\r\n".encode())
        said = peer.read_to_end()
    # Sent in the step that fails; the general way may break off before it sends what it has posted.
    assert b"data: first\n\n" in said or not FAST_PATHS
    assert not said.endswith(b"0\r\n\r\n")


def test_what_is_no_iterator_is_a_mistake_of_the_handler() -> None:
    with pytest.raises(TypeError, match="not iterable"):
        event_stream(7)  # pyright: ignore[reportArgumentType]


@pytest.mark.parametrize("retry_ms", ["5", 1.5, b"5"])
def test_a_pause_that_is_no_number_is_refused_where_it_is_made(retry_ms: Any) -> None:
    """The stream broke off when the event was sent."""
    with pytest.raises(TypeError, match="retry_ms of an event is a number"):
        Event("data", retry_ms=retry_ms)
