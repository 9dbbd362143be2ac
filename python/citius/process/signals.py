"""Signals by name, and the signals that stop a host.

No system but Linux has all signals that the server hears. A loop that is stuck in a handler calls nothing, so
Python itself hears these signals, between two instructions of the main thread. A process that does not act on
them in time is ended by a thread of `faulthandler`, which needs no GIL and prints the stacks first.
"""

from __future__ import annotations

import faulthandler
import os
import signal
from contextlib import contextmanager, suppress
from functools import partial
from threading import get_ident
from time import monotonic
from typing import TYPE_CHECKING

from citius.observability import logging

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable, Generator, Iterable, Mapping
    from types import FrameType

STUCK_S = 1.0
"""Time a process has to act on a signal that means "now"."""

GRACE_S = 2.0
"""Time beyond the drain within which it has to act on the first one; a supervisor gives as much."""


def known(*names: str) -> tuple[signal.Signals, ...]:
    """Those of the named signals that this system has."""
    return tuple(signal.Signals[name] for name in names if name in signal.Signals.__members__)


def on(handler: Callable[[int, FrameType | None], object] | signal.Handlers, *names: str) -> None:
    """Set the handler of signals, as far as this system has them."""
    for number in known(*names):
        signal.signal(number, handler)


def unblock(numbers: Iterable[int]) -> None:
    """Let this thread have signals that the application may have blocked in it."""
    if hasattr(signal, "pthread_sigmask"):
        signal.pthread_sigmask(signal.SIG_UNBLOCK, numbers)


@contextmanager
def held(*names: str) -> Generator[None]:
    """Have signals wait that come to this thread meanwhile."""
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, known(*names))
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def end_after(seconds: float) -> None:
    """End this process, with its stacks in the log, unless ``acted`` is called in time; the first counts."""
    _ends.append(monotonic() + seconds)
    with suppress(OSError, ValueError, RuntimeError):  # standard error is closed
        while True:
            first = min(_ends)
            left_s = max(0.001, first - monotonic())
            faulthandler.dump_traceback_later(left_s, exit=True, file=2)
            if first == min(_ends):  # no other signal's handler has come between
                return


def acted() -> None:
    """The process does what it was told: it is not stuck."""
    _ends.clear()
    faulthandler.cancel_dump_traceback_later()


_ends: list[float] = []


# What the loop has set for the signals that it hears.
_of_loop: dict[int, object] = {}


def _hear_here_only(number: signal.Signals) -> None:
    """Let a process that the application forks have its signals for itself.

    It has the descriptor too by which the loop hears them: one that is sent to it, as pools of
    ``multiprocessing`` do, would reach the loop of the worker and stop it.
    """
    if not _of_loop and hasattr(os, "register_at_fork"):
        os.register_at_fork(before=_block, after_in_parent=_unblock, after_in_child=_forget_loop)
    _of_loop[number] = signal.getsignal(number)


# What each thread that forks has blocked before.
_masks: dict[int, set[signal.Signals]] = {}


def _block() -> None:
    """Let none come before the child has forgotten the loop."""
    _masks[get_ident()] = signal.pthread_sigmask(signal.SIG_BLOCK, _of_loop)  # pyright: ignore


def _unblock() -> None:
    signal.pthread_sigmask(signal.SIG_SETMASK, _masks.pop(get_ident()))


def _forget_loop() -> None:
    with suppress(ValueError):  # not the main interpreter
        signal.set_wakeup_fd(-1)
        for number, handler in _of_loop.items():
            if signal.getsignal(number) is handler:
                is_interrupt = number == signal.SIGINT
                signal.signal(
                    number, signal.default_int_handler if is_interrupt else signal.SIG_DFL
                )
    _unblock()


INSTALLED_S = 1.0
"""How often handlers are set again: libraries may set theirs when a request first uses them."""


class StopSignals:
    """The signals that stop a host whose loop calls their handlers.

    The first one has to be acted on within the drain and `GRACE_S`, each further one, and QUIT, within
    `STUCK_S`.

    Args:
        handlers: What is called, by the name of the signal.
        post: Has the loop call a function soon; called in a signal handler.
        drain_s: The time that the first signal leaves to open requests.
    """

    def __init__(
        self,
        handlers: Mapping[str, Callable[[], object]],
        post: Callable[[Callable[[], object]], object],
        drain_s: float,
    ) -> None:
        self._handlers = {number: handlers[number.name] for number in known(*handlers)}
        self._post = post
        self._drain_s = drain_s
        self._told = 0
        self._is_heard = False
        self._before: dict[int, Callable[[int, FrameType | None], object]] = {}
        self._at_start = {number: signal.getsignal(number) for number in self._handlers}

    def install(self) -> None:
        """Hear the signals; handlers that the application has set since are called as well."""
        unblock(self._handlers)
        for number in self._handlers:
            before = signal.getsignal(number)
            if before == self._hear:
                continue
            if callable(before) and before is not signal.default_int_handler:
                self._before[number] = before
            signal.signal(number, self._hear)
            _hear_here_only(number)

    def move(
        self, loop: asyncio.AbstractEventLoop, handlers: Mapping[str, Callable[[], object]]
    ) -> None:
        """Have ``loop``, which is about to run, call ``handlers`` from now on."""
        was_blocked = signal.pthread_sigmask(signal.SIG_BLOCK, self._handlers)
        self._handlers = {number: handlers[number.name] for number in known(*handlers)}
        self._post = loop.call_soon_threadsafe
        for number in self._handlers:
            handler = signal.getsignal(number)
            loop.add_signal_handler(number, int)  # it wakes the loop
            signal.signal(number, handler)
        signal.pthread_sigmask(signal.SIG_SETMASK, was_blocked)
        self.install()

    def keep_installed(self, loop: asyncio.AbstractEventLoop) -> None:
        """Do so now and each second."""
        self.install()
        loop.call_later(INSTALLED_S, self.keep_installed, loop)

    def restore(self) -> None:
        """Set the handlers that were there before."""
        for number, handler in self._at_start.items():
            if handler is not None:  # one that Python has not set
                signal.signal(number, handler)

    def _hear(self, number: int, frame: FrameType | None) -> None:
        if self._is_heard:
            return  # a handler of the application calls the one before it
        self._told += 1
        is_now = self._told > 1 or number == getattr(signal, "SIGQUIT", None)
        end_after(STUCK_S if is_now else self._drain_s + GRACE_S)
        with suppress(RuntimeError):  # the loop is closed: the process ends
            self._post(lambda: self._act(number))
        if (before := self._before.get(number)) is not None:
            self._is_heard = True
            try:
                before(number, frame)
            except (SystemExit, KeyboardInterrupt):
                pass  # what it asks for is under way; raised here it would cut off open requests
            except BaseException as error:
                failed = partial(logging.log_exception, "a handler of a signal failed", error)
                with suppress(RuntimeError):
                    self._post(failed)
            finally:
                self._is_heard = False

    def _act(self, number: int) -> None:
        acted()
        self._handlers[signal.Signals(number)]()


def on_loop(
    loop: asyncio.AbstractEventLoop, handlers: Mapping[str, Callable[[], object]], drain_s: float
) -> StopSignals:
    """Have ``loop`` call the handlers of signals, as far as this system has them."""
    for number in known(*handlers):
        with suppress(NotImplementedError):  # Windows: Python hears signals, its loops do not
            # It wakes the loop, whichever thread the kernel interrupts.
            loop.add_signal_handler(number, int)
    stops = StopSignals(handlers, loop.call_soon_threadsafe, drain_s)
    stops.install()
    return stops
