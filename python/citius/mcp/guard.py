"""The dependency of a server with authorization: tokens are checked, refusals say where to get one.

Tests: ``tests/mcp/test_authorization.py``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from citius._core import Request, Response
from citius.errors import Forbidden, HTTPError
from citius.mcp.authorization import WELL_KNOWN
from citius.mcp.protocol import STATELESS, encode
from citius.mcp.sessions import owner_of
from citius.web.declarations.type_kinds import is_async

if TYPE_CHECKING:
    from citius.mcp.authorization import Authorization
    from citius.mcp.server import MCPServer


class Guard:
    """Checks the token of each request with the scheme of the authorization."""

    def __init__(self, authorization: Authorization, path: str) -> None:
        self._authorization = authorization
        self._path = path
        self._scheme: Any = authorization.scheme
        # What the documentation and `citius routes` show.
        self.name: str = getattr(self._scheme, "name", "bearer")
        self.openapi: dict[str, Any] = getattr(
            self._scheme, "openapi", {"type": "http", "scheme": "bearer"}
        )
        self.scopes = tuple(authorization.scopes)

    @property
    def metadata_path(self) -> str:
        """Where the metadata of the protected resource are."""
        return WELL_KNOWN + ("" if self._path == "/" else self._path)

    def metadata(self, request: Request) -> Response:
        """The metadata of the protected resource (RFC 9728), which pages of other sites may read."""
        made = self._authorization.metadata(request, "" if self._path == "/" else self._path)
        fields = {"access-control-allow-origin": "*"}
        return Response(encode(made), 200, fields, "application/json")

    def __call__(self, request: Request) -> object:
        """The principal of a request.

        Raises:
            HTTPError: There is no good token, or it does not allow what is asked.
        """
        try:
            return self._allowed(request, self._scheme(request))
        except HTTPError as error:
            raise self._authorization.refusal(request, self._path, error) from None

    def _allowed(self, request: Request, principal: Any) -> object:
        missing = set(self.scopes) - set(getattr(principal, "scopes", ()))
        if missing:
            challenge = 'Bearer error="insufficient_scope"'
            raise Forbidden("the token lacks a scope", {"www-authenticate": challenge})
        if request.method != "POST" or request.header("mcp-protocol-version") != STATELESS:
            request.state.mcp_owner = owner_of(principal)
        return principal


class AsyncGuard(Guard):
    """Checks the token of each request with a scheme whose check is a coroutine."""

    async def __call__(self, request: Request) -> object:
        """The principal of a request."""
        try:
            return self._allowed(request, await self._scheme(request))
        except HTTPError as error:
            raise self._authorization.refusal(request, self._path, error) from None


def guard_of(server: MCPServer) -> Guard | None:
    """The guard of a server; ``None`` without authorization."""
    authorization = server.authorization
    if authorization is None:
        return None
    scheme: Any = authorization.scheme
    cls = AsyncGuard if is_async(scheme) else Guard
    return cls(authorization, server.path)
