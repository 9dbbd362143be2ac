"""Finds the application of a Django project, without a flag or the name of a module.

A project is a ``manage.py`` that names a settings module; it is parsed, not executed. The settings decide
what is served, as for Django's own ``runserver``: ``ASGI_APPLICATION``, which only projects set that route
more than HTTP (Channels), then ``WSGI_APPLICATION``, then Django's plain WSGI application. ``--interface``
has priority.

As with ``runserver``, views run at once, in threads, and with ``DEBUG`` the static files of the project's
applications are served.
"""

from __future__ import annotations

import ast
import os
import sys
from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, Literal

from citius.errors import AppImportError
from citius.observability import logging

if TYPE_CHECKING:
    from citius.serving.interfaces import Application
    from citius.settings.config import Config, Interface

THREADS = 8
"""Threads of a WSGI project without ``--threads``. Each has a connection to the database: with four workers
there are 32, a third of what PostgreSQL takes."""

MANAGE = "manage.py"
_SETTINGS = "DJANGO_SETTINGS_MODULE"


@dataclass(frozen=True, slots=True)
class Project:
    """The directory of a project, and the settings module of its ``manage.py``."""

    directory: str
    settings: str
    """The settings module; that of the environment has priority, as in ``manage.py``."""

    @property
    def name(self) -> str:
        """The package of the settings."""
        return self.settings.partition(".")[0]

    def application(self, interface: Interface) -> tuple[Any, str]:
        """The application, and its name in messages.

        Raises:
            AppImportError: Django is not installed, or has no such interface. Exceptions of
                the project itself pass through.
        """
        where = f"the Django project {self.name}"
        if interface not in ("auto", "asgi", "wsgi"):
            raise AppImportError(f"{where} has no {interface} application; leave --interface out")
        if self.directory not in sys.path:
            sys.path.insert(0, self.directory)
        if find_spec("django") is None:
            raise AppImportError(
                f"{where} ({os.path.join(self.directory, MANAGE)}) needs Django, which {sys.executable} "
                "does not have; run the citius of the project's own environment"
            )
        os.environ.setdefault(_SETTINGS, self.settings)
        kind, named = self._wanted(interface)
        logging.info(
            f"found {where}: settings {os.environ[_SETTINGS]}, {kind.upper()} application "
            f"{named or 'of Django itself'}"
        )
        if named is None:
            core = import_module(f"django.core.{kind}")
            return _with_static_files(getattr(core, f"get_{kind}_application")(), kind), where
        made = import_module("django.utils.module_loading").import_string(named)
        return _with_static_files(made, kind), f"{where}: {named}"

    @staticmethod
    def _wanted(interface: Interface) -> tuple[Literal["asgi", "wsgi"], str | None]:
        """The interface to serve, and the application that the settings name for it."""
        settings = import_module("django.conf").settings
        asgi: str | None = getattr(settings, "ASGI_APPLICATION", None)
        if interface == "asgi" or (interface == "auto" and asgi is not None):
            return "asgi", asgi
        return "wsgi", getattr(settings, "WSGI_APPLICATION", None)


def _with_static_files(made: Any, kind: Literal["asgi", "wsgi"]) -> Any:
    """The application wrapped in Django's handler of static files if ``runserver`` would do that."""
    settings, apps = import_module("django.conf").settings, import_module("django.apps").apps
    is_wanted = settings.DEBUG and apps.is_installed("django.contrib.staticfiles")
    if not is_wanted or not settings.STATIC_URL:
        return made
    handlers = import_module("django.contrib.staticfiles.handlers")
    logging.info(f"DEBUG is on: static files are served at {settings.STATIC_URL}, as by runserver")
    name = "ASGIStaticFilesHandler" if kind == "asgi" else "StaticFilesHandler"
    return getattr(handlers, name)(made)


def threaded(app: Application, config: Config) -> Application:
    """Set the number of threads of a WSGI project to ``THREADS``, unless an option sets it."""
    from citius.serving.interfaces.wsgi import WsgiApp

    if isinstance(app, WsgiApp) and config.threads is None and config.loop != "gevent":
        app.thread_count = THREADS
        app.notice += f"; its views run in {THREADS} threads (--threads)"
    return app


def find(target: str | None, directory: str) -> Project | None:
    """The project that ``target`` names; ``None`` if it names none.

    That is a ``manage.py``, the directory of one, the package of the settings beside one or, without a
    target, what is in ``directory``.

    Raises:
        AppImportError: The named ``manage.py`` does not belong to Django.
    """
    if target is None:
        return _read(os.path.join(directory, MANAGE))
    path = os.path.join(directory, target)
    if os.path.basename(path) == MANAGE and os.path.isfile(path):
        project = _read(path)
        if project is None:
            raise AppImportError(
                f"{path} names no settings: {_SETTINGS} is neither set in it nor in the environment"
            )
        return project
    if os.path.isdir(path) and (project := _read(os.path.join(path, MANAGE))) is not None:
        return project
    beside = _read(os.path.join(directory, MANAGE)) if target.isidentifier() else None
    return beside if beside is not None and beside.name == target else None


def _read(path: str) -> Project | None:
    try:
        with open(path, encoding="utf-8") as file:
            text = file.read()
    except OSError:
        return None
    if "django" not in text.lower():
        return None
    try:
        settings = os.environ.get(_SETTINGS) or _settings_of(ast.parse(text))
    except SyntaxError as error:
        raise AppImportError(f"{path} cannot be read: {error}") from None
    return Project(os.path.dirname(os.path.abspath(path)), settings) if settings else None


def _settings_of(module: ast.Module) -> str | None:
    """The value in ``environ.setdefault(NAME, value)`` or ``environ[NAME] = value``."""
    for node in ast.walk(module):
        match node:
            case ast.Call(
                func=ast.Attribute(attr="setdefault"),
                args=[ast.Constant(value="DJANGO_SETTINGS_MODULE"), ast.Constant(value=str(value))],
            ):
                return value
            case ast.Assign(
                targets=[ast.Subscript(slice=ast.Constant(value="DJANGO_SETTINGS_MODULE"))],
                value=ast.Constant(value=str(value)),
            ):
                return value
            case _:
                pass
    return None
