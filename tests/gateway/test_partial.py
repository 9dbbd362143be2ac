"""Callables that stand for others: functools.partial, objects, lambdas, decorators.

Findings 1, 2, 6, 7, 8 and 9 of the review of section A: guards that were never called, bound arguments that a
request could replace, markers that nothing read.
"""

# pyright: basic

from functools import partial, wraps
from typing import Annotated, Any

import pytest
from citius import App, ConfigError, Depends, Forbidden, Request
from citius.testing import Client
from citius.web.middleware.base import Middleware
from citius.web.security import Bearer, Principal


async def need(role: str) -> None:
    raise Forbidden(role)


async def need_and_end(role: str):
    raise Forbidden(role)
    yield


def need_and_end_plain(role: str):
    raise Forbidden(role)
    yield


class Needs:
    async def __call__(self, role: str) -> None:
        raise Forbidden(role)


def decorated(function):
    def call():
        return function("x")

    return call


GUARDS = {
    "async": partial(need, role="admin"),
    "twice": partial(partial(need), role="admin"),
    "generator": partial(need_and_end_plain, role="admin"),
    "async generator": partial(need_and_end, role="admin"),
    "object": partial(Needs(), role="admin"),
    "object's method": Needs().__call__,
}
UNFINISHED = {
    "lambda": lambda: need("admin"),
    "lambda of a generator": lambda: need_and_end_plain("admin"),
    "lambda of an async generator": lambda: need_and_end("admin"),
    "decorator without wraps": decorated(need),
}


@pytest.mark.parametrize("name", [name for name in GUARDS if name != "object's method"])
@pytest.mark.parametrize("place", ["app", "route", "parameter"])
def test_guards_are_called(name: str, place: str) -> None:
    depends = [Depends(GUARDS[name])]
    app = App(dependencies=depends if place == "app" else [])

    if place == "parameter":

        @app.get("/")
        def secret(user: Annotated[Any, depends[0]]) -> str:
            return "secret"
    else:

        @app.get("/", dependencies=depends if place == "route" else [])
        def open_secret() -> str:
            return "secret"

    with Client(app) as client:
        reply = client.get("/")
        assert (reply.status_code, b"secret" in reply.content) == (403, False)


@pytest.mark.parametrize("name", UNFINISHED)
@pytest.mark.parametrize("blocking", [False, True])
def test_what_has_not_run_is_no_value(name: str, blocking: bool) -> None:
    app = App()

    @app.get("/", dependencies=[Depends(UNFINISHED[name])], blocking=blocking)
    def secret() -> str:
        return "secret"

    with Client(app) as client, pytest.raises(RuntimeError, match="has not run"):
        client.get("/")


def test_a_generator_expression_is_a_value() -> None:
    app = App()

    def squares() -> Any:
        return (n * n for n in range(4))

    @app.get("/")
    def total(numbers: Annotated[Any, Depends(squares)]) -> int:
        return sum(numbers)

    with Client(app) as client:
        assert client.get("/").content == b"14"


def test_bound_arguments_are_no_parameters() -> None:
    app = App()

    def check(role: str, given: str = "user") -> str:
        if given != role:
            raise Forbidden(role)
        return given

    @app.get("/guarded")
    def guarded(got: Annotated[str, Depends(partial(check, role="admin"))]) -> str:
        return got

    def show(admin: bool) -> str:
        return str(admin)

    app.get("/shown")(partial(show, admin=False))
    with Client(app) as client:
        assert client.get("/guarded?role=user").status_code == 403
        assert client.get("/guarded?given=admin").status_code == 200
        assert client.get("/shown?admin=true").content == b"False"


def test_a_partial_of_an_async_handler_is_awaited() -> None:
    app = App()

    async def save(kind: str, n: int) -> dict[str, Any]:
        return {"kind": kind, "n": n}

    app.get("/{n:int}")(partial(save, "tea"))
    with Client(app) as client:
        assert client.get("/3").json() == {"kind": "tea", "n": 3}


def test_a_scheme_may_have_a_partial() -> None:
    app = App()

    async def of_token(token: str, *, known: str) -> Principal | None:
        return Principal(token) if token == known else None

    bearer = Bearer(partial(of_token, known="right"))

    @app.get("/")
    def who(principal: Annotated[Principal, Depends(bearer)]) -> str:
        return principal.id

    with Client(app) as client:
        assert client.get("/", headers={"authorization": "Bearer wrong"}).status_code == 401
        assert client.get("/", headers={"authorization": "Bearer right"}).content == b"right"


def test_markers_of_middleware_are_refused() -> None:
    class Guarded(Middleware):
        def before(self, request: Request, user: Any = Depends(need)) -> None: ...

    app = App()
    with pytest.raises(ConfigError, match=r"user of .*before.* has Depends"):
        app.middleware(Guarded())

        @app.get("/")
        def secret() -> str:
            return "secret"

        with Client(app):
            pass


def test_markers_of_a_decorator_are_refused() -> None:
    app = App()

    def guarded(function):
        @wraps(function)
        def call(*args: Any, _user: Any = Depends(need), **kwargs: Any) -> Any:
            return function(*args, **kwargs)

        return call

    with pytest.raises(ConfigError, match="_user of .* has Depends"):

        @app.get("/")
        @guarded
        def secret() -> str:
            return "secret"

        with Client(app):
            pass


def test_markers_in_containers_of_an_annotation_are_refused() -> None:
    app = App()
    with pytest.raises(ConfigError, match="where nothing reads it"):

        @app.get("/")
        def secret(q: Annotated[str, [Depends(need)]]) -> str:
            return "secret"

        with Client(app):
            pass
