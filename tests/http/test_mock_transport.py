"""Answers that tests declare, and answers that were recorded."""

from __future__ import annotations

from pathlib import Path

import pytest
from citius.http import Client, ReadError
from citius.testing.http import MockReply, MockTransport, NotDeclared, Recorder


async def test_what_is_answered(mock: MockTransport) -> None:
    mock.add("*", "*", status_code=404)
    users = mock.add("GET", "http://a/users", json=[])
    mock.add("GET", "http://a/users?page=2", json=[2])
    client = Client("http://a", transport=mock)
    assert (await client.get("/users")).json() == []
    assert (await client.get("/users?page=1")).json() == []
    assert (await client.get("/users", params={"page": 2})).json() == [2]
    assert (await client.post("/users")).status_code == 404
    assert [call.url for call in users.calls] == ["http://a/users", "http://a/users?page=1"]
    mock.assert_all_called()
    mock.add("GET", "http://never/")
    with pytest.raises(AssertionError, match="not requested: GET http://never/"):
        mock.assert_all_called()


async def test_what_has_no_content_by_its_method_or_status(mock: MockTransport) -> None:
    """As of a server: a test would see what no server can send."""
    client = Client("http://a", transport=mock)
    mock.add("*", "*", content="content")
    assert (await client.head("/")).content == b""
    assert (await client.get("/")).content == b"content"
    for status in (204, 304):
        mock.add("*", "*", lambda call, status=status: MockReply(status, content="content"))
        assert (await client.get("/")).content == b""


async def test_answers_in_turn(mock: MockTransport) -> None:
    mock.add("GET", "*", MockReply(503), ReadError("cut"), MockReply(content="last"))
    client = Client("http://a", transport=mock)
    assert (await client.get("/")).status_code == 503
    with pytest.raises(ReadError):
        await client.get("/")
    assert [(await client.get("/")).text for _ in range(2)] == ["last", "last"]


async def test_what_was_not_declared(mock: MockTransport) -> None:
    mock.add("GET", "http://a/x")
    with pytest.raises(
        NotDeclared, match="POST http://a/y was not declared; there is GET http://a/x"
    ):
        await Client("http://a", transport=mock).post("/y")


async def test_records(mock: MockTransport, tmp_path: Path) -> None:
    path = tmp_path / "recorded.json"
    mock.add(
        "POST",
        "*",
        lambda call: MockReply(json=call.json(), headers=[("set-cookie", "s=1"), ("x", "y")]),
    )
    client = Client("http://a", transport=Recorder(path, mock), auth=("user", "word"))
    for number in (1, 2, 1):
        assert (await client.post("/", json=number)).json() == number
    assert len(mock.calls) == 2
    assert "set-cookie" not in path.read_text()
    assert "Basic" not in path.read_text()
    again = Client("http://a", transport=Recorder(path, mode="none"))
    response = await again.post("/", json=2)
    assert (response.json(), response.headers["x"]) == (2, "y")
    with pytest.raises(NotDeclared, match=r"recorded\.json"):
        await again.post("/", json=3)
    renewed = Client("http://a", transport=Recorder(path, mock, mode="all"))
    await renewed.post("/", json=1)
    assert len(mock.calls) == 3
