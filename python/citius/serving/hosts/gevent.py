"""The gevent host: each request runs in a greenlet, and blocking calls switch to another one.

The hub's own greenlet turns the reactor when its descriptor is readable; greenlets.py calls the
application from within the turn. Code on the hub must not wait, and only the hub may turn the reactor:
calls of a turn in another greenlet would wait for that greenlet. Callbacks of the hub do all of it.

gevent replaces parts of the standard library (:func:`patch`), in each worker, before the application
is imported.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from citius.errors import ConfigError
from citius.process import lifeline, signals
from citius.serving.without_loop import complete

if TYPE_CHECKING:
    from citius.serving.service import Service

_READ = 1


def patch() -> None:
    """Replace blocking functions of the standard library with cooperative ones.

    Raises:
        ConfigError: gevent is not installed.
    """
    try:
        from gevent import monkey
    except ImportError as error:
        raise ConfigError(
            f"--loop gevent: {error}; install it (`pip install gevent`), or use --loop auto"
        ) from None
    monkey.patch_all()


def run(service: Service) -> None:
    """Start, serve until a signal, drain, stop.

    Raises:
        ConfigError: A hook needs an asyncio loop.
        Exception: What a start-up hook raised.
    """
    import gevent

    main: Any = gevent.Greenlet(_serve, service)
    # The exception is raised here; the hub must not print it as well.
    main.start()
    hub: Any = gevent.get_hub()
    hub.exception_stream = None
    main.get()


def _serve(service: Service) -> None:
    import gevent
    from gevent.event import Event

    hub: Any = gevent.get_hub()
    stopped: Any = Event()
    deadline: Any = None

    def stop() -> None:
        nonlocal deadline
        if deadline is None:
            deadline = hub.loop.timer(service.config.drain_s)
            deadline.start(service.cut, stopped.set)
            service.drain(stopped.set)

    def interrupt() -> None:
        if deadline is None:
            stop()
        else:
            service.cut(stopped.set)

    complete(service.start(), "a start-up hook")
    reactor = service.open(None)
    watchers: list[Any] = [hub.loop.io(reactor.fileno(), _READ)]
    watchers[0].start(reactor.turn)
    # Python hears them, also in a greenlet that keeps the thread; the hub looks three times a second.
    heard = {"SIGTERM": stop, "SIGINT": interrupt, "SIGQUIT": lambda: service.cut(stopped.set)}
    post = hub.loop.run_callback_threadsafe
    stops = signals.StopSignals(heard, post, service.config.drain_s)
    # A watcher of the application replaces Python's handler unless the loop has one already.
    of_loop = [hub.loop.signal(number, ref=False) for number in signals.known(*heard)]
    for watcher in of_loop:
        watcher.start(int)
    stops.install()
    watchers.append(hub.loop.timer(signals.INSTALLED_S, signals.INSTALLED_S))
    watchers[-1].start(stops.install)  # the application may have set handlers
    lifeline.on_end(lambda: post(stop))
    if service.heartbeat_interval_s is not None:
        watchers.append(hub.loop.timer(service.heartbeat_interval_s, service.heartbeat_interval_s))
        watchers[-1].start(service.heartbeat)
    stopped.wait()
    if deadline is not None:
        watchers.append(deadline)
    for watcher in watchers:
        watcher.stop()
        watcher.close()
    closed: Any = Event()
    hub.loop.run_callback(lambda: (reactor.close(), closed.set()))
    closed.wait()
    complete(service.stop(), "a shutdown hook")
    for watcher in of_loop:
        watcher.stop()
        watcher.close()
