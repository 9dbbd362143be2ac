"""The markers of sources.py as applications import them: for type checkers functions that return ``Any``.

So they may be the default of a parameter of any type, ``q: int = Query(1)``; they are the classes themselves.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ParamSpec, cast

from citius.web.declarations.parameters import sources

if TYPE_CHECKING:
    from collections.abc import Callable

_P = ParamSpec("_P")


def _of_any_type(marker: Callable[_P, object]) -> Callable[_P, Any]:
    return cast("Callable[_P, Any]", marker)


Body = _of_any_type(sources.Body)
Cookie = _of_any_type(sources.Cookie)
Depends = _of_any_type(sources.Depends)
File = _of_any_type(sources.File)
Form = _of_any_type(sources.Form)
Header = _of_any_type(sources.Header)
Path = _of_any_type(sources.Path)
Query = _of_any_type(sources.Query)
