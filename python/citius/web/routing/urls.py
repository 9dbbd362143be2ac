"""Paths of routes by their names: ``url_for("item", id=7)`` is ``/items/7``.

Tests: ``tests/gateway/test_urls.py``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING
from urllib.parse import quote, urlencode

from citius.web.binding.signature import path_parameters

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from citius.web.routing.endpoint import Endpoint


class Urls:
    """The paths of an application's routes and WebSockets."""

    def __init__(self, endpoints: Iterable[Endpoint]) -> None:
        self._patterns: dict[str, list[str]] = {}
        self._handlers: dict[tuple[str, str], Endpoint] = {}
        for one in endpoints:
            self._handlers.setdefault((one.name, one.pattern), one)
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
        most = max(len(path_parameters(one)) for one in fitting)
        best = [one for one in fitting if len(path_parameters(one)) == most]
        of = [self._handlers[name, one] for one in best]
        if any(one.handler is not of[0].handler for one in of):
            both = " and ".join(one.where for one in of)
            raise LookupError(f"the name {name!r} is that of {both}; give one of them name=")
        pattern = best[0]
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
