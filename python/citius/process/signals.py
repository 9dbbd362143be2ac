"""Signals by name: no system but Linux has all that the server hears."""

from __future__ import annotations

import os
import signal
from contextlib import suppress
from threading import get_ident
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable, Mapping
    from types import FrameType


def known(*names: str) -> tuple[signal.Signals, ...]:
    """Those of the named signals that this system has."""
    return tuple(signal.Signals[name] for name in names if name in signal.Signals.__members__)


def on(handler: Callable[[int, FrameType | None], object] | signal.Handlers, *names: str) -> None:
    """Set the handler of signals, as far as this system has them."""
    for number in known(*names):
        signal.signal(number, handler)


# What the loop has set for the signals that it hears.
_of_loop: dict[int, object] = {}


def on_loop(loop: asyncio.AbstractEventLoop, handlers: Mapping[str, Callable[[], object]]) -> None:
    """Have ``loop`` call the handlers of signals, as far as this system has them."""
    for number in known(*handlers):
        handler = handlers[number.name]
        try:
            loop.add_signal_handler(number, handler)
            _hear_here_only(number)
        except NotImplementedError:  # Windows: Python hears signals, its loops do not
            _on_python(loop, number, handler)


def _hear_here_only(number: signal.Signals) -> None:
    """Let a process that the application forks have its signals for itself.

    It has the descriptor too by which the loop hears them: one that is sent to it, as pools of
    ``multiprocessing`` do, would reach the loop of the worker and stop it.
    """
    if not _of_loop:
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


def _on_python(loop: asyncio.AbstractEventLoop, number: int, handler: Callable[[], object]) -> None:
    signal.signal(number, lambda number, frame: loop.call_soon_threadsafe(handler))
