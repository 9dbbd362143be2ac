"""Handlers of the library in the first argument, called in goroutines of both kinds: test_memcheck.py."""

from __future__ import annotations

import sys

from citius import App, load_handlers
from citius.testing import Client

expected = {
    "sum_of_squares": "328350",
    "fan_out": "450",
    "selects": "-504 -504 2 2:1,7 1:0",
    "contexts": "504 499 499 11 504 0",
    "closes_twice": "11",
    "owned_values": "3",
    "closes_under_waiting": "300",
    "parks_many": "1000",
    "plain": "plain",
}
handlers = load_handlers(sys.argv[1])
app = App()
for name in expected:
    for pool in (False, True):
        app.get(f"/{pool}/{name}", compiled=handlers[name], serial=True, pool=pool)
with Client(app) as client:
    for _ in range(3):
        for name, text in expected.items():
            for pool in (False, True):
                got = client.get(f"/{pool}/{name}?close=1").text
                assert got == text, (name, pool, got)
print("served")
