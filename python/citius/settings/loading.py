"""From the three sources to a ``Config``: command line, environment, ``pyproject.toml``.

Precedence, highest first: command line, ``CITIUS_*`` in the environment, ``[tool.citius]`` in the
``pyproject.toml`` of the application's directory, default.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from citius.errors import ConfigError
from citius.settings.config import OPTIONS, Config
from citius.settings.option import did_you_mean

if TYPE_CHECKING:
    from collections.abc import Mapping


def make(values: Mapping[str, Any]) -> Config:
    """A ``Config`` of option values, limits among them."""
    plain = {name: value for name, value in values.items() if not OPTIONS[name].is_limit}
    limits = {name: value for name, value in values.items() if OPTIONS[name].is_limit}
    return Config(**plain, limits=limits)


@dataclass(frozen=True, slots=True)
class Setting:
    """A value and who said it: a flag, a variable, a file, or ``default``."""

    value: Any
    source: str


def load(given: Mapping[str, Any], environ: Mapping[str, str], path: str | None = None) -> Config:
    """The configuration of a command line.

    Args:
        given: Values said on the command line.
        environ: The environment.
        path: A file to take instead of ``pyproject.toml``.

    Raises:
        ConfigError: Something in any of the three sources cannot be; the message names it.
    """
    settings = trace(given, environ, path)
    try:
        return make({name: s.value for name, s in settings.items() if s.source != "default"})
    except ConfigError as error:
        raise ConfigError(f"{error}{_origins(str(error), settings)}") from None


def _origins(message: str, settings: Mapping[str, Setting]) -> str:
    """Where the options that a message names were set, unless on the command line."""
    import re  # for messages only

    words = set(re.findall(r"\w+", message))
    found = [
        f"{name} is set by {setting.source}"
        for name, setting in settings.items()
        if name in words and setting.source not in ("default", OPTIONS[name].flags[0])
    ]
    return f" ({', '.join(found)})" if found else ""


def unknown_variables(environ: Mapping[str, str]) -> dict[str, str]:
    """The variables called ``CITIUS_…`` that stand for no option, each with the one it is similar to."""
    known = {variable: "" for option in OPTIONS.values() for variable in option.env}
    return {
        variable: did_you_mean(variable, known)
        for variable in environ
        if variable.startswith("CITIUS_")
        and variable not in known
        and not variable.startswith(_OTHER_VARIABLES)
    }


_NOT_UNDER_RELOAD: Final = frozenset(
    {"workers", "sandbox", "sandbox_read", "sandbox_write", "sandbox_connect", "sandbox_metadata"}
)
"""What contradicts ``--reload`` on the command line, and is not taken from elsewhere beside it."""

_OTHER_VARIABLES: Final = ("CITIUS_HANDOVER", "CITIUS_LAB_", "CITIUS_LOAD")
"""Those of a server to its successor, and the lab's."""


def trace(
    given: Mapping[str, Any], environ: Mapping[str, str], path: str | None = None
) -> dict[str, Setting]:
    """Every option's value with its source; arguments and exceptions as for ``load``."""
    found = {name: Setting(value, OPTIONS[name].flags[0]) for name, value in given.items()}
    for name, (value, variable) in _from_environment(environ).items():
        found.setdefault(name, Setting(value, variable))
    app_dir = found["app_dir"].value if "app_dir" in found else "."
    file = path or os.path.join(app_dir, "pyproject.toml")
    for name, value in _from_file(file, is_ours=path is not None).items():
        found.setdefault(name, Setting(value, os.path.normpath(file)))
    if given.get("reload"):
        # The options of a deployment stand in the file while its application is being written.
        for name in _NOT_UNDER_RELOAD - given.keys():
            found.pop(name, None)
    unset = ((name, Setting(option.default, "default")) for name, option in OPTIONS.items())
    return {name: found.get(name, setting) for name, setting in unset}


def _from_environment(environ: Mapping[str, str]) -> dict[str, tuple[Any, str]]:
    values: dict[str, tuple[Any, str]] = {}
    for option in OPTIONS.values():
        for variable in option.env:
            text = environ.get(variable)
            if text is not None and text != "":
                values[option.name] = option.parse(text, variable), variable
                break
    return values


def _from_file(path: str, *, is_ours: bool) -> dict[str, Any]:
    """``[tool.citius]``, in a file of our own also the top level; dashes are as good as underscores."""
    try:
        with open(path, "rb") as file:
            data = file.read()
    except OSError as error:
        if is_ours:
            reason = (error.strerror or str(error)).lower()
            raise ConfigError(f"--config: cannot read {path}: {reason}") from None
        return {}
    if not is_ours and b"citius" not in data:
        return {}  # and the parser stays out of the worker
    import tomllib

    try:
        whole = tomllib.loads(data.decode())
    except ValueError as error:
        raise ConfigError(f"{path} is no valid TOML: {error}") from None
    table = whole.get("tool", {}).get("citius", whole if is_ours else {})
    values: dict[str, Any] = {}
    for key, value in table.items():
        name = key.replace("-", "_")
        option = OPTIONS.get(name)
        if option is None:
            raise ConfigError(f"{path} has no option {key}{did_you_mean(name, OPTIONS)}")
        values[name] = option.read(value, f"{path}: {key}")
    return values
