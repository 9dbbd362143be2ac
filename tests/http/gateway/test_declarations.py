"""What ``app.forward`` refuses at the start, with file and line; and tests without sockets."""

from __future__ import annotations

import gc
import weakref
from typing import Any

import pytest
from citius import App, Depends, Forbidden, Request, testing
from citius.errors import ConfigError
from citius.http import Client
from citius.http.gateway import Checks, Forward, Upstreams, forward
from citius.testing.http import MockReply, MockTransport

HERE = "test_declarations.py:"


@pytest.mark.parametrize(
    ("pattern", "to", "options", "what"),
    [
        ("/{rest:path}", "ftp://a", {}, "URL of a server"),
        ("/{rest:path}", "http://a/b?c", {}, "without query"),
        ("/{rest:path}", "http://a/b", {}, "leaves out {rest}"),
        ("/{rest:path}", "http://a", {"path": "/x/{other}"}, "no parameter"),
        ("/{rest:path}", "http://a", {"path": "x/{rest}"}, "begins with a slash"),
        ("/{rest:path}", "http://a/{rest}", {"path": "/{rest}"}, "not both"),
        ("/{rest:path}", [], {}, "at least one server"),
        ("/{rest:path}", 7, {}, "to= is a URL"),
        ("/{rest:path}", Client(), {}, "base_url="),
        ("/{rest:path}", "http://u:p@a", {}, "without the credentials in the URL"),
        ("/{rest:path}", Client("http://u:p@a"), {}, "without the credentials in the URL"),
        ("/{rest:path}", ["http://u:p@a"], {}, "without path, query and credentials"),
        ("/{rest:path}", "http://a", {"headers": {"x": "1\r\ny: 2"}}, "holds a line break"),
        ("/{rest:path}", "http://a", {"headers": {"x": "Bearer …"}}, "beyond Latin-1: 'Bearer …'"),
        ("/{rest:path}", "http://a", {"headers": {"x y": "1"}}, "a field name is a token"),
        ("/{rest:path}", "http://a", {"headers": {"x": 1}}, "headers= has texts, got 'x': 1"),
        ("/{rest:path}", Client("http://a/b"), {}, "no path"),
        ("/{rest:path}", Client("http://a", cookies=True), {}, "cookies="),
        ("/{rest:path}", Client("http://a", follow_redirects=True), {}, "follow_redirects="),
        ("/{rest:path}", "http://a", {"host": "other"}, "host="),
        ("/{rest:path}", "http://a", {"forwarded": "all"}, "forwarded="),
        ("/{rest:path}", "http://a", {"via": "a b"}, "via="),
        ("/{rest:path}", "http://a", {"requests_max": 0}, "requests_max="),
        ("/{rest:path}", "http://a", {"methods": []}, "methods="),
        ("/{rest:path}", "http://a", {"timeout": -1}, "more than 0"),
        ("/{rest:path}", "http://a", {"headers": {"Connection": "x"}}, "gateway itself"),
    ],
)
def test_what_cannot_hold(pattern, to, options, what) -> None:
    app = App()
    with pytest.raises(ConfigError, match=what) as raised:
        app.forward(pattern, to, **options)
    assert HERE in str(raised.value)


def test_without_sockets() -> None:
    mock = MockTransport()
    mock.add(
        "GET", "http://upstream/v1/x", MockReply(content="from the mock", headers={"x-a": "b"})
    )
    app = App()
    app.forward("/v1/{rest:path}", Client("http://upstream", transport=mock))
    with testing.Client(app) as client:
        response = client.get("/v1/x")
        assert (response.status_code, response.text) == (200, "from the mock")
        assert response.headers["x-a"] == "b"


@pytest.mark.parametrize(
    ("make", "what"),
    [
        (lambda: Upstreams(["http://a"], balanced="hash"), "did you mean balance="),
        (
            lambda: Checks("/", every=1),
            r"(?s)Checks .*test_declarations.py:.*did you mean every_s=",
        ),
        (lambda: Forward(Client("http://a"), header={}), "did you mean headers="),
        (lambda: forward(None, Client("http://a"), on_reqest=None), "did you mean on_request="),
    ],
)
def test_options_that_do_not_exist(make: Any, what: str) -> None:
    with pytest.raises(ConfigError, match=what):
        make()


def test_a_body_that_was_read_is_not_passed_on() -> None:
    app = App()
    client = Client("http://127.0.0.1:1")

    @app.post("/", stream=True)
    async def handler(request: Request) -> object:
        async for _ in request.stream():
            break
        return await forward(request, client)

    with testing.Client(app) as test, pytest.raises(RuntimeError, match="piece by piece"):
        test.post("/", content=b"x" * 200_000)


def test_dependencies_hold() -> None:
    def never() -> None:
        raise Forbidden("no")

    app = App(dependencies=[Depends(never)])
    app.forward("/v1/{rest:path}", "http://127.0.0.1:1")
    with testing.Client(app) as client:
        assert client.get("/v1/x").status_code == 403


def test_a_client_that_has_passed_on_is_freed() -> None:
    mock = MockTransport()
    mock.add("GET", "http://upstream/x", MockReply(content="from the mock"))
    app = App()
    seen: list[weakref.ref[Client]] = []

    @app.get("/x")
    async def handler(request: Request) -> Any:
        client = Client("http://upstream", transport=mock)
        seen.append(weakref.ref(client))
        return await forward(request, client)

    with testing.Client(app) as client:
        assert client.get("/x").text == "from the mock"
    gc.collect()
    assert seen[0]() is None
