"""The examples do what they say."""

from __future__ import annotations

import hashlib
import runpy
from pathlib import Path

import pytest
from citius.testing import Client

EXAMPLES = Path(__file__).parents[2] / "examples"


@pytest.fixture
def client(request: pytest.FixtureRequest):
    names = runpy.run_path(str(EXAMPLES / f"{request.param}.py"))
    with Client(names["app"]) as made:
        yield made


@pytest.mark.parametrize("client", ["hello"], indirect=True)
def test_hello(client: Client) -> None:
    assert client.get("/").text == "Welcome!\n"


@pytest.mark.parametrize("client", ["todo"], indirect=True)
def test_todo(client: Client) -> None:
    made = client.post("/todos", json={"title": "write"})
    assert (made.status_code, made.headers["location"]) == (201, "/todos/1")
    assert made.headers["server-timing"].startswith("app;dur=")
    client.post("/todos", msgpack={"title": "read", "done": True})
    assert [todo["title"] for todo in client.get("/todos").json()] == ["write", "read"]
    assert [todo["title"] for todo in client.get("/todos?done=true").json()] == ["read"]
    assert client.put("/todos/1", json={"title": "rest", "done": True}).json()["title"] == "rest"
    packed = client.get("/todos/1", headers={"accept": "application/msgpack"})
    assert packed.msgpack()["done"] is True
    assert client.delete("/todos/1").status_code == 204
    assert client.get("/todos/1").json()["detail"] == "there is no to-do 1"
    assert client.post("/todos", json={"title": 7}).status_code == 422


@pytest.mark.parametrize("client", ["stream"], indirect=True)
def test_stream(client: Client) -> None:
    answer = client.get("/ticks?count=3&pause_ms=1")
    assert answer.headers["content-type"] == "text/event-stream"
    assert answer.text == "data: 0\n\ndata: 1\n\ndata: 2\n\n"
    sent = client.put("/upload", content=[b"a" * 1000, b"b"]).json()
    assert sent == {"bytes": 1001, "sha256": hashlib.sha256(b"a" * 1000 + b"b").hexdigest()}


def test_every_example_is_listed_and_tested() -> None:
    names = {path.name for path in EXAMPLES.glob("*.py")}
    readme = (EXAMPLES / "README.md").read_text()
    assert all(f"[{name}]({name})" in readme for name in names)
    tested = Path(__file__).read_text()
    assert all(f'["{name.removesuffix(".py")}"]' in tested for name in names)
