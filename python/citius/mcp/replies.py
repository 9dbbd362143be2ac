"""Replies: an error of the protocol in, an HTTP response out. Tests: ``tests/mcp/test_http.py``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from citius._core import Response
from citius.mcp.faults import STATUSES
from citius.mcp.protocol import encode

if TYPE_CHECKING:
    from citius.mcp.faults import Fault
    from citius.mcp.protocol import RequestId

JSON: Final = "application/json"


def error_response(identifier: RequestId | None, fault: Fault, is_stateless: bool) -> Response:
    """An error as a response."""
    status = fault.status
    if status is None:
        status = STATUSES.get(fault.code, 200) if is_stateless else 200
    made = {"jsonrpc": "2.0", "id": identifier, "error": fault.error()}
    return Response(encode(made), status, None, JSON)
