"""Compares what is unpacked by the class of mounted services with what connectrpc's own class unpacks."""

# pyright: basic, reportMissingImports=false

import gzip
import random
import time
from types import SimpleNamespace

from citius.web.interop.connectrpc.bounded_gzip import make_linear
from connectrpc.compression.gzip import GzipCompression

service = SimpleNamespace(_compressions={"gzip": GzipCompression(3), "other": object()})
theirs = service._compressions["gzip"]
make_linear(service)
ours = service._compressions["gzip"]
assert type(ours) is not GzipCompression
assert ours.name() == "gzip"
assert gzip.decompress(ours.compress(b"hello")) == b"hello"


def outcome(one, data, limit):
    try:
        return one.decompress(data, limit)
    except Exception as error:
        return type(error).__name__, str(error)


packed = gzip.compress(random.Random(1).randbytes(20_000)) + gzip.compress(b"")
files = [
    b"",
    b"x",
    packed,
    packed * 2,
    packed + b"\0",
    packed + b"tail",
    gzip.compress(b"a" * 50_000),
]
files += [packed[:size] for size in (*range(30), 8191, 8192, 8193, len(packed) - 1)]
for number in range(300):
    changed = bytearray(packed * 2)
    changed[random.Random(number).randrange(len(changed))] ^= 1 << number % 8
    files.append(bytes(changed))
for data in files:
    for limit in (0, 1, 19_999, 20_000, 40_000, 1 << 22):
        assert outcome(ours, data, limit) == outcome(theirs, data, limit), (data[:40], limit)
assert ours.decompress(packed * 2) == theirs.decompress(packed * 2)


def cpu_s(members):
    data = gzip.compress(b"") * members
    began = time.process_time()
    assert ours.decompress(data, 1 << 22) == b""
    return time.process_time() - began


# Sixteen times where the time grows with the square.
assert min(cpu_s(80_000) / cpu_s(20_000) for _ in range(3)) < 9
print("alike")
