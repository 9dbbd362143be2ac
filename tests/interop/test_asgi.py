"""`app.asgi()`, message by message; tests/frameworks/test_servers.py compares whole servers."""

from __future__ import annotations

import asyncio
import gc
import weakref
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from asgi_rig import Call, ask, http_scope, lifespan
from citius import App, Config, Request, Response, WebSocket
from citius.web.interop import asgi_scope

pytestmark = pytest.mark.filterwarnings("error")


def run(test: Any) -> None:
    asyncio.run(test)


def make() -> App:
    app = App()

    @app.get("/")
    def hello() -> str:
        return "hello"

    @app.get("/who")
    def who(request: Request) -> dict[str, Any]:
        return {"client": request.client, "scheme": request.scheme, "path": request.path,
                "root_path": request.root_path, "forwarded": request.header("x-forwarded-proto")}  # fmt: skip

    @app.post("/size", stream=True)
    async def size(request: Request) -> int:
        return sum([len(piece) async for piece in request.stream()])

    return app


def test_hooks_are_called_by_the_lifespan() -> None:
    seen: list[str] = []

    @asynccontextmanager
    async def span(app: App) -> AsyncIterator[None]:
        seen.append("entered")
        yield
        seen.append("left")

    app = App(lifespan=span)

    @app.get("/")
    def show() -> list[str]:
        return seen

    async def main() -> None:
        async with lifespan(app.asgi()):
            assert (await ask(app.asgi())).body == b'["entered"]'
        assert seen == ["entered", "left"]

    run(main())


def test_a_start_that_fails_is_told() -> None:
    app = App()

    @app.on_startup
    def fail() -> None:
        raise RuntimeError("no database")

    async def main() -> None:
        call = Call(app.asgi(), {"type": "lifespan", "asgi": {"version": "3.0"}})
        call.give(type="lifespan.startup")
        await call.end()
        assert call.sent[0]["type"] == "lifespan.startup.failed"
        assert "no database" in call.sent[0]["message"]

    run(main())


def test_requests_without_a_lifespan_and_on_another_loop() -> None:
    asgi = make().asgi()
    for _ in range(2):
        run(_hello(asgi))


async def _hello(asgi: Any) -> None:
    call = await ask(asgi)
    assert (call.status, call.body) == (200, b"hello")
    assert call.headers == {"content-type": "text/plain; charset=utf-8", "content-length": "5"}


def test_what_a_handler_knows_of_its_client() -> None:
    async def main() -> None:
        forged = [
            (b"host", b"shop.test"),
            (b"x-forwarded-proto", b"https"),
            (b"x-forwarded-for", b"1.2.3.4"),
        ]
        call = await ask(make().asgi(), path="/who", headers=forged)
        assert call.body == (
            b'{"client":["192.0.2.7",4711],"scheme":"http","path":"/who","root_path":"","forwarded":"https"}'
        )
        call = await ask(
            make().asgi(), path="/api/who", root_path="/api", scheme="https", client=None
        )
        assert call.body == (
            b'{"client":null,"scheme":"https","path":"/who","root_path":"/api","forwarded":null}'
        )

    run(main())


@pytest.mark.parametrize("raw", [b"/a%20b/who", None])
def test_a_root_path_that_is_percent_encoded(raw: bytes | None) -> None:
    async def main() -> None:
        call = await ask(make().asgi(), path="/a b/who", raw_path=raw, root_path="/a b")
        assert b'"path":"/who","root_path":"/a b"' in call.body

    run(main())


def test_a_request_that_would_be_read_as_two_is_refused() -> None:
    async def main() -> None:
        for more in (
            {"headers": [(b"host", b"a"), (b"x", b"1\r\nhost: b")]},
            {"headers": [(b"host", b"a"), (b"x: 1\r\ny", b"2")]},
            {"raw_path": b"/ HTTP/1.1\r\n\r\nGET /"},
            {"method": "GET / HTTP/1.1\r\n"},
        ):
            scope = http_scope() | more
            call = Call(make().asgi(), scope)
            await call.end()
            assert call.status == 400, more

    run(main())


def test_an_upgrade_is_not_passed_on() -> None:
    async def main() -> None:
        for upgrade in (b"websocket", b"h2c"):
            headers = [(b"host", b"a"), (b"connection", b"upgrade, http2-settings"),
                       (b"upgrade", upgrade), (b"http2-settings", b"AAMAAABk"),
                       (b"sec-websocket-version", b"13"),
                       (b"sec-websocket-key", b"a" * 22 + b"==")]  # fmt: skip
            assert (await ask(make().asgi(), headers=headers)).status == 200

    run(main())


@pytest.mark.parametrize(
    ("version", "headers"),
    [
        ("1.1", [(b"transfer-encoding", b"chunked")]),
        ("2", []),
        ("1.1", [(b"content-length", b"300000")]),
    ],
)
def test_bodies_in_pieces(version: str, headers: list[tuple[bytes, bytes]]) -> None:
    async def main() -> None:
        scope = http_scope("POST", "/size", http_version=version)
        scope["headers"] = [(b"host", b"a"), *headers]
        call = Call(make().asgi(), scope)
        for number in range(3):
            call.give(type="http.request", body=b"x" * 100_000, more_body=number < 2)
        await call.end()
        assert (call.status, call.body) == (200, b"300000")

    run(main())


def test_a_body_is_not_read_faster_than_the_handler_reads_it() -> None:
    app = App()
    may_read = asyncio.Event()

    @app.post("/", stream=True)
    async def slow(request: Request) -> int:
        await may_read.wait()
        return sum([len(piece) async for piece in request.stream()])

    async def main() -> None:
        given = 0
        pieces = 200

        async def receive() -> dict[str, Any]:
            nonlocal given
            given += 1
            if given > pieces:
                await asyncio.Event().wait()
            return {"type": "http.request", "body": b"x" * 65_536, "more_body": given < pieces}

        sent: list[dict[str, Any]] = []

        async def send(message: dict[str, Any]) -> None:
            sent.append(message)

        scope = http_scope("POST", headers=[(b"host", b"a"), (b"transfer-encoding", b"chunked")])
        task = asyncio.create_task(app.asgi()(scope, receive, send))
        for _ in range(200):
            await asyncio.sleep(0)
        # Far from all of the 13 MB: what the windows of the reactor hold.
        assert given < 60
        may_read.set()
        await task
        assert sent[1]["body"] == str(pieces * 65_536).encode()

    run(main())


def test_a_response_is_not_made_faster_than_it_is_sent() -> None:
    app = App()
    made = 0

    @app.get("/")
    async def endless() -> Response:
        async def pieces() -> AsyncIterator[bytes]:
            nonlocal made
            while True:
                made += 1
                yield b"x" * 10_000

        return Response(pieces())

    async def main() -> None:
        call = Call(app.asgi(), http_scope())
        call.may_send.clear()
        for _ in range(500):
            await asyncio.sleep(0)
        assert 0 < made < 200
        before = made
        call.may_send.set()
        await call.until(lambda sent: len(sent) > 50)
        assert made > before
        call.give(type="http.disconnect")
        await call.end()

    run(main())


def test_a_client_that_leaves_cancels_the_handler() -> None:
    app = App()
    noticed = asyncio.Event()

    @app.get("/")
    async def wait() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            noticed.set()

    async def main() -> None:
        call = Call(app.asgi(), http_scope())
        call.give(type="http.disconnect")
        await call.end()
        await asyncio.wait_for(noticed.wait(), 10)
        assert call.sent == []

    run(main())


def test_trailers_are_sent_where_they_can_be() -> None:
    app = App()

    @app.get("/")
    async def checked() -> Response:
        async def pieces() -> AsyncIterator[bytes]:
            yield b"abc"

        return Response(pieces(), 200, {"trailer": "x-sum"}, trailers=lambda: {"x-sum": "3"})

    async def main() -> None:
        call = await ask(app.asgi(), extensions={"http.response.trailers": {}})
        assert call.sent[0]["trailers"] is True
        assert call.sent[-1]["headers"] == [(b"x-sum", b"3")]
        call = await ask(app.asgi())
        assert call.sent[-1]["type"] == "http.response.body"

    run(main())


def test_handlers_find_the_scope() -> None:
    app = App()

    @app.get("/")
    def show(request: Request) -> Any:
        scope = asgi_scope(request)
        assert scope is not None
        return scope["session"]

    async def main() -> None:
        assert (await ask(app.asgi(), session={"user": 7})).body == b'{"user":7}'

    run(main())


def test_limits_of_the_config_hold() -> None:
    app = make()
    asgi = app.asgi(Config(limits={"body_bytes_max": 10}))

    async def main() -> None:
        assert (await ask(asgi, "POST", "/size", b"x" * 11)).status == 413

    run(main())


def socket_scope(path: str = "/", **more: Any) -> dict[str, Any]:
    return {
        **http_scope(path=path),
        "type": "websocket",
        "scheme": "ws",
        "subprotocols": [],
        **more,
    }


def test_a_websocket() -> None:
    app = App()

    @app.websocket("/")
    async def echo(socket: WebSocket) -> None:
        await socket.accept("b", [("x-own", "1")])
        async for message in socket:
            await socket.send(message)

    async def main() -> None:
        call = Call(app.asgi(), socket_scope(subprotocols=["a", "b"]))
        call.give(type="websocket.connect")
        await call.until(len)
        assert call.sent[0] == {
            "type": "websocket.accept",
            "subprotocol": "b",
            "headers": [(b"x-own", b"1")],
        }
        large = "x" * 200_000
        call.give(type="websocket.receive", text=large)
        call.give(type="websocket.receive", bytes=b"\0\1")
        await call.until(lambda sent: len(sent) == 3)
        assert call.sent[1:] == [
            {"type": "websocket.send", "text": large},
            {"type": "websocket.send", "bytes": b"\0\1"},
        ]
        call.give(type="websocket.disconnect", code=1001, reason="away")
        await call.end()

    run(main())


def test_a_websocket_is_refused() -> None:
    app = App()

    @app.websocket("/")
    async def refuse(socket: WebSocket) -> Response:
        return Response("no", 403, {"x-why": "because"})

    async def main() -> None:
        call = Call(app.asgi(), socket_scope())
        call.give(type="websocket.connect")
        await call.end()
        assert call.sent == [{"type": "websocket.close", "code": 1000}]
        call = Call(app.asgi(), socket_scope(extensions={"websocket.http.response": {}}))
        call.give(type="websocket.connect")
        await call.end()
        assert (call.status, call.headers["x-why"], call.body) == (403, "because", b"no")

    run(main())


def test_an_unknown_scope_is_an_error() -> None:
    async def main() -> None:
        with pytest.raises(ValueError, match="telnet"):
            await make().asgi()({"type": "telnet"}, None, None)  # type: ignore[arg-type]

    run(main())


def test_a_server_that_is_dropped_takes_its_reactor_along() -> None:
    async def main() -> weakref.ref[Any]:
        asgi = make().asgi()
        await ask(asgi)
        return weakref.ref(asgi._servers[0])

    server = asyncio.run(main())
    gc.collect()
    assert server() is None
