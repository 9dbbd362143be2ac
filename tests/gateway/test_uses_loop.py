"""Everything that can be declared, and whether a worker has an event loop from the start because of it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import pytest
from citius import App, Depends, Router, SerialWebSocket, Upload, WebSocket, WebTransportSession
from citius.cluster import Cluster
from citius.web.middleware.base import Middleware


async def asgi(scope: Any, receive: Any, send: Any) -> None:
    pass


def wsgi(environ: Any, start_response: Any) -> list[bytes]:
    return []


async def later() -> int:
    return 1


def now() -> int:
    return 1


async def pieces() -> Any:
    yield 1


def through(request: Any, next: Any) -> Any:
    return next(request)


async def through_later(request: Any, next: Any) -> Any:
    return await next(request)


class Slow(Middleware):
    async def after(self, request: Any, response: Any) -> Any:
        return response


def route(app: App, **options: Any) -> Any:
    return app.get("/", **options)


def depends_on(call: Callable[..., Any], **options: Any) -> Callable[[App], object]:
    def declare(app: App) -> None:
        def handler(value: Any) -> Any:
            return value

        handler.__annotations__["value"] = Annotated[int, Depends(call, **options)]
        app.get("/")(handler)

    return declare


def mounts(declare: Callable[[App], object]) -> Callable[[App], object]:
    def mount(app: App) -> None:
        inner = App()
        declare(inner)
        app.mount("/inner", inner)

    return mount


def includes(declare: Callable[[Any], object]) -> Callable[[App], object]:
    def include(app: App) -> None:
        router = Router(prefix="/router")
        declare(router)
        app.include(router)

    return include


def serial_socket(app: App) -> None:
    @app.websocket("/", serial=True)
    def handler(socket: SerialWebSocket) -> None:
        pass


def socket(app: App) -> None:
    @app.websocket("/")
    async def handler(socket: WebSocket) -> None:
        pass


def session(app: App) -> None:
    @app.webtransport("/")
    async def handler(session: WebTransportSession) -> None:
        pass


def executes(app: App) -> None:
    app.executor("one", threads=1)
    app.get("/", executor="one")(now)


# By the method of the application that declares it; several for one method by `method: which`.
USES: dict[str, Callable[[App], object]] = {
    "get": lambda app: app.get("/")(later),
    "get: asynchronous generator": lambda app: app.get("/")(pieces),
    "get: serial": lambda app: app.get("/", serial=True)(now),
    "get: with an asynchronous dependency": depends_on(later),
    "get: with a dependency of the application": depends_on(now, scope="app"),
    "get: in a mount": mounts(lambda app: app.get("/")(later)),
    "get: in a router": includes(lambda router: router.get("/")(later)),
    "post": lambda app: app.post("/")(later),
    "put": lambda app: app.put("/")(later),
    "patch": lambda app: app.patch("/")(later),
    "delete": lambda app: app.delete("/")(later),
    "head": lambda app: app.head("/")(later),
    "options": lambda app: app.options("/")(later),
    "route": lambda app: app.route("/", methods=["GET"])(later),
    "middleware": lambda app: (app.middleware(through_later), app.get("/")(now)),
    "middleware: with an asynchronous half": lambda app: (app.middleware(Slow()), app.get("/")(now)),
    "connection_middleware": lambda app: (app.connection_middleware(through_later), socket(app)),
    "exception_handler": lambda app: app.exception_handler(404)(through_later),
    "add_middleware": lambda app: app.add_middleware(lambda inner: asgi),
    "on_startup": lambda app: app.on_startup(now),
    "on_shutdown": lambda app: app.on_shutdown(now),
    "on_shutdown: in a mount": mounts(lambda app: app.on_shutdown(now)),
    "readiness": lambda app: app.readiness(now),
    "websocket": socket,
    "websocket: serial": serial_socket,
    "webtransport": session,
    "webtransport_rpc": lambda app: app.webtransport_rpc("/"),
    "rpc": lambda app: app.rpc(now),
    "connect": lambda app: (app.rpc(now), app.connect("/rpc")),
    "mcp": lambda app: app.mcp("/mcp", name="x"),
    "room": lambda app: app.room("one"),
    "broadcast": lambda app: app.broadcast("one"),
    "executor": executes,
    "mount": lambda app: app.mount("/inner", asgi),
    "forward": lambda app: app.forward("/there", "http://127.0.0.1:1"),
}  # fmt: skip

USES_NONE: dict[str, Callable[[App], object]] = {
    "get": lambda app: app.get("/")(now),
    "get: blocking": lambda app: app.get("/", blocking=True)(now),
    "get: with a dependency": depends_on(now),
    "get: in a mount": mounts(lambda app: app.get("/")(now)),
    "get: in a router": includes(lambda router: router.get("/")(now)),
    "middleware": lambda app: (app.middleware(through), app.get("/")(now)),
    "exception_handler": lambda app: app.exception_handler(404)(lambda request, error: "none"),
    "static": lambda app: app.static("/static", Path(__file__).parent),
    "mount": mounts(lambda app: app.post("/")(now)),
    "include": includes(lambda router: router.put("/")(now)),
}

# Methods that declare nothing of their own, and what has a test elsewhere.
OTHERS = {
    "about", "add_routes", "app_dependencies", "asgi", "asgi_adapter", "close", "connects",
    "declared_routes", "declared_sockets", "endpoints", "error_handlers", "freeze", "has_asgi_middleware",
    "hooks", "live_parts", "mcp_servers", "mount_rpc", "mount_wsgi", "needs_loop", "openapi",
    "own_dependencies", "own_middleware", "own_statics", "procedures", "readiness_checks",
    "redirects_slashes", "run", "run_keeper", "serve", "session_calls", "set_lifespan_state",
    "set_run_keeper", "share_with_workers", "start", "static_mounts", "stop", "uploads", "url_for",
    "uses_loop", "walk", "walk_included",
}  # fmt: skip


def test_every_method_is_here() -> None:
    here = {name.partition(":")[0] for name in (*USES, *USES_NONE)}
    assert {name for name in dir(App) if not name.startswith("_")} == here | OTHERS


@pytest.mark.parametrize("what", USES)
def test_what_uses_a_loop(what: str) -> None:
    app = App()
    USES[what](app)
    app.endpoints  # this finds dependencies
    assert app.uses_loop != ""


@pytest.mark.parametrize("what", USES_NONE)
def test_what_uses_none(what: str) -> None:
    app = App()
    USES_NONE[what](app)
    assert app.uses_loop == ""


def test_what_an_application_is_made_with() -> None:
    async def lifespan(app: App) -> Any:
        yield

    assert App(cluster=Cluster("redis://127.0.0.1:1")).uses_loop != ""
    assert App(dependencies=[Depends(now)]).uses_loop == ""


def test_uploads(tmp_path: Path) -> None:
    app = App()

    @app.uploads("/uploads", directory=tmp_path)
    async def done(upload: Upload) -> None:
        pass

    assert app.uses_loop != ""
