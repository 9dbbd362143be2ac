"""Server-sent events: how they are encoded, streams, broadcasts, clients that leave or read slowly."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import Any, cast

import pytest
from browser import Browser
from citius import (
    App,
    Broadcast,
    Event,
    EventStream,
    Request,
    Response,
    event_stream,
    last_event_id,
)
from citius.errors import ClientDisconnected
from citius.testing import Client
from rig import Server, application, wait_for


@pytest.mark.parametrize(
    ("event", "encoded"),
    [
        (Event("a"), "data: a\n\n"),
        (Event(""), "data: \n\n"),
        (Event("a\nb\rc\r\nd\n"), "data: a\ndata: b\ndata: c\ndata: d\ndata: \n\n"),
        (Event("a\u2028b\x0bc\x85d"), "data: a\u2028b\x0bc\x85d\n\n"),
        (Event({"a": "b\n"}), 'data: {"a":"b\\n"}\n\n'),
        (Event("x", "kind", "7", 1000), "event: kind\nid: 7\nretry: 1000\ndata: x\n\n"),
        (Event("a\n\nevent: forged"), "data: a\ndata: \ndata: event: forged\n\n"),
        (Event("\ud800"), "data: ?\n\n"),
    ],
)
def test_encoding(event: Event, encoded: str) -> None:
    assert event.encode() == encoded.encode()


@pytest.mark.parametrize("text", ["a\nb", "a\rb", "a\0", "a\r\nid: 1"])
def test_fields_of_one_line(text: str) -> None:
    for fields in ({"event": text}, {"id": text}):
        with pytest.raises(ValueError, match="line break or NUL"):
            Event("x", **fields)


def test_streams_of_iterators() -> None:
    app, closed = App(), list[str]()

    @app.get("/async")
    async def several() -> Any:
        async def events() -> AsyncIterator[object]:
            try:
                yield Event("a", id="1")
                yield "b"
                await asyncio.sleep(0)
                yield {"c": 1}
            finally:
                closed.append("async")

        return event_stream(events())

    @app.get("/sync")
    def plain() -> Any:
        def events() -> Iterator[object]:
            try:
                yield "a"
                yield Event("b")
            finally:
                closed.append("sync")

        return event_stream(events())

    @app.get("/broken")
    async def broken() -> Any:
        async def events() -> AsyncIterator[object]:
            yield "a"
            raise ValueError("broken")

        return event_stream(events())

    @app.get("/beats")
    async def beats() -> Any:
        async def events() -> AsyncIterator[object]:
            await asyncio.sleep(0.2)
            yield "late"

        return event_stream(events(), heartbeat_s=0.05)

    with Client(app) as client:
        answer = client.get("/async")
        assert answer.text == 'id: 1\ndata: a\n\ndata: b\n\ndata: {"c":1}\n\n'
        assert answer.headers["content-type"] == "text/event-stream"
        assert answer.headers["cache-control"] == "no-cache"
        assert client.get("/sync").text == "data: a\n\ndata: b\n\n"
        assert closed == ["async", "sync"]
        assert client.get("/broken").text == "data: a\n\n"
        beats_text = client.get("/beats").text
        assert beats_text.startswith(":\n\n")
        assert beats_text.endswith("data: late\n\n")
        assert client.head("/async").content == b""


def test_a_stream_holds_a_bounded_number_of_bytes() -> None:
    async def fill(**options: Any) -> tuple[EventStream, list[bool]]:
        stream = EventStream(queue_bytes_max=20, heartbeat_s=None, **options)
        return stream, [stream.send("12345") for _ in range(4)]

    async def go() -> None:
        stream, sent = await fill()
        assert (sent, stream.is_closed) == ([True, False, False, False], True)
        stream, sent = await fill(slow="drop")
        assert (sent, stream.is_closed, stream.missed) == ([True, False, False, False], False, 3)
        assert await anext(stream) == b"data: 12345\n\n"
        assert stream.send("again")
        stream.close()
        assert not stream.send("no more")
        gap = b'event: gap\ndata: {"missed":3}\n\n'
        assert [piece async for piece in stream] == [gap + b"data: again\n\n"]
        large = EventStream(queue_bytes_max=20)
        assert large.send("x" * 100), "one that is longer than the queue goes alone"
        await large.aclose()

    asyncio.run(go())


class Reader:
    """In place of the extension's stream: takes pieces while there is room for them."""

    def __init__(self) -> None:
        self.pieces: list[bytes] = []
        self.room = 100
        self.has_left = False
        self.has_offered = True
        self.callbacks: list[Callable[[], object]] = []

    def send(self, data: bytes) -> bool:
        if self.has_left:
            raise ClientDisconnected
        self.pieces.append(data)
        self.room -= 1
        return self.room > 0

    def on_writable(self, callback: Callable[[], object]) -> None:
        self.callbacks.append(callback)

    def is_offered(self) -> bool:
        return self.has_offered


@pytest.mark.parametrize("slow", ["close", "drop"])
def test_events_of_one_turn_are_offered_before_the_client_is_too_slow(slow: Any) -> None:
    """A burst that is longer than the queue closed streams whose clients were fast."""

    async def go() -> None:
        stream, reader = EventStream(slow=slow, queue_bytes_max=30, heartbeat_s=None), Reader()
        feeding = asyncio.ensure_future(stream.feed(cast("Any", reader)))
        await asyncio.sleep(0)
        reader.room, reader.has_offered = 1, False
        # The first fills the extension's queue; of the others 30 times 16 bytes may wait for the reactor.
        assert [stream.send("123456") for _ in range(35)] == [True] * 35
        assert not stream.send("123456")
        assert (stream.is_closed, stream.missed) == (slow == "close", 1)
        if slow == "drop":
            reader.room = 100
            reader.callbacks.pop()()
            assert b"".join(reader.pieces).count(b"123456") == 35
            assert reader.pieces[-1] == b'event: gap\ndata: {"missed":1}\n\n'
        stream.close()
        await feeding

    asyncio.run(go())


def test_an_iteration_of_events_that_has_been_woken_is_not_too_slow() -> None:
    async def go() -> None:
        stream = EventStream(queue_bytes_max=30, heartbeat_s=None)
        reading = asyncio.ensure_future(anext(aiter(stream)))
        await asyncio.sleep(0)
        assert [stream.send("123456") for _ in range(20)] == [True] * 20
        assert (await reading).count(b"123456") == 20
        # It waits for nothing now: what comes is for a client that does not read.
        assert [stream.send("123456") for _ in range(3)] == [True, True, False]
        assert stream.is_closed

    asyncio.run(go())


def test_events_go_to_the_extension_as_they_are_sent_until_it_is_full() -> None:
    async def go() -> None:
        left: list[EventStream] = []
        stream, reader = (
            EventStream(on_close=left.append, slow="drop", queue_bytes_max=30),
            Reader(),
        )
        assert stream.send("early")
        feeding = asyncio.ensure_future(stream.feed(cast("Any", reader)))
        await asyncio.sleep(0)
        reader.room = 2
        assert [stream.send(text) for text in ("a", "b", "c", "d")] == [True] * 4
        assert reader.pieces == [b"data: early\n\n", b"data: a\n\n", b"data: b\n\n"]
        assert not stream.send("too much for the queue")
        assert stream.missed == 1
        stream.close()
        await asyncio.sleep(0)
        assert not feeding.done(), "what is queued is still to be sent"
        reader.room = 100
        reader.callbacks.pop()()
        await feeding
        gap = b'event: gap\ndata: {"missed":1}\n\n'
        assert reader.pieces[3:] == [b"data: c\n\ndata: d\n\n", gap]
        assert left == [stream]

    asyncio.run(go())


def test_a_stream_whose_client_has_left_takes_no_event() -> None:
    async def go() -> None:
        left: list[EventStream] = []
        stream, reader = EventStream(on_close=left.append), Reader()
        feeding = asyncio.ensure_future(stream.feed(cast("Any", reader)))
        await asyncio.sleep(0)
        reader.has_left = True
        assert not stream.send("a")
        await feeding
        assert (left, stream.is_closed, reader.pieces) == ([stream], True, [])

    asyncio.run(go())


def test_events_of_one_turn_are_one_piece_and_may_come_from_threads() -> None:
    async def go() -> None:
        left: list[EventStream] = []
        stream = EventStream(on_close=left.append)
        stream.send("a")
        stream.send("b")
        assert await anext(stream) == b"data: a\n\ndata: b\n\n"
        thread = threading.Thread(target=lambda: (stream.send("c"), stream.close()))
        thread.start()
        assert [piece async for piece in stream] == [b"data: c\n\n"]
        thread.join()
        assert left == [stream]
        assert not stream.send("d")

    asyncio.run(go())


APP = application("broadcast_app")


def test_a_client_that_leaves_is_noticed_at_once(serve: Callable[..., Server]) -> None:
    server = serve(APP)
    with server.connect() as peer:
        peer.send(b"GET /news HTTP/1.1\r\nHost: a\r\n\r\n")
        peer.read_until(b"\r\n\r\n")
        assert server.get("/followers").body == b"1"
    wait_for(lambda: server.get("/followers").body == b"0", "the client's leave", 5)
    with server.connect() as peer:
        peer.send(b"GET /own HTTP/1.1\r\nHost: a\r\n\r\n")
        peer.read_until(b"begun\n\n")
    wait_for(lambda: b"own ended" in server.get("/states").body, "the end of the source", 5)


def test_a_browser_follows_and_comes_back(serve: Callable[..., Server], tmp_path: Path) -> None:
    server = serve(APP)
    browser = Browser(tmp_path / "browser")
    try:
        browser.open(f"http://localhost:{server.port}/")
        browser.run(
            "window.got = []; window.source = new EventSource('/news');"
            "source.onmessage = ({data, lastEventId}) => got.push([data, lastEventId]);"
            "new Promise((resolve) => { source.onopen = resolve; })"
        )
        for text in "abcd":
            assert (
                browser.run(f"fetch('/send/{text}', {{method: 'POST'}}).then((a) => a.text())")
                == "1"
            )
        wait_for(lambda: len(browser.run("got")) == 4, "four events", 10)
        ids = [identifier for _, identifier in browser.run("got")]
        assert len(set(ids)) == 4
        browser.run("source.close()")
    finally:
        browser.close()
    for known, expected in (
        (ids[2], [b"d"]),
        (ids[0], [b"b", b"c", b"d"]),
        ("forged", [b"b", b"c", b"d"]),
    ):
        with server.connect() as peer:
            peer.send(f"GET /news HTTP/1.1\r\nHost: a\r\nLast-Event-ID: {known}\r\n\r\n".encode())
            got = peer.read_until(b"data: d\n\n")
            assert [
                word for word in (b"a", b"b", b"c", b"d") if b"data: " + word in got
            ] == expected


def test_last_event_id() -> None:
    app = App()
    app.get("/")(lambda request: last_event_id(request) or "none")

    @app.get("/async")
    async def asked(request: Request) -> str:
        return last_event_id(request) or "none"

    with Client(app) as client:
        assert client.get("/", headers={"last-event-id": "7"}).text == "7"
        assert client.get("/async", headers={"last-event-id": ""}).text == "none"


def test_a_client_that_has_missed_more_than_a_queue_holds_gets_it() -> None:
    broadcast = Broadcast(history=50, queue_bytes_max=20_000)
    for _ in range(50):
        broadcast.send("x" * 10_000)
    app = App()

    @app.get("/")
    async def follow(request: Request) -> Response:
        response = broadcast.response(request)
        asyncio.get_running_loop().call_later(0.2, broadcast.close)
        return response

    with Client(app) as client:
        response = client.get("/", headers={"last-event-id": "unknown"})
        assert response.text.startswith('event: gap\ndata: {"missed":null}\n\n')
        assert response.text.count("data: ") == 1 + 50
        assert len(broadcast) == 0
