"""Authentication of requests: Basic, Bearer, Digest, netrc, functions.

``Auth.flow`` is a generator: it yields a request, gets the response if it wants another try, and yields
again. Credentials are for the origin that the caller has named; redirects to another one drop them
(``engine.py``). Tests: ``tests/http/test_auth.py``.
"""

from __future__ import annotations

import inspect
import threading
from base64 import b64encode
from typing import TYPE_CHECKING, TypeAlias, cast

from citius.errors import ConfigError
from citius.unknown_options import known_options

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Generator

    from citius.http.request import Request
    from citius.http.response import Response

    Flow: TypeAlias = "Generator[Request | Renewal, Response, None]"
    AuthTypes: TypeAlias = "tuple[str, str] | Auth | Callable[[Request], object]"


class Auth:
    """Base class of what authenticates requests."""

    def flow(self, request: Request) -> Flow:
        """Change the request's fields and yield it; what is sent back is its response."""
        yield request

    async def prepare(self, request: Request) -> None:
        """Called before ``flow``, for what has to be awaited."""


@known_options
class Basic(Auth):
    """User name and password (RFC 7617), in UTF-8."""

    def __init__(self, username: str, password: str) -> None:
        if ":" in username:
            raise ConfigError("the user name of Basic has no colon (RFC 7617 §2)")
        self.line = "Basic " + b64encode(f"{username}:{password}".encode()).decode()

    def __repr__(self) -> str:
        return "Basic(…)"

    def flow(self, request: Request) -> Flow:
        """Add the field."""
        request.headers["authorization"] = self.line
        yield request


@known_options
class Bearer(Auth):
    """A token (RFC 6750), or a function that returns the current one, which may be ``async def``.

    Args:
        token: The token, or what gets it.
        refresh: Called after a 401, before one more try with the token that ``token()`` returns then.
    """

    def __init__(
        self,
        token: str | Callable[[], str] | Callable[[], Awaitable[str]],
        *,
        refresh: Callable[[], object] | None = None,
    ) -> None:
        if refresh is not None and isinstance(token, str):
            raise ConfigError(
                "Bearer(refresh=…) needs a function as its token, which returns the new one"
            )
        self._token, self._refresh = token, refresh

    def __repr__(self) -> str:
        return "Bearer(…)"

    async def prepare(self, request: Request) -> None:
        """Get the token."""
        token = self._token
        if not isinstance(token, str):
            found = token()
            token = await found if inspect.isawaitable(found) else found
        request.headers["authorization"] = f"Bearer {token}"

    def flow(self, request: Request) -> Flow:
        """Send it, and once more with a new token after a 401."""
        response = yield request
        if response.status_code == 401 and self._refresh is not None:
            yield Renewal(request, self._refresh, self.prepare)


class Renewal:
    """What a flow yields in place of a request: ``refresh`` is called, and awaited, before it is sent."""

    def __init__(
        self,
        request: Request,
        refresh: Callable[[], object],
        prepare: Callable[[Request], Awaitable[None]],
    ) -> None:
        self._request, self._refresh, self._prepare = request, refresh, prepare

    async def request(self) -> Request:
        """The request with its new credentials."""
        found = self._refresh()
        if inspect.isawaitable(found):
            await found
        await self._prepare(self._request)
        return self._request


class Function(Auth):
    """A function of the application's that changes the request; it may be ``async def``."""

    def __init__(self, function: Callable[[Request], object]) -> None:
        self._function = function

    async def prepare(self, request: Request) -> None:
        """Call it."""
        found = self._function(request)
        if inspect.isawaitable(found):
            await found


@known_options
class Digest(Auth):
    """Challenge and response (RFC 7616): MD5, SHA-256, SHA-512-256, each with ``-sess``; quality ``auth``."""

    def __init__(self, username: str, password: str) -> None:
        self._username, self._password = username, password
        self._lock = threading.Lock()
        self._challenges: dict[str, _Challenge] = {}

    def __repr__(self) -> str:
        return "Digest(…)"

    def flow(self, request: Request) -> Flow:
        """Answer the challenge; the next request of the origin goes with an answer at once."""
        origin = request.url.origin
        with self._lock:
            challenge = self._challenges.get(origin)
        if challenge is not None:
            request.headers["authorization"] = self._line(request, challenge)
        response = yield request
        if response.status_code != 401:
            return
        found = _challenge(response.headers.getlist("www-authenticate"))
        if found is None or (
            challenge is not None and not found.is_stale and found.nonce == challenge.nonce
        ):
            return
        with self._lock:
            self._challenges[origin] = found
        request.headers["authorization"] = self._line(request, found)
        yield request

    def _line(self, request: Request, challenge: _Challenge) -> str:
        import secrets

        with self._lock:
            challenge.count += 1
            count = challenge.count
        nonce_count, cnonce = f"{count:08x}", secrets.token_hex(8)
        hashed = challenge.hashed
        # As a field shows them: its bytes are UTF-8, and so are those of a realm, if the server has them so.
        username, password = (
            text.encode().decode("latin-1") for text in (self._username, self._password)
        )
        first = hashed(f"{username}:{challenge.realm}:{password}")
        if challenge.algorithm.lower().endswith("-sess"):
            first = hashed(f"{first}:{challenge.nonce}:{cnonce}")
        second = hashed(f"{request.method}:{request.url.target}")
        if challenge.has_quality:
            answer = hashed(f"{first}:{challenge.nonce}:{nonce_count}:{cnonce}:auth:{second}")
        else:
            answer = hashed(f"{first}:{challenge.nonce}:{second}")
        parts = {
            "username": _quoted(username), "realm": _quoted(challenge.realm),
            "nonce": _quoted(challenge.nonce), "uri": _quoted(request.url.target),
            "algorithm": challenge.algorithm, "response": f'"{answer}"',
        }  # fmt: skip
        if challenge.opaque is not None:
            parts["opaque"] = _quoted(challenge.opaque)
        if challenge.has_quality:
            parts |= {"qop": "auth", "nc": nonce_count, "cnonce": f'"{cnonce}"'}
        return "Digest " + ", ".join(f"{name}={value}" for name, value in parts.items())


_ALGORITHMS = {"md5": "md5", "sha-256": "sha256", "sha-512-256": "sha512_256"}


class _Challenge:
    """What a server has asked for."""

    def __init__(self, parts: dict[str, str]) -> None:
        self.realm, self.nonce = parts.get("realm", ""), parts["nonce"]
        self.opaque = parts.get("opaque")
        self.algorithm = parts.get("algorithm", "MD5")
        self.is_stale = parts.get("stale", "").lower() == "true"
        qualities = [one.strip().lower() for one in parts.get("qop", "").split(",") if one.strip()]
        self.has_quality = "auth" in qualities
        self.is_known = not qualities or self.has_quality
        self.count = 0
        self._hash = _ALGORITHMS.get(self.algorithm.lower().removesuffix("-sess"))
        if self._hash is None:
            self.is_known = False

    @property
    def strength(self) -> int:
        """SHA-512-256 before SHA-256 before MD5."""
        return list(_ALGORITHMS.values()).index(self._hash or "md5")

    def hashed(self, text: str) -> str:
        """The digest of a text, of which Latin-1 is what the bytes are shown as, as hexadecimal digits."""
        import hashlib

        return hashlib.new(self._hash or "md5", text.encode("latin-1")).hexdigest()


def _challenge(lines: list[str]) -> _Challenge | None:
    """The strongest challenge that can be answered."""
    found: list[_Challenge] = []
    for line in lines:
        for scheme, parts in challenges(line):
            if scheme == "digest" and "nonce" in parts and (one := _Challenge(parts)).is_known:
                found.append(one)
    return max(found, key=lambda one: one.strength, default=None)


def challenges(line: str) -> list[tuple[str, dict[str, str]]]:
    """The challenges of a ``WWW-Authenticate`` field (RFC 9110 §11.6.1): schemes and parameters."""
    found: list[tuple[str, dict[str, str]]] = []
    for part in split_quoted(line):
        name, equals, value = part.partition("=")
        scheme, space, first = name.strip().partition(" ")
        if space or not equals:
            found.append((scheme.lower(), {}))
            name = first
        if equals and found:
            found[-1][1][name.strip().lower()] = _unquoted(value.strip())
    return found


def split_quoted(line: str) -> list[str]:
    """The parts between commas that are not within a quoted string."""
    parts: list[str] = []
    start, is_quoted, is_escaped = 0, False, False
    for index, character in enumerate(line):
        if is_escaped:
            is_escaped = False
        elif character == "\\" and is_quoted:
            is_escaped = True
        elif character == '"':
            is_quoted = not is_quoted
        elif character == "," and not is_quoted:
            parts.append(line[start:index])
            start = index + 1
    parts.append(line[start:])
    return [part.strip() for part in parts if part.strip()]


def _unquoted(value: str) -> str:
    if len(value) < 2 or value[0] != '"' or value[-1] != '"':
        return value
    found: list[str] = []
    characters = iter(value[1:-1])
    for character in characters:
        found.append(next(characters, "") if character == "\\" else character)
    return "".join(found)


def _quoted(value: str) -> str:
    return '"' + value.replace("\\", "\\\\").replace('"', '\\"') + '"'


@known_options
class Netrc(Auth):
    """User names and passwords of a netrc file, by host: ``$NETRC`` or ``~/.netrc`` without a path.

    Raises:
        ConfigError: The file cannot be read.
    """

    def __init__(self, path: str | None = None) -> None:
        import netrc
        import os

        place = path or os.environ.get("NETRC") or os.path.join(os.path.expanduser("~"), ".netrc")
        try:
            self._file = netrc.netrc(place)
        except (OSError, netrc.NetrcParseError) as error:
            raise ConfigError(f"netrc {place}: {error}") from None

    def flow(self, request: Request) -> Flow:
        """Add the field, if the file knows the host and the request is not authenticated yet."""
        found = self._file.authenticators(request.url.host)
        if found is not None and "authorization" not in request.headers:
            request.headers["authorization"] = Basic(found[0] or found[1], found[2] or "").line
        yield request


def made(given: AuthTypes | None) -> Auth | None:
    """What ``auth=`` says.

    Raises:
        ConfigError: It is nothing that authenticates.
    """
    if given is None or isinstance(given, Auth):
        return given
    if isinstance(given, tuple):
        username, password = cast("tuple[str, str]", given)
        return Basic(username, password)
    if callable(given):
        return Function(given)
    raise ConfigError(
        "auth= is (user name, password), Basic, Bearer, Digest, Netrc, or a function that gets the request; "
        f"got {type(given).__name__}"
    )
