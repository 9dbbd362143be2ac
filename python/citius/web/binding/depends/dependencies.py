"""Dependencies: ``Annotated[T, Depends(f)]`` in, a graph of functions with their parameters out.

The graph of a route is made once, when the application is frozen; binding.py generates the calls. Within one
request a dependency is called once, however many functions take its value. A dependency of the application is
called once per process, before the server listens.

What can never work is a ``ConfigError`` with the function's file and line: a cycle, a parameter without a
source, a dependency of the application that needs a request. Tests: ``tests/gateway/test_dependencies.py``.
"""

from __future__ import annotations

import inspect
from contextlib import asynccontextmanager, contextmanager
from dataclasses import field, replace
from types import AsyncGeneratorType, CoroutineType, GeneratorType
from typing import TYPE_CHECKING, Any, Final, Literal, cast, get_origin

from citius.errors import ConfigError
from citius.records import record
from citius.web.binding.signature import Parameter, http_parameters, read
from citius.web.declarations.annotations import is_app
from citius.web.declarations.checks import describe
from citius.web.declarations.parameters.sources import identity_of, is_hashable
from citius.web.declarations.parameters.unread_markers import refuse_unread_attributes
from citius.web.declarations.type_kinds import deciding

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from contextlib import AsyncExitStack

    from citius.web.declarations.parameters.sources import Depends

    Overrides = Mapping[Callable[..., Any], Callable[..., Any]]

DependencyKind = Literal["def", "async", "generator", "async generator"]


@record(frozen=True, slots=True, eq=False)
class Dependency:
    """A function whose value others take, with its parameters."""

    call: Callable[..., Any]
    kind: DependencyKind
    parameters: tuple[Parameter, ...]
    value: AppValue | None = None
    """Where the value is, for a dependency of the application."""

    @property
    def is_generator(self) -> bool:
        """Whether it has something to do after the response."""
        return self.kind in ("generator", "async generator")

    @property
    def is_async(self) -> bool:
        """Whether its value has to be awaited."""
        return self.kind in ("async", "async generator")

    def inner(self) -> list[Dependency]:
        """The dependencies that it takes itself."""
        return [p.dependency for p in self.parameters if p.dependency is not None]


class AppValue:
    """The value of a dependency of the application, once it is there."""

    value: Any
    __slots__ = ("__dict__", "_call")

    def __init__(self, call: Callable[..., Any]) -> None:
        self._call = call

    def __getattr__(self, name: str) -> Any:
        # Reached only while there is no value.
        raise RuntimeError(
            f"{describe(self._call)} is a dependency of the application, which is called at the start: use "
            "`with Client(app)` in a test"
        )


@record(slots=True)
class AppDependencies:
    """The dependencies of an application, in an order in which they can be called."""

    by_call: dict[Any, Dependency] = field(default_factory=dict[Any, Dependency])
    """By what `identity_of` says of the function."""
    stack: AsyncExitStack | None = None

    async def start(self, app: object) -> None:
        """Call all of them; each is called after those that it takes."""
        if not self.by_call:
            return
        from contextlib import AsyncExitStack

        self.stack = stack = AsyncExitStack()
        for one in self.by_call.values():
            given = {
                p.name: app if p.dependency is None else _value_of(p.dependency)
                for p in one.parameters
            }
            if one.kind == "generator":
                value = stack.enter_context(contextmanager(one.call)(**given))
            elif one.kind == "async generator":
                value = await stack.enter_async_context(asynccontextmanager(one.call)(**given))
            else:
                value = one.call(**given)
                value = await value if one.kind == "async" else value
                if type(value) in UNFINISHED:
                    refuse_unfinished(one.call, value)
            assert one.value is not None, "it is of the application"
            one.value.value = value

    async def stop(self) -> None:
        """Let those that are generators end, in reverse order."""
        stack, self.stack = self.stack, None
        for one in self.by_call.values():
            if one.value is not None:
                one.value.__dict__.clear()
        if stack is not None:
            await stack.aclose()


def _value_of(dependency: Dependency) -> Any:
    assert dependency.value is not None, (
        "what an application's dependency takes is of the application"
    )
    return dependency.value.value


class Resolver:
    """Makes the graphs of one application's routes.

    Args:
        overrides: Functions to call in place of others (``App.dependency_overrides``).
        of_app: Where the application's own dependencies are kept.
        read: Reads the parameters of a dependency at a path.
    """

    def __init__(
        self,
        overrides: Overrides,
        of_app: AppDependencies,
        read: Callable[[Callable[..., Any], str], tuple[Parameter, ...]] = http_parameters,
    ) -> None:
        self._overrides = overrides
        self._of_app = of_app
        self._read = read

    def reading(self, read: Callable[[Callable[..., Any], str], tuple[Parameter, ...]]) -> Resolver:
        """A resolver that reads the parameters of functions by ``read``."""
        return Resolver(self._overrides, self._of_app, read)

    def resolve(
        self,
        owner: Callable[..., Any],
        parameters: tuple[Parameter, ...],
        depends: tuple[Depends, ...],
        pattern: str,
    ) -> tuple[tuple[Parameter, ...], tuple[Dependency, ...]]:
        """A handler's parameters, with the graphs of dependencies; and the route's own dependencies."""
        known: dict[Any, Dependency] = {}
        resolved = self._resolve(owner, parameters, pattern, known, ())
        return resolved, tuple(
            self._dependency(owner, one, None, pattern, known, ()) for one in depends
        )

    def _resolve(
        self,
        owner: Callable[..., Any],
        parameters: tuple[Parameter, ...],
        pattern: str,
        known: dict[Any, Dependency],
        path: tuple[Callable[..., Any], ...],
    ) -> tuple[Parameter, ...]:
        found: list[Parameter] = []
        for one in parameters:
            if one.depends is not None:
                made = self._dependency(owner, one.depends, one, pattern, known, path)
                one = replace(one, dependency=made)
            found.append(one)
        return tuple(found)

    def _dependency(
        self,
        owner: Callable[..., Any],
        depends: Depends,
        taker: Parameter | None,
        pattern: str,
        known: dict[Any, Dependency],
        path: tuple[Callable[..., Any], ...],
    ) -> Dependency:
        call = depends.call or (None if taker is None else taker.type)
        cls = get_origin(call) or call
        if not callable(call) or call is Any or getattr(cls, "__module__", "") == "builtins":
            raise ConfigError(
                f"{describe(owner)} has Depends() without a function; write Depends(function), or annotate "
                "the parameter with a class"
            )
        if is_hashable(call) and call in self._overrides:
            given, call = call, self._overrides[call]
            if not callable(call):
                raise ConfigError(
                    f"app.dependency_overrides[{describe(given)}] is {call!r}; expected a function to call "
                    "in its place"
                )
        call = _generator_of(call)
        if call in path:
            chain = " -> ".join(describe(one) for one in (*path[path.index(call) :], call))
            raise ConfigError(f"dependencies that need each other: {chain}")
        if depends.scope == "app":
            return self._of_application(call, path)
        identity = identity_of(call)
        if depends.cached and identity in known:
            return known[identity]
        refuse_unread_attributes(call, describe(call))
        own = self._read(call, pattern)
        inner = self._resolve(call, own, pattern, known, (*path, call))
        made = Dependency(call, dependency_kind(call), inner)
        if depends.cached:
            known[identity] = made
        return made

    def _of_application(
        self, call: Callable[..., Any], path: tuple[Callable[..., Any], ...]
    ) -> Dependency:
        identity = identity_of(call)
        kept = self._of_app.by_call.get(identity)
        if kept is not None:
            return kept
        refuse_unread_attributes(call, describe(call))
        parameters: list[Parameter] = []
        for one in read(call):
            if is_app(one.annotation):
                parameters.append(replace(one, source="app"))
                continue
            if one.depends is None or one.depends.scope != "app":
                raise ConfigError(
                    f"{describe(call)} is a dependency of the application and takes {one.name}, which only a "
                    "request has; it may take the citius.App and dependencies with scope='app'"
                )
            inner = self._dependency(call, one.depends, one, "/", {}, (*path, call))
            parameters.append(replace(one, source="dependency", dependency=inner))
        made = Dependency(call, dependency_kind(call), tuple(parameters), AppValue(call))
        self._of_app.by_call[identity] = made
        return made


def _nothing() -> Any:
    """What the functions of ``contextlib`` are known by."""


_CONTEXT_MANAGERS: Final[tuple[Any, ...]] = tuple(
    cast("Any", make)(_nothing).__code__ for make in (contextmanager, asynccontextmanager)
)


def _generator_of(call: Any) -> Any:
    """The generator function in one that ``contextlib`` has made of it: a dependency is entered here."""
    function = getattr(call, "__func__", call)
    if getattr(function, "__code__", None) not in _CONTEXT_MANAGERS:
        return call
    inner = function.__wrapped__
    return inner if function is call else inner.__get__(call.__self__)


def dependency_kind(call: Callable[..., Any]) -> DependencyKind:
    """How the value of a dependency is had."""
    target = deciding(call)
    if inspect.isasyncgenfunction(target):
        return "async generator"
    if inspect.isgeneratorfunction(target):
        return "generator"
    return "async" if inspect.iscoroutinefunction(target) else "def"


UNFINISHED = frozenset({CoroutineType, GeneratorType, AsyncGeneratorType})
"""Types of what a call gives that has not run its function yet."""


def refuse_unfinished(call: Callable[..., Any], value: Any) -> None:
    """Refuse the value of a dependency that was taken for a plain function, and has not run.

    Raises:
        RuntimeError: It is a coroutine, or a generator of a function; an expression of that form is a value.
    """
    code = getattr(value, "gi_code", None) or getattr(value, "ag_code", None)
    if code is not None and code.co_name == "<genexpr>":
        return
    if isinstance(value, AsyncGeneratorType):
        what = "an async generator"
    else:
        what = "a coroutine" if isinstance(value, CoroutineType) else "a generator"
        value.close()
    raise RuntimeError(
        f"the dependency {describe(call)} is a `def` that returned {what}, which has not run; make it "
        "`async def`, let it `yield` itself, or decorate it with functools.wraps"
    )


def flatten(dependencies: tuple[Dependency, ...]) -> Iterator[Dependency]:
    """Dependencies and those that they take, each once, inner ones first."""
    seen: set[int] = set()

    def walk(one: Dependency) -> Iterator[Dependency]:
        if id(one) not in seen:
            seen.add(id(one))
            for inner in one.inner():
                yield from walk(inner)
            yield one

    for one in dependencies:
        yield from walk(one)
