"""Defaults belong to one request: what a field's factory makes, and what can be changed in place."""

from collections import Counter, defaultdict
from dataclasses import dataclass, field
from typing import Annotated, Any, NamedTuple
from uuid import uuid4

import attrs
import msgspec
import pydantic
import pytest
from citius import App, Body, ConfigError, Depends
from citius.testing import Client


def _unique() -> str:
    return uuid4().hex


@dataclass
class Data:
    tags: list[str] = field(default_factory=lambda: ["a"])
    id: str = field(default_factory=_unique)
    anything: Any = field(default_factory=_unique)


class Struct(msgspec.Struct):
    tags: list[str] = msgspec.field(default_factory=lambda: ["a"])
    id: str = msgspec.field(default_factory=_unique)
    anything: Any = msgspec.field(default_factory=_unique)


class Model(pydantic.BaseModel):
    tags: list[str] = pydantic.Field(default_factory=lambda: ["a"])
    id: str = pydantic.Field(default_factory=_unique, alias="ident")
    anything: Any = pydantic.Field(default_factory=_unique)


@attrs.define
class Attributes:
    tags: list[str] = attrs.field(factory=lambda: ["a"])
    id: str = attrs.field(factory=_unique)
    anything: Any = attrs.field(factory=_unique)


@pytest.mark.parametrize("cls", [Data, Struct, Model, Attributes])
def test_the_factory_of_a_field_is_called_for_each_request(cls: Any) -> None:
    """The start failed, and a field of ``Any`` got what stands for the factory."""
    app = App()

    @app.get("/")
    def handler(given: Annotated[Any, Depends(cls)]) -> dict[str, Any]:
        given.tags.append("b")
        return {"tags": given.tags, "id": given.id, "anything": given.anything}

    with Client(app) as client:
        first, second = client.get("/").json(), client.get("/").json()
        assert first["tags"] == second["tags"] == ["a", "b"]
        assert all(len(one[name]) == 32 for one in (first, second) for name in ("id", "anything"))
        assert first["id"] != second["id"]
        assert client.get("/?tags=x&anything=y").json()["tags"] == ["x", "b"]
        parameters = app.openapi()["paths"]["/"]["get"]["parameters"]
        assert [one["schema"].get("default") for one in parameters] == [None, None, None]


def test_a_factory_of_other_fields_ends_the_start() -> None:
    class Dependent(pydantic.BaseModel):
        size: int = 1
        twice: int = pydantic.Field(default_factory=lambda fields: fields["size"] * 2)

    app = App()

    @app.get("/")
    def handler(given: Annotated[Dependent, Depends()]) -> str:
        raise AssertionError

    with pytest.raises(ConfigError, match="twice of .*Dependent has a default_factory that takes"):
        Client(app)


class Pair(NamedTuple):
    values: list[int]


class Listed(list[int]):
    pass


@pytest.mark.parametrize(
    "default",
    [Pair([1]), ([1],), (Pair([1]),), Counter({"a": 1}), defaultdict(list, a=[1]), Listed([1])],
    ids=repr,
)
def test_a_default_is_not_changed_for_the_next_request(default: Any) -> None:
    """Named tuples and other containers than list, dict and set were those of all requests."""
    app = App()

    def change(value: Any) -> Any:
        while isinstance(value, tuple):
            value = value[0]
        if isinstance(value, dict):
            value.update(b=2)
        else:
            value.append(2)

    @app.post("/")
    def handler(value: Annotated[Any, Body()] = default) -> Any:
        change(value)
        return value

    @app.rpc
    def procedure(value: Any = default) -> Any:
        change(value)
        return value

    app.connect()
    before = repr(default)
    with Client(app) as client:
        assert client.post("/").json() == client.post("/").json()
        path = "/citius.Procedures/procedure"
        assert client.post(path, json={}).json() == client.post(path, json={}).json()
    assert repr(default) == before


def test_a_default_that_cannot_change_is_itself() -> None:
    class Sentinel:
        pass

    sentinel = Sentinel()
    pair = (1, "a", sentinel)
    given: list[Any] = []
    app = App()

    @app.post("/")
    def handler(value: Annotated[Any, Body()] = pair) -> str:
        given.append(value)
        return "done"

    with Client(app) as client:
        client.post("/")
    assert given[0] is pair
