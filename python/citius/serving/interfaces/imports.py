"""Imports the application that a target of the command line names.

Targets: ``module:attribute``, ``module`` (then the usual names are tried), ``path/to/file.py`` with or
without ``:attribute``; attributes may be dotted; Django projects (django.py). A factory is called, without
arguments or with those of ``module:create_app("text", debug=True)``, which are literals. Messages say what
was expected, what was found, and what to do.
"""

from __future__ import annotations

import ast
import os
import sys
from functools import partial
from importlib import import_module
from inspect import signature
from typing import TYPE_CHECKING, Any, cast

from citius.errors import AppImportError
from citius.serving.interfaces import django
from citius.serving.interfaces.detection import application

if TYPE_CHECKING:
    from types import ModuleType

    from citius.serving.interfaces import Application
    from citius.settings.config import Config

NAMES = ("app", "application", "api")
FACTORY_NAMES = ("create_app", "make_app")


def import_app(target: str, config: Config) -> Application:
    """The application that ``target`` names, behind its interface (detection.py).

    Raises:
        AppImportError: It does not exist, or is no application. Exceptions of the imported module
            itself pass through.
    """
    if (project := django.find(target, config.app_dir)) is not None:
        return django.threaded(application(*project.application(config.interface), config), config)
    module_name, _, attribute = target.partition(":")
    if not module_name:
        raise AppImportError(f"expected module:attribute or a file, got {target!r}")
    if not os.path.isdir(config.app_dir):
        raise AppImportError(f"--app-dir: there is no directory {config.app_dir}")
    called = _call(attribute, target)
    is_path = os.sep in module_name or module_name in (os.curdir, os.pardir)
    if module_name.endswith(".py") or is_path:
        module = _import_file(module_name, config.app_dir)
    else:
        module = _import_module(module_name, config.app_dir)
    if called is not None:
        name, arguments, more = called
        factory = _attribute(module, name, target)
        found, is_factory = (
            partial(factory, *arguments, **more) if callable(factory) else factory,
            True,
        )
    elif attribute:
        found, name, is_factory = _attribute(module, attribute, target), attribute, False
        _refuse_imported_class(module, found, target)
    else:
        found, name, is_factory = _default(module, config.factory)
    return application(found, f"{module_name}:{name}", config, factory=is_factory)


def _call(attribute: str, target: str) -> tuple[str, list[Any], dict[str, Any]] | None:
    """Name and arguments of ``create_app("text", debug=True)``; ``None`` if the attribute is a name alone."""
    if "(" not in attribute:
        return None
    try:
        call = ast.parse(attribute, mode="eval").body
        if not isinstance(call, ast.Call) or any(word.arg is None for word in call.keywords):
            raise ValueError
        arguments = [ast.literal_eval(value) for value in call.args]
        more = {word.arg or "": ast.literal_eval(word.value) for word in call.keywords}
    except (SyntaxError, ValueError):
        raise AppImportError(
            f"{target}: expected module:factory(...) with literals as arguments, such as "
            'shop:create_app("test", debug=True)'
        ) from None
    return ast.unparse(call.func), arguments, more


def _import_file(path: str, app_dir: str) -> ModuleType:
    path = os.path.abspath(os.path.join(app_dir, path))
    if os.path.isdir(path):
        have = ", ".join(entry + ".py" for entry in _modules(path))
        raise AppImportError(
            f"{path} is a directory without a manage.py; name a file in it"
            + (f", one of {have}" if have else "")
        )
    if not os.path.isfile(path):
        meant = f"; did you mean {path}.py?" if os.path.isfile(path + ".py") else ""
        raise AppImportError(f"there is no file {path}{meant}")
    # A file inside a package is imported as part of it, so that its relative imports work.
    directory, name = os.path.dirname(path), os.path.basename(path).removesuffix(".py")
    parts = [] if name == "__init__" else [name]
    while os.path.isfile(os.path.join(directory, "__init__.py")):
        directory, package = os.path.split(directory)
        parts.insert(0, package)
    if not all(part.isidentifier() for part in parts):
        raise AppImportError(f"{path} cannot be imported: {'.'.join(parts)} is no module name")
    return _import_module(".".join(parts), directory)


def _import_module(name: str, directory: str) -> ModuleType:
    directory = os.path.abspath(directory)
    if directory not in sys.path:
        sys.path.insert(0, directory)
    if name.startswith("."):
        raise AppImportError(f"{name!r} is no name of a module: it begins with a dot")
    try:
        return import_module(name)
    except ModuleNotFoundError as error:
        # Only if the target itself is missing, not a module that it imports.
        if error.name is None or not (name + ".").startswith(error.name + "."):
            raise
        if (meant := _with_colon(name)) is not None:
            raise AppImportError(
                f"no module {name!r}, but an attribute of {meant.partition(':')[0]}; write {meant}"
            ) from None
        here = ", ".join(_modules(directory))
        have = f"; modules there: {here}" if here else ""
        raise AppImportError(
            f"no module {error.name!r} in {directory} or elsewhere on sys.path{have}. "
            "Is --app-dir right?"
        ) from None


def _modules(directory: str) -> list[str]:
    """Some of the modules in a directory."""
    return sorted(
        entry.removesuffix(".py")
        for entry in os.listdir(directory)
        if entry.endswith(".py") and entry != "__init__.py"
    )[:10]


def _with_colon(name: str) -> str | None:
    """``shop:app`` for ``shop.app``, if that is an attribute of an imported module."""
    module_name, _, attribute = name.rpartition(".")
    return (
        f"{module_name}:{attribute}" if hasattr(sys.modules.get(module_name), attribute) else None
    )


def _attribute(module: ModuleType, dotted: str, target: str) -> Any:
    found: Any = module
    for name in dotted.split("."):
        try:
            found = getattr(found, name)
        except AttributeError:
            raise AppImportError(
                f"{target}: {module.__name__} has no attribute {dotted!r}{_candidates(module)}"
            ) from None
    return found


def _default(module: ModuleType, factory: bool) -> tuple[Any, str, bool]:
    """The attribute with a usual name: value, name, and whether the name is that of a factory."""
    for name in () if factory else NAMES:
        if hasattr(module, name):
            return getattr(module, name), name, False
    for name in FACTORY_NAMES:
        if callable(getattr(module, name, None)):
            return getattr(module, name), name, True
    apps = _apps(module)
    if len(apps) == 1 and not factory:
        return getattr(module, apps[0]), apps[0], False
    raise AppImportError(
        f"{module.__name__} has no {', '.join(NAMES + FACTORY_NAMES)}{_candidates(module)}; "
        f"say which one it is: {module.__name__}:NAME"
    )


def _refuse_imported_class(module: ModuleType, found: Any, target: str) -> None:
    """A class of a framework, ``shop:FastAPI`` for ``shop:app``, could be called, and would serve nothing."""
    if not isinstance(found, type):
        return
    of = found.__module__
    if of.partition(".")[0] != module.__name__.partition(".")[0] and _is_interface(found):
        raise AppImportError(
            f"{target} is the class {of}.{found.__qualname__}, and no application{_candidates(module)}"
        )


def _is_interface(kind: type[Any]) -> bool:
    """Whether instances of a class are called as an application of ASGI or WSGI is."""
    try:
        names = set(signature(getattr(kind, "__call__")).parameters)  # noqa: B004, B009  not that of `type`
    except (AttributeError, TypeError, ValueError):
        return False
    return {"scope", "receive", "send"} <= names or "start_response" in names


def _apps(module: ModuleType) -> list[str]:
    from citius.web.application.app import App

    return [name for name, value in vars(module).items() if isinstance(value, App)]


def _candidates(module: ModuleType) -> str:
    found = _apps(module) or [
        name
        for name, value in vars(module).items()
        if not isinstance(value, type) and _is_interface(cast("type[Any]", type(value)))
    ]
    return (
        f"; applications in it: {', '.join(found)}" if found else "; there is no application in it"
    )
