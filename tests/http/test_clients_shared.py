"""One client in several threads."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from citius.http import Client, Limits
from citius.testing.http import MockReply, MockTransport
from http_peer import Peer, answering

if TYPE_CHECKING:
    from collections.abc import Callable


class Meeting:
    """Counts calls of a function, of which two threads would be in it at the same time."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self._function, self._both = function, threading.Barrier(2)
        self.count = 0

    def __call__(self, *arguments: Any) -> Any:
        self.count += 1
        with suppress(threading.BrokenBarrierError):
            self._both.wait(0.2)
        return self._function(*arguments)


def together(work: Callable[[], object]) -> list[Any]:
    """What two threads get."""
    with ThreadPoolExecutor(2) as pool:
        return [one.result() for one in [pool.submit(work) for _ in range(2)]]


def test_threads_have_one_pool_between_them() -> None:
    with Peer(answering()) as peer:
        client = Client(f"http://127.0.0.1:{peer.port}", trust_env=False)
        client._make_transport = made = Meeting(client._make_transport)
        assert [one.text for one in together(lambda: client.sync.get("/"))] == ["ok", "ok"]
        assert made.count == 1
        client.sync.close()


def test_threads_have_one_limit_for_an_origin_between_them() -> None:
    mock = MockTransport()
    mock.add("GET", "https://a/", MockReply(200))
    mock.origin = made = Meeting(mock.origin)
    client = Client("https://a", transport=mock, limits=Limits(requests_per_origin_max=1))
    assert [one.status_code for one in together(lambda: client.sync.get("/"))] == [200, 200]
    assert made.count == 1
