/* Handlers that call other servers; test_outgoing.py says which. */
#include "fail.h"

CITIUS_LIBRARY

static int query_text(const citius_request *request, const char *name, char *place, size_t room) {
    citius_text value;
    if (citius_query(request, name, &value) != CITIUS_OK || value.size >= room) {
        return 0;
    }
    memcpy(place, value.data, value.size);
    place[value.size] = 0;
    return 1;
}

static int64_t query_number(const citius_request *request, const char *name, int64_t otherwise) {
    int64_t value = otherwise;
    citius_query_integer(request, name, otherwise, &value);
    return value;
}

/* Sends the body and returns what comes until the server ends. */
int tcp(const citius_request *request, citius_response *response) {
    char host[256] = "127.0.0.1", authorities[512], buffer[4096];
    citius_tls tls = CITIUS_TLS_INIT;
    citius_conn *conn;
    size_t got = 0;
    int64_t timeout = query_number(request, "timeout_ms", 5000) * 1000000;
    int is_tls = query_text(request, "authorities", authorities, sizeof authorities);
    query_text(request, "host", host, sizeof host);
    tls.authorities = authorities;
    int code = citius_connect(host, (unsigned short)query_number(request, "port", 0),
                              is_tls ? &tls : NULL, timeout, &conn);
    if (code == CITIUS_OK) {
        code = citius_conn_write(conn, request->body.data, request->body.size, timeout);
    }
    while (code == CITIUS_OK) {
        code = citius_conn_read(conn, buffer, sizeof buffer, &got, timeout);
        if (code == CITIUS_OK && got == 0) {
            break;
        }
        citius_write(response, buffer, got);
    }
    citius_conn_close(conn);
    return code == CITIUS_OK ? CITIUS_OK : fail(response, code);
}

/* Calls a URL with the method and the body of the request. */
int fetch(const citius_request *request, citius_response *response) {
    char url[1024] = "", method[32], authorities[512];
    citius_tls tls = CITIUS_TLS_INIT;
    citius_http_request call = CITIUS_HTTP_REQUEST_INIT;
    citius_http_response *answer;
    citius_field field = {{"x-from", 6}, {"compiled", 8}};
    query_text(request, "url", url, sizeof url);
    call.url = url;
    call.fields = &field;
    call.fields_count = 1;
    call.body = request->body;
    call.timeout_ns = query_number(request, "timeout_ms", 5000) * 1000000;
    call.body_bytes_max = (size_t)query_number(request, "most", 0);
    if (query_text(request, "method", method, sizeof method)) {
        call.method = method;
    }
    if (query_text(request, "authorities", authorities, sizeof authorities)) {
        tls.authorities = authorities;
        call.tls = &tls;
    }
    int code = citius_http_call(&call, &answer);
    if (code != CITIUS_OK) {
        return fail(response, code);
    }
    citius_text body = citius_http_body(answer), kind = {NULL, 0};
    citius_print_integer(response, citius_http_status(answer));
    citius_print(response, " ");
    citius_http_field(answer, "Content-Type", &kind);
    citius_write(response, kind.data, kind.size);
    citius_print(response, " ");
    citius_write(response, body.data, body.size);
    citius_http_free(answer);
    return CITIUS_OK;
}
