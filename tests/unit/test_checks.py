"""Start-up checks: what is refused when it is registered, with file, line and what to write instead."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any

import citius
import msgspec
import pytest
from citius import App, ConfigError, Request, Response
from citius.testing import Client
from citius.web.binding.bind import bind

HERE = r"\(.*test_checks\.py:\d+\)"


def refused(declare: Callable[[App], Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        declare(App())


def handler() -> str:
    return "x"


class TestDecorators:
    @pytest.mark.parametrize("method", ["get", "post", "put", "delete", "patch", "head"])
    def test_a_route_without_parentheses(self, method: str) -> None:
        refused(
            lambda app: getattr(app, method)(handler),
            rf'write @app\.{method}\("/path"\) above handler {HERE}',
        )

    def test_others_without_parentheses(self) -> None:
        refused(lambda app: app.websocket(handler), rf'@app.websocket\("/path"\) above .*{HERE}')  # type: ignore[arg-type]
        refused(
            lambda app: app.exception_handler(handler),
            rf"@app\.exception_handler\(KeyError\).* above handler {HERE}",
        )  # type: ignore[arg-type]
        refused(lambda app: app.exception_handler("404"), "class or a status, got '404'")  # type: ignore[arg-type]
        refused(lambda app: app.get(7), "expected a path .*, got 7")  # type: ignore[arg-type]

    def test_mounting_what_is_no_app(self) -> None:
        class Other:
            pass

        refused(
            lambda app: app.mount("/x", Other()),
            "or an ASGI application .*got a .*Other of ",
        )  # type: ignore[arg-type]
        refused(lambda app: app.mount("/x", Other), "got the class .*Other of ")  # type: ignore[arg-type]


class TestSignatures:
    @pytest.mark.parametrize(
        ("decorator", "function", "call"),
        [
            ("middleware", lambda request: request, r"called as <lambda>\(request, next\)"),
            ("on_startup", lambda app: None, r"start-up hook is called as <lambda>\(\)"),
            ("on_shutdown", lambda app: None, r"shutdown hook is called as <lambda>\(\)"),
            ("readiness", lambda app: None, r"readiness check is called as <lambda>\(\)"),
        ],
    )
    def test_arguments_that_do_not_fit(self, decorator: str, function: Any, call: str) -> None:
        refused(lambda app: getattr(app, decorator)(function), rf"{call}, and .*{HERE} takes \(")

    def test_an_error_handler_of_one_argument(self) -> None:
        refused(
            lambda app: app.exception_handler(404)(lambda request: "x"),
            r"<lambda>\(request, error\)",
        )  # type: ignore[misc]

    def test_a_class_for_a_middleware(self) -> None:
        class CORS:
            def __init__(self, app: Any, origins: Any = None) -> None: ...

        refused(lambda app: app.middleware(CORS), "a middleware is a function, got the class")  # type: ignore[type-var]

    def test_a_generator_for_a_hook(self) -> None:
        def hook() -> Iterator[None]:
            yield

        refused(lambda app: app.on_startup(hook), f"has no `yield`, and .*hook {HERE} has one")

    def test_what_can_be_called_so_is_taken(self) -> None:
        class Timing:
            def __call__(self, request: Request, next: Any) -> Any:
                return next(request)

            def method(self, *args: Any) -> Any:
                return args[1](args[0])

        app = App()
        app.middleware(Timing())
        app.middleware(Timing().method)
        app.get("/")(handler)
        with Client(app) as client:
            assert client.get("/").text == "x"


class TestLifespan:
    def test_generators_without_their_decorator(self) -> None:
        async def asynchronous(app: App) -> AsyncIterator[None]:
            yield

        def plain(app: App) -> Iterator[None]:
            yield

        async def coroutine(app: App) -> None: ...

        decorated: Any = contextlib.contextmanager(plain)
        for lifespan, message in (
            (
                asynchronous,
                "asynchronous generator; write @contextlib.asynccontextmanager above it",
            ),
            (plain, "is a generator; write"),
            (decorated, "is a generator; write"),
            (coroutine, "needs a `yield` between start and stop"),
        ):
            with pytest.raises(ConfigError, match=f"lifespan .*{HERE}.*{message}"):
                App(lifespan=lifespan)  # type: ignore[arg-type]

    def test_what_is_no_function_of_the_application(self) -> None:
        with pytest.raises(ConfigError, match="got 7"):
            App(lifespan=7)  # type: ignore[arg-type]

        @contextlib.asynccontextmanager
        async def lifespan() -> AsyncIterator[None]:
            yield

        with pytest.raises(ConfigError, match=r"called as lifespan\(app\)"):
            App(lifespan=lifespan)  # type: ignore[arg-type]

    def test_what_returns_no_context_manager(self) -> None:
        app = App(lifespan=lambda app: 7)  # type: ignore[arg-type,return-value]
        with pytest.raises(
            ConfigError, match=f"{HERE} returned 7, which is no asynchronous context"
        ):
            Client(app).__enter__()


class TestReturns:
    def test_a_status_beside_the_body(self) -> None:
        def created() -> Any:
            return {"id": 1}, 201

        def constant() -> Any:
            return "made", 201

        async def coroutine() -> Any:
            if handler():
                return "x"
            return {"id": 1}, 404

        for function in (created, constant, coroutine):
            line = function.__code__.co_firstlineno + (3 if function is coroutine else 1)
            message = (
                rf"{function.__name__} \(.*test_checks\.py:{line}\) returns a tuple with the status"
            )
            refused(lambda app, function=function: app.get("/")(function), message)
            refused(
                lambda app, function=function: app.exception_handler(404)(lambda r, e: ({}, 404)),
                "status 404",
            )

    def test_tuples_that_are_data(self) -> None:
        app = App()
        app.get("/point")(lambda: (1, 200))
        app.get("/large")(lambda: ("x", 1000))
        app.get("/list")(lambda: ["x", 200])
        app.get("/named")(lambda request: (request.path, "x"))
        with Client(app) as client:
            for _ in range(2):
                assert client.get("/point").json() == [1, 200]
                assert client.get("/large").json() == ["x", 1000]
                assert client.get("/list").json() == ["x", 200]
                assert client.get("/named").json() == ["/named", "x"]

    @pytest.mark.parametrize("has_middleware", [False, True])
    @pytest.mark.parametrize("value", [({}, 404), ("x", 201, {"a": "b"})])
    def test_a_status_that_is_computed(
        self, has_middleware: bool, value: Any, capfd: pytest.CaptureFixture[str]
    ) -> None:
        app = App()
        if has_middleware:
            app.middleware(lambda request, next: next(request))

        @app.get("/def")
        def plain() -> Any:
            return value

        @app.get("/async")
        async def coroutine(request: Request) -> Any:
            return value

        @app.get("/blocking/{n:int}", blocking=True)
        def blocking(n: int, q: int = 1) -> Any:
            return value

        with Client(app) as client:
            for path, name in (
                ("/def", "plain"),
                ("/async", "coroutine"),
                ("/blocking/1", "blocking"),
            ):
                for _ in range(2):
                    message = rf"{name} {HERE} returned a tuple with the status {value[1]}; write"
                    with pytest.raises(TypeError, match=message):
                        client.get(path)

    def test_a_middleware_without_return(self) -> None:
        app = App()

        def forgets(request: Request, next: Any) -> Any:
            next(request)

        async def waits(request: Request, next: Any) -> Any:
            response = await next(request)
            response.headers["x"] = "y"

        for function in (forgets, waits):
            with pytest.raises(ConfigError, match=f"{function.__name__} {HERE} has no `return`"):
                app.middleware(function)
        refused(
            lambda app: app.exception_handler(404)(lambda r, e: None),
            "an error handler returns the response",
        )

    @pytest.mark.parametrize("is_async", [False, True])
    def test_a_middleware_that_sometimes_returns(self, is_async: bool) -> None:
        app = App()

        @app.middleware
        def only_some(request: Request, next: Any) -> Any:
            if request.path == "/some":
                return next(request)

        async def coroutine() -> str:
            return "x"

        app.get("/some")(coroutine if is_async else handler)
        with Client(app) as client:
            assert client.get("/some").text == "x"
            with pytest.raises(TypeError, match=f"only_some {HERE} returned nothing"):
                client.get("/other")

    def test_a_middleware_that_only_raises(self) -> None:
        app = App()

        @app.middleware
        def closed(request: Request, next: Any) -> Any:
            raise citius.ServiceUnavailable

        with Client(app) as client:
            assert client.get("/").status_code == 503


class TestParameters:
    def test_a_path_parameter_that_the_signature_lacks(self) -> None:
        def item(item_id: int) -> None: ...

        app = App()
        app.get("/items/{id}")(item)
        with pytest.raises(
            ConfigError, match=rf"item {HERE} takes \(item_id\), which lacks .* id of"
        ):
            Client(app).__enter__()

    def test_a_path_parameter_that_is_not_needed(self) -> None:
        app, inner = App(), App()
        app.get("/a/{_rest:path}")(handler)
        app.get("/b/{id}")(lambda request: str(request.path_params["id"]))
        inner.get("/")(handler)
        app.mount("/c/{shop}", inner)
        with Client(app) as client:
            assert [client.get(p).text for p in ("/a/b/c", "/b/1", "/c/7")] == ["x", "1", "x"]

    @pytest.mark.parametrize(
        ("annotation", "default"),
        [
            (int, "1"), (int, None), (str, 1), (bool, "no"), (list[int], ["x"]), (list[str], "x"),
            (int | None, "x"), (dict[str, int], {"a": "b"}),
        ],
    )  # fmt: skip
    def test_a_default_of_another_type(self, annotation: Any, default: Any) -> None:
        def search(page: Any = default) -> None: ...

        search.__annotations__["page"] = annotation
        with pytest.raises(
            ConfigError, match=rf"page of .*search {HERE} is annotated as .* default is"
        ):
            bind(search, "/")

        app = App()
        app.rpc(search)
        with pytest.raises(ConfigError, match=rf"page of .*search {HERE} is annotated as"):
            Client(app).__enter__()

    @pytest.mark.parametrize(
        ("annotation", "default"),
        [
            (int, 1), (float, 1), (int | None, None), (list[str], []), (tuple[int, ...], (1, 2)),
            (set[int], {1}), (Any, object()), (str, "x"), (citius.Request, None), (bytes, b""),
        ],
    )  # fmt: skip
    def test_a_default_of_the_type(self, annotation: Any, default: Any) -> None:
        def search(page: Any = default) -> None: ...

        search.__annotations__["page"] = annotation
        bind(search, "/")

    def test_defaults_of_types_with_instances(self) -> None:
        import enum
        from datetime import date
        from typing import Annotated, Literal
        from uuid import UUID

        class Color(enum.Enum):
            RED = "red"

        class Point(msgspec.Struct):
            x: int = 0

        def search(
            a: Color = Color.RED,
            b: date = date(2026, 1, 1),
            c: UUID = UUID(int=1),  # noqa: B008
            d: Literal["x", "y"] = "x",
            e: list[Color] = [Color.RED],  # noqa: B006
            f: Annotated[int, msgspec.Meta(gt=0)] = 0,
            g: Point = Point(),  # noqa: B008
            h: Color | None = Color.RED,
        ) -> None: ...

        search.__annotations__ = {
            "a": Color, "b": date, "c": UUID, "d": Literal["x", "y"], "e": list[Color],
            "f": Annotated[int, msgspec.Meta(gt=0)], "g": Point, "h": Color | None,
        }  # fmt: skip
        bind(search, "/")

    def test_a_pydantic_model(self) -> None:
        base: Any = type("BaseModel", (), {"__module__": "pydantic.main"})

        class Item(base):
            name: str

        order = msgspec.defstruct("Order", [("item", Item)])
        for annotation in (Item, list[Item], Item | None, order, dict[str, Item]):

            def create(item: Any) -> None: ...

            create.__annotations__["item"] = annotation
            message = (
                rf"item of .*create {HERE} .*Item cannot be read .*msgspec\.Struct.*model_validate"
            )
            with pytest.raises(ConfigError, match=message):
                bind(create, "/")


class TestMutableDefaults:
    def test_each_request_has_its_own(self) -> None:
        class Options(msgspec.Struct):
            seen: list[int] = []

        app = App()

        def add(tag: list[str] = [], more: Any = {"n": [0]}) -> Any:  # noqa: B006
            tag.append("x")
            more["n"].append(1)
            return [tag, more]

        def post(options: Options = Options()) -> Any:  # noqa: B008
            options.seen.append(1)
            return options.seen

        post.__annotations__["options"] = Options
        app.get("/")(add)
        app.post("/")(post)
        with Client(app) as client:
            for _ in range(3):
                assert client.get("/").json() == [["x"], {"n": [0, 1]}]
                assert client.post("/").json() == [1]

    def test_a_default_that_cannot_change_is_passed_on_as_it_is(self) -> None:
        mark = object()
        app = App()
        app.get("/")(lambda q=mark: Response(str(q is mark)))
        with Client(app) as client:
            assert client.get("/").text == "True"
