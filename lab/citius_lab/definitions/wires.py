"""What can be spoken on a connection: HTTP, MessagePack-RPC over TCP and QUIC, WebSocket, WebTransport.

Clear-text HTTP/2 is spoken by prior knowledge; over TLS the version is agreed on by ALPN. HTTP/3 is on the
UDP port of the same number, and calls over QUIC and sessions of WebTransport are on that of HTTP/3.
"""

from __future__ import annotations

import ssl
from typing import TYPE_CHECKING, Final, Literal, get_args

if TYPE_CHECKING:
    from collections.abc import Iterable


def is_tls(wire: str) -> bool:
    """Tell whether a wire is encrypted."""
    return wire in (HTTPS, H2) or is_quic(wire)


def is_quic(wire: str) -> bool:
    """Tell whether a wire is spoken over QUIC."""
    return wire in (H3, RPC_QUIC) or is_webtransport(wire)


def is_webtransport(wire: str) -> bool:
    """Tell whether messages of a WebTransport session are sent."""
    return wire in (WT_STREAMS, WT_DATAGRAMS)


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


Wire = Literal[
    "http/1.1", "h2c", "https", "h2", "h3", "rpc", "rpc-quic", "ws", "wt-streams", "wt-datagrams"
]
WIRES: tuple[Wire, ...] = get_args(Wire)
HTTP1: Final = "http/1.1"
H2C: Final = "h2c"
HTTPS: Final = "https"
H2: Final = "h2"
H3: Final = "h3"
RPC: Final = "rpc"
RPC_QUIC: Final = "rpc-quic"
WS: Final = "ws"
WT_STREAMS: Final = "wt-streams"
WT_DATAGRAMS: Final = "wt-datagrams"
