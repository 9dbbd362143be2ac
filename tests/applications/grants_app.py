"""What asks for a WebSocket gets a success from everything here, and no acceptance."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from citius import App, Response, WebSocket
from citius.http import Client
from citius.testing.http import MockCall, MockReply, MockTransport

app = App()
seen: list[str] = []


@app.get("/seen")
def called() -> list[str]:
    """What was called as for a request."""
    return seen


@app.websocket("/text")
async def text_of_socket(ws: WebSocket) -> str:
    """Return a value without an acceptance."""
    return "SECRET"


@app.websocket("/success")
async def success_of_socket(ws: WebSocket) -> Response:
    """Refuse, with a status that grants."""
    return Response(b"", 204)


refusing = App()


@refusing.connection_middleware
async def refuse(connection: object, next: object) -> Response:
    """Refuse, with a status that grants."""
    return Response("no")


@refusing.websocket("/member")
async def socket_member(ws: WebSocket) -> None:
    """What is protected."""
    await ws.send("SECRET")


app.mount("/refusing", refusing)


async def asgi(scope: Any, receive: Any, send: Any) -> None:
    """Answer everything with 200."""
    prefix = "websocket.http" if scope["type"] == "websocket" else "http"
    if scope["type"] in ("http", "websocket"):
        if scope["type"] == "http":
            seen.append(f"asgi {scope['method']}")
        await send({"type": f"{prefix}.response.start", "status": 200, "headers": []})
        await send({"type": f"{prefix}.response.body", "body": b"SECRET"})


app.mount("/asgi", asgi)


def wsgi(environ: dict[str, Any], start_response: Any) -> Iterable[bytes]:
    """Answer everything with 200."""
    seen.append(f"wsgi {environ['REQUEST_METHOD']}")
    start_response("200 OK", [])
    return [b"SECRET"]


app.mount_wsgi("/wsgi", wsgi)


def upstream(call: MockCall) -> MockReply:
    """Answer everything with 200."""
    seen.append(f"upstream {call.method}")
    return MockReply(content=b"SECRET")


mock = MockTransport()
mock.add("GET", "http://upstream/member", upstream)
app.forward("/forwarded", Client("http://upstream", transport=mock), path="/member")
