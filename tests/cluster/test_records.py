"""Records: what goes in comes out; everything else is refused, with its reason."""

from __future__ import annotations

import random

import pytest
from citius.cluster.records import (
    ForeignRecord,
    Message,
    Record,
    key_of,
    pack,
    unpack,
)

KEY = key_of("secret", "shop")
RECORD = Record(
    b"0123abcd", 7, (Message(True, b"hello"), Message(False, b"\x00\xff"), Message(True, b""))
)


def reason(data: bytes, key: bytes = KEY, channel: bytes = b"room") -> str:
    with pytest.raises(ForeignRecord) as refused:
        unpack(key, channel, data)
    return refused.value.reason


def test_what_is_packed_comes_back() -> None:
    assert unpack(KEY, b"room", pack(KEY, b"room", RECORD)) == RECORD


@pytest.mark.parametrize(
    ("key", "channel"),
    [
        (key_of("other", "shop"), b"room"),
        (key_of(None, "shop"), b"room"),
        (key_of("secret", "other"), b"room"),
        (KEY, b"another room"),
    ],
)
def test_another_secret_application_or_channel_is_refused(key: bytes, channel: bytes) -> None:
    assert reason(pack(KEY, b"room", RECORD), key, channel) == "key"


def test_other_data_and_versions_are_told_apart() -> None:
    data = pack(KEY, b"room", RECORD)
    for foreign in (b"", b"CTS", b"hello", b'{"json": true}' * 10, data[:20]):
        assert reason(foreign) == "not ours"
    assert reason(data[:3] + b"\x02" + data[4:]) == "version"


def test_no_changed_byte_passes() -> None:
    data = pack(KEY, b"room", RECORD)
    for at in range(len(data)):
        for change in (1, 0x80):
            changed = bytearray(data)
            changed[at] ^= change
            assert reason(bytes(changed))
    for end in range(len(data)):
        assert reason(data[:end])


def test_a_node_with_a_defect_is_refused_as_a_whole() -> None:
    """Counts and lengths that do not fit, under a right key."""
    from citius.cluster import records

    random.seed(1)
    good = pack(KEY, b"room", RECORD)[:-16]
    for _ in range(500):
        body = bytearray(good)
        at = random.randrange(20, len(body))
        body[at] = random.randrange(256)
        data = bytes(body) + records._mac(KEY, b"room", bytes(body))
        try:
            record = unpack(KEY, b"room", data)
        except ForeignRecord as refused:
            assert refused.reason == "malformed"  # noqa: PT017
        else:
            assert sum(len(one.payload) for one in record.messages) < len(good)
