"""Server-sent events as a client reads them (HTML standard, §9.2.6), for the test clients.

Tests: ``tests/interop/test_async_client.py``.
"""

from __future__ import annotations

import codecs
from collections import deque
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from citius.testing.bodies import pairs

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator

    from citius.testing.bodies import Pairs
    from citius.testing.requests import TestResponse


class EventStreamRefused(Exception):
    """The response to a request for an event stream was not one."""

    def __init__(self, response: TestResponse) -> None:
        super().__init__(f"the response was {response.status_code}, not a stream of events")
        self.response = response


@dataclass(frozen=True, slots=True)
class ReceivedEvent:
    """One event, as a browser dispatches it."""

    data: str
    event: str = "message"
    id: str = ""
    """The last one that the stream has sent, with this event or before."""

    def json(self) -> Any:
        """The data, decoded."""
        import msgspec

        return msgspec.json.decode(self.data)


class EventReader:
    """Events of one stream: bytes in, events out."""

    def __init__(self, last_event_id: str | None = None) -> None:
        self.last_event_id = last_event_id or ""
        self.retry_ms: int | None = None
        """How long the stream asks clients to wait before they come back."""
        self.comments = 0
        """Comments that have come, which is what a heartbeat is."""
        self._decoder = codecs.getincrementaldecoder("utf-8-sig")("replace")
        self._text = ""
        self._is_after_cr = False
        self._data: list[str] = []
        self._event = ""

    def request_fields(self, headers: Pairs | None) -> list[tuple[str, str]]:
        """The fields of the request."""
        fields = [*pairs(headers), ("accept", "text/event-stream"), ("cache-control", "no-cache")]
        if self.last_event_id:
            fields.append(("last-event-id", self.last_event_id))
        return fields

    @staticmethod
    def accepts(response: TestResponse) -> bool:
        """Whether the response is a stream of events."""
        content_type = response.headers.get("content-type") or ""
        essence = content_type.partition(";")[0].strip().lower()
        return response.status_code == 200 and essence == "text/event-stream"

    def receive(self, data: bytes) -> Iterator[ReceivedEvent]:
        """The events that ``data`` completes."""
        self._text += self._decoder.decode(data)
        while (line := self._take_line()) is not None:
            if line:
                self._take_field(line)
                continue
            if self._data:
                text = "\n".join(self._data)
                yield ReceivedEvent(text, self._event or "message", self.last_event_id)
            self._data, self._event = [], ""

    def _take_line(self) -> str | None:
        """The next line; it ends with LF, CRLF or CR. One that ends with CR is not waited on for an LF."""
        if self._is_after_cr and self._text:
            self._is_after_cr = False
            self._text = self._text.removeprefix("\n")
        ends = [end for end in (self._text.find("\n"), self._text.find("\r")) if end >= 0]
        if not ends:
            return None
        end = min(ends)
        self._is_after_cr = self._text[end] == "\r"
        line, self._text = self._text[:end], self._text[end + 1 :]
        return line

    def _take_field(self, line: str) -> None:
        name, _, value = line.partition(":")
        value = value.removeprefix(" ")
        if not name:
            self.comments += 1
        elif name == "data":
            self._data.append(value)
        elif name == "event":
            self._event = value
        elif name == "id" and "\0" not in value:
            self.last_event_id = value
        elif name == "retry" and value.isascii() and value.isdecimal():
            self.retry_ms = int(value)


class _Source:
    """What both kinds of streams have."""

    def __init__(self, response: TestResponse, reader: EventReader) -> None:
        self.response = response
        """The response that the events come in."""
        self.last_event_id = reader.last_event_id
        """The ``id`` to come back with: that of the last event that was taken from here."""
        self._reader = reader
        self._ready: deque[ReceivedEvent] = deque()

    def _take(self) -> ReceivedEvent:
        event = self._ready.popleft()
        self.last_event_id = event.id
        return event

    @property
    def retry_ms(self) -> int | None:
        """How long the stream asks clients to wait before they come back."""
        return self._reader.retry_ms

    @property
    def comments(self) -> int:
        """Comments that have come, which is what a heartbeat is."""
        return self._reader.comments


class EventSource(_Source):
    """The events of a stream, as they come."""

    def __init__(
        self, response: TestResponse, reader: EventReader, pieces: Iterator[bytes]
    ) -> None:
        super().__init__(response, reader)
        self._pieces = pieces

    def __iter__(self) -> Iterator[ReceivedEvent]:
        return self

    def __next__(self) -> ReceivedEvent:
        while not self._ready:
            self._ready.extend(self._reader.receive(next(self._pieces)))
        return self._take()


class AsyncEventSource(_Source):
    """The events of a stream, as they come; of ``AsyncClient``."""

    def __init__(
        self, response: TestResponse, reader: EventReader, pieces: AsyncIterator[bytes]
    ) -> None:
        super().__init__(response, reader)
        self._pieces = pieces

    def __aiter__(self) -> AsyncIterator[ReceivedEvent]:
        return self

    async def __anext__(self) -> ReceivedEvent:
        while not self._ready:
            self._ready.extend(self._reader.receive(await anext(self._pieces)))
        return self._take()
