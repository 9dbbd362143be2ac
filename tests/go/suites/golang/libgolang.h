/* What pygolang's libgolang_test.cpp uses, on citius.hpp. */
#pragma once

#include <citius.hpp>

#include <cstdlib>
#include <cstring>
#include <functional>
#include <new>
#include <string>
#include <tuple>

namespace golang {
using namespace citius;
constexpr std::nullptr_t nil = nullptr;
template <typename F> using func = std::function<F>;
namespace time {
inline double now() { return citius::now(); }
inline void sleep(double seconds) { citius::sleep(seconds); }
} // namespace time
} // namespace golang

#define ASSERT(condition)                                                                                              \
    do {                                                                                                               \
        if (!(condition)) {                                                                                            \
            citius::panic("assertion failed: " #condition);                                                            \
        }                                                                                                              \
    } while (0)
