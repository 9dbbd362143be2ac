"""`citius serve TARGET` with options that are spelt in full, read without click.

click and what it declares take a quarter of a start, and pages of memory that are not given back. Whatever is
spelt otherwise, asks for help, or cannot be is left to cli.py, which reads it again and says what is wrong.
In: the arguments. Out: what cli.py would read of them; ``None`` if it has to. Tests:
``tests/cli/test_commandline.py``.
"""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, Any

from citius.errors import ConfigError
from citius.settings.config import OPTIONS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from citius.settings.option import Option


def read_plain(arguments: Sequence[str]) -> tuple[str, dict[str, Any]] | None:
    """The target and the values of options."""
    # On Windows click resolves wildcards; with this variable it completes a line of the shell.
    if sys.platform == "win32" or arguments[:1] != ["serve"] or "_CITIUS_COMPLETE" in os.environ:
        return None
    known = _flags()
    targets: list[str] = []
    given: dict[str, Any] = {}
    rest = iter(arguments[1:])
    for argument in rest:
        if not argument.startswith("-"):
            targets.append(argument)
            continue
        flag, equals, value = argument.partition("=")
        found = known.get(flag)
        if found is None or (equals and len(flag) == 2):
            return None
        option, is_on = found
        if option.kind == "bool":
            read = None if equals else is_on
        else:
            read = _value(option, value if equals else next(rest, ""))
        if read is None:
            return None
        if option.kind == "list":
            given[option.name] = (*given.get(option.name, ()), read)
        elif option.name in given:
            return None
        else:
            given[option.name] = read
    return (targets[0], given) if len(targets) == 1 and targets[0] else None


def _flags() -> dict[str, tuple[Option, bool]]:
    """The options by the flags that cli.py shows, and which value a flag without one stands for."""
    found: dict[str, tuple[Option, bool]] = {}
    for option in OPTIONS.values():
        first = option.flags[0]
        if option.kind == "bool":
            found[first], found[f"--no-{first[2:]}"] = (option, True), (option, False)
        else:
            shown = (flag for flag in option.flags if flag == first or len(flag) == 2)
            found.update((flag, (option, True)) for flag in shown)
    return found


def _value(option: Option, text: str) -> Any:
    """What a flag's text stands for; ``None`` if it may be something else, or cannot be."""
    if not text or text.startswith("-"):
        return None
    if option.kind == "list":
        return text
    try:
        return option.from_flag(text, option.flags[0])
    except ConfigError:
        return None
