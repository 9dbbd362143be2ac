"""What is declared of requests and responses holds: dataclasses of pydantic, parts of other classes."""

import dataclasses
from typing import Annotated, Any

import msgspec
import pydantic
import pytest
from citius import App, Body, ConfigError, Form, Query
from citius.testing import Client
from pydantic import ConfigDict, Field, field_serializer
from pydantic.dataclasses import dataclass

_FORM = {"content-type": "application/x-www-form-urlencoded"}


@dataclass
class Order:
    quantity: int = Field(ge=5, alias="qty")


@dataclass(config=ConfigDict(extra="forbid"))
class Strict:
    quantity: int = 1


@dataclass
class Account:
    level: int = 1
    password: str = Field(default="secret", exclude=True)

    @field_serializer("level")
    def in_percent(self, value: int) -> int:
        return value * 100


@dataclasses.dataclass
class Extended(Account):
    more: str = "m"


class Row:
    level, password = 3, "secret"


class Holder(msgspec.Struct):
    account: Account


class OptionalOrder(msgspec.Struct):
    order: Order | None = None


class Public(pydantic.BaseModel):
    name: str = "n"


class Organization(pydantic.BaseModel):
    name: str = "o"


class Full(pydantic.BaseModel):
    name: str = "n"
    password: str = "secret"


class PublicFull(Public):
    password: str = "secret"


class Post(pydantic.BaseModel):
    author: Public | Organization | None = None


class FullPost(Post):
    author: Full | None = None  # type: ignore[assignment]  # pyright: ignore[reportIncompatibleVariableOverride]


class Posts(pydantic.BaseModel):
    authors: list[Public | Organization] = []


class Titled(pydantic.BaseModel):
    title: str = "t"


def sent(annotation: Any, value: Any, **options: Any) -> Any:
    """The JSON of a response whose handler is declared to return ``annotation``."""
    app = App()

    def handler() -> Any:
        return value() if callable(value) else value

    handler.__annotations__["return"] = annotation
    app.get("/", **options)(handler)
    with Client(app) as client:
        return client.get("/").json()


def taker(annotation: Any) -> App:
    """An application that takes one parameter."""
    app = App()

    def handler(given: Any) -> str:
        return repr(given)

    handler.__annotations__["given"] = annotation
    app.route("/", methods=["GET", "POST"])(handler)
    return app


@pytest.mark.parametrize("kind", [Body, Query, Form])
def test_rules_of_a_dataclass_of_pydantic_hold_in_requests(kind: Any) -> None:
    def asked(client: Client, name: str, value: int) -> int:
        if kind is Query:
            return client.get(f"/?{name}={value}").status_code
        if kind is Form:
            return client.post("/", content=f"{name}={value}".encode(), headers=_FORM).status_code
        return client.post("/", json={name: value}).status_code

    with Client(taker(Annotated[Order, kind()])) as client:
        assert asked(client, "qty", 5) == 200
        assert asked(client, "qty", 4) == 422  # the constraint
        assert asked(client, "quantity", 5) == 422  # the alias
    with Client(taker(Annotated[Strict, kind()])) as client:
        assert asked(client, "quantity", 5) == 200
        assert asked(client, "other", 5) == 422  # extra="forbid"


def test_a_field_that_a_dataclass_of_pydantic_does_not_know_is_called_unknown() -> None:
    with Client(taker(Strict)) as client:
        errors = client.post("/", json={"other": 1}).json()["errors"]
    assert errors == [{"in": "body", "pointer": "#/other", "detail": "unknown field"}]


@pytest.mark.parametrize("annotation", [Holder, OptionalOrder])
def test_a_struct_with_a_dataclass_of_pydantic_is_no_body(annotation: Any) -> None:
    with (
        pytest.raises(ConfigError, match="no fields of pydantic's types"),
        Client(taker(annotation)),
    ):
        pass


@pytest.mark.parametrize(
    ("annotation", "value", "expected"),
    [
        (Account, Account(), {"level": 100}),
        (Account, Row(), {"level": 300}),
        (Account, {"level": 2}, {"level": 200}),
        (Account, Extended(), {"level": 100}),
        (Extended, Extended(), {"level": 100, "more": "m"}),
        (list[Account], [Account(), Row()], [{"level": 100}, {"level": 300}]),
        (Account | None, Account(), {"level": 100}),
        (Holder, Holder(Account()), {"account": {"level": 100}}),
        (list[Holder], [{"account": Row()}], [{"account": {"level": 300}}]),
    ],
)
def test_a_dataclass_of_pydantic_is_sent_by_pydantic(
    annotation: Any, value: Any, expected: Any
) -> None:
    assert sent(annotation, value) == expected


def _with_author(post: Post, author: Any) -> Post:
    object.__setattr__(post, "author", author)
    return post


@pytest.mark.parametrize(
    ("annotation", "make", "expected"),
    [
        (Post, lambda: FullPost(author=Full()), {"author": {"name": "n"}}),
        (Post, lambda: Post(author=PublicFull()), {"author": {"name": "n"}}),
        (Post, lambda: Post.model_construct(author=Full()), {"author": {"name": "n"}}),
        (Post, lambda: Post().model_copy(update={"author": Full()}), {"author": {"name": "n"}}),
        (Post, lambda: _with_author(Post(), Full().model_dump()), {"author": {"name": "n"}}),
        (list[Post], lambda: [FullPost(author=Full())], [{"author": {"name": "n"}}]),
        (Posts, lambda: Posts.model_construct(authors=[Full()]), {"authors": [{"name": "n"}]}),
        (Post | Titled, lambda: FullPost(author=Full()), {"author": {"name": "n"}}),
        (
            dict[str, Post | Titled],
            lambda: {"x": FullPost(author=Full())},
            {"x": {"author": {"name": "n"}}},
        ),
        (Public | Any, PublicFull, {"name": "n"}),
        (list[Public | Any], lambda: [PublicFull(), 1], [{"name": "n"}, 1]),
    ],
)
def test_parts_of_other_classes_are_sent_with_the_declared_fields(
    annotation: Any, make: Any, expected: Any
) -> None:
    assert sent(annotation, make) == expected


def test_a_part_that_is_not_of_its_type_is_not_sent() -> None:
    with pytest.raises(TypeError, match="which is not the declared Post"):
        sent(Post, lambda: Post.model_construct(author={"password": ["secret"], "name": 5}))
