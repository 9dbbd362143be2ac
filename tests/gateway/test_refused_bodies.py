"""What a client sends makes no 500, whatever it is (frameworks 4 and 5; hostile 13)."""

from __future__ import annotations

import dataclasses
import datetime as dt
from decimal import Decimal
from typing import Annotated, Any
from urllib.parse import quote

import msgspec
import pydantic
import pytest
from citius import App, Body, Cookie, Form, Header, Query, Request, Response
from citius.testing import Client
from citius.web.middleware import ETags

JSON, MSGPACK, TEXT = "application/json", "application/msgpack", "text/plain"


class User(msgspec.Struct):
    name: str
    born: dt.datetime | None = None


class Model(pydantic.BaseModel):
    id: int
    name: str = ""


@dataclasses.dataclass
class Data:
    name: str


class Dates(msgspec.Struct):
    at: dt.datetime


class ModelDates(pydantic.BaseModel):
    at: dt.datetime


def application() -> App:
    app = App()

    def add(path: str, kind: Any) -> None:
        def handler(value: Any) -> Any:
            return {"is": repr(value)}

        handler.__annotations__["value"] = kind
        app.post(path)(handler)

    for path, kind in (
        ("/struct", User), ("/model", Model), ("/data", Data), ("/dict", dict[str, Any]),
        ("/users", list[User]), ("/models", list[Model]),
    ):  # fmt: skip
        add(path, kind)

    @app.post("/request")
    def of_request(request: Request) -> Any:
        return request.json()

    return app


# What follows the first mistake is no JSON or MessagePack, or a value that has no place in Python.
BODIES: list[tuple[str, bytes]] = [
    (JSON, b'{"name": 1e999}'),
    (JSON, b'{"name": ' + b"9" * 5000 + b"}"),
    (JSON, b'{"name": 1, "x": [1e999]}'),
    (JSON, b'{"id": NaN}'),
    (JSON, b'{"id": "x", "name": NaN}'),
    (JSON, b'{"id": Infinity}'),
    (JSON, b'[{"id": NaN}, {"id": "x"}]'),
    (JSON, b'{"name": 1, x}'),
    (JSON, b'{"name": "\xff"}'),
    (JSON, b'{"name": "\\ud800"}'),
    (JSON, b"[" * 20000),
    (JSON, b'{"name": ' + b"[" * 20000),
    (JSON, b""),
    (MSGPACK, b"\x01x"),
    (MSGPACK, b"\x81\xa4name"),
    (MSGPACK, b"\x81\xa4name\x01x"),
    (MSGPACK, b"\x81\xa4name\xa1\xff"),
    (MSGPACK, b"\x82\xa4name\x01\xa1x\xa1\xff"),
    (MSGPACK, b"\x82\xa4name\x01\xa1x\xc1"),
    (MSGPACK, b"\x82\xa4name\x01\x81\x90\x01\x02"),
    (MSGPACK, b"\x82\xa4name\x01\x91\x90\x02"),
    (MSGPACK, b"\x81\x81\x01\x02\x03"),
    (MSGPACK, b"\x82\xa4name\x01\xa1x\xc7\x0c\xff\xff\xff\xff\xff\x7f" + b"\xff" * 8),
    (MSGPACK, b"\x82\xa4name\xa1x\xa4born\xd7\xff\xff\xff\xff\xff\xff\xff\xff\xff"),
    (MSGPACK, b"\x82\xa4name\xa1x\xa4born\xc7\x0c\xff\x00\x00\x00\x00\x7f" + b"\xff" * 7),
    (MSGPACK, b"\x91" * 3000),
    (MSGPACK, b"\x82\xa4name\x01\xa1x" + b"\x91" * 3000),
    (MSGPACK, b""),
]  # fmt: skip


@pytest.mark.parametrize(("media_type", "body"), BODIES, ids=lambda one: repr(one)[:40])
def test_bodies(media_type: str, body: bytes) -> None:
    app = application()
    with Client(app) as client:  # raises what would be a 500
        for endpoint in app.endpoints:
            found = client.post(
                endpoint.pattern, content=body, headers={"content-type": media_type}
            )
            assert found.status_code in (200, 400, 422), endpoint.pattern


def test_numbers_beyond_a_double_are_a_mistake_of_the_text() -> None:
    with Client(application()) as client:
        for path in ("/struct", "/dict", "/request"):
            found = client.post(path, content=b'{"name": 1e999}', headers={"content-type": JSON})
            assert found.status_code == 400
            assert "out of range" in found.text


def test_mistakes_beside_nan_have_their_places() -> None:
    with Client(application()) as client:
        body = b'{"id": "x", "name": NaN}'
        found = client.post("/model", content=body, headers={"content-type": JSON})
        assert {one["pointer"] for one in found.json()["errors"]} == {"#/id", "#/name"}


VALUES = [
    "253402300800", "-62135596801", "1e30", "-1e30", "9999-12-31T23:59:59-23:59", "0001-01-01T00:00:00+23:59",
    "9" * 5000, "1e999", "nan", "-inf", "P999999999999D", "0000-00-00", "\ud7ff", "-9223372036854775809", "",
]  # fmt: skip


def test_values_of_all_sources() -> None:
    """Frameworks 5."""
    app = App()
    types: list[Any] = [
        dt.datetime, dt.date, dt.time, dt.timedelta, int, float, Decimal, list[dt.datetime],
        dt.datetime | None, Annotated[int, msgspec.Meta(ge=0)], Annotated[int, pydantic.Field(ge=0)],
        pydantic.AwareDatetime,
    ]  # fmt: skip

    def add(path: str, method: Any, annotation: Any) -> None:
        def handler(v: Any) -> str:
            return repr(v)[:100]

        handler.__annotations__["v"] = annotation
        method(path)(handler)

    for number, kind in enumerate(types):
        add(f"/query/{number}", app.get, Annotated[kind, Query()])
        add(f"/header/{number}", app.get, Annotated[kind, Header()])
        add(f"/cookie/{number}", app.get, Annotated[kind, Cookie()])
        add(f"/form/{number}", app.post, Annotated[kind, Form()])
        add(f"/body/{number}", app.post, Annotated[kind, Body()])
        if number != 7:
            add(f"/path/{number}/{{v}}", app.get, kind)
    for number, kind in enumerate((Dates, ModelDates)):
        add(f"/query/whole/{number}", app.get, Annotated[kind, Query()])
        add(f"/form/whole/{number}", app.post, Annotated[kind, Form()])

    with Client(app) as client:
        for value in VALUES:
            header = value.encode("ascii", "ignore").decode()
            for endpoint in app.endpoints:
                path = endpoint.pattern
                if path.startswith("/form"):
                    found = client.post(path, form={"v": value, "at": value})
                elif path.startswith("/body"):
                    text = value.encode(errors="surrogatepass")
                    for kind in (TEXT, JSON, MSGPACK):
                        for body in (text, msgspec.json.encode(value)):
                            sent = client.post(path, content=body, headers={"content-type": kind})
                            assert sent.status_code in (200, 400, 415, 422), (path, value)
                    continue
                elif path.startswith("/path"):
                    found = client.get(path.replace("{v}", quote(value, safe="") or "x"))
                elif path.startswith("/query"):
                    found = client.get(path, params={"v": value, "at": value})
                else:
                    found = client.get(path, headers={"v": header, "cookie": f"v={header}"})
                assert found.status_code in (200, 404, 414, 422), (path, value)


@pytest.mark.parametrize(
    "date",
    [
        "Mon, 01 Jan 0001 00:00:00 +9999999999999999",
        "Sat, 01 Jan 99999 00:00:00 GMT",
        "0",
        "",
        "Mon, 31 Feb 2020 25:61:61",
    ],
)  # fmt: skip
def test_dates_of_conditional_requests(date: str) -> None:
    """Hostile 13, ``web_500s.py``."""
    app = App()
    app.middleware(ETags())

    @app.get("/")
    def page() -> Response:
        return Response("x", 200, {"last-modified": "Mon, 01 Jan 2024 00:00:00 GMT"})

    with Client(app) as client:
        assert client.get("/", headers={"if-modified-since": date}).status_code == 200


# --- what a client has sent and a handler sends back --------------------------------------------------------


class Anything(pydantic.BaseModel):
    v: Any


class Times(msgspec.Struct):
    at: dt.datetime | None = None
    time: dt.time | None = None
    span: dt.timedelta | None = None


ECHOED = [
    dict[str, Any],
    dict[Any, Any],
    list[Any],
    Annotated[Any, Body()],
    Anything,
    Times,
    ModelDates,
    dict[str, ModelDates],
]


@pytest.fixture(scope="module")
def echoes() -> Any:
    app = App()

    def add(path: str, kind: Any, *, declares: bool) -> None:
        def handler(value: Any) -> Any:
            return value

        handler.__annotations__["value"] = kind
        app.post(path, **({"response": kind} if declares and "Body" not in str(kind) else {}))(
            handler
        )

    for index, kind in enumerate(ECHOED):
        add(f"/{index}", kind, declares=False)
        add(f"/{index}/declared", kind, declares=True)
    with Client(app) as client:
        yield client


def in_msgpack() -> list[bytes]:
    keys = {
        "bytes": b"\xc4\x01a", "nil": b"\xc0", "bool": b"\xc3", "nan": b"\xcb\x7f\xf8" + bytes(6),
        "array": b"\x92\x01\xc0", "map": b"\x80", "ext": b"\xd4\x05\x01", "time": b"\xd6\xff" + bytes(4),
        "int": b"\xff", "text": b"\xa1\xff",
    }  # fmt: skip
    values = [
        b"\xd4\x05\x01", b"\xc7\x00\x07", b"\xc4\x01\xff", b"\xcf" + b"\xff" * 8, b"\xc1",
        b"\xc7\x0c\xff" + bytes(4) + b"\x7f" + b"\xff" * 7, b"\xd7\xff" + b"\xff" * 8,
        b"\xc7\x0c\xff" + bytes(4) + b"\x80" + bytes(7), b"\xcb\x7f\xf0" + bytes(6),
    ]  # fmt: skip
    maps = [b"\x81" + key + b"\x01" for key in keys.values()]
    found = [*maps, *values]
    for one in [*maps, *values]:
        found += [
            b"\x91" + one,
            b"\x81\xa1v" + one,
            b"\x81\xa2at" + one,
            b"\x81\xa1a\x81\xa2at" + one,
        ]
    return found


IN_JSON = [
    '{"v":1e308,"w":99999999999999999999999}', '{"v":"\\u0000"}', "[99999999999999999999999]",
    *(
        form % text
        for form in ('{"at":"%s"}', '{"a":{"at":"%s"}}', '{"time":"%s"}', '{"span":"%s"}', '["%s"]')
        for text in (
            "9999-12-31T23:59:59-23:59", "0001-01-01T00:00:00+23:59", "9999-12-31T23:59:60Z",
            "23:59:59-23:59", "P999999999DT23H", "-P999999999D",
        )
    ),
]  # fmt: skip


@pytest.mark.parametrize("accept", [JSON, MSGPACK])
@pytest.mark.parametrize(
    "path", [f"/{n}{end}" for n in range(len(ECHOED)) for end in ("", "/declared")]
)
def test_what_was_accepted_can_be_sent(echoes: Client, path: str, accept: str) -> None:
    """A handler that returns what it was sent makes no 500, whatever that was."""
    headers = {"accept": accept}
    for body in in_msgpack():
        response = echoes.post(path, content=body, headers={**headers, "content-type": MSGPACK})
        assert response.status_code in (200, 204, 400, 422), body
    for text in IN_JSON:
        response = echoes.post(path, content=text, headers={**headers, "content-type": JSON})
        assert response.status_code in (200, 204, 400, 422), text


def test_how_it_is_sent(echoes: Client) -> None:
    def sent(body: bytes, kind: str = MSGPACK, accept: str = JSON, path: str = "/3") -> Any:
        response = echoes.post(path, content=body, headers={"content-type": kind, "accept": accept})
        assert response.status_code == 200
        return response.json() if accept == JSON else msgspec.msgpack.decode(response.content)

    assert sent(b"\x82\xc0\x01\xc3\x02") == {"null": 1, "true": 2}
    assert sent(b"\x81\x92\x01\xc0\x03") == {"[1,null]": 3}
    assert sent(b"\x91\xd4\x05\x01") == [{"code": 5, "data": "AQ=="}]
    big = b'{"big":99999999999999999999999,"small":1}'
    assert sent(big, JSON, MSGPACK) == {"big": "99999999999999999999999", "small": 1}
    late = b'{"at":"9999-12-31T23:59:59-23:59"}'
    assert sent(late, JSON, MSGPACK, "/5")["at"] == "9999-12-31T23:59:59-23:59"
    assert sent(late, JSON, JSON, "/5")["at"] == "9999-12-31T23:59:59-23:59"
