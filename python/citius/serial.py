"""Serial handlers: a ``def`` with ``serial=True`` runs in a greenlet, and waits without holding its thread.

    @app.get("/total", serial=True)
    def total() -> int:
        results = chan()
        for table in ("orders", "returns"):
            go(lambda table=table: results.send(pool.sync.fetch_value(f"SELECT count(*) FROM {table}")))
        return results.recv()[0] - results.recv()[0]

Routes, WebSockets and procedures can have it.

A task of the event loop carries the greenlet. Where the greenlet has to wait, it switches to the task with
what is to be awaited, and the task goes on with it when that is done. So a serial handler stays on its
thread, has the context variables of its task, and is cancelled as an ``async def`` is: the exception is
raised at the place where it waits.

What waits: channels, ``select``, ``sleep``, wait groups and ``join`` of ``citius.go``, ``.sync`` of the
databases and of Redis, and ``wait`` for anything that can be awaited. Tests: ``tests/go/test_serial.py``.
"""

# pyright: reportPrivateUsage=false
# The functions that say where code runs are the extension's for this module and citius.go.
from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any, TypeVar, cast

from citius._core import _set_serial, _whereabouts
from citius.errors import ChannelMisuse, ConfigError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Generator

__all__ = ["is_serial", "wait"]

_T = TypeVar("_T")


def is_serial() -> bool:
    """Whether this code runs in a serial handler or in a goroutine of one."""
    return _whereabouts() == "serial"


def wait(awaitable: Awaitable[_T]) -> _T:
    """The result of what an ``async def`` would await; others are served meanwhile.

    Raises:
        ChannelMisuse: This is no serial handler.
    """
    if not is_serial():
        _close(awaitable)
        raise ChannelMisuse(
            "citius.serial.wait switches to other work, which is possible in a `def` handler with "
            "serial=True only: add it to the route, or use `await` (in `async def`)"
        )
    return cast("_T", park(awaitable))


def park(awaitable: Awaitable[Any]) -> Any:
    """Await in the task that carries this greenlet; the extension calls it too."""
    from greenlet import getcurrent

    current: Any = getcurrent()
    if not isinstance(current, _greenlet_class()):
        _close(awaitable)
        raise ChannelMisuse(
            "a wait in a greenlet that other code has started within a serial handler: wait in the "
            "handler itself, or start goroutines with citius.go.go"
        )
    if current.is_ending:
        _close(awaitable)
        raise ChannelMisuse(
            "a wait in a serial handler that was ended without its event loop: clean up without waiting"
        )
    return current.parent.switch(awaitable)


def _close(awaitable: Awaitable[Any]) -> None:
    """Let go of what will not be awaited, without a warning that it was not."""
    close = getattr(awaitable, "close", None)
    if close is not None:
        close()


def check(what: str) -> None:
    """Check that handlers can be serial; ``what`` has one, such as "the route /".

    Raises:
        ConfigError: The package greenlet is not installed.
    """
    try:
        _greenlet_class()
    except ImportError as error:
        raise ConfigError(
            f"{what} has serial=True, which needs the package greenlet: {error}; "
            "pip install citius[serial]"
        ) from None


def carried(
    handler: Callable[..., Any], finish: Callable[[Any], Any] | None = None
) -> Callable[..., Any]:
    """A handler with the same parameters that calls ``handler`` in a greenlet; ``finish`` gets its result."""

    @functools.wraps(handler)
    async def serial(*args: Any, **keywords: Any) -> Any:
        result = await carry(handler, args, keywords)
        return result if finish is None else finish(result)

    serial._citius_serial = handler  # pyright: ignore[reportAttributeAccessIssue]
    return serial


def plain(handler: Callable[..., Any]) -> Callable[..., Any] | None:
    """The function that ``carried`` has wrapped; ``None`` if it has not."""
    return getattr(handler, "_citius_serial", None)


def carry(
    function: Callable[..., Any], args: tuple[Any, ...], keywords: dict[str, Any]
) -> _Carried:
    """Call a function in a greenlet of the task that awaits the result."""
    return _Carried(function, args, keywords)


class _Carried:
    """A call in a greenlet, to be awaited once."""

    __slots__ = ("_args", "_function", "_keywords")

    def __init__(
        self, function: Callable[..., Any], args: tuple[Any, ...], keywords: dict[str, Any]
    ) -> None:
        self._function, self._args, self._keywords = function, args, keywords

    def __await__(self) -> Generator[Any, Any, Any]:
        from greenlet import getcurrent

        task: Any = getcurrent()
        greenlet: Any = _greenlet_class()(self._function, task)
        greenlet.gr_context = task.gr_context
        switch, args, keywords = greenlet.switch, self._args, self._keywords
        result: Any
        while True:
            _set_serial(True)
            try:
                result = switch(*args, **keywords)
            finally:
                _set_serial(False)
            if greenlet.dead:
                return result
            try:
                waiting: Generator[Any, Any, Any] = result.__await__()
                args = (cast("Any", (yield from waiting)),)
                switch = greenlet.switch
            except GeneratorExit:
                _end(greenlet)
                raise
            except BaseException as error:
                args = (type(error), error, error.__traceback__)
                switch = greenlet.throw
            keywords = _NONE
            greenlet.parent = getcurrent()


def _end(greenlet: Any) -> None:
    """End a greenlet whose task is thrown away: there is no loop any more that could wake it."""
    from greenlet import getcurrent

    greenlet.is_ending = True
    greenlet.parent = getcurrent()
    _set_serial(True)
    try:
        greenlet.throw()
    finally:
        _set_serial(False)


_NONE: dict[str, Any] = {}


@functools.cache
def _greenlet_class() -> type:
    """Made when the first serial handler is called: the package is an extra."""
    from greenlet import greenlet

    class SerialGreenlet(greenlet):
        """A greenlet that a task carries."""

        is_ending = False

    return SerialGreenlet
