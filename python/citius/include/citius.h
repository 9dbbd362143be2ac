/* Citius: handlers in native code. ABI version 2.
 *
 * A handler is a function
 *
 *     int hello(const citius_request *request, citius_response *response);
 *
 * that reads the request, writes the response and returns 0, or a status from 400 to 599 that answers
 * instead. It runs without a Python object. Everything it is given is valid until it returns: keep no
 * pointer, and pass the structs themselves to the functions below, not copies.
 *
 * Exceptions of C++, panics and longjmp must not leave a handler, nor a function that is given to one of those
 * below, except citius_once_do: they would end the process. citius.hpp and Cython catch exceptions of handlers
 * and goroutines.
 *
 * A handler whose route has serial=True runs in a goroutine. There the functions that wait (they are marked
 * so) wait as Go's do: the goroutine parks, and its thread serves other requests. Elsewhere they block the
 * thread if it is no server's, and fail with CITIUS_MISUSE on the thread of a reactor or an event loop.
 *
 * Handlers are given to an application by their address: as a capsule (citius_handler_capsule below, or
 * Cython's __pyx_capi__), through citius.load_handlers("handlers.so"), or as a ctypes function.
 *
 * Compatibility: members are only ever added at the end of structs, and functions at the end of the
 * table, with a new CITIUS_ABI_MINOR. What changes otherwise gets a new CITIUS_ABI_VERSION, and a server
 * refuses handlers of a version that it does not know when the application starts. Version 2 has added
 * everything that waits; handlers built for version 1 are served as before.
 */
#ifndef CITIUS_H
#define CITIUS_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#ifdef __cplusplus
extern "C" {
#endif

#define CITIUS_ABI_VERSION 2
#define CITIUS_ABI_MINOR 2

/* The name of a capsule with the address of a handler; the number is the ABI's version. */
#define CITIUS_HANDLER_CAPSULE "citius.handler.2"
/* The name of the capsule with the server's own table, for modules that check before they are called. */
#define CITIUS_API_CAPSULE "citius._core._C_API_2"

/* What functions return that can fail: 0, or one of these for the handler to return in turn. */
#define CITIUS_OK 0
#define CITIUS_NOT_FOUND 404
#define CITIUS_UNPROCESSABLE 422
#define CITIUS_FAILED 500
/* The client has left, or the context was cancelled, while this goroutine waited. */
#define CITIUS_CANCELLED 499
/* There are as many goroutines as --goroutines-max permits, or there is no memory for another. */
#define CITIUS_UNAVAILABLE 503
/* The time of the wait, or the deadline of the context, is over. */
#define CITIUS_TIMEOUT 504
/* The channel is closed: nothing was sent, or nothing is left to be received. */
#define CITIUS_CLOSED 1
/* Called where it must not be, or with arguments that do not fit; citius_mistake() says what is wrong. A
 * handler that returns it, or has met with it, is answered with 500 and a line in the log. */
#define CITIUS_MISUSE 2
/* Another server could not be reached, or has not answered as its protocol asks. */
#define CITIUS_UNREACHABLE 502

/* Bytes; there is no zero byte at their end. */
typedef struct citius_text {
    const char *data;
    size_t size;
} citius_text;

/* One argument of a typed function (compiled=True); which member it is, the function's signature says. */
typedef union citius_value {
    int64_t integer;
    double real;
    citius_text text;
} citius_value;

typedef struct citius_api citius_api;

/* A request, to be read. Made by the server only. */
typedef struct citius_request {
    const citius_api *api;
    citius_text method;
    /* The path as sent: percent-encoded, without the query. */
    citius_text path;
    /* The query as sent, without its question mark. */
    citius_text query;
    /* The whole body. */
    citius_text body;
    /* The path parameters of the route in their order, percent-decoded. */
    const citius_text *params;
    size_t params_count;
    /* The arguments of a typed function. */
    const citius_value *arguments;
    size_t arguments_count;
} citius_request;

/* The answer. Made by the server only. */
typedef struct citius_response {
    const citius_api *api;
    /* The body: `size` bytes are written of the `room` there is. To write in place, ask for room with
     * citius_reserve, write to body + size and add to size. Room that nothing is written to holds zeros. */
    char *body;
    size_t size;
    size_t room;
    /* 200 unless the handler says otherwise; from 200 to 599. */
    int32_t status;
} citius_response;

typedef int (*citius_handler)(const citius_request *request, citius_response *response);

/* What goroutines share; made, retained and released by the functions below. */
typedef struct citius_chan citius_chan;
typedef struct citius_wait_group citius_wait_group;
typedef struct citius_context citius_context;

/* A time that never comes: waits without end. Zero is: do not wait. */
#define CITIUS_FOREVER INT64_C(-1)

/* A connection to another server, and a response of one. */
typedef struct citius_conn citius_conn;
typedef struct citius_http_response citius_http_response;

/* How a server's certificate is verified: begin with CITIUS_TLS_INIT. */
typedef struct citius_tls {
    size_t size;
    /* A file of certificates of authorities (PEM); NULL: SSL_CERT_FILE, or the system's. */
    const char *authorities;
    /* The name that the certificate must have; NULL: the host's. */
    const char *server_name;
    /* 1: nothing is verified; anyone on the way can read and change everything. */
    int is_unverified;
} citius_tls;

#define CITIUS_TLS_INIT {sizeof(citius_tls), NULL, NULL, 0}

/* A field line of a request. */
typedef struct citius_field {
    citius_text name;
    citius_text value;
} citius_field;

/* An HTTP request: begin with CITIUS_HTTP_REQUEST_INIT. */
typedef struct citius_http_request {
    size_t size;
    /* NULL: GET. */
    const char *method;
    /* http://... or https://..., percent-encoded. */
    const char *url;
    /* Without Content-Length, Transfer-Encoding and Connection, which the client writes. */
    const citius_field *fields;
    size_t fields_count;
    citius_text body;
    /* The largest body of a response that is taken; 0: 1 MiB. */
    size_t body_bytes_max;
    /* For all of it, from the name's look-up to the last byte. */
    int64_t timeout_ns;
    /* NULL: the defaults. */
    const citius_tls *tls;
} citius_http_request;

#define CITIUS_HTTP_REQUEST_INIT                                                                   \
    {sizeof(citius_http_request), NULL, NULL, NULL, 0, {NULL, 0}, 0, CITIUS_FOREVER, NULL}

/* Why an outgoing call has failed (citius_net_error). */
#define CITIUS_NET_OK 0
/* The host's name has no address. */
#define CITIUS_NET_NAME 1
/* No server listens there. */
#define CITIUS_NET_REFUSED 2
/* The connection broke. */
#define CITIUS_NET_RESET 3
/* The server has ended the connection in the middle of a message. */
#define CITIUS_NET_ENDED 4
/* The handshake failed, or the certificate is not as asked for. */
#define CITIUS_NET_TLS 5
/* What came is no HTTP/1.1. */
#define CITIUS_NET_PROTOCOL 6
/* What came is larger than the caller takes. */
#define CITIUS_NET_TOO_LARGE 7
/* The operating system refuses: no descriptor, no route. */
#define CITIUS_NET_SYSTEM 8
#define CITIUS_NET_TIMEOUT 9
#define CITIUS_NET_CANCELLED 10
/* An argument does not fit, or nothing may wait here. */
#define CITIUS_NET_MISUSE 11

/* Redis or PostgreSQL has refused what it was asked for: the text is its error. */
#define CITIUS_NET_SERVER 12
/* More calls wait than the client permits, or this one has waited for too long. */
#define CITIUS_NET_OVERLOADED 13
/* The client is not open. */
#define CITIUS_NET_NOT_OPEN 14

/* Clients of Redis and of PostgreSQL that the application has opened and named, and what their servers return. */
typedef struct citius_redis citius_redis;
typedef struct citius_pg citius_pg;
typedef struct citius_reply citius_reply;
typedef struct citius_rows citius_rows;

/* What a reply of Redis is. */
#define CITIUS_REPLY_NIL 0
#define CITIUS_REPLY_INTEGER 1
#define CITIUS_REPLY_REAL 2
#define CITIUS_REPLY_BOOL 3
/* A string, a status such as OK, or the digits of a number of more than 64 bits. */
#define CITIUS_REPLY_BYTES 4
/* An array or a set. */
#define CITIUS_REPLY_ARRAY 5
/* Keys and values by turns. */
#define CITIUS_REPLY_MAP 6
/* An error in an array. */
#define CITIUS_REPLY_ERROR 7

/* A parameter of a statement, made by citius_pg_null and the functions beside it. */
typedef struct citius_pg_value {
    int32_t kind;
    citius_value value;
} citius_pg_value;

/* Bytes that were received and are the caller's: to be given to citius_free. */
typedef struct citius_bytes {
    char *data;
    size_t size;
} citius_bytes;

/* One case of a select. A case without a channel is never chosen. */
typedef struct citius_case {
    citius_chan *chan;
    /* What is sent, or where what is received is written to (NULL: nowhere). */
    void *value;
    /* Bytes of the value: the channel's. */
    size_t size;
    /* CITIUS_SEND or CITIUS_RECEIVE. */
    int32_t operation;
    /* Of the case that was chosen: 1, or 0 when a receive has found the channel closed. */
    int32_t ok;
} citius_case;

#define CITIUS_RECEIVE 0
#define CITIUS_SEND 1

/* What the values of a channel are: bytes of one size that Python sees as bytes, int, float, bool or None;
 * bytes of any number; Python objects. */
#define CITIUS_ELEMENT_OPAQUE 0
#define CITIUS_ELEMENT_INTEGER 1
#define CITIUS_ELEMENT_REAL 2
#define CITIUS_ELEMENT_BOOL 3
#define CITIUS_ELEMENT_UNIT 4
#define CITIUS_ELEMENT_BYTES 5
#define CITIUS_ELEMENT_OBJECT 6

/* What a server does for handlers. Call it by the functions below. */
struct citius_api {
    uint32_t version;
    uint32_t minor;
    /* Bytes of this table in the server at hand. */
    size_t size;
    int (*reserve)(citius_response *response, size_t size);
    int (*set_content_type)(citius_response *response, const char *data, size_t size);
    int (*add_header)(citius_response *response, const char *name, size_t name_size,
                      const char *value, size_t value_size);
    int (*write_integer)(citius_response *response, int64_t value);
    int (*write_real)(citius_response *response, double value);
    int (*header)(const citius_request *request, const char *name, size_t name_size,
                  citius_text *value);
    int (*query)(const citius_request *request, const char *name, size_t name_size,
                 citius_text *value);
    int (*param)(const citius_request *request, size_t index, citius_text *value);
    int (*integer)(citius_text text, int64_t *value);
    /* Since version 2. */
    int (*go)(void (*function)(void *argument), void *argument);
    int (*yield)(void);
    int (*sleep_until)(int64_t at_ns);
    int64_t (*now)(void);
    int (*in_goroutine)(void);
    const char *(*mistake)(void);
    void (*free)(void *memory);
    citius_chan *(*chan_make)(int kind, size_t size, size_t capacity, void (*drop)(void *value));
    citius_chan *(*chan_find)(const char *name, size_t name_size);
    citius_chan *(*chan_retain)(citius_chan *chan);
    void (*chan_release)(citius_chan *chan);
    int (*chan_send)(citius_chan *chan, const void *value, size_t size, int64_t timeout_ns);
    int (*chan_receive)(citius_chan *chan, void *value, size_t size, int64_t timeout_ns);
    int (*chan_send_bytes)(citius_chan *chan, const void *data, size_t size, int64_t timeout_ns);
    int (*chan_receive_bytes)(citius_chan *chan, citius_bytes *bytes, int64_t timeout_ns);
    int (*chan_send_object)(citius_chan *chan, void *object, int64_t timeout_ns);
    int (*chan_receive_object)(citius_chan *chan, void **object, int64_t timeout_ns);
    int (*chan_close)(citius_chan *chan);
    size_t (*chan_count)(const citius_chan *chan, int what);
    void *(*chan_to_python)(citius_chan *chan);
    citius_chan *(*chan_from_python)(void *object);
    int (*select)(citius_case *cases, size_t count, int64_t timeout_ns);
    citius_wait_group *(*wait_group_make)(void);
    citius_wait_group *(*wait_group_retain)(citius_wait_group *group);
    void (*wait_group_release)(citius_wait_group *group);
    int (*wait_group_add)(citius_wait_group *group, int64_t count);
    int (*wait_group_wait)(citius_wait_group *group);
    int (*mutex_lock)(void **state, int64_t timeout_ns);
    int (*mutex_unlock)(void **state);
    void (*mutex_destroy)(void **state);
    int (*once)(void **state, void (*function)(void *argument), void *argument);
    citius_context *(*context_current)(void);
    citius_context *(*context_make)(citius_context *parent, int64_t deadline_ns);
    citius_context *(*context_retain)(citius_context *context);
    void (*context_release)(citius_context *context);
    void (*context_cancel)(citius_context *context);
    int (*context_error)(const citius_context *context);
    int64_t (*context_deadline)(const citius_context *context);
    citius_chan *(*context_done)(citius_context *context);
    int (*context_use)(citius_context *context);
    void (*cxx_globals)(void *(*globals)(void));
    int (*flush)(citius_response *response);
    int (*body_read)(const citius_request *request, void *buffer, size_t size, size_t *got);
    /* Since minor version 1. */
    int (*connect)(const char *host, unsigned short port, const citius_tls *tls, int64_t timeout_ns,
                   citius_conn **conn);
    int (*conn_read)(citius_conn *conn, void *buffer, size_t size, size_t *got, int64_t timeout_ns);
    int (*conn_write)(citius_conn *conn, const void *data, size_t size, int64_t timeout_ns);
    void (*conn_close)(citius_conn *conn);
    int (*net_error)(const char **text);
    int (*http_call)(const citius_http_request *request, citius_http_response **response);
    int (*http_status)(const citius_http_response *response);
    citius_text (*http_body)(const citius_http_response *response);
    int (*http_field)(const citius_http_response *response, const char *name, size_t name_size,
                      citius_text *value);
    void (*http_free)(citius_http_response *response);
    /* Since minor version 2. */
    void *(*engine_find)(int kind, const char *name, size_t name_size);
    void (*engine_release)(void *engine);
    int (*redis_call)(citius_redis *redis, const citius_text *words, size_t count, int64_t timeout_ns,
                      citius_reply **reply);
    int (*reply_kind)(const citius_reply *reply);
    int64_t (*reply_integer)(const citius_reply *reply);
    double (*reply_real)(const citius_reply *reply);
    citius_text (*reply_text)(const citius_reply *reply);
    size_t (*reply_count)(const citius_reply *reply);
    const citius_reply *(*reply_at)(const citius_reply *reply, size_t index);
    void (*reply_free)(citius_reply *reply);
    int (*pg_query)(citius_pg *pg, const char *sql, const citius_pg_value *values, size_t count,
                    int64_t timeout_ns, citius_rows **rows);
    int64_t (*pg_count)(const citius_rows *rows, int what);
    citius_text (*pg_column)(const citius_rows *rows, size_t column);
    citius_text (*pg_text)(const citius_rows *rows, size_t row, size_t column);
    int (*pg_integer)(const citius_rows *rows, size_t row, size_t column, int64_t *value);
    int (*pg_real)(const citius_rows *rows, size_t row, size_t column, double *value);
    void (*pg_free)(citius_rows *rows);
};

/* --- the request -------------------------------------------------------------------------------- */

/* The first value of a header field, found without regard to case: 0, or CITIUS_NOT_FOUND. */
static inline int citius_header(const citius_request *request, const char *name,
                                citius_text *value) {
    return request->api->header(request, name, strlen(name), value);
}

/* The last value of a query parameter, percent-decoded: 0, or CITIUS_NOT_FOUND. */
static inline int citius_query(const citius_request *request, const char *name,
                               citius_text *value) {
    return request->api->query(request, name, strlen(name), value);
}

/* The path parameter at `index`: 0, or CITIUS_FAILED (and a line in the log) if the route has fewer. */
static inline int citius_param(const citius_request *request, size_t index, citius_text *value) {
    return request->api->param(request, index, value);
}

/* A whole number that fits 64 bits, read as the server reads all numbers of requests (decimal digits, perhaps
 * behind a minus; 1e3 and 5.0 are whole, too): 0, or CITIUS_UNPROCESSABLE. */
static inline int citius_integer(const citius_request *request, citius_text text, int64_t *value) {
    return request->api->integer(text, value);
}

/* The path parameter at `index` as a whole number. */
static inline int citius_param_integer(const citius_request *request, size_t index,
                                       int64_t *value) {
    citius_text text = {NULL, 0};
    int code = citius_param(request, index, &text);
    return code != CITIUS_OK ? code : citius_integer(request, text, value);
}

/* Copies the next bytes of the body to `buffer`, at most `size`; `got` is how many, 0 at the end. With stream=True on
 * the route the handler is called when the header section has come, `request->body` is empty, and this waits.
 * 0, CITIUS_CANCELLED, CITIUS_TIMEOUT or CITIUS_MISUSE. */
static inline int citius_body_read(const citius_request *request, void *buffer, size_t size, size_t *got) {
    return request->api->body_read(request, buffer, size, got);
}

/* A query parameter as a whole number; `otherwise` if it was not sent. */
static inline int citius_query_integer(const citius_request *request, const char *name,
                                       int64_t otherwise, int64_t *value) {
    citius_text text = {NULL, 0};
    if (citius_query(request, name, &text) != CITIUS_OK) {
        *value = otherwise;
        return CITIUS_OK;
    }
    return citius_integer(request, text, value);
}

/* --- the response ------------------------------------------------------------------------------- */

/* Makes room for `size` more bytes; `response->body` may move. CITIUS_FAILED beyond the server's
 * --compiled-body-bytes-max. */
static inline int citius_reserve(citius_response *response, size_t size) {
    if (response->size <= response->room && size <= response->room - response->size) {
        return CITIUS_OK;
    }
    return response->api->reserve(response, size);
}

/* Adds to the body. `data` may be a part of the body, which moves when there is no room. */
static inline int citius_write(citius_response *response, const void *data, size_t size) {
    if (response->size > response->room || size > response->room - response->size) {
        uintptr_t offset = (uintptr_t)data - (uintptr_t)response->body;
        int is_in_body = response->size != 0 && offset < response->size;
        int code = citius_reserve(response, size);
        if (code != CITIUS_OK) {
            return code;
        }
        if (is_in_body) {
            data = response->body + offset;
        }
    }
    if (size != 0) {
        memcpy(response->body + response->size, data, size);
        response->size += size;
    }
    return CITIUS_OK;
}

/* Adds a text that ends in a zero byte. */
static inline int citius_print(citius_response *response, const char *text) {
    return citius_write(response, text, strlen(text));
}

/* Adds a number in decimal digits. */
static inline int citius_print_integer(citius_response *response, int64_t value) {
    return response->api->write_integer(response, value);
}

/* Adds a number as JSON has it, with as few digits as tell it from every other. */
static inline int citius_print_real(citius_response *response, double value) {
    return response->api->write_real(response, value);
}

/* The media type; without a call it is the route's, or application/octet-stream. */
static inline int citius_content_type(citius_response *response, const char *media_type) {
    return response->api->set_content_type(response, media_type, strlen(media_type));
}

/* In a goroutine: sends what is written, the status and the header fields first, and goes on with an empty body. Waits while
 * the client is slow. What is written after the last call is sent when the handler returns 0; any other result
 * breaks the response off. 0, CITIUS_CANCELLED, CITIUS_TIMEOUT, or CITIUS_FAILED and a line in the log. */
static inline int citius_flush(citius_response *response) { return response->api->flush(response); }

/* Adds a header field. One that HTTP does not allow (a line end in it, say) makes the answer a 500. */
static inline int citius_add_header(citius_response *response, const char *name,
                                    const char *value) {
    return response->api->add_header(response, name, strlen(name), value, strlen(value));
}

/* --- the server's table -------------------------------------------------------------------------- */

/* The table for code that has no request at hand, one for each library or extension module. It is set by
 * citius.load_handlers in a library with CITIUS_LIBRARY, and on the first use in what includes Python.h. */
__attribute__((weak, visibility("hidden"))) const citius_api *citius_runtime;

#ifdef Py_PYTHON_H
static inline const citius_api *citius_import(void);

static inline const citius_api *citius_load_runtime(void) {
    PyGILState_STATE state = PyGILState_Ensure();
    PyObject *type, *value, *traceback;
    const citius_api *api;
    PyErr_Fetch(&type, &value, &traceback);
    api = citius_import();
    if (api == NULL) {
        PyErr_WriteUnraisable(Py_None);
    }
    PyErr_Restore(type, value, traceback);
    PyGILState_Release(state);
    return api;
}
#else
static inline const citius_api *citius_load_runtime(void) { return NULL; }
#endif

static inline const citius_api *citius_table(void) {
    if (__builtin_expect(citius_runtime == NULL, 0)) {
        citius_runtime = citius_load_runtime();
    }
    return citius_runtime;
}

/* Calls a function of the table; without a table the result is `otherwise`. */
#define CITIUS_CALL(otherwise, name, ...)                                                          \
    (citius_table() != NULL ? citius_runtime->name(__VA_ARGS__) : (otherwise))

/* --- goroutines ----------------------------------------------------------------------------------- */

/* Starts a goroutine that calls `function`: on the reactor or the pool of the caller's goroutine, on the
 * reactor whose thread this is, or else on the pool. It inherits the context of its starter. 0, or
 * CITIUS_UNAVAILABLE. An exception that leaves `function` ends the process: catch it there, or use `go` of citius.hpp, which
 * logs it and ends the goroutine only. */
static inline int citius_go(void (*function)(void *argument), void *argument) {
    return CITIUS_CALL(CITIUS_MISUSE, go, function, argument);
}

/* Lets other goroutines run that are ready. */
static inline int citius_yield(void) { return CITIUS_CALL(CITIUS_MISUSE, yield, ); }

/* Nanoseconds on the monotonic clock. */
static inline int64_t citius_now_ns(void) { return CITIUS_CALL(0, now, ); }

/* Waits. 0, CITIUS_CANCELLED, CITIUS_TIMEOUT (the deadline of the context comes first) or CITIUS_MISUSE. */
static inline int citius_sleep_until_ns(int64_t at_ns) {
    return CITIUS_CALL(CITIUS_MISUSE, sleep_until, at_ns);
}

/* The same, from now. */
static inline int citius_sleep_ns(int64_t ns) {
    int64_t now = citius_now_ns();
    return citius_sleep_until_ns(ns > INT64_MAX - now ? INT64_MAX : now + (ns > 0 ? ns : 0));
}

/* Whether the caller runs in a goroutine. */
static inline int citius_in_goroutine(void) { return CITIUS_CALL(0, in_goroutine, ); }

/* What was wrong with the last call of this goroutine or thread that returned CITIUS_MISUSE. */
static inline const char *citius_mistake(void) {
    return CITIUS_CALL("there is no table of the server: load the library by citius.load_handlers, or call "
                       "citius_import in an extension module",
                       mistake, );
}

/* Frees the memory of citius_bytes. */
static inline void citius_free(void *memory) {
    if (citius_table() != NULL) {
        citius_runtime->free(memory);
    }
}

/* --- channels ------------------------------------------------------------------------------------- */

/* A channel of values of `size` bytes with a buffer of `capacity` values. It is the caller's to release. NULL:
 * there is no table of the server. */
static inline citius_chan *citius_chan_make(size_t size, size_t capacity) {
    return CITIUS_CALL(NULL, chan_make, CITIUS_ELEMENT_OPAQUE, size, capacity, NULL);
}

/* The same for a CITIUS_ELEMENT of another kind; what Python makes by citius.go.chan(capacity, type=...). */
static inline citius_chan *citius_chan_make_of(int kind, size_t capacity) {
    return CITIUS_CALL(NULL, chan_make, kind, 0, capacity, NULL);
}

/* The same for values that own something: `drop` frees one that is never received, on any thread. An exception must not leave
 * it: that would end the process. */
static inline citius_chan *citius_chan_make_owned(size_t size, size_t capacity, void (*drop)(void *value)) {
    return CITIUS_CALL(NULL, chan_make, CITIUS_ELEMENT_OPAQUE, size, capacity, drop);
}

/* The channel that Python has given this name (citius.go.share); the caller's to release. NULL: there is none. */
static inline citius_chan *citius_chan_find(const char *name) {
    return CITIUS_CALL(NULL, chan_find, name, strlen(name));
}

/* Makes another reference; returns the channel. NULL stays NULL, here and below. */
static inline citius_chan *citius_chan_retain(citius_chan *chan) {
    return chan == NULL ? NULL : CITIUS_CALL(NULL, chan_retain, chan);
}

/* Gives up a reference. With the last one the channel ends, and the values in it. */
static inline void citius_chan_release(citius_chan *chan) {
    if (chan != NULL && citius_table() != NULL) {
        citius_runtime->chan_release(chan);
    }
}

/* Sends a value of `size` bytes. Waits for a receiver, or for room in the buffer. 0, CITIUS_CLOSED,
 * CITIUS_CANCELLED, CITIUS_TIMEOUT or CITIUS_MISUSE. A NULL channel is never ready. */
static inline int citius_chan_send(citius_chan *chan, const void *value, size_t size) {
    return CITIUS_CALL(CITIUS_MISUSE, chan_send, chan, value, size, CITIUS_FOREVER);
}

/* Receives a value of `size` bytes (NULL: and drops it). Waits for one. 0; CITIUS_CLOSED if the channel is
 * closed and empty, with zeros as the value; otherwise as citius_chan_send. */
static inline int citius_chan_receive(citius_chan *chan, void *value, size_t size) {
    return CITIUS_CALL(CITIUS_MISUSE, chan_receive, chan, value, size, CITIUS_FOREVER);
}

/* The same, waiting at most so long (0: not at all, CITIUS_TIMEOUT). */
static inline int citius_chan_send_within(citius_chan *chan, const void *value, size_t size,
                                          int64_t timeout_ns) {
    return CITIUS_CALL(CITIUS_MISUSE, chan_send, chan, value, size, timeout_ns);
}

static inline int citius_chan_receive_within(citius_chan *chan, void *value, size_t size,
                                             int64_t timeout_ns) {
    return CITIUS_CALL(CITIUS_MISUSE, chan_receive, chan, value, size, timeout_ns);
}

/* The same for channels of CITIUS_ELEMENT_BYTES; what is received is to be given to citius_free. */
static inline int citius_chan_send_bytes(citius_chan *chan, const void *data, size_t size) {
    return CITIUS_CALL(CITIUS_MISUSE, chan_send_bytes, chan, data, size, CITIUS_FOREVER);
}

static inline int citius_chan_receive_bytes(citius_chan *chan, citius_bytes *bytes) {
    return CITIUS_CALL(CITIUS_MISUSE, chan_receive_bytes, chan, bytes, CITIUS_FOREVER);
}

/* Says that nothing will be sent any more. 0, or CITIUS_CLOSED the second time. */
static inline int citius_chan_close(citius_chan *chan) {
    return CITIUS_CALL(CITIUS_MISUSE, chan_close, chan);
}

/* Values in the buffer; its size; bytes of a value; receivers and senders that wait. */
static inline size_t citius_chan_len(const citius_chan *chan) {
    return chan == NULL ? 0 : CITIUS_CALL(0, chan_count, chan, 0);
}

static inline size_t citius_chan_capacity(const citius_chan *chan) {
    return chan == NULL ? 0 : CITIUS_CALL(0, chan_count, chan, 1);
}

static inline size_t citius_chan_size(const citius_chan *chan) {
    return chan == NULL ? 0 : CITIUS_CALL(0, chan_count, chan, 2);
}

static inline size_t citius_chan_receivers(const citius_chan *chan) {
    return chan == NULL ? 0 : CITIUS_CALL(0, chan_count, chan, 3);
}

static inline size_t citius_chan_senders(const citius_chan *chan) {
    return chan == NULL ? 0 : CITIUS_CALL(0, chan_count, chan, 4);
}

static inline size_t citius_chan_references(const citius_chan *chan) {
    return chan == NULL ? 0 : CITIUS_CALL(0, chan_count, chan, 5);
}

/* Does one of the cases that are ready, each with the same probability; waits for one, at most for
 * `timeout_ns` (0: the default, not at all). Returns the index of the case, whose `ok` says whether a
 * value was received. Negative: nothing was done, and -result is CITIUS_TIMEOUT, CITIUS_CANCELLED,
 * CITIUS_CLOSED (the case would have sent on a closed channel) or CITIUS_MISUSE. */
static inline int citius_select(citius_case *cases, size_t count, int64_t timeout_ns) {
    return CITIUS_CALL(-CITIUS_MISUSE, select, cases, count, timeout_ns);
}

/* --- wait groups, locks --------------------------------------------------------------------------- */

/* Waits until as many things are done as were added. */
static inline citius_wait_group *citius_wait_group_make(void) {
    return CITIUS_CALL(NULL, wait_group_make, );
}

static inline citius_wait_group *citius_wait_group_retain(citius_wait_group *group) {
    return CITIUS_CALL(NULL, wait_group_retain, group);
}

static inline void citius_wait_group_release(citius_wait_group *group) {
    if (group != NULL && citius_table() != NULL) {
        citius_runtime->wait_group_release(group);
    }
}

/* 0, or CITIUS_MISUSE if the count would be below zero. */
static inline int citius_wait_group_add(citius_wait_group *group, int64_t count) {
    return CITIUS_CALL(CITIUS_MISUSE, wait_group_add, group, count);
}

static inline int citius_wait_group_done(citius_wait_group *group) {
    return citius_wait_group_add(group, -1);
}

/* Waits. 0, CITIUS_CANCELLED, CITIUS_TIMEOUT or CITIUS_MISUSE. */
static inline int citius_wait_group_wait(citius_wait_group *group) {
    return CITIUS_CALL(CITIUS_MISUSE, wait_group_wait, group);
}

/* A lock that one goroutine or thread holds at a time: CITIUS_MUTEX_INIT, static or on the heap. */
typedef struct citius_mutex {
    void *state;
} citius_mutex;

#define CITIUS_MUTEX_INIT {0}

/* Waits. 0, CITIUS_CANCELLED, CITIUS_TIMEOUT or CITIUS_MISUSE; it is locked only if the result is 0. */
static inline int citius_mutex_lock(citius_mutex *mutex) {
    return CITIUS_CALL(CITIUS_MISUSE, mutex_lock, &mutex->state, CITIUS_FOREVER);
}

/* The same, waiting at most so long. */
static inline int citius_mutex_lock_within(citius_mutex *mutex, int64_t timeout_ns) {
    return CITIUS_CALL(CITIUS_MISUSE, mutex_lock, &mutex->state, timeout_ns);
}

/* 0, or CITIUS_MISUSE if it is not locked. */
static inline int citius_mutex_unlock(citius_mutex *mutex) {
    return CITIUS_CALL(CITIUS_MISUSE, mutex_unlock, &mutex->state);
}

/* Frees the memory of a lock that nothing uses any more. */
static inline void citius_mutex_destroy(citius_mutex *mutex) {
    if (citius_table() != NULL) {
        citius_runtime->mutex_destroy(&mutex->state);
    }
}

/* Something to be done once: CITIUS_ONCE_INIT, static. */
typedef struct citius_once {
    void *state;
} citius_once;

#define CITIUS_ONCE_INIT {0}

/* Calls `function` the first time; every other call waits until it has returned. As citius_mutex_lock. An exception of C++
 * that leaves `function` leaves this call, too, and the next call, or one that waits, calls `function` again. */
static inline int citius_once_do(citius_once *once, void (*function)(void *argument), void *argument) {
    return CITIUS_CALL(CITIUS_MISUSE, once, &once->state, function, argument);
}

/* --- contexts ------------------------------------------------------------------------------------- */

/* Every wait of a goroutine observes the goroutine's context: when it is cancelled, or its deadline has come, the
 * wait ends with CITIUS_CANCELLED or CITIUS_TIMEOUT, and so does each later one that would have to wait. The context
 * of a handler is cancelled when its client leaves; goroutines inherit the context of their starter. NULL is the
 * context that never ends. */

/* The context of this goroutine; the caller's to release. */
static inline citius_context *citius_context_current(void) {
    return CITIUS_CALL(NULL, context_current, );
}

/* A context that ends with `parent`, and at `deadline_ns` (CITIUS_FOREVER: by citius_context_cancel only). The
 * caller's to release. */
static inline citius_context *citius_context_make(citius_context *parent, int64_t deadline_ns) {
    return CITIUS_CALL(NULL, context_make, parent, deadline_ns);
}

static inline citius_context *citius_context_retain(citius_context *context) {
    return context == NULL ? NULL : CITIUS_CALL(NULL, context_retain, context);
}

static inline void citius_context_release(citius_context *context) {
    if (context != NULL && citius_table() != NULL) {
        citius_runtime->context_release(context);
    }
}

/* Ends it, and all contexts that were made of it. */
static inline void citius_context_cancel(citius_context *context) {
    if (context != NULL && citius_table() != NULL) {
        citius_runtime->context_cancel(context);
    }
}

/* 0, CITIUS_CANCELLED or CITIUS_TIMEOUT. */
static inline int citius_context_error(const citius_context *context) {
    return context == NULL ? CITIUS_OK : CITIUS_CALL(CITIUS_OK, context_error, context);
}

/* Its deadline on the clock of citius_now_ns, or CITIUS_FOREVER. */
static inline int64_t citius_context_deadline_ns(const citius_context *context) {
    return context == NULL ? CITIUS_FOREVER : CITIUS_CALL(CITIUS_FOREVER, context_deadline, context);
}

/* A channel that is closed when it ends, for a select; the caller's to release. */
static inline citius_chan *citius_context_done(citius_context *context) {
    return context == NULL ? NULL : CITIUS_CALL(NULL, context_done, context);
}

/* Makes it the context of this goroutine. A goroutine that has to wait although its client has left uses NULL for that
 * time. 0, or CITIUS_MISUSE outside of goroutines. */
static inline int citius_context_use(citius_context *context) {
    return CITIUS_CALL(CITIUS_MISUSE, context_use, context);
}

/* --- calls of other servers ----------------------------------------------------------------------- */

/* All of these wait. They return 0, or CITIUS_UNREACHABLE, CITIUS_TIMEOUT, CITIUS_CANCELLED or CITIUS_MISUSE, which a
 * handler may return in turn; citius_net_error says more. */

/* Connects over TCP, and TLS unless `tls` is NULL. The connection is the caller's to close; NULL after a failure. */
static inline int citius_connect(const char *host, unsigned short port, const citius_tls *tls,
                                 int64_t timeout_ns, citius_conn **conn) {
    return CITIUS_CALL(CITIUS_MISUSE, connect, host, port, tls, timeout_ns, conn);
}

/* Reads what there is, at most `size` bytes, and waits for the first. `got` is how many; 0: the server sends no more. One
 * goroutine may read while another one writes. Over TLS an end that the server has not announced is CITIUS_UNREACHABLE
 * (CITIUS_NET_ENDED). */
static inline int citius_conn_read(citius_conn *conn, void *buffer, size_t size, size_t *got,
                                   int64_t timeout_ns) {
    return CITIUS_CALL(CITIUS_MISUSE, conn_read, conn, buffer, size, got, timeout_ns);
}

/* Writes all of it. After a failure it is not known how much was sent. */
static inline int citius_conn_write(citius_conn *conn, const void *data, size_t size,
                                    int64_t timeout_ns) {
    return CITIUS_CALL(CITIUS_MISUSE, conn_write, conn, data, size, timeout_ns);
}

/* Closes it; NULL is as good. No other goroutine may use it any more. */
static inline void citius_conn_close(citius_conn *conn) {
    if (conn != NULL && citius_table() != NULL) {
        citius_runtime->conn_close(conn);
    }
}

/* Why the last of these calls of this goroutine or thread that failed has failed: a CITIUS_NET reason, and a text that is valid until
 * the next one (`text` may be NULL). */
static inline int citius_net_error(const char **text) {
    return CITIUS_CALL(CITIUS_NET_MISUSE, net_error, text);
}

/* Sends a request over HTTP/1.1, by a connection of an earlier one if its server keeps one open, and waits for the whole
 * response. A status of 400 or more is a response as any other. Redirects are not followed. The response is the caller's to free;
 * NULL after a failure. */
static inline int citius_http_call(const citius_http_request *request,
                                   citius_http_response **response) {
    return CITIUS_CALL(CITIUS_MISUSE, http_call, request, response);
}

/* The status of a response; its body; the first value of a field (0, or CITIUS_NOT_FOUND). Valid until it is freed. */
static inline int citius_http_status(const citius_http_response *response) {
    return CITIUS_CALL(0, http_status, response);
}

static inline citius_text citius_http_body(const citius_http_response *response) {
    citius_text none = {NULL, 0};
    return CITIUS_CALL(none, http_body, response);
}

static inline int citius_http_field(const citius_http_response *response, const char *name,
                                    citius_text *value) {
    return CITIUS_CALL(CITIUS_NOT_FOUND, http_field, response, name, strlen(name), value);
}

static inline void citius_http_free(citius_http_response *response) {
    if (response != NULL && citius_table() != NULL) {
        citius_runtime->http_free(response);
    }
}

/* --- Redis and PostgreSQL ------------------------------------------------------------------------- */

/* Calls on the connections of a citius.redis.Redis or citius.pg.Pool that the application has opened (App(lifespan=...)) and
 * named: citius.go.share("cache", redis). The functions that call wait; they return 0, or
 *
 *     CITIUS_FAILED (CITIUS_NET_SERVER)            the server has refused it; the text of citius_net_error begins with the code
 *     CITIUS_UNAVAILABLE (CITIUS_NET_OVERLOADED)   too much waits, the client's own time is over, or the server cannot serve now
 *     CITIUS_UNREACHABLE                           the connection is gone (CITIUS_NET_RESET), the client not open
 *     CITIUS_TIMEOUT, CITIUS_CANCELLED             it may have been done; a statement that still runs is cancelled
 *     CITIUS_MISUSE                                */

/* The client of a name, the caller's to release; NULL if none has it. It may be kept for as long as the process runs. */
static inline citius_redis *citius_redis_find(const char *name) {
    return (citius_redis *)CITIUS_CALL(NULL, engine_find, 0, name, strlen(name));
}

static inline void citius_redis_release(citius_redis *redis) {
    if (redis != NULL && citius_table() != NULL) {
        citius_runtime->engine_release(redis);
    }
}

/* Sends a command, its name and its arguments, and waits for the reply, which is the caller's to free; NULL after a failure.
 * `reply` may be NULL. */
static inline int citius_redis_call(citius_redis *redis, const citius_text *words, size_t count,
                                    int64_t timeout_ns, citius_reply **reply) {
    return CITIUS_CALL(CITIUS_MISUSE, redis_call, redis, words, count, timeout_ns, reply);
}

/* What a reply is: CITIUS_REPLY_NIL, ... Its number; its text (data is NULL if it has none). Valid until it is freed. */
static inline int citius_reply_kind(const citius_reply *reply) {
    return CITIUS_CALL(CITIUS_REPLY_NIL, reply_kind, reply);
}

static inline int64_t citius_reply_integer(const citius_reply *reply) {
    return CITIUS_CALL(0, reply_integer, reply);
}

static inline double citius_reply_real(const citius_reply *reply) {
    return CITIUS_CALL(0, reply_real, reply);
}

static inline citius_text citius_reply_text(const citius_reply *reply) {
    citius_text none = {NULL, 0};
    return CITIUS_CALL(none, reply_text, reply);
}

/* Elements of an array, or keys and values of a map; one of them, which belongs to the reply (NULL: there is none). */
static inline size_t citius_reply_count(const citius_reply *reply) {
    return CITIUS_CALL(0, reply_count, reply);
}

static inline const citius_reply *citius_reply_at(const citius_reply *reply, size_t index) {
    return CITIUS_CALL(NULL, reply_at, reply, index);
}

static inline void citius_reply_free(citius_reply *reply) {
    if (reply != NULL && citius_table() != NULL) {
        citius_runtime->reply_free(reply);
    }
}

/* The pool of a name, as citius_redis_find. */
static inline citius_pg *citius_pg_find(const char *name) {
    return (citius_pg *)CITIUS_CALL(NULL, engine_find, 1, name, strlen(name));
}

static inline void citius_pg_release(citius_pg *pg) {
    if (pg != NULL && citius_table() != NULL) {
        citius_runtime->engine_release(pg);
    }
}

/* Parameters: NULL; a number; a text in the text format of whatever type the parameter has ("2026-11-25", "{1,2}"); bytes in the
 * binary format of the type, which for bytea are the bytes themselves. */
static inline citius_pg_value citius_pg_null(void) {
    citius_pg_value made = {0, {0}};
    return made;
}

static inline citius_pg_value citius_pg_of_integer(int64_t value) {
    citius_pg_value made = {3, {0}};
    made.value.integer = value;
    return made;
}

static inline citius_pg_value citius_pg_of_real(double value) {
    citius_pg_value made = {4, {0}};
    made.value.real = value;
    return made;
}

static inline citius_pg_value citius_pg_of_text(const char *data, size_t size) {
    citius_pg_value made = {1, {0}};
    made.value.text.data = data;
    made.value.text.size = size;
    return made;
}

static inline citius_pg_value citius_pg_of_bytes(const void *data, size_t size) {
    citius_pg_value made = {2, {0}};
    made.value.text.data = (const char *)data;
    made.value.text.size = size;
    return made;
}

/* Executes a statement with parameters $1, $2, ..., in a transaction of its own, and waits for all of its rows, which are the
 * caller's to free; NULL after a failure. `rows` may be NULL. BEGIN, COMMIT and their kin are CITIUS_MISUSE: other requests
 * share the session. */
static inline int citius_pg_query(citius_pg *pg, const char *sql, const citius_pg_value *values,
                                  size_t count, int64_t timeout_ns, citius_rows **rows) {
    return CITIUS_CALL(CITIUS_MISUSE, pg_query, pg, sql, values, count, timeout_ns, rows);
}

/* How many rows came; columns; rows that the statement has changed or returned. */
static inline size_t citius_rows_count(const citius_rows *rows) {
    return (size_t)CITIUS_CALL(0, pg_count, rows, 0);
}

static inline size_t citius_rows_columns(const citius_rows *rows) {
    return (size_t)CITIUS_CALL(0, pg_count, rows, 1);
}

static inline int64_t citius_rows_affected(const citius_rows *rows) {
    return CITIUS_CALL(0, pg_count, rows, 2);
}

/* The name of a column; data is NULL if there is none. Texts are valid until the rows are freed. */
static inline citius_text citius_rows_name(const citius_rows *rows, size_t column) {
    citius_text none = {NULL, 0};
    return CITIUS_CALL(none, pg_column, rows, column);
}

/* A value in the text format of its type, a bytea as its bytes; data is NULL for NULL and beyond the rows and columns. */
static inline citius_text citius_rows_text(const citius_rows *rows, size_t row, size_t column) {
    citius_text none = {NULL, 0};
    return CITIUS_CALL(none, pg_text, rows, row, column);
}

/* A value as a number: 0, CITIUS_NOT_FOUND (it is NULL, or there is none), or CITIUS_UNPROCESSABLE. */
static inline int citius_rows_integer(const citius_rows *rows, size_t row, size_t column,
                                      int64_t *value) {
    return CITIUS_CALL(CITIUS_NOT_FOUND, pg_integer, rows, row, column, value);
}

static inline int citius_rows_real(const citius_rows *rows, size_t row, size_t column,
                                   double *value) {
    return CITIUS_CALL(CITIUS_NOT_FOUND, pg_real, rows, row, column, value);
}

static inline void citius_rows_free(citius_rows *rows) {
    if (rows != NULL && citius_table() != NULL) {
        citius_runtime->pg_free(rows);
    }
}

/* --- for Python -------------------------------------------------------------------------------- */

/* Once in a shared library for citius.load_handlers: says which version it was made for, and takes the table. */
#define CITIUS_LIBRARY                                                                             \
    __attribute__((visibility("default"))) extern const uint32_t citius_abi_version;              \
    const uint32_t citius_abi_version = CITIUS_ABI_VERSION;                                        \
    __attribute__((visibility("default"))) extern void citius_library_init(const citius_api *api); \
    void citius_library_init(const citius_api *api) { citius_runtime = api; }

#ifdef Py_PYTHON_H
/* A new capsule that `compiled=` takes; NULL with an exception set. */
static inline PyObject *citius_handler_capsule(citius_handler handler) {
    union {
        citius_handler function;
        void *address;
    } pointer;
    pointer.function = handler;
    return PyCapsule_New(pointer.address, CITIUS_HANDLER_CAPSULE, NULL);
}

/* The table of the server in this process; NULL with an exception set if there is none, or one that is
 * too old for what this was compiled with. */
static inline const citius_api *citius_import(void) {
    const citius_api *api = NULL;
    PyObject *module = PyImport_ImportModule("citius._core");
    if (module == NULL) {
        return NULL;
    }
    Py_DECREF(module);
    api = (const citius_api *)PyCapsule_Import(CITIUS_API_CAPSULE, 0);
    if (api != NULL && (api->version != CITIUS_ABI_VERSION || api->size < sizeof(citius_api))) {
        PyErr_Format(PyExc_ImportError,
                     "this module was made for version %d.%d of citius.h, the installed citius has "
                     "%u.%u; build it again or update citius",
                     CITIUS_ABI_VERSION, CITIUS_ABI_MINOR, api->version, api->minor);
        return NULL;
    }
    citius_runtime = api;
    return api;
}

/* With the GIL: sends an object (a reference is made), receives one (a new reference). As citius_chan_send. */
static inline int citius_chan_send_object(citius_chan *chan, PyObject *object) {
    return CITIUS_CALL(CITIUS_MISUSE, chan_send_object, chan, object, CITIUS_FOREVER);
}

static inline int citius_chan_receive_object(citius_chan *chan, PyObject **object) {
    void *received = NULL;
    int code = CITIUS_CALL(CITIUS_MISUSE, chan_receive_object, chan, &received, CITIUS_FOREVER);
    *object = (PyObject *)received;
    return code;
}

/* With the GIL: the citius.go.Chan of a channel, a new reference; the channel of one, the caller's to release (NULL with
 * an exception set: it is none). */
static inline PyObject *citius_chan_to_python(citius_chan *chan) {
    return (PyObject *)CITIUS_CALL(NULL, chan_to_python, chan);
}

static inline citius_chan *citius_chan_from_python(PyObject *object) {
    return CITIUS_CALL(NULL, chan_from_python, object);
}
#endif

#ifdef __cplusplus
}
#endif

#endif /* CITIUS_H */
