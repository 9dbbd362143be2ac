/* Handlers that wait, for the tests: each does one thing with what citius.h has since version 2. */
#include <citius.h>

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

CITIUS_LIBRARY

static int text_of(citius_response *response, const char *text) {
    citius_content_type(response, "text/plain");
    return citius_print(response, text);
}

/* --- channels ----------------------------------------------------------------------------------- */

typedef struct squares {
    citius_chan *numbers;
    citius_chan *squares;
} squares;

static void square_all(void *argument) {
    squares *all = argument;
    int64_t number;
    while (citius_chan_receive(all->numbers, &number, sizeof number) == CITIUS_OK) {
        number *= number;
        citius_chan_send(all->squares, &number, sizeof number);
    }
    citius_chan_close(all->squares);
}

/* The sum of the squares of 0 to 99, by a goroutine and two channels. */
int sum_of_squares(const citius_request *request, citius_response *response) {
    int64_t capacity = 0, sum = 0, square;
    squares all;
    int64_t n;
    int code = citius_query_integer(request, "capacity", 0, &capacity);
    if (code != CITIUS_OK) {
        return code;
    }
    all.numbers = citius_chan_make(sizeof(int64_t), (size_t)capacity);
    all.squares = citius_chan_make(sizeof(int64_t), (size_t)capacity);
    code = citius_go(square_all, &all);
    for (n = 0; n < 100 && code == CITIUS_OK; n++) {
        code = citius_chan_send(all.numbers, &n, sizeof n);
        if (code == CITIUS_OK) {
            code = citius_chan_receive(all.squares, &square, sizeof square);
        }
        sum += square;
    }
    citius_chan_close(all.numbers);
    if (code == CITIUS_OK && citius_chan_receive(all.squares, &square, sizeof square) != CITIUS_CLOSED) {
        code = CITIUS_FAILED;
    }
    citius_chan_release(all.numbers);
    citius_chan_release(all.squares);
    return code != CITIUS_OK ? code : citius_print_integer(response, sum);
}

typedef struct part {
    citius_chan *results;
    citius_wait_group *group;
    int64_t number;
} part;

static void one_part(void *argument) {
    part *mine = argument;
    int64_t result = mine->number * 10;
    citius_sleep_ns(mine->number % 3 * 1000000);
    citius_chan_send(mine->results, &result, sizeof result);
    citius_wait_group_done(mine->group);
}

/* Ten goroutines whose results come by a channel, and are waited for by a group too. */
int fan_out(const citius_request *request, citius_response *response) {
    part parts[10];
    citius_chan *results = citius_chan_make(sizeof(int64_t), 10);
    citius_wait_group *group = citius_wait_group_make();
    int64_t sum = 0, result;
    int n, code = CITIUS_OK;
    (void)request;
    for (n = 0; n < 10 && code == CITIUS_OK; n++) {
        parts[n].results = results;
        parts[n].group = group;
        parts[n].number = n;
        citius_wait_group_add(group, 1);
        code = citius_go(one_part, &parts[n]);
    }
    for (n = 0; n < 10 && code == CITIUS_OK; n++) {
        code = citius_chan_receive(results, &result, sizeof result);
        sum += result;
    }
    if (code == CITIUS_OK) {
        code = citius_wait_group_wait(group);
    }
    citius_wait_group_release(group);
    citius_chan_release(results);
    return code != CITIUS_OK ? code : citius_print_integer(response, sum);
}

/* A select with each of its ends. */
int selects(const citius_request *request, citius_response *response) {
    citius_chan *one = citius_chan_make(4, 1), *two = citius_chan_make(4, 1), *never = NULL;
    int32_t value = 7, got = 0;
    char text[200];
    int which, late, sent, received, closed, taken;
    citius_case cases[3];
    (void)request;
    memset(cases, 0, sizeof cases);
    cases[0].chan = never;
    cases[1].chan = one;
    cases[1].value = &got;
    cases[1].size = sizeof got;
    cases[2].chan = two;
    cases[2].value = &got;
    cases[2].size = sizeof got;
    which = citius_select(cases, 3, 0);
    late = citius_select(cases, 3, 2000000);
    cases[2].operation = CITIUS_SEND;
    cases[2].value = &value;
    sent = citius_select(cases, 3, CITIUS_FOREVER);
    cases[2].operation = CITIUS_RECEIVE;
    cases[2].value = &got;
    received = citius_select(cases, 3, CITIUS_FOREVER);
    taken = got;
    citius_chan_close(one);
    closed = citius_select(cases, 3, CITIUS_FOREVER);
    snprintf(text, sizeof text, "%d %d %d %d:%d,%d %d:%d", which, late, sent, received, (int)cases[2].ok,
             taken, closed, (int)cases[1].ok);
    citius_chan_release(one);
    citius_chan_release(two);
    return text_of(response, text);
}

/* The number of the path to the channel "questions", and the answer from "answers". */
int asks(const citius_request *request, citius_response *response) {
    citius_chan *questions = citius_chan_find("questions"), *answers = citius_chan_find("answers");
    int64_t number = 0;
    int code = citius_param_integer(request, 0, &number);
    if (questions == NULL || answers == NULL) {
        code = CITIUS_NOT_FOUND;
    }
    if (code == CITIUS_OK) {
        code = citius_chan_send(questions, &number, sizeof number);
    }
    if (code == CITIUS_OK) {
        code = citius_chan_receive(answers, &number, sizeof number);
    }
    citius_chan_release(questions);
    citius_chan_release(answers);
    return code != CITIUS_OK ? code : citius_print_integer(response, number);
}

/* The bytes of the body through a channel of Python's, there and back. */
int echoes_bytes(const citius_request *request, citius_response *response) {
    citius_chan *to = citius_chan_find("words"), *from = citius_chan_find("shouts");
    citius_bytes bytes = {NULL, 0};
    int code = citius_chan_send_bytes(to, request->body.data, request->body.size);
    if (code == CITIUS_OK) {
        code = citius_chan_receive_bytes(from, &bytes);
    }
    if (code == CITIUS_OK) {
        code = citius_write(response, bytes.data, bytes.size);
    }
    citius_free(bytes.data);
    citius_chan_release(to);
    citius_chan_release(from);
    return code;
}

/* --- time, contexts ------------------------------------------------------------------------------- */

int sleeps(const citius_request *request, citius_response *response) {
    int64_t ms = 2, before = citius_now_ns(), slept;
    int code = citius_query_integer(request, "ms", 2, &ms);
    if (code == CITIUS_OK) {
        code = citius_sleep_ns(ms * 1000000);
    }
    slept = citius_now_ns() - before;
    return code != CITIUS_OK ? code : citius_print_integer(response, slept / 1000);
}

/* How often it has gone on on another thread, of twenty waits. */
int moves(const citius_request *request, citius_response *response) {
    pthread_t first = pthread_self();
    int64_t moved = 0;
    int n, code = CITIUS_OK;
    (void)request;
    for (n = 0; n < 20 && code == CITIUS_OK; n++) {
        code = n % 2 ? citius_yield() : citius_sleep_ns(100000);
        moved += !pthread_equal(first, pthread_self());
    }
    return code != CITIUS_OK ? code : citius_print_integer(response, moved);
}

/* How the last goroutine of `waits` has ended. */
static int how_it_ended;
static citius_chan *gate;

int waits(const citius_request *request, citius_response *response) {
    int32_t value;
    (void)request;
    if (gate == NULL) {
        gate = citius_chan_make(sizeof value, 0);
    }
    how_it_ended = -1;
    how_it_ended = citius_chan_receive(gate, &value, sizeof value);
    return how_it_ended != CITIUS_OK ? how_it_ended : text_of(response, "received");
}

int opens(const citius_request *request, citius_response *response) {
    int32_t value = 1;
    (void)request;
    return citius_chan_send(gate, &value, sizeof value) == CITIUS_OK ? text_of(response, "sent") : 500;
}

int tells_how(const citius_request *request, citius_response *response) {
    (void)request;
    citius_print_integer(response, how_it_ended);
    citius_print(response, " ");
    return citius_print_integer(response, gate == NULL ? -1 : (int64_t)citius_chan_receivers(gate));
}

/* A deadline, and a context that is cancelled by another goroutine. */
static void cancels(void *argument) {
    citius_sleep_ns(1000000);
    citius_context_cancel(argument);
    citius_context_release(argument);
}

int contexts(const citius_request *request, citius_response *response) {
    citius_context *own = citius_context_current();
    citius_context *short_one = citius_context_make(own, citius_now_ns() + 2000000);
    citius_context *other = citius_context_make(own, CITIUS_FOREVER);
    citius_chan *done = citius_context_done(other);
    citius_chan *expires = citius_context_done(short_one);
    int late, cancelled, waited, closed, expired;
    (void)request;
    citius_context_use(short_one);
    late = citius_sleep_ns(INT64_MAX);
    citius_context_use(other);
    citius_context_use(NULL);
    citius_go(cancels, citius_context_retain(other));
    citius_context_use(other);
    cancelled = citius_sleep_ns(60 * INT64_C(1000000000));
    waited = citius_sleep_ns(1);
    citius_context_use(own);
    closed = citius_chan_receive(done, NULL, 0);
    expired = citius_chan_receive(expires, NULL, 0);
    citius_print_integer(response, late);
    citius_print(response, " ");
    citius_print_integer(response, cancelled);
    citius_print(response, " ");
    citius_print_integer(response, waited);
    citius_print(response, " ");
    citius_print_integer(response, closed * 10 + expired);
    citius_print(response, " ");
    citius_print_integer(response, citius_context_error(short_one));
    citius_print(response, " ");
    citius_print_integer(response, citius_context_error(own));
    citius_chan_release(done);
    citius_chan_release(expires);
    citius_context_release(short_one);
    citius_context_release(other);
    citius_context_release(own);
    return CITIUS_OK;
}

/* --- locks ------------------------------------------------------------------------------------------ */

static citius_mutex lock = CITIUS_MUTEX_INIT;
static citius_once once = CITIUS_ONCE_INIT;
static int64_t counter, made;

static void make(void *argument) {
    (void)argument;
    citius_sleep_ns(1000000);
    made++;
}

/* Counts, with a wait in the middle. */
int counts(const citius_request *request, citius_response *response) {
    int64_t before;
    int code = citius_once_do(&once, make, NULL);
    (void)request;
    if (code == CITIUS_OK) {
        code = citius_mutex_lock(&lock);
    }
    if (code != CITIUS_OK) {
        return code;
    }
    before = counter;
    citius_sleep_ns(100000);
    counter = before + 1;
    if (made != 1) {
        counter = -1000;
    }
    code = citius_mutex_unlock(&lock);
    return code != CITIUS_OK ? code : citius_print_integer(response, before);
}

/* --- faults ----------------------------------------------------------------------------------------- */

static volatile int depth;

static int recurse(volatile char *above) {
    volatile char block[300];
    block[0] = above[0];
    depth++;
    return recurse(block) + block[0];
}

int overflows(const citius_request *request, citius_response *response) {
    volatile char first = 1;
    (void)request;
    (void)response;
    citius_sleep_ns(1);
    return recurse(&first);
}

/* The same with an allocator that is called at each level. */
static int recurse_with_memory(char *above) {
    volatile char block[40];
    char *memory = malloc(100 + (size_t)(depth++ % 1000));
    int result;
    memory[0] = above[0];
    block[0] = memory[0];
    result = recurse_with_memory(memory) + block[0];
    free(memory);
    return result;
}

int overflows_in_malloc(const citius_request *request, citius_response *response) {
    char first = 1;
    (void)request;
    (void)response;
    return recurse_with_memory(&first);
}

static void overflow_of_a_child(void *argument) {
    volatile char first = 1;
    (void)argument;
    recurse(&first);
}

int child_overflows(const citius_request *request, citius_response *response) {
    (void)request;
    citius_go(overflow_of_a_child, NULL);
    citius_yield();
    return text_of(response, "the parent lives");
}

int closes_twice(const citius_request *request, citius_response *response) {
    citius_chan *chan = citius_chan_make(1, 1);
    int first = citius_chan_close(chan), second = citius_chan_close(chan);
    char value = 1;
    int sent = citius_chan_send(chan, &value, 1);
    (void)request;
    citius_chan_release(chan);
    citius_print_integer(response, first * 100 + second * 10 + sent);
    return CITIUS_OK;
}

int closes_nothing(const citius_request *request, citius_response *response) {
    (void)request;
    (void)response;
    return citius_chan_close(NULL);
}

int wrong_size(const citius_request *request, citius_response *response) {
    citius_chan *chan = citius_chan_make(8, 1);
    int16_t value = 1;
    int code = citius_chan_send(chan, &value, sizeof value);
    (void)request;
    citius_chan_release(chan);
    return code == CITIUS_MISUSE ? text_of(response, citius_mistake()) : 400;
}

int returns_closed(const citius_request *request, citius_response *response) {
    citius_chan *chan = citius_chan_make(1, 1);
    char value = 1;
    int code;
    (void)request;
    (void)response;
    citius_chan_close(chan);
    code = citius_chan_send(chan, &value, 1);
    citius_chan_release(chan);
    return code;
}

/* Values that own memory are freed when nothing receives them. */
static int64_t freed;

static void free_value(void *value) {
    free(*(void **)value);
    freed++;
}

static void sends_later(void *argument) {
    int64_t value = 1;
    citius_sleep_ns(1000000);
    citius_chan_send(argument, &value, sizeof value);
    citius_chan_release(argument);
}

static int is_left_by_select(citius_chan *full, void **value) {
    citius_chan *other = citius_chan_make(sizeof(int64_t), 0);
    citius_case cases[2] = {{full, value, sizeof *value, CITIUS_SEND, 0}, {other, NULL, 0, CITIUS_RECEIVE, 0}};
    int chosen;
    citius_go(sends_later, citius_chan_retain(other));
    chosen = citius_select(cases, 2, CITIUS_FOREVER);
    citius_chan_release(other);
    return chosen == 1;
}

int owned_values(const citius_request *request, citius_response *response) {
    citius_chan *chan = citius_chan_make_owned(sizeof(void *), 4, free_value);
    void *value;
    int n;
    (void)request;
    freed = 0;
    for (n = 0; n < 4; n++) {
        value = malloc(10);
        citius_chan_send(chan, &value, sizeof value);
    }
    /* What is not sent stays the sender's, at once, after a wait, and in a select that has done another case. */
    value = malloc(10);
    if (citius_chan_send_within(chan, &value, sizeof value, 0) != CITIUS_TIMEOUT ||
        citius_chan_send_within(chan, &value, sizeof value, 1000000) != CITIUS_TIMEOUT ||
        !is_left_by_select(chan, &value) || freed != 0) {
        return 400;
    }
    free(value);
    citius_chan_receive(chan, &value, sizeof value);
    free(value);
    citius_chan_close(chan);
    citius_chan_release(chan);
    return citius_print_integer(response, freed);
}

/* The same channel in two cases, no channel at all, and a sender that is cancelled while it owns its value. */
static int same_channel_twice(void) {
    citius_chan *chan = citius_chan_make(sizeof(int64_t), 0), *one = citius_chan_make(sizeof(int64_t), 1);
    int64_t first = 0, second = 0, sent = 5;
    citius_case receives[2] = {{chan, &first, sizeof first, CITIUS_RECEIVE, 0},
                               {chan, &second, sizeof second, CITIUS_RECEIVE, 0}};
    citius_case both[2] = {{chan, &sent, sizeof sent, CITIUS_SEND, 0},
                           {chan, &first, sizeof first, CITIUS_RECEIVE, 0}};
    int which, is_right;
    citius_go(sends_later, citius_chan_retain(chan));
    which = citius_select(receives, 2, CITIUS_FOREVER);
    is_right = which == 0 ? first == 1 && second == 0 : which == 1 && first == 0 && second == 1;
    /* It does not meet itself. */
    is_right = is_right && citius_select(both, 2, 1000000) == -CITIUS_TIMEOUT;
    both[0].chan = both[1].chan = one;
    is_right = is_right && citius_select(both, 2, CITIUS_FOREVER) == 0;
    is_right = is_right && citius_select(both, 2, CITIUS_FOREVER) == 1 && first == 5;
    is_right = is_right && citius_chan_receivers(chan) == 0 && citius_chan_senders(chan) == 0;
    citius_chan_release(chan);
    citius_chan_release(one);
    return is_right;
}

static int no_channel(void) {
    int64_t value = 0;
    citius_case none[2] = {{NULL, &value, sizeof value, CITIUS_SEND, 0},
                           {NULL, &value, sizeof value, CITIUS_RECEIVE, 0}};
    return citius_chan_receive_within(NULL, &value, sizeof value, 0) == CITIUS_TIMEOUT &&
           citius_chan_send_within(NULL, &value, sizeof value, 1000000) == CITIUS_TIMEOUT &&
           citius_select(none, 2, 0) == -CITIUS_TIMEOUT && citius_select(none, 2, 1000000) == -CITIUS_TIMEOUT &&
           citius_select(NULL, 0, 1000000) == -CITIUS_TIMEOUT;
}

static int cancelled_sender(void) {
    citius_chan *chan = citius_chan_make_owned(sizeof(void *), 0, free_value);
    citius_context *own = citius_context_current();
    void *value = malloc(10);
    citius_case cases[1] = {{chan, &value, sizeof value, CITIUS_SEND, 0}};
    int n, is_right = 1;
    freed = 0;
    for (n = 0; n < 2; n++) {
        citius_context *context = citius_context_make(own, CITIUS_FOREVER);
        citius_context_use(NULL);
        citius_go(cancels, citius_context_retain(context));
        citius_context_use(context);
        is_right = is_right && (n == 0 ? citius_chan_send(chan, &value, sizeof value)
                                       : -citius_select(cases, 1, CITIUS_FOREVER)) == CITIUS_CANCELLED;
        citius_context_use(own);
        citius_context_release(context);
    }
    free(value);
    citius_chan_release(chan);
    citius_context_release(own);
    return is_right && freed == 0;
}

int edges(const citius_request *request, citius_response *response) {
    (void)request;
    citius_print_integer(response, same_channel_twice());
    citius_print_integer(response, no_channel());
    return citius_print_integer(response, cancelled_sender());
}

static void parks(void *argument) {
    int32_t value;
    citius_chan_receive(argument, &value, sizeof value);
    citius_chan_release(argument);
}

/* As many goroutines that wait for a channel, which is left to them. */
int parks_many(const citius_request *request, citius_response *response) {
    citius_chan *chan = citius_chan_make(4, 0);
    int64_t count = 1000, n;
    int code = citius_query_integer(request, "count", 1000, &count);
    for (n = 0; n < count && code == CITIUS_OK; n++) {
        code = citius_go(parks, citius_chan_retain(chan));
    }
    if (code != CITIUS_OK) {
        citius_chan_release(chan);
        count = 0;
    }
    for (n = 0; n < 10000 && (int64_t)citius_chan_receivers(chan) < count; n++) {
        citius_sleep_ns(1000000);
    }
    if (code == CITIUS_OK) {
        code = citius_print_integer(response, (int64_t)citius_chan_receivers(chan));
    }
    {
        int64_t close = 0;
        citius_query_integer(request, "close", 0, &close);
        if (close != 0) {
            citius_chan_close(chan);
        }
    }
    citius_chan_release(chan);
    return code;
}

/* Receivers, senders and selects that wait for channels which are closed meanwhile: how many were told so. */
typedef struct waiting {
    citius_chan *empty, *full, *results;
} waiting;

static void tell_code(waiting *all, int32_t code) { citius_chan_send(all->results, &code, sizeof code); }

static void waits_to_receive(void *argument) {
    waiting *all = argument;
    int32_t value;
    tell_code(all, citius_chan_receive(all->empty, &value, sizeof value));
}

static void waits_to_send(void *argument) {
    waiting *all = argument;
    int32_t value = 1;
    tell_code(all, citius_chan_send(all->full, &value, sizeof value));
}

static void waits_for_either(void *argument) {
    waiting *all = argument;
    int32_t value = 1;
    citius_case cases[2] = {{all->full, &value, sizeof value, CITIUS_SEND, 0},
                            {all->empty, &value, sizeof value, CITIUS_RECEIVE, 1}};
    int chosen = citius_select(cases, 2, CITIUS_FOREVER);
    int is_told = chosen == -CITIUS_CLOSED || (chosen == 1 && cases[1].ok == 0);
    tell_code(all, is_told ? CITIUS_CLOSED : chosen);
}

int closes_under_waiting(const citius_request *request, citius_response *response) {
    waiting all = {citius_chan_make(4, 0), citius_chan_make(4, 1), NULL};
    int32_t value = 1;
    int64_t each = 100, n, told = 0;
    int code = citius_query_integer(request, "each", 100, &each);
    all.results = citius_chan_make(4, (size_t)(3 * each));
    if (code == CITIUS_OK) {
        code = citius_chan_send(all.full, &value, sizeof value);
    }
    for (n = 0; n < each && code == CITIUS_OK; n++) {
        code = citius_go(waits_to_receive, &all);
        code = code != CITIUS_OK ? code : citius_go(waits_to_send, &all);
        code = code != CITIUS_OK ? code : citius_go(waits_for_either, &all);
    }
    while (code == CITIUS_OK && (citius_chan_receivers(all.empty) < (size_t)(2 * each) ||
                                 citius_chan_senders(all.full) < (size_t)(2 * each))) {
        code = citius_sleep_ns(100000);
    }
    citius_chan_close(all.empty);
    citius_chan_close(all.full);
    for (n = 0; n < 3 * each && code == CITIUS_OK; n++) {
        code = citius_chan_receive(all.results, &value, sizeof value);
        told += value == CITIUS_CLOSED;
    }
    citius_chan_release(all.empty);
    citius_chan_release(all.full);
    citius_chan_release(all.results);
    return code != CITIUS_OK ? code : citius_print_integer(response, told);
}

static __attribute__((noinline)) void write_some(volatile char *memory, size_t size) {
    while (size > 0) {
        memory[--size] = 0;
    }
}

/* A mistake for memcheck to find. */
int reads_unwritten(const citius_request *request, citius_response *response) {
    volatile char memory[64];
    (void)request;
    write_some(memory, 32);
    citius_yield();
    return text_of(response, memory[48] ? "this" : "that");
}

/* Computes for so many milliseconds, before or after a wait. */
int computes(const citius_request *request, citius_response *response) {
    int64_t ms = 1, after = 0, until;
    int code = citius_query_integer(request, "ms", 1, &ms);
    code = code != CITIUS_OK ? code : citius_query_integer(request, "after", 0, &after);
    code = code != CITIUS_OK || after == 0 ? code : citius_sleep_ns(after * 1000000);
    for (until = citius_now_ns() + ms * 1000000; citius_now_ns() < until;) {
    }
    return code != CITIUS_OK ? code : text_of(response, "computed");
}

int plain(const citius_request *request, citius_response *response) {
    (void)request;
    return text_of(response, "plain");
}

/* --- pieces ------------------------------------------------------------------------------------------ */

/* So many lines, with a wait between them. */
int streams(const citius_request *request, citius_response *response) {
    int64_t lines = 3, ms = 1, n;
    char text[40];
    int code = citius_query_integer(request, "lines", 3, &lines);
    citius_query_integer(request, "ms", 1, &ms);
    citius_content_type(response, "text/plain");
    citius_add_header(response, "x-lines", "yes");
    for (n = 0; n < lines && code == CITIUS_OK; n++) {
        snprintf(text, sizeof text, "line %d\n", (int)n);
        citius_print(response, text);
        code = citius_flush(response);
        if (code == CITIUS_OK) {
            code = citius_sleep_ns(ms * 1000000);
        }
    }
    return code != CITIUS_OK ? code : citius_print(response, "end\n");
}

/* So many mebibytes, as fast as the client takes them; how many pieces have left is told by `pieces_sent`. */
static volatile int64_t pieces_sent;

int floods(const citius_request *request, citius_response *response) {
    int64_t pieces = 64, n;
    int code = citius_query_integer(request, "pieces", 64, &pieces);
    pieces_sent = 0;
    for (n = 0; n < pieces && code == CITIUS_OK; n++) {
        code = citius_reserve(response, 65536);
        if (code == CITIUS_OK) {
            memset(response->body, 'x', 65536);
            response->size = 65536;
            code = citius_flush(response);
            pieces_sent++;
        }
    }
    how_it_ended = code;
    return code;
}

int tells_pieces(const citius_request *request, citius_response *response) {
    (void)request;
    return citius_print_integer(response, pieces_sent);
}

/* Breaks off in the middle. */
int breaks_off(const citius_request *request, citius_response *response) {
    (void)request;
    citius_print(response, "half");
    citius_flush(response);
    return 500;
}

int late_header(const citius_request *request, citius_response *response) {
    (void)request;
    citius_print(response, "a");
    citius_flush(response);
    return citius_add_header(response, "x-late", "1");
}

/* The number of bytes of the body, and their sum, as they come. */
int reads(const citius_request *request, citius_response *response) {
    unsigned char buffer[10000];
    size_t got = 1;
    int64_t total = 0, sum = 0, calls = 0;
    int code = CITIUS_OK;
    while (code == CITIUS_OK && got > 0) {
        size_t n;
        code = citius_body_read(request, buffer, sizeof buffer, &got);
        for (n = 0; n < got; n++) {
            sum += buffer[n];
        }
        total += (int64_t)got;
        calls++;
    }
    how_it_ended = code;
    if (code != CITIUS_OK) {
        return code;
    }
    citius_print_integer(response, total);
    citius_print(response, " ");
    citius_print_integer(response, sum);
    citius_print(response, calls > 1 ? " pieces" : " nothing");
    return CITIUS_OK;
}

/* Each piece of the body is sent back when it has come. */
int echoes_pieces(const citius_request *request, citius_response *response) {
    char buffer[1000];
    size_t got = 1;
    int code = citius_flush(response);
    while (code == CITIUS_OK) {
        code = citius_body_read(request, buffer, sizeof buffer, &got);
        if (got == 0) {
            break;
        }
        citius_write(response, buffer, got);
        code = citius_flush(response);
    }
    return code;
}
