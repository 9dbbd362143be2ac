"""All greenlets wait, or all but one that sleeps."""

# pyright: basic

import threading
import time

import gevent
from citius.go import ChannelMisuse, Deadlock, chan, go

gevent.get_hub()
channel = chan()
go(chan().recv)
why = ""
try:
    channel.recv()
except Deadlock as error:
    why = str(error)
assert "all greenlets of this thread wait" in why
# Another thread may send.
threading.Thread(target=lambda: (time.sleep(0.3), channel.send(1))).start()
assert channel.recv() == (1, True)
# A callback of the hub's must not wait.
errors = []


def call():
    try:
        channel.recv()
    except ChannelMisuse as error:
        errors.append(str(error))


gevent.get_hub().loop.run_callback(call)
gevent.sleep(0.01)
assert "spawn a greenlet" in errors[0]
