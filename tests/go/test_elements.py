"""Channels whose values native code can use, as Python sees them."""

from __future__ import annotations

import asyncio
import gc
import struct
import threading
import types
import weakref
from typing import Any

import pytest
from citius.go import Chan, chan, select


@pytest.mark.parametrize(
    ("kind", "values"),
    [
        (int, [0, 1, -(2**63), 2**63 - 1]),
        (float, [0.0, -1.5, float("inf")]),
        (bool, [True, False]),
        (bytes, [b"", b"abc", bytes(1000)]),
        (types.NoneType, [None]),
        ("<qd", [(1, 2.5), (-7, 0.0)]),
        ("=i", [3, -4]),
        (struct.Struct("4sB"), [(b"abcd", 7)]),
        (object, [object(), None, "x"]),
        (None, [1, "x"]),
    ],
)
def test_values_come_out_as_they_went_in(kind: Any, values: list[Any]) -> None:
    channel = chan(len(values), type=kind)
    for value in values:
        channel.send(value)
    assert len(channel) == len(values)
    assert [channel.recv() for _ in values] == [(value, True) for value in values]
    channel.close()
    assert channel.recv() == (None, False)


@pytest.mark.parametrize(
    ("kind", "value", "message"),
    [
        (int, "1", "expected a value for a channel of int, got str"),
        (int, 1.0, "expected a value for a channel of int, got float"),
        (float, "x", "expected a value for a channel of float, got str"),
        (bool, 1, "expected a value for a channel of bool, got int"),
        (bytes, "x", "expected a value for a channel of bytes, got str"),
        (types.NoneType, 0, "expected a value for a channel of None, got int"),
    ],
)
def test_what_does_not_fit_is_refused(kind: Any, value: Any, message: str) -> None:
    channel = chan(1, type=kind)
    with pytest.raises(TypeError, match=message):
        channel.send(value)
    with pytest.raises(TypeError, match=message):
        select((channel, value))
    assert len(channel) == 0


def test_an_integer_that_does_not_fit_64_bits() -> None:
    with pytest.raises(OverflowError, match="9223372036854775808 does not fit the 64 bits"):
        chan(1, type=int).send(2**63)


@pytest.mark.parametrize("kind", ["<zz", 5, list, "a type"])
def test_types_that_there_are_not(kind: Any) -> None:
    with pytest.raises((TypeError, struct.error)):
        chan(1, type=kind)


def test_arrays_are_copied() -> None:
    numpy = pytest.importorskip("numpy")
    channel = chan(2, type=numpy.dtype("f8"))
    array = numpy.arange(5.0)
    channel.send(array)
    array[:] = 0
    channel.send([1, 2])
    received, _ = channel.recv()
    assert received.tolist() == [0, 1, 2, 3, 4]
    received[0] = 7  # it is its receiver's
    assert channel.recv()[0].tolist() == [1.0, 2.0]
    with pytest.raises(TypeError, match="one dimension"):
        channel.send(numpy.zeros((2, 2)))


def test_typed_values_meet_waiting_receivers_of_every_kind() -> None:
    numbers: Chan[int] = chan(type=int)
    got: list[Any] = []
    thread = threading.Thread(target=lambda: got.extend(numbers))
    thread.start()
    for n in range(5):
        numbers.send(n)
    numbers.close()
    thread.join()
    assert got == [0, 1, 2, 3, 4]

    async def main() -> list[Any]:
        channel = chan(type="<ii")
        task = asyncio.create_task(send(channel))
        values = [value async for value in channel]
        await task
        return values

    async def send(channel: Chan[Any]) -> None:
        for n in range(3):
            await channel.send((n, -n))
        channel.close()

    assert asyncio.run(main()) == [(0, 0), (1, -1), (2, -2)]


def test_objects_in_a_channel_are_dropped_with_it() -> None:
    class Thing:
        pass

    channel = chan(2)
    things = [Thing(), Thing()]
    references = [weakref.ref(thing) for thing in things]
    for thing in things:
        channel.send(thing)
    del things, thing
    assert all(reference() is not None for reference in references)
    del channel
    assert all(reference() is None for reference in references)


def test_a_cycle_through_a_channel_is_collected() -> None:
    class Thing:
        pass

    thing: Any = Thing()
    thing.channel = chan(1)
    thing.channel.send(thing)
    reference = weakref.ref(thing)
    del thing
    gc.collect()
    assert reference() is None
