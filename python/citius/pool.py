"""Threads for handlers that block: a bounded queue in front of a bounded number of threads.

``BlockingPool.submit`` is what ``_core.Native`` calls on the reactor's thread: it never waits, a full
queue is an answer (``False``: 503). A handler runs in a copy of the context it was submitted in.
Threads are started when they are first needed. Nothing here touches a socket: answers go back through
``request._answer`` and ``request._fail``.
"""

from __future__ import annotations

import threading
from contextlib import suppress
from contextvars import copy_context
from queue import SimpleQueue
from time import monotonic
from typing import TYPE_CHECKING, Any

from citius._core import Response
from citius.errors import ServiceUnavailable

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from citius._core import Request, Stream


class BlockingPool:
    """At most ``threads_max`` threads; at most ``queue_max`` jobs wait for one of them."""

    def __init__(self, threads_max: int, queue_max: int) -> None:
        self._threads_max = threads_max
        self._queue_max = queue_max
        self._jobs: SimpleQueue[Callable[[], object] | None] = SimpleQueue()
        self._threads: list[threading.Thread] = []
        # Jobs taken in but not finished, running ones included; guarded by the lock, because
        # threads of the pool submit too (async code calls `run`, iterators come back as jobs).
        self._open = 0
        self._lock = threading.Lock()
        self._closed = False

    def submit(self, request: Request, handler: Callable[..., Any], args: tuple[Any, ...]) -> bool:
        """Call ``handler(*args)`` in a thread and answer ``request``; ``False`` if the queue is full."""
        context = copy_context()

        def job() -> None:
            try:
                answer = self._mark(context.run(handler, *args), context.run)
            except BaseException as error:
                request._fail(error)  # pyright: ignore[reportPrivateUsage]
            else:
                request._answer(answer)  # pyright: ignore[reportPrivateUsage]

        return self._put(job)

    def as_async(self, handler: Callable[[Request], Any]) -> Callable[[Request], Any]:
        """``handler`` as a coroutine function whose work is done in a thread."""

        async def in_thread(request: Request) -> Any:
            import asyncio

            loop = asyncio.get_running_loop()
            done: asyncio.Future[Any] = loop.create_future()
            context = copy_context()

            def settle(answer: Any, error: BaseException | None) -> None:
                if not done.done():  # the request may have been cancelled in the meantime
                    done.set_exception(error) if error else done.set_result(answer)

            def job() -> None:
                try:
                    answer = self._mark(context.run(handler, request), context.run)
                except BaseException as error:
                    outcome = (None, error)
                else:
                    outcome = (answer, None)
                with suppress(RuntimeError):  # the loop is gone, and so is the client
                    loop.call_soon_threadsafe(settle, *outcome)

            if not self._put(job):
                raise ServiceUnavailable(headers={"retry-after": "1"})
            return await done

        return in_thread

    def run_job(self, job: Callable[[], object]) -> bool:
        """Call ``job`` in a thread; ``False`` if the queue is full. ``job`` does not raise."""
        return self._put(job)

    def close(self, wait_s: float) -> bool:
        """Take no more jobs, let the queue run dry; ``False`` if that took longer than ``wait_s``."""
        with self._lock:
            self._closed = True
            threads = list(self._threads)
        for _ in threads:
            self._jobs.put(None)
        deadline = monotonic() + wait_s
        for thread in threads:
            thread.join(max(0.0, deadline - monotonic()))
        return not any(thread.is_alive() for thread in threads)

    def _put(self, job: Callable[[], object]) -> bool:
        with self._lock:
            if self._closed or self._open >= self._queue_max + self._threads_max:
                return False
            self._open += 1
            if len(self._threads) < min(self._open, self._threads_max):
                # Daemons: a handler that hangs must not keep the process from ending.
                thread = threading.Thread(
                    target=self._work, name=f"citius-blocking-{len(self._threads)}", daemon=True
                )
                self._threads.append(thread)
                thread.start()
        self._jobs.put(job)
        return True

    def _work(self) -> None:
        _local.in_pool = True
        while (job := self._jobs.get()) is not None:
            try:
                job()
            finally:
                with self._lock:
                    self._open -= 1
            del job  # no request outlives its answer in an idle thread

    def _mark(self, answer: Any, run: Callable[..., Any]) -> Any:
        """Have the iterator of a streamed answer driven in the pool, not on the reactor's thread."""
        if hasattr(answer, "__next__"):
            return Threaded(self, answer, run)
        if type(answer) is Response and hasattr(answer.body, "__next__"):
            answer.body = Threaded(self, answer.body, run)
        return answer


class Threaded:
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
        """Send everything to ``stream`` from a thread of the pool."""
        from citius._support import close, drive_in_thread

        if not self._pool.run_job(lambda: self._run(drive_in_thread, stream, self._iterator)):
            # The head is on its way, so 503 is no longer possible: break off visibly.
            stream.abort()
            close(self._iterator)


def in_pool() -> bool:
    """Whether the current thread may block."""
    return getattr(_local, "in_pool", False)


_local = threading.local()
