"""A table of keys and values that all workers of a server share: sessions, cached values, presence.

Values are in a ring, each in a region of its own; an index in front of it, of sets of eight places, says
where a key's value is. A value that changes stays in its region while it fits, and regions that were given up
are taken again. So the ring goes on only for what is new, and a new region takes the place of the oldest one:
of a value that was neither read nor written for three quarters of the ring, for one that was is moved to its
front. A place whose value has been overwritten, or is another key's, is empty. So nothing has to be cleaned
up, and a worker that is killed in the middle of a write leaves a value that its checksum gives away.

Keys are found by a hash that is keyed with a secret of the memory: clients that choose keys cannot choose
which of them displace one another, nor which locks are the same.

The memory is anonymous, made by the supervisor before it forks; pages that nothing writes to are never
allocated. The lock is a lock of the kernel on a file in memory (``fcntl``), which ends with the process
that holds it. Tests: tests/unit/test_sharedtable.py.
"""

from __future__ import annotations

import fcntl
import mmap
import os
import struct
import threading
import time
import zlib
from contextlib import contextmanager
from hashlib import blake2b
from typing import TYPE_CHECKING, Final, NamedTuple

from citius.process.sharedmemory import (
    SECRET_AT,
    SECRET_BYTES,
    TABLES,
    put_secret,
    table_memory,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Generator

_WAYS: Final = 8
# One place of the index for so many bytes of the memory, so that a set seldom has more short sessions.
_BYTES_PER_PLACE: Final = 64
# At the beginning: the ring's front, how many values were displaced, the last fence, the oldest region, the
# secret of the hash.
_COUNT: Final = struct.Struct("=Q")
_FRONT_AT, _DISPLACED_AT, _FENCE_AT, _OLDEST_AT = 0, 8, 16, 24
_PLACE: Final = struct.Struct("=QQ")  # hash of the key, 1 + where its value begins
# Bytes of the key, of the value, of the region; when it expires, checksum.
_VALUE: Final = struct.Struct("=IIIdI")
# Regions have one of four sizes in each power of two, so that few are given up as a value grows.
_SMALLEST_BITS: Final = 5
_CLASSES: Final = 4 * (32 - _SMALLEST_BITS)
# For how many regions that were given up it is remembered, of each size.
_FREE_MIN, _FREE_MAX = 4, 256
# What precedes locks by name on the descriptor of the locks: one of each table.
_NAMED_LOCKS_AT: Final = 64


class SharedTable:
    """Values by their keys, each for a time.

    Args:
        memory: What they are in, which all processes share.
        lock_fd: A file, which forked processes inherit; its locks of the kernel are the table's.
        place: Which of them is its own.
        clock: Seconds that never go back, the same in all processes.
    """

    def __init__(
        self,
        memory: mmap.mmap,
        lock_fd: int,
        place: int = 0,
        *,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._memory = memory
        self._sets = max(1, len(memory) // _BYTES_PER_PLACE // _WAYS)
        self._free_max = min(max(_FREE_MIN, len(memory) >> 18), _FREE_MAX)
        self._free_at = SECRET_AT + SECRET_BYTES
        self._index_at = self._free_at + _CLASSES * (self._free_max + 1) * _COUNT.size
        self._ring_at = self._index_at + self._sets * _WAYS * _PLACE.size
        self._ring_bytes = len(memory) - self._ring_at
        self.value_bytes_max = self._ring_bytes // 8
        """Bytes that one value may have, with its key."""
        self._clock = clock
        self._lock_fd = lock_fd
        self._place = place
        self._lock = threading.RLock()
        self._named: set[int] = set()
        """Places of the locks by name that this process holds."""
        self._pid = os.getpid()
        if not any(memory[SECRET_AT : SECRET_AT + SECRET_BYTES]):
            put_secret(memory)  # it is this process' alone so far

    @classmethod
    def alone(cls, size: int, *, clock: Callable[[], float] = time.monotonic) -> SharedTable:
        """A table of this process and those that it forks."""
        fd = os.memfd_create("citius-table", os.MFD_CLOEXEC)
        return cls(mmap.mmap(-1, size), fd, clock=clock)

    def get(self, key: bytes) -> bytes | None:
        """The value of ``key``, ``None`` if there is none or it has expired."""
        with self._locked():
            found = self._find(key)
            if found is None:
                return None
            if self._is_old(found.at):
                self._write(key, found.value, found.expires_at, None)
            return found.value

    def set(self, key: bytes, value: bytes, max_age_s: float) -> bool:
        """Keep a value for so long; ``False`` if it is too long to be kept."""
        with self._locked():
            return self._set(key, value, max_age_s, self._find(key, or_expired=True))

    def replace(self, key: bytes, value: bytes, max_age_s: float) -> bool:
        """Replace the value of a key; ``False`` if the key has none or the value is too long."""
        with self._locked():
            found = self._find(key)
            return found is not None and self._set(key, value, max_age_s, found)

    def delete(self, key: bytes) -> bool:
        """Forget a value; whether there was one."""
        with self._locked():
            found = self._find(key)
            if found is not None:
                self._forget(found)
            return found is not None

    def discard(self, key: bytes, value: bytes) -> bool:
        """Forget a value if it is this one; whether it was."""
        with self._locked():
            found = self._find(key)
            if found is None or found.value != value:
                return False
            self._forget(found)
            return True

    def set_if_absent(self, key: bytes, value: bytes, max_age_s: float) -> bytes:
        """Keep a value for so long unless the key has one, whose time stays as it is.

        Returns:
            The value that the key has then.

        Raises:
            ValueError: The value is too long to be kept.
        """
        with self._locked():
            found = self._find(key)
            if found is not None:
                return found.value
            if not self._set(key, value, max_age_s, None):
                raise self._too_long(key, value)
            return value

    def update(
        self, key: bytes, change: Callable[[bytes | None], bytes | None], max_age_s: float
    ) -> bytes | None:
        """Replace a value by what ``change`` makes of it, with no change of another worker in between.

        Raises:
            ValueError: That is too long to be kept.
        """
        with self._locked():
            found = self._find(key)
            value = change(None if found is None else found.value)
            if value is None:
                if found is not None:
                    self._forget(found)
            elif not self._set(key, value, max_age_s, found):
                raise self._too_long(key, value)
            return value

    def _too_long(self, key: bytes, value: bytes) -> ValueError:
        return ValueError(
            f"{len(key) + len(value)} bytes are too many for memory of all workers: "
            f"{self.value_bytes_max} can be kept"
        )

    def next_fence(self) -> int:
        """A number that is higher than all before, also over a restart.

        It is the time in microseconds, or one more than the last one if that is higher.
        """
        with self._locked():
            (last,) = _COUNT.unpack_from(self._memory, _FENCE_AT)
            fence = max(last + 1, time.time_ns() // 1000)
            _COUNT.pack_into(self._memory, _FENCE_AT, fence)
            return fence

    @property
    def fence(self) -> int:
        """The last number that ``next_fence`` has given in any worker; read without the lock."""
        return _COUNT.unpack_from(self._memory, _FENCE_AT)[0]

    @property
    def displaced(self) -> int:
        """Values that newer ones have displaced before they had expired."""
        (count,) = _COUNT.unpack_from(self._memory, _DISPLACED_AT)
        return count

    @contextmanager
    def locked(self, key: bytes) -> Generator[bool]:
        """Try to hold the lock of a name, over all workers; whether it is held."""
        place = _NAMED_LOCKS_AT + self._hash(key) % (1 << 62)
        with self._lock:
            if self._pid != os.getpid():
                # A forked process has none of them.
                self._pid, self._named = os.getpid(), set()
            # The kernel's locks are those of processes: a name of the same place would end them.
            is_free = place not in self._named
            self._named.add(place)
        try:
            if is_free:
                fcntl.lockf(self._lock_fd, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, place)
        except OSError:
            self._named.discard(place)
            is_free = False
        if not is_free:
            yield False
            return
        try:
            yield True
        finally:
            fcntl.lockf(self._lock_fd, fcntl.LOCK_UN, 1, place)
            self._named.discard(place)

    @contextmanager
    def _locked(self) -> Generator[None]:
        with self._lock:
            fcntl.lockf(self._lock_fd, fcntl.LOCK_EX, 1, self._place)
            try:
                yield
            finally:
                fcntl.lockf(self._lock_fd, fcntl.LOCK_UN, 1, self._place)

    def _find(self, key: bytes, *, or_expired: bool = False) -> _Found | None:
        """The place of a key and its value."""
        wanted = self._hash(key)
        for place in self._places(wanted):
            hashed, at = _PLACE.unpack_from(self._memory, place)
            if hashed == wanted and at:
                found = self._read(place, at - 1, key) if self._is_there(at - 1) else None
                is_kept = found is not None and (or_expired or found.expires_at > self._clock())
                return found if is_kept else None
        return None

    def _hash(self, key: bytes) -> int:
        """Keys whose hashes are the same displace one another; nothing else depends on it."""
        return int.from_bytes(blake2b(key, digest_size=8, key=self._secret).digest(), "little")

    @property
    def _secret(self) -> bytes:
        return self._memory[SECRET_AT : SECRET_AT + SECRET_BYTES]

    def _places(self, hashed: int) -> range:
        begin = self._index_at + hashed % self._sets * _WAYS * _PLACE.size
        return range(begin, begin + _WAYS * _PLACE.size, _PLACE.size)

    @property
    def _front(self) -> int:
        (front,) = _COUNT.unpack_from(self._memory, _FRONT_AT)
        return front

    def _is_there(self, at: int) -> bool:
        """Whether a region has not been overwritten."""
        front = self._front
        return at < front <= at + self._ring_bytes

    def _is_old(self, at: int) -> bool:
        """Whether it is among the next ones to be overwritten."""
        return at + self._ring_bytes - self._front < self._ring_bytes // 4

    def _read(self, place: int, at: int, key: bytes) -> _Found | None:
        begin = self._ring_at + at % self._ring_bytes
        fields: tuple[int, int, int, float, int] = _VALUE.unpack_from(self._memory, begin)
        key_bytes, value_bytes, size, expires_at, checksum = fields
        key_at = begin + _VALUE.size
        value_at = key_at + key_bytes
        end = value_at + value_bytes
        if end > len(self._memory):
            return None
        if self._memory[key_at:value_at] != key:
            return None
        value = self._memory[value_at:end]
        if zlib.crc32(value, zlib.crc32(key)) != checksum:
            return None
        return _Found(place, at, size, expires_at, value)

    def _set(self, key: bytes, value: bytes, max_age_s: float, found: _Found | None) -> bool:
        if _VALUE.size + len(key) + len(value) > self.value_bytes_max:
            return False
        self._write(key, value, self._clock() + max_age_s, found)
        return True

    def _write(self, key: bytes, value: bytes, expires_at: float, found: _Found | None) -> None:
        """Write a value where it is, or into another region."""
        needed = _VALUE.size + len(key) + len(value)
        if found is not None and needed <= found.size and not self._is_old(found.at):
            at, size = found.at, found.size
        else:
            at, size = self._region(needed)
        begin = self._ring_at + at % self._ring_bytes
        checksum = zlib.crc32(value, zlib.crc32(key))
        _VALUE.pack_into(self._memory, begin, len(key), len(value), size, expires_at, checksum)
        key_at = begin + _VALUE.size
        value_at = key_at + len(key)
        self._memory[key_at:value_at] = key
        self._memory[value_at : value_at + len(value)] = value
        if found is None or at != found.at:
            self._enter(self._hash(key), at)
            if found is not None:
                self._give_up(found.at, found.size)

    def _forget(self, found: _Found) -> None:
        _PLACE.pack_into(self._memory, found.place, 0, 0)
        self._give_up(found.at, found.size)

    def _region(self, needed: int) -> tuple[int, int]:
        """A region for so many bytes: one that was given up, or the next one of the ring."""
        number, size = _size_class(needed)
        stack = self._stack(number)
        (count,) = _COUNT.unpack_from(self._memory, stack)
        while count:
            (at,) = _COUNT.unpack_from(self._memory, stack + count * _COUNT.size)
            count -= 1
            _COUNT.pack_into(self._memory, stack, count)
            if self._is_there(at) and not self._is_old(at):
                return at, size
        front = self._front
        left = self._ring_bytes - front % self._ring_bytes
        at = front if size <= left else front + left
        self._displace(at + size - self._ring_bytes)
        if at != front and left >= _VALUE.size:
            _VALUE.pack_into(
                self._memory, self._ring_at + front % self._ring_bytes, 0, 0, 0, 0.0, 0
            )
        _COUNT.pack_into(self._memory, _FRONT_AT, at + size)
        return at, size

    def _displace(self, end: int) -> None:
        """Count the values up to ``end`` that are there still, before what is new overwrites them."""
        (oldest,) = _COUNT.unpack_from(self._memory, _OLDEST_AT)
        while oldest < end:
            begin = self._ring_at + oldest % self._ring_bytes
            left = self._ring_bytes - oldest % self._ring_bytes
            size = key_bytes = 0
            expires_at = 0.0
            if left >= _VALUE.size:
                key_bytes, _, size, expires_at, _ = _VALUE.unpack_from(self._memory, begin)
            if not 0 < size <= left:
                oldest += left  # nothing is behind it before the ring's end
                continue
            if expires_at > self._clock():
                key_at = begin + _VALUE.size
                hashed = self._hash(self._memory[key_at : key_at + key_bytes])
                for place in self._places(hashed):
                    if _PLACE.unpack_from(self._memory, place) == (hashed, oldest + 1):
                        _COUNT.pack_into(self._memory, _DISPLACED_AT, self.displaced + 1)
                        _PLACE.pack_into(self._memory, place, 0, 0)
            oldest += size
        _COUNT.pack_into(self._memory, _OLDEST_AT, oldest)

    def _give_up(self, at: int, size: int) -> None:
        """Remember a region that is nothing's any more, if it will stay for a while."""
        if self._is_old(at):
            return
        stack = self._stack(_size_class(size)[0])
        (count,) = _COUNT.unpack_from(self._memory, stack)
        if count < self._free_max:
            _COUNT.pack_into(self._memory, stack + (count + 1) * _COUNT.size, at)
            _COUNT.pack_into(self._memory, stack, count + 1)

    def _stack(self, number: int) -> int:
        return self._free_at + number * (self._free_max + 1) * _COUNT.size

    def _enter(self, hashed: int, at: int) -> None:
        """Put a value into the index: in the place of the key's last one, or of the oldest of its set."""
        oldest, oldest_at = 0, 1 << 64
        for place in self._places(hashed):
            other, other_at = _PLACE.unpack_from(self._memory, place)
            if other == hashed:
                oldest = place
                break
            if other_at < oldest_at:
                oldest, oldest_at = place, other_at
        _PLACE.pack_into(self._memory, oldest, hashed, at + 1)


class _Found(NamedTuple):
    """A value, its place in the index, and its region."""

    place: int
    at: int
    size: int
    expires_at: float
    value: bytes


def _size_class(needed: int) -> tuple[int, int]:
    """The number and the bytes of the size of regions that fits."""
    bits = max(_SMALLEST_BITS, (needed - 1).bit_length() - 1)
    step = 1 << (bits - 2)
    steps = max(1, -(-(needed - (1 << bits)) // step))
    return 4 * (bits - _SMALLEST_BITS) + steps - 1, (1 << bits) + steps * step


def shared_table(name: str) -> SharedTable:
    """The table of this name in the memory that the supervisor has made."""
    table = _tables.get(name)
    if table is None:
        place = TABLES.index(name)
        memory = table_memory()
        table = _tables[name] = SharedTable(memory.memories[place], memory.lock_fd, place)
    return table


_tables: dict[str, SharedTable] = {}
