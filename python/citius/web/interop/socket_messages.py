"""WebSockets of ASGI applications inside a native one: ASGI's messages on one side, a socket on the other.

An application that is mounted gets all messages; ASGI middleware accepts or refuses by them, and what it
calls speaks to the socket itself. A WebTransport session has messages for its refusal alone. Tests:
``tests/interop/test_mounts.py``, ``tests/interop/test_middleware.py``.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, cast

from citius._core import Response
from citius.coroutines import contained
from citius.errors import ConnectionClosed

if TYPE_CHECKING:
    from citius.web.interop.scopes import ASGIApplication, Message
    from citius.web.middleware.base import Socket


class SocketMessages:
    """What ``receive`` and ``send`` of one call are.

    Args:
        socket: What is opened.
        kind: What its messages begin with: ``websocket`` or ``webtransport``. A session is only refused here.
    """

    def __init__(self, socket: Socket, kind: str) -> None:
        self._socket: Any = socket
        self._kind = kind
        self._accepted: asyncio.Future[bool] = asyncio.get_running_loop().create_future()
        self._has_connected = False
        self._refusal: Response | None = None
        self._gone = asyncio.Event()

    async def serve(
        self, app: ASGIApplication, scope: dict[str, Any], tasks: set[asyncio.Task[None]]
    ) -> Response | None:
        """Call the application; what it returns is a refusal."""
        task = asyncio.get_running_loop().create_task(_run(app, scope, self.receive, self.send))
        tasks.add(task)
        task.add_done_callback(tasks.discard)
        try:
            # Not cancelled with the handler: the application hears that the client has left.
            await asyncio.wait([task])
        except asyncio.CancelledError:
            self._gone.set()
            self._settle(False)
            raise
        error = task.exception()
        if error is not None:
            raise error
        return self.outcome()

    def outcome(self) -> Response | None:
        """What refuses it, if anything does, once the application has ended.

        Raises:
            RuntimeError: The application has neither accepted nor refused it.
        """
        if self._refusal is None and not self._accepted.done():
            what = "WebSocket" if self._kind == "websocket" else "session"
            raise RuntimeError(f"the application ended without accepting or closing the {what}")
        return self._refusal

    def note_outcome(self, refusal: Response | None) -> None:
        """Note what a native handler, called in place of an application, has made of it: it is over."""
        self._refusal = refusal
        self._gone.set()
        self._settle(refusal is None)

    def _settle(self, accepted: bool) -> None:
        if not self._accepted.done():
            self._accepted.set_result(accepted)

    async def receive(self) -> Message:
        """The next message for the application."""
        if not self._has_connected:
            self._has_connected = True
            return {"type": f"{self._kind}.connect"}
        if not await asyncio.shield(self._accepted) or self._gone.is_set():
            return {"type": f"{self._kind}.disconnect", "code": 1006, "reason": ""}
        try:
            message = await self._socket.receive()
        except ConnectionClosed:
            code = self._socket.close_code or 1006
            reason = self._socket.close_reason or ""
            return {"type": f"{self._kind}.disconnect", "code": code, "reason": reason}
        if isinstance(message, str):
            return {"type": f"{self._kind}.receive", "text": message}
        return {"type": f"{self._kind}.receive", "bytes": message}

    async def send(self, message: Message) -> None:
        """Take a message of the application."""
        kind: str = message["type"]
        if not self._accepted.done():
            return await self._decide(kind, message)
        if kind == "websocket.send":
            text: str | None = message.get("text")
            await self._socket.send(text if text is not None else message["bytes"])
        elif kind == f"{self._kind}.close":
            await self._socket.close(message.get("code") or 1000, message.get("reason") or "")
        elif kind == f"{self._kind}.http.response.body" and self._refusal is not None:
            self._refusal.body = cast("bytes", self._refusal.body) + bytes(message.get("body", b""))
        else:
            raise RuntimeError(f"expected 'websocket.send' or 'websocket.close', got {kind!r}")

    async def _decide(self, kind: str, message: Message) -> None:
        """The first message: whether the client gets its WebSocket."""
        headers = [
            (bytes(name).decode("latin-1"), bytes(value).decode("latin-1"))
            for name, value in message.get("headers") or ()
        ]
        if kind == "websocket.accept" and self._kind == "websocket":
            await self._socket.accept(message.get("subprotocol"), headers)
            self._settle(True)
        elif kind == f"{self._kind}.close":
            self._refusal = Response(b"", 403)
            self._settle(False)
        elif kind == f"{self._kind}.http.response.start":
            self._refusal = Response(b"", message["status"], headers)
            self._settle(False)
        else:
            raise RuntimeError(f"expected 'websocket.accept' or 'websocket.close' before {kind!r}")


async def _run(app: ASGIApplication, scope: dict[str, Any], receive: Any, send: Any) -> None:
    await contained(app, scope, receive, send)
