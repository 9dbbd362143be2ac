"""Citius: a web server and framework with a Rust core.

    from citius import App

    app = App()

    @app.get("/hello/{name}")
    def hello(name: str) -> dict[str, str]:
        return {"hello": name}

``citius serve module:app`` serves it. Names are imported when they are first used, so that a worker
holds only what its application needs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from citius.lazy import exports

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
        StreamReset,
        TooManyRequests,
        Unauthorized,
        UnprocessableContent,
        UnsupportedMediaType,
    )
    from citius.serving.server import serve
    from citius.serving.worker_info import WorkerInfo, worker_info
    from citius.settings.config import Config
    from citius.web.application.app import App
    from citius.web.application.databases import FromPool, FromRedis
    from citius.web.binding.forms import FormData, FormLimits, UploadFile
    from citius.web.binding.headers import Headers, MutableHeaders, QueryParams
    from citius.web.declarations.parameters.markers import (
        Body,
        Cookie,
        Depends,
        File,
        Form,
        Header,
        Path,
        Query,
    )
    from citius.web.execution.background import defer
    from citius.web.execution.compiled_handlers import get_include, load_handlers
    from citius.web.execution.progress import JobCancelled, Progress
    from citius.web.openapi import OpenAPI
    from citius.web.realtime.broadcast import Broadcast
    from citius.web.realtime.events import Event, EventStream, event_stream, last_event_id
    from citius.web.realtime.websockets import SerialWebSocket
    from citius.web.realtime.webtransport import WebTransportSession, WebTransportStream
    from citius.web.responses.files import content_disposition, file_response
    from citius.web.responses.shortcuts import (
        html_response,
        json_response,
        msgpack_response,
        redirect,
    )
    from citius.web.responses.templates import Templates, flash, flashes
    from citius.web.routing.router import Router
    from citius.web.uploads.upload import Upload

__all__ = [
    "App",
    "AppImportError",
    "BadRequest",
    "Body",
    "Broadcast",
    "CitiusError",
    "ClientDisconnected",
    "Config",
    "ConfigError",
    "Conflict",
    "ConnectionClosed",
    "ContentTooLarge",
    "Cookie",
    "Depends",
    "Event",
    "EventStream",
    "File",
    "Forbidden",
    "Form",
    "FormData",
    "FormLimits",
    "FromPool",
    "FromRedis",
    "Gone",
    "HTTPError",
    "Header",
    "Headers",
    "InternalServerError",
    "JobCancelled",
    "MethodNotAllowed",
    "MutableHeaders",
    "NotAcceptable",
    "NotFound",
    "OpenAPI",
    "Path",
    "Progress",
    "Query",
    "QueryParams",
    "Request",
    "Response",
    "Room",
    "Router",
    "SerialWebSocket",
    "ServiceUnavailable",
    "StreamReset",
    "Templates",
    "TooManyRequests",
    "Unauthorized",
    "UnprocessableContent",
    "UnsupportedMediaType",
    "Upload",
    "UploadFile",
    "WebSocket",
    "WebTransportSession",
    "WebTransportStream",
    "WorkerInfo",
    "__version__",
    "content_disposition",
    "defer",
    "event_stream",
    "file_response",
    "flash",
    "flashes",
    "get_include",
    "html_response",
    "json_response",
    "last_event_id",
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
    "web.application.app": ("App",),
    "web.routing.router": ("Router",),
    "web.declarations.parameters.sources": (
        "Body",
        "Cookie",
        "Depends",
        "File",
        "Form",
        "Header",
        "Path",
        "Query",
    ),
    "web.execution.compiled_handlers": ("get_include", "load_handlers"),
    "web.execution.background": ("defer",),
    "web.execution.progress": ("JobCancelled", "Progress"),
    "web.responses.templates": ("Templates", "flash", "flashes"),
    "web.realtime.broadcast": ("Broadcast",),
    "web.application.databases": ("FromPool", "FromRedis"),
    "web.realtime.events": ("Event", "EventStream", "event_stream", "last_event_id"),
    "web.responses.files": ("content_disposition", "file_response"),
    "web.binding.forms": ("FormData", "FormLimits", "UploadFile"),
    "web.binding.headers": ("Headers", "MutableHeaders", "QueryParams"),
    "web.openapi": ("OpenAPI",),
    "web.responses.shortcuts": ("html_response", "json_response", "msgpack_response", "redirect"),
    "web.realtime.websockets": ("SerialWebSocket",),
    "web.realtime.webtransport": ("WebTransportSession", "WebTransportStream"),
    "web.uploads.upload": ("Upload",),
}
_LISTED = {name for names in _HOMES.values() for name in names}
__getattr__, __dir__ = exports(__name__, {**_HOMES, "errors": set(__all__) - _LISTED})
