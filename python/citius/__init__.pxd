# For Cython: `from citius cimport citius_request, citius_response, …`; see docs/guides/compiled-handlers.md.
# Build with include_dirs=[citius.get_include()]. What each function does is said in include/citius.h.
from cpython.object cimport PyObject
from libc.stdint cimport int32_t, int64_t, uint32_t


cdef extern from "citius.h" nogil:
    const int CITIUS_ABI_VERSION
    const int CITIUS_OK
    const int CITIUS_NOT_FOUND
    const int CITIUS_UNPROCESSABLE
    const int CITIUS_FAILED
    const int CITIUS_CLOSED
    const int CITIUS_MISUSE
    const int CITIUS_CANCELLED
    const int CITIUS_UNAVAILABLE
    const int CITIUS_UNREACHABLE
    const int CITIUS_TIMEOUT
    const int64_t CITIUS_FOREVER
    const int CITIUS_RECEIVE
    const int CITIUS_SEND
    const int CITIUS_ELEMENT_OPAQUE
    const int CITIUS_ELEMENT_INTEGER
    const int CITIUS_ELEMENT_REAL
    const int CITIUS_ELEMENT_BOOL
    const int CITIUS_ELEMENT_UNIT
    const int CITIUS_ELEMENT_BYTES
    const int CITIUS_ELEMENT_OBJECT

    ctypedef struct citius_text:
        const char *data
        size_t size

    ctypedef union citius_value:
        int64_t integer
        double real
        citius_text text

    const int CITIUS_NET_OK
    const int CITIUS_NET_NAME
    const int CITIUS_NET_REFUSED
    const int CITIUS_NET_RESET
    const int CITIUS_NET_ENDED
    const int CITIUS_NET_TLS
    const int CITIUS_NET_PROTOCOL
    const int CITIUS_NET_TOO_LARGE
    const int CITIUS_NET_SYSTEM
    const int CITIUS_NET_TIMEOUT
    const int CITIUS_NET_CANCELLED
    const int CITIUS_NET_MISUSE
    const int CITIUS_NET_SERVER
    const int CITIUS_NET_OVERLOADED
    const int CITIUS_NET_NOT_OPEN

    const int CITIUS_REPLY_NIL
    const int CITIUS_REPLY_INTEGER
    const int CITIUS_REPLY_REAL
    const int CITIUS_REPLY_BOOL
    const int CITIUS_REPLY_BYTES
    const int CITIUS_REPLY_ARRAY
    const int CITIUS_REPLY_MAP
    const int CITIUS_REPLY_ERROR

    ctypedef struct citius_conn:
        pass

    ctypedef struct citius_http_response:
        pass

    ctypedef struct citius_tls:
        size_t size
        const char *authorities
        const char *server_name
        int is_unverified

    ctypedef struct citius_field:
        citius_text name
        citius_text value

    # `size` has to be set: sizeof(citius_http_request); a timeout of CITIUS_FOREVER is none.
    ctypedef struct citius_http_request:
        size_t size
        const char *method
        const char *url
        const citius_field *fields
        size_t fields_count
        citius_text body
        size_t body_bytes_max
        int64_t timeout_ns
        const citius_tls *tls

    int citius_connect(const char *host, unsigned short port, const citius_tls *tls, int64_t timeout_ns, citius_conn **conn)
    int citius_conn_read(citius_conn *conn, void *buffer, size_t size, size_t *got, int64_t timeout_ns)
    int citius_conn_write(citius_conn *conn, const void *data, size_t size, int64_t timeout_ns)
    void citius_conn_close(citius_conn *conn)
    int citius_net_error(const char **text)
    int citius_http_call(const citius_http_request *request, citius_http_response **response)
    int citius_http_status(const citius_http_response *response)
    citius_text citius_http_body(const citius_http_response *response)
    int citius_http_field(const citius_http_response *response, const char *name, citius_text *value)
    void citius_http_free(citius_http_response *response)

    ctypedef struct citius_redis:
        pass

    ctypedef struct citius_pg:
        pass

    ctypedef struct citius_reply:
        pass

    ctypedef struct citius_rows:
        pass

    ctypedef struct citius_pg_value:
        pass

    citius_redis *citius_redis_find(const char *name)
    void citius_redis_release(citius_redis *)
    int citius_redis_call(citius_redis *, const citius_text *words, size_t count, int64_t timeout_ns, citius_reply **reply)
    int citius_reply_kind(const citius_reply *)
    int64_t citius_reply_integer(const citius_reply *)
    double citius_reply_real(const citius_reply *)
    citius_text citius_reply_text(const citius_reply *)
    size_t citius_reply_count(const citius_reply *)
    const citius_reply *citius_reply_at(const citius_reply *, size_t index)
    void citius_reply_free(citius_reply *)

    citius_pg *citius_pg_find(const char *name)
    void citius_pg_release(citius_pg *)
    citius_pg_value citius_pg_null()
    citius_pg_value citius_pg_of_integer(int64_t value)
    citius_pg_value citius_pg_of_real(double value)
    citius_pg_value citius_pg_of_text(const char *data, size_t size)
    citius_pg_value citius_pg_of_bytes(const void *data, size_t size)
    int citius_pg_query(citius_pg *, const char *sql, const citius_pg_value *values, size_t count, int64_t timeout_ns, citius_rows **rows)
    size_t citius_rows_count(const citius_rows *)
    size_t citius_rows_columns(const citius_rows *)
    int64_t citius_rows_affected(const citius_rows *)
    citius_text citius_rows_name(const citius_rows *, size_t column)
    citius_text citius_rows_text(const citius_rows *, size_t row, size_t column)
    int citius_rows_integer(const citius_rows *, size_t row, size_t column, int64_t *value)
    int citius_rows_real(const citius_rows *, size_t row, size_t column, double *value)
    void citius_rows_free(citius_rows *)

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
    int citius_flush(citius_response *)
    int citius_body_read(const citius_request *, void *buffer, size_t size, size_t *got)

    ctypedef struct citius_chan:
        pass

    ctypedef struct citius_wait_group:
        pass

    ctypedef struct citius_context:
        pass

    ctypedef struct citius_mutex:
        pass

    ctypedef struct citius_once:
        pass

    ctypedef struct citius_bytes:
        char *data
        size_t size

    ctypedef struct citius_case:
        citius_chan *chan
        void *value
        size_t size
        int32_t operation
        int32_t ok

    ctypedef void (*citius_function "void (*)(void *)")(void *argument) noexcept nogil

    int citius_go(citius_function, void *argument)
    int citius_yield()
    int citius_sleep_ns(int64_t ns)
    int citius_sleep_until_ns(int64_t at_ns)
    int64_t citius_now_ns()
    bint citius_in_goroutine()
    const char *citius_mistake()
    void citius_free(void *memory)

    citius_chan *citius_chan_make(size_t size, size_t capacity)
    citius_chan *citius_chan_make_of(int kind, size_t capacity)
    citius_chan *citius_chan_make_owned(size_t size, size_t capacity, citius_function drop)
    citius_chan *citius_chan_find(const char *name)
    citius_chan *citius_chan_retain(citius_chan *)
    void citius_chan_release(citius_chan *)
    int citius_chan_send(citius_chan *, const void *value, size_t size)
    int citius_chan_receive(citius_chan *, void *value, size_t size)
    int citius_chan_send_within(citius_chan *, const void *value, size_t size, int64_t timeout_ns)
    int citius_chan_receive_within(citius_chan *, void *value, size_t size, int64_t timeout_ns)
    int citius_chan_send_bytes(citius_chan *, const void *data, size_t size)
    int citius_chan_receive_bytes(citius_chan *, citius_bytes *)
    int citius_chan_close(citius_chan *)
    size_t citius_chan_len(const citius_chan *)
    size_t citius_chan_capacity(const citius_chan *)
    size_t citius_chan_size(const citius_chan *)
    size_t citius_chan_receivers(const citius_chan *)
    size_t citius_chan_senders(const citius_chan *)
    size_t citius_chan_references(const citius_chan *)
    int citius_select(citius_case *cases, size_t count, int64_t timeout_ns)

    citius_wait_group *citius_wait_group_make()
    citius_wait_group *citius_wait_group_retain(citius_wait_group *)
    void citius_wait_group_release(citius_wait_group *)
    int citius_wait_group_add(citius_wait_group *, int64_t count)
    int citius_wait_group_done(citius_wait_group *)
    int citius_wait_group_wait(citius_wait_group *)
    int citius_mutex_lock(citius_mutex *)
    int citius_mutex_lock_within(citius_mutex *, int64_t timeout_ns)
    int citius_mutex_unlock(citius_mutex *)
    void citius_mutex_destroy(citius_mutex *)
    int citius_once_do(citius_once *, citius_function, void *argument)

    citius_context *citius_context_current()
    citius_context *citius_context_make(citius_context *parent, int64_t deadline_ns)
    citius_context *citius_context_retain(citius_context *)
    void citius_context_release(citius_context *)
    void citius_context_cancel(citius_context *)
    int citius_context_error(const citius_context *)
    int64_t citius_context_deadline_ns(const citius_context *)
    citius_chan *citius_context_done(citius_context *)
    int citius_context_use(citius_context *)


cdef extern from "citius.h":
    object citius_handler_capsule(citius_handler)
    const citius_api *citius_import() except NULL
    int citius_chan_send_object(citius_chan *, object)
    int citius_chan_receive_object(citius_chan *, PyObject **)
    object citius_chan_to_python(citius_chan *)
    citius_chan *citius_chan_from_python(object) except NULL
