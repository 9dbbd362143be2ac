"""Options that do not exist are refused, with the one that is meant: newcomer A2 and C."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from citius import App, ConfigError, Depends, Query, Router, WebSocket
from citius.testing import Client
from citius.web.middleware import CORS, RateLimit, SecurityHeaders, Sessions, Timeout


def deny() -> None: ...


loose: Any = App  # type checkers know the options
loose_router: Any = Router
app: Any = App()

UNKNOWN: list[tuple[Callable[[], object], str]] = [
    (lambda: app.get("/", dependancies=[Depends(deny)]), "did you mean dependencies=?"),
    (lambda: app.get("/", response_model=int), "it is called response= here"),
    (lambda: app.post("/", status=201), "it is called status_code= here"),
    (lambda: app.route("/", stauts_code=201), "did you mean status_code=?"),
    (lambda: app.get("/", methods=["GET"]), r"write app.route\(path, methods="),
    (lambda: app.put("/", compilde=True), "did you mean compiled=?"),
    (lambda: app.websocket("/", dependancies=[]), "did you mean dependencies=?"),
    (lambda: app.rpc("x", dependancies=[]), "did you mean dependencies=?"),
    (lambda: app.static("/x", ".", html=True), "it is called index= here"),
    (lambda: app.mount("/x", App(), dependencies=[]), r"has no option 'dependencies'"),
    (lambda: app.mount_wsgi("/x", print, name="x"), r"has no option 'name'"),
    (lambda: app.include(Router(), tags=["x"]), r"include .*has no option 'tags'"),
    (lambda: app.room("x", hisotry=3), "did you mean history=?"),
    (lambda: app.executor("x", thread=3), "did you mean threads=?"),
    (lambda: loose(dependancies=[]), "App .*did you mean dependencies=?"),
    (lambda: loose(title="Shop"), r"OpenAPI\(title="),
    (lambda: loose(prefix="/x"), "a citius.Router has a prefix"),
    (lambda: loose_router(dependancy=[]), "Router .*did you mean dependencies=?"),
    (lambda: CORS(["*"], allow_methods=["*"]), "CORS .*it is called methods= here"),  # type: ignore[call-arg]  # pyright: ignore
    (lambda: RateLimit(1, 1, bursts=1), "did you mean burst=?"),  # type: ignore[call-arg]  # pyright: ignore
    (lambda: SecurityHeaders(cps=None), "did you mean csp=?"),  # type: ignore[call-arg]  # pyright: ignore
    (lambda: Timeout(1, route={}), "did you mean routes=?"),  # type: ignore[call-arg]  # pyright: ignore
    (lambda: Sessions(nothing_like_it=1), "Sessions .*has no option"),  # type: ignore[call-arg]  # pyright: ignore
    (lambda: Depends(deny, use_cache=False), "Depends .*it is called cached= here"),  # type: ignore[call-arg]  # pyright: ignore
    (lambda: Query(1, regex="x"), "Query .*it is called pattern= here"),  # type: ignore[call-arg]  # pyright: ignore
]


@pytest.mark.parametrize(("make", "meant"), UNKNOWN, ids=[meant for _, meant in UNKNOWN])
def test_unknown_options(make: Callable[[], object], meant: str) -> None:
    with pytest.raises(ConfigError, match=rf"^(?=.*test_options.py:\d+).*{meant}"):
        make()


DEPENDENCIES: list[Callable[[Any], object]] = [
    lambda given: App(dependencies=given),
    lambda given: Router(dependencies=given),
    lambda given: App().get("/", dependencies=given)(deny),
    lambda given: App().websocket("/", dependencies=given)(deny),
    lambda given: App().rpc("x", dependencies=given)(deny),
]


@pytest.mark.parametrize("declare", DEPENDENCIES, ids=range(len(DEPENDENCIES)))
@pytest.mark.parametrize("given", [Depends(deny), [deny], deny, "x", [None]], ids=range(5))
def test_dependencies_that_are_none(declare: Callable[[Any], object], given: object) -> None:
    with pytest.raises(ConfigError, match=r"test_options.py:\d+.*Depends\("):
        declare(given)


def test_a_class_stands_for_itself() -> None:
    with pytest.raises(ConfigError, match=r"without a function"):
        app = App()
        app.get("/", dependencies=[Depends])(lambda: "x")  # type: ignore[list-item]  # pyright: ignore
        Client(app).__enter__()


@pytest.mark.parametrize(
    ("pattern", "said"),
    [
        ("", r'app.get .*test_options.py:\d+.*the path of a router or mount itself is "/"'),
        ("hello", r"app.get .*test_options.py:\d+.*begins with a slash"),
        ("/<n>", r"test_options.py:\d+.*<n> .*is no parameter; write \{n\}"),
        ("/u/<int:n>", r"<int:n> .*write \{n\}"),
        ("/u/:n", r"test_options.py:\d+.*:n .*write \{n\}"),
    ],
)
def test_paths_of_other_frameworks(pattern: str, said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        App().get(pattern)


def test_paths_with_colons_that_are_plain() -> None:
    app = App()
    for pattern in ("/v1/items:batch", "/urn:isbn:1", "/{n:int}"):
        app.get(pattern)


def test_what_is_right_is_taken(tmp_path: Path) -> None:
    app = App(dependencies=(Depends(deny),))
    app.static("/x", tmp_path, index=None, middleware=True)

    @app.websocket("/w", serial=False)
    async def socket(ws: WebSocket) -> None: ...

    with Client(app) as client:
        assert client.get("/x/a").status_code == 404
