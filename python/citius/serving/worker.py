"""One worker, from its application's import to its exit code.

Runs in the only process or in a fork of the supervisor. In: what to import, a configuration and a
``WorkerContext``. Out: an exit code; what kept the worker from serving is in the log by then.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from citius._core import TlsTickets
from citius.errors import CitiusError, ConfigError
from citius.observability import logging
from citius.process import privileges
from citius.process.forks import call_here, keep_from_children
from citius.serving.interfaces.wsgi import WsgiApp
from citius.serving.prepare import EXIT_STARTUP, fail
from citius.serving.service import Service
from citius.web.app import App

if TYPE_CHECKING:
    from citius.serving.interfaces import Application
    from citius.serving.service import WorkerContext
    from citius.settings.config import Config


def work(target: App | str, config: Config, context: WorkerContext) -> int:
    """The life of one worker; returns its exit code."""
    keep_from_children(context.listeners)
    try:
        if config.is_tls:
            from citius.serving import tls

            context.tickets = context.tickets or TlsTickets()
            loaded = (tls.load(config, context.tickets) for _ in range(config.reactors))
            context.tls = [one for one in loaded if one is not None]
        privileges.drop(config)
        if config.sandbox:
            from citius.process import sandbox

            sandbox.prepare(config)
        if config.loop == "gevent":
            from citius.serving.hosts import gevent

            gevent.patch()
        app = call_here(import_application, target, config)
        if context.is_first and (notice := getattr(app, "notice", "")):
            logging.info(notice)
        service = Service(app, config, context)
    except ConfigError as error:
        return fail(str(error))
    except Exception as error:
        logging.log_exception(f"importing {target} failed", error)
        return EXIT_STARTUP
    try:
        if config.loop == "gevent":
            from citius.serving.hosts import gevent

            gevent.run(service)
        elif not service.is_hosted and (config.loop == "none" or isinstance(app, WsgiApp)):
            from citius.serving.hosts import standalone

            standalone.run(service)
        else:
            from citius.serving.hosts import asyncio

            asyncio.run(service, asyncio.new_loop(config.loop))
    except CitiusError as error:
        return fail(str(error))
    except Exception as error:
        if service.is_open:
            raise
        logging.log_exception("the application did not start", error)
        return EXIT_STARTUP
    return 0


def import_application(target: object, config: Config) -> Application:
    """The application itself, or the one that a target like ``module:app`` names."""
    if isinstance(target, App):
        return target
    if not isinstance(target, str):
        from citius.serving.interfaces.detection import application

        return application(target, "the application", config)
    from citius.serving.interfaces.imports import import_app

    return import_app(target, config)
