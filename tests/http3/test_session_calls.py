"""Procedures on streams of WebTransport sessions: one stream is one call."""

# pyright: basic

from __future__ import annotations

import asyncio
import json
import signal

import msgspec
import pytest
from callpeer import asked, called, sent, until_told
from citius import App
from citius.errors import ConfigError
from rig import application
from wtpeer import DRAIN, to_http3, wt_client

APP = application("session_calls_app")


def played(play):
    """Play with a client of the application."""

    def test(serve_h3) -> None:
        server = serve_h3(app=APP)

        async def main() -> None:
            async with wt_client(server) as client:
                await play(client)

        asyncio.run(main())

    test.__name__, test.__doc__ = play.__name__, play.__doc__
    return test


@played
async def test_calls_of_messagepack(client) -> None:
    session = await client.session("/rpc")
    assert await called(client, session, "math.add", [1, 2]) == [None, 3]
    assert await called(client, session, "math.add", {"a": 5}) == [None, 6]
    assert await called(client, session, "math.sum", [1.5] * 1000) == [None, 1500.0]
    assert await called(client, session, "threaded", ["x"]) == [None, "X"]
    assert await called(client, session, "who", []) == [None, "ada"]
    error, result = await called(client, session, "math.add", ["one"])
    assert (error["type"], result) == ("InvalidParams", None)
    error, _ = await called(client, session, "find", [4])
    assert error == {"type": "Unknown", "message": "there is no user 4", "data": {"id": 4}}
    error, _ = await called(client, session, "nothing", [])
    assert error["type"] == "MethodNotFound"
    error, _ = await called(client, session, "use_cancelled", [])
    assert error["type"] == "Cancelled"
    error, _ = await called(client, session, "late", [])
    assert error["type"] == "DeadlineExceeded"


@played
async def test_calls_of_json(client) -> None:
    session = await client.session("/rpc")
    reply = await asked(client, session, method="math.add", params=[1, 2], id="a")
    assert reply == {"jsonrpc": "2.0", "id": "a", "result": 3}
    reply = await asked(client, session, method="who", id=None)
    assert reply == {"jsonrpc": "2.0", "id": None, "result": "ada"}
    reply = await asked(client, session, method="breaks", id=1)
    assert (reply["error"]["code"], "secret" in str(reply)) == (-32603, False)
    reply = await asked(client, session, method="math.add", params={"c": 1}, id=1)
    assert reply["error"]["code"] == -32602


@played
async def test_notifications(client) -> None:
    session = await client.session("/rpc")
    session.open(msgspec.msgpack.encode([2, "note", ["one way"]]), uni=True, ends=True)
    await until_told(client, "one way")
    message = b'{"jsonrpc":"2.0","method":"note","params":["both ways"]}'
    assert await sent(client, session, message) == b""
    await until_told(client, "both ways")


@pytest.mark.parametrize(
    "message",
    [b"", b"\xc1", b"\x93", b"[]", b"{}", b'{"jsonrpc":"1.0","method":"who","id":1}',
     b"\x94\x00\xa1x\xa1y\x90", b'[{"jsonrpc":"2.0","method":"who","id":1}]',
     b'{"jsonrpc":"2.0","method":"who","id":1,"params":1}'],
)  # fmt: skip
def test_what_is_no_request_is_refused_by_name(serve_h3, message: bytes) -> None:
    server = serve_h3(app=APP)

    async def main() -> None:
        async with wt_client(server) as client:
            session = await client.session("/rpc")
            reply = json.loads(await sent(client, session, message))
            assert (reply["id"], reply["error"]["data"]["type"]) == (None, "InvalidRequest")
            assert await called(client, session, "math.add", [1, 2]) == [None, 3]

    asyncio.run(main())
    assert "Traceback" not in server.err


def test_messages_have_a_limit(serve_h3) -> None:
    server = serve_h3("--rpc-message-bytes-max", "1000", app=APP)

    async def main() -> None:
        async with wt_client(server) as client:
            session = await client.session("/rpc")
            reply = json.loads(await sent(client, session, b"{" * 1001))
            assert reply["error"]["data"]["type"] == "MessageTooLong"
            assert await called(client, session, "math.add", [1, 2]) == [None, 3]

    asyncio.run(main())


@played
async def test_a_cancelled_stream_cancels_its_call(client) -> None:
    session = await client.session("/rpc")
    streams = {
        name: session.open(msgspec.msgpack.encode([0, 1, "wait", [name]]), ends=True)
        for name in ("one", "two")
    }
    for name in streams:
        await until_told(client, f"{name} waits")
    client._quic.stop_stream(streams["one"], to_http3(0))
    client.transmit()
    await until_told(client, "one is cancelled")
    events = json.loads((await client.get("/events")).body)
    assert "two is cancelled" not in events
    # The end of the session is that of all its calls.
    session.close(0)
    await until_told(client, "two is cancelled")


@played
async def test_a_call_does_not_wait_for_others(client) -> None:
    session = await client.session("/rpc")
    session.open(msgspec.msgpack.encode([0, 1, "wait", ["first"]]), ends=True)
    half = session.open(msgspec.msgpack.encode([0, 7, "math.add", [1, 2]])[:5])
    await until_told(client, "first waits")
    assert await called(client, session, "math.add", [3, 4]) == [None, 7]
    session.send(half, msgspec.msgpack.encode([0, 7, "math.add", [1, 2]])[5:], ends=True)
    assert msgspec.msgpack.decode(await client.ended(half)) == [1, 7, None, 3]


@played
async def test_who_may_call_is_decided_for_the_session(client) -> None:
    refused = client.ask("/rpc", ("x-user", "mallory"))
    assert await client.status(refused) == 403


def test_a_session_that_drains_loses_nothing(serve_h3, tmp_path) -> None:
    """What comes while a worker stops is told to its session, as before."""
    release = tmp_path / "release"
    server = serve_h3(app=APP, env={"RELEASE": str(release)})

    async def main() -> None:
        async with wt_client(server) as client:
            session = await client.session("/rpc")
            held = session.open(msgspec.msgpack.encode([0, 1, "released", []]), ends=True)
            await until_told(client, "held")
            server.signal(signal.SIGTERM)
            await client.until(lambda: any(kind == DRAIN for kind, _ in session.parse()))
            assert await called(client, session, "math.sum", [1.5] * 1000) == [None, 1500.0]
            release.touch()
            reply = await asyncio.wait_for(client.ended(held), 10)
            assert msgspec.msgpack.decode(reply) == [1, 1, None, "done"]

    asyncio.run(main())


def test_a_session_needs_http3(tmp_path, serve) -> None:
    with pytest.raises(
        AssertionError, match=r"app\.webtransport_rpc\('/rpc'\) .* no address serves HTTP/3"
    ):
        serve(APP)


def test_paths_are_checked() -> None:
    with pytest.raises(ConfigError, match=r"app\.webtransport"):
        App().webtransport_rpc("rpc")
