"""Where the options of a command line come from, read once or again, and printed.

Order of reading: ``--chdir`` first (all paths are relative to it), then environment files, then the three
sources of config.py, then ``env`` is set. ``read`` may be called again (HUP): files are read anew, the
command line stays; if that fails, options and environment stay as they were. A server that this one starts (a
reload, USR2) gets the environment from before (``original_environ``) and reads the same. Root does not read
again what the workers' user can change.
"""

from __future__ import annotations

import os
import sys
import time
from typing import TYPE_CHECKING, Any, NamedTuple

from citius.errors import ConfigError
from citius.observability import logging
from citius.process.paths import changeable
from citius.process.privileges import Identity, are_split
from citius.process.startup import HANDOVER_ENV, enter
from citius.settings.config import OPTIONS, Config
from citius.settings.envfile import Environment, with_assignments, with_files
from citius.settings.loading import Setting, load, of_kubernetes, trace, unknown_variables

if TYPE_CHECKING:
    from collections.abc import Mapping


class Job(NamedTuple):
    """What a command line wants to have served."""

    target: str
    config: Config
    sources: Sources


class Sources:
    """The sources of one command line.

    Args:
        given: Values said on the command line, by option.
        path: A file to take instead of ``pyproject.toml``.

    Raises:
        ConfigError: The directory or file named cannot be had.
    """

    def __init__(self, given: Mapping[str, Any], path: str | None = None) -> None:
        self._given = dict(given)
        self._path = None if path is None else os.path.abspath(path)
        directory = self._early("chdir")
        if directory:
            enter(directory)
            self._given["chdir"] = os.getcwd()
        self._environment = Environment()
        self._settings: dict[str, Setting] = {}
        # A server that takes sockets over was started by one that has said it.
        self._says_unknown = HANDOVER_ENV not in os.environ
        self._latest: Config | None = None

    def read(self) -> Config:
        """The configuration as it is now.

        Raises:
            ConfigError: Something in one of the sources cannot be; the message names it.
        """
        if self._latest is not None and (found := self.changeable(self._latest)):
            if os.path.exists(found[0]):
                logging.warning(
                    f"the options stay as they are: the user whom the workers run as can change {found[1]}, "
                    f"so root does not read {found[0]} again; make it root's, or start the server anew"
                )
            return self._latest
        environ = self.original_environ()
        early = trace(self._given, environ, self._path, only=("app_dir", "chdir", "env_file"))
        if early["chdir"].value is not None and "chdir" not in self._given:
            raise ConfigError(
                "chdir in a file: the file is looked for in that directory; say --chdir or CITIUS_CHDIR"
            )
        environ = with_files(environ, early["env_file"].value)
        if self._says_unknown:
            self._says_unknown = False
            _note_variables(environ)
        self._latest = load(self._given, environ, self._path)
        self._settings = trace(self._given, environ, self._path)
        zone = os.environ.get("TZ")
        self._environment.replace(os.environ, with_assignments(environ, self._latest.env))
        if os.environ.get("TZ") != zone and sys.platform != "win32":
            time.tzset()  # the C library has read it when the process began
        return self._latest

    def original_environ(self) -> dict[str, str]:
        """The environment without what files and ``env`` have set."""
        return self._environment.original(os.environ)

    def files(self, config: Config) -> tuple[str, ...]:
        """The files of options and of environment variables, whether they are there or not."""
        own = self._path or os.path.join(config.app_dir, "pyproject.toml")
        return own, *config.env_file

    def changeable(self, config: Config) -> tuple[str, str] | None:
        """A file of options that the workers' user can change, and the place where it can; if root serves.

        What that user writes there would be done by root: another ``user``, a log file anywhere.
        """
        if not are_split(config):
            return None
        identity = Identity.of(config)
        for file in self.files(config):
            if place := changeable(file, identity):
                return file, place
        return None

    def print(self) -> str:
        """Every option that ``read`` found, with its source, as TOML that `pyproject.toml` understands."""
        lines = ["[tool.citius]"]
        group = ""
        for name, setting in self._settings.items():
            option = OPTIONS[name]
            if option.group != group:
                group = option.group
                lines += ["", f"# {group}"]
            secret = name.endswith("password") and setting.value is not None
            value = toml("(not shown)" if secret else setting.value)
            line = f"{name} = {value}" if value is not None else f"# {name} is not set"
            lines.append(f"{line:<44} # {setting.source}" if value is not None else line)
        return "\n".join(lines) + "\n"

    def _early(self, name: str) -> Any:
        """The value of an option that counts before files are read."""
        value = self._given.get(name)
        for variable in OPTIONS[name].env:
            value = value or os.environ.get(variable)
        return value


def _note_variables(environ: Mapping[str, str]) -> None:
    """Tell which variables called ``CITIUS_…`` are not used, and why."""
    if services := of_kubernetes(environ):
        logging.warning(
            f"{services[0]} announces a service of Kubernetes and is ignored"
            + (f", as are {len(services) - 1} more" if services[1:] else "")
            + "; enableServiceLinks: false in the pod's specification leaves it out"
        )
    for variable, similar in unknown_variables(environ).items():
        logging.warning(f"{variable} in the environment stands for no option{similar}")


def toml(value: Any) -> str | None:
    """``value`` as TOML writes it; ``None`` for what TOML cannot say."""
    if value is None:
        return None
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, (list, tuple)):
        items = [toml(item) or "" for item in value]  # pyright: ignore
        return f"[{', '.join(items)}]"
    if isinstance(value, str):
        import json

        return json.dumps(value, ensure_ascii=False)
    return repr(value)
