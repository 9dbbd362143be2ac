"""Sessions that echo, and others that show one thing each."""

from __future__ import annotations

import asyncio
from typing import Annotated

from citius import (
    App,
    Depends,
    Forbidden,
    Request,
    Room,
    WebSocket,
    WebTransportSession,
    WebTransportStream,
)
from citius.errors import ConnectionClosed, StreamReset

app = App()
room = Room()
kept = app.room("kept", history=1000)
events: list[str] = []


@app.get("/events")
def told() -> list[str]:
    """What has happened."""
    return events


async def echo_stream(session: WebTransportSession, stream: WebTransportStream) -> None:
    """Send all of a stream back: on itself, or on one of our own."""
    try:
        data = await stream.read_all(1 << 20)
        if not stream.is_bidirectional:
            stream = await session.open_unidirectional()
        await stream.write(data)
        await stream.close()
    except StreamReset as error:
        events.append(f"reset {error.code}")


@app.webtransport("/echo")
async def echo(session: WebTransportSession) -> None:
    """Streams and datagrams go back."""

    async def datagrams() -> None:
        async for data in session.datagrams():
            session.send_datagram(data)

    async with asyncio.TaskGroup() as group:
        group.create_task(datagrams())
        async for stream in session.incoming():
            group.create_task(echo_stream(session, stream))
    events.append(f"closed {session.close_code} {session.close_reason}")


def user_of(request: Request) -> str:
    """Who asks."""
    user = request.header("x-user")
    if user is None:
        raise Forbidden("no user")
    return user


@app.webtransport("/rooms/{name}/{number:int}")
async def described(
    session: WebTransportSession, name: str, number: int, user: Annotated[str, Depends(user_of)]
) -> None:
    """Parameters and dependencies; closes with what it got."""
    await session.accept(session.subprotocols[-1] if session.subprotocols else None)
    await session.close(number, f"{name} {user} {session.path} {session.subprotocol}")


@app.webtransport("/opens")
async def opens(session: WebTransportSession) -> None:
    """Open a stream of each kind; what the client sends on the first goes to the second."""
    both = await session.open_bidirectional()
    one = await session.open_unidirectional()
    await both.write(b"both")
    await one.write(b"one ")
    await one.write(await both.read_all(1000))
    await one.close()
    await both.close()
    await session.wait_closed()


@app.webtransport("/codes")
async def codes(session: WebTransportSession) -> None:
    """Reset and stop a stream with codes, and say how the client does the same."""
    async for stream in session.incoming():
        kind = await stream.read(1)
        if kind == b"r":
            stream.reset(7)
        elif kind == b"s":
            stream.stop(8)
        elif kind == b"w":
            await stream.write(b"ready")
            try:
                while True:
                    await stream.read()
                    await stream.write(b"x" * 1000)
            except StreamReset as error:
                events.append(f"client reset {error.code}")
        else:
            try:
                while True:
                    await stream.write(b"x" * 65536)
            except StreamReset as error:
                events.append(f"client stopped {error.code}")


@app.webtransport("/fails")
async def fails(session: WebTransportSession) -> None:
    """Fail after the acceptance."""
    await session.receive_datagram()
    raise ValueError("on purpose")


@app.webtransport("/refuses")
async def refuses(session: WebTransportSession) -> None:
    """Fail before it."""
    raise Forbidden("not you")


@app.webtransport("/waits")
async def waits(session: WebTransportSession) -> None:
    """Be elsewhere when the client goes."""
    await session.accept()
    events.append("waits")
    try:
        await asyncio.sleep(3600)
    finally:
        events.append("cancelled")


@app.webtransport("/late")
async def late(session: WebTransportSession) -> None:
    """Accept after the client has sent streams and datagrams."""
    while "go" not in events:
        await asyncio.sleep(0.005)
    await echo(session)


@app.get("/go")
def go() -> str:
    """Let it accept."""
    events.append("go")
    return "gone"


@app.webtransport("/slow")
async def slow(session: WebTransportSession) -> None:
    """Take nothing until a stream has come, then tell what has become of datagrams."""
    await session.accept()
    async for stream in session.incoming():
        count = 0
        while session._datagrams:  # pyright: ignore[reportPrivateUsage]
            await session.receive_datagram()
            count += 1
        await stream.write(f"{count} {session.datagrams_dropped}".encode())
        await stream.close()


@app.webtransport("/slow-to-take")
async def slow_to_take(session: WebTransportSession) -> None:
    """Take no stream until a datagram has come, and tell how many there are; then echo."""
    await session.receive_datagram()
    waiting = len(session._incoming)  # pyright: ignore[reportPrivateUsage]
    session.send_datagram(str(waiting).encode())
    async for stream in session.incoming():
        if stream.is_writable:
            await echo_stream(session, stream)


@app.webtransport("/drains")
async def drains(session: WebTransportSession) -> None:
    """Wait for the end that one of the two sides asks for."""
    await session.accept()
    session.send_datagram(b"accepted")
    await session.wait_draining()
    events.append("draining")
    stream = await session.open_unidirectional()
    await stream.write(b"last words")
    await stream.close()
    await session.wait_closed()


@app.webtransport("/room")
async def member(session: WebTransportSession) -> None:
    """One of a room."""
    room.join(session)
    async for data in session.datagrams():
        room.send(data, exclude=session)


@app.websocket("/room")
async def socket(ws: WebSocket) -> None:
    """The other kind."""
    room.join(ws)
    async for message in ws:
        room.send(message, exclude=ws)


@app.webtransport("/kept")
async def returning(session: WebTransportSession) -> None:
    """One that has been away since before the history began."""
    kept.join(session, after="aaaaaaaa-1")  # pyright: ignore[reportArgumentType]
    await session.wait_closed()


@app.get("/kept/{count:int}")
def say(count: int) -> int:
    """Send so many messages in one turn."""
    for number in range(count):
        kept.send(f"{number:04}")
    return len(kept)


@app.get("/members")
def members() -> int:
    """How many there are."""
    return len(room)


@app.webtransport("/misuse")
async def misuse(session: WebTransportSession) -> None:
    """What is refused."""
    await session.accept()
    told: list[str] = []
    for act in (
        lambda: session.send_datagram(b"x" * 70_000),
        lambda: session.send_datagram("text"),  # pyright: ignore[reportArgumentType]
    ):
        try:
            act()
        except (ValueError, TypeError) as error:
            told.append(type(error).__name__)
    for awaited in (session.accept(), session.close(-1), session.close(0, "x" * 1025)):
        try:
            await awaited
        except (ValueError, RuntimeError) as error:
            told.append(type(error).__name__)
    stream = await session.open_unidirectional()
    try:
        await stream.read()
    except RuntimeError as error:
        told.append(type(error).__name__)
    await stream.close()
    try:
        await stream.write(b"x")
    except RuntimeError as error:
        told.append(type(error).__name__)
    await session.close(1, " ".join(told))
    try:
        await session.open_bidirectional()
    except ConnectionClosed as error:
        events.append(f"{error.code} {error.reason}")
