/* Handlers in C for app.py; see README.md for how to build them. */
#include <citius.h>

CITIUS_LIBRARY

/* GET /hello/{name} */
int hello(const citius_request *request, citius_response *response) {
    citius_text name;
    int code = citius_param(request, 0, &name);
    if (code != CITIUS_OK) {
        return code;
    }
    citius_content_type(response, "text/plain; charset=utf-8");
    citius_print(response, "Hello, ");
    citius_write(response, name.data, name.size);
    return citius_print(response, "!\n");
}

/* GET /primes?below=N */
int primes(const citius_request *request, citius_response *response) {
    int64_t below, found = 0;
    int code = citius_query_integer(request, "below", 100, &below);
    if (code != CITIUS_OK) {
        return code;
    }
    if (below > 1000000) {
        citius_print(response, "at most 1000000\n");
        return 400;
    }
    for (int64_t number = 2; number < below; number++) {
        int is_prime = 1;
        for (int64_t divisor = 2; divisor * divisor <= number && is_prime; divisor++) {
            is_prime = number % divisor != 0;
        }
        found += is_prime;
    }
    citius_content_type(response, "application/json");
    return citius_print_integer(response, found);
}

/* POST /reverse: the body backwards, written in place. */
int reverse(const citius_request *request, citius_response *response) {
    size_t size = request->body.size;
    int code = citius_reserve(response, size);
    if (code != CITIUS_OK) {
        return code;
    }
    for (size_t i = 0; i < size; i++) {
        response->body[i] = request->body.data[size - 1 - i];
    }
    response->size = size;
    citius_add_header(response, "x-reversed", "yes");
    response->status = 201;
    return CITIUS_OK;
}
