"""Sessions by ASGI's messages: an echo, an opened stream, refusals, a failure."""

from __future__ import annotations

import asyncio
import json
from typing import Any

events: list[object] = []


async def echo(receive: Any, send: Any) -> None:
    """Send all back."""
    kept: dict[int, bytes] = {}
    while True:
        message = await receive()
        kind = message["type"].removeprefix("webtransport.")
        if kind == "stream.receive":
            stream = message["stream"]
            kept[stream] = kept.get(stream, b"") + message["data"]
            if not message["more_data"]:
                data = kept.pop(stream)
                if stream & 2:
                    await send(
                        {"type": "webtransport.stream.open", "id": data, "bidirectional": False}
                    )
                else:
                    await send({"type": "webtransport.stream.send", "stream": stream, "data": data})
                    await send(
                        {"type": "webtransport.stream.send", "stream": stream, "more_data": False}
                    )
        elif kind == "stream.opened":
            await send(
                {"type": "webtransport.stream.send", "stream": message["stream"], "data": message["id"],
                 "more_data": False}
            )  # fmt: skip
        elif kind == "datagram.receive":
            await send({"type": "webtransport.datagram.send", "data": message["data"]})
        elif kind == "disconnect":
            events.append([message["code"], message["reason"]])
            return
        else:
            events.append({name: value for name, value in message.items() if name != "data"})


async def sleepy(receive: Any, send: Any) -> None:
    """Take nothing until the client says so by another request; then tell what comes."""
    while "go" not in events:
        await asyncio.sleep(0.005)
    while (message := await receive())["type"] != "webtransport.disconnect":
        if message["type"] == "webtransport.stream.receive":
            events.append([message["stream"], len(message["data"]), message["more_data"]])
        elif message["type"] == "webtransport.datagram.receive":
            events.append(message["data"].decode())


async def stubborn(receive: Any, send: Any) -> None:
    """Send on a stream, whatever is said of it."""
    while (message := await receive())["type"] != "webtransport.stream.stop":
        pass
    for _ in range(100):
        await send(
            {"type": "webtransport.stream.send", "stream": message["stream"], "data": b"x" * 65536}
        )
    events.append("has sent")


async def app(scope: Any, receive: Any, send: Any) -> None:
    """Serve one scope."""
    if scope["type"] == "lifespan":
        return
    if scope["type"] == "http":
        if scope["path"] == "/go":
            events.append("go")
        body = json.dumps(events).encode()
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": body})
        return
    assert scope["type"] == "webtransport"
    assert scope["http_version"] == "3"
    assert "webtransport" in scope["extensions"]
    assert await receive() == {"type": "webtransport.connect"}
    path = scope["path"]
    if path == "/refused":
        await send({"type": "webtransport.close"})
    elif path == "/answered":
        headers = [(b"x-why", b"because")]
        await send({"type": "webtransport.http.response.start", "status": 418, "headers": headers})
        await send({"type": "webtransport.http.response.body", "body": b"tea", "more_body": True})
        await send({"type": "webtransport.http.response.body", "body": b"pot"})
    elif path == "/forgets":
        return
    elif path == "/closes":
        await send({"type": "webtransport.accept", "subprotocol": scope["subprotocols"][0]})
        await send({"type": "webtransport.close", "code": 5, "reason": "done"})
        message = await receive()
        events.append([message["code"], message["reason"]])
    elif path == "/fails":
        await send({"type": "webtransport.accept"})
        raise ValueError("on purpose")
    else:
        await send({"type": "webtransport.accept", "headers": [(b"x-echo", b"1")]})
        await {"/sleepy": sleepy, "/stubborn": stubborn}.get(path, echo)(receive, send)
