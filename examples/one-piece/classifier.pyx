# cython: language_level=3, boundscheck=False, wraparound=False, freethreading_compatible=True
"""The compiled half of the service: goroutines that classify, and the handlers that ask them."""

from libc.stdint cimport int64_t
from libc.stdio cimport snprintf
from libc.string cimport memchr, memcpy
from libcpp.memory cimport make_shared, shared_ptr
from libcpp.string cimport string

from citius cimport (
    CITIUS_NOT_FOUND,
    CITIUS_OK,
    citius_bytes,
    citius_chan,
    citius_chan_find,
    citius_chan_receive_bytes,
    citius_chan_receive_within,
    citius_chan_release,
    citius_chan_send_bytes,
    citius_content_type,
    citius_context_use,
    citius_free,
    citius_now_ns,
    citius_print,
    citius_print_integer,
    citius_redis,
    citius_redis_call,
    citius_redis_find,
    citius_reply,
    citius_reply_free,
    citius_reply_text,
    citius_request,
    citius_response,
    citius_text,
)
from citius.go cimport chan, findchan, go, handler, makechan, run

cdef enum:
    NAMES = 4  # in Redis: name:0 to name:3
    NAME_BYTES_MAX = 64
    LOOK_UPS = 8  # goroutines that look names up
    CLASSIFIERS = 4  # goroutines that take texts from the channel of Python

cdef int64_t TIMEOUT_NS = 1_000_000_000
cdef int64_t EVERY_NS = 20_000_000


# --- one name in Redis -----------------------------------------------------------------------------

# GET name:NUMBER, with the client of app.py. 0, CITIUS_NOT_FOUND, or why there is no reply.
cdef int get_name(citius_redis *redis, int number, char *name) noexcept nogil:
    cdef char key[16]
    cdef citius_text[2] words
    cdef citius_text found
    cdef citius_reply *reply
    words[0].data, words[0].size = "GET", 3
    words[1].data, words[1].size = key, snprintf(key, sizeof(key), "name:%d", number)
    cdef int code = citius_redis_call(redis, words, 2, TIMEOUT_NS, &reply)
    if code != CITIUS_OK:
        return code
    found = citius_reply_text(reply)
    if found.data == NULL or found.size >= NAME_BYTES_MAX:
        code = CITIUS_NOT_FOUND
    else:
        memcpy(name, found.data, found.size)
        name[found.size] = 0
    citius_reply_free(reply)
    return code


# --- one name and one text: the article's work -----------------------------------------------------

cdef inline bint is_close(unsigned char byte, const char *name) noexcept nogil:
    while name[0]:
        if -1 <= <int> byte - <int> <unsigned char> name[0] <= 1:
            return True
        name += 1
    return False


cdef int64_t count_close(const string &text, const char *name) noexcept nogil:
    cdef int64_t count = 0
    cdef size_t i
    for i in range(text.size()):
        count += is_close(text[i], name)
    return count


# --- the goroutines that look up -------------------------------------------------------------------

cdef struct Answer:
    int number
    int code
    int64_t count
    char name[NAME_BYTES_MAX]


cdef cppclass Question:
    shared_ptr[string] text
    int number
    chan[Answer] answers


cdef chan[Question] questions = makechan[Question]()


cdef void answer_next(citius_redis *redis) noexcept nogil:
    cdef Question question = questions.recv()
    cdef Answer answer
    answer.number = question.number
    answer.code = get_name(redis, question.number, answer.name)
    answer.count = 0
    if answer.code == CITIUS_OK:
        answer.count = count_close(question.text.get()[0], answer.name)
    question.answers.send(answer)


cdef void look_up() noexcept nogil:
    cdef citius_redis *redis = citius_redis_find("names")
    citius_context_use(NULL)  # it serves all requests, not only the one that has started it
    while True:
        answer_next(redis)


# Fans one text out: a question for each name, the answers in the order in which they come.
cdef int classify_text(shared_ptr[string] text, Answer *found) noexcept nogil:
    cdef chan[Answer] answers = makechan[Answer](NAMES)  # nothing waits in vain if the client leaves
    cdef Question question
    cdef Answer answer
    cdef int code = CITIUS_OK
    cdef int number
    question.text = text
    question.answers = answers
    for number in range(NAMES):
        question.number = number
        questions.send(question)
    for number in range(NAMES):
        answer = answers.recv()
        found[answer.number] = answer
        if answer.code != CITIUS_OK:
            code = answer.code
    return code


# --- the goroutines between the two channels of Python ---------------------------------------------

cdef struct Counts:  # type="<7q" in app.py
    int64_t texts
    int64_t failed
    int64_t total
    int64_t counts[NAMES]


cdef chan[Counts] counted = makechan[Counts](64)


cdef void classify_texts() noexcept nogil:
    cdef citius_chan *texts = citius_chan_find("texts")
    cdef Answer found[NAMES]
    cdef Counts counts
    cdef citius_bytes received
    cdef shared_ptr[string] text
    cdef int number
    citius_context_use(NULL)
    counts.texts = 1
    while citius_chan_receive_bytes(texts, &received) == CITIUS_OK:
        text = make_shared[string](received.data, received.size)
        citius_free(received.data)
        counts.failed = classify_text(text, found) != CITIUS_OK
        counts.total = text.get().size()
        for number in range(NAMES):
            counts.counts[number] = found[number].count
        counted.send(counts)
    citius_chan_release(texts)


# Python gets the sum of EVERY_NS: what has to be done for each text is compiled.
cdef void add_up() noexcept nogil:
    cdef chan[Counts] results = findchan[Counts]("results")
    cdef Counts sums
    cdef Counts one
    cdef int64_t left_ns
    cdef int64_t end_ns
    cdef int number
    citius_context_use(NULL)
    while True:
        sums = counted.recv()
        left_ns = EVERY_NS
        end_ns = citius_now_ns() + left_ns
        while left_ns > 0 and citius_chan_receive_within(
            counted.get(), &one, sizeof(one), left_ns
        ) == CITIUS_OK:
            sums.texts += one.texts
            sums.failed += one.failed
            sums.total += one.total
            for number in range(NAMES):
                sums.counts[number] += one.counts[number]
            left_ns = end_ns - citius_now_ns()
        results.send(sums)


cdef void start_workers() noexcept nogil:
    cdef int number
    for number in range(LOOK_UPS):
        go(look_up)
    for number in range(CLASSIFIERS):
        go(classify_texts)
    go(add_up)


# Of the standard library of C++, because `go` throws if there are too many goroutines: then the next call tries again.
cdef extern from "<mutex>" namespace "std" nogil:
    cppclass once_flag:
        pass

    void call_once(once_flag &flag, void (*function)() noexcept nogil)


cdef once_flag workers


cdef void start_once() noexcept nogil:
    call_once(workers, start_workers)


def start() -> None:
    """Start the goroutines, once, on the reactor of this thread."""
    run(start_once)


# --- the handlers ----------------------------------------------------------------------------------

# GET /classify/…: the article's answer; what follows /classify is its path.
cdef int _classify(const citius_request *request, citius_response *response) noexcept nogil:
    cdef Answer found[NAMES]
    cdef shared_ptr[string] text = make_shared[string](request.path.data + 9, request.path.size - 9)
    cdef int number
    start_once()
    cdef int code = classify_text(text, found)
    citius_content_type(response, "text/plain")
    if code == CITIUS_NOT_FOUND:
        citius_print(response, "a name is missing in Redis\n")
        return 503
    if code != CITIUS_OK:
        return code
    for number in range(NAMES):
        citius_print(response, found[number].name)
        citius_print(response, ":\t")
        citius_print_integer(response, found[number].count)
        citius_print(response, "\n")
    citius_print(response, "total:\t")
    citius_print_integer(response, text.get().size())
    return citius_print(response, "\n")


classify = handler(_classify)


# POST /lines: each line of the body is a text for the channel. It parks while the channel is full.
cdef int _accept_lines(const citius_request *request, citius_response *response) noexcept nogil:
    cdef citius_chan *texts = citius_chan_find("texts")
    cdef const char *line = request.body.data
    cdef const char *end = line + request.body.size
    cdef const char *line_end
    cdef int64_t count = 0
    cdef int code = CITIUS_OK
    start_once()
    while line < end and code == CITIUS_OK:
        line_end = <const char *> memchr(line, c"\n", end - line)
        if line_end == NULL:
            line_end = end
        code = citius_chan_send_bytes(texts, line, line_end - line)
        count += 1
        line = line_end + 1
    citius_chan_release(texts)
    if code != CITIUS_OK:
        return code
    response.status = 202
    citius_content_type(response, "application/json")
    return citius_print_integer(response, count)


accept_lines = handler(_accept_lines)
