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
from citius.serving.tasks import complete, start_unless_told, wait_until_set

if TYPE_CHECKING:
    from citius.serving.service import Service


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


def run(service: Service, loop: asyncio.AbstractEventLoop) -> None:
    """Start, serve until a signal, drain, stop; raises what a start-up hook raised."""
    asyncio.set_event_loop(loop)
    try:
        main = loop.create_task(_serve(service, loop), name="citius")
        complete(loop, main)
    finally:
        close_loop(loop)


async def _serve(service: Service, loop: asyncio.AbstractEventLoop) -> None:
    stopped = asyncio.Event()
    deadline: asyncio.TimerHandle | None = None
    main = asyncio.current_task()
    assert main is not None, "run makes a task of this coroutine"

    def stop() -> None:
        nonlocal deadline
        if not service.is_open:
            main.cancel()
        elif deadline is None:
            deadline = loop.call_later(service.config.drain_s, service.cut, stopped.set)
            service.drain(stopped.set)

    def interrupt() -> None:
        if deadline is None:
            stop()
        else:
            cut()

    def cut() -> None:
        if service.is_open and not service.is_ending:
            service.cut(stopped.set)
        else:
            main.cancel()  # only start-up or shutdown code of the application is still running

    handlers = {"SIGTERM": stop, "SIGINT": interrupt, "SIGQUIT": cut, "SIGBREAK": stop}
    stops = signals.on_loop(loop, handlers, service.config.drain_s)
    lifeline.on_end(partial(loop.call_soon_threadsafe, stop))
    if not await start_unless_told(service, main):
        return
    service.on_broken = stop
    stops.keep_installed(loop)  # the application may have set handlers
    reactor = service.open(loop)
    host = await service.begin_turns()
    if (interval_s := service.heartbeat_interval_s) is not None:
        loop.call_later(interval_s, service.heartbeat_every, loop, interval_s)
    await wait_until_set(stopped)
    if deadline is not None:
        deadline.cancel()
    host.stop()
    reactor.close()
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
