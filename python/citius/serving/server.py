"""The server in one process or many: from a configuration to an exit code.

``serve`` is the whole of it. With one worker everything happens in this process; with more, the supervisor
forks them. Either way a worker is ``work`` (worker.py), which serves an application by a ``Service``
(service.py). Start-up order: bind (a taken port is known before the application does anything), import,
hooks, listen, ready. Shutdown order: stop accepting, drain within the deadline, cut what is left, hooks.

Exit codes: 0 after a stop; 3 when the application could not be imported or the address was not to be had; 4
when a start-up hook or the lifespan failed.
"""

from __future__ import annotations

import signal
import sys
from typing import TYPE_CHECKING

from citius._core import __version__
from citius.errors import ConfigError
from citius.observability import logging
from citius.process import leaving, pidfile, privileges, signals, systemd
from citius.process.forks import keep_from_children
from citius.process.logfiles import reopen
from citius.process.sharedmemory import displaced
from citius.process.systemd import Notifier
from citius.serving.prepare import (
    fail,
    import_failed,
    is_supervised,
    prepare,
    rehearse,
    took_over,
)
from citius.serving.service import Service, WorkerContext
from citius.serving.worker import import_application, work
from citius.settings.config import Config

if TYPE_CHECKING:
    from citius.serving.listeners import Listeners
    from citius.serving.management import Management
    from citius.settings.sources import Sources
    from citius.web.application.app import App


def serve(app: App | str, config: Config | None = None, sources: Sources | None = None) -> int:
    """Serve ``app`` (or what a target like ``module:app`` names) until told to stop.

    Args:
        app: The application, or where it is.
        config: How to serve it.
        sources: Where the configuration is read again, on HUP.

    Returns:
        The exit code of the process.
    """
    config = config or Config()
    logging.keep_stream()
    logging.configure(config.log_level, config.use_colors)
    processes = sys.modules.get("multiprocessing.process")
    if processes is not None and getattr(processes.current_process(), "_inheriting", False):
        return fail(
            "a new process imports the main module, which serves again; write "
            '`if __name__ == "__main__":` above app.serve(…)'
        )
    if config.reload:
        return fail("reload starts new processes from a command line; use `citius serve --reload`")
    try:
        listeners = prepare(config)
    except ConfigError as error:
        return fail(str(error))
    try:
        if is_supervised(config):
            from citius.serving.supervisor import Supervisor

            return Supervisor(app, config, listeners, sources).run()
        return _serve_alone(app, config, listeners)
    except ConfigError as error:
        return fail(str(error))
    finally:
        listeners.close()
        if config.pidfile is not None:
            pidfile.remove(config.pidfile, guarded=privileges.are_split(config))


def check(target: str, config: Config) -> int:
    """Whether the application can be had and served with this configuration; says so."""
    try:
        rehearse(config)
        service = Service(
            import_application(target, config), config, WorkerContext([], lambda: None)
        )
    except ConfigError as error:
        return fail(str(error))
    except Exception as error:
        return import_failed(str(target), error)
    print(f"citius: {target} can be served ({service.describe()})")
    return 0


def _serve_alone(app: App | str, config: Config, listeners: Listeners) -> int:
    """One worker in this very process."""
    notifier = Notifier()
    systemd.forget()

    def ready() -> None:
        logging.info(f"Citius {__version__} serves on {listeners.urls} (CTRL+C stops it)")
        notifier.ready(f"serves on {listeners.urls}")
        took_over(config, listeners)

    def stop_accepting() -> None:
        notifier.stopping()
        listeners.stop_accepting()

    context = WorkerContext(
        [made for one in listeners.all for made in one.sockets], ready, stop_accepting
    )
    if listeners.datagrams is not None:
        context.quic = listeners.datagrams.places(0)
        context.alt_svc = listeners.datagrams.alt_svc
    if notifier.watchdog_s:
        context.heartbeat = lambda requests: notifier.alive()
        context.heartbeat_interval_s = notifier.watchdog_s
    signals.on(lambda number, frame: reopen(config, give=False), "SIGUSR1")
    signals.on(_needs_supervisor, "SIGUSR2", "SIGTTIN", "SIGTTOU")
    try:
        management = _manage_alone(config, context)
    except ConfigError as error:
        return fail(str(error))
    try:
        code = work(app, config, context)
        leaving.bound_exit(code)
        return code
    finally:
        if management is not None:
            management.close()


def _manage_alone(config: Config, context: WorkerContext) -> Management | None:
    """The management port of the only worker, in a thread of its own."""
    if config.management is None:
        return None
    from citius.observability.metrics import MetricsRegistry
    from citius.serving.management import Management

    context.metrics = MetricsRegistry(reactors=config.reactors)
    context.metrics.displaced = displaced
    context.metrics_slot = context.metrics.assign()
    management = Management(context.metrics, config, lambda: 1, in_thread=True)
    keep_from_children(management.sockets)
    management.start()
    return management


def _needs_supervisor(number: int, frame: object) -> None:
    name = signal.Signals(number).name
    logging.warning(f"{name} means nothing without a supervisor; see --supervisor")
