"""From the three sources to a ``Config``: command line, environment, ``pyproject.toml``.

Precedence, highest first: command line, ``CITIUS_*`` in the environment, ``[tool.citius]`` in the
``pyproject.toml`` of the application's directory, default.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any, Final, cast

from citius.errors import ConfigError
from citius.process.startup import DEVELOPMENT_ENV
from citius.records import record
from citius.settings.config import OPTIONS, Config
from citius.settings.option import did_you_mean

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping


def make(values: Mapping[str, Any]) -> Config:
    """A ``Config`` of option values, limits among them."""
    plain = {name: value for name, value in values.items() if not OPTIONS[name].is_limit}
    limits = {name: value for name, value in values.items() if OPTIONS[name].is_limit}
    return Config(**plain, limits=limits)


@record(frozen=True, slots=True)
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
    known = dict.fromkeys(_VARIABLES, "")
    services = of_kubernetes(environ)
    return {
        variable: did_you_mean(variable, known)
        for variable in environ
        if variable.startswith("CITIUS_")
        and variable not in known
        and variable not in services
        and not variable.startswith(_OTHER_VARIABLES)
    }


_NOT_UNDER_RELOAD: Final = frozenset(
    {"workers", "sandbox", "sandbox_read", "sandbox_write", "sandbox_connect", "sandbox_metadata"}
)
"""What contradicts ``--reload`` on the command line, and is not taken from elsewhere beside it."""

_ADDRESSES: Final = frozenset({"bind", "uds", "fd"})
"""What replaces ``host`` and ``port``, and is not taken from below a source that says where to listen."""

_VARIABLES: Final = frozenset(variable for option in OPTIONS.values() for variable in option.env)

_OTHER_VARIABLES: Final = ("CITIUS_HANDOVER", "CITIUS_LAB_", "CITIUS_LOAD")
"""Those of a server to its successor, and the lab's."""


def trace(
    given: Mapping[str, Any],
    environ: Mapping[str, str],
    path: str | None = None,
    *,
    only: Collection[str] = OPTIONS,
) -> dict[str, Setting]:
    """Every option's value with its source; exceptions as for ``load``.

    A value is read only if no source of higher precedence has one: what is replaced may be invalid.

    Args:
        given: As for ``load``.
        environ: As for ``load``.
        path: As for ``load``.
        only: The options that are read; the others have their defaults.
    """
    found = {name: Setting(value, OPTIONS[name].flags[0]) for name, value in given.items()}
    # The options of a deployment stand in the file while its application is being written.
    # The child that a reloader starts gets its command line and --no-reload, and is the one that serves.
    is_reloading = given.get("reload") or DEVELOPMENT_ENV in environ
    skipped = _NOT_UNDER_RELOAD if is_reloading else frozenset[str]()
    beside = skipped | _replaced(found)
    for name, (text, variable) in _from_environment(environ).items():
        if name not in found and name not in beside and name in only:
            found[name] = Setting(OPTIONS[name].parse(text, variable), variable)
    app_dir = found["app_dir"].value if "app_dir" in found else "."
    file = path or os.path.join(app_dir, "pyproject.toml")
    beside = skipped | _replaced(found)
    for name, (value, key) in _from_file(file, is_ours=path is not None).items():
        if name not in found and name not in beside and name in only:
            read = OPTIONS[name].read(value, f"{file}: {key}")
            found[name] = Setting(read, os.path.normpath(file))
    unset = ((name, Setting(option.default, "default")) for name, option in OPTIONS.items())
    return {name: found.get(name, setting) for name, setting in unset}


def _replaced(found: Collection[str]) -> frozenset[str]:
    """The addresses of lower sources that are set aside by those that were found."""
    return frozenset() if _ADDRESSES.union(("host", "port")).isdisjoint(found) else _ADDRESSES


def of_kubernetes(environ: Mapping[str, str]) -> list[str]:
    """Variables by which Kubernetes announces a service called ``citius`` or ``citius-…`` to containers."""
    import re

    service = re.compile(
        r"CITIUS(_\w+)?_(SERVICE_(HOST|PORT(_\w+)?)|PORT|PORT_\d+_(TCP|UDP|SCTP)(_(PROTO|PORT|ADDR))?)"
    )
    return [
        name
        for name, text in environ.items()
        if service.fullmatch(name) and (name not in _VARIABLES or _is_service_url(text))
    ]


def _is_service_url(text: str) -> bool:
    return text.startswith(("tcp://", "udp://", "sctp://"))


def _from_environment(environ: Mapping[str, str]) -> dict[str, tuple[str, str]]:
    """The text of each option that a variable sets, and the variable."""
    texts: dict[str, tuple[str, str]] = {}
    for option in OPTIONS.values():
        for variable in option.env:
            text = environ.get(variable)
            if text is None or (text == "" and not option.has_empty):
                continue
            if variable == "CITIUS_PORT" and _is_service_url(text):
                continue
            texts[option.name] = text, variable
            break
    return texts


def _from_file(path: str, *, is_ours: bool) -> dict[str, tuple[Any, str]]:
    """``[tool.citius]``, in a file of our own also the top level; dashes are as good as underscores.

    Each option's value as it stands there, and its spelling.
    """
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
    values: dict[str, tuple[Any, str]] = {}
    for key, value in _table_of(whole, path, is_ours=is_ours).items():
        name = key.replace("-", "_")
        option = OPTIONS.get(name)
        if option is None:
            raise ConfigError(f"{path} has no option {key}{did_you_mean(name, OPTIONS)}")
        if name in values:
            raise ConfigError(f"{path} has both {values[name][1]} and {key}, which are one option")
        values[name] = value, key
    return values


def _table_of(whole: dict[str, Any], path: str, *, is_ours: bool) -> dict[str, Any]:
    """The table of a file that has the options."""
    tools: object = whole.get("tool")
    own = cast("dict[str, object]", tools).get("citius") if isinstance(tools, dict) else None
    if own is None:
        return whole if is_ours else {}
    if not isinstance(own, dict):
        raise ConfigError(f"{path}: [tool.citius] is a table of options, got {own!r}")
    beside = [key for key in whole if is_ours and key.replace("-", "_") in OPTIONS]
    if beside:
        raise ConfigError(
            f"{path} has {beside[0]} beside [tool.citius], where it is not read; move it into that table"
        )
    return cast("dict[str, Any]", own)
