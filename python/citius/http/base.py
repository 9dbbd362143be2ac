"""What a client sends requests by: the seam between the Python half and what carries bytes.

``citius.http.transport.Pool`` with the extension is one, ``memory.py`` another, which calls an
application, and ``citius.testing.http`` a third, which answers as it was told. What they return has to be
awaitable once; ``wait`` is for callers without a loop.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol, TypeAlias, TypeVar

if TYPE_CHECKING:
    from collections.abc import Awaitable, Iterable, Sequence

    from citius.http.options import Deadlines
    from citius.http.urls import URL

Fields: TypeAlias = "list[tuple[bytes | str, bytes | str]]"
RawFields: TypeAlias = "list[tuple[bytes, bytes]]"

_T = TypeVar("_T")


class Reply(Protocol):
    """A response as the transport has it."""

    @property
    def status(self) -> int:
        """The status code."""
        ...

    @property
    def http_version(self) -> str:
        """``HTTP/1.1``, ``HTTP/1.0``, ``HTTP/2``."""
        ...

    @property
    def fields(self) -> RawFields:
        """Names and values as they came."""
        ...

    def field(self, name: bytes) -> bytes | None:
        """The first value of a name in lower case."""
        ...

    @property
    def body(self) -> bytes:
        """The content, of a response that is not streamed."""
        ...

    @property
    def trailers(self) -> RawFields:
        """Fields behind the content, when it has been read."""
        ...

    @property
    def informational(self) -> Sequence[tuple[int, RawFields]]:
        """Interim responses (1xx) that came before."""
        ...

    @property
    def connection_reused(self) -> bool:
        """Whether the connection had served a request before."""
        ...

    @property
    def remote(self) -> str:
        """Address and port of the peer."""
        ...

    def read(self) -> Awaitable[bytes]:
        """The next piece of a streamed response; ``b""`` at its end."""
        ...

    def close(self) -> None:
        """Give a streamed response up."""
        ...


class Upload(Protocol):
    """A body that is sent piece by piece."""

    def send(self, data: bytes) -> Awaitable[None]:
        """Send a piece; done when there is room for the next one."""
        ...

    def end(self, trailers: Iterable[tuple[bytes | str, bytes | str]] = ()) -> Awaitable[None]:
        """The body is complete."""
        ...

    def abort(self) -> None:
        """The body will not be complete."""
        ...


class Transport(Protocol):
    """What sends requests."""

    def origin(self, url: URL, proxy: str | None) -> Any:
        """What ``send`` gets for the origin of a URL; made once for each."""
        ...

    def send(
        self,
        origin: Any,
        method: str,
        target: str,
        fields: Fields,
        body: bytes | Upload | None = None,
        stream: bool = False,
        deadlines: Deadlines | None = None,
    ) -> Awaitable[Reply]:
        """Send a request; the reply, whole or with its content to be read."""
        ...

    def upload(self, length: int | None = None) -> Upload:
        """The body of a request that is sent piece by piece."""
        ...


def waited(awaitable: Awaitable[_T]) -> _T:
    """The result of what a transport returned, for a caller without a loop of its own."""
    wait = getattr(awaitable, "wait", None)
    if wait is not None:
        return wait()
    return finished(awaitable)


def finished(awaitable: Awaitable[_T]) -> _T:
    """The result of something that does not wait for a loop.

    Raises:
        RuntimeError: It does.
    """
    steps = awaitable.__await__()
    try:
        next(steps)
    except StopIteration as end:
        return end.value
    close = getattr(steps, "close", None)
    if close is not None:
        close()
    raise RuntimeError(
        "client.sync waits in its thread, and this part of the request waits for an event loop: an async def "
        "hook or token, an asynchronous iterable, or Client(app=…), for which there is citius.testing.Client"
    )
