"""Authorization: where clients get tokens for a server (RFC 9728), and how a refusal says so.

The tokens are checked by a scheme of ``citius.web.security``, a dependency as for any route. What is here
is what MCP's authorization asks of a resource server besides: its metadata, and a challenge that names them.
Tests: ``tests/mcp/test_authorization.py``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, cast
from urllib.parse import urlsplit

from citius.errors import ConfigError, Forbidden, Unauthorized
from citius.unknown_options import known_options

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from citius._core import Request
    from citius.errors import HTTPError

WELL_KNOWN: Final = "/.well-known/oauth-protected-resource"


@known_options
@dataclass(frozen=True, slots=True, kw_only=True)
class Authorization:
    """Who may call the server.

    Args:
        scheme: What checks tokens: a ``JWT``, a ``Bearer``, or another scheme of ``citius.web.security``.
        servers: The issuers of tokens: URLs of authorization servers.
        resource: The URL of the MCP server, which tokens are for (their audience); that which the client has
            asked without it.
        scopes: Scopes that each request needs.
        scopes_supported: All scopes that there are; ``scopes`` without it.
        documentation: A page about the server.

    Raises:
        ConfigError: A URL is none.
    """

    scheme: Callable[..., Any]
    servers: Sequence[str]
    resource: str | None = None
    scopes: Sequence[str] = ()
    scopes_supported: Sequence[str] = ()
    documentation: str | None = None

    def __post_init__(self) -> None:
        if not callable(self.scheme):
            raise ConfigError(
                "Authorization: expected scheme=JWT(…) or another scheme of citius.web.security, got "
                f"{self.scheme!r}"
            )
        if isinstance(self.servers, str) or not self.servers:
            raise ConfigError('Authorization: expected servers=["https://auth.example.com"]')
        for url in (*self.servers, *([self.resource] if self.resource is not None else [])):
            parts = urlsplit(url)
            if parts.scheme not in ("https", "http") or not parts.hostname or parts.fragment:
                raise ConfigError(
                    f"Authorization: expected a URL with https:// and without a fragment, got {url!r}"
                )

    def metadata(self, request: Request, path: str) -> dict[str, Any]:
        """The metadata of the protected resource (RFC 9728 §2)."""
        made: dict[str, Any] = {
            "resource": self._resource(request, _prefix(request, WELL_KNOWN + path) + path),
            "authorization_servers": list(self.servers),
            "bearer_methods_supported": ["header"],
        }
        scopes = self.scopes_supported or self.scopes
        if scopes:
            made["scopes_supported"] = list(scopes)
        if self.documentation is not None:
            made["resource_documentation"] = self.documentation
        return made

    def refusal(self, request: Request, path: str, error: HTTPError) -> HTTPError:
        """A refusal with a challenge that names the metadata, if it is one that lacks a good token."""
        challenge = self._challenge(request, path, error)
        if challenge is None:
            return error
        cls = Unauthorized if error.status_code == 401 else Forbidden
        return cls(error.detail, {"www-authenticate": challenge})

    def _challenge(self, request: Request, path: str, error: HTTPError) -> str | None:
        """The challenge of a refusal (RFC 9728 §5.1, RFC 6750 §3); ``None`` if it is about something else.

        Args:
            request: What is refused.
            path: Where the server is, in its application.
            error: Why it is refused.
        """
        if error.status_code not in (401, 403):
            return None
        fields = dict(cast("dict[str, str]", error.headers or {}))
        given = {name.lower(): value for name, value in fields.items()}.get(
            "www-authenticate", "Bearer"
        )
        if not given.startswith("Bearer"):
            return None
        given += "," if "=" in given else ""
        made = f'{given} resource_metadata="{self._metadata_url(request, path)}"'
        if self.scopes:
            made += f', scope="{" ".join(self.scopes)}"'
        return made

    def _metadata_url(self, request: Request, path: str) -> str:
        if self.resource is None:
            return self._resource(request, _prefix(request, path) + WELL_KNOWN + path)
        parts = urlsplit(self.resource)
        return f"{parts.scheme}://{parts.netloc}{WELL_KNOWN}{parts.path.rstrip('/')}"

    def _resource(self, request: Request, path: str) -> str:
        if self.resource is not None:
            return self.resource
        return f"{request.scheme}://{request.host}{request.root_path}{path}"


def _prefix(request: Request, path: str) -> str:
    """The prefixes of mounts in front of a path."""
    return request.path.removesuffix(path)
