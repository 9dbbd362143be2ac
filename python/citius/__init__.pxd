# For Cython: `from citius cimport citius_request, citius_response, …`; see docs/guides/compiled-handlers.md.
# Build with include_dirs=[citius.get_include()]. What each function does is said in include/citius.h.
from libc.stdint cimport int32_t, int64_t, uint32_t


cdef extern from "citius.h" nogil:
    const int CITIUS_ABI_VERSION
    const int CITIUS_OK
    const int CITIUS_NOT_FOUND
    const int CITIUS_UNPROCESSABLE
    const int CITIUS_FAILED

    ctypedef struct citius_text:
        const char *data
        size_t size

    ctypedef union citius_value:
        int64_t integer
        double real
        citius_text text

    ctypedef struct citius_api:
        uint32_t version
        uint32_t minor
        size_t size

    ctypedef struct citius_request:
        const citius_api *api
        citius_text method
        citius_text path
        citius_text query
        citius_text body
        const citius_text *params
        size_t params_count
        const citius_value *arguments
        size_t arguments_count

    ctypedef struct citius_response:
        const citius_api *api
        char *body
        size_t size
        size_t room
        int32_t status

    ctypedef int (*citius_handler)(const citius_request *, citius_response *) noexcept nogil

    int citius_header(const citius_request *, const char *name, citius_text *value)
    int citius_query(const citius_request *, const char *name, citius_text *value)
    int citius_param(const citius_request *, size_t index, citius_text *value)
    int citius_integer(const citius_request *, citius_text, int64_t *value)
    int citius_param_integer(const citius_request *, size_t index, int64_t *value)
    int citius_query_integer(const citius_request *, const char *name, int64_t otherwise, int64_t *value)

    int citius_reserve(citius_response *, size_t size)
    int citius_write(citius_response *, const void *data, size_t size)
    int citius_print(citius_response *, const char *text)
    int citius_print_integer(citius_response *, int64_t value)
    int citius_print_real(citius_response *, double value)
    int citius_content_type(citius_response *, const char *media_type)
    int citius_add_header(citius_response *, const char *name, const char *value)


cdef extern from "citius.h":
    object citius_handler_capsule(citius_handler)
    const citius_api *citius_import() except NULL
