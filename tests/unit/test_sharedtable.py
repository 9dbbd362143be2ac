"""Values that all workers share: kept, expired, displaced, changed by several processes, torn by a kill."""

from __future__ import annotations

import os
import random
import signal
import time

import pytest
from citius.process.sharedtable import SharedTable

SIZE = 64 * 1024


class Clock:
    now = 100.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def table(clock: Clock) -> SharedTable:
    return SharedTable.alone(SIZE, clock=clock)


def test_values_are_kept_replaced_and_deleted(table: SharedTable, clock: Clock) -> None:
    assert table.get(b"a") is None
    assert table.set(b"a", b"1", 10)
    assert table.get(b"a") == b"1"
    assert table.set(b"a", b"2" * 100, 10)
    assert table.get(b"a") == b"2" * 100
    assert table.replace(b"a", b"3", 10)
    assert not table.replace(b"b", b"3", 10)
    assert table.get(b"b") is None
    assert table.delete(b"a")
    assert not table.delete(b"a")
    assert table.get(b"a") is None
    assert table.set(b"", b"", 10)
    assert table.get(b"") == b""


def test_values_expire(table: SharedTable, clock: Clock) -> None:
    table.set(b"a", b"1", 10)
    clock.now += 9.9
    assert table.get(b"a") == b"1"
    clock.now += 0.2
    assert table.get(b"a") is None
    assert not table.replace(b"a", b"2", 10)


def test_a_value_that_is_too_long_is_refused(table: SharedTable) -> None:
    assert not table.set(b"a", bytes(SIZE // 2), 10)
    assert table.set(b"a", bytes(table.value_bytes_max - 100), 10)


def test_it_agrees_with_a_dict_but_for_what_was_displaced(table: SharedTable) -> None:
    random.seed(3)
    expected: dict[bytes, bytes] = {}
    found = 0
    for step in range(20_000):
        key = b"key-%d" % random.randrange(200)
        if random.random() < 0.5:
            value = random.randbytes(random.randrange(600))
            assert table.set(key, value, 1e6)
            expected[key] = value
        elif random.random() < 0.1:
            table.delete(key)
            expected.pop(key, None)
        else:
            got = table.get(key)
            assert got is None or got == expected.get(key), step
            found += got is not None
    assert found > 3000
    # The last ones are there, whatever their number.
    for number in range(20):
        table.set(b"last-%d" % number, b"x" * 100, 1e6)
    assert all(table.get(b"last-%d" % number) == b"x" * 100 for number in range(20))


def _in_children(count: int, work: object) -> list[int]:
    pids: list[int] = []
    for number in range(count):
        pid = os.fork()
        if pid == 0:
            try:
                work(number)  # type: ignore[operator]
            finally:
                os._exit(0)
        pids.append(pid)
    return pids


def test_changes_of_several_processes_are_all_made(table: SharedTable) -> None:
    def work(number: int) -> None:
        for _ in range(300):
            table.update(b"n", lambda old: b"%d" % (int(old or b"0") + 1), 1e6)

    for pid in _in_children(4, work):
        os.waitpid(pid, 0)
    assert table.get(b"n") == b"1200"


def test_workers_that_are_killed_leave_no_lock_and_no_torn_value(table: SharedTable) -> None:
    values = [bytes([number]) * 2000 for number in range(256)]

    def work(number: int) -> None:
        random.seed(number)
        while True:
            table.set(b"key-%d" % random.randrange(8), random.choice(values), 1e6)

    random.seed(5)
    for _ in range(20):
        pids = _in_children(2, work)
        time.sleep(random.random() * 0.01)  # a kill at any instant
        for pid in pids:
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
        for number in range(8):
            got = table.get(b"key-%d" % number)
            assert got is None or got in values
    assert table.set(b"after", b"1", 10)
    assert table.get(b"after") == b"1"


def test_locks_by_name_are_of_one_process_at_a_time(table: SharedTable) -> None:
    ours, its = os.pipe(), os.pipe()
    with table.locked(b"job") as held:
        assert held
        pid = os.fork()
        if pid == 0:
            with table.locked(b"job") as taken, table.locked(b"other") as other:
                os.write(ours[1], b"%d%d" % (taken, other))
            os.read(its[0], 1)
            with table.locked(b"job") as taken:
                os.write(ours[1], b"%d" % taken)
                os.kill(os.getpid(), signal.SIGKILL)
        assert os.read(ours[0], 2) == b"01"
    os.write(its[1], b"x")
    assert os.read(ours[0], 1) == b"1"
    os.waitpid(pid, 0)
    with table.locked(b"job") as held:
        assert held
