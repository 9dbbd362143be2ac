"""From a configuration to a running worker: application, gateway, reactor, host.

``serve`` is the whole of it. With one worker everything happens in this process; with more,
supervisor.py forks them and each runs ``work``. Start-up order: bind (a taken port is known before the
application does anything), import, hooks, listen, ready. Shutdown order: stop accepting, drain within the
deadline, cut what is left, hooks.

Exit codes: 0 after a stop, 3 when the application could not be imported or started or the address was
not to be had.
"""

from __future__ import annotations

import errno
import os
import socket
import stat
import sys
from time import monotonic
from typing import TYPE_CHECKING, Any

from citius import logging
from citius._core import Reactor, __version__
from citius.app import App
from citius.config import Config
from citius.errors import CitiusError, ConfigError

if TYPE_CHECKING:
    from collections.abc import Callable

    from citius.interfaces import Application

EXIT_STARTUP = 3

# How long after the last thread has finished the stop may go on; there is nothing to be woken by.
_POOL_POLL_S = 0.01


def serve(app: App | str, config: Config | None = None) -> int:
    """Serve ``app`` (or what a target like ``module:app`` names) until told to stop.

    Returns:
        The exit code of the process.
    """
    config = config or Config()
    logging.configure(config.log_level)
    if config.reload:
        return fail("reload starts new processes from a command line; use `citius serve --reload`")
    try:
        slots = bind(config)
    except ConfigError as error:
        return fail(str(error))
    try:
        if config.workers > 1:
            from citius.supervisor import Supervisor

            return Supervisor(app, config, slots).run()
        return work(app, config, slots[0], _announce(config, slots[0]))
    finally:
        for listener in slots:
            listener.close()
        if config.uds is not None and config.fd is None:
            _unlink(config.uds)


def work(
    target: App | str, config: Config, listener: socket.socket, ready: Callable[[], object]
) -> int:
    """The life of one worker; returns its exit code."""
    try:
        app = _import(target, config)
        service = Service(app, config, listener, ready)
    except ConfigError as error:
        return fail(str(error))
    except Exception as error:
        logging.log_exception(f"importing {target} failed", error)
        return EXIT_STARTUP
    try:
        if config.loop == "none":
            from citius.hosts import standalone

            standalone.run(service)
        else:
            from citius.hosts import asyncio

            asyncio.run(service, asyncio.new_loop(config.loop))
    except CitiusError as error:
        return fail(str(error))
    except Exception as error:
        if service.is_open:
            raise
        logging.log_exception("the application did not start", error)
        return EXIT_STARTUP
    return 0


class Service:
    """One worker's application, gateway and reactor, as a host sees them."""

    def __init__(
        self,
        app: Application,
        config: Config,
        listener: socket.socket,
        ready: Callable[[], object],
    ) -> None:
        self.config = config
        self._app = app
        self._listener = listener
        self._ready = ready
        self._pool: Any = None
        self._gateway = app.freeze(self._make_pool)
        self._reactor: Reactor | None = None
        # When whatever is still at work is left behind; `None` while nobody wants to stop.
        self._left_at: float | None = None
        if config.loop == "none" and (reason := app.needs_loop):
            raise ConfigError(f"--loop none has no event loop, and {reason}; use --loop auto")

    @property
    def is_open(self) -> bool:
        """Whether the start is over and clients are served."""
        return self._reactor is not None

    async def start(self) -> None:
        """Call the start-up hooks."""
        await self._app.start()

    def open(self, loop: Any) -> Reactor:
        """Listen; from now on the host has to turn the reactor."""
        config = self.config
        reactor = Reactor(
            self._gateway,
            limits=config.limits,
            server_header="citius" if config.server_header else None,
            date_header=config.date_header,
            loop=loop,
            access_log=logging.access_writer() if config.access_log else None,
            log=logging.log,
        )
        _listen(self._listener, config)
        reactor.listen(self._listener.fileno())
        self._reactor = reactor
        self._ready()
        return reactor

    def drain(self, on_drained: Callable[[], object]) -> None:
        """Let open requests end; call ``on_drained`` when the last connection is gone."""
        self._left_at = monotonic() + self.config.drain_s
        if self._reactor is not None:
            # The reactor has closed its own descriptor then; without ours the port is free.
            self._reactor.drain(on_drained)
            self._listener.close()

    def cut(self, then: Callable[[], object]) -> None:
        """Close whatever is open now, then call ``then``. Nothing is waited for from here on."""
        self._left_at = monotonic()
        if self._reactor is not None:
            if self._reactor.requests_open:
                logging.warning(f"{self._reactor.requests_open} open requests were cut off")
            self._reactor.close()
        then()

    async def stop(self) -> None:
        """Call the shutdown hooks, after the threads have finished."""
        if self._pool is not None and not await self._close_pool():
            logging.warning("a blocking handler did not end within the drain time; left behind")
        await self._app.stop()

    async def _close_pool(self) -> bool:
        if self._left_at is None:
            self._left_at = monotonic() + self.config.drain_s
        if self.config.loop == "none":
            return self._pool.close(max(0.0, self._left_at - monotonic()))
        from asyncio import sleep

        # Not in one wait: the loop has to hear the signal that means "now".
        while not (is_closed := self._pool.close(0.0)) and monotonic() < self._left_at:
            await sleep(_POOL_POLL_S)
        return is_closed

    def _make_pool(self) -> Any:
        from citius.pool import BlockingPool

        self._pool = BlockingPool(self.config.blocking_threads, self.config.blocking_queue_max)
        return self._pool


def bind(config: Config) -> list[socket.socket]:
    """One bound socket per worker, not listening yet.

    Raises:
        ConfigError: The address cannot be had; the message says why and what to do.
    """
    try:
        if config.fd is not None:
            return _share(socket.socket(fileno=os.dup(config.fd)), config.workers)
        if config.uds is not None:
            return _share(_bind_uds(config.uds), config.workers)
        return _bind_tcp(config)
    except (OSError, UnicodeError) as error:
        raise ConfigError(_cannot_listen(config, error)) from None


def address_of(listener: socket.socket) -> str:
    """The address as a URL, for people."""
    name = listener.getsockname()
    if listener.family == getattr(socket, "AF_UNIX", None):
        return f"unix:{os.fsdecode(name)}"
    host = f"[{name[0]}]" if ":" in name[0] else name[0]
    return f"http://{host}:{name[1]}"


def fail(message: str) -> int:
    """Say why the server does not start."""
    print(f"citius: {message}", file=sys.stderr, flush=True)
    return EXIT_STARTUP


def _import(target: App | str, config: Config) -> App:
    if isinstance(target, App):
        return target
    from citius.imports import import_app

    return import_app(target, app_dir=config.app_dir, factory=config.factory)


def _announce(config: Config, listener: socket.socket) -> Callable[[], None]:
    def ready() -> None:
        logging.info(f"Citius {__version__} serves on {address_of(listener)} (CTRL+C stops it)")

    return ready


def _bind_tcp(config: Config) -> list[socket.socket]:
    # As bytes, because the resolver would import the whole of IDNA for a str.
    host = config.host.encode("ascii" if config.host.isascii() else "idna")
    family, *_, address = socket.getaddrinfo(
        host or None, config.port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
    )[0]
    # The first socket goes without SO_REUSEPORT: with it, a second server of the same user would
    # bind the port as well and take half of the connections.
    first = _tcp_socket(family, address, reuse_port=False)
    if config.workers == 1:
        return [first]
    address = (address[0], first.getsockname()[1], *address[2:])
    first.close()
    return [_tcp_socket(family, address, reuse_port=True) for _ in range(config.workers)]


def _tcp_socket(family: int, address: Any, *, reuse_port: bool) -> socket.socket:
    listener = socket.socket(family, socket.SOCK_STREAM)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if reuse_port:
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        if family == socket.AF_INET6:
            listener.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        listener.bind(address)
    except OSError:
        listener.close()
        raise
    return listener


def _bind_uds(path: str) -> socket.socket:
    """A Unix socket at ``path``; one that nobody listens on any more is replaced."""
    try:
        is_socket = stat.S_ISSOCK(os.stat(path).st_mode)
    except FileNotFoundError:
        is_socket = False
    if is_socket:
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
            try:
                probe.connect(path)
            except ConnectionRefusedError:
                os.unlink(path)
            else:
                raise OSError(errno.EADDRINUSE, os.strerror(errno.EADDRINUSE))
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    listener.bind(path)
    return listener


def _share(listener: socket.socket, workers: int) -> list[socket.socket]:
    """All workers accept from one socket where there cannot be several."""
    return [listener, *(listener.dup() for _ in range(workers - 1))]


def _listen(listener: socket.socket, config: Config) -> None:
    if config.fd is not None and listener.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN):
        return
    try:
        listener.listen(config.backlog)
    except OSError as error:
        raise ConfigError(_cannot_listen(config, error)) from None


def _cannot_listen(config: Config, error: Exception) -> str:
    if config.fd is not None:
        return (
            f"cannot listen on descriptor {config.fd}: {_reason(error)}; "
            "--fd wants an inherited, bound socket"
        )
    if config.uds is not None:
        return f"cannot listen on {config.uds}: {_reason(error)}"
    text = f"cannot listen on {config.host}:{config.port}: {_reason(error)}"
    number = getattr(error, "errno", None)
    if number == errno.EADDRINUSE:
        text += (
            f"; stop what listens there (`ss -ltnp 'sport = :{config.port}'` shows it) or choose "
            "another port with --port"
        )
    elif number == errno.EACCES:
        text += "; ports below 1024 need the capability CAP_NET_BIND_SERVICE"
    elif number == errno.EADDRNOTAVAIL or isinstance(error, socket.gaierror):
        text += "; --host wants an address of this machine"
    return text


def _reason(error: Exception) -> str:
    return (getattr(error, "strerror", None) or str(error)).lower()


def _unlink(path: str) -> None:
    try:
        os.unlink(path)
    except OSError:
        return
