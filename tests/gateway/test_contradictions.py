"""Options that cannot work, or contradict each other, end the start: they were taken silently (A2)."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from citius import App, ConfigError, Depends, OpenAPI, Path, Query, Response
from citius.cluster import Cluster
from citius.testing import Client
from citius.web.middleware import CORS, SecurityHeaders, SessionCookie
from citius.web.security import JWT


class Item(msgspec.Struct):
    id: int


def text() -> str:
    return "x"


def item() -> Item:
    return Item(1)


def route(handler: Any = text, **options: Any) -> None:
    app = App()
    app.get("/", **options)(handler)
    with Client(app):
        pass


HEADS: list[tuple[dict[str, Any], str]] = [
    ({"headers": {"a b": "c"}}, "a field name is a token"),
    ({"headers": {"a": "c\r\nx: y"}}, "holds a line break"),
    ({"headers": {"a": 3}}, "names and values are texts, got 'a': 3"),
    ({"headers": {"Content-Length": "3"}}, "which the server sets"),
    ({"headers": {"transfer-encoding": "chunked"}}, "which the server sets"),
    ({"headers": {"Upgrade": "h2c"}}, "which the server sets"),
    ({"headers": {"connection": "upgrade"}}, "which the server sets"),
    ({"content_type": "json"}, "content_type= is a media type"),
    ({"content_type": "text/html\r\nx: y"}, "holds a line break"),
]


@pytest.mark.parametrize(("options", "said"), HEADS, ids=[said for _, said in HEADS])
def test_fields_of_responses_that_cannot_be_sent(options: dict[str, Any], said: str) -> None:
    """Each request was a 500."""
    with pytest.raises(ConfigError, match=rf"the route / .*test_contradictions.py:\d+.*{said}"):
        route(**options)


@pytest.mark.parametrize("status", [204, 205, 304])
def test_responses_without_content(status: int) -> None:
    """The value of the handler was dropped, and the content's type sent."""
    for handler in (text, item):
        with pytest.raises(ConfigError, match=f"status_code={status}, whose responses have no"):
            route(handler, status_code=status)
    with pytest.raises(ConfigError, match="and returns Item; return None"):
        route(lambda: None, status_code=status, response=Item)

    def nothing() -> None: ...
    def maybe() -> Item | None: ...
    def own() -> Response:
        return Response(b"", status)

    for handler in (nothing, maybe, own, lambda: None):
        route(handler, status_code=status)


OTHERS: list[tuple[Any, str]] = [
    (lambda: CORS(origin_regex=".*", credentials=True), "matches every origin"),
    (lambda: CORS(origin_regex=r"https?://.+", credentials=True), "matches every origin"),
    (lambda: JWT("k" * 40, algorithms=["RS256"]), "the key is none for RS256"),
    (lambda: JWT("k" * 40, algorithms=["ES256"]), "the key is none for ES256"),
    (lambda: SessionCookie(path="app"), "path begins with a slash"),
    (lambda: SessionCookie(max_age_s=0), "max_age_s must be at least 1"),
    (lambda: SecurityHeaders(hsts_max_age_s=0, hsts_subdomains=True), "needs hsts_max_age_s"),
    (lambda: Depends(text, scope="app", cached=False), "drop cached=False"),
    (lambda: Query(multiple_of=0), "multiple_of must be more than 0"),
    (lambda: Path(3), "a parameter of the path has no default, got 3"),
    (lambda: App().executor("e", threads=0), "threads must be more than 0"),
    (lambda: App().executor("e", threads=1, calls_max=0), "calls_max must be more than 0"),
    (lambda: App().executor("e", threads=1, deadline_s=0), "deadline_s must be more than 0"),
    (lambda: Cluster().cache("x", ttl_s=0), "ttl_s must be more than 0"),
    (lambda: Cluster().lock("x", ttl_s=0), "ttl_s must be more than 0"),
    (lambda: OpenAPI(path="openapi.json"), "path= begins with a slash"),
    (lambda: OpenAPI(path="/api", docs="/api"), "path= and docs= are both '/api'"),
]


@pytest.mark.parametrize(("make", "said"), OTHERS, ids=[said for _, said in OTHERS])
def test_what_cannot_work(make: Any, said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        make()


def test_what_works() -> None:
    route(headers={"x-a": "b", "connection": "close"}, content_type="text/plain; charset=utf-8")
    CORS(origin_regex=r"https://\w+\.example\.org", credentials=True)
    CORS(origin_regex=".*")
    SecurityHeaders(hsts_max_age_s=0)
    Path(..., ge=1)
