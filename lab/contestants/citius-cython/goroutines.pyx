# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, freethreading_compatible=True
"""The handlers that wait, in goroutines; the module is C++, as citius.go is."""

from citius cimport (
    CITIUS_OK,
    citius_print,
    citius_print_integer,
    citius_query_integer,
    citius_request,
    citius_response,
)
from citius.go cimport chan, go, handler, makechan, sleep
from classifier cimport Classifier, next_byte, put_all
from libc.stdint cimport int64_t
from libcpp cimport bool as cbool
from libcpp.utility cimport pair


cdef int _sleeps(const citius_request *request, citius_response *response) noexcept nogil:
    sleep(0.002)
    return citius_print(response, b"OK")


cdef void square(int64_t number, chan[int64_t] squares) noexcept nogil:
    squares.send(number * number)


cdef int _fan_out(const citius_request *request, citius_response *response) noexcept nogil:
    cdef chan[int64_t] squares = makechan[int64_t]()
    cdef int64_t seed = 0
    cdef int64_t total = 0
    cdef int64_t i
    cdef int code = citius_query_integer(request, b"seed", 1, &seed)
    if code != CITIUS_OK:
        return code
    for i in range(10):
        go(square, seed + i, squares)
    for i in range(10):
        total += squares.recv()
    return citius_print_integer(response, total)


cdef void count(chan[char] chars, chan[Classifier] counted) noexcept nogil:
    cdef Classifier classifier = Classifier(0, 0, 0, 0, 0)
    cdef pair[char, cbool] received = chars.recv_()
    while received.second:
        next_byte(&classifier, <unsigned char>received.first)
        received = chars.recv_()
    counted.send(classifier)


cdef int _classify(const citius_request *request, citius_response *response) noexcept nogil:
    cdef chan[char] chars = makechan[char]()
    cdef chan[Classifier] counted = makechan[Classifier]()
    cdef Classifier classifier
    cdef size_t i
    go(count, chars, counted)
    for i in range(17, request.path.size):  # what follows /classify-channel
        chars.send(request.path.data[i])
    chars.close()
    classifier = counted.recv()
    return put_all(response, &classifier)


sleeps = handler(_sleeps)
fan_out = handler(_fan_out)
classify = handler(_classify)
