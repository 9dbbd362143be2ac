"""One worker, from its application's import to its exit code.

Runs in the only process or in a fork of the supervisor. In: what to import, a configuration and a
``WorkerContext``. Out: an exit code; what kept the worker from serving is in the log by then.
"""

from __future__ import annotations

import os
from time import monotonic
from typing import TYPE_CHECKING

from citius._core import TlsTickets
from citius.errors import CitiusError, ConfigError
from citius.observability import logging
from citius.observability.tracebacks import trim
from citius.process import early_exits, leaving, lifeline, privileges, signals, standard_streams
from citius.process.forks import call_here, keep_from_children
from citius.process.startup import DEVELOPMENT_ENV
from citius.serving.hosts import late
from citius.serving.interfaces.wsgi import WsgiApp
from citius.serving.late_loop import reason_for_loop
from citius.serving.prepare import EXIT_HOOK, EXIT_STARTUP, fail
from citius.serving.service import Service
from citius.threads import restore_hooks
from citius.web.application.app import App

if TYPE_CHECKING:
    from citius.serving.interfaces import Application
    from citius.serving.service import WorkerContext
    from citius.settings.config import Config


def work(target: App | str, config: Config, context: WorkerContext) -> int:
    """The life of one worker; returns its exit code."""
    leaving.leave_by(monotonic() + config.drain_s)
    try:
        return _work(target, config, context)
    finally:
        early_exits.leave()


def _work(target: App | str, config: Config, context: WorkerContext) -> int:
    try:
        _prepare(config, context)
    except ConfigError as error:
        return fail(str(error))
    early_exits.watch(EXIT_STARTUP)
    try:
        app = call_here(import_application, target, config)
        standard_streams.open_closed()
        restore_hooks()
        if context.is_first and (notice := getattr(app, "notice", "")):
            logging.info(notice)
        service = Service(app, config, context)
    except ConfigError as error:
        return _not_started(error, EXIT_STARTUP, "", config, context)
    except KeyboardInterrupt:
        raise
    except (
        BaseException
    ) as error:  # `sys.exit` too: a module that ends at its import is no application
        return _not_started(error, EXIT_STARTUP, f"importing {target} failed", config, context)
    early_exits.watch(EXIT_HOOK)
    try:
        try:
            _run(app, service, config)
        finally:
            leaving.leave_by(service.left_at or monotonic() + config.drain_s)
    except ConfigError as error:
        return fail(str(error))
    except CitiusError as error:
        return _not_started(error, EXIT_HOOK, "", config, context)
    except BaseException as error:
        if service.is_open or isinstance(error, KeyboardInterrupt):
            raise
        return _not_started(error, EXIT_HOOK, "the application did not start", config, context)
    return EXIT_HOOK if service.is_broken else 0


def _prepare(config: Config, context: WorkerContext) -> None:
    """Do what comes before the application's import; raises ``ConfigError``."""
    keep_from_children(context.listeners)
    keep_from_children(made for place in context.quic for made in place.sockets)
    if config.is_tls:
        from citius.serving import tls

        context.tickets = context.tickets or TlsTickets()
        loaded = (tls.load(config, context.tickets) for _ in range(config.reactors))
        context.tls = [one for one in loaded if one is not None]
    privileges.drop(config)
    lifeline.hold()
    if config.sandbox:
        from citius.process import sandbox

        sandbox.prepare(config)
    if config.loop == "gevent":
        from citius.serving.hosts import gevent

        gevent.patch()


def _run(app: Application, service: Service, config: Config) -> None:
    """Serve in the host that the application needs."""
    if config.loop == "gevent":
        from citius.serving.hosts import gevent

        gevent.run(service)
    elif not service.is_hosted and (config.loop == "none" or isinstance(app, WsgiApp)):
        from citius.serving.hosts import standalone

        standalone.run(service)
    elif not reason_for_loop(app, service):
        late.run(service)
    else:
        from citius.serving.hosts import asyncio

        asyncio.run(service, asyncio.new_loop(config.loop))


def _not_started(
    error: BaseException, code: int, what: str, config: Config, context: WorkerContext
) -> int:
    """Tell why there is nothing to serve, with a traceback if ``what`` introduces one.

    In development every request is told too, until the next change of a file.
    """
    early_exits.leave()
    trim(error)
    # The supervisor stops the other workers when it hears of the first that cannot start, and the one that
    # logs the traceback is not always the first.
    with signals.held("SIGTERM", "SIGQUIT"):
        if not what:
            fail(str(error))
            error.__traceback__ = None
        elif context.tells_failure():
            logging.log_exception(what, error)
        else:
            # Another worker logs the traceback.
            logging.error(f"{what}: {type(error).__name__}: {error}{_place(error)}")
    if DEVELOPMENT_ENV not in os.environ or config.rpc or config.loop == "gevent":
        return code
    logging.error("the application could not be started; the next change starts it anew")
    from citius.serving.failed import failed_app

    app, context.ready = failed_app(error), lambda: None
    try:
        _run(app, Service(app, config, context), config)
    except CitiusError as failure:
        return fail(str(failure))
    return 0


def _place(error: BaseException) -> str:
    import traceback

    frames = traceback.extract_tb(error.__traceback__)
    return f" ({frames[-1].filename}:{frames[-1].lineno})" if frames else ""


def import_application(target: object, config: Config) -> Application:
    """The application itself, or the one that a target like ``module:app`` names."""
    if isinstance(target, App):
        return target
    if not isinstance(target, str):
        from citius.serving.interfaces.detection import application

        return application(target, "the application", config)
    from citius.serving.interfaces.imports import import_app

    return import_app(target, config)
