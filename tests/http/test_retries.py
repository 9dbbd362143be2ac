"""Retries, hedging, circuit breakers, and how many requests an origin gets."""

from __future__ import annotations

import asyncio
import copy
import pickle
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from typing import Any

import pytest
from citius.errors import ConfigError, ServiceUnavailable
from citius.http import (
    CircuitBreaker,
    CircuitOpen,
    Client,
    ConnectError,
    Hedge,
    Limits,
    PoolTimeout,
    ReadError,
    Retry,
    Timeout,
    TlsError,
    TotalTimeout,
    deadline,
)
from citius.http.retries import Breaker, Budget, Slots, retry_after
from citius.testing.http import MockCall, MockReply, MockTransport
from http_peer import Peer, Talk

FAST = Retry(backoff_s=0.001, budget_min=100)


@pytest.mark.parametrize(
    ("method", "error", "headers", "attempts"),
    [
        ("GET", ReadError("x"), {}, 3),
        ("PUT", ReadError("x"), {}, 3),
        ("POST", ReadError("x"), {}, 1),
        ("POST", ReadError("x"), {"Idempotency-Key": "1"}, 3),
        ("POST", ConnectError("x"), {}, 3),
        ("GET", TlsError("x"), {}, 1),
        ("GET", TotalTimeout("x"), {}, 1),
        ("GET", PoolTimeout("x"), {}, 1),
    ],
)
async def test_errors(
    mock: MockTransport, method: str, error: Exception, headers: dict[str, str], attempts: int
) -> None:
    mock.add("*", "*", error)
    client = Client("http://a", transport=mock, retry=FAST)
    with pytest.raises(type(error)):
        await client.request(method, "/", headers=headers)
    assert len(mock.calls) == attempts


async def test_statuses(mock: MockTransport) -> None:
    client = Client("http://a", transport=mock, retry=FAST)
    mock.add("*", "*", MockReply(503), MockReply(429, headers={"retry-after": "0"}), MockReply())
    assert (await client.get("/")).status_code == 200
    assert (await client.post("/")).status_code == 200
    for status, method, attempts in ((503, "POST", 1), (500, "GET", 1), (503, "GET", 3)):
        mock.calls.clear()
        mock.add("*", "*", MockReply(status))
        assert (await client.request(method, "/")).status_code == status
        assert len(mock.calls) == attempts


async def test_retry_after_is_kept_to(mock: MockTransport) -> None:
    client = Client("http://a", transport=mock, retry=FAST)
    mock.add("*", "*", MockReply(429, headers={"retry-after": "1"}), MockReply())
    begun = time.monotonic()
    assert (await client.get("/")).status_code == 200
    assert time.monotonic() - begun >= 1
    mock.add("*", "*", MockReply(429, headers={"retry-after": "3600"}))
    assert (await client.get("/")).status_code == 429


def test_retry_after() -> None:
    now = 784111777.0
    assert retry_after("120", now) == 120
    assert retry_after("Sun, 06 Nov 1994 08:50:37 GMT", now) == 60
    assert retry_after("Sun, 06 Nov 1994 08:48:37 GMT", now) == 0
    assert retry_after("soon", now) is None
    assert retry_after(None, now) is None


async def test_a_retry_does_not_outlast_the_whole(mock: MockTransport) -> None:
    mock.add("*", "*", MockReply(503, headers={"retry-after": "50"}))
    client = Client("http://a", transport=mock, retry=FAST, timeout=Timeout(total=40))
    begun = time.monotonic()
    assert (await client.get("/")).status_code == 503
    assert time.monotonic() - begun < 30


async def test_the_budget_ends_a_storm(mock: MockTransport) -> None:
    """100 requests to a service that is down make 100 and a tenth of that, not 300."""
    mock.add("*", "*", ReadError("down"))
    retry = Retry(backoff_s=0, budget_ratio=0.1, budget_min=5)
    client = Client("http://a", transport=mock, retry=retry)
    for _ in range(100):
        with pytest.raises(ReadError):
            await client.get("/")
    assert 110 <= len(mock.calls) <= 116


def test_budget() -> None:
    budget = Budget(0.5, 2)
    assert [budget.take() for _ in range(3)] == [True, True, False]
    budget.add()
    assert not budget.take()
    budget.add()
    assert budget.take()


class Slow(MockTransport):
    """Answers after a while, each request after its own."""

    def __init__(self, *delays_s: float) -> None:
        super().__init__()
        self.delays_s, self.cancelled = list(delays_s), 0

    async def send(self, *given, **options) -> MockReply:  # pyright: ignore
        delay_s = self.delays_s.pop(0)
        answer = super().send(*given, **options)
        try:
            await asyncio.sleep(delay_s)  # the answer takes this long
        except asyncio.CancelledError:
            self.cancelled += 1
            raise
        return await answer


async def test_hedging() -> None:
    slow = Slow(60, 0)
    slow.add("*", "*")
    client = Client("http://a", transport=slow, hedge=Hedge(after_s=0.02))
    assert (await client.get("/")).status_code == 200
    assert slow.cancelled == 1
    slow.delays_s = [0.1]
    assert (await client.post("/")).status_code == 200  # not twice


async def test_hedging_is_within_its_budget() -> None:
    slow = Slow(*[0.03] * 60)
    slow.add("*", "*")
    client = Client("http://a", transport=slow, hedge=Hedge(after_s=0.005, budget_ratio=0.1))
    for _ in range(20):
        await client.get("/")
    assert 20 < len(slow.calls) + slow.cancelled <= 24


async def test_a_hedged_request_is_cancelled_as_a_whole() -> None:
    slow = Slow(60, 60)
    slow.add("*", "*")
    client = Client("http://a", transport=slow, hedge=Hedge(after_s=0.01))
    task = asyncio.ensure_future(client.get("/"))
    while slow.delays_s:
        await asyncio.sleep(0.005)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert slow.cancelled == 2


def test_breaker() -> None:
    now = [0.0]
    breaker = Breaker(CircuitBreaker(failures=2, open_s=10), "http://a", lambda: now[0])
    for _ in range(2):
        breaker.leave(breaker.enter(), None, ReadError("x"))
    assert breaker.state == "open"
    with pytest.raises(CircuitOpen, match=r"2 times in a row.*10\.0 s"):
        breaker.enter()
    now[0] = 10.0
    assert breaker.enter()
    with pytest.raises(CircuitOpen):
        breaker.enter()  # one finds out
    breaker.leave(True, None, asyncio.CancelledError())
    assert breaker.enter()  # whose caller has left found nothing out, and keeps no place
    breaker.leave(True, 503, None)
    assert breaker.state == "open"
    now[0] = 20.0
    breaker.leave(breaker.enter(), 200, None)
    assert breaker.state == "closed"
    for failure in (asyncio.CancelledError(), PoolTimeout("x"), None):
        breaker.leave(breaker.enter(), None, failure)
    assert breaker.state == "closed"


async def test_a_breaker_is_that_of_one_origin(mock: MockTransport) -> None:
    mock.add("*", "http://a/", MockReply(500))
    mock.add("*", "http://b/")
    client = Client(transport=mock, breaker=CircuitBreaker(failures=3))
    for _ in range(3):
        await client.get("http://a/")
    with pytest.raises(CircuitOpen) as caught:
        await client.get("http://a/")
    assert isinstance(caught.value, ServiceUnavailable)
    assert "//a" not in caught.value.detail  # what a client of the service is told
    assert (await client.get("http://b/")).status_code == 200


async def test_requests_per_origin() -> None:
    slow = Slow(*[0.02] * 20)
    active, most = 0, 0

    def answer(call: MockCall) -> MockReply:
        return MockReply()

    slow.add("*", "*", answer)
    send = slow.send

    async def counted(*given, **options):
        nonlocal active, most
        active += 1
        most = max(most, active)
        try:
            return await send(*given, **options)
        finally:
            active -= 1

    slow.send = counted  # pyright: ignore
    client = Client("http://a", transport=slow, limits=Limits(requests_per_origin_max=3))
    await asyncio.gather(*(client.get("/") for _ in range(10)))
    assert most == 3
    slow.delays_s = [60, 60, 60]
    tasks = [asyncio.ensure_future(client.get("/")) for _ in range(3)]
    while slow.delays_s:
        await asyncio.sleep(0.001)
    with pytest.raises(PoolTimeout, match="requests_per_origin_max.*0.01 s"):
        await client.get("/", timeout=Timeout(pool=0.01))
    for task in tasks:
        task.cancel()
    await asyncio.wait(tasks)
    slow.delays_s = [0]
    assert (await client.get("/")).status_code == 200


async def test_a_stream_keeps_its_slot_until_it_is_left(mock: MockTransport) -> None:
    mock.add("*", "*", content=b"x")
    client = Client("http://a", transport=mock, limits=Limits(requests_per_origin_max=1))
    async with client.stream("GET", "/"):
        with pytest.raises(PoolTimeout):
            await client.get("/", timeout=Timeout(pool=0.01))
    assert (await client.get("/")).status_code == 200


async def test_an_origin_that_is_forgotten_keeps_its_limit(
    mock: MockTransport, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("citius.http.engine.ORIGINS_MAX", 2)
    mock.add("*", "*", content=b"x")
    client = Client(transport=mock, limits=Limits(requests_per_origin_max=1))
    async with client.stream("GET", "http://a/"):
        for host in "bcd":
            await client.get(f"http://{host}/")
        with pytest.raises(PoolTimeout):
            await client.get("http://a/", timeout=Timeout(pool=0.01))
    assert (await client.get("http://a/")).status_code == 200


async def test_an_origin_that_has_failed_is_not_forgotten(
    mock: MockTransport, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("citius.http.engine.ORIGINS_MAX", 2)
    mock.add("*", "*", content=b"x")
    mock.add("*", "http://down/", status_code=503)
    client = Client(transport=mock, breaker=CircuitBreaker(failures=1, open_s=60))
    await client.get("http://down/")
    for host in "bcd":
        assert (await client.get(f"http://{host}/")).status_code == 200
    with pytest.raises(CircuitOpen):
        await client.get("http://down/")
    # More than are kept have failed: the newest of them are.
    for number in range(3):
        mock.add("*", f"http://down{number}/", status_code=503)
        await client.get(f"http://down{number}/")
    with pytest.raises(CircuitOpen):
        await client.get("http://down2/")


async def test_slots_are_fair_and_none_is_lost() -> None:
    slots = Slots(1, "http://a")
    await slots.acquire(None)
    order: list[int] = []

    async def one(number: int) -> None:
        await slots.acquire(None)
        order.append(number)
        slots.release()

    tasks = [asyncio.ensure_future(one(number)) for number in range(6)]
    await asyncio.sleep(0)
    tasks[0].cancel()
    tasks[3].cancel()
    slots.release()
    tasks[1].cancel()  # the slot may have been handed to it
    await asyncio.wait(tasks)
    assert order == [2, 4, 5] or order == [1, 2, 4, 5]
    await asyncio.wait_for(slots.acquire(1), 5)


async def test_slots_of_threads_and_loops() -> None:
    slots = Slots(1, "http://a")
    await slots.acquire(None)
    waiting = asyncio.ensure_future(asyncio.to_thread(slots.acquire_here, 10))
    while not slots._waiting:
        await asyncio.sleep(0.001)
    slots.release()
    await waiting
    with pytest.raises(PoolTimeout):
        await asyncio.to_thread(slots.acquire_here, 0.01)
    task = asyncio.ensure_future(slots.acquire(10))
    await asyncio.sleep(0)
    await asyncio.to_thread(slots.release)
    await task


async def test_deadlines(mock: MockTransport) -> None:
    mock.add("*", "*")
    client = Client("http://a", transport=mock, timeout=Timeout(2, total=9))
    await client.get("/")
    given = mock.calls[-1].deadlines
    assert given is not None
    assert given[:4] == (2, 2, 2, 2)
    assert given[4] is not None
    assert 8 < given[4] <= 9
    with deadline(5), deadline(50):
        await client.get("/")
    given = mock.calls[-1].deadlines
    assert given is not None
    assert given[4] is not None
    assert 4 < given[4] <= 5
    with deadline(0.01):
        await asyncio.sleep(0.02)  # the deadline has come then
        with pytest.raises(TotalTimeout, match="http://a: the whole request"):
            await client.get("/")
    await Client("http://a", transport=mock).get("/")
    assert mock.calls[-1].deadlines == (5.0, 30.0, 30.0, 5.0, None)


def test_values_that_cannot_work() -> None:
    for make in (
        lambda: Timeout(0), lambda: Timeout(connect=-1), lambda: Retry(attempts_max=0),
        lambda: Retry(backoff_s=-1),
        lambda: Hedge(0), lambda: Hedge(1, budget_ratio=2), lambda: CircuitBreaker(failures=0),
        lambda: CircuitBreaker(open_s=0), lambda: Limits(connections_max=0), lambda: Limits(keepalive_s=-1),
        lambda: Limits(requests_per_origin_max=0), lambda: Client(timeout="1"),
        lambda: Client(redirects_max=-1),
        lambda: Client(event_hooks={"before": []}),
    ):  # fmt: skip
        with pytest.raises(ConfigError):
            make()  # pyright: ignore


def test_what_was_sent_before_a_breaker_opened_or_closed_says_nothing() -> None:
    """The failures of slow requests that came in afterwards opened it again, and kept it open."""
    now = [0.0]
    breaker = Breaker(CircuitBreaker(failures=2, open_s=10), "http://a", lambda: now[0])
    assert not breaker.enter()
    slow = breaker.changes
    for _ in range(2):
        breaker.leave(breaker.enter(), None, ReadError("x"), breaker.changes)
    now[0] = 9.0
    breaker.leave(False, None, ReadError("x"), slow)
    now[0] = 10.0
    assert breaker.state == "half-open"
    breaker.leave(False, 200, None, slow)
    assert breaker.state == "half-open"
    assert breaker.enter()
    breaker.leave(True, 200, None, breaker.changes)
    for _ in range(5):
        breaker.leave(False, 503, None, slow)
    assert breaker.state == "closed"


@contextmanager
def peer_that_is_silent() -> Iterator[str]:
    """Where a server takes requests and answers none."""
    go = threading.Event()

    def act(talk: Talk) -> None:
        talk.request()
        go.wait(30)

    with Peer(act) as peer:
        yield f"http://127.0.0.1:{peer.port}"
        go.set()


@contextmanager
def peer_that_accepts_nothing() -> Iterator[str]:
    """Where the queue of a listener is full."""
    with socket.socket() as deaf:
        deaf.bind(("127.0.0.1", 0))
        deaf.listen(0)
        fillers = [socket.socket() for _ in range(4)]
        for filler in fillers:
            filler.setblocking(False)
            filler.connect_ex(deaf.getsockname())
        yield f"http://127.0.0.1:{deaf.getsockname()[1]}"
        for filler in fillers:
            filler.close()


@pytest.mark.parametrize("how", ["total", "deadline", "serial"])
@pytest.mark.parametrize("peer", [peer_that_is_silent, peer_that_accepts_nothing])
async def test_a_server_that_takes_all_of_the_time_opens_its_breaker(
    peer: Callable[[], AbstractContextManager[str]], how: str
) -> None:
    """`TotalTimeout` did not count, so that the server was waited for by each request."""
    with peer() as url:
        breaker = CircuitBreaker(failures=2, open_s=60)
        total = None if how == "deadline" else 0.1
        async with Client(url, timeout=Timeout(30, total=total), breaker=breaker) as client:

            async def ask() -> None:
                with deadline(0.1) if how == "deadline" else nullcontext():
                    if how == "serial":
                        await asyncio.to_thread(client.sync.get, "/")
                    else:
                        await client.get("/")

            for _ in range(2):
                with pytest.raises(TotalTimeout) as found:
                    await ask()
                assert not found.value.in_queue
            with pytest.raises(CircuitOpen):
                await ask()


@pytest.mark.parametrize(
    "limits", [Limits(connections_per_origin_max=1), Limits(requests_per_origin_max=1)]
)
async def test_what_waits_for_others_says_nothing_of_a_server(limits: Limits) -> None:
    with peer_that_is_silent() as url:
        breaker = CircuitBreaker(failures=1, open_s=60)
        async with Client(url, timeout=30, limits=limits, breaker=breaker) as client:
            held = asyncio.ensure_future(client.get("/"))
            while not client.stats().get("open"):
                await asyncio.sleep(0.005)  # a look at a condition
            for _ in range(3):
                with pytest.raises(TotalTimeout) as found, deadline(0.05):
                    await client.get("/")
                assert found.value.in_queue
            held.cancel()
            with suppress(asyncio.CancelledError):
                await held


async def never(*_: object) -> None:
    await asyncio.Event().wait()


@pytest.mark.parametrize(
    "options",
    [
        {"auth": never},
        {"event_hooks": {"request": [never]}},
        {"event_hooks": {"response": [never]}},
    ],
    ids=["auth", "request hook", "response hook"],
)
async def test_the_whole_time_holds_in_code_of_the_application(
    mock: MockTransport, options: dict[str, Any]
) -> None:
    mock.add("*", "*")
    async with asyncio.timeout(10):
        client = Client("http://a", transport=mock, timeout=Timeout(60, total=0.05), **options)
        with pytest.raises(TotalTimeout, match="http://a: the whole request"):
            await client.get("/")
        client = Client("http://a", transport=mock, timeout=Timeout(60), **options)
        with deadline(0.05), pytest.raises(TotalTimeout):
            await client.get("/")


@pytest.mark.parametrize("pool_s", [60, None])
async def test_the_whole_time_holds_while_a_slot_is_waited_for(
    mock: MockTransport, pool_s: float | None
) -> None:
    mock.add("*", "*", content=[b"a", b"b"])
    timeout = Timeout(60, pool=pool_s, total=0.05)
    client = Client(
        "http://a", transport=mock, limits=Limits(requests_per_origin_max=1), timeout=timeout
    )
    async with asyncio.timeout(10), client.stream("GET", "/", timeout=None) as response:
        with pytest.raises(TotalTimeout):
            await client.get("/")
        with pytest.raises(PoolTimeout):
            await client.get("/", timeout=Timeout(60, pool=0.01, total=60))
        assert await response.read() == b"ab"
    assert (await client.get("/")).status_code == 200


@pytest.mark.parametrize("kind", [PoolTimeout, CircuitOpen])
def test_an_error_that_is_a_response_says_what_has_happened(
    kind: type[PoolTimeout | CircuitOpen],
) -> None:
    """It said `(503, '…')`."""
    error = kind("https://a: no connection was free")
    again = pickle.loads(pickle.dumps(error))
    for one in (error, again, copy.copy(error)):
        assert type(one) is kind
        assert (str(one), one.status_code) == ("https://a: no connection was free", 503)
        assert "https" not in one.detail
