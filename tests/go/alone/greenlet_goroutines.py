"""Goroutines that are greenlets."""

# pyright: basic

import contextlib
import contextvars
import logging

import gevent
from citius.go import chan, go

gevent.get_hub()
colour = contextvars.ContextVar("colour")
colour.set("red")
records = []
handler = logging.Handler()
handler.emit = lambda record: records.append(record)
logging.getLogger("citius.go").addHandler(handler)
assert go(lambda n: (n, colour.get(), type(gevent.getcurrent()).__name__), 3).join() == (
    3,
    "red",
    "Greenlet",
)


def fail():
    raise LookupError("nothing there")


goroutine = go(fail)
with contextlib.suppress(LookupError):
    goroutine.join()
assert len(records) == 1
assert records[0].exc_info[0] is LookupError
for started in (False, True):
    waiting = go(chan().recv)
    if started:
        gevent.sleep(0)
    assert waiting.cancel()
    try:
        waiting.join()
    except gevent.GreenletExit:
        pass
    else:
        raise AssertionError
assert len(records) == 1
