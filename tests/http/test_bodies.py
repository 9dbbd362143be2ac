"""Bodies of requests: values, forms, files, pieces."""

from __future__ import annotations

import io
from collections.abc import AsyncIterator, Iterator
from email.parser import BytesParser
from email.policy import HTTP
from pathlib import Path
from typing import Any

import msgspec
import pytest
from citius.errors import ConfigError
from citius.http import Client
from citius.http.bodies import BodyConsumed, Multipart
from citius.testing.http import MockCall, MockReply, MockTransport


@pytest.fixture
def client(mock: MockTransport) -> Client:
    mock.add("*", "*")
    return Client("http://a", transport=mock)


async def sent(client: Client, mock: MockTransport, **options: Any) -> MockCall:
    await client.post("/", **options)
    return mock.calls[-1]


class Item(msgspec.Struct):
    name: str


async def test_kinds(client: Client, mock: MockTransport) -> None:
    pydantic = pytest.importorskip("pydantic")

    class Model(pydantic.BaseModel):
        at: int = pydantic.Field(1, serialization_alias="AT")

    for options, content, media_type in (
        ({"content": b"x"}, b"x", None),
        ({"content": "ü"}, "ü".encode(), "text/plain; charset=utf-8"),
        ({"json": {"a": [1, None]}}, b'{"a":[1,null]}', "application/json"),
        ({"json": Item("x")}, b'{"name":"x"}', "application/json"),
        ({"json": [Model()]}, b'[{"AT":1}]', "application/json"),
        ({"data": {"a": "1 2", "b": [True, None]}}, b"a=1+2&b=true&b=", "application/x-www-form-urlencoded"),
        ({"data": [("a", 1), ("a", 2)]}, b"a=1&a=2", "application/x-www-form-urlencoded"),
        ({"content": bytearray(b"y")}, b"y", None),
        ({"content": io.BytesIO(b"file")}, b"file", None),
        ({"content": [b"a", b"", b"b"]}, b"ab", None),
    ):  # fmt: skip
        call = await sent(client, mock, **options)
        assert call.content == content
        assert call.headers.get("content-type") == media_type


async def test_the_type_of_the_caller_counts(client: Client, mock: MockTransport) -> None:
    call = await sent(client, mock, json={}, headers={"Content-Type": "application/problem+json"})
    assert call.headers["content-type"] == "application/problem+json"


async def test_asynchronous_pieces(client: Client, mock: MockTransport) -> None:
    async def pieces() -> AsyncIterator[bytes]:
        yield b"a"
        yield b""
        yield b"b"

    assert (await sent(client, mock, content=pieces())).content == b"ab"


async def test_an_error_of_the_pieces_is_that_of_the_request(client: Client) -> None:
    async def pieces() -> AsyncIterator[bytes]:
        yield b"a"
        raise LookupError("of the application's own")

    with pytest.raises(LookupError, match="own"):
        await client.post("/", content=pieces())


async def test_one_body(client: Client) -> None:
    with pytest.raises(TypeError, match="one body"):
        await client.post("/", json={}, content=b"")
    with pytest.raises(TypeError, match="json="):
        await client.post("/", content={"a": 1})  # pyright: ignore[reportArgumentType]
    with pytest.raises(ConfigError, match="did you mean json"):
        await client.post("/", jsn={})  # pyright: ignore[reportCallIssue]


def parts_of(call: MockCall) -> list[tuple[dict[str, str], bytes]]:
    """The parts as another parser reads them."""
    head = f"content-type: {call.headers['content-type']}\r\n\r\n".encode()
    message = BytesParser(policy=HTTP).parsebytes(head + call.content)
    return [
        ({k.lower(): str(v) for k, v in part.items()}, part.get_payload(decode=True))  # pyright: ignore
        for part in message.iter_parts()  # pyright: ignore
    ]


async def test_files(client: Client, mock: MockTransport, tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_bytes(b"from a file")
    with path.open("rb") as file:
        call = await sent(
            client, mock, data={"k": ["1", "2"]},
            files={"f": file, "g": ("b.json", b"{}"), "h": ("c", "text", "x/y"), "i": [b"1", b"2"]},
        )  # fmt: skip
    assert [
        (part["content-disposition"], part.get("content-type"), content)
        for part, content in parts_of(call)
    ] == [
        ('form-data; name="k"', None, b"1"),
        ('form-data; name="k"', None, b"2"),
        ('form-data; name="f"; filename="a.txt"', "text/plain", b"from a file"),
        ('form-data; name="g"; filename="b.json"', "application/json", b"{}"),
        ('form-data; name="h"; filename="c"', "x/y", b"text"),
        ('form-data; name="i"; filename="upload"', "application/octet-stream", b"1"),
        ('form-data; name="i"; filename="upload"', "application/octet-stream", b"2"),
    ]  # fmt: skip


async def test_names_end_no_field(client: Client, mock: MockTransport) -> None:
    """A file name that a user has chosen is no field of the part."""
    call = await sent(client, mock, files={'a"\r\nx: y': ('b"\r\nc', b"")})
    [(fields, _)] = parts_of(call)
    assert fields.keys() == {"content-disposition", "content-type"}
    assert b'name="a%22%0D%0Ax: y"; filename="b%22%0D%0Ac"' in call.content
    for bad in ("x\r\ny: z", "x\x7f"):
        with pytest.raises(ValueError, match="media type"):
            await client.post("/", files={"a": ("b", b"", bad)})


async def test_what_a_part_cannot_have_is_no_silence(client: Client) -> None:
    """Fields of a part, as httpx takes them, were left out."""
    given: Any = ("b", b"", "text/plain", {"x-a": "1"})
    with pytest.raises(TypeError, match="'a' is .* got 4 values"):
        await client.post("/", files={"a": given})


def test_the_length_is_known_if_the_files_say_it() -> None:
    file = io.BytesIO(b"x" * 1000)
    file.seek(10)
    parts = Multipart({"ü": "ö"}, {"f": file, "g": "text"})
    whole = b"".join(parts.pieces())
    assert parts.length == len(whole)
    assert b"".join(parts.pieces()) == whole

    class Pipe(io.RawIOBase):
        def seekable(self) -> bool:
            return False

        def tell(self) -> int:
            raise OSError("a pipe")

        def read(self, size: int = -1) -> bytes:
            return b""

    unknown = Multipart({}, {"f": Pipe()})  # pyright: ignore
    assert unknown.length is None
    assert not unknown.can_repeat


async def test_what_can_be_sent_again(mock: MockTransport) -> None:
    """A redirect that keeps the method sends the content once more, from its beginning."""
    mock.add("POST", "http://a/", MockReply(307, headers={"location": "/b"}))
    mock.add("POST", "http://a/b")
    client = Client("http://a", transport=mock, follow_redirects=True)
    file = io.BytesIO(b"0123")
    file.read(1)

    class Again:
        def __iter__(self) -> Iterator[bytes]:
            return iter([b"1", b"23"])

    for content in (b"123", file, Again()):
        await client.post("/", content=content)
        assert mock.calls[-1].url == "http://a/b"
        assert mock.calls[-1].content == b"123"
    with pytest.raises(BodyConsumed, match="iterator"):
        await client.post("/", content=iter([b"123"]))


@pytest.mark.parametrize("method", ["post", "put", "patch"])
async def test_json_by_the_short_way(mock: MockTransport, method: str) -> None:
    """Parts of a plain request are kept; what is sent is what the long way sends."""
    mock.add("*", "http://a/moved", MockReply(307, headers={"location": "/x"}))
    mock.add("*", "http://a/x", json={})
    client = Client("http://a", transport=mock, headers={"X-A": "1"}, follow_redirects=True)
    for value in (1, [2], {"a": 3}):
        await getattr(client, method)("/x", json=value)
        short = mock.calls[-1]
        await getattr(client, method)("/x", json=value, params={})
        assert short == mock.calls[-1]
        assert short.json() == value
    await getattr(client, method)("/moved", json=4)
    assert (mock.calls[-1].method, mock.calls[-1].content) == (method.upper(), b"4")
    assert mock.calls[-1].headers["content-type"] == "application/json"
    await getattr(client, method)("/x")
    assert "content-type" not in mock.calls[-1].headers
