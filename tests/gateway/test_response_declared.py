"""What is declared of requests and responses holds: dataclasses of pydantic, parts of other classes."""

import dataclasses
from collections.abc import AsyncIterator, Iterator
from decimal import Decimal
from typing import Annotated, Any

import msgspec
import pydantic
import pytest
from citius import (
    App,
    Body,
    ConfigError,
    Depends,
    Event,
    EventStream,
    Form,
    Query,
    Response,
    event_stream,
)
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


class User(msgspec.Struct):
    name: str = "n"


class Secret(User):
    password: str = "secret"


@pytest.mark.parametrize("annotation", [Any, Response, dict])
@pytest.mark.parametrize("status", [200, 201])
def test_the_type_of_the_status_of_a_route_holds_for_its_values(
    annotation: Any, status: int
) -> None:
    options = {} if status == 200 else {"status_code": status}
    assert sent(annotation, Secret, responses={status: User}, **options) == {"name": "n"}
    encoded = sent(annotation, Response(b'{"a": 1}', status), responses={status: User}, **options)
    assert encoded == {"a": 1}


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        (lambda: Response(Secret()), {"name": "n"}),
        (lambda: Response([Secret()]), [{"name": "n"}]),
        (lambda: Response(Secret(), 404), {"name": "n"}),
    ],
)
def test_a_response_in_place_of_an_iterator_has_the_declared_fields(
    body: Any, expected: Any
) -> None:
    assert sent(Iterator[User], body, responses={404: User}) == expected


def _events() -> Iterator[object]:
    yield Secret()
    yield Event(Secret(), id="1")
    yield Event("text")


async def _async_events() -> AsyncIterator[object]:
    for one in _events():
        yield one


@pytest.mark.parametrize("declared", ["annotation", "option"])
@pytest.mark.parametrize("source", [_events, _async_events])
def test_events_of_a_declared_type_have_its_fields(declared: str, source: Any) -> None:
    app = App()

    async def handler() -> Any:
        return event_stream(source())

    if declared == "annotation":
        handler.__annotations__["return"] = AsyncIterator[User]
        app.get("/")(handler)
    else:
        app.get("/", response=Iterator[User])(handler)
    with Client(app) as client:
        text = client.get("/").text
    assert text == 'data: {"name":"n"}\n\nid: 1\ndata: {"name":"n"}\n\ndata: text\n\n'


def test_events_whose_type_is_event_are_sent_whole() -> None:
    app = App()

    @app.get("/")
    def handler() -> Iterator[Event]:
        return event_stream(iter([Event({"a": 1})]))  # type: ignore[return-value]  # pyright: ignore[reportReturnType]

    with Client(app) as client:
        assert client.get("/").text == 'data: {"a":1}\n\n'


def test_pushed_events_are_not_declared() -> None:
    app = App()

    @app.get("/", response=Iterator[User])
    async def handler() -> Response:
        stream = EventStream()
        stream.send(Secret())
        stream.close()
        return stream.response()

    with pytest.raises(TypeError, match="return event_stream"), Client(app) as client:
        client.get("/")


class Closed(msgspec.Struct, forbid_unknown_fields=True):
    name: str = "n"


def test_a_key_of_messagepack_that_is_no_text_is_refused() -> None:
    content_type = {"content-type": "application/msgpack"}
    with Client(taker(Closed)) as client:
        found = client.post("/", content=msgspec.msgpack.encode({1: 2}), headers=content_type)
        assert found.status_code == 422
        binary = client.post("/", content=b"\x81\xc4\x01\xff\x01", headers=content_type)
        assert binary.status_code == 422


@pytest.mark.parametrize("container", [set, frozenset])
def test_a_signaling_nan_in_a_set_is_refused(container: Any) -> None:
    with Client(taker(Annotated[container[Decimal], Body()])) as client:
        assert client.post("/", json=["1", "2"]).status_code == 200
        found = client.post("/", json=["sNaN"])
        assert found.status_code == 422
        assert "signaling NaN" in found.json()["errors"][0]["detail"]
        packed = client.post(
            "/",
            content=msgspec.msgpack.encode(["sNaN"]),
            headers={"content-type": "application/msgpack"},
        )
        assert packed.status_code == 422
    with Client(taker(Annotated[container[Decimal], Query()])) as client:
        assert client.get("/?given=1").status_code == 200
        assert client.get("/?given=sNaN").status_code == 422


@pytest.mark.parametrize(
    ("responses", "said"),
    [
        ({"200": User}, "a status as a number"),
        ({"default": User}, "a status as a number"),
        ({99: User}, "a status as a number"),
        ({404: (User, "not there")}, "a type or a description"),
        ({404: {"model": User}}, "a type or a description"),
        ([404], "is a mapping"),
    ],
)
def test_responses_that_say_nothing_are_refused(responses: Any, said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        App().get("/", responses=responses)(lambda: "x")


def test_methods_are_a_list() -> None:
    methods: Any = "POST"
    with pytest.raises(ConfigError, match=r"methods=\['POST'\]"):
        App().route("/", methods=methods)


class Lost(msgspec.Struct):
    quantity: Annotated[int, Field(ge=5)]


class LostList(msgspec.Struct):
    quantities: list[Annotated[int, Field(ge=5)]] = []


class LostDefault(msgspec.Struct):
    password: str = Field(default="secret", exclude=True)


@dataclasses.dataclass
class LostInDataclass:
    quantity: int = Field(default=5, ge=5)


@dataclasses.dataclass
class Kept:
    quantity: Annotated[int, Field(ge=5)]


@pytest.mark.parametrize("cls", [Lost, LostList, LostDefault, LostInDataclass])
@pytest.mark.parametrize("container", [None, list])
def test_rules_of_pydantic_that_msgspec_would_leave_out_are_refused(
    cls: Any, container: Any
) -> None:
    annotation = cls if container is None else container[cls]
    with pytest.raises(ConfigError, match="constraints of pydantic"), Client(taker(annotation)):
        pass
    with pytest.raises(ConfigError, match="constraints of pydantic"):
        sent(annotation, None)


def test_an_annotation_of_pydantic_holds_in_a_plain_dataclass() -> None:
    with Client(taker(Kept)) as client:
        assert client.post("/", json={"quantity": 5}).status_code == 200
        assert client.post("/", json={"quantity": 4}).status_code == 422


class Checked(pydantic.BaseModel):
    number: int = 1

    @pydantic.field_validator("number")
    @classmethod
    def is_even(cls, value: int) -> int:
        if value % 2:
            raise ValueError("odd")
        return value


@dataclass
class CheckedDataclass:
    number: int = Field(default=2, multiple_of=2)


@pytest.mark.parametrize("cls", [Checked, CheckedDataclass])
def test_a_model_as_a_dependency_refuses_what_its_rules_refuse(cls: Any) -> None:
    with Client(taker(Annotated[cls, Depends()])) as client:
        assert client.get("/?number=2").status_code == 200
        found = client.get("/?number=3")
        assert found.status_code == 422
        errors = [(one["in"], one["pointer"]) for one in found.json()["errors"]]
        assert errors == [("query", "#/number")]
