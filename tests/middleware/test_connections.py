"""Connection middleware, and ``Middleware`` around WebSockets: what it sees, refuses and outlives."""

from __future__ import annotations

import asyncio
import contextlib
from typing import Annotated, Any

import pytest
from citius import (
    App,
    ConfigError,
    ConnectionClosed,
    Depends,
    Forbidden,
    Request,
    Response,
    Router,
    SerialWebSocket,
    Unauthorized,
    WebSocket,
)
from citius.testing import Client, WebSocketRefused
from citius.web.middleware import (
    CSRF,
    AsyncNextConnection,
    Connection,
    MemoryStore,
    Middleware,
    NextConnection,
    RateLimit,
    Session,
    Sessions,
    StoredSessions,
    TrustedHosts,
    session,
)
from citius.web.security import Authenticate, Bearer, Principal, principal
from rig import wait_for


class Noting:
    """Connection middleware of both kinds that notes when a connection begins and ends."""

    def __init__(self, name: str, log: list[str]) -> None:
        self.name, self.log = name, log

    def plain(self, connection: Connection, next: NextConnection) -> Response | None:
        kind = type(connection).__name__
        self.log.append(f"{self.name} {kind} begins")
        try:
            response = next(connection)
        finally:
            self.log.append(f"{self.name} {kind} ends")
        if response is not None:
            self.log.append(f"{self.name} {response.status_code}")
        return response

    async def awaiting(self, connection: Connection, next: AsyncNextConnection) -> Response | None:
        kind = type(connection).__name__
        self.log.append(f"{self.name} {kind} begins")
        try:
            response = await next(connection)
        finally:
            self.log.append(f"{self.name} {kind} ends")
        if response is not None:
            self.log.append(f"{self.name} {response.status_code}")
        return response


class Halves(Middleware):
    def __init__(self, name: str, log: list[str]) -> None:
        self.name, self.log = name, log

    def connect(self, socket: WebSocket) -> Response | None:
        self.log.append(f"{self.name} connects")
        return Response("no", 451) if "refuse" in socket.query else None

    def disconnect(self, socket: WebSocket) -> None:
        self.log.append(f"{self.name} disconnects {socket.is_open}")


class SlowHalves(Halves):
    async def connect(self, socket: WebSocket) -> Response | None:
        await asyncio.sleep(0)
        return super().connect(socket)

    async def disconnect(self, socket: WebSocket) -> None:
        await asyncio.sleep(0)
        super().disconnect(socket)


def routes(app: App | Router, *, serial: bool) -> None:
    """A path of WebSockets in both kinds of handlers: it echoes one message, or fails."""
    if serial:

        @app.websocket("/ws")
        def echo(ws: SerialWebSocket) -> None:
            if "forbidden" in ws.query:
                raise Forbidden("not you")
            ws.send(ws.receive())
            if "late" in ws.query:
                raise RuntimeError("after the acceptance")
    else:

        @app.websocket("/ws")
        async def echo_async(ws: WebSocket) -> None:
            if "forbidden" in ws.query:
                raise Forbidden("not you")
            await ws.send(await ws.receive())
            if "late" in ws.query:
                raise RuntimeError("after the acceptance")

    @app.get("/")
    def index() -> str:
        return "in"


def talk(client: Client, path: str = "/ws", **options: Any) -> str | bytes:
    """Send a message, and wait for the end of the WebSocket behind its echo."""
    with client.websocket(path, **options) as socket:
        socket.send("a")
        answer = socket.receive()
        with contextlib.suppress(ConnectionClosed):
            socket.receive()
        return answer


@pytest.mark.parametrize("serial", [False, True])
@pytest.mark.parametrize("is_async", [False, True])
def test_it_sees_requests_and_websockets_from_begin_to_end(serial: bool, is_async: bool) -> None:
    if not serial and not is_async:
        pytest.skip("a def cannot look at what an async def returns; see below")
    log: list[str] = []
    app = App()
    noting = Noting("a", log)
    app.connection_middleware(noting.awaiting if is_async else noting.plain)
    app.middleware((SlowHalves if is_async else Halves)("h", log))
    routes(app, serial=serial)
    with Client(app, raise_errors=False) as client:
        assert talk(client) == "a"
        assert log == [
            "a WebSocket begins", "h connects", "h disconnects True", "a WebSocket ends"
        ]  # fmt: skip
        log.clear()
        with pytest.raises(WebSocketRefused) as refused:
            talk(client, "/ws?forbidden=1")
        assert refused.value.response.status_code == 403
        assert log[-2:] == ["a WebSocket ends", "a 403"]
        log.clear()
        with pytest.raises(WebSocketRefused) as refused:
            talk(client, "/ws?refuse=1")
        assert (refused.value.response.status_code, log[-1]) == (451, "a 451")
        assert "h disconnects False" not in log
        log.clear()
        for path, status in (("/", 200), ("/nowhere", 404)):
            assert client.get(path).status_code == status
            assert log[-3:] == ["a Request begins", "a Request ends", f"a {status}"]


@pytest.mark.parametrize("serial", [False, True])
def test_what_fails_after_the_acceptance_is_raised(
    serial: bool, caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    log: list[str] = []
    app = App()
    app.connection_middleware(Noting("a", log).awaiting)
    routes(app, serial=serial)
    with Client(app, raise_errors=False) as client, client.websocket("/ws?late=1") as socket:
        socket.send("a")
        assert socket.receive() == "a"
        with pytest.raises(ConnectionClosed) as closed:
            socket.receive()
        assert closed.value.code == 1011
    assert log == ["a WebSocket begins", "a WebSocket ends"]
    # A coroutine's failure is written by the extension, a thread's by a logger.
    assert "after the acceptance" in caplog.text + capfd.readouterr().err


def test_a_def_around_a_coroutine_may_hand_it_on() -> None:
    app = App()

    @app.connection_middleware
    def only_ours(connection: Connection, next: NextConnection) -> Response | None:
        if "x-refuse" in connection.headers:
            return Response("no", 401)
        return next(connection)

    routes(app, serial=False)
    with Client(app, raise_errors=False) as client:
        assert talk(client) == "a"
        with pytest.raises(WebSocketRefused) as refused:
            talk(client, headers={"x-refuse": "1"})
        assert refused.value.response.status_code == 401
        assert client.get("/", headers={"x-refuse": "1"}).status_code == 401


def test_a_middleware_that_lets_nothing_through_refuses() -> None:
    app = App()

    @app.connection_middleware
    async def nothing(connection: Connection, next: AsyncNextConnection) -> Response | None:
        return None

    routes(app, serial=False)
    with Client(app, raise_errors=False) as client:
        with pytest.raises(WebSocketRefused) as refused:
            talk(client)
        assert refused.value.response.status_code == 403
        # A request has to be responded to.
        assert client.get("/").status_code == 500


def test_the_order_is_that_of_adding_from_applications_to_routers() -> None:
    log: list[str] = []
    app, mounted = App(), App()
    router = Router(prefix="/r")
    inner = Router(prefix="/i")
    router.include(inner)
    mounted.include(router)
    inner.connection_middleware(Noting("inner", log).awaiting)
    router.middleware(Halves("router", log))
    mounted.connection_middleware(Noting("mounted", log).awaiting)
    app.middleware(Halves("first", log))
    app.connection_middleware(Noting("second", log).awaiting)
    routes(inner, serial=False)
    routes(mounted, serial=False)
    app.mount("/m", mounted)
    with Client(app) as client:
        talk(client, "/m/r/i/ws")
        begun = [line.split()[0] for line in log if "begins" in line or "connects" in line]
        assert begun[:5] == ["first", "second", "mounted", "router", "inner"]
        log.clear()
        talk(client, "/m/ws")
        assert not any(line.startswith(("router", "inner")) for line in log)
        log.clear()
        assert client.get("/m/r/i").text == "in"
        assert [line for line in log if "begins" in line] == [
            f"{name} Request begins" for name in ("second", "mounted", "inner")
        ]


def test_a_mounted_application_responds_to_its_own_refusals() -> None:
    app, mounted = App(), App()
    mounted.exception_handler(Forbidden)(lambda request, error: Response("by the mounted", 418))
    routes(mounted, serial=False)
    app.mount("/m", mounted)
    with Client(app) as client:
        with pytest.raises(WebSocketRefused) as refused:
            talk(client, "/m/ws?forbidden=1")
        assert refused.value.response.status_code == 418
        assert talk(client, "/m/ws") == "a"


def found(connection: Connection) -> str:
    return connection.path


def test_path_parameters_and_dependencies_are_there() -> None:
    app = App()
    app.connection_middleware(Noting("a", []).awaiting)

    @app.websocket("/{room}/{number:int}")
    async def chat(
        ws: WebSocket, number: int, room: str, at: Annotated[str, Depends(found)]
    ) -> None:
        await ws.send(f"{room} {number} {at}")

    @app.get("/where")
    def where(at: Annotated[str, Depends(found)]) -> str:
        return at

    with Client(app) as client:
        with client.websocket("/den/7") as socket:
            assert socket.receive() == "den 7 /den/7"
        assert client.get("/where").text == "/where"


class SlowStore:
    def __init__(self) -> None:
        self.kept = MemoryStore()

    async def load(self, key: str) -> bytes | None:
        return self.kept.load(key)

    async def save(self, key: str, data: bytes, max_age_s: int) -> None:
        self.kept.save(key, data, max_age_s)

    async def replace(self, key: str, data: bytes, max_age_s: int) -> None:
        self.kept.replace(key, data, max_age_s)

    async def delete(self, key: str) -> None:
        self.kept.delete(key)


@pytest.mark.parametrize(
    "middleware",
    [Sessions("0123456789abcdef"), StoredSessions(MemoryStore()), StoredSessions(SlowStore())],
    ids=["signed", "stored", "awaited"],
)
def test_sessions_are_read_by_websockets(middleware: Middleware) -> None:
    app = App()
    app.middleware(middleware)
    seen: list[Session] = []

    @app.post("/login")
    def login(request: Request) -> str:
        session(request)["user"] = "ann"
        return "in"

    @app.websocket("/ws")
    async def who(ws: WebSocket) -> None:
        seen.append(session(ws))
        await ws.send_json(dict(session(ws)))

    with Client(app) as client:
        with client.websocket("/ws") as socket:
            assert socket.receive_json() == {}
        client.post("/login")
        with client.websocket("/ws") as socket:
            assert socket.receive_json() == {"user": "ann"}
        with pytest.raises(RuntimeError, match="change the session in a request"):
            seen[-1]["user"] = "eve"
        with pytest.raises(RuntimeError, match="change the session in a request"):
            seen[-1].clear()


@pytest.mark.parametrize("is_async", [False, True])
def test_authenticate_lets_no_websocket_pass_without_credentials(is_async: bool) -> None:
    async def check_async(token: str) -> Principal | None:
        return Principal("ann") if token == "right" else None

    def check(token: str) -> Principal | None:
        return Principal("ann") if token == "right" else None

    app = App()
    app.middleware(Authenticate(Bearer(check_async if is_async else check), exempt=["/open"]))

    @app.websocket("/ws")
    async def who(ws: WebSocket) -> None:
        await ws.send(principal(ws).id)

    @app.websocket("/open")
    async def open_to_all(ws: WebSocket) -> None:
        await ws.send("open")

    with Client(app) as client:
        for headers in ({}, {"authorization": "Bearer wrong"}):
            with (
                pytest.raises(WebSocketRefused) as refused,
                client.websocket("/ws", headers=headers),
            ):
                pass
            assert refused.value.response.status_code == 401
            assert "www-authenticate" in refused.value.response.headers
        with client.websocket("/ws", headers={"authorization": "Bearer right"}) as socket:
            assert socket.receive() == "ann"
        with client.websocket("/open") as socket:
            assert socket.receive() == "open"


def test_hosts_origins_and_rates_of_websockets() -> None:
    app = App()
    app.middleware(TrustedHosts(["shop.example"]))
    app.middleware(RateLimit(2, 3600, key=lambda request: request.header("x-key", "")))
    app.middleware(CSRF(trusted_origins=["https://friend.example"], exempt=["/open"]))
    routes(app, serial=False)

    @app.websocket("/open")
    async def open_to_all(ws: WebSocket) -> None:
        await ws.send("open")

    def status(path: str = "/ws", **fields: str) -> int:
        headers = {name.replace("_", "-"): value for name, value in fields.items()}
        try:
            with client.websocket(path, headers={"host": "shop.example", **headers}):
                return 101
        except WebSocketRefused as refused:
            return refused.response.status_code

    with Client(app) as client:
        assert status() == 101
        assert status(host="evil.example") == 421
        assert status(origin="http://shop.example") == 101
        assert status(origin="https://friend.example") == 101
        assert status(origin="https://evil.example") == 403
        assert status(origin="null") == 403
        assert status(origin="http://shop.example", sec_fetch_site="cross-site") == 403
        assert status("/open", origin="https://evil.example") == 101
        assert [status(x_key="a") for _ in range(3)] == [101, 101, 429]


def test_what_is_refused_at_the_start() -> None:
    app = App()
    with pytest.raises(ConfigError, match="added by app.middleware"):
        app.connection_middleware(Sessions("0123456789abcdef"))  # type: ignore[type-var]
    with pytest.raises(ConfigError, match=r"next\(connection, next\)|connection, next"):
        app.connection_middleware(lambda connection: None)  # type: ignore[type-var]


def test_an_async_one_needs_a_loop() -> None:
    app = App()
    routes(app, serial=True)
    assert app.needs_loop == ""
    app.middleware(SlowHalves("h", []))
    assert "connect" in app.needs_loop
    router = Router(prefix="/r")
    router.connection_middleware(Noting("a", []).awaiting)
    routes(router, serial=True)
    other = App()
    other.include(router)
    assert "awaiting" in other.needs_loop


class Guard(Middleware):
    """A class for requests."""

    def __init__(self, log: list[str]) -> None:
        self.log = log

    def before(self, request: Request) -> Response | None:
        """Refuse, or note a request."""
        self.log.append(f"before {request.path}")
        return Response("no", 401) if "refuse" in request.query else None

    def after(self, request: Request, response: Response) -> Response:
        """Note a response."""
        self.log.append(f"after {response.status_code}")
        response.headers["x-seen"] = "1"
        return response


class SlowGuard(Guard):
    """The same with coroutines."""

    async def before(self, request: Request) -> Response | None:
        """Refuse, or note a request."""
        await asyncio.sleep(0)
        return super().before(request)

    async def after(self, request: Request, response: Response) -> Response:
        """Note a response."""
        await asyncio.sleep(0)
        return super().after(request, response)


class RequestsAlone(Guard):
    """One that is not called for WebSockets."""

    requests_only = True


def guards(log: list[str]) -> dict[str, Any]:
    guard = Guard(log)

    def plain(request: Request, next: Any) -> Response:
        return guard.before(request) or guard.after(request, next(request))

    async def awaiting(request: Request, next: Any) -> Response:
        return guard.before(request) or guard.after(request, await next(request))

    def blind(request: Request, next: Any) -> Any:
        return guard.before(request) or next(request)

    def raising(request: Request, next: Any) -> Any:
        if guard.before(request) is not None:
            raise Unauthorized
        return next(request)

    return {
        "def": plain, "async def": awaiting, "def that looks at nothing": blind, "raising": raising,
        "class": guard, "class with coroutines": SlowGuard(log),
    }  # fmt: skip


def own_socket(app: App, around: Router) -> None:
    around.websocket("/r/w")(accept)


def routed_socket(app: App, around: Router) -> None:
    router = Router(prefix="/r")
    router.websocket("/w")(accept)
    around.include(router)


def mounted_socket(app: App, around: Router) -> None:
    inner = App()
    inner.websocket("/w")(accept)
    app.mount("/r", inner)


def mounted_asgi(app: App, around: Router) -> None:
    async def other(scope: Any, receive: Any, send: Any) -> None:
        await receive()
        if b"inner" in scope["query_string"]:
            start = {"type": "websocket.http.response.start", "status": 402, "headers": []}
            return await send(start)
        await send({"type": "websocket.accept"})
        await send({"type": "websocket.send", "text": "in"})

    app.mount("/r", other)


async def accept(ws: WebSocket) -> Response | None:
    """Refuse, or accept and send."""
    if "inner" in ws.query:
        return Response("", 402)
    return await ws.send("in")


SOCKETS: list[tuple[Any, type[Router]]] = [
    (own_socket, Router), (routed_socket, Router),
    (own_socket, App), (routed_socket, App), (mounted_socket, App), (mounted_asgi, App),
]  # fmt: skip


@pytest.mark.parametrize(("add", "kind"), SOCKETS, ids=lambda it: it.__name__)
@pytest.mark.parametrize("how", guards([]))
def test_middleware_for_requests_holds_for_sockets(how: str, add: Any, kind: type[Router]) -> None:
    log: list[str] = []
    app = App()
    around = app if kind is App else Router()
    looks = how not in ("def", "def that looks at nothing", "raising")
    middleware = guards(log)["def that looks at nothing" if how == "def" else how]
    around.middleware(middleware)
    add(app, around)
    if around is not app:
        app.include(around)
    with Client(app) as client:
        with client.websocket("/r/w") as ws:
            assert ws.receive() == "in"
        wait_for(lambda: len(log) == 1 + looks, "the end of the WebSocket")
        refused = []
        for query in ("refuse", "inner"):
            with pytest.raises(WebSocketRefused) as caught, client.websocket(f"/r/w?{query}"):
                pass
            refused.append(caught.value.response)
    assert [one.status_code for one in refused] == [401, 402]
    assert refused[1].headers.get("x-seen") == ("1" if looks else None)
    before, after = "before /r/w", ["after 200"] if looks else []
    assert log == [before, *after, before, before, *(["after 402"] if looks else [])]


@pytest.mark.parametrize("how", ["def", "class", "raising"])
def test_middleware_for_requests_holds_for_serial_sockets(how: str) -> None:
    log: list[str] = []
    app = App()
    app.middleware(guards(log)[how])

    @app.websocket("/w")
    def serial(ws: SerialWebSocket) -> None:
        ws.send("in")

    with Client(app) as client:
        with client.websocket("/w") as ws:
            assert ws.receive() == "in"
        with pytest.raises(WebSocketRefused) as caught, client.websocket("/w?refuse"):
            pass
    assert caught.value.response.status_code == 401
    assert log == ["before /w", *(["after 200"] if how != "raising" else []), "before /w"]


def test_what_it_returns_for_an_accepted_socket_is_not_sent() -> None:
    app = App()

    @app.middleware
    async def other(request: Request, next: Any) -> Response:
        await next(request)
        return Response("other", 500)

    app.websocket("/w")(accept)
    with Client(app) as client:
        with client.websocket("/w") as ws:
            assert ws.receive() == "in"
            with pytest.raises(ConnectionClosed):
                ws.receive()
            assert ws.close_code == 1000
        with pytest.raises(WebSocketRefused) as caught, client.websocket("/w?inner"):
            pass
        assert caught.value.response.text == "other"


@pytest.mark.parametrize("kind", ["decorator", "call", "class"])
def test_what_is_for_requests_only_is_not_called(kind: str) -> None:
    log: list[str] = []
    app, function = App(), guards(log)["async def"]
    if kind == "decorator":
        assert app.middleware(requests_only=True)(function) is function
    elif kind == "call":
        assert app.middleware(function, requests_only=True) is function
    else:
        app.middleware(RequestsAlone(log))
    app.get("/")(lambda: "in")
    app.websocket("/w")(accept)
    with Client(app) as client:
        assert client.get("/?refuse").status_code == 401
        with client.websocket("/w?refuse") as ws:
            assert ws.receive() == "in"
    assert log == ["before /"]


def test_a_class_says_so_itself() -> None:
    with pytest.raises(ConfigError, match=r"requests_only = True` in the class RequestsAlone"):
        App().middleware(RequestsAlone([]), requests_only=True)
    with pytest.raises(ConfigError, match="is a function, got None"):
        App().middleware(None)  # type: ignore[type-var]
