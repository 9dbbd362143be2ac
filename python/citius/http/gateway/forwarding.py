"""One request that is passed on: where to, what is changed of it, and what its client gets if that fails.

The head of the request is made by ``_core.ForwardRules``, the exchange is ``HttpPool.forward``; the body of
the ``Response`` is a ``_core.Relay``. Tests: ``tests/http/gateway/``.
"""

from __future__ import annotations

import base64
import inspect
import os
import sys
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from citius._core import (
    ForwardLimit,
    ForwardRules,
    ForwardServers,
    HttpReply,
    OriginLimits,
    Response,
    direct_forward,
    relay,
)
from citius.errors import ConfigError, HTTPError
from citius.http.carriers import ON_LOOP, Call
from citius.http.engine import acquired, ended, trace_parent
from citius.http.errors import (
    CircuitOpen,
    ConnectError,
    ConnectTimeout,
    LocalProtocolError,
    PoolTimeout,
    ReadError,
    ReadTimeout,
    RemoteProtocolError,
    RequestError,
    TotalTimeout,
    WriteError,
    WriteTimeout,
)
from citius.http.gateway.heads import dashed, is_granted, unambiguous, upgrades
from citius.http.gateway.pieces import pieces
from citius.http.gateway.upstreams import Server, Upstreams, client_of
from citius.http.options import IDEMPOTENT, UNSET, Timeout, Unset, encoded
from citius.observability.logging import warning
from citius.unknown_options import known_options, with_known_options
from citius.web.binding.headers import OF_CONNECTION, MutableHeaders
from citius.web.declarations.parameters.unread_markers import refuse_unread_markers
from citius.web.responses.declared.other_results import refuse_records_of_hooks

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping

    from citius._core import ClientOperation, DirectForward, ForwardSlot, Request
    from citius.http.carriers import Opened, Origin
    from citius.http.client import Client
    from citius.http.gateway.caching import Caching, HTTPCache
    from citius.http.urls import URL

    RequestHook: TypeAlias = "Callable[[ForwardedRequest], Any]"
    ResponseHook: TypeAlias = "Callable[[Request, Response], Any]"

VIA: Final = "citius"
"""What a gateway is called in ``Via``, unless it says otherwise."""
_TIMED_OUT: Final = (ConnectTimeout, ReadTimeout, WriteTimeout, TotalTimeout)
_UNSENT: Final = (ConnectError, ConnectTimeout)


class ForwardedRequest:
    """A request before it is passed on; what is assigned is what is sent.

    Attributes:
        request: The client's request.
        method: The method.
        target: Path and query, percent-encoded.
        headers: The fields, without those of the connection.
        server: The URL of the server that gets it.
    """

    __slots__ = ("headers", "method", "request", "server", "target")

    def __init__(
        self, request: Request, method: str, target: str, headers: MutableHeaders, server: str
    ) -> None:
        self.request, self.method, self.target = request, method, target
        self.headers, self.server = headers, server


class Forwarder:
    """What passes requests on; made once for each declaration."""

    def __init__(
        self,
        to: Client | Upstreams,
        rules: ForwardRules,
        *,
        via: str = VIA,
        timeout: Timeout | None = None,
        headers: Mapping[str, str] | None = None,
        on_request: RequestHook | None = None,
        on_response: ResponseHook | None = None,
        requests_max: int | None = None,
        retries: bool = True,
        cache: HTTPCache | None = None,
    ) -> None:
        self.upstreams = to if isinstance(to, Upstreams) else None
        self.client = to.client if isinstance(to, Upstreams) else client_of(to)
        self._only = None if isinstance(to, Upstreams) else Server(_base_of(self.client))
        self._rules, self._via = rules, via
        self._timeout = timeout or self.client.engine.timeout
        given = [(name.lower(), value) for name, value in (headers or {}).items()]
        names = {name for name, _ in given}
        of_client = [pair for pair in self.client.own_fields if pair[0] not in names]
        self._own = encoded([*of_client, *given])
        self._own_names = {dashed(name) for name, _ in self._own}
        self._on_request, self._on_response = on_request, on_response
        self._limit = ForwardLimit(requests_max)
        self._retries = retries
        self._caching: Caching | None = None
        if cache is not None:
            from citius.http.gateway.caching import Caching

            self._caching = Caching(cache, self.name, self._own_names)
        self.direct: DirectForward | None = None
        """What passes on what need not come here, if there is such a thing."""

    def make_direct(self) -> DirectForward | None:
        """What passes requests on without Python; ``None`` if each has to be seen here."""
        is_seen = self._on_request or self._on_response or self._caching is not None
        servers: ForwardServers | None = None
        if self.upstreams is not None:
            servers = self.upstreams.direct_servers
        elif self._only is not None:
            servers = ForwardServers([self._only.state])
        if is_seen or servers is None:
            return None
        deadlines = self._timeout.deadlines
        self.direct = direct_forward(
            self._rules, servers, self._own, deadlines, self._limit, self._go_on
        )
        return self.direct

    @property
    def name(self) -> str:
        """Where requests go."""
        return ", ".join(one.url.origin for one in self._all)

    async def __call__(self, request: Request, rules: ForwardRules | None = None) -> Response:
        """Pass a request on; the response is that of the other server.

        Raises:
            HTTPError: There is none, or the request cannot be passed on.
        """
        if request.method == "OPTIONS" and request.header("max-forwards", "").strip() == "0":
            return Response(b"", 204)
        target, fields = (rules or self._rules).head(request)
        if self._caching is not None:
            return await self._caching.respond(request, target, fields, self._pass_on)
        return await self._pass_on(request, target, fields)

    async def _pass_on(
        self, request: Request, target: str, fields: list[tuple[bytes, bytes]]
    ) -> Response:
        if self._limit.is_reached:
            count = self._limit.requests
            what = f": 503, for {count} requests of its route are passed on already (requests_max)"
            warning(_message(request, what))
            raise HTTPError(503, "too many requests are under way", {"retry-after": "1"})
        return await self._try(request, target, fields, [])

    async def _go_on(
        self, request: Request, server: int, outcome: HttpReply | BaseException,
        operation: ClientOperation | None, slot: ForwardSlot | None, since: int,
    ) -> Response:  # fmt: skip
        """Go on with what the extension has begun: a response that it does not send, or an error."""
        at = self._all[server]
        if not isinstance(outcome, BaseException):
            at.state.answered()
            lease = self._lease(at)
            lease.slots = slot
            try:
                return self._response(outcome, lease, [], is_extended=False)
            except BaseException:
                lease.end()
                raise
        if slot is not None:
            slot.release()
        target, fields = self._rules.head(request)
        opened = self.client.open_here()
        metrics = opened.metrics
        if (breaker := self.client.engine.origin(opened, at.url).breaker) is not None:
            breaker.leave(False, None, outcome, since)
        if operation is not None and metrics is not None:
            ended(operation, metrics, request.method, _whole(at.url, target), None, outcome)
        return await self._try(request, target, fields, [at], outcome)

    async def _try(
        self, request: Request, target: str, fields: list[tuple[bytes, bytes]], tried: list[Server],
        failure: BaseException | None = None,
    ) -> Response:  # fmt: skip
        """Have one of the servers answer; ``failure`` is what the last of ``tried`` came to."""
        while True:
            try:
                if failure is not None:
                    raise failure
                server = self._only or self._choose(request, tried)
                tried.append(server)
                return await self._exchange(request, server, target, list(fields))
            except LocalProtocolError:  # of a hook, or of path=
                raise
            except RequestError as error:
                failure = None
                if self.upstreams is not None and _is_of_server(error, fields):
                    self.upstreams.failed(tried[-1], error)
                if self._retries and len(tried) == 1 and self._may_repeat(request, error):
                    continue
                raise _refusal(request, error) from None

    def _choose(self, request: Request, tried: list[Server]) -> Server:
        assert self.upstreams is not None
        server = self.upstreams.choose(request, tried)
        if server is None:
            warning(_message(request, ": 503, for no server gets requests"))
            raise HTTPError(503, "no server is there for it", {"retry-after": "1"})
        return server

    def _may_repeat(self, request: Request, error: RequestError) -> bool:
        """Whether another server may get the request: nothing has left, or it may be carried out twice."""
        if self.upstreams is None or len(self.upstreams.servers) < 2:
            return False
        if isinstance(error, _UNSENT):
            return True
        is_lost = isinstance(error, ReadError | WriteError)
        return is_lost and request.method in IDEMPOTENT and not ForwardRules.has_body(request)

    async def _exchange(
        self, request: Request, server: Server, target: str, fields: list[tuple[bytes, bytes]]
    ) -> Response:
        lease = self._lease(server)
        try:
            is_extended = request.method == "CONNECT"  # a WebSocket over HTTP/2 (RFC 8441)
            method, target, fields = self._onward(request, target, fields)
            if self._on_request is not None:
                texts = [
                    (name.decode("latin-1"), value.decode("latin-1")) for name, value in fields
                ]
                about = ForwardedRequest(
                    request, method, target, MutableHeaders(texts), server.url.origin
                )
                early = self._on_request(about)
                early = await early if inspect.isawaitable(early) else early
                if early is not None:
                    lease.end()
                    return early
                method, target = about.method, about.target
                fields = unambiguous(encoded(about.headers.multi_items()))
            reply = await self._send(request, server, method, target, fields, lease)
            server.state.answered()
            response = self._response(reply, lease, fields, is_extended=is_extended)
        except BaseException:
            lease.end()
            raise
        if self._on_response is not None:
            changed = self._on_response(request, response)
            changed = await changed if inspect.isawaitable(changed) else changed
            response = response if changed is None else changed
        return response

    def _onward(
        self, request: Request, target: str, fields: list[tuple[bytes, bytes]]
    ) -> tuple[str, str, list[tuple[bytes, bytes]]]:
        """Method, target and fields for another server."""
        method = request.method
        if method == "CONNECT":
            method = "GET"
            fields.append((b"sec-websocket-key", base64.b64encode(os.urandom(16))))
        if self._own:
            names = self._own_names
            fields = [pair for pair in fields if dashed(pair[0]) not in names] + self._own
        if self.client.propagates_trace and (parent := trace_parent()):
            fields = [pair for pair in fields if pair[0].lower() != b"traceparent"]
            fields.append((b"traceparent", parent.encode()))
        return method, target, fields

    async def _send(
        self, request: Request, server: Server, method: str, target: str,
        fields: Any, lease: _Lease,
    ) -> HttpReply:  # fmt: skip
        client, url = self.client, server.url
        opened = client.open_here()
        origin: Origin = client.engine.origin(opened, url)
        call = Call(self._timeout, None, False, True, url.origin)
        is_tunnel = upgrades(fields)
        is_probe = False if origin.breaker is None else origin.breaker.enter()
        since = 0 if origin.breaker is None else origin.breaker.changes
        operation = None if opened.metrics is None else opened.metrics.begin()
        reply: Any = None
        failure: BaseException | None = None
        try:
            if origin.slots is not None:
                await acquired(ON_LOOP, origin.slots, call, call.deadlines())
                lease.slots = origin.slots
            deadlines = call.deadlines()
            transport: Any = opened.transport
            pass_on: Any = getattr(transport, "forward", None)
            if pass_on is not None:
                self._learn(opened, origin, server)
                if is_tunnel:
                    pass_on = transport.tunnel
                reply = await pass_on(origin.handle, method, target, fields, request, deadlines)
            else:  # one of a test, or an application in memory
                body = await request.read()
                reply = await opened.send(
                    origin.handle, method, target, fields, body, True, deadlines
                )
            return reply
        except BaseException as error:
            failure = error
            raise
        finally:
            status = None if reply is None else reply.status
            if origin.breaker is not None:
                counted = None if is_tunnel and not isinstance(failure, _UNSENT) else failure
                origin.breaker.leave(is_probe, status, counted, since)
            if operation is not None and opened.metrics is not None:
                ended(operation, opened.metrics, method, _whole(url, target), reply, failure)

    def learn(self) -> None:
        """Make known to the extension where requests go from this loop."""
        if self.direct is None:
            return
        opened = self.client.open_here()
        for server in self._all:
            self._learn(opened, self.client.engine.origin(opened, server.url), server)

    def _learn(self, opened: Opened, origin: Origin, server: Server) -> None:
        metrics = opened.metrics
        is_traced = (
            (metrics is not None and metrics.is_tracing)
            or (self.client.propagates_trace and "opentelemetry.trace" in sys.modules)
        )  # fmt: skip
        pool: Any = getattr(opened.transport, "core", None)
        if self.direct is not None and pool is not None and not is_traced:
            at = self._all.index(server)
            self.direct.learn(at, pool, origin.handle, metrics, _limits_of(origin))

    @property
    def _all(self) -> list[Server]:
        if self._only is not None:
            return [self._only]
        assert self.upstreams is not None
        return self.upstreams.servers

    def _lease(self, server: Server) -> _Lease:
        self._limit.begin()
        server.state.begin()
        return _Lease(self._limit, server)

    def _response(
        self, reply: Any, lease: _Lease, sent: list[tuple[bytes, bytes]], *, is_extended: bool
    ) -> Response:
        if not isinstance(reply, HttpReply):  # of a transport in Python
            lease.end()
            fields = [
                (name.decode("latin-1"), value.decode("latin-1"))
                for name, value in reply.fields
                if name.lower() not in (b"connection", b"transfer-encoding", b"keep-alive")
            ]
            return Response(pieces(reply), reply.status, [*fields, ("via", f"1.1 {self._via}")])
        reply.on_end(lease.end)
        fields = reply.forwarded_fields(self._via)
        status = reply.status
        if reply.is_tunnel:
            # The extension makes a 101 of it, or what is its like in the client's protocol.
            status = 200
            if not is_granted(reply, sent):
                reply.close()
                raise RemoteProtocolError("the server has granted what was not asked for")
            if is_extended:
                fields = [pair for pair in fields if pair[0] != "sec-websocket-accept"]
        elif is_extended and status < 300:
            # Its client would take the content for that of a WebSocket (RFC 8441 §5).
            reply.close()
            raise RemoteProtocolError(f"the server has not switched to a WebSocket: {status}")
        return Response(relay(reply), status, fields)


class _Lease:
    """A request that is under way at a server, until its response has been passed on."""

    __slots__ = ("_is_over", "_limit", "_server", "slots")

    def __init__(self, limit: ForwardLimit, server: Server) -> None:
        self._limit, self._server, self._is_over = limit, server, False
        self.slots: Any = None

    def end(self) -> None:
        """It is over."""
        if self._is_over:
            return
        self._is_over = True
        self._limit.end()
        self._server.state.end()
        if self.slots is not None:
            self.slots.release()


def _limits_of(origin: Origin) -> OriginLimits | None:
    """What limits requests to an origin that Python does not see."""
    slots, breaker = origin.slots, origin.breaker
    if slots is None and breaker is None:
        return None
    return OriginLimits(
        None if slots is None else (slots.state, slots.release),
        None if breaker is None else (breaker.gate, breaker.leave, list(breaker.statuses)),
    )


def _whole(url: URL, target: str) -> str:
    """What was asked for, for spans; not each target makes a URL, which is no failure of a server."""
    return url.origin + target if target.startswith("/") else str(url)


def _message(request: Request, what: str) -> str:
    return request._message(what)  # pyright: ignore[reportPrivateUsage]


def _is_of_server(error: RequestError, fields: list[tuple[bytes, bytes]]) -> bool:
    """Whether an error speaks against the server, and not against what was asked of it.

    A server may speak HTTP/2 only, or know no WebSockets, and is there for all other requests.
    """
    if isinstance(error, _UNSENT):
        return True
    is_queued = isinstance(error, TotalTimeout) and error.in_queue
    return not (is_queued or isinstance(error, PoolTimeout | CircuitOpen) or upgrades(fields))


def _refusal(request: Request, error: RequestError) -> HTTPError:
    """What the client gets; the log has the reason."""
    if isinstance(error, PoolTimeout | CircuitOpen):
        made = HTTPError(
            503, "the server behind this one takes no more requests", {"retry-after": "1"}
        )
    elif isinstance(error, _TIMED_OUT):
        made = HTTPError(504, "the server behind this one has not answered in time")
    else:
        made = HTTPError(502, "the server behind this one has not answered")
    warning(_message(request, f": {made.status_code}, for {type(error).__name__}: {error}"))
    return made


def _base_of(client: Client) -> URL:
    base = client.base
    if base is None:
        raise ConfigError("a client that passes requests on has base_url=, which says where to")
    if base.target not in ("", "/"):
        raise ConfigError(
            f"the base_url {base} of a client that passes requests on has no path: say it with path="
        )
    return base


_WRITTEN_ITSELF: Final = OF_CONNECTION | {"content-length", "via"}


def check_headers(headers: Mapping[str, str] | None) -> None:
    """Fields that are set in every request that is passed on.

    Raises:
        ConfigError: One of them is the gateway's own to say.
    """
    for name in headers or {}:
        if name.lower() in _WRITTEN_ITSELF:
            raise ConfigError(f"headers= of a gateway: {name} is written by the gateway itself")


@with_known_options
async def forward(
    request: Request,
    to: Client | Upstreams,
    *,
    path: str | None = None,
    headers: Mapping[str, str] | None = None,
    timeout: Timeout | float | Unset | None = UNSET,
    on_request: RequestHook | None = None,
    on_response: ResponseHook | None = None,
) -> Response:
    """Pass the request that is being handled on, and return the response for it.

    The route has ``stream=True`` unless the body is to be held until it is complete. Content does not pass
    through Python, in neither direction.

    Args:
        request: The request.
        to: A client whose ``base_url`` is the server, or ``Upstreams``.
        path: The path to ask for, percent-encoded; that of the request without it.
        headers: Fields to set.
        timeout: In place of the client's.
        on_request: Called with the ``ForwardedRequest``; a ``Response`` that it returns is the response.
        on_response: Called with the request and the ``Response``, whose headers may be changed.

    Raises:
        HTTPError: 502, 503 or 504 where there is no response; the log says why.
    """
    is_plain = headers is None and timeout is UNSET and on_request is None and on_response is None
    holder = to if isinstance(to, Upstreams) else to.engine
    forwarder = holder.plain_forwarder if is_plain else None
    if forwarder is None:
        check_headers(headers)
        refuse_records_of_hooks(on_request, on_response)
        if on_request is not None:
            refuse_unread_markers(on_request, (request,), {})
        if on_response is not None:
            refuse_unread_markers(on_response, (request, None), {})
        forwarder = Forwarder(
            to,
            ForwardRules(via=VIA),
            timeout=None if isinstance(timeout, Unset) else made_timeout(timeout),
            headers=headers,
            on_request=on_request,
            on_response=on_response,
        )
        if is_plain:
            holder.plain_forwarder = forwarder
    if path is None:
        return await forwarder(request)
    if not path.startswith("/") or "?" in path or "#" in path:
        raise ValueError(
            f"path= begins with a slash and has no query, percent-encode what is in it; got {path!r}"
        )
    return await forwarder(request, ForwardRules(via=VIA, path=[path]))


def made_timeout(given: Timeout | float | None) -> Timeout:
    """A number of seconds is one for each part."""
    return given if isinstance(given, Timeout) else Timeout(given)


@known_options
class Forward:
    """What a handler returns to have its request passed on: ``return Forward(client, path="/other")``.

    The arguments are those of ``forward``.
    """

    __slots__ = ("_options", "_to")

    def __init__(
        self,
        to: Client | Upstreams,
        *,
        path: str | None = None,
        headers: Mapping[str, str] | None = None,
        timeout: Timeout | float | Unset | None = UNSET,
        on_request: RequestHook | None = None,
        on_response: ResponseHook | None = None,
    ) -> None:
        self._to = to
        self._options: dict[str, Any] = {
            "path": path, "headers": headers, "timeout": timeout, "on_request": on_request,
            "on_response": on_response,
        }  # fmt: skip

    def citius_response(self, request: Request) -> Awaitable[Response]:
        """What the server awaits in place of this value."""
        return forward(request, self._to, **self._options)
