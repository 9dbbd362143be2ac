"""What a group declares holds for every kind of member, or the start fails.

hostile 2: compiled routes, static mounts and mounted applications were served without the dependencies of
their App and Router.
"""

from __future__ import annotations

import ctypes
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from uuid import uuid4

import pytest
from citius import App, ConfigError, Depends, Request, Router, SerialWebSocket, Upload, WebSocket
from citius.errors import Forbidden
from citius.http import Client as HttpClient
from citius.testing import Client
from citius.testing.http import MockReply, MockTransport
from citius.web.middleware import Middleware, RateLimit, Timeout
from citius.web.routing.rpc import procedures, session_calls
from citius.web.security import APIKey, Authenticate, Principal

SECRET = "SECRET"


@ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p)
def native(request: Any, response: Any) -> int:
    return 0  # 200 without a body


def guard() -> None:
    raise Forbidden("not for you")


async def async_guard() -> None:
    raise Forbidden("not for you")


scheme = APIKey({"k" * 20: Principal("me")})


class Refuses(Middleware):
    """A middleware for requests and WebSockets."""

    def before(self, request: Request) -> None:
        """Refuse."""
        raise Forbidden("not for you")

    def connect(self, socket: WebSocket) -> None:
        """Refuse."""
        raise Forbidden("not for you")


# --- kinds of members: each adds one at /member to an application or a router ----------------------


def python_def(to: Router, files: Path) -> None:
    @to.get("/member")
    def member() -> str:
        return SECRET


def python_async(to: Router, files: Path) -> None:
    @to.get("/member")
    async def member() -> str:
        return SECRET


def blocking(to: Router, files: Path) -> None:
    @to.get("/member", blocking=True)
    def member() -> str:
        return SECRET


def streamed(to: Router, files: Path) -> None:
    @to.get("/member", stream=True)
    async def member(request: Request) -> str:
        return SECRET


def compiled_native(to: Router, files: Path) -> None:
    to.get("/member", compiled=native)


def compiled_in_threads(to: Router, files: Path) -> None:
    to.get("/member", compiled=native, pool=True)


def compiled_function(to: Router, files: Path) -> None:
    pytest.importorskip("numba")

    @to.get("/member", compiled=True)
    def member(n: int = 1) -> int:
        return n


def forwarded(to: Router, files: Path) -> None:
    mock = MockTransport()
    mock.add("GET", "http://upstream/member", MockReply(content=SECRET))
    to.forward("/member", HttpClient("http://upstream", transport=mock), path="/member")


def websocket(to: Router, files: Path) -> None:
    @to.websocket("/member")
    async def member(ws: WebSocket) -> None:
        await ws.send(SECRET)


def static(to: Router, files: Path) -> None:
    assert isinstance(to, App)
    to.static("/member", files)


def mounted_app(to: Router, files: Path) -> None:
    inner = App()

    @inner.get("/")
    def member() -> str:
        return SECRET

    assert isinstance(to, App)
    to.mount("/member", inner)


def mounted_static(to: Router, files: Path) -> None:
    inner = App()
    inner.static("/", files)
    assert isinstance(to, App)
    to.mount("/member", inner)


def mounted_compiled(to: Router, files: Path) -> None:
    inner, router = App(), Router()
    router.get("/", compiled=native)
    inner.include(router)
    assert isinstance(to, App)
    to.mount("/member", inner)


def mounted_websocket(to: Router, files: Path) -> None:
    inner = App()
    websocket_at = inner.websocket("/")

    @websocket_at
    async def member(ws: WebSocket) -> None:
        await ws.send(SECRET)

    assert isinstance(to, App)
    to.mount("/member", inner)


async def asgi_app(scope: Any, receive: Any, send: Any) -> None:
    if scope["type"] == "websocket":
        await receive()
        await send({"type": "websocket.accept"})
        await send({"type": "websocket.send", "text": SECRET})
    elif scope["type"] == "http":
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": SECRET.encode()})


def asgi(to: Router, files: Path) -> None:
    assert isinstance(to, App)
    to.mount("/member", asgi_app)


def asgi_websocket(to: Router, files: Path) -> None:
    asgi(to, files)


def wsgi(to: Router, files: Path) -> None:
    def app(environ: Any, start_response: Any) -> list[bytes]:
        start_response("200 OK", [])
        return [SECRET.encode()]

    assert isinstance(to, App)
    to.mount_wsgi("/member", app)


def static_fallback(to: Router, files: Path) -> None:
    assert isinstance(to, App)
    to.static("/member", files, fallback="a.txt")


def websocket_serial(to: Router, files: Path) -> None:
    @to.websocket("/member")
    def member(ws: SerialWebSocket) -> None:
        ws.send(SECRET)


def generator(to: Router, files: Path) -> None:
    @to.get("/member")
    async def member() -> AsyncIterator[str]:
        yield SECRET


def run(to: Router, files: Path) -> None:
    @to.run("/member")
    async def member() -> AsyncIterator[str]:
        yield SECRET


def run_read(to: Router, files: Path) -> None:
    run(to, files)


def run_cancelled(to: Router, files: Path) -> None:
    run(to, files)


def run_websocket(to: Router, files: Path) -> None:
    run(to, files)


def upload(to: Router, files: Path) -> None:
    @to.uploads("/member", directory=files / "uploads")
    async def member(upload: Upload) -> None:
        pass


def upload_by_tus(to: Router, files: Path) -> None:
    upload(to, files)


def upload_continued(to: Router, files: Path) -> None:
    upload(to, files)


def upload_seen(to: Router, files: Path) -> None:
    upload(to, files)


def upload_cancelled(to: Router, files: Path) -> None:
    upload(to, files)


def mcp(to: Router, files: Path) -> None:
    assert isinstance(to, App)
    server = to.mcp("/member")

    @server.tool
    def secret() -> str:
        return SECRET


def connect(to: Router, files: Path) -> None:
    assert isinstance(to, App)

    @to.rpc("member")
    def member() -> str:
        return SECRET

    to.connect()


def connect_stream(to: Router, files: Path) -> None:
    assert isinstance(to, App)

    @to.rpc("member")
    async def member() -> AsyncIterator[str]:
        yield SECRET

    to.connect()


def mounted_connect(to: Router, files: Path) -> None:
    """The procedure is of a mounted application, the routes are those of the one around it."""
    assert isinstance(to, App)
    inner = App()

    @inner.rpc("member")
    def member() -> str:
        return SECRET

    to.mount("/inner", inner)
    to.connect()


class Service:
    """As protoc-gen-connectrpc makes them."""

    path = "/member.Service"

    def _endpoints(self, service: object) -> dict[str, Any]:
        return {f"{self.path}/Get": SimpleNamespace(method=SimpleNamespace(name="Get"))}

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Answer."""
        await asgi_app(scope, receive, send)


def mounted_rpc(to: Router, files: Path) -> None:
    assert isinstance(to, App)
    to.mount_rpc(Service(), health=False)


def mounted_rpc_unknown_method(to: Router, files: Path) -> None:
    mounted_rpc(to, files)


OF_ROUTERS = [
    python_def, python_async, blocking, streamed, generator, forwarded, compiled_native,
    compiled_in_threads, compiled_function, websocket, websocket_serial, run, run_read, run_cancelled,
    run_websocket, upload, upload_by_tus, upload_continued, upload_seen, upload_cancelled,
]  # fmt: skip
OF_APPS = [
    *OF_ROUTERS, static, static_fallback, mounted_app, mounted_static, mounted_compiled, mounted_websocket,
    asgi, asgi_websocket, wsgi, mcp, connect, connect_stream, mounted_connect, mounted_rpc,
    mounted_rpc_unknown_method,
]  # fmt: skip

CALL = {"content-type": "application/json"}
PART = {"content-type": "application/partial-upload", "upload-offset": "0", "upload-complete": "?1"}
TUS = {"tus-resumable": "1.0.0", "upload-length": "5"}
ASKED: dict[str, tuple[str, str, bytes, dict[str, str]]] = {
    "static": ("GET", "/a.txt", b"", {}),
    "static_fallback": ("GET", "/page", b"", {"accept": "text/html"}),
    "mounted_static": ("GET", "/a.txt", b"", {}),
    "run": ("POST", "", b"", {}),
    "run_read": ("GET", "/none", b"", {}),
    "run_cancelled": ("DELETE", "/none", b"", {}),
    "upload": ("POST", "", b"bytes", {"upload-complete": "?1"}),
    "upload_by_tus": ("POST", "", b"", TUS),
    "upload_continued": ("PATCH", "/none", b"bytes", PART),
    "upload_seen": ("HEAD", "/none", b"", {}),
    "upload_cancelled": ("DELETE", "/none", b"", {}),
    "mcp": ("POST", "", b'{"jsonrpc":"2.0","id":1,"method":"tools/list"}', CALL),
    "connect": ("POST", "citius.Procedures/member", b"{}", CALL),
    "mounted_connect": ("POST", "citius.Procedures/member", b"{}", CALL),
    "connect_stream": (
        "POST", "citius.Procedures/member", b"\0\0\0\0\2{}", {"content-type": "application/connect+json"},
    ),
    "mounted_rpc": ("POST", ".Service/Get", b"{}", CALL),
    "mounted_rpc_unknown_method": ("POST", ".Service/Other", b"{}", CALL),
}  # fmt: skip
"""How members are asked that are no ``GET`` of ``/member``."""

SERVED = (101, 200, 201, 202, 204, 400, 404, 406)
"""The last three: what has no run, no upload, or no session of that name."""


def ask(client: Client, member: Callable[..., None], prefix: str = "") -> int:
    """The status that a client gets; 101 for a WebSocket."""
    name = member.__name__
    if "websocket" in name:
        path = "/member/none" if member is run_websocket else "/member"
        try:
            with client.websocket(prefix + path) as socket:
                assert socket.receive() == SECRET
        except Exception as error:
            found = [int(word) for word in str(error).replace(":", " ").split() if word.isdigit()]
            return found[0]
        return 101
    method, path, body, headers = ASKED.get(name, ("GET", "", b"", {}))
    path = f"/{path}" if path.startswith("citius.") else f"/member{path}"
    response = client.request(method, prefix + path, content=body, headers=headers)
    if method == "GET" and response.status_code == 200 and "compiled" not in name:
        assert SECRET in response.text
    return response.status_code


# --- kinds of protection: each gives an application and where members are added ---------------------


def app_dependency() -> tuple[App, Router]:
    app = App(dependencies=[Depends(guard)])
    return app, app


def app_async_dependency() -> tuple[App, Router]:
    app = App(dependencies=[Depends(async_guard)])
    return app, app


def app_scheme() -> tuple[App, Router]:
    app = App(dependencies=[Depends(scheme)])
    return app, app


def app_middleware() -> tuple[App, Router]:
    app = App()
    app.middleware(Refuses())
    return app, app


def app_authenticate() -> tuple[App, Router]:
    app = App()
    app.middleware(Authenticate(scheme))
    return app, app


def app_limit() -> tuple[App, Router]:
    app = App()
    key = uuid4().hex  # buckets of one process are shared
    app.middleware(RateLimit(1, 3600, key=lambda request: key))
    return app, app


def around_app() -> tuple[App, Router]:
    """An application around that of the members has the dependency."""
    app, inner = App(dependencies=[Depends(guard)]), App()
    app.mount("/around", inner)
    return app, inner


def router_dependency() -> tuple[App, Router]:
    app, router = App(), Router(dependencies=[Depends(guard)])
    app.include(router)
    return app, router


def outer_router_dependency() -> tuple[App, Router]:
    app, outer, router = App(), Router(dependencies=[Depends(scheme)]), Router()
    outer.include(router)
    app.include(outer)
    return app, router


def router_middleware() -> tuple[App, Router]:
    app, router = App(), Router()
    router.middleware(Refuses())
    app.include(router)
    return app, router


BY_APP = [
    app_dependency, app_async_dependency, app_scheme, app_middleware, app_authenticate, app_limit,
]  # fmt: skip
BY_ROUTER = [router_dependency, outer_router_dependency, router_middleware]

CASES = [
    *((how, member) for how in BY_APP for member in OF_APPS),
    *((how, member) for how in BY_ROUTER for member in OF_ROUTERS),
]


REFUSED = {
    (app_async_dependency, websocket_serial): "make both `def`, or both `async def`",
    (app_scheme, connect): "that no call can satisfy.*on a Router",
    (app_scheme, connect_stream): "takes the HTTP request",
    (app_scheme, mounted_connect): "that no call can satisfy.*on a Router",
}
"""Where the start fails, and what it says."""


@pytest.fixture
def files(tmp_path: Path) -> Path:
    (tmp_path / "a.txt").write_text(SECRET)
    return tmp_path


@pytest.mark.parametrize("interpret", [False, True], ids=["compiled", "interpreted"])
@pytest.mark.parametrize(
    ("how", "member"), CASES, ids=[f"{how.__name__}-{member.__name__}" for how, member in CASES]
)
def test_every_kind_of_member(
    how: Callable[[], tuple[App, Router]],
    member: Callable[[Router, Path], None],
    interpret: bool,
    files: Path,
) -> None:
    if interpret and "compiled" not in member.__name__:
        pytest.skip("nothing to interpret")
    app, to = how()
    member(to, files)
    refused = REFUSED.get((how, member))
    if refused is not None:
        with pytest.raises(ConfigError, match=refused):
            Client(app).__enter__()
        return
    with Client(app, interpret_compiled=interpret) as client:
        status = ask(client, member)
        if how is app_limit:
            assert status in SERVED
            status = ask(client, member)
        assert status in (401, 403, 429)


@pytest.mark.parametrize("member", OF_APPS, ids=lambda one: one.__name__)
def test_what_is_mounted_has_those_around_it(member: Callable[..., None], files: Path) -> None:
    app, inner = around_app()
    member(inner, files)

    with Client(app) as client:
        assert ask(client, member, "/around") == 403


@pytest.mark.parametrize("member", OF_APPS, ids=lambda one: one.__name__)
def test_members_are_served_without_protection(member: Callable[..., None], files: Path) -> None:
    app = App()
    member(app, files)
    with Client(app) as client:
        assert ask(client, member) in SERVED


@pytest.mark.parametrize("member", OF_APPS, ids=lambda one: one.__name__)
def test_timeouts_hold_or_the_start_fails(member: Callable[..., None], files: Path) -> None:
    app = App()
    app.middleware(Timeout(30))
    member(app, files)
    on_loop = (python_def, compiled_native, compiled_function, mounted_app, mounted_compiled)
    if member in on_loop:
        with pytest.raises(ConfigError, match=r"Timeout of 30 s: .*nothing can stop"):
            Client(app).__enter__()
        return
    with Client(app) as client:
        assert ask(client, member) in SERVED


@pytest.mark.parametrize("depth", [1, 2])
def test_middleware_of_mounted_applications_is_around_their_procedures(depth: int) -> None:
    """`connect` of an application around them left it out."""
    app = inner = App()
    for _ in range(depth):
        outer, inner = inner, App()
        outer.mount("/inner", inner)
    inner.middleware(Refuses())

    @inner.rpc("member")
    def member() -> str:
        return SECRET

    app.connect()
    with Client(app) as client:
        assert ask(client, connect) == 403


def test_middleware_around_mounted_applications_is_called_once() -> None:
    seen: list[str] = []

    class Seen(Middleware):
        def __init__(self, name: str) -> None:
            self.name = name

        def before(self, request: Request) -> None:
            seen.append(self.name)

    app, inner = App(), App()
    app.middleware(Seen("outer"))
    inner.middleware(Seen("inner"))
    app.mount("/inner", inner)

    @inner.rpc("member")
    def member() -> str:
        return SECRET

    app.connect()
    with Client(app) as client:
        assert ask(client, connect) == 200
    assert seen == ["outer", "inner"]


def test_dependencies_of_a_compiled_route_itself() -> None:
    app = App()
    app.get("/member", compiled=native, dependencies=[Depends(guard)])
    with Client(app) as client:
        assert client.get("/member").status_code == 403


def test_guards_of_compiled_routes_are_listed() -> None:
    app = App(dependencies=[Depends(scheme)])
    app.get("/member", compiled=native)
    (endpoint,) = app.endpoints
    assert [one.name for one in endpoint.guards] == ["apiKey"]


class TestRefusedAtStart:
    def refused(self, app: App, match: str) -> None:
        with pytest.raises(ConfigError, match=match):
            Client(app).__enter__()

    def test_files_at_the_root_with_dependencies(self, files: Path) -> None:
        app = App(dependencies=[Depends(guard)])
        app.static("/", files)
        self.refused(
            app, r"test_protection.py:\d+.*dependencies= of the application would not hold"
        )

    def test_files_at_the_root_with_middleware(self, files: Path) -> None:
        app = App()
        app.middleware(Refuses())
        app.static("/", files)
        self.refused(app, r"test_protection.py:\d+.*write middleware=False if it need not")

    def test_files_without_middleware_with_dependencies(self, files: Path) -> None:
        app = App(dependencies=[Depends(guard)])
        app.static("/files", files, middleware=False)
        self.refused(app, r"/files .*dependencies= of the application would not hold")

    def test_files_at_the_root_say_middleware_false(self, files: Path) -> None:
        app = App()
        app.middleware(Refuses())
        app.static("/", files, middleware=False)
        with Client(app) as client:
            assert client.get("/a.txt").text == SECRET

    def test_procedures(self) -> None:
        app = App(dependencies=[Depends(scheme)])

        @app.rpc
        def member() -> str:
            return SECRET

        self.refused(app, r"procedure member of .*the HTTP request.*on a Router")

    def test_procedures_of_mounted_applications(self) -> None:
        app, inner = App(dependencies=[Depends(guard)]), App()

        @inner.rpc
        def member() -> str:
            return SECRET

        app.mount("/inner", inner)
        (endpoint,) = app.endpoints
        assert [one.call for one in endpoint.dependencies] == [guard]

    def test_a_route_for_connect(self) -> None:
        """It would be called for WebSockets and sessions, as if they were requests."""
        with pytest.raises(
            ConfigError, match=r"test_protection.py:\d+.*CONNECT.*@app.webtransport"
        ):
            App().route("/member", methods=("GET", "connect"))(allowed)


class TestProceduresOfSessions:
    """`webtransport_rpc` of a mounted application left out what is declared around that."""

    def called(self, app: App) -> list[list[Any]]:
        """The dependencies of each procedure of the session."""
        found: list[list[Any]] = []
        original = procedures.prepared

        def seen(one: Any, endpoint: Any, *, in_pool: bool) -> Any:
            found.append([it.call for it in endpoint.dependencies])
            return original(one, endpoint, in_pool=in_pool)

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(session_calls, "prepared", seen)
            with Client(app):
                pass
        return found

    def test_dependencies_around_a_mounted_application(self) -> None:
        app, inner = App(dependencies=[Depends(guard)]), App()
        inner.rpc(procedure_of("member"))
        inner.webtransport_rpc("/calls")
        app.mount("/inner", inner)
        assert self.called(app) == [[guard]]

    def test_overrides_of_the_application_that_is_served(self) -> None:
        app, inner = App(), App(dependencies=[Depends(guard)])
        inner.rpc(procedure_of("member"))
        inner.webtransport_rpc("/calls")
        app.mount("/inner", inner)
        app.dependency_overrides[guard] = allowed
        assert self.called(app) == [[allowed]]

    def test_middleware_of_a_mounted_application(self) -> None:
        app, inner = App(), App()
        inner.middleware(Refuses())
        inner.rpc(procedure_of("member"))
        app.webtransport_rpc("/calls")
        app.mount("/inner", inner)
        with pytest.raises(
            ConfigError, match=r"member of .*test_protection.py:\d+.*of that application"
        ):
            Client(app).__enter__()


def procedure_of(name: str) -> Callable[[], str]:
    """A procedure of this name."""

    def member() -> str:
        return SECRET

    member.__name__ = name
    return member


def allowed() -> None:
    """In place of ``guard``."""
