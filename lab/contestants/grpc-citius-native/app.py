"""Calls of one message, decoded and encoded here: no deadlines, no compression, no details of errors."""

from collections.abc import Iterator

from citius import App, Request, Response

app = App()
OK = {"grpc-status": "0"}


def text_of(message: bytes) -> str:
    """The text of a StringValue of at most 127 bytes."""
    assert message[0] == 0x0A
    return message[2 : 2 + message[1]].decode()


def message_of(text: str) -> bytes:
    """The StringValue of a text of at most 127 bytes."""
    data = text.encode()
    return b"\n" + bytes((len(data),)) + data


def framed(text: str) -> bytes:
    """The same behind gRPC's five bytes."""
    data = message_of(text)
    return b"\0" + len(data).to_bytes(4, "big") + data


@app.post("/lab.Echo/Unary")
def unary(request: Request) -> Response:
    """One message."""
    body, kind = request.body(), request.header("content-type")
    if kind == "application/grpc":
        made = iter((framed(text_of(body[5:])),))
        return Response(made, 200, None, kind, trailers=OK)
    if kind == "application/json":
        return Response(f'"{request.json(str)}"', 200, None, kind)
    return Response(message_of(text_of(body)), 200, None, kind)


@app.post("/lab.Echo/Stream")
def stream(request: Request) -> Response:
    """A hundred messages."""
    text = text_of(request.body()[5:])

    def messages() -> Iterator[bytes]:
        for _ in range(100):
            yield framed(text)

    return Response(messages(), 200, None, "application/grpc", trailers=OK)
