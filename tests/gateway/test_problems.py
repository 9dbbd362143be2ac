"""Errors have one shape, with and without middleware; HTML and text for clients that ask for it."""

from typing import Any

import pytest
from citius import App, NotFound, Request
from citius.testing import Client

BROWSER = "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"


def make_app(has_middleware: bool) -> App:
    app = App()

    @app.get("/missing")
    def missing() -> None:
        raise NotFound("no <such> item")

    @app.get("/items")
    def items(page: int) -> int:
        return page

    if has_middleware:

        @app.middleware
        def through(request: Request, next: Any) -> Any:
            return next(request)

    return app


@pytest.mark.parametrize("has_middleware", [False, True])
@pytest.mark.parametrize(
    ("accept", "media_type", "body"),
    [
        (None, "application/problem+json", '{"title":"Not Found","status":404}'),
        ("application/json, text/plain, */*", "application/problem+json", None),
        ("image/png", "application/problem+json", None),
        ("text/plain", "text/plain; charset=utf-8", "Not Found"),
        (BROWSER, "text/html; charset=utf-8", None),
    ],
)
def test_a_path_without_a_route(
    has_middleware: bool, accept: str | None, media_type: str, body: str | None
) -> None:
    headers = {} if accept is None else {"accept": accept}
    with Client(make_app(has_middleware)) as client:
        for method, path, status in (("GET", "/none", 404), ("POST", "/items", 405)):
            response = client.request(method, path, headers=headers)
            assert (response.status_code, response.headers["content-type"]) == (status, media_type)
            assert response.headers["vary"] == "accept"
            if "json" in media_type:
                assert response.json()["status"] == status
        assert body is None or client.get("/none", headers=headers).text == body


def test_errors_of_handlers_in_text_and_html() -> None:
    with Client(make_app(False)) as client:
        html = client.get("/missing", headers={"accept": BROWSER})
        assert "<h1>404 Not Found</h1><p>no &lt;such&gt; item</p>" in html.text
        text = client.get("/items?page=x", headers={"accept": "text/plain"})
        assert text.text == "request validation failed\nquery #/page: expected an integer"
        page = client.get("/items", headers={"accept": BROWSER})
        assert "<li>query #/page: missing</li>" in page.text
        assert client.get("/missing").json() == {
            "title": "Not Found", "status": 404, "detail": "no <such> item",
        }  # fmt: skip
