"""The way to a session: addresses, sockets, TLS, which of several servers; and cancel requests."""

from __future__ import annotations

import asyncio
import contextlib
import random
import socket
from dataclasses import dataclass
from operator import itemgetter
from typing import TYPE_CHECKING, Any, TypeAlias

from citius._core import ClientTls
from citius.databases import silent
from citius.errors import ConfigError
from citius.observability import logging
from citius.pg.errors import (
    PostgresError,
    ProtocolError,
    ServerError,
    SessionLost,
    TlsFailed,
    tls_failed,
)
from citius.pg.session import Session

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence

    from citius._core import PgPool, PgTypes
    from citius.pg.dsn import Target
    from citius.pg.types import Codec

_TLS_REQUEST = bytes.fromhex("00000008 04d2162f")
# "No pg_hba.conf entry", which may be there for a connection that is secured otherwise.
_NO_ENTRY = "28000"
# The server starts up, shuts down, or has no connection left: another one may have.
_NOT_NOW = {"57P01", "57P03", "53300"}
_BACKOFF_FIRST_S, _BACKOFF_MAX_S = 0.05, 0.5


Address: TypeAlias = "tuple[int, int, int, Any]"
"""Family, kind, protocol of a socket, and where it is connected to."""


@dataclass(frozen=True, slots=True)
class Link:
    """A connected socket, and how it is secured."""

    target: Target
    address: Address
    """Where the socket has been connected to: cancel requests go there too."""
    socket: socket.socket
    tls: ClientTls | None


class _NoResponse(SessionLost):
    """There is no response in time."""


async def keep_trying(connect: Callable[[], Awaitable[None]], purpose: str) -> None:
    """Connect until it succeeds, after pauses that grow; the first failure is logged."""
    pause_s, is_told = _BACKOFF_FIRST_S, False
    while True:
        try:
            return await connect()
        except (
            Exception
        ) as error:  # of any kind: without a new attempt there would be no session for ever
            if not is_told:
                logging.warning(f"PostgreSQL: {error}; {purpose}")
                is_told = True
        await asyncio.sleep(pause_s)
        pause_s = min(pause_s * 2, _BACKOFF_MAX_S)


async def open_session(
    core: PgPool,
    types: PgTypes,
    targets: Sequence[Target],
    on_closed: Callable[[Session], None],
    codecs: Sequence[Codec[Any]] = (),
) -> Session:
    """A session with the first server that gives one.

    Raises:
        PostgresError: None does; the error is that of the last.
    """
    if len(targets) > 1 and targets[0].is_any_order:
        targets = random.sample(targets, len(targets))
    wanted = targets[0].session_attributes
    failures: list[PostgresError] = []
    for attributes in ("standby", "any") if wanted == "prefer-standby" else (wanted,):
        failures.clear()
        for target in silent.in_order(targets, lambda target: target.address):
            try:
                addresses = await _addresses(target)
            except PostgresError as error:
                failures.append(error)
                _learn(target.address, error)
                continue
            for address in silent.in_order(addresses, itemgetter(3)):
                try:
                    session = await _open_with(core, types, target, address, attributes, on_closed)
                except PostgresError as error:
                    if isinstance(error, ServerError) and error.sqlstate not in _NOT_NOW:
                        raise
                    failures.append(error)
                    _learn(address[3], error)
                    _learn(target.address, error)
                else:
                    silent.forget(address[3])
                    silent.forget(target.address)
                    session.codecs = codecs
                    return session
    if len(failures) == 1:
        raise failures[0]
    raise SessionLost("; ".join(map(str, failures)))


def _learn(where: Any, failure: PostgresError) -> None:
    """Try an address last for a while that is silent, and not one that says something."""
    if isinstance(failure, _NoResponse):
        silent.note(where)
    else:
        silent.forget(where)


@contextlib.asynccontextmanager
async def first_use(session: Session, silence: SessionLost) -> AsyncGenerator[None]:
    """A block that makes a session ready, within its time to connect; it is closed if that fails.

    Raises:
        SessionLost: ``silence``: the time was over.
    """
    try:
        async with asyncio.timeout(session.target.connect_timeout_s):
            yield
    except TimeoutError:
        session.close()
        raise silence from None
    except BaseException:
        session.close()
        raise


def refuse_other_texts(session: Session) -> None:
    """Refuse a server where a backslash that hides a quote would hide what a statement does to its session.

    Raises:
        ConfigError: It is one.
    """
    if session.parameters.get("standard_conforming_strings") == "off":
        session.close()
        raise ConfigError(
            "the server reads backslashes in '…' as escapes, and a pool reads texts as standard SQL has "
            "them: use ALTER ROLE … SET standard_conforming_strings = on, or have "
            "options='-c standard_conforming_strings=on' in the DSN"
        )


async def _open_with(
    core: PgPool,
    types: PgTypes,
    target: Target,
    address: Address,
    attributes: str,
    on_closed: Callable[[Session], None],
) -> Session:
    session = await open_at(core, types, target, address, on_closed)
    silence = _NoResponse(f"{target}: no response within {target.connect_timeout_s:g} s")
    async with first_use(session, silence):
        if attributes == "any" or await _has(core, session, attributes):
            return session
    session.close()
    raise SessionLost(
        f"{target}: target_session_attrs={attributes}, and the server is something else"
    )


async def _has(core: PgPool, session: Session, attributes: str) -> bool:
    async def ask(parameter: str, sql: str) -> bool:
        # Servers from 14 on say it by themselves.
        if (said := session.parameters.get(parameter)) is not None:
            return said == "on"
        return await core.fetch_value(sql, session=session.core)

    is_standby = await ask("in_hot_standby", "SELECT pg_is_in_recovery()")
    if attributes in ("primary", "standby"):
        return is_standby == (attributes == "standby")
    is_read_only = is_standby or await ask(
        "default_transaction_read_only",
        "SELECT current_setting('default_transaction_read_only')::bool",
    )
    return is_read_only == (attributes == "read-only")


async def open_at(
    core: PgPool,
    types: PgTypes,
    target: Target,
    address: Address,
    on_closed: Callable[[Session], None],
) -> Session:
    """A session at one address.

    Raises:
        PostgresError: There is none.
    """
    tries = target.secured_tries
    for number, is_secured in enumerate(tries):
        is_last = number == len(tries) - 1
        try:
            return await _open_as(core, types, target, address, is_secured, on_closed)
        except TlsFailed:
            if is_last:
                raise
        except ServerError as error:
            if is_last or error.sqlstate != _NO_ENTRY:
                raise
    raise AssertionError("there is one try at least")


async def _open_as(
    core: PgPool,
    types: PgTypes,
    target: Target,
    address: Address,
    is_secured: bool,
    on_closed: Callable[[Session], None],
) -> Session:
    try:
        async with asyncio.timeout(target.connect_timeout_s):
            link = await connect(target, address, is_secured)
            try:
                session = Session(core, types, link, on_closed)
            except ValueError as error:
                link.socket.close()
                raise ConfigError(f"TLS with PostgreSQL: {error}") from None
            try:
                await session.open()
            except BaseException:
                session.close()
                raise
            return session
    except TimeoutError:
        raise _NoResponse(f"{target}: no response within {target.connect_timeout_s:g} s") from None
    except OSError as error:
        if isinstance(error, SessionLost):
            raise
        raise SessionLost(f"{target}: {error.strerror or error}") from error


async def connect(target: Target, address: Address, is_secured: bool) -> Link:
    """A connected socket that does not block, and the rules of its TLS if the server speaks it."""
    tls = tls_of(target) if is_secured else None
    made = await _connect(target, address)
    try:
        if tls is not None and not target.tls.is_direct and not await _is_tls_spoken(target, made):
            tls = None
        return Link(target, address, made, tls)
    except BaseException:
        made.close()
        raise


def tls_of(target: Target) -> ClientTls:
    """The rules of a target's TLS; files are read each time, because certificates are renewed.

    Raises:
        ConfigError: A file cannot be used.
    """
    rules = target.tls
    try:
        return ClientTls(
            rules.verification,
            authorities=list(rules.authorities),
            identity=rules.identity,
            password=rules.key_password,
            version_min=rules.version_min,
            protocols=["postgresql"],
        )
    except ValueError as error:
        raise ConfigError(f"TLS with PostgreSQL: {error}") from None


async def _is_tls_spoken(target: Target, made: socket.socket) -> bool:
    loop = asyncio.get_running_loop()
    await loop.sock_sendall(made, _TLS_REQUEST)
    # One byte: what came behind it in plain text would be taken for the server's.
    said = await loop.sock_recv(made, 1)
    if said == b"S":
        return True
    if said == b"N":
        if target.tls.mode == "prefer":
            return False
        raise SessionLost(f"{target}: sslmode={target.tls.mode}, and the server does not speak TLS")
    if said in (b"", b"E"):
        raise SessionLost(f"{target}: the server has closed the connection")
    raise ProtocolError(f"{target}: the server does not speak PostgreSQL's protocol")


async def _addresses(target: Target) -> list[Address]:
    """Where a target can be reached; each address has the time of ``connect_timeout`` for itself.

    Raises:
        SessionLost: Its name leads nowhere.
    """
    where = target.address
    if isinstance(where, str):
        return [(socket.AF_UNIX, socket.SOCK_STREAM, 0, where)]
    loop = asyncio.get_running_loop()
    try:
        async with asyncio.timeout(target.connect_timeout_s):
            found = await loop.getaddrinfo(*where, type=socket.SOCK_STREAM)
    except TimeoutError:
        raise _NoResponse(
            f"{target}: the name was not resolved within {target.connect_timeout_s:g} s"
        ) from None
    except OSError as error:
        raise SessionLost(f"{target}: {error.strerror or error}") from error
    addresses: list[Address] = [
        (family, kind, protocol, place) for family, kind, protocol, _, place in found
    ]
    if not addresses:
        raise SessionLost(f"{target}: the name has no address")
    if target.is_any_order:
        random.shuffle(addresses)
    return addresses


async def _connect(target: Target, address: Address) -> socket.socket:
    family, kind, protocol, where = address
    made = socket.socket(family, kind, protocol)
    try:
        made.setblocking(False)
        await asyncio.get_running_loop().sock_connect(made, where)
        if family != socket.AF_UNIX:
            made.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            made.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, target.is_kept_alive)
            for option, value in target.socket_options:
                made.setsockopt(socket.IPPROTO_TCP, option, value)
    except BaseException:
        made.close()
        raise
    return made


async def cancel(session: Session, request: bytes) -> None:
    """Send a cancel request, secured as the session is, and wait until the server has taken it."""
    loop, target = asyncio.get_running_loop(), session.target
    # When it fails, the statement ends by itself; the session is used again when it has.
    with contextlib.suppress(OSError, TimeoutError, PostgresError, ConfigError):
        async with asyncio.timeout(target.connect_timeout_s):
            link = await connect(target, session.address, session.is_secured)
            with link.socket as made:
                if link.tls is not None:
                    await _send_sealed(made, link.tls, target.host, request)
                elif session.is_secured:
                    return
                else:
                    await loop.sock_sendall(made, request)
                while await loop.sock_recv(made, 64):
                    pass


async def _send_sealed(made: socket.socket, tls: ClientTls, server_name: str, data: bytes) -> None:
    loop, stream = asyncio.get_running_loop(), tls.stream(server_name)
    await loop.sock_sendall(made, stream.transmit(b""))
    while stream.is_handshaking:
        received = await loop.sock_recv(made, 16 * 1024)
        if not received:
            raise SessionLost("the server has closed the connection")
        try:
            stream.receive(received)
        except ConnectionError as error:
            raise tls_failed(str(error)) from None
        await loop.sock_sendall(made, stream.transmit(b""))
    await loop.sock_sendall(made, stream.transmit(data))
