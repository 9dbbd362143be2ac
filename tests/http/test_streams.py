"""Responses that are read as they come."""

from __future__ import annotations

import pytest
from citius.http import Client, Limits, ReadError, TooLarge
from citius.testing.http import MockReply, MockTransport


async def test_pieces(mock: MockTransport) -> None:
    mock.add("*", "*", content=[b"a\xc3", b"\xbc\r", b"\nb"])
    client = Client("http://a", transport=mock)
    async with client.stream("GET", "/") as response:
        assert [piece async for piece in response.iter_raw()] == [b"a\xc3", b"\xbc\r", b"\nb"]
    async with client.stream("GET", "/") as response:
        assert "".join([text async for text in response.iter_text()]) == "aü\r\nb"
    async with client.stream("GET", "/") as response:
        assert [line async for line in response.iter_lines()] == ["aü", "b"]
    async with client.stream("POST", "/", json=1) as response:
        assert await response.read() == response.content == "aü\r\nb".encode()
        assert response.text == "aü\r\nb"
    assert mock.calls[-1].is_streamed


async def test_content_is_read_once_and_not_by_itself(mock: MockTransport) -> None:
    mock.add("*", "*", content=b"x")
    client = Client("http://a", transport=mock)
    async with client.stream("GET", "/") as response:
        with pytest.raises(RuntimeError, match=r"read\(\)"):
            response.content
        assert [piece async for piece in response.iter_bytes()] == [b"x"]
        with pytest.raises(RuntimeError, match="once"):
            await anext(response.iter_bytes())


async def test_what_is_left_is_closed(mock: MockTransport) -> None:
    made = MockReply(content=[b"a", b"b"])
    mock.add("*", "*", lambda call: made)
    client = Client("http://a", transport=mock)
    with pytest.raises(LookupError):
        async with client.stream("GET", "/") as response:
            async for _ in response.iter_bytes():
                raise LookupError
    assert made.is_closed


async def test_a_connection_that_breaks(mock: MockTransport) -> None:
    mock.add("*", "*", content=[b"a", ReadError("broken")])
    client = Client("http://a", transport=mock)
    async with client.stream("GET", "/") as response:
        pieces = response.iter_bytes()
        assert await anext(pieces) == b"a"
        with pytest.raises(ReadError):
            await anext(pieces)


async def test_reading_it_whole_has_a_limit(mock: MockTransport) -> None:
    mock.add("*", "*", content=[b"x" * 600, b"x" * 600])
    client = Client("http://a", transport=mock, limits=Limits(body_bytes_max=1000))
    async with client.stream("GET", "/") as response:
        with pytest.raises(TooLarge, match="more than 1000 bytes"):
            await response.read()


async def test_a_redirect_that_is_not_followed_can_be_read(mock: MockTransport) -> None:
    mock.add("*", "*", MockReply(302, headers={"location": "/x"}, content=b"moved"))
    async with Client("http://a", transport=mock).stream("GET", "/") as response:
        assert await response.read() == b"moved"
