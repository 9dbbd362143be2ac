"""The service of Connect's conformance suite, as an ASGI, a WSGI and a native application.

Each request names the response that it wants (`service.proto` of the suite); `connectconformance` compares
the two.
"""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from typing import Any as Message

from citius import App
from connectrpc.code import Code
from connectrpc.codec import proto_binary_codec, proto_json_codec
from connectrpc.compression.brotli import BrotliCompression
from connectrpc.compression.gzip import GzipCompression
from connectrpc.compression.zstd import ZstdCompression
from connectrpc.errors import ConnectError
from gen.connectrpc.conformance.v1 import service_pb as pb
from gen.connectrpc.conformance.v1.service_connect import (
    ConformanceServiceASGIApplication,
    ConformanceServiceWSGIApplication,
)
from protobuf import Oneof, Registry
from protobuf.wkt import Any


def send_headers(ctx: Message, definition: Message) -> None:
    """Set the fields that the definition names."""
    for sent, fields in (
        (ctx.response_headers, definition.response_headers),
        (ctx.response_trailers, definition.response_trailers),
    ):
        for field in fields:
            for value in field.value:
                sent.add(field.name, value)


def told(ctx: Message, requests: list[Message]) -> Message:
    """What the server knows of a request."""
    info = pb.ConformancePayload.RequestInfo(requests=[Any.pack(request) for request in requests])
    if ctx.timeout_ms is not None:
        info.timeout_ms = int(ctx.timeout_ms)
    for name in ctx.request_headers:
        values = list(ctx.request_headers.getall(name))
        info.request_headers.append(pb.Header(name=name, value=values))
    return info


def failure(error: Message, *more: Message) -> ConnectError:
    """The error that a definition asks for."""
    return ConnectError(
        code=Code[error.code.name], message=error.message, details=[*error.details, *more]
    )


class Service:
    """With coroutines; ``pause`` waits for as long as a definition says."""

    def __init__(self, pause: Callable[[float], Awaitable[None]]) -> None:
        self._pause = pause

    async def _one(
        self, answer: Message, definition: Message, requests: list[Message], ctx: Message
    ) -> Message:
        send_headers(ctx, definition)
        info, data = told(ctx, requests), b""
        match definition.response:
            case Oneof("error", error):
                raise failure(error, info)
            case Oneof("response_data", data):
                pass
            case _:
                pass
        if definition.response_delay_ms:
            await self._pause(definition.response_delay_ms / 1000)
        answer.payload = pb.ConformancePayload(request_info=info, data=data)
        return answer

    async def unary(self, request: Message, ctx: Message) -> Message:
        """One message, one answer."""
        definition = request.response_definition or pb.UnaryResponseDefinition()
        return await self._one(pb.UnaryResponse(), definition, [request], ctx)

    async def idempotent_unary(self, request: Message, ctx: Message) -> Message:
        """The same, by GET too."""
        definition = request.response_definition or pb.UnaryResponseDefinition()
        return await self._one(pb.IdempotentUnaryResponse(), definition, [request], ctx)

    async def unimplemented(self, request: Message, ctx: Message) -> Message:
        """None."""
        raise ConnectError(Code.UNIMPLEMENTED, "it is not implemented")

    async def client_stream(self, messages: AsyncIterator[Message], ctx: Message) -> Message:
        """Many messages, one answer."""
        requests = [request async for request in messages]
        definition = requests[0].response_definition or pb.UnaryResponseDefinition()
        return await self._one(pb.ClientStreamResponse(), definition, requests, ctx)

    async def server_stream(self, request: Message, ctx: Message) -> AsyncIterator[Message]:
        """One message, many answers."""
        definition = request.response_definition or pb.StreamResponseDefinition()
        send_headers(ctx, definition)
        async for payload in self._rest(definition, 0, [request], ctx):
            yield pb.ServerStreamResponse(payload=payload)

    async def bidi_stream(
        self, messages: AsyncIterator[Message], ctx: Message
    ) -> AsyncIterator[Message]:
        """An answer for each message, or all answers behind the last one."""
        definition, sent = None, 0
        requests: list[Message] = []
        is_full_duplex = False
        async for request in messages:
            if definition is None:
                definition = request.response_definition or pb.StreamResponseDefinition()
                is_full_duplex = request.full_duplex
                send_headers(ctx, definition)
            requests.append(request)
            if not is_full_duplex:
                continue
            if sent >= len(definition.response_data):
                break
            payload = await self._payload(definition, sent)
            payload.request_info = told(ctx, [request])
            yield pb.BidiStreamResponse(payload=payload)
            sent += 1
            requests = []
        if definition is not None:
            async for payload in self._rest(definition, sent, requests, ctx):
                yield pb.BidiStreamResponse(payload=payload)

    async def _rest(
        self, definition: Message, sent: int, requests: list[Message], ctx: Message
    ) -> AsyncIterator[Message]:
        """Payloads that no request has asked for yet, and the error at the end."""
        info = told(ctx, requests)
        for index in range(sent, len(definition.response_data)):
            payload = await self._payload(definition, index)
            if index == 0:
                payload.request_info = info
            yield payload
        if definition.error:
            raise failure(definition.error, *([] if definition.response_data else [info]))

    async def _payload(self, definition: Message, index: int) -> Message:
        if definition.response_delay_ms:
            await self._pause(definition.response_delay_ms / 1000)
        return pb.ConformancePayload(data=definition.response_data[index])


async def _sleep(seconds: float) -> None:
    time.sleep(seconds)


async def _as_async(messages: Iterator[Message]) -> AsyncIterator[Message]:
    for message in messages:
        yield message


def _done(coroutine: Message) -> Message:
    try:
        coroutine.send(None)
    except StopIteration as end:
        return end.value
    raise AssertionError("a coroutine that has waited")


class Blocking:
    """The same, for threads: coroutines that never wait."""

    def __init__(self) -> None:
        service = Service(_sleep)
        for name in ("unary", "idempotent_unary", "unimplemented", "client_stream"):
            setattr(self, name, self._one(getattr(service, name)))
        for name in ("server_stream", "bidi_stream"):
            setattr(self, name, self._many(getattr(service, name)))

    @staticmethod
    def _arguments(request: Message) -> Message:
        return _as_async(request) if isinstance(request, Iterator) else request

    def _one(self, method: Message) -> Callable[[Message, Message], Message]:
        return lambda request, ctx: _done(method(self._arguments(request), ctx))

    def _many(self, method: Message) -> Callable[[Message, Message], Iterator[Message]]:
        def answers(request: Message, ctx: Message) -> Iterator[Message]:
            stream = method(self._arguments(request), ctx)
            while True:
                try:
                    answer = _done(anext(stream))
                except StopAsyncIteration:
                    return
                yield answer

        return answers


_OPTIONS: Message = {
    "read_max_bytes": int(os.environ["READ_BYTES_MAX"]) if "READ_BYTES_MAX" in os.environ else None,
    "compressions": (GzipCompression(), ZstdCompression(), BrotliCompression()),
    "codecs": (proto_binary_codec(), proto_json_codec(Registry(pb.desc()))),
}

asgi = ConformanceServiceASGIApplication(Service(asyncio.sleep), **_OPTIONS)
wsgi = ConformanceServiceWSGIApplication(Blocking(), **_OPTIONS)

native = App()
native.mount_rpc(asgi, reflection=True)
