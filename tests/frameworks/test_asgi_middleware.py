"""Middleware of Starlette, Sentry and OpenTelemetry in a native application, unchanged."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import sentry_sdk
import servers
from asking import Client, ask
from citius import App, Request, testing
from opentelemetry import trace
from opentelemetry.instrumentation.asgi import OpenTelemetryMiddleware
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from sentry_sdk.integrations.asgi import SentryAsgiMiddleware
from servers import Pair, Running
from starlette.middleware.base import BaseHTTPMiddleware

GZIP = {"accept-encoding": "gzip"}
ORIGIN = {"origin": "https://shop.example"}


@pytest.fixture(scope="module")
def pair(folder: Path) -> Iterator[Pair]:
    theirs = servers.uvicorn("mounts_app:wrapped_reference", folder)
    ours = servers.citius("mounts_app:wrapped", folder)
    yield Pair(ours, theirs)
    ours.kill()
    theirs.kill()


@pytest.mark.parametrize(
    "headers", [{}, GZIP, ORIGIN, {"origin": "https://other.example"}, GZIP | ORIGIN]
)
@pytest.mark.parametrize("path", ["/text", "/stream", "/count"])
def test_gzip_cors_and_sessions(pair: Pair, path: str, headers: dict[str, str]) -> None:
    pair.same(lambda server: ask(server, "GET", path, headers=headers))


def test_a_preflight(pair: Pair) -> None:
    headers = ORIGIN | {"access-control-request-method": "POST"}
    pair.same(lambda server: ask(server, "OPTIONS", "/text", headers=headers))


def test_a_session_of_several_requests(pair: Pair) -> None:
    def count(server: Running) -> list[int]:
        with Client(server) as client:
            return [client.get("/count").json() for _ in range(3)]

    assert pair.same(count) == [1, 2, 3]


def test_an_error_passes_through_it(pair: Pair) -> None:
    response = pair.same(lambda server: ask(server, "GET", "/broken", headers=ORIGIN).status)
    assert response == 500


def make() -> App:
    app = App()

    @app.get("/items/{id}")
    async def item(id: int) -> dict[str, Any]:
        span = trace.get_current_span().get_span_context()
        return {"id": id, "trace": f"{span.trace_id:032x}"}

    @app.get("/broken")
    def broken() -> None:
        raise ValueError("a defect")

    return app


def test_opentelemetry() -> None:
    exporter = InMemorySpanExporter()
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    app = make()
    app.add_middleware(OpenTelemetryMiddleware, tracer_provider=provider)
    known = "0af7651916cd43dd8448eb211c80319c"
    with testing.Client(app, raise_errors=False) as client:
        headers = {"traceparent": f"00-{known}-b7ad6b7169203331-01"}
        assert client.get("/items/7", headers=headers).json() == {"id": 7, "trace": known}
        assert client.get("/broken").status_code == 500
    kinds = [span for span in exporter.get_finished_spans() if span.kind == trace.SpanKind.SERVER]
    assert [(span.attributes or {})["http.status_code"] for span in kinds] == [200, 500]


def test_sentry() -> None:
    events: list[Any] = []
    sentry_sdk.init(
        dsn="https://key@sentry.invalid/1", before_send=lambda event, hint: events.append(event),
        default_integrations=False,
    )  # fmt: skip
    app = make()
    app.add_middleware(SentryAsgiMiddleware)
    with testing.Client(app, raise_errors=False) as client:
        assert client.get("/broken?a=1").status_code == 500
    sentry_sdk.init()
    [event] = events
    assert event["exception"]["values"][-1]["value"] == "a defect"
    assert event["request"]["url"].endswith("/broken")


def test_starlette_s_base_class() -> None:
    class Timed(BaseHTTPMiddleware):
        async def dispatch(self, request: Any, call_next: Any) -> Any:
            response = await call_next(request)
            response.headers["x-timed"] = request.url.path
            return response

    app = make()
    app.add_middleware(Timed)

    @app.post("/echo")
    def echo(request: Request) -> bytes:
        return request.body()

    @app.get("/stream")
    async def stream():
        for number in range(3):
            yield str(number)

    with testing.Client(app) as client:
        response = client.get("/items/7")
        assert (response.status_code, response.headers["x-timed"]) == (200, "/items/7")
        assert client.post("/echo", content=b"abc").content == b"abc"
        assert client.get("/stream").content == b"012"
        with contextlib.suppress(ValueError):
            client.get("/broken")
