"""Where the options of a command line come from, read once or again, and printed.

Order of reading: ``--chdir`` first (all paths are relative to it), then environment files, then the three
sources of config.py. ``read`` may be called again (HUP): files are read anew, the command line stays.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any, NamedTuple

from citius.config import OPTIONS, Config, load, trace
from citius.envfile import EnvFiles
from citius.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping


class Job(NamedTuple):
    """What a command line wants to have served."""

    target: str
    config: Config
    reread: Callable[[], Config]


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
            from citius.server import enter

            enter(directory)
            self._given["chdir"] = os.getcwd()
        self._files: EnvFiles | None = None

    def read(self) -> Config:
        """The configuration as it is now.

        Raises:
            ConfigError: Something in one of the sources cannot be; the message names it.
        """
        if self._files is None:
            first = load(self._given, os.environ, self._path)
            if first.chdir is not None and "chdir" not in self._given:
                raise ConfigError(
                    "chdir in a file: the file is looked for in that directory; say --chdir or "
                    "CITIUS_CHDIR"
                )
            self._files = EnvFiles(first.env_file)
        self._files.apply(os.environ)
        return load(self._given, os.environ, self._path)

    def print(self) -> str:
        """Every option with its value and its source, as TOML that `pyproject.toml` understands."""
        lines = ["[tool.citius]"]
        group = ""
        for name, setting in trace(self._given, os.environ, self._path).items():
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
