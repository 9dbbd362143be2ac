"""Finds a pooler that changes the server process from one transaction to the next.

What a transaction leaves in a session (a role, settings, locks, temporary tables, channels) is then another
client's, and its reset comes to another process. Poolers that keep prepared statements for their clients give
no other sign of it. A session of such a pooler names another process at the login than its statements run in,
as it does behind a proxy that is harmless; so this is looked at where the numbers differ: two sessions that
are open and have one process, or one session that has two, are proof.
Tests: ``tests/pg/test_poolers.py``.
"""

from __future__ import annotations

import asyncio
import contextlib
from typing import TYPE_CHECKING

from citius._core import PgPool
from citius.observability import logging
from citius.pg.connecting import open_at
from citius.pg.errors import PostgresError, ProtocolError, ServerError

if TYPE_CHECKING:
    from citius._core import PgTypes
    from citius.pg.session import Session

# By the protocol that has no prepared statements, which would get lost.
_PROCESS = "COPY (SELECT pg_catalog.pg_backend_pid()) TO STDOUT"
# Of so many sessions it is found out, each time by so many looks at both, within so many seconds.
_SESSIONS, _LOOKS, _WAIT_S = 2, 5, 1.0


class Pooler:
    """Whether there is one between a pool, or an engine of SQLAlchemy, and its server."""

    def __init__(self, types: PgTypes) -> None:
        self._types = types
        self._sessions_left = _SESSIONS
        self.is_found = False

    async def look(self, session: Session) -> bool:
        """Find out by a session that nothing else uses: whether there is one.

        Raises:
            PostgresError: The session has ended.
        """
        if self.is_found or not self._sessions_left:
            return self.is_found
        if not session.core.process:
            return False  # no server has such a number, or none was named
        # Neither metrics nor spans are about what is asked here.
        core = PgPool(asyncio.get_running_loop(), _ignore, 1, 1, True, self._types, None)
        try:
            if await _process(core, session) in (session.core.process, None):
                return False
        except ServerError:
            return False  # another database that speaks the protocol, and has no such function
        self._sessions_left -= 1
        if await self._is_changed(core, session) and not self.is_found:
            self.is_found = True
            logging.info(
                f"PostgreSQL: {session.target} is a pooler that changes the server process from one "
                "transaction to the next; what would change a session is refused"
            )
        return self.is_found

    async def _is_changed(self, core: PgPool, session: Session) -> bool:
        # It may have no process for another one, or nothing for it at all.
        with contextlib.suppress(PostgresError, TimeoutError):
            async with asyncio.timeout(_WAIT_S):
                probe = await open_at(
                    core, self._types, session.target, session.address, lambda _: None
                )
                try:
                    return await _share_processes(core, session, probe)
                finally:
                    probe.close()
        return False


async def _share_processes(core: PgPool, session: Session, probe: Session) -> bool:
    seen: dict[Session, set[int | None]] = {session: set(), probe: set()}
    for _ in range(_LOOKS):
        # Twice each: with one server process after the other, two by turns would have one each.
        for one in (session, session, probe, probe):
            seen[one].add(await _process(core, one))
        if len(seen[session]) > 1 or len(seen[probe]) > 1 or seen[session] & seen[probe]:
            return True
    return False


async def _process(core: PgPool, session: Session) -> int | None:
    """In which process of the server its statements run; ``None`` where there are no processes."""
    said: list[bytes] = []

    def take(data: bytes | None) -> None:
        if data is not None:
            said.append(data)

    await core.copy(_PROCESS, session.core, take)
    try:
        process = int(b"".join(said))
    except ValueError:
        raise ProtocolError(f"{session.target}: the number of a process is none") from None
    return process if process > 0 else None


def _ignore(_kind: str, _value: object) -> None:
    """What a pool of sessions would be told."""
