"""The asyncio host, and with uvloop's loop the uvloop host.

One callback of the loop serves every ready connection: the reactor's own epoll descriptor is readable
when any of its sockets is. It is level-triggered, so a turn that stopped at its bound is called again.
Where there is no epoll the loop owns the sockets (transports.py), and the reactor asks for its turns.
"""

from __future__ import annotations

import asyncio
from functools import partial
from typing import TYPE_CHECKING

from citius.errors import ConfigError
from citius.observability import logging
from citius.process import lifeline, signals
from citius.serving.tasks import End, complete, start_unless_told, wait_until_set

if TYPE_CHECKING:
    from citius.serving.service import Service
    from citius.serving.without_loop import Standalone


def new_loop(name: str) -> asyncio.AbstractEventLoop:
    """Make a loop: ``uvloop``, ``asyncio``, or ``auto`` for uvloop if it is installed.

    Raises:
        ConfigError: uvloop is not installed.
    """
    if name in ("auto", "uvloop"):
        try:
            import uvloop
        except ImportError as error:
            if name == "uvloop":
                raise ConfigError(
                    f"--loop uvloop: {error}; install it, or use --loop auto or asyncio"
                ) from None
        else:
            return uvloop.new_event_loop()
    return asyncio.new_event_loop()


def run(
    service: Service, loop: asyncio.AbstractEventLoop, before: Standalone | None = None
) -> None:
    """Start, serve until a signal, drain, stop; raises what a start-up hook raised.

    A host that was there ``before`` has started: the loop goes on in its place.
    """
    asyncio.set_event_loop(loop)
    try:
        main = loop.create_task(_serve(service, loop, before), name="citius")
        complete(loop, main)
    finally:
        close_loop(loop)


async def _serve(
    service: Service, loop: asyncio.AbstractEventLoop, before: Standalone | None
) -> None:
    main = asyncio.current_task()
    assert main is not None, "run makes a task of this coroutine"
    end = End(service, loop, main)
    if before is None:
        stops = signals.on_loop(loop, end.handlers, service.config.drain_s)
        lifeline.on_end(partial(loop.call_soon_threadsafe, end.stop))
        if not await start_unless_told(service, main):
            return
    else:
        stops = before.stops
        end.take_over(before)
    service.on_broken = end.stop
    # The application may have set handlers; a client that is served may send a signal at once.
    stops.keep_installed(loop)
    if before is None:
        service.open(loop)
    host = await service.begin_turns()
    if (interval_s := service.heartbeat_interval_s) is not None:
        loop.call_later(interval_s, service.heartbeat_every, loop, interval_s)
    await wait_until_set(end.stopped)
    if end.deadline is not None:
        end.deadline.cancel()
    host.stop()
    service.reactor.close()
    try:
        await service.stop()
    except asyncio.CancelledError:
        logging.warning("the application's shutdown did not end and was broken off")


def close_loop(loop: asyncio.AbstractEventLoop) -> None:
    """Cancel the tasks that the application left and close the loop."""
    tasks = asyncio.all_tasks(loop)
    for task in tasks:
        task.cancel()
    if tasks:
        # A task that ignores the cancellation must not keep the process from ending.
        _, left = loop.run_until_complete(asyncio.wait(tasks, timeout=_CANCELLED_S))
        if left:
            logging.warning(f"{len(left)} tasks did not end when they were cancelled; left behind")
    loop.run_until_complete(loop.shutdown_asyncgens())
    asyncio.set_event_loop(None)
    loop.close()


# How long a cancelled task may continue: as long as a worker that the supervisor ends at once.
_CANCELLED_S = 2.0
