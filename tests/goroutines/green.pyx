# cython: language_level=3
# distutils: language = c++
"""Goroutines and channels in Cython, for test_cython.py: in handlers, and outside of every server."""

from cpython.object cimport PyObject
from cpython.ref cimport Py_DECREF
from libc.stdint cimport int64_t
from libc.stdio cimport snprintf
from libc.string cimport memset
from libcpp cimport bool as cbool
from libcpp.utility cimport pair

from citius cimport (
    CITIUS_ELEMENT_OBJECT,
    CITIUS_OK,
    citius_chan,
    citius_chan_find,
    citius_chan_from_python,
    citius_chan_make_of,
    citius_chan_receive_object,
    citius_chan_release,
    citius_chan_send_object,
    citius_chan_to_python,
    citius_flush,
    citius_http_body,
    citius_http_call,
    citius_http_free,
    citius_http_request,
    citius_http_response,
    citius_http_status,
    citius_net_error,
    citius_once,
    citius_pg,
    citius_pg_find,
    citius_pg_of_integer,
    citius_pg_query,
    citius_pg_release,
    citius_pg_value,
    citius_print,
    citius_print_integer,
    citius_query_integer,
    citius_redis,
    citius_redis_call,
    citius_redis_find,
    citius_redis_release,
    citius_reply,
    citius_reply_free,
    citius_reply_text,
    citius_request,
    citius_response,
    citius_rows,
    citius_rows_free,
    citius_rows_integer,
    citius_text,
    citius_write,
)
from citius.go cimport (
    chan,
    default,
    findchan,
    go,
    handler,
    makechan,
    mutex,
    nil,
    panic,
    run,
    select,
    sleep,
    structZ,
    wait_group,
)


# --- without a server ----------------------------------------------------------------------------------

cdef void square(chan[int64_t] numbers, chan[int64_t] squares) noexcept nogil:
    cdef pair[int64_t, cbool] received
    while True:
        received = numbers.recv_()
        if not received.second:
            break
        squares.send(received.first * received.first)
    squares.close()


cdef int64_t _sum_of_squares(int64_t count, unsigned capacity) noexcept nogil:
    cdef chan[int64_t] numbers = makechan[int64_t](capacity)
    cdef chan[int64_t] squares = makechan[int64_t](capacity)
    cdef int64_t total = 0
    cdef int64_t n
    go(square, numbers, squares)
    for n in range(count):
        numbers.send(n)
        total += squares.recv()
    numbers.close()
    return total


cdef void _sum_into(int64_t count, unsigned capacity, int64_t *total) noexcept nogil:
    total[0] = _sum_of_squares(count, capacity)


def sum_of_squares(count, capacity):
    cdef int64_t n = count
    cdef unsigned size = capacity
    cdef int64_t total
    with nogil:
        run(_sum_into, n, size, &total)
    return total


cdef void _selects(int *result) noexcept nogil:
    cdef chan[int] one = makechan[int](1)
    cdef chan[structZ] never = makechan[structZ]()
    cdef chan[int] nothing
    cdef int sent = 5
    cdef int received = 0
    cdef cbool ok = False
    cdef int which = select([never.recvs(), nothing.recvs(), one.sends(&sent), default])
    if which != 2:
        panic("not the send")
    which = select([never.recvs(), one.recvs(&received, &ok)])
    if which != 1 or received != 5 or not ok:
        panic("not the receive")
    if select([one.recvs(), default]) != 1:
        panic("not the default")
    one.close()
    if select([one.recvs(&received, &ok)]) != 0 or ok or received != 0:
        panic("not closed")
    result[0] = one.len() + one.cap()


def selects():
    cdef int result = 0
    run(_selects, &result)
    return result


cdef void _send_on_closed() noexcept nogil:
    cdef chan[int] one = makechan[int](1)
    one.close()
    one.send(1)


def send_on_closed():
    with nogil:
        run(_send_on_closed)


cdef void _panics() noexcept nogil:
    panic("as the test wants it")


def panics():
    with nogil:
        run(_panics)


# --- channels of Python ---------------------------------------------------------------------------------

cdef void double_all(chan[int64_t] questions, chan[int64_t] answers) noexcept nogil:
    cdef pair[int64_t, cbool] received
    while True:
        received = questions.recv_()
        if not received.second:
            break
        answers.send(2 * received.first)
    answers.close()


def start_doubling(questions, answers):
    """Start a goroutine that answers on channels of ints that Python has made."""
    cdef chan[int64_t] q = chan[int64_t].adopt(citius_chan_from_python(questions))
    cdef chan[int64_t] a = chan[int64_t].adopt(citius_chan_from_python(answers))
    go(double_all, q, a)


# Objects cross with the GIL only.
def send_object(channel, value):
    """The code of a send to a channel of Python's objects."""
    cdef citius_chan *chan = citius_chan_from_python(channel)
    cdef int code = citius_chan_send_object(chan, value)
    citius_chan_release(chan)
    return code


def receive_object(channel):
    """The code of a receive, and the object."""
    cdef PyObject *received = NULL
    cdef citius_chan *chan = citius_chan_from_python(channel)
    cdef int code = citius_chan_receive_object(chan, &received)
    citius_chan_release(chan)
    if received == NULL:
        return code, None
    value = <object> received
    Py_DECREF(value)  # that of the channel; `value` has its own
    return code, value


def fill(values):
    """A channel that compiled code has made, with objects in it."""
    cdef citius_chan *chan = citius_chan_make_of(CITIUS_ELEMENT_OBJECT, len(values))
    for value in values:
        citius_chan_send_object(chan, value)
    made = citius_chan_to_python(chan)
    citius_chan_release(chan)
    return made


cdef int wrap_one(citius_chan *objects) noexcept with gil:
    cdef PyObject *received = NULL
    cdef int code = citius_chan_receive_object(objects, &received)
    if code != CITIUS_OK:
        return code
    value = <object> received
    Py_DECREF(value)
    return citius_chan_send_object(objects, [value])


# In a goroutine that parks before.
cdef int _passes(const citius_request *request, citius_response *response) noexcept nogil:
    cdef citius_chan *objects = citius_chan_find("objects")
    sleep(0.001)
    cdef int code = wrap_one(objects)
    citius_chan_release(objects)
    return code if code != CITIUS_OK else citius_print(response, "passed")


passes = handler(_passes)


def made_here():
    """A channel of three bytes that C++ has made, and a value in it."""
    cdef chan[structZ] none = makechan[structZ](2)
    none.send(structZ())
    return citius_chan_to_python(none.get())


# --- the GIL ----------------------------------------------------------------------------------------------

LOG = []


cdef void logs(int number, chan[structZ] done) noexcept nogil:
    with gil:
        LOG.append(number)
    sleep(0.001)
    with gil:
        LOG.append(-number)
    done.send(structZ())


cdef void raises(chan[structZ] done) except * nogil:
    done.send(structZ())
    with gil:
        raise KeyError("in a goroutine")


cdef void throws(chan[structZ] done) noexcept nogil:
    done.send(structZ())
    panic("in a goroutine of C++")


cdef int _log_all(const citius_request *request, citius_response *response) noexcept nogil:
    cdef chan[structZ] done = makechan[structZ]()
    cdef int n
    for n in range(1, 4):
        go(logs, n, done)
    for n in range(3):
        done.recv()
    return citius_print(response, b"logged")


log_all = handler(_log_all)


cdef int _fails(const citius_request *request, citius_response *response) noexcept nogil:
    cdef chan[structZ] done = makechan[structZ]()
    go(raises, done)
    go(throws, done)
    done.recv()
    done.recv()
    sleep(0.001)
    return citius_print(response, b"lives")


fails = handler(_fails)


cdef int _waits_with_gil(const citius_request *request, citius_response *response) noexcept nogil:
    cdef chan[int] never = makechan[int]()
    with gil:
        LOG.append("in")
        never.recv()
    return citius_print(response, b"never")


waits_with_gil = handler(_waits_with_gil)


# The GIL is left as it was found.
cdef int _waits_after_gil(const citius_request *request, citius_response *response) noexcept nogil:
    cdef chan[int] one = makechan[int](1)
    with gil:
        one.send(3)
        LOG.append(one.recv())
    sleep(0.001)
    return citius_print(response, b"fine")


waits_after_gil = handler(_waits_after_gil)


cdef int raise_it() except -1 nogil:
    with gil:
        raise ValueError("of the handler")


cdef api int raises_in_handler(const citius_request *request, citius_response *response) except -1 nogil:
    raise_it()
    return 0


# --- handlers ------------------------------------------------------------------------------------------------

cdef int _squares(const citius_request *request, citius_response *response) noexcept nogil:
    cdef int64_t count = 0
    cdef int code = citius_query_integer(request, "count", 10, &count)
    if code != CITIUS_OK:
        return code
    return citius_print_integer(response, _sum_of_squares(count, 0))


squares = handler(_squares)


cdef int _panics_in_handler(const citius_request *request, citius_response *response) noexcept nogil:
    panic("of the handler")
    return 0


panics_in_handler = handler(_panics_in_handler)


cdef int _waits(const citius_request *request, citius_response *response) noexcept nogil:
    cdef chan[int64_t] gate = findchan[int64_t]("gate")
    if gate == nil:
        return 404
    return citius_print_integer(response, gate.recv())


waits = handler(_waits)


cdef void part(int64_t number, chan[int64_t] results, wait_group *group, mutex *lock, int64_t *total) noexcept nogil:
    lock.lock()
    total[0] += number
    sleep(0)
    lock.unlock()
    results.send(number)
    group.done()


cdef int _fan_out(const citius_request *request, citius_response *response) noexcept nogil:
    cdef chan[int64_t] results = makechan[int64_t](10)
    cdef wait_group group
    cdef mutex lock
    cdef int64_t total = 0
    cdef int64_t sum = 0
    cdef int64_t n
    group.add(10)
    for n in range(10):
        go(part, n, results, &group, &lock, &total)
    group.wait()
    for n in range(10):
        sum += results.recv()
    return citius_print_integer(response, sum * 1000 + total)


fan_out = handler(_fan_out)


# Calls the server on the port of the query: its answer, or the reason why there is none.
cdef int _calls(const citius_request *request, citius_response *response) noexcept nogil:
    cdef int64_t port = 0
    cdef citius_http_request call
    cdef citius_http_response *answer
    cdef citius_text body
    cdef char url[64]
    cdef int code = citius_query_integer(request, "port", 0, &port)
    if code != CITIUS_OK:
        return code
    snprintf(url, sizeof(url), "http://127.0.0.1:%lld/", <long long> port)
    memset(&call, 0, sizeof(call))
    call.size = sizeof(call)
    call.url = url
    call.timeout_ns = 5000000000
    code = citius_http_call(&call, &answer)
    if code != CITIUS_OK:
        return citius_print_integer(response, -citius_net_error(NULL))
    body = citius_http_body(answer)
    citius_print_integer(response, citius_http_status(answer))
    citius_print(response, " ")
    citius_write(response, body.data, body.size)
    citius_http_free(answer)
    return CITIUS_OK


calls = handler(_calls)


# What the Redis and the PostgreSQL of the application say.
cdef int _asks(const citius_request *request, citius_response *response) noexcept nogil:
    cdef citius_text[2] words
    cdef citius_text text
    cdef citius_reply *reply
    cdef citius_rows *rows
    cdef citius_pg_value seven = citius_pg_of_integer(7)
    cdef int64_t number = 0
    cdef citius_redis *redis = citius_redis_find("cython")
    cdef citius_pg *pool = citius_pg_find("cython-db")
    words[0].data, words[0].size = "ECHO", 4
    words[1].data, words[1].size = "heard", 5
    cdef int code = citius_redis_call(redis, words, 2, 5000000000, &reply)
    if code == CITIUS_OK:
        text = citius_reply_text(reply)
        citius_write(response, text.data, text.size)
        citius_reply_free(reply)
        code = citius_pg_query(pool, "SELECT $1::int8 * 6", &seven, 1, 5000000000, &rows)
    if code == CITIUS_OK:
        code = citius_rows_integer(rows, 0, 0, &number)
        citius_rows_free(rows)
    citius_redis_release(redis)
    citius_pg_release(pool)
    return code if code != CITIUS_OK else citius_print_integer(response, number)


asks = handler(_asks)


# What has failed is done again, and nothing stays locked.
cdef extern from *:
    """
    #include <stdexcept>
    static int once_calls = 0;
    static citius_once only_once = CITIUS_ONCE_INIT;
    static void fails_twice(void *) {
        citius::sleep(0.001);
        if (++once_calls % 3) throw std::runtime_error("not yet");
    }
    static int do_once() {
        try {
            return citius_once_do(&only_once, fails_twice, nullptr);
        } catch (const std::runtime_error &) {
            return -1;
        }
    }
    static void does_once(citius::chan<int64_t> results) { results.send(do_once()); }
    """
    int once_calls
    citius_once only_once
    void does_once(chan[int64_t] results) nogil


cdef int _once(const citius_request *request, citius_response *response) noexcept nogil:
    cdef chan[int64_t] results = makechan[int64_t]()
    cdef int64_t failed = 0
    cdef int n
    global once_calls
    memset(&only_once, 0, sizeof(only_once))
    once_calls = 0
    for n in range(10):
        go(does_once, results)
    for n in range(10):
        failed -= results.recv()
    citius_print_integer(response, failed)
    citius_print(response, " ")
    return citius_print_integer(response, once_calls)


once = handler(_once)


# Times that no clock has.
cdef extern from *:
    """
    #include <cmath>
    static int code_of_sleep(double seconds) {
        try {
            citius::sleep(seconds);
            return CITIUS_OK;
        } catch (const citius::misuse_error &) {
            return CITIUS_MISUSE;
        } catch (const citius::cancelled &cancelled) {
            return cancelled.code();
        }
    }
    static int sleep_strangely(citius_response *response) {
        citius_context *context = citius_context_make(nullptr, citius_now_ns() + 2000000);
        citius_context_use(context);
        citius_context_release(context);
        for (double seconds : {double(NAN), -HUGE_VAL, -1.0, 1e300, HUGE_VAL}) {
            citius_print_integer(response, code_of_sleep(seconds));
            citius_print(response, " ");
        }
        return CITIUS_OK;
    }
    """
    int sleep_strangely(citius_response *response) nogil


cdef int _strange_sleeps(const citius_request *request, citius_response *response) noexcept nogil:
    return sleep_strangely(response)


strange_sleeps = handler(_strange_sleeps)


# An exception that is being handled in one goroutine is not seen in another.
cdef extern from *:
    """
    #include <string>
    static std::string caught_while_waiting(int number) {
        std::string seen;
        try {
            throw citius::panic_error("one of " + std::to_string(number));
        } catch (const std::exception &) {
            citius::sleep(0.0005 * (number % 3 + 1));
            try {
                throw citius::panic_error("inner");
            } catch (const std::exception &) {
                citius::sleep(0.0005);
            }
            try {
                throw;
            } catch (const std::exception &error) {
                seen = error.what();
            }
        }
        return seen;
    }
    static void catches(int number, citius::chan<int64_t> results) {
        results.send(caught_while_waiting(number) == "one of " + std::to_string(number));
    }
    """
    void catches(int number, chan[int64_t] results) nogil


cdef int _exceptions(const citius_request *request, citius_response *response) noexcept nogil:
    cdef chan[int64_t] results = makechan[int64_t]()
    cdef int64_t right = 0
    cdef int n
    for n in range(20):
        go(catches, n, results)
    for n in range(20):
        right += results.recv()
    return citius_print_integer(response, right)


exceptions = handler(_exceptions)
