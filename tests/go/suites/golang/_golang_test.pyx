# cython: language_level=3
# distutils: language = c++
"""What golang_test.py needs of compiled code: how many wait at a channel, and channels of Python used in C++.

scripts/pygolang-suite appends pygolang's own tests of Cython and C++ to it.
"""

import time as _time

from cpython.object cimport PyObject
from libc.stdint cimport int64_t
from libcpp cimport bool as cbool

from citius cimport citius_chan, citius_chan_from_python
from citius.go cimport chan, default, go, makechan, nil, panic, run, select, structZ


cdef extern from "citius.h":
    size_t citius_chan_receivers(const citius_chan *) nogil
    size_t citius_chan_senders(const citius_chan *) nogil


cdef chan[structZ] _of(object channel):
    # Of whatever type: only its queues are looked at.
    return chan[structZ].adopt(citius_chan_from_python(channel))


def pylen_recvq(ch):
    return citius_chan_receivers(_of(ch._chan).get())


def pylen_sendq(ch):
    return citius_chan_senders(_of(ch._chan).get())


def pywaitBlocked(method):
    count = {"recv": pylen_recvq, "send": pylen_sendq}[method.__name__]
    deadline = _time.monotonic() + 10
    while not count(method.__self__):
        if _time.monotonic() > deadline:
            raise AssertionError("deadlock")
        _time.sleep(0)


# Not here; golang_test.py imports it.
pypanicWhenBlocked = None


cdef void _recv_int(chan[int64_t] ch, int64_t *value) noexcept nogil:
    value[0] = ch.recv()


cdef void _send_int(chan[int64_t] ch, int64_t *value) noexcept nogil:
    ch.send(value[0])


def pychan_int_recv(channel):
    cdef chan[int64_t] ch = chan[int64_t].adopt(citius_chan_from_python(channel._chan))
    cdef int64_t value
    with nogil:
        run(_recv_int, ch, &value)
    return value


def pychan_int_send(channel, int64_t obj):
    cdef chan[int64_t] ch = chan[int64_t].adopt(citius_chan_from_python(channel._chan))
    cdef int64_t value = obj
    with nogil:
        run(_send_int, ch, &value)


cdef void _recv_double(chan[double] ch, double *value) noexcept nogil:
    value[0] = ch.recv()


cdef void _send_double(chan[double] ch, double *value) noexcept nogil:
    ch.send(value[0])


def pychan_double_recv(channel):
    cdef chan[double] ch = chan[double].adopt(citius_chan_from_python(channel._chan))
    cdef double value
    with nogil:
        run(_recv_double, ch, &value)
    return value


def pychan_double_send(channel, double obj):
    cdef chan[double] ch = chan[double].adopt(citius_chan_from_python(channel._chan))
    cdef double value = obj
    with nogil:
        run(_send_double, ch, &value)


cdef void _recv_bool(chan[cbool] ch, cbool *value) noexcept nogil:
    value[0] = ch.recv()


cdef void _send_bool(chan[cbool] ch, cbool *value) noexcept nogil:
    ch.send(value[0])


def pychan_bool_recv(channel):
    cdef chan[cbool] ch = chan[cbool].adopt(citius_chan_from_python(channel._chan))
    cdef cbool value
    with nogil:
        run(_recv_bool, ch, &value)
    return value


def pychan_bool_send(channel, cbool obj):
    cdef chan[cbool] ch = chan[cbool].adopt(citius_chan_from_python(channel._chan))
    cdef cbool value = obj
    with nogil:
        run(_send_bool, ch, &value)


cdef void _recv_structZ(chan[structZ] ch, structZ *value) noexcept nogil:
    value[0] = ch.recv()


cdef void _send_structZ(chan[structZ] ch, structZ *value) noexcept nogil:
    ch.send(value[0])


def pychan_structZ_recv(channel):
    cdef chan[structZ] ch = chan[structZ].adopt(citius_chan_from_python(channel._chan))
    cdef structZ value
    with nogil:
        run(_recv_structZ, ch, &value)
    return None


def pychan_structZ_send(channel, obj):
    cdef chan[structZ] ch = chan[structZ].adopt(citius_chan_from_python(channel._chan))
    cdef structZ value
    with nogil:
        run(_send_structZ, ch, &value)


def _close(channel):
    channel.close()


pychan_int_close = pychan_double_close = pychan_bool_close = pychan_structZ_close = _close
