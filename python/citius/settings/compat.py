"""The flags of uvicorn, gunicorn, granian and uWSGI, and what each of them is here.

Most are spellings of our own options (config.py has them as aliases). The others are in ``REPLIES``: what
needs no flag here is said and passed over, what would change behaviour is refused with what to do instead.
The command line asks ``reply``; docs/migration/servers.md is made of ``rows``. gunicorn.py reads the
configuration files of gunicorn.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from citius.errors import ConfigError
from citius.records import record
from citius.settings.config import OPTIONS

if TYPE_CHECKING:
    from collections.abc import Iterator


@record(frozen=True, slots=True)
class FlagReply:
    """What is said to a flag that is no option here."""

    says: str
    goes_on: bool = True
    """Serving without it is what the flag wanted, or close to it."""
    takes_value: bool = True


def _not_needed(says: str, *, takes_value: bool = True) -> FlagReply:
    return FlagReply(f"not needed: {says}", takes_value=takes_value)


def _refused(says: str, *, takes_value: bool = True) -> FlagReply:
    return FlagReply(says, goes_on=False, takes_value=takes_value)


_TLS_VERSION = _not_needed(
    "TLS 1.2 and 1.3 are enabled; --ssl-protocol-min tls1.3 disables TLS 1.2"
)
_ONE_PARSER = _not_needed("there is one parser, in Rust")
_HTTP2 = _not_needed("every client can start with HTTP/2; see --http")
_HTTP2_HEADS = _not_needed("--head-bytes-max limits header sections, of HTTP/2 too")
_HTTP2_FRAMES = _not_needed("16 KiB is the frame size that every client accepts")
_HTTP2_ALIVE = _not_needed("--keep-alive-ms and --write-stall-ms end idle connections")
_WEBSOCKET = _not_needed("there is one implementation of WebSockets, in Rust")
_ONE_THREAD = _not_needed("one thread per worker does I/O and runs Python; see --workers")
_STRICT = _refused(
    "requests are parsed strictly, because lenient parsing makes request smuggling possible",
    takes_value=False,
)
_SYSLOG = _refused(
    "log to standard output and let the service manager store it, or use --log-config"
)
_STATSD = _refused("statsd is not supported; --management serves metrics in Prometheus format")
_DIRTY = _refused("there are no dirty workers; use a task queue, or handlers with blocking=True")
_SWITCH_RESPAWN = _not_needed(
    "a worker that dies is replaced, after growing pauses if it dies repeatedly"
)

REPLIES: Final[dict[str, FlagReply]] = {
    # uvicorn
    "--http2": FlagReply(_HTTP2.says, takes_value=False),
    "--ws": _WEBSOCKET,
    "--reset-contextvars": _not_needed(
        "every request starts from the context of the start-up", takes_value=False
    ),
    "--ssl-version": _TLS_VERSION,
    # gunicorn
    "--worker-class": _not_needed("the interface and the loop are detected; see --loop, --threads"),
    "--worker-tmp-dir": _not_needed("workers show that they are alive through shared memory"),
    "--preload": _not_needed(
        "workers import the application themselves, so that HUP loads new code", takes_value=False
    ),
    "--reuse-port": _not_needed("every worker has a socket of its own", takes_value=False),
    "--no-sendfile": _not_needed("the server selects how to send a file", takes_value=False),
    "--initgroups": _not_needed("--user sets the user's groups too", takes_value=False),
    "--reload-engine": _not_needed("files are watched by the kernel's notifications"),
    "--reload-extra-file": _refused("use --reload-dir for its directory and --reload-include"),
    "--spew": _refused(
        "there is no tracing of every line; USR2 to a worker prints its stacks", takes_value=False
    ),
    "--daemon": _refused(
        "stay in the foreground and let systemd or a container runtime watch; see "
        "docs/guides/deployment.md", takes_value=False,
    ),
    "--limit-request-field_size": _not_needed("--head-bytes-max limits the header section as a whole"),
    "--disable-redirect-access-to-syslog": FlagReply(_SYSLOG.says, takes_value=False),
    "--access-logformat": _refused("the format of access lines is fixed"),
    "--capture-output": _not_needed(
        "--log-file and --access-log-file include what is written to the descriptors", takes_value=False
    ),
    "--enable-stdio-inheritance": _not_needed("standard streams are inherited", takes_value=False),
    "--logger-class": _refused("set up the logger `citius` with --log-config"),
    "--log-syslog": _refused(_SYSLOG.says, takes_value=False),
    "--log-syslog-to": _SYSLOG,
    "--log-syslog-prefix": _SYSLOG,
    "--log-syslog-facility": _SYSLOG,
    "--statsd-host": _STATSD,
    "--statsd-prefix": _STATSD,
    "--dogstatsd-tags": _STATSD,
    "--enable-backlog-metric": _refused(_STATSD.says, takes_value=False),
    "--name": _not_needed("the command line names the process"),
    "--pythonpath": _refused("use --app-dir, or PYTHONPATH in the environment"),
    "--paste": _refused("give the application itself, as module:attribute"),
    "--paster": _refused("give the application itself, as module:attribute"),
    "--paste-global": _refused("give the application itself, as module:attribute"),
    "--proxy-allow-from": _refused("use --forwarded-allow-ips, whose proxies may send PROXY headers"),
    "--protocol": _refused("the server speaks HTTP; let nginx use proxy_pass, not uwsgi_pass"),
    "--uwsgi-allow-from": _refused("the server speaks HTTP; let nginx use proxy_pass"),
    "--suppress-ragged-eofs": _not_needed("an end without close_notify is accepted"),
    "--do-handshake-on-connect": _not_needed(
        "handshakes run beside requests, and have a deadline", takes_value=False
    ),
    "--http-protocols": _HTTP2,
    "--http2-cleartext": _HTTP2,
    "--http2-max-frame-size": _HTTP2_FRAMES,
    "--http2-max-header-list-size": _HTTP2_HEADS,
    "--permit-obsolete-folding": _STRICT,
    "--strip-header-spaces": _STRICT,
    "--permit-unconventional-http-method": _STRICT,
    "--permit-unconventional-http-version": _STRICT,
    "--casefold-http-method": _STRICT,
    "--forwarder-headers": _refused("headers with underscores are dropped for WSGI, all of them"),
    "--header-map": _refused("headers with underscores are dropped for WSGI, all of them"),
    "--asgi-loop": _refused("use --loop"),
    "--asgi-lifespan": _not_needed("lifespan is detected"),
    "--asgi-disconnect-grace-period": _not_needed("a handler is notified of a disconnect at once"),
    "--http-parser": _ONE_PARSER,
    "--dirty-app": _DIRTY,
    "--dirty-workers": _DIRTY,
    "--dirty-timeout": _DIRTY,
    "--dirty-threads": _DIRTY,
    "--dirty-graceful-timeout": _DIRTY,
    "--control-socket": _refused("there is no control socket; use signals (docs/guides/serving.md)"),
    "--control-socket-mode": _refused("there is no control socket; use signals"),
    "--no-control-socket": _not_needed("there is no control socket", takes_value=False),
    # granian
    "--http1-buffer-size": _refused("use --head-bytes-max, which limits the header section"),
    "--http1-keep-alive": _not_needed("kept alive by default", takes_value=False),
    "--no-http1-keep-alive": _refused("use --keep-alive-ms 1", takes_value=False),
    "--http1-pipeline-flush": _not_needed(
        "responses are written once per turn of the event loop", takes_value=False
    ),
    "--no-http1-pipeline-flush": _not_needed(
        "responses are written once per turn of the event loop", takes_value=False
    ),
    "--http2-adaptive-window": _not_needed(
        "windows open as handlers read", takes_value=False
    ),
    "--no-http2-adaptive-window": _not_needed(
        "windows open as handlers read", takes_value=False
    ),
    "--http2-keep-alive-interval": _HTTP2_ALIVE,
    "--http2-keep-alive-timeout": _HTTP2_ALIVE,
    "--http2-max-headers-size": _HTTP2_HEADS,
    "--no-ws": _not_needed(
        "WebSockets are refused unless the application has a handler for them", takes_value=False
    ),
    "--runtime-mode": _ONE_THREAD,
    "--runtime-threads": _ONE_THREAD,
    "--runtime-blocking-threads": _ONE_THREAD,
    "--blocking-threads-idle-timeout": _not_needed("idle threads wait and cost nothing"),
    "--task-impl": _not_needed("coroutines run at once and become tasks when they wait"),
    "--access-log-fmt": _refused("the format of access lines is fixed"),
    "--log": _not_needed("notices are logged; see --log-level", takes_value=False),
    "--no-log": _refused("use --log-level critical and --no-access-log", takes_value=False),
    "--metrics": _refused("use --management HOST:PORT, which serves /metrics", takes_value=False),
    "--no-metrics": _not_needed("metrics are off without --management", takes_value=False),
    "--metrics-address": _refused("use --management HOST:PORT, which serves /metrics"),
    "--metrics-port": _refused("use --management HOST:PORT, which serves /metrics"),
    "--metrics-scrape-interval": _not_needed("metrics are counted with each response"),
    "--process-name": _not_needed("the command line names the process"),
    "--respawn-failed-workers": FlagReply(_SWITCH_RESPAWN.says, takes_value=False),
    "--no-respawn-failed-workers": _refused(
        "a worker that dies is replaced, always", takes_value=False
    ),
    "--respawn-interval": _SWITCH_RESPAWN,
    "--rss-sample-interval": _not_needed("memory is checked every second"),
    "--rss-samples": _not_needed("one sample above the limit is enough"),
    "--reload-ignore-dirs": _refused("use --reload-exclude NAME"),
    "--reload-ignore-paths": _refused("use --reload-exclude PATTERN"),
    "--reload-ignore-worker-failure": _not_needed(
        "the reloader waits for the next change", takes_value=False
    ),
    "--no-reload-ignore-worker-failure": _not_needed(
        "the reloader waits for the next change", takes_value=False
    ),
    "--no-ssl-client-verify": _not_needed(
        "client certificates are not requested without --ssl-cert-reqs", takes_value=False
    ),
    "--ssl-client-verify": _refused("use --ssl-cert-reqs required", takes_value=False),
    "--static-path-mount": _refused("use --static /prefix=directory (docs/guides/responses.md)"),
    "--static-path-route": _refused("use --static /prefix=directory (docs/guides/responses.md)"),
    "--static-path-dir-to-file": _refused("use --static /prefix=directory (docs/guides/responses.md)"),
    "--static-path-expires": _refused("use --static /prefix=directory (docs/guides/responses.md)"),
    "--uds-permissions": _refused("use --umask: it applies to the socket too"),
    "--url-path-prefix": _refused("use --root-path"),
}  # fmt: skip

SHORT: Final[dict[str, str]] = {
    "-k": "--worker-class", "-D": "--daemon", "-n": "--name", "-R": "--enable-stdio-inheritance",
}  # fmt: skip
"""Their letters, where we have no meaning of our own for them."""

WORKER_CLASSES: Final[dict[str, str]] = {
    "sync": "", "gthread": "threads come with --threads N", "uvicorn": "", "asgi": "",
    "gevent": "use --loop gevent, which patches the standard library at the start",
    "eventlet": "eventlet is not supported; --threads N runs blocking applications",
    "tornado": "Tornado's own server is not replaced; serve its application by itself",
}  # fmt: skip
"""Words in the names of gunicorn's worker classes, and what to do for them."""

FLAGS: Final[dict[str, str]] = {
    "uvicorn": """
        --access-log --app-dir --backlog --date-header --env-file --factory --fd
        --forwarded-allow-ips --h11-max-incomplete-event-size --header --host --http --http2
        --interface --lifespan --limit-concurrency --limit-max-requests
        --limit-max-requests-jitter --log-config --log-level --loop --port --proxy-headers
        --no-proxy-headers --reload --reload-delay --reload-dir --reload-exclude --reload-include
        --reset-contextvars --root-path --server-header --ssl-ca-certs --ssl-cert-reqs
        --ssl-certfile --ssl-ciphers --ssl-keyfile --ssl-keyfile-password --ssl-version
        --timeout-graceful-shutdown --timeout-keep-alive --timeout-worker-healthcheck --uds
        --use-colors --workers --ws --ws-max-queue --ws-max-size --ws-per-message-deflate
        --ws-ping-interval --ws-ping-timeout
    """,
    "gunicorn": """
        --config --bind --backlog --workers --worker-class --threads --worker-connections
        --max-requests --max-requests-jitter --timeout --graceful-timeout --keep-alive
        --limit-request-line --limit-request-fields --limit-request-field_size --reload
        --reload-engine --reload-extra-file --spew --check-config --print-config --preload
        --no-sendfile --reuse-port --chdir --daemon --env --pid --worker-tmp-dir --user --group
        --umask --initgroups --forwarded-allow-ips --access-logfile
        --disable-redirect-access-to-syslog --access-logformat --error-logfile --log-file
        --log-level --capture-output --logger-class --log-config --log-config-json --log-syslog-to
        --log-syslog --log-syslog-prefix --log-syslog-facility --enable-stdio-inheritance
        --statsd-host --dogstatsd-tags --statsd-prefix --enable-backlog-metric --name --pythonpath
        --paste --paster --proxy-protocol --proxy-allow-from --protocol --uwsgi-allow-from --keyfile
        --certfile --ssl-version --cert-reqs --ca-certs --suppress-ragged-eofs
        --do-handshake-on-connect --ciphers --http-protocols --http2-cleartext
        --http2-max-concurrent-streams --http2-initial-window-size --http2-max-frame-size
        --http2-max-header-list-size --paste-global --permit-obsolete-folding
        --strip-header-spaces --permit-unconventional-http-method
        --permit-unconventional-http-version --casefold-http-method --forwarder-headers
        --header-map --asgi-loop --asgi-lifespan --asgi-disconnect-grace-period
        --websocket-max-message-size --http-parser --root-path --dirty-app --dirty-workers
        --dirty-timeout --dirty-threads --dirty-graceful-timeout --control-socket
        --control-socket-mode --no-control-socket
    """,
    "granian": """
        --host --port --uds --uds-permissions --interface --http --ws --no-ws --workers
        --blocking-threads --blocking-threads-idle-timeout --runtime-threads
        --runtime-blocking-threads --runtime-mode --loop --task-impl --backlog --backpressure
        --http1-buffer-size --http1-header-read-timeout --http1-keep-alive --no-http1-keep-alive
        --http1-pipeline-flush --no-http1-pipeline-flush --http2-adaptive-window
        --no-http2-adaptive-window --http2-initial-connection-window-size
        --http2-initial-stream-window-size --http2-keep-alive-interval --http2-keep-alive-timeout
        --http2-max-concurrent-streams --http2-max-frame-size --http2-max-headers-size
        --http2-max-send-buffer-size --log --no-log --log-level --log-config --access-log
        --access-log-fmt --metrics --no-metrics --metrics-address --metrics-port --metrics-scrape-interval
        --ssl-certificate --ssl-keyfile --ssl-keyfile-password --ssl-protocol-min --ssl-ca
        --ssl-crl --ssl-client-verify --no-ssl-client-verify --url-path-prefix --respawn-failed-workers
        --no-respawn-failed-workers --respawn-interval --rss-sample-interval --rss-samples
        --workers-lifetime --workers-max-rss --workers-kill-timeout --factory --working-dir
        --env-files --static-path-mount --static-path-route --static-path-dir-to-file
        --static-path-expires --reload --reload-paths --reload-ignore-dirs
        --reload-ignore-patterns --reload-ignore-paths --reload-tick
        --reload-ignore-worker-failure --no-reload-ignore-worker-failure --process-name --pid-file
    """,
}
"""Long flags of uvicorn 0.51, gunicorn 26 and granian 2.8, in the order of their help."""

UWSGI: Final[dict[str, str]] = {
    "http, http-socket": "--bind HOST:PORT",
    "socket": "--bind unix:PATH, and proxy_pass in nginx: the server speaks HTTP",
    "module, wsgi-file, callable": "the target: module:attribute or path/to/file.py",
    "chdir": "--chdir",
    "pythonpath": "--app-dir",
    "virtualenv, home": "run the citius of that environment",
    "processes, workers": "--workers",
    "threads": "--threads",
    "enable-threads, master, single-interpreter, need-app, lazy-apps": "always on",
    "gevent": "--loop gevent",
    "max-requests": "--max-requests",
    "max-requests-delta": "--max-requests-jitter",
    "max-worker-lifetime": "--worker-lifetime-s",
    "reload-on-rss": "--workers-max-rss (MiB)",
    "harakiri": "--worker-timeout-s, for an event loop that hangs",
    "worker-reload-mercy, reload-mercy": "--drain-s",
    "listen": "--backlog",
    "buffer-size": "--head-bytes-max",
    "limit-post": "--body-bytes-max",
    "http-keepalive, http-timeout": "--keep-alive-ms, --body-read-ms",
    "uid, gid": "--user, --group",
    "umask": "--umask",
    "pidfile": "--pidfile",
    "env": "--env",
    "logto": "--log-file",
    "disable-logging": "--no-access-log",
    "daemonize": "systemd or a container runtime; see deployment.md",
    "py-autoreload": "--reload",
    "touch-reload": "kill -HUP",
    "die-on-term": "always on",
    "vacuum": "always on",
}
"""What an ini file of uWSGI says, and what to say here."""


def accepted() -> dict[str, str]:
    """Every flag that is an option of ours, and the spelling it is documented under."""
    found = {
        "--config": "--config",
        "--print-config": "--print-config",
        "--check-config": "--check-config",
    }
    for option in OPTIONS.values():
        for flag in {*option.flags, *option.scale}:
            found[flag] = option.flags[0]
        if option.kind == "bool":
            found[f"--no-{option.flags[0][2:]}"] = option.flags[0]
    return found


def unclaimed() -> Iterator[tuple[list[str], FlagReply]]:
    """The spellings of others that are no options of ours, with what to say."""
    known = accepted()
    letters = {long: short for short, long in SHORT.items() if short not in known}
    for flag, answer in REPLIES.items():
        if flag not in known:
            yield ([flag, letters[flag]] if flag in letters else [flag]), answer


def reply(flag: str, value: str | None) -> str:
    """Say what ``flag`` is here; returns what to tell and go on.

    Raises:
        ConfigError: It cannot be passed over.
    """
    answer = REPLIES[flag]
    says, goes_on = answer.says, answer.goes_on
    if flag == "--worker-class" and value is not None:
        kind = next((word for word in WORKER_CLASSES if word in value.lower()), None)
        if kind is None:
            raise ConfigError(f"--worker-class {value}: {says}; leave it out")
        says = WORKER_CLASSES[kind] or says
        goes_on = kind not in ("eventlet", "tornado", "gevent")
    text = f"{flag}{f' {value}' if value else ''}: {says}"
    if not goes_on:
        raise ConfigError(text)
    return text


def rows(server: str) -> Iterator[tuple[str, str]]:
    """Flag of theirs, and what it is here."""
    known = accepted()
    for flag in FLAGS[server].split():
        if flag in known:
            own = known[flag]
            option = next((o for o in OPTIONS.values() if flag in (*o.flags, *o.scale)), None)
            factor = option.scale.get(flag, 1) if option is not None else 1
            unit = f" ({option.unit})" if option is not None and factor != 1 else ""
            yield flag, "the same" if own == flag else f"the same, or `{own}`{unit}"
        else:
            yield flag, REPLIES[flag].says
