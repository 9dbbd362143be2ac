"""Markers that say where a parameter comes from: ``Annotated[int, Query(alias="p", ge=1)]``.

A marker names a part of the request, and may carry the name that the parameter has there, a default,
constraints, and what the documentation says of it. A parameter without a marker takes its value by the rules
of signature.py. ``Annotated[T, Query]`` means ``Annotated[T, Query()]``, and ``p: T = Query(…)`` what
``p: Annotated[T, Query(…)]`` does; marked.py says where a marker may stand.

Markers are values: nothing here reads a request. Tests: ``tests/gateway/test_sources.py``.
"""

from __future__ import annotations

import inspect
import re
from dataclasses import KW_ONLY, fields
from functools import partial
from math import inf
from typing import TYPE_CHECKING, Any, ClassVar, Final, Literal, cast

from citius.errors import ConfigError
from citius.records import record
from citius.unknown_options import caller, known_options

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

MISSING: Final = inspect.Parameter.empty
"""The annotation or default of a parameter that has none."""

LENGTHS: Final = ("min_length", "max_length")
"""Constraints of strings and arrays; the others hold for numbers and strings, in an array for each item."""

CONSTRAINTS: Final = ("gt", "ge", "lt", "le", "multiple_of", "pattern", *LENGTHS)

TOKEN: Final = r"[!#$%&'*+.^_`|~0-9A-Za-z-]+"
"""The name of a field, a cookie or a method (RFC 9110, §5.6.2)."""


@record(frozen=True, slots=True)
class Marker:
    """What a parameter says of its source.

    Args:
        default: The parameter's value if the request has none; ``...`` if it has to have one.
        alias: Its name in the request; its own name without one.
        title: A short name for the documentation.
        description: What it means, for the documentation.
        examples: Values for the documentation.
        deprecated: Whether clients should stop sending it.
        include_in_schema: Whether the documentation shows it.
        gt: The number is greater than this.
        ge: The number is this or greater.
        lt: The number is less than this.
        le: The number is this or less.
        multiple_of: The number is a multiple of this.
        pattern: A regular expression that is found in the text.
        min_length: Characters of a text, or items of an array, at least.
        max_length: The same at most.
    """

    source: ClassVar[str]
    """The part of the request."""

    default: object = MISSING
    _: KW_ONLY
    alias: str | None = None
    title: str | None = None
    description: str | None = None
    examples: Sequence[object] = ()
    deprecated: bool = False
    include_in_schema: bool = True
    gt: float | None = None
    ge: float | None = None
    lt: float | None = None
    le: float | None = None
    multiple_of: float | None = None
    pattern: str | None = None
    min_length: int | None = None
    max_length: int | None = None

    def __post_init__(self) -> None:
        if self.default is ...:
            object.__setattr__(self, "default", MISSING)
        what = self._mistake()
        if what:
            raise ConfigError(f"{type(self).__name__} ({caller()}): {what}")

    def _mistake(self) -> str:
        """Why no request can bring such a value; empty if one can."""
        alias, pattern = self.alias, self.pattern
        if self.source == "path" and self.default is not MISSING:
            return f"a parameter of the path has no default, got {self.default!r}; add a route without it"
        if alias is not None:
            is_token = self.source not in ("header", "cookie") or re.fullmatch(TOKEN, alias)
            if not alias or not is_token:
                return f"alias={alias!r} is no name of a {self.source}"
        if pattern is not None:
            try:
                re.compile(pattern)
            except re.error as error:
                return f"pattern={pattern!r} is no regular expression: {error}"
        low = max((one for one in (self.gt, self.ge) if one is not None), default=-inf)
        high = min((one for one in (self.lt, self.le) if one is not None), default=inf)
        if low > high or (low == high and (low == self.gt or high == self.lt)):
            return "no number is within these bounds"
        shortest, longest = self.min_length, self.max_length
        if shortest is not None and longest is not None and shortest > longest:
            return f"min_length={shortest} is more than max_length={longest}"
        return ""

    def constraints(self) -> dict[str, object]:
        """The constraints that are given, as ``msgspec.Meta`` takes them."""
        given = {name: getattr(self, name) for name in CONSTRAINTS}
        return {name: value for name, value in given.items() if value is not None}

    def __repr__(self) -> str:
        given = ((field.name, getattr(self, field.name), field.default) for field in fields(self))
        said = (f"{name}={value!r}" for name, value, default in given if value != default)
        return f"{type(self).__name__}({', '.join(said)})"


@known_options
@record(frozen=True, slots=True, repr=False)
class Path(Marker):
    """A parameter of the path."""

    source: ClassVar[str] = "path"


@known_options
@record(frozen=True, slots=True, repr=False)
class Query(Marker):
    """A parameter of the query; a type with fields takes each field from the query."""

    source: ClassVar[str] = "query"


@known_options
@record(frozen=True, slots=True, repr=False)
class Header(Marker):
    """A field of the header section, ``user_agent`` from ``User-Agent``; a type with fields takes several."""

    source: ClassVar[str] = "header"


@known_options
@record(frozen=True, slots=True, repr=False)
class Cookie(Marker):
    """A cookie; a type with fields takes several."""

    source: ClassVar[str] = "cookie"


@known_options
@record(frozen=True, slots=True, repr=False)
class Form(Marker):
    """A text field of a form (URL-encoded or multipart); a type with fields takes several."""

    source: ClassVar[str] = "form"


@known_options
@record(frozen=True, slots=True, repr=False)
class File(Marker):
    """A file of a multipart form: an ``UploadFile``, ``bytes``, or a list of either.

    Lengths are those of ``bytes``, or how many files a list has; those of an ``UploadFile`` are refused.
    """

    source: ClassVar[str] = "file"


@known_options
@record(frozen=True, slots=True, repr=False)
class Body(Marker):
    """The body of the request, whatever the type: ``Annotated[list[int], Body()]``.

    Of several each is a member of one object. Beside fields and files of a form it is one of its fields, as
    JSON if its type has fields itself.

    Args:
        embed: Whether it is a member of an object even if there is no other.
    """

    source: ClassVar[str] = "body"
    _: KW_ONLY
    embed: bool = False


@known_options
@record(frozen=True, slots=True)
class Depends:
    """The value of a parameter is what a function returns or yields.

    Args:
        call: The function; the annotated class without one.
        scope: ``"app"``: it is called once, before the server listens.
        cached: Whether all that take it in one request share one value.
    """

    call: Callable[..., object] | None = None
    scope: Literal["request", "app"] = "request"
    cached: bool = True

    def __post_init__(self) -> None:
        if self.scope == "app" and not self.cached:
            raise ConfigError(
                f"Depends ({caller()}): a dependency with scope='app' is called once; drop cached=False"
            )
        call: object = self.call
        if call is None:
            return
        if not callable(call):
            raise ConfigError(f"Depends ({caller()}) takes a function, got {call!r}")
        if not is_hashable(call):
            raise ConfigError(
                f"Depends ({caller()}): {call!r} cannot be hashed, by which it is known as one dependency; "
                "write Depends(that.__call__)"
            )

    # ``typing`` keeps each ``Annotated``, and gives the kept one for another with equal metadata.

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Depends) and self._key() == other._key()

    def __hash__(self) -> int:
        return hash(self._key())

    def _key(self) -> tuple[Any, ...]:
        return (None if self.call is None else identity_of(self.call), self.scope, self.cached)


def identity_of(call: Any) -> Any:
    """What says whether two functions are one dependency.

    Objects that are called may compare equal and yet do different things, such as a frozen dataclass with
    ``Level(1)`` and ``Level(True)``, or with ``field(compare=False)``: they are one if they look the same
    too.
    """
    if not (inspect.isroutine(call) or inspect.isclass(call) or isinstance(call, partial)):
        return (call, repr(call)) if is_hashable(call) else id(call)
    same: Any = cast("Any", call)
    return same


def is_hashable(call: object) -> bool:
    """Whether it can be a key."""
    try:
        hash(call)
    except TypeError:
        return False
    return True


def marker_in(metadata: tuple[Any, ...]) -> list[Marker]:
    """The markers among the metadata of an ``Annotated``."""
    found: list[Marker] = []
    for one in metadata:
        if isinstance(one, Marker):
            found.append(one)
        elif isinstance(one, type) and issubclass(one, Marker):
            found.append(one())
    return found


def depends_in(metadata: tuple[Any, ...]) -> list[Depends]:
    """The dependencies among the metadata of an ``Annotated``."""
    made = (Depends() if one is Depends else one for one in metadata)
    return [one for one in made if isinstance(one, Depends)]
