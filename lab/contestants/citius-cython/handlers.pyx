# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, freethreading_compatible=True
"""The handlers whose work is arithmetic, as native code."""

from citius cimport (
    CITIUS_OK,
    citius_print_integer,
    citius_query_integer,
    citius_request,
    citius_response,
)
from classifier cimport Classifier, next_byte, put_all
from libc.stdint cimport int64_t


cdef api int classify(const citius_request *request, citius_response *response) noexcept nogil:
    cdef Classifier classifier = Classifier(0, 0, 0, 0, 0)
    cdef size_t i
    for i in range(9, request.path.size):  # what follows /classify
        next_byte(&classifier, <unsigned char>request.path.data[i])
    return put_all(response, &classifier)


cdef api int million_loop(const citius_request *request, citius_response *response) noexcept nogil:
    cdef int64_t total = 0
    cdef int64_t i
    cdef int code = citius_query_integer(request, b"seed", 1, &total)
    if code != CITIUS_OK:
        return code
    for i in range(1000000):
        total += i * 3
        if total & 64:
            total -= i
    return citius_print_integer(response, total)
