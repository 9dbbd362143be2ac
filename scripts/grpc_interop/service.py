"""gRPC's test service (``grpc.testing.TestService``), mounted in a native application."""

from __future__ import annotations

import asyncio
import os
from typing import TYPE_CHECKING
from typing import Any as Message

from citius import App
from connectrpc.code import Code
from connectrpc.errors import ConnectError
from interop.grpc.testing import test_pb as pb
from interop.grpc.testing.test_connect import TestServiceASGIApplication

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

ECHOED = "x-grpc-test-echo-initial"
ECHOED_BEHIND = "x-grpc-test-echo-trailing-bin"
CODES = [
    None, Code.CANCELED, Code.UNKNOWN, Code.INVALID_ARGUMENT, Code.DEADLINE_EXCEEDED, Code.NOT_FOUND,
    Code.ALREADY_EXISTS, Code.PERMISSION_DENIED, Code.RESOURCE_EXHAUSTED, Code.FAILED_PRECONDITION,
    Code.ABORTED, Code.OUT_OF_RANGE, Code.UNIMPLEMENTED, Code.INTERNAL, Code.UNAVAILABLE, Code.DATA_LOSS,
    Code.UNAUTHENTICATED,
]  # fmt: skip


def echo(ctx: Message) -> None:
    """Send back the fields that the client wants to see again."""
    for name, sent in ((ECHOED, ctx.response_headers), (ECHOED_BEHIND, ctx.response_trailers)):
        for value in ctx.request_headers.getall(name):
            sent.add(name, value)


def check(request: Message) -> None:
    """Fail, if the client wants that."""
    status = request.response_status
    if status and status.code:
        raise ConnectError(CODES[status.code] or Code.UNKNOWN, status.message)


def payload(size: int) -> Message:
    """So many bytes."""
    return pb.Payload(body=bytes(size))


class Service:
    """The procedures."""

    async def empty_call(self, request: Message, ctx: Message) -> Message:
        """Nothing in, nothing out."""
        return pb.Empty()

    async def unary_call(self, request: Message, ctx: Message) -> Message:
        """One message in, one out."""
        echo(ctx)
        check(request)
        server = str(os.getpid()) if request.fill_server_id else ""
        return pb.SimpleResponse(payload=payload(request.response_size), server_id=server)

    async def streaming_output_call(self, request: Message, ctx: Message) -> AsyncIterator[Message]:
        """One message in, many out."""
        echo(ctx)
        async for response in self._responses(request):
            yield response
        check(request)

    async def streaming_input_call(self, request: AsyncIterator[Message], ctx: Message) -> Message:
        """Many messages in, one out."""
        size = 0
        async for one in request:
            size += len(one.payload.body)
        return pb.StreamingInputCallResponse(aggregated_payload_size=size)

    async def full_duplex_call(
        self, request: AsyncIterator[Message], ctx: Message
    ) -> AsyncIterator[Message]:
        """Messages in, for each its own out."""
        echo(ctx)
        async for one in request:
            check(one)
            async for response in self._responses(one):
                yield response

    async def unimplemented_call(self, request: Message, ctx: Message) -> Message:
        """None."""
        raise ConnectError(Code.UNIMPLEMENTED, "it is not implemented")

    async def _responses(self, request: Message) -> AsyncIterator[Message]:
        for wanted in request.response_parameters:
            if wanted.interval_us:
                await asyncio.sleep(wanted.interval_us / 1e6)
            yield pb.StreamingOutputCallResponse(payload=payload(wanted.size))


app = App()
app.mount_rpc(TestServiceASGIApplication(Service()), reflection=True)
