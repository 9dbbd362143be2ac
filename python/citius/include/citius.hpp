/* Citius: goroutines and channels for C++ and for Cython (citius/go.pxd), over citius.h. C++11.
 *
 *     citius::chan<int> numbers = citius::makechan<int>();
 *     citius::go([numbers] { numbers.send(1); });
 *     int one = numbers.recv();
 *
 * What fails throws: citius::panic_error (closed_error: a send on a closed channel, a second close; misuse_error: a wait where
 * nothing may wait) or citius::cancelled (the client has left, a deadline has come). Functions of Cython let these exceptions
 * through; at the edge to Python they are called by `run` of citius/go.pxd. A handler is called through citius::handle<handler>, which makes
 * a status of an exception. One that leaves a goroutine's function is logged, and ends the goroutine.
 */
#ifndef CITIUS_HPP
#define CITIUS_HPP

#include "citius.h"

#include <cstdio>
#include <cxxabi.h>
#include <exception>
#include <initializer_list>
#include <memory>
#include <new>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>

#ifdef Py_PYTHON_H
static inline void citius_report_exception(const char *message);
#endif

namespace citius {

/* A mistake: what panics in Go. */
class panic_error : public std::exception {
public:
    explicit panic_error(const std::string &message) : message_(message) {}
    const char *what() const noexcept override { return message_.c_str(); }

private:
    std::string message_;
};

/* A send on a closed channel, or a second close. */
class closed_error : public panic_error {
public:
    using panic_error::panic_error;
};

/* CITIUS_MISUSE. */
class misuse_error : public panic_error {
public:
    using panic_error::panic_error;
};

/* A wait was ended: CITIUS_CANCELLED or CITIUS_TIMEOUT. */
class cancelled : public std::exception {
public:
    explicit cancelled(int code) : code_(code) {}
    int code() const noexcept { return code_; }
    const char *what() const noexcept override {
        return code_ == CITIUS_TIMEOUT ? "the deadline has come" : "cancelled";
    }

private:
    int code_;
};

[[noreturn]] inline void panic(const char *message) { throw panic_error(message); }

/* Throws what a code says. */
[[noreturn]] inline void fail(int code, const char *closed) {
    switch (code) {
    case CITIUS_CLOSED:
        throw closed_error(closed);
    case CITIUS_MISUSE: {
        const char *mistake = citius_mistake();
        throw misuse_error(mistake != nullptr ? mistake : "misuse");
    }
    case CITIUS_UNAVAILABLE:
        throw panic_error("there are as many goroutines as --goroutines-max permits");
    default:
        throw cancelled(code);
    }
}

inline void check(int code, const char *closed = "the channel is closed") {
    if (code != CITIUS_OK) {
        fail(code, closed);
    }
}

/* A value of no size: `chan<structZ>`. */
struct structZ {};

/* One case of a select. */
struct _selcase {
    citius_case native;
    bool *ok;
    bool is_default;
};

static const _selcase _default = {{nullptr, nullptr, 0, CITIUS_RECEIVE, 0}, nullptr, true};

/* How values travel: as their bytes if these may be copied, otherwise by a pointer to a copy on the heap. */
template <typename T, bool copies = std::is_trivially_copyable<T>::value> struct travel {
    static constexpr std::size_t size = std::is_empty<T>::value ? 0 : sizeof(T);
    static citius_chan *make(unsigned capacity) { return citius_chan_make(size, capacity); }
    static int send(citius_chan *chan, const T &value) { return citius_chan_send(chan, &value, size); }
    static int receive(citius_chan *chan, T *value) { return citius_chan_receive(chan, value, size); }
};

template <typename T> struct travel<T, false> {
    static void drop(void *value) { delete *static_cast<T **>(value); }
    static citius_chan *make(unsigned capacity) {
        return citius_chan_make_owned(sizeof(T *), capacity, drop);
    }
    static int send(citius_chan *chan, const T &value) {
        std::unique_ptr<T> copy(new T(value));
        T *pointer = copy.get();
        int code = citius_chan_send(chan, &pointer, sizeof pointer);
        if (code == CITIUS_OK) {
            copy.release();
        }
        return code;
    }
    static int receive(citius_chan *chan, T *value) {
        T *pointer = nullptr;
        int code = citius_chan_receive(chan, &pointer, sizeof pointer);
        if (code == CITIUS_OK) {
            std::unique_ptr<T> received(pointer);
            *value = std::move(*received);
        }
        return code;
    }
};

/* A channel of T; copies refer to the same one, and nullptr is a channel that is never ready. */
template <typename T> class chan {
public:
    chan() noexcept : chan_(nullptr) {}
    chan(std::nullptr_t) noexcept : chan_(nullptr) {}
    chan(const chan &other) noexcept : chan_(citius_chan_retain(other.chan_)) {}
    chan(chan &&other) noexcept : chan_(other.chan_) { other.chan_ = nullptr; }
    ~chan() { citius_chan_release(chan_); }

    chan &operator=(chan other) noexcept {
        std::swap(chan_, other.chan_);
        return *this;
    }
    chan &operator=(std::nullptr_t) noexcept {
        citius_chan_release(chan_);
        chan_ = nullptr;
        return *this;
    }

    /* Waits. Throws if the channel is closed. */
    void send(const T &value) const {
        check(travel<T>::send(chan_, value), "send on closed channel");
    }
    /* Waits. The value, or T() if the channel is closed. */
    T recv() const { return recv_().first; }
    std::pair<T, bool> recv_() const {
        std::pair<T, bool> result{T(), true};
        int code = travel<T>::receive(chan_, &result.first);
        if (code == CITIUS_CLOSED) {
            result = std::pair<T, bool>{T(), false};
        } else {
            check(code);
        }
        return result;
    }
    void close() const {
        if (chan_ == nullptr) {
            panic("close of nil channel");
        }
        check(citius_chan_close(chan_), "close of closed channel");
    }

    /* Cases of a select. What they point to must live until it has ended; values that cannot be copied byte by byte
     * are received by recv_ only. */
    _selcase sends(const T *value) const {
        static_assert(std::is_trivially_copyable<T>::value, "a select sends values that are copied byte by byte");
        return _selcase{{chan_, const_cast<T *>(value), travel<T>::size, CITIUS_SEND, 0}, nullptr, false};
    }
    _selcase recvs(T *value = nullptr, bool *ok = nullptr) const {
        static_assert(std::is_trivially_copyable<T>::value, "a select receives values that are copied byte by byte");
        return _selcase{{chan_, value, travel<T>::size, CITIUS_RECEIVE, 0}, ok, false};
    }

    unsigned len() const { return static_cast<unsigned>(citius_chan_len(chan_)); }
    unsigned cap() const { return static_cast<unsigned>(citius_chan_capacity(chan_)); }

    bool operator==(std::nullptr_t) const noexcept { return chan_ == nullptr; }
    bool operator!=(std::nullptr_t) const noexcept { return chan_ != nullptr; }
    bool operator==(const chan &other) const noexcept { return chan_ == other.chan_; }
    bool operator!=(const chan &other) const noexcept { return chan_ != other.chan_; }

    citius_chan *get() const noexcept { return chan_; }

    /* Takes over a reference. */
    static chan adopt(citius_chan *pointer) noexcept {
        chan made;
        made.chan_ = pointer;
        return made;
    }

private:
    citius_chan *chan_;
};

/* A channel with a buffer of `size` values. */
template <typename T> chan<T> makechan(unsigned size = 0) {
    citius_chan *made = travel<T>::make(size);
    if (made == nullptr) {
        panic(citius_mistake());
    }
    return chan<T>::adopt(made);
}

/* The channel that Python has given this name; nullptr if there is none. */
template <typename T> chan<T> findchan(const char *name) {
    return chan<T>::adopt(citius_chan_find(name));
}

/* Does one of the cases that are ready; its index. */
inline int select(const _selcase *cases, std::size_t count) {
    citius_case few[8];
    std::unique_ptr<citius_case[]> many(count > 8 ? new citius_case[count] : nullptr);
    citius_case *natives = many ? many.get() : few;
    int64_t timeout_ns = CITIUS_FOREVER;
    int otherwise = -1, chosen;
    for (std::size_t index = 0; index < count; index++) {
        natives[index] = cases[index].native;
        if (cases[index].is_default) {
            if (otherwise >= 0) {
                panic("select: multiple default");
            }
            timeout_ns = 0;
            otherwise = static_cast<int>(index);
        }
    }
    chosen = citius_select(natives, count, timeout_ns);
    if (chosen < 0) {
        if (otherwise >= 0 && -chosen == CITIUS_TIMEOUT) {
            return otherwise;
        }
        fail(-chosen, "send on closed channel");
    }
    if (cases[chosen].ok != nullptr) {
        *cases[chosen].ok = natives[chosen].ok != 0;
    }
    return chosen;
}

inline int select(std::initializer_list<const _selcase> cases) {
    return select(cases.begin(), cases.size());
}

template <std::size_t N> int select(const _selcase (&cases)[N]) { return select(cases, N); }

/* Logs what has left a goroutine's function. */
inline void report(const char *message) noexcept {
#ifdef Py_PYTHON_H
    citius_report_exception(message);
#else
    std::fprintf(stderr, "citius: a goroutine has ended with an exception: %s\n", message);
#endif
}

/* Exceptions that are being handled belong to the goroutine, and not to its thread: the server is told where they are
 * kept, once for each library. */
inline void use_exceptions() noexcept {
    if (citius_table() != nullptr) {
        static const int told = (citius_runtime->cxx_globals(
                                     reinterpret_cast<void *(*)()>(&abi::__cxa_get_globals)), 0);
        (void)told;
    }
}

#ifdef Py_PYTHON_H
/* How often this thread has taken the GIL by PyGILState_Ensure. */
inline int gil_depth() noexcept {
    PyThreadState *state = PyGILState_GetThisThreadState();
    return state == nullptr ? 0 : state->gilstate_counter;
}

/* Whether this thread's state has an exception, with or without the GIL. */
inline bool has_raised() noexcept {
    PyThreadState *state = PyGILState_GetThisThreadState();
    if (state == nullptr) {
        return false;
    }
#if PY_VERSION_HEX >= 0x030C0000
    return state->current_exception != nullptr;
#else
    return state->curexc_type != nullptr;
#endif
}

/* An exception of C++ may leave a `with gil` block, which Cython does not expect: gives back what was taken since. */
class gil_guard {
public:
    gil_guard() noexcept : depth_(gil_depth()), is_held_(PyGILState_Check() != 0) {}
    void restore() const noexcept {
        for (int depth = gil_depth(); depth > depth_; depth--) {
            PyGILState_Release(is_held_ || depth > depth_ + 1 ? PyGILState_LOCKED : PyGILState_UNLOCKED);
        }
    }

private:
    int depth_;
    bool is_held_;
};
#else
class gil_guard {
public:
    void restore() const noexcept {}
};
#endif

namespace detail {

/* std::apply, which C++11 does not have. */
template <std::size_t... I> struct indices {};
template <std::size_t N, std::size_t... I> struct counted : counted<N - 1, N - 1, I...> {};
template <std::size_t... I> struct counted<0, I...> { typedef indices<I...> type; };

template <typename F, typename Tuple, std::size_t... I> void apply(F &function, Tuple &arguments, indices<I...>) {
    function(std::get<I>(arguments)...);
}

template <typename F, typename... A> struct call {
    F function;
    std::tuple<A...> arguments;

    static void run(void *pointer) {
        use_exceptions();
        std::unique_ptr<call> self(static_cast<call *>(pointer));
        const gil_guard guard;
        try {
            apply(self->function, self->arguments, typename counted<sizeof...(A)>::type());
        } catch (const cancelled &) {
            /* As a task that is cancelled: there is nothing to tell. */
            guard.restore();
        } catch (const std::exception &error) {
            guard.restore();
            report(error.what());
        } catch (...) {
            guard.restore();
            report("not a std::exception");
        }
#ifdef Py_PYTHON_H
        /* A function of Cython may have left an exception of Python. */
        if (has_raised()) {
            report(nullptr);
        }
#endif
    }
};

}

/* Starts a goroutine that calls `function` with copies of the arguments. */
template <typename F, typename... A> void go(F &&function, A &&...arguments) {
    typedef detail::call<typename std::decay<F>::type, typename std::decay<A>::type...> call;
    std::unique_ptr<call> made(new call{std::forward<F>(function),
                                        std::tuple<typename std::decay<A>::type...>(std::forward<A>(arguments)...)});
    check(citius_go(call::run, made.get()));
    made.release();
}

/* Calls a function: for Cython, which makes an exception of Python of one that leaves it. */
template <typename F, typename... A> void run(F function, A... arguments) { function(arguments...); }

/* Waits so many seconds; throws a misuse_error if that is not a number. */
inline void sleep(double seconds) {
    if (seconds != seconds) {
        throw misuse_error("expected a number of seconds, got nan");
    }
    /* 64 bits count nanoseconds for 292 years. */
    int64_t ns = seconds <= 0 ? 0 : seconds < 9e9 ? static_cast<int64_t>(seconds * 1e9) : INT64_MAX;
    if (ns == 0) {
        check(citius_yield());
    } else {
        check(citius_sleep_ns(ns));
    }
}

/* Seconds on the monotonic clock. */
inline double now() { return static_cast<double>(citius_now_ns()) * 1e-9; }

/* Calls a handler that may throw: citius::handle<handler> is what a route is given. */
template <int (*handler)(const citius_request *, citius_response *)>
int handle(const citius_request *request, citius_response *response) noexcept {
    use_exceptions();
    const gil_guard guard;
    try {
        return handler(request, response);
    } catch (const cancelled &error) {
        guard.restore();
        return error.code();
    } catch (const std::exception &error) {
        guard.restore();
        report(error.what());
        return CITIUS_FAILED;
    } catch (...) {
        guard.restore();
        report("not a std::exception");
        return CITIUS_FAILED;
    }
}

/* A number of things that have to be done. */
class wait_group {
public:
    wait_group() : group_(citius_wait_group_make()) {}
    wait_group(const wait_group &other) : group_(citius_wait_group_retain(other.group_)) {}
    wait_group &operator=(const wait_group &) = delete;
    ~wait_group() { citius_wait_group_release(group_); }
    void add(int64_t count = 1) const { check(citius_wait_group_add(group_, count)); }
    void done() const { check(citius_wait_group_done(group_)); }
    void wait() const { check(citius_wait_group_wait(group_)); }

private:
    citius_wait_group *group_;
};

/* A lock for std::lock_guard. */
class mutex {
public:
    mutex() : mutex_{nullptr} {}
    mutex(const mutex &) = delete;
    mutex &operator=(const mutex &) = delete;
    ~mutex() { citius_mutex_destroy(&mutex_); }
    void lock() { check(citius_mutex_lock(&mutex_)); }
    void unlock() { citius_mutex_unlock(&mutex_); }

private:
    citius_mutex mutex_;
};

}

#ifdef Py_PYTHON_H
/* With or without the GIL: logs `message`, and the exception of Python that is set. */
static inline void citius_report_exception(const char *message) {
    PyGILState_STATE state = PyGILState_Ensure();
    PyObject *raised = NULL, *module, *logged = NULL;
#if PY_VERSION_HEX >= 0x030C0000
    raised = PyErr_GetRaisedException();
#else
    PyObject *type, *traceback;
    PyErr_Fetch(&type, &raised, &traceback);
    if (type != NULL) {
        PyErr_NormalizeException(&type, &raised, &traceback);
        if (traceback != NULL) {
            PyException_SetTraceback(raised, traceback);
        }
    }
    Py_XDECREF(type);
    Py_XDECREF(traceback);
#endif
    module = PyImport_ImportModule("citius.go");
    if (module != NULL) {
        logged = PyObject_CallMethod(module, "_report_native", "zO", message, raised != NULL ? raised : Py_None);
        Py_DECREF(module);
    }
    if (logged == NULL) {
        PyErr_WriteUnraisable(Py_None);
    }
    Py_XDECREF(logged);
    Py_XDECREF(raised);
    PyGILState_Release(state);
}

/* A new capsule that `compiled=` takes, of a handler that may throw; its context is the name. */
static inline PyObject *citius_named_capsule(citius_handler handler, const char *name) {
    PyObject *capsule = citius_handler_capsule(handler);
    if (capsule != NULL && PyCapsule_SetContext(capsule, const_cast<char *>(name)) != 0) {
        Py_CLEAR(capsule);
    }
    return capsule;
}

#define CITIUS_HANDLER_OF(name) citius_named_capsule(&citius::handle<&name>, #name)

/* For `except +topyexc` of Cython: the exception of C++ that is being handled becomes one of Python. */
static inline void topyexc() {
    PyObject *module, *type;
    const char *name = "GoPanic";
    std::string message;
    try {
        throw;
    } catch (const citius::cancelled &error) {
        name = error.code() == CITIUS_TIMEOUT ? "DeadlineExceeded" : "Cancelled";
        message = error.what();
    } catch (const citius::closed_error &error) {
        name = "ChannelClosed";
        message = error.what();
    } catch (const citius::misuse_error &error) {
        name = "ChannelMisuse";
        message = error.what();
    } catch (const std::exception &error) {
        message = error.what();
    } catch (...) {
        message = "an exception of C++ that is none of std::exception";
    }
    module = PyImport_ImportModule("citius.errors");
    if (module == NULL) {
        return;
    }
    type = PyObject_GetAttrString(module, name);
    Py_DECREF(module);
    if (type != NULL) {
        PyErr_SetString(type, message.c_str());
        Py_DECREF(type);
    }
}
#endif

#endif /* CITIUS_HPP */
