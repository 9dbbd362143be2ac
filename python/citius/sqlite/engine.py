"""The queues of an open pool, and the threads that read them: one connection that writes, others that read.

Statements that may only read go to any connection that reads, the others to the one that writes, since SQLite
has one writer at a time. Time and number of those that wait are bounded. A statement whose caller waits no
more is not begun, or is interrupted.
"""

from __future__ import annotations

import contextlib
import os
import threading
from queue import SimpleQueue
from typing import TYPE_CHECKING

from citius.observability.clients import measured
from citius.sqlite.calls import Outbox, State, ThreadCall
from citius.sqlite.errors import PoolClosed, PoolExhausted, SqliteError
from citius.sqlite.threads import ConnectionThread, block_over

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable

    from citius.observability.clients import Client
    from citius.sqlite.sessions import Session

# How often calls that have waited for too long are looked for, and what goes on is interrupted again.
_LOOK_EVERY_S = 0.1


class Engine:
    """Queues and threads.

    Args:
        loop: Where results are handed over.
        connect: Opens a connection, in its thread; ``True`` for one that may write.
        readers: Connections that only read; with 0 the one that writes does all.
        queue_max: Calls that may wait.
        wait_s: How long they may.
        client: What is measured.
        restore: Makes a connection what ``connect`` has opened, where closing it would lose the database.
    """

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        connect: Callable[[bool], Session],
        readers: int,
        queue_max: int,
        wait_s: float,
        client: Client | None = None,
        restore: Callable[[Session], None] | None = None,
    ) -> None:
        self.loop, self._queue_max, self._wait_s = loop, queue_max, wait_s
        self.lock = threading.Lock()
        self._outbox = Outbox(loop)
        self.writes: SimpleQueue[ThreadCall | None] = SimpleQueue()
        self.reads = SimpleQueue[ThreadCall | None]() if readers else self.writes
        self._writer = ConnectionThread(self, self.writes, connect, restore, may_write=True)
        self._readers = [
            ConnectionThread(self, self.reads, connect, restore, may_write=False)
            for _ in range(readers)
        ]
        # In their order; among them those that were taken since.
        self._waiting: list[ThreadCall] = []
        self.queued = 0
        self.metrics = None if client is None else measured(client, self._counts)
        self._is_closed = self._is_ended = self._is_looking = self._are_readers_released = False
        self._threads = [self._writer, *self._readers]
        self.process = os.getpid()
        """The process that has the threads."""
        for thread in self._threads:
            thread.start()

    # --- in the loop ---

    def submit(self, call: ThreadCall) -> None:
        """Put a call into its queue.

        Raises:
            PoolClosed: The pool is not open.
            PoolExhausted: Too many calls wait.
        """
        is_shared = call.queue is self.reads or call.queue is self.writes
        if self._is_ended or (self._is_closed and is_shared):
            raise PoolClosed("the pool is closed")
        if is_shared:
            if self.queued >= self._queue_max:
                self._count("refused")
                raise PoolExhausted(f"{self._queue_max} statements wait for the database already")
            call.expires_at = self.loop.time() + self._wait_s
            call.is_counted = True
            with self.lock:
                self.queued += 1
            self._waiting.append(call)
            self._look_later()
        if call.lease is None:
            call.state = State.QUEUED
            call.queue.put(call)
            return
        with self.lock:
            is_over = call.lease.is_over or (call.block is not None and call.block.is_over)
            if not is_over:
                call.state = State.QUEUED
                call.queue.put(call)
        if is_over:
            raise block_over()

    def submit_from_elsewhere(self, call: ThreadCall) -> None:
        """Put a call of another loop into its queue; an error is reported to that loop, too."""
        if call.state is not State.QUEUED:  # its caller has left
            return
        try:
            self.submit(call)
        except SqliteError as error:
            call.state = State.RUNNING  # for no thread
            call.put(None, error)
            call.settle()

    def abandon(self, call: ThreadCall) -> None:
        """The caller waits no more."""
        with self.lock:
            if call.state is State.QUEUED:
                self._uncount(call)
            elif call.state is not State.RUNNING:
                return
            was_queued, call.state = call.state is State.QUEUED, State.OVER
        if was_queued and self.metrics is not None:
            # No thread hands it back.
            with contextlib.suppress(RuntimeError):
                self.loop.call_soon_threadsafe(call.measure, "cancelled")
        self._interrupt(call)

    def _interrupt(self, call: ThreadCall) -> None:
        with self.lock:
            thread = next((thread for thread in self._threads if thread.current is call), None)
            if thread is not None:
                thread.interrupt()
        if thread is not None:
            # What has not begun when it is interrupted goes on. This may be another reactor's thread.
            with contextlib.suppress(RuntimeError):  # the loop is closed: no code waits
                self.loop.call_soon_threadsafe(
                    self.loop.call_later, _LOOK_EVERY_S, self._interrupt, call
                )

    def _look_later(self) -> None:
        if not self._is_looking:
            self._is_looking = True
            self.loop.call_later(min(_LOOK_EVERY_S, self._wait_s / 4), self._look)

    def _look(self) -> None:
        """End calls that have waited for too long."""
        self._is_looking = False
        now = self.loop.time()
        self._waiting = [call for call in self._waiting if call.state is State.QUEUED]
        for call in self._waiting:
            if call.expires_at <= now:
                self._count("refused")
                self._end(call, self._exhausted(call))
        if self._waiting:
            self._look_later()

    def _exhausted(self, call: ThreadCall) -> PoolExhausted:
        message = f"waited {self._wait_s:g} s for the database in vain"
        if call.queue is self.writes and self._writer.is_lent:
            message += (
                "; a transaction has the connection that writes: in its block use the transaction's methods, "
                "not those of the pool"
            )
        return PoolExhausted(message)

    def _end(self, call: ThreadCall, error: BaseException) -> None:
        """End a call that waits."""
        with self.lock:
            if call.state is not State.QUEUED:
                return
            self._uncount(call)
            call.state = State.RUNNING  # for no thread
        call.put(None, error)
        call.settle()

    def _uncount(self, call: ThreadCall) -> None:
        if call.is_counted:
            call.is_counted = False
            self.queued -= 1

    def _counts(self) -> tuple[int, int, int]:
        """Connections in use, idle ones, and what waits."""
        used = sum(one.current is not None or one.is_lent for one in self._threads)
        is_open = sum(one.is_open for one in self._threads)
        return used, max(0, is_open - used), self.queued

    def _count(self, counter: str) -> None:
        if self.metrics is not None:
            self.metrics.count(counter)

    # --- in the threads ---

    def note(self, counter: str) -> None:
        """Count one, on the loop."""
        if self.metrics is not None:
            with contextlib.suppress(RuntimeError):  # the loop is closed
                self.loop.call_soon_threadsafe(self.metrics.count, counter)

    def take(self, call: ThreadCall, thread: ConnectionThread) -> bool:
        """Whether a thread is to do a call that it has from its queue."""
        with self.lock:
            if call.state is not State.QUEUED:
                return False
            self._uncount(call)
            call.state = State.RUNNING
            if call.work is None:
                thread.is_lent = True
            else:
                thread.current = call
            return True

    def done(self, call: ThreadCall, thread: ConnectionThread) -> None:
        """The call's result is there."""
        with self.lock:
            thread.current = None
        self._outbox.post(call)

    def pass_to_writer(self, call: ThreadCall, thread: ConnectionThread) -> bool:
        """Give a call that turns out to write to the connection that may; false if there is no other."""
        if call.queue is not self.reads or self.reads is self.writes:
            return False
        with self.lock:
            thread.current = None
        with contextlib.suppress(RuntimeError):  # the loop is closed: no code waits
            self.loop.call_soon_threadsafe(self._submit_again, call)
        return True

    def _submit_again(self, call: ThreadCall) -> None:
        if call.state is not State.RUNNING:  # its caller has left
            return
        call.queue = self.writes
        try:
            self.submit(call)
        except SqliteError as error:
            call.put(None, error)
            call.settle()

    # --- the end ---

    def stop_taking(self) -> None:
        """Refuse further calls, but for those of transactions that are open."""
        self._is_closed = True

    @property
    def is_busy(self) -> bool:
        """Whether calls wait or are done, or a transaction is open."""
        return self.queued > 0 or any(
            thread.current is not None or thread.is_lent for thread in self._threads
        )

    def interrupt_all(self) -> None:
        """End all that waits, and interrupt what is done."""
        self._is_ended = True
        for call in self._waiting:
            self._end(call, PoolClosed("the pool is closed"))
        self._waiting.clear()
        self._interrupt_threads()

    def leave(self) -> None:
        """End all threads without waiting for their statements: the event loop of the callers has ended."""
        self._is_ended = True
        self._waiting.clear()
        self._interrupt_threads()
        self.release()

    def _interrupt_threads(self) -> None:
        for thread in self._threads:
            if (lease := thread.lease) is not None:
                lease.give_back()
            with self.lock:
                thread.interrupt()

    def end(self) -> bool:
        """Have the threads end, the one that writes last, which removes the log; whether they have."""
        if not self._are_readers_released:
            self._are_readers_released = True
            for _ in self._readers:
                self.reads.put(None)
        if any(thread.is_alive() for thread in self._readers):
            return False
        self.release()
        return not self._writer.is_alive()

    def release(self) -> None:
        """Have all threads end, and wait for none."""
        self._are_readers_released = True
        for _ in self._readers:
            self.reads.put(None)
        self.writes.put(None)
