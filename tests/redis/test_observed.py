"""What a client counts for the management port, and the spans of its commands as a collector gets them."""

from __future__ import annotations

import signal
from typing import Any

import rig
from otel_rig import attributes_of, spans_of
from redis_rig import Server
from rig import application, client_samples, wait_for

APP = application("redis_observed_app")


def get(port: int, path: str) -> bytes:
    return rig.get(port, path)[1]


def test_metrics(serve, own_server: Server) -> None:
    env = {"REDIS": own_server.url}
    serving = serve(APP, "--workers", "1", "--management", "127.0.0.1:0", env=env)
    port = serving.management()
    assert get(serving.port, "/add/2") == b"2"
    assert get(serving.port, "/many") == b"[null,1,7,true,true]"
    assert get(serving.port, "/wrong") == b"WRONGTYPE"
    assert get(serving.port, "/left") == b"left"
    found = client_samples(port, "shop")
    # A transaction is one operation, and so is a script.
    assert found["citius_redis_commands_total ok"] == 5
    assert found["citius_redis_commands_total error"] == 1
    assert found["citius_redis_commands_total cancelled"] == 1
    assert found["citius_redis_command_duration_seconds_count"] == 7
    assert 0 < found["citius_redis_command_duration_seconds_sum"] < 5
    assert found["citius_redis_refused_total"] == 0
    # The second for the command that blocks.
    assert found["citius_redis_connections_opened_total"] == 2
    wait_for(
        lambda: client_samples(port, "shop").get("citius_redis_connections idle") == 1, "the gauge"
    )
    assert get(serving.port, "/cached") == b"[null,null]"
    assert client_samples(port, "cached")["citius_redis_commands_total ok"] == 2
    own_server.stop()
    wait_for(
        lambda: client_samples(port, "shop")["citius_redis_connections_lost_total"] >= 1, "the loss"
    )
    failures = "citius_redis_connection_failures_total"
    wait_for(lambda: client_samples(port, "shop")[failures] >= 1, "an attempt that fails")
    own_server.start()
    wait_for(
        lambda: client_samples(port, "shop")["citius_redis_connections_opened_total"] >= 3,
        "a new one",
    )


def test_commands_are_spans_of_their_request(serve, own_server: Server, collector) -> None:
    url, got = collector
    env = {"OTEL_EXPORTER_OTLP_ENDPOINT": url, "OTEL_EXPORTER_OTLP_COMPRESSION": "none"}
    serving = serve(APP, "--otel", "--no-access-log", env=env | {"REDIS": own_server.url})
    for path in ("/add/1", "/many", "/wrong", "/cached", "/left"):
        get(serving.port, path)
    serving.signal(signal.SIGTERM)
    assert serving.wait() == 0
    spans = spans_of(got)
    requests = {span.name: span for span in spans if span.kind == 2}

    def children(name: str) -> list[Any]:
        parent = requests[name]
        return [s for s in spans if s.kind == 3 and s.trace_id == parent.trace_id]

    [add] = children("GET /add/{a}")
    assert add.parent_span_id == requests["GET /add/{a}"].span_id
    assert add.name == "INCRBY"
    assert attributes_of(add) == {
        "db.system.name": "redis",
        "db.namespace": "0",
        "db.operation.name": "INCRBY",
        "server.address": "127.0.0.1",
        "server.port": own_server.port,
    }
    many = {span.name: span for span in children("GET /many")}
    assert sorted(many) == ["EVAL", "MULTI", "PING"]
    assert attributes_of(many["MULTI"])["db.operation.batch.size"] == 2
    [wrong] = children("GET /wrong")
    assert (wrong.status.code, attributes_of(wrong)["error.type"]) == (2, "WRONGTYPE")
    assert attributes_of(wrong)["db.response.status_code"] == "WRONGTYPE"
    assert [span.name for span in children("GET /cached")] == ["GET", "GET"]
    [left] = children("GET /left")
    assert left.name == "BLPOP"
    # Keys and values are in no span.
    assert b"secret" not in b"".join(body for _, body in got)
