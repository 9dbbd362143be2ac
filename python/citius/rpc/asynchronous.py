"""The client for coroutines: one connection on the running event loop.

Calls of one iteration of the loop are sent by one write; while the server reads nothing, callers wait.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, TypeVar, cast, overload

from citius._core import RpcMessages
from citius.errors import ConnectionLost, RpcTimeout
from citius.rpc.calls import (
    CLOSE_S,
    GOODBYE,
    MESSAGE_BYTES_MAX,
    Address,
    Backoff,
    Request,
    cancellation,
    free_msgid,
    is_in_vain,
    next_msgid,
    not_understood,
    notification,
    tell,
    words,
)
from citius.unknown_options import known_options

if TYPE_CHECKING:
    import ssl
    from collections.abc import Callable, Mapping
    from types import TracebackType
    from typing import Self

_T = TypeVar("_T")

_BATCH_BYTES_MAX = 64 * 1024
"""Bytes of calls that are written before the end of the loop's iteration."""


@known_options
class AsyncClient:
    """A server's procedures, for the coroutines of one event loop.

    Args:
        address: ``HOST:PORT`` or ``unix:PATH``, with ``tls://`` before it where the server speaks TLS;
            ``quic://HOST:PORT`` for the web port of a server with ``webtransport_rpc(…, quic=True)``.
        timeout_s: How long a call may take, connecting included, unless it says otherwise; ``None``:
            for ever.
        on_notification: Called with the name and the parameters of each notification of the server.
        message_bytes_max: Bytes of the longest response; a longer one ends the connection.
        tls: Trusted authorities and client certificate; default: the system's authorities. With it, TLS is
            used also without ``tls://``. QUIC uses its authorities, and shows no client certificate.
        server_name: The name that the server's certificate must have; default: the host.
    """

    def __init__(
        self,
        address: str,
        *,
        timeout_s: float | None = 30.0,
        on_notification: Callable[[str, Any], object] | None = None,
        message_bytes_max: int = MESSAGE_BYTES_MAX,
        tls: ssl.SSLContext | None = None,
        server_name: str | None = None,
    ) -> None:
        self._address = Address.parse(address, tls, server_name)
        self._timeout_s = timeout_s
        self._on_notification = on_notification
        self._message_bytes_max = message_bytes_max
        self._link: _Link | None = None
        self._connecting: asyncio.Task[_Link] | None = None
        self._is_closed = False

    @overload
    async def call(
        self,
        method: str,
        /,
        *params: object,
        type: type[_T],
        named: Mapping[str, object] | None = None,
        timeout_s: float | None = ...,
        idempotent: bool = False,
    ) -> _T: ...
    @overload
    async def call(
        self,
        method: str,
        /,
        *params: object,
        type: object = None,
        named: Mapping[str, object] | None = None,
        timeout_s: float | None = ...,
        idempotent: bool = False,
    ) -> Any: ...
    async def call(
        self,
        method: str,
        /,
        *params: object,
        type: object = None,
        named: Mapping[str, object] | None = None,
        timeout_s: float | None = -1.0,
        idempotent: bool = False,
    ) -> Any:
        """Call a procedure and wait for its result.

        If the caller is cancelled, the client cancels the call on the server.

        Args:
            method: Its name.
            params: Positional parameters.
            type: The type of the result, for msgspec; default: any.
            named: Named parameters instead.
            timeout_s: How long it may take; default: the client's; ``None``: no limit.
            idempotent: Executing it twice does no harm: it is sent again if its connection fails.

        Raises:
            RpcError: The procedure, or the server, responds with an error.
            RpcTimeout: No response came in time.
            ConnectionLost: The connection failed, or none could be made in time.
            msgspec.ValidationError: The result is of another type.
        """
        if timeout_s is not None and timeout_s < 0:
            timeout_s = self._timeout_s
        request = Request(method, params if named is None else named, type, idempotent)
        try:
            async with asyncio.timeout(timeout_s):
                await self._answered(request)
        except TimeoutError as error:
            if isinstance(error, RpcTimeout):
                raise
            if request.error is not None:  # why there is no connection
                raise request.error from None
            raise RpcTimeout(f"no response to {method} in time") from None
        return request.outcome()

    async def notify(
        self, method: str, /, *params: object, named: Mapping[str, object] | None = None
    ) -> None:
        """Call a procedure without a response; whether it is executed is not known."""
        async with asyncio.timeout(self._timeout_s):
            link = await self._connected()
            await link.has_room()
        link.write(notification(method, params if named is None else named))

    async def close(self) -> None:
        """Close the connection; waiting calls are cancelled and fail.

        Queued messages are sent first, for at most a second.
        """
        self._is_closed = True
        if self._connecting is not None:
            self._connecting.cancel()
            await asyncio.wait([self._connecting])
        if self._link is not None:
            await self._link.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self.close()

    async def _answered(self, request: Request) -> None:
        """Send a call, on a new connection if one fails, until a response comes."""
        backoff: Backoff | None = None
        while True:
            try:
                link = await self._connected()
            except OSError as error:
                # The error if the deadline passes before the next attempt.
                request.error = ConnectionLost(
                    f"cannot connect to {self._address}: {words(error)}", was_sent=False
                )
                if self._is_closed or is_in_vain(error):
                    raise request.error from None
                backoff = backoff or Backoff()
                await asyncio.sleep(backoff.next())
                continue
            request.error = None
            await link.has_room()
            if await link.call(request):
                return
            if self._is_closed or not request.may_be_sent_again(after_goodbye=link.said_goodbye):
                raise ConnectionLost(
                    f"no response to {request.method}: {link.reason}", was_sent=request.is_sent
                )
            if backoff is not None:  # a server that accepts connections and closes them
                await asyncio.sleep(backoff.next())
            backoff = backoff or Backoff()

    async def _connected(self) -> _Link:
        link = self._link
        if link is not None and not link.is_over:
            return link
        if self._is_closed:
            raise ConnectionLost("the client is closed", was_sent=False)
        if self._connecting is None:
            self._connecting = asyncio.create_task(self._connect())
            self._connecting.add_done_callback(self._has_connected)
        connecting = self._connecting
        # Not awaited itself: a caller that is cancelled must not cancel it for the others.
        await asyncio.wait([connecting])
        if connecting.cancelled():
            raise ConnectionLost("the client is closed", was_sent=False)
        return connecting.result()

    def _has_connected(self, connecting: asyncio.Task[_Link]) -> None:
        """Keep the connection; callers get an error, and without callers it is not logged."""
        self._connecting = None
        if not connecting.cancelled() and connecting.exception() is None:
            self._link = connecting.result()

    async def _connect(self) -> _Link:
        loop, address = asyncio.get_running_loop(), self._address

        def made() -> _Link:
            return _Link(loop, self._message_bytes_max, self._on_notification)

        if address.is_quic:
            from citius.rpc.quic import connect

            link = made()
            await connect(loop, address, self._message_bytes_max, link)
            return link
        name = None if address.tls is None else address.server_name
        if address.path is not None:
            _, link = await loop.create_unix_connection(
                made, address.path, ssl=address.tls, server_hostname=name
            )
        else:
            _, link = await loop.create_connection(
                made, address.host, address.port, ssl=address.tls, server_hostname=name
            )
        return link


class _Link(asyncio.Protocol):
    """One connection, from its first byte to its last."""

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        message_bytes_max: int,
        on_notification: Callable[[str, Any], object] | None,
    ) -> None:
        self._loop = loop
        self._messages = RpcMessages(message_bytes_max)
        self._on_notification = on_notification
        self._transport: asyncio.Transport | None = None
        self._open: dict[int, tuple[Request, asyncio.Future[bool]]] = {}
        self._next_msgid = 0
        self._batch: list[bytes] = []
        self._batch_bytes = 0
        self._unsent: list[Request] = []
        self._room: asyncio.Future[None] | None = None
        self._gone = loop.create_future()
        self.is_over = False
        self.said_goodbye = False
        self.reason = "the connection is closed"

    async def call(self, request: Request) -> bool:
        """Whether a response came before the connection ended."""
        if self.is_over:
            return False
        msgid = free_msgid(self._next_msgid, self._open)
        self._next_msgid = next_msgid(msgid)
        encoded = request.encode(msgid)
        answered: asyncio.Future[bool] = self._loop.create_future()
        self._open[msgid] = request, answered
        self._unsent.append(request)
        self.write(encoded)
        try:
            return await answered
        except asyncio.CancelledError:
            if self._open.pop(msgid, None) is not None:
                self.write(cancellation(msgid))
            raise

    def write(self, encoded: bytes) -> None:
        """Write at the end of the loop's iteration, together with the other messages of the iteration."""
        if self.is_over:
            return
        if not self._batch:
            self._loop.call_soon(self._flush)
        self._batch.append(encoded)
        self._batch_bytes += len(encoded)
        if self._batch_bytes >= _BATCH_BYTES_MAX:
            self._flush()

    async def has_room(self) -> None:
        """Wait until the write buffer has room."""
        while self._room is not None and not self.is_over:
            await asyncio.shield(self._room)

    async def close(self) -> None:
        """Close after the write buffer is sent, or at once if the server does not read."""
        for msgid in self._open:
            self.write(cancellation(msgid))
        self._flush()
        self._end("the client was closed")
        if self._transport is not None:
            self._transport.close()
            await asyncio.wait([self._gone], timeout=CLOSE_S)
            self._transport.abort()

    def _flush(self) -> None:
        if self._batch and not self.is_over and self._transport is not None:
            for request in self._unsent:
                request.is_sent = True
            self._transport.write(b"".join(self._batch))
        self._unsent.clear()
        self._batch.clear()
        self._batch_bytes = 0

    # What asyncio calls.

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """See ``asyncio.Protocol``."""
        # uvloop's TLS transports do not derive from asyncio's classes.
        self._transport = cast("asyncio.Transport", transport)

    def data_received(self, data: bytes) -> None:
        """See ``asyncio.Protocol``."""
        try:
            messages = self._messages.feed(bytes(data))
        except ValueError as error:
            self._end(not_understood(error, bytes(data)))
            if self._transport is not None:
                self._transport.abort()
            return
        for msgid, first, second in messages:
            if msgid is None:
                self._hear(first or b"", second)
                continue
            request, answered = self._open.pop(msgid, _NOBODY)
            if request is not None and answered is not None and not answered.done():
                request.settle(first, second)
                answered.set_result(True)

    def pause_writing(self) -> None:
        """See ``asyncio.Protocol``."""
        if self._room is None:
            self._room = self._loop.create_future()

    def resume_writing(self) -> None:
        """See ``asyncio.Protocol``."""
        room, self._room = self._room, None
        if room is not None and not room.done():
            room.set_result(None)

    def connection_lost(self, exc: Exception | None) -> None:
        """See ``asyncio.Protocol``."""
        self._end("the server closed the connection" if exc is None else words(exc))
        if not self._gone.done():
            self._gone.set_result(None)

    def _hear(self, method: bytes, params: bytes) -> None:
        if method == GOODBYE:
            # The server sends nothing after this: open calls get no response here.
            self.said_goodbye = True
            self._end("the server closed the connection gracefully")
            if self._transport is not None:
                self._transport.close()
        elif self._on_notification is not None:
            tell(self._on_notification, method, params)

    def _end(self, reason: str) -> None:
        if self.is_over:
            return
        self.is_over, self.reason = True, reason
        self.resume_writing()
        waiting = list(self._open.values())
        self._open.clear()
        self._batch.clear()
        for _, answered in waiting:
            if not answered.done():
                answered.set_result(False)


_NOBODY: tuple[None, None] = (None, None)
