"""Methods of the protocol: a request's message in, its response out. The same functions serve all versions.

What differs by version is at the end of a result (``resultType`` and the server's name since 2026-07-28), in
the codes of some errors, and in how a client is asked (exchange.py). Tests: ``tests/mcp/test_http.py``.
"""

from __future__ import annotations

from asyncio import CancelledError
from functools import partial
from typing import TYPE_CHECKING, Any, Final, cast

from msgspec import UNSET, Struct

from citius._core import Response
from citius.errors import HTTPError, RpcError
from citius.mcp import protocol
from citius.mcp.context import Context
from citius.mcp.entries import choices, completed, encoded_lists
from citius.mcp.exchange import Exchange, binding_of
from citius.mcp.failures import fault_of_rpc, mistakes_of, text_of
from citius.mcp.faults import (
    HEADER_MISMATCH,
    INTERNAL_ERROR,
    INVALID_PARAMS,
    METHOD_NOT_FOUND,
    RESOURCE_NOT_FOUND,
    UNSUPPORTED_VERSION,
    Fault,
    ToolError,
)
from citius.mcp.fields import check_mirrored, decoded
from citius.mcp.inputs import InputRequired
from citius.mcp.protocol import (
    ERRORS_IN_RESULTS,
    META,
    SERVER_INFO,
    SESSION_VERSIONS,
    STATELESS,
    SUBSCRIPTION_ID,
    CallMessage,
    Envelope,
    Shape,
    encode,
    parsed,
)
from citius.mcp.replies import JSON, error_response
from citius.mcp.results import WithMeta, failed
from citius.mcp.sessions import Session, began_by, declared
from citius.mcp.streams import ListeningStream, event_of
from citius.waiting import check_cancelled

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from citius._core import Request
    from citius.mcp.binding import Bound
    from citius.mcp.entries import Prompt, Resource, Tool
    from citius.mcp.protocol import (
        CallParams,
        CompleteParams,
        GetParams,
        Input,
        Params,
        ReadParams,
        RequestId,
    )
    from citius.mcp.server import MCPServer

COMPLETIONS_MAX: Final = 100
"""Values of a completion. Origin: the specification. Exceeded: the first ones are sent, with ``hasMore``."""

_BEGIN: Final = b'{"jsonrpc":"2.0","id":'
_RESULT: Final = b',"result":'

_call = Shape(protocol.CallParams)
_get = Shape(protocol.GetParams)
_read = Shape(protocol.ReadParams)
_list = Shape(protocol.ListParams)
_level = Shape(protocol.LevelParams)
_uri = Shape(protocol.UriParams)
_initialize = Shape(protocol.InitializeParams)
_complete = Shape(protocol.CompleteParams)
_listen = Shape(protocol.ListenParams)
_any = Shape(protocol.Params)


class Call(Struct):
    """One request, with what its version, its session and its fields say."""

    request: Any
    message: Envelope | CallMessage
    session: Session
    version: str
    is_stateless: bool
    in_batch: bool = False

    @property
    def accepts_events(self) -> bool:
        """Whether the response may be a stream."""
        accept = self.request.header("accept")
        is_accepted = accept is None or "text/event-stream" in accept or "*/*" in accept
        return is_accepted and not self.in_batch


class Methods:
    """The methods of one server."""

    def __init__(self, server: MCPServer) -> None:
        self._server = server
        self._lists: dict[str, bytes] = {}
        self._report: Callable[[Request, BaseException], object] = lambda request, error: None
        self._end = self._stateless_end = self._listed_end = b"}}"
        self._server_info = b""
        self._with_sessions: dict[str, Callable[[Call], Any]] = {}
        self._stateless: dict[str, Callable[[Call], Any]] = {}

    def freeze(self, report: Callable[[Request, BaseException], object]) -> None:
        """Encode what does not change any more."""
        server = self._server
        self._report = report
        self._lists = encoded_lists(server)
        self._server_info = b'"%b":%b' % (SERVER_INFO.encode(), encode(server.info))
        self._stateless_end = b',"resultType":"complete","_meta":{%b}}}' % self._server_info
        scope = b"private" if server.authorization or server.dependencies else b"public"
        self._listed_end = b',"ttlMs":%d,"cacheScope":"%b"%b' % (
            server.cache_ms, scope, self._stateless_end,
        )  # fmt: skip
        both: dict[str, Callable[[Call], Any]] = {}
        if server.tools:
            both |= {"tools/list": self._listing, "tools/call": self._call_tool}
        if server.resources or server.templates:
            both |= {"resources/list": self._listing, "resources/templates/list": self._listing}
            both["resources/read"] = self._read_resource
        if server.prompts:
            both |= {"prompts/list": self._listing, "prompts/get": self._get_prompt}
        if server.prompts or server.templates:
            both["completion/complete"] = self._complete
        self._stateless = {**both, "server/discover": self._discover}
        self._with_sessions = {
            **both,
            "initialize": self._initialize,
            "ping": self._ping,
            "logging/setLevel": self._set_level,
        }
        if server.resources or server.templates:
            self._stateless["subscriptions/listen"] = self._listen
            subscribing = {"resources/subscribe": True, "resources/unsubscribe": False}
            for method, is_new in subscribing.items():
                self._with_sessions[method] = partial(self._subscribe, is_new)

    def serve(self, call: Call) -> Any:
        """The response to a request, or what is awaited for it.

        Raises:
            Fault: It is an error of the protocol.
            HTTPError: A dependency has refused the request.
        """
        known = self._stateless if call.is_stateless else self._with_sessions
        message = call.message
        method = known.get(message.method)  # pyright: ignore[reportArgumentType]
        if method is None:
            is_read = type(message) is CallMessage
            self._common(call, cast("Params", message.params if is_read else _any(message.params)))
            raise Fault(METHOD_NOT_FOUND, f"there is no method {message.method}")
        return method(call)

    # --- what all requests say ------------------------------------------------------------------------------

    def check_version(self, version: str | None) -> None:
        """Refuse a version that is not spoken.

        Raises:
            Fault: It is not.
        """
        if version != STATELESS:
            raise Fault(
                UNSUPPORTED_VERSION, "unsupported protocol version",
                {"supported": [STATELESS], "requested": version}, status=400,
            )  # fmt: skip

    def _common(self, call: Call, params: Params, name: str | None = None) -> None:
        """Check what a request says of itself.

        Raises:
            Fault: Something is missing, or the fields say something else than the message.
        """
        meta = params.meta
        if not call.is_stateless:
            if meta is not UNSET and meta.version is not UNSET:
                raise Fault(
                    HEADER_MISMATCH,
                    f"MCP-Protocol-Version does not say the message's version {meta.version}", status=400,
                )  # fmt: skip
            return
        if meta is UNSET or meta.version is UNSET or meta.capabilities is UNSET:
            # A client of an unknown version may not know that it has to say these.
            if call.version != STATELESS and (meta is UNSET or meta.version is UNSET):
                self.check_version(call.version)
            raise Fault(
                INVALID_PARAMS,
                f"expected params._meta with {META}protocolVersion and {META}clientCapabilities",
            )
        request = call.request
        if meta.version != call.version:
            raise Fault(HEADER_MISMATCH, "MCP-Protocol-Version is not the message's version")
        if request.header("mcp-method") != call.message.method:
            raise Fault(HEADER_MISMATCH, "Mcp-Method is not the message's method")
        if name is not None:
            given = request.header("mcp-name")
            if given != name and decoded(given) != name:
                raise Fault(HEADER_MISMATCH, "Mcp-Name is not what the message names")
        if call.version != STATELESS:
            self.check_version(call.version)

    def _finished(self, call: Call, result: bytes, *, is_list: bool = False) -> Response:
        """A result without its end as a response."""
        identifier = call.message.id
        text = str(identifier).encode() if type(identifier) is int else encode(identifier)
        if not call.is_stateless:
            end = b"}}"
        elif type(result) is WithMeta:
            comma = b"" if result.endswith(b'"_meta":{}') else b","
            end = comma + self._server_info + b'},"resultType":"complete"}}'
            result = result[:-1]
        else:
            end = self._listed_end if is_list else self._stateless_end
            if result[-1:] == b"{":
                end = end[1:]
        return Response(_BEGIN + text + _RESULT + result + end, 200, None, JSON)

    # --- tools ----------------------------------------------------------------------------------------------

    def _call_tool(self, call: Call) -> Any:
        message = call.message
        params: CallParams = (
            message.params if type(message) is CallMessage else _call(message.params)
        )
        name = params.name
        self._common(call, params, name)
        tool = self._server.tools.get(name)
        if tool is None:
            raise Fault(INVALID_PARAMS, f"there is no tool {name[:200]}")
        if tool.mirrored and call.is_stateless:
            check_mirrored(call.request, tool, params)
        bound = tool.bound
        if bound.takes_context or (bound.is_async and not call.is_stateless):
            # Without sessions a client cancels by leaving, which the server sees to.
            arguments = params.arguments
            binding = (name, parsed(arguments)) if call.is_stateless else None
            return self._with_context(
                call, params, bound, arguments, partial(self._failure, call, tool), binding
            )
        try:
            made = bound.run(call.request, None, params.arguments)
        except Exception as error:
            made = self._failure(call, tool, error)
        else:
            if bound.is_async:
                return self._awaited(call, tool, made)
        return self._finished(call, made)

    async def _awaited(self, call: Call, tool: Tool, made: Any) -> Response:
        """The response of a tool that waits."""
        try:
            result = await made
        except (Exception, CancelledError) as error:
            check_cancelled(error)
            result = self._failure(call, tool, error)
        return self._finished(call, result)

    def _failure(self, call: Call, tool: Tool, error: BaseException) -> bytes:
        """The result of a tool that has raised an exception.

        Raises:
            Fault: It is an error of the protocol.
            HTTPError: The request was refused.
        """
        if isinstance(error, ToolError):
            return failed(error.text)
        if isinstance(error, Fault):
            raise error
        if isinstance(error, HTTPError):
            if error.status_code in (401, 403):
                raise error
            return failed(text_of(error))
        if isinstance(error, RpcError):
            if error.type == "InvalidParams" and call.version >= ERRORS_IN_RESULTS:
                return failed(mistakes_of(error))
            raise fault_of_rpc(error)
        self._report(call.request, error)
        return failed(f"the tool {tool.name} failed")

    # --- calls that may ask ---------------------------------------------------------------------------------

    def _with_context(
        self,
        call: Call,
        params: Input,
        bound: Bound,
        arguments: Any,
        failure: Callable[[BaseException], bytes],
        binding: tuple[str, Any] | None,
        finish: Callable[[Any], bytes] = lambda value: value,
    ) -> Any:
        """The response of a function with a context."""
        meta, session = params.meta, call.session
        capabilities = session.capabilities
        token = level = None
        if meta is not UNSET:
            token = None if meta.progress_token is UNSET else meta.progress_token
            if call.is_stateless:
                level = None if meta.level is UNSET else meta.level
                capabilities = declared(meta.capabilities)
        self._server.use_loop()
        exchange = Exchange(
            self._server, call.request, call.version, session, capabilities, token, level,
            call.accepts_events, cast("RequestId", call.message.id),
        )  # fmt: skip
        if binding is not None:
            state = None if params.state is UNSET else params.state
            responses = None if params.responses is UNSET else params.responses
            whole = binding_of(cast("str", call.message.method), *binding)
            exchange.resume(whole, state, responses)

        async def work() -> Response:
            try:
                value = await bound.run(call.request, Context(exchange), arguments)
                result = finish(value)
            except InputRequired as asked:
                result = exchange.required(asked)
                return self._input_required(call, result)
            except (Exception, CancelledError) as error:
                check_cancelled(error)
                try:
                    result = failure(error)
                except Fault as fault:
                    return error_response(
                        cast("RequestId", call.message.id), fault, call.is_stateless
                    )
            return self._finished(call, result)

        return exchange.respond(work())

    def _input_required(self, call: Call, result: bytes) -> Response:
        made = self._finished(call, result)
        body = cast("bytes", made.body)
        end = len(body) - len(self._stateless_end)
        tail = self._stateless_end.replace(b'"complete"', b'"input_required"', 1)
        made.body = body[:end] + tail
        return made

    # --- resources ------------------------------------------------------------------------------------------

    def _read_resource(self, call: Call) -> Any:
        params: ReadParams = _read(call.message.params)
        uri = params.uri
        self._common(call, params, uri)
        resource, texts = self._resource(uri)
        if resource is None:
            code = INVALID_PARAMS if call.is_stateless else RESOURCE_NOT_FOUND
            raise Fault(code, "there is no such resource", {"uri": uri})
        bound, what = resource.bound, f"the resource {resource.uri}"
        failure = partial(self._fault, call, what)
        finish = partial(resource.result, uri)
        if bound.takes_context:
            return self._with_context(
                call, params, bound, texts, failure, (uri, None), self._cached(call, finish)
            )
        return self._simple(call, bound, texts, failure, self._cached(call, finish))

    def _cached(self, call: Call, finish: Callable[[Any], bytes]) -> Callable[[Any], bytes]:
        if not call.is_stateless:
            return finish
        return lambda value: finish(value) + b',"ttlMs":0,"cacheScope":"private"'

    def _resource(self, uri: str) -> tuple[Resource | None, Mapping[str, str]]:
        found = self._server.resources.get(uri)
        if found is not None:
            return found, {}
        for one in self._server.templates:
            assert one.template is not None, "those without are in the other list"
            texts = one.template.match(uri)
            if texts is not None:
                return one, texts
        return None, {}

    async def _simple(
        self,
        call: Call,
        bound: Bound,
        arguments: Any,
        failure: Callable[[BaseException], Any],
        finish: Callable[[Any], bytes] = lambda value: value,
    ) -> Response:
        """The response of a function without a context, whose exceptions are errors of the protocol."""
        try:
            value = bound.run(call.request, None, arguments)
            result = finish(await value if bound.is_async else value)
        except (Exception, CancelledError) as error:
            check_cancelled(error)
            failure(error)
            raise
        return self._finished(call, result)

    def _fault(self, call: Call, what: str, error: BaseException) -> bytes:
        """Raise what a client is told of an exception of a resource or a prompt.

        Raises:
            Fault: Always, but for a refused request.
            HTTPError: The request was refused.
        """
        if isinstance(error, Fault):
            raise error
        if isinstance(error, ToolError):
            raise Fault(INTERNAL_ERROR, error.text)
        if isinstance(error, HTTPError):
            status = error.status_code
            if status in (401, 403):
                raise error
            code = INVALID_PARAMS if status < 500 else INTERNAL_ERROR
            if status == 404 and not call.is_stateless and call.message.method == "resources/read":
                code = RESOURCE_NOT_FOUND
            raise Fault(code, text_of(error))
        if isinstance(error, RpcError):
            raise fault_of_rpc(error)
        self._report(call.request, error)
        raise Fault(INTERNAL_ERROR, f"{what} failed")

    async def _subscribe(self, is_new: bool, call: Call) -> Response:
        uri: str = _uri(call.message.params).uri
        resource, texts = self._resource(uri)
        if resource is None:
            raise Fault(RESOURCE_NOT_FOUND, "there is no such resource", {"uri": uri})
        if is_new:
            await self._pass(call, resource.guards.with_arguments, texts, f"the resource {uri}")
        if not call.session.key:
            raise Fault(INVALID_PARAMS, "a subscription belongs to a session", status=400)
        sessions = self._server.sessions
        await (sessions.subscribe if is_new else sessions.unsubscribe)(call.session, uri)
        return self._finished(call, b"{")

    async def _pass(
        self, call: Call, guards: Bound | None, arguments: Mapping[str, str], what: str
    ) -> None:
        """Call the dependencies of a resource or a prompt, which may refuse.

        Raises:
            Fault: One has failed.
            HTTPError: One has refused.
        """
        if guards is None:
            return
        try:
            passed = guards.run(call.request, None, arguments)
            if guards.is_async:
                await passed
        except (Exception, CancelledError) as error:
            check_cancelled(error)
            self._fault(call, what, error)
            raise

    async def _may_read(self, call: Call, uri: str) -> bool:
        """Whether there is a resource, and its dependencies let the client read it."""
        resource, texts = self._resource(uri)
        if resource is None:
            return False
        try:
            await self._pass(call, resource.guards.with_arguments, texts, f"the resource {uri}")
        except (Fault, HTTPError):
            return False
        return True

    async def _listen(self, call: Call) -> Response:
        """``subscriptions/listen``: a stream of what has changed."""
        params: protocol.ListenParams = _listen(call.message.params)
        self._common(call, params)
        if not call.accepts_events:
            raise Fault(
                INVALID_PARAMS,
                "the response is text/event-stream, which the client does not accept",
            )
        self._server.use_loop()
        identifier = cast("RequestId", call.message.id)
        wanted = params.notifications.resources
        uris = frozenset([uri for uri in wanted if await self._may_read(call, uri)])
        news = self._server.news
        method = "notifications/resources/updated"
        stream = ListeningStream(
            uris,
            lambda uri: _news(method, identifier, {"uri": uri}),
            news._leave,  # pyright: ignore[reportPrivateUsage]
        )
        agreed: dict[str, Any] = {"resourceSubscriptions": sorted(uris)} if uris else {}
        first = "notifications/subscriptions/acknowledged"
        stream.send_encoded(_news(first, identifier, {"notifications": agreed}))
        news._follow(stream, None)  # pyright: ignore[reportPrivateUsage]
        return stream.response()

    # --- prompts --------------------------------------------------------------------------------------------

    def _get_prompt(self, call: Call) -> Any:
        params: GetParams = _get(call.message.params)
        self._common(call, params, params.name)
        prompt: Prompt | None = self._server.prompts.get(params.name)
        if prompt is None:
            raise Fault(INVALID_PARAMS, f"there is no prompt {params.name[:200]}")
        failure = partial(self._fault, call, f"the prompt {prompt.name}")
        if prompt.bound.takes_context:
            binding = (params.name, params.arguments)
            return self._with_context(
                call, params, prompt.bound, params.arguments, failure, binding
            )
        return self._simple(call, prompt.bound, params.arguments, failure)

    async def _complete(self, call: Call) -> Response:
        params: CompleteParams = _complete(call.message.params)
        self._common(call, params)
        server, ref = self._server, params.ref
        of = ref.name if ref.type == "ref/prompt" else ref.uri
        templates = {one.uri: one for one in server.templates}
        entry: Any = server.prompts.get(of) if ref.type == "ref/prompt" else templates.get(of)
        known = None if entry is None else entry.arguments.get(params.argument.name)
        if entry is None or known is None:
            raise Fault(INVALID_PARAMS, "there is no such argument")
        await self._pass(call, entry.guards.without_arguments, {}, f"the completion of {of}")
        written = params.argument.value
        function = server.completions.get((of, params.argument.name))
        if function is None and entry.guards.needs_arguments:
            values = list[str]()
        elif function is None:
            values = [one for one in choices(known) if one.startswith(written)]
        else:
            try:
                values = await completed(function, written, params.context.arguments)
            except (Exception, CancelledError) as error:
                check_cancelled(error)
                self._fault(call, f"the completion of {params.argument.name}", error)
                raise
        made: dict[str, Any] = {
            "values": values[:COMPLETIONS_MAX],
            "total": len(values),
            "hasMore": len(values) > COMPLETIONS_MAX,
        }
        return self._finished(call, encode({"completion": made})[:-1])

    # --- the server itself ----------------------------------------------------------------------------------

    def _listing(self, call: Call) -> Response:
        params: protocol.ListParams = _list(call.message.params)
        self._common(call, params)
        if params.cursor is not None:
            raise Fault(INVALID_PARAMS, "there is no such cursor: lists have one page")
        return self._finished(call, self._lists[cast("str", call.message.method)], is_list=True)

    def _discover(self, call: Call) -> Response:
        self._common(call, _any(call.message.params))
        server = self._server
        made: dict[str, Any] = {
            "supportedVersions": [STATELESS], "capabilities": server.capabilities,
        }  # fmt: skip
        if server.instructions is not None:
            made["instructions"] = server.instructions
        return self._finished(call, encode(made)[:-1], is_list=True)

    def _initialize(self, call: Call) -> Response:
        params: protocol.InitializeParams = _initialize(call.message.params)
        server = self._server
        version = params.protocol if params.protocol in SESSION_VERSIONS else SESSION_VERSIONS[-1]
        made: dict[str, Any] = {
            "protocolVersion": version,
            "capabilities": server.capabilities,
            "serverInfo": server.info,
        }
        if server.instructions is not None:
            made["instructions"] = server.instructions
        owner = b"" if server.authorization is None else began_by(call.request)
        identifier = server.sessions.begin(version, declared(params.capabilities), owner)
        response = self._finished(call, encode(made)[:-1])
        response.headers["mcp-session-id"] = identifier
        return response

    def _ping(self, call: Call) -> Response:
        return self._finished(call, b"{")

    async def _set_level(self, call: Call) -> Response:
        params: protocol.LevelParams = _level(call.message.params)
        if call.session.key:
            await self._server.sessions.set_level(call.session, params.level)
        return self._finished(call, b"{")


def _news(method: str, identifier: RequestId, params: dict[str, Any]) -> bytes:
    """A notification for a stream that a client listens to."""
    params = {"_meta": {SUBSCRIPTION_ID: identifier}, **params}
    return event_of(encode({"jsonrpc": "2.0", "method": method, "params": params}))
