"""Transports for httpx: ``httpx.AsyncClient(transport=Transport())``; ``SyncTransport`` for ``httpx.Client``.

Everything that stands on httpx (OpenAI's, Anthropic's, Stripe's and Supabase's SDKs) calls by the client's
connections then. What httpx does above its transport stays what it is: URLs, cookies, redirects,
decompression, and their cost. ``install()`` makes them the default of clients that are made afterwards.
Works with httpx2 too, which has the same interface. Tests: ``tests/http/test_httpx.py``.
"""

from __future__ import annotations

import asyncio
import functools
import inspect
import socket
import sys
import weakref
from asyncio import _get_running_loop  # pyright: ignore[reportPrivateUsage]
from typing import TYPE_CHECKING, Any, Final

import httpx

from citius.errors import ConfigError
from citius.http import errors
from citius.http.base import waited
from citius.http.client import Client
from citius.http.sync import refuse_loop
from citius.http.urls import URL
from citius.observability.logging import warning
from citius.serial import is_serial, park

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterator
    from types import TracebackType

    from citius.http.base import Fields, Reply, Upload
    from citius.http.carriers import Opened
    from citius.http.options import Deadlines

# The names that `fields` of the extension are made from.
_FRAMING: Final = frozenset({b"content-length", b"transfer-encoding", b"connection"})
_ERRORS: Final[tuple[tuple[type[Exception], str], ...]] = (
    (errors.ConnectTimeout, "ConnectTimeout"),
    (errors.ReadTimeout, "ReadTimeout"),
    (errors.WriteTimeout, "WriteTimeout"),
    (errors.PoolTimeout, "PoolTimeout"),
    (errors.TotalTimeout, "ReadTimeout"),
    (errors.ProxyError, "ProxyError"),
    (errors.ConnectError, "ConnectError"),
    (errors.ReadError, "ReadError"),
    (errors.WriteError, "WriteError"),
    (errors.RemoteProtocolError, "RemoteProtocolError"),
    (errors.LocalProtocolError, "LocalProtocolError"),
    (errors.TooLarge, "RemoteProtocolError"),
    (errors.RequestError, "NetworkError"),
)


_PROXIES: Final = {
    "ProxyUnreachable": "ConnectError",
    "ProxyClosed": "RemoteProtocolError",
    "ProxyNoHttp": "RemoteProtocolError",
}
"""What httpx raises for what a proxy does beside refusing."""


def _raised(module: Any, error: Exception, request: Any) -> Exception:
    """The exception of httpx for one of the client's."""
    name = next(name for kind, name in _ERRORS if isinstance(error, kind))
    if isinstance(error, errors.ReadError) and error.is_end:
        name = "RemoteProtocolError"
    elif isinstance(error, errors.ProxyError):
        name = _PROXIES.get(getattr(error, "reason", None) or "", name)
    return getattr(module, name)(str(error), request=request)


class _Base:
    """What both transports share."""

    _module: Any = httpx
    _make_plain: Callable[[], Any] | None = None
    """Makes what there would be without ``install``, for where this transport cannot wait."""
    _plain: Any = None

    def __init__(self, client: Client | None = None, **options: Any) -> None:
        """Take a client's connections, or those of one that is made with ``options``.

        Raises:
            ConfigError: There are both, or an option is none of ``Client``.
        """
        if client is not None and options:
            raise ConfigError("give a Client, or the options of one")
        self._client = client or Client(**options)
        self._is_own = client is None
        self._origins: dict[tuple[bytes, bytes, int | None], URL] = {}

    def _own_of_httpx(self, make: Callable[[], Any]) -> Any:
        if self._plain is None:
            self._plain = make()
        return self._plain

    def _prepare(self, request: httpx.Request) -> tuple[Opened, Any, str, Fields, Deadlines]:
        if "sni_hostname" in request.extensions:
            raise self._module.UnsupportedProtocol(
                "the extension sni_hostname: a Client takes the name of its URL", request=request
            )
        place = request.url
        scheme, host, port, target = place.raw_scheme, place.raw_host, place.port, place.raw_path
        opened = self._client.open_here()
        key = scheme, host, port
        url = self._origins.get(key)
        if url is None:
            name = scheme.decode()
            if name not in ("http", "https"):
                raise self._module.UnsupportedProtocol(
                    f"no transport for {name!r}", request=request
                )
            if port is not None and port > 0xFFFF:
                raise self._module.ConnectError(f"there is no port {port}", request=request)
            url = URL(
                name, host.decode().strip("[]"), port or (443 if name == "https" else 80), "/"
            )
            if len(self._origins) > 1000:
                self._origins.clear()
            self._origins[key] = url
        handle = self._client.engine.origin(opened, url).handle
        if "target" in request.extensions:
            target = request.extensions["target"]
        fields: Fields = [pair for pair in request.headers.raw if pair[0].lower() not in _FRAMING]
        timeout: dict[str, float | None] = request.extensions.get("timeout", {})
        deadlines = (
            timeout.get("connect"), timeout.get("read"), timeout.get("write"), timeout.get("pool"), None,
        )  # fmt: skip
        return opened, handle, target.decode("ascii"), fields, deadlines

    def _whole(self, request: httpx.Request) -> tuple[bool, bytes | None]:
        """Whether the content is there, and it."""
        try:
            content = request.content
        except self._module.RequestNotRead:
            return False, None
        return True, content if content or "content-length" in request.headers else None

    def _length(self, request: httpx.Request) -> int | None:
        length = request.headers.get("content-length", "")
        return int(length) if length.isdecimal() else None

    def _response(self, reply: Reply, stream: Any) -> httpx.Response:
        version = reply.http_version
        extensions: dict[str, Any] = {
            "http_version": version.encode(),
            "network_stream": _NetworkStream(reply.remote),
        }
        if version != "HTTP/2":
            extensions["reason_phrase"] = getattr(reply, "reason", b"")
        return self._module.Response(
            reply.status, headers=reply.fields, stream=stream, extensions=extensions
        )


class _NetworkStream:
    """What of a connection is known where httpx has the connection itself."""

    def __init__(self, remote: str) -> None:
        self._remote = remote

    def get_extra_info(self, info: str) -> Any:
        """The address of the server, as ``server_addr``; ``None`` for all else."""
        host, _, port = self._remote.rpartition(":")
        return (host.strip("[]"), int(port)) if info == "server_addr" and port.isdecimal() else None


class Transport(_Base, httpx.AsyncBaseTransport):
    """For ``httpx.AsyncClient``.

    Args:
        client: A client whose connections are used, and that the application closes.
        options: Options of ``Client`` about connections: ``verify``, ``cert``, ``http2``, ``limits``,
            ``proxy``, ``allow``.
    """

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        """Send a request; its response is read by httpx."""
        if self._make_plain is not None and _get_running_loop() is None:  # trio
            return await self._own_of_httpx(self._make_plain).handle_async_request(request)
        opened, handle, target, fields, deadlines = self._prepare(request)
        is_whole, content = self._whole(request)
        upload = None if is_whole else opened.transport.upload(self._length(request))
        try:
            call = opened.send(
                handle,
                request.method,
                target,
                fields,
                content if is_whole else upload,
                True,
                deadlines,
            )
            if upload is None:
                reply, feeder = await call, None
            else:
                reply, feeder = await self._uploaded(call, upload, request)
        except errors.RequestError as error:
            raise _raised(self._module, error, request) from error
        return self._response(reply, _stream_class(self._module)(self, reply, request, feeder))

    async def _uploaded(
        self, call: Any, upload: Upload, request: httpx.Request
    ) -> tuple[Reply, asyncio.Future[None]]:
        async def feed() -> None:
            stream: Any = request.stream
            try:
                async for piece in stream:
                    if piece:
                        await upload.send(piece)
                await upload.end()
            except BaseException:
                upload.abort()
                raise

        feeder = asyncio.ensure_future(feed())
        # What fails behind the head of the response is the response's to say.
        feeder.add_done_callback(lambda it: it.cancelled() or it.exception())
        try:
            return await call, feeder
        except BaseException:
            feeder.cancel()
            await asyncio.wait([feeder])
            failure = None if feeder.cancelled() else feeder.exception()
            if failure is not None and not isinstance(failure, errors.RequestError):
                raise failure from None
            raise

    async def __aenter__(self) -> Transport:
        return self

    async def __aexit__(
        self,
        exc_type: type[BaseException] | None = None,
        exc_value: BaseException | None = None,
        traceback: TracebackType | None = None,
    ) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        """Close the connections, unless they are those of a client that was given."""
        if self._plain is not None:
            await self._plain.aclose()
        if self._is_own and _get_running_loop() is not None:
            await self._client.close()


class SyncTransport(_Base, httpx.BaseTransport):
    """For ``httpx.Client``; in a serial handler the handler's event loop waits.

    Args:
        client: A client whose connections are used, and that the application closes.
        options: Options of ``Client`` about connections.
    """

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        """Send a request; its response is read by httpx."""
        if not is_serial():
            if self._make_plain is not None and _get_running_loop() is not None:
                # In `async def`, where httpx's own stops the loop; code of others is not to fail there.
                return self._own_of_httpx(self._make_plain).handle_request(request)
            refuse_loop()
        opened, handle, target, fields, deadlines = self._prepare(request)
        is_whole, content = self._whole(request)
        upload = None if is_whole else opened.transport.upload(self._length(request))
        try:
            call: Any = opened.send(
                handle,
                request.method,
                target,
                fields,
                content if is_whole else upload,
                True,
                deadlines,
            )
            if upload is not None:
                start: Callable[[], object] | None = getattr(call, "start", None)
                if start is not None:
                    start()
                self._feed(upload, request)
            reply = waited(call)
        except errors.RequestError as error:
            raise _raised(self._module, error, request) from error
        return self._response(reply, _sync_stream_class(self._module)(self, reply, request))

    def _feed(self, upload: Upload, request: httpx.Request) -> None:
        stream: Any = request.stream
        try:
            for piece in stream:
                if piece:
                    waited(upload.send(piece))
            waited(upload.end())
        except errors.RequestError:
            upload.abort()  # the reply says more
        except BaseException:
            upload.abort()
            raise

    def __enter__(self) -> SyncTransport:
        return self

    def __exit__(
        self,
        exc_type: type[BaseException] | None = None,
        exc_value: BaseException | None = None,
        traceback: TracebackType | None = None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close the connections, unless they are those of a client that was given."""
        if self._plain is not None:
            self._plain.close()
        if not self._is_own:
            return
        if is_serial():
            park(self._client.close())
        else:
            self._client.close_here()


class _Stream:
    """The content of a response, for httpx's asynchronous client."""

    def __init__(
        self,
        transport: _Base,
        reply: Reply,
        request: httpx.Request,
        feeder: asyncio.Future[None] | None,
    ) -> None:
        self._module: Any = transport._module  # pyright: ignore[reportPrivateUsage]
        self._reply, self._request, self._feeder = reply, request, feeder

    async def __aiter__(self) -> AsyncIterator[bytes]:
        read = self._reply.read
        try:
            while piece := await read():
                yield piece
        except errors.RequestError as error:
            raise _raised(self._module, error, self._request) from error

    async def aclose(self) -> None:
        self._reply.close()
        if self._feeder is not None:
            self._feeder.cancel()


class _SyncStream:
    """The same for its other client."""

    def __init__(self, transport: _Base, reply: Reply, request: httpx.Request) -> None:
        self._module: Any = transport._module  # pyright: ignore[reportPrivateUsage]
        self._reply, self._request = reply, request

    def __iter__(self) -> Iterator[bytes]:
        try:
            while piece := waited(self._reply.read()):
                yield piece
        except errors.RequestError as error:
            raise _raised(self._module, error, self._request) from error

    def close(self) -> None:
        self._reply.close()


_classes: weakref.WeakKeyDictionary[Any, dict[str, Any]] = weakref.WeakKeyDictionary()


def _made(module: Any, name: str, own: type, base: str) -> Any:
    """A class of ours that is one of httpx's, or of a package with its interface, as well."""
    known = _classes.setdefault(module, {})
    if name not in known:
        known[name] = type(name, (own, getattr(module, base)), {})
    return known[name]


def _stream_class(module: Any) -> Any:
    return _made(module, "AsyncStream", _Stream, "AsyncByteStream")


def _sync_stream_class(module: Any) -> Any:
    return _made(module, "SyncStream", _SyncStream, "SyncByteStream")


def of(module: Any) -> tuple[type[Any], type[Any]]:
    """``Transport`` and ``SyncTransport`` for a package with httpx's interface, such as httpx2."""
    if module is httpx:
        return Transport, SyncTransport
    asynchronous = _made(module, "Transport", Transport, "AsyncBaseTransport")
    synchronous = _made(module, "SyncTransport", SyncTransport, "BaseTransport")
    asynchronous._module = synchronous._module = module
    return asynchronous, synchronous


# --- the default of clients that are made afterwards ---


def install(module: Any = httpx) -> Callable[[], None]:
    """Have clients of httpx that are made from now on call by this transport; returns what undoes it.

    The transports of httpx's own classes become this one, whoever makes them: clients, and also programs
    and SDKs for ``transport=`` and ``mounts=``. A client with one of another class keeps it. So does one
    whose ``verify`` is an ``ssl.SSLContext``, which the extension cannot use, one with a proxy by TLS or with
    fields of its own for its proxy, and one with ``retries``, ``uds``, ``local_address`` or
    ``socket_options`` that are not about keep-alive; a line of the log says so. Where no asyncio loop runs
    (trio), and for a ``Client`` in a coroutine, requests take httpx's own transport.
    """
    kinds = (
        (module.AsyncHTTPTransport, of(module)[0]),
        (module.HTTPTransport, of(module)[1]),
    )
    before = [(kind, kind.__init__) for kind, _ in kinds]
    for kind, transport in kinds:
        _replace(module, kind, transport)

    def undo() -> None:
        for kind, plain in before:
            kind.__init__ = plain

    return undo


def _replace(module: Any, kind: Any, transport: Any) -> None:
    """Have what is made of a class of httpx's transports be one of ours, of a class of both."""
    plain = kind.__init__
    takes = inspect.signature(plain)
    # A name of its own: that of httpx's class is in its module.
    both = _made(module, f"Installed{kind.__name__}", transport, kind.__name__)
    told: set[str] = set()

    def make_plain(*args: Any, **options: Any) -> Any:
        made = object.__new__(kind)
        plain(made, *args, **options)
        return made

    @functools.wraps(plain)
    def init(self: Any, *args: Any, **options: Any) -> None:
        if type(self) is not kind:  # a subclass does more than sending
            return plain(self, *args, **options)
        given = takes.bind(self, *args, **options).arguments
        if isinstance(given.get("proxy"), str | module.URL):
            given["proxy"] = module.Proxy(url=given["proxy"])
        why = _why_not(given)
        if why is not None:
            place = _place(module)
            if place not in told:
                told.add(place)
                warning(f"{module.__name__}.{kind.__name__} ({place}) keeps its connections: {why}")
            return plain(self, *args, **options)
        self.__class__ = both
        proxy = given.get("proxy")
        transport.__init__(
            self, **_options(module, given), **({"proxy": _proxy_url(proxy)} if proxy else {})
        )
        self._make_plain = functools.partial(make_plain, *args, **options)
        return None

    kind.__init__ = init


def _why_not(given: dict[str, Any]) -> str | None:
    """What of the arguments of httpx's transport a ``Client`` cannot do as httpx does it."""
    if not isinstance(given.get("verify", True), bool | str):
        return _OF_SSL
    proxy = given.get("proxy")
    if proxy is not None and not _can_take_proxy(proxy):
        return "its proxy has TLS or fields"
    found = [name for name in ("uds", "local_address", "retries") if given.get(name)]
    if not all(_is_kept_alive(*option) for option in given.get("socket_options") or ()):
        found.append("socket_options")
    return f"it has {' and '.join(found)}" if found else None


def _is_kept_alive(level: int, option: int, *_: object) -> bool:
    """Whether an option of sockets is of those that a ``Client`` sets itself, with times of its own."""
    names = ("TCP_KEEPIDLE", "TCP_KEEPALIVE", "TCP_KEEPINTVL", "TCP_KEEPCNT", "TCP_NODELAY")
    kept = {(socket.IPPROTO_TCP, getattr(socket, name, None)) for name in names}
    return (level, option) in {*kept, (socket.SOL_SOCKET, socket.SO_KEEPALIVE)}


_OF_SSL: Final = (
    "its verify is an ssl.SSLContext; give it transport=Transport(), and for authorities that are not the "
    "system's the path of their bundle, transport=Transport(verify=path)"
)


def _place(module: Any) -> str:
    """File and line of what makes a client, outside of ``module`` and this package."""
    frame = sys._getframe(1)  # pyright: ignore[reportPrivateUsage]
    inside = ("citius", module.__name__)
    while frame.f_back is not None and frame.f_globals.get("__name__", "").startswith(inside):
        frame = frame.f_back
    return f"{frame.f_code.co_filename}:{frame.f_lineno}"


def _can_take_proxy(proxy: Any) -> bool:
    is_plain = proxy.url.scheme in ("http", "socks5", "socks5h")
    return is_plain and not proxy.headers and getattr(proxy, "ssl_context", None) is None


def _options(module: Any, given: dict[str, Any]) -> dict[str, Any]:
    """Options of ``Client`` from those of httpx's transports."""
    from citius.http.options import Limits

    limits: Any = given.get("limits") or module.Limits(
        max_connections=100, max_keepalive_connections=20
    )
    many, expiry = limits.max_connections, limits.keepalive_expiry
    if limits.max_keepalive_connections == 0:
        expiry = 0.0
    made = Limits(
        connections_max=many or 1_000_000,
        connections_per_origin_max=many or 1_000_000,
        keepalive_s=86_400.0 if expiry is None else expiry,
    )
    cert = given.get("cert")
    if isinstance(cert, str):
        cert = (cert, cert)
    return {
        "verify": given.get("verify", True),
        "cert": cert,
        "http2": ("auto" if given.get("http1", True) else "prior") if given.get("http2") else False,
        "limits": made,
        "trust_env": False,  # httpx reads it itself
    }


def _proxy_url(proxy: Any) -> str:
    """The URL of httpx's ``Proxy``, with its credentials."""
    from urllib.parse import quote

    url = str(proxy.url)
    if proxy.raw_auth is None:
        return url
    scheme, _, rest = url.partition("://")
    username, password = (quote(part.decode("latin-1"), safe="") for part in proxy.raw_auth)
    return f"{scheme}://{username}:{password}@{rest}"
