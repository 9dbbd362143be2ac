"""Messages of gRPC: the one that was sent, once or a hundred times, each behind its five bytes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from citius_lab.definitions.workloads import WrongResponse, expect

if TYPE_CHECKING:
    from citius_lab.definitions.workloads import Response

MESSAGE = b"\0\0\0\0\x0d\n\x0bhello world"


def check(response: Response, target: str) -> None:
    """Compare the messages; their type may say how they are encoded."""
    if response.content_type not in ("application/grpc", "application/grpc+proto"):
        raise WrongResponse(f"gRPC, {target}: got {response.content_type}")
    count = 100 if target.endswith("/Stream") else 1
    expect(f"gRPC, {target}", MESSAGE * count, response.body)
