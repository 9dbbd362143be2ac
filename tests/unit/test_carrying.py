"""What an event loop sends leaves by a cursor: nothing is copied for each piece that a socket takes."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from citius.process.carrying import Carried


class Socket:
    """One that takes little at a time, and then nothing."""

    def __init__(self) -> None:
        self.taken: list[bytes] = []
        self.sources: list[object] = []
        self.room = 0

    def send(self, data: memoryview) -> int:
        if not self.room:
            raise BlockingIOError
        self.sources.append(data.obj)
        part = bytes(data[: self.room])
        self.room -= len(part)
        self.taken.append(part)
        return len(part)


def test_what_waits_is_not_copied() -> None:
    outputs = [b"a" * 10, b"", b"b" * 5]
    made: Any = Socket()
    home: Any = SimpleNamespace(watch=lambda *_: None)
    carried: Any = Carried(home, made)
    carried.core = SimpleNamespace(take_output=lambda: outputs.pop(0) if outputs else b"")
    first = outputs[0]
    for room in (4, 0, 3):
        made.room = room
        carried._flush()
    # The rest of the first, and in the same look what has come since.
    assert (len(outputs), b"".join(made.taken)) == (2, first[:7])
    assert all(source is first for source in made.sources)
    outputs.pop(0)
    made.room = 5
    carried._flush()
    made.room = 100
    carried._flush()
    assert b"".join(made.taken) == first + b"b" * 5
    assert not carried._unsent
