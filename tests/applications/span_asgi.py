"""An ASGI application that says which span is the current one."""

from __future__ import annotations

from typing import Any

from opentelemetry import trace


async def app(scope: dict[str, Any], receive: Any, send: Any) -> None:
    context = trace.get_current_span().get_span_context()
    body = f"{context.trace_id:032x}-{context.span_id:016x}".encode()
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": body})
