"""What ASGI applications of tests are made of: messages in one call, and the whole content of a request."""

# pyright: basic


async def start(send, status=200, *headers, **more):
    await send({"type": "http.response.start", "status": status, "headers": list(headers), **more})


async def body(send, data=b"", more=False):
    await send({"type": "http.response.body", "body": data, "more_body": more})


async def answer(send, data, *headers):
    await start(send, 200, *headers)
    await body(send, data)


async def read(receive):
    whole = b""
    while True:
        message = await receive()
        assert message["type"] == "http.request", message
        whole += message.get("body", b"")
        if not message.get("more_body", False):
            return whole
