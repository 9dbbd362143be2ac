"""One connection and its thread: it takes calls from a queue, and from its owner while a transaction has it.

The connection is opened in the thread at the first call, and closed in it. It is closed, too, when a call or
a block may have changed more of it than its transaction (a pragma, an attached database, temporary tables);
the next call opens another one. ``current`` is the call that the
connection works on; it is read and changed under the engine's lock, so that an interrupt hits no other call.
"""

from __future__ import annotations

import contextlib
import sqlite3
from queue import SimpleQueue
from typing import TYPE_CHECKING, Any

from citius.sqlite.errors import (
    StatementRefused,
    TransactionOver,
    is_refused_write,
    statement_error,
)
from citius.sqlite.sessions import User
from citius.threads import Thread

if TYPE_CHECKING:
    from collections.abc import Callable

    from citius.sqlite.calls import ThreadCall, Work
    from citius.sqlite.engine import Engine
    from citius.sqlite.sessions import Session


class Lease:
    """A connection that one block has to itself, from the call that lends it to the end of the block.

    Attributes:
        queue: The block's calls; ``None`` ends the lease.
        has_begun: Whether its transaction was open.
        is_over: Set under the engine's lock; no call is queued then.
    """

    def __init__(self) -> None:
        self.queue: SimpleQueue[ThreadCall | None] = SimpleQueue()
        self.has_begun = self.is_over = False

    def give_back(self) -> None:
        """End it, behind the calls that are queued."""
        self.queue.put(None)

    def check(self, connection: Session) -> None:
        """Refuse a call behind the end of the transaction: it would be committed by itself.

        Raises:
            TransactionOver: SQLite has rolled the transaction back.
        """
        if self.has_begun and not connection.in_transaction:
            raise TransactionOver(
                "SQLite has rolled the transaction back, after a statement that failed for want of memory or "
                "disk, was interrupted, or said so (ON CONFLICT ROLLBACK); leave the block"
            )


class ConnectionThread(Thread):
    """A connection in a thread of its own.

    Args:
        engine: Whose it is.
        queue: Calls for any connection that reads it; ``None`` ends the thread.
        connect: Opens the connection; ``True`` for one that may write.
        restore: Undoes what a call has changed of a connection that cannot be closed without loss.
        may_write: Whether it may.
    """

    def __init__(
        self,
        engine: Engine,
        queue: SimpleQueue[ThreadCall | None],
        connect: Callable[[bool], Session],
        restore: Callable[[Session], None] | None,
        *,
        may_write: bool,
    ) -> None:
        super().__init__(name="citius.sqlite", daemon=True)
        self._engine, self._queue = engine, queue
        self._connect, self._restore = connect, restore
        self._may_write = may_write
        self.is_lent = False
        self.lease: Lease | None = None
        self._connection: Session | None = None
        self.current: ThreadCall | None = None

    def run(self) -> None:
        """Take calls until the queue says that there will be none."""
        while (call := self._queue.get()) is not None:
            self._execute(call)
        if self._connection is not None and self._may_write:
            with contextlib.suppress(sqlite3.Error):
                # What the planner knows of the tables, for the next time.
                self._connection.execute("PRAGMA optimize")
        self._close()

    def _close(self) -> None:
        with self._engine.lock:
            connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()

    @property
    def is_open(self) -> bool:
        """Whether it has its connection."""
        return self._connection is not None

    def interrupt(self) -> None:
        """Interrupt what the connection does; the engine's lock is held."""
        if self._connection is not None:
            self._connection.interrupt()

    def _execute(self, call: ThreadCall) -> None:
        if not self._engine.take(call, self):
            return
        if call.work is None:
            return self._lend(call)
        try:
            if self._connection is None:
                self._connection = self._open()
            call.put(self._work(call, call.work, self._connection))
        except sqlite3.Error as error:
            if is_refused_write(error) and self._engine.pass_to_writer(call, self):
                return
            call.put(None, statement_error(error))
        except BaseException as error:  # it belongs to the caller
            call.put(None, error)
        self._engine.done(call, self)

    def _work(self, call: ThreadCall, work: Work, connection: Session) -> Any:
        """Do it, and leave the connection as its next user expects it."""
        lease = call.lease
        connection.user = _user_of(call)
        if lease is not None:
            lease.check(connection)
            result = work(connection)
            lease.has_begun = lease.has_begun or connection.in_transaction
            return result
        try:
            result = work(connection)
        finally:
            was_left_open = self._clean(connection)
        if was_left_open:
            raise StatementRefused(
                "it left a transaction open, which has been rolled back: other requests use this connection; "
                "use `async with pool.transaction()`, or end the transaction in the same script"
            )
        return result

    def _clean(self, connection: Session) -> bool:
        """Make the connection fit for others; whether a transaction was open."""
        is_open, changes = connection.in_transaction, connection.has_changed
        connection.user, connection.has_changed = User.POOL, False
        if is_open:
            connection.rollback()
        if changes and self._restore is not None:
            self._restore(connection)
            connection.has_changed = False
        elif changes:
            self._close()
        return is_open

    def _open(self) -> Session:
        try:
            connection = self._connect(self._may_write)
        except BaseException:
            self._engine.note("connect_failed")
            raise
        # What the pool has set is what it is put back to.
        connection.has_changed = False
        self._engine.note("opened")
        return connection

    def _lend(self, lending: ThreadCall) -> None:
        """Serve one owner, who gets a lease, until its queue says that there is no more."""
        self.lease = lease = Lease()
        lending.put(lease)
        self._engine.done(lending, self)
        while (call := lease.queue.get()) is not None:
            self._execute(call)
        with self._engine.lock:
            lease.is_over = True
        while not lease.queue.empty():
            if (call := lease.queue.get()) is not None and self._engine.take(call, self):
                call.put(None, block_over())
                self._engine.done(call, self)
        if self._connection is not None:
            self._clean(self._connection)
        self.lease = None
        self.is_lent = False


def _user_of(call: ThreadCall) -> User:
    if call.lease is not None:
        return User.BLOCK
    return User.SCRIPT if call.owns else User.REQUEST


def block_over() -> TransactionOver:
    """What a statement raises that is awaited behind the block that made it."""
    return TransactionOver(
        "the block that made this statement has ended: await it within `async with … as tx`"
    )
