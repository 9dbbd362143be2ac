/* What goroutines.py measures of Citius; bench.go does the same. Each handler prints nanoseconds per operation. */
#include <citius.h>

CITIUS_LIBRARY

static int64_t count_of(const citius_request *request) {
    int64_t count = 0;
    return citius_query_integer(request, "count", 1000, &count) == CITIUS_OK ? count : 0;
}

typedef struct pair {
    citius_chan *there;
    citius_chan *back;
} pair;

static void echo(void *argument) {
    pair channels = *(pair *)argument;
    int64_t value;
    while (citius_chan_receive(channels.there, &value, sizeof value) == CITIUS_OK) {
        citius_chan_send(channels.back, &value, sizeof value);
    }
    citius_chan_close(channels.back);
}

/* One operation: a value there and back, by channels without buffers. */
int ping_pong(const citius_request *request, citius_response *response) {
    int64_t count = count_of(request), value = 0;
    pair channels = {citius_chan_make(sizeof value, 0), citius_chan_make(sizeof value, 0)};
    citius_go(echo, &channels);
    int64_t began = citius_now_ns();
    for (int64_t at = 0; at < count; at++) {
        citius_chan_send(channels.there, &at, sizeof at);
        citius_chan_receive(channels.back, &value, sizeof value);
    }
    int64_t took = citius_now_ns() - began;
    citius_chan_close(channels.there);
    citius_chan_receive(channels.back, &value, sizeof value);
    citius_chan_release(channels.there);
    citius_chan_release(channels.back);
    return citius_print_real(response, (double)took / (double)count);
}

typedef struct sender {
    citius_chan *chan;
    int64_t count;
} sender;

static void send_all(void *argument) {
    sender *from = argument;
    for (int64_t at = 0; at < from->count; at++) {
        citius_chan_send(from->chan, &at, sizeof at);
    }
}

/* One operation: a select over four channels without buffers, each with a goroutine that sends. */
int select_four(const citius_request *request, citius_response *response) {
    int64_t count = count_of(request), value = 0;
    sender senders[4];
    citius_case cases[4];
    for (int at = 0; at < 4; at++) {
        senders[at].chan = citius_chan_make(sizeof value, 0);
        senders[at].count = count / 4;
        citius_case one = {senders[at].chan, &value, sizeof value, CITIUS_RECEIVE, 0};
        cases[at] = one;
        citius_go(send_all, &senders[at]);
    }
    int64_t began = citius_now_ns();
    for (int64_t at = 0; at < count / 4 * 4; at++) {
        citius_select(cases, 4, CITIUS_FOREVER);
    }
    int64_t took = citius_now_ns() - began;
    citius_yield();
    for (int at = 0; at < 4; at++) {
        citius_chan_release(senders[at].chan);
    }
    return citius_print_real(response, (double)took / (double)(count / 4 * 4));
}

static void finish(void *argument) { citius_wait_group_done(argument); }

/* One operation: a goroutine that starts and ends; batches of 100. */
int start_end(const citius_request *request, citius_response *response) {
    int64_t count = count_of(request) / 100;
    citius_wait_group *group = citius_wait_group_make();
    int64_t began = citius_now_ns();
    for (int64_t batch = 0; batch < count; batch++) {
        citius_wait_group_add(group, 100);
        for (int at = 0; at < 100; at++) {
            citius_go(finish, group);
        }
        citius_wait_group_wait(group);
    }
    int64_t took = citius_now_ns() - began;
    citius_wait_group_release(group);
    return citius_print_real(response, (double)took / (double)(count * 100));
}

static void park(void *argument) {
    int64_t value;
    citius_chan_receive(argument, &value, sizeof value);
    citius_chan_release(argument);
}

/* Goroutines that wait until the process ends; prints how many. */
int parked(const citius_request *request, citius_response *response) {
    int64_t count = count_of(request), started = 0;
    citius_chan *gate = citius_chan_make(sizeof(int64_t), 0);
    citius_context_use(NULL);
    for (; started < count; started++) {
        if (citius_go(park, citius_chan_retain(gate)) != CITIUS_OK) {
            break;
        }
    }
    while (citius_chan_receivers(gate) < (size_t)started) {
        citius_yield();
    }
    return citius_print_integer(response, started);
}
