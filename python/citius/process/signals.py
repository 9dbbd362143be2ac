"""Signals by name: no system but Linux has all that the server hears."""

from __future__ import annotations

import signal
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


def on_loop(loop: asyncio.AbstractEventLoop, handlers: Mapping[str, Callable[[], object]]) -> None:
    """Have ``loop`` call the handlers of signals, as far as this system has them."""
    for number in known(*handlers):
        handler = handlers[number.name]
        try:
            loop.add_signal_handler(number, handler)
        except NotImplementedError:  # Windows: Python hears signals, its loops do not
            _on_python(loop, number, handler)


def _on_python(loop: asyncio.AbstractEventLoop, number: int, handler: Callable[[], object]) -> None:
    signal.signal(number, lambda number, frame: loop.call_soon_threadsafe(handler))
