"""The end of a process whose application has left threads, or processes, that do not end.

At its exit the interpreter waits for threads that are no daemons, for those of ``concurrent.futures`` until
they have run all that was submitted, and for processes of ``multiprocessing``. What has not ended within the
drain is named in the log and left behind, as a handler is. Tests: ``tests/supervisor/test_leaving.py``.
"""

from __future__ import annotations

import os
import sys
import threading
from contextlib import suppress
from time import monotonic, sleep
from typing import TYPE_CHECKING, Any

from citius.observability import logging
from citius.process import signals
from citius.threads import Thread

if TYPE_CHECKING:
    from types import FrameType

_LEAST_S = 0.5
"""Time for threads and processes that have been told to end, however long the drain took."""

# Where threads begin and wait, which says nothing about what they do.
_OF_THREADS = (os.path.dirname(threading.__file__) + os.sep, os.path.dirname(__file__) + os.sep)

_until = 0.0
_code = 0
_is_registered = False


def leave_by(until: float) -> None:
    """Say when the drain is over, also for threads and processes of the application."""
    global _until
    _until = until


def end_by(until: float, code: int) -> None:
    """Have the process be over by a time, whatever the application does, with ``code`` if it is not."""
    global _code
    leave_by(until)
    _code = code
    _watch()


def bound_exit(code: int) -> None:
    """Have the interpreter's exit, when it begins, be over within the drain; ``code`` is the server's."""
    global _code, _is_registered
    _code = code
    register: Any = getattr(threading, "_register_atexit", None)
    if register is not None and not _is_registered:
        with suppress(RuntimeError):  # it has begun
            register(_watch)
            _is_registered = True


def wait_for_executors(code: int) -> None:
    """Wait for what ``concurrent.futures`` has to do, as the interpreter's exit does, within the drain."""
    global _code
    modules: list[Any] = [
        sys.modules.get(f"concurrent.futures.{name}") for name in ("process", "thread")
    ]
    exits = [module._python_exit for module in modules if hasattr(module, "_python_exit")]
    if not exits:
        return
    _code = code
    _watch()
    for wait in exits:
        wait()
    signals.acted()


def _watch() -> None:
    left_s = max(_LEAST_S, _until - monotonic())
    signals.end_after(left_s + _LEAST_S)  # a thread may keep the interpreter
    if not _is_cooperative():
        Thread(target=_end, args=(left_s,), name="citius-leaving", daemon=True).start()


def _is_cooperative() -> bool:
    """Whether gevent has replaced threads: one that waits for a greenlet which is stuck would not run."""
    monkey: Any = sys.modules.get("gevent.monkey")
    return monkey is not None and monkey.is_module_patched("threading")


def _end(left_s: float) -> None:
    sleep(left_s)
    left = [*map(_described, _threads()), *_killed()]
    what = ", ".join(left or [_described(threading.main_thread())])
    logging.warning(f"the application did not end within the drain time; left behind: {what}")
    for stream in (sys.stdout, sys.stderr):
        with suppress(Exception):
            stream.flush()
    os._exit(_code)


def _threads() -> list[threading.Thread]:
    """Those that the interpreter waits for."""
    known = (threading.main_thread(), threading.current_thread())
    return [one for one in threading.enumerate() if not one.daemon and one not in known]


def _described(thread: threading.Thread) -> str:
    frames: dict[int, FrameType] = sys._current_frames()  # pyright: ignore[reportPrivateUsage]
    frame = frames.get(thread.ident or 0)
    found: FrameType | None = frame
    while frame is not None:
        if not frame.f_code.co_filename.startswith(_OF_THREADS):
            found = frame  # the outermost of the application: what it was asked to do
        frame = frame.f_back
    if found is None:
        return thread.name
    code = found.f_code
    return f"{thread.name} in {code.co_qualname} ({code.co_filename}:{found.f_lineno})"


def _killed() -> list[str]:
    """End the processes of ``multiprocessing`` that the interpreter waits for; returns their names."""
    processes: Any = sys.modules.get("multiprocessing.process")
    if processes is None:
        return []
    left = [one for one in processes.active_children() if not one.daemon]
    for process in left:
        process.kill()
    return [f"process {process.pid} ({process.name})" for process in left]
