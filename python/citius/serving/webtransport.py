"""The ``webtransport`` scope: a session as ASGI's messages, as docs/internals/asgi-webtransport.md says.

Tests: ``tests/asgi/test_webtransport.py``.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Any

from citius._core import Response
from citius.errors import ConnectionClosed
from citius.web.realtime.session_waits import Upkeep, Waiters
from citius.web.realtime.subprotocols import offered_protocols, quoted

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from citius._core import _WebTransport as Core  # pyright: ignore[reportPrivateUsage]

    Message = dict[str, Any]

_PREFIX = "webtransport."
_NOT_BOTH = 2
"""The bit of the number of a stream on which one side sends only (RFC 9000 §2.1)."""
_DATAGRAM = "webtransport.datagram.receive"
_STREAM = "webtransport.stream.receive"
_REFUSED = 0
"""The code of streams that find no place."""


async def serve_session(
    app: Callable[..., Awaitable[object]], scope: dict[str, Any], core: Core
) -> Response | None:
    """Call an application for a session; what it returns is the response to a request that it refuses."""
    fields = [value for name, value in scope["headers"] if name == b"wt-available-protocols"]
    scope["subprotocols"] = offered_protocols(b", ".join(fields).decode("latin-1"))
    session = _Session(core)
    await app(scope, session.receive, session.send)
    if core.close_code is None and not core.is_open:
        if session.refusal is None:
            raise RuntimeError(
                "the ASGI application returned without accepting or closing the session"
            )
        return session.refusal
    return None


class _Session:
    """One session, as its application sees it.

    What waits for an application that does not call ``receive`` is bounded: of each stream one message
    has all bytes that have come; streams are read on only while few messages and bytes wait; and those that
    are over, of which HTTP/3 keeps nothing, are refused when too many do.
    """

    def __init__(self, core: Core) -> None:
        self._core = core
        self._upkeep = Upkeep(core)
        self._messages: deque[Message] = deque([{"type": "webtransport.connect"}])
        self._changed = Waiters()
        self._has_room = Waiters()
        self._unsent: dict[int, int] = {}
        self._receiving: set[int] = set()
        """Streams on which the client may send more."""
        self._sending: set[int] = set()
        """Streams on which the application may send more."""
        self._unread: dict[int, bytearray] = {}
        """Bytes of streams, each of which has one message in the queue."""
        self._unread_bytes = 0
        self._held: deque[int] = deque()
        """Streams of which nothing is read before the application has taken more."""
        self._window_bytes = max(core.limit("body_window_bytes"), 1)
        self._unread_bytes_max = max(core.limit("quic_window_bytes"), self._window_bytes)
        self._streams_max = max(core.limit("webtransport_streams_max"), 1)
        self._queue_bytes_max = max(core.limit("write_queue_bytes_max"), 1)
        self._datagrams: deque[bytes] = deque()
        """As many as there are messages of them in the queue."""
        self._datagrams_max = max(core.limit("webtransport_datagrams_max"), 1)
        self._opening: dict[int, object] = {}
        """What the application knows streams by that are not open yet."""
        self._numbers = 0
        self._start: Message | None = None
        self._body = b""
        self.refusal: Response | None = None
        core.attach(self)

    async def receive(self) -> Message:
        while not self._messages:
            if self._core.close_code is not None:
                reason = self._core.close_reason or ""
                return {
                    "type": "webtransport.disconnect", "code": self._core.close_code, "reason": reason,
                }  # fmt: skip
            await self._changed.wait()
        message = self._messages.popleft()
        if message["type"] == _DATAGRAM:
            message["data"] = self._datagrams.popleft()
        elif message["type"] == _STREAM and message["more_data"]:
            data = message["data"] = bytes(self._unread.pop(message["stream"]))
            self._unread_bytes -= len(data)
            self._core.want(message["stream"], len(data))
        while self._held and self._has_room_to_read():
            self._core.want(self._held.popleft(), self._window_bytes)
        return message

    async def send(self, message: Message) -> None:
        kind = str(message["type"])
        core = self._core
        if self.refusal is not None:
            raise RuntimeError(f"unexpected ASGI message {kind!r}: the session was refused")
        if core.close_code is not None:
            if kind == "webtransport.close":
                return
            raise ConnectionClosed(core.close_code, core.close_reason or "")
        if not core.is_open:
            return self._answer(kind, message)
        match kind.removeprefix(_PREFIX):
            case "stream.send":
                await self._send_on(message)
            case "stream.open":
                self._opening[self._numbers] = message.get("id")
                core.open(self._numbers, bool(message.get("bidirectional", True)))
                self._numbers += 1
            case "stream.reset" | "stream.stop":
                self._give_up(kind, message["stream"], int(message.get("code", 0)))
            case "datagram.send":
                core.send_datagram(message["data"])
            case "close":
                core.close(int(message.get("code", 0)), str(message.get("reason", "")))
            case _:
                raise RuntimeError(f"unexpected ASGI message {kind!r}: the session is accepted")

    def _give_up(self, kind: str, stream: int, code: int) -> None:
        if kind == "webtransport.stream.reset" and stream in self._sending:
            self._core.reset(stream, code)
            self._end_sending(stream)
        elif kind == "webtransport.stream.stop" and stream in self._receiving:
            self._core.stop(stream, code)
            self._receiving.discard(stream)

    def _answer(self, kind: str, message: Message) -> None:
        """The first message, or one of a response in place of a session."""
        if kind == "webtransport.accept" and self._start is None:
            fields = [
                (name.decode("latin-1"), value.decode("latin-1"))
                for name, value in message.get("headers", ())
            ]
            if (chosen := message.get("subprotocol")) is not None:
                fields.append(("wt-protocol", quoted(chosen)))
            self._core.accept(fields or None)
            self._upkeep.begin()
        elif kind == "webtransport.close" and self._start is None:
            self.refusal = Response("Forbidden", 403)
        elif kind == "webtransport.http.response.start" and self._start is None:
            self._start = message
        elif kind == "webtransport.http.response.body" and self._start is not None:
            self._body += message.get("body", b"")
            if not message.get("more_body", False):
                self.refusal = Response(self._body, int(self._start["status"]), _pairs(self._start))
        else:
            raise RuntimeError(
                f"unexpected ASGI message {kind!r}: expected 'webtransport.accept', "
                "'webtransport.close' or 'webtransport.http.response.start'"
            )

    async def _send_on(self, message: Message) -> None:
        stream, core = message["stream"], self._core
        if stream not in self._sending:
            return  # the client reads no more of it, which the application may not have heard
        has_more = bool(message.get("more_data", True))
        unsent = self._unsent.get(stream, 0) + core.send(
            stream, message.get("data", b""), not has_more
        )
        if not has_more:
            self._end_sending(stream)
            return
        self._unsent[stream] = unsent
        if unsent >= self._queue_bytes_max:
            core.await_room(stream)
            while self._unsent.get(stream):
                await self._has_room.wait()

    def _push(self, kind: str, **values: object) -> None:
        self._messages.append({"type": _PREFIX + kind, **values})
        self._changed.wake()

    def _has_room_to_read(self) -> bool:
        return (
            self._unread_bytes < self._unread_bytes_max and len(self._messages) < self._streams_max
        )

    def _end_sending(self, stream: int) -> None:
        self._sending.discard(stream)
        self._unsent.pop(stream, None)
        self._has_room.wake()

    # --- what the extension calls -------------------------------------------------------------------

    def _on_opened(self, stream: int) -> None:
        is_both = not stream & _NOT_BOTH
        if len(self._messages) >= 2 * self._streams_max:
            self._core.stop(stream, _REFUSED)
            if is_both:
                self._core.reset(stream, _REFUSED)
            return
        self._receiving.add(stream)
        if is_both:
            self._sending.add(stream)
        if self._has_room_to_read():
            self._core.want(stream, self._window_bytes)
        else:
            self._held.append(stream)

    def _on_ready(self, number: int, stream: int | None) -> None:
        given = self._opening.pop(number)
        if stream is not None:
            self._sending.add(stream)
            if not stream & _NOT_BOTH:
                self._receiving.add(stream)
                self._core.want(stream, self._window_bytes)
        self._push("stream.opened", id=given, stream=stream)

    def _on_data(self, stream: int, data: bytes) -> None:
        if stream not in self._receiving:
            return
        self._unread_bytes += len(data)
        if (unread := self._unread.get(stream)) is not None:
            unread += data
            return
        self._unread[stream] = bytearray(data)
        self._push("stream.receive", stream=stream, data=b"", more_data=True)

    def _on_end(self, stream: int) -> None:
        if stream in self._receiving:
            self._receiving.discard(stream)
            self._push("stream.receive", stream=stream, data=b"", more_data=False)

    def _on_reset(self, stream: int, code: int | None) -> None:
        if stream in self._receiving:
            self._receiving.discard(stream)
            self._push("stream.reset", stream=stream, code=code)

    def _on_stopped(self, stream: int, code: int | None) -> None:
        if stream in self._sending:
            self._end_sending(stream)
            self._push("stream.stop", stream=stream, code=code)

    def _on_writable(self, stream: int) -> None:
        self._unsent.pop(stream, None)
        self._has_room.wake()

    def _on_datagram(self, data: bytes) -> None:
        self._datagrams.append(data)
        if len(self._datagrams) > self._datagrams_max:
            self._datagrams.popleft()
            self._core.count_dropped()
        else:
            self._push("datagram.receive", data=b"")

    def _on_draining(self, is_by_server: bool) -> None:
        if is_by_server:
            self._upkeep.leave()
        self._push("drain")

    def _on_closed(self, _code: int, _reason: str) -> bool:
        self._upkeep.end()
        self._unsent.clear()
        self._has_room.wake()
        self._changed.wake()
        # As ASGI has it, an application is told, and not cancelled.
        return True


def _pairs(message: Message) -> list[tuple[str, str]]:
    headers = message.get("headers") or ()
    return [(name.decode("latin-1"), value.decode("latin-1")) for name, value in headers]
