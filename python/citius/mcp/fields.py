"""Fields of HTTP that repeat what a message says, so that proxies can route by them (2026-07-28).

Tests: ``tests/mcp/test_http.py``.
"""

from __future__ import annotations

import base64
import binascii
from typing import TYPE_CHECKING, Any, cast

from citius.mcp.faults import HEADER_MISMATCH, Fault
from citius.mcp.protocol import parsed

if TYPE_CHECKING:
    from citius._core import Request
    from citius.mcp.entries import Tool
    from citius.mcp.protocol import CallParams


def check_mirrored(request: Request, tool: Tool, params: CallParams) -> None:
    """Compare fields that repeat arguments with these, so that a proxy has routed by what the tool gets.

    Raises:
        Fault: They differ.
    """
    arguments = parsed(params.arguments)
    given = cast("dict[str, Any]", arguments) if isinstance(arguments, dict) else {}
    for argument, field in tool.mirrored:
        values = request.headers.getlist(field)
        value = given.get(argument)
        expected = None if value is None else mirrored(value)
        if len(values) > 1 or (not values) != (expected is None):
            raise Fault(HEADER_MISMATCH, f"{field} and the argument {argument} do not go together")
        if values and values[0] != expected and decoded(values[0]) != expected:
            raise Fault(HEADER_MISMATCH, f"{field} is not the argument {argument}")
        if values and values[0].startswith("=?base64?") and decoded(values[0]) != expected:
            raise Fault(HEADER_MISMATCH, f"{field} is no valid base64")


def mirrored(value: Any) -> str | None:
    """An argument as a field repeats it; ``None`` if it cannot."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return str(value) if isinstance(value, str | int | float) else None


def decoded(value: str | None) -> str | None:
    """A field's value; ``=?base64?…?=`` stands for what is not plain ASCII. ``None`` if it is malformed."""
    if value is None or not (value.startswith("=?base64?") and value.endswith("?=")):
        return value
    try:
        payload = value[9:-2]
        data = base64.b64decode(payload, validate=True)
        return data.decode() if base64.b64encode(data).decode() == payload else None
    except (binascii.Error, ValueError):
        return None
