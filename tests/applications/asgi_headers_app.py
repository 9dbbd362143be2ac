"""Headers in every form and order."""

# pyright: basic

from asgi_parts import body

SAID = [
    [],
    [(b"content-type", b"text/plain"), (b"content-length", b"1")],
    [(b"content-type", b"text/html"), (b"content-length", b"1")],
    [(b"content-type", b"text/plain"), (b"Content-Length", b"1"), (b"x", b"1")],
    [(b"content-type", b"text/plain"), (b"x", b"2")],
    [[b"content-type", b"text/plain"], [b"x", b"2"]],
    [(b"set-cookie", b"a=1"), (b"set-cookie", b"b=2")],
    ((b"x", b"3"),),
    [(b"content-length", b"1"), (b"x", b" 4 ")],
]


async def app(scope, receive, send):
    number = int(scope["query_string"])
    headers = SAID[number % len(SAID)]
    # Other objects, as most frameworks make them for each answer.
    if number % 2 and headers and type(headers[0]) is tuple:
        headers = [(bytes(bytearray(n)), bytes(bytearray(v))) for n, v in headers]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    await body(send, b"x")
