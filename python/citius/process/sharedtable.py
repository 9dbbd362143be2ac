"""A table of keys and values that all workers of a server share: sessions, cached values, presence.

The values are in a ring: a new one takes the place of the oldest ones. An index in front of it, of sets
of eight places, says where a key's value is; a place whose value has been overwritten, or is another
key's, is empty. So nothing has to be cleaned up, and a worker that is killed in the middle of a write
leaves a value that its checksum gives away.

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
from typing import TYPE_CHECKING, Final

from citius.process.sharedmemory import TABLES, table_memory

if TYPE_CHECKING:
    from collections.abc import Callable, Generator

_WAYS: Final = 8
# One place of the index for so many bytes of the memory.
_BYTES_PER_PLACE: Final = 256
_HEAD: Final = struct.Struct("=Q")
_PLACE: Final = struct.Struct("=QQ")  # hash of the key, 1 + where its value begins
_VALUE: Final = struct.Struct("=IIdI")  # bytes of the key, of the value, when it expires, checksum
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
        self._ring_at = _HEAD.size + self._sets * _WAYS * _PLACE.size
        self._ring_bytes = len(memory) - self._ring_at
        self.value_bytes_max = self._ring_bytes // 8
        """Bytes that one value may have, with its key."""
        self._clock = clock
        self._lock_fd = lock_fd
        self._place = place
        self._lock = threading.RLock()

    @classmethod
    def alone(cls, size: int, *, clock: Callable[[], float] = time.monotonic) -> SharedTable:
        """A table of this process and those that it forks."""
        fd = os.memfd_create("citius-table", os.MFD_CLOEXEC)
        return cls(mmap.mmap(-1, size), fd, clock=clock)

    def get(self, key: bytes) -> bytes | None:
        """The value of ``key``, ``None`` if there is none or it has expired."""
        with self._locked():
            found = self._find(key)
            return None if found is None else found[1]

    def set(self, key: bytes, value: bytes, max_age_s: float) -> bool:
        """Keep a value for so long; ``False`` if it is too long to be kept."""
        with self._locked():
            return self._set(key, value, max_age_s)

    def replace(self, key: bytes, value: bytes, max_age_s: float) -> bool:
        """The same in place of a value that is there; ``False`` if there is none."""
        with self._locked():
            return self._find(key) is not None and self._set(key, value, max_age_s)

    def delete(self, key: bytes) -> bool:
        """Forget a value; whether there was one."""
        with self._locked():
            found = self._find(key)
            if found is not None:
                _PLACE.pack_into(self._memory, found[0], 0, 0)
            return found is not None

    def update(
        self, key: bytes, change: Callable[[bytes | None], bytes | None], max_age_s: float
    ) -> bytes | None:
        """Replace a value by what ``change`` makes of it, with no change of another worker in between."""
        with self._locked():
            found = self._find(key)
            value = change(None if found is None else found[1])
            if value is not None:
                self._set(key, value, max_age_s)
            elif found is not None:
                _PLACE.pack_into(self._memory, found[0], 0, 0)
            return value

    @contextmanager
    def locked(self, key: bytes) -> Generator[bool]:
        """Try to hold the lock of a name, over all workers; whether it is held."""
        # Locks of a process are one for all its threads and tasks: the caller sees to those.
        place = _NAMED_LOCKS_AT + _hash(key) % (1 << 62)
        try:
            fcntl.lockf(self._lock_fd, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, place)
        except OSError:
            yield False
            return
        try:
            yield True
        finally:
            fcntl.lockf(self._lock_fd, fcntl.LOCK_UN, 1, place)

    @contextmanager
    def _locked(self) -> Generator[None]:
        with self._lock:
            fcntl.lockf(self._lock_fd, fcntl.LOCK_EX, 1, self._place)
            try:
                yield
            finally:
                fcntl.lockf(self._lock_fd, fcntl.LOCK_UN, 1, self._place)

    def _find(self, key: bytes) -> tuple[int, bytes] | None:
        """The place of a key and its value."""
        wanted = _hash(key)
        for place in self._places(wanted):
            hashed, at = _PLACE.unpack_from(self._memory, place)
            if hashed == wanted and at:
                value = self._read(at - 1, key)
                if value is not None:
                    return place, value
        return None

    def _places(self, hashed: int) -> range:
        begin = _HEAD.size + hashed % self._sets * _WAYS * _PLACE.size
        return range(begin, begin + _WAYS * _PLACE.size, _PLACE.size)

    def _read(self, at: int, key: bytes) -> bytes | None:
        (head,) = _HEAD.unpack_from(self._memory)
        if at + self._ring_bytes < head or at >= head:
            return None  # overwritten
        begin = self._ring_at + at % self._ring_bytes
        key_bytes, value_bytes, expires_at, checksum = _VALUE.unpack_from(self._memory, begin)
        key_at = begin + _VALUE.size
        value_at = key_at + key_bytes
        end = value_at + value_bytes
        if end > len(self._memory) or expires_at <= self._clock():
            return None
        if self._memory[key_at:value_at] != key:
            return None
        value = self._memory[value_at:end]
        return value if zlib.crc32(value, zlib.crc32(key)) == checksum else None

    def _set(self, key: bytes, value: bytes, max_age_s: float) -> bool:
        size = -(-(_VALUE.size + len(key) + len(value)) // 8) * 8
        if size > self.value_bytes_max:
            return False
        (head,) = _HEAD.unpack_from(self._memory)
        left = self._ring_bytes - head % self._ring_bytes
        at = head if size <= left else head + left
        _HEAD.pack_into(self._memory, 0, at + size)
        begin = self._ring_at + at % self._ring_bytes
        checksum = zlib.crc32(value, zlib.crc32(key))
        fields = (len(key), len(value), self._clock() + max_age_s, checksum)
        _VALUE.pack_into(self._memory, begin, *fields)
        key_at = begin + _VALUE.size
        value_at = key_at + len(key)
        self._memory[key_at:value_at] = key
        self._memory[value_at : value_at + len(value)] = value
        self._enter(_hash(key), at)
        return True

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


def _hash(key: bytes) -> int:
    """Keys whose hashes are the same displace one another; nothing else depends on it."""
    first = zlib.crc32(key)
    return first | zlib.crc32(key, first ^ 0x5BD1E995) << 32


def shared_table(name: str) -> SharedTable:
    """The table of this name in the memory that the supervisor has made."""
    table = _tables.get(name)
    if table is None:
        place = TABLES.index(name)
        memory = table_memory()
        table = _tables[name] = SharedTable(memory.memories[place], memory.lock_fd, place)
    return table


_tables: dict[str, SharedTable] = {}
