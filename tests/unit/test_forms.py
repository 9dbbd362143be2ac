"""Forms: what browsers send, what clients break, the bounds, and what other parsers make of them."""

from __future__ import annotations

import random
from email.parser import BytesParser
from email.policy import HTTP
from urllib.parse import parse_qsl

import pytest
from citius._core import parse_parameters
from citius.errors import BadRequest, ContentTooLarge, UnsupportedMediaType
from citius.web.binding.forms import FormData, FormLimits, parse_form

DEFAULT = FormLimits()
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
        part(NAME + "\r\nX: " + "y" * DEFAULT.part_head_bytes_max, b"1") + b"--XX--",
    ],
)
def test_broken_multipart_is_400(body: bytes) -> None:
    with pytest.raises(BadRequest):
        parse_form(MULTIPART, body)


@pytest.mark.parametrize(
    ("sent", "filename"),
    [
        ("../../etc/passwd", "passwd"),
        (r"..\\..\\boot.ini", "boot.ini"),
        ("/etc/passwd", "passwd"),
        (r"C:\\fakepath\\a.txt", "a.txt"),
        ("..", ""),
        ("a/..", ""),
        ("a/.", ""),
        ("a/", ""),
        ("a\0b\x1b[1m\x7f.txt", "ab[1m.txt"),
        ("%0D%0Aset-cookie: a", "set-cookie: a"),
        ("%2e%2e%2fa", "%2e%2e%2fa"),
        ("ä b.tar.gz", "ä b.tar.gz"),
    ],
)
def test_names_of_files_lead_nowhere(sent: str, filename: str) -> None:
    form = multipart(part(f'Content-Disposition: form-data; name="f"; filename="{sent}"', b"x"))
    assert form.files["f"].filename == filename
    quoted = "".join(f"%{byte:02x}" for byte in sent.replace("\\\\", "\\").encode())
    extended = f"Content-Disposition: form-data; name=f; filename*=utf-8''{quoted}"
    found = multipart(part(extended, b"x")).files["f"].filename
    assert not {"/", "\\", "\0", "\r", "\n"} & set(found)


def test_forms_in_forms_are_text() -> None:
    """RFC 7578 §4.3 gave up ``multipart/mixed``; nothing of it is read as a field or a file."""
    inner = b"--YY\r\nContent-Disposition: file; filename=x\r\n\r\n1\r\n--YY--"
    form = multipart(part(NAME + "\r\nContent-Type: multipart/mixed; boundary=YY", inner))
    assert dict(form) == {"a": inner.decode()}
    assert form.files == {}


@pytest.mark.parametrize(
    "boundary",
    [
        "",
        "; boundary=",
        "; boundary=" + "x" * 71,
        "; boundary=ü",
        "; boundary=XX; boundary=YY",
        "; boundary=XX; Boundary=XX",
    ],
)
def test_boundary_outside_the_grammar_is_400(boundary: str) -> None:
    with pytest.raises(BadRequest, match="boundary"):
        parse_form("multipart/form-data" + boundary, b"--XX--")


@pytest.mark.parametrize("content_type", ["", "application/json", "multipart/mixed; boundary=XX"])
def test_other_types_are_415(content_type: str) -> None:
    with pytest.raises(UnsupportedMediaType):
        parse_form(content_type, b"")


def test_as_many_fields_as_allowed_and_one_more() -> None:
    parts = [part(NAME, b"1")] * DEFAULT.fields_max
    assert len(multipart(*parts).multi_items()) == DEFAULT.fields_max
    with pytest.raises(ContentTooLarge):
        multipart(*parts, parts[0])
    urlencoded = b"&".join([b"a=1"] * DEFAULT.fields_max)
    content_type = "application/x-www-form-urlencoded"
    assert len(parse_form(content_type, urlencoded).multi_items()) == DEFAULT.fields_max
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


# --- what other parsers make of the same bytes ------------------------------------------------------

NO_LINE_ENDS = [byte for byte in range(256) if byte not in b"\r\n"]
BOUNDARY = "----WebKitFormBoundary7MA4YWxkTrZu0gW"


def a_form(rng: random.Random) -> tuple[list[tuple[str, str | None, bytes]], bytes]:
    """The parts of a form, and the form as a browser sends it."""
    begun = BOUNDARY[:9].encode()
    words = [b"\r\n", b"\r", b"\n", b"--", begun, b"x", "ä".encode(), b"\0", b"\r\n--"]
    parts: list[tuple[str, str | None, bytes]] = []
    body = b""
    for _ in range(rng.randrange(6)):
        name = "".join(rng.choices("abcäöü日-_ ;=", k=rng.randrange(1, 9))).strip() or "a"
        filename = rng.choice([None, "a.txt", "ä b.txt", "x;y=z.bin"])
        content = b"".join(rng.choices(words, k=rng.randrange(20)))
        parts.append((name, filename, content))
        file = "" if filename is None else f'; filename="{filename}"'
        kind = "" if filename is None else "\r\nContent-Type: application/octet-stream"
        head = f'--{BOUNDARY}\r\nContent-Disposition: form-data; name="{name}"{file}{kind}\r\n\r\n'
        body += head.encode() + content + b"\r\n"
    return parts, body + f"--{BOUNDARY}--\r\n".encode()


def seen_by_us(body: bytes) -> list[tuple[str, str | None, bytes]]:
    form = parse_form(f"multipart/form-data; boundary={BOUNDARY}", body)
    texts = [(name, None, text.encode()) for name, text in form.multi_items()]
    names = dict.fromkeys(name for name, _ in form.files.items())
    files = [(n, one.filename, one.data) for n in names for one in form.files_list(n)]
    return [*texts, *files]


@pytest.mark.parametrize("seed", range(100))
def test_forms_of_browsers(seed: int) -> None:
    parts, body = a_form(random.Random(seed))
    texts = [one for one in parts if one[1] is None]
    files = [one for one in parts if one[1] is not None]
    order = [name for name, _, _ in files]
    files.sort(key=lambda one: order.index(one[0]))
    expected = [(n, f, c.decode().encode() if f is None else c) for n, f, c in (*texts, *files)]
    assert seen_by_us(body) == expected


@pytest.mark.parametrize("seed", range(100))
def test_the_parser_of_the_standard_library_agrees(seed: int) -> None:
    """Of binary content, which is what that parser keeps as it is; it takes any line end for one."""
    rng = random.Random(seed)
    parts: list[tuple[str, str, bytes]] = []
    for index in range(rng.randrange(1, 6)):
        content = bytes(rng.choices(NO_LINE_ENDS, k=rng.randrange(50)))
        parts.append((f"n{index}", f"f{index}.bin", content))
    body = b""
    for name, filename, content in parts:
        head = (
            f'--{BOUNDARY}\r\nContent-Disposition: form-data; name="{name}"; filename="{filename}"\r\n'
            f"Content-Type: application/octet-stream\r\n\r\n"
        )
        body += head.encode() + content + b"\r\n"
    body += f"--{BOUNDARY}--\r\n".encode()
    start = f"Content-Type: multipart/form-data; boundary={BOUNDARY}\r\n\r\n".encode()
    message = BytesParser(policy=HTTP).parsebytes(start + body)
    theirs = [
        (
            str(one.get_param("name", header="content-disposition")),
            one.get_filename(),
            one.get_payload(decode=True),
        )
        for one in message.iter_parts()
    ]
    assert seen_by_us(body) == theirs == parts


@pytest.mark.parametrize("seed", range(100))
def test_urlencoded_forms_are_those_of_the_standard_library(seed: int) -> None:
    rng = random.Random(seed)
    text = "".join(rng.choices(["a", "b", "=", "&", "+", "%", "%41", "%c3%a4", "%ff", "ä"], k=40))
    theirs = parse_qsl(text, keep_blank_values=True, errors="replace")
    ours = parse_form("application/x-www-form-urlencoded", text.encode())
    # Theirs drops pairs without a name and a value, such as `=`.
    assert [pair for pair in ours.multi_items() if any(pair)] == [p for p in theirs if any(p)]
