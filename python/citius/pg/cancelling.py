"""Cancels statements that no code waits for, so that their sessions serve on.

A cancel request is for whatever the server process does when it comes, so nothing new is sent on a session
until its effect is over, and what was behind the statement and is hit is done again.
Tests: ``tests/pg/test_sessions.py``, ``tests/pg/test_heartbeat.py``.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from citius.pg.connecting import cancel

if TYPE_CHECKING:
    from citius.pg.pool import Pool
    from citius.pg.session import Session

# How long a statement that no code waits for may go on before the server is told to cancel it: most end
# sooner.
_CANCEL_AFTER_S = 0.05
_CANCEL_AGAIN_S, _CANCEL_AGAIN_MAX_S = 0.1, 2.0
_CANCELLED_LOOK_S = 0.005
# A session whose server process takes no cancel request for so long does not respond any more.
GIVE_UP_S = 30.0


class Cancelling:
    """That of one pool, on its loop."""

    def __init__(self, pool: Pool) -> None:
        self._pool, self._is_watching = pool, False

    def watch(self) -> None:
        """Look in a moment for statements whose callers have left."""
        if not self._is_watching:
            self._is_watching = True
            asyncio.get_running_loop().call_later(_CANCEL_AFTER_S, self._cancel_blocked)

    def _cancel_blocked(self) -> None:
        self._is_watching = False
        if self._pool.is_ending:
            return
        sessions = self._pool.open_sessions
        for session in sessions:
            if session.core.is_blocked() and not session.is_cancelling:
                self._pool.spawn(self._cancel(session))
        # One that is behind another statement comes to the front later.
        if any(session.core.has_abandoned() for session in sessions):
            self.watch()

    async def _cancel(self, session: Session) -> None:
        core, request = self._pool.core, session.core.cancel_request()
        if request is None or session.is_cancelling or not session.core.is_blocked():
            return
        # Nothing new comes to this session meanwhile; what is behind the statement and is hit is done again.
        was_shared = core.unshare(session.core) is not None
        session.is_cancelling = True
        session.core.set_cancelling(True, True)
        try:
            while not session.is_closed:
                if not await self._until_unblocked(session, request):
                    return session.give_up(
                        f"no cancel request has ended its statement for {GIVE_UP_S:g} s"
                    )
                session.core.set_cancelling(True, False)
                if await self._has_settled(session):
                    break
                session.core.set_cancelling(True, True)
        finally:
            session.is_cancelling = False
            session.core.set_cancelling(False, False)
            if was_shared:
                self._pool.release(session)

    async def _has_settled(self, session: Session) -> bool:
        """Wait until a cancel request can hit nothing more; ``False``: another statement has to be cancelled.

        Several that were sent together may have been given up, and one request ends one of them.
        """
        # When this is done, all before it is.
        last = asyncio.ensure_future(self._pool.core.script("", session.core))
        last.add_done_callback(_read)
        while not last.done():
            await asyncio.wait([last], timeout=_CANCEL_AFTER_S)
            if not last.done() and session.core.is_blocked():
                return False
        return True

    async def _until_unblocked(self, session: Session, request: bytes) -> bool:
        loop, pause_s = asyncio.get_running_loop(), _CANCEL_AGAIN_S
        last = loop.time() + GIVE_UP_S
        await cancel(session, request)
        # One that comes before the server has begun with the statement does nothing: it is sent again.
        until = loop.time() + pause_s
        while session.core.is_blocked() and not session.is_closed:
            await asyncio.sleep(_CANCELLED_LOOK_S)
            if loop.time() > last:
                return False
            if loop.time() > until and session.core.is_blocked():
                await cancel(session, request)
                pause_s = min(pause_s * 2, _CANCEL_AGAIN_MAX_S)
                until = loop.time() + pause_s
        return True


def _read(last: asyncio.Future[object]) -> None:
    if not last.cancelled():
        last.exception()  # a cancel request may have hit it, and the session may be lost
