"""Channels between greenlets that gevent has made of threads."""

# pyright: basic

# ruff: noqa: E402 (gevent patches what is imported behind it)
from gevent import monkey

monkey.patch_all()

import threading
import time

from citius.go import after, chan, go, select

channel = chan()


def produce():
    with channel:
        for n in range(3):
            time.sleep(0.001)
            channel.send((n, threading.current_thread().name))


go(produce)
assert [n for n, _ in channel] == [0, 1, 2]
assert select(chan(), after(0.01)).case == 1
