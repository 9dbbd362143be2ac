"""gzip as connectrpc unpacks it, in a time that grows with the length of a message and no faster.

The library copies what follows each member of a gzip file, so that 4 MiB of empty members keep the loop for
a minute. Tests: ``tests/rpc/test_rpc_gzip.py``.
"""

from __future__ import annotations

import sys
import zlib
from importlib import import_module
from typing import Any, Final

_gzip: Any = import_module("connectrpc.compression.gzip")
_Gzip: Any = _gzip.GzipCompression
_too_large: Any = import_module("connectrpc._shared").message_too_large_error

WINDOW_BYTES: Final = 8 * 1024
"""What is given to zlib at once, and so the most that is copied for a member."""


class LinearGzip(_Gzip):
    """The library's, which is kept for all but unpacking."""

    def __init__(self, given: Any) -> None:
        self.__dict__.update(given.__dict__)

    def decompress(
        self, data: bytes | bytearray | memoryview, read_max_bytes: int | None = None
    ) -> bytes:
        """Unpack a message.

        Raises:
            Exception: It is longer than ``read_max_bytes``, or no gzip file.
        """
        most = sys.maxsize - 1 if read_max_bytes is None else read_max_bytes
        if not data:
            return b""
        inflate, parts, total = zlib.decompressobj(31), list[bytes](), 0
        view = memoryview(data)
        for at in range(0, len(view), WINDOW_BYTES):
            left: bytes | memoryview = view[at : at + WINDOW_BYTES]
            while left:
                if inflate.eof:
                    inflate = zlib.decompressobj(31)
                out = inflate.decompress(left, most + 1 - total)
                total += len(out)
                if total > most:
                    raise _too_large(most)
                parts.append(out)
                left = inflate.unused_data or inflate.unconsumed_tail
        if not inflate.eof:
            raise EOFError("Compressed file ended before the end-of-stream marker was reached")
        return b"".join(parts)


def make_linear(service: Any) -> None:
    """Have a service unpack by ``LinearGzip`` what it would unpack by the library's class."""
    given: dict[str, Any] = service._compressions
    service._compressions = {
        name: LinearGzip(one) if one.__class__ is _Gzip else one for name, one in given.items()
    }
