"""The client in a served application: on the loop, in threads, in serial handlers; its metrics and spans."""

from __future__ import annotations

import signal
from concurrent.futures import ThreadPoolExecutor

import rig
from otel_rig import attributes_of, spans_of
from rig import application, client_samples, wait_for

APP = application("http_caller_app")
ALONE = {"UPSTREAM": "http://127.0.0.1:1"}


def get(port: int, path: str) -> bytes:
    return rig.get(port, path)[1]


def test_calls(serve) -> None:
    upstream = serve(APP, env=ALONE)
    env = {"UPSTREAM": f"http://127.0.0.1:{upstream.port}"}
    server = serve(APP, "--workers", "1", env=env)
    for kind in ("call", "thread", "serial"):
        for _ in range(3):
            assert get(server.port, f"/{kind}/hello") == b"hello"
    with ThreadPoolExecutor(16) as pool:
        paths = [f"/{kind}/hello" for kind in ("call", "thread", "serial")] * 40
        assert set(pool.map(lambda path: get(server.port, path), paths)) == {b"hello"}
    assert get(server.port, "/broken") == b"ConnectError"
    status, body = rig.get(server.port, "/open")
    assert status == 503
    assert b"secret" not in body


def test_metrics(serve) -> None:
    upstream = serve(APP, env=ALONE)
    env = {"UPSTREAM": f"http://127.0.0.1:{upstream.port}"}
    server = serve(APP, "--workers", "1", "--management", "127.0.0.1:0", env=env)
    port = server.management()
    for path in ("/call/hello", "/call/hello", "/call/none", "/broken"):
        get(server.port, path)
    found = client_samples(port, "upstream")
    assert found["citius_http_client_requests_total ok"] == 2
    assert found["citius_http_client_requests_total error"] == 1  # a 404
    assert found["citius_http_client_request_duration_seconds_count"] == 3
    assert found["citius_http_client_connections_opened_total"] == 1
    wait_for(
        lambda: client_samples(port, "upstream").get("citius_http_client_connections idle") == 1,
        "the gauge",
    )
    broken = client_samples(port, "broken")
    assert broken["citius_http_client_connection_failures_total"] == 1
    assert broken["citius_http_client_requests_total error"] == 1


def test_requests_are_spans_of_their_request(serve, collector) -> None:
    upstream = serve(APP, env=ALONE)
    url, got = collector
    env = {"OTEL_EXPORTER_OTLP_ENDPOINT": url, "OTEL_EXPORTER_OTLP_COMPRESSION": "none"}
    place = f"http://127.0.0.1:{upstream.port}"
    server = serve(APP, "--otel", "--no-access-log", env=env | {"UPSTREAM": place})
    parent = get(server.port, "/call/hello").decode()
    get(server.port, "/call/none?q=1")
    get(server.port, "/broken")
    server.signal(signal.SIGTERM)
    assert server.wait() == 0
    spans = spans_of(got)
    called = {attributes_of(span)["url.full"]: span for span in spans if span.kind == 3}
    hello = called[f"{place}/hello"]
    # The context of the trace has gone along.
    assert parent.split("-")[1] == hello.trace_id.hex()
    assert hello.name == "GET"
    assert attributes_of(hello) == {
        "http.request.method": "GET", "http.response.status_code": 200, "server.address": "127.0.0.1",
        "server.port": upstream.port, "url.full": f"{place}/hello",
    }  # fmt: skip
    assert attributes_of(called[f"{place}/none"])["error.type"] == "404"
    assert attributes_of(called["http://127.0.0.1:1/"])["error.type"] == "ConnectError"
    [request] = [s for s in spans if s.kind == 2 and s.span_id == hello.parent_span_id]
    assert request.trace_id == hello.trace_id
