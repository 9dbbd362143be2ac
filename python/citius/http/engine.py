"""How a request is made, sent, authenticated, redirected and repeated: the same for coroutines and threads.

The methods are coroutines. On a loop they are awaited; for a thread the carrier's parts wait themselves, so
that a coroutine ends without having suspended (``base.finished``). The layers, outermost first: redirects,
hooks and authentication, retries, hedging, one attempt. Tests: ``tests/http/``.
"""

from __future__ import annotations

import asyncio
import inspect
import sys
import threading
import time
from typing import TYPE_CHECKING, Any, Final
from weakref import WeakValueDictionary

from citius.http.auth import Auth, Basic, Renewal
from citius.http.bodies import EMPTY
from citius.http.carriers import Origin
from citius.http.cookies import octets
from citius.http.errors import (
    CircuitOpen,
    ConnectError,
    ConnectTimeout,
    InvalidURL,
    PoolTimeout,
    ReadError,
    RemoteProtocolError,
    RequestError,
    TooLarge,
    TooManyRedirects,
    WriteError,
)
from citius.http.options import IDEMPOTENT, UNSET
from citius.http.request import Request
from citius.http.response import Response, StreamedResponse, SyncStreamedResponse
from citius.http.retries import Breaker, Budget, Retries, Slots
from citius.web.binding.headers import MutableHeaders

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from citius._core import ClientMetrics, ClientOperation
    from citius.http.base import Fields, Reply
    from citius.http.carriers import Call, Carrier, Opened
    from citius.http.cookies import CookieJar
    from citius.http.gateway.forwarding import Forwarder
    from citius.http.options import CircuitBreaker, Deadlines, Hedge, Limits, Retry, Timeout
    from citius.http.urls import URL

    Hook = Callable[[Any], object]

CREDENTIALS: Final = frozenset(
    {
        "authorization", "cookie", "proxy-authorization", "x-api-key", "api-key", "x-auth-token",
        "x-goog-api-key", "x-amz-security-token", "x-csrf-token",
    }
)  # fmt: skip
"""Fields that are not sent to another origin than the one they were meant for."""
_OF_CONTENT: Final = (
    "content-type",
    "content-encoding",
    "content-language",
    "content-location",
    "digest",
)
ORIGINS_MAX: Final = 1000
"""Origins of which a client keeps what it knows; of more the oldest is forgotten that has not failed last."""
_REDIRECTS: Final = frozenset({301, 302, 303, 307, 308})


class Engine:
    """What a client does with a request."""

    def __init__(
        self,
        *,
        auth: Auth | None,
        base_origin: str | None,
        timeout: Timeout,
        limits: Limits,
        follow_redirects: bool,
        redirects_max: int,
        jar: CookieJar | None,
        hooks: Mapping[str, list[Hook]],
        retry: Retry | None,
        hedge: Hedge | None,
        breaker: CircuitBreaker | None,
        proxy_of: Callable[[URL], str | None] | None,
        is_tracing: bool,
    ) -> None:
        self.auth, self.base_origin, self.timeout, self.limits = auth, base_origin, timeout, limits
        self.follow_redirects, self._redirects_max, self.jar = follow_redirects, redirects_max, jar
        self._on_request, self._on_response = hooks.get("request", []), hooks.get("response", [])
        self._retries = None if retry is None else Retries(retry)
        self._hedge = hedge
        self._hedge_budget = None if hedge is None else Budget(hedge.budget_ratio, 1.0)
        self._breaker, self._proxy_of, self._is_tracing = breaker, proxy_of, is_tracing
        self._origins: dict[tuple[str, str | None], Origin] = {}
        self._making = threading.Lock()
        self._slots: WeakValueDictionary[tuple[str, str | None], Slots] = WeakValueDictionary()
        """Those of forgotten origins, as long as a request has one or waits for one."""
        self.is_plain = not (
            auth or jar is not None or self._on_request or self._on_response or retry or hedge or breaker
            or limits.requests_per_origin_max
        )  # fmt: skip
        """Whether a request is nothing but one exchange."""
        self.plain_forwarder: Forwarder | None = None
        """What a gateway's ``forward`` without further arguments has made of the client."""

    # --- origins ---

    def origin(self, opened: Opened, url: URL) -> Origin:
        """What is kept for the origin of a URL."""
        proxy = None if self._proxy_of is None else self._proxy_of(url)
        key = url.origin, proxy
        if (found := self._origins.get(key)) is not None:
            return found
        # Threads that made one each would have the slots and the circuit breaker of an origin twice.
        with self._making:
            return self._origins.get(key) or self._make_origin(opened, url, key)

    def _make_origin(self, opened: Opened, url: URL, key: tuple[str, str | None]) -> Origin:
        limit = self.limits.requests_per_origin_max
        made = Origin(
            opened.transport.origin(url, key[1]),
            None if self._breaker is None else Breaker(self._breaker, url.origin, time.monotonic),
            None if limit is None else self._slots.pop(key, None) or Slots(limit, url.origin),
        )
        if len(self._origins) >= ORIGINS_MAX:
            # Where all have failed, no memory of failures is worth more than another.
            oldest = next(
                (key for key, one in self._origins.items() if one.is_well),
                next(iter(self._origins)),
            )
            forgotten = self._origins.pop(oldest)
            if forgotten.slots is not None:
                self._slots[oldest] = forgotten.slots
        self._origins[key] = made
        return made

    def forget(self) -> None:
        """In a forked child: the parent's requests have slots, and its threads may have locks, for good."""
        self._making = threading.Lock()
        self._origins.clear()
        self._slots.clear()
        self.plain_forwarder = None

    # --- layers ---

    async def run(
        self,
        carrier: Carrier,
        opened: Opened,
        request: Request,
        call: Call,
        first: Response | None = None,
    ) -> Any:
        """Send a request, unless its ``first`` response is there; follow redirects if that is asked for."""
        history: tuple[Response, ...] = ()
        auth_origin = request.url.origin
        while True:
            auth = call.auth if request.url.origin == auth_origin else None
            response = first or await self._authenticated(carrier, opened, request, call, auth)
            first, response.history = None, history
            try:
                for hook in self._on_response:
                    await carrier.within(call, _called(hook, response))
                target = self._redirect_of(response, call)
            except BaseException:
                _leave(response)
                raise
            if target is None:
                return response
            _leave(response)
            if len(history) >= self._redirects_max:
                error = TooManyRedirects(
                    f"{history[0].url if history else request.url}: more than {self._redirects_max} "
                    f"redirects, the last one to {target}"
                )
                error.origin, error.url, error.method = (
                    request.url.origin,
                    str(request.url),
                    request.method,
                )
                raise error
            history = (*history, response)
            if not call.is_stream:
                self._check_history(history, request)
            request = redirected(request, response.status_code, target)

    def _check_history(self, history: tuple[Response, ...], request: Request) -> None:
        """Responses that led elsewhere are kept: together they have what one may have."""
        if sum(len(one._reply.body) for one in history) > self.limits.body_bytes_max:  # pyright: ignore[reportPrivateUsage]
            error = TooLarge(
                f"{request.url}: the redirects have more than {self.limits.body_bytes_max} bytes of content "
                "(Limits.body_bytes_max)"
            )
            _name(error, request)
            raise error

    def _redirect_of(self, response: Response, call: Call) -> URL | None:
        if not call.follow_redirects or response.status_code not in _REDIRECTS:
            return None
        location = response.headers.get("location")
        if location is None:
            return None
        try:
            return response.url.join(_in_utf8(location))
        except InvalidURL as error:
            made = InvalidURL(f"{response.url} leads to what is no URL: {error}")
            made.is_unsent = False  # the request has been carried out
            made.origin, made.url = response.url.origin, str(response.url)
            made.method = response.request.method
            raise made from None

    async def _authenticated(
        self, carrier: Carrier, opened: Opened, request: Request, call: Call, auth: Auth | None
    ) -> Any:
        for hook in self._on_request:
            await carrier.within(call, _called(hook, request))
        if auth is None:
            return await self._repeated(carrier, opened, request, call)
        before = set(request.headers.multi_items())
        await carrier.within(call, auth.prepare(request))
        flow = auth.flow(request)
        try:
            step = next(flow)
            while True:
                if isinstance(step, Renewal):
                    step = await carrier.within(call, step.request())
                request = step
                # What authentication has added is for this origin, whatever its name.
                added = {
                    name
                    for name, value in request.headers.multi_items()
                    if (name, value) not in before
                }
                request.secrets |= added
                response = await self._repeated(carrier, opened, request, call)
                try:
                    step = flow.send(response)
                except StopIteration:
                    return response
                except BaseException:
                    _leave(response)
                    raise
                _leave(response)
        finally:
            flow.close()

    async def _repeated(
        self, carrier: Carrier, opened: Opened, request: Request, call: Call
    ) -> Any:
        retries = self._retries
        if retries is None:
            return await self._hedged(carrier, opened, request, call)
        retries.budget.add()
        attempt = 0
        while True:
            attempt += 1
            try:
                response = await self._hedged(carrier, opened, request, call)
            except RequestError as error:
                wait_s = retries.after_error(request, error, attempt)
                if wait_s is None or not _is_in_time(call, wait_s):
                    raise
            else:
                wait_s = retries.after_response(request, response, attempt)
                if wait_s is None or not _is_in_time(call, wait_s):
                    return response
                _leave(response)
            await carrier.sleep(wait_s)

    async def _hedged(self, carrier: Carrier, opened: Opened, request: Request, call: Call) -> Any:
        hedge, budget = self._hedge, self._hedge_budget
        if (
            hedge is None or budget is None or carrier.is_sync or call.is_stream
            or request.method not in IDEMPOTENT or (request.body is not EMPTY and request.body.data is None)
        ):  # fmt: skip
            return await self._attempt(carrier, opened, request, call)
        budget.add()
        tasks: list[asyncio.Task[Any]] = [
            asyncio.ensure_future(self._attempt(carrier, opened, request, call))
        ]
        try:
            done, _ = await asyncio.wait(tasks, timeout=hedge.after_s)
            if not done and budget.take():
                tasks.append(asyncio.ensure_future(self._attempt(carrier, opened, request, call)))
            return await _first_of(tasks)
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.wait(tasks)
            for task in tasks:
                if not task.cancelled():
                    task.exception()  # seen

    async def _attempt(self, carrier: Carrier, opened: Opened, request: Request, call: Call) -> Any:
        """One exchange, counted."""
        origin = self.origin(opened, request.url)
        breaker, slots = origin.breaker, origin.slots
        deadlines = call.deadlines()
        is_probe = breaker.enter() if breaker is not None else False
        since = 0 if breaker is None else breaker.changes
        status: int | None = None
        failure: BaseException | None = None
        has_slot = False
        operation = None if opened.metrics is None else opened.metrics.begin()
        reply: Reply | None = None
        try:
            if slots is not None:
                await acquired(carrier, slots, call, deadlines)
                has_slot = True
                deadlines = call.deadlines()
            fields = self._fields(request)
            reply, on_close = await carrier.send(
                opened, origin.handle, request, fields, call, deadlines
            )
            status = reply.status
            if call.is_stream:
                told: Any = reply if call.block_end_at is None else carrier.bounded(reply, call)
                response = carrier.streamed(told, request, self.limits.body_bytes_max)
                if has_slot and slots is not None:
                    has_slot = False
                    on_close = _both(slots.release, on_close)
                if on_close is not None:
                    response.on_close(on_close)
            else:
                response = Response(reply, request, self.limits.body_bytes_max)
            if self.jar is not None:
                self._keep_cookies(self.jar, reply, request)
            return response
        except BaseException as error:
            failure = error
            if isinstance(error, RequestError):
                _name(error, request)
            raise
        finally:
            if has_slot and slots is not None:
                slots.release()
            if breaker is not None:
                breaker.leave(is_probe, status, failure, since)
            if operation is not None and opened.metrics is not None:
                ended(operation, opened.metrics, request.method, request.url, reply, failure)

    def _fields(self, request: Request) -> Fields:
        fields = request.fields()
        if self.jar is not None and "cookie" not in request.headers:
            url = request.url
            is_own = not request.is_elsewhere
            if line := self.jar.header(url.host, url.path, url.scheme == "https", is_own=is_own):
                fields.append(("cookie", octets(line)))
        if self._is_tracing and (parent := trace_parent()) and "traceparent" not in request.headers:
            fields.append(("traceparent", parent))
        return fields

    def _keep_cookies(self, jar: CookieJar, reply: Reply, request: Request) -> None:
        url, is_own = request.url, not request.is_elsewhere
        for name, value in reply.fields:
            if len(name) == 10 and name.lower() == b"set-cookie":
                line = value.decode("utf-8", "surrogateescape")
                jar.receive(line, url.host, url.path, url.scheme == "https", is_own=is_own)

    def auth_of(self, given: Any, url: URL) -> Auth | None:
        """What authenticates a call: what it says, its URL, or the client, which means its own origin."""
        if given is not UNSET:
            return given
        if url.username or url.password:
            if ":" in url.username:
                raise InvalidURL(
                    f"the user name in a URL of {url.origin} has a colon (RFC 7617 §2)"
                )
            return Basic(url.username, url.password)
        if self.base_origin is not None and url.origin != self.base_origin:
            return None
        return self.auth


def _in_utf8(value: str) -> str:
    """The text of a field, of which Latin-1 is what the bytes are shown as; bytes of no text are escaped."""
    data = value.encode("latin-1")
    try:
        return data.decode()
    except UnicodeDecodeError:
        return "".join(chr(one) if one < 0x80 else f"%{one:02X}" for one in data)


def _both(first: Callable[[], object], second: Callable[[], object] | None) -> Callable[[], None]:
    def both() -> None:
        first()
        if second is not None:
            second()

    return both


def _leave(response: Response) -> None:
    """Give up a response whose content is not wanted; a whole one has it."""
    if isinstance(response, StreamedResponse | SyncStreamedResponse):
        response._close()  # pyright: ignore[reportPrivateUsage]


def _is_in_time(call: Call, wait_s: float) -> bool:
    return call.end_at is None or time.monotonic() + wait_s < call.end_at


async def acquired(carrier: Carrier, slots: Slots, call: Call, deadlines: Deadlines) -> None:
    """Wait for a slot, for as long as both limits allow."""
    pool_s, total_s = deadlines[3], deadlines[4]
    if total_s is None or (pool_s is not None and pool_s <= total_s):
        return await carrier.acquire(slots, pool_s)
    try:
        await carrier.acquire(slots, total_s)
    except PoolTimeout:
        raise call.timed_out(in_queue=True) from None


async def _called(hook: Hook, what: object) -> None:
    found = hook(what)
    if inspect.isawaitable(found):
        await found


async def _first_of(tasks: list[asyncio.Task[Any]]) -> Any:
    """The first response; if all fail, the error of the first attempt."""
    waiting = set(tasks)
    while waiting:
        done, waiting = await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
        for task in done:
            if not task.cancelled() and task.exception() is None:
                return task.result()
    return tasks[0].result()


def _name(error: RequestError, request: Request) -> None:
    error.method, error.url = request.method, str(request.url)
    if error.origin is None:
        error.origin = request.url.origin


def ended(
    operation: ClientOperation, metrics: ClientMetrics, method: str, url: URL | str, reply: Reply | None,
    failure: BaseException | None,
) -> None:  # fmt: skip
    """Count a request that is over: with a response, or why there is none."""
    status = 0 if reply is None else reply.status
    word = str(status) if status >= 400 else None
    if isinstance(failure, asyncio.CancelledError):
        word = "cancelled"
    elif failure is not None:
        word = type(failure).__name__
        for kinds, counter in _COUNTERS:
            if isinstance(failure, kinds):
                metrics.count(counter)
    elif reply is not None and not reply.connection_reused:
        metrics.count("opened")
    operation.end(f"{method} {status} {url}", error=word)


_COUNTERS: Final = (
    ((ConnectError, ConnectTimeout), "connect_failed"),
    ((ReadError, WriteError, RemoteProtocolError), "lost"),
    ((PoolTimeout, CircuitOpen), "refused"),
)


def redirected(request: Request, status: int, target: URL) -> Request:
    """The request that a redirect asks for (RFC 9110 §15.4), without credentials if it goes elsewhere."""
    method, body = request.method, request.body
    fields = request.headers.multi_items()
    if (status == 303 and method not in ("GET", "HEAD")) or (
        status in (301, 302) and method == "POST"
    ):
        method, body = "GET", EMPTY
        fields = [(name, value) for name, value in fields if name not in _OF_CONTENT]
    is_elsewhere = not _is_same(request.url, target)
    if is_elsewhere:
        secret = CREDENTIALS | request.secrets
        fields = [(name, value) for name, value in fields if name not in secret]
    fields = [(name, value) for name, value in fields if name != "host"]
    made = Request(method, target, MutableHeaders(fields), body)
    made.secrets = request.secrets
    made.is_elsewhere = request.is_elsewhere or is_elsewhere
    return made


def _is_same(one: URL, other: URL) -> bool:
    """Whether credentials for ``one`` are for ``other``: the same origin, or its form with TLS."""
    if one.origin == other.origin:
        return True
    return (
        one.host == other.host and (one.scheme, one.port) == ("http", 80)
        and (other.scheme, other.port) == ("https", 443)
    )  # fmt: skip


def trace_parent() -> str | None:
    """``traceparent`` for a request: that of the current span of OpenTelemetry, if its API is in use."""
    trace: Any = sys.modules.get("opentelemetry.trace")
    if trace is None:
        return None
    current = trace.get_current_span().get_span_context()
    if not current.is_valid:
        return None
    return f"00-{current.trace_id:032x}-{current.span_id:016x}-{int(current.trace_flags):02x}"
