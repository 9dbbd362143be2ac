"""OpenTelemetry: finished requests as server spans, counters as metrics, by the official SDK.

The reactor's thread only puts finished requests into a bounded list. A thread of this module takes them every
second, makes spans of them with the semantic conventions for HTTP servers, and passes them to the exporter.
Operations of clients of databases (``clients.py``) become spans too, by the conventions for databases.
The SDK's own variables configure where and how to export (``OTEL_EXPORTER_OTLP_ENDPOINT``,
``OTEL_SERVICE_NAME``, ``OTEL_RESOURCE_ATTRIBUTES``, ``OTEL_METRIC_EXPORT_INTERVAL``, …). Each worker is a
service instance of its own. Imported only with ``--otel``.
"""

from __future__ import annotations

import os
import threading
import time
from typing import TYPE_CHECKING, Any, Final

from opentelemetry import context, trace
from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.metrics import export as metrics
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.util.instrumentation import InstrumentationScope
from opentelemetry.trace import SpanContext, SpanKind, Status, StatusCode, TraceFlags
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

from citius._core import METRICS, Observer, __version__
from citius.observability import logging
from citius.observability.metrics import merged
from citius.observability.rpc_codes import NUMBERS
from citius.threads import Thread

if TYPE_CHECKING:
    from collections.abc import (
        Awaitable,
        Callable,
        Iterable,
        Iterator,
        Mapping,
        MutableMapping,
        Sequence,
    )

    from citius.observability.clients import Client

    Scope = MutableMapping[str, Any]

SPANS_EVERY_S: Final = 1.0
"""Interval between exports of finished requests."""

BATCH_MAX: Final = 512
"""Spans of one export."""

CLOSE_S: Final = 3.0
"""Time limit of the last export."""

# Codes that are the server's fault; of the others the caller knows why.
_FAILURES: Final = {
    "unknown", "deadline_exceeded", "unimplemented", "internal", "unavailable", "data_loss",
}  # fmt: skip
_METHODS: Final = {"GET", "HEAD", "POST", "PUT", "DELETE", "CONNECT", "OPTIONS", "TRACE", "PATCH"}
_UNKNOWN: Final[Any] = None
_SCOPE: Final = InstrumentationScope("citius", __version__)
_PROPAGATOR: Final = TraceContextTextMapPropagator()
_SYSTEMS: Final = {"pg": "postgresql", "redis": "redis", "sqlite": "sqlite"}
_ALWAYS_SAMPLED: Final = TraceFlags(TraceFlags.SAMPLED)


class Exporter:
    """The exporting thread of one worker.

    Args:
        observers: Those of its reactors, each with the clients of databases whose operations it has measured.
    """

    def __init__(self, observers: Sequence[tuple[Observer, Mapping[int, Client]]]) -> None:
        self._observers = observers
        self._resource = Resource.create(
            {"service.instance.id": f"{os.uname().nodename}-{os.getpid()}"}
        )
        self._spans = OTLPSpanExporter()
        self._metrics: Any = OTLPMetricExporter()
        self._started_ns = time.time_ns()
        self._metrics_every_s = int(os.environ.get("OTEL_METRIC_EXPORT_INTERVAL", "60000")) / 1000
        self._dropped = 0
        self._unexported = 0
        self._stopped = threading.Event()
        self._thread = Thread(target=self._run, name="citius-otel", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Export the remaining spans; those for which the collector does not respond in time are lost."""
        self._stopped.set()
        self._thread.join(CLOSE_S)
        if not self._thread.is_alive():
            return
        for observer, _ in self._observers:
            self._unexported += len(observer.take_spans()) + len(observer.take_client_spans())
        if self._unexported:
            logging.warning(
                f"otel: {self._unexported} spans were lost: the collector did not take them in {CLOSE_S:g} s"
            )

    def _run(self) -> None:
        metrics_at = time.monotonic() + self._metrics_every_s
        while True:
            is_last = self._stopped.wait(SPANS_EVERY_S)
            try:
                self._export_spans()
                if is_last or time.monotonic() >= metrics_at:
                    metrics_at = time.monotonic() + self._metrics_every_s
                    self._metrics.export(self._metrics_data())
            except Exception as error:  # a failing exporter must not end the thread
                logging.warning(f"otel: export failed: {error}")
            if is_last:
                return

    def _export_spans(self) -> None:
        spans: list[ReadableSpan] = []
        for observer, clients in self._observers:
            spans += map(self._span, observer.take_spans())
            spans += [
                self._client_span(clients[data["client"]], data)
                for data in observer.take_client_spans()
            ]
        if len(self._observers) > 1:
            spans.sort(key=lambda span: span.start_time or 0)
        self._unexported = len(spans)
        for start in range(0, len(spans), BATCH_MAX):
            batch = spans[start : start + BATCH_MAX]
            self._spans.export(batch)
            self._unexported -= len(batch)
        if (dropped := sum(one.spans_dropped for one, _ in self._observers)) > self._dropped:
            logging.warning(
                f"otel: {dropped - self._dropped} spans were dropped: export is too slow"
            )
            self._dropped = dropped

    def _span(self, data: dict[str, Any]) -> ReadableSpan:
        """A server span (semantic conventions, HTTP spans)."""
        known = data["method"] if data["method"] in _METHODS else "_OTHER"
        attributes: dict[str, str | int] = {
            "http.request.method": known,
            "http.response.status_code": data["status"],
            "http.response.body.size": data["bytes"],
            "network.protocol.version": data["http_version"],
            "url.scheme": data["scheme"],
            "url.path": data["path"],
        }
        if known == "_OTHER":
            attributes["http.request.method_original"] = data["method"]
        if data["query"]:
            attributes["url.query"] = data["query"]
        if data["route"]:
            attributes["http.route"] = data["route"]
        if data["client"] is not None:
            attributes["client.address"], attributes["client.port"] = data["client"]
        if data["user_agent"] is not None:
            attributes["user_agent.original"] = data["user_agent"].decode("latin-1")
        is_error = data["status"] >= 500
        if data["fault"] or is_error:
            attributes["error.type"] = data["fault"] or str(data["status"])
        name = known if known != "_OTHER" else "HTTP"
        if data["route"]:
            name = f"{name} {data['route']}"
        if data["rpc_code"] is not None:
            name, is_error = _note_call(attributes, data)
        trace_id, flags = int(data["trace_id"], 16), TraceFlags(data["flags"])
        parent = None
        if data["parent_id"] is not None:
            parent = SpanContext(trace_id, int(data["parent_id"], 16), True, flags)
        return ReadableSpan(
            name=name,
            context=SpanContext(trace_id, int(data["span_id"], 16), False, flags),
            parent=parent,
            resource=self._resource,
            attributes=attributes,
            kind=SpanKind.SERVER,
            status=Status(StatusCode.ERROR if is_error else StatusCode.UNSET),
            start_time=data["started_us"] * 1000,
            end_time=(data["started_us"] + data["duration_us"]) * 1000,
            instrumentation_scope=_SCOPE,
        )

    def _client_span(self, client: Client, data: dict[str, Any]) -> ReadableSpan:
        """A span of a client of a database (semantic conventions, database spans)."""
        if client.kind == "http":
            return self._call_span(client, data)
        operation = operation_of(data["text"])
        attributes: dict[str, str | int] = {
            **_attributes_of(client),
            "db.operation.name": operation,
        }
        if client.kind != "redis":
            attributes["db.query.text"] = data["text"]
        if data["batch"] > 1:
            attributes["db.operation.batch.size"] = data["batch"]
        error: str | None = data["error"]
        if error is not None:
            attributes["error.type"] = error
            if error.isupper() or error.isdigit():
                # SQLSTATE, or the first word of Redis's error; exceptions of Python are not in capitals.
                attributes["db.response.status_code"] = error
        is_named = client.kind == "pg" and client.namespace
        name = f"{operation} {client.namespace}" if is_named else operation
        return self._span_of_client(name, attributes, data)

    def _call_span(self, client: Client, data: dict[str, Any]) -> ReadableSpan:
        """A span of a request to another service (semantic conventions, HTTP client spans)."""
        method, status, url = data["text"].split(" ", 2)
        known = method if method in _METHODS else "_OTHER"
        scheme, _, rest = url.partition("://")
        host, port = _place_of(rest.partition("/")[0].partition("?")[0], scheme)
        attributes: dict[str, str | int] = {
            "http.request.method": known,
            "server.address": host,
            "server.port": port,
            "url.full": url,
        }
        if known == "_OTHER":
            attributes["http.request.method_original"] = method
        if status != "0":
            attributes["http.response.status_code"] = int(status)
        if (error := data["error"]) is not None:
            attributes["error.type"] = error
        return self._span_of_client(known if known != "_OTHER" else "HTTP", attributes, data)

    def _span_of_client(
        self, name: str, attributes: dict[str, str | int], data: dict[str, Any]
    ) -> ReadableSpan:
        """A span of an operation, as its client has told of it."""
        trace_id, is_failed = data["trace_id"], data["error"] is not None
        return ReadableSpan(
            name=name,
            context=SpanContext(trace_id, data["span_id"], False, _ALWAYS_SAMPLED),
            parent=SpanContext(trace_id, data["parent_id"], False, _ALWAYS_SAMPLED),
            resource=self._resource,
            attributes=attributes,
            kind=SpanKind.CLIENT,
            status=Status(StatusCode.ERROR if is_failed else StatusCode.UNSET),
            start_time=data["started_us"] * 1000,
            end_time=(data["started_us"] + data["duration_us"]) * 1000,
            instrumentation_scope=_SCOPE,
        )

    def _metrics_data(self) -> metrics.MetricsData:
        snapshot = merged([observer.read() for observer, _ in self._observers])
        found = list(self._metrics_of(snapshot, time.time_ns()))
        scope = metrics.ScopeMetrics(_SCOPE, found, "")
        return metrics.MetricsData([metrics.ResourceMetrics(self._resource, [scope], "")])

    def _metrics_of(self, snapshot: dict[str, Any], now_ns: int) -> Iterator[metrics.Metric]:
        bounds = [end_us / 1e6 for end_us in METRICS["buckets_us"]]
        cumulative = metrics.AggregationTemporality.CUMULATIVE
        points: list[metrics.HistogramDataPoint] = []
        for label, _, (*counts, sum_us), _ in snapshot["classes"]:
            points.append(
                metrics.HistogramDataPoint(
                    attributes={"http.route": label} if label else {},
                    start_time_unix_nano=self._started_ns, time_unix_nano=now_ns,
                    count=sum(counts), sum=sum_us / 1e6, bucket_counts=counts,
                    explicit_bounds=bounds, min=_UNKNOWN, max=_UNKNOWN,
                )
            )  # fmt: skip
        yield metrics.Metric(
            "http.server.request.duration", "Duration of HTTP server requests.", "s",
            metrics.Histogram(points, cumulative),
        )  # fmt: skip
        numbers = (
            (
                "http.server.active_requests",
                "{request}",
                snapshot["gauges"]["requests_open"],
                False,
            ),
            (
                "citius.connections.open",
                "{connection}",
                snapshot["gauges"]["connections_open"],
                False,
            ),
            ("citius.received", "By", snapshot["tallies"]["bytes_received"], True),
            ("citius.sent", "By", snapshot["tallies"]["bytes_sent"], True),
            (
                "citius.handler.exceptions",
                "{exception}",
                snapshot["tallies"]["handler_exceptions"],
                True,
            ),
        )
        for name, unit, value, is_monotonic in numbers:
            point = metrics.NumberDataPoint({}, self._started_ns, now_ns, value)
            yield metrics.Metric(name, "", unit, metrics.Sum([point], cumulative, is_monotonic))
        yield from self._metrics_of_clients(snapshot["clients"], now_ns)

    def _metrics_of_clients(
        self, found: Iterable[dict[str, Any]], now_ns: int
    ) -> Iterator[metrics.Metric]:
        """Those of the semantic conventions for clients of databases."""
        bounds = [end_us / 1e6 for end_us in METRICS["buckets_us"]]
        cumulative = metrics.AggregationTemporality.CUMULATIVE
        durations: list[metrics.HistogramDataPoint] = []
        requests: list[metrics.HistogramDataPoint] = []
        connections: list[metrics.NumberDataPoint] = []
        sums: dict[str, list[metrics.NumberDataPoint]] = {
            "connection.count": [], "connection.pending_requests": [], "connection.timeouts": [],
        }  # fmt: skip
        known = {
            (client.kind, client.label): client
            for _, clients in self._observers
            for client in list(clients.values())
        }
        for data in found:
            client = known[data["kind"], data["label"]]
            *counts, sum_us = data["durations"]
            (requests if client.kind == "http" else durations).append(
                metrics.HistogramDataPoint(
                    attributes=_attributes_of(client),
                    start_time_unix_nano=self._started_ns, time_unix_nano=now_ns,
                    count=sum(counts), sum=sum_us / 1e6, bucket_counts=counts,
                    explicit_bounds=bounds, min=_UNKNOWN, max=_UNKNOWN,
                )
            )  # fmt: skip
            if client.kind == "http":
                for state, name in (("active", "used"), ("idle", "idle")):
                    attributes = {**_attributes_of(client), "http.connection.state": state}
                    connections.append(
                        metrics.NumberDataPoint(attributes, self._started_ns, now_ns, data[name])
                    )
                continue
            pool = {
                "db.client.connection.pool.name": client.label,
                "db.system.name": _SYSTEMS[client.kind],
            }
            for name, attributes, value in (
                ("connection.count", {"db.client.connection.state": "used"}, data["used"]),
                ("connection.count", {"db.client.connection.state": "idle"}, data["idle"]),
                ("connection.pending_requests", {}, data["queued"]),
                ("connection.timeouts", {}, data["refused"]),
            ):
                point = metrics.NumberDataPoint(
                    {**pool, **attributes}, self._started_ns, now_ns, value
                )
                sums[name].append(point)
        if requests:
            yield metrics.Metric(
                "http.client.request.duration", "Duration of HTTP client requests.", "s",
                metrics.Histogram(requests, cumulative),
            )  # fmt: skip
            yield metrics.Metric(
                "http.client.open_connections", "", "{connection}",
                metrics.Sum(connections, cumulative, False),
            )  # fmt: skip
        if not durations:
            return
        yield metrics.Metric(
            "db.client.operation.duration", "Duration of database client operations.", "s",
            metrics.Histogram(durations, cumulative),
        )  # fmt: skip
        units = {"connection.count": "{connection}", "connection.pending_requests": "{request}"}
        for name, points in sums.items():
            is_monotonic = name == "connection.timeouts"
            data_of = metrics.Sum(points, cumulative, is_monotonic)
            yield metrics.Metric(f"db.client.{name}", "", units.get(name, "{timeout}"), data_of)


def _note_call(attributes: dict[str, str | int], data: dict[str, Any]) -> tuple[str, bool]:
    """Say what a remote procedure call adds to its request (semantic conventions, RPC spans).

    Returns:
        The name of the span, and whether it has failed.
    """
    service, _, method = data["path"].strip("/").rpartition("/")
    service, code = service.rpartition("/")[2], data["rpc_code"]
    attributes["rpc.service"], attributes["rpc.method"] = service, method
    if data["is_grpc"]:
        attributes["rpc.system"] = "grpc"
        attributes["rpc.grpc.status_code"] = NUMBERS[code]
    else:
        attributes["rpc.system"] = "connect_rpc"
        if code != "ok":
            attributes["rpc.connect_rpc.error_code"] = code
    has_failed = code in _FAILURES
    if has_failed:
        attributes["error.type"] = data["fault"] or code
    return f"{service}/{method}", has_failed


def _attributes_of(client: Client) -> dict[str, str | int]:
    attributes: dict[str, str | int] = {}
    if client.kind in _SYSTEMS:
        attributes["db.system.name"] = _SYSTEMS[client.kind]
    if client.host:
        attributes["server.address"], attributes["server.port"] = client.host, client.port
    if client.namespace:
        attributes["db.namespace"] = client.namespace
    return attributes


def _place_of(authority: str, scheme: str) -> tuple[str, int]:
    """Host and port of a URL."""
    host, colon, port = authority.rpartition(":")
    if colon and port.isdecimal():
        return host, int(port)
    return authority, 443 if scheme == "https" else 80


def operation_of(text: str) -> str:
    """The first word of a statement or command, in upper case."""
    start = text.lstrip()[:32].split(None, 1)
    word = start[0].strip("(;").upper() if start else ""
    return word if word.isidentifier() else "OTHER"


# --- the span of a request is the current one of its handler ---


def enter_span(traceparent: str) -> None:
    """Make the span of a request, by its ``traceparent``, the current span of this context."""
    context.attach(_PROPAGATOR.extract({"traceparent": traceparent}, context.Context()))


def current_span() -> tuple[int, int] | None:
    """The identities of the trace and of the span that is current, if the trace is sampled."""
    current = trace.get_current_span().get_span_context()
    is_sampled = current.is_valid and current.trace_flags.sampled
    return (current.trace_id, current.span_id) if is_sampled else None


def around_asgi(app: Callable[..., Awaitable[None]]) -> Callable[..., Awaitable[None]]:
    """An ASGI application for each of whose requests ``enter_span`` is called."""

    async def traced(scope: Scope, receive: Any, send: Any) -> None:
        for name, value in scope.get("headers", ()):
            if name == b"traceparent":
                enter_span(value.decode("latin-1"))
        await app(scope, receive, send)

    return traced


def around_wsgi(app: Callable[..., Iterable[bytes]]) -> Callable[..., Iterable[bytes]]:
    """A WSGI application for each of whose requests ``enter_span`` is called."""

    def traced(environ: dict[str, Any], start_response: Any) -> Iterable[bytes]:
        enter_span(environ.get("HTTP_TRACEPARENT", ""))
        return app(environ, start_response)

    return traced
