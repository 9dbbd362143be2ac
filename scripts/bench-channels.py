"""Round trips per second of an unbuffered ping-pong: citius.go against the queues of each world.

Rounds are interleaved; a ratio is that of the medians, with the smallest and the largest of the rounds'
own ratios. ``scripts/bench-channels.py [--seconds 0.5] [--rounds 5]``.
"""

from __future__ import annotations

import argparse
import asyncio
import queue
import statistics
import threading
import time
from collections.abc import Callable
from typing import Any, NamedTuple

import gevent
import gevent.queue
import uvloop
from citius.go import chan

CHUNK = 200
Measure = Callable[[float], float]


class Ends(NamedTuple):
    """How one sends and receives, and what is received last."""

    send: Callable[[Any], Any]
    receive: Callable[[], Any]
    last: Any


def of_queue(made: Any) -> Ends:
    """The ends of a queue."""
    return Ends(made.put, made.get, None)


def of_channel() -> Ends:
    """The ends of an unbuffered channel."""
    channel: Any = chan()
    return Ends(channel.send, channel.recv, (None, True))


def ping(there: Ends, back: Ends, seconds: float) -> float:
    """Round trips per second, counted on one side."""
    send, receive = there.send, back.receive
    end = time.perf_counter() + seconds
    began, count = time.perf_counter(), 0
    while time.perf_counter() < end:
        for n in range(CHUNK):
            send(n)
            receive()
        count += CHUNK
    took = time.perf_counter() - began
    send(None)
    return count / took


def pong(there: Ends, back: Ends) -> None:
    """Answer everything until the last."""
    receive, send, last = there.receive, back.send, there.last
    while receive() != last:
        send(1)


def threads(there: Ends, back: Ends) -> Measure:
    """Between two threads; not the main one, which has gevent's hub once greenlets were measured."""

    def measure(seconds: float) -> float:
        rates: list[float] = []
        pair = (
            threading.Thread(target=pong, args=(there, back)),
            threading.Thread(target=lambda: rates.append(ping(there, back, seconds))),
        )
        for thread in pair:
            thread.start()
        for thread in pair:
            thread.join()
        return rates[0]

    return measure


def greenlets(there: Ends, back: Ends) -> Measure:
    """Between two greenlets."""

    def measure(seconds: float) -> float:
        other = gevent.spawn(pong, there, back)
        one = gevent.spawn(ping, there, back, seconds)
        gevent.joinall([one, other], raise_error=True)
        return one.get()

    return measure


def coroutines(make_loop: Any, make: Callable[[], Ends]) -> Measure:
    """Between two tasks of one loop."""

    async def pong(there: Ends, back: Ends) -> None:
        receive, send, last = there.receive, back.send, there.last
        while await receive() != last:
            await send(1)

    async def ping(seconds: float) -> float:
        there, back = make(), make()
        send, receive = there.send, back.receive
        other = asyncio.create_task(pong(there, back))
        end = time.perf_counter() + seconds
        began, count = time.perf_counter(), 0
        while time.perf_counter() < end:
            for n in range(CHUNK):
                await send(n)
                await receive()
            count += CHUNK
        took = time.perf_counter() - began
        await send(None)
        await other
        return count / took

    def measure(seconds: float) -> float:
        with asyncio.Runner(loop_factory=make_loop) as runner:
            return runner.run(ping(seconds))

    return measure


def contests() -> dict[str, tuple[Measure, dict[str, Measure]]]:
    """For each place: how ours is measured, and the others."""

    def both(place: Any, make: Callable[[], Ends]) -> Measure:
        return place(make(), make())

    def awaited(make_loop: Any) -> tuple[Measure, dict[str, Measure]]:
        other = coroutines(make_loop, lambda: of_queue(asyncio.Queue(1)))
        return coroutines(make_loop, of_channel), {"asyncio.Queue(1)": other}

    def against(place: Any, *others: tuple[str, Callable[[], Any]]) -> Any:
        measures = {name: both(place, lambda make=make: of_queue(make())) for name, make in others}
        return both(place, of_channel), measures

    return {
        "greenlets": against(
            greenlets,
            ("gevent.queue.Queue(1)", lambda: gevent.queue.Queue(1)),
            ("gevent.queue.Channel", gevent.queue.Channel),
            ("gevent.queue.SimpleQueue", gevent.queue.SimpleQueue),
        ),
        "threads": against(
            threads,
            ("queue.Queue(1)", lambda: queue.Queue(1)),
            ("queue.SimpleQueue", queue.SimpleQueue),
        ),
        "coroutines, asyncio": awaited(asyncio.new_event_loop),
        "coroutines, uvloop": awaited(uvloop.new_event_loop),
    }


def main() -> None:
    """Measure, and print a line for each."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=0.5)
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    for place, (ours, others) in contests().items():
        rates: dict[str, list[float]] = {"citius.go": []} | {name: [] for name in others}
        for _ in range(options.rounds):
            for name, measure in {"citius.go": ours, **others}.items():
                rates[name].append(measure(options.seconds))
        for name, found in rates.items():
            line = f"{place:22} {name:26} {statistics.median(found):>10,.0f}/s"
            if name != "citius.go":
                each = [a / b for a, b in zip(rates["citius.go"], found, strict=True)]
                ratio = statistics.median(rates["citius.go"]) / statistics.median(found)
                line += (
                    f"   citius.go is {ratio:.2f} times that ({min(each):.2f} to {max(each):.2f})"
                )
            print(line, flush=True)


if __name__ == "__main__":
    main()
