"""``--env-file``: lines of ``NAME=value`` into the environment.

A file means what it means to python-dotenv: ``#`` begins a comment, ``export`` is skipped, ``'…'`` is
literal, ``"…"`` knows Python's escapes of one letter, both may contain line ends, and ``${NAME}`` and
``${NAME:-default}`` are replaced, also in quotes. Variables that are set already have priority, so that a
deployment can override the file. Two things differ: a line that is not understood is an error, and ``;``
begins a comment line, as for systemd. `Environment` undoes what it has set before it sets it anew: a variable
that is no longer in a file goes.
"""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING

from citius.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, MutableMapping


class Environment:
    """The variables that files and ``env`` have set in the environment of this process, and those before."""

    def __init__(self) -> None:
        self._set: dict[str, tuple[str, str | None]] = {}
        """By name: the value that was set, and the one before."""

    def original(self, environ: Mapping[str, str]) -> dict[str, str]:
        """``environ`` without what was set here; a server that is started by this one begins with it.

        What others have changed since stays.
        """
        found = dict(environ)
        for name, (value, before) in self._set.items():
            if found.get(name) == value:
                if before is None:
                    del found[name]
                else:
                    found[name] = before
        return found

    def replace(self, environ: MutableMapping[str, str], wanted: Mapping[str, str]) -> None:
        """Make ``environ`` what is ``wanted``; ``original`` gives what it would be otherwise."""
        base = self.original(environ)
        for name in environ.keys() - wanted.keys():
            del environ[name]
        self._set = {}
        for name, value in wanted.items():
            if base.get(name) != value:
                self._set[name] = value, base.get(name)
            if environ.get(name) != value:
                environ[name] = value


def with_files(environ: Mapping[str, str], paths: Iterable[str]) -> dict[str, str]:
    """``environ`` and the variables of files; one that is set has priority, then the first file.

    Raises:
        ConfigError: A file cannot be read, or a line is not understood.
    """
    found: dict[str, str] = {}
    for path in paths:
        for name, value in read(os.path.abspath(path), {**found, **environ}).items():
            found.setdefault(name, value)
    return {**found, **environ}


def with_assignments(environ: Mapping[str, str], assignments: Iterable[str]) -> dict[str, str]:
    """``environ`` and the variables that ``NAME=value`` texts set, whatever they were before."""
    pairs = (assignment.partition("=") for assignment in assignments)
    return {**environ, **{name: value for name, _, value in pairs}}


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
