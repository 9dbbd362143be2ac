"""Threads of the server's own, which start whatever the application has made of the interpreter.

Python starts no thread while ``sys.excepthook`` or ``threading.excepthook`` is ``None``. An application that
sets that breaks its own reports, and must not break the pools and the stop of the server with it. Tests:
``tests/http/test_exits.py``.
"""

from __future__ import annotations

import atexit
import sys
import threading
import time
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from asyncio import AbstractEventLoop
    from collections.abc import Callable


_REST_S: Final = 0.05
"""How long a loop rests between its turns at the exit: what still calls by it then waits for as long."""
_RESTS_S: Final = 1.0
"""How long the exit waits for loops to rest; a callback of the application may hold one."""
_running: dict[AbstractEventLoop, threading.Thread] = {}


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
    _running[loop] = threading.current_thread()
    try:
        while True:
            try:
                loop.run_forever()
            except BaseException as error:
                log("a callback on a thread of the server failed", error)
            if is_closed():
                return
    finally:
        del _running[loop]


@atexit.register
def _rest_at_exit() -> None:
    """Have loops rest while the interpreter ends.

    Python ends the thread of a daemon where it asks for the interpreter's lock, by unwinding its stack. That
    ends the process, by SIGABRT, if code of the extension is on it: it calls Python when something comes.
    Other functions of ``atexit`` may call by these loops later, so that they cannot stop.
    """
    rests: list[threading.Event] = []
    monkey: Any = sys.modules.get("gevent.monkey")
    if monkey is not None and monkey.is_module_patched("threading"):
        return  # these threads are greenlets
    for loop, thread in list(_running.items()):
        if not thread.is_alive():  # that of a process which has forked this one
            continue
        rest = threading.Event()
        with suppress(RuntimeError):  # it has been closed
            loop.call_soon_threadsafe(_rest, loop, rest)
            rests.append(rest)
    until = time.monotonic() + _RESTS_S
    for rest in rests:
        rest.wait(max(0.0, until - time.monotonic()))


def _rest(loop: AbstractEventLoop, has_begun: threading.Event) -> None:
    has_begun.set()
    time.sleep(_REST_S)
    loop.call_soon(_rest, loop, has_begun)


def restore_hooks() -> None:
    """Give back to the interpreter the hooks without which it starts no thread."""
    for module in (sys, threading):
        if getattr(module, "excepthook", None) is None:
            vars(module)["excepthook"] = module.__excepthook__
