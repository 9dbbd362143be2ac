"""What other interfaces than the native one see of WebSockets over HTTP/2."""

# pyright: basic


async def asgi(scope, receive, send):
    assert (scope["type"], scope["http_version"], scope["scheme"]) == ("websocket", "2", "ws")
    await receive()
    await send({"type": "websocket.accept"})
    message = await receive()
    await send({"type": "websocket.send", "text": message["text"]})


def wsgi(environ, start_response):
    raise AssertionError("no CONNECT comes here")
