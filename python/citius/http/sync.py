"""The same client for code that waits serially: threads, greenlets, goroutines, WSGI, scripts.

In a serial handler the request is made by the handler's event loop; elsewhere this thread waits. Tests:
``tests/http/test_sync.py``.
"""

from __future__ import annotations

import asyncio
import contextlib
from typing import TYPE_CHECKING, Any, Unpack

from citius.errors import ChannelMisuse
from citius.http.base import finished
from citius.http.carriers import IN_THREAD
from citius.serial import is_serial, park

if TYPE_CHECKING:
    from collections.abc import Generator
    from types import TracebackType

    from citius.http.client import Client, GetOptions, RequestOptions
    from citius.http.response import Response, SyncStreamedResponse


def refuse_loop() -> None:
    """Refuse to stop an event loop.

    Raises:
        ChannelMisuse: One runs on this thread, and this is no serial handler.
    """
    if asyncio._get_running_loop() is not None and not is_serial():  # pyright: ignore[reportPrivateUsage]
        raise ChannelMisuse(
            "client.sync would stop the event loop of this thread: use `await client.…` (in `async def`), or "
            "add serial=True to the handler (a `def`)"
        )


class SyncClient:
    """What ``client.sync`` is: the client's methods, which return their results.

    Cookies, limits, retries and breakers are those of the client. Requests are not hedged in threads.
    """

    def __init__(self, client: Client) -> None:
        self._client = client

    def __repr__(self) -> str:
        return f"{self._client!r}.sync"

    def __enter__(self) -> SyncClient:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close all connections."""
        refuse_loop()
        if is_serial():
            park(self._client.close())
        else:
            self._client.close_here()

    def get(self, url: str, **options: Unpack[GetOptions]) -> Response:
        """Send a GET."""
        return self.request("GET", url, **options)

    def head(self, url: str, **options: Unpack[GetOptions]) -> Response:
        """Send a HEAD."""
        return self.request("HEAD", url, **options)

    def options(self, url: str, **options: Unpack[GetOptions]) -> Response:
        """Send an OPTIONS."""
        return self.request("OPTIONS", url, **options)

    def delete(self, url: str, **options: Unpack[RequestOptions]) -> Response:
        """Send a DELETE."""
        return self.request("DELETE", url, **options)

    def post(self, url: str, **options: Unpack[RequestOptions]) -> Response:
        """Send a POST."""
        return self.request("POST", url, **options)

    def put(self, url: str, **options: Unpack[RequestOptions]) -> Response:
        """Send a PUT."""
        return self.request("PUT", url, **options)

    def patch(self, url: str, **options: Unpack[RequestOptions]) -> Response:
        """Send a PATCH."""
        return self.request("PATCH", url, **options)

    def request(self, method: str, url: str, **options: Unpack[RequestOptions]) -> Response:
        """Send a request.

        Raises:
            RequestError: There is no response; its class says why.
            ChannelMisuse: It would stop an event loop.
        """
        if is_serial():
            return park(self._client.request(method, url, **options))
        refuse_loop()
        return self._run(method, url, options, is_stream=False)

    @contextlib.contextmanager
    def stream(
        self, method: str, url: str, **options: Unpack[RequestOptions]
    ) -> Generator[SyncStreamedResponse]:
        """``with client.sync.stream("GET", url) as response``: its content is read as it comes."""
        refuse_loop()
        response: SyncStreamedResponse = self._run(method, url, options, is_stream=True)
        try:
            yield response
        finally:
            response.close()

    def _run(self, method: str, url: str, options: Any, *, is_stream: bool) -> Any:
        client = self._client
        request, call = client.prepare(method, url, options, is_stream=is_stream)
        opened = client.open_here()
        return finished(client.engine.run(IN_THREAD, opened, request, call))
