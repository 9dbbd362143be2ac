"""What a pool counts for the management port, and the spans of its statements as a collector gets them."""

from __future__ import annotations

import signal
from http.client import HTTPConnection
from typing import Any

import pytest
from otel_rig import attributes_of, spans_of
from pg_rig import get
from prometheus_client.parser import text_string_to_metric_families
from rig import application, wait_for

APP = application("observed_app")


def samples(port: int) -> dict[str, float]:
    """All samples of the clients by name and labels, read by Prometheus' own parser."""
    connection = HTTPConnection("127.0.0.1", port, timeout=30)
    try:
        connection.request("GET", "/metrics")
        text = connection.getresponse().read().decode()
    finally:
        connection.close()
    return {
        sample.name + "".join(f" {k}={v}" for k, v in sorted(sample.labels.items())): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
        if sample.name.startswith("citius_pg_")
    }


def test_metrics(serve, own_server) -> None:
    serving = serve(
        APP, "--workers", "1", "--management", "127.0.0.1:0", env={"DSN": own_server.dsn}
    )
    port = serving.management()
    assert get(serving, "/add/1") == (200, b"2")
    assert get(serving, "/many") == (200, b"[[1],[2]]")
    assert get(serving, "/wrong")[1] == b"22012"
    found = samples(port)
    # The pool's own: BEGIN and COMMIT.
    assert found["citius_pg_statements_total outcome=ok pool=shop"] == 4
    assert found["citius_pg_statements_total outcome=error pool=shop"] == 1
    assert found["citius_pg_statements_total outcome=cancelled pool=shop"] == 0
    assert found["citius_pg_statement_duration_seconds_count pool=shop"] == 5
    assert 0 < found["citius_pg_statement_duration_seconds_sum pool=shop"] < 5
    assert found["citius_pg_refused_total pool=shop"] == 0

    def idle() -> float:
        return samples(port).get("citius_pg_connections pool=shop state=idle worker=0", 0)

    wait_for(lambda: idle() == 2, "two idle connections")
    assert samples(port)["citius_pg_connections_opened_total pool=shop"] == 2
    own_server.stop()
    wait_for(lambda: samples(port)["citius_pg_connections_lost_total pool=shop"] == 2, "the loss")
    own_server.start()
    wait_for(lambda: samples(port)["citius_pg_connections_opened_total pool=shop"] == 4, "the end")
    assert samples(port)["citius_pg_connection_failures_total pool=shop"] >= 1


def test_no_client_no_series(serve) -> None:
    serving = serve("", "--management", "127.0.0.1:0")
    assert samples(serving.management()) == {}


def test_statements_are_spans_of_their_request(serve, server, collector) -> None:
    url, got = collector
    serving = serve(
        APP, "--otel", "--no-access-log",
        env={"DSN": server.dsn, "OTEL_EXPORTER_OTLP_ENDPOINT": url, "OTEL_EXPORTER_OTLP_COMPRESSION": "none"},
    )  # fmt: skip
    assert get(serving, "/add/1") == (200, b"2")
    assert (
        get(serving, "/many")[0] == get(serving, "/wrong")[0] == get(serving, "/own-span")[0] == 200
    )
    of_handlers = {path: get(serving, path)[1].decode() for path in ("/inner/span", "/later")}
    serving.signal(signal.SIGTERM)
    assert serving.wait() == 0
    spans = spans_of(got)
    requests = {span.name: span for span in spans if span.kind == 2}
    statements = [span for span in spans if span.kind == 3]

    def children(name: str) -> list[Any]:
        parent = requests[name]
        return [span for span in statements if span.trace_id == parent.trace_id]

    [add] = children("GET /add/{a}")
    assert add.parent_span_id == requests["GET /add/{a}"].span_id
    assert add.name == "SELECT postgres"
    assert attributes_of(add) == {
        "db.system.name": "postgresql",
        "db.namespace": "postgres",
        "db.operation.name": "SELECT",
        "db.query.text": "SELECT $1::int + 1",
        "server.address": str(server.directory),
        "server.port": server.port,
    }
    assert requests["GET /add/{a}"].start_time_unix_nano <= add.start_time_unix_nano
    assert add.start_time_unix_nano < add.end_time_unix_nano
    many = children("GET /many")
    assert sorted(span.name for span in many) == [
        "BEGIN postgres",
        "COMMIT postgres",
        "SELECT postgres",
    ]
    [batch] = [span for span in many if span.name.startswith("SELECT")]
    assert attributes_of(batch)["db.operation.batch.size"] == 2
    [wrong] = children("GET /wrong")
    assert (wrong.status.code, attributes_of(wrong)["error.type"]) == (2, "22012")
    assert attributes_of(wrong)["db.response.status_code"] == "22012"
    # A span that the handler has begun is the parent; the one of the request is what it began with.
    [own] = children("GET /own-span")
    assert own.parent_span_id == bytes([0] * 7 + [7])
    for path, told in of_handlers.items():
        request = requests[f"GET {path}"]
        assert told == f"{request.trace_id.hex()}-{request.span_id.hex()}"
    metrics = pytest.importorskip("opentelemetry.proto.collector.metrics.v1.metrics_service_pb2")
    found = {
        metric.name: metric
        for path, body in got
        if path == "/v1/metrics"
        for resource in metrics.ExportMetricsServiceRequest.FromString(body).resource_metrics
        for scope in resource.scope_metrics
        for metric in scope.metrics
    }
    assert found["db.client.operation.duration"].histogram.data_points[0].count == len(statements)
    points = found["db.client.connection.count"].sum.data_points
    assert {attributes_of(point)["db.client.connection.state"] for point in points} == {
        "used",
        "idle",
    }


def test_asgi_and_wsgi_applications_have_the_span_too(serve, collector) -> None:
    url, got = collector
    env = {"OTEL_EXPORTER_OTLP_ENDPOINT": url, "OTEL_EXPORTER_OTLP_COMPRESSION": "none"}
    for name in ("span_asgi", "span_wsgi"):
        got.clear()
        serving = serve(application(name), "--otel", "--no-access-log", env=env)
        told = get(serving, "/")[1].decode()
        serving.signal(signal.SIGTERM)
        assert serving.wait() == 0
        [span] = spans_of(got)
        assert told == f"{span.trace_id.hex()}-{span.span_id.hex()}"
