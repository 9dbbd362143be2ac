"""The 1000 records as dicts: ``json`` of the standard library and the ``msgpack`` package.

Importing this module encodes the records, which a contestant does before it listens.
"""

import json

import msgpack

NAME = "My name"
DESCRIPTION = "Some words on here so it looks full"
RECORDS = [
    {
        "id": i,
        "name": NAME,
        "description": DESCRIPTION,
        "type": "U",
        "count": 33,
        "created_at": 1569882498.9117897 + i * 0.0000031,
    }
    for i in range(1000)
]
PACKED = [msgpack.packb(record, use_bin_type=True) for record in RECORDS]
# The same with a name and a description of its own in every record.
PACKED_VARIED = [
    msgpack.packb(
        dict(record, name="%s %d" % (NAME, i), description="%s %d" % (DESCRIPTION, i)),
        use_bin_type=True,
    )
    for i, record in enumerate(RECORDS)
]
JSON_ARRAY = json.dumps(RECORDS).encode()


def parse_msgpack(is_varied=False):
    """Decode every packed record and return how many there were, as text."""
    all_packed = PACKED_VARIED if is_varied else PACKED
    return str(len([msgpack.unpackb(packed, raw=False) for packed in all_packed]))


def encode_json():
    """Encode the records as one array and return its number of characters."""
    return str(len(json.dumps(RECORDS)))
