"""Limits whose consequence an application could change, with ASGI."""

# pyright: basic

import json

seen = []


async def app(scope, receive, send):
    if scope["path"] != "/seen":
        seen.append(scope["path"])
    body = b""
    if scope["path"] == "/endless":
        await send({"type": "http.response.start", "status": 200, "headers": []})
        try:
            while True:
                await send({"type": "http.response.body", "body": b"x" * 65536, "more_body": True})
        finally:
            seen.append("end")
    while scope["path"] != "/unread":
        message = await receive()
        if message["type"] == "http.disconnect":
            seen.append("gone")
            return
        body += message["body"]
        if not message["more_body"]:
            break
    if scope["path"] == "/seen":
        body = json.dumps(seen).encode()
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": body})
