"""``Authenticate``: middleware that lets no connection pass without credentials, whatever its handler says.

Tests: tests/security/test_schemes.py.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

# At run time too: `principal` can be a dependency, whose annotations are read.
from citius._core import Request  # noqa: TC001
from citius.web.declarations.checks import check_callback
from citius.web.declarations.type_kinds import is_async
from citius.web.middleware.base import Connection, Middleware
from citius.web.middleware.fields import NamedRoutes
from citius.web.security.schemes import Principal, Scheme, as_principal

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from citius.web.middleware.base import Socket


class Authenticate(Middleware):
    """Ask for credentials before every handler of requests and WebSockets.

    ``principal(request)`` is what they stand for.

    Args:
        scheme: How credentials are sent and checked.
        exempt: Paths of routes, as they are declared, and prefixes of mounts, that everyone may use;
            paths without a route are not among them.
    """

    def __init__(self, scheme: Scheme, *, exempt: str | Iterable[str] = ()) -> None:
        check_callback(scheme, "Authenticate(scheme)", "request", awaits=True)
        self._scheme = scheme
        self._exempt = NamedRoutes("Authenticate(exempt=…)", exempt)
        self._half: type[_Direct | _Awaiting] = _Awaiting if is_async(scheme) else _Direct

    @property
    def steps(self) -> tuple[Callable[..., object], ...]:
        """What decides whether the scheme has to be awaited."""
        return (self._half.before,)

    @property
    def named_routes(self) -> NamedRoutes:
        """Those that are exempt."""
        return self._exempt

    def guard_of(self, pattern: str) -> Scheme | None:
        """Return the scheme, unless the route is exempt."""
        return None if pattern in self._exempt else self._scheme

    def bind(
        self, method: str, pattern: str | None, handler: Callable[..., object] | None
    ) -> Middleware | None:
        """Leave exempt routes alone."""
        if pattern in self._exempt:
            return None
        return self._half(self._scheme)


class _Direct(Middleware):
    def __init__(self, scheme: Scheme) -> None:
        self._scheme = scheme

    def before(self, request: Request) -> None:
        request.state.principal = as_principal(self._scheme(request), "the scheme")

    def connect(self, socket: Socket) -> None:
        self.before(socket.request)


class _Awaiting(Middleware):
    def __init__(self, scheme: Scheme) -> None:
        self._scheme: Any = scheme

    async def before(self, request: Request) -> None:
        request.state.principal = as_principal(await self._scheme(request), "the scheme")

    async def connect(self, socket: Socket) -> None:
        await self.before(socket.request)


def principal(connection: Connection) -> Principal:
    """The principal that ``Authenticate`` has found.

    Raises:
        RuntimeError: There is no such middleware around this handler, or the route is exempt.
    """
    found = getattr(connection.state, "principal", None)
    if found is None:
        raise RuntimeError("there is no principal: add app.middleware(Authenticate(scheme))")
    return cast("Principal", found)
