r"""Paths as other frameworks write them, which would be taken literally here: what to write instead.

``*`` and regular expressions are characters of a path like others, so without this a route with one of them
is declared without a word and never found. What no path of a request can have (``?``, ``#``, ``<``, ``>``,
``\``: RFC 3986 section 3.3) is always a mistake; ``*``, ``:`` and brackets are where they begin a segment.
Tests: ``tests/gateway/test_options.py``.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable

_CONVERTERS: Final = {
    "int": "int", "integer": "int", "float": "float", "uuid": "uuid", "path": "path", "str": "", "string": "",
}  # fmt: skip
"""Converters of other frameworks, and what they are called here; those of texts need no name."""

_EXPRESSION: Final = re.compile(r"^\^|\\|\(\?|\.[*+]|\{\w+:\w*[^\w{}]")
_WITH_NAME: Final = re.compile(r"\(\?P?<([A-Za-z_]\w*)>|\{([A-Za-z_]\w*):")
_ANGLED: Final = re.compile(r"<([^<>]*)>")
_COLON: Final = re.compile(r"(?<=/):([A-Za-z_]\w*)(\??)([*+]?)")
_BRACKETS: Final = re.compile(r"(?<=/)\[{1,2}(\.{3})?([A-Za-z_]\w*)\]{1,2}(?=/|$)")
_STAR: Final = re.compile(r"(?<=/)\*+([A-Za-z_]\w*)?[^/]*|\*+$")
_BRACED: Final = re.compile(r"\{(?=\*|\w+[.?*+])\*{0,2}([A-Za-z_]\w*)(\.{3}|[?*+]?)\}")


def literal_hint(path: str) -> str:
    """What is wrong with a path that is written as elsewhere, and what to write; empty if nothing is."""
    if _EXPRESSION.search(path):
        name = _WITH_NAME.search(path)
        written = "{" + ((name[1] or name[2]) if name else "name") + "}"
        return (
            f"{path!r} is a regular expression, and a path is none; write {written}, {written[:-1]}:int}} or "
            f"{written[:-1]}:path}}, and check its value in the handler"
        )
    for find, instead in _FORMS:
        found = find.search(path)
        if found is not None:
            return f"{found[0]} in {path!r} is no parameter; write {instead(found)}"
    for character, where in (("?", "query"), ("#", "fragment")):
        if character in path:
            return f"{path!r} has a {where}, and a path has none; " + (
                "a parameter of the handler is taken from it"
                if where == "query"
                else "leave it out"
            )
    return ""


def _parameter(name: str, converter: str = "") -> str:
    return f"{{{name}:{converter}}}" if converter else f"{{{name}}}"


def _angled(found: re.Match[str]) -> str:
    """``<int:n>`` of Flask and Django, ``<n:int>`` of Sanic and Bottle."""
    first, colon, last = found[1].partition(":")
    first = re.sub(r"\(.*", "", first)
    if not colon:
        return _parameter(first)
    if last in _CONVERTERS and first not in _CONVERTERS:
        return _parameter(first, _CONVERTERS[last])
    return _parameter(last.rpartition(":")[2], _CONVERTERS.get(first, ""))


def _optional(name: str, is_optional: bool, is_rest: bool) -> str:
    if is_optional:
        return f"{{{name}}}, and another route without it"
    return _parameter(name, "path" if is_rest else "")


def _braced(found: re.Match[str]) -> str:
    """``{rest...}`` of Go, ``{*rest}`` of axum and ASP.NET, ``{id?}`` of ASP.NET and Laravel."""
    return _optional(found[1], found[2] == "?", True)


_FORMS: Final[tuple[tuple[re.Pattern[str], Callable[[re.Match[str]], str]], ...]] = (
    (_ANGLED, _angled),
    (_COLON, lambda found: _optional(found[1], bool(found[2]), bool(found[3]))),
    (_BRACKETS, lambda found: _parameter(found[2], "path" if found[1] else "")),
    (_STAR, lambda found: _parameter(found[1] or "rest", "path")),
    (_BRACED, _braced),
)  # fmt: skip
