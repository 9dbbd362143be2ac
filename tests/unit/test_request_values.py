"""What the extension calls: queries, cookies, bodies."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from citius._core import parse_urlencoded
from citius.errors import BadRequest, UnprocessableContent
from citius.web.binding.cookies import cookies as cookies_of
from citius.web.declarations import codecs


class Item(msgspec.Struct):
    name: str
    price: float


class Basket(msgspec.Struct):
    items: list[Item]


@pytest.mark.parametrize(
    ("raw", "pairs"),
    [
        (b"", []),
        (b"a=1&b=2", [("a", "1"), ("b", "2")]),
        (b"a=1&a=2", [("a", "1"), ("a", "2")]),
        (b"a", [("a", "")]),
        (b"a=", [("a", "")]),
        (b"=a", [("", "a")]),
        (b"&&a=1&", [("a", "1")]),
        (b"a=b=c", [("a", "b=c")]),
        (b"a+b=c+d", [("a b", "c d")]),
        (b"a%20b=%2B%2b", [("a b", "++")]),
        (b"%C3%A4=%e2%82%ac", [("ä", "€")]),
        (b"a=%", [("a", "%")]),
        (b"a=%4", [("a", "%4")]),
        (b"a=%zz%41", [("a", "%zzA")]),
        (b"a=%2541", [("a", "%41")]),
        (b"a=%ff", [("a", "�")]),
        (b"a=\xff&b=\xc3&c=\xc3\xa4", [("a", "�"), ("b", "�"), ("c", "ä")]),
    ],
)
def test_urlencoded(raw: bytes, pairs: list[tuple[str, str]]) -> None:
    assert parse_urlencoded(raw) == pairs


@pytest.mark.parametrize(
    ("values", "cookies"),
    [
        ([], {}),
        (["a=1; b=2"], {"a": "1", "b": "2"}),
        (["a=1;b=2", "c=3"], {"a": "1", "b": "2", "c": "3"}),
        (["a=1; a=2"], {"a": "1"}),
        (['a="x y"'], {"a": "x y"}),
        (["a=b=c"], {"a": "b=c"}),
        (["nonsense; =x; a=1"], {"a": "1"}),
        (['a="'], {"a": '"'}),
    ],
)
def test_cookies(values: list[str], cookies: dict[str, str]) -> None:
    assert cookies_of(values) == cookies


def test_encoders() -> None:
    assert codecs.encode_json({"a": Item("x", 1.5)}) == b'{"a":{"name":"x","price":1.5}}'
    assert msgspec.msgpack.decode(codecs.encode_msgpack([1, "a"])) == [1, "a"]
    with pytest.raises(TypeError, match="unsupported"):
        codecs.encode_json(object())
    with pytest.raises(AttributeError, match="encode_yaml"):
        codecs.encode_yaml


DECODERS: list[Any] = [
    (codecs.decode_json, msgspec.json.encode),
    (codecs.decode_msgpack, msgspec.msgpack.encode),
]


@pytest.mark.parametrize(("decode", "encode"), DECODERS)
def test_decoding_with_and_without_a_type(decode: Any, encode: Any) -> None:
    data = encode({"items": [{"name": "x", "price": 2}]})
    assert decode(None, data) == {"items": [{"name": "x", "price": 2}]}
    assert decode(Basket, data) == Basket([Item("x", 2.0)])


@pytest.mark.parametrize(("decode", "encode"), DECODERS)
def test_the_wrong_shape_is_422_and_says_where(decode: Any, encode: Any) -> None:
    with pytest.raises(UnprocessableContent) as caught:
        decode(Basket, encode({"items": [{"name": "x", "price": 1}, {"name": 7, "price": 1}]}))
    assert caught.value.errors == [
        {"in": "body", "pointer": "#/items/1/name", "detail": "expected a string, got an integer"}
    ]
    with pytest.raises(UnprocessableContent) as caught:
        decode(Basket, encode([]))
    assert caught.value.errors[0]["pointer"] == "#"


@pytest.mark.parametrize(
    ("decode", "data"),
    [
        (codecs.decode_json, b""),
        (codecs.decode_json, b"{"),
        (codecs.decode_json, b"[1] x"),
        (codecs.decode_json, b'"\xff"'),
        (codecs.decode_json, b"[" * 100_000),
        (codecs.decode_msgpack, b""),
        (codecs.decode_msgpack, b"\xc1"),
        (codecs.decode_msgpack, b"\x92\x01"),
        (codecs.decode_msgpack, b"\xa1\xff"),
        (codecs.decode_msgpack, b"\x91" * 100_000),
    ],
)
def test_malformed_bodies_are_400(decode: Any, data: bytes) -> None:
    with pytest.raises(BadRequest, match="no valid (JSON|MessagePack)"):
        decode(None, data)


@pytest.mark.parametrize("data", [b"", b"{", b'{"items": [}'])
def test_malformed_bodies_of_a_type_are_400(data: bytes) -> None:
    with pytest.raises(BadRequest, match="no valid JSON"):
        codecs.decode_json(Basket, data)


def test_decoders_are_made_once() -> None:
    for format in ("json", "msgpack"):
        assert codecs.decoder(format, Item) is codecs.decoder(format, Item)
        assert codecs.decoder(format, Item) is not codecs.decoder(format, Basket)
