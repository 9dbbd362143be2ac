"""Every exception that Citius raises, as one tree.

    CitiusError
    ├── ConfigError                  an option, route or signature that cannot work (a ValueError)
    │   └── AppImportError           the application is not where the target says
    ├── StartupError                 the application said that it could not start
    ├── ClientDisconnected           the client is gone and will not read the response
    │   └── ConnectionClosed         a WebSocket or a WebTransport session is over
    ├── StreamReset                  the client has reset a stream of a WebTransport session (an OSError)
    ├── ChannelClosed                a send on a closed channel, or a second close (a ValueError)
    ├── ChannelMisuse                an operation that would stop a loop or a hub
    ├── Deadlock                     all goroutines wait for channels
    ├── GoPanic                      compiled code has panicked
    ├── Cancelled                    a wait of compiled code was ended
    │   └── DeadlineExceeded         by the deadline of its context (a TimeoutError)
    ├── RpcError                     a call that failed: raise it in a procedure; what a client's call raises
    ├── RpcTimeout                   no response to a call came in time (a TimeoutError)
    ├── ConnectionLost               a call whose connection broke (a ConnectionError)
    └── HTTPError                    a response: raise it in a handler
        ├── BadRequest               400
        ├── Unauthorized             401
        ├── Forbidden                403
        ├── NotFound                 404
        ├── MethodNotAllowed         405
        ├── NotAcceptable            406
        ├── Conflict                 409
        ├── Gone                     410
        ├── ContentTooLarge          413
        ├── UnsupportedMediaType     415
        ├── UnprocessableContent     422
        ├── TooManyRequests          429
        ├── InternalServerError      500
        └── ServiceUnavailable       503

The extension module imports this one, so it imports nothing of the package.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from types import FrameType


# What the files of this package begin with.
_PACKAGE = __file__.rpartition("errors.py")[0]


def _remade(kind: type[CitiusError], arguments: tuple[object, ...]) -> CitiusError:
    error = kind.__new__(kind, *arguments)
    if isinstance(error, OSError):
        OSError.__init__(error, *arguments)  # sets errno, which `__new__` leaves to it
    error.args = arguments
    return error


class CitiusError(Exception):
    """Root of the tree."""

    def __reduce__(self) -> tuple[object, ...]:
        # `Exception` passes `args` to `__init__`, whose parameters are others in many a subclass.
        return _remade, (type(self), self.args), self.__dict__


class ConfigError(CitiusError, ValueError):
    """An option, a route or a handler's signature that cannot work; the message names it."""


class AppImportError(ConfigError):
    """The application is not where the target says."""


class StartupError(CitiusError):
    """The application said that it could not start."""


class ClientDisconnected(CitiusError, OSError):
    """The client is gone: the rest of its body will not arrive, and it will not read the response.

    An ``OSError``, as ASGI has it for a ``send`` after the disconnection.
    """


def comes_from_disconnection(error: BaseException) -> bool:
    """Whether ``error``, or what it was raised from, says that the client is gone."""
    cause: BaseException | None = error
    for _ in range(16):
        if cause is None or isinstance(cause, ClientDisconnected):
            return cause is not None
        cause = cause.__cause__
    return False


class StreamReset(CitiusError, OSError):
    """The client has reset its side of a WebTransport stream, or reads no more of the server's.

    Args:
        code: What the client says about it; ``None`` if it is no code of an application.
    """

    code: int | None

    def __init__(self, code: int | None = None) -> None:
        super().__init__("reset" if code is None else f"reset with code {code}")
        self.code = code


class ConnectionClosed(ClientDisconnected):
    """A WebSocket or a WebTransport session is over: nothing more will come, and nothing can be sent.

    Args:
        code: The close code (RFC 6455 §7.4); 1005 if the client gave none, 1006 if it was lost.
            That of a session is any number that its application has chosen.
        reason: What the client said about it.
    """

    code: int
    reason: str

    def __init__(self, code: int = 1006, reason: str = "") -> None:
        super().__init__(f"closed with code {code}{': ' if reason else ''}{reason}")
        self.code = code
        self.reason = reason


class ChannelClosed(CitiusError, ValueError):
    """A send on a closed channel, or a second close of one."""


class ChannelMisuse(CitiusError, RuntimeError):
    """A wait where none is possible, for it would stop an event loop, a hub or the server.

    The message says what to do instead, and where the wait is written.

    Attributes:
        place: ``file:line`` of the innermost call outside of this package; empty if there is none.
    """

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.place = _place_of_caller()

    def __str__(self) -> str:
        """The message, and the place."""
        message = super().__str__()
        return f"{message} ({self.place})" if self.place else message


def _place_of_caller() -> str:
    frame: FrameType | None = sys._getframe(1)  # pyright: ignore[reportPrivateUsage]
    while frame is not None and frame.f_code.co_filename.startswith(_PACKAGE):
        frame = frame.f_back
    return f"{frame.f_code.co_filename}:{frame.f_lineno}" if frame is not None else ""


class Deadlock(CitiusError, RuntimeError):
    """Every goroutine waits for a channel, and none is left that could send, receive or close."""


class GoPanic(CitiusError, RuntimeError):
    """Compiled code has panicked: ``citius::panic`` or another exception of C++."""


class Cancelled(CitiusError):
    """A wait of compiled code was ended: its client has left, or its context was cancelled."""


class DeadlineExceeded(Cancelled, TimeoutError):
    """A wait of compiled code was ended by the deadline of its context."""


class RpcError(CitiusError):
    """A call that failed; a value that goes from a procedure to its caller, or from the server itself.

    Args:
        message: What went wrong, for the caller's eyes.
        type: A name for programs; that of the class without it.
        data: Anything that MessagePack and JSON can say.
        code: The number that JSON-RPC wants; -32000 for errors of an application's own.
    """

    def __init__(
        self, message: str, *, type: str | None = None, data: object = None, code: int | None = None
    ) -> None:
        super().__init__(message)
        self.message = message
        self.type: str = type if type is not None else self.__class__.__name__
        self.data: Any = data
        self.code = code

    def __str__(self) -> str:
        return f"{self.type}: {self.message}"


class RpcTimeout(CitiusError, TimeoutError):
    """A call got no response in time; the server has been told that the client no longer waits for it."""


class ConnectionLost(CitiusError, ConnectionError):
    """The connection failed before the response came, or none could be made in time.

    ``was_sent`` says whether the procedure may have been called.
    """

    def __init__(self, message: str, *, was_sent: bool) -> None:
        super().__init__(message)
        self.was_sent = was_sent


class HTTPError(CitiusError):
    """A response with an error status.

    Without an error handler of the application it is sent as ``application/problem+json``
    (RFC 9457) with the members ``title``, ``status``, and ``detail`` and ``errors`` where given.

    Args:
        status_code: 400 to 599.
        detail: What went wrong, for the client's eyes.
        headers: Fields of the response.
        errors: One mapping per mistake found in the request (``UnprocessableContent`` fills it).
    """

    status_code: int = 500
    detail: str
    headers: Mapping[str, str] | Iterable[tuple[str, str]] | None
    errors: Sequence[Mapping[str, str]]

    def __init__(
        self,
        status_code: int,
        detail: str = "",
        headers: Mapping[str, str] | Iterable[tuple[str, str]] | None = None,
        errors: Sequence[Mapping[str, str]] = (),
    ) -> None:
        if not 400 <= status_code <= 599:
            raise _no_error_status(status_code)
        super().__init__(status_code, detail)
        self.status_code = status_code
        self.detail = detail
        self.headers = headers
        self.errors = errors

    def __str__(self) -> str:
        title = f"{self.status_code} {phrase(self.status_code)}"
        return f"{title}: {self.detail}" if self.detail else title


def _no_error_status(status: int) -> ValueError:
    return ValueError(f"status_code of an HTTPError must be within 400 to 599, got {status}")


class _FixedStatus(HTTPError):
    """An ``HTTPError`` whose class says the status."""

    def __init__(
        self,
        detail: str = "",
        headers: Mapping[str, str] | Iterable[tuple[str, str]] | None = None,
        errors: Sequence[Mapping[str, str]] = (),
    ) -> None:
        # What `HTTPError` does; a refusal is cheaper without its call.
        status = self.status_code
        if not 400 <= status <= 599:
            raise _no_error_status(status)
        Exception.__init__(self, status, detail)
        self.detail = detail
        self.headers = headers
        self.errors = errors


class BadRequest(_FixedStatus):
    """400: the request cannot be read."""

    status_code = 400


class Unauthorized(_FixedStatus):
    """401: who is asking? Give ``WWW-Authenticate`` in ``headers``."""

    status_code = 401


class Forbidden(_FixedStatus):
    """403: known, and not allowed."""

    status_code = 403


class NotFound(_FixedStatus):
    """404: nothing here, or nothing one admits to."""

    status_code = 404


class MethodNotAllowed(_FixedStatus):
    """405: not with this method. Give ``Allow`` in ``headers``."""

    status_code = 405


class NotAcceptable(_FixedStatus):
    """406: no representation the client accepts."""

    status_code = 406


class Conflict(_FixedStatus):
    """409: the state of the resource forbids it."""

    status_code = 409


class Gone(_FixedStatus):
    """410: it was here, and is not coming back."""

    status_code = 410


class ContentTooLarge(_FixedStatus):
    """413: more body than is taken."""

    status_code = 413


class UnsupportedMediaType(_FixedStatus):
    """415: the body is in a format that is not read here."""

    status_code = 415


class UnprocessableContent(_FixedStatus):
    """422: well-formed, but not what is expected; ``errors`` says where."""

    status_code = 422


class TooManyRequests(_FixedStatus):
    """429: come back later. Give ``Retry-After`` in ``headers``."""

    status_code = 429


class InternalServerError(_FixedStatus):
    """500: our fault."""

    status_code = 500


class ServiceUnavailable(_FixedStatus):
    """503: not now."""

    status_code = 503


def phrase(status: int) -> str:
    """The reason phrase of ``status`` (RFC 9110 §15), or the name of its class."""
    known = _PHRASES.get(status)
    if known is not None:
        return known
    return "Client Error" if status < 500 else "Server Error"


# Only what is sent in problem details; `http.HTTPStatus` would cost every worker an import.
_PHRASES = {
    400: "Bad Request",
    401: "Unauthorized",
    402: "Payment Required",
    403: "Forbidden",
    404: "Not Found",
    405: "Method Not Allowed",
    406: "Not Acceptable",
    408: "Request Timeout",
    409: "Conflict",
    410: "Gone",
    411: "Length Required",
    412: "Precondition Failed",
    413: "Content Too Large",
    414: "URI Too Long",
    415: "Unsupported Media Type",
    416: "Range Not Satisfiable",
    417: "Expectation Failed",
    421: "Misdirected Request",
    422: "Unprocessable Content",
    423: "Locked",
    424: "Failed Dependency",
    425: "Too Early",
    426: "Upgrade Required",
    428: "Precondition Required",
    429: "Too Many Requests",
    431: "Request Header Fields Too Large",
    451: "Unavailable For Legal Reasons",
    500: "Internal Server Error",
    501: "Not Implemented",
    502: "Bad Gateway",
    503: "Service Unavailable",
    504: "Gateway Timeout",
    505: "HTTP Version Not Supported",
    507: "Insufficient Storage",
    511: "Network Authentication Required",
}
