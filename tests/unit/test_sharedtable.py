"""Values that all workers share: kept, expired, displaced, changed by several processes, torn by a kill."""

# pyright: reportPrivateUsage=false

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


def test_a_value_that_changes_displaces_no_other() -> None:
    """Hostile 10: whatever its length, and however often it is written, deleted and made again."""
    table = SharedTable.alone(256 * 1024)
    for number in range(50):
        assert table.set(b"other %d" % number, b"x" * 500, 1e6)
    random.seed(9)
    for step in range(20_000):
        size = random.randrange(1 << random.randrange(1, 14))
        kind = random.random()
        if kind < 0.2:
            table.delete(b"mine")
        elif kind < 0.4:
            # As a rotation: another name, and the old one is deleted.
            table.delete(b"mine %d" % step)
            table.set(b"mine %d" % step, bytes(size), 1e6)
            table.delete(b"mine %d" % step)
        elif kind < 0.5:
            table.replace(b"mine", bytes(size), 1e6)
        else:
            assert table.set(b"mine", bytes(size), 1e6)
    for number in range(50):
        assert table.get(b"other %d" % number) == b"x" * 500
    assert table.displaced == 0


def test_what_is_read_stays_and_what_is_lost_is_counted() -> None:
    """Hostile 10: new values displace those that were not used for longest; those are counted."""
    table = SharedTable.alone(SIZE)
    table.set(b"read", b"1" * 100, 1e6)
    table.set(b"written", b"2" * 100, 1e6)
    table.set(b"left", b"3" * 100, 1e6)
    for number in range(2000):
        assert table.set(b"new %d" % number, b"x" * 100, 1e6)
        if number % 10 == 0:
            assert table.get(b"read") == b"1" * 100
            assert table.replace(b"written", b"%d" % number * 30, 1e6)
    assert table.get(b"left") is None
    left = sum(table._find(b"new %d" % number) is not None for number in range(2000))
    assert table.displaced > 1000
    # But for those that the index has displaced.
    assert 0 <= 2001 - left - table.displaced < 20


def test_a_value_that_has_expired_leaves_its_region_to_the_next(
    table: SharedTable, clock: Clock
) -> None:
    table.set(b"other", b"1", 1e9)
    for _ in range(5000):
        table.set(b"a", b"x" * 1000, 10)
        clock.now += 20
        assert table.get(b"a") is None
        assert not table.replace(b"a", b"y", 10)
    assert table.get(b"other") == b"1"


def test_regions_fit_and_waste_a_quarter_at_most() -> None:
    from citius.process.sharedtable import _CLASSES, _size_class

    before = (-1, 0)
    for needed in range(1, 100_000):
        number, size = _size_class(needed)
        assert needed <= size <= max(40, needed * 1.25 + 1)
        assert (number, size) == before or (number == before[0] + 1 and size > before[1])
        before = number, size
    assert _size_class((1 << 31) - 1)[0] < _CLASSES


def test_names_cannot_be_made_to_be_one_lock(table: SharedTable) -> None:
    """Hostile 9: the hash is keyed; and a place that this process holds is not given a second time."""
    other = SharedTable.alone(SIZE)
    names = [b"name %d" % number for number in range(2000)]
    assert [table._hash(name) for name in names] != [other._hash(name) for name in names]
    assert len({table._hash(name) for name in names}) == len(names)
    table._hash = lambda key: 7  # type: ignore[method-assign]
    with table.locked(b"a") as first:
        with table.locked(b"b") as second:
            assert (first, second) == (True, False)
        pid = os.fork()
        if pid == 0:
            with table.locked(b"b") as third:
                os._exit(int(third))
        assert os.waitpid(pid, 0)[1] == 0
    with table.locked(b"b") as again:
        assert again


def test_fences_never_go_back(table: SharedTable) -> None:
    """Hostile 9: whatever is in the table; those of several processes are one sequence."""
    begun_us = time.time_ns() // 1000
    last = table.next_fence()
    assert last >= begun_us
    for number in range(3000):
        table.set(b"value %d" % number, bytes(300), 1e6)
        fence = table.next_fence()
        assert fence > last
        assert table.fence == fence
        last = fence

    def work(number: int) -> None:
        for _ in range(500):
            table.next_fence()

    for pid in _in_children(3, work):
        os.waitpid(pid, 0)
    assert table.next_fence() > last + 1500
    last = table.fence
    # Another table is a server that was restarted, however fast these were given.
    assert SharedTable.alone(1 << 16).next_fence() > last


def test_a_kill_in_any_write_leaves_a_table_that_works() -> None:
    """Values of all lengths, deleted and made again by several processes that are killed."""
    table = SharedTable.alone(1 << 20)

    def work(number: int) -> None:
        random.seed(number)
        while True:
            key = b"key-%d" % random.randrange(40)
            kind = random.random()
            if kind < 0.3:
                table.delete(key)
            elif kind < 0.5:
                table.get(key)
            else:
                table.set(key, key * random.randrange(400), 1e6)

    random.seed(6)
    for _ in range(15):
        pids = _in_children(2, work)
        time.sleep(random.random() * 0.02)  # a kill at any instant
        for pid in pids:
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
        for number in range(40):
            key = b"key-%d" % number
            got = table.get(key)
            assert got is None or got == key * (len(got) // len(key))
    for number in range(40):
        assert table.set(b"key-%d" % number, b"%d" % number * 100, 1e6)
    assert all(table.get(b"key-%d" % n) == b"%d" % n * 100 for n in range(40))


def test_a_value_that_is_set_if_absent_keeps_its_time_and_is_discarded_by_its_value() -> None:
    now = 0.0
    table = SharedTable.alone(1 << 20, clock=lambda: now)
    assert table.set_if_absent(b"a", b"one", 10) == b"one"
    now = 9.0
    assert table.set_if_absent(b"a", b"two", 10) == b"one"
    assert not table.discard(b"a", b"two")
    assert table.get(b"a") == b"one"
    now = 11.0
    assert table.set_if_absent(b"a", b"two", 10) == b"two"
    assert table.discard(b"a", b"two")
    assert not table.discard(b"a", b"two")
    assert table.get(b"a") is None
    with pytest.raises(ValueError, match="bytes are too many"):
        table.set_if_absent(b"a", b"x" * (1 << 20), 10)
