"""JSON Web Tokens (RFC 7519) as bearer tokens, by PyJWT: ``pip install citius[jwt]``.

The application says which algorithms are accepted, never the token (RFC 8725 §3.1). Tests:
tests/security/test_jwt.py.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any, cast

# At run time too: a scheme can be a dependency, whose annotations are read.
from citius._core import Request  # noqa: TC001
from citius.errors import ConfigError
from citius.unknown_options import caller
from citius.web.declarations.checks import check_callback
from citius.web.middleware.fields import listed
from citius.web.security.schemes import Principal, Scheme, authorization

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

SECRET_BYTES_MIN = 32
"""Bytes of a shared secret. Origin: RFC 7518 §3.2, as long as the hash. Shorter: ConfigError."""


class JWT(Scheme):
    """Bearer tokens that carry their claims, signed.

    Args:
        key: The key that verifies signatures: a secret for ``HS256`` and its like, a public key in PEM for
            others, or a function that takes the token's header (with its ``kid``) and returns a key, or
            ``None`` if it has none of that name. What it raises, such as an outage of where keys are, is a
            500, except PyJWT's exceptions of tokens and of keys that it does not find. So is a secret that is
            too short.
        algorithms: Those that are accepted, of one kind: either with a shared secret or with a key pair.
        audience: What ``aud`` has to name; a token with ``aud`` is refused without it.
        issuer: What ``iss`` has to be.
        required: Claims that have to be there.
        leeway_s: How far clocks may differ.
        scopes_claim: The claim with scopes, a text with spaces between them or a list.
        name: What an OpenAPI document calls it.
        openapi: A Security Scheme Object in place of the usual one, such as one with OAuth2 flows.

    Raises:
        ConfigError: PyJWT is not installed, the secret is short, or the algorithms would let one kind of key
            pass for another.
    """

    def __init__(
        self,
        key: str | bytes | Callable[[Mapping[str, object]], object],
        *,
        algorithms: str | Iterable[str],
        audience: str | Iterable[str] | None = None,
        issuer: str | None = None,
        required: Iterable[str] = ("exp", "sub"),
        leeway_s: float = 0.0,
        scopes_claim: str = "scope",
        name: str = "bearer",
        openapi: Mapping[str, object] | None = None,
    ) -> None:
        usual = {"type": "http", "scheme": "bearer", "bearerFormat": "JWT"}
        super().__init__(name, openapi or usual, "Bearer")
        self._jwt = _library()
        self._bad = (
            self._jwt.PyJWTError, ValueError, TypeError, OverflowError, RecursionError,
        )  # fmt: skip
        self._algorithms = _checked(algorithms, key)
        if callable(key):
            check_callback(key, "JWT(key)", "header")
            _check_names(self._jwt, self._algorithms)
        else:
            _check_key(self._jwt, self._algorithms, key)
        self._key = key
        self._audience = (
            audience if audience is None or isinstance(audience, str) else list(audience)
        )
        if self._audience in ("", []) or issuer == "":
            what = "issuer" if issuer == "" else "audience"
            raise ConfigError(
                f"JWT ({caller()}): {what} is empty, and no token has such a one; is the variable that it is "
                "read from set?"
            )
        self._issuer = issuer
        self._options = {"require": list(required), "verify_signature": True}
        self._leeway_s = leeway_s
        self._scopes_claim = scopes_claim

    def read(self, request: Request) -> str | None:
        """The token."""
        return authorization(request, "bearer")

    def check(self, credentials: str) -> Principal | None:
        """Verify the token, and make a principal of its claims."""
        key = self._chosen(self._key, credentials) if callable(self._key) else self._key
        if key is None:
            return None
        try:
            claims = self._jwt.decode(
                credentials,
                key,
                algorithms=self._algorithms,
                audience=self._audience,
                issuer=self._issuer,
                leeway=self._leeway_s,
                options=self._options,
            )
        except self._bad:
            return None
        return Principal(
            str(claims.get("sub", "")), _scopes(claims.get(self._scopes_claim)), claims
        )

    def _chosen(self, choose: Callable[[Mapping[str, object]], object], token: str) -> object:
        """The key that the application's function chooses, ``None`` if there is none for this token.

        What else fails there is no fault of the token: a 401 would have good clients throw theirs away.
        """
        try:
            header = self._jwt.get_unverified_header(token)
        except self._bad:
            return None
        try:
            return self._long_enough(choose(header))
        except (self._jwt.InvalidTokenError, self._jwt.PyJWKClientError) as error:
            if isinstance(error, self._jwt.PyJWKClientConnectionError):
                raise
            return None

    def _long_enough(self, key: object) -> object:
        """A secret that a key function has returned; one that is too short to be safe is refused.

        Raises:
            RuntimeError: It is too short.
        """
        secret = getattr(key, "key", key)  # a PyJWK has it inside
        if self._algorithms[0].startswith("HS") and isinstance(secret, str | bytes):
            size = len(secret.encode() if isinstance(secret, str) else secret)
            if size < SECRET_BYTES_MIN:
                raise RuntimeError(
                    f"JWT: expected a secret of at least {SECRET_BYTES_MIN} bytes, and the function that "
                    f"chooses keys returned one of {size}; return None if there is none"
                )
        return key


def _check_key(library: Any, algorithms: Iterable[str], key: object) -> None:
    """Refuse a key that verifies nothing: every token would be refused, without a word.

    Raises:
        ConfigError: It is no key of an algorithm, or the package for it is not installed.
    """
    for name in algorithms:
        try:
            library.get_algorithm_by_name(name).prepare_key(key)
        except (library.PyJWTError, NotImplementedError, ValueError, TypeError) as error:
            raise ConfigError(f"JWT ({caller()}): the key is none for {name}: {error}") from None


def _check_names(library: Any, algorithms: Iterable[str]) -> None:
    """Refuse an algorithm that no token can have.

    Raises:
        ConfigError: There is none of that name, or the package for it is not installed.
    """
    for name in algorithms:
        try:
            library.get_algorithm_by_name(name)
        except NotImplementedError as error:
            raise ConfigError(
                f"JWT ({caller()}): there is no algorithm {name!r}: {error}"
            ) from None


def _scopes(value: object) -> frozenset[str]:
    if isinstance(value, str):
        return frozenset(value.split())
    if isinstance(value, list):
        return frozenset(one for one in cast("list[object]", value) if isinstance(one, str))
    return frozenset()


def _library() -> Any:
    try:
        return import_module("jwt")
    except ImportError:
        raise ConfigError("JWT needs PyJWT: pip install citius[jwt]") from None


def _checked(algorithms: Iterable[str], key: object) -> list[str]:
    """The algorithms, if they are safe together (RFC 8725 §2.1)."""
    given = listed(algorithms)
    shared = [name for name in given if name.startswith("HS")]
    if not given or any(name.lower() == "none" for name in given):
        raise ConfigError(
            'JWT: expected algorithms such as ["HS256"] or ["RS256"]; "none" has no signature'
        )
    if shared and len(shared) < len(given):
        raise ConfigError(
            f"JWT: {', '.join(given)} are of two kinds: a public key would be accepted as a shared secret; "
            "make one scheme for each kind"
        )
    if isinstance(key, str | bytes):
        secret = key.encode() if isinstance(key, str) else key
        if shared and len(secret) < SECRET_BYTES_MIN:
            raise ConfigError(
                f"JWT: expected a secret of at least {SECRET_BYTES_MIN} bytes, got {len(secret)}"
            )
    return given
