"""A server with a management port, and what it tells."""

from __future__ import annotations

import json
from collections.abc import Callable
from http.client import HTTPConnection
from typing import Any

import pytest
from prometheus_client.openmetrics.parser import text_string_to_metric_families as parse_openmetrics
from prometheus_client.parser import text_string_to_metric_families as parse_prometheus
from rig import Server, wait_for


class Managed:
    """A server and its management port."""

    def __init__(self, server: Server) -> None:
        self.server = server
        self.port = server.management()

    def ask(self, path: str, **headers: str) -> tuple[int, str]:
        connection = HTTPConnection("127.0.0.1", self.port, timeout=30)
        try:
            connection.request("GET", path, headers=headers)
            answer = connection.getresponse()
            return answer.status, answer.read().decode()
        finally:
            connection.close()

    def metrics(self, *, openmetrics: bool = False) -> dict[str, float]:
        """All samples by name and labels, read by Prometheus' own parser."""
        accept = "application/openmetrics-text" if openmetrics else "text/plain"
        status, text = self.ask("/metrics", accept=accept)
        assert status == 200
        parse = parse_openmetrics if openmetrics else parse_prometheus
        samples: dict[str, float] = {}
        for family in parse(text):
            assert family.documentation, family
            assert family.type != "unknown", family
            for sample in family.samples:
                labels = ",".join(f"{k}={v}" for k, v in sorted(sample.labels.items()))
                samples[f"{sample.name}{{{labels}}}" if labels else sample.name] = sample.value
        return samples

    def metrics_after(self, responses: int, *, openmetrics: bool = False) -> dict[str, float]:
        """The samples once so many responses are counted: a worker counts one after it has sent it."""

        def are_counted() -> bool:
            found = self.metrics(openmetrics=openmetrics)
            codes = (v for k, v in found.items() if k.startswith("citius_http_responses_total{"))
            return sum(codes) >= responses

        wait_for(are_counted, f"{responses} counted responses")
        # Workers count while a page is made: what stands before the codes may be from before them.
        return self.metrics(openmetrics=openmetrics)

    def ready(self) -> tuple[int, dict[str, Any]]:
        status, text = self.ask("/ready")
        return status, json.loads(text)

    def wait_ready(self) -> None:
        wait_for(lambda: self.ready()[0] == 200, "readiness")


@pytest.fixture
def manage(serve) -> Callable[..., Managed]:
    def start(source: str, *arguments: str) -> Managed:
        return Managed(serve(source, "--management", "127.0.0.1:0", *arguments))

    return start
