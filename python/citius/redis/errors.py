"""What can go wrong with Redis.

RedisError
├── ServerError          the server has refused a command; ``code`` is the first word of its error
│   ├── LoginRefused     the login: password, user, database, or too many clients
│   ├── NoPermission     NOPERM: the user may not do this
│   ├── WrongType        WRONGTYPE: the key holds another type
│   ├── ReadOnly         READONLY: a replica was asked to write
│   ├── OutOfMemory      OOM: the server has reached ``maxmemory``
│   ├── CrossSlot        CROSSSLOT: the keys are on several nodes of a cluster
│   ├── GroupExists      BUSYGROUP: the stream has a consumer group of this name
│   ├── NoGroup          NOGROUP: it has none
│   └── NotReady         it cannot serve now (LOADING, BUSY, CLUSTERDOWN, …): a response with status 503
├── WatchFailed          a watched key has changed: the transaction was not done
├── ConnectionLost       there is no connection (a ConnectionError)
│   ├── TlsFailed        it cannot be secured as it was asked for
│   └── CommandLost      it broke before the reply came: the command may have been done
├── BlockEnded           the block that made the call has ended, or did not send it (a RuntimeError)
├── ProtocolError        the peer does not speak RESP3, or a reply exceeds a limit
├── ClientClosed         the client is not open
└── Overloaded           too many commands wait: a response with status 503
    └── TimedOut         no reply came in time (a TimeoutError): the command may have been done
"""

from __future__ import annotations

from citius.errors import CitiusError, ServiceUnavailable


class RedisError(CitiusError):
    """Root of the tree."""


class ServerError(RedisError):
    """The server has refused a command.

    Args:
        text: The error as it came.
    """

    code: str
    """The first word of the error, such as ``ERR`` or ``WRONGTYPE``."""
    message: str
    """What follows it."""

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self.code, _, self.message = text.partition(" ")


class LoginRefused(ServerError):
    """The server has refused the login."""


class NoPermission(ServerError):
    """NOPERM: the access control list does not allow it."""


class WrongType(ServerError):
    """WRONGTYPE: the key holds a value of another type."""


class ReadOnly(ServerError):
    """READONLY: the server is a replica, and the command writes."""


class OutOfMemory(ServerError):
    """OOM: the server has reached ``maxmemory``, and the command may need more."""


class CrossSlot(ServerError):
    """CROSSSLOT: the keys of one command are on several nodes; give them one ``{tag}``."""


class GroupExists(ServerError):
    """BUSYGROUP: the stream has a consumer group of this name."""


class NoGroup(ServerError):
    """NOGROUP: the stream, or its consumer group, does not exist."""


class NotReady(ServerError, ServiceUnavailable):
    """The server cannot serve now: it loads its data, runs a script, or waits for its master.

    In a cluster also: no node has served the command until its time was up, because its slot is being moved
    or has no node. It was not done. As a response: 503.
    """


class WatchFailed(RedisError):
    """A watched key has changed since ``watch``: nothing of the transaction was done. Try it again."""


class ConnectionLost(RedisError, ConnectionError):
    """There is no connection to the server, and the command was not sent."""


class TlsFailed(ConnectionLost):
    """The connection cannot be secured as it was asked for."""


class CommandLost(ConnectionLost):
    """The connection broke before the reply came: the command may have been done or not."""


class BlockEnded(RedisError, RuntimeError):
    """The block that made the call has ended: its connection is another's, or nothing is sent."""


class ProtocolError(RedisError):
    """The peer does not speak RESP3, or a reply exceeds a limit."""


class ClientClosed(RedisError):
    """The client is not open: ``async with redis``, or ``App(lifespan=redis.lifespan)``."""


class Overloaded(RedisError, ServiceUnavailable):
    """Too many commands wait for Redis. As a response: 503."""


class TimedOut(Overloaded, TimeoutError):
    """No reply came in time: the command may have been done or not. As a response: 503."""


_NOT_READY = ("LOADING", "BUSY", "MASTERDOWN", "CLUSTERDOWN", "TRYAGAIN", "NOREPLICAS", "MISCONF")
_BY_CODE: dict[str, type[ServerError]] = {
    "NOAUTH": LoginRefused,
    "WRONGPASS": LoginRefused,
    "NOPERM": NoPermission,
    "WRONGTYPE": WrongType,
    "READONLY": ReadOnly,
    "OOM": OutOfMemory,
    "CROSSSLOT": CrossSlot,
    "BUSYGROUP": GroupExists,
    "NOGROUP": NoGroup,
    **dict.fromkeys(_NOT_READY, NotReady),
}


# Called by the extension module, by these names.


def server_error(text: str) -> ServerError:
    """The exception for an error of the server's."""
    return _BY_CODE.get(text.partition(" ")[0], ServerError)(text)


def not_served(text: str) -> NotReady:
    """The exception for a command that no node of a cluster has served in time."""
    return NotReady(f"{text}; the command was sent again until its time was up, and was not done")


def login_refused(text: str) -> ServerError:
    """The exception for a login that is refused."""
    if text.startswith("ERR unknown command"):
        text += "; RESP3 needs Redis 6.0 or later, or Valkey"
    elif text.startswith("NOAUTH"):
        text = "NOAUTH the server asks for a password: redis://:password@host"
    code = text.partition(" ")[0]
    return NotReady(text) if code in _NOT_READY else LoginRefused(text)


def protocol_error(message: str) -> ProtocolError:
    """The exception for a fault of the protocol."""
    return ProtocolError(message)


def connection_lost(why: str) -> ConnectionLost:
    """The exception for a connection that has ended."""
    return ConnectionLost(f"the connection to Redis is lost: {why}")


def tls_failed(why: str) -> TlsFailed:
    """The exception for a handshake that fails."""
    return TlsFailed(f"TLS with Redis fails: {why}")


def lost_during_command(cause: BaseException) -> CommandLost:
    """The exception for a command whose connection has ended."""
    error = CommandLost(f"{cause}; the command may have been done or not")
    error.__cause__ = cause
    return error


def too_much_waits(count: int) -> Overloaded:
    """The exception for one command too many."""
    return Overloaded(f"{count} commands wait for Redis already")


def client_closed(_nothing: object) -> ClientClosed:
    """The exception for a command after the end."""
    return ClientClosed("the client is closed")


def block_ended(_nothing: object) -> BlockEnded:
    """The exception for a call that is awaited behind its block."""
    return BlockEnded(
        "the block of the connection that made this call has ended: await it within the block"
    )


def not_sent(cause: BaseException) -> BlockEnded:
    """The exception for a call of a transaction whose block has raised."""
    error = BlockEnded(
        f"the transaction of this call was not sent, because its block raised {type(cause).__name__}"
    )
    error.__cause__ = cause
    return error


def transaction_left(_nothing: object) -> CommandLost:
    """The exception for a call of a transaction whose end was not waited for."""
    return CommandLost(
        "the code that sent the transaction of this call did not wait for its end: "
        "it may have been done or not"
    )


def crosses_slots(_nothing: object) -> CrossSlot:
    """The exception for a transaction, or a block that watches, with keys of several slots."""
    return CrossSlot(
        "CROSSSLOT the keys of a transaction, and those that it watches, must be in one slot of the cluster: "
        "give them one {tag}; nothing of it was done"
    )


def watched_key_moved(_nothing: object) -> WatchFailed:
    """The exception for a watched key whose slot another node has by now."""
    return WatchFailed(
        "a watched key has moved to another node of the cluster; nothing of the transaction was done"
    )


def watch_failed(_nothing: object) -> WatchFailed:
    """The exception for a transaction whose keys have changed."""
    return WatchFailed("a watched key has changed; nothing of the transaction was done")
