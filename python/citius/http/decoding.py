"""Content codings of responses: ``gzip``, ``deflate``, ``br``, ``zstd``, with bounded output.

A decoder yields pieces of some 256 KiB, so that a small input cannot fill memory before it is noticed;
``whole`` ends at ``limit`` bytes. What is not seen outside is bounded as well: what codings make for one
another, and members without content, of which a small input may have millions.
Tests: ``tests/http/test_decoding.py``.
"""

from __future__ import annotations

import sys
import zlib
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final, Protocol

from citius.http.errors import DecodingError, TooLarge

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

PIECE_BYTES: Final = 256 * 1024
"""What one step makes at most."""
WINDOW_BYTES: Final = 16 * 1024
"""What a decoder is given at once: it copies what follows each member, of which there may be many."""
ZSTD_WINDOW_LOG_MAX: Final = 23
"""The window of zstd is 8 MiB at most (RFC 9659): memory that a small frame makes each response take."""
CODINGS_MAX: Final = 3
"""Codings of one response, one over the other; more is no response but an attack."""


MEMBER_BYTES: Final = 1024
"""What a member (a frame of zstd) is counted as. Origin: it takes 5 µs."""
HIDDEN_BYTES: Final = 16 << 20
"""What is not seen outside may be so much, four times what is, and ``HIDDEN_RATIO`` times what came."""
HIDDEN_RATIO: Final = 64
"""More than a member of gzip is counted as for each of its 20 bytes."""


class Decoder(Protocol):
    """Decodes one coding, piece by piece."""

    members: int
    """Members that have begun since that was set to 0."""

    def decode(self, data: bytes) -> Iterator[bytes]:
        """What ``data`` makes."""
        ...

    def end(self) -> None:
        """The content ends here.

        Raises:
            DecodingError: It is not complete.
        """
        ...


class _Zlib:
    """gzip, of several members too, and deflate with and without zlib's header (RFC 9110 §8.4.1.2)."""

    def __init__(self, coding: str) -> None:
        self._coding = coding
        self.members = 0
        self._inner: Any = None  # a decompressor of zlib
        self._kept = b""
        """Bytes that do not say yet what follows: two begin a member."""
        self._is_over = False

    def decode(self, data: bytes) -> Iterator[bytes]:
        data = self._kept + data
        self._kept = b""
        while data and not self._is_over:
            if self._inner is None or self._inner.eof:
                if len(data) < 2:
                    self._kept = data
                    return
                if not self._begin(data):
                    return
            inner: Any = self._inner
            try:
                piece = inner.decompress(data, PIECE_BYTES)
            except zlib.error as error:
                raise DecodingError(f"the content is not {self._coding}: {error}") from None
            if piece:
                yield piece
            data = inner.unused_data if inner.eof else inner.unconsumed_tail

    def _begin(self, data: bytes) -> bool:
        """Begin a member; what follows the last one is padding."""
        if self._inner is not None and not (self._coding == "gzip" and data[:2] == b"\x1f\x8b"):
            self._is_over = True
            return False
        window = zlib.MAX_WBITS
        if self._coding == "gzip":
            window |= 16
        elif data[0] & 15 != 8 or (data[0] << 8 | data[1]) % 31:
            window = -zlib.MAX_WBITS  # without zlib's header, as some send it
        self._inner = zlib.decompressobj(window)
        self.members += 1
        return True

    def end(self) -> None:
        if (self._inner is None and self._kept) or (
            self._inner is not None and not self._inner.eof
        ):
            raise DecodingError(f"the content ends within its coding {self._coding}")


class _Brotli:
    """br, by the package brotli, 1.2 and later, which can bound its output."""

    members = 0

    def __init__(self) -> None:
        brotli: Any = import_module("brotli")
        self._error: type[Exception] = brotli.error
        self._inner: Any = brotli.Decompressor()
        self._has_begun = False

    def decode(self, data: bytes) -> Iterator[bytes]:
        inner = self._inner
        self._has_begun = self._has_begun or bool(data)
        try:
            if piece := inner.process(data, output_buffer_limit=PIECE_BYTES):
                yield piece
            # It may hold output back that the limit left no room for, and its end behind that.
            while not inner.is_finished():
                piece = inner.process(b"", output_buffer_limit=PIECE_BYTES)
                if not piece:
                    return
                yield piece
        except self._error as error:
            raise DecodingError(f"the content is not br: {error}") from None

    def end(self) -> None:
        if self._has_begun and not self._inner.is_finished():
            raise DecodingError("the content ends within its coding br")


class _Zstd:
    """zstd, by the standard library of CPython 3.14 or backports.zstd, which have its interface."""

    def __init__(self) -> None:
        module = _zstd_module()
        self.members = 0
        self._module: Any = module
        self._options = {module.DecompressionParameter.window_log_max: ZSTD_WINDOW_LOG_MAX}
        self._inner: Any = module.ZstdDecompressor(options=self._options)
        self._has_begun = False

    def decode(self, data: bytes) -> Iterator[bytes]:
        self._has_begun = self._has_begun or bool(data)
        try:
            while data or not self._inner.needs_input:
                if self._inner.eof:
                    data = self._inner.unused_data or data
                    if not data:
                        return
                    self._inner = self._module.ZstdDecompressor(options=self._options)
                    self.members += 1
                piece = self._inner.decompress(data, PIECE_BYTES)
                data = b""
                if piece:
                    yield piece
                if self._inner.eof:
                    data = self._inner.unused_data
                    if not data:
                        return
        except self._module.ZstdError as error:
            raise DecodingError(f"the content is not zstd: {error}") from None

    def end(self) -> None:
        if self._has_begun and not self._inner.eof:
            raise DecodingError("the content ends within its coding zstd")


def _zstd_module() -> Any:
    return import_module("compression.zstd" if sys.version_info >= (3, 14) else "backports.zstd")


def _has_brotli() -> bool:
    try:
        brotli: Any = import_module("brotli")
    except ImportError:
        return False
    # Older ones cannot bound their output.
    return hasattr(brotli.Decompressor, "can_accept_more_data")


def _has_zstd() -> bool:
    try:
        _zstd_module()
    except ImportError:
        return False
    return True


_known: dict[str, Callable[[], Decoder]] = {}


def known() -> dict[str, Callable[[], Decoder]]:
    """The codings that can be decoded here, best last."""
    if not _known:
        _known["gzip"] = _known["x-gzip"] = lambda: _Zlib("gzip")
        _known["deflate"] = lambda: _Zlib("deflate")
        if _has_brotli():
            _known["br"] = _Brotli
        if _has_zstd():
            _known["zstd"] = _Zstd
    return _known


def accepted() -> str:
    """``Accept-Encoding`` of requests."""
    return ", ".join(name for name in known() if name != "x-gzip")


def decoders(coding: str) -> list[Decoder]:
    """The decoders of a ``Content-Encoding`` field, in the order in which they are applied.

    Raises:
        DecodingError: A coding is not known, or there are too many.
    """
    names = [one.strip().lower() for one in coding.split(",")]
    names = [one for one in names if one and one != "identity"]
    if len(names) > CODINGS_MAX:
        raise DecodingError(f"{len(names)} content codings, at most {CODINGS_MAX} are decoded")
    made: list[Decoder] = []
    for name in reversed(names):
        if (make := known().get(name)) is None:
            raise DecodingError(f"the content coding {name[:40]!r} is not known here")
        made.append(make())
    return made


class Chain:
    """The decoders of a ``Content-Encoding`` field, one behind the other.

    Args:
        coding: The field.

    Raises:
        DecodingError: A coding is not known, or there are too many.
    """

    def __init__(self, coding: str) -> None:
        self._decoders = decoders(coding)
        self._received = self._made = 0
        self.hidden = 0
        """What was made and not seen outside, in bytes: for another decoder, and members."""

    def __bool__(self) -> bool:
        return bool(self._decoders)

    def decode(self, data: bytes) -> Iterator[bytes]:
        """What ``data`` makes, through all decoders.

        Raises:
            DecodingError: It is not in these codings, or there is next to nothing in them.
        """
        self._received += len(data)
        for piece in self._through(0, data):
            self._made += len(piece)
            yield piece

    def _through(self, at: int, data: bytes) -> Iterator[bytes]:
        decoder = self._decoders[at]
        for start in range(0, len(data), WINDOW_BYTES):
            for piece in decoder.decode(data[start : start + WINDOW_BYTES]):
                if at + 1 == len(self._decoders):
                    yield piece
                else:
                    self._hide(len(piece))
                    yield from self._through(at + 1, piece)
            if members := decoder.members:
                decoder.members = 0
                self._hide(MEMBER_BYTES * members)

    def _hide(self, size: int) -> None:
        self.hidden += size
        if self.hidden > HIDDEN_BYTES + 4 * self._made + HIDDEN_RATIO * self._received:
            raise DecodingError(
                f"{self._received} bytes are decoded to next to nothing, by way of {self.hidden}"
            )

    def end(self) -> None:
        """The content ends here.

        Raises:
            DecodingError: It is not complete.
        """
        for one in self._decoders:
            one.end()


def whole(coding: str, data: bytes, limit: int) -> bytes:
    """The content of a response whose body is there.

    Raises:
        DecodingError: It is not in this coding.
        TooLarge: It has more than ``limit`` bytes.
    """
    chain = Chain(coding)
    if not chain or not data:
        return data
    pieces: list[bytes] = []
    total = 0
    for at in range(0, len(data), WINDOW_BYTES):
        for piece in chain.decode(data[at : at + WINDOW_BYTES]):
            pieces.append(piece)
            total += len(piece)
            if total > limit:
                break
        if total > limit or chain.hidden > limit + HIDDEN_BYTES:
            raise TooLarge(
                f"the content of {len(data)} bytes has more than {limit} when it is decompressed "
                "(Limits.body_bytes_max)"
            )
    chain.end()
    return b"".join(pieces)
