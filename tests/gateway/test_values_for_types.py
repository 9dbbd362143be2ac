"""Values where a type is expected, and classes that say nothing: as a declared response each ends the start.

``-> [User]`` is what somebody writes who means ``list[User]``: it was taken for a type without fields, and
all fields were sent.
"""

from collections.abc import AsyncIterator, Callable
from typing import Any

import msgspec
import pydantic
import pytest
from citius import App, ConfigError, Request
from citius.testing import Client


class User(msgspec.Struct):
    name: str


class Account(User):
    password: str = "SECRET"


class Payload(pydantic.BaseModel):
    a: int = 1


class AnyPayload(pydantic.BaseModel):
    data: pydantic.SerializeAsAny[pydantic.BaseModel]


_list: Any = list
_dict: Any = dict
VALUES: list[Any] = [
    [User], (User, int), {"user": User}, {User}, User("ann"), 5, _list[[User]], _dict[str, (User, int)],
]  # fmt: skip


def _route(app: App, declared: Any) -> None:
    def handler() -> Any:
        return [Account("ann")]

    handler.__annotations__["return"] = declared
    app.get("/")(handler)


def _response(app: App, declared: Any) -> None:
    app.get("/", response=declared)(lambda: [Account("ann")])


def _procedure(app: App, declared: Any) -> None:
    def handler() -> Any:
        return [Account("ann")]

    handler.__annotations__["return"] = declared
    app.rpc(handler)
    app.connect()


def _tool(app: App, declared: Any) -> None:
    def handler() -> Any:
        return [Account("ann")]

    handler.__annotations__["return"] = declared
    app.mcp("/mcp").tool(handler)


def _error_handler(app: App, declared: Any) -> None:
    def handler(request: Request, error: KeyError) -> Any:
        return [Account("ann")]

    handler.__annotations__["return"] = declared
    app.exception_handler(KeyError)(handler)


def _run(app: App, declared: Any) -> None:
    async def handler() -> AsyncIterator[Any]:
        yield [Account("ann")]

    handler.__annotations__["return"] = AsyncIterator[declared]
    app.run("/run")(handler)


MEMBERS: list[Callable[[App, Any], None]] = [
    _route, _response, _procedure, _tool, _error_handler, _run,
]  # fmt: skip


@pytest.mark.parametrize("add", MEMBERS)
@pytest.mark.parametrize("declared", VALUES, ids=repr)
def test_a_value_is_no_type(add: Callable[[App, Any], None], declared: Any) -> None:
    if add is _run and isinstance(declared, tuple):
        declared = [declared]  # AsyncIterator[(User, int)] has two arguments
    app = App()
    add(app, declared)
    with pytest.raises(
        ConfigError, match=r"test_values_for_types.py:\d+\).* is no type; write list"
    ):
        Client(app)


@pytest.mark.parametrize(
    "declared",
    [pydantic.BaseModel, msgspec.Struct, list[pydantic.BaseModel], msgspec.Struct | None],
)
def test_the_class_that_all_extend_has_no_fields(declared: Any) -> None:
    """The response was ``{}``, whatever was returned."""
    app = App()
    _response(app, declared)
    with pytest.raises(ConfigError, match="has no fields, so that nothing would be sent"):
        Client(app)


def test_as_any_says_what_is_sent() -> None:
    app = App()

    @app.get("/")
    def handler() -> AnyPayload:
        return AnyPayload(data=Payload())

    with Client(app) as client:
        assert client.get("/").json() == {"data": {"a": 1}}


@pytest.mark.parametrize("declared", [User, dict[str, User], str, tuple[User, int]])
def test_a_generator_is_no_single_value(declared: Any) -> None:
    app = App()

    @app.get("/", response=declared)
    def handler() -> Any:
        yield Account("ann")

    with pytest.raises(ConfigError, match=r"is a generator, whose response is a stream"):
        Client(app)
