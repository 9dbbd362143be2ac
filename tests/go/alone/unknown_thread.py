"""A thread that Python does not know may serve a channel."""

# pyright: basic

import ctypes

from citius.go import chan

channel = chan(1)
library = ctypes.CDLL(None)


@ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p)
def send(_):
    channel.send("foreign")


# The C library's timer calls it from a thread of its own.
timer, event = ctypes.c_void_p(), (ctypes.c_char * 64)()
SIGEV_THREAD, CLOCK_MONOTONIC = 2, 1
ctypes.c_int.from_buffer(event, 12).value = SIGEV_THREAD
ctypes.c_void_p.from_buffer(event, 16).value = ctypes.cast(send, ctypes.c_void_p).value
assert library.timer_create(CLOCK_MONOTONIC, event, ctypes.byref(timer)) == 0
spec = (ctypes.c_long * 4)(0, 0, 1, 0)
assert library.timer_settime(timer, 0, spec, None) == 0
assert channel.recv() == ("foreign", True)
