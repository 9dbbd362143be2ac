"""Lines and server-sent events of responses, in whatever pieces they come."""

from __future__ import annotations

import asyncio
import time

import pytest
from citius.http import Client, DecodingError, ReceivedEvent, TooLarge
from citius.http import events as module
from citius.http.events import EventReader, LineReader
from citius.testing.http import MockTransport

STREAM = (
    "\ufeff: a comment\r\n\r\nid: 1\r\nevent: token\r\ndata: a\r\ndata:b\r\n\r\ndata: ü\n\n"
    "retry: 250\rdata\r\revent: x\n\nid: \0\ndata: last\n\ndata: cut"
).encode()
EVENTS = [
    ReceivedEvent("a\nb", "token", "1"),
    ReceivedEvent("ü", "message", "1"),
    ReceivedEvent("", "message", "1"),
    ReceivedEvent("last", "message", "1"),
]


@pytest.mark.parametrize("size", [1, 2, 3, 5, 1000])
def test_events_in_pieces(size: int) -> None:
    reader = EventReader()
    found: list[ReceivedEvent] = []
    for at in range(0, len(STREAM), size):
        found += reader.receive(STREAM[at : at + size])
    assert found == EVENTS
    assert (reader.retry_ms, reader.comments) == (250, 1)


@pytest.mark.parametrize("size", [1, 2, 3, 1000])
def test_lines_in_pieces(size: int) -> None:
    text = "a\nb\r\nc\rd\n\ne\r\r\nf\n\r\ng"
    reader = LineReader()
    found: list[str] = []
    for at in range(0, len(text), size):
        found += reader.receive(text[at : at + size])
    assert [*found, reader.rest()] == ["a", "b", "c", "d", "", "e", "", "f", "", "g"]


def test_an_event_is_there_with_its_carriage_return() -> None:
    """A reader that waits for the LF of a CR would hold the last event back."""
    assert list(EventReader().receive(b"data: now\r\r")) == [ReceivedEvent("now")]


def test_a_long_line_in_small_pieces_takes_time_that_grows_with_its_length() -> None:
    def seconds(count: int) -> float:
        reader = LineReader()
        begun = time.thread_time()
        for _ in range(count):
            list(reader.receive("x" * 16))
        list(reader.receive("\n"))
        return time.thread_time() - begun

    seconds(1000)
    assert seconds(80_000) < 40 * max(seconds(8000), 0.001)


async def test_a_client_reads_events(mock: MockTransport) -> None:
    mock.add(
        "GET",
        "*",
        headers={"content-type": "text/event-stream; charset=utf-8"},
        content=[STREAM[:20], STREAM[20:]],
    )
    client = Client("http://a", transport=mock)
    async with client.stream("GET", "/") as response:
        assert [event async for event in response.iter_events()] == EVENTS

    def read() -> list[ReceivedEvent]:
        with client.sync.stream("GET", "/") as response:
            return list(response.iter_events())

    assert await asyncio.to_thread(read) == EVENTS


async def test_what_is_no_stream_of_events(mock: MockTransport) -> None:
    client = Client("http://a", transport=mock)
    mock.add("GET", "*", content="<html>")
    async with client.stream("GET", "/") as response:
        with pytest.raises(DecodingError, match="no stream of events"):
            await anext(response.iter_events())
    mock.add("GET", "*", status_code=500, headers={"content-type": "text/event-stream"})
    async with client.stream("GET", "/") as response:
        with pytest.raises(DecodingError, match="500"):
            await anext(response.iter_events())


@pytest.mark.parametrize("piece", [b"x" * 1000, b"data: x\n", b"data\n"])
async def test_an_event_without_an_end(
    mock: MockTransport, piece: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "EVENT_CHARACTERS_MAX", 10_000)
    monkeypatch.setattr(LineReader.__init__, "__defaults__", (10_000,))
    mock.add("GET", "*", headers={"content-type": "text/event-stream"}, content=[piece] * 20_000)
    client = Client("http://a", transport=mock)
    async with client.stream("GET", "/") as response:
        with pytest.raises(TooLarge, match="10000 characters"):
            await anext(response.iter_events())
