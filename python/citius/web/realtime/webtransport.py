"""WebTransport: sessions with streams in both directions and datagrams, over HTTP/3.

    @app.webtransport("/echo")
    async def echo(session: WebTransportSession) -> None:
        async for stream in session.incoming():
            ...

``crates/citius-py/src/gateway/wt/`` tells a session what comes, by its ``_on_`` methods, in the
thread of its event loop; here are the queues, and what waits for them. Long because a session and its streams
are one thing in two classes. Tests: ``tests/http3/test_webtransport.py``.
"""

# pyright: reportPrivateUsage=false

from __future__ import annotations

import functools
from collections import deque
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Self

from citius.errors import ConnectionClosed, StreamReset
from citius.web.realtime.session_waits import Upkeep, Waiters, running_loop
from citius.web.realtime.subprotocols import offered_protocols, quoted

if TYPE_CHECKING:
    import asyncio
    from collections.abc import (
        AsyncGenerator,
        AsyncIterator,
        Callable,
        Coroutine,
        Iterable,
        Mapping,
    )
    from types import TracebackType

    from typing_extensions import Buffer

    from citius._core import Request
    from citius._core import _WebTransport as Core
    from citius.web.binding.headers import Headers, QueryParams

_NOT_BOTH = 2
"""The bit of the number of a stream on which one side sends only (RFC 9000 §2.1)."""
_CANCELLED = 0


class WebTransportStream:
    """A stream of a session: bytes in one direction or in both.

    ``async with stream:`` closes the sending side at the end; where the block fails it is reset. In both
    cases nothing more is read.
    """

    __slots__ = (
        "_asks_room",
        "_changed",
        "_chunks",
        "_core",
        "_credit",
        "_ended",
        "_held",
        "_id",
        "_on_stop",
        "_receives",
        "_room",
        "_sends",
        "_session",
        "_stopped",
        "_unsent",
    )  # fmt: skip

    def __init__(self, session: WebTransportSession, number: int, receives: bool, sends: bool):
        self._session, self._core, self._id = session, session._core, number
        self._receives, self._sends = receives, sends
        self._chunks: deque[bytes] = deque()
        self._held = 0
        self._credit = 0
        self._ended: StreamReset | bool = not receives
        """Whether the client has finished its side, or how it has reset it."""
        self._changed = Waiters()
        self._unsent = 0
        self._stopped: StreamReset | None = None
        """How the client has said that it reads no more."""
        self._asks_room = False
        self._room = Waiters()
        self._on_stop: Callable[[], object] | None = None

    @property
    def session(self) -> WebTransportSession:
        """The session that it is of."""
        return self._session

    @property
    def id(self) -> int:
        """Its number, as QUIC has it."""
        return self._id

    @property
    def is_readable(self) -> bool:
        """Whether the client sends on it."""
        return self._receives

    @property
    def is_writable(self) -> bool:
        """Whether the server sends on it."""
        return self._sends

    @property
    def is_bidirectional(self) -> bool:
        """Whether both sides send on it."""
        return not self._id & _NOT_BOTH

    async def read(self, bytes_max: int = 65536) -> bytes:
        """The next bytes, as many as there are; ``b""`` when the client has finished its side.

        Raises:
            StreamReset: The client has reset it.
            ConnectionClosed: The session is over.
        """
        if not self._receives:
            raise RuntimeError("only the server sends on this stream")
        while not self._chunks:
            if isinstance(self._ended, StreamReset):
                raise self._ended
            if self._ended:
                return b""
            self._session._check_open()
            self._replenish()
            await self._changed.wait()
        chunk = self._chunks.popleft()
        if len(chunk) > bytes_max:
            self._chunks.appendleft(chunk[bytes_max:])
            chunk = chunk[:bytes_max]
        self._held -= len(chunk)
        return chunk

    async def read_all(self, bytes_max: int) -> bytes:
        """Everything up to the end that the client gives it.

        Raises:
            ValueError: It is more than ``bytes_max``; the stream is stopped.
            StreamReset: The client has reset it.
            ConnectionClosed: The session is over.
        """
        parts: list[bytes] = []
        length = 0
        while part := await self.read():
            parts.append(part)
            length += len(part)
            if length > bytes_max:
                self.stop()
                raise ValueError(f"the stream has more than {bytes_max} bytes")
        return b"".join(parts)

    def __aiter__(self) -> AsyncIterator[bytes]:
        return self._pieces()

    async def _pieces(self) -> AsyncGenerator[bytes, None]:
        while piece := await self.read():
            yield piece

    async def write(self, data: Buffer) -> None:
        """Send bytes; waits while too much of what was sent is under way.

        Raises:
            StreamReset: The client reads no more of it.
            ConnectionClosed: The session is over.
        """
        self._check_sends()
        self._unsent += self._core.send(self._id, data, False)
        if self._unsent < self._session._write_queue_bytes_max:
            return
        while self._unsent:
            if not self._asks_room:
                self._asks_room = True
                self._core.await_room(self._id)
            await self._room.wait()
            self._check_sends()

    async def close(self) -> None:
        """Finish the sending side: the client gets the end behind what was written."""
        if self._sends and self._session.is_open:
            self._core.send(self._id, b"", True)
            self._end_sending()

    def reset(self, code: int = _CANCELLED) -> None:
        """Give up the sending side: what is under way is lost, and the client is told the code."""
        if self._sends:
            self._core.reset(self._id, code)
            self._end_sending()

    def stop(self, code: int = _CANCELLED) -> None:
        """Read no more, and ask the client to send no more."""
        if self._receives:
            self._chunks.clear()
            if self._ended is False:
                self._core.stop(self._id, code)
                self._ended = True
                self._changed.wake()
                self._session._forget(self)

    def on_stopped(self, call: Callable[[], object]) -> None:
        """Have a function called, once, when the client says that it reads no more; at once if it has."""
        if self._stopped is not None:
            call()
        else:
            self._on_stop = call

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if kind is None:
            await self.close()
        else:
            self.reset()
        self.stop()

    def __repr__(self) -> str:
        kind = "bidirectional" if self.is_bidirectional else "unidirectional"
        return f"<WebTransportStream {self._id} {kind}>"

    # --- within -------------------------------------------------------------------------------------

    @property
    def _is_over(self) -> bool:
        return self._ended is not False and not self._sends

    def _replenish(self) -> None:
        """Ask for as many bytes as may be held."""
        window = self._session._window_bytes
        missing = window - self._credit - self._held
        if missing * 2 >= window:
            self._credit += missing
            self._core.want(self._id, missing)

    def _check_sends(self) -> None:
        self._session._check_open()
        if not self._sends:
            if self._stopped is not None:
                raise self._stopped
            raise RuntimeError("this stream was finished, or only the client sends on it")

    def _end_sending(self) -> None:
        self._sends = False
        self._unsent = 0
        self._room.wake()
        self._session._forget(self)

    def _on_data(self, data: bytes) -> None:
        self._credit -= len(data)
        self._held += len(data)
        self._chunks.append(data)
        self._changed.wake()

    def _on_end(self, ended: StreamReset | bool) -> None:
        self._ended = ended
        self._changed.wake()
        self._session._forget(self)


class WebTransportSession:
    """A session of one client: streams in both directions, and datagrams.

    The first use accepts it, unless it was accepted before. When its handler ends it is closed, with code 0,
    or 1011 if the handler has failed; what is under way on its streams is lost then, so wait for
    :meth:`wait_closed` where that matters.
    """

    __slots__ = (
        "__weakref__", "_changed", "_core", "_datagrams", "_datagrams_max", "_drained", "_dropped",
        "_incoming", "_is_draining", "_numbers", "_offered", "_opening", "_streams", "_streams_max",
        "_subprotocol", "_upkeep", "_window_bytes",
        "_write_queue_bytes_max",
    )  # fmt: skip

    def __init__(self, core: Core) -> None:
        self._core = core
        self._offered: list[str] | None = None
        self._subprotocol: str | None = None
        self._changed = Waiters()
        self._drained = Waiters()
        self._streams: dict[int, WebTransportStream] = {}
        self._incoming: deque[WebTransportStream] = deque()
        self._opening: dict[int, asyncio.Future[int | None]] = {}
        self._numbers = 0
        self._datagrams: deque[bytes] = deque()
        self._datagrams_max = max(core.limit("webtransport_datagrams_max"), 1)
        self._streams_max = max(core.limit("webtransport_streams_max"), 1)
        self._dropped = 0
        self._upkeep = Upkeep(core)
        self._is_draining = False
        self._window_bytes = max(core.limit("body_window_bytes"), 1)
        self._write_queue_bytes_max = max(core.limit("write_queue_bytes_max"), 1)
        core.attach(self)

    # --- the request --------------------------------------------------------------------------------

    @property
    def request(self) -> Request:
        """The request that it was made of."""
        return self._core.request

    @property
    def path(self) -> str:
        """The path of the request."""
        return self.request.path

    @property
    def path_params(self) -> dict[str, Any]:
        """Parameters in the path."""
        return self.request.path_params

    @property
    def query(self) -> QueryParams:
        """Parameters in the query."""
        return self.request.query

    @property
    def headers(self) -> Headers:
        """Fields of the request."""
        return self.request.headers

    @property
    def cookies(self) -> Mapping[str, str]:
        """Cookies of the request; browsers send none."""
        return self.request.cookies

    @property
    def client(self) -> tuple[str, int] | None:
        """Address and port of the client."""
        return self.request.client

    @property
    def state(self) -> Any:
        """A namespace for the handler."""
        return self.request.state

    @property
    def app(self) -> Any:
        """The application."""
        return self.request.app

    # --- from its beginning to its end --------------------------------------------------------------

    @property
    def subprotocols(self) -> list[str]:
        """What the client has offered (``WT-Available-Protocols``), best first."""
        if self._offered is None:
            self._offered = offered_protocols(self.headers.get("wt-available-protocols") or "")
        return self._offered

    @property
    def subprotocol(self) -> str | None:
        """What was agreed on."""
        return self._subprotocol

    async def accept(
        self,
        subprotocol: str | None = None,
        headers: Mapping[str, str] | Iterable[tuple[str, str]] | None = None,
    ) -> None:
        """Grant the client its session.

        Args:
            subprotocol: One of ``subprotocols``.
            headers: Fields of the response.

        Raises:
            ConnectionClosed: The client is gone.
        """
        named: Any = headers.items() if hasattr(headers, "items") else headers  # pyright: ignore
        pairs: list[tuple[str, str]] = [*named] if named else []
        if subprotocol is not None:
            if subprotocol not in self.subprotocols:
                raise ValueError(
                    f"the client has not offered the subprotocol {subprotocol!r}, but {self.subprotocols}"
                )
            pairs.append(("wt-protocol", quoted(subprotocol)))
        self._core.accept(pairs or None)
        self._subprotocol = subprotocol
        self._upkeep.begin()

    @property
    def is_open(self) -> bool:
        """Whether it was accepted, and is not over."""
        return self._core.is_open

    @property
    def close_code(self) -> int | None:
        """What it was closed with; 1006 if it was lost, ``None`` while it is not over."""
        return self._core.close_code

    @property
    def close_reason(self) -> str | None:
        """What was said about it."""
        return self._core.close_reason

    async def close(self, code: int = 0, reason: str = "") -> None:
        """Close it, with a code and at most 1024 bytes of a reason; what is under way on streams is lost."""
        if not 0 <= code < 1 << 32:
            raise ValueError(f"a close code is 0 to 4294967295, got {code}")
        if len(reason.encode()) > 1024:
            raise ValueError("the reason of a close has at most 1024 bytes in UTF-8")
        self._core.close(code, reason)

    async def wait_closed(self) -> None:
        """Wait until it is over."""
        await self._accepted()
        while self.close_code is None:
            await self._changed.wait()

    @property
    def is_draining(self) -> bool:
        """Whether one of the two sides has asked for its end."""
        return self._is_draining

    async def wait_draining(self) -> None:
        """Wait until one of the two sides asks for its end: the client, or the server that stops or reloads.

        A server that stops closes it with 1012, ``webtransport_drain_ms`` later.
        """
        await self._accepted()
        while not self.is_draining and self.close_code is None:
            await self._drained.wait()

    # --- streams ------------------------------------------------------------------------------------

    async def incoming(self) -> AsyncGenerator[WebTransportStream, None]:
        """Streams that the client opens, until the session is over."""
        await self._accepted()
        while True:
            while self._incoming:
                yield self._incoming.popleft()
            if self.close_code is not None:
                return
            await self._changed.wait()

    async def open_bidirectional(self) -> WebTransportStream:
        """Open a stream on which both sides send; waits while the client allows no more.

        Raises:
            RuntimeError: As many streams are open as ``webtransport_streams_max`` says.
            ConnectionClosed: The session is over.
        """
        return await self._open(is_bidirectional=True)

    async def open_unidirectional(self) -> WebTransportStream:
        """Open a stream on which the server sends; waits while the client allows no more.

        Raises:
            RuntimeError: As many streams are open as ``webtransport_streams_max`` says.
            ConnectionClosed: The session is over.
        """
        return await self._open(is_bidirectional=False)

    # --- datagrams ----------------------------------------------------------------------------------

    @property
    def datagram_bytes_max(self) -> int:
        """The largest datagram that can be sent; 0 if the client takes none."""
        return self._core.datagram_bytes_max

    @property
    def datagrams_dropped(self) -> int:
        """Datagrams that the handler was too slow for: more than ``webtransport_datagrams_max`` waited."""
        return self._dropped

    def send_datagram(self, data: Buffer) -> None:
        """Send a datagram, or lose it, as on any network.

        Raises:
            ValueError: It is longer than ``datagram_bytes_max``.
            ConnectionClosed: The session is over.
        """
        self._check_open()
        self._core.send_datagram(data)

    async def receive_datagram(self) -> bytes:
        """The next datagram.

        Raises:
            ConnectionClosed: The session is over.
        """
        await self._accepted()
        while not self._datagrams:
            self._check_open()
            await self._changed.wait()
        return self._datagrams.popleft()

    async def datagrams(self) -> AsyncGenerator[bytes, None]:
        """Datagrams, until the session is over."""
        with suppress(ConnectionClosed):
            while True:
                yield await self.receive_datagram()

    def __repr__(self) -> str:
        state = "open" if self.is_open else "not accepted" if self.close_code is None else "closed"
        return f"<WebTransportSession {self.path} {state}>"

    # --- within -------------------------------------------------------------------------------------

    async def _accepted(self) -> None:
        if not self.is_open and self.close_code is None:
            await self.accept()

    def _check_open(self) -> None:
        if self.close_code is not None:
            raise ConnectionClosed(self.close_code, self.close_reason or "")
        if not self.is_open:
            self._core.accept(None)
            self._upkeep.begin()

    async def _open(self, *, is_bidirectional: bool) -> WebTransportStream:
        self._check_open()
        number = self._numbers
        self._numbers += 1
        future = running_loop().create_future()
        self._opening[number] = future
        self._core.open(number, is_bidirectional)
        # A cancelled one stays in the table: the stream is reset when it opens.
        stream = await future
        if stream is None:
            self._check_open()
            raise RuntimeError(
                "as many streams are open as webtransport_streams_max says; close some of them"
            )
        made = WebTransportStream(self, stream, is_bidirectional, True)
        self._streams[stream] = made
        return made

    def _forget(self, stream: WebTransportStream) -> None:
        if stream._is_over:
            self._streams.pop(stream._id, None)

    # --- what the extension calls -------------------------------------------------------------------

    def _on_opened(self, number: int) -> None:
        if len(self._incoming) >= self._streams_max:
            # Those that are over count nowhere else, and more would come while the handler takes none.
            self._core.stop(number, _CANCELLED)
            if not number & _NOT_BOTH:
                self._core.reset(number, _CANCELLED)
            return
        stream = WebTransportStream(self, number, True, not number & _NOT_BOTH)
        self._streams[number] = stream
        self._incoming.append(stream)
        self._changed.wake()

    def _on_ready(self, number: int, stream: int | None) -> None:
        future = self._opening.pop(number)
        if not future.done():
            future.set_result(stream)
        elif stream is not None:
            self._core.reset(stream, _CANCELLED)
            if not stream & _NOT_BOTH:
                self._core.stop(stream, _CANCELLED)

    def _on_data(self, number: int, data: bytes) -> None:
        if (stream := self._streams.get(number)) is not None:
            stream._on_data(data)

    def _on_end(self, number: int) -> None:
        if (stream := self._streams.get(number)) is not None:
            stream._on_end(True)

    def _on_reset(self, number: int, code: int | None) -> None:
        if (stream := self._streams.get(number)) is not None:
            stream._on_end(StreamReset(code))

    def _on_stopped(self, number: int, code: int | None) -> None:
        if (stream := self._streams.get(number)) is not None:
            stream._stopped = StreamReset(code)
            stream._end_sending()
            if stream._on_stop is not None:
                stream._on_stop()

    def _on_writable(self, number: int) -> None:
        if (stream := self._streams.get(number)) is not None:
            stream._unsent, stream._asks_room = 0, False
            stream._room.wake()

    def _on_datagram(self, data: bytes) -> None:
        if len(self._datagrams) >= self._datagrams_max:
            self._datagrams.popleft()
            self._dropped += 1
            self._core.count_dropped()
        self._datagrams.append(data)
        self._changed.wake()

    def _on_draining(self, is_by_server: bool) -> None:
        if is_by_server:
            self._upkeep.leave()
        self._is_draining = True
        self._drained.wake()

    def _on_closed(self, _code: int, _reason: str) -> bool:
        """All that waits goes on, and finds the end; whether there was anything."""
        self._upkeep.end()
        waiting = [self._changed.wake(), self._drained.wake()]
        for stream in self._streams.values():
            waiting += [stream._changed.wake(), stream._room.wake()]
        for future in self._opening.values():
            if not future.done():
                future.set_result(None)
                waiting.append(True)
        self._streams.clear()
        return any(waiting)


def handler_of_session(
    handler: Callable[[Any], Coroutine[Any, Any, Any]],
) -> Callable[[Core], Coroutine[Any, Any, Any]]:
    """A handler as the extension calls it."""

    def handle(core: Core) -> Coroutine[Any, Any, Any]:
        return handler(WebTransportSession(core))

    return functools.update_wrapper(handle, handler)
