"""Fields that frame a response or are for one connection (RFC 9110 section 7.6.1) are the server's."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from citius import App, Request, Response, file_response
from citius.testing import Client
from citius.web.binding.headers import is_of_connection

FIELDS = [
    ("Transfer-Encoding", "chunked"),
    ("transfer-encoding", "identity"),
    ("Keep-Alive", "timeout=5"),
    ("TE", "trailers"),
    ("Upgrade", "h2c"),
    ("Proxy-Connection", "close"),
    ("Connection", "upgrade"),
    ("connection", "close, x-hop"),
]


def whole(field: tuple[str, str]) -> Response:
    return Response("x", headers=[field])


def streamed(field: tuple[str, str]) -> Response:
    def pieces() -> Iterator[bytes]:
        yield b"x"

    return Response(pieces(), headers=[field])


def changed(field: tuple[str, str]) -> Response:
    response = Response("x")
    response.headers[field[0]] = field[1]
    return response


def of_file(field: tuple[str, str]) -> Response:
    return file_response(Path(__file__), headers=[field])


@pytest.mark.parametrize("field", FIELDS, ids=": ".join)
@pytest.mark.parametrize("make", [whole, streamed, changed, of_file])
def test_a_response_with_one_is_a_500(
    make: Callable[[tuple[str, str]], Response],
    field: tuple[str, str],
) -> None:
    app = App()

    @app.get("/def")
    def handler() -> Response:
        return make(field)

    @app.get("/async")
    async def waits() -> Response:
        return make(field)

    with Client(app, raise_errors=False) as client:
        for path in ("/def", "/async"):
            answer = client.get(path)
            assert answer.status_code == 500, path
            assert field[0].lower() not in answer.headers or field[0].lower() == "connection"


@pytest.mark.parametrize("value", ["close", "Close", "keep-alive", "close, keep-alive"])
def test_connection_may_be_closed(value: str) -> None:
    app = App()
    app.get("/")(lambda: Response("x", headers={"connection": value}))
    with Client(app) as client:
        answer = client.get("/")
        assert answer.status_code == 200
        assert answer.headers.get("connection") == ("close" if "lose" in value else None)


@pytest.mark.parametrize("field", FIELDS, ids=": ".join)
def test_of_a_mounted_asgi_application_they_are_ignored(field: tuple[str, str]) -> None:
    """ "The server must ignore it", the specification says of ``transfer-encoding``."""
    raw = (field[0].lower().encode(), field[1].encode())

    async def mounted(scope: Any, receive: Any, send: Any) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": [raw]})
        await send({"type": "http.response.body", "body": b"x"})

    app = App()
    app.mount("/x", mounted)
    with Client(app) as client:
        answer = client.get("/x/")
        assert (answer.status_code, answer.text) == (200, "x")
        assert field[0].lower() not in answer.headers or "close" in field[1]


@pytest.mark.parametrize("field", [*FIELDS, ("Trailer", "x-a")], ids=": ".join)
def test_of_a_mounted_wsgi_application_they_are_errors(field: tuple[str, str]) -> None:
    def mounted(environ: Any, start_response: Any) -> list[bytes]:
        start_response("200 OK", [field])
        return [b"x"]

    app = App()
    app.mount_wsgi("/x", mounted)
    with Client(app) as client, pytest.raises(ValueError, match="start_response: .*PEP 3333"):
        client.get("/x/")


def test_of_a_middleware() -> None:
    app = App()

    @app.middleware
    def adds(request: Request, call_next: Any) -> Response:
        response = call_next(request)
        response.headers["upgrade"] = "h2c"
        return response

    app.get("/")(lambda: "x")
    with Client(app, raise_errors=False) as client:
        assert client.get("/").status_code == 500


def test_both_languages_say_the_same() -> None:
    assert all(is_of_connection(name, value) for name, value in FIELDS)
    for name, value in [
        ("Connection", "close"),
        ("connection", ""),
        ("Trailer", "x"),
        ("x-te", ""),
    ]:
        assert not is_of_connection(name, value)
