"""The same client in threads; on a loop it refuses to wait."""

from __future__ import annotations

import asyncio
import io
from concurrent.futures import ThreadPoolExecutor

import pytest
from citius.errors import ChannelMisuse
from citius.http import Client, ConnectError, Digest, Hedge, Limits, Retry
from citius.testing.http import MockCall, MockReply, MockTransport


def test_requests(mock: MockTransport) -> None:
    mock.add(
        "*", "*", lambda call: MockReply(content=call.content, headers={"x-method": call.method})
    )
    client = Client("http://a", transport=mock).sync
    for name in ("get", "head", "options", "delete", "post", "put", "patch"):
        assert getattr(client, name)("/").headers["x-method"] == name.upper()
    assert client.post("/", json={"a": 1}).json() == {"a": 1}
    assert client.post("/", content=[b"a", b"b"]).content == b"ab"
    assert client.post("/", content=io.BytesIO(b"file")).content == b"file"
    assert b'name="f"' in client.post("/", files={"f": b"x"}).content


def test_layers(mock: MockTransport) -> None:
    def answer(call: MockCall) -> MockReply:
        if "authorization" not in call.headers:
            return MockReply(
                401, headers={"www-authenticate": 'Digest realm="", nonce="n", qop="auth"'}
            )
        return MockReply(302, headers={"location": "/x"})

    mock.add("*", "http://a/", ConnectError("x"), answer)
    mock.add("*", "http://a/x", content="there")
    client = Client(
        "http://a", transport=mock, auth=Digest("u", "w"), retry=Retry(backoff_s=0.001), cookies=True,
        follow_redirects=True, hedge=Hedge(1), limits=Limits(requests_per_origin_max=2),
    )  # fmt: skip
    assert client.sync.get("/").text == "there"


def test_streams(mock: MockTransport) -> None:
    mock.add("*", "*", content=[b"a\n", b"b"])
    client = Client("http://a", transport=mock).sync
    with client.stream("GET", "/") as response:
        assert list(response.iter_raw()) == [b"a\n", b"b"]
    with client.stream("GET", "/") as response:
        assert list(response.iter_lines()) == ["a", "b"]
    with client.stream("GET", "/") as response:
        assert response.read() == response.content == b"a\nb"


def test_threads(mock: MockTransport) -> None:
    mock.add("*", "*")
    client = Client("http://a", transport=mock, limits=Limits(requests_per_origin_max=2)).sync
    with ThreadPoolExecutor(8) as pool:
        statuses = list(pool.map(lambda _: client.get("/").status_code, range(50)))
    assert statuses == [200] * 50


def test_an_error_of_the_content(mock: MockTransport) -> None:
    def pieces():
        yield b"a"
        raise LookupError("own")

    mock.add("*", "*")
    with pytest.raises(LookupError, match="own"):
        Client("http://a", transport=mock).sync.post("/", content=pieces())


async def test_a_loop_is_not_stopped(mock: MockTransport) -> None:
    mock.add("*", "*")
    client = Client("http://a", transport=mock)
    with pytest.raises(ChannelMisuse, match="await client"):
        client.sync.get("/")
    assert (await asyncio.to_thread(client.sync.get, "/")).status_code == 200


def test_what_needs_a_loop(mock: MockTransport) -> None:
    async def hook(request: object) -> None:
        await asyncio.sleep(0)

    mock.add("*", "*")
    client = Client("http://a", transport=mock, event_hooks={"request": [hook]})
    with pytest.raises(RuntimeError, match="waits for an event loop"):
        client.sync.get("/")
