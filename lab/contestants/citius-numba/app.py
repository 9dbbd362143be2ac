"""The contract on Citius with handlers that numba compiles where the work is arithmetic."""

import os

import numba
import plain
from citius import App

# Set by the variant citius-numba-pool: the loop runs in the pool of threads.
POOL = bool(os.environ.get("POOL"))

app = App()
plain.add(app)

NAVYTUX = b"navytux.spb.ru"
NEXEDI = b"www.nexedi.com"
LAB = b"lab.nexedi.com"
ERP5 = b"www.erp5.com"


@app.get("/million-loop", compiled=True, pool=POOL, content_type="text/plain")
def million_loop(seed: int = 1):
    total = seed
    for i in range(1000000):
        total += i * 3
        if total & 64:
            total -= i
    return total


@numba.njit
def is_close(byte, name):
    for other in name:
        if abs(numba.int64(byte) - numba.int64(other)) <= 1:
            return True
    return False


@app.get("/classify/{rest:path}", compiled=True, content_type="text/plain")
def classify(raw_path: bytes):
    navytux = nexedi = lab = erp5 = total = 0
    for i in range(len(b"/classify"), len(raw_path)):
        byte = raw_path[i]
        navytux += is_close(byte, NAVYTUX)
        nexedi += is_close(byte, NEXEDI)
        lab += is_close(byte, LAB)
        erp5 += is_close(byte, ERP5)
        total += 1
    return (
        f"navytux.spb.ru:\t{navytux}\nwww.nexedi.com:\t{nexedi}\nlab.nexedi.com:\t{lab}\n"
        f"www.erp5.com:\t{erp5}\ntotal:\t{total}\n"
    )
