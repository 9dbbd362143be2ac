"""What can go wrong with a request to another service.

RequestError                 ``origin``, ``method``, ``url`` and ``after_s`` say of what, and after how long
├── ConnectError             there is no connection, and nothing was sent (a ConnectionError)
│   ├── TlsError             it cannot be secured, or the peer is not the one it should be
│   ├── ProxyError           the proxy refuses or fails
│   └── AddressRefused       the name leads to an address that ``allow=`` does not allow
├── TimedOut                 ``phase`` says what has taken too long (a TimeoutError)
│   ├── ConnectTimeout       connecting, with name resolution and TLS: nothing was sent
│   ├── PoolTimeout          waiting for a connection: nothing was sent; in a response 503
│   ├── WriteTimeout         the peer did not read
│   ├── ReadTimeout          nothing came from the peer
│   └── TotalTimeout         the whole exchange
├── ReadError, WriteError    the connection broke: the request may have been carried out (a ConnectionError)
├── RemoteProtocolError      the peer sent what is no HTTP, or what has two readings
├── TooLarge                 a response exceeds a limit
├── DecodingError            its content is not in the coding, charset or format that it says
├── TooManyRedirects
├── CircuitOpen              the circuit breaker of the origin is open: nothing was sent; in a response 503
├── InvalidURL               (a ValueError)
├── LocalProtocolError       a method, target or field that cannot be sent (a ValueError)
├── ClientClosed
└── StatusError              ``raise_for_status``: the response has a status from 400 on
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from citius.errors import CitiusError, ServiceUnavailable

if TYPE_CHECKING:
    from citius.http.response import Response


class RequestError(CitiusError):
    """Root of the tree."""

    origin: str | None = None
    """Scheme, host and port that were called."""
    method: str | None = None
    url: str | None = None
    after_s: float | None = None
    """Seconds from the beginning of the attempt to the error."""
    is_unsent: bool = False
    """Nothing of the request has left: any method may be tried again."""


class ConnectError(RequestError, ConnectionError):
    """There is no connection to the origin, and nothing was sent."""

    is_unsent = True


class TlsError(ConnectError):
    """The connection cannot be secured: the handshake, the certificate, or its name."""


class ProxyError(ConnectError):
    """The proxy cannot be reached, or refuses to connect."""


class AddressRefused(ConnectError):
    """The name leads to an address that ``allow=`` does not allow."""


class TimedOut(RequestError, TimeoutError):
    """Something has taken too long."""

    phase: ClassVar[str] = "total"
    """Which of the limits of ``Timeout`` has passed."""


class ConnectTimeout(TimedOut):
    """No connection in time: name resolution, connecting, TLS. Nothing was sent."""

    phase: ClassVar[str] = "connect"
    is_unsent = True


class PoolTimeout(TimedOut, ServiceUnavailable):
    """No connection, or no place among the requests of the origin, came free in time. As a response: 503."""

    phase: ClassVar[str] = "pool"
    is_unsent = True

    def __init__(self, message: str = "") -> None:
        super().__init__(message)
        self.args = (message,)
        # A response shows its detail to the client of the service, whom names of other services do not
        # concern.
        self.detail = "too many requests to another service are under way"

    __str__ = Exception.__str__


class WriteTimeout(TimedOut):
    """The peer did not take the request in time."""

    phase: ClassVar[str] = "write"


class ReadTimeout(TimedOut):
    """Nothing came from the peer in time."""

    phase: ClassVar[str] = "read"


class TotalTimeout(TimedOut):
    """The whole exchange, its redirects and retries included, has taken too long."""

    in_queue: bool = False
    """It was over before the origin was asked: other requests had all connections."""


class ReadError(RequestError, ConnectionError):
    """The connection broke before the response was complete: the request may have been carried out."""

    is_end: bool = False
    """The peer has ended it in order; otherwise it was reset, or given up."""


class WriteError(RequestError, ConnectionError):
    """The connection broke while the request was being sent."""


class RemoteProtocolError(RequestError):
    """The peer has sent what is no HTTP, or what has two readings."""


class TooLarge(RequestError):
    """A response exceeds a limit: of its head, of its content, of its decompressed content."""


class DecodingError(RequestError, ValueError):
    """The content is not in the coding, charset or format that the response says."""


class TooManyRedirects(RequestError):
    """More redirects than ``redirects_max``."""


class CircuitOpen(RequestError, ServiceUnavailable):
    """The circuit breaker of the origin is open, and nothing was sent. As a response: 503."""

    is_unsent = True

    def __init__(self, message: str = "") -> None:
        super().__init__(message)
        self.args = (message,)
        self.detail = "another service is not available"

    __str__ = Exception.__str__


class InvalidURL(RequestError, ValueError):
    """The URL cannot be called; the message says why."""

    is_unsent = True


class LocalProtocolError(RequestError, ValueError):
    """The request has a method, target or field that cannot be sent: it would be read as something else."""

    is_unsent = True


class ClientClosed(RequestError):
    """The client is closed."""

    is_unsent = True


# The name by which the extension asks for it.
PoolClosed = ClientClosed


class StatusError(RequestError):
    """The response has a status from 400 on.

    Args:
        message: What came, from where.
        response: The response.
    """

    def __init__(self, message: str, response: Response) -> None:
        super().__init__(message)
        self.response = response
