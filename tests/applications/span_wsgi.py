"""A WSGI application that says which span is the current one."""

from __future__ import annotations

from typing import Any

from opentelemetry import trace


def app(environ: dict[str, Any], start_response: Any) -> list[bytes]:
    context = trace.get_current_span().get_span_context()
    body = f"{context.trace_id:032x}-{context.span_id:016x}".encode()
    start_response("200 OK", [("Content-Type", "text/plain"), ("Content-Length", str(len(body)))])
    return [body]
