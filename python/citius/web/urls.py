"""Paths of routes by their names: ``url_for("item", id=7)`` is ``/items/7``.

Tests: ``tests/gateway/test_urls.py``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING
from urllib.parse import quote, urlencode

from citius.web.signature import path_parameters

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from citius.web.endpoint import Endpoint


class Urls:
    """The paths of an application's routes and WebSockets."""

    def __init__(self, endpoints: Iterable[Endpoint]) -> None:
        self._patterns: dict[str, list[str]] = {}
        for one in endpoints:
            patterns = self._patterns.setdefault(one.name, []) if one.protocol != "rpc" else []
            if one.pattern not in patterns:
                patterns.append(one.pattern)

    def path(self, name: str, parameters: Mapping[str, object]) -> str:
        """The path of the route called ``name``; parameters that it does not have go into the query.

        Raises:
            LookupError: There is no such route, or it has a parameter without a value.
        """
        patterns = self._patterns.get(name)
        if patterns is None:
            raise LookupError(
                f"no route is called {name!r}; there are {', '.join(sorted(self._patterns))}"
            )
        fitting = [one for one in patterns if path_parameters(one).keys() <= parameters.keys()]
        if not fitting:
            raise LookupError(
                f"the route {name} is at {' or '.join(patterns)}, got {dict(parameters)}"
            )
        # The one that uses most of what is given.
        pattern = max(fitting, key=lambda one: len(path_parameters(one)))
        rest = dict(parameters)
        for key, converter in path_parameters(pattern).items():
            text = quote(str(rest.pop(key)), safe="/" if converter == "path" else "")
            if not text and converter != "path":
                raise LookupError(
                    f"the parameter {key} of {pattern} is a segment, got an empty text"
                )
            suffix = "" if converter == "str" else f":{converter}"
            pattern = pattern.replace(f"{{{key}{suffix}}}", text)
        return f"{pattern}?{urlencode(rest, doseq=True)}" if rest else pattern
