"""The asyncio host, and with uvloop's loop the uvloop host.

One callback of the loop serves every ready connection: the reactor's own epoll descriptor is readable
when any of its sockets is. It is level-triggered, so a turn that stopped at its bound is called again.
"""

from __future__ import annotations

import asyncio
import signal
from typing import TYPE_CHECKING, Any

from citius import logging
from citius.errors import ConfigError

if TYPE_CHECKING:
    from citius.server import Service


def new_loop(name: str) -> asyncio.AbstractEventLoop:
    """A loop of that kind: ``uvloop``, ``asyncio``, or ``auto`` for the better one there is.

    Raises:
        ConfigError: There is no uvloop here.
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
    """Start, serve until a signal, drain, stop.

    Raises:
        Exception: What a start-up hook raised.
    """
    asyncio.set_event_loop(loop)
    try:
        main = loop.create_task(_serve(service, loop), name="citius")
        loop.run_until_complete(main)
    finally:
        _close(loop)


async def _serve(service: Service, loop: asyncio.AbstractEventLoop) -> None:
    stopped = asyncio.Event()
    deadline: asyncio.TimerHandle | None = None
    starting = asyncio.current_task()
    assert starting is not None, "run makes a task of this coroutine"

    def stop() -> None:
        nonlocal deadline
        if not service.is_open:
            starting.cancel()
        elif deadline is None:
            deadline = loop.call_later(service.config.drain_s, service.cut, stopped.set)
            service.drain(stopped.set)

    def interrupt() -> None:
        if deadline is None:
            stop()
        else:
            service.cut(stopped.set)

    loop.add_signal_handler(signal.SIGTERM, stop)
    loop.add_signal_handler(signal.SIGINT, interrupt)
    loop.add_signal_handler(signal.SIGQUIT, lambda: service.cut(stopped.set))
    try:
        await service.start()
    except asyncio.CancelledError:
        logging.info("stopped while starting")
        return
    reactor = service.open(loop)
    loop.add_reader(reactor.fileno(), reactor.turn)

    beat_s = service.beat_s

    def beat() -> None:
        service.beat()
        loop.call_later(beat_s or 0.0, beat)

    if beat_s is not None:
        loop.call_later(beat_s, beat)
    await stopped.wait()
    if deadline is not None:
        deadline.cancel()
    loop.remove_reader(reactor.fileno())
    reactor.close()
    await service.stop()


def _close(loop: asyncio.AbstractEventLoop) -> None:
    """Cancel what the application left behind and close the loop."""
    tasks = asyncio.all_tasks(loop)
    for task in tasks:
        task.cancel()
    if tasks:
        left: Any = asyncio.gather(*tasks, return_exceptions=True)
        loop.run_until_complete(left)
    loop.run_until_complete(loop.shutdown_asyncgens())
    asyncio.set_event_loop(None)
    loop.close()
