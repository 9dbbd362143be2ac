"""``MCPServer``: what ``App.mcp`` returns, with decorators for tools, resources and prompts.

Declarations are values until the application is frozen; then each function is bound (entries.py), and what
lists say is encoded. transport.py serves HTTP. Tests: ``tests/mcp/``.
"""

from __future__ import annotations

import asyncio
import inspect
import itertools
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar, overload
from urllib.parse import urlsplit

from citius.errors import ConfigError
from citius.mcp.binding import function
from citius.mcp.entries import Prompt, Resource, Said, Template, Tool, check_name
from citius.mcp.sessions import Sessions
from citius.mcp.streams import NEWS, Streams, updated
from citius.mcp.transport import Transport
from citius.unknown_options import check_decorated_name, with_known_options
from citius.web.declarations.checks import (
    as_dependencies,
    check_callback,
    check_pattern,
    describe,
)
from citius.web.realtime.broadcast import Broadcast
from citius.web.realtime.bus import Bus

if TYPE_CHECKING:
    from asyncio import Future, Task
    from collections.abc import Callable, Mapping, Sequence

    from citius._core import Request, Response
    from citius.mcp.authorization import Authorization
    from citius.mcp.protocol import RequestId
    from citius.web.application.app import App
    from citius.web.binding.depends.dependencies import Resolver
    from citius.web.declarations.parameters.sources import Depends
    from citius.web.execution.thread_pool import BlockingPool
    from citius.web.routing.declared_routes import Route

_FunctionT = TypeVar("_FunctionT", bound="Callable[..., Any]")

_HINTS = {
    "read_only": "readOnlyHint",
    "destructive": "destructiveHint",
    "idempotent": "idempotentHint",
    "open_world": "openWorldHint",
}


class MCPServer:
    """Tools, resources and prompts at a path of an application; ``App.mcp`` makes it."""

    def __init__(
        self,
        app: App,
        path: str,
        *,
        name: str,
        version: str,
        title: str | None,
        instructions: str | None,
        origins: Sequence[str],
        hosts: Sequence[str],
        dependencies: Sequence[Depends],
        authorization: Authorization | None,
        secret: str | bytes | None,
        session_s: int,
        answer_s: float,
        resume_s: float,
        cache_s: int,
    ) -> None:
        check_pattern(path, "app.mcp")
        if "{" in path:
            raise ConfigError(f"app.mcp({path!r}): expected a path without parameters")
        self.path = path
        self.full_path = path
        """Below the prefixes of mounts, once that is known."""
        self.app = app
        self.authorization = authorization
        self.dependencies = as_dependencies(f"app.mcp({path!r})", dependencies)
        self.origins = frozenset(_origin(path, one) for one in _listed(path, "origins", origins))
        self.hosts = frozenset(one.lower() for one in _listed(path, "hosts", hosts))
        self.info: dict[str, Any] = {"name": name, "version": version}
        if title is not None:
            self.info["title"] = title
        self.instructions = instructions
        self.cache_ms = cache_s * 1000
        self.answer_s = answer_s
        self.session_s = session_s
        if resume_s < 0:
            raise ConfigError(f"app.mcp({path!r}): expected resume_s of 0 or more, got {resume_s}")
        self.resume_s = resume_s
        self.sessions = Sessions(path, secret, session_s)
        self.bus = Bus(self._heard)
        self.news = Broadcast(history=NEWS, slow="drop")
        """Resources that have changed, for the streams of all workers."""
        self.streams = Streams(self)
        self.tools: dict[str, Tool] = {}
        self.resources: dict[str, Resource] = {}
        self.templates: list[Resource] = []
        self.prompts: dict[str, Prompt] = {}
        self.completions: dict[tuple[str, str], Callable[..., Any]] = {}
        self.running: dict[tuple[str, RequestId], Task[Response]] = {}
        """Calls that can be cancelled, by session and request."""
        self.detached: set[Task[Response]] = set()
        self.pending: dict[str, tuple[Future[dict[str, Any]], str]] = {}
        """Questions to clients, and the sessions that may answer them."""
        self.transport = Transport(self)
        self._numbers = itertools.count(1)
        self._is_frozen = False
        self._loop: asyncio.AbstractEventLoop | None = None

    # --- declaring --------------------------------------------------------------------------------------

    @overload
    def tool(self, name: _FunctionT, /) -> _FunctionT: ...
    @overload
    def tool(
        self,
        name: str | None = None,
        /,
        *,
        title: str | None = None,
        description: str | None = None,
        icons: Sequence[Mapping[str, object]] = (),
        meta: Mapping[str, object] | None = None,
        read_only: bool | None = None,
        destructive: bool | None = None,
        idempotent: bool | None = None,
        open_world: bool | None = None,
        headers: Mapping[str, str] = {},
        schema: Mapping[str, object] = {},
        blocking: bool = False,
        dependencies: Sequence[Depends] = (),
    ) -> Callable[[_FunctionT], _FunctionT]: ...
    @with_known_options
    def tool(
        self,
        name: Any = None,
        /,
        *,
        title: str | None = None,
        description: str | None = None,
        icons: Sequence[Mapping[str, object]] = (),
        meta: Mapping[str, object] | None = None,
        read_only: bool | None = None,
        destructive: bool | None = None,
        idempotent: bool | None = None,
        open_world: bool | None = None,
        headers: Mapping[str, str] = {},
        schema: Mapping[str, object] = {},
        blocking: bool = False,
        dependencies: Sequence[Depends] = (),
    ) -> Any:
        """Let models call the decorated function.

        ``@mcp.tool``, ``@mcp.tool("other_name")``. Arguments are checked against the annotations, which are
        the schema that models see. The result is structured content if the function is annotated with a type
        that JSON can say; ``ToolError`` and ``HTTPError`` are results that say what went wrong.

        Args:
            name: What it is called by; the function's name without it.
            title: What people see.
            description: What it is for; the docstring without it, whose ``Args:`` describe the arguments.
            icons: Icons, as the protocol has them.
            meta: What goes into ``_meta``.
            read_only: It changes nothing.
            destructive: It may remove something.
            idempotent: A second call with the same arguments changes nothing more.
            open_world: It reaches beyond the application, to the web for instance.
            headers: Arguments that clients repeat in ``Mcp-Param-`` fields, for proxies to route by, with the
                ends of the fields' names.
            schema: Further keywords of the JSON Schema of its arguments, such as ``anyOf``; what they demand
                the function checks itself.
            blocking: Call the function (a ``def``) in a thread, because it waits for something.
            dependencies: Dependencies whose values the function does not take.
        """
        self._check_open()

        check_decorated_name("mcp.tool", name)

        def declare(call: _FunctionT) -> _FunctionT:
            self._check_open()
            given = name if isinstance(name, str) else str(getattr(call, "__name__", ""))
            what = f"the tool {given}"
            check_name(f"{what} of {describe(call)}", given)
            if given in self.tools:
                raise ConfigError(f"there are two tools {given!r}: the second is {describe(call)}")
            hints = {
                "read_only": read_only, "destructive": destructive, "idempotent": idempotent,
                "open_world": open_world,
            }  # fmt: skip
            self.tools[given] = Tool(
                given,
                function(
                    what, call, blocking=blocking, dependencies=as_dependencies(what, dependencies)
                ),
                Said(title, description, tuple(icons), meta),
                {_HINTS[key]: value for key, value in hints.items() if value is not None},
                dict(headers),
                dict(schema),
            )
            return call

        return declare(name) if callable(name) else declare

    @with_known_options
    def resource(
        self,
        uri: str,
        /,
        *,
        name: str | None = None,
        title: str | None = None,
        description: str | None = None,
        mime_type: str | None = None,
        icons: Sequence[Mapping[str, object]] = (),
        meta: Mapping[str, object] | None = None,
        annotations: Mapping[str, object] = {},
        blocking: bool = False,
        dependencies: Sequence[Depends] = (),
    ) -> Callable[[_FunctionT], _FunctionT]:
        """Let clients read what the decorated function returns: a text, bytes, or a value, sent as JSON.

        Args:
            uri: ``notes://all``; or ``notes://{id}``, whose parameters the function takes: ``{name}`` is a
                part without ``/``, ``{+name}`` may have any.
            name: What it is called; the function's name without it.
            title: What people see.
            description: What it is; the docstring without it.
            mime_type: The media type; by the class of the value without it.
            icons: Icons, as the protocol has them.
            meta: What goes into ``_meta``.
            annotations: ``audience``, ``priority`` and ``lastModified``.
            blocking: Call the function (a ``def``) in a thread, because it waits for something.
            dependencies: Dependencies whose values the function does not take.
        """
        self._check_open()
        if not callable(getattr(uri, "partition", None)) or not urlsplit(uri).scheme:
            raise ConfigError(f"mcp.resource: expected a URI such as notes://all, got {uri!r}")
        template = Template(uri, f"mcp.resource({uri!r})") if "{" in uri or "}" in uri else None
        known = [one.uri for one in self.templates] + list(self.resources)
        if uri in known:
            raise ConfigError(f"there are two resources {uri!r}")

        def declare(call: _FunctionT) -> _FunctionT:
            self._check_open()
            what = f"the resource {uri}"
            depends = as_dependencies(what, dependencies)
            made = Resource(
                uri,
                name if name is not None else str(getattr(call, "__name__", uri)),
                function(what, call, blocking=blocking, dependencies=depends),
                Said(title, description, tuple(icons), meta),
                mime_type,
                dict(annotations),
                template=template,
            )
            if template is None:
                self.resources[uri] = made
            else:
                self.templates.append(made)
            return call

        return declare

    @overload
    def prompt(self, name: _FunctionT, /) -> _FunctionT: ...
    @overload
    def prompt(
        self,
        name: str | None = None,
        /,
        *,
        title: str | None = None,
        description: str | None = None,
        icons: Sequence[Mapping[str, object]] = (),
        meta: Mapping[str, object] | None = None,
        blocking: bool = False,
        dependencies: Sequence[Depends] = (),
    ) -> Callable[[_FunctionT], _FunctionT]: ...
    @with_known_options
    def prompt(
        self,
        name: Any = None,
        /,
        *,
        title: str | None = None,
        description: str | None = None,
        icons: Sequence[Mapping[str, object]] = (),
        meta: Mapping[str, object] | None = None,
        blocking: bool = False,
        dependencies: Sequence[Depends] = (),
    ) -> Any:
        """Offer users the prompt that the decorated function returns: a text, a ``Message``, or several.

        Args:
            name: What it is called by; the function's name without it.
            title: What people see.
            description: What it is for; the docstring without it, whose ``Args:`` describe the arguments.
            icons: Icons, as the protocol has them.
            meta: What goes into ``_meta``.
            blocking: Call the function (a ``def``) in a thread, because it waits for something.
            dependencies: Dependencies whose values the function does not take.
        """
        self._check_open()

        check_decorated_name("mcp.prompt", name)

        def declare(call: _FunctionT) -> _FunctionT:
            self._check_open()
            given = name if isinstance(name, str) else str(getattr(call, "__name__", ""))
            what = f"the prompt {given}"
            check_name(f"{what} of {describe(call)}", given)
            if given in self.prompts:
                raise ConfigError(
                    f"there are two prompts {given!r}: the second is {describe(call)}"
                )
            depends = as_dependencies(what, dependencies)
            self.prompts[given] = Prompt(
                given,
                function(what, call, blocking=blocking, dependencies=depends),
                Said(title, description, tuple(icons), meta),
            )
            return call

        return declare(name) if callable(name) else declare

    @with_known_options
    def completion(self, of: str, argument: str, /) -> Callable[[_FunctionT], _FunctionT]:
        """Complete an argument of a prompt or of a template with what the decorated function returns.

        Those of its dependencies that need no argument are called first, and may refuse.

        It takes what the user has written, and the arguments that are known already if it has a second
        parameter; it returns texts, of which 100 are sent. Arguments whose types list their values need none.

        Args:
            of: The name of a prompt, or the URI of a template.
            argument: Its argument.
        """
        self._check_open()

        def declare(call: _FunctionT) -> _FunctionT:
            self._check_open()
            if (of, argument) in self.completions:
                raise ConfigError(f"there are two completions of {argument!r} of {of!r}")
            _check_completion(call, f"mcp.completion({of!r}, {argument!r})")
            self.completions[of, argument] = call
            return call

        return declare

    def _check_open(self) -> None:
        if self._is_frozen:
            raise ConfigError(
                "the application is being served and can no longer change; declare tools, resources and "
                "prompts when its module is imported"
            )

    # --- while it is served -------------------------------------------------------------------------------

    def resource_updated(self, uri: str) -> None:
        """Tell the clients that have subscribed to a resource, of all workers, that it has changed.

        It does not wait, and may be called from any thread.
        """
        self.news.send(updated(uri))

    def next_id(self) -> str:
        """An identifier for a question to a client; it names the worker that waits for the answer."""
        return f"{self.bus.sender}-{next(self._numbers)}"

    def use_loop(self) -> None:
        """Know the event loop, once there is a request."""
        loop = asyncio.get_running_loop()
        if loop is not self._loop and (self._loop is None or self._loop.is_closed()):
            self._loop = loop
            self.bus.attach(loop)

    def _heard(self, value: dict[str, Any]) -> None:
        """Something that another worker has got."""
        if "answer" in value:
            self.answered(value["answer"], value["session"])
        elif "cancelled" in value:
            self.cancel(value["session"], value["cancelled"])

    def answered(self, response: dict[str, Any], session: str) -> bool:
        """Hand a client's answer to the call that waits for it; ``False`` if none does here."""
        waiting = self.pending.get(str(response.get("id")))
        if waiting is None:
            return False
        future, owner = waiting
        if owner == session:
            _in_loop_of(future, partial(_answer, future, response))
        return True

    def cancel(self, session: str, identifier: RequestId) -> bool:
        """Cancel a call; ``False`` if it is not here."""
        task = self.running.get((session, identifier))
        if task is None:
            return False
        _in_loop_of(task, task.cancel)
        return True

    # --- what the application calls -------------------------------------------------------------------------

    @property
    def needs_pool(self) -> bool:
        """Whether a function is called in a thread."""
        entries = (
            *self.tools.values(),
            *self.resources.values(),
            *self.templates,
            *self.prompts.values(),
        )
        return any(one.function.kind == "blocking" for one in entries)

    @property
    def routes(self) -> list[Route]:
        """The routes that it is served by."""
        return self.transport.routes()

    def freeze(
        self,
        outermost: App,
        resolver: Resolver,
        pool: BlockingPool | None,
        report: Callable[[Request, BaseException], object],
        *,
        in_pool: bool,
    ) -> None:
        """Bind everything; nothing can be added afterwards.

        Raises:
            ConfigError: A function can take no call, or something that was declared cannot hold.
        """
        self._is_frozen = True
        is_outer = outermost.cluster is not None or self.app.cluster is None
        home = outermost if is_outer else self.app
        self.sessions.open(home)
        self.streams.open(home)
        entries: list[Any] = [
            *self.tools.values(), *self.resources.values(), *self.templates, *self.prompts.values(),
        ]  # fmt: skip
        for one in entries:
            if one.bound is None or not one.item:
                one.bind(resolver, pool, in_pool=in_pool)
        self._check_completions()
        self.transport.freeze(report)

    def _check_completions(self) -> None:
        for (of, argument), call in self.completions.items():
            templates: dict[str, Any] = {one.uri: one for one in self.templates}
            entry = self.prompts.get(of) or templates.get(of)
            if entry is not None and entry.guards.needs_arguments:
                raise ConfigError(
                    f"{describe(call)} completes {argument!r} of {of!r}, whose dependencies= need arguments, "
                    "which are not known then: they would not hold"
                )
            if entry is None or argument not in entry.arguments:
                raise ConfigError(
                    f"{describe(call)} completes {argument!r} of {of!r}, and there is no such argument of a "
                    "prompt or a template"
                )

    @property
    def capabilities(self) -> dict[str, Any]:
        """What it declares to clients."""
        made: dict[str, Any] = {"logging": {}}
        if self.tools:
            made["tools"] = {}
        if self.resources or self.templates:
            made["resources"] = {"subscribe": True}
        if self.prompts:
            made["prompts"] = {}
        if self.prompts or self.templates:
            made["completions"] = {}
        return made


def _check_completion(call: Callable[..., Any], option: str) -> None:
    """Refuse what cannot complete an argument.

    Raises:
        ConfigError: It takes something else, or has markers.
    """
    is_pair = callable(call) and len(inspect.signature(call).parameters) > 1
    check_callback(call, option, "written", *(["arguments"] if is_pair else []), awaits=True)


def _in_loop_of(future: Future[Any], call: Callable[[], object]) -> None:
    """Call ``call`` on the event loop of a future, which may be another thread's."""
    loop = future.get_loop()
    if loop is asyncio.get_running_loop():
        call()
    else:
        loop.call_soon_threadsafe(call)


def _answer(future: Future[dict[str, Any]], response: dict[str, Any]) -> None:
    if not future.done():
        future.set_result(response)


def _listed(path: str, option: str, given: Sequence[str]) -> list[str]:
    if isinstance(given, str):
        raise ConfigError(f"app.mcp({path!r}): expected {option}=[{given!r}], a list")
    return list(given)


def _origin(path: str, given: str) -> str:
    parts = urlsplit(given)
    if given == "*":
        return given
    if parts.scheme not in ("http", "https") or not parts.netloc or parts.path or parts.query:
        raise ConfigError(
            f"app.mcp({path!r}): expected origins such as https://app.example.com, got {given!r}"
        )
    return given.lower()
