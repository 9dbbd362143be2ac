"""How a handler waits for the extension: on the loop, in a thread of a pool, in a greenlet.

All ways take ``register``, a function of the extension that keeps a callback and calls it once. ``on_thread``
holds what a pool says of the current thread: the ``pool`` that it belongs to, and whether the job that it
runs still ``has_slot``.
"""

from __future__ import annotations

import threading
from _thread import allocate_lock
from typing import TYPE_CHECKING

from citius.serial import is_serial, park

if TYPE_CHECKING:
    from collections.abc import Callable

on_thread = threading.local()


async def called_back(register: Callable[[Callable[[], object]], None]) -> None:
    """Suspend until the callback that is handed to ``register`` is called."""
    import asyncio

    future = asyncio.get_running_loop().create_future()

    def arrived() -> None:
        # The waiting task may have been cancelled in the meantime.
        if not future.done():
            future.set_result(None)

    register(arrived)
    await future


def check_cancelled(error: BaseException) -> None:
    """Raise ``error`` if it is a cancellation of the current task.

    One of what a function waits for, such as another task, is an error of the function.
    """
    import asyncio

    if isinstance(error, asyncio.CancelledError):
        task = asyncio.current_task()
        if task is None or task.cancelling():
            raise error


# How a host with other means than threads waits; it returns whether it could.
wait_here: Callable[[Callable[[Callable[[], object]], None]], bool] | None = None


def wait_in_thread(register: Callable[[Callable[[], object]], None]) -> None:
    """Wait in this thread or greenlet until the callback that is handed to ``register`` is called."""
    if is_serial():
        park(called_back(register))
        return
    if wait_here is not None and wait_here(register):
        return
    if not in_pool():
        raise RuntimeError(
            "this handler would block the server's thread to wait for its client; "
            "make it `async def`, or add serial=True or blocking=True to its route"
        )
    lock = allocate_lock()
    lock.acquire()
    register(lock.release)
    lock.acquire()


def in_pool() -> bool:
    """Whether the current thread may block."""
    return getattr(on_thread, "pool", None) is not None


def release_slot() -> None:
    """The current thread's job has only its answer to send: let in the next."""
    try:
        if getattr(on_thread, "has_slot", False):
            on_thread.pool._release_slot()
            on_thread.has_slot = False
    except MemoryError:
        return  # tried again when the job is over; the answer must not be lost for it
