"""The pool: bounds, contexts, closing. Requests are stand-ins that note what they are answered with."""

from __future__ import annotations

import asyncio
import threading
from contextvars import ContextVar
from queue import SimpleQueue
from typing import Any

import pytest
from citius.web.execution import thread_pool
from citius.web.execution.thread_pool import BlockingPool, Threaded, in_pool
from rig import wait_for


class Noted:
    """The methods of a request that the pool calls."""

    def __init__(self) -> None:
        self.outcomes: SimpleQueue[Any] = SimpleQueue()

    def _respond(self, value: object) -> None:
        self.outcomes.put(value)

    def _fail(self, error: BaseException) -> None:
        self.outcomes.put(error)

    def _is_open(self) -> bool:
        return True

    def outcome(self) -> Any:
        return self.outcomes.get(timeout=30)


@pytest.fixture
def pool():
    made = BlockingPool(threads_max=2, queue_max=1)
    yield made
    assert made.close(5)


def test_answers_and_failures(pool: BlockingPool) -> None:
    request: Any = Noted()
    assert pool.submit(request, lambda a, b: a + b, (1, 2))
    assert request.outcome() == 3
    assert pool.submit(request, lambda: 1 // 0, ())
    assert isinstance(request.outcome(), ZeroDivisionError)
    assert pool.submit(request, lambda: in_pool(), ())
    assert request.outcome() is True
    assert in_pool() is False


def test_the_queue_is_bounded_and_recovers(pool: BlockingPool) -> None:
    gate = threading.Event()
    request: Any = Noted()
    # Two threads, one place in the queue.
    assert [pool.submit(request, gate.wait, ()) for _ in range(4)] == [True, True, True, False]
    gate.set()
    assert [request.outcome() for _ in range(3)] == [True] * 3
    # The last thread says it is free only after its answer.
    done = threading.Event()
    for _ in range(1000):
        if pool.submit(request, done.set, ()):
            break
        threading.Event().wait(0.001)
    assert done.wait(5)


def test_the_context_goes_along_and_does_not_come_back(pool: BlockingPool) -> None:
    variable: ContextVar[str] = ContextVar("variable", default="none")
    request: Any = Noted()
    variable.set("caller's")

    def handler() -> str:
        before = variable.get()
        variable.set("handler's")
        return before

    pool.submit(request, handler, ())
    assert request.outcome() == "caller's"
    assert variable.get() == "caller's"


def test_iterators_are_marked_for_the_pool(pool: BlockingPool) -> None:
    request: Any = Noted()
    pool.submit(request, lambda: iter([b"a", b"b"]), ())
    marked = request.outcome()
    assert isinstance(marked, Threaded)
    assert list(marked) == [b"a", b"b"]


def test_closing_waits_for_the_queue_and_refuses_more() -> None:
    pool = BlockingPool(threads_max=1, queue_max=8)
    gate = threading.Event()
    request: Any = Noted()
    pool.submit(request, gate.wait, ())
    pool.submit(request, lambda: "queued", ())
    assert pool.close(0.01) is False  # the first one does not end
    assert pool.submit(request, lambda: "late", ()) is False
    gate.set()
    assert request.outcome() is True
    assert request.outcome() == "queued"
    assert pool.close(5) is True


def test_a_thread_that_its_request_has_given_up_gets_a_stand_in(pool: BlockingPool) -> None:
    """Issue F: stuck threads took the places of others for ever."""
    stuck, entered = threading.Event(), threading.Semaphore(0)

    def hang(request: Any) -> str:
        entered.release()
        assert stuck.wait(60)
        return "late"

    async def main() -> list[str]:
        call, quick = pool.as_async(hang), pool.as_async(lambda request: "quick")
        given_up = [asyncio.create_task(call(None)) for _ in range(2)]
        for _ in given_up:
            await asyncio.to_thread(entered.acquire)
        waits = asyncio.create_task(quick(None))
        await asyncio.sleep(0)
        for task in given_up:
            task.cancel()
        # The one that waited already, and those that come later.
        return [await waits, *[await quick(None) for _ in range(10)]]

    assert asyncio.run(asyncio.wait_for(main(), 60)) == ["quick"] * 11
    assert len(pool._threads) > 2  # pyright: ignore[reportPrivateUsage]
    stuck.set()
    request: Any = Noted()

    def is_as_before() -> bool:
        assert pool.submit(request, lambda: None, ())
        request.outcome()
        return len(pool._threads) == 2  # pyright: ignore[reportPrivateUsage]

    wait_for(is_as_before, "the stand-ins to end")


async def outcome_of(check: Any) -> BaseException | None:
    (outcome,) = await asyncio.gather(check, return_exceptions=True)
    return outcome


def test_readiness_knows_that_no_thread_is_free(
    pool: BlockingPool, monkeypatch: pytest.MonkeyPatch
) -> None:
    gate, request = threading.Event(), Noted()
    asyncio.run(pool.ready())
    monkeypatch.setattr(thread_pool, "STUCK_S", 0.01)
    for _ in range(3):
        assert pool.submit(request, gate.wait, ())  # type: ignore[arg-type]  # pyright: ignore

    def is_told() -> bool:
        told = asyncio.run(outcome_of(pool.ready()))
        assert told is None or "hold all 2 threads: 1 requests wait" in str(told)
        return told is not None

    wait_for(is_told, "a check that fails")
    gate.set()
    wait_for(lambda: not is_told(), "a check that passes")
