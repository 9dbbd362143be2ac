/* Citius: handlers in native code. ABI version 1.
 *
 * A handler is a function
 *
 *     int hello(const citius_request *request, citius_response *response);
 *
 * that reads the request, writes the response and returns 0, or a status from 400 to 599 that answers
 * instead. It runs without a Python object and must not call Python. Everything it is given is valid until
 * it returns, on the thread it was called on: keep no pointer, hand none to another thread, and pass the
 * structs themselves to the functions below, not copies. It must not let exceptions of C++, panics or
 * longjmp out.
 *
 * Handlers are given to an application by their address: as a capsule (citius_handler_capsule below, or
 * Cython's __pyx_capi__), through citius.load_handlers("handlers.so"), or as a ctypes function.
 *
 * Compatibility: members are only ever added at the end of structs, and functions at the end of the
 * table, with a new CITIUS_ABI_MINOR. What changes otherwise gets a new CITIUS_ABI_VERSION, and a server
 * refuses handlers of a version that it does not know when the application starts.
 */
#ifndef CITIUS_H
#define CITIUS_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#ifdef __cplusplus
extern "C" {
#endif

#define CITIUS_ABI_VERSION 1
#define CITIUS_ABI_MINOR 0

/* The name of a capsule with the address of a handler; the number is the ABI's version. */
#define CITIUS_HANDLER_CAPSULE "citius.handler.1"
/* The name of the capsule with the server's own table, for modules that check before they are called. */
#define CITIUS_API_CAPSULE "citius._core._C_API"

/* What functions return that can fail: 0, or one of these for the handler to return in turn. */
#define CITIUS_OK 0
#define CITIUS_NOT_FOUND 404
#define CITIUS_UNPROCESSABLE 422
#define CITIUS_FAILED 500

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

/* Adds to the body. */
static inline int citius_write(citius_response *response, const void *data, size_t size) {
    int code = citius_reserve(response, size);
    if (code == CITIUS_OK && size != 0) {
        memcpy(response->body + response->size, data, size);
        response->size += size;
    }
    return code;
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

/* Adds a header field. One that HTTP does not allow (a line end in it, say) makes the answer a 500. */
static inline int citius_add_header(citius_response *response, const char *name,
                                    const char *value) {
    return response->api->add_header(response, name, strlen(name), value, strlen(value));
}

/* --- for Python -------------------------------------------------------------------------------- */

/* Once in a shared library for citius.load_handlers: says which version it was made for. */
#define CITIUS_LIBRARY                                                                             \
    __attribute__((visibility("default"))) extern const uint32_t citius_abi_version;              \
    const uint32_t citius_abi_version = CITIUS_ABI_VERSION;

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
    return api;
}
#endif

#ifdef __cplusplus
}
#endif

#endif /* CITIUS_H */
