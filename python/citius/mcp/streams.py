"""Streams that clients may come back to with ``Last-Event-ID``, over any worker and node.

What a call sends is a run (web/realtime/runs/run_keeper.py): its messages go to the client, and beside that
into the store of runs, which every worker reads. A client that comes back gets what it has not seen, up to
the response; a call whose worker is lost is answered with an error. News of resources are a broadcast with a
history. Tests: ``tests/mcp/test_resuming.py``.
"""

from __future__ import annotations

import asyncio
from collections import deque
from contextlib import suppress
from hashlib import blake2b
from typing import TYPE_CHECKING, Final

from citius._core import Response
from citius.cluster.engines import EngineAway
from citius.cluster.runstores import RunRecord, TableRuns
from citius.errors import HTTPError, ServiceUnavailable
from citius.mcp.faults import INTERNAL_ERROR, INVALID_REQUEST, Fault
from citius.mcp.protocol import encode, parsed
from citius.web.realtime.events import Event, EventStream
from citius.web.realtime.history import event_with_id
from citius.web.realtime.runs.run_keeper import keeper_of
from citius.web.realtime.runs.run_readers import NOTHING, items
from citius.web.realtime.runs.run_tasks import END, EVENT_BYTES_MAX, GAP, RunLimits

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable
    from collections.abc import Set as AbstractSet

    from citius.mcp.protocol import RequestId
    from citius.mcp.server import MCPServer
    from citius.mcp.sessions import Session, Sessions
    from citius.web.application.app import App
    from citius.web.realtime.runs.run_keeper import RunKeeper
    from citius.web.realtime.runs.run_tasks import Follower

HISTORY: Final = 1024
"""Messages of a call that are kept. Exceeded: the first ones are given up."""
HISTORY_BYTES_MAX: Final = 4 * 1024 * 1024
"""Bytes of them. Exceeded: likewise."""
PENDING_BYTES_MAX: Final = 1024 * 1024
"""Bytes that wait for the store. Exceeded: reports of progress and logs are left out."""
CALLS_MAX: Final = 1000
"""Calls of a worker whose streams are kept. Exceeded: the streams of further ones cannot be resumed."""
NEWS: Final = 256
"""News of resources that are kept for sessions that come back. Exceeded: the oldest ones are given up."""

_HEARTBEAT_S: Final = 15.0
_HEARTBEAT: Final = b":\n\n"
# What a record and a key take beside a message.
_OVERHEAD_BYTES: Final = 1024
_PRIMED_SINCE: Final = "2025-11-25"
"""Clients of this version and later take an event without data, which has an identifier to come back with."""


class KeptCall:
    """The messages of a call on their way into the store: what its run takes."""

    def __init__(self, identifier: RequestId, bytes_max: int, stop: Callable[[], object]) -> None:
        self.run = ""
        self._identifier = identifier
        self._bytes_max = bytes_max
        self._stop = stop
        self._keeper: RunKeeper | None = None
        self._follower: Follower | None = None
        self._waiting: deque[bytes] = deque()
        self._waiting_bytes = 0
        self._reader: asyncio.Future[None] | None = None
        self._number = 0
        self._is_ended = False

    def begun(self, run: str, keeper: RunKeeper) -> None:
        """The run has begun, and the client reads it."""
        self.run, self._keeper = run, keeper
        self._follower = keeper.follow(run)

    def unread(self) -> None:
        """The client has left; it may come back."""
        follower, self._follower = self._follower, None
        if follower is not None and self._keeper is not None:
            self._keeper.unfollow(self.run, follower)

    def put(self, message: bytes, *, is_needed: bool) -> str | None:
        """Keep a message; its identifier, ``None`` if it is left out."""
        if self._is_ended:
            return None
        if not is_needed and self._waiting_bytes + len(message) > PENDING_BYTES_MAX:
            return None
        if len(message) > self._bytes_max:
            message = _error(self._identifier, f"{len(message)} bytes are too many to be kept")
        self._waiting.append(message)
        self._waiting_bytes += len(message)
        self._number += 1
        self._wake()
        return f"{self.run}:{self._number}"

    def end(self) -> None:
        """There is no more."""
        self._is_ended = True
        self._wake()

    def _wake(self) -> None:
        if self._reader is not None and not self._reader.done():
            self._reader.set_result(None)

    # --- what the run takes ---------------------------------------------------------------------------

    def __aiter__(self) -> KeptCall:
        return self

    async def __anext__(self) -> Event:
        while not self._waiting:
            if self._is_ended:
                raise StopAsyncIteration
            self._reader = asyncio.get_running_loop().create_future()
            try:
                await self._reader
            finally:
                self._reader = None
        message = self._waiting.popleft()
        self._waiting_bytes -= len(message)
        return Event(message.decode())

    async def aclose(self) -> None:
        """The run is over: by its last message, by its time, without a reader, or by a shutdown."""
        self._is_ended = True
        self._stop()


class Streams:
    """The streams of one server's calls."""

    def __init__(self, server: MCPServer) -> None:
        self._server = server
        self._keeper: RunKeeper | None = None
        self._limits: RunLimits | None = None

    def open(self, app: App) -> None:
        """Find where streams are kept, when the application is frozen."""
        resume_s = self._server.resume_s
        if not resume_s:
            return
        self._keeper = keeper_of(app)
        self._limits = RunLimits(
            self._server.session_s,
            resume_s,
            resume_s,
            HISTORY,
            HISTORY_BYTES_MAX,
            CALLS_MAX,
            1,
            "mcp",
        )

    async def begin(
        self, session: Session, identifier: RequestId, stop: Callable[[], object]
    ) -> KeptCall | None:
        """Keep the stream of a call from now on; ``None`` if that is not possible.

        Args:
            session: Whose call it is.
            identifier: Its identifier.
            stop: Called when the run is over.
        """
        keeper, limits = self._keeper, self._limits
        if keeper is None or limits is None or not session.key:
            return None
        bytes_max = EVENT_BYTES_MAX
        if isinstance(keeper.store, TableRuns):
            bytes_max = min(bytes_max, keeper.store.value_bytes_max)
        kept = KeptCall(identifier, bytes_max - _OVERHEAD_BYTES, stop)
        record = RunRecord("", "", self._place(session, identifier), limits.keep_s)
        try:
            run = await keeper.begin(record, limits, kept, f"of MCP at {self._server.path}")
        except (HTTPError, EngineAway):
            return None  # the client is not told of an identifier that it could come back with
        kept.begun(run, keeper)
        return kept

    def _place(self, session: Session, identifier: RequestId) -> str:
        """Whose stream it is, and the identifier of its request."""
        owner = blake2b(f"{self._server.full_path} {session.key}".encode(), digest_size=16)
        return f"{owner.hexdigest()} {encode(identifier).decode()}"

    async def resumed(self, session: Session, known: str) -> Response | None:
        """The rest of a stream; ``None`` if ``known`` is not an identifier of one of a call.

        Raises:
            Fault: It is not kept, or another session's.
        """
        run, colon, number = known.rpartition(":")
        if not colon or self._keeper is None or not number.isascii() or not number.isdigit():
            return None
        keeper = self._keeper
        try:
            record = await keeper.store.find(run)
        except EngineAway:
            raise ServiceUnavailable("streams cannot be read now", {"retry-after": "1"}) from None
        place, _, identifier = ("" if record is None else record.path).partition(" ")
        if record is None or place != self._place(session, "").partition(" ")[0]:
            raise Fault(INVALID_REQUEST, "the stream is not kept any more", status=400)
        fields = {"cache-control": "no-cache", "x-accel-buffering": "no"}
        body = self._rest(keeper, run, int(number[:15]), parsed(identifier.encode()))
        return Response(body, 200, fields, "text/event-stream")

    async def _rest(
        self, keeper: RunKeeper, run: str, after: int, identifier: RequestId
    ) -> AsyncGenerator[bytes]:
        yield _HEARTBEAT  # clients and proxies see the header section at once
        source = items(keeper, run, after, _HEARTBEAT_S)
        try:
            async for item in source:
                if item is NOTHING:
                    yield _HEARTBEAT
                elif item.event == END:
                    if parsed(item.data.encode()).get("state") != "done":
                        yield event_of(_error(identifier, "the call was cut off"))
                    return
                elif item.event != GAP:
                    # What a gap stands for are reports and logs, which a client need not see.
                    data = event_of(item.data.encode())
                    yield event_with_id(f"{run}:{item.number}", data)
        finally:
            await source.aclose()
        # The client may have messages that its worker was lost with before the store had them: the end of the
        # run has a lower number then.
        if not keeper.is_draining and await _is_cut_off(keeper, run):
            yield event_of(_error(identifier, "the call was cut off"))
        if keeper.spread_s:
            yield retry_within(keeper.spread_s)


class NewsStream(EventStream):
    """The stream of a session: what has changed of the resources that it has subscribed to."""

    def __init__(
        self,
        sessions: Sessions,
        key: str,
        own: list[NewsStream],
        on_close: Callable[[EventStream], object],
    ) -> None:
        super().__init__(on_close=on_close, slow="drop")
        self._sessions = sessions
        self._key = key
        self._own = own
        """The streams of the session in this worker; each news is sent on the first."""
        self._unsorted: deque[tuple[bytes, bool]] = deque()
        self._sorting: asyncio.Task[None] | None = None

    def _send_here(self, data: bytes) -> bool:
        if b"\ndata: {" not in data:
            return super()._send_here(data)  # when to come back
        if not data.startswith(b"event: gap"):
            self._sort(data, is_missed=False)
        return not self.is_closed

    def _resume(self, data: bytes) -> None:
        if not data.startswith(b"event: gap"):
            self._sort(data, is_missed=True)

    def _sort(self, data: bytes, *, is_missed: bool) -> None:
        self._unsorted.append((data, is_missed))
        if self._sorting is None:
            self._sorting = asyncio.get_running_loop().create_task(self._sort_all())

    async def _sort_all(self) -> None:
        try:
            while self._unsorted:
                data, is_missed = self._unsorted.popleft()
                is_its_own = is_missed or self._own[:1] == [self]
                if is_its_own and await self._sessions.is_subscribed(self._key, uri_of(data)):
                    super()._send_here(data)
        finally:
            self._sorting = None


class ListeningStream(EventStream):
    """The stream of a stateless client that listens.

    Args:
        uris: The resources that it wants to hear of.
        news: Makes an event of a resource.
        on_close: Called when the client has left.
    """

    def __init__(
        self,
        uris: AbstractSet[str],
        news: Callable[[str], bytes],
        on_close: Callable[[EventStream], object],
    ) -> None:
        super().__init__(on_close=on_close, slow="drop")
        self._uris = uris
        self._news = news

    def _send_here(self, data: bytes) -> bool:
        if not data.startswith(b"id: "):
            return super()._send_here(data)
        uri = uri_of(data)
        return uri in self._uris and super()._send_here(self._news(uri))


def updated(uri: str) -> Event:
    """News of a resource."""
    params = {"uri": uri}
    message = {"jsonrpc": "2.0", "method": "notifications/resources/updated", "params": params}
    return Event(encode(message).decode(), "message")


def uri_of(data: bytes) -> str:
    """The resource that an event is about."""
    return parsed(data.rpartition(b"\ndata: ")[2])["params"]["uri"]


def event_of(message: bytes) -> bytes:
    """A message as a server-sent event: JSON has no line breaks."""
    return b"event: message\ndata: %b\n\n" % message


def primer(kept: KeptCall, version: str) -> bytes:
    """The first event of a stream, with nothing but an identifier to come back with."""
    if version < _PRIMED_SINCE:
        return _HEARTBEAT
    return b"id: %b:0\ndata: \n\n" % kept.run.encode()


def retry_within(seconds: float) -> bytes:
    """Have a client come back at some instant within a time."""
    from random import randint

    return b"retry: %d\n\n" % randint(1, max(1, round(1000 * seconds)))


async def _is_cut_off(keeper: RunKeeper, run: str) -> bool:
    with suppress(EngineAway):
        record = await keeper.store.find(run)
        return record is None or record.state != "done"
    return True


def _error(identifier: RequestId, text: str) -> bytes:
    fault = Fault(INTERNAL_ERROR, text)
    return encode({"jsonrpc": "2.0", "id": identifier, "error": fault.error()})
