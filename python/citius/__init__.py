"""Citius: a web server and micro-framework with a Rust core.

    from citius import App

    app = App()

    @app.get("/hello/{name}")
    def hello(name: str) -> dict[str, str]:
        return {"hello": name}

``citius serve module:app`` serves it. Names are imported when they are first used, so that a worker
holds only what its application needs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from citius._core import Request, Response, Room, WebSocket, __version__
    from citius.errors import (
        AppImportError,
        BadRequest,
        CitiusError,
        ClientDisconnected,
        ConfigError,
        Conflict,
        ConnectionClosed,
        ContentTooLarge,
        Forbidden,
        Gone,
        HTTPError,
        InternalServerError,
        MethodNotAllowed,
        NotAcceptable,
        NotFound,
        ServiceUnavailable,
        TooManyRequests,
        Unauthorized,
        UnprocessableContent,
        UnsupportedMediaType,
    )
    from citius.serving.server import serve
    from citius.serving.worker_info import WorkerInfo, worker_info
    from citius.settings.config import Config
    from citius.web.app import App
    from citius.web.compiled import get_include, load_handlers
    from citius.web.forms import FormData, Upload
    from citius.web.headers import Headers, MutableHeaders, QueryParams
    from citius.web.responses import html_response, json_response, msgpack_response, redirect
    from citius.web.router import Router
    from citius.web.sources import Body, Cookie, Depends, File, Form, Header, Path, Query
    from citius.web.websocket import SerialWebSocket

__all__ = [
    "App",
    "AppImportError",
    "BadRequest",
    "Body",
    "CitiusError",
    "ClientDisconnected",
    "Config",
    "ConfigError",
    "Conflict",
    "ConnectionClosed",
    "ContentTooLarge",
    "Cookie",
    "Depends",
    "File",
    "Forbidden",
    "Form",
    "FormData",
    "Gone",
    "HTTPError",
    "Header",
    "Headers",
    "InternalServerError",
    "MethodNotAllowed",
    "MutableHeaders",
    "NotAcceptable",
    "NotFound",
    "Path",
    "Query",
    "QueryParams",
    "Request",
    "Response",
    "Room",
    "Router",
    "SerialWebSocket",
    "ServiceUnavailable",
    "TooManyRequests",
    "Unauthorized",
    "UnprocessableContent",
    "UnsupportedMediaType",
    "Upload",
    "WebSocket",
    "WorkerInfo",
    "__version__",
    "get_include",
    "html_response",
    "json_response",
    "load_handlers",
    "msgpack_response",
    "redirect",
    "serve",
    "worker_info",
]

_HOMES = {
    "_core": ("Request", "Response", "Room", "WebSocket", "__version__"),
    "serving.server": ("serve",),
    "serving.worker_info": ("WorkerInfo", "worker_info"),
    "settings.config": ("Config",),
    "web.app": ("App",),
    "web.router": ("Router",),
    "web.sources": ("Body", "Cookie", "Depends", "File", "Form", "Header", "Path", "Query"),
    "web.compiled": ("get_include", "load_handlers"),
    "web.forms": ("FormData", "Upload"),
    "web.headers": ("Headers", "MutableHeaders", "QueryParams"),
    "web.responses": ("html_response", "json_response", "msgpack_response", "redirect"),
    "web.websocket": ("SerialWebSocket",),
}
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names}


def __getattr__(name: str) -> Any:
    """Import the home of a public name; what is in no other home is an exception."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    value = getattr(import_module(f"citius.{_HOME_OF.get(name, 'errors')}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
