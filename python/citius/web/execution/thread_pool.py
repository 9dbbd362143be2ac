"""Threads for handlers that block: a bounded queue in front of a bounded number of threads.

``BlockingPool.submit`` is what ``_core.Native`` calls on the reactor's thread: it never waits, a full
queue is an answer (``False``: 503). A handler runs in a copy of the context it was submitted in.
Threads are started when they are first needed. Nothing here touches a socket: answers go back through
``request._respond`` and ``request._fail``.
"""

from __future__ import annotations

import os
import threading
from collections import deque
from contextlib import suppress
from contextvars import copy_context
from queue import SimpleQueue
from time import monotonic, sleep
from typing import TYPE_CHECKING, Any, cast

from citius._core import Response
from citius.coroutines import contained
from citius.errors import ServiceUnavailable
from citius.observability import logging
from citius.process.forks import end_child
from citius.threads import Thread
from citius.waiting import in_pool, on_thread, release_slot
from citius.web.responses.streaming import Driven, close, drive_in_thread

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from citius._core import Request, Stream


class BlockingPool:
    """At most ``threads_max`` threads; at most ``queue_max`` jobs wait for one of them."""

    def __init__(self, threads_max: int, queue_max: int) -> None:
        self._threads_max = threads_max
        self._queue_max = queue_max
        self._jobs: SimpleQueue[Callable[[], None] | None] = SimpleQueue()
        # When the jobs in the queue were put there, oldest first.
        self._put_at: deque[float] = deque()
        self._threads: list[threading.Thread] = []
        # Both are guarded by the lock. Jobs whose work is not done, running ones included: this is
        # bounded. It goes down before the client can know of it: who has an answer finds room.
        self._open = 0
        # The same until the thread is back for another job: this decides about new threads.
        self._unfinished = 0
        # Of these, running ones that nothing waits for any more: others take their places.
        self._abandoned = 0
        self._lock = threading.Lock()
        self._closed = False
        # Tasks whose callers may have been cancelled.
        self._needed: set[Any] = set()

    def submit(self, request: Request, handler: Callable[..., Any], args: tuple[Any, ...]) -> bool:
        """Call ``handler(*args)`` in a thread and answer ``request``; ``False`` if the queue is full."""
        context = copy_context()

        def job() -> None:
            if not request._is_open():  # pyright: ignore[reportPrivateUsage]
                return  # the client has left while the request was queued
            try:
                answer = self._mark(context.run(handler, *args), context.run)
            except BaseException as error:
                release_slot()
                request._fail(error)  # pyright: ignore[reportPrivateUsage]
            else:
                if not _is_streamed(answer):  # to drive that is work, and done right here
                    release_slot()
                request._respond(answer)  # pyright: ignore[reportPrivateUsage]

        return self._put(job)

    def as_async(self, handler: Callable[[Request], Any]) -> Callable[[Request], Any]:
        """``handler`` as a coroutine function whose work is done in a thread."""

        async def in_thread(request: Request) -> Any:
            context = copy_context()
            return await self.run(lambda: self._mark(context.run(handler, request), context.run))

        return in_thread

    async def run(self, work: Callable[[], Any], *, is_needed: bool = False) -> Any:
        """What ``work`` returns, which is called in a thread; ``is_needed``: even if the queue is full.

        Raises:
            ServiceUnavailable: The queue is full.
        """
        import asyncio

        loop = asyncio.get_running_loop()
        done: asyncio.Future[tuple[Any, BaseException | None]] = loop.create_future()
        home = os.getpid()
        runs = _Run(self)

        def settle(answer: Any, error: BaseException | None) -> None:
            if not done.done():  # the request may have been cancelled in the meantime
                # Not as the future's exception: that may not be a StopIteration.
                done.set_result((answer, error))

        def job() -> None:
            if done.done():
                return  # the client has left while the request was queued
            if not runs.begin():
                return
            outcome: tuple[Any, BaseException | None]
            try:
                outcome = work(), None
            except BaseException as error:
                end_child(home, error)
                outcome = None, error
            runs.end()
            release_slot()
            with suppress(RuntimeError):  # the loop is gone, and so is the client
                loop.call_soon_threadsafe(settle, *outcome)
            del outcome  # the error's traceback leads back here

        if not self._put(job, is_needed=is_needed):
            raise ServiceUnavailable(headers={"retry-after": "1"})
        try:
            answer, error = await done
        finally:
            # A task that is cancelled before it waits for the future does not cancel it; the job asks it.
            if done.cancel() or done.cancelled():
                runs.abandon()
        if error is None:
            return answer
        try:
            raise error
        finally:
            del error  # its traceback leads back here

    async def run_needed(self, work: Callable[[], Any]) -> Any:
        """What ``work`` returns, queued even beyond the limit: ends of dependencies are always called."""
        import asyncio

        if self._closed:
            return work()
        task = asyncio.get_running_loop().create_task(contained(self.run, work, is_needed=True))
        self._needed.add(task)
        task.add_done_callback(self._needed.discard)
        return await asyncio.shield(task)

    def run_job(self, job: Callable[[], None]) -> bool:
        """Call ``job`` in a thread; ``False`` if the queue is full."""
        return self._put(job)

    def waiting(self) -> tuple[int, float]:
        """Jobs that no thread has taken yet, and for how long the oldest of them has waited."""
        try:
            put_at = self._put_at[0]
        except IndexError:
            return 0, 0.0
        return len(self._put_at), monotonic() - put_at

    async def ready(self) -> None:
        """The readiness check: whether threads take jobs.

        Raises:
            RuntimeError: A job waits for a thread for long, because handlers hold all of them.
        """
        count, age_s = self.waiting()
        if age_s > STUCK_S:
            raise RuntimeError(
                f"blocking handlers hold all {self._threads_max} threads: {count} requests wait, the first "
                f"for {age_s:.0f} s"
            )

    def close(self, wait_s: float) -> bool:
        """Take no more jobs, let the queue run dry; ``False`` if that took longer than ``wait_s``.

        May be called again to go on waiting.
        """
        with self._lock:
            if not self._closed:
                self._closed = True
                for _ in self._threads:
                    self._jobs.put(None)
        deadline = monotonic() + wait_s
        for thread in list(self._threads):
            thread.join(max(0.0, deadline - monotonic()))
        # Not whether the threads have ended: idle ones may need a moment, and no request waits for them.
        with self._lock:
            return self._unfinished == 0

    def _put(self, job: Callable[[], None], *, is_needed: bool = False) -> bool:
        with self._lock:
            threads_max = self._threads_allowed()
            is_full = self._open >= self._queue_max + threads_max
            if self._closed or (is_full and not is_needed):
                return False
            threads_wanted = min(self._unfinished + 1, threads_max)
            if len(self._threads) < threads_wanted and not self._start_thread():
                return False
            self._open += 1
            self._unfinished += 1
            # Under the lock: behind the marks that `close` puts there no thread would take it.
            self._put_at.append(monotonic())
            self._jobs.put(job)
        return True

    def _threads_allowed(self) -> int:
        """Threads there may be: one more for each that an abandoned job holds, up to twice as many."""
        return self._threads_max + min(self._abandoned, self._threads_max)

    def _count_abandoned(self, change: int) -> None:
        with self._lock:
            self._abandoned += change
            # Jobs that wait already have had no reason to start a thread.
            waits = self._unfinished > len(self._threads) and not self._closed
            if change > 0 and waits and len(self._threads) < self._threads_allowed():
                self._start_thread()

    def _is_one_too_many(self) -> bool:
        """Whether the current thread stood in for one that is back; it has left the pool then."""
        with self._lock:
            if len(self._threads) <= self._threads_allowed() or self._closed:
                return False
            self._threads.remove(threading.current_thread())
            return True

    def _start_thread(self) -> bool:
        """Whether there is a thread to take a job, a new one if the system has one to give."""
        # Daemons: a handler that hangs must not keep the process from ending.
        thread = Thread(target=self._run, name=f"citius-blocking-{len(self._threads)}", daemon=True)
        try:
            thread.start()
        except RuntimeError as error:
            logging.warning(f"no thread for a blocking handler: {error}")
            return bool(self._threads)
        self._threads.append(thread)
        return True

    def _run(self) -> None:
        """Do jobs until the pool is closed, whatever goes wrong between two of them."""
        while True:
            try:
                return self._work()
            except BaseException as error:
                self._report(error)

    def _work(self) -> None:
        on_thread.pool = self
        home = os.getpid()
        while (job := self._jobs.get()) is not None:
            self._put_at.popleft()
            on_thread.has_slot = True
            try:
                job()
            except BaseException as error:
                # A thread that ended would leave a gap for good.
                end_child(home, error)
                self._report(error)
            end_child(home)
            while not self._finish_job():
                sleep(_NO_MEMORY_S)
            del job  # no request outlives its answer in an idle thread
            if len(self._threads) > self._threads_max and self._is_one_too_many():
                return

    def _report(self, error: BaseException) -> None:
        try:
            logging.log_exception("a job in a thread failed", error)
        except BaseException:
            return  # most likely there is no memory to log with

    def _finish_job(self) -> bool:
        """Count the job as done; ``False`` if there is no memory even for that."""
        release_slot()
        try:
            with self._lock:
                self._unfinished -= 1
        except MemoryError:
            return False
        return True

    def _release_slot(self) -> None:
        with self._lock:
            self._open -= 1

    def _mark(self, answer: Any, run: Callable[..., Any]) -> Any:
        """Have the iterator of a streamed answer driven in the pool, not on the reactor's thread."""
        if hasattr(answer, "__next__"):
            return Threaded(self, answer, run)
        if type(answer) is Response and hasattr(answer.body, "__next__"):
            answer.body = Threaded(self, cast("Iterator[bytes | str]", answer.body), run)
        return answer


class _Run:
    """Whether the job of a request runs, and whether its request still waits for it."""

    __slots__ = ("_is_abandoned", "_is_running", "_lock", "_pool")

    def __init__(self, pool: BlockingPool) -> None:
        self._pool = pool
        self._lock = threading.Lock()
        self._is_running = self._is_abandoned = False

    def begin(self) -> bool:
        """Whether the job is still wanted."""
        with self._lock:
            self._is_running = not self._is_abandoned
            return self._is_running

    def end(self) -> None:
        with self._lock:
            self._is_running = False
            was_abandoned = self._is_abandoned
        if was_abandoned:
            self._pool._count_abandoned(-1)  # pyright: ignore[reportPrivateUsage]

    def abandon(self) -> None:
        """The request is over: it took too long, or its client has left."""
        with self._lock:
            self._is_abandoned = True
            if not self._is_running:
                return
        self._pool._count_abandoned(1)  # pyright: ignore[reportPrivateUsage]


class Threaded(Driven):
    """An iterator that may block, and the pool it has to be driven in."""

    __slots__ = ("_iterator", "_pool", "_run")

    def __init__(
        self, pool: BlockingPool, iterator: Iterator[bytes | str], run: Callable[..., Any]
    ) -> None:
        self._pool = pool
        self._iterator = iterator
        self._run = run

    def __iter__(self) -> Threaded:
        return self

    def __next__(self) -> bytes | str:
        return next(self._iterator)

    def drive(self, stream: Stream) -> None:
        """Send everything to ``stream`` from a thread of the pool: this one, if it is one."""
        if in_pool():
            # To queue up again would be to lose the rest of the answer to a full queue.
            self._run(drive_in_thread, stream, self._iterator)
        elif not self._pool.run_job(lambda: self._run(drive_in_thread, stream, self._iterator)):
            # The head is on its way, so 503 is no longer possible: break off visibly.
            stream.abort()
            close(stream, self._iterator)


def _is_streamed(answer: Any) -> bool:
    return type(answer) is Threaded or (type(answer) is Response and type(answer.body) is Threaded)


STUCK_S = 30.0
"""Seconds that a job may wait for a thread until the server is not ready."""

# How long a thread waits for memory.
_NO_MEMORY_S = 0.01
