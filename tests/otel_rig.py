"""What the stand-in for a collector (the fixture ``collector``) has got, read with OTLP's own messages."""

from __future__ import annotations

from typing import Any

import pytest


def spans_of(got: list[tuple[str, bytes]]) -> list[Any]:
    """The spans, in the order in which they came."""
    trace = pytest.importorskip("opentelemetry.proto.collector.trace.v1.trace_service_pb2")
    return [
        span
        for path, body in got
        if path == "/v1/traces"
        for resource in trace.ExportTraceServiceRequest.FromString(body).resource_spans
        for scope in resource.scope_spans
        for span in scope.spans
    ]


def attributes_of(span: Any) -> dict[str, Any]:
    """The attributes of a span, which are texts and whole numbers."""
    return {a.key: a.value.string_value or a.value.int_value for a in span.attributes}
