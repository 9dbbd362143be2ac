"""``--env-file``: lines of ``NAME=value`` into the environment.

The grammar of systemd's ``EnvironmentFile=`` and Docker's ``--env-file``, and the quotes of shells: ``#``
begins a comment line, ``export`` is skipped, ``'…'`` is literal, ``"…"`` knows the escapes backslash-n, -t,
-quote and -backslash. Nothing is expanded. What the environment has already wins, so that a deployment can
override the file.
"""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING

from citius.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Iterable, MutableMapping


class EnvFiles:
    """Files that are read, and read again on HUP: what came from them may change, the rest may not."""

    def __init__(self, paths: Iterable[str]) -> None:
        self._paths = [os.path.abspath(path) for path in paths]
        self._given: dict[str, str] = {}

    def apply(self, environ: MutableMapping[str, str]) -> None:
        """Put what the files say into ``environ``; the first file that names a variable wins.

        Raises:
            ConfigError: A file cannot be read, or a line is not understood.
        """
        found: dict[str, str] = {}
        for path in self._paths:
            for name, value in read(path).items():
                found.setdefault(name, value)
        for name, value in self._given.items():
            if name not in found and environ.get(name) == value:
                del environ[name]
        given: dict[str, str] = {}
        for name, value in found.items():
            if name not in environ or environ[name] == self._given.get(name):
                environ[name] = given[name] = value
        self._given = given


def read(path: str) -> dict[str, str]:
    """The variables of one file.

    Raises:
        ConfigError: It cannot be read, or a line is not understood.
    """
    try:
        with open(path, encoding="utf-8") as file:
            lines = file.read().splitlines()
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise ConfigError(f"env_file: cannot read {path}: {reason.lower()}") from None
    found: dict[str, str] = {}
    for number, line in enumerate(lines, 1):
        text = line.strip()
        if not text or text[0] in "#;":
            continue
        match = _LINE.fullmatch(text)
        value = None if match is None else _value(match[2])
        if match is None or value is None:
            raise ConfigError(f"{path}, line {number}: expected NAME=value, got {text!r}")
        found[match[1]] = value
    return found


def _value(text: str) -> str | None:
    if text[:1] == "'":
        return text[1:-1] if len(text) > 1 and text.find("'", 1) == len(text) - 1 else None
    if text[:1] == '"':
        match = _QUOTED.fullmatch(text)
        return match and re.sub(r"\\(.)", lambda m: _ESCAPES.get(m[1], m[1]), match[1])
    return re.sub(r"\s+#.*", "", text)


_LINE = re.compile(r"(?:export\s+)?([A-Za-z_][A-Za-z0-9_.]*)\s*=\s*(.*)")
_QUOTED = re.compile(r'"((?:[^"\\]|\\.)*)"')
_ESCAPES = {"n": "\n", "t": "\t"}
