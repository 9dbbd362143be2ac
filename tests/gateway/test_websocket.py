"""WebSockets of native applications, through the test client."""

from __future__ import annotations

import asyncio
import io
import logging
from typing import Any

import pytest
from citius import (
    App,
    ConfigError,
    ConnectionClosed,
    Forbidden,
    Request,
    Response,
    SerialWebSocket,
    WebSocket,
)
from citius.testing import Client, WebSocketRefused


def echo_app() -> App:
    app = App()

    @app.websocket("/echo")
    async def echo(ws: WebSocket) -> None:
        async for message in ws:
            await ws.send(message)

    return app


def test_text_and_binary_come_back() -> None:
    with Client(echo_app()) as client, client.websocket("/echo") as socket:
        for message in ("Hello", b"\0\xff", "", b"", "ä" * 100_000, bytes(100_000)):
            socket.send(message)
            assert socket.receive() == message


def test_many_messages_are_queued_and_keep_their_order() -> None:
    with Client(echo_app()) as client, client.websocket("/echo") as socket:
        for n in range(500):
            socket.send(str(n))
        assert [socket.receive() for _ in range(500)] == [str(n) for n in range(500)]


def test_what_a_handler_sees() -> None:
    app = App()
    app.state.greeting = "hi"
    seen: dict[str, Any] = {}

    @app.websocket("/chat/{room}/{number:int}")
    async def chat(number: int, ws: WebSocket, room: str) -> None:
        seen.update(room=room, number=number, path=ws.path, params=ws.path_params)
        seen.update(query=dict(ws.query), cookies=ws.cookies, client=ws.client)
        seen.update(
            agent=ws.headers["user-agent"], request=ws.request, greeting=ws.app.state.greeting
        )
        ws.state.mark = 1
        seen["before"] = (ws.is_open, ws.subprotocols, repr(ws))
        await ws.accept(subprotocol="b", headers={"x-room": room})
        seen["after"] = (ws.is_open, ws.subprotocol, ws.state.mark, repr(ws))
        await ws.send_json({"room": room})

    with Client(app, headers={"user-agent": "test"}) as client:
        client.cookies["who"] = "me"
        path = "/chat/den/7?a=1"
        with client.websocket(path, subprotocols=["a", "b"]) as socket:
            assert socket.receive_json() == {"room": "den"}
            assert (socket.subprotocol, socket.headers["x-room"]) == ("b", "den")
            with pytest.raises(ConnectionClosed) as closed:
                socket.receive()
            assert closed.value.code == 1000
    assert (seen["room"], seen["number"], seen["path"]) == ("den", 7, "/chat/den/7")
    assert seen["params"] == {"room": "den", "number": 7}
    assert (seen["query"], seen["cookies"], seen["client"]) == ({"a": "1"}, {"who": "me"}, None)
    assert (seen["agent"], seen["greeting"]) == ("test", "hi")
    assert isinstance(seen["request"], Request)
    assert seen["before"] == (False, ["a", "b"], "<WebSocket /chat/den/7 not accepted>")
    assert seen["after"] == (True, "b", 1, "<WebSocket /chat/den/7 open>")


def test_handlers_that_suspend_before_and_between() -> None:
    app = App()

    @app.websocket("/")
    async def slow(ws: WebSocket) -> None:
        await asyncio.sleep(0.01)
        first = await ws.receive()
        await asyncio.sleep(0.01)
        await ws.send(first)
        task = asyncio.create_task(ws.receive())  # pyright: ignore[reportArgumentType]
        done, _ = await asyncio.wait([task], timeout=0.01)
        assert not done
        await ws.send("no hurry")
        await ws.send(await task)
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(ws.receive(), 0.01)
        async with asyncio.timeout(5):
            await ws.send(await ws.receive())

    with Client(app) as client, client.websocket("/") as socket:
        socket.send("one")
        assert [socket.receive(), socket.receive()] == ["one", "no hurry"]
        socket.send("two")
        assert socket.receive() == "two"
        # Long enough for the handler to give its first wait up.
        client._run(asyncio.sleep(0.05))  # pyright: ignore[reportPrivateUsage]
        socket.send("three")
        assert socket.receive() == "three"


def test_refusals() -> None:
    app = App()

    @app.websocket("/response")
    async def response(ws: WebSocket) -> Response:
        return Response("who?", 401, {"www-authenticate": "Basic"})

    @app.websocket("/error/{late:int}")
    async def error(ws: WebSocket, late: int) -> None:
        if late:
            await asyncio.sleep(0)
        raise Forbidden("not you")

    @app.websocket("/nothing")
    async def nothing(ws: WebSocket) -> None:
        return None

    @app.get("/page")
    def page() -> str:
        return "a page"

    def refused(client: Client, path: str, **headers: str) -> tuple[int, str]:
        with (
            pytest.raises(WebSocketRefused) as refusal,
            client.websocket(path, headers={k.replace("_", "-"): v for k, v in headers.items()}),
        ):
            pass
        return refusal.value.response.status_code, refusal.value.response.text

    with Client(app) as client:
        assert refused(client, "/response") == (401, "who?")
        for late in "01":
            status, body = refused(client, f"/error/{late}")
            assert (status, '"not you"' in body) == (403, True)
        assert refused(client, "/nothing") == (403, "Forbidden")
        assert refused(client, "/elsewhere")[0] == 404
        # A path without a WebSocket answers as it always does.
        assert refused(client, "/page") == (200, "a page")
        assert refused(client, "/nothing", sec_websocket_version="8")[0] == 426
        assert refused(client, "/nothing", sec_websocket_key="short")[0] == 400
        answer = client.get("/nothing")
        assert (answer.status_code, answer.headers["upgrade"]) == (426, "websocket")
        assert answer.headers["sec-websocket-version"] == "13"
        assert client.post("/nothing").status_code == 404


def test_an_exception_closes_with_1011_and_is_logged() -> None:
    app = App()
    written = io.StringIO()
    # Its own: where the logger writes to otherwise, other tests decide.
    handler = logging.StreamHandler(written)
    logging.getLogger("citius").addHandler(handler)

    @app.websocket("/{when}")
    async def broken(ws: WebSocket, when: str) -> None:
        await ws.accept()
        if when == "late":
            await ws.receive()
        raise RuntimeError("a defect")

    with Client(app) as client:
        for when in ("now", "late"):
            with client.websocket(f"/{when}") as socket:
                socket.send("go")
                assert list(socket) == []
                assert socket.close_code == 1011
    logging.getLogger("citius").removeHandler(handler)
    assert written.getvalue().count("RuntimeError: a defect") == 2


def test_closing_from_either_side() -> None:
    app = App()
    heard: list[Any] = []

    @app.websocket("/theirs")
    async def theirs(ws: WebSocket) -> None:
        heard.append([message async for message in ws])
        heard.append((ws.close_code, ws.close_reason, ws.is_open))
        for attempt in (ws.receive, lambda: ws.send("late")):
            with pytest.raises(ConnectionClosed, match="4001: done"):
                await attempt()

    @app.websocket("/ours")
    async def ours(ws: WebSocket) -> None:
        await ws.send("bye")
        await ws.close(4000, "enough")
        await ws.close(4002)  # says nothing any more
        with pytest.raises(ConnectionClosed):
            await ws.send("late")
        heard.append([message async for message in ws])

    with Client(app) as client:
        with client.websocket("/theirs") as socket:
            socket.send("last")
            socket.close(4001, "done")
        assert heard == [["last"], (4001, "done", False)]
        heard.clear()
        with client.websocket("/ours") as socket:
            assert list(socket) == ["bye"]
            assert (socket.close_code, socket.close_reason) == (4000, "enough")
        assert heard == [[]]


def test_misuse_is_told() -> None:
    app = App()
    told: list[str] = []

    @app.websocket("/")
    async def misuse(ws: WebSocket) -> None:
        for attempt in (
            lambda: ws.close(),
            lambda: ws.accept("unoffered"),
            lambda: ws.accept(headers={"a\n": "b"}),
            lambda: ws.send(7),  # pyright: ignore[reportArgumentType]
            lambda: ws.accept(),
            lambda: ws.close(1005),
            lambda: ws.close(1000, "x" * 124),
        ):
            try:
                await attempt()
            except (RuntimeError, TypeError, ValueError) as error:
                told.append(str(error))

    with Client(app) as client, client.websocket("/") as socket:
        assert list(socket) == []
    for text, expected in zip(
        told,
        ["not accepted yet", "has not offered", "not a token", "str or bytes, got int",
         "accepted already", "1000 to 1003", "at most 123 bytes"],
        strict=True,
    ):  # fmt: skip
        assert expected in text


def test_serial_handlers_run_in_threads() -> None:
    app = App()

    @app.websocket("/{n:int}")
    def serial(ws: SerialWebSocket, n: int) -> None:
        ws.send_json([n, ws.path, ws.is_open])
        for message in ws:
            ws.send(message)

    @app.websocket("/refused")
    def refused(ws: SerialWebSocket) -> Response:
        return Response("no", 403)

    with Client(app) as client:
        with client.websocket("/5") as one, client.websocket("/6") as other:
            assert one.receive_json() == [5, "/5", False]
            assert other.receive_json() == [6, "/6", False]
            for n in range(50):
                one.send(f"{n}")
                other.send(b"x" * n)
                assert (one.receive(), other.receive()) == (f"{n}", b"x" * n)
        with pytest.raises(WebSocketRefused), client.websocket("/refused"):
            pass


def test_rooms() -> None:
    app = App()
    room = app.room("all")
    assert app.room("all") is room

    @app.websocket("/")
    async def chat(ws: WebSocket) -> None:
        assert room.join(ws)
        assert not room.join(ws)
        assert ws in room
        async for message in ws:
            if message == "leave":
                assert room.leave(ws)
                assert not room.leave(ws)
                await ws.send("left")
            elif message == "others":
                await ws.send(str(room.send("from another", exclude=ws)))
            else:
                room.send(message)
                # In the order said, whichever way it leaves.
                await ws.send("sent")

    with Client(app) as client:
        with client.websocket("/") as a, client.websocket("/") as b, client.websocket("/") as c:
            assert len(room) == 3
            assert room
            a.send("hello")
            assert (a.receive(), a.receive()) == ("hello", "sent")
            assert (b.receive(), c.receive()) == ("hello", "hello")
            b.send("others")
            assert (a.receive(), b.receive(), c.receive()) == ("from another", "2", "from another")
            c.send("leave")
            assert c.receive() == "left"
            a.send(b"\0")
            assert (a.receive(), a.receive(), b.receive()) == (b"\0", "sent", b"\0")
            c.send("others")
            assert (c.receive(), a.receive()) == ("2", "from another")
            b.close()
            assert len(room) == 1
        assert len(room) == 0


def test_a_message_reaches_members_here_whatever_becomes_of_other_workers(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    app = App()
    room = app.room("all")
    told: list[object] = []

    def relay(is_text: bool, payload: bytes) -> int:
        assert (is_text, payload) == (True, b"hello")
        if room.missed == 0:
            return 2
        raise OSError("no worker can be reached")

    @app.websocket("/")
    async def chat(ws: WebSocket) -> None:
        room.join(ws)
        async for message in ws:
            assert room.send(message) == 1

    monkeypatch.setattr("sys.unraisablehook", lambda said: told.append(said.exc_value))
    room._set_relay(relay)  # pyright: ignore[reportPrivateUsage]
    with Client(app) as client, client.websocket("/") as socket:
        for _ in range(2):
            socket.send("hello")
            assert socket.receive() == "hello"
            assert room.missed == 2
    assert [type(error) for error in told] == [OSError]


def test_a_handler_that_ends_leaves_its_rooms() -> None:
    app = App()
    room = app.room("all")

    @app.websocket("/return")
    async def returns(ws: WebSocket) -> None:
        room.join(ws)

    @app.websocket("/raise")
    async def raises(ws: WebSocket) -> None:
        room.join(ws)
        raise ValueError

    @app.websocket("/close")
    async def closes(ws: WebSocket) -> None:
        room.join(ws)
        await ws.close()
        assert ws not in room
        with pytest.raises(ConnectionClosed):
            room.join(ws)
        await ws.send("not reached, as it is closed")

    @app.websocket("/serial")
    def serial(ws: SerialWebSocket) -> None:
        room.join(ws.socket)
        ws.receive()

    with Client(app) as client:
        for path in ("/return", "/raise", "/close", "/serial"):
            with client.websocket(path) as socket:
                if path == "/serial":
                    socket.send("go")
                with pytest.raises(ConnectionClosed):
                    socket.receive()
                # The client has not answered the close yet.
                assert len(room) == 0, path


def test_others_who_wait_for_a_socket_hear_of_its_end_after_its_handler() -> None:
    app = App()
    heard: list[object] = []

    @app.websocket("/")
    async def hands_over(ws: WebSocket) -> None:
        await ws.accept()

        async def listen() -> None:
            try:
                await ws.receive()
            except ConnectionClosed:
                heard.append(ws.close_code)

        app.state.task = asyncio.create_task(listen())
        await asyncio.sleep(0)

    with Client(app) as client:
        with client.websocket("/") as socket, pytest.raises(ConnectionClosed):
            socket.receive()
        client._run(asyncio.wait_for(app.state.task, 10))  # pyright: ignore[reportPrivateUsage]
    assert heard == [1000]


def test_signatures_are_checked_when_the_application_is_frozen() -> None:
    async def without() -> None: ...
    async def too_much(ws: WebSocket, other: dict[str, int]) -> None: ...
    async def serial(ws: SerialWebSocket) -> None: ...
    def plain(ws: WebSocket) -> None: ...

    for handler, expected in (
        (without, "no parameter for the WebSocket"),
        (too_much, "neither the WebSocket nor in its path"),
        (serial, "gets a citius.WebSocket"),
        (plain, "gets a citius.SerialWebSocket"),
    ):
        app = App()
        app.websocket("/")(handler)
        with pytest.raises(ConfigError, match=expected):
            Client(app)


def test_rooms_take_the_socket_of_a_serial_handler() -> None:
    """Its type said so, and ``join`` was a ``TypeError``."""
    app = App()
    rooms = (app.room("plain"), app.room("kept", history=5))

    @app.websocket("/serial")
    def serial(ws: SerialWebSocket) -> None:
        for room in rooms:
            assert room.join(ws)
            assert not room.join(ws)
            assert ws in room
            assert len(room) == 1
            assert room.send("from the room") == 1
        assert rooms[0].send("to others", exclude=ws) == 0
        assert all(room.leave(ws) for room in rooms)
        assert all(ws not in room for room in rooms)
        ws.send("left")

    with Client(app) as client, client.websocket("/serial") as ws:
        assert ws.receive() == "from the room"
        assert str(ws.receive()).endswith("from the room")
        assert ws.receive() == "left"
