# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, freethreading_compatible=True
"""The handlers whose work is arithmetic, as native code."""

from citius cimport (
    CITIUS_OK,
    citius_content_type,
    citius_print,
    citius_print_integer,
    citius_query_integer,
    citius_request,
    citius_response,
)
from libc.stdint cimport int64_t


cdef struct Classifier:
    int64_t navytux
    int64_t nexedi
    int64_t lab
    int64_t erp5
    int64_t total


cdef const char *NAVYTUX = b"navytux.spb.ru"
cdef const char *NEXEDI = b"www.nexedi.com"
cdef const char *LAB = b"lab.nexedi.com"
cdef const char *ERP5 = b"www.erp5.com"


cdef inline bint is_close(int byte, const char *name, size_t size) noexcept nogil:
    cdef size_t i
    cdef int distance
    for i in range(size):
        distance = byte - <int><unsigned char>name[i]
        if -1 <= distance <= 1:
            return True
    return False


cdef inline void next_byte(Classifier *classifier, int byte) noexcept nogil:
    classifier.navytux += is_close(byte, b"navytux.spb.ru", 14)
    classifier.nexedi += is_close(byte, b"www.nexedi.com", 14)
    classifier.lab += is_close(byte, b"lab.nexedi.com", 14)
    classifier.erp5 += is_close(byte, b"www.erp5.com", 12)
    classifier.total += 1


cdef void put(citius_response *response, const char *name, int64_t count) noexcept nogil:
    citius_print(response, name)
    citius_print(response, b":\t")
    citius_print_integer(response, count)
    citius_print(response, b"\n")


cdef api int classify(const citius_request *request, citius_response *response) noexcept nogil:
    cdef Classifier classifier = Classifier(0, 0, 0, 0, 0)
    cdef size_t i
    for i in range(9, request.path.size):  # what follows /classify
        next_byte(&classifier, <unsigned char>request.path.data[i])
    put(response, NAVYTUX, classifier.navytux)
    put(response, NEXEDI, classifier.nexedi)
    put(response, LAB, classifier.lab)
    put(response, ERP5, classifier.erp5)
    put(response, b"total", classifier.total)
    return CITIUS_OK


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
