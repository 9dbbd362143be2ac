# Goroutines and channels for Cython modules in C++ (`# distutils: language = c++`), without the GIL:
#
#     from citius.go cimport chan, go, makechan, select, default, sleep
#
# Build with include_dirs=[citius.get_include()]. What each does is said in include/citius.hpp.
#
# Nothing here is declared `except +`: exceptions of C++ pass through `nogil` functions, as in pygolang. At the edge to Python
# run(f, arguments) makes exceptions of Python of them, and a handler is given to a route as `handler(f)`. cdef functions without results are declared
# `noexcept nogil`: Cython takes the GIL after each call of one that may raise an exception of Python.
from libcpp cimport bool as cbool
from libcpp cimport nullptr_t as Nil
from libcpp cimport nullptr as nil
from libcpp.utility cimport pair

from citius cimport citius_chan, citius_request, citius_response


cdef extern from "citius.hpp" namespace "citius" nogil:
    void panic(const char *message)

    # Starts a goroutine: go(function, arguments...). C++ checks the types.
    void go(...)

    cppclass structZ:
        structZ()

    cppclass _selcase:
        pass

    cppclass chan[T]:
        chan()
        void send(const T &value) const
        T recv() const
        pair[T, cbool] recv_() const
        void close() const
        _selcase sends(const T *value) const
        _selcase recvs() const
        _selcase recvs(T *value) const
        _selcase recvs(T *value, cbool *ok) const
        unsigned len() const
        unsigned cap() const
        cbool operator==(Nil) const
        cbool operator!=(Nil) const
        void operator=(Nil)
        citius_chan *get() const
        # Takes over a reference, such as that of citius_chan_from_python.
        @staticmethod
        chan[T] adopt(citius_chan *pointer)

    chan[T] makechan[T]()
    chan[T] makechan[T](unsigned size)
    # The channel that Python has given this name (citius.go.share); nil if there is none.
    chan[T] findchan[T](const char *name)

    const _selcase default "citius::_default"
    int select(_selcase cases[])

    void sleep(double seconds)
    double now()

    cppclass wait_group:
        wait_group()
        void add() const
        void add(long count) const
        void done() const
        void wait() const

    cppclass mutex:
        mutex()
        void lock()
        void unlock()


cdef extern from "citius.hpp":
    # For functions of your own headers: `except +topyexc`.
    void topyexc() except *


cdef extern from "citius.hpp" namespace "citius" nogil:
    # The edge to Python: calls a cdef function; results are passed by pointers.
    void run(...) except +topyexc


cdef extern from "citius.hpp":
    # A capsule for `compiled=` of a handler that may throw: `handler(f)` of a cdef function f, by its name.
    object handler "CITIUS_HANDLER_OF" (int (*handler)(const citius_request *, citius_response *) noexcept nogil)
