"""`citius.testing.AsyncClient`: requests, streams, events and WebSockets on the loop of the test."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine
from functools import wraps
from typing import Any

import pytest
from citius import (
    App,
    Broadcast,
    ConnectionClosed,
    Event,
    Forbidden,
    Request,
    Response,
    WebSocket,
    event_stream,
    redirect,
)
from citius.testing import (
    AsyncClient,
    Client,
    EventStreamRefused,
    TooManyRedirects,
    WebSocketRefused,
)
from citius.testing.events import EventReader, ReceivedEvent


def run(test: Callable[[], Coroutine[Any, Any, None]]) -> Callable[[], None]:
    """An `async def` test, on a loop of its own."""

    @wraps(test)
    def call() -> None:
        asyncio.run(test())

    del call.__wrapped__  # pytest would find a coroutine function there
    return call


def make() -> App:
    app = App()
    app.state.events = []
    app.on_startup(lambda: app.state.events.append("started"))
    app.on_shutdown(lambda: app.state.events.append("stopped"))
    gate = asyncio.Event()

    @app.get("/show")
    async def show(request: Request, name: str = "nobody") -> Any:
        return {
            "name": name,
            "scheme": request.scheme,
            "host": request.host,
            "client": request.client,
            "x": request.headers.getlist("x"),
            "cookies": dict(request.cookies),
            "authorization": request.header("authorization"),
        }

    @app.route("/body", methods=["POST", "PUT", "PATCH", "DELETE"])
    async def body(request: Request) -> Any:
        return [request.method, request.header("content-type"), request.body().decode()]

    @app.get("/wait")
    async def wait() -> str:
        await gate.wait()
        return "waited"

    @app.get("/open")
    async def open_gate() -> str:
        gate.set()
        return "opened"

    @app.post("/size", stream=True)
    async def size(request: Request) -> int:
        return sum([len(piece) async for piece in request.stream()])

    @app.post("/refuses", stream=True)
    async def refuses(request: Request) -> None:
        raise Forbidden("not read")

    @app.get("/login")
    def login() -> Response:
        response = redirect("/show", 303)
        response.headers.set_cookie("session", "7")
        return response

    @app.get("/loop")
    def loop() -> Response:
        return redirect("/loop")

    @app.get("/broken")
    async def broken() -> None:
        raise ValueError("a defect")

    @app.get("/silent")
    async def silent() -> None:
        await asyncio.sleep(3600)

    @app.get("/endless")
    async def endless() -> Response:
        async def pieces() -> AsyncIterator[bytes]:
            try:
                while True:
                    yield b"piece"
                    await asyncio.sleep(0)
            finally:
                app.state.events.append("left")

        return Response(pieces())

    return app


@run
async def test_requests() -> None:
    app = make()
    async with AsyncClient(app, headers={"X": "1"}) as client:
        assert app.state.events == ["started"]
        shown = (await client.get("/show", params={"name": "ä"}, auth=("u", "p"))).json()
        assert shown == {
            "name": "ä", "scheme": "http", "host": "testserver", "client": ["127.0.0.1", 123],
            "x": ["1"], "cookies": {}, "authorization": "Basic dTpw",
        }  # fmt: skip
        twice = await client.get("/show", headers=[("x", "2"), ("x", "3")])
        assert twice.json()["x"] == ["2", "3"]
        assert (await client.post("/body", json=[1])).json() == ["POST", "application/json", "[1]"]
        assert (await client.put("/body", form={"a": "b"})).json()[2] == "a=b"
        assert (await client.patch("/body", content="text")).json()[2] == "text"
        assert (await client.delete("/body")).json()[2] == ""
        assert (await client.head("/show")).content == b""
        assert (await client.options("/body")).status_code == 204
        assert (await client.get("/none")).status_code == 404
        both = {"json": 1, "content": b""}
        with pytest.raises(TypeError, match="one body"):
            await client.post("/body", **both)
    assert app.state.events == ["started", "stopped"]


@run
async def test_several_at_once() -> None:
    async with AsyncClient(make()) as client:
        waiting = [asyncio.create_task(client.get("/wait")) for _ in range(5)]
        assert (await client.get("/open")).text == "opened"
        assert [(await one).text for one in waiting] == ["waited"] * 5


@run
async def test_redirects_and_cookies() -> None:
    async with AsyncClient(make(), scheme="https", follow_redirects=True) as client:
        response = await client.get("/login")
        assert [one.status_code for one in response.history] == [303]
        assert response.json()["cookies"] == {"session": "7"}
        assert response.json()["scheme"] == "https"
        client.cookies["session"] = "8"
        assert (await client.get("/show")).json()["cookies"] == {"session": "8"}
        assert (await client.get("/login", follow_redirects=False)).status_code == 303
        with pytest.raises(TooManyRedirects):
            await client.get("/loop")


@run
async def test_bodies_in_pieces() -> None:
    async def pieces() -> AsyncIterator[bytes]:
        for _ in range(100):
            yield b"x" * 10_000

    async def broken() -> AsyncIterator[bytes]:
        yield b"x"
        raise ValueError("the test's own")

    async with AsyncClient(make()) as client:
        assert (await client.post("/size", content=pieces())).json() == 1_000_000
        assert (await client.post("/size", content=[b"a", b"", b"b"])).json() == 2
        assert (await client.post("/refuses", content=pieces())).status_code == 403
        with pytest.raises(ValueError, match="the test's own"):
            await client.post("/size", content=broken())


@run
async def test_errors_and_silence() -> None:
    app = make()
    async with AsyncClient(app) as client:
        with pytest.raises(ValueError, match="a defect"):
            await client.get("/broken")
        assert (await client.get("/show")).status_code == 200
    async with AsyncClient(app, raise_errors=False, timeout_s=0.05) as client:
        assert (await client.get("/broken")).status_code == 500
        with pytest.raises(TimeoutError):
            await client.get("/silent")
    async with AsyncClient(app, limits={"body_bytes_max": 10}) as client:
        assert (await client.post("/body", content=b"x" * 11)).status_code == 413


@run
async def test_a_stream_that_is_left_ends() -> None:
    app = make()
    async with AsyncClient(app) as client:
        async with client.stream("GET", "/endless") as response:
            assert response.status_code == 200
            async for piece in response:
                assert piece.startswith(b"piece")
                break
        async with asyncio.timeout(20):
            while "left" not in app.state.events:
                await asyncio.sleep(0)


def events_app() -> tuple[App, Broadcast]:
    app, news = App(), Broadcast(history=10)

    @app.get("/news")
    async def follow(request: Request) -> Response:
        return news.response(request)

    @app.post("/news")
    async def publish(request: Request) -> int:
        return news.send(Event(request.json(), event="news"))

    @app.get("/three")
    async def three() -> Response:
        async def made() -> AsyncIterator[object]:
            yield Event("a\nb", id="1", retry_ms=500)
            yield {"n": 2}
            yield Event("c", event="end")

        return event_stream(made())

    @app.get("/late")
    async def late() -> Response:
        async def made() -> AsyncIterator[object]:
            await asyncio.sleep(0.1)
            yield "late"

        return event_stream(made(), heartbeat_s=0.01)

    @app.get("/refused")
    async def refused() -> None:
        raise Forbidden("members only")

    return app, news


@run
async def test_events() -> None:
    app, news = events_app()
    async with AsyncClient(app) as client:
        async with client.events("/three") as events:
            assert events.response.headers["content-type"] == "text/event-stream"
            got = [one async for one in events]
            assert got == [
                ReceivedEvent("a\nb", "message", "1"),
                ReceivedEvent('{"n":2}', "message", "1"),
                ReceivedEvent("c", "end", "1"),
            ]
            assert got[1].json() == {"n": 2}
            assert (events.last_event_id, events.retry_ms) == ("1", 500)
        async with client.events("/news") as one, client.events("/news") as other:
            assert (await client.post("/news", json="first")).json() == 2
            assert (await client.post("/news", json="second")).json() == 2
            for events in (one, other):
                assert (await anext(events)).data == "first"
            first_id = one.last_event_id
        async with asyncio.timeout(20):
            while len(news):
                await asyncio.sleep(0)
        async with client.events("/news", last_event_id=first_id) as events:
            assert (await anext(events)).data == "second"
        async with client.events("/late") as events:
            assert [one.data async for one in events] == ["late"]
            assert events.comments
        with pytest.raises(EventStreamRefused) as refused:
            async with client.events("/refused"):
                pass
        assert refused.value.response.status_code == 403


def test_events_of_the_plain_client() -> None:
    app, _ = events_app()
    with Client(app) as client:
        with client.events("/three") as events:
            assert [one.data for one in events] == ["a\nb", '{"n":2}', "c"]
        with client.events("/news") as events:
            client.post("/news", json="first")
            assert next(events) == ReceivedEvent("first", "news", events.last_event_id)
        with client.events("/news", last_event_id="?") as events:
            # An identifier that says nothing: what was missed is not known, and that is told.
            assert [next(events).data for _ in range(2)] == ['{"missed":null}', "first"]
        with pytest.raises(EventStreamRefused), client.events("/refused"):
            pass


@pytest.mark.parametrize(
    ("stream", "expected"),
    [
        ("data: a\r\ndata: b\r\n\r\n", [ReceivedEvent("a\nb")]),
        ("data: a\r\rdata:b\r\r", [ReceivedEvent("a"), ReceivedEvent("b")]),
        ("\ufeffdata\n\n", [ReceivedEvent("")]),
        ("id: 1\n\ndata: ä\nid\n\n", [ReceivedEvent("ä")]),
        (": c\nevent: x\n\ndata: a\nother: b\n\n", [ReceivedEvent("a")]),
        ("id: a\0b\nretry: 1x\ndata:  a \n\ndata: cut", [ReceivedEvent(" a ")]),
    ],
)
def test_events_are_read_as_the_standard_says(stream: str, expected: list[ReceivedEvent]) -> None:
    data = stream.encode()
    assert list(EventReader().receive(data)) == expected
    reader = EventReader()
    pieces = [data[at : at + 1] for at in range(len(data))]
    assert [event for piece in pieces for event in reader.receive(piece)] == expected


def socket_app() -> App:
    app = App()

    @app.websocket("/echo")
    async def echo(ws: WebSocket) -> None:
        await ws.accept(subprotocol="b" if ws.subprotocols else None)
        async for message in ws:
            if message == "close":
                await ws.close(4001, "asked")
            await ws.send(message)

    @app.websocket("/refused")
    async def refused(ws: WebSocket) -> None:
        raise Forbidden("members only")

    room = app.room("all")

    @app.websocket("/room")
    async def join(ws: WebSocket) -> None:
        room.join(ws)
        await ws.send("joined")
        async for message in ws:
            room.send(message)

    return app


@run
async def test_websockets() -> None:
    async with AsyncClient(socket_app()) as client:
        async with client.websocket("/echo", subprotocols=["a", "b"]) as socket:
            assert socket.subprotocol == "b"
            for message in ("Hello", b"\0\xff", "", "ä" * 100_000):
                await socket.send(message)
                assert await socket.receive() == message
            await socket.send_json({"a": 1})
            assert await socket.receive_json() == {"a": 1}
            await socket.send("close")
            assert [message async for message in socket] == []
            assert (socket.close_code, socket.close_reason) == (4001, "asked")
            with pytest.raises(ConnectionClosed):
                await socket.receive()
        async with client.websocket("/echo") as socket:
            await socket.send("kept")
            await socket.close()
            assert await socket.receive() == "kept"
            assert socket.close_code == 1000
        with pytest.raises(WebSocketRefused) as refused:
            async with client.websocket("/refused"):
                pass
        assert refused.value.response.status_code == 403
        assert "members only" in refused.value.response.text


@run
async def test_websockets_at_once() -> None:
    async with (
        AsyncClient(socket_app()) as client,
        client.websocket("/room") as ada,
        client.websocket("/room") as bob,
    ):
        assert [await ada.receive(), await bob.receive()] == ["joined", "joined"]
        waiting = asyncio.create_task(bob.receive())
        await ada.send("hello")
        assert [await waiting, await ada.receive()] == ["hello", "hello"]
