"""One option: how its values are written, checked and shown.

``Option`` is a row of the table in config.py. ``parse`` reads text (a flag, a variable), ``read`` a value
of a file; both raise ``ConfigError`` with the source's name. Imports nothing of the package but its errors.
"""

from __future__ import annotations

import os
from dataclasses import field
from typing import TYPE_CHECKING, Any, Final, Literal

from citius.errors import ConfigError
from citius.records import record

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

LISTENING = "Listening"
APPLICATION = "Application"
WORKERS = "Workers"
SUPERVISION = "Supervision"
STOPPING = "Stopping"
PROCESS = "Process"
DEVELOPMENT = "Development"
LOGGING = "Logging"
OBSERVING = "Observing"
HTTP = "HTTP"
PROXIES = "Behind proxies"
STATIC = "Static files"
TLS = "TLS"
LIMITS_GROUP = "Limits"


@record(frozen=True, slots=True)
class Option:
    """What the command line, the environment and the docs need to know of one option."""

    name: str
    kind: Literal["str", "int", "float", "bool", "list"]
    default: Any
    help: str
    unit: str = ""
    flags: tuple[str, ...] = ()
    """All spellings, the documented one first."""
    env: tuple[str, ...] = ()
    """Variables, the documented one first."""
    choices: tuple[str, ...] = ()
    minimum: float | None = None
    maximum: float | None = None
    scale: Mapping[str, float] = field(default_factory=dict[str, float])
    """Factor from an alias's unit to the option's own."""
    zero: Mapping[str, int | str] = field(default_factory=dict[str, "int | str"])
    """What 0 under another server's flag means there: a value of this option, or why it is refused."""
    has_empty: bool = False
    """An empty variable is an empty list; otherwise it is as good as none."""
    group: str = "Serving"
    """The heading it is shown under."""
    separator: str = os.pathsep
    """Between the items of a list in the environment."""
    is_limit: bool = False
    auto: Callable[[], int] | None = None
    """The value that ``auto`` stands for."""

    def read(self, value: Any, source: str) -> Any:
        """The value that a file gives: ``auto`` and sizes such as ``64M`` in words, all else typed.

        Raises:
            ConfigError: The option cannot have it; the message names ``source``.
        """
        if self.auto and value == "auto":
            return self.auto()
        is_size = self.unit == "bytes" and isinstance(value, str)
        return self.parse(value, source) if is_size else self.check(value, source)

    def from_flag(self, value: str | float, flag: str) -> Any:
        """The value that ``flag``, one of the spellings, has: in its own unit, and with its own 0.

        Raises:
            ConfigError: The option cannot have it; the message names ``flag``.
        """
        factor, zero = self.scale.get(flag, 1), self.zero.get(flag)
        if factor == 1 and zero is None:
            return self.parse(value, flag) if isinstance(value, str) else self.check(value, flag)
        try:
            number = float(value)
            if number == 0 and zero is not None:
                if isinstance(zero, str):
                    raise ConfigError(f"{flag} 0: {zero}")
                return zero
            if factor == 1:
                return (
                    self.parse(value, flag) if isinstance(value, str) else self.check(value, flag)
                )
            scaled = number * factor
            if self.kind == "int":
                # A positive time does not become 0, which often means "never".
                scaled = max(1, int(scaled)) if scaled > 0 else int(scaled)
            return self.check(scaled, flag)
        except (ValueError, OverflowError) as error:
            if isinstance(error, ConfigError):
                raise
            raise ConfigError(f"{flag}: expected {self.expected}, got {value!r}") from None

    def parse(self, text: str, source: str) -> Any:
        """The value that ``text`` spells.

        Raises:
            ConfigError: It is none; the message names ``source``.
        """
        if self.auto and text.strip().lower() == "auto":
            return self.auto()
        try:
            if self.kind == "bool":
                return _BOOLS[text.strip().lower()]
            if self.kind == "int":
                factor = 1
                if self.unit == "bytes" and text[-1:].lower() in _SIZES:
                    text, factor = text[:-1], _SIZES[text[-1].lower()]
                return self.check(int(text) * factor, source)
            if self.kind == "float":
                return self.check(float(text), source)
        except (ValueError, KeyError) as error:
            if isinstance(error, ConfigError):
                raise
            raise ConfigError(f"{source}: expected {self.expected}, got {text!r}") from None
        if self.kind == "list":
            return tuple(part for part in text.split(self.separator) if part)
        return self.check(text, source)

    def check(self, value: Any, source: str) -> Any:
        """``value`` if the option can have it.

        Raises:
            ConfigError: It cannot.
        """
        if self.kind == "list" and self._fits(value):
            return tuple(value)
        if isinstance(value, str) and value.lower() in self.choices:
            return value.lower()
        if not self._fits(value) and not (value is None and self.default is None):
            raise ConfigError(f"{source}: expected {self.expected}, got {value!r}")
        return value

    def _fits(self, value: Any) -> bool:
        if self.kind == "bool":
            return isinstance(value, bool)
        if self.kind == "list":
            return isinstance(value, (list, tuple)) and all(
                isinstance(item, str)
                for item in value  # pyright: ignore[reportUnknownVariableType]
            )
        if self.kind == "str":
            return isinstance(value, str) and (not self.choices or value in self.choices)
        number = int if self.kind == "int" else (int, float)
        limit = _INT_MAX if self.kind == "int" else _SECONDS_MAX
        return (
            isinstance(value, number)
            and not isinstance(value, bool)
            and (self.minimum is None or value >= self.minimum)
            and value <= (limit if self.maximum is None else self.maximum)
        )

    @property
    def expected(self) -> str:
        """The values in words."""
        if self.choices:
            return "one of " + ", ".join(self.choices)
        words = {"str": "text", "bool": "true or false", "list": "a list of texts"}
        text = words.get(self.kind) or ("a whole number" if self.kind == "int" else "a number")
        if self.unit:
            text += f" of {self.unit}"
        if self.minimum is not None and self.maximum is not None:
            text += f" from {self.minimum:.15g} to {self.maximum:.15g}"
        elif self.minimum is not None:
            text += f", at least {self.minimum:g}"
            if self.kind == "float":
                text += f" and at most {_SECONDS_MAX:.0f}"
        if self.unit == "bytes":
            text += " (64k, 512M and 2G are understood)"
        if self.auto:
            text += ", or auto"
        return text


_INT_MAX: Final = 2**63 - 1
"""The largest whole number of any option. Origin: what the extension and the system take. Exceeded: an
error at the start."""
_SECONDS_MAX: Final = 1e8
"""The longest time of any option, three years. Origin: timers of the interpreter end at 9.2e9 seconds.
Exceeded: an error at the start."""

_SIZES = {"k": 1 << 10, "m": 1 << 20, "g": 1 << 30}

_BOOLS = {
    **dict.fromkeys(("1", "true", "yes", "on"), True),
    **dict.fromkeys(("0", "false", "no", "off"), False),
}


def option(
    default: Any,
    help: str,
    *,
    flags: tuple[str, ...] = (),
    kind: Literal["str", "int", "float", "bool", "list"] = "str",
    unit: str = "",
    env: tuple[str, ...] = (),
    choices: tuple[str, ...] = (),
    minimum: float | None = None,
    maximum: float | None = None,
    group: str = "Serving",
    separator: str = os.pathsep,
    scale: Mapping[str, float] | None = None,
    zero: Mapping[str, int | str] | None = None,
    has_empty: bool = False,
    auto: Callable[[], int] | None = None,
) -> Any:
    """A field of ``Config`` that is an option; arguments as the fields of ``Option``."""
    metadata: dict[str, Any] = {
        "help": help, "flags": flags, "kind": kind, "unit": unit, "env": env, "choices": choices,
        "minimum": minimum, "maximum": maximum, "group": group, "separator": separator,
        "scale": scale or {}, "zero": zero or {}, "has_empty": has_empty, "auto": auto,
    }  # fmt: skip
    return field(default=default, metadata=metadata)


def did_you_mean(name: str, known: Mapping[str, object]) -> str:
    """The end of a message about an unknown name: the known one that it is similar to."""
    from difflib import get_close_matches

    close = get_close_matches(name, known, n=1)
    return f"; did you mean {close[0]}?" if close else ""
