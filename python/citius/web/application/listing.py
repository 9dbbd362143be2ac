"""``citius routes``: endpoints in, a table or values for JSON out.

Tests: ``tests/gateway/test_endpoints.py``.
"""

from __future__ import annotations

import inspect
import os
from typing import TYPE_CHECKING, Any, Final

from citius.web.declarations.checks import describe

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from citius.web.routing.endpoint import Endpoint

HEADINGS: Final = ("METHOD", "PATH", "HANDLER", "FILE", "GUARDS", "DEPENDENCIES", "LIMITS")

_GAP: Final = "  "
# A column that is narrower breaks nearly every word.
_COLUMN_CHARS_MIN: Final = 8


def lines(endpoints: Sequence[Endpoint], columns: int | None = None) -> list[str]:
    """A table with a row for each endpoint.

    Args:
        endpoints: What is listed.
        columns: How wide a line may be; cells that are too long go on below. ``None``: as wide as it is.
    """
    rows = [HEADINGS, *map(_cells, endpoints)]
    widths = [max(len(row[at]) for row in rows) for at in range(len(HEADINGS))]
    if columns is not None:
        _fit(widths, columns - len(_GAP) * (len(widths) - 1))
    return [line for row in rows for line in _wrapped(row, widths)]


def values(endpoints: Sequence[Endpoint]) -> list[dict[str, Any]]:
    """What is known of each endpoint, for programs."""
    return [
        {
            "protocol": one.protocol,
            "method": one.method or None,
            "path": one.pattern,
            "name": one.name,
            "handler": one.where,
            "kind": one.kind,
            "parameters": [
                {"name": p.wire_name, "in": p.source, "required": p.is_required} for p in one.inputs
            ],
            "guards": [{"name": each.name, "scopes": list(each.scopes)} for each in one.guards],
            "dependencies": [describe(each.call) for each in one.dependencies],
            "limits": one.limits,
            "body_bytes_max": one.body_bytes_max,
            "stream": one.stream,
        }
        for one in endpoints
    ]


def _cells(endpoint: Endpoint) -> tuple[str, ...]:
    """The texts of one row."""
    kind = "" if endpoint.kind == "def" else f" ({endpoint.kind})"
    limits = ["streamed body"] * endpoint.stream + endpoint.limits
    names = [_name(one.call) for one in endpoint.dependencies if not _is_guard(one.call)]
    return (
        endpoint.method or endpoint.protocol.upper(),
        endpoint.pattern,
        _name(endpoint.handler) + kind,
        _place(endpoint.handler),
        ", ".join(" ".join((f"{one.name}:", *one.scopes)).rstrip(":") for one in endpoint.guards),
        ", ".join(names),
        ", ".join(limits),
    )


def _is_guard(function: object) -> bool:
    return isinstance(getattr(function, "openapi", None), dict)


def _name(function: object) -> str:
    name: str = getattr(function, "__qualname__", None) or type(function).__qualname__
    return name.rpartition("<locals>.")[2]


def _place(function: object) -> str:
    """File and line; the file as seen from the working directory if it is below that."""
    target = inspect.unwrap(function) if callable(function) else function
    code = getattr(target, "__code__", None)
    if code is None:
        return "-"
    file: str = code.co_filename
    relative = os.path.relpath(file)
    file = file if relative.startswith("..") else relative
    return f"{file}:{code.co_firstlineno}"


def _fit(widths: list[int], columns: int) -> None:
    """Take from the widest columns until all fit, or are as narrow as they can be."""
    while sum(widths) > columns:
        widest = max(range(len(widths)), key=lambda at: widths[at])
        if widths[widest] <= _COLUMN_CHARS_MIN:
            return
        widths[widest] -= 1


def _wrapped(row: Sequence[str], widths: Sequence[int]) -> Iterator[str]:
    """The lines of a row."""
    cells = [_broken(text, width) for text, width in zip(row, widths, strict=True)]
    for at in range(max(map(len, cells))):
        parts = [cell[at] if at < len(cell) else "" for cell in cells]
        padded = (part.ljust(width) for part, width in zip(parts, widths, strict=True))
        yield _GAP.join(padded).rstrip()


def _broken(text: str, width: int) -> list[str]:
    """The text in lines of at most that width, broken behind spaces and separators where there are some."""
    found: list[str] = []
    rest = text
    while len(rest) > width:
        ends = [at + 1 for at in range(width) if rest[at] in "/.:,_"]
        ends += [at for at in range(1, width + 1) if rest[at] == " "]
        end = max((one for one in ends if one > width // 3), default=width)
        found.append(rest[:end].rstrip())
        rest = rest[end:].lstrip()
    return [*found, rest]
