"""Every option of the server, once: ``Config`` for code, ``OPTIONS`` for command line and docs.

A field of ``Config`` carries its flags, help and unit; the limits take their names and defaults from
the extension (``_core.LIMITS``). The command line (cli.py), the environment, ``[tool.citius]`` and
docs/reference/options.md all derive from here. Long because it is one thing: a table.

It is long because it is one thing: a table.

Precedence, highest first: command line, ``CITIUS_*`` in the environment, ``[tool.citius]`` in the
``pyproject.toml`` of the application's directory, default.
"""

from __future__ import annotations

import os
from dataclasses import MISSING, dataclass, field, fields
from typing import TYPE_CHECKING, Any, Final, Literal

from citius._core import LIMITS
from citius.errors import ConfigError
from citius.process.processors import processors
from citius.web.static import parse as parse_mount

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

Interface = Literal["auto", "native", "asgi", "asgi2", "wsgi"]
Lifespan = Literal["auto", "on", "off"]
Loop = Literal["auto", "uvloop", "asyncio", "gevent", "none"]
Http = Literal["auto", "1", "2", "h11", "httptools"]
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
        if self.unit == "bytes":
            text += " (64k, 512M and 2G are understood)"
        if self.auto:
            text += ", or auto"
        return text


_SIZES = {"k": 1 << 10, "m": 1 << 20, "g": 1 << 30}

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
    group: str = "Serving",
    separator: str = os.pathsep,
    scale: Mapping[str, float] | None = None,
    auto: Callable[[], int] | None = None,
) -> Any:
    metadata: dict[str, Any] = {
        "help": help, "flags": flags, "kind": kind, "unit": unit, "env": env, "choices": choices,
        "minimum": minimum, "maximum": maximum, "group": group, "separator": separator,
        "scale": scale or {}, "auto": auto,
    }  # fmt: skip
    return field(default=default, metadata=metadata)


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


@dataclass(frozen=True, slots=True, kw_only=True)
class Config:
    """How to serve. ``Config()`` is what ``citius serve`` does without options.

    Raises:
        ConfigError: A value an option cannot have, or two that contradict each other.
    """

    bind: tuple[str, ...] = _option(
        (), "Address to listen on (repeatable), instead of --host and --port: HOST:PORT, unix:PATH, "
        "fd://NUMBER, or fd://NAME for a socket of systemd. If one address begins with tls://, those without "
        "it use clear text; ?http=1 or ?http=2 at the end limits an address to that version of HTTP.",
        kind="list", flags=("--bind", "-b"), group=LISTENING, separator=",",
    )  # fmt: skip
    host: str = _option("127.0.0.1", "Address to listen on.", group=LISTENING)
    port: int = _option(
        8000, "Port to listen on; 0 lets the system choose.", kind="int", minimum=0, maximum=65535,
        flags=("--port", "-p"), group=LISTENING,
    )  # fmt: skip
    uds: str | None = _option(
        None, "Listen on a Unix socket at this path instead.", group=LISTENING
    )
    fd: int | None = _option(
        None,
        "Listen on this inherited socket instead; has priority over --bind, --host and --uds.",
        kind="int",
        minimum=0,
        group=LISTENING,
    )
    rpc: tuple[str, ...] = _option(
        (), "Additional address for calls of procedures (`App.rpc`) by MessagePack-RPC and JSON-RPC "
        "(repeatable): HOST:PORT, unix:PATH or fd://NUMBER; with the prefix tls:// it uses TLS with the "
        "certificates of `--ssl-certfile`.",
        kind="list", group=LISTENING, separator=",",
    )  # fmt: skip
    backlog: int = _option(
        2048, "Connections the kernel may queue before they are accepted; Linux caps it at somaxconn.",
        kind="int", minimum=1, unit="connections", group=LISTENING,
    )  # fmt: skip
    factory: bool = _option(
        False,
        "The target is a function that makes the application.",
        kind="bool",
        group=APPLICATION,
    )
    app_dir: str = _option(".", "Directory to import the application from.", group=APPLICATION)
    chdir: str | None = _option(
        None, "Change to this directory first; all other paths are relative to it.",
        flags=("--chdir", "--working-dir"), group=APPLICATION,
    )  # fmt: skip
    env_file: tuple[str, ...] = _option(
        (), "File of NAME=value lines for the environment (repeatable); read again on HUP. Variables that "
        "are set already have priority.",
        kind="list", flags=("--env-file", "--env-files"), group=APPLICATION,
    )  # fmt: skip
    env: tuple[str, ...] = _option(
        (), "NAME=value for the environment (repeatable).",
        kind="list", flags=("--env", "-e"), group=APPLICATION, separator=",",
    )  # fmt: skip
    interface: Interface = _option(
        "auto", "Interface of the application; auto detects it.",
        choices=("auto", "native", "asgi", "asgi2", "wsgi"), group=APPLICATION,
    )  # fmt: skip
    lifespan: Lifespan = _option(
        "auto", "Whether an ASGI application gets lifespan events; auto sends them and continues if it does "
        "not support them.",
        choices=("auto", "on", "off"), group=APPLICATION,
    )  # fmt: skip
    root_path: str = _option(
        "", "Path under which a proxy has mounted the application, for ASGI and WSGI.",
        flags=("--root-path", "--url-path-prefix"), group=APPLICATION,
    )  # fmt: skip
    workers: int = _option(
        1, "Processes, each with its own listening socket; auto: one per available processor, by the CPU "
        "affinity and the CPU quota of the control group.",
        kind="int", minimum=1, maximum=1024, auto=processors,
        flags=("--workers", "-w"), env=("CITIUS_WORKERS", "WEB_CONCURRENCY"), group=WORKERS,
    )  # fmt: skip
    reactor_threads: int = _option(
        1, "Threads per worker that serve, each with an event loop of its own; for interpreters without a "
        "GIL. With a GIL only one of them runs at a time.",
        kind="int", minimum=1, maximum=256, unit="threads", group=WORKERS,
    )  # fmt: skip
    loop: Loop = _option(
        "auto", "Event loop: auto uses uvloop if it is installed; none serves without a loop, "
        "for applications whose handlers are all `def`; gevent patches the standard library and runs "
        "each request in a greenlet.",
        choices=("auto", "uvloop", "asyncio", "gevent", "none"), group=WORKERS,
    )  # fmt: skip
    threads: int | None = _option(
        None, "Threads that call a WSGI application; 0 calls it on the thread of the event loop, one request "
        "at a time, which is fastest unless it waits for something. Default: 8 for a Django project, "
        "otherwise 0. For other applications the same as --blocking-threads.",
        kind="int", minimum=0, maximum=4096, unit="threads", group=WORKERS,
    )  # fmt: skip
    blocking_threads: int = _option(
        16, "Threads for handlers with blocking=True.", kind="int", minimum=1, maximum=4096,
        unit="threads", group=WORKERS,
    )  # fmt: skip
    blocking_queue_max: int = _option(
        1024, "Requests that may wait for one of these threads; more get a 503.",
        kind="int", minimum=0, unit="requests", group=WORKERS,
    )  # fmt: skip
    compiled_threads: int = _option(
        0, "Threads for compiled handlers with pool=True; they never have the GIL. 0: one per processor.",
        kind="int", minimum=0, maximum=4096, unit="threads", group=WORKERS,
    )  # fmt: skip
    compiled_queue_max: int = _option(
        1024, "Requests that may wait for one of these threads; more get a 503.",
        kind="int", minimum=0, unit="requests", group=WORKERS,
    )  # fmt: skip
    interpret_compiled: bool = _option(
        False, "Call functions with compiled=True as plain Python: to debug them, or without numba.",
        kind="bool", group=DEVELOPMENT,
    )  # fmt: skip
    supervisor: bool | None = _option(
        None, "A process that watches the workers, replaces them and hands over to a new version. "
        "Default: with several workers, as PID 1, and if an option below needs it.",
        kind="bool", group=SUPERVISION,
    )  # fmt: skip
    max_requests: int = _option(
        0, "Replace a worker after this number of requests, when its successor is ready; 0: never.",
        kind="int", minimum=0, unit="requests", group=SUPERVISION,
        flags=("--max-requests", "--limit-max-requests"),
    )  # fmt: skip
    max_requests_jitter: int = _option(
        0, "Random number of requests, up to this one, that is added for each worker.",
        kind="int", minimum=0, unit="requests", group=SUPERVISION,
        flags=("--max-requests-jitter", "--limit-max-requests-jitter"),
    )  # fmt: skip
    worker_lifetime_s: float = _option(
        0.0, "Replace a worker of this age; 0: never.", kind="float", minimum=0, unit="seconds",
        flags=("--worker-lifetime-s", "--worker-lifetime", "--workers-lifetime"), group=SUPERVISION,
    )  # fmt: skip
    worker_rss_bytes_max: int = _option(
        0, "Replace a worker whose resident set is larger; 0: never.",
        kind="int", minimum=0, unit="bytes", group=SUPERVISION,
        flags=("--worker-rss-bytes-max", "--worker-rss-max"), scale={"--workers-max-rss": 1 << 20},
    )  # fmt: skip
    worker_timeout_s: float | None = _option(
        None, "Kill and replace a worker whose loop does not turn for this time, after it has printed its "
        "Python stacks; 0: never. Default: 30 with a supervisor. The option starts a supervisor.",
        kind="float", minimum=0, unit="seconds", group=SUPERVISION,
        flags=("--worker-timeout-s", "--worker-timeout", "--timeout", "-t",
               "--timeout-worker-healthcheck"),
    )  # fmt: skip
    worker_start_s: float = _option(
        300.0, "The same for a worker that does not become ready; 0: no limit.",
        kind="float", minimum=0, unit="seconds", group=SUPERVISION,
    )  # fmt: skip
    drain_delay_s: float = _option(
        0.0, "Continue to serve for this time after TERM, until load balancers have noticed.",
        kind="float", minimum=0, unit="seconds", group=STOPPING,
    )  # fmt: skip
    drain_s: float = _option(
        10.0, "Time that open requests have after TERM or INT before their connections are closed.",
        kind="float", minimum=0, unit="seconds", group=STOPPING,
        flags=("--drain-s", "--timeout-graceful-shutdown", "--graceful-timeout",
               "--workers-kill-timeout"),
    )  # fmt: skip
    user: str | None = _option(
        None, "User of the workers, by name or number; sockets and files are opened before the change.",
        flags=("--user", "-u"), group=PROCESS,
    )  # fmt: skip
    group: str | None = _option(
        None, "Group of the workers, by name or number; default: the group of the user.",
        flags=("--group", "-g"), group=PROCESS,
    )  # fmt: skip
    umask: str | None = _option(
        None, "Mode bits that are removed from new files and Unix sockets, in octal.",
        flags=("--umask", "-m"), group=PROCESS,
    )  # fmt: skip
    pidfile: str | None = _option(
        None, "File for the process id.", flags=("--pidfile", "--pid", "--pid-file"), group=PROCESS
    )
    reload: bool = _option(
        False, "Restart when a file changes; for development.", kind="bool", group=DEVELOPMENT
    )
    reload_dir: tuple[str, ...] = _option(
        (), "Directory to watch (repeatable); default: that of the application.",
        kind="list", flags=("--reload-dir", "--reload-paths"), group=DEVELOPMENT,
    )  # fmt: skip
    reload_include: tuple[str, ...] = _option(
        (), "Pattern of file names to watch (repeatable), besides *.py.",
        kind="list", group=DEVELOPMENT,
    )  # fmt: skip
    reload_exclude: tuple[str, ...] = _option(
        (), "Pattern of file or directory names not to watch (repeatable).",
        kind="list", flags=("--reload-exclude", "--reload-ignore-patterns"), group=DEVELOPMENT,
    )  # fmt: skip
    reload_delay_s: float = _option(
        0.25, "Time to collect changes before a restart.", kind="float", minimum=0,
        unit="seconds", flags=("--reload-delay-s", "--reload-delay"), scale={"--reload-tick": 1e-3},
        group=DEVELOPMENT,
    )  # fmt: skip
    log_level: str = _option(
        "info", "Lowest level of notices that are shown.",
        choices=("critical", "error", "warning", "info", "debug", "trace"), group=LOGGING,
    )  # fmt: skip
    log_file: str | None = _option(
        None, "File for notices and standard error; USR1 reopens it.",
        flags=("--log-file", "--error-logfile"), group=LOGGING,
    )  # fmt: skip
    access_log_file: str | None = _option(
        None, "File for the access log and standard output; USR1 reopens it.",
        flags=("--access-log-file", "--access-logfile"), group=LOGGING,
    )  # fmt: skip
    log_config: str | None = _option(
        None, "Configure the standard library's logging from this file: .json, .toml, .yaml or .ini.",
        flags=("--log-config", "--log-config-json"), group=LOGGING,
    )  # fmt: skip
    use_colors: bool | None = _option(
        None, "Colours in notices; default: if standard error is a terminal.",
        kind="bool", group=LOGGING,
    )  # fmt: skip
    access_log: bool = _option(
        True, "A line on standard output for every response.", kind="bool", group=LOGGING
    )
    access_log_format: str = _option(
        "text", "Format of a line: text, json, common, combined, or a line of atoms such as `%(h)s`.",
        flags=("--access-log-format", "--access-logformat", "--access-log-fmt"), group=LOGGING,
    )  # fmt: skip
    access_log_sample: float = _option(
        1.0, "Share of the responses below 400 that have a line; all other responses have one.",
        kind="float", minimum=0, maximum=1, group=LOGGING,
    )  # fmt: skip
    management: str | None = _option(
        None, "Serve /metrics, /live and /ready at this address: HOST:PORT or unix:PATH.",
        group=OBSERVING,
    )  # fmt: skip
    health: str | None = _option(
        None, "Serve /live and /ready of the worker below this path of the application's own port.",
        flags=("--health", "--health-path"), group=OBSERVING,
    )  # fmt: skip
    path_pattern: tuple[str, ...] = _option(
        (), "Path pattern such as `/users/{id}` (repeatable) by which metrics and access log classify "
        "requests; native applications have their routes.",
        kind="list", group=OBSERVING, separator=",",
    )  # fmt: skip
    request_id: str | None = _option(
        None, "Header that carries the id of a request, such as x-request-id: the id of a trusted proxy, or "
        "a new one; handlers and clients receive it.",
        group=OBSERVING,
    )  # fmt: skip
    trace: bool = _option(
        False, "Continue W3C traces (`traceparent`) of trusted proxies, or start new ones.",
        kind="bool", group=OBSERVING,
    )  # fmt: skip
    trace_sample: float = _option(
        1.0, "Share of the new traces that are sampled.",
        kind="float", minimum=0, maximum=1, group=OBSERVING,
    )  # fmt: skip
    otel: bool = _option(
        False, "Export traces and metrics with OpenTelemetry's SDK (`citius[otel]`), configured by its "
        "OTEL_* variables.",
        kind="bool", group=OBSERVING,
    )  # fmt: skip
    http: Http = _option(
        "auto", "Versions of HTTP: both HTTP/1 and HTTP/2, as the client starts, or one of them. `h11` and "
        "`httptools`, which uvicorn has, mean auto.",
        choices=("auto", "1", "2", "h11", "httptools"), group=HTTP,
    )  # fmt: skip
    h2c_upgrade: bool = _option(
        True, "Grant `Upgrade: h2c` over HTTP/1.1 without TLS, except to requests that passed a proxy.",
        kind="bool", group=HTTP,
    )  # fmt: skip
    ws_per_message_deflate: Literal["true", "false"] = _option(
        "true", "Compress WebSocket messages for clients that accept it; all connections share the memory.",
        choices=("true", "false"), group=HTTP,
    )  # fmt: skip
    server_header: bool = _option(True, "Send `Server: citius`.", kind="bool", group=HTTP)
    date_header: bool = _option(True, "Send `Date`.", kind="bool", group=HTTP)
    header: tuple[str, ...] = _option(
        (), "Header of every response, as `NAME:VALUE` (repeatable; in the environment one per line). It is "
        "not added if the response has a header of this name, except `set-cookie`, `vary` and `link`.",
        kind="list", group=HTTP, separator="\n",
    )  # fmt: skip
    compress: tuple[str, ...] = _option(
        (), "Compress responses for clients that accept it: `br`, `zstd`, `gzip` (repeatable); among codings "
        "with equal weight the first. With a level: `br=6` (0 to 11, default 4), `zstd=9` (1 to 22, 3), "
        "`gzip=6` (1 to 9, 4).", kind="list", group=HTTP, separator=",",
    )  # fmt: skip
    compress_types: tuple[str, ...] = _option(
        (), "Media type to compress (repeatable), in addition to text, JSON, XML and similar types.",
        kind="list", group=HTTP, separator=",",
    )  # fmt: skip
    ssl_certfile: tuple[str, ...] = _option(
        (), "Serve HTTPS with this certificate chain (PEM; repeatable: the server name of the client selects "
        "one, by default the first).",
        kind="list", flags=("--ssl-certfile", "--certfile", "--ssl-certificate"), group=TLS,
    )  # fmt: skip
    ssl_keyfile: tuple[str, ...] = _option(
        (), "Its private key (PEM; one for each certificate, in their order); without it the key is in the "
        "certificate's file.",
        kind="list", flags=("--ssl-keyfile", "--keyfile"), group=TLS,
    )  # fmt: skip
    ssl_keyfile_password: str | None = _option(
        None, "Password of encrypted keys; safer in the environment.", group=TLS
    )
    ssl_dev: bool = _option(
        False, "Serve HTTPS with a self-signed certificate for localhost; for development.",
        kind="bool", group=TLS,
    )  # fmt: skip
    ssl_protocol_min: str = _option(
        "tls1.2", "Oldest version of TLS that is accepted; versions before TLS 1.2 are not supported.",
        choices=("tls1.2", "tls1.3"), group=TLS,
    )  # fmt: skip
    ssl_ciphers: str | None = _option(
        None,
        "Cipher suites, in the format of OpenSSL.",
        flags=("--ssl-ciphers", "--ciphers"),
        group=TLS,
    )
    ssl_cert_reqs: str = _option(
        "none", "Whether clients must have certificates; 0, 1 and 2 are none, optional and required.",
        choices=("none", "optional", "required", "0", "1", "2"),
        flags=("--ssl-cert-reqs", "--cert-reqs"), group=TLS,
    )  # fmt: skip
    ssl_ca_certs: str | None = _option(
        None, "Certificates of the authorities that issue client certificates (PEM).",
        flags=("--ssl-ca-certs", "--ca-certs", "--ssl-ca"), group=TLS,
    )  # fmt: skip
    ssl_crl: tuple[str, ...] = _option(
        (),
        "List of client certificates that are revoked (PEM; repeatable).",
        kind="list",
        group=TLS,
    )
    proxy_headers: bool = _option(
        True,
        "Use the headers in which trusted proxies describe their clients.",
        kind="bool",
        group=PROXIES,
    )
    forwarded_allow_ips: tuple[str, ...] = _option(
        ("127.0.0.1", "::1", "unix"), "Proxies that are trusted (repeatable, or with commas): addresses, "
        "networks such as 10.0.0.0/8, `unix` for Unix sockets, `*` for all peers. Their request ids and "
        "traces are used too.", kind="list",
        env=("CITIUS_FORWARDED_ALLOW_IPS", "FORWARDED_ALLOW_IPS"), group=PROXIES, separator=",",
    )  # fmt: skip
    forwarded_headers: tuple[str, ...] = _option(
        ("x-forwarded-for", "x-forwarded-proto", "forwarded"), "Headers that are trusted (repeatable, or "
        "with commas); x-forwarded-host, x-forwarded-port and x-forwarded-prefix only for proxies that write "
        "them themselves.", kind="list", group=PROXIES, separator=",",
    )  # fmt: skip
    static: tuple[str, ...] = _option(
        (), "Serve the files of a directory: `/assets=public` (repeatable). With `/` requests for missing "
        "files go to the application.", kind="list", group=STATIC, separator=",",
    )  # fmt: skip
    static_index: str = _option(
        "index.html", "File that is sent for a directory; empty: none.", group=STATIC
    )
    static_cache_control: str | None = _option(
        None, "`Cache-Control` of static files, such as `public, max-age=3600`.", group=STATIC
    )
    static_dotfiles: bool = _option(
        False, "Serve files whose names begin with a dot.", kind="bool", group=STATIC
    )
    static_symlinks: bool = _option(
        False, "Follow symbolic links that stay inside their static directory.", kind="bool",
        group=STATIC,
    )  # fmt: skip
    static_optional: bool = _option(
        False, "Leave out a static directory that is missing, with a notice, instead of ending the start.",
        kind="bool", group=STATIC,
    )  # fmt: skip
    static_precompressed: bool = _option(
        True, "Send `name.br`, `name.zst` or `name.gz` for `name` to clients that accept it.",
        kind="bool", group=STATIC,
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
        self._check_texts()
        if self.reload and self.workers > 1:
            raise ConfigError("reload and workers contradict each other: reload runs one process")
        self._check_tls()
        if self.supervisor is False and self.workers > 1:
            raise ConfigError(
                "supervisor is off and workers is above 1: somebody has to start them"
            )

        if self.reactor_threads > 1:
            self._check_reactor_threads()

    def _check_reactor_threads(self) -> None:
        """That whatever else is asked for knows of more reactors than one."""
        if self.loop in ("gevent", "none"):
            raise ConfigError(
                f"reactor_threads wants an asyncio loop in each thread, and loop is {self.loop}; use workers"
            )
        for name in ("management", "otel"):
            if getattr(self, name):
                raise ConfigError(
                    f"{name} knows one reactor of each worker, and reactor_threads asks for more; use workers"
                )

    @property
    def is_tls(self) -> bool:
        """Whether HTTPS is served."""
        return bool(self.ssl_certfile) or self.ssl_dev

    @property
    def trusted(self) -> tuple[str, ...]:
        """Peers that speak for their clients."""
        return _parts(self.forwarded_allow_ips)

    @property
    def server_name(self) -> str | None:
        """What the `server` field says."""
        said = [value for name, value in _fields(self.header) if name == "server"]
        return said[-1] if said else "citius" if self.server_header else None

    @property
    def default_response_headers(self) -> list[tuple[str, str]]:
        """The fields of every answer, besides `server`."""
        return [(name, value) for name, value in _fields(self.header) if name != "server"]

    @property
    def http_versions(self) -> Literal["auto", "1", "2"]:
        """The versions of HTTP that are spoken."""
        return "auto" if self.http in ("h11", "httptools") else self.http

    @property
    def trusted_headers(self) -> tuple[str, ...]:
        """The headers in which they do."""
        return _parts(self.forwarded_headers) if self.proxy_headers else ()

    @property
    def codings(self) -> list[tuple[str, int | None]]:
        """What answers are compressed by, the best first, and at which level."""
        return [parse_coding(text) for text in self.compress]

    @property
    def limits_in_force(self) -> Mapping[str, int]:
        """The overrides, and those that other options come to."""
        if self.ws_per_message_deflate == "false":
            return {**self.limits, "ws_deflate_bytes_min": 0}
        return self.limits

    def _check_texts(self) -> None:
        """What the kind of an option says nothing about."""
        from citius.serving.listeners import check_address

        for text in self.bind:
            check_address(text)
        if self.management:
            check_address(self.management, "management")
        for text in self.rpc:
            check_address(text.removeprefix("tls://"), "rpc")
        for text in self.static:
            parse_mount(text)
        if self.health is not None and (
            not self.health.startswith("/") or self.health.endswith("/")
        ):
            raise ConfigError(f"health: expected a path such as /health, got {self.health!r}")
        self._check_proxies()
        for text in self.compress:
            parse_coding(text)
        if self.umask is not None and not _is_octal(self.umask):
            raise ConfigError(f"umask: expected octal digits up to 777, got {self.umask!r}")
        for text in self.env:
            if text.find("=") < 1:
                raise ConfigError(f"env: expected NAME=value, got {text!r}")
        self._check_headers()

    def _check_headers(self) -> None:
        for text in self.header:
            if text.find(":") < 1:
                raise ConfigError(f"header: expected NAME:VALUE, got {text!r}")
        for name, value in _fields(self.header):
            _check_field(name, value)

    def _check_tls(self) -> None:
        """That the options of TLS are there together."""
        certificates, keys = len(self.ssl_certfile), len(self.ssl_keyfile)
        if certificates and self.ssl_dev:
            raise ConfigError(
                "ssl_dev and ssl_certfile contradict each other: whose certificate is it?"
            )
        if keys and not certificates:
            raise ConfigError("ssl_keyfile is a key without a certificate; give ssl_certfile too")
        if keys not in (0, certificates):
            raise ConfigError(
                f"ssl_keyfile: expected one key for each of the {certificates} certificates, or none where "
                f"the certificates' files have them, got {keys}"
            )
        given = [name for name in ("ssl_ciphers", "ssl_ca_certs", "ssl_crl") if getattr(self, name)]
        if self.ssl_cert_reqs not in ("none", "0"):
            given.append("ssl_cert_reqs")
        if given and not self.is_tls:
            raise ConfigError(
                f"{given[0]} is about TLS, and without ssl_certfile or ssl_dev none is spoken"
            )
        secured = [
            (name, text)
            for name in ("bind", "rpc")
            for text in getattr(self, name)
            if text.startswith("tls://")
        ]
        if secured and not self.is_tls:
            raise ConfigError(
                f"{secured[0][0]}: {secured[0][1]} has no certificate to show; give ssl_certfile and "
                "ssl_keyfile, or ssl_dev"
            )

    def _check_proxies(self) -> None:
        for text in self.trusted:
            if not _is_network(text):
                raise ConfigError(
                    "forwarded_allow_ips: expected an address, a network such as 10.0.0.0/8, unix or *, "
                    f"got {text!r}"
                )
        for name in _parts(self.forwarded_headers):
            if name not in FORWARDED_HEADERS:
                raise ConfigError(
                    f"forwarded_headers: expected {', '.join(FORWARDED_HEADERS)}, got {name!r}"
                )


_LEVELS: Final = {"br": (0, 11), "zstd": (1, 22), "gzip": (1, 9)}


def parse_coding(text: str) -> tuple[str, int | None]:
    """A coding and its level: ``br`` or ``br=6``.

    Raises:
        ConfigError: There is no such coding, or it has no such level.
    """
    name, equals, level = text.partition("=")
    if name not in _LEVELS:
        raise ConfigError(f"compress: expected br, zstd or gzip, got {name!r}")
    if not equals:
        return name, None
    lowest, highest = _LEVELS[name]
    if not level.isdecimal() or not lowest <= int(level) <= highest:
        raise ConfigError(
            f"compress: expected a level of {name} from {lowest} to {highest}, got {level!r}"
        )
    return name, int(level)


FORWARDED_HEADERS: Final = (
    "forwarded", "x-forwarded-for", "x-forwarded-proto", "x-forwarded-host", "x-forwarded-port",
    "x-forwarded-prefix",
)  # fmt: skip
"""What proxies say, as far as it is understood."""


def _parts(texts: Sequence[str]) -> tuple[str, ...]:
    """The items of texts that may hold several, with commas between them."""
    return tuple(part.strip().lower() for text in texts for part in text.split(",") if part.strip())


def _fields(texts: Sequence[str]) -> list[tuple[str, str]]:
    """Names and values of header lines."""
    pairs = (text.partition(":") for text in texts)
    return [(name.strip().lower(), value.strip()) for name, _, value in pairs]


def _check_field(name: str, value: str) -> None:
    if set(name) - _TOKEN:
        raise ConfigError(f"header: {name!r} is no name of a header")
    if any((char < " " and char != "\t") or char == "\x7f" for char in value):
        raise ConfigError(f"header: the value of {name} has a control character, got {value!r}")
    if name in _SERVERS_OWN:
        raise ConfigError(
            f"header: {name} is for the server to say, as each answer needs it; leave it out"
        )


_TOKEN: Final = frozenset("!#$%&'*+-.^_`|~0123456789abcdefghijklmnopqrstuvwxyz")
_SERVERS_OWN: Final = frozenset(
    ("connection", "content-length", "date", "keep-alive", "proxy-connection", "trailer",
     "transfer-encoding", "upgrade")
)  # fmt: skip
"""What frames an answer, or is about its connection or its moment."""


def _is_network(text: str) -> bool:
    if text in ("*", "unix", "127.0.0.1", "::1"):
        return True
    import ipaddress  # a third of a megabyte that only other networks need

    try:
        ipaddress.ip_network(text, strict=False)
    except ValueError:
        return False
    return "%" not in text


def _is_octal(text: str) -> bool:
    return 1 <= len(text) <= 4 and not set(text) - set("01234567") and int(text, 8) <= 0o777


_LIMIT_HELP: Final[dict[str, tuple[str, str]]] = {
    "head_bytes_max": ("bytes", "Header section of a request with its start line; longer: 431."),
    "fields_max": ("fields", "Field lines of one header section; more: 431."),
    "target_bytes_max": ("bytes", "One request target; longer: 414."),
    "body_bytes_max": (
        "bytes", "One request body that the server holds until its handler is called; longer: 413. A "
        "route's body_bytes_max= replaces it. If it is set and --body-streamed-bytes-max is not, it limits "
        "streamed bodies too.",
    ),
    "body_streamed_bytes_max": (
        "bytes", "One request body that the application reads while it is received (ASGI, WSGI, "
        "stream=True); longer: 413. 0: no limit.",
    ),
    "body_spooled_bytes_max": (
        "bytes", "Bodies of one worker in temporary files, where long ones wait for a WSGI application with "
        "--threads 0; more: 413 or 503.",
    ),
    "chunk_size_digits_max": ("digits", "Hexadecimal digits of a chunk size; more: 400."),
    "chunk_extension_bytes_max": ("bytes", "Chunk extensions in one body; more: 400."),
    "trailer_bytes_max": ("bytes", "One trailer section; longer: 431."),
    "pipeline_max": ("requests", "Requests of one connection without a response; then reading pauses."),
    "head_read_ms": ("milliseconds", "From the first to the last byte of a header section; longer: 408."),
    "keep_alive_ms": ("milliseconds", "Time for which a connection may be idle; then it is closed."),
    "body_read_ms": ("milliseconds", "Span over which the rate of a body is measured."),
    "body_rate_min_bytes_per_s": (
        "bytes per second", "Average rate of a body over that span; lower: 408."
    ),
    "write_stall_ms": ("milliseconds", "Time for which a client may not read; then the connection is reset."),
    "linger_ms": ("milliseconds", "Time for a refused client to read its response."),
    "discard_bytes_max": ("bytes", "Unread body that is discarded to keep a connection; more: closed."),
    "connections_max": ("connections", "Open connections of one worker; more get a 503."),
    "descriptors_spare": (
        "descriptors", "Reserve of a worker, for responses with 503 when all others are in use."
    ),
    "requests_open_max": (
        "requests", "Open requests of one worker; more get a 503 with Retry-After. 0: no limit."
    ),
    "write_queue_bytes_max": ("bytes", "Queued output at which a streamed response has to wait."),
    "body_window_bytes": ("bytes", "Queued input at which reading of a streamed body pauses."),
    "files_open_max": ("files", "Files that one worker has open for responses; more: 503."),
    "files_cached_max": ("files", "Files that a static mount caches; beyond it the cache is emptied."),
    "files_cached_ms": ("milliseconds", "Time for which it caches them; 0: not at all."),
    "ranges_max": ("ranges", "Ranges of a file in one request; more: the whole file."),
    "compress_bytes_min": ("bytes", "Shorter responses are not compressed."),
    "compress_bytes_max": ("bytes", "Longer responses are not compressed, unless they are streamed."),
    "compress_streams_max": ("streams", "Streamed responses that are compressed at once; others are not."),
    "wsgi_write_bytes_max": (
        "bytes", "What `write()` may collect with --threads 0, where it cannot wait; more: it raises."
    ),
    "compiled_body_bytes_max": ("bytes", "Body that a compiled handler may write; longer: 500."),
    "compiled_run_ms_max": (
        "milliseconds",
        "A compiled handler that keeps the reactor's thread longer is named in the log; 0: never.",
    ),
    "slow_handler_ms": (
        "milliseconds",
        "A handler that keeps the event loop's thread longer is named in the log, one per minute; 0: never.",
    ),
    "h2_streams_max": ("streams", "Open streams of one HTTP/2 connection; more are refused."),
    "h2_window_bytes": ("bytes", "Unread request bodies of one HTTP/2 connection; then the client waits."),
    "h2_budget_ms": ("milliseconds", "Span over which HTTP/2 resets and idle frames are counted."),
    "h2_resets_max": ("streams", "HTTP/2 streams per span that end in a reset; more: closed."),
    "h2_idle_frames_max": ("frames", "HTTP/2 frames per span that advance no request; more: closed."),
    "h2_continuations_max": ("frames", "CONTINUATION frames of one HTTP/2 header section; more: closed."),
    "h2_stall_bytes_min": (
        "bytes", "Data that an HTTP/2 window must let through per --write-stall-ms; less: reset."
    ),
    "tls_handshake_ms": ("milliseconds", "From accept to the end of a TLS handshake; longer: closed."),
    "tls_handshake_bytes_max": ("bytes", "One TLS handshake message; longer: an alert, closed."),
    "rpc_message_bytes_max": ("bytes", "One message of a remote call, or one batch; longer: closed."),
    "rpc_depth_max": ("levels", "Nested arrays and maps of such a message; more: closed."),
    "rpc_calls_open_max": ("calls", "Calls of one connection without a response; then reading pauses."),
    "rpc_message_ms": ("milliseconds", "From the first to the last byte of a message; longer: closed."),
    "rpc_idle_ms": ("milliseconds", "Time for which a connection may have no call; then it is closed."),
    "rpc_call_ms": ("milliseconds", "Duration of a call, unless its procedure sets another; 0: no limit."),
    "ws_message_bytes_max": ("bytes", "One WebSocket message, as sent and inflated; longer: closed, 1009."),
    "ws_fragments_max": ("frames", "Fragments of one WebSocket message; more: closed with 1008."),
    "ws_messages_max": (
        "messages", "Messages of one WebSocket per span; more: closed with 1008. 0: no limit."
    ),
    "ws_controls_max": (
        "frames", "Control frames of one WebSocket per span; more: closed with 1008. 0: no limit."
    ),
    "ws_rate_ms": ("milliseconds", "Span over which WebSocket messages and control frames are counted."),
    "ws_queue_max": ("messages", "Messages that wait for the application; then reading pauses."),
    "ws_queued_bytes_max": (
        "bytes", "All messages that wait for the application; the largest shares: closed with 1013."
    ),
    "ws_ping_interval_ms": ("milliseconds", "Time without traffic before a WebSocket is pinged; 0: never."),
    "ws_ping_timeout_ms": (
        "milliseconds", "Time to respond to a ping; longer: closed with 1011. 0: no limit."
    ),
    "ws_close_ms": ("milliseconds", "Time to respond to a close frame; then the connection is closed."),
    "ws_deflate_bytes_min": (
        "bytes", "Shorter WebSocket messages are not compressed; 0: compression is off."
    ),
    "room_queue_bytes_max": (
        "bytes", "Messages to rooms that wait for one other worker; more are lost for it and counted."
    ),
}  # fmt: skip

_LIMIT_ALIASES: Final[dict[str, tuple[tuple[str, float], ...]]] = {
    # Flags other servers have, and the factor from their unit to ours.
    "keep_alive_ms": (("--timeout-keep-alive", 1000), ("--keep-alive", 1000)),
    "connections_max": (("--worker-connections", 1), ("--backpressure", 1)),
    "requests_open_max": (("--limit-concurrency", 1),),
    "head_bytes_max": (("--h11-max-incomplete-event-size", 1),),
    "fields_max": (("--limit-request-fields", 1),),
    "target_bytes_max": (("--limit-request-line", 1),),
    "head_read_ms": (("--http1-header-read-timeout", 1),),
    "h2_streams_max": (("--http2-max-concurrent-streams", 1),),
    "h2_window_bytes": (("--http2-initial-connection-window-size", 1),),
    "body_window_bytes": (
        ("--http2-initial-window-size", 1), ("--http2-initial-stream-window-size", 1),
    ),
    "write_queue_bytes_max": (("--http2-max-send-buffer-size", 1),),
    "ws_message_bytes_max": (("--ws-max-size", 1), ("--websocket-max-message-size", 1)),
    "ws_queue_max": (("--ws-max-queue", 1),),
    "ws_ping_interval_ms": (("--ws-ping-interval", 1000),),
    "ws_ping_timeout_ms": (("--ws-ping-timeout", 1000),),
}  # fmt: skip


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
            env=(f"CITIUS_{name.upper()}",), scale=dict(aliases), group=LIMITS_GROUP,
        )  # fmt: skip
    return options


OPTIONS: Final[Mapping[str, Option]] = _collect()
"""All options by name, in the order in which they are shown."""


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
        variable: _did_you_mean(variable, known)
        for variable in environ
        if variable.startswith("CITIUS_")
        and variable not in known
        and not variable.startswith(_OTHER_VARIABLES)
    }


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
            raise ConfigError(f"{path} has no option {key}{_did_you_mean(name, OPTIONS)}")
        values[name] = option.read(value, f"{path}: {key}")
    return values


def _did_you_mean(name: str, known: Mapping[str, object]) -> str:
    from difflib import get_close_matches

    close = get_close_matches(name, known, n=1)
    return f"; did you mean {close[0]}?" if close else ""
