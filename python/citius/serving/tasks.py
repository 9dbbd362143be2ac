"""The task type of requests; how tasks of the server wait and end. Imported only where there is a loop."""

from __future__ import annotations

import asyncio
from functools import partial
from typing import TYPE_CHECKING, Any

from citius.observability import logging
from citius.process import lifeline

if TYPE_CHECKING:
    from collections.abc import Callable

    from citius.serving.service import Service
    from citius.serving.without_loop import Standalone


class RequestTask(asyncio.Task[Any]):
    """The task of a request.

    A handler that never suspends leaves its task to the next request, if it is as it was made
    (``citius-base/src/task/``). So this has no attributes of its own.
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


class End:
    """What signals do to a worker with a loop."""

    def __init__(
        self, service: Service, loop: asyncio.AbstractEventLoop, main: asyncio.Task[None]
    ) -> None:
        self._service, self._loop, self._main = service, loop, main
        self.stopped = asyncio.Event()
        """The last connection is gone, or cut."""
        self.deadline: asyncio.TimerHandle | None = None
        """Cuts what is left when the drain's time is over."""
        self.handlers: dict[str, Callable[[], object]] = {
            "SIGTERM": self.stop,
            "SIGINT": self._interrupt,
            "SIGQUIT": self._cut,
            "SIGBREAK": self.stop,
        }

    def take_over(self, before: Standalone) -> None:
        """Hear what another host has heard, and go on with its drain if there is one."""
        before.on_drained = partial(self._loop.call_soon_threadsafe, self.stopped.set)
        before.stops.move(self._loop, self.handlers)
        lifeline.on_end(partial(self._loop.call_soon_threadsafe, self.stop))
        left_s = before.give_up()
        if before.is_draining:
            self.deadline = self._loop.call_later(left_s, self._service.cut, self.stopped.set)
        if before.is_drained:
            self.stopped.set()

    def stop(self) -> None:
        """Drain; before the service is open, give the start up."""
        if not self._service.is_open:
            self._main.cancel()
        elif self.deadline is None:
            drain_s = self._service.config.drain_s
            self.deadline = self._loop.call_later(drain_s, self._service.cut, self.stopped.set)
            self._service.drain(self.stopped.set)

    def _interrupt(self) -> None:
        if self.deadline is None:
            self.stop()
        else:
            self._cut()

    def _cut(self) -> None:
        if self._service.is_open and not self._service.is_ending:
            self._service.cut(self.stopped.set)
        else:
            self._main.cancel()  # only start-up or shutdown code of the application is still running
