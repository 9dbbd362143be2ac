"""Functions of generic classes: what stands for a type variable holds in them, with its markers."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Any, Generic, TypeVar

import attrs
import msgspec
import pydantic
import pytest
import text_annotations
from citius import App, ConfigError, Depends, HTTPError, Query, Unauthorized
from citius.testing import Client

T = TypeVar("T")
K = TypeVar("K")
B = TypeVar("B", bound=int)


def deny() -> str:
    raise Unauthorized("not for you")


Guarded = Annotated[str, Depends(deny)]
AtLeast3 = Annotated[int, Query(ge=3)]


class Service(Generic[T]):
    def __call__(self, value: T) -> object:
        return value

    def method(self, value: T) -> object:
        return value

    @classmethod
    def of_class(cls, value: T) -> object:
        return value


class Made(Generic[T]):
    def __init__(self, value: T) -> None:
        self.value = value


class GuardedService(Service[Guarded]):
    pass


class Between(Service[K], Generic[K]):
    pass


class TwiceBelow(Between[Guarded]):
    pass


class GuardedMade(Made[Guarded]):
    pass


class SameVariable(Service[int], Generic[T]):
    """Its own ``T`` is another than that of ``Service``."""


@dataclass
class Fields(Generic[T]):
    value: T


@dataclass
class MoreFields(Fields[Guarded]):
    page: int = 1


class StructFields(msgspec.Struct, Generic[T]):
    value: T


class GuardedStruct(StructFields[Guarded]):
    pass


GUARDED: dict[str, Callable[..., Any]] = {
    "bound method": GuardedService().method,
    "called object": GuardedService(),
    "class method": GuardedService.of_class,
    "method of Service[…]()": Service[Guarded]().method,
    "Service[…]() itself": Service[Guarded](),
    "method through two bases": TwiceBelow().method,
    "__init__ of a base": GuardedMade,
    "fields of a dataclass": MoreFields,
    "fields of a Struct": GuardedStruct,
    "a dataclass with arguments": Fields[Guarded],
}


@pytest.mark.parametrize("name", GUARDED)
def test_a_guard_in_the_place_of_a_type_variable_is_called(name: str) -> None:
    app = App()

    @app.get("/dependency")
    def handler(value: Annotated[Any, Depends(GUARDED[name])]) -> str:
        return "open"

    with Client(app) as client:
        assert client.get("/dependency?value=me").status_code == 401


@pytest.mark.parametrize("handler", [GuardedService().method, Service[Guarded](), TwiceBelow()])
def test_a_guard_of_a_handler_is_called(handler: Callable[..., Any]) -> None:
    app = App()
    app.get("/")(handler)
    with Client(app) as client:
        assert client.get("/?value=me").status_code == 401


def test_constraints_hold_in_the_place_of_a_type_variable() -> None:
    app = App()
    app.get("/")(Service[AtLeast3]().method)
    app.get("/same")(SameVariable[str]().method)
    with Client(app) as client:
        assert client.get("/?value=3").json() == 3
        assert client.get("/?value=2").status_code == 422
        assert client.get("/same?value=5").json() == 5
        assert client.get("/same?value=five").status_code == 422


class User(msgspec.Struct):
    name: str


class Account(User):
    password: str = "SECRET"


class Crud(Generic[T]):
    def add(self, item: T) -> T:
        return item

    def all(self) -> list[T]:
        return [Account("ann")]  # type: ignore[list-item]  # pyright: ignore[reportReturnType]

    def quoted(self) -> list["T"]:
        return self.all()

    async def refused(self, request: Any, error: Exception) -> T:
        return Account("ann")  # type: ignore[return-value]  # pyright: ignore[reportReturnType]


class Users(Crud[User]):
    pass


@pytest.mark.parametrize("crud", [Users(), Crud[User]()])
def test_a_generic_class_of_handlers_takes_and_sends_the_declared_type(crud: Any) -> None:
    app = App()
    app.post("/users")(crud.add)
    app.get("/users")(crud.all)
    app.get("/quoted")(crud.quoted)
    app.exception_handler(HTTPError)(crud.refused)
    app.rpc("users.add")(crud.add)
    app.rpc("users.all")(crud.all)
    app.connect("/api")
    with Client(app) as client:
        added = client.post("/users", json={"name": "ann", "password": "SECRET"})
        assert added.json() == {"name": "ann"}
        assert client.post("/users", json={"name": 1}).json() == {
            "name": "ann"
        }  # by its error handler
        assert client.get("/users").json() == [{"name": "ann"}]
        assert client.get("/quoted").json() == [{"name": "ann"}]
        assert client.post("/api/users/all", json={}).json() == {"result": [{"name": "ann"}]}
        assert client.post("/api/users/add", json={"item": {"name": 1}}).status_code == 400
        document = app.openapi()["paths"]["/users"]["post"]
        assert document["requestBody"]["content"]["application/json"]["schema"]["$ref"].endswith(
            "/User"
        )


def guard() -> str:
    return "anybody"


@dataclass
class DataBelow(text_annotations.Data):
    page: int = 1


@attrs.define
class AttributesBelow(text_annotations.Attributes):
    page: int = 1


class StructBelow(text_annotations.Struct):
    page: int = 1


@pytest.mark.parametrize("cls", [DataBelow, AttributesBelow, StructBelow])
def test_names_in_annotations_are_those_of_the_class_that_has_declared_them(cls: Any) -> None:
    """Dataclasses and attrs repeat texts: the function of this module was called in place of the guard."""
    app = App()

    @app.get("/")
    def handler(value: Annotated[Any, Depends(cls)]) -> str:
        return "open"

    with Client(app) as client:
        assert client.get("/?user=me&page=2").status_code == 401
    assert guard() == "anybody"


class Slotted(Generic[T]):
    __slots__ = ()

    def method(self, value: T) -> str:
        return "open"

    def all(self) -> list[T]:
        return []

    @classmethod
    def of_class(cls, value: T) -> str:
        return "open"


class StructService(msgspec.Struct, Generic[T]):
    page: int = 1

    def method(self, value: T) -> str:
        return "open"


class ModelService(pydantic.BaseModel, Generic[T]):
    page: int = 1

    def method(self, value: T) -> object:
        return value


class ModelBelow(ModelService[Guarded]):
    pass


class Bounded(Generic[B]):
    def method(self, value: B) -> object:
        return value


@pytest.mark.parametrize(
    "handler",
    [
        Slotted[Guarded]().method,
        Slotted[User]().all,
        Slotted[Guarded].of_class,
        StructService[Guarded]().method,
        Service[Any].method.__get__(Service()),
        Crud().all,
    ],
)
@pytest.mark.parametrize("where", ["handler", "dependency", "procedure"])
def test_a_variable_that_nothing_gives_a_type_ends_the_start(handler: Any, where: str) -> None:
    """Objects with ``__slots__`` do not know their arguments: the guard was not called."""
    app = App()
    if where == "handler":
        app.get("/")(handler)
    elif where == "procedure":
        app.rpc("name")(handler)
    else:

        @app.get("/")
        def taker(value: Annotated[Any, Depends(handler)]) -> str:
            return "open"

    with pytest.raises(
        ConfigError, match=r"test_generic_classes.py:\d+\): nothing says what ~T of"
    ):
        Client(app)


@pytest.mark.parametrize("handler", [ModelService[Guarded]().method, ModelBelow().method])
def test_a_generic_model_gives_its_arguments(handler: Any) -> None:
    app = App()
    app.get("/")(handler)
    with Client(app) as client:
        assert client.get("/?value=me").status_code == 401


def test_a_variable_with_a_bound_is_that() -> None:
    app = App()
    app.get("/")(Bounded[int]().method)
    app.get("/bound")(Bounded().method)  # pyright: ignore[reportUnknownMemberType, reportUnknownArgumentType]
    with Client(app) as client:
        assert client.get("/bound?value=5").json() == 5
        assert client.get("/bound?value=five").status_code == 422
