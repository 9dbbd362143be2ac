"""Streamable HTTP: requests of MCP clients in, responses out, for all versions at one path.

A request whose ``MCP-Protocol-Version`` is none of the versions with sessions is stateless (2026-07-28).
Every mistake of a client is a JSON-RPC error with the status that the specification has for it; an exception
of the application is logged, and never a 500. Methods are in methods.py. Tests: ``tests/mcp/test_http.py``.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final, cast
from urllib.parse import urlsplit

from msgspec import UNSET

from citius._core import Request, Response
from citius.errors import (
    Forbidden,
    HTTPError,
    MethodNotAllowed,
    NotAcceptable,
    UnsupportedMediaType,
)
from citius.mcp.faults import INTERNAL_ERROR, INVALID_REQUEST, Fault
from citius.mcp.guard import guard_of
from citius.mcp.methods import Call, Methods
from citius.mcp.protocol import (
    BATCHES,
    SESSION_VERSIONS,
    STATELESS,
    CallMessage,
    CancelledParams,
    Envelope,
    Shape,
    decode_envelope,
    decode_message,
    encode,
    parsed,
    refusal_of,
)
from citius.mcp.replies import JSON, error_response
from citius.mcp.sessions import NONE, Session, began_by, gone
from citius.mcp.streams import NewsStream
from citius.web.declarations.parameters.sources import Depends
from citius.web.realtime.events import last_event_id
from citius.web.routing.declared_routes import declare

if TYPE_CHECKING:
    from collections.abc import Callable

    from citius.mcp.server import MCPServer
    from citius.web.realtime.events import EventStream
    from citius.web.routing.declared_routes import Route

BATCH_MAX: Final = 100
"""Messages of a batch. Exceeded: Invalid Request."""

_LOCAL: Final = frozenset(("localhost", "127.0.0.1", "::1"))
_cancelled_params = Shape(CancelledParams)


class Transport:
    """What serves one server over HTTP."""

    def __init__(self, server: MCPServer) -> None:
        self._server = server
        self._sessions = server.sessions
        self._methods = Methods(server)
        self._streams: dict[str, list[NewsStream]] = {}
        """Streams that clients have opened with GET, by session."""
        self._report: Callable[[Request, BaseException], object] = lambda request, error: None

    def routes(self) -> list[Route]:
        """The routes of the server."""
        server = self._server
        guard = guard_of(server)
        own = [Depends(guard)] if guard is not None else []
        depends = (*own, *server.dependencies)

        def made(method: str, pattern: str, handler: Any, depends: tuple[Depends, ...]) -> Route:
            options: Any = {"include_in_schema": False, "dependencies": depends}
            return replace(declare(pattern, handler, options), method=method)

        found = [
            made("POST", server.path, self.post, depends),
            made("GET", server.path, self.get, depends),
            made("DELETE", server.path, self.delete, depends),
        ]
        if guard is not None:
            found.append(made("GET", guard.metadata_path, guard.metadata, ()))
        return found

    def freeze(self, report: Callable[[Request, BaseException], object]) -> None:
        """Encode what does not change any more."""
        self._report = report
        self._methods.freeze(report)

    # --- requests -------------------------------------------------------------------------------------------

    async def post(self, request: Request) -> Response:
        """A message of the client."""
        origin = request.header("origin")
        if origin is not None or self._server.hosts:
            self._check_origin(request, origin)
        body = request._json_body()  # pyright: ignore[reportPrivateUsage]
        if body is None:
            body = _other_body(request)
        version = request.header("mcp-protocol-version")
        try:
            message = decode_message(body)
        except Exception:
            return await self._post_other(request, body, version)
        if version == STATELESS and message.method is not UNSET and message.id is not UNSET:
            # Without a coroutine of its own.
            call = Call(request, message, NONE, STATELESS, True)
            try:
                response = self._methods.serve(call)
                return response if type(response) is Response else await response
            except Exception as error:
                return self._failed(request, message, error, is_stateless=True)
        return await self._serve(request, message, version)

    async def _serve(
        self,
        request: Request,
        message: Envelope | CallMessage,
        version: str | None,
        *,
        in_batch: bool = False,
    ) -> Response:
        is_stateless = version is not None and version not in SESSION_VERSIONS
        try:
            session = NONE
            given = None if is_stateless else request.header("mcp-session-id")
            if given is not None and message.method != "initialize":
                session = await self._session(request, given, version)
            if message.id is UNSET or message.method is UNSET:
                return self._take(cast("Envelope", message), session, version, is_stateless)
            spoken = session.version if session.key or version is None else version
            call = Call(request, message, session, spoken, is_stateless, in_batch)
            response = self._methods.serve(call)
            return response if type(response) is Response else await response
        except Exception as error:
            return self._failed(request, message, error, is_stateless=is_stateless)

    def _failed(
        self,
        request: Request,
        message: Envelope | CallMessage,
        error: Exception,
        *,
        is_stateless: bool,
    ) -> Response:
        """The response to a request that has failed.

        Raises:
            HTTPError: A dependency has refused it.
        """
        if isinstance(error, HTTPError):
            raise self._refusal(request, error) from None
        fault = error
        if not isinstance(fault, Fault):
            self._report(request, error)
            fault = Fault(INTERNAL_ERROR, "the server failed")
        return error_response(None if message.id is UNSET else message.id, fault, is_stateless)

    async def _post_other(self, request: Request, body: bytes, version: str | None) -> Response:
        """What is no message: a batch, or a mistake."""
        is_stateless = version is not None and version not in SESSION_VERSIONS
        if body.lstrip()[:1] == b"[" and not is_stateless:
            given = request.header("mcp-session-id")
            session = NONE
            try:
                if given is not None:
                    session = await self._session(request, given, None)
                if (version or session.version) == BATCHES:
                    return await self._batch(request, parsed(body), version)
            except Fault as fault:
                return error_response(None, fault, is_stateless)
        identifier, fault = refusal_of(body)
        return error_response(identifier, fault, is_stateless)

    async def _batch(self, request: Request, values: list[Any], version: str | None) -> Response:
        """Messages that come together, of 2025-03-26."""
        if not 0 < len(values) <= BATCH_MAX:
            raise Fault(
                INVALID_REQUEST, f"expected 1 to {BATCH_MAX} messages in a batch", status=400
            )
        bodies: list[bytes] = []
        for value in values:
            data = encode(value)
            try:
                message = decode_envelope(data)
            except Exception:
                identifier, fault = refusal_of(data)
                response = error_response(identifier, fault, is_stateless=False)
            else:
                if message.method == "initialize":
                    fault = Fault(INVALID_REQUEST, "initialize is no part of a batch", status=400)
                    response = error_response(message.id or None, fault, is_stateless=False)
                else:
                    response = await self._serve(request, message, version, in_batch=True)
            if response.body:
                bodies.append(cast("bytes", response.body))
        if not bodies:
            return Response(b"", 202)
        return Response(b"[%b]" % b",".join(bodies), 200, None, JSON)

    def _take(
        self, message: Envelope, session: Session, version: str | None, is_stateless: bool
    ) -> Response:
        """A notification, or an answer to a question."""
        server = self._server
        if message.method is UNSET:
            if message.id is UNSET or (message.result is UNSET and message.error is UNSET):
                raise Fault(
                    INVALID_REQUEST, "the message is no request and no response", status=400
                )
            if is_stateless:
                raise Fault(INVALID_REQUEST, "a client sends requests alone", status=400)
            answer: dict[str, Any] = {"id": message.id}
            for name in ("result", "error"):
                value = getattr(message, name)
                if value is not UNSET:
                    answer[name] = parsed(value)
            if not server.answered(answer, session.key):
                server.bus.send({"answer": answer, "session": session.key})
        elif is_stateless:
            self._methods.check_version(version)
        elif message.method == "notifications/cancelled":
            identifier = _cancelled_params(message.params).request_id
            # Without a session, requests of different clients have the same identifiers.
            if (
                identifier is not None
                and session.key
                and not server.cancel(session.key, identifier)
            ):
                server.bus.send({"cancelled": identifier, "session": session.key})
        return Response(b"", 202)

    async def get(self, request: Request) -> Response:
        """A stream for what belongs to no request, of versions with sessions."""
        self._check_origin(request, request.header("origin"))
        version = request.header("mcp-protocol-version")
        if version is not None and version not in SESSION_VERSIONS:
            raise MethodNotAllowed(headers={"allow": "POST"})
        if "text/event-stream" not in (request.header("accept") or ""):
            raise NotAcceptable("the stream of an MCP server is text/event-stream")
        try:
            session = await self._required_session(request, version)
        except Fault as fault:
            return error_response(None, fault, is_stateless=False)
        if request.method == "HEAD":
            return Response(b"", 200, None, "text/event-stream")
        self._server.use_loop()
        known = last_event_id(request)
        if known is not None:
            try:
                resumed = await self._server.streams.resumed(session, known)
            except Fault as fault:
                return error_response(None, fault, is_stateless=False)
            if resumed is not None:
                return resumed
        return self._opened(session.key, known)

    def _opened(self, key: str, known: str | None) -> Response:
        """A stream of what changes, from the last event on that the client has."""
        streams, news = self._streams, self._server.news
        own = streams.setdefault(key, [])

        def leave(stream: EventStream) -> None:
            news._leave(stream)  # pyright: ignore[reportPrivateUsage]
            if stream in own:
                own.remove(cast("NewsStream", stream))
            if not own and streams.get(key) is own:
                del streams[key]

        stream = NewsStream(self._sessions, key, own, leave)
        own.append(stream)
        news._follow(stream, known)  # pyright: ignore[reportPrivateUsage]
        return stream.response()

    async def delete(self, request: Request) -> Response:
        """The end of a session."""
        self._check_origin(request, request.header("origin"))
        version = request.header("mcp-protocol-version")
        if version is not None and version not in SESSION_VERSIONS:
            raise MethodNotAllowed(headers={"allow": "POST"})
        try:
            session = await self._required_session(request, version)
            await self._sessions.end(session)
        except Fault as fault:
            return error_response(None, fault, is_stateless=False)
        for stream in list(self._streams.get(session.key, ())):
            stream.close()
        return Response(b"", 204)

    async def _session(self, request: Request, identifier: str, version: str | None) -> Session:
        session = self._sessions.checked(identifier) or await self._sessions.find(identifier)
        if self._server.authorization is not None and session.owner != began_by(request):
            raise gone()
        if version is not None and version != session.version:
            raise Fault(
                INVALID_REQUEST,
                f"the session is of version {session.version}, and MCP-Protocol-Version is {version}",
                status=400,
            )
        return session

    async def _required_session(self, request: Request, version: str | None) -> Session:
        identifier = request.header("mcp-session-id")
        if identifier is None:
            raise Fault(INVALID_REQUEST, "expected the field Mcp-Session-Id", status=400)
        return await self._session(request, identifier, version)

    # --- protection -----------------------------------------------------------------------------------------

    def _check_origin(self, request: Request, origin: str | None) -> None:
        """Refuse pages of other sites, which a browser may have led here by a name of theirs.

        Raises:
            Forbidden: The page or the name is not among those that were declared.
        """
        server = self._server
        if origin is not None and not self._is_known(origin):
            raise Forbidden(
                f"the origin {origin[:200]} is not one that the server takes requests from"
            )
        if server.hosts:
            host = request.host.lower()
            if host not in server.hosts and host.rpartition(":")[0] not in server.hosts:
                raise Forbidden(f"the server is not called {host[:200]}")

    def _is_known(self, origin: str) -> bool:
        """Whether pages of an origin may call: pages of this machine itself, unless others were declared."""
        origins = self._server.origins
        if not origins:
            return _host_of(origin) in _LOCAL
        return "*" in origins or origin.lower() in origins

    def _refusal(self, request: Request, error: HTTPError) -> HTTPError:
        """The refusal of a function's dependency, with where to get a token."""
        authorization = self._server.authorization
        return (
            error
            if authorization is None
            else authorization.refusal(request, self._server.path, error)
        )


def _other_body(request: Request) -> bytes:
    """The body of a request whose media type is not written as most write it."""
    media_type = (request.header("content-type") or "").partition(";")[0].strip().lower()
    if media_type != JSON:
        raise UnsupportedMediaType("expected a message as application/json")
    return request.body()


def _host_of(origin: str) -> str:
    try:
        return urlsplit(origin).hostname or ""
    except ValueError:
        return ""
