"""Every option of the server, once: ``Config`` for code, ``OPTIONS`` for command line and docs.

A field of ``Config`` carries its flags, help and unit; the limits take their names and defaults from
the extension (``_core.LIMITS``). The command line (cli.py), the environment, ``[tool.citius]`` and
docs/reference/options.md all derive from here.

Precedence, highest first: command line, ``CITIUS_*`` in the environment, ``[tool.citius]`` in the
``pyproject.toml`` of the application's directory, default.
"""

from __future__ import annotations

import os
from dataclasses import MISSING, dataclass, field, fields
from typing import TYPE_CHECKING, Any, Final, Literal

from citius._core import LIMITS
from citius.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Mapping

Loop = Literal["auto", "uvloop", "asyncio", "none"]
Source = Literal["flag", "env", "file"]


@dataclass(frozen=True, slots=True)
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
    is_limit: bool = False

    def parse(self, text: str, source: str) -> Any:
        """The value that ``text`` spells.

        Raises:
            ConfigError: It is none; the message names ``source``.
        """
        try:
            if self.kind == "bool":
                return _BOOLS[text.strip().lower()]
            if self.kind == "int":
                return self.check(int(text), source)
            if self.kind == "float":
                return self.check(float(text), source)
        except (ValueError, KeyError) as error:
            if isinstance(error, ConfigError):
                raise
            raise ConfigError(f"{source}: expected {self.expected}, got {text!r}") from None
        if self.kind == "list":
            return tuple(part for part in text.split(os.pathsep) if part)
        return self.check(text, source)

    def check(self, value: Any, source: str) -> Any:
        """``value`` if the option can have it.

        Raises:
            ConfigError: It cannot.
        """
        if self.kind == "list" and self._fits(value):
            return tuple(value)
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
        return (
            isinstance(value, number)
            and not isinstance(value, bool)
            and (self.minimum is None or value >= self.minimum)
            and (self.maximum is None or value <= self.maximum)
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
            text += f" from {self.minimum:g} to {self.maximum:g}"
        elif self.minimum is not None:
            text += f", at least {self.minimum:g}"
        return text


_BOOLS = {
    **dict.fromkeys(("1", "true", "yes", "on"), True),
    **dict.fromkeys(("0", "false", "no", "off"), False),
}


def _option(
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
) -> Any:
    metadata: dict[str, Any] = {
        "help": help, "flags": flags, "kind": kind, "unit": unit, "env": env,
        "choices": choices, "minimum": minimum, "maximum": maximum,
    }  # fmt: skip
    return field(default=default, metadata=metadata)


@dataclass(frozen=True, slots=True, kw_only=True)
class Config:
    """How to serve. ``Config()`` is what ``citius serve`` does without options.

    Raises:
        ConfigError: A value an option cannot have, or two that contradict each other.
    """

    host: str = _option("127.0.0.1", "Address to listen on.")
    port: int = _option(
        8000, "Port to listen on; 0 lets the system choose.", kind="int", minimum=0, maximum=65535,
        flags=("--port", "-p"),
    )  # fmt: skip
    uds: str | None = _option(None, "Listen on a Unix socket at this path instead.")
    fd: int | None = _option(
        None,
        "Listen on this inherited socket instead; wins over the others.",
        kind="int",
        minimum=0,
    )
    workers: int = _option(
        1, "Processes, each with its own listening socket.", kind="int", minimum=1, maximum=1024,
        flags=("--workers", "-w"), env=("CITIUS_WORKERS", "WEB_CONCURRENCY"),
    )  # fmt: skip
    backlog: int = _option(
        2048, "Connections the kernel may queue before they are accepted; Linux caps it at somaxconn.",
        kind="int", minimum=1, unit="connections",
    )  # fmt: skip
    loop: Loop = _option(
        "auto", "Event loop: auto takes uvloop where it is installed; none serves without a loop, "
        "for applications whose handlers are all `def`.",
        choices=("auto", "uvloop", "asyncio", "none"),
    )  # fmt: skip
    factory: bool = _option(
        False, "The target is a function that makes the application.", kind="bool"
    )
    app_dir: str = _option(".", "Directory to import the application from.")
    reload: bool = _option(False, "Start anew when a file changes; for development.", kind="bool")
    reload_dir: tuple[str, ...] = _option(
        (), "Directory to watch (repeatable); the application's own without one.", kind="list"
    )
    reload_include: tuple[str, ...] = _option(
        (), "Pattern of file names to watch (repeatable), besides *.py.", kind="list"
    )
    reload_exclude: tuple[str, ...] = _option(
        (), "Pattern of file names not to watch (repeatable).", kind="list"
    )
    log_level: str = _option(
        "info", "The least important notices to show.",
        choices=("critical", "error", "warning", "info", "debug", "trace"),
    )  # fmt: skip
    access_log: bool = _option(True, "A line on standard output for every answer.", kind="bool")
    server_header: bool = _option(True, "Send `Server: citius`.", kind="bool")
    date_header: bool = _option(True, "Send `Date`.", kind="bool")
    drain_s: float = _option(
        10.0, "Time that open requests get after TERM or INT before their connections are cut.",
        kind="float", minimum=0, unit="seconds",
        flags=("--drain-s", "--timeout-graceful-shutdown", "--graceful-timeout"),
    )  # fmt: skip
    blocking_threads: int = _option(
        16, "Threads for handlers with blocking=True.", kind="int", minimum=1, maximum=4096,
        flags=("--blocking-threads", "--threads"), unit="threads",
    )  # fmt: skip
    blocking_queue_max: int = _option(
        1024, "Requests that may wait for one of these threads; more are answered with 503.",
        kind="int", minimum=0, unit="requests",
    )  # fmt: skip
    limits: Mapping[str, int] = field(default_factory=dict[str, int])
    """Overrides of the limits, by their names."""

    def __post_init__(self) -> None:
        for option in OPTIONS.values():
            if not option.is_limit:
                option.check(getattr(self, option.name), option.name)
        for name, value in self.limits.items():
            if name not in LIMITS:
                raise ConfigError(f"no limit is called {name}{_did_you_mean(name, LIMITS)}")
            OPTIONS[name].check(value, name)
        if self.reload and self.workers > 1:
            raise ConfigError("reload and workers contradict each other: reload runs one process")


_LIMIT_HELP: Final[dict[str, tuple[str, str]]] = {
    "head_bytes_max": ("bytes", "One request head; more is answered with 431."),
    "fields_max": ("fields", "Field lines of one head; more are answered with 431."),
    "target_bytes_max": ("bytes", "One request target; more is answered with 414."),
    "body_bytes_max": ("bytes", "One request body; more is answered with 413."),
    "chunk_size_digits_max": ("digits", "Hexadecimal digits of a chunk size; more: 400."),
    "chunk_extension_bytes_max": ("bytes", "Chunk extensions in one body; more: 400."),
    "trailer_bytes_max": ("bytes", "One trailer section; more is answered with 431."),
    "pipeline_max": ("requests", "Unanswered requests of one connection; then reading pauses."),
    "head_read_ms": ("milliseconds", "From the first byte of a head to its last; longer: 408."),
    "keep_alive_ms": ("milliseconds", "A connection may idle this long; then it is closed."),
    "body_read_ms": ("milliseconds", "Span over which the rate of a body is judged."),
    "body_rate_min_bytes_per_s": (
        "bytes per second", "What a body must bring on average; less is answered with 408."
    ),
    "write_stall_ms": ("milliseconds", "A peer may take nothing for this long; then: reset."),
    "linger_ms": ("milliseconds", "Patience for a refused peer to read its answer."),
    "discard_bytes_max": ("bytes", "Unread body dropped to keep a connection; more: close."),
    "connections_max": ("connections", "Open connections of one worker; more get 503."),
    "write_queue_bytes_max": ("bytes", "Waiting output that holds a streaming answer back."),
    "body_window_bytes": ("bytes", "Waiting input that holds a streaming body back."),
    "files_open_max": ("files", "Files open for answers of one worker; more are answered with 503."),
}  # fmt: skip

_LIMIT_ALIASES: Final[dict[str, tuple[tuple[str, float], ...]]] = {
    # Flags other servers have, and the factor from their unit to ours.
    "keep_alive_ms": (("--timeout-keep-alive", 1000), ("--keep-alive", 1000)),
    "connections_max": (("--limit-concurrency", 1),),
}


def _collect() -> dict[str, Option]:
    options: dict[str, Option] = {}
    for item in fields(Config):
        if item.name == "limits":
            continue
        flag = "--" + item.name.replace("_", "-")
        env = f"CITIUS_{item.name.upper()}"
        given = dict(item.metadata)
        given["flags"] = given["flags"] or (flag,)
        given["env"] = given["env"] or (env,)
        assert item.default is not MISSING, f"{item.name} has no default"
        options[item.name] = Option(item.name, default=item.default, **given)
    for name, default in LIMITS.items():
        unit, text = _LIMIT_HELP.get(name, ("", "See crates/citius-http/src/limits.rs."))
        aliases = _LIMIT_ALIASES.get(name, ())
        options[name] = Option(
            name, "int", default, text, unit, minimum=0, is_limit=True,
            flags=("--" + name.replace("_", "-"), *(alias for alias, _ in aliases)),
            env=(f"CITIUS_{name.upper()}",), scale=dict(aliases),
        )  # fmt: skip
    return options


OPTIONS: Final[Mapping[str, Option]] = _collect()
"""All options by name, in the order in which they are shown."""


def make(values: Mapping[str, Any]) -> Config:
    """A ``Config`` of option values, limits among them."""
    plain = {name: value for name, value in values.items() if not OPTIONS[name].is_limit}
    limits = {name: value for name, value in values.items() if OPTIONS[name].is_limit}
    return Config(**plain, limits=limits)


def load(given: Mapping[str, Any], environ: Mapping[str, str]) -> Config:
    """The configuration of a command line.

    Args:
        given: Values said on the command line.
        environ: The environment.

    Raises:
        ConfigError: Something in any of the three sources cannot be; the message names it.
    """
    values = dict(given)
    for name, value in _from_environment(environ).items():
        values.setdefault(name, value)
    for name, value in _from_file(values.get("app_dir", ".")).items():
        values.setdefault(name, value)
    return make(values)


def _from_environment(environ: Mapping[str, str]) -> dict[str, Any]:
    values: dict[str, Any] = {}
    for option in OPTIONS.values():
        for variable in option.env:
            text = environ.get(variable)
            if text is not None and text != "":
                values[option.name] = option.parse(text, variable)
                break
    return values


def _from_file(directory: str) -> dict[str, Any]:
    """``[tool.citius]``; names as here, dashes are as good as underscores."""
    path = os.path.join(directory, "pyproject.toml")
    try:
        with open(path, "rb") as file:
            data = file.read()
    except OSError:
        return {}
    if b"citius" not in data:
        return {}  # and the parser stays out of the worker
    import tomllib

    try:
        table = tomllib.loads(data.decode()).get("tool", {}).get("citius", {})
    except ValueError as error:
        raise ConfigError(f"{path} is no valid TOML: {error}") from None
    values: dict[str, Any] = {}
    for key, value in table.items():
        name = key.replace("-", "_")
        option = OPTIONS.get(name)
        if option is None:
            raise ConfigError(
                f"{path}: [tool.citius] has no option {key}{_did_you_mean(name, OPTIONS)}"
            )
        values[name] = option.check(value, f"{path}: {key}")
    return values


def _did_you_mean(name: str, known: Mapping[str, object]) -> str:
    from difflib import get_close_matches

    close = get_close_matches(name, known, n=1)
    return f"; did you mean {close[0]}?" if close else ""
