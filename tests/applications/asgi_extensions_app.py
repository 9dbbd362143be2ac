"""Files, early hints and trailer sections."""

# pyright: basic

import os

from asgi_parts import answer, body, start


async def app(scope, receive, send):
    path = scope["path"]
    if path == "/path":
        await start(send)
        await send({"type": "http.response.pathsend", "path": os.path.abspath("file")})
    elif path == "/missing":
        await start(send)
        await send({"type": "http.response.pathsend", "path": "/no/such/file"})
    elif path == "/pieces":
        with open("file", "rb") as file:
            await start(send, 200, (b"content-length", b"150003"))
            await body(send, b"abc", True)
            await send(
                {
                    "type": "http.response.zerocopysend",
                    "file": file,
                    "offset": 100_000,
                    "count": 100_000,
                    "more_body": True,
                }
            )
            await send(
                {"type": "http.response.zerocopysend", "file": file.fileno(), "offset": 250_000}
            )
    elif path == "/pipe":
        reader, writer = os.pipe()
        await start(send)
        try:
            await send({"type": "http.response.zerocopysend", "file": reader})
        except ValueError as error:
            await body(send, str(error).encode())
        os.close(reader)
        os.close(writer)
    elif path == "/hint":
        await send({"type": "http.response.early_hint", "links": [b"</a.css>; rel=preload"]})
        await answer(send, b"x")
    else:
        await start(send, trailers=True)
        await body(send, b"x")
        await send(
            {
                "type": "http.response.trailers",
                "headers": [(b"digest", b"1")],
                "more_trailers": True,
            }
        )
        await send({"type": "http.response.trailers", "headers": [(b"more", b"2")]})
