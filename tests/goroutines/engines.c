/* Handlers that call Redis and PostgreSQL; test_engines.py says which. */
#include "fail.h"

CITIUS_LIBRARY

static int64_t query_number(const citius_request *request, const char *name, int64_t otherwise) {
    int64_t value = otherwise;
    citius_query_integer(request, name, otherwise, &value);
    return value;
}

static int64_t timeout_of(const citius_request *request) {
    int64_t ms = query_number(request, "timeout_ms", 10000);
    return ms < 0 ? CITIUS_FOREVER : ms * 1000000;
}

static void show(citius_response *response, const citius_reply *reply) {
    citius_text text = citius_reply_text(reply);
    size_t index, count = citius_reply_count(reply);
    switch (citius_reply_kind(reply)) {
    case CITIUS_REPLY_NIL:
        citius_print(response, "nil");
        break;
    case CITIUS_REPLY_INTEGER:
        citius_print(response, ":");
        citius_print_integer(response, citius_reply_integer(reply));
        break;
    case CITIUS_REPLY_REAL:
        citius_print(response, ",");
        citius_print_real(response, citius_reply_real(reply));
        break;
    case CITIUS_REPLY_BOOL:
        citius_print(response, citius_reply_integer(reply) ? "#t" : "#f");
        break;
    case CITIUS_REPLY_BYTES:
        citius_print(response, "$");
        citius_write(response, text.data, text.size);
        break;
    case CITIUS_REPLY_ERROR:
        citius_print(response, "-");
        citius_write(response, text.data, text.size);
        break;
    default:
        citius_print(response, citius_reply_kind(reply) == CITIUS_REPLY_MAP ? "{" : "[");
        for (index = 0; index < count; index++) {
            citius_print(response, index ? " " : "");
            show(response, citius_reply_at(reply, index));
        }
        citius_print(response, citius_reply_kind(reply) == CITIUS_REPLY_MAP ? "}" : "]");
    }
}

/* The lines of the body are the words of a command. */
static size_t words_of(const citius_request *request, citius_text *words, size_t room) {
    const char *at = request->body.data, *end = at + request->body.size, *line;
    size_t count = 0;
    if (at == end) {
        return 0;
    }
    while (count < room) {
        line = memchr(at, '\n', (size_t)(end - at));
        words[count].data = at;
        words[count++].size = (size_t)((line == NULL ? end : line) - at);
        if (line == NULL) {
            break;
        }
        at = line + 1;
    }
    return count;
}

int redis(const citius_request *request, citius_response *response) {
    citius_text words[64];
    citius_reply *reply = NULL;
    citius_redis *client = citius_redis_find("cache");
    size_t count = words_of(request, words, 64);
    int code = citius_redis_call(client, words, count, timeout_of(request), &reply);
    citius_redis_release(client);
    if (code != CITIUS_OK) {
        return reply == NULL ? fail(response, code) : CITIUS_FAILED;
    }
    show(response, reply);
    citius_reply_free(reply);
    return CITIUS_OK;
}

struct increments {
    citius_redis *client;
    citius_wait_group *group;
    int64_t failures;
};

static void increment(void *argument) {
    struct increments *all = argument;
    citius_text words[2] = {{"INCR", 4}, {"many", 4}};
    if (citius_redis_call(all->client, words, 2, CITIUS_FOREVER, NULL) != CITIUS_OK) {
        __atomic_fetch_add(&all->failures, 1, __ATOMIC_RELAXED);
    }
    citius_wait_group_done(all->group);
}

/* `n` goroutines call at once. */
int many(const citius_request *request, citius_response *response) {
    int64_t n = query_number(request, "n", 10), index;
    struct increments all = {citius_redis_find("cache"), citius_wait_group_make(), 0};
    citius_wait_group_add(all.group, n);
    for (index = 0; index < n; index++) {
        if (citius_go(increment, &all) != CITIUS_OK) {
            citius_wait_group_done(all.group);
        }
    }
    citius_wait_group_wait(all.group);
    citius_wait_group_release(all.group);
    citius_redis_release(all.client);
    return citius_print_integer(response, all.failures);
}

/* The first line of the body is a statement, the others its parameters: n, i<number>, r<number>, t<text>, b<bytes>. */
int pg(const citius_request *request, citius_response *response) {
    citius_text words[64], text;
    citius_pg_value values[64];
    char sql[2048] = "";
    int64_t integer = 0;
    double real = 0;
    citius_rows *rows = NULL;
    citius_pg *pool = citius_pg_find("db");
    size_t row, column, index, count = words_of(request, words, 64);
    if (count > 0 && words[0].size < sizeof sql) {
        memcpy(sql, words[0].data, words[0].size);
    }
    for (index = 1; index < count; index++) {
        text.data = words[index].data + 1;
        text.size = words[index].size - 1;
        citius_integer(request, text, &integer);
        switch (words[index].data[0]) {
        case 'n':
            values[index - 1] = citius_pg_null();
            break;
        case 'i':
            values[index - 1] = citius_pg_of_integer(integer);
            break;
        case 'r':
            values[index - 1] = citius_pg_of_real((double)integer / 4);
            break;
        case 'b':
            values[index - 1] = citius_pg_of_bytes(text.data, text.size);
            break;
        default:
            values[index - 1] = citius_pg_of_text(text.data, text.size);
        }
    }
    int code = citius_pg_query(pool, sql, values, count > 0 ? count - 1 : 0, timeout_of(request),
                               &rows);
    citius_pg_release(pool);
    if (code != CITIUS_OK) {
        return rows == NULL ? fail(response, code) : CITIUS_FAILED;
    }
    citius_print_integer(response, citius_rows_affected(rows));
    for (column = 0; column < citius_rows_columns(rows); column++) {
        citius_print(response, " ");
        text = citius_rows_name(rows, column);
        citius_write(response, text.data, text.size);
    }
    for (row = 0; row < citius_rows_count(rows); row++) {
        citius_print(response, "\n");
        for (column = 0; column < citius_rows_columns(rows); column++) {
            text = citius_rows_text(rows, row, column);
            citius_print(response, column ? "|" : "");
            if (text.data == NULL) {
                citius_print(response, "NULL");
            }
            citius_write(response, text.data, text.size);
            if (citius_rows_integer(rows, row, column, &integer) == CITIUS_OK) {
                citius_print(response, " i");
                citius_print_integer(response, integer);
            } else if (citius_rows_real(rows, row, column, &real) == CITIUS_OK) {
                citius_print(response, " r");
                citius_print_real(response, real);
            }
        }
    }
    if (citius_rows_text(rows, row, 0).data != NULL ||
        citius_rows_text(rows, 0, column).data != NULL) {
        return CITIUS_FAILED;
    }
    citius_rows_free(rows);
    return CITIUS_OK;
}
