"""Flask beyond the course: sessions, flashed messages, templates, limits, its error handlers."""

from __future__ import annotations

import json

import pytest
from asking import HOST, Client, ask
from servers import Pair, Running, connect

WAYS = {"inline": (), "threads": ("--threads", "4"), "gevent": ("--loop", "gevent")}
pytestmark = pytest.mark.parametrize(
    "pair",
    [pytest.param(("wsgi", "flask_app:app", options, {}), id=way) for way, options in WAYS.items()],
    indirect=True,
)


def test_sessions(pair: Pair) -> None:
    def count(server: Running) -> list[int]:
        with Client(server) as client:
            return [client.get("/count").json() for _ in range(3)]

    assert pair.same(count) == [1, 2, 3]


def test_flashed_messages_cross_a_redirect(pair: Pair) -> None:
    def say(server: Running) -> tuple[object, list[str]]:
        with Client(server) as client:
            answer = client.ask("POST", "/say", data={"words": "well done"})
            return answer, client.get("/said").json() + client.get("/said").json()

    answer, said = pair.same(say)
    assert (answer.status, answer["location"]) == (302, "/said")
    assert said == ["well done"]


def test_templates_and_absolute_addresses(pair: Pair) -> None:
    page = pair.same(lambda server: ask(server, "GET", "/page/<Ada>")).body.decode()
    assert "<h1>Hello, &lt;Ada&gt;!</h1>" in page
    assert f"http://{HOST}/hello" in page


def test_error_handlers(pair: Pair) -> None:
    assert pair.same(lambda server: ask(server, "GET", "/a/b")).body == b"nothing at /a/b"
    assert pair.same(lambda server: ask(server, "GET", "/teapot")).status == 418


def test_a_limit_of_its_own(pair: Pair) -> None:
    """The application answers before it has read; the rest of the body is not taken for a request."""

    def exceed(server: Running) -> int:
        return ask(server, "POST", "/echo-limited", content=b"x" * 100_000).status

    assert pair.same(exceed) == 413
    with connect(pair.ours) as peer:
        assert peer.request("POST", "/echo-limited", b"x" * 100_000, host=HOST).status == 413
        assert peer.request("GET", "/hello", host=HOST).status == 200


def test_uploads_that_are_none(pair: Pair) -> None:
    headers = {"content-type": "multipart/form-data; boundary=b"}
    for body in (b"", b"--b\r\n", b"--b\r\nContent-Disposition: form-data; name=a\r\n\r\nx"):
        answer = pair.same(
            lambda server, body=body: ask(server, "POST", "/upload", content=body, headers=headers)
        )
        assert answer.status == 400


def test_many_at_once(pair: Pair) -> None:
    from concurrent.futures import ThreadPoolExecutor

    def crowd(server: Running) -> list[str]:
        def one(number: int) -> str:
            return json.loads(ask(server, "GET", f"/greet/{number}").body)["name"]

        with ThreadPoolExecutor(8) as pool:
            return list(pool.map(one, range(40)))

    assert pair.same(crowd) == [str(number) for number in range(40)]
