"""Declared responses have the declared fields only, whatever the annotation.

Frameworks 1 and 6, hostile 6 and 15 (`web_filter.py`).
"""

from __future__ import annotations

import collections
import dataclasses
import json
import types
import typing
from collections import abc, deque
from pathlib import PurePosixPath
from typing import (
    Any,
    Final,
    Generic,
    Literal,
    NamedTuple,
    NewType,
    Protocol,
    TypedDict,
    TypeVar,
    Union,
)

import attrs
import msgspec
import pydantic
import pytest
import typing_extensions
from citius import App, ConfigError, Response
from citius.testing import Client
from typing_extensions import TypeAliasType

T = TypeVar("T")


class User(msgspec.Struct):
    name: str = "n"


class Account(User):
    password: str = "SECRET"


class Model(pydantic.BaseModel):
    name: str = "n"


class ModelAccount(Model):
    password: str = "SECRET"


@dataclasses.dataclass
class Data:
    name: str = "n"


@dataclasses.dataclass
class DataAccount(Data):
    password: str = "SECRET"


@attrs.define
class Attrs:
    name: str = "n"


@attrs.define
class AttrsAccount(Attrs):
    password: str = "SECRET"


class Typed(TypedDict):
    name: str


class Row:
    """An object of a database."""

    name = "n"
    password = "SECRET"


class Pair(NamedTuple):
    user: User
    number: int = 1


class Page(msgspec.Struct, Generic[T]):
    items: list[T]


class ModelPage(pydantic.BaseModel, Generic[T]):
    items: list[T]


class Order(msgspec.Struct):
    user: Model


class OptionalOrder(msgspec.Struct):
    user: Model | None = None


class DequeOrder(msgspec.Struct):
    users: deque[User]


class IterableOrder(msgspec.Struct):
    users: typing.Iterable[User]


class OpenOrder(msgspec.Struct):
    user: Data | Any


class OpenModel(pydantic.BaseModel):
    user: Model | Any


class PathOrder(msgspec.Struct):
    path: PurePosixPath
    user: User


@dataclasses.dataclass
class DataOrder:
    user: User
    model: Model


class TypedOrder(TypedDict):
    user: User
    data: Data
    model: typing.NotRequired[Model]


class Tree(msgspec.Struct):
    user: Model
    children: list[Tree] = []


class Renamed(msgspec.Struct, rename="camel"):
    first_name: Model


class Users(list[User]):
    pass


class Registry(dict[str, T], Generic[T]):
    pass


class Dog(msgspec.Struct, tag="dog"):
    name: str = "n"


class SecretDog(Dog, tag="dog"):
    password: str = "SECRET"


class Cat(msgspec.Struct, tag="cat"):
    name: str = "n"


class Owner(msgspec.Struct):
    name: str
    address: str


class DataOwner(TypedDict):
    name: str
    address: str


Name = NewType("Name", User)
Alias = TypeAliasType("Alias", User)
OrResponse = TypeAliasType("OrResponse", Union[User, Response])  # noqa: UP007
Many = TypeAliasType("Many", list[T], type_params=(T,))
Nested = TypeAliasType("Nested", "dict[str, Nested] | User")
Bound = TypeVar("Bound", bound=User)
N: Final = {"name": "n"}

CASES: Final[list[tuple[Any, Any, Any]]] = [
    (typing.Sequence[User], [Account()], [N]),
    (abc.Sequence[User], (Account(),), [N]),
    (typing.Iterable[User], [Account()], [N]),
    (abc.Iterable[User], {"a": Account()}.values(), [N]),
    (abc.Iterable[User], deque([Account()]), [N]),
    (abc.Collection[User], [Account()], [N]),
    (abc.Container[User], [Account()], [N]),
    (abc.Reversible[User], [Account()], [N]),
    (abc.MutableSequence[User], [Account()], [N]),
    (abc.ValuesView[User], {"a": Account()}.values(), [N]),
    (deque[User], deque([Account()]), [N]),
    (collections.UserList[User], [Account()], [N]),
    (list[User], deque([Account()]), [N]),
    (typing.Mapping[str, User], {"a": Account()}, {"a": N}),
    (abc.MutableMapping[str, User], {"a": Account()}, {"a": N}),
    (collections.OrderedDict[str, User], collections.OrderedDict(a=Account()), {"a": N}),
    (collections.defaultdict[str, User], collections.defaultdict(User, a=Account()), {"a": N}),
    (collections.ChainMap[str, User], collections.ChainMap({"a": Account()}), {"a": N}),
    (types.MappingProxyType[str, User], types.MappingProxyType({"a": Account()}), {"a": N}),
    (dict[str, abc.Sequence[deque[User]]], {"a": [deque([Account()])]}, {"a": [[N]]}),
    (Users, Users([Account()]), [N]),
    (Registry[User], Registry(a=Account()), {"a": N}),
    (Name, Account(), N),
    (NewType("Names", list[User]), [Account()], [N]),
    (Alias, Account(), N),
    (Many[Alias], [Account()], [N]),
    (Nested, {"a": {"b": Account()}}, {"a": {"b": N}}),
    (OrResponse, Account(), N),
    (OrResponse, Response(Account()), N),
    (Bound, Account(), N),
    (Pair, Pair(Account()), [N, 1]),
    (list[Pair], [Pair(Account())], [[N, 1]]),
    (tuple[User, int], (Account(), 7), [N, 7]),
    (tuple[User, int], (Account(), 200), [N, 200]),
    (frozenset[Pair], [Pair(Account())], [[N, 1]]),
    (Page[User], Page([Account()]), {"items": [N]}),
    (Page[Model], Page([ModelAccount()]), {"items": [N]}),
    (ModelPage[Data], ModelPage[Data](items=[DataAccount()]), {"items": [N]}),
    (Order, Order(ModelAccount()), {"user": N}),
    (OptionalOrder, OptionalOrder(ModelAccount()), {"user": N}),
    (OptionalOrder, OptionalOrder(), {"user": None}),
    (list[OptionalOrder | None], [OptionalOrder(ModelAccount()), None], [{"user": N}, None]),
    (DequeOrder, DequeOrder(deque([Account()])), {"users": [N]}),
    (IterableOrder, IterableOrder([Account()]), {"users": [N]}),
    (PathOrder, PathOrder(PurePosixPath("a/b"), Account()), {"path": "a/b", "user": N}),
    (DataOrder, DataOrder(Account(), ModelAccount()), {"user": N, "model": N}),
    (TypedOrder, {"user": Account(), "data": DataAccount()}, {"user": N, "data": N}),
    (Tree, Tree(ModelAccount(), [Tree(ModelAccount())]),
     {"user": N, "children": [{"user": N, "children": []}]}),
    (Renamed, Renamed(ModelAccount()), {"firstName": N}),
    (Attrs, AttrsAccount(), N),
    (abc.Sequence[Attrs], [AttrsAccount()], [N]),
    (abc.Sequence[Model], [ModelAccount()], [N]),
    (abc.Iterable[Model], deque([ModelAccount()]), [N]),
    (abc.Mapping[str, Data], {"a": DataAccount()}, {"a": N}),
    (abc.Sequence[Typed], [{"name": "n", "password": "SECRET"}], [N]),
    (Order, Row(), None),
    (User, Row(), N),
    (abc.Iterable[User], [Row()], [N]),
    (Literal["a"] | User, Account(), N),
    (Literal["a"] | list[User], [Account()], [N]),
    # Unions, told apart by class, tag, or fields.
    (Dog | Cat, SecretDog(), {"type": "dog"} | N),
    (list[Dog | Cat], [SecretDog(), Cat()], [{"type": "dog"} | N, {"type": "cat"} | N]),
    (Dog | Cat, {"type": "cat", "name": "n", "password": "SECRET"}, {"type": "cat"} | N),
    (Data | User, DataAccount(), N),
    (User | Owner, Account(), N),
    (User | Owner, {"name": "n", "address": "x", "password": "SECRET"}, {"name": "n", "address": "x"}),
    (Typed | DataOwner, {"name": "n", "address": "x", "password": "SECRET"}, {"name": "n", "address": "x"}),
    (Typed | DataOwner, {"name": "n", "password": "SECRET"}, N),
    (Model | User, ModelAccount(), N),
    (Model | User, Account(), N),
    (Model | Data, DataAccount(), N),
    (list[Model] | list[User], [Account()], [N]),
    (User | dict[str, Any], Account(), N),
    (User | dict[str, Any], {"free": 1}, {"free": 1}),
    (User | str | int | None, Account(), N),
    (User | Row, Account(), N),
    # `Any` beside a class: objects of the class have its fields, others are as they are.
    (User | Any, Account(), N),
    (Data | Any, DataAccount(), N),
    (list[Data | Any], [DataAccount(), 1, {"free": 1}], [N, 1, {"free": 1}]),
    (dict[str, list[Data] | Any], {"a": [DataAccount()]}, {"a": [N]}),
    (Attrs | Any, AttrsAccount(), N),
    (Model | object, ModelAccount(), N),
    (OpenOrder, OpenOrder(DataAccount()), {"user": N}),
    (Page[Data | Any], Page([DataAccount()]), {"items": [N]}),
]  # fmt: skip


@pytest.mark.parametrize("media_type", ["application/json", "application/msgpack"])
@pytest.mark.parametrize("has_status", [False, True])
def test_only_declared_fields_are_sent(media_type: str, has_status: bool) -> None:
    app = App()
    options: Any = {"status_code": 200, "headers": {"x-a": "1"}} if has_status else {}
    for number, (annotation, value, expected) in enumerate(CASES):
        if expected is not None:
            _add(app, f"/return/{number}", annotation, value, options)
            _add(app, f"/response/{number}", Any, value, {**options, "response": annotation})
    wrong: list[Any] = []
    with Client(app) as client:
        for number, (annotation, _, expected) in enumerate(CASES):
            if expected is None:
                continue
            for way in ("return", "response"):
                found = client.get(f"/{way}/{number}", headers={"accept": media_type})
                is_json = media_type == "application/json"
                body = (
                    json.loads(found.content) if is_json else msgspec.msgpack.decode(found.content)
                )
                if body != expected:
                    wrong.append((annotation, way, body))
    assert not wrong


def _add(app: App, path: str, annotation: Any, value: Any, options: Any) -> None:
    def handler() -> Any:
        if type(value) is Response:
            return Response(value.body, value.status_code)
        return value

    handler.__annotations__["return"] = annotation
    app.get(path, **options)(handler)


def test_names_in_texts_are_resolved() -> None:
    app = App()

    @app.get("/list")
    def one() -> list["User"]:  # noqa: UP037
        return [Account()]

    one.__annotations__["return"] = list["User"]

    @app.get("/typing")
    def two() -> Any:
        return {"a": Account()}

    two.__annotations__["return"] = typing.Dict["str", "User"]  # noqa: UP006
    with Client(app) as client:
        assert client.get("/list").json() == [N]
        assert client.get("/typing").json() == {"a": N}


def test_a_name_that_is_unknown_ends_the_start() -> None:
    def handler() -> Any:
        return Account()

    app = App()
    handler.__annotations__["return"] = list["Nowhere"]  # noqa: F821
    app.get("/")(handler)
    with pytest.raises(ConfigError, match=r"test_response_filters.py:\d+\).*Nowhere"):
        Client(app)


class Box(Generic[T]):
    pass


class HasName(Protocol):
    name: str


class Plain:
    name: str


@pytest.mark.parametrize(
    "annotation",
    [
        Box[User], list[Box[User]], abc.Callable[..., User], abc.Awaitable[User], type[User], HasName,
        list[HasName], Plain, dict[str, Plain], dict[str, abc.Iterator[User]], abc.Iterator[User] | None,
        OpenModel, list[OpenModel],
    ],
    ids=str,
)  # fmt: skip
def test_types_that_do_not_say_what_is_sent_are_refused(annotation: Any) -> None:
    app = App()
    _add(app, "/", annotation, None, {})
    with pytest.raises(ConfigError, match=r"test_response_filters.py:\d+\)"):
        Client(app)


@pytest.mark.parametrize("kind", ["run", "connect", "lines"])
def test_streams_of_what_cannot_be_filtered_are_refused(kind: str) -> None:
    """Runs sent all fields of an iterator within an iterator."""
    app = App()

    async def handler() -> abc.AsyncIterator[abc.Iterator[Data]]:
        yield iter([DataAccount()])

    if kind == "run":
        app.run("/")(handler)
    elif kind == "lines":
        app.get("/")(handler)
    else:
        app.rpc("handler")(handler)
        app.connect()
    with pytest.raises(ConfigError, match=r"test_response_filters.py:\d+\).*a stream inside"):
        Client(app).__enter__()


class Base:
    pass


@dataclasses.dataclass
class Full(Base):
    password: str = "SECRET"


class Envelope(msgspec.Struct):
    base: Base


def test_an_object_with_fields_is_not_sent_in_the_place_of_another_class() -> None:
    app = App()
    _add(app, "/", Envelope, Envelope(Full()), {})
    with Client(app, raise_errors=False) as client:
        found = client.get("/")
        assert found.status_code == 500
        assert b"SECRET" not in found.content


def test_a_response_of_the_route_s_own_status_is_filtered_too() -> None:
    app = App()

    @app.get("/")
    def own() -> User | Response:
        return Response(Account())

    @app.get("/list", status_code=201)
    def made() -> list[User] | Response:
        return Response([Account()], 201)

    @app.get("/other")
    def other() -> User | Response:
        return Response({"queued": True}, 202)

    @app.get("/bytes")
    def encoded() -> User | Response:
        return Response(b"as it is")

    with Client(app) as client:
        assert client.get("/").json() == N
        assert client.get("/list").json() == [N]
        assert client.get("/other").json() == {"queued": True}
        assert client.get("/bytes").content == b"as it is"


class Optional(msgspec.Struct, rename="camel"):
    first_name: str
    last_name: str | None = None
    age: int = 3


class OptionalModel(pydantic.BaseModel):
    first_name: str = pydantic.Field(alias="firstName")
    last_name: str | None = None
    age: int = 3


@dataclasses.dataclass
class OptionalData:
    firstName: str  # noqa: N815
    last_name: str | None = None
    age: int = 3


@pytest.mark.parametrize("media_type", ["application/json", "application/msgpack"])
def test_fields_are_excluded(media_type: str) -> None:
    """Frameworks, missing features; newcomer, missing against FastAPI."""
    model = OptionalModel(firstName="a", age=3)
    values: list[Any] = [Optional("a"), model, OptionalData("a")]
    kinds: list[Any] = [Optional, OptionalModel, OptionalData]
    cases: list[tuple[dict[str, bool], set[str]]] = [
        ({"exclude_none": True}, {"firstName", "age"}),
        ({"exclude_defaults": True}, {"firstName"}),
        ({"exclude_none": True, "exclude_defaults": True}, {"firstName"}),
    ]
    app = App()
    for number, (options, _) in enumerate(cases):
        for kind, value in zip(kinds, values, strict=True):
            _add(app, f"/{number}/{kind.__name__}", kind, value, options)
            _add(app, f"/{number}/list/{kind.__name__}", list[kind], [value], options)
    _add(app, "/unset", OptionalModel, model, {"exclude_unset": True})
    _add(app, "/names/Optional", Optional, Optional("a", "b"), {"by_alias": False})
    _add(app, "/names/OptionalModel", OptionalModel, model, {"by_alias": False})
    _add(app, "/status", Optional, Optional("a"), {"exclude_none": True, "status_code": 201})

    def read(client: Client, path: str) -> Any:
        found = client.get(path, headers={"accept": media_type}).content
        return json.loads(found) if media_type.endswith("json") else msgspec.msgpack.decode(found)

    with Client(app) as client:
        for number, (_, names) in enumerate(cases):
            for kind in kinds:
                here = f"/{number}/{kind.__name__}", f"/{number}/list/{kind.__name__}"
                assert set(read(client, here[0])) == names, here
                assert [set(one) for one in read(client, here[1])] == [names], here
        assert set(read(client, "/unset")) == {"firstName", "age"}
        assert set(read(client, "/names/Optional")) == {"first_name", "last_name", "age"}
        assert set(read(client, "/names/OptionalModel")) == {"first_name", "last_name", "age"}
        assert set(read(client, "/status")) == {"firstName", "age"}


@pytest.mark.parametrize(
    ("annotation", "options", "words"),
    [
        (Optional, {"exclude_unset": True}, "exclude_unset=True needs to know"),
        (Any, {"exclude_none": True}, "annotate what it returns"),
        (str, {"by_alias": False}, "annotate what it returns"),
    ],
)
def test_what_cannot_be_excluded_is_refused(annotation: Any, options: Any, words: str) -> None:
    app = App()
    _add(app, "/", annotation, None, options)
    with pytest.raises(ConfigError, match=rf"test_response_filters.py:\d+\).*{words}"):
        Client(app)


def test_all_declared_types_have_a_schema() -> None:
    from openapi_spec_validator import OpenAPIV31SpecValidator

    app = App()
    for number, (annotation, value, _) in enumerate(CASES):
        if annotation is not Nested:
            _add(app, f"/{number}", annotation, value, {})
    made = app.openapi()
    OpenAPIV31SpecValidator(json.loads(json.dumps(made))).validate()
    number = next(at for at, (one, _, _) in enumerate(CASES) if one is Order)
    schema = made["paths"][f"/{number}"]["get"]["responses"]["200"]["content"]["application/json"]
    assert schema == {"schema": {"$ref": "#/components/schemas/Order"}}
    assert made["components"]["schemas"]["Order"]["properties"] == {
        "user": {"$ref": "#/components/schemas/Model"}
    }


class BaseUser(pydantic.BaseModel):
    name: str


class FullUser(BaseUser):
    password: str = "SECRET"


Bound = TypeVar("Bound", bound=BaseUser)


class OpenModel(pydantic.BaseModel, Generic[Bound]):
    item: Bound


class OpenDict(typing_extensions.TypedDict, Generic[Bound]):
    item: Bound


@dataclasses.dataclass
class OpenRecord(Generic[Bound]):
    item: list[Bound]


@pytest.mark.parametrize(
    "declared", [OpenModel, OpenDict, OpenRecord, list[OpenModel], OpenDict | None]
)
def test_an_open_type_variable_of_pydantic_is_refused(declared: Any) -> None:
    """Issue 32 A4: pydantic sends all fields of what is in the place of a bound variable."""
    app = App()

    @app.get("/", response=declared)
    def index() -> Any:
        raise AssertionError

    with pytest.raises(
        ConfigError, match=r"leaves the type variable ~Bound open, .* …\[BaseUser\]"
    ):
        Client(app).get("/")


def test_a_type_in_the_place_of_the_variable_is_filtered() -> None:
    app = App()

    @app.get("/", response=OpenModel[BaseUser])
    def index() -> Any:
        return OpenModel.model_construct(item=FullUser(name="ann"))

    assert Client(app).get("/").json() == {"item": {"name": "ann"}}
