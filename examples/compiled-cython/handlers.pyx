# cython: language_level=3, boundscheck=False, freethreading_compatible=True
# Handlers in Cython for app.py; see README.md for how to build them.
from citius cimport (
    CITIUS_OK,
    citius_content_type,
    citius_param_integer,
    citius_print,
    citius_print_integer,
    citius_request,
    citius_response,
)
from libc.stdint cimport int64_t


# A cdef class or a C struct may keep state; the handler itself makes no Python object.
cdef struct Counts:
    int64_t digits
    int64_t letters
    int64_t others


cdef void count(Counts *counts, const char *data, size_t size) noexcept nogil:
    cdef size_t i
    cdef char byte
    for i in range(size):
        byte = data[i]
        if c"0" <= byte <= c"9":
            counts.digits += 1
        elif c"a" <= (byte | 32) <= c"z":
            counts.letters += 1
        else:
            counts.others += 1


# POST /count. `api` makes it findable from Python, as __pyx_capi__["count_body"].
cdef api int count_body(const citius_request *request, citius_response *response) noexcept nogil:
    cdef Counts counts = Counts(0, 0, 0)
    count(&counts, request.body.data, request.body.size)
    citius_content_type(response, b"application/json")
    citius_print(response, b'{"digits":')
    citius_print_integer(response, counts.digits)
    citius_print(response, b',"letters":')
    citius_print_integer(response, counts.letters)
    citius_print(response, b',"others":')
    citius_print_integer(response, counts.others)
    return citius_print(response, b"}")


# GET /square/{number}
cdef api int square(const citius_request *request, citius_response *response) noexcept nogil:
    cdef int64_t number = 0
    cdef int code = citius_param_integer(request, 0, &number)
    if code != CITIUS_OK:
        return code
    if number > 2147483647 or number < -2147483647:
        return 422
    citius_content_type(response, b"application/json")
    return citius_print_integer(response, number * number)
