"""``citius routes``: endpoints in, lines of text or values for JSON out.

Tests: ``tests/gateway/test_endpoints.py``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from citius.web.checks import describe

if TYPE_CHECKING:
    from collections.abc import Sequence

    from citius.web.endpoint import Endpoint


def lines(endpoints: Sequence[Endpoint]) -> list[str]:
    """A line for each endpoint, in columns."""
    rows = [(_method(one), one.pattern, one.where, ", ".join(_notes(one))) for one in endpoints]
    widths = [max((len(row[at]) for row in rows), default=0) for at in range(4)]
    return [
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in rows
    ]


def values(endpoints: Sequence[Endpoint]) -> list[dict[str, Any]]:
    """What is known of each endpoint, for programs."""
    return [
        {
            "protocol": one.protocol,
            "method": one.method or None,
            "path": one.pattern,
            "name": one.name,
            "handler": one.where,
            "kind": one.kind,
            "parameters": [
                {"name": p.wire_name, "in": p.source, "required": p.is_required} for p in one.inputs
            ],
            "dependencies": [describe(each.call) for each in one.dependencies],
            "body_bytes_max": one.body_bytes_max,
            "stream": one.stream,
        }
        for one in endpoints
    ]


def _method(endpoint: Endpoint) -> str:
    return endpoint.method or {"websocket": "WEBSOCKET", "rpc": "RPC"}[endpoint.protocol]


def _notes(endpoint: Endpoint) -> list[str]:
    """What is special about an endpoint: how it is called, what it depends on, its limits."""
    notes = [endpoint.kind] if endpoint.kind != "def" else []
    notes += [f"depends on {_name(one.call)}" for one in endpoint.dependencies]
    if endpoint.stream:
        notes.append("streamed body")
    if endpoint.body_bytes_max is not None:
        notes.append(f"body of at most {endpoint.body_bytes_max} bytes")
    return notes


def _name(function: object) -> str:
    return getattr(function, "__qualname__", repr(function))
