"""Binding: a handler in, a callable with positional arguments for the extension out.

Done once per route, when the application is frozen. A handler whose parameters are the request and path
parameters is called by the extension directly; only others get a wrapper (one, generated, so that the
interpreter sees a plain call). signature.py decides which parameter takes its value from where, readers.py
makes the value.

The response to mistakes is 422 with all of them at once; a handler is never called with an argument that does
not match its annotation.
"""

from __future__ import annotations

from contextvars import copy_context
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

from citius._core import parse_urlencoded
from citius.errors import UnprocessableContent
from citius.records import record
from citius.web.binding.depends.dependencies import UNFINISHED, refuse_unfinished
from citius.web.binding.generated import make_function
from citius.web.binding.readers import (
    BodyReader,
    file_reader,
    form_parts,
    missing,
    object_parts,
    part_reader,
    record_reader,
    value_reader,
)
from citius.web.binding.signature import (
    BodyLayout,
    Kind,
    Parameter,
    body_layout,
    http_parameters,
    in_layout,
    needs_conversion,
    path_parameters,
)
from citius.web.declarations.annotations import AS_SENT, copier_of, wants_list
from citius.web.declarations.pydantic_types import refusing
from citius.web.responses.results import passed_values, responder

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from citius.web.binding.depends.dependencies import Dependency
    from citius.web.execution.thread_pool import BlockingPool
    from citius.web.routing.endpoint import Endpoint


@record(frozen=True, slots=True)
class Bound:
    """A handler as ``_core.Native.add`` wants it."""

    call: Callable[..., Any]
    args: tuple[str | None, ...]
    """One per positional argument of ``call``: ``None`` is the request, else a path parameter."""
    kind: Kind = "def"
    """How it is called; dependencies can make a coroutine function of it."""


def bind(handler: Callable[..., Any], pattern: str, *, stream: bool = False) -> Bound:
    """Make a handler callable with what the extension has; see signature.py for the sources.

    Raises:
        ConfigError: A parameter has no source, or two that contradict each other.
    """
    return bind_parameters(handler, http_parameters(handler, pattern, stream=stream), pattern)


def bind_endpoint(endpoint: Endpoint, pool: BlockingPool | None, *, responds: bool = True) -> Bound:
    """Make a route's handler callable, with dependencies and, if it ``responds``, declared responses."""
    respond = responder(endpoint) if responds else None
    if respond is None and not endpoint.dependencies:
        made = bind_parameters(endpoint.handler, endpoint.parameters, endpoint.pattern)
        return replace(made, kind=endpoint.kind)
    wrapper = Wrapper(path_parameters(endpoint.pattern), layout=body_layout(endpoint.inputs))
    return wrapper.bind(endpoint, respond, pool, passed_values(endpoint) if responds else None)


def bind_parameters(
    handler: Callable[..., Any], parameters: tuple[Parameter, ...], pattern: str
) -> Bound:
    """Make a handler callable whose signature has been read into ``parameters``."""
    in_path = path_parameters(pattern)
    if all(is_direct(p, in_path) for p in parameters):
        args = (None if p.source == "request" else p.wire_name for p in parameters)
        return Bound(handler, tuple(args))
    wrapper = Wrapper(in_path, layout=body_layout(parameters))
    arguments = wrapper.read(parameters)
    return wrapper.finish(handler, arguments, "def", None, None)


def is_direct(parameter: Parameter, in_path: dict[str, str]) -> bool:
    """Whether the extension has the value of a positional parameter."""
    if parameter.is_keyword_only:
        return False
    if parameter.source == "path":
        return not needs_conversion(parameter, in_path)
    return parameter.source in ("request", "socket")


class Wrapper:
    """The code of ``def bound(request, …): return handler(…)``, line by line.

    The wrapper of an ``async def`` handler is a ``def`` too: it returns the handler's own coroutine,
    so there is no second coroutine to step.

    Args:
        in_path: Parameters of the path and their converters.
        first: What is passed besides parameters of the path: the request, a socket, or the encoded parameters
            of a procedure; several are written as parameters of a function are.
        opening: Lines that make of it what parameters are read from.
        names: What these lines refer to.
        layout: What parameters of the body are of it.
    """

    def __init__(
        self,
        in_path: dict[str, str],
        *,
        first: str = "request",
        opening: Sequence[str] = (),
        names: Mapping[str, Any] | None = None,
        layout: BodyLayout = "whole",
    ) -> None:
        self._layout: BodyLayout = layout
        self._in_path = in_path
        self._first = first
        self._args: list[str | None] = [None]
        self._n_opening = len(opening)
        self._lines: list[str] = [*opening]
        self._values: dict[int, str] = {}
        self._has_calls = False
        self._has_async = False
        self._has_exits = False
        self._n_generators = 0
        self._may_stream = False
        self._names: dict[str, Any] = {
            "UnprocessableContent": UnprocessableContent,
            "parse_urlencoded": parse_urlencoded,
            **(names or {}),
        }

    def bind(
        self,
        endpoint: Endpoint,
        respond: Callable[[Any], Any] | None = None,
        pool: BlockingPool | None = None,
        passed: type | Callable[[Any], bool] | None = None,
    ) -> Bound:
        """The function of an endpoint: its dependencies, its parameters, its handler; see ``finish``."""
        self._may_stream = (
            endpoint.kind == "def" and endpoint.protocol == "http" and not endpoint.is_model
        )
        is_mixed = endpoint.kind == "blocking" and any(
            one.is_async for one in endpoint.dependencies
        )
        for one in endpoint.dependencies:
            self.call(one, pool if is_mixed and not one.is_async else None)
        arguments = self.read(endpoint.parameters)
        return self.finish(endpoint.handler, arguments, endpoint.kind, respond, pool, passed)

    def read(self, parameters: tuple[Parameter, ...]) -> str:
        """Add what reads the parameters of one function; gives the arguments of its call."""
        first_query = sorted(parameters, key=lambda p: p.source != "query")
        values = {p.name: self._read(p) for p in first_query}
        return ", ".join(
            f"{p.name}={values[p.name]}" if p.is_keyword_only else values[p.name]
            for p in parameters
        )

    def call(self, dependency: Dependency, pool: BlockingPool | None = None) -> None:
        """Add the call of a dependency, in a thread of ``pool``, unless a mistake has been found before."""
        if dependency.value is not None:
            self._values[id(dependency)] = f"{self._name(dependency.value)}.value"
            return
        arguments = self.read(dependency.parameters)
        self._has_calls = True
        self._has_async = self._has_async or dependency.is_async
        places = {one.name: (one.source, one.wire_name) for one in dependency.parameters}
        call = refusing(dependency.call, places)
        if dependency.is_generator:
            self._has_exits = True
            self._n_generators += 1
            self._values[id(dependency)] = self._begin(dependency, call, arguments, pool)
            return
        if pool is not None:
            from citius.web.binding.depends.thread_dependencies import called_in_thread

            expression = f"await {self._name(called_in_thread(pool, call))}({arguments})"
        else:
            expression = f"{self._name(call)}({arguments})"
            expression = f"await {expression}" if dependency.is_async else expression
        value = self._assign(f"{self._unless_mistaken()}{expression}")
        if dependency.kind == "def" and not isinstance(call, type):
            refuse = self._name(partial(refuse_unfinished, call))
            self._lines.append(f"if type({value}) in {self._name(UNFINISHED)}: {refuse}({value})")
        self._values[id(dependency)] = value

    def _begin(
        self,
        dependency: Dependency,
        call: Callable[..., Any],
        arguments: str,
        pool: BlockingPool | None,
    ) -> str:
        """Add the beginning of a dependency that is a generator; gives the name of what it yields."""
        from citius.web.binding.depends import dependency_cleanup as cleanup

        if pool is not None:
            from citius.web.binding.depends.thread_dependencies import entered_in_thread

            made = f"{self._name(entered_in_thread(pool, call))}({arguments})"
            enter = self._name(cleanup.enter)
            return self._assign(f"{self._unless_mistaken()}await {enter}(begun, {made})")
        made = f"{self._name(call)}({arguments})"
        if dependency.is_async:
            begin = self._name(cleanup.begin_async)
            return self._assign(f"{self._unless_mistaken()}await {begin}(begun, {made})")
        done = self._shared_name(cleanup.DONE)
        value = self._assign("None")
        lines = [
            f"generator = {made}",
            f"if ({value} := next(generator, {done})) is {done}:",
            f"    {self._name(cleanup.yields_nothing)}()",
            "begun.append(generator)",
        ]
        if self._may_be_mistaken:
            lines = ["if not mistakes:", *("    " + line for line in lines)]
        self._lines += lines
        return value

    @property
    def _may_be_mistaken(self) -> bool:
        """Whether one of the lines so far may find a mistake in the request."""
        return any("mistakes" in line for line in self._lines)

    def _unless_mistaken(self) -> str:
        """What stands before an expression that is not evaluated behind a mistake."""
        return "None if mistakes else " if self._may_be_mistaken else ""

    def finish(
        self,
        handler: Callable[..., Any],
        arguments: str,
        kind: Kind,
        respond: Callable[[Any], Any] | None,
        pool: BlockingPool | None,
        passed: type | Callable[[Any], bool] | None = None,
    ) -> Bound:
        """The function that reads everything and calls the handler.

        ``respond`` would return values of ``passed``, or of which it is true, as they are.
        """
        self._names["handler"] = handler
        # Dependencies run in the task of the handler, which has a context of its own.
        awaits = kind == "async" and (respond is not None or self._has_calls)
        is_async = self._has_async or awaits
        value = f"handler({arguments})"
        if is_async and kind == "async":
            value = f"await {value}"
        elif is_async and kind == "blocking":
            assert pool is not None, "a blocking route has made freeze ask for a pool"
            value = f"await {self._name(pool.as_async)}(lambda request: {value})(request)"
        if respond is not None and passed is not None:
            # Most values are of the declared type.
            is_type = isinstance(passed, type)
            passes = f"type(value := {value}) is {{}}" if is_type else f"{{}}(value := {value})"
            value = (
                f"value if {passes.format(self._name(passed))} else {self._name(respond)}(value)"
            )
        elif respond is not None:
            value = f"{self._name(respond)}({value})"
        if self._may_be_mistaken:
            self._lines.insert(self._n_opening, "mistakes = []")
            self._lines += [
                "if mistakes:",
                "    raise UnprocessableContent('request validation failed', errors=mistakes)",
            ]
        self._lines.append(f"value = {value}" if self._has_exits else f"return {value}")
        bound = self._compile(is_async=is_async)
        bound.__name__ = getattr(handler, "__name__", "bound")
        bound.__qualname__ = getattr(handler, "__qualname__", "bound")
        bound.__wrapped__ = handler  # for messages
        return Bound(bound, tuple(self._args), "async" if is_async else kind)

    def _compile(self, *, is_async: bool) -> Any:
        """The function of the lines so far."""
        inputs = ", ".join(self._first if a is None else f"p_{a}" for a in self._args)
        lines = self._lines
        if self._has_exits:
            lines = self._with_exits(lines, is_async=is_async)
        has_context = self._has_exits and not is_async and self._may_stream
        head = f"{'async ' * is_async}def {'inner' if has_context else 'bound'}({inputs}):"
        source = "\n    ".join([head, *lines]) + "\n"
        if has_context:
            source += self._in_one_context(inputs)
        handler = self._names["handler"]
        about = f"arguments of {getattr(handler, '__qualname__', 'a handler')}"
        return make_function("bound", source, self._names, about)

    def _with_exits(self, lines: list[str], *, is_async: bool) -> list[str]:
        """The lines, which assign ``value``, and what ends the generators of dependencies after them."""
        from citius.web.binding.depends import dependency_cleanup as cleanup
        from citius.web.execution.background import defer_held, held

        has_request = self._first.startswith("request")
        request, known = ("request", self._name(held)) if has_request else ("None", "")
        finish = f"{self._name(cleanup.finish)}(begun, {request})"
        fail = f"{self._name(cleanup.fail)}(begun, {request}, error)"
        if is_async:
            finish = f"await {self._name(cleanup.finish_async)}(begun, {request})"
            fail = f"await {self._name(cleanup.fail_async)}(begun, {request}, error)"
        made = [
            "begun = []",
            *([f"{known}[request] = deferred = []"] if has_request else []),
            "try:",
            *("    " + line for line in lines),
            "except BaseException as error:",
            f"    if {fail}:",
            f"        {self._name(cleanup.swallowed)}()",
            "    raise",
        ]
        if self._first == "request":
            keep = f"{self._name(cleanup.keep_open)}(request, value, begun, deferred, is_async={is_async})"
            made += [
                f"if type(value) not in {self._name(cleanup.NO_STREAMS)}:",
                f"    if (stream := {keep}) is not None:",
                "        return stream",
            ]
        if self._n_generators == 1 and not is_async and has_request:
            # What `finish` does, without its frame and loop: a seventh of what the dependency costs.
            done = self._shared_name(cleanup.DONE)
            made += [
                "try:",
                f"    if next(generator, {done}) is not {done}:",
                f"        {self._name(cleanup.did_not_stop)}(generator)",
                "except BaseException:",
                f"    {known}.pop(request, None)",
                "    raise",
            ]
        else:
            made.append(finish)
        if has_request:
            made += [
                f"del {known}[request]",
                "if deferred:",
                f"    {self._name(defer_held)}(request, deferred)",
            ]
        return [*made, "return value"]

    def _in_one_context(self, inputs: str) -> str:
        """The source of a function that calls ``inner`` in a context of its own."""
        from citius.web.binding.depends.dependency_cleanup import NO_STREAMS, follow

        return (
            f"def bound({inputs}):\n"
            f"    context = {self._name(copy_context)}()\n"
            f"    value = context.run(inner, {inputs})\n"
            f"    return value if type(value) in {self._name(NO_STREAMS)} else "
            f"{self._name(follow)}(value, context)\n"
        )

    def _read(self, p: Parameter) -> str:
        """The expression of a parameter's value; lines that it needs are added before."""
        if p.source in ("request", "socket", "context"):
            return p.source
        if p.source == "call":
            return f"values.{p.name}"
        if p.dependency is not None:
            return self._values[id(p.dependency)]
        if p.source == "raw_body":
            return "request.body()"
        if p.source == "path":
            return self._read_path(p)
        p = in_layout(p, self._layout)
        if p.source == "body":
            return self._read_body(p) if self._layout == "whole" else self._read_part(p)
        if p.source == "file":
            self._share("form = request.form()")
            return self._assign(f"{self._name(file_reader(p))}(form, mistakes)")
        if p.is_whole:
            reader = self._name(record_reader(p))
            return self._assign(f"{reader}({self._pairs(p.source)}, mistakes)")
        return self._assign(self._read_named(p))

    def _read_body(self, p: Parameter) -> str:
        """JSON is decoded here, without a call of Python code; see `BodyReader`."""
        reader = BodyReader(p)
        own = self._name(reader)
        decode = f"d{len(self._names)}"

        def decode_first(data: bytes) -> Any:
            self._names[decode] = made = reader.decoder()
            return made(data)

        self._names[decode] = decode_first
        value = f"v{len(self._lines)}"
        self._lines += [
            "if (data := request._json_body()) is None:",
            f"    {value} = {own}.other(request, mistakes)",
            "else:",
            "    try:",
            f"        {value} = {decode}(data)",
            "    except Exception as error:",
            f"        {value} = {own}.again(data, mistakes, error)",
        ]
        return value

    def _read_part(self, p: Parameter) -> str:
        """A member of the body's object, or a field of its form that is JSON."""
        if self._layout == "form":
            self._share("form = request.form()")
            self._share(f"parts = {self._shared_name(form_parts)}(form)")
        else:
            self._share(f"parts = {self._shared_name(object_parts)}(request, mistakes)")
        return self._assign(f"{self._name(part_reader(p, self._layout))}(parts, mistakes)")

    def _read_path(self, p: Parameter) -> str:
        if p.wire_name not in self._args:
            self._args.append(p.wire_name)
        value = f"p_{p.wire_name}"
        if not needs_conversion(p, self._in_path):
            return value
        return self._assign(f"{self._name(value_reader(p))}({value}, mistakes)")

    def _read_named(self, p: Parameter) -> str:
        """The expression of a value that the request may lack."""
        name = repr(p.wire_name.lower() if p.source == "header" else p.wire_name)
        many = wants_list(p.annotation)
        if p.source == "header" and not many:
            # One look for the field, without an object of all fields.
            share = f"h{len(self._lines)}"
            self._lines.append(f"{share} = request.header({name})")
            value = (
                f"{self._name(value_reader(p))}({share}, mistakes)"
                if p.annotation not in AS_SENT
                else share
            )
            return f"{self._otherwise(p)} if {share} is None else {value}"
        if p.source == "header":
            known = "request.headers"
            value = f"{known}.getlist({name})"
        elif p.source == "cookie":
            known = self._share("cookies = request.cookies")
            value = f"[cookies[{name}]]" if many else f"cookies[{name}]"
        elif p.source == "form":
            known = self._share("form = request.form()")
            value = f"form.getlist({name})" if many else f"form[{name}]"
        else:
            pairs = self._pairs("query")
            known = self._share(f"sent = dict({pairs})")
            value = f"[v for n, v in {pairs} if n == {name}]" if many else f"sent[{name}]"
        if p.annotation not in AS_SENT:
            value = f"{self._name(value_reader(p))}({value}, mistakes)"
        return f"{value} if {name} in {known} else {self._otherwise(p)}"

    def _otherwise(self, p: Parameter) -> str:
        """The expression of a default, or of a mistake and ``None``."""
        if p.is_required:
            return f"mistakes.append({missing(p)!r})"
        copied = copier_of(p.default)
        name = self._name(copied or p.default)
        return f"{name}()" if copied else name

    def _pairs(self, source: str) -> str:
        """The expression of all names and values in a part of the request."""
        if source == "query":
            return self._share("pairs = parse_urlencoded(request.raw_query)")
        if source == "header":
            return "request.header_items()"
        if source == "cookie":
            return "request.cookies.items()"
        self._share("form = request.form()")
        return "form.multi_items()"

    def _share(self, line: str) -> str:
        """Add a line unless it is there already; gives the name that it assigns."""
        if line not in self._lines:
            self._lines.append(line)
        return line.partition(" ")[0]

    def _assign(self, expression: str) -> str:
        """Add an assignment to a new variable; gives its name."""
        name = f"v{len(self._lines)}"
        self._lines.append(f"{name} = {expression}")
        return name

    def _shared_name(self, value: Any) -> str:
        """The variable of a value; one for each value."""
        known = (name for name, one in self._names.items() if one is value)
        return next(known, None) or self._name(value)

    def _name(self, value: Any) -> str:
        """A name that stands for ``value`` in the code."""
        name = f"n{len(self._names)}"
        self._names[name] = value
        return name
