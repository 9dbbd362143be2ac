"""What a response says, and what is made of its content."""

from __future__ import annotations

import dataclasses

import msgspec
import pytest
from citius.errors import ConfigError
from citius.http import Client, DecodingError, Response, StatusError
from citius.testing.http import MockReply, MockTransport


async def answer(mock: MockTransport, **options) -> Response:
    mock.add("*", "*", MockReply(**options))
    return await Client("http://a", transport=mock).get("/x")


class Item(msgspec.Struct):
    name: str
    price: float


@dataclasses.dataclass
class Plain:
    name: str


async def test_values(mock: MockTransport) -> None:
    pydantic = pytest.importorskip("pydantic")

    class Model(pydantic.BaseModel):
        name: str

    response = await answer(mock, json={"name": "x", "price": 1})
    assert response.json() == {"name": "x", "price": 1}
    assert response.decode(Item) == Item("x", 1.0)
    assert response.decode(Plain) == Plain("x")
    assert response.decode(Model) == Model(name="x")
    assert (await answer(mock, json=[{"name": "x"}])).decode(list[Model]) == [Model(name="x")]
    packed = await answer(mock, content=msgspec.msgpack.encode({"name": "x"}))
    assert packed.decode(Plain, format="msgpack") == Plain("x")


@pytest.mark.parametrize("content", [b"", b"{", b"[1]", b'{"name": 1}', b"\xff"])
async def test_what_is_no_value(mock: MockTransport, content: bytes) -> None:
    response = await answer(mock, content=content)
    with pytest.raises(DecodingError, match="GET http://a/x is no Item: ") as caught:
        response.decode(Item)
    assert caught.value.url == "http://a/x"


@pytest.mark.parametrize(
    ("content_type", "content", "text"),
    [
        (None, "ü".encode(), "ü"),
        ("text/plain; charset=latin-1", b"\xfc", "ü"),
        ('text/plain; a=b; Charset="UTF-16LE"', "ü".encode("utf-16-le"), "ü"),
        ("text/plain; charset=none-such", "ü".encode(), "ü"),
        ("text/plain; charset=zlib", b"x", "x"),
        ("text/plain; charset=idna", b"xn--", "xn--"),
        ("text/plain; charset=unicode_escape", b"\\x41", "\\x41"),
        ("text/plain; charset=\x01", b"x", "x"),
        (None, b"\xff", "\ufffd"),
    ],
)
async def test_charsets(
    mock: MockTransport, content_type: str | None, content: bytes, text: str
) -> None:
    headers = {} if content_type is None else {"content-type": content_type}
    assert (await answer(mock, headers=headers, content=content)).text == text


async def test_statuses(mock: MockTransport) -> None:
    response = await answer(mock, status_code=204)
    assert response.raise_for_status() is response
    assert response.is_success
    response = await answer(mock, status_code=404, json={"why": 1})
    assert response.is_error
    with pytest.raises(
        StatusError, match="GET http://a/x: the response has the status 404"
    ) as caught:
        response.raise_for_status()
    assert caught.value.response.json() == {"why": 1}
    assert (caught.value.method, caught.value.origin) == ("GET", "http://a")


async def test_fields(mock: MockTransport) -> None:
    response = await answer(
        mock, headers=[("Set-Cookie", "a"), ("set-cookie", "b"), ("X", "1")], trailers=[("Sum", "2")],
        informational=[(103, [("Link", "</s>")])],
    )  # fmt: skip
    assert response.headers.getlist("Set-Cookie") == ["a", "b"]
    assert response.headers["x"] == "1"
    assert response.trailers["sum"] == "2"
    [(status, fields)] = response.informational
    assert (status, fields["link"]) == (103, "</s>")
    assert response.http_version == "HTTP/1.1"
    assert response.is_connection_reused
    assert repr(response) == "<Response 200 of GET http://a/x>"
    assert response.request.method == "GET"


def test_a_field_that_cannot_be_sent_is_refused_where_it_is_given() -> None:
    """RFC 9110 §5.5: octets."""
    with pytest.raises(ConfigError, match="beyond Latin-1: 'Bearer …'"):
        Client("http://a", headers={"authorization": "Bearer …"})


async def test_injection_is_refused(mock: MockTransport) -> None:
    """A value with a line break would be a field of its own, or a second request."""
    mock.add("*", "*")
    client = Client("http://a", transport=mock)
    for headers in (
        {"x": "a\r\nHost: b"},
        {"x": "a\nb"},
        {"x": "a\0"},
        {"x\r\ny": "a"},
        {"x y": "a"},
        {"": "a"},
    ):
        with pytest.raises(ValueError, match="."):
            await client.get("/", headers=headers)
        with pytest.raises(ValueError, match="."):
            Client(headers=headers)
    for method in ("GET /x HTTP/1.1\r\nX: y\r\n\r\nGET", "", "GE T"):
        with pytest.raises(ValueError, match="."):
            await client.request(method, "/")
    assert mock.calls == []
