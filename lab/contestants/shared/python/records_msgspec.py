"""The 1000 records as typed structs, decoded and encoded by msgspec.

Importing this module encodes the records, which a contestant does before it listens.
"""

import msgspec


class Record(msgspec.Struct):
    """One record of the contract."""

    id: int
    name: str
    description: str
    type: str
    count: int
    created_at: float


RECORDS = [
    Record(i, "My name", "Some words on here so it looks full", "U", 33, 1569882498.9117897)
    for i in range(1000)
]
PACKED = [msgspec.msgpack.encode(record) for record in RECORDS]
JSON_ARRAY = msgspec.json.encode(RECORDS)

_decode = msgspec.msgpack.Decoder(Record).decode
_encode = msgspec.json.Encoder().encode


def parse_msgpack():
    """Decode every packed record and return how many there were, as text."""
    return str(len([_decode(packed) for packed in PACKED]))


def encode_json():
    """Encode the records as one array and return its number of characters (it is ASCII)."""
    return str(len(_encode(RECORDS)))
