"""Goroutines and channels: ``go``, ``chan``, ``select``, ``sleep``, ``after``, ``WaitGroup``.

    from citius.go import chan, go

    squares = chan()

    def produce() -> None:
        with squares:
            for n in range(3):
                squares.send(n * n)

    go(produce)
    assert list(squares) == [0, 1, 4]

One kind of channel serves gevent's greenlets (which switch), plain threads (which block, without the
GIL) and coroutines, and connects them. On the thread of a running asyncio loop every operation that may
wait is awaited: ``value, ok = await channel.recv()``, ``async for value in channel``. Elsewhere the same
calls block; in a handler with ``serial=True`` others are served meanwhile.

Channels are ``citius._core.Chan``; here is what starts goroutines and what keeps time.
"""

# pyright: reportPrivateUsage=false
# The functions that start goroutines are theirs as much as the class is.
from __future__ import annotations

import logging
import sys
import threading
import time
from contextvars import copy_context
from heapq import heappop, heappush
from typing import (
    TYPE_CHECKING,
    Any,
    Generic,
    NamedTuple,
    Never,
    ParamSpec,
    TypeVar,
    cast,
    overload,
)

from citius._core import Chan, WaitGroup, _whereabouts, select, share
from citius.errors import ChannelClosed, ChannelMisuse, Deadlock
from citius.threads import Thread

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Coroutine, Generator

__all__ = [
    "Chan",
    "ChannelClosed",
    "ChannelMisuse",
    "Deadlock",
    "Goroutine",
    "Selected",
    "WaitGroup",
    "after",
    "chan",
    "go",
    "select",
    "share",
    "sleep",
]

_T = TypeVar("_T")
_P = ParamSpec("_P")


def _log() -> logging.Logger:
    # The server's own logging, if there is a server: what the application configures does not silence it.
    server = sys.modules.get("citius.observability.logging")
    return logging.getLogger("citius.go") if server is None else server.child("go")


class Selected(NamedTuple):
    """What a ``select`` came to. Awaiting it is allowed, and gives itself.

    Attributes:
        case: Index of the case; ``None``: the default.
        value: What was received.
        ok: Whether it was a value: ``False`` when the channel is closed and empty, and for the default.
    """

    case: int | None
    value: Any
    ok: bool

    def __await__(self) -> Generator[object, None, Selected]:
        """``await select(…, default=True)`` need not differ from the others."""
        return self
        yield  # pyright: ignore[reportUnreachable]  # it makes a generator of this


def chan(n: int = 0, *, type: Any = None) -> Chan[Any]:
    """Make a channel with room for ``n`` values; without room every send waits for its receiver.

    Args:
        n: Values that it holds while no receiver waits.
        type: What its values are, if compiled code uses it too: ``int`` (64 bits), ``float``, ``bool``,
            ``bytes``, ``NoneType``, a format of ``struct`` (values are tuples, or one value) or a numpy
            dtype (values are one-dimensional arrays, which are copied). Without it they are objects.

    Raises:
        ValueError: ``n`` is negative.
        TypeError: There is no such type of values.
    """
    return Chan(n, type)


class Goroutine(Generic[_T]):
    """What ``go`` has started: something to be joined, or awaited, or left alone."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._over: Chan[Any] = Chan()
        self._result: _T | None = None
        self._error: BaseException | None = None
        self._cancel: Callable[[], object] | None = None

    @property
    def done(self) -> bool:
        """Whether it has ended."""
        return self._over.closed

    def join(self) -> _T:
        """Wait for the end; the result of the function.

        Raises:
            ChannelMisuse: On the thread of a running loop: ``await`` the goroutine there.
            BaseException: What the function raised.
        """
        if not self.done and _whereabouts() == "loop":
            raise ChannelMisuse(
                "join() would stop the event loop of this thread: use `await` on the goroutine (in "
                "`async def`), or add serial=True to the handler (a `def`)"
            )
        if not self.done:
            self._over.recv()
        return self._conclude()

    def __await__(self) -> Generator[object, object, _T]:
        """The result of the function, or what it raised."""
        if not self.done:
            yield from cast("Awaitable[Any]", self._over.recv()).__await__()
        return self._conclude()

    def cancel(self) -> bool:
        """Ask a task or a greenlet to end, by an exception at the place where it waits.

        Returns:
            ``False`` for a thread, which cannot be interrupted, and when it has ended.
        """
        if self._cancel is None or self.done:
            return False
        self._cancel()
        return True

    def __repr__(self) -> str:
        return f"<Goroutine {self._name}, {'done' if self.done else 'running'}>"

    def _conclude(self) -> _T:
        if self._error is not None:
            raise self._error
        return cast("_T", self._result)

    def _succeed(self, result: _T) -> None:
        self._result = result
        self._over.close()

    def _fail(self, error: BaseException) -> None:
        """Keep the exception for `join`, and report it now: `join` may never be called."""
        self._error = error
        if not _is_wanted(error):
            _log().error("goroutine %s raised", self._name, exc_info=error)
        self._over.close()

    def _run(self, function: Callable[[], _T]) -> None:
        try:
            self._succeed(function())
        except BaseException as error:
            self._fail(error)


@overload
def go(
    f: Callable[_P, Coroutine[object, Never, _T]], /, *args: _P.args, **kwargs: _P.kwargs
) -> Goroutine[_T]: ...
@overload
def go(f: Callable[_P, _T], /, *args: _P.args, **kwargs: _P.kwargs) -> Goroutine[_T]: ...
def go(f: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Goroutine[Any]:
    """Start ``f(*args, **kwargs)`` beside the caller, with a copy of its context variables.

    A greenlet in a serial handler and where gevent's hub is, a task for an ``async def`` where a loop runs,
    otherwise a daemon thread (also for a plain function where a loop runs: it may block). An exception is
    logged with its traceback at once, as a panic is printed, and raised again by ``join`` or ``await``.

    Raises:
        TypeError: ``f`` cannot be called, or is an ``async def`` and there is no loop here.
    """
    if not callable(f):
        raise TypeError(
            f"go takes a function and its arguments, go(f, 1, 2), not what it returns: got {f!r}"
        )
    goroutine: Goroutine[Any] = Goroutine(getattr(f, "__qualname__", None) or repr(f))
    place = _place()
    if _is_async(f):
        if place not in ("loop", "serial"):
            f_name = goroutine._name
            raise TypeError(
                f"go({f_name}) needs a running asyncio loop, for it is an `async def`; here start a "
                f"plain function, or go(asyncio.run, {f_name}())"
            )
        _start_task(goroutine, f(*args, **kwargs))
        return goroutine
    if place == "serial":
        from citius.serial import carried

        _start_task(goroutine, carried(f)(*args, **kwargs))
        return goroutine
    context = copy_context()

    def work() -> Any:
        return f(*args, **kwargs)

    if place == "hub":
        _start_greenlet(goroutine, work)
    else:
        thread = Thread(
            target=context.run, args=(goroutine._run, work), name=f"go {goroutine._name}"
        )
        thread.daemon = True  # as in Go, the program ends with its main function
        thread.start()
    return goroutine


def sleep(seconds: float) -> Awaitable[None]:
    """Wait. Other greenlets, threads and (where it is awaited) tasks run meanwhile.

    Raises:
        ValueError: ``seconds`` is not a number (``nan``).
    """
    _check_time(seconds)
    place = _place()
    if place in ("loop", "serial"):
        from asyncio import sleep as asleep

        if place == "loop":
            awaitable = asleep(seconds)
            awaitable.__qualname__ = _SLEEP  # of Python's warning, if it is never awaited
            return awaitable
        from citius.serial import park

        park(asleep(seconds))
        return _NOTHING
    if place == "hub":
        import gevent

        gevent.sleep(seconds)
    else:
        time.sleep(min(max(seconds, 0), _SLEEP_S_MAX))
    return _NOTHING


def after(seconds: float) -> Chan[float]:
    """Make a channel that is sent the time (``time.time()``) when ``seconds`` have passed.

    The clock is that of the place: the running loop, the hub, or a thread of its own. ``inf`` is never.

    Raises:
        ValueError: ``seconds`` is not a number (``nan``).
    """
    _check_time(seconds)
    channel: Chan[float] = Chan(1)
    if seconds == float("inf"):
        return channel

    def fire() -> None:
        select((channel, time.time()), default=True)

    place = _place()
    if place in ("loop", "serial"):
        from asyncio import get_running_loop

        get_running_loop().call_later(seconds, fire)
    elif place == "hub":
        from gevent import get_hub

        timer: Any = get_hub().loop.timer(max(seconds, 0))

        def fire_and_close() -> None:
            timer.close()
            fire()

        timer.start(fire_and_close)
    else:
        _clock().set(time.monotonic() + seconds, fire)
    return channel


def _check_time(seconds: float) -> None:
    """Refuse what compares with no time: it would spoil the order of all timers of a clock."""
    if seconds != seconds:
        raise ValueError("expected a number of seconds, got nan")


class _Nothing:
    """What ``sleep`` returns where it has slept."""

    def __await__(self) -> Generator[object, None, None]:
        return
        yield  # pyright: ignore[reportUnreachable]


class _Clock:
    """A thread that calls functions when their time has come."""

    def __init__(self) -> None:
        self._alarms: Chan[tuple[float, Callable[[], None]]] = Chan(1 << 16)
        self._thread = Thread(target=self._run, name="citius.go clock")
        self._thread.daemon = True
        self._thread.start()

    @property
    def is_alive(self) -> bool:
        """A fork leaves threads behind."""
        return self._thread.is_alive()

    def set(self, at: float, call: Callable[[], None]) -> None:
        """Call ``call`` at ``at`` (``time.monotonic()``)."""
        self._alarms.send((at, call))

    def _run(self) -> None:
        waiting: list[tuple[float, int, Callable[[], None]]] = []
        count = 0
        while True:
            timeout_s = max(waiting[0][0] - time.monotonic(), 0) if waiting else None
            come = self._alarms._recv_within(timeout_s)
            if come is not None:
                (at, call), _ = come
                count += 1
                heappush(waiting, (at, count, call))
            while waiting and waiting[0][0] <= time.monotonic():
                try:
                    heappop(waiting)[2]()
                except Exception:  # such as a lack of memory; the others have to fire
                    _log().exception("a timer failed")


def _report(  # pyright: ignore[reportUnusedFunction]
    message: str, error: BaseException
) -> None:
    """Log an exception that compiled code has raised; the extension calls it."""
    _log().error(message, exc_info=error)


def _report_native(  # pyright: ignore[reportUnusedFunction]
    message: str | None, error: BaseException | None
) -> None:
    """Log what has ended a goroutine of C++ or Cython; ``citius.hpp`` calls it."""
    what = message or (repr(error) if error is not None else "an exception")
    _log().error("a goroutine of compiled code has ended: %s", what, exc_info=error)


_NOTHING = _Nothing()
# The system refuses more than it can add to its clock.
_SLEEP_S_MAX = 1e9
_SLEEP = "citius.go.sleep (use `await` in `async def`, or add serial=True to the handler, a `def`)"
_CLOCKS: list[_Clock] = []
_CLOCK_LOCK = threading.Lock()
_TASKS: set[Any] = set()


def _clock() -> _Clock:
    with _CLOCK_LOCK:
        if not _CLOCKS or not _CLOCKS[-1].is_alive:
            _CLOCKS[:] = [_Clock()]
        return _CLOCKS[-1]


def _place() -> str:
    """What ``_whereabouts`` says; where gevent has replaced threads, a hub is made."""
    place = _whereabouts()
    if place == "thread":
        monkey: Any = sys.modules.get("gevent.monkey")
        if monkey is not None and monkey.is_module_patched("threading"):
            from gevent import get_hub

            get_hub()
            return "hub"
    return place


def _is_async(f: Callable[..., Any]) -> bool:
    from inspect import iscoroutinefunction

    return iscoroutinefunction(f) or iscoroutinefunction(getattr(f, "__call__", None))  # noqa: B004


def _is_wanted(error: BaseException) -> bool:
    """Whether it was ended on purpose."""
    if type(error).__name__ in ("CancelledError", "GreenletExit"):
        return True
    return isinstance(error, SystemExit)


def _start_task(goroutine: Goroutine[_T], coroutine: Coroutine[Any, Any, _T]) -> None:
    from asyncio import create_task

    async def run() -> None:
        try:
            goroutine._succeed(await coroutine)
        except BaseException as error:
            goroutine._fail(error)
            if not isinstance(error, Exception):
                raise

    task = create_task(run(), name=f"go {goroutine._name}")
    goroutine._cancel = task.cancel
    _TASKS.add(task)  # a loop knows its tasks only weakly
    task.add_done_callback(_TASKS.discard)
    # Cancelled before its first step, it has not run at all.
    task.add_done_callback(lambda task: _settle_cancelled(goroutine, coroutine))


def _settle_cancelled(goroutine: Goroutine[Any], coroutine: Coroutine[Any, Any, Any]) -> None:
    if not goroutine.done:
        from asyncio import CancelledError

        coroutine.close()
        goroutine._fail(CancelledError())


def _start_greenlet(goroutine: Goroutine[Any], work: Callable[[], Any]) -> None:
    import gevent

    greenlet: Any = gevent.Greenlet(goroutine._run, work)
    greenlet.gr_context = copy_context()

    def end(_: Any) -> None:
        if not goroutine.done:  # killed before its first step
            goroutine._fail(gevent.GreenletExit())

    greenlet.rawlink(end)
    goroutine._cancel = lambda: greenlet.kill(block=False)
    greenlet.start()
