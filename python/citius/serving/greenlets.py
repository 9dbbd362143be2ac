"""Calls in greenlets, for the gevent host.

The reactor's turn calls the application in a greenlet that is reused. A call that does not wait completes
before the turn continues, which costs two switches; a call that waits returns to the turn and responds
later, as a call in a thread would.
"""

from __future__ import annotations

from contextvars import copy_context
from functools import partial
from typing import TYPE_CHECKING, Any, cast

from citius.errors import ConfigError
from citius.observability import logging
from citius.web.execution.thread_pool import Threaded

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from citius._core import Request, Stream, WsgiJob

# Idle greenlets that are kept for later requests; each has a few kilobytes of stack.
_IDLE_MAX = 256


class Greenlets:
    """Runs calls in greenlets; a call that does not wait leaves its greenlet to the next one.

    Each method says who calls it: the hub (the reactor in its turn), or a greenlet of this pool.
    """

    def __init__(self) -> None:
        import gevent
        from gevent.hub import Waiter
        from greenlet import GreenletExit, getcurrent, greenlet

        self._hub: Any = gevent.get_hub()
        self._greenlet: Any = greenlet
        self._waiter: Any = Waiter
        self._current: Callable[[], Any] = getcurrent
        self._exit = GreenletExit
        self._idle: list[Any] = []
        # Every request starts with a copy of the context of the start-up hooks.
        self._context = copy_context()
        self.open = 0

    def run(self, job: Callable[[Kill], object]) -> None:
        """Call ``job(kill)`` until it waits or returns (on the hub)."""
        worker = self._idle.pop() if self._idle else self._greenlet(self._work, self._hub)
        worker.gr_context = self._context.copy()
        worker.switch(job)

    def spawn(self, job: WsgiJob) -> None:
        """Run a WSGI call (on the hub)."""
        self.run(job.run)

    def wait(self, job: WsgiJob) -> None:
        """Wait for the next event of a WSGI call (in its greenlet)."""
        self.wait_for(job.on_change)

    def wait_for(self, register: Callable[[Callable[[], object]], None]) -> None:
        """Wait until the callback that is handed to ``register`` is called (in a greenlet)."""
        waiter = self._waiter(self._hub)
        register(partial(waiter.switch, None))
        waiter.get()

    def is_exit(self, error: BaseException) -> bool:
        """Whether ``error`` is the exception that ends greenlets."""
        return isinstance(error, self._exit)

    def is_on_hub(self) -> bool:
        """Whether this is the hub's greenlet, where waiting is impossible."""
        return self._current() is self._hub

    def _work(self, job: Callable[[Kill], object] | None) -> None:
        me = self._current()
        while job is not None:
            self.open += 1
            kill = Kill(partial(me.throw, self._exit))
            try:
                job(kill)
            except self._exit:
                pass
            except BaseException as error:
                logging.log_exception("a greenlet failed", error)
            finally:
                kill.is_over = True
                self.open -= 1
            # An idle greenlet must not keep the last request alive.
            job = None
            if len(self._idle) >= _IDLE_MAX:
                return
            self._idle.append(me)
            job = self._hub.switch()


class Kill:
    """Ends a call whose client has disconnected, unless it is complete (on the hub)."""

    __slots__ = ("_throw", "is_over")

    def __init__(self, throw: Callable[[], object]) -> None:
        self._throw = throw
        self.is_over = False

    def __call__(self) -> None:
        """End it."""
        if not self.is_over:
            self._throw()

    # The extension calls `cancel` on the object of a request, which is a task or this.
    cancel = __call__


class GreenletPool:
    """What ``pool.BlockingPool`` is for threads, for ``def`` handlers under gevent: nothing queues."""

    def __init__(self) -> None:
        from citius import waiting

        self._greenlets = Greenlets()
        # Handlers that read the request body in pieces wait in their greenlets.
        waiting.wait_here = self._wait_if_possible

    def submit(self, request: Request, handler: Callable[..., Any], args: tuple[Any, ...]) -> bool:
        """Call ``handler(*args)`` in a greenlet and respond to ``request`` (on the hub)."""

        def job(kill: Kill) -> None:
            request._set_task(kill)  # pyright: ignore[reportPrivateUsage]
            try:
                answer = self._mark(handler(*args))
            except BaseException as error:
                if self._greenlets.is_exit(error) and not request._is_open():  # pyright: ignore[reportPrivateUsage]
                    return  # it was told so
                request._fail(error)  # pyright: ignore[reportPrivateUsage]
            else:
                request._respond(answer)  # pyright: ignore[reportPrivateUsage]

        self._greenlets.run(job)
        return True

    def as_async(self, handler: Callable[[Request], Any]) -> Callable[[Request], Any]:
        """Raise: a coroutine would need asyncio."""
        raise ConfigError("--loop gevent runs no coroutines; write the middleware as `def`")

    def close(self, wait_s: float) -> bool:
        """Whether no handler is running; does not wait."""
        return self._greenlets.open == 0

    def waiting(self) -> tuple[int, float]:
        """How many calls wait for a greenlet, and for how long: none does."""
        return 0, 0.0

    def wait_for(self, register: Callable[[Callable[[], object]], None]) -> None:
        """Wait for a callback in one of its greenlets."""
        self._greenlets.wait_for(register)

    def _wait_if_possible(self, register: Callable[[Callable[[], object]], None]) -> bool:
        if self._greenlets.is_on_hub():
            return False
        self.wait_for(register)
        return True

    def drive(self, stream: Stream, iterator: Iterator[bytes | str]) -> None:
        """Send what ``iterator`` yields, in this greenlet or in another."""
        from citius.web.responses.streaming import drive_in_thread

        if self._greenlets.is_on_hub():
            self._greenlets.run(lambda kill: drive_in_thread(stream, iterator, self.wait_for))
        else:
            drive_in_thread(stream, iterator, self.wait_for)

    def _mark(self, answer: Any) -> Any:
        from citius._core import Response

        if hasattr(answer, "__next__"):
            return _Driven(self, answer)
        if type(answer) is Response and hasattr(answer.body, "__next__"):
            answer.body = _Driven(self, cast("Iterator[bytes | str]", answer.body))
        return answer


class _Driven(Threaded):
    """An iterator that may wait in a greenlet."""

    __slots__ = ("_greenlets",)

    def __init__(self, pool: GreenletPool, iterator: Iterator[bytes | str]) -> None:
        super().__init__(None, iterator, _call)  # pyright: ignore[reportArgumentType]
        self._greenlets = pool

    def drive(self, stream: Stream) -> None:
        self._greenlets.drive(stream, self._iterator)


def _call(function: Callable[..., Any], *args: Any) -> Any:
    return function(*args)
