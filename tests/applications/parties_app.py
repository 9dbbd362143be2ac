"""Parties of all kinds on the channels c0 to c3; see tests/goroutines/test_parties.py.

Those that send take a range of values; those that receive go on until the channels are closed.
"""

# pyright: basic

import array
import ctypes
import os
import random
import threading
from typing import Any

from citius import App, load_handlers
from citius.go import after, chan, select, share

LIBRARY = os.environ["PARTIES_LIBRARY"]
CAPACITIES = [int(capacity) for capacity in os.environ["PARTIES_CAPACITIES"].split(",")]

app = App()
handlers = load_handlers(LIBRARY)
account = ctypes.CDLL(LIBRARY)
account.received_times.restype = ctypes.c_int64
account.received_times.argtypes = [ctypes.c_int64, ctypes.c_int]
channels = [chan(capacity, type=int) for capacity in CAPACITIES]
for number, channel in enumerate(channels):
    share(f"c{number}", channel)

for name in ("sends", "receives", "drains"):
    app.get(f"/reactor/{name}", compiled=handlers[name], serial=True)
    app.get(f"/pool/{name}", compiled=handlers[name], serial=True, pool=True)


@app.get("/close")
async def close() -> str:
    for channel in channels:
        channel.close()
    return "closed"


@app.get("/received/{times:int}")
async def received(times: int, count: int) -> str:
    return str(account.received_times(count, times))


def note_all(values: array.array) -> str:
    address, count = values.buffer_info()
    assert account.note_all(ctypes.c_void_p(address), ctypes.c_size_t(count)) == 0
    return str(count)


def pick(dice: random.Random, value: int) -> tuple[float, Any, list[Any]]:
    return dice.random(), dice.choice(channels), [(dice.choice(channels), value) for _ in range(2)]


def wanted(dice: random.Random, open_: list[Any]) -> tuple[list[Any], bool]:
    """The cases of the next select, and whether it has a default."""
    luck = dice.random()
    timer = [after(0.00002)] if luck < 0.02 else []
    return [*open_, *timer], 0.02 < luck < 0.1


def send_all(first: int, count: int, seed: int) -> str:
    dice = random.Random(seed)
    value, end = first, first + count
    while value < end:
        luck, channel, cases = pick(dice, value)
        if luck < 0.1:
            if select(*cases, default=True).case is None:
                continue
        elif luck < 0.5:
            select(*cases)
        else:
            channel.send(value)
        value += 1
    return str(count)


def receive_all(seed: int) -> str:
    dice = random.Random(seed)
    open_: list[Any] = list(channels)
    got = array.array("q")
    while any(open_):
        cases, has_default = wanted(dice, open_)
        case, value, ok = select(*cases, default=has_default)
        if case is None or case >= len(channels):
            continue
        if ok:
            got.append(value)
        else:
            open_[case] = None
    return note_all(got)


@app.get("/async/sends")
async def async_sends(first: int, count: int, seed: int) -> str:
    dice = random.Random(seed)
    value, end = first, first + count
    while value < end:
        luck, channel, cases = pick(dice, value)
        if luck < 0.1:
            if (await select(*cases, default=True)).case is None:
                continue
        elif luck < 0.5:
            await select(*cases)
        else:
            await channel.send(value)
        value += 1
    return str(count)


@app.get("/async/receives")
async def async_receives(seed: int) -> str:
    dice = random.Random(seed)
    open_: list[Any] = list(channels)
    got = array.array("q")
    while any(open_):
        cases, has_default = wanted(dice, open_)
        case, value, ok = await select(*cases, default=has_default)
        if case is None or case >= len(channels):
            continue
        if ok:
            got.append(value)
        else:
            open_[case] = None
    return note_all(got)


def add(kind: str, run: Any, **options: Any) -> None:
    """Routes of a kind of party whose code blocks; `run` calls the code where it belongs."""

    @app.get(f"/{kind}/sends", **options)
    def sends(first: int, count: int, seed: int) -> str:
        return run(send_all, first, count, seed)

    @app.get(f"/{kind}/receives", **options)
    def receives(seed: int) -> str:
        return run(receive_all, seed)


def in_thread(function: Any, *arguments: int) -> str:
    results: list[str] = []
    thread = threading.Thread(target=lambda: results.append(function(*arguments)))
    thread.start()
    thread.join()
    return results[0]


def here(function: Any, *arguments: int) -> str:
    return function(*arguments)


add("serial", here, serial=True)
add("blocking", here, blocking=True)
add("thread", in_thread, blocking=True)
