"""From a configuration to bound sockets: which addresses, and where their sockets come from.

Sockets come from three places: made here (sockets.py), inherited by number (``--fd``, systemd, see
systemd.py), or passed by the previous process (handover.py). Messages say why an address cannot be bound, and
what to do. Tests: ``tests/unit/test_listeners.py``, ``tests/cli/``.
"""

from __future__ import annotations

import os
import socket
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING

from citius.errors import ConfigError
from citius.observability import logging
from citius.process.paths import SocketPath
from citius.process.privileges import are_split
from citius.serving.handover import handed_over
from citius.serving.listeners import Listener, Listeners, Speaks, speaks_of
from citius.serving.sockets import (
    cannot_listen,
    inherited_socket,
    is_unix,
    tcp_socket,
    tcp_sockets,
    unix_socket,
)
from citius.settings.addresses import HTTP, PROXY, REDIRECT, RPC, TLS, bare, marks_of, split
from citius.settings.texts import http_versions

if TYPE_CHECKING:
    from collections.abc import Iterable

    from citius.settings.config import Config


def bind(config: Config, slots: int, *, by_port: bool = False) -> Listeners:
    """Bind the sockets of all addresses, which do not listen yet; with ``by_port`` one for each slot.

    Raises:
    ConfigError: An address cannot be bound; the message says why and what to do.
    """
    handed = handed_over()
    listeners = Listeners(ready_fd=handed.pop("ready", -1))
    if listeners.ready_fd >= 0:
        os.set_inheritable(listeners.ready_fd, False)
    listeners.life_fd = handed.pop("life", -1)
    if listeners.life_fd >= 0:
        os.set_inheritable(listeners.life_fd, False)
    inherited: dict[str, list[int]] = handed.get("listeners", {})
    if replaced := replaced_by_passed(config):
        logging.warning(
            f"{', '.join(replaced)}: not listened on; the sockets that systemd has passed are used instead"
        )
    try:
        for text in dict.fromkeys(addresses(config, inherited)):
            fds = inherited.pop(text, None)
            listeners.all.append(
                _adopt(text, fds, config) if fds else _bind(text, slots if by_port else 0, config)
            )
        for listener in listeners.all:
            listener.speak(_said(listener.text, config), config)
        if config.has_redirects:
            _redirect(listeners, config)
        if has_http3(config):
            from citius.serving.datagrams import bind_datagrams

            listeners.datagrams = bind_datagrams(
                listeners, config, slots, handed.get("datagrams", {}), by_port=by_port
            )
        elif "datagrams" in handed:
            from citius.serving.datagrams import close_handed

            close_handed(handed["datagrams"])
        # Clients in the queue of an address that is no longer served are refused, not left waiting.
        for fd in (fd for fds in inherited.values() for fd in fds):
            os.close(fd)
    except ConfigError:
        listeners.close()
        raise
    return listeners


def bind_beside(text: str, config: Config, *, takes_over: bool) -> Listener:
    """Bind an address that is not the application's, such as that of the management port.

    Args:
        text: The address.
        config: Has the owner of Unix sockets.
        takes_over: The previous server still listens at the address.

    Raises:
        ConfigError: The address cannot be bound.
    """
    if not takes_over or text.startswith("fd://"):
        return _bind(text, 1, config)
    try:
        if text.startswith("unix:"):
            with suppress(FileNotFoundError):
                path = text.removeprefix("unix:")
                SocketPath.of(path, guarded=are_split(config)).remove()
            return _bind(text, 1, config)
        host, port = split(text)
        family, *_, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        return Listener(text, [tcp_socket(family, address, reuse_port=True)])
    except OSError as error:
        raise ConfigError(cannot_listen(text, error)) from None


def addresses(config: Config, inherited: Iterable[str] = ()) -> list[str]:
    """The addresses to listen on, in the form of ``--bind``.

    Sockets that systemd has passed are used, whatever address the options name, unless these name passed
    sockets themselves (``fd://``). Marks of an address (``tls://``, ``?http=``) hold for the socket that is
    bound to it.
    """
    beside = [RPC + text for text in config.rpc]
    host = f"[{config.host}]" if ":" in config.host else config.host
    for text in config.redirect_http:
        beside.append(REDIRECT + (f"{host}:{text}" if text.isdigit() else text))
    if config.fd is not None:
        return [f"fd://{config.fd}", *beside]
    named = [f"unix:{config.uds}"] if config.uds is not None else [*config.bind]
    if any("fd://" in text for text in named):
        return [*named, *beside]
    passed = _passed(config) or {text: "" for text in inherited if bare(text).startswith("fd://")}
    if not passed:
        return [*(named or [f"{host}:{config.port}"]), *beside]
    marks = {_normal(text): text for text in named}
    used = [
        marks[address].replace(bare(marks[address]), text, 1) if address in marks else text
        for text, address in passed.items()
    ]
    return [*used, *beside]


def has_http3(config: Config) -> bool:
    """Whether HTTP/3 is served at any address."""
    texts = [config.http, *(text.partition(HTTP)[2] or "auto" for text in config.bind)]
    return any("3" in http_versions(text) for text in texts)


def replaced_by_passed(config: Config) -> list[str]:
    """The addresses of the options that are not listened on, because systemd has passed other sockets."""
    passed = {address for address in _passed(config).values() if address}
    if config.fd is not None or not passed:
        return []
    named = [f"unix:{config.uds}"] if config.uds is not None else [*config.bind]
    if any("fd://" in text for text in named):
        return []
    return [text for text in named if _normal(text) not in passed]


def _passed(config: Config) -> dict[str, str]:
    """The sockets of systemd that no other option names, as ``fd://`` texts, with their addresses."""
    from citius.process.systemd import named_sockets

    others = {bare(text) for text in config.rpc} | {config.management or ""}
    found: dict[str, str] = {}
    for fd, name in named_sockets():
        if not others & {f"fd://{fd}", f"fd://{name}"}:
            found[f"fd://{fd}"] = _address_of(fd)
    return found


def _normal(text: str) -> str:
    """An address as `_address_of` writes it."""
    address = bare(text)
    if address.startswith("unix:"):
        return address.replace("//", "/")
    host, port = split(address)
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def _address_of(fd: int) -> str:
    """The address of a socket in the form of ``--bind``; empty if it has none."""
    try:
        with socket.socket(fileno=os.dup(fd)) as made:
            name = made.getsockname()
    except OSError:
        return ""
    if isinstance(name, (str, bytes)):
        return f"unix:{os.fsdecode(name)}" if name else ""
    return f"[{name[0]}]:{name[1]}" if ":" in name[0] else f"{name[0]}:{name[1]}"


def _said(text: str, config: Config) -> Speaks:
    """The protocols that the text of an address sets; if one has tls://, the others are clear text."""
    marks = marks_of(text)
    is_rpc, is_tls = marks.startswith(RPC), marks.endswith(TLS)
    http = text.partition(HTTP)[2] or None
    if REDIRECT in marks:
        return Speaks(is_tls=False, is_proxied=PROXY in marks or config.proxy_protocol)
    says_tls = is_rpc or any(marks_of(other).endswith(TLS) for other in config.bind)
    is_proxied = PROXY in marks or (config.proxy_protocol and not is_rpc)
    return Speaks(is_rpc, is_tls if says_tls else None, http, is_proxied)


def _redirect(listeners: Listeners, config: Config) -> None:
    """Tell the addresses that redirect to which port.

    Raises:
        ConfigError: No address with a port has TLS.
    """
    port = config.redirect_port
    for listener in listeners.all:
        first = listener.sockets[0]
        if port is None and listener.scheme == "https" and not is_unix(first):
            port = None if speaks_of(first).is_rpc else first.getsockname()[1]
    for listener in listeners.all:
        if REDIRECT in marks_of(listener.text):
            if port is None:
                raise ConfigError(
                    f"{listener.text} redirects to HTTPS, which no address with a port serves; name the port "
                    "that clients reach with redirect_port"
                )
            listener.speak(replace(speaks_of(listener.sockets[0]), redirect_port=port), config)


def _adopt(text: str, fds: list[int], config: Config) -> Listener:
    sockets: list[socket.socket] = []
    for fd in fds:
        try:
            os.set_inheritable(fd, False)
            sockets.append(socket.socket(fileno=fd))
        except OSError as error:
            raise ConfigError(cannot_listen(f"fd://{fd}", error)) from None
    # The previous process is the owner until this one is ready (`take_over`).
    address = bare(text)
    path = None
    if address.startswith("unix:"):
        with suppress(OSError):
            path = SocketPath.of(address.removeprefix("unix:"), guarded=are_split(config))
    return Listener(text, sockets, is_ours=False, path=path)


def _bind(text: str, slots: int, config: Config) -> Listener:
    if (address := bare(text)) != text:
        made = _bind(address, slots, config)
        made.text = text
        return made
    try:
        if text.startswith("fd://"):
            return Listener(text, [inherited_socket(text.removeprefix("fd://"))], is_ours=False)
        if text.startswith("unix:"):
            made, path = unix_socket(text.removeprefix("unix:").replace("//", "/"), config)
            return Listener(text, [made], path=path)
        return Listener(text, tcp_sockets(*split(text), slots, beside_udp=has_http3(config)))
    except (OSError, UnicodeError) as error:
        raise ConfigError(cannot_listen(text, error)) from None
