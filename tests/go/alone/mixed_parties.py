"""Threads, greenlets and coroutines of two loops send and receive on two channels of the given capacity."""

# pyright: basic

import asyncio
import random
import sys
import threading
from typing import Any

import gevent
import uvloop
from citius.go import WaitGroup, after, chan, select

CAPACITY, EACH = int(sys.argv[1]), 300
a, b = chan(CAPACITY), chan(CAPACITY)
senders, got, lock = WaitGroup(), [], threading.Lock()


def note(value):
    with lock:
        got.append(value)


def send(name):
    for n in range(EACH):
        if n % 3:
            (a, b)[n % 2].send((name, n))
        else:
            select((a, (name, n)), (b, (name, n)))
    senders.done()


def receive():
    open: list[Any] = [a, b]
    while any(open):
        case: Any
        case, value, ok = select(*open, after(5) if random.random() < 0.02 else None)
        if ok and case < 2:
            note(value)
        elif case < 2:
            open[case] = None


async def asend(name):
    for n in range(EACH):
        if n % 3:
            await (a, b)[n % 2].send((name, n))
        else:
            await select((a, (name, n)), (b, (name, n)))
    senders.done()


async def areceive():
    open: list[Any] = [a, b]
    while any(open):
        operation = asyncio.ensure_future(take(open))
        if random.random() < 0.1:
            await asyncio.sleep(0)
            operation.cancel()
        case: Any
        try:
            case, value, ok = await operation
        except asyncio.CancelledError:
            continue
        if ok:
            note(value)
        else:
            open[case] = None


async def take(open):
    return await select(*open)


def hub(name):
    greenlets = [gevent.spawn(send, (name, n)) for n in range(3)]
    greenlets += [gevent.spawn(receive) for _ in range(3)]
    gevent.joinall(greenlets, raise_error=True)


def loop(name, factory):
    async def main():
        work = [asend((name, n)) for n in range(3)] + [areceive() for _ in range(3)]
        await asyncio.gather(*work)

    with asyncio.Runner(loop_factory=factory) as runner:
        runner.run(main())


parties = [
    threading.Thread(target=hub, args=("hub 1",)),
    threading.Thread(target=hub, args=("hub 2",)),
    threading.Thread(target=loop, args=("asyncio", asyncio.new_event_loop)),
    threading.Thread(target=loop, args=("uvloop", uvloop.new_event_loop)),
    *[threading.Thread(target=send, args=(("thread", n),)) for n in range(2)],
    *[threading.Thread(target=receive) for n in range(2)],
]
senders.add(14)
for party in parties:
    party.start()
senders.wait()
a.close()
b.close()
for party in parties:
    party.join()
assert len(got) == len(set(got)) == 14 * EACH, (len(got), len(set(got)))
print("all", len(got))
