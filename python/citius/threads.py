"""Threads of the server's own, which start whatever the application has made of the interpreter.

Python starts no thread while ``sys.excepthook`` or ``threading.excepthook`` is ``None``. An application that
sets that breaks its own reports, and must not break the pools and the stop of the server with it.
"""

from __future__ import annotations

import sys
import threading
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from asyncio import AbstractEventLoop
    from collections.abc import Callable


class Thread(threading.Thread):
    """A thread; what it needs of the interpreter is restored first."""

    def __init__(self, *args: Any, **options: Any) -> None:
        restore_hooks()
        super().__init__(*args, **options)


class Timer(threading.Timer):
    """A thread that waits first; likewise."""

    def __init__(self, *args: Any, **options: Any) -> None:
        restore_hooks()
        super().__init__(*args, **options)


def run_on(
    loop: AbstractEventLoop,
    is_closed: Callable[[], bool],
    log: Callable[[str, BaseException], object],
) -> None:
    """Run an event loop of the server's own until it is closed.

    A callback of the application (a codec, a notice, a message) may stop it or raise ``SystemExit`` in it,
    which would end the thread; whatever waits for the loop would wait for ever.
    """
    while True:
        try:
            loop.run_forever()
        except BaseException as error:
            log("a callback on a thread of the server failed", error)
        if is_closed():
            return


def restore_hooks() -> None:
    """Give back to the interpreter the hooks without which it starts no thread."""
    for module in (sys, threading):
        if getattr(module, "excepthook", None) is None:
            vars(module)["excepthook"] = module.__excepthook__
