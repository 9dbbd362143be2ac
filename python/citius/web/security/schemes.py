"""Security schemes: a request in, the ``Principal`` on whose behalf it is made out.

A scheme is a callable of the request that raises ``Unauthorized`` (401, with ``WWW-Authenticate``). It can be
a dependency, the scheme of ``Authenticate``, or be called by a handler. ``openapi`` is its Security Scheme
Object (OpenAPI 3.1, §4.8.27), ``name`` what a document calls it. With a check that is a coroutine function,
the scheme is one too. Tests: tests/security/test_schemes.py.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import inspect
from collections.abc import Awaitable, Callable, Mapping, Set
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias, cast

# `Request` at run time too: a scheme can be a dependency, whose annotations are read.
from citius._core import Request  # noqa: TC001
from citius.errors import ConfigError, Forbidden, Unauthorized
from citius.unknown_options import caller, known_options, with_known_options
from citius.web.declarations.checks import check_callback
from citius.web.declarations.type_kinds import is_async
from citius.web.middleware.fields import is_token

TOKEN_CHARS_MAX = 16 * 1024
"""Characters of credentials. Origin: half of a header section. Exceeded: 401 without a check."""


@dataclass(frozen=True, slots=True)
class Principal:
    """On whose behalf a request is made.

    Raises:
        TypeError: The scopes are one text, or no texts.
    """

    id: str
    """The user or program, as the application knows it."""
    scopes: Set[str] = frozenset()
    """What it may do; a list or a tuple becomes a set."""
    claims: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """What else the credentials say."""

    def __post_init__(self) -> None:
        given = cast("Any", self.scopes)
        if isinstance(given, frozenset):
            return
        if isinstance(given, str) or not isinstance(given, (list, tuple, Set)):
            raise TypeError(f"the scopes of a Principal are a set of texts, got {given!r}")
        object.__setattr__(self, "scopes", frozenset(cast("Set[str]", given)))


Found: TypeAlias = Principal | None
Check: TypeAlias = Callable[[str], Found] | Callable[[str], Awaitable[Found]]
"""Takes credentials; returns ``None`` if they are no good."""
PasswordCheck: TypeAlias = Callable[[str, str], Found] | Callable[[str, str], Awaitable[Found]]
"""Takes user name and password."""


def as_principal(found: object, source: str) -> Principal:
    """``found``, if it is a principal: what is anything else lets no request pass.

    Raises:
        TypeError: It is not; ``source`` says where it is from.
    """
    if isinstance(found, Principal):
        return found
    if inspect.iscoroutine(found):
        found.close()
    raise TypeError(
        f"{source} returned {type(found).__name__}, not a Principal; what awaits is to be `async def` itself"
    )


class Scheme:
    """What all schemes have; a subclass reads credentials and checks them.

    Args:
        name: What an OpenAPI document calls it.
        openapi: Its Security Scheme Object.
        challenge: The value of ``WWW-Authenticate``; empty for none.
    """

    def __init_subclass__(cls) -> None:
        if "__init__" in cls.__dict__ and cls.__module__.startswith("citius."):
            known_options(cls)

    def __init__(self, name: str, openapi: Mapping[str, object], challenge: str) -> None:
        self.name = name
        self.openapi = dict(openapi)
        self.challenge = challenge
        self.scopes: tuple[str, ...] = ()

    def read(self, request: Request) -> str | None:
        """The credentials of a request as sent; ``None`` if there are none."""
        raise NotImplementedError

    def check(self, credentials: str) -> Found | Awaitable[Found]:
        """The principal of credentials, ``None`` if they are no good."""
        raise NotImplementedError

    def __call__(self, request: Request) -> Principal:
        """The principal of a request.

        Raises:
            Unauthorized: It has no credentials, or none that are good.
        """
        return self.accepted(cast("Found", self.check(self.credentials(request))))

    def credentials(self, request: Request) -> str:
        """The credentials of a request.

        Raises:
            Unauthorized: There are none, or too long ones.
        """
        found = self.read(request)
        if not found:  # an empty key is what a variable that is not set would compare equal to
            raise self.refusal("credentials are missing")
        if len(found) > TOKEN_CHARS_MAX:
            raise self.refusal("the credentials are not valid")
        return found

    def accepted(self, found: Found) -> Principal:
        """The principal that a check has found.

        Raises:
            Unauthorized: It has found none.
            TypeError: It returned something else, such as ``False`` or a coroutine.
        """
        if found is None:
            raise self.refusal("the credentials are not valid", "invalid_token")
        return as_principal(found, f"the check of the scheme {self.name!r}")

    def refusal(self, detail: str, error: str = "") -> Unauthorized:
        """A 401. It does not say what was wrong with the credentials, but whether there were any."""
        challenge = self.challenge
        if error and challenge.startswith("Bearer"):  # RFC 6750 §3.1
            challenge += f'{"," if "=" in challenge else ""} error="{error}"'
        return Unauthorized(detail, {"www-authenticate": challenge} if challenge else {})


class _Awaited(Scheme):
    """A scheme whose check is a coroutine function."""

    async def __call__(self, request: Request) -> Principal:  # type: ignore[override]  # pyright: ignore[reportIncompatibleMethodOverride]
        found: Any = self.check(self.credentials(request))
        return self.accepted(await found)


class Bearer(Scheme):
    """Tokens in ``Authorization: Bearer …`` (RFC 6750) that the application looks up.

    Args:
        check: Takes the token. Compare secrets with ``hmac.compare_digest``, or look up their hashes.
        name: What an OpenAPI document calls it.
        realm: What ``WWW-Authenticate`` calls the protected part.
        openapi: A Security Scheme Object in place of the usual one, such as one with OAuth2 flows.
    """

    def __new__(cls, check: Check | None = None, *args: Any, **options: Any) -> Bearer:
        """Make one with a coroutine if ``check`` is one."""
        made: Any = _AwaitedBearer if is_async(check) else cls
        return object.__new__(made)

    def __init__(  # pyright: ignore[reportInconsistentConstructor]
        self,
        check: Check,
        *,
        name: str = "bearer",
        realm: str | None = None,
        openapi: Mapping[str, object] | None = None,
    ) -> None:
        usual = {"type": "http", "scheme": "bearer"}
        super().__init__(name, openapi or usual, _challenge("Bearer", realm))
        check_callback(check, "Bearer(check)", "token", awaits=True)
        self._check = check

    def read(self, request: Request) -> str | None:
        """The token."""
        return authorization(request, "bearer")

    def check(self, credentials: str) -> Found | Awaitable[Found]:
        """Ask the application."""
        return self._check(credentials)


class _AwaitedBearer(_Awaited, Bearer):
    pass


@with_known_options
def oauth2_password(
    check: Check,
    token_url: str,
    *,
    scopes: Mapping[str, str] | None = None,
    refresh_url: str | None = None,
    name: str = "oauth2",
) -> Bearer:
    """Tokens that the application gives for a name and a password (OAuth 2.0, RFC 6749 §4.3).

    The route at ``token_url`` takes a ``PasswordForm``; the pages of the documentation have its form.

    Args:
        check: Takes the token, as for ``Bearer``.
        token_url: The path of the route, or an address.
        scopes: What tokens may allow, with descriptions.
        refresh_url: Where tokens are renewed.
        name: What an OpenAPI document calls it.
    """
    flow = {"tokenUrl": token_url} | ({"refreshUrl": refresh_url} if refresh_url else {})
    flows = {"password": {**flow, "scopes": dict(scopes or {})}}
    return Bearer(check, name=name, openapi={"type": "oauth2", "flows": flows})


@with_known_options
def oauth2_code(
    check: Check,
    authorization_url: str,
    token_url: str,
    *,
    scopes: Mapping[str, str] | None = None,
    refresh_url: str | None = None,
    name: str = "oauth2",
) -> Bearer:
    """Tokens that an authorization server gives for a code (OAuth 2.0, RFC 6749 §4.1).

    Args:
        check: Takes the token, as for ``Bearer``.
        authorization_url: Where users log in.
        token_url: Where codes become tokens.
        scopes: What tokens may allow, with descriptions.
        refresh_url: Where tokens are renewed.
        name: What an OpenAPI document calls it.
    """
    flow = {"authorizationUrl": authorization_url, "tokenUrl": token_url}
    flow |= {"refreshUrl": refresh_url} if refresh_url else {}
    flows = {"authorizationCode": {**flow, "scopes": dict(scopes or {})}}
    return Bearer(check, name=name, openapi={"type": "oauth2", "flows": flows})


@dataclass(frozen=True, slots=True)
class PasswordForm:
    """The form of a request for a token by a password: ``form: Annotated[PasswordForm, Form()]``."""

    username: str
    password: str
    grant_type: Literal["password"] = "password"
    scope: str = ""
    """Scopes with spaces between them."""
    client_id: str | None = None
    client_secret: str | None = None

    @property
    def scopes(self) -> list[str]:
        """The scopes that are asked for."""
        return self.scope.split()


class APIKey(Scheme):
    """A key that programs send in a header field, in the query or in a cookie.

    Args:
        keys: The keys with their principals, or a function that takes a key.
        field: The name of the field, query parameter or cookie.
        place: Where it is. Queries end up in logs.
        name: What an OpenAPI document calls it.
    """

    def __new__(
        cls, keys: Mapping[str, Principal] | Check | None = None, *args: Any, **options: Any
    ) -> APIKey:
        """Make one with a coroutine if ``keys`` is one."""
        made: Any = _AwaitedAPIKey if is_async(keys) else cls
        return object.__new__(made)

    def __init__(  # pyright: ignore[reportInconsistentConstructor]
        self,
        keys: Mapping[str, Principal] | Check,
        *,
        field: str = "x-api-key",
        place: Literal["header", "query", "cookie"] = "header",
        name: str = "apiKey",
    ) -> None:
        if not field or (place != "query" and not is_token(field)):
            raise ConfigError(
                f"APIKey ({caller()}): expected the name of a {place} as field, got {field!r}"
            )
        super().__init__(name, {"type": "apiKey", "name": field, "in": place}, "")
        self._field, self._place = field, place
        if isinstance(keys, Mapping):
            # By hash: how long it takes to find one says nothing of the others.
            known = cast("Mapping[str, Principal]", keys)
            _check_keys(known)
            by_hash = {_digest(key): principal for key, principal in known.items()}
            self._check: Check = lambda key: by_hash.get(_digest(key))
        else:
            check_callback(keys, "APIKey(keys)", "key", awaits=True)
            self._check = keys

    def read(self, request: Request) -> str | None:
        """The key."""
        if self._place == "header":
            return request.header(self._field)
        return (request.query if self._place == "query" else request.cookies).get(self._field)

    def check(self, credentials: str) -> Found | Awaitable[Found]:
        """Look it up."""
        return self._check(credentials)


def _check_keys(keys: Mapping[Any, Any]) -> None:
    """Refuse keys that no client should have, and what is no principal.

    Raises:
        ConfigError: There is one. The message names no key.
    """
    for key, principal in keys.items():
        if not isinstance(key, str) or not key:
            what = "an empty key" if key == "" else f"a key of the type {type(key).__name__}"
            raise ConfigError(
                f"APIKey ({caller()}): keys has {what}; is the variable that it is read from set?"
            )
        if not isinstance(principal, Principal):
            raise ConfigError(
                f"APIKey ({caller()}): keys has {principal!r} for a key; expected a Principal, such as "
                "Principal('billing')"
            )


class _AwaitedAPIKey(_Awaited, APIKey):
    pass


class Basic(Scheme):
    """User name and password in ``Authorization: Basic …`` (RFC 7617); over TLS only.

    Args:
        check: Takes user name and password. Passwords are stored as hashes that are slow to make
            (argon2, scrypt); checking one belongs into a thread.
        name: What an OpenAPI document calls it.
        realm: What browsers show to their users.
    """

    def __new__(cls, check: PasswordCheck | None = None, *args: Any, **options: Any) -> Basic:
        """Make one with a coroutine if ``check`` is one."""
        made: Any = _AwaitedBasic if is_async(check) else cls
        return object.__new__(made)

    def __init__(  # pyright: ignore[reportInconsistentConstructor]
        self,
        check: PasswordCheck,
        *,
        name: str = "basic",
        realm: str = "this application",
    ) -> None:
        challenge = _challenge("Basic", realm) + ', charset="UTF-8"'
        super().__init__(name, {"type": "http", "scheme": "basic"}, challenge)
        check_callback(check, "Basic(check)", "user", "password", awaits=True)
        self._check = check

    def read(self, request: Request) -> str | None:
        """User name and password with a colon between them."""
        encoded = authorization(request, "basic")
        if encoded is None or len(encoded) > TOKEN_CHARS_MAX:
            return encoded
        try:
            decoded = base64.b64decode(encoded, validate=True).decode()
        except (binascii.Error, ValueError):
            raise self.refusal("the credentials are not valid") from None
        return decoded

    def check(self, credentials: str) -> Found | Awaitable[Found]:
        """Ask the application."""
        user, colon, password = credentials.partition(":")
        if not colon or any(c < " " or c == "\x7f" for c in credentials):
            raise self.refusal("the credentials are not valid")
        return self._check(user, password)


class _AwaitedBasic(_Awaited, Basic):
    pass


class Requires(Scheme):
    """A scheme whose principal has to have scopes.

    Args:
        scheme: Any scheme.
        scopes: All of them are needed.
    """

    def __new__(cls, scheme: Scheme | None = None, *scopes: str) -> Requires:
        """Make one with a coroutine if ``scheme`` is one."""
        made: Any = _AwaitedRequires if is_async(scheme) else cls
        return object.__new__(made)

    def __init__(self, scheme: Scheme, *scopes: str) -> None:  # pyright: ignore[reportInconsistentConstructor]
        if not isinstance(cast("object", scheme), Scheme):
            raise ConfigError(
                f"Requires ({caller()}): expected a scheme such as Bearer(check), got {scheme!r}"
            )
        for one in cast("tuple[Any, ...]", scopes):
            if not isinstance(one, str) or len(one.split()) != 1 or one != one.strip():
                raise ConfigError(
                    f"Requires ({caller()}): expected scopes as texts without spaces, Requires(scheme, "
                    f"'read', 'write'), got {one!r}"
                )
        super().__init__(scheme.name, scheme.openapi, scheme.challenge)
        self.scopes = (*scheme.scopes, *scopes)
        self._scheme = scheme
        self._needed = frozenset(scopes)

    def __call__(self, request: Request) -> Principal:
        """The principal of a request.

        Raises:
            Unauthorized: As the scheme.
            Forbidden: The principal lacks a scope.
        """
        return self._with_scopes(self._scheme(request))

    def _with_scopes(self, principal: Principal) -> Principal:
        missing = self._needed - principal.scopes
        if missing:
            challenge = (
                f'Bearer error="insufficient_scope", scope="{" ".join(sorted(self._needed))}"'
            )
            fields = {"www-authenticate": challenge} if self.challenge.startswith("Bearer") else {}
            raise Forbidden(f"this needs the scope {' '.join(sorted(missing))}", fields)
        return principal


class _AwaitedRequires(_Awaited, Requires):
    async def __call__(self, request: Request) -> Principal:  # pyright: ignore[reportIncompatibleMethodOverride]
        found: Any = self._scheme(request)
        return self._with_scopes(await found)


def authorization(request: Request, scheme: str) -> str | None:
    """What follows the scheme in ``Authorization`` (RFC 9110 §11.4)."""
    given = request.headers.getlist("authorization")
    if len(given) != 1:  # several could be read in two ways
        return None
    name, separator, rest = given[0].partition(" ")
    return rest.strip() if separator and name.lower() == scheme else None


def _challenge(scheme: str, realm: str | None) -> str:
    if realm is None:
        return scheme
    if not realm.isprintable() or not realm.isascii() or '"' in realm or "\\" in realm:
        raise ConfigError(f"expected a realm of plain characters without quotes, got {realm!r}")
    return f'{scheme} realm="{realm}"'


def _digest(key: str) -> bytes:
    return hashlib.sha256(key.encode("utf-8", "surrogatepass")).digest()
