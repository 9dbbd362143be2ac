"""All threads wait, or all but one that is busy."""

# pyright: basic

import logging
import time

from citius.go import Deadlock, after, chan, go, select

logging.disable()


def fail():
    raise ZeroDivisionError


channel = chan()
go(chan().recv)
go(fail)
began = time.monotonic()


def late():
    time.sleep(0.6)
    channel.send("late")


go(late)
assert channel.recv() == ("late", True)
assert time.monotonic() - began > 0.5
# A pending `after` counts as a sender.
assert select(channel, after(0.6)).case == 1
try:
    channel.recv()
except Deadlock:
    pass
else:
    raise AssertionError
