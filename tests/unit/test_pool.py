"""The pool: bounds, contexts, closing. Requests are stand-ins that note what they are answered with."""

from __future__ import annotations

import threading
from contextvars import ContextVar
from queue import SimpleQueue
from typing import Any

import pytest
from citius.web.execution.thread_pool import BlockingPool, Threaded, in_pool


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
