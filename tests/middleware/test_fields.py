"""Origins and Vary, as several middleware use them."""

from __future__ import annotations

import pytest
from citius import App, Request, Response
from citius.testing import Client
from citius.web.middleware.fields import add_vary, origin_of


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (None, "a, b"),
        ("accept", "accept, a, b"),
        ("A", "A, b"),
        ("*", "*"),
        ("accept, *", "accept, *"),
        ("b, a", "b, a"),
    ],
)
def test_vary(before: str | None, after: str) -> None:
    response = Response("x", headers={} if before is None else {"Vary": before})
    add_vary(response, "a", "b")
    assert response.headers["vary"] == after


@pytest.mark.parametrize(
    ("host", "origin"),
    [
        ("shop.example", "http://shop.example"),
        ("Shop.Example:80", "http://shop.example"),
        ("shop.example:8000", "http://shop.example:8000"),
        ("[::1]:80", "http://[::1]"),
        ("[::1]", "http://[::1]"),
    ],
)
def test_origin_of_a_request(host: str, origin: str) -> None:
    app = App()
    app.get("/")(origin_of_request)
    with Client(app) as client:
        assert client.get("/", headers={"host": host}).text == origin


def origin_of_request(request: Request) -> str:
    return origin_of(request)
