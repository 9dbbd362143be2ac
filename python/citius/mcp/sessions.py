"""Sessions of versions before 2026-07-28: a signed identifier says what ``initialize`` has agreed on.

So any worker and node that has the secret serves any session, and a session that nothing has been changed in
takes no memory. What changes (the level of logs, subscriptions, the end) is in the store of sessions: shared
memory of all workers, or the cluster's engine. Tests: ``tests/mcp/test_http.py``.
"""

from __future__ import annotations

import hashlib
import os
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, cast

from citius.errors import ConfigError
from citius.mcp.faults import INVALID_REQUEST, Fault
from citius.mcp.protocol import LEVELS, SESSION_VERSIONS
from citius.web.security.owners import owner_text
from citius.web.security.signing import Signer

if TYPE_CHECKING:
    from citius._core import Request
    from citius.cluster.sessionstores import AsyncSessionStore, SessionStore
    from citius.mcp.protocol import Level
    from citius.process.sharedtable import SharedTable
    from citius.web.application.app import App

CAPABILITIES: Final = (
    ("sampling",), ("elicitation", "form"), ("elicitation", "url"), ("roots",),
)  # fmt: skip
"""What clients may declare that matters here, each a bit of a session's identifier."""

KNOWN_MAX: Final = 4096
"""Sessions of a worker whose signature need not be verified again. Exceeded: the oldest is forgotten."""

_ID_BYTES = 12
_OWNER_BYTES = 12


@dataclass(frozen=True, slots=True)
class Session:
    """What has been agreed on."""

    key: str
    """What its changes are kept under."""
    version: str
    capabilities: frozenset[tuple[str, ...]]
    owner: bytes = b""
    """A digest of whose it is; empty without authorization."""


NONE: Final = Session("", "2025-03-26", frozenset())
"""That of a request without one: the version is the one that the specification assumes."""


def declared(capabilities: Any) -> frozenset[tuple[str, ...]]:
    """The capabilities of a client that matter here."""
    if not isinstance(capabilities, dict):
        return frozenset()
    given = cast("dict[str, Any]", capabilities)
    found: set[tuple[str, ...]] = set()
    for one in CAPABILITIES:
        value = given.get(one[0])
        if not isinstance(value, dict):
            continue
        # Before there were parts of it, elicitation was forms.
        if len(one) == 1 or one[1] in value or (one[1] == "form" and "url" not in value):
            found.add(one)
    return frozenset(found)


class Sessions:
    """The sessions of one server.

    Args:
        path: Where the server is, which its sessions belong to.
        secret: What signs identifiers; ``None``: a secret that the workers of this machine share.
        lasts_s: How long a session may last.
    """

    def __init__(self, path: str, secret: str | bytes | None, lasts_s: int) -> None:
        self._path = path
        self._secret = secret
        self._lasts_s = lasts_s
        self._known: dict[str, tuple[Session, int, int]] = {}
        """Sessions that had not ended when the last one did, of any worker."""
        self._store: SessionStore | AsyncSessionStore
        self._table: SharedTable | None = None
        self._signer: Signer | None = None
        self.states: Signer | None = None
        """Signs what a stateless client brings back."""

    def open(self, app: App) -> None:
        """Find the store and the secret, when the application is frozen.

        Raises:
            ConfigError: Several machines have no secret in common.
        """
        from citius.cluster.sessionstores import MemoryStore, SharedStore

        store = None if app.cluster is None else app.cluster.sessions(when_down="empty")
        if store is None or isinstance(store, SharedStore):
            from citius.process.sharedtable import shared_table

            self._table = shared_table("mcp")
            store = SharedStore(self._table, prefix="")
        elif self._secret is None and not isinstance(store, MemoryStore):
            raise ConfigError(
                f"app.mcp({self._path!r}) with a cluster needs secret=…, the same on all machines: it signs "
                "the sessions that each of them serves"
            )
        self._store = store
        secret = self._secret
        if secret is None:
            from citius.process.sharedmemory import shared_memory

            secret = bytes(shared_memory()[:16])
        self._signer = Signer(secret, f"mcp session {self._path}")
        self.states = Signer(secret, f"mcp state {self._path}")

    def begin(
        self, version: str, capabilities: frozenset[tuple[str, ...]], owner: bytes = b""
    ) -> str:
        """The identifier of a new session.

        Args:
            version: The version of the protocol.
            capabilities: Those of the client.
            owner: What ``owner_of`` gives for its first request.
        """
        assert self._signer is not None, "opened when the application was frozen"
        bits = sum(1 << at for at, one in enumerate(CAPABILITIES) if one in capabilities)
        payload = bytes((SESSION_VERSIONS.index(version), bits)) + os.urandom(_ID_BYTES)
        return self._signer.sign(payload + owner, self._lasts_s)

    def checked(self, identifier: str) -> Session | None:
        """The session of an identifier, if it is known that it has not ended; ``find`` asks otherwise."""
        known = self._known.get(identifier)
        if known is None or self._table is None or known[1] != self._table.fence:
            return None
        return known[0] if known[2] > time.time() else None

    async def find(self, identifier: str) -> Session:
        """The session of an identifier, unless it has ended.

        Raises:
            Fault: There is none (404).
        """
        known = self._known.get(identifier)
        is_verified = known is not None and known[2] > time.time()
        session = known[0] if known is not None and is_verified else self._verified(identifier)
        # Before the look, for an end after it is to be seen the next time.
        fence = 0 if self._table is None else self._table.fence
        if await self._load(f"{session.key}:end") is not None:
            self._known.pop(identifier, None)
            raise gone()
        if len(self._known) >= KNOWN_MAX:
            del self._known[next(iter(self._known))]
        # As the signer writes it.
        expires_at = int(identifier.split(".")[1], 16)
        self._known[identifier] = session, fence, expires_at
        return session

    def _verified(self, identifier: str) -> Session:
        assert self._signer is not None, "opened when the application was frozen"
        payload = self._signer.verify(identifier)
        if payload is None:
            raise gone()
        capabilities = (one for at, one in enumerate(CAPABILITIES) if payload[1] >> at & 1)
        key, owner = payload[2 : 2 + _ID_BYTES], payload[2 + _ID_BYTES :]
        version = SESSION_VERSIONS[payload[0]]
        return Session(key.hex(), version, frozenset(capabilities), owner)

    # --- what changes ---------------------------------------------------------------------------------

    async def end(self, session: Session) -> None:
        """End a session, for all workers."""
        await self._save(f"{session.key}:end", b"1")
        if self._table is not None:
            self._table.next_fence()  # all workers look again

    async def set_level(self, session: Session, level: Level) -> None:
        """Keep from which level on the client wants messages."""
        await self._save(f"{session.key}:level", level.encode())

    async def level(self, session: Session) -> Level:
        """From which level on the client wants messages; ``info`` if it has not said."""
        found = await self._load(f"{session.key}:level") if session.key else None
        return cast("Level", found.decode()) if found is not None else LEVELS[1]

    async def subscribe(self, session: Session, uri: str) -> None:
        """Keep that the client wants to hear of a resource."""
        await self._save(f"{session.key}:{_digest(uri)}", b"1")

    async def unsubscribe(self, session: Session, uri: str) -> None:
        """Forget that."""
        was_there = self._store.delete(f"{session.key}:{_digest(uri)}")
        if not isinstance(was_there, bool | None):
            await was_there

    async def is_subscribed(self, key: str, uri: str) -> bool:
        """Whether the client of the session ``key`` wants to hear of a resource."""
        return await self._load(f"{key}:{_digest(uri)}") is not None

    async def _load(self, key: str) -> bytes | None:
        """What is kept; while the engine is away nothing is, and sessions go on as they began."""
        found = self._store.load(key)
        if found is not None and not isinstance(found, bytes):
            found = await found
        return found if isinstance(found, bytes) else None

    async def _save(self, key: str, data: bytes) -> None:
        saved = self._store.save(key, data, self._lasts_s)
        if saved is not None:
            await saved


def owner_of(principal: object) -> bytes:
    """A digest of who calls; empty for what has no text that is the same for each request."""
    try:
        text = owner_text(principal, "a session")
    except TypeError:
        return b""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()[:_OWNER_BYTES]


def began_by(request: Request) -> bytes:
    """What the guard has found out with ``owner_of``."""
    return getattr(request.state, "mcp_owner", b"")


def gone() -> Fault:
    """What a client is told whose session does not exist: it begins a new one."""
    return Fault(INVALID_REQUEST, "there is no such session", status=404)


def _digest(uri: str) -> str:
    return hashlib.sha256(uri.encode("utf-8", "surrogatepass")).hexdigest()[:32]
