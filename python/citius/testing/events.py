"""Server-sent events for the test clients; ``citius.http.events`` reads them.

Tests: ``tests/interop/test_async_client.py``.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

from citius.http.events import EventReader as Reader
from citius.http.events import ReceivedEvent
from citius.testing.bodies import pairs

__all__ = ["AsyncEventSource", "EventReader", "EventSource", "EventStreamRefused", "ReceivedEvent"]

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator

    from citius.testing.bodies import Pairs
    from citius.testing.requests import TestResponse


class EventStreamRefused(Exception):
    """The response to a request for an event stream was not one."""

    def __init__(self, response: TestResponse) -> None:
        super().__init__(f"the response was {response.status_code}, not a stream of events")
        self.response = response


class EventReader(Reader):
    """Events of one stream, and the fields of the request for it."""

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
