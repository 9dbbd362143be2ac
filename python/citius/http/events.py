"""Server-sent events as a client reads them (HTML standard, §9.2.6): bytes in, events out.

Tests: ``tests/http/test_events.py``, ``tests/interop/test_async_client.py``.
"""

from __future__ import annotations

import codecs
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Iterator

EVENT_CHARACTERS_MAX: Final = 16 * 1024 * 1024
"""Length of one event, or of one line; a server that sends more fills the memory of its clients."""


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


class LineReader:
    """Lines of a text that comes in pieces; they end with LF, CRLF or CR. CR is not waited on for an LF.

    Args:
        characters_max: Length of one line at most.
    """

    def __init__(self, characters_max: int = EVENT_CHARACTERS_MAX) -> None:
        self._parts: list[str] = []
        self._length = 0
        self._is_after_cr = False
        self._max = characters_max

    def receive(self, text: str) -> Iterator[str]:
        """The lines that ``text`` completes.

        Raises:
            OverflowError: A line is too long.
        """
        if self._is_after_cr and text:
            self._is_after_cr = False
            text = text.removeprefix("\n")
        start, size = 0, len(text)
        next_lf, next_cr = text.find("\n"), text.find("\r")
        while next_lf >= 0 or next_cr >= 0:
            is_cr = next_cr >= 0 and (next_lf < 0 or next_cr < next_lf)
            end = next_cr if is_cr else next_lf
            line = text[start:end]
            if self._parts:
                line = "".join((*self._parts, line))
                self._parts.clear()
                self._length = 0
            start = end + 1
            if is_cr:
                if start == size:
                    self._is_after_cr = True
                elif text[start] == "\n":
                    start += 1
                next_cr = text.find("\r", start)
            if 0 <= next_lf < start:
                next_lf = text.find("\n", start)
            yield line
        if start < size:
            self._parts.append(text[start:])
            self._length += size - start
            if self._length > self._max:
                raise OverflowError(f"a line of more than {self._max} characters")

    def rest(self) -> str:
        """What is left when the text ends."""
        return "".join(self._parts)


class EventReader:
    """Events of one stream."""

    def __init__(self, last_event_id: str | None = None) -> None:
        self.last_event_id = last_event_id or ""
        self.retry_ms: int | None = None
        """How long the stream asks clients to wait before they come back."""
        self.comments = 0
        """Comments that have come, which is what a heartbeat is."""
        self._decoder = codecs.getincrementaldecoder("utf-8-sig")("replace")
        self._lines = LineReader()
        self._data: list[str] = []
        self._length = 0
        self._event = ""

    def receive(self, data: bytes) -> Iterator[ReceivedEvent]:
        """The events that ``data`` completes.

        Raises:
            OverflowError: An event is too long.
        """
        for line in self._lines.receive(self._decoder.decode(data)):
            if line:
                self._take_field(line)
                continue
            if self._data:
                text = "\n".join(self._data)
                yield ReceivedEvent(text, self._event or "message", self.last_event_id)
            self._data, self._event, self._length = [], "", 0

    def _take_field(self, line: str) -> None:
        name, _, value = line.partition(":")
        value = value.removeprefix(" ")
        if not name:
            self.comments += 1
        elif name == "data":
            self._data.append(value)
            self._length += len(value) + 1  # an empty line is one more, and takes memory
            if self._length > EVENT_CHARACTERS_MAX:
                raise OverflowError(f"an event of more than {EVENT_CHARACTERS_MAX} characters")
        elif name == "event":
            self._event = value
        elif name == "id" and "\0" not in value:
            self.last_event_id = value
        elif name == "retry" and value.isascii() and value.isdecimal():
            self.retry_ms = int(value[:18])
