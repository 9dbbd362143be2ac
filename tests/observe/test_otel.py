"""Spans and metrics as a collector gets them: a stand-in that reads OTLP with the official messages."""

from __future__ import annotations

import contextlib
import signal
import socket

import pytest
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from otel_rig import attributes_of, spans_of
from rig import application

APP = """
@app.get("/items/{id:int}")
async def item(id: int): return {"id": id}
@app.get("/boom")
def boom(): raise RuntimeError("as the test wants it")
"""
PARENT = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"


def test_spans_and_metrics_reach_a_collector(serve, collector) -> None:
    url, got = collector
    server = serve(
        APP, "--otel", "--no-access-log",
        env={"OTEL_EXPORTER_OTLP_ENDPOINT": url, "OTEL_SERVICE_NAME": "shop", "PYTHONWARNINGS": "default"},
    )  # fmt: skip
    server.get("/items/3?a=b", traceparent=PARENT, user_agent="spy")
    # From a proxy that is trusted; scale S13: the scheme was always http.
    server.get("/boom", x_forwarded_proto="https")
    server.signal(signal.SIGTERM)
    assert server.wait() == 0
    spans, resources = [], []
    for path, body in got:
        if path == "/v1/traces":
            for resource in ExportTraceServiceRequest.FromString(body).resource_spans:
                resources.append(resource.resource)
                spans += [span for scope in resource.scope_spans for span in scope.spans]
    assert [span.name for span in spans] == ["GET /items/{id:int}", "GET /boom"]
    item, boom = spans
    assert (item.trace_id.hex(), item.parent_span_id.hex()) == (PARENT[3:35], PARENT[36:52])
    assert (item.kind, item.status.code, boom.status.code) == (2, 0, 2)
    assert item.end_time_unix_nano > item.start_time_unix_nano > 1_700_000_000 * 10**9
    attributes = {a.key: a.value.string_value or a.value.int_value for a in item.attributes}
    assert attributes["http.response.status_code"] == 200
    assert attributes["url.query"] == "a=b"
    schemes = [
        a.value.string_value for span in spans for a in span.attributes if a.key == "url.scheme"
    ]
    assert schemes == ["http", "https"]
    assert attributes["user_agent.original"] == "spy"
    assert {a.key: a.value.string_value for a in resources[0].attributes}["service.name"] == "shop"
    metrics = [
        metric
        for path, body in got
        if path == "/v1/metrics"
        for resource in ExportMetricsServiceRequest.FromString(body).resource_metrics
        for scope in resource.scope_metrics
        for metric in scope.metrics
    ]
    duration = next(m for m in metrics if m.name == "http.server.request.duration")
    assert not duration.histogram.data_points[0].HasField("min")
    assert sum(point.count for point in duration.histogram.data_points) == 2


def test_a_collector_that_is_not_there_costs_nothing_but_a_notice(serve) -> None:
    server = serve(
        APP, "--otel", "--no-access-log",
        env={"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:9", "PYTHONWARNINGS": "default"},
    )  # fmt: skip
    assert server.get("/items/3").status == 200
    server.signal(signal.SIGTERM)
    assert server.wait() == 0


@pytest.mark.parametrize("waits", [False, True])
def test_spans_that_a_slow_collector_does_not_take_are_counted(serve, waits: bool) -> None:
    """Scale S13: those whose export has begun when the server stops, and those behind them."""
    with contextlib.ExitStack() as stack:
        silent = stack.enter_context(socket.create_server(("127.0.0.1", 0)))
        url = f"http://127.0.0.1:{silent.getsockname()[1]}"
        server = serve(APP, "--otel", "--no-access-log", env={"OTEL_EXPORTER_OTLP_ENDPOINT": url})
        for _ in range(3):
            server.get("/items/3")
        if waits:
            stack.enter_context(silent.accept()[0])  # the first export has begun
            server.get("/items/4")
        server.stop()
    assert f"otel: {3 + waits} spans were lost" in server.err


CALLS = application("called_app")


def test_spans_of_calls_have_their_codes(serve, collector) -> None:
    """The semantic conventions for RPC: service, method, and the code of a call by Connect."""
    url, got = collector
    server = serve(
        CALLS, "--otel", "--no-access-log", env={"OTEL_EXPORTER_OTLP_ENDPOINT": url}
    )  # fmt: skip
    with server.connect() as peer:
        for number in (1, 404, 500):
            data = b'{"id": %d}' % number
            peer.request("POST", "/api/shop/get", data, content_type="application/json")
        peer.request("GET", "/other")
    server.signal(signal.SIGTERM)
    assert server.wait() == 0
    spans = spans_of(got)
    assert [(span.name, span.status.code) for span in spans] == [
        ("shop/get", 0), ("shop/get", 0), ("shop/get", 2), ("GET", 0),
    ]  # fmt: skip
    ok, missing, broken, other = map(attributes_of, spans)
    assert (ok["rpc.system"], ok["rpc.service"], ok["rpc.method"]) == ("connect_rpc", "shop", "get")
    assert "rpc.connect_rpc.error_code" not in ok
    assert missing["rpc.connect_rpc.error_code"] == "not_found"
    assert (broken["rpc.connect_rpc.error_code"], broken["error.type"]) == ("internal", "internal")
    assert ok["http.route"] == "/api/shop/get"
    assert not [name for name in other if name.startswith("rpc.")]


def test_the_number_of_a_code_of_grpc() -> None:
    from citius.observability.otel import _note_call  # pyright: ignore[reportPrivateUsage]

    attributes: dict[str, str | int] = {}
    data = {"path": "/shop.v1.Shop/Get", "rpc_code": "not_found", "is_grpc": True, "fault": None}
    assert _note_call(attributes, data) == ("shop.v1.Shop/Get", False)
    assert attributes == {
        "rpc.system": "grpc", "rpc.service": "shop.v1.Shop", "rpc.method": "Get",
        "rpc.grpc.status_code": 5,
    }  # fmt: skip
    assert _note_call({}, data | {"rpc_code": "internal"}) == ("shop.v1.Shop/Get", True)
