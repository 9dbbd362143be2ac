"""HdrHistogram blobs (V2, deflated or not): decode, merge, encode, percentiles.

Histograms of one window that several generators recorded are merged. Rounds are not: a percentile over
rounds is the geometric mean of each round's own (``analyse``).
The encoding: a cookie, for the deflated form a zlib stream with a second cookie inside, then the
parameters, then the counts as zigzag LEB128, a negative number standing for that many zeros.
"""

from __future__ import annotations

import base64
import binascii
import struct
import zlib
from dataclasses import dataclass, field


@dataclass(slots=True)
class Histogram:
    """Counts by value; ``counts`` maps the highest value equivalent to a bucket to its count."""

    counts: dict[int, int] = field(default_factory=dict[int, int])

    @classmethod
    def decode(cls, text: str) -> Histogram:
        """Read the base64 form.

        Raises:
            ValueError: It is not a V2 HdrHistogram.
        """
        try:
            data = base64.b64decode(text, validate=True)
            if _cookie(data) == COOKIE_DEFLATED:
                data = zlib.decompress(data[8:])
            if _cookie(data) != COOKIE:
                raise ValueError("not a V2 HdrHistogram")
            length, _, digits, lowest = struct.unpack_from(">iiiq", data, 4)
        except (binascii.Error, zlib.error, struct.error) as error:
            raise ValueError(f"not a V2 HdrHistogram: {error}") from error
        return cls(_counts(data[HEAD_BYTES : HEAD_BYTES + length], digits, lowest))

    def encode(self) -> str:
        """Return the base64 form, deflated, with the three digits that the load generator keeps.

        Exact for counts that came from such histograms: ``decode`` returns the same counts.
        """
        half = 1 << (SUB_BITS - 1)
        payload = bytearray()
        at = 0
        for value in sorted(self.counts):
            bucket = max(0, value.bit_length() - SUB_BITS)
            index = (bucket + 1) * half + (value >> bucket) - half
            if index > at:
                payload += _as_zigzag(at - index)
            payload += _as_zigzag(self.counts[value])
            at = index + 1
        head = struct.pack(">iiiqqd", len(payload), 0, DIGITS, 1, HIGHEST, 1.0)
        packed = zlib.compress(struct.pack(">i", COOKIE | 0x10) + head + payload)
        return base64.b64encode(
            struct.pack(">ii", COOKIE_DEFLATED | 0x10, len(packed)) + packed
        ).decode()

    def merge(self, other: Histogram) -> None:
        """Add another histogram's counts to this one's."""
        for value, count in other.counts.items():
            self.counts[value] = self.counts.get(value, 0) + count

    @property
    def total(self) -> int:
        """How many values were recorded."""
        return sum(self.counts.values())

    def between(self, low: float, high: float) -> int:
        """Return how many values are above ``low`` and not above ``high``."""
        return sum(count for value, count in self.counts.items() if low < value <= high)

    def percentile(self, percent: float) -> int | None:
        """Return the value that ``percent`` of the values do not exceed, ``None`` without any."""
        wanted = max(1, -(-self.total * percent // 100))
        seen = 0
        for value in sorted(self.counts):
            seen += self.counts[value]
            if seen >= wanted:
                return value
        return None


def _cookie(data: bytes) -> int:
    return int(struct.unpack_from(">i", data)[0]) & ~0xF0


def _counts(payload: bytes, digits: int, lowest: int) -> dict[int, int]:
    unit_bits = max(0, lowest.bit_length() - 1)
    sub_bits = (2 * 10**digits - 1).bit_length()
    half = 1 << (sub_bits - 1)
    counts: dict[int, int] = {}
    index = at = 0
    while at < len(payload):
        number, at = _zigzag(payload, at)
        if number < 0:
            index -= number
            continue
        if number:
            bucket = index // half - 1
            sub = index % half + half
            if bucket < 0:
                bucket, sub = 0, sub - half
            shift = bucket + unit_bits
            counts[((sub + 1) << shift) - 1] = number
        index += 1
    return counts


def _zigzag(payload: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    for n_bytes in range(1, 10):
        byte = payload[at]
        at += 1
        if n_bytes == 9:  # the ninth byte carries eight bits and no continuation flag
            value |= byte << shift
            break
        value |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            break
    return (value >> 1) ^ -(value & 1), at


def _as_zigzag(number: int) -> bytes:
    value = (number << 1) ^ (number >> 63)
    found = bytearray()
    while value >= 0x80 and len(found) < 8:
        found.append(value & 0x7F | 0x80)
        value >>= 7
    found.append(value)
    return bytes(found)


DIGITS = 3
SUB_BITS = (2 * 10**DIGITS - 1).bit_length()
# An hour in nanoseconds.
HIGHEST = 3_600_000_000_000
COOKIE = 0x1C849303
COOKIE_DEFLATED = 0x1C849304
HEAD_BYTES = 40
