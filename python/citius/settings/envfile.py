"""``--env-file``: lines of ``NAME=value`` into the environment.

A file means what it means to python-dotenv: ``#`` begins a comment, ``export`` is skipped, ``'…'`` is
literal, ``"…"`` knows Python's escapes of one letter, both may contain line ends, and ``${NAME}`` and
``${NAME:-default}`` are replaced, also in quotes. Variables that are set already have priority, so that a
deployment can override the file. Two things differ: a line that is not understood is an error, and ``;``
begins a comment line, as for systemd.
"""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING

from citius.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, MutableMapping


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
        others = {name: value for name, value in environ.items() if value != self._given.get(name)}
        found: dict[str, str] = {}
        for path in self._paths:
            for name, value in read(path, {**found, **others}).items():
                found.setdefault(name, value)
        for name, value in self._given.items():
            if name not in found and environ.get(name) == value:
                del environ[name]
        given: dict[str, str] = {}
        for name, value in found.items():
            if name not in environ or environ[name] == self._given.get(name):
                environ[name] = given[name] = value
        self._given = given


def read(path: str, environ: Mapping[str, str]) -> dict[str, str]:
    """The variables of one file.

    Args:
        path: Where it is.
        environ: What ``${NAME}`` stands for; names that are not there are looked for in the file, above.

    Raises:
        ConfigError: It cannot be read, or a line is not understood.
    """
    try:
        with open(path, encoding="utf-8-sig") as file:
            text = file.read()
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise ConfigError(f"env_file: cannot read {path}: {reason.lower()}") from None
    found: dict[str, str | None] = {}
    for name, value in _statements(text, path):
        found[name] = None if value is None else _interpolated(value, {**found, **environ})
    return {name: value for name, value in found.items() if value is not None}


def _statements(text: str, path: str) -> Iterable[tuple[str, str | None]]:
    """Names and values in their order; ``None`` for a name alone, which sets nothing."""
    at = 0
    while True:
        at = _BETWEEN.match(text, at).end()  # pyright: ignore[reportOptionalMemberAccess]  it always matches
        if at == len(text):
            return
        match = _STATEMENT.match(text, at)
        if match is None:
            number, line = text.count("\n", 0, at) + 1, text[at:].partition("\n")[0]
            raise ConfigError(f"{path}, line {number}: expected NAME=value, got {line!r}")
        at = match.end()
        yield match["name"].strip("'"), _value(match)


def _value(match: re.Match[str]) -> str | None:
    if match["literal"] is not None:
        return re.sub(r"\\([\\'])", r"\1", match["literal"])
    if match["quoted"] is not None:
        return re.sub(r"\\([\\'\"abfnrtv])", lambda m: _ESCAPES.get(m[1], m[1]), match["quoted"])
    plain: str | None = match["plain"]
    return None if plain is None else re.sub(r"\s+#.*", "", plain).strip()


def _interpolated(value: str, environ: Mapping[str, str | None]) -> str:
    return _VARIABLE.sub(lambda m: environ.get(m["name"], m["default"]) or "", value)


_BETWEEN = re.compile(r"(?:\s+|[#;][^\r\n]*)*")
_STATEMENT = re.compile(
    r"""
    (?: export [^\S\r\n]++ )?+
    (?P<name> '[^'\r\n]+' | [^=\#\s'"]+ ) [^\S\r\n]*
    (?: = (?: [^\S\r\n]* ' (?P<literal> (?: [^'\\] | \\. )* ) '
            | [^\S\r\n]* " (?P<quoted> (?: [^"\\] | \\. )* ) "
            | (?P<plain> [^\S\r\n]*+ (?! ['"] ) [^\r\n]* )
          )
    )?
    [^\S\r\n]* (?: \# [^\r\n]* )? (?= [\r\n] | \Z )
    """,
    re.VERBOSE | re.DOTALL,
)
_ESCAPES = {"a": "\a", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v"}
_VARIABLE = re.compile(r"\$\{(?P<name>[^}:]*)(?::-(?P<default>[^}]*))?\}")
