"""Finds sessions that are dead without an end: a network that passes nothing on, a server that is gone.

A session that is idle and silent is asked for a sign of life. Where none comes, and where a statement has
no result for long, the server is asked by another connection: a session that the server does not have any
more, or that it has nothing to do for, is closed, and what waits on it fails with ``StatementLost``. So does
a COPY in which both sides wait: the server for what was sent to it, or for what it has sent to be read.
While the server responds to no connection, sessions are kept for ``SILENT_MAX_S``: it may stand still only.
They are closed before that if another server of the same DSN is what ``target_session_attrs`` asks for.
Tests: ``tests/pg/test_heartbeat.py``.
"""

from __future__ import annotations

import asyncio
import contextlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from citius.databases import silent
from citius.errors import ConfigError
from citius.pg.connecting import open_at, open_session
from citius.pg.errors import PostgresError, ServerError

if TYPE_CHECKING:
    from collections.abc import Coroutine, Sequence

    from citius._core import PgPool, PgTypes
    from citius.pg.dsn import Target
    from citius.pg.session import Session

# After how long without a sign of life one is asked for, and how long it may take.
IDLE_S, DEAD_S = 10.0, 5.0
# How long a session is kept that is silent while its server responds to no other connection either.
SILENT_MAX_S = 60.0
# What the server has sent when it was asked may be under way.
_BOTH_S = 0.5
_STATE = (
    "SELECT pg_catalog.pg_backend_pid(), a.state, a.wait_event FROM (SELECT) AS one "
    "LEFT JOIN pg_catalog.pg_stat_activity AS a ON a.pid = $1"
)


@dataclass(slots=True)
class _Silence:
    """How long nothing has come, and nothing else has changed."""

    state: tuple[int, bool, object]
    """The number of what has come last, whether something is waited for, and what a COPY does."""
    since: float
    doubt_s: float
    """When the server is asked by another connection."""


class Watched(Protocol):
    """Sessions that are watched: those of a pool, or of an engine of SQLAlchemy."""

    targets: list[Target]
    types: PgTypes

    @property
    def core(self) -> PgPool:
        """What statements of the heartbeat's own are executed by."""
        ...

    @property
    def open_sessions(self) -> list[Session]:
        """The sessions."""
        ...

    def spawn(self, coroutine: Coroutine[object, None, None]) -> None:
        """Step a coroutine until it ends."""


class Heartbeat:
    """That of one pool, on its loop.

    Args:
        asks_idle: Sessions that are idle are asked for a sign of life, too.
    """

    def __init__(
        self, pool: Watched, loop: asyncio.AbstractEventLoop, *, asks_idle: bool = True
    ) -> None:
        self._pool, self._loop, self._asks_idle = pool, loop, asks_idle
        self._silences: dict[Session, _Silence] = {}
        self._doubted: set[Session] = set()
        self._beat_later()

    def end(self) -> None:
        """Beat no more."""
        self._timer.cancel()

    def _beat_later(self) -> None:
        self._timer = self._loop.call_later(IDLE_S / 2, self._beat)

    def _beat(self) -> None:
        self._beat_later()
        known, self._silences = self._silences, {}
        for session in self._pool.open_sessions:
            self._silences[session] = self._look(session, known.get(session))

    def _look(self, session: Session, silence: _Silence | None) -> _Silence:
        now, is_waiting = self._loop.time(), session.core.load > 0
        state = session.core.heard, is_waiting, session.copying
        if silence is None or silence.state != state:
            return _Silence(state, now, IDLE_S + DEAD_S)
        silent_s = now - silence.since
        if is_waiting:
            if silent_s >= silence.doubt_s and session not in self._doubted:
                self._doubted.add(session)
                self._pool.spawn(self._find_out(session, silence, silent_s))
        elif self._asks_idle and silent_s >= IDLE_S and not session.core.status:
            with contextlib.suppress(PostgresError):
                self._pool.core.script("", session.core).start()
            return _Silence((state[0], True, state[2]), now, DEAD_S)
        return silence

    async def _find_out(self, session: Session, silence: _Silence, silent_s: float) -> None:
        before = session.core.heard, session.copying
        why: str | None = None
        try:
            why = await self._reason(session)
            silence.doubt_s = (
                silent_s * 2
            )  # a statement that takes long is asked for ever less often
            await asyncio.sleep(_BOTH_S)
        except ServerError:
            # It has no connection left, say, and responds.
            silence.doubt_s = silent_s * 2
        except (PostgresError, TimeoutError):
            silence.doubt_s = silent_s + IDLE_S
            if silent_s >= SILENT_MAX_S:
                why = "and the server responds to no other connection"
            elif await self._has_successor(session):
                why = "and another server has its place"
        finally:
            self._doubted.discard(session)
        is_silent = (session.core.heard, session.copying) == before
        if why is not None and is_silent and session.core.load:
            session.give_up(f"nothing has come for {silent_s:.0f} s, {why}")

    async def _has_successor(self, session: Session) -> bool:
        """Whether another server than one that is silent is what is asked for."""
        targets: Sequence[Target] = self._pool.targets
        if targets[0].session_attributes == "any":
            return False  # any server is, and a standby takes no changes
        silent.note(session.address[3])
        silent.note(session.target.address)
        try:
            probe = await open_session(self._pool.core, self._pool.types, targets, lambda _: None)
        except (PostgresError, ConfigError):
            return False
        probe.close()
        return probe.address != session.address

    async def _reason(self, session: Session) -> str | None:
        """Why a session has no future, as the server says to another one; ``None``: it is at work."""
        core, process = self._pool.core, session.core.process
        async with asyncio.timeout(session.target.connect_timeout_s):
            probe = await open_at(
                core, self._pool.types, session.target, session.address, lambda _: None
            )
            try:
                row = await core.fetch_one(_STATE, process, session=probe.core)
                own = probe.core.process
            finally:
                probe.close()
        if row is None or row[0] != own:
            return None  # a pooler has numbers of its own
        if row[1] is None:
            return "and the server does not have the session"
        if row[1].startswith("idle"):
            return "and the server has nothing to do for it"
        if session.copying is not None and session.copying[0] == row[2]:
            return "and the server waits for this side, too"
        return None
