"""What can be spoken on a connection: HTTP/1.1, HTTP/2, HTTP/3, MessagePack-RPC (TCP, QUIC), or WebSocket.

Clear-text HTTP/2 is spoken by prior knowledge; over TLS the version is agreed on by ALPN. HTTP/3 is on the
UDP port of the same number, and calls over QUIC are on that of HTTP/3.
"""

from __future__ import annotations

import ssl
from typing import TYPE_CHECKING, Final, Literal, get_args

if TYPE_CHECKING:
    from collections.abc import Iterable


def is_tls(wire: str) -> bool:
    """Tell whether a wire is encrypted."""
    return wire in (HTTPS, H2, H3, RPC_QUIC)


def is_http2(wire: str) -> bool:
    """Tell whether a wire carries HTTP/2."""
    return wire in (H2C, H2)


def probe_wire(wires: Iterable[str], *, is_encrypted: bool) -> str | None:
    """Return what single requests are best asked by, on a server that speaks ``wires``."""
    order = (HTTPS, H2) if is_encrypted else (HTTP1, H2C)
    spoken = set(wires)
    return next((wire for wire in order if wire in spoken), None)


def client_context(wire: str) -> ssl.SSLContext:
    """Return the client's side of TLS: the lab's own certificate proves nothing, so none is asked for."""
    context = ssl.create_default_context()
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    context.set_alpn_protocols(["h2"] if is_http2(wire) else ["http/1.1"])
    return context


Wire = Literal["http/1.1", "h2c", "https", "h2", "h3", "rpc", "rpc-quic", "ws"]
WIRES: tuple[Wire, ...] = get_args(Wire)
HTTP1: Final = "http/1.1"
H2C: Final = "h2c"
HTTPS: Final = "https"
H2: Final = "h2"
H3: Final = "h3"
RPC: Final = "rpc"
RPC_QUIC: Final = "rpc-quic"
WS: Final = "ws"
