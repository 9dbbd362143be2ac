"""The task type of requests, and how tasks of the server wait. Imported only where there is an event loop."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from citius.observability import logging

if TYPE_CHECKING:
    from citius.serving.service import Service


class RequestTask(asyncio.Task[Any]):
    """The task of a request.

    A handler that never suspends leaves its task to the next request, if it is as it was made
    (``citius-py/src/task/``). So this has no attributes of its own.
    """


async def wait_until_set(event: asyncio.Event) -> None:
    """Wait for ``event`` through cancellations: an application that cancels all tasks does not mean ours."""
    task = asyncio.current_task()
    assert task is not None, "this is awaited"
    while not event.is_set():
        try:
            await event.wait()
        except asyncio.CancelledError:
            task.uncancel()


async def start_unless_told(service: Service, main: asyncio.Task[None]) -> bool:
    """Call the start-up hooks; whether the server has not been told to stop meanwhile."""
    try:
        await service.start()
    except asyncio.CancelledError:
        if not main.cancelling():
            raise  # a hook has awaited something that was cancelled
        logging.info("stopped while starting")
        return False
    return True


def complete(loop: asyncio.AbstractEventLoop, main: asyncio.Task[None]) -> None:
    """Run ``loop`` until ``main`` has ended, though the application may stop the loop meanwhile."""
    while True:
        try:
            return loop.run_until_complete(main)
        except RuntimeError:
            if main.done():
                raise
            logging.error("the application has stopped the event loop; it runs on")
