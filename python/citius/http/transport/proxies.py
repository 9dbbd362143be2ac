"""The way through a proxy: HTTP ``CONNECT`` (RFC 9110 §9.3.6) and SOCKS5 (RFC 1928, RFC 1929)."""

from __future__ import annotations

import base64
import ipaddress
from typing import TYPE_CHECKING
from urllib.parse import SplitResult, unquote, urlsplit

from citius.http.transport import addresses

if TYPE_CHECKING:
    import socket

    from citius._core import HttpOrigin
    from citius.http.transport.addresses import Way
    from citius.process.homes import HubHome, LoopHome

_HEAD_BYTES_MAX = 16 * 1024
_PORTS = {"http": 80, "socks5": 1080, "socks5h": 1080}
_ADDRESS_BYTES = {1: 4, 3: 0, 4: 16}
"""Bytes of an address by its kind; 0: the next one says how many, of a name."""
_REPLIES = {
    1: "general failure",
    2: "not allowed by its rules",
    3: "the network is unreachable",
    4: "the host is unreachable",
    5: "the connection was refused",
    6: "the time to live has expired",
    7: "the command is not supported",
    8: "the kind of address is not supported",
}


class ProxyFailed(ConnectionError):
    """The proxy refuses or fails."""

    kind = "ProxyError"

    def __init__(self, message: str, reason: str | None = None) -> None:
        super().__init__(message)
        self.reason = reason


def authorization(proxy: str) -> str | None:
    """The value of ``Proxy-Authorization`` for a proxy with a user name in its URL."""
    url = urlsplit(proxy)
    if url.username is None:
        return None
    pair = f"{unquote(url.username)}:{unquote(url.password or '')}"
    return "Basic " + base64.b64encode(pair.encode()).decode()


async def connect(way: Way, origin: HttpOrigin) -> tuple[socket.socket, str]:
    """A socket that leads to an origin by its proxy, and the proxy's address.

    Raises:
        ProxyFailed: The proxy cannot be reached, refuses, or fails.
        OSError: The target has no address that is allowed.
    """
    assert origin.proxy is not None
    url = urlsplit(origin.proxy)
    if url.scheme not in _PORTS or not url.hostname:
        raise ProxyFailed(f"expected a proxy of http or socks5, got one of {url.scheme!r}")
    where = f"the proxy {url.hostname}:{url.port or _PORTS[url.scheme]}"
    try:
        made, text = await addresses.connect_to(
            way, url.hostname, url.port or _PORTS[url.scheme], is_target=False
        )
    except OSError as error:
        message = f"{where} cannot be reached: {error.strerror or error}"
        raise ProxyFailed(message, "ProxyUnreachable") from error
    try:
        if url.scheme == "http":
            if origin.scheme == "https":
                await _tunnel(way.home, made, origin, url)
        elif url.scheme == "socks5h":
            await _socks(way.home, made, url, origin.host, origin.port)
        else:
            found = await addresses.resolve(way, origin.host, origin.port)
            address = addresses.allowed(way, origin.host, found)[0][1]
            await _socks(way.home, made, url, address[0], origin.port)
    except BaseException as error:
        made.close()
        if (
            isinstance(error, OSError)
            and not hasattr(error, "kind")
            and type(error) is not TimeoutError
        ):
            raise ProxyFailed(f"{where}: {error.strerror or error}") from error
        raise
    return made, text


async def _tunnel(
    home: LoopHome | HubHome, made: socket.socket, origin: HttpOrigin, url: SplitResult
) -> None:
    host = f"[{origin.host}]" if ":" in origin.host else origin.host
    target = f"{host}:{origin.port}"
    lines = [f"CONNECT {target} HTTP/1.1", f"Host: {target}"]
    if (value := authorization(url.geturl())) is not None:
        lines.append(f"Proxy-Authorization: {value}")
    await home.send_all(made, ("\r\n".join(lines) + "\r\n\r\n").encode("latin-1"))
    head = b""
    while b"\r\n\r\n" not in head:
        data = await home.receive(made, 4096)
        if not data:
            raise ProxyFailed("the proxy has closed the connection", "ProxyClosed")
        head += data
        if len(head) > _HEAD_BYTES_MAX:
            raise ProxyFailed("the response of the proxy is too long", "ProxyNoHttp")
    head, _, rest = head.partition(b"\r\n\r\n")
    words = head.partition(b"\r\n")[0].split(b" ", 2)
    if len(words) < 2 or not words[0].startswith(b"HTTP/1.") or not words[1].isdigit():
        raise ProxyFailed("the proxy does not speak HTTP/1.1", "ProxyNoHttp")
    status = words[1].decode()
    if status[:1] != "2" or len(status) != 3:
        # It goes into messages and logs.
        reason = ascii(words[2][:200].decode("latin-1"))[1:-1] if len(words) > 2 else ""
        raise ProxyFailed(f"the proxy refuses to connect: {status} {reason}".rstrip())
    if rest:
        # A server that is spoken to by TLS speaks second.
        raise ProxyFailed("the proxy has sent bytes that belong to no connection")


async def _exactly(home: LoopHome | HubHome, made: socket.socket, size: int) -> bytes:
    got = b""
    while len(got) < size:
        data = await home.receive(made, size - len(got))
        if not data:
            raise ProxyFailed("the proxy has closed the connection")
        got += data
    return got


async def _socks(
    home: LoopHome | HubHome, made: socket.socket, url: SplitResult, host: str, port: int
) -> None:
    has_user = url.username is not None
    await home.send_all(made, b"\x05\x02\x00\x02" if has_user else b"\x05\x01\x00")
    version, method = await _exactly(home, made, 2)
    if version != 5:
        raise ProxyFailed("the proxy does not speak SOCKS5")
    if method == 2 and has_user:
        user, password = (unquote(part or "").encode() for part in (url.username, url.password))
        if not 0 < len(user) < 256 or len(password) > 255:
            raise ProxyFailed("a user's name and password of SOCKS5 have at most 255 bytes")
        said = bytes([1, len(user)]) + user + bytes([len(password)]) + password
        await home.send_all(made, said)
        if (await _exactly(home, made, 2))[1]:
            raise ProxyFailed("the proxy refuses the user's name and password")
    elif method:
        raise ProxyFailed("the proxy wants a login of another kind")
    await home.send_all(made, b"\x05\x01\x00" + _address(host) + port.to_bytes(2, "big"))
    version, reply, _, kind = await _exactly(home, made, 4)
    if version == 5 and reply:
        raise ProxyFailed(f"the proxy refuses to connect: {_REPLIES.get(reply, reply)}")
    if version != 5 or kind not in _ADDRESS_BYTES:
        raise ProxyFailed("the proxy does not speak SOCKS5")
    size = _ADDRESS_BYTES[kind] or (await _exactly(home, made, 1))[0]
    await _exactly(home, made, size + 2)


def _address(host: str) -> bytes:
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        name = host.encode("idna") if not host.isascii() else host.encode()
        if len(name) > 255:
            raise ProxyFailed("a name of SOCKS5 has at most 255 bytes") from None
        return bytes([3, len(name)]) + name
    return (b"\x01" if address.version == 4 else b"\x04") + address.packed
