"""``Router.forward``: a declaration in, routes out.

Tests: ``tests/http/gateway/test_declarations.py``.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias, cast

from citius._core import ForwardRules, Request, Response
from citius.errors import ConfigError
from citius.http import urls
from citius.http.client import Client
from citius.http.errors import InvalidURL
from citius.http.gateway.forwarding import VIA, Forwarder, check_headers, made_timeout
from citius.http.gateway.upstreams import Upstreams, check_no_credentials
from citius.http.options import encoded
from citius.unknown_options import caller
from citius.web.binding.headers import MutableHeaders
from citius.web.declarations.checks import check_callback
from citius.web.declarations.path_hints import literal_hint
from citius.web.routing.declared_routes import Route, declare

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping

    from citius._core import DirectForward
    from citius.http.gateway.caching import HTTPCache
    from citius.http.gateway.forwarding import RequestHook, ResponseHook
    from citius.http.options import Timeout

    Target: TypeAlias = str | Client | Upstreams | Iterable[str]

METHODS: Final = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS")
FORWARDED: Final = ("x-forwarded", "forwarded", "both", None)
_PARAMETER: Final = re.compile(r"\{([A-Za-z_]\w*)(?::\w+)?\}")


def _check_values(headers: Mapping[str, str] | None) -> None:
    """Refuse fields that no request could be sent with.

    Raises:
        ConfigError: There is one.
    """
    for name, value in (headers or {}).items():
        if not isinstance(cast("object", value), str):
            raise ConfigError(f"headers= has texts, got {name!r}: {value!r}")
        try:
            MutableHeaders([]).add(name, value)
            encoded([(name, value)])
        except ValueError as error:
            raise ConfigError(f"headers=: {error}") from None


class Declaration:
    """What ``Router.forward`` was called with, checked."""

    def __init__(
        self,
        pattern: str,
        to: Any,
        *,
        path: str | None,
        methods: Iterable[str],
        websockets: bool,
        timeout: Timeout | float | None,
        headers: Mapping[str, str] | None,
        host: Literal["target", "client"],
        forwarded: Literal["x-forwarded", "forwarded", "both"] | None,
        via: str,
        on_request: RequestHook | None,
        on_response: ResponseHook | None,
        requests_max: int | None,
        body_bytes_max: int | None,
        retry: bool,
        cache: HTTPCache | None,
        options: dict[str, Any],
    ) -> None:
        self._what = f"app.forward({pattern!r}) ({caller()})"
        self._pattern = pattern
        self._names = [match[1] for match in _PARAMETER.finditer(pattern)]
        self._methods = [method.upper() for method in methods]
        if not self._methods:
            raise self._refused("methods= has none")
        self._websockets = websockets and "GET" in self._methods
        if host not in ("target", "client"):
            raise self._refused(f"host= is 'target' or 'client', got {host!r}")
        if forwarded not in FORWARDED:
            raise self._refused(f"forwarded= is one of {FORWARDED}, got {forwarded!r}")
        if not re.fullmatch(r"[!#$%&'*+.^_`|~0-9A-Za-z:-]+", via):
            raise self._refused(f"via= is a name without spaces, got {via!r}")
        if requests_max is not None and requests_max < 1:
            raise self._refused(f"requests_max= must be at least 1, got {requests_max}")
        if cache is not None and (on_request is not None or on_response is not None):
            raise self._refused(
                "cache= with on_request= or on_response=: what is kept was changed for another request"
            )
        what = f"app.forward({pattern!r}, "
        if on_request is not None:
            check_callback(on_request, f"{what}on_request=…)", "forwarded", awaits=True)
        if on_response is not None:
            check_callback(on_response, f"{what}on_response=…)", "request", "response", awaits=True)
        self.hooks = (on_request, on_response)
        self._owned: Client | None = None
        try:
            upstreams, in_url = self._upstreams(to)
            if path is not None and in_url is not None:
                raise ConfigError("give the path in the URL or with path=, not both")
            rules = ForwardRules(
                via=via,
                path=self._parts(path if path is not None else in_url),
                x_forwarded=forwarded in ("x-forwarded", "both"),
                forwarded=forwarded in ("forwarded", "both"),
                keeps_host=host == "client",
            )
            check_headers(headers)
            _check_values(headers)
            self._forwarder = Forwarder(
                upstreams,
                rules,
                via=via,
                timeout=None if timeout is None else made_timeout(timeout),
                headers=headers,
                on_request=on_request,
                on_response=on_response,
                requests_max=requests_max,
                retries=retry,
                cache=cache,
            )
        except ConfigError as error:
            raise self._refused(str(error)) from None
        self.handler: Any = self._handler()
        self._options = {
            **options, "stream": True, "body_bytes_max": body_bytes_max, "compress": False,
        }  # fmt: skip

    def _refused(self, why: str) -> ConfigError:
        return ConfigError(f"{self._what}: {why}")

    def _upstreams(self, to: Any) -> tuple[Client | Upstreams, str | None]:
        """What requests go to, and the path that its URL has."""
        if isinstance(to, Client | Upstreams):
            return to, None
        if not isinstance(to, str):
            if not isinstance(to, Iterable):
                raise ConfigError(
                    f"to= is a URL, several, a citius.http.Client or Upstreams, got {to!r}"
                )
            return Upstreams(cast("Iterable[str]", to)), None
        base, slash, rest = to.partition("://")
        place, path_slash, path = rest.partition("/")
        try:
            url = urls.parse(f"{base}{slash}{place}")
        except InvalidURL as error:
            raise ConfigError(f"expected the URL of a server, got {to!r}: {error}") from None
        check_no_credentials(url)
        self._owned = Client(url.origin, trust_env=False)
        return self._owned, (f"/{path}" if path_slash and path else None)

    def _parts(self, path: str | None) -> list[str | int] | None:
        """The path as texts and places of path parameters."""
        if path is None:
            return None
        if not path.startswith("/"):
            raise ConfigError(f"a path begins with a slash, got {path!r}")
        if "?" in path or "#" in path:
            raise ConfigError(f"a path without query is expected, got {path!r}")
        if hint := literal_hint(path):
            raise ConfigError(hint)
        parts: list[str | int] = []
        at = 0
        for match in _PARAMETER.finditer(path):
            if match[1] not in self._names:
                raise ConfigError(
                    f"{{{match[1]}}} in {path!r} is no parameter of {self._pattern!r}"
                )
            if text := path[at : match.start()]:
                parts.append(text)
            parts.append(self._names.index(match[1]))
            at = match.end()
        if text := path[at:]:
            parts.append(text)
        missing = [name for place, name in enumerate(self._names) if place not in parts]
        if missing:
            raise ConfigError(
                f"the path {path!r} leaves out {{{missing[0]}}} of {self._pattern!r}: write it where "
                f"it goes, such as {path.rstrip('/')}/{{{missing[0]}}}"
            )
        return parts

    def _handler(self) -> Callable[[Request], Awaitable[Response]]:
        forwarder = self._forwarder

        async def forwarded(request: Request) -> Response:
            return await forwarder(request)

        forwarded.__qualname__ = f"forward to {forwarder.name}"
        made: Any = forwarded
        made.citius_forward = self
        return forwarded

    def routes(self) -> list[Route]:
        """The routes."""
        route = declare(self._pattern, self.handler, cast("Any", self._options))
        methods = [*self._methods, *(["CONNECT"] if self._websockets else [])]
        return [replace(route, method=method, forwards=True) for method in methods]

    @property
    def direct(self) -> DirectForward | None:
        """What passes requests on without the handler, where nothing is around it."""
        return self._forwarder.direct or self._forwarder.make_direct()

    async def start(self) -> None:
        """Begin to check servers, and have requests passed on without Python where that is possible."""
        self._forwarder.learn()
        if self._forwarder.upstreams is not None:
            await self._forwarder.upstreams.start()

    async def stop(self) -> None:
        """Close what belongs to the declaration."""
        if self._forwarder.upstreams is not None:
            await self._forwarder.upstreams.stop()
        if self._owned is not None:
            await self._owned.close()


__all__ = ["METHODS", "VIA", "Declaration"]
