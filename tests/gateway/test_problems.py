"""Errors have one shape, with and without middleware; HTML and text for clients that ask for it."""

from html import escape
from typing import Any

import msgspec
import pytest
from citius import App, NotFound, Request
from citius.mcp.failures import text_of
from citius.testing import Client
from citius.web.responses.debug_page import routes_page, traceback_page
from citius.web.routing.rpc.procedures import error_of

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


@pytest.mark.parametrize("has_middleware", [False, True])
@pytest.mark.parametrize("blocking", [False, True])
def test_an_exception_has_the_shape_of_the_other_errors(
    has_middleware: bool, blocking: bool
) -> None:
    """newcomer C: a plain 500 was text for clients of JSON."""
    app = make_app(has_middleware)

    @app.get("/fails", blocking=blocking)
    def fails() -> None:
        raise KeyError("a secret")

    @app.get("/async")
    async def fails_async() -> None:
        raise KeyError("a secret")

    with Client(app, raise_errors=False) as client:
        for path in ("/fails", "/async"):
            plain = client.get(path)
            assert plain.json() == {"title": "Internal Server Error", "status": 500}
            assert plain.headers["content-type"] == "application/problem+json"
            assert plain.headers["vary"] == "accept"
            html = client.get(path, headers={"accept": BROWSER})
            assert "<h1>500 Internal Server Error</h1>" in html.text
            text = client.get(path, headers={"accept": "text/plain"})
            assert text.text == "Internal Server Error"


def test_a_value_that_cannot_be_encoded_says_where() -> None:
    """newcomer C: the error named a line of ours, and no key."""
    app = App()

    class Opaque:
        pass

    values: list[Any] = [
        {"items": [{"id": 1}, {"owner": Opaque()}]},
        [Opaque()],
        {"a": {Opaque(): 3}},
    ]

    @app.get("/{n:int}")
    def handler(n: int) -> Any:
        return values[n]

    @app.get("/declared/{n:int}")
    def declared(n: int) -> dict[str, Any]:
        return values[n]

    with Client(app) as client:
        for path in ("/0", "/declared/0"):
            with pytest.raises(TypeError, match=r"at #/items/1/owner, <.*Opaque"):
                client.get(path)
        with pytest.raises(TypeError, match=r"type Opaque is unsupported \(at #/0, "):
            client.get("/1")
        with pytest.raises(TypeError, match=r"at #/a, \{<"):
            client.get("/2")


def test_a_browser_sees_the_routes_while_an_application_is_developed() -> None:
    """newcomer C: the page of 404 was bare."""
    app = App()
    app.get("/items/{id:int}")(lambda id: missing(id))
    app.post("/make<")(lambda: "made")
    app.exception_handler(404)(routes_page(lambda: app.endpoints, "/docs"))
    html = {"accept": "text/html"}
    with Client(app) as client:
        page = client.get("/itmes/7", headers=html)
        assert page.status_code == 404
        assert "Did you mean <code>/items/{id:int}</code>?" in page.text
        assert "/make&lt;" in page.text
        assert "test_problems.py:" in page.text
        assert 'href="/docs"' in page.text
        assert "no item 7" in client.get("/items/7", headers=html).text
        assert client.get("/itmes/7").headers["content-type"] == "application/problem+json"


class Mute(Exception):
    """Its text cannot be had."""

    def __str__(self) -> str:
        raise RuntimeError("no text")


@pytest.mark.parametrize(
    ("error", "title"),
    [
        (ValueError("a\ud800b"), "ValueError: a\\ud800b"),
        (Mute(), "Mute: &lt;exception str() failed&gt;"),
    ],
)
@pytest.mark.parametrize("accept", ["text/html", "*/*"])
def test_the_page_of_an_exception_has_any_text(error: Exception, title: str, accept: str) -> None:
    app = App()

    @app.get("/")
    def broken() -> None:
        raise error

    app.exception_handler(Exception)(traceback_page)
    with Client(app, raise_errors=False) as client:
        response = client.get("/", headers={"accept": accept})
    assert response.status_code == 500
    assert (f"<h1>{title}</h1>" in response.text) == (accept == "text/html")
    assert "Traceback (most recent call last)" in response.text
    assert "in broken" in response.text


def missing(id: int) -> str:
    raise NotFound(f"no item {id}")


@pytest.mark.parametrize("has_middleware", [False, True])
@pytest.mark.parametrize(
    ("detail", "encoded", "text"),
    [
        ({"id": 1}, {"id": 1}, '{"id":1}'),
        (["a"], ["a"], '["a"]'),
        (3, 3, "3"),
        ("a\ud800b", "a?b", "a?b"),
        ({"it": "\ud800"}, {"it": "?"}, '{"it": "?"}'),
        ({"kind": KeyError}, {"kind": "<class 'KeyError'>"}, '{"kind": "<class \'KeyError\'>"}'),
    ],
    ids=str,
)
def test_details_that_are_no_texts(
    has_middleware: bool, detail: Any, encoded: object, text: str
) -> None:
    """A browser, whose ``Accept`` asks for a page, made a 500 of them; a lone surrogate did for all."""
    app = make_app(has_middleware)

    @app.get("/detail")
    def fails() -> None:
        raise NotFound(detail)

    @app.get("/errors")
    def fails_with_errors() -> None:
        raise NotFound("none", errors=[{"pointer": "#/a", "detail": detail}])

    with Client(app) as client:
        answers = [
            client.get("/detail", headers={"accept": accept})
            for accept in ("application/json", BROWSER, "text/plain")
        ]
        assert [one.status_code for one in answers] == [404] * 3
        assert answers[0].json()["detail"] == encoded
        assert f"<p>{escape(text)}</p>" in answers[1].text
        assert answers[2].text == text
        answers = [
            client.get("/errors", headers={"accept": accept})
            for accept in ("application/json", BROWSER, "text/plain")
        ]
        assert [one.status_code for one in answers] == [404] * 3
        assert answers[0].json()["errors"] == [{"pointer": "#/a", "detail": encoded}]
        assert answers[2].text == f"none\n#/a: {text}"


@pytest.mark.parametrize(
    ("detail", "text"), [({"id": 1}, '{"id":1}'), ("a\ud800", "a?"), ("", "Not Found")], ids=str
)
def test_details_that_callers_of_procedures_get(detail: Any, text: str) -> None:
    app = App()
    app.connect()

    @app.rpc("fails")
    def fails() -> None:
        raise NotFound(detail)

    with Client(app) as client:
        called = client.post("/citius.Procedures/fails", json={})
        assert (called.status_code, called.json()["message"]) == (404, text)
    assert text_of(NotFound(detail)) == text
    status, encoded = error_of(NotFound(detail), is_json=True, message="fails")
    assert (status, msgspec.json.decode(encoded)["message"]) == (404, text)
