"""One client in several threads, and in a forked child."""

from __future__ import annotations

import os
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import pytest
from citius.http import Client, Limits
from citius.testing.http import MockReply, MockTransport
from http_peer import OK, Peer, Talk, answering

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


@pytest.mark.skipif(not hasattr(os, "fork"), reason="forks")
@pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")
def test_a_forked_child_has_all_slots_of_an_origin() -> None:
    """Those of the parent's requests were never given back in the child."""
    begun, goes_on = threading.Event(), threading.Event()

    def act(talk: Talk) -> None:
        while request := talk.request():
            if "/slow" in request[0]:
                begun.set()
                goes_on.wait(30)
            talk.say(OK)

    with Peer(act) as peer, ThreadPoolExecutor(1) as pool:
        url, limits = f"http://127.0.0.1:{peer.port}", Limits(requests_per_origin_max=1)
        client = Client(url, limits=limits, trust_env=False)
        slow = pool.submit(client.sync.get, "/slow")
        assert begun.wait(10)
        pid = os.fork()
        if pid == 0:
            text = ""
            with suppress(BaseException):
                text = client.sync.get("/").text
            os._exit(0 if text == "ok" else 1)
        status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
        goes_on.set()
        assert (status, slow.result().text) == (0, "ok")
        client.sync.close()
