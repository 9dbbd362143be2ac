"""A client of other services: one for the life of an application, for all its requests, loops and threads.

Connections are made when they are first needed, on each loop its own. Nothing is kept between requests but
connections: no cookies without ``cookies=``. Tests: ``tests/http/``.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import sys
import threading
import weakref
from typing import TYPE_CHECKING, Any, Final, Literal, Self, TypedDict, Unpack

from citius.errors import ConfigError
from citius.http import auth as authentication
from citius.http import decoding, guards, proxies, urls
from citius.http.bodies import EMPTY, BodyOptions, encode, encode_json, items_of, urlencode
from citius.http.carriers import ON_LOOP, Call, Opened, has_deadline
from citius.http.cookies import CookieJar
from citius.http.engine import CREDENTIALS, Engine, ended
from citius.http.errors import ClientClosed, RequestError
from citius.http.options import UNSET, Limits, Timeout, Unset, check_tls, check_ways, encoded, given
from citius.http.request import Request
from citius.http.response import Response, StreamedResponse
from citius.observability.clients import Client as Measured
from citius.observability.clients import measured
from citius.unknown_options import check_value, known_options, refuse_unknown
from citius.web.binding.headers import MutableHeaders

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Iterable, Mapping, Sequence
    from types import TracebackType
    from typing import TypeAlias

    from citius._core import ClientMetrics
    from citius.http.auth import AuthTypes
    from citius.http.base import Fields, Reply, Transport
    from citius.http.bodies import Pairs
    from citius.http.engine import Hook
    from citius.http.guards import Allow
    from citius.http.options import CircuitBreaker, Hedge, Proxy, Retry
    from citius.http.sync import SyncClient

    Prepared: TypeAlias = tuple[Any, str, str, Fields]
    HeaderTypes: TypeAlias = Mapping[str, str] | Iterable[tuple[str, str]]
    TimeoutTypes: TypeAlias = float | Timeout | None

PREPARED_MAX: Final = 512
"""Origins and methods of plain requests whose parts a client keeps; with more it begins anew."""
_running_loop = asyncio._get_running_loop  # pyright: ignore[reportPrivateUsage]


class GetOptions(TypedDict, total=False):
    """What a request without content may be given."""

    params: Pairs | None
    """Names and values for the query."""
    headers: HeaderTypes | None
    auth: AuthTypes | None
    """The auth of the request; ``None``: none, although the client has one."""
    timeout: TimeoutTypes
    follow_redirects: bool


class RequestOptions(GetOptions, BodyOptions, total=False):
    """What a request may be given."""


_OPTIONS: Final = frozenset(RequestOptions.__annotations__) | frozenset(BodyOptions.__annotations__)


@known_options
class Client:
    """A client of other services.

    Args:
        base_url: What paths of requests are below. Credentials of the client go to its origin only.
        headers: Fields of every request.
        params: Names and values for every query; with a ``base_url`` for those of its origin.
        auth: ``(user name, password)``, ``Basic``, ``Bearer``, ``Digest``, ``Netrc``, or a function that
            gets the request.
        timeout: Seconds for each part of a request, or a ``Timeout``.
        limits: Connections, requests and bytes at most.
        http2: ``"auto"``: where TLS agrees on it; ``"prior"``: without TLS too; ``False``: never.
        verify: ``True``: certificates are checked against the system's roots; a path: against those of the
            file; ``False``: not at all.
        cert: Files of the client's certificate and key, and a password.
        pins: SHA-256 digests of public keys (``"sha256/…"``), one of which the peer's certificate must have.
        proxy: A proxy for all requests.
        unix_path: A socket of this machine to which all connections are made.
        trust_env: Read ``HTTP_PROXY``, ``HTTPS_PROXY``, ``ALL_PROXY`` and ``NO_PROXY``.
        follow_redirects: Follow them; credentials are dropped where they lead to another origin.
        redirects_max: How many.
        cookies: Keep cookies: ``True``, names and values, or a ``CookieJar``. Without it none are kept: a
            client that serves several users would mix them.
        event_hooks: ``{"request": [f], "response": [g]}``: called with each ``Request`` before it is sent,
            and each ``Response``; they may be ``async def``.
        allow: ``"public"``, networks, or a function: which addresses may be connected to, checked after names
            are resolved.
        retry: Send requests again that failed.
        hedge: Send slow ones a second time.
        breaker: Leave origins alone that fail.
        decompress: Ask for compressed content.
        propagate_trace: Send ``traceparent`` of the current span of OpenTelemetry.
        name: What metrics call the client; the host of ``base_url`` without it.
        app: Call this application in memory: a native one, ASGI or WSGI.
        transport: Send requests by this, such as ``citius.testing.http.MockTransport``.

    Raises:
        ConfigError: An option cannot work.
    """

    def __init__(
        self,
        base_url: str | None = None,
        *,
        headers: HeaderTypes | None = None,
        params: Pairs | None = None,
        auth: AuthTypes | None = None,
        timeout: TimeoutTypes | object = UNSET,
        limits: Limits | None = None,
        http2: Literal["auto", "prior"] | bool = "auto",
        verify: bool | str = True,
        cert: tuple[str, str] | tuple[str, str, str] | None = None,
        pins: Sequence[str] = (),
        proxy: str | Proxy | None = None,
        unix_path: str | None = None,
        trust_env: bool = True,
        follow_redirects: bool = False,
        redirects_max: int = 20,
        cookies: bool | CookieJar | Mapping[str, str] | None = None,
        event_hooks: Mapping[Literal["request", "response"], Sequence[Hook]] | None = None,
        allow: Allow | None = None,
        retry: Retry | None = None,
        hedge: Hedge | None = None,
        breaker: CircuitBreaker | None = None,
        decompress: bool = True,
        propagate_trace: bool = True,
        name: str | None = None,
        app: object = None,
        transport: Transport | None = None,
    ) -> None:
        self.base = self._base = urls.parse(base_url) if base_url else None
        self._app, self._given = app, transport
        self._params = "" if params is None else urlencode(params)
        if redirects_max < 0:
            raise ConfigError(f"redirects_max must be 0 or more, got {redirects_max}")
        limits, rule = limits or Limits(), guards.rule(allow)
        is_own = app is None and transport is None
        choose = proxies.chooser(proxy, trust_env and is_own and unix_path is None, os.environ)
        check_ways(app, transport, proxy, unix_path, rule is not None, choose is not None)
        check_tls(verify, cert)
        self._unix_path, self._pins, self._name = unix_path, tuple(pins), name
        self._pool_options: dict[str, Any] = {
            "connections_max": limits.connections_max,
            "connections_per_origin_max": limits.connections_per_origin_max,
            "keepalive_s": limits.keepalive_s,
            "body_bytes_max": limits.body_bytes_max,
            "h2": "never" if http2 is False else "auto" if http2 is True else http2,
            "verify": verify,
            "cert": cert,
            "allow": None if rule is None else rule.is_allowed,
        }
        self._fields: list[tuple[str, str]] = _checked(headers)
        encoded(self._fields)  # refused here, not by each request
        self.own_fields = tuple(self._fields)
        named = {field for field, _ in self._fields}
        for field, value in (
            ("accept", "*/*"),
            ("accept-encoding", decoding.accepted() if decompress else "identity"),
            ("user-agent", _user_agent()),
        ):
            if field not in named:
                self._fields.append((field, value))
        self._foreign = [one for one in self._fields if one[0] not in CREDENTIALS]
        """Fields for other origins than that of ``base_url``."""
        self._timeout = _timeout(timeout)
        self._deadlines = self._timeout.deadlines
        self._is_tracing = self.propagates_trace = propagate_trace
        self.of_requests = given(
            params=params, auth=auth, cookies=cookies, event_hooks=event_hooks, retry=retry, hedge=hedge,
            follow_redirects=follow_redirects,
        )  # fmt: skip
        self._follows, self._limit = follow_redirects, limits.body_bytes_max
        self.engine = Engine(
            auth=authentication.made(auth),
            base_origin=None if self._base is None else self._base.origin,
            timeout=self._timeout,
            limits=limits,
            follow_redirects=follow_redirects,
            redirects_max=redirects_max,
            jar=_jar(cookies),
            hooks=_hooks(event_hooks),
            retry=retry,
            hedge=hedge,
            breaker=breaker,
            proxy_of=choose,
            is_tracing=propagate_trace,
        )
        self._is_plain = self.engine.is_plain and self._timeout.total is None
        self._prepared: dict[tuple[str, str, bool], Prepared | None] = {}
        self._opened: dict[Any, Opened] = {}
        self._opening = threading.Lock()
        self._is_closed = False
        _clients.add(self)

    def __repr__(self) -> str:
        return f"<citius.http.Client {self._base or ''}>".replace(" >", ">")

    # --- opening and closing ---

    @contextlib.asynccontextmanager
    async def lifespan(self, app: object) -> AsyncGenerator[None]:
        """For ``App(lifespan=client.lifespan)``: closed when the application stops."""
        async with self:
            yield

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.close()

    async def close(self) -> None:
        """Close all connections; requests that are under way fail. Later requests are ``ClientClosed``."""
        self._is_closed = True
        self._prepared.clear()
        with self._opening:
            here = self._opened.pop(_running_loop(), None)
        self._close_others()
        if here is not None:
            close: Any = getattr(here.transport, "close", None)
            if close is not None:
                await close()

    def close_here(self) -> None:
        """The same in a thread."""
        self._is_closed = True
        self._prepared.clear()
        self._close_others()

    def open_here(self) -> Opened:
        """The transport for the running loop, or for threads."""
        return self._open(_running_loop())

    def _close_others(self) -> None:
        with self._opening:
            others = list(self._opened.values())
            self._opened.clear()
        for other in others:
            _close_now(other)

    def _forget(self) -> None:
        """In a forked child: connections are the parent's."""
        self._opening = threading.Lock()  # a thread of the parent may have had it
        self._opened.clear()
        self._prepared.clear()
        self.engine.forget()

    @property
    def is_closed(self) -> bool:
        """Whether ``close`` was called."""
        return self._is_closed

    @property
    def cookies(self) -> CookieJar | None:
        """The cookies, if the client keeps any."""
        return self.engine.jar

    def stats(self) -> dict[str, int]:
        """Connections and requests of all loops of this process."""
        found: dict[str, int] = {}
        for opened in list(self._opened.values()):
            stats: Any = getattr(opened.transport, "stats", None)
            counts: dict[str, int] = {} if stats is None else stats()
            for key, value in counts.items():
                found[key] = found.get(key, 0) + value
        return found

    def _open(self, loop: Any) -> Opened:
        """The transport for the running loop, or for threads."""
        with self._opening:
            if self._is_closed:
                raise ClientClosed("the client is closed")
            past = [one for one in self._opened if one is not None and one.is_closed()]
            left = [self._opened.pop(one) for one in past]
            opened = self._opened.get(loop) or self._make_opened()
            self._opened[loop] = opened
        for other in left:
            _close_now(other)
        return opened

    def _make_opened(self) -> Opened:
        transport = self._given or self._make_transport()
        place = self._base
        client = Measured(
            "http", self._name or (place.authority if place else "*"), "",
            place.host if place else "", place.port if place else 0,
        )  # fmt: skip
        return Opened(transport, measured(client, lambda: _counts(transport)))

    def _make_transport(self) -> Transport:
        if self._app is not None:
            from citius.http.memory import AppTransport

            return AppTransport(self._app)
        from citius.http.pooled import PooledTransport

        made: Any = PooledTransport(self._pool_options, unix_path=self._unix_path, pins=self._pins)
        return made

    # --- requests ---

    async def get(self, url: str, **options: Unpack[GetOptions]) -> Response:
        """Send a GET.

        Raises:
            RequestError: There is no response; its class says why.
        """
        if not options and self._is_plain:
            return await self._plain("GET", url)
        return await self.request("GET", url, **options)

    async def head(self, url: str, **options: Unpack[GetOptions]) -> Response:
        """Send a HEAD."""
        return await self.request("HEAD", url, **options)

    async def options(self, url: str, **options: Unpack[GetOptions]) -> Response:
        """Send an OPTIONS."""
        return await self.request("OPTIONS", url, **options)

    async def delete(self, url: str, **options: Unpack[RequestOptions]) -> Response:
        """Send a DELETE."""
        return await self.request("DELETE", url, **options)

    async def post(self, url: str, **options: Unpack[RequestOptions]) -> Response:
        """Send a POST."""
        if self._is_plain and len(options) == 1 and (value := options.get("json")) is not None:
            return await self._plain("POST", url, encode_json(value))
        return await self.request("POST", url, **options)

    async def put(self, url: str, **options: Unpack[RequestOptions]) -> Response:
        """Send a PUT."""
        if self._is_plain and len(options) == 1 and (value := options.get("json")) is not None:
            return await self._plain("PUT", url, encode_json(value))
        return await self.request("PUT", url, **options)

    async def patch(self, url: str, **options: Unpack[RequestOptions]) -> Response:
        """Send a PATCH."""
        if self._is_plain and len(options) == 1 and (value := options.get("json")) is not None:
            return await self._plain("PATCH", url, encode_json(value))
        return await self.request("PATCH", url, **options)

    async def request(self, method: str, url: str, **options: Unpack[RequestOptions]) -> Response:
        """Send a request.

        Raises:
            RequestError: There is no response; its class says why.
        """
        opened = self._opened.get(_running_loop()) or self._open(_running_loop())
        request, call = self.prepare(method, url, options, is_stream=False)
        return await self.engine.run(ON_LOOP, opened, request, call)

    @contextlib.asynccontextmanager
    async def stream(
        self, method: str, url: str, **options: Unpack[RequestOptions]
    ) -> AsyncGenerator[StreamedResponse]:
        """``async with client.stream("GET", url) as response``: its content is read as it comes."""
        opened = self._opened.get(_running_loop()) or self._open(_running_loop())
        request, call = self.prepare(method, url, options, is_stream=True)
        response: StreamedResponse = await self.engine.run(ON_LOOP, opened, request, call)
        try:
            yield response
        finally:
            await response.close()

    @property
    def sync(self) -> SyncClient:
        """The same for code that waits serially: threads, greenlets, goroutines, WSGI, scripts."""
        from citius.http.sync import SyncClient

        return SyncClient(self)

    # --- how they are made ---

    async def _plain(self, method: str, url: str, body: bytes | None = None) -> Response:
        """A request that is nothing but one exchange, without content or with JSON."""
        opened = self._opened.get(_running_loop()) or self._open(_running_loop())
        prepared = None
        if (match := urls.PLAIN(url)) is not None:
            origin = match[1]
            key = method, origin, body is not None
            try:
                prepared = self._prepared[key]
            except KeyError:
                prepared = self._prepare(opened, key)
        is_traced = self._is_tracing and "opentelemetry.trace" in sys.modules
        if match is None or prepared is None or has_deadline() or is_traced:
            return await self.request(method, url, **_of_json(body))
        handle, at, prefix, fields = prepared
        target = prefix + url[match.end(1) :]
        if opened.metrics is None:
            try:
                reply = await opened.send(
                    handle, method, target, fields, body, False, self._deadlines
                )
            except RequestError as error:
                error.method, error.url = method, f"{at}{target}"
                raise
        else:
            parts = handle, method, target, fields, body, False, self._deadlines
            reply = await self._measured(opened.metrics, opened, f"{at}{target}", parts)
        response = Response(reply, (method, self._base, url), self._limit)
        if self._follows and response.is_redirect:
            first, call = self.prepare(method, url, _of_json(body), is_stream=False)
            return await self.engine.run(ON_LOOP, opened, first, call, response)
        return response

    async def _measured(
        self, metrics: ClientMetrics, opened: Opened, url: str, parts: tuple[Any, ...]
    ) -> Reply:
        operation = metrics.begin()
        method = parts[1]
        reply: Reply | None = None
        failure: BaseException | None = None
        try:
            reply = await opened.send(*parts)
            return reply
        except BaseException as error:
            failure = error
            if isinstance(error, RequestError):
                error.method, error.url = method, url
            raise
        finally:
            ended(operation, metrics, method, url, reply, failure)

    def _prepare(self, opened: Opened, key: tuple[str, str, bool]) -> Prepared | None:
        """What plain requests to one origin have in common, kept for the next one.

        Returns:
            The origin as the transport has it and as text, what is put before a path, and the fields;
            ``None`` if they are not plain: there is a query or a login for all of them.
        """
        method, origin, has_json = key
        if not origin and self._base is None:
            return None
        options = _of_json(b"" if has_json else None)
        request, call = self.prepare(method, f"{origin}/", options, is_stream=False)
        made: Prepared | None = None
        if call.auth is None and "?" not in request.url.target:
            handle = self.engine.origin(opened, request.url).handle
            made = handle, request.url.origin, request.url.target[:-1], request.fields()
        if len(self._prepared) >= PREPARED_MAX:
            self._prepared.clear()
        self._prepared[key] = made
        return made

    def prepare(
        self, method: str, url: str, options: RequestOptions, *, is_stream: bool
    ) -> tuple[Request, Call]:
        """The request, and what was said for it.

        Raises:
            ConfigError: There is no such option.
        """
        if not options.keys() <= _OPTIONS:
            refuse_unknown("a request", options, _OPTIONS)
        place = urls.joined(self._base, url)
        engine = self.engine
        is_foreign = engine.base_origin is not None and place.origin != engine.base_origin
        params = options.get("params")
        # A key may be among the client's.
        own = "" if is_foreign else self._params
        query = "&".join(
            one for one in (own, urlencode(params) if params is not None else "") if one
        )
        if query:
            place = place.with_query(query)
        headers = MutableHeaders(list(self._foreign if is_foreign else self._fields))
        given = options.get("headers")
        if given:
            fields = _checked(given)
            for name in {name for name, _ in fields}:
                headers.pop(name, None)
            for name, value in fields:
                headers.add(name, value)
        body = EMPTY
        if not _IS_BODY.isdisjoint(options):
            body = encode(
                options.get("content"),
                options.get("json"),
                options.get("data"),
                options.get("files"),
            )
            if body.media_type is not None and "content-type" not in headers:
                headers.add("content-type", body.media_type)
        timeout = options.get("timeout", UNSET)
        auth = options.get("auth", UNSET)
        call = Call(
            self._timeout if timeout is UNSET else _timeout(timeout),
            engine.auth_of(UNSET if isinstance(auth, Unset) else authentication.made(auth), place),
            _follows(options, engine.follow_redirects),
            is_stream,
            place.origin,
        )
        request = Request(method, place, headers, body)
        request.is_elsewhere = is_foreign
        return request, call


_JSON_FIELDS: Final = (("content-type", "application/json"),)


def _of_json(body: bytes | None) -> RequestOptions:
    return {} if body is None else {"content": body, "headers": _JSON_FIELDS}


_IS_BODY: Final = frozenset(BodyOptions.__annotations__)
_clients: weakref.WeakSet[Client] = weakref.WeakSet()


def _leave_to_parent() -> None:
    for client in list(_clients):
        client._forget()  # pyright: ignore[reportPrivateUsage]


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_leave_to_parent)


def _user_agent() -> str:
    from citius._core import __version__

    return f"citius/{__version__}"


def _close_now(opened: Opened) -> None:
    close: Any = getattr(opened.transport, "close_now", None)
    if close is not None:
        close()


def _counts(transport: Transport) -> tuple[int, int, int]:
    stats: Callable[[], Mapping[str, int]] | None = getattr(transport, "stats", None)
    found: Mapping[str, int] = {} if stats is None else stats()
    idle = found.get("idle", 0)
    return found.get("open", 0) - idle, idle, found.get("waiting", 0)


def _checked(headers: HeaderTypes | None) -> list[tuple[str, str]]:
    """Fields in lower case; one with a line break is refused where it is given."""
    made = MutableHeaders()
    if headers is not None:
        for name, value in items_of(headers):
            made.add(name.lower(), value)
    return made.multi_items()


def _timeout(given: Any) -> Timeout:
    if isinstance(given, Timeout):
        return given
    if given is UNSET:
        return Timeout()
    if given is None or (isinstance(given, int | float) and not isinstance(given, bool)):
        return Timeout(given)
    raise ConfigError(f"timeout= is seconds, None or a Timeout, got {given!r}")


def _follows(options: RequestOptions, of_client: bool) -> bool:
    given = options.get("follow_redirects", of_client)
    if given is not True and given is not False:
        check_value("a request", "follow_redirects", given, "bool")
    return given


def _jar(given: bool | CookieJar | Mapping[str, str] | None) -> CookieJar | None:
    if given is None or given is False:
        return None
    if isinstance(given, CookieJar):
        return given
    return CookieJar() if given is True else CookieJar(given.items())


def _hooks(given: Mapping[Any, Sequence[Hook]] | None) -> dict[str, list[Hook]]:
    hooks = {str(key): list(functions) for key, functions in (given or {}).items()}
    if unknown := hooks.keys() - {"request", "response"}:
        raise ConfigError(f"event_hooks has {sorted(unknown)}; there are 'request' and 'response'")
    return hooks
