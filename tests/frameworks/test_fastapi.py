"""What FastAPI's tutorial teaches, by httpx and a browser."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from asking import Client, ask
from rig import wait_for
from servers import Pair, Running, citius

pytestmark = pytest.mark.parametrize(
    "pair", [pytest.param(("asgi", "fastapi_app:app", (), {}), id="fastapi")], indirect=True
)

GOOD = {"name": "Teapot", "price": 3.5, "tags": ["a"]}


@pytest.mark.parametrize(
    ("path", "sent", "status"),
    [
        ("/items/7?q=a&q=b", GOOD, 201),
        ("/items/404", GOOD, 404),
        ("/items/0", GOOD, 422),
        ("/items/seven", GOOD, 422),
        ("/items/7", {"name": "T", "price": -1}, 422),
        ("/items/7", [], 422),
    ],
)
def test_models(pair: Pair, path: str, sent: object, status: int) -> None:
    headers = {"cookie": "ads_id=x", "x-token": "t"}
    answer = pair.same(lambda server: ask(server, "POST", path, json=sent, headers=headers))
    assert answer.status == status
    assert answer["x-tag"] == path.partition("?")[0]


def test_json_that_is_none(pair: Pair) -> None:
    headers = {"content-type": "application/json"}
    for body in (b"{", b"\xff", b""):
        answer = pair.same(
            lambda server, body=body: ask(server, "POST", "/items/7", content=body, headers=headers)
        )
        assert answer.status in (400, 422)


def test_dependencies_with_yield(pair: Pair) -> None:
    def depend(server: Running) -> list[str]:
        with Client(server) as client:
            before = len(client.get("/steps").json())
            assert client.get("/depends").status_code == 200
            assert client.get("/depends-fails").status_code == 418
            return client.get("/steps").json()[before:]

    assert pair.same(depend) == ["open", "close", "open", "close"]


def test_background_tasks_run_after_the_answer(pair: Pair) -> None:
    def notify(server: Running) -> object:
        with Client(server) as client:
            answer = client.ask("POST", "/notify/later")
            wait_for(lambda: client.get("/steps").json()[-1] == "later", "the background task")
            return answer

    assert json.loads(pair.same(notify).body) == {"accepted": "later"}


def test_security(pair: Pair) -> None:
    assert pair.same(lambda server: ask(server, "GET", "/me"))["www-authenticate"] == "Basic"
    auth = ("ada", "secret")
    assert pair.same(lambda server: ask(server, "GET", "/me", auth=auth)).body == b'"ada"'


def test_its_documentation(pair: Pair) -> None:
    schema = json.loads(pair.same(lambda server: ask(server, "GET", "/openapi.json")).body)
    assert "/items/{item_id}" in schema["paths"]
    page = pair.same(lambda server: ask(server, "GET", "/docs"))
    assert b"swagger-ui" in page.body
    assert pair.same(lambda server: ask(server, "GET", "/redoc")).status == 200


def test_lifespan(pair: Pair, folder: Path) -> None:
    assert pair.same(lambda server: ask(server, "GET", "/started")).body == b'"yes"'
    server = citius("fastapi_app:app", folder)
    assert server.stop() == 0
    assert "lifespan over" in server.log
