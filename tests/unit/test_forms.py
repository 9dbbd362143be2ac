"""Forms: what browsers send, what clients break, and the bounds."""

from __future__ import annotations

import pytest
from citius._core import parse_parameters
from citius.errors import BadRequest, ContentTooLarge, UnsupportedMediaType
from citius.web import forms
from citius.web.forms import FormData, parse_form

MULTIPART = "multipart/form-data; boundary=XX"


def part(head: str, data: bytes) -> bytes:
    return b"--XX\r\n" + head.encode() + b"\r\n\r\n" + data + b"\r\n"


def multipart(*parts: bytes) -> FormData:
    return parse_form(MULTIPART, b"".join(parts) + b"--XX--\r\n")


NAME = 'Content-Disposition: form-data; name="a"'


def test_urlencoded() -> None:
    form = parse_form("application/x-www-form-urlencoded; charset=utf-8", b"a=1&b=x+y&a=2")
    assert form.multi_items() == [("a", "1"), ("b", "x y"), ("a", "2")]
    assert form.files == {}


def test_fields_and_files() -> None:
    form = multipart(
        part(NAME, "ä".encode()),
        part(
            'content-disposition: form-data; name="f"; filename="x y.txt"\r\nContent-Type: text/plain',
            b"line\r\n--X\r\nline",
        ),
        part('Content-Disposition: form-data; name="f"; filename=""', b""),
    )
    assert dict(form) == {"a": "ä"}
    first, second = form.files_list("f")
    assert (first.filename, first.content_type) == ("x y.txt", "text/plain")
    assert first.data == b"line\r\n--X\r\nline"
    assert second.content_type == "application/octet-stream"
    assert form.files["f"] is second


def test_an_empty_form() -> None:
    assert len(parse_form(MULTIPART, b"--XX--\r\n")) == 0


def test_preamble_padding_and_epilogue_are_skipped() -> None:
    body = b"hello\r\n--XX  \r\n" + NAME.encode() + b"\r\n\r\n1\r\n--XX--\r\nbye"
    assert dict(parse_form(MULTIPART, body)) == {"a": "1"}


def test_escaped_names() -> None:
    form = multipart(
        part('Content-Disposition: form-data; name="a%22b"', b"1"),
        part(r'Content-Disposition: form-data; name="c\"d"', b"2"),
    )
    assert dict(form) == {'a"b': "1", 'c"d': "2"}


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"nothing",
        b"--XX\r\n",
        part(NAME, b"1"),  # no last delimiter
        b"--XXY\r\n" + NAME.encode() + b"\r\n\r\n1\r\n--XX--",
        b"--XX\r\n" + NAME.encode() + b"\r\n--XX--",  # no end of its head
        part("Content-Disposition: form-data", b"1") + b"--XX--",  # no name
        part("Content-Disposition: attachment; name=a", b"1") + b"--XX--",
        part("X: y", b"1") + b"--XX--",
        part("no colon", b"1") + b"--XX--",
        part(NAME + "\r\nX: " + "y" * forms.PART_HEAD_BYTES_MAX, b"1") + b"--XX--",
    ],
)
def test_broken_multipart_is_400(body: bytes) -> None:
    with pytest.raises(BadRequest):
        parse_form(MULTIPART, body)


@pytest.mark.parametrize("boundary", ["", "; boundary=", "; boundary=" + "x" * 71, "; boundary=ü"])
def test_boundary_outside_the_grammar_is_400(boundary: str) -> None:
    with pytest.raises(BadRequest, match="boundary"):
        parse_form("multipart/form-data" + boundary, b"--XX--")


@pytest.mark.parametrize("content_type", ["", "application/json", "multipart/mixed; boundary=XX"])
def test_other_types_are_415(content_type: str) -> None:
    with pytest.raises(UnsupportedMediaType):
        parse_form(content_type, b"")


def test_as_many_fields_as_allowed_and_one_more() -> None:
    parts = [part(NAME, b"1")] * forms.FIELDS_MAX
    assert len(multipart(*parts).multi_items()) == forms.FIELDS_MAX
    with pytest.raises(ContentTooLarge):
        multipart(*parts, parts[0])
    urlencoded = b"&".join([b"a=1"] * forms.FIELDS_MAX)
    content_type = "application/x-www-form-urlencoded"
    assert len(parse_form(content_type, urlencoded).multi_items()) == forms.FIELDS_MAX
    with pytest.raises(ContentTooLarge):
        parse_form(content_type, urlencoded + b"&a=1")


@pytest.mark.parametrize(
    ("value", "parsed"),
    [
        ("text/plain", ("text/plain", {})),
        ('Text/Plain; Charset="utf-8"', ("text/plain", {"charset": "utf-8"})),
        ("a;b=c;d=e", ("a", {"b": "c", "d": "e"})),
        ('a; b="x;y"; c=d', ("a", {"b": "x;y", "c": "d"})),
        ("a; B=1; b=2", ("a", {"b": "1"})),
    ],
)
def test_header_parameters(value: str, parsed: tuple[str, dict[str, str]]) -> None:
    assert parse_parameters(value) == parsed
