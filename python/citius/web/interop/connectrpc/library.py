"""What the native path of RPC services takes of connectrpc, and which applications it serves.

Generated classes, codecs, compressions, interceptors and errors are the library's, and so is the reading of a
call's header section. Most of that has no public names, hence ``VERSION``.
"""

from __future__ import annotations

from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from typing import Any, Final

from citius._core import FAST_PATHS

VERSION: Final = "0.13."
"""The releases whose insides are known."""


def is_known(app: Any) -> bool:
    """Whether an application is served natively.

    One whose class changes what the library does, and one of a release that is not known, is called as ASGI.
    """
    if not FAST_PATHS or not is_known_release():
        return False
    base: Any = import_module("connectrpc.server").ConnectASGIApplication
    cls: Any = app.__class__
    members: dict[str, Any] = base.__dict__
    own = [name for name, value in members.items() if callable(value) and name != "__init__"]
    return issubclass(cls, base) and all(getattr(cls, name) is members[name] for name in own)


def is_known_release() -> bool:
    """Whether what is installed is a release whose insides are known."""
    try:
        return version("connectrpc").startswith(VERSION)
    except PackageNotFoundError:
        return False


class Library:
    """The names, found when the first application is mounted."""

    def __init__(self) -> None:
        server: Any = import_module("connectrpc._server_async")
        self.unary: Any = server.EndpointUnary
        self.client_stream: Any = server.EndpointClientStream
        self.server_stream: Any = server.EndpointServerStream
        self.code: Any = server.Code
        self.error: Any = server.ConnectError
        self.http_error: Any = server.HTTPError
        self.wire_error: Any = server.ConnectWireError
        self.headers: Any = server.Headers
        self.context: Any = server.RequestContext
        self.interceptors_run: Any = server.MetadataInterceptorsRun
        self.connect: Any = server.ConnectServerProtocol
        self.grpc: Any = server.GRPCServerProtocol
        self.grpc_timeout_ns: Any = import_module("connectrpc._protocol_grpc")._parse_timeout
        self.protocol_of: Any = server.negotiate_server_protocol
        self.compression_of: Any = server.negotiate_compression
        self.unknown_compression: Any = server.unknown_compression_error
        self.reader: Any = server.EnvelopeReader
        self.decode: Any = server.decode_message
        self.decompress: Any = server.decompress
        self.is_identity: Any = import_module("connectrpc._compression").IdentityCompression
        self.too_large: Any = import_module("connectrpc._shared").message_too_large_error
