"""A greenlet that is killed while it receives takes no value with it."""

# pyright: basic

import gevent
from citius.go import chan

gevent.get_hub()
got = []


def receive():
    got.append(channel.recv()[0])


for late in (False, True):
    channel = chan()
    doomed = gevent.spawn(receive)
    gevent.sleep(0)
    doomed.kill(block=False)
    if late:
        channel.send("x")  # it has been handed over, and not taken
    doomed.join()
    assert got == []
    if late:
        assert channel.recv() == ("x", True)
    else:
        assert repr(channel) == "<Chan 0/0, 0 receiving, 0 sending>"
# A timeout around a wait.
try:
    with gevent.Timeout(0.01):
        channel.recv()
except gevent.Timeout:
    pass
else:
    raise AssertionError


# The killed one may wait elsewhere without being disturbed.
def patient():
    try:
        channel.recv()
    finally:
        gevent.sleep(0.02)
        got.append("slept")


one = gevent.spawn(patient)
gevent.sleep(0)
one.kill(block=False)
channel.send(1)
one.join()
assert got == ["slept"], got
assert channel.recv() == (1, True)
