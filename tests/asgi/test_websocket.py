"""The websocket scope over real sockets: ASGI's messages, refusals, ends."""

from __future__ import annotations

import ast
import time

import pytest
from rig import application, wait_for
from wspeer import BINARY, CLOSE, TEXT, RawSocket, frame

ECHO = application("asgi_echo_app")

ENDS = application("asgi_ends_app")


def test_echo(serve_asgi) -> None:
    client = RawSocket(serve_asgi(ECHO)).accepted()
    for message in ("Hello", b"\0\xff", "", b"", "ä" * 70_000):
        data = message.encode() if isinstance(message, str) else message
        client.send(frame(TEXT if isinstance(message, str) else BINARY, data))
        assert client.message() == message
    client.send(frame(CLOSE, (1001).to_bytes(2, "big") + b"away"))
    assert client.closed(1001).payload[2:] == b"away"


def test_scope(serve_asgi) -> None:
    server = serve_asgi(
        """
        async def app(scope, receive, send):
            await receive()
            chosen = scope["subprotocols"][-1]
            headers = [(b"x-one", b"1"), (b"set-cookie", b"a=b")]
            await send({"type": "websocket.accept", "subprotocol": chosen, "headers": headers})
            await send({"type": "websocket.send", "text": repr(scope)})
        """,
        "--root-path", "/api",
    )  # fmt: skip
    client = RawSocket(server, "/a%20b?q=1", sec_websocket_protocol="v1, v2").accepted()
    scope = ast.literal_eval(str(client.message()))
    assert scope["asgi"] == {"version": "3.0", "spec_version": "2.5"}
    assert (scope["http_version"], scope["scheme"]) == ("1.1", "ws")
    assert (scope["path"], scope["raw_path"]) == ("/api/a b", b"/api/a%20b")
    assert (scope["query_string"], scope["root_path"]) == (b"q=1", "/api")
    assert (b"sec-websocket-version", b"13") in scope["headers"]
    assert scope["client"] == client.peer.socket.getsockname()
    assert scope["server"] == ("127.0.0.1", server.port)
    assert (scope["subprotocols"], scope["state"]) == (["v1", "v2"], {})
    assert scope["extensions"] == {"websocket.http.response": {}}
    assert "method" not in scope
    fields = client.reply.headers
    assert (fields["sec-websocket-protocol"], fields["x-one"]) == ("v2", "1")
    assert fields["set-cookie"] == "a=b"
    # The application has returned: that is a close.
    assert client.frame().code == 1000


@pytest.mark.parametrize("env", [{}, {"SUSPENDS": "1"}], ids=["at_once", "late"])
def test_refusals(serve_asgi, env: dict[str, str]) -> None:
    server = serve_asgi(application("asgi_refusals_app"), env=env)
    assert (RawSocket(server, "/close").reply.status, RawSocket(server, "/raise").reply.status) == (
        403,
        500,
    )
    denial = RawSocket(server, "/denial").reply
    assert (denial.status, denial.body) == (402, b"pay first")
    assert (denial.headers["x-a"], denial.headers["content-type"]) == ("b", "text/plain")
    assert RawSocket(server, "/nothing").reply.status == 500
    server.wait_for_log("WebSocket /raise: the ASGI application raised RuntimeError: a defect")
    server.wait_for_log("WebSocket /nothing: the ASGI application returned without accepting")


def test_an_exception_closes_with_1011(serve_asgi) -> None:
    server = serve_asgi(
        """
        async def app(scope, receive, send):
            await receive()
            await send({"type": "websocket.accept"})
            await receive()
            raise RuntimeError("a defect")
        """
    )
    client = RawSocket(server).accepted()
    client.text("go")
    assert client.frame().code == 1011
    server.wait_for_log("a defect")


def test_ends(serve_asgi) -> None:
    server = serve_asgi(ENDS)
    gone = "{'type': 'websocket.disconnect', 'code': %d, 'reason': '%s'}"

    def sees(code: int, reason: str) -> None:
        expected = f"{', '.join([gone % (code, reason)] * 2)}, 'ConnectionClosed']"
        wait_for(lambda: server.get("/").body.decode().endswith(expected), expected)

    client = RawSocket(server).accepted()
    client.send(frame(CLOSE, (4001).to_bytes(2, "big") + b"bye"))
    client.closed(4001)
    sees(4001, "bye")
    client = RawSocket(server).accepted()
    client.send(frame(CLOSE))
    client.closed(1005)
    sees(1005, "")
    client = RawSocket(server).accepted()
    client.peer.close()
    sees(1006, "")
    client = RawSocket(server).accepted()
    client.send(b"\xff\xff")
    client.closed(1002)
    sees(1002, "reserved bit is set")
    client = RawSocket(server, "/ours").accepted()
    assert client.frame().payload[2:] == b"enough"
    client.send(frame(CLOSE, (4005).to_bytes(2, "big")))
    sees(4005, "")


def test_misuse_is_told(serve_asgi) -> None:
    server = serve_asgi(application("asgi_websocket_misuse_app"))
    told = ast.literal_eval(str(RawSocket(server).accepted().message()))
    for text, expected in zip(
        told,
        [
            "RuntimeError: unexpected ASGI message \"websocket.send\": expected 'websocket.accept'",
            'RuntimeError: unexpected ASGI message "http.response.start"',
            "ValueError: the subprotocol",
            "RuntimeError: unexpected ASGI message \"websocket.accept\": expected 'websocket.send'",
            *["ValueError: 'websocket.send' has either"] * 3,
            "ValueError: 'code' of 'websocket.close'",
        ],
        strict=True,
    ):
        assert text.startswith(expected), text


def test_state_and_lifespan(serve_asgi) -> None:
    server = serve_asgi(
        application("asgi_websocket_state_app"),
        lifespan="on",
    )
    assert RawSocket(server).accepted().message() == "a pool"


def test_a_slow_reader_holds_the_application_back(serve_asgi) -> None:
    server = serve_asgi(ENDS, "--write-stall-ms", "0")
    client = RawSocket(server, "/flood").accepted()
    last: list[bytes] = [b"", b"x"]

    def rests() -> bool:
        last.append(server.get("/").body)
        time.sleep(0.1)  # between two looks
        return last[-1] == last[-2]

    wait_for(rests, "the application to wait")
    assert 0 < ast.literal_eval(last[-1].decode())[0] < 40_000
    assert all(message == b"x" * 1000 for message in client.messages(1000))
