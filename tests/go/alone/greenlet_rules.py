"""The rules of channels between greenlets."""

# pyright: basic

import gevent
from citius.go import WaitGroup, after, chan, go, select, sleep

gevent.get_hub()
for capacity in (0, 1, 5):
    channel = chan(capacity)

    def produce():
        with channel:
            for n in range(500):
                channel.send(n)

    producer = go(produce)
    assert list(channel) == list(range(500))
    producer.join()
    assert channel.recv() == (None, False)
a, b = chan(), chan()
assert select(a, b, after(0.01)).case == 2
go(b.send, 7)
assert select(a, b) == (1, 7, True)
group = WaitGroup()
group.add(100)
results = []


def work(n):
    sleep(0)
    results.append(n)
    group.done()


for n in range(100):
    go(work, n)
group.wait()
assert results == list(range(100))
# A pair that never pauses does not keep others from running.
there, back, stop = chan(), chan(), []
go(lambda: [back.send(n) for n in there])
gevent.spawn_later(0.01, stop.append, 1)
count = 0
while not stop:
    there.send(count)
    assert back.recv() == (count, True)
    count += 1
    assert count < 1_000_000
