"""Dependencies: called once a request, in order, cleaned up at its end; mistakes are found at the start."""

import contextlib
import contextvars
import dataclasses
import functools
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import dataclass, field
from typing import Annotated, Any, NamedTuple

import msgspec
import pytest
from citius import (
    App,
    ConfigError,
    Depends,
    Header,
    NotFound,
    Query,
    Request,
    Response,
    Unauthorized,
)
from citius.testing import Client, TestResponse

log: list[str] = []


@pytest.fixture(autouse=True)
def _empty_log() -> None:
    log.clear()


def page(page: Annotated[int, Query(ge=1)] = 1, size: int = 10) -> tuple[int, int]:
    log.append("page")
    return page, size


Page = Annotated[tuple[int, int], Depends(page)]


def user(key: Annotated[str | None, Header(alias="x-key")] = None) -> str:
    if key is None:
        raise Unauthorized("no key")
    return f"user {key}"


User = Annotated[str, Depends(user)]


async def connection() -> AsyncIterator[str]:
    log.append("open")
    try:
        yield "connection"
    except NotFound:
        log.append("rolled back")
        raise
    finally:
        log.append("closed")


def session() -> Iterator[str]:
    log.append("begin")
    try:
        yield "session"
    finally:
        log.append("end")


Connection = Annotated[str, Depends(connection)]
Session = Annotated[str, Depends(session)]


def ask(
    handler: Callable[..., Any],
    target: str = "/",
    *,
    path: str = "/",
    blocking: bool = False,
    **more: Any,
) -> TestResponse:
    app = App()
    app.get(path, blocking=blocking)(handler)
    with Client(app, raise_errors=False) as client:
        return client.get(target, **more)


class TestCalls:
    def test_plain(self) -> None:
        def handler(page: Page, q: str = "x") -> Any:
            return [page, q]

        assert ask(handler, "/?page=3&q=y").json() == [[3, 10], "y"]
        wrong = ask(handler, "/?page=0&size=z").json()["errors"]
        assert [one["pointer"] for one in wrong] == ["#/page", "#/size"]

    @pytest.mark.parametrize("blocking", [False, True])
    def test_a_dependency_of_two_is_called_once(self, blocking: bool) -> None:
        def first(page: Page) -> int:
            return page[0]

        def second(page: Page) -> int:
            return page[1]

        def handler(
            a: Annotated[int, Depends(first)], page: Page, b: Annotated[int, Depends(second)]
        ) -> Any:
            return [a, b]

        assert ask(handler, blocking=blocking).json() == [1, 10]
        assert log == ["page"]

    def test_not_cached(self) -> None:
        def handler(page: Page, again: Annotated[Any, Depends(page, cached=False)]) -> Any:
            return [page, again]

        assert ask(handler).json() == [[1, 10], [1, 10]]
        assert log == ["page", "page"]

    def test_a_class_is_its_own_dependency(self) -> None:
        class Pager:
            def __init__(self, limit: int = 5) -> None:
                self.limit = limit

        def handler(pager: Annotated[Any, Depends(Pager)]) -> Any:
            return pager.limit

        def bare(pager: Any) -> Any:
            return pager.limit

        bare.__annotations__["pager"] = Annotated[Pager, Depends]
        assert ask(handler, "/?limit=7").json() == 7
        assert ask(bare, "/?limit=7").json() == 7

    def test_its_error_comes_before_mistakes_of_others(self) -> None:
        def handler(user: User, n: int) -> Any:
            return [user, n]

        assert ask(handler, "/?n=x").status_code == 401
        assert ask(handler, "/?n=x", headers={"x-key": "k"}).status_code == 422
        assert ask(handler, "/?n=1", headers={"x-key": "k"}).json() == ["user k", 1]

    def test_a_parameter_of_the_path_is_the_dependencys(self) -> None:
        def item(id: int, request: Request) -> str:
            return f"{request.method} {id}"

        def handler(item: Annotated[str, Depends(item)]) -> Any:
            return item

        assert ask(handler, "/7", path="/{id}").text == "GET 7"
        assert ask(handler, "/7", path="/{id:int}").text == "GET 7"

    @pytest.mark.parametrize("blocking", [False, True])
    def test_async_dependencies_of_def_handlers(self, blocking: bool) -> None:
        async def one() -> int:
            return 1

        def handler(one: Annotated[int, Depends(one)]) -> Any:
            return one

        assert ask(handler, blocking=blocking).json() == 1

    def test_context_variables_reach_the_handler(self) -> None:
        variable: contextvars.ContextVar[str] = contextvars.ContextVar("variable")

        def set_it() -> None:
            variable.set("set")

        async def handler(_: Annotated[None, Depends(set_it)]) -> Any:
            return variable.get()

        assert ask(handler).text == "set"

    def test_dependencies_without_a_value(self) -> None:
        app = App(dependencies=[Depends(user)])

        @app.get("/", dependencies=[Depends(page)])
        def handler() -> str:
            return "in"

        with Client(app) as client:
            assert client.get("/").status_code == 401
            assert client.get("/", headers={"x-key": "k"}).text == "in"
        assert log == ["page"]


class TestGenerators:
    @pytest.mark.parametrize("blocking", [False, True])
    def test_def(self, blocking: bool) -> None:
        def handler(session: Session) -> Any:
            log.append("handler")
            return session

        assert ask(handler, blocking=blocking).text == "session"
        assert log == ["begin", "handler", "end"]

    @pytest.mark.parametrize("is_method", [False, True])
    @pytest.mark.parametrize("is_async", [False, True])
    def test_one_that_is_a_context_manager_too(self, is_async: bool, is_method: bool) -> None:
        """A TypeError of each request: what ``contextlib`` makes of a generator is none."""

        class Pool:
            @contextlib.contextmanager
            def plain(self) -> Iterator[str]:
                with contextlib.contextmanager(session)() as value:
                    yield value

            @contextlib.asynccontextmanager
            async def awaited(self) -> AsyncIterator[str]:
                with contextlib.contextmanager(session)() as value:
                    yield value

        pool = Pool()
        manager: Any = pool.awaited if is_async else pool.plain
        if not is_method:
            manager = contextlib.contextmanager(session)
        if is_async and not is_method:
            manager = contextlib.asynccontextmanager(connection)
        dependency = Depends(manager)

        async def handler(value: Any = dependency) -> Any:
            log.append("handler")
            return value

        assert ask(handler).text in ("session", "connection")
        assert log in (["begin", "handler", "end"], ["open", "handler", "closed"])

    def test_async_with_both_kinds_in_reverse_order(self) -> None:
        async def handler(session: Session, connection: Connection) -> Any:
            log.append("handler")
            return [session, connection]

        assert ask(handler).json() == ["session", "connection"]
        assert log == ["begin", "open", "handler", "closed", "end"]

    def test_an_exception_of_the_handler_is_raised_in_it(self) -> None:
        def handler(connection: Connection) -> Any:
            raise NotFound("gone")

        assert ask(handler).status_code == 404
        assert log == ["open", "rolled back", "closed"]

    def test_one_that_swallows_the_exception_is_an_error(self) -> None:
        def greedy() -> Iterator[int]:
            with contextlib.suppress(NotFound):
                yield 1

        def handler(_: Annotated[int, Depends(greedy)]) -> Any:
            raise NotFound("gone")

        assert ask(handler).status_code == 500

    def test_a_failing_end_is_a_500(self) -> None:
        def failing() -> Iterator[int]:
            yield 1
            raise RuntimeError("no commit")

        def handler(_: Annotated[int, Depends(failing)]) -> Any:
            return "done"

        assert ask(handler).status_code == 500

    def test_nothing_is_opened_after_a_mistake(self) -> None:
        def handler(n: int, session: Session) -> Any:
            return n

        def later(session: Session, n: int) -> Any:
            return n

        assert ask(handler, "/?n=x").status_code == 422
        assert ask(later, "/?n=x").status_code == 422
        assert log == ["begin", "end", "begin", "end"]

    @pytest.mark.parametrize("in_response", [False, True])
    def test_streams_end_first(self, in_response: bool) -> None:
        def pieces() -> Iterator[str]:
            log.append("first")
            yield "a"
            log.append("last")
            yield "b"

        def handler(session: Session) -> Any:
            return Response(pieces()) if in_response else pieces()

        assert ask(handler).text == "ab"
        assert log == ["begin", "first", "last", "end"]

    @pytest.mark.parametrize("kind", ["def", "async"])
    def test_async_streams_end_first(self, kind: str) -> None:
        async def pieces() -> AsyncIterator[str]:
            yield "a"
            log.append("last")
            yield "b"

        def plain(session: Session) -> Any:
            return pieces()

        async def coroutine(connection: Connection) -> Any:
            return pieces()

        assert ask(plain if kind == "def" else coroutine).text == "ab"
        assert log in (["begin", "last", "end"], ["open", "last", "closed"])

    def test_a_stream_that_fails_and_one_that_is_not_begun(self) -> None:
        def pieces() -> Iterator[str]:
            yield "a"
            raise RuntimeError("broken")

        def handler(session: Session) -> Any:
            return pieces()

        app = App()
        app.get("/")(handler)
        with Client(app, raise_errors=False) as client:
            assert client.request("HEAD", "/").status_code == 200
            assert log == ["begin", "end"]
            with pytest.raises(Exception, match="closed in the middle"):
                client.get("/")
        assert log == ["begin", "end"] * 2


class TestApplicationScope:
    def test_made_once_before_the_first_request_and_ended_at_the_stop(self) -> None:
        async def pool(app: App) -> AsyncIterator[str]:
            log.append("pool")
            yield f"pool of {type(app).__name__}"
            log.append("pool ends")

        def store(pool: Annotated[str, Depends(pool, scope="app")]) -> str:
            log.append("store")
            return f"store on {pool}"

        app = App()

        @app.get("/")
        def handler(store: Annotated[str, Depends(store, scope="app")]) -> str:
            return store

        with Client(app) as client:
            assert log == ["pool", "store"]
            assert client.get("/").text == client.get("/").text == "store on pool of App"
        assert log == ["pool", "store", "pool ends"]

    def test_without_a_start_the_error_says_what_to_do(self) -> None:
        app = App()

        def pool() -> int:
            return 1

        @app.get("/")
        def handler(pool: Annotated[int, Depends(pool, scope="app")]) -> int:
            return pool

        with pytest.raises(RuntimeError, match=r"use `with Client\(app\)` in a test"):
            Client(app).get("/")

    def test_it_cannot_need_a_request(self) -> None:
        def pool(size: int) -> int:
            return size

        def handler(pool: Annotated[int, Depends(pool, scope="app")]) -> None: ...

        message = r"pool \(.*test_dependencies.py:\d+\) .* takes size, which only"
        with pytest.raises(ConfigError, match=message):
            ask(handler)


class TestOverrides:
    def test_another_function_in_a_test(self) -> None:
        app = App()
        inner = App()

        @app.get("/")
        @inner.get("/")
        def handler(user: User) -> str:
            return user

        app.mount("/in", inner)
        app.dependency_overrides[user] = lambda: "tester"
        with Client(app) as client:
            assert client.get("/").text == client.get("/in").text == "tester"
        app.dependency_overrides.clear()
        with Client(app) as client:
            assert client.get("/").status_code == 401

    def test_what_is_no_function(self) -> None:
        app = App()

        @app.get("/")
        def handler(user: User) -> str:
            return user

        loose: Any = app.dependency_overrides
        loose[user] = None
        with pytest.raises(
            ConfigError, match=r"dependency_overrides\[user .*test_dependencies.py:\d+\)\] is None"
        ):
            Client(app).__enter__()


class Item(msgspec.Struct):
    name: str


class TestRefusedAtStart:
    def test_a_cycle(self) -> None:
        def first(value: Any) -> None: ...
        def second(value: Annotated[Any, Depends(first)]) -> None: ...

        first.__annotations__["value"] = Annotated[Any, Depends(second)]

        def handler(value: Annotated[Any, Depends(first)]) -> None: ...

        message = r"need each other: .*first \(.*:\d+\) -> .*second .* -> .*first"
        with pytest.raises(ConfigError, match=message):
            ask(handler)

    def test_two_bodies(self) -> None:
        def body(item: Item) -> Item:
            return item

        def handler(body: Annotated[Item, Depends(body)], other: bytes) -> None: ...

        with pytest.raises(ConfigError, match="as item and as other"):
            ask(handler)

    def test_no_source(self) -> None:
        class Custom: ...

        def odd(value: Any) -> None: ...

        odd.__annotations__["value"] = Custom

        def handler(value: Annotated[Any, Depends(odd)]) -> None: ...
        def nothing(value: Any) -> None: ...

        nothing.__annotations__["value"] = Annotated[Item | int, Depends()]
        with pytest.raises(
            ConfigError, match=r"parameter value of .*odd \(.*Custom cannot be read"
        ):
            ask(handler)
        with pytest.raises(ConfigError, match="without a function"):
            ask(nothing)


@pytest.mark.parametrize(("cached", "calls"), [(True, 1), (False, 2)])
def test_a_dependency_of_the_route_and_of_its_handler_is_called_once(
    cached: bool, calls: int
) -> None:
    made: list[object] = []

    def dependency() -> int:
        made.append(None)
        return len(made)

    app = App()
    depends = Depends(dependency, cached=cached)

    @app.get("/", dependencies=[depends])
    def handler(value: Annotated[int, depends]) -> int:
        return value

    with Client(app) as client:
        client.get("/")
    assert len(made) == calls


@dataclasses.dataclass
class Part:
    number: int = 1

    def __post_init__(self) -> None:
        if self.number < 1:
            raise ValueError("number is below 1")


class StructPart(msgspec.Struct):
    number: int = 1

    def __post_init__(self) -> None:
        if self.number < 1:
            raise TypeError("number is below 1")


class Window:
    def __init__(self, number: int = 1) -> None:
        if number < 1:
            raise ValueError("number is below 1")


@pytest.mark.parametrize("cls", [Part, StructPart])
@pytest.mark.parametrize("style", ["annotated", "default", "short"])
def test_what_a_record_refuses_is_the_clients_mistake(cls: Any, style: str) -> None:
    """A record that is a dependency is checked as one that is a model of the query."""
    app = App()

    def handler(page: Any) -> str:
        return str(page.number)

    depends: Any = Depends() if style == "short" else Depends(cls)
    if style == "default":
        handler.__defaults__ = (depends,)
    handler.__annotations__["page"] = cls if style == "default" else Annotated[cls, depends]
    app.get("/")(handler)
    with Client(app) as client:
        assert client.get("/?number=2").text == "2"
        refused = client.get("/?number=0")
        assert refused.status_code == 422
        assert refused.json()["errors"] == [
            {"in": "query", "pointer": "#", "detail": "number is below 1"}
        ]


def test_a_class_of_the_application_fails_as_a_function_does() -> None:
    app = App()

    @app.get("/")
    def handler(window: Annotated[Window, Depends()]) -> str:
        return "ok"

    with Client(app) as client, pytest.raises(ValueError, match="below 1"):
        client.get("/?number=0")


class Unhashable:
    __hash__ = None  # type: ignore[assignment]

    def __eq__(self, other: object) -> bool:
        return self is other

    def __call__(self) -> int:
        return 1


@pytest.mark.parametrize("call", [Unhashable(), [], 3, "name", {}], ids=range(5))
def test_what_no_dependency_can_be_is_refused_where_it_is_written(call: Any) -> None:
    with pytest.raises(ConfigError, match=rf"{__file__}:\d+\)"):
        Depends(call)


def test_a_dependency_needs_a_function_or_a_class() -> None:
    app = App()

    @app.get("/")
    def handler(value: Any = Depends()) -> str:
        return "ok"

    with pytest.raises(ConfigError, match=r"test_dependencies.py:\d+\) has Depends\(\) without a"):
        Client(app)


@dataclass(frozen=True)
class Needs:
    role: str = field(compare=False)

    def __call__(self) -> str:
        if self.role == "admin":
            raise Unauthorized()
        return self.role


class Level(NamedTuple):
    least: Any

    def __call__(self) -> str:
        return repr(self.least)


def test_objects_that_are_equal_and_not_the_same_are_two_dependencies() -> None:
    """The second one was taken for the first, and the guard was not called."""
    app = App()

    @app.get("/guarded", dependencies=[Depends(Needs("user")), Depends(Needs("admin"))])
    def guarded() -> str:
        raise AssertionError

    @app.get("/values")
    def values(
        one: Annotated[str, Depends(Level(1))], other: Annotated[str, Depends(Level(True))]
    ) -> list[str]:
        return [one, other]

    with Client(app) as client:
        assert client.get("/guarded").status_code == 401
        assert client.get("/values").json() == ["1", "True"]


def test_objects_that_are_the_same_are_called_once() -> None:
    calls: list[int] = []

    @dataclass(frozen=True)
    class Counted:
        number: int

        def __call__(self) -> int:
            calls.append(self.number)
            return self.number

    app = App()

    @app.get("/", dependencies=[Depends(Counted(1))])
    def handler(one: int = Depends(Counted(1)), other: int = Depends(Counted(2))) -> int:
        return one + other

    with Client(app) as client:
        assert client.get("/").json() == 3
    assert calls == [1, 2]


def test_an_object_without_a_hash_may_replace_a_dependency() -> None:
    """The start ended with a TypeError that named nothing."""
    app = App()

    def original() -> int:
        raise AssertionError

    @app.get("/")
    def handler(one: int = Depends(original), other: int = Depends(original)) -> int:
        return one + other

    app.dependency_overrides[original] = Unhashable()
    with Client(app) as client:
        assert client.get("/").json() == 2


@functools.cache
async def cached_coroutine() -> int:
    return 1


@functools.lru_cache
def cached_generator() -> Iterator[int]:
    yield 1


@functools.cache
def cached_value(number: int = 1) -> int:
    return number


@pytest.mark.parametrize(
    ("call", "what"), [(cached_coroutine, "coroutine"), (cached_generator, "generator")]
)
@pytest.mark.parametrize("as_handler", [False, True])
def test_a_cache_of_what_is_used_once_ends_the_start(
    call: Any, what: str, as_handler: bool
) -> None:
    """The second request was a 500."""
    app = App()

    def handler(value: Any = Depends(call)) -> int:
        raise AssertionError

    app.get("/")(call if as_handler else handler)
    with pytest.raises(ConfigError, match=rf"cached by functools, which keeps its {what}"):
        Client(app)


def test_a_cache_of_values_is_kept() -> None:
    app = App()

    @app.get("/")
    def handler(value: int = Depends(cached_value)) -> int:
        return value

    with Client(app) as client:
        assert [client.get(path).json() for path in ("/", "/", "/?number=2")] == [1, 1, 2]
