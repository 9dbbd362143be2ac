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


NAME = "My name"
DESCRIPTION = "Some words on here so it looks full"
RECORDS = [
    Record(i, NAME, DESCRIPTION, "U", 33, 1569882498.9117897 + i * 0.0000031) for i in range(1000)
]
PACKED = [msgspec.msgpack.encode(record) for record in RECORDS]
# The same with a name and a description of its own in every record.
PACKED_VARIED = [
    msgspec.msgpack.encode(
        msgspec.structs.replace(record, name="%s %d" % (NAME, i), description="%s %d" % (DESCRIPTION, i))
    )
    for i, record in enumerate(RECORDS)
]
JSON_ARRAY = msgspec.json.encode(RECORDS)

_decode = msgspec.msgpack.Decoder(Record).decode
_encode = msgspec.json.Encoder().encode


def parse_msgpack(is_varied=False):
    """Decode every packed record and return how many there were, as text."""
    return str(len([_decode(packed) for packed in (PACKED_VARIED if is_varied else PACKED)]))


def encode_json():
    """Encode the records as one array and return its number of characters (it is ASCII)."""
    return str(len(_encode(RECORDS)))


def json_of(value):
    """Return any value as JSON."""
    return msgspec.json.encode(value)
