//! What compiled handlers can do besides computing: goroutines, channels, time, and everything that waits.
//!
//! `python/citius/include/citius.h` is the other side of it. Reading order: [`green`] (a goroutine), [`wait`] (how it waits), [`local`]
//! (how a turn runs the goroutines of a reactor), [`chan`] and [`sync`] (the functions of the header). Tests: `tests/goroutines/`.

pub(crate) mod chan;
pub(crate) mod clock;
pub(crate) mod codes;
pub(crate) mod context;
pub(crate) mod context_functions;
pub(crate) mod current_call;
pub(crate) mod engines;
pub(crate) mod gil;
pub(crate) mod go_functions;
pub(crate) mod green;
pub(crate) mod kept_error;
pub(crate) mod local;
pub(crate) mod names;
pub(crate) mod net;
pub(crate) mod packed;
pub(crate) mod pool;
pub(crate) mod report;
pub(crate) mod sync;
mod thread_state;
pub(crate) mod wait;

/// Code of the interpreter is not cut off by a stack overflow: it may hold its locks.
fn protect_python() {
    use citius_goroutine::Protection;

    citius_goroutine::trap::protect(
        pyo3::ffi::Py_IsInitialized as *const () as usize,
        Protection::Vital,
    );
}
