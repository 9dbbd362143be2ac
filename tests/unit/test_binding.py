"""Signatures: what is passed directly, what is refused at start-up, with which words."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from typing import Annotated, Any, TypedDict
from uuid import UUID

import msgspec
import pytest
from citius import Body, ConfigError, Request
from citius.web.binding.bind import bind
from citius.web.binding.signature import kind_of, path_parameters


class Item(msgspec.Struct):
    name: str


@dataclass
class Point:
    x: int


class Shape(TypedDict):
    corners: int


def sources(handler: Callable[..., Any], pattern: str = "/") -> str:
    """Whether a route calls its handler directly, and with what."""
    bound = bind(handler, pattern)
    return ("direct " if bound.call is handler else "wrapped ") + str(bound.args)


class TestDirect:
    """Routes that cost no Python frame but their handler's own."""

    def test_nothing(self) -> None:
        assert sources(lambda: "x") == "direct ()"

    def test_request_by_name_and_by_annotation(self) -> None:
        def annotated(r: Request) -> None: ...

        assert sources(lambda request: "x") == "direct (None,)"
        assert sources(annotated) == "direct (None,)"

    def test_path_parameters_in_the_order_of_the_signature(self) -> None:
        def handler(b: str, request: Request, a: int) -> None: ...

        assert sources(handler, "/{a:int}/{b}") == "direct ('b', None, 'a')"

    def test_a_path_parameter_may_be_called_request(self) -> None:
        assert sources(lambda request: "x", "/{request}") == "direct ('request',)"

    def test_a_method(self) -> None:
        class Resource:
            def get(self, id: int) -> None: ...

        assert bind(Resource().get, "/{id:int}").args == ("id",)


class TestWrapped:
    def test_what_needs_a_wrapper(self) -> None:
        def query(page: int = 1) -> None: ...
        def converted(id: int) -> None: ...
        def keyword(*, request: Request) -> None: ...
        def body(item: Item) -> None: ...

        assert sources(query) == "wrapped (None,)"
        assert sources(converted, "/{id}") == "wrapped (None, 'id')"
        assert sources(keyword) == "wrapped (None,)"
        assert sources(body) == "wrapped (None,)"

    def test_the_wrapper_keeps_the_name(self) -> None:
        def search(q: str) -> None: ...

        assert bind(search, "/").call.__qualname__ == search.__qualname__


@pytest.mark.parametrize(
    "annotation",
    [
        Item, Point, Shape, dict, dict[str, int], list[Item], Item | None,
        Annotated[list[int], Body], Annotated[Item, "doc"], tuple[Item, ...],
    ],
)  # fmt: skip
def test_body_types(annotation: Any) -> None:
    def handler(value: Any) -> None: ...

    handler.__annotations__["value"] = annotation
    other: Callable[..., None] = lambda value, item: None  # noqa: E731
    other.__annotations__.update(value=annotation, item=bytes)
    bind(handler, "/")
    with pytest.raises(ConfigError, match="value and as item"):
        bind(other, "/")


@pytest.mark.parametrize(
    "annotation", [int, str, bool, float, UUID, list[int], int | None, set[str]]
)
def test_query_types(annotation: Any) -> None:
    def handler(value: Any, item: Item) -> None: ...

    handler.__annotations__["value"] = annotation
    bind(handler, "/")  # were it a body, there would be two


class TestRefused:
    """Mistakes that are found when the application starts, not when a client comes."""

    def check(
        self, handler: Callable[..., Any], match: str, pattern: str = "/", **more: Any
    ) -> None:
        with pytest.raises(ConfigError, match=match):
            bind(handler, pattern, **more)

    def test_variable_parameters(self) -> None:
        self.check(lambda *args: None, r"takes \*args")
        self.check(lambda **kwargs: None, r"takes \*\*kwargs")

    def test_two_bodies(self) -> None:
        def handler(item: Item, raw: bytes) -> None: ...

        self.check(handler, "item and as raw")

    def test_a_body_parameter_of_a_streaming_handler(self) -> None:
        def handler(item: Item) -> None: ...

        self.check(handler, "stream=True", stream=True)

    def test_a_request_that_is_something_else(self) -> None:
        def handler(request: int) -> None: ...

        self.check(handler, "other than citius.Request")

    def test_a_converter_against_an_annotation(self) -> None:
        def handler(id: str) -> None: ...

        self.check(handler, "makes id an int, .* expects str", "/{id:int}")

    def test_an_annotation_nobody_can_resolve(self) -> None:
        def handler(value: Missing) -> None: ...  # type: ignore[name-defined]  # noqa: F821

        self.check(
            handler, "'Missing' is not defined; a name that is local to a function is not found"
        )

    def test_a_type_nobody_can_convert_to(self) -> None:
        class Custom:
            pass

        def handler(value: Any) -> None: ...

        handler.__annotations__["value"] = Custom
        with pytest.raises(ConfigError, match="parameter value of .*Custom cannot be read"):
            bind(handler, "/")

        handler.__annotations__["value"] = Item | Point
        with pytest.raises(ConfigError, match="value of .* msgspec cannot read: Type unions"):
            bind(handler, "/")

    def test_the_message_names_file_and_line(self) -> None:
        def handler(*args: int) -> None: ...

        self.check(handler, r"handler \(.*test_binding\.py:\d+\)")


class TestKind:
    def test_kinds(self) -> None:
        async def coroutine() -> None: ...
        async def generator() -> AsyncIterator[bytes]:
            yield b""

        class Awaited:
            async def __call__(self) -> None: ...

        assert kind_of(lambda: None, blocking=False) == "def"
        assert kind_of(lambda: None, blocking=True) == "blocking"
        assert kind_of(coroutine, blocking=False) == "async"
        assert kind_of(generator, blocking=False) == "def"
        assert kind_of(Awaited(), blocking=False) == "async"

    def test_a_blocking_coroutine_is_a_contradiction(self) -> None:
        async def coroutine() -> None: ...

        with pytest.raises(ConfigError, match="drop blocking=True"):
            kind_of(coroutine, blocking=True)


def test_path_parameters() -> None:
    assert path_parameters("/a/{b}/{c:int}/{d:path}") == {"b": "str", "c": "int", "d": "path"}
    assert path_parameters("/") == {}
