"""An ASGI application for tests of HTTP/2."""

# pyright: basic

import json

events = []


async def answer(send, data, **more):
    await send({"type": "http.response.start", "status": 200, "headers": [], **more})
    await send({"type": "http.response.body", "body": data})


async def app(scope, receive, send):
    path = scope["path"]
    if path == "/scope":
        plain = {k: scope[k] for k in ("type", "http_version", "scheme", "path", "method")}
        plain["query"] = scope["query_string"].decode()
        plain["headers"] = [[k.decode(), v.decode()] for k, v in scope["headers"]]
        plain["client"] = scope["client"][0]
        await answer(send, json.dumps(plain).encode())
    elif path == "/echo":
        await send({"type": "http.response.start", "status": 200, "headers": []})
        while True:
            message = await receive()
            more = message.get("more_body", False)
            await send({"type": "http.response.body", "body": message["body"], "more_body": more})
            if not more:
                return
    elif path == "/wait":
        events.append("began")
        message = await receive()
        assert message == {"type": "http.request", "body": b"", "more_body": False}, message
        events.append((await receive())["type"])
    elif path == "/endless":
        await send({"type": "http.response.start", "status": 200, "headers": []})
        sent = 0
        try:
            while True:
                await send({"type": "http.response.body", "body": b"x" * 16384, "more_body": True})
                sent += 16384
                events[:] = [sent]
        except OSError:
            events.append("gone")
    elif path == "/hints":
        await send({"type": "http.response.early_hint", "links": [b"</a.css>; rel=preload"]})
        await answer(send, b"hinted")
    elif path == "/trailers":
        await send({"type": "http.response.start", "status": 200, "headers": [], "trailers": True})
        await send({"type": "http.response.body", "body": b"body"})
        await send({"type": "http.response.trailers", "headers": [(b"x-sum", b"4")]})
    elif path == "/events":
        await answer(send, json.dumps(events).encode())
