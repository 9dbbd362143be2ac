/* Compiled parties of test_parties.py: they send and receive at random on the channels c0 to c3, and count how often each
   value has been received. */
#include <citius.h>

#include <stdatomic.h>
#include <stdio.h>

CITIUS_LIBRARY

#define CHANNELS 4
/* Values are below this. */
#define VALUES_MAX (8 << 20)

static _Atomic unsigned char received_count[VALUES_MAX];

/* --- the account, called by ctypes --------------------------------------------------------------- */

static int note(int64_t value) {
    if (value < 0 || value >= VALUES_MAX) {
        return CITIUS_FAILED;
    }
    atomic_fetch_add(&received_count[value], 1);
    return CITIUS_OK;
}

int note_all(const int64_t *values, size_t count) {
    size_t n;
    int code = CITIUS_OK;
    for (n = 0; n < count && code == CITIUS_OK; n++) {
        code = note(values[n]);
    }
    return code;
}

/* How many of the values below `count` have been received `times` times. */
int64_t received_times(int64_t count, int times) {
    int64_t n, found = 0;
    for (n = 0; n < count; n++) {
        found += atomic_load(&received_count[n]) == times;
    }
    return found;
}

/* --- parties -------------------------------------------------------------------------------------- */

typedef struct party {
    citius_chan *chans[CHANNELS];
    int64_t first, count;
    uint64_t random;
} party;

static unsigned random_below(party *mine, unsigned limit) {
    mine->random ^= mine->random << 13;
    mine->random ^= mine->random >> 7;
    mine->random ^= mine->random << 17;
    return (unsigned)(mine->random >> 33) % limit;
}

static int begin(const citius_request *request, party *mine) {
    int64_t seed = 1;
    int n, code;
    mine->first = mine->count = 0;
    for (n = 0; n < CHANNELS; n++) {
        char name[3] = {'c', (char)('0' + n), 0};
        mine->chans[n] = citius_chan_find(name);
    }
    code = citius_query_integer(request, "first", 0, &mine->first);
    code = code != CITIUS_OK ? code : citius_query_integer(request, "count", 0, &mine->count);
    code = code != CITIUS_OK ? code : citius_query_integer(request, "seed", 1, &seed);
    mine->random = (uint64_t)seed * UINT64_C(0x9E3779B97F4A7C15) + 1;
    return code;
}

static int end(party *mine, citius_response *response, int code, int64_t done) {
    int n;
    for (n = 0; n < CHANNELS; n++) {
        citius_chan_release(mine->chans[n]);
    }
    return code != CITIUS_OK ? code : citius_print_integer(response, done);
}

static const int64_t timeouts_ns[4] = {0, 20000, CITIUS_FOREVER, CITIUS_FOREVER};

/* Sends the values from `first` on, `count` of them. */
int sends(const citius_request *request, citius_response *response) {
    party mine;
    int64_t n;
    int code = begin(request, &mine);
    for (n = 0; n < mine.count && code == CITIUS_OK;) {
        int64_t value = mine.first + n;
        unsigned which = random_below(&mine, CHANNELS), other = random_below(&mine, CHANNELS);
        citius_case cases[2] = {{mine.chans[which], &value, sizeof value, CITIUS_SEND, 0},
                                {mine.chans[other], &value, sizeof value, CITIUS_SEND, 0}};
        int chosen;
        switch (random_below(&mine, 16)) {
        case 0:
            code = citius_yield();
            continue;
        case 1:
            code = citius_chan_send_within(mine.chans[which], &value, sizeof value, 0);
            break;
        case 2:
            code = citius_chan_send_within(mine.chans[which], &value, sizeof value, 20000);
            break;
        case 3:
        case 4:
        case 5:
        case 6:
        case 7:
            chosen = citius_select(cases, 2, timeouts_ns[random_below(&mine, 4)]);
            code = chosen >= 0 ? CITIUS_OK : -chosen;
            break;
        default:
            code = citius_chan_send(mine.chans[which], &value, sizeof value);
        }
        n += code == CITIUS_OK;
        code = code == CITIUS_TIMEOUT ? CITIUS_OK : code;
    }
    return end(&mine, response, code, mine.count);
}

/* Receives from all of them until they are closed. */
int receives(const citius_request *request, citius_response *response) {
    party mine;
    citius_case cases[CHANNELS];
    int64_t done = 0, value = 0;
    int n, open = CHANNELS, code = begin(request, &mine);
    for (n = 0; n < CHANNELS; n++) {
        citius_case one = {mine.chans[n], &value, sizeof value, CITIUS_RECEIVE, 0};
        cases[n] = one;
    }
    while (open > 0 && code == CITIUS_OK) {
        int which = (int)random_below(&mine, CHANNELS), got = 0;
        unsigned operation = random_below(&mine, 16);
        if (operation < 2 && cases[which].chan != NULL) {
            code = citius_chan_receive_within(cases[which].chan, &value, sizeof value, operation * 20000);
            got = code == CITIUS_OK;
            if (code == CITIUS_CLOSED) {
                cases[which].chan = NULL;
                open--;
            }
            code = code == CITIUS_TIMEOUT || code == CITIUS_CLOSED ? CITIUS_OK : code;
        } else {
            which = citius_select(cases, CHANNELS, timeouts_ns[random_below(&mine, 4)]);
            if (which >= 0) {
                got = cases[which].ok;
                if (!got) {
                    cases[which].chan = NULL;
                    open--;
                }
            } else if (which != -CITIUS_TIMEOUT) {
                code = -which;
            }
        }
        if (got) {
            code = note(value);
            done++;
        }
    }
    return end(&mine, response, code, done);
}

/* Receives from one, number `count`, until it is closed. With such a party at each channel no sender waits for ever. */
int drains(const citius_request *request, citius_response *response) {
    party mine;
    int64_t done = 0, value = 0;
    int code = begin(request, &mine);
    citius_chan *chan = mine.chans[mine.count % CHANNELS];
    while (code == CITIUS_OK && (code = citius_chan_receive(chan, &value, sizeof value)) == CITIUS_OK) {
        code = note(value);
        done++;
    }
    return end(&mine, response, code == CITIUS_CLOSED ? CITIUS_OK : code, done);
}
