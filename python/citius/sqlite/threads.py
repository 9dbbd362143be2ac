"""One connection and its thread: it takes calls from a queue, and from its owner while a transaction has it.

The connection is opened in the thread at the first call, and closed in it. ``current`` is the call that the
connection works on; it is read and changed under the engine's lock, so that an interrupt hits no other call.
"""

from __future__ import annotations

import contextlib
import sqlite3
import threading
from queue import SimpleQueue
from typing import TYPE_CHECKING

from citius.sqlite.errors import is_refused_write, statement_error

if TYPE_CHECKING:
    from collections.abc import Callable

    from citius.sqlite.calls import ThreadCall
    from citius.sqlite.engine import Engine


class ConnectionThread(threading.Thread):
    """A connection in a thread of its own.

    Args:
        engine: Whose it is.
        queue: Calls for any connection that reads it; ``None`` ends the thread.
        connect: Opens the connection; ``True`` for one that may write.
        may_write: Whether it may.
    """

    def __init__(
        self,
        engine: Engine,
        queue: SimpleQueue[ThreadCall | None],
        connect: Callable[[bool], sqlite3.Connection],
        *,
        may_write: bool,
    ) -> None:
        super().__init__(name="citius.sqlite", daemon=True)
        self._engine, self._queue, self._connect = engine, queue, connect
        self._may_write = may_write
        self.is_lent = False
        self._connection: sqlite3.Connection | None = None
        self.current: ThreadCall | None = None
        self.owned: SimpleQueue[ThreadCall | None] = SimpleQueue()

    def run(self) -> None:
        """Take calls until the queue says that there will be none."""
        while (call := self._queue.get()) is not None:
            self._execute(call)
        with self._engine.lock:
            connection, self._connection = self._connection, None
        if connection is not None:
            if self._may_write:
                with contextlib.suppress(sqlite3.Error):
                    # What the planner knows of the tables, for the next time.
                    connection.execute("PRAGMA optimize")
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
            call.put(call.work(self._connection))
        except sqlite3.Error as error:
            if is_refused_write(error) and self._engine.pass_to_writer(call, self):
                return
            call.put(None, statement_error(error))
        except BaseException as error:  # it belongs to the caller
            call.put(None, error)
        self._engine.done(call, self)

    def _open(self) -> sqlite3.Connection:
        try:
            connection = self._connect(self._may_write)
        except BaseException:
            self._engine.note("connect_failed")
            raise
        self._engine.note("opened")
        return connection

    def _lend(self, lease: ThreadCall) -> None:
        """Serve one owner, who gets this thread, until its queue says that there is no more."""
        lease.put(self)
        self._engine.done(lease, self)
        while (call := self.owned.get()) is not None:
            self._execute(call)
        if self._connection is not None and self._connection.in_transaction:
            self._connection.rollback()
        self.is_lent = False
