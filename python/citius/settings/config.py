"""All options of the server: ``Config`` for code, ``OPTIONS`` for the command line and the reference.

A field of ``Config`` carries its flags, help and unit (option.py); the limits take theirs from limits.py. The
command line (cli.py), the environment and files (loading.py) and docs/reference/options.md all derive from
here. texts.py and addresses.py parse single texts, checks.py checks options against each other. Long because
it is a table, which is one thing.
"""

from __future__ import annotations

import functools
import os
from dataclasses import MISSING, field, fields
from typing import TYPE_CHECKING, Final, Literal

from citius._core import LIMITS
from citius.errors import ConfigError
from citius.process.processors import has_gil, processors
from citius.process.turns import is_hosted
from citius.records import record
from citius.settings.addresses import REDIRECT, marks_of
from citius.settings.checks import check
from citius.settings.limits import LIMIT_ALIASES, LIMIT_HELP, LIMIT_ZEROS, LIMITS_NOT_ZERO
from citius.settings.option import (
    APPLICATION,
    DEVELOPMENT,
    HTTP,
    LIMITS_GROUP,
    LISTENING,
    LOGGING,
    OBSERVING,
    PROCESS,
    PROXIES,
    STATIC,
    STOPPING,
    SUPERVISION,
    TLS,
    WORKERS,
    Option,
    did_you_mean,
    option,
)
from citius.settings.texts import (
    HSTS,
    header_fields,
    hsts_value,
    http_versions,
    over_tcp,
    parse_coding,
    parts,
)
from citius.unknown_options import known_names

if TYPE_CHECKING:
    from collections.abc import Mapping

Interface = Literal["auto", "native", "asgi", "asgi2", "wsgi"]
Lifespan = Literal["auto", "on", "off"]
Loop = Literal["auto", "uvloop", "asyncio", "gevent", "none"]
Poller = Literal["auto", "epoll", "asyncio"]
Source = Literal["flag", "env", "file"]

ACME_SHARED = ("certificates", "challenges", "http-01")
"""The directories of fetched certificates that workers read."""

LETS_ENCRYPT = "https://acme-v02.api.letsencrypt.org/directory"
LETS_ENCRYPT_STAGING = "https://acme-staging-v02.api.letsencrypt.org/directory"


@known_names
@record(frozen=True, slots=True, kw_only=True)
class Config:
    """How to serve. ``Config()`` is what ``citius serve`` does without options.

    Raises:
        ConfigError: An option has an invalid value, or two options contradict each other.
    """

    bind: tuple[str, ...] = option(
        (), "Address to listen on (repeatable), instead of --host and --port: HOST:PORT, unix:PATH, "
        "fd://NUMBER, or fd://NAME for a socket of systemd. If one address begins with tls://, those without "
        "it use clear text; with proxy+ connections begin with a PROXY header; ?http=1, ?http=2 or "
        "?http=1+2+3 at the end says which versions of HTTP it has.",
        kind="list", flags=("--bind", "-b"), group=LISTENING, separator=",",
    )  # fmt: skip
    host: str = option("127.0.0.1", "Address to listen on.", group=LISTENING)
    port: int = option(
        8000, "Port to listen on; 0 lets the system choose.", kind="int", minimum=0, maximum=65535,
        flags=("--port", "-p"), group=LISTENING,
    )  # fmt: skip
    uds: str | None = option(None, "Listen on a Unix socket at this path instead.", group=LISTENING)
    fd: int | None = option(
        None,
        "Listen on this inherited socket instead; has priority over --bind, --host and --uds.",
        kind="int",
        minimum=0,
        maximum=2**31 - 1,
        group=LISTENING,
    )
    rpc: tuple[str, ...] = option(
        (), "Additional address for calls of procedures (`App.rpc`) by MessagePack-RPC and JSON-RPC "
        "(repeatable): HOST:PORT, unix:PATH or fd://NUMBER; with the prefix tls:// it uses TLS with the "
        "certificates of `--ssl-certfile`, with proxy+ the PROXY protocol.",
        kind="list", group=LISTENING, separator=",",
    )  # fmt: skip
    redirect_http: tuple[str, ...] = option(
        (), "Address in clear text, HOST:PORT or a PORT of --host, whose requests are redirected to HTTPS "
        "(308) if a certificate is for the host that they name (repeatable); also "
        "`--bind redirect+HOST:PORT`.",
        kind="list", group=LISTENING, separator=",",
    )  # fmt: skip
    redirect_port: int | None = option(
        None, "Port of HTTPS that these redirects name, if clients have to use another one than the server. "
        "Default: the port of the first address that has TLS.",
        kind="int", minimum=1, maximum=65535, group=LISTENING,
    )  # fmt: skip
    backlog: int = option(
        2048, "Connections the kernel may queue before they are accepted; Linux caps it at somaxconn.",
        kind="int", minimum=1, maximum=2**31 - 1, unit="connections", group=LISTENING,
    )  # fmt: skip
    factory: bool = option(
        False,
        "The target is a function that makes the application.",
        kind="bool",
        group=APPLICATION,
    )
    app_dir: str = option(".", "Directory to import the application from.", group=APPLICATION)
    chdir: str | None = option(
        None, "Change to this directory first; all other paths are relative to it.",
        flags=("--chdir", "--working-dir"), group=APPLICATION,
    )  # fmt: skip
    env_file: tuple[str, ...] = option(
        (), "File of NAME=value lines for the environment (repeatable); read again on HUP. Variables that "
        "are set already have priority.",
        kind="list", flags=("--env-file", "--env-files"), group=APPLICATION,
    )  # fmt: skip
    env: tuple[str, ...] = option(
        (), "NAME=value for the environment (repeatable).",
        kind="list", flags=("--env", "-e"), group=APPLICATION, separator=",",
    )  # fmt: skip
    interface: Interface = option(
        "auto", "Interface of the application; auto detects it.",
        choices=("auto", "native", "asgi", "asgi2", "wsgi"), group=APPLICATION,
    )  # fmt: skip
    lifespan: Lifespan = option(
        "auto", "Whether an ASGI application gets lifespan events; auto sends them and continues if it does "
        "not support them.",
        choices=("auto", "on", "off"), group=APPLICATION,
    )  # fmt: skip
    root_path: str = option(
        "", "Path under which a proxy has mounted the application, for ASGI and WSGI.",
        flags=("--root-path", "--url-path-prefix"), group=APPLICATION,
    )  # fmt: skip
    workers: int = option(
        1, "Processes, each with its own listening socket; auto: one per available processor, by the CPU "
        "affinity and the CPU quota of the control group.",
        kind="int", minimum=1, maximum=1024, auto=processors,
        flags=("--workers", "-w"), env=("CITIUS_WORKERS", "WEB_CONCURRENCY"), group=WORKERS,
    )  # fmt: skip
    reactor_threads: int | None = option(
        None, "Threads per worker that serve, each with a reactor of its own; auto: one per available "
        "processor. Default: without a GIL the available processors divided by the workers, otherwise 1, "
        "because with a GIL only one of the threads runs at a time.",
        kind="int", minimum=1, maximum=256, unit="threads", auto=processors, group=WORKERS,
    )  # fmt: skip
    loop: Loop = option(
        "auto", "Event loop: auto uses uvloop if it is installed, once something needs a loop; none serves "
        "without one, for applications whose handlers are all `def`; gevent patches the standard library "
        "and runs each request in a greenlet.",
        choices=("auto", "uvloop", "asyncio", "gevent", "none"), group=WORKERS,
    )  # fmt: skip
    poller: Poller = option(
        "auto", "What reads and writes sockets: epoll in the server itself, on Linux; or the event loop by "
        "asyncio's transports, on every system, for one worker and slower. auto is epoll on Linux.",
        choices=("auto", "epoll", "asyncio"), group=WORKERS,
    )  # fmt: skip
    threads: int | None = option(
        None, "Threads that call a WSGI application; 0 calls it on the thread of the event loop, one request "
        "at a time, which is fastest unless it waits for something. Default: 8 for a Django project, "
        "otherwise 0. For other applications the same as --blocking-threads.",
        kind="int", minimum=0, maximum=4096, unit="threads", group=WORKERS,
    )  # fmt: skip
    blocking_threads: int = option(
        16, "Threads for handlers with blocking=True.", kind="int", minimum=1, maximum=4096,
        unit="threads", group=WORKERS,
    )  # fmt: skip
    blocking_queue_max: int = option(
        1024, "Requests that may wait for one of these threads; more get a 503.",
        kind="int", minimum=0, unit="requests", group=WORKERS,
    )  # fmt: skip
    compiled_threads: int = option(
        0, "Threads for compiled handlers with pool=True; they never have the GIL. 0: one per processor.",
        kind="int", minimum=0, maximum=4096, unit="threads", group=WORKERS,
    )  # fmt: skip
    compiled_queue_max: int = option(
        1024, "Requests that may wait for one of these threads; more get a 503.",
        kind="int", minimum=0, unit="requests", group=WORKERS,
    )  # fmt: skip
    interpret_compiled: bool = option(
        False, "Call functions with compiled=True as plain Python: to debug them, or without numba.",
        kind="bool", group=DEVELOPMENT,
    )  # fmt: skip
    supervisor: bool | None = option(
        None, "A process that watches the workers, replaces them and hands over to a new version. "
        "Default: with several workers, as PID 1, and if an option below needs it.",
        kind="bool", group=SUPERVISION,
    )  # fmt: skip
    max_requests: int = option(
        0, "Replace a worker after this number of requests, when its successor is ready; 0: never.",
        kind="int", minimum=0, unit="requests", group=SUPERVISION,
        flags=("--max-requests", "--limit-max-requests"),
        zero={"--limit-max-requests": "uvicorn would end at once; leave it out for no limit"},
    )  # fmt: skip
    max_requests_jitter: int = option(
        0, "Random number of requests, up to this one, that is added for each worker.",
        kind="int", minimum=0, unit="requests", group=SUPERVISION,
        flags=("--max-requests-jitter", "--limit-max-requests-jitter"),
    )  # fmt: skip
    worker_lifetime_s: float = option(
        0.0, "Replace a worker of this age; 0: never.", kind="float", minimum=0, unit="seconds",
        flags=("--worker-lifetime-s", "--worker-lifetime", "--workers-lifetime"), group=SUPERVISION,
    )  # fmt: skip
    worker_rss_bytes_max: int = option(
        0, "Replace a worker whose resident set is larger; 0: never.",
        kind="int", minimum=0, unit="bytes", group=SUPERVISION,
        flags=("--worker-rss-bytes-max", "--worker-rss-max"), scale={"--workers-max-rss": 1 << 20},
    )  # fmt: skip
    worker_timeout_s: float | None = option(
        None, "Kill and replace a worker whose loop does not turn for this time, after it has printed its "
        "Python stacks; 0: never. Default: 30 with a supervisor. The option starts a supervisor.",
        kind="float", minimum=0, unit="seconds", group=SUPERVISION,
        flags=("--worker-timeout-s", "--worker-timeout", "--timeout", "-t",
               "--timeout-worker-healthcheck"),
        zero={
            "--timeout-worker-healthcheck": "uvicorn would replace every worker at once; use "
            "--worker-timeout-s 0 for no limit",
        },
    )  # fmt: skip
    worker_start_s: float = option(
        300.0, "The same for a worker that does not become ready; 0: no limit.",
        kind="float", minimum=0, unit="seconds", group=SUPERVISION,
    )  # fmt: skip
    drain_delay_s: float = option(
        0.0, "Continue to serve for this time after TERM, until load balancers have noticed.",
        kind="float", minimum=0, unit="seconds", group=STOPPING,
    )  # fmt: skip
    drain_s: float = option(
        10.0, "Time that open requests have after TERM or INT before their connections are closed.",
        kind="float", minimum=0, unit="seconds", group=STOPPING,
        flags=("--drain-s", "--timeout-graceful-shutdown", "--graceful-timeout",
               "--workers-kill-timeout"),
    )  # fmt: skip
    user: str | None = option(
        None, "User of the workers, by name or number; sockets and files are opened before the change.",
        flags=("--user", "-u"), group=PROCESS,
    )  # fmt: skip
    group: str | None = option(
        None, "Group of the workers, by name or number; default: the group of the user.",
        flags=("--group", "-g"), group=PROCESS,
    )  # fmt: skip
    umask: str | None = option(
        None, "Mode bits that are removed from new files and Unix sockets, in octal.",
        flags=("--umask", "-m"), group=PROCESS,
    )  # fmt: skip
    sandbox: bool = option(
        False, "Workers give up what they do not need once the application has started: they write no files, "
        "start no programs, trace no processes and make no sockets. Needs Linux 5.13.",
        kind="bool", group=PROCESS,
    )  # fmt: skip
    sandbox_read: tuple[str, ...] = option(
        (), "With --sandbox, file or directory that may be read (repeatable), besides the system's, Python's "
        "and the working directory.", kind="list", group=PROCESS,
    )  # fmt: skip
    sandbox_write: tuple[str, ...] = option(
        (), "With --sandbox, file or directory that may be read and written (repeatable).",
        kind="list", group=PROCESS,
    )  # fmt: skip
    sandbox_connect: tuple[str, ...] = option(
        (), "With --sandbox, TCP port to which workers may connect, `unix` for Unix sockets, or `udp` for "
        "UDP, which reaches any address and resolves host names (repeatable).",
        kind="list", group=PROCESS, separator=",",
    )  # fmt: skip
    sandbox_metadata: bool = option(
        False, "With --sandbox, allow changes of modes, owners, times and extended attributes: of all files "
        "of the workers' user, for the kernel cannot restrict them to directories.",
        kind="bool", group=PROCESS,
    )  # fmt: skip
    pidfile: str | None = option(
        None, "File for the process id.", flags=("--pidfile", "--pid", "--pid-file"), group=PROCESS
    )
    reload: bool = option(
        False,
        "Restart when a file changes; for development. On the command line it sets aside `--workers` and"
        " `--sandbox` of the environment and of files.",
        kind="bool", group=DEVELOPMENT,
    )  # fmt: skip
    reload_dir: tuple[str, ...] = option(
        (), "Directory to watch (repeatable); default: that of the application.",
        kind="list", flags=("--reload-dir", "--reload-paths"), group=DEVELOPMENT,
    )  # fmt: skip
    reload_include: tuple[str, ...] = option(
        (), "Pattern of file names to watch (repeatable), besides *.py.",
        kind="list", group=DEVELOPMENT,
    )  # fmt: skip
    reload_exclude: tuple[str, ...] = option(
        (), "Pattern of file or directory names not to watch (repeatable).",
        kind="list", flags=("--reload-exclude", "--reload-ignore-patterns"), group=DEVELOPMENT,
    )  # fmt: skip
    reload_delay_s: float = option(
        0.25, "Time to collect changes before a restart.", kind="float", minimum=0,
        unit="seconds", flags=("--reload-delay-s", "--reload-delay"), scale={"--reload-tick": 1e-3},
        group=DEVELOPMENT,
    )  # fmt: skip
    log_level: str = option(
        "info", "Lowest level of notices that are shown.",
        choices=("critical", "error", "warning", "info", "debug", "trace"), group=LOGGING,
    )  # fmt: skip
    log_file: str | None = option(
        None, "File for notices and standard error; USR1 reopens it.",
        flags=("--log-file", "--error-logfile"), group=LOGGING,
    )  # fmt: skip
    access_log_file: str | None = option(
        None, "File for the access log and standard output; USR1 reopens it.",
        flags=("--access-log-file", "--access-logfile"), group=LOGGING,
    )  # fmt: skip
    log_config: str | None = option(
        None, "Configure the standard library's logging from this file: .json, .toml, .yaml or .ini.",
        flags=("--log-config", "--log-config-json"), group=LOGGING,
    )  # fmt: skip
    use_colors: bool | None = option(
        None, "Colours in notices; default: if standard error is a terminal.",
        kind="bool", group=LOGGING,
    )  # fmt: skip
    access_log: bool = option(
        True, "A line on standard output for every response.", kind="bool", group=LOGGING
    )
    access_log_format: str = option(
        "text", "Format of a line: text, json, common, combined, or a line of atoms such as `%(h)s`.",
        flags=("--access-log-format", "--access-logformat", "--access-log-fmt"), group=LOGGING,
    )  # fmt: skip
    access_log_sample: float = option(
        1.0, "Share of the responses below 400 that have a line; all other responses have one.",
        kind="float", minimum=0, maximum=1, group=LOGGING,
    )  # fmt: skip
    management: str | None = option(
        None, "Serve /metrics, /live and /ready at this address: HOST:PORT or unix:PATH.",
        group=OBSERVING,
    )  # fmt: skip
    health: str | None = option(
        None, "Serve /live and /ready of the worker below this path of the application's own port.",
        flags=("--health", "--health-path"), group=OBSERVING,
    )  # fmt: skip
    path_pattern: tuple[str, ...] = option(
        (), "Path pattern such as `/users/{id}` (repeatable) by which metrics and access log classify "
        "requests; native applications have their routes.",
        kind="list", group=OBSERVING, separator=",",
    )  # fmt: skip
    request_id: str | None = option(
        None, "Header that carries the id of a request, such as x-request-id: the id of a trusted proxy, or "
        "a new one; handlers and clients receive it.",
        group=OBSERVING,
    )  # fmt: skip
    trace: bool = option(
        False, "Continue W3C traces (`traceparent`) of trusted proxies, or start new ones.",
        kind="bool", group=OBSERVING,
    )  # fmt: skip
    trace_sample: float = option(
        1.0, "Share of the new traces that are sampled.",
        kind="float", minimum=0, maximum=1, group=OBSERVING,
    )  # fmt: skip
    otel: bool = option(
        False, "Export traces and metrics with OpenTelemetry's SDK (`citius[otel]`), configured by its "
        "OTEL_* variables.",
        kind="bool", group=OBSERVING,
    )  # fmt: skip
    quic_qlog_dir: str | None = option(
        None, "Directory for a file of each HTTP/3 connection with what happens to its packets (qlog), to "
        "look for a fault of the network; for a short time, because the files are large.",
        group=OBSERVING,
    )  # fmt: skip
    http: str = option(
        "auto", "Versions of HTTP: `1`, `2`, or several such as `1,2,3`; auto is `1,2`, as the client starts."
        " With 3, HTTP/3 is served over UDP on the ports that have TLS. `h11` and `httptools`, which uvicorn"
        " has, mean auto.",
        group=HTTP,
    )  # fmt: skip
    alt_svc: str = option(
        "auto", "With HTTP/3, the header `Alt-Svc` of all responses, by which browsers find it: auto names"
        " the port for a day, off sends none; any other text is sent as it is.",
        group=HTTP,
    )  # fmt: skip
    h2c_upgrade: bool = option(
        True, "Grant `Upgrade: h2c` over HTTP/1.1 without TLS, except to requests that passed a proxy.",
        kind="bool", group=HTTP,
    )  # fmt: skip
    webtransport: bool = option(
        False, "Offer WebTransport sessions over HTTP/3 to an ASGI application; native ones declare "
        "theirs with `app.webtransport`.", kind="bool", group=HTTP,
    )  # fmt: skip
    ws_per_message_deflate: Literal["true", "false"] = option(
        "true", "Compress WebSocket messages for clients that accept it; all connections share the memory.",
        choices=("true", "false"), group=HTTP,
    )  # fmt: skip
    server_header: bool = option(True, "Send `Server: citius`.", kind="bool", group=HTTP)
    date_header: bool = option(True, "Send `Date`.", kind="bool", group=HTTP)
    header: tuple[str, ...] = option(
        (), "Header of every response, as `NAME:VALUE` (repeatable; in the environment one per line). It is "
        "not added if the response has a header of this name, except `set-cookie`, `vary` and `link`.",
        kind="list", group=HTTP, separator="\n",
    )  # fmt: skip
    compress: tuple[str, ...] = option(
        (), "Compress responses for clients that accept it: `br`, `zstd`, `gzip` (repeatable); among codings "
        "with equal weight the first. With a level: `br=6` (0 to 11, default 4), `zstd=9` (1 to 22, 3), "
        "`gzip=6` (1 to 9, 4).", kind="list", group=HTTP, separator=",",
    )  # fmt: skip
    compress_types: tuple[str, ...] = option(
        (), "Media type to compress (repeatable), in addition to text, JSON, XML and similar types.",
        kind="list", group=HTTP, separator=",",
    )  # fmt: skip
    ssl_certfile: tuple[str, ...] = option(
        (), "Serve HTTPS with this certificate chain (PEM; repeatable: the server name of the client selects "
        "one, by default the first).",
        kind="list", flags=("--ssl-certfile", "--certfile", "--ssl-certificate"), group=TLS,
    )  # fmt: skip
    ssl_keyfile: tuple[str, ...] = option(
        (), "Its private key (PEM; one for each certificate, in their order); without it the key is in the "
        "certificate's file.",
        kind="list", flags=("--ssl-keyfile", "--keyfile"), group=TLS,
    )  # fmt: skip
    ssl_keyfile_password: str | None = option(
        None, "Password of encrypted keys; safer in the environment.", group=TLS
    )
    ssl_dev: bool = option(
        False, "Serve HTTPS with a self-signed certificate for localhost; for development.",
        kind="bool", group=TLS,
    )  # fmt: skip
    acme: tuple[str, ...] = option(
        (), "Serve HTTPS for this domain (repeatable) with a certificate that is fetched and renewed by "
        "ACME, from Let's Encrypt by default, to whose terms of service the option agrees. Needs "
        "`citius[acme]`.",
        kind="list", group=TLS, separator=",",
    )  # fmt: skip
    acme_email: str | None = option(
        None, "Address under which the authority reaches you.", group=TLS
    )
    acme_dir: str | None = option(
        None, "Directory for certificates and the account. Default: /var/lib/citius/acme for root, otherwise "
        "citius/acme in $XDG_STATE_HOME or ~/.local/state.", group=TLS,
    )  # fmt: skip
    acme_staging: bool = option(
        False, "Use Let's Encrypt's authority for tests, whose certificates browsers refuse.",
        kind="bool", group=TLS,
    )  # fmt: skip
    acme_directory: str | None = option(None, "Directory URL of another authority.", group=TLS)
    acme_ca_certs: str | None = option(
        None, "Certificates (PEM) that verify the authority's own HTTPS, instead of the public ones.",
        group=TLS,
    )  # fmt: skip
    acme_eab: str | None = option(
        None, "File with what an authority wants of a new account (external account binding): the key "
        "identifier, and in the next line the key in base64url. Only its owner may be able to read it.",
        group=TLS,
    )  # fmt: skip
    acme_challenge: str = option(
        "auto", "How the authority checks a domain: tls-alpn-01 by TLS on port 443, http-01 in clear text on "
        "port 80; auto: by TLS, and if that fails and --redirect-http is there by HTTP.",
        choices=("auto", "tls-alpn-01", "http-01"), group=TLS,
    )  # fmt: skip
    hsts: str | None = option(
        None, "Tell browsers for so many seconds to use HTTPS only (`Strict-Transport-Security`), such as "
        "31536000; with `; includeSubDomains` or `; preload` behind it as there.", group=TLS,
    )  # fmt: skip
    ssl_protocol_min: str = option(
        "tls1.2", "Oldest version of TLS that is accepted; versions before TLS 1.2 are not supported.",
        choices=("tls1.2", "tls1.3"), group=TLS,
    )  # fmt: skip
    ssl_ciphers: str | None = option(
        None,
        "Cipher suites, in the format of OpenSSL.",
        flags=("--ssl-ciphers", "--ciphers"),
        group=TLS,
    )
    ssl_cert_reqs: str = option(
        "none", "Whether clients must have certificates; 0, 1 and 2 are none, optional and required.",
        choices=("none", "optional", "required", "0", "1", "2"),
        flags=("--ssl-cert-reqs", "--cert-reqs"), group=TLS,
    )  # fmt: skip
    ssl_ca_certs: str | None = option(
        None, "Certificates of the authorities that issue client certificates (PEM).",
        flags=("--ssl-ca-certs", "--ca-certs", "--ssl-ca"), group=TLS,
    )  # fmt: skip
    ssl_crl: tuple[str, ...] = option(
        (),
        "List of client certificates that are revoked (PEM; repeatable).",
        kind="list",
        group=TLS,
    )
    proxy_headers: bool = option(
        True,
        "Use the headers in which trusted proxies describe their clients.",
        kind="bool",
        group=PROXIES,
    )
    forwarded_allow_ips: tuple[str, ...] = option(
        ("127.0.0.1", "::1", "unix"), "Proxies that are trusted (repeatable, or with commas): addresses, "
        "networks such as 10.0.0.0/8, `unix` for Unix sockets, `*` for all peers; empty: none. Their request "
        "ids and traces are used too.", kind="list",
        env=("CITIUS_FORWARDED_ALLOW_IPS", "FORWARDED_ALLOW_IPS"), group=PROXIES, separator=",",
        has_empty=True,
    )  # fmt: skip
    forwarded_headers: tuple[str, ...] = option(
        ("x-forwarded-for", "x-forwarded-proto", "forwarded"), "Headers that are trusted (repeatable, or "
        "with commas); x-forwarded-host, forwarded-host (`host=` of Forwarded), x-forwarded-port and "
        "x-forwarded-prefix only for proxies that write them themselves.",
        kind="list", group=PROXIES, separator=",",
    )  # fmt: skip
    proxy_protocol: bool = option(
        False,
        "Connections to the addresses of HTTP begin with a header of the PROXY protocol, version 1 or 2, of "
        "a trusted proxy; others are closed. For one address: `--bind proxy+HOST:PORT`.",
        kind="bool",
        group=PROXIES,
    )
    static: tuple[str, ...] = option(
        (), "Serve the files of a directory: `/assets=public` (repeatable). With `/` requests for missing "
        "files go to the application.", kind="list", group=STATIC, separator=",",
    )  # fmt: skip
    static_index: str = option(
        "index.html", "File that is sent for a directory; empty: none.", group=STATIC
    )
    static_cache_control: str | None = option(
        None, "`Cache-Control` of static files, such as `public, max-age=3600`.", group=STATIC
    )
    static_dotfiles: bool = option(
        False, "Serve files whose names begin with a dot.", kind="bool", group=STATIC
    )
    static_symlinks: bool = option(
        False, "Follow symbolic links that stay inside their static directory.", kind="bool",
        group=STATIC,
    )  # fmt: skip
    static_optional: bool = option(
        False, "Leave out a static directory that is missing, with a notice, instead of ending the start.",
        kind="bool", group=STATIC,
    )  # fmt: skip
    static_precompressed: bool = option(
        True, "Send `name.br`, `name.zst` or `name.gz` for `name` to clients that accept it.",
        kind="bool", group=STATIC,
    )  # fmt: skip
    limits: Mapping[str, int] = field(default_factory=dict[str, int])
    """Overrides of the limits, by their names."""

    def __post_init__(self) -> None:
        for one in OPTIONS.values():
            if not one.is_limit:
                one.check(getattr(self, one.name), one.name)
        for name, value in self.limits.items():
            if name not in LIMITS:
                raise ConfigError(f"no limit is called {name}{did_you_mean(name, LIMITS)}")
            OPTIONS[name].check(value, name)
        check(self)

    @property
    def reactors(self) -> int:
        """Reactors of a worker: ``reactor_threads``, or what it is by default on this interpreter."""
        if self.reactor_threads is not None:
            return self.reactor_threads
        if has_gil() or self.loop == "gevent" or is_hosted(self.poller):
            return 1
        return min(256, max(1, processors() // self.workers))

    @property
    def is_tls(self) -> bool:
        """Whether HTTPS is served."""
        return bool(self.ssl_certfile) or self.ssl_dev or bool(self.acme)

    @property
    def acme_url(self) -> str:
        """The directory of the authority."""
        return self.acme_directory or (LETS_ENCRYPT_STAGING if self.acme_staging else LETS_ENCRYPT)

    @property
    def acme_root(self) -> str:
        """The directory of fetched certificates."""
        return _acme_root(self.acme_dir)

    @property
    def acme_readable(self) -> list[str]:
        """What workers read of it; nothing without certificates that are fetched."""
        return [os.path.join(self.acme_root, name) for name in ACME_SHARED] if self.acme else []

    @property
    def acme_challenges(self) -> tuple[str, ...]:
        """Kinds of challenges, in the order in which they are tried."""
        if self.acme_challenge != "auto":
            return (self.acme_challenge,)
        return ("tls-alpn-01", "http-01") if self.has_redirects else ("tls-alpn-01",)

    @property
    def has_redirects(self) -> bool:
        """Whether there is an address that redirects to HTTPS."""
        return bool(self.redirect_http) or any(REDIRECT in marks_of(text) for text in self.bind)

    @property
    def trusted(self) -> tuple[str, ...]:
        """Peers whose headers describe the client."""
        return parts(self.forwarded_allow_ips)

    @property
    def server_name(self) -> str | None:
        """The value of the `server` field; ``None``: not sent."""
        said = [value for name, value in header_fields(self.header) if name == "server"]
        return said[-1] if said else "citius" if self.server_header else None

    @property
    def default_response_headers(self) -> list[tuple[str, str]]:
        """The fields of every response, besides `server`."""
        fields = [(name, value) for name, value in header_fields(self.header) if name != "server"]
        if self.hsts is not None and all(name != HSTS for name, _ in fields):
            fields.append((HSTS, hsts_value(self.hsts)))
        return fields

    @property
    def http_versions(self) -> Literal["auto", "1", "2"]:
        """The versions of HTTP that are served over TCP."""
        return over_tcp(http_versions(self.http))

    @property
    def trusted_headers(self) -> tuple[str, ...]:
        """The headers in which trusted peers describe the client."""
        return parts(self.forwarded_headers) if self.proxy_headers else ()

    @property
    def codings(self) -> list[tuple[str, int | None]]:
        """Codings for the compression of responses, the preferred first, with their levels."""
        return [parse_coding(text) for text in self.compress]

    @property
    def limits_in_force(self) -> Mapping[str, int]:
        """The overrides, and the limits that other options imply."""
        if self.ws_per_message_deflate == "false":
            return {**self.limits, "ws_deflate_bytes_min": 0}
        return self.limits


@functools.cache
def _acme_root(given: str | None) -> str:
    """Remembered from the first time: workers have another user, and may have another working directory."""
    if given is None and os.name == "posix" and os.geteuid() == 0:
        return "/var/lib/citius/acme"
    base = os.environ.get("XDG_STATE_HOME") or os.path.expanduser("~/.local/state")
    return os.path.abspath(given or os.path.join(base, "citius/acme"))


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
        unit, text = LIMIT_HELP.get(name, ("", "See crates/citius-http/src/limits.rs."))
        aliases = LIMIT_ALIASES.get(name, ())
        options[name] = Option(
            name, "int", default, text, unit, minimum=int(name in LIMITS_NOT_ZERO), is_limit=True,
            flags=("--" + name.replace("_", "-"), *(alias for alias, _ in aliases)),
            env=(f"CITIUS_{name.upper()}",), scale=dict(aliases), group=LIMITS_GROUP,
            zero={alias: LIMIT_ZEROS[alias] for alias, _ in aliases if alias in LIMIT_ZEROS},
        )  # fmt: skip
    return options


OPTIONS: Final[Mapping[str, Option]] = _collect()
"""All options by name, in the order in which they are shown."""
