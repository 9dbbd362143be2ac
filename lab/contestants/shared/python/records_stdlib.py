"""The 1000 records as dicts: ``json`` of the standard library and the ``msgpack`` package.

Importing this module encodes the records, which a contestant does before it listens.
"""

import json

import msgpack

RECORDS = [
    {
        "id": i,
        "name": "My name",
        "description": "Some words on here so it looks full",
        "type": "U",
        "count": 33,
        "created_at": 1569882498.9117897,
    }
    for i in range(1000)
]
PACKED = [msgpack.packb(record, use_bin_type=True) for record in RECORDS]
JSON_ARRAY = json.dumps(RECORDS).encode()


def parse_msgpack():
    """Decode every packed record and return how many there were, as text."""
    return str(len([msgpack.unpackb(packed, raw=False) for packed in PACKED]))


def encode_json():
    """Encode the records as one array and return its number of characters."""
    return str(len(json.dumps(RECORDS)))
