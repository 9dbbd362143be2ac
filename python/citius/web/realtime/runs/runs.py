"""``Runs``: a generator of an application as runs that clients begin, read and cancel (``Router.run``).

Four routes for one generator: ``POST path`` begins a run, ``GET path/RUN`` reads it (events, messages of a
WebSocket, or its state), ``DELETE path/RUN`` cancels it. The first one binds the generator as any handler,
with its dependencies, whose rest is done when the run is over; the others have the dependencies of the route,
and ``owner``. A run that is another owner's, or another path's, is 404 as one that is not there.
Tests: ``tests/runs/``.
"""

from __future__ import annotations

import asyncio
import hashlib
import inspect
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import replace
from functools import update_wrapper
from typing import TYPE_CHECKING, Annotated, Any, Final, TypedDict, cast
from urllib.parse import quote

from citius._core import Request, Response, WebSocket
from citius.cluster.engines import EngineAway
from citius.cluster.runstores import RunRecord
from citius.errors import (
    BadRequest,
    ConfigError,
    Conflict,
    NotFound,
    ServiceUnavailable,
    TooManyRequests,
    UnprocessableContent,
)
from citius.web.binding.depends.dependencies import flatten
from citius.web.binding.depends.dependency_cleanup import stream_source
from citius.web.declarations.checks import as_dependencies, describe
from citius.web.declarations.codecs import encode_json
from citius.web.declarations.generic_signatures import signature_of
from citius.web.declarations.parameters.sources import Depends
from citius.web.declarations.type_kinds import deciding
from citius.web.realtime.events import held_event, last_event_id
from citius.web.realtime.runs.run_keeper import keeper_of
from citius.web.realtime.runs.run_readers import event_response, send_messages
from citius.web.responses.results import filter_of_items
from citius.web.routing.declared_routes import Route, SocketRoute, declare
from citius.web.security.owners import owner_text

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Iterator

    from citius.web.application.app import App
    from citius.web.realtime.runs.run_keeper import RunKeeper
    from citius.web.realtime.runs.run_tasks import RunLimits
    from citius.web.routing.endpoint import Endpoint

_OWNER: Final = "citius_run_owner"
"""The parameter that has what identifies who asks."""

KEY_CHARS_MAX: Final = 255
"""Characters of an ``Idempotency-Key``. Exceeded: 400."""


class RunState(TypedDict):
    """What is told of a run."""

    id: str
    url: str
    state: str
    """``running``, ``done``, ``failed``, ``cancelled`` or ``cut_off``."""
    events: int
    """The number of the last event."""


class _Source:
    """The events of a run that has not begun."""

    __slots__ = ("events", "owner")

    def __init__(self, events: AsyncIterator[object], owner: object) -> None:
        self.events = events
        self.owner = owner

    def __aiter__(self) -> _Source:
        return self

    async def __anext__(self) -> object:
        return await anext(self.events)

    async def aclose(self) -> None:
        """End the generator."""
        aclose = getattr(self.events, "aclose", None)
        if aclose is not None:
            await aclose()


class _Threaded:
    """A generator that waits, in a thread of its own."""

    __slots__ = ("_events", "_threads")

    def __init__(self, events: Iterator[object]) -> None:
        self._events = events
        self._threads = ThreadPoolExecutor(1, "citius-run")

    def __aiter__(self) -> _Threaded:
        return self

    async def __anext__(self) -> object:
        loop = asyncio.get_running_loop()
        event = await loop.run_in_executor(self._threads, next, self._events, self)
        if event is self:
            raise StopAsyncIteration
        return event

    async def aclose(self) -> None:
        """End the generator when its thread has come back to it."""
        close = getattr(self._events, "close", None)
        try:
            if close is not None:
                await asyncio.get_running_loop().run_in_executor(self._threads, close)
        finally:
            self._threads.shutdown(wait=False)


class _Held:
    """The events of a run, of their declared type. No generator, whose end would not close its source."""

    __slots__ = ("_keep", "_source")

    def __init__(self, source: Any, keep: Callable[[object], object] | None) -> None:
        self._source = source
        self._keep = keep

    def __aiter__(self) -> _Held:
        return self

    async def __anext__(self) -> object:
        event = await anext(self._source)
        return event if self._keep is None else held_event(event, self._keep)

    async def aclose(self) -> None:
        """End the generator, and do the rest of its dependencies."""
        await self._source.aclose()


class Runs:
    """The runs of one generator."""

    def __init__(
        self,
        pattern: str,
        handler: Callable[..., Any],
        limits: RunLimits,
        *,
        owner: Callable[..., Any] | None,
        heartbeat_s: float | None,
        options: dict[str, Any],
    ) -> None:
        self._pattern = pattern
        self._handler = handler
        self._limits = limits
        self._owner = owner
        self._heartbeat_s = heartbeat_s
        self._options = options
        self._keep: Callable[[object], object] | None = None
        self._keeper: RunKeeper | None = None
        self._what = describe(handler)
        self._check()

    def _check(self) -> None:
        what = f"app.run({self._pattern!r})"
        target = deciding(self._handler)
        if not (inspect.isasyncgenfunction(target) or inspect.isgeneratorfunction(target)):
            raise ConfigError(
                f"{what}: {self._what} is no generator; write `async def` with a `yield` for each event"
            )
        if "{run}" in self._pattern or "{run:" in self._pattern:
            raise ConfigError(f"{what}: {{run}} is the identifier of a run; rename the parameter")
        limits = self._limits
        for name in ("lasts_s", "keep_s", "history", "history_bytes_max", "runs_max"):
            if getattr(limits, name) <= 0:
                raise ConfigError(f"{what}: expected {name} above 0, got {getattr(limits, name)}")
        if limits.grace_s is not None and limits.grace_s < 0:
            raise ConfigError(f"{what}: expected grace_s of 0 or more, got {limits.grace_s}")
        if limits.owner_runs_max <= 0:
            raise ConfigError(
                f"{what}: expected owner_runs_max above 0, got {limits.owner_runs_max}"
            )

    # --- declaring --------------------------------------------------------------------------------

    def routes(self) -> list[Route]:
        """The routes of HTTP."""
        responses = {202: RunState}
        own = {**self._options, "responses": {**self._options.get("responses", {}), **responses}}
        begin = declare(self._pattern, self._begun(), cast("Any", own))
        options: Any = {
            key: self._options[key]
            for key in ("dependencies", "tags", "deprecated", "include_in_schema")
            if key in self._options
        }
        name = self._options.get("name") or getattr(self._handler, "__name__", "run")
        pattern = ("" if self._pattern == "/" else self._pattern) + "/{run}"
        read = declare(
            pattern,
            self._signed(self._read),
            cast("Any", {**options, "name": f"{name}.read", "summary": "Read a run"}),
        )
        cancel = declare(
            pattern,
            self._signed(self._cancel),
            cast("Any", {**options, "name": f"{name}.cancel", "summary": "Cancel a run"}),
        )
        return [
            replace(begin, method="POST", kind="async", middleware=(self._begin,)),
            replace(read, method="GET"),
            replace(cancel, method="DELETE"),
        ]

    def sockets(self) -> list[SocketRoute]:
        """The path of WebSockets."""
        what = f"app.run({self._pattern!r})"
        depends = as_dependencies(what, self._options.get("dependencies", ()))
        pattern = ("" if self._pattern == "/" else self._pattern) + "/{run}"
        return [SocketRoute(pattern, self._signed(self._talk, WebSocket), "async", depends)]

    def _begun(self) -> Callable[..., Any]:
        """The handler that binds the generator."""
        function = self._handler
        is_async = inspect.isasyncgenfunction(deciding(function))

        async def begin(*args: Any, **named: Any) -> Response:
            owner = named.pop(_OWNER, None)
            events = function(*args, **named)
            return Response(_Source(events if is_async else _Threaded(events), owner))

        update_wrapper(begin, function)
        signature = signature_of(function)
        parameters = [*signature.parameters.values(), *self._owner_parameter()]
        made: Any = begin
        made.__signature__ = signature.replace(parameters=parameters, return_annotation=Response)
        made.citius_runs = self
        return begin

    def _owner_parameter(self) -> list[inspect.Parameter]:
        if self._owner is None:
            return []
        annotation = Annotated[Any, Depends(self._owner)]
        return [inspect.Parameter(_OWNER, inspect.Parameter.KEYWORD_ONLY, annotation=annotation)]

    def _signed(
        self, call: Callable[..., Awaitable[Any]], first: type = Request
    ) -> Callable[..., Any]:
        """A handler of one run, with the owner if there is one."""

        async def handler(connection: Any, run: str, **named: Any) -> Any:
            return await call(connection, run, named.get(_OWNER))

        either = inspect.Parameter.POSITIONAL_OR_KEYWORD
        parameters = [
            inspect.Parameter("connection", either, annotation=first),
            inspect.Parameter("run", either, annotation=str),
            *self._owner_parameter(),
        ]
        made: Any = handler
        made.__signature__ = inspect.Signature(parameters, return_annotation=Response)
        made.__name__ = made.__qualname__ = getattr(self._handler, "__name__", "run")
        return handler

    def open(self, keeper: RunKeeper, endpoint: Endpoint) -> None:
        """Know where runs are kept, when the application is frozen.

        Raises:
            ConfigError: Who may read a run is not said, or its events cannot be of their type.
        """
        self._keeper = keeper
        self._keep = filter_of_items(self._handler, endpoint)
        if self._owner is not None:
            return
        # Schemes of the route's own dependencies hold for those who read, too.
        held = {one.call for one in flatten(endpoint.extra)}
        for one in endpoint.dependencies:
            if hasattr(one.call, "openapi") and one.call not in held:
                raise ConfigError(
                    f"app.run({self._pattern!r}): {self._what} has the security scheme "
                    f"{getattr(one.call, 'name', type(one.call).__name__)}, and those who read or cancel a "
                    "run do not pass it; write owner=, with a dependency that returns who calls"
                )

    # --- requests ---------------------------------------------------------------------------------

    async def _begin(
        self, request: Request, next: Callable[[Request], Awaitable[Response]]
    ) -> Response:
        """The middleware of ``POST``: what the handler returns becomes a run."""
        response = await next(request)
        source = stream_source(response.body, _Source)
        if source is None:
            return response
        body: Any = response.body
        try:
            identifier, is_new = await self._started(request, source.owner, body)
        except EngineAway:
            await body.aclose()
            raise ServiceUnavailable("runs cannot be kept now", {"retry-after": "1"}) from None
        except BaseException:
            await body.aclose()
            raise
        if not is_new:
            await body.aclose()
        url = f"{request.root_path}{quote(request.path.rstrip('/'))}/{identifier}"
        headers = {"location": url}
        assert self._keeper is not None, "opened when the application was frozen"
        if "text/event-stream" in (request.header("accept") or ""):
            return event_response(self._keeper, identifier, 0, self._heartbeat_s, headers)
        state: RunState = {"id": identifier, "url": url, "state": "running", "events": 0}
        return Response(encode_json(state), 202, headers, "application/json")

    async def _started(
        self, request: Request, owner: object, body: AsyncIterator[object]
    ) -> tuple[str, bool]:
        """The run that a request begins, or has begun before by its ``Idempotency-Key``."""
        keeper = self._keeper
        assert keeper is not None, "opened when the application was frozen"
        whose = self._digest_of(owner)
        path = _digest(request.path)
        record = RunRecord("", whose, path, self._limits.keep_s)
        events, what = _Held(body, self._keep), self._what
        key = request.header("idempotency-key")
        if key is None:
            return await keeper.begin(record, self._limits, events, what), True
        if not 0 < len(key) <= KEY_CHARS_MAX:
            raise BadRequest(f"expected an Idempotency-Key of 1 to {KEY_CHARS_MAX} characters")
        name = _digest(f"{whose} {path} {key}")
        of_body = hashlib.sha256(request.body()).hexdigest()[:32]
        known = await keeper.claimed(name)
        if known is None:
            try:
                identifier = await keeper.begin(
                    record, self._limits, events, what, claim=(name, of_body)
                )
            except TooManyRequests:
                known = await keeper.claimed(name)  # by the same request, a moment ago
                if known is None:
                    raise
            else:
                if identifier:
                    return identifier, True
                known = await keeper.claimed(name)
        if known is None:
            raise Conflict("another request with this Idempotency-Key has just failed")
        identifier, _, of_first = known.partition(" ")
        if of_first != of_body:
            raise UnprocessableContent("this Idempotency-Key was sent with another body")
        return identifier, False

    async def _read(self, request: Request, run: str, owner: object) -> Response:
        """The events of a run, or its state."""
        keeper, record = await self._found(request.path, run, owner)
        accept = request.header("accept") or ""
        if "application/json" in accept and "text/event-stream" not in accept:
            with suppress(EngineAway):
                # Of a run that nothing reads, nothing else finds that its worker was killed.
                if not record.is_over and not await keeper.is_running(run):
                    keeper, record = await self._found(request.path, run, owner)
            url = f"{request.root_path}{quote(request.path)}"
            state: RunState = {
                "id": run, "url": url, "state": record.state, "events": record.last,
            }  # fmt: skip
            return Response(
                encode_json(state), 200, {"cache-control": "no-store"}, "application/json"
            )
        known = last_event_id(request)
        after = _number(known if known is not None else request.query.get("after"))
        if record.is_over and after >= record.last:
            return Response(b"", 204)  # tells an EventSource not to come back
        return event_response(keeper, run, after, self._heartbeat_s)

    async def _cancel(self, request: Request, run: str, owner: object) -> Response:
        """Cancel a run; one that is over stays as it is."""
        keeper, record = await self._found(request.path, run, owner)
        try:
            await keeper.cancel(run, record)
        except EngineAway:
            raise ServiceUnavailable("runs cannot be changed now", {"retry-after": "1"}) from None
        return Response(b"", 204)

    async def _talk(self, socket: WebSocket, run: str, owner: object) -> Response | None:
        """The events of a run as messages."""
        keeper, _ = await self._found(socket.path, run, owner)
        await send_messages(keeper, run, _number(socket.query.get("after")), socket)
        return None

    async def _found(self, path: str, run: str, owner: object) -> tuple[RunKeeper, RunRecord]:
        """A run that the one who asks may see.

        Raises:
            HTTPError: There is none.
        """
        keeper = self._keeper
        assert keeper is not None, "opened when the application was frozen"
        try:
            record = await keeper.store.find(run)
        except EngineAway:
            raise ServiceUnavailable("runs cannot be read now", {"retry-after": "1"}) from None
        is_here = record is not None and record.path == _digest(path.rpartition("/")[0] or "/")
        if record is None or not is_here or record.owner != self._digest_of(owner):
            raise NotFound("there is no such run")
        return keeper, record

    def _digest_of(self, owner: object) -> str:
        if self._owner is None or owner is None:
            return ""
        return _digest(f"{self._pattern} {owner_text(owner, self._what)}")


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:32]


def _number(text: str | None) -> int:
    """The number of the last event that a client has; 0 if it has none, or says what means nothing."""
    return int(text) if text and text.isascii() and text.isdigit() and len(text) <= 15 else 0


def open_runs(app: App, endpoints: list[tuple[Any, Endpoint]]) -> None:
    """Find the runs of an application and of those that are mounted in it.

    Args:
        app: The outermost application, whose cluster keeps them.
        endpoints: Handlers and endpoints of its routes.

    Raises:
        ConfigError: A declaration cannot hold.
    """
    keeper = keeper_of(app)
    for handler, endpoint in endpoints:
        handler.citius_runs.open(keeper, endpoint)
