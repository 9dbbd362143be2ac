"""Values that go to the other side and back: between greenlets, threads and coroutines.

A request makes so many round trips that what the server takes for it does not count. `PING_PONG` names what
carries the values: `channel`, `queue`, `simple-queue` or `gevent-channel`.
"""

import asyncio
import os
import queue
import threading
from concurrent.futures import ThreadPoolExecutor

import gevent
import gevent.queue
import uvloop
from citius import App
from citius.go import chan

KIND = os.environ["PING_PONG"]
QUEUES = {
    ("queue", "greenlets"): lambda: gevent.queue.Queue(1),
    ("queue", "threads"): lambda: queue.Queue(1),
    ("queue", "asyncio"): lambda: asyncio.Queue(1),
    ("queue", "uvloop"): lambda: asyncio.Queue(1),
    ("simple-queue", "greenlets"): gevent.queue.SimpleQueue,
    ("simple-queue", "threads"): queue.SimpleQueue,
    ("gevent-channel", "greenlets"): gevent.queue.Channel,
}
app = App()
# Not the main thread: it has the server's loop, and gevent's hub and the loops here are those of this thread.
aside = ThreadPoolExecutor(1)


def ends(place):
    """Return how to send and how to receive, and what takes the value out of what is received."""
    if KIND == "channel":
        channel = chan()
        return channel.send, channel.recv, lambda received: received[0]
    made = QUEUES[KIND, place]()
    return made.put, made.get, lambda received: received


def ping(send, receive, value, trips):
    """Send, and add up what comes back."""
    total = 0
    for n in range(trips):
        send(n)
        total += value(receive())
    return total


def pong(send, receive, value, trips):
    """Send everything back."""
    for _ in range(trips):
        send(value(receive()))


async def async_ping(send, receive, value, trips):
    """Send, and add up what comes back."""
    total = 0
    for n in range(trips):
        await send(n)
        total += value(await receive())
    return total


async def async_pong(send, receive, value, trips):
    """Send everything back."""
    for _ in range(trips):
        await send(value(await receive()))


def greenlets(trips):
    """Between two greenlets of this thread."""
    (send, receive_there, value), (send_back, receive, _) = ends("greenlets"), ends("greenlets")
    other = gevent.spawn(pong, send_back, receive_there, value, trips)
    one = gevent.spawn(ping, send, receive, value, trips)
    gevent.joinall([one, other], raise_error=True)
    return one.get()


def threads(trips):
    """Between this thread and another."""
    (send, receive_there, value), (send_back, receive, _) = ends("threads"), ends("threads")
    other = threading.Thread(target=pong, args=(send_back, receive_there, value, trips))
    other.start()
    total = ping(send, receive, value, trips)
    other.join()
    return total


def coroutines(place, make_loop):
    """Return what does it between two tasks of a loop, which is this thread's and stays."""
    runner = asyncio.Runner(loop_factory=make_loop)

    async def both(trips):
        (send, receive_there, value), (send_back, receive, _) = ends(place), ends(place)
        other = asyncio.create_task(async_pong(send_back, receive_there, value, trips))
        total = await async_ping(send, receive, value, trips)
        await other
        return total

    return lambda trips: runner.run(both(trips))


PLACES = {
    "greenlets": greenlets,
    "threads": threads,
    "asyncio": coroutines("asyncio", asyncio.new_event_loop),
    "uvloop": coroutines("uvloop", uvloop.new_event_loop),
}


@app.get("/ping-pong/{place}")
def ping_pong(place: str, trips: int):
    return str(aside.submit(PLACES[place], trips).result())
