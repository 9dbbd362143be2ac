"""Names of requests, responses and WebSockets in other frameworks: an ``AttributeError`` says what to write.

They are on the classes, as a ``__getattr__`` would cost every attribute of every request. Tests:
``tests/gateway/test_hints.py``.
"""

from __future__ import annotations

from typing import Final, NoReturn

from citius._core import Request, Response, WebSocket

_OF_BOTH: Final = {
    "query_params": "it is called query",
    "url": "write target, path, host or scheme",
    "base_url": "write scheme and host",
    "scope": "there is none; what ASGI has in it are attributes such as path, headers and client",
    "session": "write citius.web.middleware.session(request)",
    "user": "write citius.web.security.principal(request)",
    "auth": "write citius.web.security.principal(request)",
}
_OF_REQUESTS: Final = {
    **_OF_BOTH,
    "args": "it is called query",
    "GET": "it is called query",
    "POST": "write form()",
    "values": "write query or form()",
    "files": "write form(), or take an UploadFile",
    "data": "write body()",
    "get_json": "write json()",
    "get_data": "write body()",
    "url_for": "write request.app.url_for(name)",
    "content_type": 'write header("content-type")',
    "remote_addr": "write client",
    "is_disconnected": "a handler is cancelled when its client disconnects",
    "receive": "write read() or stream()",
}
_OF_RESPONSES: Final = {
    "set_cookie": "write response.headers.set_cookie(…)",
    "delete_cookie": "write response.headers.delete_cookie(…)",
    "mimetype": "it is called content_type",
    "media_type": "it is called content_type",
    "status": "it is called status_code",
    "data": "it is called body",
    "content": "it is called body",
    "text": "it is called body",
}
_OF_SOCKETS: Final = {
    **_OF_BOTH,
    "send_text": "write await ws.send(text)",
    "send_bytes": "write await ws.send(data)",
    "receive_text": "write await ws.receive()",
    "receive_bytes": "write await ws.receive()",
    "receive_json": "write json.loads(await ws.receive())",
    "iter_text": "write `async for message in ws`",
    "iter_bytes": "write `async for message in ws`",
    "iter_json": "write `async for message in ws`",
    "client_state": "write is_open",
    "application_state": "write is_open",
    "send_denial_response": "return a Response before accept",
}


class _OtherName:
    """An attribute that is not there."""

    def __init__(self, name: str, hint: str) -> None:
        self._name = name
        self._hint = hint

    def __get__(self, value: object, of: type | None = None) -> NoReturn:
        name = getattr(of, "__name__", "object")
        raise AttributeError(f"{name!r} object has no attribute {self._name!r}; {self._hint}")


def add_hints() -> None:
    """Have the classes of the extension say what is meant."""
    _add(Request, _OF_REQUESTS)
    _add(Response, _OF_RESPONSES)
    _add(WebSocket, _OF_SOCKETS)


def serial_hint(name: str) -> str:
    """What to write in place of an attribute of a WebSocket of serial code; empty if that is not known."""
    return _OF_SOCKETS.get(name, "").replace("await ", "")


def _add(cls: type, names: dict[str, str]) -> None:
    for name, hint in names.items():
        if name not in cls.__dict__:
            setattr(cls, name, _OtherName(name, hint))
