"""What a pool counts for the management port, and the spans of its statements as a collector gets them."""

from __future__ import annotations

import signal
from typing import Any

import httpx
import pytest
from otel_rig import attributes_of, spans_of
from prometheus_client.parser import text_string_to_metric_families
from rig import application, wait_for

APP = application("sqlite_app")


def samples(port: int) -> dict[str, float]:
    """All samples of the pool by name and labels, read by Prometheus' own parser."""
    text = httpx.get(f"http://127.0.0.1:{port}/metrics").text
    return {
        " ".join(
            [sample.name.removeprefix("citius_sqlite_"), *sorted(sample.labels.values())]
        ): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
        if sample.name.startswith("citius_sqlite_")
    }


@pytest.mark.parametrize("reactors", ["1", "2"])
def test_metrics(serve, tmp_path, reactors: str) -> None:
    serving = serve(
        APP, "--workers", "1", "--management", "127.0.0.1:0", "--reactor-threads", reactors,
        env={"DATABASE": str(tmp_path / "shop.db")},
    )  # fmt: skip
    port = serving.management()
    base = f"http://127.0.0.1:{serving.port}"
    assert httpx.post(f"{base}/items/a").json() == 1
    assert httpx.get(f"{base}/items/1").text == "a"
    assert httpx.get(f"{base}/wrong").text == "SQLITE_CONSTRAINT_PRIMARYKEY"
    assert httpx.get(f"{base}/left").text == "left"
    wait_for(lambda: samples(port)["statements_total cancelled shop"] == 1, "what was interrupted")
    found = samples(port)
    # The transaction's own too: BEGIN.
    assert found["statements_total ok shop"] == 3
    assert found["statements_total error shop"] == 1
    assert found["statement_duration_seconds_count shop"] == 5
    assert 0 < found["statement_duration_seconds_sum shop"] < 5
    assert found["refused_total shop"] == found["connection_failures_total shop"] == 0
    opened = found["connections_opened_total shop"]
    assert opened in (2, 3)
    wait_for(lambda: samples(port)["connections 0 idle shop"] == opened, "the gauge")
    assert serving.stop() == 0


def test_statements_are_spans_of_their_request(serve, tmp_path, collector) -> None:
    url, got = collector
    path = str(tmp_path / "shop.db")
    serving = serve(
        APP, "--otel", "--no-access-log",
        env={"DATABASE": path, "OTEL_EXPORTER_OTLP_ENDPOINT": url},
    )  # fmt: skip
    base = f"http://127.0.0.1:{serving.port}"
    assert httpx.post(f"{base}/items/a").json() == 1
    assert httpx.get(f"{base}/items/1").text == "a"
    assert httpx.get(f"{base}/wrong").status_code == 200
    serving.signal(signal.SIGTERM)
    assert serving.wait() == 0
    spans = spans_of(got)
    requests = {span.name: span for span in spans if span.kind == 2}

    def attributes(name: str) -> list[dict[str, Any]]:
        parent = requests[name]
        return [
            attributes_of(span) | {"name": span.name}
            for span in spans
            if span.kind == 3 and span.parent_span_id == parent.span_id
        ]

    assert attributes("GET /items/{id}") == [
        {
            "name": "SELECT",
            "db.system.name": "sqlite",
            "db.namespace": path,
            "db.operation.name": "SELECT",
            "db.query.text": "SELECT name FROM item WHERE id = ?1",
        }
    ]
    assert {one["name"] for one in attributes("POST /items/{name}")} == {"BEGIN", "INSERT"}
    [wrong] = attributes("GET /wrong")
    assert wrong["error.type"] == wrong["db.response.status_code"] == "SQLITE_CONSTRAINT_PRIMARYKEY"
