"""The service by connectrpc, as protoc-gen-connectrpc writes services."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

from connectrpc.method import IdempotencyLevel, MethodInfo, StreamType
from connectrpc.server import ConnectASGIApplication, Endpoint
from protobuf.wkt import StringValue


class Echo:
    """What was sent comes back."""

    async def unary(self, request: StringValue, ctx: Any) -> StringValue:
        """Once."""
        return StringValue(value=request.value)

    async def stream(self, request: StringValue, ctx: Any) -> AsyncIterator[StringValue]:
        """A hundred times."""
        for _ in range(100):
            yield StringValue(value=request.value)


def info(name: str, kind: StreamType) -> Any:
    """What is known of a method."""
    return MethodInfo(
        name=name, service_name="lab.Echo", input=StringValue, output=StringValue,
        idempotency_level=IdempotencyLevel.UNKNOWN, stream_type=kind,
    )  # fmt: skip


class EchoApplication(ConnectASGIApplication):
    """The service at its path."""

    @property
    def path(self) -> str:
        """Where it is."""
        return "/lab.Echo"


app = EchoApplication(
    service=Echo(),
    endpoints=lambda service: {
        "/lab.Echo/Unary": Endpoint.unary(method=info("Unary", StreamType.UNARY), function=service.unary),
        "/lab.Echo/Stream": Endpoint.server_stream(
            method=info("Stream", StreamType.SERVER_STREAM), function=service.stream
        ),
    },
)
