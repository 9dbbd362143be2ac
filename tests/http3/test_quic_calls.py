"""Procedures on connections of QUIC without HTTP/3, whose ALPN is ``citius-rpc``: one stream is one call.

The client is aioquic's QUIC, to which the wire of docs/guides/rpc.md is written here by hand.
"""

# pyright: basic

from __future__ import annotations

import asyncio
import json
import signal

import msgspec
import pytest
from callpeer import peer
from citius import App
from citius.errors import ConfigError
from h3peer import h3_client
from rig import TIMEOUT_S, application
from wtpeer import wt_client

APP = application("session_calls_app")
REFUSES = """
from citius import App, Depends, Forbidden
app = App()
def refuse():
    raise Forbidden
app.rpc("note")(refuse)
app.webtransport_rpc("/rpc", quic=True, dependencies=[Depends(refuse)])
"""
TWICE = """
from citius import App
app = App()
app.webtransport_rpc("/one", quic=True)
app.webtransport_rpc("/two", quic=True)
"""
NO_ERROR, REJECTED, REFUSED = 0x100, 0x10B, 0x10F


async def until_told(server, event: str) -> None:
    async with asyncio.timeout(TIMEOUT_S), h3_client(server) as client:
        while event not in json.loads((await client.get("/events")).body):
            await asyncio.sleep(0.005)


def played(play):
    """Play with a connection to the application."""

    def test(serve_h3) -> None:
        server = serve_h3(app=APP)

        async def main() -> None:
            async with peer(server) as client:
                await play(server, client)

        asyncio.run(main())
        assert "Traceback" not in server.err

    test.__name__, test.__doc__ = play.__name__, play.__doc__
    return test


@played
async def test_calls(server, client) -> None:
    assert client._quic.tls.alpn_negotiated == "citius-rpc"
    assert await client.called("math.add", [1, 2]) == [None, 3]
    assert await client.called("math.add", {"a": 5}) == [None, 6]
    assert await client.called("math.sum", [1.5] * 100_000) == [None, 150_000.0]
    assert await client.called("threaded", ["x"]) == [None, "X"]
    error, _ = await client.called("nothing", [])
    assert error["type"] == "MethodNotFound"
    error, _ = await client.called("late", [])
    assert error["type"] == "DeadlineExceeded"
    reply = await client.response(
        client.open(b'{"jsonrpc":"2.0","method":"math.add","params":[1,2],"id":"a"}')
    )
    assert json.loads(reply) == {"jsonrpc": "2.0", "id": "a", "result": 3}
    # Nothing of the server's own: no control stream, no stream of QPACK.
    assert all(stream % 4 == 0 for stream in client.data)


@played
async def test_many_calls_at_once(server, client) -> None:
    """More than the client may have open, all begun before the session is granted."""
    replies = await asyncio.gather(*(client.called("math.add", [n, 1]) for n in range(300)))
    assert replies == [[None, n + 1] for n in range(300)]


@played
async def test_notifications(server, client) -> None:
    client.open(msgspec.msgpack.encode([2, "note", ["one way"]]), uni=True)
    await until_told(server, "one way")


@played
async def test_a_cancelled_stream_cancels_its_call(server, client) -> None:
    streams = {
        name: client.open(msgspec.msgpack.encode([0, 1, "wait", [name]])) for name in ("one", "two")
    }
    for name in streams:
        await until_told(server, f"{name} waits")
    client._quic.stop_stream(streams["one"], 0)
    client.transmit()
    await until_told(server, "one is cancelled")
    assert await client.called("math.add", [3, 4]) == [None, 7]
    client.close()
    await until_told(server, "two is cancelled")


@played
async def test_a_call_does_not_wait_for_others(server, client) -> None:
    message = msgspec.msgpack.encode([0, 7, "math.add", [1, 2]])
    client.open(msgspec.msgpack.encode([0, 1, "wait", ["first"]]))
    half = client.open(message[:5], ends=False)
    assert await client.called("math.add", [3, 4]) == [None, 7]
    client.send(half, message[5:], ends=True)
    assert msgspec.msgpack.decode(await client.response(half)) == [1, 7, None, 3]


@pytest.mark.parametrize("message", [b"", b"\xc1", b"[]", b"\x00\x04\x00", b"PRI * HTTP/2.0\r\n"])
def test_what_is_no_request_is_refused_by_name(serve_h3, message: bytes) -> None:
    server = serve_h3(app=APP)

    async def main() -> None:
        async with peer(server) as client:
            reply = json.loads(await client.response(client.open(message)))
            assert reply["error"]["data"]["type"] == "InvalidRequest"
            assert await client.called("math.add", [1, 2]) == [None, 3]

    asyncio.run(main())


def test_limits_are_those_of_tcp(serve_h3) -> None:
    server = serve_h3(
        "--rpc-message-bytes-max", "1000", "--rpc-message-ms", "50", "--rpc-calls-open-max", "2",
        app=APP,
    )  # fmt: skip

    async def main() -> None:
        async with peer(server) as client:
            reply = json.loads(await client.response(client.open(b"{" * 1001)))
            assert reply["error"]["data"]["type"] == "MessageTooLong"
            slow = client.open(b"{", ends=False)
            reply = json.loads(await client.response(slow))
            assert reply["error"]["data"]["type"] == "MessageTooSlow"
            waiting = [
                client.open(msgspec.msgpack.encode([0, 1, "wait", [name]])) for name in ("a", "b")
            ]
            for name in ("a", "b"):
                await until_told(server, f"{name} waits")
            third = client.open(msgspec.msgpack.encode([0, 7, "math.add", [1, 2]]))
            client._quic.stop_stream(waiting[0], 0)
            client.transmit()
            await client.response(third)
            await until_told(server, "a is cancelled")

    asyncio.run(main())


def test_a_reset_stream_is_no_call(serve_h3) -> None:
    server = serve_h3(app=APP)

    async def main() -> None:
        async with peer(server) as client:
            stream = client.open(msgspec.msgpack.encode([0, 7, "note", ["reset"]]), ends=False)
            client._quic.reset_stream(stream, 0)
            client.transmit()
            assert await client.called("note", ["after"]) == [None, None]
            async with h3_client(server) as other:
                assert "reset" not in json.loads((await other.get("/events")).body)

    asyncio.run(main())


def test_a_server_that_stops_finishes_calls_and_takes_no_others(serve_h3, tmp_path) -> None:
    release = tmp_path / "release"
    server = serve_h3(app=APP, env={"RELEASE": str(release)})

    async def main() -> None:
        async with peer(server) as client:
            stream = client.open(msgspec.msgpack.encode([0, 1, "released", []]))
            await until_told(server, "held")
            server.signal(signal.SIGTERM)
            late: list[int] = []
            while not (set(late) & set(client.reset)):
                late.append(client.open(msgspec.msgpack.encode([0, 1, "note", ["late"]])))
                await client.until(lambda: {*client.ended, *client.reset} >= {*late})
            assert client.reset[late[-1]] == REJECTED
            release.touch()
            await client.until(lambda: stream in client.ended)
            assert msgspec.msgpack.decode(client.data[stream]) == [1, 1, None, "done"]
            await client.until(lambda: client.closed)
            assert client.closed is not None
            assert client.closed.error_code == NO_ERROR

    asyncio.run(main())


def test_dependencies_decide_of_connections(serve_h3) -> None:
    server = serve_h3(app=REFUSES)

    async def main() -> None:
        async with peer(server) as client:
            client.open(msgspec.msgpack.encode([0, 1, "note", []]))
            await client.until(lambda: client.closed)
            assert client.closed is not None
            assert client.closed.error_code == REFUSED

    asyncio.run(main())


def test_without_a_declaration_it_is_not_offered(serve_h3) -> None:
    server = serve_h3()

    async def main() -> None:
        with pytest.raises(ConnectionError):
            async with asyncio.timeout(TIMEOUT_S), peer(server):
                pass

    asyncio.run(main())
    assert "Traceback" not in server.err


def test_http3_beside_it(serve_h3) -> None:
    """A client that offers both gets HTTP/3; sessions of WebTransport call the same procedures."""
    server = serve_h3(app=APP)

    async def main() -> None:
        async with peer(server) as plain, wt_client(server) as client:
            session = await client.session("/rpc")
            message = msgspec.msgpack.encode([0, 7, "math.add", [1, 2]])
            reply = await client.ended(session.open(message, ends=True))
            assert msgspec.msgpack.decode(reply) == [1, 7, None, 3]
            assert await plain.called("math.add", [1, 2]) == [None, 3]

    asyncio.run(main())


def test_declarations_are_checked(serve_h3) -> None:
    with pytest.raises(ConfigError, match="cannot have parameters"):
        App().webtransport_rpc("/{tenant}", quic=True)
    with pytest.raises(AssertionError, match=r"quic=True at /one and /two"):
        serve_h3(app=TWICE)
