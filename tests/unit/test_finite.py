"""``NaN`` and infinities are refused in every part of a request (issue 32 B; frameworks, debatable)."""

import json
from dataclasses import dataclass
from decimal import Decimal
from typing import Annotated, Any, TypedDict

import msgspec
import pydantic
import pytest
from citius import App, Body, Form, Header, Query
from citius.testing import Client
from citius.web.declarations.finite import check_of

WORDS = ["NaN", "sNaN", "-nan", "inf", "-Infinity"]


class Price(msgspec.Struct):
    value: Decimal


class Real(msgspec.Struct):
    value: float


@dataclass
class Line:
    prices: list[Price]
    by_name: dict[str, Decimal] | None = None


class Typed(TypedDict, total=False):
    value: Decimal


class Tree(msgspec.Struct):
    value: Decimal | None = None
    children: "list[Tree]" = []


class Allowing(pydantic.BaseModel):
    value: Annotated[Decimal, pydantic.Field(allow_inf_nan=True)]


@pytest.fixture(scope="module")
def client() -> Client:
    app = App()
    for name, number, record in (("decimal", Decimal, Price), ("float", float, Real)):

        def query(value: number) -> str:  # pyright: ignore
            return repr(value)

        def many(value: Annotated[list[number], Query()]) -> str:  # pyright: ignore
            return repr(value)

        def fields(value: Annotated[record, Query()]) -> str:  # pyright: ignore
            return repr(value)

        def header(value: Annotated[number, Header()]) -> str:  # pyright: ignore
            return repr(value)

        def form(value: Annotated[number, Form()]) -> str:  # pyright: ignore
            return repr(value)

        def form_fields(value: Annotated[record, Form()]) -> str:  # pyright: ignore
            return repr(value)

        def body(value: record) -> str:  # pyright: ignore
            return repr(value)

        for function in (query, many, fields, header):
            function.__annotations__ = {**function.__annotations__}
            app.get(f"/{name}/{function.__name__}")(function)
        for function in (form, form_fields, body):
            app.post(f"/{name}/{function.__name__}")(function)
        app.get(f"/{name}/path/{{value}}")(query)
    return Client(app)


@pytest.mark.parametrize("name", ["decimal", "float"])
@pytest.mark.parametrize("word", WORDS)
def test_no_part_of_a_request_brings_one(client: Client, name: str, word: str) -> None:
    form = {"content-type": "application/x-www-form-urlencoded"}
    value: Any = float(word) if name == "float" and word != "sNaN" else word
    packed = msgspec.msgpack.encode({"value": value})
    replies = {
        **{
            part: client.get(f"/{name}/{part}?value={word}") for part in ("query", "many", "fields")
        },
        "path": client.get(f"/{name}/path/{word}"),
        "header": client.get(f"/{name}/header", headers={"value": word}),
        **{
            part: client.post(f"/{name}/{part}", content=f"value={word}".encode(), headers=form)
            for part in ("form", "form_fields")
        },
        "json": client.post(f"/{name}/body", json={"value": word}),
        "msgpack": client.post(
            f"/{name}/body", content=packed, headers={"content-type": "application/msgpack"}
        ),
    }
    assert {part: reply.status_code for part, reply in replies.items()} == dict.fromkeys(
        replies, 422
    )
    for part, reply in replies.items():
        (error,) = json.loads(reply.content)["errors"]
        assert error["pointer"] == ("#/value/0" if part == "many" else "#/value"), part


@pytest.mark.parametrize("name", ["decimal", "float"])
def test_numbers_pass(client: Client, name: str) -> None:
    assert client.get(f"/{name}/query?value=1.5").status_code == 200
    assert client.get(f"/{name}/fields?value=1e300").status_code == 200
    assert client.post(f"/{name}/body", json={"value": 1.5}).status_code == 200


@pytest.mark.parametrize(
    ("annotation", "sent", "pointer"),
    [
        (Line, {"prices": [{"value": "1"}, {"value": "NaN"}]}, "#/prices/1/value"),
        (Line, {"prices": [], "by_name": {"a": "inf"}}, "#/by_name"),
        (Typed, {"value": "nan"}, "#/value"),
        (Tree, {"children": [{"children": [{"value": "sNaN"}]}]}, "#/children/0/children/0/value"),
        (list[Price | None], [None, {"value": "inf"}], "#/1/value"),
        (tuple[int, Decimal], [1, "nan"], "#/1"),
        (dict[str, list[Decimal]], {"a": ["1", "nan"]}, "#"),
    ],
)
def test_it_is_found_where_it_is(annotation: Any, sent: Any, pointer: str) -> None:
    app = App()

    @app.post("/")
    def take(value: Annotated[annotation, Body()]) -> str:  # pyright: ignore
        return "taken"

    reply = Client(app).post("/", json=sent)
    assert reply.status_code == 422
    (error,) = json.loads(reply.content)["errors"]
    assert error["detail"] == "expected a finite number"
    assert error["pointer"].startswith(pointer)


def test_a_type_of_pydantic_may_allow_it() -> None:
    app = App()

    @app.get("/")
    def take(value: Annotated[Allowing, Query()]) -> str:
        return str(value.value)

    assert Client(app).get("/?value=NaN").text == "NaN"


def test_a_type_without_numbers_is_not_looked_at() -> None:
    assert check_of(dict[str, list[str | int]], floats=True) is None
    assert check_of(Real, floats=False) is None
    assert check_of(Any, floats=True) is None
