# What the handlers with and without goroutines do to a path.
from citius cimport citius_print, citius_print_integer, citius_response
from libc.stdint cimport int64_t


cdef struct Classifier:
    int64_t navytux
    int64_t nexedi
    int64_t lab
    int64_t erp5
    int64_t total


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


cdef inline int put(citius_response *response, const char *name, int64_t count) noexcept nogil:
    citius_print(response, name)
    citius_print(response, b":\t")
    citius_print_integer(response, count)
    return citius_print(response, b"\n")


cdef inline int put_all(citius_response *response, const Classifier *classifier) noexcept nogil:
    put(response, b"navytux.spb.ru", classifier.navytux)
    put(response, b"www.nexedi.com", classifier.nexedi)
    put(response, b"lab.nexedi.com", classifier.lab)
    put(response, b"www.erp5.com", classifier.erp5)
    return put(response, b"total", classifier.total)
