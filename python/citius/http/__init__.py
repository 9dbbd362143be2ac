"""A client of other services, on the event loop that serves: no other thread, one write per turn.

    from citius import App
    from citius.http import Client

    users = Client("https://users.internal", timeout=2.0)
    app = App(lifespan=users.lifespan)

    @app.get("/profile/{id}")
    async def profile(id: int) -> Profile:
        response = await users.get(f"/users/{id}")
        return response.raise_for_status().decode(Profile)

On any other asyncio loop it works too; threads, greenlets and scripts have the same methods in
``client.sync``. ``docs/guides/http-client.md`` says more.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from citius.lazy import exports

if TYPE_CHECKING:
    from citius.http.auth import Auth, Basic, Bearer, Digest, Netrc
    from citius.http.carriers import deadline
    from citius.http.client import Client
    from citius.http.cookies import Cookie, CookieJar
    from citius.http.errors import (
        AddressRefused,
        CircuitOpen,
        ClientClosed,
        ConnectError,
        ConnectTimeout,
        DecodingError,
        InvalidURL,
        LocalProtocolError,
        PoolTimeout,
        ProxyError,
        ReadError,
        ReadTimeout,
        RemoteProtocolError,
        RequestError,
        StatusError,
        TimedOut,
        TlsError,
        TooLarge,
        TooManyRedirects,
        TotalTimeout,
        WriteError,
        WriteTimeout,
    )
    from citius.http.events import ReceivedEvent
    from citius.http.options import CircuitBreaker, Hedge, Limits, Proxy, Retry, Timeout
    from citius.http.request import Request
    from citius.http.response import Response, StreamedResponse, SyncStreamedResponse
    from citius.http.sync import SyncClient
    from citius.http.urls import URL

__all__ = [
    "URL",
    "AddressRefused",
    "Auth",
    "Basic",
    "Bearer",
    "CircuitBreaker",
    "CircuitOpen",
    "Client",
    "ClientClosed",
    "ConnectError",
    "ConnectTimeout",
    "Cookie",
    "CookieJar",
    "DecodingError",
    "Digest",
    "Hedge",
    "InvalidURL",
    "Limits",
    "LocalProtocolError",
    "Netrc",
    "PoolTimeout",
    "Proxy",
    "ProxyError",
    "ReadError",
    "ReadTimeout",
    "ReceivedEvent",
    "RemoteProtocolError",
    "Request",
    "RequestError",
    "Response",
    "Retry",
    "StatusError",
    "StreamedResponse",
    "SyncClient",
    "SyncStreamedResponse",
    "TimedOut",
    "Timeout",
    "TlsError",
    "TooLarge",
    "TooManyRedirects",
    "TotalTimeout",
    "WriteError",
    "WriteTimeout",
    "deadline",
]

__getattr__, __dir__ = exports(
    __name__,
    {
        "auth": ("Auth", "Basic", "Bearer", "Digest", "Netrc"),
        "client": ("Client",),
        "cookies": ("Cookie", "CookieJar"),
        "carriers": ("deadline",),
        "errors": (
            "AddressRefused", "CircuitOpen", "ClientClosed", "ConnectError", "ConnectTimeout",
            "DecodingError", "InvalidURL", "LocalProtocolError", "PoolTimeout", "ProxyError", "ReadError",
            "ReadTimeout", "RemoteProtocolError", "RequestError", "StatusError", "TimedOut", "TlsError",
            "TooLarge", "TooManyRedirects", "TotalTimeout", "WriteError", "WriteTimeout",
        ),
        "events": ("ReceivedEvent",),
        "options": ("CircuitBreaker", "Hedge", "Limits", "Proxy", "Retry", "Timeout"),
        "request": ("Request",),
        "response": ("Response", "StreamedResponse", "SyncStreamedResponse"),
        "sync": ("SyncClient",),
        "urls": ("URL",),
    },
)  # fmt: skip
