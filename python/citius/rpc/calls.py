"""A call, for both clients: its number, its encoding, its response, and when it may be sent again.

A call that has been passed to the kernel may have been executed, even if no response comes. So when a
connection ends, a call is sent again automatically only if

- it had not been passed to the kernel, or
- the server sent ``$/goodbye`` before it closed: it has not executed calls without a response, or
- the caller passed ``idempotent=True``.

Any other call fails with ``ConnectionLost``, whose ``was_sent`` is true.
"""

from __future__ import annotations

import random
import sys
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import msgspec

from citius.errors import RpcError

if TYPE_CHECKING:
    import ssl
    from collections.abc import Callable, Container, Mapping

MESSAGE_BYTES_MAX = 64 * 1024 * 1024
"""Bytes of the longest response that a client accepts."""

BACKOFF_S_MIN, BACKOFF_S_MAX = 0.05, 2.0
"""Pause after the first failed attempt to connect, and the longest."""

CLOSE_S = 1.0
"""How long ``close`` waits for what is not sent yet."""

GOODBYE = b"$/goodbye"

TLS = "tls://"
"""The prefix of addresses with TLS."""

QUIC = "quic://"
"""The prefix of addresses with QUIC."""

_ALERT = b"\x15\x03"
"""The first bytes of a TLS server's alert, its response to clear text (RFC 8446 §6)."""

encode = msgspec.msgpack.Encoder().encode
_decoders: dict[Any, Callable[[bytes], Any]] = {}


@dataclass(frozen=True, slots=True)
class Address:
    """The address of a server."""

    host: str
    port: int
    path: str | None = None
    """Of a Unix socket."""
    tls: ssl.SSLContext | None = None
    """The client's TLS settings; ``None``: clear text."""
    server_name: str = ""
    """The name that the server's certificate must have."""
    is_quic: bool = False
    """Calls go over QUIC, whose rules for certificates are ``tls``; ``None``: the system's."""

    def __str__(self) -> str:
        mark = QUIC if self.is_quic else "" if self.tls is None else TLS
        if self.path is not None:
            return f"{mark}unix:{self.path}"
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{mark}{host}:{self.port}"

    @classmethod
    def parse(cls, text: str, tls: ssl.SSLContext | None, server_name: str | None) -> Address:
        """``HOST:PORT``, ``[v6]:PORT`` or ``unix:PATH``; ``tls://`` before it, or rules for it, mean TLS.

        ``quic://HOST:PORT`` means QUIC.

        Raises:
            ValueError: It is none of these.
        """
        address = text.removeprefix(QUIC)
        is_quic = address != text
        address = address.removeprefix(TLS) if not is_quic else address
        if tls is None and address != text and not is_quic:
            import ssl

            tls = ssl.create_default_context()
        if address.startswith("unix:") and not is_quic:
            return cls("", 0, address.removeprefix("unix:"), tls, server_name or "localhost")
        host, colon, port = address.rpartition(":")
        if not colon or not port.isdecimal() or not host or "/" in host or int(port) > 65535:
            raise ValueError(
                "expected HOST:PORT or unix:PATH, with tls:// before it for TLS, or quic://HOST:PORT, "
                f"got {text!r}"
            )
        host = host.strip("[]")
        return cls(host, int(port), None, tls, server_name or host, is_quic)


@dataclass(slots=True, eq=False)
class Request:
    """A call and its outcome."""

    method: str
    params: tuple[object, ...] | Mapping[str, object]
    type: object = None
    idempotent: bool = False
    msgid: int = -1
    is_sent: bool = False
    """At least some of its bytes have been passed to the kernel."""
    result: Any = None
    error: BaseException | None = None
    is_done: bool = False

    def encode(self, msgid: int) -> bytes:
        """The message with this number."""
        self.msgid, self.is_sent = msgid, False
        return encode((0, msgid, self.method, self.params))

    def settle(self, error: bytes | None, result: bytes) -> None:
        """Store the response."""
        try:
            if error is not None:
                self.error = error_of(error)
            else:
                self.result = decoder(self.type)(result)
        except Exception as reason:  # a result of another type, or a hook that fails
            self.error = reason
        self.is_done = True

    def outcome(self) -> Any:
        """Return the result, or raise the error."""
        if self.error is None:
            return self.result
        try:
            raise self.error
        finally:
            del self  # the error's traceback leads back here

    def may_be_sent_again(self, *, after_goodbye: bool) -> bool:
        """Whether the call may be sent on a new connection after its own has ended."""
        return not self.is_sent or after_goodbye or self.idempotent


def notification(method: str, params: tuple[object, ...] | Mapping[str, object]) -> bytes:
    """A call that gets no response."""
    return encode((2, method, params))


def cancellation(msgid: int) -> bytes:
    """The message that cancels a call."""
    return encode((2, "$/cancelRequest", (msgid,)))


def free_msgid(msgid: int, taken: Container[int]) -> int:
    """The first number from ``msgid`` on that is not in use."""
    while msgid in taken:
        msgid = next_msgid(msgid)
    return msgid


def next_msgid(msgid: int) -> int:
    """The number that follows; numbers have 32 bits."""
    return (msgid + 1) & 0xFFFF_FFFF


def tell(listener: Callable[[str, Any], object], method: bytes, params: bytes) -> None:
    """Pass a notification of the server to its listener; exceptions of the listener are logged."""
    from citius.observability.logging import log_exception

    try:
        listener(method.decode("utf-8", "replace"), msgspec.msgpack.decode(params))
    except Exception as error:
        log_exception(f"{listener!r} failed", error)


def words(error: Exception) -> str:
    """The reason of a connection failure, for messages."""
    return (getattr(error, "strerror", None) or str(error)).lower()


def is_in_vain(error: Exception) -> bool:
    """Whether another attempt cannot succeed: one side rejects the other's certificate or TLS versions."""
    ssl = sys.modules.get("ssl")  # where it is not imported, there was no TLS
    if ssl is None or not isinstance(error, ssl.SSLError):
        return False
    # A connection that ends in the handshake may be that of a restarting server.
    return not isinstance(error, ssl.SSLEOFError | ssl.SSLZeroReturnError)


def not_understood(error: ValueError, data: bytes) -> str:
    """The reason for ending a connection on which invalid bytes came."""
    if data.startswith(_ALERT):
        return f"the server speaks TLS; put {TLS} before its address"
    return f"invalid MessagePack-RPC message: {error}"


class _Error(msgspec.Struct):
    """An error as a Citius server sends it."""

    type: str
    message: str
    data: Any = None


def decoder(type: object) -> Callable[[bytes], Any]:
    """The decoder for results of a type; ``None``: any type."""
    found = _decoders.get(type)
    if found is None:
        found = _decoders[type] = msgspec.msgpack.Decoder(Any if type is None else type).decode
    return found


def error_of(encoded: bytes) -> RpcError:
    """Decode the error of a response; other servers may send any value."""
    value: Any = msgspec.msgpack.decode(encoded)
    try:
        ours = msgspec.convert(value, _Error)
        return RpcError(ours.message, type=ours.type, data=ours.data)
    except msgspec.ValidationError:
        pass
    return RpcError(str(value), type="RpcError", data=value)


@dataclass(slots=True)
class Backoff:
    """Pauses between attempts to connect."""

    pause_s: float = field(default=BACKOFF_S_MIN)

    def next(self) -> float:
        """The pause before the next attempt; each is about twice the one before."""
        pause_s, self.pause_s = self.pause_s, min(self.pause_s * 2, BACKOFF_S_MAX)
        # Random, so that the clients of a restarted server do not all connect at once.
        return pause_s * random.uniform(0.5, 1.0)
