"""The public client for threads, and for greenlets under a patched standard library.

link.py describes how callers share a connection.
"""

from __future__ import annotations

from _thread import allocate_lock
from collections import deque
from time import monotonic, sleep
from typing import TYPE_CHECKING, Any, TypeVar, overload

from citius.errors import ConnectionLost, RpcTimeout
from citius.rpc.calls import (
    MESSAGE_BYTES_MAX,
    Address,
    Backoff,
    Request,
    is_in_vain,
    notification,
    words,
)
from citius.rpc.deadlines import is_past, left
from citius.rpc.link import Link, connect
from citius.rpc.roles import Role
from citius.unknown_options import known_options

if TYPE_CHECKING:
    import ssl
    from collections.abc import Callable, Iterable, Iterator, Mapping
    from types import TracebackType
    from typing import Self

    from citius.rpc.roles import Waiter

_T = TypeVar("_T")


@known_options
class Client:
    """A server's procedures, for any number of threads.

    Args:
        address: ``HOST:PORT`` or ``unix:PATH``, with ``tls://`` before it where the server speaks TLS;
            ``quic://HOST:PORT`` for the web port of a server with ``webtransport_rpc(…, quic=True)``.
        timeout_s: How long a call may take, connecting included, unless it says otherwise; ``None``:
            for ever.
        on_notification: Called with the name and the parameters of each notification of the server, by the
            thread that reads at the moment.
        message_bytes_max: Bytes of the longest response; a longer one ends the connection.
        tls: Trusted authorities and client certificate; default: the system's authorities. With it, TLS is
            used also without ``tls://``. QUIC uses its authorities, and shows no client certificate.
        server_name: The name that the server's certificate must have; default: the host.
    """

    def __init__(
        self,
        address: str,
        *,
        timeout_s: float | None = 30.0,
        on_notification: Callable[[str, Any], object] | None = None,
        message_bytes_max: int = MESSAGE_BYTES_MAX,
        tls: ssl.SSLContext | None = None,
        server_name: str | None = None,
    ) -> None:
        self._address = Address.parse(address, tls, server_name)
        self._timeout_s = timeout_s
        self._on_notification = on_notification
        self._message_bytes_max = message_bytes_max
        self._connecting = Role(allocate_lock())
        self._link: Link | None = None
        self.is_closed = False

    @overload
    def call(
        self,
        method: str,
        /,
        *params: object,
        type: type[_T],
        named: Mapping[str, object] | None = None,
        timeout_s: float | None = ...,
        idempotent: bool = False,
    ) -> _T: ...
    @overload
    def call(
        self,
        method: str,
        /,
        *params: object,
        type: object = None,
        named: Mapping[str, object] | None = None,
        timeout_s: float | None = ...,
        idempotent: bool = False,
    ) -> Any: ...
    def call(
        self,
        method: str,
        /,
        *params: object,
        type: object = None,
        named: Mapping[str, object] | None = None,
        timeout_s: float | None = -1.0,
        idempotent: bool = False,
    ) -> Any:
        """Call a procedure and wait for its result.

        Args:
            method: Its name.
            params: Positional parameters.
            type: The type of the result, for msgspec; default: any.
            named: Named parameters instead.
            timeout_s: How long it may take; default: the client's; ``None``: no limit.
            idempotent: Executing it twice does no harm: it is sent again if its connection fails.

        Raises:
            RpcError: The procedure, or the server, responds with an error.
            RpcTimeout: No response came in time.
            ConnectionLost: The connection failed, or none could be made in time.
            msgspec.ValidationError: The result is of another type.
        """
        request = Request(method, params if named is None else named, type, idempotent)
        waiting = Call(self, request, self._deadline(timeout_s))
        try:
            self._send(waiting)
            return waiting.result()
        except BaseException:
            waiting.cancel()  # interrupted; without effect if it has ended
            raise

    def submit(
        self,
        method: str,
        /,
        *params: object,
        type: object = None,
        named: Mapping[str, object] | None = None,
        timeout_s: float | None = -1.0,
        idempotent: bool = False,
    ) -> Call:
        """Send a call and return at once; ``Call.result`` waits for the response.

        Responses are read while a caller waits for one: its own or another caller's.
        """
        request = Request(method, params if named is None else named, type, idempotent)
        call = Call(self, request, self._deadline(timeout_s))
        try:
            self._send(call)
        except BaseException:
            call.cancel()
            raise
        return call

    def map(
        self,
        method: str,
        params: Iterable[tuple[object, ...]],
        /,
        *,
        type: object = None,
        timeout_s: float | None = -1.0,
        idempotent: bool = False,
        in_flight: int = 256,
    ) -> Iterator[Any]:
        """Call a procedure with each of many parameters; results come in their order.

        Up to ``in_flight`` calls are sent ahead of the result that is taken. An error is raised in
        its turn; the open calls are then cancelled.
        """
        under_way: deque[Call] = deque()
        try:
            for one in params:
                request = Request(method, one, type, idempotent)
                under_way.append(call := Call(self, request, self._deadline(timeout_s)))
                self._send(call, flush=False)
                if len(under_way) >= in_flight:
                    # Half of them, so that the next write sends as many at once.
                    for _ in range(max(1, in_flight // 2)):
                        yield _first_result(under_way)
            while under_way:
                yield _first_result(under_way)
        finally:
            for call in under_way:
                call.cancel()

    def notify(
        self, method: str, /, *params: object, named: Mapping[str, object] | None = None
    ) -> None:
        """Call a procedure without a response; whether it is executed is not known."""
        deadline = self._deadline(-1.0)
        link = self._connected(deadline)
        link.put(notification(method, params if named is None else named))
        link.flush(deadline)

    def close(self) -> None:
        """Close the connection; waiting calls are cancelled and fail.

        Queued messages are sent first, for at most a second.
        """
        self.is_closed = True
        link = self._link
        if link is not None:
            link.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def _deadline(self, timeout_s: float | None) -> float | None:
        if timeout_s is not None and timeout_s < 0:
            timeout_s = self._timeout_s
        return None if timeout_s is None else monotonic() + timeout_s

    def _send(self, call: Call, *, flush: bool = True) -> None:
        """Queue a call on the connection, or on a new one if that has ended."""
        while True:
            link = self._connected(call.deadline)
            if link.put_call(call):
                if flush:
                    link.flush(call.deadline)
                return

    def send_again(self, call: Call) -> None:
        """Send a call whose connection has ended on a new one."""
        self._send(call)

    def _connected(self, deadline: float | None) -> Link:
        link = self._link
        if link is not None and link.is_fresh():
            return link

        def connect_or_wait(waiter: Waiter) -> Link:
            while not self._connecting.take(waiter):
                self._connecting.sleep(waiter, deadline)
                if is_past(deadline):
                    message = f"no connection to {self._address} in time"
                    raise ConnectionLost(message, was_sent=False)
            link = self._link
            if link is None or not link.is_fresh():
                link = self._link = self._connect(deadline)
            if self.is_closed:  # meanwhile
                link.close()
                raise ConnectionLost("the client is closed", was_sent=False)
            return link

        return self._connecting.share(connect_or_wait)

    def _connect(self, deadline: float | None) -> Link:
        backoff = Backoff()
        while True:
            if self.is_closed:
                raise ConnectionLost("the client is closed", was_sent=False)
            try:
                made = connect(self._address, self._message_bytes_max, deadline)
                return Link(made, self._message_bytes_max, self._on_notification)
            except OSError as error:
                pause_s = backoff.next()
                is_late = deadline is not None and monotonic() + pause_s >= deadline
                if is_late or is_in_vain(error):
                    raise ConnectionLost(
                        f"cannot connect to {self._address}: {words(error)}", was_sent=False
                    ) from None
                sleep(pause_s)


def _first_result(calls: deque[Call]) -> Any:
    """The result of the first call; if the caller is interrupted, the call stays among those to cancel."""
    result = calls[0].result()
    calls.popleft()
    return result


class Call:
    """A call that has been sent."""

    __slots__ = ("_backoff", "_client", "deadline", "link", "request", "waiters")

    def __init__(self, client: Client, request: Request, deadline: float | None) -> None:
        self._client = client
        self.request = request
        self.deadline = deadline
        self.link: Link | None = None
        # Waiters that sleep until its response comes.
        self.waiters: tuple[Waiter, ...] = ()
        self._backoff: Backoff | None = None

    def done(self) -> bool:
        """Whether the response has come. Does not read."""
        return self.request.is_done

    def cancel(self) -> None:
        """Cancel the call on the server and stop waiting; no effect after the response."""
        self._give_up(RpcTimeout(f"{self.request.method} was cancelled"))

    def result(self) -> Any:
        """Wait for the response until the call's deadline; see ``Client.call``."""
        request = self.request
        while not request.is_done:
            link = self.link
            if link is None or not link.wait_for(self, self.deadline):
                self._lost_or_late(link)
        return request.outcome()

    def _give_up(self, error: Exception) -> None:
        request, link = self.request, self.link
        if not request.is_done and link is not None and link.take_back(self):
            request.error, request.is_done = error, True
            link.flush(monotonic())

    def _lost_or_late(self, link: Link | None) -> None:
        """The deadline has passed, or the connection has ended: fail the call or send it again."""
        request, client = self.request, self._client
        if link is not None and not link.is_over:
            # No effect if the response has come in the meantime.
            self._give_up(RpcTimeout(f"no response to {request.method} in time"))
            return
        after_goodbye = link is not None and link.said_goodbye
        reason = "it was not sent" if link is None else link.reason
        if client.is_closed or not request.may_be_sent_again(after_goodbye=after_goodbye):
            request.error = ConnectionLost(
                f"no response to {request.method}: {reason}", was_sent=request.is_sent
            )
            request.is_done = True
            return
        if self._backoff is None:
            self._backoff = Backoff()
        else:  # a server that accepts connections and closes them
            pause_s = self._backoff.next()
            left_s = left(self.deadline)
            sleep(pause_s if left_s < 0 else min(pause_s, left_s))
            if is_past(self.deadline):
                request.error = ConnectionLost(
                    f"no response to {request.method} in time: {reason}", was_sent=request.is_sent
                )
                request.is_done = True
                return
        try:
            client.send_again(self)
        except ConnectionLost as error:
            request.error, request.is_done = error, True
