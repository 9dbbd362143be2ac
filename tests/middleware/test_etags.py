"""Entity tags of responses, and conditions of requests (RFC 9110 §13)."""

from __future__ import annotations

from typing import Any

import pytest
from citius import App, Request, Response
from citius.testing import Client
from citius.web.middleware import ETags, matches, require_match

DATE = "Sun, 06 Nov 1994 08:49:37 GMT"


@pytest.fixture
def client() -> Any:
    app = App()
    app.middleware(ETags())
    bodies: dict[str, Any] = {
        "/text": "ä", "/bytes": b"x", "/json": {"a": 1}, "/empty": None, "/buffer": bytearray(b"x"),
    }  # fmt: skip
    for path, body in bodies.items():
        app.get(path)(lambda body=body: body)
    app.get("/made")(lambda: Response({"a": 1}, content_type="application/x+json"))
    app.get("/own")(lambda: Response("x", headers={"etag": 'W/"v,1"', "content-language": "de"}))
    app.get("/dated")(lambda: Response("x", headers={"last-modified": DATE}))
    app.get("/missing")(lambda: Response("x", 404))
    app.get("/stream")(lambda: iter(["a", "b"]))
    app.post("/text")(lambda: "posted")

    @app.get("/known")
    def known(request: Request) -> Response:
        if matches(request, '"v7"'):
            return Response(b"", 304, {"etag": '"v7"'})
        return Response("made", headers={"etag": '"v7"'})

    @app.put("/known")
    def change(request: Request) -> str:
        require_match(request, '"v7"')
        return "changed"

    @app.put("/new")
    def new(request: Request) -> str:
        require_match(request, None)
        return "made"

    with Client(app) as client:
        yield client


@pytest.mark.parametrize("path", ["/text", "/bytes", "/json", "/made", "/buffer"])
def test_what_the_client_has_is_not_sent_again(client: Client, path: str) -> None:
    answer = client.get(path)
    etag = answer.headers["etag"]
    assert (answer.status_code, etag[0], client.get(path).headers["etag"]) == (200, '"', etag)
    for method in ("GET", "HEAD"):
        again = client.request(method, path, headers={"if-none-match": f'"x", W/{etag}'})
        assert (again.status_code, again.content, again.headers["etag"]) == (304, b"", etag)
        assert "content-type" not in again.headers
    assert client.get(path, headers={"if-none-match": '"x"'}).content == answer.content


def test_formats_have_tags_of_their_own(client: Client) -> None:
    as_json = client.get("/json")
    packed = client.get("/json", headers={"accept": "application/msgpack"})
    assert as_json.json() == packed.msgpack() == {"a": 1}
    assert as_json.headers["etag"] != packed.headers["etag"]
    assert as_json.headers["vary"] == packed.headers["vary"] == "accept"
    assert client.get("/made").headers["content-type"] == "application/x+json"


def test_the_handlers_own_validators(client: Client) -> None:
    again = client.get("/own", headers={"if-none-match": '"v,1"'})
    assert (again.status_code, "content-language" in again.headers) == (304, False)
    for since, status in (
        (DATE, 304), ("Sun, 06 Nov 1994 08:49:38 GMT", 304), ("Sun, 06 Nov 1994 08:49:36 GMT", 200),
        ("yesterday", 200), ("", 200), ("99 99 99", 200),
    ):  # fmt: skip
        answer = client.get("/dated", headers={"if-modified-since": since})
        assert answer.status_code == status, since
    both = {"if-modified-since": DATE, "if-none-match": '"x"'}
    assert client.get("/dated", headers=both).status_code == 200


@pytest.mark.parametrize("path", ["/missing", "/stream", "/empty", "/nowhere"])
def test_what_has_no_tag(client: Client, path: str) -> None:
    assert "etag" not in client.get(path, headers={"if-none-match": "*"}).headers
    assert "etag" not in client.post("/text").headers


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ('"v7"', 304), ("*", 304), (' "v7" ', 304), ('"a","v7"', 304), ('"a, b" , "v7"', 304),
        ('W/"v7"', 304), ("v7", 200), ('"v7', 200), ('"', 200), ("", 200), ("," * 5000, 200),
        ('"v7x"', 200), ('"a"v7"', 200),
    ],
)  # fmt: skip
def test_if_none_match(client: Client, value: str, expected: int) -> None:
    assert client.get("/known", headers={"if-none-match": value}).status_code == expected


@pytest.mark.parametrize(
    ("value", "status"),
    [(None, 200), ('"v7"', 200), ("*", 200), ('"v6", "v7"', 200), ('W/"v7"', 412), ('"v6"', 412)],
)
def test_if_match(client: Client, value: str | None, status: int) -> None:
    fields = {} if value is None else {"if-match": value}
    answer = client.request("PUT", "/known", headers=fields)
    assert answer.status_code == status
    assert client.request("PUT", "/new", headers=fields).status_code == (412 if value else 200)
