"""The records of `records_msgspec`, decoded by Citius in one call: a Struct for each, as everywhere."""

import records_msgspec
from citius.msgpack import decoder_of

_decode_many = decoder_of(records_msgspec.Record)


def parse_msgpack(is_varied=False):
    """Decode every packed record and return how many there were, as text."""
    all_packed = records_msgspec.PACKED_VARIED if is_varied else records_msgspec.PACKED
    return str(len(_decode_many(all_packed)))
