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
_DATAGRAM = "webtransport.datagram.receive"


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
    """One session, as its application sees it."""

    def __init__(self, core: Core) -> None:
        self._core = core
        self._upkeep = Upkeep(core)
        self._messages: deque[Message] = deque([{"type": "webtransport.connect"}])
        self._changed = Waiters()
        self._has_room = Waiters()
        self._unsent: dict[int, int] = {}
        self._window_bytes = max(core.limit("body_window_bytes"), 1)
        self._queue_bytes_max = max(core.limit("write_queue_bytes_max"), 1)
        self._n_datagrams = 0
        self._datagrams_max = max(core.limit("webtransport_datagrams_max"), 1)
        self._numbers: list[object] = []
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
            self._n_datagrams -= 1
        if message["type"] == "webtransport.stream.receive" and message["more_data"]:
            self._core.want(message["stream"], len(message["data"]))
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
                self._numbers.append(message.get("id"))
                core.open(len(self._numbers) - 1, bool(message.get("bidirectional", True)))
            case "stream.reset":
                self._unsent.pop(message["stream"], None)
                core.reset(message["stream"], int(message.get("code", 0)))
            case "stream.stop":
                core.stop(message["stream"], int(message.get("code", 0)))
            case "datagram.send":
                core.send_datagram(message["data"])
            case "close":
                core.close(int(message.get("code", 0)), str(message.get("reason", "")))
            case _:
                raise RuntimeError(f"unexpected ASGI message {kind!r}: the session is accepted")

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
        has_more = bool(message.get("more_data", True))
        unsent = self._unsent.get(stream, 0) + core.send(
            stream, message.get("data", b""), not has_more
        )
        if not has_more:
            self._unsent.pop(stream, None)
            return
        self._unsent[stream] = unsent
        if unsent >= self._queue_bytes_max:
            core.await_room(stream)
            while self._unsent.get(stream):
                await self._has_room.wait()

    def _push(self, kind: str, **values: object) -> None:
        self._messages.append({"type": _PREFIX + kind, **values})
        self._changed.wake()

    # --- what the extension calls -------------------------------------------------------------------

    def _on_opened(self, stream: int) -> None:
        self._core.want(stream, self._window_bytes)

    def _on_ready(self, number: int, stream: int | None) -> None:
        given, self._numbers[number] = self._numbers[number], None
        if stream is not None and not stream & 2:
            self._core.want(stream, self._window_bytes)
        self._push("stream.opened", id=given, stream=stream)

    def _on_data(self, stream: int, data: bytes) -> None:
        self._push("stream.receive", stream=stream, data=data, more_data=True)

    def _on_end(self, stream: int) -> None:
        self._push("stream.receive", stream=stream, data=b"", more_data=False)

    def _on_reset(self, stream: int, code: int | None) -> None:
        self._push("stream.reset", stream=stream, code=code)

    def _on_stopped(self, stream: int, code: int | None) -> None:
        self._unsent.pop(stream, None)
        self._has_room.wake()
        self._push("stream.stop", stream=stream, code=code)

    def _on_writable(self, stream: int) -> None:
        self._unsent.pop(stream, None)
        self._has_room.wake()

    def _on_datagram(self, data: bytes) -> None:
        if self._n_datagrams >= self._datagrams_max:
            oldest = next(one for one in self._messages if one["type"] == _DATAGRAM)
            self._messages.remove(oldest)
        else:
            self._n_datagrams += 1
        self._push("datagram.receive", data=data)

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
