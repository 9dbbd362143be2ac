"""Sessions: a mapping that follows a client from request to request.

``Sessions`` keeps it in a signed cookie; ``StoredSessions`` keeps it in a store, and an identifier in the
cookie (stores are in session_stores.py). A session that nothing reads costs no decoding, one that does not
change sends nothing. Tests: tests/middleware/test_sessions.py.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, MutableMapping
from dataclasses import dataclass
from math import isfinite
from typing import TYPE_CHECKING, Any, Literal, cast

from citius.errors import ConfigError
from citius.unknown_options import known_options
from citius.web.binding.headers import MutableHeaders

# At run time too: as a dependency `session` has its annotations read.
from citius.web.middleware.base import Connection, Middleware
from citius.web.middleware.fields import add_vary, is_token
from citius.web.security.signing import Signer

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from citius._core import Request, Response
    from citius.web.middleware.base import Socket
    from citius.web.middleware.sessions.stores import AsyncSessionStore, SessionStore, Unreadable

COOKIE_BYTES_MAX = 4096
"""Bytes of a cookie, name and attributes included. Origin: RFC 6265 §6.1, what browsers keep at least."""

_ID_CHARS = 43  # 32 bytes in base64

_AFTER_RESPONSE = (
    "the response of this request has been made, and a change of its session would be lost; change the "
    "session before the handler returns"
)
_IN_SOCKET = (
    "a WebSocket reads the session as it was when it was opened, and cannot send its cookie; change the "
    "session in a request"
)


class Session(MutableMapping[str, Any]):
    """What is kept of a client: names and values that JSON can say.

    A change inside a value (``session["cart"].append(…)``) counts as a change.
    """

    __slots__ = (
        "_data", "_is_emptied", "_is_ended", "_is_refused", "_original", "_read", "_refusal", "_sealed",
        "is_rotated",
    )  # fmt: skip

    def __init__(self, read: Callable[[], bytes | Unreadable | None], sealed: str = "") -> None:
        """Take what reads the encoded session when it is first used, and why it cannot be changed."""
        self._read = read
        self._data: dict[str, Any] | None = None
        self._original: bytes | None = None
        self._sealed = sealed
        self._refusal: Exception | None = None
        """What a change raises of a session that the store could not read."""
        self._is_emptied = False
        """Whether it was cleared: what is in it now is none of what it was."""
        self._is_ended = False
        """Whether such a session was cleared: it is deleted whatever is in it."""
        self._is_refused = False
        self.is_rotated = False

    def rotate(self) -> None:
        """Give a stored session a new identifier: call it when rights change, as at a login.

        The old identifier stands for nothing any more. If another request has ended the session meanwhile, it
        stays ended. A signed cookie has no identifier; there it does nothing.
        """
        self._change()
        self.is_rotated = True

    @property
    def is_used(self) -> bool:
        """Whether the response depends on it."""
        return self._data is not None

    def _seal(self) -> tuple[bytes | None, bytes]:
        """What it was and what it is, encoded (empty if there is nothing in it); it can no longer change."""
        self._sealed = _AFTER_RESPONSE
        data = self._loaded()
        if self._refusal is not None and self._is_refused:
            raise self._refusal  # the handler has caught it
        return self._original, encode(data) if data else b""

    def _loaded(self) -> dict[str, Any]:
        if self._data is None:
            original = self._read()
            # By its attribute, so that an application without stores imports none.
            self._refusal = getattr(original, "refusal", None)
            original = None if self._refusal is not None else cast("bytes | None", original)
            self._original = original
            self._data = decode(original) if original else {}
        return self._data

    def _change(self) -> dict[str, Any]:
        data = self._unsealed()
        if self._refusal is not None:
            # It may hold something: what is put beside it now would take its place.
            self._is_refused = True
            raise self._refusal
        return data

    def _unsealed(self) -> dict[str, Any]:
        if self._sealed:
            raise RuntimeError(self._sealed)
        return self._loaded()

    def clear(self) -> None:
        """End the session. One that the store could not read is ended, too, or the response is a 503."""
        self._unsealed().clear()
        self._is_emptied = True
        if self._refusal is not None:
            self._refusal, self._is_ended = None, True

    def pop(self, name: str, *default: Any) -> Any:
        """Remove a value and return it."""
        return self._change().pop(name, *default)

    def popitem(self) -> tuple[str, Any]:
        """Remove a value and return it with its name."""
        return self._change().popitem()

    def __getitem__(self, name: str) -> Any:
        return self._loaded()[name]

    def __setitem__(self, name: str, value: object) -> None:
        self._change()[name] = value

    def __delitem__(self, name: str) -> None:
        del self._change()[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._loaded())

    def __len__(self) -> int:
        return len(self._loaded())

    def __repr__(self) -> str:
        return f"<Session {self._loaded()!r}>"


def session(connection: Connection) -> Session:
    """The session of the client; that of a WebSocket can be read only.

    Raises:
        RuntimeError: There is no middleware for sessions around this handler.
    """
    found = getattr(connection.state, "session", None)
    if found is None:
        raise RuntimeError(
            "there is no session: add app.middleware(Sessions(secret)) or StoredSessions(store)"
        )
    return cast("Session", found)


def _put(owner: object, request: Request, made: Session) -> None:
    """Make it the session of the handlers below; each middleware sends its own in the end."""
    state = request.state
    state.session = made
    # Not by attribute names made of numbers: each would be a new text to hash.
    kept: dict[object, Session] | None = getattr(state, "sessions", None)
    if kept is None:
        state.sessions = {owner: made}
    else:
        kept[owner] = made


def _own(owner: object, request: Request) -> Session | None:
    """The session that this middleware has made, which is that of the request again."""
    state = request.state
    kept: dict[object, Session] | None = getattr(state, "sessions", None)
    found = None if kept is None else kept.get(owner)
    if found is not None:
        state.session = found
    return found


@known_options
@dataclass(frozen=True, slots=True, kw_only=True)
class SessionCookie:
    """How the cookie of a session is sent.

    Raises:
        ConfigError: The name is none, or demands what the rest does not say.
    """

    name: str = "session"
    max_age_s: int = 14 * 24 * 3600
    path: str = "/"
    domain: str | None = None
    secure: bool | None = None
    """``None``: over TLS only if the request came over TLS."""
    same_site: Literal["lax", "strict", "none"] = "lax"
    rolling: bool = False
    """Send it with every response that used the session, so that it expires after the last use."""

    def __post_init__(self) -> None:
        if not is_token(self.name):
            raise ConfigError(f"expected a session cookie's name to be a token, got {self.name!r}")
        if self.max_age_s < 1:
            raise ConfigError(f"SessionCookie: max_age_s must be at least 1, got {self.max_age_s}")
        if not self.path.startswith("/"):
            # Browsers ignore such a path.
            raise ConfigError(f"SessionCookie: path begins with a slash, got {self.path!r}")
        try:
            self._write(MutableHeaders([]), "", "http")
        except ValueError as error:
            raise ConfigError(f"SessionCookie: {error}") from None

    def set(self, request: Request, response: Response, value: str) -> None:
        """Send a value; an empty one makes the client forget the cookie."""
        self._write(response.headers, value, request.scheme)
        _keep_private(response.headers)

    def _write(self, headers: MutableHeaders, value: str, scheme: str) -> None:
        secure = self.secure
        if secure is None:
            # Clients throw these away without it, whichever way the request came.
            is_demanded = self.same_site == "none" or self.name.lower().startswith("__secure-")
            secure = is_demanded or scheme == "https"
        headers.set_cookie(
            self.name,
            value,
            max_age_s=self.max_age_s if value else 0,
            path=self.path,
            domain=self.domain,
            secure=secure,
            same_site=self.same_site,
        )


def _keep_private(headers: MutableHeaders) -> None:
    """Keep shared caches from storing the response: its next client would get the session, too.

    ``Vary: Cookie`` does not: clients without a cookie are alike (RFC 9111 §4.1).
    """
    said = headers.get("cache-control", "")
    directives = [one.strip() for one in said.split(",")]
    names = {one.lower() for one in directives}
    if "private" in names or "no-store" in names:
        return
    if '"' in said:  # fields whose names have commas between them
        directives = []
    kept = [
        one
        for one in directives
        if one and one.lower() != "public" and not one.lower().startswith("s-maxage")
    ]
    headers["cache-control"] = ", ".join(["private", *kept])


class Sessions(Middleware):
    """Sessions in signed cookies: the client can read them, and change nothing.

    A cookie holds about 3 KiB. The server cannot end a session before it expires: a copy of the cookie
    remains valid. ``StoredSessions`` has neither limit.

    Args:
        secret: A secret of at least 16 bytes, or several: the first signs, all verify.
        cookie: How the cookie is sent.
    """

    gives_session = True

    def __init__(
        self, secret: str | bytes | Iterable[str | bytes], cookie: SessionCookie | None = None
    ) -> None:
        self._cookie = cookie or SessionCookie()
        self._signer = Signer(secret, f"session {self._cookie.name}")

    def before(self, request: Request) -> None:
        """Give the request its session."""
        _put(self, request, Session(lambda: self._read(request)))

    def after(self, request: Request, response: Response) -> Response:
        """Send the session if it has changed."""
        found = _own(self, request)
        if found is None or not found.is_used:
            return response
        add_vary(response, "cookie")
        original, data = found._seal()  # pyright: ignore[reportPrivateUsage]
        if data and (data != original or self._cookie.rolling):
            value = self._signer.sign(data, self._cookie.max_age_s)
            if len(value) > COOKIE_BYTES_MAX - 256:
                raise ValueError(
                    f"the session has {len(data)} bytes, too many for a cookie; keep less in it, or use "
                    "StoredSessions"
                )
            self._cookie.set(request, response, value)
        elif not data and original is not None:
            self._cookie.set(request, response, "")
        return response

    def connect(self, socket: Socket) -> None:
        """Give the WebSocket the session of its client, to be read."""
        request = socket.request
        socket.state.session = Session(lambda: self._read(request), _IN_SOCKET)

    def _read(self, request: Request) -> bytes | None:
        token = request.cookies.get(self._cookie.name)
        return None if token is None else self._signer.verify(token)


class StoredSessions(Middleware):
    """Sessions in a store; the cookie holds a random identifier, of which the store knows the hash.

    Args:
        store: Where they are kept; one whose methods are coroutine functions needs an event loop.
        cookie: How the cookie is sent.
    """

    gives_session = True

    def __init__(
        self, store: SessionStore | AsyncSessionStore, cookie: SessionCookie | None = None
    ) -> None:
        self._store = store
        self._cookie = cookie or SessionCookie()

    @property
    def steps(self) -> tuple[Callable[..., object], ...]:
        """What decides whether the store has to be awaited."""
        return (self._store.load,)

    def bind(
        self, method: str, pattern: str | None, handler: Callable[..., object] | None
    ) -> Middleware:
        """Return the halves that suit the store."""
        return _AwaitedSessions(self) if self.is_async else _DirectSessions(self)

    def _id_of(self, request: Request) -> str | None:
        """The identifier that a client shows, if it looks like one of ours."""
        given = request.cookies.get(self._cookie.name, "")
        is_fine = len(given) == _ID_CHARS and given.isascii()
        return given if is_fine and all(c.isalnum() or c in "-_" for c in given) else None


@dataclass(slots=True)
class _Change:
    """What is to be done in the store, and with which cookie; an identifier is ``None`` if nothing is."""

    deleted: str | None = None
    saved: str | None = None
    data: bytes = b""
    is_new: bool = False
    needs_deleted: bool = False
    """Whether what is saved is that of the deleted one, and is not kept if another request has ended it."""
    cookie: str | None = None
    """What the cookie becomes, if all of this was done."""


class _StoredHalves(Middleware):
    """What both kinds of stores have in common."""

    def __init__(self, sessions: StoredSessions) -> None:
        # A store for threads and one for the loop have the same methods by name.
        self._store: Any = sessions._store  # pyright: ignore[reportPrivateUsage]
        self._cookie = sessions._cookie  # pyright: ignore[reportPrivateUsage]
        self._id_of = sessions._id_of  # pyright: ignore[reportPrivateUsage]

    def _begin(self, request: Request, data: bytes | Unreadable | None) -> None:
        _put(self, request, Session(lambda: data))

    def _open(self, socket: Socket, data: bytes | Unreadable | None) -> None:
        socket.state.session = Session(lambda: data, _IN_SOCKET)

    def _end(self, request: Request, response: Response) -> _Change | None:
        """What a changed session asks for."""
        found = _own(self, request)
        if found is None or not found.is_used:
            return None
        add_vary(response, "cookie")
        original, data = found._seal()  # pyright: ignore[reportPrivateUsage]
        # An identifier that the store does not know is never adopted: another may have planted it.
        is_ended = found._is_ended  # pyright: ignore[reportPrivateUsage]
        known = self._id_of(request) if original is not None or is_ended else None
        if not data:
            return _Change(deleted=known, cookie=None if known is None else "")
        if data == original and not found.is_rotated and not self._cookie.rolling:
            return None
        import secrets

        is_another = found.is_rotated or is_ended
        is_new = known is None or is_another
        identifier = secrets.token_urlsafe(32) if is_new else cast("str", known)
        return _Change(
            known if is_another else None,
            identifier,
            data,
            is_new,
            found.is_rotated and not found._is_emptied,  # pyright: ignore[reportPrivateUsage]
            identifier if is_new or self._cookie.rolling else None,
        )

    def _done(self, request: Request, response: Response, change: _Change) -> Response:
        """The response to a change that the store has made."""
        if change.cookie is not None:
            self._cookie.set(request, response, change.cookie)
        return response


class _DirectSessions(_StoredHalves):
    def connect(self, socket: Socket) -> None:
        identifier = self._id_of(socket.request)
        self._open(socket, self._store.load(_key(identifier)) if identifier else None)

    def before(self, request: Request) -> None:
        identifier = self._id_of(request)
        self._begin(request, self._store.load(_key(identifier)) if identifier else None)

    def after(self, request: Request, response: Response) -> Response:
        change = self._end(request, response)
        if change is None:
            return response
        if change.deleted is not None:
            was_there = self._store.delete(_key(change.deleted))
            if was_there is False and change.needs_deleted:
                return response
        if change.saved is not None:
            keep = self._store.save if change.is_new else self._store.replace
            if keep(_key(change.saved), change.data, self._cookie.max_age_s) is False:
                return response
        return self._done(request, response, change)


class _AwaitedSessions(_StoredHalves):
    async def connect(self, socket: Socket) -> None:
        identifier = self._id_of(socket.request)
        self._open(socket, await self._store.load(_key(identifier)) if identifier else None)

    async def before(self, request: Request) -> None:
        identifier = self._id_of(request)
        self._begin(request, await self._store.load(_key(identifier)) if identifier else None)

    async def after(self, request: Request, response: Response) -> Response:
        change = self._end(request, response)
        if change is None:
            return response
        if change.deleted is not None:
            was_there = await self._store.delete(_key(change.deleted))
            if was_there is False and change.needs_deleted:
                return response
        if change.saved is not None:
            keep = self._store.save if change.is_new else self._store.replace
            if await keep(_key(change.saved), change.data, self._cookie.max_age_s) is False:
                return response
        return self._done(request, response, change)


def _key(identifier: str) -> str:
    """Under which a session is stored: what reads the store cannot take sessions over."""
    return hashlib.sha256(identifier.encode()).hexdigest()


def encode(data: dict[str, Any]) -> bytes:
    """A session as bytes; the same for equal ones."""
    import msgspec

    try:
        encoded = msgspec.json.encode(data, order="deterministic")
    except TypeError as error:
        reason = "its keys are texts" if "str keys" in str(error) else str(error)
        raise TypeError(
            f"the session cannot be kept as JSON: {reason} (at {_refused_part(data)})"
        ) from None
    if b"null" in encoded and (place := _not_finite(data)):
        raise TypeError(f"the session cannot be kept as JSON: it would become null (at {place})")
    return encoded


def _not_finite(value: Any, place: str = "session") -> str:
    """Where in a session a number is that JSON has not, if there is one."""
    if isinstance(value, float):
        return "" if isfinite(value) else f"{place}: {value}"
    if isinstance(value, dict):
        parts: Any = cast("dict[Any, Any]", value).items()
    elif isinstance(value, list | tuple):
        parts = enumerate(cast("list[Any]", value))
    else:
        return ""
    found = (_not_finite(one, f"{place}[{key!r}]") for key, one in parts)
    return next(filter(None, found), "")


def _refused_part(value: Any, place: str = "session") -> str:
    """Where in a session something is that JSON has not."""
    import msgspec

    is_dict = isinstance(value, dict)
    parts = cast("dict[Any, Any]", value).items() if is_dict else enumerate(value)
    for key, one in parts:
        at = f"{place}[{key!r}]"
        if is_dict and not isinstance(key, str):
            return at
        try:
            msgspec.json.encode(one, order="deterministic")
        except TypeError:
            return _refused_part(one, at) if isinstance(one, (dict, list, tuple)) else at
    return place


def decode(data: bytes) -> dict[str, Any]:
    """A session of what ``encode`` has made.

    An empty one of anything else, which another program has put there: the response then ends the session, or
    replaces it by what the handler has put in.
    """
    import msgspec

    try:
        return msgspec.json.decode(data, type=dict[str, Any])
    except msgspec.DecodeError as error:
        from citius.observability import logging

        logging.warning(f"a session is not what this application has stored, and is ended: {error}")
        return {}
