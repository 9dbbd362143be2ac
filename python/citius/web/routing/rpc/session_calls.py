"""Procedures on the streams of WebTransport sessions, and of QUIC without HTTP/3 (``App.webtransport_rpc``).

In: what clients open. A bidirectional stream is one call: the client writes one request of MessagePack-RPC or
JSON-RPC 2.0 and finishes its side; the server writes the response and finishes its own. A unidirectional
stream is one notification. A client that reads no more of a call's stream, or ends the session, cancels
the call. Calls wait for nothing but their own stream, so that a lost packet delays one call. A
connection with the ALPN ``citius-rpc`` is one session, made of it by ``citius-h3/src/direct.rs``. Guide:
docs/guides/rpc.md. Tests: ``tests/http3/test_session_calls.py``, ``tests/http3/test_quic_calls.py``.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Self

import msgspec

from citius.coroutines import contained
from citius.errors import ConfigError, ConnectionClosed, RpcError, StreamReset
from citius.waiting import check_cancelled
from citius.web.declarations.checks import describe
from citius.web.realtime.webtransport import WebTransportSession  # noqa: TC001
from citius.web.routing.mounted import Border
from citius.web.routing.rpc.procedures import error_of, prepared

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable, Mapping

    from citius._core import Native
    from citius.web.execution.thread_pool import BlockingPool
    from citius.web.realtime.webtransport import WebTransportStream
    from citius.web.routing.endpoint import Endpoint
    from citius.web.routing.rpc.procedures import Decoders, Procedure

_MESSAGE: Final = msgspec.msgpack.Decoder(list[msgspec.Raw])
_CALL, _NOTIFICATION = 0, 2
_NOTHING: Final = b"\xc0"


class _Json(msgspec.Struct):
    """A request of JSON-RPC 2.0."""

    jsonrpc: str
    method: str
    params: msgspec.Raw = msgspec.Raw(b"[]")
    id: msgspec.Raw | msgspec.UnsetType = msgspec.UNSET


@dataclass(frozen=True, slots=True)
class _Call:
    """One request, its parameters still encoded."""

    method: str
    params: bytes
    id: bytes | None
    """As it was written; ``None`` of a notification."""
    is_json: bool


@dataclass(frozen=True, slots=True)
class _Ready:
    """A procedure that can be called."""

    decoders: Decoders
    kind: str
    deadline_s: float | None
    class_: int
    """What its calls are counted under."""


class SessionCalls:
    """The handler of a path where sessions bring calls."""

    def __init__(self, pattern: str, *, is_quic: bool = False) -> None:
        self.pattern = pattern
        self.is_quic = is_quic
        """Connections of QUIC without HTTP/3 are its sessions too."""
        self._procedures: dict[str, _Ready] = {}
        self._pool: BlockingPool | None = None

        async def call_procedures(session: WebTransportSession) -> None:
            await self._serve_session(session)

        call_procedures.__qualname__ = f"app.webtransport_rpc({pattern!r})"
        self.handler = call_procedures
        """What the path is declared with."""

    def freeze(
        self,
        native: Native,
        procedures: Iterable[Procedure],
        known: Mapping[str, tuple[Procedure, Endpoint]],
        pool: BlockingPool | None,
    ) -> None:
        """Learn what can be called, before anything is served.

        Raises:
            ConfigError: A procedure has middleware that calls of sessions do not pass.
        """
        self._pool = pool
        for declared in procedures:
            if any(not isinstance(it, Border) for it in declared.middleware):
                raise ConfigError(
                    f"app.webtransport_rpc({self.pattern!r}): the procedure {declared.name} of "
                    f"{describe(declared.handler)} is of a mounted application, whose middleware would not "
                    "see its calls: write webtransport_rpc of that application"
                )
            one, endpoint = known[declared.name]
            _, kind, decoders = prepared(one, endpoint, in_pool=False)
            self._procedures[one.name] = _Ready(
                decoders, kind, one.deadline_s, native.class_of_procedure(one.name)
            )

    async def _serve_session(self, session: WebTransportSession) -> None:
        """Serve the calls of one session, until it is over."""
        await session.accept()
        tasks: set[asyncio.Task[None]] = set()
        try:
            calls_max = _limit(session, "rpc_calls_open_max")
            async for stream in session.incoming():
                if len(tasks) >= calls_max > 0:
                    # Those that follow wait at the client, as over TCP.
                    await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
                task = asyncio.create_task(self._serve(session, stream))
                tasks.add(task)
                task.add_done_callback(tasks.discard)
        finally:
            for task in tasks:
                task.cancel()

    async def _serve(self, session: WebTransportSession, stream: WebTransportStream) -> None:
        """One stream: a call, or a notification."""
        task = asyncio.current_task()
        assert task is not None, "it was made a task"
        with suppress(ConnectionClosed, StreamReset):
            try:
                call = _call_of(await _message_of(session, stream))
            except RpcError as error:
                return await _refuse(session, stream, error)
            found = self._procedures.get(call.method)
            with _Noted(
                session, stream, call.method, 0 if found is None else found.class_
            ) as noted:
                stream.on_stopped(task.cancel)
                status, response = await self._respond(session, call, found)
                await noted.send(status, response)

    async def _respond(
        self, session: WebTransportSession, call: _Call, found: _Ready | None
    ) -> tuple[int, bytes]:
        """The status that a call is counted under, and the response; that to a notification is empty."""
        try:
            result = await contained(self._result, session, call, found)
            status, response = (
                200,
                b"" if call.id is None else _response(call.id, result, is_json=call.is_json),
            )
        except (Exception, asyncio.CancelledError) as error:
            check_cancelled(error)
            status, encoded = error_of(error, call.is_json, f"{self.pattern}: {call.method} failed")
            response = b"" if call.id is None else _error(call.id, encoded, is_json=call.is_json)
        return status, response

    async def _result(self, session: WebTransportSession, call: _Call, found: _Ready | None) -> Any:
        if found is None:
            raise RpcError(f"there is no procedure {call.method}", type="MethodNotFound")
        run = _decoder(found.decoders, call)
        limit_s = _limit(session, "rpc_call_ms") / 1000 or None
        deadline_s = limit_s if found.deadline_s is None else found.deadline_s
        deadline = asyncio.timeout(deadline_s)
        try:
            async with deadline:
                if found.kind != "blocking":
                    value = run(call.params)
                    return await value if found.kind == "async" else value
                return await self._in_thread(lambda: run(call.params))
        except TimeoutError:
            if not deadline.expired():
                raise
            raise RpcError("the call took too long", type="DeadlineExceeded") from None

    def _in_thread(self, work: Callable[[], Any]) -> Awaitable[Any]:
        assert self._pool is not None, "there is a pool for procedures that need it"
        return self._pool.run(work)


async def _message_of(session: WebTransportSession, stream: WebTransportStream) -> bytes:
    """A whole message.

    Raises:
        RpcError: It is too long, or has not come in time.
    """
    try:
        async with asyncio.timeout(_limit(session, "rpc_message_ms") / 1000 or None):
            return await stream.read_all(_limit(session, "rpc_message_bytes_max"))
    except ValueError as error:
        raise RpcError(str(error), type="MessageTooLong") from None
    except TimeoutError:
        stream.stop()
        raise RpcError("the message did not come in time", type="MessageTooSlow") from None


def _limit(session: WebTransportSession, name: str) -> int:
    return session._core.limit(name)  # pyright: ignore[reportPrivateUsage]


def _decoder(decoders: Decoders, call: _Call) -> Callable[[bytes], Any]:
    first = call.params[:1]
    if call.is_json:
        return decoders.json_array if first == b"[" else decoders.json_object
    is_array = first and (0x90 <= first[0] <= 0x9F or first[0] in (0xDC, 0xDD))
    return decoders.msgpack_array if is_array else decoders.msgpack_map


def _call_of(message: bytes) -> _Call:
    """What a message asks for.

    Raises:
        RpcError: It is no request of either protocol.
    """
    if message.lstrip()[:1] in (b"{", b"["):
        try:
            request = msgspec.json.decode(message, type=_Json)
        except msgspec.MsgspecError as error:
            raise RpcError(
                f"expected a request of JSON-RPC 2.0: {error}", type="InvalidRequest"
            ) from None
        call = request.id
        params = bytes(request.params).strip()
        if request.jsonrpc != "2.0" or params[:1] not in (b"[", b"{"):
            raise RpcError("expected a request of JSON-RPC 2.0", type="InvalidRequest")
        number = None if call is msgspec.UNSET else bytes(call)  # pyright: ignore[reportArgumentType]
        return _Call(request.method, params, number, True)
    try:
        parts = _MESSAGE.decode(message)
        kind = msgspec.msgpack.decode(parts[0], type=int) if parts else -1
        if (kind, len(parts)) == (_CALL, 4):
            msgspec.msgpack.decode(parts[1], type=int)
            return _Call(_text(parts[2]), bytes(parts[3]), bytes(parts[1]), False)
        if (kind, len(parts)) == (_NOTIFICATION, 3):
            return _Call(_text(parts[1]), bytes(parts[2]), None, False)
    except msgspec.MsgspecError as error:
        raise RpcError(
            f"expected a message of MessagePack-RPC: {error}", type="InvalidRequest"
        ) from None
    raise RpcError("expected a request or a notification of MessagePack-RPC", type="InvalidRequest")


def _text(part: msgspec.Raw) -> str:
    return msgspec.msgpack.decode(part, type=str)


def _response(number: bytes, result: Any, *, is_json: bool) -> bytes:
    if is_json:
        return (
            b'{"jsonrpc":"2.0","id":' + number + b',"result":' + msgspec.json.encode(result) + b"}"
        )
    return b"\x94\x01" + number + _NOTHING + msgspec.msgpack.encode(result)


def _error(number: bytes, encoded: bytes, *, is_json: bool) -> bytes:
    if is_json:
        return b'{"jsonrpc":"2.0","id":' + number + b',"error":' + encoded + b"}"
    return b"\x94\x01" + number + encoded + _NOTHING


async def _refuse(session: WebTransportSession, stream: WebTransportStream, why: RpcError) -> None:
    """Say what is wrong with a request that names no call: as JSON-RPC does, with no id."""
    with _Noted(session, stream, "-", 0) as noted:
        status, encoded = error_of(why, True, "")
        await noted.send(status, _error(b"null", encoded, is_json=True))


class _Noted:
    """A call among the metrics and in the access log, until its response is sent or its client has left."""

    __slots__ = ("_core", "_ended", "_stream")

    def __init__(
        self, session: WebTransportSession, stream: WebTransportStream, name: str, class_: int
    ) -> None:
        self._core, self._stream = session._core, stream  # pyright: ignore[reportPrivateUsage]
        self._ended: tuple[int, int] | None = None
        """Status and length of what was sent."""
        self._core.begin_call(stream.id, name, class_)

    async def send(self, status: int, response: bytes) -> None:
        """Send the response, if the stream has a side for it."""
        if self._stream.is_writable:
            if response:
                await self._stream.write(response)
            await self._stream.close()
        elif self._stream.is_bidirectional:
            return
        self._ended = status, len(response)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        status, length = self._ended or (0, 0)
        self._core.end_call(self._stream.id, status, length, self._ended is None)
